"""Providers that are wrong in one way each, and the cases that must find it out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

from gitprovider.contract import TreeEntry, optional
from gitprovider.errors import (
    AlreadyExistsError,
    AuthenticationError,
    ConflictError,
    GitProviderError,
    InvalidRequestError,
    NotFoundError,
    NotMergeableError,
    Outcome,
    ProviderUnavailableError,
    RepoMovedError,
    UnsupportedOptionError,
)
from gitprovider.github import GitHubProvider
from gitprovider.local import LocalProvider
from gitprovider.models import (
    Author,
    Branch,
    BranchProtection,
    Commit,
    DeleteFile,
    FileChange,
    MergeMethod,
    MergeResult,
    MoveFile,
    PullRequest,
    PullRequestState,
    PutFile,
    Repo,
    Visibility,
)

CASES: dict[type[LocalProvider], tuple[str, ...]] = {}
# Mutants that only a host at a distance can find out.
REMOTE_CASES: dict[type[GitHubProvider], tuple[str, ...]] = {}


def found_by(*cases: str) -> Callable[[type[LocalProvider]], type[LocalProvider]]:
    """Name the cases that must fail on a mutant, every one of them."""

    def register(mutant: type[LocalProvider]) -> type[LocalProvider]:
        CASES[mutant] = tuple(f"test_{case}" for case in cases)
        return mutant

    return register


def found_remotely_by(*cases: str) -> Callable[[type[GitHubProvider]], type[GitHubProvider]]:
    """As found_by, for a provider whose host is at a distance."""

    def register(mutant: type[GitHubProvider]) -> type[GitHubProvider]:
        REMOTE_CASES[mutant] = tuple(f"test_{case}" for case in cases)
        return mutant

    return register


# reads


@found_by("list_branches_every_page_is_read")
class DropsPageTwo(LocalProvider):
    """Takes the first page for the whole."""

    def list_branches(self, repo: str) -> list[Branch]:
        return super().list_branches(repo)[:100]


@found_by("list_branches_each_branch_has_its_own_head", "list_branches_every_page_is_read")
class LosesABranch(LocalProvider):
    """Leaves one out."""

    def list_branches(self, repo: str) -> list[Branch]:
        return super().list_branches(repo)[1:]


@found_by("list_branches_every_page_is_read")
class RepeatsABranch(LocalProvider):
    """Lists one twice, as pages do that shift while they are read."""

    def list_branches(self, repo: str) -> list[Branch]:
        branches = super().list_branches(repo)
        return [*branches, *branches[-1:]]


@found_by("list_branches_names_are_sorted_by_code_points")
class SortsByLocale(LocalProvider):
    """Ignores case, as people do and Git does not."""

    def list_branches(self, repo: str) -> list[Branch]:
        return sorted(super().list_branches(repo), key=lambda branch: branch.name.casefold())


@found_by("list_branches_any_name_that_git_takes_is_listed_as_it_is")
class DecodesNames(LocalProvider):
    """Percent-decodes what came from a JSON body."""

    def list_branches(self, repo: str) -> list[Branch]:
        return [dataclasses.replace(b, name=unquote(b.name)) for b in super().list_branches(repo)]


@found_by("an_unknown_repository_is_not_found")
class SwallowsNotFound(LocalProvider):
    """Takes a 404 for an empty list."""

    def list_branches(self, repo: str) -> list[Branch]:
        try:
            return super().list_branches(repo)
        except NotFoundError:
            return []


@found_by("get_repo_a_renamed_repository_is_read_at_its_new_place", "ensure_a_renamed_repository_has_moved")
class KeepsTheOldPath(LocalProvider):
    """Echoes the path that was asked for."""

    def get_repo(self, repo: str) -> Repo:
        return dataclasses.replace(super().get_repo(repo), path=repo)


@found_by("a_renamed_branch_has_its_new_name")
class GuessesTheDefaultBranch(LocalProvider):
    """Takes the first branch for the default one."""

    def get_repo(self, repo: str) -> Repo:
        found = super().get_repo(repo)
        first = next((branch.name for branch in super().list_branches(found.path)), found.default_branch)
        return dataclasses.replace(found, default_branch=first)


@found_by("a_renamed_branch_is_not_found_by_its_old_name")
class FallsBackToTheDefaultBranch(LocalProvider):
    """Begins at the default branch where the source is not there."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        try:
            return super().create_branch(repo, name, source=source)
        except NotFoundError:
            return super().create_branch(repo, name, source=self.get_repo(repo).default_branch)


