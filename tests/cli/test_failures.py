"""How a command fails: one line and a hint or one envelope, an exit code that says what kind, never a traceback."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gitprovider import (
    AlreadyExistsError,
    AuthenticationError,
    Branch,
    ConflictError,
    GitProviderError,
    HeadMovedError,
    Intent,
    InvalidRequestError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    RateLimitedError,
    RepoMovedError,
    RetryCancelledError,
    RetryOptions,
    Step,
    UnexpectedResponseError,
    UnsupportedOptionError,
    errors,
)
from gitprovider.cli import app, entry, exits, main
from gitprovider.cli.output import Output
from gitprovider.events import OperationEvent, RetryEvent
from gitprovider.local import LocalProvider
from tests.support.command_line import Ran, Run

ENVELOPE = {"type", "retryable", "number", *GitProviderError.attributes()}


class Failing:
    """A provider whose every call raises."""

    name = "github"

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __enter__(self) -> "Failing":
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def fail(*args: Any, **kwargs: Any) -> Any:
            raise self._error

        return fail


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    def failing(error: BaseException) -> None:
        monkeypatch.setattr(app, "connect", lambda *args, **kwargs: Failing(error))

    return failing


def test_a_missing_repository_is_an_envelope_and_exit_code_3(run: Run) -> None:
    """What a script that asks for a repository which is not there gets."""
    ran = run("--json", "get-repo", "acme/none")

    assert ran.code == 3
    assert set(ran.error) == ENVELOPE
    assert ran.error["type"] == "NotFoundError"
    assert (ran.error["provider"], ran.error["operation"], ran.error["repo"]) == ("local", "get_repo", "acme/none")
    assert (ran.error["outcome"], ran.error["intent"]) == ("not_applied", None)
    assert ran.err == "error: local get_repo acme/none: there is no repository acme/none\n"


@pytest.mark.parametrize("data", ["data", None])
def test_without_a_folder_the_forge_is_the_user_s_own(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, data: str | None
) -> None:
    """No option and no variable is needed: the forge is where a user's data is, and looking makes nothing there."""
    monkeypatch.delenv("GITPROVIDER_ROOT")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / data) if data else "not/absolute")
    home = tmp_path / data if data else tmp_path / "me/.local/share"

    assert run("--json", "get-repo", "acme/none").code == 3
    assert not home.exists()
    assert run("create-repo", "acme/one").code == 0
    assert (home / "gitprovider/repositories/acme/one.git").is_dir()


def test_without_json_a_failure_is_a_line_on_standard_error(run: Run) -> None:
    """Standard output stays empty, so that a pipe gets nothing that looks like a result."""
    ran = run("get-repo", "acme/none")

    assert ran.out == ""
    assert ran.err.startswith("error: local get_repo acme/none: ")
    assert ran.err.count("\n") == 1


def test_an_invalid_argument_is_exit_code_2(run: Run) -> None:
    """What the contract refuses before any request is as if the parser had refused it."""
    ran = run("--json", "get-repo", "acme")

    assert (ran.code, ran.error["type"]) == (2, "InvalidRequestError")


def test_an_existing_repository_is_exit_code_5(run: Run, widgets: LocalProvider) -> None:
    """A name that is taken is told apart from a bad request; the intent of a failed mutation comes along."""
    ran = run("--json", "create-repo", "acme/widgets")

    assert (ran.code, ran.error["type"]) == (5, "AlreadyExistsError")
    assert ran.error["intent"]["operation"] == "create_repo"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidRequestError("x"), 2),
        (UnsupportedOptionError("x", option="create_repo.auto_init"), 2),
        (NotFoundError("x"), 3),
        (RepoMovedError("x", moved_to="a/b"), 3),
        (AuthenticationError("x"), 4),
        (PermissionDeniedError("x"), 4),
        (AlreadyExistsError("x"), 5),
        (ConflictError("x"), 5),
        (HeadMovedError("x"), 5),
        (NotMergeableError("x", reason=NotMergeableReason.CHECKS), 5),
        (RateLimitedError("x"), 6),
        (ProviderUnavailableError("x"), 7),
        (UnexpectedResponseError("x"), 7),
        (GitProviderError("x"), 7),
        (RetryCancelledError("x"), 130),
        (ProviderUnavailableError("x", outcome=Outcome.UNKNOWN), 8),
        (HeadMovedError("x", outcome=Outcome.PARTIAL), 8),
    ],
)  # fmt: skip
def test_the_exit_code_says_what_kind_of_failure(
    run: Run, failing: Callable[[BaseException], None], error: GitProviderError, code: int
) -> None:
    """Each kind has its code, and what may have been applied has 8 whatever its kind."""
    failing(error)

    assert run("get-repo", "acme/widgets").code == code


