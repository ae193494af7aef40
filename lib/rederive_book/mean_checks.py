"""The kinds that a t interval of a mean decides: `estimate` and `order`."""

import math

import numpy as np

from rederive_book import statistics
from rederive_book.check_lines import number, with_error
from rederive_book.means import (
    dof_text,
    in_standard_errors,
    mean_finding,
    replicate_columns,
    summarise_checked,
    t_statistic,
)
from rederive_book.registration import Finding, Kind, register
from rederive_book.rounding import as_real, as_reals, sourced_bound, spread_scalar


def estimate(
    claim,
    name,
    *,
    tries,
    predicted,
    replicates=None,
    mean=None,
    standard_error=None,
    dof=None,
    bias_bound=0.0,
    bias_source=None,
    margin=None,
    margin_source=None,
    control,
    expected="pass",
    unit="",
):
    """Check a Monte-Carlo mean against a prediction.

    Parameters
    ----------
    claim, name, tries, control, expected, unit
        See `rederive_book.checks`.
    predicted : float or array-like (K,)
    replicates : array-like, (R,) or (R, K), optional
        Independent replicates, R ≥ 2; 32 or more serve best (see Notes).
    mean, standard_error, dof : float or (K,), float or (K,), float, optional
        Instead of replicates. ``dof=math.inf`` if the standard error is known, not estimated.
    bias_bound, bias_source : float and str, optional
        A proved bound on |expectation of the mean − predicted|, e.g. a finite-size term.
    margin, margin_source : float and str, optional
        Turns the check into one of equivalence: theory says predicted ± margin.

    Returns
    -------
    Check

    Raises
    ------
    ValueError
        Naming claim and check: an argument cannot be judged, the replicates do not vary or are
        too skewed for their number, or the control is too near.

    Notes
    -----
    t is the quantile of Student's law at the two-sided level 10⁻⁶, shared among K entries, SE the
    standard error. Without a margin the check passes if and only if
    |mean − predicted| ≤ bias_bound + t·SE for every entry. With one it passes if and only if every
    interval mean ± (bias_bound + t·SE) lies inside predicted ± margin, and is refuted only if one
    lies outside.

    The distance of a control that shares the data is the gap between the two predictions, of one
    with its own replicates the gap between its mean and its prediction; in standard errors, after
    bias bounds and margins of both are subtracted. It must be 10 at least; few degrees of freedom
    make t so large (15.8 for R = 8, 6.2 for R = 30) that it must be more.

    Replicates must be independent. The t interval is exact for normal replicates; for others see
    `rederive_book.skewness`, which refuses what shows to be too skewed. With few replicates
    skewness does not show: there, that they are nearly normal is the author's responsibility.
    """
    arguments = {
        "replicates": replicates,
        "mean": mean,
        "standard_error": standard_error,
        "dof": dof,
        "predicted": predicted,
        "bias_bound": bias_bound,
        "bias_source": bias_source,
        "margin": margin,
        "margin_source": margin_source,
    }
    return register(ESTIMATE, claim, name, tries, arguments, control, expected, unit)


def order(claim, name, *, tries, smaller, larger, control, expected="pass", unit=""):
    """Check that one quantity exceeds another in the mean of paired replicates.

    Parameters
    ----------
    claim, name, tries, control, expected, unit
        See `rederive_book.checks`.
    smaller, larger : array-like, (R,) or (R, K)
        Replicate r of both comes from the same draw. With K entries all are to be ordered.

    Returns
    -------
    Check

    Raises
    ------
    ValueError
        As `estimate`; also if the order is to be rejected (``expected="fail"``) and is undecided.

    Notes
    -----
    Passes if and only if the lower end of the two-sided t interval of the mean difference
    larger − smaller is positive; so the one-sided error is half the level. Refuted only if the
    upper end is negative: a control that merely lacks power is not rejected. Its distance is the
    number of standard errors by which the order runs the other way.
    """
    arguments = {"smaller": smaller, "larger": larger}
    return register(ORDER, claim, name, tries, arguments, control, expected, unit)


