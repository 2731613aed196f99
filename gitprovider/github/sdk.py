"""``import github`` without what it does to logging. Every module of this package takes PyGithub from here.

PyGithub's ``__init__`` puts a handler on the logger "github"; a library must leave handlers to the application. Its
debug log prints each response whole, and the response that an installation token comes in holds that token; so what it
logs passes the redaction. The level that PyGithub sets is left as it is: it keeps the debug log off until that is
asked for.
"""

from __future__ import annotations

import logging
import weakref

from gitprovider.redact import Redactor, redact

_log = logging.getLogger("github")
_before = tuple(_log.handlers)
import github  # noqa: E402 - the handlers had to be looked at first

for _handler in tuple(_log.handlers):
    if _handler not in _before:
        _log.removeHandler(_handler)

__all__ = ["github", "redacted_in_log"]

_redactors: weakref.WeakSet[Redactor] = weakref.WeakSet()


def redacted_in_log(redactor: Redactor) -> None:
    """Have PyGithub's log records pass through ``redactor`` too, as long as it lives."""
    _redactors.add(redactor)


class _RedactingFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        text = redact(record.getMessage())
        for redactor in tuple(_redactors):
            text = redactor.whole(text)
        record.msg, record.args = text, ()
        return True


logging.getLogger("github.Requester").addFilter(_RedactingFilter())
