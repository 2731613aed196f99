"""A refused write, explained by a read.

After a read of the same thing has succeeded, a 404 to a write is a lack of permission. GitLab hides what a credential
may not change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gitprovider._remote.operation import RemoteOperation
from gitprovider._remote.response import Response, StatusError
from gitprovider.errors import NotFoundError, PermissionDeniedError
from gitprovider.gitlab.client import GitLabClient
from gitprovider.gitlab.endpoints import PROJECT


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
    """Whether a refused read proves that a ``Branch`` or a ``Commit`` is absent, by the application's words for it.

    ``404 Project Not Found`` does not. GitLab returns it also to a credential that has lost the right to read.
    """
    data = exc.response.data
    return exc.response.status == 404 and isinstance(data, dict) and data.get("message") == f"404 {what} Not Found"
