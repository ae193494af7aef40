"""How different heads are, and what that does to the covariance of their noise.

A head looks at the data through the range of its projection W, a subspace of R^p. Two subspaces of
dimension k are compared by their k principal angles; `cosines` always means their cosines c_j, in
[0, 1]. A *tied* head has one orthonormal frame U for keys and queries and the weights
w_i ∝ exp(β ⟨Uᵀx, Uᵀx_i⟩); frames with WᵀW = κI are the same with βκ in the place of β.
Arrays in, NumPy arrays or floats out.
"""

from fractions import Fraction

import numpy as np

from rederive import validation


def principal_cosines(a, b):
    r"""Cosines of the principal angles between the ranges of two matrices.

    Parameters
    ----------
    a, b : array_like, shape (p, k)
        Frames of full column rank; they need not be orthonormal.

    Returns
    -------
    numpy.ndarray, shape (k,)
        The cosines, descending, clipped to [0, 1].

    Raises
    ------
    ValueError
        If the shapes differ, an entry is not finite, or a matrix has dependent columns.

    Notes
    -----
    With orthonormal bases :math:`Q_a, Q_b` of the two ranges the cosines are the singular values of
    :math:`Q_a^\top Q_b`. They are right to a few roundings times the larger condition number of the
    frames. An *angle* below about 1e-8 is therefore seen as 0, because its cosine rounds to 1.

    References
    ----------
    Å. Björck, G. H. Golub, Mathematics of Computation 27 (1973), 579–594.
    """
    a = validation.array(a, "a", shape=("p", "k"))
    b = validation.array(b, "b", shape=a.shape)
    first, second = _orthonormal(a, "a"), _orthonormal(b, "b")
    return np.clip(np.linalg.svd(first.T @ second, compute_uv=False), 0, 1)


def orthonormal_frames(projections):
    """Orthonormal frames of the ranges of matrices.

    Parameters
    ----------
    projections : array_like, shape (…, p, k)
        Matrices of full column rank.

    Returns
    -------
    numpy.ndarray, shape (…, p, k)
        Orthonormal columns that span the same subspaces.

    Raises
    ------
    ValueError
        If an entry is not finite or a matrix has dependent columns.
    """
    projections = validation.array(projections, "projections", shape=(..., "p", "k"))
    return _orthonormal(projections, "projections")


def head_diversity_index(projections):
    r"""Head diversity index, normalised: one minus the mean squared cosine.

    Parameters
    ----------
    projections : array_like, shape (H, p, k)
        Key projections of H ≥ 2 heads, any frames of full column rank.

    Returns
    -------
    float
        0 iff all ranges coincide, 1 iff they are orthogonal in pairs.

    Raises
    ------
    ValueError
        If H < 2, an entry is not finite, or a projection has dependent columns.

    Notes
    -----
    .. math:: \mathrm{HDI} = 1 - \frac{2}{H(H-1)} \sum_{h<h'} \frac1k \sum_j c_j(h, h')^2.

    References
    ----------
    E. Fokoué, arXiv:2605.20271, with orthonormal frames in the place of the projections.
    """
    frames = orthonormal_frames(_heads(projections))
    return float(np.clip(1 - _mean_overlap(frames) / frames.shape[2], 0, 1))


@validation.representable
def head_diversity_index_as_stated(projections):
    r"""Head diversity index by the formula of the source, without orthonormalisation.

    Parameters
    ----------
    projections : array_like, shape (H, p, k)
        Key projections of H ≥ 2 heads.

    Returns
    -------
    float
        1 for orthogonal ranges; for H copies of a matrix with WᵀW = κI it is 1 − κ²/k.

    Raises
    ------
    ValueError
        If H < 2 or an entry is not finite.

    Notes
    -----
    .. math:: 1 - \frac{2}{H(H-1)} \sum_{h<h'} \bigl\| W_h^\top W_{h'} / k \bigr\|_F^2,

    the normalised index iff all :math:`W_h^\top W_h = \sqrt k\, I` (or the overlaps vanish).

    References
    ----------
    E. Fokoué, arXiv:2605.20271.
    """
    projections = _heads(projections)
    return float(1 - _mean_overlap(projections) / projections.shape[2] ** 2)


