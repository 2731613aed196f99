"""Requests as the fake servers read them."""

from __future__ import annotations

import pytest

from gitprovider.fakes.http import Request


@pytest.mark.parametrize("name", ["Host", "host", "HOST"])
def test_the_host_header_keeps_its_port_in_any_case(name: str) -> None:
    """A link to page two would lose the port for Node's clients, which write names in lower case."""
    request = Request.of("GET", "/user/repos?page=2", {name: "127.0.0.1:8080"}, b"", scheme="http")

    assert (request.origin, request.path) == ("http://127.0.0.1:8080", "/user/repos")
