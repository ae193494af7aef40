"""Principal angles, the head diversity index, and the closed forms that depend on them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rederive import covariances, diversity, fusion_frames, head_risk
from rederive.replicates import mean_and_error, replicate


def random_heads(seed, heads, p, k):
    return np.random.default_rng(seed).standard_normal((heads, p, k))


def projectors(frames):
    frames = diversity.orthonormal_frames(frames)
    return frames @ frames.swapaxes(-1, -2)


cosine_lists = st.lists(st.floats(0, 1), min_size=1, max_size=6)
quick = settings(max_examples=60, deadline=None)


class TestPrincipalCosines:
    @quick
    @given(cosine_lists)
    def test_angles_that_were_built_in_come_back(self, cosines):
        a, b = fusion_frames.frames_at(cosines)
        found = diversity.principal_cosines(a, b)
        assert np.allclose(found, sorted(cosines, reverse=True), rtol=0, atol=1e-15 * 40)

    @quick
    @given(st.integers(0, 10**6))
    def test_the_choice_of_bases_does_not_matter(self, seed):
        (a, b), rng = random_heads(seed, 2, 7, 3), np.random.default_rng(seed + 1)
        changed = diversity.principal_cosines(
            a @ rng.standard_normal((3, 3)), b @ np.diag([1e-9, 1, 1e9])
        )
        assert np.allclose(changed, diversity.principal_cosines(a, b), atol=1e-9)

    def test_the_order_of_the_subspaces_does_not_matter(self):
        a, b = random_heads(0, 2, 6, 2)
        there, back = diversity.principal_cosines(a, b), diversity.principal_cosines(b, a)
        assert np.allclose(there, back, atol=1e-15)
        assert np.all(np.diff(there) <= 0)

    def test_squares_are_eigenvalues_of_a_product_of_projectors(self):
        heads = random_heads(1, 2, 8, 3)
        first, second = projectors(heads)
        eigenvalues = np.sort(np.linalg.eigvals(first @ second).real)[::-1][:3]
        assert np.allclose(diversity.principal_cosines(*heads) ** 2, eigenvalues, atol=1e-14)

    def test_subspaces_as_large_as_the_space_coincide(self):
        assert np.allclose(diversity.principal_cosines(*random_heads(2, 2, 4, 4)), 1, atol=1e-14)

    def test_subspaces_larger_than_half_the_space_meet(self):
        cosines = diversity.principal_cosines(*random_heads(3, 2, 5, 4))
        assert np.allclose(cosines[:3], 1, atol=1e-14)

    def test_cosines_never_exceed_one(self):
        a = random_heads(4, 1, 5, 2)[0]
        assert diversity.principal_cosines(a, a @ [[1, 2], [3, 5]]).max() <= 1

    @pytest.mark.parametrize("angle", [1e-2, 1e-4, 1e-6])
    def test_small_angles_are_seen_to_half_the_digits(self, angle):
        a, b = np.array([[1.0], [0.0]]), np.array([[np.cos(angle)], [np.sin(angle)]])
        cosine = diversity.principal_cosines(a, b)[0]
        assert abs(cosine - np.cos(angle)) <= 4e-16

    @pytest.mark.parametrize(
        ("a", "b", "word"),
        [
            (np.eye(3)[:, :2], np.eye(3)[:, :1], "b"),
            (np.eye(3)[:, :2], np.eye(4)[:, :2], "b"),
            (np.ones((3, 2)), np.eye(3)[:, :2], "a"),
            (np.eye(2, 3), np.eye(2, 3), "a"),
            (np.full((3, 1), np.nan), np.ones((3, 1)), "a"),
            (np.zeros((3, 1)), np.ones((3, 1)), "a"),
            (np.ones(3), np.ones(3), "a"),
        ],
    )
    def test_what_is_no_pair_of_subspaces_is_refused(self, a, b, word):
        with pytest.raises(ValueError, match=f"^{word}"):
            diversity.principal_cosines(a, b)


class TestIndex:
    @quick
    @given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 4))
    def test_one_minus_the_mean_squared_cosine(self, seed, heads, k):
        frames = random_heads(seed, heads, 6, k)
        pairs = [(a, b) for i, a in enumerate(frames) for b in frames[:i]]
        squares = [diversity.principal_cosines(a, b) ** 2 for a, b in pairs]
        assert diversity.head_diversity_index(frames) == pytest.approx(
            1 - np.mean(squares), abs=1e-13
        )

    @quick
    @given(st.integers(0, 10**6), st.integers(2, 5))
    def test_the_trace_of_the_squared_mean_projector(self, seed, heads):
        frames = random_heads(seed, heads, 7, 2)
        mean = projectors(frames).mean(axis=0)
        index = diversity.head_diversity_index(frames)
        assert np.trace(mean @ mean) == pytest.approx(
            2 / heads * (1 + (heads - 1) * (1 - index)), abs=1e-13
        )

    def test_zero_for_copies_and_one_for_orthogonal_heads(self):
        copy = random_heads(5, 1, 8, 2)[0]
        rng = np.random.default_rng(6)
        copies = [copy @ rng.standard_normal((2, 2)) for _ in range(4)]
        assert diversity.head_diversity_index(copies) <= 1e-13
        blocks = np.eye(8).reshape(8, 4, 2).transpose(1, 0, 2)
        assert diversity.head_diversity_index(blocks) == 1.0
        assert diversity.head_diversity_index(np.stack([np.eye(3), np.eye(3)])) == 0.0

    @pytest.mark.parametrize("kappa", [0.5, 1.0, 2.0, 4.0])
    def test_as_stated_for_projections_of_equal_scale(self, kappa):
        frames = diversity.orthonormal_frames(random_heads(7, 4, 9, 4))
        stated = diversity.head_diversity_index_as_stated(np.sqrt(kappa) * frames)
        index = diversity.head_diversity_index(frames)
        assert stated == pytest.approx(1 - kappa**2 / 4 * (1 - index), abs=1e-14)

    def test_as_stated_gives_copies_anything_below_one(self):
        copies = np.stack([np.eye(6, 4)] * 3)
        assert diversity.head_diversity_index_as_stated(copies) == 1 - 1 / 4
        assert diversity.head_diversity_index_as_stated(np.sqrt(2) * copies) == pytest.approx(0)
        assert diversity.head_diversity_index_as_stated(2 * copies) == 1 - 4

    @pytest.mark.parametrize(
        "index", [diversity.head_diversity_index, diversity.head_diversity_index_as_stated]
    )
    @pytest.mark.parametrize("heads", [np.ones((1, 3, 2)), np.ones((3, 2)), [[[np.inf]], [[1]]]])
    def test_one_head_or_bad_numbers_are_refused(self, index, heads):
        with pytest.raises(ValueError, match=r"^projections"):
            index(heads)

    def test_dependent_columns_are_refused(self):
        with pytest.raises(ValueError, match="rank"):
            diversity.head_diversity_index(np.ones((2, 3, 2)))


class TestHeadCovariance:
    @quick
    @given(st.integers(0, 10**6), st.integers(1, 5), st.floats(0, 0.69))
    def test_product_is_the_determinant(self, seed, k, beta):
        heads = random_heads(seed, 2, 9, k)
        first, second = projectors(heads)
        inner = np.eye(9) - beta**2 * (first @ second + second @ first)
        found = diversity.head_covariance(diversity.principal_cosines(*heads), beta)
        assert found == pytest.approx(np.linalg.det(inner) ** -0.5, rel=1e-9)

    def test_orthogonal_heads_and_copies(self):
        assert diversity.head_covariance(np.zeros(5), 1e200) == 1.0
        assert diversity.head_covariance([1.0, 1.0], 0.5) == pytest.approx(2.0, rel=1e-15)
        assert diversity.head_covariance(np.ones(4), 0.5) == pytest.approx(4.0, rel=1e-15)
        assert diversity.head_covariance([0.3], 0.0) == 1.0

    def test_vectors_of_angles_are_taken_one_by_one(self):
        cosines = np.random.default_rng(8).random((3, 2, 4))
        found = diversity.head_covariance(cosines, 0.6)
        assert found.shape == (3, 2)
        assert found[1, 0] == diversity.head_covariance(cosines[1, 0], 0.6)

    @given(st.floats(1e-3, 1e3), st.floats(0, 1))
    def test_finite_exactly_inside_the_domain(self, beta, cosine):
        c = Fraction(cosine)
        inside = Fraction(beta) ** 2 * c * (1 + c) < 1
        assert math.isfinite(diversity.head_covariance([cosine, 0.0], beta)) == inside

    @pytest.mark.parametrize("cosine", [0.1, 0.5, 0.75, 1.0])
    def test_the_edge_is_decided_exactly(self, cosine):
        c = Fraction(cosine)
        beta = 1 / math.sqrt(cosine * (1 + cosine))
        for candidate in (np.nextafter(beta, 0), beta, np.nextafter(beta, 9)):
            gap = 1 - Fraction(candidate) ** 2 * c * (1 + c)
            found = diversity.head_covariance([cosine], float(candidate))
            if gap <= 0:
                assert found == np.inf
            else:
                far = 1 + candidate**2 * cosine * (1 - cosine)
                assert found == pytest.approx((float(gap) * far) ** -0.5, rel=1e-14)

    def test_one_dimension_diverges_at_the_golden_ratio(self):
        golden = (math.sqrt(5) - 1) / 2
        assert diversity.head_covariance([golden + 1e-15], 1.0) == np.inf
        assert math.isfinite(diversity.head_covariance([golden - 1e-15], 1.0))

    @quick
    @given(cosine_lists, st.floats(0, 0.7), st.integers(0, 5), st.floats(0, 1))
    def test_grows_with_every_cosine(self, cosines, beta, index, share):
        raised = list(cosines)
        place = index % len(cosines)
        raised[place] += share * (1 - raised[place])
        raised[place] = min(raised[place], 1.0)
        before = diversity.head_covariance(cosines, beta)
        assert diversity.head_covariance(raised, beta) >= before * (1 - 1e-13)

    def test_softmax_weights_at_a_wide_head(self):
        k, n = 32, 1500
        cosines = np.full(k, 0.8)
        a, b = fusion_frames.frames_at(cosines)

        def shared(rng):
            keys, queries = rng.standard_normal((n, 2 * k)), rng.standard_normal((64, 2 * k))
            w = [np.exp(queries @ u @ (keys @ u).T / k**0.5) for u in (a, b)]
            w = [x / x.sum(axis=1, keepdims=True) for x in w]
            return n * (w[0] * w[1]).sum(axis=1).mean()

        mean, error, _ = mean_and_error(replicate(shared, 40, 3))
        low, high = covariances.query_averaged_bounds(cosines, k**-0.5, n)
        assert low - 6 * error < mean < high + 6 * error

    @pytest.mark.parametrize("cosines", [[1.1], [-0.1], [np.nan], [], 0.5])
    def test_what_is_no_cosine_is_refused(self, cosines):
        with pytest.raises(ValueError, match=r"^cosines"):
            diversity.head_covariance(cosines, 0.5)

    @pytest.mark.parametrize("beta", [-1.0, np.nan, np.inf, "1"])
    def test_what_is_no_temperature_is_refused(self, beta):
        with pytest.raises(ValueError, match=r"^inverse_temperature"):
            diversity.head_covariance([0.5], beta)


class TestKernelHeads:
    @quick
    @given(cosine_lists, st.floats(0.05, 20))
    def test_finite_at_every_bandwidth_and_equal_to_the_formula(self, cosines, bandwidth):
        t, eta = np.square(cosines), 1 / (1 + bandwidth**2)
        factors = (1 - eta**2 * t) ** 2 - eta**2 * (1 - eta) ** 2 * t
        found = covariances.kernel_head_covariance(cosines, bandwidth)
        assert found == pytest.approx(np.prod(factors) ** -0.5, rel=1e-8)

    def test_bandwidth_one_is_softmax_at_a_quarter(self):
        cosines = np.linspace(0, 1, 7)
        softmax = diversity.head_covariance(cosines, 0.5)
        assert covariances.kernel_head_covariance(cosines, 1.0) == pytest.approx(softmax, rel=1e-14)

    def test_copies_at_a_tiny_bandwidth(self):
        # with c = 1 the factor is (1 − η)²(1 + 2η)
        eta, rest = 1 / (1 + 1e-12), 1e-12 / (1 + 1e-12)
        expected = 1 / (rest * math.sqrt(1 + 2 * eta))
        assert covariances.kernel_head_covariance([1.0], 1e-6) == pytest.approx(expected, rel=1e-12)

    def test_mehler_integral_on_one_plane(self):
        h2, c = 0.7, 0.6
        eta, nodes = 1 / (1 + h2), np.polynomial.hermite_e.hermegauss(60)
        points, masses = nodes[0], nodes[1] / np.sqrt(2 * np.pi)
        u, v = np.meshgrid(points, points, indexing="ij")
        both = np.outer(masses, masses)
        second = c * u + math.sqrt(1 - c * c) * v

        def ratio(x, query):  # density of N(ηq, 1 − η) over that of N(0, 1)
            exponent = x**2 / 2 - (x - eta * query) ** 2 / (2 * (1 - eta))
            return np.exp(exponent) / math.sqrt(1 - eta)

        total = 0.0
        for q, z, weight in zip(u.ravel(), second.ravel(), both.ravel(), strict=True):
            if weight > 1e-14:
                total += weight * (both * ratio(u, q) * ratio(second, z)).sum()
        assert total == pytest.approx(
            covariances.kernel_head_covariance([c], math.sqrt(h2)), rel=1e-6
        )

    @pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.nan])
    def test_a_bandwidth_must_be_positive(self, bandwidth):
        with pytest.raises(ValueError, match=r"^bandwidth"):
            covariances.kernel_head_covariance([0.5], bandwidth)


class TestBounds:
    @quick
    @given(cosine_lists, st.floats(0, 0.7))
    def test_pairs_lie_in_the_envelope(self, cosines, beta):
        index = 1 - np.mean(np.square(cosines))
        low, high = covariances.covariance_envelope(index, len(cosines), beta)
        found = diversity.head_covariance(cosines, beta)
        assert low * (1 - 1e-12) <= found <= high * (1 + 1e-12)

    def test_the_envelope_is_attained(self):
        low, high = covariances.covariance_envelope(0.5, 4, 0.5)
        assert diversity.head_covariance([0.5**0.5] * 4, 0.5) == pytest.approx(low, rel=1e-14)
        assert diversity.head_covariance([1, 1, 0, 0], 0.5) == pytest.approx(high, rel=1e-14)
        chord = covariances.covariance_envelope(0.5, 4, 0.5, average=True)
        assert chord == (low, 2.5)

    def test_the_envelope_needs_a_finite_variance(self):
        with pytest.raises(ValueError, match=r"^inverse_temperature"):
            covariances.covariance_envelope(0.5, 2, 2**-0.5)

    @pytest.mark.parametrize(("first", "second"), [(0.8, 0.8), (0.8, -0.8), (0.5, 0.0)])
    @pytest.mark.parametrize("n", [2, 5, 40])
    def test_bounds_at_one_query_hold_for_few_keys(self, first, second, n):
        low, high = covariances.fixed_query_bounds([first], [second], n)

        def shared(rng):
            x = rng.standard_normal((4000, n))
            w, v = np.exp(first * x), np.exp(second * x)
            return n * ((w * v).sum(1) / w.sum(1) / v.sum(1)).mean()

        mean, error, _ = mean_and_error(replicate(shared, 30, 11))
        assert low - 6 * error < mean < high + 6 * error

    @pytest.mark.parametrize("length", [5.0, 30.0, 40.0])
    def test_bounds_at_one_query_are_numbers_for_long_tilts(self, length):
        low, high = covariances.fixed_query_bounds([length], [length], 100)
        assert 0 <= low <= 100 <= high  # w·w' ≤ 1, so the truth is at most n
        low, high = covariances.fixed_query_bounds([length], [-length], 100)
        assert 0 <= low <= high

    def test_bounds_at_one_query_close_like_one_over_n(self):
        u, v = [0.5, 0.2], [0.1, -0.6]
        widths = [np.diff(covariances.fixed_query_bounds(u, v, n))[0] for n in (10**4, 10**5)]
        assert widths[0] / widths[1] == pytest.approx(10, rel=0.01)
        low, high = covariances.fixed_query_bounds(u, v, 10**9)
        assert low < math.exp(0.05 - 0.12) < high
        assert high - low < 1e-7

    @quick
    @given(cosine_lists, st.floats(0, 0.4))
    def test_averaged_bounds_enclose_the_limit_for_many_keys(self, cosines, beta):
        limit = diversity.head_covariance(cosines, beta)
        low, high = covariances.query_averaged_bounds(cosines, beta, 10**9)
        assert low <= limit * (1 + 1e-12)
        assert high >= limit * (1 - 1e-12)

    def test_averaged_bounds_are_the_mean_of_those_at_one_query(self):
        k, n, beta = 8, 4000, 0.25
        cosines = np.full(k, 0.7)
        a, b = fusion_frames.frames_at(cosines)
        queries = np.random.default_rng(12).standard_normal((4000, 2 * k))
        bounds = np.array(
            [
                covariances.fixed_query_bounds(beta * a @ (a.T @ x), beta * b @ (b.T @ x), n)
                for x in queries
            ]
        )
        low, high = covariances.query_averaged_bounds(cosines, beta, n)
        mean, error, _ = mean_and_error(bounds)
        assert low <= mean[0] + 6 * error[0]  # 1 − x − y lies below 1/((1 + x)(1 + y))
        assert abs(high - mean[1]) < 6 * error[1]

    @pytest.mark.parametrize(("n", "beta"), [(5, 0.2), (2, 0.25)])
    def test_the_lower_averaged_bound_is_a_mean_over_queries(self, n, beta):
        a, b = fusion_frames.frames_at(np.array([0.2, 0.7, 0.9]))
        queries = np.random.default_rng(13).standard_normal((100_000, 6))
        u, v = beta * queries @ a @ a.T, beta * queries @ b @ b.T
        r, s, t = (np.exp((p * q).sum(axis=1)) for p, q in ((u, v), (u, u), (v, v)))
        mean, error, _ = mean_and_error(r * (1 - (s * r - 1) / n - (t * r - 1) / n))
        low, _ = covariances.query_averaged_bounds([0.2, 0.7, 0.9], beta, n)
        assert abs(low - mean) < 6 * error

    def test_averaged_bounds_say_when_they_have_nothing_to_say(self):
        assert covariances.query_averaged_bounds([1.0], 1.0, 100) == (0.0, np.inf)

    @pytest.mark.parametrize(
        ("call", "word"),
        [
            (lambda: covariances.fixed_query_bounds([1.0], [1.0, 2.0], 5), "v"),
            (lambda: covariances.fixed_query_bounds([np.nan], [1.0], 5), "u"),
            (lambda: covariances.fixed_query_bounds([1.0], [1.0], 1), "n_keys"),
            (lambda: covariances.query_averaged_bounds([[0.5]], 0.3, 5), "cosines"),
            (lambda: covariances.query_averaged_bounds([0.5], 0.3, 1), "n_keys"),
            (lambda: covariances.covariance_envelope(1.5, 4, 0.3), "diversity"),
            (lambda: covariances.covariance_envelope(0.5, 0, 0.3), "head_dim"),
        ],
    )
    def test_bad_arguments_are_named(self, call, word):
        with pytest.raises(ValueError, match=f"^{word}"):
            call()


class TestWelch:
    @pytest.mark.parametrize(
        ("case", "value"),
        [((4, 4, 8), 2 / 3), ((2, 2, 3), 2 / 3), ((4, 4, 4), 0), ((4, 4, 16), 1), ((4, 4, 99), 1)],
    )
    def test_values(self, case, value):
        assert diversity.welch_diversity(*case) == pytest.approx(value, abs=1e-15)

    @quick
    @given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 4), st.integers(0, 5))
    def test_no_heads_exceed_it(self, seed, heads, k, extra):
        frames = random_heads(seed, heads, k + extra, k)
        index = diversity.head_diversity_index(frames)
        assert index <= diversity.welch_diversity(heads, k, k + extra) + 1e-12

    @pytest.mark.parametrize(
        ("case", "word"),
        [
            ((1, 2, 4), "n_heads"),
            ((3, 0, 4), "head_dim"),
            ((3, 4, 3), "target_rank"),
            ((3, 2, 4.0), "target_rank"),
            ((True, 2, 4), "n_heads"),
        ],
    )
    def test_targets_smaller_than_a_head_are_refused(self, case, word):
        with pytest.raises(ValueError, match=f"^{word}"):
            diversity.welch_diversity(*case)


class TestFusionFrames:
    @pytest.mark.parametrize("heads", [1, 2, 3, 4, 5, 6, 7])
    @pytest.mark.parametrize("k", [1, 3])
    def test_the_mean_projector_is_a_multiple_of_the_identity(self, heads, k):
        for blocks in range(1, heads + 1):
            frames = fusion_frames.tight_fusion_frame(heads, k, blocks * k)
            assert np.allclose(frames.swapaxes(1, 2) @ frames, np.eye(k), atol=1e-14)
            mean = projectors(frames).mean(axis=0)
            assert np.allclose(mean, np.eye(blocks * k) / blocks, atol=1e-14)

    @pytest.mark.parametrize("case", [(4, 2, 3), (2, 2, 6), (3, 2, 0)])
    def test_other_ranks_are_refused(self, case):
        with pytest.raises(ValueError, match=r"^target_rank"):
            fusion_frames.tight_fusion_frame(*case)

    @pytest.mark.parametrize("heads", [2, 3, 5])
    @pytest.mark.parametrize("tilt", [0.0, 0.3, 1.0])
    def test_tilted_heads_have_equal_angles_and_no_bias(self, heads, tilt):
        frames = fusion_frames.tilted_heads(heads, 2, tilt)
        assert np.allclose(frames.swapaxes(1, 2) @ frames, np.eye(2), atol=1e-14)
        signed = np.cos(tilt) ** 2 - np.sin(tilt) ** 2 / (heads - 1)
        assert np.allclose(frames[0].T @ frames[1], signed * np.eye(2), atol=1e-14)
        plane = np.eye(2 * heads)[:, :2]
        gain = 1 / np.cos(tilt) ** 2
        assert head_risk.limiting_bias2(frames, gain, plane) == pytest.approx(0, abs=1e-28)

    def test_frames_at_refuses_what_is_no_list_of_cosines(self):
        with pytest.raises(ValueError, match=r"^cosines"):
            fusion_frames.frames_at([[0.5]])


class TestHeadRisk:
    @quick
    @given(st.integers(0, 10**6), st.floats(0.1, 5))
    def test_isotropic_bias_is_a_line_in_the_index(self, seed, gain):
        frames = random_heads(seed, 4, 10, 3)
        index = diversity.head_diversity_index(frames)
        line = 1 - 2 * gain * 3 / 10 + gain**2 * 3 / 40 * (1 + 3 * (1 - index))
        assert head_risk.limiting_bias2(frames, gain) == pytest.approx(line, abs=1e-12)

    @quick
    @given(st.integers(0, 10**6), st.integers(3, 9), st.floats(0.1, 1))
    def test_no_heads_beat_a_tight_frame_at_small_gain(self, seed, rank, share):
        gain = share * rank / 3
        frames, target = random_heads(seed, 3, 10, 3), np.eye(10)[:, :rank]
        bias2 = head_risk.limiting_bias2(frames, gain, target)
        assert bias2 >= (1 - gain * 3 / rank) ** 2 - 1e-12

    def test_a_tight_frame_attains_its_bound(self):
        target = np.linalg.qr(np.random.default_rng(13).standard_normal((9, 6)))[0]
        frames = target @ fusion_frames.tight_fusion_frame(4, 3, 6)
        for gain in (0.5, 1.0, 2.0):
            found = head_risk.limiting_bias2(frames, gain, target @ np.diag(range(1, 7)))
            assert found == pytest.approx((1 - gain / 2) ** 2, abs=1e-14)

    def test_variance_of_copies_in_closed_form(self):
        # copies inside S with k = r: V·(σ² + 1 + β²/(1 − 2β²)) a²/β²
        frames = np.stack([np.eye(6, 4)] * 3)
        found = head_risk.leading_variance(frames, 0.5, 1.0, 0.25, np.eye(6, 4))
        assert found == pytest.approx(4 * (1.25 + 0.25 / 0.5) / 0.25, rel=1e-13)

    def test_variance_against_an_average_over_queries(self):
        beta, gain, noise = 0.3, 1.7, 0.4
        frames = diversity.orthonormal_frames(random_heads(14, 3, 6, 2))
        target, all_projectors = np.eye(6, 4), projectors(frames)

        def at_queries(rng):
            x = rng.standard_normal((2000, 6))
            tilts = beta * np.einsum("hij,mj->hmi", all_projectors, x)
            dots = np.einsum("hmi,gmi->hgm", tilts, tilts)
            seen = np.einsum("hmi,gmi->hgm", tilts @ target, tilts @ target) / 4
            return (gain / beta / 3) ** 2 * (np.exp(dots) * (noise + 1 + seen)).sum((0, 1)).mean()

        mean, error, _ = mean_and_error(replicate(at_queries, 60, 15))
        found = head_risk.leading_variance(frames, beta, gain, noise, target)
        assert abs(found - mean) < 6 * error
        assert error < 0.01 * mean

    def test_gradients_against_central_differences(self):
        frames, rng = random_heads(16, 3, 7, 2), np.random.default_rng(17)
        own, space, _ = head_risk._checked(frames, rng.standard_normal((7, 4)), 1.0)
        direction = rng.standard_normal(own.shape)
        direction += direction.swapaxes(1, 2)
        for risk in (
            lambda p: head_risk._bias(p, space, 1.3),
            lambda p: head_risk._variance(p, space, 0.2, 0.25),
        ):
            step = 1e-5
            ahead, behind = risk(own + step * direction)[0], risk(own - step * direction)[0]
            slope = np.vdot(risk(own)[1], direction)
            assert (ahead - behind) / (2 * step) == pytest.approx(slope, rel=1e-7)

    @pytest.mark.parametrize("case", [(4, 4, 8), (4, 4, 6), (4, 3, 5)])
    def test_descents_reach_tight_fusion_frames(self, case):
        heads, k, r = case
        for seed in range(3):
            end = head_risk.least_risk(random_heads(seed, heads, r, k), 0.2)
            index = diversity.head_diversity_index(end.frames)
            assert index == pytest.approx(diversity.welch_diversity(*case), abs=1e-9)
            assert end.gain == 0.2

    def test_two_planes_in_space_stop_at_a_shared_line(self):
        end = head_risk.least_risk(random_heads(18, 2, 3, 2), 0.2)
        assert diversity.head_diversity_index(end.frames) == pytest.approx(0.5, abs=1e-9)

    def test_the_best_gain_is_found(self):
        target = np.eye(8)[:, :4]
        end = head_risk.least_risk(
            random_heads(19, 2, 8, 4),
            None,
            target,
            n_keys=500,
            inverse_temperature=0.5,
            noise_variance=0.25,
        )

        def risk(gain):
            variance = head_risk.leading_variance(end.frames, 0.5, gain, 0.25, target)
            return head_risk.limiting_bias2(end.frames, gain, target) + variance / 500

        assert end.risk == pytest.approx(risk(end.gain), rel=1e-12)
        assert end.risk < min(risk(0.99 * end.gain), risk(1.01 * end.gain))

    @pytest.mark.parametrize(
        ("call", "word"),
        [
            (lambda w: head_risk.limiting_bias2(w, np.nan), "gain"),
            (lambda w: head_risk.limiting_bias2(w[0], 1.0), "projections"),
            (lambda w: head_risk.limiting_bias2(w, 1.0, np.eye(4, 2)), "target"),
            (lambda w: head_risk.leading_variance(w, 0.71, 1.0, 0.2), "inverse_temperature"),
            (lambda w: head_risk.leading_variance(w, 0.5, 1.0, -0.2), "noise_variance"),
            (lambda w: head_risk.least_risk(w, n_keys=10), "inverse_temperature"),
            (lambda w: head_risk.least_risk(w, n_keys=0), "n_keys"),
            (lambda w: head_risk.least_risk(np.ones((2, 5, 2)), 1.0), "start"),
        ],
    )
    def test_bad_arguments_are_named(self, call, word):
        with pytest.raises(ValueError, match=f"^{word}"):
            call(np.stack([np.eye(5, 2), np.eye(5)[:, 2:4]]))


def test_heads_that_see_nothing_of_the_target_have_a_risk():
    start, target = np.eye(8)[:, :4].reshape(8, 2, 2).transpose(1, 0, 2), np.eye(8)[:, 6:]
    end = head_risk.least_risk(start, None, target)
    assert np.isfinite([end.risk, end.gain]).all()
