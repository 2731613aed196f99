"""Which host and which repository a command means: by options, by variables, by a URL, or by the clone it runs in."""

import subprocess
from pathlib import Path

import pytest

from gitprovider.local import LocalProvider
from tests.support.command_line import Run


@pytest.fixture(autouse=True)
def undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable names a kind of host or a forge."""
    monkeypatch.delenv("GITPROVIDER_PROVIDER")
    monkeypatch.delenv("GITPROVIDER_ROOT")


def clone(origin: str, folder: Path) -> None:
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(["git", "-C", folder, "remote", "add", "origin", origin], check=True)


@pytest.mark.parametrize("args", [("get-repo", "a/b"), ("create-repo", "a/b"), ("recover",), ("get-repo", "--json")])
def test_a_host_is_never_guessed(run: Run, tmp_path: Path, args: tuple[str, ...]) -> None:
    """A command that forgets --provider makes a repository in a folder of the user's, and reports success."""
    ran = run(*args)

    assert ran.code == 2
    if "a/b" in args or "recover" in args:
        for way in ("--provider", "GITPROVIDER_PROVIDER", "REPO as a URL", "remote origin"):
            assert way in ran.err
    else:
        assert "REPO is missing" in ran.error["message"]


def test_a_root_names_the_local_forge(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """--root, which no other host has, is not enough to say what is meant."""
    assert run("--root", str(tmp_path / "forge"), "get-repo", "acme/widgets").code == 0


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_repository_may_be_a_url(run: Run, widgets: LocalProvider, form: str) -> None:
    """What get-repo prints as clone_url cannot be pasted into the next command."""
    url = form.format(widgets.get_repo("acme/widgets").clone_url)

    assert run("--json", "get-repo", url).document["path"] == "acme/widgets"
    assert run("--json", "create-branch", url, "x", "--source", "main").document["name"] == "x"


def test_in_a_clone_the_repository_may_be_left_out(
    run: Run, widgets: LocalProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the clone that somebody works in, the repository has to be typed again for each command."""
    clone(widgets.get_repo("acme/widgets").clone_url, tmp_path / "clone")
    (tmp_path / "clone/below").mkdir()
    (tmp_path / "clone/below/f").write_text("x")
    monkeypatch.chdir(tmp_path / "clone/below")

    assert run("--json", "get-repo").document["path"] == "acme/widgets"
    assert run("--json", "create-branch", "topic", "--source", "main").document["name"] == "topic"
    assert run("commit-files", "topic", "-m", "m", "--put", "f=f").code == 0
    assert run("open-pull-request", "--source-branch", "topic", "--target-branch", "main", "--title", "T").code == 0
    assert run("--json", "view-pull-request", "1").document["title"] == "T"
    assert run("--json", "merge-pull-request", "1").code == 0
    assert run("--json", "protect-branch", "main").code == 0
    assert run("--json", "get-repo", "acme/widgets").document["path"] == "acme/widgets"
    assert run("recover").code == 0
    assert run("create-branch", "--source", "main").err.startswith("error: Missing argument 'NAME'")
    assert "'one' is not a valid integer" in run("merge-pull-request", "one").err


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (
            ("--provider", "gitlab", "get-repo", "https://github.com/a/b"),
            "REPO is on github, but --provider says gitlab",
        ),
        (("--url", "https://gitlab.com", "get-repo", "git@github.com:a/b"), "another host than --url says"),
        (("--root", "forge", "get-repo", "git@github.com:a/b"), "leave out --root"),
        (("get-repo", "https://git.example.org/a/b"), "git.example.org, which is not a known host"),
        (("get-repo", "https://u:p4ssw0rd@github.com/a/b"), "contains credentials"),
        (("get-repo", "/nowhere/at/all.git"), "not a repository of a local forge"),
        (("--url", "https://git.example.org", "get-repo", "a/b"), "--url: git.example.org is not a known host"),
    ],
)
def test_what_contradicts_itself_is_refused(run: Run, args: tuple[str, ...], told: str) -> None:
    """One of two contradictory statements is followed, and a mutation lands on the wrong host."""
    ran = run(*args)

    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert "p4ssw0rd" not in ran.err


@pytest.mark.parametrize(
    ("args", "host"),
    [
        (("get-repo", "git@github.com:a/b.git"), "github.com"),
        (("--url", "https://gitlab.com", "get-repo", "a/b"), "gitlab.com"),
    ],
)
def test_a_known_host_needs_no_provider(run: Run, args: tuple[str, ...], host: str) -> None:
    """The kind of a host that everybody knows has to be spelled out."""
    ran = run("--json", *args)

    assert (ran.code, ran.error["message"]) == (4, f"no token for {host}")


def test_a_clone_of_an_unknown_host_gets_no_request(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone that somebody was lured into decides where the token in the environment goes."""
    monkeypatch.setenv("GITPROVIDER_TOKEN", "t" * 30)
    clone("https://evil.example/a/b", tmp_path / "clone")
    monkeypatch.chdir(tmp_path / "clone")

    ran = run("get-repo", "a/b")

    assert ran.code == 2
    assert "the clone's remote origin is on evil.example, which is not a known host" in ran.err
