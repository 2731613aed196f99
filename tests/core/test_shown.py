"""What has not passed its check is shown nowhere as it came: not in errors, events, log lines or intents."""

from __future__ import annotations

import base64
import html
import importlib
import inspect
import json
import logging
import pkgutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

import gitprovider
from gitprovider import GitProviderError, InvalidRequestError, PutFile, connect, resolve
from gitprovider._core.json import envelope
from gitprovider.aio import AsyncGitProvider
from gitprovider.bootstrap import bootstrap
from gitprovider.checks import check_enum, check_int, check_seconds
from gitprovider.events import Event, log_events
from gitprovider.intent import Intent
from gitprovider.models import Visibility
from gitprovider.redact import redact

ROOT = Path(gitprovider.__file__).parent
SECRET = "opaque-s3cret"
NOT_PATHS = [
    f"https://oauth2:{SECRET}@gitlab.example/acme/widgets.git",
    f"oauth2:{SECRET}@gitlab.example/acme/widgets",
    f"{SECRET}@gitlab.example:acme/widgets",
    f"https://us\ner:{SECRET}@host/acme/widgets",
    f"acme/widgets?private_token={SECRET}",
    f"a@b@{SECRET}@c/d",
    f"acme/widgets\nWARNING forged line {'x' * 5000}",
    "acme/widgets\x1b[2J\x1b[31m",
    "acme/\u2028widgets\u202e",
]
CALLS: dict[str, Callable[[Any, str], Any]] = {
    "get_repo": lambda p, repo: p.get_repo(repo),
    "create_repo": lambda p, repo: p.create_repo(repo),
    "create_branch": lambda p, repo: p.create_branch(repo, "x", source="main"),
    "commit_files": lambda p, repo: p.commit_files(repo, "main", [PutFile(path="a", content="a")], message="m"),
    "merge_pull_request": lambda p, repo: p.merge_pull_request(repo, 1),
    "head": lambda p, repo: p.head(repo, "main"),
}


def build(kind: str, root: Path, hook: Any) -> Any:
    if kind == "local":
        return connect("local", root=root, on_event=hook)
    return connect(kind, url="http://127.0.0.1:1", token="x" * 20, on_event=hook)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("path", NOT_PATHS)
