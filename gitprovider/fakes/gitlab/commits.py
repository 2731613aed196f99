"""Endpoints for commits: https://docs.gitlab.com/api/commits/ ."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pygit2
from pygit2.enums import SortMode

from gitprovider.errors import AlreadyExistsError, ConflictError
from gitprovider.fakes.gitlab import bodies, responses, statuses
from gitprovider.fakes.gitlab.access import Guard, branch_made
from gitprovider.fakes.gitlab.call import Call
from gitprovider.fakes.gitlab.objects import TAGS, changes, last_commit, resolve, tag_names
from gitprovider.fakes.gitlab.responses import Refusal, invalid, reply
from gitprovider.fakes.http import Response
from gitprovider.local.database import RepoRecord
from gitprovider.local.git import opened
from gitprovider.models import Author

Tree = dict[str, tuple[str, str]]

_ACTIONS = ("create", "update", "delete", "move", "chmod")
_FILE_EXISTS = ("A file with this name already exists", "gl-commit-file-exists")
_FILE_MISSING = ("A file with this name doesn't exist", "gl-commit-file-missing")
_DIRECTORY_EXISTS = ("A directory with this name already exists", "gl-commit-directory-exists")
_TRAVERSAL = ("Path cannot include directory traversal", "gl-commit-path")

# Commits


def get_commit(call: Call, project: str, sha: str) -> Response:
    """A commit by its sha or a branch's name."""
    record = call.project(project)
    with opened(record.git_dir, record.path) as repository:
        found = resolve(repository, record, sha)
        if found is None:
            raise responses.missing("Commit", "gl-commit-missing")
        return reply(_detail(call, record, found), "gl-commit")


def _detail(call: Call, record: RepoRecord, found: pygit2.Commit) -> dict[str, Any]:
    return bodies.commit_detail(call.site, record, found, statuses.pipeline(call.site, record, str(found.id)))


def list_commits(call: Call, project: str) -> Response:
    """The commits of a ref, newest first, that are not older or newer than asked for and change the path."""
    record = call.project(project)
    call.only("ref_name", "since", "until", "path", "author", "first_parent", "with_stats")
    since, until = _moment(call, "since"), _moment(call, "until")
    path, author = call.text("path").strip("/"), call.text("author").lower()
    with opened(record.git_dir, record.path) as repository:
        head = resolve(repository, record, call.text("ref_name") or record.default_branch)
        if head is None:
            raise responses.unmodelled("the list of commits of a ref that does not exist")
        walk = repository.git.walk(head.id, SortMode.TOPOLOGICAL | SortMode.TIME)
        if call.flag("first_parent"):
            walk.simplify_first_parent()
        found = [
            commit
            for commit in walk
            if (since is None or commit.commit_time >= since)
            and (until is None or commit.commit_time <= until)
            and author in f"{commit.author.name} <{commit.author.email}>".lower()
            and (not path or changes(repository, commit, path))
        ]
        show = _detail if call.flag("with_stats") else lambda call, record, one: bodies.commit(call.site, record, one)
        names = ("ref_name", "since", "until", "path", "author", "first_parent", "with_stats")
        keys = {name: call.params[name] for name in names if name in call.params}
        return call.page(
            found, "gl-commits", show=lambda one: show(call, record, one), totals=False, id=record.id, **keys
        )


def _moment(call: Call, name: str) -> float | None:
    text = call.text(name)
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise invalid(f"{name} is invalid") from None
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


def list_refs(call: Call, project: str, sha: str) -> Response:
    """The branches and tags that contain a commit."""
    record = call.project(project)
    kind = call.choice("type", ("branch", "tag", "all")) or "all"
    with opened(record.git_dir, record.path) as repository:
        found = resolve(repository, record, sha)
        if found is None:
            raise responses.missing("Commit", "gl-commit-missing")
        refs = [("branch", name, head) for name, head in repository.branches()]
        for name in tag_names(repository):
            if (commit := resolve(repository, record, TAGS + name)) is not None:
                refs.append(("tag", name, str(commit.id)))
        shown = [
            {"type": one, "name": name}
            for one, name, head in refs
            if kind in ("all", one) and repository.contains(str(found.id), head)
        ]
    return call.page(shown, "gl-commit-refs", id=record.id, type=kind)


