"""What the page says of the interruptions and of the same bits, from their last results."""

from __future__ import annotations

from collections import Counter
from typing import Any

from audit import interruptions

INTERRUPTIONS = "% interruptions: written by python -m audit", "% end of interruptions"
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
