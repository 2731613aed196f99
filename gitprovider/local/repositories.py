"""Repositories: creating, finding, renaming, deleting."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gitprovider import checks
from gitprovider.errors import AlreadyExistsError, NotFoundError
from gitprovider.local import storage
from gitprovider.local.database import RepoRecord, repo_record, to_json
from gitprovider.local.git import BareRepository, opened, signature
from gitprovider.local.session import Session, Sessions, find_repo
from gitprovider.local.trees import write_tree
from gitprovider.models import Visibility


class Repositories(Sessions):
    """The forge's repositories."""

    def create_repo(
        self,
        path: str,
        *,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
        auto_init: bool = False,
        default_branch: str = "main",
        settings: Mapping[str, Any] | None = None,
    ) -> RepoRecord:
        """Create a repository. ``auto_init`` makes a first commit with a README.

        Raises:
            AlreadyExistsError: the path is taken. ``existing`` is its RepoRecord.
            ConflictError: its directory exists, and no forge made it.
        """
        checks.check_repo_path(path)
        checks.check_branch("default_branch", default_branch)
        with self._database.writing() as db:
            self._refuse_taken(db, path)
            db.execute("DELETE FROM redirects WHERE path = ?", (path,))
            db.execute(
                "INSERT INTO repos (path, directory, description, visibility, default_branch, created_at, settings)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    path,
                    _free_directory(db, path),
                    description,
                    Visibility(visibility).value,
                    default_branch,
                    self._now().isoformat(),
                    to_json(dict(settings or {})),
                ),
            )
            repo = find_repo(self._database, db, self.root, path)

            def fill(git_dir: Path) -> None:
                if auto_init:
                    with opened(git_dir, path) as git:
                        self._write_readme(git, repo)

            storage.make(self.root, repo.git_dir, repo.id, default_branch, fill)
        return repo

    def _write_readme(self, git: BareRepository, repo: RepoRecord) -> None:
        text = f"# {repo.path.rpartition('/')[2]}\n" + (f"\n{repo.description}\n" if repo.description else "")
        tree = write_tree(git, None, {"README.md": (git.write_blob(text.encode()), "100644")})
        by = signature(self.identity, self._now())
        sha = git.write_commit(tree=tree, parents=[], message="Initial commit", author=by, committer=by)
        git.set_branch(repo.default_branch, sha, old=None)

    def repo(self, path: str) -> RepoRecord:
        """A repository by its path, in any case."""
        with self._reading(path) as session:
            return session.repo

    def repo_by_id(self, id: int) -> RepoRecord:  # noqa: A002 - the field's name
        """A repository by its id.

        Raises:
            NotFoundError: the repository does not exist.
        """
        for repo in self.repos():
            if repo.id == id:
                return repo
        raise NotFoundError(f"there is no repository with the id {id}")

    def repos(self) -> list[RepoRecord]:
        """Every repository, by path."""
        with self._database.reading() as db:
            rows = db.execute("SELECT * FROM repos ORDER BY path").fetchall()
            with self._database.parsing("a repository's row"):
                return [repo_record(row, self.root) for row in rows]

    def rename_repo(self, path: str, new_path: str) -> RepoRecord:
        """Give a repository another path. The old path then raises RepoMovedError. The directory does not move.

        Raises:
            AlreadyExistsError: the new path is taken. ``existing`` is its RepoRecord.
        """
        checks.check_repo_path(new_path, "new_path")
        with self._database.writing() as db:
            repo = find_repo(self._database, db, self.root, path)
            if new_path.lower() != repo.path.lower():
                self._refuse_taken(db, new_path)
            db.execute("UPDATE repos SET path = ? WHERE id = ?", (new_path, repo.id))
            db.execute("INSERT OR REPLACE INTO redirects VALUES (?, ?)", (repo.path, repo.id))
            db.execute("DELETE FROM redirects WHERE path = ?", (new_path,))
            return find_repo(self._database, db, self.root, new_path)

    def update_repo(
        self,
        path: str,
        *,
        archived: bool | None = None,
        default_branch: str | None = None,
        description: str | None = None,
        visibility: Visibility | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> RepoRecord:
        """Change what is not None. ``settings`` are merged into the existing ones.

        Raises:
            NotFoundError: the default branch does not exist in a repository that has branches.
        """
        with self._database.writing() as db:
            repo = find_repo(self._database, db, self.root, path)
            if archived is not None:
                db.execute("UPDATE repos SET archived = ? WHERE id = ?", (int(archived), repo.id))
            if description is not None:
                db.execute("UPDATE repos SET description = ? WHERE id = ?", (description, repo.id))
            if visibility is not None:
                db.execute("UPDATE repos SET visibility = ? WHERE id = ?", (str(visibility), repo.id))
            if settings is not None:
                merged = to_json({**repo.settings, **settings})
                db.execute("UPDATE repos SET settings = ? WHERE id = ?", (merged, repo.id))
            if default_branch is not None:
                checks.check_branch("default_branch", default_branch)
                db.execute("UPDATE repos SET default_branch = ? WHERE id = ?", (default_branch, repo.id))
                with opened(repo.git_dir, repo.path) as git:
                    if git.has_branches():
                        Session(self._database, db, repo, git, self._combine).head(default_branch)
                    git.refs.set_head(default_branch)
            return find_repo(self._database, db, self.root, path)

    def delete_repo(self, path: str) -> None:
        """Delete a repository with everything in it, even an archived or damaged one."""
        with self._database.writing() as db:
            repo = find_repo(self._database, db, self.root, path)
            db.execute("DELETE FROM repos WHERE id = ?", (repo.id,))
        # The row goes first. A kill in between leaves the directory, and the next repository of that path replaces it.
        with self._database.writing() as db:
            directory = str(repo.git_dir.relative_to(self.root / "repositories"))
            if not db.execute("SELECT 1 FROM repos WHERE directory = ?", (directory,)).fetchone():
                storage.remove(self.root, repo.git_dir)

    def _refuse_taken(self, db: Any, path: str) -> None:
        row = db.execute("SELECT * FROM repos WHERE path = ?", (path,)).fetchone()
        if row is not None:
            with self._database.parsing(f"the row of {path}"):
                raise AlreadyExistsError(f"the repository {row['path']} exists", existing=repo_record(row, self.root))


def _free_directory(db: Any, path: str) -> str:
    # A repository that was made under this path and then renamed keeps its directory.
    name, suffix = f"{path}.git", 1
    while db.execute("SELECT 1 FROM repos WHERE directory = ?", (name,)).fetchone():
        suffix += 1
        name = f"{path}.{suffix}.git"
    return name
