"""Responses that no rule lists, by kind: each rule is tried with members that are made up here."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from gitprovider import (
    AuthenticationError,
    ConflictError,
    GitProviderError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    PutFile,
    RepoMovedError,
    UnexpectedResponseError,
    Verdict,
    ensure_branch,
    ensure_repo,
    optional,
    resolve,
)
from gitprovider.fakes.faults import Fault
from gitprovider.fakes.github.server import App
from gitprovider.github import AppInstallation
from tests.support.github_hub import ABSENT, REPO, Hub, running

DOCS = "https://docs.github.com/rest"
FILES = [PutFile(path="a", content="a"), PutFile(path="b", content="b"), PutFile(path="c", content="c")]


def own(message: str, **more: Any) -> bytes:
    """A body that GitHub's application writes."""
    return json.dumps({"message": message, "documentation_url": DOCS, **more}).encode()


FOREIGN = {
    "page": b"<!DOCTYPE html><title>404</title>",
    "empty": b"",
    "text": b"not found",
    "gateway": b'{"message": "no Route matched with those values"}',
    "other-gateway": b'{"error": "Not Found", "code": 404}',
    "list": b'["Not Found"]',
    "null": b"null",
}

CALLS: dict[str, Callable[[Any], object]] = {
    "create_repo": lambda provider: provider.create_repo("acme/new"),
    "create_branch": lambda provider: provider.create_branch(REPO, "new", source="main"),
    "protect_branch": lambda provider: provider.protect_branch(REPO, "main"),
    "commit_files": lambda provider: provider.commit_files(REPO, "main", FILES, message="m"),
    "open_pull_request": lambda provider: provider.open_pull_request(
        REPO, source_branch="other", target_branch="main", title="t"
    ),
    "merge_pull_request": lambda provider: provider.merge_pull_request(REPO, 1),
}
EFFECTS = {
    "create_repo": ("POST", "/repos$"),
    "create_branch": ("POST", "git/refs$"),
    "protect_branch": ("PUT", "protection$"),
    "commit_files": ("PATCH", "git/refs"),
    "open_pull_request": ("POST", "pulls$"),
    "merge_pull_request": ("PUT", "merge$"),
}


