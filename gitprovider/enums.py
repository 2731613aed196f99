"""The closed sets of words that values and errors share."""

from __future__ import annotations

from enum import StrEnum


class Visibility(StrEnum):
    """Who may see a repository. INTERNAL means every signed-in user of the instance or enterprise."""

    PUBLIC = "public"
    PRIVATE = "private"
    INTERNAL = "internal"


class PullRequestState(StrEnum):
    """The state of a pull request (GitLab: merge request)."""

    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


class MergeMethod(StrEnum):
    """How a pull request's commits reach the target branch."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


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
