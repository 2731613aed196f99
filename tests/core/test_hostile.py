"""Every argument of every public function, with values that lie, fail, never end or are too large."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gitprovider
from gitprovider import (
    Author,
    BranchProtection,
    GitProviderError,
    Intent,
    InvalidRequestError,
    PutFile,
    models,
    mutations,
)
from gitprovider.contract import GitProviderContract, HostState
from gitprovider.local import LocalProvider
from gitprovider.retry import RetryOptions
from tests.support.hostile_values import HOSTILE

SHA = "a" * 40
# A good value for each argument. A value of another kind has its own in GOOD_FOR.
GOOD: dict[str, Any] = {
    "archived": False, "asked": mutations.CreateRepo(), "author": None, "auto_init": False, "branch": "main",
    "change": [PutFile(path="c", content="c")], "change_branch": "proposal", "change_title": "Add c",
    "changes": [PutFile(path="a", content="a")], "clone_url": "x", "content": "text", "default_branch": "main",
    "delete_source_branch": False, "description": "", "develop": "develop", "draft": False, "email": "a@b",
    "executable": True, "expected_head": SHA, "id": "1", "include": (), "labels": ("bug",), "message": "Change",
    "method": "merge", "name": "main", "number": 1, "option": "create_repo.auto_init", "parent": SHA, "path": "a",
    "plan": True, "provider": "local", "pull_request": True, "repo": "acme/widgets", "reviewers": ("me",),
    "rules": BranchProtection(), "sha": SHA, "head_sha": SHA, "source": "main", "source_branch": "change",
    "state": "open", "target_branch": "main", "timeout": 1.0, "title": "A change", "to": "b", "url": "https://x.org/a/b",
    "visibility": "private", "wait": False, "web_url": "x", "within": 1.0, "steps": ("create repository",),
    "already_merged": False, "required_checks": ("ci",), "required_approvals": 1,
}  # fmt: skip
RECORD = {
    "operation": "commit_files", "provider": "local", "repo": "acme/widgets", "sent_at": "2026-05-01T12:00:00+00:00",
    "steps": ["x"], "branch": "main", "base_sha": SHA, "files": {"a": [SHA, "100644"]}, "pointers": {"a": SHA},
    "message": "m", "rules": {"required_checks": ["a"]}, "number": 1, "draft": False, "labels": ["l"],
}  # fmt: skip
# Arguments that no value of a caller's reaches: injected functions, and what only a program's author writes.
UNTRIED = {"provider", "settling", "sleep", "clock", "now", "random", "self", "args", "kwargs"}


def _values() -> Iterator[tuple[str, Callable[..., Any], list[str]]]:
    kinds = [kind for module in (models, mutations) for kind in vars(module).values() if dataclasses.is_dataclass(kind)]
    for kind in [*dict.fromkeys(kinds), RetryOptions]:
        assert isinstance(kind, type)
        yield kind.__name__, kind, [field.name for field in dataclasses.fields(kind) if field.name not in UNTRIED]


VALUES = {name: (kind, arguments) for name, kind, arguments in _values()}


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> LocalProvider:
    made = LocalProvider(tmp_path_factory.mktemp("hostile") / "forge")
    made.create_repo("acme/widgets", auto_init=True)
    made.create_branch("acme/widgets", "change", source="main")
    made.commit_files("acme/widgets", "change", [PutFile(path="x", content="x")], message="Change")
    made.open_pull_request("acme/widgets", source_branch="change", target_branch="main", title="A change")
    return made


def _is_told(function: Callable[..., Any], good: dict[str, Any], argument: str, *, told: type[Exception]) -> None:
    """Call the function with each hostile value of one argument. It returns, or it raises ``told``."""
    for name, hostile in HOSTILE.items():
        try:
            with suppress(told):
                function(**{**good, argument: hostile(good.get(argument))})
        except Exception as error:
            pytest.fail(f"{argument} = {name}: {type(error).__name__}: {error}")


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_is_made_or_refused(kind: str) -> None:
    """A value that breaks its own rules raises something that no caller catches."""
    make, arguments = VALUES[kind]
    required = [name for name, item in inspect.signature(make).parameters.items() if item.default is item.empty]
    good = {name: GOOD[name] for name in required}
    for argument in arguments:
        _is_told(make, good, argument, told=InvalidRequestError)


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_that_was_made_is_safe_to_use(kind: str) -> None:
    """A subclass of str with methods of its own lies in a value, and runs inside an operation."""
    make, arguments = VALUES[kind]
    required = [name for name, item in inspect.signature(make).parameters.items() if item.default is item.empty]
    free_text = {"description", "clone_url", "web_url", "ssh_url", "title", "message", "branch"}
    for argument, name in itertools.product(arguments, ("evil subclass", "evil str", "evil int")):
        if kind in ("Repo", "Commit", "PullRequest") and argument in free_text | {"source_branch", "target_branch"}:
            continue  # text of a host, which only a provider makes
        try:
            made = make(**{**{name: GOOD[name] for name in required}, argument: HOSTILE[name](GOOD.get(argument))})
        except InvalidRequestError:
            continue
        kept = getattr(made, argument)
        for item in kept if isinstance(kept, tuple) else [kept]:
            assert not type(item).__name__.startswith("Evil"), f"{argument} = {name}"


def _methods() -> list[str]:
    names = {*vars(GitProviderContract), *vars(HostState)}
    return [*sorted(name for name in names if name[0] != "_" and name not in ("name", "settle")), "supports", "check"]


@pytest.mark.parametrize("method", _methods())
def test_an_operation_refuses_what_it_cannot_use(method: str, provider: LocalProvider) -> None:
    """An argument of an operation is an exception of Python's, or is told as a failure of the host."""
    function = getattr(provider, method)
    good = {name: GOOD[name] for name in inspect.signature(function).parameters}
    for argument in good:
        _is_told(function, good, argument, told=GitProviderError)
        for name in ("None", "object", "deep", "claims to be text"):
            if argument not in ("author", "expected_head", "state", "message") or name != "None":
                with pytest.raises(InvalidRequestError):
                    function(**{**good, argument: HOSTILE[name](None)})


