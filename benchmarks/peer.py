"""One library, in a process of its own, driven by one line of JSON at a time.

``python benchmarks/peer.py PEER HOST URL TOKEN`` runs the operations that it is told on standard input, each as the
library's own documentation shows it, with the library's own defaults. It imports nothing of the others, so that it
also runs in an environment that has only the peer.
"""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module, metadata
from typing import Any
from urllib.parse import quote

LINE = "another line\n"


class Missing(Exception):
    """The library has no such operation."""


class Peer:
    """A library. Each operation takes what the host prepared for it; one that is not defined is missing."""

    packages: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        raise Missing(name)


class Ours(Peer):
    """This library."""

    packages = ("gitprovider",)

    def __init__(self, host: str, url: str, token: str, **options: Any) -> None:
        connect = import_module("gitprovider.connect").connect
        self._lib = import_module("gitprovider")
        self._host = host
        self._provider = connect(host, url=url, token=token, **options)

    def get_repo(self, repo: str) -> Any:
        return self._provider.get_repo(repo)

    def list_branches(self, repo: str) -> int:
        return len(self._provider.list_branches(repo))

    def create_repo(self, repo: str) -> Any:
        return self._provider.create_repo(repo)

    def create_branch(self, repo: str, name: str) -> Any:
        return self._provider.create_branch(repo, name, source="main")

    def commit_files(self, repo: str, branch: str, number: int) -> Any:
        put = self._lib.PutFile
        changes = [put(path="a.txt", content=LINE), put(path=f"new/{number}.txt", content=LINE)]
        return self._provider.commit_files(repo, branch, changes, message="A line")

    def protect_branch(self, repo: str, branch: str) -> Any:
        nothing = self._lib.BranchProtection.nothing()
        asked = {"require_pull_request": True} | ({"required_approvals": 1} if self._host == "github" else {})
        return self._provider.protect_branch(repo, branch, import_module("dataclasses").replace(nothing, **asked))

    def open_pull_request(self, repo: str, branch: str) -> Any:
        return self._provider.open_pull_request(repo, source_branch=branch, target_branch="main", title="A title")

    def merge_pull_request(self, repo: str, number: int) -> Any:
        return self._provider.merge_pull_request(repo, number)


class PyGithub(Peer):
    """As in https://pygithub.readthedocs.io/en/stable/examples.html."""

    packages = ("PyGithub",)

    def __init__(self, host: str, url: str, token: str) -> None:
        self._github = import_module("github")
        self._client = self._github.Github(base_url=url, auth=self._github.Auth.Token(token))

    def get_repo(self, repo: str) -> Any:
        return self._client.get_repo(repo)

    def list_branches(self, repo: str) -> int:
        return len(list(self._client.get_repo(repo).get_branches()))

    def create_repo(self, repo: str) -> Any:
        owner, name = repo.split("/")
        return self._client.get_organization(owner).create_repo(name)

    def create_branch(self, repo: str, name: str) -> Any:
        found = self._client.get_repo(repo)
        return found.create_git_ref(f"refs/heads/{name}", found.get_branch("main").commit.sha)

    def commit_files(self, repo: str, branch: str, number: int) -> Any:
        found = self._client.get_repo(repo)
        ref = found.get_git_ref(f"heads/{branch}")
        parent = found.get_git_commit(ref.object.sha)
        element = self._github.InputGitTreeElement
        changes = [element(path, "100644", "blob", content=LINE) for path in ("a.txt", f"new/{number}.txt")]
        made = found.create_git_commit("A line", found.create_git_tree(changes, parent.tree), [parent])
        ref.edit(made.sha)
        return made

    def protect_branch(self, repo: str, branch: str) -> Any:
        return self._client.get_repo(repo).get_branch(branch).edit_protection(required_approving_review_count=1)

    def open_pull_request(self, repo: str, branch: str) -> Any:
        return self._client.get_repo(repo).create_pull(base="main", head=branch, title="A title", body="")

    def merge_pull_request(self, repo: str, number: int) -> Any:
        return self._client.get_repo(repo).get_pull(number).merge()


class PythonGitlab(Peer):
    """As in https://python-gitlab.readthedocs.io/en/stable/gl_objects/projects.html."""

    packages = ("python-gitlab",)

    def __init__(self, host: str, url: str, token: str) -> None:
        self._client = import_module("gitlab").Gitlab(url, private_token=token)

    def get_repo(self, repo: str) -> Any:
        return self._client.projects.get(repo)

    def list_branches(self, repo: str) -> int:
        return len(self._client.projects.get(repo).branches.list(get_all=True))

    def create_repo(self, repo: str) -> Any:
        owner, name = repo.split("/")
        return self._client.projects.create({"name": name, "namespace_id": self._client.namespaces.get(owner).id})

    def create_branch(self, repo: str, name: str) -> Any:
        return self._client.projects.get(repo).branches.create({"branch": name, "ref": "main"})

    def commit_files(self, repo: str, branch: str, number: int) -> Any:
        return self._client.projects.get(repo).commits.create(_gitlab_commit(branch, number))

    def protect_branch(self, repo: str, branch: str) -> Any:
        return self._client.projects.get(repo).protectedbranches.create(_gitlab_rule(branch))

    def open_pull_request(self, repo: str, branch: str) -> Any:
        asked = {"source_branch": branch, "target_branch": "main", "title": "A title"}
        return self._client.projects.get(repo).mergerequests.create(asked)

    def merge_pull_request(self, repo: str, number: int) -> Any:
        return self._client.projects.get(repo).mergerequests.get(number).merge()


