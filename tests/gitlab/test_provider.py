"""GitLabProvider: reads, creating projects and branches, opening merge requests, and HostState."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gitprovider.contract import TreeEntry
from gitprovider.errors import (
    AlreadyExistsError,
    ConflictError,
    GitProviderError,
    InvalidRequestError,
    NotFoundError,
    Outcome,
    PermissionDeniedError,
    ProviderUnavailableError,
    RepoMovedError,
    UnexpectedResponseError,
    UnsupportedOptionError,
)
from gitprovider.fakes.gitlab.responses import REPOSITORY_NOT_CREATED
from gitprovider.gitlab import GitLabProvider
from gitprovider.gitlab.convert import first_quick_action
from gitprovider.models import BranchProtection, PullRequest, PullRequestState, PutFile, Repo, Visibility
from tests.support.gitlab_world import REPO, URL, World, failed

Make = Callable[..., World]


@pytest.mark.pitfall("GL-GR-06")
def test_a_renamed_project_is_read_at_its_new_place(world: World, provider: GitLabProvider) -> None:
    """By the number in the redirect, and the value has the new path."""
    before = provider.get_repo(REPO)
    world.forge.rename_repo(REPO, "acme/gadgets")

    value = provider.get_repo(REPO)

    assert (value.path, value.id) == ("acme/gadgets", before.id)


@pytest.mark.parametrize(
    "place", ["https://elsewhere.invalid/x", f"{URL}/users/sign_in", f"{URL}/api/v4/projects/x", ""]
)
def test_a_redirect_that_names_no_project_is_not_followed(world: World, provider: GitLabProvider, place: str) -> None:
    """A link is never an address."""
    world.fault("redirect", status=302, headers={"Location": place}, times=None)

    with pytest.raises(RepoMovedError) as caught:
        provider.get_repo(REPO)

    assert caught.value.moved_to is None
    assert len(world.request_log) <= 2


@pytest.mark.parametrize(
    "place",
    [
        "https://other.example.org/api/v4/projects/{id}",
        "http://gitlab.com/api/v4/projects/{id}",
        "https://gitlab.com:8443/api/v4/projects/{id}",
        "//other.example.org/api/v4/projects/{id}",
        "https://gitlab.com/elsewhere/api/v4/projects/{id}",
    ],
)
def test_a_redirect_to_another_origin_names_no_project_of_this_one(
    world: World, provider: GitLabProvider, place: str
) -> None:
    """A number of another host would be read as this host's project of that number."""
    number = world.forge.repo(REPO).id
    world.fault("redirect", status=301, headers={"Location": place.format(id=number)}, times=1)

    with pytest.raises(RepoMovedError) as caught:
        provider.get_repo("acme/renamed")

    assert caught.value.moved_to is None


def test_a_redirect_without_a_host_is_of_this_one(world: World, provider: GitLabProvider) -> None:
    """A relative Location names the host that sent it."""
    number = world.forge.repo(REPO).id
    world.fault("redirect", status=301, headers={"Location": f"/api/v4/projects/{number}"})

    assert provider.get_repo("acme/renamed").path == REPO


def test_the_second_redirect_is_an_error(world: World, provider: GitLabProvider) -> None:
    """Followed once."""
    world.fault("redirect", status=301, headers={"Location": f"{URL}/api/v4/projects/7"}, times=None)

    with pytest.raises(RepoMovedError):
        provider.get_repo(REPO)


@pytest.mark.pitfall("GL-X-01")
def test_writes_to_an_old_path_say_the_new_one(world: World, provider: GitLabProvider) -> None:
    """405 without a Location; nothing is sent to the new place but the question."""
    world.forge.rename_repo(REPO, "acme/gadgets")

    with pytest.raises(RepoMovedError) as caught:
        provider.create_branch(REPO, "feature", source=world.head)

    assert caught.value.moved_to == "acme/gadgets"
    assert len(world.mutations) == 1
    assert "feature" not in dict(world.forge.branches("acme/gadgets"))


@pytest.mark.pitfall("GL-GR-02")
def test_an_empty_project_of_an_old_server_has_a_default_branch(world: World, provider: GitLabProvider) -> None:
    """Null there; the name that a first commit will have."""
    handle = world.fake.handle
    world.forge.create_repo("acme/empty")

    def old(request: object) -> object:
        answer = handle(request)  # type: ignore[arg-type]  # passed on
        return replace(answer, body=answer.body.replace(b'"default_branch": "main"', b'"default_branch": null'))

    world.fake.handle = old  # type: ignore[method-assign, assignment]  # interposed, not replaced

    assert provider.get_repo("acme/empty").default_branch == "main"
    assert provider.list_branches("acme/empty") == []


