"""Values: frozen, keyword-only, and impossible to make wrong."""

import dataclasses
import pathlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitprovider import models
from gitprovider.errors import InvalidRequestError
from gitprovider.models import Author, Branch, BranchProtection, DeleteFile, MoveFile, PutFile, Repo

VALUES = [kind for kind in vars(models).values() if dataclasses.is_dataclass(kind)]


@pytest.mark.parametrize("kind", VALUES)
def test_values_are_frozen_slotted_and_keyword_only(kind: Any) -> None:
    """Nobody changes a value that another thread holds, and a new field breaks no caller."""
    assert kind.__dataclass_params__.frozen
    assert "__slots__" in vars(kind)
    assert all(field.kw_only for field in dataclasses.fields(kind))


def repo(**changes: Any) -> Repo:
    known: dict[str, Any] = {
        "provider": "local",
        "path": "acme/widgets",
        "id": "7",
        "default_branch": "main",
        "visibility": "private",
        "description": "",
        "archived": False,
        "web_url": "x",
        "clone_url": "y",
    }
    return Repo(**{**known, **changes})


def test_times_become_utc() -> None:
    """A host's offset is converted, and a naive time is refused."""
    made = repo(created_at=datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))))

    assert made.created_at == datetime(2026, 1, 1, 10, tzinfo=UTC)
    with pytest.raises(InvalidRequestError, match="time zone"):
        repo(created_at=datetime(2026, 1, 1))


@pytest.mark.parametrize("changes", [{"id": None}, {"id": ""}, {"default_branch": None}, {"visibility": "x"},
                                     {"archived": None}, {"path": "x"}])  # fmt: skip
def test_a_repo_without_its_fields_cannot_be_made(changes: dict[str, Any]) -> None:
    """An answer of nothing but None, as PyGithub makes of an HTML page, is no Repo."""
    with pytest.raises(InvalidRequestError):
        repo(**changes)


@pytest.mark.parametrize("sha", ["", "abc", "Z" * 40, None, "a" * 63])
def test_a_branch_needs_a_full_sha(sha: Any) -> None:
    """A sha is 40 or 64 hexadecimal digits."""
    with pytest.raises(InvalidRequestError, match="sha"):
        Branch(name="main", sha=sha)


def test_content_is_bytes_text_or_a_file(tmp_path: pathlib.Path) -> None:
    """Text is UTF-8, a path is read when the data is asked for, and nothing changes line endings."""
    file = tmp_path / "f"
    file.write_bytes(b"\x00\r\n")

    assert PutFile(path="a", content="ü\r\n").data() == b"\xc3\xbc\r\n"
    assert PutFile(path="a", content=file).data() == b"\x00\r\n"
    mutable: Any = bytearray(b"x")
    assert PutFile(path="a", content=mutable).content == b"x"


@pytest.mark.parametrize("content", [None, 7, ["x"], "\ud800"])
def test_other_content_is_refused(content: Any) -> None:
    """None must not write an empty file, nor a surrogate a broken one."""
    with pytest.raises(InvalidRequestError, match="content"):
        PutFile(path="a", content=content)


def test_a_file_that_cannot_be_read_is_an_invalid_request(tmp_path: pathlib.Path) -> None:
    """A missing file and a directory are errors of the call, not of the host."""
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InvalidRequestError, match="cannot be read"):
            PutFile(path="a", content=path).data()


def test_a_file_over_25_mb_is_refused(tmp_path: pathlib.Path) -> None:
    """The limit counts bytes, not characters, and holds for files as well."""
    limit = models.MAX_FILE_BYTES
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(limit + 1)

    assert PutFile(path="a", content=b"x" * limit)
    with pytest.raises(InvalidRequestError, match="larger"):
        PutFile(path="a", content=b"x" * (limit + 1))
    with pytest.raises(InvalidRequestError, match="larger"):
        PutFile(path="a", content="ü" * (limit // 2 + 1))
    with pytest.raises(InvalidRequestError, match="larger"):
        PutFile(path="a", content=big).data()


def test_changes_check_their_paths() -> None:
    """Every change refuses a path that leaves the repository, and a move onto itself."""
    for make in (lambda: PutFile(path="../x", content=b""), lambda: DeleteFile(path="/x"),
                 lambda: MoveFile(path="a", to=".git/x"), lambda: MoveFile(path="a", to="a")):  # fmt: skip
        with pytest.raises(InvalidRequestError):
            make()


@pytest.mark.parametrize(("name", "email"), [("", "a@b"), ("A <x>", "a@b"), ("A", ""), ("A\n", "a@b"), ("A", "a>b")])
def test_an_author_cannot_break_a_commit_header(name: str, email: str) -> None:
    """Angle brackets and line breaks would forge header lines of the commit object."""
    with pytest.raises(InvalidRequestError):
        Author(name=name, email=email)


protections = st.builds(
    BranchProtection,
    require_pull_request=st.just(value=True),
    required_approvals=st.integers(0, 6),
    required_checks=st.lists(st.sampled_from(["a", "b", "c"])).map(tuple),
    **{
        name: st.booleans()
        for name in (
            "dismiss_stale_approvals", "require_code_owner_review", "require_linear_history", "enforce_admins",
            "block_force_push", "block_deletion",
        )
    },
)  # fmt: skip


@given(protections, protections)
def test_the_stricter_of_two_protections_lacks_nothing_of_either(a: BranchProtection, b: BranchProtection) -> None:
    """``stricter`` is the least upper bound: commutative, idempotent, and neither is missing from it."""
    both = a.stricter(b)

    assert both == b.stricter(a)
    assert a.missing_from(both) == b.missing_from(both) == ()
    assert a.stricter(a) == a
    assert a.stricter(BranchProtection.nothing()) == a
    assert (b.missing_from(a) == ()) == (both == a)


def test_what_is_missing_is_named() -> None:
    """The comparison with what the host answered says which fields are weaker."""
    asked = BranchProtection(required_approvals=2, required_checks=("ci", "lint"), block_deletion=True)
    held = BranchProtection(required_approvals=1, required_checks=("ci",))

    assert asked.missing_from(held) == ("required_approvals", "required_checks", "block_deletion")


@pytest.mark.parametrize(
    "fields",
    [
        {"required_approvals": 7},
        {"required_approvals": -1},
        {"required_approvals": True},
        {"required_checks": "ci"},
        {"required_checks": 3},
        {"required_checks": ("",)},
        {"enforce_admins": 1},
        {"require_pull_request": False, "required_approvals": 1},
        {"require_pull_request": None},
    ],
)
def test_a_protection_that_means_nothing_is_refused(fields: dict[str, Any]) -> None:
    """A str for a tuple, a number out of range, or approvals without pull requests."""
    with pytest.raises(InvalidRequestError):
        BranchProtection(**fields)
