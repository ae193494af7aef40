"""What `on_gpu.py` tries: calls whose numbers are compared, and engines that are timed.

A case holds what its rounding error is made of: u(s + (k + 2) z + 8) times `growth`, with u the
unit roundoff, s terms in the longest sum, z the largest exponent, k terms in its scalar product,
and 8 for what comes after. Errors are relative to the largest number of the answer, or to 1 where
the answer may be small. The bound holds for every order of summation.
"""

from typing import NamedTuple

import numpy as np
import torch

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
)

try:  # needs POT
    from rederive import transport
except ImportError:
    transport = None

N, DIM, HEADS, STEPS = 24, 3, 4, 5


class Case(NamedTuple):
    """A call and its rounding error; see the module."""

    name: str
    call: object  # tensors by name → tensor or tensors
    terms: int = 1
    exponent: float = 0.0
    inner: int = DIM
    growth: float = 1.0
    only_double: bool = False
    controlled: bool = True
    #: For what the CPU cannot do in time: a function of the answer, and what it has to be.
    part: object = None
    reference: object = None

    def tolerance(self, dtype):
        """Bound of the relative error of one run; two runs may differ by twice that."""
        roundoff = torch.finfo(dtype).eps / 2
        return 2 * roundoff * self.growth * (self.terms + (self.inner + 2) * self.exponent + 8)


