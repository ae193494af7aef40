"""The kind `distribution`: independent draws, or the rigid spectra of independent matrices."""

import math

import numpy as np

from rederive_book import statistics
from rederive_book.check_lines import number
from rederive_book.means import dof_text, in_standard_errors, mean_finding
from rederive_book.registration import Finding, Kind, register
from rederive_book.rounding import as_reals, sourced_bound
from rederive_book.skewness import refuse_skewed

_CDF_SLACK = 2.0**-26


def distribution(
    claim,
    name,
    *,
    tries,
    sample,
    cdf,
    rigid=False,
    grid=None,
    bias_bound=0.0,
    bias_source=None,
    control,
    expected="pass",
    unit="",
):
    """Check a sample, or the spectra of independent matrices, against a law.

    Parameters
    ----------
    claim, name, tries, control, expected, unit
        See `rederive_book.checks`.
    sample : array-like
        (n,) independent draws; with ``rigid=True`` (R, n), the spectra of R independent matrices.
    cdf : callable
        From an ascending array to the distribution function there. It must not have been fitted
        to the sample.
    rigid : bool
        Eigenvalues repel each other; their counting function fluctuates by O(1) in place of √n,
        and the Kolmogorov law does not apply.
    grid : array-like (K,), optional
        With ``rigid=True``: ascending points at which the counting function is tried. Choose few,
        where it fluctuates or where it surely is constant (a gap).
    bias_bound, bias_source : float and str, optional
        A proved bound on what the law lacks at this size: on |E F_n − F| for independent draws,
        on |expected count − n·F|, in counts, for rigid spectra.

    Returns
    -------
    Check

    Raises
    ------
    ValueError
        As `estimate`; also if independent draws have ties, or `cdf` does not rise from 0 to 1.

    Notes
    -----
    Independent: passes if and only if D = sup |F_n − F| is at most bias_bound plus the upper
    quantile of its exact law for n draws from a continuous law. Distances are in units of the
    largest standard error of F_n at a point, 1/(2√n): with the standard deviation of the limit law
    of √n·D (0.26) as unit a rival ten away would be caught only half of the time. On shared data
    the distance is the largest gap of the two laws at the sample.

    Rigid: the mean count of R spectra at each grid point against n·F, with a t interval shared
    among the points and the bias bound. Counts are whole numbers, so their variance is not taken
    below the least one f(1 − f) that whole numbers with the predicted mean can have (f its
    fractional part, nearest to 0 or 1 within the bias bound). A counting function that never moves
    is thus judged by the bias bound alone where the prediction is a whole number: there the check
    trusts that rigid counts do not leave a constant by rare, large jumps. Distances there are in
    units of the resolution 1/R of a mean count.
    """
    arguments = {
        "sample": sample,
        "cdf": cdf,
        "rigid": rigid,
        "grid": grid,
        "bias_bound": bias_bound,
        "bias_source": bias_source,
    }
    return register(DISTRIBUTION, claim, name, tries, arguments, control, expected, unit)


def _evaluate_distribution(sample, cdf, rigid, grid, bias_bound, bias_source):
    if not callable(cdf):
        raise ValueError(f"cdf must be a function, got {type(cdf).__name__}")
    if not isinstance(rigid, bool):
        raise ValueError(f"rigid must be True or False, got {rigid!r}")
    if rigid != (grid is not None):
        raise ValueError("grid goes with rigid=True")
    sample, _ = as_reals(sample, "sample")
    bias = sourced_bound(bias_bound, bias_source, "bias_bound", "bias_source")
    bias_text = f"; bias at most {number(bias)}: {bias_source}" if bias else ""
    if not rigid:
        return _independent(sample, cdf, bias, bias_text)
    return _rigid(sample, cdf, grid, bias, bias_text)


def _independent(sample, cdf, bias, bias_text):
    if sample.ndim != 1 or len(sample) < 2:
        raise ValueError(f"sample must be (n,), n ≥ 2, got shape {sample.shape}")
    ordered = np.sort(sample)
    if (np.diff(ordered) == 0).any():
        raise ValueError("sample has ties: the exact Kolmogorov law needs a continuous law")
    level = statistics.current_level()
    count = len(ordered)
    values = _cdf_values(cdf, ordered, bias)
    distance = float(statistics.kolmogorov_distance(values))
    limit = statistics.kolmogorov_quantile(level, count)
    return Finding(
        verdict=int(statistics.decide_distribution(distance, count, bias, level)),
        measured=distance,
        predicted=0.0,
        uncertainty=limit,
        source=f"exact Kolmogorov law of {count} independent draws{bias_text}",
        statistic={"name": "Kolmogorov D", "value": distance, "dof": count, "level": level},
        deviation=distance,
        summary=(
            f"largest gap to the law {number(distance, 3)}, allowed {number(limit + bias, 3)} "
            f"(exact Kolmogorov law, {count} draws)"
        ),
        brief=f"largest gap {number(distance, 3)}",
        gauge={
            "count": count,
            "values": values,
            "size": distance,
            "allowance": bias,
            "required": statistics.STANDARD_ERRORS,
        },
    )


def _rigid(spectra, cdf, grid, bias, bias_text):
    if spectra.ndim != 2 or spectra.shape[0] < 2:
        raise ValueError(f"sample must be (R, n) with R ≥ 2 spectra, got shape {spectra.shape}")
    grid, _ = as_reals(grid, "grid")
    if grid.ndim != 1 or (np.diff(grid) <= 0).any():
        raise ValueError("grid must be one-dimensional and ascending")
    level = statistics.current_level()
    count, size = spectra.shape
    counts = statistics.counting_functions(spectra, grid)
    refuse_skewed(counts, "the counting functions", level)
    predicted = size * _cdf_values(cdf, grid, bias / size)
    _, mean, error, dof = statistics.decide_counts(counts, predicted, bias, level)
    source = f"standard error of the counts of {count} independent spectra, {dof_text(dof)}"
    return mean_finding(
        mean,
        error,
        dof,
        predicted,
        source + bias_text,
        bias=bias,
        statistic="t of the counting function",
        resolution=1.0 / count,
    )


def _cdf_values(cdf, points, bias):
    """F at ascending points; excursions up to half the digits of a float are let pass."""
    values, _ = as_reals(cdf(points), "cdf(sample)")
    if values.shape != points.shape:
        raise ValueError(f"cdf must keep the shape {points.shape}, got {values.shape}")
    slack = max(bias, _CDF_SLACK)
    if values.min() < -slack or values.max() > 1 + slack or (np.diff(values) < -slack).any():
        raise ValueError("cdf must rise from 0 to 1")
    return values


def _law_distance(wrong, right, shared):
    independent = ["count" in finding.gauge for finding in (wrong, right)]
    if independent[0] != independent[1]:
        raise ValueError("check and control must agree on rigid")
    if not independent[0]:
        return in_standard_errors(wrong, right, shared)
    wrong, right = wrong.gauge, right.gauge
    if shared:
        gap = float(np.max(np.abs(wrong["values"] - right["values"])))
        allowed = wrong["allowance"] + right["allowance"]
    else:
        gap, allowed = wrong["size"], max(wrong["allowance"], right["allowance"])
    return max(gap - allowed, 0.0) * 2.0 * math.sqrt(wrong["count"])


DISTRIBUTION = Kind(
    "distribution",
    _evaluate_distribution,
    _law_distance,
    frozenset({"sample", "cdf"}),
    frozenset({"sample"}),
)
