"""The GitLab fake: token, routing, pages, projects and branches."""

from __future__ import annotations

import json
import pathlib
import re
from datetime import UTC, datetime
from typing import Any

import gitlab
import pytest
import responses

from gitprovider.fakes.faults import Fault
from gitprovider.fakes.gitlab import responses as gitlab_responses
from gitprovider.fakes.gitlab.routes import ROUTES
from gitprovider.fakes.gitlab.server import GRAPHQL, FakeGitLab
from gitprovider.fakes.mount import mount
from gitprovider.fakes.serve import serving
from tests.support.facts import FACTS
from tests.support.gitlab_hand import ORIGIN, REPO, Hand, a_hand

PARAMETERS = (
    *("name", "path", "namespace_id", "visibility", "initialize_with_readme", "branch", "ref", "search", "recursive"),
    *("commit_message", "actions", "start_branch", "page", "per_page", "from", "to", "sha", "type", "squash"),
    *("push_access_level", "allowed_to_push", "allow_force_push", "title", "source_branch", "target_branch"),
    *(
        "tag_name",
        "message",
        "state",
        "since",
        "until",
        "author",
        "ref_name",
        "parent_id",
        "order_by",
        "sort",
        "content",
    ),
    *("description", "labels", "reviewer_ids", "state_event", "query", "variables"),
)


@pytest.fixture
def hand(tmp_path: pathlib.Path) -> Hand:
    return a_hand(tmp_path)


# token


@pytest.mark.parametrize("headers", [{"PRIVATE-TOKEN": "glpat-fake"}, {"Authorization": "Bearer glpat-fake"}])
def test_the_token_is_taken_in_both_of_gitlab_s_headers(hand: Hand, headers: dict[str, str]) -> None:
    """python-gitlab sends one for private tokens and the other for OAuth tokens."""
    assert hand.send("GET", "/user", headers=headers).data["username"] == "tanuki"


@pytest.mark.pitfall("GL-AU-01")
@pytest.mark.parametrize(
    "headers", [{}, {"PRIVATE-TOKEN": "other"}, {"JOB-TOKEN": "glpat-fake"}, {"Authorization": "Basic glpat-fake"}]
)
def test_anything_else_is_401(hand: Hand, headers: dict[str, str]) -> None:
    """A job token, or no token, reaches nothing."""
    response = hand.send("GET", "/user", headers=headers)

    assert (response.status, response.message, response.fact) == (401, "401 Unauthorized", "gl-unauthorized")


@pytest.mark.parametrize(
    ("path", "private", "public"),
    [
        ("/user", 401, 401),
        ("/projects/acme%2Fplatform%2Fwidgets", 404, 200),
        ("/projects/acme%2Fplatform%2Fwidgets/repository/branches/main", 404, 200),
        ("/projects/acme%2Fplatform%2Fwidgets/protected_branches", 404, 403),
    ],
)
def test_without_a_token_what_is_public_is_read(hand: Hand, path: str, private: int, public: int) -> None:
    """If it fails, a client without a token is refused a public project, or reads a private one."""
    hand.given_repo()
    seen = [hand.send("GET", path, headers={}).status]
    hand.repo("PUT", "", {"visibility": "public"})

    assert [*seen, hand.send("GET", path, headers={}).status] == [private, public]
    assert hand.repo("PUT", "", {"name": "x"}, headers={}).status == 401
    assert hand.send("GET", path, headers={"PRIVATE-TOKEN": "wrong"}).status == 401


@pytest.mark.pitfall("GL-GR-03")
@pytest.mark.parametrize(("state", "word"), [("revoked", "revoked"), ("expired", "expired")])
def test_a_token_that_was_good_once_is_refused_in_other_words(hand: Hand, state: Any, word: str) -> None:
    """The reason is in error_description, under another key than every other message."""
    hand.fake.credential = state

    response = hand.send("GET", "/user")

    assert (response.status, response.data["error"]) == (401, "invalid_token")
    assert word in response.data["error_description"]


@pytest.mark.pitfall("GL-X-10")
def test_a_token_that_may_only_read_is_refused_for_a_write(hand: Hand) -> None:
    """Scope is 403 with error, role is 403 with message."""
    hand.fake.scopes = {"read_api"}

    response = hand.send("POST", "/projects", {"name": "widgets"})

    assert (response.status, response.data["error"], response.data["scope"]) == (403, "insufficient_scope", "api")
    assert hand.send("GET", "/user").status == 200


@pytest.mark.pitfall("GL-X-10")
def test_a_role_that_is_too_low_is_a_bare_403(hand: Hand) -> None:
    """A reporter may read and not write."""
    hand.given_repo()
    hand.fake.role = 20

    response = hand.repo("POST", "/repository/branches", {"branch": "x", "ref": "main"})

    assert (response.status, response.message, response.fact) == (403, "403 Forbidden", "gl-forbidden")


