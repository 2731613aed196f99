"""Cases for create_repo and create_branch."""

from __future__ import annotations

from typing import Any

import pytest

from gitprovider.errors import AlreadyExistsError, ConflictError, HeadMovedError, NotFoundError, NotMergeableError
from gitprovider.models import Branch, Visibility
from gitprovider.testing._assertions import eventually, invalid, mutations, refused, unsupported
from gitprovider.testing._inputs import BAD_BRANCHES, GOOD_BRANCHES, SHA_LIKE
from gitprovider.testing.rig import Rig


class CreateRepoCases:
    """create_repo."""

    def test_create_repo_a_repository_is_made_by_one_request(self, rig: Rig) -> None:
        """The repository exists afterwards, and the create request is sent once."""
        path = rig.fresh_path()

        with mutations(rig, at_least=1, at_most=1):
            value = rig.provider.create_repo(path)

        assert value.path == path
        assert rig.exists(path)

    def test_create_repo_the_value_is_what_a_read_gives(self, rig: Rig) -> None:
        """create_repo and get_repo return equal values."""
        made = rig.provider.create_repo(rig.fresh_path(), description="Widgets")

        assert rig.provider.get_repo(made.path) == made

    def test_create_repo_it_is_private_and_empty_unless_asked_otherwise(self, rig: Rig) -> None:
        """By default a repository is private and has no commit."""
        made = rig.provider.create_repo(rig.fresh_path())

        assert made.visibility is Visibility.PRIVATE
        assert made.description == ""
        assert made.archived is False
        assert rig.provider.list_branches(made.path) == []

    def test_create_repo_a_description_is_kept(self, rig: Rig) -> None:
        """The description is stored unchanged."""
        made = rig.provider.create_repo(rig.fresh_path(), description="Größe <b>& 'mehr'</b> \U0001f680 100%")

        assert rig.provider.get_repo(made.path).description == "Größe <b>& 'mehr'</b> \U0001f680 100%"

    def test_create_repo_a_public_repository_can_be_made(self, rig: Rig) -> None:
        """The repository has the requested visibility."""
        made = rig.provider.create_repo(rig.fresh_path(), visibility=Visibility.PUBLIC)

        assert rig.provider.get_repo(made.path).visibility is Visibility.PUBLIC

    def test_create_repo_an_internal_repository_is_made_or_refused(self, rig: Rig) -> None:
        """If the host has no INTERNAL, the call is refused, and no other visibility is used."""
        path = rig.fresh_path()
        if not rig.supports("create_repo.visibility=internal"):
            unsupported(
                rig,
                "create_repo.visibility=internal",
                rig.provider.create_repo,
                path,
                visibility=Visibility.INTERNAL,
            )
            assert not rig.exists(path)
            return

        made = rig.provider.create_repo(path, visibility=Visibility.INTERNAL)

        assert rig.provider.get_repo(made.path).visibility is Visibility.INTERNAL

    def test_create_repo_auto_init_makes_a_first_commit(self, rig: Rig) -> None:
        """The default branch has a README, perhaps moments later."""
        if not rig.supports("create_repo.auto_init"):
            unsupported(rig, "create_repo.auto_init", rig.provider.create_repo, rig.fresh_path(), auto_init=True)
            return

        made = rig.provider.create_repo(rig.fresh_path(), auto_init=True)

        branches = eventually(lambda: rig.provider.list_branches(made.path))
        assert [b.name for b in branches] == [made.default_branch]
        assert any(path.upper().startswith("README") for path in rig.files(made.path, made.default_branch))

    def test_create_repo_a_path_that_is_taken_is_refused(self, rig: Rig) -> None:
        """AlreadyExistsError has the existing repository, which is unchanged. The request is sent once."""
        path = rig.given_repo({"kept.txt": b"kept\n"}, description="first")
        before = rig.provider.get_repo(path)

        with mutations(rig, at_most=1):
            error = refused(AlreadyExistsError, rig.provider.create_repo, path, description="second")

        assert error.existing == before
        assert rig.provider.get_repo(path) == before
        assert set(rig.files(path, "main")) == {"kept.txt"}

    def test_create_repo_the_old_path_of_a_renamed_repository_is_free(self, rig: Rig) -> None:
        """The path then belongs to the new repository, and the renamed one stays as it is."""
        old = rig.given_repo()
        before = rig.provider.get_repo(old)
        new = rig.given_renamed(old)

        made = rig.provider.create_repo(old)

        assert (made.path, rig.provider.get_repo(old).id) == (old, made.id)
        assert made.id != before.id
        assert rig.provider.get_repo(new).id == before.id

    def test_create_repo_an_unknown_namespace_is_not_found(self, rig: Rig) -> None:
        """A repository is never created in another namespace than the requested one."""
        if rig.unknown_namespace is None:
            pytest.skip("this host creates a missing namespace")
        path = f"{rig.unknown_namespace}/widgets"

        refused(NotFoundError, rig.provider.create_repo, path)

        assert not rig.exists(path)

    def test_create_repo_wrong_arguments_are_refused_before_any_request(self, rig: Rig) -> None:
        """Each error names its argument, and no repository is created."""
        path = rig.fresh_path()
        wrong: list[tuple[str, Any]] = [
            ("description", None),
            ("description", 3),
            ("description", "two\nlines"),
            ("description", "bell\x07"),
            ("description", "\udc80"),
            ("visibility", "secret"),
            ("visibility", None),
            ("visibility", ""),
            ("auto_init", "yes"),
            ("auto_init", None),
            ("auto_init", 1),
        ]

        for argument, value in wrong:
            invalid(rig, argument, rig.provider.create_repo, path, **{argument: value})

        assert not rig.exists(path)


