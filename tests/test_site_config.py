"""The site's configuration, its table of contents, and what a built site must keep."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jupyter_book.config
import pybtex.database
import pytest
import yaml
from sphinx.errors import ExtensionError

from rederive_book import docstrings, mathjax, repository, site_audit

ROOT = Path(__file__).parents[1]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
PAGES = sorted((ROOT / "chapters").rglob("*.md"))


def files(node) -> list[str]:
    """All pages below a node of the table of contents, in order."""
    if isinstance(node, list):
        return [name for part in node for name in files(part)]
    if isinstance(node, dict):
        own = [node[key] for key in ("root", "file") if key in node]
        return own + [name for value in node.values() for name in files(value)]
    return []


# The table of contents


def test_table_of_contents_names_every_page_once_and_no_other():
    named = files(TOC)
    assert len(named) == len(set(named))
    assert {f"{name}.md" for name in named} == {p.relative_to(ROOT).as_posix() for p in PAGES}


def test_only_chapters_are_numbered_and_front_and_back_matter_stand_apart():
    for part in TOC["parts"]:
        pages = [Path(name).parent.as_posix() for name in files(part["chapters"])]
        if part.get("numbered"):
            assert part["numbered"] == 2  # Theorem 1.3, not Theorem 1.2.3
            assert "chapters" not in pages
        else:
            assert set(pages) <= {"chapters", "chapters/hi"}


# The configuration


def test_jupyter_book_knows_every_key():
    jupyter_book.config.validate_yaml(CONFIG, raise_on_errors=True)


def test_native_build_executes_every_page_anew():
    # A cache would key on the code of a page and overlook an edited library.
    assert CONFIG["execute"]["execute_notebooks"] == "force"


def test_site_has_one_search_field_and_the_right_year():
    theme = CONFIG["sphinx"]["config"]["html_theme_options"]
    for name in ("navbar_persistent", "navbar_start", "navbar_center", "navbar_end"):
        assert theme[name] == []
    assert CONFIG["copyright"] == "2026"


def test_every_citation_has_an_entry():
    database = pybtex.database.parse_file(str(ROOT / "references.bib"), bib_format="bibtex")
    cited = {
        key.strip()
        for page in PAGES
        for keys in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", page.read_text(encoding="utf-8"))
        for key in keys.split(",")
    }
    assert cited <= set(database.entries)
    for key, entry in database.entries.items():
        assert entry.persons.get("author"), key
        assert {"title", "year"} <= set(entry.fields), key
        assert key.endswith(entry.fields["year"]), key


def test_every_module_of_the_library_is_documented():
    text = (ROOT / "chapters" / "api.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"automodule:: rederive\.(\w+)", text))
    modules = {path.stem for path in (ROOT / "lib" / "rederive").glob("*.py")} - {"__init__"}
    assert documented == modules


# Docstrings


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("at most |x − y| and |z|", r"at most \|x − y\| and \|z\|"),
        (r"already \|x\|", r"already \|x\|"),
        ("``|x|`` and :math:`|x|` stay, |y| not", r"``|x|`` and :math:`|x|` stay, \|y\| not"),
        ("``a\n|b`` |c", "``a\n|b`` \\|c"),
        (
            "See |a|.\n\n.. math::\n\n   |x| = 1\n\n   |y|\n\nThen |b|.",
            "See \\|a\\|.\n\n.. math::\n\n   |x| = 1\n\n   |y|\n\nThen \\|b\\|.",
        ),
        ("Code::\n\n    a | b\n\n|c|", "Code::\n\n    a | b\n\n\\|c\\|"),
        (">>> a | b\n|c|", ">>> a | b\n\\|c\\|"),
    ],
)
def test_bars_are_absolute_values_outside_formulas_and_code(text, escaped):
    assert docstrings.escape_bars(text) == escaped


# MathJax from the site itself


def test_mathjax_is_copied_with_fonts_extensions_and_licence(tmp_path):
    script = mathjax.copy_to(tmp_path)
    assert script == tmp_path / "mathjax" / "tex-mml-chtml.js"
    assert len(list(tmp_path.rglob("*.woff"))) > 20
    assert (tmp_path / "mathjax" / "input" / "tex" / "extensions" / "ams.js").exists()
    assert "Apache License" in (tmp_path / "mathjax" / "LICENSE").read_text(encoding="utf-8")
    assert site_audit.weight(tmp_path) < 4e6


def test_copying_mathjax_twice_changes_nothing(tmp_path):
    mathjax.copy_to(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    mathjax.copy_to(tmp_path)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_missing_mathjax_is_named(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(mathjax.resources, "files", absent)
    with pytest.raises(ExtensionError, match="django-static-mathjax"):
        mathjax.source()


# Auditing a built site


def page(folder: Path, body: str, name: str = "index.html") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<!DOCTYPE html><html>{body}</html>", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "body",
    [
        '<script src="https://x.example/a.js"></script>',
        '<script src="//x.example/a.js"></script>',
        '<link rel="stylesheet" href="https://x.example/a.css">',
        '<link rel="preconnect" href="https://x.example">',
        '<link rel="shortcut icon" href="http://x.example/i.png">',
        '<img src="https://x.example/a.png"/>',
        '<img srcset="local.png 1x, https://x.example/b.png 2x">',
        '<iframe src="https://x.example/"></iframe>',
        '<svg><image xlink:href="https://x.example/a.png"/></svg>',
        '<div style="background: url(https://x.example/a.png)"></div>',
        "<style>@import 'https://x.example/a.css';</style>",
        '<style>@font-face { src: url("//x.example/a.woff2") }</style>',
        '<script>import("https://x.example/a.js")</script>',
        '<script>s.src = "https://x.example/a.js"</script>',
        '<base href="https://x.example/">',
    ],
)
def test_what_loads_from_elsewhere_is_found(tmp_path, body):
    found = site_audit.outside_assets(page(tmp_path, body))
    assert len(found) == 1
    assert found[0].startswith("index.html: ")
    assert "x.example" in found[0]


@pytest.mark.parametrize(
    "body",
    [
        '<a href="https://x.example/paper">a link that a reader may follow</a>',
        '<link rel="canonical" href="https://x.example/">',
        '<link rel="license" href="https://x.example/">',
        '<img src="data:image/png;base64,AAAA"/>',
        '<img src="_images/a.png"/>',
        '<script>const home = "https://x.example/"; // not loaded</script>',
        "<pre>&lt;script src='https://x.example/a.js'&gt;</pre>",
        '<div style="background: url(../a.png)"></div>',
    ],
)
def test_what_loads_nothing_from_elsewhere_is_let_pass(tmp_path, body):
    assert site_audit.outside_assets(page(tmp_path, body)) == []


def test_style_sheets_are_searched_too(tmp_path):
    page(tmp_path, "")
    (tmp_path / "_static").mkdir()
    css = "/* https://x.example/ */ a { background: url( 'https://x.example/b.png' ) }"
    (tmp_path / "_static" / "a.css").write_text(css, encoding="utf-8")
    assert site_audit.outside_assets(tmp_path) == ["_static/a.css: https://x.example/b.png"]


def test_dead_links_are_found_and_living_ones_are_not(tmp_path):
    page(tmp_path, '<a id="here"></a><a href="b.html">', "sub/a.html")
    page(tmp_path, '<a href="a.html#here"></a><a href="../"></a><a href="#top">', "sub/b.html")
    page(
        tmp_path,
        '<a href="sub/a.html#gone"></a><a href="sub/c.html"></a><a href="#gone"></a>'
        '<a href="https://x.example/#gone"></a><a href="mailto:a@x.example"></a>'
        '<a href="data:text/csv,x"></a><a href="sub/a.html?q=1#here"></a>',
    )
    assert site_audit.dead_links(tmp_path) == [
        "index.html: #gone",
        "index.html: sub/a.html#gone",
        "index.html: sub/c.html",
    ]


def test_weight_is_the_sum_of_the_files(tmp_path):
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b").write_bytes(b"4567")
    assert site_audit.weight(tmp_path) == 7


# A small book under the configuration of this one


@pytest.fixture(scope="module")
def small_site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("book")
    config = {**CONFIG, "execute": {**CONFIG["execute"], "execute_notebooks": "off"}}
    (folder / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    shutil.copyfile(ROOT / "references.bib", folder / "references.bib")
    toc = {
        "format": "jb-book",
        "root": "chapters/index",
        "parts": [{"caption": "C", "numbered": 2, "chapters": [{"file": "chapters/x/index"}]}],
    }
    toc["parts"][0]["chapters"][0]["sections"] = [{"file": "chapters/x/page"}]
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc), encoding="utf-8")
    texts = {
        "index": "# Book\n\nSee {prf:ref}`x-small` and {cite}`vaswani2017`.\n\n"
        "```{bibliography}\n```\n",
        "x/index": "# Chapter\n",
        "x/page": "# Page\n\n```{prf:theorem} Small\n:label: x-small\n\n$1 + 1 = 2$.\n```\n\n"
        "$$\na = b\n$$ (x-equation)\n\nBy {eq}`x-equation`.\n\n"
        "```{eval-rst}\n.. automodule:: rederive.validation\n   :members:\n```\n",
    }
    for name, content in texts.items():
        path = folder / "chapters" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    script = Path(sys.executable).with_name("jupyter-book")
    command = [str(script), "build", str(folder)]
    workflow = {"GITHUB_SERVER_URL": "https://code.example", "GITHUB_REPOSITORY": "we/book"}
    result = subprocess.run(
        [*command, "-W", "-n", "--keep-going"],
        env={**os.environ, **workflow},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return folder / "_build" / "html"


def test_configuration_builds_without_warning_and_loads_nothing_from_elsewhere(small_site):
    assert site_audit.outside_assets(small_site) == []
    assert site_audit.dead_links(small_site) == []


def test_formulas_are_set_by_the_copied_mathjax(small_site):
    html = (small_site / "chapters" / "x" / "page.html").read_text(encoding="utf-8")
    script = re.search(r'src="(\.\./\.\./_static/mathjax/tex-mml-chtml\.js)\?v=\w+"', html)
    assert script, "the page names the script, with its checksum"
    assert (small_site / "chapters" / "x" / script[1]).resolve().is_file()


def test_theorems_and_equations_are_numbered_by_chapter(small_site):
    html = (small_site / "chapters" / "x" / "page.html").read_text(encoding="utf-8")
    front = (small_site / "chapters" / "index.html").read_text(encoding="utf-8")
    assert "Theorem 1.1" in front
    assert "(1.1)" in html


def test_front_page_opens_at_the_root(small_site):
    assert "chapters/index.html" in (small_site / "index.html").read_text(encoding="utf-8")


def test_site_leads_to_the_repository_that_built_it(small_site):
    html = (small_site / "chapters" / "x" / "page.html").read_text(encoding="utf-8")
    assert 'href="https://code.example/we/book"' in html
    assert 'href="https://code.example/we/book/issues/new?template=contest-a-verdict.yml"' in html


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"GITHUB_SERVER_URL": "https://code.example"},
        {"GITHUB_SERVER_URL": "javascript:", "GITHUB_REPOSITORY": "we/book"},
        {"GITHUB_SERVER_URL": "https://code.example", "GITHUB_REPOSITORY": "book"},
    ],
)
def test_site_built_elsewhere_names_no_repository(environment):
    assert repository.address(environment) is None


def test_link_to_contest_a_verdict_opens_the_form():
    name = repository.CONTEST.split("template=")[1]
    assert (ROOT / ".github" / "ISSUE_TEMPLATE" / name).is_file()
