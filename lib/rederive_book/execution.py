"""A page is executed by papermill, and put in place whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import nbformat

from rederive_book import alone
from rederive_book.pages import Page, code_of, staged


class PageError(Exception):
    """A page could not be executed; the text names page, cell and cause."""


def execute(
    page: Page,
    output: Path,
    *,
    root: Path,
    parameters: Mapping[str, object],
    cell_timeout: int,
) -> None:
    """Run a page and put the executed notebook in place, whole or not at all.

    Parameters
    ----------
    page : Page
    output : Path
        Where the executed notebook goes, below ``_build/notebooks``.
    root : Path
        The book.
    parameters : mapping
        For the page's parameter cell.
    cell_timeout : int
        Seconds a cell may take.

    Raises
    ------
    PageError
        Naming page, cell and cause. What had been computed is kept in ``_build/failed``.
    """
    import papermill  # slow to import: workers do it once
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    from rederive_book import kernels

    builder = os.getppid()
    if alone.BUILD in os.environ:
        alone.leave_with(builder)
    notebook = staged(page, parameters)
    current: dict[str, object] = {}
    kept = root / "_build" / "failed" / f"{page.name}.ipynb"
    with tempfile.TemporaryDirectory() as folder, _first_on_path(root / "lib"):
        ready, partial = Path(folder, "page.ipynb"), Path(folder, "partial.ipynb")
        nbformat.write(notebook, ready)
        try:
            executed = papermill.execute_notebook(
                ready,
                partial,
                parameters=dict(parameters),
                kernel_name="python3",
                progress_bar=False,
                cwd=folder,
                execution_timeout=cell_timeout,
                shutdown_kernel="immediate",  # it has said all; to leave by itself takes 2 s
                kernel_manager_class=kernels.manager_for(code_of(notebook)),
                on_cell_execute=lambda cell, cell_index: current.update(cell=cell),
            )
            _assert_complete(executed)
        except Exception as error:
            if partial.exists():
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(partial, kept)
            if isinstance(error, DeadKernelError):
                cause = "the kernel died (killed, out of memory, or it left by itself)"
            elif isinstance(error, CellTimeoutError):
                cause = f"the cell took longer than {cell_timeout} s"
            elif isinstance(error, papermill.PapermillExecutionError):
                cause = f"{error.ename}: {error.evalue}"
            else:
                cause = f"{type(error).__name__}: {error}"
            raise PageError(_describe(page, current.get("cell"), cause, kept, root)) from None
    # If it was killed, another build may be at work by now.
    if os.getppid() != builder or not still_wanted():
        raise PageError(f"chapters/{page.name}.md: the build that asked for it is gone")
    _publish(executed, output)
    kept.unlink(missing_ok=True)


def still_wanted() -> bool:
    """Whether the build waits for what this process computes; a cluster's worker puts its own."""
    return True


def seconds(notebook: Path) -> float:
    """How long the cells of an executed page took."""
    cells = nbformat.read(notebook, as_version=4).cells
    return sum(cell.metadata.get("papermill", {}).get("duration") or 0.0 for cell in cells)


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    """Kernels started inside the block import from this folder first."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [before])])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _assert_complete(notebook: nbformat.NotebookNode) -> None:
    # papermill marks cells after a dead kernel as completed: count what really ran.
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source.strip() and cell.execution_count is None:
            raise RuntimeError("a cell was never executed")


def _describe(page: Page, cell: object, cause: str, kept: Path, root: Path) -> str:
    where = f"chapters/{page.name}.md"
    if cell is not None:
        line = cell.metadata.get("source_line")
        first = next((text for text in cell.source.splitlines() if text.strip()), "")
        where += f", cell at line {line} ({first.strip()[:60]!r})" if line else ", parameters"
    note = f"\n  partial notebook: {kept.relative_to(root).as_posix()}" if kept.exists() else ""
    return f"{where}: {cause}{note}"


def _publish(notebook: nbformat.NotebookNode, output: Path) -> None:
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor

    # Where a kernel cuts what is printed in a row depends on the load of the machine.
    CoalesceStreamsPreprocessor().preprocess(notebook, {})
    # The file names papermill leaves behind are temporary ones of this machine.
    for key in ("input_path", "output_path"):
        notebook.metadata.papermill.pop(key, None)
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if "injected-parameters" in tags:
            cell.metadata["tags"] = [*tags, "remove-cell"]
            cell["id"] = "injected-parameters"
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        nbformat.write(notebook, unfinished)
        os.replace(unfinished, output)
    finally:
        unfinished.unlink(missing_ok=True)
