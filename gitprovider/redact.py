"""One redaction for every text that comes from outside.

A host's message, an SDK's error, a URL: each passes through :func:`redact` (or a :class:`Redactor` that also knows
the provider's own tokens) before it enters an error, an event, a log line or the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"

# Shapes of tokens as the hosts document them:
# https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github#githubs-token-formats
# https://docs.gitlab.com/security/tokens/#token-prefixes
_TOKEN_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"gh[pousr]_[A-Za-z0-9_.\-]{16,}"
    r"|github_pat_[A-Za-z0-9_]{16,}"
    r"|v1\.[0-9a-f]{40}"
    r"|gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[A-Za-z0-9_.\-]{8,}"
    r")"
)
_JWT = re.compile(r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}")
_USERINFO = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*://)[^\s/?#@'\"<>]+(?:@[^\s/?#@'\"<>]+)*@")
_QUERY_SECRET = re.compile(
    r"(?P<key>[?&](?:access_token|private_token|job_token|client_secret|token|password|sig)=)[^&\s'\"<>]+",
    re.IGNORECASE,
)
_HEADER_SECRET = re.compile(
    r"(?P<key>\b(?:authorization|private-token|job-token)\b['\"]?\s*[:=]\s*['\"]?)(?:(?:bearer|token|basic)\s+)?[^\s,'\"}]+",
    re.IGNORECASE,
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text`` with every secret replaced by ``***``.

    Replaced are the given ``secrets`` (as they are and percent-encoded), credentials inside URLs, the token shapes of
    GitHub and GitLab, JSON web tokens, private keys, and the values of authorization headers and token parameters.
    """
    for secret in secrets:
        # A secret of a few characters would blank out ordinary words; no host issues one.
        if len(secret) >= 4:
            text = text.replace(secret, MASK).replace(_percent_encoded(secret), MASK)
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _USERINFO.sub(rf"\g<scheme>{MASK}@", text)
    text = _QUERY_SECRET.sub(rf"\g<key>{MASK}", text)
    text = _HEADER_SECRET.sub(rf"\g<key>{MASK}", text)
    text = _TOKEN_SHAPES.sub(MASK, text)
    return _JWT.sub(MASK, text)


def _percent_encoded(text: str) -> str:
    from urllib.parse import quote  # here, since loading it is a tenth of what importing this package costs

    return quote(text, safe="")


def printable(text: str, limit: int = 500) -> str:
    """Return ``text`` as one readable line: control characters become spaces, and what exceeds ``limit`` is cut."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


class Redactor:
    """A redaction that knows one provider's own secrets. Its repr shows none of them, and it refuses to be pickled."""

    __slots__ = ("__weakref__", "_secrets")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = tuple(s for s in secrets if s)

    def __call__(self, text: str) -> str:
        """``text`` redacted, as one readable line."""
        return printable(self.whole(text))

    def whole(self, text: str) -> str:
        """``text`` redacted, at its full length and with its line breaks."""
        return redact(text, self._secrets)

    def learn(self, secret: str) -> None:
        """Add a secret that came to be known later, such as a renewed installation token. The last eight are kept."""
        if secret and secret not in self._secrets:
            self._secrets = (*self._secrets[-7:], secret)

    def __repr__(self) -> str:
        return "Redactor(***)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a Redactor holds secrets and cannot be pickled; build the provider where it is used")