class Ogr(Peer):
    """As in https://packit.github.io/ogr/."""

    packages = ("ogr", "PyGithub", "python-gitlab")

    def __init__(self, host: str, url: str, token: str) -> None:
        ogr = import_module("ogr")
        if host == "gitlab":
            self._service = ogr.GitlabService(token=token, instance_url=url)
            return
        # ogr has no argument for another address than github.com, so PyGithub gets this one where ogr makes its client.
        at_this_address = partial(import_module("github").Github, base_url=url)
        vars(import_module("ogr.services.github.service"))["PyGithubInstance"] = at_this_address
        self._service = ogr.GithubService(token=token)
        auth = self._service.authentication
        auth._pygithub_instance = at_this_address(login_or_token=token, retry=self._service._max_retries)

    def _project(self, repo: str) -> Any:
        namespace, name = repo.split("/")
        return self._service.get_project(namespace=namespace, repo=name)

    def get_repo(self, repo: str) -> Any:
        return self._project(repo).default_branch

    def list_branches(self, repo: str) -> int:
        return len(self._project(repo).get_branches())

    def create_repo(self, repo: str) -> Any:
        namespace, name = repo.split("/")
        return self._service.project_create(repo=name, namespace=namespace)

    def open_pull_request(self, repo: str, branch: str) -> Any:
        return self._project(repo).create_pr("A title", "", "main", branch)

    def merge_pull_request(self, repo: str, number: int) -> Any:
        return self._project(repo).get_pr(number).merge()


class Gfo(Peer):
    """As in https://github.com/prata0x/gfo."""

    packages = ("gfo",)

    def __init__(self, host: str, url: str, token: str) -> None:
        import_module("gfo.adapter")
        self._registry = import_module("gfo.adapter.registry")
        self._host = host
        self._client = self._registry.create_http_client(host, f"{url}/api/v4" if host == "gitlab" else url, token)

    def _adapter(self, repo: str) -> Any:
        return self._registry.get_adapter_class(self._host)(self._client, *repo.split("/"))

    def get_repo(self, repo: str) -> Any:
        return self._adapter(repo).get_repository()

    def list_branches(self, repo: str) -> int:
        return len(self._adapter(repo).list_branches(limit=0))

    def create_repo(self, repo: str) -> Any:
        owner, name = repo.split("/")
        return self._adapter(repo).create_repository(name=name, organization=owner)

    def create_branch(self, repo: str, name: str) -> Any:
        return self._adapter(repo).create_branch(name=name, ref="main")

    def protect_branch(self, repo: str, branch: str) -> Any:
        return self._adapter(repo).set_branch_protection(branch, require_reviews=1)

    def open_pull_request(self, repo: str, branch: str) -> Any:
        return self._adapter(repo).create_pull_request(title="A title", base="main", head=branch)

    def merge_pull_request(self, repo: str, number: int) -> Any:
        return self._adapter(repo).merge_pull_request(number)


