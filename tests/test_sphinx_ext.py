"""The site's extension on a throw-away project, built with every warning an error."""

import io
import json
import re
from pathlib import Path

import pytest
import yaml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import docutils_namespace, patch_docutils

from rederive_book import claims, ledger, site_links, site_statements, site_status

CLAIMS = [
    {
        "id": "demo.base",
        "title": "A base with $x^2$",
        "source": {"paper": "fokoue2026", "row": "Theorem 3.1"},
        "statement": "As stated, $a = b$.",
        "verdict": "amended",
        "reading": "when *all* is well",
        "amendment": "In truth:\n\n$$\na < b\n$$",
    },
    {
        "id": "demo.false",
        "title": "A false one",
        "source": {"paper": "fokoue2026", "row": "HDI"},
        "statement": "Never so.",
        "verdict": "refuted",
        "uses": ["demo.base"],
    },
    {
        "id": "demo.top",
        "title": "On shaky ground",
        "source": {"paper": "this-book"},
        "statement": "Hence so.",
        "verdict": "holds",
        "reading": "as it stands",
        "uses": ["demo.false"],
    },
    {
        "id": "demo.far",
        "title": "On a page left out",
        "source": {"paper": "fokoue2026", "row": "blur"},
        "statement": "Far away.",
        "verdict": "open",
        "reading": "a proof",
    },
]
THEOREMS = "# Theorems\n\n" + "".join(
    f"```{{as-stated}} demo.{name}\n```\n\n"
    f"```{{prf:theorem}} Title of {name}\n:label: demo-{name}\n\nText.\n```\n\n"
    for name in ("base", "false", "top")
)
PAGES = {
    "index": "# Book\n\n```{toctree}\n:numbered:\nchapters/demo/one\nresults\n```\n",
    "chapters/demo/one": THEOREMS,
    "results": "# Results\n\n"
    "```{claims-table}\n```\n\n```{findings}\n```\n\n```{build-status}\n```\n",
}
RUN = {
    "commit": "c0ffee" + "0" * 34,
    "dirty": True,
    "seed": 2026,
    "profile": "quick",
    "device": "cpu",
    "cpu": "a processor",
    "python": "3.11.0",
    "versions": {"numpy": "2.0.0"},
    "lock": "ab" * 32,
    "seconds": 75.0,
}


#: A picture of one point.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)


class Project:
    """A small Sphinx project with one chapter of claims."""

    def __init__(self, root):
        self.source, self.out = root / "source", root / "out"
        for name, text in PAGES.items():
            self.write(f"{name}.md", text)
        self.state(CLAIMS)

    def write(self, name, text):
        """Put a source file in place."""
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def state(self, entries):
        """Write the chapter's claims."""
        self.write("chapters/demo/claims.yml", yaml.safe_dump(entries, allow_unicode=True))

    def settle(self, **entries):
        """Write a ledger: the declared verdicts with two checks each, entries replaced."""
        stated = claims.load(self.source / "chapters")
        made = ledger.build(stated, {}, [], RUN)
        for entry in made["claims"]:
            kind = "identity" if entry["id"] == "demo.base" else "estimate"
            entry["verdict"] = entry["declared"]
            entry["page"] = "demo/one"
            entry["checks"] = [check(kind, distance) for distance in (64.6, 1e7)]
            entry.update(entries.get(entry["id"].partition(".")[2], {}))
        ledger.write(made, self.source / "claims.json")

    def build(self, warnings="", **config):
        """Build; returns the pages' HTML by name, after comparing the warnings."""
        settings = {
            "extensions": ["myst_parser", "sphinx_proof", "rederive_book.sphinx_ext"],
            "myst_enable_extensions": ["dollarmath"],
            "rederive_ledger": "claims.json",
            "source_suffix": {".md": "markdown"},
            "nitpicky": True,
            "numfig": True,
            "html_theme": "basic",
        }
        stream = io.StringIO()
        with patch_docutils(str(self.source)), docutils_namespace():
            app = Sphinx(
                str(self.source),
                None,
                str(self.out / "html"),
                str(self.out / "doctrees"),
                "html",
                confoverrides=settings | config,
                status=None,
                warning=stream,
            )
            app.build()
        assert re.search(warnings, stream.getvalue()) if warnings else stream.getvalue() == ""
        return {
            path.relative_to(self.out / "html").with_suffix("").as_posix(): path.read_text(
                encoding="utf-8"
            )
            for path in (self.out / "html").rglob("*.html")
        }


