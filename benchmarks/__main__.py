"""Run every benchmark and put what it found into the book: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

from benchmarks import page, recording
from benchmarks.names import LARGE, NAMES


def main(arguments=None):
    """Run the benchmarks that are named, each in a process of its own, and write the page.

    Returns
    -------
    int
        1 if a benchmark failed; the others are recorded all the same.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"only these of {', '.join(NAMES)}")
    parser.add_argument("--large", action="store_true", help="the largest sizes only: minutes")
    parser.add_argument(
        "--flow-code",
        default=os.environ.get("FLOW_CODE"),
        help="a checkout of github.com/alexmassucco/Transformers_as_time_dependent_gradient_flows",
    )
    parser.add_argument(
        "--try",
        dest="trying",
        action="store_true",
        help="one round, small sizes, nothing recorded: to see that all of it runs",
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - {*NAMES, LARGE}:
        parser.error(f"expected names among {', '.join(NAMES)}, got {', '.join(sorted(unknown))}")
    names = [LARGE] if options.large else options.names or NAMES
    if not options.trying:
        return run(names, options, recording.RESULTS)
    with tempfile.TemporaryDirectory() as folder:
        failed = run(names, options, pathlib.Path(folder))
        print(page.rendered(recording.load_all([*NAMES, LARGE], pathlib.Path(folder))))
    return failed


def run(names, options, folder):
    """Run benchmarks one after the other, and write the page if they are recorded."""
    environment = dict(os.environ)
    # A core type that is forced from outside may slow the library down.
    coretype = environment.pop("OPENBLAS_CORETYPE", "")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment.pop(name, None)  # threads are counted when a library loads
    given = ["--try"] if options.trying else []
    if options.flow_code:
        given += ["--flow-code", os.path.abspath(options.flow_code)]
    failed = []
    for name in names:
        print(f"\n== {name}", flush=True)
        command = [sys.executable, "-m", "benchmarks.one", name, "--results", str(folder)]
        command += ["--coretype", coretype, *given]
        done = subprocess.run(command, cwd=recording.ROOT, env=environment)
        if done.returncode:
            failed.append(name)
        elif folder == recording.RESULTS:
            page.write(recording.load_all([*NAMES, LARGE]))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
