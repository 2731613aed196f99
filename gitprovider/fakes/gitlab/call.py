"""One request to the GitLab fake: its parameters, the project that it names, and what its token may do there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from gitprovider.errors import NotFoundError, RepoMovedError
from gitprovider.fakes.gitlab import answers
from gitprovider.fakes.gitlab.answers import Refusal, invalid
from gitprovider.fakes.host import Request, Response

if TYPE_CHECKING:
    from gitprovider.fakes.gitlab.server import FakeGitLab
    from gitprovider.local.database import RepoRecord
    from gitprovider.local.forge import Forge

_T = TypeVar("_T")

DEVELOPER = 30
MAINTAINER = 40


class Call:
    """What a handler is given.

    Attributes:
        params: the query's and the body's parameters together, as GitLab reads them.
        site: the URL of the installation, as the answer's links write it.
    """

    def __init__(self, fake: FakeGitLab, request: Request, site: str) -> None:
        self.fake = fake
        self.request = request
        self.site = site
        self.params: Mapping[str, Any] = self._read()

    @property
    def forge(self) -> Forge:
        """The forge behind the fake."""
        return self.fake.forge

    def _read(self) -> Mapping[str, Any]:
        try:
            body = self.request.json()
        except ValueError:
            raise invalid("The request body is not valid JSON", "gl-bad-json") from None
        if not isinstance(body, dict):
            raise invalid("The request body is not valid JSON", "gl-bad-json")
        return {**self.request.query, **body}

    # parameters

    def need(self, *names: str) -> list[str]:
        """Text parameters that must be there and must not be empty."""
        absent = [f"{name} is missing" for name in names if self.params.get(name) is None]
        empty = [f"{name} is empty" for name in names if self.params.get(name) == ""]
        if absent or empty:
            raise invalid(", ".join(absent + empty), "gl-param-missing")
        return [str(self.params[name]) for name in names]

    def text(self, name: str, default: str = "") -> str:
        """A text parameter; null counts as absent."""
        value = self.params.get(name)
        return default if value is None else str(value)

    def flag(self, name: str) -> bool | None:
        """A boolean parameter, or None when it is absent."""
        value = self.params.get(name)
        if value is None:
            return None
        if str(value).lower() in ("true", "1"):
            return True
        if str(value).lower() in ("false", "0"):
            return False
        raise invalid(f"{name} is invalid")

    def choice(self, name: str, allowed: Sequence[Any]) -> Any:
        """A parameter that must be one of ``allowed``, or None when it is absent."""
        value = self.params.get(name)
        if value is not None and value not in allowed:
            raise invalid(f"{name} does not have a valid value")
        return value

    def words(self, name: str) -> list[str] | None:
        """A list parameter, which may come as a list or as text with commas; None when it is absent."""
        value = self.params.get(name)
        if value is None:
            return None
        parts = value if isinstance(value, list) else str(value).split(",")
        return [str(part).strip() for part in parts if str(part).strip()]

    # the project

    def project(self, key: str) -> RepoRecord:
        """The project by its number or full path, as every endpoint below ``/projects/:id`` finds it."""
        try:
            record = self.forge.repo_by_id(int(key)) if key.isdecimal() else self._by_path(key)
        except NotFoundError:
            raise answers.missing("Project", "gl-project-missing") from None
        if record.path in self.fake.hidden:
            raise answers.missing("Project", "gl-project-missing")
        return record

    def _by_path(self, path: str) -> RepoRecord:
        try:
            return self.forge.repo(path)
        except RepoMovedError as moved:
            raise self._moved(self.forge.repo(str(moved.moved_to)).id) from None

    def _moved(self, number: int) -> Refusal:
        if self.request.method != "GET":
            text = "Non GET methods are not allowed for moved projects"
            return Refusal(405, text, "gl-moved-write")
        head, _, tail = self.request.path.partition("/projects/")
        rest = tail.partition("/")[2]
        place = f"{self.site}{head.removeprefix(self.fake.prefix)}/projects/{number}{'/' if rest else ''}{rest}"
        text = f"This resource has been moved permanently to {place}"
        return Refusal(301, text, "gl-moved-read", headers={"Location": place})

    def writable(self, key: str, role: int = DEVELOPER) -> RepoRecord:
        """The project, when the token's user may change it."""
        record = self.project(key)
        if record.archived:
            raise answers.forbidden("gl-project-archived")
        if self.fake.role < role:
            raise answers.forbidden("gl-forbidden")
        return record

    # answers

    def page(
        self, items: Sequence[_T], fact: str, *, show: Callable[[_T], Any] = lambda item: item, **keys: Any
    ) -> Response:
        """One page of ``items``; ``keys`` are what its links carry besides the page."""
        return answers.page(
            items,
            fact,
            show=show,
            url=f"{self.site}{self.request.path.removeprefix(self.fake.prefix)}",
            params=self.params,
            keys=keys,
            totals=self.fake.totals,
        )
