"""Multi-head attention on in-context regression: predictions, starts and training."""

import re

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

from rederive import transformer
from rederive.diversity import head_diversity_index, principal_cosines
from rederive.transformer import (
    STARTS,
    Run,
    in_context_predictions,
    starting_projections,
    train_in_context,
)

EPS = torch.finfo(torch.float64).eps
SIZES = {"n_heads": 2, "head_dim": 2, "dim": 4, "n_tokens": 6}


def refused(words):
    return pytest.raises(ValueError, match=re.escape(words))


def rng(*key):
    return np.random.default_rng(np.random.SeedSequence(7, spawn_key=key))


def draw(seed, *shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def prompt(v=2):
    keys, queries = draw(0, 3, 5, 2), draw(1, 3, 5, 2)
    return keys, queries, draw(2).abs(), draw(3, 7, 5), draw(4, 7, v), draw(5, 5)


def test_a_prediction_is_the_mean_of_the_heads_smoothers():
    keys, queries, gain, tokens, values, token = prompt()
    total = torch.zeros(2, dtype=torch.float64)
    for head in range(3):
        scores = [(token @ queries[head]) @ (t @ keys[head]) / 2**0.5 for t in tokens]
        weights = torch.stack(scores).exp()
        total += (weights / weights.sum()) @ values
    found = in_context_predictions(keys, queries, gain, tokens, values, token)
    # exponents below 50, sums of seven terms
    assert torch.allclose(found, gain * total / 3, rtol=0, atol=200 * EPS * values.abs().max())


def test_equal_values_are_returned_times_the_gain():
    keys, queries, gain, tokens, _, token = prompt()
    ones = torch.full((7, 1), 3.0, dtype=torch.float64)
    found = in_context_predictions(keys, queries, gain, tokens, ones, token)
    assert torch.allclose(found, 3 * gain.reshape(1), rtol=30 * EPS)


def test_keys_and_queries_may_trade_a_matrix():
    keys, queries, gain, tokens, values, token = prompt()
    trade = torch.tensor([[2.0, 1.0], [0.0, 0.5]], dtype=torch.float64)
    before = in_context_predictions(keys, queries, gain, tokens, values, token)
    traded = (keys @ trade, queries @ torch.linalg.inv(trade).mT)
    after = in_context_predictions(*traded, gain, tokens, values, token)
    # exponents below 50, condition of the trade below 10
    assert torch.allclose(before, after, rtol=0, atol=2000 * EPS * values.abs().max())


def test_leading_axes_broadcast():
    keys, queries, _, tokens, values, token = prompt()
    batch = in_context_predictions(
        keys.expand(4, 3, 5, 2), queries, torch.arange(4.0).double(), tokens, values, token
    )
    assert batch.shape == (4, 2)
    assert torch.equal(batch[0], torch.zeros(2, dtype=torch.float64))
    assert torch.allclose(batch[3], 3 * batch[1], rtol=4 * EPS)


def test_training_computes_the_same_predictions():
    seeds, runs, prompts = 2, 3, 4
    keys, queries = draw(0, seeds, runs, 3, 5, 2), draw(1, seeds, runs, 3, 5, 2)
    tokens, token = draw(2, seeds, prompts, 7, 5), draw(3, seeds, prompts, 5)
    weights = transformer._mean_weights(keys, queries, tokens, token)
    assert weights.shape == (seeds, prompts, runs, 7)
    one = torch.ones((), dtype=torch.float64)
    for seed, run, i in np.ndindex(seeds, runs, prompts):
        plain = in_context_predictions(
            keys[seed, run],
            queries[seed, run],
            one,
            tokens[seed, i],
            torch.eye(7, dtype=torch.float64),
            token[seed, i],
        )
        # scores below 100 in modulus, grouped in another order
        assert torch.allclose(weights[seed, i, run], plain, rtol=3000 * EPS, atol=EPS)


@pytest.mark.parametrize("start", STARTS)
def test_starts_have_the_index_they_are_named_for(start):
    keys, queries = starting_projections(rng(1), start, 3, 2, 8, jitter=0)
    frames = torch.cat([keys, queries])
    eye = torch.eye(2, dtype=torch.float64).expand(6, 2, 2)
    assert torch.allclose(frames.mT @ frames, eye, atol=30 * EPS)
    index = head_diversity_index(keys)
    if start == "orthogonal":
        assert abs(index - 1) < 30 * EPS
        assert torch.equal(keys, queries)
    elif start == "aligned":
        assert index < 30 * EPS
        assert principal_cosines(keys[0], queries[1]).min() > 1 - 30 * EPS
        assert not torch.allclose(keys[0], keys[1], atol=1e-3)
    else:
        assert 0 < index < 1


def test_random_starts_have_mean_overlap_k_over_p():
    generator = rng(2)
    starts = [starting_projections(generator, "random", 2, 2, 6)[0] for _ in range(2000)]
    indices = np.array([head_diversity_index(keys) for keys in starts])
    error = indices.std(ddof=1) / 2000**0.5
    assert abs(indices.mean() - (1 - 2 / 6)) < 5 * error  # a fixed seed; five standard errors


def test_jitter_pulls_aligned_heads_apart():
    close, _ = starting_projections(rng(3), "aligned", 3, 2, 8, jitter=0.01)
    far, _ = starting_projections(rng(3), "aligned", 3, 2, 8, jitter=0.1)
    # perturbations of size ε turn subspaces by angles of size ε, which count squared
    assert 50 < head_diversity_index(far) / head_diversity_index(close) < 200


def test_a_seed_depends_on_its_own_generator_only():
    runs = [Run("random", 2), Run("orthogonal", 4, "sine")]
    both = train_in_context([rng(0), rng(1)], runs, steps=5, **SIZES)
    alone = train_in_context([rng(1)], runs, steps=5, **SIZES)
    # batched and single products may be summed in another order; five small steps amplify little
    assert torch.allclose(both.keys[1], alone.keys[0], rtol=0, atol=1e-9)
    assert torch.allclose(both.gain[1], alone.gain[0], rtol=0, atol=1e-9)


def test_runs_share_starts_and_data():
    twice = train_in_context([rng(0)], [Run("random", 3), Run("random", 3)], steps=5, **SIZES)
    assert torch.allclose(twice.keys[0, 0], twice.keys[0, 1], rtol=0, atol=1e-9)
    ranks = train_in_context([rng(0)], [Run("random", 1), Run("random", 4)], steps=5, **SIZES)
    assert torch.equal(ranks.recorded[0, 0, 0], ranks.recorded[0, 0, 1])
    assert not torch.allclose(ranks.keys[0, 0], ranks.keys[0, 1], atol=1e-3)


def test_records_run_from_the_start_to_the_end():
    trained = train_in_context([rng(0)], [Run("random", 2)], steps=10, records=5, **SIZES)
    assert trained.steps == (0, 2, 4, 6, 8, 10)
    assert trained.recorded.shape == (6, 1, 1, 2, 4, 2)
    assert torch.equal(trained.recorded[-1], trained.keys)
    first = rng(0).spawn(4)[1 + STARTS.index("random")]
    assert torch.equal(trained.recorded[0, 0, 0], starting_projections(first, "random", 2, 2, 4)[0])


def risk(keys, queries, gain, rank, prompts=400):
    """Mean squared error on fresh prompts with linear targets."""
    generator = rng(9)
    tokens = torch.tensor(generator.standard_normal((prompts, 7, 4)))
    slopes = torch.tensor(generator.standard_normal((prompts, rank, 8))) / rank**0.5
    exact = tokens[..., :rank] @ slopes
    values = exact[:, :6] + 0.5 * torch.tensor(generator.standard_normal((prompts, 6, 8)))
    found = in_context_predictions(keys, queries, gain, tokens[:, :6], values, tokens[:, 6])
    return float(((found - exact[:, 6]) ** 2).mean())


def test_training_lowers_the_risk():
    trained = train_in_context([rng(0)], [Run("random", 1)], steps=150, **SIZES)
    one = torch.ones((), dtype=torch.float64)
    keys, queries = starting_projections(rng(0).spawn(4)[1], "random", 2, 2, 4)
    before = risk(keys, queries, one, 1)
    after = risk(trained.keys[0, 0], trained.queries[0, 0], trained.gain[0, 0], 1)
    assert after < 0.7 * before
    assert after < 0.7  # a constant guess has risk 1


def test_diversity_follows_the_rank_of_the_task():
    runs = [Run("random", 2), Run("random", 4)]
    trained = train_in_context([rng(0), rng(1)], runs, steps=300, **SIZES)
    index = np.array([[head_diversity_index(k) for k in seed] for seed in trained.keys])
    assert (index[:, 0] + 0.3 < index[:, 1]).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_is_kept(dtype):
    trained = train_in_context([rng(0)], [Run("aligned", 2)], steps=2, dtype=dtype, **SIZES)
    tensors = (trained.keys, trained.queries, trained.gain, trained.recorded)
    assert {tensor.dtype for tensor in tensors} == {dtype}
    assert not any(tensor.requires_grad for tensor in tensors)


def test_device_is_kept():
    with FakeTensorMode(allow_non_fake_inputs=True):
        trained = train_in_context([rng(0)], [Run("random", 2)], steps=2, device="meta", **SIZES)
        tensors = [trained.keys, trained.queries, trained.gain, trained.recorded]
        maps = torch.empty(3, 5, 2, device="meta", dtype=torch.float64)
        tokens = torch.empty(7, 5, device="meta", dtype=torch.float64)
        tensors.append(in_context_predictions(maps, maps, maps[0, 0, 0], tokens, tokens, tokens[0]))
    assert {tensor.device.type for tensor in tensors} == {"meta"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"runs": []}, "runs: expected a sequence of at least one Run, got []"),
        ({"runs": [Run("sideways", 2)]}, "runs: expected one of 'random', 'orthogonal'"),
        ({"runs": [Run("random", 0)]}, "runs: expected an integer >= 1, got 0"),
        ({"runs": [Run("random", 5)]}, "runs: expected ranks of at most dim = 4, got 5"),
        ({"runs": [Run("random", 2, "cubic")]}, "runs: expected one of 'linear', 'sine'"),
        ({"runs": [Run("orthogonal", 2)], "n_heads": 3}, "dim: expected an integer >= 6, got 4"),
        ({"n_heads": 1}, "n_heads: expected an integer >= 2, got 1"),
        ({"head_dim": 5}, "dim: expected an integer >= 5, got 4"),
        ({"n_tokens": 0}, "n_tokens: expected an integer >= 1"),
        ({"noise": -1.0}, "noise: expected a finite number >= 0"),
        ({"steps": 0}, "steps: expected an integer >= 1"),
        ({"records": 9}, "records: expected an integer >= 1 and <= 3"),
        ({"learning_rate": 0}, "learning_rate: expected a positive finite number"),
        ({"weight_decay": -0.1}, "weight_decay: expected a finite number >= 0"),
        ({"dtype": torch.int64}, "dtype: expected torch.float32 or torch.float64"),
        ({"rngs": [3]}, "rngs: expected a sequence of numpy.random.Generator"),
        ({"rngs": []}, "rngs: expected a sequence of numpy.random.Generator"),
    ],
)
def test_bad_input_to_training_is_named(changes, words):
    arguments = {"rngs": [rng(0)], "runs": [Run("random", 2)], "steps": 3, **SIZES, **changes}
    with refused(words):
        train_in_context(**arguments)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (0, draw(0, 2), "keys: expected shape (…, H, p, k)"),
        (1, draw(0, 3, 5, 3), "queries: expected shape (…, 3, 5, 2)"),
        (2, torch.ones((), dtype=torch.float32), "gain: expected dtype torch.float64"),
        (3, draw(0, 7, 4), "tokens: expected shape (…, n, 5)"),
        (4, draw(0, 6, 2), "values: expected shape (…, 7, v)"),
        (4, torch.full((7, 2), torch.nan, dtype=torch.float64), "values: expected finite entries"),
        (5, draw(0, 6), "token: expected shape (…, 5)"),
    ],
)
def test_bad_input_to_predictions_is_named(place, value, words):
    arguments = list(prompt())
    arguments[place] = value
    with refused(words):
        in_context_predictions(*arguments)


def test_bad_input_to_starts_is_named():
    with refused("start: expected one of 'random', 'orthogonal', 'aligned', got 'other'"):
        starting_projections(rng(0), "other", 2, 2, 4)
    with refused("jitter: expected a finite number >= 0"):
        starting_projections(rng(0), "aligned", 2, 2, 4, jitter=-1)
    with refused("rng: expected a numpy.random.Generator, got 3"):
        starting_projections(3, "random", 2, 2, 4)
