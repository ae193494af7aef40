"""The algebraic curve behind MP_b ⊠ MP_c in its normal form 1 ≥ b ≥ c: roots, density, quadrature.

On the continuous part of the spectrum the cubic λ(y) = x, that is

    y³ + (1 + b + c − x) y² + (b + c + bc) y + bc = 0,

has one complex pair and one real root in (−c, 0). With s = 1 + y it reads

    s³ − (β + χ + x) s² + (βχ + 2x) s − x = 0,      β = 1 − b,  χ = 1 − c,

whose coefficients do not cancel near a hard edge (β = 0, x = 0). This form is used for b > ½, the
other for b ≤ ½, where there is no hard edge. In each the real root is found by Cardano's formula
and polished, and the pair follows from it without loss of digits.

Along the pair m = 1/y = p + ih everything is explicit in p = Re m: with A = bc, B = b + c + bc and
q = 2Ap + B one has |m|² = 1/q, and p runs between the reciprocals of two critical points of λ.
"""

import math

import numpy as np

from rederive import validation

__all__ = ["ProductCurve", "edge_points"]


@validation.representable
def edge_points(delta, gamma):
    r"""Critical points of λ, of which the outer two give the edges of MP_δ ⊠ MP_γ.

    Parameters
    ----------
    delta, gamma : float
        Aspect ratios, positive.

    Returns
    -------
    y_lower, y_middle, y_upper : float
        The roots of :math:`y^3-(\delta+\gamma+\delta\gamma)y-2\delta\gamma=0`, ascending. The edges
        are :math:`\lambda` at the first and the last; at the middle one :math:`\lambda\le0`.

    Raises
    ------
    ValueError
        If a ratio is not a positive finite number.
    """
    delta = validation.positive(delta, "delta")
    gamma = validation.positive(gamma, "gamma")
    curve = ProductCurve(delta, gamma)
    stretch = max(1.0, delta, gamma)
    return tuple(stretch * y for y in (curve.y_lower, curve.y_middle, curve.y_upper))


