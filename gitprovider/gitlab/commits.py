"""A commit on GitLab: GraphQL reads what is there, one call commits, and the new commit's parent is compared.

The commits API has no upsert: GitLab refuses ``create`` on a file that exists and ``update`` on one that does not, and
an update with the same content makes an empty commit. So the head and what is at the changed paths are read first, in
one query. A server whose GraphQL is too old for the query is read by the REST API: the branch, and the tree of each
directory that a changed path lies in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gitprovider._core.edits import DIRECTORY, EXECUTABLE, PLAIN, Edits, directories, lookup_in, plan
from gitprovider._remote.json_body import base64_of
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation
from gitprovider._remote.response import StatusError
from gitprovider.checks import refuse
from gitprovider.contract import TreeEntry
from gitprovider.errors import (
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    UnexpectedResponseError,
)
from gitprovider.gitlab import convert
from gitprovider.gitlab.client import GitLabClient
from gitprovider.gitlab.endpoints import COMMITS, GRAPHQL, PROJECT, TREE
from gitprovider.gitlab.errors import REPOSITORY_OFF, GraphQLError
from gitprovider.gitlab.refusals import is_absent, read_branch, read_commit, write
from gitprovider.models import Commit, PutFile
from gitprovider.mutations import CommitFiles

_NOTHING = TreeEntry("", "")
PATHS = 100
# https://docs.gitlab.com/api/graphql/reference/#repositoryblobs and #repositorytree
QUERY = """
query touched($project: ID!, $ref: String!, $type: RefType, $paths: [String!]!, $n: Int, $above: [String!]!, $m: Int) {
  project(fullPath: $project) {
    repository {
      empty
      rootRef
      tree(ref: $ref, refType: $type) { lastCommit { sha } }
      blobs(ref: $ref, refType: $type, paths: $paths, first: $n) { nodes { path oid mode } }
      above: blobs(ref: $ref, refType: $type, paths: $above, first: $m) { nodes { path oid mode } }
    }
  }
}
"""
# GitLab refuses a query of a complexity above 250. The fields beside the two lists count about 14. A list of n paths
# with a page of n entries counts (n + 6) * (1 + n / 100), by app/graphql/types/base_field.rb.
_LIMIT, _REST = 250, 14


class CommitCall:
    """State and requests of one ``commit_files`` call."""

    def __init__(self, op: RemoteOperation[GitLabClient], asked: CommitFiles) -> None:
        self._op = op
        self._asked = asked

    def run(self) -> Commit:
        """Read, plan and commit. Changes that change nothing give the head's commit."""
        op, asked = self._op, self._asked
        with op.before("read head"):
            found = self._look()
            edits = plan(asked.changes, lookup_in(found.entries), sha256=len(found.head or "") == 64)
        op.note(base_sha=found.head, files=edits.files, pointers=edits.pointers)
        if edits.effective:
            return self._commit(found.head, actions(edits))
        with op.before("read commit"):
            return read_commit(op, str(found.head), asked.branch)

    def _look(self) -> Seen:
        """The branch's head, and what is at and above the touched paths: one query for each 100 of them, or REST.

        Raises:
            NotFoundError: there is no such branch, and the repository has commits.
            HeadMovedError: the branch is not at the expected head.
            InvalidRequestError: the repository is empty, and this cannot be its first commit.
        """
        asked = self._asked
        first, *further = queries(asked.paths)
        try:
            found = self._query(first, asked.branch, branch=True)
        except GraphQLError as exc:
            if not exc.is_of_the_schema:
                raise
            found, further = self._look_by_rest(), []
        if found.empty:
            self._check_first(found)
        elif found.head is None:
            raise NotFoundError(f"there is no branch {asked.branch!r}")
        if asked.expected_head is not None and found.head != asked.expected_head:
            raise HeadMovedError("the branch is at another commit", expected=asked.expected_head, actual=found.head)
        entries = dict(found.entries)
        if found.head is not None:
            for touched in further:  # by the sha: the branch may move between two queries
                entries |= self._query(touched, found.head, branch=False).entries
        return replace(found, entries=entries)

    def _query(self, touched: Touched, ref: str, *, branch: bool) -> Seen:
        body = {"query": QUERY, "variables": touched.variables(self._op.repo, ref, branch=branch)}
        project = convert.graphql(self._op.request("POST", GRAPHQL, body=body)).object_or_none("project")
        repository = project.object_or_none("repository") if project else None
        if repository is None:
            # GraphQL returns null for a missing, an invisible and a moved project. The REST API tells them apart.
            self._op.request("GET", PROJECT, project=self._op.repo)
            raise PermissionDeniedError(
                "the project's repository cannot be read", hint=REPOSITORY_OFF, code="repository-off"
            )
        return seen(repository)

    def _look_by_rest(self) -> Seen:
        """What the query would find, for a server that does not know its types or arguments."""
        op = self._op
        try:
            head = read_branch(op, self._asked.branch).sha
        except StatusError as exc:
            meant = op.meaning(exc)
            if not is_absent(exc, "Branch") and meant.code != "repository-off":
                raise
            project = op.read(PROJECT, project=op.repo)
            if meant.code is not None and not convert.is_only_empty(project):
                raise
            return Seen(project.bool_or_none("empty_repo") is True, project.str_or_none("default_branch"), None, {})
        entries: dict[str, TreeEntry] = {}
        for directory in ["", *dict.fromkeys(above for path in self._asked.paths for above in directories(path))]:
            if directory == "" or entries.get(directory, _NOTHING).mode == DIRECTORY:
                query = {"ref": head, "path": directory}
                rows = op.pages(TREE, lambda row: row, query=query, project=op.repo)
                entries |= {row.str("path"): TreeEntry(row.str("id"), row.str("mode")) for row in rows}
        return Seen(empty=False, default_branch=None, head=head, entries=entries)

    def _check_first(self, found: Seen) -> None:
        branch, default = self._asked.branch, found.default_branch
        if default is None:
            default = convert.repo(self._op.read(PROJECT, project=self._op.repo)).default_branch
        if branch != default:
            refuse("branch", f"is {branch!r}; in an empty repository it must be the default one, {default!r}")
        if not all(isinstance(change, PutFile) for change in self._asked.changes):
            refuse("changes", "must all be PutFile: the repository is empty, there is nothing to delete or move")

    def _commit(self, head: str | None, chosen: Sequence[dict[str, Any]]) -> Commit:
        """Commit, and compare the new commit's parent with the head that was read.

        Raises:
            HeadMovedError: with outcome PARTIAL: the commit is there, on another head.
        """
        op = self._op
        now, later = list(chosen), []
        if head is None:
            # An empty project takes only "create". A second commit makes files executable.
            now = [action for action in chosen if action["action"] == "create"]
            later = [action for action in chosen if action["action"] != "create"]
        with op.effect(self._asked.effect):
            made = self._send(now, head)
            op.done(self._asked.effect, made)
        with op.after("compare"):
            self._compare(made, head)
        if later:
            op.note(base_sha=made.sha)
            with op.after("make executable"):
                op.sending()
                first, made = made, self._send(later, made.sha)
                op.done("make executable", made)
            with op.after("compare"):
                self._compare(made, first.sha)
        return made

    def _send(self, chosen: Sequence[dict[str, Any]], head: str | None) -> Commit:
        asked = self._asked
        body: dict[str, Any] = {"branch": asked.branch, "commit_message": asked.message}
        if asked.author is not None:
            body |= {"author_name": asked.author.name, "author_email": asked.author.email}
        body["actions"] = list(chosen)
        try:
            made = convert.commit(
                JsonReader(write(self._op, "POST", COMMITS, project=self._op.repo, body=body)), asked.branch
            )
        except StatusError as exc:
            raise self._explain_refusal(self._op.meaning(exc), head) from exc
        if made.message.split() != asked.message.split():
            raise UnexpectedResponseError(
                f"GitLab returned a commit {made.sha} with another message", outcome=Outcome.UNKNOWN
            )
        return made

    def _explain_refusal(self, refused: GitProviderError, head: str | None) -> GitProviderError:
        """Read the branch to explain a moved head: it may have moved, or something that no list shows is there.

        Where GitLab could not move the branch, the head read afterwards decides. If it is unmoved, the same call may
        succeed. If it cannot be read, the outcome is unknown. If it moved, the new head may be this commit.
        """
        if not isinstance(refused, HeadMovedError):
            return refused
        known: dict[str, Any] = {"status": refused.status, "request_id": refused.request_id}
        raced = refused.code == "raced"
        actual: str | None = None
        try:
            actual = read_branch(self._op, self._asked.branch).sha
            ours = raced and actual not in (head, None) and self._may_be_ours(actual, head)
        except Exception as exc:
            if not raced:  # GitLab's own message remains
                return refused
            if head is not None or not isinstance(exc, StatusError) or not is_absent(exc, "Branch"):
                return ProviderUnavailableError(refused.message, outcome=Outcome.UNKNOWN, **known)
            ours = False
        refused.expected, refused.actual = head, actual
        if ours:
            refused.outcome = Outcome.UNKNOWN
        if actual != head:
            return refused
        if raced:
            return ProviderUnavailableError(
                refused.message, hint="the branch has not moved; the same call is safe", **known
            )
        return InvalidRequestError(
            f"changes: {refused.message}",
            argument="changes",
            hint="a submodule or a directory may be at a touched path",
            **known,
        )

    def _may_be_ours(self, sha: str, head: str | None) -> bool:
        found = read_commit(self._op, sha)
        return found.parent == head and found.message.split() == self._asked.message.split()

    def _compare(self, made: Commit, head: str | None) -> None:
        if made.parent != head:
            raise HeadMovedError(
                "the branch moved while the commit was made: its parent is not the head that was read",
                expected=head,
                actual=made.parent,
                hint="the commit is there; look at its parent, and revert the commit if it must not stay",
            )


