"""Credentials: a token, PyGithub's own, and an App's installation, renewed in time and never in the middle."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import github
import pytest

from gitprovider import (
    AuthenticationError,
    GitProviderError,
    InvalidRequestError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    UnexpectedResponseError,
    connect,
)
from gitprovider.fakes.faults import Fault
from gitprovider.fakes.github.server import App
from gitprovider.github import AppInstallation, GitHubProvider
from gitprovider.github.auth import RENEWAL_MARGIN, InstallationCredential
from tests.support.github_hub import REPO, Hub, refuse, running
from tests.support.patience import PATIENCE

MINT = "POST /app/installations/{number}/access_tokens"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub with an App that is installed on acme, and a clock of its own."""
    clock = [datetime(2024, 1, 1, tzinfo=UTC)]
    with running(tmp_path / "forge", app=App(), now=lambda: max(clock[0], datetime.now(UTC))) as hub:
        hub.given_repo()
        yield hub


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Hub]:
    """A hub with an App."""
    with running(tmp_path / "forge", app=App(installations={101: "acme", 102: "octocat"})) as hub:
        hub.given_repo()
        yield hub


def _headers(hub: Hub) -> list[str]:
    return [entry.headers["authorization"] for entry in hub.sent]


def _mints(hub: Hub) -> int:
    return hub.calls().count(MINT)


# Tokens, and PyGithub's auths


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        ("ghp_token", "token ghp_token"),
        (github.Auth.Token("ghp_token"), "token ghp_token"),
        (github.Auth.Login("octocat", "password"), "Basic b2N0b2NhdDpwYXNzd29yZA=="),
        (github.Auth.AppAuthToken("a.jwt.token"), "Bearer a.jwt.token"),
    ],
    ids=["str", "Token", "Login", "AppAuthToken"],
)
def test_a_credential_is_sent_as_pygithub_sends_it(hub: Hub, auth: Any, header: str) -> None:
    """Whatever github.Auth has."""
    with hub.connect(auth) as provider, pytest.raises(GitProviderError):
        provider.get_repo(REPO)

    assert _headers(hub) == [header]


@pytest.mark.parametrize("auth", ["", " ", "two words", "line\nbreak", "tokén", None, 7, b"bytes", object()])
def test_what_is_no_credential_is_refused(auth: Any) -> None:
    """Before anything is sent, and without an echo."""
    with pytest.raises(InvalidRequestError) as caught:
        GitHubProvider(auth)

    assert caught.value.argument == "auth"
    assert "line" not in str(caught.value).replace("line break", "")


def test_an_auth_of_the_callers_own_is_asked_before_every_operation(hub: Hub) -> None:
    """A token that its owner rotates is taken at the next call."""

    class Rotating(github.Auth.Token):
        @property
        def token(self) -> str:
            return hub.fake.token if hub.sent else "stale"

    with hub.connect(Rotating("unused")) as provider:
        with pytest.raises(AuthenticationError):
            provider.get_repo(REPO)
        provider.get_repo(REPO)

    assert _headers(hub) == ["token stale", f"token {hub.fake.token}"]


def test_an_auth_that_fails_is_an_error_of_ours(hub: Hub) -> None:
    """Nothing was sent, so nothing was applied."""

    class Broken(github.Auth.Token):
        @property
        def token(self) -> str:
            raise OSError("the vault is closed")

    with hub.connect(Broken("unused")) as provider, pytest.raises(ProviderUnavailableError) as caught:
        provider.create_branch(REPO, "develop", source="0" * 40)

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert hub.sent == []


def test_pygithubs_own_installation_works_too(hub: Hub, key: str) -> None:
    """Its token is asked for with our settings, before the operation."""
    auth = github.Auth.AppAuth(1, key).get_installation_auth(101)

    with hub.connect(auth) as provider:
        provider.get_repo(REPO)
        provider.get_repo(REPO)

    assert hub.calls() == [MINT, "GET /", "GET /"]


@pytest.mark.parametrize("fault", [Fault(kind="status", status=503), Fault(kind="redirect"), Fault(kind="reset")])
def test_a_failed_token_of_pygithubs_own_is_not_applied(hub: Hub, key: str, fault: Fault) -> None:
    """The failure is before the effect step."""
    auth = github.Auth.AppAuth(1, key).get_installation_auth(101)
    hub.given_fault(fault)

    with hub.connect(auth) as provider, pytest.raises(Exception) as caught:  # noqa: PT011 - each fault has its own
        provider.create_branch(REPO, "develop", source="0" * 40)

    assert getattr(caught.value, "outcome", None) is Outcome.NOT_APPLIED
    assert len(hub.sent) == 1