# routing


@pytest.mark.pitfall("GL-CB-01")
def test_a_slash_that_is_not_encoded_meets_the_router(hand: Hand) -> None:
    """The router's 404 has the key error, the API's has message."""
    hand.given_repo()

    router = hand.repo("GET", "/repository/branches/feature/x")
    api = hand.repo("GET", "/repository/branches/feature%2Fx")

    assert router.data == {"error": "404 Not Found"}
    assert api.message == "404 Branch Not Found"


@pytest.mark.pitfall("GL-X-08")
def test_a_path_that_was_encoded_twice_is_no_project(hand: Hand) -> None:
    """acme%252Fwidgets is decoded once, to acme%2Fwidgets."""
    hand.given_repo(path="acme/widgets")

    assert hand.send("GET", "/projects/acme%252Fwidgets").message == "404 Project Not Found"
    assert hand.send("GET", "/projects/acme%2Fwidgets").status == 200


def test_a_known_path_with_another_verb_is_405(hand: Hand) -> None:
    """The router tells a verb that is not there from a path that is not there."""
    response = hand.send("PATCH", "/projects/1")

    assert (response.status, response.data) == (405, {"error": "405 Not Allowed"})
    assert response.headers["Allow"] == "GET, PUT, DELETE"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nowhere"),
        ("GET", "/projects/1/hooks"),
        ("PUT", "/projects/acme%2Fwidgets/repository/branches/main/protect"),
        ("DELETE", "/projects/1/merge_requests/1"),
        ("POST", "/users"),
    ],
)
def test_an_endpoint_that_the_fake_lacks_is_501(hand: Hand, method: str, path: str) -> None:
    """If it fails, a client takes what the fake lacks for what GitLab says."""
    response = hand.send(method, path)

    assert response.status == 501
    assert response.data == {"message": f"FakeGitLab does not model {method} /api/v4{path}"}
    assert hand.host.request_log.entries[-1].endpoint == ""


@pytest.mark.parametrize(
    "path", ["/projects/acme/widgets", "/projects/1/repository/files/a/b.txt", "/projects/1/protected_branches/a/b"]
)
def test_a_name_whose_slashes_are_not_encoded_is_no_endpoint_of_gitlab(hand: Hand, path: str) -> None:
    """If it fails, a client that does not encode a name is told that the fake is incomplete."""
    assert hand.send("GET", path).data == {"error": "404 Not Found"}


@pytest.mark.pitfall("GL-GR-05")
def test_an_installation_below_a_path_answers_there_alone(tmp_path: pathlib.Path) -> None:
    """Its links carry the path, /api/v4 is not taken twice, and beside it is another application."""
    hand = a_hand(tmp_path, base="https://host.example/gitlab")
    hand.given_repo()

    right = hand.repo("GET", "/repository/branches", query={"per_page": 1})
    twice = hand.send("GET", "/api/v4/projects/1")
    beside = hand.send("GET", "//api/v4/projects/1")

    assert right.headers["Link"].startswith(f"<{ORIGIN}/gitlab/api/v4/projects/")
    assert twice.data == {"error": "404 Not Found"}
    assert (beside.status, beside.headers["Content-Type"]) == (404, "text/html; charset=utf-8")


def test_every_route_names_its_endpoint_for_the_request_log(hand: Hand) -> None:
    """Fault scripts and request counts select by the template, which is the one that GitLab documents."""
    hand.given_repo()

    hand.repo("GET", "/repository/branches/main")
    hand.graphql("{ currentUser { username } }")
    hand.send("GET", "/nowhere")

    endpoints = [entry.endpoint for entry in hand.host.request_log.entries]
    assert endpoints == ["/projects/{project}/repository/branches/{branch}", GRAPHQL, ""]
    assert len(ROUTES.table) == len({(route.method, route.template) for route in ROUTES.table})


def test_every_answer_carries_the_request_s_id_and_the_rate_limit(tmp_path: pathlib.Path) -> None:
    """The library shows the one and counts on the others."""
    hand = a_hand(tmp_path, now=lambda: datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC))

    first, second = hand.send("GET", "/user"), hand.send("GET", "/nowhere")

    assert first.headers["X-Request-Id"] != second.headers["X-Request-Id"]
    assert first.headers["RateLimit-Limit"] == "2000"
    assert int(second.headers["RateLimit-Observed"]) == int(first.headers["RateLimit-Observed"]) + 1
    assert int(second.headers["RateLimit-Remaining"]) == 2000 - int(second.headers["RateLimit-Observed"])
    assert first.headers["RateLimit-Reset"] == str(int(datetime(2026, 1, 1, 0, 1, tzinfo=UTC).timestamp()))
    assert first.headers["Content-Type"] == "application/json"


