"""GitLabProvider: repositories on GitLab, by python-gitlab."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import urljoin, urlsplit

import gitlab

from gitprovider import checks
from gitprovider._core.claims import IntentStore
from gitprovider._core.operation import BeforeEffect
from gitprovider._core.options import check_page_concurrency
from gitprovider._core.urls import origin
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation, ask_for_token, with_existing
from gitprovider._remote.provider import RemoteProvider
from gitprovider._remote.response import StatusError
from gitprovider._remote.throttle import Throttle
from gitprovider.contract import TreeEntry
from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    GitProviderError,
    InvalidRequestError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    RepoMovedError,
    UnexpectedResponseError,
)
from gitprovider.events import Hook
from gitprovider.gitlab import convert
from gitprovider.gitlab.auth import Credential, Token
from gitprovider.gitlab.client import PUBLIC, GitLabClient, Settings
from gitprovider.gitlab.commits import CommitCall
from gitprovider.gitlab.endpoints import (
    BRANCHES,
    COMMIT,
    COMPARE,
    MERGE_BASE,
    MERGE_REQUESTS,
    NAMESPACE,
    PROJECT,
    PROJECTS,
    TREE,
    USERS,
)
from gitprovider.gitlab.errors import is_retryable_read_error, translate
from gitprovider.gitlab.merges import MergeCall
from gitprovider.gitlab.protection import ProtectionCall, check_asked, read_protection
from gitprovider.gitlab.refusals import is_absent, read_branch, read_commit, read_merge_request, write
from gitprovider.models import Branch, BranchProtection, Commit, MergeResult, PullRequest, PullRequestState, Repo
from gitprovider.mutations import (
    CommitFiles,
    CreateBranch,
    CreateRepo,
    MergePullRequest,
    Mutation,
    OpenPullRequest,
    ProtectBranch,
)
from gitprovider.redact import Redactor
from gitprovider.retry import Limits, RetryOptions

_STATES = {
    None: "all",
    PullRequestState.OPEN: "opened",
    PullRequestState.CLOSED: "closed",
    PullRequestState.MERGED: "merged",
}

GitLabOperation = RemoteOperation[GitLabClient]


class GitLabProvider(RemoteProvider[GitLabClient]):
    """Repositories (projects) on gitlab.com or a self-managed GitLab.

    Args:
        url: the host's address, with the path that GitLab lives under, if any: ``https://git.example.org/gitlab``. A
            trailing slash or ``/api/v4`` is taken off.
        private_token, oauth_token: exactly one of them: a personal, project or group access token, or an OAuth token,
            with the scope ``api``. A CI job token reaches none of the endpoints that are needed. A
            token may be a function that returns one, for tokens that are rotated. It is asked before each operation, in
            the operation's thread, and its error is an AuthenticationError. A throttle counts the requests of all its
            tokens together.
        timeout: seconds to wait for a connection, and again for each part of a response. ``limits`` bounds the whole.
        verify: True, or the path of a CA bundle; False turns the check of certificates off. Proxies are taken from the
            environment, as requests does.
        retry: how reads are retried.
        limits: how much of a response is read, and for how long, also by a client of ``sdk()``. A response that it
            streams may have any size.
        obey_rate_limit: True turns python-gitlab's own handling of 429 on. It sends every request again, also a
            mutation, up to ten times, and waits as long as the host asks. The library then retries no 429 itself, and
            "sent once" does not hold for a 429. Inside ``with deadline(…)`` nothing is repeated.
        allow_http: permit ``http://`` to a host that is not this machine. The token then travels in the clear.
        settle: seconds after which a request whose response was lost can no longer take effect.
        on_event: a hook, or several, called with every event.
        before_effect: called with the complete intent just before each effect of a mutation is sent. If it raises,
            nothing is sent, and its error is the cause of the error that is raised.
        intents: the store that the ``key`` of an ``ensure_`` function is looked up in.
        throttle: asked before each request and told of each response, such as a HostBudget. None sends at once.
        pool_size: how many idle connections are kept. Any number of operations may run at the same time.
        page_concurrency: 1. More raises UnsupportedOptionError: GitLab reads all branches for each page.

    No request is sent until an operation is called. A provider may be used by many threads, and after a fork by both
    processes. It holds a credential and cannot be pickled.
    """

    name = "gitlab"

    def __init__(
        self,
        url: str = PUBLIC,
        *,
        private_token: Token | None = None,
        oauth_token: Token | None = None,
        timeout: float = 15,
        verify: checks.Verify = True,
        retry: RetryOptions = RetryOptions(),
        limits: Limits = Limits(),
        obey_rate_limit: bool = False,
        allow_http: bool = False,
        settle: float = 90.0,
        on_event: Hook | Sequence[Hook] | None = None,
        before_effect: BeforeEffect | None = None,
        intents: IntentStore | None = None,
        throttle: Throttle | None = None,
        pool_size: int = 10,
        page_concurrency: int = 1,
    ) -> None:
        try:
            credential = Credential(private_token=private_token, oauth_token=oauth_token)
        finally:
            # A traceback through here holds the frame's names.
            private_token = oauth_token = None
        settings = Settings.checked(
            url,
            timeout=timeout,
            verify=verify,
            limits=limits,
            obey_rate_limit=obey_rate_limit,
            allow_http=checks.check_bool("allow_http", allow_http),
        )
        check_page_concurrency(page_concurrency, settings.host)
        super().__init__(
            settings.url,
            host=settings.host,
            make_client=lambda: GitLabClient(settings, credential),
            redactor=Redactor([credential.token]),  # the token of a function is learnt when it is asked
            retry=retry,
            limits=limits,
            settle=settle,
            on_event=on_event,
            before_effect=before_effect,
            intents=intents,
            throttle=throttle,
            pool_size=pool_size,
        )
        self._settings = settings
        self._credential = credential
        self._namespaces: dict[str, int] = {}
        self._asked: weakref.WeakSet[GitLabOperation] = weakref.WeakSet()

    @contextmanager
    def sdk(self) -> Iterator[gitlab.Gitlab]:
        """Lend a ``gitlab.Gitlab`` for what the contract does not cover.

        It sends every request once, with a timeout, to this host alone, and follows redirects of reads within it. Its
        errors are python-gitlab's own.
        """
        self._pool.check_open()
        # Not one of the pool: whoever borrows it may change it.
        client = GitLabClient(self._settings, self._credential, follow_reads=True)
        try:
            if self._credential.ask is not None:
                with self._operation("sdk", "") as op, op.arguments():
                    client.authenticate(self._ask(self._credential.ask))
            yield client.sdk
        finally:
            client.close()

    def _authenticate(self, op: GitLabOperation) -> None:
        """Ask the function for the token, once for each operation."""
        if self._credential.ask is not None and op not in self._asked:
            op.client.authenticate(self._ask(self._credential.ask))
            self._asked.add(op)

    def _ask(self, ask: Callable[[], str]) -> tuple[str, str]:
        token = ask_for_token(ask)
        self._redact.learn(token)
        return self._credential.header(token)

    # GitProviderContract

    def _get_repo(self, op: GitLabOperation) -> Repo:
        """Read the project, also where GitLab redirects to its new path."""
        found: Repo = self._retried(op, "read repository")(lambda: self._repo(op))
        return found

    def _list_branches(self, op: GitLabOperation) -> list[Branch]:
        """List the branches in pages of 100. A page that fails is read again by itself."""
        retried = partial(self._retried, step="list branches")
        try:
            with op.before("list branches"):
                return op.pages(BRANCHES, convert.branch, retried=retried, project=op.repo)
        except PermissionDeniedError as error:
            if error.code == "repository-off" and retried(op)(
                lambda: convert.is_only_empty(op.read(PROJECT, project=op.repo))
            ):
                return []
            raise

    def _create_repo(self, op: GitLabOperation, asked: CreateRepo) -> Repo:
        """Create the project in its namespace, which GitLab wants as a number.

        Name, path and namespace are all sent. GitLab makes another path of a name alone, and takes the token's own
        namespace where none is given.
        """
        namespace, _, name = op.repo.rpartition("/")
        with op.before("read namespace"):
            body = {
                "name": name,
                "path": name,
                "namespace_id": self._namespace(op, namespace),
                "description": asked.description,
                "visibility": asked.visibility.value,
                "initialize_with_readme": asked.auto_init,
            }
        with op.effect(asked.effect):
            try:
                made = convert.repo(
                    JsonReader(
                        write(op, "POST", PROJECTS, there=lambda: op.read(NAMESPACE, namespace=namespace), body=body)
                    )
                )
            except StatusError as exc:
                error = with_existing(op.meaning(exc), lambda: _existing_repo(op))
                if isinstance(error, NotFoundError | PermissionDeniedError | InvalidRequestError):
                    # The group may have been deleted and made anew, with another number.
                    self._namespaces.pop(namespace, None)
                raise error from exc
            op.done(asked.effect, made)
        with op.after("compare"):
            if (made.path, made.visibility) != (op.repo, asked.visibility):
                raise UnexpectedResponseError(f"GitLab made {made.path!r}, {made.visibility.value}")
            if made.description.strip() != asked.description.strip():
                raise UnexpectedResponseError("GitLab did not keep the description as it is")
        return made

    def _create_branch(self, op: GitLabOperation, asked: CreateBranch) -> Branch:
        """Create the branch at a commit that is read first.

        In an empty project GitLab makes the default branch before it looks for the commit, and then refuses.
        """
        sha = asked.source_sha
        if sha is None:
            with op.before("read source"):
                sha = read_branch(op, asked.source).sha
            op.note(source_sha=sha)
        with op.effect(asked.effect):
            try:
                body = {"branch": asked.name, "ref": sha}
                made = convert.branch(JsonReader(write(op, "POST", BRANCHES, project=op.repo, body=body)))
            except StatusError as exc:
                error = _explain_race(op, asked.name, op.meaning(exc))
                error = with_existing(error, lambda: read_branch(op, asked.name))
                if error.code == "source-not-found" and _was_just_begun(op):
                    error.outcome = Outcome.UNKNOWN
                    error.hint = "the project may have been empty: GitLab then begins it with a README.md of its own"
                raise error from exc
            if (made.name, made.sha) != (asked.name, sha):
                raise UnexpectedResponseError(
                    f"GitLab says that it made {made.name!r} at {made.sha}, not at {sha}", outcome=Outcome.UNKNOWN
                )
            op.done(asked.effect, made)
        return made

    def _protect_branch(self, op: GitLabOperation, asked: ProtectBranch) -> BranchProtection:
        """Protect the branch by a rule of its own name. Of GitLab's rules the most permissive that matches wins.

        The paid tiers change a rule in place. On Free it is made anew while a bridge, a rule of a wildcard name,
        holds. Administrators are bound only where no one may push, so ``enforce_admins`` needs and comes with
        ``require_pull_request``.
        """
        return ProtectionCall(op, asked).run()

    def _commit_files(self, op: GitLabOperation, asked: CommitFiles) -> Commit:
        """Commit with one request, whose actions depend on what is at the paths.

        GitLab has no compare-and-set on a branch. The new commit's parent is compared with the head that was read, and
        a difference is a HeadMovedError with outcome PARTIAL and the commit in ``completed``.
        """
        return CommitCall(op, asked).run()

    def _open_pull_request(self, op: GitLabOperation, asked: OpenPullRequest) -> PullRequest:
        """Open a merge request and compare it with what was asked. On GitLab Free it keeps one reviewer.

        GitLab may not see a source branch for some seconds after it was made. That is a ProviderUnavailableError with
        outcome NOT_APPLIED. It opens a merge request also between branches with no history in common, so these are
        compared before.
        """
        with op.before("compare branches"):
            _check_common_history(op, asked)
        with op.before("read reviewers"):
            reviewers = [_user_id(op, name) for name in asked.reviewers]
        body = {
            "source_branch": asked.source_branch,
            "target_branch": asked.target_branch,
            "title": _sent_title(asked.title, asked.draft),
            "description": asked.description,
            "labels": list(asked.labels),
            "reviewer_ids": reviewers,
        }
        with op.effect(asked.effect):
            try:
                response = JsonReader(write(op, "POST", MERGE_REQUESTS, project=op.repo, body=body))
            except StatusError as exc:
                between = (asked.source_branch, asked.target_branch, PullRequestState.OPEN)
                error = with_existing(op.meaning(exc), lambda: self._find_pull_requests(op, *between)[0])
                raise _explain_missing_source(op, asked.source_branch, error) from exc
            made = convert.pull_request(response)
            op.note(number=made.number, head_sha=made.head_sha)
            op.done(asked.effect, made)
        with op.after("compare"):
            if made.head_sha is None:  # it may only be late; or GitLab made it from a branch that is not there
                _check_source(op, asked.source_branch)
            _compare(response, made, asked, reviewers)
        return made

    def _merge_pull_request(self, op: GitLabOperation, asked: MergePullRequest) -> MergeResult:
        """Merge as the project's settings say. A method that they contradict is METHOD, before the merge.

        In a project that merges with merge commits, GitLab puts one on top of a squash commit. It deletes the source
        branch in the background, after it has compared its head.
        """
        return MergeCall(op, asked, self._retry).run()

    # HostState

    def _head(self, op: GitLabOperation, branch: str) -> str:
        return read_branch(op, branch).sha

    def _contains(self, op: GitLabOperation, sha: str, branch: str) -> bool:
        """Whether a comparison from the head to the commit has no commits. GitLab returns 404 to an unknown commit."""
        head = read_branch(op, branch).sha
        if sha == head:
            return True
        try:
            return not op.read(COMPARE, project=op.repo, query={"from": head, "to": sha}).objects("commits")
        except StatusError as exc:
            if exc.response.status != 404:
                raise
            refused = exc
        try:  # a 404 of the comparison is not about this commit alone
            op.read(COMMIT, project=op.repo, sha=sha)
        except StatusError as exc:
            if not is_absent(exc, "Commit"):
                raise
            return False
        raise refused

    def _commit(self, op: GitLabOperation, sha: str) -> Commit:
        return read_commit(op, sha)

    def _tree(self, op: GitLabOperation, sha: str) -> dict[str, TreeEntry]:
        """List the tree recursively, without the directories that GitLab lists too."""
        items = op.pages(TREE, lambda item: item, query={"ref": sha, "recursive": True}, project=op.repo)
        files = (item for item in items if item.str("type") != "tree")
        return {item.str("path"): TreeEntry(item.str("id"), item.str("mode")) for item in files}

    def _protection(self, op: GitLabOperation, branch: str) -> BranchProtection | None:
        return read_protection(op, branch)

    def _find_pull_requests(
        self, op: GitLabOperation, source: str, target: str, state: PullRequestState | None
    ) -> list[PullRequest]:
        """GitLab lists merge requests from forks too, which are left out."""
        query = {
            "source_branch": source,
            "target_branch": target,
            "state": _STATES[state],
            "order_by": "created_at",
            "sort": "desc",
        }
        found = [
            convert.pull_request(item)
            for item in op.pages(MERGE_REQUESTS, lambda item: item, query=query, project=op.repo)
            if item.int_or_none("source_project_id") == item.int_or_none("target_project_id")
        ]
        return [pull for pull in found if (pull.source_branch, pull.target_branch) == (source, target)]

    def _get_pull_request(self, op: GitLabOperation, number: int) -> PullRequest:
        return convert.pull_request(read_merge_request(op, number))

    # What the operations share

    def _check(self, repo: str, asked: Mutation[Any]) -> None:
        """Refuse what GitLab would not do as asked, or would do unasked."""
        if isinstance(asked, ProtectBranch):
            check_asked(asked.rules)
        elif isinstance(asked, OpenPullRequest):
            _sent_title(asked.title, asked.draft)
            if (line := convert.first_quick_action(asked.description)) is not None:
                checks.refuse(
                    "description", f"has the line {line[:40]!r}, which GitLab would execute as a quick action"
                )
            if comma := next((label for label in asked.labels if "," in label), None):
                checks.refuse("labels", f"hold {comma!r}; a label of GitLab's has no comma, which separates labels")

    def _translate(self, exc: Exception) -> GitProviderError:
        return translate(exc)

    def _is_retryable_read_error(self, error: Exception) -> bool:
        return is_retryable_read_error(error, obey_rate_limit=self._settings.obey_rate_limit)

    def _explain(self, op: GitLabOperation, error: GitProviderError) -> None:
        """Read where a moved project is now, or whether one without a repository is being imported.

        GitLab refuses a write to the old path without saying. A proxy redirects what has not moved.
        """
        with suppress(Exception):
            if isinstance(error, RepoMovedError) and error.moved_to is None and op.repo:
                path = self._repo(op).path
                if path.casefold() != op.repo.casefold():
                    error.moved_to = path
                else:
                    error.hint = "the project has not moved: something in front of GitLab redirects; look at url="
            if error.code == "repository-off" and convert.is_being_imported(op.read(PROJECT, project=op.repo)):
                error.transient = True
                error.hint = "the project is being imported, and has its repository when that is done"

    def _repo(self, op: GitLabOperation) -> Repo:
        """The project, also where it has another path now: by the number in the redirect, never by its address.

        A number of another host is another project's.
        """
        try:
            return convert.repo(op.read(PROJECT, project=op.repo))
        except StatusError as exc:
            place = urljoin(f"{self._url}/", exc.response.headers.get("location", ""))
            number = re.fullmatch(rf"{re.escape(urlsplit(self._url).path)}/api/v4/projects/(\d+)", urlsplit(place).path)
            if not 300 <= exc.response.status < 400 or number is None or origin(place) != origin(self._url):
                raise
            return convert.repo(op.read(PROJECT, project=number[1]))

    def _namespace(self, op: GitLabOperation, path: str) -> int:
        """The number of a group or user by its full path. It is read once, and again after a refused creation."""
        if path not in self._namespaces:
            found = op.read(NAMESPACE, namespace=path)
            # GitLab reads a path of digits as a number, which is another namespace's.
            if found.str("full_path") != path:
                raise NotFoundError(f"there is no namespace {path!r}; the host has {found.str('full_path')!r}")
            self._namespaces[path] = found.int("id")
        return self._namespaces[path]


def _existing_repo(op: GitLabOperation) -> Repo | None:
    found = convert.repo(op.read(PROJECT, project=op.repo))
    # The name alone may be taken, by a project with another path.
    return found if found.path.lower() == op.repo.lower() else None


def _explain_race(op: GitLabOperation, name: str, refused: GitProviderError) -> GitProviderError:
    """Read the branch that GitLab could not make: somebody else may have made it at the same moment.

    Where it cannot be read, what became of it stays unknown.
    """
    if refused.code != "raced":
        return refused
    known: dict[str, Any] = {"status": refused.status, "request_id": refused.request_id}
    there: Branch | None = None
    try:
        there = read_branch(op, name)
    except Exception as exc:
        if not isinstance(exc, StatusError) or not is_absent(exc, "Branch"):
            return refused
    if there is not None:
        return AlreadyExistsError(refused.message, existing=there, **known)
    return ProviderUnavailableError(refused.message, hint="the branch is not there; the same call is safe", **known)


def _check_common_history(op: GitLabOperation, asked: OpenPullRequest) -> None:
    """Raise if no commit is in the history of both branches. The request itself tells of a branch that is not there.

    https://docs.gitlab.com/api/repositories/#get-merge-base
    """
    refs = [f"refs/heads/{branch}" for branch in (asked.source_branch, asked.target_branch)]
    try:
        op.request("GET", MERGE_BASE, project=op.repo, query={"refs[]": refs})
    except StatusError as exc:
        if is_absent(exc, "Merge Base"):
            raise ConflictError(
                f"{asked.source_branch!r} and {asked.target_branch!r} have no history in common",
                status=404,
                hint="create the source branch from the target branch, and commit there",
            ) from exc
        if exc.response.status != 400:
            raise


def _check_source(op: GitLabOperation, branch: str) -> None:
    """Raise if the source branch of a new merge request is not there. GitLab makes it all the same."""
    try:
        read_branch(op, branch)
    except StatusError as exc:
        if not is_absent(exc, "Branch"):
            raise
        raise NotFoundError(
            f"the merge request is open, and its source branch {branch!r} does not exist",
            status=exc.response.status,
            hint="make the branch, or close the merge request",
        ) from exc


def _was_just_begun(op: GitLabOperation) -> bool:
    """Whether the project's only commit is the one by which GitLab itself begins a project."""
    with suppress(Exception):
        [only] = JsonReader.each(op.request("GET", BRANCHES, project=op.repo))
        commit = only.object("commit")
        return not commit.strs("parent_ids") and (commit.str_or_none("message") or "").startswith("Add README.md")
    return False