class CreateBranchCases:
    """create_branch."""

    def test_create_branch_a_branch_is_made_at_the_head_of_another(self, rig: Rig) -> None:
        """The branch is created by one mutation at the source's current head. No other branch moves."""
        repo = rig.given_repo()
        rig.given_branch(repo, "develop")
        head = rig.given_commit(repo, "develop", {"a.txt": b"a\n"})
        before = rig.branches(repo)

        with mutations(rig, at_least=1, at_most=1):
            value = rig.provider.create_branch(repo, "feature", source="develop")

        assert (value.name, value.sha) == ("feature", head)
        assert value.protected in (False, None)
        assert rig.branches(repo) == {**before, "feature": head}

    def test_create_branch_a_branch_is_made_at_a_commit(self, rig: Rig) -> None:
        """A full sha names the commit itself, wherever the branches are now."""
        repo = rig.given_repo()
        first = rig.branches(repo)["main"]
        rig.given_commit(repo, "main", {"a.txt": b"a\n"})

        value = rig.provider.create_branch(repo, "old", source=first)

        assert value.sha == first
        assert rig.branches(repo)["old"] == first

    def test_create_branch_a_sha_may_be_in_upper_case(self, rig: Rig) -> None:
        """The case of hexadecimal digits does not matter."""
        repo = rig.given_repo()
        head = rig.branches(repo)["main"]

        assert rig.provider.create_branch(repo, "copy", source=head.upper()).sha == head

    @pytest.mark.parametrize("name", GOOD_BRANCHES)
    def test_create_branch_any_name_that_git_takes_is_made_as_it_is(self, rig: Rig, name: str) -> None:
        """The name is stored unchanged and can be listed and used as a source."""
        repo = rig.given_repo()

        value = rig.provider.create_branch(repo, name, source="main")

        assert value.name == name
        assert set(rig.branches(repo)) == {"main", name}
        assert rig.provider.create_branch(repo, "again", source=name).sha == value.sha

    def test_create_branch_a_name_that_git_refuses_is_refused_before_any_request(self, rig: Rig) -> None:
        """Names that Git would interpret as something else are refused too: HEAD, refs/heads/… and a full sha."""
        repo = rig.given_repo()

        for bad in (*BAD_BRANCHES, SHA_LIKE):
            invalid(rig, "name", rig.provider.create_branch, repo, bad, source="main")

        assert set(rig.branches(repo)) == {"main"}

    def test_create_branch_a_source_that_git_refuses_is_refused_before_any_request(self, rig: Rig) -> None:
        """A source must be a branch name or a full sha."""
        repo = rig.given_repo()

        for bad in BAD_BRANCHES:
            invalid(rig, "source", rig.provider.create_branch, repo, "feature", source=bad)

    def test_create_branch_a_branch_that_exists_is_never_moved(self, rig: Rig) -> None:
        """AlreadyExistsError has the existing branch and its head. The request is sent once, and the branch stays."""
        repo = rig.given_repo()
        rig.given_branch(repo, "feature")
        head = rig.given_commit(repo, "feature", {"a.txt": b"a\n"})

        with mutations(rig, at_most=1):
            error = refused(AlreadyExistsError, rig.provider.create_branch, repo, "feature", source="main")

        assert isinstance(error.existing, Branch)
        assert (error.existing.name, error.existing.sha) == ("feature", head)
        assert rig.branches(repo)["feature"] == head

    def test_create_branch_a_branch_that_exists_at_that_very_commit_exists(self, rig: Rig) -> None:
        """Creating the same branch twice is an error, not a success."""
        repo = rig.given_repo()
        rig.provider.create_branch(repo, "feature", source="main")

        error = refused(AlreadyExistsError, rig.provider.create_branch, repo, "feature", source="main")

        assert isinstance(error.existing, Branch)
        assert error.existing.sha == rig.branches(repo)["feature"]

    def test_create_branch_the_existing_branch_is_found_under_any_name(self, rig: Rig) -> None:
        """The read of the existing branch encodes special characters in the name."""
        repo = rig.given_repo()
        rig.given_branches(repo, ["a%2Fb#1+c&d", "a"])

        error = refused(AlreadyExistsError, rig.provider.create_branch, repo, "a%2Fb#1+c&d", source="main")

        assert isinstance(error.existing, Branch)
        assert error.existing.name == "a%2Fb#1+c&d"

    def test_create_branch_an_unknown_source_is_not_found(self, rig: Rig) -> None:
        """An unknown branch, an unknown commit and an abbreviated sha are not found."""
        repo = rig.given_repo()
        abbreviated = rig.branches(repo)["main"][:7]

        for source in ("develop", SHA_LIKE, abbreviated):
            refused(NotFoundError, rig.provider.create_branch, repo, "feature", source=source)

        assert set(rig.branches(repo)) == {"main"}

    def test_create_branch_a_source_is_not_found_by_its_beginning(self, rig: Rig) -> None:
        """``feat`` does not match ``feature``."""
        repo = rig.given_repo()
        rig.given_branches(repo, ["feature", "feat/1"])

        refused(NotFoundError, rig.provider.create_branch, repo, "new", source="fea")
        refused(NotFoundError, rig.provider.create_branch, repo, "new", source="feat")

    def test_create_branch_an_empty_repository_has_no_source(self, rig: Rig) -> None:
        """An empty repository has no commit that a branch could point at."""
        repo = rig.given_empty_repo()

        refused(NotFoundError, rig.provider.create_branch, repo, "feature", source="main")

        assert rig.branches(repo) == {}

    @pytest.mark.parametrize(("there", "asked"), [("release", "release/1"), ("release/1", "release"), ("a", "a/b/c")])
    def test_create_branch_a_path_prefix_in_the_way_is_a_conflict(self, rig: Rig, there: str, asked: str) -> None:
        """Git stores branches as paths: one cannot be below another, in either order."""
        repo = rig.given_repo()
        rig.given_branch(repo, there)

        error = refused(ConflictError, rig.provider.create_branch, repo, asked, source="main")

        assert not isinstance(error, HeadMovedError | NotMergeableError)
        assert set(rig.branches(repo)) == {"main", there}

    @pytest.mark.parametrize(("there", "asked"), [("release", "release-1"), ("release-1", "release"), ("a/b", "a/bc")])
    def test_create_branch_a_name_that_only_begins_alike_is_free(self, rig: Rig, there: str, asked: str) -> None:
        """A name that is a prefix by characters, but not by path, does not conflict."""
        repo = rig.given_repo()
        rig.given_branch(repo, there)

        rig.provider.create_branch(repo, asked, source="main")

        assert set(rig.branches(repo)) == {"main", there, asked}
