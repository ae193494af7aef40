"""The pages of the built site as documents for print, with names of their own."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

#: Leads to a name in another page, until the pages are joined: Chromium keeps no link to a name
#: that its own page does not have.
ELSEWHERE = "https://book.invalid/#"
#: What has no place on paper.
DROPPED = (
    ".headerlink, button, script, template, .rederive-animation, .rederive-download,"
    ".rederive-take, .rederive-filters, .rederive-to-code, .cell > .cell_input,"
    ".cell > details, .onlyprint,"
    "details.rederive-library, .rx-controls, .rx-presets"
)
#: Attributes that hold names of other elements.
_NAMING = ("for", "aria-labelledby", "aria-describedby", "aria-controls")
#: Attributes by which a picture uses a pattern or an arrowhead of its own.
_DRAWING = ("fill", "stroke", "marker-start", "marker-mid", "marker-end", "clip-path", "mask")
_STYLE = """
body { padding: 0; }
nav.book-contents ol { list-style: none; padding: 0; }
.book-contents a { color: inherit; }
.book-part { font-size: 1.1em; font-weight: 600; margin: 1rem 0 0.2rem; }
.book-title { font-size: 2.6em; margin: 2rem 0; }
.book-anchors { font-size: 1px; height: 1px; overflow: hidden; }
.book-anchors a { color: transparent; }
"""
#: On paper nobody opens the menu of a formula, and Chromium is slow on what it would need.
_LEAN = (
    "Object.assign((window.MathJax.options = window.MathJax.options || {}),"
    "{ enableMenu: false, enableAssistiveMml: false });"
)


@dataclass(frozen=True)
class Entry:
    """A page of the book: its file below the site, how deep it lies, and the part it opens."""

    file: str
    depth: int
    part: str | None = None


def entries(table: dict) -> list[Entry]:
    """The pages of a table of contents in order."""
    found = [Entry(f"{table['root']}.html", 0)]
    for part in table.get("parts", [{"chapters": table.get("chapters", [])}]):
        caption = part.get("caption")
        for chapter in part.get("chapters", []):
            found.append(Entry(f"{chapter['file']}.html", 0, caption))
            caption = None
            found += [Entry(f"{page['file']}.html", 1) for page in chapter.get("sections", [])]
    return found


def toc(root: Path) -> list[Entry]:
    """The pages of the book in order."""
    return entries(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8")))


def slug(file: str) -> str:
    """The name of a page inside the document."""
    return file.removesuffix(".html").removeprefix("chapters/").replace("/", "-")


def article(soup: BeautifulSoup, entry: Entry, site: Path, target: Path, inside: set[str]) -> Tag:
    """The text of a page with names of its own, fit for a book of all pages.

    Parameters
    ----------
    soup : BeautifulSoup
        The page.
    entry : Entry
    site, target : Path
        The built site, and the folder of the documents.
    inside : set of str
        The files of the book: links between them stay inside.
    """
    text = soup.select_one("article.bd-article")
    if text is None:
        raise ValueError(f"pdf: {entry.file} has no article")
    for element in text.select(DROPPED):
        element.decompose()
    own, folder = slug(entry.file), (site / entry.file).parent
    for element in text.find_all(True):
        for name in ("id", *_NAMING):
            if name in element.attrs:
                element[name] = " ".join(f"{own}--{word}" for word in element[name].split())
        for name in _DRAWING:
            if name in element.attrs:
                element[name] = element[name].replace("url(#", f"url(#{own}--")
        if element.name == "details":
            element["open"] = ""
        elif element.name == "img" and not urlsplit(element["src"]).scheme:
            element["src"] = os.path.relpath(folder / unquote(element["src"]), target)
            element.attrs.pop("loading", None)
        elif element.name in ("h1", "h2", "h3", "h4", "h5"):
            element.name = f"h{int(element.name[1]) + entry.depth}"
    for link in text.find_all("a", href=True):
        _lead(link, entry, site, inside)
    text.name, text.attrs = "section", {"id": own, "class": ["bd-article"]}
    return text


def _lead(link: Tag, entry: Entry, site: Path, inside: set[str]) -> None:
    """Let a link lead to its place in the document; one to another file of the site is no link."""
    parts = urlsplit(link["href"])
    if parts.scheme or parts.netloc:
        return
    file = entry.file
    if parts.path:
        place = (site / entry.file).parent / unquote(parts.path)
        file = Path(os.path.relpath(place, site)).as_posix()
    if file in inside:
        anchor = unquote(parts.fragment)
        name = f"{slug(file)}--{anchor}" if anchor else slug(file)
        link["href"] = f"#{name}" if file == entry.file else f"{ELSEWHERE}{name}"
    else:
        del link["href"]


def documents(root: Path, target: Path) -> dict[str, str]:
    """Every page of the book as a document for printing, the title and contents first.

    Parameters
    ----------
    root : Path
        The book, with its site in ``_build/html``.
    target : Path
        The folder that the documents will lie in.

    Returns
    -------
    dict of str to str
        The name of each page to its HTML.

    Raises
    ------
    ValueError
        If the site is not built.
    """
    site = root / "_build" / "html"
    found = toc(root)
    title = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["title"]
    inside = {entry.file for entry in found}
    articles, heads, contents = {}, {}, []
    for entry in found:
        if not (site / entry.file).is_file():
            raise ValueError(f"pdf: expected {entry.file} in _build/html, run `make book` first")
        text = (site / entry.file).read_text(encoding="utf-8")
        soup = BeautifulSoup(text, "html.parser")
        name = soup.title.string.split(" — ")[0].strip()
        if entry.part:
            contents.append(f'<li class="book-part">{escape(entry.part)}</li>')
        indent = f' style="padding-left: {1.5 * entry.depth:g}rem"'
        contents.append(
            f'<li{indent}><a href="{ELSEWHERE}{slug(entry.file)}">{escape(name)}</a></li>'
        )
        heads[entry.file] = _head(soup, entry, site, target)
        articles[slug(entry.file)] = article(soup, entry, site, target, inside)
    start = heads[found[0].file]
    made = {
        "contents": _page(
            title,
            start,
            f'<p class="book-title">{escape(title)}</p><nav class="book-contents">'
            f"<ol>{''.join(contents)}</ol></nav>",
        )
    }
    wanted = {name for text in articles.values() for name in _named(text)} | set(articles)
    for entry in found:
        text = articles[slug(entry.file)]
        # Chromium keeps the place of an element only where something in the same file leads to it.
        here = {element["id"] for element in [text, *text.find_all(id=True)]} & wanted
        anchors = "".join(f'<a href="#{escape(name)}">·</a>' for name in sorted(here))
        body = f'{text}<div class="book-anchors" aria-hidden="true">{anchors}</div>'
        made[slug(entry.file)] = _page(title, heads[entry.file], body)
    return made


def headings(document: str) -> list[str]:
    """The words of the headings of a document."""
    soup = BeautifulSoup(document, "html.parser")
    return [" ".join(found.get_text().split()) for found in soup.find_all(re.compile("h[1-6]"))]


def _named(text: Tag) -> list[str]:
    """The places in other pages that a page leads to."""
    addresses = [link["href"] for link in text.find_all("a", href=True)]
    return [a.removeprefix(ELSEWHERE) for a in addresses if a.startswith(ELSEWHERE)]


def _page(title: str, head: str, body: str) -> str:
    return (
        '<!DOCTYPE html><html lang="en" data-theme="light" class="rederive-set"><head>'
        f'<meta charset="utf-8"><title>{escape(title)}</title>{head}<style>{_STYLE}</style></head>'
        f"<body>{body}</body></html>"
    )


def _head(soup: BeautifulSoup, entry: Entry, site: Path, target: Path) -> str:
    """The style sheets of a page, MathJax and its settings."""
    folder, made = (site / entry.file).parent, []
    for element in soup.select("head link[rel=stylesheet], head script"):
        address = element.get("href") or element.get("src") or ""
        moved = os.path.relpath(folder / urlsplit(address).path, target)
        if element.name == "link":
            made.append(f'<link rel="stylesheet" href="{moved}">')
        elif "mathjax/" in address:
            made.append(f'<script defer src="{moved}"></script>')
        elif (element.string or "").lstrip().startswith("window.MathJax"):
            made.append(f"{element}<script>{_LEAN}</script>")
    return "".join(made)
