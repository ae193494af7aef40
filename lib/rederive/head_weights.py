"""How the matrices of the heads move in time.

A *law* tells the matrices D_h of H heads, an array (…, H, d, d) whose leading axes are paths:

* :class:`Frozen`: D(t) = D(0);
* :class:`Relaxing`: D' = κ(M − D), in closed form;
* :class:`Oscillating`: D_h' = F(t + p_h) − D_h with a periodic F, in closed form;
* :class:`OrnsteinUhlenbeck`: dD = (M − D) dt + σ dW with W = (B + Bᵀ)/2, B a matrix of independent
  Brownian motions; random, with the exact transition.

Every law has `start`; `noise_variance` (σ², 0 if nothing is random); `drift(heads, time)`; and
`step(heads, time, dt, normals, exact)`, which returns the matrices after dt and the random part of
the step. Laws without noise also have `at(time)`. NumPy arrays in and out.
"""

import math

import numpy as np

from rederive import validation


@validation.representable
def gaussian_heads(rng, n_heads, dim, *, scale=1.0):
    """Symmetric Gaussian matrices s(Z + Zᵀ), Z standard normal.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the randomness comes from.
    n_heads : int
        Number H of heads.
    dim : int
        Dimension d of the tokens.
    scale : float
        The factor s > 0; 1 is the start of the simulations of our source.

    Returns
    -------
    numpy.ndarray, shape (n_heads, dim, dim)
        Variance 4s² on the diagonal, 2s² off it.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    A. Massucco et al., arXiv:2605.18870.
    """
    scale = validation.positive(scale, "scale")
    return 2 * scale * symmetric_part(_normals(rng, (n_heads,), dim))


@validation.representable
def stationary_heads(rng, n_heads, dim, *, noise_variance=2.0, mean=None, paths=None):
    r"""Heads from the stationary law of :class:`OrnsteinUhlenbeck`.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the randomness comes from.
    n_heads : int
        Number H of heads.
    dim : int
        Dimension d of the tokens.
    noise_variance : float
        σ² ≥ 0.
    mean : array_like, shape (dim, dim), optional
        The matrix M, by default the identity.
    paths : int, optional
        Draw that many independent families.

    Returns
    -------
    numpy.ndarray, shape (n_heads, dim, dim) or (paths, n_heads, dim, dim)
        :math:`M + \frac{\sigma}{\sqrt2}\,\frac{Z + Z^\top}2`.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    Derived in the chapter *flow*, after A. Massucco et al., arXiv:2605.18870.
    """
    leading = (n_heads,) if paths is None else (paths, n_heads)
    variance = validation.number(noise_variance, "noise_variance", minimum=0)
    noise = symmetric_part(_normals(rng, leading, dim))
    return _mean(mean, dim) + math.sqrt(variance / 2) * noise


def oscillating_target(times):
    r"""The periodic matrix F(τ) towards which oscillating heads are drawn (d = 3).

    Parameters
    ----------
    times : array_like, shape (…)
        Times τ.

    Returns
    -------
    numpy.ndarray, shape (…, 3, 3)
        Symmetric, with :math:`F_{11} = 2 + \frac32\cos\tau`, :math:`F_{22} = 2 + \frac32\sin\tau`,
        :math:`F_{33} = 2 + \frac32\cos(\tau + \frac\pi4)`, :math:`F_{12} = \sin2\tau`,
        :math:`F_{13} = \sin\tau`, :math:`F_{23} = \cos2\tau`.

    Raises
    ------
    ValueError
        If a time is not finite.

    References
    ----------
    The public code to A. Massucco et al., arXiv:2605.18870.
    """
    angles = np.multiply.outer(validation.array(times, "times", empty=True), np.arange(3))
    return _series(np.cos(angles), np.sin(angles))


