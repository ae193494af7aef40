"""The vocabulary of checks: what passes, what fails, what is refused, what is recorded."""

import json
import math
from fractions import Fraction

import nbformat
import numpy as np
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nbclient import NotebookClient
from scipy import special

from rederive_book import certified, check_lines, checks, rounding, statistics
from rederive_book.checks import Control
from rederive_book.registration import slugify

CLAIM = "regression.foundation"
KEYS = (
    "claim name kind tries expected outcome measured predicted unit uncertainty "
    "source_of_uncertainty statistic control anchor stochastic tests"
).split()
finite = st.floats(-1e6, 1e6)


def noise(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def identity(measured=2.0, predicted=2.0, operations=4, control=None, **more):
    more = {"tries": "statement", **more}
    return checks.identity(
        CLAIM,
        more.pop("name", "sum"),
        measured=measured,
        predicted=predicted,
        operations=operations,
        control=Control("three", predicted=3.0) if control is None else control,
        **more,
    )


def estimate(replicates=None, predicted=0.0, control=None, **more):
    more = {"tries": "statement", **more}
    return checks.estimate(
        CLAIM,
        "mean",
        replicates=replicates,
        predicted=predicted,
        control=Control("forty", predicted=40.0) if control is None else control,
        **more,
    )


def symbolic(left, right, wrong, **more):
    control = Control("another right side", right=wrong)
    more = {"tries": "statement", "control": control, **more}
    return checks.symbolic(CLAIM, "algebra", left=left, right=right, **more)


def compare(left, relation, right, control, **more):
    return checks.certified(
        CLAIM,
        "enclosure",
        tries="statement",
        left=left,
        relation=relation,
        right=right,
        control=control,
        **more,
    )


def law(sample, cdf, control, **more):
    return checks.distribution(
        CLAIM, "law", tries="statement", sample=sample, cdf=cdf, control=control, **more
    )


def ordering(smaller, larger, control, **more):
    return checks.order(
        CLAIM, "order", tries="statement", smaller=smaller, larger=larger, control=control, **more
    )


def power(x, y, slope, control, **more):
    return checks.rate(
        CLAIM, "rate", tries="statement", x=x, y=y, slope=slope, control=control, **more
    )


ONE_OF_EACH_KIND = {
    "identity": identity,
    "symbolic": lambda: symbolic(sympy.Integer(2), 2, 3),
    "certified": lambda: compare(1, "<", 2, Control("below 0", right=0)),
    "bound": lambda: checks.bound(
        CLAIM,
        "squares",
        tries="statement",
        values=noise(9) ** 2,
        above=0.0,
        operations=1,
        control=Control("the numbers themselves", values=noise(9)),
    ),
    "estimate": lambda: estimate(noise(50)),
    "distribution": lambda: law(noise(400), special.ndtr, Control("moved", sample=noise(400) + 1)),
    "order": lambda: ordering(
        noise(40), noise(40, seed=1) + 9, Control("above", larger=noise(40, seed=2) - 9)),
    "rate": lambda: power([1, 2, 4], [[1, 2, 4.1], [1, 2, 3.9], [1, 2.1, 4.1]] * 15, 1.0,
                          Control("square", slope=2.0)),
}  # fmt: skip


# ---------------------------------------------------------------- record and line


@pytest.mark.parametrize("kind", ONE_OF_EACH_KIND)
def test_record_has_its_keys_and_is_json_with_finite_numbers(kind):
    check = ONE_OF_EACH_KIND[kind]()
    record = check.record
    assert list(record) == KEYS
    assert record["kind"] == kind
    assert check.passed and record["outcome"] == "pass" and record["control"]["rejected"]
    assert set(record["statistic"]) == {"name", "value", "dof", "level"}
    assert set(record["control"]) == {"what", "measured", "distance", "rejected"}
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    stochastic = kind in ("estimate", "distribution", "order", "rate")
    assert record["stochastic"] is stochastic
    assert record["tests"] == (2 if stochastic else 0)
    assert record["statistic"]["level"] == (1e-6 if stochastic else None)
    if stochastic:
        assert record["control"]["distance"] >= 10
    else:
        assert record["statistic"]["dof"] is None


@pytest.mark.parametrize("kind", ONE_OF_EACH_KIND)
def test_line_says_what_was_found_and_that_the_control_was_rejected(kind):
    line = repr(ONE_OF_EACH_KIND[kind]())
    assert line.startswith("✓ Check — ")
    assert "Control, " in line and ": rejected, " in line and line.endswith(".")
    assert len(line) < 300 and "\n" not in line


def test_record_cannot_be_changed_through_the_check():
    check = identity()
    check.record["control"]["rejected"] = False
    assert check.record["control"]["rejected"]
    with pytest.raises(AttributeError):
        check.record = {}


def test_anchor_is_made_of_claim_and_name():
    assert identity(name="Größe of α, twice!").record["anchor"] == (
        "check-regression-foundation-groe-of-twice"
    )


@given(st.text())
def test_slug_is_ascii_or_refused(text):
    try:
        slug = slugify(text)
    except ValueError:
        return
    assert slug.isascii() and slug == slug.lower().strip("-") and "--" not in slug


def test_long_arrays_are_recorded_by_their_worst_entry():
    measured = np.zeros(10_000)
    measured[77] = 1e-16
    record = identity(measured, np.zeros(10_000), scale=1.0).record
    assert record["measured"] == 1e-16 and record["predicted"] == 0.0
    assert identity(np.arange(1.0, 4), np.arange(1.0, 4)).record["measured"] == [1.0, 2.0, 3.0]


def test_unit_is_shown():
    assert "(in nats)" in repr(identity(unit="nats"))


def test_line_of_an_unexpected_outcome_says_so_quietly():
    check = identity(2.5)
    assert check.record["outcome"] == "fail" and not check.passed
    assert repr(check).startswith("✗ Check — sum: does not come out as expected")


def test_control_that_is_not_rejected_is_reported():
    check = identity(control=Control("the same", predicted=2.0))
    assert not check.record["control"]["rejected"] and not check.passed
    assert "not rejected, so that this check proves nothing" in repr(check)


NOTEBOOK = """
from rederive_book import checks
from rederive_book.checks import Control
def sum_of(name, **more):
    return checks.identity("a.b", name, tries="statement", measured=2.0, operations=1,
                           **({"predicted": 2.0, "control": Control("3", predicted=3.0)} | more))
"""


def test_a_cell_shows_one_line_for_each_check_and_nothing_more():
    cells = [
        NOTEBOOK + 'sum_of("1 < 2 & so")',
        'first = sum_of("first")\nsum_of("second", predicted=3.0, expected="fail",\n'
        '       control=Control("2", predicted=2.0))\nfirst',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    NotebookClient(notebook, kernel_name="python3").execute()
    outputs = [
        [out for out in cell.outputs if out.output_type != "stream"] for cell in notebook.cells
    ]
    assert [len(shown) for shown in outputs] == [1, 2]
    for output in (*outputs[0], *outputs[1]):
        assert output.output_type == "display_data"
        assert list(output.metadata["rederive_check"]) == KEYS
        assert output.metadata["rederive_check"]["claim"] == "a.b"
        assert set(output.data) == {"text/html", "text/plain"}
    html = outputs[0][0].data["text/html"]
    assert html.startswith('<div class="rederive-check rederive-pass" id="check-a-b-1-2-so">✓')
    assert "1 &lt; 2 &amp; so" in html and "style" not in html
    expected_fail = outputs[1][1].data
    assert 'class="rederive-check rederive-expected-fail"' in expected_fail["text/html"]
    assert expected_fail["text/plain"].startswith("✗ as expected — second: the statement as given")


def test_outside_ipython_nothing_is_shown(capsys):
    identity()
    assert capsys.readouterr().out == ""


# ---------------------------------------------------------------- frame


@pytest.mark.parametrize("kind", [
    checks.identity, checks.symbolic, checks.certified, checks.bound, checks.estimate,
    checks.distribution, checks.order, checks.rate,
])  # fmt: skip
def test_no_check_can_be_made_without_a_control(kind):
    with pytest.raises(TypeError, match="control"):
        kind(CLAIM, "without control", tries="statement")


@pytest.mark.parametrize("claim", ["", "regression", "Regression.x", "a.b.c", "a.b ", "1.x", 3])
def test_claim_id_of_wrong_form_is_refused(claim):
    with pytest.raises(ValueError, match="claim must look like"):
        checks.identity(claim, "sum", tries="statement", measured=1, predicted=1, operations=1,
                        control=Control("two", predicted=2))  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tries": "theorem"}, "tries must be one of"),
        ({"expected": "maybe"}, "expected must be one of"),
        ({"expected": "fail", "tries": "amendment"}, "expected='fail' is for tries='statement'"),
        ({"unit": None}, "unit must be a string"),
        ({"control": "three"}, "control must be a Control"),
        ({"control": Control("x", wrong=1)}, "control replaces wrong; identity has only"),
        ({"control": Control("x", level=0.5)}, "control replaces level"),
        ({"control": Control("x")}, "no rival statement"),
        ({"control": Control("x", operations=1)}, "no rival statement"),
        ({"control": Control("x", predicted=math.nan)}, "control 'x': predicted must be finite"),
        ({"name": "—"}, "name must hold a letter or digit"),
        ({"name": "two\nlines"}, "name must be one line"),
    ],
)
def test_wrong_frame_is_refused_naming_claim_and_check(arguments, message):
    name = arguments.get("name", "sum")
    with pytest.raises(ValueError, match=message) as caught:
        identity(**arguments)
    assert str(caught.value).startswith(f"{CLAIM}, check {name!r}: ")


