"""GitHubProvider: reads and their retries, creating repositories and branches, opening and finding pull requests."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from gitprovider import (
    AlreadyExistsError,
    AuthenticationError,
    BranchProtection,
    ConflictError,
    GitProviderError,
    InvalidRequestError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    PutFile,
    RateLimitedError,
    Repo,
    RepoMovedError,
    RetryOptions,
    UnexpectedResponseError,
    Visibility,
)
from gitprovider.events import Event, RetryEvent
from gitprovider.fakes.faults import Fault
from gitprovider.github import convert
from tests.support.github_faults import FAULTS, Broken
from tests.support.github_hub import REPO, Hub, commit, create, open_pull, refuse, running

PASSING = {
    name: fault
    for name, fault in FAULTS.items()
    if name not in ("html", "wrong shape", "307", "404 page", "404 gateway")
}
LASTING = {name: fault for name, fault in PASSING.items() if not name.startswith(("429", "403"))}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_passing_fault_costs_one_more_request(hub: Hub, fault: Broken) -> None:
    """A repository is read all the same, after one wait."""
    hub.given_fault(fault.at(1, "before", 1))

    repo = hub.provider.get_repo(REPO)

    assert repo.path == REPO
    assert (len(hub.sent), len(hub.waits)) == (2, 1)


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_failing_page_is_repeated_alone(hub: Hub, fault: Broken) -> None:
    """The third page fails, and the first two are not asked for again."""
    for number in range(300):
        hub.given_branch(f"b{number:03}")
    hub.given_fault(fault.at(3, "before", 1))

    listed = hub.provider.list_branches(REPO)

    assert [branch.name for branch in listed] == sorted(name for name, _ in hub.forge.branches(REPO))
    assert [entry.query["page"] for entry in hub.sent] == ["1", "2", "3", "3", "4"]


@pytest.mark.parametrize("fault", LASTING.values(), ids=LASTING)
def test_a_lasting_fault_ends_after_four_attempts(hub: Hub, fault: Broken) -> None:
    """The error is the last one, and tells how often was tried."""
    hub.given_fault(fault.at(1, "before", None))

    with pytest.raises(ProviderUnavailableError if fault.kind != "cut" else GitProviderError) as caught:
        hub.provider.get_repo(REPO)

    assert caught.value.attempts == 4
    assert (len(hub.sent), len(hub.waits)) == (4, 3)


@pytest.mark.parametrize(
    ("headers", "waits", "asked"),
    [
        ({"Retry-After": "7"}, [7, 7, 7], 7),
        ({"Retry-After": "61"}, [], 61),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1000000030", "Date": "Sun, 09 Sep 2001 01:46:40 GMT"},
         [31, 31], 31),
        ({"Retry-After": "Sun, 09 Sep 2001 01:46:45 GMT", "Date": "Sun, 09 Sep 2001 01:46:40 GMT"}, [5, 5, 5], 5),
        ({"X-RateLimit-Remaining": "4900"}, [60], 60),
    ],
    ids=["Retry-After", "longer than honoured", "the reset of the primary limit", "an HTTP-date", "a secondary limit"],
)  # fmt: skip
@pytest.mark.parametrize("status", [403, 429])
def test_a_limit_is_waited_for_as_long_as_it_asks(
    hub: Hub, status: int, headers: dict[str, str], waits: list[int], asked: float
) -> None:
    """By Retry-After, by the reset against the host's own clock, or a minute; beyond the budget it is reported."""
    body = b'{"message": "API rate limit exceeded for user ID 1."}'
    hub.given_fault(Fault(kind="status", status=status, headers=headers, body=body, times=None))

    with pytest.raises(RateLimitedError) as caught:
        hub.provider.get_repo(REPO)

    assert caught.value.retry_after == asked
    assert caught.value.attempts == len(waits) + 1
    assert [int(seconds) for seconds in hub.waits] == waits


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, b'{"message": "Requires authentication"}', AuthenticationError),
        (403, b'{"message": "Resource not accessible by personal access token"}', PermissionDeniedError),
        (404, b'{"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}', NotFoundError),
        (404, b"<html>Not Found</html>", UnexpectedResponseError),
        (451, b'{"message": "Repository access blocked", "block": {"reason": "dmca"}}', PermissionDeniedError),
        (200, b"<html>Sign in</html>", UnexpectedResponseError),
        (200, b"null", UnexpectedResponseError),
        (200, b'"text"', UnexpectedResponseError),
        (200, b"", UnexpectedResponseError),
        (200, b'{"id": 1}', UnexpectedResponseError),
        (200, b"[" * 100_000, UnexpectedResponseError),
    ],
)
def test_what_does_not_pass_is_not_repeated(hub: Hub, status: int, body: bytes, kind: type[GitProviderError]) -> None:
    """A refusal, and an answer that is no repository, is an error at once (JSON that breaks off is tried again)."""
    hub.given_fault(Fault(kind="status", status=status, body=body, times=None))

    with pytest.raises(kind) as caught:
        hub.provider.get_repo(REPO)

    assert len(hub.sent) == 1
    assert caught.value.status == status


