"""The book itself: its claims are placed and linked; its pages import what they may."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from rederive_book import claims, ledger, pages
from rederive_book.labels import arrow_problems, label_problems

ROOT = Path(__file__).resolve().parents[1]
BOOK = pages.read_book(ROOT)
EXECUTABLE = [page for page in BOOK if page.executable]
#: What a page may use of the book's machinery: never its pipeline.
ALLOWED = {"animations", "certified", "checks", "figures", "models"}
#: Lines of code, blank ones left out, from which on a cell is folded: the text must read on.
LONG_CELL = 25


@pytest.fixture(scope="module")
def stated():
    return claims.load(ROOT / "chapters")


@pytest.fixture(scope="module")
def texts():
    return ledger.read_pages({page.name: page.source for page in BOOK})


def test_every_claim_is_stated_on_exactly_one_page(stated, texts):
    assert label_problems(stated, texts) == []


def test_every_arrow_between_claims_is_honoured_by_the_text(stated, texts):
    assert arrow_problems(stated, texts) == []


@pytest.mark.parametrize("page", EXECUTABLE, ids=lambda page: page.name)
def test_a_page_takes_the_three_parameters(page):
    pages.staged(page, {"profile": "quick", "seed": 1, "device": "cpu"})


@pytest.mark.parametrize("page", EXECUTABLE, ids=lambda page: page.name)
def test_a_page_reaches_modules_by_import_statements_only(page):
    tree = ast.parse(pages.code_of(pages.to_notebook(page.source)))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rederive_book"):
            names = {node.module.removeprefix("rederive_book").lstrip(".")} - {""}
            assert (names or {alias.name for alias in node.names}) <= ALLOWED
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("rederive_book") for alias in node.names)
        if isinstance(node, ast.Name):
            assert node.id not in {"__import__", "importlib", "exec", "eval"}


@pytest.mark.parametrize("page", EXECUTABLE, ids=lambda page: page.name)
def test_a_page_says_where_its_noise_comes_from(page):
    code = pages.code_of(pages.to_notebook(page.source))
    assert "np.random.seed" not in code
    assert "default_rng()" not in code


@pytest.mark.parametrize("page", EXECUTABLE, ids=lambda page: page.name)
def test_a_long_cell_is_folded(page):
    for cell in pages.to_notebook(page.source).cells:
        lines = [line for line in cell.source.splitlines() if line.strip()]
        if cell.cell_type == "code" and len(lines) >= LONG_CELL:
            tags = cell.metadata.get("tags", [])
            assert {"hide-input", "hide-cell", "remove-cell"} & set(tags), cell.source[:200]
