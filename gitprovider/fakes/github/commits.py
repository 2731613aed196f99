"""Endpoints for refs, Git objects, commits and file contents."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import quote

from gitprovider import checks
from gitprovider.errors import InvalidRequestError, NotFoundError, PermissionDeniedError
from gitprovider.fakes.github import objects
from gitprovider.fakes.github.bodies import Body
from gitprovider.fakes.github.call import Call
from gitprovider.fakes.github.responses import Refusal, not_supplied, page, reply, window
from gitprovider.fakes.github.rulesets import enforce
from gitprovider.fakes.http import Response
from gitprovider.local.git import CommitRecord
from gitprovider.models import Author, PutFile

_HEADS = "refs/heads/"
_KINDS = {"100644": "blob", "100755": "blob", "120000": "blob", "040000": "tree", "160000": "commit"}
# GitHub times out above about this many files with inline content.
_MAX_INLINE = 250
# The commits in a comparison that is not paged.
_MAX_COMPARED = 250


# Refs


def get_ref(call: Call, ref: str) -> Response:
    """A branch as a ref."""
    _refuse_empty(call)
    branch = _branch_of(f"refs/{ref}", "gh-ref-not-found")
    if call.state.stale_reads.count(("ref", call.record.id, branch)):
        raise Refusal("gh-ref-lag")
    sha = call.forge.head(call.path, branch)
    return reply(call.bodies.ref(call.record, _HEADS + branch, sha), "gh-ref")


def list_matching_refs(call: Call, ref: str) -> Response:
    """The branches whose refs start with a prefix."""
    _refuse_empty(call)
    found = [(f"{_HEADS}{name}", sha) for name, sha in call.forge.branches(call.path)]
    bodies = [call.bodies.ref(call.record, name, sha) for name, sha in found if name.startswith(f"refs/{ref}")]
    return page(bodies, "gh-matching-refs", call.request, f"{call.by_id}/git/matching-refs/{quote(ref)}")


def create_ref(call: Call) -> Response:
    """Create a branch."""
    asked = call.fields({"ref": str, "sha": str})
    _refuse_empty(call)
    branch = _branch_of(asked["ref"], "gh-ref-name")
    enforce(call.record, branch, "creation", fact="gh-rule-creation")
    if not checks.is_sha(asked["sha"]):
        raise Refusal("gh-object-missing")
    call.forge.create_branch(call.path, branch, asked["sha"])
    call.state.stale_reads.start(("ref", call.record.id, branch), call.state.ref_lag)
    body = call.bodies.ref(call.record, asked["ref"], asked["sha"])
    return reply(body, "gh-ref-created", status=201, headers={"Location": body["url"]}, effect=True)


def update_ref(call: Call, ref: str) -> Response:
    """Move a branch."""
    asked = call.fields({"sha": str}, {"force": bool})
    _refuse_empty(call)
    branch, force = _branch_of(f"refs/{ref}", "gh-ref-missing"), bool(asked.get("force"))
    try:
        before = call.forge.head(call.path, branch)
    except NotFoundError:
        raise Refusal("gh-ref-missing") from None
    if not objects.is_kind(call.record, asked["sha"], "commit"):
        raise Refusal("gh-object-missing")
    enforce(call.record, branch, "pull_request", "update")
    if force:
        enforce(call.record, branch, "non_fast_forward")
    bypass = call.bypasses(call.forge.protection(call.path, branch))
    try:
        call.forge.move_branch(call.path, branch, asked["sha"], expected=None, force=force, bypass=bypass)
    except PermissionDeniedError:
        raise _protected(call, branch, asked["sha"], force=force) from None
    body = call.bodies.ref(call.record, _HEADS + branch, asked["sha"])
    return reply(body, "gh-ref-updated", effect=before != asked["sha"])


def delete_ref(call: Call, ref: str) -> Response:
    """Delete a branch."""
    _refuse_empty(call)
    branch = _branch_of(f"refs/{ref}", "gh-ref-missing")
    enforce(call.record, branch, "deletion")
    bypass = call.bypasses(call.forge.protection(call.path, branch))
    try:
        call.forge.delete_branch(call.path, branch, bypass=bypass)
    except PermissionDeniedError:
        raise Refusal("gh-protected-deletion") from None
    return reply(None, "gh-ref-deleted", status=204, effect=True)


def _protected(call: Call, branch: str, sha: str, *, force: bool) -> Refusal:
    """The refusal of a push that the branch's protection forbids."""
    rule = call.forge.protection(call.path, branch)
    if rule is None or rule.require_pull_request:
        return Refusal("gh-protected-commit")
    if force and rule.block_force_push:
        return Refusal("gh-protected-force")
    passed = call.forge.checks(call.path, sha)
    if missing := [name for name in rule.required_checks if passed.get(name) != "success"]:
        return Refusal("gh-protected-check", check=missing[0])
    return Refusal("gh-protected-linear")


