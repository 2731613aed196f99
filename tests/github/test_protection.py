"""protect_branch: one classic rule that is tightened, with everything in it that the contract does not model."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gitprovider import (
    BranchProtection,
    ConflictError,
    GitProviderError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    UnexpectedResponseError,
)
from gitprovider.fakes.faults import Fault
from tests.support.github_hub import REPO, Hub, running

PATH = f"/repos/{REPO}/branches/main/protection"
TEMPLATE = "/branches/{branch/}/protection"
EVERYTHING: dict[str, Any] = {
    "required_status_checks": {"strict": True, "checks": [{"context": "ci", "app_id": 15368}, {"context": "any"}]},
    "enforce_admins": True,
    "required_pull_request_reviews": {
        "dismiss_stale_reviews": True,
        "require_code_owner_reviews": True,
        "required_approving_review_count": 2,
        "require_last_push_approval": True,
        "dismissal_restrictions": {"users": ["hubot"], "teams": ["core"], "apps": ["closer"]},
        "bypass_pull_request_allowances": {"users": ["monalisa"], "teams": ["release"], "apps": ["robot"]},
    },
    "restrictions": {"users": ["octocat", "hubot"], "teams": ["core", "ops"], "apps": ["robot"]},
    "required_linear_history": True,
    "allow_force_pushes": False,
    "allow_deletions": False,
    "block_creations": True,
    "required_conversation_resolution": True,
    "lock_branch": True,
    "allow_fork_syncing": True,
}


def _put(hub: Hub, body: dict[str, Any], *, signed: bool = False) -> None:
    with hub.provider.sdk() as client:
        client.requester.requestJsonAndCheck("PUT", PATH, input=body)
        if signed:
            client.requester.requestJsonAndCheck("POST", f"{PATH}/required_signatures")
    hub.host.request_log.clear()


def _leaves(value: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """The paths of a rule's settings: flags that are on, numbers, and each entry of a list."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, *path, name)
    elif isinstance(value, list):
        yield from ((*path, str(index)) for index in range(len(value)))
    elif value and not isinstance(value, str):
        yield path


