"""GitHub's JSON as values. Shapes are named as in GitHub's published schema, such as ``full-repository``."""

from __future__ import annotations

from dataclasses import dataclass

from gitprovider._remote.operation import Answer, BodyError
from gitprovider._remote.reader import Fields
from gitprovider.contract import TreeEntry
from gitprovider.models import Branch, Commit, MergeResult, PullRequest, PullRequestState, Repo


def repo(answer: Answer) -> Repo:
    """``full-repository``. Servers from before `visibility` say `private` alone."""
    fields = Fields(answer)
    visibility = fields.maybe_text("visibility") or ("private" if fields.flag("private") else "public")
    return fields.build(
        Repo,
        provider="github",
        path=fields.text("full_name"),
        id=str(fields.number("id")),
        default_branch=fields.text("default_branch"),
        visibility=visibility,
        description=fields.maybe_text("description") or "",
        archived=fields.maybe_flag("archived") or False,
        web_url=fields.text("html_url"),
        clone_url=fields.text("clone_url"),
        ssh_url=fields.maybe_text("ssh_url"),
        created_at=fields.maybe_time("created_at"),
    )


def branches(answer: Answer) -> list[Branch]:
    """A page of ``short-branch``."""
    return [branch(fields) for fields in Fields.each(answer)]


def branch(fields: Fields) -> Branch:
    """``short-branch`` or ``branch-with-protection``."""
    return fields.build(
        Branch, name=fields.text("name"), sha=fields.sub("commit").text("sha"), protected=fields.flag("protected")
    )


def new_branch(answer: Answer) -> Branch:
    """The ``git-ref`` of a new branch, which does not say whether a rule covers the name."""
    fields = Fields(answer)
    ref = fields.text("ref")
    if not ref.startswith("refs/heads/"):
        raise BodyError(f"the field ref is {ref!r}; expected a branch's", answer)
    return fields.build(Branch, name=ref.removeprefix("refs/heads/"), sha=ref_sha(answer))


def ref_sha(answer: Answer) -> str:
    """The commit that a ``git-ref`` points at."""
    return sha(Fields(answer).sub("object"))


def sha(fields: Fields) -> str:
    """The `sha` of an object, checked."""
    return fields.build(Branch, name="any", sha=fields.text("sha")).sha


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A branch's head: the commit, and its tree.

    Attributes:
        classic_rule: whether a classic rule protects it, as opposed to rulesets; None where the host does not say.
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


def head(answer: Answer) -> Head:
    """``branch-with-protection``: besides the head's sha it holds the commit whole, with its tree."""
    fields = Fields(answer)
    found = branch(fields)
    outer = fields.sub("commit")
    inner = outer.sub("commit")
    protection = fields.maybe_sub("protection")
    return Head(
        branch=found,
        commit=fields.build(
            Commit,
            sha=found.sha,
            parent=_first_parent(outer),
            branch=found.name,
            message=inner.maybe_text("message") or "",
            web_url=outer.maybe_text("html_url"),
        ),
        tree=sha(inner.sub("tree")),
        classic_rule=None if protection is None else protection.maybe_flag("enabled"),
    )


def commit(fields: Fields, branch: str) -> Commit:
    """``git-commit``, or the `commit` of a ``file-commit``."""
    return fields.build(
        Commit,
        sha=fields.text("sha"),
        parent=_first_parent(fields),
        branch=branch,
        message=fields.maybe_text("message") or "",
        web_url=fields.maybe_text("html_url"),
    )


def _first_parent(fields: Fields) -> str | None:
    parents = fields.items("parents")
    return sha(parents[0]) if parents else None


def check_whole(answer: Answer) -> None:
    """Check that a ``git-tree`` is all there.

    Raises:
        BodyError: it is not.
    """
    if Fields(answer).maybe_flag("truncated"):
        raise BodyError("the tree is larger than GitHub lists in one answer", answer)


def tree(answer: Answer) -> dict[str, TreeEntry]:
    """The files of a ``git-tree`` that was read recursively.

    Raises:
        BodyError: the host left some out: more than 100,000 entries or 7 MB.
    """
    check_whole(answer)
    return {
        entry.text("path"): TreeEntry(sha(entry), entry.text("mode"))
        for entry in Fields(answer).items("tree")
        if entry.text("type") != "tree"
    }


def pull_request(fields: Fields) -> PullRequest:
    """``pull-request`` or ``pull-request-simple``. Until it is merged, `merge_commit_sha` is a test merge's."""
    merged = fields.maybe_text("merged_at") is not None
    state = PullRequestState.MERGED if merged else PullRequestState(_state(fields))
    head = fields.sub("head")
    return fields.build(
        PullRequest,
        number=fields.number("number"),
        state=state,
        title=fields.text("title"),
        description=fields.maybe_text("body") or "",
        source_branch=head.text("ref"),
        target_branch=fields.sub("base").text("ref"),
        head_sha=head.text("sha"),
        draft=fields.maybe_flag("draft") or False,
        web_url=fields.text("html_url"),
        created_at=fields.maybe_time("created_at"),
        merge_commit_sha=fields.text("merge_commit_sha") if merged else None,
    )


def _state(fields: Fields) -> str:
    state = fields.text("state")
    if state not in ("open", "closed"):
        raise BodyError(f"the field state is {state!r}; expected open or closed", fields.answer)
    return state


def in_one_repo(fields: Fields) -> bool:
    """Whether a pull request's branches are in the same repository; a deleted fork's `repo` is null."""
    head, base = fields.sub("head").maybe_sub("repo"), fields.sub("base").sub("repo")
    return head is not None and head.number("id") == base.number("id")


def merge_result(fields: Fields) -> MergeResult:
    """The 200 of a merge."""
    return fields.build(MergeResult, sha=fields.text("sha"))
