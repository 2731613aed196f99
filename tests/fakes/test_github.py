"""The GitHub fake, by hand: accounts, repositories, branches, refs, objects, protection, paging, limits, credentials.

Every response is held against the fact that it cites; see github_hand.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gitprovider.fakes.github.routes import GRAPHQL, ROUTES
from gitprovider.fakes.github.rulesets import KEY as RULESETS
from gitprovider.fakes.github.server import App
from gitprovider.fakes.http import Request
from gitprovider.models import BranchProtection, Visibility
from tests.support.github_endpoints import endpoints
from tests.support.github_hand import ORIGIN, PROTECTION, REVIEWS, Hand, claim, encoded

R = "/repos/acme/widgets"
Build = Callable[..., Hand]


# Accounts and credentials


def test_a_wrong_token_is_refused_as_bad_credentials(hub: Hand) -> None:
    """401, with the documentation's root as its URL."""
    stranger = Hand(hub.fake, token="ghp_wrong")

    status, message = stranger.refused("GET", R)

    assert (status, message) == (401, "Bad credentials")


def test_anonymous_callers_see_public_repositories_only(hub: Hand) -> None:
    """A private repository is not there, a public one is read without rights, and nothing is written."""
    hub.fake.forge.create_repo("acme/open", visibility=Visibility.PUBLIC, auto_init=True)
    nobody = Hand(hub.fake, token="")

    hidden = nobody.refused("GET", R)
    seen = nobody.get("/repos/acme/open")
    written = nobody.refused("POST", "/repos/acme/open/git/refs", {"ref": "refs/heads/x", "sha": "0" * 40})

    assert hidden == (404, "Not Found")
    assert "permissions" not in seen
    assert written == (401, "Requires authentication")
    assert nobody.last.headers["X-RateLimit-Limit"] == "60"


def test_a_request_without_user_agent_is_refused(hub: Hand) -> None:
    """GitHub takes no request without one."""
    hub.send("GET", R, headers={"User-Agent": "x"})
    request = hub.seen[-1][0]

    response = hub.fake.handle(type(request)(method="GET", path=R, headers={"authorization": f"token {hub.token}"}))

    assert (response.status, response.fact) == (403, "gh-no-user-agent")


def test_accounts_say_whether_they_are_users_or_organizations(hub: Hand) -> None:
    """GET /users has both; GET /orgs has organizations only."""
    assert hub.get("/users/acme")["type"] == "Organization"
    assert hub.get("/users/hubot")["type"] == "User"
    assert hub.get("/user")["login"] == "octocat"
    assert hub.get("/orgs/acme")["login"] == "acme"
    assert hub.refused("GET", "/orgs/hubot")[0] == 404
    assert hub.refused("GET", "/users/nobody")[0] == 404


def test_an_app_gets_an_installation_token_that_works_for_an_hour(github_with: Build) -> None:
    """The App finds its installation, gets a token, and the token is refused once it has expired."""
    clock = [datetime(2024, 1, 1, tzinfo=UTC)]
    hub = github_with(app=App(id=7), now=lambda: clock[0])
    app = Hand(hub.fake, token=claim(7, clock[0] + timedelta(minutes=9)))
    number = app.get("/orgs/acme/installation")["id"]
    made = app.send("POST", f"/app/installations/{number}/access_tokens")
    installation = Hand(hub.fake, token=made["token"])

    seen = installation.get(R)["full_name"]
    clock[0] += timedelta(minutes=61)
    late = installation.refused("GET", R)

    assert seen == "acme/widgets"
    assert made["expires_at"] == "2024-01-01T01:00:00Z"
    assert late == (401, "Bad credentials")


def test_an_installation_has_no_user_and_makes_no_user_repositories(github_with: Build) -> None:
    """Both are refused to an App's token."""
    hub = github_with(app=App())
    token = hub.fake.issue_token("acme")["token"]
    installation = Hand(hub.fake, token=token)

    assert installation.refused("GET", "/user") == (403, "Resource not accessible by integration")
    assert installation.refused("POST", "/user/repos", {"name": "x"})[0] == 403


@pytest.mark.parametrize(
    ("app_id", "minutes", "fact"), [(8, 9, "gh-bad-jwt"), (7, -1, "gh-bad-jwt"), (7, 30, "gh-jwt-lifetime")]
)
def test_a_claim_of_another_app_or_lifetime_is_refused(
    github_with: Build, app_id: int, minutes: int, fact: str
) -> None:
    """The issuer must be the App, and the claim neither expired nor good for more than ten minutes."""
    hub = github_with(app=App(id=7))
    app = Hand(hub.fake, token=claim(app_id, datetime.now(UTC) + timedelta(minutes=minutes)))

    app.refused("GET", "/orgs/acme/installation")

    assert app.last.fact == fact


def test_a_token_and_a_claim_do_not_stand_for_each_other(github_with: Build) -> None:
    """The App's own endpoints take its signed claim only, and the others none; unknown installations are not found."""
    hub = github_with(app=App(id=7))
    app = Hand(hub.fake, token=claim(7, datetime.now(UTC) + timedelta(minutes=5)))

    assert hub.refused("POST", "/app/installations/101/access_tokens")[0] == 401
    assert app.refused("POST", "/app/installations/9/access_tokens")[0] == 404
    assert app.refused("GET", "/users/hubot/installation")[0] == 404
    assert app.refused("GET", R)[0] == 401


# Headers


def test_every_answer_carries_limits_a_request_id_and_a_date(hub: Hand) -> None:
    """The counter goes down with each request, and no id comes twice."""
    first = hub.send("GET", R) and hub.last.headers
    second = hub.send("GET", R) and hub.last.headers

    assert int(first["X-RateLimit-Remaining"]) - int(second["X-RateLimit-Remaining"]) == 1
    assert first["X-RateLimit-Resource"] == "core"
    assert first["X-GitHub-Request-Id"] != second["X-GitHub-Request-Id"]
    assert first["Date"].endswith("GMT")
    assert first["ETag"] == second["ETag"]