def test_a_body_that_is_no_json_is_400(hand: Hand) -> None:
    """A client that sends text must not be taken for one that sends nothing."""
    response = hand.send("POST", "/projects", ["a", "list"])

    assert (response.status, response.fact) == (400, "gl-bad-json")


def test_a_nul_is_refused_before_anything(hand: Hand) -> None:
    """A file with one must be sent as base64; a backslash before the same letters is no NUL."""
    hand.given_repo()

    def commit(content: str) -> int:
        action = {"action": "create", "file_path": f"f{len(content)}", "content": content}
        body = {"branch": "main", "commit_message": "m", "actions": [action]}
        return hand.repo("POST", "/repository/commits", body).status

    assert [commit("a\x00b"), commit("a\\u0000b"), commit("\\\x00")] == [400, 201, 400]
    assert hand.send("GET", "/projects/a%00b").data == "Bad Request"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_etag_makes_a_304_until_something_changes(hand: Hand, method: str) -> None:
    """If it fails, a client that caches reads everything again, or never sees a change."""
    hand.given_repo()
    etag = hand.repo("GET", "").headers["ETag"]
    sent = {"PRIVATE-TOKEN": hand.fake.token, "If-None-Match": f'"x", {etag}'}

    same = hand.repo(method, "", headers=sent)
    hand.repo("PUT", "", {"description": "new"})
    changed = hand.repo(method, "", headers=sent)

    assert (same.status, same.data, same.headers["ETag"], same.fact) == (304, None, etag, "gl-not-modified")
    assert changed.status == 200
    assert changed.headers["ETag"] != etag


def test_head_has_the_headers_of_get_and_no_body(hand: Hand) -> None:
    """If it fails, a client that asks whether a project exists is told that it does not."""
    hand.given_repo()

    head, got = hand.repo("HEAD", "/repository/branches"), hand.repo("GET", "/repository/branches")

    assert (head.status, head.data) == (200, None)
    assert {name: head.headers[name] for name in ("ETag", "X-Total", "Content-Type")}.items() <= got.headers.items()
    assert int(head.headers["Content-Length"]) > 0


# pages


@pytest.mark.pitfall("GL-LB-01")
def test_a_list_has_twenty_items_unless_more_are_asked_for(hand: Hand) -> None:
    """Whoever reads one page of a list reads twenty."""
    head = hand.given_repo()
    for number in range(1, 45):
        hand.forge.create_branch(REPO, f"b{number:02}", head)

    first = hand.repo("GET", "/repository/branches")
    second = hand.repo("GET", "/repository/branches", query={"page": 2})
    last = hand.repo("GET", "/repository/branches", query={"page": 3})

    assert [len(page.data) for page in (first, second, last)] == [20, 20, 5]
    names = ("X-Page", "X-Per-Page", "X-Prev-Page", "X-Next-Page", "X-Total", "X-Total-Pages")
    assert [second.headers[name] for name in names] == ["2", "20", "1", "3", "45", "3"]
    assert last.headers["X-Next-Page"] == ""
    assert re.findall(r'rel="(\w+)"', second.headers["Link"]) == ["prev", "next", "first", "last"]
    assert re.findall(r'rel="(\w+)"', last.headers["Link"]) == ["prev", "first", "last"]
    assert "page=3&per_page=20" in second.headers["Link"]


def test_a_page_has_a_hundred_items_at_most(hand: Hand) -> None:
    """More than a hundred a page is cut to a hundred without a word."""
    head = hand.given_repo()
    for number in range(100):
        hand.forge.create_branch(REPO, f"b{number:03}", head)

    response = hand.repo("GET", "/repository/branches", query={"per_page": 1000})

    assert (len(response.data), response.headers["X-Per-Page"], response.headers["X-Next-Page"]) == (100, "100", "2")


@pytest.mark.pitfall("GL-GR-02")
def test_an_empty_list_is_one_page(hand: Hand) -> None:
    """An empty project has a default branch by name, and no branch."""
    hand.forge.create_repo(REPO)

    project, branches = hand.repo("GET", ""), hand.repo("GET", "/repository/branches")

    assert (project.data["default_branch"], project.data["empty_repo"]) == ("main", True)
    assert (branches.data, branches.headers["X-Total"], branches.headers["X-Total-Pages"]) == ([], "0", "1")
    assert hand.repo("GET", "/repository/branches/main").message == "404 Branch Not Found"


