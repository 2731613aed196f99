"""GitLab, by python-gitlab."""

from gitprovider.gitlab.provider import GitLabProvider

__all__ = ["GitLabProvider"]
