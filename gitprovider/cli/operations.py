"""The contract's eight operations, and the reads of pull requests, as commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from gitprovider._core.json import plain
from gitprovider.cli.app import App, examples, global_options
from gitprovider.models import (
    Author,
    BranchProtection,
    DeleteFile,
    FileChange,
    MergeMethod,
    MoveFile,
    PullRequestState,
    PutFile,
    Visibility,
)

_F = TypeVar("_F", bound=Callable[..., Any])
repo_argument = click.argument("repo", metavar="[REPO]", required=False)


class RepoCommand(click.Command):
    """A command whose first argument, REPO, may be left out, also before an argument that is required."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. A single one is the one that is required."""
        rest = super().parse_args(ctx, args)
        needed = next((param for param in self.get_params(ctx) if param.metavar in _NEEDED), None)
        if needed is None or needed.name is None or ctx.resilient_parsing or ctx.params[needed.name] is not None:
            return rest
        if (only := ctx.params["repo"]) is None:
            raise click.MissingParameter(ctx=ctx, param=needed)
        ctx.params |= {"repo": None, needed.name: needed.type_cast_value(ctx, only)}
        return rest


_NEEDED = ("NAME", "BRANCH", "NUMBER")
_name, _branch, _number = (
    click.argument(metavar.lower(), metavar=metavar, required=False, type=kind)
    for metavar, kind in zip(_NEEDED, (str, str, int), strict=True)
)


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


@click.command(
    "get-repo",
    cls=RepoCommand,
    epilog=examples(
        "get-repo acme/widgets --provider github",
        "get-repo https://gitlab.com/acme/platform/widgets",
        "get-repo --json",
    ),
)
@repo_argument
@global_options(hidden=True)
@click.pass_obj
def get_repo(app: App, repo: str | None) -> None:
    """Show a repository."""
    with app.repository(repo) as (provider, path), app.out.working(f"reading {path}"):
        found = provider.get_repo(path)
    app.out.value(found)


@click.command(
    "list-branches",
    cls=RepoCommand,
    epilog=examples("list-branches acme/widgets --provider gitlab", "list-branches --json | jq -r '.[].name'"),
)
@repo_argument
@global_options(hidden=True)
@click.pass_obj
def list_branches(app: App, repo: str | None) -> None:
    """List every branch with its head, sorted by name."""
    with app.repository(repo) as (provider, path), app.out.working(f"reading the branches of {path}"):
        branches = provider.list_branches(path)
    rows = [(branch.name, branch.sha, "protected" if branch.protected else "") for branch in branches]
    app.out.document(plain(branches), rows, columns=("branch", "head", "protection"))


@click.command(
    "create-repo",
    cls=RepoCommand,
    epilog=examples(
        "create-repo acme/widgets --provider github --description 'All our widgets' --auto-init",
        "create-repo acme/widgets --provider gitlab --visibility internal --url https://git.example.org",
    ),
)
@repo_argument
@click.option("--description", default="", help="One line.")
@visibility_option
@click.option("--auto-init", is_flag=True, help="Create a first commit with a README.")
@global_options(hidden=True)
@click.pass_obj
def create_repo(app: App, repo: str | None, description: str, visibility: str, auto_init: bool) -> None:
    """Create a repository."""
    with app.repository(repo) as (provider, path), app.out.working(f"creating {path}"):
        made = provider.create_repo(
            path, description=description, visibility=Visibility(visibility), auto_init=auto_init
        )
    app.out.value(made)


@click.command(
    "create-branch",
    cls=RepoCommand,
    epilog=examples(
        "create-branch acme/widgets release --source main --provider github", "create-branch release --source main"
    ),
)
@repo_argument
@_name
@click.option("--source", required=True, help="An existing branch, or a full commit sha.")
@global_options(hidden=True)
@click.pass_obj
def create_branch(app: App, repo: str | None, name: str, source: str) -> None:
    """Create the branch NAME. An existing branch is never moved."""
    with app.repository(repo) as (provider, path), app.out.working(f"creating {name} in {path}"):
        made = provider.create_branch(path, name, source=source)
    app.out.value(made)


@click.command(
    "protect-branch",
    cls=RepoCommand,
    epilog=examples(
        "protect-branch acme/widgets main --required-approvals 1 --provider github",
        "protect-branch main --required-check ci --enforce-admins",
    ),
)
@repo_argument
@_branch
@rules_options
@global_options(hidden=True)
@click.pass_obj
def protect_branch(app: App, /, repo: str | None, branch: str, **rules: Any) -> None:
    """Protect BRANCH at least as much as requested, and show its protection. No existing rule is weakened."""
    with app.repository(repo) as (provider, path), app.out.working(f"protecting {branch} of {path}"):
        protection = provider.protect_branch(path, branch, BranchProtection(**rules))
    app.out.value(protection)


