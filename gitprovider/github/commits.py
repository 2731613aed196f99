"""Commit files on GitHub: create Git objects, which no branch shows yet, then move the branch's ref without force.

With ``commit_api="auto"``, GraphQL reads what the commit touches, and one mutation commits where it makes exactly the
same commit (adr/0024, adr/0025). Where GraphQL is refused or finds nothing, the REST API reads and decides.

https://docs.github.com/rest/git
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gitprovider._core.edits import DIRECTORY, PLAIN, Edit, Edits, directories, lookup_in, plan
from gitprovider._remote.json_body import Base64, base64_of
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation
from gitprovider._remote.response import BodyError, Response, StatusError
from gitprovider.checks import refuse
from gitprovider.contract import TreeEntry
from gitprovider.errors import (
    ConflictError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitedError,
)
from gitprovider.github import convert, graphql
from gitprovider.github.client import GitHubClient
from gitprovider.github.convert import Head
from gitprovider.github.endpoints import BLOBS, BRANCH, COMMITS, CONTENTS, GRAPHQL, OLD_REF, REF, REPO, TREE, TREES
from gitprovider.models import Commit, PutFile, Repo
from gitprovider.mutations import CommitFiles

_USUAL_BRANCH = "main"
_FILES_PER_TREE = 100
# Reported limit of the inline text of one request: 2.5 MB. Above it, GitHub returns 502, or 422 "timed out".
_INLINE_BYTES = 1_000_000
_INLINE_BYTES_PER_TREE = 2_000_000


@dataclass(slots=True)
class CommitApi:
    """What a provider's commits use.

    Attributes:
        auto: whether ``commit_api`` is ``auto``.
        refused: whether the host refused GraphQL. It is not asked again.
    """

    auto: bool
    refused: bool = False


class CommitCall:
    """State and requests of one ``commit_files`` call. If an author is given, GitHub uses it as the committer too."""

    def __init__(self, op: RemoteOperation[GitHubClient], asked: CommitFiles, api: CommitApi) -> None:
        self._op = op
        self._asked = asked
        self._api = api
        self._author = None if asked.author is None else {"name": asked.author.name, "email": asked.author.email}

    def run(self) -> Commit:
        """Commit the changes on the branch's head, or make the first commit of an empty repository."""
        op, asked = self._op, self._asked
        with op.before("read head"):
            seen = self._look() if self._api.auto and not self._api.refused else None
            head = seen or self._head()
        if head is None:
            return self._first()
        with op.before("read tree"):
            edits = self._plan(head.commit.sha, head.tree, {} if seen is None else seen.entries, known=seen is not None)
        if seen is not None and seen.can_commit and graphql.can_carry(asked, edits.effective):
            return self._commit(seen, edits.effective)
        with op.before("write tree"):
            tree = self._write_tree(head.tree, edits.effective)
        if tree == head.tree:
            return head.commit
        with op.before("write commit"):
            commit = self._write_commit(tree, head.commit.sha)
        with op.effect(asked.effect):
            self._move_branch(commit.sha)
            op.done(asked.effect, commit)
        return commit

    def _look(self) -> graphql.Seen | None:
        """Return what GraphQL finds at the branch. None leaves it to the REST API, which gives a refusal its reason.

        Raises:
            HeadMovedError: the branch is not at the expected commit.
        """
        op, asked = self._op, self._asked
        first, *further = graphql.batches(asked.paths)
        try:
            body = graphql.head_query(op.repo, asked.branch, first)
            seen = graphql.head(self._ask(body), op.repo, asked.branch, first)
            if seen is None:
                return None
            self._check_head(seen.commit.sha)
            for names in further:  # by the sha: the branch may move between two queries
                body = graphql.paths_query(op.repo, seen.commit.sha, names)
                seen.entries.update(graphql.entries(self._ask(body), op.repo, seen.commit.sha, names))
        except StatusError as exc:
            error = op.meaning(exc)
            of_the_server = exc.response.status in (403, 404) and not isinstance(error, RateLimitedError)
            if of_the_server or error.code == "graphql-schema":
                self._api.refused = True
            elif not isinstance(error, NotFoundError | PermissionDeniedError | InvalidRequestError):
                raise
            return None
        return seen

    def _ask(self, body: Mapping[str, Any]) -> Response:
        return self._op.request("POST", GRAPHQL, repo=self._op.repo, body=body)

    def _commit(self, seen: graphql.Seen, edits: Sequence[Edit]) -> Commit:
        """Commit with one mutation, which GitHub applies to the head that was seen and to no other."""
        op, asked = self._op, self._asked
        body = graphql.commit_mutation(asked, seen, edits)
        with op.effect(asked.effect):
            try:
                response = self._ask(body)
            except StatusError as exc:
                refused = op.meaning(exc)
                if isinstance(refused, HeadMovedError):
                    refused.expected = seen.commit.sha
                    with suppress(Exception):  # GitHub's own message remains
                        refused.actual = convert.ref_sha(op.read(REF, repo=op.repo, branch=asked.branch))
                raise refused from exc
            made = graphql.committed(response, asked, seen)
            op.done(asked.effect, made)
        return made

    def _head(self) -> Head | None:
        """Return the branch's head, or None if the branch does not exist. The repository may be empty then.

        Raises:
            HeadMovedError: the branch is not at the expected commit.
        """
        try:
            head = convert.head(self._op.read(BRANCH, repo=self._op.repo, branch=self._asked.branch))
        except StatusError as exc:
            if self._op.meaning(exc).code != "branch-not-found":
                raise
            return None
        self._check_head(head.sha)
        return head

    def _check_head(self, sha: str) -> None:
        branch, expected = self._asked.branch, self._asked.expected_head
        if expected not in (None, sha):
            raise HeadMovedError(f"{branch} is at {sha}, not at {expected}", expected=expected, actual=sha)

    def _plan(self, sha: str, tree: str, entries: Mapping[str, TreeEntry], *, known: bool) -> Edits:
        """Return the edits on the head's tree. GitHub itself would silently replace a link, submodule or directory.

        Args:
            sha, tree: the head and its tree.
            entries: what is at the touched paths and above them.
            known: whether ``entries`` is complete. The tree is read otherwise, and where a file replaces a directory.

        Raises:
            InvalidRequestError: the tree does not allow a change.
        """
        if not known or any(path in entries and entries[path].mode == DIRECTORY for path in self._asked.paths):
            entries = self._read_tree(tree)
        listed = {directory for path in self._asked.paths for directory in directories(path)}

        def occupied(directory: str, removed: set[str]) -> bool:
            return any(
                path.startswith(f"{directory}/")
                and (path not in removed or entry.mode == DIRECTORY)
                and path not in listed
                for path, entry in entries.items()
            )

        edits = plan(self._asked.changes, lookup_in(entries), occupied=occupied)
        self._op.note(base_sha=sha, files=edits.files)
        return edits

    def _write_tree(self, base: str, edits: Sequence[Edit]) -> str:
        """Create the tree with the edits on ``base``, and return its sha."""
        self._upload([edit for edit in edits if edit.data is not None and _inline_text(edit) is None])
        tree = base
        for batch in _batches(edits):
            tree = self._created(TREES, {"base_tree": tree, "tree": [_tree_item(edit) for edit in batch]})
        return tree

    def _write_commit(self, tree: str, parent: str) -> Commit:
        """Create a commit that no branch contains yet."""
        body: dict[str, Any] = {"message": self._asked.message, "tree": tree, "parents": [parent]}
        if self._author is not None:
            body["author"] = self._author
        response = self._op.request("POST", COMMITS, repo=self._op.repo, body=body)
        commit = convert.commit(JsonReader(response), self._asked.branch)
        self._op.note(commit_sha=commit.sha)
        return commit

    def _move_branch(self, sha: str) -> None:
        """Move the branch forward to ``sha``. GitHub refuses a move that is not a fast-forward."""
        branch = self._asked.branch
        body = {"sha": sha, "force": False}
        response = self._op.request("PATCH", OLD_REF, repo=self._op.repo, branch=branch, body=body)
        if (moved_to := convert.ref_sha(JsonReader(response))) != sha:
            raise BodyError(f"{branch} should have moved to {sha}, but the response has {moved_to}", response)

    def _first(self) -> Commit:
        """Commit to an empty repository, which the Git data API refuses. The contents API makes a commit of one file.

        Nothing is written until GitHub says that the repository is empty. A branch that is not found may only not be
        visible yet, and the contents API would put one of the files on it alone.
        """
        op, asked = self._op, self._asked
        with op.before("read repository"):
            self._require_empty()
            puts = [change for change in asked.changes if isinstance(change, PutFile)]
            if len(puts) < len(asked.changes) or asked.expected_head is not None or asked.branch != _USUAL_BRANCH:
                self._check_first(convert.repo(op.read(REPO, repo=op.repo)))
            edits = plan(asked.changes, lambda path: None)
            seed = min(edits.all, key=lambda edit: (_mode(edit) != PLAIN, len(edit.data or b"")))
            rest = [edit for edit in edits.all if edit is not seed or _mode(seed) != PLAIN]
            op.note(files=edits.files)
        step = "create first commit" if rest else asked.effect
        with op.effect(step):
            first, tree = self._put_file(seed)
            op.done(step, first)
        with op.after("compare"):
            if first.parent is not None:  # somebody else committed first, and the contents API added to that commit
                raise HeadMovedError(
                    f"{asked.branch} was no longer empty: the commit's parent is {first.parent}",
                    actual=first.parent,
                    hint="the commit was made; check its parent, and revert the commit if it must not stay",
                )
        if not rest:
            return first
        with op.after("write tree"):
            op.note(base_sha=first.sha)
            tree = self._write_tree(tree, rest)
        with op.after("write commit"):
            commit = self._write_commit(tree, first.sha)
        with op.after(asked.effect):
            op.sending()
            self._move_branch(commit.sha)
            op.done(asked.effect, commit)
        return commit

    def _require_empty(self) -> None:
        """Check that the repository is empty.

        Raises:
            StatusError: it is not empty, and the branch does not exist.
            ConflictError: the branch exists now.
        """
        try:
            self._op.request("GET", REF, repo=self._op.repo, branch=self._asked.branch)
        except StatusError as exc:
            if self._op.meaning(exc).code != "repository-empty":
                raise
        else:
            raise ConflictError(
                f"{self._asked.branch} was not visible when it was read, and is now",
                transient=True,
                hint="nothing was written; the same call may be repeated",
            )

    def _check_first(self, repo: Repo) -> None:
        branch, expected = self._asked.branch, self._asked.expected_head
        if branch != repo.default_branch:
            refuse("branch", f"is {branch!r}; an empty repository's first commit goes to {repo.default_branch!r}")
        if expected is not None:
            raise HeadMovedError(f"{branch} has no commit yet", expected=expected)
        if not all(isinstance(change, PutFile) for change in self._asked.changes):
            refuse("changes", "must all be PutFile: the repository is empty and has nothing to delete or move")

    def _put_file(self, edit: Edit) -> tuple[Commit, str]:
        """Commit one file through the contents API, which creates the branch. Return the commit and its tree's sha.

        https://docs.github.com/rest/repos/contents#create-or-update-file-contents
        """
        asked = self._asked
        body: dict[str, Any] = {
            "message": asked.message,
            "branch": asked.branch,
            "content": _base64(edit),
        }
        if self._author is not None:
            body["author"] = body["committer"] = self._author
        response = self._op.request("PUT", CONTENTS, repo=self._op.repo, path=edit.path, body=body)
        made = JsonReader(response).object("commit")
        return convert.commit(made, asked.branch), convert.sha(made.object("tree"))

    def _upload(self, edits: Sequence[Edit]) -> None:
        sent: set[str] = set()
        for edit in edits:
            if edit.after is None or edit.after.sha in sent:
                continue
            body = {"content": _base64(edit), "encoding": "base64"}
            response = self._op.request("POST", BLOBS, repo=self._op.repo, body=body)
            if (sha := convert.sha(JsonReader(response))) != edit.after.sha:
                raise BodyError(f"the blob of {edit.path!r} is {sha}, expected {edit.after.sha}", response)
            sent.add(sha)

    def _created(self, template: str, body: Mapping[str, Any]) -> str:
        return convert.sha(JsonReader(self._op.request("POST", template, repo=self._op.repo, body=body)))

    def _read_tree(self, tree: str) -> Mapping[str, TreeEntry]:
        """Return the files of a tree by path, in one response where that lists all.

        Otherwise, and always with ``commit_api="auto"``, only the directories of the touched paths are read.
        """
        if not self._api.auto:
            fields = self._get_tree(tree, query={"recursive": "1"})
            if not convert.is_truncated(fields):
                return convert.tree(fields)
        found: dict[str, TreeEntry] = {}
        trees = {"": tree}
        above = {directory for path in self._asked.paths for directory in directories(path)}
        for directory in ["", *sorted(above)]:
            if directory in trees:
                for name, entry in convert.tree_entries(self._get_tree(trees[directory])).items():
                    path = f"{directory}/{name}".lstrip("/")
                    found[path] = entry
                    trees.update({path: entry.sha} if entry.mode == DIRECTORY else {})
        return found

    def _get_tree(self, tree: str, query: Mapping[str, str] | None = None) -> JsonReader:
        return self._op.read(TREE, repo=self._op.repo, tree=tree, query=query)


