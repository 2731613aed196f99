"""The command line as tests run it: in this process, with a forge of its own and an empty environment."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitprovider.cli import main
from gitprovider.local import LocalProvider
from tests.support.command_line import Ran, Run

VARIABLES = ("GITPROVIDER_", "GITHUB_", "GITLAB_", "GH_", "CI_")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith(VARIABLES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GITPROVIDER_PROVIDER", "local")
    monkeypatch.setenv("GITPROVIDER_ROOT", str(tmp_path / "forge"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*args: str) -> Ran:
        capsys.readouterr()
        code = main(list(args))
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalProvider]:
    """The provider on the forge that the commands use."""
    with LocalProvider(tmp_path / "forge") as provider:
        yield provider


@pytest.fixture
def widgets(local: LocalProvider) -> LocalProvider:
    """The same, with acme/widgets and a first commit."""
    local.create_repo("acme/widgets", auto_init=True)
    return local
