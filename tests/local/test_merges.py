"""Merges: the three methods, conflicts, what a kill left behind, stale locks."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from gitprovider import (
    AlreadyExistsError,
    Author,
    ConflictError,
    HeadMovedError,
    InvalidRequestError,
    MergeMethod,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    PullRequestState,
    PutFile,
)
from gitprovider.local import Forge, PullRecord, pull_requests
from gitprovider.local.session import Session
from tests.support.local_forge import REPO, git

MERGE, SQUASH, REBASE = MergeMethod.MERGE, MergeMethod.SQUASH, MergeMethod.REBASE
ADA = Author(name="Ada", email="ada@example.org")
METHODS = list(MergeMethod)


def _commit(forge: Forge, branch: str, files: Mapping[str, str], message: str = "change") -> str:
    changes = [PutFile(path=path, content=content) for path, content in files.items()]
    return forge.commit_changes(REPO, branch, changes, message=message, author=ADA).sha


def _branch(forge: Forge, name: str, *commits: Mapping[str, str], source: str = "main") -> str:
    forge.create_branch(REPO, name, forge.head(REPO, source))
    for index, files in enumerate(commits):
        _commit(forge, name, files, f"{name} {index}")
    return forge.head(REPO, name)


def _open(forge: Forge, source: str = "topic") -> int:
    return forge.open_pull_request(REPO, source_branch=source, target_branch="main", title=f"The {source}").number


def _files(forge: Forge, branch: str = "main") -> set[str]:
    return set(forge.read_tree(REPO, forge.head(REPO, branch)))


def test_merge_makes_a_merge_commit_where_it_could_move_forward(forge: Forge) -> None:
    """MERGE never moves the target to the source's own head."""
    base = forge.head(REPO, "main")
    head = _branch(forge, "topic", {"t": "t"})

    merged = forge.merge(REPO, _open(forge), method=MERGE)

    commit = forge.read_commit(REPO, str(merged.merge_commit_sha))
    assert commit.parents == (base, head)
    assert commit.message == "Merge pull request #1 from topic\n\nThe topic"
    assert forge.head(REPO, "main") == commit.sha


def test_squash_makes_one_commit_by_the_author_of_the_branch(forge: Forge) -> None:
    """SQUASH: one parent, all changes, the branch's author."""
    _branch(forge, "topic", {"t": "1"}, {"t": "2", "u": "u"})
    base = _commit(forge, "main", {"m": "m"})

    merged = forge.merge(REPO, _open(forge), method=SQUASH)

    commit = forge.read_commit(REPO, str(merged.merge_commit_sha))
    assert (commit.parents, commit.message, commit.author_name) == ((base,), "The topic (#1)", "Ada")
    assert _files(forge) == {"README.md", "m", "t", "u"}


def test_rebase_applies_the_commits_one_by_one(forge: Forge, git_dir: Path) -> None:
    """REBASE keeps messages, authors and order, and makes no commit of its own."""
    _branch(forge, "topic", {"t": "1"}, {"u": "2"})
    base = _commit(forge, "main", {"m": "m"}, "main")

    forge.merge(REPO, _open(forge), method=REBASE)

    log = git(git_dir, "log", "--format=%s|%an|%cn", "main").splitlines()
    assert log[:2] == ["topic 1|Ada|gitprovider", "topic 0|Ada|gitprovider"]
    assert git(git_dir, "rev-parse", "main~2") == base


def test_rebase_of_what_starts_at_the_head_keeps_the_commits(forge: Forge) -> None:
    """As git rebase does: nothing is rewritten that need not be."""
    head = _branch(forge, "topic", {"t": "1"}, {"u": "2"})

    assert forge.merge(REPO, _open(forge), method=REBASE).merge_commit_sha == head


def test_rebase_leaves_out_what_is_there_already(forge: Forge, git_dir: Path) -> None:
    """A commit whose change the target has makes no empty commit."""
    _branch(forge, "topic", {"same": "x"}, {"own": "x"})
    _commit(forge, "main", {"same": "x"}, "main had it")

    forge.merge(REPO, _open(forge), method=REBASE)

    assert git(git_dir, "log", "--format=%s", "main").splitlines() == ["topic 1", "main had it", "first"]


def test_rebase_flattens_a_merge(forge: Forge, git_dir: Path) -> None:
    """A branch that merged the target is applied without that merge."""
    _branch(forge, "topic", {"t": "1"})
    _commit(forge, "main", {"m": "m"}, "main")
    back = forge.open_pull_request(REPO, source_branch="main", target_branch="topic", title="back").number
    forge.merge(REPO, back, method=MERGE)
    _commit(forge, "topic", {"u": "2"}, "topic 1")

    forge.merge(REPO, _open(forge), method=REBASE)

    assert git(git_dir, "log", "--format=%s", "main").splitlines() == ["topic 1", "topic 0", "main", "first"]


