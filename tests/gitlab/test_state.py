"""HostState on GitLab, and the reads of the contract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gitprovider.contract import TreeEntry
from gitprovider.errors import InvalidRequestError, NotFoundError, Outcome, RepoMovedError, UnsupportedOptionError
from gitprovider.gitlab import GitLabProvider
from gitprovider.models import PullRequestState, PutFile, Visibility
from tests.gitlab.world import REPO, URL, World

Make = Callable[..., World]


def test_a_renamed_project_is_read_at_its_new_place(world: World, provider: GitLabProvider) -> None:
    """GL-GR-06: by the number in the redirect, and the value has the new path."""
    before = provider.get_repo(REPO)
    world.forge.rename_repo(REPO, "acme/gadgets")

    value = provider.get_repo(REPO)

    assert (value.path, value.id) == ("acme/gadgets", before.id)


@pytest.mark.parametrize(
    "place", ["https://elsewhere.invalid/x", f"{URL}/users/sign_in", f"{URL}/api/v4/projects/x", ""]
)
def test_a_redirect_that_names_no_project_is_not_followed(world: World, provider: GitLabProvider, place: str) -> None:
    """A link is never an address."""
    world.fault("redirect", status=302, headers={"Location": place}, times=None)

    with pytest.raises(RepoMovedError) as caught:
        provider.get_repo(REPO)

    assert caught.value.moved_to is None
    assert len(world.request_log) <= 2


@pytest.mark.parametrize(
    "place",
    [
        "https://other.example.org/api/v4/projects/{id}",
        "http://gitlab.com/api/v4/projects/{id}",
        "https://gitlab.com:8443/api/v4/projects/{id}",
        "//other.example.org/api/v4/projects/{id}",
        "https://gitlab.com/elsewhere/api/v4/projects/{id}",
    ],
)
def test_a_redirect_to_another_origin_names_no_project_of_this_one(
    world: World, provider: GitLabProvider, place: str
) -> None:
    """A number of another host would be read as this host's project of that number."""
    number = world.forge.repo(REPO).id
    world.fault("redirect", status=301, headers={"Location": place.format(id=number)}, times=1)

    with pytest.raises(RepoMovedError) as caught:
        provider.get_repo("acme/renamed")

    assert caught.value.moved_to is None


def test_a_redirect_without_a_host_is_of_this_one(world: World, provider: GitLabProvider) -> None:
    """A relative Location names the host that sent it."""
    number = world.forge.repo(REPO).id
    world.fault("redirect", status=301, headers={"Location": f"/api/v4/projects/{number}"})

    assert provider.get_repo("acme/renamed").path == REPO


def test_the_second_redirect_is_an_error(world: World, provider: GitLabProvider) -> None:
    """Followed once."""
    world.fault("redirect", status=301, headers={"Location": f"{URL}/api/v4/projects/7"}, times=None)

    with pytest.raises(RepoMovedError):
        provider.get_repo(REPO)


def test_writes_to_an_old_path_say_the_new_one(world: World, provider: GitLabProvider) -> None:
    """GL-X-01: 405 without a Location; nothing is sent to the new place but the question."""
    world.forge.rename_repo(REPO, "acme/gadgets")

    with pytest.raises(RepoMovedError) as caught:
        provider.create_branch(REPO, "feature", source=world.head)

    assert caught.value.moved_to == "acme/gadgets"
    assert len(world.mutations) == 1
    assert "feature" not in dict(world.forge.branches("acme/gadgets"))


def test_an_empty_project_of_an_old_server_has_a_default_branch(world: World, provider: GitLabProvider) -> None:
    """GL-GR-02: null there; the name that a first commit will have."""
    handle = world.fake.handle
    world.forge.create_repo("acme/empty")

    def old(request: object) -> object:
        answer = handle(request)  # type: ignore[arg-type]  # passed on
        return replace(answer, body=answer.body.replace(b'"default_branch": "main"', b'"default_branch": null'))

    world.fake.handle = old  # type: ignore[method-assign, assignment]  # interposed, not replaced

    assert provider.get_repo("acme/empty").default_branch == "main"
    assert provider.list_branches("acme/empty") == []


@pytest.mark.parametrize("visibility", list(Visibility))
def test_internal_is_for_self_managed_hosts(make_world: Make, visibility: Visibility) -> None:
    """gitlab.com has disabled it, and nothing is sent."""
    world = make_world()
    if visibility is Visibility.INTERNAL:
        with pytest.raises(UnsupportedOptionError):
            world.provider().create_repo("acme/new", visibility=visibility)
        assert world.sent == []
        return

    assert world.provider().create_repo("acme/new", visibility=visibility).visibility is visibility


def test_internal_is_made_on_a_self_managed_host(make_world: Make) -> None:
    """The same option, another host."""
    world = make_world(url="https://git.example.org")

    assert world.provider().supports("create_repo.visibility=internal")
    assert world.provider().create_repo("acme/new", visibility=Visibility.INTERNAL).visibility is Visibility.INTERNAL


@pytest.mark.parametrize(
    "path", ["../acme/x", "/acme/x", "acme/x/", "https://gitlab.com/acme/x", "acme%2Fx", "acme//x", "acme/x.git"]
)
def test_a_path_that_is_none_is_refused_before_any_request(world: World, provider: GitLabProvider, path: str) -> None:
    """GL-X-08: no URL, no encoding, no slash too many."""
    with pytest.raises(InvalidRequestError) as caught:
        provider.get_repo(path)

    assert caught.value.argument == "repo"
    assert world.sent == []


