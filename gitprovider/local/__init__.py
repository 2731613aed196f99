"""The local forge: a Git host in a folder, and the provider on it."""

from gitprovider._core.extras import missing_extra

try:
    from gitprovider.local.database import PullRecord, RepoRecord, Rule
    from gitprovider.local.forge import Forge, locate
    from gitprovider.local.git import CommitRecord
    from gitprovider.local.provider import LocalProvider
    from gitprovider.local.session import strictest
except ImportError as exc:
    raise missing_extra("local", exc) from None

__all__ = [
    "CommitRecord",
    "Forge",
    "LocalProvider",
    "PullRecord",
    "RepoRecord",
    "Rule",
    "locate",
    "strictest",
]
