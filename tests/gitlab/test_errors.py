"""The error-mapping table: each rule by an example, and every exception class of python-gitlab and requests."""

from __future__ import annotations

import inspect
import json
from typing import Any

import gitlab.exceptions
import pytest
import requests
import responses
import urllib3

from gitprovider._remote.response import BodyError, ForeignOriginError, Response, StatusError
from gitprovider.errors import (
    AlreadyExistsError,
    AuthenticationError,
    ConflictError,
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    RateLimitedError,
    RepoMovedError,
    UnexpectedResponseError,
)
from gitprovider.gitlab import GitLabProvider
from gitprovider.gitlab import errors as translate
from gitprovider.gitlab.errors import GraphQLError, error_message, is_retryable_read_error
from tests.support.facts import FACTS
from tests.support.gitlab_world import REPO, World, failed

ANY = "GET /projects/{project}/anything"
Meaning = type[GitProviderError]


def meaning(exc: Exception) -> GitProviderError:
    return translate.translate(exc)


def refusal(status: int, data: Any, headers: dict[str, str] | None = None, endpoint: str = ANY) -> StatusError:
    text = data if isinstance(data, str) else json.dumps(data)
    body = None if isinstance(data, str) else data
    return StatusError(Response(status=status, endpoint=endpoint, headers=headers or {}, data=body, text=text))


ALL = (*translate.FOREIGN, *translate.RULES)


def deciding(endpoint: str, status: int, body: Any) -> int:
    """The number of the rule that decides, in the two tables together."""
    response = refusal(status, body, endpoint=endpoint).response
    message = error_message(response)
    table = translate.rules(response)
    within = next(number for number, rule in enumerate(table) if rule.matches(response, message))
    return within + (0 if table is translate.FOREIGN else len(translate.FOREIGN))


def said(message: Any) -> dict[str, Any]:
    return {"message": message}


