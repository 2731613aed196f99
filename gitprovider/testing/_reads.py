"""Cases for get_repo and list_branches, and for all operations."""

from __future__ import annotations

import json
from datetime import UTC

import pytest

from gitprovider.contract import optional
from gitprovider.errors import (
    AuthenticationError,
    GitProviderError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    RepoMovedError,
)
from gitprovider.intent import Intent
from gitprovider.models import BranchProtection, PutFile, Visibility
from gitprovider.testing._assertions import invalid, mutations, nothing_sent, refused
from gitprovider.testing._inputs import BAD_REPOS, BRANCH_CALLS, CALLS, GOOD_BRANCHES, READS
from gitprovider.testing.rig import Rig


class EveryOperationCases:
    """Cases for all eight operations."""

    @pytest.mark.parametrize("operation", CALLS)
    def test_a_malformed_path_is_refused_before_any_request(self, rig: Rig, operation: str) -> None:
        """A URL, an outer slash, an empty part, a control character or another type is not a repository path."""
        for bad in BAD_REPOS:
            call, args, kwargs = CALLS[operation](rig.provider, bad)
            invalid(rig, "repo", call, *args, **kwargs)

    @pytest.mark.parametrize("operation", [name for name in CALLS if name != "create_repo"])
    def test_an_unknown_repository_is_not_found(self, rig: Rig, operation: str) -> None:
        """A missing repository raises NotFoundError with its path."""
        repo = rig.fresh_path()
        call, args, kwargs = CALLS[operation](rig.provider, repo)

        error = refused(NotFoundError, call, *args, **kwargs)

        assert error.repo == repo
        assert not rig.exists(repo)

    @pytest.mark.parametrize("operation", [name for name in CALLS if name not in READS])
    def test_a_failed_mutation_carries_its_intent(self, rig: Rig, operation: str) -> None:
        """The error of a mutation has the intent that ``resolve`` needs, and the intent can be stored as JSON."""
        repo = rig.given_repo() if operation == "create_repo" else rig.fresh_path()
        call, args, kwargs = CALLS[operation](rig.provider, repo)

        intent = refused(GitProviderError, call, *args, **kwargs).intent

        assert intent is not None, "a mutation's error has an intent"
        assert (intent.operation, intent.repo) == (operation, repo)
        assert Intent.from_json(json.loads(json.dumps(intent.to_json()))) == intent

    @pytest.mark.parametrize("operation", [name for name in CALLS if name not in ("get_repo", "create_repo")])
    def test_a_renamed_repository_has_moved(self, rig: Rig, operation: str) -> None:
        """At the old path, every operation except get_repo raises RepoMovedError. Nothing is sent to the new path."""
        old = rig.given_repo()
        rig.given_branch(old, "feature")
        rig.given_commit(old, "feature", {"feature.txt": b"feature\n"})
        if operation == "merge_pull_request":
            rig.given_pull_request(old, source_branch="feature")
        new = rig.given_renamed(old)
        before = (rig.branches(new), rig.pull_requests(new), rig.protection(new, "feature"))
        call, args, kwargs = CALLS[operation](rig.provider, old)

        error = refused(RepoMovedError, call, *args, **kwargs)

        assert error.moved_to in (new, None)
        assert (rig.branches(new), rig.pull_requests(new), rig.protection(new, "feature")) == before

    @pytest.mark.parametrize("renamed", ["main", "feature"])
    @pytest.mark.parametrize("operation", BRANCH_CALLS)
    def test_a_renamed_branch_is_not_found_by_its_old_name(self, rig: Rig, operation: str, renamed: str) -> None:
        """No operation follows a branch to its new name, the default branch or another: it raises NotFoundError."""
        repo = rig.given_repo()
        for name in ("feature", "other"):
            rig.given_branch(repo, name)
            rig.given_commit(repo, name, {f"{name}.txt": b"new\n"})
        rig.given_renamed_branch(repo, renamed, "trunk")
        before = (rig.branches(repo), rig.pull_requests(repo), rig.protection(repo, "trunk"))
        call, args, kwargs = BRANCH_CALLS[operation](rig.provider, repo, renamed)

        refused(NotFoundError, call, *args, **kwargs)

        assert (rig.branches(repo), rig.pull_requests(repo), rig.protection(repo, "trunk")) == before

    @pytest.mark.parametrize("renamed", ["main", "feature"])
    def test_a_renamed_branch_has_its_new_name(self, rig: Rig, renamed: str) -> None:
        """It is listed once, and a renamed default branch is the repository's default branch."""
        repo = rig.given_repo()
        head = rig.given_branch(repo, "feature")
        rig.given_renamed_branch(repo, renamed, "trunk")

        listed = rig.provider.list_branches(repo)

        assert {branch.name: branch.sha for branch in listed} == rig.branches(repo)
        assert [branch.sha for branch in listed if branch.name == "trunk"] == [head]
        assert rig.provider.get_repo(repo).default_branch == ("trunk" if renamed == "main" else "main")

    def test_the_old_name_of_a_renamed_branch_is_free(self, rig: Rig) -> None:
        """A branch of that name is another branch: it can be created and committed to, and the renamed one stays."""
        repo = rig.given_repo()
        rig.given_branch(repo, "feature")
        rig.given_renamed_branch(repo, "feature", "trunk")
        before = rig.branches(repo)

        rig.provider.create_branch(repo, "feature", source="trunk")
        made = rig.provider.commit_files(repo, "feature", [PutFile(path="new.txt", content="new\n")], message="New")

        assert rig.branches(repo) == {**before, "feature": made.sha}

    @pytest.mark.parametrize("operation", ["create_branch", "commit_files", "open_pull_request", "merge_pull_request"])
    def test_an_archived_repository_is_not_changed(self, rig: Rig, operation: str) -> None:
        """An archived repository is read-only: PermissionDeniedError is raised, and nothing changes."""
        repo = rig.given_repo()
        rig.given_branch(repo, "feature")
        rig.given_commit(repo, "feature", {"feature.txt": b"feature\n"})
        if operation == "merge_pull_request":
            rig.given_pull_request(repo, source_branch="feature")
        rig.given_archived(repo)
        before = (rig.branches(repo), rig.pull_requests(repo))
        call, args, kwargs = CALLS[operation](rig.provider, repo)

        refused(PermissionDeniedError, call, *args, **kwargs)

        assert (rig.branches(repo), rig.pull_requests(repo)) == before

    @pytest.mark.parametrize("operation", CALLS)
    def test_a_credential_that_is_no_longer_good(self, rig: Rig, operation: str) -> None:
        """AuthenticationError is raised after one request, without retries, and nothing changes."""
        repo = rig.given_repo()
        rig.given_branch(repo, "feature")
        before = (rig.branches(repo), rig.pull_requests(repo), rig.protection(repo, "feature"))
        asked = rig.fresh_path() if operation == "create_repo" else repo
        if not rig.given_revoked_credential():
            pytest.skip("this host needs no credential")
        sent = rig.requests_seen()
        call, args, kwargs = CALLS[operation](rig.provider, asked)

        error = refused(AuthenticationError, call, *args, **kwargs)

        assert not error.retryable
        assert rig.requests_seen() - sent == 1
        assert (rig.branches(repo), rig.pull_requests(repo), rig.protection(repo, "feature")) == before


