"""How many requests a call makes when nothing fails, and which: counted on the request log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gitprovider.errors import PermissionDeniedError
from gitprovider.gitlab import GitLabProvider
from gitprovider.models import BranchProtection, DeleteFile, FileChange, MergeMethod, MoveFile, PutFile
from tests.support.gitlab_world import REPO, World

Make = Callable[..., World]


def put(count: int, directory: str = "") -> list[PutFile]:
    return [PutFile(path=f"{directory}f{number:04}", content=str(number)) for number in range(count)]


def test_building_and_closing_a_provider_sends_nothing(world: World) -> None:
    """A service may build it at start-up without the host."""
    with world.provider() as provider:
        assert provider.supports("open_pull_request.draft")

    assert world.sent == []


def test_get_repo_is_one(world: World, provider: GitLabProvider) -> None:
    """And a second call is one more: nothing is kept that may change."""
    provider.get_repo(REPO)
    provider.get_repo(REPO)

    assert world.sent == ["GET", "GET"]


@pytest.mark.pitfall("GL-LB-01", "GL-LB-04")
@pytest.mark.parametrize(
    ("count", "pages"), [(0, 1), (19, 1), (20, 1), (99, 1), (100, 1), (101, 2), (200, 2), (250, 3)]
)
def test_list_branches_is_one_for_each_hundred(world: World, provider: GitLabProvider, count: int, pages: int) -> None:
    """No page of 20, and no page too many at the edge, with the totals and without."""
    if count == 0:
        world.forge.create_repo("acme/empty")
    for number in range(count - 1):
        world.branch(f"b{number:03}")

    for totals in (True, False):
        world.fake.totals = totals
        world.request_log.clear()
        branches = provider.list_branches("acme/empty" if count == 0 else REPO)
        assert len(branches) == count
        assert len(world.request_log) == pages


def test_create_repo_is_one_and_asks_for_a_namespace_once(world: World, provider: GitLabProvider) -> None:
    """The number of a namespace never changes."""
    provider.create_repo("acme/one")
    provider.create_repo("acme/two")
    provider.create_repo("acme/platform/three")

    assert world.sent == [
        "GET /namespaces/acme",
        "POST /projects",
        "POST /projects",
        "GET /namespaces/acme/platform",
        "POST /projects",
    ]


def test_a_refused_creation_asks_for_the_namespace_again(world: World, provider: GitLabProvider) -> None:
    """A group that was deleted and made anew has another number, and a service must not have to be restarted for it."""
    provider.create_repo("acme/one")
    body = b'{"message": {"namespace": ["is not valid"]}}'
    world.fault("status", method="POST", endpoint="/projects$", status=400, body=body)
    with pytest.raises(PermissionDeniedError):
        provider.create_repo("acme/two")

    provider.create_repo("acme/two")

    asked = ["GET /namespaces/acme", "POST /projects"]
    assert world.sent == [*asked, "POST /projects", *asked]


def test_create_branch_is_two_and_one_from_a_sha(world: World, provider: GitLabProvider) -> None:
    """The head of a source is read first, so that the branch is made at a commit that is known."""
    provider.create_branch(REPO, "one", source="main")
    provider.create_branch(REPO, "two", source=world.head)

    assert world.sent == [
        "GET /repository/branches/main",
        "POST /repository/branches",
        "POST /repository/branches",
    ]


def test_protect_branch_is_two_when_nothing_is_to_be_added(world: World, provider: GitLabProvider) -> None:
    """What holds is read, and is enough. A rule does not tell whether the branch is there."""
    world.forge.put_rule(REPO, "main", BranchProtection(enforce_admins=True))

    provider.protect_branch(REPO, "main")

    assert world.sent == ["GET /protected_branches", "GET /repository/branches/main"]


@pytest.mark.parametrize("tier", ["free", "premium"])
def test_protect_branch_is_three_without_a_rule(make_world: Make, tier: str) -> None:
    """The list, whether there is such a branch, and the rule, whose answer is what holds."""
    world = make_world(tier=tier)

    world.provider().protect_branch(REPO, "main")

    assert world.sent == ["GET /protected_branches", "GET /repository/branches/main", "POST /protected_branches"]


def test_protect_branch_is_four_where_a_rule_is_changed_in_place(make_world: Make) -> None:
    """Premium: the list, the branch, the change, and what then holds."""
    world = make_world(tier="premium")
    world.forge.put_rule(REPO, "main", BranchProtection(require_pull_request=False))

    world.provider().protect_branch(REPO, "main")

    read = ["GET /protected_branches", "GET /repository/branches/main"]
    assert world.sent == [*read, "PATCH /protected_branches/main", "GET /protected_branches"]


def test_protect_branch_is_eight_over_the_bridge(world: World, provider: GitLabProvider) -> None:
    """Free: the change that changes nothing, a look at the other branches, and four steps."""
    world.forge.put_rule(REPO, "main", BranchProtection(require_pull_request=False))

    provider.protect_branch(REPO, "main")

    assert world.sent == [
        "GET /protected_branches",
        "GET /repository/branches/main",
        "PATCH /protected_branches/main",
        "GET /repository/branches",
        "POST /protected_branches",
        "DELETE /protected_branches/main",
        "POST /protected_branches",
        "DELETE /protected_branches/mai*n",
    ]


@pytest.mark.parametrize(("count", "queries"), [(1, 1), (2, 1), (100, 1), (101, 2), (200, 2), (250, 3)])
@pytest.mark.parametrize("directory", ["", "a/b/c/"])
def test_commit_files_is_two_up_to_a_hundred_paths(
    world: World, provider: GitLabProvider, count: int, queries: int, directory: str
) -> None:
    """One query gives the head and what exists, for each hundred; then the commit."""
    provider.commit_files(REPO, "main", put(count, directory), message="m")

    assert world.sent == ["POST /graphql"] * queries + ["POST /repository/commits"]


def test_commit_files_is_two_whatever_the_changes_are(world: World, provider: GitLabProvider) -> None:
    """Modes, deletions, moves and binary files take no request of their own."""
    world.commit("main", {"gone": b"1", "from": b"2", "run": b"3"})
    changes: list[FileChange] = [
        PutFile(path="new/bin", content=b"\0\xff", executable=True),
        PutFile(path="run", content=b"4"),
        DeleteFile(path="gone"),
        MoveFile(path="from", to="deep/er/to"),
    ]

    provider.commit_files(REPO, "main", changes, message="m")

    assert world.sent == ["POST /graphql", "POST /repository/commits"]


@pytest.mark.parametrize("count", [1, 3, 300])
def test_commit_files_is_two_in_an_empty_repository(world: World, provider: GitLabProvider, count: int) -> None:
    """There is nothing to be found at the paths, however many they are."""
    world.forge.create_repo("acme/empty")

    provider.commit_files("acme/empty", "main", put(count), message="m")

    assert len(world.sent) == 2


def test_changes_that_change_nothing_are_two_reads(world: World, provider: GitLabProvider) -> None:
    """The head is described by the host, and nothing is written."""
    provider.commit_files(REPO, "main", [PutFile(path="README.md", content=b"# Widgets\n")], message="m")

    assert world.sent == ["POST /graphql", f"GET /repository/commits/{world.head}"]
    assert world.mutations == []


def test_open_pull_request_is_two_and_one_for_each_reviewer(make_world: Make) -> None:
    """Labels and drafts go in the same request. Only a comparison tells that branches have no history in common."""
    world = make_world(tier="premium")
    world.feature()

    world.provider().open_pull_request(
        REPO,
        source_branch="feature",
        target_branch="main",
        title="t",
        draft=True,
        labels=["a", "b"],
        reviewers=["alice", "bob"],
    )

    compared = "GET /repository/merge_base"
    assert world.sent == [compared, "GET /users", "GET /users", "POST /merge_requests"]


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("delete", [False, True])
def test_merge_pull_request_is_three(world: World, provider: GitLabProvider, pinned: bool, delete: bool) -> None:
    """The merge request, the settings, the merge. Reads tell who needs the source branch, and that it is gone."""
    number = world.pull_request()
    head = world.forge.head(REPO, "feature")

    provider.merge_pull_request(REPO, number, expected_head=head if pinned else None, delete_source_branch=delete)

    others, look = (["GET /merge_requests"] * 2, ["GET /repository/branches/feature"]) if delete else ([], [])
    read = [f"GET /merge_requests/{number}", "GET", *others]
    assert world.sent == [*read, f"PUT /merge_requests/{number}/merge", *look]


def test_merge_pull_request_polls_while_gitlab_computes(make_world: Make) -> None:
    """One read more for each that shows that it is computing; the merge is sent once."""
    world = make_world(mergeable_after=3)
    number = world.pull_request()

    world.provider().merge_pull_request(REPO, number)

    read = f"GET /merge_requests/{number}"
    assert world.sent == [read, "GET", read, read, read, f"PUT /merge_requests/{number}/merge"]
    assert len(world.time.slept) == 3


@pytest.mark.parametrize("method", list(MergeMethod))
def test_merge_pull_request_is_three_by_any_method(world: World, provider: GitLabProvider, method: MergeMethod) -> None:
    """A squash is no request of its own."""
    world.method(method)
    number = world.pull_request()

    provider.merge_pull_request(REPO, number, method=method)

    assert len(world.sent) == 3
