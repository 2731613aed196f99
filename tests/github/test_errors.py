"""The table of error meanings: held to the recorded facts, and complete for what the SDK and requests can raise."""

from __future__ import annotations

import inspect
import json
import pkgutil
import re
from importlib import import_module
from typing import Any

import github
import pytest
import requests
import urllib3

from gitprovider import (
    AuthenticationError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    ProviderUnavailableError,
    RateLimitedError,
    RepoMovedError,
    UnexpectedResponseError,
    errors,
    optional,
)
from gitprovider._remote.errors import ErrorRule
from gitprovider._remote.response import BodyError, Response, StatusError
from gitprovider.errors import NotMergeableReason, Outcome
from gitprovider.fakes.faults import Fault
from gitprovider.github import errors as translate
from gitprovider.redact import printable
from tests.support import facts
from tests.support.github_hub import REPO, Hub, create, refuse

FACTS = {name: fact for name, fact in facts.FACTS.items() if fact["host"] == "github"}
MERGE, REF, PULLS = translate.MERGE, translate.CREATE_REF, translate.PULLS
USED_UP = {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "1000000000"}
LIMITS = ("X-RateLimit-Remaining", "X-RateLimit-Limit")
DENIED, EXISTS, MISSING = errors.PermissionDeniedError, errors.AlreadyExistsError, errors.NotFoundError


def _refused(status: int, body: Any = None, endpoint: str = "GET /any", **headers: str) -> errors.GitProviderError:
    if isinstance(body, dict) and status in (404, 410) and "Route" not in str(body):
        body = {"documentation_url": "https://docs.github.com/rest"} | body  # as GitHub writes it
    text = body if isinstance(body, str) else json.dumps(body)
    data = None if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = Response(status=status, endpoint=endpoint, headers=named, data=data, text=text)
    return translate.translate(StatusError(response))


# The facts


@pytest.mark.parametrize("fact", sorted(set(translate.facts())))
def test_each_row_cites_a_recorded_fact(fact: str) -> None:
    """A meaning rests on an answer that somebody saw, with its source."""
    assert FACTS[fact]["source"].startswith("https://")


@pytest.mark.parametrize("row", translate.RULES, ids=lambda row: row.fact)
def test_each_row_fits_the_fact_that_it_cites(row: ErrorRule) -> None:
    """Status and text of the recorded answer are those that the row asks for."""
    fact = FACTS[row.fact]
    body = {"message": fact.get("text"), "errors": fact.get("errors")}

    said = translate.error_message(Response(status=fact["status"], data=body))

    assert fact["status"] in row.status
    if "{" not in said:  # otherwise a part of the text is the request's
        assert re.search(row.text, said, re.IGNORECASE)


# The meanings


