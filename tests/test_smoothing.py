"""The streamed Nadaraya–Watson estimate is the one of the formula, wherever the data lie."""

import re
import weakref

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from rederive.attention import attention_weights
from rederive.smoothing import nadaraya_watson, smoothing_weights

EPS = torch.finfo(torch.float64).eps


def refused(words):
    return pytest.raises(ValueError, match=re.escape(words))


def draw(seed, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def by_formula(queries, keys, values, bandwidth):
    """The estimate in 50 digits."""
    with mpmath.workdps(50):
        estimates = []
        for q in queries.tolist():
            kernel = []
            for k in keys.tolist():
                square = mpmath.fsum((mpmath.mpf(a) - b) ** 2 for a, b in zip(q, k, strict=True))
                kernel.append(mpmath.exp(-square / (2 * mpmath.mpf(bandwidth) ** 2)))
            mass = mpmath.fsum(kernel)
            estimates.append(
                [float(mpmath.fdot(kernel, column) / mass) for column in values.T.tolist()]
            )
    return torch.tensor(estimates, dtype=torch.float64)


def rounding(queries, keys, values, bandwidth):
    """A bound on the error of one estimate by matrix products, from the docstring's eps R²."""
    centre = keys.mean(0)
    radius = max((queries - centre).norm(dim=1).max(), (keys - centre).norm(dim=1).max())
    operations = 4 * (keys.shape[1] + len(keys) + 4)
    return operations * EPS * (1 + float(radius / bandwidth) ** 2) * float(values.abs().max())


@pytest.mark.parametrize("offset", [0.0, 1000.0, -1e6])
@pytest.mark.parametrize(("p", "bandwidth"), [(1, 0.1), (3, 0.1), (3, 2.0), (8, 0.7)])
def test_agrees_with_the_formula_at_any_offset(offset, p, bandwidth):
    queries, keys, values = draw(0, 4, p) + offset, draw(1, 30, p) + offset, draw(2, 30, 2)
    found = nadaraya_watson(queries, keys, values, bandwidth)
    wanted = by_formula(queries, keys, values, bandwidth)
    error = (found - wanted).abs().max()
    assert error <= rounding(queries, keys, values, bandwidth) < 1e-9
    weights = smoothing_weights(queries, keys, bandwidth)
    assert (weights @ values - wanted).abs().max() <= rounding(queries, keys, values, bandwidth)


@pytest.mark.parametrize("distance", [1e4, 1e8])
def test_clusters_far_apart_lose_no_digits(distance):
    """Squares of the distance to the common centre would swamp what happens in a cluster."""
    shift = torch.tensor([[0.0, 0.0], [distance, -distance]], dtype=torch.float64)
    keys = (draw(0, 2, 15, 2) + shift[:, None]).reshape(30, 2)
    queries = (draw(1, 2, 2, 2) + shift[:, None]).reshape(4, 2)
    values = draw(2, 30, 1)
    found = nadaraya_watson(queries, keys, values, 0.5)
    # differences of the given numbers are right to one rounding of the centred coordinates
    allowed = 4 * EPS * distance / 0.5 * 10 / 0.5 * float(values.abs().max())
    assert (found - by_formula(queries, keys, values, 0.5)).abs().max() <= allowed


@pytest.mark.parametrize("n", [1, 2, 511, 512, 513, 1025])
@pytest.mark.parametrize("m", [0, 1, 513])
def test_block_borders_leave_no_trace(m, n):
    queries, keys, values = draw(0, m, 3), draw(1, n, 3), draw(2, n, 2)
    found = nadaraya_watson(queries, keys, values, 0.5)
    assert found.shape == (m, 2)
    whole = smoothing_weights(queries, keys, 0.5) @ values
    if m:
        assert (found - whole).abs().max() <= rounding(queries, keys, values, 0.5)


def test_a_late_key_that_outweighs_all_others_takes_over():
    keys = torch.linspace(50.0, 1.0, 2000, dtype=torch.float64)[:, None]
    values = torch.arange(2000.0, dtype=torch.float64)[:, None]
    found = nadaraya_watson(torch.zeros(1, 1, dtype=torch.float64), keys, values, 0.01)
    # the next key is 0.0245 farther: its weight is exp(−(1.0245² − 1)/2e-4) = e^−248
    assert found.item() == 1999


@given(
    st.integers(0, 2**31),
    st.integers(1, 40),
    st.integers(1, 3),
    st.floats(1e-3, 1e3),
    st.booleans(),
)
def test_estimates_lie_between_the_least_and_the_largest_value(seed, n, p, bandwidth, spread):
    queries, keys, values = draw(seed, 5, p) * 9**spread, draw(seed + 1, n, p), draw(seed + 2, n, 1)
    found = nadaraya_watson(queries, keys, values, bandwidth)
    margin = 2 * (n + 4) * EPS * float(values.abs().max())
    assert (found >= values.min() - margin).all()
    assert (found <= values.max() + margin).all()


@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(-20, 20))
def test_units_do_not_matter(seed, n, exponent):
    """Powers of two scale without rounding, so the numbers agree to the bit."""
    queries, keys, values = draw(seed, 3, 2), draw(seed + 1, n, 2), draw(seed + 2, n, 1)
    unit = 2.0**exponent
    before = nadaraya_watson(queries, keys, values, 0.5)
    assert torch.equal(before, nadaraya_watson(unit * queries, unit * keys, values, unit * 0.5))
    assert torch.equal(unit * before, nadaraya_watson(queries, keys, unit * values, 0.5))


