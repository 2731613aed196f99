"""GitHub: the provider and the credential of a GitHub App."""

from gitprovider.github.auth import AppInstallation
from gitprovider.github.provider import GitHubProvider

__all__ = ["AppInstallation", "GitHubProvider"]
