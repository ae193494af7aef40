r"""Tokens in time: steps of order 1, 2 and 4 on the sphere, with the energy balance along the way.

A step evaluates the velocity at stages, adds the increments in the surrounding space, and divides
by the norm at the end. Stages leave the sphere by O(dt²); the velocity is continued to them by
V(x) := V(x/|x|), which is smooth, so that the order of the tableau survives. The heads are taken at
the time of each stage. The integrals of the balance are further components of the same scheme and
have its order:

    E(T) − E(0) = ∫∂_tE dt + ∫Itô dt + martingale − ∫𝒟 dt.

Tensors in, tensors out; dtype and device of the tokens are kept. Leading axes are paths.
"""

from typing import NamedTuple

import numpy as np
import torch

from rederive import flow_kernels, flow_logarithms, flows, head_weights, validation
from rederive.sphere import _retract

# Stages as (time, coefficient of the stage before), and the weights of the stages.
_TABLEAUX = {
    1: (((0.0, 0.0),), (1.0,)),
    2: (((0.0, 0.0), (1.0, 1.0)), (1 / 2, 1 / 2)),
    4: (((0.0, 0.0), (0.5, 0.5), (0.5, 0.5), (1.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
}
# More steps than this take hours even if nothing else is to be done: a slip in the units.
_MOST_STEPS = 10**9


class Run(NamedTuple):
    """Result of :func:`integrate`; m records are kept. Without diagnostics most fields are None.

    Attributes
    ----------
    times : torch.Tensor, shape (m,)
    tokens : torch.Tensor, shape (…, n, d)
        At the end.
    heads : torch.Tensor, shape (…, H, d, d)
        At the end.
    trajectory : torch.Tensor, shape (…, m, n, d), or None
        Tokens at the recorded times.
    energy : torch.Tensor, shape (…, m)
    dissipation : torch.Tensor, shape (…, m)
        𝒟 = −⟨g, v⟩, mean over tokens: the rate at which moving tokens lower the energy.
    claimed_dissipation : torch.Tensor, shape (…, m)
        weight·|v|² with the weight of the flow; for attention 𝒢².
    squared_slope : torch.Tensor, shape (…, m)
        |g|²/weight; for attention and the gradient flow S².
    explicit, ito, martingale : torch.Tensor, shape (…, m)
        Energy that the drift of the heads, the mean effect of their noise, and the noise itself
        have added up to the time.
    dissipated, claimed, sloped : torch.Tensor, shape (…, m)
        Integrals of the three rates above.
    """

    times: torch.Tensor
    tokens: torch.Tensor
    heads: torch.Tensor
    trajectory: torch.Tensor | None
    energy: torch.Tensor | None = None
    dissipation: torch.Tensor | None = None
    claimed_dissipation: torch.Tensor | None = None
    squared_slope: torch.Tensor | None = None
    explicit: torch.Tensor | None = None
    ito: torch.Tensor | None = None
    martingale: torch.Tensor | None = None
    dissipated: torch.Tensor | None = None
    claimed: torch.Tensor | None = None
    sloped: torch.Tensor | None = None


class OutOfMemory(MemoryError):
    """The device had no room for a step; what was finished is kept.

    Attributes
    ----------
    run : Run or None
        The records up to now, on the CPU; its tokens and heads are those at `time`. None if not
        even the first evaluation had room.
    time : float
        End of the last step that was finished.
    """

    # Defaults, because an error that comes from another process is made anew from its message.
    def __init__(self, message, run=None, time=0.0):
        super().__init__(message)
        self.run, self.time = run, time


def integrate(
    tokens,
    weights,
    final_time,
    dt,
    *,
    order=4,
    flow="attention",
    noise=None,
    exact_weights=True,
    moved_martingale=False,
    record_every=1,
    keep_trajectory=False,
    diagnostics=True,
):
    r"""Integrate the flow of tokens under given heads.

    Parameters
    ----------
    tokens : torch.Tensor, shape (…, n, d)
        Where the tokens start, norm 1.
    weights : a law of `rederive.head_weights`, or array_like, shape (…, H, d, d)
        How the heads move; matrices stand for heads that do not. Leading axes broadcast with those
        of the tokens.
    final_time : float
        T ≥ 0, a multiple of dt.
    dt : float
        Time step > 0.
    order : {1, 2, 4}
        Euler, Heun, or the classical scheme of Runge and Kutta. Heads with noise allow 1 only:
        their paths are too rough for more.
    flow : {"attention", "gradient", "plain", "joint"}
        See `rederive.flows`.
    noise : numpy.random.Generator or callable, optional
        For heads with noise: the generator, or a function from the number of a step to standard
        normal numbers (…, H, d, d).
    exact_weights : bool
        False moves the heads by Euler's (–Maruyama's) step, for comparison; order 1 only.
    moved_martingale : bool
        Take the martingale with the tokens after the step in the place of those before, as the
        public code of our source does; both have mean zero. It costs a second pass over all pairs.
    record_every : int
        Keep every so many steps; start and end are always kept.
    keep_trajectory : bool
        Keep the tokens at the recorded times too.
    diagnostics : bool
        Follow the energy balance. It needs symmetric heads.

    Returns
    -------
    Run
        Times, tokens, heads and the energy balance.

    Raises
    ------
    ValueError
        If an argument is out of its range, shapes do not fit, or tokens are off the sphere.
    OutOfMemory
        If the device has no room; the error holds the run up to there.

    Notes
    -----
    With heads of norm above about 177 in float64 (22 in float32) the velocity is computed from
    logarithms, and entries of the balance may overflow to inf or become NaN. Memory grows like
    P·H·n·d and not with n²; each record adds P numbers a field, and P·n·d with the trajectory.

    References
    ----------
    E. Hairer, Ch. Lubich, G. Wanner, Geometric Numerical Integration, Springer 2006, IV.4
    (projection); A. Massucco et al., arXiv:2605.18870.
    """
    if not hasattr(weights, "step"):
        weights = head_weights.Frozen(head_weights.check_heads(weights, "weights"))
    steps, dt = _steps(final_time, dt)
    order = validation.one_of(order, "order", (1, 2, 4))
    record_every = validation.integer(record_every, "record_every", minimum=1)
    start = validation.tensor(tokens, "tokens", shape=(..., "n", "d"))
    heads = torch.as_tensor(weights.start, dtype=start.dtype, device=start.device)
    flows.check_tokens_and_heads(start, heads, "weights")
    flows.check_flow(flow, heads, "weights")
    if diagnostics:
        flows.check_flow("gradient", heads, "weights")
    _check_schemes(weights, noise, order, exact_weights)
    leading = torch.broadcast_shapes(start.shape[:-2], heads.shape[:-3])
    x = _retract(start.expand(*leading, *start.shape[-2:]).reshape(-1, *start.shape[-2:]))
    clock = _Clock(weights, leading, x, dt, noise, exact_weights)
    law = _Evaluator(flow, weights.noise_variance, diagnostics)
    totals, records, kept = x.new_zeros(len(x), 6), [], []
    done = (0, x, clock.heads)
    try:
        for k in range(steps + 1):
            done = (k, x, clock.heads)
            now = law(x, clock.heads, clock.drift)
            if k % record_every == 0 or k == steps:
                records.append((k * dt, now._replace(velocity=None, moments=None), totals))
                if keep_trajectory:
                    kept.append(x)
            if k == steps:
                break
            x, gained = _step(law, clock, x, now, order)
            noise_part = clock.advance()
            if diagnostics:
                if noise_part is not None:
                    moments = now.moments
                    if moved_martingale:
                        moments = flow_kernels.moved_moments(*done[1:], x)
                    gained[:, 5] = (noise_part * moments).sum((1, 2, 3))
                totals = totals + gained
        return _result(leading, x, clock.heads, records, kept, diagnostics)
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise _stopped(error, leading, done, dt, records, kept, diagnostics) from error


def _step(law, clock, x, first, order):
    """One step: the new tokens and what the integrals gain."""
    stages, shares = _TABLEAUX[order]
    dt, now = clock.dt, first
    velocity, gained = shares[0] * now.velocity, shares[0] * _integrands(now, x)
    for (time, factor), share in zip(stages[1:], shares[1:], strict=True):
        stage = _retract(x + factor * dt * now.velocity)
        now = law(stage, *clock.stage(time))
        velocity = velocity + share * now.velocity
        gained = gained + share * _integrands(now, x)
    return _retract(x + dt * velocity), dt * gained


def _integrands(now, x):
    if now.energy is None:
        return 0.0
    zero = torch.zeros_like(now.energy)
    parts = (now.explicit, now.ito, now.dissipation, now.claimed, now.slope, zero)
    return torch.stack(parts, -1)


class _Evaluator:
    """The rates at one moment, by the fast kernel or, for large heads, from logarithms."""

    def __init__(self, flow, noise_variance, diagnostics):
        self.flow, self.noise_variance = flow, noise_variance
        self.diagnostics = diagnostics

    def __call__(self, x, heads, drift):
        heads = heads.expand(len(x), *heads.shape[1:])
        variance, balance = self.noise_variance, self.diagnostics
        now = flow_kernels.rates(x, heads, self.flow, drift, variance, balance=balance)
        if _is_large(heads):
            logs, pulls = flow_logarithms._potentials(x, heads)
            now = now._replace(velocity=flow_logarithms._velocity(logs, pulls, self.flow))
        return now


def _is_large(heads):
    if not validation.has_values(heads):
        return False
    return float(heads.square().sum((-1, -2)).max()) > flow_kernels.largest_score(heads.dtype) ** 2


class _Clock:
    """The heads and their drift at the times of the stages, as tensors (1 or P, H, d, d)."""

    def __init__(self, weights, leading, x, dt, noise, exact):
        self.weights, self.dt, self.exact, self.noise = weights, dt, exact, noise
        self.k, self.like, self.leading = 0, x, leading
        start = weights.start
        if _is_random(weights) or start.ndim > 3:
            start = np.broadcast_to(start, (*leading, *start.shape[-3:]))
        self.plain = start
        self._set()

    def _set(self):
        self.heads = self._tensor(self.plain)
        self.drift = self._tensor(self.weights.drift(self.plain, self.k * self.dt))

    def _tensor(self, plain):
        flat = np.array(plain).reshape(-1, *plain.shape[-3:])
        return torch.as_tensor(flat, dtype=self.like.dtype, device=self.like.device)

    def stage(self, share):
        time = (self.k + share) * self.dt
        plain = np.broadcast_to(self.weights.at(time), self.plain.shape)
        return self._tensor(plain), self._tensor(self.weights.drift(plain, time))

    def advance(self):
        """Move the heads by one step and return its random part."""
        normals, shape = None, self.plain.shape
        if callable(self.noise):
            normals = validation.array(self.noise(self.k), "noise", shape=shape)
        elif _is_random(self.weights):
            normals = self.noise.standard_normal(shape)
        time = self.k * self.dt
        plain, part = self.weights.step(self.plain, time, self.dt, normals, self.exact)
        self.plain = np.broadcast_to(plain, shape)
        self.k += 1
        self._set()
        return None if part is None else self._tensor(part)


def _is_random(weights):
    return not hasattr(weights, "at")


def _steps(final_time, dt):
    """Number of steps, and dt such that they end at the final time."""
    final_time = validation.number(final_time, "final_time", minimum=0)
    dt = validation.positive(dt, "dt")
    if not final_time < _MOST_STEPS * dt:
        validation.fail("final_time", f"fewer than {_MOST_STEPS:.0e} steps dt = {dt}", final_time)
    steps = round(final_time / dt)
    if abs(steps * dt - final_time) > 1e-9 * final_time:
        validation.fail("final_time", f"a multiple of dt = {dt}", final_time)
    return steps, dt


def _check_schemes(weights, noise, order, exact):
    if _is_random(weights):
        if order > 1:
            validation.fail("order", "1 for heads with noise, whose paths are rough", order)
        if not callable(noise) and not isinstance(noise, np.random.Generator):
            validation.fail("noise", "a numpy.random.Generator or a function of the step", noise)
    elif noise is not None:
        validation.fail("noise", "None for heads without noise", noise)
    if not validation.one_of(exact, "exact_weights", (False, True)) and order > 1:
        validation.fail("order", "1 when the heads are moved by Euler's step", order)


def _stopped(error, leading, done, dt, records, kept, diagnostics):
    """The error for a run that ran out of memory, with all that was finished."""
    k, x, heads = done
    run = None
    if records:
        records = [(time, _on_cpu(now), totals.cpu()) for time, now, totals in records]
        kept = [points.cpu() for points in kept]
        run = _result(leading, x.cpu(), heads.cpu(), records, kept, diagnostics)
    said = f"{error}" if isinstance(error, MemoryError) else f"no room on {x.device}"
    return OutOfMemory(
        f"{said}. {k} steps were finished, up to time {k * dt:.6g}; the attribute `run` of this "
        "error holds them. Fewer records (record_every), no trajectory (keep_trajectory) and no "
        "diagnostics take less",
        run,
        k * dt,
    )


def _on_cpu(now):
    return now._make(None if part is None else part.cpu() for part in now)


def _result(leading, x, heads, records, kept, diagnostics):
    n, dim = x.shape[1:]
    times = torch.tensor([time for time, _, _ in records], dtype=x.dtype, device=x.device)
    heads = heads.expand(len(x), *heads.shape[1:])
    trajectory = torch.stack(kept, 1).view(*leading, -1, n, dim) if kept else None
    ends = (times, x.view(*leading, n, dim), heads.reshape(*leading, *heads.shape[1:]), trajectory)
    if not diagnostics:
        return Run(*ends)
    rates = ("energy", "dissipation", "claimed", "slope")
    found = [torch.stack([getattr(now, name) for _, now, _ in records], -1) for name in rates]
    explicit, ito, *integrals, martingale = torch.stack([t for _, _, t in records], -1).unbind(1)
    series = (*found, explicit, ito, martingale, *integrals)
    return Run(*ends, *(part.reshape(*leading, -1) for part in series))
