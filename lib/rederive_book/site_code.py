"""From claims and library to the cells of the pages, and back.

What a page's code uses of the library is read from the code (`rederive_book.code_uses`). From that
come the pages listed below each entry of the reference, and the functions and checks named with
each claim. A figure gets the address of the cell that drew it here, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

from rederive_book.claims import Claim
from rederive_book.code_uses import Cell, behind, read_cells
from rederive_book.site_nodes import Material

#: Class of a reference to the library that loses its link when the reference has no such entry.
API = "rederive-api"

Cells = Mapping[str, tuple[Cell, ...]]


def read_code(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Read the code of every page before any is parsed."""
    found = {}
    for docname in sorted(env.found_docs):
        path = Path(env.doc2path(docname))
        if path.suffix in (".md", ".ipynb") and (cells := read_cells(path)):
            found[docname] = cells
    app.rederive_cells = found


def pages_using(name: str, cells: Cells) -> list[str]:
    """The pages whose code uses an object of the library, or something inside it.

    Parameters
    ----------
    name : str
        The full name: ``rederive.flows.velocity``.
    cells : mapping of str to tuple of Cell
    """
    inside = name + "."
    return [
        docname
        for docname, of_page in cells.items()
        if any(use == name or use.startswith(inside) for cell in of_page for use in cell.uses)
    ]


def used_on(name: str, cells: Cells) -> list[str]:
    """The line of reStructuredText for the end of a docstring; empty for what no page uses."""
    pages = pages_using(name, cells)
    if not pages:
        return []
    links = ", ".join(f":doc:`/{page}`" for page in pages)
    return ["", ".. container:: rederive-used-on", "", f"   Used on: {links}", ""]


def check_links(material: Material, entry: Mapping[str, Any]) -> list[nodes.Node]:
    """One number a check, each linked to the line below the cell that made it.

    Empty where the lines are not in this build.
    """
    pages = {
        anchor: docname
        for docname, cells in material.cells.items()
        for cell in cells
        for anchor in cell.anchors
    }
    env = material.directive.env
    made: list[nodes.Node] = []
    for number, check in enumerate(entry["checks"], start=1):
        page = pages.get(check["anchor"])
        if page is None:
            return []
        address = env.app.builder.get_relative_uri(env.docname, page)
        link = nodes.reference(
            "",
            str(number),
            refuri=f"{address}#{check['anchor']}",
            internal=True,
            reftitle=check["name"],
        )
        made += [nodes.Text(" ")] * bool(made) + [link]
    return made


def library(material: Material, claim: Claim) -> list[nodes.Node]:
    """The functions of the library behind a claim's checks, folded away."""
    names = sorted(
        {
            name
            for cells in material.cells.values()
            for name in behind(cells, claim.id)
            if name.startswith("rederive.")
        }
    )
    if not names:
        return []
    line = nodes.paragraph("")
    for name in names:
        line += [nodes.Text(", ")] * bool(len(line)) + [_api(name, material)]
    count = f"{len(names)} function{'s' * (len(names) > 1)} of the library"
    opening = f'<details class="rederive-library"><summary>{count}</summary>'
    return [
        nodes.raw("", opening, format="html"),
        line,
        nodes.raw("", "</details>", format="html"),
    ]


def _api(name: str, material: Material) -> nodes.inline:
    short = ".".join(name.split(".")[1:])
    link = addnodes.pending_xref(
        "",
        nodes.literal("", short),
        refdomain="py",
        reftype="obj",
        reftarget=name,
        refdoc=material.directive.env.docname,
        refexplicit=True,
    )
    return nodes.inline("", "", link, classes=[API])


def unlink_unknown(document: nodes.document, env: BuildEnvironment) -> None:
    """Take the link from references to the library that lead to no entry."""
    known = env.get_domain("py").objects
    for place in list(document.findall(nodes.inline)):
        if API in place["classes"]:
            for link in list(place.findall(addnodes.pending_xref)):
                if link["reftarget"] not in known:
                    link.replace_self(link.children)


class LinkFiguresToCells(SphinxTransform):
    """Puts the link to the code that drew a figure beside the one to its data.

    The address is that of the code inside its fold: browsers open a fold whose inside is called,
    and ``rederive-reveal.js`` does so in older ones.
    """

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        for output in list(self.document.findall(nodes.raw)):
            figure = _FIGURE.search(output.astext())
            code = _code_of(output) if figure else None
            if code is None:
                continue
            anchor = nodes.make_id(f"code-{figure['name']}")
            if anchor not in code["ids"]:
                code["ids"].append(anchor)
            link = f' · <a class="rederive-to-code" href="#{anchor}">code</a>'
            text = output.astext()
            output.clear()
            output += nodes.Text(text[: figure.end()] + link + text[figure.end() :])


#: What `rederive_book.figures` writes behind a picture, up to the end of its link.
_FIGURE = re.compile(
    r'<div class="rederive-download"><a download="(?P<name>[^"]+)\.csv"[^>]*>[^<]*</a>'
)


def _code_of(output: nodes.Node) -> nodes.Element | None:
    """The container with the code of the cell in whose output a node is."""
    at = output.parent
    while at is not None and "cell" not in at.get("classes", ()):
        at = at.parent
    inside = at.children if at is not None else ()
    return next((node for node in inside if "cell_input" in node["classes"]), None)