@pytest.mark.parametrize("kind", ["github", "gitlab", "local"])
def test_a_path_that_is_none_is_shown_nowhere(
    kind: str, path: str, call: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """CI prints clone URLs with tokens; a newline in a path would forge a log line."""
    caplog.set_level(logging.DEBUG)
    events: list[Event] = []
    told = log_events()

    def hook(event: Event) -> None:
        events.append(event)
        told(event)

    with build(kind, tmp_path, hook) as provider, pytest.raises(InvalidRequestError) as caught:
        CALLS[call](provider, path)

    error = caught.value
    kept = [str(error), str(error.args), str(error.repo), json.dumps(envelope(error), ensure_ascii=False)]
    kept += [record.getMessage() for record in caplog.records] + [str(event) for event in events]
    kept += [str(vars(record).get("gitprovider")) for record in caplog.records]
    for text in kept:
        assert SECRET not in text
        assert text.replace("\\n", "").isprintable()
    assert len(str(error)) < 1000
    assert events
    assert all(event.repo.isprintable() for event in events)


@pytest.mark.parametrize(
    "make",
    [
        lambda text: GitProviderError(text),
        lambda text: InvalidRequestError("wrong", hint=text),
        lambda text: GitProviderError("wrong", request_id=text),
    ],
)
def test_an_error_is_one_readable_line_whoever_makes_it(make: Callable[[str], GitProviderError]) -> None:
    """The local forge and a provider of somebody's own have no redactor; the error itself is the last place."""
    error = make(f"see https://u:{SECRET}@host/x\n\x1b[31mPRIVATE-TOKEN: {SECRET}")

    for text in (str(error), repr(error), str(envelope(error)), str(error.hint), str(error.request_id)):
        assert SECRET not in text
        assert text.isprintable()


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "percent": lambda s: quote(s, safe=""),
    "lower-case percent": lambda s: quote(s, safe="").replace("%2B", "%2b").replace("%2F", "%2f"),
    "percent twice": lambda s: quote(quote(s, safe=""), safe=""),
    "JSON": lambda s: json.dumps(s)[1:-1],
    "JSON with slashes": lambda s: json.dumps(s)[1:-1].replace("/", "\\/"),
    "JSON in JSON": lambda s: json.dumps(json.dumps(s)[1:-1])[1:-1],
    "JSON of code points": lambda s: "".join(f"\\u{ord(c):04X}" for c in s),
    "HTML": html.escape,
    "HTML of numbers": lambda s: "".join(f"&#{ord(c)};" for c in s),
    "HTML of hexadecimal numbers": lambda s: "".join(f"&#x{ord(c):X};" for c in s),
    "HTML twice": lambda s: html.escape(html.escape(s)),
    "half and half": lambda s: quote(s[:6], safe="") + html.escape(s[6:]),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("secret", ["a&b/c+d=e\"f'g", "glpat_opaque+/=", "päss<wörd>"])
def test_a_secret_is_known_in_every_spelling(spelling: str, secret: str) -> None:
    """A host that echoes a request escapes it first."""
    assert redact(f"before {SPELLINGS[spelling](secret)} after", [secret]) == "before *** after"


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("user", ["", "x", "ab", "oauth2:", "x-access-token:", "someone@example.org:"])
@pytest.mark.parametrize("tail", ["", ":x-oauth-basic", "\n"])
def test_basic_credentials_do_not_pass(encode: Callable[[bytes], bytes], user: str, tail: str) -> None:
    """Base64 hides a token from people, and from nobody else."""
    secret = "s3cret?>~with+odd/letters"
    written = encode((user + secret + tail).encode()).decode()

    for text in (written, quote(written, safe="")):
        left = redact(f"sent {text} there", [secret])

        assert left.startswith("sent ")
        assert left.endswith(" there")
        kept = unquote(left[5:].partition("***")[0])
        assert len(kept) <= len(base64.b64encode(user.encode()).rstrip(b"="))
        assert "***" in left


DEEP: Any = []
for _ in range(50_000):
    DEEP = [DEEP]
HOSTILE: list[Any] = [
    None, 5, -1, True, 10**5000, -(10**400), float("nan"), float("inf"), 1j, b"x", "", "\ud800", "\0", "a/b\n",
    "a" * 99_999,
    "a/" * 50_000 + "b", [], [[]], {}, {1: 2}, {"a": 1}, (), DEEP, {"a": DEEP}, object(), int, iter([1]),
]  # fmt: skip
BASE = {"operation": "create_branch", "provider": "local", "repo": "acme/w", "branch": "x"}
FIELDS = sorted(Intent.__dataclass_fields__)


@pytest.mark.parametrize("field", [*FIELDS, "files.a", "rules.a", None])
def test_a_hostile_record_is_a_value_error_or_an_intent_that_holds(field: str | None, tmp_path: Path) -> None:
    """What a service reads back from its store may be damaged; resolve must not fail in a way that nobody catches."""
    times = ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-01-01", "now"]
    provider = connect("local", root=tmp_path)
    for value in [*HOSTILE, *times]:
        outer, _, inner = (field or "").partition(".")
        record = value if field is None else {**BASE, outer: {inner: value} if inner else value}
        try:
            intent = Intent.from_json(record)
        except ValueError:
            continue
        stored = json.dumps(intent.to_json())
        assert json.dumps(Intent.from_json(json.loads(stored)).to_json()) == stored
        for operation in ("create_repo", "create_branch", "protect_branch", "commit_files", "merge_pull_request"):
            for sent in (None, datetime.now(UTC)):
                changed = {**intent.to_json(), "operation": operation, "provider": "local"}
                if sent is not None:
                    changed["sent_at"] = sent.isoformat()
                with suppress(GitProviderError, ValueError):
                    resolve(provider, Intent.from_json(changed))


def test_hostile_values_are_invalid_requests(tmp_path: Path) -> None:
    """A raw OverflowError, TypeError or RecursionError of an argument is a 500 of the service that passed it on."""
    provider = connect("local", root=tmp_path)
    calls: list[Callable[[Any], object]] = [
        lambda value: check_int("x", value, least=10**6),
        lambda value: check_seconds("x", value),
        lambda value: check_enum("x", value, Visibility),
        lambda value: provider.get_repo(value),
        lambda value: provider.supports(value),
        lambda value: resolve(provider, value),
        lambda value: connect(value),
        lambda value: bootstrap(provider, "acme/w", source=value),
    ]  # fmt: skip
    for value in [item for item in HOSTILE if item is not None]:
        for call in calls:
            with suppress(GitProviderError):
                call(value)


def _with_own_repr() -> list[type]:
    found = set()
    for module in pkgutil.walk_packages(gitprovider.__path__, "gitprovider."):
        if "__main__" not in module.name and ".testing" not in module.name:
            for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
                shown = (kind.__repr__, kind.__str__)
                if any(str(ROOT) in getattr(getattr(shower, "__code__", None), "co_filename", "") for shower in shown):
                    found.add(kind)
    return sorted(found, key=lambda kind: kind.__qualname__)


@pytest.mark.parametrize("kind", _with_own_repr())
def test_the_repr_of_a_half_built_object_does_not_raise(kind: Any) -> None:
    """A debugger or a tracker of errors asks for the repr of ``self`` in a constructor that has just refused."""
    if inspect.isabstract(kind):
        pytest.skip("never built")

    half = kind.__new__(kind)

    assert repr(half)
    assert isinstance(str(half), str)


def test_the_coroutines_show_no_unchecked_path_either() -> None:
    """The event of a cancelled call is made of the arguments, not of what the provider checked."""
    provider: Any = object()
    report = AsyncGitProvider(provider)._report

    class Flight:
        future: Any = type("Running", (), {"done": lambda self: False})()
        queued_at = datetime.now(UTC)

    flight: Any = Flight()
    for path in NOT_PATHS:
        event = report(flight, "create_branch", path, {})
        assert SECRET not in str(event)
        assert event.repo.isprintable()
