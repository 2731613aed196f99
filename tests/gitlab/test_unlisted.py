"""Answers that nobody had listed: six rules, each tried with made-up members on every operation.

1. A refusal that is no verdict leaves the outcome unknown.
2. Absence needs the application's own words about the thing that was asked for.
3. Each acknowledgement is compared with what was asked.
4. An argument is blamed only where it is at fault.
5. What a second try would pass is transient.
6. After a failure and a repeat the host is as if the call had succeeded once.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gitprovider import Verdict, resolve
from gitprovider._remote.response import Response
from gitprovider.contract import optional
from gitprovider.ensure import Settling, ensure_branch, ensure_files, ensure_protection, ensure_repo
from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    UnexpectedResponseError,
)
from gitprovider.gitlab import GitLabProvider, endpoints, errors
from gitprovider.gitlab.merges import _COMPUTING, _REASONS
from gitprovider.models import BranchProtection, MergeMethod, PutFile
from tests.support.gitlab_world import REPO, World

Make = Callable[..., World]
Call = Callable[[GitLabProvider], Any]

# Per operation: the call, and where its effect step is sent.
CALLS: dict[str, tuple[Call, tuple[str, str]]] = {
    "create_repo": (lambda p: p.create_repo("acme/new"), ("POST", "/projects$")),
    "create_branch": (lambda p: p.create_branch(REPO, "new", source="main"), ("POST", "/branches$")),
    "protect_branch": (lambda p: p.protect_branch(REPO, "feature"), ("POST", "/protected_branches$")),
    "commit_files": (lambda p: commit(p), ("POST", "/commits$")),
    "open_pull_request": (
        lambda p: p.open_pull_request(REPO, source_branch="other", target_branch="main", title="t"),
        ("POST", "/merge_requests$"),
    ),
    "merge_pull_request": (lambda p: p.merge_pull_request(REPO, 1), ("PUT", "/merge$")),
}
WHEN = ("before", "after")


# A later clock, so that a lost request is settled.
def later() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


# Bodies that the application did not write, whatever the status.
FOREIGN: dict[str, tuple[bytes, str]] = {
    "page": (b"<html><body>404 Project Not Found</body></html>", "text/html"),
    "empty": (b"", "application/json"),
    "text": (b"no healthy upstream", "text/plain"),
    "list": (b'["404 Branch Not Found"]', "application/json"),
    "string": (b'"404 Project Not Found"', "application/json"),
    "gateway": (b'{"code": 7, "detail": "no route"}', "application/json"),
    "cut": (b'{"message": "404 Project Not F', "application/json"),
}
# And bodies that are no proof of absence, though JSON with a text.
NO_PROOF = {
    **FOREIGN,
    "router": (b'{"error": "404 Not Found"}', "application/json"),
    "kong": (b'{"message": "no Route matched with those values"}', "application/json"),
    "capital": (b'{"message": "Not Found"}', "application/json"),
    "wordy": (b'{"message": "The page 404 Project Not Found could not be served"}', "application/json"),
    "null": (b'{"message": null, "error": "404 Project Not Found"}', "application/json"),
}


def commit(provider: GitLabProvider, content: str = "a") -> Any:
    return provider.commit_files(REPO, "main", [PutFile(path="a", content=content)], message="m")


def respond(world: World, method: str, endpoint: str, status: int, body: Any, **known: Any) -> None:
    """Inject a response: JSON of a value, or a body with its type."""
    data, kind = body if isinstance(body, tuple) else (json.dumps(body).encode(), "application/json")
    world.fault(
        "status", method=method, endpoint=endpoint, status=status, body=data, headers={"Content-Type": kind}, **known
    )


def failure(call: Callable[[], Any]) -> GitProviderError:
    with pytest.raises(GitProviderError) as caught:
        call()
    return caught.value


def verdict(world: World, error: GitProviderError) -> Verdict:
    return resolve(world.provider(), error, now=later).verdict


# 1: lost, not refused


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize("form", FOREIGN)
@pytest.mark.parametrize("when", WHEN)
def test_a_refusal_that_the_application_did_not_write_is_no_verdict(
    ready: World, operation: str, form: str, when: str
) -> None:
    """NOT_APPLIED would be a lie where the change was made."""
    call, (method, endpoint) = CALLS[operation]
    for status in (400, 401, 403, 404, 405, 409, 418, 422, 451):
        respond(ready, method, endpoint, status, FOREIGN[form], when=when)
        error = failure(lambda: call(ready.provider()))
        ready.script.clear()

        assert error.outcome is Outcome.UNKNOWN, status
        if when == "after":
            return  # once is enough: it is made


GRPC = {code: f"{code}:Made up {code}. debug_error_string:{{x}}" for code in range(1, 17)}
LOST = (1, 2, 4, 8, 10, 13, 14, 15)
VERDICTS: dict[int, type[GitProviderError]] = {3: InvalidRequestError, 5: NotFoundError, 6: AlreadyExistsError}
VERDICTS |= {7: PermissionDeniedError, 9: ConflictError, 11: InvalidRequestError}


@pytest.mark.parametrize("operation", [name for name in CALLS if name != "merge_pull_request"])
@pytest.mark.parametrize("code", LOST)
def test_a_lost_answer_of_the_storage_is_unknown(ready: World, operation: str, code: int) -> None:
    """K1-1: the change was made; resolve says so, and a caller who believes NOT_APPLIED makes it twice."""
    call, (method, endpoint) = CALLS[operation]
    lead = ("", "Failed to create branch 'x': ", "Failed to create branch ")[code % 3]
    respond(ready, method, endpoint, 400, {"message": lead + GRPC[code]}, when="after")

    error = failure(lambda: call(ready.provider()))

    assert (type(error), error.outcome) == (ProviderUnavailableError, Outcome.UNKNOWN)
    assert verdict(ready, error) is Verdict.APPLIED


def test_a_lost_merge_is_unknown(ready: World) -> None:
    """The same of a merge, whose other refusals are explained by a read."""
    respond(ready, "PUT", "/merge$", 400, {"message": GRPC[4]}, when="after")

    error = failure(lambda: ready.provider().merge_pull_request(REPO, 1))

    assert (type(error), error.outcome) == (ProviderUnavailableError, Outcome.UNKNOWN)
    assert verdict(ready, error) is Verdict.APPLIED


@pytest.mark.parametrize("operation", ["create_branch", "commit_files"])
@pytest.mark.parametrize("code", VERDICTS)
def test_a_verdict_of_the_storage_has_its_meaning(ready: World, operation: str, code: int) -> None:
    """K1-1: a code that refuses is not lost."""
    call, (method, endpoint) = CALLS[operation]
    respond(ready, method, endpoint, 400, {"message": GRPC[code]})

    error = failure(lambda: call(ready.provider()))

    assert (type(error), error.outcome) == (VERDICTS[code], Outcome.NOT_APPLIED)


# The forms in which GitLab and its libraries write a code of gRPC, made up for any of them.
_CODES = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS"
)
CODE_NAMES = _CODES.split()
CODE_FORMS: dict[str, Callable[[int, str], Any]] = {
    "number": lambda code, name: f"{code}:made up.",
    "number, space": lambda code, name: f"{code}: made up",
    "twice": lambda code, name: f"{code}:{code}:made up",
    "behind a text": lambda code, name: f"It failed to: {code}:made up; last error: x",
    "of a field": lambda code, name: {"base": [f"{code}:made up"]},
    "in a list": lambda code, name: ["First words", f"{code}:made up"],
    "class": lambda code, name: f"GRPC::{name.title().replace('_', '')}",
    "class and number": lambda code, name: f"GRPC::{name.title().replace('_', '')} ({code}:made up)",
    "go": lambda code, name: f"rpc error: code = {name.title().replace('_', '')} desc = made up",
    "constant": lambda code, name: f"rpc error: code = {name} desc = made up",
}


def meant(method: str, template: str, status: int, data: Any) -> GitProviderError:
    """What the table makes of JSON that the application wrote."""
    text = json.dumps(data)
    return errors.refusal(Response(status=status, endpoint=f"{method} {template}", data=data, text=text))


ENDPOINTS = [tuple(endpoint.split(" ")) for endpoint in (*errors.WRITES, errors.MERGE)]


@pytest.mark.parametrize("form", CODE_FORMS)
@pytest.mark.parametrize("status", [400, 409, 422])
def test_a_code_of_the_storage_has_one_meaning_in_any_form(form: str, status: int) -> None:
    """K1-1: lost codes leave the outcome unknown on every endpoint, and no code that refuses does."""
    for method, template in ENDPOINTS:
        for code, name in enumerate(CODE_NAMES):
            if code == 0:
                continue
            error = meant(method, template, status, {"message": CODE_FORMS[form](code, name)})

            assert (error.outcome is Outcome.UNKNOWN) is (code in LOST), (template, code, error)
            if code in LOST:
                assert type(error) is ProviderUnavailableError


LOST_WORDS = [
    "Deadline Exceeded",
    "context canceled",
    "The request timed out",
    "Timeout was reached",
    "execution expired",
    "Connection refused - connect(2)",
    "Connection reset by peer",
    "failed to connect to all addresses",
    "connections to all backends failing",
    "Broken pipe",
    "Socket closed",
    "unexpected EOF",
    "Service Unavailable",
    "Internal server error",
    "Something went wrong while committing your changes",
    "An error occurred. Please try again.",
    "Gitaly is not available, please try again later",
]


@pytest.mark.parametrize("words", LOST_WORDS)
def test_words_of_a_failure_are_no_verdict(ready: World, words: str) -> None:
    """Whatever failed on the way, the change may have been made; resolve finds it."""
    for method, template in ENDPOINTS:
        assert meant(method, template, 400, {"message": words}).outcome is Outcome.UNKNOWN, template
    respond(ready, "POST", "/commits$", 400, {"message": words}, when="after")

    error = failure(lambda: commit(ready.provider()))

    assert (type(error), error.outcome) == (ProviderUnavailableError, Outcome.UNKNOWN)
    assert verdict(ready, error) is Verdict.APPLIED


@pytest.mark.parametrize("lead", ["GL-HOOK-ERR: ", "GitLab: ", "pre-receive hook declined: ", "remote hook says "])
@pytest.mark.parametrize("words", [*LOST_WORDS, "4:Deadline Exceeded", "14:no", "rpc error: code = Internal"])
def test_a_hook_s_words_are_a_verdict(lead: str, words: str) -> None:
    """A hook refuses in words of its own, and nothing was made."""
    for method, template in ENDPOINTS:
        assert meant(method, template, 400, {"message": lead + words}).outcome is Outcome.NOT_APPLIED


REFRESH = "Could not update refs/heads/main. Please refresh and try again."


def test_a_branch_that_could_not_be_moved_and_has_not_is_transient(world: World) -> None:
    """K1-2: the very same call succeeds a moment later."""
    respond(world, "POST", "/commits$", 400, {"message": REFRESH})

    error = failure(lambda: commit(world.provider()))

    assert not isinstance(error, InvalidRequestError)
    assert REFRESH in error.message
    assert error.retryable
    commit(world.provider())


@pytest.mark.parametrize("form", NO_PROOF)
def test_a_branch_that_cannot_be_read_after_it_leaves_it_unknown(world: World, form: str) -> None:
    """K1-2: where the head cannot be seen, nobody knows."""
    respond(world, "POST", "/commits$", 400, {"message": REFRESH}, when="after")
    respond(world, "GET", "/branches/", 404, NO_PROOF[form])

    error = failure(lambda: commit(world.provider()))

    assert error.outcome is Outcome.UNKNOWN
    assert verdict(world, error) is Verdict.APPLIED


def test_a_branch_that_this_commit_moved_is_not_called_somebody_else_s(world: World) -> None:
    """K1-2: the head after it may be the commit that was asked for."""
    respond(world, "POST", "/commits$", 400, {"message": REFRESH}, when="after")

    error = failure(lambda: commit(world.provider()))

    assert (type(error), error.outcome) == (HeadMovedError, Outcome.UNKNOWN)


@pytest.mark.parametrize(
    "text", ["9:Could not update refs/heads/new. Please refresh", "cannot lock ref 'refs/heads/new'"]
)
def test_a_branch_that_somebody_made_at_the_same_moment_exists(ready: World, text: str) -> None:
    """K1-3: ensure_branch goes on with it."""
    respond(ready, "POST", "/branches$", 400, {"message": text}, when="after", times=None)

    error = failure(lambda: ready.provider().create_branch(REPO, "new", source="main"))

    assert isinstance(error, AlreadyExistsError)
    assert error.existing.name == "new"
    assert ensure_branch(ready.provider(), REPO, "new", source="main").value.name == "new"


def test_a_race_for_a_branch_that_is_not_there_is_transient(ready: World) -> None:
    """K1-3: a look decides; where it fails, nothing is known."""
    respond(ready, "POST", "/branches$", 400, {"message": "Please refresh"}, times=2)
    provider = ready.provider()

    assert failure(lambda: provider.create_branch(REPO, "new", source=ready.head)).retryable
    respond(ready, "GET", "/branches/", 404, NO_PROOF["router"])
    unseen = failure(lambda: provider.create_branch(REPO, "new", source=ready.head))
    assert unseen.outcome is Outcome.UNKNOWN


# 2: absence needs proof


READS: dict[str, Call] = {
    "get_repo": lambda p: p.get_repo(REPO),
    "list_branches": lambda p: p.list_branches(REPO),
    "head": lambda p: p.head(REPO, "feature"),
    "commit": lambda p: p.commit(REPO, "1" * 40),
    "protection": lambda p: p.protection(REPO, "main"),
    "get_pull_request": lambda p: p.get_pull_request(REPO, 1),
    "contains": lambda p: p.contains(REPO, "1" * 40, "main"),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("form", NO_PROOF)
def test_a_404_that_is_not_the_application_s_proves_nothing(ready: World, read: str, form: str) -> None:
    """K2-1: optional() would take it for absence."""
    respond(ready, "GET", "", 404, NO_PROOF[form], times=None)

    error = failure(lambda: optional(READS[read], ready.provider()))

    assert type(error) is UnexpectedResponseError
    assert "url" in (error.hint or "")


@pytest.mark.parametrize("form", NO_PROOF)
def test_nothing_is_created_or_called_unmade_on_such_a_word(ready: World, form: str) -> None:
    """K2-1: ensure_repo sends nothing; resolve of a creation that was made does not deny it."""
    respond(ready, "GET", r"/projects/\{\w+\}$", 404, NO_PROOF[form], times=None)
    failure(lambda: ensure_repo(ready.provider(), "acme/new"))
    assert ready.mutations == []

    ready.fault("reset", method="POST", endpoint="/projects$", when="after")
    lost = failure(lambda: ready.provider().create_repo("acme/new"))

    assert isinstance(failure(lambda: verdict(ready, lost)), UnexpectedResponseError)


def merged(world: World) -> GitLabProvider:
    """A provider whose pull request 1 is merged, with its source branch."""
    world.forge.merge(REPO, 1, method=MergeMethod.MERGE, bypass=True)
    return world.provider()


@pytest.mark.parametrize("form", [*NO_PROOF, "own", "right"])
@pytest.mark.parametrize("when", WHEN)
def test_a_source_branch_is_gone_when_a_read_says_so(ready: World, form: str, when: str) -> None:
    """K2-2: whatever the deletion returned, the branch itself decides."""
    own = {"own": {"message": "404 Branch Not Found"}, "right": {"message": "404 Project Not Found"}}
    provider = merged(ready)
    respond(ready, "DELETE", "/branches/", 404, own.get(form) or NO_PROOF[form], when=when)

    def call() -> Any:
        return provider.merge_pull_request(REPO, 1, delete_source_branch=True)

    if when == "after":
        assert call().already_merged
        return
    error = failure(call)
    assert error.outcome is Outcome.PARTIAL
    assert isinstance(error, PermissionDeniedError if form in own else UnexpectedResponseError)


@pytest.mark.parametrize("form", [*NO_PROOF, "right"])
def test_a_source_branch_that_cannot_be_read_is_not_gone(ready: World, form: str) -> None:
    """K2-2: a lost right or a page in answer to the read proves nothing either."""
    provider = merged(ready)
    right = {"message": "404 Project Not Found"}
    respond(ready, "GET", "/branches/", 404, right if form == "right" else NO_PROOF[form], times=None)

    error = failure(lambda: provider.merge_pull_request(REPO, 1, delete_source_branch=True))

    assert error.outcome is Outcome.PARTIAL


@pytest.fixture
def weak(world: World) -> World:
    """Tier Free, and the rule that GitLab makes for a default branch."""
    world.forge.put_rule(REPO, "main", BranchProtection.nothing())
    return world


def rules(world: World) -> set[str]:
    return {rule.pattern for rule in world.forge.rules(REPO)}


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("form", [*NO_PROOF, "own"])
@pytest.mark.parametrize("when", WHEN)
def test_a_rule_is_gone_when_the_list_says_so(weak: World, nth: int, form: str, when: str) -> None:
    """K2-3: neither the old rule nor the bridge is called dropped while it is there."""
    body = {"message": "404 Not found"} if form == "own" else NO_PROOF[form]
    respond(weak, "DELETE", "/protected_branches", 404, body, when=when, nth=nth)

    def call() -> Any:
        return weak.provider().protect_branch(REPO, "main")

    if when == "after":
        assert call().require_pull_request
        assert rules(weak) == {"main"}
        return
    error = failure(call)
    name = ("main", "mai*n")[nth - 1]
    assert name in rules(weak)
    assert repr(name) in error.message
    assert error.outcome is Outcome.PARTIAL
    call()
    assert rules(weak) == {"main"}


COMPARE_404 = {**NO_PROOF, "own": ({"message": "404 Ref Not Found"}), "right": {"message": "404 Project Not Found"}}


@pytest.mark.parametrize("form", COMPARE_404)
def test_a_404_of_the_comparison_is_no_proof(ready: World, form: str) -> None:
    """K2-4: the commit is there, so `not in the branch` would be a guess."""
    sha = ready.forge.head(REPO, "feature")
    respond(ready, "GET", "/compare$", 404, COMPARE_404[form])

    assert failure(lambda: ready.provider().contains(REPO, sha, "main")).status == 404


def test_a_commit_that_is_absent_is_not_contained_and_the_head_is(ready: World) -> None:
    """K2-4: the two answers that need no comparison."""
    provider = ready.provider()

    assert provider.contains(REPO, ready.head, "main")
    assert not any("compare" in line for line in ready.sent)
    assert not provider.contains(REPO, "1" * 40, "main")


def off(world: World, **project: Any) -> None:
    """The repository feature is turned off: GitLab says so on everything below it."""
    respond(world, "GET", "/repository/", 404, {"message": "404 Repository Not Found"}, times=None)
    respond(world, "POST", "/repository/", 404, {"message": "404 Repository Not Found"}, times=None)
    if project:
        shown = {"path_with_namespace": REPO, "empty_repo": True, **project}
        respond(world, "GET", r"/projects/\{\w+\}$", 200, shown, times=None)


@pytest.mark.parametrize("operation", ["list_branches", "head", "create_branch", "contains", "protection"])
def test_a_repository_that_is_turned_off_is_not_absent(ready: World, operation: str) -> None:
    """K2-9: every operation gives the hint that commit_files gives."""
    off(ready)
    call = READS.get(operation) or CALLS[operation][0]

    error = failure(lambda: call(ready.provider()))

    assert isinstance(error, PermissionDeniedError)
    assert "turned off" in (error.hint or "")


@pytest.mark.parametrize("level", [None, "enabled", "private", "disabled"])
def test_an_empty_project_of_an_old_server_has_no_branches(ready: World, level: str | None) -> None:
    """K2-9: an empty list, and nothing of the kind where the feature is off."""
    off(ready, repository_access_level=level)

    if level == "disabled":
        assert isinstance(failure(lambda: ready.provider().list_branches(REPO)), PermissionDeniedError)
    else:
        assert ready.provider().list_branches(REPO) == []


@pytest.mark.parametrize("operation", CALLS)
def test_a_404_to_a_write_after_a_read_of_the_same_is_a_lack_of_permission(ready: World, operation: str) -> None:
    """`It does not exist` would send somebody to look for what is there."""
    call, (method, endpoint) = CALLS[operation]
    for what in ("404 Project Not Found", "404 Not found", "404 Merge Request Not Found"):
        respond(ready, method, endpoint, 404, {"message": what})

        error = failure(lambda: call(ready.provider()))

        assert (type(error), error.outcome) == (PermissionDeniedError, Outcome.NOT_APPLIED)


THINGS = ["Project", "Branch", "Commit", "Namespace", "Group", "User", "Tag", "Merge Request", "Tree", "File"]
ASKED: dict[str, tuple[str, str, Call]] = {
    "get_repo": ("Project", r"/projects/\{\w+\}$", READS["get_repo"]),
    "head": ("Branch", "/branches/", READS["head"]),
    "commit": ("Commit", "/commits/", READS["commit"]),
}


@pytest.mark.parametrize("read", ASKED)
@pytest.mark.parametrize("thing", THINGS)
def test_the_absence_of_another_thing_proves_nothing(ready: World, read: str, thing: str) -> None:
    """A 404 about something that was not asked for would let ensure_ create what is there."""
    asked, endpoint, call = ASKED[read]
    respond(ready, "GET", endpoint, 404, {"message": f"404 {thing} Not Found"})

    error = failure(lambda: call(ready.provider()))

    assert isinstance(error, NotFoundError) is (thing in (asked, "Project"))


@pytest.mark.parametrize("status", [410, *range(415, 422), 424, *range(426, 429), 444, 449, 499])
def test_a_status_that_gitlab_does_not_have_is_no_verdict(ready: World, status: int) -> None:
    """410 least of all: it would be taken for absence."""
    error = meant("GET", endpoints.PROJECT, status, {"message": "404 Project Not Found"})
    write = meant("POST", endpoints.COMMITS, status, {"message": "made up"})

    assert {type(error), type(write)} == {UnexpectedResponseError}
    assert write.outcome is Outcome.UNKNOWN


# 3: the answer against the request


def altered(world: World, method: str, endpoint: str, change: Callable[[Any], None]) -> None:
    """Let the host do what was asked, and change what it says of it."""
    handle = world.fake.handle

    def handled(request: Any) -> Any:
        response = handle(request)
        if request.method == method and world.fake.endpoint(request).endswith(endpoint) and response.status < 300:
            data = json.loads(response.body)
            change(data)
            response = replace(response, body=json.dumps(data).encode())
        return response

    world.fake.handle = handled  # type: ignore[method-assign]  # it answers as the fake does


READ_ALTERED: list[tuple[str, str, str, Callable[[Any], None]]] = [
    ("head", "GET", "/branches/{branch}", lambda d: d.update(name="another")),
    ("head", "GET", "/branches/{branch}", lambda d: d.update(name="Feature")),
    ("commit", "GET", "/commits/{sha}", lambda d: d.update(id="5" * 40)),
    ("protection", "GET", "/branches/{branch}", lambda d: d.update(name="another")),
    ("get_pull_request", "GET", "/merge_requests/{iid}", lambda d: d.update(iid=77)),
    ("create_branch", "GET", "/branches/{branch}", lambda d: d.update(name="another")),
    ("protect_branch", "GET", "/branches/{branch}", lambda d: d.update(name="another")),
    ("merge_pull_request", "GET", "/merge_requests/{iid}", lambda d: d.update(iid=77)),
]


@pytest.mark.parametrize(("operation", "method", "endpoint", "change"), READ_ALTERED, ids=itertools.count())
def test_a_read_of_something_else_is_no_answer(
    ready: World, operation: str, method: str, endpoint: str, change: Callable[[Any], None]
) -> None:
    """A proxy, or a cache, that mixes responses up: a mutation would be built on another thing."""
    altered(ready, method, endpoint, change)
    sha = ready.head
    call: dict[str, Call] = {**READS, **{name: found for name, (found, _) in CALLS.items()}}
    call["commit"] = lambda p: p.commit(REPO, sha)

    error = failure(lambda: call[operation](ready.provider()))

    assert (type(error), error.outcome) == (UnexpectedResponseError, Outcome.NOT_APPLIED)
    assert ready.mutations == []


MERGED_OTHERWISE: list[tuple[MergeMethod, dict[str, Any]]] = [
    (MergeMethod.MERGE, {"target_branch": "else"}),
    (MergeMethod.MERGE, {"squash_commit_sha": "6" * 40}),
    (MergeMethod.MERGE, {"merge_commit_sha": None}),
    (MergeMethod.SQUASH, {"squash": False}),
    (MergeMethod.REBASE, {"merge_commit_sha": "7" * 40}),
    (MergeMethod.REBASE, {"squash_commit_sha": "8" * 40}),
]


@pytest.mark.parametrize(("method", "change"), MERGED_OTHERWISE)
def test_a_merge_in_another_way_is_partial(ready: World, method: MergeMethod, change: dict[str, Any]) -> None:
    """The settings changed after they were read: it is merged, and not as was asked."""
    ready.method(method)
    altered(ready, "PUT", "/merge", lambda d: d.update(change))

    error = failure(lambda: ready.provider().merge_pull_request(REPO, 1, method=method))

    assert (type(error), error.outcome) == (UnexpectedResponseError, Outcome.PARTIAL)
    assert [step.name for step in error.completed] == ["merge"]


ALTERED: list[tuple[str, str, str, Callable[[Any], None]]] = [
    ("create_repo", "POST", "/projects", lambda d: d.update(path_with_namespace="acme/other")),
    ("create_repo", "POST", "/projects", lambda d: d.update(visibility="public")),
    ("create_repo", "POST", "/projects", lambda d: d.update(description="another")),
    ("create_branch", "POST", "/branches", lambda d: d.update(name="other-name")),
    ("create_branch", "POST", "/branches", lambda d: d["commit"].update(id="2" * 40)),
    ("protect_branch", "POST", "/protected_branches", lambda d: d.update(name="other-name")),
    ("commit_files", "POST", "/commits", lambda d: d.update(message="another")),
    ("commit_files", "POST", "/commits", lambda d: d.update(parent_ids=["3" * 40])),
    ("open_pull_request", "POST", "/merge_requests", lambda d: d.update(source_branch="else")),
    ("open_pull_request", "POST", "/merge_requests", lambda d: d.update(target_branch="else")),
    ("open_pull_request", "POST", "/merge_requests", lambda d: d.update(title="another")),
    ("open_pull_request", "POST", "/merge_requests", lambda d: d.update(draft=True, title="Draft: t")),
    ("merge_pull_request", "PUT", "/merge", lambda d: d.update(iid=77)),
    ("merge_pull_request", "PUT", "/merge", lambda d: d.update(sha="4" * 40)),
]


@pytest.mark.parametrize(("operation", "method", "endpoint", "change"), ALTERED, ids=itertools.count())
def test_an_acknowledgement_of_something_else_is_no_success(
    ready: World, operation: str, method: str, endpoint: str, change: Callable[[Any], None]
) -> None:
    """K3-1: the host says that it did another thing, and the caller would believe that its own was done."""
    altered(ready, method, endpoint, change)

    error = failure(lambda: CALLS[operation][0](ready.provider()))

    assert error.outcome in (Outcome.UNKNOWN, Outcome.PARTIAL)
    assert isinstance(error, UnexpectedResponseError | HeadMovedError)


def test_a_merge_request_from_a_branch_that_is_not_there_is_partial(ready: World) -> None:
    """K3-3: GitLab makes it; nothing could ever be merged."""
    ready.fake.late_sha = True
    respond(ready, "GET", "/branches/", 404, {"message": "404 Branch Not Found"})

    error = failure(lambda: CALLS["open_pull_request"][0](ready.provider()))

    assert (type(error), error.outcome) == (NotFoundError, Outcome.PARTIAL)
    assert "'other'" in error.message


def test_a_merge_request_without_a_source_branch_is_not_pending(ready: World) -> None:
    """K3-3: no time passes over what cannot pass."""
    altered(ready, "GET", "/merge_requests/{iid}", lambda d: d.update(sha=None, detailed_merge_status="commits_status"))

    error = failure(lambda: ready.provider().merge_pull_request(REPO, 1))

    assert isinstance(error, NotMergeableError)
    assert (error.reason, error.retryable, ready.time.slept) == (NotMergeableReason.UNKNOWN, False, [])


@pytest.mark.parametrize("data", [b"", b"short", bytes(range(256)) * 40])
def test_a_pointer_counts_as_the_content_it_stands_for(world: World, data: bytes) -> None:
    """K3-6: GitLab stores a pointer under filter=lfs; no second commit, and resolve finds the first."""
    oid = hashlib.sha256(data).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(data)}\n".encode()
    changes = [PutFile(path="big.bin", content=data)]
    handle = world.fake.handle

    def filtering(request: Any) -> Any:
        if request.method == "POST" and request.path.endswith("/commits"):
            body = json.loads(request.body)
            body["actions"] = [
                {**action, "content": pointer.decode(), "encoding": "text"} for action in body["actions"]
            ]
            request = replace(request, body=json.dumps(body).encode())
        return handle(request)

    world.fake.handle = filtering  # type: ignore[method-assign]  # it stores a pointer as GitLab does
    world.fault("reset", method="POST", endpoint="/commits$", when="after")
    provider = world.provider()

    lost = failure(lambda: provider.commit_files(REPO, "main", changes, message="m"))

    assert verdict(world, lost) is Verdict.APPLIED
    assert not ensure_files(provider, REPO, "main", changes, message="m").changed
    assert provider.commit_files(REPO, "main", changes, message="m").sha == world.forge.head(REPO, "main")
    assert ensure_files(provider, REPO, "main", [PutFile(path="big.bin", content=data + b"!")], message="n").changed


def test_a_protected_source_branch_stays_and_that_is_told(ready: World) -> None:
    """K3-7: GitLab skips it silently."""
    ready.forge.put_rule(REPO, "feature", BranchProtection())

    error = failure(lambda: ready.provider().merge_pull_request(REPO, 1, delete_source_branch=True))

    assert (type(error), error.outcome) == (PermissionDeniedError, Outcome.PARTIAL)
    assert "feature" in dict(ready.forge.branches(REPO))


# 4: who can mend it


POLICIES = [
    "PUSH BLOCKED: Secrets detected in code changes",
    "The path 'x' is locked by another user",
    "Your push has been rejected, because this repository has exceeded its size limit of 10 MB",
    "pre-receive hook declined",
    "GL-HOOK-ERR: tickets only on Mondays",
    "GitLab: Commit must be signed with a GPG key",
    "Committer email 'a@b.example' is not verified",
    "Commit message does not follow the pattern 'JIRA-\\d+'",
    "File name .env was prohibited by the pattern",
    "Your namespace storage is full; the quota is reached",
    "Compliance says no (made up, rule 4711)",
]


@pytest.mark.parametrize("text", POLICIES)
@pytest.mark.parametrize("operation", ["commit_files", "create_branch"])
def test_what_rules_hooks_and_quotas_refuse_is_no_wrong_argument(ready: World, operation: str, text: str) -> None:
    """K4-1: the caller would look for its mistake in vain."""
    call, (method, endpoint) = CALLS[operation]
    respond(ready, method, endpoint, 400, {"message": text})

    error = failure(lambda: call(ready.provider()))

    assert isinstance(error, ConflictError if "locked" in text else PermissionDeniedError)
    assert error.outcome is Outcome.NOT_APPLIED
    assert error.hint
    assert "another one and open" not in error.hint  # the same refusal waits there


MADE_UP = ["Compliance says no", "Rule 4711", "Nur mit Ticket", "Only on Mondays", "x", "No."]


@pytest.mark.parametrize("status", [400, 402, 403, 405, 406, 409, 412, 422, 423, 451])
@pytest.mark.parametrize("text", MADE_UP)
def test_no_argument_is_blamed_for_a_refusal_in_free_words(status: int, text: str) -> None:
    """K4-1: any endpoint: a policy, a setting or a state of the host, and a hint or a reason that a read can find."""
    for method, template in ENDPOINTS:
        error = meant(method, template, status, {"message": text})

        assert not isinstance(error, InvalidRequestError), template
        if isinstance(error, UnexpectedResponseError):
            assert (status, error.outcome) == (405, Outcome.UNKNOWN)
        else:
            assert isinstance(error, ConflictError | PermissionDeniedError)
            assert error.outcome is Outcome.NOT_APPLIED
        if isinstance(error, PermissionDeniedError):
            assert error.hint


BLAMED = [
    ("POST", endpoints.PROJECTS, {"message": {"path": ["is a reserved name"]}}, "repo"),
    ("POST", endpoints.PROJECTS, {"message": {"name": ["can contain only letters"], "limit_reached": []}}, "repo"),
    ("POST", endpoints.PROJECTS, {"message": {"description": ["is too long (maximum is 2000 characters)"]}}, None),
    ("POST", endpoints.BRANCHES, {"message": "Branch name is invalid"}, "name"),
    ("POST", endpoints.BRANCHES, {"message": "You cannot create a branch with a SHA-256 branch name"}, "name"),
    ("POST", endpoints.COMMITS, {"error": "actions[0][file_path] is missing"}, "changes"),
    ("POST", endpoints.COMMITS, {"message": "Path cannot include directory traversal"}, "changes"),
    ("POST", endpoints.MERGE_REQUESTS, {"message": ["Title is too long (maximum is 255 characters)"]}, None),
    ("POST", endpoints.RULES, {"error": "push_access_level does not have a valid value"}, None),
]


@pytest.mark.parametrize(("method", "template", "data", "argument"), BLAMED)
def test_an_argument_is_blamed_where_it_is_at_fault(method: str, template: str, data: Any, argument: str) -> None:
    """GitLab's checks of parameters and of fields name what is wrong."""
    error = meant(method, template, 400, data)

    assert isinstance(error, InvalidRequestError)
    assert error.argument == argument


