"""Links from the code of the pages to the reference of the library.

Works on the highlighted HTML of code cells, when a page is written: there each name is a piece of
its own, and what it means has been read from the code already (`rederive_book.code_uses`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

#: The highlighted code of a cell.
_BLOCK = re.compile(r'<div class="highlight-i?python3? notranslate">.*?</pre>', re.S)
_DOT = r'<span class="o">\.</span>'


def add_links(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document
) -> None:
    """Link the names in a page's code that the reference has an entry for."""
    cells = getattr(app, "rederive_cells", {}).get(pagename, ())
    if doctree is None or not cells or app.builder.format != "html":
        return
    known = app.env.get_domain("py").objects
    addresses, titles = {}, {}
    for written, full in (pair for cell in cells for pair in cell.names):
        if entry := documented(full, known):
            page = app.builder.get_relative_uri(pagename, known[entry].docname)
            addresses[written] = f"{page}#{known[entry].node_id}"
            titles[written] = entry
    context["body"] = linked(context["body"], addresses, titles)


def documented(name: str, known: Iterable[str]) -> str | None:
    """The entry for a name, or for the innermost thing around it; None if that is a package."""
    while "." in name:
        if name in known:
            return name
        name = name.rpartition(".")[0]
    return None


def linked(body: str, addresses: Mapping[str, str], titles: Mapping[str, str]) -> str:
    """A page's HTML with links in its code cells.

    Parameters
    ----------
    body : str
    addresses, titles : mapping of str to str
        For each name as it is written, dots included: where it leads, and what that is called.
    """
    if not addresses:
        return body
    names = "|".join(map(_spans, sorted(addresses, key=lambda name: -name.count("."))))
    # Neither an attribute of something else nor the name of an argument.
    name = re.compile(rf'(?<!{_DOT})(?:{names})(?!<span class="o">=</span>)')

    def link(match: re.Match[str]) -> str:
        written = html.unescape(re.sub(r"<[^>]*>", "", match[0]))
        return (
            f'<a class="rederive-to-library" href="{html.escape(addresses[written])}" '
            f'title="{titles[written]}">{match[0]}</a>'
        )

    return _BLOCK.sub(lambda block: name.sub(link, block[0]), body)


def _spans(written: str) -> str:
    """The pattern of a name, as highlighting writes it."""
    return _DOT.join(
        rf'<span class="n[a-z]*">{re.escape(part)}</span>' for part in written.split(".")
    )
