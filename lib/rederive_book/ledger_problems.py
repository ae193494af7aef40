"""Why a build must fail: every way in which claims, labels, records and ledger can disagree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rederive_book.claims import Claims
from rederive_book.executed import Record
from rederive_book.labels import PageText, arrow_problems, label_problems
from rederive_book.ledger_file import schema_problems

#: Stochastic tests (checks and controls) that a build may hold: at level 1e-6 each, fewer than one
#: build in a thousand then raises a false alarm.
MOST_TESTS = 800


def problems(
    ledger: Mapping[str, Any],
    claims: Claims,
    pages: Mapping[str, PageText],
    records: Sequence[Record],
    *,
    untried_allowed: Collection[str] | None = (),
) -> list[str]:
    """Everything for which a build must fail, one line each, naming claim and page.

    Parameters
    ----------
    ledger : mapping
        From `build`.
    claims, pages, records
        What it was built from.
    untried_allowed : collection of str or None
        Claims or pages that may stay untried; None allows all (a build of one page).

    Returns
    -------
    list of str
        Empty when the build may pass.
    """
    entries = {entry["id"]: entry for entry in ledger["claims"]}
    return [
        *label_problems(claims, pages),
        *arrow_problems(claims, pages),
        *(line for record in records for line in _record_problems(record, entries)),
        *_repeated_names(records),
        *_too_many_tests(records),
        *(line for entry in entries.values() for line in _verdict_problems(entry)),
        *_untried_problems(entries, pages, untried_allowed),
        *schema_problems(ledger),
    ]


def _record_problems(record: Record, entries: Mapping[str, Any]) -> Iterator[str]:
    data = record.data
    where = f"claim {data['claim']} on page {record.page}: check {data['name']!r}"
    entry = entries.get(data["claim"])
    if entry is None:
        yield f"{where}: there is no such claim"
    elif entry["page"] not in (None, record.page):
        yield f"{where}: the claim's label {entry['anchor']} is on page {entry['page']}"
    if data["outcome"] != data["expected"]:
        yield f"{where}: came out {data['outcome']}, expected {data['expected']}"
    if data["control"]["rejected"] is not True:
        yield f"{where}: its control was not rejected ({data['control']['what']})"
    for path, value in _numbers(data):
        if not math.isfinite(value):
            yield f"{where}: {path} is not finite ({value})"


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number in a record, and every text that only says nan or inf, with its path."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _numbers(part, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _numbers(part, f"{path}[{index}]")
    elif isinstance(value, int | float):
        yield path, value
    elif isinstance(value, str) and value.strip().lower().lstrip("+-") in (
        "nan",
        "inf",
        "infinity",
    ):
        yield path, float(value)


def _repeated_names(records: Sequence[Record]) -> Iterator[str]:
    times = Counter((record.data["claim"], record.data["name"]) for record in records)
    for (claim, name), count in times.items():
        if count > 1:
            page = next(r.page for r in records if r.data["claim"] == claim)
            yield f"claim {claim} on page {page}: {count} checks are called {name!r}"


def _too_many_tests(records: Sequence[Record]) -> Iterator[str]:
    total = sum(record.data["tests"] for record in records if record.data["stochastic"])
    if total > MOST_TESTS:
        by_page: Counter[str] = Counter()
        for record in records:
            by_page[record.page] += record.data["tests"] if record.data["stochastic"] else 0
        page, most = by_page.most_common(1)[0]
        claim = next(r.data["claim"] for r in records if r.page == page)
        yield (
            f"{total} stochastic tests, but a build may hold {MOST_TESTS}; "
            f"most of them ({most}) are on page {page} (claim {claim} and others)"
        )


#: What a verdict takes, for the message when the checks do not give it.
_TAKES = {
    "holds": "every check of the statement passes, and there is one",
    "amended": "a check of the statement, expected to fail, fails, and the amendment's checks pass",
    "refuted": "a counterexample passes, and no amendment does",
}
_RANK = {"refuted": 0, "amended": 1, "holds": 2}


def _verdict_problems(entry: Mapping[str, Any]) -> Iterator[str]:
    declared, verdict = entry["declared"], entry["verdict"]
    where = f"claim {entry['id']} on page {entry['page'] or 'unknown'}"
    if verdict is None:
        return
    if declared != "open" and not entry["checks"]:
        yield f"{where}: declared {declared}, but no check tries it"
    elif verdict != declared:
        ranks = _RANK.get(verdict), _RANK.get(declared)
        if None in ranks:
            how = "nothing decided" if verdict == "open" else "more than was declared"
        else:
            how = "better than declared" if ranks[0] > ranks[1] else "worse than declared"
        hint = f"; {declared} takes: {_TAKES[declared]}" if declared in _TAKES else ""
        yield f"{where}: declared {declared}, but its checks say {verdict} ({how}){hint}"


def _untried_problems(
    entries: Mapping[str, Any], pages: Mapping[str, PageText], allowed: Collection[str] | None
) -> Iterator[str]:
    if allowed is None:
        return
    names = {name.removeprefix("chapters/").removesuffix(".md") for name in allowed}
    known = {name.removeprefix("chapters/") for name in pages} | set(entries)
    for name in sorted(names - known):
        yield f"UNTRIED names {name!r}, which is neither a claim nor a page"
    for entry in entries.values():
        page = entry["page"] or "unknown"
        if entry["untried"] and not names & {entry["id"], page.removeprefix("chapters/")}:
            yield f"claim {entry['id']} on page {page}: untried ({entry['untried']})"
