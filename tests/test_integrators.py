"""Steps on the sphere: orders, balances, invariants, batches, devices."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch._subclasses import FakeTensorMode

from rederive import flow_kernels, flows, head_weights, integrators, pair_blocks, sphere
from rederive.replicates import mean_and_error

ORDERS = (1, 2, 4)


def start(seed=0, n=12, heads=2, dim=3, scale=0.5):
    rng = np.random.default_rng(seed)
    matrices = head_weights.gaussian_heads(rng, heads, dim, scale=scale)
    return sphere.octahedral(rng, n, dim, noise=0.3), matrices


def laws(matrices):
    return {
        "frozen": head_weights.Frozen(matrices),
        "relaxing": head_weights.Relaxing(matrices),
        "oscillating": head_weights.Oscillating(matrices),
    }


def reference(tokens, law, flow, final_time):
    """An independent integrator in the surrounding space, to 1e-11."""
    shape = tuple(tokens.shape)

    def field(time, flat):
        x = sphere.retract(torch.from_numpy(flat.reshape(shape)))
        return flows.velocity(x, torch.from_numpy(law.at(time)), flow).numpy().ravel()

    done = solve_ivp(
        field, (0, final_time), tokens.numpy().ravel(), method="DOP853", rtol=1e-11, atol=1e-11
    )
    return torch.from_numpy(done.y[:, -1].reshape(shape))


def slope(errors):
    return math.log2(errors[-2] / errors[-1])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["frozen", "relaxing", "oscillating"])
def test_orders_of_tokens_and_balance(order, name):
    tokens, matrices = start(1)
    law = laws(matrices)[name]
    exact = reference(tokens, law, "attention", 1.0)
    errors, residuals = [], []
    for steps in (20, 40):
        run = integrators.integrate(tokens, law, 1.0, 1 / steps, order=order)
        errors.append((run.tokens - exact).norm().item())
        residual = run.energy - run.energy[0] - run.explicit + run.dissipated
        residuals.append(residual.abs().max().item())
    assert slope(errors) == pytest.approx(order, abs=0.35)
    assert slope(residuals) > order - 0.4
    assert errors[-1] < {1: 0.1, 2: 2e-3, 4: 2e-6}[order]


@pytest.mark.parametrize("flow", flows.FLOWS)
def test_every_flow_agrees_with_another_integrator(flow):
    tokens, matrices = start(2)
    law = head_weights.Oscillating(matrices)
    run = integrators.integrate(tokens, law, 1.0, 0.01, flow=flow)
    assert (run.tokens - reference(tokens, law, flow, 1.0)).abs().max() < 1e-7
    assert np.allclose(run.heads.numpy(), law.at(1.0), atol=1e-15)


@pytest.mark.parametrize("flow", ["gradient", "plain", "joint"])
def test_gradient_flows_spend_their_energy_on_speed_and_slope_alike(flow):
    tokens, matrices = start(3, heads=3)
    run = integrators.integrate(tokens, matrices, 1.0, 0.02, flow=flow)
    lost = (run.energy[0] - run.energy).numpy()
    for integral in (run.dissipated, run.claimed, run.sloped):
        assert np.allclose(integral.numpy(), lost, atol=1e-6)
    assert (np.diff(run.energy) < 0).all()


def test_attention_does_not_for_two_heads():
    tokens, matrices = start(3, heads=3)
    run = integrators.integrate(tokens, matrices, 1.0, 0.02)
    lost = (run.energy[0] - run.energy[-1]).item()
    assert run.dissipated[-1].item() == pytest.approx(lost, abs=1e-6)
    assert abs(run.claimed[-1].item() - lost) > 0.05 * lost
    one = integrators.integrate(tokens, matrices[:1], 1.0, 0.02)
    assert one.claimed[-1].item() == pytest.approx(one.dissipated[-1].item(), rel=1e-12)


def test_rates_are_those_of_the_flows_module():
    tokens, matrices = start(4)
    run = integrators.integrate(tokens, matrices, 0.3, 0.1, keep_trajectory=True)
    heads = torch.from_numpy(matrices)
    close = {"rtol": 1e-12, "atol": 1e-13}
    for k, x in enumerate(run.trajectory):
        assert torch.allclose(run.energy[k], flows.energy(x, heads), **close)
        assert torch.allclose(run.dissipation[k], flows.dissipation(x, heads), **close)
        claimed = flows.claimed_dissipation(x, heads)
        assert torch.allclose(run.claimed_dissipation[k], claimed, **close)
        assert torch.allclose(run.squared_slope[k], flows.squared_slope(x, heads), **close)


def test_a_point_mass_follows_its_closed_form():
    """θ' = −sin(2θ)/4: tan θ decays like e^{−t/2}, and the energy rises."""
    d = np.array([[[0.5, 0], [0, -0.5]], [[-4, 0], [0, -2]]])
    tokens = torch.tensor([[math.cos(1.2), math.sin(1.2)]], dtype=torch.float64).expand(3, 2)
    run = integrators.integrate(tokens, d, 4.0, 0.05)
    x = run.tokens[0]
    assert (x[1] / x[0]).item() == pytest.approx(math.tan(1.2) * math.exp(-2), rel=1e-7)
    assert run.energy[0].item() == pytest.approx(0.198928478569, abs=1e-12)
    assert run.energy[-1].item() == pytest.approx(0.375638972044, abs=1e-7)
    assert (np.diff(run.energy) > 0).all()