class Bare(Peer):
    """The fewest requests that the host's documentation allows, with ``requests`` and nothing else."""

    packages = ("requests",)

    def __init__(self, host: str, url: str, token: str) -> None:
        requests = import_module("requests")
        self._host, self._url = host, url if host == "github" else f"{url}/api/v4"
        self._session = requests.Session()
        header = {"Authorization": f"token {token}"} if host == "github" else {"PRIVATE-TOKEN": token}
        self._session.headers.update(header)

    def _send(self, method: str, path: str, **more: Any) -> Any:
        answer = self._session.request(method, f"{self._url}{path}", timeout=30, **more)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def _at(self, repo: str) -> str:
        return f"/repos/{repo}" if self._host == "github" else f"/projects/{quote(repo, safe='')}"

    def get_repo(self, repo: str) -> Any:
        return self._send("GET", self._at(repo))

    def list_branches(self, repo: str) -> int:
        path = f"{self._at(repo)}/branches" if self._host == "github" else f"{self._at(repo)}/repository/branches"
        count, page = 0, 1
        while True:
            answer = self._session.get(f"{self._url}{path}", params={"per_page": 100, "page": page}, timeout=30)
            answer.raise_for_status()
            count += len(answer.json())
            if "next" not in answer.links:
                return count
            page += 1

    def create_repo(self, repo: str) -> Any:
        owner, name = repo.split("/")
        if self._host == "github":
            return self._send("POST", f"/orgs/{owner}/repos", json={"name": name})
        namespace = self._send("GET", f"/namespaces/{owner}")["id"]
        return self._send("POST", "/projects", json={"name": name, "path": name, "namespace_id": namespace})

    def create_branch(self, repo: str, name: str) -> Any:
        at = self._at(repo)
        if self._host == "gitlab":
            return self._send("POST", f"{at}/repository/branches", json={"branch": name, "ref": "main"})
        sha = self._send("GET", f"{at}/git/ref/heads/main")["object"]["sha"]
        return self._send("POST", f"{at}/git/refs", json={"ref": f"refs/heads/{name}", "sha": sha})

    def commit_files(self, repo: str, branch: str, number: int) -> Any:
        at = self._at(repo)
        if self._host == "gitlab":
            return self._send("POST", f"{at}/repository/commits", json=_gitlab_commit(branch, number))
        head = self._send("GET", f"{at}/git/ref/heads/{branch}")["object"]["sha"]
        base = self._send("GET", f"{at}/git/commits/{head}")["tree"]["sha"]
        tree = [
            {"path": path, "mode": "100644", "type": "blob", "content": LINE} for path in ("a.txt", f"new/{number}.txt")
        ]
        made = self._send("POST", f"{at}/git/trees", json={"base_tree": base, "tree": tree})["sha"]
        asked = {"message": "A line", "tree": made, "parents": [head]}
        commit = self._send("POST", f"{at}/git/commits", json=asked)["sha"]
        return self._send("PATCH", f"{at}/git/refs/heads/{branch}", json={"sha": commit})

    def protect_branch(self, repo: str, branch: str) -> Any:
        at = self._at(repo)
        if self._host == "gitlab":
            return self._send("POST", f"{at}/protected_branches", json=_gitlab_rule(branch))
        asked = {
            "required_status_checks": None,
            "enforce_admins": None,
            "required_pull_request_reviews": {"required_approving_review_count": 1},
            "restrictions": None,
        }
        return self._send("PUT", f"{at}/branches/{branch}/protection", json=asked)

    def open_pull_request(self, repo: str, branch: str) -> Any:
        at = self._at(repo)
        if self._host == "gitlab":
            asked = {"source_branch": branch, "target_branch": "main", "title": "A title"}
            return self._send("POST", f"{at}/merge_requests", json=asked)
        return self._send("POST", f"{at}/pulls", json={"head": branch, "base": "main", "title": "A title"})

    def merge_pull_request(self, repo: str, number: int) -> Any:
        at = self._at(repo)
        return self._send(
            "PUT", f"{at}/merge_requests/{number}/merge" if self._host == "gitlab" else f"{at}/pulls/{number}/merge"
        )


def _gitlab_commit(branch: str, number: int) -> dict[str, Any]:
    actions = [
        {"action": "update", "file_path": "a.txt", "content": LINE},
        {"action": "create", "file_path": f"new/{number}.txt", "content": LINE},
    ]
    return {"branch": branch, "commit_message": "A line", "actions": actions}


def _gitlab_rule(branch: str) -> dict[str, Any]:
    return {"name": branch, "push_access_level": 0, "merge_access_level": 40}


PEERS: dict[str, Callable[..., Peer]] = {
    "gitprovider": Ours,
    "PyGithub": PyGithub,
    "python-gitlab": PythonGitlab,
    "ogr": Ogr,
    "gfo": Gfo,
    "requests": Bare,
}


def run(peer: Peer, operation: str, given: dict[str, Any], *, times: int, memory: bool, sleeps: bool) -> dict[str, Any]:
    """Run one operation and return what it cost, and whether it succeeded.

    Args:
        times: how often in a row.
        memory: measure the peak of allocated memory, which makes everything slower.
        sleeps: let it sleep. Otherwise its sleeps are counted, and none happens.
    """
    slept: list[float] = []
    real = time.sleep
    if not sleeps:
        time.sleep = slept.append  # type: ignore[assignment]  # the libraries pass floats
    if memory:
        tracemalloc.start()
    value, error = None, None
    cpu, began = time.process_time(), time.perf_counter()
    try:
        call = getattr(peer, operation)
        for _ in range(times):
            value = call(**given)
    except Missing:
        return {"missing": True}
    except Exception as exc:
        error = f"{type(exc).__name__}: {exc}"[:300]
    finally:
        cpu, seconds = time.process_time() - cpu, time.perf_counter() - began
        time.sleep = real
        peak = tracemalloc.get_traced_memory()[1] if memory else 0
        tracemalloc.stop()
    count = value if isinstance(value, int) else None
    return {"error": error, "count": count, "cpu": cpu, "seconds": seconds, "peak": peak, "slept": sum(slept)}


def main(name: str, host: str, url: str, token: str, options: str = "{}") -> None:
    """Answer commands until standard input ends."""
    warnings.simplefilter("ignore")  # of a peer about its own dependencies
    kind = PEERS[name]
    versions = {package: metadata.version(package) for package in kind.packages}  # type: ignore[attr-defined]  # a class
    print(json.dumps(versions), flush=True)
    peer = kind(host, url, token, **json.loads(options))
    for line in sys.stdin:
        print(json.dumps(run(peer, **json.loads(line))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
