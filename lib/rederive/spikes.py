"""Outliers of pooled covariances: strengths, thresholds, locations and overlaps.

Everything is read off one function,

    λ(y) = (1 + y)(1 + δ/y)(1 + γ/y),

in units of κ = ‖w‖². A spike of strength y > 0 beside the bulk MP_δ ⊠ MP_γ shows as an outlier at
λ(y) if y lies on the branch where λ increases, y > y*, and is hidden otherwise. γ = 0 stands for
the population (infinitely many sequences), where λ(y) = (1 + y)(1 + δ/y) and y* = √δ.

Strengths come from q = α/κ (the gain of the pooling), θ = ‖μ‖² and δ = d/V. Functions are
elementwise: an array in the place of a number gives an array.
"""

import math
from typing import NamedTuple

import numpy as np

from rederive import validation
from rederive.product_curve import edge_points

__all__ = [
    "Outlier",
    "critical_signal",
    "critical_signal_as_stated",
    "critical_spike",
    "level",
    "outlier",
    "slope_of_level",
    "spike_parameter",
    "spike_parameter_as_stated",
]


class Outlier(NamedTuple):
    """An eigenvalue outside the bulk, in units of κ, and its squared overlap with the spike."""

    location: float
    overlap: float


@validation.representable
def spike_parameter(snr, signal_norm2, delta):
    r"""Strength of the spike of the pooled covariance, :math:`y=q(\theta+\delta)-\delta`.

    Parameters
    ----------
    snr : array_like
        q = α/κ ≥ 0.
    signal_norm2 : array_like
        θ = ‖μ‖² ≥ 0.
    delta : array_like
        δ = d/V > 0.

    Returns
    -------
    float or numpy.ndarray
        y, of any sign.

    Raises
    ------
    ValueError
        If an argument is out of its range or the shapes do not go together.

    Notes
    -----
    :math:`\theta+\delta` is the squared length of :math:`\tilde\mu=\mu+Zs/V`, the class mean of the
    table itself. The spike that belongs to the mean of the whole vocabulary has the strength
    ``spike_parameter(w.sum()**2 / (w @ w), 0, delta)``.

    References
    ----------
    Derived in the chapter *pooling*, after M. E. A. Seddik, arXiv:2605.06826.
    """
    snr, theta, delta = _numbers(snr=snr, signal_norm2=signal_norm2, delta=delta)
    return (snr * theta + (snr - 1) * delta)[()]


@validation.representable
def spike_parameter_as_stated(snr, signal_norm2, delta):
    r"""Strength by the formula of the source, :math:`y=q\theta-\delta`.

    Parameters
    ----------
    snr, signal_norm2, delta : array_like
        As in :func:`spike_parameter`.

    Returns
    -------
    float or numpy.ndarray
        y, of any sign.

    Raises
    ------
    ValueError
        If an argument is out of its range or the shapes do not go together.

    Notes
    -----
    It is exact if the noise of the table is centred within each class, and accurate for θ far above
    δ.

    References
    ----------
    M. E. A. Seddik, arXiv:2605.06826.
    """
    snr, theta, delta = _numbers(snr=snr, signal_norm2=signal_norm2, delta=delta)
    return (snr * theta - delta)[()]


