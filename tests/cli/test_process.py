"""The command as a process: signals, pipes, terminals, and a machine on which an extra is missing."""

import os
import pty
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitprovider.local import LocalProvider

COMMAND = [sys.executable, "-c", "import sys; from gitprovider.cli import main; sys.exit(main())"]


def test_ctrl_c_ends_a_wait_at_once(tmp_path: Path) -> None:
    """Ctrl+C while a read waits a minute for the host's next try ends the command with 130, and without a traceback."""
    with _always_busy() as port:
        running = subprocess.Popen(
            [*COMMAND, "--provider", "github", "--url", f"http://127.0.0.1:{port}", "get-repo", "acme/widgets"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "GITPROVIDER_TOKEN": "t" * 20},
        )
        assert running.stderr is not None
        told = running.stderr.readline()  # the retry is announced before the wait begins
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)  # the wait itself would take 50 s

    assert "attempt 2 in 5" in told
    assert running.returncode == 130
    assert (out, err) == ("", "error: github get_repo acme/widgets: interrupted\n")


class _always_busy:  # noqa: N801 - read as a verb
    """A host that answers every request with 429 and a wait of 50 s."""

    def __enter__(self) -> int:
        self._socket = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()
        port: int = self._socket.getsockname()[1]
        return port

    def __exit__(self, *exc_info: object) -> None:
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(
                    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 50\r\nContent-Type: application/json\r\n"
                    b"Connection: close\r\nContent-Length: 15\r\n\r\n" + b'{"message":"x"}'
                )


def test_a_reader_that_has_seen_enough_ends_the_command_quietly(tmp_path: Path) -> None:
    """`gitprovider list-branches … | head -1` prints no traceback and no complaint."""
    with LocalProvider(tmp_path) as provider:
        provider.create_repo("acme/widgets", auto_init=True)
        head = provider.head("acme/widgets", "main")
        for number in range(40):
            provider.create_branch("acme/widgets", f"b{number:03}-{'x' * 200}", source=head)
    reading, writing = os.pipe()
    os.close(reading)

    ran = subprocess.run(
        [*COMMAND, "--root", str(tmp_path), "list-branches", "acme/widgets"],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)

    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_a_line(tmp_path: Path) -> None:
    """Output that cannot be written ends the command with a line and 1, not with a traceback."""
    with LocalProvider(tmp_path) as provider:
        provider.create_repo("acme/widgets")

    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [*COMMAND, "--root", str(tmp_path), "get-repo", "acme/widgets"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert ran.returncode == 1
    assert ran.stderr == "error: the output could not be written: No space left on device\n"


def test_a_closed_standard_output_is_no_failure(tmp_path: Path) -> None:
    """A command that was started without standard output does its work."""
    ran = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "--root", str(tmp_path), "create-repo", "acme/widgets"],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("package", ["click", "rich"])
def test_a_missing_extra_is_one_line_that_names_it(tmp_path: Path, package: str) -> None:
    """Where click or rich is not installed, the command says what to install instead of failing to import."""
    (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError('No module', name={package!r})")

    ran = _run("get-repo", "a/b", env={"PYTHONPATH": str(tmp_path)})

    assert ran.returncode == 2
    assert ran.stderr.splitlines() == [
        f"gitprovider: the command line needs {package}, which is not installed",
        "hint: pip install 'gitprovider[cli]'",
    ]


def test_a_broken_installation_is_a_line_too(tmp_path: Path) -> None:
    """A module that should be there and is not ends in a line, not in a traceback."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['gitprovider.cli.jobs'] = None")

    ran = _run("get-repo", "a/b", env={"PYTHONPATH": str(tmp_path)})

    assert ran.returncode == 1
    assert ran.stderr.startswith("gitprovider: this installation is incomplete: ")
    assert ran.stderr.count("\n") == 1


def test_a_missing_pygit2_is_an_envelope(tmp_path: Path) -> None:
    """The local forge without its extra is an error like any other, not an ImportError."""
    (tmp_path / "pygit2.py").write_text("raise ModuleNotFoundError('No module', name='pygit2')")

    ran = _run("--root", str(tmp_path / "f"), "get-repo", "a/b", env={"PYTHONPATH": str(tmp_path)})

    assert ran.returncode == 2
    assert "gitprovider[local]" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_locale_without_umlauts_is_no_failure(tmp_path: Path) -> None:
    """A character that the terminal's encoding lacks is escaped: a success stays one."""
    with LocalProvider(tmp_path) as provider:
        provider.create_repo("acme/widgets", description="Größe")

    ran = _run(
        "--root", str(tmp_path), "get-repo", "acme/widgets", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    )

    assert ran.returncode == 0
    assert "Gr\\xf6\\xdfe" in ran.stdout


def test_a_terminal_gets_tables_and_a_pipe_gets_lines(tmp_path: Path) -> None:
    """On a terminal a list is a table with a heading; the same command in a pipe is lines parted by tabs."""
    with LocalProvider(tmp_path) as provider:
        provider.create_repo("acme/widgets", auto_init=True)

    shown = _on_a_terminal("--root", str(tmp_path), "list-branches", "acme/widgets")

    assert "branch" in shown
    assert "protection" in shown
    assert "\tmain" not in shown


def test_a_terminal_sees_each_step_of_a_bootstrap(tmp_path: Path) -> None:
    """A long job shows every finished step as a line while it goes on."""
    shown = _on_a_terminal("demo", str(tmp_path / "demo"))

    for step in ("create_repo", "commit_files", "merge_pull_request", "protect_branch"):
        assert f"done           {step}" in shown


def test_json_on_a_terminal_is_json(tmp_path: Path) -> None:
    """--json prints the document alone on a terminal too: no table, no progress, no escape sequences."""
    shown = _on_a_terminal("--json", "--root", str(tmp_path), "get-repo", "acme/none")

    assert shown.startswith("{")
    assert "\x1b" not in shown


def test_the_installed_command_is_the_function() -> None:
    """The script that the package installs runs the same main."""
    ran = subprocess.run(
        [Path(sys.executable).with_name("gitprovider"), "--version"], capture_output=True, text=True, check=True
    )

    assert ran.stdout.strip()


def _run(*args: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args], capture_output=True, text=True, check=False, env={**os.environ, **env}, encoding="utf-8"
    )


def _on_a_terminal(*args: str) -> str:
    """What the command prints on a terminal of 100 columns."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [*COMMAND, *args], stdout=theirs, stderr=theirs, env={**os.environ, "COLUMNS": "100", "TERM": "xterm"}
        )
        os.close(theirs)
        shown = b"".join(_read_all(ours))
        process.wait(timeout=30)
        return shown.decode()
    finally:
        os.close(ours)


def _read_all(file: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(file, 65536)
        except OSError:  # how Linux says that the other side of a terminal was closed
            return
        if not data:
            return
        yield data
