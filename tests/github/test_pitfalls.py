"""Known traps of GitHub and of PyGithub, one test each, by the id under which the traps are kept.

``AREAS`` is the list of the traps; the last test fails when one of them has neither a test nor a reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gitprovider import (
    AlreadyExistsError,
    AuthenticationError,
    BranchProtection,
    ConflictError,
    HeadMovedError,
    InvalidRequestError,
    MergeMethod,
    NotFoundError,
    NotMergeableError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    PutFile,
    RateLimitedError,
    RepoMovedError,
    UnexpectedResponseError,
    optional,
)
from gitprovider.fakes.faults import Fault
from gitprovider.fakes.github.server import App
from gitprovider.github import AppInstallation, GitHubProvider
from tests.github.hub import REPO, Hub, running
from tests.github.test_auth import key

__all__ = ["key"]

AREAS = {
    "X": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
    "GR": (1, 2, 3, 5, 6),
    "LB": (1, 2, 3, 4, 6),
    "CR": (1, 2, 4, 6, 7, 8, 9),
    "CB": (1, 2, 3, 4, 5, 6),
    "PB": (1, 2, 3, 5, 7, 8),
    "CF": (1, 4, 5, 6, 8, 9, 11),
    "PR": (2, 3, 4, 5, 6, 7, 8),
    "MG": (1, 2, 3, 4, 5, 6, 7, 8, 9),
    "AR": (1,),
    "AU": (2, 4),
}
IDS = [f"GH-{area}-{number:02}" for area, numbers in AREAS.items() for number in numbers]
LIMITS = ("X-RateLimit-Remaining", "X-RateLimit-Limit")
NOT_OURS = {
    "GH-LB-02": "`protected` of a listing is documented as what GitHub's list says; what holds is read from the rules",
}
_covered: set[str] = set()
_Test = TypeVar("_Test", bound=Callable[..., Any])


def pitfall(*ids: str) -> Callable[[_Test], _Test]:
    """The traps that a test is about."""

    def mark(test: _Test) -> _Test:
        _covered.update(ids)
        return test

    return mark


def refuse(hub: Hub, status: int, message: str, *, method: str | None = None, endpoint: str = "", **more: Any) -> None:
    """The next matching request is refused with these words, or ``errors``."""
    headers = more.pop("headers", {})
    body = json.dumps({"message": message, "documentation_url": "https://docs.github.com/rest", **more}).encode()
    hub.given_fault(Fault(kind="status", status=status, method=method, endpoint=endpoint, headers=headers, body=body))


def create(hub: Hub, name: str = "develop") -> Any:
    return hub.provider.create_branch(REPO, name, source="main")


def commit(hub: Hub, branch: str = "main", repo: str = REPO) -> Any:
    return hub.provider.commit_files(repo, branch, [PutFile(path="new.txt", content="new")], message="m")


def open_pull(hub: Hub, **more: Any) -> Any:
    return hub.provider.open_pull_request(REPO, source_branch="feature", target_branch="main", title="t", **more)


@pytest.fixture
def feature(hub: Hub) -> Hub:
    """A branch with a commit of its own."""
    hub.given_branch("feature")
    hub.given_commit("feature", PutFile(path="feature.txt", content="f"))
    return hub


# Redirects, answers that are none, limits


@pitfall("GH-X-01")
def test_a_write_to_a_renamed_repository_is_no_success(hub: Hub) -> None:
    """GitHub's 307 is RepoMovedError with the new path, and nothing happened."""
    hub.forge.rename_repo(REPO, "acme/gadgets")
    before = hub.state()

    with pytest.raises(RepoMovedError) as caught:
        hub.provider.create_branch(REPO, "develop", source="1" * 40)

    assert (caught.value.moved_to, caught.value.outcome) == ("acme/gadgets", Outcome.NOT_APPLIED)
    assert hub.state() == before


@pitfall("GH-X-02")
def test_a_filtered_list_is_not_read_without_its_filter(hub: Hub) -> None:
    """A redirected search for pull requests is an error, not everybody's pull requests."""
    hub.given_pull()
    hub.forge.rename_repo(REPO, "acme/gadgets")

    with pytest.raises(RepoMovedError):
        hub.provider.find_pull_requests(REPO, source_branch="feature", target_branch="main")


@pitfall("GH-LB-06")
def test_a_listing_of_a_renamed_repository_is_an_error(hub: Hub) -> None:
    """PyGithub would go on with pages of thirty and no filter."""
    hub.forge.rename_repo(REPO, "acme/gadgets")

    with pytest.raises(RepoMovedError) as caught:
        hub.provider.list_branches(REPO)

    assert caught.value.moved_to == "acme/gadgets"


