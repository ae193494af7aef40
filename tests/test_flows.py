"""Energy, mobility, velocities and dissipation of tokens under attention."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rederive import flow_logarithms, flows, head_weights, pair_blocks, sphere

quick = settings(max_examples=40, deadline=None)
cases = (st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 4), st.integers(1, 7))


def cloud(seed, heads=3, dim=3, n=6, scale=1.0):
    rng = np.random.default_rng(seed)
    matrices = head_weights.gaussian_heads(rng, heads, dim, scale=scale)
    return sphere.uniform(rng, n, dim), torch.from_numpy(matrices)


def of_norm(norm, seed, heads=4, dim=3, n=12):
    tokens, matrices = cloud(seed, heads, dim, n)
    return tokens, matrices / torch.linalg.matrix_norm(matrices, 2)[:, None, None] * norm


def by_definition(tokens, matrices):
    """φ (H, n) and ∇φ (H, n, d) by loops over heads and pairs."""
    n, dim = tokens.shape
    phi, slope = torch.zeros(len(matrices), n).double(), torch.zeros(len(matrices), n, dim).double()
    for h, matrix in enumerate(matrices):
        for i, x in enumerate(tokens):
            for y in tokens:
                kernel = math.exp(x @ matrix @ y) / n
                phi[h, i] += kernel
                slope[h, i] += kernel * (matrix @ y)
    return phi, slope


@quick
@given(*cases)
def test_everything_by_definition(seed, heads, dim, n):
    x, d = cloud(seed, heads, dim, n)
    phi, slope = by_definition(x, d)
    g = sphere.project(x, slope.mean(0))
    w = sphere.project(x, (slope / phi[..., None]).mean(0))
    b = 1 / (1 / phi).mean(0)
    close = {"rtol": 1e-11, "atol": 1e-11 * float(phi.max())}
    assert torch.allclose(flows.energy(x, d), phi.mean() / 2, **close)
    assert torch.allclose(flows.log_potentials(x, d), phi.log(), atol=1e-12)
    assert torch.allclose(flows.effective_mobility(x, d), b, **close)
    assert torch.allclose(flows.velocity(x, d), -w, **close)
    assert torch.allclose(flows.velocity(x, d, "gradient"), -g / b[:, None], **close)
    assert torch.allclose(flows.velocity(x, d, "plain"), -g, **close)
    assert torch.allclose(flows.velocity(x, d, "joint"), -g / phi.mean(0)[:, None], **close)
    assert torch.allclose(flows.energy_gradient(x, d), g, **close)
    assert torch.allclose(flows.mobility_covariance(x, d), w - g / b[:, None], **close)
    square = {"rtol": 1e-11, "atol": 1e-11 * float(phi.max()) ** 2}
    assert torch.allclose(flows.dissipation(x, d), (g * w).sum(-1).mean(), **square)
    assert torch.allclose(flows.claimed_dissipation(x, d), (b * (w * w).sum(-1)).mean(), **square)
    assert torch.allclose(flows.squared_slope(x, d), ((g * g).sum(-1) / b).mean(), **square)


@quick
@given(*cases)
def test_the_gradient_is_that_of_the_energy(seed, heads, dim, n):
    x, d = cloud(seed, heads, dim, n)
    moving = x.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(flows.log_energy(moving, d), moving)
    gradient = n * flows.energy(x, d) * sphere.project(x, gradient)
    assert torch.allclose(flows.energy_gradient(x, d), gradient, rtol=1e-10, atol=1e-12)


@quick
@given(*cases)
def test_velocities_are_tangent_and_bounded(seed, heads, dim, n):
    x, d = cloud(seed, heads, dim, n)
    largest = torch.linalg.matrix_norm(d, 2).max()
    for flow in flows.FLOWS:
        v = flows.velocity(x, d, flow)
        assert (v * x).sum(-1).abs().max() <= 1e-13 * (1 + v.abs().max())
        if flow in ("attention", "joint"):
            assert v.norm(dim=-1).max() <= largest * (1 + 1e-14)


@quick
@given(*cases)
def test_the_de_giorgi_defect_is_half_the_squared_covariance(seed, heads, dim, n):
    x, d = cloud(seed, heads, dim, n, scale=0.5)
    claimed, slope = flows.claimed_dissipation(x, d), flows.squared_slope(x, d)
    covariance = flows.mobility_covariance(x, d)
    b = flows.effective_mobility(x, d)
    defect = (b * covariance.square().sum(-1)).mean() / 2
    found = claimed / 2 + slope / 2 - flows.dissipation(x, d)
    assert torch.allclose(found, defect, atol=1e-12 * float(claimed + slope + 1))


@quick
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_equal_heads_are_one_head(seed, heads):
    x, d = cloud(seed, 1)
    same = d.expand(heads, 3, 3)
    for flow in flows.FLOWS:
        found = flows.velocity(x, same, flow)
        assert torch.allclose(found, flows.velocity(x, d, flow), rtol=1e-12, atol=1e-12)
    for flow in ("gradient", "joint"):
        found = flows.velocity(x, same, flow)
        assert torch.allclose(found, flows.velocity(x, same), rtol=1e-12, atol=1e-12)
    found = flows.dissipation(x, d).item(), flows.squared_slope(x, d).item()
    assert found == pytest.approx([flows.claimed_dissipation(x, d).item()] * 2, rel=1e-11)


@quick
@given(*cases)
def test_the_least_potential_bounds_the_mobility(seed, heads, dim, n):
    x, d = cloud(seed, heads, dim, n)
    logs, b = flows.log_potentials(x, d), flows.log_effective_mobility(x, d)
    assert (b >= logs.amin(-2) - 1e-13).all()
    assert (b <= logs.amin(-2) + math.log(heads) + 1e-13).all()


def test_rotations_change_nothing():
    x, d = cloud(1)
    turn = torch.linalg.qr(torch.from_numpy(np.random.default_rng(2).standard_normal((3, 3))))[0]
    turned = flows.velocity(x @ turn, turn.T @ d @ turn)
    assert torch.allclose(turned, flows.velocity(x, d) @ turn, atol=1e-13)


def test_energy_can_increase_for_two_heads():
    """A point mass on the circle: θ' = −sin(2θ)/4, tan θ(t) = tan θ(0) e^{−t/2}."""
    d = torch.tensor([[[0.5, 0], [0, -0.5]], [[-4, 0], [0, -2]]]).double()
    for theta in (0.2, 0.7, 1.2):
        x = torch.tensor([[math.cos(theta), math.sin(theta)]], dtype=torch.float64)
        v = flows.velocity(x, d)[0]
        speed = v @ torch.tensor([-math.sin(theta), math.cos(theta)], dtype=torch.float64)
        assert speed.item() == pytest.approx(-math.sin(2 * theta) / 4, rel=1e-13)
        energy = (math.exp(math.cos(2 * theta) / 2) + math.exp(-3 - math.cos(2 * theta))) / 4
        assert flows.energy(x, d).item() == pytest.approx(energy, rel=1e-14)
        assert flows.dissipation(x, d) < 0 < flows.claimed_dissipation(x, d)


