"""Argument checks: each raises InvalidRequestError, naming the argument and what is allowed, before any request.

They are the same on every host, so that a service which swaps its provider meets no new refusals.
"""

from __future__ import annotations

import math
import re
from enum import Enum
from typing import Any, NoReturn, TypeVar

from gitprovider.errors import InvalidRequestError
from gitprovider.redact import MASK, printable, redact

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MAX_NAME = 244  # Git's own limit is the file system's 255 bytes, less room for ".lock" and the hosts' prefixes.
_E = TypeVar("_E", bound=Enum)


def refuse(argument: str, problem: str) -> NoReturn:
    """Raise InvalidRequestError for ``argument``."""
    raise InvalidRequestError(f"{argument}: {problem}", argument=argument)


def _shown(value: object) -> str:
    return repr(printable(redact(str(value)), 80))


def shown_repo(value: object) -> str:
    """A path as errors, events and intents may keep it: exact if it passes its check, otherwise without credentials.

    A path is often a clone URL by mistake, and everything before its last ``@`` may then be a password.
    """
    try:
        return check_repo_path(value)
    except InvalidRequestError:
        if not isinstance(value, str):
            return ""
    _, at, after = value[:4096].rpartition("@")
    return printable(redact(f"{MASK}@{after}" if at else after), 200)


def check_text(argument: str, value: Any, *, empty: bool = True, multiline: bool = False, limit: int = 65536) -> str:
    """A str that UTF-8 can encode, of at most ``limit`` characters, without control characters."""
    if not isinstance(value, str):
        refuse(argument, f"must be a str, not {type(value).__name__}")
    if not empty and not value.strip():
        refuse(argument, "must not be empty")
    if len(value) > limit:
        refuse(argument, f"has {len(value)} characters; at most {limit} are allowed")
    try:
        value.encode()
    except UnicodeEncodeError:
        refuse(argument, "holds a lone surrogate, which UTF-8 cannot encode")
    banned = _CONTROL.search(re.sub(r"[\t\r\n\u2028\u2029]", "", value) if multiline else value)
    if banned:
        refuse(argument, f"holds the control character {banned.group()!r}")
    return value


def check_bool(argument: str, value: Any) -> bool:
    """A real bool: ``"false"`` and None must not pass for one."""
    if not isinstance(value, bool):
        refuse(argument, f"must be True or False, not {type(value).__name__}")
    return value


def check_int(argument: str, value: Any, *, least: int, most: int = 2**63 - 1) -> int:
    """An int (not a bool) between ``least`` and ``most``."""
    if isinstance(value, bool) or not isinstance(value, int):
        refuse(argument, f"must be an int, not {type(value).__name__}")
    if not least <= value <= most:
        refuse(argument, f"is {value}; it must be from {least} to {most}")
    return value


def check_seconds(argument: str, value: Any, *, zero: bool = True) -> float:
    """A finite number of seconds, not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(argument, f"must be a number of seconds, not {type(value).__name__}")
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        refuse(argument, f"is {value}; it must be a finite number of seconds {'>= 0' if zero else '> 0'}")
    return float(value)


def check_enum(argument: str, value: Any, kind: type[_E]) -> _E:
    """A member of ``kind``, or its value."""
    try:
        return kind(value)
    except ValueError:
        refuse(argument, f"is {_shown(value)}; allowed are {', '.join(str(m.value) for m in kind)}")


def check_repo_path(value: Any, argument: str = "repo") -> str:
    """A full path as the host shows it: ``acme/widgets``, on GitLab also ``acme/platform/widgets``."""
    path = check_text(argument, value, empty=False, limit=1000)
    if "://" in path or re.match(r"[^/\s]+@[^/\s]+:", path):
        refuse(argument, "is a URL; give the full path alone, such as acme/widgets")
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
                argument, f"is {_shown(path)}; a part holds letters, digits, '.', '_', '-' and '+', 200 bytes at most"
            )
    return path


def check_sha(argument: str, value: Any) -> str:
    """A full commit sha: 40 or 64 hexadecimal digits, returned in lower case."""
    text = check_text(argument, value)
    if not _SHA.match(text.lower()):
        refuse(argument, f"is {_shown(text)}; a full sha has 40 or 64 hexadecimal digits")
    return text.lower()


def is_sha(value: str) -> bool:
    """Whether ``value`` reads as a full commit sha."""
    return bool(_SHA.match(value.lower()))


def check_branch(argument: str, value: Any) -> str:
    """A branch name as ``git check-ref-format --branch`` takes it (https://git-scm.com/docs/git-check-ref-format).

    Also refused, since a host or Git would read them as something else: names that look like a full sha, that begin
    with ``refs/``, and ``HEAD``.
    """
    name = check_text(argument, value, empty=False)
    if len(name.encode()) > _MAX_NAME:
        refuse(argument, f"has {len(name.encode())} bytes; a branch name has at most {_MAX_NAME}")
    if name.startswith("refs/"):
        refuse(argument, f"is {_shown(name)}; give the bare branch name, without refs/heads/")
    if is_sha(name) or name in ("HEAD", "@"):
        refuse(argument, f"is {_shown(name)}; Git would not read it as a branch name")
    if (
        name.startswith("-")
        or name.endswith((".", "/"))
        or ".." in name
        or "@{" in name
        or re.search(r"[ ~^:?*\[\\]", name)
        or any(not part or part.startswith(".") or part.endswith(".lock") for part in name.split("/"))
    ):
        refuse(argument, f"is {_shown(name)}, which git check-ref-format refuses as a branch name")
    return name


def check_pull_request_branch(argument: str, value: Any) -> str:
    """A branch of the same repository: ``owner:branch`` names a fork, and forks are not in scope."""
    if isinstance(value, str) and ":" in value:
        refuse(argument, f"is {_shown(value)}; pull requests from forks (owner:branch) are not supported")
    return check_branch(argument, value)


def check_source(argument: str, value: Any) -> str:
    """A branch name or a full commit sha (lower-cased)."""
    if isinstance(value, str) and is_sha(value):
        return value.lower()
    return check_branch(argument, value)


def check_file_path(argument: str, value: Any) -> str:
    """A path inside a repository: relative, with ``/``, without ``.``, ``..``, ``.git`` or an empty part."""
    path = check_text(argument, value, empty=False, limit=4096)
    if path.startswith("/") or path.endswith("/") or "\\" in path:
        refuse(argument, f"is {_shown(path)}; it must be relative to the repository, with / between its parts")
    for part in path.split("/"):
        if part in ("", ".", ".."):
            refuse(argument, f"is {_shown(path)}; an empty part, '.' and '..' are not allowed")
        if _is_dot_git(part):
            refuse(argument, f"is {_shown(path)}; Git keeps .git to itself")
        if len(part.encode()) > 255:
            refuse(argument, f"is {_shown(path)}; a part has at most 255 bytes")
    return path


def _is_dot_git(part: str) -> bool:
    # `git fsck --strict` and every host refuse .git in any case, its NTFS short names, and with trailing dots and
    # spaces or characters that HFS+ ignores (hasDotgit; CVE-2014-9390).
    plain = re.sub("[\u200b-\u200f\u202a-\u202e\u206a-\u206f\ufeff]", "", part).lower()
    return plain.split(":", 1)[0].rstrip(" .") in (".git", "git~1")