def _sent_title(title: str, draft: bool) -> str:
    """The title as GitLab takes it. A prefix, and nothing else, makes a draft."""
    if not draft and convert.makes_draft(title):
        checks.refuse("title", f"is {title[:20]!r}…, by which GitLab would make a draft; ask for draft=True")
    sent = f"{convert.DRAFT_PREFIX}{title}" if draft else title
    if len(sent) > 255:
        checks.refuse("title", "of a draft has at most 248 characters: GitLab marks it by a prefix of 7")
    return sent


def _user_id(op: GitLabOperation, name: str) -> int:
    for user in JsonReader.each(op.request("GET", USERS, query={"username": name})):
        if user.str("username").lower() == name.lower():
            return user.int("id")
    raise InvalidRequestError(f"reviewers: there is no user {name!r}", argument="reviewers")


def _explain_missing_source(op: GitLabOperation, branch: str, refused: GitProviderError) -> GitProviderError:
    """Read a source branch that GitLab says is missing: it may only not see it yet."""
    if refused.code == "source-branch-not-found":
        with suppress(Exception):
            read_branch(op, branch)
            return ProviderUnavailableError(
                "GitLab does not see the source branch yet, though it exists",
                status=refused.status,
                request_id=refused.request_id,
                hint="it was made moments ago; the same call is safe, and will succeed in a few seconds",
            )
    return refused


