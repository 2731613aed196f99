"""Exit codes, and the error of a command that ended early."""

from __future__ import annotations

from typing import Any

from gitprovider._core.extras import MissingExtraError
from gitprovider.errors import (
    AlreadyExistsError,
    AuthenticationError,
    ConflictError,
    GitProviderError,
    InvalidRequestError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    RateLimitedError,
    RepoMovedError,
    RetryCancelledError,
    UnexpectedResponseError,
    UnsupportedOptionError,
)
from gitprovider.events import OperationEvent

OK = 0
BUG = 1
USAGE = 2
NOT_FOUND = 3
DENIED = 4
CONFLICT = 5
RATE_LIMITED = 6
UNAVAILABLE = 7
UNCERTAIN = 8
NOT_APPLIED = 9  # what `resolve` found
INTERRUPTED = 130
TERMINATED = 143  # a shell's exit code for a program that SIGTERM ended
BROKEN_PIPE = 141  # a shell's exit code for a program that SIGPIPE ended

_CODES: tuple[tuple[type[GitProviderError], int], ...] = (
    (InvalidRequestError, USAGE),
    (UnsupportedOptionError, USAGE),
    (MissingExtraError, USAGE),
    (NotFoundError, NOT_FOUND),
    (RepoMovedError, NOT_FOUND),
    (AuthenticationError, DENIED),
    (PermissionDeniedError, DENIED),
    (AlreadyExistsError, CONFLICT),
    (ConflictError, CONFLICT),
    (RateLimitedError, RATE_LIMITED),
    (ProviderUnavailableError, UNAVAILABLE),
    (UnexpectedResponseError, UNAVAILABLE),
    (RetryCancelledError, INTERRUPTED),
)


def code_of(error: GitProviderError) -> int:
    """Return the exit code of a failure. An unknown or partial outcome takes precedence over the kind of error."""
    if error.outcome is not Outcome.NOT_APPLIED:
        return UNCERTAIN
    return next((code for kind, code in _CODES if isinstance(error, kind)), UNAVAILABLE)


def ended(message: str, running: OperationEvent | None, hint: str | None = None) -> GitProviderError:
    """Return the error of a command that Ctrl+C or a bug ended. ``running`` is the operation that it ended."""
    error_kwargs: dict[str, Any] = {}
    if running is not None:
        error_kwargs = {
            "provider": running.provider,
            "operation": running.operation,
            "repo": running.repo,
            "outcome": running.outcome or Outcome.NOT_APPLIED,
            "intent": running.intent,
        }
    return GitProviderError(message, hint=hint, **error_kwargs)
