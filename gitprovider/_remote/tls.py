"""The TLS contexts of a provider. To parse a bundle of certificate authorities takes longer than a handshake."""

from __future__ import annotations

import os
import ssl
import threading

from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3.util.ssl_ import create_urllib3_context


class TlsContexts:
    """One context for each bundle of certificate authorities, shared by threads and, after a fork, by processes."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], ssl.SSLContext] = {}
        self._locks: dict[tuple[object, ...], threading.Lock] = {}

    def context(self, verify: bool | str | None) -> ssl.SSLContext | None:
        """Return the context for ``verify``, as in ``requests``, or None where each connection makes its own.

        That is without verification, because urllib3 would turn it off for all, and where the bundle cannot be read,
        because urllib3's error says which. A bundle that was replaced is read again.
        """
        if not verify:
            return None
        path = DEFAULT_CA_BUNDLE_PATH if verify is True else verify
        try:
            state = os.stat(path)
            key = (path, state.st_ino, state.st_size, state.st_mtime_ns)
            # Callers that begin together read the bundle once. A forked child does not inherit a lock that is held.
            with self._locks.setdefault((os.getpid(), *key), threading.Lock()):
                if key not in self._made:
                    self._made[key] = _read(path)
                return self._made[key]
        except OSError:
            return None


def _read(path: str) -> ssl.SSLContext:
    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED)
    if os.path.isdir(path):
        context.load_verify_locations(capath=path)
    else:
        context.load_verify_locations(cafile=path)
    # urllib3 sets this on each connection. A context is safe to share only while nobody changes it:
    # https://docs.python.org/3/library/ssl.html#ssl.SSLContext
    context.set_alpn_protocols(["http/1.1"])
    context.set_alpn_protocols = _leave_as_it_is  # type: ignore[method-assign]  # of this one context
    return context


def _leave_as_it_is(alpn_protocols: object) -> None:
    """Change nothing: the context is in use."""
