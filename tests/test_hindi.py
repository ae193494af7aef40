"""The Hindi pages: none is stale, none lost a part of its English page, their language shows."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import pytest
from docutils import nodes

from rederive_book import claim_fields, claims, comparison, site_nodes, translations

ROOT = Path(__file__).resolve().parents[1]
PAGES = translations.read(ROOT)
BOOK = ROOT / "lib" / "rederive_book"


def named(pages=PAGES):
    return [pytest.param(page, id=page.page) for page in pages]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_openings_of_the_three_papers_and_the_findings_are_there():
    assert {page.page: page.follows for page in PAGES if page.language == "hi"} == {
        "chapters/hi/regression.md": "chapters/regression/index.md",
        "chapters/hi/pooling.md": "chapters/pooling/index.md",
        "chapters/hi/flow.md": "chapters/flow/index.md",
        "chapters/hi/findings.md": "chapters/findings.md",
    }


def test_no_translation_is_stale():
    found = translations.stale(ROOT)
    assert found == [], "\n".join(found)


# What can be compared without knowing the language


def formulas(page: str) -> list[str]:
    """Every formula of a page, without white space, sorted: languages order words differently."""
    found = re.findall(r"\$\$(.+?)\$\$|\$(.+?)\$", text(page), re.S)
    return sorted(re.sub(r"\s", "", shown or inline) for shown, inline in found)


def roles(page: str, role: str) -> list[str]:
    """The targets of a role, in order."""
    return re.findall(rf"\{{{role}\}}`(?:[^`<]*<)?([^`>]+)>?`", text(page))


def documents(page: str) -> list[str]:
    """The pages that a page leads to, from the root of the book."""
    folder = Path("/") / Path(page).parent
    return [
        name if name.startswith("/") else (folder / name).as_posix() for name in roles(page, "doc")
    ]


@pytest.mark.parametrize("page", named())
def test_formulas_are_those_of_the_english_page(page):
    mine, its = formulas(page.page), formulas(page.follows)
    assert mine == its


@pytest.mark.parametrize("page", named())
def test_theorems_and_papers_are_referred_to_as_on_the_english_page(page):
    for role in ("prf:ref", "cite"):
        assert sorted(roles(page.page, role)) == sorted(roles(page.follows, role))


@pytest.mark.parametrize("page", named())
def test_pages_are_linked_as_on_the_english_page_which_is_linked_too(page):
    english = "/" + page.follows.removesuffix(".md")
    absolute = [english, *documents(page.follows)]
    assert sorted(set(documents(page.page))) == sorted(set(absolute))


@pytest.mark.parametrize("page", named())
def test_tables_directives_and_headings_are_those_of_the_english_page(page):
    for pattern in (r"^\|", r"^```\{(claims-table|findings)\}.*$", r"^#+ ", r"^```\{rubric\}"):
        mine, its = (re.findall(pattern, text(name), re.M) for name in (page.page, page.follows))
        assert mine == its, pattern


@pytest.mark.parametrize("page", named())
def test_every_verdict_is_named_in_both_languages(page):
    for verdict in claim_fields.VERDICTS:
        word = translations.WORDS["hi"][comparison.verdict_words(verdict)].split()[1]
        assert f"**{word}** ({verdict})" in re.sub(r"\s+", " ", text(page.page))


# A page that is stale


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(ROOT / "chapters", tmp_path / "chapters")
    translations.stamp(tmp_path)
    return tmp_path


def test_a_change_of_the_english_page_is_told_with_both_names_and_the_new_hash(copy):
    assert translations.stale(copy) == []
    path = copy / "chapters" / "flow" / "index.md"
    path.write_bytes(path.read_bytes() + b"\nA new sentence.\n")
    (line,) = translations.stale(copy)
    assert line.startswith("chapters/hi/flow.md is stale: chapters/flow/index.md has changed")
    assert translations.digest(path) in line
    assert line.endswith("python -m rederive_book.translations --stamp chapters/hi/flow.md")


def test_stamping_writes_both_hashes_and_nothing_else(copy, monkeypatch, capsys):
    english, hindi = copy / "chapters/flow/index.md", copy / "chapters/hi/flow.md"
    before, old = hindi.read_bytes(), translations.digest(english)
    english.write_bytes(english.read_bytes() + b"\n")
    new = translations.digest(english)
    monkeypatch.chdir(copy)
    assert translations.main([]) == 1
    assert translations.main(["--stamp", "chapters/hi/flow.md"]) == 0
    assert hindi.read_bytes() == before.replace(old.encode(), new.encode())
    assert hindi.read_bytes().count(new.encode()) == 2
    assert translations.main([]) == 0
    assert translations.main(["--stamp", "chapters/hi/other.md"]) == 2
    assert "chapters/hi/other.md" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lang: hi", "lang: xx", "lang: expected one of hi, got 'xx'"),
        ("follows: chapters/flow/index.md", "follows: chapters/none.md", "'chapters/none.md'"),
        ('sha256: "', 'sha256: "0', "sha256: expected 64 hexadecimal digits"),
    ],
)
def test_a_translation_that_does_not_say_what_it_must_is_refused(copy, old, new, message):
    path = copy / "chapters" / "hi" / "flow.md"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)):
        translations.read(copy)


def test_a_last_line_that_names_another_hash_is_refused(copy):
    path = copy / "chapters" / "hi" / "flow.md"
    changed = re.sub(r"`[0-9a-f]{64}`", f"`{'0' * 64}`", path.read_text(encoding="utf-8"))
    path.write_text(changed, encoding="utf-8")
    with pytest.raises(ValueError, match="again in the last line"):
        translations.read(copy)


# The words that the book generates


def test_every_word_that_is_translated_is_still_generated():
    generated = {comparison.verdict_words(verdict) for verdict in (*claim_fields.VERDICTS, None)}
    generated |= {site_nodes.chapter_name(name) for name in claims.load(ROOT / "chapters").folders}
    for module in ("site_pages", "site_nodes"):
        tree = ast.parse((BOOK / f"{module}.py").read_text(encoding="utf-8"))
        generated |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "chapters").rglob("*.md"))
    generated |= {name.capitalize() for name in re.findall(r"\{prf:([a-z]+)\}", pages)}
    for language, words in translations.WORDS.items():
        assert set(words) <= generated, language


@pytest.mark.parametrize(
    ("english", "hindi"),
    [
        ("✓ holds", "✓ सही (holds)"),
        ("Theorem 1.12", "प्रमेय 1.12"),
        ("Open (3)", "अनिर्णीत (open) (3)"),
        ("holds", None),
        ("Theorem 3.1 of the paper", None),
    ],
)
def test_words_are_translated_with_what_stands_around_them(english, hindi):
    assert translations.translate(english, "hi") == hindi


def test_typographic_quotes_are_no_hindrance():
    english = next(words for words in translations.WORDS["hi"] if "'" in words)
    assert translations.translate(english.replace("'", "’"), "hi") is not None


class _App:
    """As much of Sphinx as the hooks ask for: front matter, and addresses."""

    def __init__(self, **header: str) -> None:
        self.env = self.builder = self
        self.metadata = {"page": header, "hi/page": {"lang": "hi", "follows": "other.md"}}

    def get_relative_uri(self, page: str, other: str) -> str:
        return f"{other}.html"


def small_document() -> nodes.document:
    from docutils.utils import new_document

    made = new_document("page")
    section = nodes.section("", nodes.title("", "शीर्षक"), ids=["one"])
    entry = nodes.entry("", nodes.paragraph("", "A claim"), classes=["rederive-cell-claim"])
    section += [entry, nodes.paragraph("", "", nodes.inline("", "≈ amended"))]
    made += section
    return made


def test_a_translated_page_carries_its_language_and_english_parts_theirs():
    document = small_document()
    translations.mark_language(_App(lang="hi"), document, "page")
    (section,) = document.children
    assert section["classes"] == ["language-hi"]
    assert section.children[1]["classes"] == ["rederive-cell-claim", "language-en"]
    badge = next(iter(document.findall(nodes.inline)))
    assert (badge.astext(), badge["classes"]) == ("≈ संशोधित (amended)", ["language-hi"])


def test_an_english_page_without_a_translation_is_left_alone():
    document = small_document()
    before = document.pformat()
    translations.mark_language(_App(), document, "page")
    translations.link_translations(_App(), document, "page")
    assert document.pformat() == before


def test_a_page_leads_to_its_translation_below_its_title():
    document = small_document()
    translations.link_translations(_App(), document, "other")
    line = document.children[0].children[1]
    assert line.children[0]["refuri"] == "hi/page.html"
    assert "language-hi" in line["classes"]
