"""The fakes that users' tests call by the names of operations: gitprovider.testing.fakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gitprovider.contract import GitProviderContract
from gitprovider.errors import GitProviderError, NotFoundError, Outcome, ProviderUnavailableError, RateLimitedError
from gitprovider.fakes.github.routes import ROUTES as GITHUB_ROUTES
from gitprovider.fakes.gitlab.routes import ROUTES as GITLAB_ROUTES
from gitprovider.fakes.http import Routes
from gitprovider.fakes.operations import OPERATIONS, HostName, carries_out
from gitprovider.models import PutFile
from gitprovider.testing.fakes import GitHubFake, GitLabFake, LocalFake, fake_github, fake_gitlab, fake_local

pytest_plugins = ["gitprovider.testing.fakes"]

REPO = "acme/widgets"
Remote = GitHubFake | GitLabFake
FAKES: dict[str, Callable[[], Any]] = {"github": fake_github, "gitlab": fake_gitlab}


def _number(fake: Remote) -> int:
    return fake.forge.open_pull_request(REPO, source_branch="ready", target_branch="main", title="Ready").number


CALLS: dict[str, Callable[[Any, Remote], object]] = {
    "get_repo": lambda provider, fake: provider.get_repo(REPO),
    "list_branches": lambda provider, fake: provider.list_branches(REPO),
    "create_repo": lambda provider, fake: provider.create_repo("acme/gadgets"),
    "create_branch": lambda provider, fake: provider.create_branch(REPO, "other", source="main"),
    "protect_branch": lambda provider, fake: provider.protect_branch(REPO, "feature"),
    "commit_files": lambda provider, fake: provider.commit_files(
        REPO, "feature", [PutFile(path="a.txt", content="a")], message="a"
    ),
    "open_pull_request": lambda provider, fake: provider.open_pull_request(
        REPO, source_branch="ready", target_branch="main", title="Ready"
    ),
    "merge_pull_request": lambda provider, fake: provider.merge_pull_request(REPO, _number(fake)),
}
CONTRACT = {name for name in vars(GitProviderContract) if not name.startswith("_")}
MUTATIONS = [name for name in CALLS if name not in ("get_repo", "list_branches")]


@pytest.fixture(params=FAKES)
def fake(request: pytest.FixtureRequest) -> Iterator[Remote]:
    with FAKES[request.param]() as fake:
        sha = fake.seed(REPO, files={"a.txt": "1", "b/c.bin": b"\0"}, branches=["feature", "ready"])
        blob = fake.forge.write_blob(REPO, b"2")
        tree = fake.forge.write_tree(REPO, sha, {"new.txt": (blob, "100644")})
        new = fake.forge.write_commit(REPO, tree=tree, parents=[sha], message="new")
        fake.forge.move_branch(REPO, "ready", new, expected=sha)
        yield fake


@pytest.mark.parametrize(("host", "routes"), [("github", GITHUB_ROUTES), ("gitlab", GITLAB_ROUTES)])
def test_the_table_names_every_operation_and_real_routes(host: HostName, routes: Routes) -> None:
    """An operation without a request, or an endpoint that no fake has, would make a fault that can never strike."""
    known = {(route.method, route.template) for route in routes.table} | {("POST", "/graphql")}

    assert set(OPERATIONS[host]) == CONTRACT == set(CALLS)
    assert {(kind.method, kind.endpoint) for kinds in OPERATIONS[host].values() for kind in kinds} <= known


@pytest.mark.parametrize("operation", CALLS)
def test_an_operation_is_counted_where_it_was_sent(fake: Remote, operation: str) -> None:
    """A request that the table misses, or that it gives to two mutations, would be counted wrongly."""
    CALLS[operation](fake.provider(), fake)

    assert len(fake.sent(operation)) >= 1
    assert not [name for name in MUTATIONS if name != operation and fake.sent(name)]


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("operation", MUTATIONS)
def test_a_lost_answer_leaves_the_outcome_unknown(fake: Remote, operation: str, applied: bool) -> None:
    """A fault that struck another request than the effect would let a user's test pass for the wrong reason."""
    fake.lose_answer(operation, applied=applied)

    with pytest.raises(GitProviderError) as caught:
        CALLS[operation](fake.provider(), fake)

    assert caught.value.outcome is Outcome.UNKNOWN
    (sent,) = fake.sent(operation)
    assert (sent.fault, sent.effect) == ("reset", applied)


def test_a_refusal_a_limit_and_a_host_that_is_down_are_errors_without_a_wait(fake: Remote) -> None:
    """A status, a rate limit or an outage that reached the caller as something else would test nothing."""
    provider = fake.provider()
    fake.refuse("get_repo", 503, retry_after=3)
    assert provider.get_repo(REPO).path == REPO
    fake.rate_limit("create_branch", retry_after=7)
    with pytest.raises(RateLimitedError) as limited:
        provider.create_branch(REPO, "other", source="main")
    fake.down()
    with pytest.raises(ProviderUnavailableError):
        provider.get_repo(REPO)
    fake.up()

    assert limited.value.retry_after == 7
    assert limited.value.outcome is Outcome.NOT_APPLIED
    assert provider.get_repo(REPO).path == REPO


def _fail(fake: Remote) -> None:
    fake.lose_answer("merge_pull_request")
    fake.provider().get_repo("acme/none")


@pytest.mark.parametrize("make", FAKES.values(), ids=FAKES)
def test_a_fault_that_never_struck_fails_the_test(make: Callable[[], Any]) -> None:
    """A test whose fault never struck would pass and prove nothing; a test's own error must not be hidden by that."""
    with pytest.raises(AssertionError, match="never struck"), make() as fake:
        fake.lose_answer("merge_pull_request")
    with pytest.raises(NotFoundError), make() as fake:
        _fail(fake)


def test_an_unknown_operation_is_named() -> None:
    """A misspelt operation would be a fault that never strikes."""
    with pytest.raises(ValueError, match="the operations are get_repo"):
        carries_out("github", "merge")


def test_a_request_to_a_moved_repository_is_the_same_operation() -> None:
    """GitHub redirects to an address by id, which would not be counted."""
    assert carries_out("github", "merge_pull_request")("PUT", "/repositories/{id}/pulls/{number}/merge", b"")


def test_a_commit_by_graphql_is_told_by_its_body() -> None:
    """The query that reads before it has the same method and endpoint, and would be struck in its place."""
    where = carries_out("github", "commit_files")

    for endpoint in ("/graphql", "/graphql createCommitOnBranch"):
        assert where("POST", endpoint, b'{"query": "mutation { createCommitOnBranch }"}')
    assert not where("POST", "/graphql", b'{"query": "query { repository }"}')


def test_the_local_fake_is_a_seeded_forge() -> None:
    """The third fake would not fit a test that is written for all three."""
    with fake_local() as fake:
        sha = fake.seed(REPO, branches=["feature"])
        found = fake.provider().list_branches(REPO)

    assert {branch.name: branch.sha for branch in found} == {"main": sha, "feature": sha}


def test_the_fixtures_are_the_three_fakes(
    fake_github: GitHubFake, fake_gitlab: GitLabFake, fake_local: LocalFake
) -> None:
    """The module that a user names in pytest_plugins would give no fixtures of these names."""
    for fake in (fake_github, fake_gitlab, fake_local):
        fake.seed(REPO)
        assert fake.provider().get_repo(REPO).path == REPO
