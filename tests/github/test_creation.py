"""create_repo on GitHub: what was made is compared with what was asked for."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from gitprovider import Outcome, Repo, UnexpectedResponseError, Visibility
from gitprovider.github import convert
from tests.github.hub import Hub


@pytest.mark.parametrize("other", [{"path": "acme/my-app"}, {"visibility": Visibility.PUBLIC}], ids=["name", "public"])
def test_a_repository_that_was_made_otherwise_is_no_success(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]
) -> None:
    """Whoever asked for a private repository and got a public one learns of it before the first push."""
    understood = convert.repo
    monkeypatch.setattr(convert, "repo", lambda answer: dataclasses.replace(understood(answer), **other))

    with pytest.raises(UnexpectedResponseError, match="GitHub created") as caught:
        hub.provider.create_repo("acme/my_app")

    assert caught.value.outcome is Outcome.PARTIAL
    assert isinstance(caught.value.completed[0].value, Repo)
