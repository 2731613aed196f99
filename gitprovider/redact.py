"""Redaction of secrets in text from outside, such as a host's message, an SDK's error or a URL.

All such text passes through :func:`redact`, or through a :class:`Redactor` that also knows the provider's own tokens,
before it enters an error, an event, a log line or the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

MASK = "***"
HOST_TEXT = 4096  # characters of a host's text that are looked at; people see 500 of them

_NAMED = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}  # in HTML and XML


@cache
def _replacements() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the expression for each kind of secret and its replacement. They are compiled on first use.

    Every expression is linear: a repetition without a bound starts after a literal, and a match takes all of it.

    The hosts' documented token formats:
    https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github#githubs-token-formats
    https://docs.gitlab.com/security/tokens/#token-prefixes
    """
    return (
        # A private key.
        (
            re.compile(
                r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
            ),
            MASK,
        ),
        # The credential in a URL.
        (re.compile(r"(?<=://)[^\s/?#'\"<>]+@"), f"{MASK}@"),
        # A parameter of a query.
        (
            re.compile(
                r"(?P<key>[?&](?:access_token|private_token|job_token|client_secret|token|password|sig)=)[^&\s'\"<>]+",
                re.IGNORECASE,
            ),
            rf"\g<key>{MASK}",
        ),
        # A header.
        (
            re.compile(
                r"(?P<key>(?:authorization|private-token|job-token)\b['\"]?\s{0,9}[:=]\s{0,9}['\"]?)"
                r"(?:(?:bearer|token|basic)\s{1,9})?[^\s,'\"}]+",
                re.IGNORECASE,
            ),
            rf"\g<key>{MASK}",
        ),
        # A token.
        (
            re.compile(
                r"(?<![A-Za-z0-9])(?:"
                r"gh[pousr]_[A-Za-z0-9_.\-]{16,}"
                r"|github_pat_[A-Za-z0-9_]{16,}"
                r"|v1\.[0-9a-f]{40}"
                r"|gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[A-Za-z0-9_.\-]{8,}"
                r"|eyJ[A-Za-z0-9_.\-]{26,}"  # a JSON web token
                r")"
            ),
            MASK,
        ),
    )


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text`` with every secret replaced by ``***``.

    It replaces the given ``secrets`` (plain, percent-encoded, escaped as in JSON and HTML, and inside base64),
    credentials in URLs, tokens in the formats of GitHub and GitLab, JSON web tokens, private keys, and the values of
    authorization headers and token parameters. Its time is linear in the length of the text.
    """
    for secret in secrets:
        # A secret of fewer characters would mask ordinary words. No host issues one.
        if len(secret) >= 4:
            text = _expression(secret).sub(MASK, text)
    for expression, mask in _replacements():
        text = expression.sub(mask, text)
    return text


@lru_cache(maxsize=64)  # making the text of an expression takes longer than using it
def _expression(secret: str) -> re.Pattern[str]:
    return re.compile(_spellings(secret))


def _spellings(secret: str) -> str:
    """Return an expression for every spelling of ``secret`` in a response of a host or a text of an SDK."""
    found = ["".join(map(_spelling, secret))]
    if len(secret) >= 8:
        from base64 import b64encode

        # Base64 of "user:secret" spells the secret in one of three ways, by its distance from the start. The part that
        # does not depend on the neighbours is found. The credential is masked from there to its end.
        for before in range(3):
            data = bytes(before) + secret.encode()
            core = b64encode(data)[-(-before * 4 // 3) : len(data) * 4 // 3].decode()
            core = core.replace("+", "(?:[+-]|%2[bB])").replace("/", "(?:[/_]|%2[fF])")
            found.append(f"[A-Za-z0-9+/_-]?{core}[A-Za-z0-9+/=_%-]*")
    return "|".join(found)


def _spelling(character: str) -> str:
    """Return an expression for a character: plain, percent-encoded, and escaped as in JSON and HTML, or repeatedly."""
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
    """Return ``text`` as one readable line of at most ``limit`` characters. Control characters become spaces."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def readable(text: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text``, which may come from anywhere, redacted and as one readable line.

    A longer text is cut first. The word at the cut, which may be half a secret, is dropped.
    """
    if len(text) > HOST_TEXT:
        text = text[:HOST_TEXT].rpartition(" ")[0] or text[:HOST_TEXT]
    return printable(redact(text, secrets))


class Redactor:
    """Redacts text with one provider's own secrets. Its repr does not show them, and it cannot be pickled."""

    __slots__ = ("__weakref__", "_secrets")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = tuple(s for s in secrets if s)

    def __call__(self, text: str) -> str:
        """Return ``text`` redacted, as one readable line."""
        return readable(text, self._secrets)

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
