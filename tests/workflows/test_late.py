"""A host that carries out a request after the client gave up on it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gitprovider import Outcome, ProviderUnavailableError, Verdict, resolve
from tests.support import calls
from tests.support.hosts import EFFECTS, Kind, RemoteHost, given_project, host
from tests.support.outcomes import CALLS


@pytest.mark.parametrize("kind", ["github", "gitlab"])
@pytest.mark.parametrize("name", CALLS)
def test_a_request_finished_two_seconds_late_is_undecided_and_then_applied(
    name: str, kind: Kind, tmp_path: Path
) -> None:
    """Timed out and not carried out: UNDECIDED. Carried out, looked at two seconds later: APPLIED."""
    with host(kind, tmp_path) as there:
        assert isinstance(there, RemoteHost)
        given_project(there.forge, calls.REPO)
        there.late.postpone(*EFFECTS[kind][name])
        with pytest.raises(ProviderUnavailableError) as caught:
            CALLS[name].do(there.provider)
        assert caught.value.outcome is Outcome.UNKNOWN

        early = resolve(there.provider, caught.value)
        there.late.carry_out()
        two_seconds_later = datetime.now(UTC) + timedelta(seconds=2)
        late = resolve(there.provider, caught.value, now=lambda: two_seconds_later)

    assert (early.verdict, late.verdict) == (Verdict.UNDECIDED, Verdict.APPLIED)
