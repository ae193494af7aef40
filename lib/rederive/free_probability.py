"""Marchenko–Pastur laws and their free multiplicative product, in closed form.

The spectrum of a sample covariance whose population covariance is itself a sample covariance tends
to the product law of two Marchenko–Pastur laws MP_δ ⊠ MP_γ (each with mean 1). Everything about it
follows from one rational function,

    λ(y) = (1 + y)(1 + δ/y)(1 + γ/y),

the inverse of y = 1/m(z), where m(z) = ∫ t/(z − t) dμ(t). Nothing here searches for a root.

Inside, the law is brought to a normal form. The numbers (1, δ, γ), divided by the largest of them,
are 1 ≥ b ≥ c; the continuous part is that of MP_b ⊠ MP_c, which has no atom, stretched by the
largest. The lower edge is hard (at 0, with a density that is infinite there) exactly if b = 1.
"""

import math
from fractions import Fraction

import numpy as np

from rederive import validation
from rederive.product_curve import ProductCurve

__all__ = ["FreeMPProduct"]


class FreeMPProduct:
    r"""The law MP_δ ⊠ MP_γ: its density, distribution function, moments and transforms.

    Parameters
    ----------
    delta, gamma : float
        Aspect ratios δ, γ > 0; the order does not matter.

    Attributes
    ----------
    delta, gamma : float
    atom : float
        Mass at 0, :math:`1-\min(1, 1/\delta, 1/\gamma)`.

    Raises
    ------
    ValueError
        If a ratio is not a positive finite number.

    Notes
    -----
    MP_c is the limit law of :math:`ZZ^\top/n` for a :math:`d\times n` matrix Z of independent N(0,
    1) entries with d/n → c; it has mean 1 and S-transform :math:`1/(1+cm)`. S-transforms multiply,
    so that :math:`m(z)=\int\frac t{z-t}\,d\mu` solves :math:`z=(1+m)(1+\delta m)(1+\gamma m)/m`.

    References
    ----------
    M. E. A. Seddik, arXiv:2605.06826; derived in the chapter *pooling*.
    """

    @validation.representable
    def __init__(self, delta, gamma):
        self.delta = validation.positive(delta, "delta")
        self.gamma = validation.positive(gamma, "gamma")
        self._stretch = max(1.0, self.delta, self.gamma)
        self._curve = ProductCurve(self.delta, self.gamma)
        self.atom = 1 - 1 / self._stretch

    def __repr__(self):
        return f"FreeMPProduct(delta={self.delta:g}, gamma={self.gamma:g})"

    def support(self):
        """Edges of the continuous part.

        Returns
        -------
        lower, upper : float
            Both non-negative; `lower` is 0 exactly if the edge is hard.
        """
        return self._stretch * self._curve.lower, self._stretch * self._curve.upper

    def pdf(self, x):
        r"""Density of the continuous part, which has mass 1 − atom.

        Parameters
        ----------
        x : array_like
            Any shape; infinities are allowed.

        Returns
        -------
        float or numpy.ndarray
            0 outside the support and at a soft edge, inf at a hard edge.

        Raises
        ------
        ValueError
            If an entry is NaN or no real number.

        Notes
        -----
        :math:`f(x)=|\mathrm{Im}\,m|/(\pi x)` with the complex pair of roots of a real cubic, by
        Cardano's formula. The relative error is a few roundings times the condition of the problem.
        """
        x = validation.array(x, "x", finite=False, empty=True)
        inside, scaled = self._inside(x)
        found = np.zeros(x.shape)
        found[inside] = self._curve.density(scaled) / self._stretch**2
        if self._curve.lower == 0:
            found[x == 0] = np.inf
        return found[()]

    def cdf(self, x):
        r"""Distribution function, the atom included.

        Parameters
        ----------
        x : array_like
            Any shape; infinities are allowed.

        Returns
        -------
        float or numpy.ndarray
            Values in [0, 1].

        Raises
        ------
        ValueError
            If an entry is NaN or no real number.

        Notes
        -----
        In closed form, since :math:`\int G\,dz` is elementary in y: at :math:`\delta,\gamma\le1` it
        is :math:`1-\frac1\pi\mathrm{Im}\,\Phi(y)` with

        .. math:: \Phi = \log\frac{(y+\delta)(y+\gamma)}{y} + \frac2y
            - \frac1\delta\log\Bigl(1+\frac\delta y\Bigr)
            - \frac1\gamma\log\Bigl(1+\frac\gamma y\Bigr).
        """
        x = validation.array(x, "x", finite=False, empty=True)
        inside, scaled = self._inside(x)
        lower, upper = self.support()
        found = np.where(x >= upper, 1.0, np.where(x >= 0, self.atom, 0.0))
        if lower == 0 and self.atom == 0:
            found[x == 0] = 0.0
        found[inside] = self.atom + self._curve.distribution(scaled) / self._stretch
        return found[()]

    def moment(self, k):
        r"""The k-th moment, rounded once.

        Parameters
        ----------
        k : int
            0 ≤ k; the time grows with the square of k.

        Returns
        -------
        float
            :math:`\frac1k\sum_{j+l<k}\binom kj\binom kl\binom k{k-1-j-l}\delta^j\gamma^l`, 1 for k
            = 0, and inf where it exceeds the largest float.

        Raises
        ------
        ValueError
            If k is no whole number ≥ 0.
        """
        k = validation.integer(k, "k", minimum=0)
        if k == 0:
            return 1.0
        delta, gamma = Fraction(self.delta), Fraction(self.gamma)
        choose = [math.comb(k, j) for j in range(k)]
        powers = [1]
        for _ in range(k - 1):
            powers.append(powers[-1] * gamma)
        total = Fraction(0)
        for j in reversed(range(k)):  # Horner in δ
            rest = sum(choose[i] * choose[k - 1 - j - i] * powers[i] for i in range(k - j))
            total = total * delta + choose[j] * rest
        total /= k
        try:
            return float(total)
        except OverflowError:
            return math.inf

    @validation.representable
    def stieltjes(self, z):
        r"""Stieltjes transform :math:`G(z)=\int\mu(dt)/(z-t)`, the atom included.

        Parameters
        ----------
        z : array_like
            Complex or real numbers off the support (and off 0 if there is an atom).

        Returns
        -------
        complex, float or numpy.ndarray
            Real for real z.

        Raises
        ------
        ValueError
            If a point lies in the support or is not finite.

        Notes
        -----
        :math:`G=y/((y+\delta)(y+\gamma))`, y being the root of :math:`\lambda(y)=z` of largest
        modulus.
        """
        z, y = self._off_support(z)
        found = y / ((y + self.delta) * (y + self.gamma))
        return (found.real if (z.imag == 0).all() else found)[()]

    @validation.representable
    def strength(self, z):
        r"""The number y with :math:`\lambda(y)=z` on the branch that belongs to the law.

        Parameters
        ----------
        z : array_like
            Complex or real numbers off the support, not 0 if the lower edge is 0 or there is an
            atom.

        Returns
        -------
        complex, float or numpy.ndarray
            :math:`y=1/m(z)`, real for real z. For z above the support it is the strength of the
            spike that would put an outlier there.

        Raises
        ------
        ValueError
            If a point lies in the support or is not finite.
        """
        z, y = self._off_support(z)
        return (y.real if (z.imag == 0).all() else y)[()]

    def boundary(self, x):
        r"""The number y just above the bulk, the limit of `strength` at x + i0.

        Parameters
        ----------
        x : array_like
            Points strictly inside the support.

        Returns
        -------
        complex or numpy.ndarray
            y with :math:`\lambda(y)=x` and positive imaginary part.

        Raises
        ------
        ValueError
            If a point is not strictly inside the support.
        """
        x = validation.array(x, "x", empty=True)
        inside, _ = self._inside(x)
        if not inside.all():
            validation.fail("x", "points strictly inside the support", str(x[~inside].flat[0]))
        real, imaginary, _ = self._curve.pair(x / self._stretch)
        return (self._stretch * (real + 1j * imaginary))[()]

    def quadrature(self, count=401, rule="tanh-sinh"):
        r"""Points and weights that integrate over the continuous part.

        Parameters
        ----------
        count : int
            Number of points, at least 3.
        rule : {"tanh-sinh", "trapezoid"}
            "tanh-sinh" serves for every law: with 401 points mass and moments are right to 1e-14 or
            so. "trapezoid" converges as fast with far fewer points (65 for the pair ½, ¼) while
            both edges are soft, and only slowly towards a hard edge.

        Returns
        -------
        x, weights : numpy.ndarray, shape (count,)
            Ascending points, and weights of sum 1 − atom.

        Raises
        ------
        ValueError
            If an argument is out of its range.

        Notes
        -----
        The density is known explicitly along a curve with the parameter :math:`p=\mathrm{Re}\,m`,
        so no equation is solved; see :mod:`rederive.product_curve`.
        """
        count = validation.integer(count, "count", minimum=3)
        validation.one_of(rule, "rule", ("tanh-sinh", "trapezoid"))
        x, weights = self._curve.quadrature(count, rule)
        return self._stretch * x, weights / self._stretch

    def curve(self, count=401):
        """Points on the graph of the density, denser towards the edges; no equation is solved.

        Parameters
        ----------
        count : int
            Number of points, at least 3.

        Returns
        -------
        x, density : numpy.ndarray, shape (count,)
            From edge to edge, ascending; at a hard edge the density is inf.

        Raises
        ------
        ValueError
            If `count` is out of its range.
        """
        count = validation.integer(count, "count", minimum=3)
        x, density = self._curve.graph(count)
        return self._stretch * x, density / self._stretch**2

    def _off_support(self, z):
        """Check points and return them with their y."""
        z = validation.array(z, "z", dtype=complex, empty=True)
        lower, upper = self.support()
        wrong = (z.imag == 0) & (lower <= z.real) & (z.real <= upper)
        wrong |= (z == 0) & (self.atom > 0)
        if wrong.any():
            validation.fail("z", "points off the support of the law", str(z[wrong].flat[0]))
        return z, self._stretch * self._curve.outer_root(z / self._stretch)

    def _inside(self, x):
        """Where x lies strictly inside the support, and the values there in the normal form."""
        lower, upper = self.support()
        inside = (x > lower) & (x < upper)
        return inside, x[inside] / self._stretch
