"""Put recorded results into the page of the book that shows them, between two comment lines."""

from __future__ import annotations

from benchmarks import recording, rendering
from rederive_book import blocks, whole

PAGE = recording.ROOT / "chapters" / "benchmarks.md"
BEGIN, END = "% results: written by python -m benchmarks", "% end of results"


def rendered(results):
    """Results as Markdown.

    Parameters
    ----------
    results : list of recording.Result
        In the order of the page.

    Returns
    -------
    str
        Sections of the page, ending in a newline.
    """
    if not results:
        return "No run of `make bench` has been recorded for this version.\n"
    parts = [
        rendering.goals(results),
        rendering.comparisons(results),
        rendering.growths(results),
        rendering.rooflines(results),
        rendering.runs(results),
    ]
    return "\n".join(part for part in parts if part)


def updated(text, results):
    """The page with its results replaced, see `blocks.replaced`."""
    return blocks.replaced(text, BEGIN, END, rendered(results))


def write(results):
    """Write the page, whole or not at all."""
    whole.write_text(PAGE, updated(PAGE.read_text(encoding="utf-8"), results))
