"""Thin, honest helpers over python-flint: numbers enclosed in balls, roots and eigenvalues.

A ball (`flint.arb`) is a midpoint and a radius; every operation returns a ball that provably
contains the exact result. An inequality between balls is True only if it holds for all their
points, so that a comparison of two overlapping balls is False both ways: undecided.
"""

import contextlib
from fractions import Fraction
from numbers import Rational

import flint

_SHORT_DYADIC = 2**20
_SHARES = (Fraction(1, 2), Fraction(3, 7), Fraction(4, 7), Fraction(2, 5))


@contextlib.contextmanager
def precision(bits):
    """Work with `bits` bits inside the ``with`` block, and restore the precision after it.

    Parameters
    ----------
    bits : int
        At least 2.

    Raises
    ------
    ValueError
        If `bits` is anything else.
    """
    before = flint.ctx.prec
    flint.ctx.prec = _bits(bits)
    try:
        yield
    finally:
        flint.ctx.prec = before


def ball(number):
    """Enclose an exactly given number.

    Parameters
    ----------
    number : int, Fraction, str, flint.arb, flint.fmpz, flint.fmpq, or float
        A string is read as an exact fraction or decimal: ``"0.1"`` and ``"1/10"`` are one tenth.
        A float is accepted only if it is a fraction a/b with b a power of two up to 2²⁰ and
        |a| ≤ 2²⁰ (0.5, 3.0, −1.25): whoever writes 0.1 means one tenth, which no float is.

    Returns
    -------
    flint.arb
        A ball containing the number; of radius 0 if it fits the working precision.

    Raises
    ------
    ValueError
        If the number is not exactly given, or not finite.

    Examples
    --------
    >>> (10 * ball("0.1")).contains(1)
    True
    """
    if isinstance(number, flint.arb):
        if not number.is_finite():
            raise ValueError(f"number must be finite, got {number}")
        return number
    exact = as_fraction(number)
    if exact is None:
        raise ValueError(
            "number must be exact (int, Fraction, decimal string, arb, or a short dyadic float "
            f"such as 0.25), got {number!r}; one tenth is '0.1' or Fraction(1, 10)"
        )
    return flint.arb(flint.fmpq(exact.numerator, exact.denominator))


def as_fraction(number):
    """Give the Fraction that an exactly written number means, or None if it is no such number."""
    if isinstance(number, bool):
        return None
    if isinstance(number, (flint.fmpz, flint.fmpq)):
        number = flint.fmpq(number)
        return Fraction(int(number.p), int(number.q))
    if isinstance(number, Rational):
        return Fraction(int(number.numerator), int(number.denominator))
    if isinstance(number, str):
        try:
            return Fraction(number.strip())
        except (ValueError, ZeroDivisionError):
            return None
    if isinstance(number, float) and number - number == 0.0:
        exact = Fraction(number)
        if max(abs(exact.numerator), exact.denominator) <= _SHORT_DYADIC:
            return exact
    return None


def enclose_root(function, lower, upper, bits=53):
    """Enclose a root of a continuous function by certified changes of sign.

    Parameters
    ----------
    function : callable
        Continuous on [lower, upper]; takes a `flint.arb` and returns one.
    lower, upper : exact numbers, see `ball`
        The signs there must be provably opposite. An end that no float holds, such as 1/3, is
        replaced by the midpoint of its ball.
    bits : int
        The enclosure is narrowed below 2^−bits · max(1, |lower|, |upper|), working with
        `bits` + 64 bits.

    Returns
    -------
    flint.arb
        A ball containing a root. It is the only root only if the function is monotone.

    Raises
    ------
    ValueError
        If the signs at the ends are not proved to be opposite, or a sign within cannot be decided
        (a multiple root, or a function evaluated too loosely).
    """
    with precision(_bits(bits) + 64):
        low, high = ball(lower).mid(), ball(upper).mid()
        if not low < high:
            raise ValueError(f"lower must be below upper, got {low} and {high}")
        sign = _sign(function(low))
        if sign * _sign(function(high)) >= 0:
            raise ValueError(
                "function must provably change sign, got "
                f"{function(low)} at {low} and {function(high)} at {high}"
            )
        one = flint.arb(1)
        width = one.max(abs(low)).max(abs(high)) / flint.arb(2) ** bits
        while not high - low < width:
            middle, here = _signed_point(function, low, high)
            low, high = (middle, high) if here == sign else (low, middle)
        return low.union(high)


def symmetric_eigenvalues(matrix):
    """Enclose the eigenvalues of a real symmetric matrix whose eigenvalues are simple.

    Parameters
    ----------
    matrix : nested sequence or flint.arb_mat
        Square (n, n); entries as `ball` takes them. Symmetric entry by entry.

    Returns
    -------
    list of flint.arb
        n disjoint balls, ascending, each containing exactly one eigenvalue.

    Raises
    ------
    ValueError
        If the matrix is not square and symmetric, or the eigenvalues are not separated at the
        working precision.

    Notes
    -----
    Arb isolates the eigenvalues in disjoint boxes of the complex plane. Those of a symmetric
    matrix are real, so every box meets the real line and their real parts are disjoint too.
    """
    if not isinstance(matrix, flint.arb_mat):
        rows = [[ball(entry) for entry in row] for row in matrix]
        if not rows or any(len(row) != len(rows) for row in rows):
            raise ValueError(f"matrix must be square, got rows of {[len(row) for row in rows]}")
        matrix = flint.arb_mat(rows)
    size = matrix.nrows()
    if size == 0 or matrix.ncols() != size:
        raise ValueError(f"matrix must be square, got {size} × {matrix.ncols()}")
    for row in range(size):
        for column in range(row):
            if not _identical(matrix[row, column], matrix[column, row]):
                raise ValueError(f"matrix must be symmetric, is not at ({row}, {column})")
    try:
        boxes = flint.acb_mat(matrix).eig()
    except ValueError as error:
        raise ValueError("eigenvalues must be simple at the working precision") from error
    return sorted((box.real for box in boxes), key=lambda value: value.mid())


def _signed_point(function, low, high):
    """A point inside with a decided sign; several are tried, as one of them may be the root."""
    for share in _SHARES:
        middle = (low + (high - low) * ball(share)).mid()
        sign = _sign(function(middle))
        if sign and low < middle < high:
            return middle, sign
    raise ValueError(f"function has no decided sign near {middle}: raise bits or move the ends")


def _identical(ball, other):
    return bool(ball.mid() == other.mid() and ball.rad() == other.rad())


def _sign(value):
    if value > 0:
        return 1
    return -1 if value < 0 else 0


def _bits(bits):
    if isinstance(bits, bool) or not isinstance(bits, int) or bits < 2:
        raise ValueError(f"bits must be a whole number of at least 2, got {bits!r}")
    return bits