def _compare(response: JsonReader, made: PullRequest, asked: OpenPullRequest, reviewers: list[int]) -> None:
    """Compare what GitLab made with what was asked. It drops without a word what it does not keep."""
    for name in ("source_branch", "target_branch"):
        if (there := getattr(made, name)) != (wanted := getattr(asked, name)):
            raise UnexpectedResponseError(f"GitLab opened it with the {name} {there!r}, not {wanted!r}")
    if made.draft is not asked.draft:
        raise UnexpectedResponseError(f"GitLab made {'a' if made.draft else 'no'} draft of it, by its title")
    if made.title.strip() != asked.title.strip():
        raise UnexpectedResponseError(f"GitLab opened it with the title {made.title!r}")
    if made.description.rstrip() != asked.description.replace("\r", "").rstrip():
        raise UnexpectedResponseError("GitLab did not keep the description as it is; it may have executed a line of it")
    if left_out := set(asked.labels) - set(response.strs("labels") if asked.labels else ()):
        raise PermissionDeniedError(
            f"GitLab did not set the labels {sorted(left_out)}", hint="the role may be too low to set or to make labels"
        )
    there = {user.int("id") for user in response.objects("reviewers")} if reviewers else set()
    if missing := set(reviewers) - there:
        raise PermissionDeniedError(
            f"GitLab did not ask {len(missing)} of {len(reviewers)} reviewers",
            hint="GitLab Free keeps one reviewer; others must be able to read the merge request",
        )
