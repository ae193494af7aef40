"""Sphinx extension: explorers, figures whose numbers answer to sliders while one reads.

Directive (in MyST pages)
-------------------------
``{explorer} <name>``
    The explorer of that name; the content is its caption. Option ``name``: a label to refer to.

An explorer is one Python module ``rederive_book.explorer_<name>`` with a constant ``EXPLORER`` (an
`Explorer`), and scripts of our own in ``static/explorers/``. The page carries everything a reader
without scripts needs: a still picture and the numbers at the preset, both made by the library
while the book is built, and the controls, asleep. The small script ``rederive-explorers.js`` waits
until the explorer comes near the screen, fetches its scripts and wakes the controls up. Nothing
changes its size then.
"""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from html import escape
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata, OptionSpec

from rederive_book import __version__

__all__ = ["Choice", "Explorer", "Number", "Slider", "find", "html", "number_text"]

SCRIPTS = Path(__file__).parent / "static" / "explorers"
MODULE = "rederive_book.explorer_"

#: The state of an explorer: the value of each control, by its name.
State = Mapping[str, float | str]


@dataclass(frozen=True)
class Slider:
    """A control for a number.

    Attributes
    ----------
    name, label : str
        The key in the state, and the words that the reader sees (may hold HTML such as ``<i>``).
    low, high, value : float
        The ends and the preset.
    step : float
        Of the slider; on a logarithmic scale in powers of ten.
    scale : {"linear", "log"}
    most : str
        The name of another slider that this one may not exceed; empty for none.
    """

    name: str
    label: str
    low: float
    high: float
    step: float
    value: float
    scale: str = "linear"
    most: str = ""


@dataclass(frozen=True)
class Choice:
    """A control for one of a few words: pairs of a value and what the reader sees."""

    name: str
    label: str
    options: Sequence[tuple[str, str]]
    value: str


@dataclass(frozen=True)
class Number:
    """A row of the table: its key, its words (may hold HTML), and the classes of a mark."""

    key: str
    label: str
    mark: str = ""


@dataclass(frozen=True)
class Explorer:
    """What a page needs to know of an explorer.

    Attributes
    ----------
    name, title : str
    controls : sequence of Slider or Choice
    numbers : sequence of Number
        The rows of the table.
    evaluate : callable
        State to the numbers, by key: a float, a text, or None where there is no such number.
        It calls the library, and it is what the scripts are compared with.
    still : callable
        State to a scalable picture, ``<svg …>``, of the shape of the stage.
    seen : str
        What there is to see, for readers who do not see the picture.
    presets : sequence of (str, mapping)
        Words of a button, and what it sets.
    scripts : sequence of str
        Files below ``static/explorers``, in their order, after ``core.js``.
    shape, narrow : (int, int)
        Width to height of the stage, and on a phone.
    legend : sequence of (str, str)
        Class of a mark, and what it stands for (may hold HTML).
    extra : str
        Further controls of its own, as HTML, between the stage and the sliders.
    """

    name: str
    title: str
    controls: Sequence[Slider | Choice]
    numbers: Sequence[Number]
    evaluate: Callable[[State], Mapping[str, float | str | None]]
    still: Callable[[State], str]
    seen: str
    scripts: Sequence[str]
    presets: Sequence[tuple[str, State]] = ()
    shape: tuple[int, int] = (4, 3)
    narrow: tuple[int, int] = (1, 1)
    legend: Sequence[tuple[str, str]] = field(default=())
    extra: str = ""

    @property
    def state(self) -> dict[str, float | str]:
        """The values of the controls when the page is opened."""
        return {control.name: control.value for control in self.controls}


