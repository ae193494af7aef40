"""Nadaraya–Watson: the library beside blocked NumPy, torch and statsmodels.

Contestants take turns, so that what one leaves in caches and free memory falls on all: a block that
the system must hand out page by page costs a millisecond.
"""

import warnings

import numpy as np
import torch
from statsmodels.nonparametric.kernel_regression import KernelReg

from benchmarks.comparing import Contestant
from benchmarks.growth import decades, fresh
from rederive import smoothing

BLOCK_SIZES = ((256, 1024), (512, 512), (1000, 256))


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


def sdpa(queries, keys, values, bandwidth):
    """The attention kernel of torch: one more coordinate holds −|k|²/2.

    Values are widened to the width of the keys, because otherwise it makes the whole matrix.
    """
    a, b = queries / bandwidth, keys / bandwidth
    a = torch.cat([a, torch.ones_like(a[:, :1])], dim=1)
    b = torch.cat([b, -b.square().sum(dim=1, keepdim=True) / 2], dim=1)
    wide = torch.nn.functional.pad(values, (0, b.shape[1] - values.shape[1]))
    found = torch.nn.functional.scaled_dot_product_attention(
        a[None, None], b[None, None], wide[None, None], scale=1.0
    )
    return found[0, 0, :, : values.shape[1]]


def exact(queries, keys, values, bandwidth):
    """The estimate in NumPy's longest floats, coordinate by coordinate."""
    q, k, y = (part.astype(np.longdouble) for part in (queries, keys, values))
    scores = -sum(((a[:, None] - b) / bandwidth) ** 2 for a, b in zip(q.T, k.T, strict=True)) / 2
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ y / weights.sum(axis=1, keepdims=True)


def problem(n, m, p):
    """Random keys, queries and values of width one; the numbers do not matter for the time."""
    rng = np.random.default_rng(2026)
    keys, queries = rng.normal(size=(n, p)), rng.normal(size=(m, p))
    return queries, keys, np.sin(keys.sum(axis=1, keepdims=True)) + rng.normal(size=(n, 1))


def compare(bench, n, m, p, bandwidth, rounds, statsmodels=False):
    """One problem; the ratio of our time to the best blocked NumPy, and that of statsmodels."""
    plain = problem(n, m, p)
    tensors = [torch.tensor(part) for part in plain]
    truth = exact(plain[0][:16], *plain[1:], bandwidth)
    given = [("ours", smoothing.nadaraya_watson, None, tensors, ())]
    for block in BLOCK_SIZES:
        given.append(
            (f"NumPy, blocks {block[0]}×{block[1]}", blocked_numpy, blocked_numpy, plain, block)
        )
    given.append(("torch, attention kernel", sdpa, sdpa, tensors, ()))
    given.append(("torch, all scores", dense_torch, dense_torch, tensors, ()))
    if statsmodels:
        given.append(("statsmodels KernelReg", kernel_reg, kernel_reg, plain, ()))
    contestants = []
    for name, function, shown, data, block in given:
        call = lambda f=function, data=data, block=block: f(*data, bandwidth, *block)  # noqa: E731
        error = np.abs(np.asarray(call())[: len(truth)] - truth).max()
        contestants.append(Contestant(name, call, shown, error, function is kernel_reg))
    size = f"n = {n}, m = {m}, p = {p}, h = {bandwidth}"
    found = bench.compare(
        "Nadaraya–Watson", size, contestants, rounds,
        "largest error of 16 estimates, against extended precision",
    )  # fmt: skip
    best = max(1 / ratio for name, ratio in found.items() if name.startswith("NumPy"))
    return best, found.get("statsmodels KernelReg")


def smoothing_of_keys(n):
    """Estimates at 100 queries from n keys of width 16."""
    data = [torch.tensor(part) for part in problem(n, 100, 16)]
    return lambda: smoothing.nadaraya_watson(*data, 1.0)


def smoothing_of_width(p):
    """Estimates at 500 queries from 5000 keys of some width."""
    data = [torch.tensor(part) for part in problem(5000, 500, p)]
    return lambda: smoothing.nadaraya_watson(*data, float(np.sqrt(p)))


def beside_the_data(n):
    """Estimates at 1000 queries from n keys of width 16, which are drawn as tensors."""
    queries, keys, values = (
        torch.randn(size, width, dtype=torch.float64)
        for size, width in ((1000, 16), (n, 16), (n, 1))
    )
    return lambda: smoothing.nadaraya_watson(queries, keys, values, 1.0)


def run(bench):
    """Compare, bound and grow."""
    torch.set_num_threads(1)
    worst, statsmodels = compare(bench, 2000, 500, 2, 0.3, 21, statsmodels=True)
    for n, m, p, bandwidth, rounds in ((20_000, 1000, 8, 0.5, 7), (100_000, 1000, 16, 1.0, 5)):
        n, m = bench.size(n, n // 10), bench.size(m, m // 10)
        worst = max(worst, compare(bench, n, m, p, bandwidth, rounds)[0])
    kernel = "Nadaraya–Watson"
    what = f"{kernel} against the best blocked NumPy, worst of three sizes"
    bench.goal(what, "at most", 1.5, worst, "times its time")
    bench.goal(f"{kernel} against statsmodels", "at least", 10, statsmodels, "times as fast")
    n = bench.size(1_000_000, 100_000)
    grown = fresh(beside_the_data, 1000, [n])[0][2]
    if grown is not None:
        grown = max(0, grown - n * 17 * 8) / 1e6
    what = f"{kernel}, memory beside the data at {n:_} keys".replace("_", " ")
    bench.goal(what, "at most", 200, grown, "MB")
    n, m, p = 20_000, 1000, 8
    data = [torch.tensor(part) for part in problem(n, m, p)]
    work = {"exponentials": n * m, "flops": 2 * n * m * (p + 1)}
    call = lambda: smoothing.nadaraya_watson(*data, 0.5)  # noqa: E731
    bench.roof(kernel, f"n = {n}, m = {m}, p = {p}", work, call)
    bench.grow(kernel, "n", "m = 100, p = 16", decades(1000, 1_000_000), smoothing_of_keys)
    bench.grow(kernel, "p", "n = 5000, m = 500", decades(2, 2000), smoothing_of_width)
