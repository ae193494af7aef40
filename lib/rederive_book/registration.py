"""Makes a check out of a kind, its arguments and its control: the rules that all kinds share."""

import copy
import json
import math
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rederive_book.check_lines import plain_line, show

TRIES = ("statement", "amendment", "counterexample")
EXPECTED = ("pass", "fail")
_CLAIM = re.compile(r"[a-z][a-z-]*\.[a-z][a-z0-9-]*")


class Control:
    """The nearest wrong statement that a reader could believe, as replaced arguments of a check.

    Parameters
    ----------
    what : str
        The wrong statement in words. With ``expected="fail"`` the right one.
    **overrides
        Arguments of the same check to be replaced, e.g. ``predicted=``.
    """

    def __init__(self, what, /, **overrides):
        self.what = _line_of_text(what, "what")
        self.overrides = overrides


@dataclass(frozen=True)
class Finding:
    """What one evaluation of a check found.

    Attributes
    ----------
    verdict : int
        +1 holds, −1 refuted, 0 undecided.
    measured, predicted : float, list of float or str
    uncertainty : float
    source : str
        Where the uncertainty comes from.
    statistic : dict
        With keys name, value, dof and level.
    deviation : float
        By how much the statement is missed; recorded as ``control.measured``.
    summary, brief : str
        Measured, predicted and allowed in words; the deviation in words.
    gauge : dict
        What the kind's `distance` needs; ``required`` is there if, and only if, the finding is
        stochastic: the least distance that a control must have.
    """

    verdict: int
    measured: Any
    predicted: Any
    uncertainty: float
    source: str
    statistic: dict
    deviation: float
    summary: str
    brief: str
    gauge: dict = field(default_factory=dict)

    @property
    def stochastic(self):
        """Whether a statistical test decided."""
        return "required" in self.gauge


@dataclass(frozen=True)
class Kind:
    """A kind of check.

    Attributes
    ----------
    name : str
    evaluate : callable
        From the kind's arguments to a `Finding`.
    distance : callable
        From the findings of the wrong and the right statement, and whether both were tried on
        the same data, to how far the wrong one is off.
    statement : frozenset of str
        The arguments that make up the statement; a control replaces at least one of them.
    data : frozenset of str
        Those among them that are data; a control that replaces none of them shares the data.
    least, unit : float, str
        Where a bound decides: a control counts as rejected only beyond this distance, whose unit
        is shown. Stochastic findings count in standard errors instead.
    """

    name: str
    evaluate: Callable
    distance: Callable
    statement: frozenset
    data: frozenset = frozenset()
    least: float = 0.0
    unit: str = ""


class Check:
    """A registered check; `record` is what the ledger keeps."""

    __slots__ = ("_line", "_record")

    def __init__(self, record, line):
        self._record = record
        self._line = line

    @property
    def record(self):
        """The record as a fresh dictionary of JSON types."""
        return copy.deepcopy(self._record)

    @property
    def passed(self):
        """Whether the outcome is the expected one and the control was rejected."""
        control = self._record["control"]
        return self._record["outcome"] == self._record["expected"] and control["rejected"]

    def __repr__(self):
        return self._line

    def _ipython_display_(self):
        """Stay silent as the last expression of a cell: the line has been shown already."""