HELD = [
    "You (@octocat) must accept the Terms of Service in order to perform this action.",
    "Your account has been blocked.",
    "Your account is pending approval from your administrator and hence blocked.",
    "Your account has been deactivated by your administrator.",
    "Your password expired.",
    "Your primary email address is not confirmed.",
    "made up: only from the office",
]


@pytest.mark.parametrize("reason", HELD)
@pytest.mark.parametrize("operation", ["get_repo", "commit_files", "merge_pull_request"])
def test_a_403_with_a_reason_sends_nobody_to_the_role(ready: World, operation: str, reason: str) -> None:
    """Another role meets the same refusal: GitLab's own words say what to do."""
    call, (method, endpoint) = CALLS.get(operation) or (READS[operation], ("GET", "/projects/"))
    respond(ready, method, endpoint, 403, {"message": f"403 Forbidden - {reason}"})

    error = failure(lambda: call(ready.provider()))

    assert isinstance(error, PermissionDeniedError)
    assert reason in error.message
    assert error.hint
    assert "role" not in error.hint


@pytest.mark.parametrize("operation", CALLS)
def test_a_read_only_instance_is_so_for_a_while_or_by_its_address(ready: World, operation: str) -> None:
    """Maintenance ends, and a Geo secondary has a primary: no right is missing."""
    call, (method, endpoint) = CALLS[operation]
    text = "You cannot perform write operations on a read-only instance"
    respond(ready, method, endpoint, 403, {"message": text})

    error = failure(lambda: call(ready.provider()))

    assert isinstance(error, ProviderUnavailableError)
    assert error.retryable
    assert "url=" in (error.hint or "")
    call(ready.provider())


