"""connect and connect_repo: which provider they build, from what, and what they refuse."""

import sqlite3
import sys
import traceback
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gitprovider import (
    AuthenticationError,
    BranchProtection,
    GitProviderError,
    InvalidRequestError,
    ProviderUnavailableError,
    RetryOptions,
    UnsupportedOptionError,
    connect,
    connect_repo,
)
from gitprovider.events import Event
from gitprovider.github import GitHubProvider
from gitprovider.gitlab import GitLabProvider
from gitprovider.local import LocalProvider

TOKEN = "s3cr3t-" + "x" * 20


@pytest.mark.parametrize("as_argument", [True, False])
def test_the_local_forge_is_named_by_argument_or_variable(tmp_path: Path, as_argument: bool) -> None:
    """root= or GITPROVIDER_ROOT says where it lives."""
    root = tmp_path / "forge"

    with connect(
        "local", root=root if as_argument else None, environ={} if as_argument else {"GITPROVIDER_ROOT": str(root)}
    ) as provider:
        provider.create_repo("acme/widgets")

    assert (root / "repositories/acme/widgets.git").is_dir()


def test_the_process_s_environment_is_read_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without environ= the variables are those of the process."""
    monkeypatch.setenv("GITPROVIDER_ROOT", str(tmp_path))

    assert isinstance(connect("local"), LocalProvider)


def test_the_kind_of_host_may_be_a_variable(tmp_path: Path) -> None:
    """A program that is configured by its environment alone cannot leave the kind of host to it."""
    with connect(environ={"GITPROVIDER_PROVIDER": "local", "GITPROVIDER_ROOT": str(tmp_path)}) as provider:
        assert isinstance(provider, LocalProvider)


@pytest.mark.parametrize(
    ("name", "environ", "kind", "shown"),
    [
        ("github", {"GITHUB_TOKEN": TOKEN}, GitHubProvider, "api.github.com"),
        ("github", {"GITHUB_TOKEN": TOKEN, "GH_HOST": "git.example.org"}, GitHubProvider, "git.example.org"),
        ("gitlab", {"GITLAB_TOKEN": TOKEN}, GitLabProvider, "gitlab.com"),
        (
            "gitlab",
            {"GITLAB_TOKEN": TOKEN, "CI_SERVER_URL": "https://h.example/gitlab"},
            GitLabProvider,
            "h.example/gitlab",
        ),
        (
            "gitlab",
            {"GITPROVIDER_TOKEN": TOKEN, "GITPROVIDER_URL": "https://h.example"},
            GitLabProvider,
            "h.example",
        ),
    ],
)
def test_a_remote_provider_is_built_from_the_environment(
    name: str, environ: dict[str, str], kind: type[Any], shown: str
) -> None:
    """The host is the one that the variables name, or the public one; the repr shows it and no token."""
    with connect(name, environ=environ) as provider:
        assert isinstance(provider, kind)
        assert shown in repr(provider)
        assert TOKEN not in repr(provider)


def test_an_address_goes_before_the_variables() -> None:
    """url= is the caller's choice; GITPROVIDER_URL only says what is meant without it."""
    environ = {"GITPROVIDER_URL": "https://other.example", "GH_HOST": "another.example"}

    with connect("github", url="https://git.example.org", token=TOKEN, environ=environ) as provider:
        assert "git.example.org" in repr(provider)


def test_the_api_s_own_address_is_github_com() -> None:
    """https://api.github.com as url= is the same host: its token goes there."""
    with connect("github", url="https://api.github.com/", environ={"GITHUB_TOKEN": TOKEN}) as provider:
        assert "api.github.com" in repr(provider)


@pytest.mark.parametrize("environ", [
    {"GITPROVIDER_TOKEN": TOKEN, "GITPROVIDER_URL": "https://api.github.com"},
    {"GITHUB_TOKEN": TOKEN, "GH_HOST": "api.github.com"},
])  # fmt: skip
def test_a_variable_may_name_the_api_s_own_address(environ: dict[str, str]) -> None:
    """A setting that spells github.com by its API is the same host, and no reason to find no token for it."""
    with connect("github", environ=environ) as provider:
        assert "api.github.com" in repr(provider)


def test_a_host_of_ones_own_is_refused_in_its_providers_name() -> None:
    """An error's provider is what an intent and resolve call it, and not a column of the table of options."""
    provider = connect("gitlab", url="https://git.example.org", token=TOKEN, environ={})

    with provider, pytest.raises(UnsupportedOptionError) as caught:
        provider.protect_branch("acme/widgets", "main", BranchProtection(required_approvals=1))

    assert (caught.value.provider, caught.value.operation) == ("gitlab", "protect_branch")


def test_options_reach_the_provider(tmp_path: Path) -> None:
    """Every option of the constructor that connect offers is passed on: here all of them, to the one that has all."""
    events: list[Event] = []

    with connect(
        "gitlab", url="http://h.example", token=TOKEN, timeout=3, verify=False, retry=RetryOptions(max_attempts=1),
        allow_http=True, obey_rate_limit=True, settle=1.5, on_event=events.append, environ={},
    ) as provider:  # fmt: skip
        assert provider.settle == 1.5
        with provider.sdk() as client:
            assert (client.timeout, client.ssl_verify) == (3, False)


