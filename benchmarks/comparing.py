"""One run of one benchmark: what it compares, aims at, bounds and grows."""

from __future__ import annotations

import os
import statistics
import time
from typing import NamedTuple

import torch
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks import growth, recording, roofline, timing
from rederive_book import machine

PACKAGES = ("numpy", "scipy", "torch", "POT", "statsmodels", "freealg")


class Contestant(NamedTuple):
    """A way to compute something, with the code that the page shows and its error."""

    name: str
    call: object
    #: The function whose source is shown, or None.
    shown: object = None
    error: float | None = None
    #: Timed with ours in a second, short series, because it takes so long.
    slow: bool = False


class Bench:
    """Collects what one benchmark finds.

    Parameters
    ----------
    trying : bool
        One round and the smaller sizes, to see that everything runs. Its figures mean nothing.
    flow_code : str or None
        Checkout of the published engine.
    """

    def __init__(self, trying=False, flow_code=None):
        self.trying, self.flow_code = trying, flow_code
        self.start = time.perf_counter()
        self.peaks = roofline.peaks()
        self.comparisons, self.goals, self.growths, self.rooflines = [], [], [], []

    def size(self, full, small):
        """The full size, or the small one in a try."""
        return small if self.trying else full

    def compare(self, kernel, size, contestants, rounds, reference="", threads=(1, 2)):
        """Time contestants, ours first, on one thread and on two.

        Parameters
        ----------
        kernel, size : str
        contestants : list of Contestant
        rounds : int
        reference : str, optional
            What the errors are.
        threads : tuple of int, optional

        Returns
        -------
        dict of str to float
            Median ratio of each peer's time to ours on one thread; ours has its seconds.
        """
        first = {}
        for count in threads:
            if count > _cores():
                print(f"{kernel}: {count} threads left out, there are not so many cores")
                continue
            rows = self._rows(contestants, rounds, count)
            made = recording.Comparison(
                kernel, size, count, 1 if self.trying else rounds, reference, rows
            )
            self.comparisons.append(made)
            report(made)
            first = first or {row.contestant: row for row in rows}
        return {n: row.ratio[1] if row.ratio else row.seconds for n, row in first.items()}

    def _rows(self, contestants, rounds, threads):
        ours = contestants[0]
        torch.set_num_threads(threads)
        # with one thread the processor's time, which other programs do not lengthen
        clock = time.process_time if threads == 1 else time.perf_counter
        quick = [one for one in contestants if not one.slow]
        slow = [ours, *(one for one in contestants if one.slow)]
        with threadpool_limits(threads):
            times = timing.rounds_of(
                {one.name: one.call for one in quick}, 1 if self.trying else rounds, clock
            )
            own = {one.name: times[ours.name] for one in quick}
            if len(slow) > 1:
                again = timing.rounds_of(
                    {one.name: one.call for one in slow}, 1 if self.trying else 3, clock
                )
                own |= {one.name: again[ours.name] for one in slow[1:]}
                times |= {one.name: again[one.name] for one in slow[1:]}
        torch.set_num_threads(1)
        return [
            recording.Row(
                one.name,
                f"{one.shown.__module__.rpartition('.')[2]}.{one.shown.__name__}"
                if one.shown
                else "",
                statistics.median(times[one.name]),
                None if one is ours else timing.paired_ratios(times[one.name], own[one.name]),
                None if one.error is None else float(one.error),
            )
            for one in contestants
        ]

    def goal(self, what, sense, bound, measured, unit, note=""):
        """Set down a goal and what was measured."""
        measured = None if measured is None else float(measured)
        made = recording.Goal(what, sense, float(bound), measured, unit, note)
        self.goals.append(made)
        print(f"  goal: {what}, {sense} {bound:g} {unit}: {measured}", flush=True)

    def roof(self, kernel, size, work, call, note=""):
        """Time a kernel on one thread beside the least time for its work; return the ratio."""
        with threadpool_limits(1):
            seconds = timing.seconds_of(call, 0.01 if self.trying else 4.0)
        work = {kind: float(amount) for kind, amount in work.items()}
        self.rooflines.append(recording.Roofline(kernel, size, work, seconds, note))
        ratio = seconds / roofline.bound(work, self.peaks)[0]
        print(f"  roofline: {kernel}, {size}: {ratio:.1f} times the bound", flush=True)
        return ratio

    def grow(self, *sweep):
        """Measure a sweep, see `growth.Sweep`; a try takes its three smallest sizes."""
        sweep = growth.Sweep(*sweep)
        if self.trying:
            sweep = sweep._replace(sizes=sweep.sizes[:3])
        found = growth.grow(sweep)
        self.growths.append(found)
        print(f"  {sweep.kernel}, {sweep.variable}: {found.seconds[-1]:.3g} s at {found.sizes[-1]}")
        return found

    def result(self, name, facts):
        """Everything that was found.

        Parameters
        ----------
        name : str
        facts : dict
            `date`, `commit`, `machine` and `coretype`.

        Returns
        -------
        recording.Result
        """
        return recording.Result(
            name=name,
            **facts,
            versions=machine.versions(PACKAGES),
            blas=libraries(),
            peaks=self.peaks,
            took=time.perf_counter() - self.start,
            comparisons=self.comparisons,
            goals=self.goals,
            growths=self.growths,
            rooflines=self.rooflines,
        )


def _cores():
    """Cores that this process may use: `taskset` leaves it fewer than there are."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def libraries():
    """The libraries for linear algebra that are loaded, in words."""
    found = {
        f"{one['internal_api']} {one['version'] or ''} ({one.get('architecture', 'unknown')})"
        for one in threadpool_info()
        if one["user_api"] == "blas"
    }
    return ", ".join(sorted(found)) or "unknown"


def report(comparison):
    """Print a comparison."""
    print(f"\n{comparison.kernel}, {comparison.size}, {comparison.threads} thread(s)")
    for row in comparison.rows:
        ratio = f"{row.ratio[1]:8.2f} × ours" if row.ratio else ""
        error = "" if row.error is None else f"   error {row.error:.1e}"
        print(f"  {row.contestant:34} {row.seconds * 1e3:10.2f} ms {ratio}{error}", flush=True)
