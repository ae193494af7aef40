"""The claims ledger: what the executed pages recorded, settled against what the claims declare.

`build` makes the ledger of ``_build/claims.json``; `problems` says why a build must not pass. The
way of a build is: `read_pages`, `read_records`, `describe_run`, `build`, `problems`, `write`.
Everything that a pipeline needs is found here; the parts live in modules of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rederive_book.claims import Claim, Claims
from rederive_book.comparison import compare, compare_figures, summary_markdown
from rederive_book.executed import Record, read_records, write_figures
from rederive_book.labels import PageText, pages_of, read_pages
from rederive_book.ledger_file import read, write
from rederive_book.ledger_problems import problems
from rederive_book.machine import describe_run

__all__ = [
    "build",
    "compare",
    "compare_figures",
    "decide",
    "describe_run",
    "problems",
    "read",
    "read_pages",
    "read_records",
    "summary_markdown",
    "write",
    "write_figures",
]

SCHEMA_VERSION = 1

#: Fields of a check in the ledger; all but the last are copied from the page's record.
COPIED = (
    "name",
    "kind",
    "tries",
    "expected",
    "outcome",
    "measured",
    "predicted",
    "unit",
    "uncertainty",
    "source_of_uncertainty",
    "statistic",
    "control",
    "anchor",
)


def decide(checks: Sequence[Mapping[str, Any]]) -> str:
    """The verdict that the outcomes of a claim's checks add up to.

    Parameters
    ----------
    checks : sequence of mappings
        Each with ``tries``, ``expected`` and ``outcome``.

    Returns
    -------
    str
        ``refuted``: a counterexample passes, and no amendment does. ``amended``: the statement is
        put to a check that it was expected to fail and fails, and every check of the amendment (at
        least one) passes. ``holds``: every check of the statement (at least one) passes. ``open``:
        anything else.
    """

    def outcomes(tries: str) -> list[bool]:
        return [c["outcome"] == "pass" for c in checks if c["tries"] == tries]

    statement, amendment = outcomes("statement"), outcomes("amendment")
    rejected = any(
        c["tries"] == "statement" and c["expected"] == "fail" and c["outcome"] == "fail"
        for c in checks
    )
    if any(outcomes("counterexample")) and not any(amendment):
        return "refuted"
    if rejected and amendment and all(amendment):
        return "amended"
    if statement and all(statement):
        return "holds"
    return "open"


def build(
    claims: Claims,
    pages: Mapping[str, PageText],
    records: Sequence[Record],
    run: Mapping[str, Any],
    *,
    not_run: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Settle every claim by the checks that its page recorded.

    Parameters
    ----------
    claims : Claims
    pages : mapping of str to PageText
        Every page of the book, see `rederive_book.labels.read_pages`.
    records : sequence of Record
        See `rederive_book.executed.read_records`.
    run : mapping
        See `rederive_book.machine.describe_run`.
    not_run : mapping of str to str, optional
        Pages that were not executed in this build, with the reason. Their claims are untried.

    Returns
    -------
    dict
        The ledger. Numbers that are not finite are absent from it; `problems` names them.
    """
    reasons = not_run or {}
    entries = []
    for claim_id, page in pages_of(claims, pages).items():
        own = [record for record in records if record.data["claim"] == claim_id]
        reason = reasons.get(page) if page is not None and not own else None
        entries.append(_entry(claims[claim_id], page, own, reason))
    return {"schema": SCHEMA_VERSION, "run": dict(run), "claims": entries}


def _entry(
    claim: Claim, page: str | None, records: Sequence[Record], untried: str | None
) -> dict[str, Any]:
    checks = [
        {**{key: _finite(r.data[key]) for key in COPIED}, "seconds": r.seconds} for r in records
    ]
    return {
        "id": claim.id,
        "title": claim.title,
        "paper": claim.paper,
        "row": claim.row,
        "statement": claim.statement,
        "reading": claim.reading,
        "declared": claim.verdict,
        "verdict": None if untried else decide(checks),
        "untried": untried,
        "amendment": claim.amendment,
        "uses": list(claim.uses),
        "page": page,
        "anchor": claim.label,
        "checks": checks,
    }


def _finite(value: Any) -> Any:
    """The value with nothing in the place of numbers that are not finite."""
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return None if any(_finite(part) is None for part in value) else value
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value