def test_control_is_described_in_words():
    with pytest.raises(ValueError, match="what must be one line of text"):
        Control(" ", predicted=1)


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("wrong", [
    [], np.zeros((3, 0)), math.nan, [1.0, math.inf], 1 + 0j, True, [True, False], "1.0", None,
    [1.0, None], [[1.0], [1.0, 2.0]], np.ma.masked_array([1.0, 2.0], [False, True]), {1.0}, 2**60,
    [2**53 + 1], np.array([2**60]), np.array([2**70, 1.0], dtype=object), np.longdouble(1),
    torch.ones(2, dtype=torch.complex64), torch.empty(2, device="meta"), 10**400,
])  # fmt: skip
def test_what_is_no_array_of_finite_reals_is_refused(wrong):
    with pytest.raises(ValueError, match="measured"):
        rounding.as_reals(wrong, "measured")


@pytest.mark.parametrize(
    ("value", "unit_roundoff"),
    [
        (1.0, 2.0**-53),
        ([1, 2], 2.0**-53),
        ([Fraction(1, 2), 1], 2.0**-53),
        (np.float32(1), 2.0**-24),
        (np.ones(2, np.float16), 2.0**-11),
        (torch.ones(2), 2.0**-24),
        (torch.ones(2, dtype=torch.float64, requires_grad=True), 2.0**-53),
        (torch.ones(2, dtype=torch.bfloat16), 2.0**-8),
    ],
)
def test_unit_roundoff_is_that_of_the_dtype(value, unit_roundoff):
    array, found = rounding.as_reals(value, "value")
    assert found == unit_roundoff and array.dtype == np.float64


