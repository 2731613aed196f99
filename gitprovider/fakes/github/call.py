"""One request to the fake GitHub: its caller, its repository and its body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gitprovider.fakes.github.bodies import Bodies
from gitprovider.fakes.github.responses import Refusal, not_supplied, typed
from gitprovider.fakes.github.state import App, State
from gitprovider.fakes.http import Request
from gitprovider.local.database import RepoRecord
from gitprovider.local.forge import Forge
from gitprovider.models import BranchProtection


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request.

    Attributes:
        kind: ``user``; ``installation`` (of an App, with its token); ``app`` (with its signed claim); ``anonymous``.
        login: the user, or the account that the App is installed on.
    """

    kind: str
    login: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler gets: the request and what the server knows about it.

    Attributes:
        found: the repository that the path names, or None if it names none.
    """

    state: State
    request: Request
    caller: Caller
    bodies: Bodies
    found: RepoRecord | None

    @property
    def forge(self) -> Forge:
        """The forge that stores the repositories."""
        return self.state.forge

    @property
    def record(self) -> RepoRecord:
        """The repository that the path names."""
        assert self.found is not None
        return self.found

    @property
    def path(self) -> str:
        """The repository's full path, in its own spelling."""
        return self.record.path

    @property
    def owner(self) -> str:
        """The first part of the path."""
        return self.path.split("/", 1)[0]

    @property
    def app(self) -> App:
        """The App that calls.

        Raises:
            Refusal: the caller has no JSON web token of the App.
        """
        if self.caller.kind != "app" or self.state.app is None:
            raise Refusal("gh-bad-jwt")
        return self.state.app

    @property
    def by_id(self) -> str:
        """The repository's URL by its id, which the links of pages use."""
        return f"{self.bodies.api}/repositories/{self.record.id}"

    def bypasses(self, protection: BranchProtection | None) -> bool:
        """Whether the caller bypasses protection, as administrators do unless it is enforced for them."""
        return self.state.admin and (protection is None or not protection.enforce_admins)

    def json(self) -> Any:
        """The body.

        Raises:
            Refusal: the body is not JSON.
        """
        try:
            return self.request.json()
        except ValueError:
            raise Refusal("gh-not-json") from None

    def fields(self, required: Mapping[str, type], optional: Mapping[str, type] | None = None) -> dict[str, Any]:
        """The body's fields, checked for their types. An optional field may be null; other fields are not checked.

        Raises:
            Refusal: the body is not an object, a required field is absent, or a field has another type.
        """
        body = self.json()
        if not isinstance(body, dict):
            raise Refusal("gh-not-object")
        if absent := [name for name in sorted(required) if name not in body]:
            raise not_supplied("gh-not-supplied", absent)
        for name, kind in {**(optional or {}), **required}.items():
            value = body.get(name)
            if value is not None or name in required:
                typed(name, value, kind)
        return body
