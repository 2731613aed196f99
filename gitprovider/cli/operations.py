"""The contract's eight operations as commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from gitprovider._core.json import plain
from gitprovider.cli.app import App, global_options
from gitprovider.models import (
    Author,
    BranchProtection,
    DeleteFile,
    FileChange,
    MergeMethod,
    MoveFile,
    PutFile,
    Visibility,
)

_F = TypeVar("_F", bound=Callable[..., Any])
_REPO = click.argument("repo", metavar="REPO")


_RULES = (
    click.option(
        "--require-pull-request/--no-require-pull-request",
        default=True,
        show_default=True,
        help="Nobody can commit to the branch directly.",
    ),
    click.option("--required-approvals", type=click.IntRange(0, 6), default=0, show_default=True, metavar="N"),
    click.option("--required-check", "required_checks", multiple=True, metavar="NAME", help="Can be repeated."),
    click.option("--dismiss-stale-approvals", is_flag=True, help="A new commit dismisses approvals."),
    click.option("--require-code-owner-review", is_flag=True, help="Owners in CODEOWNERS must approve."),
    click.option("--require-linear-history", is_flag=True, help="Merge commits are not allowed."),
    click.option("--enforce-admins", is_flag=True, help="The rules apply to administrators too."),
    click.option(
        "--block-force-push/--no-block-force-push",
        default=True,
        show_default=True,
        help="History cannot be rewritten.",
    ),
    click.option("--block-deletion", is_flag=True, help="The branch cannot be deleted."),
)


def rules_options(function: _F) -> _F:
    """Add an option for each field of BranchProtection."""
    for option in reversed(_RULES):
        function = option(function)
    return function


author_option = click.option(
    "--author", metavar="'NAME <EMAIL>'", help="The commit's author [default: the credential's user]."
)
visibility_option = click.option(
    "--visibility",
    type=click.Choice([v.value for v in Visibility]),
    default=Visibility.PRIVATE.value,
    show_default=True,
)


@click.command("get-repo")
@_REPO
@global_options(hidden=True)
@click.pass_obj
def get_repo(app: App, repo: str) -> None:
    """Show a repository."""
    with app.provider() as provider, app.out.working(f"reading {repo}"):
        found = provider.get_repo(repo)
    app.out.value(found)


@click.command("list-branches")
@_REPO
@global_options(hidden=True)
@click.pass_obj
def list_branches(app: App, repo: str) -> None:
    """List every branch with its head, sorted by name."""
    with app.provider() as provider, app.out.working(f"reading the branches of {repo}"):
        branches = provider.list_branches(repo)
    rows = [(branch.name, branch.sha, "protected" if branch.protected else "") for branch in branches]
    app.out.document(plain(branches), rows, columns=("branch", "head", "protection"))


@click.command("create-repo")
@_REPO
@click.option("--description", default="", help="One line.")
@visibility_option
@click.option("--auto-init", is_flag=True, help="Create a first commit with a README.")
@global_options(hidden=True)
@click.pass_obj
def create_repo(app: App, repo: str, description: str, visibility: str, auto_init: bool) -> None:
    """Create a repository."""
    with app.provider() as provider, app.out.working(f"creating {repo}"):
        made = provider.create_repo(
            repo, description=description, visibility=Visibility(visibility), auto_init=auto_init
        )
    app.out.value(made)


@click.command("create-branch")
@_REPO
@click.argument("name")
@click.option("--source", required=True, help="An existing branch, or a full commit sha.")
@global_options(hidden=True)
@click.pass_obj
def create_branch(app: App, repo: str, name: str, source: str) -> None:
    """Create the branch NAME. An existing branch is never moved."""
    with app.provider() as provider, app.out.working(f"creating {name} in {repo}"):
        made = provider.create_branch(repo, name, source=source)
    app.out.value(made)


@click.command("protect-branch")
@_REPO
@click.argument("branch")
@rules_options
@global_options(hidden=True)
@click.pass_obj
def protect_branch(app: App, /, repo: str, branch: str, **rules: Any) -> None:
    """Protect BRANCH at least as much as requested, and show its protection. No existing rule is weakened."""
    with app.provider() as provider, app.out.working(f"protecting {branch} of {repo}"):
        protection = provider.protect_branch(repo, branch, BranchProtection(**rules))
    app.out.value(protection)


@click.command("commit-files")
@_REPO
@click.argument("branch")
@click.option("--put", "puts", multiple=True, metavar="PATH=FILE", help="Write FILE to PATH in the repository.")
@click.option("--delete", "deletes", multiple=True, metavar="PATH", help="Delete PATH.")
@click.option("--move", "moves", multiple=True, metavar="FROM=TO", help="Move a file.")
@click.option("--executable", multiple=True, metavar="PATH", help="Set the executable bit of a --put PATH.")
@click.option(
    "--not-executable", multiple=True, metavar="PATH", help="Clear the executable bit; by default the mode is kept."
)
@click.option("--message", "-m", required=True)
@author_option
@click.option("--expected-head", metavar="SHA", help="Commit only while the branch is at this commit.")
@global_options(hidden=True)
@click.pass_obj
def commit_files(
    app: App,
    repo: str,
    branch: str,
    puts: Sequence[str],
    deletes: Sequence[str],
    moves: Sequence[str],
    executable: Sequence[str],
    not_executable: Sequence[str],
    message: str,
    author: str | None,
    expected_head: str | None,
) -> None:
    """Commit all changes to BRANCH at once."""
    if both := set(executable) & set(not_executable):
        raise click.UsageError(f"{min(both)!r} is given with --executable and --not-executable; give one of them.")
    modes = {**dict.fromkeys(executable, True), **dict.fromkeys(not_executable, False)}
    changes: list[FileChange] = []
    for put in puts:
        path, file = _pair("--put", put, "PATH=FILE")
        changes.append(PutFile(path=path, content=Path(file), executable=modes.pop(path, None)))
    if modes:
        raise click.UsageError(f"{min(modes)!r} has a mode but no --put; add --put {min(modes)}=FILE.")
    changes += [DeleteFile(path=path) for path in deletes]
    for move in moves:
        path, to = _pair("--move", move, "FROM=TO")
        changes.append(MoveFile(path=path, to=to))
    who = parse_author(author)
    with app.provider() as provider, app.out.working(f"committing to {branch} of {repo}"):
        commit = provider.commit_files(repo, branch, changes, message=message, author=who, expected_head=expected_head)
    app.out.value(commit)


@click.command("open-pull-request")
@_REPO
@click.option("--source-branch", required=True)
@click.option("--target-branch", required=True)
@click.option("--title", required=True)
@click.option("--description", default="", help="Markdown.")
@click.option("--draft", is_flag=True)
@click.option("--label", "labels", multiple=True, help="Can be repeated.")
@click.option("--reviewer", "reviewers", multiple=True, help="A user name; can be repeated.")
@global_options(hidden=True)
@click.pass_obj
def open_pull_request(app: App, /, repo: str, **request: Any) -> None:
    """Open a pull request (GitLab: merge request)."""
    with app.provider() as provider, app.out.working(f"opening a pull request in {repo}"):
        opened = provider.open_pull_request(repo, **request)
    app.out.value(opened)


@click.command("merge-pull-request")
@_REPO
@click.argument("number", type=int)
@click.option(
    "--method", type=click.Choice([m.value for m in MergeMethod]), default=MergeMethod.MERGE.value, show_default=True
)
@click.option("--expected-head", metavar="SHA", help="Merge only while the source branch is at this commit.")
@click.option("--message", "-m", help="The message of the merge or squash commit.")
@click.option("--delete-source-branch", is_flag=True)
@click.option(
    "--wait", type=click.FloatRange(min=0), default=30.0, show_default=True, metavar="SECONDS",
    help="How long to wait while the host computes whether the pull request can be merged.",
)  # fmt: skip
@global_options(hidden=True)
@click.pass_obj
def merge_pull_request(app: App, /, repo: str, number: int, method: str, wait: float, **request: Any) -> None:
    """Merge pull request NUMBER at a known head."""
    with app.provider() as provider, app.out.working(f"merging pull request {number} of {repo}"):
        merged = provider.merge_pull_request(repo, number, method=MergeMethod(method), timeout=wait, **request)
    app.out.value(merged)


COMMANDS = (
    get_repo,
    list_branches,
    create_repo,
    create_branch,
    protect_branch,
    commit_files,
    open_pull_request,
    merge_pull_request,
)


def _pair(option: str, text: str, form: str) -> tuple[str, str]:
    left, equals, right = text.partition("=")
    if not (left and equals and right):
        raise click.UsageError(f"{option} {text!r} must be {form}.")
    return left, right


def parse_author(text: str | None) -> Author | None:
    """Parse ``NAME <EMAIL>`` into an Author. Return None for None."""
    if text is None:
        return None
    match = re.fullmatch(r"(?P<name>[^<>]+)<(?P<email>[^<>]+)>", text.strip())
    if match is None or not match["name"].strip():
        raise click.UsageError(f"--author {text!r} must be 'NAME <EMAIL>'.")
    return Author(name=match["name"].strip(), email=match["email"])