def test_every_class_of_error_has_an_exit_code() -> None:
    """A class that is added without thinking of scripts fails here."""
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, GitProviderError)}

    assert {kind for kind in kinds if not any(issubclass(kind, known) for known, _ in exits._CODES)} == {
        GitProviderError
    }


def test_a_lost_answer_tells_how_to_find_out(run: Run, failing: Callable[[BaseException], None]) -> None:
    """With an outcome that is not NOT_APPLIED, people are told to look first and by which command."""
    failing(ProviderUnavailableError("the connection to the host was lost", outcome=Outcome.UNKNOWN))

    ran = run("create-repo", "acme/widgets")

    assert "(outcome unknown: do not repeat)\nnext: " in ran.err
    assert "gitprovider resolve" in ran.err
    assert run("--json", "create-repo", "acme/widgets").err.count("\n") == 1


def test_what_was_completed_is_in_both_forms(run: Run, failing: Callable[[BaseException], None]) -> None:
    """A partial failure names what was done, to people and to scripts."""
    branch = Branch(name="x", sha="a" * 40)
    failing(PermissionDeniedError("x", outcome=Outcome.PARTIAL, completed=(Step("create branch", branch),)))

    assert "(outcome partial after create branch: do not repeat)" in run("get-repo", "a/b").err
    assert run("--json", "get-repo", "a/b").error["completed"] == [
        {"name": "create branch", "value": {"name": "x", "sha": "a" * 40, "protected": None}}
    ]


def test_a_document_says_why(run: Run, failing: Callable[[BaseException], None]) -> None:
    """A script has to guess from the text why a pull request is not merged."""
    failing(NotMergeableError("x", reason=NotMergeableReason.CHECKS))

    assert run("--json", "merge-pull-request", "a/b", "1").error["reason"] == "checks"


def test_attempts_and_the_wait_asked_for_are_told(run: Run, failing: Callable[[BaseException], None]) -> None:
    """A read that failed for good says how often it was tried and how long the host asked to wait."""
    failing(RateLimitedError("slow down", attempts=4, retry_after=3600.0))

    ran = run("get-repo", "a/b")

    assert "(tried 4 times)" in ran.err
    assert "hint: the host asked to wait 3600 s" in ran.err


@pytest.mark.parametrize(
    "args",
    [
        (), ("nonsense",), ("get-repo",), ("get-repo", "a/b", "c"), ("--nonsense",),
        ("merge-pull-request", "a/b", "one"),
        ("--retries", "-1", "get-repo", "a/b"), ("--provider", "svn", "get-repo", "a/b"),
        ("--timeout", "0", "get-repo", "a/b"), ("--url", "https://h.example", "get-repo", "a/b"),
        ("create-branch", "a/b", "x"),
    ],
)  # fmt: skip
def test_a_command_that_is_not_understood_is_exit_code_2(run: Run, args: tuple[str, ...]) -> None:
    """Usage errors have the form of every other failure, with --json too."""
    plain = run(*args)
    assert (plain.code, plain.out) == (2, "")
    assert plain.err.startswith("error: ")
    assert len(plain.err.splitlines()) <= 2

    ran = run(*args, "--json")
    assert ran.code == 2
    assert ran.document.keys() == {"error"}


def test_the_root_is_for_the_local_forge_alone(run: Run) -> None:
    """An option that a provider has no use for is refused, not ignored."""
    ran = run("--provider", "github", "--root", "x", "get-repo", "a/b")

    assert (ran.code, ran.out) == (2, "")
    assert "--root is for the local forge" in ran.err


@pytest.mark.parametrize(
    ("options", "passed"),
    [
        (("--provider", "local", "--root", "r", "--timeout", "7"), {"root": "r", "timeout": 7, "retry": None}),
        (("--provider", "github", "--url", "u", "--timeout", "7", "--retries", "0"),
         {"url": "u", "timeout": 7, "retry": RetryOptions(max_attempts=1)}),
        (("--provider", "gitlab"), {"url": None, "timeout": None, "retry": RetryOptions()}),
    ],
)  # fmt: skip
def test_global_options_reach_the_provider(
    run: Run, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], passed: dict[str, Any]
) -> None:
    """What is given before the command is how the provider is built; what is not given is left to it."""
    built: list[dict[str, Any]] = []

    def connect(name: str, **arguments: Any) -> Failing:
        built.append({"name": name, **arguments})
        return Failing(NotFoundError("x"))

    monkeypatch.setattr(app, "connect", connect)

    run(*options, "get-repo", "a/b")

    assert {name: built[0][name] for name in passed} == passed
    assert built[0]["name"] == options[1]


def test_help_is_no_failure(run: Run) -> None:
    """--help prints and exits 0."""
    assert run("--help").code == 0


def test_the_version_is_the_package_s(run: Run) -> None:
    """--version prints it alone."""
    assert run("--version").out.strip().count(".") == 2