@pytest.mark.pitfall("GL-LB-04")
def test_large_lists_may_come_without_totals(hand: Hand) -> None:
    """There is a next page, and nothing says how many."""
    head = hand.given_repo()
    hand.forge.create_branch(REPO, "b", head)
    hand.fake.totals = False

    response = hand.repo("GET", "/repository/branches", query={"per_page": 1})

    assert response.headers["X-Next-Page"] == "2"
    assert not {"X-Total", "X-Total-Pages"} & set(response.headers)
    assert re.findall(r'rel="(\w+)"', response.headers["Link"]) == ["next", "first"]


@pytest.mark.pitfall("GL-X-11")
def test_links_lead_to_what_the_server_takes_for_its_url(hand: Hand) -> None:
    """Behind a proxy that is another host, to which no token may go."""
    head = hand.given_repo()
    hand.forge.create_branch(REPO, "b", head)
    hand.fake.external_url = "http://elsewhere.example"

    response = hand.repo("GET", "/repository/branches", query={"per_page": 1})

    assert response.headers["Link"].startswith("<http://elsewhere.example/api/v4/projects/")


@pytest.mark.parametrize(("query", "problem"), [({"page": "x"}, "page is invalid"), ({"per_page": 0}, "per_page has")])
def test_a_page_that_cannot_be_is_400(hand: Hand, query: dict[str, Any], problem: str) -> None:
    """The parameter check returns the key error."""
    hand.given_repo()

    response = hand.repo("GET", "/repository/branches", query=query)

    assert response.status == 400
    assert response.data["error"].startswith(problem)


# users and namespaces


def test_users_are_found_by_their_exact_name(hand: Hand) -> None:
    """An unknown name is an empty list, not 404."""
    assert [user["id"] for user in hand.send("GET", "/users", query={"username": "Alice"}).data] == [46]
    assert hand.send("GET", "/users", query={"username": "ali"}).data == []


@pytest.mark.pitfall("GL-CR-03")
def test_a_namespace_is_a_user_s_or_a_group_s(hand: Hand) -> None:
    """Both kinds are found by their full path, at any depth."""
    user, group = hand.send("GET", "/namespaces/tanuki"), hand.send("GET", "/namespaces/acme%2Fplatform")

    assert (user.data["kind"], user.data["full_path"], user.data["parent_id"]) == ("user", "tanuki", None)
    assert (group.data["kind"], group.data["full_path"]) == ("group", "acme/platform")
    assert group.data["parent_id"] == hand.send("GET", "/namespaces/acme").data["id"]


def test_a_group_of_others_does_not_exist(hand: Hand) -> None:
    """Without membership a namespace is 404, also when everybody can see the group."""
    response = hand.send("GET", "/namespaces/strangers")

    assert (response.status, response.message) == (404, "404 Namespace Not Found")


# projects


def _namespace(hand: Hand, path: str) -> int:
    number: int = hand.send("GET", f"/namespaces/{path.replace('/', '%2F')}").data["id"]
    return number


@pytest.mark.pitfall("GL-CR-08")
def test_a_project_is_made_in_the_namespace_that_was_named(hand: Hand) -> None:
    """Its full path has every group, and it is found by path and by number alike."""
    body = {"name": "widgets", "path": "widgets", "namespace_id": _namespace(hand, "acme/platform")}

    made = hand.send("POST", "/projects", body | {"description": "Widgets", "visibility": "public"})

    assert (made.status, made.effect, made.data["path_with_namespace"]) == (201, True, "acme/platform/widgets")
    assert (made.data["visibility"], made.data["description"]) == ("public", "Widgets")
    by_path, by_id = hand.repo("GET", ""), hand.send("GET", f"/projects/{made.data['id']}")
    assert by_path.data == by_id.data
    assert by_path.data["http_url_to_repo"] == f"{ORIGIN}/acme/platform/widgets.git"


@pytest.mark.pitfall("GL-CR-03")
def test_a_project_without_a_namespace_is_the_user_s_own(hand: Hand) -> None:
    """That is where it silently lands."""
    assert hand.send("POST", "/projects", {"name": "My Widget"}).data["path_with_namespace"] == "tanuki/my-widget"


@pytest.mark.pitfall("GL-CR-01")
def test_a_name_that_is_taken_is_400_with_a_dict_of_lists(hand: Hand) -> None:
    """Neither 409 nor 422, and the message is no text."""
    body = {"name": "widgets", "path": "widgets"}
    hand.send("POST", "/projects", body)

    response = hand.send("POST", "/projects", body)

    assert (response.status, response.effect) == (400, False)
    assert response.message == {name: ["has already been taken"] for name in ("project_namespace.name", "name", "path")}


