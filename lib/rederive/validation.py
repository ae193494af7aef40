"""The checks of arguments, in one place.

Every check takes the value and the name of the argument, returns the checked value, and raises
``ValueError`` with one sentence that names the argument, what was expected and what came::

    bandwidth: expected a positive finite number, got -1.0

Booleans and strings are not numbers, and NaN never passes. Checks that must look at values
(finite, on the sphere, symmetric, full rank) let PyTorch's fake and meta tensors pass, since these
carry a shape, a dtype and a device, but no numbers; on a GPU such a check is a synchronisation,
which is why kernels do not check and public functions do so once.

One slack serves every closed condition ("has norm one", "is symmetric"): :func:`slack`, which is
100 times the square root of the spacing of the dtype. That is far above what rounding leaves behind
and far below what a slip of the pen produces.

What overflows only on the way to the result is refused by :func:`representable`, a decorator, under
the name of the argument with the most extreme entry.

Importing this module does not import PyTorch.
"""

import contextlib
import functools
import inspect
import math
import numbers
import sys

import numpy as np


def fail(name, expected, got):
    """Raise the one ``ValueError`` of the library; a string is printed as it is, else its repr."""
    raise ValueError(f"{name}: expected {expected}, got {got if type(got) is str else _shown(got)}")


def number(value, name, *, above=None, minimum=None, below=None, maximum=None):
    """Return a finite real number as a float, inside open (above, below) or closed bounds.

    Python and NumPy numbers pass, and arrays and tensors without axes.
    """
    found = _scalar(value)
    words = " and ".join(
        f"{sign} {bound}"
        for sign, bound in ((">", above), (">=", minimum), ("<", below), ("<=", maximum))
        if bound is not None
    )
    expected = f"a finite number {words}".rstrip()
    if above == 0 and words == "> 0":
        expected = "a positive finite number"
    if found is None or not np.isfinite(found):
        fail(name, expected, _shown(value))
    inside = (
        (above is None or found > above)
        and (minimum is None or found >= minimum)
        and (below is None or found < below)
        and (maximum is None or found <= maximum)
    )
    if not inside:
        fail(name, expected, found)
    return found


def positive(value, name):
    """Return a positive finite number as a float; see :func:`number`."""
    return number(value, name, above=0)


def integer(value, name, *, minimum=None, maximum=None):
    """Return an integer inside closed bounds as an int; not 2.0, not True, nothing from 2⁶³ on."""
    words = " and ".join(
        f"{sign} {bound}" for sign, bound in ((">=", minimum), ("<=", maximum)) if bound is not None
    )
    expected = f"an integer {words}".rstrip()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        fail(name, expected, _shown(value))
    found = int(value)
    if abs(found) >= 2**63:
        fail(name, f"{expected} below 2⁶³", f"one of {found.bit_length()} bits")
    if (minimum is not None and found < minimum) or (maximum is not None and found > maximum):
        fail(name, expected, found)
    return found


def one_of(value, name, options):
    """Return a value that equals one of the options and has its type, or NumPy's for it."""
    if isinstance(value, np.generic):
        value = value.item()
    for option in options:
        if type(value) is type(option) and value == option:
            return value
    fail(name, "one of " + ", ".join(map(repr, options)), _shown(value))


def instance(value, name, kind, words):
    """Return a value of a type or of one of several types; `words` say which in the message."""
    if not isinstance(value, kind):
        fail(name, words, _shown(value))
    return value


def generator(value, name="rng"):
    """Return a NumPy random generator; a seed is refused, which would give the same each time."""
    return instance(value, name, np.random.Generator, "a numpy.random.Generator")


def floating(value, name="dtype"):
    """Return a floating-point torch.dtype."""
    import torch

    if not isinstance(value, torch.dtype) or not value.is_floating_point:
        fail(name, "a floating-point torch.dtype", _shown(value))
    return value


def device(value, name="device"):
    """Return a torch.device, from one or from its name, or None."""
    import torch

    try:
        return None if value is None else torch.device(value)
    except (RuntimeError, TypeError):
        fail(name, "a torch.device, its name or None", _shown(value))


def truths(value, name, shape=None):
    """Return a tensor of booleans, of a given shape if one is given."""
    if not is_tensor(value) or str(value.dtype) != "torch.bool":
        fail(name, "a tensor of booleans", str(value.dtype) if is_tensor(value) else _shown(value))
    if shape is not None and value.shape != tuple(shape):
        fail(name, f"shape {tuple(shape)}", f"shape {tuple(value.shape)}")
    return value


def broadcast(**arrays):
    """Return arrays, handed over under the names of their arguments, in their common shape."""
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError:
        shapes = ", ".join(str(found.shape) for found in arrays.values())
        fail(next(iter(arrays)), "shapes that go together", shapes)


