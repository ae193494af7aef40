"""Run one benchmark in this process and record what it found; `benchmarks` starts one for each."""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import pathlib

from benchmarks import recording
from rederive_book import machine


def main(arguments=None):
    """Run, record, and return 0; goals that are missed are results and no errors."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.one", description=__doc__)
    parser.add_argument("name", help="the part after bench_, or `large`")
    parser.add_argument("--results", type=pathlib.Path, default=recording.RESULTS)
    parser.add_argument("--flow-code", default=None)
    parser.add_argument("--coretype", default="")
    parser.add_argument("--try", dest="trying", action="store_true")
    options = parser.parse_args(arguments)
    from benchmarks.comparing import Bench

    bench = Bench(options.trying, options.flow_code)
    importlib.import_module(f"benchmarks.bench_{options.name}").run(bench)
    recording.save(bench.result(options.name, facts(options.coretype)), options.results)
    return 0


def facts(coretype):
    """Date, commit and machine of this run."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": machine.commit(recording.ROOT, recording.WRITTEN),
        "machine": f"{os.cpu_count()} cores, {machine.cpu()}",
        "coretype": coretype,
    }


if __name__ == "__main__":
    raise SystemExit(main())
