"""The trial with many seeds: its scores are normal, errors are noticed, results are kept."""

import json

import numpy as np
import pytest
from audit import calibration, seeds, small_book, trial_blocks, trying_seeds
from audit.__main__ import PAGE
from scipy import stats

from rederive_book import blocks, statistics


def t_values(rng, dof, shape, shift=0.0, spread=1.0):
    """T of means over dof + 1 replicates whose prediction is off by `shift` standard errors."""
    normal = rng.normal(size=shape) + shift
    return spread * normal / np.sqrt(rng.chisquare(dof, size=shape) / dof)


@pytest.mark.parametrize("dof", [2.0, 7.0, 199.0, None])
def test_scores_of_a_right_prediction_are_normal(dof):
    rng = np.random.default_rng(3)
    t = rng.normal(size=20_000) if dof is None else t_values(rng, dof, 20_000)
    assert stats.kstest(calibration.normal_scores(t, dof), "norm").pvalue > 1e-4


def test_scores_keep_sign_and_order_far_out():
    t = np.array([-400.0, -40.0, -3.0, 0.0, 3.0, 40.0, 400.0])
    scores = calibration.normal_scores(t, 9.0)
    assert np.isfinite(scores).all() and (np.diff(scores) > 0).all()
    assert scores == pytest.approx(-scores[::-1])


def test_chances_of_right_checks_are_even():
    scores = np.random.default_rng(4).normal(size=(4000, 40))
    for chance in (lambda one: calibration.mean_chance(one, 0.0), calibration.variance_chance):
        assert stats.kstest([chance(one) for one in scores], "uniform").pvalue > 1e-4


def test_a_bound_on_the_bias_excuses_a_drift_and_no_more():
    scores = np.random.default_rng(5).normal(size=400) + 0.5
    assert calibration.mean_chance(scores, 0.0) < 1e-9
    assert calibration.mean_chance(scores, 0.5) > 1e-3


@pytest.mark.parametrize(("dof", "entries"), [(7.0, 1), (31.0, 4), (499.0, 1)])
def test_the_error_that_is_noticed_is_noticed_with_that_probability(dof, entries):
    check = {"dof": dof, "entries": entries, "error": [0.1], "predicted": [2.0], "bias": 0.0}
    relative = calibration.smallest_error(check | {"margin": None})
    distance = relative * 2.0 / 0.1
    limit = statistics.quantile(statistics.LEVEL, entries, dof)
    draws = 200_000
    caught = np.abs(t_values(np.random.default_rng(6), dof, draws, distance)) > limit
    error = np.sqrt(calibration.CAUGHT * (1 - calibration.CAUGHT) / draws)
    assert caught.mean() == pytest.approx(calibration.CAUGHT, abs=5 * error)


def test_margins_and_zero_predictions():
    check = {"dof": None, "entries": 2, "error": [0.1, 0.1], "predicted": [0.0, 4.0], "bias": 0.0}
    assert calibration.smallest_error(check | {"margin": 1.0}) == 0.25
    assert calibration.smallest_error(check | {"predicted": [0.0, 0.0], "margin": None}) is None


@pytest.mark.parametrize(
    ("shift", "spread", "word"), [(0.0, 1.0, None), (1.5, 1.0, "mean"), (0.0, 2.0, "variance")]
)
def test_drift_and_spread_are_surprises(shift, spread, word):
    rng = np.random.default_rng(7)
    t = t_values(rng, 49.0, (40, 3), shift, spread)
    found = calibration.judge({"t": t.tolist(), "dof": 49.0, "shift": [0.0] * 3})
    named = calibration.surprises([("a check", found)])
    assert any(word in line for line in named) if word else named == []


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return small_book.make(tmp_path_factory.mktemp("seeds") / "book")


def test_seeds_are_kept_and_not_run_again(book, tmp_path):
    file, said = tmp_path / "seeds.json", []
    assert trying_seeds.pages_with_random_checks(book) == ["demo/mean"]
    for count in (2, 3, 3):
        stored = seeds.try_seeds(count, root=book, results=file, say=said.append)
    assert said == [f"demo/mean, seed {seed}: no alarm" for seed in (1, 2, 3)]
    assert stored == json.loads(file.read_text(encoding="utf-8"))
    (check,) = stored["pages"]["demo/mean"]["checks"].values()
    values = np.random.default_rng(2).normal(size=10_000)
    t = values.mean() / (values.std(ddof=1) / 100)
    assert check["t"][1][0] == pytest.approx(t, rel=1e-4)
    found = seeds.summary(stored)
    assert (found["tried"], found["alarms"], found["surprises"]) == (3, [], [])


def test_no_seed_is_begun_after_the_time(book, tmp_path):
    stored = seeds.try_seeds(2, root=book, results=tmp_path / "seeds.json", minutes=0.0)
    assert stored == {"pages": {}}


def test_wrong_predictions_drift_or_alarm_and_a_changed_page_starts_anew(book, tmp_path):
    file, page = tmp_path / "seeds.json", book / "chapters" / "demo" / "mean.md"
    text = page.read_text(encoding="utf-8")
    try:
        seeds.try_seeds(1, root=book, results=file)
        page.write_text(text.replace("predicted=0.0", "predicted=0.025"), encoding="utf-8")
        drifting = seeds.summary(seeds.try_seeds(12, root=book, results=file))
        page.write_text(text.replace("predicted=0.0", "predicted=0.1"), encoding="utf-8")
        stored = seeds.try_seeds(2, root=book, results=file)
    finally:
        page.write_text(text, encoding="utf-8")
    assert drifting["tried"] == 12 and "a mean: mean" in drifting["surprises"][0]
    alarms = seeds.summary(stored)["alarms"]
    assert [seed for _, seed in alarms] == ["1", "2"]
    stored["pages"]["demo/mean"] |= {"date": "2026-01-01", "commit": "abc"}
    assert "a mean, seed 2" in trial_blocks.of_seeds(stored)


def test_a_page_that_fails_is_named(book, tmp_path):
    with pytest.raises(RuntimeError, match=r"demo/mean: .*(?s:.)*invalid literal"):
        list(trying_seeds.in_a_process("demo/mean", ["one"], book))


def test_the_last_trial_stands_on_the_page():
    stored = seeds.load()
    found = seeds.summary(stored)
    assert found["least"] > 0
    text = PAGE.read_text(encoding="utf-8")
    assert blocks.replaced(text, *trial_blocks.SEEDS, trial_blocks.of_seeds(stored)) == text