@pytest.mark.parametrize(
    ("status", "message", "endpoint", "kind"),
    [
        (401, "Bad credentials", "GET /any", errors.AuthenticationError),
        (401, "Requires authentication", "GET /any", errors.AuthenticationError),
        (401, "A JSON web token could not be decoded", "GET /any", errors.AuthenticationError),
        (403, "Resource not accessible by integration", "GET /any", DENIED),
        (403, "Upgrade to GitHub Pro or make this repository public to enable this feature.", "GET /any", DENIED),
        (403, "Repository was archived so is read-only.", "POST /any", DENIED),
        (403, "Repository access blocked", "GET /any", DENIED),
        (403, "anything else", "GET /any", DENIED),
        (404, "Not Found", "GET /any", MISSING),
        (404, "Branch not found", "GET /any", MISSING),
        (404, "This repository is empty.", "GET /any", MISSING),
        (404, "Not Found", translate.ORG_REPOS, MISSING),
        (404, "Not Found", translate.PROTECT, DENIED),
        (404, "Branch not found", translate.PROTECT, MISSING),
        (409, "Git Repository is empty.", REF, MISSING),
        (409, "Git Repository is empty.", translate.GET_REF, MISSING),
        (409, "Git Repository is empty.", translate.TREES, errors.ConflictError),
        (409, "Repository rule violations found\n\nx", translate.CONTENTS, DENIED),
        (409, "a.txt does not match 1234", translate.CONTENTS, errors.HeadMovedError),
        (409, "anything else", "PUT /any", errors.ConflictError),
        (422, "Reference already exists", REF, EXISTS),
        (422, "Reference already exists", "POST /any", errors.InvalidRequestError),
        (422, "Object does not exist", REF, MISSING),
        (422, "Reference update failed", REF, errors.ConflictError),
        (422, "Repository rule violations found\n\nCannot create ref", REF, DENIED),
        (422, "Update is not a fast forward", translate.MOVE_REF, errors.HeadMovedError),
        (422, "Changes must be made through a pull request.", translate.MOVE_REF, DENIED),
        (422, 'Required status check "ci" is expected.', translate.MOVE_REF, DENIED),
        (422, "Reference does not exist", translate.MOVE_REF, MISSING),
        (422, "Reference update failed", translate.MOVE_REF, errors.ConflictError),
        (422, "GitRPC::BadObjectState", translate.TREES, errors.InvalidRequestError),
        (422, "Tree SHA does not exist", translate.COMMITS, errors.ProviderUnavailableError),
        (422, "Visibility can't be private. Please upgrade your subscription", translate.ORG_REPOS, DENIED),
        (422, "Draft pull requests are not supported in this repository.", PULLS, DENIED),
        (422, "Review cannot be requested from pull request author.", translate.REVIEWERS, errors.InvalidRequestError),
        (422, "No subschema in \"anyOf\" matched.", translate.PROTECT, errors.UnexpectedResponseError),
        (422, "was submitted too quickly", PULLS, errors.RateLimitedError),
        (422, "anything else", PULLS, errors.InvalidRequestError),
        (400, "Problems parsing JSON", "POST /any", errors.InvalidRequestError),
        (410, "gone", "GET /any", MISSING),
        (418, "anything", "GET /any", errors.InvalidRequestError),
        (451, "Repository unavailable due to DMCA takedown.", "GET /any", DENIED),
    ],
)  # fmt: skip
def test_a_refusal_means_what_its_words_say_there(
    status: int, message: str, endpoint: str, kind: type[errors.GitProviderError]
) -> None:
    """By endpoint, status and text; the host's words are kept, and nothing was applied."""
    error = _refused(status, {"message": message}, endpoint, x_github_request_id="ABCD:1")

    assert type(error) is kind
    assert printable(error.message) == printable(message)
    assert (error.status, error.request_id, error.outcome) == (status, "ABCD:1", Outcome.NOT_APPLIED)


@pytest.mark.parametrize(
    ("errors_", "endpoint", "kind"),
    [
        ([{"resource": "Repository", "code": "custom", "field": "name", "message": "name already exists on this"}],
         translate.USER_REPOS, EXISTS),
        ([{"message": "Could not clone: Name already exists on this account"}], translate.ORG_REPOS, EXISTS),
        (["name is too long (maximum is 100 characters)"], translate.ORG_REPOS, errors.InvalidRequestError),
        ([{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for acme:x."}],
         PULLS, EXISTS),
        ([{"resource": "PullRequest", "code": "custom", "message": "No commits between main and x"}],
         PULLS, errors.ConflictError),
        ([{"resource": "PullRequest", "field": "head", "code": "invalid"}], PULLS, MISSING),
        ([{"resource": "PullRequest", "field": "base", "code": "invalid"}], PULLS, MISSING),
        ([{"resource": "PullRequest", "field": "head_sha", "code": "missing_field"},
          {"resource": "PullRequest", "code": "custom", "message": "No commits between main and x"}],
         PULLS, errors.ConflictError),
        ([None, 7, {"resource": "Issue", "field": "title", "code": "missing"}], PULLS, errors.InvalidRequestError),
    ],
)  # fmt: skip
def test_the_reason_may_stand_in_the_errors_alone(
    errors_: list[Any], endpoint: str, kind: type[errors.GitProviderError]
) -> None:
    """The message above them says no more than that validation failed; both are told."""
    error = _refused(422, {"message": "Validation Failed", "errors": errors_}, endpoint)

    assert type(error) is kind
    assert error.message.startswith("Validation Failed; ")


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (409, "Head branch is out of date. Review and try the merge again.", "behind"),
        (405, "Head branch is out of date. Review and try the merge again.", "behind"),
        (405, "The head branch is not up to date with the base branch.", "behind"),
        (405, "Base branch was modified. Review and try the merge again.", "pending"),
        (405, "Pull Request is still a draft", "draft"),
        (405, "Squash merges are not allowed on this repository.", "method"),
        (405, "Merge commits are not allowed on this repository.", "method"),
        (405, "Rebase merges are not allowed on this repository.", "method"),
        (405, "This branch can't be rebased", "method"),
        (405, "This branch must not contain merge commits.", "method"),
        (405, "At least 1 approving review is required by reviewers with write access.", "reviews"),
        (405, "Changes have been requested by octocat", "reviews"),
        (405, "Waiting on code owner review from octocat", "reviews"),
        (405, 'Required status check "continuous-integration/fake-ci" is expected.', "checks"),
        (405, "2 of 3 required status checks have not succeeded: 1 expected and 1 failing.", "checks"),
        (405, "Repository rule violations found\n\nAt least 1 approving review is required", "reviews"),
        (405, "Repository rule violations found\n\nChanges must be made through the merge queue", "policy"),
        (405, "You're not authorized to push to this branch.", "policy"),
        (405, "A conversation must be resolved before this pull request can be merged.", "policy"),
        (405, "Pull Request is not mergeable", "unknown"),
        (405, "words of next year", "unknown"),
    ],
)
def test_a_refused_merge_says_why(status: int, message: str, reason: str) -> None:
    """By the host's words, the closer cause before the general one."""
    error = _refused(status, {"message": message}, MERGE)

    assert isinstance(error, errors.NotMergeableError)
    assert error.reason is NotMergeableReason(reason)
    assert error.retryable is (reason == "pending")


