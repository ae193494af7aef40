"""Real multi-head attention, trained by gradient descent on in-context regression.

A prompt holds n tokens x_i ~ N(0, I_p) with values y_i = m(x_i) + noise and one more token x; the
target is m(x). The function m is new in every prompt: b·x (*linear*) or sin(1.5 b·x) (*sine*), with
b Gaussian in the first r coordinates and E|b|² = 1. Since tokens are isotropic, no r-dimensional
space is special. A model has H heads with untied key and query projections and one output gain:

    f(x) = (s/H) Σ_h Σ_i w_i^h y_i,   w^h = softmax(β ⟨W_Qᵀx, W_Kᵀx_i⟩),   β = 1/√k.

Many models are trained at once, along two leading axes: seeds, which have data of their own, and
runs (where a model starts, what it is to learn), which share the data of their seed, so that they
can be compared in pairs. Tensors in, tensors out; dtype and device are kept.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from rederive import validation
from rederive.attention import attention_weights

STARTS = ("random", "orthogonal", "aligned")
LINKS = ("linear", "sine")


class Run(NamedTuple):
    """One model of every seed: where it starts and what it learns.

    Attributes
    ----------
    start : {"random", "orthogonal", "aligned"}
        See :func:`starting_projections`.
    rank : int
        Rank r of the targets.
    link : {"linear", "sine"}
        Shape of the targets.
    """

    start: str
    rank: int
    link: str = "linear"


class TrainedHeads(NamedTuple):
    """Models after training, with S seeds and A runs, and their key projections along the way.

    Attributes
    ----------
    keys, queries : torch.Tensor, shape (S, A, H, p, k)
        Projections W_K and W_Q.
    gain : torch.Tensor, shape (S, A)
        Output gain s.
    steps : tuple of int
        Steps after which the key projections were recorded: 0, …, the last one.
    recorded : torch.Tensor, shape (len(steps), S, A, H, p, k)
        The recorded key projections.
    """

    keys: torch.Tensor
    queries: torch.Tensor
    gain: torch.Tensor
    steps: tuple
    recorded: torch.Tensor


def starting_projections(rng, start, n_heads, head_dim, dim, *, jitter=0.1):
    """Draw key and query projections to start from.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.
    start : {"random", "orthogonal", "aligned"}
        "random": 2H independent Haar frames. "orthogonal": heads tile a subspace of dimension Hk,
        keys and queries alike; needs Hk ≤ p. "aligned": one Haar subspace, in it 2H independent
        frames, plus Gaussian entries of standard deviation jitter/√p.
    n_heads, head_dim, dim : int
        H ≥ 2, k ≥ 1 and p ≥ k.
    jitter : float, optional
        Size of the perturbation of aligned heads. Exactly aligned heads would be a saddle: the
        risk does not change when all that is orthogonal to their subspace is reflected.

    Returns
    -------
    keys, queries : torch.Tensor, shape (H, p, k), float64
        The projections, on the CPU.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    validation.generator(rng)
    validation.one_of(start, "start", STARTS)
    heads, k, p = _sizes(n_heads, head_dim, dim, start == "orthogonal")
    jitter = validation.number(jitter, "jitter", minimum=0)
    shape = (2, heads, p, k)
    if start == "random":
        maps = _haar(rng, (2, heads), p, k)
    elif start == "orthogonal":
        tiles = _haar(rng, (), p, heads * k).reshape(p, heads, k).transpose(1, 0, 2)
        maps = np.broadcast_to(tiles, shape)
    else:
        maps = _haar(rng, (), p, k) @ _haar(rng, (2, heads), k, k)
        maps = maps + jitter / np.sqrt(p) * rng.standard_normal(shape)
    keys, queries = torch.tensor(np.ascontiguousarray(maps)).unbind()
    return keys, queries


