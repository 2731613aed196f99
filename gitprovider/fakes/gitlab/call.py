"""One request to the fake GitLab: its parameters and its project."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from gitprovider.errors import NotFoundError, RepoMovedError
from gitprovider.fakes.gitlab import responses
from gitprovider.fakes.gitlab.forms import nested, read_form
from gitprovider.fakes.gitlab.responses import Refusal, invalid
from gitprovider.fakes.gitlab.state import DEVELOPERS, State
from gitprovider.fakes.http import Request, Response
from gitprovider.local.database import RepoRecord
from gitprovider.local.forge import Forge
from gitprovider.models import Visibility

_T = TypeVar("_T")


def chosen(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    """The one of ``allowed`` that ``value`` is or has the text of. None stays None."""
    if value is None:
        return None
    for one in allowed:
        if value == one or (isinstance(value, str) and value == str(one)):
            return one
    raise invalid(f"{name} does not have a valid value")


def truth(name: str, value: Any) -> bool | None:
    """A boolean, as itself or as text. None stays None."""
    if value is None:
        return None
    if str(value).lower() in ("true", "1"):
        return True
    if str(value).lower() in ("false", "0"):
        return False
    raise invalid(f"{name} is invalid")


# What GitLab documents for a project or a merge request and would change what is made.
# https://docs.gitlab.com/api/projects/#create-a-project, https://docs.gitlab.com/api/merge_requests/#create-mr
WRITES = frozenset(
    [
        "allow_collaboration",
        "allow_maintainer_to_push",
        "approvals_before_merge",
        "archived",
        "assignee_id",
        "assignee_ids",
        "avatar",
        "builds_access_level",
        "ci_config_path",
        "discussion_locked",
        "forking_access_level",
        "import_url",
        "issues_access_level",
        "issues_enabled",
        "jobs_enabled",
        "merge_after",
        "merge_commit_template",
        "merge_requests_access_level",
        "merge_requests_enabled",
        "milestone_id",
        "mirror",
        "only_allow_merge_if_all_discussions_are_resolved",
        "pages_access_level",
        "request_access_enabled",
        "resolve_outdated_diff_discussions",
        "shared_runners_enabled",
        "snippets_enabled",
        "squash_commit_template",
        "tag_list",
        "target_project_id",
        "template_name",
        "template_project_id",
        "topics",
        "use_custom_template",
        "wiki_access_level",
        "wiki_enabled",
    ]
)


class Call:
    """What a handler gets: the request and the state of the server.

    Attributes:
        params: the parameters of the query and the body together.
        site: the URL of the installation in the links of the response.
    """

    def __init__(self, state: State, request: Request, site: str) -> None:
        self.state = state
        self.request = request
        self.site = site
        self.params: Mapping[str, Any] = self._read()

    @property
    def forge(self) -> Forge:
        """The forge that stores the projects."""
        return self.state.forge

    def _read(self) -> Mapping[str, Any]:
        try:
            form = read_form(self.request.headers.get("content-type", ""), self.request.body)
            fields = nested([*self.request.fields, *(form or ())])
        except ValueError:
            raise Refusal(400, "400 Bad request", "gl-bad-request") from None
        return fields if form is not None else {**fields, **self._read_json()}

    def _read_json(self) -> Mapping[str, Any]:
        try:
            body = self.request.json()
        except ValueError:
            raise invalid("The request body is not valid JSON", "gl-bad-json") from None
        if not isinstance(body, dict):
            raise invalid("The request body is not valid JSON", "gl-bad-json")
        return body

    # Parameters

    def only(self, *names: str) -> None:
        """Refuse a request that has a parameter which is not modelled: without it, it would mean something else.

        Parameters that GitLab does not have are ignored, as GitLab does. It has those of ``WRITES`` in a write. In a
        read, any may be one of its filters, but for the ``id`` of its own links.
        """
        known = {*names, "page", "per_page", "id"}
        read = self.request.method in ("GET", "HEAD")
        if other := [name for name in self.params if name not in known and (read or name in WRITES)]:
            raise responses.unmodelled(f"the parameter {', '.join(sorted(other))} of {self.request.path}")

    def require(self, *names: str) -> list[str]:
        """Required text parameters. They must not be empty."""
        absent = [f"{name} is missing" for name in names if self.params.get(name) is None]
        empty = [f"{name} is empty" for name in names if self.params.get(name) == ""]
        if absent or empty:
            raise invalid(", ".join(absent + empty), "gl-param-missing")
        return [str(self.params[name]) for name in names]

    def text(self, name: str, default: str = "") -> str:
        """A text parameter. Null counts as absent."""
        value = self.params.get(name)
        return default if value is None else str(value)

    def flag(self, name: str) -> bool | None:
        """A boolean parameter, or None if it is absent."""
        return truth(name, self.params.get(name))

    def choice(self, name: str, allowed: Sequence[Any]) -> Any:
        """A parameter that must be one of ``allowed``, or None if it is absent. A form has numbers as text."""
        return chosen(name, self.params.get(name), allowed)

    def strings(self, name: str) -> list[str] | None:
        """A list parameter, or None if it is absent. It may be a list or comma-separated text."""
        value = self.params.get(name)
        if value is None:
            return None
        parts = value if isinstance(value, list) else str(value).split(",")
        return [str(part).strip() for part in parts if str(part).strip()]

    # The project

    def project(self, key: str) -> RepoRecord:
        """The project with a number or full path."""
        try:
            record = self.forge.repo_by_id(int(key)) if key.isdecimal() else self._by_path(key)
        except NotFoundError:
            raise responses.missing("Project", "gl-project-missing") from None
        if not self.sees(record):
            raise responses.missing("Project", "gl-project-missing")
        return record

    def sees(self, record: RepoRecord) -> bool:
        """Whether the request may see a project: without a token only a public one."""
        is_open = bool(self.state.acting) or record.visibility is Visibility.PUBLIC
        return is_open and record.path not in self.state.hidden

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
        place = f"{self.site}{head.removeprefix(self.state.prefix)}/projects/{number}{'/' if rest else ''}{rest}"
        text = f"This resource has been moved permanently to {place}"
        return Refusal(301, text, "gl-moved-read", headers={"Location": place})

    def writable(self, key: str, role: int = DEVELOPERS) -> RepoRecord:
        """The project, if the token's user may change it."""
        record = self.project(key)
        if record.archived:
            raise responses.forbidden("gl-project-archived")
        if self.state.role < role:
            raise responses.forbidden("gl-forbidden")
        return record

    # Pages

    def page(
        self,
        items: Sequence[_T],
        fact: str,
        *,
        show: Callable[[_T], Any] = lambda item: item,
        totals: bool = True,
        **keys: Any,
    ) -> Response:
        """One page of ``items``. ``keys`` are more parameters of its links. Some lists never have totals."""
        return responses.page(
            items,
            fact,
            show=show,
            url=f"{self.site}{self.request.path.removeprefix(self.state.prefix)}",
            params=self.params,
            keys=keys,
            totals=totals and self.state.totals,
        )
