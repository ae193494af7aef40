"""Sums over pairs of tokens: what `flows` and `integrators` compute with.

There are two ways. The functions at the end of the file work with logarithms, for
heads of any size, and let gradients pass. The others are as fast as one core or one GPU allows. All
sums that energies, velocities and their balances need have the form Σ_j U_ij f(x_j) with
U_ij = exp⟨x_i, D_h x_j⟩ and a few features f. They are taken in blocks that stay in a core's cache:
one matrix product for the scores, exponentials in place, one matrix product for the features. No
array of size H·n² is made. Arguments are not checked here: that is for the public functions of the
other modules, which do so once a run.

Where a device has no memory for a block, smaller ones are taken; where it has none for the tokens'
own sums, a ``MemoryError`` says what to hand over instead.
"""

import functools
import math
from typing import NamedTuple

import torch

from rederive.sphere import _project

# Entries of a block of scores: on a CPU it should stay in the cache.
_BLOCK = {"cpu": 2**17, "other": 2**24}
# Blocks are not cut below this when memory is short.
_LEAST = 2**12
# The same where gradients pass through and all is kept: 16 MiB in float64.
_ROOM = 2**21
# Powers of two take PyTorch two thirds of the time of powers of e.
_LOG2_E = 1 / math.log(2)


class Rates(NamedTuple):
    """What happens to P clouds of tokens at one moment; every field but the first two is (P,).

    Attributes
    ----------
    velocity : torch.Tensor, shape (P, n, d)
    moments : torch.Tensor, shape (P, H, d, d)
        Derivative of the energy with respect to the heads.
    energy : torch.Tensor
    explicit : torch.Tensor
        Rate at which the drift of the heads changes the energy.
    ito : torch.Tensor
        Rate at which their noise does so in the mean.
    dissipation, claimed, slope : torch.Tensor
        −⟨g, v⟩, weight·|v|² and |g|²/weight, means over tokens.
    """

    velocity: torch.Tensor
    moments: torch.Tensor | None
    energy: torch.Tensor | None
    explicit: torch.Tensor | None
    ito: torch.Tensor | None
    dissipation: torch.Tensor | None
    claimed: torch.Tensor | None
    slope: torch.Tensor | None


def _with_advice(function):
    """Let a function of tokens and heads say what to change when the device has no room."""

    @functools.wraps(function)
    def wrapped(tokens, heads, *args, **kwargs):
        try:
            return function(tokens, heads, *args, **kwargs)
        except torch.OutOfMemoryError as error:
            sizes = f"tokens {tuple(tokens.shape)} and heads {tuple(heads.shape)}"
            raise MemoryError(
                f"no room on {tokens.device} for {sizes} in {tokens.dtype}: hand over fewer paths "
                "at a time, or fewer heads or tokens, or take float32; blocks of scores have been "
                "made smaller already. Where gradients pass through every score is kept: take "
                "torch.no_grad() if none are needed"
            ) from error

    return wrapped


