"""What a check may be handed as numbers, and how far rounding may have moved them."""

from numbers import Integral, Real

import numpy as np

_UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11}
_LARGEST_EXACT_INTEGER = 2**53
_LONGEST_LIST = 16


def as_reals(value, argument):
    """Turn real input into a float64 array and tell the unit round-off it came with.

    Parameters
    ----------
    value : array-like or torch tensor
        Real, finite, at least one entry. Booleans, complex numbers, masked arrays and integers
        that float64 cannot hold are refused rather than reinterpreted.
    argument : str
        Name used in the message of an error.

    Returns
    -------
    array : numpy.ndarray
        float64, the shape of `value`.
    unit_roundoff : float
        2⁻⁵³ for float64, integers and Python numbers, 2⁻²⁴ for float32, 2⁻¹¹ for float16,
        2⁻⁸ for bfloat16.

    Raises
    ------
    ValueError
        If `value` is anything else.
    """
    unit_roundoff = None
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        try:
            value = value.detach().cpu()
            if str(value.dtype) == "torch.bfloat16":
                unit_roundoff, value = 2.0**-8, value.float()
            value = value.numpy()
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"{argument} must be a dense tensor that holds values") from error
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{argument} must be a plain array, got a masked one")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{argument} must be a rectangular array of real numbers") from error
    if array.size == 0:
        raise ValueError(f"{argument} must have at least one entry, got shape {array.shape}")
    if array.dtype == object:
        entries = array.ravel().tolist()
        wrong = [e for e in entries if isinstance(e, bool) or not isinstance(e, Real)]
        if wrong:
            raise ValueError(f"{argument} must hold real numbers, got {type(wrong[0]).__name__}")
        _refuse_large_integers([e for e in entries if isinstance(e, Integral)], argument)
        array = np.array([float(entry) for entry in entries]).reshape(array.shape)
    elif array.dtype.kind in "iu":
        _refuse_large_integers([array.min(), array.max()], argument)
        array = array.astype(np.float64)
    elif array.dtype.name not in _UNIT_ROUNDOFF:
        raise ValueError(
            f"{argument} must hold real numbers up to float64 (of complex ones stack the real "
            f"and imaginary parts), got dtype {array.dtype}"
        )
    if unit_roundoff is None:
        unit_roundoff = _UNIT_ROUNDOFF[array.dtype.name]
    if not np.isfinite(array).all():
        raise ValueError(f"{argument} must be finite, got {array[~np.isfinite(array)][0]}")
    return array.astype(np.float64), unit_roundoff


def as_real(value, argument, *, least=None, above=None):
    """Turn a real scalar into a float; refuse it outside ``[least, ∞)`` or ``(above, ∞)``."""
    array, _ = as_reals(value, argument)
    if array.ndim:
        raise ValueError(f"{argument} must be a single number, got shape {array.shape}")
    number = float(array)
    if least is not None and number < least:
        raise ValueError(f"{argument} must be at least {least}, got {number}")
    if above is not None and number <= above:
        raise ValueError(f"{argument} must be above {above}, got {number}")
    return number


def sourced_bound(value, source, argument, source_argument):
    """A non-negative bound, which needs a source unless it is zero."""
    value = 0.0 if value is None else as_real(value, argument, least=0.0)
    if source is not None and (not isinstance(source, str) or not source.strip()):
        raise ValueError(f"{source_argument} must be a text, got {source!r}")
    if (value > 0.0) != (source is not None):
        raise ValueError(
            f"{argument} and {source_argument} go together, got {value} and {source!r}"
        )
    return value


def spread_scalar(array, shape, argument, other):
    """Spread a scalar over `shape`; refuse any other difference of shapes."""
    if array.ndim and array.shape != shape:
        raise ValueError(
            f"{argument} must be a number or have the shape {shape} of {other}, got {array.shape}"
        )
    return np.broadcast_to(array, shape)


def gamma(operations, unit_roundoff):
    """Bound on the relative error of a chain of rounded operations.

    Notes
    -----
    A product of k factors (1 + δᵢ)^{±1} with |δᵢ| ≤ u equals 1 + θ, and
    |θ| ≤ γ_k = k·u / (1 − k·u) as long as k·u < 1. Underflow is left aside.
    """
    if isinstance(operations, bool) or not isinstance(operations, Integral) or operations < 1:
        raise ValueError(f"operations must be a positive whole number, got {operations!r}")
    share = int(operations) * unit_roundoff
    if share >= 1.0:
        raise ValueError(f"operations must stay below {1 / unit_roundoff:.3g}, got {operations}")
    return share / (1.0 - share)


def worst_or_all(array, worst):
    """Give the number, the short list, or the entry at flat index `worst` of a long array."""
    if array.ndim == 0:
        return float(array)
    flat = np.ravel(array)
    return flat.tolist() if flat.size <= _LONGEST_LIST else float(flat[worst])


def _refuse_large_integers(entries, argument):
    for entry in entries:
        if abs(int(entry)) > _LARGEST_EXACT_INTEGER:
            raise ValueError(f"{argument} holds the integer {entry}, too large to be exact")
