"""What an explorer is: its controls, its numbers, its pictures; see `rederive_book.explorers`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

__all__ = ["Choice", "Explorer", "Number", "Slider", "State", "number_text"]

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
