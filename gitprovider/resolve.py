"""What became of a mutation whose answer was lost: found out with reads only, and nothing is sent again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from gitprovider._core.edits import matches
from gitprovider._core.json import plain
from gitprovider.checks import check_bool, refuse
from gitprovider.contract import InspectableProvider, optional
from gitprovider.errors import ConflictError, GitProviderError, NotFoundError, Outcome
from gitprovider.intent import Intent
from gitprovider.models import Branch, BranchProtection, Commit, MergeResult, PullRequest, PullRequestState
from gitprovider.retry import PollDeadline

# A host's clock and ours may differ by this much: what it dates shortly before our request may still be ours.
CLOCK_SKEW = timedelta(seconds=60)
# How far back a commit is looked for whose sha is not known; each step is one request.
MAX_COMMITS = 100
# While waiting for the settle time, looks come after 1, 2, 4 … seconds, at most this many apart.
_MAX_INTERVAL = 16.0


class Verdict(StrEnum):
    """What a look at the host found.

    ``APPLIED``: the host holds what was asked.
    ``NOT_APPLIED``: it does not, and the request can no longer take effect: repeating the call is safe.
    ``CONFLICT``: the host changed in another way, or in part of what was asked only; the detail says what was expected
    and what is there.
    ``UNDECIDED``: too early to tell (``look_again_at``), or nothing that a read can tell (the detail says what to
    look at by hand).
    """

    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    CONFLICT = "conflict"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What became of a mutation. It pickles.

    Attributes:
        verdict: what was found.
        detail: one readable line: what was seen, and what remains to be done.
        value: for APPLIED, what the call would have returned: a Repo, Branch, BranchProtection, Commit, PullRequest or
            MergeResult. None otherwise, and where the host does not show enough to build it.
        look_again_at: for UNDECIDED, when a look can decide (aware UTC); None when only a person can.
    """

    verdict: Verdict
    detail: str
    value: Any = None
    look_again_at: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """The four fields as plain JSON values."""
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

    ``NOT_APPLIED`` is said of a request that was never sent, that the host refused, or after a look made at least
    ``provider.settle`` seconds after it was sent, that is, after its answer was given up where that is known: until
    then a lost request may still be running on the host. For an UNKNOWN error whose intent lacks both times, these
    seconds begin with this call.

    Args:
        provider: a provider for the same host, with a credential that may see the repository.
        error_or_intent: the error of the failed call; or its ``intent``, which may have been stored as JSON.
        wait: keep looking until the settle time has passed, instead of answering UNDECIDED. The wait ends at once
            when the event of :func:`gitprovider.cancel_on` is set.
        sleep: waits that many seconds; by default ``time.sleep``.
        now: the present time, aware; the clock that ``sent_at`` and ``lost_at`` are compared with.

    Raises:
        InvalidRequestError: this is no evidence of a mutation, or it comes from another host's provider.
        RetryCancelledError: the wait was cancelled.
        GitProviderError: a read failed; nothing is known then. In particular NotFoundError: the repository is gone, or
            this credential may not see it.
    """
    check_bool("wait", wait)
    outcome: Outcome | None = None
    intent: Intent | None
    if isinstance(error_or_intent, GitProviderError):
        intent, outcome = error_or_intent.intent, error_or_intent.outcome
        if outcome is Outcome.NOT_APPLIED:
            return _not_applied(f"the call ended before anything changed: {error_or_intent.message}")
    else:
        intent = error_or_intent
    if not isinstance(intent, Intent):
        refuse("error_or_intent", "must be an error that carries the intent of a mutation, or that intent")
    look = _LOOKS.get(intent.operation)
    if look is None:
        refuse("error_or_intent", f"is of {intent.operation!r}, which is no mutation of the contract")
    if intent.provider != provider.name:
        refuse("provider", f"is {provider.name!r}, and the call was made on {intent.provider!r}")
    lost = outcome is Outcome.UNKNOWN  # whoever says so counts for more than a time that is missing
    if intent.sent_at is None and not intent.steps and not lost:
        return _not_applied("the request that would have changed something was never sent")
    # A body of 50 MB may take longer to send than the host to settle: it was sent whole by when it was given up.
    last_seen = intent.lost_at or intent.sent_at or (now() if lost else None)
    due = None if last_seen is None else last_seen + timedelta(seconds=provider.settle)
    polls = PollDeadline(0.0, sleep=sleep, first=1.0, longest=_MAX_INTERVAL)
    while True:
        looked_at = now()
        seen = look(provider, intent)
        if seen.final or due is None or looked_at >= due:
            return _with_steps(seen.resolution, intent)
        if not wait:
            detail = f"too early to tell, the request may still be running: {seen.resolution.detail}"
            return Resolution(verdict=Verdict.UNDECIDED, detail=detail, look_again_at=due)
        polls.wait(min(polls.next_pause(), (due - looked_at).total_seconds()))


def _with_steps(found: Resolution, intent: Intent) -> Resolution:
    """A call of which the host acknowledged a step has changed something, also where the look does not show it."""
    if found.verdict is not Verdict.NOT_APPLIED or not intent.steps:
        return found
    done = ", ".join(intent.steps)
    return Resolution(verdict=Verdict.CONFLICT, detail=f"{found.detail}, though the host acknowledged: {done}")


@dataclass(frozen=True, slots=True)
class _Seen:
    """One look's finding. ``final`` is False where a request that is still running could change it."""

    resolution: Resolution
    final: bool