@validation.representable
def level(y, delta, gamma):
    r"""The function λ that locates edges and outliers, at a strength.

    Parameters
    ----------
    y : array_like
        Strengths, not 0, of either sign.
    delta, gamma : float
        δ > 0 and γ ≥ 0.

    Returns
    -------
    float or numpy.ndarray
        :math:`\lambda(y)=(1+y)(1+\delta/y)(1+\gamma/y)`, in units of κ.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    y = validation.array(y, "y", empty=True)
    delta, gamma = _ratios(delta, gamma)
    if (y == 0).any():
        validation.fail("y", "numbers that are not 0", "0")
    return ((1 + y) * (1 + delta / y) * (1 + gamma / y))[()]


@validation.representable
def critical_spike(delta, gamma):
    r"""Strength y* at which an outlier leaves the bulk.

    Parameters
    ----------
    delta, gamma : float
        δ > 0 and γ ≥ 0; γ = 0 is the population.

    Returns
    -------
    float
        The positive root of :math:`y^3-(\delta+\gamma+\delta\gamma)y-2\delta\gamma=0`;
        :math:`\sqrt\delta` at γ = 0.

    Raises
    ------
    ValueError
        If a ratio is out of its range.
    """
    delta, gamma = _ratios(delta, gamma)
    return edge_points(delta, gamma)[2] if gamma else math.sqrt(delta)


@validation.representable
def outlier(y, delta, gamma):
    r"""Location of the outlier of a spike and its overlap with the spike's direction.

    Parameters
    ----------
    y : array_like
        Strength of the spike, of any sign; see :func:`spike_parameter`.
    delta, gamma : float
        δ > 0 and γ ≥ 0; γ = 0 is the population.

    Returns
    -------
    Outlier
        `location` in units of κ and `overlap` (squared), of the shape of y. For y ≤ y* there is no
        outlier: the upper edge of the bulk and 0.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    .. math:: \lambda(y),\qquad \frac{y\lambda'(y)}{y+\gamma}
        = \frac{y^3-(\delta+\gamma+\delta\gamma)y-2\delta\gamma}{y^2(y+\gamma)}.

    The overlap with :math:`\mu` itself is :math:`\theta/(\theta+\delta)` times the overlap with
    :math:`\tilde\mu`.

    References
    ----------
    Derived in the chapter *pooling*, after M. E. A. Seddik, arXiv:2605.06826. γ = 0: F.
    Benaych-Georges, R. R. Nadakuditi, Advances in Mathematics 227 (2011), 494–521.
    """
    y = validation.array(y, "y", empty=True)
    delta, gamma = _ratios(delta, gamma)
    least = critical_spike(delta, gamma)
    seen = np.maximum(y, least)
    location = level(seen, delta, gamma)
    quotient = 1 + least / seen + 2 * delta * gamma / least / seen**2
    overlap = (1 - least / seen) * quotient / (1 + gamma / seen)
    return Outlier(location, overlap[()])


@validation.representable
def critical_signal(snr, delta, gamma):
    r"""Squared signal norm from which there is an outlier.

    Parameters
    ----------
    snr : array_like
        q = α/κ > 0.
    delta, gamma : float
        δ > 0 and γ ≥ 0; γ = 0 is the population.

    Returns
    -------
    float or numpy.ndarray
        :math:`\theta_c=\max\bigl(0,(y_*+\delta)/q-\delta\bigr)`. There is an outlier for θ > θ_c;
        where θ_c = 0 and :math:`q>1+y_*/\delta` there is one at θ = 0 too.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    snr, reach, delta = _threshold(snr, delta, gamma)
    return np.maximum(0, reach / snr - delta)[()]


@validation.representable
def critical_signal_as_stated(snr, delta, gamma):
    r"""Squared signal norm from which there is an outlier, by the formula of the source.

    Parameters
    ----------
    snr, delta, gamma
        As in :func:`critical_signal`.

    Returns
    -------
    float or numpy.ndarray
        :math:`(\delta+y_*)/q`.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    M. E. A. Seddik, arXiv:2605.06826 (Theorem 2 at γ = 0).
    """
    snr, reach, _ = _threshold(snr, delta, gamma)
    return (reach / snr)[()]


@validation.representable
def slope_of_level(y, delta, gamma):
    r"""Derivative of λ, :math:`1-(\delta+\gamma+\delta\gamma)/y^2-2\delta\gamma/y^3`.

    Parameters
    ----------
    y : array_like
        Strengths, not 0.
    delta, gamma : float
        δ > 0 and γ ≥ 0.

    Returns
    -------
    float or numpy.ndarray
        λ'(y): zero at the critical points, positive where an outlier is seen.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    y = validation.array(y, "y", empty=True)
    delta, gamma = _ratios(delta, gamma)
    if (y == 0).any():
        validation.fail("y", "numbers that are not 0", "0")
    return (1 - (delta + gamma + delta * gamma) / y**2 - 2 * delta * gamma / y**3)[()]


def _ratios(delta, gamma):
    return validation.positive(delta, "delta"), validation.number(gamma, "gamma", minimum=0)


def _threshold(snr, delta, gamma):
    snr = validation.array(snr, "snr", empty=True)
    delta, gamma = _ratios(delta, gamma)
    if (snr <= 0).any():
        validation.fail("snr", "positive numbers", str(snr[snr <= 0].flat[0]))
    return snr, delta + critical_spike(delta, gamma), delta


def _numbers(**given):
    arrays = {name: validation.array(value, name, empty=True) for name, value in given.items()}
    for name, found in arrays.items():
        if (found < 0).any() or (name == "delta" and (found == 0).any()):
            sign = "positive numbers" if name == "delta" else "numbers >= 0"
            validation.fail(name, sign, str(found.min()))
    return validation.broadcast(**arrays)
