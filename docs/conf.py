"""How Sphinx builds the documentation: `make docs`."""

from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import gitprovider

# Sphinx reads one folder only. The decisions and what is beside the documentation are linked into it.
ADRS = Path(__file__).parent / "adr"
if not ADRS.is_symlink():
    ADRS.symlink_to("../adr")

project = "gitprovider"
author = "the gitprovider authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.intersphinx"]
exclude_patterns = ["_build", "adr/README.md", "adr/template.md"]
html_theme = "furo"
html_title = "gitprovider"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_typehints = "none"  # the signature shows them
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_class_signature = "separated"
napoleon_use_ivar = True
napoleon_google_docstring = True
nitpick_ignore_regex = [
    # The standard library's inventory is on the network, and the build needs none.
    ("py:.*", r"(collections|contextlib|datetime|enum|os|pathlib|types|typing)\..*"),
    # "first, second: what they are" in a docstring is read as a type and a name.
    ("py:class", r"[a-z_]+"),
    ("py:exc", r"Any error with outcome PARTIAL"),
    # Type variables and private bases have no page.
    ("py:.*", r"gitprovider\.(.*\.)?_\w+"),
]
suppress_warnings = ["myst.xref_missing"]  # links to files of the repository, which lie beside the documentation


def resolve_public_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """Lead ``gitprovider.deadline`` to the module that defines it, where the reference shows it."""
    package, _, name = str(node.get("reftarget", "")).partition(".")
    thing = getattr(gitprovider, name, None) if package == "gitprovider" else None
    module = getattr(thing, "__module__", "gitprovider")
    if module == "gitprovider":
        return None
    target = f"{module}.{name}"
    domain = env.domains.python_domain
    return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], target, node, content)


def lead_to_the_decisions(app: Sphinx, page: str, text: list[str]) -> None:
    """Turn a link that works in the repository into one that works here."""
    text[0] = text[0].replace("](../../adr/", "](../adr/")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", lead_to_the_decisions)
    app.connect("missing-reference", resolve_public_name)
