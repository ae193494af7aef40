"""Bias and variance of a mean of tied heads for linear targets, and heads of least risk.

For tied heads with orthonormal frames U_h and Gaussian keys the mean of the heads, times an output
gain s, tends to sβ P̄x with P̄ = (1/H) Σ U_h U_hᵀ when the number of keys grows; a = sβ is the
*total gain*. A linear target b·x, b isotropic in a space S of dimension r with E|b|² = 1, is
reproduced without bias iff P_S(I − aP̄) = 0. A target is given by a frame (p, r) of S; None is the
whole space. Arrays in, NumPy arrays or floats out.
"""

from typing import NamedTuple

import numpy as np
import scipy.optimize

from rederive import validation
from rederive.diversity import _orthonormal, orthonormal_frames


class Optimum(NamedTuple):
    """Heads at which a descent ended, their risk, and the total gain that goes with them."""

    frames: np.ndarray
    risk: float
    gain: float


@validation.representable
def limiting_bias2(projections, gain, target=None):
    r"""Squared bias of the mean of tied heads for a random linear target, many keys.

    Parameters
    ----------
    projections : array_like, shape (H, p, k)
        Frames of full column rank; only their ranges matter.
    gain : float
        Total gain a, output gain times inverse temperature.
    target : array_like, shape (p, r), optional
        Frame of the target's space S; None is R^p.

    Returns
    -------
    float
        Squared bias, averaged over targets and N(0, I) queries, in units of the target's mean
        square.

    Raises
    ------
    ValueError
        If shapes do not fit or an entry is not finite.

    Notes
    -----
    .. math:: B^2 = \tfrac1r \bigl\|P_S (I - a\bar P)\bigr\|_F^2
    """
    projectors, space, gain = _checked(projections, target, gain)
    return float(_bias(projectors, space, gain)[0])


@validation.representable
def leading_variance(projections, inverse_temperature, gain, noise_variance, target=None):
    r"""Leading n times the variance of the mean of tied heads, keys and noise both random.

    Parameters
    ----------
    projections : array_like, shape (H, p, k)
        Frames of full column rank; only their ranges matter.
    inverse_temperature : float
        β > 0 with 2β² < 1.
    gain : float
        Total gain a; the output gain is a/β.
    noise_variance : float
        σ² ≥ 0.
    target : array_like, shape (p, r), optional
        Frame of the target's space S; None is R^p.

    Returns
    -------
    float
        Limit of n·Var at a query, averaged over targets and N(0, I) queries.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite or 2β² ≥ 1.

    Notes
    -----
    With :math:`A = I - \beta^2 (P_hP_{h'} + P_{h'}P_h)`,

    .. math:: \frac{a^2}{\beta^2H^2} \sum_{h,h'} \det(A)^{-1/2} \Bigl[\sigma^2 + 1
        + \frac{\beta^2}{r} \operatorname{tr}(P_S P_h A^{-1} P_{h'})\Bigr].
    """
    projectors, space, gain = _checked(projections, target, gain)
    beta2 = _square_temperature(inverse_temperature)
    noise = validation.number(noise_variance, "noise_variance", minimum=0)
    return float(gain**2 * _variance(projectors, space, beta2, noise)[0])


