"""Redaction of secrets in text from outside, such as a host's message, an SDK's error or a URL.

All such text passes through :func:`redact`, or through a :class:`Redactor` that also knows the provider's own tokens,
before it enters an error, an event, a log line or the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

MASK = "***"


@cache
def _replacements() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the pattern of each kind of secret and its replacement. They are compiled on first use.

    The hosts' documented token formats:
    https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github#githubs-token-formats
    https://docs.gitlab.com/security/tokens/#token-prefixes
    """
    private_key = r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    userinfo = r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*://)[^\s/?#@'\"<>]+(?:@[^\s/?#@'\"<>]+)*@"
    query = r"(?P<key>[?&](?:access_token|private_token|job_token|client_secret|token|password|sig)=)[^&\s'\"<>]+"
    header = (
        r"(?P<key>\b(?:authorization|private-token|job-token)\b['\"]?\s*[:=]\s*['\"]?)"
        r"(?:(?:bearer|token|basic)\s+)?[^\s,'\"}]+"
    )
    tokens = (
        r"(?<![A-Za-z0-9])(?:"
        r"gh[pousr]_[A-Za-z0-9_.\-]{16,}"
        r"|github_pat_[A-Za-z0-9_]{16,}"
        r"|v1\.[0-9a-f]{40}"
        r"|gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[A-Za-z0-9_.\-]{8,}"
        r")"
    )
    jwt = r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"
    return (
        (re.compile(private_key, re.DOTALL), MASK),
        (re.compile(userinfo), rf"\g<scheme>{MASK}@"),
        (re.compile(query, re.IGNORECASE), rf"\g<key>{MASK}"),
        (re.compile(header, re.IGNORECASE), rf"\g<key>{MASK}"),
        (re.compile(tokens), MASK),
        (re.compile(jwt), MASK),
    )


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text`` with every secret replaced by ``***``.

    It replaces the given ``secrets`` (plain and percent-encoded), credentials in URLs, tokens in the formats of GitHub
    and GitLab, JSON web tokens, private keys, and the values of authorization headers and token parameters.
    """
    for secret in secrets:
        # A secret of fewer characters would mask ordinary words. No host issues one.
        if len(secret) >= 4:
            text = text.replace(secret, MASK).replace(_percent_encoded(secret), MASK)
    for pattern, mask in _replacements():
        text = pattern.sub(mask, text)
    return text


def _percent_encoded(text: str) -> str:
    from urllib.parse import quote  # not at the top: it is a tenth of the package's import time

    return quote(text, safe="")


def printable(text: str, limit: int = 500) -> str:
    """Return ``text`` as one readable line of at most ``limit`` characters. Control characters become spaces."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


class Redactor:
    """Redacts text with one provider's own secrets. Its repr does not show them, and it cannot be pickled."""

    __slots__ = ("__weakref__", "_secrets")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = tuple(s for s in secrets if s)

    def __call__(self, text: str) -> str:
        """Return ``text`` redacted, as one readable line."""
        return printable(self.whole(text))

    def whole(self, text: str) -> str:
        """Return ``text`` redacted, at its full length and with its line breaks."""
        return redact(text, self._secrets)

    def learn(self, secret: str) -> None:
        """Add a secret, such as a renewed installation token. The last eight are kept."""
        if secret and secret not in self._secrets:
            self._secrets = (*self._secrets[-7:], secret)

    def __repr__(self) -> str:
        return "Redactor(***)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a Redactor contains secrets and cannot be pickled; build the provider where it is used")
