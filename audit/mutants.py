"""Change one token of a module after another and see whether its tests notice.

mutmut makes the mutants, see `mutating`; processes of ours run the tests, see `trying_mutants`.
Of each module a random sample is tried, in an order that is fixed; results are kept as long as
the module and its tests are the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from audit import planting
from rederive_book import whole

RESULTS = Path(__file__).with_name("results") / "mutants.json"
SEED = 2026  # of the samples
APART = planting.ROOT / ".venv" / "mutmut"  # its packages must not meet those of the book
INSTALL = (
    "python -m pip install --target .venv/mutmut --require-hashes "
    "--requirement audit/requirements-mutants.txt"
)


def modules(root: Path = planting.ROOT) -> list[str]:
    """Names of the modules of the library."""
    files = sorted((root / "lib" / "rederive").glob("[!_]*.py"))
    return [file.stem for file in files]


def tests_of(module: str, root: Path = planting.ROOT) -> list[str]:
    """The test files of a module, from the root.

    The file of its name; else those that bear the name of another module and import from it or
    call it, ``module.name``; else those that import names from it.
    """
    texts = {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted((root / "tests").glob("test_*.py"))
    }
    if f"test_{module}.py" in texts:
        return [f"tests/test_{module}.py"]
    imports = re.compile(rf"^ *from rederive\.{module} import", re.MULTILINE)
    uses = re.compile(rf"\b{module}\.[a-z]|^from rederive import .*\b{module}\b", re.MULTILINE)
    both = [name for name, text in texts.items() if imports.search(text) or uses.search(text)]
    others = {f"test_{name}.py" for name in modules(root)}
    chosen = [name for name in both if name in others]
    chosen = chosen or [name for name in both if imports.search(texts[name])]
    return [f"tests/{name}" for name in chosen]


def try_mutants(
    count: int,
    *,
    names: Sequence[str] = (),
    jobs: int = 1,
    minutes: float = float("inf"),
    run: Mapping[str, str] | None = None,
    say: Callable[[str], None] = print,
    results: Path = RESULTS,
    root: Path = planting.ROOT,
) -> dict[str, Any]:
    """Try mutants of modules until each has seen `count`, and keep the results after each mutant.

    Parameters
    ----------
    count : int
        Mutants a module.
    names : sequence of str, optional
        Only these modules.
    jobs : int, optional
        Modules at a time.
    minutes : float, optional
        No mutant is begun after so many.
    run : mapping, optional
        Date and commit, noted with the modules that are tried.
    say : callable, optional
        Gets a line after each mutant.
    results : Path, optional
        The file.
    root : Path, optional
        The book.

    Returns
    -------
    dict
        What the file holds: `modules`, each with `digest`, `tests`, `of` (how many mutants there
        are), `tried`, `killed`, `survivors`, `timeouts` (lists of mutants without their source),
        `date` and `commit`.

    Raises
    ------
    RuntimeError
        If mutmut is missing, or the tests of a module fail without a mutant.
    """
    stored, end, turn = load(results), time.monotonic() + 60 * minutes, threading.Lock()
    if not (APART / "mutmut").is_dir():
        raise RuntimeError(f"mutmut is not installed; first: {INSTALL}")

    def try_one(name: str) -> None:
        tests = tests_of(name, root)
        kept, now = stored["modules"].get(name), digest(name, tests, root)
        if kept is None or kept["digest"] != now:
            kept = {"digest": now, "tests": tests, "of": 0, "tried": 0, "killed": 0}
            kept |= {"survivors": [], "timeouts": []}
        if (kept["of"] and kept["tried"] >= min(count, kept["of"])) or time.monotonic() > end:
            return
        chosen = sample(root / "lib" / "rederive" / f"{name}.py", name)
        kept["of"] = len(chosen)
        for mutant, found in _outcomes(name, tests, chosen[kept["tried"] : count], end, root):
            with turn:
                add(kept, mutant, found)
                stored["modules"][name] = kept | dict(run or {})
                whole.write_text(results, json.dumps(stored, ensure_ascii=False, indent=1) + "\n")
            say(f"{name} {kept['tried']}, {found['outcome']}: {mutant['becomes']}")

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(try_one, names or modules(root)))
    return stored


def load(results: Path = RESULTS) -> dict[str, Any]:
    """What was tried before."""
    return json.loads(results.read_text(encoding="utf-8")) if results.exists() else {"modules": {}}


def digest(module: str, tests: Sequence[str], root: Path) -> str:
    """Of a module's text, of its tests, and of the rule that makes mutants."""
    here = Path(__file__).parent
    files = [root / "lib" / "rederive" / f"{module}.py", root / "tests" / "conftest.py"]
    files += [root / test for test in tests]
    files += [here / "mutating.py", here / "requirements-mutants.txt"]
    made = hashlib.sha256()
    for file in files:
        made.update(file.read_bytes() if file.exists() else b"")
    return made.hexdigest()[:16]


def sample(file: Path, module: str) -> list[dict[str, Any]]:
    """All mutants of a module in their random order: a sample is a beginning of the list."""
    command = [sys.executable, str(Path(__file__).with_name("mutating.py")), str(file)]
    environment = os.environ | {"PYTHONPATH": str(APART)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{module}: {done.stderr[-2000:]}")
    found = json.loads(done.stdout)
    random.Random(f"{SEED} {module}").shuffle(found)
    return found


def add(kept: dict[str, Any], mutant: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Add how a mutant came out to what is kept of its module."""
    kept["tried"] += 1
    if found["outcome"] == "killed":
        kept["killed"] += 1
        return
    place = "survivors" if found["outcome"] == "survived" else "timeouts"
    kept[place].append({key: mutant[key] for key in ("function", "line", "was", "becomes")})


def _outcomes(
    name: str, tests: Sequence[str], chosen: Sequence[Mapping[str, Any]], end: float, root: Path
) -> Iterator[tuple[Mapping[str, Any], dict[str, Any]]]:
    """How mutants come out, until the time is up; first the module as it is has to pass."""
    as_it_is = {"source": None, "function": None}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as errors:
        copy = planting.copy_of_checkout(Path(folder) / "book", root)
        process = subprocess.Popen(
            [sys.executable, "-m", "audit.trying_mutants", str(copy), name, *tests],
            cwd=planting.ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )

        def asked(mutant: Mapping[str, Any] | None) -> dict[str, Any]:
            if mutant is not None:
                process.stdin.write(json.dumps(mutant) + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                errors.seek(0)
                raise RuntimeError(f"{name}: {errors.read()[-2000:]}")
            return json.loads(line)

        try:
            clean = asked(None)
            if "pass" not in clean or asked(as_it_is)["outcome"] != "survived":
                raise RuntimeError(f"{name}: its tests fail without a mutant: {clean}")
            for mutant in chosen:
                if time.monotonic() > end:
                    return
                yield mutant, asked(mutant)
        finally:  # whoever asked may have enough
            process.terminate()
            process.wait()
            process.stdin.close()
            process.stdout.close()
