"""Cases for commit_files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitprovider.errors import (
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
)
from gitprovider.models import Author, BranchProtection, DeleteFile, FileChange, MoveFile, PutFile
from gitprovider.testing._assertions import attempt, invalid, mutations, raised, refused, same_bytes, unsupported
from gitprovider.testing._inputs import BAD_BRANCHES, BAD_SHAS, SHA_LIKE
from gitprovider.testing.rig import File, Rig

_CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "text": b"one\ntwo\n",
    "no-final-newline": b"one",
    "crlf": b"one\r\ntwo\r\n",
    "mixed-line-ends": b"one\r\ntwo\nthree\rfour",
    "blank-lines": b"\n\n\n",
    "trailing-spaces": b"one  \n\t\n",
    "utf-8": "grüße, 日本語, \U0001f680\n".encode(),
    "byte-order-mark": b"\xef\xbb\xbfone\n",
    "latin-1": "grüße".encode("latin-1"),
    "utf-16": "grüße".encode("utf-16"),
    "nul": b"a\0b",
    "every-byte": bytes(range(256)) * 5,
    "looks-like-base64": b"aGVsbG8=",
    "looks-like-json": b'{"content": "x", "encoding": "base64"}',
}

_PATHS = (
    "a.txt",
    "deep/er/and/deep/er/a.txt",
    "with space.txt",
    "hash#mark?query&and=so+on%2F.txt",
    "grüße/日本語.txt",
    "e\u0301.txt",
    ".github/workflows/ci.yml",
    ".gitignore",
    "-dash",
    "'quotes'\"both\"",
    "a:b|c*d<e>f",
    "{braces}/[brackets]/~tilde^",
    "UPPER/lower",
    "n" * 200,
)


class CommitFilesCases:
    """commit_files: contents, modes and what a commit is."""

    def test_commit_files_a_commit_adds_a_file(self, rig: Rig) -> None:
        """The branch moves by one commit on its old head, and the value is that commit."""
        repo = rig.given_repo({"old.txt": b"old\n"})
        before = rig.branches(repo)["main"]

        value = rig.provider.commit_files(
            repo, "main", [PutFile(path="new.txt", content=b"new\n")], message="Add new.txt"
        )

        assert rig.files(repo, "main") == {"old.txt": File(b"old\n"), "new.txt": File(b"new\n")}
        assert rig.branches(repo)["main"] == value.sha
        assert (value.parent, value.branch, value.message) == (before, "main", "Add new.txt")
        history = rig.history(repo, "main")
        assert [c.sha for c in history][:2] == [value.sha, before]
        assert history[0].parents == (before,)
        assert history[0].message == "Add new.txt"

    def test_commit_files_a_put_replaces_what_is_there(self, rig: Rig) -> None:
        """PutFile creates or replaces a file."""
        repo = rig.given_repo({"a.txt": b"old\n", "b.txt": b"b\n"})

        rig.provider.commit_files(repo, "main", [PutFile(path="a.txt", content="new\n")], message="Replace")

        assert rig.files(repo, "main") == {"a.txt": File(b"new\n"), "b.txt": File(b"b\n")}

    @pytest.mark.parametrize("content", _CONTENTS.values(), ids=_CONTENTS.keys())
    def test_commit_files_content_is_written_byte_for_byte(self, rig: Rig, content: bytes) -> None:
        """No content is decoded, normalised, trimmed or completed, in a new file or a replaced one."""
        repo = rig.given_repo({"old": b"other"})

        rig.provider.commit_files(
            repo,
            "main",
            [PutFile(path="new", content=content), PutFile(path="old", content=content)],
            message="Write",
        )

        assert rig.files(repo, "main") == {"new": File(content), "old": File(content)}

    def test_commit_files_git_attributes_change_no_bytes(self, rig: Rig) -> None:
        """A repository's line-ending rules apply to work trees; blobs are written unchanged."""
        repo = rig.given_repo({".gitattributes": b"* text=auto eol=crlf\n*.lf text eol=lf\n"})

        rig.provider.commit_files(
            repo,
            "main",
            [PutFile(path="a.txt", content=b"a\r\nb\n"), PutFile(path="b.lf", content=b"a\r\nb\r\n")],
            message="Write",
        )

        files = rig.files(repo, "main")
        assert files["a.txt"].content == b"a\r\nb\n"
        assert files["b.lf"].content == b"a\r\nb\r\n"

    def test_commit_files_a_str_is_written_as_utf_8(self, rig: Rig) -> None:
        """A str is encoded as UTF-8, and its line endings are kept."""
        repo = rig.given_repo()

        rig.provider.commit_files(repo, "main", [PutFile(path="a", content="grüße\r\n\U0001f680")], message="Write")

        assert rig.files(repo, "main")["a"] == File("grüße\r\n\U0001f680".encode())

    def test_commit_files_a_path_is_read_at_the_call(self, rig: Rig, tmp_path: Path) -> None:
        """A file given by path is read when the call is made."""
        repo = rig.given_repo()
        source = tmp_path / "source.bin"
        source.write_bytes(b"before")
        change = PutFile(path="a.bin", content=source)
        source.write_bytes(b"\0at the call\r\n")

        rig.provider.commit_files(repo, "main", [change], message="Write")

        assert rig.files(repo, "main")["a.bin"] == File(b"\0at the call\r\n")

    @pytest.mark.parametrize("path", _PATHS)
    def test_commit_files_any_sane_path_is_written_as_it_is(self, rig: Rig, path: str) -> None:
        """A path is put, moved and deleted under exactly its name."""
        repo = rig.given_repo({"keep": b"keep"})

        rig.provider.commit_files(repo, "main", [PutFile(path=path, content="1")], message="Put")
        assert set(rig.files(repo, "main")) == {"keep", path}
        rig.provider.commit_files(repo, "main", [MoveFile(path=path, to=f"moved/{path}")], message="Move")
        assert set(rig.files(repo, "main")) == {"keep", f"moved/{path}"}
        rig.provider.commit_files(repo, "main", [DeleteFile(path=f"moved/{path}")], message="Delete")
        assert set(rig.files(repo, "main")) == {"keep"}

    def test_commit_files_a_large_binary_file(self, rig: Rig) -> None:
        """A file of 5 MB that is not text is written."""
        repo = rig.given_repo()
        content = (bytes(range(256)) * 20_000)[:5_000_000]

        rig.provider.commit_files(repo, "main", [PutFile(path="large.bin", content=content)], message="Large")

        same_bytes(rig.files(repo, "main")["large.bin"].content, content)

    def test_commit_files_many_files_are_one_commit(self, rig: Rig) -> None:
        """300 files, text and binary, executable and not, are one commit."""
        repo = rig.given_repo({"old.txt": b"old\n"})
        before = rig.branches(repo)["main"]
        wanted = {
            f"dir{i % 7}/file{i:03}": File(
                b"\xff\0%d" % i if i % 100 == 0 else b"file %d\n" % i, "100755" if i % 10 == 0 else "100644"
            )
            for i in range(300)
        }

        value = rig.provider.commit_files(
            repo,
            "main",
            [
                PutFile(path=path, content=file.content, executable=file.mode == "100755")
                for path, file in wanted.items()
            ],
            message="Three hundred",
        )

        assert value.parent == before
        assert rig.branches(repo)["main"] == value.sha
        assert rig.files(repo, "main") == {"old.txt": File(b"old\n"), **wanted}

    def test_commit_files_many_deletes_and_moves_are_one_commit(self, rig: Rig) -> None:
        """120 moves and 120 deletes are one commit."""
        repo = rig.given_repo({f"d/{i:03}": b"%d" % i for i in range(250)})
        changes: list[FileChange] = [MoveFile(path=f"d/{i:03}", to=f"moved/{i:03}") for i in range(120)]
        changes += [DeleteFile(path=f"d/{i:03}") for i in range(120, 240)]

        rig.provider.commit_files(repo, "main", changes, message="Tidy")

        assert set(rig.files(repo, "main")) == {
            *(f"moved/{i:03}" for i in range(120)),
            *(f"d/{i:03}" for i in range(240, 250)),
        }
        assert len(rig.history(repo, "main")) == 2

    def test_commit_files_every_kind_of_change_in_one_commit(self, rig: Rig) -> None:
        """A put, a replacement, a delete and a move are one commit, and other files are unchanged."""
        repo = rig.given_repo({"a": b"a", "b": b"b", "c": b"c", "d/e": b"e"})
        before = rig.branches(repo)["main"]

        value = rig.provider.commit_files(
            repo,
            "main",
            [
                PutFile(path="new", content="new"),
                PutFile(path="a", content="A"),
                DeleteFile(path="b"),
                MoveFile(path="c", to="x/y/c"),
            ],
            message="All",
        )

        assert rig.files(repo, "main") == {
            "new": File(b"new"),
            "a": File(b"A"),
            "x/y/c": File(b"c"),
            "d/e": File(b"e"),
        }
        assert value.parent == before

    def test_commit_files_an_executable_bit_is_set_and_taken(self, rig: Rig) -> None:
        """True sets 100755 and False 100644, for new files, replaced files, and if only the mode changes."""
        repo = rig.given_repo({"on": b"on", "off": File(b"off", "100755"), "same": b"same"})
        if not rig.supports("commit_files.executable"):
            change = PutFile(path="a", content="a", executable=True)
            unsupported(
                rig, "commit_files.executable", rig.provider.commit_files, repo, "main", [change], message="Modes"
            )
            return

        rig.provider.commit_files(
            repo,
            "main",
            [
                PutFile(path="new", content="new", executable=True),
                PutFile(path="on", content="on", executable=True),
                PutFile(path="off", content="changed", executable=False),
                PutFile(path="bin", content=b"\0\xff", executable=True),
            ],
            message="Modes",
        )

        assert rig.files(repo, "main") == {
            "new": File(b"new", "100755"),
            "on": File(b"on", "100755"),
            "off": File(b"changed"),
            "bin": File(b"\0\xff", "100755"),
            "same": File(b"same"),
        }

    def test_commit_files_an_executable_bit_is_kept(self, rig: Rig) -> None:
        """None keeps a file's mode, and a new file is not executable."""
        repo = rig.given_repo({"run": File(b"old", "100755"), "text": b"old"})

        rig.provider.commit_files(
            repo,
            "main",
            [PutFile(path=path, content="new") for path in ("run", "text", "fresh")],
            message="Content only",
        )

        modes = {path: file.mode for path, file in rig.files(repo, "main").items()}
        assert modes == {"run": "100755", "text": "100644", "fresh": "100644"}

    def test_commit_files_a_move_keeps_content_and_mode(self, rig: Rig) -> None:
        """A move keeps the content and mode of a binary, executable file."""
        repo = rig.given_repo({"run": File(b"\0\xff\r\n", "100755"), "keep": b"keep"})

        rig.provider.commit_files(repo, "main", [MoveFile(path="run", to="bin/run")], message="Move")

        assert rig.files(repo, "main") == {"bin/run": File(b"\0\xff\r\n", "100755"), "keep": File(b"keep")}

    def test_commit_files_a_delete_takes_the_last_file_of_a_directory(self, rig: Rig) -> None:
        """An empty directory disappears, and its siblings stay."""
        repo = rig.given_repo({"d/e/f": b"f", "d/g": b"g"})

        rig.provider.commit_files(repo, "main", [DeleteFile(path="d/e/f")], message="Delete")

        assert rig.files(repo, "main") == {"d/g": File(b"g")}

    def test_commit_files_the_same_change_twice_is_one_commit(self, rig: Rig) -> None:
        """Changes without effect return the head and make no empty commit."""
        repo = rig.given_repo({"run": File(b"run", "100755")})
        change = [PutFile(path="a.txt", content="a\n"), PutFile(path="run", content="run")]
        first = rig.provider.commit_files(repo, "main", change, message="Once")

        second = rig.provider.commit_files(repo, "main", change, message="Twice")

        assert second.sha == first.sha
        assert second.branch == "main"
        assert rig.branches(repo)["main"] == first.sha
        assert len(rig.history(repo, "main")) == 2

    def test_commit_files_what_is_there_already_is_no_commit(self, rig: Rig) -> None:
        """Writing a file's current content and mode makes no commit, and the value is the head."""
        repo = rig.given_repo({"run": File(b"run", "100755"), "text": b"a\r\n", "bin": b"\0\xff", "empty": b""})
        head = rig.branches(repo)["main"]

        value = rig.provider.commit_files(
            repo,
            "main",
            [
                PutFile(path="run", content="run"),
                PutFile(path="text", content="a\r\n", executable=False),
                PutFile(path="bin", content=b"\0\xff"),
                PutFile(path="empty", content=""),
            ],
            message="Nothing",
        )

        assert (value.sha, value.parent, value.branch) == (head, None, "main")
        assert rig.branches(repo)["main"] == head

    def test_commit_files_a_message_is_kept(self, rig: Rig) -> None:
        """The subject, the body and any script are kept. Git may change trailing newlines."""
        repo = rig.given_repo()
        message = "Betreff: grüße \U0001f680 #1 @octocat\n\nBody, line one\n  indented\n\n* list"

        value = rig.provider.commit_files(repo, "main", [PutFile(path="a", content="a")], message=message)

        assert value.message.rstrip("\n") == message
        assert rig.history(repo, "main")[0].message == message

    def test_commit_files_an_author_is_written(self, rig: Rig) -> None:
        """The commit has the given name and email address."""
        repo = rig.given_repo()
        author = Author(name="Zoë Müller", email="zoe@example.org")
        changes = [PutFile(path="a", content="a")]
        if not rig.supports("commit_files.author"):
            unsupported(
                rig,
                "commit_files.author",
                rig.provider.commit_files,
                repo,
                "main",
                changes,
                message="By Zoë",
                author=author,
            )
            return

        rig.provider.commit_files(repo, "main", changes, message="By Zoë", author=author)

        commit = rig.history(repo, "main")[0]
        assert (commit.author_name, commit.author_email) == ("Zoë Müller", "zoe@example.org")

    @pytest.mark.parametrize("branch", ["feature/login", "a%2Fb#1", "grüße/\U0001f680", "a+b&c=d"])
    def test_commit_files_any_branch_is_committed_to(self, rig: Rig, branch: str) -> None:
        """The named branch moves, and no other branch does."""
        repo = rig.given_repo()
        rig.given_branch(repo, branch)
        before = rig.branches(repo)

        value = rig.provider.commit_files(repo, branch, [PutFile(path="a", content="a")], message="Add a")

        assert rig.branches(repo) == {**before, branch: value.sha}
        assert value.branch == branch

    def test_commit_files_a_branch_is_told_from_one_that_begins_alike(self, rig: Rig) -> None:
        """``rel`` is distinguished from ``rel-1``, and the prefix ``re`` is not found."""
        repo = rig.given_repo()
        rig.given_branches(repo, ["rel", "rel-1", "release"])
        before = rig.branches(repo)
        changes = [PutFile(path="a", content="a")]

        value = rig.provider.commit_files(repo, "rel", changes, message="Add a")

        assert rig.branches(repo) == {**before, "rel": value.sha}
        refused(NotFoundError, rig.provider.commit_files, repo, "re", changes, message="Add a")


