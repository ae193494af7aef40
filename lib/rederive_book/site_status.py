"""The facts and times of a build as document nodes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes

from rederive_book.site_nodes import Material

SLOWEST = 8


@dataclass(frozen=True)
class PageTime:
    """How long an executed page and its cells took, in seconds."""

    docname: str
    seconds: float
    cells: tuple[tuple[str, float], ...]


def page_times(sources: Mapping[str, Path]) -> list[PageTime]:
    """Times that papermill left in executed notebooks.

    Parameters
    ----------
    sources : mapping of str to Path
        Page to its source; pages that are no executed notebook have no time.

    Returns
    -------
    list of PageTime
    """
    found = []
    for docname, path in sources.items():
        if path.suffix != ".ipynb":
            continue
        notebook = json.loads(path.read_text(encoding="utf-8"))
        total = notebook["metadata"].get("papermill", {}).get("duration")
        if total is None:
            continue
        cells = tuple(
            (_first_line(cell["source"]), cell["metadata"]["papermill"]["duration"])
            for cell in notebook["cells"]
            if cell["metadata"].get("papermill", {}).get("duration") is not None
        )
        found.append(PageTime(docname, total, cells))
    return found


def _first_line(source: str | list[str]) -> str:
    lines = "".join(source).strip().splitlines()
    return lines[0] if lines else ""


def status(material: Material) -> list[nodes.Node]:
    """What ran, where, with which versions, and how long it took."""
    if material.ledger is None:
        note = (
            "This site was built without the ledger, so nothing is known here about times and "
            "machine. “make book” executes every page, tries every claim and fills this page."
        )
        return [nodes.paragraph("", note, classes=["rederive-note"])]
    return [
        *_facts(material.ledger),
        *_times(material),
    ]


def _facts(ledger: Mapping[str, Any]) -> list[nodes.Node]:
    run = ledger["run"]
    commit = "unknown" if run["commit"] is None else run["commit"][:12]
    if run["dirty"]:
        commit += ", with changes that are not committed"
    facts = [
        ("Commit", commit),
        ("Profile", run["profile"]),
        ("Seed", str(run["seed"])),
        ("Device", run["device"]),
        ("Processor", run["cpu"]),
        ("Python", run["python"]),
        ("Requirements", "unknown" if run["lock"] is None else f"sha256 {run['lock'][:12]}…"),
        ("Time of the run", "unknown" if run["seconds"] is None else _seconds(run["seconds"])),
    ]
    versions = sorted(run["versions"].items(), key=lambda item: item[0].lower())
    return [
        nodes.rubric("", "This build"),
        _table(("Fact", "Value"), facts),
        nodes.rubric("", "Versions"),
        _table(("Package", "Version"), versions),
    ]


def _times(material: Material) -> list[nodes.Node]:
    env = material.directive.env
    sources = {name: Path(env.doc2path(name)) for name in sorted(env.found_docs)}
    for path in sources.values():
        if path.suffix == ".ipynb":
            env.note_dependency(str(path))
    pages = sorted(page_times(sources), key=lambda page: -page.seconds)
    checks = _checks_by_page(material.ledger)
    made: list[nodes.Node] = []
    if pages:
        rows = [
            (
                _link(material, page.docname),
                _seconds(page.seconds),
                str(checks.get(page.docname.removeprefix("chapters/"), 0)),
            )
            for page in pages
        ]
        made += [nodes.rubric("", "Pages"), _table(("Page", "Time", "Checks"), rows)]
        cells = sorted(
            ((seconds, page.docname, line) for page in pages for line, seconds in page.cells),
            key=lambda cell: -cell[0],
        )[:SLOWEST]
        rows = [
            (_seconds(seconds), _link(material, docname), nodes.literal("", line))
            for seconds, docname, line in cells
        ]
        made += [nodes.rubric("", "Slowest cells"), _table(("Time", "Page", "Cell"), rows)]
    return made


def _checks_by_page(ledger: Mapping[str, Any]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for entry in ledger["claims"]:
        if entry["page"] is not None:
            page = entry["page"].removeprefix("chapters/")
            counts[page] = counts.get(page, 0) + len(entry["checks"])
    return counts


def _link(material: Material, docname: str) -> nodes.Node:
    """The title of a page, linked."""
    holder = nodes.inline("", "")
    holder += material.inline(f"{{doc}}`/{docname}`")
    return holder


def _seconds(seconds: float) -> str:
    """A time that is not broken between a number and its unit."""
    if seconds < 60:
        return f"{seconds:.1f}\N{NO-BREAK SPACE}s"
    return f"{int(seconds // 60)}\N{NO-BREAK SPACE}min {seconds % 60:.0f}\N{NO-BREAK SPACE}s"


def _table(names: Sequence[str], rows: Iterable[Sequence[str | nodes.Node]]) -> nodes.table:
    def row(cells: Sequence[str | nodes.Node]) -> nodes.row:
        made = [nodes.Text(cell) if isinstance(cell, str) else cell for cell in cells]
        return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in made))

    group = nodes.tgroup(cols=len(names))
    group += [nodes.colspec(colwidth=1) for _ in names]
    group += nodes.thead("", row(names))
    group += nodes.tbody("", *map(row, rows))
    return nodes.table("", group, classes=["rederive-status", "colwidths-auto"])
