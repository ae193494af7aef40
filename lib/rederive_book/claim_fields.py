"""The rules for one entry of a ``claims.yml``: which fields there are and what they may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rederive_book.sources import THIS_BOOK, papers

VERDICTS = ("holds", "amended", "refuted", "open")
FIELDS = ("id", "title", "source", "statement", "verdict", "reading", "amendment", "uses")
REQUIRED = ("id", "title", "source", "statement", "verdict")

#: Verdict -> fields that it cannot do without, and why.
DEMANDED = {
    "holds": {"reading": "the sense and the hypotheses in which the statement holds"},
    "amended": {
        "reading": "the sense and the hypotheses in which the source is right",
        "amendment": "the statement that does hold",
    },
    "refuted": {},
    "open": {"reading": "what is missing"},
}
_PART = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_ID = re.compile(rf"({_PART})\.({_PART})")


def wrong_fields(entry: dict, folder: str) -> Iterator[str]:
    """Everything wrong with one entry, as ``'<field>': <what>``."""
    for key in entry:
        if key not in FIELDS:
            yield f"{key!r}: unknown, expected one of {', '.join(FIELDS)}"
    for key in REQUIRED:
        if entry.get(key) is None:
            yield f"{key!r}: required"
    for key in ("id", "title", "statement", "verdict", "reading", "amendment"):
        value = entry.get(key)
        if value is None:
            continue
        if not isinstance(value, str) or not value.strip():
            yield f"{key!r}: expected text, got {value!r}"
        elif len(re.findall(r"(?<!\\)\$", value)) % 2:
            yield f"{key!r}: a dollar that opens TeX is not closed"
    yield from _wrong_id(entry.get("id"), folder)
    yield from _wrong_verdict(entry)
    if entry.get("source") is not None:
        yield from _wrong_source(entry["source"])
    uses = entry.get("uses")
    if uses is not None and not (isinstance(uses, list) and all(type(u) is str for u in uses)):
        yield f"'uses': expected a list of claim ids, got {uses!r}"
    elif uses and len(set(uses)) < len(uses):
        yield "'uses': a claim is named twice"


def _wrong_id(claim_id: object, folder: str) -> Iterator[str]:
    if not isinstance(claim_id, str):
        return
    match = _ID.fullmatch(claim_id)
    if match is None:
        yield f"'id': expected <folder>.<subject>, lower case with hyphens, got {claim_id!r}"
    elif match[1] != folder:
        yield f"'id': expected it to begin with its folder {folder!r}, got {match[1]!r}"


def _wrong_verdict(entry: dict) -> Iterator[str]:
    verdict = entry.get("verdict")
    if not isinstance(verdict, str):
        return
    if verdict not in VERDICTS:
        yield f"'verdict': expected one of {', '.join(VERDICTS)}, got {verdict!r}"
        return
    for key, what in DEMANDED[verdict].items():
        if entry.get(key) is None:
            yield f"{key!r}: required when the verdict is {verdict} ({what})"
    if verdict != "amended" and entry.get("amendment") is not None:
        yield f"'amendment': only an amended claim has one, but the verdict is {verdict}"


def _wrong_source(source: object) -> Iterator[str]:
    if not isinstance(source, dict) or not set(source) <= {"paper", "row"}:
        yield f"'source': expected paper and row, got {source!r}"
        return
    paper, row = source.get("paper"), source.get("row")
    if paper == THIS_BOOK:
        if row is not None:
            yield f"'source': claims of {THIS_BOOK} have no row, got {row!r}"
    elif paper not in papers():
        known = ", ".join([*papers(), THIS_BOOK])
        yield f"'source': expected a paper among {known}, got {paper!r}"
    elif row not in papers()[paper].rows:
        rows = "; ".join(papers()[paper].rows)
        yield f"'source': expected a row of {paper} ({rows}), got {row!r}"
