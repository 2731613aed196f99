"""Repositories: made whole, renamed, archived, deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitprovider import (
    AlreadyExistsError,
    BranchProtection,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    ProviderUnavailableError,
    PutFile,
    RepoMovedError,
)
from gitprovider.local import Forge, LocalProvider, storage
from gitprovider.local.storage import SCRATCH
from tests.support.local_forge import REPO, git


def test_a_forge_is_made_by_the_first_write(root: Path) -> None:
    """Looking at a forge that is not there makes none."""
    forge = Forge(root)

    with pytest.raises(NotFoundError):
        forge.repo(REPO)
    assert forge.repos() == []
    with pytest.raises(NotFoundError):
        forge.repo_by_id(1)

    assert not root.exists()
    forge.create_repo(REPO)
    assert [repo.path for repo in forge.repos()] == [REPO]


def test_a_write_to_nothing_is_not_found(root: Path) -> None:
    """A commit to a repository of an empty forge."""
    with pytest.raises(NotFoundError):
        Forge(root).commit_changes(REPO, "main", [PutFile(path="x", content="x")], message="x")


def test_a_repository_has_a_readme_where_asked(forge: Forge) -> None:
    """One commit, on the default branch asked for, with name and description."""
    repo = forge.create_repo("acme/gadgets", auto_init=True, description="All of them", default_branch="trunk")

    assert [name for name, _ in forge.branches("acme/gadgets")] == ["trunk"]
    head = forge.head("acme/gadgets", "trunk")
    assert forge.read_commit("acme/gadgets", head).parents == ()
    readme = forge.read_tree("acme/gadgets", head)["README.md"]
    assert forge.read_blob("acme/gadgets", readme.sha) == b"# gadgets\n\nAll of them\n"
    assert git(repo.git_dir, "symbolic-ref", "HEAD") == "refs/heads/trunk"


def test_case_does_not_tell_repositories_apart(forge: Forge) -> None:
    """As on the hosts: the path is spelled as it was made."""
    assert forge.repo("ACME/Widgets").path == REPO
    with pytest.raises(AlreadyExistsError) as caught:
        forge.create_repo("Acme/Widgets")

    assert caught.value.existing.path == REPO


def test_a_rename_leads_on(forge: Forge) -> None:
    """The old path says where it went, for reads and writes; id, history and rules stay."""
    before = forge.repo(REPO)
    head = forge.head(REPO, "main")

    renamed = forge.rename_repo(REPO, "acme/tools/gadgets")

    assert (renamed.id, renamed.path, renamed.git_dir) == (before.id, "acme/tools/gadgets", before.git_dir)
    assert forge.head("acme/tools/gadgets", "main") == head
    assert forge.repo_by_id(before.id).path == "acme/tools/gadgets"
    for call in (lambda: forge.repo(REPO), lambda: forge.create_branch(REPO, "x", head)):
        with pytest.raises(RepoMovedError) as caught:
            call()
        assert caught.value.moved_to == "acme/tools/gadgets"


def test_a_rename_back_and_in_case_alone(forge: Forge) -> None:
    """A path leads nowhere once its repository has it again."""
    forge.rename_repo(REPO, "acme/gadgets")
    forge.rename_repo("acme/gadgets", REPO)
    assert forge.repo(REPO).path == REPO

    forge.rename_repo(REPO, "acme/Widgets")

    assert forge.repo(REPO).path == "acme/Widgets"


def test_a_rename_onto_another(forge: Forge) -> None:
    """The other one is in the error, and nothing is renamed."""
    forge.create_repo("acme/gadgets")

    with pytest.raises(AlreadyExistsError):
        forge.rename_repo(REPO, "acme/gadgets")

    assert forge.repo(REPO).id == 1


def test_a_new_repository_takes_a_left_path(forge: Forge) -> None:
    """The path that a rename left is free; both repositories keep what is theirs."""
    head = forge.head(REPO, "main")
    forge.rename_repo(REPO, "acme/gadgets")

    new = forge.create_repo(REPO)

    assert new.git_dir != forge.repo("acme/gadgets").git_dir
    assert forge.branches(REPO) == []
    assert forge.head("acme/gadgets", "main") == head


def test_deleting_takes_everything(forge: Forge, git_dir: Path) -> None:
    """A later repository of that path begins with nothing, under an id of its own."""
    forge.put_rule(REPO, "main", BranchProtection())
    forge.create_branch(REPO, "topic", forge.head(REPO, "main"))
    forge.commit_changes(REPO, "topic", [PutFile(path="x", content="x")], message="x")
    forge.open_pull_request(REPO, source_branch="topic", target_branch="main", title="x")
    forge.approve(REPO, 1)
    forge.set_check(REPO, "topic", "ci", "success")
    forge.rename_repo(REPO, "acme/gadgets")
    forge.rename_repo("acme/gadgets", REPO)

    forge.delete_repo(REPO)

    assert not git_dir.exists()
    for path in (REPO, "acme/gadgets"):
        with pytest.raises(NotFoundError):
            forge.repo(path)
    again = forge.create_repo(REPO)
    assert (again.id, forge.rules(REPO), forge.pull_requests(REPO)) == (2, [], [])


def test_what_a_killed_deletion_left_is_replaced(forge: Forge, git_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that a forge made and no row names is nobody's."""
    with monkeypatch.context() as patched:
        patched.setattr(storage, "remove", lambda root, git_dir: None)
        forge.delete_repo(REPO)
    assert git_dir.exists()

    forge.create_repo(REPO)

    assert forge.branches(REPO) == []