# An App's installation


@pytest.mark.parametrize("in_a_file", [True, False])
def test_an_installation_may_be_described_by_the_environment(
    hub: Hub, key: str, tmp_path: Path, in_a_file: bool
) -> None:
    """A container whose App is configured by variables alone cannot act as it, or acts as GITHUB_TOKEN's owner."""
    (tmp_path / "key.pem").write_text(key)
    held = {"GITHUB_APP_PRIVATE_KEY_FILE": str(tmp_path / "key.pem")} if in_a_file else {"GITHUB_APP_PRIVATE_KEY": key}
    environ = {"GITHUB_APP_ID": "1", "GITHUB_APP_INSTALLATION_ID": "101", "GITHUB_TOKEN": "ghp_" + "x" * 36, **held}

    with connect("github", environ={**environ, "GH_HOST": hub.url}, timeout=PATIENCE) as provider:
        provider.get_repo(REPO)

    assert hub.calls() == [MINT, "GET /"]
    assert _headers(hub)[-1].startswith("token ghs_")


@pytest.mark.parametrize(
    ("argument", "environ"),
    [
        ("GITHUB_APP_PRIVATE_KEY", {}),
        ("GITHUB_APP_PRIVATE_KEY", {"GITHUB_APP_PRIVATE_KEY": "k", "GITHUB_APP_PRIVATE_KEY_FILE": "f"}),
        ("GITHUB_APP_PRIVATE_KEY_FILE", {"GITHUB_APP_PRIVATE_KEY_FILE": "/nowhere/key.pem"}),
        ("GITHUB_APP_INSTALLATION_ID", {"GITHUB_APP_PRIVATE_KEY": "k", "GITHUB_APP_INSTALLATION_ID": "acme"}),
        ("private_key", {"GITHUB_APP_PRIVATE_KEY": "k", "GITHUB_APP_INSTALLATION_ID": "1"}),
    ],
)  # fmt: skip
def test_an_environment_that_describes_half_an_app_is_refused(argument: str, environ: dict[str, str]) -> None:
    """A variable that is misspelled makes the program act as somebody else."""
    with pytest.raises(InvalidRequestError) as caught:
        connect("github", environ={"GITHUB_APP_ID": "1", "GITHUB_TOKEN": "ghp_" + "x" * 36, **environ})

    assert caught.value.argument == argument


def test_an_app_of_another_host_is_not_asked(key: str) -> None:
    """The App's signature goes to a host that a URL names, although GH_HOST says where the App is."""
    environ = {"GITHUB_APP_ID": "1", "GITHUB_APP_INSTALLATION_ID": "101", "GITHUB_APP_PRIVATE_KEY": key}

    with pytest.raises(AuthenticationError):
        connect("github", url="https://github.com", environ={**environ, "GH_HOST": "git.example.org"})


@pytest.mark.parametrize(
    ("where", "calls"),
    [
        ({"installation_id": 101}, [MINT]),
        ({"owner": "acme"}, ["GET /orgs/{login}/installation", MINT]),
    ],
)
def test_an_installation_gets_its_token_once(hub: Hub, key: str, where: dict[str, Any], calls: list[str]) -> None:
    """At first use, by its id or by whom it is installed for."""
    with hub.connect(AppInstallation(1, key, **where)) as provider:
        provider.get_repo(REPO)
        provider.get_repo(REPO)

    assert hub.calls() == [*calls, "GET /", "GET /"]
    assert _headers(hub)[-1].startswith("token ghs_")


def test_an_installation_on_a_user_is_found(tmp_path: Path, key: str) -> None:
    """What is no organization's is asked for as a user's."""
    with running(tmp_path / "forge", app=App(installations={7: "octocat"})) as hub:
        hub.given_fault(
            Fault(
                kind="status",
                status=404,
                endpoint="/orgs/",
                body=b'{"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}',
            )
        )
        hub.given_repo()
        with hub.connect(AppInstallation(1, key, owner="octocat")) as provider:
            provider.get_repo(REPO)

    assert hub.calls()[:3] == ["GET /orgs/{login}/installation", "GET /users/{login}/installation", MINT]


def test_an_app_that_is_not_installed_is_told(hub: Hub, key: str) -> None:
    """The owner is named; nothing else was asked."""
    with (
        hub.connect(AppInstallation(1, key, owner="stranger")) as provider,
        pytest.raises(AuthenticationError, match="not installed for stranger"),
    ):
        provider.create_repo("stranger/new")

    assert not any("repos" in call for call in hub.calls())


