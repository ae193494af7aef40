"""Pages: which there are, what each depends on, and the notebook that is made of one."""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml

PARAMETERS = {"profile": str, "seed": int, "device": str}


@dataclass(frozen=True)
class Page:
    """One page of the book.

    Attributes
    ----------
    name : str
        ``<folder>/<subject>``, as in the table of contents.
    source : Path
        Its MyST text.
    executable : bool
        Whether it holds code.
    requires : tuple of str
        Optional packages it needs; without them its claims stay untried.
    data : tuple of Path
        Data files it reads.
    """

    name: str
    source: Path
    executable: bool
    requires: tuple[str, ...] = ()
    data: tuple[Path, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Those of the packages it requires that are not installed."""
        return tuple(name for name in self.requires if importlib.util.find_spec(name) is None)


def toc_names(root: Path) -> tuple[str, ...]:
    """The pages in the order of ``_toc.yml``, below ``chapters/`` and without suffix."""
    try:
        toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"_toc.yml: {error}") from None
    names: list[str] = []

    def walk(node: object) -> None:
        if isinstance(node, dict):
            for key in ("root", "file"):
                if key in node:
                    names.append(str(node[key]).removeprefix("chapters/").removesuffix(".md"))
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(toc)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"_toc.yml: page {name!r} stands in it more than once")
    return tuple(names)


def read_book(root: Path) -> tuple[Page, ...]:
    """Every page of the table of contents."""
    pages = []
    for name in toc_names(root):
        source = root / "chapters" / f"{name}.md"
        if not source.exists():
            raise ValueError(f"_toc.yml: page {name!r} has no file chapters/{name}.md")
        try:
            header = front_matter(source.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise ValueError(f"chapters/{name}.md: {error}") from None
        own = header.get("rederive") or {}
        pages.append(
            Page(
                name=name,
                source=source,
                executable="kernelspec" in header,
                requires=tuple(own.get("requires", ())),
                data=tuple(root / path for path in own.get("data", ())),
            )
        )
    return tuple(pages)


def front_matter(text: str) -> dict:
    """The YAML block at the top of a page, empty if there is none."""
    if not text.startswith("---"):
        return {}
    return yaml.safe_load(text.split("\n---", 1)[0].removeprefix("---")) or {}


def to_notebook(source: Path) -> nbformat.NotebookNode:
    """A page as a notebook; every cell remembers the line of the source it starts at.

    Cells are named by their places, so that a page makes the same notebook each time.
    """
    from myst_nb.core.read import read_myst_markdown_notebook  # slow to import

    notebook = read_myst_markdown_notebook(
        source.read_text(encoding="utf-8"), add_source_map=True, path=source
    )
    lines = notebook.metadata.pop("source_map")
    for number, (cell, line) in enumerate(zip(notebook.cells, lines, strict=True)):
        cell.metadata["source_line"] = line + 1
        if "id" in cell:
            cell["id"] = f"cell-{number}"
    return notebook


def check_parameters(notebook: nbformat.NotebookNode, given: Mapping[str, object]) -> None:
    """Refuse parameters that the page does not declare, or declares with another type.

    papermill only warns about an unknown name and never looks at types.

    Raises
    ------
    ValueError
        Naming the parameter, what the page declares and what came.
    """
    cells = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    if len(cells) != 1:
        raise ValueError(f"parameters: expected one cell tagged so, got {len(cells)}")
    declared = {}
    for statement in ast.parse(cells[0].source).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            declared[statement.targets[0].id] = ast.literal_eval(statement.value)
    for name in declared:
        if name not in PARAMETERS:
            raise ValueError(
                f"{name}: unknown parameter in the page, expected one of {', '.join(PARAMETERS)}"
            )
    for name, value in given.items():
        if name not in declared:
            raise ValueError(
                f"{name}: unknown parameter, expected one of {', '.join(declared) or 'none'}"
            )
        if type(value) is not type(declared[name]):
            raise ValueError(
                f"{name}: expected {type(declared[name]).__name__}, "
                f"got {type(value).__name__} {value!r}"
            )


def staged(page: Page, parameters: Mapping[str, object]) -> nbformat.NotebookNode:
    """The notebook of a page, if its code is Python and it takes these parameters.

    Raises
    ------
    ValueError
        As `check_parameters`, with the page in front; or for code that cannot be read.
    """
    notebook = to_notebook(page.source)
    where = f"chapters/{page.name}.md"
    for cell in notebook.cells:
        if cell.cell_type == "code":
            start = cell.metadata["source_line"]
            _parsed(_without_magics(cell.source), f"{where}, cell at line {start}")
    try:
        check_parameters(notebook, parameters)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return notebook


def reach(code: str, packages: Mapping[str, Path]) -> frozenset[Path]:
    """The files of our packages that a piece of code reaches through import statements.

    Parameters
    ----------
    code : str
        Python source.
    packages : mapping of str to Path
        Package name to its folder.

    Returns
    -------
    frozenset of Path
        Modules, transitively, with the ``__init__.py`` of each package touched.

    Raises
    ------
    ValueError
        For code that is not Python; names the module.
    """
    found: set[Path] = set()
    todo = [_imported(code, "the page", "")]
    while todo:
        for module in todo.pop():
            package, _, rest = module.partition(".")
            if package not in packages:
                continue
            folder = packages[package]
            for path in (folder / "__init__.py", folder / f"{rest.replace('.', '/')}.py"):
                if path.exists() and path not in found:
                    found.add(path)
                    text = path.read_text(encoding="utf-8")
                    todo.append(_imported(text, f"{package}/{path.name}", package))
    return frozenset(found)


def _parsed(text: str, where: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise ValueError(f"{where}: {error.msg} ({line!r})") from None


@functools.cache  # many pages reach the same module
def _imported(text: str, where: str, inside: str) -> tuple[str, ...]:
    names: list[str] = []
    for node in ast.walk(_parsed(text, where)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = f"{inside}.{base}".rstrip(".")
            # ``from rederive import flows`` names a module, ``from rederive.flows import energy``
            # a function: try both, files that do not exist are dropped.
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return tuple(names)


def code_of(notebook: nbformat.NotebookNode) -> str:
    """The code of a notebook without IPython's magics."""
    return "\n".join(_without_magics(c.source) for c in notebook.cells if c.cell_type == "code")


def _without_magics(source: str) -> str:
    lines = source.splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))