_Look = Callable[[InspectableProvider, Intent], _Seen]


def _not_applied(detail: str) -> Resolution:
    return Resolution(verdict=Verdict.NOT_APPLIED, detail=detail)


def _absent(detail: str) -> _Seen:
    return _Seen(_not_applied(detail), final=False)


def _applied(value: Any, detail: str) -> _Seen:
    return _Seen(Resolution(verdict=Verdict.APPLIED, detail=detail, value=value), final=True)


def _conflict(detail: str, *, final: bool = True) -> _Seen:
    return _Seen(Resolution(verdict=Verdict.CONFLICT, detail=detail), final)


def _by_hand(detail: str, *, final: bool = True) -> _Seen:
    return _Seen(Resolution(verdict=Verdict.UNDECIDED, detail=detail), final)


def _made_since(intent: Intent, created_at: datetime) -> bool:
    return intent.sent_at is None or created_at >= intent.sent_at - CLOCK_SKEW


def _create_repo(provider: InspectableProvider, intent: Intent) -> _Seen:
    repo = optional(provider.get_repo, intent.repo)
    if repo is None:
        return _absent(f"there is no repository {intent.repo}")
    if repo.path.lower() != intent.repo.lower():
        return _conflict(f"{intent.repo} leads to {repo.path}, a repository that was renamed")
    differs = [
        f"{name} is {there!r}, asked was {asked!r}"
        for name, there, asked in (
            ("visibility", repo.visibility.value, intent.visibility),
            ("description", repo.description, intent.description),
        )
        if asked is not None and there != asked
    ]
    if differs:
        return _conflict(f"{intent.repo} exists, and its {'; its '.join(differs)}")
    if repo.created_at is None:
        return _by_hand(f"{intent.repo} exists as asked, and the host does not say since when; see who made it")
    if not _made_since(intent, repo.created_at):
        return _conflict(f"{intent.repo} exists as asked, but since {repo.created_at.isoformat()}, before the request")
    return _applied(repo, f"{intent.repo} exists since {repo.created_at.isoformat()}")


def _create_branch(provider: InspectableProvider, intent: Intent) -> _Seen:
    name, source = _known(intent, "branch"), _known(intent, "source_sha")
    head = optional(provider.head, intent.repo, name)
    if head is None:
        provider.get_repo(intent.repo)  # a repository that cannot be seen says nothing of its branches
        return _absent(f"there is no branch {name}")
    if head == source:
        return _applied(Branch(name=name, sha=head), f"the branch {name} is at {source}")
    if provider.contains(intent.repo, source, name):
        return _applied(
            Branch(name=name, sha=source), f"the branch {name} holds {source} and has moved on since, to {head}"
        )
    return _conflict(f"the branch {name} is at {head}, and does not hold {source}, from which it was to be made")


