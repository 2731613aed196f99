"""Endpoints for pull requests, their labels, reviewers and merges."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    GitProviderError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
)
from gitprovider.fakes.github import objects, protection
from gitprovider.fakes.github.bodies import Body, Mergeability, is_private, setting, stamp
from gitprovider.fakes.github.call import Call
from gitprovider.fakes.github.responses import MERGE_REFUSALS, Refusal, page, reply, typed
from gitprovider.fakes.github.rulesets import enforce
from gitprovider.fakes.http import Response
from gitprovider.local.database import PullRecord
from gitprovider.models import MergeMethod, PullRequestState

_METHODS = {
    MergeMethod.MERGE: ("allow_merge_commit", "gh-merge-no-merge-commits"),
    MergeMethod.SQUASH: ("allow_squash_merge", "gh-merge-no-squash"),
    MergeMethod.REBASE: ("allow_rebase_merge", "gh-merge-no-rebase"),
}


def list_pulls(call: Call) -> Response:
    """The pull requests. GitHub ignores a ``head`` without its owner."""
    query = call.request.query
    owner, colon, branch = query.get("head", "").partition(":")
    found = call.forge.pull_requests(call.path, target_branch=query.get("base"))
    if colon:
        found = [pull for pull in found if pull.source_branch == branch and owner.lower() == call.owner.lower()]
    state = query.get("state", "open")
    if state in ("open", "closed"):
        found = [pull for pull in found if (pull.state is PullRequestState.OPEN) is (state == "open")]
    if query.get("direction") == "asc":
        found.reverse()
    bodies = [call.bodies.simple_pull(call.record, pull, call.state.login, _merge_state(call, pull)) for pull in found]
    return page(bodies, "gh-pulls", call.request, f"{call.by_id}/pulls")


def create_pull(call: Call) -> Response:
    """Open a pull request."""
    asked = call.fields({"title": str, "head": str, "base": str}, {"body": str, "draft": bool})
    head, base = _own_branch(call, asked["head"]), asked["base"]
    if not _is_branch(call, head) or call.state.stale_reads.count(("ref", call.record.id, head)):
        raise Refusal("gh-head-invalid")
    if not _is_branch(call, base):
        raise Refusal("gh-base-invalid")
    if asked.get("draft") and call.state.plan == "free" and is_private(call.record):
        raise Refusal("gh-no-drafts")
    if head == base:
        raise Refusal("gh-no-commits-between", base=base, head=head)
    try:
        pull = call.forge.open_pull_request(
            call.path,
            source_branch=head,
            target_branch=base,
            title=asked["title"],
            description=asked.get("body") or "",
            draft=bool(asked.get("draft")),
        )
    except AlreadyExistsError:
        raise Refusal("gh-pull-exists", owner=call.owner, head=head) from None
    except ConflictError as error:
        apart = "no history in common" in error.message
        raise Refusal("gh-no-common-history" if apart else "gh-no-commits-between", base=base, head=head) from None
    body = _full(call, pull, Mergeability(computed=False))
    return reply(body, "gh-pull-created", status=201, headers={"Location": body["url"]}, effect=True)


def get_pull(call: Call, number: str) -> Response:
    """A pull request. The first read starts the computation of its mergeability."""
    pull = _pull(call, number)
    key = ("merge", call.record.id, pull.number, pull.head_sha, pull.base_sha)
    call.state.stale_reads.start_once(key, call.state.mergeable_after)
    merge = Mergeability(computed=False) if call.state.stale_reads.count(key) else _merge_state(call, pull)
    return reply(_full(call, pull, merge), "gh-pull")


def merge_pull(call: Call, number: str) -> Response:
    """Merge a pull request."""
    strings = dict.fromkeys(("sha", "merge_method", "commit_title", "commit_message"), str)
    asked = call.fields({}, strings)
    pull = _pull(call, number)
    method = _method(asked.get("merge_method") or "merge")
    if pull.state is PullRequestState.OPEN:
        _check_rules(call, pull, method, asked.get("sha") or pull.head_sha)
    bypass = call.bypasses(call.forge.protection(call.path, pull.target_branch))
    try:
        merged = call.forge.merge(
            call.path,
            pull.number,
            method=method,
            expected_head=asked.get("sha"),
            message=_message(call, pull, method, asked),
            bypass=bypass,
        )
    except NotMergeableError as error:
        raise _refused(call, pull, method, error.reason) from None
    known = {"closed_at": stamp(call.state.now()), "merged_by": call.state.login}
    call.forge.update_pull_request(call.path, pull.number, settings=known)
    if setting(call.record, "delete_branch_on_merge"):
        with suppress(GitProviderError):
            call.forge.delete_branch(call.path, pull.source_branch, expected=merged.head_sha, bypass=True)
    done = {"sha": merged.merge_commit_sha, "merged": True, "message": "Pull Request successfully merged"}
    return reply(done, "gh-merged", effect=True)


def add_labels(call: Call, number: str) -> Response:
    """Add labels. The body is an object or a bare list."""
    asked = call.json()
    labels = asked if isinstance(asked, list) else call.fields({"labels": list})["labels"]
    pull = _pull(call, number)
    names = [typed("labels", label.get("name") if isinstance(label, dict) else label, str) for label in labels]
    wanted = list(dict.fromkeys([*pull.labels, *names]))
    call.forge.update_pull_request(call.path, pull.number, labels=wanted)
    bodies = [{**call.bodies.label(call.record, name), "archived_at": None} for name in wanted]
    return reply(bodies, "gh-labels-added", effect=wanted != list(pull.labels))


def request_reviewers(call: Call, number: str) -> Response:
    """Request reviewers."""
    asked = call.fields({}, {"reviewers": list, "team_reviewers": list})
    pull = _pull(call, number)
    names = [typed("reviewers", name, str) for name in asked.get("reviewers") or ()]
    if call.state.login.lower() in {name.lower() for name in names}:
        raise Refusal("gh-review-author")
    if asked.get("team_reviewers") or not call.state.logins.issuperset(names):
        raise Refusal("gh-review-stranger", path=call.path)
    wanted = list(dict.fromkeys([*pull.reviewers, *names]))
    changed = call.forge.update_pull_request(call.path, pull.number, reviewers=wanted)
    body = call.bodies.simple_pull(call.record, changed, call.state.login, _merge_state(call, changed))
    effect = wanted != list(pull.reviewers)
    return reply(body, "gh-reviewers-requested", status=201, headers={"Location": body["url"]}, effect=effect)


# Helpers


def _pull(call: Call, number: str) -> PullRecord:
    if not number.isdecimal() or len(number) > 15:
        raise Refusal("gh-pull-missing")
    return call.forge.pull_request(call.path, int(number))


def _is_branch(call: Call, name: str) -> bool:
    try:
        call.forge.head(call.path, name)
    except NotFoundError:
        return False
    return True


def _own_branch(call: Call, head: str) -> str:
    """The branch that ``head`` names. The fake server has no forks."""
    owner, colon, branch = head.partition(":")
    if not colon:
        return head
    if owner.lower() != call.owner.lower():
        raise Refusal("gh-head-invalid")
    return branch


def _merge_state(call: Call, pull: PullRecord) -> Mergeability:
    if pull.state is not PullRequestState.OPEN:
        return Mergeability(computed=False)
    return Mergeability(computed=True, reason=call.forge.mergeability(call.path, pull.number))


def _full(call: Call, pull: PullRecord, merge: Mergeability) -> Body:
    found = objects.compare(call.record, pull.base_sha, pull.head_sha)
    files = objects.changes(call.record, found.merge_base, pull.head_sha) if found else []
    commits = len(found.commits) if found else 0
    return call.bodies.pull(call.record, pull, call.state.login, merge, commits=commits, files=files)


def _method(word: str) -> MergeMethod:
    try:
        return MergeMethod(word)
    except ValueError:
        raise Refusal("gh-wrong-type", name="merge_method", value=word, kind="a merge method") from None


def _check_rules(call: Call, pull: PullRecord, method: MergeMethod, sha: str) -> None:
    """Check the repository's settings, rulesets and strict checks before a merge. The forge checks the rest."""
    if sha != pull.head_sha:
        raise Refusal("gh-head-modified")
    if pull.draft:
        raise Refusal("gh-merge-draft")
    name, fact = _METHODS[method]
    if not setting(call.record, name):
        raise Refusal(fact)
    enforce(call.record, pull.target_branch, "merge_queue", fact="gh-merge-queue")
    enforce(call.record, pull.target_branch, "update", fact="gh-merge-ruleset")
    covering = call.forge.matching_rules(call.path, pull.target_branch)
    if not covering or call.bypasses(call.forge.protection(call.path, pull.target_branch)):
        return
    checks = protection.kept_by(protection.applying(covering))["required_status_checks"]
    if checks and checks["strict"]:
        found = objects.compare(call.record, pull.base_sha, pull.head_sha)
        if found is not None and found.behind:
            raise Refusal("gh-head-behind")


