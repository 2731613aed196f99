"""A commit on GitHub: objects that nobody sees, and then one ref that is moved, never forced.

https://docs.github.com/rest/git
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from gitprovider._core.edits import directories, touched_paths
from gitprovider._remote.operation import Response, BodyError, RemoteOperation, StatusError
from gitprovider._remote.json_reader import JsonReader
from gitprovider.checks import refuse
from gitprovider.contract import TreeEntry
from gitprovider.errors import ConflictError, HeadMovedError
from gitprovider.github import convert
from gitprovider.github import errors as translate
from gitprovider.github.client import GitHubClient
from gitprovider.github.convert import Head
from gitprovider.github.endpoints import BLOBS, BRANCH, COMMITS, CONTENTS, OLD_REF, REF, REPO, TREE, TREES
from gitprovider.github.entries import PLAIN, Entry, batches, changed, entries, evidence
from gitprovider.models import Author, Commit, FileChange, PutFile, Repo

_USUAL_BRANCH = "main"


class Committing:
    """One commit_files on its way."""

    def __init__(
        self, op: RemoteOperation[GitHubClient], repo: str, branch: str, *, message: str, author: Author | None
    ) -> None:
        self._op = op
        self._repo = repo
        self._branch = branch
        self._message = message
        self._author = None if author is None else {"name": author.name, "email": author.email}

    def head(self, expected: str | None) -> Head | None:
        """The branch's head; None when there is no such branch, perhaps because the repository is empty.

        Raises:
            HeadMovedError: it is at another commit than expected.
        """
        try:
            head = convert.head(self._op.request("GET", BRANCH, repo=self._repo, branch=self._branch))
        except StatusError as exc:
            if translate.fact(exc.response, self._op) != "gh-branch-not-found":
                raise
            return None
        if expected not in (None, head.sha):
            raise HeadMovedError(
                f"{self._branch} is at {head.sha}, not at {expected}", expected=expected, actual=head.sha
            )
        return head

    def entries(self, head: Head, changes: Sequence[FileChange]) -> list[Entry]:
        """What the changes make of the head's tree, as far as it differs; the evidence goes to the intent.

        Raises:
            InvalidRequestError: a change that the tree does not admit.
        """
        tree = self._read_tree(head.tree, touched_paths(changes))
        made = entries(changes, tree)
        self._op.note(base_sha=head.sha, files=evidence(made))
        return changed(made, tree)

    def write_tree(self, base: str, made: Sequence[Entry]) -> str:
        """The sha of the tree that the entries make of ``base``."""
        self._upload([entry for entry in made if entry.data is not None and entry.text is None])
        tree = base
        for batch in batches(made):
            tree = self._created(TREES, {"base_tree": tree, "tree": [entry.item() for entry in batch]})
        return tree

    def write_commit(self, tree: str, parent: str) -> Commit:
        """A commit that no branch has yet. Given an author, GitHub takes it for the committer as well."""
        body: dict[str, Any] = {"message": self._message, "tree": tree, "parents": [parent]}
        if self._author is not None:
            body["author"] = self._author
        response = self._op.request("POST", COMMITS, repo=self._repo, body=body)
        commit = convert.commit(JsonReader(response), self._branch)
        self._op.note(commit_sha=commit.sha)
        return commit

    def move_branch(self, sha: str) -> None:
        """Move the branch forward to ``sha``; GitHub refuses what is no fast-forward."""
        body = {"sha": sha, "force": False}
        response = self._op.request("PATCH", OLD_REF, repo=self._repo, branch=self._branch, body=body)
        if (there := convert.ref_sha(response)) != sha:
            raise BodyError(f"{self._branch} was to be moved to {sha}, and the response names {there}", response)

    def first(self, changes: Sequence[FileChange], expected_head: str | None) -> Commit:
        """Commit to an empty repository, which the Git data API refuses: the contents API makes a commit of one file.

        Whether the repository is empty is told by that request itself: in one that has commits it is a 404, since the
        branch does not exist. Where the call could not succeed in an empty one, it is asked before.
        """
        op = self._op
        with op.before("read repository"):
            puts = [change for change in changes if isinstance(change, PutFile)]
            if len(puts) < len(changes) or expected_head is not None or self._branch != _USUAL_BRANCH:
                self._require_empty()
                repo = convert.repo(op.request("GET", REPO, repo=self._repo))
                self._check_first(repo, changes, expected_head)
            made = entries(changes, {})
            seed = min(made, key=lambda entry: (entry.mode != PLAIN, len(entry.data or b"")))
            rest = [entry for entry in made if entry is not seed or seed.mode != PLAIN]
            op.note(files=evidence(made))
        with op.effect("create first commit"):
            first, tree = self._put_file(seed)
            op.done("create first commit", first)
        with op.after("compare"):
            if first.parent is not None:  # the contents API adds to whatever is there by then
                raise HeadMovedError(
                    f"{self._branch} was empty no more: the commit stands on {first.parent}",
                    actual=first.parent,
                    hint="the commit is there; look at what it stands on, and revert it if it must not stay",
                )
        if not rest:
            return first
        with op.after("write tree"):
            op.note(base_sha=first.sha)
            tree = self.write_tree(tree, rest)
        with op.after("write commit"):
            commit = self.write_commit(tree, first.sha)
        with op.after("move branch"):
            self.move_branch(commit.sha)
            op.done("move branch", commit)
        return commit

    def _require_empty(self) -> None:
        """Raise the refusal that a branch does not exist, unless it is because the repository is empty."""
        try:
            self._op.request("GET", REF, repo=self._repo, branch=self._branch)
        except StatusError as exc:
            if translate.fact(exc.response, self._op) != "gh-empty-repo":
                raise
        else:
            raise ConflictError(f"{self._branch} appeared while it was looked for")

    def _check_first(self, repo: Repo, changes: Sequence[FileChange], expected_head: str | None) -> None:
        if self._branch != repo.default_branch:
            refuse("branch", f"is {self._branch!r}; an empty repository's first commit goes to {repo.default_branch!r}")
        if expected_head is not None:
            raise HeadMovedError(f"{self._branch} has no commit yet", expected=expected_head)
        if not all(isinstance(change, PutFile) for change in changes):
            refuse("changes", "must all be PutFile: the repository is empty, and has nothing to delete or move")

    def _put_file(self, entry: Entry) -> tuple[Commit, str]:
        """Commit one file through the contents API, which makes the branch; the commit, and its tree's sha.

        https://docs.github.com/rest/repos/contents#create-or-update-file-contents
        """
        content = base64.b64encode(entry.data or b"").decode()
        body: dict[str, Any] = {"message": self._message, "branch": self._branch, "content": content}
        if self._author is not None:
            body["author"] = body["committer"] = self._author
        response = self._op.request("PUT", CONTENTS, repo=self._repo, path=entry.path, body=body)
        made = JsonReader(response).object("commit")
        return convert.commit(made, self._branch), convert.sha(made.object("tree"))

    def _upload(self, made: Sequence[Entry]) -> None:
        sent: set[str] = set()
        for entry in made:
            if entry.sha is None or entry.sha in sent:
                continue
            content = base64.b64encode(entry.data or b"").decode()
            sha = self._created(BLOBS, {"content": content, "encoding": "base64"})
            if sha != entry.sha:
                raise BodyError(f"the blob of {entry.path!r} is {sha}, expected {entry.sha}", Response(status=201))
            sent.add(sha)

    def _created(self, template: str, body: Mapping[str, Any]) -> str:
        return convert.sha(JsonReader(self._op.request("POST", template, repo=self._repo, body=body)))

    def _read_tree(self, tree: str, paths: Sequence[str]) -> Mapping[str, TreeEntry]:
        """The files of a tree, by path; of one too large for a single response, the directories that ``paths`` pass."""
        response = self._get_tree(tree, recursive=True)
        if not JsonReader(response).bool_or_none("truncated"):
            return convert.tree(response)
        found: dict[str, TreeEntry] = {}
        trees = {"": tree}
        for directory in ["", *sorted({above for path in paths for above in directories(path)})]:
            if directory in trees:
                self._read_directory(directory, trees, found)
        return found

    def _read_directory(self, directory: str, trees: dict[str, str], found: dict[str, TreeEntry]) -> None:
        response = self._get_tree(trees[directory], recursive=False)
        convert.check_whole(response)
        for entry in JsonReader(response).objects("tree"):
            path = f"{directory}/{entry.str('path')}".lstrip("/")
            is_directory = entry.str("type") == "tree"
            if is_directory:
                trees[path] = convert.sha(entry)
            # With its slash, a directory stands for the files below it, which may not be read.
            found[f"{path}/" if is_directory else path] = TreeEntry(convert.sha(entry), entry.str("mode"))

    def _get_tree(self, tree: str, *, recursive: bool) -> Response:
        query = {"recursive": "1"} if recursive else None
        return self._op.request("GET", TREE, repo=self._repo, tree=tree, query=query)
