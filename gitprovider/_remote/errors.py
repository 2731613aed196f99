"""The rules that map a host's refusals to errors. Each host has one table, and the first matching rule applies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gitprovider._remote.response import Response
from gitprovider.errors import GitProviderError, Outcome, UnexpectedResponseError

_LONGEST = 8000  # characters of a host's message
UNKNOWN: dict[str, Any] = {"outcome": Outcome.UNKNOWN}


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """One rule of an error-mapping table.

    Attributes:
        fact: the id of the recorded fact in gitprovider/fakes/facts.jsonl that the rule rests on.
        status: the statuses it covers.
        error: the class of the error, made with ``error_kwargs``.
        endpoint: the method and template of the request; ``""`` is any.
        text: a regular expression to find in the message, case ignored; ``""`` is any text.
        header: the name of a header, and a regular expression that its value begins with.
    """

    fact: str
    status: range | tuple[int, ...]
    error: Callable[..., GitProviderError]
    endpoint: str = ""
    text: str = ""
    header: tuple[str, str] | None = None
    error_kwargs: dict[str, Any] = field(default_factory=dict)

    def matches(self, response: Response, message: str) -> bool:
        """Report whether the rule covers a response with this message."""
        return (
            response.status in self.status
            and self.endpoint in ("", response.endpoint)
            and (not self.text or re.search(self.text, message, re.IGNORECASE) is not None)
            and (self.header is None or re.match(self.header[1], response.headers.get(self.header[0], "")) is not None)
        )


def with_hint(hint: str, **more: Any) -> dict[str, Any]:
    """Return the keywords of a rule's error: the hint, which says how to fix it, and ``more``."""
    return {"hint": hint, **more}


def map_response(
    rules: Iterable[ErrorRule], response: Response, message: str, retry_after: Callable[[Response], float | None]
) -> GitProviderError:
    """Return the error for a response that is not 2xx, by the first rule that matches. Only its beginning is read."""
    message = message[:_LONGEST]
    rule = next((rule for rule in rules if rule.matches(response, message)), None)
    kind: Callable[..., GitProviderError] = UnexpectedResponseError if rule is None else rule.error
    return kind(
        message,
        status=response.status,
        request_id=response.request_id,
        retry_after=retry_after(response),
        **(UNKNOWN if rule is None else rule.error_kwargs),
    )
