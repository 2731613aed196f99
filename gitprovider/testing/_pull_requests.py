"""Cases for open_pull_request."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    GitProviderError,
    InvalidRequestError,
    NotFoundError,
    Outcome,
)
from gitprovider.models import PullRequest, PullRequestState
from gitprovider.testing._assertions import attempt, invalid, mutations, nothing_sent, raised, refused, unsupported
from gitprovider.testing._inputs import BAD_BRANCHES, EFFECTS, SHA_LIKE
from gitprovider.testing.rig import Rig


def given_feature(rig: Rig, name: str = "feature") -> str:
    """Create a repository whose branch ``name`` is one commit ahead of ``main``."""
    repo = rig.given_repo()
    rig.given_branch(repo, name)
    rig.given_commit(repo, name, {"feature.txt": b"feature\n"}, message="Add the feature")
    return repo


def can_draft(rig: Rig, repo: str) -> bool:
    """Report whether the host has drafts. If not, assert that a request for one is refused and not dropped."""
    if rig.supports("open_pull_request.draft"):
        return True
    unsupported(
        rig,
        "open_pull_request.draft",
        rig.provider.open_pull_request,
        repo,
        source_branch="feature",
        target_branch="main",
        title="A change",
        draft=True,
    )
    assert rig.pull_requests(repo) == {}
    return False


class OpenPullRequestCases:
    """open_pull_request."""

    def test_open_pull_request_a_pull_request_is_opened_by_one_request(self, rig: Rig) -> None:
        """The value and the host have the requested data."""
        repo = given_feature(rig)

        with mutations(rig, at_least=1, at_most=1):
            value = rig.provider.open_pull_request(
                repo, source_branch="feature", target_branch="main", title="Add the feature", description="Because."
            )

        assert value.number >= 1
        assert value.state is PullRequestState.OPEN
        assert (value.source_branch, value.target_branch) == ("feature", "main")
        assert (value.title, value.description, value.draft) == ("Add the feature", "Because.", False)
        assert value.head_sha in (rig.branches(repo)["feature"], None)
        assert value.merge_commit_sha is None
        assert value.created_at is None or value.created_at.tzinfo is UTC
        pulls = rig.pull_requests(repo)
        assert set(pulls) == {value.number}
        assert (pulls[value.number].title, pulls[value.number].description) == ("Add the feature", "Because.")
        assert pulls[value.number].state is PullRequestState.OPEN

    def test_open_pull_request_opening_moves_no_branch(self, rig: Rig) -> None:
        """No head moves."""
        repo = given_feature(rig)
        before = rig.branches(repo)

        rig.provider.open_pull_request(repo, source_branch="feature", target_branch="main", title="A change")

        assert rig.branches(repo) == before

    def test_open_pull_request_text_arrives_as_it_was_given(self, rig: Rig) -> None:
        """A title in any script and a description of several lines of Markdown are stored unchanged."""
        repo = given_feature(rig)
        title = "grüße <b>&amp; 'x'</b> #1 @octocat \U0001f680 100%"
        description = "# Heading\n\n* list\n\n```\ncode  \n```\n\ngrüße \U0001f680 <!-- comment -->"

        value = rig.provider.open_pull_request(
            repo, source_branch="feature", target_branch="main", title=title, description=description
        )

        assert (value.title, value.description) == (title, description)
        pull = rig.pull_requests(repo)[value.number]
        assert (pull.title, pull.description) == (title, description)

    def test_open_pull_request_a_title_of_255_characters_fits(self, rig: Rig) -> None:
        """255 characters is the longest title that every host accepts."""
        repo = given_feature(rig)

        value = rig.provider.open_pull_request(repo, source_branch="feature", target_branch="main", title="t" * 255)

        assert rig.pull_requests(repo)[value.number].title == "t" * 255

    @pytest.mark.parametrize("title", ["Draft: a change", "[Draft] a change", "WIP: a change", "draft a change"])
    def test_open_pull_request_a_title_never_makes_a_draft_unasked(self, rig: Rig, title: str) -> None:
        """If the host would interpret the title as a draft mark, it is refused before any request; else it is kept."""
        repo = given_feature(rig)
        before = rig.requests_seen()

        result = attempt(
            rig.provider.open_pull_request, repo, source_branch="feature", target_branch="main", title=title
        )

        if isinstance(result, GitProviderError):
            assert isinstance(result, InvalidRequestError), f"the title must be kept or refused, not {result!r}"
            assert result.argument == "title"
            assert rig.requests_seen() == before
            assert rig.pull_requests(repo) == {}
        else:
            assert (result.title, result.draft) == (title, False)
            assert not rig.pull_requests(repo)[result.number].draft

    @pytest.mark.parametrize("line", ["/close", "/label ~bug", "/assign me", "/draft"])
    def test_open_pull_request_a_description_never_runs_a_command(self, rig: Rig, line: str) -> None:
        """If the host would run a line of the description, it is refused before any request; else it is kept."""
        repo = given_feature(rig)
        description = f"Some text.\n\n{line}\n"
        before = rig.requests_seen()

        result = attempt(
            rig.provider.open_pull_request,
            repo,
            source_branch="feature",
            target_branch="main",
            title="A change",
            description=description,
        )

        if isinstance(result, GitProviderError):
            assert isinstance(result, InvalidRequestError), f"the description must be kept or refused, not {result!r}"
            assert result.argument == "description"
            assert rig.requests_seen() == before
            assert rig.pull_requests(repo) == {}
        else:
            assert result.description.rstrip() == description.rstrip()
            pull = rig.pull_requests(repo)[result.number]
            assert (pull.state, pull.labels, pull.draft) == (PullRequestState.OPEN, frozenset(), False)

    def test_open_pull_request_a_draft_is_opened_or_refused(self, rig: Rig) -> None:
        """The pull request is a draft on the host and has the given title."""
        repo = given_feature(rig)
        if not can_draft(rig, repo):
            return

        value = rig.provider.open_pull_request(
            repo, source_branch="feature", target_branch="main", title="A change", draft=True
        )

        assert (value.draft, value.title) == (True, "A change")
        pull = rig.pull_requests(repo)[value.number]
        assert (pull.draft, pull.title) == (True, "A change")

    def test_open_pull_request_labels_are_set_or_refused(self, rig: Rig) -> None:
        """Labels that do not exist yet are created."""
        repo = given_feature(rig)
        labels = ("bug", "needs: a look", "größe/4")
        if not rig.supports("open_pull_request.labels"):
            unsupported(
                rig,
                "open_pull_request.labels",
                rig.provider.open_pull_request,
                repo,
                source_branch="feature",
                target_branch="main",
                title="A change",
                labels=labels,
            )
            assert rig.pull_requests(repo) == {}
            return

        value = rig.provider.open_pull_request(
            repo, source_branch="feature", target_branch="main", title="A change", labels=labels
        )

        assert rig.pull_requests(repo)[value.number].labels == set(labels)

    def test_open_pull_request_a_review_is_requested_or_refused(self, rig: Rig) -> None:
        """The review is requested on the host."""
        repo = given_feature(rig)
        if not rig.supports("open_pull_request.reviewers"):
            unsupported(
                rig,
                "open_pull_request.reviewers",
                rig.provider.open_pull_request,
                repo,
                source_branch="feature",
                target_branch="main",
                title="A change",
                reviewers=[rig.reviewer],
            )
            assert rig.pull_requests(repo) == {}
            return

        value = rig.provider.open_pull_request(
            repo, source_branch="feature", target_branch="main", title="A change", reviewers=[rig.reviewer]
        )

        assert rig.pull_requests(repo)[value.number].reviewers == {rig.reviewer}

    def test_open_pull_request_an_unknown_reviewer_is_told(self, rig: Rig) -> None:
        """The error comes before anything is opened, or has the pull request in ``completed``. No name is dropped."""
        if rig.unknown_reviewer is None:
            pytest.skip("this host accepts any name")
        repo = given_feature(rig)

        error = raised(
            GitProviderError,
            rig.provider.open_pull_request,
            repo,
            source_branch="feature",
            target_branch="main",
            title="A change",
            reviewers=[rig.unknown_reviewer],
        )

        opened = [step.value.number for step in error.completed if isinstance(step.value, PullRequest)]
        assert error.outcome is (Outcome.PARTIAL if opened else Outcome.NOT_APPLIED)
        assert list(rig.pull_requests(repo)) == opened
        assert [step.name for step in error.completed] == [EFFECTS["open_pull_request"]] * len(opened)

    def test_open_pull_request_numbers_are_unique(self, rig: Rig) -> None:
        """Each pull request has its own number, even after one was closed."""
        repo = given_feature(rig)
        rig.given_branch(repo, "other", source="feature")
        first = rig.provider.open_pull_request(repo, source_branch="feature", target_branch="main", title="1")
        rig.given_closed(repo, first.number)

        second = rig.provider.open_pull_request(repo, source_branch="other", target_branch="main", title="2")

        assert second.number != first.number
        assert set(rig.pull_requests(repo)) == {first.number, second.number}

    @pytest.mark.parametrize("branch", ["feature", "a%2Fb#1", "grüße/\U0001f680", "a+b&c=d", "feature/login"])
    def test_open_pull_request_one_that_is_open_already_is_found(self, rig: Rig, branch: str) -> None:
        """AlreadyExistsError has the open pull request. The request is sent once, and no second one is opened."""
        repo = given_feature(rig, branch)
        number = rig.given_pull_request(repo, source_branch=branch, title="First")

        with mutations(rig, at_most=1):
            error = refused(
                AlreadyExistsError,
                rig.provider.open_pull_request,
                repo,
                source_branch=branch,
                target_branch="main",
                title="Second",
            )

        assert isinstance(error.existing, PullRequest)
        assert (error.existing.number, error.existing.title) == (number, "First")
        assert error.existing.source_branch == branch
        assert set(rig.pull_requests(repo)) == {number}

    def test_open_pull_request_the_existing_one_is_that_of_these_branches(self, rig: Rig) -> None:
        """A pull request from a similar branch, into another target, or that is closed, does not count."""
        repo = given_feature(rig)
        for name in ("feature-2", "develop"):
            rig.given_branch(repo, name)
        rig.given_commit(repo, "feature-2", {"2.txt": b"2\n"})
        rig.given_commit(repo, "feature", {"3.txt": b"3\n"})
        rig.given_closed(repo, rig.given_pull_request(repo, source_branch="feature"))
        rig.given_pull_request(repo, source_branch="feature-2")
        rig.given_pull_request(repo, source_branch="feature", target_branch="develop")
        number = rig.given_pull_request(repo, source_branch="feature")
        rig.given_branch(repo, "develop-2")
        rig.given_commit(repo, "feature", {"4.txt": b"4\n"})
        rig.given_pull_request(repo, source_branch="feature", target_branch="develop-2")

        error = refused(
            AlreadyExistsError,
            rig.provider.open_pull_request,
            repo,
            source_branch="feature",
            target_branch="main",
            title="Again",
        )

        assert isinstance(error.existing, PullRequest)
        assert error.existing.number == number

    def test_open_pull_request_a_closed_one_is_in_nobodys_way(self, rig: Rig) -> None:
        """A closed pull request does not prevent a new one."""
        repo = given_feature(rig)
        closed = rig.given_pull_request(repo, source_branch="feature")
        rig.given_closed(repo, closed)

        value = rig.provider.open_pull_request(repo, source_branch="feature", target_branch="main", title="Again")

        assert value.number != closed
        assert rig.pull_requests(repo)[closed].state is PullRequestState.CLOSED

    def test_open_pull_request_a_merged_one_is_in_nobodys_way(self, rig: Rig) -> None:
        """A branch with new commits after its merge can have a new pull request."""
        repo = given_feature(rig)
        merged = rig.given_pull_request(repo, source_branch="feature")
        rig.given_merged(repo, merged)
        rig.given_commit(repo, "feature", {"more.txt": b"more\n"})

        value = rig.provider.open_pull_request(repo, source_branch="feature", target_branch="main", title="More")

        assert value.number != merged

    def test_open_pull_request_a_branch_can_be_proposed_for_two_targets(self, rig: Rig) -> None:
        """A branch can have an open pull request for each of two targets."""
        repo = given_feature(rig)
        rig.given_branch(repo, "develop")
        number = rig.given_pull_request(repo, source_branch="feature")

        value = rig.provider.open_pull_request(repo, source_branch="feature", target_branch="develop", title="Too")

        assert value.target_branch == "develop"
        assert set(rig.pull_requests(repo)) == {number, value.number}

    @pytest.mark.parametrize(
        ("source", "target"), [("featur", "main"), ("none", "main"), ("feature", "mai"), ("feature", "none")]
    )
    def test_open_pull_request_an_unknown_branch_is_not_found(self, rig: Rig, source: str, target: str) -> None:
        """The source and the target must exist under exactly these names."""
        repo = given_feature(rig)

        refused(
            NotFoundError,
            rig.provider.open_pull_request,
            repo,
            source_branch=source,
            target_branch=target,
            title="A change",
        )

        assert rig.pull_requests(repo) == {}

    def test_open_pull_request_nothing_to_merge_is_told(self, rig: Rig) -> None:
        """Without commits between the branches, a host either raises ConflictError or opens the pull request."""
        repo = rig.given_repo()
        rig.given_branch(repo, "same")

        result = attempt(
            rig.provider.open_pull_request, repo, source_branch="same", target_branch="main", title="Nothing"
        )

        if isinstance(result, GitProviderError):
            assert isinstance(result, ConflictError), f"expected a pull request or ConflictError, not {result!r}"
            assert rig.pull_requests(repo) == {}
        else:
            assert set(rig.pull_requests(repo)) == {result.number}

    @pytest.mark.parametrize(("source", "target"), [("apart", "main"), ("main", "apart")])
    def test_open_pull_request_branches_with_no_history_in_common_conflict(
        self, rig: Rig, source: str, target: str
    ) -> None:
        """There is nothing that both branches come from: ConflictError is raised, and nothing is opened."""
        repo = rig.given_repo()
        rig.given_branch(repo, "apart", source=None)

        refused(
            ConflictError,
            rig.provider.open_pull_request,
            repo,
            source_branch=source,
            target_branch=target,
            title="A change",
        )

        assert rig.pull_requests(repo) == {}

    def test_open_pull_request_a_branch_is_not_merged_into_itself(self, rig: Rig) -> None:
        """Equal source and target branches are refused before any request."""
        repo = given_feature(rig)

        invalid(
            rig,
            ("source_branch", "target_branch"),
            rig.provider.open_pull_request,
            repo,
            source_branch="feature",
            target_branch="feature",
            title="A change",
        )

    @pytest.mark.parametrize("argument", ["source_branch", "target_branch"])
    def test_open_pull_request_a_branch_of_another_repository_is_refused(self, rig: Rig, argument: str) -> None:
        """``owner:branch`` names a fork, and forks are not supported."""
        repo = given_feature(rig)
        branches: dict[str, Any] = {"source_branch": "feature", "target_branch": "main"}
        branches[argument] = f"{rig.namespace}:{branches[argument]}"

        invalid(rig, argument, rig.provider.open_pull_request, repo, title="A change", **branches)

    def test_open_pull_request_wrong_arguments_are_refused_before_any_request(self, rig: Rig) -> None:
        """Each error names its argument, and nothing is opened."""
        repo = given_feature(rig)
        wrong: list[tuple[str, Any]] = [
            *(("source_branch", bad) for bad in (*BAD_BRANCHES, SHA_LIKE)),
            *(("target_branch", bad) for bad in (*BAD_BRANCHES, SHA_LIKE)),
            *(("title", bad) for bad in ("", "  ", "two\nlines", "t" * 256, "nul\0", "\udc80", None, 3)),
            *(("description", bad) for bad in ("nul\0", "\udc80", None, 3, b"bytes")),
            *(("draft", bad) for bad in ("yes", None, 1)),
            *(("labels", bad) for bad in ("bug", ["bug", ""], ["bug", None], [3], None, 3, "")),
            *(("reviewers", bad) for bad in ("octocat", [""], [None], [3], None, 3)),
        ]
        good: dict[str, Any] = {"source_branch": "feature", "target_branch": "main", "title": "A change"}

        for argument, bad in wrong:
            invalid(rig, argument, rig.provider.open_pull_request, repo, **{**good, argument: bad})

        with nothing_sent(rig):
            assert rig.pull_requests(repo) == {}
