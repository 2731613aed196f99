"""Credentials: a token, a function that returns one, any ``github.Auth.Auth``, or a GitHub App's installation."""

from __future__ import annotations

import math
import os
import re
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, cast

from gitprovider import checks
from gitprovider._remote.client_pool import after_fork
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation, ask_for_token
from gitprovider._remote.response import StatusError
from gitprovider._remote.session import through_proxy
from gitprovider.checks import refuse
from gitprovider.errors import AuthenticationError
from gitprovider.github.client import GitHubClient, Settings, github, redact_log
from gitprovider.github.endpoints import ACCESS_TOKENS, INSTALLATION_OF_ORG, INSTALLATION_OF_USER, USER
from gitprovider.redact import Redactor

# Seconds. An operation that begins this long before a token expires ends before it, however much it uploads.
RENEWAL_MARGIN = 300.0
_FRESH_SECONDS = 10.0
_HEADER = re.compile(r"[!-~]+ [!-~]+")


class AppInstallation:
    """A GitHub App's installation: the credential of a service that acts for an organization or a user.

    An installation token is valid for an hour. An operation that begins less than five minutes before it expires renews
    it first. No repr shows the key, and an AppInstallation cannot be pickled.
    https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/authenticating-as-a-github-app-installation

    Args:
        app_id: the App's id or client id.
        private_key: the App's RSA private key: the text of its PEM file.
        installation_id: the id of the installation. Give either this or ``owner``.
        owner: the user or organization that the App is installed for. The installation is looked up at first use.

    Raises:
        InvalidRequestError: an argument is wrong.
    """

    def __init__(
        self, app_id: int | str, private_key: str, *, installation_id: int | None = None, owner: str | None = None
    ) -> None:
        # Rebound at once: a traceback refers to this frame's variables.
        app, private_key = _app_auth(app_id, private_key), ""
        self.app_id = app_id
        self.installation_id = installation_id
        self.owner = owner
        if app is None:
            refuse("private_key", "is not an RSA private key in PEM form, or app_id is empty")
        if (installation_id is None) == (owner is None):
            refuse("installation_id", "or owner must be given, but not both")
        if installation_id is not None:
            checks.check_int("installation_id", installation_id, least=1)
        if owner is not None:
            checks.check_repo_path(f"{owner}/any", "owner")
        self.app = app

    def __repr__(self) -> str:
        given = {name: getattr(self, name, None) for name in ("app_id", "installation_id", "owner")}
        shown = (f"{name}={value!r}" for name, value in given.items() if value is not None)
        return f"AppInstallation({', '.join(shown)})"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("an AppInstallation has a private key and cannot be pickled")


def _app_auth(app_id: Any, private_key: Any) -> github.Auth.AppAuth | None:
    try:
        app = github.Auth.AppAuth(app_id, private_key)
        app.create_jwt()
    except Exception:
        return None
    return app


Auth = str | Callable[[], str] | github.Auth.Auth | AppInstallation