SCHEMA = [
    ("RefType isn't a defined input type (on $type)", "variableRequiresValidType"),
    ("RefType isn't a defined input type (on $type)", None),
    ("Field 'tree' doesn't accept argument 'refType'", "argumentNotAccepted"),
    ("Field 'blobs' doesn't exist on type 'Repository'", "undefinedField"),
    ("Field 'blobs' doesn't exist on type 'Repository'", None),
]


@pytest.mark.parametrize(("text", "code"), SCHEMA)
def test_a_server_that_does_not_know_the_query_is_read_by_rest(world: World, text: str, code: str | None) -> None:
    """K4-6: an old server takes commits as well."""
    error = {"message": text, **({"extensions": {"code": code}} if code else {})}
    respond(world, "POST", "/api/graphql", 200, {"errors": [error]}, times=None)

    made = world.provider().commit_files(
        REPO, "main", [PutFile(path="a/b/c", content="x"), PutFile(path="README.md", content="new")], message="m"
    )

    assert made.parent == world.head
    assert len(world.mutations) == 1


def test_another_error_of_the_query_is_not_the_caller_s(world: World) -> None:
    """K4-6: the query is ours."""
    error = {"message": "Query has complexity of 300", "extensions": {"code": "madeUp"}}
    respond(world, "POST", "/api/graphql", 200, {"errors": [error]})

    assert type(failure(lambda: commit(world.provider()))) is UnexpectedResponseError


