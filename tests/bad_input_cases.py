"""One valid call of every public function of the library, and what is left out with the reason.

Keys are ``module.function``, ``module.Class`` or ``module.Class.method``. Sizes are small: what
matters here is what happens when one argument of a call is spoilt.
"""

import numpy as np
import torch

from rederive import (
    classification,
    encoder,
    free_probability,
    head_weights,
    pooled_spectra,
    transformer,
    vocabularies,
)

_RNG = np.random.default_rng(7)
_FRAMES = np.linalg.qr(_RNG.standard_normal((3, 4, 2)))[0]
_SIGNS = np.where(_RNG.random((6, 3)) < 0.5, 1, -1)
_LABELS = np.array([1, -1, 1, -1, 1, -1])
_WEIGHTS = np.array([0.5, 0.3, 0.2])
_LOADINGS = np.array([0.9, 0.4, 0.1])
_CORRELATION = np.array([[1.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.0]])
_TABLE = vocabularies.draw_vocabulary([1.0, 0.5], 4, _RNG)
_ITEMS = np.array([[0, 1, 3], [2, 2, 0]])
_POINTS = torch.from_numpy(_RNG.standard_normal((5, 3)))
_POINTS = _POINTS / _POINTS.norm(dim=-1, keepdim=True)
_OTHERS = _POINTS.flip(0).clone()
_HEADS = head_weights.gaussian_heads(_RNG, 2, 3, scale=0.3)
_TOKENS_AND_HEADS = {"tokens": _POINTS, "heads": torch.from_numpy(_HEADS)}
_MASKED = torch.ones(4, 5, dtype=torch.bool).tril(2)
_SIZES = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "hidden_size": 4,
    "layer_norm_eps": 1e-12,
}
_CONFIG = encoder.read_config(_SIZES)


def _real(*shape):
    return torch.from_numpy(_RNG.standard_normal(shape))


def _encoder_tensors():
    d, wide, layer = 4, 6, "encoder.layer.0."
    shapes = {f"embeddings.{part}_embeddings.weight": (5, d) for part in ("word", "position")}
    shapes["embeddings.token_type_embeddings.weight"] = (2, d)
    for part in ("self.query", "self.key", "self.value", "output.dense"):
        shapes[f"{layer}attention.{part}.weight"] = (d, d)
        shapes[f"{layer}attention.{part}.bias"] = (d,)
    shapes[f"{layer}intermediate.dense.weight"], shapes[f"{layer}output.dense.weight"] = (
        (wide, d),
        (d, wide),
    )
    shapes[f"{layer}intermediate.dense.bias"], shapes[f"{layer}output.dense.bias"] = (wide,), (d,)
    for name in ("embeddings.", f"{layer}attention.output.", f"{layer}output."):
        shapes[f"{name}LayerNorm.weight"] = shapes[f"{name}LayerNorm.bias"] = (d,)
    return {name: _real(*shape) for name, shape in shapes.items()}


_TENSORS = _encoder_tensors()
_SMOOTH = {"queries": _real(4, 3), "keys": _real(5, 3)}
_CLOUDS = {
    "first": _POINTS,
    "second": _OTHERS,
    "cost": "geodesic",
    "first_weights": torch.full((5,), 0.2, dtype=torch.float64),
    "second_weights": torch.full((5,), 0.2, dtype=torch.float64),
}
_MODEL = {"covariate_dim": 1, "shared": 0.3, "noise_variance": 1.0}
_AGREEMENT = {"weights": _WEIGHTS, "loadings": _LOADINGS}
_CONDITIONAL = {
    "weights": _WEIGHTS,
    "correlation": _CORRELATION,
    "vocabulary": _TABLE,
    "marginals": np.array([0.1, 0.0, 0.2]),
}
_RATIOS = {"delta": 0.5, "gamma": 0.25}
_LAW = free_probability.FreeMPProduct(0.5, 0.25)
_FIT = classification.ridge_fit(_RNG.standard_normal((6, 2)), _LABELS)
_MOMENT = pooled_spectra.second_moment(_RNG.standard_normal((8, 4)))

#: Stands for a fresh generator in every call.
RNG = np.random.default_rng(0)

