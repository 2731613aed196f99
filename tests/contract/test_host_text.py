"""What a host holds is returned, also where no caller may give such a name. It is never the caller's mistake."""

from __future__ import annotations

import dataclasses
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gitprovider import BranchProtection, InvalidRequestError, PutFile, resolve
from gitprovider.checks import host_text
from gitprovider.intent import Intent
from tests.support.hosts import KINDS, Host, Kind, given_project, host

REPO = "acme/widgets"
# Names that Git takes for a branch and for a file: control characters of Unicode, separators, marks, look-alikes of
# other names, and bytes that are not UTF-8.
NAMES = [
    b"next\xc2\x85line",
    "line\u2028separator".encode(),
    "turned\u202eback".encode(),
    "zero\u200bwidth".encode(),
    "replaced\ufffd".encode(),
    "no\u0378character".encode(),
    b"latin\xe9",
    b"\xff",
    b"\xfe",
    b"folder/\xc3\x28/name",
    b"refs/heads/again",
    b"0123456789" * 4,
    b"n" * 250,
]


@pytest.fixture(params=KINDS)
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    kind: Kind = request.param
    with host(kind, tmp_path / "forge") as made:
        given_project(made.forge, REPO)
        yield made


def _git(at: Host, *args: bytes, **options: Any) -> str:
    place = os.fsencode(at.forge.repo(REPO).git_dir)
    told: bytes = subprocess.run([b"git", b"-C", place, *args], capture_output=True, check=True, **options).stdout
    return told.decode()


def _set(at: Host, statement: str, *values: object) -> None:
    with sqlite3.connect(at.forge.root / "forge.sqlite3") as database:
        database.execute(statement, values)
    database.close()


def test_every_branch_is_listed_under_a_name_of_its_own(at: Host) -> None:
    """One branch that somebody pushed hides all branches, or two branches are told as one."""
    head = at.forge.head(REPO, "main").encode()
    for name in NAMES:
        _git(at, b"update-ref", b"refs/heads/" + name, head)

    listed = [branch.name for branch in at.provider.list_branches(REPO)]

    assert listed == sorted({"change", "later", "main", *map(host_text, NAMES)})
    assert all(name.encode() for name in listed)


def test_every_path_of_a_tree_is_listed_under_a_name_of_its_own(at: Host) -> None:
    """A path that is not UTF-8 makes the tree unreadable, or takes the place of another file."""
    # How GitHub and GitLab return a path that is not UTF-8 is not known.
    names = [
        name for name in NAMES if b"/" not in name and (at.kind == "local" or b"\\" not in host_text(name).encode())
    ]
    blobs = {name: _git(at, b"hash-object", b"-w", b"--stdin", input=name).strip() for name in names}
    lines = [b"100644 blob %s\t%s\0" % (sha.encode(), name) for name, sha in blobs.items()]
    tree = _git(at, b"mktree", b"-z", input=b"".join(lines)).strip()
    sha = at.forge.write_commit(REPO, tree=tree, parents=[], message="Odd names")
    at.forge.create_branch(REPO, "odd", sha)

    found = at.provider.tree(REPO, sha)

    assert {path: entry.sha for path, entry in found.items()} == {host_text(name): blob for name, blob in blobs.items()}


def test_a_file_is_committed_beside_odd_names(at: Host) -> None:
    """A name that somebody else committed stands in the way of everybody's commits."""
    blob = _git(at, b"hash-object", b"-w", b"--stdin", input=b"odd").strip().encode()
    tree = _git(at, b"mktree", b"-z", input=b"100644 blob %s\t\xff\0" % blob).strip()
    at.forge.create_branch(REPO, "odd", at.forge.write_commit(REPO, tree=tree, parents=[], message="Odd names"))

    made = at.provider.commit_files(REPO, "odd", [PutFile(path="\ufffd", content="mine")], message="Beside")

    assert set(at.forge.read_tree(REPO, made.sha)) == {"\\xff", "\ufffd"}