@pitfall("GH-X-03")
def test_a_lost_answer_is_not_followed_by_a_false_already_exists(hub: Hub) -> None:
    """The creation is sent once: its outcome is unknown, and nobody else is suspected."""
    hub.given_fault(Fault(kind="status", status=502, method="POST", when="after"))

    with pytest.raises(ProviderUnavailableError) as caught:
        hub.provider.create_repo("acme/new")

    assert caught.value.outcome is Outcome.UNKNOWN
    assert len(hub.host.request_log.mutations()) == 1


@pitfall("GH-X-04")
@pytest.mark.parametrize("body", [b'{"message": "API rate limit exceeded for installation ID 1."}', b"<html></html>"])
def test_a_429_is_a_rate_limit_whatever_its_body(hub: Hub, body: bytes) -> None:
    """With the wait that is asked, or a minute."""
    hub.given_fault(Fault(kind="status", status=429, body=body))

    with pytest.raises(RateLimitedError) as caught:
        create(hub)

    assert caught.value.retry_after == 60


@pitfall("GH-X-05", "GH-GR-01")
@pytest.mark.parametrize(("status", "kind"), [(200, UnexpectedResponseError), (302, RepoMovedError)])
def test_a_login_page_is_no_repository(hub: Hub, status: int, kind: type[Exception]) -> None:
    """A portal, a proxy, or a server's web pages instead of its API."""
    location = {"Location": "https://ghe.example.com/login?return_to=x", "Content-Type": "text/html"}
    hub.given_fault(Fault(kind="status", status=status, headers=location, body=b"<html>login</html>"))

    with pytest.raises(kind):
        hub.provider.get_repo(REPO)


@pitfall("GH-GR-01")
def test_a_server_is_found_below_its_api() -> None:
    """Its bare address is made the API's."""
    with GitHubProvider("token", base_url="https://ghe.example.com") as provider:
        assert repr(provider) == "GitHubProvider('https://ghe.example.com/api/v3')"


@pitfall("GH-X-06")
@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind="redirect", status=301, headers={"Location": "http://api.github.com/repos/acme/widgets"}),
        Fault(kind="redirect", status=301, headers={"Location": "https://elsewhere.example/repos/acme/widgets"}),
        Fault(kind="status", status=422, body=b'{"message": {"not": "a string"}}'),
        Fault(kind="status", status=500, body=b'["a list"]'),
        Fault(kind="status", status=200, headers=dict.fromkeys(LIMITS, "junk"), body=b"{}"),
    ],
)  # fmt: skip
def test_no_foreign_exception_escapes(hub: Hub, fault: Fault) -> None:
    """RuntimeError, AssertionError, AttributeError, ValueError: all of them would."""
    hub.given_fault(fault)

    with pytest.raises((RepoMovedError, InvalidRequestError, ProviderUnavailableError, UnexpectedResponseError)):
        hub.provider.head(REPO, "main")


@pitfall("GH-X-07")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (
            b'{"message": "This repository is empty.", "documentation_url": "https://docs.github.com/rest"}',
            NotFoundError,
        ),
        (b'{"message": "Branch not found", "documentation_url": "https://docs.github.com/rest"}', NotFoundError),
        (b"<html>404</html>", UnexpectedResponseError),
    ],
)
def test_a_404_is_told_by_its_words(hub: Hub, body: bytes, kind: type[Exception]) -> None:
    """A proxy's page is no proof that something does not exist."""
    hub.given_fault(Fault(kind="status", status=404, body=body))

    with pytest.raises(kind):
        hub.provider.head(REPO, "main")


@pitfall("GH-X-08")
def test_single_sign_on_is_told_with_its_address(hub: Hub) -> None:
    """The token has to be authorized, and where is in the hint."""
    sso = {"X-GitHub-SSO": "required; url=https://github.com/orgs/acme/sso?authorization_request=A"}
    refuse(hub, 403, "Resource protected by organization SAML enforcement.", headers=sso)

    with pytest.raises(PermissionDeniedError) as caught:
        hub.provider.get_repo(REPO)

    assert "https://github.com/orgs/acme/sso" in str(caught.value.hint)


