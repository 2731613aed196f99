"""Edge-case inputs: names that Git accepts, names that it refuses, and one valid call of each operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gitprovider.contract import GitProviderContract
from gitprovider.models import PutFile
from gitprovider.mutations import (
    CommitFiles,
    CreateBranch,
    CreateRepo,
    MergePullRequest,
    OpenPullRequest,
    ProtectBranch,
)

GOOD_BRANCHES: tuple[str, ...] = (
    "feature/login",
    "a/b/c/d/e",
    "feature#1",
    "#",
    "50%",
    "a%2Fb",
    "a%20b",
    "a+b",
    "a&b=c",
    "it's",
    'quo"te',
    "semi;colon",
    "comma,s",
    "(parens)",
    "{braces}",
    "dollar$",
    "bang!",
    "pipe|",
    "<tag>",
    "a@b",
    "v1.0",
    "123",
    "deadbeef",
    "UPPER",
    "heads/x",
    "grüße",
    "日本語/ブランチ",
    "\U0001f680",
    "e\u0301-decomposed",
    "n" * 200,
)

BAD_BRANCHES: tuple[Any, ...] = (
    "",
    " ",
    "a b",
    "a..b",
    "a~1",
    "a^",
    "a:b",
    "a?b",
    "a*",
    "a[b",
    "a\\b",
    "/a",
    "a/",
    "a//b",
    ".a",
    "a/.b",
    "a.",
    "a.lock",
    "a.lock/b",
    "a@{b",
    "@",
    "-a",
    "HEAD",
    "refs/heads/a",
    "tab\there",
    "line\nbreak",
    "bell\x07",
    "del\x7f",
    "nul\0",
    "\udc80",
    "n" * 300,
    None,
    3,
    b"bytes",
)
SHA_LIKE = "0123456789abcdef0123456789abcdef01234567"

BAD_REPOS: tuple[Any, ...] = (
    "",
    " ",
    "widgets",
    "/acme/widgets",
    "acme/widgets/",
    "acme//widgets",
    "acme/./widgets",
    "acme/../widgets",
    "acme/widgets.git",
    "https://git.example.org/acme/widgets",
    "git@git.example.org:acme/widgets.git",
    "acme/wid gets",
    "acme/wid?gets",
    "acme/wid#gets",
    "acme/wid%2fgets",
    "acme/wid\ngets",
    "acme/wid\0gets",
    "acme/\udc80",
    "acme/" + "n" * 300,
    None,
    7,
    b"acme/widgets",
    ["acme", "widgets"],
)

BAD_SHAS: tuple[Any, ...] = ("", "abc1234", "main", "g" * 40, "a" * 39, "a" * 41, 5, b"a" * 40)


CALLS: Mapping[str, Callable[[GitProviderContract, Any], tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]]]
CALLS = {
    "get_repo": lambda p, repo: (p.get_repo, (repo,), {}),
    "list_branches": lambda p, repo: (p.list_branches, (repo,), {}),
    "create_repo": lambda p, repo: (p.create_repo, (repo,), {}),
    "create_branch": lambda p, repo: (p.create_branch, (repo, "topic"), {"source": "main"}),
    "protect_branch": lambda p, repo: (p.protect_branch, (repo, "feature"), {}),
    "commit_files": lambda p, repo: (
        p.commit_files,
        (repo, "main", [PutFile(path="new.txt", content="new\n")]),
        {"message": "Add new.txt"},
    ),
    "open_pull_request": lambda p, repo: (
        p.open_pull_request,
        (repo,),
        {"source_branch": "feature", "target_branch": "main", "title": "A change"},
    ),
    "merge_pull_request": lambda p, repo: (p.merge_pull_request, (repo, 1), {}),
}
"""For each operation, the method and arguments that are valid in a repository with a branch ``feature``."""

BRANCH_CALLS: Mapping[
    str, Callable[[GitProviderContract, str, str], tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]]
]
BRANCH_CALLS = {
    "create_branch": lambda p, repo, name: (p.create_branch, (repo, "topic"), {"source": name}),
    "protect_branch": lambda p, repo, name: (p.protect_branch, (repo, name), {}),
    "commit_files": lambda p, repo, name: (
        p.commit_files,
        (repo, name, [PutFile(path="new.txt", content="new\n")]),
        {"message": "Add new.txt"},
    ),
    "open_pull_request from": lambda p, repo, name: (
        p.open_pull_request,
        (repo,),
        {"source_branch": name, "target_branch": "other", "title": "A change"},
    ),
    "open_pull_request into": lambda p, repo, name: (
        p.open_pull_request,
        (repo,),
        {"source_branch": "other", "target_branch": name, "title": "A change"},
    ),
}
"""For each argument that names an existing branch, a call with that branch in a repository with a branch ``other``."""

READS = ("get_repo", "list_branches")
EFFECTS: Mapping[str, str] = {
    kind.operation: kind.effect
    for kind in (CreateRepo, CreateBranch, ProtectBranch, CommitFiles, OpenPullRequest, MergePullRequest)
}
"""For each mutation the name of its effect step."""