@pytest.mark.parametrize("visibility", list(Visibility))
def test_internal_is_for_self_managed_hosts(make_world: Make, visibility: Visibility) -> None:
    """gitlab.com has disabled it, and nothing is sent."""
    world = make_world()
    if visibility is Visibility.INTERNAL:
        with pytest.raises(UnsupportedOptionError):
            world.provider().create_repo("acme/new", visibility=visibility)
        assert world.sent == []
        return

    assert world.provider().create_repo("acme/new", visibility=visibility).visibility is visibility


def test_internal_is_made_on_a_self_managed_host(make_world: Make) -> None:
    """The same option, another host."""
    world = make_world(url="https://git.example.org")

    assert world.provider().supports("create_repo.visibility=internal")
    assert world.provider().create_repo("acme/new", visibility=Visibility.INTERNAL).visibility is Visibility.INTERNAL


@pytest.mark.pitfall("GL-X-08")
@pytest.mark.parametrize(
    "path", ["../acme/x", "/acme/x", "acme/x/", "https://gitlab.com/acme/x", "acme%2Fx", "acme//x", "acme/x.git"]
)
def test_a_path_that_is_none_is_refused_before_any_request(world: World, provider: GitLabProvider, path: str) -> None:
    """No URL, no encoding, no slash too many."""
    with pytest.raises(InvalidRequestError) as caught:
        provider.get_repo(path)

    assert caught.value.argument == "repo"
    assert world.sent == []


@pytest.mark.pitfall("GL-CR-03", "GL-CR-08")
def test_a_namespace_of_another_name_is_not_taken(world: World, provider: GitLabProvider) -> None:
    """A name of digits is a number to GitLab, and a search finds what is alike."""
    number = _number(world, "acme")

    for namespace in (str(number), "ACME", "acm"):
        with pytest.raises(NotFoundError):
            provider.create_repo(f"{namespace}/new")

    assert world.mutations == []


def _number(world: World, path: str) -> int:
    with world.provider().sdk() as client:
        return int(client.namespaces.get(path).id)


def test_the_token_s_own_namespace_takes_projects(world: World, provider: GitLabProvider) -> None:
    """A user's namespace is one like any other."""
    assert provider.create_repo("tanuki/new").path == "tanuki/new"


def test_contains_is_reachability(world: World, provider: GitLabProvider) -> None:
    """The head, its ancestors, and nothing else; an unknown commit is not."""
    feature = world.feature()

    assert provider.contains(REPO, world.head, "main")
    assert provider.contains(REPO, world.head.upper(), "feature")
    assert provider.contains(REPO, feature, "feature")
    assert not provider.contains(REPO, feature, "main")
    assert not provider.contains(REPO, "1" * 40, "main")
    with pytest.raises(NotFoundError):
        provider.contains(REPO, world.head, "missing")


def test_a_tree_is_whole_whatever_its_size(world: World, provider: GitLabProvider) -> None:
    """Every page, files alone, with their modes."""
    files = [PutFile(path=f"d{n % 7}/f{n}", content=str(n), executable=n % 2 == 0) for n in range(230)]
    commit = provider.commit_files(REPO, "main", files, message="m")

    tree = provider.tree(REPO, commit.sha)

    assert dict(tree) == world.forge.read_tree(REPO, commit.sha)
    assert len(tree) == 231
    assert all(isinstance(entry, TreeEntry) for entry in tree.values())
    with pytest.raises(NotFoundError):
        provider.tree(REPO, "1" * 40)


def test_a_commit_is_read_by_its_sha(world: World, provider: GitLabProvider) -> None:
    """With its parent and message."""
    sha = world.commit("main", {"a": b"1"}, "Add a")

    value = provider.commit(REPO, sha)

    assert (value.sha, value.parent, value.message.strip(), value.branch) == (sha, world.head, "Add a", "")
    with pytest.raises(NotFoundError):
        provider.commit(REPO, "1" * 40)


