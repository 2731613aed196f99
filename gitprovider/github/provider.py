"""GitHubProvider: the contract and HostState on GitHub's REST API, through PyGithub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from gitprovider import checks, options
from gitprovider import mutations as arguments
from gitprovider._remote.operation import PAGE_SIZE, Response, BodyError, RemoteOperation, StatusError, origin, read_pages
from gitprovider._remote.provider import RemoteProvider
from gitprovider._remote.json_reader import JsonReader
from gitprovider.checks import refuse
from gitprovider.contract import TreeEntry
from gitprovider.errors import (
    AuthenticationError,
    GitProviderError,
    PermissionDeniedError,
    RepoMovedError,
    UnexpectedResponseError,
)
from gitprovider.events import Hook
from gitprovider.github import convert, protection
from gitprovider.github import errors as translate
from gitprovider.github import protecting_ as protecting
from gitprovider.github.auth import Auth, make_credential, read_auth
from gitprovider.github.client import PUBLIC_API, GitHubClient, Settings
from gitprovider.github.commits import Committing
from gitprovider.github.endpoints import (
    BRANCH,
    BRANCHES,
    COMMIT,
    COMPARE,
    LABELS,
    ORG_REPOS,
    PROTECTION,
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
from gitprovider.github.merges import Merge
from gitprovider.github.sdk import github
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
from gitprovider.redact import Redactor
from gitprovider.retry import RetryOptions

_Op = RemoteOperation[GitHubClient]


class GitHubProvider(RemoteProvider[GitHubClient]):
    """The contract on github.com, GitHub Enterprise Cloud and GitHub Enterprise Server. See GitProviderContract.

    Building one sends no request. It may be used by many threads, and before and after a fork.

    Args:
        auth: a token, any ``github.Auth.Auth``, or an AppInstallation.
        base_url: the API's address, or the server's; ``/api/v3`` and a trailing slash may be left out.
        timeout: whole seconds to wait for a connection, and again for each part of an response.
        verify: as in ``requests``: True, or the path of a bundle of certificate authorities.
        retry: how reads are retried; mutations never are.
        allow_http: allow ``http://`` to other hosts than this machine.
        settle: seconds after which a request whose response was lost can no longer take effect.
        on_event: told of every request, retry and operation.

    Raises:
        InvalidRequestError: one of them is wrong.
    """

    name: ClassVar[str] = "github"

    def __init__(
        self,
        auth: Auth,
        *,
        base_url: str = PUBLIC_API,
        timeout: int = 15,
        verify: bool | str = True,
        retry: RetryOptions = RetryOptions(),
        allow_http: bool = False,
        settle: float = 30.0,
        on_event: Hook | None = None,
    ) -> None:
        redactor = Redactor()
        source = read_auth(auth, redactor)
        del auth  # a traceback through here would hold it
        if isinstance(source, str):
            refuse("auth", source)
        settings = Settings.checked(base_url, timeout=timeout, verify=verify, allow_http=allow_http)
        self._credential = make_credential(source, settings, redactor)
        super().__init__(
            settings.url,
            host=settings.host,
            make_client=self._credential.client,
            redactor=redactor,
            retry=retry,
            settle=settle,
            on_event=on_event,
        )

    @contextmanager
    def sdk(self) -> Iterator[github.Github]:
        """Lend a PyGithub client with the settings of this provider, for what the contract does not cover.

        It repeats nothing and follows no redirect: both are a ``github.GithubException``. Of other hosts it reaches, as
        PyGithub does, those below github.com alone. An App's token is renewed when a client is lent, not while it is.

        Raises:
            InvalidRequestError: under ``python -O``, which removes PyGithub's check of the hosts it sends to.
        """
        if not __debug__:
            refuse("sdk", "is not lent under python -O: PyGithub's check of the hosts it sends to is an assert")
        with self._operation("sdk", "") as op, op.before("authenticate"):
            pass
        with self._pool.client() as client:
            yield client.sdk

    # GitProviderContract

    def get_repo(self, repo: str) -> Repo:
        """See GitProviderContract."""
        with self._operation("get_repo", repo) as op:
            with op.arguments():
                _check_path(repo)
            found: Repo = self._retried(op)("read repository", lambda: self._repo(op, repo))
            return found

    def list_branches(self, repo: str) -> list[Branch]:
        """See GitProviderContract. ``protected`` is what GitHub's list says, where rulesets count as well."""
        with self._operation("list_branches", repo) as op:
            with op.arguments():
                _check_path(repo)
            read = self._retried(op)
            with op.before("list branches"):
                found = read_pages(lambda page: read("list branches", lambda: _branch_page(op, repo, page)))
            return sorted({branch.name: branch for branch in found}.values(), key=lambda branch: branch.name)

    def create_repo(
        self,
        repo: str,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
        auto_init: bool = False,
    ) -> Repo:
        """See GitProviderContract. In a user's account, only the credential's own."""
        with self._operation("create_repo", repo, mutation=True) as op:
            with op.arguments():
                visibility = arguments.create_repo(
                    repo, description=description, visibility=visibility, auto_init=auto_init
                )
                owner, name = _check_new_path(repo)
                options.require_visibility(visibility, self._host)
                op.note(visibility=visibility.value, description=description, auto_init=auto_init)
                op.find_existing = lambda: self._repo(op, repo)
            body: dict[str, Any] = {"name": name, "description": description, "auto_init": auto_init}
            with op.before("read login"):
                template, extra = self._place(op, owner, visibility)
            with op.effect("create repository"):
                made = convert.repo(op.request("POST", template, org=owner, body=body | extra))
                op.done("create repository", made)
            with op.after("compare"):
                if (made.path.casefold(), made.visibility) != (repo.casefold(), visibility):
                    raise UnexpectedResponseError(f"GitHub made {made.path!r}, {made.visibility.value}")
            return made

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        """See GitProviderContract."""
        with self._operation("create_branch", repo, mutation=True) as op:
            with op.arguments():
                source = arguments.create_branch(repo, name, source=source)
                _check_path(repo)
                op.note(branch=name)
                op.find_existing = lambda: convert.head(_get_branch(op, repo, name)).branch
            if checks.is_sha(source):
                sha = source
            else:
                with op.before("read source"):
                    sha = _head_sha(op, repo, source)
            op.note(source_sha=sha)
            with op.effect("create branch"):
                body = {"ref": f"refs/heads/{name}", "sha": sha}
                response = op.request("POST", REFS, repo=repo, body=body)
                made = convert.new_branch(response)
                op.done("create branch", made)
            return made

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        """See GitProviderContract. The branch's classic rule is tightened; rulesets hold besides it."""
        with self._operation("protect_branch", repo, mutation=True) as op:
            with op.arguments():
                arguments.protect_branch(repo, branch, rules)
                _check_path(repo)
                options.require_rules(rules, self._host)
                op.note(branch=branch, rules=rules)
            with op.before("read protection"):
                rule, held = protecting.read(op, repo, branch)
                wanted = rules if rule is None else rules.stricter(protection.held(rule))
                body = protection.put_body(wanted, rule)
                op.note(previous_rules=held)
            with op.effect("protect branch"):
                response = JsonReader(op.request("PUT", PROTECTION, repo=repo, branch=branch, body=body))
                now = protection.held(response)
                op.done("protect branch", now)
            with op.after("compare protection"):
                protecting.check(wanted, body, response)
            return now

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
        """See GitProviderContract. Given an author, GitHub takes it for the committer as well."""
        with self._operation("commit_files", repo, mutation=True) as op:
            with op.arguments():
                read, expected_head = arguments.commit_files(
                    repo, branch, changes, message=message, author=author, expected_head=expected_head
                )
                _check_path(repo)
                op.note(branch=branch, message=message)
            work = Committing(op, repo, branch, message=message, author=author)
            with op.before("read head"):
                head = work.head(expected_head)
            if head is None:
                return work.first(read, expected_head)
            with op.before("read tree"):
                made = work.entries(head, read)
            with op.before("write tree"):
                tree = work.write_tree(head.tree, made)
            if tree == head.tree:
                return head.commit
            with op.before("write commit"):
                commit = work.write_commit(tree, head.sha)
            with op.effect("move branch"):
                work.move_branch(commit.sha)
                op.done("move branch", commit)
            return commit

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
        """See GitProviderContract."""
        with self._operation("open_pull_request", repo, mutation=True) as op:
            with op.arguments():
                labels, reviewers = arguments.open_pull_request(
                    repo,
                    source_branch=source_branch,
                    target_branch=target_branch,
                    title=title,
                    description=description,
                    draft=draft,
                    labels=labels,
                    reviewers=reviewers,
                )
                _check_path(repo)
                op.note(source_branch=source_branch, target_branch=target_branch, title=title, draft=draft)
                op.note(labels=labels, reviewers=reviewers)
                op.find_existing = lambda: _find_pulls(op, repo, source_branch, target_branch, PullRequestState.OPEN)[0]
            with op.effect("open pull request"):
                body = {
                    "title": title,
                    "head": source_branch,
                    "base": target_branch,
                    "body": description,
                    "draft": draft,
                }
                response = op.request("POST", PULLS, repo=repo, body=body)
                made = convert.pull_request(JsonReader(response))
                op.note(number=made.number, head_sha=made.head_sha)
                op.done("open pull request", made)
            if labels:
                with op.after("add labels"):
                    _add_labels(op, repo, made.number, labels)
            if reviewers:
                with op.after("request reviews"):
                    _request_reviews(op, repo, made.number, reviewers)
            return made

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
        """See GitProviderContract. GitHub decides on the merge request itself, so that it goes first."""
        with self._operation("merge_pull_request", repo, mutation=True) as op:
            with op.arguments():
                method, expected_head = arguments.merge_pull_request(
                    repo,
                    number,
                    method=method,
                    expected_head=expected_head,
                    message=message,
                    delete_source_branch=delete_source_branch,
                    timeout=timeout,
                )
                _check_path(repo)
                op.note(number=number, method=method.value, delete_source_branch=delete_source_branch)
            merge = Merge(op, repo, number, self._retry)
            result = None
            if (head := expected_head) is None:
                with op.before("read pull request"):
                    head, result = merge.read_head()
            op.note(head_sha=head)
            if result is None:
                with op.effect("merge"):
                    result = merge.send(head=head, method=method, message=message, timeout=timeout)
            op.done("merge", result)
            if delete_source_branch:
                with op.after("delete source branch"):
                    merge.delete_source(head)
            return result

    # HostState

    def head(self, repo: str, branch: str) -> str:
        """See HostState."""
        with self._reading("head", repo, branch=branch) as op:
            return _head_sha(op, repo, branch)

    def contains(self, repo: str, sha: str, branch: str) -> bool:
        """See HostState."""
        with self._reading("contains", repo, branch=branch, sha=sha) as op:
            return _contains(op, repo, sha.lower(), _head_sha(op, repo, branch))

    def commit(self, repo: str, sha: str) -> Commit:
        """See HostState."""
        with self._reading("commit", repo, sha=sha) as op:
            return convert.commit(JsonReader(_get_commit(op, repo, sha)), "")

    def tree(self, repo: str, sha: str) -> dict[str, TreeEntry]:
        """See HostState.

        Raises:
            UnexpectedResponseError: the tree has more than 100,000 entries, which GitHub does not list at once.
        """
        with self._reading("tree", repo, sha=sha) as op:
            tree = convert.sha(JsonReader(_get_commit(op, repo, sha)).object("tree"))
            query = {"recursive": "1"}
            return convert.tree(op.request("GET", TREE, repo=repo, tree=tree, query=query))

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        """See HostState. It is the classic rule's, or where there is none, the rulesets'."""
        with self._reading("protection", repo, branch=branch) as op:
            return protecting.read(op, repo, branch)[1]

    def find_pull_requests(
        self, repo: str, *, source_branch: str, target_branch: str, state: PullRequestState | None = None
    ) -> list[PullRequest]:
        """See HostState."""
        with self._reading("find_pull_requests", repo, source_branch=source_branch, target_branch=target_branch) as op:
            wanted = None if state is None else checks.check_enum("state", state, PullRequestState)
            return _find_pulls(op, repo, source_branch, target_branch, wanted)

    def get_pull_request(self, repo: str, number: int) -> PullRequest:
        """See HostState."""
        with self._reading("get_pull_request", repo) as op:
            checks.check_int("number", number, least=1)
            response = op.request("GET", PULL, repo=repo, number=number)
            return convert.pull_request(JsonReader(response))

    # What the operations share

    @contextmanager
    def _reading(self, name: str, repo: str, **given: str) -> Iterator[_Op]:
        """One look: ``given`` are its arguments besides the path, a sha or names of branches."""
        with self._operation(name, repo) as op:
            with op.arguments():
                _check_path(repo)
                for argument, value in given.items():
                    (checks.check_sha if argument == "sha" else checks.check_branch)(argument, value)
            with op.before("read"):
                yield op

    def _authenticate(self, op: _Op) -> None:
        self._credential.renew(op)

    def _translate(self, exc: Exception, op: _Op) -> GitProviderError:
        error = translate.translate(exc, op)
        if isinstance(error, AuthenticationError):
            self._credential.forget()
        if isinstance(error, RepoMovedError) and isinstance(exc, StatusError):
            with suppress(Exception):
                error.moved_to = self._moved_repo(op, exc.response).path
        return error

    @staticmethod
    def _is_retryable_read_error(error: Exception) -> bool:
        return translate.is_retryable_read_error(error)

    def _repo(self, op: _Op, repo: str) -> Repo:
        try:
            return convert.repo(op.request("GET", REPO, repo=repo))
        except StatusError as exc:
            if not 300 <= exc.response.status < 400:
                raise
            return self._moved_repo(op, exc.response)

    def _moved_repo(self, op: _Op, response: Response) -> Repo:
        """The repository that a redirect leads to, read by its id: a Location is no address to send a token to."""
        location = response.headers.get("location", "")
        found = re.search(r"/repositories/(\d{1,18})(?=[/?]|\Z)", location)
        if found is None or origin(location) != origin(self._url):
            raise StatusError(response)
        return convert.repo(op.request("GET", REPO_BY_ID, id=found[1]))

    def _place(self, op: _Op, owner: str, visibility: Visibility) -> tuple[str, dict[str, Any]]:
        """Where a repository of ``owner`` is created, and how its visibility is said there."""
        private = {"private": visibility is not Visibility.PUBLIC}
        if owner.casefold() != self._credential.login(op).casefold():
            return ORG_REPOS, private | {"visibility": visibility.value}
        if visibility is Visibility.INTERNAL:
            refuse("visibility", "is internal, which only an organization's repositories can be")
        return USER_REPOS, private


