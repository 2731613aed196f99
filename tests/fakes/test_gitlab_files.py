"""The GitLab fake: the commits API, trees, files, and the GraphQL that a commit needs."""

from __future__ import annotations

import base64
import pathlib
from typing import Any

import pytest

from gitprovider.gitlab.commits import QUERY
from tests.support.gitlab_hand import REPO, Hand, Said, a_hand


@pytest.fixture
def hand(tmp_path: pathlib.Path) -> Hand:
    return a_hand(tmp_path)


def _commit(hand: Hand, *actions: dict[str, Any], branch: str = "main", **more: Any) -> Said:
    body = {"branch": branch, "commit_message": "change", "actions": list(actions), **more}
    return hand.repo("POST", "/repository/commits", body)


def _create(path: str, content: str = "x", **more: Any) -> dict[str, Any]:
    return {"action": "create", "file_path": path, "content": content, **more}


def _files(hand: Hand, branch: str = "main") -> dict[str, tuple[bytes, str]]:
    tree = hand.forge.read_tree(REPO, hand.forge.head(REPO, branch))
    return {path: (hand.forge.read_blob(REPO, entry.sha), entry.mode) for path, entry in tree.items()}


# commits


def test_one_commit_carries_every_kind_of_action(hand: Hand) -> None:
    """Create, update, delete, move, chmod, text and base64: one commit on top of the head."""
    head = hand.given_repo({"keep": b"k", "old": b"o", "gone": b"g", "here": b"h"})

    response = _commit(
        hand,
        _create("bin/run", base64.b64encode(b"\x00\xff").decode(), encoding="base64"),
        {"action": "chmod", "file_path": "bin/run", "execute_filemode": True},
        {"action": "update", "file_path": "old", "content": "new"},
        {"action": "delete", "file_path": "gone"},
        {"action": "move", "previous_path": "here", "file_path": "there/x"},
        author_name="Ada",
        author_email="ada@example.com",
    )

    assert (response.status, response.effect, response.data["parent_ids"]) == (201, True, [head])
    assert (response.data["author_name"], response.data["committer_name"]) == ("Ada", "Tanuki")
    assert response.data["id"] == hand.forge.head(REPO, "main")
    assert _files(hand) == {
        "bin/run": (b"\x00\xff", "100755"),
        "keep": (b"k", "100644"),
        "old": (b"new", "100644"),
        "there/x": (b"h", "100644"),
    }


@pytest.mark.pitfall("GL-CF-06")
def test_the_executable_bit_needs_an_action_of_its_own(hand: Hand) -> None:
    """execute_filemode on a create is dropped without a word, and an update keeps the mode."""
    hand.given_repo()
    _commit(hand, _create("run", execute_filemode=True))
    assert _files(hand)["run"][1] == "100644"

    _commit(hand, {"action": "chmod", "file_path": "run", "execute_filemode": True})
    _commit(hand, {"action": "update", "file_path": "run", "content": "y"})

    assert _files(hand)["run"] == (b"y", "100755")


@pytest.mark.pitfall("GL-CF-01", "GL-CF-04")
@pytest.mark.parametrize(
    ("action", "text"),
    [
        (_create("README.md"), "A file with this name already exists"),
        ({"action": "update", "file_path": "nope", "content": "x"}, "A file with this name doesn't exist"),
        ({"action": "delete", "file_path": "nope"}, "A file with this name doesn't exist"),
        ({"action": "move", "file_path": "x", "previous_path": "nope"}, "A file with this name doesn't exist"),
        (
            {"action": "move", "file_path": "docs/a", "previous_path": "README.md"},
            "A file with this name already exists",
        ),
        ({"action": "chmod", "file_path": "nope", "execute_filemode": True}, "A file with this name doesn't exist"),
        (_create("docs"), "A directory with this name already exists"),
        (_create("README.md/below"), "A file with this name already exists"),
        (_create("../x"), "Path cannot include directory traversal"),
        (_create("a//b"), "invalid path: 'a//b'"),
        (_create(".git/config"), "invalid path: '.git/config'"),
        (_create(""), "You must provide a file path"),
        (_create("x", "not base64!", encoding="base64"), "illegal base64 data"),
    ],
)
def test_what_an_action_cannot_do_is_400_and_nothing_changes(hand: Hand, action: dict[str, Any], text: str) -> None:
    """One status, and only the text says which; the actions before it are not kept either."""
    head = hand.given_repo({"README.md": b"r", "docs/a": b"a"})

    response = _commit(hand, _create("first"), action)

    assert (response.status, response.message, response.effect) == (400, text, False)
    assert hand.forge.head(REPO, "main") == head


