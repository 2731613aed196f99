"""One redaction for every text that comes from outside.

A host's message, an SDK's error, a URL: each passes through :func:`redact` (or a :class:`Redactor` that also knows
the provider's own tokens) before it enters an error, an event, a log line or the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"

# Every expression here is linear: what is repeated without a bound begins only after a literal, and a match takes all
# of it, so that no character is looked at from more than one beginning.
#
# Shapes of tokens as the hosts document them:
# https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github#githubs-token-formats
# https://docs.gitlab.com/security/tokens/#token-prefixes
_TOKEN_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"gh[pousr]_[A-Za-z0-9_.\-]{16,}"
    r"|github_pat_[A-Za-z0-9_]{16,}"
    r"|v1\.[0-9a-f]{40}"
    r"|gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[A-Za-z0-9_.\-]{8,}"
    r"|eyJ[A-Za-z0-9_.\-]{26,}"  # a JSON web token
    r")"
)
_USERINFO = re.compile(r"(?<=://)[^\s/?#'\"<>]+@")
_QUERY_SECRET = re.compile(
    r"(?P<key>[?&](?:access_token|private_token|job_token|client_secret|token|password|sig)=)[^&\s'\"<>]+",
    re.IGNORECASE,
)
_HEADER_SECRET = re.compile(
    r"(?P<key>\b(?:authorization|private-token|job-token)\b['\"]?\s{0,9}[:=]\s{0,9}['\"]?)"
    r"(?:(?:bearer|token|basic)\s{1,9})?[^\s,'\"}]+",
    re.IGNORECASE,
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
)
_NAMED = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}  # in HTML and XML


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text`` with every secret replaced by ``***``.

    Replaced are the given ``secrets`` (also percent-encoded, escaped as in JSON or HTML, and inside base64), credentials
    inside URLs, the token shapes of GitHub and GitLab, JSON web tokens, private keys, and the values of authorization
    headers and token parameters. The time it takes grows with the length of the text.
    """
    for secret in secrets:
        # A secret of a few characters would blank out ordinary words; no host issues one.
        if len(secret) >= 4:
            text = re.sub(_spellings(secret), MASK, text)
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _USERINFO.sub(f"{MASK}@", text)
    text = _QUERY_SECRET.sub(rf"\g<key>{MASK}", text)
    text = _HEADER_SECRET.sub(rf"\g<key>{MASK}", text)
    return _TOKEN_SHAPES.sub(MASK, text)


def _spellings(secret: str) -> str:
    """An expression for every spelling of ``secret`` that a host or an SDK may send back."""
    found = ["".join(map(_spelling, secret))]
    if len(secret) >= 8:
        from base64 import b64encode

        # Inside "user:secret" the secret begins at one of three places of base64's groups of three bytes. What does
        # not depend on its neighbours is found; a Basic credential is masked from there to its end.
        for before in range(3):
            data = bytes(before) + secret.encode()
            core = b64encode(data)[-(-before * 4 // 3) : len(data) * 4 // 3].decode()
            letters = (re.escape(c) if c.isalnum() else {"+": "(?:[+-]|%2[bB])", "/": "(?:[/_]|%2[fF])"}[c] for c in core)
            found.append("[A-Za-z0-9+/_-]?" + "".join(letters) + "[A-Za-z0-9+/=_%-]*")
    return "|".join(found)


def _spelling(character: str) -> str:
    """An expression for a character as it is, percent-encoded, and escaped as in JSON or HTML, also more than once."""
    percent = "".join(f"%(?:25){{0,4}}{_hex(byte, 2)}" for byte in character.encode())
    names = [f"#0{{0,6}}{ord(character)}", f"#[xX]0{{0,6}}{_hex(ord(character), 1)}"]
    if character in _NAMED:
        names.append(_NAMED[character])
    plain = re.escape(character)
    escaped = rf"\\{{1,8}}(?:{plain}|u{_hex(ord(character), 4)})"
    return rf"(?:{plain}|{percent}|{escaped}|&(?:amp;){{0,4}}(?:{'|'.join(names)});)"


def _hex(number: int, digits: int) -> str:
    return "".join(f"[{d}{d.upper()}]" if d.isalpha() else d for d in f"{number:0{digits}x}")


def printable(text: str, limit: int = 500) -> str:
    """Return ``text`` as one readable line: control characters become spaces, and what exceeds ``limit`` is cut."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def readable(text: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text``, which may come from anywhere, redacted and as one readable line.

    A text of any length takes the same time: what is beyond a few thousand characters is not looked at, and the word
    that the cut goes through, which may be half a secret, is not shown.
    """
    if len(text) > _LONGEST:
        text = text[:_LONGEST].rpartition(" ")[0] or text[:_LONGEST]
    return printable(redact(text, secrets))


_LONGEST = 4096


class Redactor:
    """A redaction that knows one provider's own secrets. Its repr shows none of them, and it refuses to be pickled."""

    __slots__ = ("__weakref__", "_secrets")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = tuple(s for s in secrets if s)

    def __call__(self, text: str) -> str:
        """``text`` redacted, as one readable line."""
        return readable(text, self._secrets)

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
