"""Build a provider from a name, arguments and the environment, and decide which host a token may be sent to.

Each token from the environment is bound to one host. The host's name and port must match exactly.

* ``GH_TOKEN``: github.com, or the host in ``GH_HOST`` if that is a subdomain of ghe.com, as gh has it
  (https://cli.github.com/manual/gh_help_environment). It takes precedence over ``GITHUB_TOKEN``.
* ``GITHUB_TOKEN``: github.com, or the host in ``GH_HOST`` if that is set.
* ``GITLAB_TOKEN``: gitlab.com, or the host in ``GITLAB_HOST`` if that is set, as glab has it
  (https://docs.gitlab.com/cli/), or the host in ``CI_SERVER_URL``.
* ``GITPROVIDER_TOKEN``: the host in ``GITPROVIDER_URL``, or the host given as ``url=`` if that is not set. It takes
  precedence over the others. A repository's URL is data and never binds it.
* ``GITHUB_APP_ID``, with ``GITHUB_APP_INSTALLATION_ID`` and the key in ``GITHUB_APP_PRIVATE_KEY`` or the file
  ``GITHUB_APP_PRIVATE_KEY_FILE``: the host of ``GITHUB_TOKEN``. A GitHub App takes precedence over its tokens.

A host's SDK is loaded when a provider for that host is built.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack, overload

from gitprovider._core.provider import Provider
from gitprovider._core.urls import RepoUrl, Server, parse_repo_url, parse_server
from gitprovider.checks import Verify, check_path, check_repo_path, check_text, guarded, refuse
from gitprovider.errors import AuthenticationError, InvalidRequestError, NotFoundError
from gitprovider.retry import Limits, RetryOptions

if TYPE_CHECKING:
    from pathlib import Path

    from gitprovider._core.claims import IntentStore
    from gitprovider._core.operation import BeforeEffect
    from gitprovider._remote.throttle import Throttle
    from gitprovider.events import Hook
    from gitprovider.github import GitHubProvider
    from gitprovider.gitlab import GitLabProvider
    from gitprovider.local import LocalProvider

__all__ = ["Provider", "RepoUrl", "connect", "connect_repo", "parse_repo_url"]

Token = str | Callable[[], str]
PROVIDERS = ("local", "github", "gitlab")


class _Host(NamedTuple):
    """How to build a provider for one kind of host.

    Attributes:
        module, build: the module and the name of the provider's class.
        needs: the extra or package that it needs.
        options: the arguments of ``connect`` that the provider has.
        public: the address of the default host.
        variables: the environment variables that name another host; the first that is set does.
        tokens: the environment variables of the tokens that are bound to this host, in their order, each with what the
            name of another host must end with.
    """

    module: str
    build: str
    needs: str
    options: frozenset[str]
    public: str = ""
    variables: tuple[str, ...] = ()
    tokens: tuple[tuple[str, str], ...] = ()


_EVERY = frozenset({"timeout", "on_event", "settle", "before_effect", "intents"})
_REMOTE = _EVERY | {"verify", "retry", "limits", "allow_http", "throttle", "pool_size", "page_concurrency"}
_HOSTS = {
    "local": _Host("gitprovider.local", "LocalProvider", "gitprovider[local]", _EVERY),
    "github": _Host(
        "gitprovider.github", "GitHubProvider", "PyGithub", _REMOTE | {"commit_api"},
        "https://github.com", ("GH_HOST",), (("GH_TOKEN", ".ghe.com"), ("GITHUB_TOKEN", "")),
    ),
    "gitlab": _Host(
        "gitprovider.gitlab", "GitLabProvider", "python-gitlab", _REMOTE | {"obey_rate_limit"},
        "https://gitlab.com", ("GITLAB_HOST", "CI_SERVER_URL"), (("GITLAB_TOKEN", ""),),
    ),
}  # fmt: skip
TOKEN_VARIABLES = ("GITPROVIDER_TOKEN", *(token for host in _HOSTS.values() for token, _ in host.tokens))
_KNOWN = "github.com, gitlab.com, and those in GH_HOST, GITLAB_HOST and CI_SERVER_URL"


class Options(TypedDict, total=False):
    """The arguments of :func:`connect` besides the name, for its overloads, which tell what ``sdk()`` lends."""

    root: str | os.PathLike[str] | None
    url: str | None
    token: Token | None
    timeout: float | None
    verify: Verify | None
    retry: RetryOptions | None
    limits: Limits | None
    allow_http: bool | None
    obey_rate_limit: bool | None
    settle: float | None
    on_event: Hook | Sequence[Hook] | None
    before_effect: BeforeEffect | None
    intents: IntentStore | None
    throttle: Throttle | None
    pool_size: int | None
    page_concurrency: int | None
    commit_api: Literal["auto", "git-data"] | None
    environ: Mapping[str, str] | None


@overload
def connect(name: Literal["github"], **options: Unpack[Options]) -> GitHubProvider: ...
@overload
def connect(name: Literal["gitlab"], **options: Unpack[Options]) -> GitLabProvider: ...
@overload
def connect(name: Literal["local"], **options: Unpack[Options]) -> LocalProvider: ...
@overload
def connect(name: str | None = None, **options: Unpack[Options]) -> Provider: ...


def connect(
    name: str | None = None,
    *,
    root: str | os.PathLike[str] | None = None,
    url: str | None = None,
    token: Token | None = None,
    timeout: float | None = None,
    verify: Verify | None = None,
    retry: RetryOptions | None = None,
    limits: Limits | None = None,
    allow_http: bool | None = None,
    obey_rate_limit: bool | None = None,
    commit_api: Literal["auto", "git-data"] | None = None,
    settle: float | None = None,
    on_event: Hook | Sequence[Hook] | None = None,
    before_effect: BeforeEffect | None = None,
    intents: IntentStore | None = None,
    throttle: Throttle | None = None,
    pool_size: int | None = None,
    page_concurrency: int | None = None,
    environ: Mapping[str, str] | None = None,
) -> Provider:
    """Build a provider. No request is sent. The caller closes the provider.

    Args:
        name: ``local``, ``github`` or ``gitlab``; ``GITPROVIDER_PROVIDER`` by default.
        root: local: the folder of the forge; ``GITPROVIDER_ROOT`` by default.
        url: the host, such as ``https://git.example.org``. The default is ``GITPROVIDER_URL``, then ``GH_HOST``, or
            ``GITLAB_HOST`` and ``CI_SERVER_URL``, then github.com or gitlab.com.
        token: the credential for this host, or a function that returns it, which is asked before each operation. The
            default is the token in the environment that is bound to this host.
        timeout, verify, retry, limits, allow_http, obey_rate_limit, commit_api, settle, on_event, throttle, pool_size:
            arguments of the provider's constructor; None leaves its default. An argument that the provider does not
            have is refused.
        page_concurrency: as for GitHubProvider. More than 1 is refused for other hosts.
        before_effect: called with the complete intent just before each effect of a mutation is sent. If it raises,
            nothing is sent, and its error is the cause of the error that is raised.
        intents: the store that the ``key`` of an ``ensure_`` function is looked up in.
        environ: a mapping to read instead of ``os.environ``.

    Raises:
        InvalidRequestError: an argument or a variable is wrong or missing, or a package is not installed.
        AuthenticationError: no token is given, and no token in the environment is bound to this host.
        UnsupportedOptionError: ``page_concurrency`` is more than 1, and the host is not GitHub.
    """
    options = {
        "timeout": timeout,
        "verify": verify,
        "retry": retry,
        "limits": limits,
        "allow_http": allow_http,
        "obey_rate_limit": obey_rate_limit,
        "commit_api": commit_api,
        "settle": settle,
        "on_event": on_event,
        "before_effect": before_effect,
        "intents": intents,
        "throttle": throttle,
        "pool_size": pool_size,
        "page_concurrency": page_concurrency,
    }
    try:
        from gitprovider._core.operation import cleared_frames  # not at the top: it loads the events

        with cleared_frames():
            return _connect(name, root, url, token, environ, options)
    finally:  # this frame is the one of a traceback that is not cleared
        del url, token, environ


def connect_repo(
    url: str,
    *,
    hosts: Mapping[str, str] | None = None,
    token: Token | None = None,
    environ: Mapping[str, str] | None = None,
    timeout: float | None = None,
    verify: Verify | None = None,
    retry: RetryOptions | None = None,
    limits: Limits | None = None,
    allow_http: bool | None = None,
    on_event: Hook | Sequence[Hook] | None = None,
    before_effect: BeforeEffect | None = None,
    intents: IntentStore | None = None,
    throttle: Throttle | None = None,
) -> tuple[Provider, str]:
    """Build the provider for a repository's URL, and return it with the repository's full path.

    The known hosts are github.com, gitlab.com, those in ``GH_HOST``, ``GITLAB_HOST`` and ``CI_SERVER_URL``, and those
    in ``hosts``. The URL's host must match one of them exactly. The provider connects to the host as configured, never
    to the address in the URL. A file URL or an absolute path names a repository of a local forge.

    Args:
        url: a URL that :func:`parse_repo_url` accepts.
        hosts: additional hosts, such as ``{"git.example.org": "gitlab"}``. A key may have a port and a path
            (``git.example.org:8443/gitlab``) or be a URL. It states the kind of host and binds no token to it.
        token: the credential for the URL's host, or a function, as for :func:`connect`. The default is the token in the
            environment that is bound to that host. It is refused for a local forge.
        environ: a mapping to read instead of ``os.environ``.
        timeout, on_event, before_effect, intents: as for :func:`connect`.
        verify, retry, limits, allow_http, throttle: as for :func:`connect`. They are ignored for a local forge.

    Raises:
        InvalidRequestError: the URL is wrong, or its host is not known.
        AuthenticationError: no token in the environment is bound to this host.
    """
    options = {
        "timeout": timeout,
        "verify": verify,
        "retry": retry,
        "limits": limits,
        "allow_http": allow_http,
        "on_event": on_event,
        "before_effect": before_effect,
        "intents": intents,
        "throttle": throttle,
    }
    try:
        from gitprovider._core.operation import cleared_frames  # not at the top: it loads the events

        with cleared_frames():
            return _connect_repo(url, {} if hosts is None else hosts, token, environ, options)
    finally:
        del url, hosts, token, environ


def _connect(
    name: str | None,
    root: str | os.PathLike[str] | None,
    url: str | None,
    token: Token | None,
    environ: Mapping[str, str] | None,
    given: Mapping[str, Any],
) -> Provider:
    env = os.environ if environ is None else _mapping("environ", environ)
    if name is None and (name := env.get("GITPROVIDER_PROVIDER") or None) is None:
        refuse("name", f"is missing: give {', '.join(PROVIDERS)}, or set GITPROVIDER_PROVIDER to one of them")
    name = check_text("name", name)
    host = _HOSTS.get(name)
    if host is None:
        refuse("name", f"is {name!r}; allowed are {', '.join(PROVIDERS)}")
    options = {option: value for option, value in given.items() if value is not None}
    if name == "local" and "page_concurrency" in options:
        from gitprovider._core.options import check_page_concurrency  # not at the top: it loads the mutations

        check_page_concurrency(options.pop("page_concurrency"), "local")
    for option in options:
        if option not in host.options:
            refuse(option, f"is an option that {name} does not have")
    if name == "local":
        for argument, value in (("url", url), ("token", token)):
            if value is not None:
                refuse(argument, "is for github and gitlab; the local forge takes root")
        provider: Provider = _load(name)(_root(root, env), **options)
        return provider
    if root is not None:
        refuse("root", f"is for the local forge; {name} takes url")
    server = _server(host, url, env)
    return _remote(name, server, _credential(host, server, env, token, named=url is not None), options)


def _connect_repo(
    url: str,
    hosts: Mapping[str, str],
    token: Token | None,
    environ: Mapping[str, str] | None,
    given: Mapping[str, Any],
) -> tuple[Provider, str]:
    place = parse_repo_url(url)
    if place.scheme == "file":
        if token is not None:
            refuse("token", "is for github and gitlab, and the URL is of a local forge")
        root, path = _forge_of(place.path)
        return _connect("local", root, None, None, {}, {name: given[name] for name in given if name in _EVERY}), path
    env = os.environ if environ is None else _mapping("environ", environ)
    name, server, path = locate(place, hosts, env)
    credential = _credential(_HOSTS[name], server, env, token, named=False)
    return _remote(
        name, server, credential, {option: value for option, value in given.items() if value is not None}
    ), path


def locate(place: RepoUrl, hosts: Mapping[str, str], env: Mapping[str, str]) -> tuple[str, Server, str]:
    """Return the kind and address of the known host that has a repository, and the repository's path there.

    Raises:
        InvalidRequestError: the URL's host is not known, or cannot have such a path.
    """
    for name, server in _known_hosts(hosts, env):
        if server.key != place.server.key or not f"/{place.path}".startswith(f"{server.base}/"):
            continue
        path = check_repo_path(f"/{place.path}".removeprefix(f"{server.base}/"), "url")
        if name == "github" and path.count("/") != 1:
            refuse("url", "has more parts than an owner and a repository, which is all that a GitHub path has")
        return name, server, path
    raise InvalidRequestError(
        f"url: is on {place.server.netloc}, which is not a known host",
        argument="url",
        hint=f"known hosts are {_KNOWN}, and those given as hosts=",
    )


def kind_of(argument: str, address: str, env: Mapping[str, str]) -> str:
    """Return ``github`` or ``gitlab`` for the address of a known host, which ``argument`` gave.

    Raises:
        InvalidRequestError: the address is wrong, or its host is not known.
    """
    server = parse_server(argument, address)
    for name, known in _known_hosts({}, env):
        if known.key == server.key:
            return name
    raise InvalidRequestError(
        f"{argument}: {server.netloc} is not a known host, so its kind must be given",
        argument=argument,
        hint=f"known hosts are {_KNOWN}; for another one, name github or gitlab too",
    )


def _known_hosts(hosts: Mapping[str, str], env: Mapping[str, str]) -> Iterator[tuple[str, Server]]:
    """Yield every known host, those with the longest base path first. A host below a path comes before its parent."""
    known = []
    for written, given in _mapping("hosts", hosts).items():
        name = check_text("hosts", given)
        if name not in ("github", "gitlab"):
            refuse("hosts", f"says that a host is {name!r}; allowed are github, gitlab")
        known.append((name, parse_server("hosts", written)))
    for name in ("github", "gitlab"):
        host = _HOSTS[name]
        known += [(name, parse_server(variable, env[variable])) for variable in host.variables if env.get(variable)]
        known.append((name, parse_server("url", host.public)))
    return iter(sorted(known, key=lambda one: -len(one[1].base)))


def _mapping(argument: str, value: Any) -> dict[Any, Any]:
    """Check a mapping, and return a copy that has what it had when it was given."""
    copied: dict[Any, Any] = {}
    with guarded(argument):
        if not isinstance(value, Mapping):
            refuse(argument, f"must be a mapping, not {type(value).__name__}")
        copied.update((key, value[key]) for key in value)
    return copied


def _server(host: _Host, url: str | None, env: Mapping[str, str]) -> Server:
    if url is not None:
        return _parsed(host, "url", url)
    if env.get("GITPROVIDER_URL"):
        return _parsed(host, "GITPROVIDER_URL", env["GITPROVIDER_URL"])
    return _bound_host(host, env)


def _bound_host(host: _Host, env: Mapping[str, str], ending: str = "") -> Server:
    """The host that the environment's token of this kind is bound to, if a named host's name has that ending."""
    variable = next((variable for variable in host.variables if env.get(variable)), None)
    public = parse_server("url", host.public)
    if variable is None:
        return public
    named = _parsed(host, variable, env[variable])
    return named if named.host.endswith(ending) else public


def _parsed(host: _Host, argument: str, value: str) -> Server:
    server = parse_server(argument, value)
    # The API's own address means github.com too: a token for one is a token for the other.
    if host is _HOSTS["github"] and server.key == ("https", "api.github.com", 443):
        return parse_server("url", host.public)
    return server


def _credential(host: _Host, server: Server, env: Mapping[str, str], token: Token | None, *, named: bool) -> Any:
    """Return ``token`` or the environment's credential for ``server``: a token, or a GitHub App's installation.

    Args:
        named: whether the caller chose that host with ``url=``.
    """
    if token is not None:
        is_function = callable(token) and not isinstance(token, str)
        return token if is_function else check_text("token", token, empty=False)
    ours, url = env.get("GITPROVIDER_TOKEN"), env.get("GITPROVIDER_URL")
    if ours and (server.key == _parsed(host, "GITPROVIDER_URL", url).key if url else named):
        return ours
    if host is _HOSTS["github"] and env.get("GITHUB_APP_ID") and server.key == _bound_host(host, env).key:
        return _app(env)
    for variable, ending in host.tokens:
        if (theirs := env.get(variable)) and server.key == _bound_host(host, env, ending).key:
            return theirs
    raise AuthenticationError(f"no token for {server.netloc}", hint=_no_token_hint(host, server, env))


def _app(env: Mapping[str, str]) -> Any:
    """Return the installation of a GitHub App that the environment describes."""
    key, file = env.get("GITHUB_APP_PRIVATE_KEY"), env.get("GITHUB_APP_PRIVATE_KEY_FILE")
    if bool(key) == bool(file):
        refuse("GITHUB_APP_PRIVATE_KEY", "or GITHUB_APP_PRIVATE_KEY_FILE must be set beside GITHUB_APP_ID, not both")
    if file:
        try:
            with open(file, encoding="utf-8") as opened:
                key = opened.read()
        except (OSError, ValueError) as exc:
            refuse("GITHUB_APP_PRIVATE_KEY_FILE", f"cannot be read: {getattr(exc, 'strerror', None) or 'not a text'}")
    number = env.get("GITHUB_APP_INSTALLATION_ID", "")
    if not (number.isascii() and number.isdecimal()):
        refuse("GITHUB_APP_INSTALLATION_ID", "must be the number of the App's installation")
    return _load("github", "AppInstallation")(env["GITHUB_APP_ID"], key, installation_id=int(number))


def _no_token_hint(host: _Host, server: Server, env: Mapping[str, str]) -> str:
    bound = {variable: _bound_host(host, env, ending) for variable, ending in host.tokens}
    fitting = [variable for variable, theirs in bound.items() if theirs.key == server.key]
    advice = f"set {fitting[-1]}" if fitting else "set GITPROVIDER_TOKEN and GITPROVIDER_URL"
    bindings = [
        f"{variable} is only sent to {theirs.netloc}" for variable, theirs in bound.items() if env.get(variable)
    ]
    if env.get("GITPROVIDER_TOKEN"):
        bindings.append("GITPROVIDER_TOKEN is only sent to the host in GITPROVIDER_URL")
    return "; ".join([*bindings, f"{advice} (or pass token= in Python)"])


def _remote(name: str, server: Server, token: Any, options: Mapping[str, Any]) -> Provider:
    provider: Provider
    if name == "github":
        provider = _load(name)(token, base_url=server.url, **options)
    else:
        provider = _load(name)(server.url, private_token=token, **options)
    return provider


def _load(name: str, what: str | None = None) -> Any:
    host = _HOSTS[name]
    try:
        return getattr(import_module(host.module), what or host.build)
    except ModuleNotFoundError as exc:
        raise InvalidRequestError(
            f"name: {name} needs the package {exc.name}, which is not installed",
            argument="name",
            hint=f"pip install '{host.needs}'",
        ) from None


def _root(root: str | os.PathLike[str] | None, env: Mapping[str, str]) -> str:
    value = root if root is not None else env.get("GITPROVIDER_ROOT") or None
    if value is None:
        refuse("root", "is missing: give the folder of the local forge, or set GITPROVIDER_ROOT")
    return check_path("root", value)


def _forge_of(directory: str) -> tuple[Path, str]:
    """Return the root of the local forge that has the repository in ``directory``, and the repository's path there."""
    from pathlib import Path  # not at the top: it is slow to import

    # Git accepts a bare repository's path with and without .git.
    place = Path(directory)
    whole = place if place.exists() else place.with_name(f"{place.name}.git")
    try:
        found: tuple[Path, str] = _load("local", "locate")(whole)
        return found
    except NotFoundError:
        raise InvalidRequestError("url: is not a repository of a local forge", argument="url") from None