class CommitFilesHeadCases:
    """commit_files: the head that a commit is based on."""

    def test_commit_files_the_expected_head_is_honoured(self, rig: Rig) -> None:
        """A branch at the expected head moves. The sha may be in upper case."""
        repo = rig.given_repo()
        head = rig.branches(repo)["main"]

        value = rig.provider.commit_files(
            repo, "main", [PutFile(path="a", content="a")], message="Add a", expected_head=head.upper()
        )

        assert value.parent == head

    def test_commit_files_another_head_than_expected_is_refused(self, rig: Rig) -> None:
        """HeadMovedError has the expected and the actual head, and the branch does not move."""
        repo = rig.given_repo()
        stale = rig.branches(repo)["main"]
        head = rig.given_commit(repo, "main", {"other": b"other"})

        error = refused(
            HeadMovedError,
            rig.provider.commit_files,
            repo,
            "main",
            [PutFile(path="a", content="a")],
            message="Add a",
            expected_head=stale,
        )

        assert error.expected in (stale, None)
        assert error.actual in (head, None)
        assert rig.branches(repo)["main"] == head

    def test_commit_files_another_head_is_refused_also_for_changes_that_change_nothing(self, rig: Rig) -> None:
        """The expected head is checked even if the changes have no effect."""
        repo = rig.given_repo({"a": b"a"})
        stale = rig.branches(repo)["main"]
        rig.given_commit(repo, "main", {"other": b"other"})

        refused(
            HeadMovedError,
            rig.provider.commit_files,
            repo,
            "main",
            [PutFile(path="a", content="a")],
            message="Nothing",
            expected_head=stale,
        )

    def test_commit_files_an_unknown_expected_head_is_refused(self, rig: Rig) -> None:
        """The sha of an unknown commit is not the branch's head."""
        repo = rig.given_repo()
        before = rig.branches(repo)

        refused(
            HeadMovedError,
            rig.provider.commit_files,
            repo,
            "main",
            [PutFile(path="a", content="a")],
            message="Add a",
            expected_head=SHA_LIKE,
        )

        assert rig.branches(repo) == before

    @pytest.mark.parametrize("pinned", [False, True], ids=["free", "pinned"])
    def test_commit_files_a_commit_made_meanwhile_is_never_lost(self, rig: Rig, pinned: bool) -> None:
        """The branch is never forced: a concurrent commit stays, whether this one follows it or is refused."""
        repo = rig.given_repo()
        head = rig.branches(repo)["main"]
        rig.on_next_mutation(lambda: rig.given_commit(repo, "main", {"theirs": b"theirs"}))
        expected = head if pinned else None

        result = attempt(
            rig.provider.commit_files,
            repo,
            "main",
            [PutFile(path="ours", content="ours")],
            message="Ours",
            expected_head=expected,
        )

        landed = True
        if isinstance(result, GitProviderError):
            assert isinstance(result, HeadMovedError), f"expected a commit or HeadMovedError, not {result!r}"
            landed = result.outcome is Outcome.PARTIAL
        files = rig.files(repo, "main")
        assert "theirs" in files, "the concurrent commit is no longer on the branch"
        assert ("ours" in files) == landed, "the outcome does not say what happened"

    def test_commit_files_a_pinned_commit_on_a_moved_branch_is_told(self, rig: Rig) -> None:
        """With expected_head, the call succeeds only if the commit's parent is that head."""
        repo = rig.given_repo()
        head = rig.branches(repo)["main"]
        rig.on_next_mutation(lambda: rig.given_commit(repo, "main", {"theirs": b"theirs"}))

        raised(
            HeadMovedError,
            rig.provider.commit_files,
            repo,
            "main",
            [PutFile(path="ours", content="ours")],
            message="Ours",
            expected_head=head,
        )


