"""commit_files on GitHub: the tree that is built, the branch that is moved, and the first commit of all."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitprovider import (
    Author,
    BranchProtection,
    Commit,
    ConflictError,
    DeleteFile,
    HeadMovedError,
    InvalidRequestError,
    MoveFile,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    PutFile,
)
from gitprovider._core.edits import blob_sha
from gitprovider.fakes.faults import Fault
from gitprovider.fakes.http import Request, Response
from gitprovider.models import FileChange
from tests.support.github_hub import REPO, Hub, commit, refuse, running

EMPTY = "acme/empty"


def _sent(hub: Hub, endpoint: str) -> list[Any]:
    return [json.loads(entry.body) for entry in hub.sent if entry.body and entry.endpoint.endswith(endpoint)]


# Objects


def test_a_tree_always_names_its_base(hub: Hub) -> None:
    """Without one, GitHub would make a tree of these files alone."""
    changes = [PutFile(path=f"f{n}", content=f"{n}") for n in range(150)]

    commit = hub.provider.commit_files(REPO, "main", changes, message="m")

    assert all(body["base_tree"] for body in _sent(hub, "/git/trees"))
    assert "README.md" in hub.forge.read_tree(REPO, commit.sha)


def test_text_goes_inline_and_what_is_not_goes_by_itself(hub: Hub) -> None:
    """UTF-8 text without NUL is text; line ends and a byte order mark are left as they are."""
    files = {"text": "a\r\nb\n\ufeffü".encode(), "latin": b"\xe9", "nul": b"a\0b", "empty": b""}

    commit = hub.provider.commit_files(
        REPO, "main", [PutFile(path=path, content=data) for path, data in files.items()], message="m"
    )

    tree = hub.forge.read_tree(REPO, commit.sha)
    assert {path: hub.forge.read_blob(REPO, tree[path].sha) for path in files} == files
    assert [base64.b64decode(body["content"]) for body in _sent(hub, "/git/blobs")] == [b"\xe9", b"a\0b"]


def test_a_large_text_goes_by_itself(hub: Hub) -> None:
    """Inline it would make the tree's request too large."""
    files = [PutFile(path=f"f{size}", content="x" * size) for size in (1_000_000, 1_000_001)]

    hub.provider.commit_files(REPO, "main", files, message="m")

    (body,) = _sent(hub, "/git/trees")
    assert {item["path"]: "content" in item for item in body["tree"]} == {"f1000000": True, "f1000001": False}
    assert len(_sent(hub, "/git/blobs")) == 1


@pytest.mark.parametrize(
    ("count", "size", "batches"), [(5, 900_000, [2, 2, 1]), (250, 1, [100, 100, 50])], ids=["bytes", "files"]
)
def test_a_batch_is_no_larger_than_github_takes(hub: Hub, count: int, size: int, batches: list[int]) -> None:
    """A hundred files, or two million bytes inline."""
    files = [PutFile(path=f"f{n}", content="x" * size) for n in range(count)]

    commit = hub.provider.commit_files(REPO, "main", files, message="m")

    assert [len(body["tree"]) for body in _sent(hub, "/git/trees")] == batches
    assert len(hub.forge.read_tree(REPO, commit.sha)) == count + 1


def test_a_deletion_has_a_mode_too(hub: Hub) -> None:
    """GitHub refuses an entry without one."""
    hub.given_commit("main", PutFile(path="b", content="b"))

    hub.provider.commit_files(REPO, "main", [DeleteFile(path="README.md")], message="m")

    assert _sent(hub, "/git/trees")[0]["tree"] == [{"path": "README.md", "mode": "100644", "type": "blob", "sha": None}]


def test_what_has_not_changed_is_not_sent(hub: Hub) -> None:
    """The rest is, and the evidence names both."""
    changes = [PutFile(path="README.md", content="hello\n"), PutFile(path="b", content="b")]
    hub.given_fault(Fault(kind="reset", method="PATCH"))

    with pytest.raises(ProviderUnavailableError) as caught:
        hub.provider.commit_files(REPO, "main", changes, message="m")

    assert [item["path"] for item in _sent(hub, "/git/trees")[0]["tree"]] == ["b"]
    assert caught.value.intent is not None
    assert caught.value.intent.files == {
        "README.md": (blob_sha(b"hello\n"), "100644"),
        "b": (blob_sha(b"b"), "100644"),
    }


