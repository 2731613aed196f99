"""What each operation costs: the requests it makes when nothing fails, counted on the request log."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitprovider import BranchProtection, DeleteFile, MoveFile, PutFile
from tests.support.github_hub import REPO, Hub, running

BRANCH, TREE, REF = "GET /branches/{branch/}", "GET /git/trees/{name/}", "GET /git/ref/{ref/}"
WRITE = ["POST /git/trees", "POST /git/commits", "PATCH /git/refs/{ref/}"]
BLOB = "POST /git/blobs"
CONTENTS = "PUT /contents/{path/}"
PULL, MERGE = "GET /pulls/{number}", "PUT /pulls/{number}/merge"


def test_get_repo_is_one_request(hub: Hub) -> None:
    """A repository is read at once, empty or not."""
    hub.provider.get_repo(REPO)

    assert hub.calls() == ["GET /"]


@pytest.mark.parametrize(("branches", "pages"), [(1, 1), (100, 1), (101, 2), (201, 3)])
def test_list_branches_is_a_request_a_hundred(hub: Hub, branches: int, pages: int) -> None:
    """A listing asks for pages of a hundred, and for none beyond the last."""
    for number in range(1, branches):
        hub.given_branch(f"b{number}")

    listed = hub.provider.list_branches(REPO)

    assert len(listed) == branches
    assert hub.calls() == ["GET /branches"] * pages
    assert [entry.query for entry in hub.sent] == [{"per_page": "100", "page": str(n + 1)} for n in range(pages)]


def test_pages_side_by_side_are_the_same_requests(hub: Hub) -> None:
    """A provider would ask for a page twice, or list other branches than one page at a time."""
    for number in range(300):
        hub.given_branch(f"b{number}")

    with hub.connect(page_concurrency=3) as provider:
        listed = provider.list_branches(REPO)

    assert sorted(entry.query["page"] for entry in hub.sent) == ["1", "2", "3", "4"]
    assert listed == hub.provider.list_branches(REPO)


def test_list_branches_of_an_empty_repository_is_one_request(hub: Hub) -> None:
    """Even no branches take one request to know."""
    hub.forge.create_repo("acme/empty")

    assert hub.provider.list_branches("acme/empty") == []
    assert hub.calls() == ["GET /branches"]


def test_create_repo_learns_the_login_once(hub: Hub) -> None:
    """The first creation asks whose credential it is, and the second does not."""
    hub.provider.create_repo("acme/one")
    hub.provider.create_repo("octocat/two")

    assert hub.calls() == ["GET /user", "POST /orgs/{org}/repos", "POST /user/repos"]


def test_create_branch_reads_a_source_that_is_a_name(hub: Hub) -> None:
    """A branch's name takes a read, a sha none."""
    branch = hub.provider.create_branch(REPO, "one", source="main")
    hub.provider.create_branch(REPO, "two", source=branch.sha)

    assert hub.calls() == [REF, "POST /git/refs", "POST /git/refs"]


def test_protecting_an_unprotected_branch_is_two_requests(hub: Hub) -> None:
    """What holds is read, and the write's answer is what holds afterwards."""
    hub.provider.protect_branch(REPO, "main")

    assert hub.calls() == [BRANCH, "PUT /branches/{branch/}/protection"]


def test_tightening_a_rule_reads_it_first(hub: Hub) -> None:
    """The branch says that there is a rule, and one more read what is in it."""
    hub.given_rule(BranchProtection())

    hub.provider.protect_branch(REPO, "main", BranchProtection(required_approvals=1))

    assert hub.calls() == [BRANCH, "GET /branches/{branch/}/protection", "PUT /branches/{branch/}/protection"]


@pytest.mark.parametrize(
    "change",
    [
        PutFile(path="a", content="a"),
        PutFile(path="a", content="a", executable=True),
        DeleteFile(path="README.md"),
        MoveFile(path="README.md", to="docs/README.md"),
    ],
    ids=["mode kept", "mode given", "deletion", "move"],
)
def test_a_commit_is_five_requests(hub: Hub, change: PutFile | DeleteFile | MoveFile) -> None:
    """Head, what is there, tree, commit, ref."""
    hub.provider.commit_files(REPO, "main", [change], message="m")

    assert hub.calls() == [BRANCH, TREE, *WRITE]


