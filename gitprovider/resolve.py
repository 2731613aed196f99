"""Find out whether a mutation took effect after its response was lost. Only reads are sent."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from gitprovider._core.claims import IntentStore
from gitprovider._core.edits import matches
from gitprovider._core.json import plain
from gitprovider.checks import check_bool, check_callable, check_seconds, guarded, keep, refuse
from gitprovider.contract import InspectableProvider, expecting_absence, optional
from gitprovider.errors import ConflictError, GitProviderError, NotFoundError, Outcome, RetryCancelledError
from gitprovider.intent import Intent
from gitprovider.models import Branch, BranchProtection, Commit, MergeResult, PullRequest, PullRequestState
from gitprovider.redact import readable
from gitprovider.retry import PollDeadline

# The host's clock and the local clock may differ by this much. An object that the host dates up to this much before the
# request may still be the result of that request.
CLOCK_SKEW = timedelta(seconds=60)
# How many commits are searched for a commit whose sha is not known. Each commit is one request.
MAX_COMMITS = 100
# While waiting for the settle time, the host is read after 1, 2, 4 … seconds, with at most this many between two reads.
_MAX_INTERVAL = 16.0


class Verdict(StrEnum):
    """What the reads of the host found.

    ``APPLIED``: the host has the requested state.
    ``NOT_APPLIED``: the host does not have it, and the request can no longer take effect. Repeating the call is safe.
    ``CONFLICT``: the host changed in another way, or only part of the request took effect. The detail says what was
    expected and what was found.
    ``UNDECIDED``: it is too early to decide (``look_again_at``), or reads cannot decide. The detail then says what to
    check by hand.
    """

    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    CONFLICT = "conflict"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The result of :func:`resolve`. It can be pickled.

    Attributes:
        verdict: what was found.
        detail: one readable line: what was read, and what remains to be done.
        value: for APPLIED, what the call would have returned: a Repo, Branch, BranchProtection, Commit, PullRequest or
            MergeResult. None otherwise, or if the host does not return enough to build it.
        look_again_at: for UNDECIDED, the time after which another call can decide (aware UTC); None if only a person
            can.
    """

    verdict: Verdict
    detail: str
    value: Any = None
    look_again_at: datetime | None = None

    def __post_init__(self) -> None:
        keep(self, detail=readable(self.detail))

    def to_json(self) -> dict[str, Any]:
        """Return the four fields as plain JSON values."""
        record: dict[str, Any] = plain(self)
        return record


