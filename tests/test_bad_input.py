"""What is not fit for a public function is refused by name, or taken to a result that is finite."""

import dataclasses
import inspect

import bad_input
import numpy as np
import pytest
import torch
from bad_input_cases import CASES, OBJECTS, RNG
from hypothesis import given, settings
from hypothesis import strategies as st
from test_contract import MODULES, public_functions

from rederive import encoder, transformer

# Public names without a check of their arguments, and why.
UNCHECKED = {
    "flow_kernels.largest_score": "its module leaves the checks to those who call it",
    "flow_kernels.moved_moments": "its module leaves the checks to those who call it",
    "flow_kernels.pair_sums": "its module leaves the checks to those who call it",
    "flow_kernels.rates": "its module leaves the checks to those who call it",
    "head_weights.Frozen.drift": "called once a stage by integrate, with its own arrays",
    "head_weights.Frozen.step": "called once a step by integrate, with its own arrays",
    "head_weights.OrnsteinUhlenbeck.drift": "called once a step by integrate, with its own arrays",
    "head_weights.OrnsteinUhlenbeck.step": "called once a step by integrate, with its own arrays",
    "head_weights.Oscillating.drift": "called once a stage by integrate, with its own arrays",
    "head_weights.Relaxing.drift": "called once a stage by integrate, with its own arrays",
    "product_curve.ProductCurve": "kernels of FreeMPProduct, which checks",
}

# Modules whose arguments are other machines.
ELSEWHERE = {"clusters": "tests/test_clusters.py tries what goes wrong between machines"}

# Arguments that are not spoilt, and why.
LEFT_OUT = {
    ("replicates.replicate", "label"): "words in front of a bar, of any kind",
    ("replicates.replicate", "executor"): "tests/test_clusters.py tries what no executor is",
}

# What a function may do besides, in the words of its docstring.
DOCUMENTED = {
    "allocation.head_size_risk": {"inf": "inf where it exceeds"},
    "covariances.fixed_query_bounds": {"inf": "inf where a term of it overflows"},
    "covariances.query_averaged_bounds": {"inf": "the upper one inf if"},
    "diversity.head_covariance": {"inf": "inf where the integral over the queries diverges"},
    "flows.energy": {"inf": "inf where it exceeds"},
    "flows.effective_mobility": {"inf": "inf where it exceeds"},
    "flows.energy_gradient": {"inf": "inf where it exceeds"},
    "flows.mobility_covariance": {"inf": "inf where it exceeds"},
    "flows.dissipation": {"inf": "inf where it exceeds"},
    "flows.claimed_dissipation": {"inf": "inf where it exceeds"},
    "flows.squared_slope": {"inf": "inf where it exceeds"},
    "flows.velocity": {"inf": "are then ±inf, never NaN"},
    "free_probability.FreeMPProduct.pdf": {"inf": "inf at a hard edge"},
    "free_probability.FreeMPProduct.moment": {"inf": "inf where it exceeds"},
    "free_probability.FreeMPProduct.curve": {"inf": "at a hard edge the density is inf"},
    "integrators.integrate": {
        "inf": "may overflow to inf or become NaN",
        "nan": "may overflow to inf or become NaN",
    },
    "jump_laws.marchenko_pastur_pdf": {"inf": "inf at the hard edge"},
    "transport.minimising_movements": {RuntimeError: "If the tolerance is not reached"},
}

# Where a number at random would be a valid order for hours of work.
TAME = {
    ("integrators.integrate", "dt"): st.sampled_from([0.1, 0.2, 0.05, 0.03, 1e-12]),
    ("integrators.integrate", "final_time"): st.sampled_from([0.0, 0.1, 0.15, 3.0, 1e12]),
    ("transport.minimising_movements", "tolerance"): st.floats(1e-8, 1e300),
}


def public_names():
    """Functions, classes and methods of the library, but for records and errors."""
    found = {}
    for short, module in ((s, m) for s, m in MODULES.items() if s not in ELSEWHERE):
        found |= {
            f"{short}.{name}": function for name, function in public_functions(module).items()
        }
        for name, kind in inspect.getmembers(module, inspect.isclass):
            record = issubclass(kind, tuple | Exception) or dataclasses.is_dataclass(kind)
            if kind.__module__ != module.__name__ or name.startswith("_"):
                continue
            methods = inspect.getmembers(kind, inspect.isfunction)
            own = {n: m for n, m in methods if n in vars(kind) and not n.startswith("_")}
            if f"{short}.{name}" not in UNCHECKED:
                found |= {f"{short}.{name}.{n}": method for n, method in own.items()}
            if not record:
                found[f"{short}.{name}"] = kind
    return found


NAMES = public_names()
every_case = pytest.mark.parametrize("name", CASES)


def target(name):
    """What to call: methods are bound to the object of their class."""
    owner, _, last = name.rpartition(".")
    return getattr(OBJECTS[owner], last) if owner in OBJECTS else NAMES[name]


def arguments_of(name):
    return {n: v for n, v in CASES[name].items() if (name, n) not in LEFT_OUT}


def complaints(name, spoil, *, own):
    found, allowed = [], DOCUMENTED.get(name, ())
    for argument, value in arguments_of(name).items():
        for label, spoilt in spoil(value).items():
            wrong = bad_input.complaint(
                target(name), CASES[name], argument, spoilt, RNG, own=own, allowed=allowed
            )
            found += [f"{argument}: {label}: {wrong}"] * bool(wrong)
    return "\n".join(found)