@pytest.mark.pitfall("GL-CR-02")
def test_a_project_that_cannot_be_seen_is_taken_all_the_same(hand: Hand) -> None:
    """404 on the way in, taken on the way out."""
    hand.forge.create_repo("tanuki/secret")
    hand.fake.hidden = {"tanuki/secret"}

    assert hand.send("GET", "/projects/tanuki%2Fsecret").message == "404 Project Not Found"
    assert hand.send("POST", "/projects", {"name": "secret"}).status == 400


@pytest.mark.pitfall("GL-CR-04")
def test_a_path_of_a_project_being_deleted_is_not_free(hand: Hand) -> None:
    """It says so in base."""
    hand.fake.pending_deletion = {"tanuki/widgets"}

    response = hand.send("POST", "/projects", {"name": "widgets"})

    assert response.status == 400
    assert response.message["base"] == ["The project is still being deleted. Please try again later."]


@pytest.mark.pitfall("GL-CR-05")
def test_a_malformed_name_is_told_field_by_field(hand: Hand) -> None:
    """A full path is no name."""
    response = hand.send("POST", "/projects", {"name": "acme/widgets", "path": "acme/widgets"})

    assert response.status == 400
    assert set(response.message) == {"name", "path"}


@pytest.mark.pitfall("GL-CR-07")
def test_a_namespace_of_others_is_not_valid(hand: Hand) -> None:
    """By its number a foreign namespace is refused in yet another way."""
    response = hand.send("POST", "/projects", {"name": "widgets", "namespace_id": 424242})

    assert (response.status, response.message) == (400, {"namespace": ["is not valid"]})


@pytest.mark.pitfall("GL-CR-09")
@pytest.mark.parametrize(("origin", "status"), [("https://gitlab.com", 400), ("https://gitlab.example.com", 201)])
def test_internal_projects_are_not_to_be_had_on_gitlab_com(hand: Hand, origin: str, status: int) -> None:
    """Elsewhere they are, unless an administrator restricts them."""
    response = hand.send("POST", "/projects", {"name": "widgets", "visibility": "internal"}, origin=origin)

    assert response.status == status
    if status == 400:
        assert response.message["visibility_level"] == ["internal has been restricted by your GitLab administrator"]


def test_a_project_is_changed_and_deleted(hand: Hand) -> None:
    """What a rig or a person sets there is what reads and merges see."""
    hand.given_repo()
    hand.given_feature("next")

    changed = hand.repo("PUT", "", {"merge_method": "ff", "squash_option": "never", "default_branch": "next"})
    wrong = hand.repo("PUT", "", {"squash_option": "sometimes"})
    nothing = hand.repo("PUT", "", {})
    gone = hand.repo("DELETE", "")

    assert [changed.data[name] for name in ("merge_method", "squash_option", "default_branch")] == [
        "ff",
        "never",
        "next",
    ]
    assert wrong.data["error"] == "squash_option does not have a valid value"
    assert "at least one parameter must be provided" in nothing.data["error"]
    assert (gone.status, gone.message, gone.effect) == (202, "202 Accepted", True)
    assert hand.repo("GET", "").status == 404


@pytest.mark.pitfall("GL-GR-06")
def test_a_moved_project_sends_reads_on_by_its_number(hand: Hand) -> None:
    """301 to the same place below the number."""
    hand.given_repo()
    number = hand.repo("GET", "").data["id"]
    hand.forge.rename_repo(REPO, "acme/gadgets")

    response = hand.repo("GET", "/repository/branches/main")

    assert response.status == 301
    assert response.headers["Location"] == f"{ORIGIN}/api/v4/projects/{number}/repository/branches/main"
    assert hand.send("GET", f"/projects/{number}").data["path_with_namespace"] == "acme/gadgets"


@pytest.mark.pitfall("GL-X-01")
@pytest.mark.parametrize(
    ("method", "rest"), [("POST", "/merge_requests"), ("PUT", "/merge_requests/3/merge"), ("DELETE", "")]
)
def test_a_moved_project_refuses_every_write(hand: Hand, method: str, rest: str) -> None:
    """405 without a Location, which a merge must not take for a merge request that cannot be merged."""
    hand.given_repo()
    hand.forge.rename_repo(REPO, "acme/gadgets")

    response = hand.repo(method, rest, {"title": "x", "source_branch": "a", "target_branch": "b"})

    assert (response.status, response.message) == (405, "Non GET methods are not allowed for moved projects")
    assert "Location" not in response.headers