@click.command(
    "commit-files",
    cls=RepoCommand,
    epilog=examples(
        "commit-files acme/widgets main -m 'Add the logo' --put assets/logo.png=logo.png --provider github",
        "commit-files topic -m 'Tidy up' --delete old.txt --move a.txt=docs/a.txt",
    ),
)
@repo_argument
@_branch
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
    repo: str | None,
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
        name, file = _pair("--put", put, "PATH=FILE")
        changes.append(PutFile(path=name, content=Path(file), executable=modes.pop(name, None)))
    if modes:
        raise click.UsageError(f"{min(modes)!r} has a mode but no --put; add --put {min(modes)}=FILE.")
    changes += [DeleteFile(path=name) for name in deletes]
    for move in moves:
        name, to = _pair("--move", move, "FROM=TO")
        changes.append(MoveFile(path=name, to=to))
    who = parse_author(author)
    with app.repository(repo) as (provider, path), app.out.working(f"committing to {branch} of {path}"):
        commit = provider.commit_files(path, branch, changes, message=message, author=who, expected_head=expected_head)
    app.out.value(commit)


@click.command(
    "open-pull-request",
    cls=RepoCommand,
    epilog=examples(
        "open-pull-request --source-branch topic --target-branch main --title 'A change'",
        "open-pull-request --source-branch topic --target-branch main --title 'A change' --body-file - < body.md",
    ),
)
@repo_argument
@click.option("--source-branch", required=True)
@click.option("--target-branch", required=True)
@click.option("--title", required=True)
@click.option("--description", default="", help="Markdown.")
@click.option(
    "--body-file", type=click.File(encoding="utf-8"), metavar="FILE", help="Read the description; - is standard input."
)
@click.option("--draft", is_flag=True)
@click.option("--label", "labels", multiple=True, help="Can be repeated.")
@click.option("--reviewer", "reviewers", multiple=True, help="A user name; can be repeated.")
@global_options(hidden=True)
@click.pass_obj
def open_pull_request(app: App, /, repo: str | None, body_file: TextIO | None, **request: Any) -> None:
    """Open a pull request (GitLab: merge request)."""
    if body_file is not None:
        if request["description"]:
            raise click.UsageError("--description and --body-file are given; give one of them.")
        try:
            request["description"] = body_file.read()
        except UnicodeDecodeError:
            raise click.UsageError(f"--body-file {body_file.name} is not UTF-8.") from None
    with app.repository(repo) as (provider, path), app.out.working(f"opening a pull request in {path}"):
        opened = provider.open_pull_request(path, **request)
    app.out.value(opened)


@click.command(
    "merge-pull-request",
    cls=RepoCommand,
    epilog=examples(
        "merge-pull-request acme/widgets 7 --method squash --provider github",
        "merge-pull-request 7 --delete-source-branch",
    ),
)
@repo_argument
@_number
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
def merge_pull_request(app: App, /, repo: str | None, number: int, method: str, wait: float, **request: Any) -> None:
    """Merge pull request NUMBER at a known head."""
    with app.repository(repo) as (provider, path), app.out.working(f"merging pull request {number} of {path}"):
        merged = provider.merge_pull_request(path, number, method=MergeMethod(method), timeout=wait, **request)
    app.out.value(merged)


@click.command(
    "view-pull-request",
    cls=RepoCommand,
    epilog=examples("view-pull-request acme/widgets 7 --provider github", "view-pull-request 7 --json"),
)
@repo_argument
@_number
@global_options(hidden=True)
@click.pass_obj
def view_pull_request(app: App, repo: str | None, number: int) -> None:
    """Show pull request NUMBER."""
    with app.repository(repo) as (provider, path), app.out.working(f"reading pull request {number} of {path}"):
        found = provider.get_pull_request(path, number)
    app.out.value(found)


@click.command(
    "list-pull-requests",
    cls=RepoCommand,
    epilog=examples(
        "list-pull-requests acme/widgets --source-branch topic --provider github",
        "list-pull-requests --source-branch topic --state open",
    ),
)
@repo_argument
@click.option("--source-branch", required=True)
@click.option("--target-branch", help="[default: the repository's default branch]")
@click.option("--state", type=click.Choice([state.value for state in PullRequestState]), help="[default: any]")
@global_options(hidden=True)
@click.pass_obj
def list_pull_requests(
    app: App, repo: str | None, source_branch: str, target_branch: str | None, state: str | None
) -> None:
    """List the pull requests from one branch into another."""
    with app.repository(repo) as (provider, path), app.out.working(f"reading the pull requests of {path}"):
        found = provider.find_pull_requests(
            path,
            source_branch=source_branch,
            target_branch=target_branch or provider.get_repo(path).default_branch,
            state=None if state is None else PullRequestState(state),
        )
    rows = [(pull.number, pull.state.value, pull.title, pull.head_sha) for pull in found]
    app.out.document(plain(found), rows, columns=("number", "state", "title", "head"))


COMMANDS = (
    get_repo,
    list_branches,
    view_pull_request,
    list_pull_requests,
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
