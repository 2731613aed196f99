"""Git over HTTP for the fake servers, by ``git http-backend``: https://git-scm.com/docs/git-http-backend .

A push runs the repository's pre-receive hook, so it obeys the protection of branches.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Collection
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from gitprovider.errors import NotFoundError, RepoMovedError
from gitprovider.fakes.http import Request, Response
from gitprovider.local.database import RepoRecord
from gitprovider.local.forge import Forge
from gitprovider.models import Visibility

_PATH = re.compile(r"/(?P<repo>.+?)(?:\.git)?/(?P<rest>info/refs|git-upload-pack|git-receive-pack)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What one host says to Git.

    Attributes:
        realm: of Basic authentication.
        missing: the text of 404.
        served_fact, unauthorized_fact, missing_fact: the facts of the responses.
    """

    realm: str
    missing: str
    served_fact: str
    unauthorized_fact: str
    missing_fact: str


def endpoint(request: Request) -> str:
    """The template of Git's request for the request log, or ``""`` if it is another request."""
    found = _PATH.match(request.path)
    return f"/{{repo/}}.git/{found['rest']}" if found else ""


def root(request: Request) -> str | None:
    """Where Git reaches a fake that is served on a loopback port, or None if it is not served."""
    return request.origin if urlsplit(request.origin).hostname in ("127.0.0.1", "localhost", "::1") else None


def respond(
    forge: Forge,
    request: Request,
    dialect: Dialect,
    accepts: Callable[[str], bool],
    *,
    hidden: Collection[str] = (),
    may_push: bool = True,
) -> Response | None:
    """Respond to a request that Git sends, or return None if it is another request.

    The token is the password of Basic authentication. The user name does not matter.

    Args:
        accepts: whether a token is good.
        hidden: paths of repositories that nobody may see.
        may_push: whether the token's user may push. If not, a push is 403.
    """
    found = _PATH.match(request.path)
    if found is None:
        return None
    given = password(request)
    known = given is not None and accepts(given)
    rest = found["rest"]
    pushes = rest == "git-receive-pack" or request.query.get("service") == "git-receive-pack"
    try:
        record = forge.repo(unquote(found["repo"]))
    except (NotFoundError, RepoMovedError):
        record = None
    is_open = record is not None and record.visibility is Visibility.PUBLIC and not pushes
    if not known and (given is not None or not is_open):
        headers = {"Content-Type": "text/plain", "WWW-Authenticate": f'Basic realm="{dialect.realm}"'}
        return Response(status=401, headers=headers, body=b"Unauthorized\n", fact=dialect.unauthorized_fact)
    if record is None or record.path in hidden:
        headers = {"Content-Type": "text/plain"}
        return Response(status=404, headers=headers, body=dialect.missing.encode(), fact=dialect.missing_fact)
    before = forge.branches(record.path) if rest == "git-receive-pack" else []
    status, headers, body = _backend(record, request, rest, "git" if known and may_push else "")
    effect = rest == "git-receive-pack" and forge.branches(record.path) != before
    return Response(status=status, headers=headers, body=body, effect=effect, fact=dialect.served_fact)


def password(request: Request) -> str | None:
    """The password of Basic authentication, or None if the request has none. What cannot be read is ``""``."""
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(text, validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):
        return ""


def _backend(record: RepoRecord, request: Request, rest: str, user: str) -> tuple[int, dict[str, str], bytes]:
    """Run the CGI program, and read the head that it writes. Without a user it refuses a push."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {
        "GIT_PROJECT_ROOT": str(record.git_dir.parent),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
        "PATH_INFO": f"/{record.git_dir.name}/{rest}",
        "REQUEST_METHOD": request.method,
        "QUERY_STRING": "&".join(f"{name}={value}" for name, value in request.fields),
        "CONTENT_TYPE": request.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(request.body)),
        "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
        "REMOTE_USER": user,
        "REMOTE_ADDR": "127.0.0.1",
    }
    if not user:
        del environment["REMOTE_USER"]
    done = subprocess.run(  # noqa: S603 - a fixed command; the request is in its environment and its input
        [shutil.which("git") or "git", "http-backend"], input=request.body, capture_output=True, env=environment
    )
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
    status = int(headers.pop("Status", "200" if head else "500").split()[0])
    return status, headers, body
