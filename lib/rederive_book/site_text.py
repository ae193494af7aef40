"""The text of built pages on every screen: formulas keep their punctuation, tables their columns.

A browser may break a line on either side of a formula, so that a comma or a bracket can end up
alone on a line; and a table of sentences does not fit a phone. Both are mended in the pages:
punctuation is held to its formula, and every cell of such a table carries the name of its column,
which style sheets show where there is no room for columns. A sign such as ≤ stays between what it
compares, a date stays whole, and a figure knows its own width, below which its letters are small.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

#: Tables of fewer columns fit a phone; tables of more are pictures in numbers, which are scrolled.
COLUMNS, MANY = 3, 8

_FORMULA = re.compile(
    r'(?P<open>[(\[“‘]*)(?P<formula><span class="math notranslate nohighlight">[^<]*</span>)'
    r"(?P<close>[,.;:!?)\]”’।]*)"
)
_TABLE = re.compile(r'<table class="table">.*?</table>', re.DOTALL)
_HEAD = re.compile(r'<th class="head[^"]*">(.*?)</th>', re.DOTALL)
_ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
_CELL = re.compile(r'<td(?: class="(?P<class>[^"]*)")?>(?P<inside>.*?)</td>', re.DOTALL)
_PARAGRAPH = re.compile(r"^<p>(.*)</p>$", re.DOTALL)
#: Tags and texts of a page; what is inside the elements of `_LEAVE` stays as it is.
_PIECE = re.compile(r"<[^>]*>|[^<]+")
_LEAVE = re.compile(r"<(/?)(pre|code|script|style|svg|template|textarea)\b")
_MATH = re.compile(r'<span class="math|<div class="math')
_SIGN = re.compile(r"(?<=\S) (≤|≥|±|&lt;|&gt;|≪|≫) (?=\S)")
_DATE = re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b")
_FIGURE = re.compile(
    r'<a class="reference internal image-reference"(?P<rest>[^>]*><img\b[^>]*'
    r'style="width: (?P<width>\d+)px;")'
)


def mend_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document
) -> None:
    """Sphinx's ``html-page-context``: signs, dates and figures in the text of a page."""
    if app.builder.format == "html" and "body" in context:
        context["body"] = wide_figures(hold_signs(context["body"]))


def hold_signs(text: str) -> str:
    """A text in which no line ends or begins with a lone ≤, and no date is broken.

    Parameters
    ----------
    text : str
        HTML. Code, formulas and pictures stay as they are.
    """
    made, left, math = [], 0, False
    for piece in _PIECE.findall(text):
        if piece.startswith("<"):
            if tag := _LEAVE.match(piece):
                left += -1 if tag[1] else not piece.endswith("/>")
            math = bool(_MATH.match(piece))
        elif not left and not math:
            piece = _SIGN.sub("\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", piece)
            piece = _DATE.sub(r'<span class="rederive-held">\g<0></span>', piece)
        made.append(piece)
    return "".join(made)


def wide_figures(text: str) -> str:
    """A text whose figures know their own width, for style sheets of small screens."""
    return _FIGURE.sub(
        r'<a class="reference internal image-reference rederive-wide" '
        r'style="--rederive-width: \g<width>px"\g<rest>',
        text,
    )


def hold_punctuation(text: str) -> str:
    """A page in which no line begins with the comma that follows a formula.

    Parameters
    ----------
    text : str
        The HTML of the page. Formulas without punctuation stay as they are.
    """

    def held(found: re.Match[str]) -> str:
        if not found["open"] and not found["close"]:
            return found.group()
        return f'<span class="rederive-held">{found.group()}</span>'

    return _FORMULA.sub(held, text)


def name_columns(text: str) -> str:
    """A page whose tables of three to seven columns name the column in every cell.

    Parameters
    ----------
    text : str
        The HTML of the page. Tables that are sorted or filtered have a class of their own, and
        style sheets of their own.
    """
    return _TABLE.sub(lambda table: _named(table.group()), text)


def _named(table: str) -> str:
    names = [_plain(name) for name in _HEAD.findall(table)]
    if not COLUMNS <= len(names) < MANY:
        return table
    body = _ROW.sub(lambda row: _row(row.group(), names), table)
    return body.replace('<table class="table">', '<table class="table rederive-columns">', 1)


def _row(row: str, names: list[str]) -> str:
    """The row with names in all cells but the first, which heads it; empty cells are marked."""
    cells = iter(range(len(names)))

    def cell(found: re.Match[str]) -> str:
        column, inside = next(cells, 0), found["inside"]
        if _plain(inside) in ("", "–"):
            classes = " ".join(filter(None, [found["class"], "rederive-none"]))
            return f'<td class="{classes}">{inside}</td>'
        if column == 0 or not names[column]:
            return found.group()
        name = f'<span class="rederive-column">{names[column]}</span>'
        return found.group().replace(inside, name + inside, 1)

    return _CELL.sub(cell, row)


def _plain(inside: str) -> str:
    """What stands in a cell of one paragraph."""
    inside = inside.strip()
    paragraph = _PARAGRAPH.match(inside)
    return paragraph[1].strip() if paragraph else inside
