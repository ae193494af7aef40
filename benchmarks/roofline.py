"""What one thread of the machine can do at most, and what bounds a kernel."""

from __future__ import annotations

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.timing import seconds_of

#: Kinds of work and what their peaks count; times within one of the two groups add up.
COMPUTING = {
    "flops": "multiplications and additions in matrix products",
    "exponentials": "exponentials, in cache",
    "cube roots": "cube roots, in cache",
}
MOVING = {
    "bytes": "bytes from and to memory (triad)",
    "cached bytes": "bytes within the cache (triad)",
}


def peaks():
    """Measure the peaks of one thread.

    Returns
    -------
    dict of str to float
        A rate a second for every kind of `COMPUTING` and `MOVING`.
    """
    rng = np.random.default_rng(0)
    square = rng.normal(size=(1000, 1000))
    block = torch.from_numpy(rng.normal(size=2**14))
    result = torch.empty_like(block)
    large = [torch.zeros(2**23, dtype=torch.float64) + i for i in range(3)]
    small = [torch.zeros(2**13, dtype=torch.float64) + i for i in range(3)]
    plain = block.abs().numpy()

    def triad(three):
        torch.add(three[0], three[1], alpha=3.0, out=three[2])

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        found = {
            "flops": 2 * 1000**3 / seconds_of(lambda: square @ square),
            "exponentials": len(block) / seconds_of(lambda: torch.exp2(block, out=result)),
            "cube roots": len(plain) / seconds_of(lambda: np.cbrt(plain)),
            "bytes": 24 * len(large[0]) / seconds_of(lambda: triad(large)),
            "cached bytes": 24 * len(small[0]) / seconds_of(lambda: triad(small)),
        }
    torch.set_num_threads(threads)
    return found


def bound(work, rates):
    """Least time for some work, and what takes it.

    Parameters
    ----------
    work : dict of str to float
        Amounts by kind.
    rates : dict of str to float
        Peaks by kind.

    Returns
    -------
    seconds : float
        The larger of the times for computing and for moving data, as if both could overlap.
    kind : str
        The kind that takes most of that time.
    """
    times = {kind: amount / rates[kind] for kind, amount in work.items()}
    sides = [{k: t for k, t in times.items() if k in side} for side in (COMPUTING, MOVING)]
    longest = max(sides, key=lambda side: sum(side.values()))
    return sum(longest.values()), max(longest, key=longest.get)
