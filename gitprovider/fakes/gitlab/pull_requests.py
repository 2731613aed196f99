"""Endpoints for merge requests and merges: https://docs.gitlab.com/api/merge_requests/ ."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from gitprovider.errors import (
    AlreadyExistsError,
    GitProviderError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
)
from gitprovider.fakes.gitlab import bodies, quick_actions, responses, statuses
from gitprovider.fakes.gitlab.access import Guard
from gitprovider.fakes.gitlab.call import Call
from gitprovider.fakes.gitlab.responses import Refusal, invalid, reply
from gitprovider.fakes.gitlab.state import DEVELOPERS
from gitprovider.fakes.http import Response
from gitprovider.local.database import PullRecord, RepoRecord
from gitprovider.models import MergeMethod, PullRequestState

_STATES = {PullRequestState.OPEN: "opened", PullRequestState.CLOSED: "closed", PullRequestState.MERGED: "merged"}
_STATUS = {
    NotMergeableReason.REVIEWS: "not_approved",
    NotMergeableReason.CONFLICT: "conflict",
    NotMergeableReason.METHOD: "need_rebase",
    NotMergeableReason.CHECKS: "ci_must_pass",
}
_SQUASH_NEEDED = "This project requires squashing commits when merge requests are accepted."

_CHANGED = ("title", "description", "labels", "reviewer_ids", "squash", "remove_source_branch")


# State


def _found(call: Call, record: RepoRecord, iid: str) -> PullRecord:
    try:
        return call.forge.pull_request(record.path, int(iid) if iid.isdecimal() and len(iid) < 19 else 0)
    except NotFoundError:
        raise responses.record_missing("gl-mr-missing") from None


def _is_linear(record: RepoRecord) -> bool:
    return str(bodies.setting(record, "merge_method")) != "merge"


def _squashes(record: RepoRecord, pull: PullRecord) -> bool:
    """``squash_on_merge``: the project's option may force it. Otherwise the merge request's flag decides."""
    option = bodies.setting(record, "squash_option")
    return {"always": True, "never": False}.get(option, bool(pull.settings.get("squash")))


def _status(call: Call, record: RepoRecord, pull: PullRecord) -> str:
    """``detailed_merge_status``: the first check that fails, in GitLab's order."""
    if pull.state is not PullRequestState.OPEN:
        return "not_open"
    if call.state.is_checking(record, pull):
        return "checking"
    method = MergeMethod.REBASE if _is_linear(record) else MergeMethod.MERGE
    reason = call.forge.mergeability(record.path, pull.number, method=method)
    forge = call.forge
    if reason is NotMergeableReason.DRAFT:
        return "draft_status"
    # The forge reports an open merge request as closed if a branch is missing.
    if reason is NotMergeableReason.CLOSED or forge.contains(record.path, pull.head_sha, pull.target_branch):
        return "commits_status"
    if forced := call.state.merge_statuses.get((record.path, pull.number)):
        return forced
    diverged = _is_linear(record) and not forge.contains(record.path, pull.base_sha, pull.source_branch)
    if diverged and reason in (None, NotMergeableReason.METHOD, NotMergeableReason.CHECKS):
        return "need_rebase"
    return _pipeline_status(call, record, pull) if reason is None else _STATUS[reason]


def _pipeline_status(call: Call, record: RepoRecord, pull: PullRecord) -> str:
    if not bodies.setting(record, "only_allow_merge_if_pipeline_succeeds"):
        return "mergeable"
    pipeline = statuses.pipeline(call.site, record, pull.head_sha)
    state = pipeline["status"] if pipeline is not None else ""
    return {"success": "mergeable", "pending": "ci_still_running", "running": "ci_still_running"}.get(
        state, "ci_must_pass"
    )


