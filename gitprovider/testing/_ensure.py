"""Cases for the ``ensure_`` functions over the provider: each may be called again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from gitprovider.contract import InspectableProvider
from gitprovider.ensure import (
    Ensured,
    ensure_branch,
    ensure_change,
    ensure_files,
    ensure_merged,
    ensure_protection,
    ensure_pull_request,
    ensure_repo,
)
from gitprovider.errors import RepoMovedError
from gitprovider.models import PutFile
from gitprovider.testing._assertions import mutations
from gitprovider.testing._pull_requests import given_feature
from gitprovider.testing.rig import Rig

_FILES = [PutFile(path="docs/new.txt", content="new\n"), PutFile(path="feature.txt", content="changed\n")]
_ENSURE: Mapping[str, Callable[[InspectableProvider, str], Ensured[Any]]] = {
    "ensure_repo": lambda p, repo: ensure_repo(p, repo, description="Widgets"),
    "ensure_branch": lambda p, repo: ensure_branch(p, repo, "topic", source="main"),
    "ensure_protection": lambda p, repo: ensure_protection(p, repo, "feature"),
    "ensure_files": lambda p, repo: ensure_files(p, repo, "feature", _FILES, message="Change files"),
    "ensure_pull_request": lambda p, repo: ensure_pull_request(
        p, repo, source_branch="feature", target_branch="main", title="A change"
    ),
    "ensure_merged": lambda p, repo: ensure_merged(p, repo, 1, delete_source_branch=True),
    "ensure_change": lambda p, repo: ensure_change(
        p, repo, _FILES, source_branch="topic", target_branch="main", title="Change files"
    ),
}


def _inspectable(rig: Rig) -> InspectableProvider:
    if rig.state is None:
        pytest.skip("this provider has no HostState")
    return cast(InspectableProvider, rig.provider)


def _given_all(rig: Rig, function: str) -> str:
    """Create a repository in which the function's call changes something. For ensure_repo, return an unused path."""
    if function == "ensure_repo":
        return rig.fresh_path()
    repo = given_feature(rig)
    if function == "ensure_merged":
        rig.given_pull_request(repo, source_branch="feature")
    return repo


class EnsureCases:
    """The six ``ensure_`` functions of one mutation each, and ensure_change."""

    @pytest.mark.parametrize("function", _ENSURE)
    def test_ensure_a_second_run_sends_no_mutation(self, rig: Rig, function: str) -> None:
        """What the first run changed is found by the second one, which leaves the host as it is."""
        provider = _inspectable(rig)
        repo = _given_all(rig, function)

        first = _ENSURE[function](provider, repo)
        before = (rig.branches(repo), rig.pull_requests(repo))
        with mutations(rig, at_most=0):
            second = _ENSURE[function](provider, repo)

        assert (first.changed, second.changed) == (True, False)
        assert (rig.branches(repo), rig.pull_requests(repo)) == before

    @pytest.mark.parametrize("function", _ENSURE)
    def test_ensure_a_renamed_repository_has_moved(self, rig: Rig, function: str) -> None:
        """At the old path nothing is created, and nothing is sent to the new path: RepoMovedError is raised."""
        provider = _inspectable(rig)
        old = given_feature(rig)
        rig.given_pull_request(old, source_branch="feature")
        new = rig.given_renamed(old)

        with mutations(rig, at_most=0), pytest.raises(RepoMovedError) as caught:
            _ENSURE[function](provider, old)

        assert caught.value.moved_to in (new, None)
        assert not rig.exists(old)
