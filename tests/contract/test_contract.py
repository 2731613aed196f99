"""The contract itself: eight operations, each specified, and the probe."""

import inspect

import pytest

from gitprovider import contract
from gitprovider.contract import GitProviderContract, optional
from gitprovider.errors import NotFoundError, PermissionDeniedError

OPERATIONS = ["get_repo", "list_branches", "create_repo", "create_branch", "protect_branch", "commit_files",
              "open_pull_request", "merge_pull_request"]  # fmt: skip


def test_there_are_eight_operations() -> None:
    """No more, no fewer, in the order of a repository's life."""
    names = [name for name, item in vars(GitProviderContract).items() if inspect.isfunction(item) and name[0] != "_"]

    assert names == OPERATIONS


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_names_its_errors_and_both_endpoints(name: str) -> None:
    """The docstrings are the specification: shapes, errors, and where the hosts document it."""
    text = inspect.getdoc(getattr(contract.GitProviderContract, name)) or ""

    assert "Raises:" in text
    assert "https://docs.github.com/" in text
    assert "https://docs.gitlab.com/" in text


def test_the_probe_turns_absence_alone_into_none() -> None:
    """404 is None; a refusal stays a refusal."""

    def read(answer: str) -> str:
        if answer == "none":
            raise NotFoundError("none")
        if answer == "forbidden":
            raise PermissionDeniedError("forbidden")
        return answer

    assert optional(read, "none") is None
    assert optional(read, answer="here") == "here"
    with pytest.raises(PermissionDeniedError):
        optional(read, "forbidden")