def test_rebase_that_would_differ_from_the_merge_is_refused(forge: Forge) -> None:
    """A change that is in a merge commit alone would be lost by flattening it."""
    _branch(forge, "topic", {"t": "1"})
    _branch(forge, "side", {"s": "1"})
    side = forge.read_tree(REPO, forge.head(REPO, "side"))["s"]
    entries = {"s": (side.sha, side.mode), "evil": (forge.write_blob(REPO, b"!"), "100644")}
    tree = forge.write_tree(REPO, forge.head(REPO, "topic"), entries)
    parents = [forge.head(REPO, "topic"), forge.head(REPO, "side")]
    merge = forge.write_commit(REPO, tree=tree, parents=parents, message="merge")
    forge.move_branch(REPO, "topic", merge, expected=None)
    number = _open(forge)

    assert forge.mergeability(REPO, number, method=REBASE) is NotMergeableReason.METHOD
    with pytest.raises(NotMergeableError, match="other files"):
        forge.merge(REPO, number, method=REBASE)
    forge.merge(REPO, number, method=SQUASH)
    assert "evil" in _files(forge)


@pytest.mark.parametrize("method", METHODS)
def test_a_conflict_is_found(forge: Forge, method: MergeMethod) -> None:
    """Both sides changed the same line: refused, and nothing moves."""
    _branch(forge, "topic", {"README.md": "ours\n"})
    before = _commit(forge, "main", {"README.md": "theirs\n"})
    number = _open(forge)

    assert forge.mergeability(REPO, number, method=method) is NotMergeableReason.CONFLICT
    with pytest.raises(NotMergeableError, match=r"README\.md") as caught:
        forge.merge(REPO, number, method=method)

    assert caught.value.reason is NotMergeableReason.CONFLICT
    assert forge.head(REPO, "main") == before
    assert forge.pull_request(REPO, number).state is PullRequestState.OPEN


def test_a_rebase_conflicts_where_the_merge_does_not(forge: Forge) -> None:
    """A change that a later commit took back conflicts when it is applied by itself."""
    _branch(forge, "topic", {"README.md": "mine\n"}, {"README.md": "# Widgets\n", "t": "t"})
    _commit(forge, "main", {"README.md": "theirs\n"})
    number = _open(forge)

    assert forge.mergeability(REPO, number, method=MERGE) is None
    assert forge.mergeability(REPO, number, method=REBASE) is NotMergeableReason.CONFLICT


def test_lines_that_do_not_touch_are_merged(forge: Forge) -> None:
    """A three-way merge, not a choice between files."""
    lines = [f"{number}\n" for number in range(20)]
    _commit(forge, "main", {"f": "".join(lines)})
    _branch(forge, "topic", {"f": "".join(["first\n", *lines[1:]])})
    _commit(forge, "main", {"f": "".join([*lines[:-1], "last\n"])})

    merged = forge.merge(REPO, _open(forge), method=MERGE)

    sha = forge.read_tree(REPO, str(merged.merge_commit_sha))["f"].sha
    assert forge.read_blob(REPO, sha).decode() == "".join(["first\n", *lines[1:-1], "last\n"])


def test_histories_that_share_nothing(forge: Forge) -> None:
    """They are refused a pull request, and where one is open all the same, the merge is a conflict."""
    tree = forge.read_commit(REPO, forge.head(REPO, "main")).tree
    forge.create_branch(REPO, "alien", forge.write_commit(REPO, tree=tree, parents=[], message="alien"))

    with pytest.raises(ConflictError, match="no history in common"):
        _open(forge, "alien")
    number = forge.open_pull_request(
        REPO, source_branch="alien", target_branch="main", title="x", allow_empty=True
    ).number
    assert forge.mergeability(REPO, number) is NotMergeableReason.CONFLICT


def test_asking_for_mergeability_leaves_nothing(forge: Forge, git_dir: Path) -> None:
    """Whoever polls does not fill the disk: the second look writes no object."""
    _branch(forge, "topic", {"t": "t"})
    _commit(forge, "main", {"m": "m"})
    number = _open(forge)
    forge.mergeability(REPO, number)
    before = git(git_dir, "count-objects")

    assert forge.mergeability(REPO, number) is None

    assert git(git_dir, "count-objects") == before


