"""The velocity of tokens under attention, beside plain torch and torch's attention kernel."""

import math

import numpy as np
import torch

from benchmarks.comparing import Contestant
from benchmarks.growth import decades
from rederive import flows, head_weights, sphere

N = 200


def start(n_heads, n=N, dim=3, seed=2026):
    """Tokens and Gaussian heads, scaled so that scores stay of the order of one."""
    rng = np.random.default_rng(seed)
    heads = head_weights.gaussian_heads(rng, n_heads, dim, scale=math.sqrt(3 / dim))
    tokens = sphere.octahedral(rng, n) if dim == 3 else sphere.uniform(rng, n, dim)
    return tokens, torch.tensor(heads)


def dense_velocity(tokens, heads):
    """All scores at once, a softmax, and the tangent part."""
    asked = tokens @ heads
    means = torch.softmax(asked @ tokens.T, dim=-1) @ tokens
    pull = (means @ heads.mT).mean(0)
    return (tokens * pull).sum(1, keepdim=True) * tokens - pull


def sdpa_velocity(tokens, heads):
    """The attention kernel of torch, whose keys and values are the tokens."""
    asked = (tokens @ heads)[None]
    keys = tokens.expand(asked.shape)
    means = torch.nn.functional.scaled_dot_product_attention(asked, keys, keys, scale=1.0)[0]
    pull = (means @ heads.mT).mean(0)
    return (tokens * pull).sum(1, keepdim=True) * tokens - pull


def exact_velocity(tokens, heads, count=16):
    """The velocity of the first tokens, in NumPy's longest floats."""
    x, matrices = (part.numpy().astype(np.longdouble) for part in (tokens, heads))
    weights = np.exp((x[:count] @ matrices) @ x.T)
    means = weights @ x / weights.sum(-1, keepdims=True)
    pull = (means @ matrices.swapaxes(1, 2)).mean(0)
    return (x[:count] * pull).sum(1, keepdims=True) * x[:count] - pull


def compare_velocities(bench):
    """The velocity alone, which is attention."""
    n, n_heads = bench.size(2000, 200), 10
    tokens, heads = start(n_heads, n)
    truth = exact_velocity(tokens, heads)

    def contestant(name, function):
        error = np.abs(function(tokens, heads)[: len(truth)].numpy() - truth).max()
        error /= np.abs(truth).max()
        return Contestant(
            name, lambda: function(tokens, heads), None if name == "ours" else function, error
        )

    bench.compare(
        "velocity of attention",
        f"n = {n}, d = 3, H = {n_heads}",
        [
            contestant("ours", flows.velocity),
            contestant("torch, attention kernel", sdpa_velocity),
            contestant("torch, all scores", dense_velocity),
        ],
        5,
        "largest error of 16 tokens relative to the longest, against extended precision",
    )


def pair_work(pairs, dim, features):
    """Work of sums over pairs: a score, an exponential, and products with the features."""
    return {"exponentials": pairs, "flops": 2 * pairs * (dim + features)}


def velocity_for_tokens(n):
    """The velocity of n tokens under one head."""
    tokens, heads = start(1, n)
    return lambda: flows.velocity(tokens, heads)


def velocity_for_heads(n_heads):
    """The velocity of 200 tokens under some heads."""
    tokens, heads = start(n_heads)
    return lambda: flows.velocity(tokens, heads)


def velocity_for_dimension(dim):
    """The velocity of 200 tokens of some dimension under one head."""
    tokens, heads = start(1, N, dim)
    return lambda: flows.velocity(tokens, heads)


def run(bench):
    """Compare, bound and grow."""
    torch.set_num_threads(1)
    compare_velocities(bench)
    kernel, n_heads = "velocity of attention", 10
    n = bench.size(2000, N)
    tokens, heads = start(n_heads, n)
    work = pair_work(n_heads * n * n, 3, 1 + 3)
    size = f"n = {n}, d = 3, H = {n_heads}"
    bench.roof(kernel, size, work, lambda: flows.velocity(tokens, heads))
    bench.grow(kernel, "n", "d = 3, H = 1", decades(32, 32_000), velocity_for_tokens)
    bench.grow(kernel, "H", f"n = {N}, d = 3", decades(2, 2000), velocity_for_heads)
    bench.grow(kernel, "d", f"n = {N}, H = 1", decades(2, 2000), velocity_for_dimension, 2)
