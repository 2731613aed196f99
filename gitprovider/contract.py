"""The contract. Its docstrings are the specification, and the suite in ``gitprovider.testing`` tests it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, ParamSpec, Protocol, TypeVar, runtime_checkable

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

    A read (``get_repo``, ``list_branches``) is retried on transient failures: four attempts by default. A mutation is
    sent once. When a mutation fails, the error's ``outcome`` says whether it took effect, ``completed`` lists the
    steps that were done, and :func:`gitprovider.resolve` reads the host to find out more from ``intent``. These steps
    have the same names on every host: the effect step is named by ``effect`` of the mutation's class in
    ``gitprovider.mutations``, and the deletion of a merged source branch is ``delete source branch``.

    A repository and a branch are known by their present names. Only ``get_repo`` follows a renamed repository; every
    other operation raises RepoMovedError at the old path. No operation follows a renamed branch: its old name raises
    NotFoundError, and is free for another branch.

    Every operation may raise these errors besides its own:

    * InvalidRequestError: an argument is wrong. It is raised before any request, unless only the host can know.
    * UnsupportedOptionError: this host cannot honour an option. It is raised before any request.
    * AuthenticationError (401), PermissionDeniedError (403), RateLimitedError (429, or GitHub's rate-limit 403).
    * RepoMovedError: the repository has another path now (any 3xx; GitLab: 405 on a write). If the redirect is not the
      application's own, a mutation's outcome is UNKNOWN.
    * ProviderUnavailableError: 5xx, timeout, connection refused, reset or cut. A mutation's outcome is UNKNOWN if the
      effect step was sent, unless the request certainly never reached the host.
    * UnexpectedResponseError: HTML, truncated JSON or missing fields. A mutation's outcome is UNKNOWN if this was the
      response to the effect step.
    """

    def get_repo(self, repo: str) -> Repo:
        """Return a repository.

        If the repository was renamed, it is read at its new path, and ``path`` of the value is the new path.

        Args:
            repo: the full path.

        Raises:
            NotFoundError: the repository does not exist, or this credential may not see it. Hosts do not distinguish
                the two.
            RetryCancelledError: the event of ``cancel_on`` was set during a wait.

        GitHub: ``GET /repos/{owner}/{repo}`` (https://docs.github.com/rest/repos/repos#get-a-repository).
        GitLab: ``GET /projects/:id`` (https://docs.gitlab.com/api/projects/#get-a-single-project).
        """
        ...

    def list_branches(self, repo: str) -> list[Branch]:
        """Return every branch once, sorted by name (code points). The list is empty for an empty repository.

        Pages of 100 are read one after another, or side by side with ``page_concurrency`` of GitHubProvider. If a page
        fails, only that page is read again. A page that is short but not the last, a repeated page, or a body that is
        not a list is an error, never a shorter result.

        Branches that are made or deleted while the pages are read can move others between the pages. Where the host
        tells the size of the whole list (GitLab: the number of branches; GitHub: only the number of pages), the list is
        read again if it does not fit, three times at most. On GitHub, a deletion that leaves the number of pages as it
        was can hide another branch: no request of GitHub's shows it.

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
        """Create a repository and return it. The effect step is the create request.

        Args:
            repo: the full path. The namespace must exist (local: it is created). The old path of a renamed repository
                is free, and then no longer leads to that one.
            description: one line.
            visibility: PUBLIC, PRIVATE or INTERNAL (GitHub: INTERNAL is unsupported on github.com's own API;
                GitLab: unsupported on gitlab.com, which has disabled it).
            auto_init: create a first commit with a README on the default branch. A host may do this in the background;
                the branch then appears moments later.

        Raises:
            AlreadyExistsError: the path is taken. ``existing`` is that Repo if this credential may see it.
            NotFoundError: the namespace does not exist, or this credential may not see it.
            PermissionDeniedError: the credential may not create there, or the plan or a policy forbids the visibility.
            InvalidRequestError: the host would refuse the name or silently change it.

        GitHub: ``POST /orgs/{org}/repos`` or ``POST /user/repos``
        (https://docs.github.com/rest/repos/repos#create-an-organization-repository).
        GitLab: ``POST /projects`` (https://docs.gitlab.com/api/projects/#create-a-project).
        """
        ...

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        """Create a branch and return it. The effect step is the create request. An existing branch is never moved.

        Args:
            name: the branch name without ``refs/heads/``, such as ``feature/login``.
            source: the name of an existing branch, whose head is read first, or a full commit sha.

        Raises:
            AlreadyExistsError: the branch exists. ``existing`` is that Branch.
            NotFoundError: no such repository, no such source branch or commit, or the repository is empty.
            ConflictError: one name is a path prefix of another branch's (``release`` and ``release/1``).
            PermissionDeniedError: a rule forbids the name.

        GitHub: ``POST /repos/{owner}/{repo}/git/refs`` (https://docs.github.com/rest/git/refs#create-a-reference).
        GitLab: ``POST /projects/:id/repository/branches``
        (https://docs.gitlab.com/api/branches/#create-repository-branch).
        """
        ...

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        """Protect a branch at least as much as ``rules``, and return the protection that is now in force.

        ``rules`` is a minimum. The current protection is read first, and each field is set to the stricter of the two
        values. Settings that this library does not model are kept; if they cannot be, nothing is written. If the read
        fails, nothing is written. The host's response is compared with the request.

        GitLab: a rule on the Free tier cannot be changed in place. A temporary bridge rule keeps the branch protected
        while the rule is replaced. A failure in between never leaves the branch less protected than before.

        Args:
            branch: an existing branch, not a pattern.
            rules: the least protection that the branch has afterwards.

        Raises:
            NotFoundError: no such repository or branch.
            ConflictError: another rule, which this call may not change, makes the branch less protected than
                requested; the current protection cannot be read; or a setting would be lost. Nothing was changed.
            PermissionDeniedError: administration rights are needed (GitLab: Maintainer), or the plan has no
                protection. With outcome PARTIAL: the host accepted the write but protects less than requested.

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
        """Commit all changes at once and return the commit. The effect step moves the branch, never by force.

        Content is written byte for byte. If the changes have no effect, no commit is made and the branch's head is
        returned, with its own message and parent where the host gives them. In an empty repository this makes the first
        commit, on the default branch. There, GitHub needs two commits for several files, because its Git data API
        refuses an empty repository: a seed commit of one file, then the rest. GitLab needs a second commit there for
        executable files, because the first cannot set a mode. GitHub signs a commit that is made with its mutation
        (``commit_api="auto"``), and one by an App; it does not sign one that a user's token makes otherwise.

        Args:
            branch: an existing branch; in an empty repository the default branch.
            changes: at least one change, each path at most once, at most 25 MB per file and 50 MB per call. All changes
                are checked, and files given by path are read, before any request.
            message: not empty.
            author: None leaves the author to the host, which uses the credential's user.
            expected_head: the full sha that the branch must be at.

        Raises:
            NotFoundError: no such repository, or no such branch in a repository that has commits.
            HeadMovedError: the branch is not at ``expected_head``, or it moved while the commit was made. GitLab has no
                compare-and-set on a branch. There, the new commit's parent is compared with the head read before. If
                they differ, the outcome is PARTIAL and ``completed`` has the commit.
            InvalidRequestError: a change deletes or moves a path that does not exist, moves onto an existing path, puts
                a file below a file or in place of a directory, or touches a symbolic link or submodule. In an empty
                repository: the branch is not the default branch, or a change is not a PutFile.
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
        """Open a pull request between two branches of the repository. The effect step is the create request.

        Args:
            source_branch, target_branch: two different, existing branches. ``owner:branch`` is refused.
            title: one line of at most 255 characters.
            description: Markdown.
            draft: open it as a draft.
            labels: label names. The host creates those that do not exist.
            reviewers: user names to request a review from.

        Raises:
            AlreadyExistsError: a pull request is open between these branches. ``existing`` is that PullRequest.
            NotFoundError: no such repository, source branch or target branch.
            ConflictError: there are no commits between the branches (GitHub, local; GitLab opens it anyway), or the two
                branches have no history in common.
            PermissionDeniedError: the plan has no drafts, or the credential may not open pull requests.
            Any error with outcome PARTIAL: the pull request was opened and is in ``completed``, but a label or reviewer
                was not set.

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
        """Merge a pull request at a known head. The effect step is the merge request, sent once with that head's sha.

        If the pull request is already merged at that head, the call succeeds with ``already_merged=True``. Success is
        reported only if the host says that the pull request is merged.

        Args:
            number: the number shown to users (GitLab: iid).
            method: MERGE creates a merge commit, SQUASH one commit, REBASE no commit of its own.
            expected_head: the full sha that the source branch must be at. None uses the head read just before the
                merge.
            message: the message of the merge or squash commit. It is refused with REBASE, which makes no commit.
            delete_source_branch: delete the source branch after the merge. It is deleted only if it is in the same
                repository and still at the merged head, and if no other open pull request is from or into it, because
                a host closes those.
            timeout: seconds to wait, by reading only, while the host computes whether the pull request can be merged.

        Raises:
            NotFoundError: no such repository or pull request.
            HeadMovedError: the source branch is not at ``expected_head``.
            NotMergeableError: ``reason`` is CONFLICT, CHECKS, REVIEWS, DRAFT, BEHIND, CLOSED, METHOD (the
                repository's settings forbid the method), POLICY, PENDING (the host is still computing; or, with
                outcome UNKNOWN, it accepted the merge and did not finish in time) or UNKNOWN.
            PermissionDeniedError: the credential may not merge into the target branch.
            Any error with outcome PARTIAL: the merge is done, the MergeResult is in ``completed``, and the source
                branch was not deleted.

        GitHub: ``PUT /repos/{owner}/{repo}/pulls/{number}/merge``
        (https://docs.github.com/rest/pulls/pulls#merge-a-pull-request).
        GitLab: ``PUT /projects/:id/merge_requests/:iid/merge``
        (https://docs.gitlab.com/api/merge_requests/#merge-a-merge-request).
        """
        ...


class TreeEntry(NamedTuple):
    """An entry of a Git tree: the object's sha and its mode (``100644``, ``100755``, ``120000``, ``160000``)."""

    sha: str
    mode: str


class HostState(Protocol):
    """Reads of a host's current state, which ``resolve`` and the ``ensure_`` functions need.

    The reads are not retried. Each raises the same errors as the contract's reads, besides those it names.
    """

    @property
    def name(self) -> str:
        """The provider's name in errors and intents. It is ``github``, ``gitlab``, ``local`` or a third party's own."""
        ...

    @property
    def settle(self) -> float:
        """Seconds after which a request whose response was lost can no longer take effect."""
        ...

    def head(self, repo: str, branch: str) -> str:
        """Return the sha of the branch's head.

        Raises:
            NotFoundError: no such repository or branch, or the repository is empty.
        """
        ...

    def contains(self, repo: str, sha: str, branch: str) -> bool:
        """Report whether the commit ``sha`` is reachable from the branch's head. False if the commit does not exist.

        Raises:
            NotFoundError: no such repository or branch.
        """
        ...

    def commit(self, repo: str, sha: str) -> Commit:
        """Return a commit by its sha. ``branch`` of the value is empty.

        Raises:
            NotFoundError: no such repository or commit.
        """
        ...

    def tree(self, repo: str, sha: str) -> Mapping[str, TreeEntry]:
        """Return every file of a commit's tree by its path. Directories are not listed.

        Raises:
            NotFoundError: no such repository or commit.
        """
        ...

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        """Return the protection of a branch, or None if nothing protects it.

        Raises:
            NotFoundError: no such repository or branch.
            ConflictError: the branch is protected, but the protection cannot be read.
        """
        ...

    def find_pull_requests(
        self, repo: str, *, source_branch: str, target_branch: str, state: PullRequestState | None = None
    ) -> list[PullRequest]:
        """Return the pull requests between two branches of the repository, newest first.

        Args:
            state: return only pull requests in this state; None for any state.
        """
        ...

    def get_pull_request(self, repo: str, number: int) -> PullRequest:
        """Return a pull request by its number.

        Raises:
            NotFoundError: no such repository or pull request.
        """
        ...


@runtime_checkable
class InspectableProvider(GitProviderContract, HostState, Protocol):
    """A provider with both the contract and the reads of HostState. The three providers of this library are."""


_P = ParamSpec("_P")
_T = TypeVar("_T")
# Whether the caller of a read is prepared for NotFoundError. The event of such a read says so.
absence_expected: ContextVar[bool] = ContextVar("gitprovider_absence_expected", default=False)


@contextmanager
def expecting_absence() -> Iterator[None]:
    """Within the block, a read that raises NotFoundError is no failure: its event says that it was expected."""
    token = absence_expected.set(True)
    try:
        yield
    finally:
        absence_expected.reset(token)


def optional(read: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T | None:
    """Call ``read`` and return its result, or None if it raises NotFoundError. Other errors pass through.

    ``optional(provider.get_repo, "acme/widgets")`` is the repository or None.
    """
    try:
        with expecting_absence():
            return read(*args, **kwargs)
    except NotFoundError:
        return None
