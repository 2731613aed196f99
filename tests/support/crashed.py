"""Processes that are killed around the effect of a mutation, and restarted with the same key.

``python -m tests.support.crashed [EVERY]`` kills at every line (or every EVERYth one) from the moment that the intent
is complete to the end of the call, and while the host handles the request. It prints the table of what came of it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import gitprovider
from gitprovider import ConflictError, Ensured, GitProviderError, SqliteIntentStore, connect
from gitprovider.ensure import Settling
from gitprovider.fakes.faults import FaultScript, FaultyHost, RequestLog
from gitprovider.fakes.http import Request, Response, TransportFault
from gitprovider.fakes.serve import serving
from gitprovider.local import Forge
from tests.support.hosts import EFFECTS, KINDS, Kind, fake_of, given_project
from tests.support.keyed import ENSURE, ensure

PACKAGE = str(Path(gitprovider.__file__).parent)
# The forge's own code and the fakes are the host, not the caller.
_HOSTS_CODE = tuple(f"{PACKAGE}/{part}" for part in ("fakes/", "local/"))
_CALLER = (f"{PACKAGE}/local/provider.py",)
# Long after any request of the killed process has settled.
LATER = Settling(now=lambda: datetime.now(UTC) + timedelta(hours=1))
# Where a process is killed: at a line of the call, or while its request is at the host. "lost": the host never acts on
# it. "before": the host acts after the kill. "after": the host acts, and the kill loses the response.
Point = int | str
IN_FLIGHT = ("lost", "before", "after")


class Lines:
    """Counts the lines of the package that run from ``Operation.sending`` on, and kills the process at one of them."""

    def __init__(self, fatal: int) -> None:
        self.count = 0
        self._fatal = fatal
        self._armed = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Lines | None:
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE) or (file.startswith(_HOSTS_CODE) and file not in _CALLER):
            return None
        self._armed = self._armed or frame.f_code.co_name == "sending"
        if self._armed and event == "line":
            self.count += 1
            if self.count == self._fatal:
                os.kill(os.getpid(), signal.SIGKILL)
        return self


class Killing:
    """A host that kills its caller while it handles the effect's request."""

    def __init__(self, inner: FaultyHost, effect: tuple[str, str], point: Point) -> None:
        self._inner = inner
        self._effect = effect
        self._point = point
        self.caller = 0
        self.started = threading.Event()
        self.acted = threading.Event()

    def handle(self, request: Request) -> Response:
        method, endpoint = self._effect
        matches = request.method == method and re.search(endpoint, self._inner.fake.endpoint(request))
        if not matches or self._point not in IN_FLIGHT:
            return self._inner.handle(request)
        point, self._point = self._point, 0
        self.started.wait()
        try:
            if point == "after":
                self._inner.handle(request)
            os.kill(self.caller, signal.SIGKILL)
            if point == "before":
                self._inner.handle(request)
        finally:
            self.acted.set()
        raise TransportFault("reset")


class World:
    """A host with a project, what reaches it, and how a process connects to it."""

    def __init__(self, connecting: Callable[[SqliteIntentStore], Any], killing: Killing | None, effects: Any) -> None:
        self.connecting = connecting
        self.killing = killing
        self.effects: Callable[[], int] = effects


@contextmanager
def world(kind: Kind, name: str, root: Path, point: Point = 0) -> Iterator[World]:
    """The host of that kind. It counts how often it carried the mutation out."""
    given_project(Forge(root), "acme/widgets")
    if kind == "local":
        yield _local(root, name, point)
        return
    shutil.rmtree(root)
    forge, fake, token, _ = fake_of(kind, root)
    given_project(forge, "acme/widgets")
    log = RequestLog()
    killing = Killing(FaultyHost(fake, log, FaultScript()), EFFECTS[kind][name], point)
    method, endpoint = EFFECTS[kind][name]

    def effects() -> int:
        return sum(
            entry.effect and entry.method == method and re.search(endpoint, entry.endpoint) is not None
            for entry in log.entries
        )

    with serving(killing) as url:
        yield World(lambda store: connect(kind, url=url, token=token, intents=store), killing, effects)


def _local(root: Path, name: str, point: Point) -> World:
    """The local forge. Its caller carries an effect out itself, and notes it in a file."""
    done = root.with_name(f"{root.name}.effects")
    write = EFFECTS["local"][name][1]
    parent = os.getpid()

    def connecting(store: SqliteIntentStore) -> Any:
        provider: Any = connect("local", root=root, intents=store)
        inner = getattr(provider.forge, write)

        def interposed(*args: Any, **kwargs: Any) -> Any:
            here = os.getpid() != parent
            if here and point in ("lost", "before"):
                os.kill(os.getpid(), signal.SIGKILL)
            made = inner(*args, **kwargs)
            with done.open("a") as file:
                file.write("done\n")
            if here and point == "after":
                os.kill(os.getpid(), signal.SIGKILL)
            return made

        setattr(provider.forge, write, interposed)
        return provider

    return World(connecting, None, lambda: len(done.read_text().splitlines()) if done.exists() else 0)


