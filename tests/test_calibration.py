"""Every kind of check errs as often as its level says, and catches the lies it promises to catch.

Each stochastic kind is tried on simulated data of which its statement is true. The functions that
decide are those of `rederive_book.statistics` which the checks call; here they get 10⁵ data sets
at once. `test_public_checks_decide_as_the_batched_functions` holds the two together.

A rate counts as right if the two-sided binomial interval of level 10⁻⁶ around the nominal rate
holds it: [0.0085, 0.0116] for 10⁻² over 10⁵ draws. One-sided errors are half of the level.
"""

import functools
import math

import numpy as np
import pytest
from scipy import special, stats

from rederive_book import checks, statistics
from rederive_book.checks import Control
from rederive_book.rounding import gamma
from rederive_book.skewness import replicates_needed, skewness, skewness_limit
from rederive_book.statistics import (
    LEVEL,
    STANDARD_ERRORS,
    decide_counts,
    decide_distribution,
    decide_mean,
    decide_order,
    kolmogorov_distance,
    log_slopes,
    required_distance,
    summarise,
)

RATE_LEVEL = 1e-2
DRAWS = 100_000
LIES = 10_000
CLAIM = "regression.calibration"


def rng(*address):
    return np.random.default_rng(np.random.SeedSequence(20260, spawn_key=address))


def binomial_interval(probability, draws):
    law = stats.binom(draws, probability)
    return law.ppf(LEVEL / 2) / draws, law.isf(LEVEL / 2) / draws


def assert_rate(wrong, probability=RATE_LEVEL):
    lower, upper = binomial_interval(probability, len(wrong))
    assert lower <= np.mean(wrong) <= upper, (np.mean(wrong), lower, upper)


def assert_caught(caught):
    assert len(caught) == LIES
    assert np.mean(caught) >= 0.999, np.mean(caught)


