"""Arguments are checked in one place, and every refusal says what was wrong with which argument."""

import fractions
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode

from rederive import validation


def refused(words):
    return pytest.raises(ValueError, match=re.escape(words))


def test_validation_does_not_import_torch():
    code = "import sys, rederive.validation; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_message_names_argument_expectation_and_value():
    with pytest.raises(ValueError) as caught:
        validation.positive(-1.0, "bandwidth")
    assert str(caught.value) == "bandwidth: expected a positive finite number, got -1.0"


@pytest.mark.parametrize(
    "value",
    [2, 2.0, np.float32(2), np.int8(2), fractions.Fraction(2), np.array(2), torch.tensor(2)],
)
def test_any_real_scalar_is_a_number(value):
    found = validation.number(value, "x")
    assert type(found) is float and found == 2


@pytest.mark.parametrize(
    "value",
    [
        True,
        np.True_,
        torch.tensor(True),
        "2",
        None,
        2 + 0j,
        [2],
        np.ones(1),
        np.nan,
        np.inf,
        -np.inf,
        10**400,
        torch.tensor(np.nan),
    ],
)
def test_what_is_no_finite_real_number_is_refused(value):
    with refused("x: expected a finite number, got"):
        validation.number(value, "x")


@given(st.floats(-10, 10), st.floats(-10, 10))
def test_bounds_are_open_or_closed_as_named(value, bound):
    verdicts = {"above": value > bound, "minimum": value >= bound}
    verdicts |= {"below": value < bound, "maximum": value <= bound}
    for name, inside in verdicts.items():
        if inside:
            assert validation.number(value, "x", **{name: bound}) == value
        else:
            with refused("x: expected a finite number"):
                validation.number(value, "x", **{name: bound})


def test_both_bounds_are_named():
    with refused("ratio: expected a finite number > 0 and <= 1, got 2.0"):
        validation.number(2, "ratio", above=0, maximum=1)


@pytest.mark.parametrize("value", [0, -1, -0.0, np.nan])
def test_zero_is_not_positive(value):
    with refused("h: expected a positive finite number"):
        validation.positive(value, "h")


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_integers_pass(value):
    found = validation.integer(value, "n", minimum=3, maximum=3)
    assert type(found) is int and found == 3


@pytest.mark.parametrize("value", [3.0, True, "3", None, np.float64(3), np.True_])
def test_what_is_no_integer_is_refused(value):
    with refused("n: expected an integer, got"):
        validation.integer(value, "n")


def test_integer_bounds():
    with refused("n: expected an integer >= 1 and <= 5, got 0"):
        validation.integer(0, "n", minimum=1, maximum=5)
    with refused("n: expected an integer >= 1 and <= 5, got 6"):
        validation.integer(6, "n", minimum=1, maximum=5)


def test_one_of_compares_value_and_type():
    assert validation.one_of("a", "kind", ("a", "b")) == "a"
    for wrong in ("c", 1, True, None, np.ones(2)):
        with refused("kind: expected one of 'a', 2, got"):
            validation.one_of(wrong, "kind", ("a", 2))


def test_one_of_does_not_take_one_for_true():
    with refused("strict: expected one of False, True, got 1"):
        validation.one_of(1, "strict", (False, True))


@pytest.mark.parametrize(
    "value",
    [
        [[1, 2], [3, 4]],
        np.array([[1, 2], [3, 4]], dtype=np.int8),
        np.array([[1, 2], [3, 4]], dtype=np.float32),
        [[fractions.Fraction(1), 2], [3, fractions.Fraction(4)]],
        torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True),
    ],
)
def test_arrays_become_float64(value):
    found = validation.array(value, "a", shape=("n", 2))
    assert found.dtype == np.float64
    assert found.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "value",
    [
        [True, False],
        ["1", "2"],
        [[1, 2], [3]],
        [1j],
        [None, "a"],
        [True, fractions.Fraction(1)],
        object(),
        [1, {}],
        np.array(["2026-01-01"], dtype="datetime64[D]"),
        torch.empty(2, device="meta"),
    ],
)
def test_arrays_of_other_things_are_refused(value):
    with refused("a: expected an array of real numbers, got"):
        validation.array(value, "a")