# 5: what passes by itself


def status_of(world: World, status: str, **more: Any) -> GitProviderError:
    altered(world, "GET", "/merge_requests/{iid}", lambda d: d.update(detailed_merge_status=status, **more))
    world.fake.merge_statuses[(REPO, 1)] = status
    return failure(lambda: world.provider().merge_pull_request(REPO, 1, timeout=1.0))


@pytest.mark.parametrize("status", sorted({*_REASONS, *_COMPUTING}))
def test_a_merge_status_is_transient_where_it_can_pass_by_itself(ready: World, status: str) -> None:
    """K5-3: a pipeline that ends soon is no failure for good; a missing approval is none that passes."""
    passing = _COMPUTING | {"ci_still_running", "merge_time"}

    error = status_of(ready, status)

    assert isinstance(error, NotMergeableError)
    assert (error.transient, error.outcome) == (status in passing, Outcome.NOT_APPLIED)
    assert status in error.message


@pytest.mark.parametrize("status", ["mergeable", "ci_must_pass", "draft_status", "made_up"])
def test_conflicts_are_told_under_any_status(ready: World, status: str) -> None:
    """K5-3: nothing but a commit mends them."""
    error = status_of(ready, status, has_conflicts=True)

    assert isinstance(error, NotMergeableError)
    assert error.reason is NotMergeableReason.CONFLICT