def array(value, name, *, ndim=None, shape=None, dtype=float, finite=True, empty=False):
    """Check an array-like and return it as a NumPy array.

    Parameters
    ----------
    value : array_like
        Numbers, nested sequences of numbers, an array, or a tensor (moved to the CPU).
    name : str
        Name of the argument, for the message.
    ndim : int, optional
        Required number of axes.
    shape : tuple, optional
        Required shape. An int demands that length; a string or None accepts any length, the string
        being the symbol that the message prints; a leading ``...`` accepts further axes.
    dtype : {float, int, complex}, optional
        Type of the result. Floats are taken as integers where they are whole.
    finite : bool, optional
        Refuse NaN and infinities. NaN is refused in either case.
    empty : bool, optional
        Accept axes of length zero.

    Returns
    -------
    numpy.ndarray
        The array in float64, int64 or complex128; it may share memory with the input.

    Raises
    ------
    ValueError
        If the value is no such array.
    """
    kinds = {float: "iuf", int: "iuf", complex: "iufc"}[dtype]
    what = {float: "real", int: "integer", complex: "complex"}[dtype]
    if isinstance(value, np.ma.MaskedArray):
        fail(name, "an array without a mask", "a masked array")
    try:
        found = np.asarray(value.detach().cpu() if is_tensor(value) else value)
        if found.dtype.kind == "O" and not _has_booleans(found):
            found = found.astype(complex if dtype is complex else float)
    except (TypeError, ValueError, RuntimeError, NotImplementedError, OverflowError):
        fail(name, f"an array of {what} numbers", _shown(value))
    if found.dtype.kind not in kinds:
        fail(name, f"an array of {what} numbers", f"an array of {found.dtype}")
    _check_shape(found.shape, name, ndim, shape, empty)
    if np.isnan(found).any() or ((finite or dtype is int) and not np.isfinite(found).all()):
        fail(name, "finite entries only", _bad(found, ~np.isfinite(found)))
    if dtype is int and found.dtype.kind != "i":
        wrong = (np.trunc(found) != found) | (abs(found) >= 2**63)
        if wrong.any():
            fail(name, "an array of integer numbers below 2⁶³", _bad(found, wrong))
    return found.astype(
        {float: np.float64, int: np.int64, complex: np.complex128}[dtype], copy=False
    )


def tensor(value, name, *, ndim=None, shape=None, like=None, finite=True, empty=False):
    """Check a tensor of floating-point numbers and return it, dtype and device kept.

    Parameters
    ----------
    value : torch.Tensor or array_like
        A tensor is returned as it is. A tensor of integers is refused, because the dtype of the
        result would have to be guessed. Anything that is not a tensor is copied into one: on the
        device and in the dtype of `like`; without `like` on the CPU, a NumPy array of float32 as
        such and all else in float64.
    name : str
        Name of the argument, for the message.
    ndim : int, optional
        Required number of axes.
    shape : tuple, optional
        Required shape, as in :func:`array`.
    like : torch.Tensor, optional
        A tensor whose dtype and device the value must share.
    finite : bool, optional
        Refuse NaN and infinities; fake and meta tensors pass.
    empty : bool, optional
        Accept axes of length zero.

    Returns
    -------
    torch.Tensor
        The tensor.

    Raises
    ------
    ValueError
        If the value is no such tensor.
    """
    import torch

    if not isinstance(value, torch.Tensor):
        single = isinstance(value, np.ndarray) and value.dtype == np.float32
        plain = array(value, name, ndim=ndim, shape=shape, finite=finite, empty=empty)
        if like is None:
            return torch.tensor(plain, dtype=torch.float32 if single else torch.float64)
        return torch.tensor(plain, dtype=like.dtype, device=like.device)
    if value.layout != torch.strided or not value.dtype.is_floating_point:
        fail(name, "a dense floating-point tensor", f"{value.dtype}, {value.layout}")
    if like is not None and value.dtype != like.dtype:
        fail(name, f"dtype {like.dtype}", str(value.dtype))
    if like is not None and value.device != like.device:
        fail(name, f"device {like.device}", str(value.device))
    _check_shape(tuple(value.shape), name, ndim, shape, empty)
    if finite and has_values(value) and value.numel():
        low, high = value.detach().aminmax()
        if not torch.isfinite(high - low) and not torch.isfinite(value).all():
            plain = value.detach().cpu().double().numpy()
            fail(name, "finite entries only", _bad(plain, ~np.isfinite(plain)))
    return value


