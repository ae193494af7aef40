"""Sphinx extension: explorers, figures whose numbers answer to sliders while one reads.

Directive (in MyST pages)
-------------------------
``{explorer} <name>``
    The explorer of that name; the content is its caption. Option ``name``: a label to refer to.

An explorer is one Python module ``rederive_book.explorer_<name>`` with a constant ``EXPLORER`` (an
`Explorer`), named in `modules`, and scripts of our own in ``static/explorers/``. The page carries
everything a reader without scripts needs: a still picture and the numbers at the preset, both made
by the library while the book is built, and the controls, asleep. The small script
``rederive-explorers.js`` waits until the explorer comes near the screen, fetches its scripts and
wakes the controls up. Nothing changes its size then.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata, OptionSpec

from rederive_book import (
    __version__,
    explorer_flow_tokens,
    explorer_free_product,
    explorer_pooling_weights,
    explorer_principal_angles,
)
from rederive_book.explorer_html import html
from rederive_book.explorer_model import Explorer

__all__ = ["find", "modules"]

SCRIPTS = Path(__file__).parent / "static" / "explorers"


def modules() -> dict[str, ModuleType]:
    """The module of each explorer, by name."""
    found = (
        explorer_flow_tokens,
        explorer_free_product,
        explorer_pooling_weights,
        explorer_principal_angles,
    )
    return {module.EXPLORER.name: module for module in found}


def find(name: str) -> Explorer:
    """The explorer of a name.

    Raises
    ------
    ValueError
        If there is none.
    """
    known = modules()
    if name not in known:
        raise ValueError(f"explorer: there is no explorer {name!r}, but {', '.join(known)}")
    return known[name].EXPLORER


class ExplorerDirective(SphinxDirective):
    """An explorer as a figure with a caption."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[OptionSpec] = {"name": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        try:
            explorer = find(self.arguments[0].strip())
        except ValueError as error:
            raise self.error(str(error)) from error
        if not self.content:
            raise self.error(f"explorer: {explorer.name} has no caption")
        self.env.note_dependency(modules()[explorer.name].__file__)
        picture = nodes.raw("", html(explorer), format="html")
        figure = nodes.figure("", picture, classes=["rederive-explorer"])
        self.set_source_info(figure)
        words = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, words)
        first, *rest = words.children
        if not isinstance(first, nodes.paragraph):
            raise self.error("explorer: the caption starts with a paragraph")
        figure += nodes.caption(first.rawsource, "", *first.children)
        if rest:
            figure += nodes.legend("", *rest)
        self.add_name(figure)
        return [figure]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension with Sphinx; the files below ``static`` are the book's own anyway."""
    app.add_directive("explorer", ExplorerDirective)
    app.add_css_file("explorers.css")
    app.add_js_file("rederive-explorers.js", loading_method="defer")
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
