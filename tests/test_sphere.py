"""The sphere: projections, retractions, geodesics, distances and point sets."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rederive import sphere

quick = settings(max_examples=50, deadline=None)
seeds, dims = st.integers(0, 10**6), st.integers(2, 6)


def points(seed, dim, n=5):
    return sphere.uniform(np.random.default_rng(seed), n, dim)


def vectors(seed, dim, n=5):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, dim)))


@quick
@given(seeds, dims)
def test_projection_is_orthogonal_and_idempotent(seed, dim):
    x, u = points(seed, dim), vectors(seed + 1, dim)
    tangent = sphere.project(x, u)
    assert (tangent * x).sum(-1).abs().max() < 1e-14
    assert torch.allclose(sphere.project(x, tangent), tangent, atol=1e-14)
    assert torch.allclose((u - tangent).norm(dim=-1), (u * x).sum(-1).abs(), atol=1e-14)


@quick
@given(seeds, dims, st.floats(-150, 150))
def test_retraction_has_norm_one_at_any_size(seed, dim, exponent):
    x = sphere.retract(vectors(seed, dim) * 10.0**exponent)
    assert (x.norm(dim=-1) - 1).abs().max() < 1e-15 * 4


@quick
@given(seeds, dims, st.floats(1e-9, 3.1))
def test_geodesics_arrive_at_the_right_distance(seed, dim, length):
    x = points(seed, dim)
    u = sphere.project(x, vectors(seed + 1, dim))
    y = sphere.exponential(x, length * sphere.retract(u))
    assert torch.allclose(sphere.distance(x, y), torch.full((5,), length).double(), rtol=1e-6)
    assert (y.norm(dim=-1) - 1).abs().max() < 1e-15 * 4
    plane = torch.linalg.matrix_rank(torch.stack([x, u, y], -2), atol=1e-7)
    assert (plane <= 2).all()


def test_all_axes_but_the_last_are_a_batch():
    x, y, wild = points(3, 4, 6), points(4, 4, 6), vectors(5, 4, 6)
    for function, *arguments in [
        (sphere.retract, wild),
        (sphere.project, x, wild),
        (sphere.exponential, x, sphere.project(x, wild)),
        (sphere.distance, x, y),
    ]:
        plain, batch = function(*arguments), function(*(one.reshape(2, 3, 4) for one in arguments))
        assert torch.allclose(batch.reshape(plain.shape), plain, atol=1e-14)


def test_random_points_are_normals_of_length_one():
    for size in (5, (2, 5)):
        normals = np.random.default_rng(4).standard_normal((*np.atleast_1d(size), 3))
        expected = normals / np.sqrt((normals**2).sum(-1, keepdims=True))
        found = sphere.uniform(np.random.default_rng(4), size)
        assert found.numpy() == pytest.approx(expected, abs=1e-15)


def test_random_points_do_not_know_each_other():
    for draw in (sphere.uniform, sphere.octahedral):
        alone = [draw(np.random.default_rng(5), size, 3) for size in (6, (6, 1))]
        assert torch.equal(alone[0], alone[1][:, 0])


def test_the_usual_sphere_lies_in_space():
    assert sphere.uniform(np.random.default_rng(0), 4).shape == (4, 3)


def test_a_geodesic_of_length_zero_stays():
    x = points(0, 3)
    assert torch.allclose(sphere.exponential(x, 0 * x), x, atol=1e-15)
    assert torch.allclose(sphere.exponential(x, 5 * x), x, atol=1e-15)


def test_retraction_and_geodesic_differ_at_third_order():
    x = points(1, 3)
    u = sphere.project(x, vectors(2, 3))
    gaps = [
        (sphere.exponential(x, h * u) - sphere.retract(x + h * u)).norm().item()
        for h in (1e-2, 5e-3)
    ]
    assert math.log2(gaps[0] / gaps[1]) == pytest.approx(3, abs=0.02)


@pytest.mark.parametrize("angle", [1e-12, 1e-8, 1e-3, 1.0, math.pi - 1e-9])
def test_distances_are_right_at_both_ends(angle):
    x = torch.tensor([1.0, 0.0], dtype=torch.float64)
    y = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
    assert sphere.distance(x, y).item() == pytest.approx(angle, rel=1e-12, abs=1e-15)


@quick
@given(seeds, dims)
def test_distance_is_a_metric(seed, dim):
    x, y, z = points(seed, dim, 3)
    assert sphere.distance(x, x) == 0
    assert sphere.distance(x, y) == sphere.distance(y, x)
    assert sphere.distance(x, z) <= sphere.distance(x, y) + sphere.distance(y, z) + 1e-14
    assert sphere.distance(x, -x).item() == pytest.approx(math.pi, abs=1e-15)


def test_the_polygon_is_regular():
    x = sphere.quasi_uniform(7, 2)
    assert torch.allclose(sphere.distance(x, x.roll(1, 0)), torch.tensor(2 * math.pi / 7).double())


@pytest.mark.parametrize("n", [1, 2, 50, 1000])
def test_fibonacci_points_integrate_low_polynomials(n):
    x = sphere.quasi_uniform(n)
    assert (x.norm(dim=-1) - 1).abs().max() < 1e-15 * 4
    assert x.mean(0).abs().max() < 3 / n
    assert (x.T @ x / n - torch.eye(3) / 3).abs().max() < 3 / n


def test_fibonacci_points_keep_their_distance():
    x = sphere.quasi_uniform(500)
    gaps = sphere.distance(x[:, None], x) + 9 * torch.eye(500)
    assert gaps.min() > 0.7 * math.sqrt(4 * math.pi / 500)


def test_random_points_are_uniform_and_addressed():
    x = sphere.uniform(np.random.default_rng(3), 20_000)
    assert x.mean(0).abs().max() < 6 / math.sqrt(3 * 20_000)
    assert torch.equal(x, sphere.uniform(np.random.default_rng(3), 20_000))
    assert sphere.uniform(np.random.default_rng(3), (4, 5), 2).shape == (4, 5, 2)


def test_octahedral_points_stay_near_the_axes():
    x = sphere.octahedral(np.random.default_rng(4), 1000, 4, noise=0.05)
    assert (1 - x.abs().amax(-1)).max() < 0.05
    assert torch.unique(x.round(), dim=0).shape[0] == 8
    ends = sphere.octahedral(np.random.default_rng(4), 10, noise=0.0)
    assert torch.equal(ends, ends.round())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_types_are_kept(dtype):
    x = sphere.quasi_uniform(9, dtype=dtype)
    rng = np.random.default_rng(5)
    found = [x, sphere.project(x, x), sphere.retract(x), sphere.exponential(x, x)]
    found += [sphere.distance(x, x), sphere.uniform(rng, 2, dtype=dtype)]
    assert all(y.dtype == dtype for y in found)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: sphere.project(2 * points(0, 3), points(0, 3)), "points"),
        (lambda: sphere.project(points(0, 3), points(0, 2)), "vectors"),
        (lambda: sphere.project(points(0, 3), points(0, 3, 4)), "vectors"),
        (lambda: sphere.retract(torch.zeros(2, 3)), "points"),
        (lambda: sphere.retract(torch.tensor([1.0, math.nan])), "points"),
        (lambda: sphere.distance(points(0, 3), 2 * points(0, 3)), "second"),
        (lambda: sphere.quasi_uniform(0), "n"),
        (lambda: sphere.quasi_uniform(5, 4), "dim"),
        (lambda: sphere.uniform(7, 5), "rng"),
        (lambda: sphere.uniform(np.random.default_rng(0), 5, 1), "dim"),
        (lambda: sphere.octahedral(np.random.default_rng(0), 5, noise=-1), "noise"),
    ],
)
def test_bad_input_is_refused(call, word):
    with pytest.raises(ValueError, match=f"^{word}:"):
        call()
