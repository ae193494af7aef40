"""Run the slow trials and write down what came out: ``python -m audit``, or one of them by name."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from audit import (
    interruptions,
    mutants,
    mutants_block,
    mutants_on_pages,
    page,
    planting,
    same_bits,
    seeds,
    trial_blocks,
)
from rederive_book import blocks, claims, machine, whole

RESULTS = Path(__file__).with_name("results")
PAGE = planting.ROOT / "chapters" / "how-we-check.md"


def main(arguments=None):
    """Run the trial that is named, or all of them, and return 1 if one fails."""
    parser, trials = _parser()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given:
        options = parser.parse_args(given)
        return options.run(options)
    parsed = [parser.parse_args([name]) for name in trials]
    return max([options.run(options) for options in parsed])


def faults(options):
    """Plant faults, write ``results/faults.json``, and return 1 if one goes unnoticed."""
    ids = set(claims.load(planting.ROOT / "chapters"))
    chosen = [fault for fault in planting.load() if options.only in fault.what]
    found, run = [], stamp()
    with ThreadPoolExecutor(options.jobs) as pool:  # each try is a process of its own
        for result in pool.map(lambda fault: planting.try_fault(fault, ids), chosen):
            found.append(result | run)
            print(("caught  " if result["caught"] else "MISSED  ") + line(result), flush=True)
    write({"faults": with_earlier(found)})
    missed = sum(not (result["caught"] or result["tested"]) for result in found)
    print(f"{sum(result['caught'] for result in found)} of {len(found)} faults caught by the book")
    return int(missed > 0)


def killed(options):
    """Kill builds, write ``results/interruptions.json``, and return 1 if one is not made up for."""
    run = stamp()
    found = run | interruptions.try_interruptions(options.count, options.seed, say=say)
    record("interruptions", found)
    put(trial_blocks.INTERRUPTIONS, trial_blocks.of_interruptions(found))
    print(f"{found['n'] - found['failures']} of {found['n']} killed builds were made up for")
    return int(found["failures"] > 0)


def bits(options):
    """Compare two builds; those of clean clones go to ``results/same_bits.json``; 1 if they differ.

    Builds that were handed over are only compared: nobody knows what they were made from.
    """
    if options.compare:
        found = same_bits.compare(*map(Path, options.compare), site=options.site)
        print("\n".join([*found["differs"], same_bits.line(found)]))
        return int(found["count"] > 0)
    run, jobs = stamp(), options.jobs or list(same_bits.WAYS.values())
    if len(jobs) == 1:  # the same way twice
        jobs = jobs * 2
    found = run | same_bits.try_same_bits(
        pages=options.page, site=options.site, jobs=jobs[:2], say=say
    )
    print(same_bits.line(found))
    if not options.page:  # a try with a few pages stands for nothing
        record("same_bits", found)
        put(trial_blocks.SAME_BITS, trial_blocks.of_same_bits(found))
    return int(found["count"] > 0)


def many_seeds(options):
    """Run random checks over many seeds, go on with ``results/seeds.json``; 1 if one is off."""
    names = options.page
    stored = seeds.try_seeds(
        options.count, names=names, jobs=options.jobs, minutes=options.minutes, run=stamp(), say=say
    )
    put(trial_blocks.SEEDS, trial_blocks.of_seeds(stored))
    found = seeds.summary(stored)
    print(f"{len(found['alarms'])} alarms in {found['tried']} trials")
    print("\n".join(found["surprises"]) or "no drift, no spread that is off")
    return int(bool(found["alarms"] or found["surprises"]))


def mutated(options):
    """Try mutants of the library, go on with ``results/mutants.json``; 1 if too few are killed."""
    try:
        stored = mutants.try_mutants(
            options.count,
            names=options.module,
            jobs=options.jobs,
            minutes=options.minutes,
            run=stamp(),
            say=say,
        )
        if options.pages:
            why, minutes = mutants_block.reasons(), options.minutes
            stored = mutants_on_pages.try_pages(why, minutes=minutes, say=say)
    except RuntimeError as error:
        print(error)
        return 1
    finally:
        put(mutants_block.LINES, mutants_block.rendered(mutants.load()))
    found = mutants_block.summary(stored)
    print(f"{found['killed']} of {found['tried']} mutants killed")
    return int(found["share"] < mutants_block.ENOUGH)


def with_earlier(found):
    """Results of all faults in their order: those found now, else those of the last audit."""
    file = RESULTS / "faults.json"
    earlier = json.loads(file.read_text(encoding="utf-8"))["faults"] if file.exists() else []
    last = {result["what"]: result for result in [*earlier, *found]}
    return [last[fault.what] for fault in planting.load() if fault.what in last]


def line(result):
    """One line about one fault."""
    return f"{result['what']} ({result['module']}): {', '.join(result['claims']) or 'no claim'}"


def say(text):
    """Print a line at once: the trials are slow."""
    print(text, flush=True)


def write(found):
    """Write the results of the faults, and put them into the page that shows them."""
    record("faults", found)
    whole.write_text(PAGE, page.updated(PAGE.read_text(encoding="utf-8"), found))


def record(name, found):
    """Write results to their file, whole or not at all."""
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    whole.write_text(RESULTS / f"{name}.json", text)


def put(lines, content):
    """Put results between their two lines of the page that shows them."""
    whole.write_text(PAGE, blocks.replaced(PAGE.read_text(encoding="utf-8"), *lines, content))


def stamp():
    """When and of what a trial is, taken before it begins; what audits write does not count."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    commit = machine.commit(planting.ROOT, ("audit/results", "chapters/how-we-check.md"))
    return {"date": date, "commit": commit}


def _parser():
    """The parser, and the names of the trials in the order in which all of them are run."""
    parser = argparse.ArgumentParser(prog="python -m audit", description=__doc__)
    trials = parser.add_subparsers(dest="trial", required=True)

    def trial(name, function):
        made = trials.add_parser(name, help=function.__doc__.splitlines()[0])
        made.set_defaults(run=function)
        return made

    planted = trial("faults", faults)
    planted.add_argument("--only", default="", help="only faults whose description contains this")
    planted.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults at a time")
    broken = trial("interruptions", killed)
    broken.add_argument("--count", type=int, default=20, help="how many builds to kill")
    broken.add_argument("--seed", type=int, default=2026, help="of the moments")
    same = trial("same-bits", bits)
    same.add_argument("--compare", nargs=2, metavar=("A", "B"), help="two builds that exist")
    same.add_argument("--page", action="append", default=[], help="only this page; may be repeated")
    same.add_argument("--no-site", dest="site", action="store_false", help="leave out the site")
    same.add_argument(
        "--jobs", type=int, action="append", help="pages at once; twice for two ways; else 1 and 2"
    )
    many = trial("seeds", many_seeds)
    many.add_argument("--count", type=int, default=40, help="seeds a page")
    many.add_argument("--page", action="append", default=[], help="only this page; may be repeated")
    many.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="pages at a time")
    many.add_argument(
        "--minutes",
        type=float,
        default=float("inf"),
        help="begin no seed after these",
    )
    small = trial("mutants", mutated)
    small.add_argument("--count", type=int, default=150, help="mutants a module")
    small.add_argument("--module", action="append", default=[], help="only this; may be repeated")
    small.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="modules at a time")
    small.add_argument("--pages", action="store_true", help="then try survivors on pages, too")
    small.add_argument(
        "--minutes", type=float, default=float("inf"), help="begin no mutant after these"
    )
    return parser, list(trials.choices)


if __name__ == "__main__":
    sys.exit(main())