def test_an_action_sees_what_those_before_it_have_done(hand: Hand) -> None:
    """A file may be made below one that was deleted just before."""
    hand.given_repo({"docs": b"a file"})

    response = _commit(hand, {"action": "delete", "file_path": "docs"}, _create("docs/a"))

    assert response.status == 201
    assert set(_files(hand)) == {"docs/a"}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"branch": "main", "commit_message": "m"}, "actions is missing"),
        ({"branch": "main", "actions": []}, "commit_message is missing"),
        (
            {"branch": "main", "commit_message": "m", "actions": [{"action": "touch", "file_path": "x"}]},
            "actions[0][action] does not have a valid value",
        ),
        (
            {"branch": "main", "commit_message": "m", "actions": [{"action": "update", "file_path": "x"}]},
            "actions[0][content] is missing",
        ),
    ],
)
def test_parameters_are_checked_before_anything(hand: Hand, body: dict[str, Any], problem: str) -> None:
    """The key is error, not message."""
    hand.given_repo()

    response = hand.repo("POST", "/repository/commits", body)

    assert (response.status, response.data["error"]) == (400, problem)


@pytest.mark.pitfall("GL-CF-08")
def test_empty_content_is_a_legal_file(hand: Hand) -> None:
    """With content "" and without content alike."""
    hand.given_repo({"a": b"a"})

    assert _commit(hand, _create("b", ""), {"action": "create", "file_path": "c"}).status == 201
    assert (_files(hand)["b"][0], _files(hand)["c"][0]) == (b"", b"")


@pytest.mark.pitfall("GL-CF-07")
def test_a_commit_that_changes_nothing_is_made_all_the_same(hand: Hand) -> None:
    """Whoever wants none must not send it."""
    head = hand.given_repo({"a": b"a"})

    same, none = _commit(hand, {"action": "update", "file_path": "a", "content": "a"}), _commit(hand)

    assert same.data["parent_ids"] == [head]
    assert none.data["parent_ids"] == [same.data["id"]]
    assert same.data["stats"] == {"additions": 0, "deletions": 0, "total": 0}


@pytest.mark.pitfall("GL-CF-02")
def test_a_branch_that_is_not_there_is_no_branch_to_be_on(hand: Hand) -> None:
    """400, not 404."""
    hand.given_repo()

    response = _commit(hand, _create("x"), branch="develop")

    assert (response.status, response.message) == (400, "You can only create or edit files when you are on a branch")


def test_a_branch_is_started_from_another_one(hand: Hand) -> None:
    """start_branch makes the branch; onto an existing one it goes only by force."""
    head = hand.given_repo()
    tip = hand.given_feature("taken")

    made = _commit(hand, _create("x"), branch="new", start_branch="main")
    refused = _commit(hand, _create("x"), branch="taken", start_branch="main")
    forced = _commit(hand, _create("x"), branch="taken", start_sha=head, force=True)
    unknown = _commit(hand, _create("x"), branch="other", start_sha="0" * 40)

    assert made.data["parent_ids"] == [head]
    text = "A branch called 'taken' already exists. Switch to that branch in order to make changes"
    assert (refused.status, refused.message) == (400, text)
    assert forced.data["parent_ids"] == [head]
    assert not hand.forge.contains(REPO, tip, "taken")
    assert unknown.message.startswith("Cannot find start_sha")


def test_an_empty_project_takes_a_first_commit(hand: Hand) -> None:
    """Of created files alone; it has no parent, and GitLab then protects the branch by itself."""
    hand.forge.create_repo(REPO)

    bit = _commit(hand, _create("a"), {"action": "chmod", "file_path": "a", "execute_filemode": True})
    made = _commit(hand, _create("a"))

    assert (bit.status, bit.message) == (400, "No files to chmod.")
    assert (made.status, made.data["parent_ids"]) == (201, [])
    assert hand.repo("GET", "/repository/branches/main").data["protected"] is True


def test_a_file_that_changed_since_is_refused_by_its_last_commit(hand: Hand) -> None:
    """last_commit_id may be any commit at which the caller saw the file; a change of another file does not matter."""
    seen = hand.given_repo({"a": b"1", "b": b"1"})
    hand.given_commit("main", {"b": b"2"})

    changed = _commit(hand, {"action": "update", "file_path": "b", "content": "3", "last_commit_id": seen})
    same = _commit(hand, {"action": "update", "file_path": "a", "content": "3", "last_commit_id": seen})

    assert (changed.status, changed.message) == (400, "The file has changed since you started editing it: b")
    assert same.status == 201


