"""A throttle that tests look into."""

from __future__ import annotations

from collections.abc import Callable

from gitprovider._remote.throttle import Answered, Sending


class Recorder:
    """A throttle that records its calls."""

    def __init__(self, before: Callable[[Sending], None] = lambda request: None) -> None:
        self.sending: list[Sending] = []
        self.answered: list[Answered] = []
        self._before = before

    def before(self, request: Sending) -> None:
        self.sending.append(request)
        self._before(request)

    def after(self, response: Answered) -> None:
        self.answered.append(response)