class ProductCurve:
    """Kernels for one pair of ratios, in the normal form; nothing is checked here.

    Parameters
    ----------
    delta, gamma : float
        Aspect ratios, positive.
    """

    def __init__(self, delta, gamma):
        least, middle, most = sorted((1.0, delta, gamma))
        self.b, self.c = middle / most, least / most
        self.beta, self.chi = (most - middle) / most, (most - least) / most
        self.a2, self.a1 = self.b * self.c, self.b + self.c + self.b * self.c
        self.near_hard = self.b > 0.5
        self._find_edges()

    def _find_edges(self):
        cubic, linear = 2 * self.a2, self.a1
        cosine = min(1.0, 1.5 * cubic / linear * math.sqrt(3 / linear))
        top = 2 * math.sqrt(linear / 3) * math.cos(math.acos(cosine) / 3)
        for _ in range(3):
            top = (2 * top**3 + cubic) / (3 * top * top - linear)
        if top > 0.5:  # the two other roots as −1 + s, so that small s keep their digits
            third, product = 1 + top, self.beta * self.chi / (1 + top)
            total = (2 * (self.beta + self.chi) - self.beta * self.chi - product) / third
            larger = (total + math.sqrt(max(0.0, total * total - 4 * product))) / 2
            low = product / larger if larger else 0.0
            gaps = (low, low - self.beta, low - self.chi)
            self.y_lower, self.spread = low - 1, larger - low
        else:
            self.y_lower = -(top + math.sqrt(top * top - 4 * cubic / top)) / 2
            self.spread = cubic / (self.y_lower * top) - self.y_lower
            gaps = (1 + self.y_lower, self.y_lower + self.b, self.y_lower + self.c)
        self.y_upper, self.y_middle = top, cubic / (self.y_lower * top)
        self.gaps = tuple(gap / self.y_lower for gap in gaps)  # 1 + p, 1 + bp, 1 + cp at the edge
        self.lower = abs(math.prod(self.gaps) * self.y_lower)
        self.upper = (1 + top) * (1 + self.b / top) * (1 + self.c / top)

    def pair(self, x):
        """Real part, imaginary part > 0 and squared modulus of the pair y, for x in the bulk."""
        if self.near_hard:
            squares, linear, constant = (
                -(self.beta + self.chi) - x,
                self.beta * self.chi + 2 * x,
                -x,
            )
            root = _real_root(squares, linear, constant)
            modulus = x / root
            half = (linear - modulus) / (2 * root)
            imaginary = np.sqrt(np.maximum(modulus - half * half, 0))
            return half - 1, imaginary, 1 - 2 * half + modulus
        squares = (1 + self.b + self.c) - x
        root = _real_root(squares, self.a1, self.a2)
        half, modulus = -(squares + root) / 2, -self.a2 / root
        return half, np.sqrt(np.maximum(modulus - half * half, 0)), modulus

    def density(self, x):
        """|Im m| / (πx) for x in the bulk."""
        _, imaginary, modulus = self.pair(x)
        return imaginary / (math.pi * modulus * x)

    def distribution(self, x):
        """1 − Im Φ(y)/π for x in the bulk."""
        real, imaginary, modulus = self.pair(x)
        angle = -np.arctan2(imaginary, real)
        for ratio in (self.b, self.c):
            angle += np.arctan2(imaginary, real + ratio)
            w = ratio * (real - 1j * imaginary) / modulus
            angle += _imaginary_defect(w, small=self.b < 1e-4) / ratio
        return np.clip(1 - angle / math.pi, 0, 1)

    def outer_root(self, z):
        """The root y of λ(y) = z of largest modulus, for complex z off the bulk."""
        coefficients = (1 + self.b + self.c) - z, self.a1, self.a2
        y = _largest_root(*coefficients)
        for _ in range(3):
            value = ((y + coefficients[0]) * y + self.a1) * y + self.a2
            slope = (3 * y + 2 * coefficients[0]) * y + self.a1
            y = y - np.divide(value, slope, out=np.zeros_like(y), where=slope != 0)
        real = z.imag == 0
        return np.where(real, y.real + 0j, y)

    def quadrature(self, count, rule):
        """Points x and weights for the integral over the bulk."""
        if rule == "trapezoid":
            angle = np.linspace(0, math.pi, count)
            left, right = np.sin(angle / 2) ** 2, np.cos(angle / 2) ** 2
            step = np.sin(angle) / 2 * math.pi / (count - 1)
        else:
            t = np.linspace(-4, 4, count)  # u(1−u) falls below 1e-36 at the ends
            left, right = (
                1 / (1 + np.exp(-math.pi * np.sinh(t))),
                1 / (1 + np.exp(math.pi * np.sinh(t))),
            )
            step = math.pi * np.cosh(t) * left * right * 8 / (count - 1)
        x, _, mass = self._along(left, right)
        with np.errstate(invalid="ignore"):
            return x, np.where(step > 0, mass * step, 0)

    def graph(self, count):
        """Points x and density, from edge to edge."""
        angle = np.linspace(0, math.pi, count)
        left, right = np.sin(angle / 2) ** 2, np.cos(angle / 2) ** 2
        left[-1], right[-1] = 1, 0
        x, imaginary, _ = self._along(left, right)
        with np.errstate(divide="ignore", invalid="ignore"):
            density = imaginary / (math.pi * x)
        if self.lower == 0:
            density[0] = np.inf
        x[0], x[-1] = self.lower, self.upper
        return x, density

    def _along(self, left, right):
        """x, h = |Im m| and f·dx/du at p = p_a + (p_b − p_a)u, given u and 1 − u.

        Every factor is a product or a sum of squares; differences of p and its ends are never
        formed.
        """
        length = 1 / self.y_upper - 1 / self.y_lower
        from_lower, from_upper = length * left, length * right
        from_middle = from_lower + self.spread / (self.y_lower * self.y_middle)
        q = self.y_lower**2 + 2 * self.a2 * from_lower
        h2 = 2 * self.a2 * from_lower * from_upper * from_middle / q
        x = np.sqrt(q)  # 1/|m|
        for gap, factor in zip(self.gaps, (1.0, self.b, self.c), strict=True):
            x = x * np.sqrt((gap + factor * from_lower) ** 2 + factor * factor * h2)
        slope = 2 * self.a2 * q  # |dz/dm|
        for distance in (from_lower, from_upper, from_middle):
            slope = slope * np.sqrt(distance * distance + h2)
        turn = 1 / self.y_lower + from_lower + self.a2 / (q * q)  # −h·dh/dp
        with np.errstate(divide="ignore", invalid="ignore"):
            mass = slope * np.sqrt(h2 + turn * turn) * length / (math.pi * x)
        return x, np.sqrt(h2), mass


def _real_root(squares, linear, constant):
    """The real root of y³ + squares·y² + linear·y + constant that has a complex pair beside it."""
    third = squares / 3
    p = linear - squares * third
    half = third * (third * third - linear / 2) + constant / 2
    cube = half * half + (p / 3) ** 3
    u = -np.cbrt(half + np.copysign(np.sqrt(np.maximum(cube, 0)), half))
    root = u - p / (3 * u) - third
    for _ in range(2):
        value = ((root + squares) * root + linear) * root + constant
        root = root - value / ((3 * root + 2 * squares) * root + linear)
    return root


def _largest_root(squares, linear, constant):
    """The root of largest modulus of a cubic with complex coefficients."""
    third = squares / 3
    p = linear - squares * third
    half = third * (third * third - linear / 2) + constant / 2
    wing = np.sqrt(half * half + (p / 3) ** 3 + 0j)
    wing = np.where((half.conjugate() * wing).real < 0, -wing, wing)
    u = -((half + wing) ** (1 / 3))
    turns = np.exp(2j * math.pi / 3 * np.arange(3)).reshape(3, *[1] * np.ndim(u))
    cubes = turns * u
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = np.where(cubes == 0, 0, cubes - p / (3 * cubes)) - third
    index = np.abs(roots).argmax(axis=0)
    return np.take_along_axis(roots, index[None], axis=0)[0]


def _imaginary_defect(w, small):
    """Im(w − log(1 + w)); by the series where all |w| are below 1e-2."""
    if not small:
        return w.imag - np.arctan2(w.imag, 1 + w.real)
    total = np.zeros_like(w)
    for k in range(10, 1, -1):
        total = (total + (-1) ** k / k) * w
    return (total * w).imag
