"""Error mapping of the local provider."""

from __future__ import annotations

from gitprovider.errors import GitProviderError, Outcome, ProviderUnavailableError, UnexpectedResponseError
from gitprovider.redact import printable


def damaged(path: str, problem: object) -> ProviderUnavailableError:
    """The error for a repository whose files are damaged."""
    return ProviderUnavailableError(
        f"the repository {path} is damaged: {problem}",
        repo=path,
        transient=False,
        hint="restore it from a clone or a backup; git fsck lists what is missing",
    )


def translate(exc: Exception) -> GitProviderError:
    """Map an exception that is not one of the library's errors.

    The forge raises the library's errors for every failure that it expects. The rest are failures of the operating
    system and bugs. Both leave the outcome of the effect step unknown.
    """
    problem = printable(f"{type(exc).__name__}: {exc}")
    if isinstance(exc, OSError):
        return ProviderUnavailableError(
            f"the forge cannot be used: {problem}", transient=False, outcome=Outcome.UNKNOWN
        )
    return UnexpectedResponseError(f"the forge failed: {problem}", outcome=Outcome.UNKNOWN)