# The rule's fact, endpoint, status, body and meaning, for each rule at least once.
EXAMPLES: list[tuple[str, str, int, Any, Meaning, Outcome]] = [
    (
        "gl-moved-write",
        translate.MERGE,
        405,
        said("Non GET methods are not allowed for moved projects"),
        RepoMovedError,
        Outcome.NOT_APPLIED,
    ),
    ("gl-moved-read", ANY, 301, said("moved permanently to …"), RepoMovedError, Outcome.UNKNOWN),
    ("gl-request-timeout", ANY, 408, "<html>", ProviderUnavailableError, Outcome.UNKNOWN),
    (
        "gl-limit-application",
        ANY,
        429,
        said({"error": "This endpoint has been requested too many times."}),
        RateLimitedError,
        Outcome.NOT_APPLIED,
    ),
    ("gl-limit-rack", ANY, 429, "Retry later\n", RateLimitedError, Outcome.NOT_APPLIED),
    (
        "gl-token-revoked",
        ANY,
        401,
        {"error": "invalid_token", "error_description": "Token was revoked."},
        AuthenticationError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-token-revoked",
        translate.MERGE,
        401,
        {"error": "invalid_token", "error_description": "Token is expired."},
        AuthenticationError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-merge-unauthorized",
        translate.MERGE,
        401,
        said("401 Unauthorized"),
        PermissionDeniedError,
        Outcome.NOT_APPLIED,
    ),
    ("gl-unauthorized", ANY, 401, said("401 Unauthorized"), AuthenticationError, Outcome.NOT_APPLIED),
    (
        "gl-unauthorized",
        "POST /api/graphql",
        401,
        {"errors": [{"message": "Invalid token"}]},
        AuthenticationError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-insufficient-scope",
        ANY,
        403,
        {"error": "insufficient_scope", "error_description": "The request requires higher privileges.", "scope": "api"},
        PermissionDeniedError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-push-denied",
        translate.COMMITS,
        403,
        said("403 Forbidden - You are not allowed to push into this branch"),
        PermissionDeniedError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-push-denied",
        translate.COMMITS,
        400,
        said("You are not allowed to push into this branch"),
        PermissionDeniedError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-protected-name",
        translate.BRANCHES,
        400,
        said("You are not allowed to create protected branches on this project."),
        PermissionDeniedError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-protected-name",
        translate.BRANCHES,
        400,
        said("You can only use an existing protected branch ref as the basis of a new protected branch."),
        PermissionDeniedError,
        Outcome.NOT_APPLIED,
    ),
    ("gl-forbidden", ANY, 403, said("403 Forbidden"), PermissionDeniedError, Outcome.NOT_APPLIED),
    (
        "gl-project-pending-deletion",
        translate.PROJECTS,
        400,
        said({"base": ["The project is still being deleted. Please try again later."], "limit_reached": []}),
        AlreadyExistsError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-project-taken",
        translate.PROJECTS,
        400,
        said(
            {
                "project_namespace.name": ["has already been taken"],
                "path": ["has already been taken"],
                "limit_reached": [],
            }
        ),
        AlreadyExistsError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-project-failed",
        translate.PROJECTS,
        400,
        said(
            {
                "base": ["Failed to create repository via gitlab-shell", "Failed to create repository"],
                "limit_reached": [],
            }
        ),
        ProviderUnavailableError,
        Outcome.UNKNOWN,
    ),
    (
        "gl-namespace-invalid",
        translate.PROJECTS,
        400,
        said({"namespace": ["is not valid"]}),
        PermissionDeniedError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-visibility-restricted",
        translate.PROJECTS,
        400,
        said({"visibility_level": ["public has been restricted by your GitLab administrator"], "limit_reached": []}),
        PermissionDeniedError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-project-limit",
        translate.PROJECTS,
        400,
        said({"limit_reached": ["Your project limit is 0 projects! Please contact your administrator"]}),
        PermissionDeniedError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-branch-exists",
        translate.BRANCHES,
        400,
        said("Branch already exists"),
        AlreadyExistsError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-branch-prefix",
        translate.BRANCHES,
        400,
        said("Failed to create branch 'a/b': Branch name conflicts with existing branch hierarchy."),
        ConflictError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-branch-prefix",
        translate.BRANCHES,
        400,
        said("Failed to create branch 'a/b': 9:cannot lock ref 'refs/heads/a/b': 'refs/heads/a' exists; cannot create"),
        ConflictError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-branch-ref",
        translate.BRANCHES,
        400,
        said("Failed to create branch 'x': invalid reference name '1111'"),
        NotFoundError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-branch-ref",
        translate.BRANCHES,
        400,
        said("Invalid reference name: 1111"),
        NotFoundError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-push-rule",
        translate.BRANCHES,
        400,
        said("Branch name does not follow the pattern '(feat|fix)/*'"),
        PermissionDeniedError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-push-rule",
        translate.COMMITS,
        400,
        said("Commit message does not follow the pattern '^feat'"),
        PermissionDeniedError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-commit-no-branch",
        translate.COMMITS,
        400,
        said("You can only create or edit files when you are on a branch"),
        NotFoundError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-commit-moved",
        translate.COMMITS,
        400,
        said("Could not update refs/heads/main. Please refresh and try again."),
        HeadMovedError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-commit-file-changed",
        translate.COMMITS,
        400,
        said("A file with this name already exists"),
        HeadMovedError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-commit-file-changed",
        translate.COMMITS,
        400,
        said("A file with this name doesn't exist"),
        HeadMovedError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-commit-path",
        translate.COMMITS,
        400,
        said("A directory with this name already exists"),
        InvalidRequestError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-mr-exists",
        translate.MERGE_REQUESTS,
        409,
        said(["Another open merge request already exists for this source branch: !7"]),
        AlreadyExistsError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-mr-source-missing",
        translate.MERGE_REQUESTS,
        400,
        said({"source_branch": ["does not exist"]}),
        NotFoundError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-mr-target-missing",
        translate.MERGE_REQUESTS,
        400,
        said({"target_branch": ["does not exist"]}),
        NotFoundError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-merge-sha",
        translate.MERGE,
        409,
        said("SHA does not match HEAD of source branch: 2222"),
        HeadMovedError,
        Outcome.NOT_APPLIED,
    ),
    ("gl-merge-refused", translate.MERGE, 405, said("405 Method Not Allowed"), NotMergeableError, Outcome.NOT_APPLIED),
    ("gl-merge-refused", translate.MERGE, 406, said("Branch cannot be merged"), NotMergeableError, Outcome.NOT_APPLIED),
    ("gl-merge-refused", translate.MERGE, 422, said("Branch cannot be merged"), NotMergeableError, Outcome.NOT_APPLIED),
    (
        "gl-protected-exists",
        translate.PROTECT,
        409,
        said("Protected branch 'main' already exists"),
        AlreadyExistsError,
        Outcome.NOT_APPLIED,
    ),
    (
        "gl-protected-exists",
        translate.PROTECT,
        500,
        said("Protected branch 'main' already exists"),
        AlreadyExistsError,
        Outcome.NOT_APPLIED,
    ),
    ("gl-route-missing", ANY, 404, {"error": "404 Not Found"}, UnexpectedResponseError, Outcome.UNKNOWN),
    ("gl-page-missing", ANY, 404, "<html>", UnexpectedResponseError, Outcome.UNKNOWN),
    ("gl-unauthorized", ANY, 401, "<html>", AuthenticationError, Outcome.UNKNOWN),
    ("gl-malformed-text", ANY, 400, "Bad Request", InvalidRequestError, Outcome.NOT_APPLIED),
    ("gl-ip-block", ANY, 403, "Forbidden\n", PermissionDeniedError, Outcome.NOT_APPLIED),
    ("gl-uri-too-large", ANY, 414, "<html>414</html>", InvalidRequestError, Outcome.NOT_APPLIED),
    ("gl-request-timeout", ANY, 408, said("408 Request Timeout"), ProviderUnavailableError, Outcome.UNKNOWN),
    ("gl-limit-rack", ANY, 429, said("Retry later"), RateLimitedError, Outcome.NOT_APPLIED),
    (
        "gl-storage-lost",
        translate.BRANCHES,
        400,
        said("Failed to create branch 'x': 4:Deadline Exceeded"),
        ProviderUnavailableError,
        Outcome.UNKNOWN,
    ),
    ("gl-storage-invalid", ANY, 400, said("3:bad"), InvalidRequestError, Outcome.NOT_APPLIED),
    ("gl-storage-missing", ANY, 400, said("5:gone"), NotFoundError, Outcome.NOT_APPLIED),
    ("gl-storage-exists", ANY, 400, said("6:there"), AlreadyExistsError, Outcome.NOT_APPLIED),
    ("gl-storage-denied", ANY, 400, said("7:no"), PermissionDeniedError, Outcome.NOT_APPLIED),
    ("gl-storage-state", ANY, 400, said("9:state"), ConflictError, Outcome.NOT_APPLIED),
    ("gl-storage-unauthenticated", ANY, 400, said("16:who"), AuthenticationError, Outcome.NOT_APPLIED),
    (
        "gl-branch-raced",
        translate.BRANCHES,
        400,
        said("9:Could not update refs/heads/dev. Please refresh and try again."),
        ConflictError,
        Outcome.UNKNOWN,
    ),
    (
        "gl-read-only",
        translate.COMMITS,
        400,
        said("The repository is temporarily read-only."),
        ProviderUnavailableError,
        Outcome.NOT_APPLIED,
    ),
    ("gl-locked", translate.COMMITS, 400, said("The path 'x' is locked by Bob"), ConflictError, Outcome.NOT_APPLIED),
    (
        "gl-secret",
        translate.COMMITS,
        400,
        said("PUSH BLOCKED: Secrets detected in code changes"),
        PermissionDeniedError,
        Outcome.NOT_APPLIED,
    ),
    ("gl-quota", ANY, 400, said("It has exceeded its size limit"), PermissionDeniedError, Outcome.NOT_APPLIED),
    ("gl-unsigned", ANY, 400, said("GitLab: Commit must be signed"), PermissionDeniedError, Outcome.NOT_APPLIED),
    ("gl-hook", ANY, 400, said("pre-receive hook declined"), PermissionDeniedError, Outcome.NOT_APPLIED),
    ("gl-hook", translate.COMMITS, 400, said("Tickets first"), PermissionDeniedError, Outcome.NOT_APPLIED),
    ("gl-hook", translate.BRANCHES, 400, said("Tickets first"), PermissionDeniedError, Outcome.NOT_APPLIED),
    (
        "gl-branch-name-invalid",
        translate.BRANCHES,
        400,
        said("Branch name is invalid"),
        InvalidRequestError,
        Outcome.NOT_APPLIED,
    ),
    ("gl-repository-off", ANY, 404, said("404 Repository Not Found"), PermissionDeniedError, Outcome.NOT_APPLIED),
    (
        "gl-namespace-missing",
        "GET /namespaces/{namespace}",
        404,
        said("404 Namespace Not Found"),
        NotFoundError,
        Outcome.NOT_APPLIED,
    ),
    ("gl-project-missing", ANY, 404, said("404 Project Not Found"), NotFoundError, Outcome.NOT_APPLIED),
    ("gl-not-found", ANY, 404, said("404 Not found"), NotFoundError, Outcome.NOT_APPLIED),
    ("gl-conflict", ANY, 409, said("409 Conflict"), ConflictError, Outcome.NOT_APPLIED),
    ("gl-server-error", ANY, 500, said("500 Internal Server Error"), ProviderUnavailableError, Outcome.UNKNOWN),
    ("gl-server-error", ANY, 524, "<html>", ProviderUnavailableError, Outcome.UNKNOWN),
    ("gl-not-implemented", ANY, 501, "", ProviderUnavailableError, Outcome.UNKNOWN),
    ("gl-bad-request", ANY, 400, {"error": "branch is missing"}, InvalidRequestError, Outcome.NOT_APPLIED),
]


