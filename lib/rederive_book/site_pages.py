"""The card of a claim, the dashboard and the findings as document nodes.

Texts of claims are MyST and are parsed as such where they are shown; everything around them is
built from plain docutils nodes, which every Sphinx builder knows.
"""

from __future__ import annotations

from collections.abc import Iterable

from docutils import nodes

from rederive_book.claims import Claim
from rederive_book.comparison import nearest_control, rejected_controls
from rederive_book.site_code import check_links, library
from rederive_book.site_nodes import (
    DASHBOARD,
    Material,
    badge,
    chapter_name,
    ledger_link,
    row_id,
    source,
)
from rederive_book.sources import THIS_BOOK, cite

_READING = {
    "holds": "It holds in this reading",
    "amended": "Reading in which the source is right",
    "refuted": "Reading",
    "open": "What is missing",
}
_FAILED = {
    "refuted": "This is refuted as stated; what is used is the theorem in its place.",
    "open": "This foundation is open.",
}
_GROUPS = {
    "refuted": "Refuted as stated",
    "amended": "True in an amended form",
    "open": "Open",
    None: "Not tried in this build",
    "holds": "Holds as stated",
}
_NATIVE = "Nothing was run for this page: the verdicts are the declared ones."


def _fields(items: Iterable[tuple[str, list[nodes.Node]]]) -> nodes.definition_list:
    """Names with what they stand for."""
    fields = nodes.definition_list(classes=["rederive-fields"])
    for name, content in items:
        fields += nodes.definition_list_item(
            "", nodes.term("", name), nodes.definition("", *content)
        )
    return fields


def _statement_fields(
    material: Material, claim: Claim, *, amendment: bool = True
) -> list[tuple[str, list[nodes.Node]]]:
    own, name = claim.paper == THIS_BOOK, _READING[claim.verdict]
    stated = "What we claim" if own else "As our source states it"
    if own and claim.verdict in ("amended", "refuted"):
        stated, name = "What we predicted", "Reading"
    fields = [(stated, claim.statement)]
    if claim.reading:
        fields.append((name, claim.reading))
    if claim.amendment and amendment:
        fields.append(("What holds", claim.amendment))
    return [(name, material.block(text)) for name, text in fields]


def _foundations(material: Material, claim: Claim) -> list[tuple[str, list[nodes.Node]]]:
    """What a claim rests on, saying so where that is not established."""
    failed = material.failed(claim)
    shown = dict.fromkeys([*(material.claims[used] for used in claim.uses), *failed])
    if not shown:
        return []
    items = nodes.bullet_list(classes=["rederive-uses"])
    for used in shown:
        line = nodes.paragraph("", "", material.title(used))
        line += [material.reference(used, " (", ")"), nodes.Text(" ")]
        line += badge(material.settled(used))
        if used in failed:
            line += nodes.strong("", f" {_FAILED[material.settled(used)]}")
        items += nodes.list_item("", line)
    return [("Rests on", [items])]


def card(material: Material, claim_id: str) -> list[nodes.Node]:
    """The statement as its source gives it, beside the theorem that this book proves.

    The amendment is not repeated: the theorem states it, a few lines further on.
    """
    claim = material.claims[claim_id]
    words = nodes.inline("", "", *material.inline(claim.title))
    title = nodes.title("", "", words, nodes.Text(" "), badge(claim.verdict))
    origin = nodes.paragraph("", "", *source(claim))
    origin += [material.reference(claim, "; tried in ", ""), ledger_link(claim, "; ")]
    fields = [
        *_statement_fields(material, claim, amendment=False),
        *_foundations(material, claim),
        ("Source", [origin]),
    ]
    classes = ["rederive-card", f"rederive-{claim.verdict}"]
    return [nodes.admonition("", title, _fields(fields), classes=classes)]


def _cell(*children: nodes.Node, name: str) -> nodes.entry:
    return nodes.entry("", nodes.paragraph("", "", *children), classes=[f"rederive-cell-{name}"])