@given(st.integers(1, 10**6))
def test_gamma_bounds_repeated_rounding(operations):
    bound = rounding.gamma(operations, 2.0**-53)
    exact = Fraction(operations, 2**53) / (1 - Fraction(operations, 2**53))
    assert bound == pytest.approx(float(exact), rel=1e-15)
    assert bound >= operations * 2.0**-53


@pytest.mark.parametrize("operations", [0, -1, 1.5, 2.0, True, math.nan, "3", 2**53, None])
def test_operations_must_be_counted(operations):
    with pytest.raises(ValueError, match="operations"):
        identity(operations=operations)


# ---------------------------------------------------------------- identity


@given(finite.filter(lambda v: abs(v) > 1e-6), st.integers(1, 10**4), st.floats(-5, 5))
def test_identity_passes_exactly_within_its_bound(predicted, operations, multiple):
    limit = rounding.gamma(operations, 2.0**-53) * abs(predicted)
    measured = predicted + multiple * limit
    check = identity(measured, predicted, operations, Control("double", predicted=2 * predicted))
    assert (check.record["outcome"] == "pass") == (abs(measured - predicted) <= limit)
    assert check.record["uncertainty"] == limit


@pytest.mark.parametrize(
    ("shape", "other"), [((3, 1), (3,)), ((3,), (3, 1)), ((), (3,)), ((2,), (3,))]
)
def test_identity_refuses_shapes_that_numpy_would_spread(shape, other):
    with pytest.raises(ValueError, match="predicted must be a number or have the shape"):
        identity(np.ones(shape), np.ones(other))


def test_identity_needs_a_scale_where_zero_is_predicted():
    with pytest.raises(ValueError, match="scale must be given"):
        identity([0.0, 1e-17], 0.0)
    assert identity([0.0, 1e-17], 0.0, scale=1.0).passed


@pytest.mark.parametrize("arguments", [
    {"scale": -1.0}, {"scale": 0.0}, {"condition": 0.0}, {"condition": [1.0, 2.0]},
    {"scale": 1e-320},
    {"scale": math.inf}, {"error_bound": -1.0, "error_source": "x"}, {"error_bound": 1.0},
    {"error_source": "x"}, {"error_bound": 1.0, "error_source": " "},
])  # fmt: skip
def test_identity_refuses_sizes_that_make_no_bound(arguments):
    with pytest.raises(ValueError, match=r"scale|condition|error_bound|error_source"):
        identity(**arguments)


def test_identity_error_bound_counts_and_is_named():
    check = identity(2.01, error_bound=0.02, error_source="series cut after ten terms")
    assert check.passed
    assert "series cut after ten terms" in check.record["source_of_uncertainty"]


@pytest.mark.parametrize("swallow", [
    {"condition": 1e20}, {"scale": 1e20}, {"operations": 2**52},
    {"error_bound": 5.0, "error_source": "none"},
])  # fmt: skip
def test_identity_with_a_bound_that_swallows_everything_has_no_rejected_control(swallow):
    assert not identity(2.0, 2.0, **swallow).record["control"]["rejected"]


def test_control_cannot_be_rejected_by_a_tighter_bound_alone():
    """The same prediction, or one within the check's own bound, is no wrong statement."""
    main = {"measured": 2.0, "predicted": 2.0 + 1e-13, "operations": 1000}
    for override in (2.0 + 1e-13, 2.0 - 1e-13):
        check = identity(**main, control=Control("tighter", predicted=override, operations=1))
        assert check.record["outcome"] == "pass"
        assert not check.record["control"]["rejected"]


def test_expected_fail_needs_the_right_statement_as_control():
    shown = identity(2.0, 3.0, expected="fail", control=Control("two", predicted=2.0))
    assert shown.passed and shown.record["outcome"] == "fail"
    assert shown.record["control"]["rejected"] and shown.record["control"]["distance"] > 1e10
    assert "the statement as given is rejected" in repr(shown) and "accepted" in repr(shown)
    both_wrong = identity(2.0, 3.0, expected="fail", control=Control("four", predicted=4.0))
    assert not both_wrong.passed
    agreed = identity(2.0, 2.0, expected="fail", control=Control("two", predicted=2.0))
    assert agreed.record["outcome"] == "pass" and not agreed.passed


# ---------------------------------------------------------------- bound


def bounded(values, control=None, **more):
    more = {"operations": 1, **more}
    control = Control("all twos", values=2.0) if control is None else control
    return checks.bound(CLAIM, "bound", tries="statement", values=values, control=control, **more)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.floats(-1, 1))
def test_bound_passes_if_no_instance_exceeds_it(values, below):
    check = bounded(values, below=below, scale=1.0)
    allowed = check.record["uncertainty"]
    assert (check.record["outcome"] == "pass") == (max(v - below for v in values) <= allowed)
    assert check.record["measured"] == max(values)


