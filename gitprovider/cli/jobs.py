"""The commands that do more than one operation: bootstrap, demo, resolve and recover."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast

import click

from gitprovider._core.json import plain
from gitprovider.bootstrap import BootstrapReport, StepEvent, StepReport, StepStart, StepWait, bootstrap
from gitprovider.cli import exits
from gitprovider.cli.app import App, examples, global_options, place_in, place_of, store_of
from gitprovider.cli.demo import write_project
from gitprovider.cli.operations import (
    RepoCommand,
    author_option,
    parse_author,
    repo_argument,
    rules_options,
    visibility_option,
)
from gitprovider.errors import GitProviderError, Outcome
from gitprovider.intent import Intent
from gitprovider.models import BranchProtection, Repo, Visibility
from gitprovider.resolve import Verdict, recover, resolve

# The description marks the repository as the demo's. A repository with another one is left alone.
_DEMO_REPO, _DEMO_DESCRIPTION = "acme/widgets", "Created by gitprovider demo"
_RESOLVE_EXITS = {
    Verdict.APPLIED: exits.OK,
    Verdict.NOT_APPLIED: exits.NOT_APPLIED,
    Verdict.CONFLICT: exits.CONFLICT,
    Verdict.UNDECIDED: exits.UNCERTAIN,
}


@click.command(
    "bootstrap",
    cls=RepoCommand,
    epilog=examples(
        "bootstrap acme/widgets --from ./widgets --plan --provider github",
        "bootstrap acme/widgets --from ./widgets --pull-request --required-approvals 1 --provider github",
    ),
)
@repo_argument
@click.option("--from", "source", required=True, type=click.Path(), metavar="DIR", help="The directory with the files.")
@click.option("--description", default="", help="One line.")
@visibility_option
@click.option("--message", "-m", default="Add the project", show_default=True, help="The commit's message.")
@author_option
@click.option(
    "--pull-request", is_flag=True, help="Add a change through a pull request before the branch is protected."
)
@click.option("--no-ignore", is_flag=True, help="Commit what .gitignore and .git/info/exclude name, too.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave out, as a line of .gitignore. Repeatable.")
@click.option("--skip-links", is_flag=True, help="Leave out symbolic links, and say which.")
@click.option("--allow-secrets", is_flag=True, help="Commit files that look like a credential.")
@click.option("--plan", is_flag=True, help="Only show what each step would change, and each file with its size.")
@rules_options
@global_options(hidden=True)
@click.pass_obj
def bootstrap_command(
    app: App,
    /,
    repo: str | None,
    source: str,
    description: str,
    visibility: str,
    message: str,
    author: str | None,
    no_ignore: bool,
    exclude: tuple[str, ...],
    skip_links: bool,
    allow_secrets: bool,
    pull_request: bool,
    plan: bool,
    **rules: Any,
) -> int:
    """Create REPO from a directory: its files, a develop branch, and a protected default branch.

    The command can be run again after any failure. It leaves what exists unchanged and creates what is missing.
    """
    report = _bootstrap(
        app,
        repo,
        source=source,
        description=description,
        visibility=Visibility(visibility),
        message=message,
        author=parse_author(author),
        ignore=not no_ignore,
        exclude=exclude,
        skip_links=skip_links,
        allow_secrets=allow_secrets,
        pull_request=pull_request,
        plan=plan,
        rules=BranchProtection(**rules),
    )
    if app.out.as_json and report.ok:
        app.out.document(report.to_json(), ())
    for path, size in report.files.items() if not app.out.as_json else ():
        app.out.say(f"{path}: {size:,} bytes", indent="  ")
    for path in report.skipped:
        app.out.note(f"left out the symbolic link {path}")
    return _ended(app, report)


@click.command(
    "demo",
    epilog=examples("demo", "demo /tmp/demo --json"),
)
@click.argument("folder", type=click.Path(path_type=Path), default="demo")
@global_options(hidden=True)
@click.pass_obj
def demo(app: App, folder: Path) -> int:
    """Create a project below FOLDER [default: demo] and run bootstrap with a pull request on the local forge.

    Files and a repository that the demo did not make are left alone, and are an error.
    """
    if app.provider_name not in (None, "local"):
        raise click.UsageError("demo runs on the local forge; use bootstrap for another host.")
    app.provider_name = "local"
    app.root = app.root or str(folder / "forge")
    write_project(folder / "files")
    report = _bootstrap(app, _DEMO_REPO, source=str(folder / "files"), description=_DEMO_DESCRIPTION, pull_request=True)
    if not report.ok:
        return _ended(app, report)
    with app.provider() as provider:
        repo, branches = provider.get_repo(_DEMO_REPO), provider.list_branches(_DEMO_REPO)
    app.out.document({**report.to_json(), "repository": plain(repo), "branches": plain(branches)}, ())
    app.out.say("")
    app.out.say(f"The repository is {repo.clone_url}")
    for branch in branches:
        app.out.say(f"{branch.name} is at {branch.sha}{' and protected' if branch.protected else ''}", indent="  ")
    app.out.say("Inspect it with Git:")
    for command in _git_commands(repo):
        app.out.say(command, indent="  ")
    return exits.OK


@click.command(
    "resolve",
    epilog=examples("resolve github-1a2b3c4d-5e6f7a8b --wait", "resolve failure.json --provider github"),
)
@click.argument("evidence", metavar="ID|FILE")
@click.option("--wait", is_flag=True, help="Read the host again until a lost request can no longer take effect.")
@global_options(hidden=True)
@click.pass_obj
def resolve_command(app: App, evidence: str, wait: bool) -> int:
    """Find out, with reads only, whether a mutation took effect.

    ID is what the failed command printed, or `gitprovider recover` lists. FILE is the output of the failed command with
    --json; - is standard input. The exit code is 0 if the mutation was applied, 9 if it was not, 5 if the host changed
    in another way, and 8 if that cannot be decided (yet).
    """
    error_or_intent, name = _evidence(evidence)
    with app.provider(default=name) as provider, app.out.working("reading the host"):
        if isinstance(error_or_intent, _Stored) and error_or_intent.place != place_of(provider):
            raise click.UsageError(
                f"{evidence} is on another host; add the --provider, --url or --root of its command."
            )
        found = error_or_intent.intent if isinstance(error_or_intent, _Stored) else error_or_intent
        resolution = resolve(provider, found, wait=wait)
    rows: list[tuple[str, Any]] = [("verdict", resolution.verdict.value), ("detail", resolution.detail)]
    if resolution.look_again_at is not None:
        rows.append(("check again at", resolution.look_again_at.isoformat(timespec="seconds")))
    app.out.document(resolution.to_json(), rows)
    return _RESOLVE_EXITS[resolution.verdict]


@click.command(
    "recover",
    epilog=examples("recover --provider github --wait", "recover --wait --forget"),
)
@click.option("--wait", is_flag=True, help="Read the host again until lost requests can no longer take effect.")
@click.option("--forget", is_flag=True, help="Forget those that were applied or not applied.")
@global_options(hidden=True)
@click.pass_obj
def recover_command(app: App, wait: bool, forget: bool) -> int:
    """Find out, with reads only, what became of every mutation that this user's commands left unresolved on the host.

    The exit code is 0 if each was applied or was not applied, 5 if one conflicts with what the host has, and 8 if one
    is undecided.
    """
    with app.provider() as provider, app.out.working("reading the host"):
        store = app.store
        found = [] if store is None else recover(provider, store, wait=wait)
    rows = [
        (one.key, one.intent.operation, one.intent.repo, one.resolution.verdict.value, one.resolution.detail)
        for one in found
    ]
    document = [{"id": one.key, "intent": one.intent.to_json(), **one.resolution.to_json()} for one in found]
    app.out.document(document, rows, columns=("id", "operation", "repository", "verdict", "detail"))
    verdicts = {one.resolution.verdict for one in found}
    for one in found if forget else ():
        if store is not None and one.resolution.verdict in (Verdict.APPLIED, Verdict.NOT_APPLIED):
            store.done(one.key)
    if Verdict.UNDECIDED in verdicts:
        return exits.UNCERTAIN
    return exits.CONFLICT if Verdict.CONFLICT in verdicts else exits.OK


COMMANDS = (bootstrap_command, demo, resolve_command, recover_command)


def _bootstrap(app: App, repo: str | None, **arguments: Any) -> BootstrapReport:
    with app.repository(repo) as (provider, path), app.out.working(f"creating {path}"):
        steps: list[StepReport] = []
        app.out.so_far = {"provider": provider.name, "repo": path, "steps": []}

        def on_step(event: StepEvent) -> None:
            match event:
                case StepStart():
                    app.out.progress(f"{event.name} {event.target}")
                case StepWait():
                    cause = "not visible yet" if event.error is None else event.error.message
                    app.out.note(f"{event.name} {event.target}: {cause}; next attempt in {event.wait:.1f} s")
                case StepReport():
                    steps.append(event)
                    app.out.so_far = {**app.out.so_far, "steps": [step.to_json() for step in steps]}
                    app.out.step(event.status.value, event.name, event.target, event.detail)

        return bootstrap(provider, path, on_step=on_step, key=f"{place_of(provider)}-bootstrap:{path}", **arguments)


def _ended(app: App, report: BootstrapReport) -> int:
    if report.error is None:
        return exits.OK
    app.out.so_far = report.to_json()
    app.fail(report.error)
    return exits.code_of(report.error)


def _git_commands(repo: Repo) -> tuple[str, ...]:
    url = shlex.quote(repo.clone_url)
    return (
        f"git clone {url} widgets",
        f"git -C {url} log --graph --oneline --all",
        f"git -C {url} fsck --strict",
    )


class _Stored(NamedTuple):
    """An intent that a command stored, and the host that it is of."""

    intent: Intent
    place: str


def _evidence(given: str) -> tuple[GitProviderError | Intent | _Stored, str]:
    """Return what a file or the name of a stored mutation tells, and the provider's name."""
    if given == "-" or os.path.exists(given):
        try:
            with click.open_file(given, encoding="utf-8") as file:
                return _read_evidence(cast(TextIO, file))
        except OSError as exc:
            raise click.UsageError(f"{given} cannot be read: {exc.strerror}") from None
    intent = store_of(given).get(given) if re.match(r"[a-z]+-[0-9a-f]{8}-", given) else None
    if intent is None:
        raise click.UsageError(
            f"{given!r} is neither a file nor the id of an unresolved mutation; see `gitprovider recover`."
        )
    return _Stored(intent, place_in(given)), intent.provider


def _read_evidence(file: TextIO) -> tuple[GitProviderError | Intent, str]:
    """Read a failure that a command printed with ``--json``, or a stored intent. Also return the provider's name."""
    try:
        record = json.load(file)
        if not isinstance(record, dict):
            raise ValueError("it is not a JSON object")
        record = record.get("error", record)
        stored = record.get("intent", record if "operation" in record and "type" not in record else None)
        if stored is None:
            raise ValueError("it is not a failure of a mutation: it has no intent")
        intent = Intent.from_json(stored)
        if stored is record:
            return intent, intent.provider
        outcome = Outcome(record["outcome"])
        return GitProviderError(str(record.get("message", "")), outcome=outcome, intent=intent), intent.provider
    except (ValueError, KeyError, AttributeError, TypeError) as exc:
        raise click.UsageError(f"FILE cannot be used: {exc}") from None