def _protect_branch(provider: InspectableProvider, intent: Intent) -> _Seen:
    branch = _known(intent, "branch")
    if intent.rules is None:
        refuse("error_or_intent", "lacks 'rules', without which protect_branch cannot be looked up")
    rules = _rules(intent.rules)
    nothing = BranchProtection.nothing()
    previous = nothing if intent.previous_rules is None else _rules(intent.previous_rules)
    try:
        held = provider.protection(intent.repo, branch)
    except NotFoundError:
        provider.get_repo(intent.repo)
        return _conflict(f"there is no branch {branch} to protect", final=False)
    except ConflictError as error:
        if error.code != "unfinished":
            raise
        return _conflict(f"{error.message}; {error.hint}", final=False)
    if held is not None and not rules.missing_from(held):
        return _applied(held, f"the branch {branch} is protected as asked")
    if (held or nothing) == previous:
        return _absent(f"the branch {branch} is protected as it was before" if held else f"nothing protects {branch}")
    if held is None:
        return _conflict(f"nothing protects the branch {branch}, which was protected before", final=False)
    lacking = ", ".join(rules.missing_from(held))
    return _conflict(f"the protection of {branch} has changed and is weaker than asked in: {lacking}", final=False)


def _commit_files(provider: InspectableProvider, intent: Intent) -> _Seen:
    branch = _known(intent, "branch")
    head = optional(provider.head, intent.repo, branch)
    if head is None:
        provider.get_repo(intent.repo)
        if intent.base_sha is None:
            return _absent(f"the branch {branch} does not exist yet")
        return _conflict(f"the branch {branch} is gone; the commit was to be made on {intent.base_sha}")
    if intent.commit_sha is not None:
        return _known_commit(provider, intent, branch, head, intent.commit_sha)
    if head == intent.base_sha:
        return _absent(f"the branch {branch} is still at {head}")
    return _unknown_commit(provider, intent, branch, head)


def _known_commit(provider: InspectableProvider, intent: Intent, branch: str, head: str, sha: str) -> _Seen:
    if provider.contains(intent.repo, sha, branch):
        commit = dataclasses.replace(provider.commit(intent.repo, sha), branch=branch)
        return _applied(commit, f"the branch {branch} holds the commit {sha}")
    if head == intent.base_sha:
        return _absent(f"the branch {branch} is still at {head}")
    return _conflict(f"the branch {branch} is at {head}, and does not hold {sha}, which was built on {intent.base_sha}")


def _unknown_commit(provider: InspectableProvider, intent: Intent, branch: str, head: str) -> _Seen:
    """Look for a commit with the message, blobs and modes asked for, from the head back to where it was built on.

    Not final without a find: a host without compare-and-set may still put the commit on the head that is there now.
    """
    if not intent.files or intent.message is None:
        return _by_hand(f"the evidence does not name the commit, its message or its files; see the history of {branch}")
    built_on = intent.base_sha or "an empty repository"
    found: Commit | None = None
    at: str | None = head
    for _ in range(MAX_COMMITS):
        if at is None or at == intent.base_sha:
            break
        commit = provider.commit(intent.repo, at)
        if _same_text(commit.message, intent.message) and _holds(provider, intent, at):
            found = commit  # the oldest one counts: a later commit like it is somebody's repetition
        at = commit.parent
    if found is None and at not in (None, intent.base_sha):
        return _by_hand(f"not among the last {MAX_COMMITS} commits of {branch}; see its history", final=False)
    if found is not None:
        where = "" if found.parent == intent.base_sha else f", made on {found.parent} and not on {built_on}"
        return _applied(
            dataclasses.replace(found, branch=branch), f"the branch {branch} holds the commit {found.sha}{where}"
        )
    if _holds(provider, intent, head):
        return _by_hand(
            f"the files on {branch} are as asked, but no commit since {built_on} made them alone; see its history",
            final=False,
        )
    if at is None and intent.base_sha is None and (part := _part(provider, intent, head)) > 0:
        # A host that refuses several files for an empty repository takes one of them first.
        return _conflict(
            f"the first commit on {branch} holds {part} of {len(intent.files)} files asked for", final=False
        )
    if at is None and intent.base_sha is not None:
        return _conflict(f"the branch {branch} is at {head}, whose history lacks {built_on}", final=False)
    return _conflict(f"the branch {branch} moved from {built_on} to {head} without the commit", final=False)


def _part(provider: InspectableProvider, intent: Intent, sha: str) -> int:
    tree = provider.tree(intent.repo, sha)
    return sum(
        entry is not None and matches(tree.get(path), entry, intent.pointers.get(path))
        for path, entry in intent.files.items()
    )


