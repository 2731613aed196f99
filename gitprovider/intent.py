"""What a mutation was asked to do, and what is known of it: the evidence that an error carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """The record of one mutation: enough to find out later, with reads only, whether it took effect.

    It holds no file contents and no secrets, pickles, and survives ``Intent.from_json(intent.to_json())``, so that a
    service may store it, crash, restart and ask :func:`gitprovider.resolve`. Fields that an operation has no use for,
    or that were not known when it failed, are None or empty.

    Attributes:
        operation: the contract's name of the operation, such as ``commit_files``.
        provider: ``github``, ``gitlab`` or ``local``; ``repo``: the full path asked for.
        sent_at: when the effect step began to be sent (aware UTC), None when it never was.
        lost_at: when its answer was given up; a large body may have been on its way until then.
        steps: the names of the steps that were acknowledged.
        branch: the branch that was to be made, protected or committed to.
        base_sha: the head that the commit was built on; None for a first commit.
        commit_sha: the commit that was to become the head, where it is known before the ref moves.
        files: per touched path its blob sha and mode after the commit, None for a path that was to be gone.
        pointers: per file that was put the blob sha of its LFS pointer, on a host that may store that in its place.
        message: the commit's message.
        source_sha: the commit that a new branch was to point at.
        rules, previous_rules: the protection asked for and the one that held before, field by field.
        visibility, description, auto_init: what a new repository was to be.
        number, head_sha, method, delete_source_branch: the pull request to merge, at which head, and how.
        source_branch, target_branch, title, draft: the pull request to open (or, the branches, to merge).
        labels, reviewers: what was to be set on it afterwards.
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
        """The record as plain JSON values; empty fields are left out."""
        record = {k: v for k, v in asdict(self).items() if v not in (None, (), {})}
        for name in ("sent_at", "lost_at"):
            if (time := getattr(self, name)) is not None:
                record[name] = time.isoformat()
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Build the record from what :meth:`to_json` gave.

        Raises:
            ValueError: a field is missing, unknown or of another type.
        """
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(record) - known):
            raise ValueError(f"not an intent: unknown field {unknown[0]!r}")
        if missing := [k for k in ("operation", "provider", "repo") if not isinstance(record.get(k), str)]:
            raise ValueError(f"not an intent: {missing[0]!r} must be a string")
        values = dict(record)
        try:
            for name, kinds in _KINDS.items():
                if values.get(name) is not None and not isinstance(values[name], kinds):
                    raise ValueError(f"{name!r} must be {kinds[0].__name__}")
            for name in ("sent_at", "lost_at"):
                if values.get(name) is not None:
                    values[name] = datetime.fromisoformat(values[name])
                    if values[name].tzinfo is None:
                        raise ValueError(f"{name} lacks a time zone")
            for name in ("steps", "labels", "reviewers"):
                values[name] = tuple(str(v) for v in values.get(name) or ())
            files = values.get("files") or {}
            values["pointers"] = dict(values.get("pointers") or {})
            values["files"] = {path: None if what is None else (what[0], what[1]) for path, what in files.items()}
        except (TypeError, AttributeError, IndexError, ValueError) as exc:
            raise ValueError(f"not an intent: {exc}") from exc
        return cls(**values)


# What a field must be that is there and not null; times and each file are looked at by from_json itself.
_KINDS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("branch", "base_sha", "commit_sha", "message", "source_sha", "visibility", "description"), (str,)),
    **dict.fromkeys(("head_sha", "method", "source_branch", "target_branch", "title"), (str,)),
    **dict.fromkeys(("steps", "labels", "reviewers"), (list, tuple)),
    **dict.fromkeys(("rules", "previous_rules", "files", "pointers"), (dict,)),
    **dict.fromkeys(("auto_init", "delete_source_branch", "draft"), (bool,)),
    "number": (int,),
}