class Credential(ABC):
    """The Authorization header of one provider. It is refreshed under a lock, and clients read it for each request."""

    _owner_may_change = False  # whether a new header may be that of another account

    def __init__(self, settings: Settings, redactor: Redactor) -> None:
        self._settings = settings
        self._redactor = redactor
        self._lock = threading.Lock()
        self._login_lock = threading.Lock()  # separate: a slow read of the login must not block other operations
        self._header = ""
        self._login: tuple[str, str] | None = None  # the header that it was read with, and the login
        redact_log(redactor)
        after_fork(_FreshLocks(self))

    def login(self, op: RemoteOperation[GitHubClient]) -> str:
        """Return the login of the credential's account, or ``""`` for an App, which has none.

        It is read once, and again if a function has returned another token.

        Raises:
            StatusError: GitHub refused the read.
        """
        with self._login_lock:
            header = self._header
            if self._login is None or (self._owner_may_change and self._login[0] != header):
                self._login = header, self._read_login(op) if self._may_be_user_token else ""
            return self._login[1]

    @staticmethod
    def _read_login(op: RemoteOperation[GitHubClient]) -> str:
        try:
            return op.read(USER).str("login")
        except StatusError as exc:
            if op.meaning(exc).code != "app-permission":
                raise
            return ""  # an App's installation token, given as a str

    def client(self) -> GitHubClient:
        """Return a new client that sends this credential."""
        return GitHubClient(self._settings, _CurrentAuth(self))

    def refresh(self, op: RemoteOperation[GitHubClient]) -> None:
        """Refresh the header if needed, before ``op`` sends requests.

        Raises:
            AuthenticationError: the credential is empty or not a valid header.
            Exception: any error of the SDK or the host. The running step maps it.
        """
        with self._lock:
            header = self._fresh(op)
            if header == self._header:
                return
            self._redactor.learn(header.partition(" ")[2])
            if not _HEADER.fullmatch(header):
                raise AuthenticationError("the credential is empty, or has a character that a header cannot contain")
            self._header = header

    @property
    @abstractmethod
    def _may_be_user_token(self) -> bool:
        """Whether the credential may be a user's token, which GET /user accepts."""

    @abstractmethod
    def forget(self) -> None:
        """Discard a header that the host refused. The next operation makes a new one, if that is possible."""

    def is_fresh(self) -> bool:
        """Whether the host may not know the token yet. Only tokens that are made here are ever so new."""
        return False

    def note_created(self, repo: str) -> None:  # noqa: B027 - most credentials have nothing to remember
        """Remember that the repository was created with this credential."""

    def has_created(self, repo: str | None) -> bool:
        """Whether the repository was created with this credential, which may not cover it."""
        return False

    def renew_for(self, repo: str | None) -> bool:
        """Discard a token that is older than a repository created with it; True if there was one."""
        return False

    @abstractmethod
    def _fresh(self, op: RemoteOperation[GitHubClient]) -> str:
        """Return a valid header. The caller holds the lock."""