def test_bound_takes_both_sides_and_reports_the_broken_one():
    check = bounded([0.5, -0.2, 0.9], below=1.0, above=0.0)
    assert check.record["outcome"] == "fail"
    assert check.record["measured"] == -0.2 and check.record["predicted"] == 0.0


def test_bound_without_a_bound_or_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="below or above"):
        bounded([1.0])
    with pytest.raises(ValueError, match="below must be a number or have the shape"):
        bounded(np.ones((3, 1)), below=np.ones(3))
    with pytest.raises(ValueError, match="must be finite"):
        bounded([1.0], below=math.inf)
    with pytest.raises(ValueError, match="must be finite"):
        bounded([1.0, math.nan], below=1.0)


# ---------------------------------------------------------------- symbolic

x = sympy.Symbol("x")
p = sympy.Symbol("p", positive=True)
n = sympy.Symbol("n", integer=True, positive=True)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((x + 1) ** 2, x**2 + 2 * x + 1),
        (1 / (x + 1) - 1 / (x - 1), -2 / (x**2 - 1)),
        (sympy.sqrt(p**2), p),
        (sympy.sin(x) ** 2 + sympy.cos(x) ** 2, 1),
        (sympy.sqrt(2) + sympy.sqrt(3), sympy.sqrt(5 + 2 * sympy.sqrt(6))),
        (sympy.Sum(sympy.Symbol("k"), (sympy.Symbol("k"), 1, n)), n * (n + 1) / 2),
        (sympy.Integral(sympy.exp(-p * x), (x, 0, sympy.oo)), 1 / p),
        (Fraction(1, 3), sympy.Rational(1, 3)),
        (np.int64(3), 3),
        (sympy.Matrix([[p, 1], [0, x - x]]), sympy.Matrix([[sympy.sqrt(p**2), 1], [0, 0]])),
    ],
)
def test_symbolic_proves_equalities(left, right):
    wrong = right + (sympy.ones(2) if isinstance(right, sympy.MatrixBase) else 1)
    check = symbolic(left, right, wrong)
    assert check.passed and check.record["uncertainty"] == 0.0
    assert isinstance(check.record["measured"], str)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (sympy.sqrt(x**2), x),
        (x**2, x),
        (sympy.cos(n * sympy.pi), 1),
        (sympy.Rational(1, 3), Fraction(333333333333, 10**12)),
        (sympy.exp(sympy.pi * sympy.sqrt(163)), 262537412640768744),
        (sympy.Matrix([[1, x]]), sympy.Matrix([[1, x + sympy.Rational(1, 10**15)]])),
    ],
)
def test_symbolic_shows_inequalities_at_exact_points(left, right):
    control = Control("itself", right=left)
    check = symbolic(left, right, None, expected="fail", control=control)
    assert check.passed and check.record["outcome"] == "fail"
    assert check.record["control"]["distance"] > 0


def test_symbolic_respects_what_is_known_of_the_symbols():
    q = sympy.Symbol("q", negative=True)
    even = sympy.Symbol("m", even=True)
    assert symbolic(sympy.sqrt(q**2), -q, q).passed
    assert symbolic(sympy.cos(even * sympy.pi), 1, 2).passed


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (0.5, sympy.Rational(1, 2), "left must be a SymPy"),
        (x * 0.5, x / 2, "floating-point"),
        (sympy.oo, 1, "must be finite"),
        (True, 1, "left must be exact"),
        (np.ones(2), 1, "left must be a SymPy"),
        (sympy.Eq(x, x), 1, "left must be a SymPy"),
        (sympy.Matrix([1]), 1, "both be matrices"),
        (sympy.Matrix([1, 2]), sympy.Matrix([[1, 2]]), "one shape"),
        (sympy.zeros(0, 2), sympy.zeros(0, 2), "one shape"),
        (sympy.Function("f")(x), sympy.Function("g")(x), "undecided"),
    ],
)
def test_symbolic_refuses_what_is_inexact_or_undecided(left, right, message):
    with pytest.raises(ValueError, match=message):
        symbolic(left, right, 7)


def test_symbolic_number_too_close_for_thirty_digits_is_still_decided_if_rational():
    assert symbolic(1, 1 + sympy.Rational(1, 10**40), None, expected="fail",
                    control=Control("one", right=1)).passed  # fmt: skip


# ---------------------------------------------------------------- certified


def test_certified_proves_an_inequality_between_enclosures():
    root = certified.ball(2).sqrt()
    check = compare(root, "<", "1.41422", Control("two digits less", right="1.41421"))
    assert check.passed
    assert check.record["measured"] == pytest.approx(math.sqrt(2))
    assert 0 < check.record["uncertainty"] < 1e-14


@given(st.fractions(), st.fractions(), st.sampled_from(["<", ">", "<=", ">="]))
def test_certified_decides_fractions_as_fractions(left, right, relation):
    truth = eval(f"left {relation} right", {"left": left, "right": right})
    opposite = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}[relation]
    check = compare(left, relation, right, Control("the opposite", relation=opposite))
    assert (check.record["outcome"] == "pass") == truth


def test_certified_undecided_asks_for_precision():
    with certified.precision(20):
        left = certified.ball(2).sqrt()
    with pytest.raises(ValueError, match="raise the precision"):
        compare(left, "<", "1.4142136", Control("x", right=1))