def _holds(provider: InspectableProvider, intent: Intent, sha: str) -> bool:
    tree = provider.tree(intent.repo, sha)
    return all(matches(tree.get(path), entry, intent.pointers.get(path)) for path, entry in intent.files.items())


def _open_pull_request(provider: InspectableProvider, intent: Intent) -> _Seen:
    source, target, title = (_known(intent, name) for name in ("source_branch", "target_branch", "title"))
    if intent.number is not None:
        made = provider.get_pull_request(intent.repo, intent.number)
        return _applied(made, _opened(made, intent))
    found = provider.find_pull_requests(intent.repo, source_branch=source, target_branch=target)
    alike = [pull for pull in found if _same_text(pull.title, title)]
    made_since = [pull for pull in alike if pull.created_at is not None and _made_since(intent, pull.created_at)]
    if made_since:
        made = made_since[-1]  # the oldest one since the request
        return _applied(made, _opened(made, intent))
    undated = next((pull for pull in alike if pull.created_at is None), None)
    if undated is not None:
        return _by_hand(f"pull request {undated.number} looks like it, and the host does not say when it was opened")
    in_the_way = next((pull for pull in found if pull.state is PullRequestState.OPEN), None)
    if in_the_way is not None:
        why = "has that title since before the request" if in_the_way in alike else f"is titled {in_the_way.title!r}"
        return _conflict(f"pull request {in_the_way.number} is open between {source} and {target}, and {why}")
    return _absent(f"there is no such pull request from {source} to {target}")


def _opened(pull: PullRequest, intent: Intent) -> str:
    detail = f"pull request {pull.number} is {pull.state.value}"
    unseen = [name for name in ("labels", "reviewers") if getattr(intent, name)]
    return f"{detail}; check its {' and '.join(unseen)}, which this look does not show" if unseen else detail


def _merge_pull_request(provider: InspectableProvider, intent: Intent) -> _Seen:
    if intent.number is None:
        refuse("error_or_intent", "lacks 'number', without which merge_pull_request cannot be looked up")
    pull = provider.get_pull_request(intent.repo, intent.number)
    name, asked = f"pull request {pull.number}", intent.head_sha
    other_head = asked is not None and pull.head_sha is not None and pull.head_sha != asked
    if pull.state is PullRequestState.MERGED:
        if other_head:
            return _conflict(f"{name} is merged at the head {pull.head_sha}; it was to be merged at {asked}")
        if pull.merge_commit_sha is None:
            return _applied(None, f"{name} is merged; the host does not name the commit{_left(provider, intent, pull)}")
        return _applied(MergeResult(sha=pull.merge_commit_sha), f"{name} is merged{_left(provider, intent, pull)}")
    if pull.state is PullRequestState.CLOSED:
        return _conflict(f"{name} is closed without being merged")
    if other_head:
        return _conflict(f"{name} is open, and its head is now {pull.head_sha}; it was to be merged at {asked}")
    return _absent(f"{name} is open and not merged")


def _left(provider: InspectableProvider, intent: Intent, pull: PullRequest) -> str:
    """What remains to be done when the source branch was to be deleted and is still there."""
    if not intent.delete_source_branch:
        return ""
    head = optional(provider.head, intent.repo, pull.source_branch)
    return "" if head is None else f"; its source branch {pull.source_branch} is still there, at {head}"


_LOOKS: Mapping[str, _Look] = {
    "create_repo": _create_repo,
    "create_branch": _create_branch,
    "protect_branch": _protect_branch,
    "commit_files": _commit_files,
    "open_pull_request": _open_pull_request,
    "merge_pull_request": _merge_pull_request,
}


def _known(intent: Intent, name: str) -> str:
    value = getattr(intent, name)
    if not isinstance(value, str):
        refuse("error_or_intent", f"lacks {name!r}, without which {intent.operation} cannot be looked up")
    return value


def _rules(record: Mapping[str, Any]) -> BranchProtection:
    try:
        return BranchProtection(**record)
    except TypeError as exc:
        refuse("error_or_intent", f"holds a protection that is not one: {exc}")


def _same_text(one: str, other: str) -> bool:
    # Hosts trim what they are given, and some end a message with a newline.
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()