def test_an_unknown_status_shows_the_host_s_words(ready: World) -> None:
    """K5-3: whatever a newer GitLab invents."""
    assert "made_up" in status_of(ready, "made_up").message


@pytest.mark.parametrize("reads", [1, 3])
@pytest.mark.parametrize("ends", ["merged", "idle", "never"])
def test_a_merge_that_somebody_else_has_begun_is_waited_for(ready: World, reads: int, ends: str) -> None:
    """K5-2 on GitLab: the merge request is locked while one merge runs, and another is refused with 405."""
    respond(ready, "PUT", "/merge$", 405, {"message": "405 Method Not Allowed"})
    handle = ready.fake.handle
    seen = iter(range(99))

    def handled(request: Any) -> Any:
        response = handle(request)
        refused = len(ready.mutations) > 0 and request.path.endswith("/merge_requests/1")
        if refused and ((turn := next(seen)) < reads or ends == "never"):
            data = json.loads(response.body) | {"state": "locked"}
            return replace(response, body=json.dumps(data).encode())
        if refused and turn == reads and ends == "merged":
            ready.forge.merge(REPO, 1, method=MergeMethod.MERGE, bypass=True)
            return handle(request)
        return response

    ready.fake.handle = handled  # type: ignore[method-assign]  # it answers as the fake does

    def call() -> Any:
        return ready.provider().merge_pull_request(REPO, 1, timeout=20.0)

    if ends == "merged":
        assert call().already_merged
        return
    error = failure(call)
    assert isinstance(error, NotMergeableError)
    assert error.outcome is Outcome.NOT_APPLIED
    assert error.retryable is (ends == "never")
    assert error.reason is (NotMergeableReason.PENDING if ends == "never" else NotMergeableReason.UNKNOWN)
    assert len(ready.mutations) == 1


