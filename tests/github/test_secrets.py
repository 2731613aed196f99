"""The token shows up nowhere: every error, log record, event and repr is searched for it."""

from __future__ import annotations

import gc
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import github
import pytest

from gitprovider import GitProviderError, PutFile, RetryOptions
from gitprovider.fakes.faults import Fault
from gitprovider.fakes.github.server import App
from gitprovider.github import AppInstallation, GitHubProvider
from tests.support.github_hub import REPO, Hub, running
from tests.support.reachable import leaks

PLAIN = "s3cret/of+no=shape"
ECHO = f'{{"message": "no such token {PLAIN}", "errors": [{{"message": "{PLAIN}"}}], "{PLAIN}": 1}}'.encode()
ECHOES = {
    "401": Fault(kind="status", status=401, body=ECHO, times=None),
    "403": Fault(kind="status", status=403, body=ECHO, times=None),
    "404": Fault(kind="status", status=404, body=ECHO, times=None),
    "422": Fault(kind="status", status=422, body=ECHO, times=None),
    "500": Fault(kind="status", status=500, body=f"<p>{PLAIN}</p>".encode(), times=None),
    "500 in a list": Fault(kind="status", status=500, body=f'["{PLAIN}"]'.encode(), times=None),
    "not JSON": Fault(kind="status", status=200, body=f"<p>{PLAIN}</p>".encode(), times=None),
    "cut JSON": Fault(kind="status", status=200, body=f'{{"a": "{PLAIN}'.encode(), times=None),
    "wrong types": Fault(kind="status", status=200, body=f'{{"full_name": ["{PLAIN}"]}}'.encode(), times=None),
    "a header": Fault(kind="status", status=403, headers={"X-GitHub-SSO": f"required; url={PLAIN}"}, times=None),
    "a redirect": Fault(kind="redirect", headers={"Location": f"https://x/{PLAIN}"}, times=None),
    "a reset": Fault(kind="reset", times=None),
    "a timeout": Fault(kind="timeout", times=None),
    "a cut body": Fault(kind="cut", times=None),
}  # fmt: skip
CALLS: dict[str, Callable[[GitHubProvider], Any]] = {
    "get_repo": lambda provider: provider.get_repo(REPO),
    "list_branches": lambda provider: provider.list_branches(REPO),
    "create_repo": lambda provider: provider.create_repo("acme/new"),
    "commit_files": lambda provider: provider.commit_files(REPO, "main", [PutFile(path="a", content="a")], message="m"),
    "merge": lambda provider: provider.merge_pull_request(REPO, 1, expected_head="0" * 40),
}


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    stack: list[BaseException | None] = [error]
    while stack:
        link = stack.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            stack += [link.__cause__, link.__context__, *(arg for arg in link.args if isinstance(arg, BaseException))]


def _texts(error: BaseException) -> Iterator[str]:
    """All that can be read of an error, its chain, its tracebacks and their frames."""
    yield "".join(traceback.TracebackException.from_exception(error, capture_locals=False).format())
    for link in _chain(error):
        yield from (str(link), repr(link), repr(link.args), repr(vars(link)))
        for value in vars(link).values():
            yield repr(getattr(value, "__dict__", value))
            for slot in getattr(type(value), "__slots__", ()):
                yield repr(getattr(value, slot, ""))
        yield from _locals(link.__traceback__)


def _locals(trace: TracebackType | None) -> Iterator[str]:
    while trace is not None:
        frame: FrameType = trace.tb_frame
        if not frame.f_code.co_filename.startswith(str(Path(__file__).parents[1])):
            for value in frame.f_locals.values():
                yield repr(value)
        trace = trace.tb_next


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Every logger at its most talkative, PyGithub's included."""
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "github")
    caplog.set_level(logging.DEBUG, "urllib3")
    return caplog


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("fault", ECHOES.values(), ids=ECHOES)
def test_a_host_that_echoes_the_token_gives_nothing_away(
    tmp_path: Path, log: pytest.LogCaptureFixture, fault: Fault, call: Callable[[GitHubProvider], Any]
) -> None:
    """Not the error and its chain, not a frame below us, not its pickle, not a log record, not an event."""
    events: list[Any] = []
    with running(tmp_path / "forge", token=PLAIN) as hub:
        hub.given_repo()
        hub.given_fault(fault)
        with hub.connect(PLAIN, on_event=events.append) as provider, pytest.raises(GitProviderError) as caught:
            call(provider)
        shown = [*_texts(caught.value), repr(provider), repr(vars(caught.value)), repr(events), log.text]

    assert PLAIN not in "\n".join(shown)
    assert PLAIN.encode() not in pickle.dumps(caught.value)


