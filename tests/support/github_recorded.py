"""How recorded exchanges with GitHub are read: see ``tests/support/recordings.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.response import Response
from gitprovider.errors import GitProviderError
from gitprovider.github import convert, errors, protection
from gitprovider.models import PullRequest
from tests.support.recordings import Converters


def _pull(fields: JsonReader) -> PullRequest:
    convert.in_one_repo(fields)
    return convert.pull_request(fields)


def _one(converter: Callable[[JsonReader], Any]) -> Callable[[Response], Any]:
    return lambda response: converter(JsonReader(response))


def _each(converter: Callable[[JsonReader], Any]) -> Callable[[Response], Any]:
    return lambda response: [converter(item) for item in JsonReader.each(response)]


CONVERTERS: Converters = {
    "get_repo": _one(convert.repo),
    "edit_repo": _one(convert.repo),
    "generate_repo": _one(convert.repo),
    "create_org_repo": _one(convert.repo),
    "create_user_repo": _one(convert.repo),
    "get_user_login": _one(lambda fields: fields.str("login")),
    "list_branches": _each(convert.branch),
    "get_branch": _one(convert.head),
    "get_ref": _one(convert.ref_sha),
    "update_ref": _one(convert.ref_sha),
    "create_blob": _one(convert.sha),
    "create_tree": _one(convert.sha),
    "get_tree": _one(convert.tree),
    "create_git_commit": _one(lambda fields: convert.commit(fields, "main")),
    "get_git_commit": _one(convert.commit),
    "put_contents": _one(lambda fields: convert.commit(fields.object("commit"), "main")),
    "create_pull": _one(_pull),
    "edit_pull": _one(_pull),
    "list_pulls": _each(convert.pull_request),
    "merge_pull": _one(convert.merge_result),
    "reviewers": _one(lambda fields: [user.str("login") for user in fields.objects("requested_reviewers")]),
    "put_protection": _one(protection.demands),
    "rulesets": lambda response: protection.from_rulesets(JsonReader.each(response)),
    "delete_ref": lambda response: response.status == 204,
}
ENDPOINTS = {
    "create_org_repo": errors.ORG_REPOS,
    "create_user_repo": errors.USER_REPOS,
    "get_ref": errors.GET_REF,
    "create_ref": errors.CREATE_REF,
    "update_ref": errors.MOVE_REF,
    "delete_ref": errors.DELETE_REF,
    "create_tree": errors.TREES,
    "create_git_commit": errors.COMMITS,
    "get_git_commit": errors.GET_COMMIT,
    "put_contents": errors.CONTENTS,
    "create_pull": errors.PULLS,
    "reviewers": errors.REVIEWERS,
    "merge_pull": errors.MERGE,
    "get_protection": errors.GET_PROTECTION,
    "put_protection": errors.PROTECT,
}


def meaning(response: Response) -> GitProviderError:
    """What a refusal means."""
    return errors.refusal(response)