def check(kind, distance):
    stochastic = kind == "estimate"
    return {
        "name": f"{kind} {distance}",
        "kind": kind,
        "tries": "statement",
        "expected": "pass",
        "outcome": "pass",
        "measured": 1.0,
        "predicted": 1.0,
        "unit": "",
        "uncertainty": 0.1,
        "source_of_uncertainty": "standard error" if stochastic else "rounding bound",
        "statistic": {
            "name": "t",
            "value": 0.0,
            "dof": None,
            "level": 1e-6 if stochastic else None,
        },
        "control": {"what": "other", "measured": 9.0, "distance": distance, "rejected": True},
        "anchor": "check-demo",
        "seconds": 0.5,
    }


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def text_of(html):
    """What a reader sees, without markup."""
    within = re.sub(r"</?(?:a|code|em|span|strong)\b[^>]*>", "", html)
    return " ".join(re.sub(r"<[^>]+>", " ", within).split())


def rows(html):
    """The dashboard's rows, as HTML."""
    table = re.search(r'<table class="[^"]*rederive-claims.*?</table>', html, re.DOTALL)[0]
    return re.findall(r"<tr.*?</tr>", table.partition("<tbody>")[2], re.DOTALL)


# ---------------------------------------------------------------------------- cards


def test_a_card_shows_the_claim_as_stated(project):
    html = project.build()["chapters/demo/one"]
    card = html.partition("rederive-card rederive-amended")[2].partition("Title of base")[0]
    shown = text_of(card)
    assert "A base with \\(x^2\\) ≈ amended" in shown
    assert "As our source states it As stated, \\(a = b\\)." in shown
    assert "<em>all</em>" in card
    assert "What holds" not in shown  # the theorem beside the card states it
    assert 'href="https://arxiv.org/abs/2605.20271"' in card
    assert "Fokoué, Theorem 3.1" in shown
    assert '<a class="reference internal" href="#demo-base">' in card
    assert re.search(r"Theorem 3\.1 \(arXiv:2605\.20271\); tried in Theorem 1\.\d", shown)


def test_a_card_of_our_own_claim_says_so(project):
    shown = text_of(project.build()["chapters/demo/one"])
    assert "What we claim Hence so." in shown and "this book; tried in" in shown


def test_a_card_tells_what_the_claim_rests_on_and_what_of_it_failed(project):
    shown = text_of(project.build()["chapters/demo/one"])
    assert re.search(
        r"Rests on A false one \(Theorem 1\.\d\) ✗ refuted This is refuted as stated", shown
    )
    assert "what is used is the theorem in its place." in shown


def test_an_unknown_claim_is_named(project):
    project.write("results.md", "# Results\n\n```{as-stated} demo.nobody\n```\n")
    project.build(warnings=r"results\.md:3: .*no claim 'demo\.nobody'")


# ---------------------------------------------------------------------------- dashboard


def test_without_a_ledger_the_dashboard_shows_declared_verdicts_and_says_so(project):
    html = project.build()["results"]
    assert "Nothing was run" in html
    assert "Controls rejected" not in html
    assert [text_of(row).split()[-1] for row in rows(html)] == [
        "amended",
        "refuted",
        "holds",
        "open",
    ]


def test_a_row_leads_to_its_theorem(project):
    row = rows(project.build()["results"])[0]
    links = re.findall(r'href="([^"]*)"', row)
    assert links == ["chapters/demo/one.html#demo-base"] * 2
    assert re.search(r"A base with \\\(x\^2\\\) Theorem \d", text_of(row))


def test_a_claim_whose_page_is_not_built_is_shown_without_a_link(project):
    row = rows(project.build()["results"])[3]
    assert "On a page left out" in row and "href" not in row
    assert "Theorem" not in row and "demo-far" not in text_of(row)