def table(material: Material, folder: str | None) -> list[nodes.Node]:
    """The dashboard: one row a claim, each linked to its theorem."""
    claims = material.claims
    chosen = claims.values() if folder is None else claims.of_folder(folder)
    if folder is None:
        env = material.directive.env
        env.metadata[env.docname][DASHBOARD] = True
    names = {
        **({"chapter": "Chapter"} if folder is None else {}),
        **{"claim": "Claim", "source": "Source", "verdict": "Verdict"},
        **({"checks": "Checks", "controls": "Controls rejected"} if material.ledger else {}),
    }
    group = nodes.tgroup(cols=len(names))
    group += [nodes.colspec(colwidth=1) for _ in names]
    head = nodes.row("", *(_cell(nodes.Text(text), name=name) for name, text in names.items()))
    group += nodes.thead("", head)
    group += nodes.tbody("", *(_row(material, claim, names) for claim in chosen))
    classes = ["rederive-claims", "colwidths-auto", *([] if folder else ["rederive-all"])]
    note = _NATIVE
    if material.ledger:
        note = (
            "Every check is made together with a negative control, which has to be rejected. How "
            "far it is off is told in the unit of the check's own limit, for the nearest control "
            "of each claim."
        )
    return [
        nodes.paragraph("", note, classes=["rederive-note"]),
        nodes.table("", group, classes=classes),
    ]


def _row(material: Material, claim: Claim, names: Iterable[str]) -> nodes.row:
    entry, verdict = material.entry(claim), material.verdict(claim)
    shown = [badge(verdict)]
    if verdict is None:
        shown.append(nodes.Text(f" {entry['untried']}; declared {claim.verdict}"))
    elif verdict != claim.verdict:
        shown.append(nodes.Text(f" declared {claim.verdict}"))
    checks = len(entry["checks"]) if entry else 0
    controls = "–"
    if checks:
        controls = f"{rejected_controls(entry)} of {checks}, {nearest_control(entry)}"
    links = check_links(material, entry) if checks else []
    cells = {
        "chapter": [nodes.Text(chapter_name(claim.folder))],
        "claim": [material.title(claim), material.reference(claim, " ", "")],
        "source": [nodes.Text(cite(claim.paper, claim.row))],
        "verdict": shown,
        "checks": links or [nodes.Text(str(checks))],
        "controls": [nodes.Text(controls)],
    }
    classes = [f"rederive-in-{claim.folder}", f"rederive-is-{verdict or 'untried'}"]
    row = nodes.row("", *(_cell(*cells[name], name=name) for name in names), classes=classes)
    row["ids"].append(row_id(claim))
    row[list(names).index("claim")] += library(material, claim)
    return row


def findings(material: Material, folder: str | None) -> list[nodes.Node]:
    """What does not hold as stated, in full, and then what does, by chapter."""
    made: list[nodes.Node] = []
    if material.ledger is None:
        made.append(nodes.paragraph("", _NATIVE, classes=["rederive-note"]))
    for chapter in material.claims.folders if folder is None else (folder,):
        if folder is None:
            made.append(nodes.rubric("", chapter_name(chapter), classes=["rederive-chapter"]))
        chosen = material.claims.of_folder(chapter)
        for verdict, heading in _GROUPS.items():
            group = [claim for claim in chosen if material.verdict(claim) == verdict]
            if not group:
                continue
            made.append(nodes.rubric("", f"{heading} ({len(group)})"))
            if verdict == "holds":
                lines = (nodes.list_item("", *_heading(material, claim)) for claim in group)
                made.append(nodes.bullet_list("", *lines, classes=["rederive-holding"]))
            else:
                made.extend(_finding(material, claim) for claim in group)
    return made


def _heading(material: Material, claim: Claim) -> list[nodes.Node]:
    """One line about a claim, and a warning where it rests on what is not established."""
    line = nodes.paragraph("", "", badge(material.verdict(claim)), nodes.Text(" "))
    line += nodes.strong("", "", material.title(claim))
    line += [material.reference(claim, ", ", ""), nodes.Text(". "), *source(claim)]
    for used in material.failed(claim):
        line += nodes.Text("; rests on ")
        line += [material.title(used), nodes.Text(" "), badge(material.settled(used))]
    return [line]


def _finding(material: Material, claim: Claim) -> nodes.Node:
    fields = _fields([*_statement_fields(material, claim), *_foundations(material, claim)])
    return nodes.container("", *_heading(material, claim), fields, classes=["rederive-finding"])
