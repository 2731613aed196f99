"""The error for a missing extra, which names the extra to install."""

from __future__ import annotations

from gitprovider.errors import GitProviderError


class MissingExtraError(GitProviderError, ImportError):
    """A dependency of the requested part of the library is not installed. This is also an ImportError.

    Attributes:
        extra: the name of the extra to install.
    """

    def __init__(self, message: str, *, extra: str) -> None:
        super().__init__(message, hint=f"pip install 'gitprovider[{extra}]'")
        self.extra = extra


def missing_extra(extra: str, cause: ImportError) -> ImportError:
    """Return the error to raise after importing an extra's dependency failed with ``cause``.

    It is a MissingExtraError if the dependency is not installed. Otherwise ``cause`` is returned, such as a failure
    inside an installed dependency, which installing again would not fix.
    """
    if not isinstance(cause, ModuleNotFoundError) or (cause.name or "").partition(".")[0] in ("", "gitprovider"):
        return cause
    return MissingExtraError(f"{cause.name} is not installed; pip install 'gitprovider[{extra}]'", extra=extra)
