"""GitHubProvider: the contract and HostState on GitHub's REST API, with PyGithub."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Literal

from gitprovider import checks
from gitprovider._core.claims import IntentStore
from gitprovider._core.operation import BeforeEffect
from gitprovider._core.urls import origin
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import RemoteOperation, with_existing
from gitprovider._remote.provider import RemoteProvider
from gitprovider._remote.response import BodyError, Response, StatusError
from gitprovider._remote.throttle import Throttle
from gitprovider.checks import refuse
from gitprovider.contract import TreeEntry
from gitprovider.errors import (
    AuthenticationError,
    GitProviderError,
    NotFoundError,
    PermissionDeniedError,
    RepoMovedError,
    UnexpectedResponseError,
)
from gitprovider.events import Hook
from gitprovider.github import convert
from gitprovider.github.auth import Auth, make_credential, read_auth
from gitprovider.github.client import PUBLIC_API, GitHubClient, Settings, github
from gitprovider.github.commits import CommitApi, CommitCall
from gitprovider.github.endpoints import (
    BRANCH,
    BRANCHES,
    COMMIT,
    COMPARE,
    LABELS,
    ORG_REPOS,
    PULL,
    PULLS,
    REF,
    REFS,
    REPO,
    REPO_BY_ID,
    REVIEWERS,
    TREE,
    USER_REPOS,
)
from gitprovider.github.errors import denied_write, is_retryable_read_error, translate
from gitprovider.github.merges import MergeCall
from gitprovider.github.protection import ProtectionCall, read_protection
from gitprovider.models import (
    Branch,
    BranchProtection,
    Commit,
    MergeResult,
    PullRequest,
    PullRequestState,
    Repo,
    Visibility,
)
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

GitHubOperation = RemoteOperation[GitHubClient]


class GitHubProvider(RemoteProvider[GitHubClient]):
    """Repositories on github.com, GitHub Enterprise Cloud or GitHub Enterprise Server.

    The constructor sends no request. Threads can share a provider. After a fork, both processes can use it.

    Args:
        auth: a token, any ``github.Auth.Auth``, or an AppInstallation. A token may be a function that returns one,
            for tokens that are rotated. It is asked before each operation, in the operation's thread, and its error is
            an AuthenticationError. A throttle counts the requests of all its tokens together.
        base_url: the address of the API or of the server. ``/api/v3`` and a trailing slash may be left out.
        timeout: seconds to wait for a connection, and again for each part of a response. ``limits`` bounds the whole.
        verify: as in ``requests``: True, or the path of a bundle of certificate authorities.
        retry: how reads are retried. Mutations are never retried, and neither are the reads inside a mutation.
        limits: how much of a response is read, and for how long, also by a client of ``sdk()``.
        allow_http: allow ``http://`` to hosts other than this machine.
        settle: seconds after which a request whose response was lost can no longer take effect.
        on_event: a hook, or several, called with every event.
        before_effect: called with the complete intent just before each effect of a mutation is sent. If it raises,
            nothing is sent, and its error is the cause of the error that is raised.
        intents: the store that the ``key`` of an ``ensure_`` function is looked up in.
        throttle: asked before each request and told of each response, such as a HostBudget. None sends at once.
        pool_size: how many idle connections are kept. Any number of operations may run at the same time.
        page_concurrency: how many pages of a list are read at the same time, after the first; at most 4 on github.com
            and ghe.com, 8 on another server. The hook and the throttle are called in several threads. After the first
            answer that a limit is reached, the list goes on one page at a time. GitHub asks for serial requests:
            https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api#avoid-concurrent-requests
        commit_api: ``git-data`` commits with the REST API. ``auto`` reads what a commit touches with GraphQL, and
            commits with the mutation ``createCommitOnBranch`` where that makes exactly the same commit: two requests,
            whatever the repository's size. GitHub signs such a commit, and its committer is GitHub. Where GraphQL is
            refused, the REST API is used. ``make live`` has not tried
            ``auto`` yet.

    Raises:
        InvalidRequestError: an argument is wrong.
    """

    name = "github"

    def __init__(
        self,
        auth: Auth,
        *,
        base_url: str = PUBLIC_API,
        timeout: float = 15,
        verify: checks.Verify = True,
        retry: RetryOptions = RetryOptions(),
        limits: Limits = Limits(),
        allow_http: bool = False,
        settle: float = 30.0,
        on_event: Hook | Sequence[Hook] | None = None,
        before_effect: BeforeEffect | None = None,
        intents: IntentStore | None = None,
        throttle: Throttle | None = None,
        pool_size: int = 10,
        page_concurrency: int = 1,
        commit_api: Literal["auto", "git-data"] = "auto",
    ) -> None:
        redactor = Redactor()
        source = read_auth(auth, redactor)
        del auth  # a traceback would refer to it
        if isinstance(source, str):
            refuse("auth", source)
        if checks.check_text("commit_api", commit_api) not in ("auto", "git-data"):
            refuse("commit_api", "must be auto or git-data")
        self._commit_api = CommitApi(auto=commit_api == "auto")
        settings = Settings.checked(
            base_url,
            timeout=timeout,
            verify=verify,
            limits=limits,
            allow_http=checks.check_bool("allow_http", allow_http),
        )
        self._credential = make_credential(
            source, settings, redactor, retry.clock if isinstance(retry, RetryOptions) else time.monotonic
        )
        super().__init__(
            settings.url,
            host=settings.host,
            make_client=self._credential.client,
            redactor=redactor,
            retry=retry,
            limits=limits,
            settle=settle,
            on_event=on_event,
            before_effect=before_effect,
            intents=intents,
            throttle=throttle,
            pool_size=pool_size,
            page_concurrency=checks.check_int(
                "page_concurrency", page_concurrency, least=1, most=4 if settings.is_cloud else 8
            ),
        )

    @contextmanager
    def sdk(self) -> Iterator[github.Github]:
        """Lend a PyGithub client with this provider's settings, for requests that the contract does not cover.

        The client sends each request once, to the host of this provider alone. It does not follow redirects: it raises
        ``github.GithubException`` instead. A link to another scheme, host or port raises before anything is sent. For
        such an address, use a client of your own without the token. The hosts of github.com are api.github.com,
        uploads.github.com and github.com, and likewise for ghe.com. An App's token is refreshed only when the client
        is lent.
        """
        with self._operation("sdk", "") as op, op.before("authenticate"):
            pass
        with self._pool.client() as client:
            yield client.sdk

    # The operations of the contract

    def _get_repo(self, op: GitHubOperation) -> Repo:
        found: Repo = self._retried(op, "read repository")(lambda: self._repo(op))
        return found

    def _list_branches(self, op: GitHubOperation) -> list[Branch]:
        """``protected`` is the value from GitHub's list, which also considers rulesets."""
        with op.before("list branches"):
            return op.pages(
                BRANCHES,
                convert.branch,
                repo=op.repo,
                check=_check_whole,
                retried=partial(self._retried, step="list branches"),
            )

    def _create_repo(self, op: GitHubOperation, asked: CreateRepo) -> Repo:
        """GitHub creates a repository in a user's account only with that user's own credential."""
        owner, _, name = op.repo.partition("/")
        body: dict[str, Any] = {"name": name, "description": asked.description, "auto_init": asked.auto_init}
        with op.before("read namespace"):
            template, extra = self._place(op, owner, asked.visibility)
        with op.effect(asked.effect):
            try:
                made = convert.repo(JsonReader(op.request("POST", template, org=owner, body=body | extra)))
            except StatusError as exc:
                raise with_existing(op.meaning(exc), lambda: self._repo(op)) from exc
            op.done(asked.effect, made)
        self._credential.note_created(op.repo)
        with op.after("compare"):
            if (made.path.casefold(), made.visibility) != (op.repo.casefold(), asked.visibility):
                raise UnexpectedResponseError(f"GitHub created {made.path!r} ({made.visibility.value}) instead")
            if made.description.split() != asked.description.split():
                raise UnexpectedResponseError(f"GitHub created {made.path!r} with another description")
        return made

    def _create_branch(self, op: GitHubOperation, asked: CreateBranch) -> Branch:
        sha = asked.source_sha
        if sha is None:
            with op.before("read source"):
                sha = self._head(op, asked.source)
        op.note(source_sha=sha)
        with op.effect(asked.effect):
            body = {"ref": f"refs/heads/{asked.name}", "sha": sha}
            try:
                response = op.request("POST", REFS, repo=op.repo, body=body)
            except StatusError as exc:
                raise with_existing(
                    op.refused(exc, lambda: self._repo(op)),
                    lambda: convert.head(op.read(BRANCH, repo=op.repo, branch=asked.name)).branch,
                ) from exc
            made = convert.new_branch(JsonReader(response))
            if (made.name, made.sha) != (asked.name, sha):
                raise BodyError(f"GitHub created {made.name!r} at {made.sha}, not {asked.name!r} at {sha}", response)
            op.done(asked.effect, made)
        return made

    def _protect_branch(self, op: GitHubOperation, asked: ProtectBranch) -> BranchProtection:
        """The branch's classic rule is tightened. Rulesets apply in addition."""
        return ProtectionCall(op, asked).run()

    def _commit_files(self, op: GitHubOperation, asked: CommitFiles) -> Commit:
        return CommitCall(op, asked, self._commit_api).run()

    def _open_pull_request(self, op: GitHubOperation, asked: OpenPullRequest) -> PullRequest:
        with op.effect(asked.effect):
            body = {
                "title": asked.title,
                "head": asked.source_branch,
                "base": asked.target_branch,
                "body": asked.description,
                "draft": asked.draft,
            }
            try:
                made = convert.pull_request(JsonReader(op.request("POST", PULLS, repo=op.repo, body=body)))
            except StatusError as exc:
                between = (asked.source_branch, asked.target_branch, PullRequestState.OPEN)
                refused = op.refused(exc, lambda: self._repo(op))
                raise with_existing(refused, lambda: self._find_pull_requests(op, *between)[0]) from exc
            op.note(number=made.number, head_sha=made.head_sha)
            op.done(asked.effect, made)
        if asked.labels:
            with op.after("add labels"):
                labels = {"labels": list(asked.labels)}
                response = op.request("POST", LABELS, repo=op.repo, number=made.number, body=labels)
                returned = [label.str("name") for label in JsonReader.each(response)]
                _check_all("label", asked.labels, returned, response)
        if asked.reviewers:
            with op.after("request reviews"):
                reviewers = {"reviewers": list(asked.reviewers)}
                response = op.request("POST", REVIEWERS, repo=op.repo, number=made.number, body=reviewers)
                returned = [user.str("login") for user in JsonReader(response).objects("requested_reviewers")]
                _check_all("reviewer", asked.reviewers, returned, response)
        with op.after("compare"):
            _compare(made, asked)
        return made

    def _merge_pull_request(self, op: GitHubOperation, asked: MergePullRequest) -> MergeResult:
        return MergeCall(op, asked, self._retry).run()

    # The reads of HostState

    def _head(self, op: GitHubOperation, branch: str) -> str:
        return convert.ref_sha(op.read(REF, repo=op.repo, branch=branch))

    def _contains(self, op: GitHubOperation, sha: str, branch: str) -> bool:
        head = self._head(op, branch)
        if sha == head:
            return True
        try:
            compared = op.read(COMPARE, repo=op.repo, base=sha, head=head, query={"per_page": 1})
        except StatusError as exc:
            refused = op.meaning(exc)
            if not isinstance(refused, NotFoundError):
                raise
            if "common ancestor" not in refused.message:
                self._require_absent(op, sha, branch)
            return False
        return compared.str("status") in ("ahead", "identical")

    def _require_absent(self, op: GitHubOperation, sha: str, branch: str) -> None:
        """Raise unless the commit is missing from a repository that can still be read.

        Raises:
            UnexpectedResponseError: the commit exists, so a 404 of the comparison says nothing about it.
            NotFoundError: the repository or the branch can no longer be read.
        """
        try:
            op.read(COMMIT, repo=op.repo, sha=sha)
        except StatusError as exc:
            if not isinstance(op.meaning(exc), NotFoundError):
                raise
            self._head(op, branch)
        else:
            raise UnexpectedResponseError(f"GitHub has the commit {sha} and does not compare it")

    def _commit(self, op: GitHubOperation, sha: str) -> Commit:
        return convert.commit(op.read(COMMIT, repo=op.repo, sha=sha))

    def _tree(self, op: GitHubOperation, sha: str) -> dict[str, TreeEntry]:
        """GitHub truncates a tree of more than 100,000 entries, which raises UnexpectedResponseError."""
        tree = convert.sha(op.read(COMMIT, repo=op.repo, sha=sha).object("tree"))
        return convert.tree(op.read(TREE, repo=op.repo, tree=tree, query={"recursive": "1"}))

    def _protection(self, op: GitHubOperation, branch: str) -> BranchProtection | None:
        """The protection of the classic rule, or of the rulesets if there is no classic rule."""
        return read_protection(op, branch)[1]

    def _find_pull_requests(
        self, op: GitHubOperation, source: str, target: str, state: PullRequestState | None
    ) -> list[PullRequest]:
        """GitHub ignores filters that it does not accept, so each pull request is compared with the arguments."""
        query = {
            "head": f"{op.repo.partition('/')[0]}:{source}",
            "base": target,
            "state": {None: "all", PullRequestState.OPEN: "open"}.get(state, "closed"),
            "sort": "created",
            "direction": "desc",
        }
        listed = op.pages(PULLS, lambda fields: fields, repo=op.repo, query=query)
        found = [convert.pull_request(fields) for fields in listed if convert.in_one_repo(fields)]
        return [
            pull
            for pull in found
            if (pull.source_branch, pull.target_branch) == (source, target) and state in (None, pull.state)
        ]

    def _get_pull_request(self, op: GitHubOperation, number: int) -> PullRequest:
        return convert.pull_request(op.read(PULL, repo=op.repo, number=number))

    # Shared by the operations

    def _check_path(self, repo: str) -> None:
        super()._check_path(repo)
        if repo.count("/") != 1:
            refuse("repo", f"is {repo!r}; on GitHub it has an owner and a name, such as acme/widgets")

    def _check(self, repo: str, asked: Mutation[Any]) -> None:
        """Refuse a new repository's name that GitHub would silently change."""
        if isinstance(asked, CreateRepo) and not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", repo.partition("/")[2]):
            refuse("repo", f"is {repo!r}; a name on GitHub has up to 100 of A-Z, a-z, 0-9, '.', '_' and '-'")

    def _authenticate(self, op: GitHubOperation) -> None:
        self._credential.refresh(op)

    def _translate(self, exc: Exception) -> GitProviderError:
        return translate(exc)

    def _is_retryable_read_error(self, error: Exception) -> bool:
        self._judge(error)
        return is_retryable_read_error(error)

    def _judge(self, error: Exception) -> None:
        """Mark what passes by itself with the age of the token: it is too new, or older than the repository."""
        if isinstance(error, AuthenticationError) and self._credential.is_fresh():
            error.transient = True
            error.hint = "GitHub may take some seconds to accept a new installation token; repeat the call"
        elif isinstance(error, NotFoundError) and error.code == "not-found" and self._credential.renew_for(error.repo):
            error.transient = True

    def _denied_write(self, error: GitProviderError, response: Response) -> GitProviderError:
        return denied_write(error, response)

    def _explain(self, op: GitHubOperation, error: GitProviderError) -> None:
        self._judge(error)
        if isinstance(error, AuthenticationError) and not error.transient:
            self._credential.forget()
        if isinstance(error, NotFoundError) and self._credential.has_created(op.repo):
            error.hint = "it was created a moment ago: the App's installation may not cover it, or not yet"
        if isinstance(error, RepoMovedError) and op.refusal is not None:
            with suppress(Exception):
                error.moved_to = self._moved_repo(op, op.refusal).path

    def _repo(self, op: GitHubOperation) -> Repo:
        try:
            return convert.repo(op.read(REPO, repo=op.repo))
        except StatusError as exc:
            if not 300 <= exc.response.status < 400:
                raise
            return self._moved_repo(op, exc.response)

    def _moved_repo(self, op: GitHubOperation, response: Response) -> Repo:
        """Read the repository that a redirect points to, by its id. No token is sent to the address in a Location."""
        location = response.headers.get("location", "")
        found = re.search(r"/repositories/(\d{1,18})(?=[/?]|\Z)", location)
        if found is None or origin(location) != origin(self._url):
            raise StatusError(response)
        return convert.repo(op.read(REPO_BY_ID, id=found[1]))

    def _place(self, op: GitHubOperation, owner: str, visibility: Visibility) -> tuple[str, dict[str, Any]]:
        """Return the endpoint that creates a repository of ``owner``, and the fields that set the visibility there."""
        private = {"private": visibility is not Visibility.PUBLIC}
        if owner.casefold() != self._credential.login(op).casefold():
            return ORG_REPOS, private | {"visibility": visibility.value}
        if visibility is Visibility.INTERNAL:
            refuse("visibility", "is internal, which is only possible for an organization's repositories")
        return USER_REPOS, private


def _check_whole(response: Response) -> None:
    if response.headers.get("x-github-sso", "").startswith("partial-results"):
        raise PermissionDeniedError(
            "GitHub left out results that single sign-on protects",
            status=response.status,
            hint="authorize the token for single sign-on",
        )


def _compare(made: PullRequest, asked: OpenPullRequest) -> None:
    """Compare what GitHub opened with what was asked. GitHub trims texts and changes line ends."""
    pairs = {
        "source branch": (asked.source_branch, made.source_branch),
        "target branch": (asked.target_branch, made.target_branch),
        "draft state": (asked.draft, made.draft),
        "title": (asked.title.split(), made.title.split()),
        "description": (asked.description.split(), made.description.split()),
    }
    if differs := [name for name, (wanted, there) in pairs.items() if wanted != there]:
        raise UnexpectedResponseError(f"GitHub opened pull request {made.number} with another {', '.join(differs)}")


def _check_all(what: str, asked: Sequence[str], returned: Sequence[str], response: Response) -> None:
    present = {name.casefold() for name in returned}
    if missing := [name for name in asked if name.casefold() not in present]:
        raise BodyError(f"GitHub left out the {what} {', '.join(missing)}", response)
