"""Credentials: which are taken, and that a token is nowhere to be seen."""

from __future__ import annotations

import copy
import logging
import pickle
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import responses

from gitprovider.errors import AuthenticationError, GitProviderError, InvalidRequestError
from gitprovider.events import Event, log_events
from gitprovider.gitlab import GitLabProvider
from gitprovider.models import PutFile
from tests.support.gitlab_world import REPO, TOKEN, URL, World

BRANCHES = f"{URL}/api/v4/projects/acme%2Fplatform%2Fwidgets/repository/branches"


@pytest.mark.parametrize("tokens", [{}, {"private_token": TOKEN, "oauth_token": TOKEN}])
def test_there_is_exactly_one_token(tokens: dict[str, Any]) -> None:
    """Without one, or with two, nobody knows whose rights are meant."""
    with pytest.raises(InvalidRequestError, match="not both"):
        GitLabProvider(**tokens)


@pytest.mark.parametrize("token", ["", " ", "glpat-abc def", "glpat-abc\n", "glpat-äöü", 7, b"glpat-abc"])
@pytest.mark.parametrize("kind", ["private_token", "oauth_token"])
def test_a_token_that_no_header_can_carry_is_refused(kind: str, token: Any) -> None:
    """Found when the provider is built, not when requests quotes it in an error."""
    with pytest.raises(InvalidRequestError) as caught:
        GitLabProvider(**{kind: token})

    assert caught.value.argument == kind
    assert not str(token).strip() or str(token) not in str(caught.value)


@pytest.mark.pitfall("GL-AU-01")
def test_a_job_token_is_refused() -> None:
    """It reaches none of the endpoints, and the error says what to take."""
    with pytest.raises(InvalidRequestError, match="job token"):
        GitLabProvider(private_token="glcbt-64_abcdefghijklmnopqrst")


@pytest.mark.pitfall("GL-GR-03")
def test_a_revoked_token_is_told_in_the_host_s_words(world: World) -> None:
    """python-gitlab keeps the code alone, and drops the sentence."""
    world.fake.credential = "revoked"

    with pytest.raises(AuthenticationError, match="Token was revoked") as caught:
        world.provider().get_repo(REPO)

    assert caught.value.attempts == 1


def test_a_provider_shows_no_token_and_refuses_to_be_pickled() -> None:
    """Nor do its parts."""
    provider = GitLabProvider(private_token=TOKEN)

    assert repr(provider) == "GitLabProvider('https://gitlab.com')"
    for part in (provider, *vars(provider).values()):
        assert TOKEN not in repr(part)
    with pytest.raises(TypeError, match="credential"):
        pickle.dumps(provider)
    with pytest.raises(TypeError, match="credential"):
        copy.deepcopy(provider)


def everything(error: BaseException) -> Iterator[str]:
    """Every text that an error, its chain, their attributes, and the frames of their tracebacks hold."""
    seen: set[int] = set()
    stack: list[BaseException | None] = [error]
    while stack:
        link = stack.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield repr(link)
        yield str(link)
        yield repr(vars(link))
        for frame, _ in traceback.walk_tb(link.__traceback__):
            # The test's own frames hold the token by right.
            if "/tests/" not in frame.f_code.co_filename:
                yield from (repr(value) for value in frame.f_locals.values())
        stack += [link.__cause__, link.__context__]


ECHO = {"message": f"the token {TOKEN} may not; see https://me:{TOKEN}@gitlab.com/x?private_token={TOKEN}"}


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 400, "json": ECHO},
        {"status": 401, "json": ECHO},
        {"status": 500, "body": f"PRIVATE-TOKEN: {TOKEN}"},
        {"status": 200, "body": f"<html>{TOKEN}</html>", "content_type": "text/html"},
        {"status": 201, "json": {"name": "feature", "commit": None}},
        {"status": 307, "headers": {"Location": f"https://elsewhere.invalid/?private_token={TOKEN}"}},
        {"body": requests.ConnectionError(f"Failed to reach https://x:{TOKEN}@gitlab.com")},
        {"body": requests.exceptions.InvalidHeader(f"Invalid header value: {TOKEN!r}")},
    ],
    ids=["400", "401", "500", "html", "shape", "307", "connection", "header"],
)
def test_a_token_is_nowhere_in_an_error(rsps: responses.RequestsMock, answer: dict[str, Any]) -> None:
    """Not in its text, its attributes, its cause, the frames below it, or its pickle, even where the host echoes it."""
    rsps.post(BRANCHES, **answer)

    with pytest.raises(GitProviderError) as caught:
        GitLabProvider(private_token=TOKEN).create_branch(REPO, "feature", source="1" * 40)

    for text in everything(caught.value):
        assert TOKEN not in text
    assert TOKEN.encode() not in pickle.dumps(caught.value)
    assert TOKEN not in "".join(traceback.format_exception(caught.value))


def test_a_wrong_token_is_nowhere_in_the_error_that_refuses_it() -> None:
    """Neither in the frames of the constructor."""
    wrong = "glpat-wrong token"

    with pytest.raises(InvalidRequestError) as caught:
        GitLabProvider(private_token=wrong)

    assert not any(wrong in text for text in everything(caught.value))


def test_a_token_is_in_no_event_and_no_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Of success and of failure, at every level."""
    events: list[Event] = []
    log = log_events()

    def hook(event: Event) -> None:
        events.append(event)
        log(event)

    with caplog.at_level(logging.DEBUG), world.provider(on_event=hook) as provider:
        provider.commit_files(REPO, "main", [PutFile(path="a", content=b"secret content")], message="m")
        world.fault("status", method="POST", status=403, body=f'{{"message": "{TOKEN}"}}'.encode())
        with pytest.raises(GitProviderError):
            provider.create_branch(REPO, "feature", source="main")

    assert events
    shown = repr(events) + caplog.text + repr([vars(record) for record in caplog.records])
    assert TOKEN not in shown
    assert "secret content" not in shown
