"""Decides whether a symbolic expression is zero: proved, refuted at an exact point, or neither."""

from numbers import Rational

_DIGITS = 30
_LONGEST_TEXT = 200
_CANDIDATES = [(7, 5), (13, 11), (2, 7), (-9, 7), (17, 3), (1, 19), (-5, 13), (29, 23)] + [
    (whole, 1) for whole in (2, 3, 5, 4, 7, 1, -2, -3, 11, 8, 6, -7, 0)
]


def as_expression(value, argument):
    """Turn an int, Fraction, SymPy expression or matrix into SymPy; refuse anything inexact."""
    import sympy

    if isinstance(value, bool):
        raise ValueError(f"{argument} must be exact, got {value}")
    if isinstance(value, sympy.MatrixBase):
        value = sympy.ImmutableMatrix(value)
    elif not isinstance(value, sympy.Expr):
        if not isinstance(value, Rational):
            raise ValueError(
                f"{argument} must be a SymPy expression or matrix, an int or a Fraction, "
                f"got {type(value).__name__}"
            )
        value = sympy.Rational(int(value.numerator), int(value.denominator))
    if value.atoms(sympy.Float):
        raise ValueError(f"{argument} must be exact, but holds floating-point numbers: {value}")
    bounded = value.atoms(sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit)
    outside = value.xreplace({part: sympy.Integer(1) for part in bounded})
    if value.has(sympy.nan, sympy.zoo) or outside.has(sympy.oo, -sympy.oo):
        raise ValueError(f"{argument} must be finite, got {value}")
    return value


def text(expression):
    """The expression as the record keeps it: one line, cut off where it is long."""
    shown = str(expression.tolist() if hasattr(expression, "tolist") else expression)
    return shown if len(shown) <= _LONGEST_TEXT else shown[: _LONGEST_TEXT - 1] + "…"


def decide_zero(left, right):
    """Decide whether left − right is zero, for matrices entry by entry.

    Parameters
    ----------
    left, right : sympy.Expr or sympy matrices of one shape

    Returns
    -------
    verdict : int
        +1 if the difference is proved to be zero, −1 if it is shown not to be.
    gap : float
        0 in the first case; else |left − right| at the point that shows it.
    where : str
        The point, "" if the expressions hold no symbol.

    Raises
    ------
    ValueError
        If neither is reached.
    """
    import sympy

    if isinstance(left, sympy.MatrixBase) != isinstance(right, sympy.MatrixBase):
        raise ValueError("left and right must both be matrices or both be expressions")
    if not isinstance(left, sympy.MatrixBase):
        differences = [left - right]
    elif left.shape != right.shape or 0 in left.shape:
        raise ValueError(f"matrices must have one shape, got {left.shape} and {right.shape}")
    else:
        differences = list(left - right)
    differences = [_evaluated(d) for d in differences if not _is_zero(d, _quick_steps())]
    shown = [found for found in map(_nonzero_value, differences) if found is not None]
    if shown:
        return -1, *max(shown)
    for difference in differences:
        if not _is_zero(difference, _thorough_steps()):
            raise ValueError(
                f"undecided: {text(difference)} neither simplifies to zero nor is shown non-zero"
            )
    return 1, 0.0, ""


def _quick_steps():
    import sympy

    return (
        lambda expression: expression,
        sympy.expand,
        lambda expression: sympy.cancel(sympy.together(expression)),
    )


def _thorough_steps():
    import sympy

    return (
        lambda expression: sympy.radsimp(sympy.expand(expression)),
        sympy.simplify,
        lambda expression: sympy.simplify(sympy.expand(expression, func=True)),
    )


def _is_zero(difference, steps):
    return any(_is_zero_after(step, difference) for step in steps)


def _is_zero_after(step, difference):
    import sympy

    try:
        return step(difference) == 0
    except (NotImplementedError, sympy.PolynomialError, TypeError, ValueError):
        return False


def _evaluated(difference):
    """Carry out integrals, sums, products and limits, which are slow to evaluate at a point."""
    import sympy

    unevaluated = (sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit, sympy.Derivative)
    return difference.doit() if difference.has(*unevaluated) else difference


def _nonzero_value(difference):
    """Find an exact point where the difference is shown non-zero; its size and the point."""
    import sympy

    candidates = [sympy.Rational(*pair) for pair in _CANDIDATES]
    symbols = sorted(difference.free_symbols, key=str)
    for shift in range(len(candidates) if symbols else 1):
        point = {}
        for index, symbol in enumerate(symbols):
            start = (shift + 3 * index) % len(candidates)
            ordered = candidates[start:] + candidates[:start]
            point[symbol] = next((value for value in ordered if _allowed(value, symbol)), None)
        if None in point.values():
            return None
        size = _size_at(difference, point)
        if size:
            return size, ", ".join(f"{symbol} = {value}" for symbol, value in point.items())
    return None


def _size_at(difference, point):
    """|difference| at the point where that is beyond doubt non-zero, else 0."""
    import sympy

    try:
        value = difference.subs(point, simultaneous=True) if point else difference
        if value.is_Rational:
            return abs(float(value))
        rough, fine = (complex(sympy.N(value, digits)) for digits in (_DIGITS, 2 * _DIGITS))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, NotImplementedError):
        return 0.0
    size = abs(fine)
    agree = 1e-20 < size < float("inf") and abs(rough - fine) <= 1e-12 * size
    return size if agree else 0.0


def _allowed(value, symbol):
    return symbol.is_commutative and all(
        getattr(value, f"is_{key}", None) in (wanted, None)
        for key, wanted in symbol.assumptions0.items()
    )
