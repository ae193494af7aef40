"""Tokens on the sphere: the library's engine beside the one that the authors published.

The published engine is that of
github.com/alexmassucco/Transformers_as_time_dependent_gradient_flows; its checkout is named by
``--flow-code`` or ``FLOW_CODE``, and nothing of it is part of this repository. Both engines get the
same tokens, heads, step and noise, and every array that theirs records is compared before anything
is timed. Their martingale takes the tokens after the step, which costs us a second pass over all
pairs; the time without it is given too.
"""

import math
import os
import statistics
import sys
import time

import numpy as np
import torch

from benchmarks.bench_flow import N, pair_work, start
from benchmarks.comparing import Contestant
from rederive import flow_kernels, head_weights, integrators

GOALS = {100: 20, 10: 8, 1: 3}
DT, PATHS = 5e-3, 10
NAMES = ("E", "G2", "dE_int", "G2_int", "add_int", "mean_traj")


def normals(shape, seed=7):
    """The numbers that the published engine draws at every step."""
    source = torch.Generator().manual_seed(seed)
    return lambda step: torch.randn(shape, generator=source, dtype=torch.float64).numpy()


def ours(tokens, heads, steps, moved=True):
    """Run the library as the published engine runs: Euler's step for tokens and heads."""
    return integrators.integrate(
        tokens.expand(PATHS, *tokens.shape), head_weights.OrnsteinUhlenbeck(heads.numpy()),
        steps * DT, DT, order=1, exact_weights=False, noise=normals((PATHS, *heads.shape)),
        moved_martingale=moved, record_every=5, keep_trajectory=True,
    )  # fmt: skip


def theirs(engine, tokens, heads, steps, paths, law="ou", dt=DT):
    """Run the published engine."""
    drift = {"ou": engine.ou_drift, "frozen": engine.frozen_drift}.get(law)
    drift = drift or engine.make_drift_oscillating(3)
    variance = 2.0 if law == "ou" else 0.0
    return engine.simulate_batch(
        tokens.numpy(), heads, drift, variance, torch.device("cpu"),
        steps * dt, dt, 5, n_paths=paths, seed=7,
    )  # fmt: skip


def largest_difference(run, raw):
    """Largest difference between our records and theirs, each relative to 1 or its own size."""
    same = (
        run.energy, run.claimed_dissipation, run.explicit + run.ito, run.claimed, run.martingale,
        run.trajectory,
    )  # fmt: skip
    gaps = [
        np.abs(mine.numpy() - raw[name]).max() / max(1.0, np.abs(raw[name]).max())
        for name, mine in zip(NAMES, same, strict=True)
    ]
    return float(max(gaps))


def compare_steps(bench, engine, n_heads, steps, rounds):
    """A step with Ornstein–Uhlenbeck heads."""
    tokens, heads = start(n_heads)
    contestants = [
        Contestant("ours", lambda: ours(tokens, heads, steps)),
        Contestant("ours, martingale at the start", lambda: ours(tokens, heads, steps, False)),
    ]
    gap, reference = None, ""
    if engine:
        raw = theirs(engine, tokens, heads, steps, PATHS)
        gap = largest_difference(ours(tokens, heads, steps), raw)
        call = lambda: theirs(engine, tokens, heads, steps, PATHS)  # noqa: E731
        contestants.append(Contestant("published engine", call, error=gap))
        reference = "largest difference of a recorded number to ours, relative to 1 or to its array"
    size = f"H = {n_heads}, n = {N}, d = 3, {PATHS} paths, {steps} steps"
    found = bench.compare("engine with energy balance", size, contestants, rounds, reference)
    note = "" if engine else "no checkout of the published code was given"
    bench.goal(
        f"engine against the published one, H = {n_heads}",
        "at least", GOALS[n_heads], found.get("published engine"), "times as fast", note,
    )  # fmt: skip
    bench.goal(
        f"records equal to those of the published engine, H = {n_heads}",
        "at most", 1e-12, gap, "", note,
    )  # fmt: skip


def compare_accuracy(bench, engine, law, n_heads=10, final_time=2.0, accuracy=1e-5):
    """Both at one accuracy; theirs, of order 1, is extrapolated from coarser steps."""
    tokens, heads = start(n_heads)
    weights = {"frozen": head_weights.Frozen, "oscillating": head_weights.Oscillating}[law]
    weights = weights(heads.numpy())

    def run(steps):
        return integrators.integrate(tokens, weights, final_time, final_time / steps).tokens

    exact = run(bench.size(320, 80))
    error = lambda found: float((found - exact).square().sum(-1).mean().sqrt())  # noqa: E731
    steps = 5
    while error(run(steps)) > accuracy:
        steps += 1
    ratio, note = None, "no checkout of the published code was given"
    if engine:
        spent, each, errors = [], [], []
        for many in (100, 200, 400):
            before = time.process_time()
            raw = theirs(engine, tokens, heads, many, 1, law, final_time / many)
            each.append((time.process_time() - before) / (many + 1))
            errors.append(error(torch.tensor(raw["mean_traj"][0, -1])))
            before = time.process_time()
            run(steps)
            spent.append(time.process_time() - before)
        needed = 400 * errors[-1] / accuracy
        ratio = needed * statistics.median(each) / statistics.median(spent)
        order = math.log2(errors[-2] / errors[-1])
        note = (
            f"{steps} steps of ours; {needed:.0f} steps of theirs, of order {order:.2f}, "
            "extrapolated from 400"
        )
    bench.goal(
        f"engine at a mean error of 10⁻⁵, {law} heads",
        "at least", 300, ratio, "times as fast", note,
    )  # fmt: skip


def published_engine(path):
    """Import the checkout whose path is given; None without one."""
    if not path:
        print("no checkout of the published code was given: ours is timed alone")
        return None
    if not os.path.isdir(os.path.join(path, "attn_sphere")):
        sys.exit(f"{path}: expected a checkout with the folder attn_sphere")
    sys.path.insert(0, path)
    import attn_sphere
    import attn_sphere.engine

    attn_sphere.simulate_batch = attn_sphere.engine.simulate_batch
    return attn_sphere


def bound_engine(bench, n_heads=100):
    """One evaluation of velocity and energy balance, the core of a step."""
    tokens, heads = start(n_heads)
    paths = bench.size(PATHS, 1)
    x, matrices = tokens.expand(paths, *tokens.shape), heads.expand(paths, *heads.shape)
    work = pair_work(paths * n_heads * N * N, 3, 1 + 3 + 6)
    ratio = bench.roof(
        "engine, one evaluation with balance",
        f"H = {n_heads}, n = {N}, d = 3, {paths} paths",
        work,
        lambda: flow_kernels.rates(x, matrices, "attention", -matrices, 2.0),
    )
    bench.goal("engine within its roofline", "at most", 2, ratio, "times the bound")


def run(bench):
    """Compare, and bound."""
    torch.set_num_threads(1)
    engine = published_engine(bench.flow_code)
    for n_heads, steps, rounds in ((1, 40, 7), (10, 10, 5), (100, 2, 3)):
        if n_heads < bench.size(101, 100):
            compare_steps(bench, engine, n_heads, steps, rounds)
    for law in ("frozen", "oscillating"):
        compare_accuracy(bench, engine, law)
    bound_engine(bench)
