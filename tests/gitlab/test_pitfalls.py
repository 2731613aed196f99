"""Known traps of GitLab and python-gitlab, each by its id: those that have no better place than this."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import responses

from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    GitProviderError,
    InvalidRequestError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    RepoMovedError,
)
from gitprovider.fakes.gitlab.responses import REPOSITORY_NOT_CREATED
from gitprovider.gitlab import GitLabProvider
from gitprovider.models import BranchProtection, PutFile, Repo, Visibility
from tests.support.gitlab_world import REPO, TOKEN, World

IDS = """
GL-AR-01 GL-AU-01 GL-CB-01 GL-CB-04 GL-CB-05 GL-CB-06 GL-CF-01 GL-CF-02 GL-CF-04 GL-CF-06 GL-CF-07 GL-CF-08 GL-CF-09
GL-CR-01 GL-CR-02 GL-CR-03 GL-CR-04 GL-CR-05 GL-CR-06 GL-CR-07 GL-CR-08 GL-CR-09 GL-CR-10 GL-CR-11 GL-GR-02 GL-GR-03
GL-GR-04 GL-GR-05 GL-GR-06 GL-LB-01 GL-LB-04 GL-MG-01 GL-MG-02 GL-MG-04 GL-MG-05 GL-MG-06 GL-MG-07 GL-MG-08 GL-MG-09
GL-PB-01 GL-PB-02 GL-PB-03 GL-PB-04 GL-PB-05 GL-PB-07 GL-PR-01 GL-PR-04 GL-PR-07 GL-X-01 GL-X-02 GL-X-03 GL-X-04 GL-X-05
GL-X-06 GL-X-08 GL-X-09 GL-X-10 GL-X-11 GL-X-12 GL-X-13
"""


def test_every_known_trap_has_a_test_that_names_it() -> None:
    """In its docstring, so that a red test says which trap it fell into."""
    named: set[str] = set()
    for file in Path(__file__).parent.glob("test_*.py"):
        for docstring in re.findall(r'def test_\w+\([^"]*?\) -> None:\n    """(.*?)"""', file.read_text(), re.DOTALL):
            named |= set(re.findall(r"GL-[A-Z]+-\d\d", docstring))

    assert named == set(IDS.split())


def failed(error: type[GitProviderError], call: Callable[[], object]) -> GitProviderError:
    with pytest.raises(error) as caught:
        call()
    return caught.value


def test_a_taken_name_is_a_repository_that_exists(world: World, provider: GitLabProvider) -> None:
    """GL-CR-01, GL-CR-02: 400 with an object of lists; looked up by its exact path, never by a search."""
    error = failed(AlreadyExistsError, lambda: provider.create_repo(REPO))

    assert isinstance(error, AlreadyExistsError)
    assert isinstance(error.existing, Repo)
    assert error.existing.path == REPO
    assert not any("search" in entry.query for entry in world.request_log.entries)
    assert len(world.mutations) == 1


def test_a_taken_name_that_cannot_be_seen_has_no_value(world: World, provider: GitLabProvider) -> None:
    """GL-CR-02: a project that the token may not see holds the path all the same."""
    world.fake.hidden.add(REPO)

    error = failed(AlreadyExistsError, lambda: provider.create_repo(REPO))

    assert isinstance(error, AlreadyExistsError)
    assert error.existing is None


def test_a_project_that_is_being_deleted_holds_the_path(world: World, provider: GitLabProvider) -> None:
    """GL-CR-04: for days, perhaps; it is not restored, and the hint says what it is."""
    world.fake.pending_deletion.add("acme/gone")

    error = failed(AlreadyExistsError, lambda: provider.create_repo("acme/gone"))

    assert "deleted" in (error.hint or "")


def test_name_and_path_are_both_sent(world: World, provider: GitLabProvider) -> None:
    """GL-CR-05: from a name alone GitLab makes a path of its own, and from no namespace the user's own."""
    value = provider.create_repo("acme/My.Widget_2")

    body = world.request_log.mutations()[0].body
    assert value.path == "acme/My.Widget_2"
    assert b'"name": "My.Widget_2"' in body
    assert b'"path": "My.Widget_2"' in body
    assert b'"namespace_id"' in body


@pytest.mark.parametrize("path", ["acme/a+b", "acme/größe"])
def test_a_name_that_gitlab_refuses_is_an_invalid_request(provider: GitLabProvider, path: str) -> None:
    """GL-CR-05: in its own words, and nothing is made under another name."""
    assert "can contain only" in failed(InvalidRequestError, lambda: provider.create_repo(path)).message


def test_a_namespace_that_takes_no_project_is_a_missing_right(world: World, provider: GitLabProvider) -> None:
    """GL-CR-07: "is not valid" is said of a namespace that exists."""
    body = b'{"message": {"namespace": ["is not valid"], "limit_reached": []}}'
    world.fault("status", method="POST", status=400, body=body)

    assert failed(PermissionDeniedError, lambda: provider.create_repo("acme/new")).outcome is Outcome.NOT_APPLIED


def test_a_visibility_that_is_forbidden_is_a_policy(world: World, provider: GitLabProvider) -> None:
    """GL-CR-09: the empty limit_reached beside it is no quota."""
    world.fake.restricted_visibilities.add("public")

    error = failed(PermissionDeniedError, lambda: provider.create_repo("acme/new", visibility=Visibility.PUBLIC))

    assert "restricted" in error.message
    assert "limit" not in f"{error.message} {error.hint}"