def in_context_predictions(keys, queries, gain, tokens, values, token):
    r"""Predict the values at one more token of each prompt.

    Parameters
    ----------
    keys, queries : torch.Tensor, shape (…, H, p, k)
        Projections of the heads.
    gain : torch.Tensor, shape (…)
        Output gain.
    tokens : torch.Tensor, shape (…, n, p)
        Tokens of the prompt.
    values : torch.Tensor, shape (…, n, v)
        Their values; v functions m at once.
    token : torch.Tensor, shape (…, p)
        The token asked for.

    Returns
    -------
    torch.Tensor, shape (…, v)
        :math:`\frac sH \sum_h \sum_i w^h_i y_i`.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit.
    """
    keys = validation.tensor(keys, "keys", shape=(..., "H", "p", "k"))
    _, p, k = keys.shape[-3:]
    queries = validation.tensor(queries, "queries", shape=(..., *keys.shape[-3:]), like=keys)
    gain = validation.tensor(gain, "gain", like=keys)
    tokens = validation.tensor(tokens, "tokens", shape=(..., "n", p), like=keys)
    values = validation.tensor(values, "values", shape=(..., tokens.shape[-2], "v"), like=keys)
    token = validation.tensor(token, "token", shape=(..., p), like=keys)
    asked = token[..., None, None, :] @ queries
    weights = attention_weights(asked, tokens[..., None, :, :] @ keys, k**-0.5)
    return gain[..., None] * (weights.mean(-3) @ values)[..., 0, :]