def test_the_primary_limit_ends_with_its_hour(github_with: Build) -> None:
    """The request above the limit is 403 with nothing remaining; an hour later there is a new window."""
    clock = [datetime(2024, 1, 1, tzinfo=UTC)]
    hub = github_with(rate_limit=2, now=lambda: clock[0])
    hub.get(R)
    hub.get(R)

    status, message = hub.refused("GET", R)
    limited = hub.last.headers
    clock[0] += timedelta(hours=1)
    hub.get(R)

    assert (status, "API rate limit exceeded" in message) == (403, True)
    assert limited["X-RateLimit-Remaining"] == "0"
    assert int(limited["X-RateLimit-Reset"]) == int(datetime(2024, 1, 1, 1, tzinfo=UTC).timestamp())
    assert hub.last.status == 200


def test_too_many_writes_in_a_minute_meet_the_secondary_limit(github_with: Build) -> None:
    """403 with the seconds to wait, though requests remain; reads go on, and after the wait writes do too."""
    clock = [datetime(2024, 1, 1, tzinfo=UTC)]
    hub = github_with(write_limit=1, now=lambda: clock[0])
    hub.send("POST", "/orgs/acme/repos", {"name": "a"})
    clock[0] += timedelta(seconds=20)

    status, message = hub.refused("POST", "/orgs/acme/repos", {"name": "b"})
    limited = hub.last.headers
    read = hub.get(R) and hub.last.status
    clock[0] += timedelta(seconds=int(limited["Retry-After"]))
    hub.send("POST", "/orgs/acme/repos", {"name": "b"})

    assert (status, "secondary rate limit" in message) == (403, True)
    assert (limited["Retry-After"], int(limited["X-RateLimit-Remaining"]) > 0) == ("40", True)
    assert read == 200
    assert hub.last.effect


# Repositories


def test_creating_a_repository_takes_effect_once(hub: Hand) -> None:
    """201 with Location and the whole repository; the same name again is 422 with the reason in errors."""
    body = {"name": "gadgets", "private": True, "description": "Things"}

    made = hub.send("POST", "/orgs/acme/repos", body)
    created = hub.last
    again = hub.send("POST", "/orgs/acme/repos", body)

    assert (made["full_name"], made["private"], made["visibility"]) == ("acme/gadgets", True, "private")
    assert (made["default_branch"], made["size"], made["description"]) == ("main", 0, "Things")
    assert created.effect
    assert created.headers["Location"] == f"{ORIGIN}/repos/acme/gadgets"
    assert (hub.last.status, hub.last.effect) == (422, False)
    assert again["errors"][0]["message"] == "name already exists on this account"


def test_a_user_repository_is_public_unless_private_is_sent(hub: Hand) -> None:
    """``visibility`` is no key of POST /user/repos, and has no effect there."""
    public = hub.send("POST", "/user/repos", {"name": "a", "visibility": "private"})
    private = hub.send("POST", "/user/repos", {"name": "b", "private": True})

    assert (public["full_name"], public["private"]) == ("octocat/a", False)
    assert (private["visibility"], private["owner"]["type"]) == ("private", "User")
    assert "organization" not in private


def test_a_name_is_changed_without_a_word(hub: Hand) -> None:
    """What a name may not hold becomes a dash."""
    made = hub.send("POST", "/orgs/acme/repos", {"name": "my app Åx"})

    assert made["name"] == "my-app-x"


def test_internal_repositories_are_for_enterprises(github_with: Build) -> None:
    """github.com refuses them, an Enterprise Server has them."""
    hub = github_with(base="https://ghe.example.com/api/v3")
    body = {"name": "inner", "visibility": "internal"}

    made = hub.send("POST", "https://ghe.example.com/api/v3/orgs/acme/repos", body)
    hub.fake.base = "https://api.github.com"
    refused = hub.refused("POST", "https://ghe.example.com/api/v3/orgs/acme/repos", body)

    assert made["visibility"] == "internal"
    assert refused[0] == 422


def test_nothing_is_created_under_another_name(hub: Hand) -> None:
    """An unknown organization and another user's account are both 404."""
    assert hub.refused("POST", "/orgs/nobody/repos", {"name": "x"}) == (404, "Not Found")
    assert hub.refused("POST", "/orgs/hubot/repos", {"name": "x"}) == (404, "Not Found")


def test_an_enterprise_server_answers_below_its_prefix_only(github_with: Build) -> None:
    """Without /api/v3 there is no route, and links keep the prefix."""
    hub = github_with(base="https://ghe.example.com/api/v3")

    seen = hub.send("GET", f"https://ghe.example.com/api/v3{R}")
    missing = hub.refused("GET", f"https://ghe.example.com{R}")

    assert seen["url"] == "https://ghe.example.com/api/v3/repos/acme/widgets"
    assert missing[0] == 404


def test_links_lead_to_where_the_request_arrived(hub: Hand) -> None:
    """A fake that is served elsewhere does not send its callers to api.github.com."""
    seen = hub.send("GET", f"http://127.0.0.1:8080{R}")

    assert seen["url"] == f"http://127.0.0.1:8080{R}"


def test_a_renamed_repository_redirects_reads_by_301_and_writes_by_307(hub: Hand) -> None:
    """Location has the id, the rest of the path and the query; nothing is written."""
    record = hub.fake.forge.rename_repo("acme/widgets", "acme/gizmos")

    hub.send("GET", f"{R}/branches?per_page=100&protected=true")
    read = hub.last
    hub.send("POST", f"{R}/git/refs", {"ref": "refs/heads/x", "sha": "0" * 40})
    write = hub.last
    followed = hub.send("GET", read.headers["Location"])

    place = f"{ORIGIN}/repositories/{record.id}"
    assert (read.status, read.headers["Location"]) == (301, f"{place}/branches?per_page=100&protected=true")
    assert (write.status, write.headers["Location"], write.effect) == (307, f"{place}/git/refs", False)
    assert json.loads(write.body)["url"] == f"{place}/git/refs"
    assert followed == []
    assert hub.get(f"/repositories/{record.id}")["full_name"] == "acme/gizmos"
    assert hub.refused("GET", "/repositories/999")[0] == 404