@pitfall("GH-X-08")
def test_a_listing_that_single_sign_on_cut_short_is_an_error(hub: Hub) -> None:
    """Partial results are no list."""
    hub.given_fault(
        Fault(kind="status", status=200, headers={"X-GitHub-SSO": "partial-results; organizations=1"}, body=b"[]")
    )

    with pytest.raises(PermissionDeniedError):
        hub.provider.list_branches(REPO)


@pitfall("GH-X-09")
@pytest.mark.parametrize("text", ["Requires authentication", "A JSON web token could not be decoded", ""])
def test_every_401_is_about_the_credential(hub: Hub, text: str) -> None:
    """Not only the one text that PyGithub knows."""
    refuse(hub, 401, text)

    with pytest.raises(AuthenticationError):
        hub.provider.get_repo(REPO)


@pitfall("GH-X-10")
def test_an_outage_keeps_its_status(hub: Hub) -> None:
    """On every verb alike, with the number of attempts."""
    hub.given_fault(Fault(kind="status", status=503, body=b"<html>Unicorn!</html>", times=None))

    for call, attempts in ((lambda: hub.provider.get_repo(REPO), 4), (lambda: create(hub), 1)):
        with pytest.raises(ProviderUnavailableError) as caught:
            call()
        assert (caught.value.status, caught.value.attempts) == (503, attempts)


# get_repo, list_branches


@pitfall("GH-GR-02")
@pytest.mark.parametrize(
    "path",
    ["acme/widgets.git", "/acme/widgets", "https://github.com/acme/widgets", "widgets", "acme//widgets", "a/b/c",
     "git@github.com:acme/widgets"],
)  # fmt: skip
def test_a_reference_is_judged_before_it_is_sent(hub: Hub, path: str) -> None:
    """A missing owner is not a missing repository."""
    with pytest.raises(InvalidRequestError) as caught:
        hub.provider.get_repo(path)

    assert caught.value.argument == "repo"
    assert hub.sent == []


@pitfall("GH-GR-03")
def test_addresses_in_answers_are_not_used(hub: Hub) -> None:
    """A server that names itself otherwise is asked where it was configured."""
    pull = hub.given_pull()
    with hub.provider.sdk() as client:
        _, data = client.requester.requestJsonAndCheck("GET", f"/repos/{REPO}/pulls/{pull.number}")
    body = json.dumps(data).replace("https://api.github.com", "https://api.elsewhere.example").encode()
    hub.given_fault(Fault(kind="status", status=200, method="GET", body=body))

    hub.provider.merge_pull_request(REPO, pull.number, delete_source_branch=True)

    assert {entry.headers.get("host", "") for entry in hub.sent} <= {"", "api.github.com", "api.github.com:443"}


@pitfall("GH-GR-05")
def test_a_404_is_absence_or_lack_of_access(hub: Hub) -> None:
    """The hint says both, and creation does not rely on it."""
    with pytest.raises(NotFoundError) as caught:
        hub.provider.get_repo("acme/secret")

    assert "may not see it" in str(caught.value.hint)
    assert optional(hub.provider.get_repo, "acme/secret") is None


@pitfall("GH-GR-06")
@pytest.mark.parametrize("status", [403, 451])
def test_a_blocked_repository_is_terminal(hub: Hub, status: int) -> None:
    """No limit and no outage: it is not tried again."""
    refuse(hub, status, "Repository access blocked", block={"reason": "dmca"})

    with pytest.raises(PermissionDeniedError, match="blocked"):
        hub.provider.get_repo(REPO)

    assert len(hub.sent) == 1


@pitfall("GH-LB-01", "GH-LB-03")
@pytest.mark.parametrize("count", [31, 101])
def test_every_branch_is_listed_at_the_call(hub: Hub, count: int) -> None:
    """A list, complete when it is returned, and no iterator that fails later."""
    for number in range(count - 1):
        hub.given_branch(f"b{number}")

    listed = hub.provider.list_branches(REPO)

    assert type(listed) is list
    assert len({branch.name for branch in listed}) == count


@pitfall("GH-LB-03")
def test_a_listings_failure_comes_from_the_call(hub: Hub) -> None:
    """Translated, with the operation's name."""
    with pytest.raises(NotFoundError) as caught:
        hub.provider.list_branches("acme/none")

    assert caught.value.operation == "list_branches"


@pitfall("GH-LB-04")
def test_an_empty_repository_is_told_as_such(hub: Hub) -> None:
    """Its list is empty, and a branch from its default one is not found, with a hint."""
    hub.forge.create_repo("acme/empty")

    assert hub.provider.list_branches("acme/empty") == []
    with pytest.raises(NotFoundError) as caught:
        hub.provider.create_branch("acme/empty", "develop", source="main")
    assert "no commit yet" in str(caught.value.hint)


