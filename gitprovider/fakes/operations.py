"""Which requests carry out each operation of the contract, so that a fault is injected by the operation's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from gitprovider.fakes.faults import Fault, Where
from gitprovider.fakes.github.routes import REPO

HostName = Literal["github", "gitlab"]

_BY_ID = "/repositories/{id}"
_PROJECT = "/projects/{project}"
_RULES = f"{_PROJECT}/protected_branches"


class _Sent(NamedTuple):
    """One kind of request. ``text`` must be in the body."""

    method: str
    endpoint: str
    text: bytes = b""

    def matches(self, method: str, endpoint: str, body: bytes) -> bool:
        # The name of a GraphQL mutation may be behind its endpoint. The body tells it in any case.
        endpoint = endpoint.partition(" ")[0]
        # GitHub redirects a renamed repository to an address with its id.
        named = REPO + endpoint.removeprefix(_BY_ID) if endpoint.startswith(_BY_ID) else endpoint
        return (method, named) == (self.method, self.endpoint) and self.text in body


# A mutation has the requests that a user of the host could see the effect of. The reads around it, and the objects
# that no branch names yet, are not among them.
OPERATIONS: Mapping[HostName, Mapping[str, tuple[_Sent, ...]]] = {
    "github": {
        "get_repo": (_Sent("GET", REPO),),
        "list_branches": (_Sent("GET", f"{REPO}/branches"),),
        "create_repo": (_Sent("POST", "/user/repos"), _Sent("POST", "/orgs/{org}/repos")),
        "create_branch": (_Sent("POST", f"{REPO}/git/refs"),),
        "protect_branch": (_Sent("PUT", f"{REPO}/branches/{{branch/}}/protection"),),
        "commit_files": (
            _Sent("PATCH", f"{REPO}/git/refs/{{ref/}}"),
            _Sent("PUT", f"{REPO}/contents/{{path/}}"),
            _Sent("POST", "/graphql", b"createCommitOnBranch"),
        ),
        "open_pull_request": (_Sent("POST", f"{REPO}/pulls"),),
        "merge_pull_request": (_Sent("PUT", f"{REPO}/pulls/{{number}}/merge"),),
    },
    "gitlab": {
        "get_repo": (_Sent("GET", _PROJECT),),
        "list_branches": (_Sent("GET", f"{_PROJECT}/repository/branches"),),
        "create_repo": (_Sent("POST", "/projects"),),
        "create_branch": (_Sent("POST", f"{_PROJECT}/repository/branches"),),
        "protect_branch": (
            _Sent("POST", _RULES),
            _Sent("PATCH", f"{_RULES}/{{name}}"),
            _Sent("DELETE", f"{_RULES}/{{name}}"),
        ),
        "commit_files": (_Sent("POST", f"{_PROJECT}/repository/commits"),),
        "open_pull_request": (_Sent("POST", f"{_PROJECT}/merge_requests"),),
        "merge_pull_request": (_Sent("PUT", f"{_PROJECT}/merge_requests/{{iid}}/merge"),),
    },
}


def carries_out(host: HostName, operation: str) -> Where:
    """Return what tells the requests of an operation from all others.

    The requests of ``get_repo`` and ``list_branches`` are told by their endpoint: other operations read a repository
    with the same request.

    Raises:
        ValueError: the contract has no operation of that name.
    """
    kinds = OPERATIONS[host].get(operation)
    if kinds is None:
        raise ValueError(f"there is no operation {operation!r}; the operations are {', '.join(OPERATIONS[host])}")
    return lambda method, endpoint, body: any(kind.matches(method, endpoint, body) for kind in kinds)


def lost_answer(host: HostName, operation: str, *, applied: bool = True, times: int = 1) -> Fault:
    """Return the fault that resets the connection of the operation's next requests.

    Args:
        applied: whether the host carries out the request first.

    Raises:
        ValueError: the contract has no operation of that name.
    """
    when: Literal["before", "after"] = "after" if applied else "before"
    return Fault(kind="reset", where=carries_out(host, operation), when=when, times=times)


def refusal(
    host: HostName, operation: str, status: int, *, retry_after: int | None = None, times: int | None = 1
) -> Fault:
    """Return the fault that answers the operation's next requests with a status, without effect.

    Args:
        retry_after: seconds, in the header ``Retry-After``.

    Raises:
        ValueError: the contract has no operation of that name.
    """
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Fault(kind="status", where=carries_out(host, operation), status=status, headers=headers, times=times)