def test_rows_can_be_told_apart_by_chapter_and_verdict(project):
    found = rows(project.build()["results"])
    assert all("rederive-in-demo" in row for row in found)
    assert [re.search(r"rederive-is-(\w+)", row)[1] for row in found] == [
        "amended",
        "refuted",
        "holds",
        "open",
    ]


def test_with_a_ledger_the_dashboard_counts_checks_and_controls(project):
    project.settle()
    html = project.build()["results"]
    assert "Nothing was run" not in html
    shown = [text_of(row) for row in rows(html)]
    assert shown[0].endswith("≈ amended 2 2 of 2, nearest 65 bounds off")
    assert shown[1].endswith("✗ refuted 2 2 of 2, nearest 65 standard errors off")


def test_an_untried_claim_gives_its_reason_and_a_changed_verdict_the_declared_one(project):
    project.settle(
        base={"verdict": None, "untried": "a package is missing", "checks": []},
        false={"verdict": "holds"},
    )
    shown = [text_of(row) for row in rows(project.build()["results"])]
    assert "– untried a package is missing; declared amended 0 –" in shown[0]
    assert "✓ holds declared refuted" in shown[1]


def test_one_chapter_can_be_shown_alone(project):
    other = {**CLAIMS[3], "id": "annex.thing", "title": "In the annex"}
    project.write("chapters/annex/claims.yml", yaml.safe_dump([other]))
    project.write("results.md", "# Results\n\n```{claims-table} demo\n```\n")
    html = project.build()["results"]
    assert len(rows(html)) == 4 and "In the annex" not in html
    assert "rederive-cell-chapter" not in html


def test_an_unknown_chapter_is_named(project):
    project.write("results.md", "# Results\n\n```{claims-table} nowhere\n```\n")
    project.build(warnings=r"results\.md:3: .*no claims in chapter 'nowhere', there are: demo")


def test_the_script_finds_what_it_filters(project):
    html = project.build()
    script = (project.out / "html" / "_static" / "rederive-claims.js").read_text(encoding="utf-8")
    for name in re.findall(r"rederive-(?:claims|all|in-|is-|cell-chapter)", script):
        assert name in html["results"]
    for page in html.values():
        if "rederive" in page:
            assert "rederive-claims.js" in page and "rederive-book.css" in page


# ---------------------------------------------------------------------------- findings


def test_findings_begin_with_what_does_not_hold(project):
    project.settle(far={"checks": []})
    shown = text_of(project.build()["results"]).partition("Refuted as stated (1)")[2]
    order = ["True in an amended form (1)", "Open (1)", "Holds as stated (1)"]
    places = [shown.find(heading) for heading in order]
    assert places == sorted(places) and places[0] > 0
    assert "Reading in which the source is right when all is well" in shown
    assert "What is missing a proof" in shown


def test_a_finding_follows_the_ledger_and_not_the_declaration(project):
    project.settle(top={"verdict": "refuted"})
    shown = text_of(project.build()["results"])
    assert "Refuted as stated (2)" in shown and "Holds as stated" not in shown


def test_a_finding_that_holds_says_what_failed_below_it(project):
    shown = text_of(project.build()["results"])
    holds = shown.partition("Holds as stated (1)")[2]
    assert re.search(r"On shaky ground.*?rests on A false one ✗ refuted", holds)


# ---------------------------------------------------------------------------- status


def test_without_a_ledger_the_status_says_that_nothing_ran(project):
    assert "built without the ledger" in project.build()["results"]


def test_the_status_shows_the_run(project):
    project.settle()
    shown = text_of(project.build()["results"])
    assert "Commit c0ffee000000, with changes that are not committed" in shown
    assert "Profile quick" in shown and "Seed 2026" in shown and "numpy 2.0.0" in shown
    assert "Time of the run 1 min 15 s" in shown


