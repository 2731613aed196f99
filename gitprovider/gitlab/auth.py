"""Credentials: a private (personal, project or group access) token, or an OAuth token, or a function for one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gitprovider.checks import refuse

Token = str | Callable[[], str]
_TOKEN = re.compile(r"[!-~]+")


class Credential:
    """One token, under python-gitlab's name for its kind, or the function that returns it.

    No repr shows it, and it cannot be pickled.

    Attributes:
        ask: the function; None for a token that does not change.
    """

    __slots__ = ("_kind", "_token", "ask")

    def __init__(self, *, private_token: Token | None, oauth_token: Token | None) -> None:
        """Check the token. A function is not called yet.

        Raises:
            InvalidRequestError: there is none, or there are two; or these endpoints do not take it.
        """
        given: dict[str, Any] = {"private_token": private_token, "oauth_token": oauth_token}
        # A traceback through here holds the frame's names.
        private_token = oauth_token = None
        kinds = [name for name, token in given.items() if token is not None]
        if len(kinds) != 1:
            given.clear()
            refuse("private_token", "or oauth_token must be given, and not both")
        self._kind: str = kinds[0]
        self._token: Any = given.pop(self._kind)
        given.clear()
        is_function = callable(self._token) and not isinstance(self._token, str)
        self.ask: Callable[[], str] | None = self._token if is_function else None
        if is_function:
            self._token = ""
            return
        if not isinstance(self._token, str) or not _TOKEN.fullmatch(self._token):
            refuse(self._kind, "must be a str of printable ASCII characters, without spaces around it")
        if self._token.startswith("glcbt-"):
            refuse(
                self._kind,
                "is a CI job token, which reaches none of the endpoints that are needed; "
                "use a project or group access token with the scope api",
            )

    @property
    def token(self) -> str:
        """The token itself, for redaction."""
        return str(self._token)

    def keywords(self) -> dict[str, str]:
        """The token as python-gitlab's keyword argument. There is none if a function returns it."""
        return {} if self.ask is not None else {self._kind: self.token}

    def header(self, token: str) -> tuple[str, str]:
        """Return the header for a token of this kind (https://docs.gitlab.com/api/rest/authentication/)."""
        return ("PRIVATE-TOKEN", token) if self._kind == "private_token" else ("Authorization", f"Bearer {token}")

    def __repr__(self) -> str:
        return "Credential(***)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a Credential holds a token and cannot be pickled")
