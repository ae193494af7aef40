"""What a random check did over many seeds: alarms, drift, spread, and the error that it notices.

A check that decides by a mean hands over T = (mean − predicted)/SE. Where the prediction is right
and the replicates are normal, T has Student's law with the check's degrees of freedom, so that
Z = Φ⁻¹(F(T)) is standard normal, independently from seed to seed. Then √n times the mean of Z is
standard normal, and the sum of squared deviations from that mean is chi-square with n − 1 degrees
of freedom. A bound on the bias widens the first: T may be shifted by as much.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import special, stats

from rederive_book import statistics

SURPRISE = 1e-3  # level of the joint test, shared among all checks
CAUGHT = 0.99


def normal_scores(t: np.ndarray, dof: float | None) -> np.ndarray:
    """Z = Φ⁻¹(F(T)) for Student's law; `dof` None is the normal law itself.

    Notes
    -----
    The tail beyond T is taken on the side of T, so that nothing is lost near 1.
    """
    if dof is None:
        return t
    return -np.sign(t) * special.ndtri(special.stdtr(dof, -np.abs(t)))


def mean_chance(scores: np.ndarray, shift: float) -> float:
    """Chance of a mean of Z at least as far off, on both sides, if T may be shifted by `shift`."""
    off = max(abs(float(scores.mean())) - shift, 0.0)
    return float(2 * special.ndtr(-off * math.sqrt(len(scores))))


def variance_chance(scores: np.ndarray) -> float:
    """Chance of a variance of Z at least as far from one, on both sides."""
    squares = float(((scores - scores.mean()) ** 2).sum())
    law = stats.chi2(len(scores) - 1)
    return min(1.0, 2 * float(min(law.cdf(squares), law.sf(squares))))


def smallest_error(check: Mapping[str, Any]) -> float | None:
    """Least relative error of a prediction that the check notices with probability `CAUGHT`.

    Parameters
    ----------
    check : mapping
        With `entries`, `dof`, `error`, `predicted`, `bias` and `margin`.

    Returns
    -------
    float or None
        The least over the entries of the check; None where all predictions are zero.

    Notes
    -----
    Without a margin a prediction is refused when it is farther than bias + t·SE away: twice the
    bias, since the true one may use it up on the other side, and δ·SE with δ from the law of the
    statistic (`rederive_book.statistics.noticed_distance`). With a margin, an error as large as
    the margin is let pass at most with the level.
    """
    dof = math.inf if check["dof"] is None else check["dof"]
    far = statistics.noticed_distance(dof, check["entries"], statistics.LEVEL, CAUGHT)
    found = [
        (check["margin"] or 2 * check["bias"] + far * error) / abs(predicted)
        for error, predicted in zip(check["error"], check["predicted"], strict=True)
        if predicted
    ]
    return min(found, default=None)


def judge(check: Mapping[str, Any]) -> dict[str, float]:
    """Drift and spread of one check.

    Parameters
    ----------
    check : mapping
        With `t` (seeds × entries), `dof` and `shift`.

    Returns
    -------
    dict
        Of the entry that is farthest off: `mean` and `p_mean`, `variance` and `p_variance`; the
        chances are multiplied by the number of entries.
    """
    scores = normal_scores(np.array(check["t"], dtype=float), check["dof"]).T
    means = [mean_chance(one, shift) for one, shift in zip(scores, check["shift"], strict=True)]
    spreads = [variance_chance(one) for one in scores]
    return {
        "mean": float(scores[int(np.argmin(means))].mean()),
        "p_mean": min(1.0, len(scores) * min(means)),
        "variance": float(scores[int(np.argmin(spreads))].var(ddof=1)),
        "p_variance": min(1.0, len(scores) * min(spreads)),
    }


def surprises(judged: Iterable[tuple[str, Mapping[str, float]]]) -> list[str]:
    """Names of the checks whose mean or variance is off at the joint level `SURPRISE`."""
    judged = list(judged)
    shared = SURPRISE / max(1, 2 * len(judged))
    return [
        f"{name}: {what} {found[what]:.2f}"
        for name, found in judged
        for what in ("mean", "variance")
        if found[f"p_{what}"] < shared
    ]