@_with_advice
def rates(tokens, heads, flow, drift=None, noise_variance=0.0, *, balance=True):
    """Velocity of the tokens and rates of the energy balance.

    Parameters
    ----------
    tokens : torch.Tensor, shape (P, n, d)
        Points of norm 1.
    heads : torch.Tensor, shape (P, H, d, d)
        Matrices, symmetric if the rates matter, of norm at most :func:`largest_score`.
    flow : {"attention", "gradient", "plain", "joint"}
        See `rederive.flows`.
    drift : torch.Tensor, shape (P, H, d, d), or None
        Time derivative of the heads without noise.
    noise_variance : float
        σ² of dD = … + σ dW with W the symmetric part of a matrix of Brownian motions.
    balance : bool
        False leaves everything but the velocity out.

    Returns
    -------
    Rates
        Everything at this moment; None where it was not asked for.

    Raises
    ------
    RuntimeError
        If shapes do not fit.

    Notes
    -----
    The variance of ⟨x, Wy⟩ at time 1 is (1 + ⟨x, y⟩²)/2 on the sphere. The Itô term is therefore
    (1/2Hn²) Σ U_ij (σ²/4)(1 + ⟨x_i, x_j⟩²).
    """
    paths, n, dim = tokens.shape
    count = heads.shape[1]
    columns = tokens.mT
    features = [torch.ones_like(columns[:, :1]), columns]
    if noise_variance and balance:
        features.append(_squares(columns))
    features = torch.cat(features, 1)
    sums = pair_sums(tokens, heads, features)
    masses, firsts = sums[:, 0], sums[:, 1 : dim + 1]
    # one product sums over heads: (D_1 … D_H) times the stacked first moments
    stacked = heads.permute(0, 2, 3, 1).reshape(paths, dim, dim * count)
    gradient = pull = None
    if balance or flow != "attention":
        gradient = (stacked @ firsts.reshape(paths, dim * count, n)).mT / (count * n)
        gradient = _project(tokens, gradient)
    inverse = masses.reciprocal()
    if flow == "attention":
        shares = (firsts * inverse[:, None]).reshape(paths, dim * count, n)
        pull = _project(tokens, (stacked @ shares).mT / count)
    mean = masses.mean(1) / n
    velocity, weight = _flow(flow, gradient, pull, inverse.mean(1).reciprocal() / n, mean)
    if not balance:
        return Rates(velocity, *[None] * 7)
    scale = 1 / (2 * count * n * n)
    moments = (firsts.reshape(paths, dim * count, n) @ tokens).reshape(paths, dim, count, dim)
    moments = scale * moments.permute(0, 2, 3, 1)
    energy = mean.mean(-1) / 2
    explicit = energy.new_zeros(paths) if drift is None else (drift * moments).sum((1, 2, 3))
    ito = energy.new_zeros(paths)
    if noise_variance:
        spread = (sums[:, dim + 1 :].sum(2) * features[:, dim + 1 :]).sum((1, 2))
        ito = noise_variance / 4 * (energy + scale * spread)
    return Rates(
        velocity,
        moments,
        energy,
        explicit,
        ito,
        -(gradient * velocity).sum(-1).mean(-1),
        (weight * velocity.square().sum(-1)).mean(-1),
        (gradient.square().sum(-1) / weight).mean(-1),
    )


@_with_advice
def pair_sums(tokens, heads, features):
    """Sum features of the tokens with the weights exp⟨x_i, D_h x_j⟩.

    Parameters
    ----------
    tokens : torch.Tensor, shape (P, n, d)
        Points of norm 1.
    heads : torch.Tensor, shape (P, H, d, d)
        Matrices, of norm at most :func:`largest_score`.
    features : torch.Tensor, shape (P, f, n)
        The numbers f_j, one column a token.

    Returns
    -------
    torch.Tensor, shape (P, f, H, n)
        Σ_j exp⟨x_i, D_h x_j⟩ f_j.

    Raises
    ------
    RuntimeError
        If shapes do not fit.
    """
    paths, n, dim = tokens.shape
    count = heads.shape[1]
    # column (h, i) holds D_hᵀ x_i
    asked = (tokens[:, None] @ (_LOG2_E * heads)).permute(0, 3, 1, 2)
    asked = asked.reshape(paths, dim, count * n)
    sums = tokens.new_empty(paths, features.shape[1], count * n)
    deep, tall, wide, room = _blocks(tokens, paths, n, count * n)
    for top in range(0, paths, deep):
        some = slice(top, top + deep)
        x, f = tokens[some], features[some]
        for left in range(0, count * n, wide):
            part = asked[some, :, left : left + wide]
            out = sums[some, :, left : left + wide]
            for low in range(0, n, tall):
                rows, weights = x[:, low : low + tall], f[:, :, low : low + tall]
                scores = _part(room, len(x), rows.shape[1], part.shape[2])
                if len(x) == 1:
                    torch.mm(rows[0], part[0], out=scores[0]).exp2_()
                    if low:
                        out[0].addmm_(weights[0], scores[0])
                    else:
                        torch.mm(weights[0], scores[0], out=out[0])
                else:
                    torch.bmm(rows, part, out=scores).exp2_()
                    out.copy_(weights @ scores + out if low else weights @ scores)
    return sums.view(paths, features.shape[1], count, n)