def executed(project):
    """A page as an executed notebook in the place of its text."""
    text = (project.source / "chapters/demo/one.md").read_text(encoding="utf-8")
    (project.source / "chapters/demo/one.md").unlink()

    def code(source, seconds):
        metadata = {"papermill": {"duration": seconds}}
        return {
            "cell_type": "code",
            "execution_count": 1,
            "id": source[:1],
            "metadata": metadata,
            "outputs": [],
            "source": source,
        }

    cells = [
        {"cell_type": "markdown", "id": "text", "metadata": {}, "source": text},
        code("quick()", 0.25),
        code("slow(\n    more)", 3.5),
    ]
    notebook = {
        "cells": cells,
        "metadata": {
            "papermill": {"duration": 5.0},
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return project.write("chapters/demo/one.ipynb", json.dumps(notebook))


def test_the_times_of_a_page_come_from_its_executed_notebook(project):
    path = executed(project)
    (page,) = site_status.page_times({"one": path, "index": project.source / "index.md"})
    assert (page.docname, page.seconds) == ("one", 5.0)
    assert page.cells == (("quick()", 0.25), ("slow(", 3.5))


def test_the_status_shows_pages_and_slowest_cells(project):
    project.settle()
    executed(project)
    html = project.build(
        extensions=["myst_nb", "sphinx_proof", "rederive_book.sphinx_ext"],
        source_suffix={".md": "myst-nb", ".ipynb": "myst-nb"},
        nb_execution_mode="off",
    )["results"]
    shown = text_of(html)
    assert "Page Time Checks Theorems 5.0 s 8" in shown
    cells = shown.partition("Slowest cells")[2]
    assert cells.find("3.5 s Theorems slow(") < cells.find("0.2 s Theorems quick()")


# ---------------------------------------------------------------------------- to the code


def tried(project, name="demo.base"):
    """A page as an executed notebook whose cells try a claim, draw a figure and use the library."""
    text = (project.source / "chapters/demo/one.md").read_text(encoding="utf-8")
    (project.source / "chapters/demo/one.md").unlink()
    picture = {
        "output_type": "display_data",
        "data": {"image/png": PIXEL, "text/plain": "figure"},
        "metadata": {"rederive_figure": {"name": "demo", "csv": "x\n1\n"}},
    }
    line = {
        "output_type": "display_data",
        "data": {"text/html": '<div class="rederive-check" id="check-demo">It holds.</div>'},
        "metadata": {"rederive_check": {"anchor": "check-demo"}},
    }
    cells = [
        ("\nfrom rederive import sphere\nfrom rederive_book import checks", ["hide-input"], []),
        ("points = sphere.uniform(3)", [], []),
        (f'checks.bound("{name}", "a name", values=points)', [], [line]),
        ("figures.show(points)", ["hide-input"], [picture]),
    ]
    made = [{"cell_type": "markdown", "id": "text", "metadata": {}, "source": text}]
    for number, (source, tags, outputs) in enumerate(cells):
        made.append(
            {
                "cell_type": "code",
                "execution_count": 1,
                "id": f"cell{number}",
                "metadata": {"tags": tags},
                "outputs": outputs,
                "source": source,
            }
        )
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {
        "cells": made,
        "metadata": {
            "kernelspec": kernel,
            "language_info": {"name": "python", "pygments_lexer": "ipython3"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return project.write("chapters/demo/one.ipynb", json.dumps(notebook))


def build_tried(project, *more):
    """Build the project with notebooks and the reference."""
    return project.build(
        extensions=["myst_nb", "sphinx_proof", "rederive_book.sphinx_ext", *more],
        source_suffix={".md": "myst-nb", ".ipynb": "myst-nb"},
        nb_execution_mode="off",
    )


def test_a_claim_leads_to_its_checks_and_names_the_library_behind_them(project):
    tried(project)
    project.settle()
    html = build_tried(project)["results"]
    row = rows(html)[0]
    assert (
        re.findall(r'href="([^"]*#check-demo)"', row) == ["chapters/demo/one.html#check-demo"] * 2
    )
    folded = row.partition('<details class="rederive-library">')[2].partition("</details>")[0]
    assert text_of(folded) == "1 function of the library sphere.uniform"
    assert "href" not in folded  # this project has no reference of the library
    assert "rederive-library" not in rows(html)[1]


def test_without_the_lines_of_the_checks_their_number_stands_alone(project):
    project.settle()
    row = rows(project.build()["results"])[0]
    assert "check-demo" not in row and "rederive-library" not in row


def test_the_library_is_linked_with_its_reference_and_each_entry_names_its_pages(project):
    tried(project)
    project.settle()
    reference = "# Library\n\n```{eval-rst}\n.. automodule:: rederive.sphere\n   :members:\n```\n"
    project.write("api.md", reference)
    project.write("index.md", PAGES["index"].replace("results", "results\napi"))
    html = build_tried(project, "sphinx.ext.autodoc", "numpydoc", "rederive_book.docstrings")
    assert 'href="api.html#rederive.sphere.uniform"' in rows(html["results"])[0]
    entry = html["api"].partition('id="rederive.sphere.uniform"')[2].partition("</dd></dl>")[0]
    assert "Used on: Theorems" in text_of(entry)
    assert 'href="chapters/demo/one.html"' in entry
    assert len(re.findall("Used on", html["api"])) == 1


def test_a_figure_leads_to_the_code_that_drew_it_inside_its_fold(project):
    tried(project)
    project.settle()
    html = build_tried(project)["chapters/demo/one"]
    behind = re.search(r'<div class="rederive-download">.*?</div>', html, re.DOTALL)[0]
    assert text_of(behind) == "data (CSV) · code"
    assert '<a class="rederive-to-code" href="#code-demo">' in behind
    fold = re.search(
        r'<details class="[^"]*hide[^>]*>(?:(?!</details>).)*id="code-demo"', html, re.DOTALL
    )
    assert fold and "show" in html[fold.start() :].partition("</details>")[0]


def test_code_is_linked_with_the_reference(project):
    tried(project)
    project.settle()
    reference = "# Library\n\n```{eval-rst}\n.. automodule:: rederive.sphere\n   :members:\n```\n"
    project.write("api.md", reference)
    project.write("index.md", PAGES["index"].replace("results", "results\napi"))
    html = build_tried(project, "sphinx.ext.autodoc", "numpydoc", "rederive_book.docstrings")
    links = re.findall(
        r'<a class="rederive-to-library" href="([^"]*)" title="([^"]*)">(.*?)</a>',
        html["chapters/demo/one"],
    )
    assert [(address, title, text_of(text)) for address, title, text in links] == [
        ("../../api.html#module-rederive.sphere", "rederive.sphere", "sphere"),
        ("../../api.html#rederive.sphere.uniform", "rederive.sphere.uniform", "sphere.uniform"),
    ]


def test_a_name_is_linked_whole_and_only_where_it_is_meant():
    def spans(*parts):
        return '<span class="o">.</span>'.join(f'<span class="n">{part}</span>' for part in parts)

    equals = '<span class="o">=</span>'
    code = " ".join(
        [spans("flows", "energy"), spans("x", "flows"), spans("flows") + equals, spans("flowsy")]
    )
    block = f'<div class="highlight-ipython3 notranslate"><pre>{code}</pre></div>'
    names = {"flows": "api.html#a", "flows.energy": "api.html#b"}
    made = site_links.linked(block + spans("flows"), names, names)
    assert re.findall(r'href="([^"]*)"', made) == ["api.html#b"]
    assert re.sub(r"</?a\b[^>]*>", "", made) == block + spans("flows")
    assert site_links.linked(block, {}, {}) == block


def test_what_has_no_entry_leads_to_what_is_around_it():
    known = {"rederive.flows", "rederive.flows.Flow"}
    assert site_links.documented("rederive.flows.Flow.step.more", known) == "rederive.flows.Flow"
    assert site_links.documented("rederive.flows.other", known) == "rederive.flows"
    assert site_links.documented("rederive.hidden.other", known) is None


def test_a_card_leads_to_the_row_of_its_claim(project):
    html = project.build()
    assert 'href="../../results.html#claim-demo-base"' in html["chapters/demo/one"]
    assert html["results"].count('id="claim-demo-base"') == 1


def test_a_card_does_not_point_to_a_dashboard_that_is_nowhere(project):
    project.write("results.md", "# Results\n\n```{claims-table} demo\n```\n")
    assert "in the ledger" not in project.build()["chapters/demo/one"]


# ---------------------------------------------------------------------------- statements


def carried(html):
    """The statements that a page carries, by label."""
    inside = html.partition('<template id="rederive-statements">')[2].partition("</template>")[0]
    return dict(re.findall(r'<div data-for="([^"]*)">(.*?)</div>(?=<div data-for|$)', inside, re.S))


def test_a_page_carries_the_statements_it_refers_to(project):
    theorem = (
        "# Theorems\n\n```{prf:theorem} A title with $z$\n:label: demo-base\n\n"
        "Let $x$ be as in {prf:ref}`demo-false`, [there](https://example.org).\n\n"
        "$$\nx < 1\n$$ (bound)\n```\n\n"
        "```{prf:lemma} Another\n:label: demo-false\n\nMore.\n```\n"
    )
    project.write("chapters/demo/one.md", theorem)
    project.write("results.md", "# Results\n\nSee {prf:ref}`demo-base`, {prf:ref}`demo-base`.\n")
    html = project.build()
    statements = carried(html["results"])
    assert list(statements) == ["demo-base"]
    (text,) = statements.values()
    assert re.match(r"Theorem 1\.\d A title with \\\(z\\\) Let", text_of(text))
    assert re.search(r"as in Lemma 1\.\d, there\. \\\[ ?x < 1", text_of(text).replace("&lt;", "<"))
    assert not re.search(r"<a\b|\sid=|eqno|¶", text)


def test_a_page_does_not_carry_its_own_statements(project):
    assert "rederive-statements" not in project.build()["chapters/demo/one"]


def test_a_page_without_formulas_loads_mathjax_for_those_it_carries(project):
    mathjax = ["myst_parser", "sphinx_proof", "sphinx.ext.mathjax", "rederive_book.sphinx_ext"]
    formula = "```{prf:theorem} T\n:label: demo-base\n\n$x^2$\n```\n"
    project.write("chapters/demo/one.md", f"# Theorems\n\n{formula}")
    project.write("results.md", "# Results\n\nSee {prf:ref}`demo-base`.\n")
    project.write("plain.md", "# Plain\n")
    project.write("index.md", PAGES["index"].replace("results", "results\nplain"))
    html = project.build(extensions=mathjax, mathjax_path="mathjax.js")
    assert "mathjax.js" in html["results"] and "mathjax.js" not in html["plain"]


def test_what_is_carried_may_stand_twice_on_a_page():
    text = (
        '<p id="a" class="b">x<a class="headerlink" href="#a" title="t">¶</a> <a href="y">z</a></p>'
    )
    assert site_statements.bare(text) == '<p class="b">x <span>z</span></p>'


# ---------------------------------------------------------------------------- the build


def test_a_page_is_read_again_when_a_claim_changes(project):
    project.build()
    project.state([{**CLAIMS[0], "statement": "Stated anew."}, *CLAIMS[1:]])
    html = project.build()
    assert "Stated anew." in html["chapters/demo/one"] and "Stated anew." in html["results"]


def test_a_page_is_read_again_when_the_ledger_appears(project):
    assert "Nothing was run" in project.build()["results"]
    project.settle()
    assert "Nothing was run" not in project.build()["results"]


def test_a_wrong_claim_stops_the_build_with_file_and_field(project):
    project.state([{**CLAIMS[0], "verdict": "perhaps"}])
    with pytest.raises(ExtensionError, match=r"demo/claims\.yml: claim demo\.base: .*'verdict'"):
        project.build()


def test_a_broken_ledger_stops_the_build(project):
    project.write("claims.json", '{"schema": 1}')
    with pytest.raises(ExtensionError, match="ledger: top level"):
        project.build()


def test_the_chapters_can_lie_elsewhere(project):
    (project.source / "chapters").rename(project.source / "parts")
    project.write("index.md", PAGES["index"].replace("chapters/", "parts/"))
    html = project.build(rederive_chapters="parts")
    assert len(rows(html["results"])) == 4


def test_the_static_files_ask_nothing_of_other_hosts():
    static = Path(site_status.__file__).parent / "static"
    for path in filter(Path.is_file, static.iterdir()):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"https?:|url\(|@import|fetch\(|import\(", text)
