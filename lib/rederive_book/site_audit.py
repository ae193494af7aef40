"""What a built site must keep: it loads nothing from elsewhere, and its own links are alive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes through which an element loads something without being asked to.
LOADING = {
    "audio": ("src",),
    "embed": ("src",),
    "feimage": ("href", "xlink:href"),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "object": ("data",),
    "script": ("src", "href", "xlink:href"),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
#: Relations of ``<link>`` that only describe the page; every other one loads.
DESCRIBING = frozenset(
    "alternate author bookmark canonical help index license next prev search top up".split()
)
_CSS_URL = re.compile(r"""(?:url\(\s*|@import\s+)["']?\s*((?:https?:)?//[^"')\s;]+)""", re.I)
_JS_LOAD = re.compile(
    r"""(?:\bimport\s*\(?\s*|\bfrom\s+|\bfetch\(\s*|\bimportScripts\(\s*|\.(?:src|href)\s*=\s*)"""
    r"""["'`]((?:https?:)?//[^"'`\s]+)""",
    re.I,
)


def outside_assets(html_dir: Path) -> list[str]:
    """What the pages of a site would load from another host when they are read.

    Links that a reader may follow are no concern here; scripts, styles, pictures, fonts and frames
    are. Pages, style sheets and the scripts written into pages are searched.

    Parameters
    ----------
    html_dir : Path
        The folder of the built site.

    Returns
    -------
    list of str
        One ``file: address`` for each, sorted, without repetition; empty for a site that can be
        read offline.
    """
    root = Path(html_dir)
    found = set()
    for path in _pages(root):
        found |= {(path, address) for address in _read(path).loads if _is_outside(address)}
    for path in root.rglob("*.css"):
        found |= {(path, address) for address in _CSS_URL.findall(_text(path))}
    return sorted(f"{path.relative_to(root).as_posix()}: {address}" for path, address in found)


def dead_links(html_dir: Path) -> list[str]:
    """Links between the pages of a site that lead to no file, or to no anchor in it.

    Parameters
    ----------
    html_dir : Path
        The folder of the built site.

    Returns
    -------
    list of str
        One ``file: link`` for each, sorted, without repetition.
    """
    root = Path(html_dir).resolve()
    pages = {path.resolve(): _read(path) for path in _pages(root)}
    dead = set()
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            anchor = unquote(parts.fragment)
            known = target.is_file() and (
                not anchor or target not in pages or anchor in pages[target].anchors
            )
            if not known:
                dead.add(f"{path.relative_to(root).as_posix()}: {link}")
    return sorted(dead)


def weight(html_dir: Path) -> int:
    """The size of a site in bytes."""
    return sum(path.stat().st_size for path in Path(html_dir).rglob("*") if path.is_file())


@dataclass
class _Page:
    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=lambda: {"top"})


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = _Page()
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.inside = tag if tag in ("script", "style") else ""
        self.page.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        for name in LOADING.get(tag, ()):
            if name in given:
                self.page.loads += _addresses(given[name], listed=name == "srcset")
        if tag == "link" and not set(given.get("rel", "").lower().split()) <= DESCRIBING:
            self.page.loads.append(given.get("href", ""))
        if tag == "base":
            self.page.loads.append(given.get("href", ""))
        if tag in ("a", "area") and "href" in given:
            self.page.links.append(given["href"])
        self.page.loads += _CSS_URL.findall(given.get("style", ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.inside = ""

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "style":
            self.page.loads += _CSS_URL.findall(data)
        elif self.inside == "script":
            self.page.loads += _JS_LOAD.findall(data)


def _addresses(value: str, *, listed: bool) -> Iterator[str]:
    for part in value.split(",") if listed and not value.startswith("data:") else [value]:
        yield part.split()[0] if listed and part.split() else part.strip()


def _is_outside(address: str) -> bool:
    return address.startswith("//") or urlsplit(address).scheme in ("http", "https", "ftp")


def _pages(root: Path) -> list[Path]:
    return sorted(root.rglob("*.html"))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _read(path: Path) -> _Page:
    reader = _Reader()
    reader.feed(_text(path))
    reader.close()
    return reader.page