#: Where a call starts from an object, its constructor's arguments are tried by a case of their own.
OBJECTS = {
    "classification.RidgeFit": _FIT,
    "free_probability.FreeMPProduct": _LAW,
    "head_weights.Frozen": head_weights.Frozen(_HEADS),
    "head_weights.Relaxing": head_weights.Relaxing(_HEADS),
    "head_weights.Oscillating": head_weights.Oscillating(_HEADS),
}

CASES = {
    "allocation.wrapped_energy": {"square_bandwidth": np.array([0.5, 4.0])},
    "allocation.head_size_risk": {
        "head_dim": np.array([2.0, 3.0]),
        "n_samples": np.array([50.0, 60.0]),
        "budget": np.array([8.0, 9.0]),
        **_MODEL,
    },
    "allocation.optimal_head_size": {"n_samples": 50.0, "budget": 8.0, **_MODEL},
    "allocation.head_size_law": {"n_samples": 50.0, "budget": 8.0, **_MODEL},
    "attention.causal_mask": {"length": 3, "strict": True, "device": "cpu"},
    "attention.attention_weights": {**_SMOOTH, "inverse_temperature": 0.5, "mask": _MASKED},
    "attention.attend": {
        **_SMOOTH,
        "values": _real(5, 2),
        "inverse_temperature": 0.5,
        "mask": _MASKED,
    },
    "classification.agreement": _AGREEMENT,
    "classification.separation": {"signal_norm2": 1.0, "delta": 0.5},
    "classification.discriminant_accuracy": {**_AGREEMENT, "separation": 2.0},
    "classification.label_index": {**_AGREEMENT, "separation": 2.0},
    "classification.label_weights": {"loadings": _LOADINGS, "separation": 2.0},
    "classification.ridge_fit": {
        "features": _RNG.standard_normal((6, 2)),
        "labels": _LABELS.astype(float),
        "penalties": np.array([0.1, 1.0]),
    },
    "classification.RidgeFit.decide": {"features": _RNG.standard_normal((3, 2))},
    "covariances.kernel_head_covariance": {"cosines": np.array([0.5, 0.2]), "bandwidth": 0.8},
    "covariances.covariance_envelope": {
        "diversity": 0.5,
        "head_dim": 3,
        "inverse_temperature": 0.4,
        "average": True,
    },
    "covariances.fixed_query_bounds": {
        "u": np.array([0.5, 0.2]),
        "v": np.array([0.1, -0.3]),
        "n_keys": 9,
    },
    "covariances.query_averaged_bounds": {
        "cosines": np.array([0.5, 0.2]),
        "inverse_temperature": 0.3,
        "n_keys": 9,
    },
    "diversity.principal_cosines": {"a": _FRAMES[0], "b": _FRAMES[1]},
    "diversity.orthonormal_frames": {"projections": _FRAMES},
    "diversity.head_diversity_index": {"projections": _FRAMES},
    "diversity.head_diversity_index_as_stated": {"projections": _FRAMES},
    "diversity.head_covariance": {"cosines": np.array([0.5, 0.2]), "inverse_temperature": 0.4},
    "diversity.welch_diversity": {"n_heads": 3, "head_dim": 2, "target_rank": 4},
    "encoder.read_config": {"config": _SIZES},
    "encoder.heads": {"tensors": _TENSORS, "config": _CONFIG, "layer": 0},
    "encoder.embed": {"tensors": _TENSORS, "config": _CONFIG, "ids": _ITEMS},
    "encoder.layer_pass": {
        "tensors": _TENSORS,
        "config": _CONFIG,
        "layer": 0,
        "tokens": _real(2, 3, 4),
        "mask": torch.ones(2, 3, dtype=torch.bool),
    },
    "encoder.forward": {
        "tensors": _TENSORS,
        "config": _CONFIG,
        "ids": _ITEMS,
        "mask": torch.ones(2, 3, dtype=torch.bool),
    },
    "encoder.shuffled": {"tensors": _TENSORS, "rng": RNG},
    "ensembles.mse_decomposition": {
        "weights": np.array([[0.6, 0.4], [0.1, 0.9]]),
        "values": np.array([1.0, -1.0]),
        "target": 0.2,
        "noise_variance": 0.5,
        "mixing": np.array([0.5, 0.5]),
    },
    "ensembles.matrix_mse_decomposition": {
        "weights": np.array([[0.6, 0.4], [0.1, 0.9]]),
        "values": _RNG.standard_normal((2, 3)),
        "output_maps": _RNG.standard_normal((2, 3, 2)),
        "target": np.array([0.2, 0.1]),
        "noise_covariance": _CORRELATION,
    },
    "ensembles.mixing_risk": {"mixing": _WEIGHTS, "mse_matrix": _CORRELATION},
    "ensembles.optimal_mixing": {"mse_matrix": _CORRELATION},
    "ensembles.uniform_weights": {"count": 3},
    "ensembles.geometric_weights": {"count": 3, "ratio": 0.6},
    "ensembles.fibonacci_weights": {"count": 3},
    "finite_tables.finite_discriminant_accuracy": {
        "weights": _WEIGHTS[:2],
        "loadings": _LOADINGS[:2],
        "signal_norm2": 1.0,
        "dimension": 2,
        "size": 6,
    },
    **{
        f"flows.{name}": _TOKENS_AND_HEADS
        for name in (
            "energy",
            "log_energy",
            "effective_mobility",
            "log_effective_mobility",
            "log_potentials",
            "energy_gradient",
            "mobility_covariance",
            "dissipation",
            "claimed_dissipation",
            "squared_slope",
        )
    },
    "flows.velocity": {**_TOKENS_AND_HEADS, "flow": "gradient"},
    "fluctuations.outlier_sd": {
        "snr": 2.0,
        "signal_norm2": 2.0,
        **_RATIOS,
        "dimension": 20,
        "excess_kurtosis": 0.1,
    },
    "fluctuations.edge_scale": _RATIOS,
    "fluctuations.finite_edge": {"dimension": 20, "items": 40, "sequences": 80},
    "fluctuations.tracy_widom_cdf": {"s": np.array([-1.0, 0.5])},
    "free_probability.FreeMPProduct": _RATIOS,
    "free_probability.FreeMPProduct.support": {},
    "free_probability.FreeMPProduct.pdf": {"x": np.array([0.5, 1.5])},
    "free_probability.FreeMPProduct.cdf": {"x": np.array([0.5, 1.5])},
    "free_probability.FreeMPProduct.moment": {"k": 3},
    "free_probability.FreeMPProduct.stieltjes": {"z": np.array([6.0 + 1j, 9.0])},
    "free_probability.FreeMPProduct.strength": {"z": np.array([6.0 + 1j, 9.0])},
    "free_probability.FreeMPProduct.boundary": {"x": np.array([0.5, 1.5])},
    "free_probability.FreeMPProduct.quadrature": {"count": 9, "rule": "trapezoid"},
    "free_probability.FreeMPProduct.curve": {"count": 9},
    "fusion_frames.frames_at": {"cosines": np.array([0.5, 0.2])},
    "fusion_frames.tilted_heads": {"n_heads": 3, "head_dim": 2, "tilt": 0.4},
    "fusion_frames.tight_fusion_frame": {"n_heads": 4, "head_dim": 2, "target_rank": 4},
    "head_response.head_count_law": {
        "noise_variance": 1.0,
        "step": 0.1,
        "max_order": 3,
        "max_degree": 2,
        "nodes": 8,
    },
    "head_response.periodic_response": {"tokens": _POINTS.numpy(), "heads": _HEADS},
    "head_risk.limiting_bias2": {"projections": _FRAMES, "gain": 0.8, "target": _FRAMES[0]},
    "head_risk.leading_variance": {
        "projections": _FRAMES,
        "inverse_temperature": 0.4,
        "gain": 0.8,
        "noise_variance": 0.5,
        "target": _FRAMES[0],
    },
    "head_risk.least_risk": {
        "start": _FRAMES[:2, :3, :1],
        "gain": 0.8,
        "target": _FRAMES[0, :3],
        "n_keys": 30,
        "inverse_temperature": 0.4,
        "noise_variance": 0.5,
    },
    "head_weights.gaussian_heads": {"rng": RNG, "n_heads": 2, "dim": 3, "scale": 0.5},
    "head_weights.stationary_heads": {
        "rng": RNG,
        "n_heads": 2,
        "dim": 3,
        "noise_variance": 1.0,
        "mean": np.eye(3),
        "paths": 2,
    },
    "head_weights.oscillating_target": {"times": np.array([0.0, 0.5])},
    "head_weights.symmetric_part": {"matrices": _HEADS},
    "head_weights.Frozen": {"start": _HEADS},
    "head_weights.Relaxing": {"start": _HEADS, "limit": np.eye(3), "rate": 2.0},
    "head_weights.Oscillating": {"start": _HEADS, "phases": np.array([0.0, 1.0])},
    "head_weights.OrnsteinUhlenbeck": {
        "start": _HEADS,
        "noise_variance": 1.0,
        "mean": np.eye(3),
    },
    "head_weights.Frozen.at": {"time": 0.5},
    "head_weights.Relaxing.at": {"time": 0.5},
    "head_weights.Oscillating.at": {"time": 0.5},
    "head_weights.Oscillating.periodic": {"time": 0.5},
    "integrators.integrate": {
        "tokens": _POINTS,
        "weights": _HEADS,
        "final_time": 0.2,
        "dt": 0.1,
        "order": 1,
        "flow": "attention",
        "noise": None,
        "exact_weights": True,
        "moved_martingale": False,
        "record_every": 1,
        "keep_trajectory": True,
        "diagnostics": True,
    },
    "jump_laws.marchenko_pastur_pdf": {"x": np.array([0.5, 1.5]), "ratio": 0.5},
    "jump_laws.marchenko_pastur_cdf": {"x": np.array([0.5, 1.5]), "ratio": 0.5},
    "jump_laws.single_token_stieltjes": {"z": np.array([1.0 + 1j, 2.0 + 0.5j]), **_RATIOS},
    "pooled_models.draw_pooled": {
        "variant": "flipped",
        "weights": _WEIGHTS,
        "signs": _SIGNS,
        "signal": np.array([1.0, 0.5]),
        "size": 4,
        "rng": RNG,
    },
    "pooled_models.conditional_covariance": _CONDITIONAL,
    "pooled_models.covariance_terms": _CONDITIONAL,
    "pooled_spectra.second_moment": {"pooled": _RNG.standard_normal((8, 4)), "centred": True},
    "pooled_spectra.pooled_operator": {
        "matrix": vocabularies.pooling_matrix(_WEIGHTS, _ITEMS, 4),
        "embeddings": _TABLE.embeddings,
    },
    "pooled_spectra.covariance_operator": _CONDITIONAL,
    "pooled_spectra.top_outliers": {
        "operator": _MOMENT,
        "count": 1,
        "edge": 1.5,
        "tolerance": 1e-9,
        "max_products": 20,
        "rng": RNG,
    },
    "product_curve.edge_points": _RATIOS,
    "relaxation.kernel_eigenvalues": {"degrees": np.array([0, 2]), "dim": 3},
    "relaxation.uniform_energy": {"dim": 3},
    "relaxation.uniform_rates": {"degrees": np.array([0, 2]), "dim": 3},
    "relaxation.polygon_energy": {"n": 3},
    "replicates.generator": {"seed": 3, "index": 1, "stream": 2},
    "replicates.replicate": {
        "function": np.random.Generator.random,
        "count": 2,
        "seed": 3,
        "stream": 2,
        "executor": "serial",
        "workers": 1,
        "progress": False,
    },
    "replicates.mean_and_error": {"replicates": _RNG.standard_normal((4, 2))},
    "ridge_limits.ridge_limit": {
        **_AGREEMENT,
        "signal_norm2": 1.0,
        **_RATIOS,
        "penalty": 0.3,
    },
    "sequences.harmonic_weights": {"length": 3},
    "sequences.inclusive_weights": {"length": 3, "diagonal_score": 0.5},
    "sequences.optimal_weights": {"correlation": _CORRELATION},
    "sequences.signal_to_noise": {"weights": _WEIGHTS, "correlation": _CORRELATION},
    "sequences.effective_length": {"weights": _WEIGHTS},
    "sign_sequences.prefix_loadings": {"length": 4, "prefix": 2, "strength": 0.5},
    "sign_sequences.latent_correlation": {"loadings": _LOADINGS},
    "sign_sequences.latent_signs": {
        "loadings": _LOADINGS,
        "count": 6,
        "rng": RNG,
        "labels": _LABELS,
    },
    "sign_sequences.ar1_correlation": {"length": 3, "coefficient": 0.5},
    "sign_sequences.ar1_signs": {"length": 3, "coefficient": 0.5, "count": 2, "rng": RNG},
    "smoothing.nadaraya_watson": {**_SMOOTH, "values": _real(5, 2), "bandwidth": 0.7},
    "smoothing.smoothing_weights": {**_SMOOTH, "bandwidth": 0.7},
    "sphere.project": {"points": _POINTS, "vectors": _real(5, 3)},
    "sphere.retract": {"points": _real(5, 3)},
    "sphere.exponential": {"points": _POINTS, "vectors": _real(5, 3)},
    "sphere.distance": {"first": _POINTS, "second": _OTHERS},
    "sphere.quasi_uniform": {"n": 4, "dim": 3, "dtype": torch.float64, "device": "cpu"},
    "sphere.uniform": {"rng": RNG, "n": 4, "dim": 3, "dtype": torch.float64, "device": "cpu"},
    "sphere.octahedral": {
        "rng": RNG,
        "n": 4,
        "dim": 3,
        "noise": 0.1,
        "dtype": torch.float64,
        "device": "cpu",
    },
    "spikes.spike_parameter": {
        "snr": np.array([2.0, 3.0]),
        "signal_norm2": np.array([1.0, 2.0]),
        "delta": np.array([0.5, 0.4]),
    },
    "spikes.spike_parameter_as_stated": {
        "snr": np.array([2.0, 3.0]),
        "signal_norm2": np.array([1.0, 2.0]),
        "delta": np.array([0.5, 0.4]),
    },
    **{
        f"spikes.{name}": {"y": np.array([2.0, 3.0]), **_RATIOS}
        for name in ("level", "outlier", "slope_of_level")
    },
    "spikes.critical_spike": _RATIOS,
    "spikes.critical_signal": {"snr": np.array([2.0, 3.0]), **_RATIOS},
    "spikes.critical_signal_as_stated": {"snr": np.array([2.0, 3.0]), **_RATIOS},
    "transformer.starting_projections": {
        "rng": RNG,
        "start": "aligned",
        "n_heads": 2,
        "head_dim": 2,
        "dim": 4,
        "jitter": 0.1,
    },
    "transformer.in_context_predictions": {
        "keys": _real(2, 3, 2),
        "queries": _real(2, 3, 2),
        "gain": _real(),
        "tokens": _real(4, 3),
        "values": _real(4, 2),
        "token": _real(3),
    },
    "transformer.train_in_context": {
        "rngs": [RNG],
        "runs": [transformer.Run("random", 2)],
        "n_heads": 2,
        "head_dim": 2,
        "dim": 4,
        "n_tokens": 3,
        "noise": 0.5,
        "steps": 1,
        "prompts": 2,
        "functions": 2,
        "learning_rate": 0.02,
        "weight_decay": 0.1,
        "records": 1,
        "dtype": torch.float64,
        "device": "cpu",
    },
    "transport.wasserstein_distance": _CLOUDS,
    "transport.optimal_plan": _CLOUDS,
    "transport.paired_distance": {"first": _POINTS, "second": _OTHERS},
    "transport.minimising_movements": {
        **_TOKENS_AND_HEADS,
        "step": 0.1,
        "count": 1,
        "flow": "gradient",
        "tolerance": 1e-3,
    },
    "vocabularies.draw_vocabulary": {
        "signal": np.array([1.0, 0.5]),
        "size": 4,
        "rng": RNG,
        "noise": "class-centred",
    },
    "vocabularies.draw_tokens": {"signs": _SIGNS, "size": 4, "rng": RNG},
    "vocabularies.pooling_matrix": {
        "weights": _WEIGHTS,
        "tokens": _ITEMS,
        "size": 4,
        "factors": np.ones((2, 3)),
    },
    "vocabularies.pool": {
        "weights": _WEIGHTS,
        "tokens": _ITEMS,
        "embeddings": _TABLE.embeddings,
        "factors": np.ones((2, 3)),
    },
    "vocabularies.causal_attention": {
        "tokens": _ITEMS,
        "embeddings": _TABLE.embeddings,
        "inverse_temperature": 0.5,
        "strict": True,
    },
}