@found_by("a_renamed_branch_is_not_found_by_its_old_name")
class FollowsARenamedBranch(LocalProvider):
    """Protects the only other branch where the one that was asked for is not there."""

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        names = [found.name for found in self.list_branches(repo)]
        return super().protect_branch(repo, branch if branch in names else names[-1], rules)


@found_by("the_old_name_of_a_renamed_branch_is_free")
class HasOneBranchForACommit(LocalProvider):
    """Takes a branch at the same commit for the branch by another name."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        head = self.head(repo, source)
        twin = next((found for found in self.list_branches(repo) if found.sha == head), None)
        if twin is not None:
            raise AlreadyExistsError("it is there, by another name", existing=twin)
        return super().create_branch(repo, name, source=source)


@found_by("create_repo_the_old_path_of_a_renamed_repository_is_free")
class KeepsOldPathsForEver(LocalProvider):
    """Takes what a path leads to for what is there."""

    def create_repo(
        self, repo: str, *, description: str = "", visibility: Visibility = Visibility.PRIVATE, auto_init: bool = False
    ) -> Repo:
        there = optional(self.get_repo, repo)
        if there is not None:
            raise AlreadyExistsError("the path is taken", existing=there)
        return super().create_repo(repo, description=description, visibility=visibility, auto_init=auto_init)


@found_by("get_repo_two_repositories_have_two_ids")
class HasOneId(LocalProvider):
    """Takes the namespace's id for the repository's."""

    def get_repo(self, repo: str) -> Repo:
        return dataclasses.replace(super().get_repo(repo), id="1")


# creates


@found_by("create_repo_a_path_that_is_taken_is_refused")
class RetriesACreate(LocalProvider):
    """Sends a refused create again."""

    def create_repo(
        self, repo: str, *, description: str = "", visibility: Visibility = Visibility.PRIVATE, auto_init: bool = False
    ) -> Repo:
        try:
            return super().create_repo(repo, description=description, visibility=visibility, auto_init=auto_init)
        except AlreadyExistsError:
            return super().create_repo(repo, description=description, visibility=visibility, auto_init=auto_init)


@found_by("create_repo_a_path_that_is_taken_is_refused")
class HidesWhatExists(LocalProvider):
    """Does not look at what has the path."""

    def create_repo(
        self, repo: str, *, description: str = "", visibility: Visibility = Visibility.PRIVATE, auto_init: bool = False
    ) -> Repo:
        try:
            return super().create_repo(repo, description=description, visibility=visibility, auto_init=auto_init)
        except AlreadyExistsError as error:
            error.existing = None
            raise


@found_by("create_repo_it_is_private_and_empty_unless_asked_otherwise")
class Publishes(LocalProvider):
    """Leaves the visibility to the host's default."""

    def create_repo(
        self, repo: str, *, description: str = "", visibility: Visibility = Visibility.PRIVATE, auto_init: bool = False
    ) -> Repo:
        return super().create_repo(repo, description=description, visibility=Visibility.PUBLIC, auto_init=auto_init)


@found_by("create_branch_a_branch_that_exists_is_never_moved")
class MovesAnExistingBranch(LocalProvider):
    """Makes the branch be where it was asked for, by force."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        try:
            return super().create_branch(repo, name, source=source)
        except AlreadyExistsError as error:
            self.forge.move_branch(repo, name, self.forge.head(repo, source), expected=None, force=True)
            raise error from None


@found_by("create_branch_a_branch_that_exists_at_that_very_commit_exists")
class TakesTheSameForSuccess(LocalProvider):
    """Returns the branch that exists."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        try:
            return super().create_branch(repo, name, source=source)
        except AlreadyExistsError as error:
            existing: Branch = error.existing
            return existing


@found_by("create_branch_a_source_is_not_found_by_its_beginning", "create_branch_an_unknown_source_is_not_found")
class GuessesTheSource(LocalProvider):
    """Takes the first branch that begins so."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        try:
            return super().create_branch(repo, name, source=source)
        except NotFoundError:
            names = [found for found, _ in self.forge.branches(repo) if found.startswith(source[:3])]
            return super().create_branch(repo, name, source=names[0] if names else self.forge.repo(repo).default_branch)


@found_by("create_branch_a_name_that_git_refuses_is_refused_before_any_request")
class ChecksAfterARequest(LocalProvider):
    """Reads the source before it looks at its arguments."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        self.forge.repo(repo)
        return super().create_branch(repo, name, source=source)