def test_masked_arrays_are_refused():
    with refused("a: expected an array without a mask"):
        validation.array(np.ma.masked_array([1.0, 2.0], [True, False]), "a")


def test_nan_never_passes_and_infinity_only_when_allowed():
    with refused("a: expected finite entries only, got nan at index (1,)"):
        validation.array([0, np.nan], "a", finite=False)
    with refused("a: expected finite entries only, got inf at index (0, 1) and 1 more"):
        validation.array([[0, np.inf], [-np.inf, 0]], "a")
    assert validation.array([np.inf], "a", finite=False)[0] == np.inf


def test_complex_arrays_on_request():
    assert validation.array([1, 2j], "z", dtype=complex).dtype == np.complex128
    assert validation.array([1, 2], "z", dtype=complex).dtype == np.complex128


def test_integer_arrays_on_request():
    assert validation.array([1.0, 2], "i", dtype=int).dtype == np.int64
    for wrong in ([1.5], [2.0**63], [10**30], np.array([2**63], dtype=np.uint64)):
        with refused("i: expected an array of integer numbers below 2⁶³"):
            validation.array(wrong, "i", dtype=int)
    with refused("i: expected finite entries only"):
        validation.array([np.inf], "i", dtype=int, finite=False)


@pytest.mark.parametrize("check", [validation.array, validation.tensor])
def test_shapes(check):
    cube = np.zeros((2, 3, 4))
    assert check(cube, "a", ndim=3).shape == (2, 3, 4)
    assert check(cube, "a", shape=("H", None, 4)).shape == (2, 3, 4)
    assert check(cube, "a", shape=(..., "n", 4)).shape == (2, 3, 4)
    assert check(cube[0, 0], "a", shape=(..., 4)).shape == (4,)
    with refused("a: expected 2 axes, got shape (2, 3, 4)"):
        check(cube, "a", ndim=2)
    with refused("a: expected shape (H, any, 5), got shape (2, 3, 4)"):
        check(cube, "a", shape=("H", None, 5))
    with refused("a: expected shape (n,), got shape (2, 3, 4)"):
        check(cube, "a", shape=("n",))
    with refused("a: expected shape (…, n, 5), got shape (2, 3, 4)"):
        check(cube, "a", shape=(..., "n", 5))
    with refused("a: expected shape (…, n, p), got shape (4,)"):
        check(cube[0, 0], "a", shape=(..., "n", "p"))


@pytest.mark.parametrize("check", [validation.array, validation.tensor])
def test_empty_axes_only_when_allowed(check):
    assert check(np.zeros((0, 3)), "a", empty=True).shape == (0, 3)
    with refused("a: expected at least one entry along every axis, got shape (0, 3)"):
        check(np.zeros((0, 3)), "a")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_tensors_are_returned_as_they_are(dtype):
    value = torch.ones(3, dtype=dtype, requires_grad=True)
    assert validation.tensor(value, "x") is value


def test_array_likes_become_tensors_in_float64_unless_told():
    assert validation.tensor([1, 2], "x").dtype == torch.float64
    assert validation.tensor(np.ones(2, dtype=np.float32), "x").dtype == torch.float32
    like = torch.ones(1, dtype=torch.float32)
    assert validation.tensor([1, 2], "x", like=like).dtype == torch.float32


def test_tensors_made_from_arrays_are_copies():
    source = np.ones(2)
    source.flags.writeable = False
    validation.tensor(source, "x")[0] = 5
    assert source[0] == 1


@pytest.mark.parametrize(
    "value",
    [torch.ones(2).long(), torch.ones(2).bool(), torch.ones(2) + 0j, torch.eye(2).to_sparse()],
)
def test_tensors_of_other_kinds_are_refused(value):
    with refused("x: expected a dense floating-point tensor, got"):
        validation.tensor(value, "x")


