"""Endpoints for trees and files: https://docs.gitlab.com/api/repository_files/ ."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import pygit2

from gitprovider.fakes.gitlab import commits, responses
from gitprovider.fakes.gitlab.access import Guard
from gitprovider.fakes.gitlab.call import Call
from gitprovider.fakes.gitlab.objects import last_commit, resolve
from gitprovider.fakes.gitlab.responses import Refusal, invalid, reply
from gitprovider.fakes.http import Response
from gitprovider.local.git import opened

# Reads


def list_tree(call: Call, project: str) -> Response:
    """The entries of a directory at a ref. ``recursive`` includes all levels."""
    call.only("path", "ref", "recursive")
    record = call.project(project)
    path = call.text("path").strip("/")
    with opened(record.git_dir, record.path) as repository:
        found = resolve(repository, record, call.text("ref", "HEAD"))
        top: Any = found.tree if found is not None else None
        if top is not None and path:
            entry = repository.entry(top, path)
            top = repository.find(entry.sha) if entry is not None else None
        if not isinstance(top, pygit2.Tree):
            raise responses.missing("Tree", "gl-tree-missing")
        rows = _rows(top, f"{path}/" if path else "", recursive=bool(call.flag("recursive")))
    keys = {name: call.params[name] for name in ("path", "ref", "recursive") if name in call.params}
    return call.page(rows, "gl-tree", id=record.id, **keys)


def _rows(tree: pygit2.Tree, prefix: str, *, recursive: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for entry in tree:
        path = f"{prefix}{entry.name}"
        mode = f"{int(entry.filemode):06o}"
        kind = {"040000": "tree", "160000": "commit"}.get(mode, "blob")
        rows.append({"id": str(entry.id), "name": entry.name, "type": kind, "path": path, "mode": mode})
        if recursive and isinstance(entry, pygit2.Tree):
            rows += _rows(entry, f"{path}/", recursive=True)
    return rows


def _file(call: Call, project: str, path: str) -> tuple[dict[str, Any], bytes]:
    record = call.project(project)
    [ref] = call.require("ref")
    with opened(record.git_dir, record.path) as repository:
        head = resolve(repository, record, ref)
        if head is None:
            raise responses.missing("Commit", "gl-file-commit-missing")
        entry = repository.entry(head.tree, path)
        blob = repository.find(entry.sha) if entry is not None else None
        if entry is None or not isinstance(blob, pygit2.Blob):
            raise responses.missing("File", "gl-file-missing")
        last = last_commit(repository, head, path) or head
        facts = {
            "file_name": path.rpartition("/")[2],
            "file_path": path,
            "size": blob.size,
            "encoding": "base64",
            "content_sha256": hashlib.sha256(blob.data).hexdigest(),
            "ref": ref,
            "blob_id": str(blob.id),
            "commit_id": str(head.id),
            "last_commit_id": str(last.id),
            "execute_filemode": entry.mode == "100755",
        }
        return facts, blob.data


def get_file(call: Call, project: str, path: str) -> Response:
    """A file with its content."""
    facts, data = _file(call, project, path)
    body = {**facts, "content": base64.b64encode(data).decode()}
    return reply(body, "gl-file", headers=_as_headers(facts))


def head_file(call: Call, project: str, path: str) -> Response:
    """A file's attributes as headers."""
    return reply(None, "gl-file-head", headers=_as_headers(_file(call, project, path)[0]))


def _as_headers(facts: Mapping[str, Any]) -> dict[str, str]:
    named = {f"X-Gitlab-{name.replace('_', '-').title()}": str(value) for name, value in facts.items()}
    return named | {"X-Gitlab-Execute-Filemode": str(facts["execute_filemode"]).lower()}


def get_raw_file(call: Call, project: str, path: str) -> Response:
    """A file's bytes. The default ref is the default branch."""
    call.params = {"ref": "HEAD", **call.params}
    facts, data = _file(call, project, path)
    headers = {"Content-Type": "text/plain", **_as_headers(facts)}
    return Response(status=200, headers=headers, body=data, fact="gl-file-raw")


# Writes


def create_file(call: Call, project: str, path: str) -> Response:
    """Commit a new file."""
    return _written(call, project, "create", path)


def update_file(call: Call, project: str, path: str) -> Response:
    """Commit new content of a file."""
    return _written(call, project, "update", path)


def delete_file(call: Call, project: str, path: str) -> Response:
    """Commit the deletion of a file."""
    return _written(call, project, "delete", path)


def _written(call: Call, project: str, kind: str, path: str) -> Response:
    record = call.writable(project)
    branch, message = call.require("branch", "commit_message")
    if kind != "delete" and call.params.get("content") is None:
        raise invalid("content is missing", "gl-param-missing")
    encoding = call.choice("encoding", ("base64", "text"))
    if not Guard(call.state, record.path).may("push", branch):
        raise Refusal(400, "You are not allowed to push into this branch", "gl-file-push-denied")
    known = {"file_path": path, "last_commit_id": call.params.get("last_commit_id")}
    actions = [{**known, "action": kind, "content": call.text("content"), "encoding": encoding}]
    if kind != "delete" and (executable := call.flag("execute_filemode")) is not None:
        actions.append({"action": "chmod", "file_path": path, "execute_filemode": executable})
    commits.committed(call, record, branch, message, actions)
    if kind == "delete":
        return reply(None, "gl-file-deleted", status=204, effect=True)
    body = {"file_path": path, "branch": branch}
    if kind == "create":
        return reply(body, "gl-file-created", status=201, effect=True)
    return reply(body, "gl-file-updated", effect=True)
