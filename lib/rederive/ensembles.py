"""Ensembles of heads: bias, variance and covariance of a mixture, and how to mix.

A mixture f = Σ_h α_h f_h of heads, each a weighted mean of noisy values, has

    E (f − m)² = (Σ_h α_h E f_h − m)² + Σ_h α_h² V_h + Σ_{h≠h'} α_h α_h' C_hh',

given the keys with V_h = σ² |w^h|² and C_hh' = σ² w^h·w^h'. Arrays in, NumPy arrays or floats out.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from rederive import validation


@dataclass(frozen=True)
class Decomposition:
    """The three parts of a mean squared error.

    Attributes
    ----------
    bias2 : float
        Squared bias of the mixture.
    variance : float
        Each head's own variance, summed with the squared mixing weights.
    covariance : float
        What pairs of distinct heads add; of any sign in general, positive for positive weights.
    """

    bias2: float
    variance: float
    covariance: float

    @property
    def total(self):
        """The mean squared error, the sum of the three parts."""
        return self.bias2 + self.variance + self.covariance


@validation.representable
def mse_decomposition(weights, values, target, noise_variance, mixing):
    r"""Split the mean squared error of a mixture of heads, given the keys.

    Parameters
    ----------
    weights : array_like, shape (H, n)
        Weights of the heads on the n keys; softmax rows sum to one, but any linear smoother will
        do.
    values : array_like, shape (n,)
        Noise-free values m(x_i).
    target : float
        Noise-free target m(x).
    noise_variance : float
        Variance σ² ≥ 0 of the independent noise on each value.
    mixing : array_like, shape (H,)
        Mixing weights α_h, of any sign and sum.

    Returns
    -------
    Decomposition
        `bias2`, `variance`, `covariance` and their sum `total`, as floats.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or the noise variance is negative.

    Notes
    -----
    .. math::
        \mathrm{MSE} = \Bigl(\sum_h \alpha_h \sum_i w^h_i m_i - m\Bigr)^2
        + \sigma^2 \sum_h \alpha_h^2 |w^h|^2
        + \sigma^2 \sum_{h\ne h'} \alpha_h \alpha_{h'}\, w^h\cdot w^{h'}.

    References
    ----------
    E. Fokoué, arXiv:2605.20271, Theorem 3.1.
    """
    weights = validation.array(weights, "weights", shape=("H", "n"))
    heads, keys = weights.shape
    values = validation.array(values, "values", shape=(keys,))
    target = validation.number(target, "target")
    noise = validation.number(noise_variance, "noise_variance", minimum=0)
    mixing = validation.array(mixing, "mixing", shape=(heads,))
    bias = mixing @ (weights @ values) - target
    return _split(float(bias) ** 2, noise * (weights @ weights.T), mixing)


@validation.representable
def matrix_mse_decomposition(weights, values, output_maps, target, noise_covariance):
    r"""Split the mean squared error of heads that enter through matrices, given the keys.

    Real multi-head attention concatenates heads and multiplies by W_O, so that head h enters
    with the matrix A_h = W_V^h W_O^h instead of a number.

    Parameters
    ----------
    weights : array_like, shape (H, n)
        Weights of the heads on the n keys.
    values : array_like, shape (n, v)
        Noise-free value vectors μ_i, before W_V.
    output_maps : array_like, shape (H, v, o)
        The matrices A_h.
    target : array_like, shape (o,)
        Noise-free target.
    noise_covariance : array_like, shape (v, v)
        Covariance Σ_ε of the noise on each value vector, independent over keys; symmetric and
        positive semi-definite.

    Returns
    -------
    Decomposition
        `bias2` (squared norm of the bias), `variance`, `covariance` and their sum `total`, the
        expected squared distance from the target. Here the covariance may have either sign.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or the noise covariance is not one.

    Notes
    -----
    .. math::
        \mathrm{MSE} = \Bigl|\sum_h A_h^\top \sum_i w^h_i \mu_i - m\Bigr|^2
        + \sum_{h,h'} (w^h\cdot w^{h'})\, \mathrm{tr}(A_h^\top \Sigma_\varepsilon A_{h'}),

    an entrywise product of two Gram matrices; the terms h = h' are the variance.

    References
    ----------
    E. Fokoué, arXiv:2605.20271, Theorem 3.1, which has the scalar case A_h = α_h I.
    """
    weights = validation.array(weights, "weights", shape=("H", "n"))
    heads, keys = weights.shape
    values = validation.array(values, "values", shape=(keys, "v"))
    width = values.shape[1]
    maps = validation.array(output_maps, "output_maps", shape=(heads, width, "o"))
    target = validation.array(target, "target", shape=(maps.shape[2],))
    noise = validation.array(noise_covariance, "noise_covariance", shape=(width, width))
    validation.symmetric(noise, "noise_covariance")
    spectrum = scipy.linalg.eigvalsh(noise)
    if spectrum[0] < -validation.slack(noise) * abs(spectrum[-1]):
        validation.fail(
            "noise_covariance", "no negative eigenvalue", f"an eigenvalue {spectrum[0]:.3g}"
        )
    bias = np.einsum("hv,hvo->o", weights @ values, maps) - target
    traces = np.einsum("hvo,vu,guo->hg", maps, noise, maps, optimize=True)
    return _split(float(bias @ bias), (weights @ weights.T) * traces, np.ones(heads))


@validation.representable
def mixing_risk(mixing, mse_matrix):
    r"""Return the mean squared error αᵀMα of a mixture.

    Parameters
    ----------
    mixing : array_like, shape (H,)
        Mixing weights α.
    mse_matrix : array_like, shape (H, H)
        M = bbᵀ + C: second moments of the heads' errors, symmetric.

    Returns
    -------
    float
        :math:`\alpha^\top M \alpha`.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or M is not symmetric.

    References
    ----------
    E. Fokoué, arXiv:2605.20271, Theorem 7.1.
    """
    matrix = validation.array(mse_matrix, "mse_matrix", shape=("H", "H"))
    validation.symmetric(matrix, "mse_matrix")
    mixing = validation.array(mixing, "mixing", shape=(len(matrix),))
    return float(mixing @ matrix @ mixing)


@validation.representable
def optimal_mixing(mse_matrix):
    r"""Return the mixing weights of sum one with the least mean squared error.

    Parameters
    ----------
    mse_matrix : array_like, shape (H, H)
        M = bbᵀ + C: second moments of the heads' errors, symmetric and positive definite.

    Returns
    -------
    numpy.ndarray, shape (H,)
        α = M⁻¹1 / 1ᵀM⁻¹1; entries may be negative.

    Raises
    ------
    ValueError
        If M is not a symmetric positive definite matrix of finite entries, or is so close to a
        singular one that its inverse would be rounding error.

    Notes
    -----
    The stationary point of :math:`\alpha^\top M\alpha - 2\lambda(1^\top\alpha - 1)` is
    :math:`M\alpha = \lambda 1`; the least value is :math:`1/(1^\top M^{-1}1)`. The matrix is scaled
    to unit diagonal first, so that heads of very different quality do no harm; singular means that
    the scaled matrix has an eigenvalue below H eps times its largest.

    References
    ----------
    E. Fokoué, arXiv:2605.20271, Theorem 7.1.
    """
    matrix = validation.array(mse_matrix, "mse_matrix", shape=("H", "H"))
    validation.symmetric(matrix, "mse_matrix")
    diagonal = np.diag(matrix)
    if diagonal.min() <= 0:
        validation.fail(
            "mse_matrix", "a positive definite matrix", f"diagonal {diagonal.min():.3g}"
        )
    scale = 1 / np.sqrt(diagonal)
    scaled = (matrix + matrix.T) / 2 * np.outer(scale, scale)
    spectrum = scipy.linalg.eigvalsh(scaled)
    floor = len(matrix) * np.finfo(float).eps * spectrum[-1]
    if spectrum[0] <= floor:
        kind = "an indefinite" if spectrum[0] < -floor else "a singular"
        condition = spectrum[-1] / max(abs(spectrum[0]), np.finfo(float).tiny)
        validation.fail(
            "mse_matrix",
            "a positive definite matrix",
            f"{kind} one: smallest eigenvalue {spectrum[0]:.3g} after scaling to unit diagonal, "
            f"condition number {condition:.3g}",
        )
    solved = scale * scipy.linalg.cho_solve(scipy.linalg.cho_factor(scaled), scale)
    return solved / solved.sum()


def uniform_weights(count):
    """Return equal weights 1/H.

    Parameters
    ----------
    count : int
        Number H ≥ 1 of heads.

    Returns
    -------
    numpy.ndarray, shape (H,)
        The weights.

    Raises
    ------
    ValueError
        If the count is not a positive integer.
    """
    count = validation.integer(count, "count", minimum=1)
    return np.full(count, 1 / count)


@validation.representable
def geometric_weights(count, ratio):
    """Return weights proportional to the powers 1, q, q² of a ratio.

    Parameters
    ----------
    count : int
        Number H ≥ 1 of heads.
    ratio : float
        The ratio q > 0; below 1 the first head weighs most.

    Returns
    -------
    numpy.ndarray, shape (H,)
        Weights of sum one.

    Raises
    ------
    ValueError
        If the count is not a positive integer or the ratio not a positive number.

    References
    ----------
    E. Fokoué, arXiv:2605.20271, Theorem 7.1.
    """
    count = validation.integer(count, "count", minimum=1)
    ratio = validation.positive(ratio, "ratio")
    powers = np.arange(count) - (count - 1 if ratio > 1 else 0)
    weights = ratio ** powers.astype(float)
    return weights / weights.sum()


def fibonacci_weights(count):
    """Return weights proportional to Fibonacci numbers, the largest first.

    Parameters
    ----------
    count : int
        Number H ≥ 1 of heads.

    Returns
    -------
    numpy.ndarray, shape (H,)
        F_H, …, F_2, F_1 over their sum F_{H+2} − 1, with F_1 = F_2 = 1; neighbours have ratios
        near 1/φ, which is about 0.618.

    Raises
    ------
    ValueError
        If the count is not a positive integer.

    References
    ----------
    E. Fokoué, arXiv:2605.20271, Theorem 7.1.
    """
    count = validation.integer(count, "count", minimum=1)
    numbers = [1, 1]
    while len(numbers) < count:
        numbers.append(numbers[-1] + numbers[-2])
    numbers = numbers[:count][::-1]
    total = sum(numbers)
    return np.array([number / total for number in numbers])


def _split(bias2, gram, mixing):
    """Split αᵀGα into its diagonal and the rest, each summed by itself."""
    own = np.diag(gram)
    pairs = gram - np.diag(own)
    return Decomposition(bias2, float(mixing**2 @ own), float(mixing @ pairs @ mixing))