@pytest.mark.parametrize("order", ORDERS)
def test_tokens_stay_on_the_sphere(order):
    tokens, matrices = start(5)
    run = integrators.integrate(
        tokens, 20 * matrices, 5.0, 0.05, order=order, keep_trajectory=True, diagnostics=False
    )
    assert (run.trajectory.norm(dim=-1) - 1).abs().max() < 1e-14
    assert run.energy is None


def test_large_heads_are_integrated_from_logarithms():
    tokens, matrices = start(6)
    matrices = matrices / np.linalg.norm(matrices, 2, axis=(1, 2))[:, None, None] * 1000
    run = integrators.integrate(tokens, matrices, 0.01, 0.001, diagnostics=False)
    assert run.tokens.isfinite().all()
    near = matrices * 0.17  # on both sides of the switch the same numbers
    assert np.linalg.norm(near, axis=(1, 2)).max() > flow_kernels.largest_score(torch.float64)
    first = integrators.integrate(tokens, near, 0.001, 0.001)
    direct = flow_kernels.rates(tokens[None], torch.from_numpy(near)[None], "attention", None, 0.0)
    v = flows.velocity(tokens, torch.from_numpy(near))
    assert torch.allclose(direct.velocity[0], v, rtol=1e-9, atol=1e-9)
    assert first.tokens.isfinite().all()


@pytest.mark.parametrize("block", [50, 1000, 10**6])
def test_blocks_do_not_change_the_numbers(block, monkeypatch):
    rng = np.random.default_rng(7)
    tokens = sphere.uniform(rng, (5, 9))
    heads = torch.from_numpy(head_weights.gaussian_heads(rng, 20, 3)).view(5, 4, 3, 3)
    whole = flow_kernels.rates(tokens, heads, "attention", heads, 2.0)
    monkeypatch.setitem(pair_blocks._BLOCK, "cpu", block)
    again = flow_kernels.rates(tokens, heads, "attention", heads, 2.0)
    for one, other in zip(whole, again, strict=True):
        assert torch.allclose(one, other, rtol=1e-13, atol=1e-13)


def test_the_ito_term_and_the_drift_by_definition():
    tokens, matrices = start(8)
    heads, drift = torch.from_numpy(matrices), torch.from_numpy(start(9)[1])
    found = flow_kernels.rates(tokens[None], heads[None], "attention", drift[None], 1.7)
    u = (tokens @ heads @ tokens.T).exp() / (2 * 2 * 12**2)
    assert torch.allclose(found.explicit[0], (u * (tokens @ drift @ tokens.T)).sum())
    cosines = tokens @ tokens.T
    assert torch.allclose(found.ito[0], (u * 1.7 / 4 * (1 + cosines**2)).sum(), rtol=1e-13)
    moved = sphere.uniform(np.random.default_rng(0), 12)
    moments = flow_kernels.moved_moments(tokens[None], heads[None], moved[None])[0]
    assert torch.allclose(moments, torch.einsum("hij,ia,jb->hab", u, moved, moved))