def test_tensors_must_share_dtype_and_device():
    like = torch.ones(2, dtype=torch.float64)
    with refused("x: expected dtype torch.float64, got torch.float32"):
        validation.tensor(torch.ones(2, dtype=torch.float32), "x", like=like)
    with refused("x: expected device cpu, got meta"):
        validation.tensor(torch.ones(2, dtype=torch.float64, device="meta"), "x", like=like)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_tensors_must_be_finite(bad):
    with refused(f"x: expected finite entries only, got {bad} at index (1,)"):
        validation.tensor(torch.tensor([0.0, bad, 1.0]), "x")
    assert len(validation.tensor(torch.tensor([bad]), "x", finite=False)) == 1


def test_largest_finite_numbers_are_finite():
    extreme = torch.finfo(torch.float64).max * torch.tensor([1.0, -1.0], dtype=torch.float64)
    assert validation.tensor(extreme, "x") is extreme


def test_fake_and_meta_tensors_pass_value_checks_only():
    with FakeTensorMode():
        for device in ("cpu", "meta"):
            fake = torch.full((3, 3), np.nan, dtype=torch.float64, device=device)
            for check in (validation.tensor, validation.on_sphere, validation.symmetric):
                assert check(fake, "x").device.type == device
            assert validation.full_column_rank(fake, "x").device.type == device
            with refused("x: expected 1 axes"):
                validation.tensor(fake, "x", ndim=1)
            with refused("square"):
                validation.symmetric(fake[:2], "x")
            with refused("full column rank"):
                validation.full_column_rank(fake[:2], "x")
    assert not validation.has_values(torch.empty(2, device="meta"))
    assert validation.has_values(torch.empty(2)) and validation.has_values(np.empty(2))


@pytest.mark.parametrize("make", [np.array, torch.tensor])
@pytest.mark.parametrize("single", [False, True])
def test_sphere_slack_is_a_hundred_root_eps(make, single):
    names = ("float32", "float64")
    kind = getattr(torch if make is torch.tensor else np, names[not single])
    eps = float(np.finfo(names[not single]).eps)
    limit = 100 * eps**0.5
    assert validation.slack(make([1.0], dtype=kind)) == limit
    vectors = make([[0.6, 0.8], [1 + 0.9 * limit, 0.0]], dtype=kind)
    assert validation.on_sphere(vectors, "x") is vectors
    with refused("x: expected vectors of norm 1, got a norm off by"):
        validation.on_sphere(make([[0.6, 0.8], [1 + 1.1 * limit, 0.0]], dtype=kind), "x")


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_symmetric(make):
    good = make([[[1.0, 2.0], [2.0, 3.0]], [[0.0, 0.0], [0.0, 0.0]]])
    assert validation.symmetric(good, "D") is good
    with refused("D: expected symmetric matrices, got entries that differ from their mirror by 1"):
        validation.symmetric(make([[1.0, 2.0], [1.0, 3.0]]), "D")
    for shape in ((2,), (2, 3)):
        with refused("D: expected square matrices, got shape"):
            validation.symmetric(make(np.ones(shape)), "D")


def test_symmetry_is_judged_relative_to_the_largest_entry():
    nearly, wrong = np.array([[1.0, 1e-8], [0.0, 1.0]]), np.array([[1.0, 1e-4], [0.0, 1.0]])
    for size in (1e-30, 1.0, 1e30):
        validation.symmetric(size * nearly, "D")
        with refused("symmetric"):
            validation.symmetric(size * wrong, "D")


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_full_column_rank(make):
    good = make(np.stack([np.eye(3)[:, :2], 1e-9 * np.eye(3)[:, 1:]]))
    assert validation.full_column_rank(good, "W") is good
    with refused("W: expected full column rank 2, got rank 1"):
        validation.full_column_rank(make([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), "W")
    with refused("W: expected full column rank 1, got rank 0"):
        validation.full_column_rank(make([[0.0], [0.0]]), "W")
    with refused("W: expected full column rank, got 3 columns of length 2"):
        validation.full_column_rank(make(np.ones((2, 3))), "W")


def test_long_values_are_shortened_in_messages():
    with pytest.raises(ValueError) as caught:
        validation.number(list(range(1000)), "x")
    assert len(str(caught.value)) < 150