def compare(call: Call, project: str) -> Response:
    """The commits and files that only ``to`` has."""
    record = call.project(project)
    source, target = call.require("from", "to")
    with opened(record.git_dir, record.path) as repository:
        ends = [resolve(repository, record, ref) for ref in (source, target)]
        if ends[0] is None or ends[1] is None:
            raise responses.missing("Ref", "gl-compare-missing")
        old, new = str(ends[0].id), str(ends[1].id)
        commits = [bodies.commit(call.site, record, found) for found in repository.commits_between(old, new)]
        base = repository.merge_base(old, new)
        before = repository.files(repository.commit(base).tree) if base else {}
        after = repository.files(ends[1].tree)
        body = {
            "commit": commits[-1] if commits else None,
            "commits": commits,
            "diffs": [
                _diff(path, before.get(path), after.get(path))
                for path in sorted(before.keys() | after.keys())
                if before.get(path) != after.get(path)
            ],
            "compare_timeout": False,
            "compare_same_ref": source == target,
            "web_url": f"{call.site}/{record.path}/-/compare/{source}...{target}",
        }
    return reply(body, "gl-compare")


def get_merge_base(call: Call, project: str) -> Response:
    """The common ancestor of two refs."""
    record = call.project(project)
    refs = call.strings("refs") or []
    if len(refs) < 2:
        raise Refusal(400, "Provide at least 2 refs", "gl-merge-base-refs")
    with opened(record.git_dir, record.path) as repository:
        found = {ref: resolve(repository, record, ref.removeprefix("refs/heads/")) for ref in refs}
        if unknown := [ref for ref, commit in found.items() if commit is None]:
            noun = "ref" if len(unknown) == 1 else "refs"
            raise Refusal(400, f"Could not find {noun}: {', '.join(unknown)}", "gl-merge-base-refs")
        base = repository.merge_base(*(str(commit.id) for commit in found.values() if commit is not None))
        if base is None:
            raise responses.missing("Merge Base", "gl-merge-base-missing")
        return reply(bodies.commit(call.site, record, repository.commit(base)), "gl-merge-base")


def _diff(path: str, before: Any, after: Any) -> dict[str, Any]:
    # A collapsed diff, which GitLab returns if the text is too long.
    return {
        "old_path": path,
        "new_path": path,
        "a_mode": before.mode if before else "0",
        "b_mode": after.mode if after else "0",
        "new_file": before is None,
        "renamed_file": False,
        "deleted_file": after is None,
        "generated_file": None,
        "collapsed": True,
        "too_large": False,
        "diff": "",
    }


def create_commit(call: Call, project: str) -> Response:
    """Create a commit of several actions, on the current head of the branch."""
    record = call.writable(project)
    branch, message = call.require("branch", "commit_message")
    actions = _actions(call)
    if not Guard(call.state, record.path).may("push", branch):
        raise responses.forbidden("gl-push-denied", "You are not allowed to push into this branch")
    sha = committed(call, record, branch, message, actions)
    with opened(record.git_dir, record.path) as repository:
        body = _detail(call, record, repository.commit(sha))
    return reply(body, "gl-commit-created", status=201, effect=True)