@pytest.mark.parametrize("body", [b'{"name": "main"}', b"null", b'"text"', b'[{"name": "main"}]', b"[1]", b"[null]"])
def test_a_page_that_is_no_list_of_branches_is_an_error(hub: Hub, body: bytes) -> None:
    """Never a shorter list, and never a branch without a head."""
    hub.given_fault(Fault(kind="status", status=200, body=body, times=None))

    with pytest.raises(UnexpectedResponseError):
        hub.provider.list_branches(REPO)


def test_a_list_with_fewer_pages_than_its_first_page_said_is_read_again(hub: Hub) -> None:
    """The branches that moved to the page that was read already would be missing."""
    for number in range(200):
        hub.given_branch(f"b{number:03}")
    handle, due = hub.fake.handle, iter(["b000"])

    def deleting(request: Any) -> Any:
        response = handle(request)
        if request.path.endswith("/branches") and (name := next(due, None)) is not None:
            hub.forge.delete_branch(REPO, name, bypass=True)
        return response

    hub.fake.handle = deleting  # type: ignore[method-assign]  # it answers as the fake does

    listed = [branch.name for branch in hub.provider.list_branches(REPO)]

    assert listed == sorted(name for name, _ in hub.forge.branches(REPO))


def test_a_list_whose_number_of_pages_always_changes_is_an_error(hub: Hub) -> None:
    """It would be read for ever."""
    for number in range(100):
        hub.given_branch(f"b{number:03}")
    handle = hub.fake.handle

    def changing(request: Any) -> Any:
        response = handle(request)
        links = re.sub(r"page=2(?=[^>]*>; rel=.last)", "page=3", response.headers.get("Link", ""))
        return dataclasses.replace(response, headers={**response.headers, "Link": links})

    hub.fake.handle = changing  # type: ignore[method-assign]  # it answers as the fake does

    with pytest.raises(UnexpectedResponseError, match="changed while") as caught:
        hub.provider.list_branches(REPO)

    assert (caught.value.retryable, len(hub.sent)) == (True, 6)


def test_a_short_page_before_the_last_is_an_error(hub: Hub) -> None:
    """The list would have a hole: GitHub says that more follow, and the page is not full."""
    link = '<https://api.github.com/repositories/1/branches?page=2>; rel="next"'
    hub.given_fault(Fault(kind="status", status=200, body=b"[]", headers={"Link": link}))

    with pytest.raises(UnexpectedResponseError) as caught:
        hub.provider.list_branches(REPO)

    assert caught.value.operation == "list_branches"
    assert len(hub.sent) == 1


def test_every_wait_is_told(hub: Hub) -> None:
    """One event a wait, with the attempt that failed and the error."""
    events: list[Event] = []
    hub.given_fault(Fault(kind="status", status=502, times=2))

    with hub.connect(on_event=events.append) as provider:
        provider.get_repo(REPO)

    told = [event for event in events if isinstance(event, RetryEvent)]
    assert [(event.attempt, event.error) for event in told] == [
        (1, "ProviderUnavailableError"),
        (2, "ProviderUnavailableError"),
    ]


def test_a_202_that_never_ends_is_an_error(hub: Hub) -> None:
    """PyGithub would sleep and ask again without end."""
    hub.given_fault(Fault(kind="status", status=202, body=b"{}", times=None))

    with pytest.raises(ProviderUnavailableError) as caught:
        hub.provider.get_repo(REPO)

    assert (caught.value.status, caught.value.attempts, len(hub.sent)) == (202, 4, 4)


def test_looks_are_not_retried(hub: Hub) -> None:
    """The reads of HostState end with the first failure: who looks after one decides how long."""
    hub.given_fault(Fault(kind="status", status=503, times=None))

    with pytest.raises(ProviderUnavailableError):
        hub.provider.head(REPO, "main")

    assert (len(hub.sent), hub.waits) == (1, [])


