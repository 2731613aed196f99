"""Help, examples and completion: what a person sees before the first command works."""

import runpy
import shlex

import pytest
from click.shell_completion import get_completion_class

from gitprovider.cli.app import App
from gitprovider.cli.entry import cli
from gitprovider.cli.output import Output
from tests.support.command_line import Run

COMMANDS = [None, *cli.commands]


def examples(name: str | None) -> list[str]:
    command = cli if name is None else cli.commands[name]
    return [line.strip() for line in (command.epilog or "").splitlines() if line.strip().startswith("gitprovider ")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples_that_are_understood(run: Run, name: str | None) -> None:
    """Somebody copies an example, and the command line refuses it."""
    ran = run(*([] if name is None else [name]), "--help")

    assert examples(name)
    for example in examples(name):
        assert example in ran.out
        words = shlex.split(example.partition(" | ")[0].partition(" > ")[0].partition(" < ")[0])
        with cli.make_context("gitprovider", words[1:], obj=App(Output())) as ctx:
            command, called, args = cli.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
            assert called is not None
            assert name in (None, command)
            called.make_context(command, args, parent=ctx).close()


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_completion_prints_what_the_shell_runs(run: Run, shell: str) -> None:
    """A shell that evaluates the output complains about it, or completes another command."""
    ran = run("completion", shell)

    assert ran.code == 0
    assert "_GITPROVIDER_COMPLETE" in ran.out
    assert f"{shell}_complete" in ran.out
    assert run("--json", "completion", shell).document["script"] == ran.out.removesuffix("\n")


def test_a_shell_that_completes_gets_the_commands(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script is installed, and Tab shows nothing."""
    assert get_completion_class("bash") is not None
    monkeypatch.setenv("_GITPROVIDER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "gitprovider --provider local list-")
    monkeypatch.setenv("COMP_CWORD", "3")

    ran = run()

    assert (ran.code, ran.out.split()) == (0, ["plain,list-branches", "plain,list-pull-requests"])


def test_the_module_is_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """python -m gitprovider, where no script is on the path, says that the package cannot be executed."""
    monkeypatch.setattr("sys.argv", ["gitprovider", "--version"])

    with pytest.raises(SystemExit) as ended:
        runpy.run_module("gitprovider", run_name="__main__")

    assert ended.value.code == 0
    assert capsys.readouterr().out.strip()
