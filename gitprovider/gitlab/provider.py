"""GitLabProvider: the contract and the host's state on GitLab, by python-gitlab."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import gitlab

from gitprovider import checks
from gitprovider import mutations as arguments
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.operation import PAGE_SIZE, RemoteOperation, Response, StatusError, read_pages
from gitprovider._remote.provider import RemoteProvider
from gitprovider.contract import TreeEntry
from gitprovider.errors import (
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
from gitprovider.gitlab import actions, convert, protection
from gitprovider.gitlab.auth import Credential
from gitprovider.gitlab.client import PUBLIC, GitLabClient, Settings
from gitprovider.gitlab.commits import Committing
from gitprovider.gitlab.endpoints import (
    BRANCH,
    BRANCHES,
    COMMIT,
    COMPARE,
    MERGE_REQUEST,
    MERGE_REQUESTS,
    NAMESPACE,
    PROJECT,
    PROJECTS,
    TREE,
    USERS,
)
from gitprovider.gitlab.errors import is_retryable_read_error, translate
from gitprovider.gitlab.merges import Merging, Patience
from gitprovider.gitlab.protecting_ import Protecting, list_rules, more_pages
from gitprovider.gitlab.quick_actions import first_quick_action
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
from gitprovider.options import require_rules, require_visibility
from gitprovider.redact import Redactor
from gitprovider.retry import RetryOptions

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
        url: the host's address, with the path that it lives under, if any: ``https://git.example.org/gitlab``. A
            trailing slash or ``/api/v4`` is taken off.
        private_token, oauth_token: exactly one of them: a personal, project or group access token, or an OAuth token,
            with the scope ``api``. CI job tokens reach none of the endpoints that are needed.
        timeout: seconds to wait for a connection, and for each part of an response.
        verify: True, or the path of a CA bundle; False turns the check of certificates off. Proxies are taken from the
            environment, as requests does.
        retry: how reads are tried again.
        obey_rate_limit: True gives python-gitlab's own way with 429 back, which re-sends every request, a mutation
            too, up to ten times and waits as long as the host asks. Then nothing here is on top of it, and "sent
            once" does not hold for a 429.
        allow_http: permit ``http://`` to a host that is not this machine. The token then travels in the clear.
        settle: seconds after which a request whose response was lost can no longer take effect.
        on_event: is told of every request, retry and operation.

    No request is sent until an operation is called. A provider may be used by many threads, and after a fork by both
    processes. It holds a credential and cannot be pickled.
    """

    name = "gitlab"

    def __init__(
        self,
        url: str = PUBLIC,
        *,
        private_token: str | None = None,
        oauth_token: str | None = None,
        timeout: float = 15,
        verify: bool | str = True,
        retry: RetryOptions = RetryOptions(),
        obey_rate_limit: bool = False,
        allow_http: bool = False,
        settle: float = 90.0,
        on_event: Hook | None = None,
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
            obey_rate_limit=obey_rate_limit,
            allow_http=checks.check_bool("allow_http", allow_http),
        )
        super().__init__(
            settings.url,
            host=settings.host,
            make_client=lambda: GitLabClient(settings, credential),
            redactor=Redactor([credential.token]),
            retry=retry,
            settle=settle,
            on_event=on_event,
        )
        self._settings = settings
        self._credential = credential
        self._namespaces: dict[str, int] = {}

    @contextmanager
    def sdk(self) -> Iterator[gitlab.Gitlab]:
        """Lend a ``gitlab.Gitlab`` for what the contract does not cover.

        It sends every request once, with a timeout, to this host alone, and follows redirects of reads within it. Its
        errors are python-gitlab's own.
        """
        self._pool.check_open()
        # One of its own, not of the pool: whoever borrows it may change it.
        client = GitLabClient(self._settings, self._credential, follow_reads=True)
        try:
            yield client.sdk
        finally:
            client.close()

    # The contract

    def get_repo(self, repo: str) -> Repo:
        """See GitProviderContract."""
        with self._operation("get_repo", repo) as op:
            with op.arguments():
                checks.check_repo_path(repo)
            read = self._retried(op)
            found: Repo = read("get project", lambda: convert.repo(self._followed(op, repo)))
            return found

    def list_branches(self, repo: str) -> list[Branch]:
        """See GitProviderContract."""
        with self._operation("list_branches", repo) as op:
            with op.arguments():
                checks.check_repo_path(repo)
            read = self._retried(op)

            def page(number: int) -> tuple[list[Branch], bool | None]:
                query = {"per_page": PAGE_SIZE, "page": number}
                response = op.request("GET", BRANCHES, project=repo, query=query)
                return [convert.branch(item) for item in JsonReader.each(response)], more_pages(response)

            with op.before("list branches"):
                found = read_pages(lambda number: read(f"get page {number}", lambda: page(number)))
            return sorted({branch.name: branch for branch in found}.values(), key=lambda branch: branch.name)

    def create_repo(
        self,
        repo: str,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
        auto_init: bool = False,
    ) -> Repo:
        """See GitProviderContract."""
        with self._operation("create_repo", repo, mutation=True) as op:
            with op.arguments():
                visibility = arguments.create_repo(
                    repo, description=description, visibility=visibility, auto_init=auto_init
                )
                require_visibility(visibility, self._host)
                op.note(visibility=visibility.value, description=description, auto_init=auto_init)
            namespace, _, name = repo.rpartition("/")
            with op.before("get namespace"):
                body = {
                    # GitLab makes a path of a name alone, and takes the token's own namespace when none is given.
                    "name": name,
                    "path": name,
                    "namespace_id": self._namespace(op, namespace),
                    "description": description,
                    "visibility": visibility.value,
                    "initialize_with_readme": auto_init,
                }
            op.find_existing = lambda: self._existing_repo(op, repo)
            with op.effect("create project"):
                made = convert.repo(op.request("POST", PROJECTS, body=body))
                op.done("create project", made)
            with op.after("compare"):
                if (made.path, made.visibility) != (repo, visibility):
                    raise UnexpectedResponseError(f"GitLab made {made.path!r}, {made.visibility.value}")
            return made

    def create_branch(self, repo: str, name: str, *, source: str) -> Branch:
        """See GitProviderContract."""
        with self._operation("create_branch", repo, mutation=True) as op:
            with op.arguments():
                source = arguments.create_branch(repo, name, source=source)
                op.note(branch=name)
            sha = source
            if not checks.is_sha(source):
                with op.before("get source"):
                    sha = self._branch(op, repo, source).sha
            op.note(source_sha=sha)
            op.find_existing = lambda: self._branch(op, repo, name)
            with op.effect("create branch"):
                made = self._make_branch(op, repo, {"branch": name, "ref": sha})
                op.done("create branch", made)
            return made

    def protect_branch(self, repo: str, branch: str, rules: BranchProtection = BranchProtection()) -> BranchProtection:
        """See GitProviderContract.

        Of GitLab's rules the most permissive that matches wins. The rule is changed in place on the paid tiers; on
        Free it is made anew, while a bridge rule of a wildcard name holds. Administrators are bound where no one may
        push, so that ``enforce_admins`` comes with ``require_pull_request``, and is not to be had without.
        """
        with self._operation("protect_branch", repo, mutation=True) as op:
            with op.arguments():
                arguments.protect_branch(repo, branch, rules)
                require_rules(rules, self._host)
                protection.check_asked(rules)
                op.note(branch=branch, rules=rules)
            return Protecting(op, repo, branch, rules).run()

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
        """See GitProviderContract.

        GitLab has no compare-and-set on a branch: the new commit's parent is compared with the head read before, and
        a difference is HeadMovedError with outcome PARTIAL and the commit in ``completed``.
        """
        with self._operation("commit_files", repo, mutation=True) as op:
            with op.arguments():
                read, expected = arguments.commit_files(
                    repo, branch, changes, message=message, author=author, expected_head=expected_head
                )
                op.note(branch=branch, message=message)
            committing = Committing(op, repo, branch, message=message, author=author, meaning=self._meaning)
            with op.before("read head"):
                seen = committing.look(read, expected)
                planned = actions.plan(read, seen.entries, sha256=len(seen.head or "") == 64)
            op.note(base_sha=seen.head, files=planned.files)
            if planned.actions:
                return committing.commit(seen, planned.actions)
            with op.before("get commit"):
                return convert.commit(op.request("GET", COMMIT, project=repo, sha=str(seen.head)), branch)

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
        """See GitProviderContract. On GitLab Free a merge request has one reviewer at most."""
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
                shown = _shown_title(title, draft)
                _check_kept(description, labels)
                op.note(source_branch=source_branch, target_branch=target_branch, title=title, draft=draft)
                op.note(labels=labels, reviewers=reviewers)
            with op.before("get reviewers"):
                ids = [_user_id(op, name) for name in reviewers]
            body = {
                "source_branch": source_branch,
                "target_branch": target_branch,
                "title": shown,
                "description": description,
                "labels": list(labels),
                "reviewer_ids": ids,
            }
            op.find_existing = lambda: self._between(op, repo, source_branch, target_branch, PullRequestState.OPEN)[0]
            with op.effect("open merge request"):
                response = self._open(op, repo, body)
                made = convert.pull_request(response)
                op.note(number=made.number, head_sha=made.head_sha)
                op.done("open merge request", made)
            with op.after("compare"):
                _compare(response, made, draft=draft, description=description, labels=labels, reviewer_ids=ids)
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
        """See GitProviderContract.

        GitLab merges as the project's settings say; a method that they contradict is METHOD, before the merge. In a
        project that merges with merge commits, it puts one on top of a squash commit. GitLab deletes the source
        branch in the background, after it has compared its head.
        """
        with self._operation("merge_pull_request", repo, mutation=True) as op:
            with op.arguments():
                method, expected = arguments.merge_pull_request(
                    repo,
                    number,
                    method=method,
                    expected_head=expected_head,
                    message=message,
                    delete_source_branch=delete_source_branch,
                    timeout=timeout,
                )
                op.note(number=number, method=method.value, head_sha=expected)
                op.note(delete_source_branch=delete_source_branch)
            patience = Patience(self._retry, timeout)
            merging = Merging(
                op,
                repo,
                number,
                method=method,
                expected_head=expected,
                patience=patience,
                meaning=self._meaning,
                redact=self._redact,
            )
            with op.before("get merge request"):
                done = merging.read()
            if done is None:
                with op.before("get project"):
                    merging.check_method(JsonReader(op.request("GET", PROJECT, project=repo)))
                with op.before("wait for mergeability"):
                    done = merging.until_computed()
            if done is None:
                with op.effect("merge"):
                    done = merging.send(message=message, delete_source_branch=delete_source_branch)
            op.done("merge", done)
            if delete_source_branch:
                with op.after("delete source branch"):
                    merging.see_source_deleted(done)
            return done

    # HostState

    def head(self, repo: str, branch: str) -> str:
        """See HostState."""
        with self._reading("head", repo, branch=branch) as op:
            return self._branch(op, repo, branch).sha

    def contains(self, repo: str, sha: str, branch: str) -> bool:
        """See HostState."""
        with self._reading("contains", repo, sha=sha, branch=branch) as op:
            head = self._branch(op, repo, branch).sha
            query = {"from": head, "to": sha.lower()}
            try:
                response = op.request("GET", COMPARE, project=repo, query=query)
            except StatusError as exc:
                if exc.response.status != 404:
                    raise
                return False
            return not JsonReader(response).objects("commits")

    def commit(self, repo: str, sha: str) -> Commit:
        """See HostState."""
        with self._reading("commit", repo, sha=sha) as op:
            return convert.commit(op.request("GET", COMMIT, project=repo, sha=sha.lower()))

    def tree(self, repo: str, sha: str) -> Mapping[str, TreeEntry]:
        """See HostState."""
        with self._reading("tree", repo, sha=sha) as op:

            def page(number: int) -> tuple[list[JsonReader], bool | None]:
                query = {"ref": sha.lower(), "recursive": True, "per_page": PAGE_SIZE, "page": number}
                response = op.request("GET", TREE, project=repo, query=query)
                return list(JsonReader.each(response)), more_pages(response)

            files = [item for item in read_pages(page) if item.str("type") != "tree"]
            return {item.str("path"): TreeEntry(item.str("id"), item.str("mode")) for item in files}

    def protection(self, repo: str, branch: str) -> BranchProtection | None:
        """See HostState."""
        with self._reading("protection", repo, branch=branch) as op:
            self._branch(op, repo, branch)
            return protection.evaluate(rule for rule in list_rules(op, repo) if rule.matches(branch))

    def find_pull_requests(
        self, repo: str, *, source_branch: str, target_branch: str, state: PullRequestState | None = None
    ) -> list[PullRequest]:
        """See HostState."""
        branches = {"source_branch": source_branch, "target_branch": target_branch}
        with self._reading("find_pull_requests", repo, **branches) as op:
            wanted = None if state is None else checks.check_enum("state", state, PullRequestState)
            return self._between(op, repo, source_branch, target_branch, wanted)

    def get_pull_request(self, repo: str, number: int) -> PullRequest:
        """See HostState."""
        with self._reading("get_pull_request", repo) as op:
            checks.check_int("number", number, least=1)
            return convert.pull_request(JsonReader(op.request("GET", MERGE_REQUEST, project=repo, iid=number)))

    # What the operations share

    def _translate(self, exc: Exception, op: GitLabOperation) -> GitProviderError:
        error = translate(exc, op)
        if op.name == "create_repo" and isinstance(error, NotFoundError | PermissionDeniedError | InvalidRequestError):
            # Perhaps of a group that was deleted, and made anew with another number.
            self._namespaces.pop(op.repo.rpartition("/")[0], None)
        if isinstance(error, RepoMovedError) and error.moved_to is None and op.repo:
            with suppress(Exception):
                error.moved_to = convert.repo(self._followed(op, op.repo)).path
        return error

    def _is_retryable_read_error(self, error: Exception) -> bool:
        return is_retryable_read_error(error, obey_rate_limit=self._settings.obey_rate_limit)

    @contextmanager
    def _reading(self, name: str, repo: str, **given: str) -> Iterator[GitLabOperation]:
        """One read: ``given`` are its arguments besides the path, a sha or names of branches."""
        with self._operation(name, repo) as op:
            with op.arguments():
                checks.check_repo_path(repo)
                for argument, value in given.items():
                    (checks.check_sha if argument == "sha" else checks.check_branch)(argument, value)
            with op.before("read"):
                yield op

    def _followed(self, op: GitLabOperation, repo: str) -> Response:
        """The project, also where it has another path now: by the number in the redirect, never by its address."""
        try:
            return op.request("GET", PROJECT, project=repo)
        except StatusError as exc:
            place = re.search(r"/api/v4/projects/(\d+)\Z", exc.response.headers.get("location", ""))
            if not 300 <= exc.response.status < 400 or place is None:
                raise
            return op.request("GET", PROJECT, project=place[1])

    def _branch(self, op: GitLabOperation, repo: str, name: str) -> Branch:
        return convert.branch(JsonReader(op.request("GET", BRANCH, project=repo, branch=name)))

    def _make_branch(self, op: GitLabOperation, repo: str, body: Mapping[str, Any]) -> Branch:
        try:
            return convert.branch(JsonReader(op.request("POST", BRANCHES, project=repo, body=body)))
        except StatusError as exc:
            error = self._meaning(exc, op)
            if isinstance(error, NotFoundError) and exc.response.status == 400 and _was_just_begun(op, repo):
                # In an empty project GitLab makes the default branch before it looks for the commit.
                error.outcome = Outcome.UNKNOWN
                error.hint = "the project may have been empty: GitLab then begins it with a README.md of its own"
            raise error from exc

    def _namespace(self, op: GitLabOperation, path: str) -> int:
        """The number of a group or user by its full path; asked for once, and again after a refusal."""
        if path not in self._namespaces:
            found = JsonReader(op.request("GET", NAMESPACE, namespace=path))
            # A path of digits alone is read as a number, which is somebody else's.
            if found.str("full_path") != path:
                raise NotFoundError(f"there is no namespace {path!r}; the host has {found.str('full_path')!r}")
            self._namespaces[path] = found.int("id")
        return self._namespaces[path]

    def _existing_repo(self, op: GitLabOperation, repo: str) -> Repo | None:
        # The name alone may be taken, by a project of another path.
        there = convert.repo(op.request("GET", PROJECT, project=repo))
        return there if there.path.lower() == repo.lower() else None

    def _between(
        self, op: GitLabOperation, repo: str, source: str, target: str, state: PullRequestState | None
    ) -> list[PullRequest]:
        """The merge requests between two branches of the project, newest first."""

        def page(number: int) -> tuple[list[JsonReader], bool | None]:
            query = {
                "source_branch": source,
                "target_branch": target,
                "state": _STATES[state],
                "order_by": "created_at",
                "sort": "desc",
                "per_page": PAGE_SIZE,
                "page": number,
            }
            response = op.request("GET", MERGE_REQUESTS, project=repo, query=query)
            return list(JsonReader.each(response)), more_pages(response)

        own = [
            convert.pull_request(item)
            for item in read_pages(page)
            if item.int_or_none("source_project_id") == item.int_or_none("target_project_id")
        ]
        return [pull for pull in own if (pull.source_branch, pull.target_branch) == (source, target)]

    def _open(self, op: GitLabOperation, repo: str, body: Mapping[str, Any]) -> JsonReader:
        """Open the merge request. A source branch that GitLab does not see yet is told from one that is not there."""
        try:
            return JsonReader(op.request("POST", MERGE_REQUESTS, project=repo, body=body))
        except StatusError as exc:
            error = self._meaning(exc, op)
            if isinstance(error, NotFoundError) and "source_branch" in error.message:
                with suppress(Exception):
                    self._branch(op, repo, str(body["source_branch"]))
                    error = ProviderUnavailableError(
                        "GitLab does not see the source branch yet, which is there",
                        status=error.status,
                        request_id=error.request_id,
                        hint="it was made moments ago; the same call is safe, and will do in a few seconds",
                    )
            raise error from exc


