"""The variables of a build, checked before anything runs."""

from __future__ import annotations

import importlib.util
import os
import runpy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROFILES = ("quick", "full")
DEVICES = ("auto", "cpu", "cuda")
DEFAULT_SEED = 2026
#: Pages that run at once beyond one a core: a page waits while its kernel starts and its files are
#: written.
SPARE = 1

#: Name of a build variable -> environment variable through which the task graph receives it.
ENVIRONMENT = {
    "profile": "REDERIVE_PROFILE",
    "device": "REDERIVE_DEVICE",
    "seed": "REDERIVE_SEED",
    "jobs": "REDERIVE_JOBS",
    "page": "REDERIVE_PAGE",
    "untried": "REDERIVE_UNTRIED",
    "site": "REDERIVE_SITE",
    "cell_timeout": "REDERIVE_CELL_TIMEOUT",
    "cluster": "REDERIVE_CLUSTER",
}


@dataclass(frozen=True)
class Options:
    """The checked variables of one build.

    Attributes
    ----------
    profile : str
        ``quick`` (every claim, small sizes) or ``full`` (the sizes of the papers).
    device : str
        ``cpu`` or ``cuda``; ``auto`` is resolved when the options are read.
    seed : int
        Moves the noise of every page, never the instance a claim is about.
    jobs : int
        How many pages run at once.
    page : str or None
        Run this page only, e.g. ``regression/a-head-is-a-smoother``.
    untried : tuple of str
        Claims or pages that may stay untried.
    site : bool
        Whether the HTML site is built after the ledger.
    cell_timeout : int
        Seconds that one cell may take.
    cluster : str or None
        Address of the Dask scheduler that runs the pages, e.g. ``tcp://10.0.0.7:8786``.
    """

    profile: str = "quick"
    device: str = "cpu"
    seed: int = DEFAULT_SEED
    jobs: int = 1
    page: str | None = None
    untried: tuple[str, ...] = ()
    site: bool = True
    cell_timeout: int = 600
    cluster: str | None = None

    @property
    def parameters(self) -> dict[str, object]:
        """What papermill hands to every page."""
        return {"profile": self.profile, "seed": self.seed, "device": self.device}

    def as_environment(self) -> dict[str, str]:
        """The same options as environment variables, for the processes of a build."""
        values = {
            "profile": self.profile,
            "device": self.device,
            "seed": str(self.seed),
            "jobs": str(self.jobs),
            "page": self.page or "",
            "untried": ",".join(self.untried),
            "site": "1" if self.site else "0",
            "cell_timeout": str(self.cell_timeout),
            "cluster": self.cluster or "",
        }
        return {ENVIRONMENT[name]: value for name, value in values.items()}


def read(values: Mapping[str, str], pages: tuple[str, ...]) -> Options:
    """Check the variables of a build before anything runs.

    Parameters
    ----------
    values : mapping of str to str
        Variable name (as in `ENVIRONMENT`) to its text; missing or empty ones take their default.
    pages : tuple of str
        The pages of the book, which `page` must be one of.

    Returns
    -------
    Options

    Raises
    ------
    ValueError
        For an unknown variable or an unusable value; names both and what is allowed.
    """
    unknown = sorted(set(values) - set(ENVIRONMENT))
    if unknown:
        raise ValueError(f"{unknown[0]}: unknown variable, expected one of {list(ENVIRONMENT)}")
    given = {name: text.strip() for name, text in values.items() if text.strip()}
    profile = _one_of("profile", given.get("profile", "quick"), PROFILES)
    return Options(
        profile=profile,
        device=_device(_one_of("device", given.get("device", "auto"), DEVICES)),
        seed=_integer("seed", given.get("seed", str(DEFAULT_SEED)), minimum=0),
        jobs=_integer("jobs", given.get("jobs", str(_cores() + SPARE)), minimum=1),
        page=_page(given.get("page"), pages),
        untried=tuple(part.strip() for part in given.get("untried", "").split(",") if part.strip()),
        site=_one_of("site", given.get("site", "1"), ("0", "1")) == "1",
        cell_timeout=_integer(
            "cell_timeout", given.get("cell_timeout", "600" if profile == "quick" else "7200"), 1
        ),
        cluster=_cluster(given.get("cluster")),
    )


def read_environment(pages: tuple[str, ...]) -> Options:
    """The options that the environment of this process carries."""
    found = {name: os.environ.get(variable, "") for name, variable in ENVIRONMENT.items()}
    return read(found, pages)


def normalise_page(name: str) -> str:
    """``chapters/x/y.md`` and ``x/y`` name the same page."""
    return name.replace("\\", "/").removeprefix("./").removeprefix("chapters/").removesuffix(".md")


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{name}: expected one of {', '.join(allowed)}, got {value!r}")
    return value


def _integer(name: str, value: str, minimum: int) -> int:
    try:
        number = int(value)
    except ValueError:
        raise ValueError(f"{name}: expected a whole number, got {value!r}") from None
    if number < minimum:
        raise ValueError(f"{name}: expected at least {minimum}, got {number}")
    return number


def _device(value: str) -> str:
    if value == "cpu":
        return value
    if _torch_may_see_a_gpu():
        import torch  # about a second, so only where it can matter

        if torch.cuda.is_available():
            return "cuda"
    if value == "cuda":
        raise ValueError(
            "device: expected cpu or auto on this machine, got 'cuda', "
            "but torch sees no CUDA device"
        )
    return "cpu"


def _torch_may_see_a_gpu() -> bool:
    """Whether the installed torch was built for a GPU, read without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    version = runpy.run_path(str(Path(spec.origin).with_name("version.py")))
    return bool(version.get("cuda") or version.get("hip"))


def _cluster(value: str | None) -> str | None:
    if value is not None and "://" not in value:
        raise ValueError(f"cluster: expected an address such as tcp://host:8786, got {value!r}")
    return value


def _page(value: str | None, pages: tuple[str, ...]) -> str | None:
    if value is None:
        return None
    name = normalise_page(value)
    if name not in pages:
        raise ValueError(f"page: expected one of {', '.join(pages)}, got {value!r}")
    return name
