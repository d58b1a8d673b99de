"""How Sphinx builds the site: MyST for the pages, furo for the looks, MathML for mathematics; nothing is loaded from elsewhere."""

from __future__ import annotations

from typing import Any

import tarviz
from tarviz.commands.deck.math import mathml

project = "tarviz"
author = "tarviz contributors"
copyright = author
release = version = tarviz.__version__
root_doc = "index"
extensions = ["myst_nb"]
exclude_patterns = ["**/.ipynb_checkpoints"]
templates_path: list[str] = []

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # docs/pairs.py has run them
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
python_maximum_signature_line_length = 100
toc_object_entries = False

smartquotes = False  # flags have two hyphens

html_theme = "furo"
html_title = "tarviz"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("search.js", {"defer": "defer"}), ("copy.js", {"defer": "defer"})]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # a page from the disk may not read its neighbours
html_last_updated_fmt = None
html_math_renderer = "mathml"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fc4", "color-brand-content": "#1f5fc4"},
    "dark_css_variables": {"color-brand-primary": "#82b3ff", "color-brand-content": "#82b3ff"},
}
suppress_warnings = ["myst.header"]  # a notebook may begin with its second level


def visit_math(self: Any, node: Any) -> None:
    """Mathematics in a line, as MathML."""
    from docutils import nodes

    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: Any) -> None:
    """Mathematics on lines of its own, as MathML."""
    from docutils import nodes

    self.body.append(f"<p>{mathml(node.astext(), block=True)}</p>")
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