@dataclass(frozen=True)
class Crash:
    """What came of one kill: whether the process was killed, what it left, and what the restart did."""

    killed: bool
    stored: bool
    effects_before: int
    restarted: Ensured[Any]
    effects: int
    unresolved: int
    lines: int


def crash(kind: Kind, name: str, point: Point, folder: Path) -> Crash:
    """Run the mutation under a key in a process that is killed at ``point``, and again after a restart."""
    store = SqliteIntentStore(folder / "store" / "intents.sqlite3")
    with world(kind, name, folder / "forge", point) as host:
        reading, writing = os.pipe()
        child = _fork()
        if child == 0:
            _run_and_exit(host, name, store, point, writing)
        if host.killing is not None:
            host.killing.caller = child
            host.killing.started.set()
        _, status = os.waitpid(child, 0)
        if host.killing is not None and point in IN_FLIGHT:
            host.killing.acted.wait(60)
        os.close(writing)
        with os.fdopen(reading) as told:
            said = told.read()
        killed = os.WIFSIGNALED(status)
        assert killed or os.waitstatus_to_exitcode(status) == 0, said
        stored = bool(store.unresolved())
        before = host.effects()
        with host.connecting(store) as provider:
            restarted = ensure(provider, name, key="k", settling=LATER)
        return Crash(
            killed,
            stored,
            before,
            restarted,
            host.effects(),
            len(store.unresolved()),
            int(said) if said.isdecimal() else 0,
        )


def _fork() -> int:
    """Fork, although the fake host has threads: the child uses nothing of theirs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _run_and_exit(host: World, name: str, store: SqliteIntentStore, point: Point, writing: int) -> None:
    lines = Lines(point if isinstance(point, int) else 0)
    try:
        with host.connecting(store) as provider:
            sys.settrace(lines)
            ensure(provider, name, key="k")
            sys.settrace(None)
        os.write(writing, str(lines.count).encode())
        os._exit(0)
    except BaseException as error:
        sys.settrace(None)
        os.write(writing, repr(error).encode())
        os._exit(1)


def race(kind: Kind, name: str, folder: Path) -> tuple[list[str], int]:
    """Run the mutation in two processes at once under one key: how each ended, and how many effects the host had."""
    path = folder / "store" / "intents.sqlite3"
    with world(kind, name, folder / "forge") as host:
        ends = []
        children = []
        gate_reading, gate_writing = os.pipe()
        for _ in range(2):
            reading, writing = os.pipe()
            child = _fork()
            if child == 0:
                os.close(gate_writing)
                with host.connecting(SqliteIntentStore(path)) as provider:
                    os.read(gate_reading, 1)  # both begin when the gate is closed
                    try:
                        said = f"changed {ensure(provider, name, key='k').changed}"
                    except GitProviderError as error:
                        kind_of = ConflictError if isinstance(error, ConflictError) else type(error)
                        said = f"{kind_of.__name__} {error.outcome}"
                os.write(writing, said.encode())
                os._exit(0)
            os.close(writing)
            children.append((child, reading))
        os.close(gate_writing)
        os.close(gate_reading)
        for child, reading in children:
            os.waitpid(child, 0)
            with os.fdopen(reading) as told:
                ends.append(told.read())
        return sorted(ends), host.effects()


def main(every: int) -> None:
    print("| host | mutation | kills at lines | kills in flight | left an intent | effects after the restart |")
    print("|---|---|---|---|---|---|")
    for kind in KINDS:
        for name in ENSURE:
            with tempfile.TemporaryDirectory() as folder:
                last = crash(kind, name, 0, Path(folder)).lines
            points = [*range(1, last + 1, every), *IN_FLIGHT]
            came = []
            for point in points:
                with tempfile.TemporaryDirectory() as folder:
                    came.append(crash(kind, name, point, Path(folder)))
            effects = Counter(one.effects for one in came)
            wrong = [point for point, one in zip(points, came, strict=True) if one.effects != 1 or one.unresolved]
            kept = sum(one.stored for one in came)
            shown = ", ".join(f"{count} × {times}" for times, count in sorted(effects.items()))
            row = (kind, name, len(points) - 3, 3, kept, shown + (f" WRONG AT {wrong}" if wrong else ""))
            print("|", " | ".join(map(str, row)), "|", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
