"""Reads a host's JSON field by field. A field that is missing or has another type raises BodyError."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeVar

from gitprovider._remote.response import BodyError, Response
from gitprovider.errors import InvalidRequestError

_T = TypeVar("_T")
_WHOLE: Any = object()
# These names are methods inside the class.
_str = str
_int = int
_bool = bool
_object = object


class JsonReader:
    """One JSON object of a response. Each method reads one field. ``_or_none`` methods allow it to be missing or null.

    Every method that reads a field raises BodyError if the field is missing or has another type.
    """

    __slots__ = ("_data", "_where", "response")

    def __init__(self, response: Response, data: Any = _WHOLE, where: _str = "") -> None:
        """Read the whole body of the response, or ``data``, which is the part of the body at ``where``.

        Raises:
            BodyError: the data is not an object.
        """
        self.response = response
        self._where = where
        self._data = response.data if data is _WHOLE else data
        if not isinstance(self._data, dict):
            raise BodyError(
                f"expected an object{' at ' + where if where else ''}, got {type(self._data).__name__}", response
            )

    @classmethod
    def each(cls, response: Response) -> Iterator[JsonReader]:
        """Return a reader for each item of a response that is a list of objects.

        Raises:
            BodyError: the response is not a list, or an item is not an object.
        """
        if not isinstance(response.data, list):
            raise BodyError(f"expected a list, got {type(response.data).__name__}", response)
        return iter([cls(response, item, f"[{index}]") for index, item in enumerate(response.data)])

    def str(self, name: _str) -> _str:
        """Return a non-empty string."""
        value = self._read(name, str)
        if not value:
            raise self._wrong(name, "a string that is not empty", value)
        return value

    def str_or_none(self, name: _str) -> _str | None:
        """Return a string or None."""
        return None if self._data.get(name) is None else self._read(name, str)

    def int(self, name: _str) -> _int:
        """Return an integer."""
        value = self._read(name, int)
        if isinstance(value, bool):
            raise self._wrong(name, "int", value)
        return value

    def int_or_none(self, name: _str) -> _int | None:
        """Return an integer or None."""
        return None if self._data.get(name) is None else self.int(name)

    def bool(self, name: _str) -> _bool:
        """Return a boolean."""
        return self._read(name, bool)

    def bool_or_none(self, name: _str) -> _bool | None:
        """Return a boolean or None."""
        return None if self._data.get(name) is None else self.bool(name)

    def time_or_none(self, name: _str) -> datetime | None:
        """Return an ISO 8601 time with a time zone, or None."""
        text = self.str_or_none(name)
        if text is None:
            return None
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise self._wrong(name, "an ISO 8601 time", text) from None
        if time.tzinfo is None:
            raise self._wrong(name, "a time with a zone", text)
        return time

    def object(self, name: _str) -> JsonReader:
        """Return a reader for an object."""
        return JsonReader(self.response, self._read(name, dict), self._path(name))

    def object_or_none(self, name: _str) -> JsonReader | None:
        """Return a reader for an object, or None."""
        return None if self._data.get(name) is None else self.object(name)

    def objects(self, name: _str) -> list[JsonReader]:
        """Return a reader for each object of a list."""
        found: list[Any] = self._read(name, list)
        return [JsonReader(self.response, item, f"{self._path(name)}[{index}]") for index, item in enumerate(found)]

    def strs(self, name: _str) -> list[_str]:
        """Return a list of strings."""
        found: list[Any] = self._read(name, list)
        for item in found:
            if not isinstance(item, str):
                raise self._wrong(name, "a list of strings", found)
        return found

    def __eq__(self, other: _object) -> _bool:
        return self._data == other._data if isinstance(other, JsonReader) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a JSON object cannot be hashed either

    def __contains__(self, name: _str) -> _bool:
        return name in self._data

    def settings(self) -> set[_str]:
        """Return the names of the fields that set something: true, a number but 0, or what contains anything.

        Text sets nothing: it names, dates and links an object.
        """
        return {name for name, value in self._data.items() if _sets(value)}

    def build(self, kind: Callable[..., _T], **values: Any) -> _T:
        """Create a value from fields that were read.

        Raises:
            BodyError: the value's own checks refuse a field, such as a malformed sha.
        """
        try:
            return kind(**values)
        except InvalidRequestError as exc:
            problem = f"the response does not make a valid {getattr(kind, '__name__', 'value')}: {exc.message}"
        raise BodyError(problem, self.response)

    def _read(self, name: _str, kind: type[_T]) -> _T:
        value = self._data.get(name)
        if not isinstance(value, kind):
            raise self._wrong(name, kind.__name__, value)
        return value

    def _wrong(self, name: _str, wanted: _str, value: Any) -> BodyError:
        got = "is missing" if name not in self._data else f"is {type(value).__name__}"
        return BodyError(f"the field {self._path(name)} {got}; expected {wanted}", self.response)

    def _path(self, name: _str) -> _str:
        return f"{self._where}.{name}" if self._where else name


def _sets(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_sets(item) for item in value.values())
    return bool(value) and not isinstance(value, str)