# create_repo


@pitfall("GH-CR-01", "GH-CR-07")
def test_a_taken_name_brings_the_repository(hub: Hub) -> None:
    """The reason stands in the errors alone; what has the name is read."""
    with pytest.raises(AlreadyExistsError) as caught:
        hub.provider.create_repo(REPO)

    assert caught.value.existing == hub.provider.get_repo(REPO)
    assert "name already exists" in caught.value.message


@pitfall("GH-CR-01")
def test_another_422_is_not_a_taken_name(hub: Hub) -> None:
    """All the errors' words are told."""
    refuse(
        hub, 422, "Repository creation failed.", method="POST", errors=[{"message": "name is reserved"}, "and so on"]
    )

    with pytest.raises(InvalidRequestError, match="name is reserved; and so on"):
        hub.provider.create_repo("acme/new")


@pitfall("GH-CR-02")
def test_a_plan_without_private_repositories_is_not_a_taken_name(hub: Hub) -> None:
    """And the repository is not made public instead."""
    refuse(
        hub, 422, "Visibility can't be private. Please upgrade your subscription to create a new private repository.",
        method="POST",
    )  # fmt: skip

    with pytest.raises(PermissionDeniedError):
        hub.provider.create_repo("acme/new")

    assert len(hub.host.request_log.mutations()) == 1


@pitfall("GH-CR-04")
def test_the_default_branch_is_what_the_answer_says(hub: Hub) -> None:
    """It is a setting of the owner, and may be a name without a branch."""
    made = hub.provider.create_repo("acme/new")

    assert made.default_branch == "main"
    with pytest.raises(NotFoundError):
        hub.provider.head("acme/new", made.default_branch)


@pitfall("GH-CR-06")
def test_an_owner_is_an_organization_or_oneself(hub: Hub) -> None:
    """One's own account, in any spelling, is not asked for as an organization; another's cannot be used."""
    assert hub.provider.create_repo("OctoCat/own").path == "octocat/own"
    with pytest.raises(NotFoundError) as caught:
        hub.provider.create_repo("hubot/other")
    assert "another user's account" in str(caught.value.hint)


@pitfall("GH-CR-08")
@pytest.mark.parametrize("name", ["my app", "Åström", "a+b", "x" * 101, "a.git", ".."])
def test_a_name_that_github_would_change_is_refused(hub: Hub, name: str) -> None:
    """Before anything is made under another name."""
    with pytest.raises(InvalidRequestError):
        hub.provider.create_repo(f"acme/{name}")

    assert hub.sent == []


@pitfall("GH-CR-08")
def test_a_repository_under_another_name_is_told(hub: Hub) -> None:
    """Should GitHub change a name all the same: made, and in completed."""
    with hub.provider.sdk() as client:
        _, data = client.requester.requestJsonAndCheck("GET", f"/repos/{REPO}")
    hub.given_fault(Fault(kind="status", status=201, method="POST", body=json.dumps(data).encode()))

    with pytest.raises(UnexpectedResponseError, match="acme/widgets") as caught:
        hub.provider.create_repo("acme/new")

    assert caught.value.outcome is Outcome.PARTIAL


@pitfall("GH-CR-09")
@pytest.mark.parametrize("status", [403, 409, 422])
def test_a_rule_on_creations_is_a_policy(hub: Hub, status: int) -> None:
    """Neither an empty repository nor a missing branch."""
    hub.forge.create_repo("acme/empty")
    refuse(
        hub, status, "Repository rule violations found\n\nCannot create ref due to creations being restricted.\n\n",
        method="PUT",
    )  # fmt: skip

    with pytest.raises(PermissionDeniedError, match="creations being restricted"):
        commit(hub, repo="acme/empty")


# create_branch


@pitfall("GH-CB-01")
@pytest.mark.parametrize(("there", "wanted"), [("release", "release/1.0"), ("release/1.0", "release")])
def test_a_name_that_is_anothers_prefix_is_a_conflict(hub: Hub, there: str, wanted: str) -> None:
    """GitHub says no more than that the update failed; the hint says what to look for."""
    hub.given_branch(there)

    with pytest.raises(ConflictError) as caught:
        create(hub, wanted)

    assert "prefix" in str(caught.value.hint)


