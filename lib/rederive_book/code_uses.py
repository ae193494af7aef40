"""What of our library a page's code uses, by reading it, without running anything.

Only what can be seen in the text counts: a name that an import binds, followed by attributes, as in
``flows.velocity``. A method of an object that a function returned is not followed.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("rederive", "rederive_book")


@dataclass(frozen=True)
class Cell:
    """A code cell as far as it matters here.

    Attributes
    ----------
    source : str
    uses : frozenset of str
        Full names of what it uses of our library: ``rederive.flows.velocity``.
    binds, reads : frozenset of str
        Names that it defines at its top level, and all names that it mentions.
    texts : frozenset of str
        The string constants in it.
    anchors : frozenset of str
        The anchors of the checks whose lines stand below it.
    names : frozenset of (str, str)
        Every name of our library in it as it is written, with its full name.
    """

    source: str
    uses: frozenset[str]
    binds: frozenset[str]
    reads: frozenset[str]
    texts: frozenset[str]
    anchors: frozenset[str] = frozenset()
    names: frozenset[tuple[str, str]] = frozenset()


def read_cells(path: Path) -> tuple[Cell, ...]:
    """The code cells of a page.

    Parameters
    ----------
    path : Path
        A notebook, or MyST text; what is no notebook in the second case has no cells.

    Returns
    -------
    tuple of Cell
        Cells that are no Python count as empty.
    """
    path = Path(path)
    if path.suffix == ".ipynb":
        notebook = json.loads(path.read_text(encoding="utf-8"))
    else:
        from rederive_book.pages import front_matter, to_notebook

        if "kernelspec" not in front_matter(path.read_text(encoding="utf-8")):
            return ()
        notebook = to_notebook(path)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    sources = ["".join(cell["source"]) for cell in cells]
    anchors = [
        frozenset(
            output["metadata"]["rederive_check"]["anchor"]
            for output in cell.get("outputs", ())
            if "rederive_check" in output.get("metadata", {})
        )
        for cell in cells
    ]
    return analyse(sources, anchors)


def analyse(sources: Sequence[str], anchors: Sequence[frozenset[str]] = ()) -> tuple[Cell, ...]:
    """Read the code of cells that run one after the other.

    Parameters
    ----------
    sources : sequence of str
    anchors : sequence of frozenset of str, optional
        The anchors below each cell.
    """
    names: dict[str, str] = {}
    cells = []
    for number, source in enumerate(sources):
        below = anchors[number] if anchors else frozenset()
        tree = _parsed(source)
        imported = dict(_imports(tree))
        names |= imported
        written = dict(_uses(tree, names))
        cells.append(
            Cell(
                source=source,
                uses=frozenset(written.values()),
                binds=frozenset(_binds(tree)),
                reads=frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)),
                texts=frozenset(
                    n.value
                    for n in ast.walk(tree)
                    if isinstance(n, ast.Constant) and isinstance(n.value, str)
                ),
                anchors=below,
                names=frozenset((imported | written).items()),
            )
        )
    return tuple(cells)


def behind(cells: Sequence[Cell], text: str) -> frozenset[str]:
    """What of the library stands behind the cells that contain a text, a claim's id for instance.

    A cell rests on the earlier cells that define the names it mentions, these on others, and so on.

    Parameters
    ----------
    cells : sequence of Cell
    text : str

    Returns
    -------
    frozenset of str
        Full names.
    """
    found = {number for number, cell in enumerate(cells) if text in cell.texts}
    todo = list(found)
    while todo:
        at = todo.pop()
        for number in range(at):
            if number not in found and cells[number].binds & cells[at].reads:
                found.add(number)
                todo.append(number)
    return frozenset(use for number in found for use in cells[number].uses)


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:  # magics, other languages
        return ast.Module(body=[], type_ignores=[])


def _ours(module: str) -> bool:
    return module.partition(".")[0] in PACKAGES


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and _ours(node.module):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _ours(alias.name):
                    top = alias.name.partition(".")[0]
                    yield (alias.asname, alias.name) if alias.asname else (top, top)


def _uses(tree: ast.Module, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The longest chains of attributes that begin with an imported name, and their full names."""
    inner = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            chain, at = [], node
            while isinstance(at, ast.Attribute):
                chain.append(at.attr)
                at = at.value
            if isinstance(at, ast.Name) and at.id in names:
                rest = ["", *reversed(chain)]
                yield at.id + ".".join(rest), names[at.id] + ".".join(rest)


def _binds(tree: ast.Module) -> Iterator[str]:
    """Names that a cell defines outside functions and classes, imports left out."""
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif not isinstance(node, ast.Lambda):
            todo.extend(ast.iter_child_nodes(node))