def test_the_evidence_of_a_lost_move_names_the_commit(hub: Hub) -> None:
    """The commit that was to be the head, and the one it was built on."""
    head = hub.forge.head(REPO, "main")
    hub.given_fault(Fault(kind="timeout", method="PATCH", when="after"))

    with pytest.raises(ProviderUnavailableError) as caught:
        hub.provider.commit_files(REPO, "main", [PutFile(path="b", content="b")], message="m")

    intent = caught.value.intent
    assert intent is not None
    assert (intent.base_sha, intent.commit_sha) == (head, hub.forge.head(REPO, "main"))
    assert intent.sent_at is not None


def test_an_author_is_the_committer_as_well(hub: Hub) -> None:
    """GitHub takes one for the other."""
    commit = hub.provider.commit_files(
        REPO, "main", [PutFile(path="b", content="b")], message="m", author=Author(name="Ada", email="ada@example.org")
    )

    assert _sent(hub, "/git/commits")[0]["author"] == {"name": "Ada", "email": "ada@example.org"}
    assert hub.forge.read_commit(REPO, commit.sha).author_email == "ada@example.org"


@pytest.mark.parametrize("lag", [b"Tree SHA does not exist", b"Sorry, your request timed out.  It's likely"])
def test_a_lag_of_the_object_store_may_be_tried_again(hub: Hub, lag: bytes) -> None:
    """Nothing visible has happened: the caller may repeat the call, and this library does not."""
    body = b'{"message": "' + lag + b'"}'
    hub.given_fault(Fault(kind="status", status=422, method="POST", endpoint="/git/commits", body=body))

    with pytest.raises(ProviderUnavailableError) as caught:
        hub.provider.commit_files(REPO, "main", [PutFile(path="b", content="b")], message="m")

    assert caught.value.retryable
    assert hub.calls().count("POST /git/commits") == 1


# Places


@pytest.mark.parametrize(
    "change",
    [
        PutFile(path="README.md/below", content=""),
        PutFile(path="docs", content=""),
        PutFile(path="link", content=""),
        PutFile(path="link/below", content=""),
        DeleteFile(path="link"),
        DeleteFile(path="docs"),
        DeleteFile(path="none"),
        MoveFile(path="none", to="new"),
        MoveFile(path="README.md", to="docs/a"),
        MoveFile(path="README.md", to="docs"),
        MoveFile(path="docs", to="new"),
        MoveFile(path="README.md", to="docs/a/b"),
    ],
)
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "in part"])
def test_a_change_out_of_place_is_refused_before_a_write(tmp_path: Path, change: FileChange, whole: bool) -> None:
    """Judged on the tree that was read, whole or in part."""
    with running(tmp_path / "forge", tree_limit=100_000 if whole else 4) as hub:
        hub.given_repo(README__md="hello", **{"docs/a": "a", "docs/c": "c"})
        given_link(hub, "link")

        with pytest.raises(InvalidRequestError) as caught:
            hub.provider.commit_files(REPO, "main", [change], message="m")

        assert caught.value.argument == "changes"
        assert hub.host.request_log.mutations() == []


def given_link(hub: Hub, path: str) -> None:
    """A symbolic link on main, which no change can make."""
    head = hub.forge.head(REPO, "main")
    tree = hub.forge.write_tree(REPO, head, {path: (hub.forge.write_blob(REPO, b"README.md"), "120000")})
    commit = hub.forge.write_commit(REPO, tree=tree, parents=[head], message="link")
    hub.forge.move_branch(REPO, "main", commit, expected=head)


def test_a_file_may_take_the_place_of_what_goes(hub: Hub) -> None:
    """A directory that is emptied, a file that becomes a directory."""
    hub.given_commit("main", PutFile(path="a/b", content="b"), PutFile(path="c", content="c", executable=True))

    hub.provider.commit_files(REPO, "main", [DeleteFile(path="a/b"), PutFile(path="a", content="")], message="m")
    commit = hub.provider.commit_files(
        REPO, "main", [MoveFile(path="c", to="c2"), PutFile(path="c/d", content="")], message="m"
    )

    made, moved = ([(item["path"], item["mode"]) for item in body["tree"]] for body in _sent(hub, "/git/trees"))
    assert [path for path, _ in made] == ["a/b", "a"]
    assert moved == [("c", "100644"), ("c2", "100755"), ("c/d", "100644")]
    assert {"a", "c2", "c/d"} < set(hub.forge.read_tree(REPO, commit.sha))