@validation.representable
def train_in_context(
    rngs,
    runs,
    *,
    n_heads,
    head_dim,
    dim,
    n_tokens,
    noise=0.5,
    steps=1000,
    prompts=16,
    functions=16,
    learning_rate=0.02,
    weight_decay=0.1,
    records=1,
    dtype=torch.float64,
    device="cpu",
):
    """Train multi-head attention on in-context regression, all seeds and runs at once.

    Parameters
    ----------
    rngs : sequence of numpy.random.Generator
        One per seed. What a seed draws depends on its own generator only.
    runs : sequence of Run
        The models of each seed.
    n_heads, head_dim, dim, n_tokens : int
        H ≥ 2, k, p ≥ k and the number n of tokens of a prompt.
    noise : float, optional
        Standard deviation σ of the noise on the values.
    steps : int, optional
        Number of steps of AdamW; the learning rate falls to zero along a half cosine.
    prompts, functions : int, optional
        Batch of a step: sets of tokens, and functions m per set. The weights do not depend on the
        values, so that further functions cost little and steady the gradient.
    learning_rate, weight_decay : float, optional
        Of AdamW; the decay acts on the projections, not on the gain.
    records : int, optional
        How often, evenly in the number of steps, key projections are recorded after the start.
    dtype : torch.dtype, optional
        Of the training.
    device : torch.device or str, optional
        Where to train. Random numbers are drawn on the CPU and moved.

    Returns
    -------
    TrainedHeads
        The models after the last step, and records.

    Raises
    ------
    ValueError
        If an argument is out of its range, or training ends with a model that is no number.

    Notes
    -----
    A step lowers the squared error of :func:`in_context_predictions` against the noise-free m(x),
    averaged over the batch.
    """
    runs, ranks, links = _checked_runs(runs)
    n_heads, k, p = _sizes(n_heads, head_dim, dim, any(run.start == "orthogonal" for run in runs))
    if max(ranks) > p:
        validation.fail("runs", f"ranks of at most dim = {p}", max(ranks))
    n = validation.integer(n_tokens, "n_tokens", minimum=1)
    noise = validation.number(noise, "noise", minimum=0)
    steps = validation.integer(steps, "steps", minimum=1)
    prompts = validation.integer(prompts, "prompts", minimum=1)
    functions = validation.integer(functions, "functions", minimum=1)
    decay = validation.number(weight_decay, "weight_decay", minimum=0)
    records = validation.integer(records, "records", minimum=1, maximum=steps)
    if dtype not in (torch.float32, torch.float64):
        validation.fail("dtype", "torch.float32 or torch.float64", str(dtype))
    validation.instance(rngs, "rngs", Sequence, "a sequence of numpy.random.Generator")
    if not rngs or not all(isinstance(rng, np.random.Generator) for rng in rngs):
        validation.fail("rngs", "a sequence of numpy.random.Generator", rngs)
    kind = {"dtype": dtype, "device": validation.device(device)}

    children = [rng.spawn(1 + len(STARTS)) for rng in rngs]
    starts = [_starts(child[1:], runs, n_heads, k, p) for child in children]
    maps = torch.stack(starts).to(**kind)  # (S, A, 2, H, p, k)
    keys, queries = (maps[:, :, i].clone().requires_grad_() for i in (0, 1))
    gain = torch.ones(maps.shape[:2], **kind).requires_grad_()
    targets = sorted(set(zip(ranks, links, strict=True)))
    which = [targets.index(pair) for pair in zip(ranks, links, strict=True)]
    which = torch.tensor(which, device=kind["device"])
    optimiser = torch.optim.AdamW(
        [
            {"params": [keys, queries], "weight_decay": decay},
            {"params": [gain], "weight_decay": 0.0},
        ],
        lr=validation.positive(learning_rate, "learning_rate"),
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    moments = {round(steps * i / records) for i in range(1, records + 1)}
    taken, recorded = [0], [keys.detach().clone()]
    sizes = (prompts, functions, n, p)
    for step in range(1, steps + 1):
        batch = _batch([child[0] for child in children], sizes, noise, targets, kind)
        tokens, token, values, aims = batch
        weights = _mean_weights(keys, queries, tokens, token)
        guesses = gain[:, None, :, None] * (weights[..., None, :] @ values[:, :, which])[..., 0, :]
        loss = ((guesses - aims[:, :, which]) ** 2).mean(dim=(1, 3)).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if step in moments:
            taken.append(step)
            recorded.append(keys.detach().clone())
    done = (keys.detach(), queries.detach(), gain.detach())
    return TrainedHeads(*done, tuple(taken), torch.stack(recorded))


def _mean_weights(keys, queries, tokens, token):
    """Attention weights (S, B, A, n), averaged over heads.

    Scores are grouped as ⟨x_i, β W_K W_Qᵀx⟩, so that a prompt's tokens meet all models at once.
    """
    seeds, runs, heads, p, k = keys.shape
    prompts, n = tokens.shape[1:3]
    asked = token @ queries.permute(0, 3, 1, 2, 4).reshape(seeds, p, -1)
    asked = asked.reshape(seeds, prompts, runs * heads, k).transpose(1, 2)
    tilts = k**-0.5 * asked @ keys.reshape(seeds, runs * heads, p, k).mT
    scores = tilts.transpose(1, 2) @ tokens.mT
    weights = torch.softmax(scores, dim=-1)
    return weights.reshape(seeds, prompts, runs, heads, n).mean(3)


def _batch(rngs, sizes, noise, targets, kind):
    """Draw a batch: tokens (S,B,n,p), token (S,B,p), values (S,B,G,n,F), aims (S,B,G,F)."""
    prompts, functions, n, p = sizes
    parts = [prompts * (n + 1) * p, prompts * p * functions, prompts * n * functions]
    plain = np.float32 if kind["dtype"] == torch.float32 else np.float64
    drawn = np.stack([rng.standard_normal(sum(parts), dtype=plain) for rng in rngs])
    tokens, slopes, errors = torch.from_numpy(drawn).to(**kind).split(parts, dim=1)
    tokens = tokens.reshape(-1, prompts, n + 1, p)
    slopes = slopes.reshape(-1, prompts, p, functions)
    exact = []
    for rank, link in targets:
        line = tokens[..., :rank] @ slopes[:, :, :rank] / rank**0.5
        exact.append(torch.sin(1.5 * line) if link == "sine" else line)
    exact = torch.stack(exact, dim=2)
    errors = noise * errors.reshape(-1, prompts, 1, n, functions)
    return tokens[:, :, :n], tokens[:, :, n], exact[..., :n, :] + errors, exact[..., n, :]


def _starts(children, runs, n_heads, head_dim, dim):
    """Stack the starts of one seed's runs, (A, 2, H, p, k); equal starts are the same numbers."""
    drawn = {}
    for name, child in zip(STARTS, children, strict=True):
        if any(run.start == name for run in runs):
            drawn[name] = torch.stack(starting_projections(child, name, n_heads, head_dim, dim))
    return torch.stack([drawn[run.start] for run in runs])


def _haar(rng, leading, rows, columns):
    frames, triangles = np.linalg.qr(rng.standard_normal((*leading, rows, columns)))
    return frames * np.sign(np.diagonal(triangles, axis1=-2, axis2=-1))[..., None, :]


def _sizes(n_heads, head_dim, dim, tiling):
    heads = validation.integer(n_heads, "n_heads", minimum=2)
    k = validation.integer(head_dim, "head_dim", minimum=1)
    p = validation.integer(dim, "dim", minimum=heads * k if tiling else k)
    return heads, k, p


def _checked_runs(runs):
    if not isinstance(runs, Sequence) or not runs:
        validation.fail("runs", "a sequence of at least one Run", runs)
    for run in runs:
        if not isinstance(run, tuple) or len(run) not in (2, 3):
            validation.fail("runs", "a sequence of Run", f"one with {run!r}")
    runs = [Run(*run) for run in runs]
    for run in runs:
        validation.one_of(run.start, "runs", STARTS)
        validation.integer(run.rank, "runs", minimum=1)
        validation.one_of(run.link, "runs", LINKS)
    return runs, [run.rank for run in runs], [run.link for run in runs]