def test_every_public_name_is_tried_or_left_out_with_a_reason():
    assert set(CASES) | set(UNCHECKED) == set(NAMES) | {"product_curve.ProductCurve"}
    assert not set(CASES) & set(UNCHECKED)
    assert "Arguments are not checked here" in MODULES["flow_kernels"].__doc__
    assert "nothing is checked here" in MODULES["product_curve"].ProductCurve.__doc__


def test_what_is_allowed_besides_is_documented():
    for name, phrases in DOCUMENTED.items():
        words = " ".join(inspect.getdoc(NAMES[name]).split())
        assert all(phrase in words for phrase in phrases.values()), name


@every_case
def test_cases_are_valid_and_name_every_argument(name):
    parameters = inspect.signature(target(name)).parameters
    left_out = {argument for where, argument in LEFT_OUT if where == name}
    assert list(parameters) == [p for p in parameters if p in CASES[name] or p in left_out]
    assert set(CASES[name]) <= set(parameters)
    found = bad_input.call(target(name), CASES[name], RNG, patience=60)
    assert all(np.isfinite(part).all() for part in bad_input.numbers_in(found))


@every_case
def test_a_wrong_kind_is_refused_under_the_name_of_its_argument(name):
    bad_input.call(target(name), CASES[name], RNG, patience=60)
    assert complaints(name, bad_input.wrong_kinds, own=True) == ""


@every_case
def test_a_wrong_size_is_refused_or_gives_numbers(name):
    def spoil(value):
        return bad_input.wrong_sizes(value) | {"None": None}

    bad_input.call(target(name), CASES[name], RNG, patience=60)
    assert complaints(name, spoil, own=False) == ""


@every_case
def test_the_same_numbers_in_another_container_give_the_same(name):
    wanted = bad_input.numbers_in(bad_input.call(target(name), CASES[name], RNG, patience=60))
    for argument, value in arguments_of(name).items():
        for same in bad_input.other_containers(value).values():
            found = bad_input.call(target(name), CASES[name] | {argument: same}, RNG)
            for one, other in zip(bad_input.numbers_in(found), wanted, strict=True):
                assert np.array_equal(one, other), argument


@every_case
@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_numbers_at_random_are_refused_or_give_numbers(name, data):
    arguments = arguments_of(name)
    if not arguments:
        return
    argument = data.draw(st.sampled_from(sorted(arguments)), "argument")
    value = arguments[argument]
    spoilt = data.draw(TAME.get((name, argument), bad_input.at_random(value)), "value")
    allowed = DOCUMENTED.get(name, ())
    wrong = bad_input.complaint(
        target(name), CASES[name], argument, spoilt, RNG, own=False, allowed=allowed
    )
    assert wrong is None, f"{name}({argument}={spoilt!r}): {wrong}"


@pytest.mark.parametrize(
    ("name", "argument", "record"),
    [
        ("pooled_models.conditional_covariance", "vocabulary", {"embeddings": [[np.nan], [0.0]]}),
        ("pooled_models.conditional_covariance", "vocabulary", {"embeddings": np.ones((3, 2))}),
        ("pooled_models.covariance_terms", "vocabulary", {"signal": np.ones(3)}),
        ("pooled_spectra.covariance_operator", "vocabulary", {"signal": "nonsense"}),
        ("encoder.forward", "config", {"n_heads": 0}),
        ("encoder.forward", "config", {"n_heads": 3}),
        ("encoder.embed", "config", {"dim": "4"}),
        ("encoder.heads", "config", {"n_layers": 1.5}),
        ("encoder.layer_pass", "config", {"norm_epsilon": np.nan}),
        ("encoder.layer_pass", "config", {"norm_epsilon": -1.0}),
    ],
)
def test_a_spoilt_record_is_refused(name, argument, record):
    spoilt = CASES[name][argument]._replace(**record)
    wrong = bad_input.complaint(target(name), CASES[name], argument, spoilt, RNG, own=True)
    assert wrong is None


@pytest.mark.parametrize("run", [("up", 2), ("random", 0), ("random", 2, "cubic"), (), "random", 3])
def test_a_spoilt_run_is_refused(run):
    name = "transformer.train_in_context"
    wrong = bad_input.complaint(target(name), CASES[name], "runs", [run], RNG, own=True)
    assert wrong is None
    assert transformer.Run("random", 2) in CASES[name]["runs"]


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_spoilt_weights_of_an_encoder_leave_no_nan(bad):
    case = CASES["encoder.forward"]
    for key, tensor in case["tensors"].items():
        spoilt = case["tensors"] | {key: torch.full_like(tensor, bad)}
        wrong = bad_input.complaint(encoder.forward, case, "tensors", spoilt, RNG, own=False)
        assert wrong is None, key


def test_the_law_notices_what_breaks_it():
    def planted(x):
        return {1: np.nan, 2: np.inf, 3: 1.0}[x] if x < 4 else [][x]

    def refusing(x):
        raise ValueError(f"y: expected less, got {x}")

    def idle(x):
        while True:
            pass

    def unnamed(x):
        return np.ones(2) / x

    wrong = [
        bad_input.complaint(function, {"x": 0}, "x", value, RNG, own=True)
        for function, value in (
            (planted, 1),
            (planted, 2),
            (planted, 5),
            (refusing, 1),
            (unnamed, np.zeros(2)),
            (unnamed, "a"),
        )
    ]
    assert all(wrong)
    assert bad_input.complaint(planted, {"x": 0}, "x", 3, RNG, own=True) is None
    assert bad_input.complaint(planted, {"x": 0}, "x", 2, RNG, own=True, allowed=("inf",)) is None
    with pytest.raises(bad_input.Hang), bad_input.deadline(0.05):
        idle(1)