@pytest.mark.parametrize("method", METHODS)
def test_a_merge_that_was_cut_off_is_merged(forge: Forge, git_dir: Path, method: MergeMethod) -> None:
    """The branch moved and the row does not say so: every read says merged, and a repetition does not merge twice."""
    head = _branch(forge, "topic", {"t": "t"})
    number = _open(forge)
    database = forge.root / "forge.sqlite3"
    before = database.read_bytes()
    merged = forge.merge(REPO, number, method=method)
    database.write_bytes(before)

    healed = forge.pull_request(REPO, number)

    assert (healed.state, healed.merge_commit_sha, healed.head_sha) == (
        PullRequestState.MERGED,
        merged.merge_commit_sha,
        head,
    )
    assert forge.pull_requests(REPO, state=PullRequestState.OPEN) == []
    with pytest.raises(NotMergeableError):
        forge.merge(REPO, number, method=method)
    assert forge.head(REPO, "main") == merged.merge_commit_sha


def test_a_new_pull_request_after_a_merge_that_was_cut_off(forge: Forge) -> None:
    """The row that still says open is not in the way of the next one between the same branches."""
    _branch(forge, "topic", {"t": "t"})
    number = _open(forge)
    database = forge.root / "forge.sqlite3"
    before = database.read_bytes()
    forge.merge(REPO, number, method=MERGE)
    database.write_bytes(before)
    _commit(forge, "topic", {"t": "2"})

    assert _open(forge) == 2
    assert [pull.state.value for pull in forge.pull_requests(REPO)] == ["open", "merged"]


def test_a_merge_that_recorded_and_did_not_move(forge: Forge) -> None:
    """A recorded commit that the target never got is no merge."""
    _branch(forge, "topic", {"t": "t"})
    number = _open(forge)

    class Cut(Exception):
        pass

    def cut(base: str | None, sha: str) -> None:
        raise Cut

    with pytest.raises(Cut):
        forge.merge(REPO, number, method=MERGE, on_commit=cut)

    assert forge.pull_request(REPO, number).state is PullRequestState.OPEN
    assert forge.merge(REPO, number, method=MERGE).state is PullRequestState.MERGED


def _lock(git_dir: Path, lock: str) -> None:
    """Leave a lock file as a writer does that is killed while it holds it."""
    (git_dir / lock).parent.mkdir(parents=True, exist_ok=True)
    (git_dir / lock).hardlink_to(git_dir / "gitprovider-lock")


@pytest.mark.parametrize("lock", ["refs/heads/main.lock", "refs/pull/1/merge.lock", "refs/pull/1/head.lock"])
def test_a_stale_lock_is_in_nobodys_way(forge: Forge, git_dir: Path, lock: str) -> None:
    """A writer that was killed left its lock file: the next one takes it away."""
    _branch(forge, "topic", {"t": "t"})
    number = _open(forge)
    _lock(git_dir, lock)

    assert forge.merge(REPO, number, method=MERGE).state is PullRequestState.MERGED
    assert not (git_dir / lock).exists()


def test_a_stale_lock_on_packed_refs_and_head(forge: Forge, git_dir: Path) -> None:
    """Deleting a branch and changing the default one are not held up either."""
    _branch(forge, "topic")
    git(git_dir, "pack-refs", "--all")
    for lock in ("packed-refs.lock", "refs/heads/topic.lock", "HEAD.lock"):
        _lock(git_dir, lock)

    forge.update_repo(REPO, default_branch="topic")
    forge.delete_branch(REPO, "main")

    assert git(git_dir, "symbolic-ref", "HEAD") == "refs/heads/topic"
    assert [name for name, _ in forge.branches(REPO)] == ["topic"]


def test_a_merge_at_another_head(forge: Forge) -> None:
    """The head asked for is not the branch's: refused, with both shas."""
    head = _branch(forge, "topic", {"t": "t"})
    number = _open(forge)
    moved = _commit(forge, "topic", {"t": "2"})

    with pytest.raises(HeadMovedError) as caught:
        forge.merge(REPO, number, method=MERGE, expected_head=head)

    assert (caught.value.expected, caught.value.actual) == (head, moved)


def test_a_pull_request_follows_its_branches_until_it_is_closed(forge: Forge) -> None:
    """Open, it has the heads of now; closed, those it was closed at; reopened, those of now."""
    _branch(forge, "topic", {"t": "t"})
    number = _open(forge)
    head, base = _commit(forge, "topic", {"t": "2"}), _commit(forge, "main", {"m": "m"})
    followed = forge.pull_request(REPO, number)

    closed = forge.update_pull_request(REPO, number, state=PullRequestState.CLOSED)
    later = _commit(forge, "topic", {"t": "3"})
    kept = forge.pull_request(REPO, number)
    reopened = forge.update_pull_request(REPO, number, state=PullRequestState.OPEN)

    assert (followed.head_sha, followed.base_sha) == (closed.head_sha, closed.base_sha) == (head, base)
    assert (kept.head_sha, reopened.head_sha) == (head, later)


