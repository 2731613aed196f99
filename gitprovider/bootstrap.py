"""Create a repository with a protected branch from a directory. The call can be repeated until it succeeds."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from gitprovider._core.claims import check_key
from gitprovider._core.directory import read_directory as read_directory
from gitprovider._core.json import envelope, plain
from gitprovider.checks import (
    check_bool,
    check_branch,
    check_callable,
    check_items,
    check_pull_request_branch,
    check_repo_path,
    check_seconds,
    check_text,
    keep,
    refuse,
)
from gitprovider.contract import InspectableProvider, expecting_absence, optional
from gitprovider.ensure import (
    Ensured,
    Settling,
    check_supported,
    ensure_branch,
    ensure_files,
    ensure_merged,
    ensure_protection,
    ensure_pull_request,
    ensure_repo,
    finished_merge,
    matching_pull_request,
    matching_repo,
    missing_files,
    settle_stored,
    store_of,
)
from gitprovider.errors import (
    ConflictError,
    GitProviderError,
    NotFoundError,
    NotMergeableError,
    NotMergeableReason,
    Outcome,
    ProviderUnavailableError,
    RateLimitedError,
    RetryCancelledError,
)
from gitprovider.errors import Step as Done
from gitprovider.models import (
    Author,
    Branch,
    BranchProtection,
    Commit,
    MergeResult,
    PullRequest,
    PullRequestState,
    PutFile,
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
from gitprovider.redact import readable
from gitprovider.resolve import Verdict, resolve
from gitprovider.retry import PollDeadline

if TYPE_CHECKING:
    import os

_T = TypeVar("_T")

# How many of a branch's first parents are read to find out whether it was branched from the default branch.
_MAX_COMMITS = 100
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 10.0
# Mutations that a host may refuse for a while because it does not see a branch or commit that was just created.
_LAGGING = ("commit_files", "open_pull_request", "merge_pull_request")
# A plan's name for the default branch of a repository that does not exist yet. The host chooses the real name.
_UNMADE = "the default branch"
# Stands for that branch when the arguments of a mutation are checked.
_UNMADE_NAME = "the-default-branch"

_STEPS = (
    "create_repo",
    "commit_files",
    "create_branch",
    "create_change_branch",
    "commit_change",
    "open_pull_request",
    "merge_pull_request",
    "protect_branch",
)

# The file that the pull request adds if the caller gives no change.
CHANGE_PATH = "BOOTSTRAP.md"
_CHANGE_TEXT = """\
# How this repository began