@pitfall("GH-CB-02")
def test_an_existing_branch_is_not_moved(hub: Hub) -> None:
    """What has the name is in existing, at its own head."""
    hub.given_branch("develop")
    theirs = hub.given_commit("develop", PutFile(path="x", content="x"))

    with pytest.raises(AlreadyExistsError) as caught:
        create(hub)

    assert caught.value.existing.sha == theirs.sha == hub.forge.head(REPO, "develop")


@pitfall("GH-CB-03")
def test_a_new_branch_is_not_read_back(tmp_path: Path) -> None:
    """A replica may not know it yet; the answer of the creation says all."""
    with running(tmp_path / "forge", ref_lag=9) as hub:
        hub.given_repo()

        assert create(hub).name == "develop"

    assert hub.calls() == ["GET /git/ref/{ref/}", "POST /git/refs"]


@pitfall("GH-CB-04")
@pytest.mark.parametrize("name", ["refs/heads/x", "a b", "a..b", "HEAD", "-x", "a/", "0" * 40])
def test_only_bare_names_are_taken(hub: Hub, name: str) -> None:
    """The prefix is this library's to add, once."""
    with pytest.raises(InvalidRequestError):
        create(hub, name)

    assert hub.sent == []


@pitfall("GH-CB-04", "GH-CB-05")
@pytest.mark.parametrize("name", ["feature/x#1", "100%", "ünïcode", "a?b".replace("?", "="), "%2F"])
def test_a_name_is_encoded_once(hub: Hub, name: str) -> None:
    """In a path and in a body, it is the same branch."""
    made = create(hub, name)

    assert hub.provider.head(REPO, name) == made.sha == hub.forge.head(REPO, name)
    assert commit(hub, name).branch == name


@pitfall("GH-CB-06")
def test_a_rule_on_names_tells_its_reason(hub: Hub) -> None:
    """Neither a taken name nor a wrong one."""
    hub.forge.update_repo(REPO, settings={"rulesets": [{"pattern": "hot*", "rules": [{"type": "creation"}]}]})

    with pytest.raises(PermissionDeniedError, match="creations being restricted"):
        create(hub, "hotfix")


# protect_branch


@pitfall("GH-PB-01")
def test_a_plan_without_protection_is_told(tmp_path: Path) -> None:
    """It is neither the credential nor a passing fault, and the repository stays private."""
    with running(tmp_path / "forge", plan="free") as hub:
        hub.given_repo()

        with pytest.raises(PermissionDeniedError) as caught:
            hub.provider.protect_branch(REPO, "main")

        assert hub.provider.get_repo(REPO).visibility == "private"
    assert "plan" in str(caught.value.hint)
    assert not caught.value.retryable


@pitfall("GH-PB-02", "GH-PB-03")
def test_a_rule_is_tightened_and_not_replaced(hub: Hub) -> None:
    """What was demanded goes on being demanded, and all keys are sent."""
    hub.given_rule(BranchProtection(required_checks=("ci",), required_approvals=2, require_linear_history=True))

    held = hub.provider.protect_branch(REPO, "main", BranchProtection(required_approvals=1))

    assert held == BranchProtection(
        required_checks=("ci",), required_approvals=2, require_linear_history=True
    ).stricter(BranchProtection())


@pitfall("GH-PB-05")
def test_people_who_were_dropped_are_told(hub: Hub) -> None:
    """GitHub answers 200 without them."""
    rule = {"enforce_admins": False, "required_pull_request_reviews": None, "required_status_checks": None}
    people = {"users": ["hubot"], "teams": [], "apps": []}
    with hub.provider.sdk() as client:
        client.requester.requestJsonAndCheck(
            "PUT", f"/repos/{REPO}/branches/main/protection", input=rule | {"restrictions": people}
        )
    hub.fake.logins = frozenset()

    with pytest.raises(PermissionDeniedError, match="hubot"):
        hub.provider.protect_branch(REPO, "main")


@pitfall("GH-PB-07")
def test_three_404s_mean_three_things(tmp_path: Path) -> None:
    """No rule, no branch, and no right to know."""
    with running(tmp_path / "forge") as hub:
        hub.given_repo()
        assert hub.provider.protection(REPO, "main") is None
        with pytest.raises(NotFoundError):
            hub.provider.protect_branch(REPO, "none")
        hub.fake.admin = False
        with pytest.raises(PermissionDeniedError):
            hub.provider.protect_branch(REPO, "main")