class CommitFilesRefusedCases:
    """commit_files: refused calls."""

    @pytest.mark.parametrize(
        "changes",
        [
            pytest.param([DeleteFile(path="none")], id="delete-what-is-not-there"),
            pytest.param([DeleteFile(path="dir")], id="delete-a-directory"),
            pytest.param([DeleteFile(path="file/below")], id="delete-below-a-file"),
            pytest.param([MoveFile(path="none", to="new")], id="move-what-is-not-there"),
            pytest.param([MoveFile(path="dir", to="new")], id="move-a-directory"),
            pytest.param([MoveFile(path="file", to="other")], id="move-onto-a-file"),
            pytest.param([MoveFile(path="file", to="dir")], id="move-onto-a-directory"),
            pytest.param([MoveFile(path="dir/inside", to="dir")], id="move-onto-its-own-directory"),
            pytest.param(
                [MoveFile(path="dir/inside", to="new"), MoveFile(path="file", to="dir")],
                id="move-onto-an-emptied-directory",
            ),
            pytest.param([MoveFile(path="file", to="other/below")], id="move-below-a-file"),
            pytest.param([PutFile(path="file/below", content="x")], id="put-below-a-file"),
            pytest.param([PutFile(path="dir", content="x")], id="put-in-place-of-a-directory"),
            pytest.param([PutFile(path="link", content="x")], id="put-at-a-symbolic-link"),
            pytest.param(
                [PutFile(path="link", content="x", executable=False)], id="put-with-its-mode-at-a-symbolic-link"
            ),
            pytest.param([PutFile(path="link/below", content="x")], id="put-below-a-symbolic-link"),
            pytest.param([DeleteFile(path="link")], id="delete-a-symbolic-link"),
            pytest.param([MoveFile(path="link", to="new")], id="move-a-symbolic-link"),
            pytest.param([MoveFile(path="file", to="link")], id="move-onto-a-symbolic-link"),
            pytest.param([PutFile(path="module", content="x")], id="put-at-a-submodule"),
            pytest.param([PutFile(path="module", content="x", executable=True)], id="put-with-its-mode-at-a-submodule"),
            pytest.param(
                [PutFile(path="dir", content="x", executable=False)], id="put-with-its-mode-in-place-of-a-directory"
            ),
            pytest.param(
                [PutFile(path="file/below", content="x", executable=False)], id="put-with-its-mode-below-a-file"
            ),
            pytest.param([PutFile(path="module/below", content="x")], id="put-below-a-submodule"),
            pytest.param([DeleteFile(path="module")], id="delete-a-submodule"),
            pytest.param([MoveFile(path="module", to="new")], id="move-a-submodule"),
        ],
    )
    def test_commit_files_changes_that_do_not_fit_the_tree_are_refused(
        self, rig: Rig, changes: list[FileChange]
    ) -> None:
        """One change that does not fit the tree refuses the whole call, and the branch does not move."""
        repo = rig.given_repo(
            {
                "file": b"file",
                "other": b"other",
                "dir/inside": b"inside",
                "link": File(b"file", "120000"),
                "module": File(SHA_LIKE.encode(), "160000"),
            }
        )
        before = rig.branches(repo)
        good = PutFile(path="good", content="good", executable=False)

        refused(InvalidRequestError, rig.provider.commit_files, repo, "main", [good, *changes], message="Does not fit")

        assert rig.branches(repo) == before

    @pytest.mark.parametrize(
        ("changes", "left"),
        [
            ([PutFile(path="file/below", content="x"), DeleteFile(path="file")], {"file/below", "other", "dir/inside"}),
            ([MoveFile(path="other", to="file/below"), DeleteFile(path="file")], {"file/below", "dir/inside"}),
            ([PutFile(path="dir", content="x"), DeleteFile(path="dir/inside")], {"file", "other", "dir"}),
            (
                [PutFile(path="file/below", content="x"), MoveFile(path="file", to="a")],
                {"a", "file/below", "other", "dir/inside"},
            ),
        ],
        ids=[
            "put-below-what-is-deleted",
            "move-below-what-is-deleted",
            "put-for-an-emptied-directory",
            "put-below-what-is-moved",
        ],
    )
    def test_commit_files_what_goes_makes_room_for_what_comes(
        self, rig: Rig, changes: list[FileChange], left: set[str]
    ) -> None:
        """Only the resulting tree counts, whatever the order of the changes."""
        repo = rig.given_repo({"file": b"file", "other": b"other", "dir/inside": b"inside"})

        rig.provider.commit_files(repo, "main", changes, message="Make room")

        assert set(rig.files(repo, "main")) == left

    def test_commit_files_links_and_submodules_elsewhere_are_kept(self, rig: Rig) -> None:
        """Links and submodules at other paths are unchanged."""
        repo = rig.given_repo({"link": File(b"a", "120000"), "module": File(SHA_LIKE.encode(), "160000"), "a": b"a"})

        rig.provider.commit_files(repo, "main", [PutFile(path="a", content="b")], message="Change a")

        files = rig.files(repo, "main")
        assert files["link"] == File(b"a", "120000")
        assert files["module"] == File(SHA_LIKE.encode(), "160000")

    @pytest.mark.parametrize(
        "changes",
        [
            pytest.param([PutFile(path="a", content="1"), PutFile(path="a", content="2")], id="put-twice"),
            pytest.param([PutFile(path="a", content="1"), DeleteFile(path="a")], id="put-and-delete"),
            pytest.param([MoveFile(path="file", to="a"), PutFile(path="a", content="1")], id="move-and-put"),
            pytest.param([MoveFile(path="file", to="a"), MoveFile(path="file", to="b")], id="move-twice"),
            pytest.param([MoveFile(path="file", to="a"), MoveFile(path="other", to="a")], id="move-two-to-one"),
            pytest.param([MoveFile(path="file", to="other"), MoveFile(path="other", to="file")], id="swap"),
        ],
    )
    def test_commit_files_a_path_is_touched_once(self, rig: Rig, changes: list[FileChange]) -> None:
        """Two changes at one path have no defined order and are refused before any request."""
        repo = rig.given_repo({"file": b"file", "other": b"other"})

        invalid(
            rig,
            ("changes", "path", "to"),
            rig.provider.commit_files,
            repo,
            "main",
            changes,
            message="Twice at one path",
        )

    def test_commit_files_a_file_below_another_one_of_the_same_call_is_refused(self, rig: Rig) -> None:
        """``a`` and ``a/b`` cannot both be files."""
        repo = rig.given_repo()
        before = rig.branches(repo)
        changes = [PutFile(path="a", content="1"), PutFile(path="a/b", content="2")]

        refused(InvalidRequestError, rig.provider.commit_files, repo, "main", changes, message="Clash")

        assert rig.branches(repo) == before

    def test_commit_files_wrong_changes_are_refused_before_any_request(self, rig: Rig) -> None:
        """The changes must be a non-empty sequence of the three kinds of change."""
        repo = rig.given_repo()
        put = PutFile(path="a", content="a")
        wrong: list[Any] = [[], (), None, put, "a", ["a"], [None], [put, {"path": "b"}], {"a": "b"}, 3]

        for bad in wrong:
            invalid(rig, "changes", rig.provider.commit_files, repo, "main", bad, message="Wrong")

    def test_commit_files_more_than_a_call_holds_is_refused_before_any_request(self, rig: Rig) -> None:
        """Three files of 20 MB exceed the limit of 50 MB per call."""
        repo = rig.given_repo()
        content = b"x" * 20_000_000
        changes = [PutFile(path=f"{i}.bin", content=content) for i in range(3)]

        invalid(rig, ("changes", "content"), rig.provider.commit_files, repo, "main", changes, message="Too much")

    def test_commit_files_a_source_that_cannot_be_read_is_refused_before_any_request(
        self, rig: Rig, tmp_path: Path
    ) -> None:
        """A missing file and a directory are refused before any request."""
        repo = rig.given_repo()

        for source in (tmp_path / "missing", tmp_path):
            changes = [PutFile(path="a", content="a"), PutFile(path="b", content=source)]
            invalid(rig, ("content", "changes"), rig.provider.commit_files, repo, "main", changes, message="Unreadable")

    def test_commit_files_wrong_arguments_are_refused_before_any_request(self, rig: Rig) -> None:
        """Each error names its argument."""
        repo = rig.given_repo()
        changes = [PutFile(path="a", content="a")]
        messages: list[Any] = ["", "  ", "\n", None, 3, b"bytes", "nul\0", "\udc80"]
        authors: list[Any] = ["Zoë <zoe@example.org>", ("Zoë", "zoe@example.org"), 3]

        for bad in (*BAD_BRANCHES, SHA_LIKE):
            invalid(rig, "branch", rig.provider.commit_files, repo, bad, changes, message="Wrong")
        for bad in messages:
            invalid(rig, "message", rig.provider.commit_files, repo, "main", changes, message=bad)
        for bad in authors:
            invalid(rig, "author", rig.provider.commit_files, repo, "main", changes, message="Wrong", author=bad)
        for bad in BAD_SHAS:
            invalid(
                rig, "expected_head", rig.provider.commit_files, repo, "main", changes, message="x", expected_head=bad
            )

    def test_commit_files_an_unknown_branch_is_not_found_and_not_made(self, rig: Rig) -> None:
        """In a repository with commits, commit_files does not create a branch."""
        repo = rig.given_repo()
        before = rig.branches(repo)

        refused(
            NotFoundError,
            rig.provider.commit_files,
            repo,
            "develop",
            [PutFile(path="a", content="a")],
            message="Add a",
        )

        assert rig.branches(repo) == before

    def test_commit_files_a_protected_branch_takes_no_direct_commit(self, rig: Rig) -> None:
        """A branch that requires pull requests refuses a direct commit and does not move."""
        repo = rig.given_repo()
        rules = BranchProtection(enforce_admins=rig.supports("protect_branch.enforce_admins"))
        rig.given_protection(repo, "main", rules)
        before = rig.branches(repo)

        refused(
            PermissionDeniedError,
            rig.provider.commit_files,
            repo,
            "main",
            [PutFile(path="a", content="a")],
            message="Add a",
        )

        assert rig.branches(repo) == before

    def test_commit_files_a_refused_commit_is_sent_once(self, rig: Rig) -> None:
        """A commit that the host refuses is not sent again."""
        repo = rig.given_repo()
        rig.given_branch(repo, "develop")
        changes = [PutFile(path="a", content="a")]
        before = rig.mutations_seen()
        rig.provider.commit_files(repo, "develop", changes, message="Add a")
        cost = rig.mutations_seen() - before
        rules = BranchProtection(enforce_admins=rig.supports("protect_branch.enforce_admins"))
        rig.given_protection(repo, "main", rules)

        with mutations(rig, at_most=cost):
            refused(PermissionDeniedError, rig.provider.commit_files, repo, "main", changes, message="Add a")


