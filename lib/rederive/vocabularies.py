r"""Embedding tables, tokens drawn from them, and the pooled sequences.

Item v of a vocabulary of V items has a class s_v = ±1, balanced, and the embedding
e_v = s_v μ + z_v with noise z_v ~ N(0, I_d). A token of sign ξ is an item drawn uniformly from
class ξ, and a sequence is pooled to c = Σ_t w_t X_t. Pooling is a product with a sparse matrix of
N·T entries: an array of N×T×d numbers is never made. Arrays in, NumPy arrays out.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from rederive import validation
from rederive.sign_sequences import check_signs

__all__ = [
    "NOISES",
    "Vocabulary",
    "causal_attention",
    "check_vocabulary",
    "draw_tokens",
    "draw_vocabulary",
    "pool",
    "pooling_matrix",
]

#: Kinds of noise of a table.
NOISES = ("independent", "class-centred", "antithetic")


class Vocabulary(NamedTuple):
    """A table of embeddings: the first half of the items has class +1, the second −1."""

    embeddings: np.ndarray  # (V, d), row v is e_v
    signal: np.ndarray  # (d,), μ

    @property
    def classes(self):
        """The classes s_v as floats, shape (V,)."""
        half = len(self.embeddings) // 2
        return np.concatenate([np.ones(half), -np.ones(half)])

    @property
    def noise(self):
        """The noise z_v, shape (V, d)."""
        return self.embeddings - np.outer(self.classes, self.signal)

    @property
    def mean(self):
        """The mean of the vocabulary, m₁ = Z1/V, shape (d,)."""
        return self.embeddings.mean(axis=0)

    @property
    def direction(self):
        """Half the difference of the class means, μ̃ = μ + Zs/V, shape (d,)."""
        half = len(self.embeddings) // 2
        return (self.embeddings[:half].mean(axis=0) - self.embeddings[half:].mean(axis=0)) / 2


def draw_vocabulary(signal, size, rng, *, noise="independent"):
    r"""Draw a table of embeddings.

    Parameters
    ----------
    signal : array_like, shape (d,)
        μ, the mean of class +1; class −1 has −μ.
    size : int
        V ≥ 2, even, so that the classes are balanced.
    rng : numpy.random.Generator
        Source of randomness.
    noise : {"independent", "class-centred", "antithetic"}, optional
        Independent: z_v ~ N(0, I). Class-centred: the same with the mean of each class taken away
        (V ≥ 4). Antithetic: independent in class +1, and e_{v+V/2} = −e_v.

    Returns
    -------
    Vocabulary
        `embeddings` (V, d) and `signal` (d,).

    Raises
    ------
    ValueError
        If the size is odd or below 2, or the signal is not finite.

    References
    ----------
    M. E. A. Seddik, arXiv:2605.06826; the other noises are ours.
    """
    validation.generator(rng)
    signal = validation.array(signal, "signal", shape=("d",))
    noise = validation.one_of(noise, "noise", NOISES)
    size = validation.integer(size, "size", minimum=4 if noise == "class-centred" else 2)
    if size % 2:
        validation.fail("size", "an even number of items, for balanced classes", size)
    half = size // 2
    embeddings = np.empty((size, len(signal)))
    rng.standard_normal(out=embeddings[: half if noise == "antithetic" else size])
    if noise == "antithetic":
        np.negative(embeddings[:half], out=embeddings[half:])
    for rows, sign in ((slice(0, half), 1), (slice(half, size), -1)):
        shift = sign * signal
        if noise == "class-centred":
            shift = shift - embeddings[rows].mean(axis=0)
        embeddings[rows] += shift
    return Vocabulary(embeddings, signal)


def draw_tokens(signs, size, rng):
    r"""Draw a token for every sign, uniformly from the items of its class.

    Parameters
    ----------
    signs : array_like, shape (N, T)
        ξ, ±1.
    size : int
        V ≥ 2, even.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    numpy.ndarray, shape (N, T), int
        Numbers of items: below V/2 where the sign is +1, from V/2 on where it is −1.

    Raises
    ------
    ValueError
        If there is no sequence or position, a sign is not ±1, or the size is odd or below 2.

    References
    ----------
    M. E. A. Seddik, arXiv:2605.06826.
    """
    signs = check_signs(signs, "signs", shape=("N", "T"))
    size = validation.integer(size, "size", minimum=2)
    if size % 2:
        validation.fail("size", "an even number of items, for balanced classes", size)
    validation.generator(rng)
    items = rng.integers(0, size // 2, size=signs.shape)
    return np.where(signs > 0, items, items + size // 2)


def pooling_matrix(weights, tokens, size, *, factors=None):
    r"""The sparse matrix A whose product with a table pools the sequences.

    Parameters
    ----------
    weights : array_like, shape (T,)
        Pooling weights.
    tokens : array_like, shape (N, T)
        Numbers of items, 0 ≤ v < V.
    size : int
        V ≥ 1.
    factors : array_like, shape (N, T), optional
        Further factors f_nt of the tokens.

    Returns
    -------
    scipy.sparse.csr_array, shape (N, V)
        A_nv = Σ_t w_t f_nt [v_nt = v], with N·T stored entries; an item that a sequence holds twice
        is stored twice.

    Raises
    ------
    ValueError
        If the shapes do not fit, T = 0, an item is out of range, or an entry is not finite.
    """
    weights = validation.array(weights, "weights", shape=("T",))
    size = validation.integer(size, "size", minimum=1)
    tokens = _items(tokens, ("N", len(weights)), size)
    count, length = tokens.shape
    index = np.int32 if max(count * length, size) < 2**31 else np.int64
    ends = np.arange(0, count * length + 1, length, dtype=index)
    if factors is None:
        entries = np.tile(weights, count)
    else:
        entries = (validation.array(factors, "factors", shape=tokens.shape) * weights).ravel()
    parts = (entries, tokens.ravel().astype(index), ends)
    return scipy.sparse.csr_array(parts, shape=(count, size))


@validation.representable
def pool(weights, tokens, embeddings, *, factors=None):
    r"""Pool sequences with one or several weight vectors.

    Parameters
    ----------
    weights : array_like, shape (T,) or (K, T)
        Pooling weights. Several vectors use the same tokens, for paired comparisons.
    tokens : array_like, shape (N, T)
        Numbers of items, 0 ≤ v < V.
    embeddings : array_like, shape (V, d)
        The table, or any other array with one row an item.
    factors : array_like, shape (N, T), optional
        Further factors f_nt of the tokens.

    Returns
    -------
    numpy.ndarray, shape (N, d) or (K, N, d)
        c_n = Σ_t w_t f_nt e_{v_nt}. Memory beside the result: O(N·T).

    Raises
    ------
    ValueError
        As :func:`pooling_matrix`, or if an embedding is not finite.

    References
    ----------
    M. E. A. Seddik, arXiv:2605.06826.
    """
    weights = validation.array(weights, "weights")
    if weights.ndim not in (1, 2):
        validation.fail("weights", "shape (T,) or (K, T)", f"shape {weights.shape}")
    embeddings = validation.array(embeddings, "embeddings", shape=("V", "d"))
    pooled = [
        pooling_matrix(row, tokens, len(embeddings), factors=factors) @ embeddings
        for row in np.atleast_2d(weights)
    ]
    return pooled[0] if weights.ndim == 1 else np.stack(pooled)


@validation.representable
def causal_attention(tokens, embeddings, inverse_temperature, *, strict=True):
    r"""Weights of causal self-attention without parameters, averaged over the rows.

    Parameters
    ----------
    tokens : array_like, shape (N, T)
        Numbers of items, 0 ≤ v < V; T ≥ 2 with the strict mask.
    embeddings : array_like, shape (V, d)
        The table; queries and keys are the embeddings themselves.
    inverse_temperature : float
        β ≥ 0, the factor of the scores x_t·x_s: τ/d in the source, 1/√d in transformers.
    strict : bool, optional
        True: token t attends to 1, …, t − 1, and rows 2, …, T are averaged. False: it attends to
        itself also, and all rows are averaged.

    Returns
    -------
    numpy.ndarray, shape (N, T)
        One weight vector a sequence, of sum 1.

    Raises
    ------
    ValueError
        If a shape does not fit, an item is out of range, or β is negative or not finite.

    Notes
    -----
    Sequences are embedded in blocks of about a million numbers.

    References
    ----------
    M. E. A. Seddik, arXiv:2605.06826, Section 5.
    """
    strict = validation.one_of(strict, "strict", (False, True))
    embeddings = validation.array(embeddings, "embeddings", shape=("V", "d"))
    tokens = _items(tokens, ("N", "T"), len(embeddings))
    beta = validation.number(inverse_temperature, "inverse_temperature", minimum=0)
    count, length = tokens.shape
    if strict and length < 2:
        validation.fail("tokens", "at least two positions, with the strict mask", length)
    first = 1 if strict else 0
    hidden = np.triu(np.ones((length, length), dtype=bool), 1 - first)[first:]
    weights = np.empty((count, length))
    block = max(1, 2**20 // (length * embeddings.shape[1]))
    for start in range(0, count, block):
        part = embeddings[tokens[start : start + block]]
        scores = (beta * part[:, first:]) @ part.swapaxes(1, 2)
        scores[:, hidden] = -np.inf
        scores -= scores.max(axis=2, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=2, keepdims=True)
        weights[start : start + block] = scores.mean(axis=1)
    return weights


def check_vocabulary(vocabulary):
    """Check a vocabulary whose classes are balanced and whose entries are finite, and return it."""
    validation.instance(vocabulary, "vocabulary", Vocabulary, "a Vocabulary")
    table = validation.array(vocabulary.embeddings, "vocabulary.embeddings", shape=("V", "d"))
    if len(table) % 2:
        validation.fail("vocabulary.embeddings", "an even number of items", f"shape {table.shape}")
    validation.array(vocabulary.signal, "vocabulary.signal", shape=(table.shape[1],))
    return vocabulary


def _items(tokens, shape, size):
    tokens = validation.array(tokens, "tokens", shape=shape, dtype=int)
    if tokens.min() < 0 or tokens.max() >= size:
        got = f"items {tokens.min()} … {tokens.max()}"
        validation.fail("tokens", f"items 0 … {size - 1}", got)
    return tokens
