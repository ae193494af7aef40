"""Sums over pairs of tokens, as fast as one core or one GPU allows.

All sums that energies, velocities and their balances need have the form Σ_j U_ij f(x_j) with
U_ij = exp⟨x_i, D_h x_j⟩ and a few features f. They are taken in blocks (`pair_blocks`): one matrix
product for the scores, exponentials in place, one matrix product for the features. No array of size
H·n² is made. Heads must not be too large, see :func:`largest_score`; `flow_logarithms` takes any.
Arguments are not checked here: that is for the public functions of the other modules, which do so
once a run.
"""

import math
from typing import NamedTuple

import torch

from rederive import pair_blocks
from rederive.sphere import _project


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


@pair_blocks._with_advice
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


@pair_blocks._with_advice
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
    asked = (tokens[:, None] @ (pair_blocks._LOG2_E * heads)).permute(0, 3, 1, 2)
    asked = asked.reshape(paths, dim, count * n)
    sums = tokens.new_empty(paths, features.shape[1], count * n)
    deep, tall, wide, room = pair_blocks._blocks(tokens, paths, n, count * n)
    for top in range(0, paths, deep):
        some = slice(top, top + deep)
        x, f = tokens[some], features[some]
        for left in range(0, count * n, wide):
            part = asked[some, :, left : left + wide]
            out = sums[some, :, left : left + wide]
            for low in range(0, n, tall):
                rows, weights = x[:, low : low + tall], f[:, :, low : low + tall]
                scores = pair_blocks._part(room, len(x), rows.shape[1], part.shape[2])
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


@pair_blocks._with_advice
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