@pytest.mark.parametrize(
    ("fact", "endpoint", "status", "body", "kind", "outcome"),
    EXAMPLES,
    ids=[f"{fact}-{number}" for number, (fact, *_) in enumerate(EXAMPLES)],
)
def test_a_refusal_has_its_meaning(
    fact: str, endpoint: str, status: int, body: Any, kind: Meaning, outcome: Outcome
) -> None:
    """The class, the outcome at the effect step, the status; and the rule of that fact decides."""
    error = meaning(refusal(status, body, {"x-request-id": "01HZ"}, endpoint))

    assert type(error) is kind
    assert (error.outcome, error.status, error.request_id) == (outcome, status, "01HZ")
    assert ALL[deciding(endpoint, status, body)].fact == fact


def test_every_rule_has_an_example_and_a_recorded_fact() -> None:
    """A rule that nothing pins down is a guess."""
    rules = set(translate.facts())

    assert rules == {example[0] for example in EXAMPLES}
    assert rules <= FACTS.keys()


def test_a_rule_matches_the_response_that_its_fact_records() -> None:
    """Status and message are those that the host was seen to send."""
    for rule in ALL:
        fact = FACTS[rule.fact]
        data = said(fact["text"]) if "text" in fact else fact["shape"]
        response = refusal(fact["status"], data, endpoint=rule.endpoint).response
        assert rule.matches(response, error_message(response)), rule.fact


