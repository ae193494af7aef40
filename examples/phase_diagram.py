r"""A phase diagram of 10⁴ instances, on this machine or on a cluster: when does the signal show?

One instance draws a table of embeddings with signal θ = ‖μ‖² and ratio δ = d/V, pools N = d/γ token
sequences, and keeps three numbers: the largest eigenvalue of their covariance, and the squared
overlaps of its eigenvector with the signal as the table has it (μ̃, half the difference of the class
means) and with μ itself. A cell is one pair (θ, δ); its instances have a stream of their own.

    python examples/phase_diagram.py                             one process
    python examples/phase_diagram.py --workers 2                 worker processes of this machine
    python examples/phase_diagram.py --cluster tcp://host:8786   a Dask cluster

A cell that is finished is put in place whole, and stays if the run is stopped or the scheduler is
lost: the same command goes on from there. ``--rounds 2`` adds as many instances again; those of the
first round stay as they are. Where the instances are computed changes no bit of them.
"""

import argparse
import contextlib
import functools
import io
import json
import math
import os
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy loads: one thread here, as on every worker

import numpy as np  # noqa: E402
import scipy.linalg  # noqa: E402
import scipy.optimize  # noqa: E402

from rederive import clusters, sequences, sign_sequences, spikes, vocabularies  # noqa: E402
from rederive.replicates import replicate  # noqa: E402

SEED, GAMMA, LENGTH, PREFIX = 2026, 0.5, 24, 3
WEIGHTS = np.full(LENGTH, LENGTH**-0.5)  # the mean, scaled to κ = 1
LOADINGS = sign_sequences.prefix_loadings(LENGTH, PREFIX)
SNR = sequences.signal_to_noise(WEIGHTS, sign_sequences.latent_correlation(LOADINGS))  # q = 5/4
#: The signal counts as recovered if the top eigenvector lies within 60° of it.
RECOVERED = 0.25
#: The environment in which Dask starts workers. It has them give memory back to the system at once,
#: by a variable that also has the C library of Linux ask anew for every array above 128 kB. Tables
#: of a megabyte that come and go then take half as long again.
KEEP_MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": 2**27,
    "MALLOC_MMAP_THRESHOLD_": 2**25,
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), 1),
}


def instance(rng, d, theta, delta):
    """Draw one model; the top eigenvalue, and its overlaps with μ̃ and with μ."""
    size, count = 2 * round(d / delta / 2), round(d / GAMMA)
    table = vocabularies.draw_vocabulary(np.eye(d)[0] * theta**0.5, size, rng)
    signs = sign_sequences.latent_signs(LOADINGS, count, rng).signs
    tokens = vocabularies.draw_tokens(signs, size, rng)
    pooled = vocabularies.pool(WEIGHTS, tokens, table.embeddings)
    pooled -= pooled.mean(axis=0)
    second = pooled.T @ pooled / count
    values, vectors = scipy.linalg.eigh(second, subset_by_index=[d - 1, d - 1])
    top, shown = vectors[:, 0], table.direction
    return np.array([values[0], (top @ shown) ** 2 / (shown @ shown), top[0] ** 2])


class Diagram:
    """What is computed, and the folder that holds its finished cells."""

    def __init__(self, folder, *, side=10, replicates=100, d=240, function=instance):
        self.folder, self.d, self.replicates = pathlib.Path(folder), d, replicates
        self.function = function
        self.thetas = [round(4.0 * k / side, 6) for k in range(1, side + 1)]
        self.deltas = [round(2.5 * k / side, 6) for k in range(1, side + 1)]
        self.cells = [(theta, delta) for delta in self.deltas for theta in self.thetas]
        self._check()

    def _check(self):
        """A folder belongs to one diagram: other numbers must not slip in among these."""
        mine = {"seed": SEED, "gamma": GAMMA, "length": LENGTH, "prefix": PREFIX, "d": self.d}
        mine |= {"replicates": self.replicates, "thetas": self.thetas, "deltas": self.deltas}
        path = self.folder / "diagram.json"
        self.folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _put(path, json.dumps(mine).encode())
        elif json.loads(path.read_text()) != mine:
            raise ValueError(f"folder: {self.folder} holds another diagram; name a new one")

    def path(self, cell, turn):
        return self.folder / f"cell-{cell:04}-round-{turn}.npy"

    def task(self, cell):
        """The function of one random generator that a replicate of this cell is."""
        theta, delta = self.cells[cell]
        return functools.partial(self.function, d=self.d, theta=theta, delta=delta)

    def missing(self, rounds, cells=None):
        """The (cell, round) that are still to be computed, of all cells or of some."""
        chosen = range(len(self.cells)) if cells is None else cells
        every = [(cell, turn) for turn in range(rounds) for cell in chosen]
        return [one for one in every if not self.path(*one).exists()]

    def compute(self, cell, turn, pool, workers):
        """Compute one round of one cell and put it in place, whole or not at all."""
        stream = turn * len(self.cells) + cell
        found = replicate(
            self.task(cell), self.replicates, SEED, stream=stream, executor=pool, workers=workers
        )
        content = io.BytesIO()
        np.save(content, found)
        _put(self.path(cell, turn), content.getvalue())

    def run(self, pool, workers, rounds=1, progress=False, cells=None):
        """Compute what is missing; enough cells are under way that no worker waits for the next."""
        from tqdm import tqdm

        todo = self.missing(rounds, cells)
        bar = tqdm(total=len(todo), unit="cell", disable=None if progress else True)
        if pool == "serial":
            for one in todo:
                self.compute(*one, pool, None)
                bar.update()
            return
        # `replicate` makes 4·share batches of a cell: about twenty a worker in all, so that those
        # that finish last wait little, and at least four a worker under way at any time.
        share = math.ceil(5 * workers / max(1, len(todo)))
        with ThreadPoolExecutor(math.ceil(workers / share) + 1) as threads:
            futures = [threads.submit(self.compute, *one, pool, share) for one in todo]
            try:
                for future in as_completed(futures):
                    future.result()
                    bar.update()
            finally:
                for future in futures:
                    future.cancel()

    def results(self, rounds=1):
        """All numbers, shape (δ, θ, instances, 3)."""
        shape = (len(self.deltas), len(self.thetas), rounds * self.replicates, 3)
        return np.concatenate(
            [
                [np.load(self.path(cell, turn)) for cell in range(len(self.cells))]
                for turn in range(rounds)
            ],
            axis=1,
        ).reshape(shape)


