"""Sphinx extension: the last touch on the built pages, which makes them light and steady.

What a page carries although its reader may never ask for it moves into files of its own: the
numbers behind a figure, and animations. The index of the search is loaded by the search page only,
pictures are loaded when they come near and keep their place until then, and the script of icons is
cut down to the icons that the site shows. What stands in the text fits every screen (`site_text`).
Everything works from a disk, too.
"""

from __future__ import annotations

import base64
import json
import os
import re
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from rederive_book import __version__, icons, site_text

#: Folders of the site for what was moved out of the pages.
NUMBERS, ANIMATIONS = "_numbers", "_animations"

_NUMBERS = re.compile(
    r'<a download="(?P<name>[a-z0-9-]+\.csv)" href="data:text/csv;charset=utf-8;base64,'
    r'(?P<data>[A-Za-z0-9+/=]+)"'
)
_ANIMATION = re.compile(
    r'<div class="rederive-animation" hidden(?:="")?>(?P<svg><svg\b.*?</svg>)</div>', re.DOTALL
)
_VIEW = re.compile(r'viewbox="0 0 (\d+) (\d+)"', re.IGNORECASE)
_SEARCH = re.compile(
    r'\s*<script src="[^"]*(?:_static/searchtools\.js|_static/language_data\.js|searchindex\.js)">'
    r"</script>"
)
_PICTURE = re.compile(r'<img (?P<rest>[^>]*?src="(?P<src>[^"]+\.(?:png|svg))"[^>]*?)(?P<end>/?)>')
_WIDTH = re.compile(r'style="width: (\d+)px;"')
# The theme names the folding of a chapter in the menu by an icon alone.
_TOGGLE = re.compile(r'<summary>(?=\s*<span class="toctree-toggle")')


def numbers_in_files(text: str, page: Path, site: Path) -> str:
    """Put the numbers behind the figures of a page into files, and link to them.

    Parameters
    ----------
    text : str
        The HTML of the page.
    page, site : Path
        The file it will be written to, and the folder of the site.
    """

    def moved(link: re.Match[str]) -> str:
        file = _place(site / NUMBERS, page, site) / link["name"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(link["data"]))
        return f'<a download="{link["name"]}" href="{_relative(file, page)}"'

    return _NUMBERS.sub(moved, text)


def animations_in_files(text: str, page: Path, site: Path) -> str:
    """Put the animations of a page into scripts, which are loaded when a reader comes near.

    They are scripts because a page opened from a disk may load nothing else.
    """
    count = 0

    def moved(holder: re.Match[str]) -> str:
        nonlocal count
        count += 1
        file = _place(site / ANIMATIONS, page, site) / f"{count}.js"
        key = file.relative_to(site / ANIMATIONS).as_posix()
        file.parent.mkdir(parents=True, exist_ok=True)
        svg = json.dumps(holder["svg"])
        file.write_text(
            f"window.rederiveAnimations = window.rederiveAnimations || {{}};\n"
            f'window.rederiveAnimations["{key}"] = {svg};\n',
            encoding="utf-8",
        )
        width, height = _VIEW.search(holder["svg"]).groups()
        return (
            f'<div class="rederive-animation" data-animation="{key}" '
            f'data-script="{_relative(file, page)}" hidden>'
            f'<div class="rederive-moving" style="aspect-ratio: {width} / {height}"></div></div>'
        )

    return _ANIMATION.sub(moved, text)


def without_search_index(text: str) -> str:
    """A page that does not load the index of the search, which this site does not need there."""
    return _SEARCH.sub("", text)


def steady_pictures(text: str, page: Path) -> str:
    """Pictures that are loaded when they come near, and keep their place until then."""

    def steady(picture: re.Match[str]) -> str:
        rest, file = picture["rest"], page.parent / picture["src"]
        width = _WIDTH.search(rest)
        if "loading=" in rest or not width or not file.is_file():
            return picture.group()
        across, down = picture_size(file)
        height = round(int(width[1]) * down / across)
        size = f'width="{width[1]}" height="{height}"'
        rest = _WIDTH.sub(size, rest).strip()
        return f'<img loading="lazy" {rest}{picture["end"]}>'

    return _PICTURE.sub(steady, text)


def picture_size(file: Path) -> tuple[float, float]:
    """Width and height of a picture: a PNG file in pixels, one of vectors in its own units."""
    if file.suffix == ".svg":
        root = ElementTree.parse(file).getroot()
        return tuple(float(side) for side in root.attrib["viewBox"].split()[2:])
    with file.open("rb") as stream:
        return struct.unpack(">II", stream.read(24)[16:])


def named_toggles(text: str) -> str:
    """A page whose menu names the buttons that fold its chapters."""
    return _TOGGLE.sub('<summary aria-label="Pages of this chapter">', text)


def finish_page(text: str, page: Path, site: Path) -> str:
    """A page of the built site after all of the above."""
    if page.name != "search.html":
        text = without_search_index(text)
    text = numbers_in_files(text, page, site)
    text = animations_in_files(text, page, site)
    text = site_text.name_columns(site_text.hold_punctuation(text))
    return named_toggles(steady_pictures(text, page))


def _place(folder: Path, page: Path, site: Path) -> Path:
    return folder / page.relative_to(site).with_suffix("")


def _relative(file: Path, page: Path) -> str:
    return Path(os.path.relpath(file, page.parent)).as_posix()


def finish_site(app: Sphinx, error: Exception | None) -> None:
    """Finish every page of a built site, and drop what only developers of the theme need."""
    if error is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    for page in sorted(site.rglob("*.html")):
        if "_static" not in page.relative_to(site).parts:
            text = page.read_text(encoding="utf-8")
            page.write_text(finish_page(text, page, site), encoding="utf-8")
    icons.cut_down(site)
    for file in (site / "_static").rglob("*.map"):
        file.unlink()


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension with Sphinx."""
    # After extensions that read the finished pages, such as links from code to the library.
    app.connect("build-finished", finish_site, priority=900)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