class Frozen:
    """Heads that do not move.

    Parameters
    ----------
    start : array_like, shape (…, H, d, d)
        The matrices.

    Raises
    ------
    ValueError
        If they are not square, there is none, or an entry is not finite.
    """

    noise_variance = 0.0

    def __init__(self, start):
        self.start = check_heads(start, "start")

    def at(self, time):
        """Return the matrices at a time, shape (…, H, d, d)."""
        validation.number(time, "time")
        return self.start

    def drift(self, heads, time):
        """Return D', shape (…, H, d, d)."""
        return np.zeros_like(heads)

    def step(self, heads, time, dt, normals=None, exact=True):
        """Return the matrices after dt, and the random part of the step: None."""
        if exact:
            return self.at(time + dt), None
        return heads + dt * self.drift(heads, time), None


class Relaxing(Frozen):
    """Heads that relax towards a limit, D' = κ(M − D).

    Parameters
    ----------
    start : array_like, shape (…, H, d, d)
        The matrices at time 0.
    limit : array_like, shape (d, d) or (H, d, d), optional
        The matrix M, by default the identity.
    rate : float
        κ > 0.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or the rate is not positive.

    Notes
    -----
    D(t) = M + e^{−κt}(D(0) − M), so that ∫|D'|dt = |D(0) − M| is finite.
    """

    def __init__(self, start, limit=None, rate=1.0):
        super().__init__(start)
        self.limit = _mean(limit, self.start.shape[-1], self.start.shape)
        self.rate = validation.positive(rate, "rate")

    @validation.representable
    def at(self, time):
        """Return the matrices at a time, shape (…, H, d, d)."""
        time = validation.number(time, "time")
        return self.limit + math.exp(-self.rate * time) * (self.start - self.limit)

    def drift(self, heads, time):
        """Return D', shape (…, H, d, d)."""
        return self.rate * (self.limit - heads)


class Oscillating(Frozen):
    r"""Heads that follow a periodic target, D_h' = F(t + p_h) − D_h.

    Parameters
    ----------
    start : array_like, shape (…, H, 3, 3)
        The matrices at time 0.
    phases : array_like, shape (H,) or (…, H), optional
        The phases p_h, by default 2πh/H.

    Raises
    ------
    ValueError
        If the matrices are not 3 × 3, shapes do not fit, or an entry is not finite.

    Notes
    -----
    F is :func:`oscillating_target`. A forcing cos(kt + a) gives the periodic solution
    (cos(kt + a) + k sin(kt + a))/(1 + k²), to which e^{−t} times what is missing at t = 0 is added.

    References
    ----------
    The public code to A. Massucco et al., arXiv:2605.18870.
    """

    def __init__(self, start, phases=None):
        super().__init__(start)
        if self.start.shape[-1] != 3:
            validation.fail("start", "matrices of size 3", f"shape {self.start.shape}")
        count = self.start.shape[-3]
        if phases is None:
            phases = 2 * math.pi * np.arange(count) / count
        self.phases = validation.array(phases, "phases", shape=(..., count))
        self._gap = self.start - self.periodic(0.0)

    def periodic(self, time):
        """Return the periodic solution at a time, shape (…, H, 3, 3)."""
        k = np.arange(3)
        time = validation.number(time, "time")
        angles = np.multiply.outer(time + self.phases, k)
        cos, sin = np.cos(angles), np.sin(angles)
        return _series((cos + k * sin) / (1 + k * k), (sin - k * cos) / (1 + k * k))

    @validation.representable
    def at(self, time):
        """Return the matrices at a time, shape (…, H, 3, 3)."""
        time = validation.number(time, "time")
        return self.periodic(time) + math.exp(-time) * self._gap

    def drift(self, heads, time):
        """Return D', shape (…, H, 3, 3)."""
        return oscillating_target(time + self.phases) - heads


