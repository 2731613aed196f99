"""The arguments of the contract's operations, checked as a whole: the same on every host, and before any request.

Each function takes an operation's arguments, raises InvalidRequestError naming the one that is wrong, and returns those
that have a normal form (an enum's member, a sha in lower case, a tuple). A provider of your own may use them too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gitprovider import checks
from gitprovider._core.edits import read_changes
from gitprovider.checks import refuse
from gitprovider.models import Author, BranchProtection, FileChange, MergeMethod, Visibility


def create_repo(repo: Any, *, description: Any, visibility: Any, auto_init: Any) -> Visibility:
    """Check the arguments of create_repo, and return the visibility."""
    checks.check_repo_path(repo)
    checks.check_text("description", description)
    checks.check_bool("auto_init", auto_init)
    return checks.check_enum("visibility", visibility, Visibility)


def create_branch(repo: Any, name: Any, *, source: Any) -> str:
    """Check the arguments of create_branch, and return the source."""
    checks.check_repo_path(repo)
    checks.check_branch("name", name)
    return checks.check_source("source", source)


def protect_branch(repo: Any, branch: Any, rules: Any) -> None:
    """Check the arguments of protect_branch."""
    checks.check_repo_path(repo)
    checks.check_branch("branch", branch)
    if not isinstance(rules, BranchProtection):
        refuse("rules", f"must be a BranchProtection, not {type(rules).__name__}")


def commit_files(
    repo: Any, branch: Any, changes: Any, *, message: Any, author: Any, expected_head: Any
) -> tuple[tuple[FileChange, ...], str | None]:
    """Check the arguments of commit_files, read its files, and return the changes and the expected head."""
    checks.check_repo_path(repo)
    checks.check_branch("branch", branch)
    checks.check_text("message", message, empty=False, multiline=True)
    if author is not None and not isinstance(author, Author):
        refuse("author", f"must be an Author or None, not {type(author).__name__}")
    head = _optional_sha(expected_head)
    return read_changes(changes), head


def open_pull_request(
    repo: Any,
    *,
    source_branch: Any,
    target_branch: Any,
    title: Any,
    description: Any,
    draft: Any,
    labels: Any,
    reviewers: Any,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Check the arguments of open_pull_request, and return the labels and the reviewers, each once."""
    checks.check_repo_path(repo)
    checks.check_pull_request_branch("source_branch", source_branch)
    checks.check_pull_request_branch("target_branch", target_branch)
    if source_branch == target_branch:
        refuse("target_branch", "is the source branch")
    checks.check_text("title", title, empty=False, limit=255)
    checks.check_text("description", description, multiline=True)
    checks.check_bool("draft", draft)
    return _names("labels", labels), _names("reviewers", reviewers)


def merge_pull_request(
    repo: Any,
    number: Any,
    *,
    method: Any,
    expected_head: Any,
    message: Any,
    delete_source_branch: Any,
    timeout: Any,
) -> tuple[MergeMethod, str | None]:
    """Check the arguments of merge_pull_request, and return the method and the expected head."""
    checks.check_repo_path(repo)
    checks.check_int("number", number, least=1)
    merge_method = checks.check_enum("method", method, MergeMethod)
    if message is not None:
        checks.check_text("message", message, empty=False, multiline=True)
        if merge_method is MergeMethod.REBASE:
            refuse("message", "has no place: a rebase makes no commit of its own")
    checks.check_bool("delete_source_branch", delete_source_branch)
    checks.check_seconds("timeout", timeout)
    return merge_method, _optional_sha(expected_head)


def _optional_sha(value: Any) -> str | None:
    return None if value is None else checks.check_sha("expected_head", value)


def _names(argument: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        refuse(argument, f"must be a sequence of names, not {type(value).__name__}")
    return tuple(dict.fromkeys(checks.check_text(argument, name, empty=False, limit=255) for name in value))