class _CurrentAuth(github.Auth.Auth):
    """The auth object of PyGithub's clients. It reads the header from the credential and stores no secret itself."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    @property
    def token_type(self) -> str:
        return self._credential._header.partition(" ")[0]

    @property
    def token(self) -> str:
        return self._credential._header.partition(" ")[2]

    def mask_authentication(self, headers: dict[str, str]) -> None:
        headers["Authorization"] = "(removed)"


class SdkCredential(Credential):
    """Any ``github.Auth.Auth``. If it renews itself, it does so under the lock and between steps."""

    def __init__(self, auth: github.Auth.Auth, settings: Settings, redactor: Redactor) -> None:
        super().__init__(settings, redactor)
        self._auth = auth
        self._bound_in: int | None = None
        if isinstance(auth, github.Auth.Login):
            redactor.learn(auth.password)

    @property
    def _may_be_user_token(self) -> bool:
        return not isinstance(self._auth, github.Auth.AppInstallationAuth)

    def forget(self) -> None:
        """Do nothing: the header is read before every step."""

    def _fresh(self, op: RemoteOperation[GitHubClient]) -> str:
        # An auth that requests tokens from the host gets its own client with the same safe settings. From that,
        # AppInstallationAuth builds a PyGithub client of its own, which takes a proxy for this machine too.
        if isinstance(self._auth, github.Auth.AppInstallationAuth) and through_proxy(self._settings.url):
            refuse(
                "auth",
                "would send its request for a token to a proxy; add this machine to NO_PROXY, or pass an "
                "AppInstallation",
            )
        if hasattr(self._auth, "withRequester") and self._bound_in != os.getpid():
            GitHubClient(self._settings, self._auth)
            self._bound_in = os.getpid()
        headers: dict[str, str] = {}
        self._auth.authentication(headers)
        return headers.get("Authorization", "")


class AskedCredential(Credential):
    """A token that a function returns. It is asked once for each operation."""

    _owner_may_change = True

    def __init__(self, ask: Callable[[], str], settings: Settings, redactor: Redactor) -> None:
        super().__init__(settings, redactor)
        self._ask = ask
        self._asked: weakref.WeakSet[RemoteOperation[GitHubClient]] = weakref.WeakSet()

    @property
    def _may_be_user_token(self) -> bool:
        return True

    def forget(self) -> None:
        """Do nothing: the next operation asks again."""

    def _fresh(self, op: RemoteOperation[GitHubClient]) -> str:
        if op in self._asked:
            return self._header
        header = f"token {ask_for_token(self._ask)}"
        self._asked.add(op)
        return header


class InstallationCredential(Credential):
    """The token of a GitHub App's installation."""

    def __init__(
        self,
        installation: AppInstallation,
        settings: Settings,
        redactor: Redactor,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(settings, redactor)
        self._installation = installation
        self._id = installation.installation_id
        self._clock = clock
        self._renew_at = -1.0
        self._made_at = -math.inf
        self._created: dict[str, float] = {}

    @property
    def _may_be_user_token(self) -> bool:
        return False

    def forget(self) -> None:
        """Discard the token. The next operation requests a new one."""
        self._renew_at = -1.0

    def is_fresh(self) -> bool:
        """Whether the token was made a few seconds ago. GitHub may refuse it with 401 for so long."""
        return self._clock() - self._made_at < _FRESH_SECONDS

    def note_created(self, repo: str) -> None:
        """Remember when the repository was created. A token made before does not cover it."""
        self._created[repo.casefold()] = self._clock()

    def has_created(self, repo: str | None) -> bool:
        """Whether the repository was created with this credential, which may not cover it."""
        return (repo or "").casefold() in self._created

    def renew_for(self, repo: str | None) -> bool:
        """Discard a token that is older than a repository created with it; True if there was one."""
        if self._made_at > self._created.get((repo or "").casefold(), -math.inf):
            return False
        self.forget()
        return True

    def _fresh(self, op: RemoteOperation[GitHubClient]) -> str:
        if self._renew_at > self._clock():
            return self._header
        lent, op.client = op.client, GitHubClient(self._settings, self._installation.app)
        try:
            if self._id is None:
                self._id = self._look_up(op, str(self._installation.owner))
            asked_at = self._clock()
            response = op.request("POST", ACCESS_TOKENS, id=self._id)
        except StatusError as exc:
            error = op.meaning(exc)
            if isinstance(error, AuthenticationError) and self._id is not None:
                error.message = f"no token for the installation {self._id}: {error.message}"
            raise error from exc
        finally:
            op.client.close()
            op.client = lent
        fields = JsonReader(response)
        token, expires_at = fields.str("token"), fields.time_or_none("expires_at")
        life = 3600.0 if expires_at is None else (expires_at - response.date).total_seconds()
        self._renew_at = asked_at + life - RENEWAL_MARGIN
        self._made_at = self._clock()
        return f"token {token}"

    @staticmethod
    def _look_up(op: RemoteOperation[GitHubClient], owner: str) -> int:
        for template in (INSTALLATION_OF_ORG, INSTALLATION_OF_USER):
            try:
                return op.read(template, owner=owner).int("id")
            except StatusError as exc:
                if exc.response.status != 404 or not isinstance(op.meaning(exc), AuthenticationError):
                    raise
        raise AuthenticationError(f"the App is not installed for {owner}", status=404)


class _FreshLocks:
    """A fork hook that does not keep its credential alive. It gives the child process new locks."""

    def __init__(self, credential: Credential) -> None:
        self._credential = weakref.ref(credential)

    def __call__(self) -> None:
        credential = self._credential()
        if credential is not None:
            credential._lock = threading.Lock()
            credential._login_lock = threading.Lock()


def read_auth(auth: Any, redactor: Redactor) -> github.Auth.Auth | AppInstallation | Callable[[], str] | str:
    """Return the auth object for ``auth``, or the problem as a str. It does not raise: a traceback has the secret."""
    if isinstance(auth, AppInstallation | github.Auth.Auth):
        return auth
    if not isinstance(auth, str):
        if callable(auth):
            return cast("Callable[[], str]", auth)
        kind = type(auth).__name__
        return f"must be a token, a function that returns one, a github.Auth.Auth or an AppInstallation, not {kind}"
    if not re.fullmatch(r"[!-~]+", auth):
        return "is empty, or contains a space, a line break or a character that is not ASCII"
    redactor.learn(auth)
    return github.Auth.Token(auth)


def make_credential(
    source: github.Auth.Auth | AppInstallation | Callable[[], str],
    settings: Settings,
    redactor: Redactor,
    clock: Callable[[], float],
) -> Credential:
    """Return the credential of a provider."""
    if isinstance(source, AppInstallation):
        return InstallationCredential(source, settings, redactor, clock=clock)
    if isinstance(source, github.Auth.Auth):
        return SdkCredential(source, settings, redactor)
    return AskedCredential(source, settings, redactor)
