"""Every error that a provider raises.

::

    GitProviderError
    ├── AuthenticationError          the credential is missing, wrong, expired or revoked (401)
    ├── PermissionDeniedError        the credential is good, and may not do this (403: role, scope, plan, policy)
    ├── NotFoundError                no such thing, or not visible to this credential (404)
    ├── AlreadyExistsError           the name is taken; ``existing`` is what has it
    ├── InvalidRequestError          an argument is wrong; most are found before any request
    ├── UnsupportedOptionError       this host cannot honour ``option``; always before any request
    ├── ConflictError                the host's state does not admit the change
    │   ├── HeadMovedError           the branch is at another commit than expected
    │   └── NotMergeableError        the pull request cannot be merged; ``reason`` says why
    ├── RateLimitedError             429, or GitHub's 403 that means the same; ``retry_after``
    ├── RepoMovedError               the repository has another path now; ``moved_to``
    ├── ProviderUnavailableError     5xx, timeout, connection refused or lost, certificate refused
    ├── UnexpectedResponseError      an answer that is not what the host documents
    └── RetryCancelledError          a wait between two tries was cancelled
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from gitprovider.intent import Intent


class Outcome(StrEnum):
    """What a failed call is known to have done to the host.

    ``NOT_APPLIED``: nothing that a user of the host can see has changed.
    ``UNKNOWN``: the effect step was sent and its answer was lost or unreadable; look before you repeat.
    ``PARTIAL``: the effect step was acknowledged and a later step failed; ``completed`` says what was done.
    """

    NOT_APPLIED = "not_applied"
    UNKNOWN = "unknown"
    PARTIAL = "partial"


class NotMergeableReason(StrEnum):
    """Why a pull request was not merged."""

    CONFLICT = "conflict"
    CHECKS = "checks"
    REVIEWS = "reviews"
    DRAFT = "draft"
    BEHIND = "behind"
    CLOSED = "closed"
    METHOD = "method"
    POLICY = "policy"
    PENDING = "pending"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Step:
    """One acknowledged step of a mutation: its name, and the value it produced."""

    name: str
    value: Any


class GitProviderError(Exception):
    """The root of all errors. Attributes are plain data; an error pickles and copies.

    Attributes:
        message: one readable line, redacted.
        provider: ``github``, ``gitlab`` or ``local``; None outside a provider.
        operation: the contract's name of the operation, or None.
        repo: the full path that was asked for, or None.
        status: the HTTP status that decided, or None.
        request_id: the host's id of the request (``X-GitHub-Request-Id``, ``X-Request-Id``), or None.
        attempts: how many times the failing read was tried; 1 for everything else.
        retry_after: seconds that the host asked to wait, or None.
        outcome: what the call is known to have done.
        completed: the steps that were acknowledged before the failure.
        failed_step: the name of the step that failed, or None.
        transient: whether the cause may pass by itself.
        hint: what to do about it, or None.
        intent: for a mutation, the record that :func:`gitprovider.resolve` needs; otherwise None.
        code: a word for the host's refusal where the library decides on it, such as ``branch-not-found``; or None.
    """

    transient_by_nature: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        operation: str | None = None,
        repo: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        attempts: int = 1,
        retry_after: float | None = None,
        outcome: Outcome = Outcome.NOT_APPLIED,
        completed: tuple[Step, ...] = (),
        failed_step: str | None = None,
        transient: bool | None = None,
        hint: str | None = None,
        intent: Intent | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.provider = provider
        self.operation = operation
        self.repo = repo
        self.status = status
        self.request_id = request_id
        self.attempts = attempts
        self.retry_after = retry_after
        self.outcome = outcome
        self.completed = completed
        self.failed_step = failed_step
        self.transient = self.transient_by_nature if transient is None else transient
        self.hint = hint
        self.intent = intent
        self.code = code

    @property
    def retryable(self) -> bool:
        """Whether repeating the same call is safe and may help: a passing cause, and nothing was applied."""
        return self.transient and self.outcome is Outcome.NOT_APPLIED

    def __str__(self) -> str:
        where = " ".join(part for part in (self.provider, self.operation, self.repo) if part)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text} (tried {self.attempts} times)" if self.attempts > 1 else text

    def __repr__(self) -> str:
        parts = [repr(self.message)]
        for name in ("provider", "operation", "repo", "status"):
            value = getattr(self, name)
            if value is not None:
                parts.append(f"{name}={value!r}")
        parts.append(f"outcome={self.outcome.value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with the message alone, which loses every keyword and, for errors with
        # required keywords, fails.
        return (_rebuild, (type(self), self.args, dict(self.__dict__)))


def _rebuild(kind: type[GitProviderError], args: tuple[Any, ...], state: dict[str, Any]) -> GitProviderError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class AuthenticationError(GitProviderError):
    """The host does not accept the credential: missing, mistyped, expired or revoked. Nothing was done."""


class PermissionDeniedError(GitProviderError):
    """The credential is known and may not do this: role, token scope, single sign-on, plan, policy or protection."""


class NotFoundError(GitProviderError):
    """There is no such repository, branch or pull request, or this credential may not see it."""


class AlreadyExistsError(GitProviderError):
    """The name is taken.

    Attributes:
        existing: the Repo, Branch or PullRequest that has it, or None when it cannot be seen.
    """

    def __init__(self, message: str, *, existing: Any = None, **known: Any) -> None:
        super().__init__(message, **known)
        self.existing = existing


class InvalidRequestError(GitProviderError, ValueError):
    """An argument is wrong. It is a ValueError too.

    Attributes:
        argument: the name of the argument that is wrong, or None when the host refused the request as a whole.
    """

    def __init__(self, message: str, *, argument: str | None = None, **known: Any) -> None:
        super().__init__(message, **known)
        self.argument = argument


class UnsupportedOptionError(GitProviderError):
    """This host cannot honour an option. Raised before any request; nothing is dropped or approximated.

    Attributes:
        option: its name in the table of options, such as ``protect_branch.required_checks``.
    """

    def __init__(self, message: str, *, option: str, **known: Any) -> None:
        super().__init__(message, **known)
        self.option = option


class ConflictError(GitProviderError):
    """The host's state does not admit the change; another state would."""


