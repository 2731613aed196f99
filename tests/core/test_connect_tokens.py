"""Where a token goes, seen by a server: every name leads to one TLS host, which writes down what it gets."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from gitprovider import (
    AuthenticationError,
    GitProviderError,
    InvalidRequestError,
    connect,
    connect_repo,
    parse_repo_url,
)
from gitprovider.fakes.http import Request, Response
from gitprovider.fakes.serve import serving
from tests.support.tls import server_context

GITHUB, GITLAB, OURS = "ghp_" + "g" * 36, "glpat-" + "l" * 20, "ours-" + "o" * 20
GH = "gho_" + "h" * 36  # for gh
TOKENS = (GITHUB, GITLAB, OURS, GH)
HOMES = {
    "GITHUB_TOKEN": GITHUB, "GITLAB_TOKEN": GITLAB, "GITPROVIDER_TOKEN": OURS,
    "GH_HOST": "git.example.org", "CI_SERVER_URL": "https://gitlab.example.org/gitlab",
    "GITPROVIDER_URL": "https://forge.example.org:8443",
}  # fmt: skip
NAMES = [
    "github.com", "api.github.com", "gitlab.com", "git.example.org", "gitlab.example.org", "forge.example.org",
    "github.com.evil.example", "gitlab.com.evil.example", "gitlab.example.org.attacker.net", "evil.example",
    "notgithub.com", "evil-gitlab.com", "git.example.org.evil.example", "xn--gthub-n2e.com", "www.github.com",
    "api.github.com.evil.example", "octocorp.ghe.com", "api.octocorp.ghe.com",
]  # fmt: skip


@dataclass
class Recorder:
    """A host that answers 404 to everything and keeps what it was sent."""

    bundle: str
    seen: list[Request] = field(default_factory=list)

    def handle(self, request: Request) -> Response:
        self.seen.append(request)
        return Response(
            status=404, headers={"content-type": "application/json"}, body=json.dumps({"message": "Not Found"}).encode()
        )

    def tokens(self) -> list[tuple[str, str]]:
        """Each request's host and the token that came with it."""
        return [
            (request.headers["host"], token)
            for request in self.seen
            for token in TOKENS
            if token in json.dumps([request.path, dict(request.query), dict(request.headers), request.body.decode()])
        ]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Recorder, int]]:
    context, bundle = server_context(tmp_path_factory.mktemp("tls"), NAMES)
    recorder = Recorder(bundle)
    with serving(recorder, tls=context) as url:
        yield recorder, int(url.rpartition(":")[2])