def _without(body: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """A copy of a rule as GitHub shows it, with one setting off."""
    made: dict[str, Any] = copy.deepcopy(body)
    found: Any = made
    for name in path[:-1]:
        found = found[name]
    if isinstance(found, list):
        del found[int(path[-1])]
    else:
        found[path[-1]] = 0 if type(found[path[-1]]) is int else False
    return made


def _get(hub: Hub) -> dict[str, Any]:
    with hub.provider.sdk() as client:
        _, data = client.requester.requestJsonAndCheck("GET", PATH)
    return dict(data)


def _body(hub: Hub) -> dict[str, Any]:
    return next(dict(json.loads(entry.body)) for entry in hub.sent if entry.method == "PUT")


def test_what_is_not_modelled_is_kept(hub: Hub) -> None:
    """People, apps, strictness, locks: the rule reads afterwards as it did before, one approval more."""
    _put(hub, EVERYTHING, signed=True)
    before = _get(hub)

    held = hub.provider.protect_branch(REPO, "main", BranchProtection(required_approvals=3))

    after = _get(hub)
    assert held.required_approvals == after["required_pull_request_reviews"]["required_approving_review_count"] == 3
    after["required_pull_request_reviews"]["required_approving_review_count"] = 2
    assert after == before


SETTINGS = [
    path
    for path in _leaves(EVERYTHING)
    # A list of checks is told twice by GitHub: by name, and with the app.
    if path[:2] != ("required_status_checks", "checks")
]


@pytest.mark.parametrize("path", SETTINGS, ids=".".join)
def test_a_setting_that_github_does_not_hold_afterwards_is_partial(hub: Hub, path: tuple[str, ...]) -> None:
    """The caller would be told of success, and a restriction, lock or list of people is gone."""
    _put(hub, EVERYTHING)
    shown = _get(hub)
    where = (path[0], "enabled") if isinstance(shown[path[0]], dict) and "enabled" in shown[path[0]] else path
    answer = json.dumps(_without(shown, where)).encode()
    hub.given_fault(Fault(kind="status", status=200, method="PUT", body=answer, when="after"))

    with pytest.raises(PermissionDeniedError) as caught:
        hub.provider.protect_branch(REPO, "main")

    assert caught.value.outcome is Outcome.PARTIAL
    modelled = ("linear", "admins", "dismiss_stale", "code_owner", "count")
    assert path[0] in caught.value.message or any(name in path[-1] for name in modelled)


def test_a_check_that_loses_its_app_is_partial(hub: Hub) -> None:
    """Anybody who may set a status could pass it."""
    _put(hub, EVERYTHING)
    shown = _get(hub)
    shown["required_status_checks"]["checks"][0]["app_id"] = None
    hub.given_fault(Fault(kind="status", status=200, method="PUT", body=json.dumps(shown).encode(), when="after"))

    with pytest.raises(PermissionDeniedError, match=r"required_status_checks\.checks ci") as caught:
        hub.provider.protect_branch(REPO, "main")

    assert caught.value.outcome is Outcome.PARTIAL


UNKNOWN_SETTINGS: list[tuple[str, Any]] = [
    ("required_deployments", {"enabled": True}),
    ("required_deployments", {"environments": ["staging"]}),
    ("frozen", True),
    ("blocked_extensions", [".exe"]),
    ("required_status_checks.minimum_age", 5),
    ("required_pull_request_reviews.required_teams", [{"slug": "core"}]),
    ("restrictions.deploy_keys", [{"id": 1}]),
]


@pytest.mark.parametrize(("where", "value"), UNKNOWN_SETTINGS)
def test_a_setting_that_the_write_would_lose_stops_before_it(hub: Hub, where: str, value: Any) -> None:
    """GitHub replaces the rule as a whole, and what this library does not know would be off."""
    _put(hub, EVERYTHING)
    before = hub.state()
    shown = _get(hub)
    outer, _, inner = where.rpartition(".")
    (shown[outer] if outer else shown)[inner] = value
    hub.given_fault(
        Fault(kind="status", status=200, method="GET", endpoint="protection", body=json.dumps(shown).encode())
    )

    with pytest.raises(ConflictError, match=where) as caught:
        hub.provider.protect_branch(REPO, "main")

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert caught.value.hint
    assert hub.state() == before
    assert hub.host.request_log.mutations() == []


@pytest.mark.parametrize("value", [False, {"enabled": False}, [], {}, None, 0, "2026-01-01", {"url": "https://x"}])
def test_an_unknown_field_that_sets_nothing_is_no_obstacle(hub: Hub, value: Any) -> None:
    """Each new field of GitHub would make every protected branch unprotectable."""
    _put(hub, EVERYTHING)
    body = json.dumps({**_get(hub), "new_field": value}).encode()
    hub.given_fault(Fault(kind="status", status=200, method="GET", endpoint="protection", body=body))

    assert hub.provider.protect_branch(REPO, "main").required_approvals == 2


SIGN = f"POST {TEMPLATE}/required_signatures"


def _signed_wildcard(hub: Hub) -> None:
    """A wildcard's rule that requires signatures and is shown for main."""
    hub.forge.put_rule(REPO, "ma*", BranchProtection(required_approvals=2), {"signatures": True})
    hub.fake.shows_wildcards = True


def test_signatures_of_a_wildcard_s_rule_are_required_again(hub: Hub) -> None:
    """K3-5: the new rule of the branch's own would take unsigned commits."""
    _signed_wildcard(hub)

    held = hub.provider.protect_branch(REPO, "main", BranchProtection(required_approvals=1))

    assert held.required_approvals == 2
    assert _get(hub)["required_signatures"]["enabled"] is True
    assert hub.calls().count(SIGN) == 1


def test_signatures_that_the_write_kept_cost_no_request(hub: Hub) -> None:
    """A rule of the branch's own keeps them."""
    _put(hub, EVERYTHING, signed=True)

    hub.provider.protect_branch(REPO, "main")

    assert [call for call in hub.calls() if not call.startswith("GET")] == [f"PUT {TEMPLATE}"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind="status", status=200, body=b'{"url": "https://x", "enabled": false}'),
        Fault(kind="status", status=200, body=b"{}"),
        Fault(kind="status", status=404, body=b'{"message": "Not Found", "documentation_url": "https://x"}'),
        Fault(kind="status", status=404, body=b"<html>Not Found</html>"),
        Fault(kind="status", status=500),
        Fault(kind="reset"),
    ],
    ids=["off", "empty", "hidden", "page", "500", "reset"],
)
def test_signatures_that_are_not_required_again_are_partial(hub: Hub, fault: Fault) -> None:
    """The call would be a success, and the branch takes unsigned commits."""
    _signed_wildcard(hub)
    hub.given_fault(dataclasses.replace(fault, method="POST", endpoint="required_signatures"))

    with pytest.raises(GitProviderError) as caught:
        hub.provider.protect_branch(REPO, "main")

    assert caught.value.outcome is Outcome.PARTIAL
    assert caught.value.failed_step == "keep signatures"
    assert [step.name for step in caught.value.completed] == ["protect branch"]


