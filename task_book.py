"""The task graph of the book: a task a page, then the ledger, then the site.

pytask hashes what each task depends on and records each task as it ends, so a page runs again
only when the content of something it depends on changed, and a build that is killed keeps the
pages it had finished. Run it through ``make book``, which checks the variables first.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

from pytask import Product, PythonNode, task

from rederive_book import claims, ledger, options, pages, site

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "_build"
PACKAGES = {name: ROOT / "lib" / name for name in ("rederive", "rederive_book")}
LOCK = [ROOT / "requirements.lock", ROOT / "requirements-torch.txt"]

BOOK = pages.read_book(ROOT)
OPTIONS = options.read_environment(tuple(page.name for page in BOOK if page.executable))


def _reasons_not_to_run(page: pages.Page) -> str | None:
    if OPTIONS.page not in (None, page.name):
        return f"this build ran {OPTIONS.page} only"
    missing = [name for name in page.requires if importlib.util.find_spec(name) is None]
    return f"the optional package {missing[0]} is missing" if missing else None


NOT_RUN = {
    page.name: why for page in BOOK if page.executable and (why := _reasons_not_to_run(page))
}
TO_RUN = [page for page in BOOK if page.executable and page.name not in NOT_RUN]
EXECUTED = {page.name: BUILD / "notebooks" / f"{page.name}.ipynb" for page in TO_RUN}


def _value(value: object) -> PythonNode:
    """A value that a task depends on by content."""
    return PythonNode(value=repr(value), hash=True)


for _page in TO_RUN:

    @task(
        id=_page.name,
        kwargs={
            "depends_on": [
                _page.source,
                *sorted(pages.reach(pages.code_of(pages.to_notebook(_page.source)), PACKAGES)),
                *LOCK,
                *_page.data,
            ],
            "parameters": _value(OPTIONS.parameters),
            "name": _page.name,
            "produces": EXECUTED[_page.name],
        },
    )
    def page(
        depends_on: list[Path], parameters: str, name: str, produces: Annotated[Path, Product]
    ) -> None:
        pages.execute(
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
        "depends_on": [
            *EXECUTED.values(),
            *sorted((ROOT / "chapters").glob("*/claims.yml")),
            *(page.source for page in BOOK),
            ROOT / "_toc.yml",
            *sorted(PACKAGES["rederive_book"].glob("*.*")),
        ],
        "facts": _value((_run(), NOT_RUN, OPTIONS.untried, OPTIONS.page)),
        "produces": BUILD / "claims.json",
    }
)
def verdicts(depends_on: list[Path], facts: str, produces: Annotated[Path, Product]) -> None:
    """Settle every claim by its checks; any disagreement fails the build."""
    stated = claims.load(ROOT / "chapters")
    texts = ledger.read_pages({page.name: page.source for page in BOOK})
    records = ledger.read_records(EXECUTED)
    run = _run() | {"seconds": sum(pages.seconds(path) for path in EXECUTED.values())}
    settled = ledger.build(stated, texts, records, run, not_run=NOT_RUN)
    found = ledger.problems(
        settled,
        stated,
        texts,
        records,
        untried_allowed=OPTIONS.untried if OPTIONS.page is None else None,
    )
    if found:
        raise ValueError("the verdicts do not stand:\n" + "\n".join(found))
    ledger.write_figures(EXECUTED, BUILD / "figures")
    ledger.write(settled, produces)


if OPTIONS.site:

    @task(
        kwargs={
            "depends_on": [
                *EXECUTED.values(),
                BUILD / "claims.json",
                *site.source_files(ROOT),
                *LOCK,
                *sorted(path for folder in PACKAGES.values() for path in folder.rglob("*.*")),
            ],
            "produces": BUILD / "html" / "index.html",
        }
    )
    def html(depends_on: list[Path], produces: Annotated[Path, Product]) -> None:
        """Build the site from the executed pages and the ledger."""
        site.build(ROOT, BOOK, EXECUTED)
