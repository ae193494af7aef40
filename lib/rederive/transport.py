"""Transport of tokens: exact Wasserstein distances and minimising movements.

Clouds of tokens are rows of a tensor (n, d). Tensors in, tensors out; dtype and device are kept.
The distances are those of an exact linear programme (POT), solved on the CPU.
"""

import math

import ot
import torch

from rederive import flow_logarithms, sphere, validation

_COSTS = ("geodesic", "euclidean")
_ITERATIONS = 1000
# Iterations without a lower objective or less to move, after which more are of no use.
_PATIENCE = 100


def wasserstein_distance(
    first, second, *, cost="geodesic", first_weights=None, second_weights=None
):
    r"""Exact Wasserstein distance of order two between two clouds.

    Parameters
    ----------
    first : torch.Tensor, shape (n, d)
        Points; of norm 1 for the geodesic cost.
    second : torch.Tensor, shape (m, d)
        Points, of the same dtype and device.
    cost : {"geodesic", "euclidean"}
        Distance of two points: the angle between them, or the length of their difference.
    first_weights, second_weights : torch.Tensor, shape (n,) and (m,), optional
        Masses of the points, positive and of sum 1; equal by default.

    Returns
    -------
    torch.Tensor, shape ()
        :math:`W_2`.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, an entry is not finite, a point is off the sphere,
        or masses are negative or do not sum to one.

    Notes
    -----
    .. math:: W_2^2 = \min_{\pi} \sum_{ij} \pi_{ij}\, d(x_i, y_j)^2,

    over the matrices π ≥ 0 with the masses as row and column sums; see :func:`optimal_plan`.

    References
    ----------
    R. Flamary et al., Journal of Machine Learning Research 22 (2021) 78: POT, Python Optimal
    Transport.
    """
    squares, masses = _problem(first, second, cost, first_weights, second_weights)
    if not validation.has_values(squares):
        return squares.new_empty(())
    plan = _plan(squares, *masses)
    return (plan * squares).sum().clamp_min(0).sqrt()


def optimal_plan(first, second, *, cost="geodesic", first_weights=None, second_weights=None):
    r"""Optimal plan between two clouds for the squared distance.

    Parameters
    ----------
    first, second, cost, first_weights, second_weights
        As in :func:`wasserstein_distance`.

    Returns
    -------
    torch.Tensor, shape (n, m)
        :math:`\pi_{ij} \ge 0`, the mass that goes from point i to point j. For equal masses and
        n = m it is 1/n times a permutation.

    Raises
    ------
    ValueError
        As :func:`wasserstein_distance`.

    References
    ----------
    R. Flamary et al., Journal of Machine Learning Research 22 (2021) 78: POT, Python Optimal
    Transport.
    """
    squares, masses = _problem(first, second, cost, first_weights, second_weights)
    if not validation.has_values(squares):
        return torch.empty_like(squares)
    return _plan(squares, *masses)


def paired_distance(first, second):
    r"""Root mean square of the angles between tokens of equal number.

    Parameters
    ----------
    first, second : torch.Tensor, shape (…, n, d)
        Tokens of norm 1; token i is compared with token i.

    Returns
    -------
    torch.Tensor, shape (…)
        :math:`\bigl(\frac1n\sum_i d(x_i, y_i)^2\bigr)^{1/2}`, an upper bound of the geodesic
        :math:`W_2`, and equal to it as long as no exchange of tokens is shorter.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, an entry is not finite, or a point is off the
        sphere.
    """
    return sphere.distance(first, second).square().mean(-1).sqrt()


def minimising_movements(tokens, heads, step, count=1, *, flow="gradient", tolerance=None):
    r"""Steps of the minimising-movement scheme for particles.

    Parameters
    ----------
    tokens : torch.Tensor, shape (n, d)
        Tokens of norm 1 at time 0.
    heads : torch.Tensor or array_like, shape (H, d, d), or callable
        Symmetric matrices, or a function that gives them at a time; a step takes them at its end.
    step : float
        The time step τ > 0.
    count : int
        Number of steps, at least 1.
    flow : {"gradient", "plain", "joint"}
        Weight b of the squared distance: the harmonic mean b̂ over heads of φ_h, 1, or the
        arithmetic mean of φ_h; taken at the beginning of the step.
    tolerance : float, optional
        A step is done when all that is left to move is an angle below this; by default 100 times
        the spacing of the dtype.

    Returns
    -------
    torch.Tensor, shape (count + 1, n, d)
        The tokens at the times 0, τ, 2τ and so on.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, an entry is not finite, tokens are off the sphere,
        heads are not symmetric, or an argument is out of its range.
    RuntimeError
        If the tolerance is not reached.

    Notes
    -----
    .. math:: x^{k+1} \in \operatorname{argmin}_y\;
        E(y, t_{k+1}) + \frac1{2\tau n}\sum_i b_i(x^k)\, d(y_i, x_i^k)^2 ,

    found by descent along geodesics from :math:`x^k` with the step of Barzilai and Borwein, halved
    until the objective falls. At it :math:`x_i^k = \exp_{y_i}(\tau g_i(y)/b_i)`, an implicit Euler
    step of the flow.

    References
    ----------
    R. Jordan, D. Kinderlehrer, F. Otto, SIAM Journal on Mathematical Analysis 29 (1998) 1–17;
    J. Barzilai, J. M. Borwein, IMA Journal of Numerical Analysis 8 (1988) 141–148.
    """
    tokens = validation.tensor(tokens, "tokens", shape=("n", "d"))
    validation.on_sphere(tokens, "tokens")
    step, count = validation.positive(step, "step"), validation.integer(count, "count", minimum=1)
    validation.one_of(flow, "flow", ("gradient", "plain", "joint"))
    if tolerance is None:
        tolerance = 100 * torch.finfo(tokens.dtype).eps
    tolerance = validation.positive(tolerance, "tolerance")
    fixed = None if callable(heads) else _checked_heads(heads, tokens)
    path = [tokens]
    for k in range(count):
        now = _checked_heads(heads((k + 1) * step), tokens) if fixed is None else fixed
        path.append(_move(path[-1], now, step, flow, tolerance))
    return torch.stack(path)