@pytest.mark.pitfall("GL-AR-01")
def test_an_archived_project_refuses_writes_without_a_reason(hand: Hand) -> None:
    """403 Forbidden, and the project says why."""
    hand.given_repo()
    assert hand.repo("POST", "/archive").data["archived"] is True

    response = hand.repo("POST", "/repository/branches", {"branch": "x", "ref": "main"})

    assert (response.status, response.message, response.fact) == (403, "403 Forbidden", "gl-project-archived")
    assert hand.repo("POST", "/unarchive").data["archived"] is False
    assert hand.repo("POST", "/repository/branches", {"branch": "x", "ref": "main"}).status == 201


def test_the_recorded_keys_of_the_other_bodies_are_there(hand: Hand) -> None:
    """The keys that hosts were recorded to send; each list of them from one response of gitlab.com."""
    hand.given_repo()
    project = hand.repo("GET", "").data
    branch = hand.repo("GET", "/repository/branches").data[0]

    assert set(project) >= {
        "_links", "archived", "avatar_url", "can_create_merge_request_in", "created_at", "creator_id", "default_branch",
        "description", "empty_repo", "forks_count", "http_url_to_repo", "id", "import_error", "import_status",
        "issues_enabled", "jobs_enabled", "last_activity_at", "lfs_enabled", "merge_method", "merge_requests_enabled",
        "name", "name_with_namespace", "namespace", "open_issues_count", "path", "path_with_namespace", "readme_url",
        "remove_source_branch_after_merge", "shared_with_groups", "ssh_url_to_repo", "star_count", "tag_list",
        "visibility", "web_url", "wiki_enabled",
    }  # fmt: skip
    assert set(project["namespace"]) == {
        "avatar_url",
        "full_path",
        "id",
        "kind",
        "name",
        "parent_id",
        "path",
        "web_url",
    }
    assert set(branch) == {
        "can_push", "commit", "default", "developers_can_merge", "developers_can_push", "merged", "name", "protected",
        "web_url",
    }  # fmt: skip
    assert set(branch["commit"]) == {
        "author_email", "author_name", "authored_date", "committed_date", "committer_email", "committer_name",
        "created_at", "extended_trailers", "id", "message", "parent_ids", "short_id", "title", "trailers", "web_url",
    }  # fmt: skip


@pytest.mark.parametrize(
    "junk", [None, {}, 1, "x", True, [], [1], [{}], [{"action": "create"}], {"a": {"b": None}}, "\ud800"]
)
def test_no_request_makes_the_fake_fall_over(hand: Hand, junk: Any) -> None:
    """Whatever the parameters hold, the response is GitLab's kind of response: a fake that raises would be a 500."""
    hand.given_merge_request_in_new_repo()
    parts = {"project": "1", "branch": "main", "name": "main", "iid": "1", "sha": "main", "path": "README.md"}
    parts |= {"namespace": "acme", "group": "acme"}

    junk_everywhere = dict.fromkeys(PARAMETERS, junk)
    for method, template, *_ in ROUTES.table:
        path = re.sub(r"\{(\w+)\}", lambda match: parts[match[1]], template)
        if method != "DELETE":
            response = hand.send(method, path, junk_everywhere)
            if response.status == 501:
                left = {name: value for name, value in junk_everywhere.items() if name not in response.message}
                response = hand.send(method, path, left)
            assert response.status < 500 or response.status == 501, (method, path)
            assert response.fact.startswith("gl-") or response.status == 501, (method, path)
    assert hand.send("POST", "//api/graphql", {"query": junk, "variables": junk}).status < 500


# branches


def _create_branch(hand: Hand, branch: str, ref: str = "main") -> Any:
    return hand.repo("POST", "/repository/branches", {"branch": branch, "ref": ref})


def test_a_branch_is_made_at_a_branch_or_a_commit(hand: Hand) -> None:
    """Its body says where it is and whether it is protected."""
    head = hand.given_repo()

    by_name, by_sha = _create_branch(hand, "feature/x"), _create_branch(hand, "y", head)

    assert (by_name.status, by_name.effect, by_name.data["name"]) == (201, True, "feature/x")
    assert by_name.data["commit"]["id"] == by_sha.data["commit"]["id"] == head
    assert by_name.data["protected"] is False
    assert hand.repo("GET", "/repository/branches/feature%2Fx").data == by_name.data


@pytest.mark.pitfall("GL-CB-04")
@pytest.mark.parametrize(
    ("branch", "ref", "text"),
    [
        ("main", "main", "Branch already exists"),
        ("a b", "main", "Branch name is invalid"),
        ("x", "nowhere", "Failed to create branch 'x': invalid reference name 'nowhere'"),
        (
            "main/x",
            "main",
            "Failed to create branch 'main/x': Branch name conflicts with existing branch hierarchy.",
        ),
    ],
)
def test_every_refusal_of_a_branch_is_400(hand: Hand, branch: str, ref: str, text: str) -> None:
    """Only the text tells them apart."""
    hand.given_repo()

    response = _create_branch(hand, branch, ref)

    assert (response.status, response.message, response.effect) == (400, text, False)