@pitfall("GH-PB-08")
def test_protected_by_some_ruleset_is_not_protected_as_asked(hub: Hub) -> None:
    """The flag is true, and the rule is written all the same."""
    hub.forge.update_repo(REPO, settings={"rulesets": [{"pattern": "main", "rules": [{"type": "deletion"}]}]})

    held = hub.provider.protect_branch(REPO, "main", BranchProtection(required_approvals=1))

    assert held.required_approvals == 1


# commit_files


@pitfall("GH-CF-01")
def test_an_empty_repository_is_seeded(hub: Hub) -> None:
    """The Git data API refuses it; the contents API does not."""
    hub.forge.create_repo("acme/empty")
    files = [PutFile(path=name, content=name) for name in ("a", "b")]

    made = hub.provider.commit_files("acme/empty", "main", files, message="m")

    assert sorted(hub.forge.read_tree("acme/empty", made.sha)) == ["a", "b"]


@pitfall("GH-CF-04")
def test_the_other_files_survive(hub: Hub) -> None:
    """The tree is made on the parent's."""
    made = commit(hub)

    assert sorted(hub.forge.read_tree(REPO, made.sha)) == ["README.md", "new.txt"]


@pitfall("GH-CF-05")
def test_the_ref_is_never_forced(hub: Hub) -> None:
    """Not a fast-forward: somebody else's commit is there, and stays."""
    refuse(hub, 422, "Update is not a fast forward", method="PATCH")

    with pytest.raises(HeadMovedError):
        commit(hub)

    assert json.loads(hub.sent[-1].body)["force"] is False


@pitfall("GH-CF-06")
def test_a_tree_that_is_not_known_yet_may_pass(hub: Hub) -> None:
    """A lag of the object store: not the caller's mistake, and safe to repeat."""
    refuse(hub, 422, "Tree SHA does not exist", method="POST", endpoint="/git/commits")

    with pytest.raises(ProviderUnavailableError) as caught:
        commit(hub)

    assert caught.value.retryable


@pitfall("GH-CF-08")
def test_a_direct_commit_to_a_protected_branch_is_denied(hub: Hub) -> None:
    """With the way out in the hint; it is no conflict that could be retried."""
    hub.given_rule(BranchProtection(enforce_admins=True))

    with pytest.raises(PermissionDeniedError) as caught:
        commit(hub)

    assert "pull request" in str(caught.value.hint)
    assert not caught.value.retryable


@pitfall("GH-CF-09")
def test_many_files_are_several_trees_and_one_commit(hub: Hub) -> None:
    """More than about 250 inline files time out."""
    changes = [PutFile(path=f"f{n}", content=str(n), executable=False) for n in range(300)]

    made = hub.provider.commit_files(REPO, "main", changes, message="m")

    assert hub.calls().count("POST /git/trees") == 3
    assert hub.calls().count("POST /git/commits") == 1
    assert len(hub.forge.read_tree(REPO, made.sha)) == 301


@pitfall("GH-CF-09")
def test_a_tree_that_is_too_big_is_told(hub: Hub) -> None:
    """A 422 about time is no mistake in the request."""
    refuse(
        hub, 422, "Sorry, your request timed out.  It's likely that your input was too large to process.", method="POST"
    )

    with pytest.raises(ProviderUnavailableError) as caught:
        commit(hub)

    assert "smaller" in str(caught.value.hint)


@pitfall("GH-CF-11")
@pytest.mark.parametrize("path", ["/a", "a//b", "a/", "./a", "../a", "a/.git/b", ".GIT/config", ""])
def test_a_malformed_path_is_named_before_it_is_sent(path: str) -> None:
    """GitHub refuses the tree without saying which path it was."""
    with pytest.raises(InvalidRequestError) as caught:
        PutFile(path=path, content="")

    assert caught.value.argument == "path"


# open_pull_request


@pitfall("GH-PR-02")
def test_nothing_to_merge_is_a_conflict(hub: Hub) -> None:
    """Not one that exists."""
    hub.given_branch("feature")

    with pytest.raises(ConflictError, match="No commits between") as caught:
        open_pull(hub)

    assert type(caught.value) is ConflictError


@pitfall("GH-PR-03")
def test_a_filter_names_the_owner_and_is_checked(hub: Hub) -> None:
    """GitHub answers with everything to a filter it does not like."""
    for name in ("feature", "other"):
        hub.given_pull(name)
    with hub.provider.sdk() as client:
        _, everything = client.requester.requestJsonAndCheck("GET", f"/repos/{REPO}/pulls")
    hub.given_fault(Fault(kind="status", status=200, method="GET", body=json.dumps(everything).encode()))

    found = hub.provider.find_pull_requests(REPO, source_branch="feature", target_branch="main")

    assert [pull.source_branch for pull in found] == ["feature"]
    assert hub.sent[-1].query["head"] == "acme:feature"