@pytest.mark.parametrize("left", [0.1, math.nan, True, None, "one", [1, 2]])
def test_certified_refuses_inexact_sides(left):
    with pytest.raises(ValueError, match="left: number must be"):
        compare(left, "<", 2, Control("x", right=0))


def test_certified_refuses_unknown_relations():
    with pytest.raises(ValueError, match="relation must be one of"):
        compare(1, "contains", 2, Control("x", right=0))


# ---------------------------------------------------------------- estimate


@settings(max_examples=50)
@given(st.integers(2, 40), st.floats(-100, 100), st.floats(1e-3, 1e3))
def test_estimate_is_equivariant_under_shift_and_scale(replicates, shift, scale):
    data = noise(replicates, seed=replicates)
    plain = estimate(data, 0.3, Control("far", predicted=1e8))
    moved = estimate(data * scale + shift, 0.3 * scale + shift, Control("far", predicted=1e12))
    assert plain.record["outcome"] == moved.record["outcome"]
    value = plain.record["statistic"]["value"]
    assert moved.record["statistic"]["value"] == pytest.approx(value, rel=1e-6, abs=1e-6)


def test_estimate_reports_standard_error_and_degrees_of_freedom():
    data = noise(30)
    record = estimate(data).record
    assert record["statistic"]["dof"] == 29
    assert record["uncertainty"] == pytest.approx(data.std(ddof=1) / math.sqrt(30))
    assert "30 replicates" in record["source_of_uncertainty"]


def test_estimate_from_mean_and_from_replicates_agree():
    data = noise(50) + 0.1
    error = data.std(ddof=1) / math.sqrt(50)
    given_mean = estimate(mean=data.mean(), standard_error=error, dof=49).record
    assert given_mean["statistic"] == pytest.approx(estimate(data).record["statistic"])
    normal = estimate(mean=[0.1, 0.2], standard_error=[1.0, 1.0], dof=math.inf).record
    assert normal["statistic"]["dof"] is None and normal["measured"] == [0.1, 0.2]


def test_vector_estimate_fails_for_one_wrong_entry():
    data = noise(60, 3)
    right = estimate(data, [0, 0, 0], Control("one entry off", predicted=[0, 3, 0]))
    assert right.passed and len(right.record["measured"]) == 3
    assert estimate(data, [0, 2, 0]).record["outcome"] == "fail"


@pytest.mark.parametrize("arguments", [
    {}, {"mean": 1.0}, {"mean": 1.0, "standard_error": 1.0}, {"replicates": noise(9), "dof": 3},
    {"mean": 1.0, "standard_error": 0.0, "dof": 3}, {"mean": 1.0, "standard_error": 1.0, "dof": 0},
    {"mean": 1.0, "standard_error": 1.0, "dof": -math.inf},
    {"mean": [1.0, 2.0], "standard_error": 1.0, "dof": 3}, {"replicates": [1.0]},
    {"replicates": 1.0}, {"replicates": noise(3, 3, 3)}, 
    {"replicates": noise(9, 2), "predicted": [0] * 9},
    {"replicates": noise(9), "predicted": [0] * 9}, {"replicates": [1.0, math.nan]},
    {"replicates": noise(9), "margin": 0.0, "margin_source": "x"},
    {"replicates": noise(9), "margin": 1.0}, {"replicates": noise(9), "margin_source": "x"},
    {"replicates": noise(9), "bias_bound": 1.0}, {"replicates": noise(9), "bias_source": "x"},
    {"replicates": noise(9), "bias_bound": -1.0, "bias_source": "x"},
    {"replicates": noise(9) > 0},
])  # fmt: skip
def test_estimate_refuses_what_it_cannot_judge(arguments):
    with pytest.raises(ValueError, match=f"{CLAIM}, check 'mean'"):
        estimate(**arguments)


@pytest.mark.filterwarnings("ignore:overflow")
def test_numbers_that_overflow_are_refused():
    with pytest.raises(ValueError, match="too large for their variance"):
        estimate(1e200 * noise(10))
    with pytest.raises(ValueError, match="must be finite"):
        identity(1.5e308, -1.5e308, control=Control("x", predicted=1.5e308))


def test_replicates_without_spread_are_refused():
    with pytest.raises(ValueError, match="do not vary"):
        estimate(np.ones(10), 1.0)
    with pytest.raises(ValueError, match="do not vary"):
        estimate(np.column_stack([noise(10), np.ones(10)]), [0.0, 1.0])


@pytest.mark.parametrize("sign", [1, -1])
def test_skewed_replicates_are_refused_with_the_number_needed(sign):
    drawn = sign * np.random.default_rng(0).lognormal(sigma=1.5, size=300)
    with pytest.raises(ValueError, match=r"skewness .* for 300 .* about \d{4,6} are"):
        estimate(drawn, math.exp(1.125), Control("x", predicted=1e6))
    averaged = np.random.default_rng(0).standard_exponential((300, 400)).mean(axis=1)
    assert estimate(averaged, 1.0).passed


@pytest.mark.parametrize("bias", [0.0, 0.5])
def test_bias_bound_widens_the_check_and_nears_the_control(bias):
    more = {"bias_bound": bias, "bias_source": "finite size"} if bias else {}
    data = noise(100) + bias
    near = estimate(data, 0.0, Control("x", predicted=3.0), **more)
    assert near.passed
    error = near.record["uncertainty"]
    assert near.record["control"]["distance"] == pytest.approx((3.0 - 2 * bias) / error)


