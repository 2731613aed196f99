"""Merge commits: what each of the three methods gives the target branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pygit2
from pygit2.enums import FileMode

from gitprovider.errors import NotMergeableError, NotMergeableReason
from gitprovider.local.git import BareRepository, signature
from gitprovider.models import Author, MergeMethod

_Entry = tuple[pygit2.Oid, FileMode]


def merged_tree(repository: BareRepository, ours: str, theirs: str) -> str:
    """Write the tree of the three-way merge of two commits.

    Raises:
        NotMergeableError: CONFLICT, also for histories that have nothing in common.
    """
    base = repository.merge_base(ours, theirs)
    if base is None:
        raise _conflict("the branches have no history in common")
    sides = [{commit.id for commit in repository.commits_between(base, side)} for side in (ours, theirs)]
    if sides[0] & sides[1]:  # several best common ancestors, which libgit2 merges first
        index = repository.git.merge_commits(pygit2.Oid(hex=ours), pygit2.Oid(hex=theirs))
        return str(_clean(repository, index))
    return str(merge_trees(repository, *(repository.commit(sha).tree_id for sha in (base, ours, theirs))))


@dataclass(slots=True)
class _Unchanged:
    """What a directory has that is the same in all three trees of a merge, and the directories that differ."""

    entries: dict[str, _Entry] = field(default_factory=dict)
    below: dict[str, _Unchanged] = field(default_factory=dict)


def merge_trees(repository: BareRepository, base: pygit2.Oid, ours: pygit2.Oid, theirs: pygit2.Oid) -> pygit2.Oid:
    """Write the three-way merge of trees. What is the same in all three is set aside: libgit2 would look at every file.

    Raises:
        NotMergeableError: CONFLICT.
    """
    unchanged = _Unchanged()
    try:
        changed = [builder.write() for builder in _set_aside(repository, [base, ours, theirs], unchanged)]
        merged = _clean(repository, repository.git.merge_trees(*changed))
        made: pygit2.Oid = _put_back(repository, merged, unchanged).write()
        return made
    except UnicodeEncodeError:  # a name that is not UTF-8, which pygit2's builder does not take
        return _clean(repository, repository.git.merge_trees(base, ours, theirs))


def _set_aside(repository: BareRepository, trees: Sequence[pygit2.Oid], unchanged: _Unchanged) -> list[Any]:
    """The trees without what they have in common, as builders."""
    builders = [repository.git.TreeBuilder() for _ in trees]
    listed = [{entry.name: (entry.id, entry.filemode) for entry in repository.own(tree)} for tree in trees]
    for name in {name: None for names in listed for name in names}:
        held = [names.get(name) for names in listed]
        if held[0] is not None and held[0] == held[1] == held[2]:
            unchanged.entries[name] = held[0]
            continue
        if all(entry is not None and entry[1] == FileMode.TREE for entry in held):
            below = unchanged.below[name] = _Unchanged()
            parts = _set_aside(repository, [entry[0] for entry in held if entry is not None], below)
            held = [(part.write(), FileMode.TREE) if len(part) else None for part in parts]
        for builder, entry in zip(builders, held, strict=True):
            if entry is not None:
                builder.insert(name, *entry)
    return builders


def _put_back(repository: BareRepository, merged: pygit2.Oid | None, unchanged: _Unchanged) -> Any:
    tree = None if merged is None else repository.own(merged)
    builder = repository.git.TreeBuilder() if tree is None else repository.git.TreeBuilder(tree)
    for name, entry in unchanged.entries.items():
        builder.insert(name, *entry)
    for name, below in unchanged.below.items():
        part = _put_back(repository, tree[name].id if tree is not None and name in tree else None, below)
        if len(part):
            builder.insert(name, part.write(), FileMode.TREE)
    return builder


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
        person = repository.commit(source).author
        author, parents = pygit2.Signature(person.name, person.email, by.time, 0), [target]
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
        picked = merge_trees(repository, base, tree, commit.tree_id)
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


def _clean(repository: BareRepository, index: pygit2.Index) -> pygit2.Oid:
    if index.conflicts is not None:
        paths = sorted({side.path for sides in index.conflicts for side in sides if side is not None})
        raise _conflict(f"both branches changed {', '.join(paths[:5])}{' …' if len(paths) > 5 else ''}")
    return index.write_tree(repository.git)


def _conflict(problem: str) -> NotMergeableError:
    return NotMergeableError(
        f"it cannot be merged: {problem}",
        reason=NotMergeableReason.CONFLICT,
        hint="merge the target branch into the source branch and resolve the conflict there",
    )
