"""Pull requests, approvals and checks of the forge's repositories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gitprovider.errors import NotMergeableReason
from gitprovider.local import pulls
from gitprovider.local.database import PullRecord
from gitprovider.local.session import OnCommit, Sessions
from gitprovider.models import MergeMethod, PullRequestState


class PullRequests(Sessions):
    """The pull requests, approvals and checks of the forge's repositories."""

    def open_pull_request(
        self,
        path: str,
        *,
        source_branch: str,
        target_branch: str,
        title: str,
        description: str = "",
        draft: bool = False,
        labels: Iterable[str] = (),
        reviewers: Iterable[str] = (),
        allow_empty: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> PullRecord:
        """Open a pull request between two branches, under the repository's next number.

        Args:
            allow_empty: also where the target has every commit of the source.

        Raises:
            AlreadyExistsError: one is open between them; ``existing`` is its PullRecord.
            NotFoundError: no such branch.
            ConflictError: there is nothing to merge.
        """
        with self._writing(path) as session:
            return pulls.open_one(
                session,
                source_branch=source_branch,
                target_branch=target_branch,
                title=title,
                description=description,
                draft=draft,
                labels=labels,
                reviewers=reviewers,
                allow_empty=allow_empty,
                settings=settings or {},
                at=self._now(),
            )

    def pull_request(self, path: str, number: int) -> PullRecord:
        """A pull request by its number.

        Raises:
            NotFoundError: there is none.
        """
        with self._reading(path) as session:
            return pulls.find(session, number)

    def pull_requests(
        self,
        path: str,
        *,
        source_branch: str | None = None,
        target_branch: str | None = None,
        state: PullRequestState | None = None,
    ) -> list[PullRecord]:
        """The pull requests that are so, newest first; None means any."""
        with self._reading(path) as session:
            found = pulls.select(session, source_branch, target_branch)
            return [record for record in found if state is None or record.state is state]

    def update_pull_request(
        self,
        path: str,
        number: int,
        *,
        state: PullRequestState | None = None,
        title: str | None = None,
        description: str | None = None,
        draft: bool | None = None,
        labels: Iterable[str] | None = None,
        reviewers: Iterable[str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> PullRecord:
        """Change what is not None; ``settings`` are merged into those that are kept.

        Raises:
            NotFoundError: no such pull request, or a branch of one to be reopened is gone.
            ConflictError: it is merged, or is to become so without a merge.
            AlreadyExistsError: another one is open between the branches of one to be reopened.
        """
        with self._writing(path) as session:
            changed: dict[str, Any] = {"title": title, "description": description, "draft": draft}
            changed["labels"] = None if labels is None else tuple(labels)
            changed["reviewers"] = None if reviewers is None else tuple(reviewers)
            if settings is not None:
                changed["settings"] = {**pulls.find(session, number).settings, **settings}
            given = {name: value for name, value in changed.items() if value is not None}
            return pulls.update(session, number, state, given)

    def mergeability(
        self, path: str, number: int, *, method: MergeMethod = MergeMethod.MERGE, bypass: bool = False
    ) -> NotMergeableReason | None:
        """What a merge would be refused for, or None.

        The repository's settings ``allow_merge``, ``allow_squash`` and ``allow_rebase``, when False, forbid a method.

        Raises:
            NotFoundError: no such pull request.
        """
        with self._reading(path) as session:
            return pulls.mergeability(session, number, method, bypass=bypass, committer=self.identity, at=self._now())

    def merge(
        self,
        path: str,
        number: int,
        *,
        method: MergeMethod,
        expected_head: str | None = None,
        message: str | None = None,
        bypass: bool = False,
        on_commit: OnCommit | None = None,
    ) -> PullRecord:
        """Merge a pull request: MERGE always makes a merge commit, SQUASH one commit, REBASE none of its own.

        Args:
            bypass: regardless of approvals, checks and linear history.
            on_commit: called with the target's head and the sha it is to get, before the branch moves.

        Raises:
            NotFoundError: no such pull request.
            HeadMovedError: the source branch is not at ``expected_head``.
            NotMergeableError: CLOSED, DRAFT, CONFLICT, REVIEWS, CHECKS or METHOD.
        """
        with self._writing(path) as session:
            return pulls.merge(
                session,
                number,
                method,
                expected_head=expected_head,
                message=message,
                bypass=bypass,
                on_commit=on_commit,
                committer=self.identity,
                at=self._now(),
            )

    def approve(self, path: str, number: int, user: str = "reviewer") -> None:
        """Let ``user`` approve of a pull request at its present head.

        Raises:
            NotFoundError: no such pull request.
        """
        with self._writing(path) as session:
            pulls.approve(session, number, user)

    def set_check(self, path: str, sha_or_branch: str, name: str, state: str) -> None:
        """Set a check on a commit, or on a branch's present head, to ``success``, ``failure`` or ``pending``.

        Raises:
            NotFoundError: no such branch or commit.
        """
        with self._writing(path) as session:
            pulls.set_check(session, sha_or_branch, name, state)

    def checks(self, path: str, sha: str) -> dict[str, str]:
        """The states of the checks on a commit, by name."""
        with self._reading(path) as session:
            return session.checks(sha)
