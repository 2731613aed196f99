"""Endpoints for groups and lists of projects: https://docs.gitlab.com/api/groups/ ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gitprovider.fakes.gitlab import bodies, repositories, responses
from gitprovider.fakes.gitlab.call import Call
from gitprovider.fakes.gitlab.responses import Refusal, reply
from gitprovider.fakes.gitlab.state import OWNERS
from gitprovider.fakes.http import Response
from gitprovider.local.database import RepoRecord
from gitprovider.models import Visibility

_VISIBILITIES = tuple(str(one) for one in Visibility)
_ORDERS: dict[str, Callable[[RepoRecord], Any]] = {
    "id": lambda record: record.id,
    "name": lambda record: record.settings.get("name", record.path.rpartition("/")[2]).lower(),
    "path": lambda record: record.path.rpartition("/")[2].lower(),
    "created_at": lambda record: (record.created_at, record.id),
}
_SIMPLE = (
    *("id", "description", "name", "name_with_namespace", "path", "path_with_namespace", "created_at"),
    *("default_branch", "tag_list", "topics", "ssh_url_to_repo", "http_url_to_repo", "web_url", "readme_url"),
    *("forks_count", "avatar_url", "star_count", "last_activity_at", "namespace", "visibility"),
)

# Projects


def list_projects(call: Call) -> Response:
    """The projects that the token's user may see: https://docs.gitlab.com/api/projects/#list-all-projects ."""
    call.only("owned", "membership", "search", "visibility", "archived", "order_by", "sort", "simple")
    mine = {group.lower() for group in call.state.groups} | {call.state.acting.lower()}
    owned = mine if call.state.role >= OWNERS else {call.state.acting.lower()}
    wanted = owned if call.flag("owned") else mine if call.flag("membership") else None
    return _listed(call, lambda owner: wanted is None or owner in wanted)


def list_group_projects(call: Call, group: str) -> Response:
    """The projects of a group, and with ``include_subgroups`` those below it."""
    call.only("include_subgroups", "search", "visibility", "archived", "order_by", "sort", "simple")
    path = _found(call, group).lower()
    deep = bool(call.flag("include_subgroups"))
    return _listed(call, lambda owner: owner == path or (deep and owner.startswith(f"{path}/")))


def _listed(call: Call, belongs: Callable[[str], bool]) -> Response:
    search, visibility, archived = call.text("search").lower(), call.choice("visibility", _VISIBILITIES), None
    if call.params.get("archived") is not None:
        archived = call.flag("archived")
    order = call.choice("order_by", tuple(_ORDERS)) or "created_at"
    found = [
        record
        for record in call.forge.repos()
        if belongs(record.path.rpartition("/")[0].lower())
        and call.sees(record)
        and visibility in (None, str(record.visibility))
        and archived in (None, record.archived)
        and any(search in text.lower() for text in (str(_ORDERS["name"](record)), record.path.rpartition("/")[2]))
    ]
    found.sort(key=_ORDERS[order], reverse=call.choice("sort", ("asc", "desc")) != "asc")
    simple = bool(call.flag("simple"))

    def show(record: RepoRecord) -> dict[str, Any]:
        body = repositories.shown_project(call, record)
        return {name: body[name] for name in _SIMPLE} if simple else body

    keys = {
        name: call.params[name]
        for name in ("owned", "membership", "search", "visibility", "archived", "include_subgroups", "simple")
        if name in call.params
    }
    sort = call.text("sort") or "desc"
    return call.page(found, "gl-projects", show=show, order_by=order, sort=sort, **keys)


# Groups


def _visible(call: Call, path: str) -> bool:
    return bool(call.state.acting) or _details(call, path)["visibility"] == "public"


def _details(call: Call, path: str) -> dict[str, str]:
    default = {"name": path.rpartition("/")[2], "description": "", "visibility": "private"}
    return call.state.group_details.get(path, default)


def _found(call: Call, key: str) -> str:
    for path in call.state.groups:
        if (key.lower() == path.lower() or key == str(bodies.namespace_id(path))) and _visible(call, path):
            return path
    raise responses.missing("Group", "gl-group-missing")


def _shown(call: Call, path: str) -> dict[str, Any]:
    place = bodies.namespace(call.site, path, kind="group")
    names = [_details(call, "/".join(path.split("/")[:depth]))["name"] for depth in range(1, path.count("/") + 2)]
    return {
        **{name: place[name] for name in ("id", "web_url", "path", "full_path", "parent_id", "avatar_url")},
        **_details(call, path),
        "full_name": " / ".join(names),
        "created_at": "2020-01-01T00:00:00.000Z",
    }


def get_group(call: Call, group: str) -> Response:
    """A group by its number or full path."""
    return reply(_shown(call, _found(call, group)), "gl-group")


def list_groups(call: Call) -> Response:
    """The groups that the token's user may see, by name."""
    call.only("owned", "top_level_only", "search")
    owned = bool(call.flag("owned")) and call.state.role < OWNERS
    top = bool(call.flag("top_level_only"))
    return _groups(call, [path for path in call.state.groups if not owned and not (top and "/" in path)])


def list_subgroups(call: Call, group: str) -> Response:
    """The groups directly below a group."""
    call.only("search")
    parent = _found(call, group)
    return _groups(call, [path for path in call.state.groups if path.rpartition("/")[0] == parent])


def _groups(call: Call, paths: Sequence[str]) -> Response:
    search = call.text("search").lower()
    shown = [_shown(call, path) for path in paths if _visible(call, path)]
    found = [one for one in shown if search in one["name"].lower() or search in one["path"].lower()]
    return call.page(sorted(found, key=lambda one: (one["name"].lower(), one["id"])), "gl-groups")


def create_group(call: Call) -> Response:
    """Create a group, or with ``parent_id`` a subgroup."""
    name, path = call.require("name", "path")
    repositories.check_names(name, path)
    visibility = call.choice("visibility", _VISIBILITIES) or "private"
    if call.params.get("parent_id") is not None:
        path = f"{_found(call, call.text('parent_id'))}/{path}"
    taken = {one.lower() for one in (*call.state.groups, *call.state.users)}
    if path.lower() in taken | {record.path.lower() for record in call.forge.repos()}:
        raise Refusal(400, 'Failed to save group {:path=>["has already been taken"]}', "gl-group-taken")
    call.state.groups.add(path)
    call.state.group_details[path] = {
        "name": name,
        "description": call.text("description"),
        "visibility": visibility,
    }
    return reply(_shown(call, path), "gl-group-created", status=201, effect=True)
