"""Intents that outlive the process: what a store is told, what its keys refuse, and what is found out after a crash."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gitprovider import (
    BranchProtection,
    ConflictError,
    DeleteFile,
    GitProviderError,
    Intent,
    InvalidRequestError,
    MergeMethod,
    Outcome,
    ProviderUnavailableError,
    PutFile,
    SqliteIntentStore,
    Verdict,
    Visibility,
    connect,
    ensure_branch,
    ensure_change,
    ensure_files,
    recover,
    remembered,
    resolve,
)
from gitprovider._core.provider import Provider
from gitprovider.aio import AsyncGitProvider
from gitprovider.ensure import Settling
from gitprovider.fakes.faults import Fault
from tests.support import calls
from tests.support.hosts import EFFECTS, KINDS, Host, Kind, given_project, host
from tests.support.keyed import ensure
from tests.support.memory import Clock, MemoryProvider

REPO = "acme/widgets"
NOW = datetime(2026, 12, 1, tzinfo=UTC)
CALLS = {
    call.name: call
    for call in (
        calls.create_repo("acme/new", Visibility.PRIVATE),
        calls.create_branch("topic", "main"),
        calls.protect_branch("main", BranchProtection()),
        calls.commit_files("later", [PutFile(path="b.txt", content="b\n")], "Add b"),
        calls.open_pull_request("later", "Later"),
        calls.merge_pull_request(1, MergeMethod.MERGE, False),
    )
}


class DictStore:
    """A store of somebody else's: no more than the protocol asks for. It notes what it is told."""

    def __init__(self) -> None:
        self.intents: dict[str, Intent] = {}
        self.told: list[tuple[str, Intent | None]] = []

    def put(self, key: str, intent: Intent) -> None:
        if key in self.intents:
            raise ConflictError("taken")
        self.intents[key] = intent
        self.told.append(("put", intent))

    def get(self, key: str) -> Intent | None:
        return self.intents.get(key)

    def done(self, key: str) -> None:
        self.intents.pop(key, None)
        self.told.append(("done", None))

    def unresolved(self) -> list[tuple[str, Intent]]:
        return list(self.intents.items())


def an_intent(**known: Any) -> Intent:
    """The intent of a create_branch that was in flight an hour ago."""
    given: dict[str, Any] = {"branch": "topic", "source_sha": "a" * 40, "sent_at": NOW - timedelta(hours=1)}
    return Intent(**{"operation": "create_branch", "provider": "local", "repo": REPO, **given, **known})


@pytest.fixture(params=KINDS)
def behind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    """A host with a project, and nothing in its request log."""
    with host(request.param, tmp_path / "forge") as behind:
        given_project(behind.forge, REPO)
        behind.forget()
        yield behind


@pytest.fixture
def store(tmp_path: Path) -> SqliteIntentStore:
    return SqliteIntentStore(tmp_path / "intents.sqlite3")


def provider_of(behind: Host, **settings: Any) -> Any:
    """The host's provider, with a hook or a store."""
    provider: Any = behind.provider
    assert isinstance(provider, Provider)
    provider._remember(settings.get("before_effect"), settings.get("intents"))
    return provider


@pytest.mark.parametrize("name", CALLS)
def test_a_hook_gets_the_complete_intent_before_the_effect_is_sent(behind: Host, name: str) -> None:
    """What a hook stores would not be enough to find out what became of the mutation, or would come too late."""
    heard: list[tuple[Intent, int]] = []
    provider = provider_of(behind, before_effect=lambda intent: heard.append((intent, len(effects(behind, name)))))

    CALLS[name].do(provider)

    ((intent, sent),) = heard
    assert sent == (1 if (behind.kind, name) == ("local", "commit_files") else 0)  # it is inside the forge's write
    assert Intent.from_json(intent.to_json()) == intent
    assert resolve(provider, intent).verdict is Verdict.APPLIED


