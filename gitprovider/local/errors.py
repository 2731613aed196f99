"""What a step of the local provider raised, as the library's error."""

from __future__ import annotations

from gitprovider._core.operation import Operation
from gitprovider.errors import GitProviderError, Outcome, ProviderUnavailableError, UnexpectedResponseError
from gitprovider.redact import printable


def translate(exc: Exception, op: Operation) -> GitProviderError:
    """The meaning of an exception that is none of the library's own.

    The forge raises the library's errors for all that it foresees. What is left is the operating system, and what
    nobody foresaw: then nothing is known of the effect.
    """
    problem = printable(f"{type(exc).__name__}: {exc}")
    if isinstance(exc, OSError):
        return ProviderUnavailableError(
            f"the forge cannot be used: {problem}", transient=False, outcome=Outcome.UNKNOWN, repo=op.repo or None
        )
    return UnexpectedResponseError(f"the forge failed: {problem}", outcome=Outcome.UNKNOWN, repo=op.repo or None)