def test_the_local_forge_waits_as_long_as_it_is_told(tmp_path: Path) -> None:
    """timeout= is how long a write waits for its turn; then nothing was applied, and trying again is safe."""
    with connect("local", root=tmp_path, timeout=0, environ={}) as provider:
        provider.create_repo("acme/widgets")
        with closing(sqlite3.connect(tmp_path / "forge.sqlite3", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(ProviderUnavailableError) as caught:
                provider.create_repo("acme/gadgets")

    assert caught.value.retryable


@pytest.mark.parametrize(
    ("name", "arguments", "argument"),
    [
        ("svn", {}, "name"),
        (None, {}, "name"),
        (None, {"environ": {"GITPROVIDER_PROVIDER": "svn"}}, "name"),
        ("local", {}, "root"),
        ("local", {"root": ""}, "root"),
        ("local", {"root": 7}, "root"),
        ("local", {"root": "x", "url": "https://h.example"}, "url"),
        ("local", {"root": "x", "token": TOKEN}, "token"),
        ("local", {"root": "x", "verify": True}, "verify"),
        ("local", {"root": "x", "timeout": -1}, "timeout"),
        ("github", {"root": "x"}, "root"),
        ("github", {"token": TOKEN, "obey_rate_limit": True}, "obey_rate_limit"),
        ("github", {"token": ""}, "token"),
        ("github", {"token": TOKEN, "verify": Path("/nowhere")}, "verify"),
        ("github", {"token": 7}, "token"),
        ("github", {"token": TOKEN, "url": "ssh://h.example"}, "url"),
        ("github", {"token": TOKEN, "url": "https://u:p@h.example"}, "url"),
        ("gitlab", {"token": TOKEN, "url": 7}, "url"),
        ("gitlab", {"token": TOKEN, "environ": {"CI_SERVER_URL": "https://u:p@h.example"}}, "CI_SERVER_URL"),
        ("github", {"token": TOKEN, "environ": {"GH_HOST": "a b"}}, "GH_HOST"),
        ("github", {"token": TOKEN, "environ": {"GITPROVIDER_URL": "x y"}}, "GITPROVIDER_URL"),
    ],
)
def test_what_is_wrong_is_named(name: Any, arguments: dict[str, Any], argument: str) -> None:
    """An argument or a variable that cannot be used is refused by its name, before anything is built."""
    with pytest.raises(InvalidRequestError) as caught:
        connect(name, **{"environ": {}, **arguments})

    assert caught.value.argument == argument
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "hint"),
    [
        ({}, "set GITHUB_TOKEN"),
        ({"GITHUB_TOKEN": ""}, "set GITHUB_TOKEN"),
        ({"GITPROVIDER_TOKEN": TOKEN}, "GITPROVIDER_TOKEN is only sent to the host in GITPROVIDER_URL"),
        ({"GITLAB_TOKEN": TOKEN}, "set GITHUB_TOKEN"),
    ],
)
def test_a_missing_token_says_which_variable_to_set(environ: dict[str, str], hint: str) -> None:
    """Without a token for this host it is an AuthenticationError, and the hint names what would help."""
    with pytest.raises(AuthenticationError) as caught:
        connect("github", environ=environ)

    assert hint in str(caught.value.hint)


def test_a_repository_s_url_leads_to_its_host_and_path() -> None:
    """Clone URLs of all forms give the provider and the path that the contract takes."""
    environ = {"GITHUB_TOKEN": TOKEN, "GITLAB_TOKEN": TOKEN, "CI_SERVER_URL": "https://h.example/gitlab"}

    github, widgets = connect_repo("git@github.com:acme/widgets.git", environ=environ)
    gitlab, nested = connect_repo("https://h.example/gitlab/a/b/c.git", environ=environ)

    with github, gitlab:
        assert (github.name, widgets) == ("github", "acme/widgets")
        assert (gitlab.name, nested) == ("gitlab", "a/b/c")