@found_by("a_renamed_repository_has_moved")
class FollowsARename(LocalProvider):
    """Sends a mutation again, to the new place."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        try:
            return super().create_branch(repo, name, source=source)
        except RepoMovedError as error:
            return super().create_branch(str(error.moved_to), name, source=source)


@found_by("an_unknown_repository_is_not_found")
class NeverKnowsTheOutcome(LocalProvider):
    """Says UNKNOWN where nothing can have happened."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        try:
            return super().create_branch(repo, name, source=source)
        except GitProviderError as error:
            error.outcome = Outcome.UNKNOWN
            raise


@found_by("a_failed_mutation_carries_its_intent")
class ForgetsItsIntent(LocalProvider):
    """Leaves no evidence."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        try:
            return super().create_branch(repo, name, source=source)
        except GitProviderError as error:
            error.intent = None
            raise


# protection


@found_by(
    "protect_branch_what_holds_is_never_weakened",
    "protect_branch_rules_are_added_to_what_holds",
    "protect_branch_the_greater_number_of_approvals_holds",
    "protect_branch_required_checks_are_a_union",
)
class ReplacesTheRules(LocalProvider):
    """Takes the floor for the whole."""

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        super().protect_branch(repo, branch, rules)
        return self.forge.put_rule(repo, branch, rules).protection


@found_by("protect_branch_rules_are_added_to_what_holds")
class AnswersWhatWasAsked(LocalProvider):
    """Returns the floor, and not what holds."""

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        super().protect_branch(repo, branch, rules)
        return rules


@found_by("protect_branch_each_rule_is_set_or_refused")
class DropsAnOption(LocalProvider):
    """Ignores what the host has not."""

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        return super().protect_branch(repo, branch, dataclasses.replace(rules, require_code_owner_review=False))


@found_by("protect_branch_other_branches_stay_as_they_are")
class ProtectsByPattern(LocalProvider):
    """Protects whatever begins so."""

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        held = super().protect_branch(repo, branch, rules)
        self.forge.put_rule(repo, f"{branch}*", held)
        return held


@found_by(
    "protect_branch_an_unknown_branch_is_not_found", "protect_branch_an_empty_repository_has_no_branch_to_protect"
)
class ProtectsWhatIsNotThere(LocalProvider):
    """Leaves a rule for a branch that may come."""

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        try:
            return super().protect_branch(repo, branch, rules)
        except NotFoundError:
            return self.forge.put_rule(repo, branch, rules).protection


# commits


class _Committing(LocalProvider):
    """Changes the arguments of commit_files on their way."""

    def commit_files(
        self,
        repo: str,
        branch: str,
        changes: Sequence[FileChange],
        *,
        message: str,
        author: Author | None = None,
        expected_head: str | None = None,
    ) -> Commit:
        given: dict[str, Any] = {"message": message, "author": author, "expected_head": expected_head}
        return self.make(repo, branch, changes, **given)

    def make(self, repo: str, branch: str, changes: Sequence[FileChange], **given: Any) -> Commit:
        return super().commit_files(repo, branch, self.changed(changes), **{**given, **self.given()})

    def changed(self, changes: Sequence[FileChange]) -> Sequence[FileChange]:
        if not isinstance(changes, list):
            return changes
        return [self.put(c) if isinstance(c, PutFile) and isinstance(c.content, bytes) else c for c in changes]

    def put(self, change: PutFile) -> PutFile:
        return change

    def given(self) -> dict[str, Any]:
        return {}


def _tree(provider: LocalProvider, repo: str, branch: str) -> dict[str, TreeEntry]:
    """What is on the branch; nothing in an empty repository."""
    head = optional(provider.forge.head, repo, branch)
    return {} if head is None else provider.forge.read_tree(repo, head)


def _bytes(change: PutFile) -> bytes:
    assert isinstance(change.content, bytes)
    return change.content


@found_by("commit_files_content_is_written_byte_for_byte", "commit_files_git_attributes_change_no_bytes")
class NormalisesLineEnds(_Committing):
    """Writes LF for CRLF."""

    def put(self, change: PutFile) -> PutFile:
        return dataclasses.replace(change, content=_bytes(change).replace(b"\r\n", b"\n"))


@found_by("commit_files_content_is_written_byte_for_byte", "commit_files_a_large_binary_file")
class DecodesContent(_Committing):
    """Takes every file for text."""

    def put(self, change: PutFile) -> PutFile:
        return dataclasses.replace(change, content=_bytes(change).decode(errors="replace"))


@found_by("commit_files_content_is_written_byte_for_byte")
class TrimsContent(_Committing):
    """Ends every file with one line end."""

    def put(self, change: PutFile) -> PutFile:
        return dataclasses.replace(change, content=_bytes(change).rstrip() + b"\n")


@found_by("commit_files_an_executable_bit_is_kept", "commit_files_what_is_there_already_is_no_commit")
class LosesTheExecutableBit(LocalProvider):
    """Takes None for False."""

    def commit_files(
        self,
        repo: str,
        branch: str,
        changes: Sequence[FileChange],
        *,
        message: str,
        author: Author | None = None,
        expected_head: str | None = None,
    ) -> Commit:
        plain = [
            dataclasses.replace(c, executable=bool(c.executable)) if isinstance(c, PutFile) else c for c in changes
        ]
        return super().commit_files(repo, branch, plain, message=message, author=author, expected_head=expected_head)


@found_by("commit_files_an_executable_bit_is_set_and_taken", "commit_files_many_files_are_one_commit")
class IgnoresTheExecutableBit(_Committing):
    """Has no modes."""

    def put(self, change: PutFile) -> PutFile:
        return dataclasses.replace(change, executable=None)


@found_by(
    "commit_files_another_head_than_expected_is_refused",
    "commit_files_another_head_is_refused_also_for_changes_that_change_nothing",
    "commit_files_an_unknown_expected_head_is_refused",
    "commit_files_a_pinned_commit_on_a_moved_branch_is_told",
)
class IgnoresTheExpectedHead(_Committing):
    """Commits on whatever is there."""

    def given(self) -> dict[str, Any]:
        return {"expected_head": None}


@found_by("commit_files_an_author_is_written")
class IgnoresTheAuthor(_Committing):
    """Leaves the author to the host."""

    def given(self) -> dict[str, Any]:
        return {"author": None}


@found_by("commit_files_the_same_change_twice_is_one_commit")
class MakesEmptyCommits(_Committing):
    """Commits whether or not anything changes."""

    def make(self, repo: str, branch: str, changes: Sequence[FileChange], **given: Any) -> Commit:
        made = self.forge.commit_changes(repo, branch, changes, message=given["message"], allow_empty=True)
        parent = made.parents[0] if made.parents else None
        return Commit(sha=made.sha, parent=parent, branch=branch, message=made.message)


@found_by("commit_files_a_commit_made_meanwhile_is_never_lost")
class ForcesTheBranch(_Committing):
    """Builds on the head that it read, and moves the branch there whatever has happened since."""

    def make(self, repo: str, branch: str, changes: Sequence[FileChange], **given: Any) -> Commit:
        head, forge = self.forge.head(repo, branch), self.forge
        entries = {c.path: (forge.write_blob(repo, c.data()), "100644") for c in changes if isinstance(c, PutFile)}
        tree = forge.write_tree(repo, head, entries)
        sha = forge.write_commit(repo, tree=tree, parents=[head], message=given["message"])
        forge.move_branch(repo, branch, sha, expected=None, force=True)
        return Commit(sha=sha, parent=head, branch=branch, message=given["message"])


@found_by(
    "commit_files_every_kind_of_change_in_one_commit", "commit_files_changes_that_do_not_fit_the_tree_are_refused"
)
class CommitsOneByOne(_Committing):
    """Makes a commit for each change."""

    def make(self, repo: str, branch: str, changes: Sequence[FileChange], **given: Any) -> Commit:
        return [super(_Committing, self).commit_files(repo, branch, [change], **given) for change in changes][-1]


@found_by("commit_files_an_unknown_branch_is_not_found_and_not_made")
class MakesTheBranch(_Committing):
    """Branches off the default branch when there is none."""

    def make(self, repo: str, branch: str, changes: Sequence[FileChange], **given: Any) -> Commit:
        try:
            return super().make(repo, branch, changes, **given)
        except NotFoundError:
            self.forge.create_branch(repo, branch, self.forge.head(repo, self.forge.repo(repo).default_branch))
            return super().make(repo, branch, changes, **given)


@found_by(
    "commit_files_a_protected_branch_takes_no_direct_commit", "protect_branch_a_direct_commit_is_refused_from_then_on"
)
class CommitsPastProtection(_Committing):
    """Uses an administrator's way round."""

    def make(self, repo: str, branch: str, changes: Sequence[FileChange], **given: Any) -> Commit:
        made = self.forge.commit_changes(repo, branch, changes, message=given["message"], bypass=True)
        return Commit(sha=made.sha, parent=made.parents[0], branch=branch, message=made.message)


