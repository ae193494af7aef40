"""The kinds that a proof decides: `symbolic` (SymPy) and `certified` (enclosures by python-flint).

Neither has a tolerance. Where the machine proves neither the statement nor its negation, the
check is not made: `ValueError`.
"""

import flint

from rederive_book import certified as enclosures
from rederive_book import exactness
from rederive_book.check_lines import number, power_of_ten
from rederive_book.registration import Finding, Kind, register

_RELATIONS = {
    "<": lambda left, right: (left < right, left >= right),
    ">": lambda left, right: (left > right, left <= right),
    "<=": lambda left, right: (left <= right, left > right),
    ">=": lambda left, right: (left >= right, left < right),
}


def symbolic(claim, name, *, tries, left, right, control, expected="pass", unit=""):
    """Check that two SymPy expressions are equal, by proof.

    Parameters
    ----------
    claim, name, tries, control, expected, unit
        See `rederive_book.checks`.
    left, right : int, Fraction, sympy.Expr or sympy matrix
        Exact: no floating-point number may occur. Say what is known of the symbols
        (``positive=True``, ``integer=True``): the equality is proved for all of those.

    Returns
    -------
    Check

    Raises
    ------
    ValueError
        Naming claim and check, if the difference neither simplifies to zero nor is shown to be
        non-zero, or an argument is not exact.

    Notes
    -----
    Passes if and only if SymPy brings left − right to 0, entry by entry for matrices: by expansion
    or over a common denominator, else by its simplifications. Fails if and only if the difference
    is non-zero at exact rational values of the symbols that obey their assumptions: as a rational
    number, or in two precisions (30 and 60 digits) that agree. This is tried before anything but
    expansion and common denominators. The distance is |left − right| there.
    """
    arguments = {"left": left, "right": right}
    return register(SYMBOLIC, claim, name, tries, arguments, control, expected, unit)


def certified(claim, name, *, tries, left, relation, right, control, expected="pass", unit=""):
    """Check an inequality between exact numbers or enclosures, by proof.

    Parameters
    ----------
    claim, name, tries, control, expected, unit
        See `rederive_book.checks`.
    left, right : flint.arb, int, Fraction, decimal str, or short dyadic float
        See `rederive_book.certified.ball`.
    relation : {"<", ">", "<=", ">="}

    Returns
    -------
    Check

    Raises
    ------
    ValueError
        Naming claim and check, if the enclosures overlap so that neither the inequality nor its
        negation is proved, or a side is not exact.

    Notes
    -----
    Two sides that are both exact fractions are compared as fractions. The distance of the control
    is the gap by which it is wrong, in units of the radius of the enclosures (or of the last bit
    of the working precision, whichever is larger).
    """
    arguments = {"left": left, "relation": relation, "right": right}
    return register(CERTIFIED, claim, name, tries, arguments, control, expected, unit)


def _evaluate_symbolic(left, right):
    left = exactness.as_expression(left, "left")
    right = exactness.as_expression(right, "right")
    verdict, gap, where = exactness.decide_zero(left, right)
    at_point = f" at {where}" if where else ""
    differ = f"the sides differ by {number(gap)}{at_point}"
    return Finding(
        verdict=verdict,
        measured=exactness.text(left),
        predicted=exactness.text(right),
        uncertainty=0.0,
        source="proof: exact algebra",
        statistic={"name": "difference", "value": gap, "dof": None, "level": None},
        deviation=gap,
        summary="proved, the difference simplifies to 0" if verdict > 0 else differ,
        brief="the difference simplifies to 0" if verdict > 0 else differ,
        gauge={"size": gap},
    )


def _evaluate_certified(left, relation, right):
    if not isinstance(relation, str) or relation not in _RELATIONS:
        raise ValueError(f"relation must be one of {', '.join(_RELATIONS)}, got {relation!r}")
    balls = [_ball(left, "left"), _ball(right, "right")]
    exact = [enclosures.as_fraction(side) for side in (left, right)]
    proved, refuted = _RELATIONS[relation](*(balls if None in exact else exact))
    if not proved and not refuted:
        raise ValueError(
            f"undecided: {balls[0]} {relation} {balls[1]} is neither proved nor disproved; raise "
            "the precision"
        )
    gap = balls[0] - balls[1]
    radius = float(gap.rad().upper())
    middles = [float(side.mid()) for side in balls]
    resolution = max(radius, max(map(abs, middles)) * 2.0**-flint.ctx.prec)
    sign = {"<=": "≤", ">=": "≥"}.get(relation, relation)
    sides = f"{_digits(balls[0])} {sign} {_digits(balls[1])}"
    word = "proved" if proved else "disproved"
    return Finding(
        verdict=1 if proved else -1,
        measured=middles[0],
        predicted=middles[1],
        uncertainty=radius,
        source="proof: radius of the enclosures (ball arithmetic)",
        statistic={
            "name": "left minus right",
            "value": float(gap.mid()),
            "dof": None,
            "level": None,
        },
        deviation=float(gap.mid()),
        summary=f"{sides} is {word}" + (f", enclosed to {number(radius)}" if radius else ""),
        brief=f"{sides} is {word}",
        gauge={"size": abs(float(gap.mid())), "resolution": resolution},
    )


def _algebraic_gap(wrong, right, shared):
    return wrong.gauge["size"]


def _enclosed_gap(wrong, right, shared):
    resolution = wrong.gauge["resolution"]
    return wrong.gauge["size"] / resolution if resolution > 0.0 else 0.0


def _ball(side, argument):
    try:
        return enclosures.ball(side)
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from error


def _digits(ball):
    mantissa, _, power = ball.str(8, radius=False).partition("e")
    return (mantissa + (power_of_ten(int(power)) if power else "")).replace("-", "−")


SYMBOLIC = Kind("symbolic", _evaluate_symbolic, _algebraic_gap, frozenset({"left", "right"}))
CERTIFIED = Kind(
    "certified",
    _evaluate_certified,
    _enclosed_gap,
    frozenset({"left", "relation", "right"}),
)