def test_more_rules_of_rulesets_than_a_page_are_all_read(hub: Hub) -> None:
    """The rule that forbids the deletion would be missing from the protection."""
    many = [{"type": "creation"}] * 130
    hub.forge.update_repo(REPO, settings={"rulesets": [{"pattern": "main", "rules": [*many, {"type": "deletion"}]}]})

    held = hub.provider.protection(REPO, "main")

    assert held is not None
    assert held.block_deletion


def test_every_key_is_sent_with_an_explicit_value(hub: Hub) -> None:
    """GitHub keeps some settings on null, and drops others that are left out."""
    hub.provider.protect_branch(REPO, "main")

    assert _body(hub) == {
        "required_status_checks": None,
        "enforce_admins": False,
        "required_pull_request_reviews": {
            "dismiss_stale_reviews": False,
            "require_code_owner_reviews": False,
            "required_approving_review_count": 0,
            "require_last_push_approval": False,
        },
        "restrictions": None,
        "required_linear_history": False,
        "allow_force_pushes": False,
        "allow_deletions": True,
        "block_creations": False,
        "required_conversation_resolution": False,
        "lock_branch": False,
        "allow_fork_syncing": False,
    }


def test_a_new_check_may_come_from_any_app_and_a_kept_one_from_its_own(hub: Hub) -> None:
    """An app left out would bind the check to whoever sent it last."""
    _put(hub, EVERYTHING)

    hub.provider.protect_branch(REPO, "main", BranchProtection(required_checks=("lint", "ci")))

    assert _body(hub)["required_status_checks"] == {
        "strict": True,
        "checks": [
            {"context": "ci", "app_id": 15368},
            {"context": "any", "app_id": -1},
            {"context": "lint", "app_id": -1},
        ],
    }


def test_an_old_servers_contexts_are_kept(hub: Hub) -> None:
    """Before there were checks with apps there were names alone."""
    hub.given_rule(BranchProtection())
    rule = {"required_status_checks": {"strict": False, "contexts": ["ci"]}, "enforce_admins": {"enabled": False}}
    hub.given_fault(
        Fault(kind="status", status=200, method="GET", endpoint="protection", body=json.dumps(rule).encode())
    )

    hub.provider.protect_branch(REPO, "main")

    assert _body(hub)["required_status_checks"]["checks"] == [{"context": "ci", "app_id": -1}]


@pytest.mark.parametrize(
    "answer",
    [
        {"required_pull_request_reviews": {"required_approving_review_count": 1}, "enforce_admins": {"enabled": False}},
        {"enforce_admins": {"enabled": True}},
        {},
    ],
)
def test_an_answer_that_holds_less_is_partial(hub: Hub, answer: dict[str, Any]) -> None:
    """The write was taken, and what holds is in completed: not what was asked."""
    hub.given_fault(Fault(kind="status", status=200, method="PUT", body=json.dumps(answer).encode(), when="after"))

    with pytest.raises(PermissionDeniedError) as caught:
        hub.provider.protect_branch(REPO, "main", BranchProtection(required_approvals=2))

    assert caught.value.outcome is Outcome.PARTIAL
    assert isinstance(caught.value.completed[0].value, BranchProtection)


def test_people_that_github_drops_are_told(hub: Hub) -> None:
    """Without write access they fall out of the list silently, and somebody is locked out."""
    _put(hub, EVERYTHING)
    hub.fake.logins = frozenset({"octocat"})

    with pytest.raises(PermissionDeniedError, match="users hubot") as caught:
        hub.provider.protect_branch(REPO, "main")

    assert caught.value.outcome is Outcome.PARTIAL


