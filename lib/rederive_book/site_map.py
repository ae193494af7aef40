"""The map of claims on the site: a directive, the list that says the same, and the drawing.

The drawing is made after all pages are read, because only then it is known which theorem stands
where, and under which number.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from rederive_book import claims_map, verdict_shapes
from rederive_book.claims import Claim
from rederive_book.claims_map import Box
from rederive_book.site_nodes import Material, badge, chapter_name, is_built, theorem_name

#: Attribute of a drawn map: the labels of the theorems that its boxes lead to.
LABELS = "rederive_labels"

_HOW = (
    "An arrow leads from a claim to one that rests on it. A box is a link to its theorem; its "
    "sign, its stripe and its border tell the verdict."
)
_OUTSIDE = "Boxes in slanted letters belong to other chapters."


class claims_map_node(nodes.General, nodes.Element):
    """Stands for the drawing until it can be made."""


def claims_map_of(material: Material, folder: str | None) -> list[nodes.Node]:
    """The map of a chapter, or of the book, and the same as a list below it."""
    own = material.claims.values() if folder is None else material.claims.of_folder(folder)
    used = {used for claim in own for used in claim.uses}
    others = [
        c for c in material.claims.values() if folder not in (None, c.folder) and c.id in used
    ]
    node = claims_map_node(
        "",
        folder=folder,
        boxes=[
            Box(
                id=claim.id,
                label=claim.label,
                title=claims_map.plain(claim.title),
                verdict=material.verdict(claim),
                uses=() if claim in others else claim.uses,
                band="" if folder else chapter_name(claim.folder),
                outside=claim in others,
            )
            for claim in [*others, *own]
        ],
    )
    note = nodes.paragraph("", _HOW, classes=["rederive-note"])
    if others:  # a text of its own, as it is translated alone
        note += nodes.inline("", f" {_OUTSIDE}")
    opening = '<details class="rederive-map-list"><summary>The same as a list</summary>'
    return [
        note,
        node,
        nodes.raw("", opening, format="html"),
        _list(material, folder),
        nodes.raw("", "</details>", format="html"),
    ]


def _list(material: Material, folder: str | None) -> nodes.bullet_list:
    """Claims with what each rests on, by chapter."""
    if folder is not None:
        items = (_item(material, claim) for claim in material.claims.of_folder(folder))
        return nodes.bullet_list("", *items)
    chapters = nodes.bullet_list("")
    for chapter in material.claims.folders:
        name = nodes.paragraph("", "", nodes.strong("", chapter_name(chapter)))
        chapters += nodes.list_item("", name, _list(material, chapter))
    return chapters


def _item(material: Material, claim: Claim) -> nodes.list_item:
    item = nodes.list_item("", _line(material, claim))
    if claim.uses:
        item[0] += nodes.Text(" rests on")
        below = (_line(material, material.claims[used]) for used in claim.uses)
        item += nodes.bullet_list("", *(nodes.list_item("", line) for line in below))
    return item


def _line(material: Material, claim: Claim) -> nodes.paragraph:
    line = nodes.paragraph("", "", material.title(claim), material.reference(claim, ", ", ""))
    line += [nodes.Text(" "), badge(material.verdict(claim))]
    return line


class DrawMaps(SphinxPostTransform):
    """Draws the maps of a page; other builders than those of HTML show the list alone."""

    default_priority = 6

    def run(self, **kwargs: Any) -> None:
        for node in list(self.document.findall(claims_map_node)):
            if self.app.builder.format == "html" and node["boxes"]:
                node.replace_self(self._drawing(node))
            else:
                node.parent.remove(node)

    def _drawing(self, node: claims_map_node) -> nodes.raw:
        boxes = [self._placed(box) for box in node["boxes"]]
        folder = node["folder"]
        title = f"Map of the claims of {'the book' if folder is None else chapter_name(folder)}"
        name = f"map-{folder or 'book'}"
        counts = Counter(box.state for box in boxes if not box.outside)
        text = (
            f'<figure class="rederive-map">{verdict_shapes.legend(counts, name)}'
            f'<div class="rederive-map-box">{claims_map.draw(boxes, name, title)}</div></figure>'
        )
        made = nodes.raw("", text, format="html")
        made[LABELS] = [box.label for box in boxes if box.address is not None]
        return made

    def _placed(self, box: Box) -> Box:
        """The box with number and address of its theorem, if that is in this build."""
        if not is_built(self.env, box.label):
            return box
        here, there = self.env.docname, self.env.proof_list[box.label]["docname"]
        page = "" if here == there else self.app.builder.get_relative_uri(here, there)
        name = theorem_name(self.env, box.label)
        return replace(box, address=f"{page}#{box.label}", name=name)
