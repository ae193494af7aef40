"""The explorer of the free product: a bulk, its two outliers, and two thresholds on trial."""

from __future__ import annotations

import math

import numpy as np

from rederive import free_probability, product_curve, spikes
from rederive_book.explorer_model import Explorer, Number, Slider, State, number_text
from rederive_book.explorer_picture import Picture, round_up

__all__ = ["EXPLORER", "evaluate", "still"]

MOST_THETA = 10.0

#: Key, words, colour and height of the marks; the second is put on trial.
MARKS = (
    ("location_mean", "vocabulary mean", "rx-third", 0.86),
    ("location", "signal", "rx-measured", 0.68),
    ("location_stated", "as stated", "rx-rejected", 0.5),
    ("below", "below the bulk", "rx-second", 0.32),
)


def _overlaps(state: State, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squared overlap with μ against θ: as derived, and by the formula of the source."""
    delta, gamma, q = (state[name] for name in ("delta", "gamma", "q"))
    derived = spikes.outlier(spikes.spike_parameter(q, theta, delta), delta, gamma).overlap
    stated = spikes.outlier(spikes.spike_parameter_as_stated(q, theta, delta), delta, gamma).overlap
    return theta / (theta + delta) * derived, stated


def evaluate(state: State) -> dict[str, float | str | None]:
    """The numbers of the table, from the library. The mean of T tokens has (Σw)²/‖w‖² = T."""
    delta, gamma, q, theta, length = (state[name] for name in ("delta", "gamma", "q", "theta", "T"))
    law = free_probability.FreeMPProduct(delta, gamma)
    lower, upper = law.support()
    least, _, _ = product_curve.edge_points(delta, gamma)
    spike = spikes.critical_spike(delta, gamma)
    strengths = {
        "": spikes.spike_parameter(q, theta, delta),
        "_stated": spikes.spike_parameter_as_stated(q, theta, delta),
        "_mean": spikes.spike_parameter(length, 0.0, delta),
    }
    locations = {
        key: float(spikes.outlier(y, delta, gamma).location) if y > spike else None
        for key, y in strengths.items()
    }
    strength = strengths[""]
    hidden = not (delta > max(1, gamma) and -delta < strength < least)
    first = "vocabulary mean" if strengths["_mean"] > strength else "signal"
    seen = locations[""] is not None or locations["_mean"] is not None
    overlap, stated = _overlaps(state, np.array(theta))
    return {
        "lower": lower,
        "upper": upper,
        "atom": law.atom,
        "spike": spike,
        **{f"strength{key}": float(y) for key, y in strengths.items()},
        "threshold": float(spikes.critical_signal(q, delta, gamma)),
        "threshold_stated": float(spikes.critical_signal_as_stated(q, delta, gamma)),
        **{f"location{key}": place for key, place in locations.items()},
        "overlap": float(overlap),
        "overlap_stated": float(stated),
        "below": None if hidden else float(spikes.level(strength, delta, gamma)),
        "top": first if seen else "no outlier",
    }


def still(state: State) -> str:
    """The picture, drawn as the script draws it."""
    values = evaluate(state)
    picture = Picture(400, 330, EXPLORER.seen)
    _bulk(picture, state, values)
    theta = np.linspace(0, MOST_THETA, 121)
    derived, stated = _overlaps(state, theta)
    picture.frame(
        (0, MOST_THETA),
        (0, 1),
        top=0.6,
        x_label="strength of the signal θ",
        y_label="squared overlap with μ",
    )
    picture.line(theta, stated, "rx-dash rx-rejected").line(theta, derived, "rx-line rx-theory")
    picture.line([state["theta"]] * 2, [0, 1], "rx-fine rx-ink")
    picture.dot(state["theta"], values["overlap_stated"], "rx-ring rx-rejected")
    picture.dot(state["theta"], values["overlap"], "rx-dot rx-measured")
    return picture.svg()


def _bulk(picture: Picture, state: State, values: dict) -> None:
    x, density = free_probability.FreeMPProduct(state["delta"], state["gamma"]).curve(257)
    lower, upper = values["lower"], values["upper"]
    marks = [mark for mark in MARKS if values[mark[0]] is not None]
    far = max([upper, *(values[key] for key, *_ in marks)])
    end = round_up(1.06 * min(far, 4 * upper))
    high = max(value for value in density if math.isfinite(value))
    top = round_up(1.05 * min(high, 4 / (upper - lower)))
    picture.frame((0, end), (0, top), bottom=0.6, x_label="eigenvalue of S/κ", y_label="density")
    if values["atom"] > 0:
        picture.bar(0, end * 0.012, 0, top * values["atom"], "rx-bar rx-theory")
        words = f"mass {number_text(values['atom'])} at 0"
        picture.text(end * 0.012, top * values["atom"], words, "rx-small", "start", 4, 10)
    picture.area(x, density, "rx-area rx-theory").line(x, density, "rx-line rx-theory")
    for key, words, colour, height in marks:
        place, y = values[key], height * top
        if place > end:
            words = f"{words} at {number_text(place)} →"
            picture.text(end, y, words, f"rx-word {colour}", "end", 0, 4)
            continue
        shape = "rx-dash" if key == "location_stated" else "rx-line"
        picture.line([place, place], [0, y], f"{shape} {colour}")
        if key == "location_stated":
            picture.dot(place, y, f"rx-ring {colour}")
        elif key == "location_mean":
            picture.diamond(place, y, f"rx-diamond {colour}")
        else:
            picture.dot(place, y, f"rx-dot {colour}")
        # As stated lies to the left of the signal: so do its words, where there is room.
        late = place > (0.3 if key == "location_stated" else 0.6) * end
        anchor, shift = ("end", -9) if late else ("start", 9)
        picture.text(place, y, words, f"rx-word {colour}", anchor, shift, 4)


EXPLORER = Explorer(
    name="free-product",
    title="Explorer: the bulk of the pooled spectrum and its outliers",
    seen=(
        "Above: the density of the bulk against the eigenvalue, with a stick where each outlier "
        "lies. Below: the squared overlap of the outlier with the signal against the strength of "
        "the signal, as derived and as stated."
    ),
    controls=(
        Slider("delta", "<i>δ</i> = <i>d</i>/<i>V</i>", 0.01, 10.0, 0.01, 0.5, "log"),
        Slider("gamma", "<i>γ</i> = <i>d</i>/<i>N</i>", 0.01, 10.0, 0.01, 0.25, "log"),
        Slider("theta", "signal <i>θ</i>", 0.0, MOST_THETA, 0.05, 1.3),
        Slider("q", "gain <i>q</i>", 0.05, 64.0, 0.05, 1.75, most="T"),
        Slider("T", "tokens <i>T</i>", 1.0, 64.0, 1.0, 16.0),
    ),
    presets=(
        ("Mean of 16 tokens", dict(delta=0.5, gamma=0.25, theta=1.3, q=1.75, T=16.0)),
        ("Between the thresholds", dict(delta=0.5, gamma=0.25, theta=0.4, q=2.0, T=8.0)),
        ("No signal", dict(delta=0.5, gamma=0.25, theta=0.0, q=4.0, T=6.0)),
        ("Too few samples", dict(delta=0.2, gamma=4.0, theta=1.0, q=2.0, T=8.0)),
        ("Hard edge", dict(delta=1.0, gamma=0.5, theta=3.0, q=2.0, T=4.0)),
        ("Below the bulk", dict(delta=4.0, gamma=0.25, theta=0.2, q=0.3, T=1.0)),
    ),
    legend=(
        ("rx-line rx-theory", "bulk; overlap as derived"),
        ("rx-dot rx-measured", "signal, <i>y</i> = <i>q</i>(<i>θ</i> + <i>δ</i>) − <i>δ</i>"),
        ("rx-dash rx-rejected", "as stated, <i>y</i> = <i>qθ</i> − <i>δ</i>"),
        ("rx-diamond rx-third", "vocabulary mean, <i>y</i> = (<i>T</i> − 1)<i>δ</i>"),
    ),
    numbers=(
        Number("lower", "Bulk: lower edge"),
        Number("upper", "Bulk: upper edge"),
        Number("atom", "Bulk: mass at 0"),
        Number("spike", "Strength from which an outlier shows, <i>y</i><sub>*</sub>"),
        Number("strength", "Strength of the signal", "rx-dot rx-measured"),
        Number("strength_stated", "… as stated", "rx-ring rx-rejected"),
        Number("strength_mean", "Strength of the vocabulary mean", "rx-diamond rx-third"),
        Number("threshold", "The signal shows from <i>θ</i>&nbsp;=", "rx-dot rx-measured"),
        Number("threshold_stated", "… as stated", "rx-ring rx-rejected"),
        Number("location", "Outlier of the signal", "rx-dot rx-measured"),
        Number("location_stated", "… as stated", "rx-ring rx-rejected"),
        Number("location_mean", "Outlier of the vocabulary mean", "rx-diamond rx-third"),
        Number("overlap", "Squared overlap with <i>μ</i>", "rx-dot rx-measured"),
        Number("overlap_stated", "… as stated", "rx-ring rx-rejected"),
        Number("below", "Eigenvalue below the bulk"),
        Number("top", "Top eigenvector of the uncentred <i>S</i>"),
    ),
    evaluate=evaluate,
    still=still,
    scripts=("plot.js", "free-product.math.js", "free-product.js"),
    shape=(10, 8),
    narrow=(5, 6),
)