def test_an_archived_repository_is_read_only(hub: Hand) -> None:
    """Reads go on, writes are 403, and it can still be deleted."""
    hub.fake.forge.update_repo("acme/widgets", archived=True)

    assert hub.get(R)["archived"] is True
    assert hub.refused("POST", f"{R}/git/refs", {"ref": "refs/heads/x", "sha": "0" * 40}) == (
        403,
        "Repository was archived so is read-only.",
    )
    assert hub.send("DELETE", R) is None
    assert hub.last.effect
    assert hub.refused("GET", R)[0] == 404


def test_deleting_a_repository_needs_administration(github_with: Build) -> None:
    """403 with the reason, and it stays."""
    hub = github_with(admin=False)

    assert hub.refused("DELETE", R) == (403, "Must have admin rights to Repository.")
    assert hub.get(R)["permissions"]["admin"] is False


def test_a_new_repository_lags_for_as_many_reads_as_asked(github_with: Build) -> None:
    """The first reads are 404, then it is there."""
    hub = github_with(lag=2)
    hub.send("POST", "/orgs/acme/repos", {"name": "fresh"})

    statuses = [hub.send("GET", "/repos/acme/fresh") and hub.last.status for _ in range(3)]

    assert statuses == [404, 404, 200]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "Problems parsing JSON"),
        (b"[]", 400, "Body should be a JSON object"),
        (b"{}", 422, 'Invalid request.\n\n"name" wasn\'t supplied.'),
        (b'{"name": 1}', 422, "Invalid request.\n\nFor 'properties/name', 1 is not a string."),
        (
            b'{"name": "x", "private": "yes"}',
            422,
            "Invalid request.\n\nFor 'properties/private', yes is not a boolean.",
        ),
    ],
)
def test_a_body_of_another_shape_is_refused(hub: Hand, body: bytes, status: int, message: str) -> None:
    """Junk, a list, an absent field and a field of another type each have GitHub's words."""
    assert hub.refused("POST", "/orgs/acme/repos", body) == (status, message)


# Branches and pages


def fill(hub: Hand, count: int) -> str:
    sha = hub.head("acme/widgets", "main")
    for number in range(count):
        hub.fake.forge.create_branch("acme/widgets", f"b{number:03}", sha)
    return sha


def test_branches_come_in_pages_that_link_to_one_another(hub: Hand) -> None:
    """Links go by the repository's id, keep the query, and name prev, next, last and first where there is one."""
    fill(hub, 4)

    first = hub.get(f"{R}/branches?per_page=2")
    links = hub.last.headers["Link"]
    middle = hub.get("/repositories/1/branches?per_page=2&page=2")
    both = hub.last.headers["Link"]
    last = hub.get(f"{R}/branches?per_page=2&page=3")

    assert [b["name"] for b in first + middle + last] == ["b000", "b001", "b002", "b003", "main"]
    assert links == (
        f'<{ORIGIN}/repositories/1/branches?per_page=2&page=2>; rel="next", '
        f'<{ORIGIN}/repositories/1/branches?per_page=2&page=3>; rel="last"'
    )
    assert [part.split('rel="')[1] for part in both.split(", ")] == ['prev"', 'next"', 'last"', 'first"']
    assert 'rel="next"' not in hub.last.headers["Link"]


def test_a_page_has_30_entries_unless_asked_and_100_at_most(hub: Hand) -> None:
    """A larger per_page is cut without a word, and one page alone has no links."""
    fill(hub, 110)

    assert len(hub.get(f"{R}/branches")) == 30
    assert len(hub.get(f"{R}/branches?per_page=500")) == 100
    assert hub.get(f"{R}/branches?per_page=100&page=9") == []


def test_an_empty_repository_has_no_branches_and_no_git_data(hub: Hand) -> None:
    """The list is empty, the branch is 404, and every Git data endpoint is 409."""
    hub.send("POST", "/orgs/acme/repos", {"name": "empty"})
    e = "/repos/acme/empty"

    assert hub.get(f"{e}/branches") == []
    assert hub.refused("GET", f"{e}/branches/main") == (404, "Branch not found")
    requests: list[tuple[str, str, Any]] = [
        ("GET", "git/ref/heads/main", None),
        ("GET", "git/matching-refs/heads", None),
        ("POST", "git/refs", {"ref": "refs/heads/x", "sha": "0" * 40}),
        ("POST", "git/blobs", {"content": "x"}),
        ("POST", "git/trees", {"tree": []}),
        ("POST", "git/commits", {"message": "m", "tree": "0" * 40}),
        ("GET", "git/trees/main", None),
    ]
    for method, path, body in requests:
        assert hub.refused(method, f"{e}/{path}", body) == (409, "Git Repository is empty.")


def test_a_branch_carries_its_tree(hub: Hand) -> None:
    """One read gives the head and the tree to build on, also for a name with slashes, encoded or not."""
    sha = hub.head("acme/widgets", "main")
    hub.branch("acme/widgets", "feature/#1", sha)

    main = hub.get(f"{R}/branches/main")
    encoded_name = hub.get(f"{R}/branches/feature%2F%231")
    plain_name = hub.get(f"{R}/branches/feature/%231")

    assert main["commit"]["sha"] == sha
    assert main["commit"]["commit"]["tree"]["sha"] == hub.get(f"{R}/git/commits/{sha}")["tree"]["sha"]
    assert encoded_name["name"] == plain_name["name"] == "feature/#1"


# Refs


def test_creating_a_ref_takes_effect_once(hub: Hand) -> None:
    """201, then 422 "Reference already exists"; the response does not say whether it is protected."""
    sha = hub.head("acme/widgets", "main")
    body = {"ref": "refs/heads/topic", "sha": sha}

    made = hub.send("POST", f"{R}/git/refs", body)
    effect = hub.last.effect

    assert (made["ref"], made["object"]["sha"], effect) == ("refs/heads/topic", sha, True)
    assert "protected" not in made
    assert hub.refused("POST", f"{R}/git/refs", body) == (422, "Reference already exists")
    assert hub.get(f"{R}/git/refs/heads/topic") == made
    assert [ref["ref"] for ref in hub.get(f"{R}/git/matching-refs/heads/t")] == ["refs/heads/topic"]