def test_a_namespace_of_another_name_is_not_taken(world: World, provider: GitLabProvider) -> None:
    """GL-CR-03, GL-CR-08: a name of digits is a number to GitLab, and a search finds what is alike."""
    number = _number(world, "acme")

    for namespace in (str(number), "ACME", "acm"):
        with pytest.raises(NotFoundError):
            provider.create_repo(f"{namespace}/new")

    assert world.mutations == []


def _number(world: World, path: str) -> int:
    with world.provider().sdk() as client:
        return int(client.namespaces.get(path).id)


def test_the_token_s_own_namespace_takes_projects(world: World, provider: GitLabProvider) -> None:
    """A user's namespace is one like any other."""
    assert provider.create_repo("tanuki/new").path == "tanuki/new"


def test_contains_is_reachability(world: World, provider: GitLabProvider) -> None:
    """The head, its ancestors, and nothing else; an unknown commit is not."""
    feature = world.feature()

    assert provider.contains(REPO, world.head, "main")
    assert provider.contains(REPO, world.head.upper(), "feature")
    assert provider.contains(REPO, feature, "feature")
    assert not provider.contains(REPO, feature, "main")
    assert not provider.contains(REPO, "1" * 40, "main")
    with pytest.raises(NotFoundError):
        provider.contains(REPO, world.head, "missing")


def test_a_tree_is_whole_whatever_its_size(world: World, provider: GitLabProvider) -> None:
    """Every page, files alone, with their modes."""
    files = [PutFile(path=f"d{n % 7}/f{n}", content=str(n), executable=n % 2 == 0) for n in range(230)]
    commit = provider.commit_files(REPO, "main", files, message="m")

    tree = provider.tree(REPO, commit.sha)

    assert dict(tree) == world.forge.read_tree(REPO, commit.sha)
    assert len(tree) == 231
    assert all(isinstance(entry, TreeEntry) for entry in tree.values())
    with pytest.raises(NotFoundError):
        provider.tree(REPO, "1" * 40)


def test_a_commit_is_read_by_its_sha(world: World, provider: GitLabProvider) -> None:
    """With its parent and message."""
    sha = world.commit("main", {"a": b"1"}, "Add a")

    value = provider.commit(REPO, sha)

    assert (value.sha, value.parent, value.message.strip(), value.branch) == (sha, world.head, "Add a", "")
    with pytest.raises(NotFoundError):
        provider.commit(REPO, "1" * 40)


def test_pull_requests_are_found_by_both_branches(ready: World) -> None:
    """Newest first, in any state or one, and no other's."""
    provider = ready.provider()
    ready.forge.update_pull_request(REPO, 1, state=PullRequestState.CLOSED)
    second = provider.open_pull_request(REPO, source_branch="feature", target_branch="main", title="again")
    provider.open_pull_request(REPO, source_branch="other", target_branch="main", title="other")

    between: dict[str, Any] = {"source_branch": "feature", "target_branch": "main"}
    assert [pull.number for pull in provider.find_pull_requests(REPO, **between)] == [second.number, 1]
    found = provider.find_pull_requests(REPO, **between, state=PullRequestState.CLOSED)
    assert [pull.number for pull in found] == [1]
    assert provider.find_pull_requests(REPO, source_branch="main", target_branch="feature") == []
    assert provider.get_pull_request(REPO, 1).state is PullRequestState.CLOSED
    with pytest.raises(NotFoundError):
        provider.get_pull_request(REPO, 99)


def test_a_merged_one_has_its_commit(ready: World) -> None:
    """Also for resolve, which looks for it."""
    provider = ready.provider()
    result = provider.merge_pull_request(REPO, 1)

    assert provider.get_pull_request(REPO, 1).merge_commit_sha == result.sha


def test_what_a_provider_says_of_itself(provider: GitLabProvider) -> None:
    """For resolve and for whoever shows it."""
    assert (provider.name, provider.settle) == ("gitlab", 90.0)
    assert not provider.supports("protect_branch.required_checks")


def test_a_closed_provider_refuses_calls(world: World) -> None:
    """And sends nothing."""
    with world.provider() as provider:
        pass

    with pytest.raises(InvalidRequestError, match="closed"):
        provider.get_repo(REPO)
    with pytest.raises(InvalidRequestError, match="closed"), provider.sdk():
        pass
    assert world.sent == []


def test_a_branch_at_an_unknown_commit_changes_nothing(world: World, provider: GitLabProvider) -> None:
    """In a project that has commits."""
    with pytest.raises(NotFoundError) as caught:
        provider.create_branch(REPO, "feature", source="1" * 40)

    assert caught.value.outcome is Outcome.NOT_APPLIED


def test_a_branch_in_an_empty_project_may_begin_it(world: World, provider: GitLabProvider) -> None:
    """GitLab makes the default branch before it looks for the commit: not "nothing changed"."""
    world.forge.create_repo("acme/empty")

    with pytest.raises(NotFoundError) as caught:
        provider.create_branch("acme/empty", "feature", source="1" * 40)

    assert caught.value.outcome is Outcome.UNKNOWN
    assert "README.md" in (caught.value.hint or "")
    assert dict(world.forge.branches("acme/empty")).keys() == {"main"}
