"""Assertions for the cases. A failure shows the call, its result, and what the contract requires."""

from __future__ import annotations

import pickle
import reprlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import pytest

from gitprovider.errors import GitProviderError, InvalidRequestError, Outcome, UnsupportedOptionError
from gitprovider.testing.rig import Rig

_P = ParamSpec("_P")
_T = TypeVar("_T")
_E = TypeVar("_E", bound=GitProviderError)

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 120
_short.maxlevel = 3


def shown(call: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> str:
    """Return a call as source text, with long values shortened."""
    given = [_short.repr(a) for a in args] + [f"{k}={_short.repr(v)}" for k, v in kwargs.items()]
    return f"{getattr(call, '__name__', call)}({', '.join(given)})"


def raised(kind: type[_E], call: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> _E:
    """Assert that ``call`` raises a well-formed ``kind`` with any outcome, and return the error."""
    __tracebackhide__ = True
    try:
        result = f"returned {_short.repr(call(*args, **kwargs))}"
    except kind as error:
        _check_form(error, getattr(call, "__name__", ""), shown(call, args, kwargs))
        return error
    except GitProviderError as other:
        result = f"raised {other!r}"
    pytest.fail(f"{shown(call, args, kwargs)} {result}; the contract requires {kind.__name__}")


def attempt(call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T | GitProviderError:
    """Return the result of ``call``, or the well-formed error that it raises."""
    try:
        return call(*args, **kwargs)
    except GitProviderError as error:
        _check_form(error, getattr(call, "__name__", ""), shown(call, args, kwargs))
        return error


def refused(kind: type[_E], call: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> _E:
    """Assert that ``call`` raises ``kind`` with the outcome NOT_APPLIED, and return the error."""
    __tracebackhide__ = True
    error = raised(kind, call, *args, **kwargs)
    assert error.outcome is Outcome.NOT_APPLIED, f"{shown(call, args, kwargs)}: a refusal applies nothing"
    assert error.completed == (), "nothing was applied, but `completed` has steps"
    return error


def halfway(call: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> GitProviderError:
    """Assert that ``call`` raises an error with the outcome PARTIAL, and return the error."""
    __tracebackhide__ = True
    error = raised(GitProviderError, call, *args, **kwargs)
    assert error.outcome is Outcome.PARTIAL, f"{error!r}: the effect step was done, so the outcome is PARTIAL"
    assert error.completed, "the outcome is PARTIAL, but `completed` is empty"
    assert not error.retryable, "PARTIAL is never safe to repeat"
    return error


def invalid(
    rig: Rig, argument: str | tuple[str, ...], call: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs
) -> None:
    """Assert that ``call`` raises InvalidRequestError for ``argument`` before any request."""
    __tracebackhide__ = True
    with nothing_sent(rig):
        error = refused(InvalidRequestError, call, *args, **kwargs)
    allowed = (argument,) if isinstance(argument, str) else argument
    assert error.argument in allowed, (
        f"{shown(call, args, kwargs)}: the error names the argument {error.argument!r}; it should be {argument!r}"
    )
    assert not error.retryable, "repeating a call with a wrong argument does not help"


def unsupported(rig: Rig, option: str, call: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Assert that ``call`` raises UnsupportedOptionError for ``option`` before any request."""
    __tracebackhide__ = True
    with nothing_sent(rig):
        error = refused(UnsupportedOptionError, call, *args, **kwargs)
    assert error.option == option, f"the error names the option {error.option!r}; it should be {option!r}"


def same_bytes(found: bytes, wanted: bytes) -> None:
    """Assert that large contents are equal. A failure names the first difference: pytest's diff would take hours."""
    if found == wanted:
        return
    at = next((i for i, (one, other) in enumerate(zip(found, wanted, strict=False)) if one != other), None)
    where = "one is the beginning of the other" if at is None else f"the first difference is at byte {at:,}"
    pytest.fail(f"{len(found):,} bytes instead of {len(wanted):,}; {where}")


@contextmanager
def nothing_sent(rig: Rig) -> Iterator[None]:
    """Assert that the provider sends no request in the block."""
    before = rig.requests_seen()
    yield
    sent = rig.requests_seen() - before
    assert sent == 0, f"{sent} request(s) were sent; this must be refused before any request"


@contextmanager
def mutations(rig: Rig, *, at_most: int, at_least: int = 0) -> Iterator[None]:
    """Assert that the provider sends between ``at_least`` and ``at_most`` mutations in the block."""
    before = rig.mutations_seen()
    yield
    sent = rig.mutations_seen() - before
    assert at_least <= sent <= at_most, (
        f"{sent} mutation(s) were sent; expected {at_least} to {at_most}, because a mutation is sent once"
    )


def eventually(read: Callable[[], _T], *, seconds: float = 10.0) -> _T:
    """Call ``read`` until it returns a true value, for effects that the contract allows to appear moments later."""
    give_up = time.monotonic() + seconds
    while not (value := read()) and time.monotonic() < give_up:
        time.sleep(0.1)
    return value


def _check_form(error: GitProviderError, operation: str, what: str) -> None:
    assert error.operation == operation, f"{what}: the error says operation={error.operation!r}"
    assert error.provider, f"{what}: the error does not name its provider"
    assert error.message.strip(), f"{what}: the error has no message"
    assert "\n" not in error.message, f"{what}: a message is one line, not {error.message!r}"
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301  made the line before
    assert type(copy) is type(error), f"{what}: the error does not survive pickling"
    assert str(copy) == str(error), f"{what}: the error does not survive pickling"
