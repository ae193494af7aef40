"""Nadaraya–Watson smoothing with a Gaussian kernel, exact and at scale.

The estimate at a query q is the weighted mean of the values with weights

    w_i ∝ exp(−|q − k_i|² / 2h²),

h being the bandwidth. Large problems are streamed through blocks of keys with a running maximum, so
that memory grows like m + n and not like m·n. Tensors in, tensors out; dtype and device are kept.
"""

import math

import torch

from rederive import validation

# Queries and keys of one block: its scores (2 MiB in float64) stay in a core's cache.
_QUERIES = 512
_KEYS = 512
# Kernels are powers of two: PyTorch's exp2 is twice as fast as its exp, and ten times as fast where
# the result underflows, which at a small bandwidth is nearly everywhere.
_BASE_TWO = math.log(2) ** 0.5


def nadaraya_watson(queries, keys, values, bandwidth):
    r"""Estimate a regression function with a Gaussian kernel.

    Parameters
    ----------
    queries : torch.Tensor, shape (m, p)
        Where to estimate.
    keys : torch.Tensor, shape (n, p)
        Where values were seen, n ≥ 1.
    values : torch.Tensor, shape (n, v)
        What was seen there.
    bandwidth : float
        h > 0, in the units of the keys.

    Returns
    -------
    torch.Tensor, shape (m, v)
        The estimates, each a convex combination of the values.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, an entry is not finite, the bandwidth is not
        positive, or it is so small that squared distances in its units overflow.

    Notes
    -----
    .. math::
        \hat m(q) = \frac{\sum_i K_h(q-k_i)\, y_i}{\sum_i K_h(q-k_i)},
        \qquad K_h(u) = e^{-|u|^2/2h^2}.

    Keys are centred at their mean c. With a = (q − c)/h and b = (k − c)/h the exponent is
    a·b − |b|²/2, up to a term that cancels; it loses about eps R² in absolute terms, R being the
    largest norm among a and b. Where that exceeds eps^⅔ (R > 400 in float64, 14 in float32) the
    squared differences are summed coordinate by coordinate instead, which is slower and exact to
    rounding at any R. Memory is O(m + n), unless gradients are asked for.

    References
    ----------
    E. Fokoué, arXiv:2605.20271; E. A. Nadaraya, Theory Probab. Appl. 9 (1964) 141–142;
    G. S. Watson, Sankhyā A 26 (1964) 359–372.
    """
    queries, keys, centre, bandwidth, spread = _checked(queries, keys, bandwidth)
    values = validation.tensor(values, "values", shape=(len(keys), "v"), like=keys)
    wide = _is_wide(spread, keys.dtype)
    tracked = any(part.requires_grad for part in (queries, keys, values))
    room = None
    if not wide and not (tracked and torch.is_grad_enabled()):
        room = keys.new_empty(min(len(queries), _QUERIES), min(len(keys), _KEYS))
    unit = bandwidth * _BASE_TWO
    parts = [
        _stream((rows - centre) / unit, keys, values, centre, unit, wide, room)
        for rows in queries.split(_QUERIES)
    ]
    return torch.cat(parts)


def smoothing_weights(queries, keys, bandwidth):
    r"""Return the weights that :func:`nadaraya_watson` gives to the values, as a matrix.

    Parameters
    ----------
    queries : torch.Tensor, shape (m, p)
        Where to estimate.
    keys : torch.Tensor, shape (n, p)
        Where values were seen, n ≥ 1.
    bandwidth : float
        h > 0, in the units of the keys.

    Returns
    -------
    torch.Tensor, shape (m, n)
        Non-negative weights; rows sum to one.

    Raises
    ------
    ValueError
        As :func:`nadaraya_watson`.

    Notes
    -----
    For problems in which the weights themselves matter, such as the variance σ²|w|². The squared
    differences are summed coordinate by coordinate, exact to rounding; memory is O(m n).

    References
    ----------
    E. Fokoué, arXiv:2605.20271.
    """
    queries, keys, centre, bandwidth, _ = _checked(queries, keys, bandwidth)
    rows, columns = (queries - centre) / bandwidth, (keys - centre) / bandwidth
    return torch.softmax(_differences(rows, columns), dim=-1)


def _stream(rows, keys, values, centre, unit, wide, room):
    """Weighted means for one block of queries, in one pass over the keys.

    Rows are centred queries over the unit h√(log 2), in which the kernel is 2^(−|a − b|²/2).
    """
    peak = rows.new_full((len(rows), 1), -torch.inf)
    mass = rows.new_zeros((len(rows), 1))
    total = rows.new_zeros((len(rows), values.shape[1]))
    for some_keys, some_values in zip(keys.split(_KEYS), values.split(_KEYS), strict=True):
        columns = (some_keys - centre) / unit
        scores = _differences(rows, columns) if wide else _products(rows, columns, room)
        higher = torch.maximum(peak, scores.detach().amax(dim=1, keepdim=True))
        weights = scores.sub_(higher).exp2_()
        shrink = (peak - higher).exp2_()
        mass = mass * shrink + weights.sum(dim=1, keepdim=True)
        total = total * shrink + weights @ some_values
        peak = higher
    return total / mass


def _products(rows, columns, room):
    """Scores a·b − |b|²/2, by one matrix product; into `room`, unless gradients need them all.

    Memory that is asked for anew comes from the system page by page, which takes as long as the
    exponentials.
    """
    place = None if room is None else room[: len(rows), : len(columns)]
    return torch.addmm(columns.square().sum(dim=1), rows, columns.T, beta=-0.5, out=place)


def _differences(rows, columns):
    """Scores −|a − b|²/2, coordinate by coordinate."""
    scores = rows.new_zeros((len(rows), len(columns)))
    for a, b in zip(rows.T, columns.T, strict=True):
        scores = scores - (a[:, None] - b).square() / 2
    return scores


def _checked(queries, keys, bandwidth):
    bandwidth = validation.positive(bandwidth, "bandwidth")
    queries = validation.tensor(queries, "queries", shape=("m", "p"), empty=True)
    keys = validation.tensor(keys, "keys", shape=("n", queries.shape[1]), like=queries)
    centre = keys.mean(dim=0)
    spread = _spread(queries, keys, centre) / bandwidth
    if not spread < torch.finfo(keys.dtype).max ** 0.5 / 4:
        validation.fail(
            "bandwidth", "one whose squared units do not overflow", f"{bandwidth} at this spread"
        )
    return queries, keys, centre, bandwidth, spread


def _spread(queries, keys, centre):
    """A bound on the largest distance from the centre, without a copy; 0 for fake tensors."""
    squares = 0.0
    for points in (queries, keys):
        if validation.has_values(points) and len(points):
            low, high = points.detach().aminmax(dim=0)
            sides = torch.maximum(high - centre, centre - low).detach().double()
            squares = max(squares, float(sides.square().sum()))
    return squares**0.5


def _is_wide(spread, dtype):
    eps = torch.finfo(dtype).eps
    return eps * spread**2 > eps ** (2 / 3)
