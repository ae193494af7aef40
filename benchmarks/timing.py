"""The clock of all benchmarks: contestants take turns in shuffled order within one run."""

import random
import statistics
import time


def medians(contestants, rounds):
    """Median processor time of each contestant over shuffled rounds, the first left out."""
    rng = random.Random(2026)
    times = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name in rng.sample(list(contestants), len(contestants)):
            start = time.process_time()
            contestants[name]()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(found[1:]) for name, found in times.items()}
