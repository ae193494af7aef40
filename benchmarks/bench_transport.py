"""Exact Wasserstein distances between clouds of equal weights on the sphere."""

import numpy as np
import ot
import scipy.optimize
import torch

from benchmarks.comparing import Contestant
from benchmarks.growth import Sweep, decades
from rederive import sphere, transport


def clouds(n):
    """Two clouds on the sphere."""
    rng = np.random.default_rng(2026)
    return sphere.uniform(rng, n), sphere.octahedral(rng, n)


def angles(first, second):
    """Squared angles, as one writes them first."""
    return np.arccos(np.clip(first.numpy() @ second.numpy().T, -1, 1)) ** 2


def assignment(first, second):
    """Clouds of equal size and weights: the best assignment, by SciPy."""
    costs = angles(first, second)
    return np.sqrt(costs[scipy.optimize.linear_sum_assignment(costs)].mean())


def plain_pot(first, second):
    """The call of POT's own examples."""
    return np.sqrt(ot.emd2([], [], angles(first, second)))


def exact(first, second):
    """The distance of the best assignment in NumPy's longest floats."""
    rows, columns = scipy.optimize.linear_sum_assignment(angles(first, second))
    x, y = (part.numpy().astype(np.longdouble) for part in (first, second))
    gaps, sums = (np.sqrt(((x[rows] - s * y[columns]) ** 2).sum(1)) for s in (1, -1))
    return np.sqrt(((2 * np.arctan2(gaps, sums)) ** 2).mean())


def compare(bench, n):
    """One pair of clouds."""
    first, second = clouds(n)
    truth = exact(first, second)
    contestants = [
        Contestant(
            name,
            lambda function=function: function(first, second),
            None if name == "ours" else function,
            abs(float(function(first, second)) / truth - 1),
        )
        for name, function in (
            ("ours (POT)", transport.wasserstein_distance),
            ("SciPy, best assignment", assignment),
            ("POT as in its examples", plain_pot),
        )
    ]
    contestants[0] = contestants[0]._replace(shown=None)
    bench.compare(
        "exact W₂", f"n = {n}, d = 3", contestants, 5,
        "relative error, against the best assignment in extended precision",
    )  # fmt: skip


def distance_of_clouds(n):
    """The distance of two clouds of n points."""
    first, second = clouds(n)
    return lambda: transport.wasserstein_distance(first, second)


def run(bench):
    """Compare, bound and grow."""
    torch.set_num_threads(1)
    for n in (bench.size(300, 30), bench.size(1000, 100)):
        compare(bench, n)
    n = bench.size(1000, 100)
    first, second = clouds(n)
    bench.roof(
        "exact W₂", f"n = {n}, d = 3", {"flops": 2 * 3 * n * n, "bytes": 8 * n * n},
        lambda: transport.wasserstein_distance(first, second),
        "only the costs, read once; a simplex method passes over them as often as the data asks",
    )  # fmt: skip
    sweep = Sweep(
        "exact W₂", "n", "d = 3", decades(10, 3200, 6), distance_of_clouds, 2,
        "two and a half decades: the next half takes minutes",
    )  # fmt: skip
    bench.grow(*sweep)