def test_what_is_missing_is_named(hand: Hand) -> None:
    """Both at once, as the parameter check does it."""
    hand.given_repo()

    assert hand.repo("POST", "/repository/branches", {}).data["error"] == "branch is missing, ref is missing"
    assert _create_branch(hand, "").data["error"] == "branch is empty"


@pytest.mark.pitfall("GL-CB-04", "GL-CF-09")
def test_a_push_rule_is_in_the_way_of_a_name(hand: Hand) -> None:
    """Free text, 400."""
    hand.given_repo()
    hand.fake.branch_name_pattern = "(feat|fix)/.*"

    assert _create_branch(hand, "x").message == "Branch name does not follow the pattern '(feat|fix)/.*'"
    assert _create_branch(hand, "feat/x").status == 201


def test_in_an_empty_project_the_first_branch_brings_a_readme(hand: Hand) -> None:
    """GitLab makes the default branch before it looks for the ref."""
    hand.forge.create_repo(REPO)

    response = _create_branch(hand, "x")

    assert response.status == 201
    assert [name for name, _ in hand.forge.branches(REPO)] == ["main", "x"]


@pytest.mark.pitfall("GL-CB-06", "GL-CR-11")
def test_a_new_branch_may_be_late(hand: Hand) -> None:
    """201, and then not found for a while."""
    hand.given_repo()
    hand.fake.branch_lag = 2
    _create_branch(hand, "x")

    statuses = [hand.repo("GET", "/repository/branches/x").status for _ in range(3)]

    assert statuses == [404, 404, 200]


@pytest.mark.pitfall("GL-CB-05")
def test_a_wildcard_is_in_the_way_of_a_developer(hand: Hand) -> None:
    """The text does not name the rule."""
    hand.given_repo()
    hand.repo("POST", "/protected_branches", {"name": "release/*"})
    hand.fake.role = 30

    response = _create_branch(hand, "release/1.0")

    assert response.message == "You are not allowed to create protected branches on this project."
    assert _create_branch(hand, "feature").status == 201


def test_a_name_that_takes_merge_requests_only_starts_from_what_is_protected(hand: Hand) -> None:
    """Nobody may push there, so its first commits must have been let in elsewhere."""
    hand.given_repo()
    loose = hand.given_feature("loose")
    hand.repo("POST", "/protected_branches", {"name": "main"})
    hand.repo("POST", "/protected_branches", {"name": "release/*", "push_access_level": 0})

    refused, taken = _create_branch(hand, "release/1", loose), _create_branch(hand, "release/2", "main")

    assert refused.message.startswith("You can only use an existing protected branch ref")
    assert taken.status == 201
    assert taken.data["protected"] is True


def test_branches_are_deleted_but_for_the_default_one(hand: Hand) -> None:
    """Maintainers may delete protected branches; the default one nobody may."""
    hand.given_repo()
    hand.given_feature("kept")
    hand.repo("POST", "/protected_branches", {"name": "kept"})

    default = hand.repo("DELETE", "/repository/branches/main")
    hand.fake.role = 30
    developer = hand.repo("DELETE", "/repository/branches/kept")
    hand.fake.role = 40
    maintainer = hand.repo("DELETE", "/repository/branches/kept")

    assert (default.status, default.message) == (400, "The default branch of a project cannot be deleted.")
    assert developer.status == 400
    assert developer.message.startswith("You are not allowed to delete protected branches")
    assert (maintainer.status, maintainer.data, maintainer.effect) == (204, None, True)
    assert hand.repo("DELETE", "/repository/branches/kept").message == "404 Branch Not Found"


# limits, and what stands before GitLab


@pytest.mark.pitfall("GL-X-05", "GL-X-09", "GL-X-12", "GL-X-13", "GL-CR-10", "GL-GR-04", "GL-MG-07")
@pytest.mark.parametrize(
    ("canned", "status", "kind", "asked"),
    [
        (gitlab_responses.APPLICATION_LIMIT, 429, "application/json", "60"),
        (gitlab_responses.RACK_ATTACK, 429, "text/plain", "42"),
        (gitlab_responses.IP_BLOCK, 403, "text/plain", None),
        (gitlab_responses.BAD_GATEWAY, 502, "text/html; charset=utf-8", None),
        (gitlab_responses.SIGN_IN_PAGE, 200, "text/html; charset=utf-8", None),
        (gitlab_responses.SERVER_ERROR, 500, "application/json", None),
        (gitlab_responses.REPOSITORY_NOT_CREATED, 400, "application/json", None),
        (gitlab_responses.EMPTY_ACCEPTED, 202, "application/json", None),
        (gitlab_responses.URI_TOO_LARGE, 414, "text/html", None),
    ],
)
def test_a_fault_script_can_play_what_stands_before_gitlab(
    hand: Hand, canned: Any, status: int, kind: str, asked: str | None
) -> None:
    """Ready-made responses for injected faults."""
    hand.given_repo()
    hand.host.script.add(
        Fault(kind="status", endpoint="/projects", status=canned.status, headers=canned.headers, body=canned.body)
    )

    response = hand.repo("GET", "")

    assert (response.status, response.headers["Content-Type"]) == (status, kind)
    assert response.headers.get("Retry-After") == asked
    assert hand.repo("GET", "").status == 200