def committed(call: Call, record: RepoRecord, branch: str, message: str, actions: Sequence[Mapping[str, Any]]) -> str:
    """Commit the actions on the branch, which the user may push to. Returns the sha."""
    _check_push_rules(call, message)
    base, old = _start(call, record, branch)
    if base is None:
        _check_first(actions)
    before: Tree = {p: (e.sha, e.mode) for p, e in call.forge.read_tree(record.path, base).items()} if base else {}
    after = dict(before)
    for action in actions:
        _check_unchanged(record, base, action)
        _apply(call, record.path, after, action)
    changed = {path: after.get(path) for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    forge = call.forge
    sha = forge.write_commit(
        record.path,
        tree=forge.write_tree(record.path, forge.read_commit(record.path, base).tree if base else None, changed),
        parents=[base] if base else [],
        message=message,
        author=_author(call),
        committer=call.state.identity,
    )
    _publish(call, record, branch, sha, old)
    return sha


def _actions(call: Call) -> list[Mapping[str, Any]]:
    actions = call.params.get("actions")
    if actions is None:
        raise invalid("actions is missing", "gl-param-missing")
    if not isinstance(actions, list) or not all(isinstance(one, dict) for one in actions):
        raise invalid("actions is invalid")
    for index, action in enumerate(actions):
        if action.get("action") not in _ACTIONS:
            raise invalid(f"actions[{index}][action] does not have a valid value")
        needed = ["file_path", *({"update": ["content"], "move": ["previous_path"]}.get(action["action"], []))]
        for name in needed:
            if action.get(name) is None:
                raise invalid(f"actions[{index}][{name}] is missing", "gl-param-missing")
    return actions


def _check_first(actions: Sequence[Mapping[str, Any]]) -> None:
    for action in actions:
        if action["action"] != "create":
            raise Refusal(400, f"No files to {action['action']}.", "gl-commit-empty-project")


def _check_push_rules(call: Call, message: str) -> None:
    pattern = call.state.commit_message_pattern
    if pattern is not None and not re.search(pattern, message):
        raise Refusal(400, f"Commit message does not follow the pattern '{pattern}'", "gl-push-rule")


def _start(call: Call, record: RepoRecord, branch: str) -> tuple[str | None, str | None]:
    """The commit to build on and the current head of the branch. Either may be None."""
    heads = dict(call.forge.branches(record.path))
    start = call.text("start_branch") or branch
    if heads and not call.text("start_sha") and start not in heads:
        text = "You can only create or edit files when you are on a branch"
        raise Refusal(400, text, "gl-commit-no-branch")
    if branch in heads and (call.text("start_sha") or start != branch) and not call.flag("force"):
        text = f"A branch called '{branch}' already exists. Switch to that branch in order to make changes"
        raise Refusal(400, text, "gl-commit-branch-exists")
    base = heads.get(start)
    if sha := call.text("start_sha"):
        with opened(record.git_dir, record.path) as repository:
            found = resolve(repository, record, sha)
        if found is None:
            raise Refusal(400, f"Cannot find start_sha '{sha}'", "gl-commit-start-missing")
        base = str(found.id)
    return base, heads.get(branch)


def _check_unchanged(record: RepoRecord, base: str | None, action: Mapping[str, Any]) -> None:
    """Check ``last_commit_id``: the file must not have changed on the branch since that commit."""
    seen = action.get("last_commit_id")
    if base is None or seen is None or action["action"] not in ("update", "move", "delete"):
        return
    path = str(action.get("previous_path") or action["file_path"])
    with opened(record.git_dir, record.path) as repository:
        then = resolve(repository, record, str(seen))
        now = last_commit(repository, repository.commit(base), path)
        was = last_commit(repository, then, path) if then is not None else None
        if now is not None and was is not None and now.id != was.id:
            text = f"The file has changed since you started editing it: {path}"
            raise Refusal(400, text, "gl-commit-file-changed")


def _apply(call: Call, repo: str, tree: Tree, action: Mapping[str, Any]) -> None:
    """Apply one action to the tree that earlier actions have changed."""
    kind, path = str(action["action"]), str(action["file_path"])
    _check_path(path)
    if kind in ("create", "move"):
        _check_free(tree, path)
    source = str(action["previous_path"]) if kind == "move" else path
    if kind != "create" and source not in tree:
        raise Refusal(400, *_FILE_MISSING)
    current = tree.pop(source) if kind in ("move", "delete") else tree.get(path, ("", "100644"))
    if kind == "delete":
        return
    if kind == "chmod":
        tree[path] = (current[0], "100755" if _truth(action.get("execute_filemode")) else "100644")
    elif kind == "move" and action.get("content") is None:
        tree[path] = current
    else:
        tree[path] = (call.forge.write_blob(repo, _content(action)), current[1])


def _check_path(path: str) -> None:
    parts = path.split("/")
    if not path:
        raise Refusal(400, "You must provide a file path", "gl-commit-path")
    if ".." in parts:
        raise Refusal(400, *_TRAVERSAL)
    if any(part in ("", ".") or part.lower() == ".git" for part in parts):
        raise Refusal(400, f"invalid path: '{path}'", "gl-commit-path")


def _check_free(tree: Tree, path: str) -> None:
    parts = path.split("/")
    if any("/".join(parts[:depth]) in tree for depth in range(1, len(parts) + 1)):
        raise Refusal(400, *_FILE_EXISTS)
    if any(other.startswith(f"{path}/") for other in tree):
        raise Refusal(400, *_DIRECTORY_EXISTS)


def _content(action: Mapping[str, Any]) -> bytes:
    text = str(action.get("content") or "")
    if action.get("encoding", "text") != "base64":
        return text.encode()
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal(400, "illegal base64 data", "gl-commit-base64") from None


def _truth(value: Any) -> bool:
    return str(value).lower() in ("true", "1")


def _author(call: Call) -> Author:
    mine = call.state.identity
    return Author(name=call.text("author_name") or mine.name, email=call.text("author_email") or mine.email)


def _publish(call: Call, record: RepoRecord, branch: str, sha: str, old: str | None) -> None:
    if old is None:
        try:
            call.forge.create_branch(record.path, branch, sha)
        except (AlreadyExistsError, ConflictError):
            text = f"Could not update refs/heads/{branch}. Please refresh and try again."
            raise Refusal(400, text, "gl-commit-moved") from None
        branch_made(call.state, record, branch)
        return
    force = bool(call.flag("force"))
    call.forge.move_branch(record.path, branch, sha, expected=old, force=force, bypass=True)