@pytest.fixture(scope="module")
def key() -> str:
    """An App's private key."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()


@pytest.fixture
def app_hub(tmp_path: Path) -> Iterator[Hub]:
    """A host that an App is installed on."""
    with running(tmp_path / "app-forge", app=App(installations={101: "acme"})) as made:
        made.given_repo()
        yield made


@pytest.fixture
def given(hub: Hub) -> Hub:
    """A repository with a pull request, and a branch to open another from."""
    hub.given_pull()
    hub.given_branch("other")
    hub.given_commit("other", PutFile(path="other", content="other"))
    return hub


# lost-not-refused and absence-needs-proof


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("body", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("status", [400, 404, 410, 422])
@pytest.mark.parametrize("operation", ["create_branch", "merge_pull_request", "commit_files"])
def test_a_4xx_that_the_application_did_not_write_is_no_verdict(
    given: Hub, operation: str, status: int, body: bytes, when: Any
) -> None:
    """A page of a gateway would be taken for a refusal, and the caller told that nothing changed."""
    if status in (400, 422) and b'"message"' in body:
        pytest.skip("at other statuses than 404 a message is taken for the application's")
    if status == 422 and operation == "merge_pull_request":
        pytest.skip("a refused merge is read again, which finds the merge")
    method, endpoint = EFFECTS[operation]
    given.given_fault(Fault(kind="status", status=status, method=method, endpoint=endpoint, body=body, when=when))

    provider = given.connect(settle=0.0)
    with pytest.raises(GitProviderError) as caught:
        CALLS[operation](provider)

    assert caught.value.outcome is Outcome.UNKNOWN
    assert type(caught.value) is UnexpectedResponseError
    assert len([e for e in given.sent if (e.method, e.endpoint) == (method, given.sent[-1].endpoint)]) <= 1
    found = resolve(provider, caught.value)
    assert found.verdict is (Verdict.APPLIED if when == "after" else Verdict.NOT_APPLIED)


ELSEWHERE = [
    {"Location": "https://sso.example/login?return_to=x"},
    {"Location": "http://api.github.com/repos/acme/widgets"},
    {"Location": "/login"},
    {"Location": ""},
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("headers", ELSEWHERE)
@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_a_redirect_that_the_application_did_not_write_is_no_verdict(
    hub: Hub, status: int, headers: dict[str, str], when: Any
) -> None:
    """A portal's redirect would be taken for GitHub's, and the caller told that nothing changed."""
    hub.given_fault(
        Fault(kind="status", status=status, method="POST", endpoint="git/refs$", headers=headers, body=b"", when=when)
    )
    provider = hub.connect(settle=0.0)

    with pytest.raises((RepoMovedError, UnexpectedResponseError)) as caught:
        provider.create_branch(REPO, "new", source="main")

    assert caught.value.outcome is Outcome.UNKNOWN
    assert isinstance(caught.value, RepoMovedError) is (status not in (300, 304))
    assert resolve(provider, caught.value).verdict is (Verdict.APPLIED if when == "after" else Verdict.NOT_APPLIED)


def test_a_refusal_with_an_error_alone_is_github_s_if_github_sent_it(hub: Hub) -> None:
    """A lack of rights would be told as a wrong address."""
    body = b'{"error": "Must have admin rights to Repository."}'
    media = {"X-GitHub-Media-Type": "github.v3; format=json"}
    hub.given_fault(Fault(kind="status", status=403, method="POST", headers=media, body=body))
    with pytest.raises(PermissionDeniedError) as caught:
        CALLS["create_branch"](hub.provider)
    assert caught.value.outcome is Outcome.NOT_APPLIED


@pytest.mark.parametrize("body", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("status", [404, 410])
def test_no_foreign_404_proves_that_a_repository_is_absent(hub: Hub, status: int, body: bytes) -> None:
    """optional() would be None, and ensure_repo would create a second repository."""
    hub.given_fault(Fault(kind="status", status=status, body=body, times=None))

    with pytest.raises(UnexpectedResponseError) as caught:
        optional(hub.provider.get_repo, REPO)
    with pytest.raises(UnexpectedResponseError):
        ensure_repo(hub.provider, REPO)

    assert "base_url" in str(caught.value.hint)
    assert hub.host.request_log.mutations() == []


@pytest.mark.parametrize(
    ("operation", "method", "endpoint"),
    [
        ("create_branch", "POST", "git/refs$"),
        ("commit_files", "POST", "git/trees$"),
        ("commit_files", "POST", "git/commits$"),
        ("commit_files", "PATCH", "git/refs"),
        ("merge_pull_request", "PUT", "merge$"),
    ],
)
def test_a_404_to_a_write_after_a_read_is_a_lack_of_permission(
    given: Hub, operation: str, method: str, endpoint: str
) -> None:
    """The caller would look for a missing repository, when the token lacks a scope."""
    headers = {"X-Accepted-OAuth-Scopes": "repo, workflow", "X-OAuth-Scopes": "read:user"}
    given.given_fault(
        Fault(kind="status", status=404, method=method, endpoint=endpoint, headers=headers, body=own("Not Found"))
    )

    with pytest.raises(PermissionDeniedError) as caught:
        CALLS[operation](given.provider)

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert "workflow" in str(caught.value.hint)
    assert "read:user" in str(caught.value.hint)


UNREAD: dict[str, Callable[[Hub], object]] = {
    "create_branch": lambda hub: hub.provider.create_branch(REPO, "new", source=hub.forge.head(REPO, "main")),
    "open_pull_request": lambda hub: CALLS["open_pull_request"](hub.provider),
    "merge_pull_request": lambda hub: hub.provider.merge_pull_request(
        REPO, 1, expected_head=hub.forge.head(REPO, "feature")
    ),
}


@pytest.mark.parametrize("operation", UNREAD)
def test_a_404_to_a_write_without_a_read_is_decided_by_a_read(given: Hub, operation: str) -> None:
    """A read-only token would be told that the repository is missing, and a missing one that the token is too weak."""
    method, endpoint = EFFECTS[operation]
    given.given_fault(
        Fault(kind="status", status=404, method=method, endpoint=endpoint, body=own("Not Found"), times=2)
    )
    with pytest.raises(PermissionDeniedError) as caught:
        UNREAD[operation](given)
    assert (caught.value.outcome, len(given.host.request_log.mutations())) == (Outcome.NOT_APPLIED, 1)

    given.given_fault(Fault(kind="status", status=404, method="GET", body=own("Not Found")))
    with pytest.raises(NotFoundError):
        UNREAD[operation](given)


@pytest.mark.parametrize("body", [own("Not Found"), *FOREIGN.values()])
def test_a_deletion_that_is_not_found_is_done_only_if_a_read_says_so(given: Hub, body: bytes) -> None:
    """The caller would be told that a branch is gone which is still there."""
    given.given_fault(Fault(kind="status", status=404, method="DELETE", body=body))

    with pytest.raises((PermissionDeniedError, UnexpectedResponseError)) as caught:
        given.provider.merge_pull_request(REPO, 1, delete_source_branch=True)

    assert caught.value.outcome is Outcome.PARTIAL
    assert "feature" in dict(given.forge.branches(REPO))


def test_a_bare_422_to_a_deletion_is_decided_by_a_read(given: Hub) -> None:
    """A branch that somebody deleted meanwhile would be an error, or one that is there a success."""
    given.given_fault(Fault(kind="status", status=422, method="DELETE", body=own("Validation Failed"), when="after"))
    given.provider.merge_pull_request(REPO, 1, delete_source_branch=True)
    assert "feature" not in dict(given.forge.branches(REPO))


def test_a_bare_422_to_a_deletion_of_a_branch_that_stays_is_an_error(given: Hub) -> None:
    """The deletion would be called done, though the branch is there."""
    given.given_fault(Fault(kind="status", status=422, method="DELETE", body=own("Validation Failed")))
    with pytest.raises(GitProviderError) as caught:
        given.provider.merge_pull_request(REPO, 1, delete_source_branch=True)
    assert caught.value.outcome is Outcome.PARTIAL
    assert caught.value.completed[-1].name == "merge"


@pytest.mark.parametrize("body", FOREIGN.values(), ids=FOREIGN)
def test_a_comparison_that_is_not_found_does_not_say_that_a_commit_is_absent(given: Hub, body: bytes) -> None:
    """A commit that is in the branch would be told to be missing from it."""
    sha = given.forge.head(REPO, "main")
    given.given_commit("main", PutFile(path="later", content="later"))
    given.given_fault(Fault(kind="status", status=404, endpoint="compare", body=body))

    with pytest.raises(UnexpectedResponseError):
        given.provider.contains(REPO, sha, "main")


def test_a_lost_comparison_of_a_commit_that_exists_is_an_error_and_an_unknown_commit_is_not_there(given: Hub) -> None:
    """The commit itself decides."""
    sha = given.forge.head(REPO, "main")
    given.given_commit("main", PutFile(path="later", content="later"))
    given.given_fault(Fault(kind="status", status=404, endpoint="compare", body=own("Not Found")))

    with pytest.raises(UnexpectedResponseError):
        given.provider.contains(REPO, sha, "main")
    assert given.provider.contains(REPO, ABSENT, "main") is False
    assert given.provider.contains(REPO, given.forge.head(REPO, "main"), "main") is True


def test_a_branch_that_is_not_visible_yet_gets_no_commit(hub: Hub) -> None:
    """One of the files would be put on main alone."""
    before = hub.state()
    hub.given_fault(Fault(kind="status", status=404, endpoint="/branches/", body=own("Branch not found")))

    with pytest.raises(ConflictError) as caught:
        hub.provider.commit_files(REPO, "main", FILES, message="m")

    assert caught.value.retryable
    assert hub.state() == before


@pytest.mark.parametrize("status", [404, 410])
def test_an_app_that_is_gone_is_never_about_the_repository(hub: Hub, key: str, status: int) -> None:
    """The repository would be told to be missing, and a creation that was made NOT_APPLIED."""
    hub.given_fault(
        Fault(kind="status", status=status, endpoint="access_tokens", body=own("Integration not found"), times=None)
    )
    with (
        hub.connect(AppInstallation(1, key, installation_id=5)) as provider,
        pytest.raises(AuthenticationError, match="installation 5"),
    ):
        provider.get_repo(REPO)


def test_a_repository_that_an_app_created_is_read_with_a_newer_token(app_hub: Hub, key: str) -> None:
    """For up to 55 minutes a token from before does not cover it."""
    with app_hub.connect(AppInstallation(1, key, installation_id=101)) as provider:
        provider.get_repo(REPO)
        app_hub.clock += 60
        provider.create_repo("acme/new")
        app_hub.given_fault(Fault(kind="status", status=404, method="GET", endpoint="/repos/", body=own("Not Found")))
        assert provider.get_repo("acme/new").path == "acme/new"

        app_hub.given_fault(
            Fault(kind="status", status=404, method="GET", endpoint="/repos/", body=own("Not Found"), times=None)
        )
        with pytest.raises(NotFoundError, match="Not Found") as caught:
            provider.get_repo("acme/new")

    assert "installation may not cover it" in str(caught.value.hint)
    assert [call for call in app_hub.calls() if "access_tokens" in call] == [
        "POST /app/installations/{number}/access_tokens"
    ] * 2


# answer-against-request


@pytest.mark.parametrize(
    "body",
    [
        {"ref": "refs/heads/other-name", "object": {"sha": "{sha}", "type": "commit"}},
        {"ref": "refs/heads/new", "object": {"sha": ABSENT, "type": "commit"}},
        {"ref": "refs/tags/new", "object": {"sha": "{sha}", "type": "commit"}},
    ],
)
def test_a_branch_that_was_made_otherwise_is_no_success(hub: Hub, body: Any) -> None:
    """A caller would go on with a branch that does not exist."""
    text = json.dumps(body).replace("{sha}", hub.forge.head(REPO, "main"))
    hub.given_fault(
        Fault(kind="status", status=201, method="POST", endpoint="git/refs", body=text.encode(), when="after")
    )

    with pytest.raises(UnexpectedResponseError) as caught:
        ensure_branch(hub.provider, REPO, "new", source="main")

    assert caught.value.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    "change", [{"draft": False}, {"title": "x"}, {"head": "main"}, {"base": "other"}, {"body": "y"}]
)
def test_a_pull_request_that_was_opened_otherwise_is_partial(given: Hub, change: dict[str, Any]) -> None:
    """A draft would be open for review, or a pull request lead into another branch."""
    recorded: dict[str, Any] = {}
    handle = given.fake.handle

    def altered(request: Any) -> Any:
        response = handle(request)
        if request.method == "POST" and request.path.endswith("/pulls") and response.status == 201:
            body = json.loads(response.body)
            for name, value in change.items():
                body[name] = {**body[name], "ref": value} if name in ("head", "base") else value
            recorded.update(body)
            return type(response)(status=201, headers=response.headers, body=json.dumps(body).encode())
        return response

    given.fake.handle = altered  # type: ignore[method-assign]  # the host answers with something else

    with pytest.raises(UnexpectedResponseError) as caught:
        given.provider.open_pull_request(
            REPO, source_branch="other", target_branch="main", title="t", description="d", draft=True
        )

    assert recorded
    assert caught.value.outcome is Outcome.PARTIAL
    assert caught.value.completed[0].name == "open pull request"


# who-can-mend-it

SECRETS = [
    "Secret detected in content",
    "Repository rule violations found: Secret detected in content",
    "Push protection",
]


@pytest.mark.parametrize(
    ("status", "message", "endpoint"),
    list(itertools.product([403, 409, 422], SECRETS, ["git/blobs", "git/trees", "git/commits", "git/refs"])),
)
def test_what_a_scanner_refuses_is_no_wrong_argument(hub: Hub, status: int, message: str, endpoint: str) -> None:
    """The caller would be sent to another branch, where the same refusal waits."""
    binary = PutFile(path="bin", content=b"\0\xff")
    method = "PATCH" if endpoint == "git/refs" else "POST"
    hub.given_fault(Fault(kind="status", status=status, method=method, endpoint=endpoint, body=own(message)))

    with pytest.raises(PermissionDeniedError) as caught:
        hub.provider.commit_files(REPO, "main", [binary], message="m")

    assert "bypass" in str(caught.value.hint)
    assert "another" not in str(caught.value.hint)


WORDS = [
    "JIRA key missing in the commit message",
    "custom hook says no",
    "[POLICY] commits by bots need a ticket",
    "Kein Ticket im Text",
    "Author email domain is not one of ours",
]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("operation", ["create_branch", "commit_files"])
def test_what_a_hook_says_in_its_own_words_is_no_wrong_argument(hub: Hub, operation: str, words: str) -> None:
    """The caller would look for a mistake in arguments that are right."""
    method, endpoint = EFFECTS[operation]
    hub.given_fault(Fault(kind="status", status=422, method=method, endpoint=endpoint, body=own(words)))

    with pytest.raises(PermissionDeniedError, match=re.escape(words)) as caught:
        CALLS[operation](hub.provider)

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert "own words" in str(caught.value.hint)


DENIALS = [
    (402, "Payment required", ""),
    (403, "The `acme` enterprise has an IP allow list enabled, and 10.0.0.1 is not permitted", "address"),
    (403, "Resource protected by organization SAML enforcement. You must grant access.", "single sign-on"),
    (403, "Repository was archived so is read-only.", "unarchive"),
    (403, "Sorry. Your account was suspended.", ""),
    (422, "Your account is locked due to a billing issue", "own words"),
    (451, "Repository unavailable due to DMCA takedown.", ""),
    (422, "Repository rule violations found\n\nCommits must have verified signatures.\n", ""),
    (409, "Repository rule violations found\n\nCommits must have verified signatures.\n", ""),
    (
        422,
        "refusing to allow an OAuth App to update workflow `.github/workflows/x.yml` without `workflow` scope",
        "workflow",
    ),
    (403, "refusing to allow a GitHub App to update workflow `a` without `workflows` permission", "workflow"),
    (422, "Push cannot contain secrets", "bypass"),
]


@pytest.mark.parametrize(("status", "words", "hint"), DENIALS)
@pytest.mark.parametrize("endpoint", ["git/trees$", "git/commits$", "git/refs"])
def test_what_rights_plans_and_rules_refuse_is_denied_at_every_step(
    hub: Hub, endpoint: str, status: int, words: str, hint: str
) -> None:
    """The caller would be told of a wrong argument, or to try again."""
    method = "PATCH" if endpoint == "git/refs" else "POST"
    hub.given_fault(Fault(kind="status", status=status, method=method, endpoint=endpoint, body=own(words)))

    with pytest.raises(PermissionDeniedError) as caught:
        CALLS["commit_files"](hub.provider)

    assert (caught.value.outcome, caught.value.retryable) == (Outcome.NOT_APPLIED, False)
    assert hint in str(caught.value.hint)


def test_a_commit_that_is_not_visible_yet_may_be_tried_again(hub: Hub) -> None:
    """The commit was made by this call: its absence is a lag of the host's."""
    hub.given_fault(Fault(kind="status", status=422, method="PATCH", body=own("Object does not exist")))

    with pytest.raises(ProviderUnavailableError) as caught:
        CALLS["commit_files"](hub.provider)

    assert caught.value.retryable


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ([{"resource": "PullRequest", "message": "The topic branch has no history in common with main"}],
         ConflictError),
        ([{"resource": "PullRequest", "field": "user", "code": "custom", "message": "must be a collaborator"}],
         PermissionDeniedError),
        ([{"message": "Opening pull requests is not allowed by a policy of the owner"}], PermissionDeniedError),
        ([{"resource": "PullRequest", "field": "title", "code": "too_long"}], InvalidRequestError),
    ],
)  # fmt: skip
def test_a_refused_pull_request_names_who_can_mend_it(given: Hub, errors: Any, kind: type[Exception]) -> None:
    """An argument would be blamed for what the history, a right or a policy forbids."""
    given.given_fault(
        Fault(kind="status", status=422, method="POST", endpoint="pulls$", body=own("Validation Failed", errors=errors))
    )

    with pytest.raises(GitProviderError) as caught:
        CALLS["open_pull_request"](given.provider)

    assert type(caught.value) is kind


