"""Merge commits: what each of the three methods gives the target branch."""

from __future__ import annotations

from datetime import datetime

import pygit2

from gitprovider.errors import NotMergeableError, NotMergeableReason
from gitprovider.local.git import BareRepository, commit_record, signature
from gitprovider.models import Author, MergeMethod


def merged_tree(repository: BareRepository, ours: str, theirs: str) -> str:
    """Write the tree of the three-way merge of two commits.

    Raises:
        NotMergeableError: CONFLICT, also for histories that have nothing in common.
    """
    if repository.merge_base(ours, theirs) is None:
        raise _conflict("the branches have no history in common")
    index = repository.git.merge_commits(pygit2.Oid(hex=ours), pygit2.Oid(hex=theirs))
    return _clean(repository, index)


def merge_commit(
    repository: BareRepository,
    method: MergeMethod,
    *,
    target: str,
    source: str,
    message: str,
    committer: Author,
    at: datetime,
) -> str:
    """Write the result of merging ``source`` into ``target``, and return the commit that the target branch gets.

    MERGE makes a merge commit, even where the target could be fast-forwarded. SQUASH makes one commit, by the author
    of the source's head. REBASE applies the source's commits one by one and keeps their authors. It leaves out merges
    and changes that the target already has. Where the source starts at the target's head, its commits stay as they are.

    Raises:
        NotMergeableError: CONFLICT; METHOD where a rebase would end in another tree than the merge.
    """
    tree = merged_tree(repository, target, source)
    by = signature(committer, at)
    if method is MergeMethod.REBASE:
        return _rebased(repository, target, source, tree, by)
    author, parents = by, [target, source]
    if method is MergeMethod.SQUASH:
        last = commit_record(repository.commit(source))
        author, parents = pygit2.Signature(last.author_name, last.author_email, by.time, 0), [target]
    return repository.write_commit(tree=tree, parents=parents, message=message, author=author, committer=by)


def _rebased(repository: BareRepository, target: str, source: str, merged: str, by: pygit2.Signature) -> str:
    commits = repository.commits_between(target, source)
    linear = [commit for commit in commits if len(commit.parent_ids) < 2]
    if len(linear) == len(commits) and repository.contains(target, source):
        return source
    git, head = repository.git, target
    tree = repository.commit(target).tree_id
    for commit in linear:
        base = repository.own(commit.parent_ids[0]).tree_id if commit.parent_ids else git.TreeBuilder().write()
        picked = pygit2.Oid(hex=_clean(repository, git.merge_trees(base, tree, commit.tree_id)))
        if picked == tree:
            continue
        tree = picked
        encoding = [commit.message_encoding] if commit.message_encoding else []
        oid = git.create_commit(None, commit.author, by, commit.raw_message, tree, [pygit2.Oid(hex=head)], *encoding)
        head = str(oid)
    if str(tree) != merged:
        raise NotMergeableError(
            "a rebase would end in other files than a merge",
            reason=NotMergeableReason.METHOD,
            hint="merge with MERGE or SQUASH, or rebase the branch by hand",
        )
    return head


def _clean(repository: BareRepository, index: pygit2.Index) -> str:
    if index.conflicts is not None:
        paths = sorted({side.path for sides in index.conflicts for side in sides if side is not None})
        raise _conflict(f"both branches changed {', '.join(paths[:5])}{' …' if len(paths) > 5 else ''}")
    return str(index.write_tree(repository.git))


def _conflict(problem: str) -> NotMergeableError:
    return NotMergeableError(
        f"it cannot be merged: {problem}",
        reason=NotMergeableReason.CONFLICT,
        hint="merge the target branch into the source branch and resolve the conflict there",
    )
