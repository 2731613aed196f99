"""Progress on a terminal, without a terminal."""

import errno
import io

import pytest

from gitprovider.cli.output import Output
from gitprovider.events import RetryEvent


class Terminal(io.StringIO):
    """Somewhere to write that says it is a terminal."""

    def isatty(self) -> bool:
        return True


RETRY = RetryEvent(
    operation="get_repo", provider="github", host="h", repo="a/b", attempt=1, wait=0.25, error="RateLimitedError"
)


def test_a_retry_is_shown_in_the_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever watches a spinner is told why it goes on spinning, and standard error stays free for failures."""
    monkeypatch.setenv("TERM", "xterm")
    shown, err = Terminal(), io.StringIO()
    out = Output(stdout=shown, stderr=err)

    with out.working("reading acme/widgets"):
        out.on_event(RETRY)

    assert "get_repo: RateLimitedError; attempt 2 in 0.2 s" in shown.getvalue()
    assert err.getvalue() == ""


def test_a_terminal_that_can_only_print_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be drawn over, a retry is a line on standard error, and no escape sequence is printed."""
    monkeypatch.setenv("TERM", "dumb")
    shown, err = Terminal(), io.StringIO()
    out = Output(stdout=shown, stderr=err)

    with out.working("reading acme/widgets"):
        out.on_event(RETRY)

    assert (shown.getvalue(), err.getvalue()) == ("", "get_repo: RateLimitedError; attempt 2 in 0.2 s\n")


def test_a_standard_error_that_takes_no_more_is_no_failure() -> None:
    """A full disk behind it must not turn the exit code of what failed into another."""

    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    Output(stdout=io.StringIO(), stderr=Full()).complain("error: there is no acme/none")


def test_progress_outside_of_work_is_nothing() -> None:
    """What there is to say about progress has no place to go when nothing is shown."""
    shown = Terminal()

    Output(stdout=shown).progress("x")

    assert shown.getvalue() == ""


def test_a_table_at_80_columns_shows_names_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch's name is cut where it has to be copied, or a sha that nobody copies takes the place."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    shown, sha, names = Terminal(), "0123456789" * 4, [f"feature/{'x' * 44}", f"release/{'y' * 100}"]

    Output(stdout=shown).document(None, [(name, sha, "yes") for name in names], columns=("branch", "head", "protected"))

    lines = shown.getvalue().splitlines()[1:]
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == [names[0], sha[:10], "yes"]
    assert "".join(line.split()[0] for line in lines[1:]) == names[1]