@found_by("commit_files_changes_that_do_not_fit_the_tree_are_refused")
class OverwritesOnAMove(_Committing):
    """Moves as a tree does, onto whatever is there."""

    def make(self, repo: str, branch: str, changes: Sequence[FileChange], **given: Any) -> Commit:
        tree = _tree(self, repo, branch)
        made: list[FileChange] = []
        for change in changes:
            if isinstance(change, MoveFile) and change.to in tree and change.path in tree:
                content = self.forge.read_blob(repo, tree[change.path].sha)
                made += [DeleteFile(path=change.path), PutFile(path=change.to, content=content)]
            else:
                made.append(change)
        return super().make(repo, branch, made, **given)


@found_by("commit_files_changes_that_do_not_fit_the_tree_are_refused")
class DeletesWhatIsNotThere(_Committing):
    """Takes a delete of nothing for done."""

    def make(self, repo: str, branch: str, changes: Sequence[FileChange], **given: Any) -> Commit:
        tree = _tree(self, repo, branch)
        made = [change for change in changes if not isinstance(change, DeleteFile) or change.path in tree]
        if not made:
            return dataclasses.replace(self.commit(repo, self.forge.head(repo, branch)), branch=branch)
        return super().make(repo, branch, made, **given)


@found_by("commit_files_a_path_is_touched_once")
class LastChangeWins(_Committing):
    """Keeps the last of several changes at a path."""

    def changed(self, changes: Sequence[FileChange]) -> Sequence[FileChange]:
        if not isinstance(changes, list):
            return changes
        return list({getattr(c, "path", c): c for c in changes}.values())


