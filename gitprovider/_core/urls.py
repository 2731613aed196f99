"""Where a repository is: URLs as people and Git write them, and host names that compare exactly.

A host is never recognised by a part of its name. Names are compared in lower case, without the root's trailing dot,
in ASCII (IDNA), and with their port.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

from gitprovider import checks
from gitprovider.checks import refuse

_PORTS = {"https": 443, "http": 80, "ssh": 22}
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\Z")
_IPV6 = re.compile(r"[0-9a-f:.]+\Z")
# user@host:path and host:path, as git-clone(1) has them; a first slash before the colon makes it a path.
_SCP = re.compile(r"(?:(?P<user>[^@/:\s]+)@)?(?P<host>\[[^\]/\s]+\]|[^@/:\[\]\s]{2,}):(?!//)(?P<path>.+)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A host's address.

    Attributes:
        scheme: ``https`` or ``http``.
        host: the name, comparable; an IPv6 address has no brackets.
        port: never None: the scheme's own where none was written.
        base: the path below which the host lives, such as ``/gitlab``; empty or with a leading slash alone.
    """

    scheme: str
    host: str
    port: int
    base: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        """What decides whether two addresses are the same host; a token for https is none for http."""
        return self.scheme, self.host, self.port

    @property
    def netloc(self) -> str:
        """The name, with a port that is not the scheme's own."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return shown if self.port == _PORTS[self.scheme] else f"{shown}:{self.port}"

    @property
    def url(self) -> str:
        """The address as a URL without a trailing slash."""
        return f"{self.scheme}://{self.netloc}{self.base}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoUrl:
    """A repository's URL, taken apart by :func:`parse_repo_url`.

    Attributes:
        scheme: ``https``, ``http``, ``ssh`` or ``file``; the scp-like form is ssh.
        host: the host's name, comparable; empty for a file.
        port: None where the scheme's own port is meant, and for a file.
        path: ``acme/widgets`` without ``.git``; for a file the absolute path in the file system.
    """

    scheme: str
    host: str
    port: int | None
    path: str

    @property
    def server(self) -> Server:
        """The host that this repository's API is asked at: an ssh port says nothing about it, an https port does."""
        if self.scheme == "ssh":
            return Server(scheme="https", host=self.host, port=443)
        return Server(scheme=self.scheme, host=self.host, port=self.port or _PORTS[self.scheme])


def parse_repo_url(url: str) -> RepoUrl:
    """Take a repository's URL apart. Nothing is looked up, and nothing of a refused URL's credentials is echoed.

    Understood are ``https://host/acme/widgets.git``, ``ssh://git@host:22/acme/widgets.git``, the scp-like
    ``git@host:acme/widgets.git``, each of them after ``git+``, ``file:///srv/forge/acme/widgets.git``, and an
    absolute path; with any depth of groups, with and without ``.git`` and trailing slashes. (``http`` is parsed too:
    whether it may be used is the provider's decision, which allows it to loopback alone.)

    Raises:
        InvalidRequestError: it is none of these, holds credentials, a query or a fragment, or its host or path is not
            one that a host could have.
    """
    text = checks.check_text("url", url, empty=False, limit=2000)
    if text != text.strip() or "\\" in text:
        refuse("url", "must not hold spaces around it or a backslash")
    text = re.sub(r"\Agit\+(?=[A-Za-z]+://)", "", text, flags=re.IGNORECASE)
    if text.startswith("/"):
        return RepoUrl(scheme="file", host="", port=None, path=_file_path(text))
    if "://" not in text and (match := _SCP.match(text)):
        return RepoUrl(scheme="ssh", host=host_name("url", match["host"]), port=None, path=_repo_path(match["path"]))
    scheme, host, port, path, userinfo = _split(text, "url")
    if scheme == "file":
        if host not in ("", "localhost") or userinfo is not None or port is not None:
            refuse("url", "names a host; a file URL is file:///absolute/path")
        return RepoUrl(scheme="file", host="", port=None, path=_file_path(unquote(path)))
    if scheme not in _PORTS:
        refuse("url", "is not a URL of a kind that is understood: https, ssh, git@host:path, or file")
    if userinfo is not None and (scheme != "ssh" or ":" in userinfo):
        _refuse_credentials("url")
    return RepoUrl(
        scheme=scheme,
        host=host_name("url", host),
        port=None if port == _PORTS[scheme] else port,
        path=_repo_path(path),
    )


