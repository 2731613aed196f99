"""What a bootstrap is run on, and the steps and mutations that it takes."""

from __future__ import annotations

from pathlib import Path

STEPS = [
    "create_repo",
    "commit_files",
    "create_branch",
    "create_change_branch",
    "commit_change",
    "open_pull_request",
    "merge_pull_request",
    "protect_branch",
]


SENT = [
    "create_repo",
    "commit_files",
    "create_branch",
    "create_branch",
    "commit_files",
    "open_pull_request",
    "merge_pull_request",
    "protect_branch",
]


def a_directory(folder: Path) -> Path:
    (folder / "src").mkdir(parents=True)
    (folder / "README.md").write_text("# Widgets\n")
    (folder / "src" / "data.bin").write_bytes(bytes(range(256)))
    run = folder / "run"
    run.write_text("#!/bin/sh\n")
    run.chmod(0o755)
    return folder