@pitfall("GH-PR-04")
@pytest.mark.parametrize(("source", "target"), [("none", "main"), ("feature", "none")])
def test_an_invalid_head_or_base_is_a_missing_branch(feature: Hub, source: str, target: str) -> None:
    """By the field that GitHub names."""
    with pytest.raises(NotFoundError) as caught:
        feature.provider.open_pull_request(REPO, source_branch=source, target_branch=target, title="t")

    assert ("source" if source == "none" else "target") in str(caught.value.hint)


@pitfall("GH-PR-05")
def test_a_plan_without_drafts_opens_nothing(tmp_path: Path) -> None:
    """No plain pull request in its place."""
    with running(tmp_path / "forge", plan="free") as hub:
        hub.given_repo()
        hub.given_branch("feature")
        hub.given_commit("feature", PutFile(path="f", content="f"))

        with pytest.raises(PermissionDeniedError):
            open_pull(hub, draft=True)

        assert hub.forge.pull_requests(REPO) == []


@pitfall("GH-PR-06")
@pytest.mark.parametrize("reviewer", ["octocat", "stranger"])
def test_a_refused_reviewer_does_not_lose_the_pull_request(feature: Hub, reviewer: str) -> None:
    """PARTIAL, with the pull request in completed."""
    with pytest.raises(InvalidRequestError) as caught:
        open_pull(feature, reviewers=[reviewer], labels=["bug"])

    assert (caught.value.outcome, caught.value.argument) == (Outcome.PARTIAL, "reviewers")
    assert caught.value.completed[0].value.number == 1


@pitfall("GH-PR-06")
@pytest.mark.parametrize("what", ["labels", "reviewers"])
def test_what_github_left_out_is_told(feature: Hub, what: str) -> None:
    """An answer without the label or the reviewer is no success."""
    body = b"[]" if what == "labels" else b'{"requested_reviewers": []}'
    endpoint = "/labels" if what == "labels" else "/requested_reviewers"
    feature.given_fault(Fault(kind="status", status=201, endpoint=endpoint, body=body))

    with pytest.raises(UnexpectedResponseError, match="hubot") as caught:
        open_pull(feature, **{what: ["hubot"]})

    assert caught.value.outcome is Outcome.PARTIAL


@pitfall("GH-PR-07")
def test_a_fine_grained_token_is_told_what_it_lacks(feature: Hub) -> None:
    """The permission that GitHub names; not the credential as such."""
    needs = {"X-Accepted-GitHub-Permissions": "pull_requests=write"}
    refuse(feature, 403, "Resource not accessible by personal access token", method="POST", headers=needs)

    with pytest.raises(PermissionDeniedError) as caught:
        open_pull(feature)

    assert "pull_requests=write" in str(caught.value.hint)


@pitfall("GH-PR-08")
@pytest.mark.parametrize(
    ("status", "text"),
    [
        (403, "You have exceeded a secondary rate limit and have been temporarily blocked from content creation."),
        (422, "was submitted too quickly"),
    ],
)
def test_a_secondary_limit_asks_for_a_minute(feature: Hub, status: int, text: str) -> None:
    """Although requests are left."""
    refuse(feature, status, text, method="POST", headers={"X-RateLimit-Remaining": "4900"})

    with pytest.raises(RateLimitedError) as caught:
        open_pull(feature)

    assert (caught.value.retry_after, caught.value.retryable) == (60, True)


# merge_pull_request


@pitfall("GH-MG-01", "GH-MG-06")
def test_what_github_computes_does_not_stop_the_merge(hub: Hub) -> None:
    """mergeable is null, or says nothing of what is allowed: the merge itself is the question."""
    pull = hub.given_pull()
    hub.fake.mergeable_after = 100

    result = hub.provider.merge_pull_request(REPO, pull.number)

    assert result.sha == hub.forge.head(REPO, "main")


@pitfall("GH-MG-02")
@pytest.mark.parametrize(
    ("text", "reason", "retryable"),
    [
        ("Base branch was modified. Review and try the merge again.", "pending", True),
        ("Squash merges are not allowed on this repository.", "method", False),
        ("At least 1 approving review is required by reviewers with write access.", "reviews", False),
        ("Pull Request is still a draft", "draft", False),
    ],
)
def test_a_405_means_what_it_says(hub: Hub, text: str, reason: str, retryable: bool) -> None:
    """A race may be repeated by the caller; a setting or a policy not."""
    pull = hub.given_pull()
    refuse(hub, 405, text, method="PUT")

    with pytest.raises(NotMergeableError) as caught:
        hub.provider.merge_pull_request(REPO, pull.number)

    assert (caught.value.reason, caught.value.retryable) == (reason, retryable)