def is_tensor(value):
    """Tell whether a value is a PyTorch tensor, without importing PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def has_values(value):
    """Tell whether an array or tensor carries numbers: fake and meta tensors do not."""
    if not is_tensor(value):
        return True
    from torch._subclasses import FakeTensor

    return not (value.is_meta or isinstance(value, FakeTensor))


def slack(value):
    """Return 100 √eps of the dtype of an array or tensor, the slack of every closed condition."""
    return 100 * float(_finfo(value).eps) ** 0.5


def on_sphere(value, name):
    """Return vectors (…, d) whose norms differ from one by at most :func:`slack`."""
    if has_values(value) and 0 not in value.shape:
        with np.errstate(over="ignore"):
            gap = float((((value * value).sum(-1)) ** 0.5 - 1).__abs__().max())
        if not gap <= slack(value):
            fail(name, "vectors of norm 1", f"a norm off by {gap:.3g}")
    return value


def symmetric(value, name):
    """Return matrices (…, d, d) that equal their transposes.

    Mirror images may differ by :func:`slack` times the largest entry.
    """
    if value.ndim < 2 or value.shape[-1] != value.shape[-2]:
        fail(name, "square matrices", f"shape {tuple(value.shape)}")
    if has_values(value) and 0 not in value.shape:
        with np.errstate(over="ignore"):
            gap = float((value - value.swapaxes(-1, -2)).__abs__().max())
        largest = float(value.__abs__().max())
        if not gap <= slack(value) * largest:
            fail(name, "symmetric matrices", f"entries that differ from their mirror by {gap:.3g}")
    return value


def full_column_rank(value, name):
    """Return matrices (…, p, k) with linearly independent columns.

    The smallest singular value must exceed max(p, k) eps times the largest, the usual bound on what
    rounding makes of a zero.
    """
    *_, rows, columns = value.shape
    if columns > rows:
        fail(name, "full column rank", f"{columns} columns of length {rows}")
    if has_values(value) and 0 not in value.shape:
        plain = value.detach().cpu().numpy() if is_tensor(value) else value
        singular = np.linalg.svd(plain, compute_uv=False)
        floor = rows * np.finfo(plain.dtype).eps * singular[..., :1]
        ranks = (singular > floor).sum(-1)
        if ranks.min() < columns:
            fail(name, f"full column rank {columns}", f"rank {int(ranks.min())}")
    return value


def squares_fit(value, name):
    """Return an array or tensor such that the sum of all its squares does not overflow."""
    if has_values(value) and 0 not in value.shape:
        plain = value.detach() if is_tensor(value) else value
        largest = max(-float(plain.min()), float(plain.max()))
        limit = math.sqrt(float(_finfo(plain).max) / math.prod(plain.shape))
        if not largest <= limit:
            fail(name, f"entries of size at most {limit:.3g}, whose squares fit", largest)
    return value


def representable(function):
    """Let a function refuse arguments for which its result leaves the range of floats.

    Overflow, division by zero, undefined operations, failures of linear algebra and a NaN in the
    result become a ``ValueError`` that names the argument with the most extreme entry. An infinity
    passes where the function makes one on purpose, under ``numpy.errstate``.
    """

    @functools.wraps(function)
    def checked(*args, **kwargs):
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                return _no_nan(function(*args, **kwargs))
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            given = inspect.signature(function).bind(*args, **kwargs).arguments
            name, size = _most_extreme(given)
            expected, got = "numbers for which the result is one", f"an entry of size {size:.3g}"
            raise ValueError(f"{name}: expected {expected}, got {got} ({error})") from error

    return checked


def _no_nan(found):
    """Return a result, or a tuple of them, without NaN, or raise an ArithmeticError."""
    for part in found if isinstance(found, tuple) else (found,):
        if isinstance(part, float | np.ndarray) or (is_tensor(part) and has_values(part)):
            if np.any(part != part) if not is_tensor(part) else (part != part).any():
                raise ArithmeticError("the result would be NaN")
    return found


def _most_extreme(given):
    """Name and size of the entry farthest from 1, on the scale of logarithms."""
    found = [(0.0, next(iter(given)), math.nan)]
    for name, value in given.items():
        with contextlib.suppress(TypeError, ValueError, RuntimeError, OverflowError):
            sizes = np.abs(np.asarray(value, dtype=complex))
            sizes = sizes[(sizes > 0) & np.isfinite(sizes)]
            found += [(abs(math.log(x)), name, x) for x in (sizes.min(), sizes.max())]
    return max(found)[1:]


def _finfo(value):
    finfo = sys.modules["torch"].finfo if is_tensor(value) else np.finfo
    return finfo(value.dtype)


def _scalar(value):
    """Return the float of a real scalar, or None."""
    if getattr(value, "shape", None) == () and hasattr(value, "item") and has_values(value):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _has_booleans(found):
    return any(isinstance(entry, (bool, np.bool_, str, bytes)) for entry in found.flat)


def _check_shape(got, name, ndim, shape, empty):
    if ndim is not None and len(got) != ndim:
        fail(name, f"{ndim} axes", f"shape {got}")
    if shape is not None:
        free = bool(shape) and shape[0] is Ellipsis
        tail = tuple(shape[1:]) if free else tuple(shape)
        fits = len(got) >= len(tail) if free else len(got) == len(tail)
        ends = got[len(got) - len(tail) :]
        if not fits or any(isinstance(s, int) and s != g for s, g in zip(tail, ends, strict=True)):
            words = ["…"] * free + ["any" if s is None else str(s) for s in tail]
            fail(name, f"shape ({', '.join(words)}{',' * (len(words) == 1)})", f"shape {got}")
    if not empty and 0 in got:
        fail(name, "at least one entry along every axis", f"shape {got}")


def _bad(found, wrong):
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    others = int(wrong.sum()) - 1
    return f"{found[where]} at index {where}" + f" and {others} more" * (others > 0)


def _shown(got):
    if is_tensor(got):
        return f"a tensor of shape {tuple(got.shape)}"
    text = repr(got)
    return text if len(text) <= 80 else f"{text[:60]}… ({type(got).__name__})"