def test_no_rule_is_hidden_by_one_above_it() -> None:
    """A rule that no response can reach is dead."""
    reached = {deciding(endpoint, status, body) for _, endpoint, status, body, _, _ in EXAMPLES}

    assert reached == set(range(len(ALL)))


@pytest.mark.pitfall("GL-X-03")
@pytest.mark.parametrize(
    ("data", "line"),
    [
        (said("404 Project Not Found"), "404 Project Not Found"),
        (said(["one", "two"]), "one; two"),
        (
            said({"path": ["has already been taken", "is bad"], "limit_reached": []}),
            "path has already been taken; path is bad",
        ),
        (said({"base": ["Something failed"]}), "Something failed"),
        (said({"error": "too many"}), "too many"),
        (said({"a": {"b": ["c"]}}), "a.b c"),
        (said(["same", "same"]), "same"),
        ({"error": "branch is missing"}, "branch is missing"),
        (
            {"error": "insufficient_scope", "error_description": "More is needed.", "scope": "api"},
            "insufficient_scope: More is needed.",
        ),
        ({"errors": [{"message": "Invalid token"}]}, "Invalid token"),
        (said(None), "the host returned 400 with a page instead of JSON"),
        ({}, "the host returned 400 with a page instead of JSON"),
        ("<html><title>not found</title></html>", "the host returned 400 with a page instead of JSON"),
        ("Retry later\n", "Retry later"),
        ("", "the host returned 400 without a message"),
        (["odd"], '["odd"]'),
        ("x" * 900, "x" * 300),
    ],
)
def test_a_message_of_any_shape_is_one_line(data: Any, line: str) -> None:
    """A string, a list, an object of lists, a page; limit_reached counts only when it says something."""
    response = refusal(400, data).response
    if data in ({}, {"message": None}):
        response = Response(status=400, data=data, text="<html>")

    assert error_message(response) == line


