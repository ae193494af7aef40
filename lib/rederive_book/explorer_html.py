"""The page's part of an explorer: picture, controls and numbers, right without scripts."""

from __future__ import annotations

import json
import math
from html import escape

from rederive_book.explorer_model import Choice, Explorer, Number, Slider, number_text

__all__ = ["html", "position"]


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
    if presets:
        presets = f'<div class="rx-presets" role="group" aria-label="Presets">{presets}</div>'
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
        '<div class="rx-board">'
        f'<div class="rx-stage" style="--rx-wide: {wide}; --rx-narrow: {narrow}" '
        f'data-seen="{escape(explorer.seen)}">{explorer.still(state)}</div>'
        + (f'<ul class="rx-legend">{legend}</ul>' if legend else "")
        + explorer.extra
        + f'<div class="rx-controls">{controls}</div></div>'
        + presets
        + f'<table class="rx-numbers"><tbody>{rows}</tbody></table></div>'
    )


def _mark(row: Number) -> str:
    return f'<span class="rx-key {row.mark}" aria-hidden="true"></span>' if row.mark else ""
