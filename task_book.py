"""The task graph of the book: a task a page, then the ledger, then the site.

pytask hashes what each task depends on and records each task as it ends, so a page runs again
only when the content of something it depends on changed, and a build that is killed keeps the
pages it had finished. Run it through ``make book``, which checks the variables first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pytask import Product, PythonNode, task

from rederive_book import claims, execution, ledger, models, options, pages, site

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "_build"
PACKAGES = {name: ROOT / "lib" / name for name in ("rederive", "rederive_book")}
LOCK = [ROOT / "requirements.lock", ROOT / "requirements-torch.txt"]

BOOK = pages.read_book(ROOT)
OPTIONS = options.read_environment(tuple(page.name for page in BOOK if page.executable))


def _reasons_not_to_run(page: pages.Page) -> str | None:
    if OPTIONS.page not in (None, page.name):
        return f"this build ran {OPTIONS.page} only"
    if page.missing:
        return f"the optional package {page.missing[0]} is missing"
    # A page asked for by name runs, and fails with its own words: it must not be skipped silently.
    asked_for = OPTIONS.page == page.name
    return models.damage() if models.PACKAGE in page.requires and not asked_for else None


NOT_RUN = {
    page.name: why for page in BOOK if page.executable and (why := _reasons_not_to_run(page))
}
TO_RUN = [page for page in BOOK if page.executable and page.name not in NOT_RUN]
EXECUTED = {page.name: BUILD / "notebooks" / f"{page.name}.ipynb" for page in TO_RUN}


def _value(value: object) -> PythonNode:
    """A value that a task depends on by content."""
    return PythonNode(value=repr(value), hash=True)


def _inputs(paths: Iterable[Path]) -> dict[str, object]:
    """The files that a task depends on, and their names: one that is gone is a change, too."""
    files = sorted(set(paths))
    names = [path.relative_to(ROOT).as_posix() for path in files]
    return {"depends_on": files, "names": _value(names)}


for _page in TO_RUN:
    # The name is given in full: pytask would leave out the id where there is one page only, and
    # a page that ran alone would be another task than the same page in the book.
    @task(
        name=f"page[{_page.name}]",
        kwargs={
            **_inputs(
                [
                    _page.source,
                    *pages.reach(pages.code_of(pages.to_notebook(_page.source)), PACKAGES),
                    *LOCK,
                    *_page.data,
                ]
            ),
            "parameters": _value(OPTIONS.parameters),
            "name": _page.name,
            "produces": EXECUTED[_page.name],
        },
    )
    def page(
        depends_on: list[Path],
        names: str,
        parameters: str,
        name: str,
        produces: Annotated[Path, Product],
    ) -> None:
        execution.execute(
            next(page for page in BOOK if page.name == name),
            produces,
            root=ROOT,
            parameters=OPTIONS.parameters,
            cell_timeout=OPTIONS.cell_timeout,
        )


def _run() -> dict[str, object]:
    """The facts of this run; the time the pages took is known only afterwards."""
    return ledger.describe_run(ROOT, OPTIONS.parameters, seconds=None)


@task(
    kwargs={
        **_inputs(
            [
                *EXECUTED.values(),
                *(ROOT / "chapters").glob("*/claims.yml"),
                *(page.source for page in BOOK),
                ROOT / "_toc.yml",
                *PACKAGES["rederive_book"].glob("*.*"),
            ]
        ),
        "facts": _value((_run(), NOT_RUN, OPTIONS.untried, OPTIONS.page)),
        "produces": BUILD / "claims.json",
    }
)
def verdicts(
    depends_on: list[Path], names: str, facts: str, produces: Annotated[Path, Product]
) -> None:
    """Settle every claim by its checks; any disagreement fails the build."""
    stated = claims.load(ROOT / "chapters")
    texts = ledger.read_pages({page.name: page.source for page in BOOK})
    records = ledger.read_records(EXECUTED)
    run = _run() | {"seconds": sum(execution.seconds(path) for path in EXECUTED.values())}
    settled = ledger.build(stated, texts, records, run, not_run=NOT_RUN)
    found = ledger.problems(
        settled,
        stated,
        texts,
        records,
        untried_allowed=OPTIONS.untried if OPTIONS.page is None else None,
    )
    refused = BUILD / "failed" / produces.name
    if found:
        # Kept for inspection; what does not even fit the schema is among what was found.
        with contextlib.suppress(ValueError):
            ledger.write(settled, refused)
        raise ValueError("the verdicts do not stand:\n" + "\n".join(found))
    ledger.write_figures(EXECUTED, BUILD / "figures")
    ledger.write(settled, produces)
    refused.unlink(missing_ok=True)


if OPTIONS.site:

    @task(
        kwargs={
            **_inputs(
                [
                    *EXECUTED.values(),
                    BUILD / "claims.json",
                    *site.source_files(ROOT),
                    *LOCK,
                    *(
                        path
                        for folder in PACKAGES.values()
                        for path in folder.rglob("*.*")
                        if path.parent.name != "__pycache__"
                    ),
                ]
            ),
            "produces": BUILD / "html" / "index.html",
        }
    )
    def html(depends_on: list[Path], names: str, produces: Annotated[Path, Product]) -> None:
        """Build the site from the executed pages and the ledger."""
        site.build(ROOT, BOOK, EXECUTED)
