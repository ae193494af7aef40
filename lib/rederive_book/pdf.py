"""The whole book as one PDF file, printed by an installed Chromium from the built site.

``python -m rederive_book.pdf`` prints the pages of ``_build/html`` one by one, in the order of the
table of contents, and joins them into one file with an outline, a clickable table of contents, and
links that lead to places in it. (One document of all pages took Chromium more than ten minutes: the
time grows faster than the number of formulas.) Code cells stay on the site; the solutions of
exercises are unfolded.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    Fit,
    FloatObject,
    NameObject,
    TextStringObject,
)

from rederive_book import chromium
from rederive_book.pdf_pages import ELSEWHERE, documents, headings, slug, toc

NAME = "attention-rederived.pdf"
_MINUTES = 10
_MARGIN = {"top": "18mm", "bottom": "18mm", "left": "16mm", "right": "16mm"}


def _print(browser: Any, source: Path, result: Path) -> None:
    page = browser.new_page(viewport={"width": 680, "height": 960})
    page.set_default_timeout(60_000 * _MINUTES)
    page.emulate_media(media="print")
    page.goto(source.as_uri())
    page.evaluate("() => window.MathJax?.startup?.promise?.then(() => true)")
    if wrong := page.locator("mjx-merror").all_inner_texts():
        raise ValueError(f"pdf: {source.stem}: a formula cannot be set: {wrong[0]}")
    page.pdf(
        path=str(result),
        format="A4",
        margin=_MARGIN,
        print_background=True,
        outline=True,
        tagged=True,
    )
    page.close()


def write(root: Path) -> Path:
    """Print the built book to ``_build/attention-rederived.pdf``.

    Raises
    ------
    ValueError
        If there is no site or no Chromium, a formula cannot be set, or a link leads nowhere.
    """
    if (reason := chromium.missing()) is not None:
        raise ValueError(f"pdf: {reason}")
    work, result = root / "_build" / "pdf", root / "_build" / NAME
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    made = documents(root, work)
    with chromium.browser() as browser:
        for name, document in made.items():
            source = work / f"{name}.html"
            source.write_text(document, encoding="utf-8")
            _print(browser, source, work / f"{name}.pdf")
    titles = {_packed(title): title for text in made.values() for title in headings(text)}
    depths = {slug(entry.file): entry.depth for entry in toc(root)}
    join({work / f"{name}.pdf": depths.get(name, 0) for name in made}, work / NAME, titles)
    os.replace(work / NAME, result)
    shutil.rmtree(work)
    return result


def join(files: Mapping[Path, int], result: Path, titles: Mapping[str, str]) -> None:
    """Join printed pages into one file with one outline, and links that lead from page to page.

    Parameters
    ----------
    files : mapping of Path to int
        The printed pages in order, and how deep each lies in the outline: 0, or 1 for a page of
        the chapter before it.
    result : Path
    titles : mapping of str to str
        Headings without their spaces to headings: Chromium's outline glues broken lines together.

    Raises
    ------
    ValueError
        If a link leads to no place in the book.
    """
    book = PdfWriter()
    places: dict[str, ArrayObject] = {}
    chapter = None
    for file, depth in files.items():
        reader, first = PdfReader(file), len(book.pages)
        # pypdf drops links to names that it has not met yet: they travel as addresses.
        for link in _links(reader.pages):
            if isinstance(name := link.pop("/Dest", None), str):
                address = TextStringObject(ELSEWHERE + name.removeprefix("/"))
                action = {NameObject("/S"): NameObject("/URI"), NameObject("/URI"): address}
                link[NameObject("/A")] = DictionaryObject(action)
        book.append(reader, import_outline=False)
        start = _outline(book, reader, first, titles, reader.outline, chapter if depth else None)
        chapter = chapter if depth else start
        for name, place in reader.named_destinations.items():
            page = book.pages[first + reader.get_destination_page_number(place)]
            where = (place.left or 0, place.top or 0, 0)
            places[name.removeprefix("/")] = ArrayObject(
                [page.indirect_reference, NameObject("/XYZ"), *map(FloatObject, where)]
            )
    lost = set()
    for link in _links(book.pages):
        address = str(link.get("/A", {}).get("/URI", ""))
        if address.startswith(ELSEWHERE):
            name = address.removeprefix(ELSEWHERE)
            del link["/A"]
            if name in places:
                link[NameObject("/Dest")] = places[name]
            else:
                lost.add(name)
    if lost:
        raise ValueError(f"pdf: {len(lost)} links lead nowhere, the first is {min(lost)}")
    book.compress_identical_objects()
    book.write(result)


def _outline(
    book: PdfWriter,
    reader: PdfReader,
    first: int,
    titles: Mapping[str, str],
    items: list,
    parent: Any,
) -> Any:
    """Add the outline of one file below a parent; returns its first entry."""
    start = last = None
    for item in items:
        if isinstance(item, list):
            _outline(book, reader, first, titles, item, last)
            continue
        page = first + reader.get_destination_page_number(item)
        where = Fit.xyz(left=item.left, top=item.top)
        last = book.add_outline_item(
            title=titles.get(_packed(item.title), item.title),
            page_number=page,
            parent=parent,
            fit=where,
        )
        start = start or last
    return start


def _packed(title: str) -> str:
    return "".join(title.split())


def _links(pages: Iterable[PageObject]) -> Iterator[DictionaryObject]:
    for page in pages:
        for reference in page.get("/Annots", []):
            yield reference.get_object()


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