def number_text(value: float | str | None) -> str:
    """A number as the table shows it: four digits, as ``numberText`` in ``core.js`` writes them."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞"
    power = math.floor(math.log10(abs(value)))
    if 1e-3 <= abs(value) < 1e5:
        text = f"{_rounded(value, max(0, 3 - power)):f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        mantissa, power = f"{value:.3e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"
    return text.replace("-", "−")


def _rounded(value: float, digits: int) -> Decimal:
    """Halves go away from zero, as in JavaScript."""
    return Decimal(value).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)


def find(name: str) -> Explorer:
    """The explorer of a name.

    Raises
    ------
    ValueError
        If there is none.
    """
    if re.fullmatch(r"[a-z]+(-[a-z]+)*", name):
        module = MODULE + name.replace("-", "_")
        try:
            return importlib.import_module(module).EXPLORER
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
    raise ValueError(f"explorer: there is no explorer {name!r}")


def position(slider: Slider, value: float) -> float:
    """Where the slider stands for a value."""
    return math.log10(value) if slider.scale == "log" else value


def _slider(explorer: Explorer, slider: Slider) -> str:
    key = f"{explorer.name}-{slider.name}"
    low, high = position(slider, slider.low), position(slider, slider.high)
    return (
        f'<div class="rx-control"><label for="{key}">{slider.label}</label>'
        f'<input type="range" id="{key}" data-control="{slider.name}" min="{low:.12g}" '
        f'max="{high:.12g}" step="{slider.step:g}" value="{position(slider, slider.value):.12g}" '
        f'disabled><output for="{key}">{number_text(slider.value)}</output></div>'
    )


def _choice(explorer: Explorer, choice: Choice) -> str:
    group = f"{explorer.name}-{choice.name}"
    options = "".join(
        f'<label><input type="radio" name="{group}" data-control="{choice.name}" '
        f'value="{escape(value)}"{" checked" if value == choice.value else ""} disabled>'
        f"<span>{words}</span></label>"
        for value, words in choice.options
    )
    return (
        f'<fieldset class="rx-control rx-choice"><legend>{choice.label}</legend>'
        f"<div>{options}</div></fieldset>"
    )


def _settings(explorer: Explorer) -> str:
    """What the scripts need: the ends of the sliders and the presets."""
    controls = []
    for control in explorer.controls:
        if isinstance(control, Slider):
            names = ("name", "low", "high", "step", "scale", "most", "value")
        else:
            names = ("name", "value")
        controls.append({name: getattr(control, name) for name in names})
    presets = [dict(state) for _, state in explorer.presets]
    return json.dumps({"controls": controls, "presets": presets}, sort_keys=True)


def html(explorer: Explorer) -> str:
    """The explorer without its caption: picture, controls and numbers, right without scripts."""
    wide, narrow = ("{} / {}".format(*shape) for shape in (explorer.shape, explorer.narrow))
    state = explorer.state
    values = explorer.evaluate(state)
    controls = "".join(
        (_slider if isinstance(control, Slider) else _choice)(explorer, control)
        for control in explorer.controls
    )
    presets = "".join(
        f'<button type="button" data-preset="{index}" disabled>{escape(words)}</button>'
        for index, (words, _) in enumerate(explorer.presets)
    )
    legend = "".join(
        f'<li><span class="rx-key {mark}" aria-hidden="true"></span>{words}</li>'
        for mark, words in explorer.legend
    )
    rows = "".join(
        f'<tr><th scope="row">{_mark(row)}{row.label}</th>'
        f'<td data-number="{row.key}">{escape(number_text(values[row.key]))}</td></tr>'
        for row in explorer.numbers
    )
    return (
        f'<div class="rx" data-explorer="{explorer.name}" role="group" '
        f'aria-label="{escape(explorer.title)}" '
        f'data-scripts="{escape(" ".join(["core.js", *explorer.scripts]))}" '
        f'data-settings="{escape(_settings(explorer))}">'
        f'<div class="rx-stage" style="--rx-wide: {wide}; --rx-narrow: {narrow}" '
        f'data-seen="{escape(explorer.seen)}">{explorer.still(state)}</div>'
        + (f'<ul class="rx-legend">{legend}</ul>' if legend else "")
        + explorer.extra
        + (f'<div class="rx-presets">{presets}</div>' if presets else "")
        + f'<div class="rx-controls">{controls}</div>'
        f'<table class="rx-numbers"><tbody>{rows}</tbody></table></div>'
    )


def _mark(row: Number) -> str:
    return f'<span class="rx-key {row.mark}" aria-hidden="true"></span>' if row.mark else ""


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
        module = importlib.import_module(MODULE + explorer.name.replace("-", "_"))
        self.env.note_dependency(module.__file__)
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
