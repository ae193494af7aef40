"""More closed forms for the noise covariance of two heads with Gaussian keys.

Bounds by the diversity index alone, bounds at one query that hold for every number of keys, and the
covariance of heads whose weights are Gaussian kernels. All are in units of σ²/n, where σ² is the
variance of the noise and n the number of keys. Arrays in, NumPy arrays or floats out.
"""

import numpy as np
import scipy.stats

from rederive import validation
from rederive.diversity import check_cosines, head_covariance


@validation.representable
def kernel_head_covariance(cosines, bandwidth):
    r"""Noise covariance of two Gaussian-kernel heads to leading order.

    Parameters
    ----------
    cosines : array_like, shape (…, k)
        Cosines of the principal angles.
    bandwidth : float
        h > 0 in w_i ∝ exp(−|Uᵀ(x − x_i)|²/2h²).

    Returns
    -------
    float or numpy.ndarray, shape (…)
        Leading n·C/σ² for keys and queries N(0, I), at least 1 and always finite.

    Raises
    ------
    ValueError
        If a cosine lies outside [0, 1] or the bandwidth is not positive.

    Notes
    -----
    With :math:`\eta = 1/(1+h^2)`,

    .. math:: \frac{nC}{\sigma^2} \to \prod_j
        \bigl[(1 - \eta^2 c_j^2)^2 - \eta^2 (1-\eta)^2 c_j^2\bigr]^{-1/2}.

    References
    ----------
    Derived in the chapter *regression*, after E. Fokoué, arXiv:2605.20271.
    """
    cosines = check_cosines(cosines)
    square = validation.positive(bandwidth, "bandwidth") ** 2
    eta, rest = 1 / (1 + square), square / (1 + square)
    # 1 − η²c² ∓ η(1−η)c without cancellation at c = 1, where they are 1−η and (1−η)(1+2η)
    minus = rest + eta * (1 - cosines) * (1 + eta * cosines)
    plus = (rest + eta * (1 - cosines)) * (1 + eta * cosines) + eta * rest * cosines
    return np.exp(-0.5 * (np.log(minus) + np.log(plus)).sum(axis=-1))[()]


@validation.representable
def covariance_envelope(diversity, head_dim, inverse_temperature, *, average=False):
    r"""Bounds on the leading head covariance by the diversity index alone.

    Parameters
    ----------
    diversity : float
        Head diversity index, in [0, 1].
    head_dim : int
        k ≥ 1.
    inverse_temperature : float
        β ≥ 0 with 2β² < 1.
    average : bool, optional
        Bounds for the mean over the pairs of an ensemble instead of one pair.

    Returns
    -------
    lower, upper : float
        For a pair φ(1−HDI)^k and V^(1−HDI); on average φ(1−HDI)^k and 1 + (V−1)(1−HDI). Here
        φ(c²) is the factor of one angle and V the variance of one head, in units of σ²/n.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    Derived in the chapter *regression*, after E. Fokoué, arXiv:2605.20271.
    """
    overlap = 1 - validation.number(diversity, "diversity", minimum=0, maximum=1)
    head_dim = validation.integer(head_dim, "head_dim", minimum=1)
    lower = head_covariance(np.full(head_dim, np.sqrt(overlap)), inverse_temperature)
    variance = head_covariance(np.ones(head_dim), inverse_temperature)
    if not np.isfinite(variance):
        validation.fail("inverse_temperature", "2β² < 1", inverse_temperature)
    upper = 1 + (variance - 1) * overlap if average else variance**overlap
    return float(lower), float(upper)


