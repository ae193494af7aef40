"""Try mutants that survive their tests on the quick pages that use the changed function."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from audit import mutants, planting
from rederive_book import code_uses, pages, whole

LIMIT = 900  # seconds that the build of a page may take


def try_pages(
    why: Mapping[tuple[str, str, str], str],
    *,
    minutes: float = float("inf"),
    say: Callable[[str], None] = print,
    results: Path = mutants.RESULTS,
    root: Path = planting.ROOT,
) -> dict[str, Any]:
    """Build pages with each survivor that has no reason to survive, and keep what came out.

    Parameters
    ----------
    why : mapping
        As `mutants_block.reasons`.
    minutes : float, optional
        No survivor is begun after so many.
    say : callable, optional
        Gets a line after each survivor.
    results : Path, optional
        The file.
    root : Path, optional
        The book.

    Returns
    -------
    dict
        As `mutants.try_mutants`. A survivor that was tried has `pages`, those that were built, and
        `page`, the last of them if its build failed, else None.
    """
    stored, end = mutants.load(results), time.monotonic() + 60 * minutes
    for name, module in sorted(stored["modules"].items()):
        file = root / "lib" / "rederive" / f"{name}.py"
        todo = [
            one
            for one in module["survivors"]
            if "pages" not in one and (name, one["was"], one["becomes"]) not in why
        ]
        if not todo or module["digest"] != mutants.digest(name, module["tests"], root):
            continue
        sources = {_key(one): one["source"] for one in mutants.sample(file, name)}
        for survivor in todo:
            if time.monotonic() > end:
                return stored
            using = list(pages_of(f"rederive.{name}", survivor["function"], root))
            survivor |= _tried(file.name, sources[_key(survivor)], using, root)
            whole.write_text(results, json.dumps(stored, ensure_ascii=False, indent=1) + "\n")
            say(f"{name}, {survivor['becomes']}: {survivor['page'] or 'no page'}")
    return stored


def pages_of(module: str, function: str, root: Path = planting.ROOT) -> Iterator[str]:
    """Names of the pages whose code uses a function; of a private one, anything of the module."""
    top = function.partition(".")[0]
    wanted = module if top.startswith("_") else f"{module}.{top}"
    for page in pages.read_book(root):
        if page.executable and not page.missing:
            uses = {use for cell in code_uses.read_cells(page.source) for use in cell.uses}
            if any(f"{use}.".startswith(f"{wanted}.") for use in uses):
                yield page.name


def _tried(file: str, source: str, using: list[str], root: Path) -> dict[str, Any]:
    """Build pages with a changed module until one fails."""
    tried: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = planting.copy_of_checkout(Path(folder) / "book", root)
        (copy / "lib" / "rederive" / file).write_text(source, encoding="utf-8")
        for name in using:
            tried.append(name)
            if planting.build_page(copy, name, LIMIT).returncode:
                return {"pages": tried, "page": name}
    return {"pages": tried, "page": None}


def _key(mutant: Mapping[str, Any]) -> tuple[str, int, str, str]:
    return mutant["function"], mutant["line"], mutant["was"], mutant["becomes"]