def effects(behind: Host, name: str) -> list[str]:
    """The requests for that effect, from the request log."""
    method, endpoint = EFFECTS[behind.kind][name]
    last = endpoint.rstrip("\\Z").rpartition("/")[2]
    where = [(sent, sent if "graphql" in last else sent.partition(" [")[0]) for sent in behind.sent()]
    return [sent for sent, searched in where if sent.startswith(method) and re.search(last, searched)]


@pytest.mark.parametrize("name", CALLS)
def test_a_hook_that_raises_prevents_the_effect(behind: Host, name: str) -> None:
    """A mutation that nobody could remember would be sent."""
    provider = provider_of(behind, before_effect=lambda intent: 1 / 0)

    with pytest.raises(GitProviderError) as caught:
        CALLS[name].do(provider)

    assert (caught.value.outcome, type(caught.value.__cause__)) == (Outcome.NOT_APPLIED, ZeroDivisionError)
    assert not CALLS[name].holds(behind.forge)
    assert caught.value.intent is not None
    assert caught.value.intent.sent_at is None


@pytest.mark.parametrize("name", CALLS)
def test_a_store_that_cannot_be_written_prevents_the_effect(behind: Host, name: str, tmp_path: Path) -> None:
    """A mutation under a key would be sent although a crash would forget it."""
    (tmp_path / "file").write_text("")
    provider = provider_of(behind)

    with (
        remembered(SqliteIntentStore(tmp_path / "file" / "store"), "k"),
        pytest.raises(ProviderUnavailableError) as caught,
    ):
        CALLS[name].do(provider)

    assert (caught.value.outcome, caught.value.transient) == (Outcome.NOT_APPLIED, False)
    assert "intent store" in caught.value.message
    assert not CALLS[name].holds(behind.forge)


@pytest.mark.parametrize("name", CALLS)
def test_a_store_is_told_before_the_effect_and_after_its_acknowledgement(behind: Host, name: str) -> None:
    """The intent would be missing after a crash, or stay although the result is known."""
    told = DictStore()

    with remembered(told, "k"):
        CALLS[name].do(provider_of(behind))

    assert [what for what, _ in told.told] == ["put", "done"]
    assert told.intents == {}


@pytest.mark.parametrize("kind", ["github", "gitlab"])
@pytest.mark.parametrize("name", CALLS)
def test_a_certain_refusal_is_told_and_a_lost_response_is_not(kind: Kind, name: str, tmp_path: Path) -> None:
    """A refused mutation would block its key, or the intent of a lost one would be forgotten."""
    method, endpoint = EFFECTS[kind][name]
    for fault, kept in ((Fault(kind="status", status=429), False), (Fault(kind="reset"), True)):
        told = DictStore()
        with host(kind, tmp_path / fault.kind) as behind:
            given_project(behind.forge, REPO)
            behind.arm(replace(fault, method=method, endpoint=endpoint))
            with remembered(told, "k"), pytest.raises(GitProviderError) as caught:
                CALLS[name].do(provider_of(behind))

        assert ("k" in told.intents) is kept
        assert (caught.value.outcome is Outcome.UNKNOWN) is kept


def test_a_lost_response_is_stored_with_the_time_of_its_loss(tmp_path: Path, store: SqliteIntentStore) -> None:
    """A restart would count the settle time from the start of a long upload."""
    with host("github", tmp_path / "forge") as behind:
        given_project(behind.forge, REPO)
        behind.arm(Fault(kind="reset", method="POST", endpoint="/git/refs"))
        with remembered(store, "k"), pytest.raises(GitProviderError) as caught:
            CALLS["create_branch"].do(behind.provider)

    assert caught.value.intent is not None
    assert caught.value.intent.lost_at is not None
    assert store.get("k") == caught.value.intent


