"""Endpoints for users, namespaces, projects and branches: https://docs.gitlab.com/api/projects/ ."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from gitprovider.checks import check_branch
from gitprovider.errors import AlreadyExistsError, ConflictError, InvalidRequestError
from gitprovider.fakes.gitlab import bodies, responses
from gitprovider.fakes.gitlab.access import Guard, branch_made
from gitprovider.fakes.gitlab.call import Call
from gitprovider.fakes.gitlab.objects import resolve
from gitprovider.fakes.gitlab.responses import Refusal, invalid, reply
from gitprovider.fakes.gitlab.state import MAINTAINERS
from gitprovider.fakes.http import Response
from gitprovider.local.database import RepoRecord
from gitprovider.local.git import BareRepository, opened
from gitprovider.models import Visibility

_NAME = re.compile(r"[A-Za-z0-9_\u00a9-\U0001f9ff][\w\u00a9-\U0001f9ff.+ -]*\Z")
_PATH = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*\Z")
_NAME_RULE = (
    "can contain only letters, digits, emoji, '_', '.', '+', dashes, or spaces. "
    "It must start with a letter, digit, emoji, or '_'."
)
_PATH_RULE = (
    "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-', end in '.git' or end in '.atom'"
)
_TAKEN = {name: ["has already been taken"] for name in ("project_namespace.name", "name", "path")}
_Visible = TypeVar("_Visible", Visibility, None)
_CHOICES = {
    "merge_method": ("merge", "rebase_merge", "ff"),
    "squash_option": ("never", "always", "default_on", "default_off"),
}

_FLAGS = ("only_allow_merge_if_pipeline_succeeds", "remove_source_branch_after_merge")
_CHANGED = (*_CHOICES, *_FLAGS, "default_branch", "description", "name", "visibility")


# Server, users, namespaces


def get_version(call: Call) -> Response:
    """The version of the server."""
    body = {
        "version": ("14.0.0" if call.state.old else "18.5.1") + ("-ee" if call.state.premium else ""),
        "revision": "b75c85eaf2b",
    }
    return reply({**body, "enterprise": call.state.premium}, "gl-version")


def get_user(call: Call) -> Response:
    """The user that the token belongs to."""
    fake = call.state
    return reply(bodies.current_user(call.site, fake.acting, fake.user_id(fake.acting)), "gl-user")


def list_users(call: Call) -> Response:
    """Users by their exact name, ignoring case."""
    call.only("username")
    wanted = call.text("username").lower()
    found = [
        bodies.user(call.site, name, number)
        for name, number in call.state.users.items()
        if wanted in ("", name.lower())
    ]
    return call.page(found, "gl-users", username=wanted)


def get_namespace(call: Call, namespace: str) -> Response:
    """A namespace by its number or full path. The token's user sees only namespaces that it is a member of."""
    path = _namespace(call, namespace)
    if path is None:
        raise responses.missing("Namespace", "gl-namespace-missing")
    return reply(bodies.namespace(call.site, path, kind=call.state.kind(path)), "gl-namespace")


def _namespace(call: Call, key: str) -> str | None:
    for path in (call.state.acting, *sorted(call.state.groups)):
        if key.lower() == path.lower() or key == str(bodies.namespace_id(path)):
            return path
    return None


# Projects


def shown_project(call: Call, record: RepoRecord) -> dict[str, Any]:
    """A project's body."""
    owner = record.path.rpartition("/")[0]
    return bodies.project(
        call.site,
        record,
        kind=call.state.kind(owner),
        empty=not call.forge.branches(record.path),
        open_merge_requests=0,
    )


def get_project(call: Call, project: str) -> Response:
    """A project by its number or full path."""
    return reply(shown_project(call, call.project(project)), "gl-project")


def create_project(call: Call) -> Response:
    """Create a project in a namespace. The default is the user's own."""
    call.only(*_CHANGED, "path", "namespace_id", "initialize_with_readme")
    name = call.text("name") or call.text("path")
    if not name:
        raise invalid("name, path are missing, at least one parameter must be provided", "gl-param-missing")
    path = call.text("path") or re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.").lower()
    check_names(name, path)
    asked = call.params.get("namespace_id")
    owner = call.state.acting if asked is None else _namespace(call, str(asked))
    if owner is None:
        raise Refusal(400, {"message": {"namespace": ["is not valid"]}}, "gl-namespace-invalid")
    record = _created(call, f"{owner}/{path}", name)
    if call.flag("initialize_with_readme"):
        branch_made(call.state, record, record.default_branch)
    return reply(shown_project(call, record), "gl-project-created", status=201, effect=True)


def check_names(name: str, path: str) -> None:
    """Refuse the name or the path of a project or group that breaks GitLab's rules."""
    problems = {}
    if not _NAME.match(name):
        problems["name"] = [_NAME_RULE]
    if not _PATH.match(path) or path.endswith((".git", ".atom")):
        problems["path"] = [_PATH_RULE]
    if problems:
        raise Refusal(400, {"message": problems}, "gl-project-name-invalid")


