"""Repository URLs and host names: what is understood, what is refused, and that nothing secret is echoed."""

import pytest

from gitprovider import InvalidRequestError
from gitprovider._core.urls import RepoUrl, Server, parse_api_server, parse_repo_url, parse_server


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port", "path"),
    [
        ("https://github.com/acme/widgets", "https", "github.com", None, "acme/widgets"),
        ("https://github.com/acme/widgets.git", "https", "github.com", None, "acme/widgets"),
        ("https://github.com/acme/widgets.git/", "https", "github.com", None, "acme/widgets"),
        ("https://github.com//acme/widgets//", "https", "github.com", None, "acme/widgets"),
        ("HTTPS://GitHub.COM./acme/Widgets", "https", "github.com", None, "acme/Widgets"),
        ("https://github.com:443/acme/widgets", "https", "github.com", None, "acme/widgets"),
        ("https://git.example.org:8443/a/b/c/d.git", "https", "git.example.org", 8443, "a/b/c/d"),
        ("http://127.0.0.1:8080/acme/widgets", "http", "127.0.0.1", 8080, "acme/widgets"),
        ("https://[::1]:8443/acme/widgets", "https", "::1", 8443, "acme/widgets"),
        ("https://bücher.example/acme/widgets", "https", "xn--bcher-kva.example", None, "acme/widgets"),
        ("https://github.com/acme/widgets.github.io", "https", "github.com", None, "acme/widgets.github.io"),
        ("git+https://gitlab.com/a/b/c.git", "https", "gitlab.com", None, "a/b/c"),
        ("git+ssh://git@gitlab.com/a/b/c.git", "ssh", "gitlab.com", None, "a/b/c"),
        ("GIT+https://gitlab.com/a/b", "https", "gitlab.com", None, "a/b"),
        ("ssh://git@github.com/acme/widgets.git", "ssh", "github.com", None, "acme/widgets"),
        ("ssh://git@github.com:22/acme/widgets.git", "ssh", "github.com", None, "acme/widgets"),
        ("ssh://git.example.org:2222/acme/widgets", "ssh", "git.example.org", 2222, "acme/widgets"),
        ("git@github.com:acme/widgets.git", "ssh", "github.com", None, "acme/widgets"),
        ("git@GITHUB.com.:/acme/widgets/", "ssh", "github.com", None, "acme/widgets"),
        ("gitlab.com:a/b/c", "ssh", "gitlab.com", None, "a/b/c"),
        ("git@[::1]:acme/widgets", "ssh", "::1", None, "acme/widgets"),
        ("git@host:2222/widgets", "ssh", "host", None, "2222/widgets"),
        ("file:///srv/forge/acme/widgets.git", "file", "", None, "/srv/forge/acme/widgets.git"),
        ("file://localhost/srv/forge/x.git/", "file", "", None, "/srv/forge/x.git"),
        ("file:///srv/my%20forge/x.git", "file", "", None, "/srv/my forge/x.git"),
        ("git+file:///srv/forge/x.git", "file", "", None, "/srv/forge/x.git"),
        ("/srv/forge/acme/widgets.git", "file", "", None, "/srv/forge/acme/widgets.git"),
    ],
)  # fmt: skip
def test_what_people_paste_is_understood(url: str, scheme: str, host: str, port: int | None, path: str) -> None:
    """Each form that Git takes gives the host, comparable, and the full path as the contract takes it."""
    assert parse_repo_url(url) == RepoUrl(scheme=scheme, host=host, port=port, path=path)


@pytest.mark.parametrize(
    "url",
    [
        "", " ", "acme/widgets", "widgets", "C:/code/widgets", "C:\\code\\widgets", "ftp://github.com/acme/widgets",
        "git://github.com/acme/widgets", "https://", "https:///acme/widgets", "https://github.com", "https://github.com/",
        "https://github.com/acme", "https://github.com/acme/../widgets", "https://github.com/acme/%2e%2e/widgets",
        "https://github.com/acme/widgets?ref=main", "https://github.com/acme/widgets#readme",
        "https://github.com/acme/widgets?", "https://github.com/acme/widgets/-/tree/main",
        "https://github.com:0x1bb/acme/widgets", "https://github.com:99999/acme/widgets", "https://github..com/a/b",
        "https://github.com../a/b", "https://-github.com/a/b", "https://git%68ub.com/a/b", "https://[::1/a/b",
        "https://[zz]/a/b", "https://github.com\\@evil.example/a/b", " https://github.com/acme/widgets",
        "https://github.com/acme/widgets\n", "https://github.com\t/acme/widgets", "https://ｇithub.com/acme/widgets",
        "https://github。com/acme/widgets", "https://faß.example/a/b", "https://\u00ad.example/a/b",
        "https://" + "ü" * 70 + ".example/a/b",
        "file://host/srv/x.git", "file:///srv/../etc", "file:///srv/%2e%2e/x.git", "file:///srv/%00/x.git", "/srv/./x", "file://user@/srv/x.git",
        "git+acme/widgets", "git@[zz]:acme/widgets", "git@[127.0.0.1]:acme/widgets", "x" * 3000,
    ],
)  # fmt: skip
def test_what_is_no_repository_s_url_is_refused(url: str) -> None:
    """Anything else is one error that names the argument: nothing is guessed from a URL."""
    with pytest.raises(InvalidRequestError) as caught:
        parse_repo_url(url)

    assert caught.value.argument == "url"