@pytest.mark.parametrize("name", CALLS)
def test_an_unresolved_key_refuses_every_mutation_before_any_request(
    behind: Host, name: str, store: SqliteIntentStore
) -> None:
    """A key would serve two mutations, or one mutation twice."""
    store.put("k", an_intent())

    with remembered(store, "k"), pytest.raises(ConflictError) as caught:
        CALLS[name].do(provider_of(behind))

    assert (caught.value.outcome, caught.value.code) == (Outcome.NOT_APPLIED, "key-unresolved")
    assert behind.sent() == []
    assert store.get("k") == an_intent()


@pytest.mark.parametrize("name", [name for name in CALLS if name != "create_branch"])
def test_an_ensure_function_refuses_the_key_of_another_mutation(
    behind: Host, name: str, store: SqliteIntentStore
) -> None:
    """A key's unresolved mutation would be taken for another one, and be forgotten."""
    store.put("k", an_intent(provider=behind.kind))

    with pytest.raises(ConflictError, match="another mutation"):
        ensure(provider_of(behind, intents=store), name, key="k")

    assert behind.sent() == []
    assert store.get("k") is not None


@pytest.mark.parametrize(
    "other",
    [
        {"message": "Another"},
        {"changes": [PutFile(path="b.txt", content="other\n")]},
        {"changes": [PutFile(path="c.txt", content="b\n")]},
        {"changes": [DeleteFile(path="b.txt")]},
        {"branch": "change"},
        {"repo": "acme/others"},
    ],
)
def test_a_commit_of_other_content_is_another_mutation(
    tmp_path: Path, store: SqliteIntentStore, other: dict[str, Any]
) -> None:
    """A commit in flight would be forgotten because one of other content was asked for under its key."""
    with host("local", tmp_path / "forge") as behind:
        given_project(behind.forge, REPO)
        heard: list[Intent] = []
        ensure(provider_of(behind, before_effect=heard.append), "commit_files")
        store.put("k", heard[0])
        behind.forget()

        with pytest.raises(ConflictError, match="another mutation"):
            ensure(provider_of(behind, intents=store), "commit_files", key="k", **other)

        assert (behind.sent(), store.get("k")) == ([], heard[0])


@pytest.mark.parametrize("applied", [True, False], ids=["applied", "not applied"])
@pytest.mark.parametrize("name", CALLS)
def test_a_stored_intent_is_resolved_first(behind: Host, name: str, applied: bool, store: SqliteIntentStore) -> None:
    """An effect that a killed process sent would be sent again, or never."""
    heard: list[Intent] = []

    def crash(intent: Intent) -> None:
        heard.append(intent)
        if not applied:
            raise InterruptedError

    if applied:
        ensure(provider_of(behind, before_effect=crash), name)
    else:
        with pytest.raises(GitProviderError):
            ensure(provider_of(behind, before_effect=crash), name)
    store.put("k", heard[0])
    provider = provider_of(behind, intents=store)
    later = Settling(now=lambda: datetime.now(UTC) + timedelta(hours=1))
    behind.forget()

    ensured = ensure(provider, name, key="k", settling=later)

    assert ensured.changed is not applied
    assert len(effects(behind, name)) == (0 if applied else 1)
    assert CALLS[name].holds(behind.forge)
    assert store.unresolved() == []


def test_an_undecided_intent_is_not_overwritten(tmp_path: Path, store: SqliteIntentStore) -> None:
    """A mutation that only a person can judge would be sent again."""
    with host("local", tmp_path / "forge") as behind:
        given_project(behind.forge, REPO)
        stored = Intent(operation="commit_files", provider="local", repo=REPO, branch="later", sent_at=NOW)
        store.put("k", stored)

        with pytest.raises(ConflictError, match="unresolved"):
            ensure(provider_of(behind, intents=store), "commit_files", key="k")

        assert (behind.sent(), store.get("k")) == ([], stored)