class HeadMovedError(ConflictError):
    """The branch is at another commit than the caller, or the commit being made, expected.

    Attributes:
        expected: the sha that was expected, or None when the host did not say.
        actual: the sha that is there, or None when it was not seen.
    """

    def __init__(self, message: str, *, expected: str | None = None, actual: str | None = None, **known: Any) -> None:
        super().__init__(message, **known)
        self.expected = expected
        self.actual = actual


class NotMergeableError(ConflictError):
    """The pull request was not merged.

    Attributes:
        reason: why not. PENDING with outcome UNKNOWN means: accepted, and not merged in time.
    """

    def __init__(self, message: str, *, reason: NotMergeableReason, **known: Any) -> None:
        super().__init__(message, **known)
        self.reason = reason


class RateLimitedError(GitProviderError):
    """The host refuses requests for a while. ``retry_after`` is the wait it asked for, when it did."""

    transient_by_nature = True


class RepoMovedError(GitProviderError):
    """The repository was renamed or transferred. Nothing was sent to its new place.

    Attributes:
        moved_to: the full path it has now, or None when the host did not say.
    """

    def __init__(self, message: str, *, moved_to: str | None = None, **known: Any) -> None:
        super().__init__(message, **known)
        self.moved_to = moved_to


class ProviderUnavailableError(GitProviderError):
    """The host did not answer, or answered that it cannot: 5xx, timeout, connection refused, reset or cut."""

    transient_by_nature = True


class UnexpectedResponseError(GitProviderError):
    """The host, or something between, answered with what it does not document: HTML, cut JSON, missing fields."""


class RetryCancelledError(GitProviderError):
    """A wait between two tries ended because the event given to :func:`gitprovider.cancel_on` was set."""