def _shown(
    call: Call, record: RepoRecord, pull: PullRecord, status: str, *, state: str | None = None
) -> dict[str, Any]:
    prefix = pull.settings.get("draft_prefix", "Draft: ") if pull.draft else ""
    fake = call.state

    def user(name: str) -> dict[str, Any]:
        return bodies.user(call.site, name, fake.user_id(name))

    body = bodies.merge_request(
        call.site,
        record,
        pull,
        title=f"{prefix}{pull.title}",
        draft=pull.draft,
        state=state or _STATES[pull.state],
        status=status,
        author=user(pull.settings.get("author", fake.username)),
        ended_by=user(pull.settings.get("ended_by", fake.username)),
        reviewers=[user(name) for name in pull.reviewers],
        squash_on_merge=_squashes(record, pull),
        pipeline=statuses.pipeline(call.site, record, pull.head_sha),
    )
    if fake.old:
        del body["detailed_merge_status"]
        # The older field is about Git alone: a branch that must be rebased can still be merged.
        if status == "need_rebase":
            body["merge_status"] = "can_be_merged"
    return body


# Reads


def get_merge_request(call: Call, project: str, iid: str) -> Response:
    """A merge request. Reading it makes GitLab compute whether it can be merged."""
    record = call.project(project)
    pull = _found(call, record, iid)
    if call.state.stale_reads.count(("locked", record.id, pull.number)):
        return reply(_shown(call, record, pull, "not_open", state="locked"), "gl-mr-locked")
    status = _status(call, record, pull)
    call.state.count_read(record, pull)
    fact = "gl-mr-checking" if status == "checking" else "gl-mr"
    return reply(_shown(call, record, pull, status), fact)


def list_merge_requests(call: Call, project: str) -> Response:
    """The merge requests of a project, by default the newest first."""
    call.only("state", "source_branch", "target_branch", "order_by", "sort", "scope", "search", "labels", "iids")
    if (scope := call.text("scope", "all")) != "all":
        raise responses.unmodelled(f"the scope {scope} of merge requests")
    record = call.project(project)
    state = call.choice("state", ("opened", "closed", "locked", "merged", "all")) or "all"
    source, target = call.text("source_branch") or None, call.text("target_branch") or None
    order = call.choice("order_by", ("created_at", "updated_at", "title")) or "created_at"
    rising = call.choice("sort", ("asc", "desc")) == "asc"
    wanted = set(call.strings("labels") or ())
    iids, search = call.strings("iids"), call.text("search").lower()
    found = [
        pull
        for pull in call.forge.pull_requests(record.path, source_branch=source, target_branch=target)
        if state in ("all", _STATES[pull.state])
        and wanted <= set(pull.labels)
        and (iids is None or str(pull.number) in iids)
        and (search in pull.title.lower() or search in pull.description.lower())
    ]

    def key(pull: PullRecord) -> tuple[str, int]:
        created = bodies.moment(pull.created_at)
        updated = str(pull.settings.get("updated_at", created))
        return {"created_at": created, "updated_at": updated, "title": pull.title.lower()}[order], pull.number

    return call.page(
        sorted(found, key=key, reverse=not rising),
        "gl-mrs",
        show=lambda pull: _shown(call, record, pull, _status(call, record, pull)),
        id=record.id,
        state=state,
    )


# Opening and changing


def _titled(title: str) -> dict[str, Any]:
    """Split a title into the forge's title and the draft prefix."""
    plain = quick_actions.without_prefix(title)
    return {"title": plain, "draft": plain != title, "prefix": title[: len(title) - len(plain)]}


def _reviewers(call: Call, named: list[str]) -> list[str]:
    """The new reviewers. Users that may not read the project are dropped, and the free tier keeps one reviewer."""
    names = {number: name for name, number in call.state.users.items() if name not in call.state.outsiders}
    numbers = call.strings("reviewer_ids") or []
    if not all(number.isdecimal() for number in numbers):
        raise invalid("reviewer_ids is invalid")
    asked = [names[int(number)] for number in numbers if int(number) in names]
    everyone = list(dict.fromkeys([*asked, *(name for name in named if name in names.values())]))
    return everyone if call.state.premium else everyone[:1]


