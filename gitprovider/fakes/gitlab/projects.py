"""Users, namespaces, projects and branches on the GitLab fake: https://docs.gitlab.com/api/projects/ ."""

from __future__ import annotations

import re
from typing import Any

from gitprovider.checks import check_branch
from gitprovider.errors import AlreadyExistsError, ConflictError, InvalidRequestError
from gitprovider.fakes.gitlab import answers
from gitprovider.fakes.gitlab import bodies as gitlab_json
from gitprovider.fakes.gitlab.answers import Refusal, invalid, reply
from gitprovider.fakes.gitlab.call import MAINTAINER, Call
from gitprovider.fakes.gitlab.files import resolve
from gitprovider.fakes.gitlab.rules import Guard
from gitprovider.fakes.host import Response
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
_CHOICES = {
    "merge_method": ("merge", "rebase_merge", "ff"),
    "squash_option": ("never", "always", "default_on", "default_off"),
}


# server, users, namespaces


def get_version(call: Call) -> Response:
    """The server's version; ``/metadata`` says the same and a little more."""
    body = {"version": "18.5.1" + ("-ee" if call.fake.premium else ""), "revision": "b75c85eaf2b"}
    return reply({**body, "enterprise": call.fake.premium}, "gl-version")


def get_user(call: Call) -> Response:
    """Whose token it is."""
    fake = call.fake
    return reply(gitlab_json.current_user(call.site, fake.username, fake.users[fake.username]), "gl-user")


def list_users(call: Call) -> Response:
    """Users by their exact name, which is compared without case."""
    wanted = call.text("username").lower()
    found = [
        gitlab_json.user(call.site, name, number)
        for name, number in call.fake.users.items()
        if wanted in ("", name.lower())
    ]
    return call.page(found, "gl-users", username=wanted)


def get_namespace(call: Call, namespace: str) -> Response:
    """A namespace by its number or full path, if the token's user is a member; otherwise it does not exist."""
    path = _namespace(call, namespace)
    if path is None:
        raise answers.missing("Namespace", "gl-namespace-missing")
    return reply(gitlab_json.namespace(call.site, path, kind=call.fake.kind(path)), "gl-namespace")


def _namespace(call: Call, key: str) -> str | None:
    for path in (call.fake.username, *sorted(call.fake.groups)):
        if key.lower() == path.lower() or key == str(gitlab_json.namespace_id(path)):
            return path
    return None


# projects


def shown_project(call: Call, record: RepoRecord) -> dict[str, Any]:
    """A project's body."""
    owner = record.path.rpartition("/")[0]
    return gitlab_json.project(
        call.site,
        record,
        kind=call.fake.kind(owner),
        empty=not call.forge.branches(record.path),
        open_merge_requests=0,
    )


def get_project(call: Call, project: str) -> Response:
    """A project by its number or full path."""
    return reply(shown_project(call, call.project(project)), "gl-project")


def create_project(call: Call) -> Response:
    """A project in a namespace, which is the user's own when none is named."""
    name = call.text("name") or call.text("path")
    if not name:
        raise invalid("name, path are missing, at least one parameter must be provided", "gl-param-missing")
    path = call.text("path") or re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.").lower()
    _check_names(name, path)
    asked = call.params.get("namespace_id")
    owner = call.fake.username if asked is None else _namespace(call, str(asked))
    if owner is None:
        raise Refusal(400, {"message": {"namespace": ["is not valid"]}}, "gl-namespace-invalid")
    record = _created(call, f"{owner}/{path}", name)
    if call.flag("initialize_with_readme"):
        call.fake.branch_made(record, record.default_branch)
    return reply(shown_project(call, record), "gl-project-created", status=201, effect=True)


def _check_names(name: str, path: str) -> None:
    problems = {}
    if not _NAME.match(name):
        problems["name"] = [_NAME_RULE]
    if not _PATH.match(path) or path.endswith((".git", ".atom")):
        problems["path"] = [_PATH_RULE]
    if problems:
        raise Refusal(400, {"message": problems}, "gl-project-name-invalid")


def _created(call: Call, path: str, name: str) -> RepoRecord:
    visibility = call.choice("visibility", tuple(Visibility)) or Visibility.PRIVATE
    if path in call.fake.pending_deletion:
        base = ["The project is still being deleted. Please try again later."]
        raise Refusal(400, {"message": {"base": base, "limit_reached": []}}, "gl-project-pending-deletion")
    if visibility in call.fake.restricted(call.request):
        text = f"{visibility} has been restricted by your GitLab administrator"
        raise Refusal(400, {"message": {"visibility_level": [text], "limit_reached": []}}, "gl-visibility-restricted")
    try:
        return call.forge.create_repo(
            path,
            description=call.text("description"),
            visibility=Visibility(visibility),
            auto_init=bool(call.flag("initialize_with_readme")),
            default_branch=call.text("default_branch", "main"),
            settings={"name": name, **_settings(call)},
        )
    except AlreadyExistsError:
        raise Refusal(400, {"message": dict(_TAKEN)}, "gl-project-taken") from None


def _settings(call: Call) -> dict[str, Any]:
    chosen = {name: call.choice(name, allowed) for name, allowed in _CHOICES.items()}
    remove = call.flag("remove_source_branch_after_merge")
    return {k: v for k, v in {**chosen, "remove_source_branch_after_merge": remove}.items() if v is not None}


