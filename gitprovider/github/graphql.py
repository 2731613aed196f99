"""The two GraphQL documents of a commit, and what GitHub says to them. Nothing is sent here.

GitHub answers a refusal with status 200 and ``errors``. A path that does not exist is null and has an error of its own,
beside good data.

https://docs.github.com/graphql/reference/mutations#createcommitonbranch
"""

from __future__ import annotations

import base64
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gitprovider._core.edits import EXECUTABLE, PLAIN, Edit, directories
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.response import BodyError, Response
from gitprovider.contract import TreeEntry
from gitprovider.models import Branch, Commit
from gitprovider.mutations import CommitFiles

_MUTATION = "createCommitOnBranch"
# Each name is an alias of the query. GitHub documents no limit of aliases, but 10 seconds for a query.
_NAMES = 200
# Reported: 37.5 MB of content pass and 40 MiB do not.
# https://github.com/grafana/github-api-commit-action/issues/66
_BODY_BYTES = 40_000_000
_COMMIT = f"""
mutation commit($input: CreateCommitOnBranchInput!) {{
  {_MUTATION}(input: $input) {{
    commit {{ oid message url parents(first: 2) {{ nodes {{ oid }} }} }}
    ref {{ name prefix }}
  }}
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the first query found.

    Attributes:
        commit: the branch's head.
        tree: the sha of its tree.
        ref: the branch's node id.
        can_commit: whether the server has the mutation.
        entries: what is at each path that was asked for and exists.
    """

    commit: Commit
    tree: str
    ref: str
    can_commit: bool
    entries: dict[str, TreeEntry]


def batches(paths: Sequence[str]) -> list[list[str]]:
    """Return the paths and every directory above one of them, in batches that one query asks for."""
    names = list(dict.fromkeys([*paths, *(above for path in paths for above in directories(path))]))
    return [names[start : start + _NAMES] for start in range(0, len(names), _NAMES)]