@found_by("commit_files_only_the_default_branch_can_begin")
class BeginsAnywhere(_Committing):
    """Makes the first commit on the default branch, whatever was asked."""

    def make(self, repo: str, branch: str, changes: Sequence[FileChange], **given: Any) -> Commit:
        try:
            return super().make(repo, branch, changes, **given)
        except InvalidRequestError:
            return super().make(repo, self.forge.repo(repo).default_branch, changes, **given)


@found_by("commit_files_a_path_is_read_at_the_call")
class ReadsTheFileAsText(_Committing):
    """Opens a file named by path in text mode."""

    def changed(self, changes: Sequence[FileChange]) -> Sequence[FileChange]:
        if not isinstance(changes, list):
            return changes
        return [
            c
            if not isinstance(c, PutFile) or isinstance(c.content, bytes | str)
            else dataclasses.replace(c, content=c.data().decode(errors="replace").replace("\r\n", "\n"))
            for c in changes
        ]


# pull requests


class _Opening(LocalProvider):
    """Changes the arguments of open_pull_request on their way."""

    def open_pull_request(
        self,
        repo: str,
        *,
        source_branch: str,
        target_branch: str,
        title: str,
        description: str = "",
        draft: bool = False,
        labels: Sequence[str] = (),
        reviewers: Sequence[str] = (),
    ) -> PullRequest:
        given: dict[str, Any] = {
            "source_branch": source_branch,
            "target_branch": target_branch,
            "title": title,
            "description": description,
            "draft": draft,
            "labels": labels,
            "reviewers": reviewers,
        }
        return self.open(repo, {**given, **self.given()})

    def open(self, repo: str, given: dict[str, Any]) -> PullRequest:
        return super().open_pull_request(repo, **given)

    def given(self) -> dict[str, Any]:
        return {}


@found_by("open_pull_request_labels_are_set_or_refused")
class DropsLabels(_Opening):
    """Forgets the second request."""

    def given(self) -> dict[str, Any]:
        return {"labels": ()}


@found_by("open_pull_request_a_review_is_requested_or_refused")
class DropsReviewers(_Opening):
    """Forgets the third request."""

    def given(self) -> dict[str, Any]:
        return {"reviewers": ()}


@found_by("open_pull_request_a_draft_is_opened_or_refused")
class DropsTheDraft(_Opening):
    """Opens it ready."""

    def given(self) -> dict[str, Any]:
        return {"draft": False}


@found_by("open_pull_request_one_that_is_open_already_is_found")
class ReturnsTheOpenOne(_Opening):
    """Takes the one that exists for the one that was asked for."""

    def open(self, repo: str, given: dict[str, Any]) -> PullRequest:
        try:
            return super().open(repo, given)
        except AlreadyExistsError as error:
            existing: PullRequest = error.existing
            return existing


