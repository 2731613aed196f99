"""The output of a command: one JSON document, plain lines in a pipe, or tables and progress on a terminal.

All text is redacted, and control characters from a host cannot move a terminal's cursor.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from gitprovider._core.json import envelope, plain
from gitprovider.errors import GitProviderError, Outcome
from gitprovider.events import Event, OperationEvent, RequestEvent, RetryEvent
from gitprovider.redact import printable, redact

_LINE = 20_000  # characters; longer than any value except a description
_SHORT_SHA = 10
_STEP = (13, 20, 18, 0)  # column widths of steps; they are fixed because each step is printed before the next is known


class OutputLostError(Exception):
    """Standard output cannot be written: its reader has closed it (`gitprovider … | head -1`), or the disk is full.

    Attributes:
        cause: the system's error.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause.strerror)
        self.cause = cause


class Output:
    """The output of one command. ``secrets`` are the tokens in the environment.

    Attributes:
        as_json: print one JSON document on standard output and nothing else there.
        debug: print a line on standard error for each request and operation.
        so_far: what a failure's document contains besides the error: the steps that a job did before it.
        last: the last operation that ended, for a command that ends during an operation.
    """

    def __init__(
        self, secrets: Iterable[str] = (), *, stdout: TextIO | None = None, stderr: TextIO | None = None
    ) -> None:
        self.as_json = False
        self.debug = False
        self.so_far: Mapping[str, Any] = {}
        self.last: OperationEvent | None = None
        self._secrets = tuple(secrets)
        # If a process is started with these closed, Python sets them to None.
        self._stdout = stdout or sys.stdout or io.StringIO()
        self._stderr = stderr or sys.stderr or io.StringIO()
        self._status: Status | None = None

    @property
    def rich(self) -> bool:
        """Whether to print for people: standard output is a terminal, and JSON is not requested."""
        return not self.as_json and self._stdout.isatty()

    def value(self, value: Any) -> None:
        """Print the fields of a value."""
        fields: dict[str, Any] = plain(value)
        self.document(fields, fields.items())

    def document(self, document: Any, rows: Iterable[Sequence[Any]], *, columns: Sequence[str] = ()) -> None:
        """Print ``document`` as JSON, or ``rows`` as lines or as a table with the headings ``columns``."""
        if self.as_json:
            self._write(json.dumps(self._clean(document), indent=2))
        elif self.rich:
            self._table(rows, columns)
        else:
            self._write(*("\t".join(self._line(cell) for cell in row) for row in rows))

    def text(self, text: str) -> None:
        """Print a text of this program as it is."""
        self._write(text)

    def say(self, text: str, *, indent: str = "") -> None:
        """Print one line on standard output. With JSON, print nothing."""
        if not self.as_json:
            self._write(indent + self._line(text))

    def failure(self, error: GitProviderError, *, kind: str | None = None, resolve: str | None = None) -> None:
        """Print a failure: with JSON its description on standard output, and in any case a line on standard error.

        Without JSON, further lines say how to go on.

        Args:
            kind: what the description calls it, instead of the class of the error.
            resolve: the command that finds out what became of the mutation.
        """
        if self.as_json:
            told = {**envelope(error), **({"type": kind} if kind else {})}
            self.document({**self.so_far, **({"resolve": resolve} if resolve else {}), "error": told}, ())
            self.complain(f"error: {error}")
            return
        self.complain(f"error: {error}")
        if error.outcome is not Outcome.NOT_APPLIED:
            by = f"`{resolve}`" if resolve else "with the output of --json in a file, `gitprovider resolve FILE`"
            self.complain(f"next: {by} finds out what happened")
        hint = error.hint
        if not hint and error.retry_after:
            hint = f"the host asked to wait {error.retry_after:.0f} s"
        if hint:
            self.complain(f"hint: {hint}")

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show a spinner with the text ``what`` on a terminal."""
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
        """Update the text of the spinner on a terminal."""
        if self._status is not None:
            self._status.update(Text(self._line(what)))

    def step(self, status: str, name: str, target: str, detail: str) -> None:
        """Print a finished step at once. With JSON, print nothing."""
        cells = (status, name, target, detail)
        if self.as_json:
            return
        if self._status is None:
            self.document(None, [cells])
        else:
            line = "  ".join(self._line(cell).ljust(width) for cell, width in zip(cells, _STEP, strict=True))
            self._status.console.print(Text(line.rstrip()), soft_wrap=True)

    def note(self, text: str) -> None:
        """Print a note about a wait: in the spinner on a terminal, otherwise on standard error."""
        if self._status is not None:
            self.progress(text)
        elif not self.as_json:
            self.complain(text)

    def on_event(self, event: Event) -> None:
        """The provider's event hook. It prints retries and remembers the last operation that ended.

        With debug, it prints each request (method, path, status, the host's id, duration) and each operation.
        """
        if isinstance(event, OperationEvent):
            self.last = event
        if self.debug and isinstance(event, RequestEvent):
            status = "no response" if event.status is None else event.status
            request = f" request {event.request_id}" if event.request_id else ""
            self.complain(f"debug: {event.method} {event.path} {status}{request} {event.duration:.3f} s")
        elif self.debug and isinstance(event, OperationEvent):
            told = event.error or "done"
            self.complain(f"debug: {event.operation} {event.repo} {told} {event.duration:.3f} s")
        elif isinstance(event, RetryEvent):
            self.note(f"{event.operation}: {event.error}; attempt {event.attempt + 1} in {event.wait:.1f} s")

    def _write(self, *lines: str) -> None:
        try:
            self._stdout.writelines(f"{line}\n" for line in lines)
            self._stdout.flush()
        except OSError as exc:
            raise OutputLostError(exc) from None

    def complain(self, text: str) -> None:
        """Print one line on standard error. If that fails, it is ignored, so the exit code stays the same."""
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
        cells = [[Text(self._line(_short(cell) if columns else cell)) for cell in row] for row in rows]
        table = Table(show_header=bool(columns), box=None, pad_edge=False)
        for column in columns or [""] * max(map(len, cells), default=0):
            table.add_column(column, overflow="fold")  # a name is shown whole, on two lines if it must be
        for row in cells:
            table.add_row(*row)
        self._console().print(table)


def _short(cell: Any) -> Any:
    """Return a cell of a list for people: a full sha as its first characters, anything else as it is."""
    return cell[:_SHORT_SHA] if isinstance(cell, str) and re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", cell) else cell


def _shown(cell: Any) -> str:
    """Return a cell as text: an empty string for None, yes or no for a bool, and the items of a list."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, list | tuple):
        return ", ".join(_shown(item) for item in cell)
    return str(cell)
