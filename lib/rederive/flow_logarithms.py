"""Potentials and velocities of tokens from logarithms, for heads of any size.

Nothing overflows on the way to a result that fits, and gradients pass through. Many tokens are
taken in blocks with a running maximum, so that memory grows like n. Arguments are not checked here:
that is for the public functions of `flows` and `transport`. For heads of moderate size
`flow_kernels` is faster.
"""

import math

import torch

from rederive import pair_blocks
from rederive.sphere import _project

# Scores that are kept at a time where gradients pass through: 16 MiB in float64.
_ROOM = 2**21


@pair_blocks._with_advice
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
    asked = (pair_blocks._LOG2_E * asked).reshape(paths, columns, dim)
    x = across.expand(*leading, 1, n, dim).reshape(paths, n, dim)
    features = torch.cat([x, torch.ones_like(x[..., :1])], -1)
    logs, means = asked.new_empty(paths, columns), torch.empty_like(asked)
    deep, tall, wide, room = pair_blocks._blocks(asked, paths, n, columns)
    for top in range(0, paths, deep):
        some = slice(top, top + deep)
        for left in range(0, columns, wide):
            queries = asked[some, left : left + wide]
            peak = torch.full_like(queries[..., :1], -torch.inf)
            sums = queries.new_zeros(*queries.shape[:2], dim + 1)
            for low in range(0, n, tall):
                keys = x[some, low : low + tall].mT
                scores = pair_blocks._part(room, *queries.shape[:2], keys.shape[2])
                torch.bmm(queries, keys, out=scores)
                higher = torch.maximum(peak, scores.amax(-1, keepdim=True))
                scores.sub_(higher).exp2_()
                sums.mul_((peak - higher).exp2_())
                sums.baddbmm_(scores, features[some, low : low + tall])
                peak = higher
            logs[some, left : left + wide] = (
                peak[..., 0] / pair_blocks._LOG2_E + sums[..., dim].log()
            )
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
