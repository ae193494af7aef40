"""The kind `rate`: the slope of a power law, of replicates or of a single exact curve."""

import numpy as np

from rederive_book import statistics
from rederive_book.check_lines import number
from rederive_book.means import (
    dof_text,
    in_standard_errors,
    mean_finding,
    replicate_columns,
    summarise_checked,
)
from rederive_book.registration import Finding, Kind, register
from rederive_book.rounding import as_real, as_reals, gamma, sourced_bound
from rederive_book.rounding_checks import in_limits


def rate(
    claim,
    name,
    *,
    tries,
    x,
    y,
    slope,
    slope_bound=0.0,
    bound_source=None,
    control,
    expected="pass",
    unit="",
):
    """Check the exponent of a power law: the least-squares slope of log y on log x.

    Parameters
    ----------
    claim, name, tries, control, expected, unit
        See `rederive_book.checks`.
    x : array-like (K,)
        Positive and distinct, K ≥ 2.
    y : array-like, (R, K) or (K,)
        Positive. R ≥ 2 independent replicates of the curve, or one curve computed without noise.
    slope : float
    slope_bound, bound_source : float and str, optional
        A proved bound on how far the expected slope at these x is from `slope`: what is not yet
        asymptotic, and, for replicates, the bias that the logarithm brings.

    Returns
    -------
    Check

    Raises
    ------
    ValueError
        As `estimate`.

    Notes
    -----
    The fitted slope is Σ wᵢ log yᵢ with wᵢ = (log xᵢ − mean log x) / Σ (log xⱼ − mean log x)².
    Replicates: each gives a slope, and these are tried as `estimate` tries replicates, with
    `slope_bound` as bias bound. One curve: passes if and only if
    |fitted − slope| ≤ slope_bound + γ_{K+8} (Σ |wᵢ| (1 + |log yᵢ|) + 3K·X·Y/S), where X and Y are
    the largest |log xᵢ| and |log yᵢ| and S = Σ (log xⱼ − mean log x)². The sum accounts for one
    rounding of y, for those of the logarithms and of the inner product; the last term for the
    weights: if each centred log x is off by ε, then S is off by at most 2εΣ|log xⱼ − mean log x|
    and Σ|wᵢ| by at most 3Kε/S.
    """
    arguments = {
        "x": x,
        "y": y,
        "slope": slope,
        "slope_bound": slope_bound,
        "bound_source": bound_source,
    }
    return register(RATE, claim, name, tries, arguments, control, expected, unit)


def _evaluate_rate(x, y, slope, slope_bound, bound_source):
    x, _ = as_reals(x, "x")
    y, unit_roundoff = as_reals(y, "y")
    slope = as_real(slope, "slope")
    allowance = sourced_bound(slope_bound, bound_source, "slope_bound", "bound_source")
    if x.ndim != 1 or len(x) < 2 or not (x > 0).all() or len(np.unique(x)) < len(x):
        raise ValueError(f"x must be (K,), K ≥ 2, positive and distinct, got {x}")
    if y.ndim not in (1, 2) or y.shape[-1] != len(x):
        raise ValueError(f"y must be ({len(x)},) or (R, {len(x)}), got shape {y.shape}")
    if not (y > 0).all():
        raise ValueError(f"y must be positive, got {y.min()}")
    source = f"; slope off by at most {number(allowance)}: {bound_source}" if allowance else ""
    if y.ndim == 1:
        return _single_curve(x, y, unit_roundoff, slope, allowance, source)
    columns, _ = replicate_columns(statistics.log_slopes(x, y), "slopes")
    mean, error, dof = summarise_checked(columns, "the slopes")
    source = f"standard error of the mean of {len(y)} slopes, {dof_text(dof)}{source}"
    return mean_finding(mean, error, dof, slope, source, bias=allowance, statistic="t of the slope")


def _single_curve(x, y, unit_roundoff, slope, allowance, source):
    fitted = float(statistics.log_slopes(x, y))
    log_x, log_y = np.log(x), np.abs(np.log(y))
    spread = float(np.sum((log_x - log_x.mean()) ** 2))
    weights = np.abs(statistics.slope_weights(x))
    sizes = weights @ (1.0 + log_y) + 3 * len(x) * np.abs(log_x).max() * log_y.max() / spread
    rounding = gamma(len(x) + 8, unit_roundoff) * float(sizes)
    limit = allowance + rounding
    deviation = abs(fitted - slope)
    return Finding(
        verdict=1 if deviation <= limit else -1,
        measured=fitted,
        predicted=slope,
        uncertainty=limit,
        source=f"rounding bound of the fitted slope {number(rounding)}{source}",
        statistic={"name": "slope", "value": fitted, "dof": None, "level": None},
        deviation=fitted - slope,
        summary=(
            f"slope {number(fitted, 4)}, predicted {number(slope, 4)}, allowed to differ by "
            f"{number(limit)}"
        ),
        brief=f"off by {number(deviation)}",
        gauge={"size": deviation, "limit": limit},
    )


def _rate_distance(wrong, right, shared):
    return (in_standard_errors if wrong.stochastic else in_limits)(wrong, right, shared)


RATE = Kind(
    "rate",
    _evaluate_rate,
    _rate_distance,
    frozenset({"x", "y", "slope"}),
    frozenset({"x", "y"}),
    least=1.0,
    unit="bounds",
)