def create_merge_request(call: Call, project: str) -> Response:
    """Open a merge request. The quick actions in the description are executed and removed."""
    call.only(*_CHANGED, "source_branch", "target_branch")
    record = call.writable(project)
    title, source, target = call.require("title", "source_branch", "target_branch")
    done = quick_actions.executed(title, call.text("description"))
    target = done.target_branch or target
    _check_branches(call, record, source, target)
    titled = _titled(done.title)
    try:
        pull = call.forge.open_pull_request(
            record.path,
            source_branch=source,
            target_branch=target,
            title=titled["title"],
            description=done.description,
            draft=titled["draft"],
            labels=tuple(dict.fromkeys([*(call.strings("labels") or []), *done.labels])),
            reviewers=tuple(_reviewers(call, done.reviewers)),
            allow_empty=True,
            settings={"draft_prefix": titled["prefix"], "author": call.state.acting, **_chosen(call, record)},
        )
    except AlreadyExistsError as error:
        raise _second(error) from None
    if done.closed:
        pull = _updated(call, record, pull, state=PullRequestState.CLOSED)
    body = _shown(call, record, pull, "not_open" if done.closed else "checking")
    if call.state.late_sha:
        body |= {"sha": None, "diff_refs": {"base_sha": None, "head_sha": None, "start_sha": None}}
    return reply(body, "gl-mr-created", status=201, effect=True)


def _second(error: AlreadyExistsError) -> Refusal:
    text = f"Another open merge request already exists for this source branch: !{error.existing.number}"
    return Refusal(409, [text], "gl-mr-exists")


def _chosen(call: Call, record: RepoRecord) -> dict[str, bool]:
    """The flags for a later merge, with the project's settings as defaults."""
    squash, remove = call.flag("squash"), call.flag("remove_source_branch")
    if squash is None:
        squash = bodies.setting(record, "squash_option") in ("default_on", "always")
    if remove is None:
        remove = bool(bodies.setting(record, "remove_source_branch_after_merge"))
    return {"squash": squash, "force_remove_source_branch": remove}


def _check_branches(call: Call, record: RepoRecord, source: str, target: str) -> None:
    if source == target:
        text = "You can't use same project/branch for source and target"
        raise Refusal(422, [text], "gl-mr-same-branch")
    heads = dict(call.forge.branches(record.path))
    for name, branch, fact in (
        ("source_branch", source, "gl-mr-source-missing"),
        ("target_branch", target, "gl-mr-target-missing"),
    ):
        if branch not in heads or call.state.stale_reads.count((record.id, branch)):
            raise Refusal(400, {"message": {name: ["does not exist"]}}, fact)


def update_merge_request(call: Call, project: str, iid: str) -> Response:
    """Change a merge request. The quick actions in a new description are executed."""
    call.only(*_CHANGED, "state_event", "add_labels", "remove_labels")
    record = call.writable(project)
    pull = _found(call, record, iid)
    event = call.choice("state_event", ("close", "reopen"))
    changed = _changes(call, pull)
    if not changed and event is None:
        names = "title, description, labels, add_labels, remove_labels, reviewer_ids, squash, state_event"
        raise invalid(f"{names} are missing, at least one parameter must be provided", "gl-param-missing")
    # An event that does not apply to the present state changes nothing, and is no error.
    state = None
    if event == "close" and pull.state is PullRequestState.OPEN:
        state = PullRequestState.CLOSED
    elif event == "reopen" and pull.state is PullRequestState.CLOSED:
        state = PullRequestState.OPEN
    try:
        pull = _updated(call, record, pull, state=state, **changed)
    except AlreadyExistsError as error:
        raise _second(error) from None
    return reply(_shown(call, record, pull, _status(call, record, pull)), "gl-mr-updated", effect=True)


def _updated(
    call: Call, record: RepoRecord, pull: PullRecord, *, state: PullRequestState | None = None, **changed: Any
) -> PullRecord:
    """Store changes, and when they happened. The user who closes it is noted too."""
    now = bodies.moment(call.state.now())
    settings = {**changed.pop("settings", {}), "updated_at": now}
    if state is PullRequestState.CLOSED:
        settings |= {"ended_at": now, "ended_by": call.state.acting}
    return call.forge.update_pull_request(record.path, pull.number, state=state, settings=settings, **changed)