def test_heads_and_clouds_broadcast():
    x, d = cloud(3, n=5)
    more = torch.stack([x, x.flip(0)])
    assert torch.allclose(flows.energy(more, d), flows.energy(x, d).expand(2))
    families = torch.stack([d, 2 * d, 0 * d]).unsqueeze(1)
    found = flows.velocity(more, families)
    assert found.shape == (3, 2, 5, 3)
    assert torch.allclose(found[1, 1], flows.velocity(x.flip(0), 2 * d), atol=1e-14)
    assert flows.effective_mobility(more, families).shape == (3, 2, 5)


@pytest.mark.parametrize("flow", flows.FLOWS)
@pytest.mark.parametrize("block", [50, 1000])
@pytest.mark.parametrize("norm", [1.0, 300.0])
def test_blocks_do_not_change_the_numbers(flow, block, norm, monkeypatch):
    x, d = of_norm(norm, 4, n=40)
    more = torch.stack([x, x.flip(0)])[:, None]  # two clouds, under two families of heads
    families = torch.stack([d, d.mT.flip(0) / 2])
    whole = flows.velocity(more, families, flow), flows.log_potentials(more, families)
    monkeypatch.setattr(flow_logarithms, "_ROOM", 100)
    monkeypatch.setitem(pair_blocks._BLOCK, "cpu", block)
    again = flows.velocity(more, families, flow), flows.log_potentials(more, families)
    assert again[0].shape == (2, 2, 40, 3)
    # scores of this size are rounded, and the gradient's exponentials of their mean share that
    close = 1e-13 * max(1.0, norm)
    assert torch.allclose(again[0], whole[0], rtol=close, atol=close)
    assert torch.allclose(again[1], whole[1], rtol=1e-13, atol=1e-13)


