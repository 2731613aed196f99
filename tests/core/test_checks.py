"""Argument checks: what Git and the hosts refuse is refused here first, naming the argument."""

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gitprovider import checks
from gitprovider.errors import InvalidRequestError
from gitprovider.models import Visibility


def refused(check: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
    try:
        check(*args, **kwargs)
    except InvalidRequestError as error:
        return error.argument == args[0] and error.message.startswith(f"{args[0]}: ")
    return False


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("ab/.@{~^:?*[\\-#%ü é"), min_size=1, max_size=8).filter(lambda name: name != "@"))
@example("a.lock/b")
@example("a/.b")
@example("a..b")
@example("a@{b")
@example("feature/x#1%?")
def test_branch_names_are_git_s(name: str) -> None:
    """What ``git check-ref-format --branch`` refuses is refused, and nothing else (but ``@``, Git's word for HEAD)."""
    git = subprocess.run(["git", "check-ref-format", "--branch", name], capture_output=True, check=False)

    assert refused(checks.check_branch, "name", name) == (git.returncode != 0)


@pytest.mark.parametrize(
    "name",
    ["refs/heads/x", "HEAD", "@", "a" * 40, "A" * 64, "", " ", "a\x00b", "x" * 245, "\ud800", "a\nb", None, 7, b"x"],
)
def test_branch_names_that_mean_something_else_are_refused(name: object) -> None:
    """A ref path, HEAD or a sha given as a branch name would be read as another thing by some host."""
    assert refused(checks.check_branch, "name", name)


@pytest.mark.parametrize("name", ["main", "feature/x#1", "100%", "ünïcode", "a/b/c", "x" * 244, "a" * 39, "日本語"])
def test_good_branch_names_pass(name: str) -> None:
    """Unicode, slashes, # and % are ordinary in branch names."""
    assert checks.check_branch("name", name) == name


@pytest.mark.parametrize(
    "path",
    [
        "https://github.com/acme/widgets",
        "git@github.com:acme/widgets",
        "/acme/widgets",
        "acme/widgets/",
        "acme//widgets",
        "acme",
        "",
        "acme/..",
        "acme/widgets.git",
        "acme/wid gets",
        "acme/wid\ngets",
        "acme/%2e%2e",
        "acme/-x",
        "acme\\widgets",
        "acme/widgets?x=1",
        "acme/widgets#frag",
        None,
        3,
    ],
)
def test_paths_that_no_host_shows_are_refused(path: object) -> None:
    """A URL, a slash too many, an empty part or a control character never reaches a host."""
    assert refused(lambda argument, value: checks.check_repo_path(value, argument), "repo", path)


@pytest.mark.parametrize("path", ["acme/widgets", "acme/platform/widgets", "a.b/c_d-e+f", "ünï/çode", "acme/.github"])
def test_good_paths_pass(path: str) -> None:
    """Nested groups, dots, dashes and letters of any script are allowed."""
    assert checks.check_repo_path(path) == path


def test_a_path_check_names_its_argument_first() -> None:
    """``check_repo_path`` takes the argument's name second, since it is nearly always ``repo``."""
    with pytest.raises(InvalidRequestError) as caught:
        checks.check_repo_path("nope")

    assert caught.value.argument == "repo"


@pytest.mark.parametrize(
    "path",
    ["/x", "x/", "a//b", "../x", "a/../b", "./a", ".git", "a/.GIT/config", "git~1/x", ".git /x", ".git.", "a\\b", "",
     "a\x00b", ".g\u200cit/x", "x" * 256, ".git::$INDEX_ALLOCATION"],
)  # fmt: skip
def test_paths_that_leave_the_tree_or_enter_dot_git_are_refused(path: str) -> None:
    """Absolute, escaping and .git paths, in every spelling that a file system folds to .git."""
    assert refused(checks.check_file_path, "path", path)


@pytest.mark.parametrize(
    "path", ["README.md", ".gitignore", ".github/x.yml", "a b/ü.txt", "..x", "x.git/y", "a#?%.txt"]
)
def test_good_file_paths_pass(path: str) -> None:
    """Names that only look dangerous are allowed."""
    assert checks.check_file_path("path", path) == path


def test_a_url_with_a_password_is_not_echoed() -> None:
    """The refusal of a URL must not repeat the credentials inside it."""
    with pytest.raises(InvalidRequestError) as caught:
        checks.check_repo_path("https://me:hunter22@github.com/acme/widgets")

    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (checks.check_bool, 1),
        (checks.check_bool, "false"),
        (checks.check_bool, None),
        (checks.check_seconds, -1),
        (checks.check_seconds, float("nan")),
        (checks.check_seconds, float("inf")),
        (checks.check_seconds, True),
        (checks.check_seconds, "3"),
        (checks.check_sha, "abc"),
        (checks.check_sha, "g" * 40),
        (checks.check_sha, "a" * 41),
        (checks.check_pull_request_branch, "fork:main"),
        (checks.check_source, "a..b"),
    ],
)
def test_wrong_values_are_refused(check: Callable[[str, Any], Any], value: object) -> None:
    """None, numbers and look-alikes do not pass for what they are not."""
    assert refused(check, "argument", value)


def test_a_sha_comes_back_in_lower_case() -> None:
    """Hosts and Git compare shas as text."""
    assert checks.check_sha("sha", "A" * 40) == "a" * 40
    assert checks.check_source("source", "B" * 64) == "b" * 64
    assert checks.check_source("source", "main") == "main"


@pytest.mark.parametrize("value", [0, 7, True, 1.0, "1"])
def test_ints_are_bounded_ints(value: object) -> None:
    """A bool or a float is no number of approvals."""
    assert refused(checks.check_int, "number", value, least=1, most=6)


def test_an_enum_takes_its_value_and_names_the_others() -> None:
    """A service may pass the text of its own request."""
    assert checks.check_enum("visibility", "public", Visibility) is Visibility.PUBLIC
    with pytest.raises(InvalidRequestError, match="public, private, internal"):
        checks.check_enum("visibility", "secret", Visibility)


def test_multiline_text_may_have_lines_only() -> None:
    """A commit message has line breaks and tabs, and no other control characters."""
    assert not refused(checks.check_text, "message", "a\n\tb\r\n", multiline=True)
    assert refused(checks.check_text, "message", "a\x1b[31m", multiline=True)
    assert refused(checks.check_text, "title", "a\nb")
    assert refused(checks.check_text, "title", "abc", limit=2)