@pytest.mark.parametrize(
    ("status", "headers", "body", "wait"),
    [
        (429, {}, "<html>Too many</html>", 60),
        (429, {"retry_after": "7"}, None, 7),
        (403, {"retry_after": "30"}, {"message": "Forbidden"}, 30),
        (403, {}, {"message": "You have exceeded a secondary rate limit."}, 60),
        (403, {}, {"message": "You have triggered an abuse detection mechanism."}, 60),
        (403, {"x_ratelimit_remaining": "0"}, {"message": "Forbidden"}, 60),
        (403, {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "junk"}, {"message": "Forbidden"}, 60),
        (403, USED_UP | {"date": "Sun, 09 Sep 2001 01:45:40 GMT"},
         {"message": "Forbidden"}, 61),
        (403, USED_UP | {"date": "Sun, 09 Sep 2001 01:47:40 GMT"},
         {"message": "Forbidden"}, 1),
    ],
)  # fmt: skip
def test_a_limit_tells_how_long(status: int, headers: dict[str, str], body: Any, wait: float) -> None:
    """By Retry-After, by the reset against the host's clock, or a minute."""
    error = _refused(status, body, **headers)

    assert isinstance(error, errors.RateLimitedError)
    assert (error.retry_after, error.retryable) == (wait, True)


@pytest.mark.parametrize("date", ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "soon", ""])
def test_a_date_that_is_none_leaves_a_limit_a_limit(date: str) -> None:
    """Whatever stands in a header, what leaves is an error of ours."""
    assert isinstance(_refused(429, None, **USED_UP, date=date), errors.RateLimitedError)


@pytest.mark.parametrize("endpoint", [PULLS, MERGE, translate.CONTENTS, translate.TREES])
def test_a_request_that_github_gave_up_on_may_have_taken_effect(endpoint: str) -> None:
    """Its timeout says nothing of what was done until then, whatever the status."""
    error = _refused(422, {"message": "Sorry, your request timed out."}, endpoint)

    assert isinstance(error, errors.ProviderUnavailableError)
    assert (error.outcome, error.retryable) == (Outcome.UNKNOWN, False)


def test_a_used_up_limit_is_no_excuse_for_a_known_refusal() -> None:
    """A plan that has no protection stays so, though the limit is used up as well."""
    message = "Upgrade to GitHub Pro or make this repository public to enable this feature."

    assert type(_refused(403, {"message": message}, x_ratelimit_remaining="0")) is DENIED


@pytest.mark.parametrize(
    ("headers", "message", "hint"),
    [
        ({"x_github_sso": "required; url=https://github.com/orgs/acme/sso?authorization_request=A"},
         "Resource protected by organization SAML enforcement.", "https://github.com/orgs/acme/sso"),
        ({}, "Resource protected by organization SAML enforcement.", "single sign-on"),
        ({"x_accepted_github_permissions": "pull_requests=write"},
         "Resource not accessible by personal access token", "pull_requests=write"),
        ({}, "Resource not accessible by integration", "installation"),
        ({}, "Upgrade to GitHub Pro or make this repository public to enable this feature.", "plan"),
        ({}, "Repository was archived so is read-only.", "unarchive"),
        ({}, "Must have admin rights to Repository.", "administration"),
    ],
)  # fmt: skip
def test_a_hint_names_the_cause(headers: dict[str, str], message: str, hint: str) -> None:
    """What to do about it: authorize, grant, upgrade, unarchive."""
    error = _refused(403, {"message": message}, **headers)

    assert error.hint is not None
    assert hint in error.hint


