"""What a command prints: one JSON document, plain lines in a pipe, or tables and progress on a terminal.

Every text passes the redaction, and nothing that a host sent can move a terminal's cursor.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from gitprovider._core.json import plain
from gitprovider.events import Event, OperationEvent, RetryEvent
from gitprovider.redact import printable, redact

_LINE = 20_000  # characters; longer than any value but a description
_STEP = (13, 20, 18, 0)  # widths of the columns of steps, which are printed before the next one's width is known


class OutputLostError(Exception):
    """Standard output takes no more: its reader has seen enough (`gitprovider … | head -1`), or the disk is full.

    Attributes:
        cause: the system's error.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause.strerror)
        self.cause = cause


class Output:
    """One command's output. ``secrets`` are the tokens that the environment holds.

    Attributes:
        as_json: print one JSON document and nothing else.
        so_far: what a failure's document says besides the error: the steps that a job did before it.
        last: the operation that ended last, for a command that ends in the middle of one.
    """

    def __init__(
        self, secrets: Iterable[str] = (), *, stdout: TextIO | None = None, stderr: TextIO | None = None
    ) -> None:
        self.as_json = False
        self.so_far: Mapping[str, Any] = {}
        self.last: OperationEvent | None = None
        self._secrets = tuple(secrets)
        # A process may be started with these closed; Python has None for them then.
        self._stdout = stdout or sys.stdout or io.StringIO()
        self._stderr = stderr or sys.stderr or io.StringIO()
        self._status: Status | None = None

    @property
    def rich(self) -> bool:
        """Whether people read along: a terminal, and not asked for JSON."""
        return not self.as_json and self._stdout.isatty()

    def value(self, value: Any) -> None:
        """Print one value: its fields."""
        fields: dict[str, Any] = plain(value)
        self.document(fields, fields.items())

    def document(self, document: Any, rows: Iterable[Sequence[Any]], *, columns: Sequence[str] = ()) -> None:
        """Print ``document`` as JSON, or ``rows`` as lines or as a table headed by ``columns``."""
        if self.as_json:
            self._write(json.dumps(self._clean(document), indent=2))
        elif self.rich:
            self._table(rows, columns)
        else:
            self._write(*("\t".join(self._line(cell) for cell in row) for row in rows))

    def say(self, text: str, *, indent: str = "") -> None:
        """One line for people: on standard output, and not at all with JSON."""
        if not self.as_json:
            self._write(indent + self._line(text))

    def failure(self, envelope: Mapping[str, Any]) -> None:
        """Print a failure: with JSON its envelope on standard output, else a line and a hint on standard error."""
        if self.as_json:
            self.document({**self.so_far, "error": envelope}, ())
            return
        where = " ".join(str(envelope[key]) for key in ("provider", "operation", "repo") if envelope.get(key))
        tries = f" (tried {envelope['attempts']} times)" if envelope["attempts"] > 1 else ""
        self.complain(f"error: {where + ': ' if where else ''}{envelope['message']}{tries}")
        if envelope["outcome"] != "not_applied":
            done = ", ".join(step["name"] for step in envelope["completed"]) or "nothing acknowledged"
            self.complain(
                f"outcome: {envelope['outcome']} ({done}); look before you repeat: run it with --json, keep the"
                " output, and ask `gitprovider resolve FILE`"
            )
        hint = envelope["hint"]
        if not hint and envelope["retry_after"]:
            hint = f"the host asked to wait {envelope['retry_after']:.0f} s"
        if hint:
            self.complain(f"hint: {hint}")

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show on a terminal that ``what`` is going on."""
        console = self._console()
        if not self.rich or console.is_dumb_terminal:
            yield
            return
        with console.status(Text(self._line(what))) as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None

    def progress(self, what: str) -> None:
        """Say on a terminal what the work has come to."""
        if self._status is not None:
            self._status.update(Text(self._line(what)))

    def step(self, status: str, name: str, target: str, detail: str) -> None:
        """One finished step of the work: a line at once, so that a long job shows how far it is."""
        cells = (status, name, target, detail)
        if self.as_json:
            return
        if self._status is None:
            self.document(None, [cells])
        else:
            line = "  ".join(self._line(cell).ljust(width) for cell, width in zip(cells, _STEP, strict=True))
            self._status.console.print(Text(line.rstrip()), soft_wrap=True)

    def note(self, text: str) -> None:
        """Something to know while waiting: beside the progress on a terminal, otherwise on standard error."""
        if self._status is not None:
            self.progress(text)
        elif not self.as_json:
            self.complain(text)

    def on_event(self, event: Event) -> None:
        """A provider's hook: tell of retries, and remember the operation that ended last."""
        if isinstance(event, OperationEvent):
            self.last = event
        elif isinstance(event, RetryEvent):
            self.note(f"{event.operation}: {event.error}; attempt {event.attempt + 1} in {event.wait:.1f} s")

    def _write(self, *lines: str) -> None:
        try:
            self._stdout.writelines(f"{line}\n" for line in lines)
            self._stdout.flush()
        except OSError as exc:
            raise OutputLostError(exc) from None

    def complain(self, text: str) -> None:
        """One line on standard error. Where that takes no more, there is the exit code, which must stay what it is."""
        with suppress(OSError):
            self._stderr.write(self._line(text) + "\n")
            self._stderr.flush()

    def _console(self) -> Console:
        return Console(file=self._stdout, highlight=False)

    def _line(self, cell: Any) -> str:
        return printable(redact(_shown(cell), self._secrets), _LINE)

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return redact(value, self._secrets)
        if isinstance(value, Mapping):
            return {redact(str(key), self._secrets): self._clean(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._clean(item) for item in value]
        return value

    def _table(self, rows: Iterable[Sequence[Any]], columns: Sequence[str]) -> None:
        table = Table(show_header=bool(columns), box=None, pad_edge=False)
        for column in columns:
            table.add_column(column)
        for row in rows:
            table.add_row(*(Text(self._line(cell)) for cell in row))
        self._console().print(table)


def _shown(cell: Any) -> str:
    """A cell as people read it: nothing for None, yes and no, and a list by its items."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, list | tuple):
        return ", ".join(_shown(item) for item in cell)
    return str(cell)
