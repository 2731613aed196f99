"""The faults that GitHub's tests inject into any request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gitprovider.fakes.faults import Fault, FaultKind

When = Literal["before", "after"]


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A fault of the matrix, for any request."""

    kind: FaultKind
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None

    def at(self, number: int, when: When, times: int | None) -> Fault:
        return Fault(
            kind=self.kind,
            nth=number,
            times=times,
            when=when,
            status=self.status,
            headers=dict(self.headers),
            body=self.body,
        )


LIMITED = b'{"message": "API rate limit exceeded for user ID 1."}'


FAULTS = {
    "429 with a wait": Broken(kind="status", status=429, headers=(("Retry-After", "7"),)),
    "429 without": Broken(kind="status", status=429),
    "403 limited": Broken(kind="status", status=403, body=LIMITED),
    "500": Broken(kind="status", status=500),
    "502": Broken(kind="status", status=502, body=b"<html>Bad Gateway</html>"),
    "503": Broken(kind="status", status=503, body=b""),
    "504": Broken(kind="status", status=504),
    "reset": Broken(kind="reset"),
    "timeout": Broken(kind="timeout"),
    "cut body": Broken(kind="cut"),
    "html": Broken(kind="html"),
    # A gateway's word, which says nothing about what GitHub did.
    "404 page": Broken(kind="status", status=404, body=b"<html>Not Found</html>"),
    "404 gateway": Broken(kind="status", status=404, body=b'{"message": "no Route matched with those values"}'),
    "wrong shape": Broken(kind="shape"),
    "307": Broken(kind="redirect"),
}