def test_a_renamed_branch_is_not_a_moved_repository(hub: Hub) -> None:
    """A caller who follows moved_to would loop for ever."""
    location = {"Location": f"{hub.url}/repositories/1/branches/trunk"}
    hub.given_fault(Fault(kind="redirect", status=301, endpoint="/branches/", headers=location, times=None))

    with pytest.raises(NotFoundError) as caught:
        hub.provider.commit_files(REPO, "main", FILES, message="m")

    assert not isinstance(caught.value, RepoMovedError)
    assert "trunk" in str(caught.value.hint)
    assert caught.value.outcome is Outcome.NOT_APPLIED


# passes-by-itself


def test_a_new_token_that_is_not_known_yet_is_waited_out(app_hub: Hub, key: str) -> None:
    """Five calls would mint five tokens, each as new as the one before."""
    with app_hub.connect(AppInstallation(1, key, installation_id=101)) as provider:
        app_hub.given_fault(Fault(kind="status", status=401, endpoint="/repos/", body=own("Bad credentials"), times=2))
        assert provider.get_repo(REPO).path == REPO

        app_hub.given_fault(
            Fault(kind="status", status=401, method="POST", endpoint="/repos/", body=own("Bad credentials"))
        )
        with pytest.raises(AuthenticationError) as caught:
            provider.create_branch(REPO, "new", source=app_hub.forge.head(REPO, "main"))

    assert caught.value.retryable
    assert len([call for call in app_hub.calls() if "access_tokens" in call]) == 1


