"""The table of options in the documentation, from the one table in code, and the index of decisions, from their files.

``python -m tests.support.readme_table`` writes both anew.
"""

from __future__ import annotations

import re
from pathlib import Path

from gitprovider._core.options import OPTIONS, Host, support

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/hosts.md"
BEGIN = "<!-- options: written by `python -m tests.support.readme_table` -->\n"
END = "<!-- end of options -->\n"
_COLUMNS: tuple[tuple[Host, str], ...] = (
    ("github", "github.com"),
    ("github-enterprise", "GitHub Enterprise"),
    ("gitlab", "gitlab.com"),
    ("gitlab-self-managed", "GitLab self-managed"),
    ("local", "local"),
)


def render() -> str:
    """The table as Markdown, and below it the reasons, each once."""
    reasons: list[str] = []
    lines = [
        f"| option | {' | '.join(title for _, title in _COLUMNS)} |",
        f"|---|{'---|' * len(_COLUMNS)}",
    ]
    for option in OPTIONS:
        cells = []
        for host, _ in _COLUMNS:
            row = support(option, host)
            if not row.honoured and row.reason not in reasons:
                reasons.append(row.reason)
            cells.append("yes" if row.honoured else f"no ({reasons.index(row.reason) + 1})")
        lines.append(f"| `{option}` | {' | '.join(cells)} |")
    lines += ["", *(f"{number}. {reason}." for number, reason in enumerate(reasons, 1))]
    return "\n".join(lines) + "\n"


def written(text: str) -> str:
    """The table that ``text`` has between its two marks."""
    return text.partition(BEGIN)[2].partition(END)[0]


DECISIONS = ROOT / "adr"
_RULE = "|---|---|---|\n"


def render_index() -> str:
    """The rows of adr/README.md: number, title and status of each file, as the file says."""
    rows = []
    for path in sorted(DECISIONS.glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        title = re.match(r"# (\d{4}): (.+)\n", text)
        status = re.search(r"^- Status: (.+)$", text, re.MULTILINE)
        if title is None or status is None:
            raise ValueError(f"{path.name} does not begin as adr/template.md does")
        rows.append(f"| [{title[1]}]({path.name}) | {title[2]} | {status[1]} |\n")
    return "".join(rows)


def written_index(text: str) -> str:
    """The rows that ``text`` has below the table's head."""
    return text.partition(_RULE)[2]


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.replace(BEGIN + written(text) + END, BEGIN + render() + END), encoding="utf-8")
    index = DECISIONS / "README.md"
    index.write_text(index.read_text(encoding="utf-8").partition(_RULE)[0] + _RULE + render_index(), encoding="utf-8")