def _was_just_begun(op: GitLabOperation, repo: str) -> bool:
    """Whether the project's only commit is the one by which GitLab itself begins a project."""
    with suppress(Exception):
        [only] = JsonReader.each(op.request("GET", BRANCHES, project=repo))
        commit = only.object("commit")
        return not commit.strs("parent_ids") and (commit.str_or_none("message") or "").startswith("Add README.md")
    return False


def _shown_title(title: str, draft: bool) -> str:
    """The title as GitLab takes it: a draft is made by a prefix, and by nothing else."""
    if not draft and convert.makes_draft(title):
        checks.refuse("title", f"is {title[:20]!r}…, by which GitLab would make a draft; ask for draft=True")
    shown = f"{convert.DRAFT_PREFIX}{title}" if draft else title
    if len(shown) > 255:
        checks.refuse("title", "of a draft has at most 248 characters: GitLab marks it by a prefix of 7")
    return shown


def _check_kept(description: str, labels: Sequence[str]) -> None:
    """Refuse what GitLab would not keep as it is."""
    if (line := first_quick_action(description)) is not None:
        checks.refuse("description", f"has the line {line[:40]!r}, which GitLab would execute as a quick action")
    if comma := next((label for label in labels if "," in label), None):
        checks.refuse("labels", f"hold {comma!r}; GitLab's labels have no comma, which separates them")