def test_bias_bound_that_swallows_the_control_is_refused():
    for more in (
        {"bias_bound": 50.0, "bias_source": "x"},
        {"margin": 50.0, "margin_source": "x"},
    ):
        with pytest.raises(ValueError, match="standard errors away"):
            estimate(noise(100), **more)


def test_control_cannot_be_rejected_by_smaller_allowances_or_errors_alone():
    data = noise(100) + 0.5
    no_bias = Control("no bias", predicted=0.0, bias_bound=0.0, bias_source=None)
    with pytest.raises(ValueError, match="standard errors away"):
        estimate(data, bias_bound=1.0, bias_source="x", control=no_bias)
    smaller_error = Control("x", predicted=0.01, standard_error=1e-6)
    with pytest.raises(ValueError, match="standard errors away"):
        estimate(mean=0.5, standard_error=1.0, dof=9, control=smaller_error)
    with pytest.raises(ValueError, match="no rival statement"):
        estimate(data, bias_bound=1.0, bias_source="x", control=Control("x", bias_bound=0.0))


def test_control_nearer_than_ten_standard_errors_is_refused_with_advice():
    with pytest.raises(ValueError, match=r"lies 5 standard errors away, at least 10 are needed"):
        estimate(mean=0.0, standard_error=1.0, dof=99, control=Control("5", predicted=5.0))
    with pytest.raises(ValueError, match="hand over more replicates"):
        estimate(noise(100), control=Control("own data", replicates=noise(100, seed=1) + 0.5))
    assert estimate(
        noise(100), control=Control("own data", replicates=noise(100, seed=1) + 2)
    ).passed


def test_few_degrees_of_freedom_need_controls_farther_off():
    with pytest.raises(ValueError, match=r"lies 20 standard errors away, at least 29\.7"):
        estimate(mean=0.0, standard_error=1.0, dof=7, control=Control("20", predicted=20.0))
    assert estimate(
        mean=0.0, standard_error=1.0, dof=7, control=Control("x", predicted=30.0)
    ).passed


def test_equivalence_is_an_interval_inside_the_margin():
    common = {"margin": 0.5, "margin_source": "theory", "control": Control("x", predicted=9.0)}
    assert estimate(noise(400), **common).record["outcome"] == "pass"
    assert estimate(noise(20), **common).record["outcome"] == "fail"
    assert estimate(noise(400) + 3.0, **common).record["outcome"] == "fail"


def test_lack_of_power_is_no_rejection():
    """An interval that straddles the margin, or an order not shown, refutes nothing."""
    control = Control("nine", predicted=9.0, margin=8.0)
    with pytest.raises(ValueError, match="undecided, so the statement is not rejected"):
        estimate(noise(20), margin=0.5, margin_source="x", expected="fail", control=control)
    with pytest.raises(ValueError, match="undecided, so the statement is not rejected"):
        control = Control("nine above", larger=noise(20, seed=2) + 9)
        ordering(noise(20), noise(20, seed=1), control, expected="fail")


def test_statement_rejected_by_an_estimate():
    check = estimate(noise(50), 5.0, Control("zero", predicted=0.0), expected="fail")
    assert check.passed and "the rivals lie" in repr(check)


# ---------------------------------------------------------------- order


def test_order_passes_only_if_the_difference_is_shown_positive():
    common, up = noise(40), 1.0 + 0.3 * noise(40, seed=2)
    against = Control("the other way", smaller=common + up, larger=common)
    assert ordering(common, common + up, against).passed
    undecided = ordering(common, common + 0.3 * noise(40, seed=3), against)
    assert undecided.record["outcome"] == "fail" and undecided.record["control"]["rejected"]


def test_order_is_paired():
    """Common noise ten thousand times the difference is no obstacle."""
    common, up = 1e4 * noise(40), 1.0 + 0.1 * noise(40, seed=2)
    assert ordering(common, common + up, Control("x", larger=common - up)).passed
    with pytest.raises(ValueError, match="must be paired"):
        ordering(noise(40), noise(39), Control("x", larger=noise(39)))


def test_order_control_must_show_the_opposite():
    up = 1.0 + 0.3 * noise(40)
    with pytest.raises(ValueError, match="standard errors away"):
        ordering(np.zeros(40), up, Control("no order", larger=noise(40, seed=5)))
    with pytest.raises(ValueError, match="lies 0 standard errors away"):
        ordering(np.zeros(40), up, Control("the same", larger=up))


def test_order_of_several_needs_each():
    up = 5.0 + noise(40, 3)
    check = ordering(np.zeros((40, 3)), up, Control("one reversed", larger=up * [1, -1, 1]))
    assert check.passed
    mixed = ordering(np.zeros((40, 3)), up - [0, 0, 5], Control("x", larger=-up))
    assert mixed.record["outcome"] == "fail"


def test_deterministic_order_is_refused():
    with pytest.raises(ValueError, match="do not vary"):
        ordering(np.zeros(9), np.ones(9), Control("x", larger=-np.ones(9)))


# ---------------------------------------------------------------- distribution


