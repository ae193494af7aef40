"""The kinds that a rounding bound decides: `identity` and `bound`."""

import numpy as np

from rederive_book.check_lines import number
from rederive_book.registration import Finding, Kind, register
from rederive_book.rounding import (
    as_real,
    as_reals,
    gamma,
    sourced_bound,
    spread_scalar,
    worst_or_all,
)


def identity(
    claim,
    name,
    *,
    tries,
    measured,
    predicted,
    operations,
    condition=1.0,
    scale=None,
    error_bound=None,
    error_source=None,
    control,
    expected="pass",
    unit="",
):
    """Check that computed numbers equal predicted ones up to rounding.

    Parameters
    ----------
    claim, name, tries, control, expected, unit
        See `rederive_book.checks`.
    measured : array-like or torch tensor
        Any shape. Its dtype sets the unit round-off u.
    predicted : array-like or torch tensor
        A number, or the shape of `measured`.
    operations : int
        k, rounded operations on the longest path from the input to one entry; for a sum of n
        terms n − 1, for a call of exp or log one more than its inner operations.
    condition : float
        Factor by which the problem magnifies relative errors, e.g. Σ|xᵢ| / |Σxᵢ| of a sum.
    scale : float, optional
        Size that the relative error is relative to. Default: the largest |predicted|; must be
        given where that is zero.
    error_bound, error_source : float and str, optional
        A proved bound on what is not rounding, e.g. truncation, and its proof in a few words.

    Returns
    -------
    Check

    Raises
    ------
    ValueError
        Naming claim and check, if an argument cannot be judged.

    Notes
    -----
    Passes if and only if max |measured − predicted| ≤ γ_k · condition · scale + error_bound,
    γ_k = k·u / (1 − k·u). The distance of the control is its largest deviation in units of the
    larger of the two limits; it counts as rejected only beyond 1.
    """
    arguments = {
        "measured": measured,
        "predicted": predicted,
        "operations": operations,
        "condition": condition,
        "scale": scale,
        "error_bound": error_bound,
        "error_source": error_source,
    }
    return register(IDENTITY, claim, name, tries, arguments, control, expected, unit)


def bound(
    claim,
    name,
    *,
    tries,
    values,
    below=None,
    above=None,
    operations,
    condition=1.0,
    scale=None,
    control,
    expected="pass",
    unit="",
):
    """Check that every instance keeps to its bound, up to rounding.

    Parameters
    ----------
    claim, name, tries, control, expected, unit
        See `rederive_book.checks`.
    values : array-like or torch tensor
        Any shape, one entry an instance.
    below, above : array-like, optional
        The statement is values ≤ below, values ≥ above, or both; numbers, or the shape of
        `values`.
    operations, condition, scale
        As for `identity`; `scale` defaults to the largest modulus among values and bounds.

    Returns
    -------
    Check

    Raises
    ------
    ValueError
        Naming claim and check, if an argument cannot be judged.

    Notes
    -----
    Passes if and only if no instance exceeds its bound by more than γ_k · condition · scale.
    Recorded is the instance nearest to its bound, or farthest beyond it.
    """
    arguments = {
        "values": values,
        "below": below,
        "above": above,
        "operations": operations,
        "condition": condition,
        "scale": scale,
    }
    return register(BOUND, claim, name, tries, arguments, control, expected, unit)


def _evaluate_identity(
    measured, predicted, operations, condition, scale, error_bound, error_source
):
    measured, unit_roundoff = as_reals(measured, "measured")
    predicted, _ = as_reals(predicted, "predicted")
    predicted = spread_scalar(predicted, measured.shape, "predicted", "measured")
    limit, source = _rounding_limit(operations, unit_roundoff, condition, scale, predicted)
    extra = sourced_bound(error_bound, error_source, "error_bound", "error_source")
    deviations = np.abs(measured - predicted)
    worst = int(np.argmax(deviations))
    deviation = float(deviations.flat[worst])
    allowed = "rounding bound"
    if extra:
        source += f"; {error_source}: {number(extra)}"
        allowed = "rounding and error bound"
    limit += extra
    return Finding(
        verdict=1 if deviation <= limit else -1,
        measured=worst_or_all(measured, worst),
        predicted=worst_or_all(predicted, worst),
        uncertainty=limit,
        source=source,
        statistic=_statistic("largest deviation", deviation),
        deviation=deviation,
        summary=f"deviation {number(deviation)}, allowed {number(limit)} ({allowed})",
        brief=f"deviation {number(deviation)}",
        gauge={"size": deviation, "limit": limit},
    )


def _evaluate_bound(values, below, above, operations, condition, scale):
    values, unit_roundoff = as_reals(values, "values")
    sides = []
    for sign, limits, argument in ((1.0, below, "below"), (-1.0, above, "above")):
        if limits is not None:
            limits, _ = as_reals(limits, argument)
            limits = spread_scalar(limits, values.shape, argument, "values")
            sides.append((sign * (values - limits), limits, "≤" if argument == "below" else "≥"))
    if not sides:
        raise ValueError("below or above must be given")
    sizes = np.stack([values] + [limits for _, limits, _ in sides])
    allowed, source = _rounding_limit(operations, unit_roundoff, condition, scale, sizes)
    excesses, limits, relation = max(sides, key=lambda side: side[0].max())
    worst = int(np.argmax(excesses))
    excess = float(excesses.flat[worst])
    measured, predicted = float(values.flat[worst]), float(limits.flat[worst])
    instance = f"{number(measured, 4)} {relation} {number(predicted, 4)}"
    if 0 < excess <= allowed:
        instance += " up to rounding"
    passes = excess <= allowed
    several = "both" if values.size == 2 else f"all {values.size}"
    how_many = f"{several} instances keep" if values.size > 1 else "the instance keeps"
    return Finding(
        verdict=1 if passes else -1,
        measured=measured,
        predicted=predicted,
        uncertainty=allowed,
        source=source,
        statistic=_statistic("largest excess", excess),
        deviation=excess,
        summary=(f"{how_many} to the bound, tightest {instance}" if passes else f"not {instance}"),
        brief=instance if passes else f"not {instance}",
        gauge={"size": max(excess, 0.0), "limit": allowed},
    )


def in_limits(wrong, right, shared):
    """How far the wrong statement is off, in units of the larger limit of the two."""
    return wrong.gauge["size"] / max(wrong.gauge["limit"], right.gauge["limit"])


def _rounding_limit(operations, unit_roundoff, condition, scale, sizes):
    growth = gamma(operations, unit_roundoff)
    condition = as_real(condition, "condition", above=0.0)
    if scale is None:
        scale = float(np.abs(sizes).max())
        if scale == 0.0:
            raise ValueError("scale must be given where everything predicted is zero")
    scale = as_real(scale, "scale", above=0.0)
    source = (
        f"rounding bound γ_k·condition·scale with k = {operations}, u = {number(unit_roundoff)}, "
        f"condition {number(condition)}, scale {number(scale)}"
    )
    limit = growth * condition * scale
    if not 0.0 < limit < np.inf:
        raise ValueError(f"condition {condition} and scale {scale} give the useless bound {limit}")
    return limit, source


def _statistic(name, value):
    return {"name": name, "value": value, "dof": None, "level": None}


IDENTITY = Kind(
    "identity",
    _evaluate_identity,
    in_limits,
    frozenset({"measured", "predicted"}),
    least=1.0,
    unit="bounds",
)
BOUND = Kind(
    "bound",
    _evaluate_bound,
    in_limits,
    frozenset({"values", "below", "above"}),
    least=1.0,
    unit="bounds",
)