def test_each_step_of_a_change_has_a_key_that_is_resolved_before_the_first_look(
    tmp_path: Path, store: SqliteIntentStore
) -> None:
    """A merge in flight would be looked over, and its deleted branch be created again."""
    with host("github", tmp_path / "forge") as behind:
        given_project(behind.forge, REPO)
        provider = provider_of(behind, intents=store)
        files = [PutFile(path="c.txt", content="c\n")]
        asked: dict[str, Any] = {"source_branch": "topic", "target_branch": "main", "title": "Add c"}
        behind.arm(Fault(kind="reset", method="PUT", endpoint="/merge", when="after"))
        with pytest.raises(GitProviderError):
            ensure_change(provider, REPO, files, **asked, key="c")
        assert [key for key, _ in store.unresolved()] == ["c:merge_pull_request"]
        behind.disarm()
        later = Settling(now=lambda: datetime.now(UTC) + timedelta(hours=1))

        with pytest.raises(ConflictError, match="another mutation"):
            ensure_change(provider, REPO, files, **asked, method=MergeMethod.SQUASH, key="c", settling=later)
        behind.forget()
        assert ensure_change(provider, REPO, files, **asked, key="c", settling=later).changed

        assert [line.split()[0] for line in behind.sent()] == ["DELETE"]
        assert store.unresolved() == []


def test_a_key_needs_a_store(tmp_path: Path) -> None:
    """A key would be accepted and ignored."""
    other = MemoryProvider(Clock())
    for provider in (connect("local", root=tmp_path), other):
        with pytest.raises(InvalidRequestError, match="intents="):
            ensure_branch(provider, REPO, "x", source="main", key="k")


@pytest.mark.parametrize("intents", ["store.db", {}, 1])
def test_what_is_not_a_store_is_refused(tmp_path: Path, intents: Any) -> None:
    """A path given as a store would be found out at the first mutation, or never."""
    with pytest.raises(InvalidRequestError, match="intents: must have put, get, done and unresolved"):
        connect("local", root=tmp_path, intents=intents)
    with pytest.raises(InvalidRequestError, match="store: must have"), remembered(intents, "k"):
        pass
    with pytest.raises(InvalidRequestError, match="before_effect: must be a function"):
        connect("local", root=tmp_path, before_effect=intents)


@pytest.mark.parametrize("key", ["", " ", "x" * 501, "a\nb", "\ud800", None, 1, b"k"])
def test_a_bad_key_is_refused_before_any_request(tmp_path: Path, store: SqliteIntentStore, key: Any) -> None:
    """A key that a store cannot hold would be found out after the effect."""
    with host("local", tmp_path / "forge") as behind:
        given_project(behind.forge, REPO)
        provider = provider_of(behind, intents=store)
        uses: list[Callable[[], Any]] = [
            lambda: remembered(store, key).__enter__(),
            lambda: store.put(key, an_intent()),
            lambda: store.get(key),
            lambda: store.done(key),
        ]
        if key is not None:
            uses.append(lambda: ensure(provider, "create_branch", key=key))
        for use in uses:
            with pytest.raises(InvalidRequestError, match="key: "):
                use()
        assert behind.sent() == []
    store.put("x" * 500, an_intent())


def test_two_mutations_at_once_under_one_key_are_refused(tmp_path: Path, store: SqliteIntentStore) -> None:
    """Two tasks in one block would overwrite each other's intents."""
    with host("local", tmp_path / "forge") as behind:
        given_project(behind.forge, REPO)
        caught: list[GitProviderError] = []

        def second(intent: Intent) -> None:
            try:
                provider.create_branch(REPO, "second", source="main")
            except GitProviderError as error:
                caught.append(error)

        provider = provider_of(behind, before_effect=second)
        with remembered(store, "k"):
            CALLS["create_branch"].do(provider)

    assert [(error.code, error.outcome) for error in caught] == [("key-in-use", Outcome.NOT_APPLIED)]


