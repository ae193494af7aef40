"""Laws of the book as one file: every page, one outline, links that lead to their places."""

import browser
import pytest
import yaml
from pypdf import PdfReader

from rederive_book import chromium, pdf, pdf_pages

installed = browser.chromium

TOC = {
    "root": "chapters/index",
    "parts": [
        {
            "caption": "Chapters",
            "chapters": [
                {
                    "file": "chapters/a/index",
                    "sections": [{"file": f"chapters/a/{name}"} for name in "bc"],
                }
            ],
        }
    ],
}
PAGES = {
    "index": '<h1>Book</h1><p><a href="a/b.html#law">the law</a> <a href="a/index.html">A</a>'
    ' <a href="https://example.org/">outside</a> <a href="../claims.json">file</a></p>',
    "a/index": '<h1>Chapter A<a class="headerlink" href="#top">#</a></h1><button>Play</button>',
    "a/b": '<h1>Page B</h1><h2 id="law">Law</h2><p>A line.</p>'
    '<details><summary>Solution</summary>because</details><a href="#law">up</a>'
    '<a href="../index.html">home</a><div class="cell"><div class="cell_input">code</div></div>',
}


LONG = " ".join(["A long heading that is broken into several lines"] * 3)
PAGES["a/c"] = f"<h1>{LONG}</h1>"


@pytest.fixture
def book(tmp_path):
    """A built site of four pages."""
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(TOC), encoding="utf-8")
    (tmp_path / "_config.yml").write_text("title: Book\n", encoding="utf-8")
    for name, text in PAGES.items():
        file = tmp_path / "_build" / "html" / "chapters" / f"{name}.html"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f"<html><head><title>{name} — Book</title></head><body>"
            f'<article class="bd-article"><section>{text}</section></article></body></html>',
            encoding="utf-8",
        )
    return tmp_path


def test_pages_come_in_the_order_of_the_contents_and_sections_lie_deeper():
    found = pdf_pages.entries(TOC)
    assert [(e.file, e.depth, e.part) for e in found] == [
        ("chapters/index.html", 0, None),
        ("chapters/a/index.html", 0, "Chapters"),
        ("chapters/a/b.html", 1, None),
        ("chapters/a/c.html", 1, None),
    ]


def test_names_are_those_of_the_page_and_links_lead_to_them(book):
    made = pdf_pages.documents(book, book / "_build" / "pdf")
    assert list(made) == ["contents", "index", "a-index", "a-b", "a-c"]
    for page, name in (("index", "a-b--law"), ("index", "a-index"), ("a-b", "index")):
        assert f'href="{pdf_pages.ELSEWHERE}{name}"' in made[page]
    assert 'id="a-b--law"' in made["a-b"] and 'href="#a-b--law"' in made["a-b"]
    assert 'href="https://example.org/"' in made["index"]


def test_patterns_and_arrowheads_of_a_picture_keep_their_names(book):
    file = book / "_build" / "html" / "chapters" / "a" / "b.html"
    picture = (
        '<svg viewBox="0 0 9 9"><pattern id="holds"></pattern><marker id="head"></marker>'
        '<path fill="url(#holds)" marker-end="url(#head)" d="M0 0"></path></svg>'
    )
    text = file.read_text(encoding="utf-8").replace("<p>A line.</p>", picture)
    file.write_text(text, encoding="utf-8")
    made = pdf_pages.documents(book, book / "_build" / "pdf")["a-b"]
    for name in ("holds", "head"):
        assert f'id="a-b--{name}"' in made and f'"url(#a-b--{name})"' in made


def test_what_cannot_be_used_on_paper_is_left_out(book):
    made = pdf_pages.documents(book, book / "_build" / "pdf")
    assert "claims.json" not in made["index"]
    assert "<button" not in made["a-index"] and "headerlink" not in made["a-index"]
    assert "cell_input" not in made["a-b"]


def test_solutions_are_unfolded_and_headings_of_sections_lie_deeper(book):
    made = pdf_pages.documents(book, book / "_build" / "pdf")
    assert '<details open="">' in made["a-b"]
    assert "<h2>Page B" in made["a-b"] and '<h3 id="a-b--law"' in made["a-b"]


def test_site_that_is_not_built_is_named(book):
    (book / "_build/html/chapters/a/b.html").unlink()
    with pytest.raises(ValueError, match=r"pdf: expected chapters/a/b\.html in _build/html"):
        pdf_pages.documents(book, book)


def test_missing_chromium_is_one_line(book, monkeypatch, capsys):
    monkeypatch.setattr(chromium, "missing", lambda: "found no Chromium")
    monkeypatch.chdir(book)
    monkeypatch.setattr("sys.argv", ["pdf"])
    assert pdf.main() == 2
    assert capsys.readouterr().err == "error: pdf: found no Chromium\n"


def test_book_is_one_file_with_outline_and_links_between_pages(book, installed):
    # The fixture tells where there is no browser; a second one may not run beside it.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chromium, "browser", lambda: _Lent(installed))
        reader = PdfReader(pdf.write(book))
    assert len(reader.pages) == 5
    titles = _titles(reader.outline)
    assert titles == ["Book", "Chapter A", ["Page B", ["Law"], LONG]]
    places = [
        link.get_object()["/Dest"][0].get_object()
        for link in reader.pages[1]["/Annots"]
        if "/Dest" in link.get_object()
    ]
    assert [reader.get_page_number(place) for place in places[:2]] == [3, 2]
    assert "A line." in reader.pages[3].extract_text()
    assert sorted(path.name for path in (book / "_build").iterdir()) == [pdf.NAME, "html"]


def test_link_that_leads_nowhere_is_named(book, installed):
    page = book / "_build/html/chapters/index.html"
    page.write_text(page.read_text(encoding="utf-8").replace("#law", "#gone"), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chromium, "browser", lambda: _Lent(installed))
        with pytest.raises(ValueError, match="pdf: 1 links lead nowhere, the first is a-b--gone"):
            pdf.write(book)


class _Lent:
    """A browser that is running already, as a context."""

    def __init__(self, running):
        self.running = running

    def __enter__(self):
        return self.running

    def __exit__(self, *error):
        return None


def _titles(items):
    return [_titles(item) if isinstance(item, list) else item.title for item in items]
