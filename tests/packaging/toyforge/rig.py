"""The toy rig: the suite's given-verbs straight on the toy host."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from gitprovider import BranchProtection, MergeMethod, PullRequestState, RetryOptions, Visibility
from gitprovider.testing import CommitView, File, PullRequestView

from .host import Blob, ToyHost, ToyPull, ToyRepo
from .provider import ToyProvider, _merge


class ToyRig:
    """One host and one provider, for as many cases as there are."""

    namespace = "toys"
    unknown_namespace = None
    reviewer = "reviewer"
    unknown_reviewer = None

    def __init__(self) -> None:
        self.host = ToyHost()
        self.provider = ToyProvider(self.host, retry=RetryOptions(base_delay=0.0))
        self.state = self.provider
        self._numbers = itertools.count(1)

    def supports(self, option: str) -> bool:
        return self.provider.supports(option)

    def requests_seen(self) -> int:
        return self.host.requests

    def mutations_seen(self) -> int:
        return self.host.mutations

    def on_next_mutation(self, action: Callable[[], object], *, when: Literal["before", "after"] = "before") -> None:
        self.host.due[when] = action

    def fresh_path(self) -> str:
        return f"{self.namespace}/toy-{next(self._numbers)}"

    def given_repo(
        self,
        files: Mapping[str, bytes | File] | None = None,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
    ) -> str:
        repo = self.host.create(self.fresh_path(), description, visibility)
        tree = {path: _blob(given) for path, given in ({"README.md": b"# Toy\n"} if files is None else files).items()}
        repo.move("main", repo.write(tree, (), "Initial commit").sha)
        return repo.path

    def given_empty_repo(self) -> str:
        return self.host.create(self.fresh_path()).path

    def given_branch(self, repo: str, name: str, *, source: str | None = "main") -> str:
        found = self._at(repo)
        own = {"own.txt": _blob(b"own\n")}
        found.move(name, found.write(own, (), "Begin").sha if source is None else found.branches[source])
        return found.branches[name]

    def given_branches(self, repo: str, names: Sequence[str]) -> None:
        for name in names:
            self.given_branch(repo, name)

    def given_commit(
        self, repo: str, branch: str, files: Mapping[str, bytes | File | None], *, message: str = "change"
    ) -> str:
        found = self._at(repo)
        head = found.branches[branch]
        tree = dict(found.commits[head].tree)
        for path, given in files.items():
            tree.pop(path, None)
            if given is not None:
                tree[path] = _blob(given)
        found.move(branch, found.write(tree, (head,), message).sha)
        return found.branches[branch]

    def given_no_branch(self, repo: str, name: str) -> None:
        del self._at(repo).branches[name]

    def given_renamed_branch(self, repo: str, name: str, new_name: str) -> None:
        found = self._at(repo)
        found.move(new_name, found.branches.pop(name))
        if found.default_branch == name:
            found.default_branch = new_name

    def given_protection(self, repo: str, branch: str, rules: BranchProtection) -> None:
        self._at(repo).rules[branch] = rules

    def given_pull_request(
        self,
        repo: str,
        *,
        source_branch: str,
        target_branch: str = "main",
        title: str = "A change",
        draft: bool = False,
    ) -> int:
        found = self._at(repo)
        number = len(found.pulls) + 1
        found.pulls[number] = ToyPull(
            number=number,
            source=source_branch,
            target=target_branch,
            title=title,
            description="",
            draft=draft,
            labels=(),
            reviewers=(),
            head=found.branches[source_branch],
        )
        return number

    def given_closed(self, repo: str, number: int) -> None:
        self._at(repo).pulls[number].state = PullRequestState.CLOSED

    def given_merged(self, repo: str, number: int) -> str:
        pull = self._at(repo).pulls[number]
        _merge(self._at(repo), pull, pull.head, MergeMethod.MERGE, None)
        return str(pull.merged_as)

    def given_approval(self, repo: str, number: int) -> None:
        self._at(repo).pulls[number].approvals.add(self.reviewer)

    def given_check(self, repo: str, branch: str, name: str, state: Literal["success", "failure", "pending"]) -> None:
        found = self._at(repo)
        found.checks[found.branches[branch], name] = state

    def given_merge_method(self, repo: str, method: MergeMethod, *, allowed: bool) -> bool:
        return allowed

    def given_failing_requests(self, count: int) -> bool:
        self.host.failing = count
        return True

    def given_lost_answer(self) -> bool:
        self.host.losing = True
        return True

    def given_revoked_credential(self) -> bool:
        return False

    def given_archived(self, repo: str) -> None:
        self._at(repo).archived = True

    def given_renamed(self, repo: str) -> str:
        found = self.host.repos.pop(repo)
        found.path = self.host.moved[repo] = self.fresh_path()
        self.host.repos[found.path] = found
        return found.path

    def exists(self, repo: str) -> bool:
        return repo in self.host.repos

    def branches(self, repo: str) -> dict[str, str]:
        return dict(self._at(repo).branches)

    def files(self, repo: str, branch: str) -> dict[str, File]:
        found = self._at(repo)
        return {path: File(*blob) for path, blob in found.commits[found.branches[branch]].tree.items()}

    def history(self, repo: str, branch: str) -> list[CommitView]:
        found = self._at(repo)
        return [
            CommitView(
                sha=sha,
                parents=found.commits[sha].parents,
                message=found.commits[sha].message.rstrip("\n"),
                author_name=found.commits[sha].author.name,
                author_email=found.commits[sha].author.email,
            )
            for sha in found.ancestors(found.branches[branch])
        ]

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        return self._at(repo).rules.get(branch)

    def pull_requests(self, repo: str) -> dict[int, PullRequestView]:
        return {
            pull.number: PullRequestView(
                number=pull.number,
                state=pull.state,
                title=pull.title,
                description=pull.description,
                source_branch=pull.source,
                target_branch=pull.target,
                draft=pull.draft,
                labels=frozenset(pull.labels),
                reviewers=frozenset(pull.reviewers),
            )
            for pull in self._at(repo).pulls.values()
        }

    def _at(self, repo: str) -> ToyRepo:
        return self.host.repos[repo]


def _blob(given: bytes | File) -> Blob:
    return (given, "100644") if isinstance(given, bytes) else (given.content, given.mode)