@pytest.mark.pitfall("GL-X-05")
def test_the_two_rate_limits_differ_in_what_the_headers_say() -> None:
    """The application's shows the other limiter's headers, which has plenty left."""
    application, rack = gitlab_responses.APPLICATION_LIMIT, gitlab_responses.RACK_ATTACK

    assert json.loads(application.body)["message"]["error"].startswith("This endpoint has been requested too many")
    assert application.headers["RateLimit-Remaining"] != "0"
    assert rack.body == b"Retry later\n"
    assert rack.headers["RateLimit-Remaining"] == "0"
    assert {"RateLimit-Limit", "RateLimit-Observed", "RateLimit-Reset", "RateLimit-ResetTime"} <= set(rack.headers)


# plain python-gitlab, used by hand


def _story(client: gitlab.Gitlab) -> list[str]:
    client.auth()
    group = client.namespaces.get("acme/platform")
    project = client.projects.create(
        {"name": "widgets", "path": "widgets", "namespace_id": group.id, "initialize_with_readme": True}
    )
    project.branches.create({"branch": "feature/x", "ref": "main"})
    actions = [
        {"action": "create", "file_path": "bin/run", "content": "#!/bin/sh\n"},
        {"action": "chmod", "file_path": "bin/run", "execute_filemode": True},
    ]
    project.commits.create({"branch": "feature/x", "commit_message": "Add a script", "actions": actions})
    request = project.mergerequests.create(
        {"source_branch": "feature/x", "target_branch": "main", "title": "A script", "labels": ["one", "two"]}
    )
    request.merge(sha=project.mergerequests.get(request.iid).sha, should_remove_source_branch=True)
    tree = project.repository_tree(recursive=True, get_all=True)
    names = [branch.name for branch in project.branches.list(iterator=True)]
    rules = [rule.name for rule in project.protectedbranches.list(get_all=True)]
    return [project.mergerequests.get(request.iid).state, *(item["path"] for item in tree), *names, *rules]


_TOLD = ["merged", "README.md", "bin", "bin/run", "main", "main"]


def test_plain_python_gitlab_can_be_used_on_the_mounted_fake(hand: Hand) -> None:
    """The fake is no private dialect of this library's provider."""
    with responses.RequestsMock() as rsps:
        mount(hand.host, rsps, "https://gitlab.com")

        told = _story(gitlab.Gitlab(private_token=hand.fake.token))

    assert told == _TOLD
    assert all(entry.fact in FACTS for entry in hand.host.request_log.entries)


def test_plain_python_gitlab_can_be_used_on_the_served_fake_below_a_path(tmp_path: pathlib.Path) -> None:
    """Over a socket, with an OAuth token, at an installation that lives below a path."""
    hand = a_hand(tmp_path, base="https://host.example/gitlab")
    with serving(hand.host) as url:
        client = gitlab.Gitlab(f"{url}/gitlab", oauth_token=hand.fake.token)

        told = _story(client)

        client.session.close()
    assert told == _TOLD


def test_python_gitlab_tells_an_unknown_project_from_a_bad_token(hand: Hand) -> None:
    """The SDK's classes follow from the fake's statuses."""
    with responses.RequestsMock() as rsps:
        mount(hand.host, rsps, "https://gitlab.com")

        with pytest.raises(gitlab.GitlabGetError, match="404 Project Not Found"):
            gitlab.Gitlab(private_token=hand.fake.token).projects.get("acme/nothing")
        with pytest.raises(gitlab.GitlabAuthenticationError, match="401 Unauthorized"):
            gitlab.Gitlab(private_token="wrong").projects.get("acme/nothing")


def test_a_fake_is_a_host_by_itself(tmp_path: pathlib.Path) -> None:
    """It needs no request log and no script around it."""
    fake = a_hand(tmp_path).fake

    assert isinstance(fake, FakeGitLab)
    assert Hand(fake).send("GET", "/metadata").data["enterprise"] is False
