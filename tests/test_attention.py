"""Softmax weights: a probability over the keys, whatever the size of the scores."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rederive.attention import attend, attention_weights, causal_mask

EPS = torch.finfo(torch.float64).eps


def refused(words):
    return pytest.raises(ValueError, match=re.escape(words))


def draw(seed, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_scores_log_1_log_2_log_3_give_sixths():
    keys = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64).log()
    weights = attention_weights(torch.ones(1, 1, dtype=torch.float64), keys, 1)
    sixths = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64) / 6
    # one rounding each for log, product, exponential, sum and quotient, errors of scores ≤ log 3
    assert torch.allclose(weights, sixths, rtol=8 * EPS, atol=0)


@given(
    st.integers(0, 2**31),
    st.integers(1, 4),
    st.integers(1, 9),
    st.integers(1, 5),
    st.floats(0, 1e4),
)
def test_rows_are_probabilities(seed, m, n, p, beta):
    weights = attention_weights(draw(seed, m, p), draw(seed + 1, n, p), beta)
    assert weights.shape == (m, n)
    assert (weights >= 0).all()
    assert torch.allclose(weights.sum(-1), torch.ones(m, dtype=torch.float64), atol=(n + 2) * EPS)


@given(st.integers(0, 2**31), st.integers(1, 9))
def test_a_shift_of_all_keys_changes_nothing(seed, n):
    queries, keys, shift = draw(seed, 3, 4), draw(seed + 1, n, 4), draw(seed + 2, 1, 4)
    before = attention_weights(queries, keys, 0.5)
    after = attention_weights(queries, keys + shift, 0.5)
    # scores are sums of 4 products of numbers below 8 (never seen beyond in a normal sample)
    assert torch.allclose(before, after, atol=8 * 4 * 64 * EPS)


def test_permuted_keys_give_permuted_weights():
    queries, keys, order = draw(0, 3, 4), draw(1, 7, 4), torch.randperm(7)
    weights = attention_weights(queries, keys, 0.5)
    again = attention_weights(queries, keys[order], 0.5)
    assert torch.allclose(weights[:, order], again, rtol=64 * EPS, atol=0)


def test_no_inverse_temperature_means_uniform_weights():
    weights = attention_weights(draw(0, 2, 3), draw(1, 8, 3), 0)
    assert torch.equal(weights, torch.full((2, 8), 0.125, dtype=torch.float64))


def test_ties_share_and_the_rest_vanishes_when_cold():
    keys = torch.tensor([[1.0], [1.0], [0.0]])
    weights = attention_weights(torch.tensor([[1.0]]), keys, 1e4)
    assert torch.equal(weights, torch.tensor([[0.5, 0.5, 0.0]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_huge_scores_stay_finite(dtype):
    queries = torch.tensor([[1e4], [-1e4]], dtype=dtype)
    keys = torch.tensor([[1.0], [-1.0], [0.5]], dtype=dtype)
    weights = attention_weights(queries, keys, 100)
    assert torch.equal(weights, torch.tensor([[1.0, 0, 0], [0, 1, 0]], dtype=dtype))


def test_hidden_keys_weigh_nothing_however_low_the_visible_scores():
    queries, keys = torch.tensor([[1e4]]), torch.tensor([[-1.0], [0.0]])
    weights = attention_weights(queries, keys, 1, mask=torch.tensor([True, False]))
    assert torch.equal(weights, torch.tensor([[1.0, 0.0]]))


def test_a_single_key_has_weight_one():
    assert torch.equal(attention_weights(torch.ones(2, 3), torch.ones(1, 3), 9), torch.ones(2, 1))


def test_no_query_no_row():
    assert attention_weights(torch.ones(0, 3), torch.ones(4, 3), 1).shape == (0, 4)


def test_leading_axes_broadcast():
    queries, keys = draw(0, 5, 1, 3, 4), draw(1, 2, 6, 4)
    weights = attention_weights(queries, keys, 0.5)
    assert weights.shape == (5, 2, 3, 6)
    one = attention_weights(queries[3, 0], keys[1], 0.5)
    assert torch.allclose(weights[3, 1], one, rtol=64 * EPS, atol=0)


def test_causal_rows_are_attention_on_the_prefix():
    tokens = draw(0, 6, 4)
    weights = attention_weights(tokens, tokens, 0.5, mask=causal_mask(6))
    for t in range(6):
        prefix = attention_weights(tokens[t : t + 1], tokens[: t + 1], 0.5)
        assert torch.allclose(weights[t, : t + 1], prefix[0], rtol=64 * EPS, atol=0)
        assert not weights[t, t + 1 :].any()


def test_strict_mask_hides_the_token_itself():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True] * 3]
    strict = causal_mask(3, strict=True)
    assert strict.tolist() == [[False] * 3, [True, False, False], [True, True, False]]
    tokens = draw(0, 3, 2)
    weights = attention_weights(tokens[1:], tokens, 1, mask=strict[1:])
    assert torch.equal(weights[0], torch.tensor([1.0, 0, 0], dtype=torch.float64))
    with refused("mask: expected at least one key for every query, got a row without any"):
        attention_weights(tokens, tokens, 1, mask=strict)


def test_masks_broadcast_but_do_not_widen():
    queries, keys = draw(0, 2, 3, 4), draw(1, 5, 4)
    hide_last = torch.tensor([True] * 4 + [False])
    weights = attention_weights(queries, keys, 1, mask=hide_last)
    shorter = attention_weights(queries, keys[:4], 1)
    assert torch.allclose(weights[..., :4], shorter, rtol=64 * EPS, atol=0)
    with refused("mask: expected a shape that broadcasts to (2, 3, 5), got shape (7, 2, 3, 5)"):
        attention_weights(queries, keys, 1, mask=torch.ones(7, 2, 3, 5, dtype=torch.bool))
    with refused("mask: expected axes that broadcast with (2, 3, 5)"):
        attention_weights(queries, keys, 1, mask=torch.ones(4, dtype=torch.bool))


def test_attend_is_the_weighted_mean_of_values():
    queries, keys, values = draw(0, 2, 3, 4), draw(1, 6, 4), draw(2, 6, 5)
    output = attend(queries, keys, values, 0.5)
    weights = attention_weights(queries, keys, 0.5)
    assert torch.equal(output, weights @ values)
    assert (output <= values.max(0).values + 1e-12).all()
    assert attend(queries, keys, values.expand(2, 6, 5), 0.5).shape == (2, 3, 5)
    assert attend(queries, keys, values, 0.5, mask=torch.ones(3, 6).bool()).shape == (2, 3, 5)


def test_gradients_are_those_of_finite_differences():
    parts = [draw(i, 3, 2).requires_grad_() for i in range(3)]
    assert torch.autograd.gradcheck(lambda q, k, v: attend(q, k, v, 0.7), parts)


def test_array_likes_are_taken_in_float64():
    weights = attention_weights([[1.0, 0.0]], np.eye(2), 1)
    assert weights.dtype == torch.float64
    assert weights[0, 0] == pytest.approx(1 / (1 + np.exp(-1)), rel=4 * EPS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"queries": torch.ones(3)}, "queries: expected shape (…, m, p), got shape (3,)"),
        ({"keys": torch.ones(2, 4)}, "keys: expected shape (…, n, 3), got shape (2, 4)"),
        ({"keys": torch.ones(0, 3)}, "keys: expected at least one entry"),
        ({"keys": torch.ones(2, 3).double()}, "keys: expected dtype torch.float32"),
        ({"keys": torch.ones(2, 3, device="meta")}, "keys: expected device cpu, got meta"),
        ({"keys": torch.full((2, 3), torch.nan)}, "keys: expected finite entries only"),
        ({"queries": torch.full((2, 3), torch.inf)}, "queries: expected finite entries only"),
        ({"queries": torch.ones(2, 3).long()}, "queries: expected a dense floating-point tensor"),
        ({"values": torch.ones(3, 1)}, "values: expected shape (…, 2, v), got shape (3, 1)"),
        ({"values": torch.ones(2, 1).double()}, "values: expected dtype torch.float32"),
        ({"inverse_temperature": -1}, "inverse_temperature: expected a finite number >= 0"),
        ({"inverse_temperature": np.nan}, "inverse_temperature: expected a finite number >= 0"),
        ({"mask": torch.ones(4, 2)}, "mask: expected a tensor of booleans, got torch.float32"),
        ({"mask": [True, True]}, "mask: expected a tensor of booleans, got [True, True]"),
        ({"mask": torch.ones(2, device="meta").bool()}, "mask: expected device cpu, got meta"),
    ],
)
def test_bad_input_is_refused(change, words):
    good = {
        "queries": torch.ones(4, 3),
        "keys": torch.ones(2, 3),
        "values": torch.ones(2, 1),
        "inverse_temperature": 1.0,
    }
    assert attend(**good).shape == (4, 1)
    with refused(words):
        attend(**(good | change))


def test_leading_axes_that_do_not_fit_are_refused():
    three, two = torch.ones(3, 1, 1), torch.ones(2, 1, 1)
    with refused("keys: expected axes that broadcast with (3,), got (2,)"):
        attention_weights(three, two, 1)
    with refused("values: expected axes that broadcast with (3,), got (2,)"):
        attend(three, three, two, 1)


@pytest.mark.parametrize("length", [0, -1, 2.0, True])
def test_mask_length_is_a_positive_integer(length):
    with refused("length: expected an integer >= 1"):
        causal_mask(length)


def test_strict_is_a_boolean():
    with refused("strict: expected one of False, True, got 'yes'"):
        causal_mask(3, strict="yes")
