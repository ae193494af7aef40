"""The names, arguments and types that the pages and other modules rely on."""

import inspect
import pathlib
import re

import numpy as np
import pytest

import rederive
import rederive_book
from rederive import (
    allocation,
    attention,
    classification,
    clusters,
    covariances,
    diversity,
    encoder,
    ensembles,
    finite_tables,
    flow_kernels,
    flow_logarithms,
    flows,
    fluctuations,
    free_probability,
    fusion_frames,
    head_response,
    head_risk,
    head_weights,
    integrators,
    jump_laws,
    pair_blocks,
    pooled_models,
    pooled_spectra,
    product_curve,
    relaxation,
    replicates,
    ridge_limits,
    sequences,
    sign_sequences,
    smoothing,
    sphere,
    spikes,
    transformer,
    transport,
    vocabularies,
)

MODULES = {
    module.__name__.split(".")[1]: module
    for module in (
        allocation,
        attention,
        classification,
        clusters,
        covariances,
        diversity,
        encoder,
        ensembles,
        finite_tables,
        flow_kernels,
        flow_logarithms,
        flows,
        fluctuations,
        free_probability,
        fusion_frames,
        head_response,
        head_risk,
        head_weights,
        integrators,
        jump_laws,
        pair_blocks,
        pooled_models,
        pooled_spectra,
        product_curve,
        relaxation,
        replicates,
        ridge_limits,
        sequences,
        sign_sequences,
        smoothing,
        sphere,
        spikes,
        transformer,
        transport,
        vocabularies,
    )
}

# Every call that others make by position, with the names of its arguments.
CONTRACT = {
    "attention.attention_weights": "queries keys inverse_temperature",
    "smoothing.nadaraya_watson": "queries keys values bandwidth",
    "diversity.principal_cosines": "a b",
    "diversity.head_diversity_index": "projections",
    "diversity.head_diversity_index_as_stated": "projections",
    "diversity.head_covariance": "cosines inverse_temperature",
    "diversity.welch_diversity": "n_heads head_dim target_rank",
    "ensembles.mse_decomposition": "weights values target noise_variance mixing",
    "ensembles.optimal_mixing": "mse_matrix",
    "replicates.replicate": "function count seed",
    "spikes.spike_parameter": "snr signal_norm2 delta",
    "spikes.spike_parameter_as_stated": "snr signal_norm2 delta",
    "spikes.outlier": "y delta gamma",
    "spikes.critical_spike": "delta gamma",
    "sequences.harmonic_weights": "length",
    "sequences.optimal_weights": "correlation",
    "sequences.signal_to_noise": "weights correlation",
    "flows.energy": "tokens heads",
    "flows.velocity": "tokens heads flow",
    "flows.effective_mobility": "tokens heads",
    "flows.dissipation": "tokens heads",
    "flows.claimed_dissipation": "tokens heads",
}


def public_functions(module):
    """The functions that a module defines for others, but for its checks of arguments."""
    found = inspect.getmembers(module, inspect.isfunction)
    return {
        name: function
        for name, function in found
        if function.__module__ == module.__name__ and not name.startswith(("_", "check_"))
    }


EVERY_FUNCTION = [
    pytest.param(function, id=f"{short}.{name}")
    for short, module in MODULES.items()
    for name, function in public_functions(module).items()
]


@pytest.mark.parametrize(("call", "names"), CONTRACT.items())
def test_contract_names_and_arguments(call, names):
    module, name = call.split(".")
    parameters = inspect.signature(getattr(MODULES[module], name)).parameters
    wanted = names.split()
    assert list(parameters)[: len(wanted)] == wanted
    for extra in list(parameters.values())[len(wanted) :]:
        assert extra.default is not inspect.Parameter.empty, f"{extra.name} needs a default"


def sections(docstring):
    """The sections of a numpydoc docstring: title → lines."""
    parts = re.split(r"^(\w+)\n-+\n", inspect.cleandoc(docstring), flags=re.MULTILINE)
    return {"Summary": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("function", EVERY_FUNCTION)
def test_docstrings_name_every_argument_and_what_comes_back(function):
    documented = sections(function.__doc__)
    heads = re.findall(r"^(\w[\w, ]*)(?: : .*)?$", documented["Parameters"], flags=re.MULTILINE)
    names = [name for head in heads for name in re.split(r",\s*", head)]
    assert names == list(inspect.signature(function).parameters)
    assert all(documented[title].strip() for title in ("Summary", "Returns", "Raises"))


def test_every_module_is_listed():
    there = {path.stem for path in pathlib.Path(rederive.__file__).parent.glob("*.py")}
    assert set(MODULES) == there - {"__init__", "validation"}


@pytest.mark.parametrize("package", [rederive, rederive_book])
def test_the_packages_hold_a_docstring_and_a_version_only(package):
    source = pathlib.Path(package.__file__).read_text(encoding="utf-8")
    names = compile(source, package.__file__, "exec").co_names
    assert set(names) == {"__doc__", "__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", package.__version__)


def test_numpy_modules_return_floats_and_arrays():
    frames = np.eye(4).reshape(4, 2, 2).swapaxes(0, 1)
    floats = [
        diversity.head_diversity_index(frames),
        diversity.head_diversity_index_as_stated(frames),
        diversity.head_covariance([0.5, 0.1], 0.3),
        diversity.welch_diversity(4, 4, 8),
        ensembles.mse_decomposition([[1.0]], [1], 0, 1, [1]).total,
        ensembles.mixing_risk([1], [[1]]),
    ]
    assert all(isinstance(found, float) for found in floats)
    arrays = [
        diversity.principal_cosines(frames[0], frames[1]),
        ensembles.optimal_mixing(np.eye(2)),
        replicates.replicate(lambda rng: rng.random(), 2, 0),
    ]
    assert all(found.dtype == np.float64 and type(found) is np.ndarray for found in arrays)