@pytest.mark.parametrize(
    "url",
    [
        "https://s3cr3t@github.com/acme/widgets",
        "https://user:s3cr3t@github.com/acme/widgets",
        "https://oauth2:s3cr3t@gitlab.com/a/b.git",
        "https://github.com@s3cr3t.example/acme/widgets",
        "https://:s3cr3t@github.com/acme/widgets",
        "https://s3cr3t@github.com/acme/widgets?x#y",
        "ssh://git:s3cr3t@github.com/acme/widgets",
        "git+https://s3cr3t@github.com/acme/widgets",
        "https:user:s3cr3t@github.com/acme/widgets",
        "https:/user:s3cr3t@github.com/acme/widgets",
        "user:s3cr3t@github.com:acme/widgets",
        "//user:s3cr3t@github.com/acme/widgets",
    ],
)
def test_credentials_in_a_url_are_refused_and_not_echoed(url: str) -> None:
    """The refusal holds neither the user's part nor the password, in its text or in its repr."""
    with pytest.raises(InvalidRequestError) as caught:
        parse_repo_url(url)

    assert "s3cr3t" not in f"{caught.value} {caught.value!r} {caught.value.__cause__} {caught.value.__context__}"


def test_an_ssh_port_says_nothing_about_the_api() -> None:
    """The API of a host whose SSH listens elsewhere is still asked at https and its own port."""
    assert parse_repo_url("ssh://git@git.example.org:2222/a/b").server.url == "https://git.example.org"


def test_an_https_port_is_the_api_s() -> None:
    """A host on another port is another host."""
    assert parse_repo_url("https://git.example.org:8443/a/b").server.key == ("https", "git.example.org", 8443)


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("git.example.org", "https://git.example.org"),
        ("Git.Example.ORG.", "https://git.example.org"),
        ("git.example.org:8443", "https://git.example.org:8443"),
        ("https://git.example.org/gitlab/", "https://git.example.org/gitlab"),
        ("https://git.example.org:443", "https://git.example.org"),
        ("http://[::1]:80/", "http://[::1]"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
    ],
)
def test_a_host_is_named_as_settings_name_it(written: str, url: str) -> None:
    """With or without scheme, port and path, it is one comparable address."""
    assert parse_server("GH_HOST", written).url == url


@pytest.mark.parametrize(
    "written",
    ["", "ssh://git.example.org", "https://u:s3cr3t@git.example.org", "s3cr3t@git.example.org", "a b", "a/../b",
     "https://git.example.org?x=1", "git.example.org:port", "https://git.example.org/%2e", " a", "a\\b"],
)  # fmt: skip
def test_a_setting_that_names_no_host_is_refused_by_its_name(written: str) -> None:
    """The error names the variable that is wrong, and echoes no credentials."""
    with pytest.raises(InvalidRequestError) as caught:
        parse_server("CI_SERVER_URL", written)

    assert caught.value.argument == "CI_SERVER_URL"
    assert "s3cr3t" not in str(caught.value)


def test_an_address_is_shown_with_brackets_and_port() -> None:
    """An IPv6 address is a URL's host again."""
    assert Server(scheme="https", host="::1", port=8443).netloc == "[::1]:8443"


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://git.example.org/", "https://git.example.org"),
        ("https://GIT.example.org:443/gitlab/", "https://git.example.org/gitlab"),
        ("https://git.example.org:8443", "https://git.example.org:8443"),
        ("http://localhost:80/x/", "http://localhost/x"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("https://gït.example/", "https://xn--gt-tja.example"),
        ("git.example.org", "https://git.example.org"),
    ],
)
def test_an_origin_has_one_spelling(url: str, normal: str) -> None:
    """Case, default ports, trailing slashes and IDNA do not make another origin."""
    assert parse_api_server("url", url).url == normal


@pytest.mark.parametrize(
    "url",
    [
        " https://git.example.org",
        "ftp://git.example.org",
        "https://",
        "https://git.example.org?x=1",
        "https://git.example.org#x",
        "https://u:hunter22@git.example.org",
        "https://github.com@evil.example",
        "https://github.com\\@evil.example",
        "https://git.example.org:port",
        "http://git.example.org",
        "http://127.0.0.1.evil.example",
        "http://localhost.evil.example",
        None,
    ],
)
def test_what_is_no_safe_origin_is_refused(url: str) -> None:
    """Credentials, look-alikes and plain http never become the place a token is sent to."""
    with pytest.raises(InvalidRequestError) as caught:
        parse_api_server("url", url)

    assert caught.value.argument == "url"
    assert "hunter22" not in str(caught.value)


def test_http_may_be_allowed() -> None:
    """An argument of the provider allows plain http inside a trusted network."""
    assert parse_api_server("url", "http://git.internal/", allow_http=True).url == "http://git.internal"
