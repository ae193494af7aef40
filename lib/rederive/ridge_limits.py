r"""What ridge classification of pooled sequences tends to as d, V and N grow in proportion.

A table of V items in dimension d is drawn, N labelled sequences are pooled with weights w, and
ridge regression learns a direction β from them. In the limit δ = d/V, γ = d/N the accuracy is
E Φ(√(g/κ) f), where f is the agreement of :mod:`rederive.classification` and g, the *usable
separation*, says how much of the table's separation the learnt direction can use. Floats out.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special
from scipy.optimize import brentq, minimize_scalar

from rederive import classification, validation

__all__ = ["RidgeLimit", "ridge_limit"]

_LEAST = 1e-290  # above the smallest normal number, so that no quotient with it overflows


class RidgeLimit(NamedTuple):
    """Limits of one ridge classifier.

    Attributes
    ----------
    accuracy : float
        On new sequences of the same vocabulary.
    new_vocabulary : float
        On sequences of a vocabulary drawn anew, with the same μ.
    penalty : float
        λ, for the pooled sequences as they are.
    usable, usable_new : float
        Usable separation g with the same and with a new vocabulary.
    error : float
        Mean squared error of the regression, which cross-validation estimates.
    """

    accuracy: float
    new_vocabulary: float
    penalty: float
    usable: float
    usable_new: float
    error: float


@validation.representable
def ridge_limit(weights, loadings, signal_norm2, delta, gamma, penalty=None):
    r"""Limit of ridge classification.

    Parameters
    ----------
    weights, loadings
        As for :func:`rederive.classification.agreement`; wᵀb must not vanish.
    signal_norm2 : float
        θ ≥ 0, and θ + δ > 0.
    delta, gamma : float
        δ = d/V ≥ 0 and γ = d/N > 0.
    penalty : float, optional
        λ > 0, of the objective in :func:`rederive.classification.ridge_fit`. By default the one of
        least mean squared error, to which generalised cross-validation tends.

    Returns
    -------
    RidgeLimit
        The limits, for both vocabularies.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    With s₁, s₂ the integrals of 1/(x + τ) and 1/(x + τ)² against the Marchenko–Pastur law of ratio
    δ, φ₁ = 1 − τs₁, ψ = s₁ − τs₂, φ₂ = φ₁ − τψ, λ = κτ(1 − γφ₁), k = (θ + δ)s₁/κ,
    p = ak/(1 + αk) and ω = 1 − 2ap + αp²:

    .. math:: \frac1g = \frac{1}{1 - \gamma\varphi_2}
        \Bigl[\frac{\psi}{(\theta+\delta)s_1^2} + \frac{\gamma\varphi_2\,\omega}{\kappa p^2}\Bigr],
        \qquad \text{error} = \omega + \frac{\kappa p^2}{g}.

    Exact for pooled noise that is Gaussian given the table.

    References
    ----------
    Derived in the chapter *pooling*.
    """
    theta = validation.number(signal_norm2, "signal_norm2", minimum=0)
    delta = validation.number(delta, "delta", minimum=0)
    gamma = validation.positive(gamma, "gamma")
    if not theta + delta > 0:
        validation.fail("signal_norm2", "a positive number where delta is 0", theta)
    law = classification.agreement(weights, loadings)
    kappa = float(np.sum(np.square(np.asarray(weights, dtype=float))))
    scale = math.sqrt(kappa)
    values, masses = law.values / scale, law.probabilities  # as if ‖w‖ = 1
    a, alpha = law.mean / scale, law.power / kappa
    if not abs(a) > 1e-12:
        validation.fail("weights", "weights whose pooled signs agree with the label", f"wᵀb = {a}")
    shape = (a, alpha, theta, delta, gamma)
    if penalty is None:
        tau = _least_error(shape)
    else:
        tau = _solve(validation.positive(penalty, "penalty") / kappa, delta, gamma)
    usable, usable_new, error, ratio = _limits(tau, *shape)
    accuracies = (
        float(masses @ special.ndtr(math.copysign(math.sqrt(g), a) * values))
        for g in (usable, usable_new)
    )
    return RidgeLimit(*accuracies, ratio * kappa, usable, usable_new, error)


def _integrals(tau, delta):
    """s₁, s₂, ψ, φ₁, φ₂ at τ > 0, without cancellation."""
    root = math.sqrt((1 - delta + tau) ** 2 + 4 * delta * tau)
    if delta <= 1:
        s1 = 2 / (1 - delta + tau + root)
    else:
        s1 = (delta - 1 - tau + root) / (2 * delta * tau)
    phi1 = s1 / (1 + delta * s1)  # 1 − τs₁, from δτs₁² + (1 − δ + τ)s₁ = 1
    psi = phi1 / root  # −φ₁'
    phi2 = psi * ((1 - delta) ** 2 + 2 * tau * (1 + delta)) / (root + tau)  # φ₁ − τψ
    return s1, psi * (1 + delta * s1) ** 2, psi, phi1, phi2


def _limits(tau, a, alpha, theta, delta, gamma):
    """Usable separations, error and λ/κ at one τ, for ‖w‖ = 1."""
    s1, s2, psi, phi1, phi2 = _integrals(tau, delta)
    rho, left = theta + delta, 1 - gamma * phi2
    k = rho * s1
    p = a * k / (1 + alpha * k)
    spare = max(alpha - a * a, 0.0)  # ω = 1 − 2ap + αp² without its cancellation
    missed = ((1 + spare * k) / (1 + alpha * k)) ** 2 + spare * p * p
    noise = gamma * missed / (p * p * left)
    usable = 1 / (psi / (rho * s1 * s1 * left) + noise * phi2)
    spread = (s2 + gamma * psi * psi / left) / (rho * s1 * s1) + noise * psi
    new = (theta / rho) ** 2 / spread
    return usable, new, missed + p * p / usable, tau * (1 - gamma * phi1)


def _start(delta, gamma):
    """The τ at which λ vanishes: 0, or where γφ₁ = 1."""

    def excess(log_tau):
        return gamma * _integrals(math.exp(log_tau), delta)[3] - 1

    lowest = -40.0
    if excess(lowest) <= 0:
        return math.exp(lowest)
    return math.exp(brentq(excess, lowest, math.log(gamma + 1) + 10, xtol=1e-14))


def _solve(ratio, delta, gamma):
    start = _start(delta, gamma)

    def excess(tau):
        return tau * (1 - gamma * _integrals(tau, delta)[3]) - ratio

    # below the start, which leaves a little out, only the smallest penalties are found
    low = start if excess(start) < 0 else _LEAST
    if excess(low) >= 0:
        validation.fail("penalty", "a penalty that is not lost in rounding", f"{ratio:.3g}·‖w‖²")
    return brentq(excess, low, start + ratio + gamma + 1, xtol=1e-300, rtol=1e-14)


def _least_error(shape):
    """The τ of least mean squared error: a grid, then refinement between its neighbours."""
    start = _start(*shape[3:])

    def error(log_gap):
        return _limits(start + math.exp(log_gap), *shape)[2]

    grid = np.linspace(-30, 16, 185)
    best = int(np.argmin([error(x) for x in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(error, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
    return start + math.exp(found.x)