def inputs(seed=2026):
    """Numbers that all cases share, as arrays by name; tokens have norm 1, heads too."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    heads = head_weights.gaussian_heads(rng, HEADS, DIM)
    heads /= np.linalg.norm(heads, 2, axis=(-2, -1), keepdims=True)
    # two clouds about different points, so that velocities and distances are of order one
    middles = np.array([[[1.0, 0.5, 0.0]], [[-0.5, 0.0, 1.0]]])
    tokens = sphere.retract(
        torch.from_numpy(middles + 0.4 * rng.standard_normal((2, N, DIM)))
    ).numpy()
    plain = {"queries": (N, 8), "keys": (N, 8), "values": (N, 3), "maps": (HEADS, 8, 4)}
    plain |= {"points": (N, 2), "places": (N, 2), "token": (8,)}
    found = {"tokens": tokens, "heads": heads, "vectors": rng.standard_normal((2, N, DIM))}
    return found | {name: rng.standard_normal(shape) for name, shape in plain.items()}


def numbers(tensor):
    """A tensor as an array in double precision, for what takes arrays."""
    return tensor.detach().cpu().double().numpy()


def contract(device_of):
    """All cases; `device_of(t)` gives dtype and device of the tensors t as keywords."""
    kernel = {"terms": N, "exponent": 1.0}
    # a step of length dt stretches differences by at most exp(L dt), L = 3‖D‖ + 4‖D‖² = 7
    stretched = kernel | {"growth": np.exp(7 * STEPS * 0.05) * (1 + STEPS)}
    plain, beta, bandwidth = inputs(), 8**-0.5, 0.7
    largest = {name: np.linalg.norm(array, axis=-1).max() for name, array in plain.items()}
    scored = {"terms": N, "inner": 8, "exponent": beta * largest["queries"] * largest["keys"]}
    reach = (largest["points"] + largest["places"]) / bandwidth
    smoothed = {"terms": N, "exponent": reach**2 / 2, "inner": 2}
    tilted = np.linalg.norm(plain["maps"], 2, axis=(-2, -1)).max() ** 2 / 2
    tilted *= largest["token"] * largest["keys"]

    def drawn(make):
        return lambda t: make(np.random.default_rng(1), N, DIM, **device_of(t))

    def run(t, law=head_weights.Frozen, **more):
        found = integrators.integrate(
            t["tokens"], law(numbers(t["heads"])), STEPS * 0.05, 0.05, **more
        )
        return [found.tokens, found.energy, found.dissipated, found.claimed, found.sloped]

    def trained(t):
        runs = [transformer.Run("random", 2), transformer.Run("aligned", 1, "sine")]
        found = transformer.train_in_context(
            [np.random.default_rng(2)], runs, n_heads=2, head_dim=2, dim=4, n_tokens=6, steps=3,
            **device_of(t),
        )  # fmt: skip
        return [found.keys, found.queries, found.gain]

    def encoded(t):
        def new(*shape, seed=0):
            drawn = np.random.default_rng(seed).standard_normal(shape)
            return torch.from_numpy(drawn).float().to(**device_of(t))

        config = encoder.Config(1, 4, 24, 1e-12)
        found = encoder.forward(encoder_weights(config, new), config, np.arange(20).reshape(2, 10))
        return [found.tokens[-1], found.maps, found.values, found.steps]

    cases = [
        Case("sphere.project", lambda t: sphere.project(t["tokens"], t["vectors"])),
        Case("sphere.retract", lambda t: sphere.retract(t["vectors"])),
        Case("sphere.exponential", lambda t: sphere.exponential(t["tokens"], t["vectors"]), 8),
        Case("sphere.distance", lambda t: sphere.distance(t["tokens"][0], t["tokens"][1])),
        Case(
            "sphere.quasi_uniform",
            lambda t: sphere.quasi_uniform(N, DIM, **device_of(t)),
            controlled=False,
        ),
        Case("sphere.uniform", drawn(sphere.uniform), controlled=False),
        Case("sphere.octahedral", drawn(sphere.octahedral), controlled=False),
        Case(
            "attention.attention_weights",
            lambda t: attention.attention_weights(
                t["queries"],
                t["keys"],
                beta,
                mask=attention.causal_mask(N, device=t["keys"].device),
            ),
            **scored,
        ),
        Case(
            "attention.attend",
            lambda t: attention.attend(t["queries"], t["keys"], t["values"], beta),
            **scored,
        ),
        Case(
            "smoothing.nadaraya_watson",
            lambda t: smoothing.nadaraya_watson(t["points"], t["places"], t["values"], bandwidth),
            **smoothed,
        ),
        Case(
            "smoothing.smoothing_weights",
            lambda t: smoothing.smoothing_weights(t["points"], t["places"], bandwidth),
            **smoothed,
        ),
        Case(
            "flow_kernels.pair_sums",
            lambda t: flow_kernels.pair_sums(
                t["tokens"], t["heads"].expand(2, -1, -1, -1), t["tokens"].mT
            ),
            **kernel,
        ),
        Case(
            "flow_kernels.moved_moments",
            lambda t: flow_kernels.moved_moments(
                t["tokens"], t["heads"].expand(2, -1, -1, -1), t["tokens"].flip(1)
            ),
            **(kernel | {"terms": 2 * N}),
        ),
        Case("integrators.integrate, order 4", run, **stretched),
        Case("integrators.integrate, order 1", lambda t: run(t, order=1), **stretched),
        Case(
            "integrators.integrate, noise",
            lambda t: run(
                t, head_weights.OrnsteinUhlenbeck, order=1, noise=np.random.default_rng(3)
            ),
            # the heads grow to norm 3 at most: L = 45
            **(kernel | {"exponent": 3.0, "growth": np.exp(45 * STEPS * 0.05)}),
            only_double=True,
        ),
        Case(
            "transformer.in_context_predictions",
            lambda t: transformer.in_context_predictions(
                t["maps"], t["maps"].flip(0), t["token"][0], t["keys"], t["values"], t["token"]
            ),
            **(scored | {"exponent": tilted, "inner": 32}),
        ),
        # a layer stretches differences by less than 8, since its matrices have norms near 2
        Case("encoder.forward", encoded, 4 * 24, growth=8.0, controlled=False),
        # Adam divides by |gradient| + 1e-8, so that a rounding error of the gradient grows so much
        Case(
            "transformer.train_in_context", trained, 6 * 256, growth=3 * 0.02e8, only_double=True,
            controlled=False,
        ),
    ]  # fmt: skip
    for name in (
        *("energy", "log_energy", "energy_gradient", "velocity", "effective_mobility"),
        *("log_effective_mobility", "log_potentials", "dissipation", "claimed_dissipation"),
        *("squared_slope", "mobility_covariance"),
    ):
        call = getattr(flows, name)
        cases.append(Case(f"flows.{name}", lambda t, f=call: f(t["tokens"], t["heads"]), **kernel))
    for flow in flows.FLOWS:
        cases.append(
            Case(
                f"flow_kernels.rates, {flow}",
                lambda t, flow=flow: flow_kernels.rates(
                    t["tokens"], t["heads"].expand(2, -1, -1, -1), flow, None, 1.0
                ),
                **kernel,
            )
        )
    if transport is not None:
        cases += [
            Case(
                "transport.paired_distance",
                lambda t: transport.paired_distance(t["tokens"][0], t["tokens"][1]),
                N,
                # a mean in which lost digits cancel: sphere.distance has the control
                controlled=False,
            ),
            Case(
                "transport.wasserstein_distance",
                lambda t: transport.wasserstein_distance(t["tokens"][0], t["tokens"][1]),
                N,
                # the linear programme is solved on the CPU in double precision for every device
                controlled=False,
            ),
            # each step ends when angles of 100 spacings are left
            Case(
                "transport.minimising_movements",
                lambda t: transport.minimising_movements(t["tokens"][0], t["heads"], 0.1),
                N + 400,
                growth=2.0,
            ),
        ]
    return cases


SMALL = {"tokens": 300, "cloud": 600, "paths": 6, "steps": 3, "points": 500, "length": 64}
SMALL |= {"texts": 2, "words": 16, "layers": 2, "width": 48, "training": 3}
FULL = {"tokens": 20_000, "cloud": 100_000, "paths": 200, "steps": 10, "points": 20_000}
FULL |= {"length": 4096, "texts": 16, "words": 128, "layers": 6, "width": 384, "training": 30}


def engines(size, kind):
    """What is timed, for one dtype and device: cases whose calls take no arguments."""

    def new(*shape, seed=0):
        numbers = np.random.default_rng(seed).standard_normal(shape)
        return torch.from_numpy(numbers).to(**kind)

    rng = np.random.default_rng(4)
    one = head_weights.gaussian_heads(rng, 1, DIM)
    ten = head_weights.gaussian_heads(rng, 10, DIM)
    few, many = (sphere.quasi_uniform(size[name], **kind) for name in ("tokens", "cloud"))
    paths = sphere.uniform(rng, (size["paths"], 200), DIM, **kind)
    head = torch.from_numpy(one).to(**kind)
    points, places = new(size["points"], 4), new(size["points"], 4, seed=1)
    rows = new(size["length"], 64)
    config = encoder.Config(size["layers"], 12, size["width"], 1e-12)
    weights = encoder_weights(config, new)
    texts = np.random.default_rng(5).integers(0, 500, (size["texts"], size["words"]))
    runs = [transformer.Run(start, 2) for start in ("random", "aligned")]

    def step(tokens):
        return flow_kernels.rates(tokens[None], head[None], "attention", balance=False).velocity

    def ensemble():
        law = head_weights.OrnsteinUhlenbeck(ten)
        noise, time = np.random.default_rng(6), 0.01 * size["steps"]
        return integrators.integrate(paths, law, time, 0.01, order=1, noise=noise).tokens

    def training():
        rngs = [np.random.default_rng(seed) for seed in range(8)]
        return transformer.train_in_context(
            rngs, runs, n_heads=4, head_dim=8, dim=32, n_tokens=128, steps=size["training"], **kind
        ).gain

    n, cloud = size["tokens"], size["cloud"]
    every = max(1, cloud // 50)
    return [
        Case(f"attention step, n = {n}, fast", lambda: step(few), n, 2.0),
        Case(f"attention step, n = {n}, logarithms", lambda: flows.velocity(few, head), n, 2.0),
        Case(
            f"attention step, n = {cloud}, fast",
            lambda: step(many), cloud, 2.0, part=lambda found: found[0, ::every],
            reference=lambda: by_definition(many, head, every),
        ),
        # heads of norm 3 at most: L = 45, see the cases above
        Case(
            f"{size['paths']} paths of 200 tokens, 10 heads, {size['steps']} steps",
            ensemble, 200, 3.0, growth=np.exp(0.45 * size["steps"]), only_double=True,
        ),
        Case(
            f"smoothing, {size['points']} points",
            lambda: smoothing.nadaraya_watson(points, places, places, 1.0),
            size["points"], 2 * 12.0**2,
        ),
        Case(
            f"attention, {size['length']} tokens",
            lambda: attention.attend(rows, rows, rows, 0.125), size["length"], 20.0, 64,
        ),
        # a layer stretches differences by less than 8, since its matrices have norms near 2
        Case(
            f"encoder, {size['texts']} texts of {size['words']} words",
            lambda: encoder.forward(weights, config, texts).tokens[-1],
            4 * size["width"], growth=8.0 ** size["layers"], only_double=True,
        ),
        # see train_in_context above: the steps of Adam
        Case(
            f"training, {size['training']} steps", training, 128 * 256,
            growth=size["training"] * 0.02e8, only_double=True,
        ),
    ]  # fmt: skip


def encoder_weights(config, new):
    """Random weights of an encoder, scaled so that tokens keep their size."""
    d, wide = config.dim, 4 * config.dim
    names = {"word": 500, "position": 128, "token_type": 2}
    found = {f"embeddings.{name}_embeddings.weight": new(n, d) for name, n in names.items()}
    norms = ["embeddings."]
    for layer in range(config.n_layers):
        name = f"encoder.layer.{layer}."
        parts = ("self.query", "self.key", "self.value", "output.dense")
        linear = {f"attention.{part}": (d, d) for part in parts}
        linear |= {"intermediate.dense": (wide, d), "output.dense": (d, wide)}
        for seed, (part, shape) in enumerate(linear.items()):
            found[f"{name}{part}.weight"] = new(*shape, seed=8 * layer + seed) / shape[1] ** 0.5
            found[f"{name}{part}.bias"] = 0 * new(shape[0])
        norms += [f"{name}attention.output.", f"{name}output."]
    for name in norms:
        found[f"{name}LayerNorm.weight"] = 0 * new(d) + 1
        found[f"{name}LayerNorm.bias"] = 0 * new(d)
    return found


def by_definition(tokens, heads, every):
    """Velocities of some tokens under one head, on the CPU in double precision."""
    x, d = tokens.detach().cpu().double(), heads[0].detach().cpu().double()
    some = x[::every]
    pull = torch.softmax(some @ d @ x.T, -1) @ x @ d.T
    return (some * pull).sum(-1, keepdim=True) * some - pull