def test_a_key_serves_the_next_mutation_after_the_last_is_known(tmp_path: Path, store: SqliteIntentStore) -> None:
    """A nightly job could use its key only once."""
    with host("local", tmp_path / "forge") as behind:
        given_project(behind.forge, REPO)
        provider = provider_of(behind, intents=store)
        for _ in range(2):
            with remembered(store, "k"):
                provider.create_branch(REPO, "topic", source="main")
                provider.forge.delete_branch(REPO, "topic")
            assert ensure(provider, "create_branch", key="k").changed
            provider.forge.delete_branch(REPO, "topic")

    assert store.unresolved() == []


def test_coroutines_remember_too(tmp_path: Path) -> None:
    """The block would have no effect on the worker thread that sends."""
    import asyncio

    told = DictStore()

    async def work() -> None:
        async with AsyncGitProvider(connect("local", root=tmp_path)) as git:
            with remembered(told, "k"):
                await git.create_repo("acme/new")

    asyncio.run(work())

    assert [what for what, _ in told.told] == ["put", "done"]


# The SQLite store


def test_the_file_is_the_user_s_own(store: SqliteIntentStore) -> None:
    """Others could read what a user does."""
    store.put("k", an_intent())

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in store.path.parent.iterdir()}

    assert set(modes.values()) == {0o600}, modes


def test_intents_are_told_the_oldest_first_and_to_other_processes(store: SqliteIntentStore) -> None:
    """A restart would not see what another process has stored."""
    told = [("b", an_intent(branch="b")), ("a", an_intent(branch="a"))]
    for key, intent in told:
        store.put(key, intent)
    other = SqliteIntentStore(store.path)

    assert other.unresolved() == told
    other.done("b")
    other.done("b")
    other.done("never")
    assert store.unresolved() == told[1:]
    assert store.get("b") is None


def test_reading_a_store_that_does_not_exist_creates_nothing(store: SqliteIntentStore) -> None:
    """A question would leave files behind."""
    assert (store.get("k"), store.unresolved(), list(store.path.parent.iterdir())) == (None, [], [])


def damage(path: Path, name: str) -> None:
    """Put a file there that is no store of this version."""
    if name == "garbage":
        path.write_bytes(b"garbage" * 1000)
        return
    if name == "a directory":
        path.mkdir()
        return
    if name in ("a newer version", "a damaged intent", "an unknown field", "an unknown operation"):
        SqliteIntentStore(path).put("k", an_intent())
    with sqlite3.connect(path) as db:
        if name == "a newer version":
            db.execute("PRAGMA user_version = 2")
        elif name == "a damaged intent":
            db.execute("UPDATE intents SET intent = 'x'")
        elif name == "an unknown field":
            db.execute("UPDATE intents SET intent = json_set(intent, '$.later', 1)")
        elif name == "another program's":
            db.execute("CREATE TABLE things (x)")
    db.close()


@pytest.mark.parametrize(
    "name", ["garbage", "a directory", "a newer version", "a damaged intent", "an unknown field", "another program's"]
)
def test_a_store_that_cannot_be_used_is_a_clear_error_and_nothing_is_sent(tmp_path: Path, name: str) -> None:
    """A mutation would be sent beside a store that may know of an earlier one."""
    path = tmp_path / "store"
    damage(path, name)
    store = SqliteIntentStore(path)
    with host("local", tmp_path / "forge") as behind:
        given_project(behind.forge, REPO)
        uses: list[Callable[[], Any]] = [
            lambda: store.get("k"),
            lambda: store.put("k", an_intent()),
            lambda: store.done("k"),
            store.unresolved,
            lambda: ensure(provider_of(behind, intents=store), "create_branch", key="k"),
        ]
        for use in uses:
            with pytest.raises(ProviderUnavailableError) as caught:
                use()
            assert (caught.value.transient, caught.value.outcome) == (False, Outcome.NOT_APPLIED)
            assert str(path) in caught.value.message
            assert caught.value.hint
        assert behind.sent() == []


def test_an_empty_file_is_made_a_store(tmp_path: Path) -> None:
    """A file that a process created before it was killed would never be usable."""
    (tmp_path / "store").touch()
    store = SqliteIntentStore(tmp_path / "store")

    assert store.unresolved() == []
    store.put("k", an_intent())
    assert store.get("k") == an_intent()