Its files were committed to `{main}`.{develop} The first pull request added this page, before `{main}` was protected.
From now on, changes reach `{main}` through pull requests.
"""


class StepStatus(StrEnum):
    """How a step ended."""

    DONE = "done"
    ALREADY_THERE = "already there"
    WOULD_DO = "would do"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One step of a bootstrap.

    Attributes:
        name: ``create_repo``, ``commit_files``, ``create_branch``, ``create_change_branch``, ``commit_change``,
            ``open_pull_request``, ``merge_pull_request`` or ``protect_branch``.
        target: the repository, branch or pull request of the step.
        status: how the step ended.
        detail: one readable line: what was changed, would be changed, or could not be changed.
        value: the Repo, Commit, Branch, PullRequest, MergeResult or BranchProtection on the host now, or None.
        error: for FAILED, the error.
        attempts: how many times the step was attempted.
    """

    name: str
    target: str
    status: StepStatus
    detail: str
    value: Any = None
    error: GitProviderError | None = None
    attempts: int = 1

    def __post_init__(self) -> None:
        keep(self, detail=readable(self.detail))

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as plain JSON values. The error is an object of its own attributes."""
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "error"}
        return {**plain(record), "error": None if self.error is None else envelope(self.error)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStart:
    """A step begins. ``name`` and ``target`` are as in StepReport."""

    name: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWait:
    """A step waits before its next attempt, or before the host is read again.

    Attributes:
        name, target: as in StepReport.
        attempt: how many times the step was attempted so far.
        wait: seconds.
        error: the error of the last attempt; None if the attempt succeeded but the host does not show the result yet.
    """

    name: str
    target: str
    attempt: int
    wait: float
    error: GitProviderError | None = None


StepEvent = StepStart | StepWait | StepReport
OnStep = Callable[[StepEvent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapReport:
    """The steps that a bootstrap did, or would do with ``plan``. If a step failed, it is the last one.

    Attributes:
        files: with ``plan``, each file that would be committed and its size in bytes.
        skipped: the symbolic links that were left out.
    """

    provider: str
    repo: str
    plan: bool
    steps: tuple[StepReport, ...]
    files: Mapping[str, int] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()

    @property
    def error(self) -> GitProviderError | None:
        """The error of the step that failed, or None."""
        return next((step.error for step in self.steps if step.error is not None), None)

    @property
    def ok(self) -> bool:
        """Whether every step succeeded."""
        return self.error is None

    def raise_for_error(self) -> None:
        """Raise the error of the failed step, if there is one."""
        if self.error is not None:
            raise self.error

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        return {
            "provider": self.provider,
            "repo": self.repo,
            "plan": self.plan,
            "ok": self.ok,
            "steps": [step.to_json() for step in self.steps],
            **({"files": [{"path": path, "bytes": size} for path, size in self.files.items()]} if self.plan else {}),
            **({"skipped": list(self.skipped)} if self.skipped else {}),
        }


def bootstrap(
    provider: InspectableProvider,
    repo: str,
    *,
    source: str | os.PathLike[str],
    description: str = "",
    visibility: Visibility = Visibility.PRIVATE,
    message: str = "Add the project",
    author: Author | None = None,
    develop: str | None = "develop",
    ignore: bool = True,
    exclude: Sequence[str] = (),
    skip_links: bool = False,
    allow_secrets: bool = False,
    pull_request: bool = False,
    change: Sequence[PutFile] | None = None,
    change_branch: str = "bootstrap",
    change_title: str = "Say how this repository began",
    rules: BranchProtection = BranchProtection(),
    plan: bool = False,
    within: float = 60.0,
    on_step: OnStep | None = None,
    key: str | None = None,
    sleep: Callable[[float], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> BootstrapReport:
    """Create a repository from a directory: the files on the default branch, a ``develop`` branch, and protection.

    The steps run in this order:

    1. Create the repository.
    2. Commit the files to the default branch in one commit (a host may need two for the first).
    3. Create the branch ``develop``.
    4. With ``pull_request``: create a branch with a change, open its pull request, merge it, and delete the branch.
    5. Protect the default branch.

    Each step uses the ``ensure_`` functions. What exists as requested is left unchanged; a contradiction stops the run.
    After a failure or a kill at any step, the same call therefore finishes the job.

    Hosts lag behind their own writes. After each step, the host is read until it shows the result. A step is repeated
    only if its error says that nothing was applied, and only if the error is retryable or is typical of a host that
    does not see a new object yet. All this happens within ``within`` seconds. After a lost response, ``resolve`` reads
    the host, and the request is not sent again.

    Args:
        source: a directory. It is read once.
        ignore: leave out what the ``.gitignore`` of each level and ``.git/info/exclude`` name.
        exclude: further patterns, as a line of a ``.gitignore`` in ``source``.
        skip_links: leave out symbolic links, and report their paths. Otherwise one is refused.
        allow_secrets: take files that look like a credential. Otherwise one is refused by its path.
        description, visibility: of the repository, as for ``ensure_repo``.
        message, author: of the commit.
        develop: the name of the second branch; None creates none.
        pull_request: add ``change`` through a pull request before the default branch is protected.
        change: the files of that pull request. ``source`` must not contain any of them. None adds a page that tells how
            the repository began.
        change_branch, change_title: the pull request's source branch, and its title and commit message.
        rules: the minimum protection of the default branch.
        plan: only read, and report what each step would do.
        within: seconds after a step's first attempt. Within this time the step may be repeated, or its result may
            become visible.
        on_step: called when a step begins, waits and ends. An exception that it raises ends the run.
        key: names this bootstrap in the provider's store of intents. Each step has a key of its own, ``KEY:STEP``.
            Before the first step, the run waits until the requests of a killed run have settled.
        sleep, clock, now: injectable. ``clock`` returns monotonic seconds, ``now`` the current time, aware.

    Returns:
        The report. A failed step is its last one. A step's GitProviderError is reported and not raised;
        ``BootstrapReport.raise_for_error`` raises it.

    Raises:
        InvalidRequestError: an argument is wrong, or ``source`` cannot be used. It is raised before any request.
        UnsupportedOptionError: the host cannot honour an option. It is raised before any request.
    """
    repo = check_repo_path(repo)
    created = CreateRepo(description=description, visibility=visibility)
    protected = ProtectBranch(branch=_UNMADE_NAME, rules=rules)
    change_title = check_text("change_title", change_title, empty=False, limit=255)
    if develop is not None:
        develop = check_branch("develop", develop)
    change_branch = check_pull_request_branch("change_branch", change_branch)
    if change_branch == develop:
        refuse("change_branch", f"is {change_branch!r}, the name of the develop branch")
    check_bool("pull_request", pull_request)
    check_bool("plan", plan)
    within = check_seconds("within", within)
    for argument, function in (("on_step", on_step), ("sleep", sleep), ("clock", clock), ("now", now)):
        if function is not None:
            check_callable(argument, function)
    files, skipped = read_directory(
        source, ignore=ignore, exclude=exclude, skip_links=skip_links, allow_secrets=allow_secrets
    )
    paths = {file.path for file in files}
    sizes = {file.path: len(file.data()) for file in files} if plan else {}
    if change is not None:
        if not pull_request:
            refuse("change", "needs pull_request=True")
        change = _read_change(change)
    committed = CommitFiles(branch=_UNMADE_NAME, changes=files, message=message, author=author)
    for path in [CHANGE_PATH] if change is None else [file.path for file in change]:
        if pull_request and path in paths:
            refuse("change", f"contains {path!r}, which source contains too: the pull request would undo the commit")
    asked: list[Mutation[Any]] = [created, committed, protected]
    if develop is not None:
        asked.append(CreateBranch(name=develop, source=_UNMADE_NAME))
    if pull_request:
        asked += [
            CreateBranch(name=change_branch, source=_UNMADE_NAME),
            OpenPullRequest(source_branch=change_branch, target_branch=_UNMADE_NAME, title=change_title),
            MergePullRequest(number=1, delete_source_branch=True),
        ]
    for mutation in asked:
        check_supported(provider, repo, mutation)
    if key is not None:
        store_of(provider)
        check_key(f"{key}:{max(_STEPS, key=len)}")
    run = _Run(provider, repo, plan=plan, within=within, on_step=on_step, key=key, sleep=sleep, clock=clock, now=now)
    try:
        run.settle_earlier()
        made = run.repository(created)
        main = _UNMADE if made is None else made.default_branch
        run.files("commit_files", main, files, committed.message, author)
        if develop is not None:
            run.branch("create_branch", develop, main)
        if pull_request:
            files = list(change or [PutFile(path=CHANGE_PATH, content=_change_text(main, develop), executable=False)])
            run.pull_request(files, change_branch, main, change_title, author)
        run.protection(main, rules)
    except _StepFailedError:
        pass  # the failed step is the last one of the report
    return BootstrapReport(
        provider=provider.name, repo=repo, plan=plan, steps=tuple(run.reports), files=sizes, skipped=skipped
    )


def _read_change(change: Any) -> list[PutFile]:
    """Check the files of the pull request and read them once."""
    files = check_items("change", change, "PutFile")
    if not files or not all(isinstance(file, PutFile) for file in files):
        refuse("change", "must be at least one PutFile, and nothing else")
    return [
        file
        for file in CommitFiles(branch=_UNMADE_NAME, changes=files, message="-").changes
        if isinstance(file, PutFile)
    ]


def _change_text(main: str, develop: str | None) -> str:
    sentence = f" `{develop}` was branched from there." if develop else ""
    return _CHANGE_TEXT.format(main=main, develop=sentence)


class _StepFailedError(Exception):
    """A step failed, which ends the run. The step's report has the error."""


