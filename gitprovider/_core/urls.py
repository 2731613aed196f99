"""Repository URLs in the forms that people and Git use, and host names that can be compared exactly.

A host is never recognised by a part of its name. Names are compared in lower case, in ASCII (IDNA), without a trailing
dot, and together with the port.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from gitprovider import checks
from gitprovider.checks import refuse

_PORTS = {"https": 443, "http": 80, "ssh": 22}
# Patterns are strings: re compiles each one when it is first used, and caches it.
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\Z"
_IPV6 = r"[0-9a-f:.]+\Z"
# user@host:path and host:path, as in git-clone(1). With a slash before the colon, it is a path.
_SCP = r"(?s:(?:(?P<user>[^@/:\s]+)@)?(?P<host>\[[^\]/\s]+\]|[^@/:\[\]\s]{2,}):(?!//)(?P<path>.+)\Z)"


class Server(NamedTuple):
    """A host's address.

    Attributes:
        scheme: ``https`` or ``http``.
        host: the normalised name. An IPv6 address has no brackets.
        port: the port, or the scheme's default if the address has none.
        base: the path below which the host is served, such as ``/gitlab``; empty, or with a leading slash only.
    """

    scheme: str
    host: str
    port: int
    base: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        """Identifies the host. Addresses with equal keys are the same host; http and https keys always differ."""
        return self.scheme, self.host, self.port

    @property
    def netloc(self) -> str:
        """The name, with the port if it is not the scheme's default."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return shown if self.port == _PORTS[self.scheme] else f"{shown}:{self.port}"

    @property
    def url(self) -> str:
        """The address as a URL, without a trailing slash."""
        return f"{self.scheme}://{self.netloc}{self.base}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoUrl:
    """A repository's URL, parsed by :func:`parse_repo_url`.

    Attributes:
        scheme: ``https``, ``http``, ``ssh`` or ``file``. The scp-like form is ssh.
        host: the normalised host name; empty for a file.
        port: the port; None for the scheme's default and for a file.
        path: ``acme/widgets`` without ``.git``; for a file, the absolute path in the file system.
    """

    scheme: str
    host: str
    port: int | None
    path: str

    @property
    def server(self) -> Server:
        """The host of the repository's API. An https port is kept. An ssh URL gives https on the default port."""
        if self.scheme == "ssh":
            return Server(scheme="https", host=self.host, port=443)
        return Server(scheme=self.scheme, host=self.host, port=self.port or _PORTS[self.scheme])


def parse_repo_url(url: str) -> RepoUrl:
    """Parse a repository's URL. Nothing is looked up. An error never contains the URL's credentials.

    The accepted forms are ``https://host/acme/widgets.git``, ``ssh://git@host:22/acme/widgets.git``, the scp-like
    ``git@host:acme/widgets.git``, each of these with a ``git+`` prefix, ``file:///srv/forge/acme/widgets.git``, and an
    absolute path. Groups may have any depth. ``.git`` and trailing slashes are optional. ``http`` is parsed too; the
    provider decides whether it may be used, and by default allows it to loopback only.

    Raises:
        InvalidRequestError: the URL has none of these forms, contains credentials, a query or a fragment, or has an
            invalid host or path.
    """
    text = checks.check_text("url", url, empty=False, limit=2000)
    if text != text.strip() or "\\" in text:
        refuse("url", "must not have surrounding spaces or contain a backslash")
    text = re.sub(r"\Agit\+(?=[A-Za-z]+://)", "", text, flags=re.IGNORECASE)
    if text.startswith("/"):
        return RepoUrl(scheme="file", host="", port=None, path=_file_path(text))
    if "://" not in text and (match := re.match(_SCP, text)):
        return RepoUrl(scheme="ssh", host=host_name("url", match["host"]), port=None, path=_repo_path(match["path"]))
    scheme, host, port, path, userinfo = _split(text, "url")
    if scheme == "file":
        if host not in ("", "localhost") or userinfo is not None or port is not None:
            refuse("url", "has a host; a file URL is file:///absolute/path")
        from urllib.parse import unquote  # not at the top, here and below: it is slow to import

        return RepoUrl(scheme="file", host="", port=None, path=_file_path(unquote(path)))
    if scheme not in _PORTS:
        refuse("url", "is not a supported URL: https, ssh, git@host:path, or file")
    if userinfo is not None and (scheme != "ssh" or ":" in userinfo):
        _refuse_credentials("url")
    return RepoUrl(
        scheme=scheme,
        host=host_name("url", host),
        port=None if port == _PORTS[scheme] else port,
        path=_repo_path(path),
    )


