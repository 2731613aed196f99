"""One contract for repositories on GitHub, GitLab and a local forge. Every mutation is sent once.

The names below are loaded on first use, so importing this package is cheap and loads no SDK.
"""

import sys

TYPE_CHECKING = False  # type checkers treat it as typing's; importing typing costs more than the rest of this module
if TYPE_CHECKING:
    from gitprovider.bootstrap import BootstrapReport, bootstrap
    from gitprovider.connect import Provider, RepoUrl, connect, connect_repo, parse_repo_url
    from gitprovider.contract import GitProviderContract, HostState, InspectableProvider, TreeEntry, optional
    from gitprovider.ensure import (
        Ensured,
        ensure_branch,
        ensure_change,
        ensure_files,
        ensure_merged,
        ensure_protection,
        ensure_pull_request,
        ensure_repo,
    )
    from gitprovider.errors import (
        AlreadyExistsError,
        AuthenticationError,
        ConflictError,
        GitProviderError,
        HeadMovedError,
        InvalidRequestError,
        NotFoundError,
        NotMergeableError,
        NotMergeableReason,
        Outcome,
        PermissionDeniedError,
        ProviderUnavailableError,
        RateLimitedError,
        RepoMovedError,
        RetryCancelledError,
        Step,
        UnexpectedResponseError,
        UnsupportedOptionError,
    )
    from gitprovider.intent import Intent
    from gitprovider.limits import Limits, deadline
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
    from gitprovider.resolve import Resolution, Verdict, resolve
    from gitprovider.retry import RetryOptions, cancel_on, with_retry

__all__ = [
    "AlreadyExistsError",
    "AuthenticationError",
    "Author",
    "BootstrapReport",
    "Branch",
    "BranchProtection",
    "Commit",
    "ConflictError",
    "DeleteFile",
    "Ensured",
    "FileChange",
    "GitProviderContract",
    "GitProviderError",
    "HeadMovedError",
    "HostState",
    "InspectableProvider",
    "Intent",
    "InvalidRequestError",
    "Limits",
    "MergeMethod",
    "MergeResult",
    "MoveFile",
    "NotFoundError",
    "NotMergeableError",
    "NotMergeableReason",
    "Outcome",
    "PermissionDeniedError",
    "Provider",
    "ProviderUnavailableError",
    "PullRequest",
    "PullRequestState",
    "PutFile",
    "RateLimitedError",
    "Repo",
    "RepoMovedError",
    "RepoUrl",
    "Resolution",
    "RetryCancelledError",
    "RetryOptions",
    "Step",
    "TreeEntry",
    "UnexpectedResponseError",
    "UnsupportedOptionError",
    "Verdict",
    "Visibility",
    "bootstrap",
    "cancel_on",
    "connect",
    "connect_repo",
    "deadline",
    "ensure_branch",
    "ensure_change",
    "ensure_files",
    "ensure_merged",
    "ensure_protection",
    "ensure_pull_request",
    "ensure_repo",
    "optional",
    "parse_repo_url",
    "resolve",
    "with_retry",
]

_HOME = {
    "bootstrap": "BootstrapReport bootstrap",
    "connect": "Provider RepoUrl connect connect_repo parse_repo_url",
    "contract": "GitProviderContract HostState InspectableProvider TreeEntry optional",
    "ensure": "Ensured ensure_branch ensure_change ensure_files ensure_merged ensure_protection ensure_pull_request "
    "ensure_repo",
    "errors": "AlreadyExistsError AuthenticationError ConflictError GitProviderError HeadMovedError "
    "InvalidRequestError NotFoundError NotMergeableError NotMergeableReason Outcome PermissionDeniedError "
    "ProviderUnavailableError RateLimitedError RepoMovedError RetryCancelledError Step "
    "UnexpectedResponseError UnsupportedOptionError",
    "intent": "Intent",
    "limits": "Limits deadline",
    "models": "Author Branch BranchProtection Commit DeleteFile FileChange MergeMethod MergeResult MoveFile "
    "PullRequest PullRequestState PutFile Repo Visibility",
    "resolve": "Resolution Verdict resolve",
    "retry": "RetryOptions cancel_on with_retry",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(type(sys)):  # type: ignore[misc]  # the class of modules, without importing types
    """The package's module class. It keeps ``gitprovider.connect`` the function when the module of that name loads."""

    def __setattr__(self, name: str, value: object) -> None:
        if _MODULE_OF.get(name) == name and isinstance(value, type(sys)):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
