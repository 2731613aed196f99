"""A commit on GitLab: what is there is read by GraphQL, one call commits, and the new commit's parent is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gitprovider._core.operation import Operation
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation, StatusError
from gitprovider.checks import refuse
from gitprovider.contract import TreeEntry
from gitprovider.errors import (
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
)
from gitprovider.gitlab import actions, convert
from gitprovider.gitlab.actions import Seen, Touched
from gitprovider.gitlab.client import GitLabClient
from gitprovider.gitlab.endpoints import BRANCH, COMMITS, GRAPHQL, PROJECT
from gitprovider.models import Author, Commit, FileChange, PutFile


class Committing:
    """One commit_files on its way."""

    def __init__(
        self,
        op: RemoteOperation[GitLabClient],
        repo: str,
        branch: str,
        *,
        message: str,
        author: Author | None,
        meaning: Callable[[Exception, Operation], GitProviderError],
    ) -> None:
        self._op = op
        self._repo = repo
        self._branch = branch
        self._meaning = meaning
        self._about: dict[str, Any] = {"branch": branch, "commit_message": message}
        if author is not None:
            self._about |= {"author_name": author.name, "author_email": author.email}

    def look(self, changes: Sequence[FileChange], expected_head: str | None) -> Seen:
        """The branch's head, and what is at and above the touched paths: one query for each 100 of them.

        Raises:
            NotFoundError: there is no such branch, and the repository has commits.
            HeadMovedError: the branch is not at ``expected_head``.
            InvalidRequestError: the repository is empty, and this is no first commit of it.
        """
        first, *further = actions.queries(changes)
        seen = self._ask(first, self._branch, branch=True)
        if seen.empty:
            self._check_first(seen, changes)
        elif seen.head is None:
            raise NotFoundError(f"there is no branch {self._branch!r}")
        if expected_head is not None and seen.head != expected_head:
            raise HeadMovedError("the branch is at another commit", expected=expected_head, actual=seen.head)
        entries: dict[str, TreeEntry] = dict(seen.entries)
        if seen.head is not None:
            for touched in further:  # by the sha: the branch may move between two queries
                entries |= self._ask(touched, seen.head, branch=False).entries
        return Seen(empty=seen.empty, default_branch=seen.default_branch, head=seen.head, entries=entries)

    def _ask(self, touched: Touched, ref: str, *, branch: bool) -> Seen:
        body = {"query": actions.QUERY, "variables": touched.variables(self._repo, ref, branch=branch)}
        project = convert.graphql(self._op.request("POST", GRAPHQL, body=body)).object_or_none("project")
        repository = project.object_or_none("repository") if project else None
        if repository is None:
            # GraphQL has no project under a path that it had before, and no reason. The REST API says which it is.
            self._op.request("GET", PROJECT, project=self._repo)
            raise PermissionDeniedError(
                "the project's repository cannot be read", hint="the repository may be turned off in its settings"
            )
        return actions.seen(repository)

    def _check_first(self, seen: Seen, changes: Sequence[FileChange]) -> None:
        default = seen.default_branch
        if default is None:
            default = convert.repo(self._op.request("GET", PROJECT, project=self._repo)).default_branch
        if self._branch != default:
            refuse("branch", f"is {self._branch!r}; in an empty repository it must be the default one, {default!r}")
        if not all(isinstance(change, PutFile) for change in changes):
            refuse("changes", "must all be PutFile: the repository is empty, there is nothing to delete or move")

    def commit(self, seen: Seen, chosen: Sequence[Mapping[str, Any]]) -> Commit:
        """Commit, and compare what it stands on with what was read.

        Raises:
            HeadMovedError: with outcome PARTIAL, the commit being there, on another head.
        """
        now, later = list(chosen), []
        if seen.head is None:
            # An empty project takes nothing but "create"; what is executable is made so by a second commit.
            now = [action for action in chosen if action["action"] == "create"]
            later = [action for action in chosen if action["action"] != "create"]
        with self._op.effect("commit"):
            made = self._send(now, seen.head)
            self._op.done("commit", made)
        with self._op.after("compare"):
            self._compare(made, seen.head)
        if later:
            self._op.note(base_sha=made.sha)
            with self._op.after("make executable"):
                first, made = made, self._send(later, made.sha)
                self._op.done("make executable", made)
            with self._op.after("compare"):
                self._compare(made, first.sha)
        return made

    def _send(self, chosen: Sequence[Mapping[str, Any]], head: str | None) -> Commit:
        body = {**self._about, "actions": list(chosen)}
        try:
            response = self._op.request("POST", COMMITS, project=self._repo, body=body)
        except StatusError as exc:
            error = self._meaning(exc, self._op)
            if isinstance(error, HeadMovedError):
                raise self._read_up(error, head) from exc
            raise error from exc
        return convert.commit(response, self._branch)

    def _read_up(self, refused: HeadMovedError, head: str | None) -> GitProviderError:
        """What is in the way: by the host's words the branch has moved, or something is there that no list shows."""
        try:
            response = self._op.request("GET", BRANCH, project=self._repo, branch=self._branch)
            actual = convert.branch(JsonReader(response)).sha
        except Exception:  # a read that fails leaves the host's own word
            return refused
        refused.expected, refused.actual = head, actual
        if actual != head:
            return refused
        return InvalidRequestError(
            f"changes: {refused.message}",
            argument="changes",
            status=refused.status,
            request_id=refused.request_id,
            hint="a submodule or a directory may be at a touched path",
        )

    def _compare(self, made: Commit, head: str | None) -> None:
        if made.parent != head:
            raise HeadMovedError(
                "the branch moved while the commit was made: it stands on another commit than was read",
                expected=head,
                actual=made.parent,
                hint="the commit is there; look at what it stands on, and revert it if it must not stay",
            )
