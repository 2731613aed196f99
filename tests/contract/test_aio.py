"""The contract suite on the coroutines: a blocking fake of them, one loop in a thread of its own for all cases."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial, wraps
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from gitprovider.aio import AsyncGitProvider
from gitprovider.contract import GitProviderContract
from gitprovider.testing import GitProviderContractTests
from tests.support.rigs import LocalRig, local_rig


class Blocking:
    """A provider whose operations call the coroutines; whatever else is asked for is the wrapped provider's."""

    def __init__(self, wrapped: Any, portal: BlockingPortal) -> None:
        self._wrapped = wrapped
        self._coroutines = AsyncGitProvider(wrapped)
        self._portal = portal

    def __getattr__(self, name: str) -> Any:
        if name not in vars(GitProviderContract):
            return getattr(self._wrapped, name)
        coroutine: Callable[..., Awaitable[Any]] = getattr(self._coroutines, name)

        @wraps(coroutine)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._portal.call(partial(coroutine, *args, **kwargs))

        return call


@pytest.fixture(scope="class")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRig]:
    """LocalProvider behind the coroutines."""
    with start_blocking_portal() as portal, local_rig(tmp_path_factory.mktemp("forge")) as rig:
        blocking: Any = Blocking(rig.provider, portal)
        rig.provider = blocking
        yield rig


class TestAsyncGitProvider(GitProviderContractTests):
    """The coroutines hold to the contract, with no gap."""

    @pytest.fixture
    def rig(self, host: LocalRig) -> LocalRig:
        """One host for all cases: each makes repositories of its own."""
        return host.renewed()
