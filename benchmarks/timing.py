"""The clock of all benchmarks: contestants take turns in shuffled order within one run."""

from __future__ import annotations

import math
import random
import statistics
import time


def rounds_of(contestants, rounds, clock=time.process_time, seed=2026):
    """Time contestants in turn, in an order that is drawn anew each round.

    A change of the machine's pace falls on all of them, and so does what the one before leaves in
    caches and free memory. One round more is run first and left out.

    Parameters
    ----------
    contestants : dict of str to callable
    rounds : int
        At least 1.
    clock : callable, optional
        Processor time by default; wall time where several threads work.
    seed : int, optional
        Seed of the orders.

    Returns
    -------
    dict of str to list of float
        Seconds of each contestant, one a round.
    """
    rng = random.Random(seed)
    times = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name in rng.sample(list(contestants), len(contestants)):
            times[name].append(_timed(contestants[name], clock))
    return {name: found[1:] for name, found in times.items()}


def _timed(call, clock):
    # a coarse clock may stand still during a short call: then more calls, and their mean
    start, calls, took = clock(), 0, 0.0
    while took <= 0:
        call()
        calls += 1
        took = clock() - start
    return took / calls


def quartiles(values):
    """Lower quartile, median and upper quartile of at least one number."""
    if len(values) == 1:
        return [values[0]] * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def paired_ratios(others, ours):
    """Quartiles of the ratios of times taken in the same round.

    Parameters
    ----------
    others, ours : list of float
        Seconds, one a round.

    Returns
    -------
    list of float
        Quartiles of other/ours: above 1 the other is slower.
    """
    return quartiles([other / mine for other, mine in zip(others, ours, strict=True)])


def seconds_of(call, enough=0.3, clock=time.process_time):
    """Least time of a call, repeated until it has taken `enough` seconds altogether.

    Short calls are timed in groups, each long beside the steps of a coarse clock, and a group
    counts by its mean. The first call counts only if it alone took `enough`. The default clock
    suits one thread.
    """

    def group(calls):
        start = clock()
        for _ in range(calls):
            call()
        return clock() - start

    first = group(1)
    if first >= enough:
        return first
    calls, best, spent = 1, math.inf, 0.0
    while spent < enough:
        took = group(calls)
        spent += took
        if took < enough / 30:
            calls *= 2
        else:
            best = min(best, took / calls)
    return best