def _check_path(repo: str) -> None:
    checks.check_repo_path(repo)
    if repo.count("/") != 1:
        refuse("repo", f"is {repo!r}; on GitHub it is an owner and a name, such as acme/widgets")


def _check_new_path(repo: str) -> tuple[str, str]:
    """The owner and the name, if GitHub would take the name as it is: it changes others quietly."""
    _check_path(repo)
    owner, _, name = repo.partition("/")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", name):
        refuse("repo", f"is {repo!r}; a name on GitHub has up to 100 of A-Z, a-z, 0-9, '.', '_' and '-'")
    return owner, name


def _branch_page(op: _Op, repo: str, page: int) -> tuple[list[Branch], bool]:
    query = {"per_page": PAGE_SIZE, "page": page}
    response = op.request("GET", BRANCHES, repo=repo, query=query)
    _check_whole(response)
    return convert.branches(response), _more(response)


def _check_whole(response: Response) -> None:
    if response.headers.get("x-github-sso", "").startswith("partial-results"):
        raise PermissionDeniedError(
            "GitHub left out what single sign-on protects", status=response.status, hint="authorize the token for it"
        )


def _more(response: Response) -> bool:
    return 'rel="next"' in response.headers.get("link", "")


def _get_branch(op: _Op, repo: str, branch: str) -> Response:
    return op.request("GET", BRANCH, repo=repo, branch=branch)


