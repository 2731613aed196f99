"""The error tree: its shape, its attributes, and that it survives pickling and copying."""

import copy
import inspect
import pickle
import re
from typing import Any

import pytest

from gitprovider import errors
from gitprovider.errors import GitProviderError, NotMergeableReason, Outcome, Step
from gitprovider.intent import Intent
from gitprovider.models import Branch, PullRequest, PullRequestState

REQUIRED: dict[str, dict[str, Any]] = {
    "UnsupportedOptionError": {"option": "protect_branch.required_checks"},
    "NotMergeableError": {"reason": NotMergeableReason.CONFLICT},
}
CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, GitProviderError)]


def made(kind: type[GitProviderError], **more: Any) -> GitProviderError:
    return kind("it failed", **REQUIRED.get(kind.__name__, {}), **more)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("duplicate", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_every_error_survives_pickling_and_copying(kind: type[GitProviderError], duplicate: Any) -> None:
    """A worker process hands errors to its parent: every attribute arrives, those of the subclass too."""
    error = made(
        kind,
        provider="github",
        operation="create_branch",
        repo="acme/widgets",
        status=500,
        request_id="A1:B2",
        attempts=4,
        retry_after=3.5,
        outcome=Outcome.PARTIAL,
        completed=(Step("create ref", Branch(name="x", sha="a" * 40)),),
        failed_step="create ref",
        hint="look",
        intent=Intent(operation="create_branch", provider="github", repo="acme/widgets"),
    )

    again = duplicate(error)

    assert type(again) is kind
    assert again.__dict__ == error.__dict__
    assert str(again) == str(error)


@pytest.mark.parametrize(
    ("transient", "outcome", "retryable"),
    [
        (True, Outcome.NOT_APPLIED, True),
        (True, Outcome.UNKNOWN, False),
        (True, Outcome.PARTIAL, False),
        (False, Outcome.NOT_APPLIED, False),
    ],
)
def test_retryable_needs_a_passing_cause_and_no_effect(transient: bool, outcome: Outcome, retryable: bool) -> None:
    """Nobody is told that repeating is safe when something may have been applied."""
    error = GitProviderError("x", transient=transient, outcome=outcome)

    assert error.retryable is retryable


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    """The drawing names every class, with its parent by indentation."""
    drawn = re.findall(r"^[│├└─ ]*([A-Z]\w+Error)\b", errors.__doc__ or "", re.MULTILINE)

    assert sorted(drawn) == sorted(kind.__name__ for kind in CLASSES)
    for child in ("HeadMovedError", "NotMergeableError"):
        assert re.search(rf"│   [├└]── {child}", errors.__doc__ or "")
        assert issubclass(getattr(errors, child), errors.ConflictError)


def test_an_invalid_request_is_a_value_error() -> None:
    """Code that checks its input with ``except ValueError`` goes on to work."""
    assert issubclass(errors.InvalidRequestError, ValueError)


OPENED = PullRequest(
    number=8, title="t", description="", state=PullRequestState.OPEN, draft=False, source_branch="s",
    target_branch="main", head_sha="a" * 40, web_url="https://h.example/8",
)  # fmt: skip


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (GitProviderError("no answer"), "no answer"),
        (GitProviderError("no answer", provider="gitlab", operation="get_repo", repo="a/b", attempts=4),
         "gitlab get_repo a/b: no answer (tried 4 times)"),
        (GitProviderError("no", status=502, request_id="A1:B2"), "no (HTTP 502, request A1:B2)"),
        (GitProviderError("lost", repo="a/b", outcome=Outcome.UNKNOWN,
                          intent=Intent(operation="merge_pull_request", provider="github", repo="a/b", number=7)),
         "a/b pull request 7: lost (outcome unknown: do not repeat)"),
        (GitProviderError("no", status=422, outcome=Outcome.PARTIAL, completed=(Step("open pull request", OPENED),)),
         "pull request 8: no (HTTP 422; outcome partial after open pull request: do not repeat)"),
        (errors.AlreadyExistsError("taken", existing=OPENED), "pull request 8: taken"),
    ],
)  # fmt: skip
def test_the_text_says_where_and_what_to_do(error: GitProviderError, text: str) -> None:
    """A line of a log lacks what the host's support asks for, or lets somebody repeat what may be done already."""
    assert str(error) == text
    assert f"outcome='{error.outcome}'" in repr(error)


def test_a_half_made_error_can_be_shown() -> None:
    """A debugger that shows the locals of a frame fails on an error whose constructor has not run."""
    assert str(GitProviderError.__new__(GitProviderError)) == ""
