"""Explorer: tokens that flow on the circle and the sphere.

The reader chooses heads, a flow and a start, watches the tokens in three dimensions and the energy
beside them. Chapter *flow*, pages *energy-balance*, *no-gradient-structure*, *settling* and
*head-count*.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from rederive import flows, integrators
from rederive_book import token_starts
from rederive_book.animations import sphere_view
from rederive_book.explorer_model import Choice, Explorer, Number, Slider, State
from rederive_book.explorer_picture import Picture

__all__ = ["EXPLORER", "evaluate", "still"]

WIDTH, HEIGHT = 420, 378
SPHERE = 0.68  # share of the height that the sphere takes
#: From where one looks at the circle and at the sphere: elevation and azimuth in degrees.
VIEWS = {"circle": (50.0, 30.0), "sphere": (20.0, 30.0)}
LENGTH, STEP = 8.0, 1 / 4  # of the run that the still shows


def evaluate(state: State) -> Mapping[str, float]:
    """The numbers of the table at the start of a run.

    Parameters
    ----------
    state : mapping
        The values of the controls.

    Returns
    -------
    dict
        Time, number of heads, energy and what it has changed by, the rate −⟨g, v⟩ at which moving
        tokens lower it, weight·|v|² (𝒢² for attention), and the largest speed.
    """
    tokens = token_starts.tokens(state)
    heads = torch.from_numpy(np.array(token_starts.law(state).start))
    sign = 1.0 if state["direction"] == "ascending" else -1.0
    velocity = -sign * flows.velocity(tokens, heads, str(state["flow"]))
    gradient = flows.energy_gradient(tokens, heads)
    potentials = flows.log_potentials(tokens, heads).exp()
    weight = {"plain": torch.ones_like(tokens[:, 0]), "joint": potentials.mean(0)}.get(
        str(state["flow"]), flows.effective_mobility(tokens, heads)
    )
    return {
        "time": 0.0,
        "heads": float(len(heads)),
        "energy": float(flows.energy(tokens, heads)),
        "change": 0.0,
        "dissipation": -float((gradient * velocity).sum(-1).mean()),
        "claimed": float((weight * velocity.square().sum(-1)).mean()),
        "fastest": float(velocity.norm(dim=-1).max()),
    }


def still(state: State) -> str:
    """Start and end of a short run, descending and without noise, and its energy."""
    tokens = token_starts.tokens(state)
    run = integrators.integrate(tokens, token_starts.law(state), LENGTH, STEP, flow=state["flow"])
    energy, times = run.energy.numpy(), run.times.numpy()
    picture = Picture(WIDTH, HEIGHT, "tokens at the start and later, and the energy against time")
    low, high = float(energy.min()), float(energy.max())
    picture.frame(
        (0, LENGTH), (low - 0.1 * (high - low), high + 0.1 * (high - low)), top=SPHERE,
        x_label="time t", y_label="energy E",
    )  # fmt: skip
    picture.line((0, LENGTH), (energy[0],) * 2, "rx-dash rx-rejected")
    picture.line(times, energy, "rx-line rx-theory")
    radius = SPHERE * HEIGHT / 2 - 10
    x, y = WIDTH / 2, SPHERE * HEIGHT / 2
    parts = [f'<circle class="rx-axis" cx="{x}" cy="{y:.1f}" r="{radius:.1f}"/>']
    view = VIEWS[str(state["surface"])]
    ring = np.linspace(0, 2 * np.pi, 73)
    equator = sphere_view(np.stack([np.cos(ring), np.sin(ring), 0 * ring], -1), *view)
    line = "L".join(f"{x + radius * a:.1f} {y - radius * b:.1f}" for a, b, _ in equator)
    parts.append(f'<path class="rx-fine rx-faint" d="M{line}"/>')
    for moment, marks, size in ((tokens, "rx-ring", 3.5), (run.tokens, "rx-dot", 5)):
        points = np.zeros((len(moment), 3))
        points[:, : moment.shape[1]] = moment.numpy()
        for (a, b, depth), group in zip(
            sphere_view(points, *view), token_starts.groups(state), strict=True
        ):
            parts.append(
                f'<circle class="{marks} rx-{COLOURS[group]}" cx="{x + radius * a:.1f}" '
                f'cy="{y - radius * b:.1f}" r="{size}" opacity="{1 if depth >= 0 else 0.35}"/>'
            )
    parts.append(
        f'<text class="rx-small" x="8" y="16">rings: at the start</text>'
        f'<text class="rx-small" x="8" y="32">dots: at time {LENGTH:g}</text>'
    )
    return picture.svg().removesuffix("</svg>") + "".join(parts) + "</svg>"


COLOURS = ("theory", "measured", "second", "third", "fourth", "fifth")
_FAMILIES = (
    ("rising", "rising pair"),
    ("cycle", "cycling pair"),
    ("clouds", "circling three"),
    ("identity", "identity"),
    ("gaussian", "Gaussian"),
    ("relaxing", "relaxing"),
    ("noise", "noisy"),
    ("oscillating", "oscillating"),
)
_STARTS = (
    ("fan", "fan"),
    ("pair", "two points"),
    ("clouds", "two clouds"),
    ("clusters", "at the axes"),
    ("random", "random"),
    ("even", "even"),
)
_FLOWS = tuple((name, name) for name in flows.FLOWS)
_SIGNS = tuple((name, name) for name in ("descending", "ascending"))
_COMMON = {
    "flow": "attention",
    "direction": "descending",
    "spread": 1,
    "scale": 1,
    "seed": 1,
    "speed": 1,
}


def _preset(surface: str, start: str, n: int, family: str, count: int, **others: object) -> dict:
    chosen = {"surface": surface, "start": start, "n": n, "family": family, "count": count}
    return _COMMON | chosen | others


_RISING = _preset("circle", "fan", 40, "rising", 2)

EXPLORER = Explorer(
    name="flow-tokens",
    title="Tokens on the circle and the sphere under attention",
    controls=(
        Choice("surface", "tokens on", (("circle", "circle"), ("sphere", "sphere")), "circle"),
        Choice("family", "heads", _FAMILIES, "rising"),
        Choice("start", "start", _STARTS, "fan"),
        Choice("flow", "flow", _FLOWS, "attention"),
        Choice("direction", "sign", _SIGNS, "descending"),
        Slider("count", "heads <i>H</i>", 1, 16, 1, 2),
        Slider("n", "tokens <i>n</i>", 2, 60, 1, 40),
        Slider("spread", "phases apart", 0, 1, 0.05, 1),
        Slider("scale", "scale of heads", 0.25, 2, 0.05, 1),
        Slider("seed", "seed", 1, 30, 1, 1),
        Slider("speed", "time a second", 0.25, 8, 0.25, 1),
    ),
    numbers=(
        Number("time", "time <i>t</i>"),
        Number("heads", "heads at work"),
        Number("energy", "energy <i>E</i>", "rx-line rx-theory"),
        Number("change", "<i>E</i> less its value at the start"),
        Number("dissipation", "rate −⟨<i>g</i>, <i>v</i>⟩ at which moving tokens lower <i>E</i>"),
        Number("claimed", "weighted squared speed, <i>G</i>² for attention"),
        Number("fastest", "speed of the fastest token"),
    ),
    evaluate=evaluate,
    still=still,
    seen=(
        "Tokens as dots on a sphere that can be turned, those behind pale, with the way they came. "
        "Below, the energy against time, with a dashed line at its value in the beginning."
    ),
    scripts=(
        "flow-tokens.math.js",
        "flow-tokens.heads.js",
        "flow-tokens.draw.js",
        "flow-tokens.js",
    ),
    presets=(
        ("two heads: the energy rises", _RISING),
        ("two heads: a limit cycle", _preset("circle", "pair", 2, "cycle", 2, speed=4)),
        ("three heads: circling clouds", _preset("circle", "clouds", 24, "clouds", 3, speed=4)),
        ("octahedral clusters dissolve", _preset("sphere", "clusters", 60, "noise", 16, speed=2)),
        ("oscillating, equispaced", _preset("sphere", "clusters", 42, "oscillating", 3)),
        (
            "a travelling cluster",
            _preset("sphere", "random", 24, "oscillating", 1, direction="ascending", seed=10),
        ),
    ),
    shape=(10, 9),
    legend=(
        ("rx-line rx-theory", "energy"),
        ("rx-dash rx-rejected", "its value at the start"),
    ),
    extra=(
        '<div class="rx-presets rx-flow-buttons">'
        '<button type="button" data-do="play" disabled>Play</button>'
        '<button type="button" data-do="step" disabled>Step</button>'
        '<button type="button" data-do="restart" disabled>Restart</button></div>'
    ),
)