@found_by("open_pull_request_the_existing_one_is_that_of_these_branches")
class FindsAnyOpenOne(_Opening):
    """Takes the newest pull request for the one that is in the way."""

    def open(self, repo: str, given: dict[str, Any]) -> PullRequest:
        try:
            return super().open(repo, given)
        except AlreadyExistsError as error:
            error.existing = self.get_pull_request(repo, self.forge.pull_requests(repo)[0].number)
            raise


@found_by("open_pull_request_a_branch_of_another_repository_is_refused")
class ReadsAnOwner(_Opening):
    """Cuts ``owner:`` off a branch's name."""

    def open(self, repo: str, given: dict[str, Any]) -> PullRequest:
        for name in ("source_branch", "target_branch"):
            if isinstance(given[name], str):
                given[name] = given[name].rpartition(":")[2]
        return super().open(repo, given)


@found_by("open_pull_request_branches_with_no_history_in_common_conflict")
class OpensWhatHasNothingInCommon(_Opening):
    """Lets the merge find out."""

    def open(self, repo: str, given: dict[str, Any]) -> PullRequest:
        try:
            return super().open(repo, given)
        except ConflictError:
            del given["reviewers"]
            made = self.forge.open_pull_request(repo, allow_empty=True, **given)
            return self.get_pull_request(repo, made.number)


@found_by("open_pull_request_branches_with_no_history_in_common_conflict")
class BlamesTheArguments(_Opening):
    """Has one class for whatever a host does not take."""

    def open(self, repo: str, given: dict[str, Any]) -> PullRequest:
        try:
            return super().open(repo, given)
        except AlreadyExistsError:
            raise
        except ConflictError as error:
            raise InvalidRequestError(error.message, operation=error.operation, provider=error.provider) from None


@found_by("ensure_a_second_run_sends_no_mutation")
class FindsNoPullRequests(LocalProvider):
    """Has a filter that the host ignores."""

    def find_pull_requests(
        self, repo: str, *, source_branch: str, target_branch: str, state: PullRequestState | None = None
    ) -> list[PullRequest]:
        return []


@found_by("ensure_a_second_run_sends_no_mutation")
class SeesNoProtection(LocalProvider):
    """Takes a rule that it cannot read for none."""

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        return None


@found_by("ensure_a_second_run_sends_no_mutation")
class SeesAnEmptyTree(LocalProvider):
    """Lists the files of the top level, and of it none."""

    def tree(self, repo: str, sha: str) -> dict[str, TreeEntry]:
        return {}


# merges


class _Merging(LocalProvider):
    """Changes the arguments of merge_pull_request on their way."""

    def merge_pull_request(
        self,
        repo: str,
        number: int,
        *,
        method: MergeMethod = MergeMethod.MERGE,
        expected_head: str | None = None,
        message: str | None = None,
        delete_source_branch: bool = False,
        timeout: float = 30.0,
    ) -> MergeResult:
        given: dict[str, Any] = {
            "method": method,
            "expected_head": expected_head,
            "message": message,
            "delete_source_branch": delete_source_branch,
            "timeout": timeout,
        }
        return self.merge(repo, number, {**given, **self.given()})

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        return super().merge_pull_request(repo, number, **given)

    def given(self) -> dict[str, Any]:
        return {}


@found_by("merge_a_branch_that_another_pull_request_needs_is_not_deleted")
class ClosesWhatOthersNeed(_Merging):
    """Deletes the source branch of a merge, whoever needs it."""

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        merged = super().merge(repo, number, {**given, "delete_source_branch": False})
        if given["delete_source_branch"]:
            self.forge.delete_branch(repo, self.get_pull_request(repo, number).source_branch)
        return merged


@found_by("merge_a_branch_that_another_pull_request_needs_is_not_deleted")
class LooksAtTargetsAlone(ClosesWhatOthersNeed):
    """Spares the pull requests into the branch, and closes those from it."""

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        branch = self.get_pull_request(repo, number).source_branch
        if self.forge.pull_requests(repo, target_branch=branch, state=PullRequestState.OPEN):
            return super(ClosesWhatOthersNeed, self).merge(repo, number, given)
        return super().merge(repo, number, given)


