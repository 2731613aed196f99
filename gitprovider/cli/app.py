"""The global options of every command, and the provider that they select."""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import click

from gitprovider._core.claims import remembered
from gitprovider._core.store import SqliteIntentStore
from gitprovider._core.urls import parse_repo_url, parse_server
from gitprovider.cli.output import Output
from gitprovider.connect import PROVIDERS, Provider, connect, connect_repo, kind_of, locate
from gitprovider.errors import GitProviderError, InvalidRequestError, Outcome
from gitprovider.retry import RetryOptions

ORIGIN = "the clone's remote origin"
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
        self.timeout: float | None = None
        self.store: SqliteIntentStore | None = None
        self._key = ""

    @contextmanager
    def repository(self, given: str | None) -> Iterator[tuple[Provider, str]]:
        """Build the provider for the argument REPO, and yield it with the repository's full path.

        ``given`` is a path, or a URL by the rules of :func:`gitprovider.connect_repo`. None is the remote ``origin`` of
        the clone that the command runs in. A mutation in the block is remembered until its result is known.
        """
        url = given if given is None or is_url(given) else None
        if given is None and (url := origin()) is None:
            raise click.UsageError("REPO is missing: give its path or URL, or run the command in a clone of it.")
        provider, path = (self._named(), given) if url is None else self._at(url, "REPO" if given else ORIGIN)
        with self._used(provider):
            yield provider, path or ""

    @contextmanager
    def provider(self, default: str | None = None) -> Iterator[Provider]:
        """Build the provider for a command without the argument REPO. ``default`` is the kind if no option names one.

        A mutation in the block is remembered until its result is known.
        """
        provider = self._named(default)
        with self._used(provider):
            yield provider

    def _named(self, default: str | None = None) -> Provider:
        """Build the provider that the options name, or ``default``, the variables, or the clone's remote ``origin``."""
        env = os.environ
        name = self.provider_name or default or ("local" if self.root is not None else None)
        if name is None and self.url is not None:
            name = env.get("GITPROVIDER_PROVIDER") or kind_of("--url", self.url, env)
        if name is None and not (name := env.get("GITPROVIDER_PROVIDER")) and (address := env.get("GITPROVIDER_URL")):
            name = kind_of("GITPROVIDER_URL", address, env)
        if not name:
            url = origin()
            if url is None:
                raise click.UsageError(
                    "it is not clear which host is meant: name it with --provider or GITPROVIDER_PROVIDER"
                    f" ({', '.join(PROVIDERS)}), give REPO as a URL, or run the command in a clone, whose remote origin"
                    " names it."
                )
            return self._at(url, ORIGIN)[0]
        remote = name != "local"
        if self.url is not None and not remote:
            raise click.UsageError("--url is for github and gitlab; the local forge takes --root.")
        if self.root is not None and remote:
            raise click.UsageError(f"--root is for the local forge; {name} takes --url.")
        return connect(
            name,
            root=None if remote else self.root or env.get("GITPROVIDER_ROOT") or _user_root(),
            url=self.url,
            # The local forge has no transient failures, so retries would not help.
            retry=self._retry() if remote else None,
            timeout=self.timeout,
            on_event=self.out.on_event,
        )

    def _at(self, url: str, whose: str) -> tuple[Provider, str]:
        """Build the provider for a repository's URL. The options must not contradict it."""
        env = dict(os.environ)
        address = self.url or env.get("GITPROVIDER_URL")
        kind = self.provider_name or env.get("GITPROVIDER_PROVIDER")
        hosts = {address: kind} if address and kind in ("github", "gitlab") else {}
        if self.url is not None and not env.get("GITPROVIDER_URL"):
            env["GITPROVIDER_URL"] = self.url  # as url= of connect does, --url binds GITPROVIDER_TOKEN
        try:
            place = parse_repo_url(url)
            name, server, _ = ("local", None, "") if place.scheme == "file" else locate(place, hosts, env)
            if self.provider_name not in (None, name):
                raise click.UsageError(f"{whose} is on {name}, but --provider says {self.provider_name}.")
            if self.root is not None:
                raise click.UsageError(f"{whose} is a URL, which names the place; leave out --root.")
            if self.url is not None and (server is None or parse_server("--url", self.url).key != server.key):
                raise click.UsageError(f"{whose} is on another host than --url says.")
            provider, path = connect_repo(
                url, hosts=hosts, environ=env, timeout=self.timeout, retry=self._retry(), on_event=self.out.on_event
            )
        except InvalidRequestError as exc:
            if exc.argument != "url":
                raise
            raise click.UsageError(
                f"{whose} {exc.message.removeprefix('url: ')}; give its path with --provider, and with --url for a host"
                " of your own."
            ) from None
        # The printed command that finds out what became of a mutation leads to the same host.
        self.provider_name = name
        if server is None:
            self.root = str(cast(Any, provider).forge.root)
        else:
            self.url = server.url
        return provider, path

    def _retry(self) -> RetryOptions:
        return RetryOptions(max_attempts=1 + (DEFAULT_RETRIES if self.retries is None else self.retries))

    @contextmanager
    def _used(self, provider: Provider) -> Iterator[None]:
        with provider:
            provider.intents = self.store = SqliteIntentStore(_store_path(place := place_of(provider)))
            self._key = f"{place}-{secrets.token_hex(4)}"
            with remembered(self.store, self._key):
                yield

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


def is_url(repo: str) -> bool:
    """Report whether REPO is a URL or an absolute path, and not a repository's path on the host."""
    return ":" in repo or repo.startswith("/")


def origin() -> str | None:
    """Return the URL of the remote ``origin`` of the clone that contains the working directory, or None."""
    try:
        ran = subprocess.run(
            ["git", "remote", "get-url", "origin"],  # noqa: S607 - the user's own Git, as everywhere in their shell
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    return ran.stdout.strip() or None if ran.returncode == 0 else None


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
            "help": "The kind of host [default: that of REPO as a URL, GITPROVIDER_PROVIDER, or the clone's origin].",
        },
    ),
    (
        ("--root",),
        {
            "type": click.Path(file_okay=False),
            "help": "The local forge's folder [default: GITPROVIDER_ROOT, or ~/.local/share/gitprovider]. It implies"
            " --provider local.",
        },
    ),
    (
        ("--url",),
        {
            "help": "The host's address, such as https://git.example.org [default: GITPROVIDER_URL, then GH_HOST, or"
            " GITLAB_HOST and CI_SERVER_URL, then github.com or gitlab.com]."
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
            "type": click.FloatRange(min=0, min_open=True),
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


def examples(*commands: str) -> str:
    """Return the text with examples at the end of a command's help. They are the arguments of ``gitprovider``."""
    return "\n".join(["\b", "Examples:", *(f"  gitprovider {command}" for command in commands)])


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
