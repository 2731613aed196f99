"""Values that lie, fail, never end or are too large, for every argument of a public function."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any
from unittest.mock import MagicMock

_METHODS = """
    __eq__ __ne__ __hash__ __format__ __str__ __repr__ __len__ __getitem__ __iter__ __contains__ __add__
    __radd__ __mod__ __mul__ __lt__ __le__ __gt__ __ge__ __bool__ __int__ __index__ __float__ __abs__
    __bytes__ encode decode lower upper casefold strip lstrip rstrip split rsplit partition rpartition
    startswith endswith replace join find index count removeprefix removesuffix isascii isprintable
    isdigit splitlines translate as_integer_ratio
""".split()  # noqa: SIM905 - a word for each is easier to read


class OwnError(Exception):
    """What a hostile value raises."""


def _raises(self: object, *args: object, **kwargs: object) -> Any:
    raise OwnError("a hostile value was asked")


def _evil(kind: type) -> type:
    return type(f"Evil{kind.__name__}", (kind,), {name: _raises for name in _METHODS if hasattr(kind, name)})


EVIL = {kind: _evil(kind) for kind in (str, int, float, bytes, list, dict, tuple)}


class ClaimsToBeText:
    """Says that it is a str, and is none."""

    @property
    def __class__(self) -> type:
        return str

    @__class__.setter
    def __class__(self, kind: type) -> None: ...


class FailingPath(os.PathLike[str]):
    def __fspath__(self) -> str:
        raise OwnError("no path")


class LyingPath(os.PathLike[str]):
    def __fspath__(self) -> str:
        return 7  # type: ignore[return-value]  # that is what makes it hostile


class LyingMapping(Mapping[str, Any]):
    """Has keys that it cannot give, and another length."""

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(["operation", "provider", "repo", 7, None])

    def __len__(self) -> int:
        return 0


def _failing_generator() -> Iterator[Any]:
    yield "x"
    raise OwnError("no more")


def _endless() -> Iterator[str]:
    while True:
        yield "x"


def _counting() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"x{number}"


def _itself() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def _itself_by_name() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["operation"] = found["files"] = found
    return found


def _deep() -> list[Any]:
    found: list[Any] = []
    for _ in range(5_000):
        found = [found]
    return found


def _deep_by_name() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(5_000):
        found = {"files": found}
    return found


_MOCK, _MOCK_OF_STR = MagicMock(), MagicMock(spec=str)

# Each is made from the good value that it replaces, which a hostile subclass then contains.
HOSTILE: dict[str, Callable[[Any], Any]] = {
    "evil subclass": lambda good: EVIL[type(good)](good) if type(good) in EVIL else EVIL[str]("x"),
    "evil str": lambda good: EVIL[str](good if type(good) is str else "x"),
    "evil bytes": lambda good: EVIL[bytes](b"x"),
    "evil int": lambda good: EVIL[int](7),
    "evil list": lambda good: EVIL[list](["x"]),
    "evil dict": lambda good: EVIL[dict](a=1),
    "list of evil": lambda good: [EVIL[str]("x"), EVIL[int](3), EVIL[dict](a=1)],
    "None": lambda good: None,
    "object": lambda good: object(),
    "class": lambda good: str,
    "mock": lambda good: _MOCK,
    "mock of str": lambda good: _MOCK_OF_STR,
    "claims to be text": lambda good: ClaimsToBeText(),
    "failing path": lambda good: FailingPath(),
    "lying path": lambda good: LyingPath(),
    "lying mapping": lambda good: LyingMapping(),
    "bytes": lambda good: b"acme/widgets",
    "bytearray": lambda good: bytearray(b"x"),
    "surrogate": lambda good: "\ud800",
    "NUL": lambda good: "a\0b",
    "NUL path": lambda good: PurePath("a\0b"),
    "huge str": lambda good: "x" * 100_000,
    "many slashes": lambda good: "a/" * 3_000 + "a",
    "huge int": lambda good: 10**5_000,
    "negative": lambda good: -(10**30),
    "large float": lambda good: 1e308,
    "nan": lambda good: float("nan"),
    "infinite": lambda good: float("inf"),
    "true": lambda good: True,
    "one": lambda good: 1,
    "empty": lambda good: "",
    "complex": lambda good: 1j,
    "deep": lambda good: _deep(),
    "deep by name": lambda good: _deep_by_name(),
    "itself": lambda good: _itself(),
    "itself by name": lambda good: _itself_by_name(),
    "generator": lambda good: (name for name in ["x", "x", "y"]),
    "failing generator": lambda good: _failing_generator(),
    "endless": lambda good: _endless(),
    "endless names": lambda good: _counting(),
    "set": lambda good: {"x"},
    "mixed keys": lambda good: {1: 2, "a": 3, None: 4},
}