def _changes(call: Call, pull: PullRecord) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    settings = dict(pull.settings)
    if call.text("title"):
        titled = _titled(call.text("title"))
        settings["draft_prefix"] = titled.pop("prefix")
        changed |= titled
    done = quick_actions.executed(pull.title, call.text("description"))
    if call.params.get("description") is not None:
        changed["description"] = done.description
    labels = call.strings("labels")
    named = [*(pull.labels if labels is None else labels), *(call.strings("add_labels") or []), *done.labels]
    gone = call.strings("remove_labels") or []
    kept = tuple(dict.fromkeys(name for name in named if name not in gone))
    if kept != pull.labels:
        changed["labels"] = kept
    if call.params.get("reviewer_ids") is not None or done.reviewers:
        changed["reviewers"] = tuple(_reviewers(call, done.reviewers))
    for name, kept_as in (("squash", "squash"), ("remove_source_branch", "force_remove_source_branch")):
        if (flag := call.flag(name)) is not None:
            settings[kept_as] = flag
    if settings != pull.settings:
        changed["settings"] = settings
    return changed


# Merging


def merge(call: Call, project: str, iid: str) -> Response:
    """Merge, with GitLab's order of checks: 400, 401, 409, the squash flag, 405, 422."""
    record = call.project(project)
    pull = _found(call, record, iid)
    if call.state.requires_sha and not call.text("sha"):
        raise Refusal(400, "SHA must be provided when merging", "gl-merge-sha-needed")
    if record.archived or not Guard(call.state, record.path).may_update(pull.target_branch):
        raise Refusal(401, "401 Unauthorized", "gl-merge-unauthorized")
    _check_sha(call, pull)
    flagged = bool(call.flag("squash")) and not pull.settings.get("squash")
    if flagged:
        pull = _keep(call, record, pull, squash=True)
    status = _status(call, record, pull)
    wants_auto = bool(call.flag("auto_merge") or call.flag("merge_when_pipeline_succeeds"))
    if status in ("mergeable", "ci_must_pass", "ci_still_running") and (
        call.state.auto_merges or (wants_auto and status != "mergeable")
    ):
        pull = _keep(call, record, pull, auto_merge=True)
        return reply(_shown(call, record, pull, "ci_still_running"), "gl-merge-auto", effect=True)
    if status != "mergeable":
        raise Refusal(405, "405 Method Not Allowed", "gl-merge-refused", effect=flagged)
    return _merged(call, record, pull)


def _keep(call: Call, record: RepoRecord, pull: PullRecord, **settings: Any) -> PullRecord:
    return _updated(call, record, pull, settings=settings)


def _merged(call: Call, record: RepoRecord, pull: PullRecord) -> Response:
    if bodies.setting(record, "squash_option") == "always" and not pull.settings.get("squash"):
        pull = _keep(call, record, pull, merge_error=_SQUASH_NEEDED)
        if call.state.hides_merge_errors:
            return reply(_shown(call, record, pull, "mergeable"), "gl-merge-error-hidden", effect=True)
        raise Refusal(422, "Branch cannot be merged", "gl-merge-failed", effect=True)
    try:
        done = _perform(call, record, pull)
    except (NotMergeableError, NotFoundError):
        raise Refusal(422, "Branch cannot be merged", "gl-merge-failed") from None
    remove = call.flag("should_remove_source_branch")
    done |= {"should_remove_source_branch": remove, "ended_by": call.state.acting}
    done["ended_at"] = bodies.moment(call.state.now())
    pull = _keep(call, record, call.forge.pull_request(record.path, pull.number), merge_error=None, **done)
    if pull.settings.get("force_remove_source_branch") if remove is None else remove:
        _remove_source(call, record, pull)
    call.state.stale_reads.start(("locked", record.id, pull.number), call.state.locked_for)
    if call.state.locked_for:
        return reply(_shown(call, record, pull, "not_open", state="locked"), "gl-merge-locked", effect=True)
    return reply(_shown(call, record, pull, "not_open"), "gl-merge-done", effect=True)