def test_retrying_can_be_turned_off(hub: Hub) -> None:
    """One attempt is one request."""
    hub.given_fault(Fault(kind="status", status=503, times=None))

    with hub.connect(retry=RetryOptions(max_attempts=1)) as provider, pytest.raises(ProviderUnavailableError):
        provider.get_repo(REPO)

    assert len(hub.sent) == 1


@pytest.mark.pitfall("GH-X-02")
def test_a_filtered_list_is_not_read_without_its_filter(hub: Hub) -> None:
    """A redirected search for pull requests is an error, not everybody's pull requests."""
    hub.given_pull()
    hub.forge.rename_repo(REPO, "acme/gadgets")

    with pytest.raises(RepoMovedError):
        hub.provider.find_pull_requests(REPO, source_branch="feature", target_branch="main")


@pytest.mark.pitfall("GH-LB-06")
def test_a_listing_of_a_renamed_repository_is_an_error(hub: Hub) -> None:
    """PyGithub would go on with pages of thirty and no filter."""
    hub.forge.rename_repo(REPO, "acme/gadgets")

    with pytest.raises(RepoMovedError) as caught:
        hub.provider.list_branches(REPO)

    assert caught.value.moved_to == "acme/gadgets"


@pytest.mark.pitfall("GH-X-03")
def test_a_lost_answer_is_not_followed_by_a_false_already_exists(hub: Hub) -> None:
    """The creation is sent once: its outcome is unknown, and nobody else is suspected."""
    hub.given_fault(Fault(kind="status", status=502, method="POST", when="after"))

    with pytest.raises(ProviderUnavailableError) as caught:
        hub.provider.create_repo("acme/new")

    assert caught.value.outcome is Outcome.UNKNOWN
    assert len(hub.host.request_log.mutations()) == 1


@pytest.mark.pitfall("GH-X-08")
def test_a_listing_that_single_sign_on_cut_short_is_an_error(hub: Hub) -> None:
    """Partial results are not a list."""
    hub.given_fault(
        Fault(kind="status", status=200, headers={"X-GitHub-SSO": "partial-results; organizations=1"}, body=b"[]")
    )

    with pytest.raises(PermissionDeniedError):
        hub.provider.list_branches(REPO)


@pytest.mark.pitfall("GH-GR-02")
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


@pytest.mark.pitfall("GH-LB-01", "GH-LB-03")
@pytest.mark.parametrize("count", [31, 101])
def test_every_branch_is_listed_at_the_call(hub: Hub, count: int) -> None:
    """A list, complete when it is returned, and no iterator that fails later."""
    for number in range(count - 1):
        hub.given_branch(f"b{number}")

    listed = hub.provider.list_branches(REPO)

    assert type(listed) is list
    assert len({branch.name for branch in listed}) == count


@pytest.mark.pitfall("GH-LB-02")
def test_protected_is_what_the_list_says_and_protection_what_the_rules_say(hub: Hub) -> None:
    """The flag is passed on as it is. What a branch demands is read from its rules."""
    hub.given_rule(BranchProtection(required_approvals=2))
    (branch,) = hub.provider.list_branches(REPO)
    body = json.dumps([{"name": "main", "commit": {"sha": branch.sha}, "protected": False}]).encode()
    hub.given_fault(Fault(kind="status", status=200, endpoint="/branches", body=body))

    (listed,) = hub.provider.list_branches(REPO)
    current = hub.provider.protection(REPO, "main")

    assert (branch.protected, listed.protected) == (True, False)
    assert current is not None
    assert current.required_approvals == 2


@pytest.mark.pitfall("GH-LB-03")
def test_a_listings_failure_comes_from_the_call(hub: Hub) -> None:
    """Translated, with the operation's name."""
    with pytest.raises(NotFoundError) as caught:
        hub.provider.list_branches("acme/none")

    assert caught.value.operation == "list_branches"


@pytest.mark.pitfall("GH-LB-04")
def test_an_empty_repository_is_told_as_such(hub: Hub) -> None:
    """Its list is empty, and a branch from its default one is not found, with a hint."""
    hub.forge.create_repo("acme/empty")

    assert hub.provider.list_branches("acme/empty") == []
    with pytest.raises(NotFoundError) as caught:
        hub.provider.create_branch("acme/empty", "develop", source="main")
    assert "no commit yet" in str(caught.value.hint)


@pytest.mark.pitfall("GH-CR-01", "GH-CR-07")
def test_a_taken_name_brings_the_repository(hub: Hub) -> None:
    """The reason stands in the errors alone; what has the name is read."""
    with pytest.raises(AlreadyExistsError) as caught:
        hub.provider.create_repo(REPO)

    assert caught.value.existing == hub.provider.get_repo(REPO)
    assert "name already exists" in caught.value.message


