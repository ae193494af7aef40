"""Claims: what a claims.yml may say, the graph of uses, and where claims stand in the pages."""

import itertools
import json
from pathlib import Path

import pytest
import yaml

from rederive_book import claims, labels, pages, sources

ROOT = Path(__file__).resolve().parents[1]
HOLDS = {
    "id": "demo.first",
    "title": "A first claim",
    "source": {"paper": "this-book"},
    "statement": "One is $1$.",
    "verdict": "holds",
    "reading": "as an integer",
}


def write(folder, *entries):
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump([*entries], allow_unicode=True, sort_keys=False)
    (folder / "claims.yml").write_text(text, encoding="utf-8")
    return folder.parent


def claim(**changes):
    """A claim that holds, with fields replaced; None takes a field away."""
    return {key: value for key, value in {**HOLDS, **changes}.items() if value is not None}


def load(tmp_path, *entries):
    return claims.load(write(tmp_path / "demo", *entries))


def chain(tmp_path, **verdicts):
    """Claims a <- b <- c <- …, each using the one before."""
    entries = []
    for name, verdict in verdicts.items():
        uses = [entries[-1]["id"]] if entries else []
        amendment = "so" if verdict == "amended" else None
        fields = {"id": f"demo.{name}", "verdict": verdict, "amendment": amendment, "uses": uses}
        entries.append(claim(**fields))
    return load(tmp_path, *entries)


# ---------------------------------------------------------------------------- one file


def test_a_claim_is_read_as_written(tmp_path):
    source = {"paper": "seddik2026", "row": "Theorems 3–4"}
    book = load(tmp_path, claim(source=source, verdict="amended", amendment="Two is $2$."))
    (found,) = book.values()
    assert (found.id, found.folder, found.label) == ("demo.first", "demo", "demo-first")
    assert (found.paper, found.row) == ("seddik2026", "Theorems 3–4")
    assert (found.verdict, found.reading, found.amendment) == (
        "amended",
        "as an integer",
        "Two is $2$.",
    )
    assert found.uses == ()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"title": None}, "title"),
        ({"statement": None}, "statement"),
        ({"verdict": None}, "verdict"),
        ({"source": None}, "source"),
        ({"statement": "   "}, "statement"),
        ({"title": 3}, "title"),
        ({"statement": "an $x without its end"}, "statement"),
        ({"id": "demo.First"}, "id"),
        ({"id": "demo.two--hyphens"}, "id"),
        ({"id": "demo"}, "id"),
        ({"id": "other.first"}, "id"),
        ({"verdict": "true"}, "verdict"),
        ({"reading": None}, "reading"),
        ({"verdict": "amended"}, "amendment"),
        ({"verdict": "amended", "amendment": "so", "reading": None}, "reading"),
        ({"verdict": "open", "reading": None}, "reading"),
        ({"amendment": "a claim that holds needs none"}, "amendment"),
        ({"verdict": "refuted", "amendment": "then it were amended"}, "amendment"),
        ({"source": "fokoue2026"}, "source"),
        ({"source": {"paper": "nobody2026", "row": "Theorem 1"}}, "source"),
        ({"source": {"paper": "fokoue2026", "row": "Theorem 9.9"}}, "source"),
        ({"source": {"paper": "fokoue2026"}}, "source"),
        ({"source": {"paper": "this-book", "row": "Theorem 1"}}, "source"),
        ({"uses": "demo.second"}, "uses"),
        ({"uses": ["demo.second", "demo.second"]}, "uses"),
        ({"uses": ["demo.second"]}, "uses"),
        ({"proof": "trivial"}, "proof"),
    ],
)
def test_an_entry_that_breaks_a_rule_is_refused_by_claim_and_field(tmp_path, changes, field):
    with pytest.raises(ValueError) as caught:
        load(tmp_path, claim(**changes))
    message = str(caught.value)
    assert f"'{field}'" in message
    assert f"demo/claims.yml: claim {changes.get('id', 'demo.first')}" in message


def test_the_file_is_named_and_all_faults_are_told_at_once(tmp_path):
    write(tmp_path / "other", claim(id="other.first", reading=None))
    with pytest.raises(ValueError) as caught:
        load(tmp_path, claim(title=None), claim(id="demo.second", verdict="maybe"))
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "demo/claims.yml",
        "demo/claims.yml",
        "other/claims.yml",
    ]


