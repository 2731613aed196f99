"""What the two remote providers are alike in, operations aside: clients, credential, retried reads, errors, events."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from gitprovider import checks
from gitprovider._core.operation import Operation
from gitprovider._remote.operation import BodyError, Client, ClientPool, RemoteOperation, StatusError, host_of
from gitprovider.errors import AlreadyExistsError, GitProviderError
from gitprovider.events import Hook, RetryEvent, emit
from gitprovider.options import Host, support
from gitprovider.redact import Redactor
from gitprovider.retry import Retrier, RetryOptions

_T = TypeVar("_T")


class PooledClient(Client, Protocol):
    """A client that can be closed."""

    def close(self) -> None:
        """Close its connections."""
        ...


_C = TypeVar("_C", bound=PooledClient)
Read = Callable[[str, Callable[[], _T]], _T]


class RemoteProvider(Generic[_C]):
    """The base of GitHubProvider and GitLabProvider. It holds no operation of the contract.

    Attributes:
        name: ``github`` or ``gitlab``.
        settle: seconds after which a request whose answer was lost can no longer take effect.
    """

    name: ClassVar[str]
    _url = ""  # a repr is asked for by tracebacks too, when the arguments have just been refused

    def __init__(
        self,
        url: str,
        *,
        host: Host,
        make_client: Callable[[], _C],
        redactor: Redactor,
        retry: RetryOptions,
        settle: float,
        on_event: Hook | None,
    ) -> None:
        if not isinstance(retry, RetryOptions):
            checks.refuse("retry", f"must be RetryOptions, not {type(retry).__name__}")
        self.settle = checks.check_seconds("settle", settle)
        self._url = url
        self._host = host
        self._pool: ClientPool[_C] = ClientPool(make_client, lambda client: client.close())
        self._redact = redactor
        self._retry = retry
        self._on_event = on_event

    @abstractmethod
    def _translate(self, exc: Exception, op: RemoteOperation[_C]) -> GitProviderError:
        """The meaning of what a step raised, by this host's table."""

    @abstractmethod
    def _is_retryable_read_error(self, error: Exception) -> bool:
        """Whether a failed read is worth another try on this host."""

    def _authenticate(self, op: RemoteOperation[_C]) -> None:
        """See to it that the credential is good for the steps to come. Nothing to do unless a host says so."""

    def supports(self, option: str) -> bool:
        """Whether this host honours an option of ``gitprovider.options.OPTIONS``.

        Raises:
            InvalidRequestError: there is no such option.
        """
        return support(option, self._host).honoured

    def close(self) -> None:
        """Close the connections. A closed provider refuses further calls."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError(f"a {type(self).__name__} holds a credential and cannot be pickled; build it where it is used")

    @contextmanager
    def _operation(self, name: str, repo: Any, *, mutation: bool = False) -> Iterator[RemoteOperation[_C]]:
        """One call: it borrows a client, and every step runs inside its blocks."""
        with (
            self._pool.client() as client,
            RemoteOperation(
                name,
                repo if isinstance(repo, str) else "",
                client=client,
                authenticate=self._authenticate,
                redact=self._redact,
                provider=self.name,
                host=host_of(self._url),
                translate=self._meaning,
                mutation=mutation,
                hook=self._on_event,
            ) as op,
        ):
            yield op

    def _retried(self, op: RemoteOperation[_C]) -> Read[Any]:
        """``read(step, fn)``: runs ``fn`` in a step, and again after a failure that may pass.

        One wait budget serves all reads of the operation, such as the pages of a listing.
        """

        def before_wait(attempt: int, delay: float, error: Exception) -> None:
            op.attempt = attempt + 1
            if self._on_event is not None:
                emit(
                    self._on_event,
                    RetryEvent(
                        operation=op.name,
                        provider=self.name,
                        host=op.host,
                        repo=op.repo,
                        attempt=attempt,
                        wait=delay,
                        error=type(error).__name__,
                    ),
                )

        retrier = Retrier[Any](self._retry, should_retry=self._is_retryable_read_error, before_wait=before_wait)

        def read(step: str, fn: Callable[[], Any]) -> Any:
            op.attempt = 1

            def once() -> Any:
                with op.before(step):
                    return fn()

            return retrier(once)

        return read

    def _meaning(self, exc: Exception, op: Operation) -> GitProviderError:
        assert isinstance(op, RemoteOperation)
        error = self._translate(exc, op)
        if isinstance(error, AlreadyExistsError) and error.existing is None and op.find_existing is not None:
            with suppress(Exception):
                error.existing = op.find_existing()
        if isinstance(exc, StatusError | BodyError):
            error.__cause__ = exc.__cause__  # the SDK's own error, where it raised one
        return error