# Objects


def create_blob(call: Call) -> Response:
    """Create a blob."""
    asked = call.fields({"content": str}, {"encoding": str})
    _refuse_empty(call)
    encoding = asked.get("encoding") or "utf-8"
    if encoding not in ("utf-8", "base64"):
        raise Refusal("gh-blob-encoding")
    data = asked["content"].encode() if encoding == "utf-8" else _decoded(asked["content"], "gh-blob-encoding")
    sha = call.forge.write_blob(call.path, data)
    url = f"{call.bodies.url(call.record)}/git/blobs/{sha}"
    return reply({"sha": sha, "url": url}, "gh-blob-created", status=201, headers={"Location": url})


def get_blob(call: Call, sha: str) -> Response:
    """A blob with its content."""
    _refuse_empty(call)
    if not checks.is_sha(sha):
        raise Refusal("gh-blob-missing")
    return reply(call.bodies.blob(call.record, sha, call.forge.read_blob(call.path, sha)), "gh-blob")


def create_tree(call: Call) -> Response:
    """Create a tree from entries, on top of a base."""
    asked = call.fields({"tree": list}, {"base_tree": str})
    _refuse_empty(call)
    base = asked.get("base_tree")
    if base is not None and not objects.is_kind(call.record, base, "tree"):
        raise Refusal("gh-tree-base")
    if sum(isinstance(item, dict) and "content" in item for item in asked["tree"]) > _MAX_INLINE:
        raise Refusal("gh-tree-too-big")
    entries = dict(_tree_entry(call, item) for item in asked["tree"])
    sha = call.forge.write_tree(call.path, base, entries)
    body = call.bodies.tree(call.record, sha, objects.items(call.record, sha, recursive=False))
    return reply(body, "gh-tree-created", status=201, headers={"Location": body["url"]})


def _tree_entry(call: Call, item: Any) -> tuple[str, tuple[str, str] | None]:
    if not isinstance(item, dict) or item.get("mode") not in _KINDS:
        raise Refusal("gh-tree-mode")
    mode, sha, content = item["mode"], item.get("sha"), item.get("content")
    try:
        path = checks.check_file_path("path", item.get("path"))
    except InvalidRequestError:
        raise Refusal("gh-tree-path") from None
    if ("sha" in item) == ("content" in item) or not isinstance(content, str | None):
        raise Refusal("gh-tree-content")
    if content is not None:
        return path, (call.forge.write_blob(call.path, content.encode()), mode)
    if sha is None:
        return path, None
    kind = _KINDS[mode]
    # The commit of a submodule is in another repository.
    if kind != "commit" and not objects.is_kind(call.record, sha, kind):
        raise Refusal("gh-tree-blob", sha=sha, kind=kind)
    return path, (sha, mode)


def get_tree(call: Call, name: str) -> Response:
    """A tree. The parameter ``recursive``, whatever its value, includes all levels."""
    _refuse_empty(call)
    sha = objects.tree_of(call.record, name)
    if sha is None:
        raise Refusal("gh-tree-missing")
    found = objects.items(call.record, sha, recursive="recursive" in call.request.query)
    limit = call.state.tree_limit
    return reply(call.bodies.tree(call.record, sha, found[:limit], truncated=len(found) > limit), "gh-tree")


def create_commit(call: Call) -> Response:
    """Create a commit object."""
    people = {"author": dict, "committer": dict}
    asked = call.fields({"message": str, "tree": str}, {"parents": list, **people})
    _refuse_empty(call)
    if not objects.is_kind(call.record, asked["tree"], "tree"):
        raise Refusal("gh-tree-lag")
    parents = asked.get("parents") or []
    if not all(objects.is_kind(call.record, parent, "commit") for parent in parents):
        raise Refusal("gh-commit-parent")
    author, committer = _person(asked.get("author")), _person(asked.get("committer"))
    sha = call.forge.write_commit(
        call.path,
        tree=asked["tree"],
        parents=parents,
        message=asked["message"],
        author=author or call.state.identity,
        committer=committer or author or call.state.identity,
    )
    body = call.bodies.git_commit(call.record, call.forge.read_commit(call.path, sha))
    return reply(body, "gh-commit-created", status=201, headers={"Location": body["url"]})


def get_git_commit(call: Call, sha: str) -> Response:
    """A commit object."""
    _refuse_empty(call)
    if not checks.is_sha(sha):
        raise Refusal("gh-git-commit-missing")
    return reply(call.bodies.git_commit(call.record, call.forge.read_commit(call.path, sha)), "gh-git-commit")


# Commits


def get_commit(call: Call, name: str) -> Response:
    """A commit with its files."""
    _refuse_empty(call)
    commit = call.forge.read_commit(call.path, _resolved(call, name, "gh-commit-missing"))
    files = _files(call, commit.parents[0] if commit.parents else None, commit.sha)
    added, gone = sum(file["additions"] for file in files), sum(file["deletions"] for file in files)
    body = {
        **call.bodies.commit(call.record, commit),
        "stats": {"total": added + gone, "additions": added, "deletions": gone},
        "files": files,
    }
    return reply(body, "gh-commit")


