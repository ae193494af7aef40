"""Put the last results into the page that shows them, between two comment lines."""

from __future__ import annotations

from rederive_book import blocks

BEGIN, END = "% faults: written by python -m audit", "% end of faults"


def rendered(found):
    """Results of the planted faults as Markdown.

    Parameters
    ----------
    found : dict
        `faults`, see `audit.planting.try_fault`, each with the `date` and `commit` of its try.

    Returns
    -------
    str
        One sentence and a table, ending in a newline.
    """
    faults = found["faults"]
    caught = sum(fault["caught"] for fault in faults)
    rows = [
        f"| {fault['what']} | `{fault['module']}` | {named(fault)} |"
        for fault in sorted(faults, key=lambda fault: fault["page"])
    ]
    tried = sorted({(fault["date"], fault["commit"]) for fault in faults})
    when = " and ".join(f"on {date} at commit `{commit}`" for date, commit in tried)
    return (
        f"Of {len(faults)} faults {caught} were caught by the book, {when}.\n\n"
        "| fault planted | module | what the build named |\n|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def named(fault):
    """The claims that a build named, as references to their theorems."""
    if not fault["claims"]:
        return "no claim; tests of the library fail" if fault.get("tested") else "**nothing**"
    return ", ".join(f"{{prf:ref}}`{claim.replace('.', '-')}`" for claim in fault["claims"])


def updated(text, found):
    """The page with its results replaced.

    Parameters
    ----------
    text : str
        The page, with the two comment lines in it once each.
    found : dict
        As for `rendered`.

    Returns
    -------
    str
        The page anew.

    Raises
    ------
    ValueError
        If the page lacks one of the lines.
    """
    return blocks.replaced(text, BEGIN, END, rendered(found))