@pytest.mark.parametrize("same", [True, False])
def test_of_many_threads_one_gets_the_key(tmp_path: Path, same: bool) -> None:
    """Two callers would both believe that they may send."""
    got: list[str] = []
    together = threading.Barrier(8)

    def claim(number: int) -> None:
        store = SqliteIntentStore(tmp_path / "store")
        together.wait()
        try:
            store.put("k", an_intent(branch="b" if same else f"b{number}"))
            got.append("put")
        except ConflictError:
            got.append("conflict")

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(got) == ["conflict"] * 7 + ["put"]


def test_a_running_call_keeps_its_key(tmp_path: Path, store: SqliteIntentStore) -> None:
    """A slow mutation would be taken for a lost one as soon as the settle time is over."""
    answers: list[str] = []

    def others() -> None:
        for other in (SqliteIntentStore(store.path), store):

            def ask(other: SqliteIntentStore = other) -> None:
                uses: list[Callable[[], Any]] = [
                    lambda: other.get("k"),
                    lambda: other.put("k", an_intent()),
                    lambda: other.done("k"),
                ]
                for use in uses:
                    try:
                        use()
                    except ConflictError as error:
                        answers.append(f"{error.code} {error.retryable}")
                answers.append(str(other.unresolved()))

            thread = threading.Thread(target=ask)
            thread.start()
            thread.join()
        asked = (
            "import sys; from gitprovider import *; s = SqliteIntentStore(sys.argv[1]);"
            "print(s.unresolved()); s.get('k')"
        )
        ran = subprocess.run(
            [sys.executable, "-c", asked, str(store.path)], capture_output=True, text=True, check=False
        )
        answers.append(f"{ran.stdout.strip()} {ran.stderr.splitlines()[-1]}")

    with host("local", tmp_path / "forge") as behind:
        given_project(behind.forge, REPO)
        forge = provider_of(behind).forge
        create = forge.create_branch

        def asked_meanwhile(*args: Any) -> None:
            others()
            create(*args)

        forge.create_branch = asked_meanwhile
        with remembered(store, "k"):
            behind.provider.create_branch(REPO, "topic", source="main")

    assert answers[:-1] == [*["key-in-use True"] * 3, "[]"] * 2
    assert answers[-1].startswith("[] gitprovider.errors.ConflictError: the key 'k' is in use")
    assert store.unresolved() == []


def test_a_call_that_looked_before_another_one_sent_does_not_send(tmp_path: Path, store: SqliteIntentStore) -> None:
    """Of two processes with one key, the slower one would send again what the other one has finished."""
    with host("local", tmp_path / "forge") as behind:
        given_project(behind.forge, REPO)
        slow: Any = provider_of(behind, intents=store)
        fast: Any = connect("local", root=behind.forge.root, intents=store)
        head = slow.head

        def overtaken(repo: str, branch: str) -> str:
            slow.head = head
            found: str = head(repo, branch)
            thread = threading.Thread(target=lambda: ensure(fast, "create_branch", key="k"))
            thread.start()
            thread.join()
            fast.forge.delete_branch(REPO, "topic")  # what the slow one reads next is as it was
            return found

        slow.head = overtaken

        with pytest.raises(ConflictError, match="another call used the key") as caught:
            ensure(slow, "create_branch", key="k")

        assert (caught.value.outcome, caught.value.retryable) == (Outcome.NOT_APPLIED, True)
        assert behind.sent() == []
        assert not CALLS["create_branch"].holds(behind.forge)
        assert ensure(slow, "create_branch", key="k").changed


