"""GitLab's responses that nobody had listed, over a socket: the exit code, what resolve finds, and a second run.

The cases are those of tests/gitlab/test_unlisted.py, as somebody meets them on the command line and in ``ensure_``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gitprovider import RetryOptions, Verdict
from gitprovider.ensure import ensure_branch, ensure_files, ensure_merged, ensure_protection, ensure_repo
from gitprovider.errors import GitProviderError
from gitprovider.fakes.faults import Fault, FaultScript, FaultyHost, RequestLog
from gitprovider.fakes.gitlab.server import FakeGitLab
from gitprovider.fakes.serve import serving
from gitprovider.gitlab import GitLabProvider
from gitprovider.local import Forge
from gitprovider.models import BranchProtection, MergeMethod, PutFile
from tests.support.command_line import Run

TOKEN = "t0ken-" + "x" * 30
REPO = "acme/widgets"
PAGE = b"<html><body>404</body></html>"


@dataclass
class Served:
    """A fake GitLab on a loopback port, with a merge request from a branch ``feature``."""

    forge: Forge
    fake: FakeGitLab
    script: FaultScript = field(default_factory=FaultScript)
    log: RequestLog = field(default_factory=RequestLog)
    url: str = ""

    @property
    def options(self) -> list[str]:
        return ["--provider", "gitlab", "--url", self.url, "--json", "--retries", "0"]

    def provider(self) -> GitLabProvider:
        return GitLabProvider(self.url, private_token=TOKEN, retry=RetryOptions(max_attempts=1))

    def commit(self, branch: str, name: str) -> None:
        head = self.forge.head(REPO, branch)
        tree = self.forge.write_tree(REPO, head, {name: (self.forge.write_blob(REPO, b"new\n"), "100644")})
        sha = self.forge.write_commit(REPO, tree=tree, parents=[head], message="change")
        self.forge.move_branch(REPO, branch, sha, expected=head, bypass=True)

    def respond(self, method: str, endpoint: str, status: int, body: Any, **known: Any) -> None:
        data, kind = (body, "text/html") if isinstance(body, bytes) else (json.dumps(body).encode(), "application/json")
        headers = {"Content-Type": kind}
        self.script.add(
            Fault(kind="status", method=method, endpoint=endpoint, status=status, body=data, headers=headers, **known)
        )


@contextmanager
def opened(root: Path) -> Iterator[Served]:
    forge = Forge(root, combine=FakeGitLab.combine)
    served = Served(forge, FakeGitLab(forge, token=TOKEN))
    forge.create_repo(REPO, auto_init=True)
    for name in ("feature", "other"):
        forge.create_branch(REPO, name, forge.head(REPO, "main"))
        served.commit(name, f"{name}.txt")
    forge.open_pull_request(REPO, source_branch="feature", target_branch="main", title="A change")
    with serving(FaultyHost(served.fake, served.log, served.script)) as served.url:
        yield served


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("GITPROVIDER_TOKEN", TOKEN)
    monkeypatch.delenv("GITPROVIDER_ROOT")
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    (tmp_path / "new.txt").write_text("new\n")
    with opened(tmp_path / "served") as found:
        yield found


COMMIT = ["commit-files", REPO, "main", "--put", "new.txt=new.txt", "-m", "New"]
BRANCH = ["create-branch", REPO, "dev", "--source", "main"]
OPEN = ["open-pull-request", REPO, "--source-branch", "other", "--target-branch", "main", "--title", "Other"]
MERGE = ["merge-pull-request", REPO, "1", "--delete-source-branch"]
PROTECT = ["protect-branch", REPO, "main"]
REFRESH = "Could not update refs/heads/main. Please refresh and try again."
OFF = {"message": "404 Repository Not Found"}
SCHEMA = {"errors": [{"message": "RefType isn't a defined input type (on $type)"}]}


def merged(served: Served) -> None:
    served.forge.merge(REPO, 1, method=MergeMethod.MERGE, bypass=True)


def weak(served: Served) -> None:
    served.forge.put_rule(REPO, "main", BranchProtection.nothing())


@dataclass(frozen=True)
class Case:
    """What is staged, the command, and how it ends: the exit code, the error and its outcome.

    Attributes:
        found: what resolve says of the error; None where it is not asked.
        again: the exit code of the same command afterwards; None where it is not repeated.
    """

    stage: Callable[[Served], Any]
    command: list[str]
    code: int
    error: str = ""
    outcome: str = "not_applied"
    found: Verdict | None = None
    again: int | None = None


def faulty(method: str, endpoint: str, status: int, body: Any, **known: Any) -> Callable[[Served], Any]:
    return lambda served: served.respond(method, endpoint, status, body, **known)


def both(*stages: Callable[[Served], Any]) -> Callable[[Served], Any]:
    return lambda served: [stage(served) for stage in stages]


def lost_rule(served: Served) -> None:
    weak(served)
    served.script.add(Fault(kind="reset", method="POST", endpoint="/protected_branches$", nth=2))


def refused(text: str) -> Callable[[Served], Any]:
    return faulty("POST", "/commits$", 400, {"message": text})


UNAVAILABLE, UNEXPECTED, DENIED = "ProviderUnavailableError", "UnexpectedResponseError", "PermissionDeniedError"
CASES: dict[str, Case] = {
    "K1-1 a commit": Case(
        faulty("POST", "/commits$", 400, {"message": "4:Deadline Exceeded"}, when="after"),
        COMMIT, 8, UNAVAILABLE, "unknown", Verdict.APPLIED,
    ),
    "K1-1 a branch": Case(
        faulty("POST", "/branches$", 400, {"message": "rpc error: code = Unavailable desc = x"}, when="after"),
        BRANCH, 8, UNAVAILABLE, "unknown", Verdict.APPLIED,
    ),
    "K1-1 a merge": Case(
        faulty("PUT", "/merge$", 422, {"message": "13:internal"}, when="after"),
        MERGE, 8, UNAVAILABLE, "unknown", Verdict.APPLIED,
    ),
    "K1-2": Case(faulty("POST", "/commits$", 400, {"message": REFRESH}), COMMIT, 7, UNAVAILABLE, again=0),
    "K1-3": Case(
        faulty("POST", "/branches$", 400, {"message": "9:Could not update refs/heads/dev. Please refresh"},
               when="after"),
        BRANCH, 5, "AlreadyExistsError", again=5,
    ),
    "K2-1": Case(faulty("GET", r"/projects/\{\w+\}$", 404, PAGE), ["get-repo", REPO], 7, UNEXPECTED, again=0),
    "K2-2": Case(
        both(merged, faulty("DELETE", "/branches/", 404, PAGE)), MERGE, 8, UNEXPECTED, "partial", again=0
    ),
    "K2-3": Case(
        both(weak, faulty("DELETE", "/protected_branches", 404, PAGE)), PROTECT, 8, UNEXPECTED, "partial", again=0
    ),
    "K2-9": Case(faulty("GET", "/branches$", 404, OFF), ["list-branches", REPO], 4, DENIED, again=0),
    "K3-1": Case(
        faulty("POST", "/branches$", 201, {"name": "else", "commit": {"id": "1" * 40}}, when="after"),
        BRANCH, 8, UNEXPECTED, "unknown", Verdict.APPLIED,
    ),
    "K3-3": Case(
        both(lambda served: setattr(served.fake, "late_sha", True),
             faulty("GET", "/branches/", 404, {"message": "404 Branch Not Found"})),
        OPEN, 8, "NotFoundError", "partial",
    ),
    "K3-4": Case(
        lambda served: served.script.add(
            Fault(kind="redirect", status=301, endpoint="/projects/", times=None,
                  headers={"Location": "https://other.example.org/api/v4/projects/1"})
        ),
        ["get-repo", REPO], 3, "RepoMovedError",
    ),
    "K3-7": Case(
        lambda served: served.forge.put_rule(REPO, "feature", BranchProtection()), MERGE, 8, DENIED, "partial"
    ),
    "K4-1 a secret": Case(refused("PUSH BLOCKED: Secrets detected in code changes"), COMMIT, 4, DENIED, again=0),
    "K4-1 a quota": Case(refused("This repository has exceeded its size limit"), COMMIT, 4, DENIED, again=0),
    "K4-1 a hook": Case(refused("pre-receive hook declined"), COMMIT, 4, DENIED, again=0),
    "K4-1 a signature": Case(refused("GitLab: Commit must be signed"), COMMIT, 4, DENIED, again=0),
    "K4-1 a lock": Case(refused("The path 'x' is locked by another user"), COMMIT, 5, "ConflictError", again=0),
    "K4-3": Case(
        lambda served: served.forge.create_branch(
            REPO, "apart", served.forge.write_commit(
                REPO, tree=served.forge.write_tree(REPO, None, {}), parents=[], message="Begin"
            )
        ),
        [*OPEN[:3], "apart", *OPEN[4:]], 5, "ConflictError",
    ),
    "K4-6": Case(faulty("POST", "/graphql", 200, SCHEMA, times=None), COMMIT, 0),
    "K4-7": Case(faulty("GET", "/projects/", 407, PAGE), ["get-repo", REPO], 7, UNAVAILABLE, again=0),
    "K5-3": Case(
        lambda served: served.fake.merge_statuses.update({(REPO, 1): "ci_still_running"}),
        MERGE, 5, "NotMergeableError",
    ),
    "K6-1": Case(
        lambda served: served.forge.open_pull_request(
            REPO, source_branch="other", target_branch="feature", title="Stacked"
        ),
        MERGE, 8, "ConflictError", "partial",
    ),
    "K6-2": Case(lost_rule, PROTECT, 8, UNAVAILABLE, "partial", Verdict.UNDECIDED, again=0),
    "K6-4": Case(lambda served: None, [*PROTECT, "--required-approvals", "1"], 2, "UnsupportedOptionError"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_command_line_tells_how_it_ended(run: Run, served: Served, tmp_path: Path, name: str) -> None:
    """A script acts on the exit code: 8 where it must ask first, and any other where nothing was changed."""
    case = CASES[name]
    case.stage(served)

    ran = run(*served.options, *case.command)

    assert ran.code == case.code, ran.out
    if case.error:
        assert (ran.error["type"], ran.error["outcome"]) == (case.error, case.outcome), ran.error
    served.script.clear()
    if case.found is not None:
        (tmp_path / "failed.json").write_text(ran.out)
        found = run(*served.options[2:], "resolve", "failed.json")
        assert found.document["verdict"] == case.found.value, found.out
        assert found.code == (8 if case.found is Verdict.UNDECIDED else 0)
    if case.again is not None:
        assert run(*served.options, *case.command).code == case.again


def rules(served: Served) -> set[str]:
    return {rule.pattern for rule in served.forge.rules(REPO)}


FILES = [PutFile(path="new.txt", content="new\n")]
ENSURED: dict[str, tuple[Callable[[Served], Any], Callable[[GitLabProvider], Any], Callable[[Served], bool]]] = {
    "K1-1": (
        faulty("POST", "/commits$", 400, {"message": "14:connections to all backends failing"}, when="after"),
        lambda p: ensure_files(p, REPO, "main", FILES, message="New"),
        lambda served: True,
    ),
    "K1-3": (
        faulty("POST", "/branches$", 400, {"message": "cannot lock ref 'refs/heads/dev'"}, when="after"),
        lambda p: ensure_branch(p, REPO, "dev", source="main"),
        lambda served: "dev" in dict(served.forge.branches(REPO)),
    ),
    "K2-1": (
        faulty("GET", r"/projects/\{\w+\}$", 404, PAGE),
        lambda p: ensure_repo(p, REPO),
        lambda served: served.log.mutations() == [],
    ),
    "K2-2": (
        both(merged, faulty("DELETE", "/branches/", 404, PAGE)),
        lambda p: ensure_merged(p, REPO, 1, delete_source_branch=True),
        lambda served: "feature" not in dict(served.forge.branches(REPO)),
    ),
    "K6-2": (lost_rule, lambda p: ensure_protection(p, REPO, "main"), lambda served: rules(served) == {"main"}),
    "K6-2 a page": (
        both(weak, faulty("DELETE", "/protected_branches", 404, PAGE, nth=2)),
        lambda p: ensure_protection(p, REPO, "main"),
        lambda served: rules(served) == {"main"},
    ),
}


@pytest.mark.parametrize("name", ENSURED)
def test_ensure_again_finishes_and_then_changes_nothing(served: Served, name: str) -> None:
    """After the failure, one more run leaves what one run leaves, and the run after that sends no mutation."""
    stage, ensure, is_done = ENSURED[name]
    stage(served)
    with served.provider() as provider:
        try:
            ensure(provider)
        except GitProviderError:
            ensure(provider)
        sent = len(served.log.mutations())

        last = ensure(provider)

    assert not last.changed
    assert len(served.log.mutations()) == sent
    assert is_done(served)
