"""The local forge: a Git host in a folder, and the provider that speaks to it."""

from gitprovider._core.extras import missing_extra

try:
    from gitprovider.local.database import PullRecord, RepoRecord, Rule
    from gitprovider.local.forge import Forge, locate
    from gitprovider.local.git import CommitRecord
    from gitprovider.local.provider import LocalProvider
    from gitprovider.local.rules import strictest
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