@pytest.fixture
def recorder(served: tuple[Recorder, int], monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder, port = served
    recorder.seen.clear()

    def here(host: Any, service: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", here)
    return recorder


def read(recorder: Recorder, url: str, hosts: dict[str, str] | None, environ: dict[str, str]) -> None:
    provider, path = connect_repo(url, hosts=hosts, environ=environ, verify=recorder.bundle)
    with provider, suppress(GitProviderError):
        provider.get_repo(path)


@pytest.mark.parametrize(
    ("url", "host", "token"),
    [
        ("https://github.com/acme/widgets", "api.github.com", GITHUB),
        ("https://GitHub.COM./acme/widgets.git", "api.github.com", GITHUB),
        ("git@github.com:acme/widgets.git", "api.github.com", GITHUB),
        ("ssh://git@github.com:2222/acme/widgets.git", "api.github.com", GITHUB),
        ("https://gitlab.com/a/b/c.git", "gitlab.com", GITLAB),
    ],
)
def test_a_token_reaches_its_own_host(recorder: Recorder, url: str, host: str, token: str) -> None:
    """However the URL spells it, the host gets its token, and that token alone; without this the tests below prove
    nothing."""
    read(recorder, url, None, {"GITHUB_TOKEN": GITHUB, "GITLAB_TOKEN": GITLAB, "GITPROVIDER_TOKEN": OURS})

    assert set(recorder.tokens()) == {(host, token)}


@pytest.mark.parametrize(
    ("url", "host", "token"),
    [
        ("https://git.example.org/acme/widgets", "git.example.org", GITHUB),
        ("https://gitlab.example.org/gitlab/a/b/c", "gitlab.example.org", GITLAB),
        ("https://forge.example.org:8443/a/b", "forge.example.org:8443", OURS),
    ],
)
def test_a_token_reaches_the_host_that_its_variable_names(recorder: Recorder, url: str, host: str, token: str) -> None:
    """GH_HOST, CI_SERVER_URL and GITPROVIDER_URL give a token its home."""
    read(recorder, url, {"forge.example.org:8443": "gitlab"}, HOMES)

    assert set(recorder.tokens()) == {(host, token)}


LOOK_ALIKES = [
    "https://github.com.evil.example/acme/widgets",
    "https://GITHUB.COM.evil.example./acme/widgets",
    "https://gitlab.com.evil.example/a/b",
    "https://gitlab.example.org.attacker.net/gitlab/a/b",
    "https://git.example.org.evil.example/acme/widgets",
    "https://evil.example/github.com/acme",
    "https://evil.example/acme/widgets",
    "https://notgithub.com/acme/widgets",
    "https://www.github.com/acme/widgets",
    "https://evil-gitlab.com/a/b",
    "https://api.github.com.evil.example/acme/widgets",
    "https://gіthub.com/acme/widgets",  # a Cyrillic i
    "https://xn--gthub-n2e.com/acme/widgets",
    "https://github.com:8443/acme/widgets",
    "https://gitlab.com:444/a/b",
    "https://git.example.org:444/acme/widgets",
    "https://forge.example.org/acme/widgets",
    "https://octocorp.ghe.com/acme/widgets",
    "git@github.com.evil.example:acme/widgets.git",
    "ssh://git@gitlab.example.org.attacker.net/a/b",
    "git+https://evil.example/acme/widgets",
]
REFUSED = [
    "https://github.com@evil.example/acme/widgets",
    "https://github.com:443@evil.example/acme/widgets",
    "https://evil.example\\@github.com/acme/widgets",
    "https://ｇithub.com/acme/widgets",
    "https://github。com/acme/widgets",
    "https://github.com%2eevil.example/acme/widgets",
    "https://github.com#@evil.example/acme/widgets",
    "https://github.com?@evil.example/acme/widgets",
]


@pytest.mark.parametrize("kind", ["github", "gitlab"])
@pytest.mark.parametrize("url", LOOK_ALIKES)
def test_a_look_alike_gets_no_token_even_as_a_known_host(recorder: Recorder, url: str, kind: str) -> None:
    """hosts= says what a host is; it opens it to nobody's token."""
    host = parse_repo_url(url).server.netloc

    with suppress(GitProviderError):
        read(recorder, url, {host: kind}, HOMES)

    assert recorder.tokens() == []


@pytest.mark.parametrize("url", LOOK_ALIKES + REFUSED)
def test_a_look_alike_is_no_known_host(recorder: Recorder, url: str) -> None:
    """Without hosts= it is not recognised, and not even connected to."""
    with pytest.raises(InvalidRequestError):
        connect_repo(url, environ=HOMES)

    assert recorder.seen == []


@pytest.mark.parametrize("kind", ["github", "gitlab"])
@pytest.mark.parametrize(
    "url",
    ["https://github.com.evil.example", "https://gitlab.example.org.attacker.net", "https://github.com:8443",
     "https://git.example.org:444", "https://forge.example.org", "https://gіthub.com", "https://www.github.com", "http://github.com:443",
     "https://github.com@evil.example", "https://ｇithub.com"],
)  # fmt: skip
def test_an_address_gets_no_token_that_is_at_home_elsewhere(recorder: Recorder, url: str, kind: str) -> None:
    """url= chooses a host, and no token of the environment follows it there."""
    with suppress(GitProviderError), connect(kind, url=url, environ=HOMES, verify=recorder.bundle) as provider:
        provider.get_repo("acme/widgets")

    assert recorder.tokens() == []


def test_a_token_given_with_an_address_goes_there(recorder: Recorder) -> None:
    """The caller's own pair of url= and token= is the caller's decision, and no other token comes along."""
    with (
        connect(
            "gitlab", url="https://evil.example", token="mine-" + "m" * 20, environ=HOMES, verify=recorder.bundle
        ) as p,
        suppress(GitProviderError),
    ):
        p.get_repo("a/b")

    assert [request.headers["private-token"] for request in recorder.seen] == ["mine-" + "m" * 20]
    assert recorder.tokens() == []


def test_data_residency_is_reached_at_its_own_api(recorder: Recorder) -> None:
    """GH_HOST may be a tenant of ghe.com, whose API is at api. of that name: there the token goes, and there alone."""
    read(
        recorder, "https://octocorp.ghe.com/acme/widgets", None, {"GITHUB_TOKEN": GITHUB, "GH_HOST": "octocorp.ghe.com"}
    )

    assert set(recorder.tokens()) == {("api.octocorp.ghe.com", GITHUB)}


@pytest.mark.parametrize(
    ("url", "environ", "host", "token"),
    [
        ("https://github.com/a/b", {}, "api.github.com", GH),
        ("https://octocorp.ghe.com/a/b", {"GH_HOST": "octocorp.ghe.com"}, "api.octocorp.ghe.com", GH),
        ("https://git.example.org/a/b", {"GH_HOST": "git.example.org"}, "git.example.org", GITHUB),
        ("https://github.com/a/b", {"GH_HOST": "git.example.org"}, "api.github.com", GH),
        ("https://gitlab.example.org/a/b", {"GITLAB_HOST": "gitlab.example.org"}, "gitlab.example.org", GITLAB),
        ("https://forge.example.org:8443/a/b", {"GITLAB_HOST": "https://forge.example.org:8443",
                                                "CI_SERVER_URL": "https://gitlab.example.org"},
         "forge.example.org:8443", GITLAB),
    ],
)  # fmt: skip
def test_a_variable_of_gh_and_glab_has_one_home(
    recorder: Recorder, url: str, environ: dict[str, str], host: str, token: str
) -> None:
    """GH_TOKEN goes to a server that gh would not send it to, or GITLAB_HOST does not go before CI_SERVER_URL."""
    read(recorder, url, None, {"GH_TOKEN": GH, "GITHUB_TOKEN": GITHUB, "GITLAB_TOKEN": GITLAB, **environ})

    assert set(recorder.tokens()) == {(host, token)}


@pytest.mark.parametrize(
    ("build", "environ"),
    [
        (lambda env: connect("github", environ=env), {"GH_TOKEN": GH, "GH_HOST": "git.example.org"}),
        (lambda env: connect_repo("https://gitlab.com/a/b", environ=env),
         {"GITLAB_TOKEN": GITLAB, "GITLAB_HOST": "gitlab.example.org"}),
        (lambda env: connect_repo("https://gitlab.example.org/a/b", environ=env),
         {"GITLAB_TOKEN": GITLAB, "GITLAB_HOST": "gitlab.com", "CI_SERVER_URL": "https://gitlab.example.org"}),
        (lambda env: connect("github", environ=env), {"GITHUB_TOKEN": GITHUB, "GH_HOST": "git.example.org",
                                                      "GITPROVIDER_URL": "https://github.com"}),
        (lambda env: connect_repo("https://gitlab.com/a/b", environ=env),
         {"GITLAB_TOKEN": GITLAB, "CI_SERVER_URL": "https://gitlab.example.org"}),
    ],
)  # fmt: skip
def test_a_token_has_one_home(build: Callable[[dict[str, str]], Any], environ: dict[str, str]) -> None:
    """Where a variable names another host, the token is that host's, and the public one gets none."""
    with pytest.raises(AuthenticationError) as caught:
        build(environ)

    assert "is only sent to git" in str(caught.value.hint)