def test_constants_are_reproduced():
    values = torch.full((700, 1), 3.25, dtype=torch.float64)
    found = nadaraya_watson(draw(0, 9, 2), draw(1, 700, 2), values, 0.3)
    assert (found - 3.25).abs().max() <= 2 * 704 * EPS * 3.25


def test_wide_kernels_give_the_mean_and_narrow_ones_the_nearest_value():
    queries, keys, values = draw(0, 6, 2), draw(1, 50, 2), draw(2, 50, 1)
    # weights differ from 1/n by at most |q − k|²/h² < 100/1e18, below one rounding
    wide = nadaraya_watson(queries, keys, values, 1e9)
    assert (wide - values.mean()).abs().max() <= 54 * EPS * values.abs().max()
    nearest = torch.cdist(queries, keys).argmin(1)
    assert torch.equal(nadaraya_watson(queries, keys, values, 1e-6), values[nearest])


def test_equally_near_keys_share():
    keys = torch.tensor([[-1.0], [1.0], [30.0]], dtype=torch.float64)
    values = torch.tensor([[2.0], [4.0], [100.0]], dtype=torch.float64)
    found = nadaraya_watson(torch.zeros(1, 1, dtype=torch.float64), keys, values, 0.1)
    assert found.item() == pytest.approx(3, rel=(3 + 320**2) * 8 * EPS)


@given(st.integers(0, 2**31), st.integers(1, 9), st.floats(0.1, 2))
def test_a_head_with_keys_of_equal_norm_is_a_smoother(seed, n, bandwidth):
    queries, keys = draw(seed, 3, 4), draw(seed + 1, n, 4)
    keys = keys / keys.norm(dim=1, keepdim=True)
    head = attention_weights(queries, keys, bandwidth**-2)
    smoother = smoothing_weights(queries, keys, bandwidth)
    # both exponents are right to a few roundings of (|q| + 1)²/h²; the norms are 1 up to 2 eps
    radius = float(queries.norm(dim=1).max()) + 1
    assert (head - smoother).abs().max() <= 40 * EPS * (1 + (radius / bandwidth) ** 2)