def test_each_binary_file_is_a_request_more(hub: Hub) -> None:
    """What is not UTF-8 text goes up by itself, and the same content once."""
    binary = [PutFile(path=f"{n}.bin", content=bytes([255, n]), executable=False) for n in range(3)]
    twin = PutFile(path="twin.bin", content=bytes([255, 0]), executable=False)

    hub.provider.commit_files(REPO, "main", [*binary, twin], message="m")

    assert hub.calls() == [BRANCH, TREE, *[BLOB] * 3, *WRITE]


@pytest.mark.parametrize(("files", "trees"), [(100, 1), (101, 2), (250, 3)])
def test_every_further_hundred_files_is_a_request_more(hub: Hub, files: int, trees: int) -> None:
    """GitHub gives up on larger trees; the commit stays one."""
    changes = [PutFile(path=f"f{n}", content=f"{n}", executable=False) for n in range(files)]

    commit = hub.provider.commit_files(REPO, "main", changes, message="m")

    assert hub.calls() == [BRANCH, TREE, *["POST /git/trees"] * trees, *WRITE[1:]]
    assert len(hub.forge.read_tree(REPO, commit.sha)) == files + 1


def test_changes_that_change_nothing_are_two_reads(hub: Hub) -> None:
    """Blobs are compared by their names; nothing is written."""
    head = hub.forge.head(REPO, "main")

    commit = hub.provider.commit_files(REPO, "main", [PutFile(path="README.md", content="hello\n")], message="m")

    assert commit.sha == head
    assert hub.calls() == [BRANCH, TREE]


def test_the_first_commit_of_one_file_is_three_requests(hub: Hub) -> None:
    """The contents API makes the commit, once GitHub has said that the repository is empty."""
    hub.forge.create_repo("acme/empty")

    commit = hub.provider.commit_files("acme/empty", "main", [PutFile(path="a", content="a")], message="m")

    assert commit.parent is None
    assert hub.calls() == [BRANCH, REF, CONTENTS]


def test_the_first_commit_of_several_files_adds_the_rest(hub: Hub) -> None:
    """A seed of one file, and then one commit of the others on it."""
    hub.forge.create_repo("acme/empty")
    files = [PutFile(path=name, content=name) for name in ("a", "b", "c")]

    commit = hub.provider.commit_files("acme/empty", "main", files, message="m")

    assert hub.calls() == [BRANCH, REF, CONTENTS, *WRITE]
    assert sorted(hub.forge.read_tree("acme/empty", commit.sha)) == ["a", "b", "c"]
    assert [len(hub.forge.read_tree("acme/empty", str(commit.parent)))] == [1]


def test_a_pull_request_is_one_request_and_one_for_labels_and_reviewers_each(hub: Hub) -> None:
    """Labels and reviewers go by themselves, all of a kind together."""
    for name in ("plain", "full"):
        hub.given_branch(name)
        hub.given_commit(name, PutFile(path=name, content=name))

    hub.provider.open_pull_request(REPO, source_branch="plain", target_branch="main", title="plain")
    hub.provider.open_pull_request(
        REPO,
        source_branch="full",
        target_branch="main",
        title="full",
        labels=["a", "b"],
        reviewers=["hubot", "monalisa"],
    )

    more = ["POST /issues/{number}/labels", "POST /pulls/{number}/requested_reviewers"]
    assert hub.calls() == ["POST /pulls", "POST /pulls", *more]


@pytest.mark.parametrize(
    ("pinned", "delete", "calls"),
    [
        (True, False, [MERGE]),
        (False, False, [PULL, MERGE]),
        # The pull request names the branch, and the branch itself is asked whether it is still at the merged head.
        (True, True, [MERGE, PULL, REF, "GET /pulls", "GET /pulls", "DELETE /git/refs/{ref/}"]),
        (False, True, [PULL, MERGE, REF, "GET /pulls", "GET /pulls", "DELETE /git/refs/{ref/}"]),
    ],
    ids=["pinned", "unpinned", "pinned and deleted", "unpinned and deleted"],
)
def test_a_merge_is_one_request_and_what_it_has_to_learn(
    hub: Hub, pinned: bool, delete: bool, calls: list[str]
) -> None:
    """The head is read where it is not given, and the source branch looked at before it is deleted."""
    pull = hub.given_pull()
    head = pull.head_sha if pinned else None

    hub.provider.merge_pull_request(REPO, pull.number, expected_head=head, delete_source_branch=delete)

    assert hub.calls() == calls
    assert ("feature" in dict(hub.forge.branches(REPO))) is not delete


def test_building_and_closing_a_provider_sends_nothing(tmp_path: Path) -> None:
    """Whatever is learned is learned at first use."""
    with running(tmp_path / "forge") as hub:
        hub.connect().close()

    assert hub.sent == []
