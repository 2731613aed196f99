"""The demonstration: what it says it did is what Git finds."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gitprovider.cli.demo import write_project
from gitprovider.local import LocalProvider
from tests.support.command_line import Run


def git(*args: str, where: str) -> str:
    return subprocess.run(["git", "-C", where, *args], capture_output=True, text=True, check=True).stdout


def test_git_agrees_with_what_the_demo_said(run: Run, tmp_path: Path) -> None:
    """A clone has the files byte for byte, the history has one merge, and fsck finds nothing to complain about."""
    said = run("--json", "demo").document
    place = said["repository"]["clone_url"]
    subprocess.run(["git", "clone", "--quiet", place, tmp_path / "clone"], check=True)
    heads = {branch["name"]: branch["sha"] for branch in said["branches"]}

    # A merge leaves the trees that it compared (adr/0020). Anything else that is unreachable was lost.
    found = git("fsck", "--strict", "--no-progress", where=place).splitlines()
    assert [line for line in found if not line.startswith("dangling tree ")] == []
    assert git("rev-parse", "main", "develop", where=place).split() == [heads["main"], heads["develop"]]
    assert git("log", "--graph", "--format=%s", "main", where=place).splitlines()[0].startswith("*   ")
    assert len(git("rev-list", "--merges", "main", where=place).split()) == 1
    files = {
        path.relative_to(tmp_path / "demo/files") for path in (tmp_path / "demo/files").rglob("*") if path.is_file()
    }
    for name in files:
        assert (tmp_path / "clone" / name).read_bytes() == (tmp_path / "demo/files" / name).read_bytes()
    assert (tmp_path / "clone/scripts/release.sh").stat().st_mode & 0o111
    assert not (tmp_path / "clone/README.md").stat().st_mode & 0o111


def test_the_demo_says_where_the_repository_is(run: Run, tmp_path: Path) -> None:
    """For people: each step, the repository's path, and the commands to look at it."""
    ran = run("demo", "somewhere")

    assert ran.code == 0
    assert f"The repository is {tmp_path}/somewhere/forge/repositories/acme/widgets.git\n" in ran.out
    assert "git clone " in ran.out
    assert ran.out.count("done\t") == 8


def test_the_demo_can_be_run_again(run: Run) -> None:
    """The second run finds everything there and changes nothing."""
    first = run("--json", "demo").document

    again = run("--json", "demo").document

    assert {step["status"] for step in again["steps"]} == {"already there"}
    assert again["branches"] == first["branches"]


def test_the_demo_protects_main(run: Run, local: LocalProvider) -> None:
    """The protection that it reports holds in the forge, which --root puts elsewhere."""
    run("--root", str(local.forge.root), "demo")

    rules = local.protection("acme/widgets", "main")
    assert rules is not None
    assert rules.require_pull_request


def test_the_demo_is_local(run: Run) -> None:
    """On another host it would make things there: that is bootstrap's business."""
    assert run("--provider", "github", "demo").code == 2


def _snapshot(folder: Path) -> dict[str, bytes | str | None]:
    return {
        str(path.relative_to(folder)): os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in folder.rglob("*")
    }


def _own_file(files: Path) -> None:
    files.mkdir(parents=True)
    (files / "README.md").write_text("mine")


def _another_file(files: Path) -> None:
    write_project(files)
    (files / "notes.txt").write_text("mine")


def _another_mode(files: Path) -> None:
    write_project(files)
    (files / "README.md").chmod(0o755)


def _half_of_it(files: Path) -> None:
    write_project(files)
    (files / "README.md").unlink()


def _link_to_a_file(files: Path) -> None:
    files.mkdir(parents=True)
    files.with_name("mine").write_text("mine")
    (files / "README.md").symlink_to("../mine")


def _link_to_a_folder(files: Path) -> None:
    files.mkdir(parents=True)
    files.with_name("mine").mkdir()
    (files / "docs").symlink_to("../mine")


def _link_for_the_folder(files: Path) -> None:
    files.with_name("mine").mkdir(parents=True)
    files.symlink_to("mine")


def _dangling_link(files: Path) -> None:
    files.parent.mkdir(parents=True)
    files.symlink_to("nowhere")


def _file_for_the_folder(files: Path) -> None:
    files.parent.mkdir(parents=True)
    files.write_text("mine")


def _file_above(files: Path) -> None:
    files.parent.write_text("mine")


@pytest.mark.parametrize(
    "place",
    [
        _own_file,
        _another_file,
        _another_mode,
        _half_of_it,
        _link_to_a_file,
        _link_to_a_folder,
        _link_for_the_folder,
        _dangling_link,
        _file_for_the_folder,
        _file_above,
    ],
)
def test_the_demo_changes_nothing_that_it_did_not_make(place: Callable[[Path], None], run: Run, tmp_path: Path) -> None:
    """A user's files below FOLDER are overwritten, or end up in the demo's repository."""
    place(tmp_path / "mine" / "files")
    before = _snapshot(tmp_path)

    ran = run("demo", "mine")

    assert ran.code == 2
    assert "mine/files'" in ran.err
    assert _snapshot(tmp_path) == before


def test_an_empty_folder_is_used(run: Run, tmp_path: Path) -> None:
    """An empty folder has nothing that could be lost."""
    (tmp_path / "demo" / "files").mkdir(parents=True)

    assert run("demo").code == 0


def test_the_demo_leaves_a_repository_of_the_user_alone(run: Run, local: LocalProvider) -> None:
    """A repository of the demo's name in the user's own forge gets the demo's files."""
    head = local.create_repo("acme/widgets", auto_init=True) and local.head("acme/widgets", "main")

    ran = run("--root", str(local.forge.root), "demo")

    assert ran.code == 5
    assert [(branch.name, branch.sha) for branch in local.list_branches("acme/widgets")] == [("main", head)]


def test_a_demo_that_fails_says_so(run: Run, local: LocalProvider) -> None:
    """A repository in the way that is not the demo's is not touched, and the failure names the step."""
    local.create_repo("acme/widgets", auto_init=True, description="Mine")
    head = local.head("acme/widgets", "main")
    local.create_branch("acme/widgets", "develop", source=head)
    local.forge.update_repo("acme/widgets", archived=True)

    ran = run("--json", "--root", str(local.forge.root), "demo")

    assert ran.code == 5
    assert json.loads(ran.out)["error"]["type"] == "ConflictError"
    assert local.head("acme/widgets", "main") == head