def test_paths_in_a_batch_are_the_paths_alone():
    rng = np.random.default_rng(10)
    tokens = sphere.uniform(rng, (2, 3, 8))
    matrices = head_weights.gaussian_heads(rng, 12, 3).reshape(3, 4, 3, 3)
    batch = integrators.integrate(tokens, head_weights.Oscillating(matrices), 0.5, 0.1)
    assert batch.energy.shape == (2, 3, 6) and batch.tokens.shape == (2, 3, 8, 3)
    assert batch.heads.shape == (2, 3, 4, 3, 3)
    alone = integrators.integrate(tokens[1, 2], head_weights.Oscillating(matrices[2]), 0.5, 0.1)
    assert torch.allclose(batch.tokens[1, 2], alone.tokens, atol=1e-14)
    assert torch.allclose(batch.explicit[1, 2], alone.explicit, atol=1e-14)


def test_noise_comes_from_generators_or_functions():
    tokens, matrices = start(11)
    law = head_weights.OrnsteinUhlenbeck(matrices)
    settings = {"order": 1, "keep_trajectory": True}
    one = integrators.integrate(tokens, law, 0.2, 0.05, noise=np.random.default_rng(3), **settings)
    rng = np.random.default_rng(3)
    two = integrators.integrate(
        tokens, law, 0.2, 0.05, noise=lambda k: rng.standard_normal((2, 3, 3)), **settings
    )
    assert torch.equal(one.trajectory, two.trajectory) and torch.equal(one.ito, two.ito)
    three = integrators.integrate(
        tokens, law, 0.2, 0.05, noise=np.random.default_rng(3), moved_martingale=True, **settings
    )
    assert torch.equal(one.trajectory, three.trajectory)
    assert not torch.equal(one.martingale, three.martingale)


def test_the_balance_with_noise_closes_in_the_mean_and_path_by_path():
    rng = np.random.default_rng(12)
    tokens, matrices = start(12, n=8)
    paths = tokens.expand(400, 8, 3)
    spread = []
    for steps in (20, 80):
        law = head_weights.OrnsteinUhlenbeck(matrices)
        run = integrators.integrate(paths, law, 1.0, 1 / steps, order=1, noise=rng)
        balance = run.explicit + run.ito + run.martingale - run.dissipated
        residual = (run.energy - run.energy[:, :1] - balance)[:, -1]
        spread.append(residual.square().mean().sqrt().item())
        martingale = mean_and_error(run.martingale[:, -1].numpy())
        assert abs(martingale.mean) < 5 * martingale.standard_error
    assert math.log2(spread[0] / spread[1]) == pytest.approx(1.0, abs=0.35)  # like dt^{1/2}


def test_a_cloud_without_noise_is_the_deterministic_one():
    tokens, matrices = start(13)
    quiet = head_weights.OrnsteinUhlenbeck(matrices, noise_variance=0.0)
    rng = np.random.default_rng(0)
    one = integrators.integrate(tokens, quiet, 0.5, 0.1, order=1, noise=rng)
    two = integrators.integrate(tokens, head_weights.Relaxing(matrices), 0.5, 0.1, order=1)
    assert torch.allclose(one.tokens, two.tokens, atol=1e-14)
    assert torch.allclose(one.explicit, two.explicit, atol=1e-14)


def test_records_are_kept_when_asked():
    tokens, matrices = start(14)
    run = integrators.integrate(
        tokens, matrices, 1.0, 0.1, record_every=4, keep_trajectory=True, order=2
    )
    assert np.allclose(run.times, [0, 0.4, 0.8, 1.0])
    assert run.trajectory.shape == (4, 12, 3) and run.energy.shape == (4,)
    assert torch.equal(run.trajectory[-1], run.tokens)
    every = integrators.integrate(tokens, matrices, 1.0, 0.1, order=2)
    assert torch.equal(every.dissipated[[0, 4, 8, 10]], run.dissipated)
    assert every.trajectory is None
    still = integrators.integrate(tokens, matrices, 0.0, 0.1)
    assert torch.allclose(still.tokens, tokens, atol=1e-15) and still.energy.shape == (1,)


