"""How time and memory of a kernel grow with one size: fresh processes, and a straight line."""

from __future__ import annotations

import math
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
import scipy.stats
from threadpoolctl import threadpool_limits

from benchmarks.recording import Growth
from benchmarks.timing import seconds_of

#: Growth of memory below this is noise of the allocator.
SEEN = 4 * 2**20


class Sweep(NamedTuple):
    """A kernel whose one size grows."""

    kernel: str
    variable: str
    fixed: str
    sizes: list[int]
    #: A function of a module: size → what is to be called, with its inputs drawn.
    prepare: object
    #: Power of the size with which memory grows, known from what the code holds.
    order: int = 1
    note: str = ""


class Fit(NamedTuple):
    """A power law, y ≈ factor · size^exponent, on the upper half of the sizes."""

    exponent: float
    #: Half-width of the 95 % interval; inf for two points.
    spread: float
    factor: float


def decades(start, stop, count=7):
    """Whole numbers from start to stop, evenly spaced in the logarithm."""
    return [round(size) for size in np.geomspace(start, stop, count)]


def fit(sizes, values):
    """Fit a power law to the upper half of the sizes, in logarithms.

    Fixed costs, which bend the line, weigh most at small sizes.

    Parameters
    ----------
    sizes, values : sequence of float
        Positive, at least two.

    Returns
    -------
    Fit
    """
    middle = math.sqrt(sizes[0] * sizes[-1])
    pairs = list(zip(sizes, values, strict=True))
    upper = [pair for pair in pairs if pair[0] >= 0.999 * middle]
    x, y = np.log(np.array(upper if len(upper) > 1 else pairs[-2:], dtype=float)).T
    line = scipy.stats.linregress(x, y)
    free = len(x) - 2
    spread = scipy.stats.t.ppf(0.975, free) * line.stderr if free > 0 else math.inf
    return Fit(float(line.slope), float(spread), math.exp(line.intercept))


def largest_size(growth, room=24 * 2**30):
    """Size whose memory fills the room, if it grows on from the largest size as the code says.

    Returns
    -------
    float or None
        None if memory was not measured, or did not show even at the largest size.
    """
    if growth.peaks is None or growth.peaks[-1] < SEEN:
        return None
    return growth.sizes[-1] * ((room - growth.base) / growth.peaks[-1]) ** (1 / growth.order)


def peak():
    """Peak resident bytes of this process so far, or None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found * (1 if sys.platform == "darwin" else 1024)


def measured(prepare, smallest, size):
    """In a fresh process, on one thread: seconds, peak before, and growth of the peak."""
    torch = sys.modules.get("torch")
    if torch:
        torch.set_num_threads(1)
    with threadpool_limits(1):
        prepare(smallest)()  # libraries load what they need
        before = peak()
        call = prepare(size)
        seconds = seconds_of(call)
        after = peak()
    return seconds, before, None if before is None else after - before


def fresh(prepare, smallest, sizes):
    """Measure every size in a process of its own, that has run the smallest size before.

    Parameters
    ----------
    prepare : callable
        A function of a module: size → what is to be called.
    smallest : int
    sizes : list of int

    Returns
    -------
    list of tuple
        Seconds, peak before, growth of the peak; the latter None where the system does not tell.
    """
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":  # libraries are imported once; nothing has been computed there
        context.set_forkserver_preload([prepare.__module__])
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        return [pool.submit(measured, prepare, smallest, size).result() for size in sizes]


def grow(sweep):
    """Measure every size of a sweep.

    Parameters
    ----------
    sweep : Sweep

    Returns
    -------
    Growth
    """
    found = fresh(sweep.prepare, sweep.sizes[0], sweep.sizes)
    seconds, before, peaks = zip(*found, strict=True)
    known = None not in before
    return Growth(
        sweep.kernel,
        sweep.variable,
        sweep.fixed,
        sweep.sizes,
        list(seconds),
        list(peaks) if known else None,
        min(before) if known else None,
        sweep.order,
        sweep.note,
    )
