"""The transport: one origin, a timeout always, no redirect of a mutation, and no answer's headers lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gitlab
import pytest
import requests
import responses

from gitprovider._remote.response import BodyError, ForeignOriginError, Request, StatusError
from gitprovider.errors import (
    InvalidRequestError,
    PermissionDeniedError,
    ProviderUnavailableError,
    RepoMovedError,
    UnexpectedResponseError,
)
from gitprovider.gitlab import GitLabProvider
from gitprovider.gitlab.auth import Credential
from gitprovider.gitlab.client import GitLabClient, Settings
from tests.support.gitlab_world import REPO, TOKEN, URL, World, failed


def a_client(url: str = URL, *, timeout: float = 15, obey_rate_limit: bool = False) -> GitLabClient:
    settings = Settings.checked(url, timeout=timeout, verify=True, obey_rate_limit=obey_rate_limit, allow_http=False)
    return GitLabClient(settings, Credential(private_token=TOKEN, oauth_token=None))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What requests is told about each request, which gets an empty list."""
    seen: list[dict[str, Any]] = []

    def send(self: Any, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        seen.append({"url": request.url, "headers": dict(request.headers), "body": request.body, **options})
        response = requests.Response()
        response.status_code = 200
        response.request = request
        response._content = b"[]"
        return response

    monkeypatch.setattr("requests.adapters.HTTPAdapter.send", send)
    return seen


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirected_mutation_is_not_followed(rsps: responses.RequestsMock, status: int) -> None:
    """Not even within the origin: a 301 would turn a POST into a GET whose answer looks like success."""
    rsps.post(f"{URL}/api/v4/projects", status=status, headers={"Location": f"{URL}/api/v4/projects/7"})
    rsps.get(f"{URL}/api/v4/projects/7", json=[])

    with pytest.raises(StatusError) as caught:
        a_client().send(Request(method="POST", template="/projects", body={"name": "x"}))

    assert caught.value.response.status == status
    assert [call.request.method for call in rsps.calls] == ["POST"]


def test_a_redirect_to_another_host_gets_no_token(rsps: responses.RequestsMock) -> None:
    """python-gitlab follows a read's redirect with its PRIVATE-TOKEN; here the 3xx is the answer."""
    rsps.get(f"{URL}/api/v4/projects/7", status=302, headers={"Location": "https://elsewhere.invalid/"})
    rsps.get("https://elsewhere.invalid/", json={})

    with pytest.raises(StatusError):
        a_client().send(Request(method="GET", template="/projects/7"))

    assert [call.request.url for call in rsps.calls] == [f"{URL}/api/v4/projects/7"]


def test_a_lent_client_follows_reads_within_the_host_alone(world: World, rsps: responses.RequestsMock) -> None:
    """A moved project is read at its new place; a redirect to another host is an error that sends nothing."""
    world.forge.rename_repo(REPO, "acme/gadgets")
    rsps.get(f"{URL}/api/v4/version", status=302, headers={"Location": "https://elsewhere.invalid/"})
    rsps.get("https://elsewhere.invalid/", json={})

    with world.provider().sdk() as client:
        moved = client.projects.get(REPO)
        with pytest.raises(ForeignOriginError):
            client.http_get("https://elsewhere.invalid/")

    assert moved.path_with_namespace == "acme/gadgets"
    assert all(str(call.request.url).startswith(URL) for call in rsps.calls)


def test_a_lent_client_sends_a_mutation_once(world: World) -> None:
    """Whatever the caller of a manager asks for: the promise is the client's."""
    world.fault("status", method="POST", times=None, status=429, headers={"Retry-After": "0"})

    with world.provider().sdk() as client, pytest.raises(gitlab.GitlabCreateError):
        client.projects.create({"name": "x"}, obey_rate_limit=True, max_retries=5, retry_transient_errors=True)

    assert world.mutations == ["POST /projects"]


@pytest.mark.parametrize("given", [15, 0.5])
def test_the_timeout_reaches_requests(sent: list[dict[str, Any]], given: float) -> None:
    """python-gitlab has none of its own."""
    a_client(timeout=given).send(Request(method="GET", template="/projects"))

    assert sent[0]["timeout"] == given


def test_the_timeout_is_never_none(sent: list[dict[str, Any]]) -> None:
    """Also where a lent client's own was taken away."""
    with GitLabProvider(private_token=TOKEN).sdk() as client:
        client.timeout = None
        client.http_get("/projects", timeout=None)

    assert sent[0]["timeout"] == 15


@pytest.mark.parametrize("value", [None, 0, -1, float("nan"), float("inf"), "15", True])
def test_a_timeout_that_is_none_is_refused(value: Any) -> None:
    """Nobody gets a provider that can wait forever."""
    with pytest.raises(InvalidRequestError) as caught:
        GitLabProvider(private_token=TOKEN, timeout=value)

    assert caught.value.argument == "timeout"


def test_a_ca_bundle_and_proxies_reach_requests(
    sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """verify is a bundle's path, and proxies come from the environment as requests reads it."""
    bundle = tmp_path / "ca.pem"
    bundle.write_text("")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")

    with GitLabProvider("https://git.example.org", private_token=TOKEN, verify=str(bundle)).sdk() as client:
        client.http_get("/version")

    assert sent[0]["verify"] == str(bundle)
    assert sent[0]["proxies"]["https"] == "http://proxy.example:3128"


@pytest.mark.parametrize("value", ["/no/such/bundle.pem", None, 1])
def test_a_wrong_verify_is_refused(value: Any) -> None:
    """A bundle that is not there would be found at the first request only."""
    with pytest.raises(InvalidRequestError) as caught:
        GitLabProvider(private_token=TOKEN, verify=value)

    assert caught.value.argument == "verify"


@pytest.mark.pitfall("GL-GR-05")
@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("https://gitlab.com", "https://gitlab.com"),
        ("https://git.example.org/gitlab/", "https://git.example.org/gitlab"),
        ("https://git.example.org/gitlab/api/v4", "https://git.example.org/gitlab"),
        ("https://GIT.example.org:443/api/v4/", "https://git.example.org"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
        ("git.example.org", "https://git.example.org"),
    ],
)
def test_the_url_is_brought_to_one_form(given: str, base: str, sent: list[dict[str, Any]]) -> None:
    """A sub-path stays; a trailing slash, the API's own path and a scheme's own port go."""
    with GitLabProvider(given, private_token=TOKEN).sdk() as client:
        client.http_get("/version")

    assert sent[0]["url"] == f"{base}/api/v4/version"


@pytest.mark.parametrize(
    "url", ["http://git.example.org", "https://u:p@git.example.org", "ftp://x.org", None, "https://"]
)
def test_a_url_that_is_none_or_would_show_the_token_is_refused(url: Any) -> None:
    """http is for this machine alone, and credentials have arguments of their own."""
    with pytest.raises(InvalidRequestError) as caught:
        GitLabProvider(url, private_token=TOKEN)

    assert caught.value.argument == "url"
    assert "u:p" not in str(caught.value)


def test_http_may_be_allowed() -> None:
    """By name, for those who know what they do."""
    assert "git.example.org" in repr(GitLabProvider("http://git.example.org", private_token=TOKEN, allow_http=True))


@pytest.mark.parametrize("token", [{"private_token": TOKEN}, {"oauth_token": TOKEN}])
def test_each_kind_of_token_is_sent_as_python_gitlab_names_it(
    sent: list[dict[str, Any]], token: dict[str, Any]
) -> None:
    """And the other kind's header is not there."""
    with GitLabProvider(**token).sdk() as client:
        client.http_get("/version")

    headers = sent[0]["headers"]
    private = "private_token" in token
    assert (headers.get("PRIVATE-TOKEN"), headers.get("Authorization")) == (
        (TOKEN, None) if private else (None, f"Bearer {TOKEN}")
    )


def test_a_netrc_entry_is_not_sent(sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The credential is the provider's own, whatever the machine has for this host."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine gitlab.com login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))

    a_client().send(Request(method="GET", template="/projects"))

    assert "Authorization" not in sent[0]["headers"]


def test_the_headers_of_a_refusal_are_kept(rsps: responses.RequestsMock) -> None:
    """python-gitlab's exceptions carry none."""
    headers = {"X-Request-Id": "01HZ", "Retry-After": "7", "RateLimit-Remaining": "0"}
    rsps.get(f"{URL}/api/v4/projects/7", status=429, body="Retry later", headers=headers)

    with pytest.raises(StatusError) as caught:
        a_client().send(Request(method="GET", template="/projects/7"))

    answer = caught.value.response
    assert (answer.status, answer.request_id, answer.retry_after) == (429, "01HZ", 7.0)
    assert answer.headers["ratelimit-remaining"] == "0"


def test_an_answer_s_headers_are_not_those_of_the_one_before(rsps: responses.RequestsMock) -> None:
    """A failure without an answer must not be told with an earlier answer's status."""
    rsps.get(f"{URL}/api/v4/projects/7", status=404, json={"message": "404 Project Not Found"})
    rsps.get(f"{URL}/api/v4/projects/8", body=requests.ConnectionError("reset"))
    client = a_client()
    with pytest.raises(StatusError):
        client.send(Request(method="GET", template="/projects/7"))

    with pytest.raises(requests.ConnectionError):
        client.send(Request(method="GET", template="/projects/8"))


@pytest.mark.pitfall("GL-X-09")
@pytest.mark.parametrize(
    ("body", "kind", "cut"),
    [
        ("<html>sign in</html>", "text/html", False),
        ('{"id": 1, "na', "application/json", True),
        ('[{"id"', "application/json", True),
        ("OK", "text/plain", False),
    ],
)
def test_a_2xx_that_is_no_json_is_a_body_error(rsps: responses.RequestsMock, body: str, kind: str, cut: bool) -> None:
    """And JSON that breaks off is told from a page."""
    rsps.get(f"{URL}/api/v4/projects/7", body=body, content_type=kind)

    with pytest.raises(BodyError) as caught:
        a_client().send(Request(method="GET", template="/projects/7"))

    assert caught.value.cut is cut
    assert caught.value.response.status == 200


def test_an_empty_2xx_is_no_data(rsps: responses.RequestsMock) -> None:
    """A DELETE returns 204."""
    rsps.delete(f"{URL}/api/v4/projects/7/protected_branches/main", status=204)

    assert a_client().send(Request(method="DELETE", template="/projects/7/protected_branches/main")).data is None


def test_graphql_is_below_the_sub_path(rsps: responses.RequestsMock) -> None:
    """It is no part of the REST API's path, and passes the same client."""
    rsps.post("https://git.example.org/gitlab/api/graphql", json={"data": {}})

    assert a_client("https://git.example.org/gitlab").send(
        Request(method="POST", template="/api/graphql", body={"query": "{}"})
    ).data == {"data": {}}


@pytest.mark.pitfall("GL-X-08", "GL-CB-01")
@pytest.mark.parametrize("path", ["acme/widgets", "acme/platform/deep/er/widgets"])
def test_a_path_of_any_depth_is_one_encoded_part(sent: list[dict[str, Any]], path: str) -> None:
    """Encoded once, with its slashes."""
    with pytest.raises(UnexpectedResponseError):
        GitLabProvider(private_token=TOKEN).get_repo(path)

    assert sent[0]["url"] == f"{URL}/api/v4/projects/{path.replace('/', '%2F')}"


@pytest.mark.pitfall("GL-X-11")
def test_pages_are_asked_for_at_the_configured_url(make_world: Callable[..., World]) -> None:
    """Whatever host the server believes to have, behind its proxy."""
    world = make_world(url="https://git.example.org/gitlab")
    world.fake.external_url = "http://gitlab-internal.example.org:12345"
    for number in range(150):
        world.branch(f"b/{number:03}")

    branches = world.provider().list_branches(REPO)

    assert len(branches) == 151
    assert [entry.query["page"] for entry in world.request_log.entries] == ["1", "2"]


def test_the_whole_of_a_sub_path_host_is_reached(make_world: Callable[..., World]) -> None:
    """Every kind of request lives below the path: REST, GraphQL, and pages."""
    world = make_world(url="https://git.example.org/gitlab")
    provider = world.provider()

    made = provider.create_branch(REPO, "feature", source="main")

    assert provider.head(REPO, "feature") == made.sha
    assert {entry.path.partition("/api/")[0] for entry in world.request_log.entries} == {"/gitlab"}


@pytest.mark.pitfall("GL-GR-05")
def test_a_wrong_sub_path_is_told(make_world: Callable[..., World], rsps: responses.RequestsMock) -> None:
    """The page of another application is no GitLab, and the hint says where to look."""
    rsps.get(f"{URL}/api/v4/projects/acme%2Fplatform%2Fwidgets", status=404, json={"error": "404 Not Found"})

    with pytest.raises(Exception, match="404") as caught:
        GitLabProvider(private_token=TOKEN).get_repo(REPO)

    assert "path" in str(getattr(caught.value, "hint", ""))


def test_a_redirect_of_a_mutation_is_a_moved_repository(world: World) -> None:
    """Nothing is re-sent, and the outcome says so."""
    world.fault("redirect", method="POST", status=301, headers={"Location": f"{URL}/api/v4/projects/9"})

    with pytest.raises(RepoMovedError) as caught:
        world.provider().create_branch(REPO, "feature", source=world.head)

    assert world.mutations == ["POST /repository/branches"]
    assert not caught.value.retryable


@pytest.mark.pitfall("GL-X-09")
def test_a_page_of_an_sso_proxy_is_unexpected(world: World) -> None:
    """After a mutation nobody knows; the sign-in page is not quoted."""
    world.fault("html", method="POST", status=200)

    with pytest.raises(UnexpectedResponseError) as caught:
        world.provider().create_branch(REPO, "feature", source=world.head)

    assert caught.value.outcome.value == "unknown"
    assert "<" not in str(caught.value)


def test_an_ip_block_is_told(world: World) -> None:
    """gitlab.com blocks an address with a bare 403 on everything."""
    world.fault("status", status=403, headers={"Content-Type": "text/plain"}, body=b"Forbidden\n")

    with pytest.raises(PermissionDeniedError, match="Forbidden"):
        world.provider().get_repo(REPO)


@pytest.mark.pitfall("GL-X-04")
def test_a_hung_host_is_given_up(world: World) -> None:
    """A read that is not answered is tried again, and ends."""
    world.fault("timeout", times=None)

    with pytest.raises(ProviderUnavailableError) as caught:
        world.provider().get_repo(REPO)

    assert caught.value.attempts == 4


@pytest.mark.pitfall("GL-X-06")
def test_an_http_url_is_told_by_its_redirect(rsps: responses.RequestsMock) -> None:
    """The POST is not turned into a GET, and the hint names the cause."""
    project, secure = "http://git.example.org/api/v4/projects/acme%2Fwidgets", {"Location": "https://git.example.org/"}
    rsps.post(f"{project}/repository/branches", status=301, headers=secure)
    rsps.get(project, status=301, headers=secure)
    provider = GitLabProvider("http://git.example.org", private_token=TOKEN, allow_http=True)

    error = failed(RepoMovedError, lambda: provider.create_branch("acme/widgets", "x", source="1" * 40))

    assert "https" in (error.hint or "")
    assert [call.request.method for call in rsps.calls] == ["POST", "GET"]
    assert all(str(call.request.url).startswith("http://git.example.org/") for call in rsps.calls)