def test_a_tree_too_large_for_one_answer_is_read_along_the_paths(tmp_path: Path) -> None:
    """GitHub leaves entries out above a limit; the directories on the way are asked for one by one."""
    with running(tmp_path / "forge", tree_limit=5) as hub:
        hub.given_repo(a="1", b="2")
        hub.given_commit("main", *[PutFile(path=f"deep/er/f{n}", content=str(n), executable=True) for n in range(5)])

        commit = hub.provider.commit_files(
            REPO,
            "main",
            [
                PutFile(path="deep/er/f4", content="new"),
                DeleteFile(path="deep/er/f0"),
                PutFile(path="n/ew", content=""),
            ],
            message="m",
        )
        with pytest.raises(InvalidRequestError):
            hub.provider.commit_files(REPO, "main", [PutFile(path="deep/er", content="")], message="m")

    tree = hub.forge.read_tree(REPO, commit.sha)
    assert tree["deep/er/f4"].mode == "100755"
    assert sorted(tree) == ["a", "b", "deep/er/f1", "deep/er/f2", "deep/er/f3", "deep/er/f4", "n/ew"]


def test_a_look_at_a_tree_that_is_cut_short_is_an_error(tmp_path: Path) -> None:
    """A part is no answer to what the tree is."""
    with running(tmp_path / "forge", tree_limit=1) as hub:
        commit = hub.given_repo(a="1", b="2")

        with pytest.raises(Exception, match="larger than GitHub lists"):
            hub.provider.tree(REPO, commit.sha)


# The branch


def _between(hub: Hub, method: str, action: Callable[[], object]) -> None:
    """Let somebody act just before the host sees the first request of ``method``."""
    handle = hub.fake.handle
    done: list[bool] = []

    def first(request: Request) -> Response:
        if request.method == method and not done:
            done.append(True)
            action()
        return handle(request)

    hub.fake.handle = first  # type: ignore[method-assign]  # a colleague of the test's


def test_a_branch_that_moved_meanwhile_is_not_overwritten(hub: Hub) -> None:
    """Somebody pushed between the read and the move: theirs stays."""
    _between(hub, "PATCH", lambda: hub.given_commit("main", PutFile(path="theirs", content="x")))

    with pytest.raises(HeadMovedError) as caught:
        hub.provider.commit_files(REPO, "main", [PutFile(path="ours", content="x")], message="m")

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert "theirs" in hub.forge.read_tree(REPO, hub.forge.head(REPO, "main"))
    assert _sent(hub, "/git/refs/{ref/}")[0]["force"] is False


def test_a_branch_that_went_meanwhile_is_not_found(hub: Hub) -> None:
    """It is not made anew."""
    hub.given_branch("feature")
    _between(hub, "PATCH", lambda: hub.forge.delete_branch(REPO, "feature"))

    with pytest.raises(NotFoundError):
        hub.provider.commit_files(REPO, "feature", [PutFile(path="ours", content="x")], message="m")

    assert "feature" not in dict(hub.forge.branches(REPO))


# The first commit


@pytest.fixture
def empty(hub: Hub) -> Hub:
    hub.forge.create_repo(EMPTY)
    return hub


def test_a_first_commit_is_on_the_default_branch_only(empty: Hub) -> None:
    """Another name would become a branch beside a default one that does not exist."""
    with pytest.raises(InvalidRequestError) as caught:
        empty.provider.commit_files(EMPTY, "other", [PutFile(path="a", content="a")], message="m")

    assert caught.value.argument == "branch"
    assert empty.host.request_log.mutations() == []


def test_a_default_branch_of_another_name_is_asked_for(empty: Hub) -> None:
    """It is the owner's setting."""
    empty.forge.create_repo("acme/trunk", default_branch="trunk")

    commit = empty.provider.commit_files("acme/trunk", "trunk", [PutFile(path="a", content="a")], message="m")

    assert empty.forge.head("acme/trunk", "trunk") == commit.sha


