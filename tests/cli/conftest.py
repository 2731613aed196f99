"""The command line as tests run it: in this process, with a forge of its own and an empty environment."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gitprovider.cli import main
from gitprovider.local import LocalProvider

VARIABLES = ("GITPROVIDER_", "GITHUB_", "GITLAB_", "GH_", "CI_")


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as the one JSON document that it must be."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return self.document["error"]


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith(VARIABLES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GITPROVIDER_ROOT", str(tmp_path / "forge"))
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
