"""The law MP_δ ⊠ MP_γ: closed forms against quadrature, roots, simulation and one another."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from rederive import jump_laws, product_curve
from rederive.free_probability import FreeMPProduct

#: Soft and hard edges, atoms, tiny and large ratios, and nearly equal ones.
PAIRS = [
    (0.5, 0.25),
    (0.9, 0.2),
    (0.9999, 0.2),
    (1, 0.2),
    (1, 1),
    (1.0001, 1),
    (1e-6, 1e-6),
    (1e-6, 1e3),
    (1e3, 1e3),
    (999, 1000),
    (1 - 1e-5, 1e-6),
    (1e-3, 0.4),
]
ratios = st.floats(-4, 3).map(lambda e: 10.0**e)
quick = settings(max_examples=60, deadline=None)


class TestDensity:
    @pytest.mark.parametrize(("delta", "gamma"), PAIRS)
    def test_mass_and_six_moments(self, delta, gamma):
        law = FreeMPProduct(delta, gamma)
        x, weights = law.quadrature()
        assert weights.sum() == pytest.approx(1 - law.atom, rel=1e-13)
        for k in range(1, 7):
            assert weights @ x**k == pytest.approx(law.moment(k), rel=1e-13)

    @quick
    @given(ratios, ratios)
    def test_mass_and_mean_for_any_ratios(self, delta, gamma):
        law = FreeMPProduct(delta, gamma)
        x, weights = law.quadrature()
        assert weights.sum() == pytest.approx(1 - law.atom, rel=1e-12)
        assert weights @ x == pytest.approx(1, rel=1e-12)
        assert np.all(np.diff(x) >= -1e-14 * x[-1]) and np.all(weights >= 0)

    @quick
    @given(ratios, ratios)
    def test_the_order_of_the_ratios_does_not_matter(self, delta, gamma):
        one, other = FreeMPProduct(delta, gamma), FreeMPProduct(gamma, delta)
        x = np.linspace(*one.support(), 7)[1:-1]
        assert one.support() == other.support()
        assert np.array_equal(one.pdf(x), other.pdf(x))

    @pytest.mark.parametrize(("delta", "gamma"), PAIRS)
    def test_the_curve_and_cardano_agree(self, delta, gamma):
        law = FreeMPProduct(delta, gamma)
        x, density = law.curve(101)
        inner = slice(5, -5)  # at an edge the density is sensitive to the last digit of x
        assert np.allclose(law.pdf(x[inner]), density[inner], rtol=1e-9)

    def test_companion_eigenvalues_agree(self):
        law = FreeMPProduct(0.5, 0.25)
        for x in np.linspace(*law.support(), 41)[1:-1]:
            roots = np.roots([1, 1.75 - x, 0.875, 0.125])  # of the cubic for y
            density = np.abs((1 / roots).imag).max() / (math.pi * x)
            assert law.pdf(x) == pytest.approx(density, abs=1e-12)

    def test_both_ratios_one_in_closed_form(self):
        law = FreeMPProduct(1, 1)
        angle = np.linspace(0.05, 1.0, 20)  # x = sin³(3φ)/(sin φ sin²2φ) of the Fuss–Catalan law
        x = np.sin(3 * angle) ** 3 / (np.sin(angle) * np.sin(2 * angle) ** 2)
        density = np.sin(angle) ** 2 * np.sin(2 * angle) / (math.pi * np.sin(3 * angle) ** 2)
        assert law.support() == (0, pytest.approx(27 / 4, rel=1e-15))
        assert np.allclose(law.pdf(x), density, rtol=1e-12)
        assert [law.moment(k) for k in range(6)] == [1, 1, 3, 12, 55, 273]

    @pytest.mark.parametrize(("pair", "exponent"), [((0.5, 1), -1 / 2), ((1, 1), -2 / 3)])
    def test_hard_edges(self, pair, exponent):
        law = FreeMPProduct(*pair)
        near = law.pdf(np.array([1e-12, 1e-14]))
        assert law.support()[0] == 0 and law.pdf(0.0) == np.inf
        assert np.log(near[1] / near[0]) / np.log(1e-2) == pytest.approx(exponent, abs=1e-4)

    @pytest.mark.parametrize(("delta", "gamma"), PAIRS)
    def test_zero_outside_and_at_soft_edges(self, delta, gamma):
        law = FreeMPProduct(delta, gamma)
        lower, upper = law.support()
        assert np.all(law.pdf([-1, upper, 2 * upper, np.inf]) == 0)
        assert law.pdf(lower) == (np.inf if lower == 0 else 0)

    def test_a_vanishing_ratio_leaves_marchenko_pastur(self):
        x = np.linspace(0.01, 3.5, 30)
        near = FreeMPProduct(0.5, 1e-9)
        assert np.allclose(near.pdf(x), jump_laws.marchenko_pastur_pdf(x, 0.5), atol=1e-6)
        assert np.allclose(near.cdf(x), jump_laws.marchenko_pastur_cdf(x, 0.5), atol=1e-7)


class TestDistribution:
    @pytest.mark.parametrize(("delta", "gamma"), PAIRS)
    def test_the_law_maps_itself_to_the_uniform_law(self, delta, gamma):
        law = FreeMPProduct(delta, gamma)
        x, weights = law.quadrature()
        levels, atom = law.cdf(x), law.atom
        for k in (1, 2, 3):
            moment = (1 - atom ** (k + 1)) / (k + 1)
            assert weights @ levels**k == pytest.approx(moment, rel=1e-9, abs=1e-12)

    @quick
    @given(ratios, ratios)
    def test_it_rises_from_the_atom_to_one(self, delta, gamma):
        law = FreeMPProduct(delta, gamma)
        lower, upper = law.support()
        x = np.linspace(lower, upper, 50)
        values = law.cdf(x)
        assert values[0] == pytest.approx(law.atom, abs=1e-12) and values[-1] == 1
        assert np.all(np.diff(values) > -1e-11)
        assert law.cdf(-1e-9) == 0 and law.cdf(np.inf) == 1

    def test_the_atom(self):
        assert FreeMPProduct(0.5, 1).atom == 0
        assert FreeMPProduct(4, 0.1).atom == 0.75
        assert FreeMPProduct(2, 5).cdf(0) == pytest.approx(0.8)

    def test_it_is_the_integral_of_the_density(self):
        law = FreeMPProduct(0.5, 0.25)
        mass = integrate.quad(law.pdf, law.support()[0], 1.5, epsabs=1e-12, limit=200)[0]
        assert law.cdf(1.5) == pytest.approx(mass, abs=1e-9)


class TestTransforms:
    @pytest.mark.parametrize(("delta", "gamma"), PAIRS)
    @pytest.mark.parametrize("z", [0.5 + 0.5j, -0.3, 2 - 1j, -1 + 1e-3j])
    def test_stieltjes_is_the_integral(self, delta, gamma, z):
        law = FreeMPProduct(delta, gamma)
        x, weights = law.quadrature(801)
        assert law.stieltjes(z) == pytest.approx(weights @ (1 / (z - x)) + law.atom / z, rel=1e-10)

    @pytest.mark.parametrize(("delta", "gamma"), PAIRS)
    def test_strength_inverts_the_curve(self, delta, gamma):
        law = FreeMPProduct(delta, gamma)
        _, upper = law.support()
        z = np.array([upper * 1.1, 3 * upper, 0.5 * upper + 1j * upper])
        y = law.strength(z)
        assert np.allclose((1 + y) * (1 + delta / y) * (1 + gamma / y), z, rtol=1e-12)
        assert np.allclose(y * (z * law.stieltjes(z) - 1), 1, rtol=1e-9)

    def test_just_above_the_axis_the_density_appears(self):
        law = FreeMPProduct(0.5, 0.25)
        x = np.array([0.2, 1.0, 3.0])
        assert np.allclose(-law.stieltjes(x + 1e-9j).imag / math.pi, law.pdf(x), rtol=1e-6)
        assert np.allclose(law.strength(x + 1e-9j), law.boundary(x), rtol=1e-6)

    def test_moments_from_far_away(self):
        law = FreeMPProduct(0.7, 0.3)
        z = 1e3
        series = sum(law.moment(k) / z ** (k + 1) for k in range(8))
        assert law.stieltjes(z) == pytest.approx(series, rel=1e-14)

    def test_moments_by_hand(self):
        law = FreeMPProduct(0.5, 0.25)
        assert law.moment(2) == 1.75
        assert law.moment(3) == 1 + 3 * 0.75 + 0.25 + 0.0625 + 3 * 0.125
        assert FreeMPProduct(1e3, 1e3).moment(100) == math.inf

    def test_moments_of_random_matrices(self):
        rng = np.random.default_rng(1)
        d, items, sequences = 300, 600, 1200
        table = rng.standard_normal((d, items)) @ rng.standard_normal((items, sequences))
        values = np.linalg.eigvalsh(table @ table.T / (items * sequences))
        for k in (1, 2, 3):
            assert np.mean(values**k) == pytest.approx(FreeMPProduct(0.5, 0.25).moment(k), rel=0.03)


def test_edge_points_are_critical():
    for delta, gamma in PAIRS:
        roots = product_curve.edge_points(delta, gamma)
        assert list(roots) == sorted(roots)
        sizes = delta + gamma + delta * gamma
        for y in roots:
            terms = (y**3, -sizes * y, -2 * delta * gamma)
            assert abs(sum(terms)) <= 1e-7 * max(map(abs, terms))


class TestJumpLaws:
    @pytest.mark.parametrize("ratio", [0.3, 1.0, 2.5])
    def test_marchenko_pastur_density_and_distribution(self, ratio):
        lower = (1 - ratio**0.5) ** 2
        for x in lower + np.array([0.1, 1.0, 2.0]):
            mass = integrate.quad(
                lambda u: 2 * u * jump_laws.marchenko_pastur_pdf(lower + u * u, ratio),
                0,
                (x - lower) ** 0.5,
                epsabs=1e-12,
            )[0]
            expected = mass + max(0, 1 - 1 / ratio)
            assert jump_laws.marchenko_pastur_cdf(x, ratio) == pytest.approx(expected, abs=1e-10)

    @pytest.mark.parametrize("pair", [(0.5, 0.5), (0.5, 2.0), (3.0, 0.1)])
    def test_single_token_transform_solves_its_equation(self, pair):
        z = np.array([0.3 + 0.1j, 1 + 1e-3j, 5 + 2j])
        g, rate = jump_laws.single_token_stieltjes(z, *pair), pair[0] / pair[1]
        visits = np.arange(300)
        jump = visits / rate
        mean = (jump / (1 - pair[0] * np.outer(g, jump))) @ stats.poisson.pmf(visits, rate)
        assert np.allclose(1 / g + mean, z, rtol=1e-11) and np.all(g.imag < 0)

    def test_single_token_moments(self):
        delta, gamma = 0.5, 0.5
        z = 1000j  # m = Σ M_k z^{−k} with M₂ = 1 + δ + γ
        second = (z * jump_laws.single_token_stieltjes(z, delta, gamma) - 1 - 1 / z) * z**2
        assert second.real == pytest.approx(2.0, rel=1e-4)


@pytest.mark.parametrize("bad", [0, -1, np.nan, np.inf, "a", None, True])
@pytest.mark.parametrize("name", ["delta", "gamma"])
def test_ratios_that_are_not_positive_are_refused(name, bad):
    with pytest.raises(ValueError, match=f"^{name}: expected a positive finite number"):
        FreeMPProduct(**{"delta": 0.5, "gamma": 0.25} | {name: bad})


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda law: law.pdf([1, np.nan]), "x"),
        (lambda law: law.cdf("a"), "x"),
        (lambda law: law.moment(-1), "k"),
        (lambda law: law.moment(1.5), "k"),
        (lambda law: law.stieltjes(1.0), "z"),
        (lambda law: law.stieltjes(np.nan), "z"),
        (lambda law: law.boundary(100.0), "x"),
        (lambda law: law.quadrature(2), "count"),
        (lambda law: law.quadrature(rule="simpson"), "rule"),
        (lambda law: law.curve(0), "count"),
        (lambda law: jump_laws.single_token_stieltjes(1.0, 1, 1), "z"),
        (lambda law: jump_laws.marchenko_pastur_pdf(1.0, 0), "ratio"),
        (lambda law: FreeMPProduct(2, 1).stieltjes(0.0), "z"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        call(FreeMPProduct(0.5, 0.25))


def test_scalars_give_floats_and_arrays_keep_their_shape():
    law = FreeMPProduct(0.5, 0.25)
    for found in (law.pdf(1), law.cdf(1), law.moment(3), law.stieltjes(-1), law.atom):
        assert isinstance(found, float)
    assert isinstance(law.stieltjes(1j), complex)
    assert law.pdf(np.ones((2, 3))).shape == law.cdf(np.ones((2, 3))).shape == (2, 3)
    assert law.pdf([]).shape == (0,)
