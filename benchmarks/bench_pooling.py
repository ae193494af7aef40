"""Pooled vectors: the library's sparse product beside gathering, a loop and torch."""

import numpy as np
import torch

from benchmarks.comparing import Contestant
from benchmarks.growth import decades
from rederive import sign_sequences, vocabularies


def draw(d, size, count, length, prefix, theta):
    """A table and tokens of the prefix model; the numbers do not matter for the time."""
    rng = np.random.default_rng(2026)
    table = vocabularies.draw_vocabulary(np.sqrt(theta / d) * np.ones(d), size, rng)
    loadings = sign_sequences.prefix_loadings(length, prefix)
    signs = sign_sequences.latent_signs(loadings, count, rng).signs
    return table, vocabularies.draw_tokens(signs, size, rng)


def gather_einsum(weights, tokens, embeddings):
    """All embedded sequences at once, then a sum over positions."""
    return np.einsum("t,ntd->nd", weights, embeddings[tokens])


def gather_matmul(weights, tokens, embeddings):
    """The same with a product of a vector and matrices."""
    return weights @ embeddings[tokens]


def loop_over_positions(weights, tokens, embeddings):
    """One position after the other: no array of all embedded sequences."""
    return sum(w * embeddings[column] for w, column in zip(weights, tokens.T, strict=True))


def embedding_bag(weights, tokens, embeddings):
    """What torch has for it: bags of rows with weights."""
    factors = torch.from_numpy(np.broadcast_to(weights, tokens.shape).copy())
    return torch.nn.functional.embedding_bag(
        torch.from_numpy(tokens),
        torch.from_numpy(embeddings),
        mode="sum",
        per_sample_weights=factors,
    ).numpy()


def compare(bench):
    """Pooled vectors of 3200 sequences of 32 tokens."""
    d, count, length = bench.size(800, 80), bench.size(3200, 320), 32
    table, tokens = draw(d, 2 * d, count, length, 8, 1.0)
    weights, embeddings = np.full(length, 1 / length), table.embeddings
    truth = gather_einsum(weights.astype(np.longdouble), tokens[:16], embeddings)
    contestants = [
        Contestant(
            name,
            lambda function=function: function(weights, tokens, embeddings),
            None if name == "ours" else function,
            np.abs(function(weights, tokens[:16], embeddings) - truth).max(),
        )
        for name, function in (
            ("ours", vocabularies.pool),
            ("gather and einsum", gather_einsum),
            ("gather and matmul", gather_matmul),
            ("loop over positions", loop_over_positions),
            ("torch embedding_bag", embedding_bag),
        )
    ]
    size = f"N = {count}, T = {length}, d = {d}"
    found = bench.compare(
        "pooled vectors", size, contestants, 5,
        "largest error of 16 vectors, against extended precision",
    )  # fmt: skip
    best = min(ratio for name, ratio in found.items() if name != "ours")
    note = (
        f"{best:.2g} times as fast as the best peer; a sparse product does little else than fetch"
    )
    bench.goal(
        "pooled vectors against gather and einsum",
        "at least", 8, found["gather and einsum"], "times as fast", note,
    )  # fmt: skip
    terms = count * length * d
    work = {
        "flops": 2 * terms,
        "cached bytes": 8 * terms,
        "bytes": 8 * (count * d + embeddings.size) + 12 * tokens.size,
    }
    bench.roof(
        "pooled vectors", size, work, lambda: vocabularies.pool(weights, tokens, embeddings),
        "one row of the table is fetched for every token; the table fits into the cache",
    )  # fmt: skip


def pooling_of(count=1000, length=32, d=100):
    """Pooled vectors of some sequences from a table of 2000 items."""
    rng = np.random.default_rng(2026)
    table = rng.normal(size=(2000, d))
    tokens = rng.integers(0, 2000, size=(count, length))
    weights = np.full(length, 1 / length)
    return lambda: vocabularies.pool(weights, tokens, table)


def pooling_of_sequences(count):
    """Some number of sequences."""
    return pooling_of(count=count)


def pooling_of_positions(length):
    """Sequences of some length."""
    return pooling_of(length=length)


def pooling_of_dimension(d):
    """Vectors of some dimension."""
    return pooling_of(d=d)


def run(bench):
    """Compare, bound and grow."""
    compare(bench)
    kernel = "pooled vectors"
    bench.grow(kernel, "N", "T = 32, d = 100", decades(100, 100_000), pooling_of_sequences)
    bench.grow(kernel, "T", "N = 1000, d = 100", decades(4, 4000), pooling_of_positions)
    bench.grow(kernel, "d", "N = 1000, T = 32", decades(4, 4000), pooling_of_dimension)