def test_distribution_distance_is_in_units_of_the_largest_standard_error():
    draws = noise(2500)
    check = law(draws, special.ndtr, Control("moved", cdf=lambda t: special.ndtr(t - 0.5)))
    gap = np.max(np.abs(special.ndtr(draws) - special.ndtr(draws - 0.5)))
    assert check.passed
    assert check.record["control"]["distance"] == pytest.approx(gap * 2 * 50)
    assert check.record["statistic"]["dof"] == 2500
    with pytest.raises(ValueError, match="standard errors away"):
        law(draws, special.ndtr, Control("near", cdf=lambda t: special.ndtr(t - 0.1)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample": np.repeat(noise(50), 2)}, "ties"),
        ({"sample": noise(9, 9)}, "sample must be"),
        ({"sample": [1.0]}, "sample must be"),
        ({"sample": [1.0, math.nan]}, "sample must be finite"),
        ({"cdf": 0.5}, "cdf must be a function"),
        ({"cdf": lambda t: 0.5}, "keep the shape"),
        ({"cdf": lambda t: 2 * special.ndtr(t)}, "rise from 0 to 1"),
        ({"cdf": lambda t: 1 - special.ndtr(t)}, "rise from 0 to 1"),
        ({"cdf": lambda t: t * math.nan}, "must be finite"),
        ({"grid": [0.0]}, "grid goes with rigid"),
        ({"rigid": True}, "grid goes with rigid"),
        ({"rigid": 1, "grid": [0.0]}, "rigid must be True or False"),
        ({"bias_bound": 2.0, "bias_source": "x"}, "standard errors away"),
    ],
)
def test_distribution_refuses_what_it_cannot_judge(arguments, message):
    common = {
        "sample": noise(100),
        "cdf": special.ndtr,
        "control": Control("x", sample=noise(90) + 9),
    }
    with pytest.raises(ValueError, match=message):
        law(**{**common, **arguments})


def semicircle(points):
    points = np.clip(points, -2, 2)
    return 0.5 + points * np.sqrt(4 - points**2) / (4 * np.pi) + np.arcsin(points / 2) / np.pi


def wigner_spectra(count, size, seed=0):
    matrices = noise(count, size, size, seed=seed)
    return np.linalg.eigvalsh((matrices + matrices.swapaxes(1, 2)) / math.sqrt(2 * size))


def test_rigid_spectra_keep_to_the_semicircle_and_not_to_one_moved_by_a_fortieth_of_its_width():
    """3000 eigenvalues of Wigner matrices: as independent draws they would not tell the two."""
    spectra = wigner_spectra(60, 50)
    more = {"rigid": True, "grid": [-1.0, 0.0, 1.0], "bias_bound": 0.5, "bias_source": "edge"}
    wider = Control("uniform law", cdf=lambda t: np.clip((t + 2) / 4, 0, 1))
    check = law(spectra, semicircle, wider, **more)
    assert check.passed and check.record["statistic"]["dof"] == 59
    shifted = law(spectra + 0.1, semicircle, wider, **more)
    assert shifted.record["outcome"] == "fail"
    gap = np.max(np.abs(semicircle(spectra + 0.1) - semicircle(spectra)))
    assert gap < statistics.kolmogorov_quantile(statistics.LEVEL, spectra.size)


def gapped_spectra(upper=5):
    """Five eigenvalues below a gap, `upper` above it, always."""
    below = np.sort(np.random.default_rng(1).uniform(0, 1, (30, 10 - upper)))
    above = np.sort(np.random.default_rng(2).uniform(2, 3, (30, upper)))
    return np.hstack([below, above])


def test_counts_constant_in_a_gap_are_judged_exactly():
    def half(points):
        return np.where(points < 1, points / 2, np.where(points < 2, 0.5, (points - 1) / 2))

    more = {"rigid": True, "grid": [1.5]}
    control = Control("one more above", sample=gapped_spectra(6))
    exact = law(gapped_spectra(), half, control, **more)
    assert exact.passed and exact.record["uncertainty"] == 0.0
    assert exact.record["control"]["distance"] == pytest.approx(30.0)
    assert law(gapped_spectra(4), half, control, **more).record["outcome"] == "fail"
    bias = {"bias_bound": 1.0, "bias_source": "x"}
    assert law(
        gapped_spectra(4), half, Control("x", sample=gapped_spectra(8)), **more, **bias
    ).passed


def test_counting_functions_that_leave_a_constant_only_now_and_then_are_refused():
    spectra = np.vstack([gapped_spectra()] * 4)
    spectra[:3, 5] = 1.2
    with pytest.raises(ValueError, match="the counting functions have skewness"):
        law(spectra, lambda t: np.clip(t / 3, 0, 1), Control("x", sample=spectra + 9),
            rigid=True, grid=[1.5])  # fmt: skip


def test_variance_floor_is_the_least_variance_of_whole_numbers():
    floor = statistics.least_count_variance
    assert floor(np.array([2.0, 2.5, 2.25, -0.25]), 0.0) == pytest.approx([0, 0.25, 0.1875, 0.1875])
    assert floor(np.array([2.5]), 0.25) == pytest.approx([0.1875])
    assert floor(np.array([2.5]), 0.5) == [0.0]
    assert floor(np.array([2.4]), 1.7) == [0.0]


