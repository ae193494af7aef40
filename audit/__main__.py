"""Run the slow trials and write down what came out: ``python -m audit``."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from audit import page, planting
from rederive_book import claims

RESULTS = Path(__file__).with_name("results")
PAGE = planting.ROOT / "chapters" / "how-we-check.md"


def main(arguments=None):
    """Plant faults, write ``results/faults.json``, and return 1 if one goes unnoticed."""
    parser = argparse.ArgumentParser(prog="python -m audit", description=__doc__)
    parser.add_argument("--only", default="", help="only faults whose description contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults at a time")
    options = parser.parse_args(arguments)
    ids = set(claims.load(planting.ROOT / "chapters"))
    faults = [fault for fault in planting.load() if options.only in fault.what]
    found = []
    with ThreadPoolExecutor(options.jobs) as pool:  # each try is a process of its own
        for result in pool.map(lambda fault: planting.try_fault(fault, ids), faults):
            found.append(result)
            print(("caught  " if result["caught"] else "MISSED  ") + line(result), flush=True)
    write({"date": today(), "commit": commit(), "faults": with_earlier(found)})
    missed = sum(not (result["caught"] or result["tested"]) for result in found)
    print(f"{sum(result['caught'] for result in found)} of {len(found)} faults caught by the book")
    return int(missed > 0)


def with_earlier(found):
    """Results of all faults in their order: those found now, else those of the last audit."""
    file = RESULTS / "faults.json"
    earlier = json.loads(file.read_text(encoding="utf-8"))["faults"] if file.exists() else []
    last = {result["what"]: result for result in [*earlier, *found]}
    return [last[fault.what] for fault in planting.load() if fault.what in last]


def line(result):
    """One line about one fault."""
    return f"{result['what']} ({result['module']}): {', '.join(result['claims']) or 'no claim'}"


def write(found):
    """Write the results, whole or not at all, and put them into the page that shows them."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    draft = RESULTS / "faults.json.new"
    draft.write_text(text, encoding="utf-8")
    draft.replace(RESULTS / "faults.json")
    PAGE.write_text(page.updated(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


def today():
    """The date, as ISO 8601."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def commit():
    """The commit of the checkout, with a mark if it was changed since."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=planting.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return described.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