@_with_advice
def moved_moments(tokens, heads, moved):
    """Derivative of the energy with respect to the heads, for tokens that have moved.

    Parameters
    ----------
    tokens : torch.Tensor, shape (P, n, d)
        Points x of norm 1, for the weights.
    heads : torch.Tensor, shape (P, H, d, d)
        Matrices, of norm at most :func:`largest_score`.
    moved : torch.Tensor, shape (P, n, d)
        Points y.

    Returns
    -------
    torch.Tensor, shape (P, H, d, d)
        (1/2Hn²) Σ_ij exp⟨x_i, D_h x_j⟩ y_i y_jᵀ.

    Raises
    ------
    RuntimeError
        If shapes do not fit.
    """
    paths, n, dim = tokens.shape
    count = heads.shape[1]
    sums = pair_sums(tokens, heads, moved.mT.contiguous())
    found = sums.reshape(paths, dim * count, n) @ moved / (2 * count * n * n)
    return found.reshape(paths, dim, count, dim).permute(0, 2, 3, 1)


def largest_score(dtype):
    """Largest norm of a head for which :func:`rates` does not overflow.

    Parameters
    ----------
    dtype : torch.dtype
        Type of the tokens.

    Returns
    -------
    float
        177 in float64, 22 in float32: products of four exponentials still fit.

    Raises
    ------
    TypeError
        If the type is not one of floating-point numbers.
    """
    return math.log(torch.finfo(dtype).max) / 4


def _flow(flow, gradient, pull, harmonic, mean):
    """Velocity (P, n, d) and weight (P, n)."""
    if flow == "attention":
        return -pull, harmonic
    weight = {"gradient": harmonic, "plain": torch.ones_like(mean), "joint": mean}[flow]
    return -gradient / weight[..., None], weight


def _squares(columns):
    """Features (P, d(d+1)/2, n) whose inner product is ⟨x, y⟩²."""
    dim = columns.shape[1]
    first, second = torch.triu_indices(dim, dim, device=columns.device)
    # ⟨x, y⟩² holds each mixed product twice
    factor = (2 - (first == second).to(columns.dtype)).sqrt()
    return factor[:, None] * columns[:, first] * columns[:, second]


