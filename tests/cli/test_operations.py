"""The eight commands: what they do on the host, and what they print."""

import io
from pathlib import Path

import pytest

from gitprovider import BranchProtection, MergeMethod, Visibility
from gitprovider.local import LocalProvider
from tests.support.command_line import Run


def test_get_repo_prints_a_line_for_each_field(run: Run, widgets: LocalProvider) -> None:
    """In a pipe a value is one line a field, name and content parted by a tab."""
    ran = run("get-repo", "acme/widgets")

    assert ran.code == 0
    assert "path\tacme/widgets\n" in ran.out
    assert "visibility\tprivate\n" in ran.out


def test_get_repo_with_json_is_the_value(run: Run, widgets: LocalProvider) -> None:
    """With --json standard output is the value, and standard error is silent."""
    ran = run("--json", "get-repo", "acme/widgets")

    assert ran.document["path"] == "acme/widgets"
    assert ran.document["default_branch"] == "main"
    assert ran.err == ""


def test_global_options_may_follow_the_command(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """What is typed last counts as if it had been typed first."""
    ran = run("get-repo", "acme/widgets", "--json", "--root", str(tmp_path / "forge"), "--provider", "local")

    assert ran.document["path"] == "acme/widgets"


def test_list_branches_prints_name_head_and_protection(run: Run, widgets: LocalProvider) -> None:
    """One line a branch, sorted by name, for cut and awk."""
    head = widgets.head("acme/widgets", "main")
    widgets.create_branch("acme/widgets", "develop", source=head)
    widgets.protect_branch("acme/widgets", "main")

    ran = run("list-branches", "acme/widgets")

    assert ran.out == f"develop\t{head}\t\nmain\t{head}\tprotected\n"


def test_list_branches_with_json_is_a_list(run: Run, widgets: LocalProvider) -> None:
    """With --json a list is a list, of whole values."""
    ran = run("--json", "list-branches", "acme/widgets")

    assert [branch["name"] for branch in ran.document] == ["main"]


def test_create_repo_passes_its_options_on(run: Run, local: LocalProvider) -> None:
    """Description, visibility and first commit are what was asked."""
    run("create-repo", "acme/new", "--description", "Nice", "--visibility", "public", "--auto-init")

    made = local.get_repo("acme/new")
    assert (made.description, made.visibility) == ("Nice", Visibility.PUBLIC)
    assert [branch.name for branch in local.list_branches("acme/new")] == ["main"]


def test_create_branch_starts_at_its_source(run: Run, widgets: LocalProvider) -> None:
    """NAME begins at --source."""
    ran = run("--json", "create-branch", "acme/widgets", "feature/x", "--source", "main")

    assert ran.document["sha"] == widgets.head("acme/widgets", "main")


def test_protect_branch_asks_for_each_field(run: Run, widgets: LocalProvider) -> None:
    """Every option of the command reaches the rule, and what holds is printed."""
    ran = run(
        "--json", "protect-branch", "acme/widgets", "main", "--required-approvals", "2", "--required-check", "ci",
        "--required-check", "lint", "--dismiss-stale-approvals", "--require-linear-history", "--enforce-admins",
        "--block-deletion", "--no-block-force-push",
    )  # fmt: skip

    assert ran.document["required_checks"] == ["ci", "lint"]
    assert widgets.protection("acme/widgets", "main") == BranchProtection(
        required_approvals=2,
        required_checks=("ci", "lint"),
        dismiss_stale_approvals=True,
        require_linear_history=True,
        enforce_admins=True,
        block_deletion=True,
        block_force_push=False,
    )


def test_protect_branch_can_leave_direct_commits_open(run: Run, widgets: LocalProvider) -> None:
    """--no-require-pull-request asks for no pull requests."""
    run("protect-branch", "acme/widgets", "main", "--no-require-pull-request")

    assert widgets.protection("acme/widgets", "main") == BranchProtection(require_pull_request=False)


def test_commit_files_puts_deletes_moves_and_sets_modes(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """All kinds of changes go into one commit, byte for byte."""
    (tmp_path / "logo").write_bytes(b"\x89PNG\r\n\x00")
    (tmp_path / "tool").write_bytes(b"#!/bin/sh\n")
    run("commit-files", "acme/widgets", "main", "-m", "One", "--put", "old.png=logo", "--put", "gone=logo")

    ran = run(
        "--json", "commit-files", "acme/widgets", "main", "--message", "Two", "--put", "bin/tool=tool",
        "--executable", "bin/tool", "--delete", "gone", "--move", "old.png=new.png",
        "--author", "Ada Lovelace <ada@example.org>",
    )  # fmt: skip

    tree = widgets.tree("acme/widgets", ran.document["sha"])
    assert sorted(tree) == ["README.md", "bin/tool", "new.png"]
    assert tree["bin/tool"].mode == "100755"
    assert widgets.forge.read_blob("acme/widgets", tree["new.png"].sha) == b"\x89PNG\r\n\x00"
    assert widgets.forge.read_commit("acme/widgets", ran.document["sha"]).author_name == "Ada Lovelace"


def test_commit_files_can_clear_the_executable_bit(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """--not-executable sets the plain mode; without either the mode is kept."""
    (tmp_path / "tool").write_bytes(b"x")
    run("commit-files", "acme/widgets", "main", "-m", "1", "--put", "tool=tool", "--executable", "tool")

    ran = run(
        "--json", "commit-files", "acme/widgets", "main", "-m", "2", "--put", "tool=tool", "--not-executable", "tool"
    )

    assert widgets.tree("acme/widgets", ran.document["sha"])["tool"].mode == "100644"


def test_commit_files_pins_the_head(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """--expected-head that is not the head is a conflict, and nothing is committed."""
    (tmp_path / "f").write_text("x")
    head = widgets.head("acme/widgets", "main")

    ran = run("--json", "commit-files", "acme/widgets", "main", "-m", "1", "--put", "f=f", "--expected-head", "0" * 40)

    assert (ran.code, ran.error["type"]) == (5, "HeadMovedError")
    assert widgets.head("acme/widgets", "main") == head


@pytest.mark.parametrize(
    "args",
    [
        ("--put", "nofile"), ("--put", "=x"), ("--put", "x="), ("--move", "a"), ("--executable", "x"),
        ("--put", "x=f", "--executable", "x", "--not-executable", "x"),
        ("--put", "f=f", "--author", "nobody"), ("--put", "f=missing"), ("--put", "../f=f"), (),
    ],
)  # fmt: skip
def test_commit_files_refuses_what_it_cannot_read(
    run: Run, widgets: LocalProvider, tmp_path: Path, args: tuple[str, ...]
) -> None:
    """A change that is badly written is a usage error before anything is committed."""
    (tmp_path / "f").write_text("x")

    ran = run("commit-files", "acme/widgets", "main", "-m", "1", *args)

    assert ran.code == 2
    assert ran.err.startswith("error: ")


def test_a_pull_request_is_opened_and_merged(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """The two commands carry every option: title, draft, labels, method, head, message and deletion."""
    (tmp_path / "f").write_text("x")
    run("create-branch", "acme/widgets", "topic", "--source", "main")
    head = run("--json", "commit-files", "acme/widgets", "topic", "-m", "1", "--put", "f=f").document["sha"]

    opened = run(
        "--json", "open-pull-request", "acme/widgets", "--source-branch", "topic", "--target-branch", "main",
        "--title", "A change", "--description", "Why", "--label", "one", "--label", "two", "--reviewer", "ada",
    )  # fmt: skip
    merged = run(
        "--json", "merge-pull-request", "acme/widgets", str(opened.document["number"]), "--method", "squash",
        "--expected-head", head, "-m", "Squashed", "--delete-source-branch", "--wait", "5",
    )  # fmt: skip

    assert merged.code == 0, merged.out
    record = widgets.forge.pull_request("acme/widgets", 1)
    assert (record.title, record.labels, record.reviewers) == ("A change", ("one", "two"), ("ada",))
    assert widgets.forge.read_commit("acme/widgets", merged.document["sha"]).message.strip() == "Squashed"
    assert [branch.name for branch in widgets.list_branches("acme/widgets")] == ["main"]


def test_pull_requests_are_shown_and_listed(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """Whoever opened a pull request on the command line has to use a browser to see what became of it."""
    run("create-branch", "acme/widgets", "topic", "--source", "main")
    (tmp_path / "f").write_text("x")
    run("commit-files", "acme/widgets", "topic", "-m", "1", "--put", "f=f")
    widgets.open_pull_request("acme/widgets", source_branch="topic", target_branch="main", title="A change")
    head = widgets.head("acme/widgets", "topic")
    listing = ("list-pull-requests", "acme/widgets", "--source-branch", "topic")

    assert "title\tA change\n" in run("view-pull-request", "acme/widgets", "1").out
    assert run(*listing).out == f"1\topen\tA change\t{head}\n"
    assert [pull["number"] for pull in run("--json", *listing, "--target-branch", "main").document] == [1]
    assert run("--json", *listing, "--state", "merged").document == []
    assert run("view-pull-request", "acme/widgets", "2").code == 3


def test_a_description_may_come_from_a_file_or_a_pipe(
    run: Run, widgets: LocalProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A description of several lines has to be quoted for the shell."""
    (tmp_path / "body.md").write_bytes("Zeile 1\nGröße\n".encode())
    (tmp_path / "latin1").write_bytes(b"Gr\xf6\xdfe")
    (tmp_path / "f").write_text("x")
    command = ("open-pull-request", "acme/widgets", "--target-branch", "main", "--title", "T", "--json")
    for topic in ("one", "two"):
        run("create-branch", "acme/widgets", topic, "--source", "main")
        run("commit-files", "acme/widgets", topic, "-m", "1", "--put", "f=f")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("aus der Röhre\n".encode()), encoding="ascii"))

    from_file = run(*command, "--source-branch", "one", "--body-file", "body.md")
    from_pipe = run(*command, "--source-branch", "two", "--body-file", "-")

    assert from_file.document["description"] == "Zeile 1\nGröße\n"
    assert from_pipe.document["description"] == "aus der Röhre\n"
    for wrong in (("body.md", "--description", "x"), ("latin1",), ("none",)):
        assert run(*command, "--source-branch", "one", "--body-file", *wrong).code == 2


def test_a_draft_is_opened_as_one(run: Run, widgets: LocalProvider, tmp_path: Path) -> None:
    """--draft reaches the host, and merging it is refused with the reason in the text."""
    (tmp_path / "f").write_text("x")
    run("create-branch", "acme/widgets", "topic", "--source", "main")
    run("commit-files", "acme/widgets", "topic", "-m", "1", "--put", "f=f")

    opened = run(
        "--json", "open-pull-request", "acme/widgets", "--source-branch", "topic", "--target-branch", "main",
        "--title", "A change", "--draft",
    )  # fmt: skip

    assert opened.document["draft"] is True
    assert run("merge-pull-request", "acme/widgets", "1").code == 5


@pytest.mark.parametrize("method", [method.value for method in MergeMethod])
def test_merge_offers_every_method(run: Run, method: str) -> None:
    """Each method of the contract is a value of --method: the refusal is the host's, not the parser's."""
    assert run("merge-pull-request", "acme/none", "1", "--method", method).code == 3
