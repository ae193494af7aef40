"""Tokens on the sphere: the library beside the engine that its authors published, on one thread.

Run ``python benchmarks/bench_flow.py PATH`` or set ``FLOW_CODE=PATH``, PATH being a checkout of
github.com/alexmassucco/Transformers_as_time_dependent_gradient_flows. Without it only the library
is timed and no ratio is printed; nothing of that code is part of this repository.

Both get the same tokens, heads, step and noise, and every array that theirs records is compared
before anything is timed. They then take turns in an order drawn anew each round; medians of the
processor time are printed. Goals at n = 200, d = 3, 10 paths with Ornstein–Uhlenbeck heads: 20
times faster a step at H = 100, 8 at H = 10, 3 at H = 1, every array equal to 1e-12; for frozen and
oscillating heads 300 times faster at the accuracy 1e-5 (the ratio grows like its power −3/4);
memory that does not grow like H·n². Their martingale takes the tokens after the step, which costs
us a second pass over all pairs; the time without it is printed too. Where a goal is missed the
figure stands as it is: both sides pay for the same H·n² exponentials.
"""

import os
import statistics
import subprocess
import sys
import time

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from timing import medians

from rederive import head_weights, integrators, sphere

GOALS = {100: 20.0, 10: 8.0, 1: 3.0}
DT, N = 5e-3, 200
NAMES = ("E", "G2", "dE_int", "G2_int", "add_int", "mean_traj")


def start(n_heads, seed=2026):
    """Tokens in octahedral clusters and Gaussian heads."""
    rng = np.random.default_rng(seed)
    return sphere.octahedral(rng, N), head_weights.gaussian_heads(rng, n_heads, 3)


def normals(shape, seed=7):
    """The numbers that the published engine draws at every step."""
    source = torch.Generator().manual_seed(seed)
    return lambda step: torch.randn(shape, generator=source, dtype=torch.float64).numpy()


def ours(tokens, heads, steps, paths, moved=True, law=head_weights.OrnsteinUhlenbeck):
    """Run the library as the published engine runs: Euler's step for tokens and heads."""
    random_heads = law is head_weights.OrnsteinUhlenbeck
    noise = normals((paths, *heads.shape)) if random_heads else None
    cloud = tokens.expand(paths, *tokens.shape) if random_heads else tokens[None]
    return integrators.integrate(
        cloud, law(heads), steps * DT, DT, order=1, exact_weights=False, noise=noise,
        moved_martingale=moved and random_heads, record_every=5, keep_trajectory=True,
    )  # fmt: skip


def theirs(engine, tokens, heads, steps, paths, law="ou", dt=DT):
    """Run the published engine."""
    drift = {"ou": engine.ou_drift, "frozen": engine.frozen_drift}.get(law)
    drift = drift or engine.make_drift_oscillating(3)
    variance = 2.0 if law == "ou" else 0.0
    return engine.simulate_batch(
        tokens.numpy(), torch.tensor(heads), drift, variance, torch.device("cpu"),
        steps * dt, dt, 5, n_paths=paths, seed=7,
    )  # fmt: skip


def largest_difference(run, raw):
    """Largest difference between our records and theirs, each relative to 1 or its own size."""
    same = (
        run.energy, run.claimed_dissipation, run.explicit + run.ito, run.claimed, run.martingale,
        run.trajectory,
    )  # fmt: skip
    worst = 0.0
    for name, mine in zip(NAMES, same, strict=True):
        other = raw[name]
        gap = np.abs(mine.numpy() - other).max() / max(1.0, np.abs(other).max())
        worst = max(worst, float(gap))
    return worst


def compare_steps(engine, n_heads, steps, rounds, paths=10):
    """Time a step with Ornstein–Uhlenbeck heads; return the ratio and the difference."""
    tokens, heads = start(n_heads)
    contestants = {
        "rederive": lambda: ours(tokens, heads, steps, paths),
        "rederive, martingale at the start": lambda: ours(tokens, heads, steps, paths, moved=False),
    }
    gap = ratio = None
    if engine:
        gap = largest_difference(
            ours(tokens, heads, steps, paths), theirs(engine, tokens, heads, steps, paths)
        )
        contestants["published engine"] = lambda: theirs(engine, tokens, heads, steps, paths)
    found = medians(contestants, rounds)
    print(f"\nOrnstein–Uhlenbeck, H = {n_heads}, {paths} paths: median of {rounds} rounds, a step")
    for name, median in found.items():
        print(f"  {name:34} {median / (steps + 1) * 1e3:10.2f} ms")
    if engine:
        ratio = found["published engine"] / found["rederive"]
        cheaper = found["published engine"] / found["rederive, martingale at the start"]
        print(
            f"  {ratio:.1f} times faster (goal {GOALS[n_heads]:.0f}), largest difference {gap:.1e}"
        )
        print(f"  {cheaper:.1f} times with the martingale at the start of a step")
    return ratio, gap


