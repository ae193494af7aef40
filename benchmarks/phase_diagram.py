"""The phase diagram of the examples, measured: in one process, and with one and two Dask workers.

Run ``python -m benchmarks.phase_diagram`` on a machine that does nothing else. The contestants
compute the same instances column by column, in another order for each column, so that a machine
whose speed drifts favours none; times are compared within columns. All must agree to the bit.
Results go to ``examples/results/phase_diagram.json`` and from there into the guide;
``--show`` does the second step alone, and ``--try`` measures a small diagram and records nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import pathlib
import pickle
import statistics
import sys
import tempfile
import time

from examples import phase_diagram as example  # first: it asks NumPy for one thread

# isort: split
import cloudpickle
import numpy as np

from rederive import spikes
from rederive.replicates import replicate
from rederive_book import blocks, machine, whole

ROOT = pathlib.Path(__file__).parents[1]
RESULTS = ROOT / "examples" / "results" / "phase_diagram.json"
GUIDE = ROOT / "chapters" / "many-machines.md"
#: Comment lines of the guide; what was measured stands between them.
FROM, TO = "% measured: from here", "% measured: to here"
PLACES = {"one process": 0, "1 worker": 1, "2 workers": 2}


def nothing(rng, d, theta, delta):
    """An instance that costs nothing, so that what is left is the way to the workers and back."""
    return np.zeros(3)


@contextlib.contextmanager
def pools():
    """An executor for each contestant; idle worker processes cost next to nothing."""
    with contextlib.ExitStack() as stack:
        found = {}
        for name, count in PLACES.items():
            found[name] = "serial"
            if count:
                found[name], _ = stack.enter_context(example.workers_here(count))
        yield found


def measure(folder, pools, shape):
    """Seconds of each contestant for each column, and the diagrams that they filled."""
    diagrams = {name: example.Diagram(folder / name.replace(" ", "-"), **shape) for name in PLACES}
    for name, pool in pools.items():  # imports, and the first touch of memory
        replicate(diagrams[name].task(0), 8, 0, executor=pool, workers=PLACES[name] or None)
    side, seconds = len(next(iter(diagrams.values())).deltas), {name: [] for name in PLACES}
    for column in range(side):
        cells = range(column * side, (column + 1) * side)
        order = list(PLACES)[column % 3 :] + list(PLACES)[: column % 3]
        for name in order:
            start = time.perf_counter()
            diagrams[name].run(pools[name], PLACES[name], cells=cells)
            seconds[name].append(time.perf_counter() - start)
        print(f"column {column + 1} of {side} done", file=sys.stderr)
    return seconds, diagrams


def overhead(folder, pools, shape):
    """Seconds a batch takes beyond its instances, and bytes that go out and come back with it."""
    empty = example.Diagram(folder / "empty", **shape, function=nothing)
    start = time.perf_counter()
    empty.run(pools["1 worker"], 1)
    batches = 4 * len(empty.cells)
    each = (time.perf_counter() - start) / batches
    out = len(cloudpickle.dumps(empty.task(0)))
    back = len(pickle.dumps([np.zeros(3) for _ in range(-(-shape["replicates"] // 4))]))
    return {"batches": batches, "seconds": each, "bytes out": out, "bytes back": back}


def crossings(diagram, share):
    """For each δ the θ at which half of the instances are recovered, by linear interpolation."""
    found = []
    for row in share:
        above = next((k for k, value in enumerate(row) if value >= 0.5), None)
        if not above:  # nowhere, or from the first θ on
            found.append(None)
            continue
        part = (0.5 - row[above - 1]) / (row[above] - row[above - 1])
        step = diagram.thetas[above] - diagram.thetas[above - 1]
        found.append(float(diagram.thetas[above - 1] + part * step))
    return found


def compared(diagram, results):
    """The picture and how far it is from theory."""
    share, (ratio, overlap, location) = example.shares(results), example.predicted(diagram)
    clear = ratio > 1.5  # far enough above the transition for d = 240
    means = results.mean(axis=2)
    return {
        "thetas": diagram.thetas,
        "deltas": diagram.deltas,
        "share": np.round(share, 4).tolist(),
        "half": crossings(diagram, share),
        "predicted": [float(example.recovery_signal(delta)) for delta in diagram.deltas],
        "critical": [spikes.critical_signal(example.SNR, x, example.GAMMA) for x in diagram.deltas],
        "as stated": [
            spikes.critical_signal_as_stated(example.SNR, x, example.GAMMA) for x in diagram.deltas
        ],
        "clear cells": int(clear.sum()),
        "overlap off by at most": float(np.abs(means[..., 1] - overlap)[clear].max()),
        "location off by at most": float(np.abs(means[..., 0] / location - 1)[clear].max()),
    }


def ratios(times, base, factor=1.0):
    """Quartiles over columns of factor·times/base."""
    found = [factor * mine / other for mine, other in zip(times, base, strict=True)]
    return statistics.quantiles(found, n=4, method="inclusive")


def run(shape):
    """Measure everything; returns what is recorded."""
    with tempfile.TemporaryDirectory() as name, pools() as executors:
        folder = pathlib.Path(name)
        seconds, diagrams = measure(folder, executors, shape)
        batch = overhead(folder, executors, shape)
        results = {name: diagram.results() for name, diagram in diagrams.items()}
    serial = results["one process"]
    return {
        "date": datetime.date.today().isoformat(),
        "commit": machine.commit(ROOT),
        "cpu": machine.cpu(),
        "versions": machine.versions(("numpy", "scipy", "torch", "distributed")),
        "seed": example.SEED,
        "shape": shape,
        "instances": int(np.prod(serial.shape[:3])),
        "bits equal": all(found.tobytes() == serial.tobytes() for found in results.values()),
        "seconds": {name: sum(found) for name, found in seconds.items()},
        "overhead of 1 worker": ratios(seconds["1 worker"], seconds["one process"]),
        "speed-up of 2 workers": ratios(seconds["one process"], seconds["2 workers"]),
        "batch": batch,
        "diagram": compared(diagrams["one process"], serial),
    }


def shown(found):
    """The measured numbers as the guide shows them."""
    seconds, count = found["seconds"], found["instances"]
    low, middle, high = found["overhead of 1 worker"]
    slow, up, fast = found["speed-up of 2 workers"]
    batch, diagram = found["batch"], found["diagram"]
    picture = example.Diagram.__new__(example.Diagram)  # the axes, without a folder
    picture.thetas, picture.deltas = diagram["thetas"], diagram["deltas"]
    lines = [
        "| | seconds | instances a second | against one process, by columns |",
        "|---|---:|---:|---|",
    ]
    told = {
        "one process": "1",
        "1 worker": f"time × {middle:.3f} ({low:.3f} to {high:.3f})",
        "2 workers": f"speed × {up:.2f} ({slow:.2f} to {fast:.2f})",
    }
    lines += [
        f"| {name} | {time:.1f} | {count / time:.0f} | {told[name]} |"
        for name, time in seconds.items()
    ]
    equal = "Bits are equal in all three." if found["bits equal"] else "**Bits differ.**"
    lines += [
        "",
        f"{count} instances on {found['cpu']}, {found['date']}; medians and quartiles over "
        "columns. "
        f"{equal} A batch costs {1e3 * batch['seconds']:.1f} ms beyond its instances, measured "
        f"with {batch['batches']} empty ones; {batch['bytes out'] / 1e3:.1f} kB go out with it and "
        f"{batch['bytes back'] / 1e3:.1f} kB come back.",
        "",
        example.picture(picture, np.array(diagram["share"])),
        "",
        "| δ | " + " | ".join(f"{x:g}" for x in diagram["deltas"]) + " |",
        "|---|" + "---:|" * len(diagram["deltas"]),
    ]
    for name, key in (
        ("half of them recovered from θ =", "half"),
        ("this book: overlap ¼ from θ =", "predicted"),
        ("this book: outlier from θ =", "critical"),
        ("source: outlier from θ =", "as stated"),
    ):
        row = ("–" if value is None else f"{value:.2f}" for value in diagram[key])
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def put_into_guide(found):
    """Put the measured numbers between the two comment lines of the guide."""
    text = GUIDE.read_text(encoding="utf-8")
    whole.write_text(GUIDE, blocks.replaced(text, FROM, TO, shown(found) + "\n"))


def main():
    """Measure and record, or show what was recorded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--try", dest="trying", action="store_true")
    given = parser.parse_args()
    if given.show:
        put_into_guide(json.loads(RESULTS.read_text(encoding="utf-8")))
        return 0
    shape = {"side": 10, "replicates": 100, "d": 240}
    found = run({"side": 3, "replicates": 8, "d": 60} if given.trying else shape)
    if not given.trying:
        whole.write_text(RESULTS, json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        put_into_guide(found)
    print(shown(found))
    return 0 if found["bits equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
