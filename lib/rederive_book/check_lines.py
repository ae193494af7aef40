"""The one quiet line that a check leaves under its theorem, in words and numbers."""

import copy
import html
import math
import re
import sys

_GREEK = dict(
    zip(
        (
            "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma "
            "tau upsilon phi chi psi omega"
        ).split(),
        "αβγδεζηθικλμνξπρστυφχψω",
        strict=True,
    )
)
#: A symbol of a computer algebra where a value is given to it: ``delta = 7/5``.
_SYMBOL = re.compile(rf"\b({'|'.join(_GREEK)}|[A-Za-z])([0-9]?)(?= = )")


def number(value, digits=2):
    """A number for readers: 0.069, 3.1·10⁻¹⁷, with `digits` significant digits."""
    if not math.isfinite(value):
        return str(value)
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = int(exponent)
    if value == 0 or -4 <= power < 6:
        text = _without_zeros(f"{value:.{max(0, digits - 1 - power)}f}") if value else "0"
    else:
        text = f"{_without_zeros(mantissa)}{power_of_ten(power)}"
    return text.replace("-", "−")


def power_of_ten(power):
    """A factor as readers know it: ·10⁻⁸."""
    return "·10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def with_error(value, error):
    """A number and the half-width of its interval, to the digits that the latter leaves."""
    largest = max(abs(value), error)
    if not math.isfinite(largest):
        return f"{number(value)} ± {number(error)}"
    if error < 1e-6 or not 1e-3 <= largest < 1e6:
        digits = 2 + max(0, math.floor(math.log10(largest)) - math.floor(math.log10(error)))
        return f"{number(value, min(digits, 16))} ± {number(error)}"
    decimals = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{decimals}f} ± {error:.{decimals}f}".replace("-", "−")


def plain_line(record, summary, control_brief, distance_unit):
    """The line as plain text.

    Parameters
    ----------
    record : dict
        The record of the check.
    summary, control_brief : str
        What the check and its control found, without a full stop.
    distance_unit : str
        "bounds", "standard errors", or "" where a proof leaves nothing to measure.
    """
    control = record["control"]
    if record["unit"]:
        summary = f"{summary} (in {record['unit']})"
    passing = record["expected"] == "pass"
    if record["outcome"] != record["expected"]:
        verdict = f"✗ Check — {record['name']}: does not come out as expected: {summary}."
    elif passing:
        verdict = f"✓ Check — {record['name']}: {summary}."
    else:
        verdict = (
            f"✗ as expected — {record['name']}: the statement as given is rejected: {summary}."
        )
    answer = "rejected" if passing else "accepted"
    if not control["rejected"]:
        answer = f"not {answer}, so that this check proves nothing"
    apart = ""
    if distance_unit:
        apart = f"{number(control['distance'])} {distance_unit}"
        apart = f" ({apart} away)" if passing else f"; the rivals lie {apart} apart"
    line = f"{verdict} Control, {control['what']}: {answer}, {control_brief}{apart}."
    return with_letters(line)


def with_letters(line):
    """A line whose symbols are those of the text: δ for delta, y₀ for y0, where a value follows."""

    def letter(found):
        if found[0] == "sigma2":  # a variance, as everywhere in this book
            return "σ²"
        index = found[2].translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
        return _GREEK.get(found[1], found[1]) + index

    return _SYMBOL.sub(letter, line)


def show(record, line):
    """Display the line and leave the record in the output's metadata; only inside IPython."""
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        return
    from IPython.display import display

    good = record["outcome"] == record["expected"] and record["control"]["rejected"]
    state = "fail" if not good else "pass" if record["expected"] == "pass" else "expected-fail"
    body = (
        f'<div class="rederive-check rederive-{state}" id="{html.escape(record["anchor"])}">'
        f"{html.escape(line)}</div>"
    )
    display(
        {"text/html": body, "text/plain": line},
        raw=True,
        metadata={"rederive_check": copy.deepcopy(record)},
    )


def _without_zeros(decimal):
    return decimal.rstrip("0").rstrip(".") if "." in decimal else decimal