def _perform(call: Call, record: RepoRecord, pull: PullRecord) -> dict[str, Any]:
    """Move the target branch, and return the settings that the merge request keeps."""
    forge, path = call.forge, record.path
    fast_forward = bodies.setting(record, "merge_method") == "ff"
    message = call.text("merge_commit_message") or (
        f"Merge branch '{pull.source_branch}' into '{pull.target_branch}'\n\n{pull.title}\n\n"
        f"See merge request {path}!{pull.number}"
    )
    if not _squashes(record, pull):
        method = MergeMethod.REBASE if fast_forward else MergeMethod.MERGE
        text = None if fast_forward else message
        forge.merge(path, pull.number, method=method, expected_head=pull.head_sha, message=text, bypass=True)
        return {"fast_forward": fast_forward}
    text = call.text("squash_commit_message") or pull.title
    squashed = forge.merge(
        path, pull.number, method=MergeMethod.SQUASH, expected_head=pull.head_sha, message=text, bypass=True
    )
    kept: dict[str, Any] = {"fast_forward": fast_forward, "squash_commit_sha": squashed.merge_commit_sha}
    if not fast_forward:
        kept["merge_commit_sha"] = _join(call, record, squashed, message)
    return kept


def _join(call: Call, record: RepoRecord, squashed: PullRecord, message: str) -> str:
    """Add the merge commit on top of the squash commit, for projects that use merge commits."""
    forge, path, sha = call.forge, record.path, squashed.merge_commit_sha
    assert sha is not None
    tree = forge.read_commit(path, sha).tree
    top = forge.write_commit(
        path,
        tree=tree,
        parents=[squashed.base_sha, sha],
        message=message,
        author=call.state.identity,
        committer=call.state.identity,
    )
    forge.move_branch(path, squashed.target_branch, top, expected=sha, bypass=True)
    return top


def _remove_source(call: Call, record: RepoRecord, pull: PullRecord) -> None:
    """Delete the source branch after a merge. GitLab ignores an error."""
    branch = pull.source_branch
    if branch == record.default_branch or Guard(call.state, record.path).covers(branch):
        return
    with suppress(GitProviderError):
        call.forge.delete_branch(record.path, branch, expected=pull.head_sha, bypass=True)


def _check_sha(call: Call, pull: PullRecord) -> None:
    sha = call.text("sha")
    if sha and sha != pull.head_sha:
        text = f"SHA does not match HEAD of source branch: {pull.head_sha}"
        raise Refusal(409, text, "gl-merge-sha")


# Approvals: https://docs.gitlab.com/api/merge_request_approvals/


def approve(call: Call, project: str, iid: str) -> Response:
    """Approve a merge request as the token's user, once."""
    record = call.writable(project)
    pull = _found(call, record, iid)
    _check_sha(call, pull)
    if call.state.acting in pull.approvals:
        raise Refusal(401, "401 Unauthorized", "gl-mr-approved-already")
    call.forge.approve(record.path, pull.number, call.state.acting)
    pull = _updated(call, record, pull)
    return reply(_approvals(call, record, pull), "gl-mr-approved", status=201, effect=True)


def get_approvals(call: Call, project: str, iid: str) -> Response:
    """Who has approved a merge request, and how many approvals it still needs."""
    record = call.project(project)
    return reply(_approvals(call, record, _found(call, record, iid)), "gl-mr-approvals")


def _approvals(call: Call, record: RepoRecord, pull: PullRecord) -> dict[str, Any]:
    protection = call.forge.protection(record.path, pull.target_branch)
    required = protection.required_approvals if protection is not None else 0
    body = _shown(call, record, pull, _status(call, record, pull))
    names = ("id", "iid", "project_id", "title", "description", "state", "created_at", "updated_at", "merge_status")
    return {
        **{name: body[name] for name in names},
        "approved": bool(pull.approvals) and len(pull.approvals) >= required,
        "approvals_required": required,
        "approvals_left": max(0, required - len(pull.approvals)),
        "user_has_approved": call.state.acting in pull.approvals,
        "user_can_approve": call.state.acting not in ("", *pull.approvals) and call.state.role >= DEVELOPERS,
        "approved_by": [
            {"user": bodies.user(call.site, name, call.state.user_id(name))} for name in sorted(pull.approvals)
        ],
    }