def _refused(call: Call, pull: PullRecord, method: MergeMethod, reason: NotMergeableReason) -> Refusal:
    if reason is NotMergeableReason.METHOD and method is MergeMethod.REBASE:
        return Refusal("gh-merge-no-rebase-possible")
    values: dict[str, Any] = {}
    rule = call.forge.protection(call.path, pull.target_branch)
    if reason is NotMergeableReason.CHECKS and rule is not None:
        states = call.forge.checks(call.path, pull.head_sha)
        name = next(check for check in rule.required_checks if states.get(check) != "success")
        state = {"failure": "failing", "pending": "pending"}.get(states.get(name, ""), "expected")
        values = {"check": name, "state": state}
    if reason is NotMergeableReason.REVIEWS and rule is not None:
        count = rule.required_approvals
        values = {"count": count, "s": " is" if count == 1 else "s are"}
    return Refusal(MERGE_REFUSALS.get(reason, "gh-not-mergeable"), **values)


def _message(call: Call, pull: PullRecord, method: MergeMethod, asked: Body) -> str:
    if method is MergeMethod.SQUASH:
        title, text = f"{pull.title} (#{pull.number})", ""
    else:
        title, text = f"Merge pull request #{pull.number} from {call.owner}/{pull.source_branch}", pull.title
    title = asked.get("commit_title") or title
    text = asked["commit_message"] if asked.get("commit_message") is not None else text
    return f"{title}\n\n{text}" if text else title
