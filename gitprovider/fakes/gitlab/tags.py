"""Endpoints for tags: https://docs.gitlab.com/api/tags/ ."""

from __future__ import annotations

from typing import Any

import pygit2
from pygit2.enums import ObjectType

from gitprovider.checks import check_branch
from gitprovider.errors import InvalidRequestError
from gitprovider.fakes.gitlab import bodies, responses
from gitprovider.fakes.gitlab.call import Call
from gitprovider.fakes.gitlab.objects import TAGS, resolve, tag_names
from gitprovider.fakes.gitlab.responses import Refusal, reply
from gitprovider.fakes.http import Response
from gitprovider.local.database import RepoRecord
from gitprovider.local.git import BareRepository, opened, signature


def _shown(call: Call, record: RepoRecord, repository: BareRepository, name: str) -> dict[str, Any]:
    target: Any = repository.git[repository.git.references[TAGS + name].target]
    commit = target.peel(pygit2.Commit)
    annotated = isinstance(target, pygit2.Tag)
    shown = bodies.commit(call.site, record, commit)
    return {
        "name": name,
        "message": target.message.rstrip("\n") if annotated else "",
        "target": str(target.id),
        "commit": shown,
        "release": None,
        "protected": False,
        "created_at": shown["created_at"] if annotated else None,
    }


def list_tags(call: Call, project: str) -> Response:
    """The tags of a project, the latest commit first by default."""
    record = call.project(project)
    call.only("search", "order_by", "sort")
    search, order = call.text("search").lower(), call.choice("order_by", ("name", "updated")) or "updated"
    with opened(record.git_dir, record.path) as repository:
        shown = [_shown(call, record, repository, name) for name in tag_names(repository) if search in name.lower()]
    key = "name" if order == "name" else "committed_date"
    shown.sort(
        key=lambda one: one["name"] if key == "name" else one["commit"][key],
        reverse=call.choice("sort", ("asc", "desc")) != "asc",
    )
    return call.page(shown, "gl-tags", id=record.id)


def get_tag(call: Call, project: str, name: str) -> Response:
    """One tag by its exact name."""
    record = call.project(project)
    with opened(record.git_dir, record.path) as repository:
        if name not in tag_names(repository):
            raise responses.missing("Tag", "gl-tag-missing")
        return reply(_shown(call, record, repository, name), "gl-tag")


def create_tag(call: Call, project: str) -> Response:
    """Create a tag. With a message it is annotated."""
    record = call.writable(project)
    name, ref = call.require("tag_name", "ref")
    try:
        check_branch("tag_name", name)
    except InvalidRequestError:
        raise Refusal(400, "Tag name invalid", "gl-tag-refused") from None
    with opened(record.git_dir, record.path) as repository:
        if name in tag_names(repository):
            raise Refusal(400, f"Tag {name} already exists", "gl-tag-refused")
        found = resolve(repository, record, ref)
        if found is None:
            raise Refusal(400, f"Target {ref} is invalid", "gl-tag-refused")
        if message := call.text("message"):
            tagger = signature(call.state.identity, call.state.now())
            repository.git.create_tag(name, found.id, ObjectType.COMMIT, tagger, message)
        else:
            repository.git.references.create(TAGS + name, found.id)
        return reply(_shown(call, record, repository, name), "gl-tag-created", status=201, effect=True)


def delete_tag(call: Call, project: str, name: str) -> Response:
    """Delete a tag."""
    record = call.writable(project)
    with opened(record.git_dir, record.path) as repository:
        if name not in tag_names(repository):
            raise responses.missing("Tag", "gl-tag-missing")
        repository.git.references.delete(TAGS + name)
    return reply(None, "gl-tag-deleted", status=204, effect=True)
