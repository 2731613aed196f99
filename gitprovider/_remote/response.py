"""Requests to a host and its responses, whatever SDK carries them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import quote

from gitprovider.retry import parse_retry_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to a host.

    Attributes:
        method: the verb, in upper case.
        template: the path's template. ``{part}`` is percent-encoded; ``{part/}`` keeps the slashes inside the part.
        parts: the values of the template's parts.
    """

    method: str
    template: str
    parts: Mapping[str, str | int] = field(default_factory=dict)
    query: Mapping[str, Any] | None = None
    body: Any = None

    @property
    def endpoint(self) -> str:
        """The method and the template, such as ``POST /repos/{repo/}/pulls``: what error rules name."""
        return f"{self.method} {self.template}"

    @property
    def path(self) -> str:
        """The template with its parts filled in."""

        def encoded(match: re.Match[str]) -> str:
            return quote(str(self.parts[match["name"]]), safe="/" if match["keep"] else "")

        return re.sub(r"\{(?P<name>\w+)(?P<keep>/?)\}", encoded, self.template)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A host's response.

    Attributes:
        endpoint: the endpoint of its request; empty when the request was not one of this library's.
        headers: header names are in lower case.
        data: the parsed JSON body; None for an empty body, and for one that is not JSON.
        text: the body.
    """

    status: int
    endpoint: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    data: Any = None
    text: str = ""

    @property
    def request_id(self) -> str | None:
        """The host's id of the request, or None."""
        return self.headers.get("x-github-request-id") or self.headers.get("x-request-id")

    @property
    def retry_after(self) -> float | None:
        """Seconds that ``Retry-After`` asks to wait. An HTTP-date is read against the response's own ``Date``."""
        return parse_retry_after(self.headers.get("retry-after"), date=self.headers.get("date"))

    @property
    def date(self) -> datetime:
        """When the host responded, by its own clock; the present time where it does not say."""
        from email.utils import parsedate_to_datetime  # costs milliseconds, and few responses are asked

        try:
            date = parsedate_to_datetime(self.headers["date"])
        except (KeyError, ValueError, OverflowError):
            return datetime.now(UTC)
        return date if date.tzinfo else date.replace(tzinfo=UTC)


class StatusError(Exception):
    """The host responded with a status that is not 2xx. Its meaning is decided by the host's error table."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"HTTP {response.status}")
        self.response = response


class BodyError(Exception):
    """A 2xx response whose body is not what was asked for. ``cut`` is True for JSON that ends too early."""

    def __init__(self, problem: str, response: Response, *, cut: bool = False) -> None:
        super().__init__(problem)
        self.response = response
        self.cut = cut


class ForeignOriginError(Exception):
    """A request was about to leave the configured origin. It was not sent."""


class Client(Protocol):
    """One safely configured SDK client, used by one running operation at a time."""

    def send(self, request: Request) -> Response:
        """Send one request, once, and return its 2xx response.

        Raises:
            StatusError: any other status.
            BodyError: 2xx with a body that is not JSON.
            requests.RequestException: there was no response.
        """
        ...

    def has_next(self, response: Response) -> bool | None:
        """Whether the host says that another page follows; None where it does not say."""
        ...

    def close(self) -> None:
        """Close the client's connections."""
        ...
