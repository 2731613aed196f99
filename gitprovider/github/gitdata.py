"""GitHub's Git data API, for one repository in one operation.

https://docs.github.com/rest/git

Nothing here moves a branch: blobs, trees and commits are seen by nobody until a ref names them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from gitprovider._fields import Fields
from gitprovider._http import Answer, BodyError, RemoteOperation
from gitprovider.github import convert
from gitprovider.github.commits import Entry, batches, parents
from gitprovider.github.transport import GitHubClient
from gitprovider.models import Author, Commit
from gitprovider.state import TreeEntry


class GitData:
    """Reads and writes Git objects."""

    def __init__(self, op: RemoteOperation[GitHubClient], repo: str) -> None:
        self._op = op
        self._repo = repo

    def read_tree(self, tree: str, paths: Sequence[str]) -> Mapping[str, TreeEntry]:
        """The files of a tree, by path; of one too large for a single answer, the directories that ``paths`` pass."""
        answer = self._get_tree(tree, recursive=True)
        if not Fields(answer).maybe_flag("truncated"):
            return convert.tree(answer)
        found: dict[str, TreeEntry] = {}
        directories = {"": tree}
        for directory in ["", *sorted({above for path in paths for above in parents(path)})]:
            if directory in directories:
                self._read_directory(directory, directories, found)
        return found

    def _read_directory(self, directory: str, directories: dict[str, str], found: dict[str, TreeEntry]) -> None:
        answer = self._get_tree(directories[directory], recursive=False)
        convert.check_whole(answer)
        fields = Fields(answer)
        for entry in fields.items("tree"):
            path = f"{directory}/{entry.text('path')}".lstrip("/")
            if entry.text("type") == "tree":
                directories[path] = convert.sha(entry)
                # With its slash it stands for the files below it, which may not be read.
                found[f"{path}/"] = TreeEntry(convert.sha(entry), entry.text("mode"))
            else:
                found[path] = TreeEntry(convert.sha(entry), entry.text("mode"))

    def _get_tree(self, tree: str, *, recursive: bool) -> Answer:
        query = {"recursive": "1"} if recursive else None
        return self._op.request("GET", "/repos/{repo/}/git/trees/{tree}", repo=self._repo, tree=tree, query=query)

    def write_tree(self, base: str, entries: Sequence[Entry]) -> str:
        """The sha of the tree that ``entries`` make of ``base``."""
        self._upload([entry for entry in entries if entry.data is not None and entry.text is None])
        tree = base
        for batch in batches(entries):
            body = {"base_tree": tree, "tree": [entry.item() for entry in batch]}
            tree = self._created("/repos/{repo/}/git/trees", body)
        return tree

    def _upload(self, entries: Sequence[Entry]) -> None:
        sent: set[str] = set()
        for entry in entries:
            if entry.sha in sent:
                continue
            content = base64.b64encode(entry.data or b"").decode()
            sha = self._created("/repos/{repo/}/git/blobs", {"content": content, "encoding": "base64"})
            if sha != entry.sha:
                raise BodyError(f"the blob of {entry.path!r} is {sha}, expected {entry.sha}", Answer(status=201))
            sent.add(sha)

    def _created(self, template: str, body: Mapping[str, Any]) -> str:
        return convert.sha(Fields(self._op.request("POST", template, repo=self._repo, body=body)))

    def write_commit(self, *, branch: str, tree: str, parent: str, message: str, author: Author | None) -> Commit:
        """A commit that no branch has yet. Given an author, GitHub takes it for the committer as well."""
        body: dict[str, Any] = {"message": message, "tree": tree, "parents": [parent]}
        if author is not None:
            body["author"] = {"name": author.name, "email": author.email}
        answer = self._op.request("POST", "/repos/{repo/}/git/commits", repo=self._repo, body=body)
        return convert.commit(Fields(answer), branch)

    def put_file(self, branch: str, entry: Entry, *, message: str, author: Author | None) -> tuple[Commit, str]:
        """Commit one file through the contents API, which makes the branch of an empty repository; and the tree's sha.

        https://docs.github.com/rest/repos/contents#create-or-update-file-contents
        """
        body: dict[str, Any] = {
            "message": message,
            "branch": branch,
            "content": base64.b64encode(entry.data or b"").decode(),
        }
        if author is not None:
            body["author"] = body["committer"] = {"name": author.name, "email": author.email}
        template = "/repos/{repo/}/contents/{path/}"
        made = Fields(self._op.request("PUT", template, repo=self._repo, path=entry.path, body=body)).sub("commit")
        return convert.commit(made, branch), convert.sha(made.sub("tree"))

    def move_branch(self, branch: str, sha: str) -> None:
        """Move a branch forward to ``sha``; GitHub refuses what is no fast-forward."""
        template = "/repos/{repo/}/git/refs/heads/{branch/}"
        answer = self._op.request("PATCH", template, repo=self._repo, branch=branch, body={"sha": sha, "force": False})
        if (there := convert.ref_sha(answer)) != sha:
            raise BodyError(f"{branch} was to be moved to {sha}, and the answer names {there}", answer)
