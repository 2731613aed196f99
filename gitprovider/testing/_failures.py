"""Cases for failures: a read is retried, and a mutation is sent once and reports its outcome."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gitprovider.contract import InspectableProvider
from gitprovider.errors import Outcome, ProviderUnavailableError
from gitprovider.models import PullRequestState
from gitprovider.resolve import Verdict, resolve
from gitprovider.testing._assertions import mutations, raised, refused
from gitprovider.testing._inputs import CALLS, EFFECTS, READS
from gitprovider.testing.rig import Rig

_MUTATIONS = [name for name in CALLS if name not in READS]
_NO_CONNECTION = "this provider has no connection to its host that could fail"


def _given_all(rig: Rig, operation: str) -> str:
    """Create a repository in which the operation's valid call has an effect. For create_repo, return an unused path."""
    if operation == "create_repo":
        return rig.fresh_path()
    repo = rig.given_repo()
    rig.given_branch(repo, "feature")
    rig.given_commit(repo, "feature", {"feature.txt": b"feature\n"})
    if operation == "merge_pull_request":
        rig.given_pull_request(repo, source_branch="feature")
    return repo


def _done(rig: Rig, operation: str, repo: str) -> bool:
    """Report whether the operation's valid call took effect."""
    done: dict[str, Any] = {
        "create_repo": lambda: rig.exists(repo),
        "create_branch": lambda: "topic" in rig.branches(repo),
        "protect_branch": lambda: rig.protection(repo, "feature") is not None,
        "commit_files": lambda: "new.txt" in rig.files(repo, "main"),
        "open_pull_request": lambda: len(rig.pull_requests(repo)) == 1,
        "merge_pull_request": lambda: rig.pull_requests(repo)[1].state is PullRequestState.MERGED,
    }
    return bool(done[operation]())


class FailureCases:
    """Failures of the host or of the connection to it."""

    @pytest.mark.parametrize("operation", READS)
    def test_a_read_survives_three_failures(self, rig: Rig, operation: str) -> None:
        """A read is attempted up to four times, and the fourth response is returned."""
        repo = rig.given_repo()
        call, args, kwargs = CALLS[operation](rig.provider, repo)
        wanted = call(*args, **kwargs)
        if not rig.given_failing_requests(3):
            pytest.skip(_NO_CONNECTION)

        assert call(*args, **kwargs) == wanted

    @pytest.mark.parametrize("operation", READS)
    def test_a_read_gives_up_after_four_failures(self, rig: Rig, operation: str) -> None:
        """The error has the number of attempts, and says that a later call is safe."""
        repo = rig.given_repo()
        if not rig.given_failing_requests(5):
            pytest.skip(_NO_CONNECTION)
        sent = rig.requests_seen()
        call, args, kwargs = CALLS[operation](rig.provider, repo)

        error = refused(ProviderUnavailableError, call, *args, **kwargs)

        assert (error.attempts, rig.requests_seen() - sent) == (4, 4)
        assert error.retryable

    @pytest.mark.parametrize("operation", _MUTATIONS)
    def test_a_mutation_is_not_tried_again(self, rig: Rig, operation: str) -> None:
        """One failed request ends the call. Nothing was applied, and the caller decides whether to repeat it."""
        repo = _given_all(rig, operation)
        before = rig.branches(repo) if rig.exists(repo) else {}
        if not rig.given_failing_requests(1):
            pytest.skip(_NO_CONNECTION)
        sent = rig.requests_seen()
        call, args, kwargs = CALLS[operation](rig.provider, repo)

        error = raised(ProviderUnavailableError, call, *args, **kwargs)

        assert (error.attempts, rig.requests_seen() - sent) == (1, 1)
        assert error.outcome in (Outcome.NOT_APPLIED, Outcome.UNKNOWN)
        assert error.retryable is (error.outcome is Outcome.NOT_APPLIED)
        assert (rig.branches(repo) if rig.exists(repo) else {}) == before

    @pytest.mark.parametrize("operation", _MUTATIONS)
    def test_a_lost_answer_is_told(self, rig: Rig, operation: str) -> None:
        """If the response to an applied mutation is lost, the outcome is UNKNOWN and not retryable. Nothing follows."""
        repo = _given_all(rig, operation)
        if not rig.given_lost_answer():
            pytest.skip(_NO_CONNECTION)
        call, args, kwargs = CALLS[operation](rig.provider, repo)

        error = raised(ProviderUnavailableError, call, *args, **kwargs)
        with mutations(rig, at_most=0):
            assert _done(rig, operation, repo), "the rig did not let the mutation take effect"

        assert error.outcome is Outcome.UNKNOWN
        assert not error.retryable
        assert error.intent is not None
        assert error.intent.sent_at is not None

    @pytest.mark.parametrize("operation", _MUTATIONS)
    def test_a_lost_answer_names_the_effect_step(self, rig: Rig, operation: str) -> None:
        """``failed_step`` is the mutation's ``effect``, the same on every host, and nothing is completed."""
        repo = _given_all(rig, operation)
        if not rig.given_lost_answer():
            pytest.skip(_NO_CONNECTION)
        call, args, kwargs = CALLS[operation](rig.provider, repo)

        error = raised(ProviderUnavailableError, call, *args, **kwargs)

        assert error.failed_step == EFFECTS[operation]
        assert error.completed == ()

    @pytest.mark.parametrize("operation", _MUTATIONS)
    def test_what_became_of_a_lost_answer_can_be_found_out(self, rig: Rig, operation: str) -> None:
        """``resolve`` finds out with reads only that the mutation was applied."""
        if rig.state is None:
            pytest.skip("this provider has no HostState")
        repo = _given_all(rig, operation)
        if not rig.given_lost_answer():
            pytest.skip(_NO_CONNECTION)
        call, args, kwargs = CALLS[operation](rig.provider, repo)
        error = raised(ProviderUnavailableError, call, *args, **kwargs)

        with mutations(rig, at_most=0):
            found = resolve(cast(InspectableProvider, rig.provider), error)

        assert found.verdict is Verdict.APPLIED, found.detail
