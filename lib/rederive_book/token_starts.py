"""Starts of the explorer of flows: the tokens and heads that its scripts make, made again here.

The scripts run in a browser and know no NumPy generator. They draw from a small one of their own,
`normals`, which this module repeats, so that the still picture and the numbers of a page without
scripts are those of the explorer. A *state* maps the names of its controls to their values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import torch

from rederive import head_weights, sphere

__all__ = ["FIXED", "groups", "law", "normals", "symmetric_normals", "tokens"]

State = Mapping[str, float | str]

#: Families of heads with matrices of their own on the circle, from the chapter *flow*.
FIXED = {
    "rising": [[[0.5, 0.0], [0.0, -0.5]], [[-4.0, 0.0], [0.0, -2.0]]],
    "cycle": [[[5.0, 3.0], [3.0, 3.0]], [[-5.0, -3.0], [-3.0, -3.0]]],
    "clouds": [
        [[4.21, -1.15], [-1.15, -3.12]],
        [[-2.89, 0.95], [0.95, -0.42]],
        [[-3.47, 0.04], [0.04, -0.62]],
    ],
}
CLOUDS = (5.784, 1.134)  # where the two clouds start
MASK = 2**32 - 1


def normals(seed: int) -> Iterator[float]:
    """Standard normal numbers: mulberry32, and the method of Box and Muller.

    Parameters
    ----------
    seed : int
        From 0 to 2³² − 1.

    Yields
    ------
    float
        The cosine half of each pair; the other half is not used.
    """
    state = seed & MASK

    def uniform() -> float:
        nonlocal state
        state = (state + 0x6D2B79F5) & MASK
        t = (state ^ (state >> 15)) * (state | 1) & MASK
        t ^= (t + ((t ^ (t >> 7)) * (t | 61) & MASK)) & MASK
        return (t ^ (t >> 14)) / 2**32

    while True:
        radius = math.sqrt(-2 * math.log(1 - uniform()))
        yield radius * math.cos(2 * math.pi * uniform())


def symmetric_normals(draw: Iterator[float], count: int) -> np.ndarray:
    """Nine numbers for each of `count` matrices, row by row; shape (count, 3, 3)."""
    return np.array([next(draw) for _ in range(9 * count)]).reshape(count, 3, 3)


class _Stretched(head_weights.Frozen):
    """Oscillating heads times a number, on the circle their first 2 × 2 block."""

    def __init__(self, heads: head_weights.Oscillating, scale: float, dim: int):
        self.heads, self.scale, self.dim = heads, scale, dim
        self.start = self.at(0.0)

    def _shape(self, matrices: np.ndarray) -> np.ndarray:
        return self.scale * matrices[..., : self.dim, : self.dim]

    def at(self, time: float) -> np.ndarray:
        return self._shape(self.heads.at(time))

    def drift(self, heads: np.ndarray, time: float) -> np.ndarray:
        return self._shape(self.heads.drift(0.0, time)) - heads


def law(state: State) -> object:
    """How the heads of a state move, as a law of `rederive.head_weights`.

    On the circle d = 2, on the sphere d = 3, where fixed heads vanish off the plane of the circle.
    """
    dim = 2 if state["surface"] == "circle" else 3
    scale, count = state["scale"], round(state["count"])
    if state["family"] in FIXED:
        heads = np.zeros((len(FIXED[state["family"]]), dim, dim))
        heads[:, :2, :2] = FIXED[state["family"]]
        return head_weights.Frozen(scale * heads)
    if state["family"] == "identity":
        return head_weights.Frozen(scale * np.broadcast_to(np.eye(dim), (count, dim, dim)))
    draws = symmetric_normals(normals(round(state["seed"])), count)
    start = 2 * head_weights.symmetric_part(draws)
    if state["family"] == "oscillating":
        phases = state["spread"] * 2 * math.pi * np.arange(count) / count
        return _Stretched(head_weights.Oscillating(start, phases), scale, dim)
    block, mean = scale * start[:, :dim, :dim], scale * np.eye(dim)
    if state["family"] == "relaxing":
        return head_weights.Relaxing(block, mean)
    if state["family"] == "noise":
        return head_weights.OrnsteinUhlenbeck(block, 2 * scale**2, mean)
    return head_weights.Frozen(block)


def groups(state: State) -> np.ndarray:
    """The group of every token, by which it is coloured."""
    n = round(state["n"])
    index = np.arange(n)
    if state["start"] == "clusters":
        return index * (4 if state["surface"] == "circle" else 6) // n
    if state["start"] == "clouds":
        return (index >= -(-n // 2)).astype(int)
    return index % 2 if state["start"] == "pair" else 0 * index


def tokens(state: State) -> torch.Tensor:
    """Where the tokens of a state start, shape (n, 2) on the circle and (n, 3) on the sphere."""
    n, flat = round(state["n"]), state["surface"] == "circle"
    dim = 2 if flat else 3
    if state["start"] == "even":
        return sphere.quasi_uniform(n, dim)
    if state["start"] in ("random", "clusters"):
        draw = normals(1000 + round(state["seed"]))
        points = np.array([next(draw) for _ in range(n * dim)]).reshape(n, dim)
        if state["start"] == "clusters":
            ends = np.concatenate([np.eye(dim), -np.eye(dim)])
            points = ends[groups(state)] + 0.05 * points
        return sphere.retract(torch.from_numpy(points))
    if state["start"] == "fan":
        angles = 1.2 + np.linspace(-0.2, 0.2, n) if n > 1 else np.array([1.2])
    elif state["start"] == "pair":
        angles = np.where(np.arange(n) % 2, math.pi / 2, 0.2)
    else:
        each = -(-n // 2)
        offsets = np.linspace(-0.2, 0.2, each) if each > 1 else np.zeros(1)
        angles = np.concatenate([CLOUDS[0] + offsets, (CLOUDS[1] + offsets)[: n - each]])
    points = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=-1)
    return torch.from_numpy(points[:, :dim].copy())
