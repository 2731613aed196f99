"""The one redaction: no secret's shape passes, and ordinary text does."""

import pickle

import pytest

import gitprovider.redact as module
from gitprovider.redact import Redactor, printable, redact

SECRETS = [
    "ghp_" + "a1" * 18,
    "gho_" + "b2" * 18,
    "ghs_" + "c3" * 18,
    "github_pat_" + "D4" * 30,
    "glpat-" + "x" * 20,
    "gldt-" + "y" * 20,
    "glcbt-64_" + "z" * 20,
    "v1." + "0123456789abcdef0123" * 2,
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxMjM0NSJ9.c2lnbmF0dXJlLXZhbHVl",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "frame", ["{}", "bad token '{}'", "https://x.example/?q={}&b=1", "[{}]", "token={},", "x:{}\n"]
)
def test_token_shapes_do_not_pass(secret: str, frame: str) -> None:
    """Every token shape is masked, whatever stands around it."""
    text = redact(frame.format(secret))

    assert secret not in text
    assert secret[-12:] not in text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("import from https://user:pa%40ss@git.example/x.git failed", "https://***@git.example/x.git"),
        ("https://oauth2:hunter22@host/x and http://a@b/", "https://***@host/x and http://***@b/"),
        ("https://u:p@ss@host/x", "https://***@host/x"),
        ("ssh://git:secret@host:22/x", "ssh://***@host:22/x"),
        ("GET /x?private_token=hunter22&page=2", "private_token=***&page=2"),
        ("{'Authorization': 'Bearer hunter22', 'Accept': 'x'}", "'Accept': 'x'"),
        ("PRIVATE-TOKEN: hunter22", "PRIVATE-TOKEN: ***"),
    ],
)
def test_credentials_in_urls_and_headers_do_not_pass(text: str, kept: str) -> None:
    """User info, token parameters and authorization headers are masked, and their surroundings kept."""
    result = redact(text)

    assert kept in result
    for secret in ("hunter22", "pa%40ss", "secret@", "p@ss"):
        assert secret not in result


def test_a_private_key_does_not_pass() -> None:
    """A PEM block is masked as a whole, also when its end was cut off."""
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nAAAA\n-----END RSA PRIVATE KEY-----"

    assert redact(f"key {key} end") == "key *** end"
    assert "MIIEow" not in redact(f"key {key[:50]}")


def test_a_given_secret_does_not_pass_plain_or_percent_encoded() -> None:
    """The provider's own token is masked whatever its shape."""
    assert redact("sent my+secret and my%2Bsecret", ["my+secret"]) == "sent *** and ***"


@pytest.mark.parametrize(
    "text",
    [
        "acme/widgets: 404 Branch Not Found",
        "mail dev@example.com about feature/x@y",
        "https://github.com/acme/widgets/pull/7",
        "commit 0123456789abcdef0123456789abcdef01234567 is not a fast forward",
        "glpat is a prefix, ghp_short is none",
    ],
)
def test_ordinary_text_is_kept(text: str) -> None:
    """A redaction that masks what is no secret makes errors useless."""
    assert redact(text) == text


def test_printable_gives_one_line() -> None:
    """Escape sequences and line breaks cannot reach a terminal or split a log line."""
    assert printable("a\x1b[31mb\r\nc\u2028d") == "a [31mb c d"
    assert len(printable("x" * 1000, limit=50)) == 50


def test_a_redactor_keeps_its_secrets_to_itself() -> None:
    """Neither its repr nor a pickle of it gives a secret away, and it learns renewed tokens."""
    redactor = Redactor(["hunter22"])
    redactor.learn("renewed-token")

    assert redactor("hunter22 renewed-token") == "*** ***"
    assert "hunter" not in repr(redactor)
    with pytest.raises(TypeError, match="secrets"):
        pickle.dumps(redactor)


def test_the_expression_of_a_secret_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text of an error is redacted, and making the expression takes longer than using it."""
    made: list[str] = []
    spellings = module._spellings
    monkeypatch.setattr(module, "_spellings", lambda secret: made.append(secret) or spellings(secret))
    redactor = Redactor(["seen-nowhere-else-1", "seen-nowhere-else-2"])

    assert [redactor(f"sent {secret} there") for secret in ["seen-nowhere-else-1", "seen-nowhere-else-2"] * 3] == (
        ["sent *** there"] * 6
    )
    assert made == ["seen-nowhere-else-1", "seen-nowhere-else-2"]
