"""Fluctuations of the largest eigenvalue, above and below the threshold of an outlier.

The threshold is that of :mod:`rederive.spikes`. Above it an outlier is normal with a standard
deviation of order d^{−1/2}. Below it the largest eigenvalue sticks to the edge of the bulk and
follows the Tracy–Widom law on the scale d^{−2/3}. Both scales are predicted; no constant is fitted.
"""

import math

import numpy as np
from scipy import special

from rederive import validation
from rederive.spikes import critical_spike, level, slope_of_level, spike_parameter

__all__ = [
    "TRACY_WIDOM_MEAN",
    "TRACY_WIDOM_SD",
    "edge_scale",
    "finite_edge",
    "outlier_sd",
    "tracy_widom_cdf",
]

#: Mean and standard deviation of the Tracy–Widom law of real matrices, TW₁.
TRACY_WIDOM_MEAN = -1.2065335745820
TRACY_WIDOM_SD = math.sqrt(1.6077810345810)


@validation.representable
def outlier_sd(snr, signal_norm2, delta, gamma, dimension, excess_kurtosis=0.0):
    r"""Standard deviation of an outlier to leading order, without a fitted constant.

    Parameters
    ----------
    snr, signal_norm2 : float
        q > 0 and θ ≥ 0, with a spike parameter above y*.
    delta, gamma : float
        δ > 0 and γ ≥ 0; γ = 0 is the population.
    dimension : int
        d ≥ 1.
    excess_kurtosis : float
        Of the pooled sign :math:`w^\top\xi`, at least −2; 0 for a Gaussian one.

    Returns
    -------
    float
        Of the location in units of κ; it falls as :math:`d^{-1/2}`.

    Raises
    ------
    ValueError
        If an argument is out of its range or there is no outlier.

    Notes
    -----
    With :math:`\rho=y+\delta`, :math:`\ell=(1+y)(1+\delta/y)`, :math:`\ell'=1-\delta/y^2` and
    :math:`\psi'=\lambda'(y)/\ell'`,

    .. math:: \mathrm{Var}\,\ell &= \tfrac2d\rho^2\ell'(1-\ell')
        + q^2\ell'^2\tfrac{4\theta+2\delta}{V}, \\
        \mathrm{Var}\,\lambda &= \psi'^2\,\mathrm{Var}\,\ell + \tfrac2N\ell^2\psi'
        + \tfrac{k_4}N\psi'^2(\rho\ell')^2.
    """
    q = validation.positive(snr, "snr")
    theta = validation.number(signal_norm2, "signal_norm2", minimum=0)
    delta = validation.positive(delta, "delta")
    gamma = validation.number(gamma, "gamma", minimum=0)
    d = validation.integer(dimension, "dimension", minimum=1)
    kurtosis = validation.number(excess_kurtosis, "excess_kurtosis", minimum=-2)
    y, least = spike_parameter(q, theta, delta), critical_spike(delta, gamma)
    if y <= least:
        validation.fail("snr", f"a spike parameter above {least:.6g}", f"{y:.6g}")
    rho, population, slope = y + delta, (1 + y) * (1 + delta / y), 1 - delta / y**2
    variance = 2 * rho**2 * slope * (1 - slope) + (q * slope) ** 2 * delta * (4 * theta + 2 * delta)
    lift = slope_of_level(y, delta, gamma) / slope
    variance *= lift**2
    variance += gamma * (2 * population**2 * lift + kurtosis * (lift * rho * slope) ** 2)
    return math.sqrt(variance / d)


@validation.representable
def edge_scale(delta, gamma):
    r"""Scale of the largest eigenvalue when there is no outlier.

    Parameters
    ----------
    delta, gamma : float
        δ > 0 and γ ≥ 0; γ = 0 is the population.

    Returns
    -------
    float
        σ in :math:`\lambda_{\max}\approx\lambda(y_*)+\sigma\,d^{-2/3}\,\mathrm{TW}_1`.

    Raises
    ------
    ValueError
        If a ratio is out of its range.

    Notes
    -----
    The density of the bulk falls as :math:`\frac c\pi\sqrt{b-x}` at its upper edge b, with
    :math:`c=\sqrt{2/\lambda''(y_*)}/(y_*^2\,b)`, and :math:`\sigma=c^{-2/3}`.
    """
    y = critical_spike(delta, gamma)
    delta, gamma = float(delta), float(gamma)
    curvature = 2 * (delta + gamma + delta * gamma) / y**3 + 6 * delta * gamma / y**4
    return float((y**2 * level(y, delta, gamma) * math.sqrt(curvature / 2)) ** (2 / 3))


@validation.representable
def finite_edge(dimension, items, sequences):
    r"""Upper edge at finite size, the best centre for the largest eigenvalue.

    Parameters
    ----------
    dimension : float
        d ≥ 1.
    items, sequences : float
        V and N, at least 1: degrees of freedom of the two layers, one less each where a mean has
        been removed.

    Returns
    -------
    float
        Centre for the largest eigenvalue of :math:`ZG(ZG)^\top/(VN)` with Gaussian Z, G of shapes
        (d, V) and (V, N).

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    The edge :math:`\lambda(y_*)` at the sizes :math:`d-\frac12,V-\frac12,N-\frac12`. For a single
    layer this choice makes the error of the Tracy–Widom law one order smaller; for two we use it by
    analogy.

    References
    ----------
    I. M. Johnstone, Annals of Statistics 29 (2001), 295–327; Z. Ma, Bernoulli 18 (2012), 322–359.
    """
    d = validation.number(dimension, "dimension", minimum=1) - 0.5
    full_items = validation.number(items, "items", minimum=1)
    full_sequences = validation.number(sequences, "sequences", minimum=1)
    v, n = full_items - 0.5, full_sequences - 0.5
    edge = level(critical_spike(d / v, d / n), d / v, d / n)
    return float(edge * v * n / (full_items * full_sequences))


def tracy_widom_cdf(s):
    r"""Distribution function of TW₁, the law of the largest eigenvalue of real matrices.

    Parameters
    ----------
    s : array_like
        Any shape; infinities are allowed.

    Returns
    -------
    float or numpy.ndarray
        To an absolute accuracy of about 1e-14.

    Raises
    ------
    ValueError
        If an entry is NaN.

    Notes
    -----
    The Fredholm determinant :math:`\det(1-B_s)` of the kernel :math:`\mathrm{Ai}(x+y+s)` on
    :math:`(0,\infty)`, by Gauss–Legendre quadrature.

    References
    ----------
    P. L. Ferrari, H. Spohn, Journal of Physics A 38 (2005), L557; F. Bornemann, Mathematics of
    Computation 79 (2010), 871–915.
    """
    s = validation.array(s, "s", finite=False, empty=True)
    nodes, weights = special.roots_legendre(40)
    found = np.empty(s.shape)
    for index, start in np.ndenumerate(np.clip(s, -12, 24)):
        length = max(4.0, 16 - start)
        x, w = length * (nodes + 1) / 2, np.sqrt(length * weights / 2)
        kernel = special.airy(x[:, None] + x + start)[0]
        found[index] = np.linalg.det(np.eye(len(x)) - w[:, None] * kernel * w)
    return np.clip(found, 0, 1)[()]