class _Todo(NamedTuple):
    """What remains to be done, as a phrase that follows "would"."""

    detail: str


class _Step(NamedTuple, Generic[_T]):
    """One step. Both functions may be called again.

    Attributes:
        name, target: as in StepReport.
        read: reads the host and returns the value in its desired state, or what remains to be done.
        make: brings the host to the desired state.
        otherwise: what a plan says if nothing can be read yet.
    """

    name: str
    target: str
    read: Callable[[], _T | _Todo]
    make: Callable[[], Ensured[_T]]
    otherwise: str


class _Attempts:
    """How often a step was attempted, and the verdict on an attempt whose response was lost."""

    def __init__(self) -> None:
        self.count = 0
        self.verdict: Verdict | None = None


class _Run:
    """One run of a bootstrap. Each step reads the host, makes the desired state, and waits until the host shows it."""

    def __init__(
        self,
        provider: InspectableProvider,
        repo: str,
        *,
        plan: bool,
        within: float,
        on_step: OnStep | None,
        key: str | None,
        sleep: Callable[[float], None] | None,
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        self.reports: list[StepReport] = []
        self._provider = provider
        self._repo = repo
        self._plan = plan
        self._within = within
        self._notify: OnStep = on_step or (lambda event: None)
        self._key = key
        self._sleep = sleep
        self._clock = clock
        self._now = now
        self._made_something = False

    def settle_earlier(self) -> None:
        """Wait until the requests that an earlier run left unresolved have settled, before anything is read."""
        if self._key is None or self._plan:
            return
        for name in _STEPS:
            try:
                if store_of(self._provider).get(f"{self._key}:{name}") is not None:
                    error = ProviderUnavailableError("an earlier run ended before the host responded")
                    self._notify(
                        StepWait(name=name, target=self._repo, attempt=1, wait=self._provider.settle, error=error)
                    )
                    settle_stored(self._provider, f"{self._key}:{name}", Settling(self._sleep, self._now))
            except GitProviderError as failure:
                self._report(name, self._repo, StepStatus.FAILED, None, detail=str(failure), error=failure)
                raise _StepFailedError from None

    def _keyed(self, name: str) -> dict[str, Any]:
        """Return the arguments of a step's ``ensure_`` function that let it be resumed after a kill."""
        if self._key is None:
            return {}
        return {"key": f"{self._key}:{name}", "settling": Settling(self._sleep, self._now)}

    def repository(self, asked: CreateRepo) -> Repo | None:
        todo = f"create a {asked.visibility.value} repository"

        def make() -> Ensured[Repo]:
            return ensure_repo(
                self._provider,
                self._repo,
                description=asked.description,
                visibility=asked.visibility,
                **self._keyed("create_repo"),
            )

        return self._step(
            _Step(
                "create_repo",
                self._repo,
                lambda: matching_repo(self._provider, self._repo, asked) or _Todo(todo),
                make,
                todo,
            )
        )

    def files(self, name: str, branch: str, files: Sequence[PutFile], message: str, author: Author | None) -> None:
        def read() -> Commit | _Todo:
            head, missing = missing_files(self._provider, self._repo, branch, files)
            if head is None or missing:
                return _Todo(f"commit {len(missing)} of {len(files)} files")
            return dataclasses.replace(self._provider.commit(self._repo, head), branch=branch)

        self._step(
            _Step(
                name,
                branch,
                read,
                lambda: ensure_files(
                    self._provider, self._repo, branch, files, message=message, author=author, **self._keyed(name)
                ),
                f"commit {len(files)} files",
            )
        )

    def branch(self, name: str, branch: str, main: str) -> None:
        def read() -> Branch | _Todo:
            return self._branch_from(branch, main)

        self._step(_Step(name, branch, read, lambda: self._ensure_branch(name, branch, main), f"branch it from {main}"))

    def pull_request(self, files: Sequence[PutFile], branch: str, main: str, title: str, author: Author | None) -> None:
        def earlier() -> PullRequest | None:
            found = self._provider.find_pull_requests(
                self._repo, source_branch=branch, target_branch=main, state=PullRequestState.MERGED
            )
            return next((pull for pull in found if pull.title.strip() == title.strip()), None)

        def read_branch() -> Branch | PullRequest | _Todo:
            if branch == main:  # the host chooses the default branch's name, so it is known only now
                refuse("change_branch", f"is {branch!r}, the name of the default branch")
            return earlier() or self._branch_from(branch, main)

        def make_branch() -> Ensured[Branch | PullRequest]:
            found = read_branch()
            if not isinstance(found, _Todo):
                return Ensured(found, changed=False)
            return Ensured(*self._ensure_branch("create_change_branch", branch, main))

        def read_pull() -> PullRequest | _Todo:
            asked = OpenPullRequest(source_branch=branch, target_branch=main, title=title)
            found = matching_pull_request(self._provider, self._repo, asked)
            return found or _Todo(f"open {title!r} from {branch} to {main}")

        pull: Branch | PullRequest | None = self._step(
            _Step("create_change_branch", branch, read_branch, make_branch, f"branch it from {main}")
        )
        if isinstance(pull, PullRequest):
            # The pull request is merged. Its branch may be deleted, or be a new branch of somebody else's: this run
            # must not write to it.
            for name, target in (("commit_change", branch), ("open_pull_request", f"{branch} to {main}")):
                self._report(name, target, StepStatus.ALREADY_THERE, pull)
        else:
            self.files("commit_change", branch, files, title, author)
            pull = self._step(
                _Step(
                    "open_pull_request",
                    f"{branch} to {main}",
                    read_pull,
                    lambda: ensure_pull_request(
                        self._provider,
                        self._repo,
                        source_branch=branch,
                        target_branch=main,
                        title=title,
                        **self._keyed("open_pull_request"),
                    ),
                    f"open {title!r}",
                )
            )
        self._merge(None if pull is None else pull.number, branch, main)

    def _merge(self, number: int | None, branch: str, main: str) -> None:
        def read() -> MergeResult | _Todo:
            if number is None:
                return _Todo(f"merge it into {main} and delete {branch}")
            asked = MergePullRequest(number=number, delete_source_branch=True)
            pull, merge = finished_merge(self._provider, self._repo, asked)
            if merge is None and pull.state is PullRequestState.MERGED:
                return _Todo(f"delete {branch}; it is merged")
            return merge or _Todo(f"merge it into {main} and delete {branch}")

        def make() -> Ensured[MergeResult]:
            assert number is not None  # only a plan continues without a pull request
            return ensure_merged(
                self._provider, self._repo, number, delete_source_branch=True, **self._keyed("merge_pull_request")
            )

        target = f"{branch} to {main}" if number is None else f"pull request {number}"
        self._step(_Step("merge_pull_request", target, read, make, f"merge it into {main} and delete {branch}"))

    def protection(self, main: str, rules: BranchProtection) -> None:
        def read() -> BranchProtection | _Todo:
            current = self._provider.protection(self._repo, main)
            missing = rules.missing_from(current or BranchProtection.nothing())
            if current is None or missing:
                return _Todo(f"protect it: {', '.join(missing) or 'no requirements'}")
            return current

        self._step(
            _Step(
                "protect_branch",
                main,
                read,
                lambda: ensure_protection(self._provider, self._repo, main, rules, **self._keyed("protect_branch")),
                f"protect it: {', '.join(rules.missing_from(BranchProtection.nothing())) or 'no requirements'}",
            )
        )

    def _ensure_branch(self, name: str, branch: str, main: str) -> Ensured[Branch]:
        found = self._branch_from(branch, main)
        if isinstance(found, Branch):
            return Ensured(found, changed=False)
        source = self._provider.head(self._repo, main)
        return ensure_branch(self._provider, self._repo, branch, source=source, **self._keyed(name))

    def _branch_from(self, branch: str, main: str) -> Branch | _Todo:
        """Return the branch if it was branched from ``main``. Both may have moved since."""
        provider, repo = self._provider, self._repo
        head = optional(provider.head, repo, branch)
        if head is None:
            return _Todo(f"branch it from {main}")
        if not provider.contains(repo, provider.head(repo, main), branch):
            at: str | None = head
            for _ in range(_MAX_COMMITS):
                if at is None or provider.contains(repo, at, main):
                    break
                at = provider.commit(repo, at).parent
            else:
                at = None
            if at is None:
                raise ConflictError(
                    f"the branch {branch} exists at {head} and was not branched from {main}",
                    provider=provider.name,
                    repo=repo,
                )
        return Branch(name=branch, sha=head)

    def _step(self, step: _Step[_T]) -> _T | None:
        """Run one step and return its value, or None if a plan would make it."""
        self._notify(StepStart(name=step.name, target=step.target))
        attempts = _Attempts()
        try:
            if self._plan:
                found = self._read_for_plan(step)
                if isinstance(found, _Todo):
                    self._report(step.name, step.target, StepStatus.WOULD_DO, None, detail=f"would {found.detail}")
                    return None
                value, changed = found, False
            else:
                value, changed = self._make(step, attempts)
        except GitProviderError as error:
            self._report(
                step.name, step.target, StepStatus.FAILED, None, detail=str(error), error=error, attempts=attempts.count
            )
            raise _StepFailedError from None
        status = StepStatus.DONE if changed else StepStatus.ALREADY_THERE
        self._report(step.name, step.target, status, value, attempts=attempts.count)
        return value

    def _read_for_plan(self, step: _Step[_T]) -> _T | _Todo:
        """Read the host for a plan. What the step needs may not exist yet, because an earlier step would make it."""
        if any(report.name == "create_repo" and report.status is StepStatus.WOULD_DO for report in self.reports):
            return _Todo(step.otherwise)
        try:
            with expecting_absence():
                return step.read()
        except NotFoundError:
            return _Todo(step.otherwise)

    def _make(self, step: _Step[_T], attempts: _Attempts) -> Ensured[_T]:
        deadline = self._deadline()
        resumed = False
        while True:
            attempts.count += 1
            try:
                ensured = step.make()
                break
            except GitProviderError as error:
                if error.outcome is Outcome.NOT_APPLIED:
                    if not (error.retryable or self._may_lag(error)):
                        raise
                    self._pause(step, attempts, deadline, error)
                    continue
                self._made_something = True
                found = self._found_after(step, attempts, error)
                if not isinstance(found, _Todo):
                    return Ensured(found, changed=True)
                # A merge whose response was lost did not delete the branch. That request remains to be sent.
                if resumed or error.outcome is not Outcome.UNKNOWN or attempts.verdict is not Verdict.APPLIED:
                    raise
                resumed = True
        if not ensured.changed and not resumed:
            return ensured
        self._made_something = True
        return Ensured(self._shown(step, attempts, ensured.value), changed=True)

    def _may_lag(self, error: GitProviderError) -> bool:
        """Report whether the error may mean that the host does not see a newly created object yet."""
        if not self._made_something:
            return False
        if isinstance(error, NotMergeableError):
            return error.reason in (NotMergeableReason.PENDING, NotMergeableReason.UNKNOWN)
        if isinstance(error, ConflictError):
            # Only a refusal by the host may pass. A contradiction that the reads found does not.
            return error.intent is not None and error.operation in _LAGGING
        return isinstance(error, NotFoundError)

    def _found_after(self, step: _Step[_T], attempts: _Attempts, error: GitProviderError) -> _T | _Todo:
        """Read the host after an error with an unknown or partial effect. Nothing is sent."""
        self._notify(self._waiting(step, attempts, self._provider.settle, error))
        try:
            attempts.verdict = resolve(self._provider, error, wait=True, sleep=self._sleep, now=self._now).verdict
            if self._key is not None and attempts.verdict is not Verdict.UNDECIDED:
                store_of(self._provider).done(f"{self._key}:{step.name}")
            return step.read()
        except GitProviderError as unread:
            raise error from unread

    def _shown(self, step: _Step[_T], attempts: _Attempts, made: _T) -> _T:
        """Read the host until it shows the result of the step, and return what was read."""
        deadline = self._deadline()
        while True:
            not_shown: GitProviderError | None = None
            try:
                with expecting_absence():
                    found = step.read()
                if not isinstance(found, _Todo):
                    return found
            except (NotFoundError, ConflictError, ProviderUnavailableError, RateLimitedError) as error:
                not_shown = error
            except GitProviderError as error:
                self._mark_done(error, step, made)
                raise
            try:
                self._pause(step, attempts, deadline, not_shown)
            except RetryCancelledError as cancelled:
                self._mark_done(cancelled, step, made)
                raise
            except GitProviderError as over:
                raise ProviderUnavailableError(
                    f"{step.name} succeeded, but the host did not show the result within {self._within:g} seconds",
                    provider=self._provider.name,
                    operation=step.name,
                    repo=self._repo,
                    outcome=Outcome.PARTIAL,
                    completed=(Done(step.name, made),),
                    failed_step="read it back",
                ) from over

    @staticmethod
    def _mark_done(error: GitProviderError, step: _Step[Any], made: object) -> None:
        """Record in the error of a read that the step itself was done."""
        error.outcome, error.completed, error.failed_step = Outcome.PARTIAL, (Done(step.name, made),), "read it back"

    def _deadline(self) -> PollDeadline:
        return PollDeadline(
            self._within, sleep=self._sleep, clock=self._clock, first=_FIRST_WAIT, longest=_LONGEST_WAIT
        )

    def _pause(
        self, step: _Step[Any], attempts: _Attempts, deadline: PollDeadline, error: GitProviderError | None
    ) -> None:
        """Wait before the next attempt or read.

        Raises:
            GitProviderError: the time is up; it is ``error`` if that is given.
        """
        pause = deadline.next_pause()
        seconds = pause if error is None or error.retry_after is None else error.retry_after
        if seconds > deadline.left:
            raise error or NotFoundError("the host still shows the previous state")
        self._notify(self._waiting(step, attempts, seconds, error))
        deadline.wait(seconds)

    @staticmethod
    def _waiting(step: _Step[Any], attempts: _Attempts, seconds: float, error: GitProviderError | None) -> StepWait:
        return StepWait(name=step.name, target=step.target, attempt=attempts.count, wait=seconds, error=error)

    def _report(
        self,
        name: str,
        target: str,
        status: StepStatus,
        value: Any,
        *,
        detail: str | None = None,
        error: GitProviderError | None = None,
        attempts: int = 1,
    ) -> None:
        report = StepReport(
            name=name,
            target=target,
            status=status,
            detail=_described(value) if detail is None else detail,
            value=value,
            error=error,
            attempts=attempts,
        )
        self.reports.append(report)
        self._notify(report)


def _described(value: Any) -> str:
    match value:
        case Repo():
            return f"{value.visibility}, {value.web_url}"
        case Branch() | Commit():
            return f"at {value.sha}"
        case PullRequest():
            return f"pull request {value.number}, {value.state}"
        case MergeResult():
            return f"merged as {value.sha}"
        case BranchProtection():
            return ", ".join(value.missing_from(BranchProtection.nothing())) or "no requirements"
    raise TypeError(f"no step yields {type(value).__name__}")
