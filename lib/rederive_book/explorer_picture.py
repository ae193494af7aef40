"""Stills of explorers: axes, curves, bars and marks as scalable pictures in the theme's colours.

The twin of ``static/explorers/plot.js``: what scripts draw on the stage, this draws while the book
is built. Marks take their colours from the classes of ``explorers.css``, so a still is right in
light, dark and print.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

__all__ = ["Picture", "round_up", "ticks"]

FACTORS = (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


def ticks(low: float, high: float, count: float) -> list[float]:
    """Round steps, about `count` of them between two numbers."""
    rough = (high - low) / max(1, count)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(f for f in (1, 2, 5, 10) if f * power >= rough * (1 - 1e-9)) * power
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def round_up(value: float) -> float:
    """The least round number that is not below."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(f for f in FACTORS if f * power >= value * (1 - 1e-9)) * power


class Picture:
    """A picture with one frame of axes after the other.

    Parameters
    ----------
    width, height : float
        In units of which the letters have 12. A phone shows about 330 of them at full size.
    seen : str
        What there is to see.
    """

    def __init__(self, width: float, height: float, seen: str) -> None:
        self.width, self.height = width, height
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'role="img" aria-label="{escape(seen)}">'
        ]

    def svg(self) -> str:
        """The finished picture."""
        return "".join([*self._parts, "</svg>"])

    def frame(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        top: float = 0,
        bottom: float = 1,
        left: float = 44,
        right: float = 12,
        x_label: str = "",
        y_label: str = "",
        x_ticks: bool = True,
        y_ticks: bool = True,
    ) -> Picture:
        """Axes in a part of the picture: top and bottom as shares of its height."""
        self._box = (
            left,
            self.width - right,
            top * self.height + 22,
            bottom * self.height - (36 if x_ticks else 20),
        )
        self._x, self._y = x, y
        a, b, c, d = self._box
        self._parts.append(f'<path class="rx-axis" d="M{a:g} {c:g}V{d:g}H{b:g}"/>')
        for value in ticks(*x, max(4, (b - a) / 70)) if x_ticks else ():
            self._parts.append(f'<path class="rx-axis" d="M{self._px(value):.2f} {d:g}v4"/>')
            self._text(self._px(value), d + 15, f"{value:.6g}", "rx-small", "middle")
        for value in ticks(*y, max(2, (d - c) / 45)) if y_ticks else ():
            self._parts.append(f'<path class="rx-axis" d="M{a:g} {self._py(value):.2f}h-4"/>')
            self._text(a - 7, self._py(value) + 4, f"{value:.6g}", "rx-small", "end")
        if x_label:
            self._text(b, d + (31 if x_ticks else 15), x_label, "rx-small", "end")
        if y_label:
            self._text(a - 38, c - 10, y_label, "rx-small", "start")
        return self

    def line(self, xs: Sequence[float], ys: Sequence[float], marks: str) -> Picture:
        """A curve."""
        self._parts.append(f'<path class="{marks}" d="M{self._points(xs, ys)}"/>')
        return self

    def area(self, xs: Sequence[float], ys: Sequence[float], marks: str) -> Picture:
        """What lies below a curve."""
        ground = self._py(max(0.0, self._y[0]))
        self._parts.append(
            f'<path class="{marks}" d="M{self._px(xs[0]):.2f} {ground:.2f}L{self._points(xs, ys)}'
            f'L{self._px(xs[-1]):.2f} {ground:.2f}Z"/>'
        )
        return self

    def bar(self, x0: float, x1: float, y0: float, y1: float, marks: str) -> Picture:
        """A rectangle between two corners."""
        a, b = sorted((self._px(x0), self._px(x1)))
        c, d = sorted((self._py(y0), self._py(y1)))
        self._parts.append(
            f'<rect class="{marks}" x="{a:.2f}" y="{c:.2f}" width="{b - a:.2f}" '
            f'height="{d - c:.2f}"/>'
        )
        return self

    def dot(self, x: float, y: float, marks: str, radius: float = 5) -> Picture:
        """A round mark."""
        self._parts.append(
            f'<circle class="{marks}" cx="{self._px(x):.2f}" cy="{self._py(self._clamp(y)):.2f}" '
            f'r="{radius:g}"/>'
        )
        return self

    def diamond(self, x: float, y: float, marks: str, radius: float = 6.5) -> Picture:
        """A square mark on its tip."""
        a, b, r = self._px(x), self._py(self._clamp(y)), radius
        self._parts.append(
            f'<path class="{marks}" d="M{a:.2f} {b - r:.2f}'
            f'l{r:g} {r:g}l-{r:g} {r:g}l-{r:g} -{r:g}Z"/>'
        )
        return self

    def text(
        self,
        x: float,
        y: float,
        words: str,
        marks: str = "",
        anchor: str = "start",
        dx: float = 0,
        dy: float = 0,
    ) -> Picture:
        """Words at a point of the frame, moved by dx and dy units."""
        self._text(self._px(x) + dx, self._py(y) + dy, words, marks, anchor)
        return self

    def _text(self, x: float, y: float, words: str, marks: str, anchor: str) -> None:
        words = escape(words.replace("-", "−") if words[:1] == "-" else words)
        self._parts.append(
            f'<text class="{marks}" x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}">{words}</text>'
        )

    def _points(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        return "L".join(
            f"{self._px(x):.2f} {self._py(self._clamp(y)):.2f}" for x, y in zip(xs, ys, strict=True)
        )

    def _clamp(self, y: float) -> float:
        return min(self._y[1], max(self._y[0], y))

    def _px(self, x: float) -> float:
        a, b, _, _ = self._box
        return a + (x - self._x[0]) / (self._x[1] - self._x[0]) * (b - a)

    def _py(self, y: float) -> float:
        _, _, c, d = self._box
        return d - (y - self._y[0]) / (self._y[1] - self._y[0]) * (d - c)