@pytest.mark.parametrize(
    ("ref", "sha", "message"),
    [
        ("refs/heads/main/below", None, "Reference update failed"),
        ("main", None, "main is not a valid ref name."),
        ("refs/heads/", None, "refs/heads/ is not a valid ref name."),
        ("refs/heads/a..b", None, "refs/heads/a..b is not a valid ref name."),
        ("refs/heads/x", "1" * 40, "Object does not exist"),
        ("refs/heads/x", "HEAD", "Object does not exist"),
    ],
)
def test_a_ref_that_cannot_be_is_refused(hub: Hand, ref: str, sha: str | None, message: str) -> None:
    """A prefix clash, a bare name, a bad name and an unknown commit each have GitHub's words."""
    body = {"ref": ref, "sha": sha or hub.head("acme/widgets", "main")}

    assert hub.refused("POST", f"{R}/git/refs", body) == (422, message)


def test_a_ref_moves_forward_only(hub: Hand) -> None:
    """A commit that does not descend from the head is 422; a move to where it is has no effect."""
    old = hub.head("acme/widgets", "main")
    new = hub.commit("acme/widgets", "main", {"a.txt": "a"})

    backwards = hub.refused("PATCH", f"{R}/git/refs/heads/main", {"sha": old})
    hub.send("PATCH", f"{R}/git/refs/heads/main", {"sha": new})

    assert backwards == (422, "Update is not a fast forward")
    assert not hub.last.effect
    assert hub.head("acme/widgets", "main") == new


def test_force_rewinds_an_unprotected_branch(hub: Hand) -> None:
    """With force the same move is taken."""
    old = hub.head("acme/widgets", "main")
    hub.commit("acme/widgets", "main", {"a.txt": "a"})

    hub.send("PATCH", f"{R}/git/refs/heads/main", {"sha": old, "force": True})

    assert hub.last.effect
    assert hub.head("acme/widgets", "main") == old


def test_a_missing_ref_or_object_is_told_apart(hub: Hand) -> None:
    """PATCH and DELETE of a ref that is not there are 422, GET is 404, an unknown commit is 422."""
    sha = hub.head("acme/widgets", "main")

    assert hub.refused("PATCH", f"{R}/git/refs/heads/gone", {"sha": sha}) == (422, "Reference does not exist")
    assert hub.refused("DELETE", f"{R}/git/refs/heads/gone") == (422, "Reference does not exist")
    assert hub.refused("GET", f"{R}/git/ref/heads/gone") == (404, "Not Found")
    assert hub.refused("PATCH", f"{R}/git/refs/heads/main", {"sha": "1" * 40}) == (422, "Object does not exist")
    assert hub.refused("DELETE", f"{R}/git/refs/heads/main")[0] == 422


def test_there_is_no_patch_of_the_singular_route(hub: Hand) -> None:
    """GitHub reads git/ref/… and writes git/refs/…"""
    assert hub.refused("PATCH", f"{R}/git/ref/heads/main", {"sha": "1" * 40})[0] == 404


def test_a_new_ref_lags_for_as_many_reads_as_asked(github_with: Build) -> None:
    """A read and a pull request meet what was before."""
    hub = github_with(ref_lag=2)
    hub.branch("acme/widgets", "topic", hub.head("acme/widgets", "main"))

    assert hub.refused("GET", f"{R}/git/ref/heads/topic")[0] == 404
    assert hub.refused("POST", f"{R}/pulls", {"title": "t", "head": "topic", "base": "main"})[0] == 422
    assert hub.get(f"{R}/git/ref/heads/topic")["ref"] == "refs/heads/topic"


# Objects


def test_objects_have_no_effect_until_a_ref_moves(hub: Hand) -> None:
    """Blob, tree and commit are made unseen; content comes back byte for byte."""
    data = bytes(range(256))
    blob = hub.send("POST", f"{R}/git/blobs", {"content": encoded(data), "encoding": "base64"})["sha"]
    base = hub.get(f"{R}/branches/main")["commit"]
    entry = {"path": "bin/data", "mode": "100755", "type": "blob", "sha": blob}
    tree = hub.send("POST", f"{R}/git/trees", {"base_tree": base["commit"]["tree"]["sha"], "tree": [entry]})
    body = {"message": "Add it", "tree": tree["sha"], "parents": [base["sha"]]}
    commit = hub.send("POST", f"{R}/git/commits", {**body, "author": {"name": "A", "email": "a@example.com"}})

    assert not any(response.effect for _, response in hub.seen)
    assert base64.b64decode(hub.get(f"{R}/git/blobs/{blob}")["content"]) == data
    assert [item["path"] for item in tree["tree"]] == ["README.md", "bin"]
    whole = hub.get(f"{R}/git/trees/{tree['sha']}?recursive=1")["tree"]
    assert [(item["path"], item["mode"], item["type"]) for item in whole] == [
        ("README.md", "100644", "blob"),
        ("bin", "040000", "tree"),
        ("bin/data", "100755", "blob"),
    ]
    assert (commit["author"]["name"], commit["committer"]["email"]) == ("A", "a@example.com")
    assert [parent["sha"] for parent in commit["parents"]] == [base["sha"]]
    assert hub.get(f"{R}/git/commits/{commit['sha']}")["message"] == "Add it"


def test_a_tree_without_base_holds_only_what_was_sent(hub: Hand) -> None:
    """A forgotten base_tree deletes everything else, as on GitHub."""
    made = hub.send(
        "POST", f"{R}/git/trees", {"tree": [{"path": "a", "mode": "100644", "type": "blob", "content": "a"}]}
    )

    assert [item["path"] for item in made["tree"]] == ["a"]