@pytest.mark.parametrize("gone", ["source", "target"])
def test_a_deleted_branch_closes_its_pull_requests(forge: Forge, gone: str) -> None:
    """And they cannot be reopened or merged while it is gone."""
    _branch(forge, "topic", {"t": "t"})
    _branch(forge, "release")
    number = forge.open_pull_request(REPO, source_branch="topic", target_branch="release", title="x").number

    forge.delete_branch(REPO, {"source": "topic", "target": "release"}[gone])

    assert forge.pull_request(REPO, number).state is PullRequestState.CLOSED
    assert forge.mergeability(REPO, number) is NotMergeableReason.CLOSED
    with pytest.raises(NotFoundError):
        forge.update_pull_request(REPO, number, state=PullRequestState.OPEN)


def test_only_one_is_open_between_two_branches(forge: Forge) -> None:
    """Neither a second one nor a reopened one; the error has the one that is open."""
    _branch(forge, "topic", {"t": "t"})
    first = _open(forge)
    forge.update_pull_request(REPO, first, state=PullRequestState.CLOSED)
    second = _open(forge)

    with pytest.raises(AlreadyExistsError) as opened:
        _open(forge)
    with pytest.raises(AlreadyExistsError):
        forge.update_pull_request(REPO, first, state=PullRequestState.OPEN)

    assert opened.value.existing.number == second


def test_nothing_leads_to_merged_but_a_merge(forge: Forge) -> None:
    """And nothing leads back from it."""
    _branch(forge, "topic", {"t": "t"})
    number = _open(forge)

    with pytest.raises(ConflictError):
        forge.update_pull_request(REPO, number, state=PullRequestState.MERGED)
    forge.merge(REPO, number, method=MERGE)
    with pytest.raises(ConflictError):
        forge.update_pull_request(REPO, number, state=PullRequestState.OPEN)


def test_what_people_change_of_a_pull_request(forge: Forge) -> None:
    """What is given is changed, the rest stays, and a fake's settings are merged."""
    _branch(forge, "topic", {"t": "t"})
    number = forge.open_pull_request(
        REPO, source_branch="topic", target_branch="main", title="a", labels=["x"], settings={"a": 1}
    ).number

    changed = forge.update_pull_request(
        REPO, number, title="b", description="c", draft=True, reviewers=["ada"], settings={"b": [2]}
    )

    assert (changed.title, changed.description, changed.draft) == ("b", "c", True)
    assert (changed.labels, changed.reviewers, changed.settings) == (("x",), ("ada",), {"a": 1, "b": [2]})
    assert forge.update_pull_request(REPO, number, labels=[]).labels == ()
    assert forge.mergeability(REPO, number) is NotMergeableReason.DRAFT


def test_a_pull_request_needs_two_branches_and_something_to_merge(forge: Forge) -> None:
    """Each refusal says what is missing; none takes a number."""
    _branch(forge, "topic")

    with pytest.raises(ConflictError, match="nothing to merge"):
        _open(forge)
    with pytest.raises(NotFoundError):
        _open(forge, "absent")
    with pytest.raises(InvalidRequestError):
        _open(forge, "main")
    with pytest.raises(NotFoundError):
        forge.pull_request(REPO, 1)
    assert (
        forge.open_pull_request(
            REPO, source_branch="topic", target_branch="main", title="empty", allow_empty=True
        ).number
        == 1
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_the_settings_forbid(forge: Forge, method: MergeMethod) -> None:
    """Refused by name, whatever the branch's protection, and the others go on working."""
    _branch(forge, "topic", {"t": "t"})
    number = _open(forge)
    forge.update_repo(REPO, settings={f"allow_{method.value}": False})

    assert forge.mergeability(REPO, number, method=method, bypass=True) is NotMergeableReason.METHOD
    assert [forge.mergeability(REPO, number, method=other) for other in METHODS if other is not method] == [None, None]


def test_deleting_a_branch_reads_its_own_pull_requests_only(forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of pull requests, each deletion would otherwise look up the branches of them all."""
    for name in ("one", "two", "three", "other"):
        _branch(forge, name, {name: name})
    numbers = {name: _open(forge, name) for name in ("one", "two", "three")}
    stacked = forge.open_pull_request(REPO, source_branch="other", target_branch="one", title="x").number
    read: list[int] = []
    current = pull_requests._current

    def counted(session: Session, row: sqlite3.Row) -> PullRecord:
        read.append(row["number"])
        return current(session, row)

    monkeypatch.setattr(pull_requests, "_current", counted)
    forge.delete_branch(REPO, "one")

    assert sorted(read) == [numbers["one"], stacked]
    assert [pull.number for pull in forge.pull_requests(REPO, state=PullRequestState.CLOSED)] == [
        stacked,
        numbers["one"],
    ]