@pytest.mark.pitfall("GH-CR-01")
def test_another_422_is_not_a_taken_name(hub: Hub) -> None:
    """All the errors' words are told."""
    refuse(
        hub, 422, "Repository creation failed.", method="POST", errors=[{"message": "name is reserved"}, "and so on"]
    )

    with pytest.raises(InvalidRequestError, match="name is reserved; and so on"):
        hub.provider.create_repo("acme/new")


@pytest.mark.pitfall("GH-CR-02")
def test_a_plan_without_private_repositories_is_not_a_taken_name(hub: Hub) -> None:
    """And the repository is not made public instead."""
    refuse(
        hub, 422, "Visibility can't be private. Please upgrade your subscription to create a new private repository.",
        method="POST",
    )  # fmt: skip

    with pytest.raises(PermissionDeniedError):
        hub.provider.create_repo("acme/new")

    assert len(hub.host.request_log.mutations()) == 1


@pytest.mark.pitfall("GH-CR-04")
def test_the_default_branch_is_what_the_answer_says(hub: Hub) -> None:
    """It is a setting of the owner, and may be a name without a branch."""
    made = hub.provider.create_repo("acme/new")

    assert made.default_branch == "main"
    with pytest.raises(NotFoundError):
        hub.provider.head("acme/new", made.default_branch)


@pytest.mark.pitfall("GH-CR-06")
def test_an_owner_is_an_organization_or_oneself(hub: Hub) -> None:
    """One's own account, in any spelling, is not asked for as an organization; another's cannot be used."""
    assert hub.provider.create_repo("OctoCat/own").path == "octocat/own"
    with pytest.raises(NotFoundError) as caught:
        hub.provider.create_repo("hubot/other")
    assert "another user's account" in str(caught.value.hint)


@pytest.mark.pitfall("GH-CR-08")
@pytest.mark.parametrize("name", ["my app", "Åström", "a+b", "x" * 101, "a.git", ".."])
def test_a_name_that_github_would_change_is_refused(hub: Hub, name: str) -> None:
    """Before anything is made under another name."""
    with pytest.raises(InvalidRequestError):
        hub.provider.create_repo(f"acme/{name}")

    assert hub.sent == []


@pytest.mark.pitfall("GH-CR-08")
def test_a_repository_under_another_name_is_told(hub: Hub) -> None:
    """Should GitHub change a name all the same: made, and in completed."""
    with hub.provider.sdk() as client:
        _, data = client.requester.requestJsonAndCheck("GET", f"/repos/{REPO}")
    hub.given_fault(Fault(kind="status", status=201, method="POST", body=json.dumps(data).encode()))

    with pytest.raises(UnexpectedResponseError, match="acme/widgets") as caught:
        hub.provider.create_repo("acme/new")

    assert caught.value.outcome is Outcome.PARTIAL


@pytest.mark.pitfall("GH-CB-01")
@pytest.mark.parametrize(("there", "wanted"), [("release", "release/1.0"), ("release/1.0", "release")])
def test_a_name_that_is_anothers_prefix_is_a_conflict(hub: Hub, there: str, wanted: str) -> None:
    """GitHub says no more than that the update failed; the hint says what to look for."""
    hub.given_branch(there)

    with pytest.raises(ConflictError) as caught:
        create(hub, wanted)

    assert "prefix" in str(caught.value.hint)


@pytest.mark.pitfall("GH-CB-02")
def test_an_existing_branch_is_not_moved(hub: Hub) -> None:
    """What has the name is in existing, at its own head."""
    hub.given_branch("develop")
    theirs = hub.given_commit("develop", PutFile(path="x", content="x"))

    with pytest.raises(AlreadyExistsError) as caught:
        create(hub)

    assert caught.value.existing.sha == theirs.sha == hub.forge.head(REPO, "develop")


@pytest.mark.pitfall("GH-CB-03")
def test_a_new_branch_is_not_read_back(tmp_path: Path) -> None:
    """A replica may not know it yet; the answer of the creation says all."""
    with running(tmp_path / "forge", ref_lag=9) as hub:
        hub.given_repo()

        assert create(hub).name == "develop"

    assert hub.calls() == ["GET /git/ref/{ref/}", "POST /git/refs"]