@found_by("merge_a_branch_that_another_pull_request_needs_is_not_deleted")
class MergesNothingThatOthersNeed(_Merging):
    """Refuses the merge, where only the deletion is in the way of others."""

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        opened = [pull.number for pull in self.forge.pull_requests(repo, state=PullRequestState.OPEN)]
        if given["delete_source_branch"] and set(opened) - {number}:
            raise ConflictError(f"{opened} need it", provider=self.name, repo=repo)
        return super().merge(repo, number, given)


@found_by("merge_another_head_than_expected_is_refused", "merge_a_head_that_moves_meanwhile_is_not_merged")
class MergesWithoutASha(_Merging):
    """Merges whatever the source branch is at."""

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        merged = self.forge.merge(repo, number, method=given["method"])
        assert merged.merge_commit_sha is not None
        return MergeResult(sha=merged.merge_commit_sha)


@found_by("merge_merged_already_at_another_head_is_told")
class IgnoresTheMergedHead(_Merging):
    """Takes merged for merged."""

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        if self.get_pull_request(repo, number).state is PullRequestState.MERGED:
            given["expected_head"] = None
        return super().merge(repo, number, given)


@found_by("merge_a_conflict", "merge_a_closed_one", "merge_a_draft", "merge_missing_approvals")
class SaysMergedWhenItIsNot(_Merging):
    """Takes an accepted request for a merge."""

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        try:
            return super().merge(repo, number, given)
        except NotMergeableError:
            return MergeResult(sha=self.forge.head(repo, self.forge.pull_request(repo, number).target_branch))


@found_by("merge_merging_twice_is_one_merge", "merge_merged_already_is_success")
class FailsWhenMergedAlready(_Merging):
    """Takes an earlier merge for a failure."""

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        result = super().merge(repo, number, given)
        if result.already_merged:
            raise ConflictError("it is merged already", provider="local", operation="merge_pull_request")
        return result


@found_by("merge_merged_already_is_success")
class TakesTheTargetsHead(_Merging):
    """Reads the merge's sha off the target branch."""

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        result = super().merge(repo, number, given)
        return dataclasses.replace(
            result, sha=self.forge.head(repo, self.forge.pull_request(repo, number).target_branch)
        )


@found_by("merge_a_squash_brings_the_changes_without_the_commits", "merge_a_rebase_makes_no_merge_commit")
class IgnoresTheMethod(_Merging):
    """Makes a merge commit always."""

    def given(self) -> dict[str, Any]:
        return {"method": MergeMethod.MERGE}


@found_by("merge_a_message_is_written", "merge_a_rebase_takes_no_message")
class IgnoresTheMessage(_Merging):
    """Leaves the message to the host."""

    def given(self) -> dict[str, Any]:
        return {"message": None}


@found_by("merge_the_source_branch_stays_unless_asked")
class DeletesUnasked(_Merging):
    """Leaves the source branch to the host's default."""

    def given(self) -> dict[str, Any]:
        return {"delete_source_branch": True}


@found_by("merge_the_source_branch_is_deleted")
class DeletesNothing(_Merging):
    """Forgets the last request."""

    def given(self) -> dict[str, Any]:
        return {"delete_source_branch": False}


@found_by("merge_a_branch_that_went_on_is_not_deleted")
class DeletesWhatWentOn(_Merging):
    """Deletes the branch wherever it is by now."""

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        source = self.forge.pull_request(repo, number).source_branch
        result = super().merge(repo, number, {**given, "delete_source_branch": False})
        if given["delete_source_branch"]:
            self.forge.delete_branch(repo, source)
        return result


@found_by("merge_a_branch_that_may_not_be_deleted_stays")
class HidesAFailedDeletion(_Merging):
    """Says nothing of a branch that stays."""

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        try:
            return super().merge(repo, number, given)
        except GitProviderError as error:
            if error.outcome is not Outcome.PARTIAL:
                raise
            result: MergeResult = error.completed[0].value
            return result


@found_by("merge_a_branch_that_may_not_be_deleted_stays")
class ForgetsTheMerge(_Merging):
    """Reports a failed deletion as a failed merge."""

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        try:
            return super().merge(repo, number, given)
        except GitProviderError as error:
            error.outcome, error.completed = Outcome.NOT_APPLIED, ()
            raise


@found_by("merge_a_failed_deletion_names_its_steps")
class NamesAFailedDeletionItself(_Merging):
    """Has a word of its own for the step that failed."""

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        try:
            return super().merge(repo, number, given)
        except GitProviderError as error:
            error.failed_step = f"local: {error.failed_step}"
            raise


