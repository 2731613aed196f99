"""The JSON bodies of GitHub's REST API, with the keys that api.github.com sends (version 2022-11-28)."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from gitprovider.errors import NotMergeableReason
from gitprovider.fakes.github.objects import Change, Item
from gitprovider.local.database import PullRecord, RepoRecord
from gitprovider.local.git import CommitRecord
from gitprovider.models import PullRequestState, Visibility

Body = dict[str, Any]

_ACCOUNT_URLS = {
    "events_url": "/events{/privacy}",
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "organizations_url": "/orgs",
    "received_events_url": "/received_events",
    "repos_url": "/repos",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
}
_REPO_URLS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}
_COUNTS = ["forks", "forks_count", "open_issues", "open_issues_count", "stargazers_count", "watchers", "watchers_count"]
# The settings of a new repository that the fake server uses or shows.
SETTINGS: Mapping[str, Any] = {
    "allow_auto_merge": False,
    "allow_merge_commit": True,
    "allow_rebase_merge": True,
    "allow_squash_merge": True,
    "allow_update_branch": False,
    "delete_branch_on_merge": False,
    "merge_commit_message": "PR_TITLE",
    "merge_commit_title": "MERGE_MESSAGE",
    "squash_merge_commit_message": "COMMIT_MESSAGES",
    "squash_merge_commit_title": "COMMIT_OR_PR_TITLE",
    "use_squash_pr_title_as_default": False,
}
_STATES = {
    None: "clean",
    NotMergeableReason.CONFLICT: "dirty",
    NotMergeableReason.DRAFT: "draft",
    NotMergeableReason.BEHIND: "behind",
    NotMergeableReason.CLOSED: "unknown",
}


def setting(record: RepoRecord, name: str) -> Any:
    """A repository's setting, or its default."""
    return record.settings.get(name, SETTINGS[name])


def is_private(record: RepoRecord) -> bool:
    """Whether the repository is not public."""
    return record.visibility is not Visibility.PUBLIC


def stamp(time: datetime) -> str:
    """A time in GitHub's format: ``2024-03-22T23:35:17Z``."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def account_id(login: str) -> int:
    """The id of an account. It is the same in every process."""
    return zlib.crc32(login.lower().encode()) % 90_000_000 + 1


def node_id(prefix: str, *parts: object) -> str:
    """An opaque GraphQL id."""
    text = "/".join(str(part) for part in parts)
    return f"{prefix}_{base64.urlsafe_b64encode(text.encode()).decode().rstrip('=')}"


def _profile(login: str, since: datetime) -> Body:
    return {
        "name": login,
        **dict.fromkeys(("company", "location", "email", "twitter_username")),
        "blog": "",
        **dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0),
        "created_at": stamp(since),
        "updated_at": stamp(since),
    }


@dataclass(frozen=True, slots=True)
class Mergeability:
    """Whether a pull request can be merged. Nothing is known until GitHub has computed it."""

    computed: bool
    reason: NotMergeableReason | None = None

    def body(self, record: PullRecord) -> Body:
        """The keys of the pull request's body."""
        if not self.computed or record.state is not PullRequestState.OPEN:
            return {"mergeable": None, "mergeable_state": "unknown", "rebaseable": None}
        merges = self.reason is not NotMergeableReason.CONFLICT
        return {"mergeable": merges, "mergeable_state": _STATES.get(self.reason, "blocked"), "rebaseable": merges}

    def merge_commit_sha(self, record: PullRecord) -> str | None:
        """The merge commit. For an open pull request, GitHub shows a trial merge that is on no branch."""
        if record.state is PullRequestState.MERGED:
            return record.merge_commit_sha
        if not self.computed or self.reason is NotMergeableReason.CONFLICT:
            return None
        return hashlib.sha1(f"{record.base_sha} {record.head_sha}".encode(), usedforsecurity=False).hexdigest()


