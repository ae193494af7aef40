"""The map of claims as a picture: what rests on what, drawn as inline SVG.

A pure function of what is handed over. Verdicts are told apart by sign, by the pattern of the
stripe at the left of a box, and by its border; colour only helps. Boxes are links with a title, so
the picture can be walked with the tabulator key. Colours and fonts come from the style sheet.
"""

from __future__ import annotations

import html
import itertools
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rederive_book import verdict_shapes
from rederive_book.comparison import verdict_words
from rederive_book.layered import Joint, Layout, arrange

WIDTH, STRIPE, GAP, BETWEEN_LAYERS = 140.0, 9.0, 9.0, 26.0
LINE, HEAD, PAD = 14.0, 15.0, 5.0
LETTERS = 18  # in a line of a box, at the size of font of the style sheet
MARGIN, CAPTION = 4.0, 30.0
SMALLEST = 0.72  # a map is drawn smaller to fit its column, but not smaller than this


@dataclass(frozen=True)
class Box:
    """A claim as the map shows it.

    Attributes
    ----------
    id, label, title : str
        The title in plain text.
    verdict : str or None
        None is untried.
    uses : tuple of str
        Ids; those without a box are left out.
    name : str
        "Theorem 2.1", or empty.
    address : str or None
        Where the theorem stands; None leaves the box without a link.
    band : str
        The chapter, for a map of several.
    outside : bool
        Whether it belongs to another chapter than the map.
    """

    id: str
    label: str
    title: str
    verdict: str | None
    uses: tuple[str, ...] = ()
    name: str = ""
    address: str | None = None
    band: str = ""
    outside: bool = False

    @property
    def state(self) -> str:
        """The verdict as a word."""
        return self.verdict or "untried"

    @property
    def lines(self) -> list[str]:
        """The title, broken into lines."""
        return textwrap.wrap(self.title, LETTERS)

    @property
    def height(self) -> float:
        """The height of the box."""
        return HEAD + LINE * len(self.lines) + 2 * PAD


def plain(text: str) -> str:
    """A title without markup: TeX keeps its letters, other signs of Markdown go."""
    return re.sub(r"[$`*\\{}]", "", text)


def draw(boxes: Sequence[Box], name: str, title: str) -> str:
    """The map as an SVG element.

    Parameters
    ----------
    boxes : sequence of Box
        In the order of the book; bands in the order in which they first come.
    name : str
        Unique on the page; letters a-z, digits and hyphens.
    title : str
        What the picture shows, for those who hear it.

    Returns
    -------
    str
        Empty without boxes. What carries stands left of, or above, what it carries, whichever way
        is narrower.
    """
    if not boxes:
        return ""
    known = {box.id: box for box in boxes}
    uses = {box.id: [used for used in box.uses if used in known] for box in boxes}
    bands = list(dict.fromkeys(box.band for box in boxes))
    sideways = arrange(
        uses,
        lambda node: known[node].height,
        gap=GAP,
        band=lambda node: bands.index(known[node].band),
        between=GAP + CAPTION,
    )
    if len(bands) == 1:
        downward = arrange(uses, lambda node: WIDTH, gap=GAP + 3)
        if downward.extent < _length(sideways, known, down=False):
            return _picture(downward, known, name, title, down=True)
    return _picture(sideways, known, name, title, down=False)


def _length(layout: Layout, known: Mapping[str, Box], *, down: bool) -> float:
    """The extent of a drawing from its first layer to its last."""
    total = 0.0
    for layer in layout.layers:
        heights = [known[node].height for node in layer if not isinstance(node, Joint)]
        total += (max(heights) if down else WIDTH) + BETWEEN_LAYERS
    return total - BETWEEN_LAYERS


def _picture(layout: Layout, known: Mapping[str, Box], name: str, title: str, *, down: bool) -> str:
    top = MARGIN + (CAPTION if len({box.band for box in known.values()}) > 1 else 0)
    starts, deep = [], []
    at = MARGIN
    for layer in layout.layers:
        heights = [known[node].height for node in layer if not isinstance(node, Joint)]
        deep.append(max(heights) if down else WIDTH)
        starts.append(at)
        at += deep[-1] + BETWEEN_LAYERS
    length = at - BETWEEN_LAYERS + MARGIN
    across = {node: (MARGIN if down else top) + place for node, place in layout.across.items()}
    layer_of = layout.layer_of()
    drawn = []
    for way in layout.arrows:
        drawn.append(_arrow(way, known, across, layer_of, starts, deep, name, down=down))
    for box in known.values():
        along, place = starts[layer_of[box.id]], across[box.id]
        x, y = (place - WIDTH / 2, along) if down else (along, place - box.height / 2)
        drawn.append(_box(box, x, y, name))
    drawn += _captions(known, across, length)
    wide, high = layout.extent + 2 * MARGIN, length
    if not down:
        wide, high = length, layout.extent + top + MARGIN
    head = (
        f'<marker id="{name}-head" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" '
        'markerHeight="6" markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M0 0 6 3 0 6z" class="rederive-head"/></marker>'
    )
    return (
        f'<svg width="{wide:.0f}" height="{high:.0f}" viewBox="0 0 {wide:.0f} {high:.0f}" '
        f'style="{_fitted(wide)}" '
        f'role="group" aria-label="{html.escape(title)}">'
        f"<defs>{verdict_shapes.patterns(name)}{head}</defs>"
        f"{''.join(drawn)}</svg>"
    )


