"""Every error that a provider raises.

::

    GitProviderError
    ├── AuthenticationError          the credential is missing, wrong, expired or revoked (401)
    ├── PermissionDeniedError        the credential is valid but may not do this (403: role, scope, plan, policy)
    ├── NotFoundError                does not exist, or is not visible to this credential (404)
    ├── AlreadyExistsError           the name is taken; ``existing`` is the object that has it
    ├── InvalidRequestError          an argument is wrong; usually found before any request
    ├── UnsupportedOptionError       this host cannot honour ``option``; always found before any request
    ├── ConflictError                the host's state does not allow the change
    │   ├── HeadMovedError           the branch is not at the expected commit
    │   └── NotMergeableError        the pull request cannot be merged; ``reason`` says why
    ├── RateLimitedError             429, or GitHub's 403 that means the same; ``retry_after``
    ├── RepoMovedError               the repository has another path now; ``moved_to``
    ├── ProviderUnavailableError     5xx, timeout, connection refused or lost, certificate refused
    ├── UnexpectedResponseError      the response is not what the host documents
    └── RetryCancelledError          a wait between two attempts was cancelled
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from gitprovider.intent import Intent
from gitprovider.redact import readable


class Outcome(StrEnum):
    """What a failed call did to the host, as far as is known.

    ``NOT_APPLIED``: nothing that a user of the host can see has changed.
    ``UNKNOWN``: the effect step was sent, and its response was lost or unreadable. Read the host's state before
    repeating the call.
    ``PARTIAL``: the effect step was acknowledged, and a later step failed. ``completed`` lists what was done.
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
    """An acknowledged step of a mutation: its name and the value it produced."""

    name: str
    value: Any