def test_pull_requests_are_found_by_both_branches(ready: World) -> None:
    """Newest first, in any state or one, and no other's."""
    provider = ready.provider()
    ready.forge.update_pull_request(REPO, 1, state=PullRequestState.CLOSED)
    second = provider.open_pull_request(REPO, source_branch="feature", target_branch="main", title="again")
    provider.open_pull_request(REPO, source_branch="other", target_branch="main", title="other")

    between: dict[str, Any] = {"source_branch": "feature", "target_branch": "main"}
    assert [pull.number for pull in provider.find_pull_requests(REPO, **between)] == [second.number, 1]
    found = provider.find_pull_requests(REPO, **between, state=PullRequestState.CLOSED)
    assert [pull.number for pull in found] == [1]
    assert provider.find_pull_requests(REPO, source_branch="main", target_branch="feature") == []
    assert provider.get_pull_request(REPO, 1).state is PullRequestState.CLOSED
    with pytest.raises(NotFoundError):
        provider.get_pull_request(REPO, 99)


def test_a_merged_one_has_its_commit(ready: World) -> None:
    """Also for resolve, which looks for it."""
    provider = ready.provider()
    result = provider.merge_pull_request(REPO, 1)

    assert provider.get_pull_request(REPO, 1).merge_commit_sha == result.sha


def test_what_a_provider_says_of_itself(provider: GitLabProvider) -> None:
    """For resolve and for whoever shows it."""
    assert (provider.name, provider.settle) == ("gitlab", 90.0)
    assert not provider.supports("protect_branch.required_checks")


def test_a_closed_provider_refuses_calls(world: World) -> None:
    """And sends nothing."""
    with world.provider() as provider:
        pass

    with pytest.raises(InvalidRequestError, match="closed"):
        provider.get_repo(REPO)
    with pytest.raises(InvalidRequestError, match="closed"), provider.sdk():
        pass
    assert world.sent == []


def test_a_branch_at_an_unknown_commit_changes_nothing(world: World, provider: GitLabProvider) -> None:
    """In a project that has commits."""
    with pytest.raises(NotFoundError) as caught:
        provider.create_branch(REPO, "feature", source="1" * 40)

    assert caught.value.outcome is Outcome.NOT_APPLIED


def test_a_branch_in_an_empty_project_may_begin_it(world: World, provider: GitLabProvider) -> None:
    """GitLab makes the default branch before it looks for the commit: not "nothing changed"."""
    world.forge.create_repo("acme/empty")

    with pytest.raises(NotFoundError) as caught:
        provider.create_branch("acme/empty", "feature", source="1" * 40)

    assert caught.value.outcome is Outcome.UNKNOWN
    assert "README.md" in (caught.value.hint or "")
    assert dict(world.forge.branches("acme/empty")).keys() == {"main"}


@pytest.mark.pitfall("GL-CR-01", "GL-CR-02")
def test_a_taken_name_is_a_repository_that_exists(world: World, provider: GitLabProvider) -> None:
    """400 with an object of lists; looked up by its exact path, never by a search."""
    error = failed(AlreadyExistsError, lambda: provider.create_repo(REPO))

    assert isinstance(error, AlreadyExistsError)
    assert isinstance(error.existing, Repo)
    assert error.existing.path == REPO
    assert not any("search" in entry.query for entry in world.request_log.entries)
    assert len(world.mutations) == 1


@pytest.mark.pitfall("GL-CR-02")
def test_a_taken_name_that_cannot_be_seen_has_no_value(world: World, provider: GitLabProvider) -> None:
    """A project that the token may not see holds the path all the same."""
    world.fake.hidden.add(REPO)

    error = failed(AlreadyExistsError, lambda: provider.create_repo(REPO))

    assert isinstance(error, AlreadyExistsError)
    assert error.existing is None


@pytest.mark.pitfall("GL-CR-04")
def test_a_project_that_is_being_deleted_holds_the_path(world: World, provider: GitLabProvider) -> None:
    """For days, perhaps; it is not restored, and the hint says what it is."""
    world.fake.pending_deletion.add("acme/gone")

    error = failed(AlreadyExistsError, lambda: provider.create_repo("acme/gone"))

    assert "deleted" in (error.hint or "")


@pytest.mark.pitfall("GL-CR-05")
def test_name_and_path_are_both_sent(world: World, provider: GitLabProvider) -> None:
    """From a name alone GitLab makes a path of its own, and from no namespace the user's own."""
    value = provider.create_repo("acme/My.Widget_2")

    body = world.request_log.mutations()[0].body
    assert value.path == "acme/My.Widget_2"
    assert b'"name": "My.Widget_2"' in body
    assert b'"path": "My.Widget_2"' in body
    assert b'"namespace_id"' in body