@pytest.mark.parametrize("fault", ["500", "not JSON", "a header", "a reset"])
def test_a_page_that_fails_beside_others_gives_nothing_away(tmp_path: Path, fault: str) -> None:
    """The frames of the other threads would lead from the error to their clients, and so to the token."""
    with running(tmp_path / "forge", token=PLAIN) as hub:
        hub.given_repo()
        for number in range(300):
            hub.given_branch(f"b{number}")
        hub.given_fault(replace(ECHOES[fault], nth=2))
        provider = hub.connect(PLAIN, page_concurrency=3, retry=RetryOptions(max_attempts=1))
        with pytest.raises(GitProviderError) as caught:
            provider.list_branches(REPO)
        provider.close()
        del provider

        assert leaks(caught.value, PLAIN) == []
    assert caught.value.failed_step == "list branches"


def test_the_cause_is_the_sdks_error(hub: Hub) -> None:
    """Stripped, but recognizable."""
    hub.given_fault(Fault(kind="status", status=404, body=b'{"message": "Not Found"}'))

    with pytest.raises(GitProviderError) as caught:
        hub.provider.get_repo(REPO)

    assert type(caught.value.__cause__) is github.UnknownObjectException
    assert caught.value.__cause__.__traceback__ is None


@pytest.mark.parametrize("operation", ["create_repo", "create_branch", "merge_pull_request"])
def test_the_cause_of_an_explained_refusal_is_the_sdks_error(hub: Hub, operation: str) -> None:
    """Also where something was read to explain it."""
    calls: dict[str, Callable[[GitHubProvider], Any]] = {
        "create_repo": lambda provider: provider.create_repo(REPO),
        "create_branch": lambda provider: provider.create_branch(REPO, "main", source="main"),
        "merge_pull_request": lambda provider: provider.merge_pull_request(REPO, hub.given_pull(draft=True).number),
    }

    with pytest.raises(GitProviderError) as caught:
        calls[operation](hub.provider)

    assert isinstance(caught.value.__cause__, github.GithubException)
    assert caught.value.__cause__.__traceback__ is None


def test_no_frame_of_the_sdk_outlives_the_call(hub: Hub) -> None:
    """No traceback of the chain leads to the frame that holds the Authorization header."""
    hub.given_fault(Fault(kind="reset"))

    with pytest.raises(GitProviderError) as caught:
        hub.provider.head(REPO, "main")

    files = [frame.filename for link in _chain(caught.value) for frame in traceback.extract_tb(link.__traceback__)]
    assert not [file for file in files if "github/Requester" in file or "/requests/" in file or "responses" in file]


def test_an_installations_token_is_kept_out_of_pygithubs_debug_log(
    tmp_path: Path, log: pytest.LogCaptureFixture, key: str
) -> None:
    """PyGithub logs each answer whole, also the one that brings the token."""
    with running(tmp_path / "forge", app=App()) as hub:
        hub.given_repo()
        with hub.connect(AppInstallation(1, key, installation_id=101)) as provider:
            provider.get_repo(REPO)
    token = hub.sent[-1].headers["authorization"].removeprefix("token ")
    claim = hub.sent[0].headers["authorization"].removeprefix("Bearer ")

    assert "access_tokens" in log.text
    assert token not in log.text
    assert claim not in log.text


def test_a_constructor_that_fails_holds_no_secret() -> None:
    """Its frame is part of the traceback, and has let go of the token."""
    for options in ({"base_url": "no url"}, {"timeout": 0}, {"verify": "/nowhere"}):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - the kind is another test's
            GitHubProvider(PLAIN, **options)

        assert PLAIN not in "\n".join(_texts(caught.value))


def test_a_key_that_is_refused_stays_secret(key: str) -> None:
    """Neither a wrong key nor a right one beside a wrong argument."""
    for private_key, number in ((key[:-40], 1), (key, 0)):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - the kind is another test's
            AppInstallation(1, private_key, installation_id=number)

        assert key[100:140] not in "\n".join(_texts(caught.value))


def test_a_provider_is_not_pickled(hub: Hub) -> None:
    """It would take the token along."""
    with pytest.raises(TypeError, match="credential"):
        pickle.dumps(hub.provider)


def test_a_lent_client_shows_no_token_in_its_settings(tmp_path: Path) -> None:
    """What PyGithub is given to authenticate with holds no secret itself."""
    with running(tmp_path / "forge", token=PLAIN) as hub, hub.provider.sdk() as client:
        settings = client.requester.kwargs

    assert PLAIN not in repr(settings) + repr(vars(settings["auth"]))


def test_nothing_is_kept_of_an_error(hub: Hub) -> None:
    """No answer with its headers and body stays reachable from it."""
    hub.given_fault(Fault(kind="status", status=403, body=b'{"message": "Forbidden", "extra": "kept?"}'))

    with pytest.raises(GitProviderError) as caught:
        hub.provider.head(REPO, "main")

    reachable = gc.get_referents(*[vars(link) for link in _chain(caught.value)])
    assert "Date" not in repr([value for value in reachable if type(value).__name__ == "Response"])