def _created(call: Call, path: str, name: str) -> RepoRecord:
    visibility = _visibility(call, Visibility.PRIVATE)
    if path in call.state.pending_deletion:
        base = ["The project is still being deleted. Please try again later."]
        raise Refusal(400, {"message": {"base": base, "limit_reached": []}}, "gl-project-pending-deletion")
    try:
        return call.forge.create_repo(
            path,
            description=call.text("description"),
            visibility=visibility,
            auto_init=bool(call.flag("initialize_with_readme")),
            default_branch=call.text("default_branch", "main"),
            settings={"name": name, **_settings(call)},
        )
    except AlreadyExistsError:
        raise Refusal(400, {"message": dict(_TAKEN)}, "gl-project-taken") from None


def _visibility(call: Call, default: _Visible) -> Visibility | _Visible:
    """The visibility that is asked for, or the default. The administrator's rule holds for both."""
    asked = call.choice("visibility", tuple(Visibility))
    visibility = default if asked is None else Visibility(asked)
    if visibility in call.state.restricted(call.request):
        text = f"{visibility} has been restricted by your GitLab administrator"
        raise Refusal(400, {"message": {"visibility_level": [text], "limit_reached": []}}, "gl-visibility-restricted")
    return visibility


def _settings(call: Call) -> dict[str, Any]:
    chosen = {name: call.choice(name, allowed) for name, allowed in _CHOICES.items()}
    flags = {name: call.flag(name) for name in _FLAGS}
    return {k: v for k, v in {**chosen, **flags}.items() if v is not None}


def update_project(call: Call, project: str) -> Response:
    """Change a project's settings, default branch, name or path."""
    call.only(*_CHANGED, "path")
    record = call.writable(project, MAINTAINERS)
    settings, branch, path = _settings(call), call.text("default_branch"), call.text("path")
    if call.text("name"):
        settings["name"] = call.text("name")
    visibility, description = _visibility(call, None), call.params.get("description")
    if not (settings or branch or path or visibility) and description is None:
        names = "default_branch, description, merge_method, name, path, squash_option, visibility"
        raise invalid(f"{names} are missing, at least one parameter must be provided", "gl-param-missing")
    if branch and branch not in dict(call.forge.branches(record.path)):
        text = f"Could not change HEAD: branch '{branch}' does not exist"
        raise Refusal(400, {"message": {"base": [text]}}, "gl-project-head-invalid")
    if path:
        record = call.forge.rename_repo(record.path, f"{record.path.rpartition('/')[0]}/{path}")
    record = call.forge.update_repo(
        record.path,
        default_branch=branch or None,
        description=None if description is None else str(description),
        visibility=visibility,
        settings=settings or None,
    )
    return reply(shown_project(call, record), "gl-project-updated", effect=True)


def delete_project(call: Call, project: str) -> Response:
    """Delete a project. GitLab responds before it is done."""
    record = call.project(project)
    if call.state.role < MAINTAINERS:
        raise responses.forbidden("gl-forbidden")
    call.forge.delete_repo(record.path)
    return reply({"message": "202 Accepted"}, "gl-project-deleted", status=202, effect=True)


def archive_project(call: Call, project: str) -> Response:
    """Archive a project, or make it writable again: the last part of the path says which."""
    record = call.project(project)
    if call.state.role < MAINTAINERS:
        raise responses.forbidden("gl-forbidden")
    record = call.forge.update_repo(record.path, archived=not call.request.path.endswith("/unarchive"))
    return reply(shown_project(call, record), "gl-project-archive", status=201, effect=True)


# Branches


class _Branches:
    """Builds the bodies of one project's branches. The project and its rules are read once."""

    def __init__(self, call: Call, record: RepoRecord, repository: BareRepository) -> None:
        self._site, self._record, self._repository = call.site, record, repository
        self._guard = Guard(call.state, record.path)

    def shown(self, found: tuple[str, str]) -> dict[str, Any]:
        """The body of a branch, from its name and head."""
        name, sha = found
        return bodies.branch(
            self._site,
            self._record,
            name,
            self._repository.commit(sha),
            protected=self._guard.covers(name),
            can_push=self._guard.may("push", name),
        )


def _shown_branch(call: Call, record: RepoRecord, name: str, sha: str) -> dict[str, Any]:
    with opened(record.git_dir, record.path) as repository:
        return _Branches(call, record, repository).shown((name, sha))


def list_branches(call: Call, project: str) -> Response:
    """One page of the branches, by name."""
    call.only("search", "regex")
    record = call.project(project)
    wanted = _searched(call)
    found = [
        (name, sha)
        for name, sha in call.forge.branches(record.path)
        if wanted(name) and not call.state.stale_reads.is_pending((record.id, name))
    ]
    with opened(record.git_dir, record.path) as repository:
        shown = _Branches(call, record, repository).shown
        return call.page(found, "gl-branches", show=shown, id=record.id)


