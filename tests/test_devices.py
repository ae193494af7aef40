"""Every function of tensors answers on the device and in the dtype of what it was given.

No GPU is needed: tensors without memory live on the device "meta", and whatever a function makes
on the CPU, moves there or asks for as a number is noticed. What cannot run without numbers is
listed with the reason and tried on the CPU.
"""

import inspect
import pathlib
import types

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from rederive import (
    attention,
    encoder,
    flow_kernels,
    flows,
    head_weights,
    integrators,
    smoothing,
    sphere,
    transformer,
    transport,
)

LIBRARY = types.SimpleNamespace(
    attention=attention,
    encoder=encoder,
    flow_kernels=flow_kernels,
    flows=flows,
    integrators=integrators,
    smoothing=smoothing,
    sphere=sphere,
    transformer=transformer,
    transport=transport,
)

# Functions that return no tensor: there is nothing to keep.
WITHOUT_TENSORS = {
    "encoder.read_config": "returns sizes",
    "flow_kernels.largest_score": "returns a float",
    "flows.check_flow": "returns nothing",
}

# Functions that need numbers: name → reason. They are tried on the CPU only, in both dtypes.
NEEDS_NUMBERS = {
    "encoder.shuffled": "NumPy shuffles the entries on the CPU, so that every device gets the same",
    "transformer.starting_projections": "draws with NumPy; float64 on the CPU, as it says",
    "transport.minimising_movements": "stops when the gradient is small, which is a number",
    "transport.optimal_plan": "POT solves the linear programme on the CPU",
    "transport.wasserstein_distance": "POT solves the linear programme on the CPU",
}

SIZES = {"n_heads": 2, "head_dim": 2, "dim": 4, "n_tokens": 6}
CONFIG = encoder.Config(n_layers=2, n_heads=3, dim=12, norm_epsilon=1e-12)
WIDE, WORDS, PLACES = 10, 20, 8


def encoder_weights(new):
    """Weights of an encoder of two layers, by name."""
    d = CONFIG.dim
    tables = {"word": WORDS, "position": PLACES, "token_type": 2}
    found = {f"embeddings.{name}_embeddings.weight": new(n, d) for name, n in tables.items()}
    norms = ["embeddings."]
    for layer in range(CONFIG.n_layers):
        name = f"encoder.layer.{layer}."
        linear = {f"attention.{part}": (d, d) for part in ("self.query", "self.key", "self.value")}
        linear |= {"attention.output.dense": (d, d), "output.dense": (d, WIDE)}
        linear |= {"intermediate.dense": (WIDE, d)}
        for part, shape in linear.items():
            found[f"{name}{part}.weight"] = new(*shape)
            found[f"{name}{part}.bias"] = new(shape[0])
        norms += [f"{name}attention.output.", f"{name}output."]
    for name in norms:
        found[f"{name}LayerNorm.weight"] = new(d)
        found[f"{name}LayerNorm.bias"] = new(d)
    return found


