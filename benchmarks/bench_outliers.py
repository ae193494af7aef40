"""Outliers of second moments and of covariances: Lanczos on products beside the dense ways."""

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from benchmarks.bench_pooling import draw
from benchmarks.comparing import Contestant
from benchmarks.growth import Sweep, decades
from rederive import pooled_models, pooled_spectra, sign_sequences, vocabularies

LENGTH, PREFIX, THETA = 16, 4, 4.0


def centred_moment(pooled):
    """The matrix S of centred pooled vectors."""
    shown = pooled - pooled.mean(axis=0)
    return shown.T @ shown / len(pooled)


def whole_eigh(pooled):
    """Form S, and take all eigenvalues."""
    return np.linalg.eigh(centred_moment(pooled))[0][-1]


def one_of_eigh(pooled):
    """Form S, and take its largest eigenvalue."""
    last = pooled.shape[1] - 1
    return scipy.linalg.eigh(centred_moment(pooled), subset_by_index=(last, last))[0][0]


def sparse_svd(pooled):
    """The largest singular value of the centred vectors, by ARPACK."""
    shown = pooled - pooled.mean(axis=0)
    return scipy.sparse.linalg.svds(shown, k=1, return_singular_vectors=False)[0] ** 2 / len(pooled)


def dense_covariance(weights, correlation, table):
    """The covariance as a matrix, and its largest eigenvalue."""
    matrix = pooled_models.conditional_covariance(weights, correlation, table)
    last = len(matrix) - 1
    return scipy.linalg.eigh(matrix, subset_by_index=(last, last))[0][0]


def arpack_covariance(weights, correlation, table):
    """The covariance as a matrix, and its largest eigenvalue by ARPACK."""
    matrix = pooled_models.conditional_covariance(weights, correlation, table)
    return scipy.sparse.linalg.eigsh(matrix, k=1, return_eigenvectors=False)[0]


def our_outlier(pooled):
    """One outlier from products with the pooled vectors."""
    return pooled_spectra.top_outliers(pooled_spectra.second_moment(pooled, centred=True))


def rayleigh(pooled, vector):
    """A Rayleigh quotient in NumPy's longest floats: its error is the square of the vector's."""
    long = pooled.astype(np.longdouble)
    along = (long - long.mean(axis=0)) @ vector.astype(np.longdouble)
    return (along @ along) / len(pooled) / (vector.astype(np.longdouble) ** 2).sum()


def compare_outliers(bench):
    """One separated outlier of S at d = 2000."""
    d = bench.size(2000, 200)
    table, tokens = draw(d, 2 * d, 2 * d, LENGTH, PREFIX, THETA)
    pooled = vocabularies.pool(np.full(LENGTH, 1 / LENGTH), tokens, table.embeddings)
    top = our_outlier(pooled)
    truth = rayleigh(pooled, np.linalg.eigh(centred_moment(pooled))[1][:, -1])
    contestants = [Contestant("ours", lambda: our_outlier(pooled), None, top.values[0] / truth - 1)]
    for name, function in (
        ("S and all of eigh", whole_eigh),
        ("S and one of eigh", one_of_eigh),
        ("ARPACK on the vectors", sparse_svd),
    ):
        error = function(pooled) / truth - 1
        call = lambda function=function: function(pooled)  # noqa: E731
        contestants.append(Contestant(name, call, function, error))
    contestants = [one._replace(error=abs(one.error)) for one in contestants]
    size = f"d = {d}, V = N = {2 * d}, T = {LENGTH}"
    found = bench.compare(
        "one outlier of a second moment", size, contestants, 3,
        "relative error, against a Rayleigh quotient in extended precision",
    )  # fmt: skip
    what = "one outlier against S and"
    bench.goal(f"{what} eigh", "at least", 10, found["S and all of eigh"], "times as fast")
    bench.goal(f"{what} one eigenvalue", "at least", 4, found["S and one of eigh"], "times as fast")
    work = {"flops": 4 * top.products * pooled.size, "bytes": 2 * top.products * pooled.nbytes}
    bench.roof(
        "one outlier of a second moment", size, work, lambda: our_outlier(pooled),
        f"{top.products} products, each reads the pooled vectors twice; then their mean",
    )  # fmt: skip


def compare_covariances(bench):
    """The outlier of the exact covariance given the table."""
    d = bench.size(2000, 200)
    table, _ = draw(d, 2 * d, 4, LENGTH, PREFIX, THETA)
    weights = np.full(LENGTH, 1 / LENGTH)
    correlation = sign_sequences.latent_correlation(sign_sequences.prefix_loadings(LENGTH, PREFIX))

    def ours(weights, correlation, table):
        operator = pooled_spectra.covariance_operator(weights, correlation, table)
        return pooled_spectra.top_outliers(operator).values[0]

    truth = np.linalg.eigvalsh(pooled_models.conditional_covariance(weights, correlation, table))[
        -1
    ]
    contestants = [
        Contestant(
            name,
            lambda function=function: function(weights, correlation, table),
            None if function is ours else function,
            abs(function(weights, correlation, table) / truth - 1),
        )
        for name, function in (
            ("ours", ours),
            ("matrix and one of eigh", dense_covariance),
            ("matrix and ARPACK", arpack_covariance),
        )
    ]
    bench.compare(
        "outlier of the covariance", f"d = {d}, V = {2 * d}, T = {LENGTH}", contestants, 3,
        "relative difference to numpy.linalg.eigvalsh",
    )  # fmt: skip


def outlier_without_pooling(d):
    """One outlier of 2d sequences without S, C or the pooled vectors."""
    table, tokens = draw(d, 2 * d, 2 * d, LENGTH, PREFIX, THETA)
    weights = np.full(LENGTH, 1 / LENGTH)
    matrix = vocabularies.pooling_matrix(weights, tokens, 2 * d)
    operator = pooled_spectra.pooled_operator(matrix, table.embeddings)
    return lambda: our_outlier(operator)


def run(bench):
    """Compare, bound and grow."""
    compare_outliers(bench)
    compare_covariances(bench)
    sweep = Sweep(
        "one outlier of a second moment", "d", f"V = N = 2d, T = {LENGTH}, vectors not formed",
        decades(20, 6300, 6), outlier_without_pooling, 2,
        "two and a half decades; the time to draw the table is not counted. "
        "The largest size is among the goals",
    )  # fmt: skip
    bench.grow(*sweep)
