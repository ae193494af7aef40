"""Run the random checks of pages over many seeds, and keep what each of them found.

A page is run cell by cell in one process, once a seed, and shows no figures. What a random check
found is its deviation in standard errors, entry by entry.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RANDOM = ("estimate", "order", "distribution", "rate")
ENTRIES = 6  # of one check that are kept, spread evenly
_MARK = '{"seed"'  # how a line with results begins


class Recorder:
    """Stands between a page and the checks: lets them run and writes down what they find.

    Attributes
    ----------
    found : list of dict
        One entry a random check: `claim`, `name`, `kind`, `expected`, `alarm` (None, or in words
        how the check came out otherwise than it should), and of a check that decides by a mean
        `t` (deviations in standard errors), `dof`, `shift` (bound on the bias, in standard
        errors), `error`, `predicted`, `bias`, `margin`.
    """

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self._seen: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Replace the functions that pages and kinds of checks call, and put them back."""
        from rederive_book import (
            animations,
            checks,
            figures,
            law_checks,
            mean_checks,
            rate_checks,
            statistics,
        )

        changes: list[tuple[Any, str, Any]] = [
            (module, "mean_finding", self._of_a_mean(module.mean_finding))
            for module in (mean_checks, rate_checks, law_checks)
        ]
        changes += [
            (statistics, "decide_order", self._of_an_order(statistics.decide_order)),
            (statistics, "decide_distribution", self._of_a_law(statistics.decide_distribution)),
            (figures, "show", _no_picture),
            (animations, "show", _no_picture),
        ]
        changes += [(checks, kind, self._check(kind, getattr(checks, kind))) for kind in RANDOM]
        before = [getattr(owner, name) for owner, name, _ in changes]
        try:
            for owner, name, new in changes:
                setattr(owner, name, new)
            yield
        finally:
            for (owner, name, _), old in zip(changes, before, strict=True):
                setattr(owner, name, old)

    def _check(self, kind, original):
        def tried(claim, name, **arguments):
            self._seen = []
            entry = {
                "claim": claim,
                "name": name,
                "kind": kind,
                "expected": arguments.get("expected", "pass"),
                "alarm": None,
            }
            try:
                check = original(claim, name, **arguments)
            except ValueError as error:
                entry["alarm"] = str(error)
                self.found.append(entry)
                return None
            if check.record["stochastic"]:
                if not check.passed:
                    entry["alarm"] = repr(check)
                self.found.append(entry | self._seen[0])
            return check

        return tried

    def _of_a_mean(self, original):
        def finding(mean, error, dof, predicted, source, *, bias=0.0, margin=None, **others):
            kept = _spread(len(mean))
            flat = np.broadcast_to(np.ravel(predicted), mean.shape)
            unit = np.maximum(error, others.get("resolution", 0.0))
            self._seen.append(
                {
                    "t": ((mean - flat) / unit)[kept].tolist(),
                    "moves": bool((error > 0).all()),
                    "dof": None if math.isinf(dof) else float(dof),
                    "shift": (bias / unit)[kept].tolist(),
                    "error": unit[kept].tolist(),
                    "predicted": flat[kept].tolist(),
                    "entries": len(mean),
                    "bias": float(bias),
                    "margin": margin,
                }
            )
            return original(mean, error, dof, predicted, source, bias=bias, margin=margin, **others)

        return finding

    def _of_an_order(self, original):
        def decide(mean, error, dof, level):
            self._seen.append({"dof": float(dof), "surplus": float(np.min(mean / error))})
            return original(mean, error, dof, level)

        return decide

    def _of_a_law(self, original):
        def decide(distance, count, bias, level):
            self._seen.append({"distance": float(distance), "count": int(count), "bias": bias})
            return original(distance, count, bias, level)

        return decide


def run_page(
    name: str, seed: int, *, root: Path = ROOT, profile: str = "quick"
) -> list[dict[str, Any]]:
    """Run the code of a page with another seed in this process.

    Parameters
    ----------
    name : str
        The page, as in the table of contents.
    seed : int
    root : Path, optional
        The book.
    profile : str, optional

    Returns
    -------
    list of dict
        As `Recorder.found`.
    """
    from rederive_book import pages

    page = next(page for page in pages.read_book(root) if page.name == name)
    recorder, space = Recorder(), {"__name__": "__main__"}
    with recorder.installed():
        for number, cell in enumerate(pages.to_notebook(page.source).cells):
            if cell.cell_type != "code":
                continue
            exec(compile(cell.source, f"{name}, cell {number}", "exec"), space)
            if "parameters" in cell.metadata.get("tags", []):
                space |= {"seed": seed, "profile": profile}
    return recorder.found


def pages_with_random_checks(root: Path = ROOT) -> list[str]:
    """Names of the pages whose code calls a random kind of check."""
    from rederive_book import pages

    return [
        page.name
        for page in pages.read_book(root)
        if page.executable
        and not page.missing
        and any(f"checks.{kind}(" in page.source.read_text(encoding="utf-8") for kind in RANDOM)
    ]


def in_a_process(
    name: str, seeds: Sequence[int], root: Path = ROOT
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Run a page with several seeds in a process of its own; yield what each seed found.

    Raises
    ------
    RuntimeError
        If the page fails, with the end of what it said.
    """
    command = [sys.executable, "-m", "audit.trying_seeds", str(root), name, *map(str, seeds)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(root / "lib"), str(ROOT)]),
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
    }
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        try:
            for line in process.stdout:
                if line.startswith(_MARK):
                    result = json.loads(line)
                    yield result["seed"], result["found"]
            process.wait()
        finally:  # whoever asked may have enough
            process.kill()
            process.wait()
        if process.returncode:
            errors.seek(0)
            raise RuntimeError(f"{name}: {errors.read()[-2000:]}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a page of a book, both named first, with the seeds that follow; print a line a seed."""
    root, name, *seeds = sys.argv[1:] if arguments is None else arguments
    for seed in map(int, seeds):
        found = run_page(name, seed, root=Path(root))
        print(json.dumps({"seed": seed, "found": found}), flush=True)


def _spread(entries: int) -> np.ndarray:
    return np.unique(np.linspace(0, entries - 1, min(entries, ENTRIES)).round().astype(int))


def _no_picture(*arguments: Any, **named: Any) -> None:
    import matplotlib.pyplot as plt

    plt.close("all")


if __name__ == "__main__":
    main()
