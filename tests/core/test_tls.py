"""The TLS contexts of a provider: shared by its clients, and never weaker for it."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
import urllib3

from gitprovider._remote.session import LimitedAdapter, OneOriginSession, SessionSettings
from gitprovider.connect import connect
from gitprovider.errors import NotFoundError, ProviderUnavailableError
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.serve import serving
from gitprovider.local.forge import Forge
from gitprovider.retry import RetryOptions
from tests.support.patience import PATIENCE
from tests.support.tls import server_context

FAKES: dict[str, Any] = {"github": FakeGitHub, "gitlab": FakeGitLab}


@contextmanager
def served(kind: str, folder: Path, **options: Any) -> Iterator[tuple[Any, str]]:
    """A provider for a fake host over TLS, which trusts a bundle of its own, and the bundle's path."""
    context, bundle = server_context(folder, ["localhost"])
    fake = FAKES[kind](Forge(folder / "forge"))
    with serving(fake, tls=context) as url:
        url = url.replace("127.0.0.1", "localhost")
        given: dict[str, Any] = {"verify": bundle, "retry": RetryOptions(max_attempts=1), "timeout": PATIENCE} | options
        with connect(kind, url=url, token=fake.token, **given) as provider:
            yield provider, bundle


@pytest.fixture
def bundles_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The bundles of certificate authorities that were read."""
    read: list[str] = []
    original = ssl.SSLContext.load_verify_locations

    def load(self: Any, cafile: Any = None, capath: Any = None, cadata: Any = None) -> None:
        read.append(cafile or capath)
        original(self, cafile, capath, cadata)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", load)
    return read


@pytest.mark.parametrize("kind", FAKES)
def test_a_bundle_is_read_once_for_all_callers(kind: str, tmp_path: Path, bundles_read: list[str]) -> None:
    """Each new connection would parse the bundle anew, which costs more than all the rest of a request."""
    with served(kind, tmp_path, pool_size=0) as (provider, bundle):

        def cold(number: int) -> None:
            with pytest.raises(NotFoundError):
                provider.get_repo(f"acme/absent-{number}")

        with ThreadPoolExecutor(8) as callers:
            list(callers.map(cold, range(16)))

    assert bundles_read == [bundle]


def test_a_bundle_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    """A long-lived service would trust the old authority until it is started again."""
    (tmp_path / "other").mkdir()
    _, other = server_context(tmp_path / "other", ["localhost"])
    with served("gitlab", tmp_path, pool_size=0) as (provider, bundle):
        good = Path(bundle).read_bytes()
        os.replace(other, bundle)
        with pytest.raises(ProviderUnavailableError, match="certificate"):
            provider.get_repo("acme/absent")
        Path(bundle).with_name("good.pem").write_bytes(good)
        os.replace(Path(bundle).with_name("good.pem"), bundle)

        with pytest.raises(NotFoundError):
            provider.get_repo("acme/absent")


def test_a_request_without_verification_weakens_no_other(tmp_path: Path) -> None:
    """One request with verify=False would turn verification off for every client of the provider."""
    context, bundle = server_context(tmp_path, ["localhost"], valid_for=timedelta(days=-1))
    with serving(FakeGitLab(Forge(tmp_path / "forge")), tls=context) as url:
        url = url.replace("127.0.0.1", "localhost")
        with OneOriginSession(SessionSettings(url=url, timeout=PATIENCE, verify=bundle)) as session:
            with pytest.raises(requests.exceptions.SSLError):
                session.get(url)
            with pytest.warns(urllib3.exceptions.InsecureRequestWarning):
                assert session.get(url, verify=False).status_code == 404
            with pytest.raises(requests.exceptions.SSLError):
                session.get(url)


@pytest.mark.parametrize(
    ("proxy", "cert", "shares", "reads_again"),
    [
        (None, None, True, False),
        ("http://proxy.example", None, True, False),
        ("https://proxy.example", None, True, True),
        (None, "/mine.pem", False, True),
    ],
)
def test_what_has_other_certificates_shares_nothing_of_them(
    proxy: str | None, cert: str | None, shares: bool, reads_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would be verified by nothing, or one caller's client certificate would be shown for all."""
    monkeypatch.setattr("os.path.exists", lambda path: True)
    adapter = LimitedAdapter(
        SessionSettings(url="https://git.example.org", timeout=1, verify=True), urllib3.Retry(0, read=False)
    )
    request = requests.Request("GET", "https://git.example.org/").prepare()

    pool = adapter.get_connection_with_tls_context(request, True, {"https": proxy} if proxy else None, cert)
    adapter.cert_verify(pool, "https://git.example.org/", True, cert)

    assert (pool.conn_kw.get("ssl_context") is not None) is shares
    assert (pool.ca_certs is not None) is reads_again