def test_heads_without_symmetry_run_without_a_balance_only():
    tokens, _ = start(15)
    heads = np.random.default_rng(15).standard_normal((2, 3, 3))
    run = integrators.integrate(tokens, heads, 1.0, 0.02, diagnostics=False)
    exact = reference(tokens, head_weights.Frozen(heads), "attention", 1.0)
    assert (run.tokens - exact).abs().max() < 1e-6
    with pytest.raises(ValueError, match=r"^weights: .*gradient of the energy"):
        integrators.integrate(tokens, heads, 1.0, 0.02)
    with pytest.raises(ValueError, match=r"^weights: .*gradient of the energy"):
        integrators.integrate(tokens, heads, 1.0, 0.02, flow="plain", diagnostics=False)


def test_single_precision_is_kept():
    tokens, matrices = start(16)
    run = integrators.integrate(tokens.float(), matrices, 1.0, 0.1)
    exact = integrators.integrate(tokens, matrices, 1.0, 0.1)
    fields = [field for field in run if field is not None]
    assert all(field.dtype == torch.float32 for field in fields)
    assert (run.tokens - exact.tokens).abs().max() < 1e-5
    assert (run.dissipated - exact.dissipated).abs().max() < 1e-4


@pytest.mark.parametrize("law", ["frozen", "oscillating", "noise"])
def test_the_device_is_kept(law):
    _, matrices = start(17)
    noisy = law == "noise"
    chosen = head_weights.OrnsteinUhlenbeck(matrices) if noisy else laws(matrices)[law]
    with FakeTensorMode():
        tokens = torch.empty(5, 12, 3, dtype=torch.float32, device="meta")
        run = integrators.integrate(
            tokens, chosen, 0.2, 0.1, order=1 if noisy else 4, keep_trajectory=True,
            noise=np.random.default_rng(0) if noisy else None, moved_martingale=noisy,
        )  # fmt: skip
    assert all(field.device.type == "meta" for field in run)
    assert all(field.dtype == torch.float32 for field in run)
    assert run.trajectory.shape == (5, 3, 12, 3) and run.martingale.shape == (5, 3)


TOKENS, HEADS = start(18)
NOISE = {"noise": np.random.default_rng(0), "order": 1}


@pytest.mark.parametrize(
    ("word", "changes"),
    [
        ("tokens", {"tokens": 2 * TOKENS}),
        ("tokens", {"tokens": TOKENS * math.nan}),
        ("tokens", {"tokens": TOKENS[0]}),
        ("weights", {"weights": np.ones((1, 3, 2))}),
        ("weights", {"weights": np.ones((0, 3, 3))}),
        ("weights", {"weights": np.ones((1, 2, 2))}),
        ("weights", {"weights": np.ones((4, 1, 3, 3)), "tokens": TOKENS.expand(3, 12, 3)}),
        ("final_time", {"final_time": -1.0}),
        ("final_time", {"final_time": 1.05}),
        ("dt", {"dt": 0.0}),
        ("dt", {"dt": -0.1}),
        ("dt", {"dt": math.nan}),
        ("order", {"order": 3}),
        ("flow", {"flow": "down"}),
        ("record_every", {"record_every": 0}),
        ("noise", {"noise": np.random.default_rng(0)}),
        ("noise", {"weights": head_weights.OrnsteinUhlenbeck(HEADS), "order": 1}),
        ("noise", {"weights": head_weights.OrnsteinUhlenbeck(HEADS), "order": 1, "noise": 5}),
        ("order", {"weights": head_weights.OrnsteinUhlenbeck(HEADS), "order": 4}),
        ("order", {"exact_weights": False}),
    ],
)
def test_bad_input_is_refused(word, changes):
    arguments = {"tokens": TOKENS, "weights": HEADS, "final_time": 1.0, "dt": 0.1} | changes
    with pytest.raises(ValueError, match=f"^{word}:"):
        integrators.integrate(**arguments)