@pytest.mark.pitfall("GL-CR-05")
@pytest.mark.parametrize("path", ["acme/a+b", "acme/größe"])
def test_a_name_that_gitlab_refuses_is_an_invalid_request(provider: GitLabProvider, path: str) -> None:
    """In its own words, and nothing is made under another name."""
    assert "can contain only" in failed(InvalidRequestError, lambda: provider.create_repo(path)).message


@pytest.mark.pitfall("GL-CR-07")
def test_a_namespace_that_takes_no_project_is_a_missing_right(world: World, provider: GitLabProvider) -> None:
    """GitLab says "is not valid" of a namespace that exists."""
    body = b'{"message": {"namespace": ["is not valid"], "limit_reached": []}}'
    world.fault("status", method="POST", status=400, body=body)

    assert failed(PermissionDeniedError, lambda: provider.create_repo("acme/new")).outcome is Outcome.NOT_APPLIED


@pytest.mark.pitfall("GL-CR-09")
def test_a_visibility_that_is_forbidden_is_a_policy(world: World, provider: GitLabProvider) -> None:
    """The empty limit_reached beside it is no quota."""
    world.fake.restricted_visibilities.add("public")

    error = failed(PermissionDeniedError, lambda: provider.create_repo("acme/new", visibility=Visibility.PUBLIC))

    assert "restricted" in error.message
    assert "limit" not in f"{error.message} {error.hint}"


@pytest.mark.pitfall("GL-CR-10")
def test_a_failure_of_the_disk_is_no_validation(world: World, provider: GitLabProvider) -> None:
    """400, and yet the host's own; it may have left the project, so nobody knows."""
    world.fault("status", method="POST", status=400, body=REPOSITORY_NOT_CREATED.body)

    error = failed(ProviderUnavailableError, lambda: provider.create_repo("acme/new"))

    assert (error.outcome, error.retryable) == (Outcome.UNKNOWN, False)


@pytest.mark.pitfall("GL-X-12")
def test_a_create_that_took_effect_under_a_500_is_unknown_and_not_repeated(
    world: World, provider: GitLabProvider
) -> None:
    """A repeat would say "already taken" of one's own project."""
    world.fault("status", method="POST", when="after", status=500)

    error = failed(ProviderUnavailableError, lambda: provider.create_repo("acme/new"))

    assert error.outcome is Outcome.UNKNOWN
    assert world.mutations == ["POST /projects"]
    assert provider.get_repo("acme/new").path == "acme/new"


@pytest.mark.pitfall("GL-CR-11")
def test_a_readme_that_is_made_in_the_background_may_come_later(world: World, provider: GitLabProvider) -> None:
    """The value names the default branch; nothing waits for it, nor claims that it is there."""
    world.fake.branch_lag = 2

    value = provider.create_repo("acme/new", auto_init=True)

    assert value.default_branch == "main"
    failed(NotFoundError, lambda: provider.head("acme/new", "main"))


@pytest.mark.pitfall("GL-CB-04")
@pytest.mark.parametrize(("there", "asked"), [("develop", "develop/x"), ("develop/x", "develop")])
def test_a_branch_in_the_way_is_a_conflict(world: World, provider: GitLabProvider, there: str, asked: str) -> None:
    """400, as for an existing name, a wrong one, and a push rule."""
    world.branch(there)

    failed(ConflictError, lambda: provider.create_branch(REPO, asked, source="main"))


@pytest.mark.pitfall("GL-CB-04", "GL-CF-09")
def test_a_branch_name_that_a_push_rule_forbids_is_a_policy(world: World, provider: GitLabProvider) -> None:
    """The text names the pattern."""
    world.fake.branch_name_pattern = "^(feat|fix)/"

    assert "pattern" in failed(PermissionDeniedError, lambda: provider.create_branch(REPO, "x", source="main")).message


@pytest.mark.pitfall("GL-CB-05")
def test_a_protected_wildcard_is_named_as_a_cause(world: World, provider: GitLabProvider) -> None:
    """GitLab's own text does not mention it."""
    world.forge.put_rule(REPO, "release/*", BranchProtection(require_pull_request=False))
    world.fake.role = 30

    error = failed(PermissionDeniedError, lambda: provider.create_branch(REPO, "release/1", source="main"))

    assert "wildcard" in (error.hint or "")


