"""What a debugger or a tracker of errors can reach from an error: its text, frames, causes, closures and values."""

from __future__ import annotations

import gc
from pathlib import Path
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

from gitprovider._core.provider import Provider
from gitprovider.aio import AsyncGitProvider

TESTS = str(Path(__file__).parents[1])


def followed(thing: Any) -> list[Any]:
    """What can be reached from ``thing`` in one step. The caller's own frames and provider are the caller's."""
    if isinstance(thing, ModuleType | type | BuiltinFunctionType | Provider | AsyncGitProvider):
        return []
    if isinstance(thing, FrameType):
        return [] if thing.f_code.co_filename.startswith(TESTS) else list(thing.f_locals.values())
    if isinstance(thing, TracebackType):
        return [thing.tb_frame, thing.tb_next]
    if isinstance(thing, FunctionType):
        return [thing.__closure__, thing.__defaults__, thing.__kwdefaults__]
    links = [thing.__cause__, thing.__context__, thing.__traceback__] if isinstance(thing, BaseException) else []
    return links + gc.get_referents(thing)


def leaks(error: BaseException, secret: str) -> list[str]:
    """Every text with the secret that is reachable from the error, each with how it is reached."""
    found: list[str] = []
    seen: set[int] = set()
    kept: list[Any] = []
    stack: list[tuple[Any, str]] = [(error, "error")]
    while stack:
        thing, path = stack.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        kept.append(thing)  # an id must not be given twice
        if (isinstance(thing, str) and secret in thing) or (isinstance(thing, bytes) and secret.encode() in thing):
            found.append(path)
        where = (
            f"{path} > {thing.f_code.co_qualname}"
            if isinstance(thing, FrameType)
            else f"{path} > {type(thing).__name__}"
        )
        stack += [(further, where[-400:]) for further in followed(thing)]
    return found