def test_a_killed_call_counts_as_lost_when_it_is_first_seen(tmp_path: Path) -> None:
    """A process killed at the end of a long upload would have a settle time that is over already."""
    program = (
        "import os, signal, sys; from gitprovider import *; p = connect('local', root=sys.argv[1]);"
        "p.create_repo('acme/x', auto_init=True);"
        "p.forge.create_branch = lambda *a: os.kill(os.getpid(), signal.SIGKILL);\n"
        "with remembered(SqliteIntentStore(sys.argv[2]), 'k'): p.create_branch('acme/x', 'topic', source='main')"
    )
    path = tmp_path / "store"
    ran = subprocess.run([sys.executable, "-c", program, str(tmp_path / "forge"), str(path)], check=False)
    assert ran.returncode == -9
    started = datetime.now(UTC)

    ((_, soon),) = SqliteIntentStore(path).unresolved()

    assert soon.sent_at is not None
    assert soon.lost_at is not None
    assert soon.sent_at < started <= soon.lost_at
    assert SqliteIntentStore(path, now=lambda: NOW + timedelta(days=9)).get("k") == soon


def test_a_resolved_key_is_forgotten_after_a_day(tmp_path: Path) -> None:
    """The file would grow for ever."""
    clock = [NOW]
    store = SqliteIntentStore(tmp_path / "store", now=lambda: clock[0])
    for number in range(3):
        store.put(f"k{number}", an_intent())
        store.done(f"k{number}")
    clock[0] += timedelta(days=2)
    store.put("k", an_intent())
    store.done("k")

    with sqlite3.connect(store.path) as db:
        keys = [key for (key,) in db.execute("SELECT key FROM intents")]
    db.close()

    assert keys == ["k"]


def test_a_forked_child_may_use_the_store(store: SqliteIntentStore) -> None:
    """A child would inherit its parent's claims, or release them."""
    with remembered(store, "k") as claim:
        claim.begin()  # type: ignore[attr-defined] # what the test needs to reach
        claim.send(an_intent())  # type: ignore[attr-defined] # what the test needs to reach
        child = os.fork()
        if child == 0:
            try:
                SqliteIntentStore(store.path).get("k")
                os._exit(1)
            except ConflictError:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        claim.end(None)  # type: ignore[attr-defined] # what the test needs to reach
    assert store.get("k") is None


# Recovery


def test_recover_tells_the_verdict_of_every_unresolved_intent(behind: Host, store: SqliteIntentStore) -> None:
    """After a restart nobody would know what the killed process had done."""
    head = dict(behind.forge.branches(REPO))["main"]
    behind.forge.create_branch(REPO, "applied", head)
    for name, known in {
        "applied": {},
        "absent": {},
        "main": {"source_sha": "b" * 40},
        "unreadable": {"repo": "acme/none"},
        "elsewhere": {"provider": "elsewhere"},
    }.items():
        given = {"provider": behind.kind, "repo": REPO, "source_sha": head, **known}
        store.put(name, replace(an_intent(branch=name), **given))  # type: ignore[arg-type] # what the test needs to reach
    behind.forget()

    found = {one.key: one.resolution for one in recover(behind.provider, store)}

    assert {key: resolution.verdict.value for key, resolution in found.items()} == {
        "applied": "applied",
        "absent": "not_applied",
        "main": "conflict",
        "unreadable": "undecided",
    }
    assert "could not be read" in found["unreadable"].detail
    assert behind.sent() == []
    assert len(store.unresolved()) == 5


def test_ensure_files_remembers_what_it_left_out(tmp_path: Path, store: SqliteIntentStore) -> None:
    """A commit of the missing files alone would be another mutation to its own repetition."""
    files = [PutFile(path="later.txt", content="later\n"), PutFile(path="b.txt", content="b\n")]
    with host("local", tmp_path / "forge") as behind:
        given_project(behind.forge, REPO)
        heard: list[Intent] = []
        ensure_files(provider_of(behind, before_effect=heard.append), REPO, "later", files, message="Add")
        assert list(heard[0].files) == ["b.txt"]
        store.put("k", heard[0])

        again = ensure_files(provider_of(behind, intents=store), REPO, "later", files, message="Add", key="k")

    assert (again.changed, store.unresolved()) == (False, [])
