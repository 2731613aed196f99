"""One request on its way through the GitHub fake: who asks, about which repository, with what body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gitprovider.fakes.github.answers import Refusal, typed
from gitprovider.fakes.github.bodies import Bodies
from gitprovider.fakes.host import Request
from gitprovider.local.database import RepoRecord
from gitprovider.local.forge import Forge
from gitprovider.models import BranchProtection

if TYPE_CHECKING:
    from gitprovider.fakes.github.server import FakeGitHub


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    Attributes:
        kind: ``user``; ``installation`` (of an App, with its token); ``app`` (with its signed claim); ``anonymous``.
        login: the user, or the account that the App is installed on.
    """

    kind: str
    login: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A request with what the fake has found out about it.

    Attributes:
        found: the repository that the path names; None where it names none.
    """

    fake: FakeGitHub
    request: Request
    caller: Caller
    bodies: Bodies
    found: RepoRecord | None

    @property
    def forge(self) -> Forge:
        """The host behind the fake."""
        return self.fake.forge

    @property
    def record(self) -> RepoRecord:
        """The repository that the path names."""
        assert self.found is not None
        return self.found

    @property
    def path(self) -> str:
        """The repository's full path, as it is spelled."""
        return self.record.path

    @property
    def owner(self) -> str:
        """The first part of the path."""
        return self.path.split("/", 1)[0]

    def bypasses(self, protection: BranchProtection | None) -> bool:
        """Whether protection does not bind the caller: an administrator, unless it is enforced for those too."""
        return self.fake.admin and (protection is None or not protection.enforce_admins)

    def json(self) -> Any:
        """The body.

        Raises:
            Refusal: it is no JSON.
        """
        try:
            return self.request.json()
        except ValueError:
            raise Refusal("gh-not-json") from None

    def fields(self, required: Mapping[str, type], optional: Mapping[str, type] | None = None) -> dict[str, Any]:
        """The body's fields, with the types they must have; an optional one may be null. Others stay as they are.

        Raises:
            Refusal: no JSON object, a required field is absent, or a field has another type.
        """
        body = self.json()
        if not isinstance(body, dict):
            raise Refusal("gh-not-object")
        if absent := [name for name in sorted(required) if name not in body]:
            names = ", ".join(f'"{name}"' for name in absent)
            raise Refusal("gh-not-supplied", names=names, verb="wasn't" if len(absent) == 1 else "weren't")
        for name, kind in {**(optional or {}), **required}.items():
            value = body.get(name)
            if value is not None or name in required:
                typed(name, value, kind)
        return body