class GitProviderError(Exception):
    """Base class of all errors. Its attributes are plain data. Errors can be pickled and copied.

    Attributes:
        message: one readable line, redacted.
        provider: ``github``, ``gitlab`` or ``local``; None outside a provider.
        operation: the name of the operation in the contract, or None.
        repo: the full path that was requested, or None.
        status: the HTTP status of the failed request, or None.
        request_id: the host's id of the request (``X-GitHub-Request-Id``, ``X-Request-Id``), or None.
        attempts: how many times a failed read was attempted; 1 for everything else.
        retry_after: seconds that the host asked to wait, or None.
        outcome: what the call did to the host, as far as is known.
        completed: the steps that were acknowledged before the failure.
        failed_step: the name of the step that failed, or None.
        transient: whether the cause may go away by itself.
        hint: how to fix it, or None.
        intent: for a mutation, the record that :func:`gitprovider.resolve` needs; otherwise None.
        code: a stable name of the refusal, such as ``branch-not-found``, where the library acts on it; or None.
    """

    transient_by_nature: ClassVar[bool] = False

    # What repr and str show of an error whose constructor has not run to its end, as a debugger may see it.
    message: str = ""
    provider: str | None = None
    operation: str | None = None
    repo: str | None = None
    status: int | None = None
    request_id: str | None = None
    attempts: int = 1
    outcome: Outcome = Outcome.NOT_APPLIED
    completed: tuple[Step, ...] = ()
    intent: Intent | None = None

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
        message = readable(message)
        super().__init__(message)
        self.message = message
        self.provider = provider
        self.operation = operation
        self.repo = repo
        self.status = status
        self.request_id = None if request_id is None else readable(request_id)
        self.attempts = attempts
        self.retry_after = retry_after
        self.outcome = outcome
        self.completed = completed
        self.failed_step = failed_step
        self.transient = self.transient_by_nature if transient is None else transient
        self.hint = None if hint is None else readable(hint)
        self.intent = intent
        self.code = code

    @property
    def retryable(self) -> bool:
        """Whether the same call may be repeated, because the cause is transient and nothing was applied."""
        return self.transient and self.outcome is Outcome.NOT_APPLIED

    @property
    def number(self) -> int | None:
        """The number of the pull request that the call was about, that it opened, or that exists already; or None."""
        if self.intent is not None and self.intent.number is not None:
            return self.intent.number
        values = [getattr(self, "existing", None), *(step.value for step in self.completed)]
        numbers = [getattr(value, "number", None) for value in values]
        return next((number for number in numbers if isinstance(number, int)), None)

    @classmethod
    def attributes(cls) -> tuple[str, ...]:
        """The names of the attributes that the constructors of the class and its bases take, the bases' first."""
        names: dict[str, None] = {}
        for kind in reversed(cls.__mro__):
            code = getattr(vars(kind).get("__init__"), "__code__", None)
            if issubclass(kind, GitProviderError) and code is not None:
                names.update(dict.fromkeys(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]))
        return tuple(names)

    def __str__(self) -> str:
        """One line: where it failed, the message, and what a person needs to ask the host or to go on.

        An outcome that is not NOT_APPLIED comes last, with the advice not to repeat the call.
        """
        number = f"pull request {self.number}" if self.number is not None else None
        where = " ".join(part for part in (self.provider, self.operation, self.repo, number) if part)
        facts = [
            f"HTTP {self.status}" if self.status is not None else "",
            f"request {self.request_id}" if self.request_id else "",
            f"tried {self.attempts} times" if self.attempts > 1 else "",
        ]
        told = [", ".join(fact for fact in facts if fact)]
        if self.outcome is not Outcome.NOT_APPLIED:
            done = ", ".join(step.name for step in self.completed)
            told.append(f"outcome {self.outcome.value}{f' after {done}' if done else ''}: do not repeat")
        text = f"{where}: {self.message}" if where else self.message
        facts_and_outcome = "; ".join(part for part in told if part)
        return f"{text} ({facts_and_outcome})" if facts_and_outcome else text

    def __repr__(self) -> str:
        parts = [repr(self.message)]
        for name in ("provider", "operation", "repo", "status"):
            value = getattr(self, name)
            if value is not None:
                parts.append(f"{name}={value!r}")
        parts.append(f"outcome={self.outcome.value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with the message alone. That loses every keyword, and it fails for errors
        # with required keywords.
        return (_rebuild, (type(self), self.args, dict(self.__dict__)))


def _rebuild(kind: type[GitProviderError], args: tuple[Any, ...], state: dict[str, Any]) -> GitProviderError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class AuthenticationError(GitProviderError):
    """The host does not accept the credential: it is missing, wrong, expired or revoked. Nothing was done."""


class PermissionDeniedError(GitProviderError):
    """The credential is valid but may not do this: role, token scope, single sign-on, plan, policy or protection."""


class NotFoundError(GitProviderError):
    """The repository, branch or pull request does not exist, or this credential may not see it."""


class AlreadyExistsError(GitProviderError):
    """The name is taken.

    Attributes:
        existing: the Repo, Branch or PullRequest that has the name, or None if it cannot be read.
    """

    def __init__(self, message: str, *, existing: Any = None, **attributes: Any) -> None:
        super().__init__(message, **attributes)
        self.existing = existing


class InvalidRequestError(GitProviderError, ValueError):
    """An argument is wrong. This is also a ValueError.

    Attributes:
        argument: the name of the wrong argument, or None if the host refused the request as a whole.
    """

    def __init__(self, message: str, *, argument: str | None = None, **attributes: Any) -> None:
        super().__init__(message, **attributes)
        self.argument = argument


class UnsupportedOptionError(GitProviderError):
    """This host cannot honour an option. It is raised before any request. No option is dropped or approximated.

    Attributes:
        option: its name in the documentation's table of options, such as ``protect_branch.required_checks``; or the
            name of an argument of the constructor.
    """

    def __init__(self, message: str, *, option: str, **attributes: Any) -> None:
        super().__init__(message, **attributes)
        self.option = option


class ConflictError(GitProviderError):
    """The host's state does not allow the change."""


class HeadMovedError(ConflictError):
    """The branch is not at the commit that the caller, or the new commit, expected.

    Attributes:
        expected: the expected sha, or None if the host did not say.
        actual: the branch's current sha, or None if it was not read.
    """

    def __init__(
        self, message: str, *, expected: str | None = None, actual: str | None = None, **attributes: Any
    ) -> None:
        super().__init__(message, **attributes)
        self.expected = expected
        self.actual = actual


class NotMergeableError(ConflictError):
    """The pull request was not merged.

    Attributes:
        reason: why not. PENDING with outcome UNKNOWN means that the host accepted the merge but did not finish in time.
    """

    def __init__(self, message: str, *, reason: NotMergeableReason, **attributes: Any) -> None:
        super().__init__(message, **attributes)
        self.reason = reason


class RateLimitedError(GitProviderError):
    """The host refuses requests for a while. ``retry_after`` is the wait in seconds that it asked for, if any."""

    transient_by_nature = True


class RepoMovedError(GitProviderError):
    """The repository was renamed or transferred. Nothing was sent to the new path.

    Attributes:
        moved_to: the repository's new full path, or None if the host did not say.
    """

    def __init__(self, message: str, *, moved_to: str | None = None, **attributes: Any) -> None:
        super().__init__(message, **attributes)
        self.moved_to = moved_to


class ProviderUnavailableError(GitProviderError):
    """The host did not respond or is unavailable: 5xx, timeout, connection refused, reset or cut."""

    transient_by_nature = True


class UnexpectedResponseError(GitProviderError):
    """The host or a proxy returned an undocumented response: HTML, truncated JSON or missing fields."""


class RetryCancelledError(GitProviderError):
    """A wait between two attempts ended because the event given to :func:`gitprovider.cancel_on` was set."""
