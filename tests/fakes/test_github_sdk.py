"""PyGithub as it ships, used by hand against the fake: mounted on ``responses``, and over a loopback port."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import github
import pytest
import responses
from github.ContentFile import ContentFile

from gitprovider.fakes.faults import FaultyHost
from gitprovider.fakes.mount import mount
from gitprovider.fakes.serve import serving
from tests.support.github_hand import Hand


@pytest.fixture(params=["mounted", "served"])
def client(request: pytest.FixtureRequest, github_with: Callable[..., Hand]) -> Iterator[github.Github]:
    fake = github_with().fake
    with ExitStack() as stack:
        if request.param == "mounted":
            url = "https://api.github.com"
            mount(fake, stack.enter_context(responses.RequestsMock()), url)
        else:
            url = stack.enter_context(serving(FaultyHost(fake)))
        auth = github.Auth.Token(fake.token)
        with github.Github(auth=auth, base_url=url, seconds_between_requests=0, seconds_between_writes=0) as client:
            yield client


def test_a_pull_request_from_branch_to_merge(client: github.Github) -> None:
    """Branch, tree, commit, pull request, label, review request, protection and merge, with the SDK's own objects."""
    repo = client.get_repo("acme/widgets")
    main = repo.get_branch("main")
    ref = repo.create_git_ref("refs/heads/topic", main.commit.sha)
    element = github.InputGitTreeElement("docs/a.txt", "100644", "blob", content="hello\n")
    tree = repo.create_git_tree([element], base_tree=repo.get_git_tree(main.commit.commit.tree.sha))
    commit = repo.create_git_commit("Add it", tree, [repo.get_git_commit(main.commit.sha)])
    ref.edit(commit.sha)

    pull = repo.create_pull(title="Add it", body="Why", head="topic", base="main")
    pull.add_to_labels("docs")
    pull.create_review_request(reviewers=["hubot"])
    main.edit_protection(required_approving_review_count=1, enforce_admins=False)
    status = pull.merge(merge_method="squash", sha=commit.sha)

    seen = repo.get_pull(pull.number)
    assert status.merged
    assert (seen.merged, seen.merge_commit_sha, seen.changed_files) == (True, status.sha, 1)
    assert [label.name for label in seen.labels] == ["docs"]
    assert repo.get_branch("main").protected
    assert repo.compare(status.sha, "main").status == "identical"


def test_pages_are_followed_to_the_end(client: github.Github) -> None:
    """The SDK follows the links by the repository's id, and finds every branch."""
    repo = client.get_repo("acme/widgets")
    sha = repo.get_branch("main").commit.sha
    for number in range(35):
        repo.create_git_ref(f"refs/heads/b{number:02}", sha)

    names = [branch.name for branch in repo.get_branches()]

    assert names == [*(f"b{number:02}" for number in range(35)), "main"]


def test_a_first_commit_through_the_contents_api(client: github.Github) -> None:
    """A new repository is empty, takes one file, and then has a branch."""
    repo = client.get_organization("acme").create_repo("gadgets", private=True)
    with pytest.raises(github.GithubException) as caught:
        repo.get_git_ref("heads/main")

    made = repo.create_file("a b.txt", "Begin", b"\xff\x00")

    assert (caught.value.status, caught.value.message) == (409, "Git Repository is empty.")
    assert isinstance(made["content"], ContentFile)
    assert made["content"].path == "a b.txt"
    assert [branch.name for branch in repo.get_branches()] == ["main"]


def test_refusals_are_the_exceptions_that_the_sdk_has_for_them(client: github.Github) -> None:
    """404 is UnknownObjectException, and a taken name keeps its reason in the data."""
    organization = client.get_organization("acme")

    with pytest.raises(github.UnknownObjectException):
        client.get_repo("acme/nothing")
    with pytest.raises(github.GithubException) as caught:
        organization.create_repo("widgets")

    assert caught.value.status == 422
    assert caught.value.data["errors"][0]["message"] == "name already exists on this account"


def test_a_wrong_token_is_the_sdks_bad_credentials(github_with: Callable[..., Hand]) -> None:
    """401 becomes BadCredentialsException."""
    with responses.RequestsMock() as mocked:
        mount(github_with().fake, mocked, "https://api.github.com")
        with (
            github.Github(auth=github.Auth.Token("ghp_wrong")) as client,
            pytest.raises(github.BadCredentialsException),
        ):
            client.get_repo("acme/widgets")