def _evaluate_estimate(
    replicates,
    mean,
    standard_error,
    dof,
    predicted,
    bias_bound,
    bias_source,
    margin,
    margin_source,
):
    given = [argument is not None for argument in (mean, standard_error, dof)]
    if replicates is not None and any(given):
        raise ValueError("replicates go without mean, standard_error and dof")
    if replicates is None and not all(given):
        raise ValueError("replicates, or mean, standard_error and dof, must be given")
    if replicates is not None:
        columns, shape = replicate_columns(replicates, "replicates")
        mean, error, dof = summarise_checked(columns, "replicates")
        source = f"standard error of the mean of {len(columns)} replicates"
    else:
        mean, error, dof, shape = _handed_over(mean, standard_error, dof)
        source = "standard error handed over"
    predicted, _ = as_reals(predicted, "predicted")
    predicted = spread_scalar(predicted, shape, "predicted", "one replicate")
    bias = sourced_bound(bias_bound, bias_source, "bias_bound", "bias_source")
    source += f", {dof_text(dof)}"
    source += f"; bias at most {number(bias)}: {bias_source}" if bias else ""
    margin = None if margin is None else as_real(margin, "margin", above=0.0)
    sourced_bound(margin, margin_source, "margin", "margin_source")
    source += f"; margin {number(margin)}: {margin_source}" if margin else ""
    return mean_finding(mean, error, dof, predicted, source, bias=bias, margin=margin)


def _handed_over(mean, standard_error, dof):
    mean, _ = as_reals(mean, "mean")
    error, _ = as_reals(standard_error, "standard_error")
    if mean.ndim > 1 or error.shape != mean.shape:
        raise ValueError(
            f"mean and standard_error must be numbers or (K,), got {mean.shape} and {error.shape}"
        )
    if not (error > 0).all():
        raise ValueError(f"standard_error must be positive, got {error.min()}")
    if not (isinstance(dof, float) and dof == math.inf):
        dof = as_real(dof, "dof", least=1.0)
    return mean.reshape(-1), error.reshape(-1), dof, mean.shape


def _evaluate_order(smaller, larger):
    lower, lower_shape = replicate_columns(smaller, "smaller")
    upper, upper_shape = replicate_columns(larger, "larger")
    if (len(lower), lower_shape) != (len(upper), upper_shape):
        raise ValueError(
            "smaller and larger must be paired, got shapes "
            f"{(len(lower), *lower_shape)} and {(len(upper), *upper_shape)}"
        )
    level = statistics.current_level()
    mean, error, dof = summarise_checked(upper - lower, "the differences larger − smaller")
    entries = mean.shape[-1]
    worst = int(np.argmin(mean / error))
    difference = float(mean[worst])
    reach = statistics.quantile(level, entries, dof) * float(error[worst])
    low, high = (number(float(side.mean(axis=0)[worst]), 4) for side in (lower, upper))
    return Finding(
        verdict=int(statistics.decide_order(mean, error, dof, level)),
        measured=difference,
        predicted=0.0,
        uncertainty=float(error[worst]),
        source=f"standard error of {len(lower)} paired differences, {dof_text(dof)}",
        statistic=t_statistic("paired t", difference / error[worst], dof, level),
        deviation=difference,
        summary=(
            f"{low} for the smaller, {high} for the larger, paired difference "
            f"{with_error(difference, reach)} (t interval, {dof_text(dof)})"
        ),
        brief=f"paired difference {number(difference, 3)}",
        gauge={
            "backwards": -difference / float(error[worst]),
            "required": statistics.required_distance(dof, entries, level),
        },
    )


def _backwards(wrong, right, shared):
    return max(wrong.gauge["backwards"], 0.0)


ESTIMATE = Kind(
    "estimate",
    _evaluate_estimate,
    in_standard_errors,
    frozenset({"predicted", "replicates", "mean"}),
    frozenset({"replicates", "mean"}),
)
ORDER = Kind(
    "order",
    _evaluate_order,
    _backwards,
    frozenset({"smaller", "larger"}),
    frozenset({"smaller", "larger"}),
)
