"""The source of a bootstrap: whatever changes it meanwhile, only files of the directory itself are read."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gitprovider import checks
from gitprovider.bootstrap import read_directory
from gitprovider.errors import InvalidRequestError
from gitprovider.models import MAX_CALL_BYTES
from tests.support.swapping import count_system_calls, system_calls

SECRET = b"from outside"
INSIDE = {"folder/b.txt": b"b", "z.txt": b"z"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b.txt").write_bytes(SECRET)
    return _make(tmp_path / "source")


def _make(source: Path) -> Path:
    os.makedirs(source / "folder")
    for name, data in INSIDE.items():
        (source / name).write_bytes(data)
    return source


def _outside(source: Path) -> Path:
    return source.parent / "outside"


def _link_for_a_folder(source: Path) -> None:
    (source / "folder").rename(source.parent / "moved")
    (source / "folder").symlink_to(_outside(source))


def _link_for_a_file(source: Path) -> None:
    (source / "folder" / "b.txt").unlink()
    (source / "folder" / "b.txt").symlink_to(_outside(source) / "b.txt")


def _relative_link_for_a_file(source: Path) -> None:
    (source / "z.txt").unlink()
    (source / "z.txt").symlink_to("../outside/b.txt")


def _pipe_for_a_file(source: Path) -> None:
    (source / "z.txt").unlink()
    os.mkfifo(source / "z.txt")


def _file_for_a_folder(source: Path) -> None:
    shutil.rmtree(source / "folder")
    (source / "folder").write_bytes(b"a")


def _folder_for_a_file(source: Path) -> None:
    (source / "z.txt").unlink()
    (source / "z.txt").mkdir()


def _no_folder(source: Path) -> None:
    shutil.rmtree(source / "folder")


def _no_file(source: Path) -> None:
    (source / "z.txt").unlink()


def _nothing(source: Path) -> None:
    shutil.rmtree(source)


LINKS = [_link_for_a_folder, _link_for_a_file, _relative_link_for_a_file]
SWAPS = [
    *LINKS,
    _pipe_for_a_file,
    _file_for_a_folder,
    _folder_for_a_file,
    _no_folder,
    _no_file,
    _nothing,
]


@pytest.fixture
def only_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform without system calls that are relative to a directory."""
    monkeypatch.setattr(os, "supports_dir_fd", set())
    monkeypatch.setattr(os, "supports_fd", set())


@pytest.fixture
def no_descriptor_is_left() -> Iterator[None]:
    before = len(os.listdir("/dev/fd"))
    yield
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.usefixtures("no_descriptor_is_left")
@pytest.mark.parametrize("swap", SWAPS)
def test_a_swap_at_any_point_brings_nothing_from_outside(swap: Callable[[Path], None], source: Path) -> None:
    """A link, a pipe or nothing that takes the place of an entry leaks a file, blocks, or is another exception."""
    _swap_at_every_point(swap, source)


@pytest.mark.usefixtures("no_descriptor_is_left", "only_paths")
@pytest.mark.parametrize("swap", LINKS)
def test_a_link_brings_nothing_from_outside_where_only_paths_can_be_opened(
    swap: Callable[[Path], None], source: Path
) -> None:
    """A platform that cannot open relative to a directory reads through a link that was swapped in."""
    _swap_at_every_point(swap, source)


def _swap_at_every_point(swap: Callable[[Path], None], source: Path) -> None:
    points = count_system_calls(lambda: read_directory(source))
    assert points > 6 * len(INSIDE)  # otherwise the calls are not seen
    for point in range(1, points + 1):
        for old in (source, source.parent / "moved"):
            shutil.rmtree(old, ignore_errors=True)
        _make(source)

        def at_the_point(number: int, point: int = point) -> None:
            if number == point:
                swap(source)

        with suppress(InvalidRequestError), system_calls(at_the_point):
            assert SECRET not in [file.data() for file in read_directory(source).files], f"at call {point}"


def _writes(source: Path) -> None:
    with (source / "z.txt").open("ab") as file:
        file.write(b"more")


def test_a_file_that_grows_while_it_is_read_is_refused_or_whole(source: Path) -> None:
    """A file of which a part is committed is a file that nobody wrote."""
    for point in range(1, count_system_calls(lambda: read_directory(source)) + 1):
        (source / "z.txt").write_bytes(b"z" * 10)
        os.utime(source / "z.txt", (1, 1))

        def at_the_point(number: int, point: int = point) -> None:
            if number == point:
                _writes(source)

        with suppress(InvalidRequestError), system_calls(at_the_point):
            data = {file.path: file.data() for file in read_directory(source).files}["z.txt"]
            assert data in (b"z" * 10, b"z" * 10 + b"more")


