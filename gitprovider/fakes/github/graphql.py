"""GitHub's GraphQL, as far as a commit uses it: what is at paths of a branch, and ``createCommitOnBranch``.

The documents are validated against GitHub's own schema, reduced to these fields (``schema.graphql``).

https://docs.github.com/graphql/reference
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import cache
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

from graphql import GraphQLError, GraphQLSchema, build_schema, graphql_sync, parse
from graphql.language import FieldNode, OperationDefinitionNode, OperationType

from gitprovider.errors import (
    GitProviderError,
    HeadMovedError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
)
from gitprovider.fakes.github.call import Call
from gitprovider.fakes.github.responses import Refusal, reply
from gitprovider.fakes.http import Request, Response
from gitprovider.models import DeleteFile, FileChange, PutFile

_MUTATION = "createCommitOnBranch"
# Why each error is as it is (facts.jsonl), by its type.
_FACTS = {
    "NOT_FOUND": "gh-graphql-not-found",
    "STALE_DATA": "gh-graphql-stale",
    "FORBIDDEN": "gh-graphql-rule-violation",
}
_UNKNOWN_FIELD = re.compile(r"Cannot query field '(\w{1,99})' on type '(\w{1,99})'")


@cache
def schema(commits: bool) -> GraphQLSchema:
    """The schema of a server, with or without the mutation."""
    text = files(__package__).joinpath("schema.graphql").read_text("utf-8")
    if not commits:
        text = text.replace(f"  {_MUTATION}(input: CreateCommitOnBranchInput!)", "  addStar(input: String)")
        text = text.replace("CreateCommitOnBranchInput", "AddStarInput")
    return build_schema(text)


def mutation_of(request: Request) -> str:
    """The name of the mutation that a body asks for, or ``""`` if it asks for none or is no GraphQL."""
    try:
        document = parse(request.json()["query"])
    except (ValueError, TypeError, KeyError, GraphQLError):
        return ""
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode) and node.operation is OperationType.MUTATION:
            fields = [field.name.value for field in node.selection_set.selections if isinstance(field, FieldNode)]
            return fields[0]
    return ""


def run(call: Call) -> Response:
    """Run a document. Whatever is wrong in it, the status is 200, and ``errors`` says so."""
    if call.caller.kind == "anonymous":
        raise Refusal("gh-requires-authentication")
    asked = call.json()
    document = asked.get("query") if isinstance(asked, dict) else None
    if not isinstance(document, str):
        return _answer(call, None, [{"message": "A query attribute must be specified and must be a string."}])
    root = _Root(call)
    result = graphql_sync(
        schema(call.state.graphql != "no-commits"), document, root, variable_values=asked.get("variables")
    )
    return _answer(call, result.data, [_shown(error) for error in result.errors or []], effect=root.changed)


def _answer(call: Call, data: Any, errors: list[dict[str, Any]], *, effect: bool = False) -> Response:
    fact = _FACTS.get(errors[0].get("type", ""), "gh-graphql-schema") if errors else "gh-graphql"
    return reply({"data": data} | ({"errors": errors} if errors else {}), fact, effect=effect)


def _shown(error: GraphQLError) -> dict[str, Any]:
    """An error as GitHub writes it. What graphql-core calls a field that it cannot query has other words there."""
    shown: dict[str, Any] = dict(error.formatted)
    if unknown := _UNKNOWN_FIELD.match(error.message):
        shown["message"] = f"Field '{unknown[1]}' doesn't exist on type '{unknown[2]}'"
        shown["extensions"] = {"code": "undefinedField", "typeName": unknown[2], "fieldName": unknown[1]}
        return shown
    raised: dict[str, Any] = shown.pop("extensions", {})
    return raised | shown


def _error(kind: str, message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"type": kind})


class _Root:
    """The resolvers of the fields of Query and Mutation. graphql-core calls them by the names of the fields.

    Attributes:
        changed: whether a user of the host can see that something changed.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._forge = call.forge
        self.changed = False

    def repository(self, info: Any, owner: str, name: str, **given: Any) -> Any:
        path = f"{owner}/{name}"
        try:
            record = self._forge.repo(path)
        except GitProviderError:  # with followRenames: false a moved repository is missing, too
            record = None
        if record is None or self._call.state.stale_reads.count(("repo", record.id)):
            raise _error("NOT_FOUND", f"Could not resolve to a Repository with the name '{path}'.") from None
        return SimpleNamespace(
            nameWithOwner=record.path,
            ref=lambda info, qualifiedName: self._ref(record.path, qualifiedName.removeprefix("refs/heads/")),  # noqa: N803 - GitHub's name
            object=lambda info, oid=None, **given: self._commit(record.path, oid),
        )

    def _ref(self, repo: str, branch: str) -> Any:
        if self._call.state.stale_reads.count(("ref", self._forge.repo(repo).id, branch)):
            return None
        try:
            head = self._forge.head(repo, branch)
        except NotFoundError:
            return None
        identity = base64.b64encode(f"{repo}:{branch}".encode()).decode()
        return SimpleNamespace(id=identity, name=branch, prefix="refs/heads/", target=self._commit(repo, head))

    def _commit(self, repo: str, sha: str) -> dict[str, Any] | None:
        try:
            record = self._forge.read_commit(repo, sha)
        except GitProviderError:
            return None

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
            "url": f"{self._call.bodies.web}/{repo}/commit/{sha}",
            "tree": {"oid": record.tree},
            "parents": lambda info, first=100, **given: {"nodes": [{"oid": one} for one in record.parents[:first]]},
            "file": file,
        }

    def createCommitOnBranch(self, info: Any, input: dict[str, Any]) -> Any:  # noqa: A002, N802 - GitHub's names
        repo, branch = self._target(input["branch"])
        record = self._forge.repo(repo)
        if record.archived:
            raise _error("FORBIDDEN", "Repository was archived so is read-only.")
        given = input.get("fileChanges") or {}
        expected = input["expectedHeadOid"]
        message = "\n\n".join(filter(None, (input["message"]["headline"], input["message"].get("body"))))
        try:
            changes: list[FileChange] = [DeleteFile(path=file["path"]) for file in given.get("deletions", ())]
            changes += [
                PutFile(path=file["path"], content=base64.b64decode(file["contents"], validate=True))
                for file in given.get("additions", ())
            ]
            made = self._forge.commit_changes(
                repo,
                branch,
                changes,
                message=message,
                expected_head=expected,
                bypass=self._call.bypasses(self._forge.protection(repo, branch)),
            )
        except HeadMovedError:
            text = f'Expected branch to point to "{expected}" but it did not.  Pull and try again.'
            raise _error("STALE_DATA", text) from None
        except NotFoundError:
            raise _error("NOT_FOUND", "Branch not found") from None
        except PermissionDeniedError as error:
            text = f"Repository rule violations found\n\n{error.message}"
            raise _error("FORBIDDEN", text) from None
        except (InvalidRequestError, binascii.Error):
            text = f"A path was requested for deletion which does not exist as of commit oid `{expected}`"
            raise _error("UNPROCESSABLE", text) from None
        self.changed = made.sha != expected
        return {"commit": self._commit(repo, made.sha), "ref": self._ref(repo, branch)}

    def _target(self, branch: dict[str, Any]) -> tuple[str, str]:
        """The repository and the name of the branch, which is given by its node id or by its name."""
        try:
            if branch.get("id"):
                repo, _, name = base64.b64decode(branch["id"]).decode().partition(":")
            else:
                repo, name = branch["repositoryNameWithOwner"], branch["branchName"]
            return self._forge.repo(repo).path, name.removeprefix("refs/heads/")
        except (GitProviderError, ValueError, KeyError):
            raise _error("NOT_FOUND", "Branch not found") from None
