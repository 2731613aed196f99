"""What 20 callers cost in processor time whose connections are new, over TLS, against another version of the library.

``python benchmarks/cold_callers.py CHECKOUT`` takes the other version from the folder CHECKOUT. It serves a fake host
from another process, so that its work is not counted, and fails when this version needs more than half as much.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

BAR = 0.5
CALLERS = 20
ROUNDS = 5
HERE = Path(__file__).resolve().parent.parent


def serve(folder: Path) -> None:
    """Serve a fake GitHub over TLS until standard input ends. Print its URL, the bundle to trust and the token."""
    from requests.utils import DEFAULT_CA_BUNDLE_PATH

    from gitprovider.fakes.github.server import FakeGitHub
    from gitprovider.fakes.serve import serving
    from gitprovider.local.forge import Forge
    from tests.support.tls import server_context

    context, authority = server_context(folder, ["localhost"])
    # As large as the bundle that a real host needs.
    bundle = folder / "bundle.pem"
    bundle.write_bytes(Path(DEFAULT_CA_BUNDLE_PATH).read_bytes() + b"\n" + Path(authority).read_bytes())
    forge = Forge(folder / "forge")
    forge.create_repo("acme/widgets")
    fake = FakeGitHub(forge)
    with serving(fake, tls=context) as url:
        print(url.replace("127.0.0.1", "localhost"), bundle, fake.token, flush=True)
        sys.stdin.read()


def measure(url: str, bundle: str, token: str) -> None:
    """Print the seconds of this process for one call by each of the callers, all with new connections."""
    from gitprovider.connect import connect

    times = []
    for _ in range(ROUNDS + 1):  # the first also loads modules
        with connect("github", url=url, token=token, verify=bundle) as provider, ThreadPoolExecutor(CALLERS) as callers:
            before = time.process_time()
            list(callers.map(provider.get_repo, ["acme/widgets"] * CALLERS))
            times.append(time.process_time() - before)
    print(statistics.median(times[1:]))


@contextmanager
def served() -> Iterator[list[str]]:
    """A fake host in a process of its own: its URL, the bundle and the token."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "serve", folder]
        server = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(HERE)},
        )
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()
        finally:
            server.communicate("")


def seconds(version: Path, host: list[str]) -> float:
    """The processor time of the version of the library in a folder."""
    command = [sys.executable, __file__, "measure", *host]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | {"PYTHONPATH": str(version)}
    )
    return float(done.stdout)


def main(arguments: list[str]) -> int:
    """Compare this version with the one in a folder; fail beyond the bar."""
    if arguments[:1] == ["serve"]:
        serve(Path(arguments[1]))
        return 0
    if arguments[:1] == ["measure"]:
        measure(*arguments[1:])
        return 0
    if len(arguments) != 1:
        print(__doc__)
        return 2
    with served() as host:
        before, now = seconds(Path(arguments[0]), host), seconds(HERE, host)
    print(f"{CALLERS} cold callers over TLS: {now:.3f} s of processor time, before {before:.3f} s")
    print(f"{now / before:.2f} times as much as before; at most {BAR}")
    return 0 if now <= BAR * before else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
