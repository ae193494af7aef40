"""How a verdict looks on the map: the pattern of a stripe, the frame of a box, the legend.

Each of these tells verdicts apart without colour, which the style sheet adds.
"""

from __future__ import annotations

import html
from collections.abc import Mapping

from rederive_book.comparison import verdict_words

#: The inside of the pattern of a stripe, a square of six units.
PATTERNS = {
    "holds": '<rect width="6" height="6"/>',
    "amended": '<path d="M-1 7 7-1M-1 1 1-1M5 7 7 5"/>',
    "refuted": '<path d="M0 0 6 6M6 0 0 6"/>',
    "open": '<circle cx="3" cy="3" r="1.2"/>',
    "untried": "",
}


def patterns(name: str) -> str:
    """The definitions that the frames of a map refer to."""
    return "".join(
        f'<pattern id="{name}-{verdict}" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'class="rederive-pattern rederive-is-{verdict}">{inside}</pattern>'
        for verdict, inside in PATTERNS.items()
    )


def frame(
    verdict: str, name: str, x: float, y: float, width: float, height: float, stripe: float
) -> str:
    """A frame with the verdict's stripe at its left, and a second line where it is refuted."""
    made = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.0f}" height="{height:.0f}" '
        'class="rederive-frame"/>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{stripe:.0f}" height="{height:.0f}" '
        f'fill="url(#{name}-{verdict})"/>'
    )
    if verdict == "refuted":
        made += (
            f'<rect x="{x + 2.5:.1f}" y="{y + 2.5:.1f}" width="{width - 5:.0f}" '
            f'height="{height - 5:.0f}" class="rederive-inner"/>'
        )
    return made


def legend(counts: Mapping[str, int], name: str) -> str:
    """What signs and patterns mean, with the number of claims of each verdict that there is."""
    items = []
    for verdict in PATTERNS:
        if counts.get(verdict):
            words = verdict_words(None if verdict == "untried" else verdict)
            items.append(
                f'<li><svg class="rederive-swatch rederive-is-{verdict}" width="22" height="16" '
                f'aria-hidden="true">{frame(verdict, name, 0.5, 0.5, 21, 15, 21)}</svg> '
                f"{html.escape(words)} ({counts[verdict]})</li>"
            )
    return f'<ul class="rederive-legend">{"".join(items)}</ul>'