def shares(results):
    """Share of instances of each cell that recover the signal, shape (δ, θ)."""
    return (results[..., 1] > RECOVERED).mean(axis=2)


def predicted(diagram):
    """The limits y/y*, overlap with μ̃ and location, each of shape (δ, θ)."""
    found = []
    for delta in diagram.deltas:
        y = spikes.spike_parameter(SNR, diagram.thetas, delta)
        top = spikes.outlier(y, delta, GAMMA)
        found.append((y / spikes.critical_spike(delta, GAMMA), top.overlap, top.location))
    return np.moveaxis(np.array(found), 1, 0)


def recovery_signal(delta):
    """The θ from which the limit of the overlap exceeds RECOVERED; the transition lies below it."""

    def excess(theta):
        y = spikes.spike_parameter(SNR, theta, delta)
        return spikes.outlier(y, delta, GAMMA).overlap - RECOVERED

    return scipy.optimize.brentq(excess, 0, 100)


def picture(diagram, share):
    """The diagram as a Markdown table: a row a θ, a column a δ, shares in percent.

    Bold where this book predicts recovery, bold italic where there is an outlier by the threshold
    of the source as well.
    """
    lines = ["| θ \\ δ | " + " | ".join(f"{delta:g}" for delta in diagram.deltas) + " |"]
    lines.append("|---:|" + "---:|" * len(diagram.deltas))
    for row, theta in reversed(list(enumerate(diagram.thetas))):
        cells = []
        for column, delta in enumerate(diagram.deltas):
            ours = theta > recovery_signal(delta)
            theirs = theta > spikes.critical_signal_as_stated(SNR, delta, GAMMA)
            mark = "*" * (2 * ours + (ours and theirs))
            cells.append(f"{mark}{100 * share[column][row]:.0f}{mark}")
        lines.append(f"| {theta:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


@contextlib.contextmanager
def workers_here(count):
    """Worker processes of one thread on this machine: an executor and their number."""
    import dask
    from distributed import Client

    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ": KEEP_MEMORY}),
        Client(
            n_workers=count, threads_per_worker=1, dashboard_address=":0", set_as_default=False
        ) as client,
        clusters.connected(client) as found,
    ):
        yield found


@contextlib.contextmanager
def place(given):
    """Where to compute: an executor and the number of its workers, checked once for all cells."""
    if given.cluster:
        with clusters.connected(given.cluster) as found:
            yield found
    elif given.workers:
        with workers_here(given.workers) as found:
            yield found
    else:
        yield "serial", 1


def _put(path, content):
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)


def main():
    """Compute, and print the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--cluster", help="address of a Dask scheduler")
    where.add_argument("--workers", type=int, help="worker processes of this machine")
    parser.add_argument("--folder", default="_build/phase-diagram", help="for the finished cells")
    parser.add_argument("--rounds", type=int, default=1, help="of --replicates instances a cell")
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--side", type=int, default=10, help="cells along each axis")
    parser.add_argument("--dim", type=int, default=240)
    given = parser.parse_args()
    try:
        diagram = Diagram(given.folder, side=given.side, replicates=given.replicates, d=given.dim)
        with place(given) as (pool, workers):
            diagram.run(pool, workers, given.rounds, progress=True)
    except (ValueError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        print(f"Finished cells are kept in {given.folder}; run it again to go on.", file=sys.stderr)
        return 1
    print(picture(diagram, shares(diagram.results(given.rounds))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
