"""The largest sizes: an outlier at d = 20 000, attention of 100 000 tokens. Minutes, gigabytes."""

from benchmarks.bench_flow import velocity_for_tokens
from benchmarks.bench_outliers import outlier_without_pooling
from benchmarks.growth import fresh


def run(bench):
    """Measure each in a process of its own."""
    d = bench.size(20_000, 200)
    ((seconds, base, grown),) = fresh(outlier_without_pooling, 20, [d])
    total = None if base is None else (base + grown) / 2**30
    note = f"vectors not formed; {seconds:.0f} s after the table was drawn"
    bench.goal(
        f"one outlier at d = {d}, V = N = 2d, peak memory", "at most", 24, total, "GiB", note
    )
    n = bench.size(100_000, 1000)
    ((seconds, _, grown),) = fresh(velocity_for_tokens, 100, [n])
    grown = None if grown is None else grown / 2**20
    # room for a hundred arrays like the tokens; one array of n² numbers would be 75 GiB
    bound = round(100 * 24 * n / 2**20)
    note = f"{seconds:.0f} s for one velocity, d = 3, H = 1"
    bench.goal(
        f"attention of {n} tokens, memory beside that of 100", "at most", bound, grown, "MiB", note
    )
