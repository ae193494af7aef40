"""Run the random checks of the book over many seeds; what was run before is not run again."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from audit import calibration, trying_seeds
from rederive_book import pages, whole

RESULTS = Path(__file__).with_name("results") / "seeds.json"
FIRST = 1  # the seeds are FIRST, FIRST + 1, …: fixed before anything ran
STATIC = ("claim", "name", "kind", "expected", "dof", "shift", "error", "predicted", "entries")
STATIC += ("bias", "margin", "count")


def try_seeds(
    count: int,
    *,
    names: Sequence[str] = (),
    jobs: int = 1,
    minutes: float = float("inf"),
    run: Mapping[str, str] | None = None,
    say: Callable[[str], None] = print,
    results: Path = RESULTS,
    root: Path = trying_seeds.ROOT,
) -> dict[str, Any]:
    """Run pages until each has seen `count` seeds, and keep the results after each seed.

    Parameters
    ----------
    count : int
        Seeds a page.
    names : sequence of str, optional
        Only these pages.
    jobs : int, optional
        Pages at a time.
    minutes : float, optional
        No seed is begun after so many.
    run : mapping, optional
        Date and commit, noted with the pages that are run.
    say : callable, optional
        Gets a line after each seed.
    results : Path, optional
        The file.
    root : Path, optional
        The book.

    Returns
    -------
    dict
        What the file holds: `pages`, each with `digest` (of its text and the modules that it
        reaches; earlier results of another text are dropped), `seeds`, `date`, `commit` and
        `checks`; and `of`, how many pages have random checks.
    """
    stored, every = load(results), trying_seeds.pages_with_random_checks(root)
    end = time.monotonic() + 60 * minutes
    turn = threading.Lock()

    def run_one(name: str) -> None:
        kept, now = stored["pages"].get(name), digest(name, root)
        if kept is None or kept["digest"] != now:
            kept = {"digest": now, "seeds": [], "checks": {}}
        missing = [s for s in range(FIRST, FIRST + count) if s not in kept["seeds"]]
        for seed, found in _seeds(name, missing, end, root):
            with turn:
                add(kept, seed, found)
                stored["pages"][name] = kept | dict(run or {})
                stored["of"] = len(every)
                whole.write_text(results, json.dumps(stored, ensure_ascii=False) + "\n")
            alarms = [entry["name"] for entry in found if entry["alarm"]]
            say(f"{name}, seed {seed}: {', '.join(alarms) or 'no alarm'}")

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run_one, names or every))
    return stored


def load(results: Path = RESULTS) -> dict[str, Any]:
    """What was run before."""
    return json.loads(results.read_text(encoding="utf-8")) if results.exists() else {"pages": {}}


def digest(name: str, root: Path) -> str:
    """Of a page's text and of the modules that it reaches."""
    packages = {one: root / "lib" / one for one in ("rederive", "rederive_book")}
    source = root / "chapters" / f"{name}.md"
    files = pages.reach(pages.code_of(pages.to_notebook(source)), packages)
    made = hashlib.sha256(source.read_bytes())
    for file in sorted(files):
        made.update(file.read_bytes())
    return made.hexdigest()[:16]


def add(kept: dict[str, Any], seed: int, found: Sequence[Mapping[str, Any]]) -> None:
    """Add what one seed found to what is kept of a page."""
    kept["seeds"] = sorted([*kept["seeds"], seed])
    for entry in found:
        key = f"{entry['claim']}, {entry['name']}"
        fresh = {k: _short(entry[k]) for k in STATIC if k in entry} | {"t": [], "alarms": {}}
        check = kept["checks"].setdefault(key, fresh)
        if "t" in entry and entry["moves"]:
            check["t"].append(_short(entry["t"]))
        if entry["alarm"]:
            check["alarms"][str(seed)] = entry["alarm"]


def summary(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What all pages together showed.

    Returns
    -------
    dict
        `least`, `most` (seeds a page), `checks`, `tried` (check and seed), `alarms` (page, check,
        seed), `judged` (key to `calibration.judge`), `surprises`, `notices` (key to
        `calibration.smallest_error`).
    """
    seeds = [len(page["seeds"]) for page in stored["pages"].values()]
    checks = list(_checks(stored))
    judged = {
        key: calibration.judge(check)
        for key, check, n in checks
        if check["expected"] == "pass" and check.get("margin") is None and len(check["t"]) == n > 2
    }
    return {
        "least": min(seeds, default=0),
        "most": max(seeds, default=0),
        "checks": len(checks),
        "tried": sum(n for _, _, n in checks),
        "alarms": [(key, seed) for key, check, _ in checks for seed in check["alarms"]],
        "judged": judged,
        "surprises": calibration.surprises(judged.items()),
        "notices": {
            key: calibration.smallest_error(check)
            for key, check, _ in checks
            if "error" in check and check["expected"] == "pass"
        },
    }


def _checks(stored: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], int]]:
    for page in stored["pages"].values():
        for key, check in page["checks"].items():
            yield key, check, len(page["seeds"])


def _seeds(name: str, missing: Sequence[int], end: float, root: Path) -> Iterator[tuple[int, Any]]:
    """Results of seeds until the time is up."""
    if not missing or time.monotonic() > end:
        return
    running = trying_seeds.in_a_process(name, missing, root)
    for result in running:
        yield result
        if time.monotonic() > end:
            running.close()
            return


def _short(value: Any) -> Any:
    """Numbers with five significant digits: enough for a statistic."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    return [_short(one) for one in value] if isinstance(value, list) else value
