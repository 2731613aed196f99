"""An operation of a remote provider: its pages, and what it redacts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest

from gitprovider._core.operation import chain
from gitprovider._remote.failures import transport_error
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation
from gitprovider.errors import GitProviderError, Outcome, UnexpectedResponseError
from tests.support.fake_client import FakeClient


def remote_operation(client: FakeClient, **known: Any) -> RemoteOperation[FakeClient]:
    return RemoteOperation(
        "list_branches",
        "acme/widgets",
        client=client,
        authenticate=lambda op: None,
        provider="any",
        host="git.example.org",
        translate=lambda exc: transport_error(exc) or GitProviderError(str(exc)),
        **known,
    )


def listed(*pages: Sequence[object], more: Sequence[bool | None]) -> list[int]:
    return remote_operation(FakeClient(pages, more)).pages("/items", lambda item: item.int("iid"))


def test_whatever_an_exception_holds_is_scrubbed() -> None:
    """Attributes of any kind, a named tuple's included: no class of theirs is called with what it does not take."""
    exc = ValueError("hunter22", ["hunter22"])
    vars(exc).update(url=urlsplit("https://hunter22"), answers={"hunter22": b"hunter22"})
    op = remote_operation(FakeClient(), redact=lambda text: text.replace("hunter22", "***"))

    with pytest.raises(GitProviderError) as caught, op.before("read"):
        raise exc

    assert caught.value.__cause__ is exc
    assert "hunter22" not in f"{exc.args}{vars(exc)}{caught.value}"


@pytest.mark.parametrize("failure", [RecursionError, MemoryError, ValueError, KeyError])
def test_a_failure_while_an_error_is_made_is_unknown_with_the_intent(failure: type[Exception]) -> None:
    """If this fails, what a host put into a response comes out of a mutation raw, without outcome and with its text."""

    def fail(text: str) -> str:
        raise failure(text)

    op = remote_operation(FakeClient(), redact=fail, mutation=True)
    lost = ValueError("hunter22", OSError("hunter22"))
    with pytest.raises(UnexpectedResponseError) as caught, op.effect("create branch"):
        raise lost from KeyError("hunter22")

    assert caught.value.outcome is Outcome.UNKNOWN
    assert caught.value.intent is not None
    assert caught.value.failed_step == "create branch"
    assert "hunter22" not in f"{caught.value} {[(link.args, vars(link)) for link in chain(caught.value)]}"


def test_pages_end_where_the_host_says() -> None:
    """A full last page costs no further request when the host said that it is the last."""
    client = FakeClient([range(100), range(100, 200)], [True, False])

    found = remote_operation(client).pages("/items", lambda item: item.int("iid"), query={"sort": "name"})

    assert found == list(range(200))
    assert client.queries == [{"sort": "name", "per_page": 100, "page": number} for number in (1, 2)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("pages", 2), ("pages", 2)),
        (("items", 102), ("items", 102)),
        (("pages", 2), None),
        (("items", 102), ("pages", 2)),
    ],
)
def test_a_list_of_the_size_that_the_host_says_is_read_once(first: Any, second: Any) -> None:
    """Every list would be read three times."""
    client = FakeClient([range(100), range(100, 102)], [True, False], [first, second])

    assert remote_operation(client).pages("/items", lambda item: item.int("iid")) == list(range(102))
    assert len(client.queries) == 2


CHANGED = [
    [("pages", 3), None],
    [("pages", 1), ("pages", 2)],
    [("items", 103), ("items", 102)],
    [("items", 101), ("items", 101)],
    [None, ("items", 1)],
]


@pytest.mark.parametrize("sizes", CHANGED)
def test_a_list_that_changed_while_it_was_read_is_read_again(sizes: list[Any]) -> None:
    """An item that moved to a page that was read already would be missing."""
    pages = [range(100), range(100, 102)]
    client = FakeClient([*pages, *pages], [True, False] * 2, [*sizes, ("items", 102), None])

    assert remote_operation(client).pages("/items", lambda item: item.int("iid")) == list(range(102))
    assert len(client.queries) == 4


@pytest.mark.parametrize("sizes", CHANGED)
def test_a_list_that_never_stops_changing_is_an_error(sizes: list[Any]) -> None:
    """It would be read for ever, or with a hole in it."""
    client = FakeClient([range(100), range(100, 102)] * 3, [True, False] * 3, sizes * 3)

    with pytest.raises(UnexpectedResponseError, match="changed while") as caught:
        remote_operation(client).pages("/items", lambda item: item.int("iid"))

    assert caught.value.transient
    assert len(client.queries) == 6


def test_without_a_word_a_full_page_is_followed() -> None:
    """A host that says nothing is asked until a page is not full."""
    assert len(listed(range(100), [], more=[None, None])) == 100


def test_a_short_page_before_the_last_is_an_error() -> None:
    """A list with a hole would make a caller recreate or delete what it did not see."""
    with pytest.raises(UnexpectedResponseError, match="items would be missing"):
        listed(range(99), more=[True])


@pytest.mark.parametrize("convert", [lambda item: item.int("iid"), lambda item: item], ids=["values", "objects"])
def test_a_page_that_comes_again_is_an_error(convert: Callable[[JsonReader], object]) -> None:
    """A proxy that drops the query sends page one forever, each time with more to follow."""
    op = remote_operation(FakeClient([range(100)] * 3, [True] * 3))

    with pytest.raises(UnexpectedResponseError, match="would not end"):
        op.pages("/items", convert)


def test_a_long_list_costs_little_more_than_its_values() -> None:
    """A list of 100,000 branches would need more than 150 MB."""
    pages = [range(start, start + 100) for start in range(0, 10_000, 100)]
    client = FakeClient(pages, [True] * 99 + [False])
    tracemalloc.start()
    try:
        listed = remote_operation(client).pages("/items", lambda item: str(item.int("iid")))
        assert len(listed) == 10_000
        assert tracemalloc.get_traced_memory()[1] < 10_000 * 150
    finally:
        tracemalloc.stop()