def test_a_branch_that_nobody_may_push_to_is_403(hand: Hand) -> None:
    """The text follows the 403 that every refusal begins with."""
    head = hand.given_repo()
    hand.repo("POST", "/protected_branches", {"name": "main", "push_access_level": 0})

    response = _commit(hand, _create("x"))

    assert (response.status, response.message) == (403, "403 Forbidden - You are not allowed to push into this branch")
    assert hand.forge.head(REPO, "main") == head


@pytest.mark.pitfall("GL-CF-09")
def test_a_push_rule_is_in_the_way_of_a_message(hand: Hand) -> None:
    """400 like a file that exists, and another text."""
    hand.given_repo()
    hand.fake.commit_message_pattern = "^(feat|fix): "

    assert _commit(hand, _create("x")).message == "Commit message does not follow the pattern '^(feat|fix): '"
    assert _commit(hand, _create("x"), commit_message="fix: x").status == 201


# reading


def test_a_commit_is_found_by_sha_and_by_branch(hand: Hand) -> None:
    """A sha may be short; an unknown one is 404."""
    head = hand.given_repo()

    by_sha, by_name = (hand.repo("GET", f"/repository/commits/{ref}") for ref in (head[:8], "main"))

    assert by_sha.data == by_name.data
    assert (by_sha.data["id"], by_sha.data["message"], by_sha.data["project_id"]) == (head, "change main", 1)
    assert hand.repo("GET", f"/repository/commits/{'0' * 40}").message == "404 Commit Not Found"


def test_the_branches_that_contain_a_commit_are_listed(hand: Hand) -> None:
    """What looks for a lost commit asks this."""
    head = hand.given_repo()
    tip = hand.given_feature()

    both, one = (hand.repo("GET", f"/repository/commits/{sha}/refs", query={"type": "branch"}) for sha in (head, tip))

    assert [ref["name"] for ref in both.data] == ["feature", "main"]
    assert one.data == [{"type": "branch", "name": "feature"}]
    assert hand.repo("GET", f"/repository/commits/{'0' * 40}/refs").status == 404


def test_two_refs_are_compared(hand: Hand) -> None:
    """The commits that one has and the other has not."""
    head = hand.given_repo()
    tip = hand.given_feature()

    ahead = hand.repo("GET", "/repository/compare", query={"from": head, "to": "feature"})
    behind = hand.repo("GET", "/repository/compare", query={"from": "feature", "to": head})

    assert [commit["id"] for commit in ahead.data["commits"]] == [tip]
    assert [(diff["new_path"], diff["new_file"]) for diff in ahead.data["diffs"]] == [("feature.txt", True)]
    assert (behind.data["commit"], behind.data["commits"]) == (None, [])
    assert hand.repo("GET", "/repository/compare", query={"from": "x", "to": "main"}).message == "404 Ref Not Found"


def test_a_tree_lists_directories_too_page_by_page(hand: Hand) -> None:
    """Recursive or not; a reader must tell blobs from trees."""
    hand.given_repo({"a/b/c.txt": b"c", "d.txt": b"d"})

    flat = hand.repo("GET", "/repository/tree")
    deep = [
        item
        for page in (1, 2)
        for item in hand.repo(
            "GET", "/repository/tree", query={"recursive": True, "per_page": 2, "page": page, "ref": "main"}
        ).data
    ]
    below = hand.repo("GET", "/repository/tree", query={"path": "a"})

    assert [(item["path"], item["type"]) for item in flat.data] == [("a", "tree"), ("d.txt", "blob")]
    assert [item["path"] for item in deep] == ["a", "a/b", "a/b/c.txt", "d.txt"]
    assert [item["mode"] for item in deep] == ["040000", "040000", "100644", "100644"]
    assert [item["path"] for item in below.data] == ["a/b"]
    assert hand.repo("GET", "/repository/tree", query={"ref": "nope"}).message == "404 Tree Not Found"


