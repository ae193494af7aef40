"""What the page says of the mutants: counts with intervals, and every survivor with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import scipy.stats
import yaml

LINES = "% mutants: written by python -m audit", "% end of mutants"
REASONS = Path(__file__).with_name("survivors.yml")
ENOUGH = 0.9  # the share of mutants that the tests have to kill


def reasons(file: Path | None = None) -> dict[tuple[str, str, str], str]:
    """Why mutants survive: module, line and changed line to the reason.

    Raises
    ------
    ValueError
        If an entry lacks a field or has another one.
    """
    found = {}
    for entry in yaml.safe_load((file or REASONS).read_text(encoding="utf-8")) or []:
        if set(entry) != {"module", "was", "becomes", "why"}:
            raise ValueError(f"survivors.yml: expected module, was, becomes and why, got {entry!r}")
        found[entry["module"], entry["was"], entry["becomes"]] = entry["why"]
    return found


def summary(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What all modules together showed.

    Returns
    -------
    dict
        `tried`, `killed`, `timeouts`, `share` (of those tried; 1 if none was), `interval` (95 %,
        Clopper and Pearson), `same` (how many survivors are no faults), `sharper` (the share
        without them, with its interval), `least`, `most` (mutants a module), and `survivors`: lists
        of module, mutant and reason or None.
    """
    tried = sum(module["tried"] for module in stored["modules"].values())
    killed = sum(module["killed"] for module in stored["modules"].values())
    why = reasons()
    survivors = [
        (name, mutant, why.get((name, mutant["was"], mutant["becomes"])))
        for name, module in sorted(stored["modules"].items())
        for mutant in module["survivors"]
    ]
    same = sum(reason is not None for _, _, reason in survivors)
    counts = [module["tried"] for module in stored["modules"].values()]
    return {
        "tried": tried,
        "killed": killed,
        "timeouts": sum(len(module["timeouts"]) for module in stored["modules"].values()),
        "share": killed / tried if tried else 1.0,
        "interval": interval(killed, tried),
        "same": same,
        "sharper": (killed / max(tried - same, 1), *interval(killed, tried - same)),
        "least": min(counts, default=0),
        "most": max(counts, default=0),
        "survivors": survivors,
    }


def interval(killed: int, tried: int) -> tuple[float, float]:
    """Of a share: 95 %, after Clopper and Pearson."""
    if not tried:
        return 0.0, 1.0
    found = scipy.stats.binomtest(killed, tried).proportion_ci(0.95, method="exact")
    return float(found.low), float(found.high)


def rendered(stored: Mapping[str, Any]) -> str:
    """The mutants as Markdown.

    Parameters
    ----------
    stored : mapping
        As `mutants.load`.

    Returns
    -------
    str
        What came out, and folded tables of the modules and of the survivors, ending in a newline.
    """
    found = summary(stored)
    if not found["tried"]:
        return "Not run yet.\n"
    runs = sorted({(one["date"], one["commit"]) for one in stored["modules"].values()})
    when = " and ".join(f"on {date} at commit `{commit}`" for date, commit in runs)
    number = f"{found['least']}" + f" to {found['most']}" * (found["most"] > found["least"])
    rows = [
        f"| `{name}` | {module['of']} | {module['tried']} | {module['killed']} | "
        f"{len(module['survivors'])} | {len(module['timeouts'])} | "
        f"{_range(interval(module['killed'], module['tried']))} |"
        for name, module in sorted(stored["modules"].items())
    ]
    survivors = [
        f"| `{name}`, {mutant['function']} | {_code(mutant['was'])} | {_code(mutant['becomes'])} | "
        f"{why or _gap(mutant)} |"
        for name, mutant, why in found["survivors"]
    ]
    return (
        f"{found['killed']} of {found['tried']} mutants were killed, {_percent(found['share'])} "
        f"({_range(found['interval'])}); {len(found['survivors'])} survived and "
        f"{found['timeouts']} ran out of time. {found['same']} of the survivors do the same as the "
        f"original or differ only where it does not matter, with a reason below; without them "
        f"{_percent(found['sharper'][0])} ({_range(found['sharper'][1:])}) were killed. "
        f"{len(stored['modules'])} modules, {number} mutants each, {when}.\n\n"
        ":::{dropdown} Every module\n"
        "| module | mutants | tried | killed | survived | out of time | share, 95 % |\n"
        "|---|--:|--:|--:|--:|--:|--:|\n" + "\n".join(rows) + "\n:::\n\n"
        ":::{dropdown} Every survivor\n"
        "| where | was | becomes | why it survives |\n|---|---|---|---|\n"
        + "\n".join(survivors)
        + "\n:::\n"
    )


def _gap(mutant: Mapping[str, Any]) -> str:
    """What the pages say of a survivor that is a fault."""
    if "pages" not in mutant:
        return "a gap of the tests"
    if mutant["page"]:
        return f"a gap of the tests; the page {{doc}}`{mutant['page']}` fails"
    if not mutant["pages"]:
        return "a gap of the tests; no page uses it"
    return f"a gap of the tests; passes on {len(mutant['pages'])} pages that use it"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _range(ends: tuple[float, ...]) -> str:
    return f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f} %"


def _code(text: str) -> str:
    """Code in a cell of a table: one line, without the sign that divides cells."""
    line = " ".join(text.split()).replace("|", "∣")
    return f"`` {line} ``" if line else "nothing"
