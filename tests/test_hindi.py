"""The Hindi pages: none is stale, none lost a part of its English page, their language shows."""

from __future__ import annotations

import ast
import html
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import browser
import pytest
import yaml
from docutils import nodes
from test_sphinx_ext import CLAIMS, Project, build_tried, tried
from test_sphinx_ext import PAGES as PAGES_OF_PROJECT

from rederive_book import (
    claim_fields,
    claims,
    comparison,
    site_nodes,
    site_translations,
    translations,
)

chromium = browser.chromium

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
    for module in ("site_pages", "site_nodes", "site_map"):
        tree = ast.parse((BOOK / f"{module}.py").read_text(encoding="utf-8"))
        constants = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
        generated |= {text.strip() for text in constants if isinstance(text, str)}
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "chapters").rglob("*.md"))
    generated |= {name.capitalize() for name in re.findall(r"\{prf:([a-z]+)\}", pages)}
    for language, words in translations.WORDS.items():
        plain = {text for text in words if "{" not in text and text not in IN_PIECES}
        assert plain <= generated, language


#: Generated in pieces, so that `test_nothing_generated_is_left_in_english` is what finds them.
IN_PIECES = {"The same as a list"}


#: What stays English in the generated parts of a Hindi page, besides titles, sources and code:
#: terms in brackets behind their translation. The small book's chapters have no Hindi names.
STAYS = re.compile(r"\([a-z ,]+\)|\b(?:Demo|Other)\b")
HINDI_PAGE = """---
lang: hi
follows: results.md
sha256: "{0}"
---

# शीर्षक

```{{claims-table}} demo
```

```{{findings}} demo
```

```{{claims-map}} demo
```

```{{claims-map}} other
```

{0}
"""


class _Said(HTMLParser):
    """Texts and labels of a page outside what is marked as English, formulas and code."""

    VOID = frozenset("meta link br img hr input rect path circle".split())

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside: list[tuple[str, bool]] = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        hindi = self.inside[-1][1] if self.inside else False
        if "lang" in given:
            hindi = given["lang"] == "hi"
        if tag in ("code", "script", "style") or "math" in (given.get("class") or "").split():
            hindi = False
        if hindi:
            self.found += [given[name] for name in ("aria-label",) if given.get(name)]
        if tag not in self.VOID:
            self.inside.append((tag, hindi))

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if self.inside and self.inside[-1][1] and data.strip():
            self.found.append(data.strip())


@pytest.fixture(scope="module")
def hindi_site(tmp_path_factory):
    """A small book with every verdict, checks of both units, the library, and a Hindi page."""
    project = Project(tmp_path_factory.mktemp("hindi"))
    tried(project)
    more = [
        {**CLAIMS[2], "id": f"other.{name}", "title": f"Other {name}", "uses": ["demo.false"]}
        for name in ("one", "two")
    ]
    project.write("chapters/other/claims.yml", yaml.safe_dump(more, allow_unicode=True))
    project.write("hindi.md", HINDI_PAGE.format("0" * 64))
    project.write("index.md", PAGES_OF_PROJECT["index"].replace("results", "results\nhindi"))
    project.settle(far={"checks": []})
    return build_tried(project, "rederive_book.translations")


def test_nothing_generated_is_left_in_english(hindi_site):
    found = _Said(hindi_site["hindi"]).found
    left = [text for text in found if re.search(r"[A-Za-z]{2}", STAYS.sub("", text))]
    assert [text for text in left if text != "¶"] == []
    whole = " ".join(found)
    for words in ("2 में से 2, सबसे पास वाली", "मानक त्रुटि दूर", "यही सूची के रूप में", "लाइब्रेरी का 1 फलन"):
        assert words in whole


def test_the_script_of_the_tables_says_what_the_page_hands_over(hindi_site):
    handed = re.search(r'class="rederive-words" data-words="([^"]*)"', hindi_site["hindi"])
    assert json.loads(html.unescape(handed[1])) == translations.SCRIPT_WORDS["hi"]
    assert "rederive-words" not in hindi_site["results"]
    script = (BOOK / "static" / "rederive-claims.js").read_text(encoding="utf-8")
    for words in translations.SCRIPT_WORDS.values():
        assert all(f'"{word}"' in script for word in words)
        said = set(re.findall(r'\bsay\("([^"]+)"', script))
        said |= set(re.findall(r'\bselect\(\s*"([^"]+)"', script))
        said |= set(claim_fields.VERDICTS) | {"untried"}
        assert said == set(words)


def test_the_filters_of_a_translated_table_speak_its_language(chromium, hindi_site, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        re.sub(r"<script[^>]*src=.*?</script>|<link[^>]*>", "", hindi_site["hindi"]),
        encoding="utf-8",
    )
    with browser.visit(chromium, page) as shown:
        shown.add_script_tag(path=str(BOOK / "static" / "rederive-claims.js"))
        bar = shown.locator(".rederive-filters")
        assert bar.get_attribute("aria-label") == "दावे छाँटें"
        text = bar.inner_text()
        assert "4 में से 4 दावे" in text and "सभी" in text
        assert not re.search("[A-Za-z]", text), text


@pytest.mark.parametrize(
    ("english", "hindi"),
    [
        ("✓ holds", "✓ सही (holds)"),
        ("Theorem 1.12", "प्रमेय 1.12"),
        ("Open (3)", "अनिर्णीत (open) (3)"),
        (" rests on", " इन पर टिका है:"),
        ("2 of 3, nearest 3.1·10⁻⁸ bounds off", "3 में से 2, सबसे पास वाली 3.1·10⁻⁸ सीमा दूर"),
        ("Map of the claims of Pooling", "दावों का मानचित्र: पूलिंग (pooling)"),
        ("holds", None),
        ("Theorem 3.1 of the paper", None),
    ],
)
def test_words_are_translated_with_what_stands_around_them(english, hindi):
    assert site_translations.translate(english, "hi") == hindi


def test_typographic_quotes_are_no_hindrance():
    english = next(words for words in translations.WORDS["hi"] if "'" in words)
    assert site_translations.translate(english.replace("'", "’"), "hi") is not None


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
    site_translations.mark_language(_App(lang="hi"), document, "page")
    (section,) = document.children
    assert section["classes"] == ["language-hi"]
    assert section.children[1]["classes"] == ["rederive-cell-claim", "language-en"]
    badge = next(iter(document.findall(nodes.inline)))
    assert (badge.astext(), badge["classes"]) == ("≈ संशोधित (amended)", ["language-hi"])


def test_an_english_page_without_a_translation_is_left_alone():
    document = small_document()
    before = document.pformat()
    site_translations.mark_language(_App(), document, "page")
    site_translations.link_translations(_App(), document, "page")
    assert document.pformat() == before


def test_a_page_leads_to_its_translation_below_its_title():
    document = small_document()
    site_translations.link_translations(_App(), document, "other")
    line = document.children[0].children[1]
    assert line.children[0]["refuri"] == "hi/page.html"
    assert "language-hi" in line["classes"]