ENSURE = [name for name in gitprovider.__all__ if name.startswith("ensure_")]


@pytest.mark.parametrize("name", [*ENSURE, "bootstrap"])
def test_a_workflow_refuses_what_it_cannot_use(name: str, provider: LocalProvider, tmp_path: Path) -> None:
    """An argument that is passed on to several operations is looked at before its check."""
    (tmp_path / "file").write_text("x")
    function = partial(getattr(gitprovider, name), provider)
    names = [one for one in inspect.signature(function).parameters if one not in UNTRIED]
    good = {one: GOOD[one] for one in names if one in GOOD}
    if name == "bootstrap":
        good |= {"source": tmp_path}
    for argument in names:
        _is_told(function, good, argument, told=GitProviderError)


@pytest.mark.parametrize("operation", ["commit_files", "protect_branch"])
def test_an_intent_that_nobody_checked_is_refused(operation: str, provider: LocalProvider) -> None:
    """An intent that was built by hand ends resolve with an exception of Python's."""
    good = {
        "operation": operation, "provider": "local", "repo": "acme/widgets",
        "sent_at": datetime(2026, 5, 1, tzinfo=UTC),
        "branch": "main", "base_sha": SHA, "files": {"a": (SHA, "100644")}, "message": "m", "source_sha": SHA,
        "rules": {}, "number": 1, "source_branch": "change", "target_branch": "main", "title": "A change",
    }  # fmt: skip

    def ask(**fields: Any) -> None:
        gitprovider.resolve(provider, Intent(**fields))

    for field in dataclasses.fields(Intent):
        _is_told(ask, good, field.name, told=GitProviderError)


def test_what_is_no_evidence_is_refused(provider: LocalProvider) -> None:
    """resolve looks for an intent in anything that it is given."""
    for hostile in HOSTILE.values():
        with pytest.raises(InvalidRequestError):
            gitprovider.resolve(provider, hostile(None))


def test_a_stored_record_is_read_or_is_no_intent() -> None:
    """A record that lies, fails or is nested without end is an exception that no caller catches."""
    for hostile in HOSTILE.values():
        with pytest.raises(ValueError, match="not an intent"):
            Intent.from_json(hostile(None))
    for field in dataclasses.fields(Intent):
        _is_told(lambda **record: Intent.from_json(record).to_json(), RECORD, field.name, told=ValueError)


def test_a_record_of_evil_text_is_read_as_plain_text() -> None:
    """A str with methods of its own comes out of a record, and runs inside resolve."""
    evil = {name: HOSTILE["evil str"](value) if isinstance(value, str) else value for name, value in RECORD.items()}

    assert Intent.from_json(evil) == Intent.from_json(RECORD)


@pytest.mark.parametrize("name", ["local", "github", "gitlab"])
def test_connect_refuses_what_it_cannot_use(name: str, tmp_path: Path) -> None:
    """A setting is an exception of Python's, or is kept and fails at the first request."""
    good = {"root": tmp_path} if name == "local" else {"token": "t"}
    for argument in inspect.signature(gitprovider.connect).parameters:
        function = gitprovider.connect if argument == "name" else partial(gitprovider.connect, name)
        _is_told(function, good, argument, told=GitProviderError)


@pytest.mark.parametrize("function", [gitprovider.connect_repo, gitprovider.parse_repo_url])
def test_a_url_is_parsed_or_refused(function: Callable[..., Any]) -> None:
    """A URL, or what says which hosts are known, is an exception of Python's."""
    good: dict[str, Any] = {"url": "https://github.com/acme/widgets"}
    if function is gitprovider.connect_repo:
        good["environ"] = {"GITHUB_TOKEN": "t"}
    for argument in inspect.signature(function).parameters:
        _is_told(function, good, argument, told=GitProviderError)


def test_an_iterable_is_read_once_and_ends() -> None:
    """A generator of required checks is read twice, so that the rule requires none of them."""
    names: Any = (name for name in ["ci", "lint"])

    assert BranchProtection(required_checks=names).required_checks == ("ci", "lint")
    for endless in ("endless", "endless names"):
        with pytest.raises(InvalidRequestError, match="more than"):
            BranchProtection(required_checks=HOSTILE[endless](None))


def test_a_number_of_seconds_fits_into_a_clock() -> None:
    """A timeout or a settle time that no socket and no date can hold overflows when it is used."""
    for argument in ("timeout", "settle"):
        with pytest.raises(InvalidRequestError):
            LocalProvider("forge", **{argument: 1e300})  # type: ignore[arg-type]  # a wrong type on purpose


def test_an_author_that_is_none_is_refused() -> None:
    """A Mock in place of an Author passes for one."""
    with pytest.raises(InvalidRequestError):
        mutations.CommitFiles(branch="main", changes=GOOD["changes"], message="m", author=object())  # type: ignore[arg-type]  # wrong
    assert Author(name="A", email="a@b").name == "A"