def test_no_token_of_the_environment_is_printed(
    run: Run, failing: Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that echoes a token, or a URL with a password, has it masked in every form of output."""
    monkeypatch.setenv("GITPROVIDER_TOKEN", "plain-s3cr3t-word")
    failing(ConflictError("plain-s3cr3t-word at https://u:pw-s3cr3t@host/x", hint="see plain-s3cr3t-word"))

    for ran in (run("get-repo", "a/b"), run("--json", "get-repo", "a/b")):
        assert "s3cr3t" not in ran.out + ran.err
        assert "***" in ran.out + ran.err


def test_a_host_cannot_move_the_terminal_s_cursor(run: Run, failing: Callable[[BaseException], None]) -> None:
    """Control characters, bidirectional overrides and line breaks in what a host sent are not printed as such."""
    failing(ConflictError("\x1b[2J\x1b]0;owned\x07 \u202e x\r\n y \x9b1m"))

    plain, ran = run("get-repo", "a/b"), run("--json", "get-repo", "a/b")

    assert plain.err == "error: [2J ]0;owned x y 1m\n"
    assert ran.out.isascii()
    assert not {"\x1b", "\x07", "\r"} & set(ran.out)


def test_a_bug_is_one_line_too(run: Run, failing: Callable[[BaseException], None]) -> None:
    """An exception that nobody foresaw has its own exit code, a line and a hint, and no traceback."""
    failing(ZeroDivisionError("by \x1b[2J zero"))

    plain, ran = run("get-repo", "a/b"), run("--json", "get-repo", "a/b")

    assert (plain.code, ran.code) == (1, 1)
    assert plain.err.startswith("error: ZeroDivisionError: by [2J zero\n")
    assert "bug" in plain.err
    assert "Traceback" not in plain.err
    assert (ran.error["type"], set(ran.error)) == ("InternalError", ENVELOPE)


def test_an_interrupt_is_exit_code_130_and_carries_the_evidence(
    run: Run, failing: Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl+C while a mutation's answer is awaited says that its outcome is unknown, with the intent for resolve."""
    intent = Intent(operation="create_repo", provider="github", repo="a/b", sent_at=datetime(2026, 1, 1, tzinfo=UTC))
    ended = OperationEvent(
        operation="create_repo", provider="github", host="github.com", repo="a/b", duration=1.0, requests=1,
        error="KeyboardInterrupt", outcome=Outcome.UNKNOWN, intent=intent,
    )  # fmt: skip
    monkeypatch.setattr(app.App, "repository", _interrupted_by(ended))

    ran = run("--json", "create-repo", "a/b")

    assert (ran.code, ran.error["type"], ran.error["outcome"]) == (130, "Interrupted", "unknown")
    assert Intent.from_json(ran.error["intent"]) == intent


def _interrupted_by(event: OperationEvent) -> Any:
    def repository(self: app.App, given: str | None) -> Any:
        self.out.on_event(event)
        raise KeyboardInterrupt

    return repository


def test_an_interrupt_between_operations_is_applied_to_none(run: Run, failing: Callable[[BaseException], None]) -> None:
    """Ctrl+C outside an operation claims nothing of one that ended before."""
    failing(KeyboardInterrupt())

    ran = run("--json", "get-repo", "a/b")

    assert (ran.code, ran.error["outcome"], ran.error["operation"]) == (130, "not_applied", None)


def test_an_interrupt_while_the_program_loads_is_exit_code_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl+C before there is any command to interrupt prints nothing."""

    def interrupted(args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "run", interrupted)

    assert run("get-repo", "a/b") == Ran(130, "", "")


def test_retries_are_told_on_standard_error(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who waits in a pipe is told why; with --json nothing is said beside the document."""
    event = RetryEvent(
        operation="get_repo",
        provider="github",
        host="h",
        repo="a/b",
        attempt=1,
        wait=0.25,
        error="ProviderUnavailableError",
    )
    said = Output()
    said.on_event(event)
    assert capsys.readouterr().err == "get_repo: ProviderUnavailableError; attempt 2 in 0.2 s\n"

    said.as_json = True
    said.on_event(event)
    assert capsys.readouterr() == ("", "")


def test_no_option_of_a_command_hides_a_global_one() -> None:
    """A command's parameter must not share the name that a global option is stored by."""
    for command in entry.cli.commands.values():
        names = [param.name for param in command.params]
        assert len(names) == len(set(names)), command.name


def test_resolve_takes_what_a_failed_command_printed(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """The envelope, kept in a file, is the answer's question."""
    failed = run("--json", "create-repo", "acme/widgets")
    (tmp_path / "failed.json").write_text(failed.out)

    ran = run("--json", "resolve", "failed.json")

    assert (ran.code, ran.document["verdict"]) == (9, "not_applied")


def test_main_reads_the_process_s_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without arguments, main takes those of the process."""
    monkeypatch.setattr("sys.argv", ["gitprovider", "--json", "get-repo", "acme/none"])

    assert main() == 3
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "NotFoundError"
