"""What pages leave in their executed notebooks: the records of checks and the data of figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

CHECK_KEY = "rederive_check"
FIGURE_KEY = "rederive_figure"

#: What a record holds; pages write it through `rederive_book.checks` only.
KEYS = frozenset(
    "claim name kind tries expected outcome measured predicted unit uncertainty "
    "source_of_uncertainty statistic control anchor stochastic tests".split()
)


@dataclass(frozen=True)
class Record:
    """One check as a page recorded it.

    Attributes
    ----------
    page : str
    data : dict
        The record, with the keys of `KEYS`.
    seconds : float or None
        The time its cell took, shared evenly among the checks of the cell.
    """

    page: str
    data: dict[str, Any]
    seconds: float | None


def read_records(notebooks: Mapping[str, Path]) -> list[Record]:
    """The records of all checks, page by page, in the order of execution.

    Parameters
    ----------
    notebooks : mapping of str to Path
        Page name to executed notebook.

    Raises
    ------
    ValueError
        If a record is malformed; names the page and what is wrong.
    """
    records = []
    for page, path in notebooks.items():
        for cell in _code_cells(path):
            found = list(_metadata(cell, CHECK_KEY))
            duration = cell.metadata.get("papermill", {}).get("duration")
            for data in found:
                _assert_record(page, data)
                share = None if duration is None else duration / len(found)
                records.append(Record(page, data, share))
    return records


def _code_cells(path: Path) -> Iterator[nbformat.NotebookNode]:
    notebook = nbformat.read(path, as_version=4)
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def _metadata(cell: nbformat.NotebookNode, key: str) -> Iterator[Any]:
    for output in cell.outputs:
        if key in output.get("metadata", {}):
            yield output.metadata[key]


def _assert_record(page: str, data: Any) -> None:
    keys = set(data) if isinstance(data, dict) else set()
    if keys != KEYS:
        name = data.get("name") if isinstance(data, dict) else data
        raise ValueError(
            f"page {page}: the record of check {name!r} lacks {sorted(KEYS - keys)} "
            f"and has unknown {sorted(keys - KEYS)}"
        )


def write_figures(notebooks: Mapping[str, Path], folder: Path) -> list[Path]:
    """Write the data of every figure to ``<folder>/<page>/<name>.csv``.

    Parameters
    ----------
    notebooks : mapping of str to Path
        Page name to executed notebook.
    folder : Path
        Data that no figure of these pages stands for are removed, so that the folder belongs to
        this build alone.

    Returns
    -------
    list of Path
        The files, in the order of the figures.

    Raises
    ------
    ValueError
        If two figures of a page have one name.
    """
    written: list[Path] = []
    for page, path in notebooks.items():
        place = Path(folder) / page
        place.mkdir(parents=True, exist_ok=True)
        for cell in _code_cells(path):
            for figure in _metadata(cell, FIGURE_KEY):
                file = place / f"{figure['name']}.csv"
                if file in written:
                    raise ValueError(f"page {page}: two figures are called {figure['name']!r}")
                file.write_text(figure["csv"], encoding="utf-8", newline="")
                written.append(file)
    for old in set(Path(folder).rglob("*.csv")) - set(written):
        old.unlink()
    return written