def register(kind, claim, name, tries, arguments, control, expected, unit):
    """Evaluate a check and its control, show the line, return the `Check`.

    The functions of `rederive_book.checks` end here; `arguments` are the kind's own.
    """
    if not isinstance(claim, str) or not _CLAIM.fullmatch(claim):
        raise ValueError(f"claim must look like folder.subject, got {claim!r}")
    try:
        slug = slugify(_line_of_text(name, "name"))
        _refuse_wrong_frame(kind, tries, arguments, control, expected, unit)
        main = kind.evaluate(**arguments)
        rival = _evaluate_control(kind, arguments, control)
        if main.verdict == 0 and expected == "fail":
            raise ValueError("undecided, so the statement is not rejected: more data are needed")
        distance = _distance(kind, main, rival, control, expected)
        wanted = -1 if expected == "pass" else 1
        record = {
            "claim": claim,
            "name": name,
            "kind": kind.name,
            "tries": tries,
            "expected": expected,
            "outcome": "pass" if main.verdict > 0 else "fail",
            "measured": main.measured,
            "predicted": main.predicted,
            "unit": unit,
            "uncertainty": main.uncertainty,
            "source_of_uncertainty": main.source,
            "statistic": main.statistic,
            "control": {
                "what": control.what,
                "measured": rival.deviation,
                "distance": distance,
                "rejected": rival.verdict == wanted and distance > kind.least,
            },
            "anchor": f"check-{claim.replace('.', '-')}-{slug}",
            "stochastic": main.stochastic,
            "tests": 2 if main.stochastic else 0,
        }
        _require_finite(record)
    except ValueError as error:
        raise ValueError(f"{claim}, check {name!r}: {error}") from error
    distance_unit = "standard errors" if main.stochastic else kind.unit
    line = plain_line(record, main.summary, rival.brief, distance_unit)
    show(record, line)
    return Check(record, line)


def slugify(text):
    """Lower-case ASCII letters and digits joined by single hyphens."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", ascii_text.lower()).strip("-")
    if not slug:
        raise ValueError(f"name must hold a letter or digit, got {text!r}")
    return slug


def _refuse_wrong_frame(kind, tries, arguments, control, expected, unit):
    for value, allowed, argument in ((tries, TRIES, "tries"), (expected, EXPECTED, "expected")):
        if value not in allowed:
            raise ValueError(f"{argument} must be one of {', '.join(allowed)}, got {value!r}")
    if expected == "fail" and tries != "statement":
        raise ValueError(f"expected='fail' is for tries='statement', got tries={tries!r}")
    if not isinstance(unit, str):
        raise ValueError(f"unit must be a string, got {unit!r}")
    if not isinstance(control, Control):
        raise ValueError(f"control must be a Control, got {type(control).__name__}")
    unknown = sorted(set(control.overrides) - set(arguments))
    if unknown:
        allowed = ", ".join(sorted(arguments))
        raise ValueError(f"control replaces {', '.join(unknown)}; {kind.name} has only {allowed}")
    if not set(control.overrides) & kind.statement:
        allowed = ", ".join(sorted(kind.statement))
        raise ValueError(
            f"control {control.what!r} is no rival statement: it must replace one of {allowed}"
        )


def _evaluate_control(kind, arguments, control):
    try:
        return kind.evaluate(**{**arguments, **control.overrides})
    except ValueError as error:
        raise ValueError(f"control {control.what!r}: {error}") from error


def _distance(kind, main, rival, control, expected):
    if main.stochastic != rival.stochastic:
        raise ValueError("check and control must both be stochastic or both be exact")
    wrong, right = (rival, main) if expected == "pass" else (main, rival)
    distance = float(kind.distance(wrong, right, not set(control.overrides) & kind.data))
    needed = wrong.gauge.get("required", 0.0)
    if not distance >= needed:
        raise ValueError(
            f"control {control.what!r} lies {distance:.3g} standard errors away, at least "
            f"{needed:.3g} are needed: hand over more replicates or a rival farther off"
        )
    return distance


def _require_finite(record):
    for key in ("measured", "predicted", "uncertainty"):
        values = record[key] if isinstance(record[key], list) else [record[key]]
        if any(not isinstance(value, str) and not math.isfinite(value) for value in values):
            raise ValueError(f"{key} must be finite, got {record[key]}")
    try:
        json.dumps(record, allow_nan=False)
    except ValueError as error:
        raise ValueError("every number of the record must be finite") from error


def _line_of_text(value, argument):
    if not isinstance(value, str) or not value.strip() or len(value.splitlines()) != 1:
        raise ValueError(f"{argument} must be one line of text, got {value!r}")
    return value
