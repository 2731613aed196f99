"""GitHub's GraphQL for the two documents of a commit, in front of the fake: the published types, cut to what they use.

Field names and types are those of https://docs.github.com/graphql/reference. Responses have the recorded shapes.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from types import SimpleNamespace
from typing import Any

from graphql import GraphQLError, build_schema, graphql_sync

from gitprovider.errors import GitProviderError, HeadMovedError, NotFoundError, PermissionDeniedError
from gitprovider.fakes.github.server import FakeGitHub
from gitprovider.fakes.http import Request, Response, json_response
from gitprovider.models import DeleteFile, FileChange, PutFile

READ = """
scalar Base64String
scalar GitObjectID
scalar URI
type Query { repository(owner: String!, name: String!, followRenames: Boolean = true): Repository }
type Repository {
  nameWithOwner: String!
  ref(qualifiedName: String!): Ref
  object(oid: GitObjectID, expression: String): GitObject
}
type Ref { id: ID! name: String! prefix: String! target: GitObject }
interface GitObject { oid: GitObjectID! }
type Commit implements GitObject {
  oid: GitObjectID!
  message: String!
  url: URI!
  tree: Tree!
  parents(first: Int): CommitConnection!
  file(path: String!): TreeEntry
}
type Tree implements GitObject { oid: GitObjectID! }
type CommitConnection { nodes: [Commit] }
type TreeEntry { oid: GitObjectID! mode: Int! type: String! }
"""
WRITE = """
type Mutation { createCommitOnBranch(input: CreateCommitOnBranchInput!): CreateCommitOnBranchPayload }
type CreateCommitOnBranchPayload { commit: Commit ref: Ref }
input CreateCommitOnBranchInput {
  branch: CommittableBranch!
  fileChanges: FileChanges
  message: CommitMessage!
  expectedHeadOid: GitObjectID!
}
input CommittableBranch { id: ID repositoryNameWithOwner: String branchName: String }
input CommitMessage { headline: String! body: String }
input FileChanges { deletions: [FileDeletion!] = [] additions: [FileAddition!] = [] }
input FileDeletion { path: String! }
input FileAddition { path: String! contents: Base64String! }
"""


def _error(kind: str, message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"type": kind})


class GraphQLHost:
    """The fake with ``POST /graphql``. ``mutation=False`` is a server from before the mutation."""

    def __init__(self, fake: FakeGitHub, *, mutation: bool = True) -> None:
        self.fake = fake
        self._schema = build_schema(READ + (WRITE if mutation else "type Mutation { addStar: Boolean }"))

    def endpoint(self, request: Request) -> str:
        """The fake's, or ``/graphql``, which a mutation follows by its kind: users of the host see its effect."""
        if request.path != "/graphql":
            return self.fake.endpoint(request)
        return "/graphql mutation" if request.json()["query"].lstrip().startswith("mutation") else "/graphql"

    def handle(self, request: Request) -> Response:
        if request.path != "/graphql":
            return self.fake.handle(request)
        if request.headers.get("authorization") != f"token {self.fake.token}":
            return self.fake.handle(dataclasses.replace(request, method="GET", path="/user"))
        asked = request.json()
        root = _Root(self.fake.forge)
        result = graphql_sync(self._schema, asked["query"], root, variable_values=asked["variables"])
        body: dict[str, Any] = {"data": result.data}
        for error in result.errors or []:
            shown: dict[str, Any] = dict(error.formatted)
            body.setdefault("errors", []).append(shown.pop("extensions", {}) | shown)
        return json_response(body, "", effect=root.changed)


class _Root:
    def __init__(self, forge: Any) -> None:
        self._forge = forge
        self.changed = False

    def repository(self, info: Any, owner: str, name: str, **given: Any) -> Any:
        path = f"{owner}/{name}"
        try:
            self._forge.repo(path)
        except GitProviderError:
            raise _error("NOT_FOUND", f"Could not resolve to a Repository with the name '{path}'.") from None
        return SimpleNamespace(
            nameWithOwner=path,
            ref=lambda info, qualifiedName: self._ref(path, qualifiedName.removeprefix("refs/heads/")),  # noqa: N803 - GitHub's name
            object=lambda info, oid: self._commit(path, oid),
        )

    def _ref(self, repo: str, branch: str) -> Any:
        try:
            head = self._forge.head(repo, branch)
        except NotFoundError:
            return None
        return SimpleNamespace(
            id=f"{repo}:{branch}", name=branch, prefix="refs/heads/", target=self._commit(repo, head)
        )

    def _commit(self, repo: str, sha: str) -> dict[str, Any]:
        record = self._forge.read_commit(repo, sha)

        def file(info: Any, path: str) -> Any:
            entry = self._forge.read_entries(repo, sha, [path])[path]
            if entry is None:
                raise _error("NOT_FOUND", f"Could not resolve file for path '{path}'.")
            kind = {"040000": "tree", "160000": "commit"}.get(entry.mode, "blob")
            return {"oid": entry.sha, "mode": int(entry.mode, 8), "type": kind}

        return {
            "__typename": "Commit",
            "oid": sha,
            "message": record.message,
            "url": f"https://github.com/{repo}/commit/{sha}",
            "tree": {"oid": record.tree},
            "parents": lambda info, **page: {"nodes": [{"oid": parent} for parent in record.parents]},
            "file": file,
        }

    def createCommitOnBranch(self, info: Any, input: dict[str, Any]) -> Any:  # noqa: A002, N802 - GitHub's names
        repo, _, branch = input["branch"]["id"].partition(":")
        files = input["fileChanges"]
        changes: list[FileChange] = [DeleteFile(path=file["path"]) for file in files["deletions"]]
        changes += [
            PutFile(path=file["path"], content=base64.b64decode(file["contents"], validate=True))
            for file in files["additions"]
        ]
        message = "\n\n".join(filter(None, (input["message"]["headline"], input["message"].get("body"))))
        expected = input["expectedHeadOid"]
        try:
            made = self._forge.commit_changes(repo, branch, changes, message=message, expected_head=expected)
        except HeadMovedError:
            raise _error(
                "STALE_DATA", f'Expected branch to point to "{expected}" but it did not.  Pull and try again.'
            ) from None
        except PermissionDeniedError as error:
            raise _error("FORBIDDEN", f"Repository rule violations found\n\n{error.message}") from None
        self.changed = True
        return {"commit": self._commit(repo, made.sha), "ref": self._ref(repo, branch)}


def with_graphql(hub: Any, *, mutation: bool = True) -> Any:
    """The provider of a hub that has GraphQL from now on, with ``commit_api="auto"``."""
    hub.host.fake = GraphQLHost(hub.fake, mutation=mutation)
    return hub.connect(commit_api="auto")


def refused(kind: str, message: str) -> bytes:
    """The body of a refused mutation, as GitHub sends it."""
    error = {"type": kind, "path": ["createCommitOnBranch"], "message": message}
    return json.dumps({"data": {"createCommitOnBranch": None}, "errors": [error]}).encode()