def test_a_failure_of_the_disk_is_no_validation(world: World, provider: GitLabProvider) -> None:
    """GL-CR-10: 400, and yet the host's own; it may have left the project, so nobody knows."""
    world.fault("status", method="POST", status=400, body=REPOSITORY_NOT_CREATED.body)

    error = failed(ProviderUnavailableError, lambda: provider.create_repo("acme/new"))

    assert (error.outcome, error.retryable) == (Outcome.UNKNOWN, False)


def test_a_create_that_took_effect_under_a_500_is_unknown_and_not_repeated(
    world: World, provider: GitLabProvider
) -> None:
    """GL-X-12: a repeat would say "already taken" of one's own project."""
    world.fault("status", method="POST", when="after", status=500)

    error = failed(ProviderUnavailableError, lambda: provider.create_repo("acme/new"))

    assert error.outcome is Outcome.UNKNOWN
    assert world.mutations == ["POST /projects"]
    assert provider.get_repo("acme/new").path == "acme/new"


def test_a_readme_that_is_made_in_the_background_may_come_later(world: World, provider: GitLabProvider) -> None:
    """GL-CR-11: the value names the default branch; nothing waits for it, nor claims that it is there."""
    world.fake.branch_lag = 2

    value = provider.create_repo("acme/new", auto_init=True)

    assert value.default_branch == "main"
    failed(NotFoundError, lambda: provider.head("acme/new", "main"))


@pytest.mark.parametrize(("there", "asked"), [("develop", "develop/x"), ("develop/x", "develop")])
def test_a_branch_in_the_way_is_a_conflict(world: World, provider: GitLabProvider, there: str, asked: str) -> None:
    """GL-CB-04: 400, as for an existing name, a wrong one, and a push rule."""
    world.branch(there)

    failed(ConflictError, lambda: provider.create_branch(REPO, asked, source="main"))


def test_a_branch_name_that_a_push_rule_forbids_is_a_policy(world: World, provider: GitLabProvider) -> None:
    """GL-CB-04, GL-CF-09: the text names the pattern."""
    world.fake.branch_name_pattern = "^(feat|fix)/"

    assert "pattern" in failed(PermissionDeniedError, lambda: provider.create_branch(REPO, "x", source="main")).message


def test_a_protected_wildcard_is_named_as_a_cause(world: World, provider: GitLabProvider) -> None:
    """GL-CB-05: GitLab's own text does not mention it."""
    world.forge.put_rule(REPO, "release/*", BranchProtection(require_pull_request=False))
    world.fake.role = 30

    error = failed(PermissionDeniedError, lambda: provider.create_branch(REPO, "release/1", source="main"))

    assert "wildcard" in (error.hint or "")


def test_a_branch_that_does_not_exist_is_not_made_by_a_commit(world: World, provider: GitLabProvider) -> None:
    """GL-CF-02: found by the query, before GitLab's odd text about being on a branch."""
    failed(
        NotFoundError,
        lambda: provider.commit_files(REPO, "develop", [PutFile(path="a", content="")], message="m"),
    )

    assert world.mutations == []


@pytest.mark.parametrize("path", ["docs", "docs/a/b", "README.md/x"])
def test_a_collision_of_files_and_directories_is_an_invalid_request(
    world: World, provider: GitLabProvider, path: str
) -> None:
    """GL-CF-04: whichever of GitLab's texts it is, or none: old versions replace the file silently."""
    head = world.commit("main", {"docs/a": b"1"})

    error = failed(
        InvalidRequestError,
        lambda: provider.commit_files(REPO, "main", [PutFile(path=path, content="")], message="m"),
    )

    assert error.outcome is Outcome.NOT_APPLIED
    assert world.forge.head(REPO, "main") == head


def test_an_http_url_is_told_by_its_redirect(rsps: responses.RequestsMock) -> None:
    """GL-X-06: the POST is not turned into a GET, and the hint names the cause."""
    project, secure = "http://git.example.org/api/v4/projects/acme%2Fwidgets", {"Location": "https://git.example.org/"}
    rsps.post(f"{project}/repository/branches", status=301, headers=secure)
    rsps.get(project, status=301, headers=secure)
    provider = GitLabProvider("http://git.example.org", private_token=TOKEN, allow_http=True)

    error = failed(RepoMovedError, lambda: provider.create_branch("acme/widgets", "x", source="1" * 40))

    assert "https" in (error.hint or "")
    assert [call.request.method for call in rsps.calls] == ["POST", "GET"]
    assert all(str(call.request.url).startswith("http://git.example.org/") for call in rsps.calls)


def test_three_kinds_of_cannot_are_told_apart(world: World, provider: GitLabProvider) -> None:
    """GL-X-10: the token's scope, the user's role, and no membership at all need different cures."""
    world.fake.scopes = {"read_api"}
    scope = failed(PermissionDeniedError, lambda: provider.create_branch(REPO, "x", source=world.head))
    world.fake.scopes, world.fake.role = {"api"}, 20
    role = failed(PermissionDeniedError, lambda: provider.create_branch(REPO, "x", source=world.head))
    world.fake.hidden.add(REPO)
    invisible = failed(NotFoundError, lambda: provider.create_branch(REPO, "x", source=world.head))

    hints = [error.hint or "" for error in (scope, role, invisible)]
    assert ["scope" in hints[0], "role" in hints[1], "may not see" in hints[2]] == [True] * 3
    assert "higher privileges" in scope.message
