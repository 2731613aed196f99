"""Requests to a host and its responses, independent of the SDK that sends them."""

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
        method: the HTTP method, in upper case.
        template: the path template. ``{part}`` is percent-encoded; ``{part/}`` keeps the slashes inside the part.
        parts: the values of the template's parts.
        query: the parameters of the query string, or None.
        body: the JSON body, or None.
    """

    method: str
    template: str
    parts: Mapping[str, str | int] = field(default_factory=dict)
    query: Mapping[str, Any] | None = None
    body: Any = None

    @property
    def endpoint(self) -> str:
        """The method and the template, such as ``POST /repos/{repo/}/pulls``. Error rules use it to name a request."""
        return f"{self.method} {self.template}"

    @property
    def is_mutation(self) -> bool:
        """Whether the request may change something on the host. A query of GraphQL is a POST, and changes nothing."""
        if self.template.endswith("/graphql"):
            return str(self.body["query"]).lstrip().startswith("mutation")
        return self.method != "GET"

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
        status: the HTTP status.
        endpoint: the endpoint of the request; empty if this library did not send it.
        path: the path of its request, percent-encoded.
        headers: the headers, with names in lower case.
        data: the parsed JSON body; None if the body is empty or not JSON.
        text: the body as text.
    """

    status: int
    endpoint: str = ""
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    data: Any = None
    text: str = ""

    @property
    def request_id(self) -> str | None:
        """The host's id of the request, or None."""
        return self.headers.get("x-github-request-id") or self.headers.get("x-request-id")

    @property
    def retry_after(self) -> float | None:
        """The seconds that ``Retry-After`` asks to wait, or None. An HTTP-date is compared with the ``Date`` header."""
        return parse_retry_after(self.headers.get("retry-after"), date=self.headers.get("date"))

    @property
    def date(self) -> datetime:
        """The time of the response by the host's clock, or the current time if the host does not say."""
        from email.utils import parsedate_to_datetime  # not at the top: it costs milliseconds and is rarely needed

        try:
            date = parsedate_to_datetime(self.headers["date"])
        except (KeyError, ValueError, OverflowError):
            return datetime.now(UTC)
        return date if date.tzinfo else date.replace(tzinfo=UTC)


class StatusError(Exception):
    """The host returned a status that is not 2xx. The host's error table maps it to an error."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"HTTP {response.status}")
        self.response = response


class BodyError(Exception):
    """The body of a response is unexpected or exceeds a limit. ``cut`` is True for JSON that ends too early."""

    def __init__(self, problem: str, response: Response, *, cut: bool = False) -> None:
        super().__init__(problem)
        self.response = response
        self.cut = cut


class ForeignOriginError(Exception):
    """A request would have left the configured origin. It was not sent."""

    def __init__(self) -> None:
        super().__init__(
            "the address has another scheme, host or port than the provider, so the token was not sent there; "
            "use a client of your own for it"
        )


class DeadlineError(Exception):
    """A deadline passed before the response was complete. ``sent`` is False if nothing of the request was sent."""

    def __init__(self, limit: str, *, sent: bool = True) -> None:
        super().__init__(f"{limit} passed before {'the response was complete' if sent else 'the request was sent'}")
        self.sent = sent


class Client(Protocol):
    """A safely configured SDK client. One operation at a time uses it."""

    def send(self, request: Request) -> Response:
        """Send one request, once, and return its 2xx response.

        Raises:
            StatusError: the status is not 2xx.
            BodyError: the status is 2xx, but the body is not JSON; or the body exceeds a limit.
            DeadlineError: a deadline passed.
            requests.RequestException: there was no response.
        """
        ...

    def resource(self, request: Request) -> str:
        """Return the name of the rate limit that counts the request."""
        ...

    def has_next(self, response: Response) -> bool | None:
        """Report whether the host says that another page follows; None if it does not say."""
        ...

    def size(self, response: Response) -> tuple[str, int] | None:
        """Return how many ``items`` or ``pages`` the host says that the whole list has; None if it does not say."""
        ...

    def close(self) -> None:
        """Close the client's connections."""
        ...
