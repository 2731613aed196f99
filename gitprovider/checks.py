"""Argument checks. Each raises InvalidRequestError with the argument's name and the allowed values, before any request.

The checks are the same on every host. A service that swaps its provider gets no new refusals from them.

A check looks at a value's type and not at what the value says about itself. It returns the value as exactly ``str``,
``int``, ``float`` or ``bool``. Whoever keeps a checked value keeps that one: a subclass may have methods of its own.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from itertools import islice
from typing import Any, NoReturn, TypeVar

from gitprovider.errors import GitProviderError, InvalidRequestError
from gitprovider.redact import HOST_TEXT, MASK, printable, redact

# Patterns are strings: re compiles each one when it is first used, and caches it.
_SHA = r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z"
_CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"
# Trees are written by recursion, and a directory that is read holds one descriptor open for each level.
_MAX_DEPTH = 200
_MAX_NAME = 244  # Git's limit is the file system's 255 bytes, minus ".lock" and the hosts' prefixes.
# 31 years. Timeouts of sockets and dates overflow somewhere beyond.
_MAX_SECONDS = 1e9
_E = TypeVar("_E", bound=Enum)
Verify = bool | str | os.PathLike[str]


def refuse(argument: str, problem: str) -> NoReturn:
    """Raise InvalidRequestError for ``argument``."""
    raise InvalidRequestError(f"{argument}: {problem}", argument=argument)


@contextmanager
def guarded(argument: str) -> Iterator[None]:
    """Refuse ``argument`` if looking at it raises anything else: a value of the caller's may have methods that fail.

    It also decorates a function that only looks at arguments.
    """
    try:
        yield
    except GitProviderError:
        raise
    except Exception as exc:
        problem = f"cannot be read: looking at a value raised {type(exc).__name__}"
    else:
        return
    refuse(argument, problem)


def keep(checked: object, **values: Any) -> None:
    """Set fields of a frozen value to what its checks returned."""
    for name, value in values.items():
        object.__setattr__(checked, name, value)


def _shown(value: str) -> str:
    return repr(printable(redact(value[:HOST_TEXT]), 80))


def shown_repo(value: Any) -> str:
    """Return a path as errors, events and intents may keep it: unchanged if it passes its check, otherwise redacted.

    A path may be a clone URL by mistake. Everything before its last ``@`` may then be a password.
    """
    try:
        return check_repo_path(value)
    except InvalidRequestError:
        if not _is(value, str):
            return ""
    _, at, after = str.__str__(value)[:HOST_TEXT].rpartition("@")
    return printable(redact(f"{MASK}@{after}" if at else after), 200)


def check_text(argument: str, value: Any, *, empty: bool = True, multiline: bool = False, limit: int = 65536) -> str:
    """Check a str: UTF-8 can encode it, and it has at most ``limit`` characters and no control characters."""
    text = _text(argument, value)
    if not empty and not text.strip():
        refuse(argument, "must not be empty")
    if len(text) > limit:
        refuse(argument, f"has {len(text)} characters; at most {limit} are allowed")
    try:
        text.encode()
    except UnicodeEncodeError:
        refuse(argument, "contains a lone surrogate, which UTF-8 cannot encode")
    banned = re.search(_CONTROL, re.sub(r"[\t\r\n\u2028\u2029]", "", text) if multiline else text)
    if banned:
        refuse(argument, f"contains the control character {banned.group()!r}")
    return text


def host_text(raw: bytes | str) -> str:
    r"""Return a host's text as a str that UTF-8 can encode. Whatever is not UTF-8 is escaped, such as ``\xff``.

    Git stores names as bytes. A caller cannot name a branch or path with a backslash, so an escaped name never equals
    the name that a caller gives.
    """
    text = raw.decode(errors="backslashreplace") if isinstance(raw, bytes) else raw
    return text.encode(errors="backslashreplace").decode()


def check_host_text(argument: str, value: Any) -> str:
    """Check a str of a returned value: it is not empty, and UTF-8 can encode it.

    Hosts have names that :func:`check_text` refuses. They are not the caller's mistake.
    """
    text = _text(argument, value)
    if not text:
        refuse(argument, "must not be empty")
    if host_text(text) != text:
        refuse(argument, "contains a lone surrogate, which UTF-8 cannot encode")
    return text


def check_bool(argument: str, value: Any) -> bool:
    """Check a bool. ``"false"`` and None are refused."""
    if type(value) is not bool:
        refuse(argument, f"must be True or False, not {type(value).__name__}")
    return value


def check_int(argument: str, value: Any, *, least: int, most: int = 2**63 - 1) -> int:
    """Check an int (not a bool) between ``least`` and ``most``."""
    if _is(value, bool) or not _is(value, int):
        refuse(argument, f"must be an int, not {type(value).__name__}")
    number = int.__int__(value)
    if not least <= number <= most:
        # Python refuses to write an int of thousands of digits.
        shown = f"is {number}" if abs(number) < 2**64 else "is out of range"
        refuse(argument, f"{shown}; it must be from {least} to {most}")
    return number


def check_seconds(argument: str, value: Any, *, zero: bool = True) -> float:
    """Check a number of seconds from 0 to a billion. Zero is refused if ``zero`` is False."""
    if _is(value, bool) or not _is(value, int, float):
        refuse(argument, f"must be a number of seconds, not {type(value).__name__}")
    try:
        seconds = float.__float__(value) if _is(value, float) else float(int.__int__(value))
    except OverflowError:
        seconds = math.inf
    if not 0 <= seconds <= _MAX_SECONDS or (seconds == 0 and not zero):
        refuse(argument, f"is {seconds}; it must be a number of seconds {'>=' if zero else '>'} 0 and <= 1e9")
    return seconds


def check_items(argument: str, value: Any, what: str, *, limit: int = 10_000) -> list[Any]:
    """Read an iterable of at most ``limit`` items once, and return the items, which are not checked.

    Args:
        what: the items, in the plural, as a refusal names them.
    """
    if _is(value, str, bytes, bytearray, Mapping) or not _is(value, Iterable):
        refuse(argument, f"must be a sequence of {what}, not {type(value).__name__}")
    with guarded(argument):
        items = list(islice(value, limit + 1))
    if len(items) > limit:
        refuse(argument, f"has more than {limit:,} items")
    return items


def check_path(argument: str, value: Any) -> str:
    """Check a path on this machine, a str or a path object, and return it as a str."""
    if not _is(value, str, os.PathLike):
        refuse(argument, f"must be a path, not {type(value).__name__}")
    with guarded(argument):
        return check_text(argument, str.__str__(value) if _is(value, str) else os.fspath(value), empty=False)


def check_verify(value: Any) -> bool | str:
    """Check how certificates are verified: a bool, or the path of a bundle that exists, which is returned as a str."""
    if type(value) is bool:
        return value
    if not _is(value, str, os.PathLike):
        refuse("verify", f"must be True, False or the path of a CA bundle, not {type(value).__name__}")
    path = check_path("verify", value)
    if not os.path.exists(path):
        refuse("verify", "is the path of a CA bundle that does not exist")
    return path


def check_callable(argument: str, value: Any) -> None:
    """Check a function that is called later."""
    if not callable(value):
        refuse(argument, f"must be callable, not {type(value).__name__}")


def check_enum(argument: str, value: Any, kind: type[_E]) -> _E:
    """Check a member of ``kind`` or its value, and return the member."""
    if not _is(value, str):
        refuse(argument, f"must be a {kind.__name__} or its value, not {type(value).__name__}")
    text = str.__str__(value)
    for member in kind:
        if member.value == text:
            return member
    refuse(argument, f"is {_shown(text)}; allowed are {', '.join(str(m.value) for m in kind)}")


def check_repo_path(value: Any, argument: str = "repo") -> str:
    """Check a full path as the host shows it: ``acme/widgets``, on GitLab also ``acme/platform/widgets``."""
    path = check_text(argument, value, empty=False, limit=1000)
    if "://" in path or re.match(r"[^/\s@]+@[^/\s:]+:", path):
        refuse(argument, "is a URL; give only the full path, such as acme/widgets")
    if "@" in path:  # everything before it may be a password
        refuse(argument, "contains an @, which no path has; give the full path alone, such as acme/widgets")
    if path.startswith("/") or path.endswith("/"):
        refuse(argument, f"is {_shown(path)}; it must not begin or end with a slash")
    parts = path.split("/")
    if len(parts) < 2:
        refuse(argument, f"is {_shown(path)}; it needs a namespace and a name, such as acme/widgets")
    for part in parts:
        if not part:
            refuse(argument, f"is {_shown(path)}; it has an empty part")
        if part in (".", "..") or part.startswith("-") or part.endswith((".git", ".atom", ".lock", ".")):
            refuse(argument, f"is {_shown(path)}; the part {_shown(part)} is not allowed")
        if re.search(r"[^\w.\-+]", part) or len(part.encode()) > 200:
            refuse(
                argument,
                f"is {_shown(path)}; a part has letters, digits, '.', '_', '-' and '+', and at most 200 bytes",
            )
    return path


def check_sha(argument: str, value: Any) -> str:
    """Check a full commit sha, which has 40 or 64 hexadecimal digits, and return it in lower case."""
    text = check_text(argument, value)
    if not re.match(_SHA, text.lower()):
        refuse(argument, f"is {_shown(text)}; a full sha has 40 or 64 hexadecimal digits")
    return text.lower()


def is_sha(value: str) -> bool:
    """Report whether ``value`` has the form of a full commit sha."""
    return bool(re.match(_SHA, value.lower()))


def check_branch(argument: str, value: Any) -> str:
    """Check a branch name as ``git check-ref-format --branch`` does (https://git-scm.com/docs/git-check-ref-format).

    It also refuses ``HEAD``, names that begin with ``refs/``, and names that look like a full sha. A host or Git would
    interpret them as something else.
    """
    name = check_text(argument, value, empty=False)
    if len(name.encode()) > _MAX_NAME:
        refuse(argument, f"has {len(name.encode())} bytes; a branch name has at most {_MAX_NAME}")
    if name.startswith("refs/"):
        refuse(argument, f"is {_shown(name)}; give the branch name without refs/heads/")
    if is_sha(name) or name in ("HEAD", "@"):
        refuse(argument, f"is {_shown(name)}; Git would not interpret it as a branch name")
    if (
        name.startswith("-")
        or name.endswith((".", "/"))
        or ".." in name
        or "@{" in name
        or re.search(r"[ ~^:?*\[\\]", name)
        or any(not part or part.startswith(".") or part.endswith(".lock") for part in name.split("/"))
    ):
        refuse(argument, f"is {_shown(name)}, which is not a valid branch name (git check-ref-format)")
    return name


def check_pull_request_branch(argument: str, value: Any) -> str:
    """Check the name of a branch in the same repository. ``owner:branch``, which names a fork, is refused."""
    name = check_text(argument, value)
    if ":" in name:
        refuse(argument, f"is {_shown(name)}; pull requests from forks (owner:branch) are not supported")
    return check_branch(argument, name)


def check_source(argument: str, value: Any) -> str:
    """Check a branch name or a full commit sha. A sha is returned in lower case."""
    name = check_text(argument, value)
    return name.lower() if is_sha(name) else check_branch(argument, name)


def check_file_path(argument: str, value: Any) -> str:
    """Check a path inside a repository: relative, with ``/``, without ``.``, ``..``, ``.git`` or an empty part."""
    path = check_text(argument, value, empty=False, limit=4096)
    if path.startswith("/") or path.endswith("/") or "\\" in path:
        refuse(argument, f"is {_shown(path)}; it must be relative to the repository's root, with / between its parts")
    parts = path.split("/")
    if len(parts) > _MAX_DEPTH:
        refuse(argument, f"has {len(parts)} parts; at most {_MAX_DEPTH} are allowed")
    for part in parts:
        if part in ("", ".", ".."):
            refuse(argument, f"is {_shown(path)}; an empty part, '.' and '..' are not allowed")
        if _is_dot_git(part):
            refuse(argument, f"is {_shown(path)}; Git reserves .git")
        if len(part.encode()) > 255:
            refuse(argument, f"is {_shown(path)}; a part has at most 255 bytes")
    return path


def _is_dot_git(part: str) -> bool:
    # `git fsck --strict` and every host refuse .git in any case, its NTFS short names, and with trailing dots and
    # spaces or characters that HFS+ ignores (hasDotgit; CVE-2014-9390).
    plain = re.sub("[\u200b-\u200f\u202a-\u202e\u206a-\u206f\ufeff]", "", part).lower()
    return plain.split(":", 1)[0].rstrip(" .") in (".git", "git~1")


def _is(value: Any, *kinds: type) -> bool:
    """Report whether ``value`` is of one of the types. ``isinstance`` also believes what the value says."""
    return issubclass(type(value), kinds)


def _text(argument: str, value: Any) -> str:
    if not _is(value, str):
        refuse(argument, f"must be a str, not {type(value).__name__}")
    return str.__str__(value)
