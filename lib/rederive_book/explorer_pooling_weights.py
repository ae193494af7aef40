"""The explorer of pooling weights: mean, causal, exponential and best, and what each keeps."""

from __future__ import annotations

import numpy as np

from rederive import sequences, sign_sequences
from rederive_book.explorer_model import Choice, Explorer, Number, Slider, State, number_text
from rederive_book.explorer_picture import Picture, round_up

__all__ = ["EXPLORER", "correlation", "evaluate", "still", "weights"]

ROWS = (
    ("mean", "rx-ink"),
    ("causal", "rx-measured"),
    ("exponential", "rx-second"),
    ("best", "rx-theory"),
)


def correlation(state: State) -> np.ndarray:
    """R of the signs: a prefix, a chain, or a signal that decays along the sequence."""
    length = int(state["T"])
    if state["model"] == "chain":
        return sign_sequences.ar1_correlation(length, state["phi"])
    if state["model"] == "prefix":
        loadings = sign_sequences.prefix_loadings(length, int(state["L"]))
    else:
        loadings = np.exp(-state["rate"] * np.arange(1, length + 1) / length)
    return sign_sequences.latent_correlation(loadings)


def weights(state: State) -> dict[str, np.ndarray]:
    """The four weight vectors, each of norm one, so that they can be compared."""
    length = int(state["T"])
    if state["mask"] == "strict":
        causal = sequences.harmonic_weights(length)
    else:
        causal = sequences.inclusive_weights(length, state["tau"])
    found = {
        "mean": np.ones(length),
        "causal": causal,
        "exponential": np.exp(-state["rate"] * np.arange(length) / length),
        "best": sequences.optimal_weights(correlation(state)),
    }
    return {name: w / np.linalg.norm(w) for name, w in found.items()}


def evaluate(state: State) -> dict[str, float | str | None]:
    """The numbers of the table, from the library."""
    found = weights(state)
    stacked = sequences.signal_to_noise(
        np.array([found[name] for name, _ in ROWS]), correlation(state)
    )
    gains = np.where(stacked < 1e-12, 0.0, stacked)  # what rounding leaves of a zero
    q = {name: float(gain) for (name, _), gain in zip(ROWS, gains, strict=True)}
    if abs(q["causal"] - q["mean"]) < 1e-9:
        winner = "neither"
    else:
        winner = "causal" if q["causal"] > q["mean"] else "mean"
    return {
        **{f"q_{name}": gain for name, gain in q.items()},
        "share_mean": q["mean"] / q["best"],
        "share_causal": q["causal"] / q["best"],
        **{
            f"length_{name}": float(sequences.effective_length(found[name]))
            for name in ("causal", "exponential", "best")
        },
        "winner": winner,
    }


def still(state: State) -> str:
    """The picture, drawn as the script draws it."""
    found, values, length = weights(state), evaluate(state), int(state["T"])
    picture = Picture(400, 330, EXPLORER.seen)
    top = round_up(1.05 * max(float(w.max()) for w in found.values()))
    low = -top if min(float(w.min()) for w in found.values()) < -1e-9 else 0.0
    positions = range(1, length + 1)
    picture.frame(
        (0.5, length + 0.5),
        (low, top),
        bottom=0.6,
        x_label="position t",
        y_label="weight, scaled to ‖w‖ = 1",
    )
    for t in positions:
        picture.bar(t - 0.38, t + 0.38, 0, found["best"][t - 1], "rx-bar rx-theory")
    picture.line([0.5, length + 0.5], [found["mean"][0]] * 2, "rx-dash rx-ink")
    picture.line(positions, found["exponential"], "rx-fine rx-second")
    picture.line(positions, found["causal"], "rx-line rx-measured")
    for t in positions:
        picture.dot(t, found["causal"][t - 1], "rx-dot rx-measured", 2.5 if length > 32 else 4)
    end = round_up(1.02 * max(values[f"q_{name}"] for name, _ in ROWS))
    picture.frame(
        (0, end),
        (0, 4),
        top=0.6,
        left=88,
        right=52,
        y_ticks=False,
        x_label="gain q = wᵀRw/‖w‖²",
    )
    for index, (name, colour) in enumerate(ROWS):
        q = values[f"q_{name}"]
        picture.bar(0, q, 3.2 - index, 3.8 - index, f"rx-bar {colour}")
        picture.text(0, 3.5 - index, name, f"rx-word {colour}", "end", -6, 4)
        picture.text(q, 3.5 - index, number_text(q), "", "start", 6, 4)
    return picture.svg()


_BASE = dict(model="prefix", mask="strict", T=16.0, L=4.0, phi=0.6, rate=2.0, tau=1.0)

EXPLORER = Explorer(
    name="pooling-weights",
    title="Explorer: pooling weights and what they keep of the signal",
    seen=(
        "Above: four weight vectors along the sequence, the best as bars, the mean dashed, causal "
        "attention as dots on a line, the exponential ones dotted. Below: the gain of each."
    ),
    controls=(
        Choice(
            "model",
            "Signal",
            (("prefix", "prefix"), ("decaying", "decaying"), ("chain", "chain, AR(1)")),
            "prefix",
        ),
        Choice(
            "mask", "Causal mask", (("strict", "strict"), ("diagonal", "with diagonal")), "strict"
        ),
        Slider("T", "tokens <i>T</i>", 2.0, 64.0, 1.0, 16.0),
        Slider("L", "prefix <i>L</i>", 1.0, 64.0, 1.0, 4.0, most="T"),
        Slider("rate", "decay <i>c</i>", 0.0, 8.0, 0.05, 2.0),
        Slider("phi", "chain <i>φ</i>", -1.0, 1.0, 0.02, 0.6),
        Slider("tau", "diagonal <i>τ</i>", 0.0, 8.0, 0.1, 1.0),
    ),
    presets=(
        ("Early prefix", _BASE),
        ("Late prefix", {**_BASE, "L": 11.0}),
        ("Decaying", {**_BASE, "model": "decaying", "T": 32.0}),
        ("Chain", {**_BASE, "model": "chain"}),
        ("Alternating chain", {**_BASE, "model": "chain", "T": 8.0, "phi": -0.6}),
        ("With diagonal", {**_BASE, "mask": "diagonal", "tau": 2.0}),
    ),
    legend=(
        ("rx-bar rx-theory", "best, the top eigenvector of <i>R</i>"),
        ("rx-line rx-measured", "causal attention"),
        ("rx-fine rx-second", "exponential, <i>e</i><sup>−<i>cs</i>/<i>T</i></sup>"),
        ("rx-dash rx-ink", "mean"),
    ),
    numbers=(
        Number("q_mean", "Gain of the mean, <i>q</i>", "rx-dash rx-ink"),
        Number("q_causal", "Gain of causal attention", "rx-line rx-measured"),
        Number("q_exponential", "Gain of exponential weights", "rx-fine rx-second"),
        Number("q_best", "Gain of the best weights", "rx-bar rx-theory"),
        Number("winner", "Causal or mean: the larger gain has"),
        Number("share_mean", "The mean keeps of the best"),
        Number("share_causal", "Causal attention keeps of the best"),
        Number("length_causal", "Effective length, causal"),
        Number("length_exponential", "Effective length, exponential"),
        Number("length_best", "Effective length, best"),
    ),
    evaluate=evaluate,
    still=still,
    scripts=("plot.js", "pooling-weights.math.js", "pooling-weights.js"),
    shape=(10, 8),
    narrow=(5, 6),
)
