"""How wide heads should be when the total width H·d_k = D is given, in a model that can be solved.

Heads are kernel smoothers with the bandwidth h = d_k^{−1/2} that the source states, on covariates
uniform on circles of length 2π, with Gaussian kernels wrapped around them and the target
m(x) = √2 sin x. With t = h² all is in closed form:

    squared bias     (1 − e^{−t/2})²,
    variance         V = (σ²/n) θ(t)^d,   θ(t) = Σ_k e^{−tk²},   k over all integers,
    of the mixture   V·(ρ + (1 − ρ)/H),   H = D/d_k,

where d is the number of covariates that the kernel sees and ρ the share of the variance that all
heads have in common. d is a constant, or d_k itself if the kernel lives in the space of the keys.
Head sizes are treated as real numbers. Arrays in, NumPy arrays or floats out.
"""

import math

import numpy as np
import scipy.optimize

from rederive import validation


@validation.representable
def wrapped_energy(square_bandwidth):
    r"""Variance factor θ(t) of a Gaussian kernel wrapped around a circle of length 2π.

    Parameters
    ----------
    square_bandwidth : array_like
        t = h² > 0.

    Returns
    -------
    float or numpy.ndarray
        θ(t), the variance of the smoother in units of σ²/n; it tends to 1 for wide kernels.

    Raises
    ------
    ValueError
        If an entry is not positive and finite.

    Notes
    -----
    .. math:: \theta(t) = \sum_{k\in\mathbb Z} e^{-tk^2}
        = \sqrt{\pi/t}\, \sum_{j\in\mathbb Z} e^{-\pi^2 j^2/t},

    the first series for t ≥ π, its Poisson dual below: five terms leave less than 1e-40. A
    truncated first series would be wrong for narrow kernels, and would fake exponents.
    """
    t = _positive(square_bandwidth, "square_bandwidth")
    return _energy(t)[0][()]


@validation.representable
def head_size_risk(head_dim, n_samples, budget, *, covariate_dim=1, shared=0.0, noise_variance=1.0):
    r"""Squared bias and variance of the mean of D/d_k heads of width d_k.

    Parameters
    ----------
    head_dim : array_like
        Width d_k > 0.
    n_samples : array_like
        n > 0.
    budget : array_like
        D > 0; the number of heads D/d_k need not be whole.
    covariate_dim : int or None, optional
        Number d ≥ 1 of covariates; None if the kernel lives in key space, d = d_k.
    shared : float, optional
        Share ρ in [0, 1] of the variance that heads have in common.
    noise_variance : float, optional
        σ² > 0.

    Returns
    -------
    bias2, variance : float or numpy.ndarray
        The two parts of the mean squared error; for wide kernels the first tends to 1, the error of
        a constant guess. The second is inf where it exceeds the largest float.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    .. math:: (1 - e^{-1/2d_k})^2 \quad\text{and}\quad \frac{\sigma^2}{n}\,\theta(1/d_k)^d
        \Bigl(\varrho + (1-\varrho)\frac{d_k}{D}\Bigr).

    References
    ----------
    Derived in the chapter *regression*, after E. Fokoué, arXiv:2605.20271, Theorem 6.1.
    """
    model = _checked(covariate_dim, shared, noise_variance)
    width, n, total = validation.broadcast(
        head_dim=_positive(head_dim, "head_dim"), **_sizes(n_samples, budget)
    )
    log_variance, _ = _variance(width, n, total, *model)
    with np.errstate(over="ignore"):
        return np.expm1(-0.5 / width)[()] ** 2, np.exp(log_variance)[()]


@validation.representable
def optimal_head_size(n_samples, budget, *, covariate_dim=1, shared=0.0, noise_variance=1.0):
    r"""Width d_k* in [1, D] that minimises the mean squared error.

    Parameters
    ----------
    n_samples, budget : array_like
        n > 0 and D ≥ 1.
    covariate_dim, shared, noise_variance
        As in :func:`head_size_risk`.

    Returns
    -------
    float or numpy.ndarray
        d_k*, a real number; the number of heads is D/d_k*.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    With :math:`z = 1/2d_k` the optimum solves

    .. math:: 2z(1-e^{-z})e^{-z} = \frac{\partial\,\text{variance}}{\partial\log d_k}.

    For :math:`d_k\ge1` the left side falls and the right side grows with d_k, so that there is one
    solution at most; without one the nearer end of [1, D] is best.

    References
    ----------
    Derived in the chapter *regression*, after E. Fokoué, arXiv:2605.20271, Theorem 6.1.
    """
    model = _checked(covariate_dim, shared, noise_variance)
    n, total = validation.broadcast(**_sizes(n_samples, budget))
    if total.size and total.min() < 1:
        validation.fail("budget", "numbers >= 1", float(total.min()))
    pairs = zip(n.flat, total.flat, strict=True)
    best = [_optimum(float(one), float(other), model) for one, other in pairs]
    return np.array(best).reshape(n.shape)[()]