def test_a_file_is_read_with_its_last_commit(hand: Hand) -> None:
    """As JSON, as headers, and as it is."""
    first = hand.given_repo({"dir/a b.txt": b"text\n"})
    head = hand.given_commit("main", {"other": b"o"})

    read = hand.repo("GET", "/repository/files/dir%2Fa%20b.txt", query={"ref": "main"})
    asked = hand.repo("HEAD", "/repository/files/dir%2Fa%20b.txt", query={"ref": "main"})
    raw = hand.repo("GET", "/repository/files/dir%2Fa%20b.txt/raw")

    assert base64.b64decode(read.data["content"]) == b"text\n"
    assert (read.data["commit_id"], read.data["last_commit_id"]) == (head, first)
    assert (asked.data, asked.headers["X-Gitlab-Blob-Id"]) == (None, read.data["blob_id"])
    assert asked.headers["X-Gitlab-Execute-Filemode"] == "false"
    assert raw.data == "text\n"


@pytest.mark.parametrize(
    ("path", "query", "status", "text"),
    [
        ("nope", {"ref": "main"}, 404, "404 File Not Found"),
        ("README.md", {"ref": "nope"}, 404, "404 Commit Not Found"),
    ],
)
def test_a_file_that_is_not_there_is_404(hand: Hand, path: str, query: dict[str, str], status: int, text: str) -> None:
    """The file, or the ref that it was looked for at."""
    hand.given_repo()

    response = hand.repo("GET", f"/repository/files/{path}", query=query)

    assert (response.status, response.message) == (status, text)


# GraphQL


def _touched(hand: Hand, *paths: str, project: str = REPO, ref: str = "main", kind: str | None = "HEADS") -> Any:
    variables = {"project": project, "ref": ref, "type": kind, "paths": list(paths), "n": 100, "above": [], "m": 1}
    response = hand.graphql(QUERY, **variables)
    assert response.status == 200
    return response.data


def test_the_provider_s_own_query_finds_the_head_and_what_is_there(hand: Hand) -> None:
    """One query for what a commit needs to know; what is not there is not among the nodes."""
    head = hand.given_repo({"a": b"a", "dir/b": b"b"})

    repository = _touched(hand, "a", "dir/b", "dir", "nope")["data"]["project"]["repository"]

    assert (repository["empty"], repository["rootRef"]) == (False, "main")
    assert repository["tree"]["lastCommit"] == {"sha": head}
    entries = hand.forge.read_tree(REPO, head)
    assert repository["blobs"]["nodes"] == [
        {"path": path, "oid": entries[path].sha, "mode": "100644"} for path in ("a", "dir/b")
    ]


def test_a_branch_that_is_not_there_has_no_last_commit(hand: Hand) -> None:
    """An empty project says that it is empty; a sha is no branch."""
    head = hand.given_repo()
    hand.forge.create_repo("acme/empty")

    nowhere = _touched(hand, "README.md", ref="nope")["data"]["project"]["repository"]
    empty = _touched(hand, "README.md", project="acme/empty")["data"]["project"]["repository"]
    by_sha = _touched(hand, "README.md", ref=head, kind=None)["data"]["project"]["repository"]
    as_branch = _touched(hand, "README.md", ref=head)["data"]["project"]["repository"]

    assert (nowhere["tree"]["lastCommit"], nowhere["blobs"]["nodes"]) == (None, [])
    assert (empty["empty"], empty["rootRef"], empty["tree"]["lastCommit"]) == (True, "main", None)
    assert [node["path"] for node in by_sha["blobs"]["nodes"]] == ["README.md"]
    assert as_branch["tree"]["lastCommit"] is None


def test_an_unknown_project_is_null_in_graphql(hand: Hand) -> None:
    """With status 200, and without errors; an old path leads nowhere."""
    hand.given_repo()
    hand.forge.rename_repo(REPO, "acme/gadgets")

    assert _touched(hand, "a", project="acme/nothing") == {"data": {"project": None}}
    assert _touched(hand, "a") == {"data": {"project": None}}


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("{ project(fullPath: $p) { nope } }", "Field 'nope' doesn't exist on type 'Project'"),
        ("{ project { id } }", "Field 'project' is missing required arguments: fullPath"),
        ("{ project(fullPath: $p) { repository } }", "Field must have selections"),
        ("{ project(fullPath: $p) { id }", "Unexpected end of document"),
        ("{ project(fullPath: #", "Unexpected end of document"),
        ("mutation { x { y } }", "Schema is not configured for mutations"),
        (
            '{ project(fullPath: $p) { repository { tree(refType: "X", ref: "main") { lastCommit { sha } } } } }',
            "Argument 'refType'",
        ),
    ],
)
def test_what_is_wrong_with_a_query_is_said_with_200(hand: Hand, query: str, problem: str) -> None:
    """A client that looks at the status alone takes this for a response."""
    hand.given_repo()

    response = hand.graphql(query, p=REPO)

    assert response.status == 200
    assert response.data["errors"][0]["message"].startswith(problem)
    assert "data" not in response.data