class GetRepoCases:
    """get_repo."""

    def test_get_repo_a_repository_is_read(self, rig: Rig) -> None:
        """The value has the host's data in the contract's types."""
        repo = rig.given_repo(description="Widgets, Größe 4", visibility=Visibility.PRIVATE)

        value = rig.provider.get_repo(repo)

        assert value.path == repo
        assert value.description == "Widgets, Größe 4"
        assert value.visibility is Visibility.PRIVATE
        assert value.default_branch == "main"
        assert value.archived is False
        assert value.id, "a repository has an id"
        assert value.provider, "a repository has a provider's name"
        assert value.web_url, "a repository has a web page"
        assert value.clone_url, "a repository has a clone URL"
        assert value.created_at is None or value.created_at.tzinfo is UTC

    def test_get_repo_a_public_repository_says_so(self, rig: Rig) -> None:
        """``visibility`` is the host's value."""
        repo = rig.given_repo(visibility=Visibility.PUBLIC)

        assert rig.provider.get_repo(repo).visibility is Visibility.PUBLIC

    def test_get_repo_an_empty_repository_names_its_default_branch(self, rig: Rig) -> None:
        """``default_branch`` is set although the branch does not exist yet."""
        assert rig.provider.get_repo(rig.given_empty_repo()).default_branch == "main"

    def test_get_repo_an_archived_repository_says_so(self, rig: Rig) -> None:
        """``archived`` is the host's value."""
        repo = rig.given_repo()
        rig.given_archived(repo)

        assert rig.provider.get_repo(repo).archived is True

    def test_get_repo_a_renamed_repository_is_read_at_its_new_place(self, rig: Rig) -> None:
        """The old path redirects to the repository: ``path`` is the new path, and ``id`` is the same."""
        old = rig.given_repo()
        before = rig.provider.get_repo(old)
        new = rig.given_renamed(old)

        value = rig.provider.get_repo(old)

        assert value.path == new
        assert value.id == before.id
        assert value == rig.provider.get_repo(new)

    def test_get_repo_two_repositories_have_two_ids(self, rig: Rig) -> None:
        """The ids of two repositories differ."""
        ids = {rig.provider.get_repo(rig.given_repo()).id for _ in range(2)}

        assert len(ids) == 2

    def test_get_repo_reading_twice_gives_equal_values(self, rig: Rig) -> None:
        """Values with equal fields are equal."""
        repo = rig.given_repo()

        assert rig.provider.get_repo(repo) == rig.provider.get_repo(repo)

    def test_get_repo_reading_changes_nothing(self, rig: Rig) -> None:
        """A read sends no mutation."""
        repo = rig.given_repo()

        with mutations(rig, at_most=0):
            rig.provider.get_repo(repo)

    def test_get_repo_a_name_that_another_one_begins_with_is_not_found(self, rig: Rig) -> None:
        """A path must match exactly; a prefix does not."""
        repo = rig.given_repo()

        refused(NotFoundError, rig.provider.get_repo, repo[:-1])

    def test_get_repo_optional_makes_a_probe_of_it(self, rig: Rig) -> None:
        """``optional`` turns NotFoundError into None and raises any other error."""
        assert optional(rig.provider.get_repo, rig.fresh_path()) is None
        with nothing_sent(rig), pytest.raises(InvalidRequestError):
            optional(rig.provider.get_repo, "no path")


