"""The command ``gitprovider``: its global options, and the mapping of failures to exit codes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from click.shell_completion import get_completion_class

from gitprovider.cli import exits, jobs, operations
from gitprovider.cli.app import App, examples, global_options
from gitprovider.cli.output import Output, OutputLostError
from gitprovider.connect import TOKEN_VARIABLES
from gitprovider.errors import GitProviderError, InvalidRequestError
from gitprovider.events import OperationEvent

_NAME = "gitprovider"
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class InterruptedCommandError(Exception):
    """Ctrl+C interrupted a command."""


class _Program(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Ctrl+C raises InterruptedCommandError, because click would print an empty line for it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise InterruptedCommandError from None


@click.group(
    cls=_Program,
    context_settings=_CONTEXT,
    no_args_is_help=False,
    epilog=examples("--provider github get-repo acme/widgets", "list-branches https://gitlab.com/acme/widgets", "demo"),
)
@global_options()
@click.version_option(package_name="gitprovider", message="%(version)s")
def cli() -> None:
    """Manage repositories on GitHub, GitLab and a local forge with the same eight operations.

    Reads are retried on transient failures. A mutation is sent once. If its response is lost, the exit code is 8, and
    the command that is printed finds out whether it took effect. `gitprovider recover` does so after a kill.

    Exit codes: 0 done, 2 usage or invalid request, 3 not found, 4 authentication or permission, 5 exists, conflict or
    not mergeable, 6 rate limited, 7 unavailable, 8 outcome unknown or partial, 9 not applied (`resolve`),
    130 interrupted, 143 terminated.

    The provider is the one of --provider, of REPO's host if REPO is a URL, of GITPROVIDER_PROVIDER, or of the remote
    origin of the clone that the command runs in. In a clone, REPO may be left out. The global options may also follow
    the command.
    """


@cli.command("completion", epilog=examples("completion bash > ~/.local/share/bash-completion/completions/gitprovider"))
@click.argument("shell", type=click.Choice(("bash", "fish", "zsh")))
@global_options(hidden=True)
@click.pass_obj
def completion(app: App, shell: str) -> None:
    """Print the script that completes commands and options in SHELL."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"this version of click has no completion for {shell}.")
    script = kind(cli, {}, _NAME, f"_{_NAME}_COMPLETE".upper()).source()
    if app.out.as_json:
        app.out.document({"shell": shell, "script": script}, ())
    else:
        app.out.text(script)


for _command in (*operations.COMMANDS, *jobs.COMMANDS):
    cli.add_command(_command)


def run(args: Sequence[str]) -> int:
    """Run one command and return its exit code. It raises nothing except KeyboardInterrupt."""
    # A character that the locale cannot encode must not turn a success into a failure.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    out = Output(secret for name in TOKEN_VARIABLES if (secret := os.environ.get(name)))
    try:
        with _terminable() as signals:
            code = _run(args, out)
            return exits.TERMINATED if code == exits.INTERRUPTED and signals else code
    except OutputLostError as exc:
        # The rest of the buffer must not raise again when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(exc.cause, BrokenPipeError):
            return exits.BROKEN_PIPE
        out.complain(f"error: the output could not be written: {exc}")
        return exits.BUG


@contextmanager
def _terminable() -> Iterator[list[int]]:
    """Let SIGTERM end the command as Ctrl+C does. Yields the list of the signals that came."""
    came: list[int] = []

    def stop(signum: int, frame: object) -> None:
        came.append(signum)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(args: Sequence[str], out: Output) -> int:
    app = App(out)
    try:
        result: Any = cli.main(list(args), prog_name=_NAME, obj=app, standalone_mode=False)
        return result if isinstance(result, int) else exits.OK
    except SystemExit as exc:  # how click ends after it has answered a shell that completes a command
        return exits.OK if exc.code is None else int(exc.code)
    except click.ClickException as exc:
        out.as_json |= "--json" in args
        app.fail(InvalidRequestError(exc.format_message(), hint=_usage_hint(exc)))
        return exits.USAGE
    except GitProviderError as exc:
        app.fail(exc)
        return exits.code_of(exc)
    except (InterruptedCommandError, click.Abort):
        app.fail(exits.ended("interrupted", _running(out, KeyboardInterrupt.__name__)), kind="Interrupted")
        return exits.INTERRUPTED
    except OutputLostError:
        raise
    except Exception as exc:
        return _bug(exc, app)


def _running(out: Output, error: str) -> OperationEvent | None:
    """Return the operation that an exception of that class ended, or None if there was none."""
    return out.last if out.last is not None and out.last.error == error else None


def _usage_hint(exc: click.ClickException) -> str | None:
    ctx = exc.ctx if isinstance(exc, click.UsageError) else None
    return f"see `{ctx.command_path} --help`" if ctx is not None else None


def _bug(exc: Exception, app: App) -> int:
    hint = "this is a bug in gitprovider; please report it with the command that you ran"
    name = type(exc).__name__
    app.fail(exits.ended(f"{name}: {exc}", _running(app.out, name), hint), kind="InternalError")
    return exits.BUG