def test_a_query_that_costs_too_much_is_refused(hand: Hand) -> None:
    """GitLab counts a list of paths by its length; 100 of them in one query are the most that the provider asks."""
    hand.given_repo()

    few = _touched(hand, *(f"f{n}" for n in range(100)))
    many = _touched(hand, *(f"f{n}" for n in range(130)))

    assert "errors" not in few
    assert many["errors"][0]["message"].endswith("exceeds max complexity of 250")


def test_a_fragment_of_arguments_is_read_as_written(hand: Hand) -> None:
    """Aliases, literals, lists and __typename."""
    hand.given_repo()
    query = f"""
      query anything {{  # a comment
        mine: project(fullPath: "{REPO}") {{ __typename repository {{ blobs(paths: ["README.md"], first: 1) {{
          nodes {{ name }} pageInfo {{ hasNextPage endCursor }} }} }} }}
      }}"""

    response = hand.graphql(query)

    blobs = {"nodes": [{"name": "README.md"}], "pageInfo": {"hasNextPage": False, "endCursor": None}}
    assert response.data == {"data": {"mine": {"__typename": "Project", "repository": {"blobs": blobs}}}}


def test_a_bad_token_is_told_otherwise_in_graphql(hand: Hand) -> None:
    """401 with errors, where the REST API has a message."""
    response = hand.send("POST", "//api/graphql", {"query": "{ currentUser { username } }"}, headers={})

    assert (response.status, response.data) == (401, {"errors": [{"message": "Invalid token"}]})
    assert hand.send("POST", "//api/graphql", {"query": 1}).status == 422


# one file at a time


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ({"content": "grüße\n"}, ("grüße\n".encode(), "100644")),
        ({"content": "AP8=", "encoding": "base64"}, (b"\x00\xff", "100644")),
        ({"content": "", "execute_filemode": True}, (b"", "100755")),
    ],
)
def test_a_file_is_created_read_updated_and_deleted(hand: Hand, sent: dict[str, Any], stored: Any) -> None:
    """If it fails, a client of the files API writes other bytes, or reads other bytes than were written."""
    hand.given_repo()
    place, common = "/repository/files/dir%2Fa.txt", {"branch": "main", "commit_message": "m"}

    made = hand.repo("POST", place, {**common, **sent})

    assert (made.status, made.data) == (201, {"file_path": "dir/a.txt", "branch": "main"})
    assert _files(hand)["dir/a.txt"] == stored
    assert hand.repo("GET", place, query={"ref": "main"}).data["content"] == base64.b64encode(stored[0]).decode()
    assert hand.repo("PUT", place, {**common, "content": "two"}).status == 200
    assert hand.repo("GET", f"{place}/raw").data == "two"
    assert hand.repo("DELETE", place, query=common).status == 204
    assert hand.repo("HEAD", place, query={"ref": "main"}).status == 404


@pytest.mark.parametrize(
    ("method", "path", "more", "status", "fact"),
    [
        ("POST", "README.md", {"content": "x"}, 400, "gl-commit-file-exists"),
        ("PUT", "absent", {"content": "x"}, 400, "gl-commit-file-missing"),
        ("DELETE", "absent", {}, 400, "gl-commit-file-missing"),
        ("PUT", "README.md", {}, 400, "gl-param-missing"),
        ("POST", "a", {"content": "x", "encoding": "utf-8"}, 400, "gl-param-invalid"),
        ("POST", "a", {"content": "x", "branch": "other"}, 400, "gl-commit-no-branch"),
        ("POST", "a", {"content": "x", "branch": "closed"}, 400, "gl-file-push-denied"),
    ],
)
def test_a_file_that_may_not_be_written_leaves_the_branch_alone(
    hand: Hand, method: str, path: str, more: dict[str, Any], status: int, fact: str
) -> None:
    """If it fails, the files API refuses in other words than GitLab, or writes what it refuses."""
    head = hand.given_repo()
    hand.repo("POST", "/protected_branches", {"name": "closed", "push_access_level": 0})

    refused = hand.repo(method, f"/repository/files/{path}", {"branch": "main", "commit_message": "m", **more})

    assert (refused.status, refused.fact, refused.effect) == (status, fact, False)
    assert hand.forge.branches(REPO) == [("main", head)]
