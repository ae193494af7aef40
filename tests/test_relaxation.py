"""The uniform measure under D = I: closed forms against quadrature and small clouds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from rederive import flows, relaxation, sphere

quick = settings(max_examples=40, deadline=None)


def energy(tokens):
    return 0.5 * np.exp(tokens @ tokens.T).mean()


@pytest.mark.parametrize("dim", [2, 3, 4, 7])
@pytest.mark.parametrize("degree", [0, 1, 2, 5])
def test_the_kernel_multiplies_gegenbauer_polynomials_by_its_eigenvalues(dim, degree):
    def average(function):
        if dim == 2:
            return integrate.quad(lambda a: function(math.cos(a)), 0, math.pi)[0] / math.pi
        weight = lambda t: (1 - t * t) ** ((dim - 3) / 2)  # noqa: E731
        total = integrate.quad(weight, -1, 1)[0]
        return integrate.quad(lambda t: function(t) * weight(t), -1, 1)[0] / total

    def zonal(t):
        if dim == 2:
            return math.cos(degree * math.acos(max(-1.0, min(1.0, t))))
        index = dim / 2 - 1
        top = special.eval_gegenbauer(degree, index, 1.0)
        return special.eval_gegenbauer(degree, index, t) / top

    expected = average(lambda t: math.exp(t) * zonal(t))
    assert relaxation.kernel_eigenvalues(degree, dim) == pytest.approx(expected, rel=1e-9)


def test_least_energies_are_the_known_ones():
    assert relaxation.uniform_energy(2) == pytest.approx(special.iv(0, 1) / 2, rel=1e-14)
    assert relaxation.uniform_energy(3) == pytest.approx(math.sinh(1) / 2, rel=1e-14)


@quick
@given(st.integers(1, 40), st.integers(0, 10**6), st.sampled_from([2, 3, 5]))
def test_no_cloud_lies_below_the_uniform_measure(n, seed, dim):
    tokens = sphere.uniform(np.random.default_rng(seed), n, dim).numpy()
    assert energy(tokens) >= relaxation.uniform_energy(dim) * (1 - 1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 15])
def test_polygons_have_the_energy_of_the_series(n):
    assert relaxation.polygon_energy(n) == pytest.approx(
        energy(sphere.quasi_uniform(n, 2).numpy()), rel=1e-13
    )


def test_rates_are_those_of_a_perturbed_polygon():
    """A polygon of 64 corners, moved by ε sin(kθ) along the circle, moves back at rate λ_k."""
    import torch

    angles = 2 * math.pi * torch.arange(64, dtype=torch.float64) / 64
    for k in (1, 2, 3):
        moved = angles + 1e-6 * torch.sin(k * angles)
        tokens = torch.stack([moved.cos(), moved.sin()], -1)
        velocity = flows.velocity(tokens, torch.eye(2, dtype=torch.float64)[None])
        along = velocity[:, 1] * moved.cos() - velocity[:, 0] * moved.sin()
        rate = -(along * torch.sin(k * angles)).mean() / (1e-6 * 0.5)
        assert float(rate) == pytest.approx(relaxation.uniform_rates(k, 2), rel=1e-4)


def test_shapes_and_types():
    assert isinstance(relaxation.uniform_rates(2), float)
    assert relaxation.uniform_rates([[1, 2, 3]]).shape == (1, 3)
    assert relaxation.uniform_rates(0) == 0
    assert relaxation.uniform_rates([]).shape == (0,)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: relaxation.uniform_rates(-1), "degrees"),
        (lambda: relaxation.uniform_rates(1.5), "degrees"),
        (lambda: relaxation.kernel_eigenvalues(1, 1), "dim"),
        (lambda: relaxation.uniform_energy(2.5), "dim"),
        (lambda: relaxation.polygon_energy(0), "n"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=f"^{name}"):
        call()