@pytest.mark.pitfall("GH-CB-04")
@pytest.mark.parametrize("name", ["refs/heads/x", "a b", "a..b", "HEAD", "-x", "a/", "0" * 40])
def test_only_bare_names_are_taken(hub: Hub, name: str) -> None:
    """The prefix is this library's to add, once."""
    with pytest.raises(InvalidRequestError):
        create(hub, name)

    assert hub.sent == []


@pytest.mark.pitfall("GH-CB-04", "GH-CB-05")
@pytest.mark.parametrize("name", ["feature/x#1", "100%", "ünïcode", "a?b".replace("?", "="), "%2F"])
def test_a_name_is_encoded_once(hub: Hub, name: str) -> None:
    """In a path and in a body, it is the same branch."""
    made = create(hub, name)

    assert hub.provider.head(REPO, name) == made.sha == hub.forge.head(REPO, name)
    assert commit(hub, name).branch == name


@pytest.mark.pitfall("GH-CB-06")
def test_a_rule_on_names_tells_its_reason(hub: Hub) -> None:
    """Neither a taken name nor a wrong one."""
    hub.forge.update_repo(REPO, settings={"rulesets": [{"pattern": "hot*", "rules": [{"type": "creation"}]}]})

    with pytest.raises(PermissionDeniedError, match="creations being restricted"):
        create(hub, "hotfix")


@pytest.mark.pitfall("GH-PR-02")
def test_nothing_to_merge_is_a_conflict(hub: Hub) -> None:
    """Not one that exists."""
    hub.given_branch("feature")

    with pytest.raises(ConflictError, match="No commits between") as caught:
        open_pull(hub)

    assert type(caught.value) is ConflictError


@pytest.mark.pitfall("GH-PR-03")
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


@pytest.mark.pitfall("GH-PR-04")
@pytest.mark.parametrize(("source", "target"), [("none", "main"), ("feature", "none")])
def test_an_invalid_head_or_base_is_a_missing_branch(feature: Hub, source: str, target: str) -> None:
    """By the field that GitHub names."""
    with pytest.raises(NotFoundError) as caught:
        feature.provider.open_pull_request(REPO, source_branch=source, target_branch=target, title="t")

    assert ("source" if source == "none" else "target") in str(caught.value.hint)


@pytest.mark.pitfall("GH-PR-05")
def test_a_plan_without_drafts_opens_nothing(tmp_path: Path) -> None:
    """No plain pull request in its place."""
    with running(tmp_path / "forge", plan="free") as hub:
        hub.given_repo()
        hub.given_branch("feature")
        hub.given_commit("feature", PutFile(path="f", content="f"))

        with pytest.raises(PermissionDeniedError):
            open_pull(hub, draft=True)

        assert hub.forge.pull_requests(REPO) == []


@pytest.mark.pitfall("GH-PR-06")
@pytest.mark.parametrize("reviewer", ["octocat", "stranger"])
def test_a_refused_reviewer_does_not_lose_the_pull_request(feature: Hub, reviewer: str) -> None:
    """PARTIAL, with the pull request in completed."""
    with pytest.raises(InvalidRequestError) as caught:
        open_pull(feature, reviewers=[reviewer], labels=["bug"])

    assert (caught.value.outcome, caught.value.argument) == (Outcome.PARTIAL, "reviewers")
    assert caught.value.completed[0].value.number == 1


@pytest.mark.pitfall("GH-PR-06")
@pytest.mark.parametrize("what", ["labels", "reviewers"])
def test_what_github_left_out_is_told(feature: Hub, what: str) -> None:
    """An answer without the label or the reviewer is no success."""
    body = b"[]" if what == "labels" else b'{"requested_reviewers": []}'
    endpoint = "/labels" if what == "labels" else "/requested_reviewers"
    feature.given_fault(Fault(kind="status", status=201, endpoint=endpoint, body=body))

    with pytest.raises(UnexpectedResponseError, match="hubot") as caught:
        open_pull(feature, **{what: ["hubot"]})

    assert caught.value.outcome is Outcome.PARTIAL


@pytest.mark.pitfall("GH-PR-07")
def test_a_fine_grained_token_is_told_what_it_lacks(feature: Hub) -> None:
    """The permission that GitHub names; not the credential as such."""
    needs = {"X-Accepted-GitHub-Permissions": "pull_requests=write"}
    refuse(feature, 403, "Resource not accessible by personal access token", method="POST", headers=needs)

    with pytest.raises(PermissionDeniedError) as caught:
        open_pull(feature)

    assert "pull_requests=write" in str(caught.value.hint)


@pytest.mark.pitfall("GH-PR-08")
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