def test_a_merge_that_runs_already_is_waited_for(given: Hub) -> None:
    """The caller would be told that it failed, and it is merged a moment later."""
    given.given_fault(
        Fault(
            kind="status",
            status=405,
            method="PUT",
            endpoint="merge$",
            body=own("Merge already in progress"),
            when="after",
        )
    )

    result = given.provider.merge_pull_request(REPO, 1, timeout=10)

    assert result.already_merged
    assert len(given.host.request_log.mutations()) == 1


def test_a_merge_that_runs_for_longer_is_pending(given: Hub) -> None:
    """It would be told as refused for good."""
    given.given_fault(
        Fault(kind="status", status=405, method="PUT", endpoint="merge$", body=own("Merge already in progress"))
    )

    with pytest.raises(NotMergeableError) as caught:
        given.provider.merge_pull_request(REPO, 1, timeout=3)

    assert (caught.value.reason, caught.value.transient) == (NotMergeableReason.PENDING, True)
    assert sum(given.waits) == 3


# left-behind


def test_a_source_branch_that_others_target_stays(given: Hub) -> None:
    """The host would close the stacked pull request with the branch."""
    given.given_branch("stacked")
    given.given_commit("stacked", PutFile(path="s", content="s"))
    given.forge.open_pull_request(REPO, source_branch="stacked", target_branch="feature", title="stacked")

    with pytest.raises(ConflictError, match="2") as caught:
        given.provider.merge_pull_request(REPO, 1, delete_source_branch=True)

    assert caught.value.outcome is Outcome.PARTIAL
    assert "feature" in dict(given.forge.branches(REPO))