def test_a_token_may_be_given_with_a_repository_s_url(tmp_path: Path) -> None:
    """A service with a token for each customer has to put it into an environment, or to take the URL apart itself."""
    provider, path = connect_repo("git@github.com:acme/widgets.git", token=TOKEN, environ={})
    with provider:
        assert (provider.name, path) == ("github", "acme/widgets")

    with LocalProvider(tmp_path) as local:
        clone_url = local.create_repo("acme/widgets").clone_url
    for url, wrong in ((clone_url, TOKEN), ("https://github.com/a/b", "")):
        with pytest.raises(InvalidRequestError) as caught:
            connect_repo(url, token=wrong, environ={})
        assert caught.value.argument == "token"


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_a_system_without_fork_has_remote_providers(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Windows has no os.register_at_fork: no provider can be built there. A bundle's path may be a Path."""
    monkeypatch.delattr("os.register_at_fork")
    bundle = tmp_path / "ca.pem"
    bundle.touch()

    with connect(name, token=TOKEN, timeout=0.5, verify=bundle, environ={}) as provider:
        assert provider.name == name
        assert not isinstance(provider, LocalProvider)


def test_a_host_below_a_path_is_not_its_parent() -> None:
    """Of two hosts at one address the one with the longer path is asked first."""
    hosts = {"h.example": "github", "h.example/gitlab": "gitlab"}
    environ = {"GITPROVIDER_TOKEN": TOKEN, "GITPROVIDER_URL": "https://h.example"}

    provider, path = connect_repo("https://h.example/gitlab/a/b", hosts=hosts, environ=environ)

    with provider:
        assert (provider.name, path) == ("gitlab", "a/b")


@pytest.mark.parametrize("form", ["{0}", "file://{0}", "git+file://{0}/", "{0[:-4]}"])
def test_a_local_repository_s_clone_url_leads_to_its_forge(tmp_path: Path, form: str) -> None:
    """What get_repo gives as clone_url can be connected to, with and without .git."""
    with LocalProvider(tmp_path / "my forge") as local:
        clone_url = local.create_repo("acme/widgets").clone_url
    url = clone_url[:-4] if form == "{0[:-4]}" else form.format(clone_url)

    provider, path = connect_repo(url, environ={})

    with provider:
        assert provider.get_repo(path).path == "acme/widgets"


def test_a_timeout_for_a_repository_s_url_reaches_the_local_forge(tmp_path: Path) -> None:
    """The option is not dropped because the URL turned out to be a file's."""
    with LocalProvider(tmp_path) as local:
        clone_url = local.create_repo("acme/widgets").clone_url

    with pytest.raises(InvalidRequestError) as caught:
        connect_repo(clone_url, timeout=-1, environ={})

    assert caught.value.argument == "timeout"


def test_a_directory_that_is_in_no_forge_is_refused(tmp_path: Path) -> None:
    """A path that no forge has made is not opened as if it were one."""
    (tmp_path / "x.git").mkdir()

    with pytest.raises(InvalidRequestError, match="local forge"):
        connect_repo(str(tmp_path / "x.git"), environ={})


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("https://github.com/acme/platform/widgets", None),
        ("https://h.example/a/b", {"h.example": "gitea"}),
        ("https://h.example/a/b", {"https://u:p@h.example": "gitlab"}),
        ("https://h.example/gitlab", {"h.example/gitlab": "gitlab"}),
    ],
)
def test_a_repository_that_cannot_be_is_refused(url: str, hosts: dict[str, str] | None) -> None:
    """A path that the host cannot have, and a host of an unknown kind, are errors before anything is built."""
    with pytest.raises(InvalidRequestError):
        connect_repo(url, hosts=hosts, environ={"GITHUB_TOKEN": TOKEN})


@pytest.mark.parametrize(
    ("name", "package", "extra"), [("local", "pygit2", "gitprovider[local]"), ("github", "github", "PyGithub"),
                                   ("gitlab", "gitlab", "python-gitlab")],
)  # fmt: skip
def test_a_missing_package_is_one_line_that_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, package: str, extra: str
) -> None:
    """A host whose SDK is not installed is an error of ours with the command to install it."""
    for module in [module for module in sys.modules if module.partition(".")[0] == package or module.startswith(
        f"gitprovider.{name}"
    )]:  # fmt: skip
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)  # how Python marks what is not there

    with pytest.raises(GitProviderError) as caught:
        connect(name, root=tmp_path if name == "local" else None, token=None if name == "local" else TOKEN, environ={})

    assert extra in f"{caught.value} {caught.value.hint}"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "fail",
    [
        lambda: connect("github", token=f"{TOKEN} with spaces\n", environ={}),
        lambda: connect("gitlab", token=f"{TOKEN}\n", environ={}),
        lambda: connect("github", environ={"GITHUB_TOKEN": f"{TOKEN}\n", "GITLAB_TOKEN": TOKEN}),
        lambda: connect("github", url="https://evil.example", environ={"GITHUB_TOKEN": TOKEN}),
        lambda: connect_repo("https://github.com/a/b", environ={"GITPROVIDER_TOKEN": TOKEN}),
        lambda: connect_repo("https://github.com/a/b", timeout=-1, environ={"GITHUB_TOKEN": TOKEN}),
    ],
)
def test_a_refusal_s_traceback_holds_no_token(fail: Any) -> None:
    """A tool that prints the locals of a traceback finds no token in any frame of this library."""
    with pytest.raises(GitProviderError) as caught:
        fail()

    frames = [
        frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)
        if "/gitprovider/" in frame.f_code.co_filename
    ]  # fmt: skip
    held = [
        f"{frame.f_code.co_qualname}: {name}"
        for frame in frames
        for name, value in frame.f_locals.items()
        if not isinstance(value, ModuleType) and TOKEN in repr(value)
    ]
    assert frames
    assert held == []