@pytest.mark.parametrize("kind", ["folder", "broken config"])
def test_what_no_forge_made_is_left_alone(forge: Forge, root: Path, kind: str) -> None:
    """A folder that somebody put where a repository is to be is never deleted."""
    theirs = root / "repositories/acme/gadgets.git"
    theirs.mkdir()
    (theirs / "precious").write_text("x")
    if kind == "broken config":
        (theirs / "config").write_text("[core\n")

    with pytest.raises(ConflictError, match="no forge made it"):
        forge.create_repo("acme/gadgets")

    assert (theirs / "precious").exists()
    with pytest.raises(NotFoundError):
        forge.repo("acme/gadgets")


def test_half_made_repositories_are_cleared_away(forge: Forge, root: Path) -> None:
    """What a killed creation left behind is gone after the next one."""
    forge.create_repo("acme/first")
    (root / SCRATCH / "half-made").mkdir()

    forge.create_repo("acme/gadgets")

    assert [path.name for path in (root / SCRATCH).iterdir()] == [".made-by-gitprovider"]


@pytest.mark.parametrize("name", ["tmp", "temp", ".tmp", "build"])
def test_what_no_forge_made_is_never_deleted(forge: Forge, root: Path, name: str) -> None:
    """``--root .`` in a project that has such a folder would empty it."""
    (root / name).mkdir(parents=True)
    (root / name / "precious").write_text("mine")

    forge.create_repo("acme/gadgets")
    forge.delete_repo("acme/gadgets")

    assert (root / name / "precious").read_text() == "mine"


def test_a_scratch_folder_of_somebody_else_is_refused_and_kept(tmp_path: Path) -> None:
    """Its content would be taken for half-made repositories."""
    root = tmp_path / "theirs"
    forge = Forge(root)
    (root / SCRATCH).mkdir(parents=True)
    (root / SCRATCH / "precious").write_text("mine")

    with pytest.raises(ConflictError, match="no forge made it"):
        forge.create_repo("acme/gadgets")

    assert (root / SCRATCH / "precious").read_text() == "mine"
    with pytest.raises(NotFoundError):
        forge.repo("acme/gadgets")