class Bodies:
    """Builds bodies whose links lead to one origin.

    Args:
        api: the API's root, such as ``https://api.github.com``.
        web: the root of the web pages.
        orgs: the logins that are organizations.
        git: where Git clones from. The default is ``web``.
    """

    def __init__(self, api: str, web: str, orgs: frozenset[str], *, git: str | None = None) -> None:
        self.api = api
        self.web = web
        self.git = git or web
        self.orgs = orgs

    # Accounts

    def is_org(self, login: str) -> bool:
        """Whether the account is an organization."""
        return login.lower() in {org.lower() for org in self.orgs}

    def account(self, login: str) -> Body:
        """A user or organization inside other bodies."""
        url = f"{self.api}/users/{login}"
        kind = "Organization" if self.is_org(login) else "User"
        return {
            "login": login,
            "id": account_id(login),
            "node_id": node_id("O" if kind == "Organization" else "U", login),
            "avatar_url": f"{self.web}/avatars/{login}",
            "gravatar_id": "",
            "url": url,
            "html_url": f"{self.web}/{login}",
            **{key: url + suffix for key, suffix in _ACCOUNT_URLS.items()},
            "type": kind,
            "user_view_type": "public",
            "site_admin": False,
        }

    def team(self, slug: str) -> Body:
        """A team inside other bodies."""
        url = f"{self.api}/teams/{account_id(slug)}"
        return {
            "id": account_id(slug),
            "node_id": node_id("T", slug),
            "name": slug,
            "slug": slug,
            "description": None,
            "privacy": "closed",
            "notification_setting": "notifications_enabled",
            "permission": "push",
            "url": url,
            "html_url": f"{self.web}/orgs/acme/teams/{slug}",
            "members_url": f"{url}/members{{/member}}",
            "repositories_url": f"{url}/repos",
            "type": "organization",
            "parent": None,
        }

    def app(self, slug: str) -> Body:
        """An App inside other bodies."""
        return {
            "id": account_id(slug),
            "slug": slug,
            "node_id": node_id("A", slug),
            "owner": self.account(slug),
            "name": slug,
            "description": "",
            "external_url": f"{self.web}/apps/{slug}",
            "html_url": f"{self.web}/apps/{slug}",
            "created_at": "2020-01-01T00:00:00Z",
            "updated_at": "2020-01-01T00:00:00Z",
            "permissions": {"contents": "write"},
            "events": [],
        }

    def user(self, login: str, since: datetime) -> Body:
        """A user, as everybody sees it."""
        return {
            **self.account(login),
            **_profile(login, since),
            "hireable": None,
            "bio": None,
        }

    def own_user(self, login: str, since: datetime) -> Body:
        """A user, as it sees itself."""
        return {
            **self.user(login, since),
            "private_gists": 0,
            "total_private_repos": 0,
            "owned_private_repos": 0,
            "disk_usage": 0,
            "collaborators": 0,
            "two_factor_authentication": True,
            "plan": {"name": "pro", "space": 976562499, "private_repos": 9999, "collaborators": 0},
        }

    def organization(self, login: str, since: datetime) -> Body:
        """An organization, as everybody sees it."""
        url = f"{self.api}/orgs/{login}"
        return {
            "login": login,
            "id": account_id(login),
            "node_id": node_id("O", login),
            "url": url,
            "repos_url": f"{url}/repos",
            "events_url": f"{url}/events",
            "hooks_url": f"{url}/hooks",
            "issues_url": f"{url}/issues",
            "members_url": f"{url}/members{{/member}}",
            "public_members_url": f"{url}/public_members{{/member}}",
            "avatar_url": f"{self.web}/avatars/{login}",
            "description": "",
            **_profile(login, since),
            "is_verified": False,
            "has_organization_projects": True,
            "has_repository_projects": True,
            "html_url": f"{self.web}/{login}",
            "archived_at": None,
            "type": "Organization",
        }

    def installation(self, number: int, app_id: int, login: str, since: datetime) -> Body:
        """An App's installation on an account."""
        return {
            "id": number,
            "client_id": f"Iv1.{app_id:016x}",
            "account": self.account(login),
            "repository_selection": "all",
            "access_tokens_url": f"{self.api}/app/installations/{number}/access_tokens",
            "repositories_url": f"{self.api}/installation/repositories",
            "html_url": f"{self.web}/organizations/{login}/settings/installations/{number}",
            "app_id": app_id,
            "app_slug": f"app-{app_id}",
            "target_id": account_id(login),
            "target_type": "Organization" if self.is_org(login) else "User",
            "permissions": {"administration": "write", "contents": "write", "metadata": "read"},
            "events": [],
            "created_at": stamp(since),
            "updated_at": stamp(since),
            "single_file_name": None,
            "has_multiple_single_files": False,
            "single_file_paths": [],
            "suspended_by": None,
            "suspended_at": None,
        }

    # Repositories

    def url(self, record: RepoRecord) -> str:
        """The repository's URL in the API."""
        return f"{self.api}/repos/{record.path}"

    def page_url(self, record: RepoRecord) -> str:
        """The repository's web page."""
        return f"{self.web}/{record.path}"

    def inner_repo(self, record: RepoRecord) -> Body:
        """A repository inside a pull request."""
        url, page = self.url(record), self.page_url(record)
        owner, name = record.path.split("/", 1)
        host = self.web.split("://", 1)[1]
        since = stamp(record.created_at)
        return {
            "id": record.id,
            "node_id": node_id("R", record.id),
            "name": name,
            "full_name": record.path,
            "owner": self.account(owner),
            "private": is_private(record),
            "html_url": page,
            "description": record.description or None,
            "fork": False,
            "url": url,
            **{key: url + suffix for key, suffix in _REPO_URLS.items()},
            "clone_url": f"{self.git}/{record.path}.git",
            "git_url": f"git://{host}/{record.path}.git",
            "ssh_url": f"git@{host}:{record.path}.git",
            "svn_url": page,
            "mirror_url": None,
            "homepage": None,
            "language": None,
            "license": None,
            "topics": [],
            "is_template": False,
            "archived": record.archived,
            "disabled": False,
            "visibility": record.visibility.value,
            "default_branch": record.default_branch,
            # GitHub computes it much later. It does not distinguish an empty repository from one with commits.
            "size": 0,
            **dict.fromkeys(_COUNTS, 0),
            "has_discussions": False,
            "has_downloads": True,
            "has_issues": True,
            "has_pages": False,
            "has_projects": True,
            "has_wiki": True,
            "allow_forking": True,
            "web_commit_signoff_required": False,
            "created_at": since,
            "updated_at": since,
            "pushed_at": since,
        }

    def repo(self, record: RepoRecord, *, admin: bool, anonymous: bool = False) -> Body:
        """A repository. Only callers who may push see its merge settings."""
        owner = record.path.split("/", 1)[0]
        organization = {"organization": self.account(owner), "custom_properties": {}} if self.is_org(owner) else {}
        rights = {"admin": admin, "maintain": admin, "push": True, "triage": True, "pull": True}
        settings = {name: setting(record, name) for name in SETTINGS}
        return {
            **self.inner_repo(record),
            **({} if anonymous else {"permissions": rights, **settings}),
            **organization,
            "network_count": 0,
            "subscribers_count": 0,
        }

    # Git

    def ref(self, record: RepoRecord, name: str, sha: str) -> Body:
        """A branch as a ref. ``name`` is ``refs/heads/…``."""
        url = self.url(record)
        return {
            "ref": name,
            "node_id": node_id("REF", record.id, name),
            "url": f"{url}/git/{quote(name)}",
            "object": {"sha": sha, "type": "commit", "url": f"{url}/git/commits/{sha}"},
        }

    def tree(self, record: RepoRecord, sha: str, items: Sequence[Item], *, truncated: bool = False) -> Body:
        """A tree with its entries."""
        url = self.url(record)
        return {
            "sha": sha,
            "url": f"{url}/git/trees/{sha}",
            "tree": [_tree_item(url, item) for item in items],
            "truncated": truncated,
        }

    def blob(self, record: RepoRecord, sha: str, data: bytes) -> Body:
        """A blob with its content."""
        return {
            "sha": sha,
            "node_id": node_id("B", record.id, sha),
            "size": len(data),
            "url": f"{self.url(record)}/git/blobs/{sha}",
            "content": base64.encodebytes(data).decode(),
            "encoding": "base64",
        }

    def git_commit(self, record: RepoRecord, commit: CommitRecord) -> Body:
        """A commit in the Git data API."""
        return {**self._commit_frame(record, commit, "git/commits"), **self._commit_core(record, commit)}

    def commit(self, record: RepoRecord, commit: CommitRecord) -> Body:
        """A commit in the rest of the API."""
        frame = self._commit_frame(record, commit, "commits")
        core = {
            **self._commit_core(record, commit),
            "url": f"{self.url(record)}/git/commits/{commit.sha}",
            "comment_count": 0,
        }
        comments = f"{frame['url']}/comments"
        return {**frame, "commit": core, "comments_url": comments, "author": None, "committer": None}

    def _commit_frame(self, record: RepoRecord, commit: CommitRecord, place: str) -> Body:
        url, page = f"{self.url(record)}/{place}", f"{self.page_url(record)}/commit"
        return {
            "sha": commit.sha,
            "node_id": node_id("C", record.id, commit.sha),
            "url": f"{url}/{commit.sha}",
            "html_url": f"{page}/{commit.sha}",
            "parents": [{"sha": sha, "url": f"{url}/{sha}", "html_url": f"{page}/{sha}"} for sha in commit.parents],
        }

    def _commit_core(self, record: RepoRecord, commit: CommitRecord) -> Body:
        person = {"name": commit.author_name, "email": commit.author_email, "date": stamp(commit.time)}
        unsigned = dict.fromkeys(("signature", "payload", "verified_at"))
        return {
            "message": commit.message,
            "author": person,
            "committer": person,
            "tree": {"sha": commit.tree, "url": f"{self.url(record)}/git/trees/{commit.tree}"},
            "verification": {"verified": False, "reason": "unsigned", **unsigned},
        }

    def comparison(self, record: RepoRecord, base: str, head: str, *, ahead: int, behind: int) -> Body:
        """A head compared to a base, without the commits and files."""
        page, these = f"{self.page_url(record)}/compare", f"{quote(base)}...{quote(head)}"
        status = {
            (False, False): "identical",
            (True, False): "ahead",
            (False, True): "behind",
            (True, True): "diverged",
        }
        return {
            "url": f"{self.url(record)}/compare/{these}",
            "html_url": f"{page}/{these}",
            "permalink_url": f"{page}/{these}",
            "diff_url": f"{page}/{these}.diff",
            "patch_url": f"{page}/{these}.patch",
            "status": status[ahead > 0, behind > 0],
            "ahead_by": ahead,
            "behind_by": behind,
            "total_commits": ahead,
        }

    def file_change(self, record: RepoRecord, sha: str, change: Change) -> Body:
        """A file that a commit changed."""
        path = quote(change.path)
        body = {
            "sha": change.sha,
            "filename": change.path,
            "status": change.status,
            "additions": change.additions,
            "deletions": change.deletions,
            "changes": change.additions + change.deletions,
            "blob_url": f"{self.page_url(record)}/blob/{sha}/{path}",
            "raw_url": f"{self.page_url(record)}/raw/{sha}/{path}",
            "contents_url": f"{self.url(record)}/contents/{path}?ref={sha}",
        }
        return body if change.previous is None else {**body, "previous_filename": change.previous}

    def content(self, record: RepoRecord, branch: str, path: str, sha: str, size: int) -> Body:
        """A file that the contents API has written."""
        encoded, at = quote(path), quote(branch, safe="")
        url = f"{self.url(record)}/contents/{encoded}?ref={at}"
        git = f"{self.url(record)}/git/blobs/{sha}"
        html = f"{self.page_url(record)}/blob/{quote(branch)}/{encoded}"
        return {
            "name": path.rsplit("/", 1)[-1],
            "path": path,
            "sha": sha,
            "size": size,
            "url": url,
            "html_url": html,
            "git_url": git,
            "download_url": f"{self.page_url(record)}/raw/{quote(branch)}/{encoded}",
            "type": "file",
            "_links": {"self": url, "git": git, "html": html},
        }

    # Pull requests

    def label(self, record: RepoRecord, name: str) -> Body:
        """A label. GitHub creates a missing label, in grey."""
        return {
            "id": account_id(f"{record.id}/{name}"),
            "node_id": node_id("LA", record.id, name),
            "url": f"{self.url(record)}/labels/{quote(name, safe='')}",
            "name": name,
            "color": "ededed",
            "default": False,
            "description": None,
            "archived_by": None,
        }

    def simple_pull(self, record: RepoRecord, pull: PullRecord, author: str, merge: Mergeability) -> Body:
        """A pull request in a list."""
        url, page, number = self.url(record), self.page_url(record), pull.number
        since = stamp(pull.created_at)
        closed_at = None if pull.state is PullRequestState.OPEN else pull.settings.get("closed_at", since)
        links = {
            "self": f"{url}/pulls/{number}",
            "html": f"{page}/pull/{number}",
            "issue": f"{url}/issues/{number}",
            "comments": f"{url}/issues/{number}/comments",
            "review_comments": f"{url}/pulls/{number}/comments",
            "review_comment": f"{url}/pulls/comments{{/number}}",
            "commits": f"{url}/pulls/{number}/commits",
            "statuses": f"{url}/statuses/{pull.head_sha}",
        }
        return {
            "url": links["self"],
            "id": record.id * 100_000 + number,
            "node_id": node_id("PR", record.id, number),
            "html_url": links["html"],
            "diff_url": f"{links['html']}.diff",
            "patch_url": f"{links['html']}.patch",
            "issue_url": links["issue"],
            "number": number,
            "state": "open" if pull.state is PullRequestState.OPEN else "closed",
            "locked": False,
            "title": pull.title,
            "user": self.account(author),
            "body": pull.description or None,
            "created_at": since,
            "updated_at": closed_at or since,
            "closed_at": closed_at,
            "merged_at": closed_at if pull.state is PullRequestState.MERGED else None,
            "merge_commit_sha": merge.merge_commit_sha(pull),
            "assignee": None,
            "assignees": [],
            "requested_reviewers": [self.account(login) for login in pull.reviewers],
            "requested_teams": [],
            "labels": [self.label(record, name) for name in pull.labels],
            "milestone": None,
            "draft": pull.draft,
            "commits_url": links["commits"],
            "review_comments_url": links["review_comments"],
            "review_comment_url": links["review_comment"],
            "comments_url": links["comments"],
            "statuses_url": links["statuses"],
            "head": self._side(record, pull.source_branch, pull.head_sha),
            "base": self._side(record, pull.target_branch, pull.base_sha),
            "_links": {name: {"href": link} for name, link in links.items()},
            "author_association": "MEMBER",
            "auto_merge": None,
            "active_lock_reason": None,
        }

    def pull(
        self,
        record: RepoRecord,
        pull: PullRecord,
        author: str,
        merge: Mergeability,
        *,
        commits: int,
        files: Sequence[Change],
    ) -> Body:
        """A pull request."""
        merged = pull.state is PullRequestState.MERGED
        return {
            **self.simple_pull(record, pull, author, merge),
            "merged": merged,
            **merge.body(pull),
            "merged_by": self.account(pull.settings.get("merged_by", author)) if merged else None,
            "comments": 0,
            "review_comments": 0,
            "maintainer_can_modify": False,
            "commits": commits,
            "additions": sum(change.additions for change in files),
            "deletions": sum(change.deletions for change in files),
            "changed_files": len(files),
        }

    def _side(self, record: RepoRecord, branch: str, sha: str) -> Body:
        owner = record.path.split("/", 1)[0]
        return {
            "label": f"{owner}:{branch}",
            "ref": branch,
            "sha": sha,
            "user": self.account(owner),
            "repo": self.inner_repo(record),
        }


def _tree_item(url: str, item: Item) -> Body:
    body: Body = {"path": item.path, "mode": item.mode, "type": item.kind, "sha": item.sha}
    if item.kind == "commit":
        return body
    body["url"] = f"{url}/git/{item.kind}s/{item.sha}"
    return body if item.size is None else {**body, "size": item.size}
