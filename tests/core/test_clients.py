"""What a hostile host or a careless caller can do to the clients of the remote providers."""

from __future__ import annotations

import io
from email.message import Message
from typing import Any

import pytest
import requests
from github import Auth
from urllib3 import HTTPResponse

from gitprovider.errors import InvalidRequestError
from gitprovider.github.provider import GitHubProvider
from gitprovider.gitlab.client import GitLabSession, Settings
from gitprovider.gitlab.provider import GitLabProvider


class _CookieAdapter(requests.adapters.HTTPAdapter):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str | None] = []

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        self.sent.append(request.headers.get("Cookie"))
        raw: Any = HTTPResponse(io.BytesIO(b"{}"), status=200, preload_content=False)
        raw._original_response = _Headers()  # requests reads a response's cookies there
        return self.build_response(request, raw)


class _Headers:
    def __init__(self) -> None:
        self.msg = Message()
        self.msg["Set-Cookie"] = "session=xxxx; Path=/"

    def isclosed(self) -> bool:
        return False


def test_a_gitlab_session_keeps_no_cookie() -> None:
    """If this fails, a host can make a session carry and grow state from one request to the next."""
    settings = Settings(url="https://gitlab.example", timeout=5, verify=True, obey_rate_limit=False)
    session, adapter = GitLabSession(settings), _CookieAdapter()
    session.mount("https://", adapter)
    for _ in range(2):
        session.get("https://gitlab.example/api/v4/version")
    assert adapter.sent == [None, None]
    assert len(session.cookies) == 0


@pytest.mark.parametrize("value", ["false", "true", 0, 1, None])
def test_allow_http_is_a_bool(value: Any) -> None:
    """If this fails, a truthy string lets the token travel in the clear."""
    with pytest.raises(InvalidRequestError, match="allow_http"):
        GitHubProvider(Auth.Token("t0ken-t0ken"), base_url="http://host.example", allow_http=value)
    with pytest.raises(InvalidRequestError, match="allow_http"):
        GitLabProvider("http://host.example", private_token="t0ken-t0ken", allow_http=value)
