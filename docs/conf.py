"""How Sphinx builds the documentation: Markdown pages, the notebooks, and docstrings.

``make docs`` builds it, with every warning an error, into ``docs/_build``. Pages are Markdown that
also reads well where it is not built; notebooks and tables of benchmarks lie elsewhere and are
linked to. Notebooks are shown with the outputs that are kept in them, which the tests compare.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from ucle.foundation.version import __version__

LINKED = {"../notebooks": "notebooks", "../benchmarks/results": "benchmarks"}
"""What lies elsewhere, and the symbolic links to it that are folders of the site."""

MADE = ("operators", "array_api", "commands", "comparisons", "benchmarks/", "gallery/index")
"""Pages that programs write: nobody edits them."""


def follow_links(app: Sphinx, page: str, source: list[str]) -> None:
    """Let what leads out of this folder, for readers of the files, lead to the pages."""
    for origin, folder in LINKED.items():
        above = "../" * page.count("/") + origin  # as a page in a folder writes it
        file = rf"\[([^\]]+)\]\({re.escape(above)}/(\w+)\.(?:md|ipynb)\)"
        source[0] = re.sub(file, rf"{{doc}}`\1 </{folder}/\2>`", source[0])


def offer_editing(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: object
) -> None:
    """Have the pencil of a page lead to its file, wherever that lies, or have none."""
    if page.startswith(MADE):
        context["page_source_suffix"] = ""
    elif page.startswith(tuple(f"{folder}/" for folder in LINKED.values())):
        context["theme_source_directory"] = ""  # the link to the folder is no folder on GitHub


def leave_out_constructors(
    app: Sphinx, kind: str, name: str, member: object, skip: bool, options: object
) -> bool | None:
    """Skip `__init__` and `__new__` of classes: functions make their instances."""
    return True if name in ("__init__", "__new__") else None


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", leave_out_constructors)
    app.connect("source-read", follow_links)
    app.connect("html-page-context", offer_editing)


project = "ucle"
release = version = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]

smartquotes = False  # they would be in the way of options and of code in docstrings

# A link to a heading is written as GitHub writes it.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "html_image"]
nb_execution_mode = "off"  # tests/project/test_notebooks.py executes them

# `name` in a docstring is a link where there is something of that name, and code elsewhere; only
# what says that it is ours has to be there.
nitpicky = True
default_role = "py:obj"
nitpick_ignore_regex = [("py:(obj|class)", r"(?!ucle\.).*")]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "separated"  # constructors are not what makes these
napoleon_numpy_docstring = False
add_module_names = False
toc_object_entries_show_parents = "hide"

# What is typed is copied, without prompts; what is printed has no button.
COPIED = ("python", "py", "sh", "console", "yaml", "default", "ipython3")
copybutton_selector = ", ".join(f"div.highlight-{language} pre" for language in COPIED)
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
PACKAGE = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
html_theme_options = {
    "source_repository": PACKAGE["project"]["urls"]["Repository"],
    "source_branch": "main",
    "source_directory": "docs/",
}
html_title = "ucle"
html_static_path = ["_static"]
html_css_files = ["ucle.css"]
html_show_copyright = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
