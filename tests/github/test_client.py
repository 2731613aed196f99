"""The transport: PyGithub with safe settings, one origin, no redirect, no handler, and no secret in sight."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import github
import pytest

from gitprovider import (
    InvalidRequestError,
    Outcome,
    ProviderUnavailableError,
    RepoMovedError,
    UnexpectedResponseError,
)
from gitprovider.fakes.faults import Fault
from gitprovider.github import GitHubProvider
from tests.support.github_hub import REPO, Hub
from tests.support.patience import PATIENCE


def _python(code: str, *options: str) -> str:
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


# Settings


@pytest.mark.parametrize(
    ("given", "url", "internal"),
    [
        ("https://api.github.com", "https://api.github.com", False),
        ("https://API.github.com/", "https://api.github.com", False),
        ("https://github.com", "https://api.github.com", False),
        ("https://ghe.example.com", "https://ghe.example.com/api/v3", True),
        ("https://ghe.example.com/", "https://ghe.example.com/api/v3", True),
        ("https://ghe.example.com/api", "https://ghe.example.com/api/v3", True),
        ("https://ghe.example.com/api/v3", "https://ghe.example.com/api/v3", True),
        ("https://ghe.example.com:8443/api/v3/", "https://ghe.example.com:8443/api/v3", True),
        ("ghe.example.com", "https://ghe.example.com/api/v3", True),
        ("https://acme.ghe.com", "https://api.acme.ghe.com", True),
        ("https://api.acme.ghe.com", "https://api.acme.ghe.com", True),
        ("https://api.ghe.example.com", "https://api.ghe.example.com", True),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080", False),
        ("http://localhost:8080/api/v3", "http://localhost:8080/api/v3", True),
    ],
)
def test_a_server_may_be_named_with_or_without_its_api(given: str, url: str, internal: bool) -> None:
    """Every usual spelling leads to the API, and decides which host's options hold."""
    with GitHubProvider("token", base_url=given) as provider:
        assert repr(provider) == f"GitHubProvider('{url}')"
        assert provider.supports("create_repo.visibility=internal") is internal


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("base_url", {"base_url": "http://ghe.example.com"}),
        ("base_url", {"base_url": "https://user:secret@ghe.example.com"}),
        ("base_url", {"base_url": "https://github.com/acme"}),
        ("base_url", {"base_url": "https://api.github.com:8443"}),
        ("base_url", {"base_url": "ftp://ghe.example.com"}),
        ("base_url", {"base_url": None}),
        ("timeout", {"timeout": None}),
        ("timeout", {"timeout": 0}),
        ("timeout", {"timeout": 1e300}),
        ("timeout", {"timeout": True}),
        ("verify", {"verify": "/nowhere/ca.pem"}),
        ("verify", {"verify": None}),
        ("retry", {"retry": 3}),
        ("limits", {"limits": 3}),
        ("settle", {"settle": -1}),
    ],
)
def test_a_wrong_setting_is_refused_by_name(argument: str, options: dict[str, Any]) -> None:
    """Before anything is sent, and nothing of a URL's credentials is echoed."""
    with pytest.raises(InvalidRequestError) as caught:
        GitHubProvider("token", **options)

    assert caught.value.argument == argument
    assert "secret" not in str(caught.value)


def test_http_to_another_host_is_allowed_by_name_only() -> None:
    """The token would travel in the clear."""
    with GitHubProvider("token", base_url="http://ghe.example.com", allow_http=True) as provider:
        assert repr(provider) == "GitHubProvider('http://ghe.example.com/api/v3')"


def test_the_lent_client_has_the_safe_settings(hub: Hub) -> None:
    """No retry, no throttle, a timeout, and the token."""
    with hub.provider.sdk() as client:
        settings = client.requester.kwargs

    assert settings["timeout"] == PATIENCE
    assert (settings["seconds_between_requests"], settings["seconds_between_writes"]) == (None, None)
    assert settings["retry"].total == 0
    assert settings["verify"] is True
    assert settings["user_agent"].startswith("gitprovider/")


def test_the_lent_client_works(hub: Hub) -> None:
    """PyGithub's own objects, for what the contract does not cover."""
    with hub.provider.sdk() as client:
        found = client.get_repo(REPO)

    assert found.full_name == REPO
    assert hub.sent[0].headers["authorization"] == f"token {hub.fake.token}"


@pytest.mark.parametrize("status", [202, 301, 302, 307, 308])
def test_the_lent_client_follows_nothing(hub: Hub, status: int) -> None:
    """What PyGithub would follow, or take for success, is its own exception."""
    location = {"Location": "https://api.github.com/repositories/1"}
    hub.given_fault(Fault(kind="status", status=status, headers=location, body=b"{}", times=None))

    with hub.provider.sdk() as client, pytest.raises(github.GithubException) as caught:
        client.get_repo(REPO)

    assert caught.value.status == status
    assert len(hub.sent) == 1


def test_the_lent_client_stays_on_its_host_under_python_o() -> None:
    """If this fails, the guard is PyGithub's assertion about foreign hosts, which -O removes."""
    code = (
        "from gitprovider.github import GitHubProvider\n"
        "try:\n"
        "    with GitHubProvider('token').sdk() as client:\n"
        "        client.requester.requestJsonAndCheck('GET', 'https://elsewhere.invalid/')\n"
        "except Exception as e: print(type(e).__name__)"
    )

    assert _python(code, "-O") == "ForeignOriginError"