def update_project(call: Call, project: str) -> Response:
    """Change a project's settings, default branch, name or path."""
    record = call.writable(project, MAINTAINER)
    settings, branch, path = _settings(call), call.text("default_branch"), call.text("path")
    if call.text("name"):
        settings["name"] = call.text("name")
    if not (settings or branch or path):
        names = "default_branch, merge_method, name, path, squash_option"
        raise invalid(f"{names} are missing, at least one parameter must be provided", "gl-param-missing")
    if branch and branch not in dict(call.forge.branches(record.path)):
        text = f"Could not change HEAD: branch '{branch}' does not exist"
        raise Refusal(400, {"message": {"base": [text]}}, "gl-project-head-invalid")
    if path:
        record = call.forge.rename_repo(record.path, f"{record.path.rpartition('/')[0]}/{path}")
    record = call.forge.update_repo(record.path, default_branch=branch or None, settings=settings or None)
    return reply(shown_project(call, record), "gl-project-updated", effect=True)


def delete_project(call: Call, project: str) -> Response:
    """Delete a project; GitLab answers before it is done."""
    record = call.project(project)
    if call.fake.role < MAINTAINER:
        raise answers.forbidden("gl-forbidden")
    call.forge.delete_repo(record.path)
    return reply({"message": "202 Accepted"}, "gl-project-deleted", status=202, effect=True)


def archive_project(call: Call, project: str) -> Response:
    """Make a project read-only."""
    return _archived(call, project, archived=True)


def unarchive_project(call: Call, project: str) -> Response:
    """Make a project writable again."""
    return _archived(call, project, archived=False)


def _archived(call: Call, project: str, *, archived: bool) -> Response:
    record = call.project(project)
    if call.fake.role < MAINTAINER:
        raise answers.forbidden("gl-forbidden")
    record = call.forge.update_repo(record.path, archived=archived)
    return reply(shown_project(call, record), "gl-project-archive", status=201, effect=True)


# branches


class _Branches:
    """Makes the bodies of one project's branches; the project and its rules are read once."""

    def __init__(self, call: Call, record: RepoRecord, repository: BareRepository) -> None:
        self._site, self._record, self._repository = call.site, record, repository
        self._guard = Guard(call.fake, record.path)

    def shown(self, found: tuple[str, str]) -> dict[str, Any]:
        """The body of a branch, given its name and head."""
        name, sha = found
        return gitlab_json.branch(
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
    """The branches by name, one page of them."""
    record = call.project(project)
    wanted = call.text("search")
    found = [
        (name, sha)
        for name, sha in call.forge.branches(record.path)
        if wanted in name and not call.fake.is_late(record, name)
    ]
    with opened(record.git_dir, record.path) as repository:
        shown = _Branches(call, record, repository).shown
        return call.page(found, "gl-branches", show=shown, id=record.id)


def get_branch(call: Call, project: str, branch: str) -> Response:
    """One branch by its exact name."""
    record = call.project(project)
    sha = dict(call.forge.branches(record.path)).get(branch)
    if sha is None or call.fake.seen_late(record, branch):
        raise answers.missing("Branch", "gl-branch-missing")
    return reply(_shown_branch(call, record, branch, sha), "gl-branch")


def create_branch(call: Call, project: str) -> Response:
    """A branch at a commit or at another branch's head. In an empty project GitLab first makes the default branch."""
    record = call.writable(project)
    name, ref = call.need("branch", "ref")
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
    call.fake.branch_made(record, name)
    return reply(_shown_branch(call, record, name, str(start.id)), "gl-branch-created", status=201, effect=True)


def _make_default_branch(call: Call, record: RepoRecord) -> None:
    forge, path = call.forge, record.path
    tree = forge.write_tree(path, None, {"README.md": (forge.write_blob(path, b""), "100644")})
    sha = forge.write_commit(path, tree=tree, parents=[], message="Add README.md", committer=call.fake.identity)
    forge.create_branch(path, record.default_branch, sha)
    call.fake.branch_made(record, record.default_branch)


def _check_new_branch(call: Call, record: RepoRecord, name: str) -> None:
    try:
        check_branch("branch", name)
    except InvalidRequestError:
        raise Refusal(400, "Branch name is invalid", "gl-branch-name-invalid") from None
    if name in dict(call.forge.branches(record.path)):
        raise Refusal(400, "Branch already exists", "gl-branch-exists")
    pattern = call.fake.branch_name_pattern
    if pattern is not None and not re.search(pattern, name):
        raise Refusal(400, f"Branch name does not follow the pattern '{pattern}'", "gl-push-rule")


def _check_new_protected(call: Call, record: RepoRecord, name: str, ref: str, sha: str) -> None:
    """A name that a rule covers: whoever may push may make it, whoever may merge only from what is protected."""
    guard, path = Guard(call.fake, record.path), record.path
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
    """Delete a branch. A protected one can be deleted by Maintainers, the default one by nobody."""
    record = call.writable(project)
    if branch not in dict(call.forge.branches(record.path)):
        raise answers.missing("Branch", "gl-branch-missing")
    if branch == record.default_branch:
        text = "The default branch of a project cannot be deleted."
        raise Refusal(400, text, "gl-branch-default-kept")
    if Guard(call.fake, record.path).covers(branch) and call.fake.role < MAINTAINER:
        text = (
            "You are not allowed to delete protected branches from this project. "
            "Only a project maintainer or owner can delete a protected branch."
        )
        raise Refusal(400, text, "gl-branch-protected-kept")
    call.forge.delete_branch(record.path, branch, bypass=True)
    return reply(None, "gl-branch-deleted", status=204, effect=True)
