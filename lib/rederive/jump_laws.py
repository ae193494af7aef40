"""Laws around MP_δ ⊠ MP_γ: the Marchenko–Pastur law itself, and the law of sequences of one token.

A pooled spectrum is a free compound Poisson law: its transform G solves z = 1/G + E[b/(1 − δbG)],
where b is a random jump. With long sequences b follows a Marchenko–Pastur law; with sequences of
one token it is the number of visits to an item, a classical Poisson variable.
"""

import math

import numpy as np
from scipy import stats

from rederive import validation

__all__ = ["marchenko_pastur_cdf", "marchenko_pastur_pdf", "single_token_stieltjes"]

# Items are visited δ/γ times in the mean; the law of the visits is kept as an array.
_MOST_VISITS = 1e4


@validation.representable
def marchenko_pastur_pdf(x, ratio):
    r"""Density of the Marchenko–Pastur law with mean 1.

    Parameters
    ----------
    x : array_like
        Any shape; infinities are allowed.
    ratio : float
        c > 0; for c > 1 the density has the mass 1/c and an atom at 0 has the rest.

    Returns
    -------
    float or numpy.ndarray
        :math:`\sqrt{(x-a)(b-x)}/(2\pi cx)` between the edges :math:`(1\mp\sqrt c)^2`, 0 outside,
        inf at the hard edge x = 0 of c = 1.

    Raises
    ------
    ValueError
        If an entry is NaN or the ratio is not a positive finite number.

    References
    ----------
    V. A. Marchenko, L. A. Pastur, Mathematics of the USSR – Sbornik 1 (1967), 457–483.
    """
    x = validation.array(x, "x", finite=False, empty=True)
    ratio = validation.positive(ratio, "ratio")
    lower, upper = (1 - math.sqrt(ratio)) ** 2, (1 + math.sqrt(ratio)) ** 2
    inside = (x > lower) & (x < upper)
    found, at = np.zeros(x.shape), x[inside]
    found[inside] = np.sqrt((at - lower) * (upper - at)) / (2 * math.pi * ratio * at)
    if lower == 0:
        found[x == 0] = np.inf
    return found[()]


@validation.representable
def marchenko_pastur_cdf(x, ratio):
    r"""Distribution function of the Marchenko–Pastur law with mean 1, the atom included.

    Parameters
    ----------
    x : array_like
        Any shape; infinities are allowed.
    ratio : float
        c > 0.

    Returns
    -------
    float or numpy.ndarray
        Values in [0, 1].

    Raises
    ------
    ValueError
        If an entry is NaN or the ratio is not a positive finite number.

    Notes
    -----
    In closed form: for :math:`c\le1` it is :math:`1-\frac1\pi\mathrm{Im}\bigl[\log(y+c)+\frac1y
    -\frac1c\log(1+\frac cy)\bigr]` with the root y of :math:`(1+y)(1+c/y)=x` in the upper
    half-plane.
    """
    x = validation.array(x, "x", finite=False, empty=True)
    ratio = validation.positive(ratio, "ratio")
    stretch = max(1.0, ratio)
    c = ratio / stretch**2  # MP_c for c > 1 is MP_{1/c} stretched by c, and an atom
    root = math.sqrt(c)
    scaled, atom = x / stretch, 1 - 1 / stretch
    found = np.where(scaled >= (1 + root) ** 2, 1.0, np.where(x >= 0, atom, 0.0))
    if ratio == 1:
        found[x == 0] = 0.0
    inside = (scaled > (1 - root) ** 2) & (scaled < (1 + root) ** 2)
    real = (scaled[inside] - 1 - c) / 2
    y = real + 1j * np.sqrt(np.maximum(c - real * real, 0))
    angle = np.angle(y + c) + (1 / y).imag - np.angle(1 + c / y) / c
    found[inside] = atom + np.clip(1 - angle / math.pi, 0, 1) / stretch
    return found[()]


@validation.representable
def single_token_stieltjes(z, delta, gamma):
    r"""Stieltjes transform of the limit law of sequences of one token.

    Parameters
    ----------
    z : array_like
        Complex numbers with positive imaginary part.
    delta, gamma : float
        δ = d/V and γ = d/N, positive, δ/γ at most 10⁴.

    Returns
    -------
    complex or numpy.ndarray
        :math:`G(z)=\int\mu(dt)/(z-t)`, to about 1e-12 unless z is nearly real.

    Raises
    ------
    ValueError
        If a point does not lie in the upper half-plane or a ratio is not positive.

    Notes
    -----
    The solution with :math:`\mathrm{Im}\,G<0` of

    .. math:: z = \frac1G + \mathbb E\frac{b}{1-\delta bG}, \qquad
        b=\tfrac\gamma\delta\,\mathrm{Poisson}(\delta/\gamma).

    The iteration of :math:`G\mapsto 1/(z-\mathbb E[\dots])`, a map of the lower half-plane into
    itself, far from the axis; then Newton steps while z comes down.

    References
    ----------
    Derived in the chapter *pooling*.
    """
    z = validation.array(z, "z", dtype=complex, empty=True)
    delta, gamma = validation.positive(delta, "delta"), validation.positive(gamma, "gamma")
    if (z.imag <= 0).any():
        validation.fail("z", "points of the upper half-plane", str(z[z.imag <= 0].flat[0]))
    rate = delta / gamma
    if rate > _MOST_VISITS:
        validation.fail("delta", f"delta / gamma of at most {_MOST_VISITS:.0e}", rate)
    visits = np.arange(int(rate + 12 * math.sqrt(rate) + 40))
    chance, jump = stats.poisson.pmf(visits, rate), visits / rate
    flat = z.ravel()
    height = np.maximum(flat.imag, 4.0 * (1 + delta) * (1 + gamma))
    g = 1 / (flat.real + 1j * height)
    while True:
        at = flat.real + 1j * height
        for _ in range(60):
            quotient = jump / (1 - delta * np.outer(g, jump))
            gap = at - 1 / g - quotient @ chance
            if np.all(np.abs(gap) <= 1e-14 * (1 + np.abs(at))):
                break
            slope = -1 / g**2 + delta * (quotient**2 @ chance)
            g = g + gap / slope
            lost = g.imag >= 0
            g[lost] = 1 / (at[lost] - quotient[lost] @ chance)
        if np.all(height == flat.imag):
            return g.reshape(z.shape)[()]
        height = np.maximum(flat.imag, height * 0.8)