def compare_accuracy(engine, law, n_heads=10, final_time=2.0, accuracy=1e-5):
    """Time both at one accuracy; theirs, of order 1, is extrapolated from coarser steps."""
    tokens, heads = start(n_heads)
    weights = {"frozen": head_weights.Frozen, "oscillating": head_weights.Oscillating}[law](heads)
    exact = integrators.integrate(tokens, weights, final_time, final_time / 320).tokens

    def error(found):
        return float((found - exact).square().sum(-1).mean().sqrt())

    steps, reached = 4, np.inf
    while reached > accuracy:
        steps += 1
        run = integrators.integrate(tokens, weights, final_time, final_time / steps)
        reached = error(run.tokens)
    spent = medians(
        {"": lambda: integrators.integrate(tokens, weights, final_time, final_time / steps)}, 5
    )[""]
    line = f"{law} heads, H = {n_heads}: error {reached:.1e} with {steps} steps, {spent:.3f} s"
    if not engine:
        print(line)
        return None
    errors, costs = [], []
    for many in (100, 200, 400):
        before = time.process_time()
        raw = theirs(engine, tokens, heads, many, 1, law, final_time / many)
        costs.append((time.process_time() - before) / (many + 1))
        errors.append(error(torch.tensor(raw["mean_traj"][0, -1])))
    order = np.log2(errors[-2] / errors[-1])
    needed = 400 * errors[-1] / accuracy
    ratio = needed * statistics.median(costs) / spent
    print(
        f"{line}; the published engine, of order {order:.2f}, needs {needed:.3g} steps of "
        f"{statistics.median(costs) * 1e3:.2f} ms: {ratio:.0f} times longer (goal 300)"
    )
    return ratio


def peak_memory(n_heads, n):
    """Bytes that a process grows by while it takes three steps."""
    script = (
        "import resource, numpy as np, torch\n"
        "from rederive import head_weights, integrators, sphere\n"
        "rng = np.random.default_rng(0)\n"
        "def run(h, n):\n"
        "    law = head_weights.OrnsteinUhlenbeck(head_weights.gaussian_heads(rng, h, 3))\n"
        "    integrators.integrate(sphere.uniform(rng, n), law, .03, .01, order=1, noise=rng)\n"
        "run(1, 100)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"run({n_heads}, {n})\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if done.returncode:
        return None
    return int(done.stdout) * (1 if sys.platform == "darwin" else 1024)


def published_engine():
    """Import the checkout whose path is given, or say that there is none."""
    path = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FLOW_CODE")
    if not path:
        print(
            "No checkout of the published code was given (argument or FLOW_CODE), so that there\n"
            "is nothing to compare with: the library is timed alone, and its speed goals are open."
        )
        return None
    if not os.path.isdir(os.path.join(path, "attn_sphere")):
        sys.exit(f"{path}: expected a checkout with the folder attn_sphere")
    sys.path.insert(0, path)
    import attn_sphere
    import attn_sphere.engine

    attn_sphere.simulate_batch = attn_sphere.engine.simulate_batch
    return attn_sphere


def main():
    """Print the measurements; the exit code tells whether the goals are met."""
    torch.set_num_threads(1)
    engine, missed = published_engine(), []
    with threadpool_limits(1):
        for n_heads, steps, rounds in ((1, 40, 9), (10, 10, 7), (100, 2, 5)):
            ratio, gap = compare_steps(engine, n_heads, steps, rounds)
            if engine and (ratio < GOALS[n_heads] or gap > 1e-12):
                missed.append(f"H = {n_heads}")
        print()
        for law in ("frozen", "oscillating"):
            ratio = compare_accuracy(engine, law)
            if engine and ratio < 300:
                missed.append(law)
    small, large = peak_memory(10, 400), peak_memory(10, 1600)
    if small is not None and large is not None:
        print(f"\nmemory at H = 10: {small / 1e6:.0f} MB for n = 400, {large / 1e6:.0f} for 1600")
        print(f"one array of H·n² numbers would be {10 * 1600**2 * 8 / 1e6:.0f} MB")
        if large > 10 * 1600**2 * 8 / 2:
            missed.append("memory")
    if missed:
        print(f"\ngoals missed: {', '.join(missed)}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
