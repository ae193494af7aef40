"""What a benchmark found: its shape, and files that are written whole or not at all."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path

from rederive_book import whole

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results")
#: What a run of the benchmarks changes itself.
WRITTEN = ("benchmarks/results", "chapters/benchmarks.md")


@dataclass(frozen=True)
class Row:
    """One contestant of a comparison."""

    contestant: str
    #: ``module.function`` whose source the page shows, or empty.
    code: str
    seconds: float
    #: Quartiles of its time over ours in the same round; None for us.
    ratio: list[float] | None
    error: float | None


@dataclass(frozen=True)
class Comparison:
    """Ours, first, and its peers at one size and number of threads."""

    kernel: str
    size: str
    threads: int
    rounds: int
    #: What `error` is and against what, or empty if no row has one.
    reference: str
    rows: list[Row]


@dataclass(frozen=True)
class Goal:
    """A number that was aimed at, and what was measured; None if it was not."""

    what: str
    sense: str
    bound: float
    measured: float | None
    unit: str
    note: str

    def __post_init__(self):
        if self.sense not in ("at least", "at most"):
            raise ValueError(f"sense: expected 'at least' or 'at most', got {self.sense!r}")

    @property
    def met(self):
        """True, False, or None if nothing was measured."""
        if self.measured is None:
            return None
        above = self.measured >= self.bound
        return above if self.sense == "at least" else self.measured <= self.bound


@dataclass(frozen=True)
class Growth:
    """Time and peak memory of fresh processes as one size grows."""

    kernel: str
    variable: str
    fixed: str
    sizes: list[int]
    seconds: list[float]
    #: Growth of the peak over that of the smallest size; None where the system does not tell.
    peaks: list[int] | None
    #: Peak of a process that has run the smallest size.
    base: int | None
    #: Power of the size with which memory grows.
    order: int
    #: Why the range is what it is, or empty.
    note: str


@dataclass(frozen=True)
class Roofline:
    """Work of a kernel, and the time that it took on one thread."""

    kernel: str
    size: str
    #: Amounts by kind, the kinds being those of the peaks.
    work: dict[str, float]
    seconds: float
    note: str


@dataclass(frozen=True)
class Result:
    """All that one benchmark found in one run."""

    name: str
    date: str
    commit: str
    machine: str
    versions: dict[str, str]
    blas: str
    #: The value of OPENBLAS_CORETYPE that was taken away, or empty.
    coretype: str
    #: Peaks of one thread by kind, a second.
    peaks: dict[str, float]
    took: float
    comparisons: list[Comparison] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    growths: list[Growth] = field(default_factory=list)
    rooflines: list[Roofline] = field(default_factory=list)


def save(result, folder=RESULTS):
    """Write a result to ``<name>.json``, whole or not at all."""
    text = json.dumps(dataclasses.asdict(result), indent=1, ensure_ascii=False, allow_nan=False)
    whole.write_text(folder / f"{result.name}.json", text + "\n")


def load(file):
    """Read a result.

    Parameters
    ----------
    file : Path

    Returns
    -------
    Result

    Raises
    ------
    ValueError
        If a field is missing, unknown or of another type.
    """
    return _built(Result, json.loads(Path(file).read_text(encoding="utf-8")), Path(file).name)


def load_all(names, folder=RESULTS):
    """The recorded results among `names`, in that order."""
    files = [folder / f"{name}.json" for name in names]
    return [load(file) for file in files if file.exists()]


def _built(wanted, value, where):
    """The value as the type says: dataclasses from objects, the rest as it is."""
    if dataclasses.is_dataclass(wanted):
        hints = typing.get_type_hints(wanted)
        if not isinstance(value, dict) or set(value) != set(hints):
            got = sorted(value) if isinstance(value, dict) else value
            raise ValueError(f"{where}: expected the fields {sorted(hints)}, got {got}")
        return wanted(
            **{name: _built(hints[name], value[name], f"{where}.{name}") for name in hints}
        )
    origin, inside = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is types.UnionType:
        if value is None:
            return None
        return _built(inside[0], value, where)
    if origin is list and isinstance(value, list):
        return [_built(inside[0], part, f"{where}[{i}]") for i, part in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {name: _built(inside[1], part, f"{where}.{name}") for name, part in value.items()}
    kinds = (int, float) if wanted is float else origin or wanted
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise ValueError(f"{where}: expected {getattr(wanted, '__name__', wanted)}, got {value!r}")
    return value
