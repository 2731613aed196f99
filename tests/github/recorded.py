"""How recorded exchanges with GitHub are read: see ``tests/recordings.py``."""

from __future__ import annotations

from gitprovider._remote.operation import Answer
from gitprovider._remote.reader import Fields
from gitprovider.errors import GitProviderError
from gitprovider.github import convert, protection
from gitprovider.github import errors as translate
from gitprovider.models import PullRequest
from tests.recordings import Converters


def _pull(answer: Answer) -> PullRequest:
    fields = Fields(answer)
    convert.in_one_repo(fields)
    return convert.pull_request(fields)


CONVERTERS: Converters = {
    "get_repo": convert.repo,
    "edit_repo": convert.repo,
    "generate_repo": convert.repo,
    "create_org_repo": convert.repo,
    "create_user_repo": convert.repo,
    "get_user_login": lambda answer: Fields(answer).text("login"),
    "list_branches": convert.branches,
    "get_branch": convert.head,
    "get_ref": convert.ref_sha,
    "update_ref": convert.ref_sha,
    "create_blob": lambda answer: convert.sha(Fields(answer)),
    "create_tree": lambda answer: convert.sha(Fields(answer)),
    "get_tree": convert.tree,
    "create_git_commit": lambda answer: convert.commit(Fields(answer), "main"),
    "get_git_commit": lambda answer: convert.commit(Fields(answer), ""),
    "put_contents": lambda answer: convert.commit(Fields(answer).sub("commit"), "main"),
    "create_pull": _pull,
    "edit_pull": _pull,
    "list_pulls": lambda answer: [convert.pull_request(fields) for fields in Fields.each(answer)],
    "merge_pull": lambda answer: convert.merge_result(Fields(answer)),
    "reviewers": lambda answer: [user.text("login") for user in Fields(answer).items("requested_reviewers")],
    "put_protection": lambda answer: protection.held(Fields(answer)),
    "rulesets": protection.from_rulesets,
    "delete_ref": lambda answer: answer.status == 204,
}
ENDPOINTS = {
    "create_org_repo": translate.ORG_REPOS,
    "create_user_repo": translate.USER_REPOS,
    "get_ref": translate.GET_REF,
    "create_ref": translate.CREATE_REF,
    "update_ref": translate.MOVE_REF,
    "delete_ref": translate.DELETE_REF,
    "create_tree": translate.TREES,
    "create_git_commit": translate.COMMITS,
    "get_git_commit": translate.GET_COMMIT,
    "put_contents": translate.CONTENTS,
    "create_pull": translate.PULLS,
    "reviewers": translate.REVIEWERS,
    "merge_pull": translate.MERGE,
    "get_protection": translate.GET_PROTECTION,
    "put_protection": translate.PROTECT,
}


def meaning(answer: Answer, endpoint: str) -> GitProviderError:
    """What a refusal means."""
    return translate.refusal(answer, endpoint)
