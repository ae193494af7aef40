"""No room on a device: smaller blocks, or an error that says what to change and keeps the rest."""

import pickle

import numpy as np
import pytest
import torch

from rederive import (
    flow_kernels,
    flow_logarithms,
    flows,
    head_weights,
    integrators,
    pair_blocks,
    sphere,
)

X = sphere.uniform(np.random.default_rng(0), (3, 40))
D = torch.from_numpy(head_weights.gaussian_heads(np.random.default_rng(1), 2, 3))
ALL = D.expand(3, 2, 3, 3)


def room_for(monkeypatch, limit, calls=None):
    """Let blocks above `limit` numbers find no room, and after `calls` blocks none at all."""
    asked = []

    def reserve(like, size):
        asked.append(size)
        if size > limit or (calls is not None and len(asked) > calls):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate …")
        return like.new_empty(size)

    monkeypatch.setattr(pair_blocks, "_reserve", reserve)
    return asked


@pytest.mark.parametrize("limit", [2000, 4000, 9000])
def test_blocks_shrink_until_they_fit(limit, monkeypatch):
    monkeypatch.setattr(pair_blocks, "_LEAST", 100)
    monkeypatch.setattr(flow_logarithms, "_ROOM", 100)
    whole = flow_kernels.rates(X, ALL, "attention", ALL, 1.0), flows.velocity(X, D)
    asked = room_for(monkeypatch, limit)
    again = flow_kernels.rates(X, ALL, "attention", ALL, 1.0), flows.velocity(X, D)
    assert max(asked) > limit >= min(asked)
    for one, other in zip(whole[0], again[0], strict=True):
        assert torch.allclose(one, other, rtol=1e-13, atol=1e-13)
    assert torch.allclose(whole[1], again[1], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "call",
    [
        lambda: flow_kernels.rates(X, ALL, "attention"),
        lambda: flow_kernels.pair_sums(X, ALL, X.mT),
        lambda: flow_kernels.moved_moments(X, ALL, X),
        lambda: flows.velocity(X, D),
        lambda: flows.energy(X, D),
    ],
)
def test_the_error_says_what_to_change(call, monkeypatch):
    monkeypatch.setattr(flow_logarithms, "_ROOM", 100)
    room_for(monkeypatch, 0)
    with pytest.raises(MemoryError, match=r"no room on cpu for tokens \(3, 40, 3\)") as caught:
        call()
    assert "fewer paths at a time" in str(caught.value)
    assert isinstance(caught.value.__cause__, torch.OutOfMemoryError)


def test_sums_that_do_not_fit_are_explained_too(monkeypatch):
    def full(*args):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch, "cat", full)
    with pytest.raises(MemoryError, match="fewer paths at a time"):
        flow_kernels.rates(X, ALL, "attention")


@pytest.mark.parametrize("diagnostics", [True, False])
@pytest.mark.parametrize("noisy", [True, False])
def test_steps_that_were_finished_are_kept(noisy, diagnostics, monkeypatch):
    law = head_weights.OrnsteinUhlenbeck(D.numpy()) if noisy else head_weights.Frozen(D.numpy())
    order = 1 if noisy else 2

    def run(final_time):
        noise = np.random.default_rng(2) if noisy else None
        return integrators.integrate(
            X, law, final_time, 0.1, order=order, noise=noise, record_every=2,
            keep_trajectory=True, diagnostics=diagnostics,
        )  # fmt: skip

    expected = run(0.4)
    # a step evaluates as often as its order: four steps are finished, and the fifth is not
    room_for(monkeypatch, 10**6, calls=4 * order + order - 1)
    with pytest.raises(integrators.OutOfMemory, match="fewer paths") as caught:
        run(1.0)
    error = caught.value
    assert "4 steps were finished, up to time 0.4" in str(error)
    assert "`run`" in str(error) and "record_every" in str(error)
    kept = error.run
    assert error.time == pytest.approx(0.4, abs=1e-12)
    for name, one, other in zip(kept._fields, kept, expected, strict=True):
        if other is None:
            assert one is None, name
        elif name in ("tokens", "heads"):
            assert torch.equal(one, other), name
        else:
            shared = one.shape[1] if one.ndim > 1 else len(one)
            same = other[:, :shared] if one.ndim > 1 else other[:shared]
            assert shared in (2, 3) and torch.equal(one, same), name


def test_without_any_finished_step_there_is_no_run(monkeypatch):
    room_for(monkeypatch, 0)
    with pytest.raises(integrators.OutOfMemory, match="0 steps were finished") as caught:
        integrators.integrate(X, D.numpy(), 1.0, 0.1)
    assert caught.value.run is None and caught.value.time == 0.0


def test_the_error_travels_between_processes():
    error = integrators.OutOfMemory("no room", None, 0.5)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.run, again.time) == ("no room", None, 0.5)


def test_records_do_not_keep_the_velocities(monkeypatch):
    kept = []
    exact = integrators._result

    def result(leading, x, heads, records, *more):
        kept.extend(now for _, now, _ in records)
        return exact(leading, x, heads, records, *more)

    monkeypatch.setattr(integrators, "_result", result)
    integrators.integrate(X, D.numpy(), 0.3, 0.1)
    assert len(kept) == 4
    assert all(now.velocity is None and now.moments is None for now in kept)