def resolve(
    provider: InspectableProvider,
    error_or_intent: GitProviderError | Intent,
    *,
    wait: bool = False,
    sleep: Callable[[float], None] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Resolution:
    """Find out, with reads only, whether a mutation took effect. Nothing is sent again.

    A lost request may still be running on the host for ``provider.settle`` seconds. The verdict is NOT_APPLIED only if
    the request was never sent, if the host refused it, or if the host is read after that time. The time starts at the
    intent's ``lost_at``, or at ``sent_at`` if there is no ``lost_at``. If an UNKNOWN error's intent has neither, it
    starts with this call.

    Args:
        provider: a provider for the same host, with a credential that may see the repository.
        error_or_intent: the error of the failed call, or its ``intent``, which may have been stored as JSON.
        wait: read the host again until the settle time has passed, instead of returning UNDECIDED. The wait ends at
            once if the event of :func:`gitprovider.cancel_on` is set.
        sleep: waits the given number of seconds; ``time.sleep`` by default.
        now: returns the current time, aware. ``sent_at`` and ``lost_at`` are compared with it.

    Raises:
        InvalidRequestError: the argument is not an error or intent of a mutation, or another host's provider made it.
        RetryCancelledError: the wait was cancelled.
        GitProviderError: a read failed, and nothing is known. NotFoundError means that the repository is gone, or that
            this credential may not see it.
    """
    check_bool("wait", wait)
    check_callable("now", now)
    if sleep is not None:
        check_callable("sleep", sleep)
    outcome: Outcome | None = None
    intent: Intent | None
    if isinstance(error_or_intent, GitProviderError):
        intent, outcome = error_or_intent.intent, error_or_intent.outcome
        if outcome is Outcome.NOT_APPLIED:
            return _not_applied(f"the call ended before anything changed: {error_or_intent.message}")
    else:
        intent = error_or_intent
    if not isinstance(intent, Intent):
        refuse("error_or_intent", "must be an error with the intent of a mutation, or that intent")
    with guarded("error_or_intent"):
        try:
            intent = Intent.from_json(intent.to_json())  # nothing has checked an intent that somebody built by hand
        except ValueError as exc:
            refuse("error_or_intent", f"is {exc}")
    check = _CHECKS.get(intent.operation)
    if check is None:
        refuse("error_or_intent", f"is of {intent.operation!r}, which is not a mutation of the contract")
    if intent.provider != provider.name:
        refuse("provider", f"is {provider.name!r}, but the call was made on {intent.provider!r}")
    lost = outcome is Outcome.UNKNOWN  # the error's outcome takes precedence over a missing time
    if intent.sent_at is None and not intent.steps and not lost:
        return _not_applied("the request that changes the host was never sent")
    # Sending a body of 50 MB may take longer than the settle time, so `lost_at` comes first.
    last_seen = intent.lost_at or intent.sent_at or (now() if lost else None)
    settle = check_seconds("settle", provider.settle)
    due = None if last_seen is None else last_seen + timedelta(seconds=settle)
    polls = PollDeadline(0.0, sleep=sleep, first=1.0, longest=_MAX_INTERVAL)
    while True:
        checked_at = now()
        finding = check(provider, intent)
        if finding.final or due is None or checked_at >= due:
            return _with_steps(finding.resolution, intent)
        if not wait:
            detail = f"too early to tell, the request may still be running: {finding.resolution.detail}"
            return Resolution(verdict=Verdict.UNDECIDED, detail=detail, look_again_at=due)
        polls.wait(min(polls.next_pause(), (due - checked_at).total_seconds()))


class Recovered(NamedTuple):
    """An intent that a store had unresolved, and what became of it.

    Attributes:
        key, intent: as in the store.
        resolution: the result of :func:`resolve`. If the host could not be read, it is UNDECIDED.
    """

    key: str
    intent: Intent
    resolution: Resolution


def recover(
    provider: InspectableProvider,
    store: IntentStore,
    *,
    wait: bool = False,
    sleep: Callable[[float], None] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> list[Recovered]:
    """Find out, with reads only, what became of every mutation that a store has unresolved, the oldest first.

    Call it after a restart. No intent is removed: call ``store.done(key)`` once you have used the verdict. Mutations
    that are still running, and those of another kind of host, are left out.

    Args:
        provider: a provider for the host of the intents.
        store: the store.
        wait, sleep, now: as for :func:`resolve`.

    Raises:
        RetryCancelledError: a wait was cancelled.
        GitProviderError: the store cannot be read.
    """
    found = []
    for key, intent in store.unresolved():
        if intent.provider != provider.name:
            continue
        try:
            resolution = resolve(provider, intent, wait=wait, sleep=sleep, now=now)
        except RetryCancelledError:
            raise
        except GitProviderError as error:
            resolution = Resolution(verdict=Verdict.UNDECIDED, detail=f"the host could not be read: {error}")
        found.append(Recovered(key, intent, resolution))
    return found


def _with_steps(found: Resolution, intent: Intent) -> Resolution:
    """Turn NOT_APPLIED into CONFLICT if the host acknowledged a step: the call has changed something."""
    if found.verdict is not Verdict.NOT_APPLIED or not intent.steps:
        return found
    done = ", ".join(intent.steps)
    return Resolution(verdict=Verdict.CONFLICT, detail=f"{found.detail}, but the host acknowledged: {done}")


class _Finding(NamedTuple):
    """The result of one check. ``final`` is False if a request that is still running could change it."""

    resolution: Resolution
    final: bool


_Check = Callable[[InspectableProvider, Intent], _Finding]


def _not_applied(detail: str) -> Resolution:
    return Resolution(verdict=Verdict.NOT_APPLIED, detail=detail)


def _absent(detail: str) -> _Finding:
    return _Finding(_not_applied(detail), final=False)


def _applied(value: Any, detail: str) -> _Finding:
    return _Finding(Resolution(verdict=Verdict.APPLIED, detail=detail, value=value), final=True)


def _conflict(detail: str, *, final: bool = True) -> _Finding:
    return _Finding(Resolution(verdict=Verdict.CONFLICT, detail=detail), final)


def _undecided(detail: str, *, final: bool = True) -> _Finding:
    return _Finding(Resolution(verdict=Verdict.UNDECIDED, detail=detail), final)


def _made_since(intent: Intent, created_at: datetime) -> bool:
    return intent.sent_at is None or created_at >= intent.sent_at - CLOCK_SKEW


def _create_repo(provider: InspectableProvider, intent: Intent) -> _Finding:
    repo = optional(provider.get_repo, intent.repo)
    if repo is None:
        return _absent(f"there is no repository {intent.repo}")
    if repo.path.lower() != intent.repo.lower():
        return _conflict(f"{intent.repo} redirects to {repo.path}: a repository was renamed")
    differs = [
        f"{name} is {actual!r}, not {asked!r}"
        for name, actual, asked in (
            ("visibility", repo.visibility.value, intent.visibility),
            ("description", repo.description, intent.description),
        )
        if asked is not None and actual != asked
    ]
    if differs:
        return _conflict(f"{intent.repo} exists, but its {'; its '.join(differs)}")
    if repo.created_at is None:
        return _undecided(f"{intent.repo} exists as requested; the host does not say since when; check who created it")
    if not _made_since(intent, repo.created_at):
        created = repo.created_at.isoformat()
        return _conflict(f"{intent.repo} exists as requested, but was created before the request, at {created}")
    return _applied(repo, f"{intent.repo} was created at {repo.created_at.isoformat()}")


def _create_branch(provider: InspectableProvider, intent: Intent) -> _Finding:
    name, source = _required(intent, "branch"), _required(intent, "source_sha")
    head = optional(provider.head, intent.repo, name)
    if head is None:
        provider.get_repo(intent.repo)  # a missing branch means nothing if the repository itself cannot be read
        return _absent(f"there is no branch {name}")
    if head == source:
        return _applied(Branch(name=name, sha=head), f"the branch {name} is at {source}")
    if provider.contains(intent.repo, source, name):
        return _applied(
            Branch(name=name, sha=source), f"the branch {name} contains {source} and has since moved to {head}"
        )
    return _conflict(f"the branch {name} is at {head} and does not contain {source}, its requested source")


def _protect_branch(provider: InspectableProvider, intent: Intent) -> _Finding:
    branch = _required(intent, "branch")
    if intent.rules is None:
        refuse("error_or_intent", "has no 'rules', which resolving a protect_branch needs")
    rules = _rules(intent.rules)
    nothing = BranchProtection.nothing()
    previous = nothing if intent.previous_rules is None else _rules(intent.previous_rules)
    try:
        with expecting_absence():
            current = provider.protection(intent.repo, branch)
    except NotFoundError:
        provider.get_repo(intent.repo)
        return _conflict(f"there is no branch {branch} to protect", final=False)
    except ConflictError as error:
        if error.code != "unfinished":
            raise
        return _conflict(f"{error.message}; {error.hint}", final=False)
    if current is not None and not rules.missing_from(current):
        return _applied(current, f"the branch {branch} is protected as requested")
    if (current or nothing) == previous:
        return _absent(f"the protection of {branch} is unchanged" if current else f"nothing protects {branch}")
    if current is None:
        return _conflict(f"nothing protects the branch {branch}, which was protected before", final=False)
    lacking = ", ".join(rules.missing_from(current))
    return _conflict(f"the protection of {branch} has changed and is weaker than requested: {lacking}", final=False)


def _commit_files(provider: InspectableProvider, intent: Intent) -> _Finding:
    branch = _required(intent, "branch")
    head = optional(provider.head, intent.repo, branch)
    if head is None:
        provider.get_repo(intent.repo)
        if intent.base_sha is None:
            return _absent(f"the branch {branch} does not exist yet")
        return _conflict(f"the branch {branch} no longer exists; the commit was based on {intent.base_sha}")
    if intent.commit_sha is not None:
        return _commit_by_sha(provider, intent, branch, head, intent.commit_sha)
    if head == intent.base_sha:
        return _absent(f"the branch {branch} is still at {head}")
    return _commit_by_content(provider, intent, branch, head)


def _commit_by_sha(provider: InspectableProvider, intent: Intent, branch: str, head: str, sha: str) -> _Finding:
    if provider.contains(intent.repo, sha, branch):
        commit = dataclasses.replace(provider.commit(intent.repo, sha), branch=branch)
        return _applied(commit, f"the branch {branch} contains the commit {sha}")
    if head == intent.base_sha:
        return _absent(f"the branch {branch} is still at {head}")
    return _conflict(f"the branch {branch} is at {head} and does not contain {sha}, based on {intent.base_sha}")


def _commit_by_content(provider: InspectableProvider, intent: Intent, branch: str, head: str) -> _Finding:
    """Search for a commit with the requested message, blobs and modes, from the head back to the commit's base.

    If the commit is not found, the result is not final. A host without compare-and-set may still put the commit on the
    current head.
    """
    if not intent.files or intent.message is None:
        return _undecided(f"the intent has no commit sha, message or files; check the history of {branch}")
    built_on = intent.base_sha or "an empty repository"
    found: Commit | None = None
    at: str | None = head
    for _ in range(MAX_COMMITS):
        if at is None or at == intent.base_sha:
            break
        commit = provider.commit(intent.repo, at)
        if _same_text(commit.message, intent.message) and _has_files(provider, intent, at):
            found = commit  # the oldest match counts: a later one is a repetition by somebody else
        at = commit.parent
    if found is None and at not in (None, intent.base_sha):
        return _undecided(f"the commit is not among the last {MAX_COMMITS} of {branch}; check its history", final=False)
    if found is not None:
        where = "" if found.parent == intent.base_sha else f", on {found.parent} instead of {built_on}"
        return _applied(
            dataclasses.replace(found, branch=branch), f"the branch {branch} contains the commit {found.sha}{where}"
        )
    if _has_files(provider, intent, head):
        return _undecided(
            f"the files on {branch} are as requested, but no single commit since {built_on} made them; "
            "check its history",
            final=False,
        )
    if at is None and intent.base_sha is None and (present := _count_present(provider, intent, head)) > 0:
        # A host that refuses several files in an empty repository gets one of them first.
        return _conflict(
            f"the first commit on {branch} contains {present} of {len(intent.files)} requested files", final=False
        )
    if at is None and intent.base_sha is not None:
        return _conflict(f"the branch {branch} is at {head}, whose history does not contain {built_on}", final=False)
    return _conflict(f"the branch {branch} moved from {built_on} to {head} without the commit", final=False)


def _count_present(provider: InspectableProvider, intent: Intent, sha: str) -> int:
    tree = provider.tree(intent.repo, sha)
    return sum(
        entry is not None and matches(tree.get(path), entry, intent.pointers.get(path))
        for path, entry in intent.files.items()
    )


def _has_files(provider: InspectableProvider, intent: Intent, sha: str) -> bool:
    tree = provider.tree(intent.repo, sha)
    return all(matches(tree.get(path), entry, intent.pointers.get(path)) for path, entry in intent.files.items())


def _open_pull_request(provider: InspectableProvider, intent: Intent) -> _Finding:
    source, target, title = (_required(intent, name) for name in ("source_branch", "target_branch", "title"))
    if intent.number is not None:
        made = provider.get_pull_request(intent.repo, intent.number)
        return _applied(made, _describe_opened(made, intent))
    found = provider.find_pull_requests(intent.repo, source_branch=source, target_branch=target)
    same_title = [pull for pull in found if _same_text(pull.title, title)]
    made_since = [pull for pull in same_title if pull.created_at is not None and _made_since(intent, pull.created_at)]
    if made_since:
        made = made_since[-1]  # the oldest one since the request
        return _applied(made, _describe_opened(made, intent))
    undated = next((pull for pull in same_title if pull.created_at is None), None)
    if undated is not None:
        return _undecided(f"pull request {undated.number} has that title; the host does not say when it was opened")
    other = next((pull for pull in found if pull.state is PullRequestState.OPEN), None)
    if other is not None:
        why = "was opened before the request" if other in same_title else f"has the title {other.title!r}"
        return _conflict(f"pull request {other.number} is open between {source} and {target}, and {why}")
    return _absent(f"there is no such pull request from {source} to {target}")


def _describe_opened(pull: PullRequest, intent: Intent) -> str:
    detail = f"pull request {pull.number} is {pull.state.value}"
    unread = [name for name in ("labels", "reviewers") if getattr(intent, name)]
    return f"{detail}; check its {' and '.join(unread)}, which were not read" if unread else detail


def _merge_pull_request(provider: InspectableProvider, intent: Intent) -> _Finding:
    if intent.number is None:
        refuse("error_or_intent", "has no 'number', which resolving a merge_pull_request needs")
    pull = provider.get_pull_request(intent.repo, intent.number)
    name, asked = f"pull request {pull.number}", intent.head_sha
    other_head = asked is not None and pull.head_sha is not None and pull.head_sha != asked
    if pull.state is PullRequestState.MERGED:
        if other_head:
            return _conflict(f"{name} was merged at the head {pull.head_sha}, not at {asked}")
        remaining = _describe_remaining(provider, intent, pull)
        if pull.merge_commit_sha is None:
            return _applied(None, f"{name} is merged; the host does not name the commit{remaining}")
        return _applied(MergeResult(sha=pull.merge_commit_sha), f"{name} is merged{remaining}")
    if pull.state is PullRequestState.CLOSED:
        return _conflict(f"{name} was closed without a merge")
    if other_head:
        return _conflict(f"{name} is open, and its head is now {pull.head_sha}, not {asked}")
    return _absent(f"{name} is open and not merged")


def _describe_remaining(provider: InspectableProvider, intent: Intent, pull: PullRequest) -> str:
    """Say that the source branch still exists, if the call was to delete it."""
    if not intent.delete_source_branch:
        return ""
    head = optional(provider.head, intent.repo, pull.source_branch)
    return "" if head is None else f"; its source branch {pull.source_branch} still exists, at {head}"


_CHECKS: Mapping[str, _Check] = {
    "create_repo": _create_repo,
    "create_branch": _create_branch,
    "protect_branch": _protect_branch,
    "commit_files": _commit_files,
    "open_pull_request": _open_pull_request,
    "merge_pull_request": _merge_pull_request,
}


def _required(intent: Intent, name: str) -> str:
    value = getattr(intent, name)
    if not isinstance(value, str):
        refuse("error_or_intent", f"has no {name!r}, which resolving a {intent.operation} needs")
    return value


def _rules(record: Mapping[str, Any]) -> BranchProtection:
    try:
        return BranchProtection(**record)
    except TypeError as exc:
        refuse("error_or_intent", f"contains rules that are not a BranchProtection: {exc}")


def _same_text(one: str, other: str) -> bool:
    # Hosts trim text, and some end a message with a newline.
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()