@pytest.mark.pitfall("GL-GR-04")
def test_a_page_s_words_decide_nothing() -> None:
    """The words "already exists" on the page of a proxy are not GitLab's."""
    error = meaning(refusal(400, "<html>Branch already exists</html>", endpoint=translate.BRANCHES))

    assert (type(error), error.outcome) == (UnexpectedResponseError, Outcome.UNKNOWN)


@pytest.mark.parametrize(
    ("kind", "meant", "outcome", "retryable"),
    [
        ("", ProviderUnavailableError, Outcome.UNKNOWN, True),
        ("RATE_LIMITED", RateLimitedError, Outcome.NOT_APPLIED, True),
        ("NOT_FOUND", NotFoundError, Outcome.NOT_APPLIED, False),
        ("FORBIDDEN", PermissionDeniedError, Outcome.NOT_APPLIED, False),
        ("UNDEFINEDFIELD", UnexpectedResponseError, Outcome.UNKNOWN, False),
    ],
)
def test_a_graphql_error_is_decided_by_its_type(kind: str, meant: Meaning, outcome: Outcome, retryable: bool) -> None:
    """Status 200 says nothing; without a type it is the host's own failure."""
    error = meaning(GraphQLError(Response(status=200, data={}), kind, "Query failed"))

    assert type(error) is meant
    assert error.outcome is outcome
    assert error.transient is retryable


def sdk_errors() -> list[type[gitlab.exceptions.GitlabError]]:
    return [
        kind
        for _, kind in inspect.getmembers(gitlab.exceptions, inspect.isclass)
        if issubclass(kind, gitlab.exceptions.GitlabError)
    ]


@pytest.mark.parametrize("kind", sdk_errors())
@pytest.mark.parametrize(
    ("status", "meant"),
    [(404, NotFoundError), (429, RateLimitedError), (500, ProviderUnavailableError), (None, UnexpectedResponseError)],
)
def test_every_class_of_python_gitlab_is_translated_by_its_status(
    kind: type[gitlab.exceptions.GitlabError], status: int | None, meant: Meaning
) -> None:
    """Its class names the manager, not the cause."""
    error = meaning(kind("404 Not found", status, b'{"message": "404 Not found"}'))

    if kind is gitlab.exceptions.RedirectError:
        meant = RepoMovedError
    assert type(error) is meant
    assert error.status == (None if kind is gitlab.exceptions.RedirectError else status)


def requests_errors() -> list[type[requests.RequestException]]:
    return [
        kind
        for _, kind in inspect.getmembers(requests.exceptions, inspect.isclass)
        if issubclass(kind, requests.RequestException)
    ]


