r"""Top eigenvalues of second moments of pooled sequences, without forming the matrices.

Lanczos iteration on products with the pooled sequences, or with table and tokens; centring is a
correction of rank one. One iteration gives three things at once: the top eigenvalues, a bound on
their error, and the upper edge of the bulk, which tells whether they are separated from it.
Arrays in, NumPy arrays out.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from rederive import validation
from rederive.pooled_models import covariance_terms

__all__ = ["Outliers", "covariance_operator", "pooled_operator", "second_moment", "top_outliers"]

_CLEARANCE = 3.0  # calibrated, see `top_outliers`


class Outliers(NamedTuple):
    """The largest eigenvalues of a symmetric matrix, and whether they stand out."""

    values: np.ndarray  # (k,), descending
    vectors: np.ndarray  # (d, k), of norm 1
    residuals: np.ndarray  # (k,), ‖Av − λv‖: an eigenvalue lies within this distance
    separated: np.ndarray  # (k,), bool
    edge: float  # upper edge of the bulk, given or (roughly) estimated
    products: int  # products with the matrix


def second_moment(pooled, *, centred=False):
    r"""The second moment of pooled sequences as an operator.

    Parameters
    ----------
    pooled : array_like, shape (N, d), or scipy.sparse.linalg.LinearOperator
        The pooled sequences, one a row; an operator needs products from both sides.
    centred : bool, optional
        Subtract the mean of the sequences, as a correction of rank one.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator, shape (d, d)
        S = CᵀC/N, or S − c̄c̄ᵀ.

    Raises
    ------
    ValueError
        If the array is not of that shape or not finite.

    References
    ----------
    M. E. A. Seddik, arXiv:2605.06826.
    """
    centred = validation.one_of(centred, "centred", (False, True))
    if not isinstance(pooled, LinearOperator):
        pooled = validation.array(pooled, "pooled", shape=("N", "d"))
        validation.squares_fit(pooled, "pooled")
        left, right = pooled.__matmul__, pooled.T.__matmul__
    else:
        left, right = pooled.matvec, pooled.rmatvec
    count, dim = pooled.shape
    mean = right(np.full(count, 1 / count)) if centred else None

    def product(vector):
        vector = vector.ravel()
        image = right(left(vector)) / count
        return image if mean is None else image - mean * (mean @ vector)

    return _symmetric(product, dim)


def pooled_operator(matrix, embeddings):
    r"""Pooled sequences as an operator, from the sparse pooling matrix and the table.

    Parameters
    ----------
    matrix : scipy.sparse.csr_array, shape (N, V)
        From :func:`rederive.vocabularies.pooling_matrix`.
    embeddings : array_like, shape (V, d)
        The table.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator, shape (N, d)
        The product of both, which is not formed: memory O(N·T) beside the table.

    Raises
    ------
    ValueError
        If the sizes do not fit.
    """
    embeddings = validation.array(embeddings, "embeddings", shape=("V", "d"))
    if not scipy.sparse.issparse(matrix):
        validation.fail("matrix", "a sparse matrix", type(matrix).__name__)
    validation.array(matrix.data, "matrix")
    if matrix.shape[1] != len(embeddings):
        validation.fail("matrix", f"{len(embeddings)} columns", f"shape {matrix.shape}")
    turned = matrix.T.tocsr()
    return LinearOperator(
        (matrix.shape[0], embeddings.shape[1]),
        matvec=lambda vector: matrix @ (embeddings @ vector.ravel()),
        rmatvec=lambda vector: embeddings.T @ (turned @ vector.ravel()),
        dtype=np.float64,
    )


@validation.representable
def covariance_operator(weights, correlation, vocabulary, *, marginals=None):
    r"""The exact covariance of a pooled sequence given the table, as an operator.

    Parameters
    ----------
    weights, correlation, vocabulary, marginals
        As in :func:`rederive.pooled_models.conditional_covariance`.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator, shape (d, d)
        C = E ccᵀ, which is not formed.

    Raises
    ------
    ValueError
        As :func:`rederive.pooled_models.conditional_covariance`.

    References
    ----------
    Derived in the chapter *pooling*, after M. E. A. Seddik, arXiv:2605.06826.
    """
    masses, basis, middle = covariance_terms(weights, correlation, vocabulary, marginals=marginals)
    table = vocabulary.embeddings

    def product(vector):
        vector = vector.ravel()
        return table.T @ (masses * (table @ vector)) + basis @ (middle @ (vector @ basis))

    return _symmetric(product, table.shape[1])


def top_outliers(operator, count=1, *, edge=None, tolerance=1e-9, max_products=200, rng=None):
    r"""Largest eigenvalues of a symmetric operator, and whether they lie outside the bulk.

    Parameters
    ----------
    operator : scipy.sparse.linalg.LinearOperator, shape (d, d)
        Symmetric, for example from :func:`second_moment`.
    count : int, optional
        k ≥ 1, the number of eigenvalues.
    edge : float, optional
        Upper edge of the bulk, if it is known; otherwise it is estimated.
    tolerance : float, optional
        Largest residual relative to the largest eigenvalue.
    max_products : int, optional
        Largest number of products with the operator.
    rng : numpy.random.Generator, optional
        Source of the start vector; by default it is the same in every call.

    Returns
    -------
    Outliers
        `values`, `vectors`, `residuals`, `separated`, `edge` and `products`. A value that is not
        separated may be an eigenvalue of the bulk and, where its residual is large, not yet the
        top one.

    Raises
    ------
    ValueError
        If an argument is out of its range or a product is not finite.

    Notes
    -----
    Lanczos iteration with full reorthogonalisation. Each residual is an error bound: an eigenvalue
    lies within it (that it is the top one rests on the start vector not being orthogonal to it).
    Where the bulk is one interval [a, b], the coefficients of the iteration tend to
    α = (a + b)/2 and β = (b − a)/4 once the outliers are found, and then shrink linearly as the
    steps use up the dimension; so a line through α + 2β, read off at step 0, estimates b.

    A value is *separated* if its residual is within the tolerance and it exceeds the edge by
    3 (b − a) d^(−2/3), and the estimated edge by three of its standard errors in addition. Where
    the estimate does not decide, the iteration goes on until the next eigenvalue is known: then
    that is the edge, and twice the distance is asked for. The power of d is that of the
    fluctuations at an edge; the factor 3 is calibrated, not derived: for ratios d/V and d/N up to
    2, one null spectrum in sixteen or fewer passed at d = 200, one in forty or fewer at d = 600.
    Thin upper tails (ratios far above 2) pass more often; give the edge there.

    References
    ----------
    C. Lanczos, J. Res. Nat. Bur. Standards 45 (1950), 255–282. Edges from the coefficients:
    X. Ding, T. Trogdon, arXiv:2103.02736.
    """
    if not isinstance(operator, LinearOperator) or operator.shape[0] != operator.shape[1]:
        validation.fail("operator", "a square LinearOperator", getattr(operator, "shape", operator))
    dim = operator.shape[0]
    count = validation.integer(count, "count", minimum=1, maximum=dim)
    edge = None if edge is None else validation.number(edge, "edge")
    tolerance = validation.positive(tolerance, "tolerance")
    steps = min(validation.integer(max_products, "max_products", minimum=count), dim)
    rng = np.random.default_rng(0) if rng is None else validation.generator(rng)
    run = _Lanczos(operator.matvec, rng.standard_normal(dim), steps)
    run.advance(count, lambda largest: tolerance * largest)
    values, residuals = run.ritz(count)
    lower, estimate, error = run.edges()
    known = estimate if edge is None else edge
    clearance = _CLEARANCE * max(known - lower, 0.0) * dim ** (-2 / 3)
    far = values > known + clearance + (3 * error if edge is None else 0.0)
    if edge is None and not far.all() and count < dim:
        run.advance(count + 1, lambda largest: clearance / 10)
        (*values, known), (*residuals, doubt) = run.ritz(count + 1)
        values, residuals = np.array(values), np.array(residuals)
        far = values > known + doubt + 2 * clearance
    separated = far & (residuals <= tolerance * abs(values[0]))
    return Outliers(values, run.vectors(count), residuals, separated, float(known), run.steps)


class _Lanczos:
    """Lanczos iteration with full reorthogonalisation, which can be taken up again."""

    def __init__(self, matvec, start, limit):
        self.matvec, self.limit, self.ended = matvec, limit, False
        self.diagonal, self.off = [], []
        self.basis = np.empty((min(limit, 32), len(start)))
        self.next = start / np.linalg.norm(start)

    @property
    def steps(self):
        return len(self.diagonal)

    def advance(self, count, allowed):
        """Iterate until the top residuals are at most allowed(largest value), or to the limit."""
        while not self.ended and self.steps < self.limit:
            if self.steps >= count + 2 and self.steps % 2 == 0:
                values, residuals = self.ritz(count)
                if (residuals <= allowed(abs(values[0]))).all():
                    return
            self._step()

    def ritz(self, count):
        values, shape = scipy.linalg.eigh_tridiagonal(self.diagonal, self.off[:-1])
        self.shape = shape[:, ::-1][:, :count]
        return values[::-1][:count], self.off[-1] * np.abs(self.shape[-1])

    def vectors(self, count):
        return self.basis[: self.steps].T @ self.shape[:, :count]

    def edges(self):
        """Lower and upper edge of the bulk from the later coefficients, and the upper's error."""
        late = np.arange(max(self.steps // 4, min(self.steps // 2, 8)), self.steps)
        diagonal, off = np.array(self.diagonal)[late], np.array(self.off)[late]
        lower = float(np.median(diagonal - 2 * off))
        if len(late) < 5:
            return lower, float(np.median(diagonal + 2 * off)), np.inf
        line, covariance = np.polyfit(late, diagonal + 2 * off, 1, cov=True)
        return lower, float(line[1]), float(np.sqrt(covariance[1, 1]))

    def _step(self):
        step, dim = self.steps, len(self.next)
        if step == len(self.basis):
            more = np.empty((min(step, self.limit - step), dim))
            self.basis = np.concatenate([self.basis, more])
        self.basis[step] = self.next
        image = np.array(self.matvec(self.next), dtype=float)
        if not np.isfinite(image).all():
            validation.fail("operator", "finite products", "a product that is not finite")
        self.diagonal.append(float(self.next @ image))
        known, size = self.basis[: step + 1], np.linalg.norm(image)
        for _ in range(2):  # twice is enough
            image -= known.T @ (known @ image)
        self.off.append(float(np.linalg.norm(image)))
        self.ended = self.off[-1] <= dim * np.finfo(float).eps * size  # an invariant subspace
        if not self.ended:
            self.next = image / self.off[-1]


def _symmetric(product, dim):
    return LinearOperator((dim, dim), matvec=product, rmatvec=product, dtype=np.float64)