def test_a_null_sha_deletes(hub: Hand) -> None:
    """The file is gone from the tree; a file that is not there cannot be deleted."""
    base = hub.get(f"{R}/branches/main")["commit"]["commit"]["tree"]["sha"]

    def tree(path: str) -> dict[str, Any]:
        return {"base_tree": base, "tree": [{"path": path, "mode": "100644", "type": "blob", "sha": None}]}

    made = hub.send("POST", f"{R}/git/trees", tree("README.md"))

    assert made["tree"] == []
    assert hub.refused("POST", f"{R}/git/trees", tree("gone")) == (422, "GitRPC::BadObjectState")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"path": "a", "type": "blob", "sha": None}, "Must supply a valid tree.mode"),
        ({"path": "a", "mode": "644", "content": "a"}, "Must supply a valid tree.mode"),
        ({"path": "a//b", "mode": "100644", "content": "a"}, "tree.path contains a malformed path component"),
        ({"path": ".git/x", "mode": "100644", "content": "a"}, "tree.path contains a malformed path component"),
        ({"mode": "100644", "content": "a"}, "tree.path contains a malformed path component"),
        ({"path": "a", "mode": "100644"}, "Must supply either tree.sha or tree.content"),
        (
            {"path": "a", "mode": "100644", "sha": "1" * 40, "content": "a"},
            "Must supply either tree.sha or tree.content",
        ),
        ({"path": "a", "mode": "100644", "sha": "1" * 40}, f"tree.sha {'1' * 40} is not a valid blob"),
    ],
)
def test_a_tree_entry_that_cannot_be_is_refused(hub: Hand, entry: dict[str, Any], message: str) -> None:
    """The mode is needed on every entry, deletions too; sha and content exclude each other."""
    assert hub.refused("POST", f"{R}/git/trees", {"tree": [entry]}) == (422, message)


def test_a_tree_of_too_many_files_times_out(hub: Hand) -> None:
    """251 files given inline are more than GitHub takes; 250 are not."""
    entries = [{"path": f"f{n}", "mode": "100644", "type": "blob", "content": "x"} for n in range(251)]

    status, message = hub.refused("POST", f"{R}/git/trees", {"tree": entries})
    hub.send("POST", f"{R}/git/trees", {"tree": entries[1:]})

    assert (status, "your request timed out" in message) == (422, True)
    assert hub.last.status == 201


def test_a_tree_above_the_limit_is_truncated(github_with: Build) -> None:
    """The response says so, and holds as many entries as the limit."""
    hub = github_with(tree_limit=2)
    hub.commit("acme/widgets", "main", {"a": "a", "b": "b"})

    tree = hub.get(f"{R}/git/trees/main?recursive=1")

    assert (len(tree["tree"]), tree["truncated"]) == (2, True)


def test_objects_that_are_not_there_are_refused(hub: Hand) -> None:
    """Each has its own words; a commit's sha is no base_tree."""
    head = hub.head("acme/widgets", "main")
    tree = hub.get(f"{R}/git/commits/{head}")["tree"]["sha"]
    commit = {"message": "m", "tree": tree}

    assert (
        hub.refused("POST", f"{R}/git/trees", {"base_tree": head, "tree": []})[1] == "base_tree is not a valid tree oid"
    )
    assert hub.refused("POST", f"{R}/git/commits", {**commit, "tree": "1" * 40}) == (422, "Tree SHA does not exist")
    assert hub.refused("POST", f"{R}/git/commits", {**commit, "parents": [tree]})[1].startswith("Parent SHA does not")
    assert hub.refused("POST", f"{R}/git/commits", {**commit, "author": {}})[1].endswith(
        '"email", "name" weren\'t supplied.'
    )
    assert hub.refused("POST", f"{R}/git/blobs", {"content": "***", "encoding": "base64"})[0] == 422
    for path in ("git/blobs/", "git/trees/", "git/commits/"):
        assert hub.refused("GET", f"{R}/{path}{'1' * 40}") == (404, "Not Found")
    assert hub.refused("GET", f"{R}/commits/nope") == (422, "No commit found for SHA: nope")
    assert hub.refused("GET", f"{R}/compare/main...nope") == (404, "Not Found")


def test_a_commit_and_a_comparison_tell_what_changed(hub: Hand) -> None:
    """Ahead, behind, the merge base, and the files with their lines."""
    base = hub.head("acme/widgets", "main")
    hub.branch("acme/widgets", "topic", base)
    one = hub.commit("acme/widgets", "topic", {"a.txt": "a\nb\n"})
    two = hub.commit("acme/widgets", "main", {"README.md": None})

    commit = hub.get(f"{R}/commits/topic")
    compared = hub.get(f"{R}/compare/main...topic")

    assert (commit["sha"], commit["stats"]["additions"], commit["files"][0]["status"]) == (one, 2, "added")
    assert (compared["status"], compared["ahead_by"], compared["behind_by"]) == ("diverged", 1, 1)
    assert compared["merge_base_commit"]["sha"] == base
    assert [item["sha"] for item in compared["commits"]] == [one]
    assert hub.get(f"{R}/compare/{base}...main")["status"] == "ahead"
    assert hub.get(f"{R}/compare/{two}...main")["status"] == "identical"
    assert hub.get(f"{R}/compare/main...{base}")["status"] == "behind"
    assert hub.get(f"{R}/compare/main...topic?page=2")["commits"] == []


# Contents


def test_the_contents_api_makes_the_first_commit(hub: Hand) -> None:
    """It is the one way into an empty repository; afterwards the Git data API works."""
    hub.send("POST", "/orgs/acme/repos", {"name": "empty"})
    body = {"message": "Begin", "content": encoded(b"hi"), "branch": "main"}

    made = hub.send("PUT", "/repos/acme/empty/contents/docs/a%20b.txt", body)

    assert (hub.last.status, hub.last.effect) == (201, True)
    assert (made["content"]["path"], made["commit"]["parents"], made["commit"]["message"]) == (
        "docs/a b.txt",
        [],
        "Begin",
    )
    assert hub.head("acme/empty", "main") == made["commit"]["sha"]


def test_the_contents_api_updates_only_what_it_was_shown(hub: Hand) -> None:
    """Without the blob's sha it is 422, with another one 409, with the right one 200."""
    url = f"{R}/contents/README.md"
    body = {"message": "Change", "content": encoded(b"new")}
    sha = hub.get(f"{R}/git/trees/main")["tree"][0]["sha"]

    assert hub.refused("PUT", url, body)[0] == 422
    assert hub.refused("PUT", url, {**body, "sha": "1" * 40})[0] == 409
    assert hub.refused("PUT", url, {**body, "branch": "nope"}) == (404, "Branch nope not found")
    assert hub.refused("PUT", f"{R}/contents/a", {**body, "content": "***"})[0] == 422
    assert hub.refused("PUT", f"{R}/contents/a//b", body)[0] == 422
    assert hub.send("PUT", url, {**body, "sha": sha})["commit"]["message"] == "Change"
    assert hub.last.status == 200