def test_a_repository_below_another(forge: Forge) -> None:
    """Subgroups and a repository of the same name do not collide on disk."""
    forge.create_repo("acme/widgets/docs", auto_init=True)

    assert [name for name, _ in forge.branches(REPO)] == ["main"]
    assert [name for name, _ in forge.branches("acme/widgets/docs")] == ["main"]


@pytest.mark.parametrize(
    "call",
    [
        lambda forge, head: forge.commit_changes(REPO, "main", [PutFile(path="x", content="x")], message="x"),
        lambda forge, head: forge.create_branch(REPO, "x", head),
        lambda forge, head: forge.put_rule(REPO, "main", BranchProtection()),
        lambda forge, head: forge.delete_branch(REPO, "main"),
    ],
)
def test_an_archived_repository_is_read_only(forge: Forge, call: Callable[[Forge, str], object]) -> None:
    """Reads go on, writes are denied, and it can be unarchived."""
    head = forge.head(REPO, "main")
    assert forge.update_repo(REPO, archived=True).archived

    with pytest.raises(PermissionDeniedError, match="archived"):
        call(forge, head)

    assert forge.head(REPO, "main") == head
    assert not forge.update_repo(REPO, archived=False).archived


def test_the_default_branch(forge: Forge, git_dir: Path) -> None:
    """It must be there, unless nothing is; Git's HEAD goes with it."""
    with pytest.raises(NotFoundError):
        forge.update_repo(REPO, default_branch="develop")
    assert forge.repo(REPO).default_branch == "main"
    forge.create_branch(REPO, "develop", forge.head(REPO, "main"))

    assert forge.update_repo(REPO, default_branch="develop").default_branch == "develop"

    assert git(git_dir, "symbolic-ref", "HEAD") == "refs/heads/develop"
    forge.create_repo("acme/empty")
    assert forge.update_repo("acme/empty", default_branch="trunk").default_branch == "trunk"


def test_settings_of_a_fake(forge: Forge) -> None:
    """What is given is merged into what is kept."""
    forge.create_repo("acme/gadgets", settings={"merge_method": "ff", "a": [1]})

    forge.update_repo("acme/gadgets", settings={"a": [2]})

    assert forge.repo("acme/gadgets").settings == {"merge_method": "ff", "a": [2]}


@pytest.mark.parametrize("path", ["widgets", "/acme/widgets", "acme/../widgets", "acme//widgets"])
def test_a_path_that_is_none(forge: Forge, path: str) -> None:
    """Nothing is made outside of the forge's folder, whoever calls it."""
    with pytest.raises(InvalidRequestError):
        forge.create_repo(path)
    with pytest.raises(InvalidRequestError):
        forge.rename_repo(REPO, path)


def test_a_name_that_the_disk_takes_for_another(provider: LocalProvider, root: Path) -> None:
    """A repository beside the forge's own files does not touch them."""
    provider.create_repo("forge.sqlite3/tmp", auto_init=True)

    assert provider.get_repo("forge.sqlite3/tmp").path == "forge.sqlite3/tmp"
    assert (root / "forge.sqlite3").is_file()


def test_a_lost_race_for_the_database(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that make the forge at the same time: the second one takes the first one's."""
    first, second = Forge(root), Forge(root)
    made = second._database._is_new

    def beaten() -> bool:
        answer = made()
        if answer:
            first.create_repo(REPO)
        return answer

    monkeypatch.setattr(second._database, "_is_new", beaten)

    second.create_repo("acme/gadgets")

    assert [repo.path for repo in first.repos()] == ["acme/gadgets", REPO]
    assert sorted(path.name for path in root.iterdir() if path.name.startswith(".")) == [SCRATCH]


def test_the_database_stays_locked(forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that waits in vain says that another one has the lock; the same call may be made again."""
    monkeypatch.setattr("gitprovider.local.database.LOCK_WAIT_SECONDS", 0.0)

    with forge._database.writing(), pytest.raises(ProviderUnavailableError, match="locked") as caught:
        forge.create_repo("acme/gadgets")

    assert caught.value.retryable
    forge.create_repo("acme/gadgets")