def test_an_id_given_twice_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"claim demo\.first: field 'id': given twice"):
        load(tmp_path, claim(), claim())


def test_a_field_given_twice_is_refused(tmp_path):
    write(tmp_path / "demo")
    text = "- id: demo.first\n  title: One\n  title: Another\n"
    (tmp_path / "demo" / "claims.yml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"demo/claims\.yml: .*'title' is given twice"):
        claims.load(tmp_path)


@pytest.mark.parametrize("text", ["first: 1\n", "", "- - a\n", "- 'unclosed\n"])
def test_a_file_that_is_no_list_of_claims_is_refused(tmp_path, text):
    write(tmp_path / "demo")
    (tmp_path / "demo" / "claims.yml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"demo/claims\.yml"):
        claims.load(tmp_path)


def test_chapters_come_in_the_order_of_the_papers(tmp_path):
    for folder in ("flow", "annex", "regression", "pooling"):
        write(tmp_path / folder, claim(id=f"{folder}.first"))
    assert claims.load(tmp_path).folders == ("regression", "pooling", "flow", "annex")


# ---------------------------------------------------------------------------- the graph


def test_a_circle_of_uses_is_refused_and_shown(tmp_path):
    with pytest.raises(ValueError) as caught:
        load(
            tmp_path,
            claim(id="demo.a", uses=["demo.b"]),
            claim(id="demo.b", uses=["demo.c"]),
            claim(id="demo.c", uses=["demo.a"]),
        )
    circle = str(caught.value).partition("circle: ")[2].split(" -> ")
    assert circle[0] == circle[-1] and set(circle) == {"demo.a", "demo.b", "demo.c"}
    uses = {"demo.a": "demo.b", "demo.b": "demo.c", "demo.c": "demo.a"}
    assert all(uses[one] == other for one, other in itertools.pairwise(circle))


def test_a_claim_comes_after_those_it_uses(tmp_path):
    book = load(
        tmp_path,
        claim(id="demo.top", uses=["demo.left", "demo.right"]),
        claim(id="demo.left", uses=["demo.base"]),
        claim(id="demo.right", uses=["demo.base"]),
        claim(id="demo.base"),
    )
    place = {claim_id: index for index, claim_id in enumerate(book.order())}
    assert all(place[used] < place[c.id] for c in book.values() for used in c.uses)
    assert book.foundations("demo.top") == tuple(c for c in book.order() if c != "demo.top")


def test_a_failed_foundation_is_seen_from_far_above(tmp_path):
    book = chain(tmp_path, a="refuted", b="amended", c="holds", d="holds")
    assert book.rests_on_failed("demo.d") == ("demo.a",)
    assert book.rests_on_failed("demo.a") == ()


def test_an_amended_foundation_has_not_failed_and_an_open_one_has(tmp_path):
    book = chain(tmp_path, a="open", b="amended", c="holds")
    assert book.rests_on_failed("demo.c") == ("demo.a",)


def test_found_verdicts_replace_the_declared_ones(tmp_path):
    book = chain(tmp_path, a="holds", b="holds")
    assert book.rests_on_failed("demo.b", {"demo.a": "refuted"}) == ("demo.a",)
    assert book.rests_on_failed("demo.b", {"demo.a": None}) == ()


# ---------------------------------------------------------------------------- rows


def test_rows_without_a_claim_are_named(tmp_path):
    paper = sources.papers()["seddik2026"]
    wanted = [row for row in paper.rows if row not in ("model", "scope", "limits")]
    entries = [
        claim(id=f"pooling.r{index}", source={"paper": paper.key, "row": row})
        for index, row in enumerate(wanted)
    ]
    book = claims.load(write(tmp_path / "pooling", *entries))
    assert claims.missing_rows(book, "pooling") == ("seddik2026: limits",)
    assert len(claims.missing_rows(book, "regression")) == 13
    assert claims.missing_rows(book, "real-models") == ()


def test_a_chapter_is_complete_when_its_index_is_in_the_table_of_contents():
    names = ["chapters/index", "chapters/flow/index.md", "pooling/index", "regression/one"]
    assert sources.complete_chapters(names) == ("flow", "pooling")


@pytest.mark.parametrize("folder", sources.complete_chapters(pages.toc_names(ROOT)))
def test_every_statement_of_a_complete_chapter_has_a_claim(folder):
    assert claims.missing_rows(claims.load(ROOT / "chapters"), folder) == ()


# ---------------------------------------------------------------------------- pages


PAGE = """# A page

```{prf:theorem} First $x$
:label: demo-first

Text.
```

See {prf:ref}`demo-second`, {prf:ref}`the third <demo-third>`.
"""


def read(tmp_path, text, name="demo/one", suffix=".md"):
    path = tmp_path / f"page{suffix}"
    path.write_text(text, encoding="utf-8")
    return labels.read_page(name, path)


def test_labels_and_references_are_found_with_their_place(tmp_path):
    page = read(tmp_path, PAGE)
    assert page.places("demo-first") == ["demo/one (line 3)"]
    assert page.references == {"demo-second", "demo-third"}


@pytest.mark.parametrize(
    "text",
    [
        "::::{admonition} Box\n:class: tip\n\n```{prf:lemma}\n:label: demo-first\nx\n```\n::::\n",
        ":::{prf:lemma}\n---\nlabel: demo-first\n---\nx\n:::\n",
        "- item\n\n  ```{prf:lemma} Title\n  :class: a\n  :label: demo-first\n  x\n  ```\n",
        "> ```{prf:lemma}\n> :label: demo-first\n> ```\n",
    ],
    ids=["in an admonition", "options as YAML", "in a list", "in a quotation"],
)
def test_a_label_counts_wherever_the_book_would_show_its_theorem(tmp_path, text):
    assert len(read(tmp_path, text).places("demo-first")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "````markdown\n```{prf:lemma}\n:label: demo-first\n```\n````\n",
        "```{code-cell}\n':::{prf:lemma}'\n':label: demo-first'\n```\n",
        "````{code-block} markdown\n```{prf:lemma}\n:label: demo-first\n```\n````\n",
        "(demo-first)=\n## Heading\n",
        "```{figure} a.png\n:label: demo-first\n```\n",
        "```{prf:lemma}\n\n:label: demo-first is text here\n```\n",
    ],
)
def test_an_example_or_another_label_does_not_count(tmp_path, text):
    assert read(tmp_path, text).places("demo-first") == []


def test_references_in_code_and_mathematics_do_not_count(tmp_path):
    text = "``{prf:ref}`no` ``\n\n```python\n{prf:ref}`no`\n```\n\n$$\n{prf:ref}`no`\n$$\n"
    assert read(tmp_path, text).references == frozenset()


def test_a_notebook_is_read_like_its_text(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": PAGE.splitlines(keepends=True)},
        {"cell_type": "code", "source": "'{prf:ref}`no`'"},
    ]
    page = read(tmp_path, json.dumps({"cells": cells}), suffix=".ipynb")
    assert page.places("demo-first") == ["demo/one (cell 1, line 3)"]
    assert page.references == {"demo-second", "demo-third"}


def test_missing_and_double_labels_are_reported_with_claim_and_pages(tmp_path):
    book = load(tmp_path, claim(), claim(id="demo.lost"))
    texts = {name: read(tmp_path, PAGE, name) for name in ("demo/one", "demo/two")}
    double, missing = labels.label_problems(book, texts)
    assert "demo.first" in double
    assert "demo/one (line 3)" in double and "demo/two (line 3)" in double
    assert "demo.lost" in missing and "demo-lost" in missing


def test_an_arrow_is_honoured_by_a_reference_on_the_page_of_the_derivation(tmp_path):
    book = load(tmp_path, claim(uses=["demo.second"]), claim(id="demo.second"))
    second = "```{prf:lemma}\n:label: demo-second\nx\n```\n"
    texts = {"demo/one": read(tmp_path, PAGE), "demo/two": read(tmp_path, second, "demo/two")}
    assert labels.arrow_problems(book, texts) == []
    silent = PAGE.replace("{prf:ref}`demo-second`", "nothing")
    texts["demo/one"] = read(tmp_path, silent)
    (problem,) = labels.arrow_problems(book, texts)
    assert "demo.first on page demo/one" in problem and "demo.second" in problem
