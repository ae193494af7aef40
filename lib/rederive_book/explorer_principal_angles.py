"""Explorer: two heads and the angles between their subspaces.

The reader turns the principal angles of two tied heads and sees the diversity index, the covariance
of their noise, and what their mean keeps of it, in units of σ²/n. Chapter *regression*, page
*diversity*.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from rederive import covariances, diversity, fusion_frames
from rederive_book.explorer_model import Explorer, Number, Slider, State
from rederive_book.explorer_picture import Picture

__all__ = ["EXPLORER", "angles", "cosines", "evaluate", "still"]

WIDTH, HEIGHT = 420, 378


def angles(state: State) -> list[float]:
    """The k angles of a state, in degrees."""
    return [float(state[f"theta{j}"]) for j in range(1, round(state["k"]) + 1)]


def cosines(degrees: list[float]) -> np.ndarray:
    """Cosines of angles in degrees, exact at both ends and at 60."""
    exact = {60.0: 0.5, 90.0: 0.0}
    return np.array([exact.get(angle, math.cos(math.radians(angle))) for angle in degrees])


def evaluate(state: State) -> Mapping[str, float | str | None]:
    """The numbers of the table.

    Parameters
    ----------
    state : mapping
        k from 2 to 4, angles theta1 … theta4 in degrees, and the scale κ of the logits.

    Returns
    -------
    dict
        Index, covariance, in which sense it is meant, variance of one head and of the mean of two,
        the share ½(1 + C/V) that the mean keeps, and the bounds of C by the index alone.
    """
    k = round(state["k"])
    beta = float(state["kappa"]) * k**-0.5
    found = cosines(angles(state))
    index = diversity.head_diversity_index(fusion_frames.frames_at(found))
    covariance = float(diversity.head_covariance(found, beta))
    variance = float(diversity.head_covariance(np.ones(k), beta))
    average = (variance + covariance) / 2
    converges = math.isfinite(variance)
    sense = "the limit" if converges else "a lower bound"
    lower, upper = covariances.covariance_envelope(index, k, beta) if converges else (None, None)
    return {
        "index": index,
        "covariance": _finite(covariance),
        "sense": sense if math.isfinite(covariance) else "diverges",
        "variance": _finite(variance),
        "average": _finite(average),
        "kept": average / variance if converges else None,
        "lower": lower,
        "upper": upper,
    }


def still(state: State) -> str:
    """The picture of a state: dials above, below the covariance against the index."""
    k, numbers = round(state["k"]), evaluate(state)
    beta = float(state["kappa"]) * k**-0.5
    picture = Picture(WIDTH, HEIGHT, f"{k} principal angles, and the covariance against the index")
    levels = [numbers[key] for key in ("variance", "average", "covariance")]
    top = 1.15 * math.log(max([1.5, *(v for v in levels if isinstance(v, float))]))
    picture.frame(
        (0, 1), (0, top), top=0.42, y_ticks=False, x_label="diversity index", y_label="n·C/σ²"
    )
    for value in (1, 2, 5, 10, 20, 50, 100):
        if math.log(value) < top:
            picture.text(0, math.log(value), f"{value}", "rx-small", "end", -7, 4)
    if numbers["lower"] is not None:
        grid = np.linspace(0, 1, 41)
        bounds = [covariances.covariance_envelope(x, k, beta) for x in grid]
        for border in zip(*bounds, strict=True):
            picture.line(grid, np.log(border), "rx-line rx-theory")
    for value, marks in zip(levels, ("rx-dash rx-second", "rx-fine rx-third"), strict=False):
        if isinstance(value, float):
            picture.line((0, 1), (math.log(value),) * 2, marks)
    if isinstance(numbers["covariance"], float):
        place = numbers["index"], math.log(numbers["covariance"])
        picture.dot(*place, "rx-dot rx-measured", 7)
    dials = "".join(_dial(angle, j, k) for j, angle in enumerate(angles(state)))
    return picture.svg().removesuffix("</svg>") + dials + "</svg>"


def _dial(angle: float, j: int, k: int) -> str:
    """One principal plane: the direction of the first head, and that of the second."""
    column = WIDTH / k
    radius = min(column - 36, 0.42 * HEIGHT - 48)
    x, y = j * column + (column - radius) / 2, radius + 16
    across, up = radius * math.cos(math.radians(angle)), radius * math.sin(math.radians(angle))
    return (
        f'<path class="rx-axis" d="M{x + radius:.1f} {y:.1f}A{radius:.1f} {radius:.1f} 0 0 0 '
        f'{x:.1f} {y - radius:.1f}"/>'
        f'<path class="rx-line rx-ink" d="M{x:.1f} {y:.1f}h{radius:.1f}"/>'
        f'<path class="rx-line rx-theory" d="M{x:.1f} {y:.1f}l{across:.1f} {-up:.1f}"/>'
        f'<circle class="rx-dot rx-theory" cx="{x + across:.1f}" cy="{y - up:.1f}" r="10"/>'
        f'<text x="{x + radius / 2:.1f}" y="{y + 20:.1f}" text-anchor="middle">'
        f"θ{'₁₂₃₄'[j]} = {angle:g}°</text>"
    )


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "diverges"


def _theta(j: int, value: float) -> Slider:
    return Slider(f"theta{j}", f"<i>θ</i><sub>{j}</sub> in °", 0, 90, 1, value)


def _equal(angle: float) -> dict[str, float]:
    return {"k": 3, "kappa": 1} | {f"theta{j}": angle for j in range(1, 5)}


EXPLORER = Explorer(
    name="principal-angles",
    title="Two heads, the angles between them, and the noise of their mean",
    controls=(
        Slider("k", "dimension <i>k</i>", 2, 4, 1, 3),
        _theta(1, 20),
        _theta(2, 45),
        _theta(3, 70),
        _theta(4, 80),
        Slider("kappa", "scale <i>κ</i>", 0, 1.6, 0.05, 1),
    ),
    numbers=(
        Number("index", "diversity index HDI"),
        Number("covariance", "covariance <i>C</i> of the two heads", "rx-dot rx-measured"),
        Number("sense", "with many keys this is"),
        Number("variance", "variance <i>V</i> of one head", "rx-dash rx-second"),
        Number("average", "variance of their mean, (<i>V</i> + <i>C</i>)/2", "rx-fine rx-third"),
        Number("kept", "share of <i>V</i> that the mean keeps"),
        Number("lower", "least <i>C</i> at this index", "rx-line rx-theory"),
        Number("upper", "greatest <i>C</i> at this index", "rx-line rx-theory"),
    ),
    evaluate=evaluate,
    still=still,
    seen=(
        "Above, one quarter circle for each principal angle, with a handle that turns one head "
        "away from the other. Below, the covariance of the two heads against the diversity index: "
        "a point inside a lens, whose borders are the least and the greatest covariance at that "
        "index."
    ),
    scripts=("plot.js", "principal-angles.math.js", "principal-angles.js"),
    presets=(
        ("copies", _equal(0)),
        ("orthogonal", _equal(90)),
        ("equal angles", _equal(45)),
        ("one direction shared", _equal(90) | {"theta1": 0}),
        ("one head diverges", {"k": 2, "kappa": 1, "theta1": 30, "theta2": 60}),
    ),
    shape=(10, 9),
    legend=(
        ("rx-line rx-theory", "borders of <i>C</i> at an index"),
        ("rx-dot rx-measured", "<i>C</i> of these angles"),
        ("rx-dash rx-second", "one head"),
        ("rx-fine rx-third", "mean of the two"),
    ),
)
