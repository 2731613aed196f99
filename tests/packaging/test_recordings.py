"""``make recordings`` reads each response that the product asks for, on the way of a live one."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import gitprovider
from tests.support import recordings

_SOURCE = Path(gitprovider.__file__).parent
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
REPO = {
    "full_name": "acme/widgets",
    "id": 1,
    "default_branch": "main",
    "private": True,
    "html_url": "https://github.com/acme/widgets",
    "clone_url": "https://github.com/acme/widgets.git",
}


def asked(host: str) -> Iterator[str]:
    """Every endpoint that the source of a provider names in a call: ``op.read(REPO, …)`` and its like."""
    known = recordings.templates(import_module(f"gitprovider.{host}.endpoints"))
    for path in (_SOURCE / host).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            names = [known[arg.id] for arg in node.args if isinstance(arg, ast.Name) and arg.id in known]
            methods = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and arg.value in _METHODS]
            yield from (f"{methods[0] if methods else 'GET'} {name}" for name in names if _sends(node))


def _sends(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in ("read", "request", "pages", "write")


def exchange(**given: Any) -> dict[str, Any]:
    return {"provider": "github", "method": "GET", "path": "/repos/acme/widgets", "response_headers": {}, **given}


@pytest.mark.parametrize("host", recordings.PROVIDERS)
def test_recordings_know_every_endpoint_of_the_product(host: str) -> None:
    """A recorded response of an endpoint that the product uses would be left alone, and prove nothing."""
    converters = import_module(f"tests.support.{host}_recorded").CONVERTERS
    templates = recordings.templates(import_module(f"gitprovider.{host}.endpoints")).values()

    assert {template for template in templates if not any(key.endswith(f" {template}") for key in converters)} == set()
    assert set(asked(host)) - set(converters) == set()
    assert len(set(asked(host))) > 12


def test_an_endpoint_is_found_by_the_path_of_the_exchange() -> None:
    """Another endpoint's converter would read the response, or none."""
    keys = import_module("tests.support.github_recorded").CONVERTERS
    found = {
        path: recordings._template(keys, method, path)
        for method, path in [
            ("GET", "/repos/acme/widgets"),
            ("GET", "/repos/acme/widgets/branches/a%2Fb"),
            ("GET", "/repos/acme/widgets/branches/a%2Fb/protection"),
            ("PATCH", "/repos/acme/widgets/git/refs/heads/a/b"),
            ("GET", "/repos/acme/widgets/releases"),
        ]
    }

    assert [template for template, _ in found.values()] == [
        "/repos/{repo/}",
        "/repos/{repo/}/branches/{branch}",
        "/repos/{repo/}/branches/{branch}/protection",
        "/repos/{repo/}/git/refs/heads/{branch/}",
        "/repos/acme/widgets/releases",
    ]
    assert found["/repos/acme/widgets/branches/a%2Fb"][1] == {"repo": "acme/widgets", "branch": "a/b"}


@pytest.mark.parametrize("status", [301, 302, 307])
def test_a_recorded_redirect_loses_its_body_as_a_live_one_does(status: int) -> None:
    """The body would give a message that no caller of a live host gets to see."""
    moved = exchange(
        status=status,
        response_headers={"Location": "https://api.github.com/repositories/7", "Content-Encoding": "gzip"},
        response_body={"message": "Moved Permanently", "url": "https://api.github.com/repositories/7"},
    )

    assert recordings.run(moved) == f"RepoMovedError: HTTP {status}"


def test_a_recorded_response_is_read_and_one_of_another_shape_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command would be content with whatever it finds."""
    file = tmp_path / "exchanges.jsonl"
    lines = [
        exchange(status=200, response_body=REPO),
        exchange(status=404, response_body={"message": "Not Found", "documentation_url": "https://docs.github.com"}),
        exchange(status=200, path="/rate_limit", response_body={}),
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    assert recordings.main([str(tmp_path)]) == 0
    assert "1 not asked for, 2 understood" in capsys.readouterr().out

    file.write_text(json.dumps(exchange(status=200, response_body={**REPO, "id": "one"})))
    assert recordings.main([str(tmp_path)]) == 1
    assert "1 failed" in capsys.readouterr().out


def test_a_folder_without_recordings_is_no_success(tmp_path: Path) -> None:
    """A wrong DIR would pass."""
    assert recordings.main([str(tmp_path)]) == 1
    assert recordings.main([str(tmp_path / "none")]) == 2