def cases(new, lib=LIBRARY):
    """Calls of every public function: "module.function" or "module.function, variant" → call.

    `new(*shape)` makes a tensor; `lib` holds the modules, the true ones or copies with a fault.
    """
    like = {"dtype": new(1).dtype, "device": new(1).device}
    tokens, mask = new(2, 5, 3) / 3**0.5, new(3, 5).bool()
    heads = torch.eye(3, **like).repeat(4, 1, 1)
    frozen, clouds = (
        np.eye(3).repeat(4).reshape(3, 3, 4).transpose(2, 0, 1),
        new(8, 700, 3) / 3**0.5,
    )
    paths, words = heads.expand(2, 4, 3, 3), np.arange(14).reshape(2, 7)

    def rng():
        return np.random.default_rng(0)

    def integrate(law=frozen, **more):
        run = lib.integrators.integrate(tokens, law, 0.2, 0.1, **more)
        return [part for part in run if part is not None]

    def train(**more):
        runs = [transformer.Run("random", 2), transformer.Run("aligned", 1, "sine")]
        trained = lib.transformer.train_in_context([rng()], runs, steps=2, **SIZES, **like, **more)
        return [part for part in trained if torch.is_tensor(part)]

    found = {
        "attention.causal_mask": lambda: lib.attention.causal_mask(3, device=like["device"]),
        "attention.attention_weights": lambda: lib.attention.attention_weights(
            new(2, 1, 3, 4), new(2, 5, 4), 0.5, mask=mask
        ),
        "attention.attend": lambda: lib.attention.attend(
            new(3, 4), new(5, 4), new(2, 5, 6), 0.5, mask=mask
        ),
        "smoothing.nadaraya_watson": lambda: lib.smoothing.nadaraya_watson(
            new(700, 4), new(1300, 4), new(1300, 2), 0.5
        ),
        "smoothing.smoothing_weights": lambda: lib.smoothing.smoothing_weights(
            new(3, 4), new(5, 4), 0.5
        ),
        "sphere.distance": lambda: lib.sphere.distance(tokens, tokens),
        "sphere.exponential": lambda: lib.sphere.exponential(tokens, 0 * tokens),
        "sphere.project": lambda: lib.sphere.project(tokens, tokens),
        "sphere.retract": lambda: lib.sphere.retract(tokens),
        "sphere.uniform": lambda: lib.sphere.uniform(rng(), 4, **like),
        "sphere.octahedral": lambda: lib.sphere.octahedral(rng(), 6, **like),
        "sphere.quasi_uniform": lambda: lib.sphere.quasi_uniform(4, **like),
        "sphere.quasi_uniform, circle": lambda: lib.sphere.quasi_uniform(4, 2, **like),
        "flow_kernels.pair_sums": lambda: lib.flow_kernels.pair_sums(tokens, paths, tokens.mT),
        "flow_kernels.moved_moments": lambda: lib.flow_kernels.moved_moments(tokens, paths, tokens),
        "integrators.integrate, frozen": integrate,
        "integrators.integrate, velocity only": lambda: integrate(diagnostics=False, order=2),
        "integrators.integrate, oscillating": lambda: integrate(
            head_weights.Oscillating(frozen), keep_trajectory=True
        ),
        "integrators.integrate, noise": lambda: integrate(
            head_weights.OrnsteinUhlenbeck(frozen), order=1, noise=rng(), moved_martingale=True
        ),
        "transformer.train_in_context": train,
        "transformer.starting_projections": lambda: lib.transformer.starting_projections(
            rng(), "aligned", 2, 2, 4
        ),
        "transformer.in_context_predictions": lambda: lib.transformer.in_context_predictions(
            new(3, 5, 2), new(3, 5, 2), new(2), new(7, 5), new(7, 4), new(5)
        ),
        "encoder.heads": lambda: lib.encoder.heads(encoder_weights(new), CONFIG, 1),
        "encoder.embed": lambda: lib.encoder.embed(encoder_weights(new), CONFIG, words),
        "encoder.layer_pass": lambda: lib.encoder.layer_pass(
            encoder_weights(new), CONFIG, 0, new(2, 7, CONFIG.dim), mask=new(2, 7).bool()
        ),
        "encoder.forward": lambda: lib.encoder.forward(encoder_weights(new), CONFIG, words),
        "encoder.shuffled": lambda: lib.encoder.shuffled(encoder_weights(new), rng()).values(),
        "transport.paired_distance": lambda: lib.transport.paired_distance(tokens[0], tokens[1]),
        "transport.optimal_plan": lambda: lib.transport.optimal_plan(tokens[0], tokens[1]),
        "transport.wasserstein_distance": lambda: lib.transport.wasserstein_distance(
            tokens[0], tokens[1]
        ),
        "transport.minimising_movements": lambda: lib.transport.minimising_movements(
            tokens[0], heads, 0.1
        ),
        # so many scores that they are taken in several blocks
        "flows.log_potentials, blocks": lambda: lib.flows.log_potentials(clouds, heads),
    }
    for name in (
        *("energy", "log_energy", "energy_gradient", "dissipation", "claimed_dissipation"),
        *("squared_slope", "effective_mobility", "log_effective_mobility", "log_potentials"),
        *("mobility_covariance", "check_tokens_and_heads"),
    ):
        found[f"flows.{name}"] = lambda name=name: getattr(lib.flows, name)(tokens, heads)
    for flow in flows.FLOWS:
        found[f"flows.velocity, {flow}"] = lambda flow=flow: lib.flows.velocity(tokens, heads, flow)
        found[f"flow_kernels.rates, {flow}"] = lambda flow=flow: lib.flow_kernels.rates(
            tokens, paths, flow, paths, 1.0
        )
    return found


class Watch(TorchDispatchMode):
    """Refuses what would be a hidden transfer or a wait on a GPU: trap by trap.

    Fake tensors let 0-dimensional tensors of the CPU mix with others, and ``.cpu()`` pass.
    """

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        parts = list(tensors_of((args, kwargs or {})))
        devices = {part.device.type for part in parts}
        name = str(function)
        if len(devices) > 1 and not name.startswith(("aten.copy_.", "aten.index.")):
            raise AssertionError(f"{name} mixes tensors of the CPU and the device")
        moved = {part.device.type for part in tensors_of(out)}
        if devices == {"meta"} and "cpu" in moved:
            raise AssertionError(f"{name} moves from the device to the CPU")
        return out


def tensors_of(result):
    """All tensors in nested sequences and mappings."""
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, dict):
        yield from tensors_of(list(result.values()))
    elif isinstance(result, (tuple, list, type({}.values()))):
        for part in result:
            yield from tensors_of(part)


def outputs(name, dtype, device, lib=LIBRARY):
    """Output tensors of a case."""

    def new(*shape):
        return torch.ones(*shape, dtype=dtype, device=device)

    return list(tensors_of(cases(new, lib)[name]()))