# Protection


def test_protection_answers_what_was_put(hub: Hand) -> None:
    """Flags come back as objects, what is off is absent, and the branch counts as protected."""
    checks = {"strict": True, "checks": [{"context": "ci", "app_id": 15368}, {"context": "lint", "app_id": -1}]}
    reviews = {**REVIEWS, "required_approving_review_count": 2, "dismissal_restrictions": {"users": ["hubot", "ghost"]}}
    body = {
        **PROTECTION,
        "required_status_checks": checks,
        "required_pull_request_reviews": reviews,
        "restrictions": {"users": ["hubot"], "teams": [], "apps": []},
        "required_linear_history": True,
    }

    put = hub.send("PUT", f"{R}/branches/main/protection", body)

    assert hub.last.effect
    assert put["required_status_checks"]["checks"] == [
        {"context": "ci", "app_id": 15368},
        {"context": "lint", "app_id": None},
    ]
    assert put["required_status_checks"]["contexts"] == ["ci", "lint"]
    shown = put["required_pull_request_reviews"]
    assert (shown["required_approving_review_count"], shown["dismiss_stale_reviews"]) == (2, False)
    assert [user["login"] for user in shown["dismissal_restrictions"]["users"]] == ["hubot"]
    assert [user["login"] for user in put["restrictions"]["users"]] == ["hubot"]
    assert (put["required_linear_history"], put["allow_force_pushes"]) == ({"enabled": True}, {"enabled": False})
    assert hub.get(f"{R}/branches/main/protection") == put
    branch = hub.get(f"{R}/branches/main")
    assert (branch["protected"], branch["protection"]["required_status_checks"]["enforcement_level"]) == (
        True,
        "non_admins",
    )


def test_a_put_replaces_what_it_does_not_name(hub: Hand) -> None:
    """Left-out flags are off, null objects are gone; only enforce_admins survives null."""
    url = f"{R}/branches/main/protection"
    hub.send(
        "PUT",
        url,
        {
            **PROTECTION,
            "enforce_admins": True,
            "required_linear_history": True,
            "required_pull_request_reviews": REVIEWS,
        },
    )

    put = hub.send(
        "PUT",
        url,
        {
            "required_status_checks": None,
            "enforce_admins": None,
            "required_pull_request_reviews": None,
            "restrictions": None,
        },
    )

    assert put["enforce_admins"]["enabled"] is True
    assert put["required_linear_history"]["enabled"] is False
    assert "required_pull_request_reviews" not in put


@pytest.mark.parametrize("missing", ["required_status_checks", "enforce_admins", "restrictions"])
def test_four_keys_of_protection_must_be_there(hub: Hand, missing: str) -> None:
    """Absent is not null: 422 names the key."""
    body = {name: value for name, value in PROTECTION.items() if name != missing}

    status, message = hub.refused("PUT", f"{R}/branches/main/protection", body)

    assert (status, f'"{missing}" wasn\'t supplied' in message) == (422, True)


def test_values_that_protection_does_not_take(hub: Hand) -> None:
    """More than six approvals, linear history without squash or rebase, restrictions in a user's repository."""
    url = f"{R}/branches/main/protection"
    seven = {**PROTECTION, "required_pull_request_reviews": {**REVIEWS, "required_approving_review_count": 7}}
    hub.fake.forge.create_repo("octocat/own", auto_init=True)
    restricted = {**PROTECTION, "restrictions": {"users": [], "teams": []}}

    assert hub.refused("PUT", url, seven)[0] == 422
    assert hub.refused("PUT", "/repos/octocat/own/branches/main/protection", restricted)[0] == 422
    hub.fake.forge.update_repo("acme/widgets", settings={"allow_squash_merge": False, "allow_rebase_merge": False})
    assert hub.refused("PUT", url, {**PROTECTION, "required_linear_history": True})[0] == 422


def test_protection_that_is_not_there(hub: Hand) -> None:
    """No rule and no branch are told apart by text; DELETE takes a rule away once."""
    url = f"{R}/branches/main/protection"

    assert hub.refused("GET", url) == (404, "Branch not protected")
    assert hub.refused("GET", f"{R}/branches/nope/protection") == (404, "Branch not found")
    assert hub.refused("PUT", f"{R}/branches/nope/protection", PROTECTION) == (404, "Branch not found")
    hub.send("PUT", url, PROTECTION)
    assert hub.send("DELETE", url) is None
    assert hub.last.effect
    assert hub.refused("DELETE", url) == (404, "Branch not protected")


def test_protection_needs_administration_and_a_plan(github_with: Build) -> None:
    """Without rights it is not there; on the free plan a private repository has none, which is 403."""
    hub = github_with(plan="free")
    url = f"{R}/branches/main/protection"

    refused = [hub.refused(method, url, body) for method, body in (("GET", None), ("PUT", PROTECTION))]
    hub.fake.admin = False
    hidden = hub.refused("GET", url)

    message = "Upgrade to GitHub Pro or make this repository public to enable this feature."
    assert refused == [(403, message)] * 2
    assert hidden == (404, "Not Found")


def test_a_wildcard_rule_protects_without_being_shown(hub: Hand) -> None:
    """The branch counts as protected and its rule is 404; an exact rule replaces it for that branch."""
    hub.fake.forge.put_rule("acme/widgets", "ma*", BranchProtection(enforce_admins=True))

    assert hub.get(f"{R}/branches/main")["protected"] is True
    assert hub.get(f"{R}/branches")[0]["protected"] is True
    assert hub.refused("GET", f"{R}/branches/main/protection") == (404, "Branch not protected")
    hub.send("PUT", f"{R}/branches/main/protection", PROTECTION)
    assert hub.fake.forge.protection("acme/widgets", "main") == BranchProtection(
        require_pull_request=False, block_deletion=True
    )


def test_the_oldest_wildcard_wins_over_the_others(hub: Hand) -> None:
    """Rules do not add up: one of them applies."""
    hub.fake.forge.put_rule("acme/widgets", "m*", BranchProtection(required_approvals=1))
    hub.fake.forge.put_rule("acme/widgets", "*", BranchProtection(required_approvals=3))

    held = hub.fake.forge.protection("acme/widgets", "main")

    assert held is not None
    assert held.required_approvals == 1