@pytest.mark.parametrize("limit", ["one file", "one commit"])
def test_a_file_that_grows_without_end_is_cut_off(limit: str, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading ends at the limit, not at the end of a file that has none."""
    names = ["z.txt"] if limit == "one file" else ["x.txt", "y.txt", "z.txt"]
    for name in names:
        (source / name).write_bytes(b"")
    served: list[int] = []
    most = 23 if limit == "one commit" else 1000

    def endless(descriptor: int, size: int) -> bytes:
        served.append(size)
        assert sum(served) <= MAX_CALL_BYTES + 4 * size
        return b"x" * size if len(served) % (most + 1) else b""

    monkeypatch.setattr(os, "read", endless)

    with pytest.raises(InvalidRequestError, match="larger than"):
        read_directory(source)


@pytest.mark.parametrize("name", ["z.txt", "folder", "folder/b.txt"])
def test_what_may_not_be_read_is_named(name: str, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that this user may not read is left out, or is an exception of the system's."""
    open_it = os.open

    def refusing(path: str, *args: int, **kwargs: int) -> int:
        if path == name.rpartition("/")[2]:
            raise PermissionError(13, "Permission denied", path)
        return open_it(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refusing)
    monkeypatch.setattr(os, "supports_dir_fd", {*os.supports_dir_fd, refusing})

    with pytest.raises(InvalidRequestError, match=f"'{name}': Permission denied"):
        read_directory(source)


@pytest.mark.usefixtures("no_descriptor_is_left")
def test_folders_that_are_nested_too_deeply_are_refused(source: Path) -> None:
    """A deep path is a RecursionError, or runs out of descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256 + len(os.listdir("/dev/fd")), hard))
    folder = os.open(source, os.O_RDONLY)
    try:
        for _ in range(checks._MAX_DEPTH + 2):
            os.mkdir("d", dir_fd=folder)
            below = os.open("d", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = below
        with pytest.raises(InvalidRequestError, match="at most 200 are allowed"):
            read_directory(source)
    finally:
        os.close(folder)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("only_paths")
def test_a_link_to_the_directory_itself_is_followed(source: Path, tmp_path: Path) -> None:
    """The caller names the source, and a link there is the caller's own."""
    (tmp_path / "link").symlink_to(source)

    assert {file.path: file.data() for file in read_directory(tmp_path / "link").files} == INSIDE


class Unhelpful(os.PathLike[str]):
    """A path that is none."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def __fspath__(self) -> str:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]  # a stub of what os gives


@pytest.mark.parametrize(
    "wrong",
    [7, b"bytes", "", "a\0b", "\udcff", "x" * 5000, "no/such", Unhelpful(3), Unhelpful(b"b"), Unhelpful(KeyError("x"))],
)
def test_a_source_that_names_nothing_is_refused(wrong: object) -> None:
    """A value that is no path is a raw exception of the system or of the value."""
    with pytest.raises(InvalidRequestError) as caught:
        read_directory(wrong)  # type: ignore[arg-type]  # a wrong type on purpose

    assert caught.value.argument == "source"


# What Git would take


def _write(source: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)


def _taken(source: Path, **options: object) -> list[str]:
    return [file.path for file in read_directory(source, **options).files]  # type: ignore[arg-type]  # any option


RULES: dict[str, dict[str, str]] = {
    "names at each level": {".gitignore": "*.log\n", "a/.gitignore": "!keep.log\nx\n", "a/b/.gitignore": "*.txt\n"},
    "an ignored folder": {".gitignore": "/a/\n!a/keep.log\n"},
    "anchors and stars": {".gitignore": "a/**/x\n/x\n#comment\n\\#file\n"},
    "a folder by its name": {".gitignore": "b/\n", "a/.gitignore": "!b/\n"},
    "excluded for this clone": {".git/info/exclude": "x\n", ".gitignore": "!a/x\n"},
    "trailing blanks": {".gitignore": "x  \n\\!y\n"},
    "a line that is no pattern": {".gitignore": "!\n*.log\n"},
    "a mark of the encoding": {".gitignore": "\ufeff*.log\n"},
    "lines end at a line feed alone": {".gitignore": "x\r\ny\u2028*.log\n"},
}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_what_git_ignores_is_left_out(tmp_path: Path, rules: dict[str, str]) -> None:
    """A bootstrap commits a virtual environment, or leaves out what git would add."""
    names = ["x", "top.log", "#file", "!y", "a/x", "a/keep.log", "a/other.log", "a/b/x", "a/b/c.txt", "a/b/d/x", "b/f"]
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    _write(tmp_path, dict.fromkeys(names, "") | rules)
    listed = subprocess.run(
        ["git", "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip

    assert _taken(tmp_path) == sorted(filter(None, listed.stdout.split("\0")))
    assert set(_taken(tmp_path, ignore=False)) >= set(names)


def test_a_link_in_place_of_the_rules_gives_none(source: Path) -> None:
    """Git reads no rules through a link; reading them would leave the directory."""
    (_outside(source) / "rules").write_text("*\n")
    (source / ".gitignore").symlink_to("../outside/rules")

    assert _taken(source, skip_links=True) == ["folder/b.txt", "z.txt"]
    assert _taken(source, ignore=False, exclude=["/.gitignore"]) == ["folder/b.txt", "z.txt"]


def test_a_worktree_obeys_its_repository_s_own_patterns(tmp_path: Path) -> None:
    """What a user told this clone to ignore is committed from the other folder."""
    git = ["git", "-C", str(tmp_path / "main"), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", tmp_path / "main"], check=True)
    subprocess.run([*git, "commit", "-qm", "x", "--allow-empty"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "../other"], check=True)
    _write(tmp_path, {"main/.git/info/exclude": "x\n", "other/x": "", "other/y": ""})

    assert _taken(tmp_path / "other") == ["y"]


def test_excluded_patterns_go_before_the_files_own(source: Path) -> None:
    """What the caller leaves out is committed, because a file says otherwise."""
    _write(source, {".gitignore": "!z.txt\n"})

    assert _taken(source, exclude=["z.txt", "folder/"]) == [".gitignore"]


def test_links_are_skipped_by_name_when_asked(source: Path) -> None:
    """An ordinary project with one link cannot be bootstrapped, or loses it silently."""
    (source / "link").symlink_to("z.txt")
    (source / "folder" / "up").symlink_to("..")

    with pytest.raises(InvalidRequestError, match="symbolic link"):
        read_directory(source)
    found = read_directory(source, skip_links=True)

    assert found.skipped == ("folder/up", "link")
    assert [file.path for file in found.files] == ["folder/b.txt", "z.txt"]


# In two parts, so that nobody takes this file for a leak.
SECRETS = {
    "deploy/id_rsa": "x",
    ".env": "x",
    "app/.env.production": "x",
    ".netrc": "x",
    "prod.ENV": "x",
    "key.txt": "-----BEGIN RSA PRIVATE" + " KEY-----",
    "a.py": "token = '" + "ghp_" + "a1" * 18 + "'",
    "b.py": "glpat-" + "a-1_" * 5,
    "c.ini": "AKIA" + "A1" * 8,
    "d.js": "xoxb-" + "1234567890",
}


@pytest.mark.parametrize("name", SECRETS)
def test_what_looks_like_a_credential_is_refused_by_its_path(source: Path, name: str) -> None:
    """A key is in the first commit of a public repository."""
    _write(source, {name: SECRETS[name]})

    with pytest.raises(InvalidRequestError, match="credential") as caught:
        read_directory(source)

    assert repr(name) in str(caught.value)
    assert SECRETS[name] == "x" or SECRETS[name] not in str(caught.value)
    assert name in _taken(source, allow_secrets=True)
    assert name not in _taken(source, exclude=[name])


@pytest.mark.parametrize("name", [".env.example", ".env.sample", "environment", "id_rsa.pub", "env.py"])
def test_an_example_of_a_credential_is_none(source: Path, name: str) -> None:
    """A project that shows which variables it needs cannot be bootstrapped."""
    _write(source, {name: "GITHUB_TOKEN=\n"})

    assert name in _taken(source)


@pytest.mark.parametrize("option", [{"ignore": "no"}, {"exclude": "x"}, {"exclude": [3]}, {"skip_links": 1}])
def test_a_wrong_option_is_refused(source: Path, option: dict[str, object]) -> None:
    """A string would be taken for its letters, and a word for yes."""
    with pytest.raises(InvalidRequestError):
        read_directory(source, **option)  # type: ignore[arg-type]  # a wrong type on purpose
