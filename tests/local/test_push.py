"""A push by Git obeys the protection of branches, and what lies in the forge's folder is its user's alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitprovider import BranchProtection, ProviderUnavailableError, PutFile
from gitprovider.local import Forge, LocalProvider, storage
from gitprovider.local.storage import SCRATCH
from tests.support.local_forge import REPO, git

NOTHING = BranchProtection.nothing()
AS_GIT = ["-c", "user.name=git", "-c", "user.email=git@example.org"]


@pytest.fixture
def clone(forge: Forge, git_dir: Path, tmp_path: Path) -> Path:
    """A clone with one more commit on main, beside a branch ``topic`` of the forge."""
    forge.create_branch(REPO, "topic", forge.head(REPO, "main"))
    git(tmp_path, "clone", "-q", str(git_dir), "clone")
    git(tmp_path / "clone", *AS_GIT, "commit", "-q", "--allow-empty", "-m", "by git")
    return tmp_path / "clone"


def push(clone: Path, *arguments: str, home: Path | None = None) -> str:
    """What a push says where it is refused, or nothing."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": str(home or os.devnull), "LC_ALL": "C"}
    done = subprocess.run(
        ["git", "-C", str(clone), "push", "-q", "origin", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
    )
    return done.stderr if done.returncode else ""


def rewritten(clone: Path) -> None:
    git(clone, *AS_GIT, "commit", "-q", "--amend", "--allow-empty", "-m", "another first")
    git(clone, "reset", "-q", "--soft", git(clone, "commit-tree", *_tree(clone)))


def _tree(clone: Path) -> list[str]:
    for name in ("user.name", "user.email"):
        git(clone, "config", name, "git@example.org")
    return ["HEAD^{tree}", "-m", "no parent"]


def merged(clone: Path) -> None:
    made = git(clone, *AS_GIT, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-p", "origin/main", "-m", "a merge")
    git(clone, "reset", "-q", "--soft", made)


@pytest.mark.parametrize(
    ("pattern", "rules", "before", "arguments", "words"),
    [
        ("main", BranchProtection(), None, ["main"], "by pull request only"),
        ("m*n", BranchProtection(), None, ["main"], "by pull request only"),
        ("to*", BranchProtection(), None, ["main", "main:topic"], "'topic' takes changes"),
        ("new/*", BranchProtection(), None, ["main:new/one"], "by pull request only"),
        ("main", BranchProtection.nothing(), None, ["main"], ""),
        ("other", BranchProtection(), None, ["main"], ""),
        ("main", {"block_force_push": True}, rewritten, ["+main"], "rewriting its history"),
        ("main", {"block_force_push": True}, None, ["main"], ""),
        ("topic", {"block_deletion": True}, None, [":topic"], "against deletion"),
        ("topic", {"block_force_push": True}, None, [":topic"], ""),
        ("main", {"required_checks": ("ci",)}, None, ["main"], "has not passed: ci"),
        ("main", {"require_linear_history": True}, merged, ["main"], "no merge commits"),
        ("main", {"require_linear_history": True}, None, ["main"], ""),
    ],
)
def test_a_push_obeys_the_rules_of_a_commit(
    forge: Forge,
    clone: Path,
    pattern: str,
    rules: BranchProtection | dict[str, object],
    before: Callable[[Path], None] | None,
    arguments: list[str],
    words: str,
) -> None:
    """A protection that binds this library alone protects from nobody who has git."""
    forge.put_rule(REPO, pattern, rules if isinstance(rules, BranchProtection) else _only(rules))
    if before is not None:
        before(clone)
    held = forge.branches(REPO)

    said = push(clone, *arguments)

    assert words in said
    assert bool(said) is bool(words), said
    assert (forge.branches(REPO) == held) is bool(words)


def _only(rules: dict[str, object]) -> BranchProtection:
    names = {name: getattr(NOTHING, name) for name in BranchProtection.__dataclass_fields__}
    return BranchProtection(**{**names, **rules})


def test_the_refs_of_pull_requests_are_the_forges_own(clone: Path) -> None:
    """Whoever writes one says which commit was merged."""
    assert "the forge's own" in push(clone, "main:refs/pull/1/merge")


@pytest.mark.parametrize("name", ["a\u2028b", "a\u0085b", "a\udce9b", "a" * 250])
def test_a_name_that_no_operation_could_return_is_not_pushed(provider: LocalProvider, clone: Path, name: str) -> None:
    """Git takes it, and every listing of the branches would fail from then on."""
    assert "gitprovider: branch" in push(clone, f"main:refs/heads/{name}")
    assert [branch.name for branch in provider.list_branches(REPO)] == ["main", "topic"]


def test_nothing_is_pushed_to_an_archive(forge: Forge, clone: Path) -> None:
    """It is read-only for Git as it is for this library."""
    forge.update_repo(REPO, archived=True)

    assert "read-only" in push(clone, "main")


def test_a_configuration_of_the_user_does_not_turn_the_hook_off(forge: Forge, clone: Path, tmp_path: Path) -> None:
    """Many people keep hooks of their own for all repositories."""
    forge.put_rule(REPO, "main", BranchProtection())
    (tmp_path / "gitconfig").write_text(f"[core]\n\thooksPath = {tmp_path}\n")

    assert "by pull request only" in push(clone, "main", home=tmp_path / "gitconfig")


@pytest.mark.parametrize("failure", ["no library", "no database"])
def test_a_push_that_cannot_be_checked_is_refused(forge: Forge, git_dir: Path, clone: Path, failure: str) -> None:
    """A hook that fails open is none."""
    if failure == "no database":
        (forge.root / "forge.sqlite3").unlink()
    else:
        hook = git_dir / "hooks/pre-receive"
        hook.write_text(hook.read_text().replace("gitprovider.local.receive", "gitprovider.local.gone"))

    assert push(clone, "main")


@pytest.mark.parametrize("held", ["", "#!/bin/sh\n# gitprovider: of an earlier version\nexit 0\n"])
def test_a_rule_brings_the_hook_to_a_repository_without_it(
    provider: LocalProvider, git_dir: Path, clone: Path, held: str
) -> None:
    """A forge of an earlier version has none, and an interpreter that moved leaves one that cannot run."""
    (git_dir / "hooks/pre-receive").unlink()
    if held:
        (git_dir / "hooks/pre-receive").write_text(held)

    provider.protect_branch(REPO, "main")

    assert "by pull request only" in push(clone, "main")


def test_a_hook_of_somebody_else_is_left_alone(provider: LocalProvider, git_dir: Path) -> None:
    """It is not ours to delete."""
    (git_dir / "hooks/pre-receive").write_text("#!/bin/sh\nexit 0\n")

    provider.protect_branch(REPO, "main")

    assert (git_dir / "hooks/pre-receive").read_text() == "#!/bin/sh\nexit 0\n"


def test_git_collects_no_garbage_by_itself(git_dir: Path) -> None:
    """A push would start it, beside the writers."""
    assert git(git_dir, "config", "gc.auto") == "0"


# Modes and links


@pytest.fixture
def open_umask() -> Iterator[None]:
    """A umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_the_forge_is_its_users_alone(root: Path, tmp_path: Path) -> None:
    """Private repositories would be readable by every user of the machine."""
    provider = LocalProvider(root / "deep" / "forge")
    made = provider.create_repo(REPO, auto_init=True)
    provider.create_branch(REPO, "topic/one", source="main")
    provider.commit_files(REPO, "topic/one", [PutFile(path="a/b", content="x")], message="x")
    number = provider.open_pull_request(REPO, source_branch="topic/one", target_branch="main", title="x").number
    provider.merge_pull_request(REPO, number, delete_source_branch=True)
    git(tmp_path, "clone", "-q", made.clone_url, "clone")
    git(tmp_path / "clone", *AS_GIT, "commit", "-q", "--allow-empty", "-m", "by git")
    assert push(tmp_path / "clone", "main", "main:other/two") == ""
    git(made.clone_url, "gc", "-q")
    provider.commit_files(REPO, "main", [PutFile(path="c", content="y")], message="y")

    below = [root, *root.rglob("*")]

    assert [f"{path.stat().st_mode:o} {path}" for path in below if path.stat().st_mode & 0o077] == []
    assert len(below) > 30


@pytest.mark.parametrize("link", ["repositories", "repositories/acme", "repositories/acme/deep", SCRATCH])
def test_a_link_does_not_lead_out_of_the_root(root: Path, tmp_path: Path, link: str) -> None:
    """Who may write into the folder once could have a repository made, or deleted, anywhere."""
    provider = LocalProvider(root)
    provider.create_repo("other/first")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / storage._SIGN).touch()
    (tmp_path / "elsewhere" / "precious").mkdir()
    (root / link).parent.mkdir(exist_ok=True)
    if (root / link).exists():
        (root / link).rename(tmp_path / "aside")
    (root / link).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ProviderUnavailableError, match="is a symbolic link") as caught:
        provider.create_repo("acme/deep/widgets", auto_init=True)

    assert str(root / link) in caught.value.message
    assert not caught.value.retryable
    assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == [storage._SIGN, "precious"]


def test_a_repository_behind_a_link_is_neither_read_nor_deleted(
    provider: LocalProvider, git_dir: Path, tmp_path: Path
) -> None:
    """It may be anybody's repository."""
    git_dir.rename(tmp_path / "moved.git")
    git_dir.symlink_to(tmp_path / "moved.git")

    for call in (
        lambda: provider.list_branches(REPO),
        lambda: provider.commit_files(REPO, "main", [PutFile(path="x", content="x")], message="x"),
        lambda: provider.forge.delete_repo(REPO),
    ):
        with pytest.raises(ProviderUnavailableError, match="is a symbolic link"):
            call()

    assert git(tmp_path / "moved.git", "log", "--format=%s", "main") == "first"


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    """A user who keeps the forge on another disk says so that way."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "forge").symlink_to(tmp_path / "disk")
    provider = LocalProvider(tmp_path / "forge")

    made = provider.create_repo(REPO, auto_init=True)

    git(tmp_path, "clone", "-q", made.clone_url, "clone")
    assert push(tmp_path / "clone", "main:other") == ""
    assert [branch.name for branch in provider.list_branches(REPO)] == ["main", "other"]