class OrnsteinUhlenbeck:
    r"""Heads with noise that are drawn back to a matrix, dD = (M − D) dt + σ dW.

    Parameters
    ----------
    start : array_like, shape (…, H, d, d)
        The matrices at time 0.
    noise_variance : float
        σ² ≥ 0.
    mean : array_like, shape (d, d), optional
        The matrix M, by default the identity.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or the variance is negative.

    Notes
    -----
    W = (B + Bᵀ)/2 is symmetric. The exact transition over dt is
    :math:`D' = M + e^{-dt}(D - M) + \sigma\sqrt{(1-e^{-2dt})/2}\,(Z + Z^\top)/2`, the
    Euler–Maruyama step :math:`D' = D + (M-D)\,dt + \sigma\sqrt{dt}\,(Z + Z^\top)/2`.

    References
    ----------
    A. Massucco et al., arXiv:2605.18870; G. E. Uhlenbeck, L. S. Ornstein, Physical Review 36
    (1930) 823–841.
    """

    def __init__(self, start, noise_variance=2.0, mean=None):
        self.start = check_heads(start, "start")
        self.noise_variance = validation.number(noise_variance, "noise_variance", minimum=0)
        self.mean = _mean(mean, self.start.shape[-1])

    def drift(self, heads, time):
        """Return M − D, shape (…, H, d, d)."""
        return self.mean - heads

    def step(self, heads, time, dt, normals, exact=True):
        """Return the matrices after dt, and the random part of the step.

        `normals` are independent standard normal numbers, shape (…, H, d, d).
        """
        share = -math.expm1(-2 * dt) / 2 if exact else dt
        noise = math.sqrt(self.noise_variance * share) * symmetric_part(normals)
        if exact:
            return self.mean + math.exp(-dt) * (heads - self.mean) + noise, noise
        return heads + dt * (self.mean - heads) + noise, noise


def symmetric_part(matrices):
    """Return (Z + Zᵀ)/2.

    Parameters
    ----------
    matrices : array_like, shape (…, d, d)
        Square matrices.

    Returns
    -------
    numpy.ndarray, shape (…, d, d)
        Their symmetric parts.

    Raises
    ------
    ValueError
        If they are not square or an entry is not finite.
    """
    matrices = check_heads(matrices, "matrices", shape=(..., "d", "d"))
    return (matrices + matrices.swapaxes(-1, -2)) / 2


def check_heads(heads, name="heads", shape=(..., "H", "d", "d")):
    """Check the matrices of heads, shape (…, H ≥ 1, d, d), and return them as an array."""
    heads = validation.array(heads, name, shape=shape)
    if heads.shape[-1] != heads.shape[-2]:
        validation.fail(name, "square matrices", f"shape {heads.shape}")
    return heads


def _series(cos, sin):
    """F from the cosines and sines of kτ, k = 0, 1, 2 along the last axis: linear in them."""
    target = np.empty((*cos.shape[:-1], 3, 3))
    target[..., 0, 0] = 2 * cos[..., 0] + 1.5 * cos[..., 1]
    target[..., 1, 1] = 2 * cos[..., 0] + 1.5 * sin[..., 1]
    target[..., 2, 2] = 2 * cos[..., 0] + 1.5 * (cos[..., 1] - sin[..., 1]) / math.sqrt(2)
    target[..., 0, 1] = target[..., 1, 0] = sin[..., 2]
    target[..., 0, 2] = target[..., 2, 0] = sin[..., 1]
    target[..., 1, 2] = target[..., 2, 1] = cos[..., 2]
    return target


def _normals(rng, leading, dim):
    validation.generator(rng)
    names = ("n_heads",) if len(leading) == 1 else ("paths", "n_heads")
    sizes = [validation.integer(s, n, minimum=1) for s, n in zip(leading, names, strict=True)]
    dim = validation.integer(dim, "dim", minimum=1)
    return rng.standard_normal((*sizes, dim, dim))


def _mean(matrix, dim, shape=None):
    if matrix is None:
        return np.eye(dim)
    found = validation.array(matrix, "limit" if shape else "mean", shape=(..., dim, dim))
    if found.ndim > (len(shape) if shape else 2):
        validation.fail("limit" if shape else "mean", "one matrix", f"shape {found.shape}")
    return found