def head_query(repo: str, branch: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the body that asks for a branch's head, its tree, and what is there at ``names``."""
    target = f"message url tree {{ oid }} parents(first: 1) {{ nodes {{ oid }} }} {_files(names)}"
    asked = f"ref(qualifiedName: $at) {{ id name prefix target {{ oid ... on Commit {{ {target} }} }} }}"
    return _query(
        repo,
        "String!",
        f"refs/heads/{branch}",
        asked,
        names,
        'offers: __type(name: "CreateCommitOnBranchInput") { name }',
    )


def paths_query(repo: str, sha: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the body that asks for what is at ``names`` in a commit."""
    asked = f"target: object(oid: $at) {{ oid ... on Commit {{ {_files(names)} }} }}"
    return _query(repo, "GitObjectID!", sha, asked, names)


def _query(repo: str, kind: str, at: str, asked: str, names: Sequence[str], extra: str = "") -> dict[str, Any]:
    owner, _, name = repo.partition("/")
    given = "".join(f", $p{number}: String!" for number in range(len(names)))
    document = (
        f"query touched($owner: String!, $name: String!, $at: {kind}{given}) {{ {extra} "
        f"repository(owner: $owner, name: $name, followRenames: false) {{ nameWithOwner {asked} }} }}"
    )
    paths = {f"p{number}": path for number, path in enumerate(names)}
    return {"query": document, "variables": {"owner": owner, "name": name, "at": at, **paths}}


def _files(names: Sequence[str]) -> str:
    return " ".join(f"f{number}: file(path: $p{number}) {{ oid mode }}" for number in range(len(names)))


def refusal(response: Response) -> Response | None:
    """Return the response with the words of its errors as its message, or None if its data can be used.

    A commit that was made can be used, whatever else failed. So can a repository in which some paths do not exist.
    """
    data = response.data
    if not isinstance(data, dict) or not data.get("errors"):
        return None
    given = data["errors"] if isinstance(data["errors"], list) else [data["errors"]]
    errors = [error for error in given if isinstance(error, dict)]
    found = data.get("data")
    fields: dict[str, Any] = found if isinstance(found, dict) else {}
    if fields.get(_MUTATION) is not None:
        return None
    if fields.get("repository") is not None and len(errors) == len(given) and all(map(_is_missing_path, errors)):
        return None
    words = "; ".join(": ".join(str(error[key]) for key in ("type", "message") if error.get(key)) for error in errors)
    return dataclasses.replace(response, data={"message": words or "GraphQL failed without words"})


def _is_missing_path(error: Mapping[str, Any]) -> bool:
    path = error.get("path")
    return (
        error.get("type") == "NOT_FOUND"
        and isinstance(path, list)
        and path[:1] == ["repository"]
        and re.fullmatch(r"f[0-9]+", str(path[-1])) is not None
    )


def head(response: Response, repo: str, branch: str, names: Sequence[str]) -> Seen | None:
    """Read the response to :func:`head_query`. None means that it has no such branch, which proves nothing.

    Raises:
        BodyError: the response is about another repository or branch, or a path is null without an error that says so.
    """
    data = JsonReader(response).object("data")
    repository = data.object("repository")
    _check_same(response, repository.str("nameWithOwner"), repo)
    ref = repository.object_or_none("ref")
    if ref is None:
        return None
    if ref.str("prefix") + ref.str("name") != f"refs/heads/{branch}":
        raise BodyError(f"GitHub returned the ref {ref.str('name')!r}, not {branch!r}", response)
    target = ref.object("target")
    return Seen(
        commit=_commit(target, branch),
        tree=_oid(target.object("tree")),
        ref=ref.str("id"),
        can_commit=data.object_or_none("offers") is not None,
        entries=_entries(target, names, ("repository", "ref", "target")),
    )


def entries(response: Response, repo: str, sha: str, names: Sequence[str]) -> dict[str, TreeEntry]:
    """Read the response to :func:`paths_query`.

    Raises:
        BodyError: the response is about another repository or commit, or as for :func:`head`.
    """
    repository = JsonReader(response).object("data").object("repository")
    _check_same(response, repository.str("nameWithOwner"), repo)
    target = repository.object("target")
    if target.str("oid") != sha:
        raise BodyError(f"GitHub returned the commit {target.str('oid')}, not {sha}", response)
    return _entries(target, names, ("repository", "target"))


def _entries(target: JsonReader, names: Sequence[str], where: tuple[str, ...]) -> dict[str, TreeEntry]:
    errors = target.response.data.get("errors") or []
    missing = {tuple(error["path"]) for error in errors}
    found: dict[str, TreeEntry] = {}
    for number, name in enumerate(names):
        entry = target.object_or_none(f"f{number}")
        if entry is not None:
            # GitHub writes the mode in decimal: 33188 is 100644.
            found[name] = TreeEntry(_oid(entry), f"{entry.int('mode'):06o}")
        elif (*where, f"f{number}") not in missing:
            raise BodyError(f"GitHub says neither what is at {name!r} nor that it is missing", target.response)
    return found


def _check_same(response: Response, returned: str, asked: str) -> None:
    if returned.casefold() != asked.casefold():
        raise BodyError(f"GitHub returned the repository {returned!r}, not {asked!r}", response)


def _oid(fields: JsonReader) -> str:
    return fields.build(Branch, name="any", sha=fields.str("oid")).sha


def _commit(fields: JsonReader, branch: str) -> Commit:
    parents = fields.object("parents").objects("nodes")
    return fields.build(
        Commit,
        sha=fields.str("oid"),
        parent=_oid(parents[0]) if parents else None,
        branch=branch,
        message=fields.str_or_none("message") or "",
        web_url=fields.str_or_none("url"),
    )


def can_carry(asked: CommitFiles, edits: Sequence[Edit]) -> bool:
    """Report whether the mutation makes exactly this commit.

    It cannot set an author or a mode: a file keeps its mode, and a new one is plain. It has no moves. What it does with
    a path that is removed and becomes a directory is not documented, and neither is what it trims from a message.
    """
    paths = {edit.path for edit in edits}
    size = sum(len(edit.data) for edit in edits if edit.data is not None) * 4 // 3
    return (
        bool(edits)
        and asked.author is None
        and size + sum(len(path) for path in paths) + len(asked.message) < _BODY_BYTES
        and _split(asked.message) is not None
        and not any(above in paths for path in paths for above in directories(path))
        and all(_is_plain(edit) for edit in edits)
    )


def _is_plain(edit: Edit) -> bool:
    if edit.moved_from is not None or edit.moved_to is not None:
        return False
    before = None if edit.before is None else edit.before.mode
    if edit.after is None:
        return before in (PLAIN, EXECUTABLE)
    return edit.data is not None and edit.after.mode == (PLAIN if before is None else before)


def _split(message: str) -> tuple[str, str] | None:
    """Return headline and body, if GitHub gives back exactly ``message`` from them; otherwise None."""
    headline, gap, body = message.partition("\n\n")
    lines = message.split("\n")
    survives = (
        all(line == line.rstrip() and "\r" not in line for line in lines)
        and "\n" not in headline
        and headline == headline.strip()
        and body == body.strip()
        and "\n\n" not in body
        and (not gap or bool(body))
    )
    return (headline, body) if headline and survives else None


def commit_mutation(asked: CommitFiles, seen: Seen, edits: Sequence[Edit]) -> dict[str, Any]:
    """Return the body that commits ``edits`` on the head that was seen, and on no other."""
    headline, _, body = asked.message.partition("\n\n")
    given = {
        "branch": {"id": seen.ref},
        "expectedHeadOid": seen.commit.sha,
        "message": {"headline": headline} | ({"body": body} if body else {}),
        "fileChanges": {"additions": list(_additions(edits)), "deletions": list(_deletions(edits))},
    }
    return {"query": _COMMIT, "variables": {"input": given}}


def _additions(edits: Sequence[Edit]) -> Iterator[dict[str, str]]:
    for edit in edits:
        if edit.after is not None:
            yield {"path": edit.path, "contents": base64.b64encode(edit.data or b"").decode()}


def _deletions(edits: Sequence[Edit]) -> Iterator[dict[str, str]]:
    return ({"path": edit.path} for edit in edits if edit.after is None)


def committed(response: Response, asked: CommitFiles, seen: Seen) -> Commit:
    """Read the response to :func:`commit_mutation`, and compare it with what was asked.

    Raises:
        BodyError: it is about another branch, or the commit has another parent or message.
    """
    payload = JsonReader(response).object("data").object(_MUTATION)
    fields = payload.object("commit")
    made = _commit(fields, asked.branch)
    ref = payload.object_or_none("ref")
    differs = [
        what
        for what, same in (
            ("parents", [_oid(node) for node in fields.object("parents").objects("nodes")] == [seen.commit.sha]),
            ("message", made.message.rstrip("\n") == asked.message),
            ("branch", ref is None or ref.str("prefix") + ref.str("name") == f"refs/heads/{asked.branch}"),
        )
        if not same
    ]
    if differs:
        raise BodyError(f"GitHub made the commit {made.sha} with another {', '.join(differs)}", response)
    return made