@pytest.mark.parametrize("change", [DeleteFile(path="a"), MoveFile(path="a", to="b")])
def test_a_first_commit_only_puts(empty: Hub, change: FileChange) -> None:
    """There is nothing to delete or move."""
    with pytest.raises(InvalidRequestError):
        empty.provider.commit_files(EMPTY, "main", [change], message="m")

    assert empty.host.request_log.mutations() == []


def test_an_empty_repository_is_at_no_head(empty: Hub) -> None:
    """Whatever head was expected."""
    with pytest.raises(HeadMovedError):
        empty.provider.commit_files(EMPTY, "main", [PutFile(path="a", content="")], message="m", expected_head="1" * 40)


@pytest.mark.parametrize("branch", ["main", "other"])
def test_a_missing_branch_is_not_made(hub: Hub, branch: str) -> None:
    """In a repository with commits, the usual name or another."""
    hub.forge.create_repo("acme/trunk", default_branch="trunk")
    hub.given_commit("trunk", PutFile(path="a", content="a"), repo="acme/trunk")

    with pytest.raises(NotFoundError):
        hub.provider.commit_files("acme/trunk", branch, [PutFile(path="b", content="b")], message="m")

    assert [name for name, _ in hub.forge.branches("acme/trunk")] == ["trunk"]


@pytest.mark.parametrize("executable", [True, False])
def test_a_first_commit_of_one_file_keeps_its_mode(empty: Hub, executable: bool) -> None:
    """The contents API knows plain files only: an executable takes a second commit."""
    commit = empty.provider.commit_files(
        EMPTY, "main", [PutFile(path="run", content="#!", executable=executable)], message="m"
    )

    assert empty.forge.read_tree(EMPTY, commit.sha)["run"].mode == ("100755" if executable else "100644")
    assert (commit.parent is None) is not executable


def test_a_seed_without_the_rest_is_partial_and_can_be_gone_on_with(empty: Hub) -> None:
    """The seed commit is in completed; the same call then finds a repository with a commit."""
    files = [PutFile(path=name, content=name) for name in ("a", "bb")]
    empty.given_fault(Fault(kind="reset", endpoint="/git/trees"))

    with pytest.raises(ProviderUnavailableError) as caught:
        empty.provider.commit_files(EMPTY, "main", files, message="m")
    commit = empty.provider.commit_files(EMPTY, "main", files, message="m")

    assert caught.value.outcome is Outcome.PARTIAL
    assert commit.parent == caught.value.completed[0].value.sha
    assert sorted(empty.forge.read_tree(EMPTY, commit.sha)) == ["a", "bb"]


def test_a_first_commit_that_somebody_else_made_meanwhile_is_a_conflict(empty: Hub) -> None:
    """Theirs stays."""
    _between(empty, "PUT", lambda: empty.given_commit("main", PutFile(path="a", content="theirs"), repo=EMPTY))

    with pytest.raises(ConflictError) as caught:
        empty.provider.commit_files(EMPTY, "main", [PutFile(path="a", content="ours")], message="m")

    assert caught.value.outcome is Outcome.NOT_APPLIED


@pytest.mark.parametrize("files", [1, 3])
def test_a_first_commit_that_stands_on_somebody_elses_says_so(empty: Hub, files: int) -> None:
    """The contents API has no compare-and-set: the commit is there, on what was not read, and nothing follows."""
    theirs: list[Commit] = []
    _between(
        empty, "PUT", lambda: theirs.append(empty.given_commit("main", PutFile(path="b", content="b"), repo=EMPTY))
    )
    ours = [PutFile(path=f"ours{n}", content="a") for n in range(files)]

    with pytest.raises(HeadMovedError) as caught:
        empty.provider.commit_files(EMPTY, "main", ours, message="m")

    assert (caught.value.outcome, caught.value.actual) == (Outcome.PARTIAL, theirs[0].sha)
    assert caught.value.completed[0].value.sha == empty.forge.head(EMPTY, "main")
    assert len(empty.host.request_log.mutations()) == 1


def test_a_ruleset_may_forbid_the_first_commit(empty: Hub) -> None:
    """An organization's rule on creations: a policy, not an empty repository or a missing branch."""
    rules = [{"pattern": "*", "rules": [{"type": "creation"}]}]
    empty.forge.update_repo(EMPTY, settings={"rulesets": rules})

    with pytest.raises(PermissionDeniedError):
        empty.provider.commit_files(EMPTY, "main", [PutFile(path="a", content="a")], message="m")


