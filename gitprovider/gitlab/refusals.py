"""A refused write, explained by a read, and reads whose response is compared with what was asked.

After a read of the same thing has succeeded, a 404 to a write is a lack of permission. GitLab hides what a credential
may not change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation
from gitprovider._remote.response import Response, StatusError
from gitprovider.errors import NotFoundError, Outcome, PermissionDeniedError, UnexpectedResponseError
from gitprovider.gitlab import convert
from gitprovider.gitlab.client import GitLabClient
from gitprovider.gitlab.endpoints import BRANCH, COMMIT, MERGE_REQUEST, PROJECT
from gitprovider.models import Branch, Commit


def write(
    op: RemoteOperation[GitLabClient],
    method: str,
    template: str,
    *,
    there: Callable[[], Any] | None = None,
    **given: Any,
) -> Response:
    """Send a write, once. After a 404, what the write is about is read: it may be there.

    Args:
        there: reads what the write is about, and raises NotFoundError, or a StatusError that means it, where that is
            absent. By default the project.

    Raises:
        PermissionDeniedError: 404, and it is there.
        StatusError, BodyError: as :meth:`RemoteOperation.request`.
    """
    try:
        return op.request(method, template, **given)
    except StatusError as exc:
        refused = op.meaning(exc)
        if exc.response.status != 404 or not isinstance(refused, NotFoundError) or refused.code is not None:
            raise
        try:
            (there or (lambda: op.read(PROJECT, project=op.repo)))()
        except Exception:  # GitLab's own message remains
            raise refused from exc
        raise PermissionDeniedError(
            f"{refused.message}, though it can be read",
            status=refused.status,
            request_id=refused.request_id,
            hint="this credential may read it and not change it; the role or the token's scope is too low",
        ) from exc


def is_absent(exc: StatusError, what: str) -> bool:
    """Whether a refused read proves that a ``Branch``, say, is absent, by the application's words for it.

    ``404 Project Not Found`` does not. GitLab returns it also to a credential that has lost the right to read.
    """
    data = exc.response.data
    return exc.response.status == 404 and isinstance(data, dict) and data.get("message") == f"404 {what} Not Found"


def read_branch(op: RemoteOperation[GitLabClient], name: str) -> Branch:
    """A branch of exactly this name.

    Raises:
        UnexpectedResponseError: GitLab returned another branch.
    """
    found = convert.branch(op.read(BRANCH, project=op.repo, branch=name))
    check_same("branch", found.name, name)
    return found


def read_commit(op: RemoteOperation[GitLabClient], sha: str, branch: str = "") -> Commit:
    """A commit by its sha.

    Raises:
        UnexpectedResponseError: GitLab returned another commit.
    """
    found = convert.commit(op.read(COMMIT, project=op.repo, sha=sha), branch)
    check_same("commit", found.sha, sha)
    return found


def read_merge_request(op: RemoteOperation[GitLabClient], number: int) -> JsonReader:
    """A merge request by its number.

    Raises:
        UnexpectedResponseError: GitLab returned another merge request.
    """
    found = op.read(MERGE_REQUEST, project=op.repo, iid=number)
    check_same("merge request", found.int("iid"), number)
    return found


def check_same(what: str, returned: object, asked: object) -> None:
    """Raise if GitLab returned another thing than the one that was asked for."""
    if returned != asked:
        raise UnexpectedResponseError(
            f"GitLab returned the {what} {returned!r}, not {asked!r}", outcome=Outcome.UNKNOWN
        )