# open_pull_request


def open_request(world: World, **options: Any) -> PullRequest:
    options = {"source_branch": "other", "target_branch": "main", "title": "A change", **options}
    return world.provider().open_pull_request(REPO, **options)


def opening_fails(world: World, error: type[GitProviderError], **options: Any) -> Any:
    with pytest.raises(error) as caught:
        open_request(world, **options)
    return caught.value


@pytest.mark.pitfall("GL-PR-07")
@pytest.mark.parametrize("title", ["Draft: x", "draft:x", "[Draft] x", "(draft) x", "DRAFT: x", " [draft]x"])
def test_a_title_that_makes_a_draft_is_refused_before_any_request(ready: World, title: str) -> None:
    """GitLab has no other mark for a draft."""
    error = opening_fails(ready, InvalidRequestError, title=title)

    assert error.argument == "title"
    assert ready.sent == []


@pytest.mark.parametrize("title", ["Drafting", "draft", "A draft: x", "WIP: x", "Draft - x"])
def test_a_title_that_makes_no_draft_is_kept(ready: World, title: str) -> None:
    """Only GitLab's own three forms, at the beginning."""
    assert open_request(ready, title=title).title == title


@pytest.mark.pitfall("GL-PR-07")
@pytest.mark.parametrize("title", ["x", "Draft: x", "[Draft] x"])
def test_a_draft_is_made_by_a_prefix_that_the_value_does_not_show(ready: World, title: str) -> None:
    """Added and taken off again, once."""
    value = open_request(ready, title=title, draft=True)

    assert (value.title, value.draft) == (title, True)
    [sent] = ready.request_log.mutations()
    assert json.loads(sent.body)["title"] == f"Draft: {title}"


def test_a_draft_s_title_has_room_for_the_prefix(ready: World) -> None:
    """255 characters in all."""
    assert opening_fails(ready, InvalidRequestError, title="x" * 249, draft=True).argument == "title"
    assert open_request(ready, title="x" * 248, draft=True).title == "x" * 248


def test_a_draft_that_an_old_server_makes_unasked_is_told(ready: World) -> None:
    """The merge request is there, and is not what was asked for."""
    handle = ready.fake.handle

    def old(request: Any) -> Any:
        answer = handle(request)
        if request.method != "POST":
            return answer
        return replace(answer, body=answer.body.replace(b'"draft": false', b'"draft": true'))

    ready.fake.handle = old  # type: ignore[method-assign]  # interposed, not replaced

    error = opening_fails(ready, UnexpectedResponseError, title="WIP: x")

    assert error.outcome is Outcome.PARTIAL
    assert error.completed[0].value.number == 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/close", "/close"),
        ("text\n/label ~bug\n", "/label ~bug"),
        ("text\r\n/assign me\r\nmore", "/assign me"),
        ("/APPROVE", "/APPROVE"),
        ("  /merge  ", "/merge"),
        ("```\n/close\n```", None),
        ("```\n/close\n```\n/close", "/close"),
        ("```\n/close", "/close"),
        ("see /close", None),
        ("/closed", None),
        ("/etc/hosts", None),
        ("/close/it", None),
        ("/unknown thing", None),
        ("/ close", None),
        ("", None),
    ],
)
def test_quick_actions_are_found_where_gitlab_finds_them(text: str, found: str | None) -> None:
    """Known names at the beginning of a line, outside fenced code."""
    assert first_quick_action(text) == found


def test_a_description_that_would_be_executed_is_refused_before_any_request(ready: World) -> None:
    """GitLab would take the line out and do it."""
    error = opening_fails(ready, InvalidRequestError, description="Why.\n\n/label ~bug")

    assert error.argument == "description"
    assert ready.sent == []


def test_a_description_that_was_not_kept_is_told(ready: World) -> None:
    """A command of a version that is not known here."""
    handle = ready.fake.handle

    def newer(request: Any) -> Any:
        answer = handle(request)
        return replace(answer, body=answer.body.replace(b"/brand_new", b"")) if request.method == "POST" else answer

    ready.fake.handle = newer  # type: ignore[method-assign]  # interposed, not replaced

    assert opening_fails(ready, UnexpectedResponseError, description="x\n/brand_new").outcome is Outcome.PARTIAL


