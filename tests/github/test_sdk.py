"""PyGithub by itself, as it ships: what the transport has to hold. A release that changes one of these fails here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import github
import pytest

from gitprovider.fakes.faults import Fault
from tests.support.github_hub import REPO, Hub


@pytest.fixture
def client(hub: Hub) -> Iterator[github.Github]:
    """PyGithub with its defaults, but for the throttle, which sleeps."""
    options: dict[str, Any] = {"seconds_between_requests": None, "seconds_between_writes": None}
    with github.Github(auth=github.Auth.Token(hub.fake.token), base_url=hub.url, **options) as client:
        yield client


def test_it_sends_a_post_again_after_a_5xx(hub: Hub, client: github.Github) -> None:
    """The first one took effect, and the second one's refusal is what the caller sees."""
    repo, sha = client.get_repo(REPO), hub.forge.head(REPO, "main")
    hub.given_fault(Fault(kind="status", status=502, method="POST", when="after"))

    with pytest.raises(github.GithubException) as caught:
        repo.create_git_ref("refs/heads/develop", sha)

    assert caught.value.status == 422
    assert hub.calls().count("POST /git/refs") == 2


def test_it_takes_a_redirected_write_for_done(hub: Hub, client: github.Github) -> None:
    """GitHub's 307 for a renamed repository: an object, and no branch."""
    repo, sha = client.get_repo(REPO), hub.forge.head(REPO, "main")
    hub.forge.rename_repo(REPO, "acme/gadgets")

    made: Any = repo.create_git_ref("refs/heads/develop", sha)

    assert made.ref is None
    assert "develop" not in dict(hub.forge.branches("acme/gadgets"))


def test_it_follows_a_301_without_the_query(hub: Hub, client: github.Github) -> None:
    """The filter of a listing is gone."""
    repo = client.get_repo(REPO)
    hub.forge.rename_repo(REPO, "acme/gadgets")

    list(repo.get_pulls(head="acme:feature"))

    assert [entry.query for entry in hub.sent[-2:]] == [{"head": "acme:feature"}, {}]


def test_it_makes_an_object_of_a_page(hub: Hub, client: github.Github) -> None:
    """HTML with 200: a repository of None."""
    hub.given_fault(Fault(kind="html"))

    found: Any = client.get_repo(REPO)

    assert (found.id, found.default_branch) == (None, None)


def test_it_sleeps_between_requests_unless_told_otherwise() -> None:
    """A quarter of a second, and a second between writes."""
    with github.Github() as client:
        settings = client.requester.kwargs

    assert (settings["seconds_between_requests"], settings["seconds_between_writes"]) == (0.25, 1)
    assert settings["retry"].total == 10


def test_it_puts_a_handler_on_its_logger() -> None:
    """The package's own text says so; the import itself is another test's."""
    source = Path(github.__file__).read_text(encoding="utf-8")

    assert "logger.addHandler(logging.StreamHandler())" in source
