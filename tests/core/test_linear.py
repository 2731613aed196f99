"""Every regular expression of the package takes time in proportion to the text, whatever the text is."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined] # typeshed has none of it
from re import _parser as parser  # type: ignore[attr-defined] # typeshed has none of it
from typing import Any

import pytest

import gitprovider
from gitprovider._core.wildcards import matches
from gitprovider._remote.errors import ErrorRule
from gitprovider.checks import check_repo_path
from gitprovider.errors import GitProviderError
from gitprovider.gitlab.merges import _FAILURES
from gitprovider.redact import HOST_TEXT, Redactor, _spellings, redact

ROOT = Path(gitprovider.__file__).parent
FUNCTIONS = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
# Expressions that are made while the program runs, and what stands for them here.
MADE = {
    "redact.py: _spellings(secret)": _spellings("aZ0-+/<&\"'\\" * 3),
    "_remote/errors.py: self.text": "",  # each rule's own is found in the tables
    "_remote/errors.py: self.header[1]": "",
    "gitlab/merges.py: words": "|".join(words for words, _ in _FAILURES),
    "gitlab/provider.py: f'{re.escape(urlsplit(self._url).path)}/api/v4/projects/(\\\\d+)'": r"/api/v4/projects/(\d+)",
    "_remote/failures.py: text": "",  # each argument of says() is found
    # A test writes these, or a template of this package.
    "fakes/faults.py: self.endpoint": "",
    "fakes/gitlab/commits.py: pattern": "",
    "fakes/gitlab/repositories.py: pattern": "",
    "fakes/http.py: parts + '\\\\Z'": r"/repos/(?P<repo>.+)/git/refs/(?P<ref>[^/]+)\Z",
    "fakes/mount.py: f'{scheme}://{re.escape(authority)}{port}{re.escape(slash + path)}(?:[/?#]|\\\\Z)'": "",
}
Found = tuple[str, str, int, str]  # where, expression, flags, function


def found() -> Iterator[Found]:
    """Every expression in the package's source, with the values that its modules give to names."""
    compiled: set[ast.AST] = set()
    for path in sorted(ROOT.rglob("*.py")):
        where, source = str(path.relative_to(ROOT)), path.read_text()
        named = dict(re.findall(r"(?m)^(\w{1,60}) = (re\.compile)\(", source))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in named:
                # A compiled expression is used by the methods that its module calls.
                name = node.targets[0].id
                used = set(re.findall(rf"\b{name}\.(\w{{1,20}})", source))
                yield from _evaluated(where, node.value, "match" if used <= {"match", "fullmatch"} else "search")
                compiled.add(node.value)
                continue
            if node in compiled:
                continue
            if not isinstance(node, ast.Call):
                continue
            callee = ast.unparse(node.func)
            if callee == "says" or (callee.startswith("re.") and callee[3:] in FUNCTIONS):
                name = "search" if callee == "says" else callee[3:]
                yield from _evaluated(where, node, name)
    for module in ("github", "gitlab"):
        errors = import_module(f"gitprovider.{module}.errors")
        for rule in (*errors.RULES, *errors.FOREIGN):
            assert isinstance(rule, ErrorRule)
            yield f"{module}: {rule.fact}", rule.text, re.IGNORECASE, "search"
            yield f"{module}: {rule.fact}", rule.header[1] if rule.header else "", 0, "match"