def _at(provider: GitHubProvider, clock: Callable[[], float]) -> GitHubProvider:
    credential = provider._credential
    assert isinstance(credential, InstallationCredential)
    credential._clock = clock
    return provider


def test_a_token_is_renewed_five_minutes_before_its_end(hub: Hub, key: str) -> None:
    """And not a moment earlier; by the host's own clock, whatever ours says."""
    clock = [0.0]
    with _at(hub.connect(AppInstallation(1, key, installation_id=101)), lambda: clock[0]) as provider:
        provider.get_repo(REPO)
        clock[0] = 3600 - RENEWAL_MARGIN - 2
        provider.get_repo(REPO)
        before = _mints(hub)
        clock[0] = 3600 - RENEWAL_MARGIN + 2
        provider.get_repo(REPO)

    assert (before, _mints(hub)) == (1, 2)
    assert _headers(hub)[-1] != _headers(hub)[1]


def test_many_threads_renew_once(hub: Hub, key: str) -> None:
    """The others wait for the one that asks."""
    with hub.connect(AppInstallation(1, key, installation_id=101)) as provider:
        start = threading.Barrier(8)

        def read() -> None:
            start.wait()
            provider.get_repo(REPO)

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert _mints(hub) == 1
    assert len({header for header in _headers(hub) if header.startswith("token ")}) == 1


@pytest.mark.parametrize(
    ("fault", "retryable"),
    [
        (Fault(kind="status", status=500), True),
        (Fault(kind="status", status=429), True),
        (Fault(kind="reset"), True),
        (Fault(kind="timeout"), True),
        (Fault(kind="html"), False),
        (Fault(kind="shape"), False),
        (Fault(kind="redirect"), False),
        (Fault(kind="status", status=401), False),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else "",
)
def test_a_failed_renewal_changes_nothing(hub: Hub, key: str, fault: Fault, retryable: bool) -> None:
    """The mutation was not begun: NOT_APPLIED, and it is sent by the next call, once."""
    sha = hub.forge.head(REPO, "main")
    hub.given_fault(fault)

    with hub.connect(AppInstallation(1, key, installation_id=101)) as provider:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - each fault has its own
            provider.create_branch(REPO, "develop", source=sha)
        provider.create_branch(REPO, "develop", source=sha)

    assert getattr(caught.value, "outcome", None) is Outcome.NOT_APPLIED
    assert getattr(caught.value, "retryable", None) is retryable
    assert hub.calls() == [MINT, MINT, "POST /git/refs"]


def test_a_failed_renewal_before_a_read_is_tried_again(hub: Hub, key: str) -> None:
    """Asking for a token changes nothing, and a read may be repeated whole."""
    hub.given_fault(Fault(kind="status", status=502))

    with hub.connect(AppInstallation(1, key, installation_id=101)) as provider:
        provider.get_repo(REPO)

    assert hub.calls() == [MINT, MINT, "GET /"]


def test_a_refused_token_is_replaced_at_the_next_call_and_nothing_is_sent_again(hub: Hub, key: str) -> None:
    """A mutation that met a 401 is not repeated with a new token."""
    sha = hub.forge.head(REPO, "main")
    with hub.connect(AppInstallation(1, key, installation_id=101)) as provider:
        provider.get_repo(REPO)
        hub.clock += 60
        hub.given_fault(Fault(kind="status", status=401, body=b'{"message": "Bad credentials"}'))
        with pytest.raises(AuthenticationError) as caught:
            provider.create_branch(REPO, "develop", source=sha)
        provider.create_branch(REPO, "develop", source=sha)

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert hub.calls() == [MINT, "GET /", "POST /git/refs", MINT, "POST /git/refs"]


def test_arguments_are_checked_before_a_token_is_asked_for(hub: Hub, key: str) -> None:
    """A wrong argument costs no request at all."""
    with hub.connect(AppInstallation(1, key, installation_id=101)) as provider, pytest.raises(InvalidRequestError):
        provider.create_branch(REPO, "..", source="main")

    assert hub.sent == []


def test_an_app_creates_in_organizations_without_asking_who_it_is(hub: Hub, key: str) -> None:
    """GET /user is not for Apps, and a user's account not either."""
    with hub.connect(AppInstallation(1, key, installation_id=101)) as provider:
        provider.create_repo("acme/new")

    assert hub.calls() == [MINT, "POST /orgs/{org}/repos"]


def test_a_bare_installation_token_learns_that_it_is_no_user(hub: Hub) -> None:
    """A token of an Actions run is a str, and GET /user refuses it: organizations are left."""
    token = hub.fake.issue_token("acme")["token"]

    with hub.connect(token) as provider:
        provider.create_repo("acme/new")
        provider.create_repo("acme/newer")

    assert hub.calls() == ["GET /user", "POST /orgs/{org}/repos", "POST /orgs/{org}/repos"]


def test_a_login_that_cannot_be_read_stops_before_the_creation(hub: Hub) -> None:
    """Another refusal than an App's is no licence to guess."""
    hub.given_fault(Fault(kind="status", status=403, body=b'{"message": "Forbidden"}'))

    with pytest.raises(PermissionDeniedError):
        hub.provider.create_repo("acme/new")

    assert hub.calls() == ["GET /user"]


@pytest.mark.parametrize("expires", [None, "junk", "2024-01-01T00:00:00", 5])
def test_a_token_without_a_sound_end_is_refused_or_taken_for_an_hour(hub: Hub, key: str, expires: Any) -> None:
    """No end is the documented hour; one that is no time is not what GitHub answers."""
    body = f'{{"token": "ghs_{"a" * 36}"'.encode()
    body += b"}" if expires is None else f', "expires_at": "{expires}"}}'.encode()
    hub.given_fault(Fault(kind="status", status=201, body=body, headers={"Date": "junk"}))

    with (
        hub.connect(AppInstallation(1, key, installation_id=101)) as provider,
        pytest.raises(AuthenticationError if expires is None else UnexpectedResponseError),
    ):
        provider.head(REPO, "main")

    assert len(hub.sent) == (2 if expires is None else 1)


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("private_key", {"private_key": "no key", "installation_id": 1}),
        ("private_key", {"private_key": None, "installation_id": 1}),
        ("private_key", {"app_id": "", "installation_id": 1}),
        ("private_key", {"app_id": None, "installation_id": 1}),
        ("installation_id", {}),
        ("installation_id", {"installation_id": 1, "owner": "acme"}),
        ("installation_id", {"installation_id": 0}),
        ("installation_id", {"installation_id": "1"}),
        ("owner", {"owner": "acme/widgets/x y"}),
        ("owner", {"owner": ""}),
    ],
)
def test_a_wrong_installation_is_refused_by_name(key: str, argument: str, given: dict[str, Any]) -> None:
    """When it is built, not at first use."""
    with pytest.raises(InvalidRequestError) as caught:
        _installation({"app_id": 1, "private_key": key} | given)

    assert caught.value.argument == argument


