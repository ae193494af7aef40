r"""Models of a pooled sequence that lie near to one another, and the exact covariance of the first.

Which spectrum a pooled sequence has depends on details of the table and of the way in which tokens
are drawn from it: :func:`draw_pooled` has six of them. For the first, C = E ccᵀ given the table is
known exactly at every size. Arrays in, NumPy arrays out.
"""

import numpy as np

from rederive import sequences, validation
from rederive.sign_sequences import check_signs
from rederive.vocabularies import NOISES, check_vocabulary, draw_tokens, draw_vocabulary, pool

__all__ = ["VARIANTS", "conditional_covariance", "covariance_terms", "draw_pooled"]

#: Models of a pooled sequence, see :func:`draw_pooled`.
VARIANTS = ("plain", "class-centred", "flipped", "free", "fresh", "antithetic")


@validation.representable
def draw_pooled(variant, weights, signs, signal, size, rng):
    r"""Draw a table and tokens and pool them, in one of several neighbouring models.

    Parameters
    ----------
    variant : {"plain", "class-centred", "flipped", "free", "fresh", "antithetic"}
        Plain: a token of sign ξ is an item of class ξ of a table with independent noise.
        Class-centred and antithetic: the same with a table of that noise. Flipped: X = ξ s_v e_v
        with v uniform. Free: X = ξμ + z_v with v uniform, independent of ξ. Fresh: X = ξμ + z with
        new noise for each token.
    weights : array_like, shape (T,)
        Pooling weights.
    signs : array_like, shape (N, T)
        ξ, ±1.
    signal : array_like, shape (d,)
        μ.
    size : int
        V ≥ 2, even; at least 4 for class-centred noise. Not used by "fresh".
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    numpy.ndarray, shape (N, d)
        The pooled sequences. In "fresh" the noise of each is drawn at once, as N(0, ‖w‖²I).

    Raises
    ------
    ValueError
        If the variant is unknown or another argument is out of its range.

    References
    ----------
    The plain model: M. E. A. Seddik, arXiv:2605.06826; the others are ours.
    """
    variant = validation.one_of(variant, "variant", VARIANTS)
    weights = validation.array(weights, "weights", shape=("T",))
    signs = check_signs(signs, "signs", shape=("N", len(weights)))
    signal = validation.array(signal, "signal", shape=("d",))
    validation.generator(rng)
    signal_part = np.outer(signs @ weights, signal)
    if variant == "fresh":
        noise = rng.standard_normal(signal_part.shape)
        return signal_part + np.linalg.norm(weights) * noise
    noise = variant if variant in NOISES else "independent"
    table = draw_vocabulary(signal, size, rng, noise=noise)
    if variant in ("flipped", "free"):
        tokens = rng.integers(0, size, size=signs.shape)
        if variant == "free":
            return signal_part + pool(weights, tokens, table.noise)
        factors = signs * table.classes[tokens]
        return pool(weights, tokens, table.embeddings, factors=factors)
    return pool(weights, draw_tokens(signs, size, rng), table.embeddings)


@validation.representable
def conditional_covariance(weights, correlation, vocabulary, *, marginals=None):
    r"""Second moment E ccᵀ of a pooled sequence, given the table.

    Parameters
    ----------
    weights : array_like, shape (T,)
        Pooling weights.
    correlation : array_like, shape (T, T)
        R = E ξξᵀ with ones on the diagonal.
    vocabulary : Vocabulary
        The table.
    marginals : array_like, shape (T,), optional
        b_t = E ξ_t; zeros by default.

    Returns
    -------
    numpy.ndarray, shape (d, d)
        Exact at every d and V.

    Raises
    ------
    ValueError
        If the shapes do not fit, or R is no correlation matrix with these marginals.

    Notes
    -----
    See :func:`covariance_terms`; with balanced marginals it is
    :math:`C = \kappa W + \alpha\tilde\mu\tilde\mu^\top + (w^\top 1)^2 m_1m_1^\top` with the
    within-class covariance W.

    References
    ----------
    Derived in the chapter *pooling*, after M. E. A. Seddik, arXiv:2605.06826.
    """
    masses, basis, middle = covariance_terms(weights, correlation, vocabulary, marginals=marginals)
    table = vocabulary.embeddings
    return (table.T * masses) @ table + basis @ middle @ basis.T


@validation.representable
def covariance_terms(weights, correlation, vocabulary, *, marginals=None):
    r"""The parts of E ccᵀ given the table, from which products with it can be formed.

    Parameters
    ----------
    weights, correlation, vocabulary, marginals
        As in :func:`conditional_covariance`.

    Returns
    -------
    tuple of numpy.ndarray
        `masses` (V,), `basis` (d, 2) with columns μ̃ and m₁, and `middle` (2, 2), such that
        E ccᵀ = Eᵀ diag(masses) E + basis·middle·basisᵀ with E the table (V, d).

    Raises
    ------
    ValueError
        As :func:`conditional_covariance`.

    Notes
    -----
    With :math:`\beta=\sum_tw_t^2b_t` the masses are :math:`(\kappa+\beta s_v)/V` and the middle is
    diagonal, :math:`\alpha-\kappa` and :math:`(w^\top1)^2-\kappa`, but for the entry
    :math:`(w^\top b)(w^\top1)-\beta` off the diagonal.

    References
    ----------
    Derived in the chapter *pooling*, after M. E. A. Seddik, arXiv:2605.06826.
    """
    check_vocabulary(vocabulary)
    correlation = sequences.check_correlation(correlation)
    length = len(correlation)
    if np.abs(np.diag(correlation) - 1).max() > validation.slack(correlation):
        got = f"a diagonal entry off by {np.abs(np.diag(correlation) - 1).max():.3g}"
        validation.fail("correlation", "ones on the diagonal, since ξ² = 1", got)
    weights = validation.array(weights, "weights", shape=(length,))
    if marginals is None:
        marginals = np.zeros(length)
    marginals = validation.array(marginals, "marginals", shape=(length,))
    lowest = np.linalg.eigvalsh(correlation - np.outer(marginals, marginals))[0]
    if lowest < -validation.slack(correlation):
        validation.fail("marginals", "R − bbᵀ positive semi-definite", f"eigenvalue {lowest:.3g}")
    kappa, total = weights @ weights, weights.sum()
    lean = weights**2 @ marginals
    masses = (kappa + lean * vocabulary.classes) / len(vocabulary.embeddings)
    cross = (weights @ marginals) * total - lean
    middle = np.array([[weights @ correlation @ weights - kappa, cross], [cross, total**2 - kappa]])
    return masses, np.column_stack([vocabulary.direction, vocabulary.mean]), middle