def _head_sha(op: _Op, repo: str, branch: str) -> str:
    return convert.ref_sha(op.request("GET", REF, repo=repo, branch=branch))


def _get_commit(op: _Op, repo: str, sha: str) -> Response:
    return op.request("GET", COMMIT, repo=repo, sha=sha.lower())


def _contains(op: _Op, repo: str, sha: str, head: str) -> bool:
    if sha == head:
        return True
    try:
        response = op.request("GET", COMPARE, repo=repo, base=sha, head=head, query={"per_page": 1})
    except StatusError as exc:
        if exc.response.status != 404:
            raise
        return False  # the branch was just seen: it is the commit that is not there, or has no history in common
    return JsonReader(response).str("status") in ("ahead", "identical")


def _add_labels(op: _Op, repo: str, number: int, labels: Sequence[str]) -> None:
    response = op.request("POST", LABELS, repo=repo, number=number, body={"labels": list(labels)})
    _check_all("label", labels, [label.str("name") for label in JsonReader.each(response)], response)


def _request_reviews(op: _Op, repo: str, number: int, reviewers: Sequence[str]) -> None:
    response = op.request("POST", REVIEWERS, repo=repo, number=number, body={"reviewers": list(reviewers)})
    _check_all(
        "reviewer", reviewers, [user.str("login") for user in JsonReader(response).objects("requested_reviewers")], response
    )


def _check_all(what: str, asked: Sequence[str], there: Sequence[str], response: Response) -> None:
    present = {name.casefold() for name in there}
    if missing := [name for name in asked if name.casefold() not in present]:
        raise BodyError(f"GitHub left out the {what} {', '.join(missing)}", response)


def _find_pulls(op: _Op, repo: str, source: str, target: str, state: PullRequestState | None) -> list[PullRequest]:
    """The pull requests between two branches. GitHub ignores a filter that it does not like, so each is looked at."""
    query = {
        "head": f"{repo.partition('/')[0]}:{source}",
        "base": target,
        "state": {None: "all", PullRequestState.OPEN: "open"}.get(state, "closed"),
        "sort": "created",
        "direction": "desc",
        "per_page": PAGE_SIZE,
    }

    def page(number: int) -> tuple[list[JsonReader], bool]:
        response = op.request("GET", PULLS, repo=repo, query=query | {"page": number})
        return list(JsonReader.each(response)), _more(response)

    found = [convert.pull_request(fields) for fields in read_pages(page) if convert.in_one_repo(fields)]
    return [
        pull
        for pull in found
        if (pull.source_branch, pull.target_branch) == (source, target) and state in (None, pull.state)
    ]