def _installation(given: dict[str, Any]) -> AppInstallation:
    return AppInstallation(**given)


def test_an_installation_shows_no_key_and_does_not_travel(key: str) -> None:
    """Its repr names the App and where it is; pickling is refused."""
    installation = AppInstallation(1, key, owner="acme")

    assert repr(installation) == "AppInstallation(app_id=1, owner='acme')"
    with pytest.raises(TypeError):
        pickle.dumps(installation)


def test_a_child_renews_although_a_thread_of_the_parent_was_renewing(hub: Hub, key: str) -> None:
    """A lock that is held at the fork is held by nobody in the child."""
    provider = hub.connect(AppInstallation(1, key, installation_id=101))
    with provider._credential._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if provider._credential._lock.acquire(timeout=5) else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    provider.close()


@pytest.mark.pitfall("GH-AU-02")
def test_an_app_creates_nothing_in_a_users_account(app: Hub, key: str) -> None:
    """By the kind of its credential, POST /user/repos is not even tried."""
    with app.connect(AppInstallation(1, key, installation_id=102)) as provider, pytest.raises(NotFoundError) as caught:
        provider.create_repo("octocat/new")

    assert "an App can create repositories only in organizations" in str(caught.value.hint)
    assert "POST /user/repos" not in app.calls()


@pytest.mark.pitfall("GH-AU-04")
def test_an_installations_token_is_renewed_in_time(app: Hub, key: str) -> None:
    """And after a 401, at the next call: never by sending a request again."""
    with app.connect(AppInstallation(1, key, installation_id=101)) as provider:
        provider.get_repo(REPO)
        app.clock += 60
        refuse(app, 401, "Bad credentials")
        with pytest.raises(AuthenticationError):
            provider.get_repo(REPO)
        provider.get_repo(REPO)

    mint = "POST /app/installations/{number}/access_tokens"
    assert app.calls() == [mint, "GET /", "GET /", mint, "GET /"]
