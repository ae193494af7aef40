r"""Linear classification of pooled sequences: a ridge classifier, and how accurate one can be.

A sequence has a label y = ±1, and the sign at position t agrees with it in the mean by the loading
b_t = E yξ_t, independently of the other positions given y (the latent model; b = 1 on a prefix and
0 behind it is the prefix model). Pooling with weights w turns the label into the *agreement*
f = y wᵀξ, of mean a = wᵀb and second moment α. The accuracy for a known table and unlimited data
follows from the law of f and from one number of the table, its *separation* h. Arrays in, NumPy
arrays or floats out.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from rederive import validation

__all__ = [
    "Agreement",
    "RidgeFit",
    "agreement",
    "check_pair",
    "discriminant_accuracy",
    "label_index",
    "label_weights",
    "ridge_fit",
    "separation",
]

_MOST_VALUES = 2**18


class Agreement(NamedTuple):
    """The law of the agreement f = y wᵀξ, its mean a and its second moment α."""

    values: np.ndarray  # (K,)
    probabilities: np.ndarray  # (K,)

    @property
    def mean(self):
        """The mean a."""
        return float(self.values @ self.probabilities)

    @property
    def power(self):
        """The second moment α."""
        return float(self.values**2 @ self.probabilities)


class RidgeFit(NamedTuple):
    """A linear rule: the label is the sign of features·coefficients + intercept."""

    coefficients: np.ndarray  # (d,)
    intercept: float
    penalty: float
    score: float  # generalised cross-validation, the estimate of the mean squared error

    def decide(self, features):
        """Return the labels ±1 of features (n, d)."""
        features = validation.array(features, "features", shape=("n", len(self.coefficients)))
        return np.where(features @ self.coefficients + self.intercept >= 0, 1, -1)


def agreement(weights, loadings):
    r"""Law of the agreement f = y wᵀξ between the label and the pooled signs.

    Parameters
    ----------
    weights : array_like, shape (T,)
        Pooling weights, not all zero.
    loadings : array_like, shape (T,)
        b_t in [−1, 1].

    Returns
    -------
    Agreement
        Values, ascending, and their probabilities. Values that differ by rounding only are one.

    Raises
    ------
    ValueError
        If a loading lies outside [−1, 1], the weights vanish, the lengths differ, or there are more
        than 2¹⁸ values.

    Notes
    -----
    y ξ_t are independent, +1 with probability (1 + b_t)/2.

    References
    ----------
    Derived in the chapter *pooling*.
    """
    weights, loadings = check_pair(weights, loadings)
    values, masses = np.zeros(1), np.ones(1)
    level = 4 * len(weights) * np.finfo(float).eps * np.abs(weights).sum()
    for weight, loading in zip(weights, loadings, strict=True):
        if weight == 0:
            continue
        signs = [(s, (1 + s * loading) / 2) for s in (1, -1) if 1 + s * loading > 0]
        values = np.concatenate([values + s * weight for s, _ in signs])
        masses = np.concatenate([masses * p for _, p in signs])
        order = np.argsort(values, kind="stable")
        values, masses = values[order], masses[order]
        first = np.flatnonzero(np.diff(values, prepend=-np.inf) > level)
        values, masses = values[first], np.add.reduceat(masses, first)
        if len(values) > _MOST_VALUES:
            validation.fail("weights", f"at most {_MOST_VALUES} values of f", len(values))
    return Agreement(values, masses)


@validation.representable
def separation(signal_norm2, delta):
    r"""Squared distance from the middle to a class mean in units of the within-class noise.

    Parameters
    ----------
    signal_norm2 : float
        θ = ‖μ‖² ≥ 0.
    delta : float
        δ = d/V, 0 ≤ δ < 1; from δ = 1 on the items of a table can be told apart without error.

    Returns
    -------
    float
        h = (θ + δ)/(1 − δ), the limit of μ̃ᵀW⁻¹μ̃.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    At finite d and V ≥ d + 2, h is the quotient of a non-central χ² with d degrees and parameter Vθ
    by an independent χ² with V − d − 1 degrees.

    References
    ----------
    Derived in the chapter *pooling*.
    """
    theta = validation.number(signal_norm2, "signal_norm2", minimum=0)
    delta = validation.number(delta, "delta", minimum=0, below=1)
    return (theta + delta) / (1 - delta)


@validation.representable
def discriminant_accuracy(weights, loadings, separation):
    r"""Limiting accuracy of the linear discriminant that knows the table's covariance and means.

    Parameters
    ----------
    weights, loadings
        As for :func:`agreement`.
    separation : float
        h ≥ 0, see :func:`separation`.

    Returns
    -------
    float
        E Φ(√(h/κ) f).

    Raises
    ------
    ValueError
        As :func:`agreement`, or if h is negative.

    References
    ----------
    Derived in the chapter *pooling*.
    """
    h = validation.number(separation, "separation", minimum=0)
    weights, loadings = check_pair(weights, loadings)
    weights = weights / np.linalg.norm(weights)
    law = agreement(weights, loadings)
    return float(law.probabilities @ special.ndtr(math.sqrt(h) * law.values))


@validation.representable
def label_index(weights, loadings, separation):
    r"""Signal-to-noise ratio of the pooled sequence for its label.

    Parameters
    ----------
    weights, loadings, separation
        As for :func:`discriminant_accuracy`.

    Returns
    -------
    float
        SNR² = a²h/(κ + (α − a²)h). The accuracy of the discriminant is about Φ(SNR), exactly so if
        α = a².

    Raises
    ------
    ValueError
        As :func:`discriminant_accuracy`.

    References
    ----------
    Derived in the chapter *pooling*.
    """
    weights, loadings = check_pair(weights, loadings)
    h = validation.number(separation, "separation", minimum=0)
    weights = weights / np.linalg.norm(weights)
    noise = 1 + h * (weights**2 @ (1 - loadings**2))
    return float((weights @ loadings) ** 2 * h / noise)


@validation.representable
def label_weights(loadings, separation):
    r"""Weights that maximise :func:`label_index`.

    Parameters
    ----------
    loadings : array_like, shape (T,)
        b_t in [−1, 1], not all zero.
    separation : float
        h ≥ 0.

    Returns
    -------
    numpy.ndarray, shape (T,)
        w_t ∝ b_t/(1 + h(1 − b_t²)), with Σ|w_t| = 1 and wᵀb > 0.

    Raises
    ------
    ValueError
        If the loadings vanish or an argument is out of its range.

    References
    ----------
    Derived in the chapter *pooling*.
    """
    loadings = validation.array(loadings, "loadings", shape=("T",))
    _, loadings = check_pair(np.ones(len(loadings)), loadings)
    h = validation.number(separation, "separation", minimum=0)
    if not np.abs(loadings).max() > 0:
        validation.fail("loadings", "loadings that are not all zero", "zeros")
    weights = loadings / (1 + h * (1 - loadings**2))
    return weights / np.abs(weights).sum()


@validation.representable
def ridge_fit(features, labels, penalties=None):
    r"""Ridge regression on labels ±1, with the penalty chosen by generalised cross-validation.

    Parameters
    ----------
    features : array_like, shape (N, d)
        N ≥ 2 rows that are not all equal.
    labels : array_like, shape (N,)
        ±1, both present.
    penalties : array_like, shape (K,), optional
        Positive candidates for λ; by default 49 between 10⁻⁶ and 10² times the largest eigenvalue
        of the sample covariance.

    Returns
    -------
    RidgeFit
        Coefficients, intercept, the λ chosen and its score.

    Raises
    ------
    ValueError
        If shapes do not fit, a label is not ±1, one label is missing, a penalty is not positive, or
        the rows are all equal.

    Notes
    -----
    Minimises :math:`\frac1N\sum_n(y_n-\beta^\top c_n-\beta_0)^2+\lambda\lVert\beta\rVert^2` in
    closed form, for all candidates from one singular value decomposition of the centred features.
    The score is :math:`\frac1N\lVert y-\hat y\rVert^2/(1-\mathrm{df}/N)^2`, df with the intercept.

    References
    ----------
    G. H. Golub, M. Heath, G. Wahba, Technometrics 21 (1979), 215–223.
    """
    features = validation.array(features, "features", shape=("N", "d"))
    count = len(features)
    labels = validation.array(labels, "labels", shape=(count,))
    if not (np.abs(labels) == 1).all() or np.abs(labels.sum()) == count:
        validation.fail("labels", "labels ±1, both present", f"{np.unique(labels)[:4]}")
    centre, middle = features.mean(axis=0), labels.mean()
    left, singular, right = np.linalg.svd(features - centre, full_matrices=False)
    rank = int((singular > max(features.shape) * np.finfo(float).eps * singular[0]).sum())
    spread = np.abs(features).max() * np.finfo(float).eps * math.sqrt(features.size)
    if not singular[0] > 4 * spread:
        validation.fail("features", "rows that are not all equal", f"shape {features.shape}")
    left, singular, right = left[:, :rank], singular[:rank], right[:rank]
    if penalties is None:
        penalties = np.geomspace(1e-6, 1e2, 49) * singular[0] ** 2 / count
    penalties = validation.array(penalties, "penalties", shape=("K",))
    if not penalties.min() > 0:
        validation.fail("penalties", "positive numbers", float(penalties.min()))
    seen = left.T @ (labels - middle)
    kept = singular**2 / (singular**2 + count * penalties[:, None])
    outside = max(count * (1 - middle**2) - seen @ seen, 0.0)
    missed = outside + (((1 - kept) * seen) ** 2).sum(axis=1)
    scores = missed / count / (1 - (1 + kept.sum(axis=1)) / count) ** 2
    best = int(np.argmin(np.where(np.isfinite(scores), scores, np.inf)))
    coefficients = right.T @ (kept[best] / singular * seen)
    intercept = float(middle - centre @ coefficients)
    return RidgeFit(coefficients, intercept, float(penalties[best]), float(scores[best]))


def check_pair(weights, loadings):
    """Check weights, not all zero, and loadings in [−1, 1] of one length, and return them."""
    weights = validation.array(weights, "weights", shape=("T",))
    loadings = validation.array(loadings, "loadings", shape=(len(weights),))
    if np.abs(loadings).max() > 1:
        outside = float(loadings[np.abs(loadings) > 1][0])
        validation.fail("loadings", "numbers in [−1, 1]", outside)
    if not np.abs(weights).max() > 0:
        validation.fail("weights", "weights that are not all zero", "zeros")
    return weights, loadings