@pytest.mark.parametrize("level", ["scheduled", "started", "finished", "failed", "none"])
@pytest.mark.parametrize("operation", ["list_branches", "create_branch", "commit_files"])
def test_a_repository_that_is_being_imported_is_so_for_a_while(ready: World, operation: str, level: str) -> None:
    """GitLab has the project before it has the repository."""
    off(ready)
    respond(ready, "POST", "/graphql", 200, {"data": {"project": {"repository": None}}}, times=None)
    known = {"import_status": level, "empty_repo": level in ("scheduled", "started")}
    altered(ready, "GET", "/projects/{project}", lambda d: d.update(known))
    call = READS.get(operation) or CALLS[operation][0]

    error = failure(lambda: call(ready.provider()))

    assert isinstance(error, PermissionDeniedError)
    assert error.retryable is (level in ("scheduled", "started"))
    assert ("imported" in (error.hint or "")) is error.retryable


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("place", ["/users/sign_in", "https://sso.example.org/login", "/api/v4/elsewhere"])
def test_a_redirect_of_what_has_not_moved_names_no_new_path(ready: World, status: int, place: str) -> None:
    """A caller who follows moved_to to the same path would loop for ever."""
    ready.fault("redirect", method="POST", endpoint="/branches$", status=status, headers={"Location": place})

    error = failure(lambda: ready.provider().create_branch(REPO, "new", source="main"))

    assert getattr(error, "moved_to", None) is None
    assert "url=" in (error.hint or "")


