"""What the kinds that try a mean share: replicates, t interval, distance in standard errors."""

import math

import numpy as np

from rederive_book import statistics
from rederive_book.check_lines import number, with_error
from rederive_book.registration import Finding
from rederive_book.rounding import as_reals, worst_or_all
from rederive_book.skewness import refuse_skewed


def mean_finding(
    mean, error, dof, predicted, source, *, bias=0.0, margin=None, statistic="t", resolution=0.0
):
    """The finding for means (K,) with standard errors (K,) against predictions ((K,) or scalar).

    `resolution` is the least unit in which distances are measured, where errors may vanish.
    """
    level = statistics.current_level()
    flat = np.ravel(predicted)
    entries = mean.shape[-1]
    gaps = mean - flat
    unit = np.maximum(error, resolution)
    excess = np.maximum(np.abs(gaps) - bias, 0.0) / unit
    worst = int(np.argmax(excess if excess.max() > 0.0 else np.abs(gaps) / unit))
    reach = statistics.quantile(level, entries, dof) * float(error[worst])
    allowances = f", bias up to {number(bias)}" if bias else ""
    allowances += f", margin {number(margin)}" if margin is not None else ""
    interval = with_error(float(mean[worst]), reach) if reach else number(float(mean[worst]), 4)
    return Finding(
        verdict=int(statistics.decide_mean(mean, error, dof, flat, bias, margin, level)),
        measured=worst_or_all(mean.reshape(np.shape(predicted)), worst),
        predicted=worst_or_all(np.asarray(predicted), worst),
        uncertainty=float(error[worst]),
        source=source,
        statistic=t_statistic(statistic, gaps[worst] / unit[worst], dof, level),
        deviation=float(gaps[worst]),
        summary=(
            f"{f'worst of {entries}: ' if entries > 1 else ''}measured {interval} "
            f"(t interval, {dof_text(dof)}), predicted {number(float(flat[worst]), 4)}{allowances}"
        ),
        brief=f"off by {number(abs(float(gaps[worst])))}",
        gauge={
            "prediction": flat,
            "gaps": np.abs(gaps),
            "error": unit,
            "allowance": bias + (0.0 if margin is None else margin),
            "required": statistics.required_distance(dof, entries, level),
        },
    )


def in_standard_errors(wrong, right, shared):
    """How far the wrong statement is off in standard errors, allowances subtracted.

    On shared data the gap between the two predictions counts, whatever was measured; else the
    wrong statement's own gap between mean and prediction.
    """
    wrong, right = wrong.gauge, right.gauge
    if not shared:
        beyond = wrong["gaps"] - max(wrong["allowance"], right["allowance"])
        return np.max(np.maximum(beyond, 0.0) / wrong["error"])
    if wrong["prediction"].shape != right["prediction"].shape:
        raise ValueError("the control must keep the entries of the check")
    gaps = np.abs(wrong["prediction"] - right["prediction"])
    beyond = gaps - wrong["allowance"] - right["allowance"]
    return np.max(np.maximum(beyond, 0.0) / np.maximum(wrong["error"], right["error"]))


def replicate_columns(values, argument):
    """Replicates as (R, K), R ≥ 2, and the shape of one of them, () or (K,)."""
    array, _ = as_reals(values, argument)
    if array.ndim not in (1, 2) or array.shape[0] < 2:
        raise ValueError(
            f"{argument} must be (R,) or (R, K) with at least 2 replicates, got {array.shape}"
        )
    return array.reshape(array.shape[0], -1), array.shape[1:]


def summarise_checked(columns, argument):
    """Mean, standard error and degrees of freedom, unless constant or too skewed."""
    mean, error, dof = statistics.summarise(columns)
    if not np.isfinite(error).all():
        raise ValueError(f"{argument} are too large for their variance to be a number")
    if not (error > 0).all():
        raise ValueError(
            f"{argument} do not vary, so there is nothing to estimate: use identity, bound or "
            "certified"
        )
    refuse_skewed(columns, argument, statistics.current_level())
    return mean, error, dof


def dof_text(dof):
    """Degrees of freedom in words."""
    return "normal law" if math.isinf(dof) else f"{number(dof, 4)} degrees of freedom"


def t_statistic(name, value, dof, level):
    """The statistic as the record keeps it; infinite degrees of freedom are null."""
    dof = None if math.isinf(dof) else float(dof)
    return {"name": name, "value": float(value), "dof": dof, "level": level}
