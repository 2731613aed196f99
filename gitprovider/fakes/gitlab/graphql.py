"""GitLab's GraphQL endpoint: the part of the schema for a repository's head and blobs.

https://docs.gitlab.com/api/graphql/reference/ . Queries are parsed and resolved field by field. Unknown fields and
missing arguments are refused as on GitLab.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pygit2

from gitprovider.contract import TreeEntry
from gitprovider.errors import NotFoundError, RepoMovedError
from gitprovider.fakes.gitlab.call import Call
from gitprovider.fakes.gitlab.responses import Refusal, reply
from gitprovider.fakes.http import Response
from gitprovider.local.database import RepoRecord
from gitprovider.local.git import BareRepository, decoded, opened

PAGE = 100
MAX_COMPLEXITY = 250

_TOKEN = re.compile(
    r"""(?P<skip>[\s,]+|\#[^\n]*)|(?P<word>[A-Za-z_]\w*)|(?P<number>-?\d+)|(?P<text>"(?:\\.|[^"\\])*")|(?P<mark>[{}()\[\]:$!=])"""
)


class QueryError(Exception):
    """A query that GitLab refuses with ``errors``."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code

    def shown(self) -> dict[str, Any]:
        """The entry of ``errors`` in the response."""
        error: dict[str, Any] = {"message": self.message, "locations": [{"line": 1, "column": 1}]}
        return {**error, "extensions": {"code": self.code}} if self.code else error


@dataclass(slots=True)
class Field:
    """One selected field."""

    name: str
    alias: str
    arguments: dict[str, Any]
    fields: list[Field] = field(default_factory=list)


class _Variable(str):
    """The name of a variable in place of a value."""


class _Parser:
    """Parses a query document of one operation, without fragments and directives."""

    def __init__(self, document: str) -> None:
        self._tokens = list(_tokens(document))
        self._at = 0

    def operation(self) -> list[Field]:
        """The top-level selections."""
        if self._peek() == "mutation":
            raise QueryError("Schema is not configured for mutations")
        if self._peek() == "query":
            self._next()
            if self._peek() not in ("{", "("):
                self._next()
            if self._peek() == "(":
                while self._next() != ")":
                    pass
        fields = self._selections()
        if self._peek() is not None:
            raise QueryError(f"Expected one operation, actual: {self._peek()}")
        return fields

    def _peek(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self) -> str:
        token = self._peek()
        if token is None:
            raise QueryError("Unexpected end of document")
        self._at += 1
        return token

    def _expect(self, mark: str) -> None:
        if (token := self._next()) != mark:
            raise QueryError(f'Expected "{mark}", actual: {token}')

    def _selections(self) -> list[Field]:
        self._expect("{")
        fields = []
        while self._peek() != "}":
            fields.append(self._field())
        self._next()
        return fields

    def _field(self) -> Field:
        name = alias = self._next()
        if self._peek() == ":":
            self._next()
            name = self._next()
        arguments = {}
        if self._peek() == "(":
            self._next()
            while self._peek() != ")":
                key = self._next()
                self._expect(":")
                arguments[key] = self._value()
            self._next()
        return Field(name, alias, arguments, self._selections() if self._peek() == "{" else [])

    def _value(self) -> Any:
        first = self._next()
        if first == "$":
            return _Variable(self._next())
        if first == "[":
            items = []
            while self._peek() != "]":
                items.append(self._value())
            self._next()
            return items
        if first.startswith('"'):
            return json.loads(first)
        if first.lstrip("-").isdigit():
            return int(first)
        return {"true": True, "false": False, "null": None}.get(first, first)


def _tokens(document: str) -> Iterator[str]:
    at = 0
    while at < len(document):
        match = _TOKEN.match(document, at)
        if match is None:
            raise QueryError(f"Parse error on {document[at]!r}")
        at = match.end()
        if match.lastgroup != "skip":
            yield match.group()


@dataclass(frozen=True, slots=True)
class _Type:
    """An object of the schema: the name of its type, and a reader for each field."""

    name: str
    fields: Mapping[str, Callable[[Mapping[str, Any]], Any]]


def _resolve(kind: _Type, fields: list[Field], variables: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for asked in fields:
        if asked.name == "__typename":
            result[asked.alias] = kind.name
            continue
        read = kind.fields.get(asked.name)
        if read is None:
            raise QueryError(f"Field '{asked.name}' doesn't exist on type '{kind.name}'", "undefinedField")
        value = read({name: _bound(value, variables) for name, value in asked.arguments.items()})
        result[asked.alias] = _completed(value, asked, variables)
    return result


def _completed(value: Any, asked: Field, variables: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_completed(item, asked, variables) for item in value]
    if isinstance(value, _Type):
        if not asked.fields:
            text = f"Field must have selections (field '{asked.name}' returns {value.name} but has no selections.)"
            raise QueryError(text, "selectionMismatch")
        return _resolve(value, asked.fields, variables)
    return value


def _bound(value: Any, variables: Mapping[str, Any]) -> Any:
    if isinstance(value, _Variable):
        return variables.get(value)
    return [_bound(item, variables) for item in value] if isinstance(value, list) else value


def _needed(arguments: Mapping[str, Any], name: str, of: str) -> Any:
    if arguments.get(name) is None:
        raise QueryError(f"Field '{of}' is missing required arguments: {name}", "missingRequiredArguments")
    return arguments[name]


def _paths(arguments: Mapping[str, Any]) -> list[str]:
    paths = _needed(arguments, "paths", "blobs")
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise QueryError("Argument 'paths' on Field 'blobs' has an invalid value. Expected type '[String!]!'.")
    return paths


def _size(arguments: Mapping[str, Any]) -> int:
    first = arguments.get("first")
    if first is not None and not isinstance(first, int):
        raise QueryError("Argument 'first' on Field 'blobs' has an invalid value. Expected type 'Int'.")
    return PAGE if first is None else min(first, PAGE)


# The complexity of a query as GitLab counts it (app/graphql/types/base_field.rb): a connection costs by the size of its
# page and the number of requested paths.


def _complexity(fields: list[Field], variables: Mapping[str, Any]) -> float:
    total = 0.0
    for asked in fields:
        below = _complexity(asked.fields, variables)
        if asked.name == "blobs":
            arguments = {name: _bound(value, variables) for name, value in asked.arguments.items()}
            below = (len(_paths(arguments)) + below + 1) * (1 + _size(arguments) / 100)
        total += 1 + below
    return total


# The schema


def _query(call: Call) -> _Type:
    def project(arguments: Mapping[str, Any]) -> _Type | None:
        try:
            record = call.forge.repo(str(_needed(arguments, "fullPath", "project")))
        except (NotFoundError, RepoMovedError):
            return None
        return None if record.path in call.state.hidden else _project(record)

    def current_user(arguments: Mapping[str, Any]) -> _Type:
        return _Type("CurrentUser", {"username": lambda _: call.state.acting})

    return _Type("Query", {"project": project, "currentUser": current_user})


def _project(record: RepoRecord) -> _Type:
    return _Type(
        "Project",
        {
            "id": lambda _: f"gid://gitlab/Project/{record.id}",
            "fullPath": lambda _: record.path,
            "archived": lambda _: record.archived,
            "repository": lambda _: _repository(record),
        },
    )


def _repository(record: RepoRecord) -> _Type:
    def empty(arguments: Mapping[str, Any]) -> bool:
        with opened(record.git_dir, record.path) as git:
            return not git.has_branches()

    def tree(arguments: Mapping[str, Any]) -> _Type:
        with opened(record.git_dir, record.path) as git:
            commit = _commit(git, record, arguments)
            last = None if commit is None else _Type("Commit", _commit_fields(commit))
        return _Type("Tree", {"lastCommit": lambda _: last})

    def blobs(arguments: Mapping[str, Any]) -> _Type:
        paths = _paths(arguments)
        with opened(record.git_dir, record.path) as git:
            commit = _commit(git, record, arguments)
            found = [] if commit is None else list(_blobs(git, commit, paths))
        return _page(found, arguments)

    return _Type(
        "Repository",
        {
            "empty": empty,
            "exists": lambda _: True,
            "rootRef": lambda _: record.default_branch,
            "tree": tree,
            "blobs": blobs,
        },
    )


def _commit(git: BareRepository, record: RepoRecord, arguments: Mapping[str, Any]) -> pygit2.Commit | None:
    ref = str(arguments.get("ref") or record.default_branch)
    kind = arguments.get("refType")
    if kind not in (None, "HEADS", "TAGS"):
        raise QueryError(
            f"Argument 'refType' has an invalid value ({kind}). Expected type 'RefType'.", "argumentLiterals"
        )
    head = None if kind == "TAGS" else git.head(ref)
    if head is None and kind is None and re.fullmatch(r"[0-9a-f]{40}", ref):
        found = git.find(ref)
        return found if isinstance(found, pygit2.Commit) else None
    return None if head is None else git.commit(head)


def _commit_fields(commit: pygit2.Commit) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
    return {"sha": _constant(str(commit.id)), "message": _constant(decoded(commit.raw_message, commit))}


def _blobs(git: BareRepository, commit: pygit2.Commit, paths: list[str]) -> Iterator[_Type]:
    for path in dict.fromkeys(paths):
        entry = git.entry(commit.tree, path)
        if entry is not None and entry.mode in ("100644", "100755", "120000"):
            yield _blob(path, entry)


def _blob(path: str, entry: TreeEntry) -> _Type:
    fields = {"path": path, "name": path.rpartition("/")[2], "oid": entry.sha, "mode": entry.mode}
    return _Type("RepositoryBlob", {name: _constant(value) for name, value in fields.items()})


def _constant(value: Any) -> Callable[[Mapping[str, Any]], Any]:
    return lambda arguments: value


def _page(nodes: list[_Type], arguments: Mapping[str, Any]) -> _Type:
    size = _size(arguments)
    more = len(nodes) > size
    info = _Type("PageInfo", {"hasNextPage": lambda _: more, "endCursor": lambda _: str(size) if more else None})
    return _Type("RepositoryBlobConnection", {"nodes": lambda _: nodes[:size], "pageInfo": lambda _: info})


def _unknown_when_old(document: str) -> list[QueryError]:
    """The errors of a server that has neither the type nor the argument."""
    found = []
    if re.search(r":\s*RefType\b", document):
        found.append(QueryError("RefType isn't a defined input type (on $type)", "variableRequiresValidType"))
    found += [
        QueryError(f"Field '{name}' doesn't accept argument 'refType'", "argumentNotAccepted")
        for name, arguments in re.findall(r"\b(\w{1,99})\(([^()]*)\)", document)
        if "refType:" in arguments
    ]
    return found


def execute(call: Call) -> Response:
    """``POST /api/graphql``. Errors in a query have status 200."""
    document, variables = call.params.get("query"), call.params.get("variables") or {}
    if not isinstance(document, str) or not isinstance(variables, dict):
        raise Refusal(422, {"errors": [{"message": "Unexpected query or variables"}]}, "gl-graphql-unreadable")
    try:
        if call.state.old and (unknown := _unknown_when_old(document)):
            return reply({"errors": [error.shown() for error in unknown]}, "gl-graphql-old")
        fields = _Parser(document).operation()
        if (cost := _complexity(fields, variables)) > MAX_COMPLEXITY:
            raise QueryError(f"Query has complexity of {cost:.0f}, which exceeds max complexity of {MAX_COMPLEXITY}")
        data = _resolve(_query(call), fields, variables)
    except QueryError as error:
        return reply({"errors": [error.shown()]}, "gl-graphql-error")
    fact = "gl-graphql-project-missing" if data.get("project", data) is None else "gl-graphql"
    return reply({"data": data}, fact)
