r"""Linear response of a settled cloud of tokens to the fluctuations of its heads.

Let the tokens have come to rest under the mean field of the heads. What the heads do about their
mean is a small forcing ξ(t), and the tokens answer: their velocity is −w with w = ξ + Ju, where u
is their displacement, u' = −w, and J the derivative of the mean field. A forcing of frequency ω
leaves

    w = iω (iω + J)⁻¹ ξ,

less than the forcing, the more so the slower it is. From this come the mean of 𝒢² = ∫b̂|w|²dμ under
Ornstein–Uhlenbeck heads, and under periodic ones. Arrays in, arrays or floats out.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from rederive import validation


class HeadCountLaw(NamedTuple):
    """Result of :func:`head_count_law`.

    Attributes
    ----------
    constant, upper : float
        Bounds on c = lim H⟨𝒢²⟩: the series up to its truncation, and with all that was left out.
    without_response : float
        What c would be if the tokens did not answer.
    mobility : float
        Effective mobility of the uniform measure.
    rates : numpy.ndarray, shape (max_degree + 1,)
        Rates λ_ℓ at which perturbations of degree ℓ decay.
    by_degree : numpy.ndarray, shape (max_degree + 1,)
        The share of each degree in `constant`.
    """

    constant: float
    upper: float
    without_response: float
    mobility: float
    rates: np.ndarray
    by_degree: np.ndarray


@validation.representable
def head_count_law(noise_variance, *, step=0.0, max_order=10, max_degree=6, nodes=40):
    r"""Constant of the law ⟨𝒢²⟩ ≈ c/H for stationary Ornstein–Uhlenbeck heads on S².

    Parameters
    ----------
    noise_variance : float
        σ² > 0 of :class:`rederive.head_weights.OrnsteinUhlenbeck` with mean I.
    step : float
        0 for the flow; else c is that of Euler's scheme with this step and the exact transition
        of the heads.
    max_order, max_degree : int
        Orders k of the chaos and degrees ℓ of the harmonics that are kept.
    nodes : int
        Nodes of the Gauss rules in each of the two variables.

    Returns
    -------
    HeadCountLaw
        :math:`c = \hat b\sum_{\ell,k}\ell(\ell+1)\,a_{\ell k}\,\frac{k}{k+\lambda_\ell}`, where
        :math:`\sum_ka_{\ell k}e^{-k\tau}` is the autocovariance of the part of degree ℓ of
        :math:`\zeta_D(x) = \log(\sinh|Dx|/|Dx|)`.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    Every :math:`a_{\ell k}` is non-negative and every factor at most one. What is left out is thus
    at most :math:`\hat b\,\mathbb E|\nabla\zeta_D|^2`, an integral over two variables, less the
    sum of the :math:`\hat b\,\ell(\ell+1)a_{\ell k}` that are kept. For Euler's scheme
    :math:`k/(k+\lambda)` becomes :math:`2(1-q)/((1+p)(1-pq))`, :math:`p=1-\lambda\,dt`,
    :math:`q=e^{-k\,dt}`.

    References
    ----------
    Derived in the chapter *flow*, after A. Massucco et al., arXiv:2605.18870.
    """
    noise_variance = validation.positive(noise_variance, "noise_variance")
    step = validation.number(step, "step", minimum=0, maximum=1)
    max_order = validation.integer(max_order, "max_order", minimum=1, maximum=20)
    max_degree = validation.integer(max_degree, "max_degree", minimum=1, maximum=20)
    nodes = validation.integer(nodes, "nodes", minimum=max_order, maximum=80)
    spread = math.sqrt(noise_variance / 2)
    normal, normal_weights = np.polynomial.hermite_e.hermegauss(nodes)
    square, square_weights = special.roots_laguerre(nodes)
    weights = np.outer(normal_weights / normal_weights.sum(), square_weights)
    # D x = (1 + s α, s β/√2) in a frame with first axis x; the square is |β|²/2
    along, across = (1 + spread * normal)[:, None], spread**2 * square
    size = np.sqrt(along**2 + across)
    mobility = 1 / (weights * size / np.sinh(size)).sum()
    degrees = np.arange(max_degree + 1)
    rates = np.array([_rate(degree, size, along / size, weights) for degree in degrees])
    pull = (1 / np.tanh(size) - 1 / size) / size
    turned = across * ((1 + along) ** 2 + 1.5 * spread**2)
    without = mobility * (weights * pull**2 * turned).sum()
    moments = _chaos(weights * np.log(np.sinh(size) / size), normal, square, max_order)
    kept = mobility * (degrees * (degrees + 1))[:, None] * _spectra(moments, max_degree)
    orders = np.arange(1, max_order + 1)
    if step:
        decay, p = np.exp(-orders * step), 1 - step * rates[:, None]
        factors = 2 * (1 - decay) / ((1 + p) * (1 - p * decay))
    else:
        factors = orders / (orders + rates[:, None])
    shares = (factors * kept).sum(1)
    constant = float(shares.sum())
    upper = constant + max(float(without - kept.sum()), 0.0)
    return HeadCountLaw(constant, upper, float(without), float(mobility), rates, shares)


@validation.representable
def periodic_response(tokens, heads):
    r"""What each Fourier mode of a periodic head contributes to 𝒢², per unit of coherence.

    Parameters
    ----------
    tokens : array_like, shape (n, 3)
        A cloud at rest under the mean of the field over a period, norm 1.
    heads : array_like, shape (M, 3, 3)
        The head at M ≥ 2 equally spaced times of its period 2π.

    Returns
    -------
    forced, response : numpy.ndarray, shape (M // 2,)
        For mode m the mean over tokens of :math:`2\hat b|F_m|^2`, F_m the Fourier coefficient of
        the field w, and the same with :math:`im(im+J)^{-1}F_m`, the answer of the tokens included.
        Mode 0 of `response` is 0.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or a token is off the sphere.

    Notes
    -----
    With phases :math:`p_h` the mean over heads of mode m carries
    :math:`\chi_m=\frac1H\sum_he^{imp_h}`, and to leading order
    :math:`\langle\mathcal G^2\rangle=\sum_{m\ge1}|\chi_m|^2\cdot` `response`.

    References
    ----------
    Derived in the chapter *flow*, after A. Massucco et al., arXiv:2605.18870.
    """
    tokens = validation.array(tokens, "tokens", shape=("n", 3))
    validation.on_sphere(tokens, "tokens")
    heads = validation.array(heads, "heads", shape=("M", 3, 3))
    if len(heads) < 2:
        validation.fail("heads", "at least two times", f"shape {heads.shape}")
    count, n = len(heads), len(tokens)
    masses, pulls, jacobian = _linearised(tokens, heads)
    mobility = 1 / (1 / masses).mean(0)
    modes = np.fft.fft(pulls, axis=0)[: count // 2] / count
    flat = modes.reshape(len(modes), -1)
    forced = 2 * (mobility[:, None] * np.abs(modes) ** 2).sum((1, 2)) / n
    response = np.zeros(len(modes))
    for m in range(1, len(modes)):
        answer = np.linalg.solve(1j * m * np.eye(2 * n) + jacobian, 1j * m * flat[m])
        response[m] = 2 * (mobility[:, None] * np.abs(answer.reshape(n, 2)) ** 2).sum() / n
    return forced, response


def _linearised(tokens, heads):
    """φ (M, n), w in tangent frames (M, n, 2), and the derivative of its mean (2n, 2n)."""
    n = len(tokens)
    _, _, frames = np.linalg.svd(tokens[:, None, :])
    frames = frames[:, 1:]  # (n, 2, 3)
    masses, pulls, jacobian = [], [], np.zeros((n, 2, n, 2))
    for head in heads:
        kernel = np.exp(tokens @ head @ tokens.T)
        shares = kernel / kernel.sum(1, keepdims=True)
        mean = shares @ tokens
        pull = mean @ head.T
        moved = frames @ head  # rows: D applied to tangent vectors, from the left
        seen = tokens @ head @ frames.swapaxes(1, 2)  # ⟨x_i, D e_j⟩, (j, i, 2)
        centred = moved @ tokens.T - (moved * mean[:, None]).sum(-1)[..., None]  # (i, 2, j)
        weighted = centred * shares[:, None]
        jacobian += np.einsum("iaj,jib->iajb", weighted, seen)
        jacobian += np.einsum("ij,iac,jbc->iajb", shares, moved, frames)
        own = np.einsum("iaj,ibj->iab", weighted, frames @ head @ tokens.T)
        own -= (tokens * pull).sum(1)[:, None, None] * np.eye(2)
        jacobian[np.arange(n), :, np.arange(n)] += own
        masses.append(kernel.mean(1))
        pulls.append((frames @ pull[..., None])[..., 0])
    return np.array(masses), np.array(pulls), jacobian.reshape(2 * n, 2 * n) / len(heads)


def _rate(degree, size, cosine, weights):
    ratio = special.spherical_in(degree, size) / special.spherical_in(0, size)
    mean = (weights * ratio * special.eval_legendre(degree, cosine)).sum()
    return degree * (degree + 1) * mean


def _chaos(values, normal, square, max_order):
    """Coefficients of weighted values in He_p(α) L_q(|β|²/2), normalised: {order: [q → …]}."""
    hermite = [
        special.eval_hermitenorm(p, normal) / math.sqrt(math.factorial(p))
        for p in range(max_order + 1)
    ]
    laguerre = [special.eval_laguerre(q, square) for q in range(max_order // 2 + 1)]
    return {
        order: np.array(
            [hermite[order - 2 * q] @ values @ laguerre[q] for q in range(order // 2 + 1)]
        )
        for order in range(1, max_order + 1)
    }


def _spectra(moments, max_degree):
    """The a_ℓk, shape (max_degree + 1, orders).

    The covariance over one order of the chaos, for points x and y at the cosine c, is a polynomial
    in c. It follows from E e^{⟨a,g⟩−|a|²/2} e^{⟨b,g'⟩−|b|²/2} = e^{aᵀRb}, where g and g' are
    (α, β) in the frames of x and y, and R is their covariance; averages over the directions of β
    turn exponentials into the He_p L_q.
    """
    cosines, cosine_weights = np.polynomial.legendre.leggauss(max(moments) + max_degree + 1)
    sines = np.sqrt(1 - cosines**2)
    found = []
    for order, coefficients in moments.items():
        angles = 2 * math.pi * np.arange(2 * order + 1) / (2 * order + 1)
        c, s, turn = cosines[:, None], sines[:, None], np.cos(angles)
        # polynomials in w', lowest power first; axes: cosine, angle of β', power
        first = np.stack(np.broadcast_arrays(c * c, -math.sqrt(2) * c * s * turn), -1)
        plane = np.stack(np.broadcast_arrays(math.sqrt(2) * c * s, (2 * c * c - 1) * turn), -1)
        normal = np.stack(np.broadcast_arrays(0.0 * c, c * np.sin(angles)), -1)
        second = _product(plane, plane) + _product(normal, normal)
        covariance = np.zeros(len(cosines))
        for q, coefficient in enumerate(coefficients):
            p = order - 2 * q
            power = np.ones((*first.shape[:2], 1))
            for factor in [first] * p + [second] * q:
                power = _product(power, factor)
            mean = power.mean(1)[:, ::2]
            ways = math.comb(order, p) * math.comb(2 * q, q) / 4**q / math.factorial(order)
            back = _scales(order)
            covariance += ways * back[q] * coefficient * (mean @ (back * coefficients))
        found.append(covariance)
    degrees = np.arange(max_degree + 1)[:, None]
    legendre = special.eval_legendre(degrees, cosines) * cosine_weights * (degrees + 0.5)
    return legendre @ np.array(found).T


def _scales(order):
    """√p! q! (−2)^q for p + 2q = order."""
    return np.array(
        [
            math.sqrt(math.factorial(order - 2 * q)) * math.factorial(q) * (-2) ** q
            for q in range(order // 2 + 1)
        ]
    )


def _product(left, right):
    """Product of polynomials along the last axis."""
    found = np.zeros((*left.shape[:-1], left.shape[-1] + right.shape[-1] - 1))
    for power in range(right.shape[-1]):
        found[..., power : power + left.shape[-1]] += left * right[..., power : power + 1]
    return found
