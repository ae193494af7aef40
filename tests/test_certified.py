"""Enclosures contain the exact value, and what is not proved is refused."""

import itertools
import math
from fractions import Fraction

import flint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rederive_book import certified


def contains_root(enclosure, polynomial):
    """Whether an exact polynomial changes sign across the enclosure, in rational arithmetic."""
    lower, upper = (_fraction(end) for end in (enclosure.lower(), enclosure.upper()))
    return polynomial(lower) * polynomial(upper) <= 0


def _fraction(exact):
    mantissa, exponent = exact.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


@given(st.fractions())
def test_ball_contains_the_fraction(number):
    quotient = flint.fmpq(number.numerator, number.denominator)
    assert certified.ball(number).contains(quotient)
    assert certified.ball(str(number)).contains(quotient)
    assert certified.as_fraction(quotient) == number


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-1e6, max_value=1e6))
def test_ball_reads_decimals_exactly(number):
    exact = Fraction(number)
    assert certified.ball(str(number)).contains(flint.fmpq(exact.numerator, exact.denominator))


@given(st.integers(-(2**20), 2**20), st.integers(0, 20))
def test_short_dyadic_floats_are_exact(numerator, power):
    number = numerator / 2**power
    ball = certified.ball(number)
    assert ball.is_exact() and float(ball) == number


def test_ball_of_an_enclosure_is_that_enclosure():
    root = certified.ball(2).sqrt()
    assert certified.ball(root) is root


@pytest.mark.parametrize(
    "number",
    [0.1, 1 / 3, 2.0**-30, 1e300, math.nan, math.inf, True, None, "", "pi", "nan", "1/0", [1], 1j],
)
def test_inexact_numbers_are_refused(number):
    with pytest.raises(ValueError, match="number must be exact"):
        certified.ball(number)


def test_infinite_enclosures_are_refused():
    with pytest.raises(ValueError, match="must be finite"):
        certified.ball(certified.ball(1) / certified.ball(0))


def test_precision_is_restored_even_after_an_error():
    before = flint.ctx.prec
    with pytest.raises(ZeroDivisionError), certified.precision(300):
        assert flint.ctx.prec == 300
        1 / 0  # noqa: B018
    assert flint.ctx.prec == before


def test_more_bits_give_a_smaller_ball():
    radii = []
    for bits in (53, 200):
        with certified.precision(bits):
            radii.append(float(certified.ball(2).sqrt().rad()))
    assert radii[1] < radii[0] * 2.0**-140


@pytest.mark.parametrize("bits", [1, 0, -5, 1.5, True, "53", None])
def test_bits_must_be_a_whole_number(bits):
    with pytest.raises(ValueError, match="bits must be a whole number"), certified.precision(bits):
        pass
    with pytest.raises(ValueError, match="bits must be a whole number"):
        certified.enclose_root(lambda x: x, -1, 2, bits)


@given(st.integers(1, 10**6), st.sampled_from([20, 53, 150]))
def test_enclosed_square_root_is_right(number, bits):
    root = certified.enclose_root(lambda x: x * x - number, 0, number + 1, bits)
    assert contains_root(root, lambda q: q * q - number)
    assert float(root.rad()) <= 2.0**-bits * (number + 1)


def test_rational_root_at_a_point_of_bisection_is_enclosed():
    for root in (Fraction(1, 2), Fraction(1, 4), Fraction(3, 7), Fraction(1, 3)):
        enclosure = certified.enclose_root(lambda x, r=root: x - certified.ball(r), 0, 1)
        assert contains_root(enclosure, lambda q, r=root: q - r)


def test_transcendental_root_agrees_with_its_closed_form():
    enclosure = certified.enclose_root(lambda x: x.exp() - 3, 1, 2, 100)
    with certified.precision(200):
        assert enclosure.contains(certified.ball(3).log())
    falling = certified.enclose_root(lambda x: x.cos(), 1, "1.6", 100)
    with certified.precision(200):
        assert falling.contains(flint.arb.pi() / 2)


@pytest.mark.parametrize(
    ("function", "lower", "upper", "message"),
    [
        (lambda x: x * x + 1, -1, 1, "provably change sign"),
        (lambda x: x * x, -1, 1, "provably change sign"),
        (lambda x: x, 0, 1, "provably change sign"),
        (lambda x: x, 2, 1, "lower must be below upper"),
        (lambda x: x, 0.1, 1, "number must be exact"),
        (lambda x: x + flint.arb(0, 0.01), -1, 2, "no decided sign"),
        (lambda x: x / (x - x), -1, 2, "provably change sign"),
    ],
)
def test_roots_that_are_not_certified_are_refused(function, lower, upper, message):
    with pytest.raises(ValueError, match=message):
        certified.enclose_root(function, lower, upper)


def test_eigenvalues_of_a_path_are_twice_cosines():
    """The path of n vertices has eigenvalues 2 cos(kπ/(n + 1))."""
    size = 8
    path = [[int(abs(i - j) == 1) for j in range(size)] for i in range(size)]
    values = certified.symmetric_eigenvalues(path)
    for index, value in enumerate(values):
        angle = flint.arb.pi() * (size - index) / (size + 1)
        assert value.overlaps(2 * angle.cos()) and float(value.rad()) < 1e-12
    for below, above in itertools.pairwise(values):
        assert below < above


def test_eigenvalues_near_together_are_separated_by_precision():
    matrix = [[1, 0], [0, 1 + Fraction(1, 10**30)]]
    with pytest.raises(ValueError, match="simple"):
        certified.symmetric_eigenvalues(matrix)
    with certified.precision(300):
        lower, upper = certified.symmetric_eigenvalues(matrix)
        assert lower < upper
        assert lower.contains(1)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, 2], [3, 4]], "symmetric"),
        ([[1, 2]], "square"),
        ([[1, 2], [2]], "square"),
        ([], "square"),
        ([[1, 0], [0, 1]], "simple"),
        ([[0.1]], "exact"),
        (flint.arb_mat(2, 3), "square"),
    ],
)
def test_matrices_without_certified_eigenvalues_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        certified.symmetric_eigenvalues(matrix)