def test_a_rule_that_was_not_made_here_is_shown_as_what_it_demands(hub: Hand) -> None:
    """A rule put into the forge reads as GitHub would show it."""
    demanded = BranchProtection(required_approvals=2, required_checks=("ci",), block_deletion=True)
    hub.fake.forge.put_rule("acme/widgets", "main", demanded)

    shown = hub.get(f"{R}/branches/main/protection")

    assert shown["required_pull_request_reviews"]["required_approving_review_count"] == 2
    assert shown["required_status_checks"]["contexts"] == ["ci"]
    assert shown["allow_deletions"] == {"enabled": False}


@pytest.mark.parametrize(
    ("rule", "force", "message"),
    [
        (BranchProtection(), False, "Changes must be made through a pull request."),
        (BranchProtection(require_pull_request=False), True, "Cannot force-push to a protected branch"),
        (
            BranchProtection(require_pull_request=False, required_checks=("ci",)),
            False,
            'Required status check "ci" is expected.',
        ),
    ],
)
def test_protection_binds_whoever_does_not_administer(
    github_with: Build, rule: BranchProtection, force: bool, message: str
) -> None:
    """A direct move is 422 with the reason, and the branch stays."""
    hub = github_with(admin=False)
    old = hub.head("acme/widgets", "main")
    head = hub.commit("acme/widgets", "main", {"a": "a"})
    hub.branch("acme/widgets", "topic", head)
    new = hub.commit("acme/widgets", "topic", {"b": "b"})
    hub.fake.forge.put_rule("acme/widgets", "main", rule)

    body = {"sha": old if force else new, "force": force}
    refused = hub.refused("PATCH", f"{R}/git/refs/heads/main", body)

    assert refused == (422, message)
    assert hub.head("acme/widgets", "main") == head


def test_administrators_pass_by_protection_unless_it_is_enforced_for_them(hub: Hand) -> None:
    """The same move is taken, and refused once enforce_admins is set."""
    hub.fake.forge.put_rule("acme/widgets", "main", BranchProtection())
    hub.commit("acme/widgets", "main", {"a": "a"})
    head = hub.head("acme/widgets", "main")
    hub.branch("acme/widgets", "topic", head)
    new = hub.commit("acme/widgets", "topic", {"b": "b"})
    hub.fake.forge.put_rule("acme/widgets", "main", BranchProtection(enforce_admins=True))

    refused = hub.refused("PATCH", f"{R}/git/refs/heads/main", {"sha": new})
    contents = hub.refused("PUT", f"{R}/contents/c", {"message": "m", "content": encoded(b"c")})

    assert refused == (422, "Changes must be made through a pull request.")
    assert contents[0] == 409


def test_a_protected_branch_is_not_deleted(github_with: Build) -> None:
    """422 while deletion is blocked; the same branch goes once it is allowed."""
    hub = github_with(admin=False)
    hub.branch("acme/widgets", "topic", hub.head("acme/widgets", "main"))
    hub.fake.forge.put_rule("acme/widgets", "topic", BranchProtection(block_deletion=True))

    refused = hub.refused("DELETE", f"{R}/git/refs/heads/topic")
    hub.fake.forge.delete_rule("acme/widgets", "topic")
    hub.send("DELETE", f"{R}/git/refs/heads/topic")

    assert refused == (422, "Cannot delete a protected branch")
    assert (hub.last.status, hub.last.effect) == (204, True)


def test_rulesets_bind_everybody(hub: Hand) -> None:
    """They are shown for the branch, count as protection, and forbid by their kind, to administrators too."""
    old = hub.head("acme/widgets", "main")
    head = hub.commit("acme/widgets", "main", {"a": "a"})
    kinds = ("pull_request", "creation", "deletion", "non_fast_forward")
    rulesets = [{"pattern": "ma*", "rules": [{"type": kind} for kind in kinds]}]
    hub.fake.forge.update_repo("acme/widgets", settings={RULESETS: rulesets})

    reason = "Repository rule violations found\n\nChanges must be made through a pull request.\n\n"
    assert [rule["type"] for rule in hub.get(f"{R}/rules/branches/main")] == list(kinds)
    assert hub.get(f"{R}/branches/main")["protected"] is True
    assert hub.refused("PATCH", f"{R}/git/refs/heads/main", {"sha": head}) == (422, reason)
    assert hub.refused("PUT", f"{R}/contents/c", {"message": "m", "content": ""}) == (409, reason)
    assert hub.refused("DELETE", f"{R}/git/refs/heads/main")[0] == 422
    assert (
        "creations being restricted" in hub.refused("POST", f"{R}/git/refs", {"ref": "refs/heads/max", "sha": old})[1]
    )
    assert hub.get(f"{R}/rules/branches/other") == []


# The whole table


def test_a_route_that_github_lacks_is_not_found(hub: Hand) -> None:
    """A client would take a path that no host has, or a method that its path never has, for a gap of the fake."""
    assert hub.refused("GET", "/nonsense") == (404, "Not Found")
    assert hub.refused("PUT", R) == (404, "Not Found")


def test_every_endpoint_of_github_is_modelled_or_501(hub: Hand) -> None:
    """A client would take the fake's gap for GitHub's own 404, such as "not merged" after a merge."""
    known = endpoints()
    gaps = [(method, path) for method, path in known if hub.fake.endpoint(Request.of(method, path, {}, b"")) == ""]

    for method, path in gaps:
        wanted = (501, f"FakeGitHub does not model {method} {path}")
        assert hub.refused(method, path) == wanted

    assert len(known) > 1000
    assert 0 < len(gaps) < len(known)


def test_what_lies_behind_a_branch_or_a_commit_is_not_its_name(hub: Hand) -> None:
    """A name may have slashes, and yet a sub-resource would be "No commit found" or "Branch not found"."""
    hub.branch("acme/widgets", "a/status/b", hub.head("acme/widgets", "main"))

    assert hub.get(f"{R}/branches/a/status/b")["name"] == "a/status/b"
    assert hub.get(f"{R}/commits/a/status/b")["sha"] == hub.head("acme/widgets", "main")
    for path in ("commits/a/b/check-suites", "branches/a/b/protection/required_status_checks", "branches/a/b/rename"):
        assert hub.refused("GET", f"{R}/{path}")[0] == 501