def head_covariance(cosines, inverse_temperature):
    r"""Noise covariance of two tied heads to leading order, for Gaussian keys and queries.

    Parameters
    ----------
    cosines : array_like, shape (…, k)
        Cosines of the principal angles; all ones for the variance of one head.
    inverse_temperature : float
        β ≥ 0, as a rule 1/√k.

    Returns
    -------
    float or numpy.ndarray, shape (…)
        Leading n·C/σ², at least 1; inf where the integral over the queries diverges, that is unless
        β² c (1 + c) < 1 for the largest cosine. The edge is decided in exact arithmetic.

    Raises
    ------
    ValueError
        If a cosine lies outside [0, 1] or β is negative or not finite.

    Notes
    -----
    For n keys and the query independent and N(0, I),

    .. math:: \frac{nC}{\sigma^2} \to
        \prod_j \bigl[(1 - \beta^2 c_j^2)^2 - \beta^4 c_j^2\bigr]^{-1/2}
        = \prod_j \bigl[(1 - \beta^2 c_j(1 + c_j))(1 + \beta^2 c_j(1 - c_j))\bigr]^{-1/2}.

    References
    ----------
    Derived in the chapter *regression*, after E. Fokoué, arXiv:2605.20271.
    """
    cosines = check_cosines(cosines)
    beta = validation.number(inverse_temperature, "inverse_temperature", minimum=0)
    gaps = _gaps(cosines, beta)
    inside = (gaps > 0).all(axis=-1)
    logs = np.log(np.where(gaps > 0, gaps, 1))
    with np.errstate(over="ignore"):
        logs += np.log1p((beta * cosines) * (beta * (1 - cosines)))
        return np.where(inside, np.exp(-0.5 * logs.sum(axis=-1)), np.inf)[()]


def welch_diversity(n_heads, head_dim, target_rank):
    r"""Largest head diversity index that heads inside an r-dimensional space could have.

    Parameters
    ----------
    n_heads : int
        H ≥ 2.
    head_dim : int
        k ≥ 1.
    target_rank : int
        r ≥ k, the dimension of the space.

    Returns
    -------
    float
        1 − (Hk/r − 1)/(H − 1), and 1 for r ≥ Hk. Heads have it iff the mean of their projectors is
        (k/r) times the identity of the space (a tight fusion frame) or, for r ≥ Hk, iff they are
        orthogonal; the former do not exist for all H, k, r.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    Derived in the chapter *regression*, after E. Fokoué, arXiv:2605.20271.
    """
    heads = validation.integer(n_heads, "n_heads", minimum=2)
    head_dim = validation.integer(head_dim, "head_dim", minimum=1)
    rank = validation.integer(target_rank, "target_rank")
    if rank < head_dim:
        validation.fail("target_rank", f"at least head_dim = {head_dim}", rank)
    return 1.0 if rank >= heads * head_dim else 1 - (heads * head_dim / rank - 1) / (heads - 1)


def check_cosines(cosines):
    """Check cosines of principal angles, shape (…, k), and return them as an array."""
    cosines = validation.array(cosines, "cosines", shape=(..., "k"))
    if cosines.min() < 0 or cosines.max() > 1:
        outside = cosines[(cosines < 0) | (cosines > 1)].flat[0]
        validation.fail("cosines", "numbers in [0, 1]", float(outside))
    return cosines


def _orthonormal(frames, name):
    # columns of equal size first, so that units do not count as bad conditioning
    largest = np.abs(frames).max(axis=-2, keepdims=True)
    scaled = frames / np.where(largest > 0, largest, 1)
    return np.linalg.qr(validation.full_column_rank(scaled, name))[0]


def _heads(projections):
    projections = validation.array(projections, "projections", shape=("H", "p", "k"))
    if len(projections) < 2:
        validation.fail("projections", "at least two heads", f"shape {projections.shape}")
    return projections


def _mean_overlap(frames):
    """Mean over pairs of ‖AᵀB‖_F²."""
    grams = np.einsum("gpi,hpj->ghij", frames, frames, optimize=True)
    first, second = np.triu_indices(len(frames), 1)
    return (grams[first, second] ** 2).sum(axis=(1, 2)).mean()


def _gaps(cosines, beta):
    """Return 1 − β²c(1 + c); near 0 it is computed exactly and then rounded."""
    with np.errstate(over="ignore"):
        gaps = 1 - (beta * cosines) * (beta * (1 + cosines))
    for index in np.argwhere(np.abs(gaps) < 1e-4):
        cosine = Fraction(float(cosines[tuple(index)]))
        gaps[tuple(index)] = float(1 - Fraction(beta) ** 2 * cosine * (1 + cosine))
    return gaps