class FirstCommitCases:
    """commit_files in an empty repository."""

    def test_commit_files_the_first_commit_of_one_file(self, rig: Rig) -> None:
        """The first commit has no parent and creates the default branch."""
        repo = rig.given_empty_repo()

        value = rig.provider.commit_files(
            repo, "main", [PutFile(path="README.md", content="# Widgets\r\n")], message="First"
        )

        assert value.parent is None
        assert (value.branch, value.message) == ("main", "First")
        assert rig.branches(repo) == {"main": value.sha}
        assert rig.files(repo, "main") == {"README.md": File(b"# Widgets\r\n")}
        assert [c.parents for c in rig.history(repo, "main")] == [()]

    def test_commit_files_the_first_commit_of_several_files(self, rig: Rig) -> None:
        """Text, binary, executable and empty files are written, and the value is the branch's head."""
        repo = rig.given_empty_repo()
        wanted = {
            "README.md": File(b"# Widgets\n"),
            "bin/run": File(b"#!/bin/sh\n", "100755"),
            "data.bin": File(b"\0\xff\r\n"),
            "empty": File(b""),
            "deep/er/file": File("grüße".encode()),
        }

        value = rig.provider.commit_files(
            repo,
            "main",
            [PutFile(path=p, content=f.content, executable=f.mode == "100755" or None) for p, f in wanted.items()],
            message="First",
        )

        assert rig.branches(repo) == {"main": value.sha}
        assert rig.files(repo, "main") == wanted
        assert rig.history(repo, "main")[0].message == "First"

    @pytest.mark.parametrize(
        "file",
        [File(b"", "100644"), File(b"\0\xff", "100644"), File(b"#!/bin/sh\n", "100755")],
        ids=["empty", "binary", "executable"],
    )
    def test_commit_files_the_first_file_may_be_of_any_kind(self, rig: Rig, file: File) -> None:
        """An empty, a binary or an executable file can be the only file of the first commit."""
        repo = rig.given_empty_repo()

        value = rig.provider.commit_files(
            repo, "main", [PutFile(path="a", content=file.content, executable=file.mode == "100755")], message="First"
        )

        assert rig.files(repo, "main") == {"a": file}
        assert rig.branches(repo) == {"main": value.sha}

    def test_commit_files_the_first_commit_of_many_files(self, rig: Rig) -> None:
        """A first commit can have 300 files."""
        repo = rig.given_empty_repo()
        wanted = {f"d{i % 5}/{i:03}": File(b"%d\n" % i) for i in range(300)}

        rig.provider.commit_files(
            repo, "main", [PutFile(path=p, content=f.content) for p, f in wanted.items()], message="First"
        )

        assert rig.files(repo, "main") == wanted

    def test_commit_files_the_second_commit_stands_on_the_first(self, rig: Rig) -> None:
        """The second commit has the first one as its parent."""
        repo = rig.given_empty_repo()
        first = rig.provider.commit_files(repo, "main", [PutFile(path="a", content="a")], message="First")

        second = rig.provider.commit_files(repo, "main", [PutFile(path="b", content="b")], message="Second")

        assert second.parent == first.sha
        assert set(rig.files(repo, "main")) == {"a", "b"}

    def test_commit_files_a_created_repository_takes_its_first_commit(self, rig: Rig) -> None:
        """The first commit goes to the default branch that create_repo returned."""
        made = rig.provider.create_repo(rig.fresh_path())

        value = rig.provider.commit_files(
            made.path, made.default_branch, [PutFile(path="a", content="a")], message="First"
        )

        assert rig.branches(made.path) == {made.default_branch: value.sha}

    def test_commit_files_only_the_default_branch_can_begin(self, rig: Rig) -> None:
        """A first commit on another branch is refused, because the default branch would be missing."""
        repo = rig.given_empty_repo()

        refused(
            InvalidRequestError,
            rig.provider.commit_files,
            repo,
            "develop",
            [PutFile(path="a", content="a")],
            message="First",
        )

        assert rig.branches(repo) == {}

    @pytest.mark.parametrize("change", [DeleteFile(path="a"), MoveFile(path="a", to="b")], ids=["delete", "move"])
    def test_commit_files_there_is_nothing_to_delete_or_move(self, rig: Rig, change: FileChange) -> None:
        """An empty repository accepts only PutFile."""
        repo = rig.given_empty_repo()
        changes = [PutFile(path="c", content="c"), change]

        refused(InvalidRequestError, rig.provider.commit_files, repo, "main", changes, message="First")

        assert rig.branches(repo) == {}

    def test_commit_files_an_expected_head_is_not_there(self, rig: Rig) -> None:
        """A branch that does not exist is not at the expected head."""
        repo = rig.given_empty_repo()

        refused(
            HeadMovedError,
            rig.provider.commit_files,
            repo,
            "main",
            [PutFile(path="a", content="a")],
            message="First",
            expected_head=SHA_LIKE,
        )

        assert rig.branches(repo) == {}