# Redirects and origins


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirected_mutation_is_sent_nowhere_else(hub: Hub, status: int) -> None:
    """The repository has moved: an error, with its new path, and nothing was changed there."""
    renamed = hub.forge.rename_repo(REPO, "acme/gadgets")
    location = f"https://api.github.com/repositories/{renamed.id}/git/refs"
    hub.given_fault(Fault(kind="redirect", status=status, headers={"Location": location}))

    with pytest.raises(RepoMovedError) as caught:
        hub.provider.create_branch(REPO, "develop", source="0" * 40)

    assert caught.value.moved_to == "acme/gadgets"
    assert hub.calls() == ["POST /git/refs", "GET /repositories/{id}"]


def test_a_renamed_repository_is_read_at_its_new_place(hub: Hub) -> None:
    """get_repo follows once, by the id."""
    hub.forge.rename_repo(REPO, "acme/gadgets")

    assert hub.provider.get_repo(REPO).path == "acme/gadgets"
    assert hub.calls() == ["GET /", "GET /repositories/{id}"]


@pytest.mark.parametrize(
    "location",
    [
        "https://evil.example/repositories/1",
        "https://api.github.com.evil.example/repositories/1",
        "http://api.github.com/repositories/1",
        "https://api.github.com:8443/repositories/1",
        "https://api.github.com/login?return_to=/repositories/x",
        "/repositories/1x",
        "",
    ],
)
def test_a_redirect_elsewhere_is_not_followed(hub: Hub, location: str) -> None:
    """Another origin gets no token, and what names no repository's id leads nowhere."""
    hub.given_fault(Fault(kind="redirect", status=301, headers={"Location": location}, times=None))

    with pytest.raises(RepoMovedError) as caught:
        hub.provider.get_repo(REPO)

    assert caught.value.moved_to is None
    assert len(hub.sent) == 1


def test_a_redirect_is_followed_once(hub: Hub) -> None:
    """A circle ends."""
    location = {"Location": "https://api.github.com/repositories/1"}
    hub.given_fault(Fault(kind="redirect", status=301, headers=location, times=None))

    with pytest.raises(RepoMovedError):
        hub.provider.get_repo(REPO)

    assert len(hub.sent) <= 3


# Logging


def test_importing_leaves_no_handler() -> None:
    """PyGithub adds one to its logger; a library must not."""
    code = "import logging, gitprovider.github; print(logging.getLogger('github').handlers, logging.root.handlers)"

    assert _python(code) == "[] []"


def test_a_handler_that_was_there_stays() -> None:
    """Only what the import added is removed."""
    code = (
        "import logging; h = logging.NullHandler(); logging.getLogger('github').addHandler(h)\n"
        "import gitprovider.github; print(logging.getLogger('github').handlers == [h])"
    )

    assert _python(code) == "True"


def test_a_handler_of_an_earlier_import_stays() -> None:
    """Whoever imported PyGithub before may want it."""
    code = (
        "import logging, github; before = list(logging.getLogger('github').handlers)\n"
        "import gitprovider.github; print(logging.getLogger('github').handlers == before, len(before))"
    )

    assert _python(code) == "True 1"


def test_a_call_logs_nothing(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    """Neither success nor failure makes noise at the levels that applications watch."""
    caplog.set_level(logging.INFO)
    hub.provider.get_repo(REPO)
    hub.given_fault(Fault(kind="status", status=500, times=None))

    with pytest.raises(ProviderUnavailableError):
        hub.provider.get_repo(REPO)

    assert caplog.records == []


def test_the_environment_names_no_file_of_credentials(
    wire: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A netrc entry for the host does not replace the token."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", os.fspath(netrc))

    wire.provider.get_repo(REPO)

    assert wire.sent[0].headers["authorization"] == f"token {wire.fake.token}"


@pytest.mark.pitfall("GH-X-01")
def test_a_write_to_a_renamed_repository_is_no_success(hub: Hub) -> None:
    """GitHub's 307 is RepoMovedError with the new path, and nothing happened."""
    hub.forge.rename_repo(REPO, "acme/gadgets")
    before = hub.state()

    with pytest.raises(RepoMovedError) as caught:
        hub.provider.create_branch(REPO, "develop", source="1" * 40)

    assert (caught.value.moved_to, caught.value.outcome) == ("acme/gadgets", Outcome.NOT_APPLIED)
    assert hub.state() == before


@pytest.mark.pitfall("GH-X-05", "GH-GR-01")
@pytest.mark.parametrize(("status", "kind"), [(200, UnexpectedResponseError), (302, RepoMovedError)])
def test_a_login_page_is_no_repository(hub: Hub, status: int, kind: type[Exception]) -> None:
    """A portal, a proxy, or a server's web pages instead of its API."""
    location = {"Location": "https://ghe.example.com/login?return_to=x", "Content-Type": "text/html"}
    hub.given_fault(Fault(kind="status", status=status, headers=location, body=b"<html>login</html>"))

    with pytest.raises(kind):
        hub.provider.get_repo(REPO)


@pytest.mark.pitfall("GH-GR-01")
def test_a_server_is_found_below_its_api() -> None:
    """Its bare address is made the API's."""
    with GitHubProvider("token", base_url="https://ghe.example.com") as provider:
        assert repr(provider) == "GitHubProvider('https://ghe.example.com/api/v3')"


@pytest.mark.pitfall("GH-GR-03")
def test_addresses_in_answers_are_not_used(hub: Hub) -> None:
    """A server that names itself otherwise is asked where it was configured."""
    pull = hub.given_pull()
    with hub.provider.sdk() as client:
        _, data = client.requester.requestJsonAndCheck("GET", f"/repos/{REPO}/pulls/{pull.number}")
    body = json.dumps(data).replace("https://api.github.com", "https://api.elsewhere.example").encode()
    hub.given_fault(Fault(kind="status", status=200, method="GET", body=body))

    hub.provider.merge_pull_request(REPO, pull.number, delete_source_branch=True)

    assert {entry.headers.get("host", "") for entry in hub.sent} <= {"", "api.github.com", "api.github.com:443"}
