"""Blocks of scores between tokens: how large they are, and memory for them.

The scores of all pairs of tokens under all heads are too many to keep. They are computed in blocks
that stay in a core's cache. Where a device has no memory for a block, smaller ones are taken; where
it has none for the tokens' own sums, a ``MemoryError`` says what to hand over instead.
"""

import functools
import math

import torch

# Entries of a block of scores: on a CPU it should stay in the cache.
_BLOCK = {"cpu": 2**17, "other": 2**24}
# Blocks are not cut below this when memory is short.
_LEAST = 2**12
# Powers of two take PyTorch two thirds of the time of powers of e.
_LOG2_E = 1 / math.log(2)


def _with_advice(function):
    """Let a function of tokens and heads say what to change when the device has no room."""

    @functools.wraps(function)
    def wrapped(tokens, heads, *args, **kwargs):
        try:
            return function(tokens, heads, *args, **kwargs)
        except torch.OutOfMemoryError as error:
            sizes = f"tokens {tuple(tokens.shape)} and heads {tuple(heads.shape)}"
            raise MemoryError(
                f"no room on {tokens.device} for {sizes} in {tokens.dtype}: hand over fewer paths "
                "at a time, or fewer heads or tokens, or take float32; blocks of scores have been "
                "made smaller already. Where gradients pass through every score is kept: take "
                "torch.no_grad() if none are needed"
            ) from error

    return wrapped


def _blocks(like, paths, n, columns):
    """Sizes of a block, in paths, rows and columns of scores, and memory for them.

    A block has whole columns as long as it has many of them. For more tokens it is nearly square:
    few columns that are longer than the cache would take three times as long.
    """
    block = _BLOCK.get(like.device.type, _BLOCK["other"])
    while True:
        tall = n if 64 * n <= block else min(n, math.isqrt(block // 2))
        wide = min(columns, max(16, block // tall))
        deep = min(paths, max(1, block // (tall * wide)))
        try:
            return deep, tall, wide, _reserve(like, deep * tall * wide)
        except torch.OutOfMemoryError:
            if block <= _LEAST:
                raise
            block //= 4


def _reserve(like, size):
    return like.new_empty(size)


def _part(room, *shape):
    """The beginning of the reserved memory, in a shape."""
    return room[: math.prod(shape)].view(shape)
