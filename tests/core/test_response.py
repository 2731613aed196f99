"""A request to a host, and its response."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gitprovider._remote.response import Request, Response


@pytest.mark.parametrize("date", ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 01 Jan 2024", "", "x"])
def test_a_date_that_is_none_is_the_present(date: str) -> None:
    """No header of the host's makes an exception of ours while its answer is being understood."""
    assert abs((Response(status=429, headers={"date": date}).date - datetime.now(UTC)).total_seconds()) < 3600


def test_parts_of_a_path_are_encoded_once() -> None:
    """A branch named ``feature/x#1%?`` reaches the host as that, and cannot leave its segment."""
    parts = {"repo": "a/b", "branch": "x/y#1%?ü"}
    request = Request(method="GET", template="/repos/{repo/}/branches/{branch}", parts=parts)

    assert request.path == "/repos/a/b/branches/x%2Fy%231%25%3F%C3%BC"
    assert request.endpoint == "GET /repos/{repo/}/branches/{branch}"
