"""The whole book as one PDF file, printed by an installed Chromium from the built site.

``python -m rederive_book.pdf`` joins the pages of ``_build/html`` into one document, in the order of
the table of contents and with links that lead to places in it, sets the formulas and prints it. The
file has an outline and a clickable table of contents. Code cells stay on the site; the solutions of
exercises are unfolded.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

from rederive_book import chromium

NAME = "attention-rederived.pdf"
#: What has no place on paper.
DROPPED = (
    ".headerlink, button, script, template, .rederive-animation, .rederive-download, .rederive-take,"
    ".rederive-filters, .rederive-to-code, .cell > .cell_input, .cell > details, .onlyprint,"
    "details.rederive-library, .rx-controls, .rx-presets"
)
#: Attributes that hold names of other elements.
_NAMING = ("for", "aria-labelledby", "aria-describedby", "aria-controls")
_MINUTES = 10
_STYLE = """
nav.book-contents ol { list-style: none; padding-left: 1.2rem; }
nav.book-contents > ol { padding-left: 0; }
.book-page { break-before: page; }
.book-part { font-size: 1.1em; font-weight: 600; margin: 1rem 0 0.2rem; }
.book-title { font-size: 2.6em; margin: 30vh 0 0.5rem; }
"""
_FOOTER = (
    '<div style="font: 8pt sans-serif; width: 100%; text-align: center">'
    '<span class="pageNumber"></span></div>'
)


@dataclass(frozen=True)
class Entry:
    """A page of the book: its file below the site, how deep it lies, and the part it opens."""

    file: str
    depth: int
    part: str | None = None


def entries(toc: dict) -> list[Entry]:
    """The pages of a table of contents in order."""
    found = [Entry(f"{toc['root']}.html", 0)]
    for part in toc.get("parts", [{"chapters": toc.get("chapters", [])}]):
        caption = part.get("caption")
        for chapter in part.get("chapters", []):
            found.append(Entry(f"{chapter['file']}.html", 0, caption))
            caption = None
            found += [Entry(f"{page['file']}.html", 1) for page in chapter.get("sections", [])]
    return found


def slug(file: str) -> str:
    """The name of a page inside the document."""
    return file.removesuffix(".html").removeprefix("chapters/").replace("/", "-")


def article(soup: BeautifulSoup, entry: Entry, site: Path, target: Path, inside: set[str]) -> Tag:
    """The text of a page with names of its own, fit for the joined document.

    Parameters
    ----------
    soup : BeautifulSoup
        The page.
    entry : Entry
    site, target : Path
        The built site, and the folder of the joined document.
    inside : set of str
        The files that are joined: links between them stay inside.
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
        if element.name == "details":
            element["open"] = ""
        elif element.name == "img" and not urlsplit(element["src"]).scheme:
            element["src"] = os.path.relpath(folder / unquote(element["src"]), target)
            element.attrs.pop("loading", None)
        elif element.name in ("h1", "h2", "h3", "h4", "h5"):
            element.name = f"h{int(element.name[1]) + entry.depth}"
    for link in text.find_all("a", href=True):
        _lead(link, entry, site, inside)
    text.name, text.attrs = "section", {"id": own, "class": ["book-page", "bd-article"]}
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
        link["href"] = f"#{slug(file)}--{anchor}" if anchor else f"#{slug(file)}"
    else:
        del link["href"]