@given(st.floats(0, 50), st.floats(0, 3))
def test_variance_floor_is_below_every_two_valued_variance_in_the_interval(predicted, bias):
    means = np.linspace(predicted - bias, predicted + bias, 101)
    shares = means - np.floor(means)
    floor = statistics.least_count_variance(np.array([predicted]), bias)[0]
    assert floor <= np.min(shares * (1 - shares)) + 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample": noise(9)}, "sample must be"),
        ({"sample": noise(1, 9)}, "sample must be"),
        ({"grid": [1.0, 0.0]}, "ascending"),
        ({"grid": [[0.0]]}, "ascending"),
        ({"grid": []}, "at least one entry"),
        ({"control": Control("x", sample=noise(90) + 9, rigid=False, grid=None)}, "agree on rigid"),
        ({"control": Control("x", cdf=semicircle, grid=[0.0])}, "keep the entries"),
        ({"bias_bound": 100.0, "bias_source": "x"}, "standard errors away"),
    ],
)
def test_rigid_distribution_refuses_what_it_cannot_judge(arguments, message):
    common = {
        "sample": wigner_spectra(40, 9),
        "cdf": semicircle,
        "rigid": True,
        "grid": [-0.5, 0.5],
        "control": Control("x", sample=wigner_spectra(40, 9) + 9),
    }
    with pytest.raises(ValueError, match=message):
        law(**{**common, **arguments})


# ---------------------------------------------------------------- rate

SIZES = np.array([8.0, 16, 32, 64])


@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_rate_of_an_exact_power_law_is_found_to_rounding(slope, factor):
    check = power(SIZES, factor * SIZES**slope, slope, Control("one more", slope=slope + 1))
    assert check.passed and not check.record["stochastic"]
    assert check.record["uncertainty"] < 1e-12


@given(st.floats(-3, 3), st.floats(1, 1e6), st.floats(0.01, 0.5))
def test_rounding_bound_of_the_slope_holds_for_crowded_sizes_far_from_one(slope, start, step):
    x = start * (1 + step * np.arange(1, 6))
    check = power(x, x**slope, slope, Control("one more", slope=slope + 1))
    assert check.passed


def test_rate_before_the_asymptotic_needs_its_bound():
    y = SIZES**-1 * (1 + 1 / SIZES)
    control = Control("square root", slope=-0.5)
    assert power(SIZES, y, -1.0, control).record["outcome"] == "fail"
    bound = math.log1p(1 / 8) / math.log(2)
    assert power(SIZES, y, -1.0, control, slope_bound=bound, bound_source="1/x term").passed
    swallowed = power(SIZES, y, -1.0, control, slope_bound=9.0, bound_source="1/x term")
    assert not swallowed.passed


def test_rate_of_replicates_has_an_interval():
    y = SIZES**-1 * np.exp(0.1 * noise(40, 4))
    check = power(SIZES, y, -1.0, Control("square root", slope=-0.5))
    assert check.passed and check.record["stochastic"] and check.record["statistic"]["dof"] == 39


@pytest.mark.parametrize("arguments", [
    {"x": [1.0]}, {"x": [1, 1, 2, 3]}, {"x": -SIZES}, {"x": SIZES[:, None]}, {"y": SIZES[:3]},
    {"y": -SIZES}, {"y": np.ones((1, 4))}, {"y": np.ones((3, 4))}, {"y": np.ones((3, 4, 1))},
    {"slope": [1.0, 2.0]}, {"slope_bound": 1.0}, {"slope_bound": -1.0, "bound_source": "x"},
    {"control": Control("x", y=np.exp(noise(9, 4)))},
])  # fmt: skip
def test_rate_refuses_what_it_cannot_judge(arguments):
    common = {"x": SIZES, "y": SIZES, "slope": 1.0, "control": Control("x", slope=2.0)}
    with pytest.raises(ValueError, match=f"{CLAIM}, check 'rate'"):
        power(**{**common, **arguments})


# ---------------------------------------------------------------- quantiles


def test_quantiles_are_those_of_student_and_kolmogorov():
    assert statistics.quantile(0.05, 1, math.inf) == pytest.approx(1.959963985, rel=1e-9)
    assert statistics.quantile(0.05, 1, 1) == pytest.approx(math.tan(math.pi * 0.475))
    assert statistics.quantile(0.05, 10, 3) == statistics.quantile(0.005, 1, 3)
    assert statistics.kolmogorov_quantile(0.3, 1) == pytest.approx(0.85)


@pytest.mark.parametrize("dof", [1, 5, 30, 400])
def test_required_distance_gives_the_promised_power(dof):
    """Independent method: the noncentral t law."""
    from scipy import stats

    level = 1e-3
    distance = statistics.required_distance(dof, 1, level)
    power_there = stats.nct.sf(statistics.quantile(level, 1, dof), dof, distance)
    if distance > statistics.STANDARD_ERRORS:
        assert power_there == pytest.approx(statistics.POWER, abs=2e-5)
    else:
        assert power_there >= statistics.POWER


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("differ by 3 at delta = 7/5, y0 = 29/23", "differ by 3 at δ = 7/5, y₀ = 29/23"),
        ("at sigma2 = 1/2, lambda1 = 3", "at σ² = 1/2, λ₁ = 3"),
        ("the delta method, deltas = 2, Adelta = 1", "the delta method, deltas = 2, Adelta = 1"),
    ],
)
def test_symbols_of_a_line_are_those_of_the_text(written, read):
    assert check_lines.with_letters(written) == read