def test_derivatives_pass_through_many_blocks(monkeypatch):
    x, d = cloud(7, n=9)
    step = sphere.project(x, cloud(8, n=9)[0])

    def rise():
        moving = x.clone().requires_grad_()
        (back,) = torch.autograd.grad(flows.energy(moving, d), moving)
        _, ahead = torch.func.jvp(lambda y: flows.energy(y, d), (x,), (step,))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, step)
            dual = torch.autograd.forward_ad.unpack_dual(flows.energy(dual, d)).tangent
        return torch.stack([(back * step).sum(), ahead, dual])

    whole = rise()
    monkeypatch.setattr(flow_logarithms, "_ROOM", 100)
    again = rise()
    assert torch.allclose(again, whole, rtol=1e-13)
    assert torch.allclose(again, again[:1].expand(3), rtol=1e-12)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read as on Linux")
@pytest.mark.parametrize(
    "call",
    [
        "flows.velocity(x, d)",
        "flow_kernels.rates(x[None], d[None], 'attention')",
        "integrators.integrate(x, d, 0.0, 1.0)",
    ],
)
def test_memory_grows_like_the_number_of_tokens(call):
    """A fresh process, in which one array of n² numbers would take 280 MB."""
    script = rf"""
import re, torch
from rederive import flow_kernels, flows, integrators, sphere
torch.set_num_threads(1)
def peak():
    return int(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1]) * 1024
def run(n):
    x, d = sphere.quasi_uniform(n), torch.eye(3, dtype=torch.float64)[None]
    {call}
run(200)
before = peak()
run(6000)
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # sums and features of a token, the block of scores, pages that the allocator keeps
    assert int(done.stdout) < 40e6


class TestLargeHeads:
    @pytest.mark.parametrize("norm", [50.0, 350.0, 1000.0])
    def test_attention_is_finite(self, norm):
        for seed in range(40):
            x, d = of_norm(norm, seed)
            for flow in ("attention", "joint"):
                assert flows.velocity(x, d, flow).norm(dim=-1).max() <= norm * (1 + 1e-12)
            assert flows.log_energy(x, d).isfinite()
            assert flows.log_effective_mobility(x, d).isfinite().all()

    @pytest.mark.parametrize("norm", [1.0, 350.0, 1000.0])
    def test_the_gradient_flow_is_finite_where_its_value_fits(self, norm):
        mpmath = pytest.importorskip("mpmath")
        infinite = 0
        for seed in range(3):
            x, d = of_norm(norm, seed, n=4)
            with mpmath.workdps(60):
                true = self.gradient_flow(mpmath, x, d)
            for mine, exact in zip(flows.velocity(x, d, "gradient").flatten(), true, strict=True):
                if math.isinf(float(exact)):
                    infinite += 1
                    assert mine == float(exact)
                else:
                    # what rounding makes of scores of this size, times what cancels in P
                    assert abs(mine - float(exact)) <= 1e-11 * norm * (1 + abs(float(exact)))
        assert (infinite > 0) == (norm == 1000)

    @staticmethod
    def gradient_flow(mp, x, d):
        """−g/b̂ at every token and coordinate, with 60 digits."""
        x = [[mp.mpf(float(c)) for c in row] for row in x]
        count, n = len(d), len(x)
        pulls, found = [], []
        for a in x:
            phi, slope = [], []
            for h in d:
                rows = [[mp.mpf(float(c)) for c in row] for row in h]
                images = [[mp.fdot(row, y) for row in rows] for y in x]
                kernel = [mp.exp(mp.fdot(a, image)) / n for image in images]
                phi.append(mp.fsum(kernel))
                slope.append(
                    [
                        mp.fsum(k * m[c] for k, m in zip(kernel, images, strict=True))
                        for c in range(3)
                    ]
                )
            pulls = [mp.fsum(s[c] for s in slope) / count for c in range(3)]
            # the tokens have norm one to rounding only, as P in the library takes them
            along = mp.fdot(a, pulls)
            inverse = mp.fsum(1 / p for p in phi) / count
            found += [-(p - along * c) * inverse for p, c in zip(pulls, a, strict=True)]
        return found

    def test_zero_times_infinity_is_zero(self):
        """All tokens at an eigenvector: nothing pulls, whatever the size of the potentials."""
        x = torch.tensor([[1.0, 0, 0]]).double().expand(5, 3)
        d = torch.diag(torch.tensor([1000.0, 3, -1000])).double()
        heads = torch.stack([d, -d])
        for flow in flows.FLOWS:
            assert torch.equal(flows.velocity(x, heads, flow), torch.zeros(5, 3).double())
        assert flows.squared_slope(x, heads) == flows.dissipation(x, heads) == 0
        assert flows.claimed_dissipation(x, heads) == 0
        assert flows.energy(x, heads) == math.inf

    def test_nothing_is_nan(self):
        for seed in range(40):
            x, d = of_norm(1000.0, seed)
            for flow in flows.FLOWS:
                assert not flows.velocity(x, d, flow).isnan().any()
            for rate in (flows.dissipation, flows.claimed_dissipation, flows.squared_slope):
                assert not rate(x, d).isnan()


class TestHeadsWithoutSymmetry:
    heads = torch.tensor([[[0.3, 1.0], [-0.4, 0.2]]]).double()
    tokens = sphere.quasi_uniform(3, 2)

    @pytest.mark.parametrize("flow", ["attention", "joint"])
    def test_attention_takes_them(self, flow):
        phi, slope = by_definition(self.tokens, self.heads)
        w = sphere.project(self.tokens, (slope / phi[..., None]).mean(0))
        assert torch.allclose(flows.velocity(self.tokens, self.heads, flow), -w, atol=1e-14)
        assert flows.claimed_dissipation(self.tokens, self.heads) > 0

    def test_what_needs_a_gradient_refuses_them_with_the_reason(self):
        calls = [
            lambda: flows.velocity(self.tokens, self.heads, "gradient"),
            lambda: flows.velocity(self.tokens, self.heads, "plain"),
            lambda: flows.energy_gradient(self.tokens, self.heads),
            lambda: flows.mobility_covariance(self.tokens, self.heads),
            lambda: flows.dissipation(self.tokens, self.heads),
            lambda: flows.squared_slope(self.tokens, self.heads),
        ]
        for call in calls:
            with pytest.raises(ValueError, match=r"^heads: .*gradient of the energy"):
                call()


@pytest.mark.parametrize(
    ("tokens", "heads", "word"),
    [
        (2 * sphere.quasi_uniform(4), np.ones((1, 3, 3)), "tokens"),
        (sphere.quasi_uniform(4), np.ones((1, 3, 2)), "heads"),
        (sphere.quasi_uniform(4), np.ones((1, 2, 2)), "heads"),
        (sphere.quasi_uniform(4), np.ones((0, 3, 3)), "heads"),
        (sphere.quasi_uniform(4), np.ones((3, 3)), "heads"),
        (sphere.quasi_uniform(4), np.full((1, 3, 3), np.nan), "heads"),
        (sphere.quasi_uniform(4) * math.nan, np.ones((1, 3, 3)), "tokens"),
        (sphere.quasi_uniform(4), torch.ones(1, 3, 3), "heads"),
        (sphere.quasi_uniform(4).expand(2, 4, 3), np.ones((3, 1, 3, 3)), "heads"),
    ],
)
@pytest.mark.parametrize("call", [flows.energy, flows.velocity, flows.claimed_dissipation])
def test_bad_input_is_refused(tokens, heads, word, call):
    with pytest.raises(ValueError, match=f"^{word}:"):
        call(tokens, heads)


def test_an_unknown_flow_is_refused():
    with pytest.raises(ValueError, match=r"^flow:"):
        flows.velocity(*cloud(5), flow="up")


CALLS = [
    flows.energy, flows.log_energy, flows.effective_mobility, flows.log_effective_mobility,
    flows.log_potentials, flows.energy_gradient, flows.mobility_covariance, flows.dissipation,
    flows.claimed_dissipation, flows.squared_slope,
    *(lambda x, d, flow=flow: flows.velocity(x, d, flow) for flow in flows.FLOWS),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_single_precision_is_right_to_its_digits(call):
    x, d = (part.float() for part in cloud(6))
    found = call(x, d)
    assert found.dtype == torch.float32
    assert torch.allclose(found.double(), call(x.double(), d.double()), rtol=2e-4)