@validation.representable
def least_risk(
    start, gain=None, target=None, *, n_keys=None, inverse_temperature=None, noise_variance=None
):
    r"""Descend to heads of least risk from given ones, over all subspaces.

    Parameters
    ----------
    start : array_like, shape (H, p, k)
        Frames of full column rank to start from.
    gain : float, optional
        Total gain a; None chooses the best gain for the heads at each step.
    target : array_like, shape (p, r), optional
        Frame of the target's space S; None is R^p.
    n_keys : float, optional
        Number of keys; None leaves the variance out.
    inverse_temperature, noise_variance : float, optional
        β and σ², required with `n_keys`.

    Returns
    -------
    Optimum
        `frames` (orthonormal), `risk`, `gain`; a local minimum, hence start from many places.

    Raises
    ------
    ValueError
        If shapes do not fit or an argument is out of its range.

    Notes
    -----
    The risk is B² + L/n, with :func:`limiting_bias2` and :func:`leading_variance`. A function of
    the projectors with gradient D_h has the gradient 2(I − P_h) D_h W_h (W_hᵀW_h)^{-1} in frames
    W_h; L-BFGS uses it.
    """
    free = gain is None
    _, space, gain = _checked(start, target, 1.0 if free else gain, "start")
    if n_keys is not None:
        n_keys = validation.positive(n_keys, "n_keys")
        beta2 = _square_temperature(inverse_temperature)
        noise = validation.number(noise_variance, "noise_variance", minimum=0)
    shape = np.shape(start)

    def risk(projectors):
        variance, slope = 0.0, 0.0
        if n_keys is not None:
            variance, slope = _variance(projectors, space, beta2, noise)
            variance, slope = variance / n_keys, slope / n_keys
        used = gain
        if free:
            mean = projectors.mean(axis=0)
            square = np.vdot(space @ mean, mean) / np.trace(space) + variance
            # Heads that see nothing of the target, without noise: every gain is as good.
            used = np.vdot(space, mean) / np.trace(space) / square if square > 0 else 0.0
        bias, bias_slope = _bias(projectors, space, used)
        return bias + used**2 * variance, bias_slope + used**2 * slope, used

    def objective(flat):
        frames = flat.reshape(shape)
        dual = frames @ np.linalg.inv(frames.swapaxes(1, 2) @ frames)
        projectors = dual @ frames.swapaxes(1, 2)
        value, slope, _ = risk(projectors)
        push = slope @ dual
        return value, 2 * (push - projectors @ push).ravel()

    options = {"maxiter": 5000, "maxfun": 10000, "ftol": 0, "gtol": 1e-10, "maxcor": 20}
    begin = orthonormal_frames(start).ravel()
    found = scipy.optimize.minimize(objective, begin, jac=True, method="L-BFGS-B", options=options)
    frames = orthonormal_frames(found.x.reshape(shape))
    value, _, used = risk(frames @ frames.swapaxes(1, 2))
    return Optimum(frames, float(value), float(used))


def _checked(projections, target, gain, name="projections"):
    projections = validation.array(projections, name, shape=("H", "p", "k"))
    frames = _orthonormal(projections, name)
    space = np.eye(frames.shape[1])
    if target is not None:
        plane = validation.array(target, "target", shape=(frames.shape[1], "r"))
        plane = _orthonormal(plane, "target")
        space = plane @ plane.T
    return frames @ frames.swapaxes(1, 2), space, validation.number(gain, "gain")


def _square_temperature(inverse_temperature):
    beta = validation.positive(inverse_temperature, "inverse_temperature")
    if not 2 * beta**2 < 1:
        validation.fail("inverse_temperature", "2β² < 1", beta)
    return beta**2


def _bias(projectors, space, gain):
    """Squared bias and its symmetric gradient in each projector (the same for all)."""
    rank, mean = np.trace(space), projectors.mean(axis=0)
    lost = space - gain * space @ mean
    slope = -gain / rank * (lost + lost.T) / len(projectors)
    return np.vdot(lost, lost) / rank, np.broadcast_to(slope, projectors.shape)


def _variance(projectors, space, beta2, noise):
    """Leading n·Var at total gain 1, and its symmetric gradient in each projector."""
    rank, heads = np.trace(space), len(projectors)
    first, second = projectors[:, None], projectors[None]
    overlap = first @ second
    inner = np.eye(len(space)) - beta2 * (overlap + overlap.swapaxes(2, 3))
    inverse = np.linalg.inv(inner)
    weight = np.linalg.det(inner) ** -0.5
    right, left = inverse @ second @ space, space @ first @ inverse
    trace = np.einsum("hgij,gji->hg", left, projectors)
    term = noise + 1 + beta2 / rank * trace
    middle = right @ first @ inverse
    middle = beta2 / rank * beta2 * (middle + middle.swapaxes(2, 3))
    middle = weight[..., None, None] * (beta2 * term[..., None, None] * inverse + middle)
    # through A, both slots; then through the two outer projectors
    slope = ((second @ middle + middle @ second) / 2).sum(axis=1)
    slope = slope + ((first @ middle + middle @ first) / 2).sum(axis=0)
    factor = (beta2 / rank * weight)[..., None, None]
    slope = slope + (factor * right).sum(axis=1) + (factor * left).sum(axis=0)
    scale = 1 / (beta2 * heads**2)
    return scale * (weight * term).sum(), scale * (slope + slope.swapaxes(1, 2)) / 2
