"""The facts of a run: commit, parameters, machine and versions."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

#: Packages whose versions the ledger reports: those that compute, execute and render.
REPORTED = (
    "numpy",
    "scipy",
    "torch",
    "python-flint",
    "sympy",
    "POT",
    "scikit-learn",
    "matplotlib",
    "papermill",
    "myst-nb",
    "Sphinx",
    "jupyter-book",
)


def describe_run(
    root: Path, parameters: Mapping[str, Any], seconds: float | None
) -> dict[str, Any]:
    """The ``run`` of a ledger.

    Parameters
    ----------
    root : Path
        The book; its commit and its ``requirements.lock`` are reported, None where there is none.
    parameters : mapping
        ``profile``, ``seed`` and ``device`` of the pages.
    seconds : float or None
        How long the pages took, wall clock.

    Returns
    -------
    dict
    """
    status = _git(root, "status", "--porcelain")
    lock = Path(root) / "requirements.lock"
    return {
        "commit": _git(root, "rev-parse", "HEAD") or None,
        "dirty": None if status is None else bool(status),
        "seed": parameters["seed"],
        "profile": parameters["profile"],
        "device": parameters["device"],
        "cpu": cpu(),
        "python": platform.python_version(),
        "versions": versions(REPORTED),
        "lock": hashlib.sha256(lock.read_bytes()).hexdigest() if lock.exists() else None,
        "seconds": seconds,
    }


def commit(root: Path, besides: Iterable[str] = ()) -> str:
    """The commit of a checkout in twelve digits, and ``-dirty`` if something was changed since.

    Parameters
    ----------
    root : Path
        The checkout; outside a repository the answer is ``unknown``.
    besides : iterable of str, optional
        Files and folders below the root whose changes do not count, such as the results of earlier
        parts of the same run.
    """
    found = _git(root, "rev-parse", "--short=12", "HEAD")
    if not found:
        return "unknown"
    others = [f":(exclude){name}" for name in besides]
    return found + ("-dirty" if _git(root, "status", "--porcelain", "--", ".", *others) else "")


def versions(names: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _git(root: Path, *arguments: str) -> str | None:
    """What git says, or None without git or outside a repository."""
    try:
        result = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, encoding="utf-8"
        )
    except OSError:
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def cpu() -> str:
    """The processor's name; on Linux the platform module knows its architecture only."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "unknown"