@pitfall("GH-MG-03")
def test_the_head_is_always_sent(hub: Hub) -> None:
    """The one that was expected, or the one that was read just before."""
    pull = hub.given_pull()

    hub.provider.merge_pull_request(REPO, pull.number)

    assert json.loads(hub.sent[1].body)["sha"] == pull.head_sha


@pitfall("GH-MG-04")
def test_a_pull_request_that_is_merged_already_is_success(hub: Hub) -> None:
    """The second call gets a 405 from GitHub, and says already_merged."""
    pull = hub.given_pull()
    first = hub.provider.merge_pull_request(REPO, pull.number, expected_head=pull.head_sha)

    second = hub.provider.merge_pull_request(REPO, pull.number, expected_head=pull.head_sha)

    assert (second.sha, second.already_merged) == (first.sha, True)


@pitfall("GH-MG-05")
def test_a_merge_queue_is_a_policy(hub: Hub) -> None:
    """There is no way around it, and none is tried."""
    pull = hub.given_pull()
    hub.forge.update_repo(REPO, settings={"rulesets": [{"pattern": "main", "rules": [{"type": "merge_queue"}]}]})

    with pytest.raises(NotMergeableError, match="merge queue") as caught:
        hub.provider.merge_pull_request(REPO, pull.number)

    assert caught.value.reason == "policy"


@pitfall("GH-MG-07")
def test_no_other_method_is_tried(hub: Hub) -> None:
    """A method that the repository forbids is METHOD, once."""
    pull = hub.given_pull()
    hub.forge.update_repo(REPO, settings={"allow_merge_commit": False})

    with pytest.raises(NotMergeableError) as caught:
        hub.provider.merge_pull_request(REPO, pull.number, method=MergeMethod.MERGE)

    assert caught.value.reason == "method"
    assert len(hub.host.request_log.mutations()) == 1


@pitfall("GH-MG-08")
def test_a_branch_that_is_gone_already_is_no_failure(hub: Hub) -> None:
    """GitHub deleted it first."""
    pull = hub.given_pull()
    refuse(hub, 422, "Reference does not exist", method="DELETE")

    hub.provider.merge_pull_request(REPO, pull.number, expected_head=pull.head_sha, delete_source_branch=True)


@pitfall("GH-MG-09")
def test_a_200_that_did_not_merge_is_no_success(hub: Hub) -> None:
    """merged must be true."""
    pull = hub.given_pull()
    body = b'{"sha": null, "merged": false, "message": "Pull Request is not mergeable"}'
    hub.given_fault(Fault(kind="status", status=200, method="PUT", body=body))

    with pytest.raises(NotMergeableError):
        hub.provider.merge_pull_request(REPO, pull.number, expected_head=pull.head_sha)


# Archives and Apps


@pitfall("GH-AR-01")
def test_an_archived_repository_says_so(hub: Hub) -> None:
    """It is not the token's fault."""
    hub.forge.update_repo(REPO, archived=True)

    with pytest.raises(PermissionDeniedError) as caught:
        create(hub)

    assert "archived" in str(caught.value.hint)
    assert hub.provider.get_repo(REPO).archived


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Hub]:
    """A hub with an App."""
    with running(tmp_path / "forge", app=App(installations={101: "acme", 102: "octocat"})) as hub:
        hub.given_repo()
        yield hub


@pitfall("GH-AU-02")
def test_an_app_creates_nothing_in_a_users_account(app: Hub, key: str) -> None:
    """By the kind of its credential, POST /user/repos is not even tried."""
    with app.connect(AppInstallation(1, key, installation_id=102)) as provider, pytest.raises(NotFoundError) as caught:
        provider.create_repo("octocat/new")

    assert "an App can create repositories only in organizations" in str(caught.value.hint)
    assert "POST /user/repos" not in app.calls()


@pitfall("GH-AU-04")
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


def test_every_trap_has_a_test_or_a_reason() -> None:
    """The list is complete, and names nothing twice."""
    assert sorted(_covered | set(NOT_OURS)) == sorted(IDS)
    assert not _covered & set(NOT_OURS)
