"""The HTML site: a staged copy of the sources with executed pages, built from an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import nbformat
import yaml

from rederive_book import site_audit
from rederive_book.pages import Page, to_notebook

#: What a site is made of, besides the executed pages.
SOURCES = ("_config.yml", "_toc.yml", "references.bib")
MOST_BYTES = 40_000_000
#: Sphinx by way of jupyter-book, which ends with the build that asked for it.
SPHINX = """
import sys
from rederive_book import alone
alone.leave_with(int(sys.argv.pop(1)))
from jupyter_book.cli.main import main
main()
"""


class SiteError(Exception):
    """The site could not be built without a warning; the text holds the warnings."""


def source_files(root: Path) -> list[Path]:
    """Every file below the root that the site is made of, sorted."""
    chapters = root / "chapters"
    below = [p for p in chapters.rglob("*") if p.is_file() and ".ipynb_checkpoints" not in p.parts]
    shown = (root / "benchmarks").glob("*.py")  # the page of benchmarks shows their code
    return sorted([*(root / name for name in SOURCES if (root / name).exists()), *below, *shown])


def stage(root: Path, pages: tuple[Page, ...], executed: Mapping[str, Path], target: Path) -> None:
    """Lay the sources out for Sphinx, executed notebooks in the place of their text.

    Parameters
    ----------
    root : Path
        The book.
    pages : tuple of Page
    executed : mapping of str to Path
        Page name to its executed notebook; other pages with code appear without output.
    target : Path
        An empty or missing folder.
    """
    shutil.rmtree(target, ignore_errors=True)
    for path in source_files(root):
        copy = target / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    for page in (page for page in pages if page.executable):
        text = target / "chapters" / f"{page.name}.md"
        text.unlink()
        if page.name in executed:
            shutil.copyfile(executed[page.name], text.with_suffix(".ipynb"))
        else:
            nbformat.write(to_notebook(page.source), text.with_suffix(".ipynb"))
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    config.setdefault("execute", {})["execute_notebooks"] = "off"
    sphinx = config.setdefault("sphinx", {}).setdefault("config", {})
    sphinx["rederive_ledger"] = str(root / "_build" / "claims.json")
    (target / "_config.yml").write_text(
        yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8"
    )


def build(root: Path, pages: tuple[Page, ...], executed: Mapping[str, Path]) -> Path:
    """Build the site and put it in place at ``_build/html``, whole or not at all.

    Returns
    -------
    Path
        The front page.

    Raises
    ------
    SiteError
        If Sphinx warned, or a page would load something from another host.
    """
    work = root / "_build" / "site"
    shutil.rmtree(work, ignore_errors=True)
    source = work / "source"
    stage(root, pages, executed, source)
    # From an empty folder each time: Sphinx reports a warning only when it reads the page.
    result = subprocess.run(
        [
            *(sys.executable, "-c", SPHINX, str(os.getpid())),
            *("build", str(source)),
            *("--path-output", str(work), "-W", "-n", "--keep-going", "-q"),
        ],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "lib")},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    log = result.stdout + result.stderr
    (work / "build.log").write_text(log, encoding="utf-8")
    if result.returncode:
        raise SiteError("the site did not build without a warning:\n" + _complaints(log))
    built = work / "_build" / "html"
    shutil.copyfile(root / "_build" / "claims.json", built / "claims.json")
    # Sphinx's note for a next build into this folder; it would depend on where the book lies.
    (built / ".buildinfo").unlink(missing_ok=True)
    if found := site_audit.outside_assets(built):
        raise SiteError("the site would load from other hosts:\n" + "\n".join(found))
    if found := site_audit.dead_links(built):
        raise SiteError("the site has dead links:\n" + "\n".join(found))
    if (weight := site_audit.weight(built)) > MOST_BYTES:
        raise SiteError(f"the site weighs {weight} bytes, expected at most {MOST_BYTES}")
    return _put_in_place(built, root / "_build" / "html")


def _complaints(log: str) -> str:
    marks = ("WARNING", "ERROR", "CRITICAL", "Error:")
    log = re.sub(r"\x1b\[[0-9;]*m", "", log)  # colours
    lines = [line for line in log.splitlines() if any(mark in line for mark in marks)]
    return "\n".join(lines or log.splitlines()[-15:])


def _put_in_place(built: Path, place: Path) -> Path:
    old = place.with_name("html.old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    built.rename(place)
    shutil.rmtree(old, ignore_errors=True)
    return place / "index.html"