@pytest.mark.parametrize("status", [200, 202, 203, 206])
@pytest.mark.parametrize("what", ["branch", "rule", "bridge"])
@pytest.mark.parametrize("when", WHEN)
def test_a_deletion_is_done_when_the_host_says_so_or_a_read_does(
    weak: World, status: int, what: str, when: str
) -> None:
    """K2-2, K2-3: any success but a 204 is another host's word."""
    weak.pull_request()
    known = {"method": "DELETE", "status": status, "body": b"{}", "when": when}
    weak.fault("status", endpoint="/branches/", **known)
    weak.fault("status", endpoint="/protected_branches/", nth=2 if what == "bridge" else 1, **known)
    provider = merged(weak)

    def call() -> Any:
        if what == "branch":
            return provider.merge_pull_request(REPO, 1, delete_source_branch=True)
        return provider.protect_branch(REPO, "main")

    if when == "after":
        call()
        return
    error = failure(call)
    assert (type(error), error.outcome) == (UnexpectedResponseError, Outcome.PARTIAL)


MERGE_ERRORS: list[tuple[str, NotMergeableReason]] = [
    ("Conflicts detected during merge", NotMergeableReason.CONFLICT),
    ("Squashing failed: Squash the commits locally, resolve any conflicts, then push", NotMergeableReason.CONFLICT),
    ("Only fast-forward merge is allowed. Please update your source branch", NotMergeableReason.BEHIND),
    ("This project requires squashing commits when merge requests are accepted.", NotMergeableReason.METHOD),
    ("pre-receive hook declined", NotMergeableReason.POLICY),
    ("GL-HOOK-ERR: not on Mondays", NotMergeableReason.POLICY),
    ("This repository has exceeded its size limit of 10 MB", NotMergeableReason.POLICY),
    ("The path 'x' is locked by another user", NotMergeableReason.POLICY),
    ("made up 4711", NotMergeableReason.UNKNOWN),
]


