"""The record of a mutation: its arguments and what is known about it. An error of a mutation carries one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """The record of one mutation. It is enough to find out later, with reads only, whether the mutation took effect.

    It contains no file contents and no secrets. It can be pickled, and ``Intent.from_json(intent.to_json())`` gives an
    equal record. A service can therefore store it, crash, restart and call :func:`gitprovider.resolve`. Fields that
    the operation does not use, or that were not known when it failed, are None or empty.

    Attributes:
        operation: the name of the operation in the contract, such as ``commit_files``.
        provider: ``github``, ``gitlab`` or ``local``.
        repo: the full path that was requested.
        sent_at: when sending the effect step began (aware UTC); None if it was never sent.
        lost_at: when waiting for its response ended without one. A large body may have been in flight until then.
        steps: the names of the acknowledged steps.
        branch: the branch to create, protect or commit to.
        base_sha: the head that the commit is built on; None for a first commit.
        commit_sha: the commit that becomes the head, if it is known before the ref moves.
        files: the blob sha and mode of each touched path after the commit; None for a path that is deleted.
        pointers: the blob sha of the LFS pointer of each file that is put, on a host that may store that instead.
        message: the commit's message.
        source_sha: the commit that the new branch points at.
        rules, previous_rules: the requested protection and the one before it, field by field.
        visibility, description, auto_init: the arguments for a new repository.
        number, head_sha, method, delete_source_branch: the pull request to merge, its head, and how to merge it.
        source_branch, target_branch, title, draft: the pull request to open (or the branches of the one to merge).
        labels, reviewers: what is set on the pull request after it is opened.
    """

    operation: str
    provider: str
    repo: str
    sent_at: datetime | None = None
    lost_at: datetime | None = None
    steps: tuple[str, ...] = ()
    branch: str | None = None
    base_sha: str | None = None
    commit_sha: str | None = None
    files: Mapping[str, tuple[str, str] | None] = field(default_factory=dict)
    pointers: Mapping[str, str] = field(default_factory=dict)
    message: str | None = None
    source_sha: str | None = None
    rules: Mapping[str, Any] | None = None
    previous_rules: Mapping[str, Any] | None = None
    visibility: str | None = None
    description: str | None = None
    auto_init: bool | None = None
    number: int | None = None
    head_sha: str | None = None
    method: str | None = None
    delete_source_branch: bool | None = None
    source_branch: str | None = None
    target_branch: str | None = None
    title: str | None = None
    draft: bool | None = None
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON values. Empty fields are left out."""
        record = {k: v for k, v in asdict(self).items() if v not in (None, (), {})}
        for name in ("sent_at", "lost_at"):
            if (time := getattr(self, name)) is not None:
                record[name] = time.isoformat()
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Build a record from the result of :meth:`to_json`.

        Raises:
            ValueError: a field is missing, unknown or of another type.
        """
        try:
            values = _plain(record)
        except Exception as exc:  # the record may be any object, and fail however it likes
            raise ValueError(f"not an intent: it is not plain JSON: {type(exc).__name__}") from None
        if type(values) is not dict:
            raise ValueError("not an intent: it must be a JSON object")
        if unknown := sorted(set(values) - {f.name for f in fields(cls)}):
            raise ValueError(f"not an intent: unknown field {unknown[0][:80]!r}")
        if missing := [k for k in ("operation", "provider", "repo") if not isinstance(values.get(k), str)]:
            raise ValueError(f"not an intent: {missing[0]!r} must be a string")
        for name, (kind, is_kind) in _KINDS.items():
            if values.get(name) is not None and not is_kind(values[name]):
                raise ValueError(f"not an intent: {name!r} must be {kind}")
        for name in ("sent_at", "lost_at"):
            if values.get(name) is not None:
                values[name] = _time(name, values[name])
        for name in ("steps", "labels", "reviewers"):
            values[name] = tuple(values.get(name) or ())
        files = values.get("files") or {}
        values["files"] = {path: None if entry is None else (entry[0], entry[1]) for path, entry in files.items()}
        values["pointers"] = dict(values.get("pointers") or {})
        return cls(**values)


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a copy of a record in exactly the types of JSON: a subclass may have methods of its own.

    Raises:
        TypeError: a part is of another type.
        RecursionError: it is nested more deeply than any record is.
    """
    if depth > _MAX_DEPTH:
        raise RecursionError
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, int):
        return int.__int__(value)
    if issubclass(kind, list | tuple):
        return [_plain(item, depth + 1) for item in kind.__iter__(value)]
    if issubclass(kind, Mapping):
        items = {_plain(key): _plain(item, depth + 1) for key, item in dict(value).items()}
        if all(type(key) is str for key in items):
            return items
    raise TypeError


def _time(name: str, text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            raise ValueError("it lacks a time zone")
        if not 1970 <= time.astimezone(UTC).year < 9000:  # at the ends of the calendar, adding seconds overflows
            raise ValueError("it is not the time of a request")
    except (ValueError, OverflowError) as exc:
        raise ValueError(f"not an intent: {name!r}: {str(exc)[:200]}") from None
    return time


# A record, its rules, and the list of a rule's names.
_MAX_DEPTH = 3


def _is_str(value: object) -> bool:
    return isinstance(value, str)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _is_strs(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _is_rules(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str) and (item is None or _is_bool(item) or _is_int(item) or _is_str(item) or _is_strs(item))
        for name, item in value.items()
    )


def _is_pointers(value: object) -> bool:
    return isinstance(value, dict) and all(_is_str(path) and _is_str(sha) for path, sha in value.items())


def _is_files(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(path, str)
        and (entry is None or (isinstance(entry, list | tuple) and len(entry) == 2 and _is_strs(entry)))
        for path, entry in value.items()
    )


# What a field that is present and not null must be.
_KINDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    **dict.fromkeys(("branch", "base_sha", "commit_sha", "message", "source_sha", "visibility"), ("a str", _is_str)),
    **dict.fromkeys(("description", "head_sha", "method", "source_branch", "target_branch"), ("a str", _is_str)),
    **dict.fromkeys(("title", "sent_at", "lost_at"), ("a str", _is_str)),
    **dict.fromkeys(("steps", "labels", "reviewers"), ("a list of str", _is_strs)),
    **dict.fromkeys(("rules", "previous_rules"), ("an object of plain values", _is_rules)),
    **dict.fromkeys(("auto_init", "delete_source_branch", "draft"), ("a bool", _is_bool)),
    "files": ("an object of a sha and a mode per path", _is_files),
    "pointers": ("an object of str", _is_pointers),
    "number": ("an int", _is_int),
}
