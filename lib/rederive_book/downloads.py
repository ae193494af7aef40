"""Sphinx extension: each page with code as notebooks that run elsewhere, as executed and clean.

Both begin with the three lines that set up an empty environment: from the repository where its
address is known, else in a checkout. Buttons for Binder and Colab appear only where the build knows
the repository, as `rederive_book.repository` does. Colab opens notebooks from a branch of the
repository; the variable ``REDERIVE_NOTEBOOKS`` names the branch that the workflow of publication
fills, and without it there is no such button.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from rederive_book import __version__, repository
from rederive_book.pages import front_matter, to_notebook

#: Where clean notebooks lie in the site; executed ones lie where Sphinx keeps the sources.
CLEAN, EXECUTED = "_notebooks", "_sources"
BRANCH = "REDERIVE_NOTEBOOKS"
ROOT = Path(__file__).resolve().parents[2]


def set_up(torch: str, environment: Mapping[str, str]) -> tuple[str, str, str]:
    """The three lines that set up an empty environment.

    Parameters
    ----------
    torch : str
        The requirement that pins torch.
    environment : mapping
        The variables of the build, which may name the repository and the commit.
    """
    torch = f"pip install {torch}"
    url = repository.address(environment)
    if url is None:
        locked = "pip install --no-deps --require-hashes -r requirements.lock"
        return locked, torch, "pip install --no-deps -e ."
    commit = environment.get("GITHUB_SHA") or "HEAD"
    locked = f"pip install --no-deps --require-hashes -r {url}/raw/{commit}/requirements.lock"
    return locked, torch, f"pip install --no-deps git+{url}@{commit}"


def instructions(lines: tuple[str, ...], *, checkout: bool) -> str:
    """The text that a notebook begins with."""
    where = " and in the folder of a checkout of the book" if checkout else ""
    return (
        "**Run this notebook yourself.** In an empty environment with Python 3.11 or newer"
        f"{where}, three lines install what it needs:\n\n```sh\n"
        + "\n".join(lines)
        + "\n```\n\nThen open it with `jupyter lab`. In a cell, each line needs a `%` in front."
    )


def executed(notebook: nbformat.NotebookNode) -> bool:
    """Whether a notebook holds the results of a run."""
    return any(cell.get("execution_count") for cell in notebook.cells)


def clean(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A copy without results and without traces of a run."""
    fresh = copy.deepcopy(notebook)
    fresh.metadata.pop("papermill", None)
    fresh.cells = [
        cell for cell in fresh.cells if "injected-parameters" not in cell.metadata.get("tags", [])
    ]
    for cell in fresh.cells:
        for name in ("papermill", "execution", "source_line"):
            cell.metadata.pop(name, None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return fresh


def with_instructions(notebook: nbformat.NotebookNode, text: str) -> nbformat.NotebookNode:
    """A copy that begins with the instructions."""
    made = copy.deepcopy(notebook)
    made.cells.insert(0, nbformat.v4.new_markdown_cell(text, id="set-up"))
    made.nbformat_minor = max(made.nbformat_minor, 5)  # where cells have names
    return made


def services(docname: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Where the page opens on a service, by the service's name; nothing without a repository.

    Binder is given the text of the page, which JupyterLab with jupytext opens as a notebook.
    """
    url = repository.address(environment)
    if url is None or not url.startswith("https://github.com/"):
        return {}
    name = url.removeprefix("https://github.com/")
    commit = environment.get("GITHUB_SHA") or "HEAD"
    # Twice, because Binder takes the path as the value of a parameter.
    path = quote(f"/lab/tree/{docname}.md?factory=Jupytext Notebook", safe="")
    found = {"Binder": f"https://mybinder.org/v2/gh/{name}/{commit}?urlpath={path}"}
    if branch := environment.get(BRANCH):
        colab = "https://colab.research.google.com/github"
        found["Colab"] = f"{colab}/{name}/blob/{branch}/{docname}.ipynb"
    return found


def read(path: Path) -> nbformat.NotebookNode | None:
    """The notebook behind a page, or None for a page without code."""
    if path.suffix == ".ipynb":
        return nbformat.read(path, as_version=4)
    if path.suffix == ".md" and "kernelspec" in front_matter(path.read_text(encoding="utf-8")):
        return to_notebook(path)
    return None


def _pages(app: Sphinx) -> dict[str, nbformat.NotebookNode]:
    found = {}
    for docname in sorted(app.env.found_docs):
        if (notebook := read(Path(app.env.doc2path(docname)))) is not None:
            found[docname] = notebook
    return found


def _read_pages(app: Sphinx) -> None:
    app.rederive_notebooks = _pages(app) if app.builder.format == "html" else {}


def _offer(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document
) -> None:
    """Offer the notebooks of a page below its title."""
    notebook = getattr(app, "rederive_notebooks", {}).get(pagename)
    if doctree is None or notebook is None:
        return
    path = context["pathto"]
    links = []
    if executed(notebook):
        links.append((path(f"{EXECUTED}/{pagename}.ipynb", 1), "as executed", " download"))
    links.append((path(f"{CLEAN}/{pagename}.ipynb", 1), "clean", " download"))
    links += [(url, name, "") for name, url in services(pagename, os.environ).items()]
    line = " · ".join(f'<a href="{escape(url)}"{kind}>{text}</a>' for url, text, kind in links)
    line = f'</h1>\n<p class="rederive-take">Notebook: {line}</p>'
    context["body"] = context["body"].replace("</h1>", line, 1)


def _write(app: Sphinx, error: Exception | None) -> None:
    """Write the notebooks that the pages offer."""
    pages = getattr(app, "rederive_notebooks", {})
    if error is not None or not pages:
        return
    requirement = (ROOT / "requirements-torch.txt").read_text(encoding="utf-8").strip()
    lines = set_up(requirement, os.environ)
    text = instructions(lines, checkout=repository.address(os.environ) is None)
    for docname, notebook in pages.items():
        made = {CLEAN: clean(notebook)}
        if executed(notebook):
            made[EXECUTED] = notebook
        for folder, content in made.items():
            file = Path(app.outdir, folder, f"{docname}.ipynb")
            file.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(with_instructions(content, text), file)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension with Sphinx."""
    app.connect("env-before-read-docs", lambda app, env, docnames: _read_pages(app))
    app.connect("html-page-context", _offer)
    app.connect("build-finished", _write)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
