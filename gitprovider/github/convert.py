"""Convert GitHub's JSON to values. Docstrings name the objects as in GitHub's schema, such as ``full-repository``."""

from __future__ import annotations

from dataclasses import dataclass

from gitprovider._core.edits import DIRECTORY
from gitprovider._remote.json_reader import JsonReader
from gitprovider._remote.response import BodyError
from gitprovider.contract import TreeEntry
from gitprovider.models import Branch, Commit, MergeResult, PullRequest, PullRequestState, Repo


def repo(fields: JsonReader) -> Repo:
    """Convert a ``full-repository``. Older servers return only ``private`` and no ``visibility``."""
    visibility = fields.str_or_none("visibility") or ("private" if fields.bool("private") else "public")
    return fields.build(
        Repo,
        provider="github",
        path=fields.str("full_name"),
        id=str(fields.int("id")),
        default_branch=fields.str("default_branch"),
        visibility=visibility,
        description=fields.str_or_none("description") or "",
        archived=fields.bool_or_none("archived") or False,
        web_url=fields.str("html_url"),
        clone_url=fields.str("clone_url"),
        ssh_url=fields.str_or_none("ssh_url"),
        created_at=fields.time_or_none("created_at"),
    )


def branch(fields: JsonReader) -> Branch:
    """Convert a ``short-branch`` or a ``branch-with-protection``."""
    return fields.build(
        Branch, name=fields.str("name"), sha=fields.object("commit").str("sha"), protected=fields.bool("protected")
    )


def new_branch(fields: JsonReader) -> Branch:
    """Convert the ``git-ref`` of a new branch. It does not say whether the branch is protected."""
    ref = fields.str("ref")
    if not ref.startswith("refs/heads/"):
        raise BodyError(f"the field ref is {ref!r}; expected a branch", fields.response)
    return fields.build(Branch, name=ref.removeprefix("refs/heads/"), sha=ref_sha(fields))


def ref_sha(fields: JsonReader) -> str:
    """Return the commit's sha that a ``git-ref`` points at."""
    return sha(fields.object("object"))


def sha(fields: JsonReader) -> str:
    """Return the ``sha`` of an object after checking it."""
    return fields.build(Branch, name="any", sha=fields.str("sha")).sha


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A branch's head: the commit and its tree.

    Attributes:
        tree: the sha of the commit's tree.
        classic_rule: whether a classic rule protects the branch, as opposed to rulesets; None if the host does not say.
    """

    branch: Branch
    commit: Commit
    tree: str
    classic_rule: bool | None

    @property
    def sha(self) -> str:
        """The commit's sha."""
        return self.commit.sha

    @property
    def protected(self) -> bool:
        """Whether anything protects the branch."""
        return bool(self.branch.protected)


def head(fields: JsonReader) -> Head:
    """Convert a ``branch-with-protection``, which contains the head commit and its tree."""
    found = branch(fields)
    outer = fields.object("commit")
    inner = outer.object("commit")
    protection = fields.object_or_none("protection")
    return Head(
        branch=found,
        commit=fields.build(
            Commit,
            sha=found.sha,
            parent=_first_parent(outer),
            branch=found.name,
            message=inner.str_or_none("message") or "",
            web_url=outer.str_or_none("html_url"),
        ),
        tree=sha(inner.object("tree")),
        classic_rule=None if protection is None else protection.bool_or_none("enabled"),
    )


def commit(fields: JsonReader, branch: str = "") -> Commit:
    """Convert a ``git-commit``, or the ``commit`` of a ``file-commit``."""
    return fields.build(
        Commit,
        sha=fields.str("sha"),
        parent=_first_parent(fields),
        branch=branch,
        message=fields.str_or_none("message") or "",
        web_url=fields.str_or_none("html_url"),
    )


def _first_parent(fields: JsonReader) -> str | None:
    parents = fields.objects("parents")
    return sha(parents[0]) if parents else None


def is_truncated(fields: JsonReader) -> bool:
    """Report whether GitHub truncated a ``git-tree``, which it does above 100,000 entries or 7 MB."""
    return fields.bool_or_none("truncated") or False


def tree(fields: JsonReader) -> dict[str, TreeEntry]:
    """Return the files of a ``git-tree`` by path. Directories are not included.

    Raises:
        BodyError: GitHub truncated the tree.
    """
    return {path: entry for path, entry in tree_entries(fields).items() if entry.mode != DIRECTORY}


def tree_entries(fields: JsonReader) -> dict[str, TreeEntry]:
    """Return all entries of a ``git-tree`` by path, including directories.

    Raises:
        BodyError: GitHub truncated the tree.
    """
    if is_truncated(fields):
        raise BodyError("the tree is larger than GitHub lists in one response", fields.response)
    return {
        entry.str("path"): TreeEntry(sha(entry), DIRECTORY if entry.str("type") == "tree" else entry.str("mode"))
        for entry in fields.objects("tree")
    }


def pull_request(fields: JsonReader) -> PullRequest:
    """Convert a ``pull-request`` or a ``pull-request-simple``.

    Before the merge, GitHub's ``merge_commit_sha`` is that of a test merge, so it is ignored.
    """
    merged = fields.str_or_none("merged_at") is not None
    state = PullRequestState.MERGED if merged else PullRequestState(_state(fields))
    head = fields.object("head")
    return fields.build(
        PullRequest,
        number=fields.int("number"),
        state=state,
        title=fields.str("title"),
        description=fields.str_or_none("body") or "",
        source_branch=head.str("ref"),
        target_branch=fields.object("base").str("ref"),
        head_sha=head.str("sha"),
        draft=fields.bool_or_none("draft") or False,
        web_url=fields.str("html_url"),
        created_at=fields.time_or_none("created_at"),
        merge_commit_sha=fields.str("merge_commit_sha") if merged else None,
    )


def _state(fields: JsonReader) -> str:
    state = fields.str("state")
    if state not in ("open", "closed"):
        raise BodyError(f"the field state is {state!r}; expected open or closed", fields.response)
    return state


def in_one_repo(fields: JsonReader) -> bool:
    """Report whether a pull request's branches are in the same repository. The ``repo`` of a deleted fork is null."""
    head, base = fields.object("head").object_or_none("repo"), fields.object("base").object("repo")
    return head is not None and head.int("id") == base.int("id")


def merge_result(fields: JsonReader) -> MergeResult:
    """Convert the response to a successful merge."""
    return fields.build(MergeResult, sha=fields.str("sha"))