def in_chunks(draw, draws=DRAWS, chunks=10):
    """Concatenate what `draw(count, chunk)` gives, so that memory stays small."""
    return np.concatenate([draw(draws // chunks, chunk) for chunk in range(chunks)])


def accept_shape(replicates, level):
    """The guard against skewness lets every one of these data sets pass."""
    limit = skewness_limit(replicates.shape[-2], replicates.shape[-1], level)
    assert (np.abs(skewness(replicates)) <= limit).all()


def normal(generator, count, replicates, entries):
    return generator.standard_normal((count, replicates, entries))


def skewed(generator, count, replicates, entries, shape=25.0):
    """Gamma replicates, mean 0, variance 1, skewness 2/√shape = 0.4."""
    drawn = generator.standard_gamma(shape, (count, replicates, entries))
    return (drawn - shape) / math.sqrt(shape)


# ---------------------------------------------------------------- estimate

TRUE_ESTIMATES = {
    "normal, few replicates": (normal, 8, 1),
    "normal": (normal, 40, 1),
    "normal, vector": (normal, 25, 4),
    "skewed, many replicates": (skewed, 200, 1),
}


@pytest.mark.parametrize("case", TRUE_ESTIMATES)
def test_estimate_rejects_a_true_prediction_at_its_level(case):
    draw, replicates, entries = TRUE_ESTIMATES[case]
    address = list(TRUE_ESTIMATES).index(case)

    def wrongly_rejected(count, chunk):
        data = draw(rng(1, address, chunk), count, replicates, entries)
        accept_shape(data, RATE_LEVEL)
        return decide_mean(*summarise(data), 0.0, 0.0, None, RATE_LEVEL) < 0

    nominal = 1 - (1 - RATE_LEVEL / entries) ** entries
    assert_rate(in_chunks(wrongly_rejected, chunks=50), nominal)


def test_estimate_with_given_standard_error_keeps_its_level():
    generator = rng(2)
    dof = 5.5
    mean = generator.standard_normal((DRAWS, 1))
    error = np.sqrt(generator.chisquare(dof, (DRAWS, 1)) / dof)
    assert_rate(decide_mean(mean, error, dof, 0.0, 0.0, None, RATE_LEVEL) < 0)
    assert_rate(decide_mean(mean, np.ones_like(mean), math.inf, 0.0, 0.0, None, RATE_LEVEL) < 0)


def test_estimate_at_the_edge_of_its_bias_bound_errs_at_half_the_level():
    mean, error, dof = summarise(normal(rng(3), DRAWS, 12, 1) + 3.0)
    rejected = decide_mean(mean, error, dof, 0.0, 3.0, None, RATE_LEVEL) < 0
    assert_rate(rejected, RATE_LEVEL / 2)


def test_margin_form_decides_wrongly_at_the_edge_at_half_the_level_each_way():
    mean, error, dof = summarise(normal(rng(4), DRAWS, 20, 1) + 5.0)
    verdict = decide_mean(mean, error, dof, 0.0, 0.0, 5.0, RATE_LEVEL)
    assert_rate(verdict > 0, RATE_LEVEL / 2)
    assert_rate(verdict < 0, RATE_LEVEL / 2)


@pytest.mark.parametrize("replicates", [40, 60])
@pytest.mark.parametrize("margin", [None, 2.0])
def test_estimate_catches_a_lie_of_ten_standard_errors(replicates, margin):
    data = normal(rng(5, replicates), LIES, replicates, 1)
    lie = STANDARD_ERRORS / math.sqrt(replicates) + (margin or 0.0)
    assert_caught(decide_mean(*summarise(data), lie, 0.0, margin, LEVEL) < 0)


def test_estimate_catches_a_lie_about_skewed_replicates():
    replicates = replicates_needed(0.4, 1, LEVEL)
    for sign in (1, -1):
        data = skewed(rng(6, 1 + sign), LIES, replicates, 1)
        lie = sign * STANDARD_ERRORS / math.sqrt(replicates)
        assert_caught(decide_mean(*summarise(data), lie, 0.0, None, LEVEL) < 0)


def test_estimate_catches_a_lie_about_one_entry_of_a_vector():
    data = normal(rng(7), LIES, 50, 6)
    lie = np.array([0.0, 0, 0, 0, 0, STANDARD_ERRORS / math.sqrt(50)])
    assert_caught(decide_mean(*summarise(data), lie, 0.0, None, LEVEL) < 0)


@pytest.mark.parametrize(("replicates", "entries"), [(3, 1), (8, 1), (8, 5), (15, 1), (25, 1)])
def test_few_replicates_catch_a_lie_at_the_distance_required_of_them(replicates, entries):
    distance = required_distance(replicates - 1, entries, LEVEL)
    assert distance > STANDARD_ERRORS
    data = normal(rng(8, replicates, entries), LIES, replicates, entries)
    lie = np.zeros(entries)
    lie[0] = distance / math.sqrt(replicates)
    caught = decide_mean(*summarise(data), lie, 0.0, None, LEVEL) < 0
    assert np.mean(caught) >= binomial_interval(statistics.POWER, LIES)[0]


# ---------------------------------------------------------------- order


def paired(address, count, replicates, shift):
    generator = rng(9, address)
    common = 3.0 * generator.standard_normal((count, replicates, 1))
    noise = generator.standard_normal((2, count, replicates, 1))
    return common + noise[0], common + noise[1] + shift


@pytest.mark.parametrize("replicates", [8, 40])
def test_order_of_equals_is_shown_either_way_at_half_the_level(replicates):
    smaller, larger = paired(replicates, DRAWS, replicates, 0.0)
    verdict = decide_order(*summarise(larger - smaller), RATE_LEVEL)
    assert_rate(verdict > 0, RATE_LEVEL / 2)
    assert_rate(verdict < 0, RATE_LEVEL / 2)


def test_order_of_equals_with_skewed_differences_keeps_its_level():
    def wrongly_shown(count, chunk):
        return decide_order(*summarise(skewed(rng(10, chunk), count, 250, 1)), RATE_LEVEL) != 0

    assert_rate(in_chunks(wrongly_shown, chunks=50))


def test_order_catches_a_lie_of_ten_standard_errors():
    shift = -STANDARD_ERRORS * math.sqrt(2 / 40)
    smaller, larger = paired(1, LIES, 40, shift)
    assert_caught(decide_order(*summarise(larger - smaller), LEVEL) < 0)


# ---------------------------------------------------------------- distribution


@pytest.mark.parametrize("size", [5, 60])
@pytest.mark.parametrize("law", [stats.norm(), stats.gamma(0.5)], ids=["normal", "skewed"])
def test_distribution_rejects_the_true_law_at_its_level(size, law):
    def wrongly_rejected(count, chunk):
        generator = rng(11, size, len(law.args), chunk)
        draws = np.sort(law.rvs((count, size), random_state=generator), axis=-1)
        distance = kolmogorov_distance(law.cdf(draws))
        return decide_distribution(distance, size, 0.0, RATE_LEVEL) < 0

    assert_rate(in_chunks(wrongly_rejected))


@pytest.mark.parametrize("place", [0.5, 0.2, 0.02])
def test_distribution_catches_a_lie_of_ten_standard_errors(place):
    """A law that moves mass past one quantile: the gap is largest there, 10/(2√n)."""
    size = 1000
    gap = STANDARD_ERRORS / (2 * math.sqrt(size))
    sample = np.sort(rng(12, int(100 * place)).uniform(size=(LIES, size)), axis=-1)
    lie = np.interp(sample, [0.0, place, 1.0], [0.0, place + gap, 1.0])
    assert_caught(decide_distribution(kolmogorov_distance(lie), size, 0.0, LEVEL) < 0)


def rigid_spectra(generator, count, replicates):
    """Points j + ½ + J with J uniform on [−2, 2]: counts fluctuate by O(1), wherever."""
    places = np.arange(12) + 0.5
    return places + generator.uniform(-2, 2, (count, replicates, 12))


def rigid_law(x):
    places = np.arange(12) + 0.5
    return np.clip((np.asarray(x)[..., None] - places + 2) / 4, 0, 1).mean(axis=-1)


@pytest.mark.parametrize("grid", [[6.3], [2.6, 6.3, 9.1]], ids=["one point", "three points"])
def test_rigid_distribution_rejects_the_true_law_at_its_level(grid):
    grid = np.array(grid)

    def wrongly_rejected(count, chunk):
        spectra = rigid_spectra(rng(13, len(grid), chunk), count, 40)
        counts = statistics.counting_functions(spectra, grid)
        accept_shape(counts, RATE_LEVEL)
        return decide_counts(counts, 12 * rigid_law(grid), 0.0, RATE_LEVEL)[0] < 0

    nominal = 1 - (1 - RATE_LEVEL / len(grid)) ** len(grid)
    assert_rate(in_chunks(wrongly_rejected), nominal)


def test_counts_that_hardly_move_are_not_rejected_more_often_than_the_level_says():
    """Two-valued counts, often all equal: the variance floor keeps the test from being certain."""
    for probability in (0.25, 0.5, 0.75):
        counts = 7.0 + (rng(14, int(4 * probability)).uniform(size=(DRAWS, 8, 1)) < probability)
        verdict = decide_counts(counts, np.array([7.0 + probability]), 0.0, RATE_LEVEL)[0]
        assert np.mean(verdict < 0) <= binomial_interval(RATE_LEVEL, DRAWS)[1]


def test_rigid_distribution_catches_a_lie_of_ten_standard_errors():
    grid = np.array([6.3])
    spectra = rigid_spectra(rng(15), LIES, 40)
    counts = statistics.counting_functions(spectra, grid)
    shares = np.clip((6.3 - np.arange(12) - 0.5 + 2) / 4, 0, 1)
    error = math.sqrt(np.sum(shares * (1 - shares)) / 40)
    lie = 12 * rigid_law(grid) + STANDARD_ERRORS * error
    assert_caught(decide_counts(counts, lie, 0.0, LEVEL)[0] < 0)


# ---------------------------------------------------------------- rate

SIZES = np.array([10.0, 20.0, 40.0, 80.0, 160.0])


def noisy_curves(address, count, replicates):
    """Power laws x^{−1/2} with log-normal noise: the slopes are normal around −½."""
    noise = 0.2 * rng(16, address).standard_normal((count, replicates, len(SIZES)))
    return SIZES**-0.5 * np.exp(noise)


def skewed_curves(address, count, replicates):
    """The same with means of 30 exponentials as factors: the slopes are nearly normal."""
    factors = rng(17, address).standard_gamma(30.0, (count, replicates, len(SIZES))) / 30.0
    return SIZES**-0.5 * factors


@pytest.mark.parametrize("replicates", [6, 35])
@pytest.mark.parametrize("draw", [noisy_curves, skewed_curves])
def test_rate_rejects_the_true_slope_at_its_level(draw, replicates):
    def wrongly_rejected(count, chunk):
        slopes = log_slopes(SIZES, draw(100 * replicates + chunk, count, replicates))[..., None]
        return decide_mean(*summarise(slopes), -0.5, 0.0, None, RATE_LEVEL) < 0

    assert_rate(in_chunks(wrongly_rejected))


def test_rate_catches_a_lie_of_ten_standard_errors():
    slopes = log_slopes(SIZES, noisy_curves(0, LIES, 35))[..., None]
    spread = 0.2 * math.sqrt(np.sum(statistics.slope_weights(SIZES) ** 2))
    lie = -0.5 + STANDARD_ERRORS * spread / math.sqrt(35)
    assert_caught(decide_mean(*summarise(slopes), lie, 0.0, None, LEVEL) < 0)


# ---------------------------------------------------------------- skewness guard


def test_normal_replicates_are_hardly_ever_refused():
    for replicates in (8, 12, 30, 100):
        data = normal(rng(18, replicates), DRAWS, replicates, 1)
        refused = np.abs(skewness(data)) > skewness_limit(replicates, 1, LEVEL)
        assert np.sum(refused) <= stats.binom(DRAWS, 2 * LEVEL).isf(LEVEL)


@pytest.mark.parametrize("probability", [0.05, 0.1, 0.2, 0.3])
def test_level_is_about_doubled_where_the_guard_begins_to_accept(probability):
    """Two-valued replicates, whose level is an exact sum.

    It saws up and down with the number of replicates, as the limit passes from one whole number
    of ones to the next; the mean over neighbouring numbers is what the theory of the guard gives.
    """
    skew = (1 - 2 * probability) / math.sqrt(probability * (1 - probability))
    needed = replicates_needed(skew, 1, LEVEL)
    levels = []
    for count in range(needed, needed + 80):
        ones = np.arange(1, count)
        mean = ones / count
        error = np.sqrt(mean * (1 - mean) / (count - 1))
        rejected = np.abs(mean - probability) > statistics.quantile(LEVEL, 1, count - 1) * error
        levels.append(stats.binom(count, probability).pmf(ones[rejected]).sum())
    assert 1.9 * LEVEL < np.mean(levels) < 2.2 * LEVEL


def test_exponential_replicates_are_refused_where_they_would_spoil_the_level():
    refused = np.abs(skewness(rng(19).standard_exponential((2000, 800, 1))))
    assert np.mean(refused > skewness_limit(800, 1, LEVEL)) > 0.95


# ---------------------------------------------------------------- kinds that decide by a bound


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_bound_of_an_inner_product_is_never_exceeded(dtype):
    """γ_n Σ|xᵢyᵢ| holds for any order of summation; the exact value is a sum of exact products."""
    generator = rng(20, np.dtype(dtype).itemsize)
    for size in (3, 30, 300):
        x, y = generator.standard_normal((2, 300, size)).astype(dtype)
        computed = np.array([np.dot(a, b) for a, b in zip(x, y, strict=True)])
        forwards = np.add.accumulate(x * y, axis=1)[:, -1]
        for measured in (computed, forwards):
            exact = [math.fsum(_exact_products(a, b)) for a, b in zip(x, y, strict=True)]
            absolute = np.abs(x.astype(float) * y.astype(float)).sum(axis=1)
            for got, true, scale in zip(measured, exact, absolute, strict=True):
                keep = checks.identity(
                    CLAIM,
                    "inner product",
                    tries="statement",
                    measured=got,
                    predicted=true,
                    operations=size,
                    scale=scale,
                    control=Control(
                        "ten bounds away",
                        measured=true + 10 * gamma(size, np.finfo(dtype).eps / 2) * scale,
                    ),
                )
                assert keep.passed


def _exact_products(a, b):
    """Products of float64 split into two floats each (Dekker), so that `fsum` is exact."""
    a, b = a.astype(float), b.astype(float)
    product = a * b
    a_high, b_high = (_high(v) for v in (a, b))
    a_low, b_low = a - a_high, b - b_high
    rest = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return np.concatenate([product, rest])


def _high(values):
    scaled = 134217729.0 * values
    return scaled - (scaled - values)


def test_identity_of_long_sums_in_float32_is_judged_by_float32():
    """A sum that float64's bound would reject keeps to the bound of the dtype it was done in."""
    terms = rng(21).uniform(size=20_000).astype(np.float32)
    forwards = np.add.accumulate(terms)[-1]
    exact = math.fsum(terms.astype(float))
    assert abs(float(forwards) - exact) > gamma(20_000, 2.0**-53) * exact
    kept = checks.identity(
        CLAIM,
        "float32 sum",
        tries="statement",
        measured=forwards,
        predicted=exact,
        operations=19_999,
        control=Control("one term in a hundred dropped", predicted=0.99 * exact),
    )
    assert kept.passed


def test_bound_is_kept_by_cauchy_schwarz_and_broken_by_a_tenfold_rounding_bound():
    """|⟨x, y⟩| ≤ ‖x‖‖y‖, also for parallel vectors, where only rounding separates the sides."""
    generator = rng(22)
    x = generator.standard_normal((2000, 30))
    y = np.where(np.arange(2000)[:, None] % 2, generator.standard_normal((2000, 30)), 3.0 * x)
    sizes = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    products = np.abs(np.sum(x * y, axis=1))
    slack = 10 * gamma(64, 2.0**-53) * sizes.max()
    kept = checks.bound(
        CLAIM,
        "Cauchy–Schwarz",
        tries="statement",
        values=products,
        below=sizes,
        operations=64,
        control=Control("ten rounding bounds less", below=sizes - slack),
    )
    assert kept.passed


# ---------------------------------------------------------------- the checks themselves


def _public_estimate(data):
    far = 40.0 if len(data) > 20 else 400.0
    return functools.partial(
        checks.estimate, replicates=data, predicted=0.0, control=Control("far", predicted=far)
    ), decide_mean(*summarise(data[:, None]), 0.0, 0.0, None, RATE_LEVEL)


def _public_margin(data):
    return functools.partial(
        checks.estimate,
        replicates=data,
        predicted=0.0,
        margin=0.5,
        margin_source="the simulation",
        control=Control("far", predicted=400.0),
    ), decide_mean(*summarise(data[:, None]), 0.0, 0.0, 0.5, RATE_LEVEL)


def _public_order(data):
    return functools.partial(
        checks.order,
        smaller=np.zeros_like(data),
        larger=data,
        control=Control("far", larger=data - 400.0),
    ), decide_order(*summarise(data[:, None]), RATE_LEVEL)


def _public_distribution(data):
    return functools.partial(
        checks.distribution,
        sample=data,
        cdf=special.ndtr,
        control=Control("far", sample=data + 400.0),
    ), decide_distribution(
        kolmogorov_distance(special.ndtr(np.sort(data))), len(data), 0.0, RATE_LEVEL
    )


def _public_rate(data):
    curves = np.exp(0.1 * np.outer(data, np.log(SIZES)))
    return functools.partial(
        checks.rate, x=SIZES, y=curves, slope=0.0, control=Control("far", slope=400.0)
    ), decide_mean(*summarise(0.1 * data[:, None]), 0.0, 0.0, None, RATE_LEVEL)


@pytest.mark.parametrize(
    "kind", [_public_estimate, _public_margin, _public_order, _public_distribution, _public_rate]
)
def test_public_checks_decide_as_the_batched_functions(kind):
    outcomes = set()
    with statistics._at_level(RATE_LEVEL):
        for draw in range(60):
            shift = (0.0, 0.5, 0.8, -1.0)[draw % 4]
            data = rng(23, draw).standard_normal(30) + shift
            check, verdict = kind(data)
            made = check(CLAIM, "simulated", tries="statement")
            assert made.record["outcome"] == ("pass" if verdict > 0 else "fail")
            assert made.record["statistic"]["level"] == RATE_LEVEL
            assert made.record["control"]["rejected"]
            outcomes.add(made.record["outcome"])
    assert outcomes == {"pass", "fail"}


def test_public_rigid_check_decides_as_the_batched_function():
    grid = np.array([3.2, 6.3])
    outcomes = set()
    with statistics._at_level(RATE_LEVEL):
        for draw in range(40):
            spectra = rigid_spectra(rng(24, draw), 1, 30)[0] + (0.0, 0.4)[draw % 2]
            counts = statistics.counting_functions(spectra, grid)
            verdict = decide_counts(counts, 12 * rigid_law(grid), 0.0, RATE_LEVEL)[0]
            made = checks.distribution(
                CLAIM,
                "simulated spectra",
                tries="statement",
                sample=spectra,
                cdf=rigid_law,
                rigid=True,
                grid=grid,
                control=Control("all to the left", sample=spectra - 9.0),
            )
            assert made.record["outcome"] == ("pass" if verdict > 0 else "fail")
            outcomes.add(made.record["outcome"])
    assert outcomes == {"pass", "fail"}


def test_pages_cannot_choose_the_level():
    assert statistics.current_level() == LEVEL == 1e-6
    for kind in (checks.estimate, checks.distribution, checks.order, checks.rate):
        with pytest.raises(TypeError, match="level"):
            kind(CLAIM, "level", tries="statement", level=0.5, control=None)
