"""The contract. These docstrings are the specification; the suite in ``gitprovider.testing`` holds providers to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, ParamSpec, Protocol, TypeVar

from gitprovider.errors import NotFoundError
from gitprovider.models import (
    Author,
    Branch,
    BranchProtection,
    Commit,
    FileChange,
    MergeMethod,
    MergeResult,
    PullRequest,
    PullRequestState,
    Repo,
    Visibility,
)


class GitProviderContract(Protocol):
    """Eight operations that mean the same on every Git host.

    ``repo`` is the full path as the host shows it: ``acme/widgets``, on GitLab also ``acme/platform/widgets``.

    A read (``get_repo``, ``list_branches``) survives transient failures: it is tried up to four times, unless the
    provider was told otherwise. A mutation is sent once. When it fails, the error's ``outcome`` says whether it took
    effect, ``completed`` what was done, and ``intent`` lets :func:`gitprovider.resolve` find out. The names of these
    steps are the same on every host: the effect step has the ``effect`` of its class in ``gitprovider.mutations``, and
    after a merge follows ``delete source branch``.

    Besides the errors that each operation names, every operation may raise:

    * InvalidRequestError: an argument is wrong; found before any request, unless only the host can know.
    * UnsupportedOptionError: this host cannot honour an option; found before any request.
    * AuthenticationError (401), PermissionDeniedError (403), RateLimitedError (429, GitHub's 403 of that meaning).
    * RepoMovedError: the repository has another path now (any 3xx; GitLab: 405 on a write).
    * ProviderUnavailableError: 5xx, timeout, connection refused, reset or cut. A mutation's outcome is UNKNOWN when
      the effect step had been sent, unless it certainly never reached the host.
    * UnexpectedResponseError: HTML, cut JSON, missing fields. A mutation's outcome is UNKNOWN at the effect step.
    """

    def get_repo(self, repo: str) -> Repo:
        """Read a repository.

        A repository that was renamed is read at its new place: the value's ``path`` is the new one.

        Args:
            repo: the full path.

        Raises:
            NotFoundError: there is none, or this credential may not see it; hosts do not tell these apart.
            RetryCancelledError: the event of ``cancel_on`` was set during a wait.

        GitHub: ``GET /repos/{owner}/{repo}`` (https://docs.github.com/rest/repos/repos#get-a-repository).
        GitLab: ``GET /projects/:id`` (https://docs.gitlab.com/api/projects/#get-a-single-project).
        """
        ...

    def list_branches(self, repo: str) -> list[Branch]:
        """List every branch, sorted by name (code points), each once. Empty for an empty repository.

        Pages of 100 are read one after another; a failure repeats the page that failed. A page that is short before
        the last, comes twice, or is no list, is an error, never a shorter result.

        Args:
            repo: the full path.

        Raises:
            NotFoundError: no such repository.
            RetryCancelledError: the event of ``cancel_on`` was set during a wait.

        GitHub: ``GET /repos/{owner}/{repo}/branches`` (https://docs.github.com/rest/branches/branches#list-branches).
        GitLab: ``GET /projects/:id/repository/branches``
        (https://docs.gitlab.com/api/branches/#list-repository-branches).
        """
        ...

    def create_repo(
        self,
        repo: str,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
        auto_init: bool = False,
    ) -> Repo:
        """Create a repository. Its effect step is the create request.

        Args:
            repo: the full path; the namespace must exist (local: it is made).
            description: one line.
            visibility: PUBLIC, PRIVATE or INTERNAL (GitHub: INTERNAL is unsupported on github.com's own API;
                GitLab: unsupported on gitlab.com, which has disabled it).
            auto_init: make a first commit with a README on the default branch. On hosts where that is done in the
                background the branch may appear moments later.

        Raises:
            AlreadyExistsError: the path is taken; ``existing`` is that Repo when it can be seen.
            NotFoundError: no such namespace, or this credential may not see it.
            PermissionDeniedError: not allowed to create there, or the plan or a policy forbids the visibility.
            InvalidRequestError: a name that the host would refuse or quietly change.

        GitHub: ``POST /orgs/{org}/repos`` or ``POST /user/repos``
        (https://docs.github.com/rest/repos/repos#create-an-organization-repository).
        GitLab: ``POST /projects`` (https://docs.gitlab.com/api/projects/#create-a-project).
        """
        ...

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        """Create a branch. Its effect step is the create request; an existing branch is never moved.

        Args:
            name: the bare name, such as ``feature/login``.
            source: the name of an existing branch, whose head is read first, or a full commit sha.

        Raises:
            AlreadyExistsError: ``existing`` is that Branch.
            NotFoundError: no such repository, no such source branch or commit, or the repository is empty.
            ConflictError: a branch is in the way whose name is a path prefix (``release`` and ``release/1``).
            PermissionDeniedError: a rule forbids the name.

        GitHub: ``POST /repos/{owner}/{repo}/git/refs`` (https://docs.github.com/rest/git/refs#create-a-reference).
        GitLab: ``POST /projects/:id/repository/branches``
        (https://docs.gitlab.com/api/branches/#create-repository-branch).
        """
        ...

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        """Protect a branch at least as much as ``rules``, and return what now holds on the host.

        ``rules`` is a floor: what holds is read first, the stricter of both is taken for every field, and settings
        that this library does not model are kept. A failed read stops the call before the write. The host's answer is
        compared with what was asked.

        GitLab, where a rule of its Free tier cannot be changed in place: a bridge rule keeps the branch protected
        while the old rule is made anew; a failure in between leaves at least what held.

        Args:
            branch: an existing branch; no pattern.
            rules: what the branch is protected with at least.

        Raises:
            NotFoundError: no such repository or branch.
            ConflictError: another rule, which this call may not change, makes the branch laxer than asked; or what
                holds cannot be read. Nothing was changed.
            PermissionDeniedError: needs administration rights (GitLab: Maintainer), or the plan has no protection.
                With outcome PARTIAL: the host took the write and holds less than was asked.

        GitHub: ``PUT /repos/{owner}/{repo}/branches/{branch}/protection``
        (https://docs.github.com/rest/branches/branch-protection#update-branch-protection).
        GitLab: ``POST`` and ``PATCH /projects/:id/protected_branches``
        (https://docs.gitlab.com/api/protected_branches/).
        """
        ...

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
        """Commit all changes at once. Its effect step is the move of the branch, which is never forced.

        Content is written byte for byte. Changes that change nothing return the head (as a Commit with the head's
        own message and parent where the host gives them), without an empty commit. In an empty repository this makes
        the first commit, on the default branch. On GitHub, whose Git data API refuses an empty repository, several
        files take a seed commit of one of them and then the rest. On GitLab, which sets no mode there, executable files
        take a second commit.

        Args:
            branch: an existing branch; in an empty repository the default branch.
            changes: at least one; a path at most once; 25 MB a file and 50 MB a call at most. All are checked, and
                files named by path are read, before any request.
            message: not empty.
            author: None leaves it to the host, which takes the credential's user.
            expected_head: the full sha that the branch must be at.

        Raises:
            NotFoundError: no such repository; the branch does not exist in a repository that has commits.
            HeadMovedError: the branch is not at ``expected_head``, or moved while the commit was made. GitLab has no
                compare-and-set on a branch: there the new commit's parent is compared with the head read before, and
                a difference is HeadMovedError with outcome PARTIAL and the commit in ``completed``.
            InvalidRequestError: deleting or moving what is not there; moving onto an existing path; a file below a
                file or in place of a directory; a symbolic link or submodule at a touched path; in an empty
                repository, another branch than the default one, or anything but PutFile.
            PermissionDeniedError: the branch is protected against direct commits.

        GitHub: ``POST /repos/{owner}/{repo}/git/trees``, ``…/git/commits``, ``PATCH …/git/refs/heads/{branch}``
        (https://docs.github.com/rest/git).
        GitLab: ``POST /projects/:id/repository/commits``
        (https://docs.gitlab.com/api/commits/#create-a-commit-with-multiple-files-and-actions).
        """
        ...

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
        """Open a pull request between two branches of the repository. Its effect step is the create request.

        Args:
            source_branch, target_branch: two existing, different branches; ``owner:branch`` is refused.
            title: one line of at most 255 characters.
            description: Markdown.
            draft: open it as a draft.
            labels: names; a host makes those that do not exist.
            reviewers: user names whose review is requested.

        Raises:
            AlreadyExistsError: one is open between these branches; ``existing`` is that PullRequest.
            NotFoundError: no such repository, source branch or target branch.
            ConflictError: there is nothing to merge: no commits between the branches (GitHub, local; GitLab opens it).
            PermissionDeniedError: the plan has no drafts; the credential may not open pull requests.
            Any error with outcome PARTIAL: the pull request was made, in ``completed``, and a label or reviewer not.

        GitHub: ``POST /repos/{owner}/{repo}/pulls`` (https://docs.github.com/rest/pulls/pulls#create-a-pull-request).
        GitLab: ``POST /projects/:id/merge_requests`` (https://docs.gitlab.com/api/merge_requests/#create-mr).
        """
        ...

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
        """Merge a pull request at a known head. Its effect step is the merge request, sent once with that head's sha.

        Already merged at that head is success, with ``already_merged=True``. Success is reported only when the host
        says merged.

        Args:
            number: the number people see (GitLab: iid).
            method: MERGE makes a merge commit, SQUASH one commit, REBASE none of its own.
            expected_head: the full sha that the source branch must be at; None takes the head read just before.
            message: the message of the merge or squash commit; with REBASE, which makes none, InvalidRequestError.
            delete_source_branch: afterwards, in the same repository only, and only while the branch still is at the
                merged head.
            timeout: how many seconds to wait, reading only, while the host computes whether it can be merged.

        Raises:
            NotFoundError: no such repository or pull request.
            HeadMovedError: the source branch is not at ``expected_head``.
            NotMergeableError: ``reason`` is CONFLICT, CHECKS, REVIEWS, DRAFT, BEHIND, CLOSED, METHOD (the
                repository's settings contradict the method), POLICY, PENDING (still computing; or, with outcome
                UNKNOWN, accepted and not merged in time) or UNKNOWN.
            PermissionDeniedError: may not merge into the target branch.
            Any error with outcome PARTIAL: merged, with the MergeResult in ``completed``, and the source branch stays.

        GitHub: ``PUT /repos/{owner}/{repo}/pulls/{number}/merge``
        (https://docs.github.com/rest/pulls/pulls#merge-a-pull-request).
        GitLab: ``PUT /projects/:id/merge_requests/:iid/merge``
        (https://docs.gitlab.com/api/merge_requests/#merge-a-merge-request).
        """
        ...


class TreeEntry(NamedTuple):
    """What is at a path: the object's sha, and Git's mode (``100644``, ``100755``, ``120000``, ``160000``)."""

    sha: str
    mode: str


class HostState(Protocol):
    """Reads of a host's present state. None of them is retried; each raises what the contract's reads raise."""

    @property
    def name(self) -> str:
        """The provider's name, as in errors and intents: ``github``, ``gitlab``, ``local`` or a third party's own."""
        ...

    @property
    def settle(self) -> float:
        """Seconds after which a request whose answer was lost can no longer take effect."""
        ...

    def head(self, repo: str, branch: str) -> str:
        """The sha of the branch's head.

        Raises:
            NotFoundError: no such repository or branch, or the repository is empty.
        """
        ...

    def contains(self, repo: str, sha: str, branch: str) -> bool:
        """Whether the commit ``sha`` is reachable from the branch's head. An unknown commit is not.

        Raises:
            NotFoundError: no such repository or branch.
        """
        ...

    def commit(self, repo: str, sha: str) -> Commit:
        """A commit by its sha; ``branch`` of the value is empty.

        Raises:
            NotFoundError: no such repository or commit.
        """
        ...

    def tree(self, repo: str, sha: str) -> Mapping[str, TreeEntry]:
        """Every file of a commit's tree, by path; directories are not listed.

        Raises:
            NotFoundError: no such repository or commit.
        """
        ...

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        """What holds for the branch, or None when nothing protects it.

        Raises:
            NotFoundError: no such repository or branch.
            ConflictError: it is protected and what holds cannot be read.
        """
        ...

    def find_pull_requests(
        self, repo: str, *, source_branch: str, target_branch: str, state: PullRequestState | None = None
    ) -> list[PullRequest]:
        """The pull requests between two branches of the repository, newest first; None means in any state."""
        ...

    def get_pull_request(self, repo: str, number: int) -> PullRequest:
        """A pull request by its number.

        Raises:
            NotFoundError: no such repository or pull request.
        """
        ...


class InspectableProvider(GitProviderContract, HostState, Protocol):
    """A provider whose host can be inspected: the contract, and the reads of HostState. All of ours are."""


_P = ParamSpec("_P")
_T = TypeVar("_T")


def optional(read: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T | None:
    """Call ``read``; NotFoundError becomes None, and every other failure stays a failure.

    ``optional(provider.get_repo, "acme/widgets")`` is the repository or None.
    """
    try:
        return read(*args, **kwargs)
    except NotFoundError:
        return None