_NEVER_SENT = (
    "ConnectTimeout",
    "InvalidHeader",
    "InvalidProxyURL",
    "InvalidSchema",
    "InvalidURL",
    "MissingSchema",
    "URLRequired",
)


@pytest.mark.parametrize("kind", requests_errors())
def test_every_class_of_requests_is_translated(kind: type[requests.RequestException]) -> None:
    """What certainly never left is NOT_APPLIED, everything else is UNKNOWN; the class decides, never the text."""
    exc = kind("x", "y", 0) if issubclass(kind, json.JSONDecodeError) else kind("404 Not found")

    error = meaning(exc)

    assert isinstance(error, ProviderUnavailableError | InvalidRequestError)
    never_sent = any(base.__name__ in _NEVER_SENT for base in kind.__mro__)
    assert error.outcome is (Outcome.NOT_APPLIED if never_sent else Outcome.UNKNOWN)


@pytest.mark.parametrize(
    ("exc", "meant", "outcome"),
    [
        (ForeignOriginError(), UnexpectedResponseError, Outcome.NOT_APPLIED),
        (BodyError("no JSON", Response(status=200)), UnexpectedResponseError, Outcome.UNKNOWN),
        (urllib3.exceptions.ProtocolError("broken"), ProviderUnavailableError, Outcome.UNKNOWN),
        (ConnectionResetError(104, "reset"), ProviderUnavailableError, Outcome.UNKNOWN),
        (KeyError("id"), UnexpectedResponseError, Outcome.UNKNOWN),
        (RecursionError(), UnexpectedResponseError, Outcome.UNKNOWN),
    ],
)
def test_whatever_else_is_raised_is_translated(exc: Exception, meant: Meaning, outcome: Outcome) -> None:
    """Nothing foreign leaves a provider."""
    error = meaning(exc)

    assert type(error) is meant
    assert error.outcome is outcome


def test_rate_limits_are_retryable_unless_python_gitlab_sees_to_them() -> None:
    """With obey_rate_limit it has waited already."""
    limited = meaning(refusal(429, "Retry later"))
    lost = meaning(refusal(500, ""))
    lost.outcome = Outcome.NOT_APPLIED

    assert is_retryable_read_error(limited)
    assert not is_retryable_read_error(limited, obey_rate_limit=True)
    assert is_retryable_read_error(lost, obey_rate_limit=True)
    assert not is_retryable_read_error(meaning(refusal(404, "")))
    assert not is_retryable_read_error(KeyError("x"))


def test_a_host_s_text_is_redacted_and_shortened(rsps: responses.RequestsMock) -> None:
    """GitLab echoes import URLs with their passwords."""
    from gitprovider.gitlab import GitLabProvider

    rsps.get(
        "https://gitlab.com/api/v4/projects/acme%2Fwidgets",
        status=400,
        json=said("bad import https://user:hunter2@example.org/x.git " + "y" * 900),
    )

    with pytest.raises(InvalidRequestError) as caught:
        GitLabProvider(private_token="glpat-0123456789abcdefghij").get_repo("acme/widgets")

    assert "hunter2" not in repr(vars(caught.value)) + repr(caught.value.__cause__)
    assert len(caught.value.message) <= 500


@pytest.mark.pitfall("GL-X-10")
def test_three_kinds_of_cannot_are_told_apart(world: World, provider: GitLabProvider) -> None:
    """The token's scope, the user's role, and no membership at all need different cures."""
    world.fake.scopes = {"read_api"}
    scope = failed(PermissionDeniedError, lambda: provider.create_branch(REPO, "x", source=world.head))
    world.fake.scopes, world.fake.role = {"api"}, 20
    role = failed(PermissionDeniedError, lambda: provider.create_branch(REPO, "x", source=world.head))
    world.fake.hidden.add(REPO)
    invisible = failed(NotFoundError, lambda: provider.create_branch(REPO, "x", source=world.head))

    hints = [error.hint or "" for error in (scope, role, invisible)]
    assert ["scope" in hints[0], "role" in hints[1], "may not see" in hints[2]] == [True] * 3
    assert "higher privileges" in scope.message
