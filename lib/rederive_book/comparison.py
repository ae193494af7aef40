"""Ledgers side by side: the table of verdicts, and what changed between two builds."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rederive_book.check_lines import number

#: Verdict -> the sign that goes before the word, so that tables can be scanned without colour.
SIGNS = {"holds": "✓", "amended": "≈", "refuted": "✗", "open": "?", None: "–"}

#: Unit of a control's distance -> the kinds of checks that have it.
_UNITS = {
    "standard errors": ("estimate", "distribution", "order", "rate"),
    "bounds": ("identity", "bound", "rate"),
}

#: Relative difference up to which two columns of a figure count as equal, see `compare_figures`.
FIGURE_TOLERANCE = 2.0**-26


def verdict_words(verdict: str | None) -> str:
    """A verdict as sign and word; None is *untried*."""
    return f"{SIGNS[verdict]} {verdict or 'untried'}"


def rejected_controls(entry: Mapping[str, Any]) -> int:
    """How many checks of a claim saw their control rejected."""
    return sum(check["control"]["rejected"] for check in entry["checks"])


def nearest_control(entry: Mapping[str, Any]) -> str:
    """How near a claim's controls come, in words: the nearest of the least certain kind.

    Standard errors if a check is stochastic, else bounds (of rounding) if one has bounds, else the
    controls are refuted by proof.
    """
    for unit, kinds in _UNITS.items():
        found = [
            check["control"]["distance"]
            for check in entry["checks"]
            if check["kind"] in kinds
            and (unit == "bounds" or check["statistic"]["level"] is not None)
        ]
        if found and None not in found:
            return f"nearest {number(min(found))} {unit} off"
    return "by proof" if entry["checks"] else "–"


def summary_markdown(ledger: Mapping[str, Any]) -> str:
    """The verdicts of a ledger as a Markdown table, for a job's summary."""
    entries = ledger["claims"]
    counts = Counter(entry["verdict"] for entry in entries)
    words = ", ".join(f"{counts[v]} {v or 'untried'}" for v in SIGNS if counts[v])
    run = ledger["run"]
    lines = [
        f"### {len(entries)} claims: {words or 'none'}",
        "",
        f"profile {run['profile']}, device {run['device']}, seed {run['seed']}, "
        f"commit {(run['commit'] or 'unknown')[:12]}",
        "",
        "| claim | verdict | declared | checks | controls rejected | how | page |",
        "|---|---|---|--:|--:|---|---|",
    ]
    for entry in entries:
        cells = [
            f"`{entry['id']}`",
            verdict_words(entry["verdict"])
            + (f" ({entry['untried']})" if entry["untried"] else ""),
            entry["declared"],
            str(len(entry["checks"])),
            str(rejected_controls(entry)),
            nearest_control(entry),
            entry["page"] or "–",
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What changed between two ledgers, in words.

    Parameters
    ----------
    old, new : mapping

    Returns
    -------
    list of str
        Claims and checks that came or went, verdicts that changed, and measured numbers that lie
        further apart than the two uncertainties allow.

    Notes
    -----
    Bounds a and b add up to a + b. Standard errors a and b allow t·√(a² + b²) with the quantile t
    of the checks' own level, so that another seed alone changes nothing. Where a check measures
    several numbers, its one uncertainty stands for all of them.
    """
    before, after = ({e["id"]: e for e in ledger["claims"]} for ledger in (old, new))
    return [
        *(f"lost claim {c} (was {before[c]['verdict']})" for c in before if c not in after),
        *(f"new claim {c}: {after[c]['verdict']}" for c in after if c not in before),
        *(line for c in after if c in before for line in _entry_changes(before[c], after[c])),
    ]


def _entry_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    where = f"claim {new['id']} on page {new['page']}"
    for key in ("declared", "verdict"):
        if old[key] != new[key]:
            what = "declared verdict" if key == "declared" else "verdict"
            yield f"{where}: {what} {old[key] or 'untried'} -> {new[key] or 'untried'}"
    before, after = ({check["name"]: check for check in e["checks"]} for e in (old, new))
    if new["untried"] or old["untried"]:
        return
    for name in before:
        if name not in after:
            yield f"{where}: lost check {name!r}"
    for name, check in after.items():
        if name not in before:
            yield f"{where}: new check {name!r}"
        elif before[name]["outcome"] != check["outcome"]:
            yield f"{where}: check {name!r} {before[name]['outcome']} -> {check['outcome']}"
        elif difference := _measured_change(before[name], check):
            yield f"{where}: check {name!r} measured {difference}"


def _measured_change(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """The first entry that moved by more than both uncertainties allow, or None."""
    a, b = old["measured"], new["measured"]
    if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
        return None if a == b else f"{a} -> {b}"
    first, second = (x if isinstance(x, list) else [x] for x in (a, b))
    if len(first) != len(second):
        return f"{len(first)} numbers -> {len(second)} numbers"
    allowed = _allowed_change(old, new)
    for index, (x, y) in enumerate(zip(first, second, strict=True)):
        if abs(x - y) > allowed:
            entry = f"entry {index}: " if len(first) > 1 else ""
            return f"{entry}{x:.6g} -> {y:.6g}, further apart than {allowed:.2g}"
    return None


def _allowed_change(old: Mapping[str, Any], new: Mapping[str, Any]) -> float:
    a, b = (check["uncertainty"] or 0.0 for check in (old, new))
    if not all(_is_standard_error(check) for check in (old, new)):
        return a + b
    from rederive_book.statistics import quantile  # brings SciPy, which most callers do not need

    level = min(check["statistic"]["level"] for check in (old, new))
    dof = min(check["statistic"]["dof"] or math.inf for check in (old, new))
    return quantile(level, 1, dof) * math.hypot(a, b)


def _is_standard_error(check: Mapping[str, Any]) -> bool:
    stochastic = check["statistic"]["level"] is not None
    return stochastic and check["source_of_uncertainty"].startswith("standard error")


def compare_figures(
    old: Path, new: Path, relative_tolerance: float = FIGURE_TOLERANCE
) -> list[str]:
    """What differs between the data of the figures of two builds.

    Parameters
    ----------
    old, new : Path
        Folders as `rederive_book.executed.write_figures` fills them.
    relative_tolerance : float
        Largest difference, relative to the largest absolute value of the column.

    Returns
    -------
    list of str

    Notes
    -----
    The same page on two machines draws the same random numbers, but sums run in another order and
    multiplications may be fused. In float64 each rounding is at most u = 2⁻⁵³ relative, and a
    computation multiplies that by its number of operations and its condition. The default
    2⁻²⁶ ≈ √u leaves room for a product of both up to 2²⁷ ≈ 10⁸ and still compares seven digits,
    more than a picture shows. It is relative to the column's largest value, since entries near a
    zero crossing have no relative accuracy to speak of.
    """
    old, new = Path(old), Path(new)
    files = [
        {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.csv"))}
        for folder in (old, new)
    ]
    return [
        *(f"figure {name}: only in {old}" for name in files[0] if name not in files[1]),
        *(f"figure {name}: only in {new}" for name in files[1] if name not in files[0]),
        *(
            f"figure {name}: {line}"
            for name in files[0]
            if name in files[1]
            for line in _figure_changes(files[0][name], files[1][name], relative_tolerance)
        ),
    ]


def _figure_changes(old: Path, new: Path, tolerance: float) -> Iterator[str]:
    first, second = (_columns(path) for path in (old, new))
    if list(first) != list(second):
        yield f"columns {', '.join(first)} -> {', '.join(second)}"
        return
    for name, before in first.items():
        after = second[name]
        if len(before) != len(after):
            yield f"column {name}: {len(before)} rows -> {len(after)} rows"
            continue
        if "" in (before + after) and [x == "" for x in before] != [x == "" for x in after]:
            yield f"column {name}: numbers are missing in other rows"
            continue
        try:
            numbers = [[float(x) for x in column if x != ""] for column in (before, after)]
        except ValueError:
            if before != after:
                yield f"column {name}: its words differ"
            continue
        scale = max((abs(x) for column in numbers for x in column), default=0.0)
        worst = max((abs(x - y) for x, y in zip(*numbers, strict=True)), default=0.0)
        if worst > tolerance * scale:
            yield f"column {name}: differs by {worst:.3g}, {worst / scale:.2g} of its scale"


def _columns(path: Path) -> dict[str, list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    columns = list(zip_longest(*rows, fillvalue="")) or [()] * len(header)
    return {name: list(column) for name, column in zip(header, columns, strict=True)}