def _problem(first, second, cost, first_weights, second_weights):
    """Squared distances (n, m) and the two vectors of masses."""
    validation.one_of(cost, "cost", _COSTS)
    first = validation.tensor(first, "first", shape=("n", "d"))
    second = validation.tensor(second, "second", shape=("m", first.shape[-1]), like=first)
    if cost == "geodesic":
        squares = sphere.distance(first.unsqueeze(1), second.unsqueeze(0)).square()
    else:
        squares = (first.unsqueeze(1) - second.unsqueeze(0)).square().sum(-1)
    return squares, (
        _masses(first_weights, "first_weights", first),
        _masses(second_weights, "second_weights", second),
    )


def _masses(weights, name, points):
    if weights is None:
        return points.new_full((len(points),), 1 / len(points))
    weights = validation.tensor(weights, name, shape=(len(points),), like=points)
    if validation.has_values(weights):
        total = float(weights.sum())
        if weights.min() < 0 or abs(total - 1) > validation.slack(weights):
            validation.fail(name, "masses that are not negative, of sum 1", f"a sum of {total:.3g}")
    return weights


def _plan(squares, first, second):
    """Solve the linear programme on the CPU in double precision."""
    masses = [w.detach().cpu().double().numpy() for w in (first, second)]
    masses = [w / w.sum() for w in masses]
    costs = squares.detach().cpu().double().numpy()
    plan, log = ot.emd(*masses, costs, numItermax=10**7, log=True)
    if log["warning"] is not None:
        raise RuntimeError(f"the linear programme was not solved: {log['warning']}")
    return torch.from_numpy(plan).to(squares)


def _checked_heads(heads, tokens):
    dim = tokens.shape[-1]
    heads = validation.tensor(heads, "heads", shape=("H", dim, dim), like=tokens)
    return validation.symmetric(heads, "heads")


def _move(start, heads, step, flow, tolerance):
    """Descend on E(y) + Σ b_i d(y_i, x_i)² / 2τn from y = x."""
    if not validation.has_values(start):
        return torch.empty_like(start)
    here, weight, share = start, _weights(start, heads, flow), 1.0
    value, slope = _objective(here, start, heads, weight, step)
    residual = float(slope.norm(dim=-1).max())
    if not math.isfinite(value + residual):
        largest = float(heads.abs().max())
        validation.fail("heads", "matrices for which energy and slope are finite", largest)
    if residual > torch.finfo(start.dtype).eps ** -0.5:
        validation.fail("step", "one whose descent is not lost in rounding", step)
    least, idle = residual, 0
    for _ in range(_ITERATIONS):
        if residual <= tolerance:
            return here
        squares = float((weight * slope * slope).mean(0).sum()) / step
        # what rounding makes of the objective must not stop the descent
        slack = 8 * torch.finfo(start.dtype).eps * abs(value)
        there, new_value = None, math.inf
        while not new_value <= value - 1e-4 * share * squares + slack:
            share = share / 2 if there is not None else share
            if not share > 0:
                raise RuntimeError(
                    f"tolerance {tolerance:.3g} not reached: no step lowers the energy"
                )
            there = _follow(here, -share * slope)
            new_value, new_slope = _objective(there, start, heads, weight, step)
        moved, change = there - here, new_slope - slope
        curvature = float((weight * moved * change).sum())
        share = float((weight * moved * moved).sum()) / curvature if curvature > 0 else 1.0
        share = min(max(share, 1e-3), 10.0)
        residual = float(new_slope.norm(dim=-1).max())
        idle = 0 if new_value < value - slack or residual < least else idle + 1
        here, value, slope, least = there, new_value, new_slope, min(least, residual)
        if idle == _PATIENCE:
            break
    raise RuntimeError(f"tolerance {tolerance:.3g} not reached, {residual:.3g} is left to move")


def _weights(tokens, heads, flow):
    """The weight b of every token, shape (n, 1)."""
    if flow == "plain":
        return tokens.new_ones((len(tokens), 1))
    logs, _ = flow_logarithms._potentials(tokens, heads)
    weight = (
        flow_logarithms._log_mobility(logs).exp() if flow == "gradient" else logs.exp().mean(-2)
    )
    return weight.unsqueeze(-1)


def _objective(here, start, heads, weight, step):
    """The objective, and its gradient with respect to y_i in units of b_i/(τn): an angle."""
    logs, pulls = flow_logarithms._potentials(here, heads)
    factors = logs.exp()
    lever = start - (start * here).sum(-1, keepdim=True) * here
    sine = lever.norm(dim=-1, keepdim=True)
    cosine = (start * here).sum(-1, keepdim=True)
    angle = torch.atan2(sine, cosine)
    back = lever * torch.where(sine > 0, angle / sine, 1)  # from y to x along the geodesic
    slope = step / weight * (factors.unsqueeze(-1) * pulls).mean(-3) - back
    return float(factors.mean() / 2 + (weight * angle * angle).mean() / (2 * step)), slope


def _follow(points, tangent):
    length = tangent.norm(dim=-1, keepdim=True)
    return sphere._retract(length.cos() * points + torch.sinc(length / math.pi) * tangent)