def _blocks(like, paths, n, columns):
    """Sizes of a block, in paths, rows and columns of scores, and memory for them.

    A block has whole columns as long as it has many of them. For more tokens it is nearly square:
    few columns that are longer than the cache would take three times as long.
    """
    block = _BLOCK.get(like.device.type, _BLOCK["other"])
    while True:
        tall = n if 64 * n <= block else min(n, math.isqrt(block // 2))
        wide = min(columns, max(16, block // tall))
        deep = min(paths, max(1, block // (tall * wide)))
        try:
            return deep, tall, wide, _reserve(like, deep * tall * wide)
        except torch.OutOfMemoryError:
            if block <= _LEAST:
                raise
            block //= 4


def _reserve(like, size):
    return like.new_empty(size)


def _part(room, *shape):
    """The beginning of the reserved memory, in a shape."""
    return room[: math.prod(shape)].view(shape)


# For heads of any size, from logarithms; gradients pass through.


@_with_advice
def _potentials(tokens, heads):
    """log φ_h (…, H, n) and P D_h m_h (…, H, n, d), m_h being the softmax mean of the tokens."""
    n = tokens.shape[-2]
    across = tokens.unsqueeze(-3)
    asked = across @ heads  # rows D_hᵀ x_i
    rows = max(1, _ROOM // (n * math.prod(asked.shape[:-2])))
    if rows < n and not _differentiated(tokens, heads):
        return _streamed(asked, across, heads)
    logs, pulls = [], []
    for some in asked.split(rows, dim=-2):
        scores = some @ across.mT
        logs.append(scores.logsumexp(-1))
        pulls.append(torch.softmax(scores, -1) @ across)
    pulls = torch.cat(pulls, -2) @ heads.mT
    return torch.cat(logs, -1) - math.log(n), _project(across, pulls)


def _streamed(asked, across, heads):
    """What :func:`_potentials` returns, in memory that grows like n: a running maximum.

    Nothing is kept between blocks of scores. Small results that are kept between large ones would
    lie in the gaps that these leave, so that no large one fits there again and memory grows as if
    nothing were ever freed.
    """
    *leading, count, n, dim = asked.shape
    paths, columns = math.prod(leading), count * n
    asked = (_LOG2_E * asked).reshape(paths, columns, dim)
    x = across.expand(*leading, 1, n, dim).reshape(paths, n, dim)
    features = torch.cat([x, torch.ones_like(x[..., :1])], -1)
    logs, means = asked.new_empty(paths, columns), torch.empty_like(asked)
    deep, tall, wide, room = _blocks(asked, paths, n, columns)
    for top in range(0, paths, deep):
        some = slice(top, top + deep)
        for left in range(0, columns, wide):
            queries = asked[some, left : left + wide]
            peak = torch.full_like(queries[..., :1], -torch.inf)
            sums = queries.new_zeros(*queries.shape[:2], dim + 1)
            for low in range(0, n, tall):
                keys = x[some, low : low + tall].mT
                scores = _part(room, *queries.shape[:2], keys.shape[2])
                torch.bmm(queries, keys, out=scores)
                higher = torch.maximum(peak, scores.amax(-1, keepdim=True))
                scores.sub_(higher).exp2_()
                sums.mul_((peak - higher).exp2_())
                sums.baddbmm_(scores, features[some, low : low + tall])
                peak = higher
            logs[some, left : left + wide] = peak[..., 0] / _LOG2_E + sums[..., dim].log()
            means[some, left : left + wide] = sums[..., :dim] / sums[..., dim:]
    pulls = means.view(*leading, count, n, dim) @ heads.mT
    return logs.view(*leading, count, n) - math.log(n), _project(across, pulls)


def _differentiated(*tensors):
    """Tell whether derivatives are asked for, either way: then nothing may be overwritten."""
    if torch.is_grad_enabled() and any(part.requires_grad for part in tensors):
        return True
    return any(
        torch._C._functorch.is_functorch_wrapped_tensor(part)
        or torch.autograd.forward_ad.unpack_dual(part).tangent is not None
        for part in tensors
    )


def _log_mobility(logs):
    return math.log(logs.shape[-2]) - (-logs).logsumexp(-2)


def _velocity(logs, pulls, flow):
    count = logs.shape[-2]
    if flow == "attention":
        return -pulls.mean(-3)
    if flow == "joint":
        return -(torch.softmax(logs, -2).unsqueeze(-1) * pulls).sum(-3)
    # one factor a coordinate, taken from the heads that do pull: a head of huge φ_h that pulls
    # exactly by 0 must not make 0 · inf
    logs = logs.unsqueeze(-1)
    top = logs.masked_fill(pulls == 0, -torch.inf).amax(-3)
    top = torch.where(top.isinf(), logs.amax(-3), top)
    share = ((logs - top.unsqueeze(-3)).clamp(max=0).exp() * pulls).sum(-3) / count
    if flow == "gradient":
        top = top - _log_mobility(logs.squeeze(-1)).unsqueeze(-1)
    return -_scaled(top, share)


def _mean_gradient(logs, pulls):
    """Factors log (…, n) and vectors (…, n, d) whose product is g."""
    top = logs.amax(-2)
    return top, ((logs - top.unsqueeze(-2)).exp().unsqueeze(-1) * pulls).mean(-3)


def _weighted_mean(logs, values):
    """Mean over tokens of exp(logs)·values, without ∞ − ∞."""
    top = logs.masked_fill(values == 0, -torch.inf).amax(-1)
    top = torch.where(top.isinf(), logs.amax(-1), top)
    share = ((logs - top.unsqueeze(-1)).clamp(max=0).exp() * values).mean(-1)
    return _scaled(top, share)


def _scaled(logs, values):
    """Return exp(logs)·values: overflows only if the product does, and 0 stays 0."""
    half = (logs / 2).exp()
    return torch.where(values == 0, values, values * half * half)