def test_a_default_branch_of_any_name_is_returned(at: Host) -> None:
    """A repository whose default branch has an odd name cannot be read at all."""
    for name in ("next\x85line", "line\u2028separator", "a..b", "0123456789" * 4):
        _set(at, "UPDATE repos SET default_branch = ?", name)

        assert at.provider.get_repo(REPO).default_branch == name


def test_texts_of_any_kind_are_returned(at: Host) -> None:
    """A title or description that another tool wrote makes a pull request or a repository unreadable."""
    for text in ("next\x85line", "\x1b[31mred", "two\nlines", "x" * 300, " spaced "):
        _set(at, "UPDATE pulls SET title = ?, source_branch = ?, description = ?", text, text, text)
        _set(at, "UPDATE repos SET description = ?", text)

        pull = at.provider.get_pull_request(REPO, 1)

        assert (pull.title, pull.source_branch, pull.description) == (text, text, text)
        assert at.provider.get_repo(REPO).description == text


def test_a_required_check_of_any_name_is_kept(at: Host) -> None:
    """A rule with an odd check cannot be read, or loses that check when it is tightened."""
    if at.kind == "gitlab":
        pytest.skip("GitLab's rules have no checks")
    for name in ("next\x85line", "two\nlines", "x" * 300):
        at.forge.put_rule(REPO, "main", BranchProtection(required_checks=(name,)))

        held = at.provider.protect_branch(REPO, "main", BranchProtection(required_approvals=1))
        assert held.required_checks == (name,)
        with pytest.raises(InvalidRequestError):
            at.provider.protect_branch(REPO, "main", BranchProtection(required_checks=(name,)))


def test_a_commit_of_any_encoding_is_returned(at: Host) -> None:
    """A commit that names an encoding which is wrong or unknown cannot be read, and nothing can be built on it."""
    plain = _git(at, b"cat-file", b"commit", b"main").encode()
    for encoding in (b"latin-1", b"nonsense", b"utf-8", b"utf-16", b"undefined", b"rot13", b"\xff"):
        raw = plain.replace(b"\n\n", b"\nencoding " + encoding + b"\n\n", 1).replace(b"Begin", b"B\xe9gin")
        sha = _git(at, b"hash-object", b"-t", b"commit", b"-w", b"--stdin", input=raw).strip()
        _git(at, b"update-ref", b"refs/heads/main", sha.encode())

        assert at.provider.commit(REPO, sha).message.strip()
        assert at.provider.commit_files(REPO, "main", [PutFile(path="x", content="x")], message="On it").parent == sha


def test_a_symbolic_branch_that_leads_nowhere_hides_no_other(at: Host) -> None:
    """Git ignores it, and the listing fails."""
    _git(at, b"symbolic-ref", b"refs/heads/dangling", b"refs/heads/deleted")

    assert [branch.name for branch in at.provider.list_branches(REPO)] == ["change", "later", "main"]


def test_an_odd_text_makes_one_readable_line(at: Host) -> None:
    """A host's text forges lines of a log, or moves the cursor of a terminal."""
    _set(at, "UPDATE pulls SET source_branch = ?, state = 'merged', merge_commit_sha = head_sha", "two\nlines\x1b[31m")
    at.provider.head = lambda repo, branch: "a" * 40  # type: ignore[method-assign]  # the branch is still there

    intent = Intent(
        operation="merge_pull_request", provider=at.provider.name, repo=REPO, number=1, delete_source_branch=True
    )
    found = resolve(at.provider, dataclasses.replace(intent, steps=("merge",)))

    assert "two lines" in found.detail
    assert found.detail.isprintable()


def test_a_caller_may_give_no_such_name(at: Host) -> None:
    """A name that some host would take and another refuse is passed on, and the caller learns it from the host."""
    at.forget()
    for name in ("next\x85line", "\udcff", "a\\xff", "two\nlines"):
        for ask in (
            partial(at.provider.create_branch, REPO, name, source="main"),
            partial(at.provider.create_branch, REPO, "new", source=name),
            partial(at.provider.head, REPO, name),
        ):
            with pytest.raises(InvalidRequestError):
                ask()
    assert at.sent() == []
