"""Protecting a branch on GitLab: a new rule, a rule changed in place, or, where that cannot be done, a bridge.

The Free tier answers 200 to a change of a rule's access levels and changes nothing. There the rule has to be made anew,
and a second rule, a wildcard that matches this branch alone, holds meanwhile: the branch is never less protected than
it was. The steps, each of which leaves at least that: bridge made, old rule dropped, new rule made, bridge dropped.
"""

from __future__ import annotations

from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import PAGE_SIZE, RemoteOperation, Response, StatusError, read_pages
from gitprovider.errors import AlreadyExistsError, PermissionDeniedError
from gitprovider.gitlab import convert, protection
from gitprovider.gitlab.client import GitLabClient
from gitprovider.gitlab.endpoints import BRANCH, BRANCHES, RULE, RULES
from gitprovider.gitlab.protection import Plan, Rule
from gitprovider.models import BranchProtection


def more_pages(response: Response) -> bool | None:
    """Whether GitLab says that more pages follow; None where it says nothing. A link is a hint, never an address."""
    if (following := response.headers.get("x-next-page")) is not None:
        return bool(following.strip())
    if (link := response.headers.get("link")) is not None:
        return 'rel="next"' in link
    return None


def list_rules(op: RemoteOperation[GitLabClient], repo: str) -> list[Rule]:
    """Every rule of the project and of the groups above it."""

    def page(number: int) -> tuple[list[Rule], bool | None]:
        response = op.request("GET", RULES, project=repo, query={"per_page": PAGE_SIZE, "page": number})
        return [protection.rule(item) for item in JsonReader.each(response)], more_pages(response)

    return read_pages(page)


class Protecting:
    """One branch on its way to be protected at least as asked."""

    def __init__(self, op: RemoteOperation[GitLabClient], repo: str, branch: str, asked: BranchProtection) -> None:
        self._op = op
        self._repo = repo
        self._branch = branch
        self._asked = asked
        self._plan = self._read()

    def run(self) -> BranchProtection:
        """Do what is missing, and return what holds."""
        if self._plan.exact is None and not self._plan.done:
            with self._op.before("get branch"):  # a rule can be made for a branch that does not exist
                convert.branch(JsonReader(self._op.request("GET", BRANCH, project=self._repo, branch=self._branch)))
            try:
                return self._create()
            except AlreadyExistsError:
                # GitLab protects a new project's default branch by itself, moments after it was made.
                self._plan = self._read()
                if self._plan.exact is None:
                    raise
        if self._plan.done or self._plan.exact is None:
            return self._plan.held
        return self._change(self._plan.exact)

    def _read(self) -> Plan:
        with self._op.before("list rules"):
            plan = protection.plan(self._branch, self._asked, list_rules(self._op, self._repo))
        self._op.note(previous_rules=plan.held)
        return plan

    def _create(self) -> BranchProtection:
        with self._op.effect("make rule"):
            made = self._post(protection.new_rule(self._branch, self._plan.wanted))
            held = self._plan.resulting(made)
            self._op.done("make rule", held)
        return self._checked(held)

    def _change(self, exact: Rule) -> BranchProtection:
        changed = self._patch(exact)
        held = self._plan.resulting(changed)
        if self._plan.wanted.missing_from(held):
            return self._bridge(changed)
        with self._op.before("list rules again"):
            listed = list_rules(self._op, self._repo)
        return self._checked(protection.evaluate(rule for rule in listed if rule.matches(self._branch)))

    def _patch(self, exact: Rule) -> Rule:
        """The rule after a change in place: as it was, where this server or tier has no such change."""
        with self._op.effect("change rule"):
            try:
                response = self._op.request(
                    "PATCH",
                    RULE,
                    project=self._repo,
                    name=self._branch,
                    body=protection.changed_rule(exact, self._plan.wanted),
                )
            except StatusError as exc:
                if exc.response.status not in (404, 405) or not _lacks_route(exc.response):
                    raise
                return exact
            changed = protection.rule(JsonReader(response))
            if changed != exact:
                self._op.done("change rule", self._plan.resulting(changed))
        return changed

    def _bridge(self, exact: Rule) -> BranchProtection:
        wanted, step = self._plan.wanted, self._op.after
        with self._op.before("look for other branches"):
            protection.check_can_be_made_anew(exact)
            bridge = protection.choose_bridge(self._branch, self._similar(), self._plan.listed)
        self._make_bridge(bridge, exact)
        with step("drop old rule"):
            self._delete(self._branch)
            self._op.done("drop old rule", self._branch)
        with step("make rule anew"):
            made = self._post(protection.new_rule(self._branch, wanted, like=exact))
            self._op.done("make rule anew", self._plan.resulting(made))
        with step("drop bridge"):
            self._delete(bridge)
            self._op.done("drop bridge", bridge)
        return self._checked(self._plan.resulting(made))

    def _make_bridge(self, bridge: str, exact: Rule) -> None:
        if any(rule.name == bridge for rule in self._plan.others):
            return  # an earlier call's, which did not come to its end; it is strict enough, or the plan had stopped
        with self._op.effect("make bridge"):
            made = self._post(protection.new_rule(bridge, self._plan.wanted, like=exact))
            self._op.done("make bridge", bridge)
        with self._op.after("compare bridge"):
            self._checked(protection.evaluate([made]))

    def _similar(self) -> list[str]:
        """The names of the branches that a bridge for this one could match."""

        def page(number: int) -> tuple[list[str], bool | None]:
            # A search is for a part of the name, so that it finds more than asked and never less.
            query = {"search": self._branch[:-1] or self._branch, "per_page": PAGE_SIZE, "page": number}
            response = self._op.request("GET", BRANCHES, project=self._repo, query=query)
            return [item.str("name") for item in JsonReader.each(response)], more_pages(response)

        return read_pages(page)

    def _post(self, body: dict[str, object]) -> Rule:
        return protection.rule(JsonReader(self._op.request("POST", RULES, project=self._repo, body=body)))

    def _delete(self, name: str) -> None:
        try:
            self._op.request("DELETE", RULE, project=self._repo, name=name)
        except StatusError as exc:
            if exc.response.status != 404 or _lacks_route(exc.response):
                raise  # a rule that is gone already is where it was to be

    def _checked(self, held: BranchProtection | None) -> BranchProtection:
        held = held or BranchProtection.nothing()
        with self._op.after("compare"):
            if lacking := self._plan.wanted.missing_from(held):
                raise PermissionDeniedError(
                    f"GitLab took the rule, and holds less than was asked: {', '.join(lacking)}",
                    hint="the plan, or a setting of the instance, may forbid it",
                )
        return held


def _lacks_route(response: Response) -> bool:
    """Whether the server has no such endpoint: its router's own response, whose key is ``error``."""
    return isinstance(response.data, dict) and "error" in response.data and "message" not in response.data
