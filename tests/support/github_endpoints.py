"""Every endpoint of GitHub's REST API, as githubkit's client documents them."""

from __future__ import annotations

import re
from pathlib import Path

import githubkit_schemas.v2022_11_28 as version

_SEE = re.compile(r'"""[\w-]+/[\w-]+\s+(GET|POST|PUT|PATCH|DELETE) (/\S*)')


def endpoints() -> list[tuple[str, str]]:
    """The methods and paths, with ``1`` in the place of each part."""
    texts = [path.read_text(encoding="utf-8") for path in Path(version.__path__[0]).glob("rest/*.py")]
    found = {(method, path) for text in texts for method, path in _SEE.findall(text)}
    return sorted((method, re.sub(r"\{[^}]*\}", "1", path)) for method, path in found)
