"""The theme's icon script, cut down to the icons that a site shows.

The theme sends every icon of Font Awesome to every reader, half a megabyte compressed, and a book
shows a dozen. The script holds each icon as one entry of a table; entries that no page and no other
script names are left out. Nothing else in it changes.
"""

from __future__ import annotations

import re
from pathlib import Path

#: Where the theme puts the script, relative to ``_static``.
SCRIPT = "scripts/fontawesome.js"
_ENTRY = re.compile(
    r'(?:"(?P<quoted>[a-z0-9-]+)"|(?P<plain>[a-z0-9]+)):'
    r'\[\d+,\d+,\[(?P<aliases>[^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\["[^"]*","[^"]*"\])\],?'
)
_NAME = re.compile(r"\bfa-([a-z0-9-]+)")


def named(texts: list[str]) -> set[str]:
    """The icons that pages or scripts name by their classes, such as ``fa-moon``."""
    return {name for text in texts for name in _NAME.findall(text)}


def subset(script: str, wanted: set[str]) -> str:
    """Font Awesome's script without the icons that nobody wants.

    Parameters
    ----------
    script : str
        The script as the theme has it.
    wanted : set of str
        Names of icons, without ``fa-``; other words are ignored.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the script has no table of icons in the shape that we know.
    """
    if not _ENTRY.search(script):
        raise ValueError("icons: expected a table of icons in the theme's script, found none")

    def kept(entry: re.Match[str]) -> str:
        names = {entry["quoted"] or entry["plain"], *re.findall(r'"([^"]+)"', entry["aliases"])}
        return entry.group() if names & wanted else ""

    return _ENTRY.sub(kept, script)


def cut_down(site: Path) -> None:
    """Cut down the icon script of a built site, if it has one."""
    path = site / "_static" / SCRIPT
    if not path.is_file():
        return
    scripts = [other for other in (site / "_static").rglob("*.js") if other != path]
    sources = [*site.rglob("*.html"), *scripts]
    texts = [source.read_text(encoding="utf-8", errors="replace") for source in sources]
    script = path.read_text(encoding="utf-8")
    path.write_text(subset(script, named(texts)), encoding="utf-8")