def failing(world: World, message: str, status: int) -> NotMergeableError | GitProviderError:
    """Refuse the merge, and let the merge request tell why."""
    respond(world, "PUT", "/merge$", status, {"message": "Branch cannot be merged"})
    altered(world, "GET", "/merge_requests/{iid}", lambda d: d.update(merge_error=message))
    return failure(lambda: world.provider().merge_pull_request(REPO, 1))


@pytest.mark.parametrize("status", [405, 406, 412, 422, 423])
@pytest.mark.parametrize(("message", "reason"), MERGE_ERRORS)
def test_a_merge_that_failed_is_told_by_what_it_left(
    ready: World, message: str, reason: NotMergeableReason, status: int
) -> None:
    """`Branch cannot be merged` helps nobody; what GitLab wrote into the merge request does."""
    error = failing(ready, message, status)

    assert isinstance(error, NotMergeableError)
    assert (error.reason, error.outcome, error.status) == (reason, Outcome.NOT_APPLIED, status)
    assert message in error.message


@pytest.mark.parametrize("words", [*LOST_WORDS, "Something went wrong during merge: 4:Deadline Exceeded", "14:none"])
def test_a_merge_that_the_storage_lost_is_unknown(ready: World, words: str) -> None:
    """The target branch may have moved. What an earlier attempt left says nothing about a merge that was not tried."""
    tried = failing(ready, words, 422)
    untried = failing(ready, words, 405)

    assert (type(tried), tried.outcome) == (ProviderUnavailableError, Outcome.UNKNOWN)
    assert (type(untried), untried.outcome) == (NotMergeableError, Outcome.NOT_APPLIED)


@pytest.mark.parametrize("text", ["The repository is temporarily read-only", "GitLab is in maintenance mode"])
def test_what_is_closed_for_a_while_is_transient(ready: World, text: str) -> None:
    """The same call is safe, and passes later."""
    respond(ready, "POST", "/commits$", 400, {"message": text})

    assert failure(lambda: commit(ready.provider())).retryable


# 6: left behind


STEPS = [("POST", 1), ("DELETE", 1), ("POST", 2), ("DELETE", 2)]
FAILURES: dict[str, dict[str, Any]] = {
    "reset": {"kind": "reset"},
    "500": {"kind": "status", "status": 500},
    "page": {"kind": "html", "status": 404},
    "storage": {"kind": "status", "status": 400, "body": b'{"message": "14:Connect Failed"}'},
    "cut": {"kind": "cut"},
}


@pytest.mark.parametrize("step", range(len(STEPS)))
@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("again", ["call", "ensure"])
def test_a_failure_and_a_repeat_leave_what_one_call_leaves(
    weak: World, step: int, when: str, kind: str, again: str
) -> None:
    """K6-2: the exact rule is there, the bridge is not, and resolve tells of it in between."""
    method, nth = STEPS[step]
    weak.fault(**FAILURES[kind], method=method, endpoint="/protected_branches", nth=nth, when=when)
    provider = weak.provider()
    lost: GitProviderError | None = None
    try:
        provider.protect_branch(REPO, "main")
    except GitProviderError as error:
        lost = error
    if lost is not None and "mai*n" in rules(weak):
        found = resolve(provider, lost, now=later)
        assert found.verdict is Verdict.CONFLICT
        assert "mai*n" in found.detail

    if again == "call":
        provider.protect_branch(REPO, "main")
    else:
        settling = Settling(sleep=lambda seconds: None, now=later)
        ensure_protection(provider, REPO, "main", settling=settling)

    assert rules(weak) == {"main"}
    held = provider.protection(REPO, "main")
    assert held is not None
    assert BranchProtection().missing_from(held) == ()


@pytest.mark.parametrize("pattern", ["main*", "m*", "*", "ma*"])
def test_a_wildcard_of_somebody_else_is_no_bridge(weak: World, pattern: str) -> None:
    """A rule that this library did not make is never taken away."""
    weak.forge.put_rule(REPO, pattern, BranchProtection())

    weak.provider().protect_branch(REPO, "main")

    assert rules(weak) == {"main", pattern}


# Headers and lists


HEADERS = ["", "many", "-1", "1e3", "\u0663", "12.5", "9" * 40, "Wed, 21 Oct 2026 07:28:00 GMT"]


@pytest.mark.parametrize("value", HEADERS)
def test_a_header_that_is_no_number_turns_no_success_into_an_error(world: World, value: str) -> None:
    """What a limiter writes is about the next request, not about this one."""
    names = ("RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Limit", "Retry-After", "X-RateLimit-Remaining")
    handle = world.fake.handle

    def handled(request: Any) -> Any:
        response = handle(request)
        kept = {k: v for k, v in response.headers.items() if k.lower() != "x-total"}
        return replace(response, headers={**kept, **dict.fromkeys(names, value), "X-Total": value})

    world.fake.handle = handled  # type: ignore[method-assign]  # it answers as the fake does
    events: list[Any] = []
    provider = world.provider(on_event=events.append)
    if not value.isdecimal():
        assert len(provider.list_branches(REPO)) == 1
    assert provider.get_repo(REPO).path == REPO
    assert commit(provider).parent == world.head
    assert events


def deleting(world: World, times: int) -> None:
    """Delete a branch of the first page after each read of that page."""
    handle = world.fake.handle
    left = iter(range(times))

    def handled(request: Any) -> Any:
        response = handle(request)
        if request.path.endswith("/branches") and request.query.get("page") == "1" and next(left, None) is not None:
            world.forge.delete_branch(REPO, min(dict(world.forge.branches(REPO))), bypass=True)
        return response

    world.fake.handle = handled  # type: ignore[method-assign]  # it answers as the fake does


@pytest.mark.parametrize("times", [1, 2, 9])
def test_a_branch_deleted_between_two_pages_hides_no_other(world: World, times: int) -> None:
    """The first of the second page moves to the page that was read, and would be missing."""
    for number in range(150):
        world.branch(f"b{number:03}")
    deleting(world, times)

    if times > 2:
        error = failure(lambda: world.provider().list_branches(REPO))
        assert (type(error), error.retryable) == (UnexpectedResponseError, True)
        return
    found = {branch.name for branch in world.provider().list_branches(REPO)}
    assert found == set(dict(world.forge.branches(REPO)))