@validation.representable
def head_size_law(n_samples, budget, *, covariate_dim=1, shared=0.0, noise_variance=1.0):
    r"""Leading power law of :func:`optimal_head_size` at a fixed number of covariates.

    Parameters
    ----------
    n_samples, budget : array_like
        n > 0 and D > 0.
    covariate_dim : int, optional
        d ≥ 1.
    shared, noise_variance : float, optional
        As in :func:`head_size_risk`.

    Returns
    -------
    float or numpy.ndarray
        The law; for ρ > 0 the one for D → ∞.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    .. math:: \Bigl[\frac{n}{\varrho\sigma^2 d\,\pi^{d/2}}\Bigr]^{2/(4+d)}\ (\varrho>0),\qquad
        \Bigl[\frac{nD}{\sigma^2(d+2)\,\pi^{d/2}}\Bigr]^{2/(6+d)}\ (\varrho=0).

    References
    ----------
    Derived in the chapter *regression*, after E. Fokoué, arXiv:2605.20271, Theorem 6.1.
    """
    d = validation.integer(covariate_dim, "covariate_dim", minimum=1)
    _, shared, noise = _checked(d, shared, noise_variance)
    n, total = validation.broadcast(**_sizes(n_samples, budget))
    if shared:
        return (n / (shared * noise * d * math.pi ** (d / 2)))[()] ** (2 / (4 + d))
    return (n * total / (noise * (d + 2) * math.pi ** (d / 2)))[()] ** (2 / (6 + d))


def _energy(t):
    """Return θ(t) and its elasticity −t θ'(t)/θ(t), which tends to 1/2 for narrow kernels."""
    orders = np.arange(1, 6) ** 2
    direct = np.exp(-np.maximum(t, math.pi)[..., None] * orders)
    wide = 1 + 2 * direct.sum(-1), 2 * (t[..., None] * orders * direct).sum(-1)
    ratio = math.pi**2 * orders / np.minimum(t, math.pi)[..., None]
    dual = np.exp(-ratio)
    narrow = 1 + 2 * dual.sum(-1), 2 * (ratio * dual).sum(-1)
    is_wide = t >= math.pi
    energy = np.where(is_wide, wide[0], np.sqrt(math.pi / t) * narrow[0])
    return energy, np.where(is_wide, wide[1] / wide[0], 0.5 - narrow[1] / narrow[0])


def _variance(width, n, total, dim, shared, noise):
    """Return the log of the mixture's variance and its slope in log d_k."""
    energy, elasticity = _energy(1 / width)
    d = width if dim is None else dim
    slope = d * (elasticity + (np.log(energy) if dim is None else 0))
    alone = (1 - shared) * width / total
    mixed = shared + alone
    log_variance = d * np.log(energy) + np.log(noise) - np.log(n) + np.log(mixed)
    return log_variance, slope + alone / mixed


def _optimum(n, total, model):
    def imbalance(log_width):
        """Log of the right side over the left side of the condition for the optimum."""
        width = np.exp(log_width)
        z = 0.5 / width
        log_variance, slope = _variance(width, n, total, *model)
        left = np.log(2 * z) + np.log(-np.expm1(-z)) - z
        return float(log_variance + np.log(slope) - left)

    if imbalance(0.0) >= 0:
        return 1.0
    end = math.log(total)
    if imbalance(end) <= 0:
        return total
    return math.exp(scipy.optimize.brentq(imbalance, 0.0, end, xtol=1e-15, rtol=1e-15))


def _sizes(n_samples, budget):
    return {
        "n_samples": _positive(n_samples, "n_samples"),
        "budget": _positive(budget, "budget"),
    }


def _positive(value, name):
    found = validation.array(value, name, empty=True)
    if found.size and found.min() <= 0:
        validation.fail(name, "positive finite numbers", float(found.min()))
    return found


def _checked(covariate_dim, shared, noise_variance):
    if covariate_dim is not None:
        covariate_dim = validation.integer(covariate_dim, "covariate_dim", minimum=1)
    shared = validation.number(shared, "shared", minimum=0, maximum=1)
    return covariate_dim, shared, validation.positive(noise_variance, "noise_variance")