@dataclass(frozen=True, slots=True)
class Touched:
    """What one query asks for: paths that change, and directories above them, which must not be files."""

    paths: tuple[str, ...]
    above: tuple[str, ...]

    def variables(self, project: str, ref: str, *, branch: bool) -> dict[str, Any]:
        """The query's variables. ``ref`` is the name of a branch, or a sha."""
        return {
            "project": project,
            "ref": ref,
            "type": "HEADS" if branch else None,
            "paths": list(self.paths),
            "n": max(len(self.paths), 1),
            "above": list(self.above),
            "m": max(len(self.above), 1),
        }


@dataclass(frozen=True, slots=True)
class Seen:
    """What the queries found.

    Attributes:
        empty: whether the repository has no commits.
        default_branch: the name that a first commit's branch must have; None where the host does not say.
        head: the branch's head; None when there is no such branch.
        entries: per touched path, or path above one, what is there.
    """

    empty: bool
    default_branch: str | None
    head: str | None
    entries: dict[str, TreeEntry]


def queries(paths: Sequence[str]) -> list[Touched]:
    """One query per 100 paths, and more where these lie in so many directories that GitLab would refuse the query."""
    above = [*dict.fromkeys(directory for path in paths for directory in directories(path))]
    found: list[Touched] = []
    while paths or above:
        now, paths = paths[:PATHS], paths[PATHS:]
        room = _LIMIT - _REST - _cost(len(now))
        fit = max((count for count in range(min(len(above), PATHS) + 1) if _cost(count) <= room), default=0)
        found.append(Touched(tuple(now), tuple(above[:fit])))
        above = above[fit:]
    return found