def parse_server(argument: str, value: Any) -> Server:
    """A host as settings name it: ``git.example.org``, ``git.example.org:8443`` or ``https://git.example.org/gitlab``.

    Raises:
        InvalidRequestError: naming ``argument``; credentials are not echoed.
    """
    text = checks.check_text(argument, value, empty=False, limit=2000)
    if text != text.strip() or "\\" in text:
        refuse(argument, "must not hold spaces around it or a backslash")
    scheme, host, port, base, userinfo = _split(text if "://" in text else f"https://{text}", argument)
    if userinfo is not None:
        _refuse_credentials(argument)
    if scheme not in ("https", "http"):
        refuse(argument, "must be a host's name or an http(s) URL, such as https://git.example.org")
    return Server(
        scheme=scheme, host=host_name(argument, host), port=port or _PORTS[scheme], base=_base_path(argument, base)
    )


def parse_api_server(argument: str, value: Any, *, allow_http: bool = False) -> Server:
    """A host that a token may be sent to: https, or http to this machine.

    Raises:
        InvalidRequestError: as :func:`parse_server`; or it is http to another machine without ``allow_http``.
    """
    server = parse_server(argument, value)
    if server.scheme == "http" and not allow_http and not is_loopback(server.host):
        refuse(argument, "http would send the token in the clear; use https (http is allowed to loopback only)")
    return server


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine by name or number. A name that only resolves to it is not."""
    return host in ("localhost", "::1") or bool(re.fullmatch(r"127(\.\d{1,3}){3}", host))


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of ``url``, comparable; empty strings for what is not a URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return "", "", None
    return parts.scheme, (parts.hostname or "").rstrip("."), port


def host_name(argument: str, value: str) -> str:
    """A host's name or address, comparable: lower case, ASCII, no trailing dot, no brackets."""
    name = value.lower()
    if name.startswith("["):
        name = name[1:-1]
        if ":" not in name or not _IPV6.match(name):
            refuse(argument, "does not name a valid host")
        return name
    if not name.isascii():
        name = _to_ascii(argument, name)
    name = name.removesuffix(".")
    if not name or len(name) > 253 or not all(_LABEL.match(label) for label in name.split(".")):
        refuse(argument, "does not name a valid host")
    return name


def _to_ascii(argument: str, name: str) -> str:
    try:
        encoded = name.encode("idna").decode("ascii").lower()
    except UnicodeError:
        refuse(argument, "does not name a valid host")
    # Full-width letters, ligatures and the ideographic dot fold to plain ASCII: a name that looks like another and
    # becomes that other one. Nobody's host is registered so.
    for written, ascii_form in zip(re.split("[.\u3002\uff0e\uff61]", name), encoded.split("."), strict=False):
        if not written.isascii() and not ascii_form.startswith("xn--"):
            refuse(argument, "spells its host with look-alike characters; write it in plain letters")
    if re.search("[\u3002\uff0e\uff61]", name):
        refuse(argument, "spells its host with look-alike characters; write it in plain letters")
    return encoded


def _split(text: str, argument: str) -> tuple[str, str, int | None, str, str | None]:
    """Scheme, host (with brackets), port, path and what stands before an @."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        refuse(argument, "is not a URL")
    # An @ in the authority first: whatever stands before it may be a password and must not reach a message.
    userinfo, at, hostport = parts.netloc.rpartition("@")
    if parts.query or parts.fragment or text.endswith(("?", "#")):
        refuse(argument, "must not have a query or a fragment")
    host = hostport[: hostport.index("]") + 1] if hostport.startswith("[") else hostport.partition(":")[0]
    return parts.scheme, host, port, parts.path, userinfo if at else None


def _refuse_credentials(argument: str) -> NoReturn:
    refuse(argument, "holds credentials; give the token by its own argument or variable, never in a URL")


def _repo_path(path: str) -> str:
    if "@" in path:  # a mistyped URL (https:user:password@host/…) reads as an scp-like path that holds the password
        _refuse_credentials("url")
    plain = path.strip("/").removesuffix(".git").rstrip("/")
    return checks.check_repo_path(plain, "url")


def _base_path(argument: str, path: str) -> str:
    base = path.rstrip("/")
    if not re.fullmatch(r"(?:/[\w.\-~]+)*", base, re.ASCII) or any(part in (".", "..") for part in base.split("/")):
        refuse(argument, "has a path that a host cannot live below")
    return base


def _file_path(path: str) -> str:
    checks.check_text("url", path)
    if not path.startswith("/") or path.startswith("//") or any(part in (".", "..") for part in path.split("/")):
        refuse("url", "must be an absolute path without '.' and '..'")
    return path.rstrip("/")
