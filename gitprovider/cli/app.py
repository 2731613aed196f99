"""The global options of every command, and the provider that they select."""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from gitprovider._core.claims import remembered
from gitprovider._core.store import SqliteIntentStore
from gitprovider.cli.output import Output
from gitprovider.connect import PROVIDERS, Provider, connect
from gitprovider.errors import GitProviderError, Outcome
from gitprovider.retry import RetryOptions

TOKEN_VARIABLES = ("GITPROVIDER_TOKEN", "GITHUB_TOKEN", "GITLAB_TOKEN")
DEFAULT_RETRIES = RetryOptions().max_attempts - 1
_F = TypeVar("_F", bound=Callable[..., Any])


class App:
    """The values of the global options, and the output. An option that was not given is None.

    Attributes:
        provider_name, root, url, retries, timeout: the options.
        out: the command's output.
        store: where mutations of the provider's host are remembered; None before there is a provider.
    """

    def __init__(self, out: Output) -> None:
        self.out = out
        self.provider_name: str | None = None
        self.root: str | None = None
        self.url: str | None = None
        self.retries: int | None = None
        self.timeout: int | None = None
        self.store: SqliteIntentStore | None = None
        self._key = ""

    @contextmanager
    def provider(self, default: str | None = None) -> Iterator[Provider]:
        """Build the provider that the options name, or ``default``, or GITPROVIDER_PROVIDER, or the local one.

        A mutation in the block is remembered until its result is known.
        """
        name = self.provider_name or default or os.environ.get("GITPROVIDER_PROVIDER") or "local"
        remote = name != "local"
        if self.url is not None and not remote:
            raise click.UsageError("--url is for github and gitlab; the local forge takes --root.")
        if self.root is not None and remote:
            raise click.UsageError(f"--root is for the local forge; {name} takes --url.")
        # The local forge has no transient failures, so retries would not help.
        retry = RetryOptions(max_attempts=1 + (DEFAULT_RETRIES if self.retries is None else self.retries))
        with connect(
            name,
            root=None if remote else self.root or os.environ.get("GITPROVIDER_ROOT") or _user_root(),
            url=self.url,
            timeout=self.timeout,
            retry=retry if remote else None,
            on_event=self.out.on_event,
        ) as provider:
            provider.intents = self.store = SqliteIntentStore(_store_path(place := place_of(provider)))
            self._key = f"{place}-{secrets.token_hex(4)}"
            with remembered(self.store, self._key):
                yield provider

    def fail(self, error: GitProviderError, *, kind: str | None = None) -> None:
        """Print a failure, and for a mutation that may have changed something the command that finds out.

        Args:
            kind: what the document calls it, instead of the class of the error.
        """
        self.out.failure(error, kind=kind, resolve=self._resolve_command(error))

    def _resolve_command(self, error: GitProviderError) -> str | None:
        intent = error.intent
        if error.outcome is Outcome.NOT_APPLIED or intent is None or self.store is None:
            return None
        try:
            left = {(found.operation, found.repo, found.sent_at): key for key, found in self.store.unresolved()}
            key = left.get((intent.operation, intent.repo, intent.sent_at))
            if key is None:  # only the last step of it failed, or it had been done before
                self.store.put(key := self._key, intent)
        except GitProviderError:
            return None
        given = {"--provider": self.provider_name, "--root": self.root, "--url": self.url}
        options = [part for name, value in given.items() if value is not None for part in (name, value)]
        return shlex.join(["gitprovider", "resolve", key, "--wait", *options])


def place_of(provider: Provider) -> str:
    """Return the name of a provider's host in the names of mutations, such as ``github-1a2b3c4d``."""
    return f"{provider.name}-{hashlib.sha256(repr(provider).encode()).hexdigest()[:8]}"


def place_in(name: str) -> str:
    """Return the name of the host with which the name of a mutation begins."""
    return "-".join(name.split("-")[:2])


def store_of(name: str) -> SqliteIntentStore:
    """Return the store that has the mutation of that name."""
    return SqliteIntentStore(_store_path(place_in(name)))


def _store_path(place: str) -> str:
    return os.path.join(_user_folder("XDG_STATE_HOME", "~/.local/state"), f"{place}.sqlite3")


def _user_root() -> str:
    """Return the folder of the user's own forge."""
    return _user_folder("XDG_DATA_HOME", "~/.local/share")


def _user_folder(variable: str, default: str) -> str:
    """Return a folder of the user's own (https://specifications.freedesktop.org/basedir/latest/)."""
    # A variable that is not an absolute path is ignored.
    base = os.environ.get(variable, "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser(default), "gitprovider")


def _store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    app: App = ctx.find_root().obj
    if param.name in ("as_json", "debug"):
        setattr(app.out, param.name, getattr(app.out, param.name) or value)
    elif value is not None and param.name is not None:
        setattr(app, param.name, value)


_OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("--provider", "provider_name"),
        {
            "type": click.Choice(PROVIDERS),
            "help": "The kind of host [default: GITPROVIDER_PROVIDER, or local].",
        },
    ),
    (
        ("--root",),
        {
            "type": click.Path(file_okay=False),
            "help": "The local forge's folder [default: GITPROVIDER_ROOT, or ~/.local/share/gitprovider].",
        },
    ),
    (
        ("--url",),
        {
            "help": "The host's address, such as https://git.example.org [default: GITPROVIDER_URL, then GH_HOST or"
            " CI_SERVER_URL, then github.com or gitlab.com]."
        },
    ),
    (
        ("--retries",),
        {
            "type": click.IntRange(min=0, max=100),
            "metavar": "N",
            "help": f"Retries of a read that fails transiently [default: {DEFAULT_RETRIES}; 0 turns retrying off]."
            " Mutations are never retried.",
        },
    ),
    (
        ("--timeout",),
        {
            "type": click.IntRange(min=1),
            "metavar": "SECONDS",
            "help": "How long to wait for the host's response to one request [default: 15]; for the local forge, for"
            " the write lock [default: 60].",
        },
    ),
    (
        ("--json", "as_json"),
        {"is_flag": True, "help": "Print one JSON document; for a failure, also a line on standard error."},
    ),
    (
        ("--debug",),
        {
            "is_flag": True,
            "help": "Print each request and operation on standard error: method, path, status, id and duration.",
        },
    ),
)


def global_options(*, hidden: bool = False) -> Callable[[_F], _F]:
    """Return a decorator that adds the global options. They are accepted before and after the command's name."""

    def decorate(function: _F) -> _F:
        for names, settings in reversed(_OPTIONS):
            option = click.option(
                *names, **settings, callback=_store, expose_value=False, hidden=hidden, is_eager=names[0] == "--json"
            )
            function = option(function)
        return function

    return decorate
