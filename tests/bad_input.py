"""How one argument of a valid call is spoilt, and the law that the spoilt call must keep."""

import contextlib
import dataclasses
import re
import signal
import warnings

import numpy as np
import scipy.sparse
import torch
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator
from torch._subclasses import FakeTensor  # noqa: F401 – its import takes seconds the first time

#: Seconds of computing that no call with small sizes may exceed; what others compute on the same
#: machine does not count.
PATIENCE = 4.0
#: Floats at the ends of what a float can be.
EXTREMES = (0.0, -1.0, 1e300, -1e300, 1e-300, -1e-300, 1e16)


class Hang(Exception):
    """A call took longer than :data:`PATIENCE`."""


@contextlib.contextmanager
def deadline(seconds=PATIENCE):
    """Raise :class:`Hang` in a call that takes too long, where the system has such a clock."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_):
        raise Hang(f"no answer within {seconds} s")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def wrong_kinds(value):
    """Label → value of a type that no argument in the place of `value` can have."""
    found = {"words": "nonsense", "an object": object(), "a function": str}
    if callable(value):
        del found["a function"]
    if isinstance(value, bool):
        return {**found, "1": 1, "a list": [True, False]}
    if isinstance(value, str):
        return {**found, "bytes": b"nonsense", "a list": [value], "1": 1, "a bool": True}
    if isinstance(value, np.random.Generator):
        old = np.random.RandomState(0)
        return {**found, "a seed": 1, "an old generator": old, "a list": [value]}
    if isinstance(value, int):
        return {
            **found,
            "a bool": True,
            "a half": value + 0.5,
            "digits": str(value),
            "nan": np.nan,
            "inf": np.inf,
            "minus inf": -np.inf,
            "1e300": 1e300,
            "10**300": 10**300,
            "complex": 1j,
            "a list": [value, value],
        }
    if isinstance(value, float):
        return {
            **found,
            "a bool": True,
            "digits": str(value),
            "nan": np.nan,
            "inf": np.inf,
            "minus inf": -np.inf,
            "10**400": 10**400,
            "complex": 1j + value,
            "a list of objects": [object(), None],
            "a tensor of nan": torch.tensor(np.nan),
        }
    if torch.is_tensor(value) and value.dtype == torch.bool:
        return {**found, "numbers": value.double(), "a list": value.tolist()}
    if torch.is_tensor(value) or isinstance(value, np.ndarray):
        return {**found, **_spoilt_arrays(value)}
    if isinstance(value, dict):
        return {**found, "nothing in it": {}, "a list": [1], "a number": 1}
    return {**found, "a number": 1, "a list": [1]}


def _spoilt_arrays(value):
    plain = value.numpy() if torch.is_tensor(value) else value
    same = torch.from_numpy if torch.is_tensor(value) else np.asarray
    found = {
        "text": plain.astype(str),
        "objects": np.full(plain.shape, None, dtype=object),
        "booleans": same(np.ones(plain.shape, dtype=bool)),
        "complex": same(np.asarray(plain + 1j)),
        "ragged": [[1.0, 2.0], [3.0]],
        "masked": np.ma.masked_all(plain.shape),
        "dates": np.zeros(plain.shape, dtype="M8[s]"),
    }
    if plain.dtype.kind == "c":
        del found["complex"]
    for name, bad in (("nan", np.nan), ("inf", np.inf), ("minus inf", -np.inf)):
        spoilt = plain.astype(complex if plain.dtype.kind == "c" else float)
        spoilt[(0,) * plain.ndim] = bad
        found[name] = same(spoilt)
    return found


def wrong_sizes(value):
    """Label → value of the right type that may not fit the others, or be out of range."""
    if isinstance(value, bool | str) or value is None:
        return {}
    if isinstance(value, int):
        return {str(n): n for n in (0, -1, 1, 2, value + 1, -(10**9))}
    if isinstance(value, float):
        return {repr(x): x for x in (*EXTREMES, 1.0, 1 + 1e-12)} | {
            "two numbers": np.array([value, value])
        }
    if not (torch.is_tensor(value) or isinstance(value, np.ndarray)):
        return {}
    found = {"scalar": value.flatten()[0] if value.ndim else value}
    if value.dtype in (torch.bool, np.bool_):
        found["nothing"] = ~value & False
    else:
        plain = value * 1.0
        found |= {f"times {x}": plain * x for x in EXTREMES}
        found |= {"signed zeros": plain * -0.0, "ones": plain * 0 + 1}
        if value.ndim:
            first = plain * 1.0
            first[0] = 0
            found["a first of zeros"] = first
            huge = plain * 1.0
            huge[(0,) * value.ndim] = 1e200
            found["one huge entry"] = huge
    for axis in range(value.ndim):
        found[f"short axis {axis}"] = value[(slice(None),) * axis + (slice(1, None),)]
        found[f"one on axis {axis}"] = value[(slice(None),) * axis + (slice(0, 1),)]
        found[f"no axis {axis}"] = value[(slice(None),) * axis + (0,)]
    if value.ndim:
        found["empty"] = value[:0]
    found["more axes"] = value[None]
    found["many axes"] = value[None, None, None]
    if value.ndim > 1:
        found["turned"] = value.swapaxes(-1, -2)
        found["copies"] = value * 0 + value[..., :1]
    return found


def other_containers(value):
    """Label → the same numbers in another container: the call must be as good as before."""
    if isinstance(value, bool | str):
        return {}
    if isinstance(value, int):
        return {"numpy": np.int64(value)}
    if isinstance(value, float):
        return {"numpy": np.float64(value), "tensor": torch.tensor(value, dtype=torch.float64)}
    if isinstance(value, np.ndarray):
        contiguous = np.ascontiguousarray(value)
        return {"list": value.tolist(), "tensor": torch.from_numpy(contiguous)}
    return {}


def call(function, arguments, rng, patience=PATIENCE):
    """Make a call in which every warning counts as an error; what it returns is used once."""
    fresh = {k: _fresh(v, rng) for k, v in arguments.items()}
    with warnings.catch_warnings(), deadline(patience):
        warnings.simplefilter("error")
        found = function(**fresh)
        if hasattr(found, "__enter__"):
            with found as entered:
                return entered
        if isinstance(found, LinearOperator):
            return found @ np.ones(found.shape[1])
        return found


def _fresh(value, rng):
    if value is rng:
        return np.random.default_rng(0)
    return [_fresh(part, rng) for part in value] if type(value) is list else value


def numbers_in(found):
    """Every array of floating-point numbers in a result."""
    if torch.is_tensor(found):
        found = found.detach().numpy()
    if scipy.sparse.issparse(found):
        found = found.data
    if isinstance(found, float | complex | np.ndarray | np.generic):
        found = np.asarray(found)
        return [found] if found.dtype.kind in "fc" else []
    if dataclasses.is_dataclass(found):
        found = dataclasses.astuple(found)
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, tuple | list):
        return [part for one in found for part in numbers_in(one)]
    return []


def complaint(function, arguments, spoilt, value, rng, *, own, allowed=()):
    """What is wrong with how a call takes a spoilt argument; None if it keeps the law.

    The law: a ``ValueError`` or ``TypeError`` that names the argument (or, where `own` is False,
    another one of the call that it does not fit), says what was expected and what came; or a result
    without NaN and without infinities. `allowed` holds what is documented besides: "nan", "inf" or
    the type of an error.
    """
    try:
        found = call(function, arguments | {spoilt: value}, rng)
    except Exception as error:
        return _complaint_about(error, {spoilt} if own else set(arguments), allowed)
    for part in numbers_in(found):
        if np.isnan(part).any() and "nan" not in allowed:
            return "a result with NaN"
        if np.isinf(part).any() and "inf" not in allowed:
            return "a result with an infinity that is not documented"
    return None


def _complaint_about(error, names, allowed):
    said = f"{type(error).__name__}: {error}"
    if type(error) in allowed:
        return None
    if type(error) not in (ValueError, TypeError):
        return said
    named = re.match(r"(\w+)\W?.*?: expected .*, got ", str(error), re.DOTALL)
    return None if named and named[1] in names else f"an error that does not name it: {said}"


def at_random(value):
    """A strategy for values of the same type, any size and shape, NaN included."""
    number = st.one_of(st.floats(), st.floats(-3, 3))
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, int):
        return st.one_of(st.integers(-3, 9), st.integers(min_value=2**63))
    if isinstance(value, float):
        return number
    if isinstance(value, str):
        return st.text(max_size=8)
    if not (torch.is_tensor(value) or isinstance(value, np.ndarray)):
        return st.one_of(st.none(), st.text(max_size=3), st.integers(), number)
    return _arrays_at_random(value, number)


@st.composite
def _arrays_at_random(draw, value, number):
    """The array with a few entries replaced, or entries in another shape."""
    plain = value.numpy() if torch.is_tensor(value) else value
    found = plain.astype(complex if plain.dtype.kind == "c" else float)
    if draw(st.booleans()):
        shape = tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
        found = np.resize(found, shape)
    found = np.array(found)
    for _ in range(draw(st.integers(0, 3)) if found.size else 0):
        found.flat[draw(st.integers(0, found.size - 1))] = draw(number)
    with np.errstate(all="ignore"):
        found = np.asarray(found * 10.0 ** draw(st.sampled_from([0, 0, 0, 5, 100, 200, -200])))
    return torch.from_numpy(found) if torch.is_tensor(value) else found
