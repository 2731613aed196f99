"""The body of a large request: the same JSON, without a copy of it in memory, and byte for byte at the host."""

from __future__ import annotations

import base64
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gitprovider import PutFile
from gitprovider._remote.json_body import Base64, JsonBody, base64_of, large_body
from gitprovider.connect import connect
from gitprovider.errors import GitProviderError
from gitprovider.fakes.faults import Fault, FaultScript, FaultyHost
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.serve import serving
from gitprovider.local.forge import Forge
from gitprovider.retry import Limits
from tests.support.github_hub import running
from tests.support.patience import PATIENCE

REPO = "acme/widgets"
LARGE = 2 * 1024 * 1024 + 1
CONTENTS = {
    "binary": bytes(range(256)) * (LARGE // 256) + b"\xff",
    "text": 'a "line"\\\t\u00e9\U0001f600\n'.encode() * (LARGE // 16),
}


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, True, {}, [], {"b": ""}], "é": '\u2028\ud800\U0001f600"\\\n'},
        ["x" * 100_001, "\U0001f600" * 50_000],
        "",
    ],
)
def test_a_body_in_parts_is_the_json_of_its_value(value: Any) -> None:
    """The host would read another request than the one that was asked for, or wait for the rest of it."""
    body = JsonBody(value)

    assert b"".join(body) == json.dumps(value).encode()
    assert len(body) == len(b"".join(body))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 48 * 1024 - 1, 48 * 1024, 100_001])
def test_a_content_in_parts_is_one_base64(size: int) -> None:
    """Padding in the middle would cut the file at the host."""
    data = b"\xfe" * size

    assert json.loads(b"".join(JsonBody([Base64(data)]))) == [base64.b64encode(data).decode()]


def test_a_large_body_is_not_copied() -> None:
    """A file of 25 MB would cost four times its size."""
    body = {"files": [{"content": base64_of(CONTENTS["binary"])}, {"content": "x" * LARGE}]}
    tracemalloc.start()
    try:
        sent = large_body(body)
        assert sent is not None
        assert sum(map(len, sent)) == len(sent) > 2 * LARGE
        assert tracemalloc.get_traced_memory()[1] < LARGE / 4
    finally:
        tracemalloc.stop()


def test_a_small_body_is_left_to_the_sdk() -> None:
    """Every request would pass code that only large ones need."""
    assert large_body({"content": base64_of(b"small"), "list": ["x"] * 100}) is None
    assert large_body(None) is None


@pytest.mark.parametrize("deadline", [None, PATIENCE])
@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("fake_type", [FakeGitHub, FakeGitLab])
def test_a_large_file_arrives_byte_for_byte(
    fake_type: Any, content: str, deadline: float | None, tmp_path: Path
) -> None:
    """A large commit would be refused for its encoding, or hold another content."""
    forge = Forge(tmp_path, combine=fake_type.combine)
    forge.create_repo(REPO, auto_init=True)
    fake = fake_type(forge)
    kind = "github" if fake_type is FakeGitHub else "gitlab"
    limits = Limits(deadline=deadline)
    with serving(fake) as url, connect(kind, url=url, token=fake.token, timeout=PATIENCE, limits=limits) as provider:
        made = provider.commit_files(REPO, "main", [PutFile(path="f", content=CONTENTS[content])], message="m")

    assert forge.read_blob(REPO, forge.read_tree(REPO, made.sha)["f"].sha) == CONTENTS[content]


def test_a_mounted_fake_takes_a_large_file(tmp_path: Path) -> None:
    """A fake without a socket would fail for a body in parts."""
    with running(tmp_path) as hub:
        hub.given_repo(REPO)
        hub.provider.commit_files(REPO, "main", [PutFile(path="f", content=CONTENTS["binary"])], message="m")

        tree = hub.forge.read_tree(REPO, hub.forge.head(REPO, "main"))
        assert hub.forge.read_blob(REPO, tree["f"].sha) == CONTENTS["binary"]


FAULTS = {
    "lost": Fault(kind="reset", method="POST", when="after"),
    "unavailable": Fault(kind="status", status=503, method="POST"),
    "refused": Fault(kind="status", status=422, method="POST"),
    "too large": Fault(kind="status", status=413, method="POST"),
    "a login page": Fault(kind="html", method="POST"),
    "a redirect": Fault(kind="redirect", method="POST"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("fake_type", [FakeGitHub, FakeGitLab])
def test_a_large_commit_fails_as_a_small_one_does(fake_type: Any, fault: Fault, tmp_path: Path) -> None:
    """A large commit would be sent again, or its failure would say another outcome."""
    found = []
    for size, content in (("small", b"\xff"), ("large", CONTENTS["binary"])):
        forge = Forge(tmp_path / size, combine=fake_type.combine)
        forge.create_repo(REPO, auto_init=True)
        # Only the request with the content.
        script = FaultScript(replace(fault, endpoint="/(graphql createCommitOnBranch|repository/commits)$"))
        fake = fake_type(forge)
        host = FaultyHost(fake, script=script)
        kind = "github" if fake_type is FakeGitHub else "gitlab"
        with (
            serving(host) as url,
            connect(kind, url=url, token=fake.token, timeout=PATIENCE) as provider,
            pytest.raises(GitProviderError) as caught,
        ):
            provider.commit_files(REPO, "main", [PutFile(path="f", content=content)], message="m")
        error = caught.value
        sent = [(entry.method, entry.endpoint) for entry in host.request_log.mutations()]
        found.append((type(error), error.outcome, error.failed_step, error.code, sent))

    assert found[0] == found[1]
    assert len(found[0][-1]) == 1