def _user_id(op: GitLabOperation, name: str) -> int:
    for user in JsonReader.each(op.request("GET", USERS, query={"username": name})):
        if user.str("username").lower() == name.lower():
            return user.int("id")
    raise InvalidRequestError(f"reviewers: there is no user {name!r}", argument="reviewers")


def _compare(
    response: JsonReader,
    made: PullRequest,
    *,
    draft: bool,
    description: str,
    labels: Sequence[str],
    reviewer_ids: Sequence[int],
) -> None:
    """Compare what GitLab made with what was asked: it drops silently what it does not keep."""
    if made.draft is not draft:
        raise UnexpectedResponseError(f"GitLab made {'a' if made.draft else 'no'} draft of it, by its title")
    if made.description.rstrip() != description.replace("\r", "").rstrip():
        raise UnexpectedResponseError("GitLab did not keep the description as it is; it may have executed a line of it")
    if left_out := set(labels) - set(response.strs("labels") if labels else ()):
        raise PermissionDeniedError(
            f"GitLab did not set the labels {sorted(left_out)}", hint="the role may be too low to set or to make labels"
        )
    there = {user.int("id") for user in response.objects("reviewers")} if reviewer_ids else set()
    if unasked := set(reviewer_ids) - there:
        raise PermissionDeniedError(
            f"GitLab did not ask {len(unasked)} of {len(reviewer_ids)} reviewers",
            hint="GitLab Free keeps one reviewer; others must be able to read the merge request",
        )
