"""What a page's code uses of the library, read from its text."""

import json

from rederive_book import code_uses, site_code

CELLS = code_uses.analyse(
    [
        "import numpy as np\nfrom rederive import flows, spikes as s\n"
        "from rederive.replicates import replicate\nimport rederive_book.checks\n",
        "def draw(rng):\n    inside = flows.velocity(rng)\n    return inside\n",
        "other = s.outlier(1.0).location",
        "runs = replicate(draw, 5)\nfirst, *rest = runs",
        'rederive_book.checks.bound("demo.base", "name", values=[r for r in rest])',
        "%matplotlib inline",
    ]
)


def test_uses_are_chains_that_begin_with_an_import():
    uses = [set(cell.uses) for cell in CELLS]
    assert uses[:3] == [set(), {"rederive.flows.velocity"}, {"rederive.spikes.outlier"}]
    assert uses[3] == {"rederive.replicates.replicate"}
    assert uses[4] == {"rederive_book.checks.bound"}


def test_a_cell_that_is_no_python_uses_nothing():
    assert CELLS[5].uses == CELLS[5].binds == frozenset()


def test_names_of_functions_inside_are_not_defined_outside():
    assert CELLS[1].binds == {"draw"} and CELLS[3].binds == {"runs", "first", "rest"}


def test_behind_a_check_stands_what_its_numbers_came_from_and_nothing_else():
    assert code_uses.behind(CELLS, "demo.base") == {
        "rederive.flows.velocity",
        "rederive.replicates.replicate",
        "rederive_book.checks.bound",
    }
    assert code_uses.behind(CELLS, "demo.nobody") == frozenset()


def test_a_page_is_read_from_its_text_and_from_its_notebook(tmp_path):
    head = "---\nkernelspec:\n  name: python3\n---\n\n# A\n\n"
    text = head + "```{code-cell} ipython3\nimport rederive\n```\n"
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert [cell.source for cell in code_uses.read_cells(page)] == ["import rederive"]
    plain = tmp_path / "plain.md"
    plain.write_text("# No code\n", encoding="utf-8")
    assert code_uses.read_cells(plain) == ()
    output = {"output_type": "display_data", "metadata": {"rederive_check": {"anchor": "check-a"}}}
    cell = {"cell_type": "code", "source": ["a = 1\n", "b"], "outputs": [output]}
    book = tmp_path / "page.ipynb"
    book.write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    (read,) = code_uses.read_cells(book)
    assert read.anchors == {"check-a"} and read.source == "a = 1\nb"


def test_pages_are_found_by_the_object_and_by_what_is_inside_it():
    cells = {
        "one": CELLS,
        "two": code_uses.analyse(["from rederive import flows\nflows.Flow.step()"]),
    }
    assert site_code.pages_using("rederive.flows.velocity", cells) == ["one"]
    assert site_code.pages_using("rederive.flows.Flow", cells) == ["two"]
    assert site_code.pages_using("rederive.flows.Fl", cells) == []
    assert site_code.used_on("rederive.flows.energy", cells) == []
    assert site_code.used_on("rederive.flows.velocity", cells)[-2] == "   Used on: :doc:`/one`"