@pytest.mark.parametrize("bandwidth", [0.7, 1e-3])
def test_gradients_are_those_of_finite_differences(bandwidth):
    """By products and, at the small bandwidth, by differences; there the scale is the bandwidth."""
    queries = (draw(0, 2, 2) * bandwidth).requires_grad_()
    far = torch.cat([draw(1, 4, 2) * bandwidth, torch.ones(1, 2, dtype=torch.float64)])
    keys, values = far.requires_grad_(), draw(2, 5, 2).requires_grad_()

    def estimate(q, k, v):
        return nadaraya_watson(q, k, v, bandwidth)

    step = 1e-6 * bandwidth
    assert torch.autograd.gradcheck(estimate, (queries, keys, values), eps=step, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_is_kept_and_right_to_its_digits(dtype):
    queries, keys, values = draw(0, 4, 2) + 100, draw(1, 600, 2) + 100, draw(2, 600, 1)
    rounded = [part.to(dtype) for part in (queries, keys, values)]
    found = nadaraya_watson(*rounded, 0.1)
    assert found.dtype == dtype
    wanted = by_formula(*rounded, 0.1)
    # centring rounds each coordinate of size ≤ 104 once: eps·104/h a coordinate, times |u| ≤ 40
    eps = torch.finfo(dtype).eps
    assert (found.double() - wanted).abs().max() <= eps * 104 / 0.1 * 40 * 4


class LiveBytes(TorchDispatchMode):
    """Count the bytes of the tensors that are alive beside the given ones, and their peak."""

    def __init__(self, *given):
        super().__init__()
        self.given = {part.untyped_storage().data_ptr() for part in given}
        self.alive, self.now, self.peak = {}, 0, 0

    def _gone(self, address, size):
        self.now -= size
        del self.alive[address]

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for made in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(made, torch.Tensor):
                storage = made.untyped_storage()
                address, size = storage.data_ptr(), storage.nbytes()
                if size and address not in self.alive and address not in self.given:
                    self.alive[address] = weakref.finalize(storage, self._gone, address, size)
                    self.now += size
                    self.peak = max(self.peak, self.now)
        return result


def test_a_million_keys_take_little_memory():
    keys, values, queries = draw(0, 10**6, 8), draw(1, 10**6, 1), draw(2, 600, 8)
    with LiveBytes(keys, values, queries) as seen:
        found = nadaraya_watson(queries[:2], keys, values, 1.0)
    assert torch.isfinite(found).all()
    assert seen.peak < 50e6


@pytest.mark.parametrize("bandwidth", [1.0, 1e-3])
def test_memory_is_linear_in_queries_plus_keys(bandwidth):
    peaks = []
    for size in (2000, 8000):
        parts = draw(0, size, 2), draw(1, size, 2), draw(2, size, 1)
        with LiveBytes(*parts) as seen:
            nadaraya_watson(*parts, bandwidth)
        peaks.append(seen.peak)
    # a few blocks of scores, whatever the size, and a few numbers a query and a key
    assert peaks[0] <= 8 * (512 * 512 * 5 + 20 * 4000)
    assert peaks[1] - peaks[0] <= 8 * 20 * 12000


def test_the_whole_matrix_is_seen_by_the_counter_of_bytes():
    queries, keys = draw(0, 300, 2), draw(1, 400, 2)
    with LiveBytes(queries, keys) as seen:
        smoothing_weights(queries, keys, 1.0)
    assert seen.peak >= 2 * 8 * 300 * 400


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bandwidth": 0}, "bandwidth: expected a positive finite number, got 0.0"),
        ({"bandwidth": -1.0}, "bandwidth: expected a positive finite number, got -1.0"),
        ({"bandwidth": np.nan}, "bandwidth: expected a positive finite number, got nan"),
        ({"bandwidth": np.inf}, "bandwidth: expected a positive finite number, got inf"),
        ({"bandwidth": "0.1"}, "bandwidth: expected a positive finite number, got '0.1'"),
        ({"bandwidth": 1e-200}, "bandwidth: expected one whose squared units do not overflow"),
        ({"queries": torch.full((1, 2), 1e30)}, "bandwidth: expected one whose squared units"),
        ({"queries": torch.ones(3)}, "queries: expected shape (m, p), got shape (3,)"),
        ({"queries": torch.full((1, 2), torch.nan)}, "queries: expected finite entries only"),
        ({"keys": torch.ones(2, 3)}, "keys: expected shape (n, 2), got shape (2, 3)"),
        ({"keys": torch.ones(0, 2)}, "keys: expected at least one entry along every axis"),
        ({"keys": torch.ones(2, 2).double()}, "keys: expected dtype torch.float32"),
        ({"values": torch.ones(3)}, "values: expected shape (3, v), got shape (3,)"),
        ({"values": torch.ones(2, 1)}, "values: expected shape (3, v), got shape (2, 1)"),
        ({"values": torch.tensor([[1.0], [torch.inf], [1.0]])}, "values: expected finite entries"),
        ({"values": torch.ones(3, 1, device="meta")}, "values: expected device cpu, got meta"),
    ],
)
def test_bad_input_is_refused(change, words):
    good = {
        "queries": torch.ones(1, 2),
        "keys": torch.arange(6.0).reshape(3, 2),
        "values": torch.ones(3, 1),
        "bandwidth": 1.0,
    }
    assert nadaraya_watson(**good).shape == (1, 1)
    with refused(words):
        nadaraya_watson(**(good | change))
    if "values" not in change:
        with refused(words):
            arguments = good | change
            del arguments["values"]
            smoothing_weights(**arguments)
