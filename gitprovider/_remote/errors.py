"""A row of a host's table of meanings, and what rows are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gitprovider._remote.operation import Answer
from gitprovider.errors import GitProviderError


@dataclass(frozen=True, slots=True)
class Row:
    """One refusal and its meaning. Of a table's rows the first that fits decides.

    Attributes:
        fact: the id of the recorded fact in gitprovider/fakes/facts.jsonl.
        status: the statuses it covers.
        error: the class that is raised, with ``known`` as further keywords.
        endpoint: the method and template; ``""`` is any.
        text: a regular expression to find in the message, case ignored; ``""`` is any text.
        header: the name of a header, and a regular expression that its value begins with.
        page: whether it covers only answers whose body is something else than a JSON object, such as a page.
    """

    fact: str
    status: range | tuple[int, ...]
    error: Callable[..., GitProviderError]
    endpoint: str = ""
    text: str = ""
    header: tuple[str, str] | None = None
    page: bool = False
    known: dict[str, Any] = field(default_factory=dict)

    def fits(self, endpoint: str, answer: Answer, message: str) -> bool:
        """Whether it covers an answer."""
        return (
            answer.status in self.status
            and self.endpoint in ("", endpoint)
            and (not self.text or re.search(self.text, message, re.IGNORECASE) is not None)
            and (self.header is None or re.match(self.header[1], answer.headers.get(self.header[0], "")) is not None)
            and (not self.page or (bool(answer.text.strip()) and not isinstance(answer.data, dict)))
        )


def with_hint(hint: str, **more: Any) -> dict[str, Any]:
    """Further keywords of a row's error: a hint that says what to do about it."""
    return {"hint": hint, **more}
