"""Quick actions: lines in the description of a merge request that GitLab executes and removes.

https://docs.gitlab.com/user/project/quick_actions/
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_LINE = re.compile(r"/(\w+)(?:[ \t]+(.*\S))?[ \t]*\Z")
_DRAFT = re.compile(r"\s*(?:\[draft\]|\(draft\)|draft:)\s*", re.IGNORECASE)


@dataclass(slots=True)
class Executed:
    """A merge request after the quick actions of its description: what they set, and the remaining text."""

    title: str
    description: str = ""
    closed: bool = False
    labels: list[str] = field(default_factory=list)
    reviewers: list[str] = field(default_factory=list)
    target_branch: str | None = None


def without_prefix(title: str) -> str:
    """The title without the prefix that marks a draft."""
    match = _DRAFT.match(title)
    return title[match.end() :] if match else title


def executed(title: str, description: str) -> Executed:
    """Execute the quick actions in a description. Fenced code has none."""
    result = Executed(title=title)
    kept: list[str] = []
    fenced = False
    for line in description.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced or not _execute(result, line.rstrip("\r")):
            kept.append(line)
    text = "\n".join(kept)
    result.description = text if len(kept) == description.count("\n") + 1 else text.strip()
    return result


def _execute(result: Executed, line: str) -> bool:
    match = _LINE.match(line)
    if match is None:
        return False
    argument = match[2] or ""
    match match[1].lower():
        case "close":
            result.closed = True
        case "draft":
            result.title = f"Draft: {without_prefix(result.title)}"
        case "ready":
            result.title = without_prefix(result.title)
        case "title" if argument:
            result.title = argument
        case "label" | "labels":
            result.labels += [quoted or plain for quoted, plain in re.findall(r'~(?:"([^"]+)"|(\S+))', argument)]
        case "assign_reviewer" | "reviewer" | "request_review":
            result.reviewers += re.findall(r"@([\w.-]+)", argument)
        case "target_branch" if argument:
            result.target_branch = argument
        case _:
            return False
    return True