@validation.representable
def fixed_query_bounds(u, v, n_keys):
    r"""Proved bounds on n·E(w·w') at one query, for every number of Gaussian keys.

    Parameters
    ----------
    u, v : array_like, shape (p,)
        The heads' tilts: w_i ∝ exp(u·x_i) and w'_i ∝ exp(v·x_i), x_i ~ N(0, I).
    n_keys : int
        n ≥ 2.

    Returns
    -------
    lower, upper : float
        They close in on exp(u·v) like 1/n; the upper one is inf where a term of it overflows.

    Raises
    ------
    ValueError
        If shapes differ, an entry is not finite, or n < 2.

    Notes
    -----
    With :math:`r = e^{u\cdot v}`, :math:`s = e^{|u|^2}`, :math:`t = e^{|v|^2}`: the lower bound is
    Jensen's inequality for the convex function 1/(xy), the upper one the lower tail of sums of
    positive variables, both after tilting the law of one key.

    .. math:: \frac{r}{(1+\frac{sr-1}{n})(1+\frac{tr-1}{n})} \le n\,\mathrm E\,w\cdot w' \le
        \frac{rn^2}{(n-1)^2}\Bigl[1+\frac{4(s+t-2)}{n-1}\Bigr]
        + n^2\bigl[e^{-(n-1)/8s}+e^{-(n-1)/8t}\bigr].

    References
    ----------
    Derived in the chapter *regression*, after E. Fokoué, arXiv:2605.20271.
    """
    u = validation.array(u, "u", shape=("p",))
    v = validation.array(v, "v", shape=u.shape)
    n = validation.integer(n_keys, "n_keys", minimum=2)
    log_r, log_s, log_t = u @ v, u @ u, v @ v
    # In logarithms: long tilts would make ∞/∞ of the lower bound.
    rest = np.log1p(-1 / n)
    lower = np.exp(
        log_r
        - np.logaddexp(rest, log_s + log_r - np.log(n))
        - np.logaddexp(rest, log_t + log_r - np.log(n))
    )
    with np.errstate(over="ignore"):
        r, s, t = np.exp([log_r, log_s, log_t])
    tails = n**2 * (np.exp(-(n - 1) / (8 * s)) + np.exp(-(n - 1) / (8 * t)))
    spread = 1 + 4 * (s + t - 2) / (n - 1)
    upper = r * (n / (n - 1)) ** 2 * spread + tails if np.isfinite(spread) else np.inf
    return float(lower), float(upper)


@validation.representable
def query_averaged_bounds(cosines, inverse_temperature, n_keys):
    r"""Proved bounds on n·C/σ² of two tied heads, Gaussian queries and n Gaussian keys.

    Parameters
    ----------
    cosines : array_like, shape (k,)
        Cosines of the principal angles.
    inverse_temperature : float
        β ≥ 0.
    n_keys : int
        n ≥ 2.

    Returns
    -------
    lower, upper : float
        :func:`fixed_query_bounds` averaged over x ~ N(0, I), with 1 − x − y in the place of
        1/((1 + x)(1 + y)). The lower one is 0 if 6β² ≥ 1 or if the formula is
        negative, the upper one inf if 4β² ≥ 1.

    Raises
    ------
    ValueError
        If a cosine lies outside [0, 1], β is negative or not finite, or n < 2.

    Notes
    -----
    The mean of :math:`e^{\beta^2x^\top(aS+bP)x}` with :math:`S = (PP'+P'P)/2` is

    .. math:: \prod_j \bigl[1 - 2\beta^2(ac_j^2+b) - \beta^4a^2c_j^2(1-c_j^2)\bigr]^{-1/2}.

    The mean of the tail terms is bounded by a sum over cells of the law of |Uᵀx|², chi-square with
    k degrees of freedom, each with its largest value in the cell.

    References
    ----------
    Derived in the chapter *regression*, after E. Fokoué, arXiv:2605.20271.
    """
    cosines = check_cosines(cosines)
    if cosines.ndim != 1:
        validation.fail("cosines", "shape (k,)", f"shape {cosines.shape}")
    beta = validation.number(inverse_temperature, "inverse_temperature", minimum=0)
    n = validation.integer(n_keys, "n_keys", minimum=2)

    def mean(a, b):
        factors = 1 - 2 * beta**2 * (a * cosines**2 + b)
        factors -= beta**4 * a**2 * cosines**2 * (1 - cosines**2)
        return float(np.prod(factors) ** -0.5)

    lower, upper = 0.0, np.inf
    if 6 * beta**2 < 1:
        lower = max(0.0, mean(1, 0) - 2 * (mean(2, 1) - mean(1, 0)) / n)
    if 4 * beta**2 < 1:
        edges = np.append(np.linspace(0, 40 * len(cosines), 4001), np.inf)
        chance = -np.diff(scipy.stats.chi2.sf(edges, len(cosines)))
        tails = np.exp(-(n - 1) / 8 * np.exp(-(beta**2) * edges[1:-1]))
        spread = 8 * (mean(1, 1) - mean(1, 0)) / (n - 1)
        upper = (n / (n - 1)) ** 2 * (mean(1, 0) + spread) + 2 * n**2 * float(
            chance @ np.append(tails, 1)
        )
    return lower, upper