@pytest.mark.parametrize("old", [False, True], ids=["with rulesets", "a server without rulesets"])
def test_a_wildcards_rule_stops_before_the_write(hub: Hub, old: bool) -> None:
    """A rule of the branch's own would replace it, or on an old server the branch be told to be missing."""
    hub.fake.old = old
    hub.given_rule(BranchProtection(required_approvals=6), pattern="ma*")
    with pytest.raises(ConflictError):
        hub.provider.protection(REPO, "main")

    with pytest.raises(ConflictError) as caught:
        hub.provider.protect_branch(REPO, "main")

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert hub.host.request_log.mutations() == []


@pytest.mark.parametrize("told", [True, False], ids=["told apart", "an older server"])
def test_a_ruleset_holds_besides_the_rule(hub: Hub, told: bool) -> None:
    """Protected by rulesets alone: a rule may be added, and what held before is the rulesets'."""
    hub.forge.update_repo(REPO, settings={"rulesets": [{"pattern": "main", "rules": [{"type": "deletion"}]}]})
    if not told:
        _without_summary(hub)

    held = hub.provider.protect_branch(REPO, "main")

    assert held.require_pull_request
    assert hub.forge.rules(REPO)[0].pattern == "main"


def _without_summary(hub: Hub) -> None:
    """The branch as a server shows it that does not tell rulesets from rules."""
    with hub.provider.sdk() as client:
        _, branch = client.requester.requestJsonAndCheck("GET", f"/repos/{REPO}/branches/main")
    del branch["protection"]
    hub.given_fault(
        Fault(
            kind="status",
            status=200,
            method="GET",
            endpoint=r"branches/\{branch/\}\Z",
            body=json.dumps(branch).encode(),
        )
    )


@pytest.mark.parametrize(
    ("rules", "held"),
    [
        ([{"type": "pull_request", "parameters": {"required_approving_review_count": 10,
                                                  "dismiss_stale_reviews_on_push": True,
                                                  "require_code_owner_review": True}}],
         BranchProtection(required_approvals=6, dismiss_stale_approvals=True, require_code_owner_review=True,
                          block_force_push=False)),
        ([{"type": "pull_request"}], BranchProtection(block_force_push=False)),
        ([{"type": "non_fast_forward"}, {"type": "deletion"}, {"type": "required_linear_history"}],
         BranchProtection(require_pull_request=False, block_deletion=True, require_linear_history=True)),
        ([{"type": "required_status_checks", "parameters": {"required_status_checks": [{"context": "ci"}]}}],
         BranchProtection(require_pull_request=False, block_force_push=False, required_checks=("ci",))),
    ],
)  # fmt: skip
def test_rulesets_are_looked_at_where_there_is_no_rule(
    hub: Hub, rules: list[dict[str, Any]], held: BranchProtection
) -> None:
    """What they demand together, in the contract's words."""
    hub.forge.update_repo(REPO, settings={"rulesets": [{"pattern": "main", "rules": rules}]})

    assert hub.provider.protection(REPO, "main") == held


def test_a_ruleset_that_demands_nothing_known_cannot_be_judged(hub: Hub) -> None:
    """Protected, and by nothing that can be read: no guess."""
    hub.forge.update_repo(REPO, settings={"rulesets": [{"pattern": "main", "rules": [{"type": "creation"}]}]})

    with pytest.raises(ConflictError):
        hub.provider.protection(REPO, "main")


def test_a_plan_without_protection_stops_before_or_at_the_write(tmp_path: Path) -> None:
    """The hint names the plan; the repository stays private."""
    with running(tmp_path / "forge", plan="free") as hub:
        hub.given_repo()

        with pytest.raises(PermissionDeniedError) as caught:
            hub.provider.protect_branch(REPO, "main")

    assert "plan" in str(caught.value.hint)
    assert caught.value.outcome is Outcome.NOT_APPLIED