@pytest.mark.parametrize("status", [500, 501, 502, 503, 504, 520, 599, 408])
def test_a_server_that_failed_may_have_acted(status: int) -> None:
    """Had this been the effect step, nobody knows."""
    error = _refused(status, "<html>Unicorn</html>")

    assert type(error) is errors.ProviderUnavailableError
    assert (error.outcome, error.transient) == (Outcome.UNKNOWN, True)
    assert error.message == f"HTTP {status}"


@pytest.mark.parametrize("status", [100, 199, 600, 999])
def test_a_status_that_does_not_exist_is_unexpected(status: int) -> None:
    """No row covers it."""
    error = _refused(status, {"message": "what?"})

    assert (type(error), error.outcome) == (errors.UnexpectedResponseError, Outcome.UNKNOWN)


def test_a_page_is_not_proof_of_absence() -> None:
    """An HTML 404 comes from a proxy or a wrong address; optional() must not make None of it."""
    assert type(_refused(404, "<html>Not Found</html>")) is errors.UnexpectedResponseError
    assert type(_refused(404, "")) is errors.UnexpectedResponseError
    assert type(_refused(404, {"message": "no Route matched"})) is errors.UnexpectedResponseError


@pytest.mark.parametrize("data", [{"message": 7}, {"message": ["a"]}, {"errors": "a"}])
def test_any_shape_of_an_error_is_taken(data: Any) -> None:
    """PyGithub's own classification dies of some of these."""
    assert type(_refused(422, data)) is errors.InvalidRequestError


@pytest.mark.parametrize("data", [[], ["a"], "text", 7, {}])
def test_what_is_not_the_applications_word_is_no_verdict(data: Any) -> None:
    """A gateway's answer would be taken for the host's refusal, and the caller told that nothing changed."""
    error = _refused(422, data)

    assert (type(error), error.outcome) == (errors.UnexpectedResponseError, Outcome.UNKNOWN)


# Completeness