def _searched(call: Call) -> Callable[[str], bool]:
    """Whether a branch's name is searched for: ``^x`` starts with it, ``x$`` ends with it. GitLab ignores case."""
    text, pattern = call.text("search").lower(), call.text("regex")
    try:
        expression = re.compile(pattern)
    except re.error:
        raise invalid("regex is an invalid regexp") from None

    def matches(name: str) -> bool:
        lower = name.lower()
        if text.startswith("^"):
            searched = lower.startswith(text[1:])
        elif text.endswith("$"):
            searched = lower.endswith(text[:-1])
        else:
            searched = text in lower
        return searched and bool(expression.search(name))

    return matches


def get_branch(call: Call, project: str, branch: str) -> Response:
    """One branch by its exact name."""
    record = call.project(project)
    sha = dict(call.forge.branches(record.path)).get(branch)
    if sha is None or call.state.stale_reads.count((record.id, branch)):
        raise responses.missing("Branch", "gl-branch-missing")
    return reply(_shown_branch(call, record, branch, sha), "gl-branch")


def create_branch(call: Call, project: str) -> Response:
    """Create a branch at a commit or another branch. In an empty project, GitLab first makes the default branch."""
    record = call.writable(project)
    name, ref = call.require("branch", "ref")
    if not call.forge.branches(record.path):
        _make_default_branch(call, record)
    _check_new_branch(call, record, name)
    with opened(record.git_dir, record.path) as repository:
        start = resolve(repository, record, ref)
    if start is None:
        text = f"Failed to create branch '{name}': invalid reference name '{ref}'"
        raise Refusal(400, text, "gl-branch-ref")
    _check_new_protected(call, record, name, ref, str(start.id))
    try:
        call.forge.create_branch(record.path, name, str(start.id))
    except ConflictError:
        text = f"Failed to create branch '{name}': Branch name conflicts with existing branch hierarchy."
        raise Refusal(400, text, "gl-branch-prefix") from None
    branch_made(call.state, record, name)
    return reply(_shown_branch(call, record, name, str(start.id)), "gl-branch-created", status=201, effect=True)


def _make_default_branch(call: Call, record: RepoRecord) -> None:
    forge, path = call.forge, record.path
    tree = forge.write_tree(path, None, {"README.md": (forge.write_blob(path, b""), "100644")})
    sha = forge.write_commit(path, tree=tree, parents=[], message="Add README.md", committer=call.state.identity)
    forge.create_branch(path, record.default_branch, sha)
    branch_made(call.state, record, record.default_branch)


def _check_new_branch(call: Call, record: RepoRecord, name: str) -> None:
    try:
        check_branch("branch", name)
    except InvalidRequestError:
        raise Refusal(400, "Branch name is invalid", "gl-branch-name-invalid") from None
    if name in dict(call.forge.branches(record.path)):
        raise Refusal(400, "Branch already exists", "gl-branch-exists")
    pattern = call.state.branch_name_pattern
    if pattern is not None and not re.search(pattern, name):
        raise Refusal(400, f"Branch name does not follow the pattern '{pattern}'", "gl-push-rule")


def _check_new_protected(call: Call, record: RepoRecord, name: str, ref: str, sha: str) -> None:
    """Check a name that a rule covers: it needs push access, or merge access and a protected starting point."""
    guard, path = Guard(call.state, record.path), record.path
    if guard.may("push", name):
        return
    if not guard.may("merge", name):
        text = "You are not allowed to create protected branches on this project."
        raise Refusal(400, text, "gl-protected-name")
    heads = [branch for branch, _ in call.forge.branches(path) if guard.covers(branch)]
    if ref not in heads and not any(call.forge.contains(path, sha, branch) for branch in heads):
        text = "You can only use an existing protected branch ref as the basis of a new protected branch."
        raise Refusal(400, text, "gl-protected-name")


def delete_branch(call: Call, project: str, branch: str) -> Response:
    """Delete a branch. Maintainers may delete a protected branch. Nobody may delete the default branch."""
    record = call.writable(project)
    if branch not in dict(call.forge.branches(record.path)):
        raise responses.missing("Branch", "gl-branch-missing")
    if branch == record.default_branch:
        text = "The default branch of a project cannot be deleted."
        raise Refusal(400, text, "gl-branch-default-kept")
    if Guard(call.state, record.path).covers(branch) and call.state.role < MAINTAINERS:
        text = (
            "You are not allowed to delete protected branches from this project. "
            "Only a project maintainer or owner can delete a protected branch."
        )
        raise Refusal(400, text, "gl-branch-protected-kept")
    call.forge.delete_branch(record.path, branch, bypass=True)
    return reply(None, "gl-branch-deleted", status=204, effect=True)
