"""Progress on a terminal, without a terminal."""

import io

from gitprovider.cli.output import Output
from gitprovider.observe import RetryEvent


class Terminal(io.StringIO):
    """Somewhere to write that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_retry_is_shown_in_the_progress() -> None:
    """Whoever watches a spinner is told why it goes on spinning, and standard error stays free for failures."""
    shown, err = Terminal(), io.StringIO()
    out = Output(stdout=shown, stderr=err)

    with out.working("reading acme/widgets"):
        out.on_event(
            RetryEvent(
                operation="get_repo", provider="github", host="h", repo="a/b", attempt=1, wait=0.25, error="RateLimitedError"
            )
        )  # fmt: skip

    assert "reading acme/widgets" in shown.getvalue()
    assert "get_repo: RateLimitedError; attempt 2 in 0.2 s" in shown.getvalue()
    assert err.getvalue() == ""


def test_progress_outside_of_work_is_nothing() -> None:
    """What there is to say about progress has no place to go when nothing is shown."""
    shown = Terminal()

    Output(stdout=shown).progress("x")

    assert shown.getvalue() == ""