def _exceptions_of(*packages: Any) -> list[type[Exception]]:
    """Every exception class that the packages define, in any of their modules."""
    seen: set[type[Exception]] = set()
    for package in packages:
        names = [package.__name__]
        names += [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
        for name in names:
            if any(part in name for part in ("emscripten", "contrib", "__main__", "http2", "_async")):
                continue
            for _, value in inspect.getmembers(import_module(name), inspect.isclass):
                if (
                    issubclass(value, Exception)
                    and not issubclass(value, Warning)
                    and value.__module__.startswith(package.__name__)
                ):
                    seen.add(value)
    return sorted(seen, key=lambda kind: f"{kind.__module__}.{kind.__name__}")


def _instance(kind: type[Exception]) -> Exception:
    """One of the class, made as best as can be."""
    attempts: list[tuple[Any, ...]] = [
        (),
        ("x",),
        (403, {"message": "m"}, {}, "m"),
        (None, "x"),
        (None, None, "x"),
        ("x", "y", None),
    ]
    for arguments in attempts:
        try:
            return kind(*arguments)
        except Exception:
            continue
    made = kind.__new__(kind)
    made.args = ("x",)
    return made


@pytest.mark.parametrize("kind", _exceptions_of(github), ids=lambda kind: kind.__name__)
def test_every_exception_of_pygithub_is_translated(kind: type[Exception]) -> None:
    """A class that a new version brings fails here until it has a meaning."""
    if issubclass(kind, github.GithubException):
        made = kind(403, {"message": "Resource not accessible by integration"}, {"X": "y"})
        assert type(translate.translate(made)) is DENIED
    else:
        error = translate.translate(_instance(kind))
        assert (type(error), error.outcome) == (errors.UnexpectedResponseError, Outcome.UNKNOWN)


@pytest.mark.parametrize(
    "kind", _exceptions_of(requests, urllib3), ids=lambda kind: f"{kind.__module__}.{kind.__name__}"
)
def test_every_exception_of_requests_is_translated(kind: type[Exception]) -> None:
    """And of urllib3 below it: never a guess that nothing was sent, unless its kind says so."""
    error = translate.translate(_instance(kind))

    assert isinstance(
        error, errors.ProviderUnavailableError | errors.UnexpectedResponseError | errors.InvalidRequestError
    )
    if error.outcome is Outcome.NOT_APPLIED:
        assert any(
            word in kind.__name__
            for word in ("Connect", "NewConnection", "NameRes", "Location", "SSL", "Proxy", "Invalid", "Missing", "URL")
        ), kind


@pytest.mark.parametrize("kind", [ValueError, AssertionError, AttributeError, RuntimeError, KeyError, RecursionError])
def test_what_escapes_from_the_sdk_is_translated(kind: type[Exception]) -> None:
    """An int() of a junk header, an assert about a host: the request may have been sent."""
    error = translate.translate(kind("x"))

    assert (type(error), error.outcome) == (errors.UnexpectedResponseError, Outcome.UNKNOWN)
    assert kind.__name__ in error.message


def test_a_cut_body_may_pass_and_a_wrong_one_not() -> None:
    """JSON that broke off is tried again by a read; a page is not."""
    response = Response(status=200)

    assert translate.translate(BodyError("cut", response, cut=True)).transient
    assert not translate.translate(BodyError("html", response)).transient


def test_only_what_may_pass_is_worth_another_try() -> None:
    """A foreign exception is none of ours, and is not retried."""
    assert not translate.is_retryable_read_error(ValueError())
    assert not translate.is_retryable_read_error(errors.NotFoundError("x"))
    assert translate.is_retryable_read_error(errors.RateLimitedError("x"))


@pytest.mark.pitfall("GH-X-04")
@pytest.mark.parametrize("body", [b'{"message": "API rate limit exceeded for installation ID 1."}', b"<html></html>"])
def test_a_429_is_a_rate_limit_whatever_its_body(hub: Hub, body: bytes) -> None:
    """With the wait that is asked, or a minute."""
    hub.given_fault(Fault(kind="status", status=429, body=body))

    with pytest.raises(RateLimitedError) as caught:
        create(hub)

    assert caught.value.retry_after == 60


@pytest.mark.pitfall("GH-X-06")
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


@pytest.mark.pitfall("GH-X-07")
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


@pytest.mark.pitfall("GH-X-08")
def test_single_sign_on_is_told_with_its_address(hub: Hub) -> None:
    """The token has to be authorized, and where is in the hint."""
    sso = {"X-GitHub-SSO": "required; url=https://github.com/orgs/acme/sso?authorization_request=A"}
    refuse(hub, 403, "Resource protected by organization SAML enforcement.", headers=sso)

    with pytest.raises(PermissionDeniedError) as caught:
        hub.provider.get_repo(REPO)

    assert "https://github.com/orgs/acme/sso" in str(caught.value.hint)


@pytest.mark.pitfall("GH-X-09")
@pytest.mark.parametrize("text", ["Requires authentication", "A JSON web token could not be decoded", ""])
def test_every_401_is_about_the_credential(hub: Hub, text: str) -> None:
    """Not only the one text that PyGithub knows."""
    refuse(hub, 401, text)

    with pytest.raises(AuthenticationError):
        hub.provider.get_repo(REPO)


@pytest.mark.pitfall("GH-X-10")
def test_an_outage_keeps_its_status(hub: Hub) -> None:
    """On every verb alike, with the number of attempts."""
    hub.given_fault(Fault(kind="status", status=503, body=b"<html>Unicorn!</html>", times=None))

    for call, attempts in ((lambda: hub.provider.get_repo(REPO), 4), (lambda: create(hub), 1)):
        with pytest.raises(ProviderUnavailableError) as caught:
            call()
        assert (caught.value.status, caught.value.attempts) == (503, attempts)


@pytest.mark.pitfall("GH-GR-05")
def test_a_404_is_absence_or_lack_of_access(hub: Hub) -> None:
    """The hint says both, and creation does not rely on it."""
    with pytest.raises(NotFoundError) as caught:
        hub.provider.get_repo("acme/secret")

    assert "may not see it" in str(caught.value.hint)
    assert optional(hub.provider.get_repo, "acme/secret") is None


@pytest.mark.pitfall("GH-GR-06")
@pytest.mark.parametrize("status", [403, 451])
def test_a_blocked_repository_is_terminal(hub: Hub, status: int) -> None:
    """No limit and no outage: it is not tried again."""
    refuse(hub, status, "Repository access blocked", block={"reason": "dmca"})

    with pytest.raises(PermissionDeniedError, match="blocked"):
        hub.provider.get_repo(REPO)

    assert len(hub.sent) == 1


@pytest.mark.pitfall("GH-AR-01")
def test_an_archived_repository_says_so(hub: Hub) -> None:
    """It is not the token's fault."""
    hub.forge.update_repo(REPO, archived=True)

    with pytest.raises(PermissionDeniedError) as caught:
        create(hub)

    assert "archived" in str(caught.value.hint)
    assert hub.provider.get_repo(REPO).archived