def _cost(count: int) -> float:
    return (count + 6) * (1 + max(count, 1) / 100)


def seen(repository: JsonReader) -> Seen:
    """What one response says. A path that is not there is not among the nodes."""
    tree = repository.object_or_none("tree")
    last = tree.object_or_none("lastCommit") if tree else None
    nodes = [node for name in ("blobs", "above") for node in repository.object(name).objects("nodes")]
    return Seen(
        empty=repository.bool("empty"),
        default_branch=repository.str_or_none("rootRef") or None,
        head=last.str("sha") if last else None,
        # Git writes a directory's mode without the leading zero.
        entries={node.str("path"): TreeEntry(node.str("oid"), node.str("mode").zfill(6)) for node in nodes},
    )


def actions(edits: Edits) -> list[dict[str, Any]]:
    """The actions that carry out the edits that change something, in the same order."""
    found: list[dict[str, Any]] = []
    for edit in edits.effective:
        if edit.moved_from is not None:
            found.append({"action": "move", "previous_path": edit.moved_from, "file_path": edit.path})
        elif edit.after is None:
            if edit.moved_to is None:
                found.append({"action": "delete", "file_path": edit.path})
        else:
            if edit.before is None or edit.before.sha != edit.after.sha:
                verb = "create" if edit.before is None else "update"
                found.append({"action": verb, "file_path": edit.path, **encoded(edit.data or b"")})
            if edit.after.mode != (PLAIN if edit.before is None else edit.before.mode):
                # create and update do not take the bit.
                executable = edit.after.mode == EXECUTABLE
                found.append({"action": "chmod", "file_path": edit.path, "execute_filemode": executable})
    return found


def encoded(data: bytes) -> dict[str, Any]:
    """A file's content as the API takes it: text where that is safe, else base64."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    # GitLab's own guard refuses a NUL in a parameter. Other control characters are not text either.
    if text is not None and re.search(r"[\x00-\x08\x0b-\x1f]", text) is None:
        return {"content": text, "encoding": "text"}
    return {"content": base64_of(data), "encoding": "base64"}
