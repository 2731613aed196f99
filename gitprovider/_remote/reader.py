"""A host's JSON, read field by field: what is missing or of another type is a BodyError, never a None in a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeVar

from gitprovider._remote.operation import Answer, BodyError
from gitprovider.errors import InvalidRequestError

_T = TypeVar("_T")
_WHOLE: Any = object()


class Fields:
    """One JSON object of an answer. Each method reads one field; ``maybe_`` allows it to be absent or null."""

    __slots__ = ("_data", "_where", "answer")

    def __init__(self, answer: Answer, data: Any = _WHOLE, where: str = "") -> None:
        """Read the answer's whole body, or ``data`` out of it, which is to be found at ``where``.

        Raises:
            BodyError: it is no object.
        """
        self.answer = answer
        self._where = where
        self._data = answer.data if data is _WHOLE else data
        if not isinstance(self._data, dict):
            raise BodyError(
                f"expected an object{' at ' + where if where else ''}, got {type(self._data).__name__}", answer
            )

    @classmethod
    def each(cls, answer: Answer) -> Iterator[Fields]:
        """Every object of an answer that is a list.

        Raises:
            BodyError: it is no list, or holds something that is no object.
        """
        if not isinstance(answer.data, list):
            raise BodyError(f"expected a list, got {type(answer.data).__name__}", answer)
        return iter([cls(answer, item, f"[{index}]") for index, item in enumerate(answer.data)])

    def text(self, name: str) -> str:
        """A string that is not empty."""
        value = self._read(name, str)
        if not value:
            raise self._wrong(name, "a string that is not empty", value)
        return value

    def maybe_text(self, name: str) -> str | None:
        """A string, or None."""
        return None if self._data.get(name) is None else self._read(name, str)

    def number(self, name: str) -> int:
        """An integer."""
        value = self._read(name, int)
        if isinstance(value, bool):
            raise self._wrong(name, "int", value)
        return value

    def maybe_number(self, name: str) -> int | None:
        """An integer, or None."""
        return None if self._data.get(name) is None else self.number(name)

    def flag(self, name: str) -> bool:
        """A boolean."""
        return self._read(name, bool)

    def maybe_flag(self, name: str) -> bool | None:
        """A boolean, or None."""
        return None if self._data.get(name) is None else self.flag(name)

    def maybe_time(self, name: str) -> datetime | None:
        """An ISO 8601 time with a zone, or None."""
        text = self.maybe_text(name)
        if text is None:
            return None
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise self._wrong(name, "an ISO 8601 time", text) from None
        if time.tzinfo is None:
            raise self._wrong(name, "a time with a zone", text)
        return time

    def sub(self, name: str) -> Fields:
        """An object."""
        return Fields(self.answer, self._read(name, dict), self._path(name))

    def maybe_sub(self, name: str) -> Fields | None:
        """An object, or None."""
        return None if self._data.get(name) is None else self.sub(name)

    def items(self, name: str) -> list[Fields]:
        """A list of objects."""
        found: list[Any] = self._read(name, list)
        return [Fields(self.answer, item, f"{self._path(name)}[{index}]") for index, item in enumerate(found)]

    def texts(self, name: str) -> list[str]:
        """A list of strings."""
        found: list[Any] = self._read(name, list)
        for item in found:
            if not isinstance(item, str):
                raise self._wrong(name, "a list of strings", found)
        return found

    def __eq__(self, other: object) -> bool:
        return self._data == other._data if isinstance(other, Fields) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it stands for a JSON object, which has none either

    def __contains__(self, name: str) -> bool:
        return name in self._data

    def build(self, kind: Callable[..., _T], **values: Any) -> _T:
        """Make a value of what was read.

        Raises:
            BodyError: the value's own checks refuse it, such as a sha that is none.
        """
        try:
            return kind(**values)
        except InvalidRequestError as exc:
            problem = f"the answer makes no {getattr(kind, '__name__', 'value')}: {exc.message}"
        raise BodyError(problem, self.answer)

    def _read(self, name: str, kind: type[_T]) -> _T:
        value = self._data.get(name)
        if not isinstance(value, kind):
            raise self._wrong(name, kind.__name__, value)
        return value

    def _wrong(self, name: str, wanted: str, value: Any) -> BodyError:
        got = "is missing" if name not in self._data else f"is {type(value).__name__}"
        return BodyError(f"the field {self._path(name)} {got}; expected {wanted}", self.answer)

    def _path(self, name: str) -> str:
        return f"{self._where}.{name}" if self._where else name
