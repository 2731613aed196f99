"""Base class of the GitHub and GitLab providers: client pool, credentials, retried reads, error mapping and events."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from gitprovider import checks
from gitprovider._core.claims import IntentStore
from gitprovider._core.operation import BeforeEffect, cleared_frames
from gitprovider._core.options import Host
from gitprovider._core.provider import Provider
from gitprovider._remote.client_pool import ClientPool
from gitprovider._remote.operation import RemoteOperation
from gitprovider._remote.response import Client, Response
from gitprovider._remote.throttle import Throttle
from gitprovider.errors import GitProviderError
from gitprovider.events import Hook, RetryEvent, check_hooks, described, emit
from gitprovider.redact import Redactor
from gitprovider.retry import Limits, Retrier, RetryOptions, WaitBudget

_C = TypeVar("_C", bound=Client)


class RemoteProvider(Provider, Generic[_C]):
    """A provider that sends requests through clients of an SDK. It has a credential and cannot be pickled."""

    _url = ""  # a traceback may show the repr of an object whose constructor refused an argument

    def __init__(
        self,
        url: str,
        *,
        host: Host,
        make_client: Callable[[], _C],
        redactor: Redactor,
        retry: RetryOptions,
        limits: Limits,
        settle: float,
        on_event: Hook | Sequence[Hook] | None,
        before_effect: BeforeEffect | None,
        intents: IntentStore | None,
        throttle: Throttle | None,
        pool_size: int,
        page_concurrency: int = 1,
    ) -> None:
        if not isinstance(retry, RetryOptions):
            checks.refuse("retry", f"must be RetryOptions, not {type(retry).__name__}")
        self.settle = checks.check_seconds("settle", settle)
        self._url = url
        self._host = host
        self._pool: ClientPool[_C] = ClientPool(make_client, checks.check_int("pool_size", pool_size, least=0))
        self._redact = redactor
        self._retry = retry
        self._max_pages = limits.max_pages
        self._page_concurrency = page_concurrency
        self._hooks = check_hooks(on_event)
        self._remember(before_effect, intents)
        if throttle is not None and not isinstance(throttle, Throttle):
            checks.refuse("throttle", f"must have before and after; {type(throttle).__name__} does not")
        self._throttle = throttle

    def close(self) -> None:
        """Close the connections. A closed provider refuses further calls."""
        self._pool.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError(f"a {type(self).__name__} has a credential and cannot be pickled; build it where it is used")

    @abstractmethod
    def _translate(self, exc: Exception) -> GitProviderError:
        """Map an exception of a step to an error by this host's error table. Nothing is sent."""

    @abstractmethod
    def _is_retryable_read_error(self, error: Exception) -> bool:
        """Report whether a failed read is worth another attempt on this host."""

    def _denied_write(self, error: GitProviderError, response: Response) -> GitProviderError:
        """What a refused write means after the repository was read in the same operation. By default, what it says."""
        return error

    def _authenticate(self, op: RemoteOperation[_C]) -> None:
        """Refresh the credential if needed. The default does nothing, for a credential that never changes."""

    def _explain(self, op: RemoteOperation[_C], error: GitProviderError) -> None:
        """Read what explains the error, such as the new path of a moved repository. The default does nothing."""

    @contextmanager
    def _operation(self, name: str, repo: str, *, mutation: bool = False) -> Iterator[RemoteOperation[_C]]:
        with (
            cleared_frames(),
            self._pool.client() as client,
            RemoteOperation(
                name,
                repo,
                client=client,
                authenticate=self._authenticate,
                redact=self._redact,
                max_pages=self._max_pages,
                page_concurrency=self._page_concurrency,
                lend=self._pool.client,
                denied_write=self._denied_write,
                provider=self.name,
                host=urlsplit(self._url).netloc,
                translate=self._translate,
                mutation=mutation,
                hooks=self._hooks,
                before_effect=self._before_effect,
                throttle=self._throttle,
                waits=WaitBudget(self._retry),
            ) as op,
        ):
            try:
                yield op
            except GitProviderError as error:
                self._explain(op, error)
                raise

    def _retried(self, op: RemoteOperation[_C], step: str) -> Callable[[Callable[[], Any]], Any]:
        """Return a function ``read(fn)`` that runs ``fn`` in the step and retries it after a transient failure.

        All reads of the operation, such as the pages of a listing, share one wait budget.
        """

        def before_wait(attempt: int, delay: float, error: Exception) -> None:
            op.attempt = attempt + 1
            known: dict[str, Any] = {"operation": op.name, "provider": self.name, "host": op.host, "repo": op.repo}
            emit(self._hooks, RetryEvent(**known, attempt=attempt, wait=delay, **described(error)))

        retrier = Retrier[Any](
            self._retry, should_retry=self._is_retryable_read_error, before_wait=before_wait, budget=op.waits
        )

        def read(fn: Callable[[], Any]) -> Any:
            op.attempt = 1

            def once() -> Any:
                with op.before(step):
                    return fn()

            return retrier(once)

        return read