def _fitted(wide: float) -> str:
    """The width of a map as a style: the column's, or its own where that would make it too small.

    The factor turns the sign of a difference into a choice; style sheets know no other.
    """
    least = f"({SMALLEST * wide:.0f}px - 100%) * 9999"
    return f"width: min({wide:.0f}px, max(100%, {least}))"


def _box(box: Box, x: float, y: float, name: str) -> str:
    words = f"{box.title}: {box.state}{', ' + box.name if box.name else ''}"
    middle = x + STRIPE + (WIDTH - STRIPE) / 2
    head = f"{verdict_words(box.verdict).split()[0]} {box.name or box.state}"
    text = f'<tspan x="{middle:.0f}" y="{y + PAD + 10:.0f}" class="rederive-name">{head}</tspan>'
    for number, line in enumerate(box.lines):
        down = y + PAD + HEAD + LINE * number + 11
        text += f'<tspan x="{middle:.0f}" y="{down:.0f}">{html.escape(line)}</tspan>'
    classes = f"rederive-box rederive-is-{box.state}" + (" rederive-outside" * box.outside)
    attributes = f'class="{classes}" data-label="{box.label}" data-claim="{box.id}"'
    frame = verdict_shapes.frame(box.state, name, x, y, WIDTH, box.height, STRIPE)
    inside = f"<title>{html.escape(words)}</title>{frame}<text>{text}</text>"
    if box.address is None:
        return f"<g {attributes}>{inside}</g>"
    return f'<a href="{html.escape(box.address)}" {attributes}>{inside}</a>'


def _arrow(
    way: Sequence[str | Joint],
    known: Mapping[str, Box],
    across: Mapping[str | Joint, float],
    layer_of: Mapping[str | Joint, int],
    starts: Sequence[float],
    deep: Sequence[float],
    name: str,
    *,
    down: bool,
) -> str:
    """From the far side of what carries to the near side of what is carried."""

    def point(along: float, place: float) -> str:
        return f"{place:.1f} {along:.1f}" if down else f"{along:.1f} {place:.1f}"

    def far(node: str | Joint) -> float:
        return starts[layer_of[node]] + deep[layer_of[node]]

    made = f"M{point(far(way[0]), across[way[0]])}"
    if down:  # straight past higher neighbours first
        own = starts[layer_of[way[0]]] + known[way[0]].height
        made = f"M{point(own, across[way[0]])}L{point(far(way[0]), across[way[0]])}"
    for a, b in itertools.pairwise(way):
        begin, end = far(a), starts[layer_of[b]]
        half = (begin + end) / 2
        made += f"C{point(half, across[a])} {point(half, across[b])} {point(end, across[b])}"
        if isinstance(b, Joint):
            made += f"L{point(far(b), across[b])}"
    ends = f'data-from="{way[0]}" data-to="{way[-1]}"'
    return f'<path d="{made}" class="rederive-arrow" {ends} marker-end="url(#{name}-head)"/>'


def _captions(
    known: Mapping[str, Box], across: Mapping[str | Joint, float], length: float
) -> list[str]:
    """The names of the bands above each; none where there is one band only."""
    bands = list(dict.fromkeys(box.band for box in known.values()))
    if len(bands) == 1:
        return []
    made = []
    for band in bands:
        inside = [box for box in known.values() if box.band == band]
        y = min(across[box.id] - box.height / 2 for box in inside) - CAPTION / 2
        made.append(
            f'<text x="{MARGIN:.0f}" y="{y:.0f}" class="rederive-band">{html.escape(band)}</text>'
            f'<path d="M{MARGIN:.0f} {y + 5:.0f}H{length - MARGIN:.0f}" class="rederive-rule"/>'
        )
    return made
