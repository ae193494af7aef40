"""Nadaraya–Watson: the library against fair peers, in one run on one thread.

Run ``python benchmarks/bench_smoothing.py``. The contestants take turns in an order that is drawn
anew each round, so that a change of the machine's pace falls on all of them, and so does what the
one before leaves in caches and free memory: a block that the system must hand out page by page
costs a millisecond. Medians of the processor time are printed (one thread, so that is the time on
an idle machine). Goals: at most 1.5 times the blocked NumPy below, with the best of several block
sizes; at least ten times faster than the local-constant estimator of statsmodels; a million keys in
less than 200 MB beside the data. Estimates are compared before anything is timed.
"""

import sys
import warnings

import numpy as np
import torch
from statsmodels.nonparametric.kernel_regression import KernelReg
from threadpoolctl import threadpool_limits
from timing import medians

from rederive import smoothing

BLOCK_SIZES = ((256, 1024), (512, 512), (512, 1024), (1000, 256))


def blocked_numpy(queries, keys, values, bandwidth, query_block, key_block):
    """The same estimate in plain NumPy: blocks of keys with a running maximum, in place."""
    centre = keys.mean(axis=0)
    estimates = np.empty((len(queries), values.shape[1]))
    for top in range(0, len(queries), query_block):
        a = (queries[top : top + query_block] - centre) / bandwidth
        peak = np.full((len(a), 1), -np.inf)
        mass = np.zeros((len(a), 1))
        total = np.zeros((len(a), values.shape[1]))
        for left in range(0, len(keys), key_block):
            b = (keys[left : left + key_block] - centre) / bandwidth
            scores = a @ b.T
            scores -= (b * b).sum(axis=1) / 2
            higher = np.maximum(peak, scores.max(axis=1, keepdims=True))
            scores -= higher
            np.exp(scores, out=scores)
            shrink = np.exp(peak - higher)
            mass = mass * shrink + scores.sum(axis=1, keepdims=True)
            total = total * shrink + scores @ values[left : left + key_block]
            peak = higher
        estimates[top : top + query_block] = total / mass
    return estimates


def kernel_reg(queries, keys, values, bandwidth):
    """The local-constant estimator of statsmodels, a Gaussian product kernel."""
    width = keys.shape[1]
    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        model = KernelReg(values[:, 0], keys, "c" * width, reg_type="lc", bw=[bandwidth] * width)
        return model.fit(queries)[0][:, None]


def dense_torch(queries, keys, values, bandwidth):
    """What one writes first: the whole matrix of scores, then a softmax."""
    scores = queries @ keys.T / bandwidth**2 - keys.square().sum(1) / 2 / bandwidth**2
    return torch.softmax(scores, dim=1) @ values


def problem(n, m, p):
    """Random keys, queries and values of width one; the numbers do not matter for the time."""
    rng = np.random.default_rng(2026)
    keys, queries = rng.normal(size=(n, p)), rng.normal(size=(m, p))
    return queries, keys, np.sin(keys.sum(axis=1, keepdims=True)) + rng.normal(size=(n, 1))


def compare(n, m, p, bandwidth, rounds, statsmodels=False):
    """Time one problem and print a row a contestant."""
    plain = problem(n, m, p)
    tensors = [torch.tensor(part) for part in plain]
    ours = smoothing.nadaraya_watson(*tensors, bandwidth).numpy()
    contestants = {"rederive": lambda: smoothing.nadaraya_watson(*tensors, bandwidth)}
    for rows, columns in BLOCK_SIZES:
        np.testing.assert_allclose(blocked_numpy(*plain, bandwidth, rows, columns), ours, atol=1e-9)
        contestants[f"NumPy, blocks {rows}×{columns}"] = lambda rows=rows, columns=columns: (
            blocked_numpy(*plain, bandwidth, rows, columns)
        )
    contestants["torch, whole matrix"] = lambda: dense_torch(*tensors, bandwidth)
    if statsmodels:
        np.testing.assert_allclose(kernel_reg(*plain, bandwidth), ours, atol=1e-9)
        contestants["statsmodels KernelReg"] = lambda: kernel_reg(*plain, bandwidth)
    found = medians(contestants, rounds)
    print(f"\nn = {n}, m = {m}, p = {p}, h = {bandwidth}: median of {rounds} shuffled rounds")
    for name, median in found.items():
        print(f"  {name:26} {median * 1e3:10.2f} ms   {median / found['rederive']:8.2f} × rederive")
    best = min(median for name, median in found.items() if name.startswith("NumPy"))
    return found["rederive"] / best, found.get("statsmodels KernelReg", np.nan) / found["rederive"]


def peak_memory(n, m, p):
    """Bytes that the process grows by while it smooths n keys, where the system tells them."""
    try:
        import resource
    except ImportError:
        return None
    keys, queries = torch.empty(n, p).double().normal_(), torch.empty(m, p).double().normal_()
    values = torch.empty(n, 1).double().normal_()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    smoothing.nadaraya_watson(queries, keys, values, 1.0)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return grown * (1 if sys.platform == "darwin" else 1024)


def main():
    """Print the tables and the ratios; the exit code tells whether the goals are met."""
    torch.set_num_threads(1)
    with threadpool_limits(1):
        grown = peak_memory(10**6, 1000, 16)
        small = compare(2000, 500, 2, 0.3, 41, statsmodels=True)
        middle = compare(20_000, 1000, 8, 0.5, 11)
        large = compare(100_000, 1000, 16, 1.0, 7)
    slowest = max(small[0], middle[0], large[0])
    print(f"\ntime relative to the best blocked NumPy, worst case: {slowest:.2f} (goal ≤ 1.5)")
    print(f"speed relative to statsmodels: {small[1]:.1f} (goal ≥ 10)")
    if grown is not None:
        print(f"memory beside the data at a million keys: {grown / 1e6:.1f} MB (goal < 200)")
    return int(slowest > 1.5 or small[1] < 10 or (grown or 0) >= 200e6)


if __name__ == "__main__":
    sys.exit(main())