def compare(call: Call, base: str, head: str) -> Response:
    """Compare two commits."""
    _refuse_empty(call)
    old, new = _resolved(call, base, "gh-not-found"), _resolved(call, head, "gh-not-found")
    found = objects.compare(call.record, old, new)
    if found is None:
        raise Refusal("gh-compare-unrelated", base=base, head=head)
    commits = found.commits[:_MAX_COMPARED]
    if call.request.query.keys() & {"page", "per_page"}:
        start, stop = window(call.request)
        commits = found.commits[start:stop]
    bodies = {
        sha: call.bodies.commit(call.record, call.forge.read_commit(call.path, sha))
        for sha in {old, found.merge_base, *commits}
    }
    body = {
        **call.bodies.comparison(call.record, base, head, ahead=len(found.commits), behind=found.behind),
        "base_commit": bodies[old],
        "merge_base_commit": bodies[found.merge_base],
        "commits": [bodies[sha] for sha in commits],
        "files": _files(call, found.merge_base, new),
    }
    return reply(body, "gh-compare")


def _files(call: Call, old: str | None, new: str) -> list[Body]:
    return [call.bodies.file_change(call.record, new, file) for file in objects.changes(call.record, old, new)]


# Contents


def put_contents(call: Call, path: str) -> Response:
    """Create or update a file, with a commit of its own. It can make the first commit of a repository."""
    optional = {"branch": str, "sha": str, "author": dict, "committer": dict}
    asked = call.fields({"message": str, "content": str}, optional)
    branch = asked.get("branch") or call.record.default_branch
    data = _decoded(asked["content"], "gh-contents-base64")
    current = _current_file(call, branch, path)
    if current is not None:
        _check_shown(current, path, asked.get("sha"))
    enforce(call.record, branch, "pull_request", "update", fact="gh-rule-violation-contents")
    commit = _commit_file(call, branch, PutFile(path=path, content=data), asked)
    blob = call.forge.read_entries(call.path, commit.sha, [path])[path]
    assert blob is not None
    body = {
        "content": call.bodies.content(call.record, branch, path, blob.sha, len(data)),
        "commit": call.bodies.git_commit(call.record, commit),
    }
    if current is None:
        return reply(body, "gh-contents-created", status=201, effect=True)
    return reply(body, "gh-contents-updated", effect=True)


def _check_shown(current: str, path: str, shown: str | None) -> None:
    if shown is None:
        raise Refusal("gh-contents-sha")
    if shown != current:
        raise Refusal("gh-contents-stale", path=path, sha=shown)


def _commit_file(call: Call, branch: str, file: PutFile, asked: Body) -> CommitRecord:
    author = _person(asked.get("author")) or _person(asked.get("committer")) or call.state.identity
    try:
        return call.forge.commit_changes(
            call.path,
            branch,
            [file],
            message=asked["message"],
            author=author,
            bypass=call.bypasses(call.forge.protection(call.path, branch)),
            allow_empty=True,
        )
    except PermissionDeniedError:
        raise Refusal("gh-protected-contents") from None


def _current_file(call: Call, branch: str, path: str) -> str | None:
    """The sha of the current file, or None. In an empty repository, any branch may be named."""
    try:
        head = call.forge.head(call.path, branch)
    except NotFoundError:
        if not objects.is_empty(call.record):
            raise Refusal("gh-contents-branch", branch=branch) from None
        enforce(call.record, branch, "creation", fact="gh-rule-violation-contents")
        return None
    found = call.forge.read_entries(call.path, head, [path])[path]
    return None if found is None else found.sha


# Helpers


def _refuse_empty(call: Call) -> None:
    if objects.is_empty(call.record):
        raise Refusal("gh-empty-repo")


def _branch_of(ref: str, fact: str) -> str:
    """The branch that a ref names. The fake server has branches only."""
    branch = ref.removeprefix(_HEADS)
    if branch == ref or not branch:
        raise Refusal(fact, ref=ref)
    return branch


def _resolved(call: Call, name: str, fact: str) -> str:
    """The sha of the commit that a branch's name or a full sha stands for."""
    try:
        return call.forge.head(call.path, name)
    except NotFoundError:
        if objects.is_kind(call.record, name, "commit"):
            return name
        raise Refusal(fact, sha=name) from None


def _decoded(content: str, fact: str) -> bytes:
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError):
        raise Refusal(fact) from None


def _person(asked: dict[str, Any] | None) -> Author | None:
    if asked is None:
        return None
    if absent := [name for name in ("email", "name") if not isinstance(asked.get(name), str)]:
        raise not_supplied("gh-not-supplied", absent)
    return Author(name=asked["name"], email=asked["email"])