def guard(name, dtype, lib=LIBRARY):
    """Assert that a case keeps device and dtype, and the shapes of a real run."""
    real = outputs(name, dtype, "cpu")
    with FakeTensorMode(allow_non_fake_inputs=True), Watch():
        found = outputs(name, dtype, "meta", lib)
    assert len(found) == len(real) > 0
    for one, same in zip(found, real, strict=True):
        assert one.device.type == "meta" and same.device.type == "cpu"
        assert one.dtype == same.dtype
        assert one.dtype in (dtype, torch.bool)
        assert one.shape == same.shape


def public_functions(module):
    """All functions that a module defines without a leading underscore."""
    found = inspect.getmembers(module, inspect.isfunction)
    return [
        name
        for name, function in found
        if function.__module__ == module.__name__ and not name.startswith("_")
    ]


EVERY_CASE = list(cases(torch.ones))
BOTH = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])


def function_of(case):
    return case.split(",")[0]


@BOTH
@pytest.mark.parametrize("case", [c for c in EVERY_CASE if function_of(c) not in NEEDS_NUMBERS])
def test_device_and_dtype_are_kept(case, dtype):
    guard(case, dtype)


@BOTH
@pytest.mark.parametrize("case", [c for c in EVERY_CASE if function_of(c) in NEEDS_NUMBERS])
def test_what_needs_numbers_keeps_dtype_and_device_on_the_cpu(case, dtype):
    found = outputs(case, dtype, "cpu")
    says_double = case == "transformer.starting_projections"
    assert found
    assert {part.dtype for part in found} == {torch.float64 if says_double else dtype}
    assert {part.device.type for part in found} == {"cpu"}


def test_every_function_has_a_case():
    there = {
        f"{short}.{name}"
        for short, module in vars(LIBRARY).items()
        for name in public_functions(module)
    }
    tried = {function_of(case) for case in EVERY_CASE}
    assert tried | set(WITHOUT_TENSORS) == there
    assert not tried & set(WITHOUT_TENSORS)
    assert set(NEEDS_NUMBERS) <= tried


def test_every_module_that_imports_torch_is_here():
    folder = pathlib.Path(attention.__file__).parent
    users = {
        path.stem
        for path in folder.glob("*.py")
        if any(line == "import torch" for line in path.read_text(encoding="utf-8").splitlines())
    }
    # these two have nothing public: flows, flow_kernels and integrators call them
    assert set(vars(LIBRARY)) == users - {"pair_blocks", "flow_logarithms"}


def planted(module, was, becomes):
    """The library with one module replaced by a copy that holds a fault."""
    source = inspect.getsource(module)
    assert source.count(was) == 1, f"{was!r} is not there once"
    short = module.__name__.split(".")[1]
    copy = types.ModuleType(module.__name__)
    exec(compile(source.replace(was, becomes), f"planted {short}", "exec"), vars(copy))
    return types.SimpleNamespace(**(vars(LIBRARY) | {short: copy}))


FAULTS = {
    "zeros on the CPU": (
        smoothing,
        "mass = rows.new_zeros((len(rows), 1))",
        "mass = torch.zeros((len(rows), 1))",
        "smoothing.nadaraya_watson",
    ),
    "sums on the CPU": (
        flow_kernels,
        "sums = tokens.new_empty(paths, features.shape[1], count * n)",
        "sums = torch.zeros(paths, features.shape[1], count * n)",
        "flow_kernels.pair_sums",
    ),
    "a tensor of the default dtype": (
        integrators,
        "for time, _, _ in records], dtype=x.dtype, device=x.device)",
        "for time, _, _ in records], device=x.device)",
        "integrators.integrate, frozen",
    ),
    "draws that are not moved": (
        sphere,
        "return _retract(_placed(unit, dtype, device))",
        "return _retract(_placed(unit, dtype, None))",
        "sphere.uniform",
    ),
    "a number of the CPU": (
        sphere,
        "return vectors - (points * vectors).sum(-1, keepdim=True) * points",
        "return vectors - torch.ones(()) * (points * vectors).sum(-1, keepdim=True) * points",
        "sphere.project",
    ),
    "there and back": (
        transport,
        "return sphere.distance(first, second).square().mean(-1).sqrt()",
        "return sphere.distance(first, second).cpu().square().mean(-1).sqrt().to(first.device)",
        "transport.paired_distance",
    ),
    "a decision on a value": (
        attention,
        "    return torch.softmax(scores, dim=-1)",
        "    return torch.softmax(scores - float(scores.max()), dim=-1)",
        "attention.attend",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(fault):
    module, was, becomes, case = FAULTS[fault]
    lib = planted(module, was, becomes)
    # the default dtype is float32, so that only float64 tells
    with pytest.raises((AssertionError, RuntimeError)) as caught:
        guard(case, torch.float64, lib)
    assert "is not there once" not in str(caught.value)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_copy_without_the_fault_passes(fault):
    module, was, _, case = FAULTS[fault]
    guard(case, torch.float64, planted(module, was, was))