def joined(root: Path, target: Path) -> str:
    """The document of all pages.

    Parameters
    ----------
    root : Path
        The book, with its site in ``_build/html``.
    target : Path
        The folder that the document will lie in.

    Raises
    ------
    ValueError
        If the site is not built, or a link inside the document leads nowhere.
    """
    site = root / "_build" / "html"
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    title = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["title"]
    found = entries(toc)
    inside = {entry.file for entry in found}
    soups = []
    for entry in found:
        if not (site / entry.file).is_file():
            raise ValueError(f"pdf: expected {entry.file} in _build/html, run `make book` first")
        text = (site / entry.file).read_text(encoding="utf-8")
        soups.append(BeautifulSoup(text, "html.parser"))
    body, contents = [], []
    for entry, soup in zip(found, soups, strict=True):
        name = soup.title.string.split(" — ")[0].strip()
        if entry.part:
            contents.append(f'<li class="book-part">{escape(entry.part)}</li>')
        indent = f' style="padding-left: {1.5 * entry.depth:g}rem"'
        contents.append(f'<li{indent}><a href="#{slug(entry.file)}">{escape(name)}</a></li>')
        body.append(str(article(soup, entry, site, target, inside)))
    document = (
        f'<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>{_head(soups, found, site, target)}"
        f"<style>{_STYLE}</style></head><body>"
        f'<p class="book-title">{escape(title)}</p>'
        f'<nav class="book-contents book-page"><p class="book-part">Contents</p>'
        f"<ol>{''.join(contents)}</ol></nav>{''.join(body)}</body></html>"
    )
    _assert_whole(document)
    return document


def _head(soups: list[BeautifulSoup], found: list[Entry], site: Path, target: Path) -> str:
    """The style sheets of the pages, MathJax and its settings, each once."""
    seen: dict[str, None] = {}
    for entry, soup in zip(found, soups, strict=True):
        folder = (site / entry.file).parent

        def moved(address: str, folder: Path = folder) -> str:
            return os.path.relpath(folder / urlsplit(address).path, target)

        for sheet in soup.select("head link[rel=stylesheet]"):
            seen[f'<link rel="stylesheet" href="{moved(sheet["href"])}">'] = None
        for script in soup.select("head script"):
            if "mathjax/" in script.get("src", ""):
                seen[f'<script defer src="{moved(script["src"])}"></script>'] = None
            elif (script.string or "").lstrip().startswith("window.MathJax"):
                seen[str(script)] = None
    return "".join(seen)


def _assert_whole(document: str) -> None:
    soup = BeautifulSoup(document, "html.parser")
    names = {element["id"] for element in soup.find_all(id=True)}
    names |= {element["name"] for element in soup.find_all("a", attrs={"name": True})}
    links = {link["href"] for link in soup.find_all("a", href=True)}
    if dead := sorted(link for link in links if link[0] == "#" and link[1:] not in names):
        raise ValueError(f"pdf: {len(dead)} links lead nowhere, the first is {dead[0]}")


def write(root: Path) -> Path:
    """Print the built book to ``_build/attention-rederived.pdf``.

    Raises
    ------
    ValueError
        If there is no site or no Chromium, or a formula cannot be set.
    """
    if (reason := chromium.missing()) is not None:
        raise ValueError(f"pdf: {reason}")
    work = root / "_build" / "pdf"
    work.mkdir(parents=True, exist_ok=True)
    source = work / "book.html"
    source.write_text(joined(root, work), encoding="utf-8")
    result, unfinished = root / "_build" / NAME, work / NAME
    with chromium.browser() as browser:
        page = browser.new_page(viewport={"width": 680, "height": 960})
        page.set_default_timeout(60_000 * _MINUTES)
        page.emulate_media(media="print")
        page.goto(source.as_uri())
        page.evaluate("() => window.MathJax?.startup?.promise?.then(() => true)")
        if wrong := page.locator("mjx-merror").all_inner_texts():
            raise ValueError(f"pdf: {len(wrong)} formulas cannot be set, the first is {wrong[0]}")
        page.pdf(
            path=str(unfinished),
            format="A4",
            margin={"top": "18mm", "bottom": "18mm", "left": "16mm", "right": "16mm"},
            print_background=True,
            outline=True,
            tagged=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=_FOOTER,
        )
    os.replace(unfinished, result)
    source.unlink()
    return result


def main() -> int:
    """The command line; an error is one line."""
    argparse.ArgumentParser(prog="rederive_book.pdf", description=__doc__).parse_args()
    root = Path.cwd()
    try:
        if not (root / "_toc.yml").exists():
            raise ValueError("directory: expected to run in a checkout of the book")
        result = write(root)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"The book as one file: {result.relative_to(root).as_posix()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
