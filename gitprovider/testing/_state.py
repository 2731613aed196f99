"""Cases for HostState, the reads that ``resolve`` and ``ensure`` use."""

from __future__ import annotations

import pytest

from gitprovider.contract import HostState
from gitprovider.errors import NotFoundError
from gitprovider.models import BranchProtection, PullRequestState
from gitprovider.testing._assertions import mutations, refused
from gitprovider.testing._inputs import SHA_LIKE
from gitprovider.testing._pull_requests import given_feature
from gitprovider.testing.rig import File, Rig


def _state(rig: Rig) -> HostState:
    if rig.state is None:
        pytest.skip("this provider has no HostState")
    return rig.state


class HostStateCases:
    """head, contains, commit, tree, protection, find_pull_requests, get_pull_request."""

    def test_state_it_has_a_name_and_a_time_to_settle(self, rig: Rig) -> None:
        """``resolve`` needs both for an intent."""
        state = _state(rig)

        assert state.name == rig.provider.get_repo(rig.given_repo()).provider
        assert state.settle >= 0

    def test_state_looking_changes_nothing(self, rig: Rig) -> None:
        """No read sends a mutation."""
        state = _state(rig)
        repo = given_feature(rig)
        number = rig.given_pull_request(repo, source_branch="feature")
        sha = rig.branches(repo)["main"]

        with mutations(rig, at_most=0):
            state.head(repo, "main")
            state.contains(repo, sha, "main")
            state.commit(repo, sha)
            state.tree(repo, sha)
            state.protection(repo, "main")
            state.find_pull_requests(repo, source_branch="feature", target_branch="main")
            state.get_pull_request(repo, number)

    @pytest.mark.parametrize("branch", ["feature", "feature/login", "a%2Fb#1", "grüße/\U0001f680", "a+b&c=d"])
    def test_state_a_head_is_read(self, rig: Rig, branch: str) -> None:
        """The branch's name must match exactly."""
        state = _state(rig)
        repo = given_feature(rig, branch)

        assert state.head(repo, branch) == rig.branches(repo)[branch]
        refused(NotFoundError, state.head, repo, branch[:-2])

    def test_state_no_branch_has_no_head(self, rig: Rig) -> None:
        """A missing repository, a missing branch and an empty repository raise NotFoundError."""
        state = _state(rig)

        refused(NotFoundError, state.head, rig.fresh_path(), "main")
        refused(NotFoundError, state.head, rig.given_repo(), "develop")
        refused(NotFoundError, state.head, rig.given_empty_repo(), "main")

    def test_state_a_branch_contains_what_it_reaches(self, rig: Rig) -> None:
        """A branch contains its head and earlier commits, but not another branch's or an unknown commit."""
        state = _state(rig)
        repo = given_feature(rig)
        heads = rig.branches(repo)

        assert state.contains(repo, heads["main"], "main") is True
        assert state.contains(repo, heads["main"], "feature") is True
        assert state.contains(repo, heads["feature"], "feature") is True
        assert state.contains(repo, heads["feature"], "main") is False
        assert state.contains(repo, SHA_LIKE, "main") is False
        refused(NotFoundError, state.contains, repo, heads["main"], "none")

    def test_state_a_merge_contains_both_sides(self, rig: Rig) -> None:
        """A commit that is reachable only through the second parent counts."""
        state = _state(rig)
        repo = given_feature(rig)
        head = rig.branches(repo)["feature"]
        rig.given_commit(repo, "main", {"theirs.txt": b"theirs\n"})
        rig.given_merged(repo, rig.given_pull_request(repo, source_branch="feature"))

        assert state.contains(repo, head, "main") is True

    def test_state_a_commit_is_read(self, rig: Rig) -> None:
        """The value has the commit's sha, first parent and message."""
        state = _state(rig)
        repo = given_feature(rig)
        heads = rig.branches(repo)

        commit = state.commit(repo, heads["feature"])

        assert (commit.sha, commit.parent, commit.branch) == (heads["feature"], heads["main"], "")
        assert commit.message.rstrip("\n") == "Add the feature"
        assert state.commit(repo, heads["main"]).parent is None
        refused(NotFoundError, state.commit, repo, SHA_LIKE)

    def test_state_a_tree_is_read(self, rig: Rig) -> None:
        """The tree has every file at any depth with its mode, but no directories. Equal content has an equal sha."""
        state = _state(rig)
        files = {
            "a": File(b"a"),
            "d/e/f": File(b"a"),
            "run": File(b"run", "100755"),
            "link": File(b"a", "120000"),
            "grüße #1%": File(b""),
        }
        repo = rig.given_repo(files)

        tree = state.tree(repo, rig.branches(repo)["main"])

        assert {path: entry.mode for path, entry in tree.items()} == {path: f.mode for path, f in files.items()}
        assert tree["a"].sha == tree["d/e/f"].sha != tree["run"].sha
        refused(NotFoundError, state.tree, repo, SHA_LIKE)

    def test_state_protection_is_read(self, rig: Rig) -> None:
        """The value is the branch's protection, or None. A rule for a branch with a similar name does not count."""
        state = _state(rig)
        repo = rig.given_repo()
        rig.given_branches(repo, ["release", "release-1"])
        rig.given_protection(repo, "release", BranchProtection())

        current = state.protection(repo, "release")

        assert current is not None
        assert not BranchProtection().missing_from(current)
        assert state.protection(repo, "release-1") is None
        refused(NotFoundError, state.protection, repo, "none")
        refused(NotFoundError, state.protection, rig.fresh_path(), "main")

    def test_state_a_pull_request_is_read(self, rig: Rig) -> None:
        """An open pull request is read, and after the merge it has the merge commit."""
        state = _state(rig)
        repo = given_feature(rig)
        number = rig.given_pull_request(repo, source_branch="feature", title="A change")

        opened = state.get_pull_request(repo, number)
        sha = rig.given_merged(repo, number)
        merged = state.get_pull_request(repo, number)

        assert (opened.number, opened.title, opened.state) == (number, "A change", PullRequestState.OPEN)
        assert (opened.source_branch, opened.target_branch) == ("feature", "main")
        assert opened.head_sha == rig.branches(repo)["feature"]
        assert opened.merge_commit_sha is None
        assert (merged.state, merged.merge_commit_sha) == (PullRequestState.MERGED, sha)
        refused(NotFoundError, state.get_pull_request, repo, number + 1)
        refused(NotFoundError, state.get_pull_request, rig.fresh_path(), number)

    def test_state_pull_requests_are_found_by_their_branches(self, rig: Rig) -> None:
        """The newest comes first, in any state or in one. Similar source branches and other targets are excluded."""
        state = _state(rig)
        repo = given_feature(rig)
        rig.given_branches(repo, ["develop"])
        rig.given_branch(repo, "feature-2", source="feature")
        closed = rig.given_pull_request(repo, source_branch="feature")
        rig.given_closed(repo, closed)
        rig.given_pull_request(repo, source_branch="feature-2")
        rig.given_pull_request(repo, source_branch="feature", target_branch="develop")
        opened = rig.given_pull_request(repo, source_branch="feature")

        def found(kind: PullRequestState | None) -> list[int]:
            pulls = state.find_pull_requests(repo, source_branch="feature", target_branch="main", state=kind)
            return [pull.number for pull in pulls]

        assert found(None) == [opened, closed]
        assert found(PullRequestState.OPEN) == [opened]
        assert found(PullRequestState.CLOSED) == [closed]
        assert found(PullRequestState.MERGED) == []

    @pytest.mark.parametrize("branch", ["feature/login", "a%2Fb#1", "grüße/\U0001f680", "a+b&c=d"])
    def test_state_pull_requests_are_found_under_any_branch_name(self, rig: Rig, branch: str) -> None:
        """Special characters in a branch name are encoded in the query."""
        state = _state(rig)
        repo = given_feature(rig, branch)
        number = rig.given_pull_request(repo, source_branch=branch)

        found = state.find_pull_requests(repo, source_branch=branch, target_branch="main")

        assert [pull.number for pull in found] == [number]
