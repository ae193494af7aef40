"""What the page says of the interruptions and of the same bits, from their last results."""

from __future__ import annotations

from collections import Counter
from typing import Any

from audit import calibration, interruptions, seeds
from rederive_book import check_lines

INTERRUPTIONS = "% interruptions: written by python -m audit", "% end of interruptions"
SEEDS = "% seeds: written by python -m audit", "% end of seeds"
SAME_BITS = "% same bits: written by python -m audit", "% end of same bits"


def of_interruptions(found: dict[str, Any]) -> str:
    """Killed builds as Markdown.

    Parameters
    ----------
    found : dict
        `date`, `commit` and the fields of `interruptions.try_interruptions`.

    Returns
    -------
    str
        Two sentences and a table, ending in a newline.
    """
    tries = found["tries"]
    rows = []
    for start, whom in sorted({(one["start"], one["whom"]) for one in tries}):
        own = [one for one in tries if (one["start"], one["whom"]) == (start, whom)]
        made_up = sum(interruptions.passed(one) for one in own)
        what = "the command and all it started" if whom == "all" else "the command alone"
        rows.append(f"| {what} | {start} | {len(own)} | {made_up} |")
    stages = Counter(_stage(one["stage"]) for one in tries)
    where = ", ".join(f"{count} {stage}" for stage, count in stages.most_common())
    return (
        f"{found['n'] - found['failures']} of {found['n']} killed builds were made up for, on "
        f"{found['date']} at commit `{found['commit']}`. Hit were: {where}.\n\n"
        "| killed | begun over | builds | made up for |\n|---|---|--:|--:|\n"
        + "\n".join(rows)
        + "\n"
    )


def of_same_bits(found: dict[str, Any]) -> str:
    """Two builds side by side as Markdown.

    Parameters
    ----------
    found : dict
        `date`, `commit` and the fields of `same_bits.try_same_bits` or `same_bits.compare`.

    Returns
    -------
    str
        Two sentences and a table of what may differ, ending in a newline.
    """
    jobs = found.get("jobs")
    how = f", with {jobs[0]} and with {jobs[1]} pages at once" if jobs else ""
    what = "pages " + ", ".join(found["pages"]) if found.get("pages") else "the book"
    words = "are the same" if not found["count"] else f"{found['count']} differ"
    site = "" if found["site"] else " The site was not compared."
    names = "".join(f"\n* `{name}`" for name in found["differs"][:20])
    rows = "\n".join(f"| {what} | {why} |" for what, why in found["may_differ"].items())
    return (
        f"Two builds of {what}{how}, on {found['date']} at commit `{found['commit']}`: of "
        f"{found['compared']} parts (fields of the ledger, outputs of cells, numbers and pictures "
        f"of figures, files of the site) {'all ' if not found['count'] else ''}{words}.{site}\n"
        + (f"{names}\n" if names else "")
        + "\n| left out | because |\n|---|---|\n"
        + rows
        + "\n"
    )


def of_seeds(stored: dict[str, Any]) -> str:
    """Many seeds as Markdown.

    Parameters
    ----------
    stored : dict
        As `seeds.load`.

    Returns
    -------
    str
        What came out, and a folded table of all checks, ending in a newline.
    """
    found = seeds.summary(stored)
    tried = sorted({(page["date"], page["commit"]) for page in stored["pages"].values()})
    when = " and ".join(f"on {date} at commit `{commit}`" for date, commit in tried)
    number = f"{found['least']}" + (f" to {found['most']}" * (found["most"] > found["least"]))
    alarms = [f"* {key}, seed {seed}" for key, seed in found["alarms"]]
    odd = [f"* {words}" for words in found["surprises"]]
    rows = [
        f"| {key.partition(', ')[2]} | {{prf:ref}}`{key.partition(', ')[0].replace('.', '-')}` | "
        + (_drift(found["judged"][key]) if key in found["judged"] else "| ")
        + f" | {_relative(error)} |"
        for key, error in found["notices"].items()
    ]
    return (
        f"{found['checks']} random checks on {len(stored['pages'])} of the {stored['of']} pages "
        f"that have them, {number} seeds a page, "
        f"{found['tried']} trials of a check together with its control, {when}. Alarms: "
        f"{len(alarms) or 'none'}.\n\n"
        + "".join(f"{line}\n" for line in alarms)
        + f"\nOf {len(found['judged'])} checks the mean and the spread of Z were tried; off at the "
        f"joint level {calibration.SURPRISE:g}: {len(odd) or 'none'}.\n\n"
        + "".join(f"{line}\n" for line in odd)
        + "\n:::{dropdown} Every check that decides by a mean\n"
        "| check | claim | mean of Z | variance of Z | error noticed |\n|---|---|--:|--:|--:|\n"
        + "\n".join(rows)
        + "\n:::\n"
    )


def _drift(judged: dict[str, float]) -> str:
    return f"{judged['mean']:.2f} | {judged['variance']:.2f}".replace("-", "−")


def _relative(error: float | None) -> str:
    """A relative error in per cent, with two digits."""
    return "–" if error is None else f"{check_lines.number(100 * error)} %"


def _stage(stage: str) -> str:
    """A stage without the name of a page."""
    if stage.startswith("after page"):
        return "between pages"
    return {
        "after verdicts": "while the site was built",
        "after html": "at the very end",
        "ended": "too late, the build had ended",
        "pages running": "before the first page was done",
        "starting": "during the start",
    }.get(stage, stage)