def test_a_missing_right_is_not_a_missing_branch(tmp_path: Path) -> None:
    """Without administration GitHub answers 404; the branch was seen a moment ago."""
    with running(tmp_path / "forge", admin=False) as hub:
        hub.given_repo()

        with pytest.raises(PermissionDeniedError) as caught:
            hub.provider.protect_branch(REPO, "main")
        with pytest.raises(NotFoundError):
            hub.provider.protect_branch(REPO, "none")

    assert "administration" in str(caught.value.hint)


@pytest.mark.parametrize("fault", ["status", "reset", "html", "shape"])
def test_a_failed_read_stops_before_the_write(hub: Hub, fault: Any) -> None:
    """What holds is not known, and would be lost."""
    hub.given_rule(BranchProtection(required_approvals=6))
    hub.given_fault(Fault(kind=fault, endpoint="protection"))

    with pytest.raises(GitProviderError) as caught:
        hub.provider.protect_branch(REPO, "main")

    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert hub.host.request_log.mutations() == []


def test_a_refusal_of_our_own_body_is_no_fault_of_the_caller(hub: Hub) -> None:
    """A schema error is a mistake of this library."""
    text = b'{"message": "Invalid request.\\n\\nNo subschema in \\"anyOf\\" matched."}'
    hub.given_fault(Fault(kind="status", status=422, method="PUT", body=text))

    with pytest.raises(UnexpectedResponseError) as caught:
        hub.provider.protect_branch(REPO, "main")

    assert caught.value.outcome is Outcome.NOT_APPLIED


@pytest.mark.pitfall("GH-PB-01")
def test_a_plan_without_protection_is_told(tmp_path: Path) -> None:
    """It is neither the credential nor a passing fault, and the repository stays private."""
    with running(tmp_path / "forge", plan="free") as hub:
        hub.given_repo()

        with pytest.raises(PermissionDeniedError) as caught:
            hub.provider.protect_branch(REPO, "main")

        assert hub.provider.get_repo(REPO).visibility == "private"
    assert "plan" in str(caught.value.hint)
    assert not caught.value.retryable


@pytest.mark.pitfall("GH-PB-02", "GH-PB-03")
def test_a_rule_is_tightened_and_not_replaced(hub: Hub) -> None:
    """What was demanded goes on being demanded, and all keys are sent."""
    hub.given_rule(BranchProtection(required_checks=("ci",), required_approvals=2, require_linear_history=True))

    held = hub.provider.protect_branch(REPO, "main", BranchProtection(required_approvals=1))

    assert held == BranchProtection(
        required_checks=("ci",), required_approvals=2, require_linear_history=True
    ).stricter(BranchProtection())


@pytest.mark.pitfall("GH-PB-05")
def test_people_who_were_dropped_are_told(hub: Hub) -> None:
    """GitHub answers 200 without them."""
    rule = {"enforce_admins": False, "required_pull_request_reviews": None, "required_status_checks": None}
    people = {"users": ["hubot"], "teams": [], "apps": []}
    with hub.provider.sdk() as client:
        client.requester.requestJsonAndCheck(
            "PUT", f"/repos/{REPO}/branches/main/protection", input=rule | {"restrictions": people}
        )
    hub.fake.logins = frozenset()

    with pytest.raises(PermissionDeniedError, match="hubot"):
        hub.provider.protect_branch(REPO, "main")


@pytest.mark.pitfall("GH-PB-07")
def test_three_404s_mean_three_things(tmp_path: Path) -> None:
    """No rule, no branch, and no right to know."""
    with running(tmp_path / "forge") as hub:
        hub.given_repo()
        assert hub.provider.protection(REPO, "main") is None
        with pytest.raises(NotFoundError):
            hub.provider.protect_branch(REPO, "none")
        hub.fake.admin = False
        with pytest.raises(PermissionDeniedError):
            hub.provider.protect_branch(REPO, "main")


@pytest.mark.pitfall("GH-PB-08")
def test_protected_by_some_ruleset_is_not_protected_as_asked(hub: Hub) -> None:
    """The flag is true, and the rule is written all the same."""
    hub.forge.update_repo(REPO, settings={"rulesets": [{"pattern": "main", "rules": [{"type": "deletion"}]}]})

    held = hub.provider.protect_branch(REPO, "main", BranchProtection(required_approvals=1))

    assert held.required_approvals == 1
