"""Values and errors as plain JSON, for resolutions, reports and the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any

from gitprovider.errors import GitProviderError


def plain(value: Any) -> Any:
    """Return ``value`` as JSON values: dataclasses as objects, times in ISO 8601, enums by value, tuples as arrays.

    Raises:
        TypeError: a part of the value has no JSON form, such as bytes.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def envelope(error: GitProviderError) -> dict[str, Any]:
    """Return the attributes of an error as JSON values. ``Intent.from_json`` reads the value of ``intent``."""
    return {
        "type": type(error).__name__,
        "message": error.message,
        "provider": error.provider,
        "operation": error.operation,
        "repo": error.repo,
        "status": error.status,
        "retryable": error.retryable,
        "retry_after": error.retry_after,
        "attempts": error.attempts,
        "outcome": error.outcome.value,
        "completed": plain(error.completed),
        "failed_step": error.failed_step,
        "request_id": error.request_id,
        "hint": error.hint,
        "intent": None if error.intent is None else error.intent.to_json(),
    }
