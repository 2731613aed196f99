"""A missing extra is one line that names it."""

from __future__ import annotations

from gitprovider.errors import GitProviderError


class MissingExtraError(GitProviderError, ImportError):
    """A part of the library was asked for whose dependency is not installed. It is an ImportError too.

    Attributes:
        extra: the name of the extra to install.
    """

    def __init__(self, message: str, *, extra: str) -> None:
        super().__init__(message, hint=f"pip install 'gitprovider[{extra}]'")
        self.extra = extra


def missing_extra(extra: str, cause: ImportError) -> ImportError:
    """The error to raise for a failed import of an extra's dependency, which ``cause`` is, instead of ``cause``.

    Any other failure is given back as it is, such as one from within an installed dependency: installing again would
    not help.
    """
    if not isinstance(cause, ModuleNotFoundError) or (cause.name or "").partition(".")[0] in ("", "gitprovider"):
        return cause
    return MissingExtraError(f"{cause.name} is not installed; pip install 'gitprovider[{extra}]'", extra=extra)