def test_labels_go_in_the_same_request_and_have_no_comma(ready: World) -> None:
    """A comma would make two of one."""
    open_request(ready, labels=["a b", "c"])

    assert ready.forge.pull_request(REPO, 2).labels == ("a b", "c")
    assert opening_fails(ready, InvalidRequestError, labels=["a,b"]).argument == "labels"


def test_labels_that_were_not_set_are_told(ready: World) -> None:
    """A guest may open a merge request and set none."""
    handle = ready.fake.handle

    def guest(request: Any) -> Any:
        if request.method == "POST":
            data = json.loads(request.body)
            data["labels"] = []
            request = replace(request, body=json.dumps(data).encode())
        return handle(request)

    ready.fake.handle = guest  # type: ignore[method-assign]  # interposed, not replaced

    error = opening_fails(ready, PermissionDeniedError, labels=["bug"])

    assert error.outcome is Outcome.PARTIAL
    assert "bug" in error.message
    assert error.completed[0].value.number == 2


@pytest.mark.pitfall("GL-PR-07")
@pytest.mark.parametrize(("tier", "kept"), [("free", 1), ("premium", 2)])
def test_reviewers_that_the_tier_drops_are_told(make_world: Make, tier: str, kept: int) -> None:
    """Free keeps the first, with 201."""
    world = make_world("ready", tier=tier)

    if tier == "premium":
        open_request(world, reviewers=["alice", "bob"])
    else:
        error = opening_fails(world, PermissionDeniedError, reviewers=["alice", "bob"])
        assert error.outcome is Outcome.PARTIAL
        assert isinstance(error.completed[0].value, PullRequest)

    assert len(world.forge.pull_request(REPO, 2).reviewers) == kept


def test_a_reviewer_who_may_not_read_it_is_told(ready: World) -> None:
    """Dropped silently by GitLab."""
    ready.fake.outsiders.add("alice")

    assert opening_fails(ready, PermissionDeniedError, reviewers=["alice"]).outcome is Outcome.PARTIAL


def test_a_reviewer_who_does_not_exist_stops_it_before_it_is_opened(ready: World) -> None:
    """Users are numbers to GitLab, looked up by their exact name."""
    error = opening_fails(ready, InvalidRequestError, reviewers=["nobody"])

    assert error.argument == "reviewers"
    assert ready.mutations == []


@pytest.mark.pitfall("GL-PR-01")
def test_the_one_that_is_open_is_found(ready: World) -> None:
    """409 with a list; looked up by both branches, not by the number in the text."""
    error = opening_fails(ready, AlreadyExistsError, source_branch="feature")

    assert isinstance(error.existing, PullRequest)
    assert (error.existing.number, error.existing.state) == (1, PullRequestState.OPEN)


def test_the_one_that_cannot_be_seen_is_none(ready: World) -> None:
    """A failing look does not hide what was said."""
    ready.fault("status", method="GET", endpoint="merge_requests$", status=500, times=None)

    assert opening_fails(ready, AlreadyExistsError, source_branch="feature").existing is None


@pytest.mark.parametrize("branch", ["source_branch", "target_branch"])
def test_a_missing_branch_is_not_found(ready: World, branch: str) -> None:
    """By name, in the host's words."""
    error = opening_fails(ready, NotFoundError, **{branch: "missing"})

    assert branch in error.message
    assert not error.retryable


@pytest.mark.pitfall("GL-PR-04", "GL-CB-06")
def test_a_source_branch_that_is_not_seen_yet_is_not_missing(ready: World) -> None:
    """A clustered GitLab refuses it for seconds; the same call is safe and will do."""
    text = b'{"message": {"source_branch": ["does not exist"]}}'
    ready.fault("status", method="POST", endpoint="merge_requests$", status=400, body=text)

    error = opening_fails(ready, ProviderUnavailableError)

    assert (error.retryable, error.outcome) == (True, Outcome.NOT_APPLIED)
    assert len(ready.mutations) == 1
    assert open_request(ready).number == 2


def test_a_merge_request_without_its_sha_is_a_value(make_world: Make) -> None:
    """The head is computed later."""
    world = make_world("ready")
    world.fake.late_sha = True

    assert open_request(world).head_sha is None


@pytest.mark.pitfall("GL-AR-01")
def test_an_archived_project_says_so(ready: World) -> None:
    """A bare 403 may mean that, a low role, or a feature that is off."""
    ready.forge.update_repo(REPO, archived=True)

    assert "archived" in (opening_fails(ready, PermissionDeniedError).hint or "")
