"""How different heads are, and the covariance of their noise: closed forms and dense ways."""

import mpmath
import numpy as np
import scipy.linalg

from benchmarks.comparing import Contestant
from benchmarks.growth import decades
from rederive import diversity

BETA = 0.25


def heads(count, p, k, seed=2026):
    """Projections whose principal angles are known, and their exact diversity index.

    Frame h is cos(t)E + sin(t)F for an angle t of its own, times an invertible matrix; so all
    principal angles between two heads are the difference of their t.
    """
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, np.pi / 2, count)
    found = np.zeros((count, p, k))
    found[:, :k] = np.cos(angles)[:, None, None] * np.eye(k)
    found[:, k : 2 * k] = np.sin(angles)[:, None, None] * np.eye(k)
    first, second = np.triu_indices(count, 1)
    exact = 1 - np.mean(np.cos(angles[first] - angles[second]) ** 2)
    return found @ (np.eye(k) + rng.normal(size=(count, k, k)) / (4 * np.sqrt(k))), exact


def loop_over_pairs(projections):
    """The principal angles of every pair of heads, by SciPy."""
    total, count, k = 0.0, *projections.shape[::2]
    for first in range(count):
        for second in range(first):
            angles = scipy.linalg.subspace_angles(projections[first], projections[second])
            total += (np.cos(angles) ** 2).sum() / k
    return 1 - 2 * total / (count * (count - 1))


def dense_projectors(projections):
    """The p×p projector of every head, and the inner products of all."""
    count, _, k = projections.shape
    flat = (projections @ np.linalg.pinv(projections)).reshape(count, -1)
    overlaps = flat @ flat.T
    return 1 - (overlaps.sum() - np.trace(overlaps)) / (k * count * (count - 1))


def closed_form(first, second):
    """Ours: the covariance from the principal angles."""
    return diversity.head_covariance(diversity.principal_cosines(first, second), BETA)


def simulated(first, second, n=4000, m=500):
    """The weights of both heads at 500 queries and 4000 keys, and their mean inner product."""
    rng = np.random.default_rng(1)
    keys, queries = rng.normal(size=(n, len(first))), rng.normal(size=(m, len(first)))
    weights = []
    for projection in (first, second):
        frame = np.linalg.qr(projection)[0]
        scores = BETA * (queries @ frame) @ (keys @ frame).T
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights.append(scores / scores.sum(axis=1, keepdims=True))
    return n * (weights[0] * weights[1]).sum(axis=1).mean()


def compare_diversity(bench):
    """The diversity index of 32 heads."""
    count, p, k = bench.size(32, 8), bench.size(512, 64), 16
    projections, exact = heads(count, p, k)
    contestants = [
        Contestant(
            name,
            lambda function=function: function(projections),
            None if name == "ours" else function,
            abs(function(projections) - exact),
        )
        for name, function in (
            ("ours", diversity.head_diversity_index),
            ("SciPy, pair by pair", loop_over_pairs),
            ("NumPy, p×p projectors", dense_projectors),
        )
    ]
    size = f"H = {count}, p = {p}, k = {k}"
    kernel = "head diversity index"
    bench.compare(kernel, size, contestants, 5, "error, against the exact value")
    work = {
        # a Householder factorisation with its factor, a check of the rank, and all Gram matrices
        "flops": 4 * count * p * k**2 + 2 * count**2 * p * k**2,
        "bytes": 8 * projections.size * 4,
    }
    bench.roof(
        kernel, size, work, lambda: diversity.head_diversity_index(projections),
        "one factorisation of every head and all Gram matrices; ours also checks ranks by "
        "singular values, which is not counted",
    )  # fmt: skip


def compare_covariance(bench):
    """The noise covariance of two heads."""
    (first, second), _ = heads(2, 64, 4)
    cosines = diversity.principal_cosines(first, second)
    with mpmath.workdps(40):
        terms = [
            (1 - BETA**2 * mpmath.mpf(c) ** 2) ** 2 - BETA**4 * mpmath.mpf(c) ** 2 for c in cosines
        ]
        truth = float(mpmath.fprod(term ** mpmath.mpf("-0.5") for term in terms))
    contestants = [
        Contestant(
            name,
            lambda function=function: function(first, second),
            None if name == "ours" else function,
            abs(function(first, second) / truth - 1),
        )
        for name, function in (("ours", closed_form), ("simulated weights", simulated))
    ]
    bench.compare(
        "covariance of two heads", f"p = 64, k = 4, β = {BETA}", contestants, 5,
        "relative error, against the closed form in 40 digits; the other is a finite sample",
    )  # fmt: skip


def diversity_of_heads(count):
    """The index of some heads."""
    projections, _ = heads(count, 64, 4)
    return lambda: diversity.head_diversity_index(projections)


def diversity_of_width(p):
    """The index of 8 heads in some dimension."""
    projections, _ = heads(8, p, 4)
    return lambda: diversity.head_diversity_index(projections)


def run(bench):
    """Compare, bound and grow."""
    compare_diversity(bench)
    compare_covariance(bench)
    kernel = "head diversity index"
    bench.grow(kernel, "H", "p = 64, k = 4", decades(2, 2000), diversity_of_heads, 2)
    bench.grow(kernel, "p", "H = 8, k = 4", decades(16, 16_000), diversity_of_width)
