"""Softmax attention weights and masks: what all chapters share.

A query q and keys k₁,…,k_n get the weights

    w_i = exp(β q·k_i) / Σ_j exp(β q·k_j),

with β the inverse temperature, 1/√d_k in transformers. Tensors in, tensors out; dtype and device
are kept.
"""

import torch

from rederive import validation


def causal_mask(length, *, strict=False, device=None):
    """Return the mask that hides the future.

    Parameters
    ----------
    length : int
        Number T of tokens.
    strict : bool, optional
        False: token t sees 1…t, itself included. True: token t sees 1…t−1 only, so that the first
        row is empty; leave that row out before weights are asked for.
    device : torch.device, optional
        Where the mask lives.

    Returns
    -------
    torch.Tensor, shape (T, T), bool
        True where the row's token may attend to the column's.

    Raises
    ------
    ValueError
        If the length is not a positive integer, or there is no such device.
    """
    length = validation.integer(length, "length", minimum=1)
    device = validation.device(device)
    every = torch.ones(length, length, dtype=torch.bool, device=device)
    return every.tril(-1 if validation.one_of(strict, "strict", (False, True)) else 0)


def attention_weights(queries, keys, inverse_temperature, *, mask=None):
    r"""Return the softmax weights of every query over the keys.

    Parameters
    ----------
    queries : torch.Tensor, shape (…, m, p)
        Queries; leading axes broadcast with those of the keys.
    keys : torch.Tensor, shape (…, n, p)
        Keys, n ≥ 1, of the same dtype and device.
    inverse_temperature : float
        β ≥ 0; transformers take 1/√d_k.
    mask : torch.Tensor, bool, optional
        True where a query may attend to a key; broadcasts to (…, m, n). Every row must leave at
        least one key. See :func:`causal_mask`.

    Returns
    -------
    torch.Tensor, shape (…, m, n)
        Non-negative weights; rows sum to one.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, an entry is not finite, β is negative, or a row is
        masked out.

    Notes
    -----
    :math:`w_{ij} = e^{\beta q_i\cdot k_j} / \sum_l e^{\beta q_i\cdot k_l}`, computed after the
    largest score of the row is subtracted, so that scores of any size give finite weights.

    References
    ----------
    E. Fokoué, arXiv:2605.20271.
    """
    queries, keys, beta = _checked(queries, keys, inverse_temperature)
    mask = _checked_mask(mask, queries, keys)
    return _weights(queries, keys, beta, mask)


def attend(queries, keys, values, inverse_temperature, *, mask=None):
    r"""Return the attention output of every query, the weighted mean of the values.

    Parameters
    ----------
    queries : torch.Tensor, shape (…, m, p)
        Queries.
    keys : torch.Tensor, shape (…, n, p)
        Keys.
    values : torch.Tensor, shape (…, n, v)
        One value a key; leading axes broadcast.
    inverse_temperature : float
        β ≥ 0.
    mask : torch.Tensor, bool, optional
        As in :func:`attention_weights`.

    Returns
    -------
    torch.Tensor, shape (…, m, v)
        :math:`\sum_j w_{ij} y_j`.

    Raises
    ------
    ValueError
        As in :func:`attention_weights`, or if the values do not fit the keys.

    Notes
    -----
    The whole weight matrix is formed. For many keys and a Gaussian kernel see
    :func:`rederive.smoothing.nadaraya_watson`.

    References
    ----------
    E. Fokoué, arXiv:2605.20271.
    """
    queries, keys, beta = _checked(queries, keys, inverse_temperature)
    values = validation.tensor(
        values, "values", shape=(..., keys.shape[-2], "v"), like=queries, empty=True
    )
    _broadcast("values", values.shape[:-2], _leading(queries, keys))
    mask = _checked_mask(mask, queries, keys)
    return _weights(queries, keys, beta, mask) @ values


def _weights(queries, keys, beta, mask):
    scores = (beta * queries) @ keys.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1)


def _checked(queries, keys, inverse_temperature):
    beta = validation.number(inverse_temperature, "inverse_temperature", minimum=0)
    queries = validation.tensor(queries, "queries", shape=(..., "m", "p"), empty=True)
    keys = validation.tensor(keys, "keys", shape=(..., "n", queries.shape[-1]), like=queries)
    _broadcast("keys", keys.shape[:-2], queries.shape[:-2])
    return queries, keys, beta


def _checked_mask(mask, queries, keys):
    if mask is None:
        return None
    if validation.truths(mask, "mask").device != queries.device:
        validation.fail("mask", f"device {queries.device}", str(mask.device))
    full = (*_leading(queries, keys), queries.shape[-2], keys.shape[-2])
    if _broadcast("mask", mask.shape, full) != full:
        validation.fail("mask", f"a shape that broadcasts to {full}", f"shape {tuple(mask.shape)}")
    if validation.has_values(mask) and mask.shape and not mask.any(-1).all():
        validation.fail("mask", "at least one key for every query", "a row without any")
    return mask


def _leading(queries, keys):
    return tuple(torch.broadcast_shapes(queries.shape[:-2], keys.shape[:-2]))


def _broadcast(name, shape, other):
    try:
        return tuple(torch.broadcast_shapes(shape, other))
    except RuntimeError:
        validation.fail(name, f"axes that broadcast with {tuple(other)}", f"{tuple(shape)}")