@found_by("merge_missing_approvals", "merge_a_check_that_has_not_passed")
class MergesPastProtection(_Merging):
    """Uses an administrator's way round."""

    def merge(self, repo: str, number: int, given: dict[str, Any]) -> MergeResult:
        merged = self.forge.merge(repo, number, method=given["method"], bypass=True)
        assert merged.merge_commit_sha is not None
        return MergeResult(sha=merged.merge_commit_sha)


# looks


@found_by("state_a_branch_contains_what_it_reaches")
class ContainsTheHeadAlone(LocalProvider):
    """Compares with the head, and goes no further."""

    def contains(self, repo: str, sha: str, branch: str) -> bool:
        return super().head(repo, branch) == sha


@found_by("state_a_tree_is_read")
class ForgetsModes(LocalProvider):
    """Has every file regular."""

    def tree(self, repo: str, sha: str) -> dict[str, TreeEntry]:
        return {path: entry._replace(mode="100644") for path, entry in super().tree(repo, sha).items()}


@found_by("state_pull_requests_are_found_by_their_branches")
class ListsOldestFirst(LocalProvider):
    """Has another order."""

    def find_pull_requests(
        self, repo: str, *, source_branch: str, target_branch: str, state: PullRequestState | None = None
    ) -> list[PullRequest]:
        return super().find_pull_requests(repo, source_branch=source_branch, target_branch=target_branch, state=state)[
            ::-1
        ]


@found_by("state_protection_is_read")
class ProtectsByDefault(LocalProvider):
    """Gives a protection that demands nothing for none."""

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        return super().protection(repo, branch) or BranchProtection.nothing()


@found_by("protect_branch_each_rule_is_set_or_refused")
class SendsAnUnsupportedOption(LocalProvider):
    """Refuses an option only after a look at the host."""

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        try:
            return super().protect_branch(repo, branch, rules)
        except UnsupportedOptionError:
            self.forge.repo(repo)
            raise


# bad days


@found_remotely_by(
    "a_mutation_is_not_tried_again", "a_lost_answer_is_told", "what_became_of_a_lost_answer_can_be_found_out"
)
class RetriesAMutation(GitHubProvider):
    """Sends what failed again, as many SDKs do."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        try:
            return super().create_branch(repo, name, source=source)
        except ProviderUnavailableError:
            return super().create_branch(repo, name, source=source)


@found_remotely_by("a_lost_answer_is_told")
class TakesALostAnswerForARefusal(GitHubProvider):
    """Says that nothing was applied, and that repeating is safe."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        try:
            return super().create_branch(repo, name, source=source)
        except ProviderUnavailableError as error:
            error.outcome = Outcome.NOT_APPLIED
            raise


@found_remotely_by("a_lost_answer_names_the_effect_step")
class NamesAStepByItsEndpoint(GitHubProvider):
    """Has the host's word for a step, which no caller can compare."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        try:
            return super().create_branch(repo, name, source=source)
        except ProviderUnavailableError as error:
            error.failed_step = "POST git/refs"
            raise


@found_remotely_by("a_lost_answer_is_told")
class LooksAfterALostAnswer(GitHubProvider):
    """Takes what it finds there for its own work."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        try:
            return super().create_branch(repo, name, source=source)
        except ProviderUnavailableError:
            return Branch(name=name, sha=self.head(repo, name))


@found_remotely_by("a_read_gives_up_after_four_failures")
class TriesTwice(GitHubProvider):
    """Has a retry of its own around the one that is there."""

    def list_branches(self, repo: str) -> list[Branch]:
        try:
            return super().list_branches(repo)
        except ProviderUnavailableError:
            return super().list_branches(repo)


@found_remotely_by("a_read_survives_three_failures")
class TakesAFailureForEmpty(GitHubProvider):
    """Lists nothing when the host does not answer at once."""

    def list_branches(self, repo: str) -> list[Branch]:
        try:
            self.commit(repo, "0" * 40)
        except NotFoundError:
            pass
        except ProviderUnavailableError:
            return []
        return super().list_branches(repo)


@found_remotely_by("a_credential_that_is_no_longer_good")
class KnocksAgain(GitHubProvider):
    """Tries a refused credential once more."""

    def get_repo(self, repo: str) -> Repo:
        try:
            return super().get_repo(repo)
        except AuthenticationError:
            return super().get_repo(repo)


@found_remotely_by("create_branch_a_name_that_git_refuses_is_refused_before_any_request")
class AsksBeforeItChecks(GitHubProvider):
    """Lets the host find out."""

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        self.get_repo(repo)
        return super().create_branch(repo, name, source=source)