def _evaluated(where: str, node: Any, name: str) -> Iterator[Found]:
    module = import_module("gitprovider." + where.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    written = ast.unparse(node.args[0])
    if f"{where}: {written}" in MADE:
        yield where, MADE[f"{where}: {written}"], 0, "match" if name == "compile" else name
        return
    given = {word.arg: word.value for word in node.keywords}
    flags = next((arg for arg in node.args[1:] if re.match(r"re\.[A-Z]+", ast.unparse(arg))), given.get("flags"))
    try:
        value = eval(written, vars(module))
    except NameError:
        pytest.fail(f"{where}: {written} is made while the program runs; say in MADE what stands for it")
    value = value.pattern if isinstance(value, re.Pattern) else value
    yield where, value, 0 if flags is None else int(eval(ast.unparse(flags), vars(module))), name


def sample(nodes: Any, choice: int = 0) -> str:
    """A text that a parsed expression matches, more or less; ``choice`` varies it."""
    return "".join(_sample(code, value, choice) for code, value in nodes)


def _sample(code: Any, value: Any, choice: int) -> str:
    if code is codes.LITERAL:
        return chr(value)
    if code in (codes.NOT_LITERAL, codes.ANY):
        return "a@ :"[choice % 4]
    if code is codes.IN:
        return _member(value, choice)
    if code is codes.BRANCH:
        return sample(value[1][choice % len(value[1])], choice)
    if code is codes.SUBPATTERN:
        return sample(value[-1], choice)
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return sample(value[2], choice) * int(max(1, value[0]))
    return ""


def _member(members: Any, choice: int) -> str:
    negated = members[0][0] is codes.NEGATE
    letters = []
    for letter in "a@ :-A0_/.\t%=\\,é":
        inside = any(
            (kind is codes.LITERAL and ord(letter) == what)
            or (kind is codes.RANGE and what[0] <= ord(letter) <= what[1])
            or (kind is codes.CATEGORY and _in_category(what, letter))
            for kind, what in members
        )
        if inside != negated:
            letters.append(letter)
    if not letters:
        letters = [
            chr(what if kind is codes.LITERAL else what[0]) for kind, what in members if kind is not codes.NEGATE
        ]
    return str(letters[choice % len(letters)])


def _in_category(what: Any, letter: str) -> bool:
    name = str(what).lower()
    plain = r"\s" if "space" in name else r"\d" if "digit" in name else r"\w"
    return (re.match(plain, letter) is not None) != ("_not_" in name)


def repeats(nodes: Any, before: str = "", choice: int = 0) -> Iterator[tuple[str, str]]:
    """Each repetition without a small bound: what comes before it, and what it repeats."""
    for code, value in nodes:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            if value[1] > 1000:
                yield before, sample(value[2], choice)
            yield from repeats(value[2], before, choice)
        elif code is codes.SUBPATTERN:
            yield from repeats(value[-1], before, choice)
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from repeats(branch, before, choice)
        before += _sample(code, value, choice)


def attacks(pattern: str, flags: int) -> set[tuple[str, str, str]]:
    """Texts as prefix, pump and end, made from the expression itself."""
    parsed = parser.parse(pattern, flags)
    made = set()
    for choice in range(3):
        whole = sample(parsed, choice)
        made |= {("", whole, "\0"), ("", whole[:-1] or whole, "\0")}
        for before, pump in repeats(parsed, "", choice):
            made |= {(before, pump, "\0"), ("", before + pump, "\0"), ("", pump, "\0"), ("", before + pump * 4, "\n\0")}
    return {attack for attack in made if attack[1]}


def runner(compiled: Any, name: str) -> Callable[[str], object]:
    """The expression as the package uses it. What is searched for once may begin anywhere, as if for all."""
    run: Callable[[Any], object] = {"fullmatch": compiled.fullmatch, "match": compiled.match}.get(
        name, compiled.findall
    )
    return (lambda text: run(text.encode())) if isinstance(compiled.pattern, bytes) else run


def seconds(run: Callable[[str], object], text: str) -> float:
    """The least processor time of up to three runs; a run that takes no time is not repeated."""
    least = 1e9
    for _ in range(3):
        started = time.process_time()
        run(text)
        least = min(least, time.process_time() - started)
        if not 0.001 < least < 0.1:
            break
    return least


def is_linear(run: Callable[[str], object], attack: tuple[str, str, str]) -> bool:
    """Whether a text of twice the length takes about twice the time. A busy machine may spoil some of the tries."""
    return any(_looks_linear(run, attack) for _ in range(5))


def _looks_linear(run: Callable[[str], object], attack: tuple[str, str, str]) -> bool:
    prefix, pump, end = attack
    before = None
    for length in (125, 250, 500, 1000, 2000, 4000, 8000, 16_000):
        now = seconds(run, prefix + pump * (length // len(pump)) + end)
        if before is not None and now > 0.01 and now / before > 3.2:
            return False
        before = max(now, 0.002)
    return True


def test_every_expression_of_the_package_is_linear() -> None:
    """A host's message of 60 kB must not hold a thread for half a minute."""
    slow = []
    for where, pattern, flags, name in dict.fromkeys(found()):
        run = runner(re.compile(pattern, flags), name)
        for attack in sorted(attacks(pattern, flags)):
            if not is_linear(run, attack):
                slow.append((where, pattern, attack))
    assert slow == []


@pytest.mark.parametrize("pattern", [r"[a-z]*://", r"eyJ[\w-]{8,}\.", r"x .*y", r"\s*(.+?)\s*<", r"[^/\s]+@[^/\s]+:"])
def test_an_expression_that_is_not_linear_is_found(pattern: str) -> None:
    """A measurement that finds nothing proves nothing."""
    assert any(not is_linear(re.compile(pattern).findall, attack) for attack in attacks(pattern, 0))


@pytest.mark.parametrize(
    "piece", ["a", "eyJa-", "://", "a://b", "authorization: ", "-----BEGIN ", "?token=", "\\", "%25"]
)
def test_redaction_is_linear(piece: str) -> None:
    """The whole of it, with secrets of its own, on texts that its expressions begin to match."""
    assert is_linear(lambda text: redact(text, ["aaaa-aaaa-aaaa", "other+secret"]), ("", piece, "\0"))


@pytest.mark.parametrize("piece", ["*a", "*ab*", "**", "a*", "*aa"])
@pytest.mark.parametrize("end", ["c", "*c", ""])
def test_a_pattern_with_many_wildcards_is_linear(piece: str, end: str) -> None:
    """A host's rule of ten stars must not hold a thread for seconds."""
    assert is_linear(lambda text: matches(piece * 3 + end, text), ("", "a", ""))


@pytest.mark.parametrize("size", [HOST_TEXT, 100 * HOST_TEXT])
def test_a_cut_shows_no_half_of_a_secret(size: int) -> None:
    """A text is cut before it is searched, and a secret at the cut is not recognized any more."""
    secret = "hunter2-hunter2-hunter2"
    redactor = Redactor([secret])

    for place in range(HOST_TEXT - 2 * len(secret), HOST_TEXT + 2):
        text = redactor(" " * place + secret + " x" * size)

        assert "hunter" not in text


def test_a_message_of_any_length_becomes_a_short_line() -> None:
    """An error keeps what people read, not a page of a host's."""
    assert len(GitProviderError("a" * 10_000_000).message) <= 500
    with pytest.raises(GitProviderError) as caught:
        check_repo_path("a@" * 500)
    assert len(str(caught.value)) <= 500