@pytest.mark.pitfall("GH-CR-09")
@pytest.mark.parametrize("status", [403, 409, 422])
def test_a_rule_on_creations_is_a_policy(hub: Hub, status: int) -> None:
    """Neither an empty repository nor a missing branch."""
    hub.forge.create_repo("acme/empty")
    refuse(
        hub, status, "Repository rule violations found\n\nCannot create ref due to creations being restricted.\n\n",
        method="PUT",
    )  # fmt: skip

    with pytest.raises(PermissionDeniedError, match="creations being restricted"):
        commit(hub, repo="acme/empty")


@pytest.mark.pitfall("GH-CF-01")
def test_an_empty_repository_is_seeded(hub: Hub) -> None:
    """The Git data API refuses it; the contents API does not."""
    hub.forge.create_repo("acme/empty")
    files = [PutFile(path=name, content=name) for name in ("a", "b")]

    made = hub.provider.commit_files("acme/empty", "main", files, message="m")

    assert sorted(hub.forge.read_tree("acme/empty", made.sha)) == ["a", "b"]


@pytest.mark.pitfall("GH-CF-04")
def test_the_other_files_survive(hub: Hub) -> None:
    """The tree is made on the parent's."""
    made = commit(hub)

    assert sorted(hub.forge.read_tree(REPO, made.sha)) == ["README.md", "new.txt"]


@pytest.mark.pitfall("GH-CF-05")
def test_the_ref_is_never_forced(hub: Hub) -> None:
    """Not a fast-forward: somebody else's commit is there, and stays."""
    refuse(hub, 422, "Update is not a fast forward", method="PATCH")

    with pytest.raises(HeadMovedError):
        commit(hub)

    assert json.loads(hub.sent[-1].body)["force"] is False


@pytest.mark.pitfall("GH-CF-06")
def test_a_tree_that_is_not_known_yet_may_pass(hub: Hub) -> None:
    """A lag of the object store: not the caller's mistake, and safe to repeat."""
    refuse(hub, 422, "Tree SHA does not exist", method="POST", endpoint="/git/commits")

    with pytest.raises(ProviderUnavailableError) as caught:
        commit(hub)

    assert caught.value.retryable


@pytest.mark.pitfall("GH-CF-08")
def test_a_direct_commit_to_a_protected_branch_is_denied(hub: Hub) -> None:
    """With the way out in the hint; it is no conflict that could be retried."""
    hub.given_rule(BranchProtection(enforce_admins=True))

    with pytest.raises(PermissionDeniedError) as caught:
        commit(hub)

    assert "pull request" in str(caught.value.hint)
    assert not caught.value.retryable


@pytest.mark.pitfall("GH-CF-09")
def test_many_files_are_several_trees_and_one_commit(hub: Hub) -> None:
    """More than about 250 inline files time out."""
    changes = [PutFile(path=f"f{n}", content=str(n), executable=False) for n in range(300)]

    made = hub.provider.commit_files(REPO, "main", changes, message="m")

    assert hub.calls().count("POST /git/trees") == 3
    assert hub.calls().count("POST /git/commits") == 1
    assert len(hub.forge.read_tree(REPO, made.sha)) == 301


@pytest.mark.pitfall("GH-CF-09")
def test_a_tree_that_is_too_big_is_told(hub: Hub) -> None:
    """A 422 about time is no mistake in the request."""
    refuse(
        hub, 422, "Sorry, your request timed out.  It's likely that your input was too large to process.", method="POST"
    )

    with pytest.raises(ProviderUnavailableError) as caught:
        commit(hub)

    assert "smaller" in str(caught.value.hint)


@pytest.mark.pitfall("GH-CF-11")
@pytest.mark.parametrize("path", ["/a", "a//b", "a/", "./a", "../a", "a/.git/b", ".GIT/config", ""])
def test_a_malformed_path_is_named_before_it_is_sent(path: str) -> None:
    """GitHub refuses the tree without saying which path it was."""
    with pytest.raises(InvalidRequestError) as caught:
        PutFile(path=path, content="")

    assert caught.value.argument == "path"