class ListBranchesCases:
    """list_branches."""

    def test_list_branches_an_empty_repository_has_no_branch(self, rig: Rig) -> None:
        """An empty repository gives an empty list, not an error."""
        assert rig.provider.list_branches(rig.given_empty_repo()) == []

    def test_list_branches_each_branch_has_its_own_head(self, rig: Rig) -> None:
        """Names and shas are the host's values."""
        repo = rig.given_repo()
        rig.given_branch(repo, "develop")
        rig.given_commit(repo, "develop", {"a.txt": b"a\n"})

        listed = {b.name: b.sha for b in rig.provider.list_branches(repo)}

        assert listed == rig.branches(repo)
        assert listed["develop"] != listed["main"]

    def test_list_branches_names_are_sorted_by_code_points(self, rig: Rig) -> None:
        """The order is the same on every host and in every locale."""
        repo = rig.given_repo()
        names = ["zz", "a", "feature/x", "feature0", "feature-x", "B", "ä", "日本", "_", "A"]
        rig.given_branches(repo, names)

        listed = [b.name for b in rig.provider.list_branches(repo)]

        assert listed == sorted([*names, "main"])

    def test_list_branches_any_name_that_git_takes_is_listed_as_it_is(self, rig: Rig) -> None:
        """No name is decoded, encoded, case-folded or truncated."""
        repo = rig.given_repo()
        rig.given_branches(repo, GOOD_BRANCHES)

        listed = {b.name for b in rig.provider.list_branches(repo)}

        assert listed == {*GOOD_BRANCHES, "main"}

    @pytest.mark.parametrize("count", [99, 100, 101, 200, 1000])
    def test_list_branches_every_page_is_read(self, rig: Rig, count: int) -> None:
        """Every branch is listed once, even if the last page is full."""
        repo = rig.given_repo()
        names = [f"b{i:04}" for i in range(count - 1)]
        rig.given_branches(repo, names)

        listed = [b.name for b in rig.provider.list_branches(repo)]

        assert len(listed) == count, f"there are {count} branches, but {len(listed)} were listed"
        assert listed == sorted([*names, "main"])

    def test_list_branches_protection_is_told(self, rig: Rig) -> None:
        """``protected`` is True if a rule applies and False if none does; None if the host does not say."""
        repo = rig.given_repo()
        rig.given_branches(repo, ["free", "kept"])
        rig.given_protection(repo, "kept", BranchProtection())

        protected = {b.name: b.protected for b in rig.provider.list_branches(repo)}

        assert protected["kept"] in (True, None)
        assert protected["free"] in (False, None)

    def test_list_branches_a_deleted_branch_is_not_listed(self, rig: Rig) -> None:
        """A branch disappears from the list after it is deleted."""
        repo = rig.given_repo()
        sha = rig.given_branch(repo, "gone")
        assert ("gone", sha) in [(b.name, b.sha) for b in rig.provider.list_branches(repo)]
        rig.given_no_branch(repo, "gone")

        assert [b.name for b in rig.provider.list_branches(repo)] == ["main"]

    def test_list_branches_listing_changes_nothing(self, rig: Rig) -> None:
        """A read sends no mutation."""
        repo = rig.given_repo()

        with mutations(rig, at_most=0):
            rig.provider.list_branches(repo)
