"""Build the book twice from clean clones: both have the same bits, apart from times."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from audit import builds

ROOT = Path(__file__).resolve().parents[1]
#: How the two builds are run: pages one after the other, and side by side.
WAYS = {"serial": 1, "parallel": 2}
SHOWN = 200  # differences that are written down; the number of all of them is, too


def compare(one: Path, other: Path, *, site: bool = True) -> dict[str, Any]:
    """Compare two builds that exist.

    Parameters
    ----------
    one, other : Path
        The folders ``_build``, or those of the checkouts that hold them.
    site : bool, optional
        Whether to compare the sites, too.

    Returns
    -------
    dict
        `compared` (how many parts of the results), `differs` (those that differ, at most `SHOWN`),
        `count` (of all that differ), `site` and `may_differ` (what is left out, with the reason).
    """
    folders = [path / "_build" if (path / "_build").is_dir() else path for path in (one, other)]
    found = builds.differences(*folders, site=site)
    return {
        "compared": len(builds.contents(folders[0], site=site)),
        "differs": found[:SHOWN],
        "count": len(found),
        "site": site,
        "may_differ": builds.MAY_DIFFER,
    }


def try_same_bits(
    *,
    pages: Sequence[str] = (),
    site: bool = True,
    jobs: Sequence[int] = tuple(WAYS.values()),
    say: Callable[[str], None] = print,
    timeout: float = 4 * 3600,
) -> dict[str, Any]:
    """Clone the last commit twice, build both clones, and compare.

    Parameters
    ----------
    pages : sequence of str, optional
        Only these pages, one after the other and without the site; by default the whole book.
    site : bool, optional
        Whether to build and compare the site.
    jobs : sequence of two int, optional
        How many pages run at once, in the first build and in the second.
    say : callable, optional
        Gets a line after each build.
    timeout : float, optional
        Seconds for one command.

    Returns
    -------
    dict
        As `compare`, and `pages`, `jobs` and `seconds` of the two builds.

    Raises
    ------
    RuntimeError
        If a build fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        clones, seconds = [], []
        for number, at_once in enumerate(jobs):
            clones.append(clone(Path(folder) / f"clone-{number}"))
            begun = time.monotonic()
            for arguments in commands(pages, site=site, jobs=at_once):
                _build(clones[-1], arguments, timeout)
            seconds.append(round(time.monotonic() - begun, 1))
            say(f"built with {at_once} at once in {seconds[-1]} s")
        found = compare(*clones, site=site and not pages)
    return found | {"pages": list(pages), "jobs": list(jobs), "seconds": seconds}


def commands(pages: Sequence[str], *, site: bool, jobs: int) -> list[list[str]]:
    """The arguments of the builds that run these pages, or the whole book."""
    if pages:  # a build of one page keeps the notebooks of the others
        return [["--page", page, "--no-site"] for page in pages]
    return [["--jobs", str(jobs), *([] if site else ["--no-site"])]]


def clone(target: Path) -> Path:
    """A clone of the last commit, and nothing that is not in it."""
    subprocess.run(
        ["git", "clone", "--quiet", "--no-local", str(ROOT), str(target)],
        check=True,
        capture_output=True,
    )
    return target


def line(found: dict[str, Any]) -> str:
    """One line about a comparison."""
    if not found["count"]:
        return f"{found['compared']} parts of the results, no difference"
    names = ", ".join(found["differs"][:10])
    return f"{found['count']} of {found['compared']} parts of the results differ: {names}"


def _build(folder: Path, arguments: list[str], timeout: float) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rederive_book", "book", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder / "lib"), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the build {arguments} failed:\n{done.stdout}{done.stderr}"[-4000:])