def _mode(edit: Edit) -> str:
    return PLAIN if edit.after is None else edit.after.mode


def _base64(edit: Edit) -> str | Base64:
    return base64_of(edit.data or b"")


def _inline_text(edit: Edit) -> str | None:
    """Return the content if a tree request can contain it, which is UTF-8 text of limited size; otherwise None."""
    if edit.data is None or len(edit.data) > _INLINE_BYTES or b"\0" in edit.data:
        return None
    try:
        return edit.data.decode()
    except UnicodeDecodeError:
        return None


def _tree_item(edit: Edit) -> dict[str, Any]:
    """Return the edit as an item of ``POST git/trees``. GitHub requires a mode for deletions too."""
    item = {"path": edit.path, "mode": _mode(edit), "type": "blob"}
    if (text := _inline_text(edit)) is not None:
        return item | {"content": text}
    return item | {"sha": None if edit.after is None else edit.after.sha}


def _batches(edits: Sequence[Edit]) -> Iterator[list[Edit]]:
    """Split the edits into batches that one ``POST git/trees`` accepts."""
    batch: list[Edit] = []
    size = 0
    for edit in edits:
        inline = 0 if edit.data is None or _inline_text(edit) is None else len(edit.data)
        if batch and (len(batch) == _FILES_PER_TREE or size + inline > _INLINE_BYTES_PER_TREE):
            yield batch
            batch, size = [], 0
        batch.append(edit)
        size += inline
    if batch:
        yield batch
