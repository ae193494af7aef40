r"""Forward pass of a trained BERT-like encoder, with everything that a theory may ask about kept.

Tokens x are rows of dimension D = H·k. A layer with H heads sends all tokens of a text through

    w^h_ij = softmax_j(⟨W_Q^h x_i + b_Q^h, W_K^h x_j + b_K^h⟩ / √k),     attention maps
    a_i    = Σ_h W_O^h Σ_j w^h_ij (W_V^h x_j + b_V^h) + b_O,             the attention step
    y_i    = N(x_i + a_i),   x_i' = N'(y_i + W_2 gelu(W_1 y_i + b_1) + b_2),

where N and N' normalise each token to mean 0 and variance 1, then scale and shift its coordinates.
The first tokens are N(embedding of the word + of the position + of the only segment). Weights are
handed over as a dictionary of tensors under the customary names of such models; this module reads
no file. Tensors in, tensors out; dtype and device are those of the weights.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch.nn import functional

from rederive import validation
from rederive.attention import attention_weights


class Config(NamedTuple):
    """Sizes of an encoder.

    Attributes
    ----------
    n_layers, n_heads, dim : int
        L, H and D; k = D/H.
    norm_epsilon : float
        Added to the variance where tokens are normalised.
    """

    n_layers: int
    n_heads: int
    dim: int
    norm_epsilon: float

    @property
    def head_dim(self):
        """Dimension k of keys and queries."""
        return self.dim // self.n_heads


class Heads(NamedTuple):
    """The projections of one layer, head by head, acting on columns.

    Attributes
    ----------
    query, key, value : torch.Tensor, shape (H, k, D)
        W_Q, W_K, W_V.
    query_bias, key_bias, value_bias : torch.Tensor, shape (H, k)
        Their biases.
    output : torch.Tensor, shape (H, D, k)
        W_O, one block of columns a head.
    output_bias : torch.Tensor, shape (D,)
        b_O.
    """

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    query_bias: torch.Tensor
    key_bias: torch.Tensor
    value_bias: torch.Tensor
    output: torch.Tensor
    output_bias: torch.Tensor


class Pass(NamedTuple):
    """What a forward pass leaves behind.

    Attributes
    ----------
    tokens : torch.Tensor, shape (L + 1, N, T, D)
        Tokens before the first layer and after each of them.
    maps : torch.Tensor, shape (L, N, H, T, T)
        Attention maps; rows sum to one.
    values : torch.Tensor, shape (L, N, H, T, k)
        Values of each head, biases included.
    steps : torch.Tensor, shape (L, N, T, D)
        Attention steps a, before they are added and normalised.
    """

    tokens: torch.Tensor
    maps: torch.Tensor
    values: torch.Tensor
    steps: torch.Tensor


def read_config(config):
    """Read the sizes of an encoder and refuse what this forward pass does not do.

    Parameters
    ----------
    config : mapping
        The customary entries: model_type "bert", hidden_act "gelu", position_embedding_type
        "absolute", num_hidden_layers, num_attention_heads, hidden_size, layer_norm_eps.

    Returns
    -------
    Config
        The sizes.

    Raises
    ------
    ValueError
        If an entry is missing or another kind of model is described.
    """
    if not isinstance(config, Mapping):
        validation.fail("config", "a mapping", type(config).__name__)
    for name, wanted in (("model_type", "bert"), ("hidden_act", "gelu")):
        validation.one_of(config.get(name), f"config[{name!r}]", (wanted,))
    position = config.get("position_embedding_type", "absolute")
    validation.one_of(position, "config['position_embedding_type']", ("absolute",))
    layers, heads, dim = (
        validation.integer(config.get(name), f"config[{name!r}]", minimum=1)
        for name in ("num_hidden_layers", "num_attention_heads", "hidden_size")
    )
    if dim % heads:
        validation.fail("config['hidden_size']", f"a multiple of {heads} heads", dim)
    epsilon = config.get("layer_norm_eps")
    return Config(
        layers, heads, dim, validation.number(epsilon, "config['layer_norm_eps']", above=0)
    )


def heads(tensors, config, layer):
    """Cut the projections of a layer into heads.

    Parameters
    ----------
    tensors : dict of str to torch.Tensor
        The weights.
    config : Config
        The sizes.
    layer : int
        0, …, L − 1.

    Returns
    -------
    Heads
        Views into the weights, no copies.

    Raises
    ------
    ValueError
        If a tensor is missing or misshapen, or there is no such layer.
    """
    config = _checked(tensors, config)
    layer = validation.integer(layer, "layer", minimum=0, maximum=config.n_layers - 1)
    count, k, dim = config.n_heads, config.head_dim, config.dim
    name = f"encoder.layer.{layer}.attention."
    matrices, biases = [], []
    for part in ("query", "key", "value"):
        matrices.append(_get(tensors, f"{name}self.{part}.weight", (dim, dim)).view(count, k, dim))
        biases.append(_get(tensors, f"{name}self.{part}.bias", (dim,)).view(count, k))
    output = _get(tensors, f"{name}output.dense.weight", (dim, dim))
    output_bias = _get(tensors, f"{name}output.dense.bias", (dim,))
    return Heads(*matrices, *biases, output.view(dim, count, k).movedim(1, 0), output_bias)


def embed(tensors, config, ids):
    """Turn words into the tokens that enter the first layer.

    Parameters
    ----------
    tensors : dict of str to torch.Tensor
        The weights.
    config : Config
        The sizes.
    ids : torch.Tensor or array_like of int, shape (N, T)
        Numbers of the words, special ones included.

    Returns
    -------
    torch.Tensor, shape (N, T, D)
        Normalised sums of word, position and segment embeddings.

    Raises
    ------
    ValueError
        If a number is no word, a text is too long, or a tensor is missing or misshapen.
    """
    config = _checked(tensors, config)
    words = _get(tensors, "embeddings.word_embeddings.weight", ("V", config.dim))
    places = _get(tensors, "embeddings.position_embeddings.weight", ("P", config.dim))
    segments = _get(tensors, "embeddings.token_type_embeddings.weight", ("S", config.dim))
    ids = validation.array(ids, "ids", shape=("N", "T"), dtype=int)
    if ids.min() < 0 or ids.max() >= len(words):
        wrong = int(ids.min() if ids.min() < 0 else ids.max())
        validation.fail("ids", f"numbers of words, 0 to {len(words) - 1}", wrong)
    if ids.shape[1] > len(places):
        validation.fail("ids", f"at most {len(places)} tokens a text", ids.shape[1])
    rows = words[torch.from_numpy(ids).to(words.device)]
    rows = rows + places[: ids.shape[1]] + segments[0]
    return _finite(_normalise(tensors, "embeddings.", rows, config))


def layer_pass(tensors, config, layer, tokens, *, mask=None):
    """Send tokens through one layer.

    Parameters
    ----------
    tensors : dict of str to torch.Tensor
        The weights.
    config : Config
        The sizes.
    layer : int
        0, …, L − 1.
    tokens : torch.Tensor, shape (N, T, D)
        Tokens that enter the layer.
    mask : torch.Tensor of bool, shape (N, T), optional
        True where there is a token, False where a short text was filled up.

    Returns
    -------
    tuple of torch.Tensor
        Tokens that leave the layer (N, T, D), maps (N, H, T, T), values (N, H, T, k), attention
        steps (N, T, D).

    Raises
    ------
    ValueError
        If the tokens do not fit, or a tensor is missing or misshapen.
    """
    own = heads(tensors, config, layer)
    tokens = validation.tensor(tokens, "tokens", shape=("N", "T", config.dim), like=own.query)
    queries, keys, values = (
        torch.einsum("ntd,hkd->nhtk", tokens, matrix) + bias[:, None]
        for matrix, bias in (
            (own.query, own.query_bias),
            (own.key, own.key_bias),
            (own.value, own.value_bias),
        )
    )
    seen = None
    if mask is not None:
        seen = validation.truths(mask, "mask", tokens.shape[:2])[:, None, None, :]
    beta = config.head_dim**-0.5
    _finite(queries), _finite(keys)
    maps = attention_weights(queries, keys, beta, mask=seen)
    steps = torch.einsum("nhtk,hdk->ntd", maps @ values, own.output) + own.output_bias
    name = f"encoder.layer.{layer}."
    middle = _normalise(tensors, name + "attention.output.", tokens + steps, config)
    wide = functional.gelu(_linear(tensors, name + "intermediate.dense", middle))
    after = _linear(tensors, name + "output.dense", wide, config.dim)
    after = _normalise(tensors, name + "output.", middle + after, config)
    return _finite(after), maps, values, steps


def forward(tensors, config, ids, *, mask=None):
    """Send texts through all layers and keep tokens, attention maps, values and steps.

    Parameters
    ----------
    tensors : dict of str to torch.Tensor
        The weights.
    config : Config
        The sizes.
    ids : torch.Tensor or array_like of int, shape (N, T)
        Numbers of the words.
    mask : torch.Tensor of bool, shape (N, T), optional
        True where there is a token; every text needs one.

    Returns
    -------
    Pass
        L + 1 layers of tokens, L layers of all else. It takes N·L·(H·T² + 3·T·D) numbers: send
        long lists of texts in portions.

    Raises
    ------
    ValueError
        If the words or the mask do not fit, or a tensor is missing or misshapen.
    """
    tokens = [embed(tensors, config, ids)]
    if mask is not None:
        validation.truths(mask, "mask", tokens[0].shape[:2])
    kept = []
    for layer in range(config.n_layers):
        after, *rest = layer_pass(tensors, config, layer, tokens[-1], mask=mask)
        tokens.append(after)
        kept.append(rest)
    return Pass(torch.stack(tokens), *(torch.stack(parts) for parts in zip(*kept, strict=True)))


def shuffled(tensors, rng):
    """Shuffle the entries of every matrix: a network of the same sizes without its structure.

    Parameters
    ----------
    tensors : dict of str to torch.Tensor
        The weights.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    dict of str to torch.Tensor
        Matrices of the layers with their entries permuted, so that every matrix keeps its
        histogram; embeddings, biases and normalisations as they were.

    Raises
    ------
    ValueError
        If `tensors` is no dictionary of tensors, or `rng` no generator.
    """
    if not isinstance(tensors, dict) or not all(map(validation.is_tensor, tensors.values())):
        validation.fail("tensors", "a dictionary of tensors", type(tensors).__name__)
    validation.generator(rng)
    found = {}
    for name, tensor in sorted(tensors.items()):  # one generator, one result, in whatever order
        if name.startswith("encoder.") and tensor.ndim == 2:
            entries = rng.permutation(tensor.detach().cpu().numpy().ravel())
            tensor = torch.from_numpy(entries).view(tensor.shape).to(tensor.device)
        found[name] = tensor
    return found


def _checked(tensors, config):
    validation.instance(tensors, "tensors", Mapping, "a mapping from names to tensors")
    validation.instance(config, "config", Config, "a Config")
    for name in ("n_layers", "n_heads", "dim"):
        validation.integer(getattr(config, name), f"config[{name!r}]", minimum=1)
    if config.dim % config.n_heads:
        validation.fail("config['dim']", f"a multiple of {config.n_heads} heads", config.dim)
    validation.positive(config.norm_epsilon, "config['norm_epsilon']")
    return config


def _finite(tokens):
    """Refuse weights with which a token is not finite: the weights themselves are not looked at."""
    if validation.has_values(tokens) and not tokens.detach().isfinite().all():
        expected = "weights with which these tokens stay finite"
        validation.fail("tensors", expected, "inf or nan on the way")
    return tokens


def _get(tensors, name, shape):
    if name not in tensors:
        validation.fail("tensors", f"an entry {name!r}", f"{len(tensors)} others")
    return validation.tensor(tensors[name], f"tensors[{name!r}]", shape=shape, finite=False)


def _linear(tensors, name, tokens, wide="M"):
    weight = _get(tensors, f"{name}.weight", (wide, tokens.shape[-1]))
    return functional.linear(tokens, weight, _get(tensors, f"{name}.bias", (len(weight),)))


def _normalise(tensors, name, tokens, config):
    scale = _get(tensors, f"{name}LayerNorm.weight", (config.dim,))
    shift = _get(tensors, f"{name}LayerNorm.bias", (config.dim,))
    return functional.layer_norm(tokens, (config.dim,), scale, shift, config.norm_epsilon)