def test_the_fakes_own_etag_makes_a_read_304_that_is_not_counted(hub: Hand) -> None:
    """A client that caches would load everything again, and use up its limit."""
    hub.get(R)
    etag, left = hub.last.headers["ETag"], hub.last.headers["X-RateLimit-Remaining"]

    for given in (etag, etag.removeprefix("W/"), f'"other", {etag}', "*"):
        assert hub.send("GET", R, headers={"If-None-Match": given}) is None
        assert (hub.last.status, hub.last.headers["ETag"]) == (304, etag)
        assert hub.last.headers["X-RateLimit-Remaining"] == left
    hub.send("GET", R, headers={"If-None-Match": '"other"'})
    assert hub.last.status == 200


@pytest.mark.parametrize("path", [R, "/repos/acme/nothing", "/nonsense"])
def test_head_is_get_without_its_body(hub: Hand, path: str) -> None:
    """A client that asks whether something exists would always hear that it does not."""
    hub.get(path)
    read = hub.last
    head = hub.fake.handle(replace(hub.seen[-1][0], method="HEAD"))

    assert (head.status, head.body, head.headers.get("ETag")) == (read.status, b"", read.headers.get("ETag"))
    assert head.headers["Content-Length"] == str(len(read.body))


@pytest.mark.parametrize(("password", "status"), [("", 401), ("ghp_wrong", 401), (None, 200)])
def test_the_token_is_the_password_of_basic_authentication(hub: Hand, password: str | None, status: int) -> None:
    """The curl lines of GitHub's documentation with -u would be anonymous."""
    text = encoded(f"octocat:{hub.token if password is None else password}".encode())

    nobody = Hand(hub.fake, token="")

    nobody.send("GET", "/user", headers={"Authorization": f"Basic {text}"})

    assert nobody.last.status == status


def test_the_endpoint_of_a_request_is_its_template(hub: Hand) -> None:
    """By path or by id, with the part that follows; nothing for what has no route."""
    hub.get(f"{R}/git/ref/heads/main")
    by_path = hub.fake.endpoint(hub.seen[-1][0])
    hub.get("/repositories/1/branches")
    by_id = hub.fake.endpoint(hub.seen[-1][0])
    hub.refused("GET", "/nonsense")

    assert by_path == "/repos/{owner}/{repo}/git/ref/{ref/}"
    assert by_id == "/repositories/{id}/branches"
    assert hub.fake.endpoint(hub.seen[-1][0]) == ""


def test_every_route_names_its_documentation() -> None:
    """A refusal's documentation_url is the endpoint's own."""
    bare = [route for route in ROUTES.table if "#" not in route.docs and route.template != GRAPHQL]

    assert bare == []


def test_threads_that_create_the_same_branch_have_one_winner(hub: Hand) -> None:
    """Of eight equal requests one is 201 and seven are 422."""
    body = {"ref": "refs/heads/race", "sha": hub.head("acme/widgets", "main")}

    with ThreadPoolExecutor(8) as pool:
        hands = [Hand(hub.fake) for _ in range(8)]
        list(pool.map(lambda hand: hand.send("POST", f"{R}/git/refs", body), hands))

    assert sorted(hand.last.status for hand in hands) == [201] + [422] * 7
    assert sum(hand.last.effect for hand in hands) == 1


_JUNK: tuple[Any, ...] = (None, 0, "\x00", "../..", [1], [{}], {"users": 1}, {"checks": [1]}, "a" * 300)
_FIELDS = {
    "POST /user/repos": ("name", "description", "private", "auto_init"),
    "POST /orgs/{org}/repos": ("name", "visibility"),
    "POST /repos/{owner}/{repo}/git/refs": ("ref", "sha"),
    "PATCH /repos/{owner}/{repo}/git/refs/{ref/}": ("sha", "force"),
    "POST /repos/{owner}/{repo}/git/blobs": ("content", "encoding"),
    "POST /repos/{owner}/{repo}/git/trees": ("base_tree", "tree"),
    "POST /repos/{owner}/{repo}/git/commits": ("message", "tree", "parents", "author", "committer"),
    "PUT /repos/{owner}/{repo}/contents/{path/}": ("message", "content", "sha", "branch", "author"),
    "PUT /repos/{owner}/{repo}/branches/{branch/}/protection": tuple(PROTECTION),
    "POST /repos/{owner}/{repo}/pulls": ("title", "head", "base", "body", "draft"),
    "PUT /repos/{owner}/{repo}/pulls/{number}/merge": ("sha", "merge_method", "commit_title", "commit_message"),
    "POST /repos/{owner}/{repo}/issues/{number}/labels": ("labels",),
    "POST /repos/{owner}/{repo}/pulls/{number}/requested_reviewers": ("reviewers", "team_reviewers"),
}


def test_whatever_a_field_holds_the_fake_answers(hub: Hand) -> None:
    """A value of another kind is a refusal in GitHub's words, or is taken: the fake never breaks."""
    sha = hub.head("acme/widgets", "main")
    hub.branch("acme/widgets", "topic", sha)
    hub.commit("acme/widgets", "topic", {"a": "a"})
    hub.pull("acme/widgets", "topic", draft=True)
    tree = hub.get(f"{R}/git/commits/{sha}")["tree"]["sha"]
    whole = {
        "name": "n",
        "ref": "refs/heads/z",
        "message": "m",
        "content": "",
        "title": "t",
        "head": "topic",
        **PROTECTION,
    }
    whole |= {"sha": sha, "tree": tree, "base": "main", "labels": ["x"]}
    parts = {"owner": "acme", "repo": "widgets", "org": "acme", "ref/": "heads/topic", "path/": "f", "branch/": "main"}

    for route, names in _FIELDS.items():
        method, template = route.split(" ")
        path = template.format_map({**parts, "number": "1"})
        for name in names:
            for value in _JUNK:
                hub.send(method, path, {**whole, name: value})

    assert {response.status for _, response in hub.seen} <= {200, 201, 400, 404, 405, 409, 422}