def parse_server(argument: str, value: Any) -> Server:
    """Parse a host from a setting.

    The accepted forms are ``git.example.org``, ``git.example.org:8443`` and ``https://git.example.org/gitlab``.

    Raises:
        InvalidRequestError: the value is not a host. The error names ``argument`` and does not contain credentials.
    """
    text = checks.check_text(argument, value, empty=False, limit=2000)
    if text != text.strip() or "\\" in text:
        refuse(argument, "must not have surrounding spaces or contain a backslash")
    scheme, host, port, base, userinfo = _split(text if "://" in text else f"https://{text}", argument)
    if userinfo is not None:
        _refuse_credentials(argument)
    if scheme not in ("https", "http"):
        refuse(argument, "must be a host's name or an http(s) URL, such as https://git.example.org")
    return Server(
        scheme=scheme, host=host_name(argument, host), port=port or _PORTS[scheme], base=_base_path(argument, base)
    )


def parse_api_server(argument: str, value: Any, *, allow_http: bool = False) -> Server:
    """Parse a host that a token may be sent to: https, or http to this machine.

    Raises:
        InvalidRequestError: the value is not a host, or it is http to another machine without ``allow_http``.
    """
    server = parse_server(argument, value)
    if server.scheme == "http" and not allow_http and not is_loopback(server.host):
        refuse(
            argument, "is http, which would send the token unencrypted; use https (http is allowed to loopback only)"
        )
    return server


def is_loopback(host: str) -> bool:
    """Report whether ``host`` is ``localhost`` or a loopback address. A name that resolves to one does not count."""
    return host in ("localhost", "::1") or bool(re.fullmatch(r"127(\.\d{1,3}){3}", host))


def origin(url: str) -> tuple[str, str, int | None]:
    """Return the normalised scheme, host and port of ``url``, or ``("", "", None)`` if it is not a URL."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return "", "", None
    return parts.scheme, (parts.hostname or "").rstrip("."), port


def host_name(argument: str, value: str) -> str:
    """Return a host's name or address in normalised form: lower case, ASCII, no trailing dot, no brackets.

    Raises:
        InvalidRequestError: it is not a valid host, or it is spelled with look-alike characters.
    """
    name = value.lower()
    if name.startswith("["):
        name = name[1:-1]
        if ":" not in name or not re.match(_IPV6, name):
            refuse(argument, "does not name a valid host")
        return name
    if not name.isascii():
        name = _to_ascii(argument, name)
    name = name.removesuffix(".")
    if not name or len(name) > 253 or not all(re.match(_LABEL, label) for label in name.split(".")):
        refuse(argument, "does not name a valid host")
    return name


def _to_ascii(argument: str, name: str) -> str:
    try:
        encoded = name.encode("idna").decode("ascii").lower()
    except UnicodeError:
        refuse(argument, "does not name a valid host")
    # Full-width letters, ligatures and the ideographic dot are folded to plain ASCII, so a look-alike name becomes the
    # real one. No host is registered with such a spelling.
    for written, ascii_form in zip(re.split("[.\u3002\uff0e\uff61]", name), encoded.split("."), strict=False):
        if not written.isascii() and not ascii_form.startswith("xn--"):
            refuse(argument, "spells its host with look-alike characters; write it in plain letters")
    if re.search("[\u3002\uff0e\uff61]", name):
        refuse(argument, "spells its host with look-alike characters; write it in plain letters")
    return encoded


def _split(text: str, argument: str) -> tuple[str, str, int | None, str, str | None]:
    """Return the scheme, the host (with brackets), the port, the path, and the part before an ``@``."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        refuse(argument, "is not a URL")
    # The part before an @ may be a password and must not reach a message, so it is split off first.
    userinfo, at, hostport = parts.netloc.rpartition("@")
    if parts.query or parts.fragment or text.endswith(("?", "#")):
        refuse(argument, "must not have a query or a fragment")
    host = hostport[: hostport.index("]") + 1] if hostport.startswith("[") else hostport.partition(":")[0]
    return parts.scheme, host, port, parts.path, userinfo if at else None


def _refuse_credentials(argument: str) -> NoReturn:
    refuse(argument, "contains credentials; pass the token by its own argument or variable, never in a URL")


def _repo_path(path: str) -> str:
    if "@" in path:  # a mistyped URL (https:user:password@host/…) looks like an scp-like path with the password in it
        _refuse_credentials("url")
    plain = path.strip("/").removesuffix(".git").rstrip("/")
    return checks.check_repo_path(plain, "url")


def _base_path(argument: str, path: str) -> str:
    base = path.rstrip("/")
    if not re.fullmatch(r"(?:/[\w.\-~]+)*", base, re.ASCII) or any(part in (".", "..") for part in base.split("/")):
        refuse(argument, "has a path that a host cannot be served below")
    return base


def _file_path(path: str) -> str:
    checks.check_text("url", path)
    if not path.startswith("/") or path.startswith("//") or any(part in (".", "..") for part in path.split("/")):
        refuse("url", "must be an absolute path without '.' and '..'")
    return path.rstrip("/")
