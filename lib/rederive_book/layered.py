"""Layered drawings of graphs without circles: which layer, which order, which place.

The classical way, in its shortest form. A node stands one layer behind the farthest of what it
rests on (longest path). An arrow that spans several layers passes a *joint* in each of them,
so that no arrow runs behind a node. Sweeps put each node where the mean (the barycentre) of its
neighbours wants it. At last every layer is moved to the places nearest to what its nodes want, in
the sense of least squares, without any two coming closer than they may: an isotonic regression.
Coordinates along the layers are called *across*; the caller decides which way is up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

SWEEPS = 12

Node = Hashable


@dataclass(frozen=True)
class Joint:
    """Where an arrow passes a layer between its ends."""

    start: Node
    end: Node
    layer: int


@dataclass(frozen=True)
class Layout:
    """A finished drawing.

    Attributes
    ----------
    layers : tuple of tuple
        Nodes and joints, layer by layer, in order.
    across : dict
        The centre of each node and joint along its layer, from 0 up.
    extent : float
        The length of the longest layer.
    arrows : tuple of tuple
        Each arrow as the way it takes: its start, joints, its end.
    """

    layers: tuple[tuple[Node, ...], ...]
    across: dict[Node, float]
    extent: float
    arrows: tuple[tuple[Node, ...], ...]

    def layer_of(self) -> dict[Node, int]:
        """The layer of each node and joint."""
        return {node: number for number, layer in enumerate(self.layers) for node in layer}


def depths(uses: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """The length of the longest way from each node down to one that uses nothing.

    Parameters
    ----------
    uses : mapping of node to sequence of nodes
        Without circles; what is used but no key is left out.

    Returns
    -------
    dict of node to int
    """
    found: dict[Node, int] = {}

    def depth(node: Node) -> int:
        if node not in found:
            below = [depth(used) for used in uses[node] if used in uses]
            found[node] = 1 + max(below, default=-1)
        return found[node]

    for node in uses:
        depth(node)
    return found


def arrange(
    uses: Mapping[Node, Sequence[Node]],
    size: Callable[[Node], float],
    *,
    gap: float,
    band: Callable[[Node], int] = lambda node: 0,
    between: float = 0.0,
    joint: float = 6.0,
) -> Layout:
    """Draw a graph in layers.

    Parameters
    ----------
    uses : mapping of node to sequence of nodes
        Without circles; what is used but no key is left out.
    size : callable
        The length that a node needs along its layer.
    gap : float
        The least distance between neighbours of a layer.
    band : callable, optional
        Nodes of a lower band come first in every layer; no place along the layers belongs to two.
    between : float, optional
        The distance between bands.
    joint : float, optional
        The length that a passing arrow needs.

    Returns
    -------
    Layout
    """
    if not uses:
        return Layout((), {}, 0.0, ())
    depth = depths(uses)
    layers: list[list[Node]] = [[] for _ in range(1 + max(depth.values()))]
    for node in uses:
        layers[depth[node]].append(node)
    arrows, bands = [], {node: band(node) for node in uses}
    for node, used in [(n, used) for n in uses for used in uses[n] if used in uses]:
        joints = [Joint(used, node, layer) for layer in range(depth[used] + 1, depth[node])]
        for passing in joints:
            layers[passing.layer].append(passing)
            bands[passing] = bands[used]
        arrows.append((used, *joints, node))
    near = _neighbours(arrows)
    _order(layers, near, bands)
    sizes = {n: joint if isinstance(n, Joint) else size(n) for layer in layers for n in layer}
    across: dict[Node, float] = {}
    start = 0.0
    for number in sorted(set(bands.values())):
        part = [[n for n in layer if bands[n] == number] for layer in layers]
        placed = _place(part, near, sizes, gap)
        low = min(placed[n] - sizes[n] / 2 for n in placed)
        high = max(placed[n] + sizes[n] / 2 for n in placed)
        across |= {n: start + placed[n] - low for n in placed}
        start += high - low + between
    return Layout(tuple(map(tuple, layers)), across, start - between, tuple(arrows))


def crossings(layout: Layout) -> int:
    """How many pairs of arrows cross between neighbouring layers."""
    steps: dict[int, list[tuple[float, float]]] = {}
    layer = layout.layer_of()
    for way in layout.arrows:
        for a, b in itertools.pairwise(way):
            steps.setdefault(layer[a], []).append((layout.across[a], layout.across[b]))
    return sum(
        (a[0] - b[0]) * (a[1] - b[1]) < 0
        for found in steps.values()
        for i, a in enumerate(found)
        for b in found[:i]
    )


def _neighbours(arrows: Sequence[tuple[Node, ...]]) -> tuple[dict, dict]:
    before: dict[Node, list[Node]] = {}
    after: dict[Node, list[Node]] = {}
    for way in arrows:
        for a, b in itertools.pairwise(way):
            before.setdefault(b, []).append(a)
            after.setdefault(a, []).append(b)
    return before, after


def _order(layers: list[list[Node]], near: tuple[dict, dict], bands: Mapping[Node, int]) -> None:
    """Sort every layer by the barycentre of its neighbours, there and back; the best order wins."""
    for layer in layers:
        layer.sort(key=lambda node: bands[node])  # stable: otherwise as given
    best, fewest = [list(layer) for layer in layers], _inversions(layers, near[1])
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        inside = range(1, len(layers)) if forward else range(len(layers) - 2, -1, -1)
        for number in inside:
            fixed = layers[number - 1 if forward else number + 1]
            spot = {node: i / max(1, len(fixed) - 1) for i, node in enumerate(fixed)}
            own = {n: i / max(1, len(layers[number]) - 1) for i, n in enumerate(layers[number])}
            links = near[0 if forward else 1]
            layers[number].sort(
                key=lambda n, links=links, spot=spot, own=own: (
                    bands[n],
                    _mean([spot[m] for m in links.get(n, ())], own[n]),
                )
            )
        found = _inversions(layers, near[1])
        if found < fewest:
            best, fewest = [list(layer) for layer in layers], found
    layers[:] = best


def _inversions(layers: Sequence[Sequence[Node]], after: Mapping[Node, Sequence[Node]]) -> int:
    total = 0
    for here, there in itertools.pairwise(layers):
        spot = {node: i for i, node in enumerate(there)}
        ends = [sorted(spot[m] for m in after.get(n, ())) for n in here]
        for i, later in enumerate(ends):
            total += sum(a > b for earlier in ends[:i] for a in earlier for b in later)
    return total


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _place(
    layers: Sequence[Sequence[Node]],
    near: tuple[dict, dict],
    sizes: Mapping[Node, float],
    gap: float,
) -> dict[Node, float]:
    """Places along the layers, each layer as near as may be to the means of its neighbours."""
    placed = {}
    for layer in layers:
        placed |= _apart(layer, [0.0] * len(layer), sizes, gap)
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = []
            for node in layer:
                links = [*near[0].get(node, ()), *near[1].get(node, ())]
                wanted.append(_mean([placed[m] for m in links if m in placed], placed[node]))
            placed |= _apart(layer, wanted, sizes, gap)
    return placed


def _apart(
    layer: Sequence[Node], wanted: Sequence[float], sizes: Mapping[Node, float], gap: float
) -> dict[Node, float]:
    """The places nearest to the wanted ones, in this order and at least a gap apart."""
    offsets, end = [], 0.0
    for node in layer:
        offsets.append(end + sizes[node] / 2)
        end += sizes[node] + gap
    blocks: list[list[float]] = []  # sum and number of what is pooled
    for want, offset in zip(wanted, offsets, strict=True):
        blocks.append([want - offset, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    level = [total / count for total, count in blocks for _ in range(int(count))]
    return {n: a + b for n, a, b in zip(layer, level, offsets, strict=True)}
