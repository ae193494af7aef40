"""The text of built pages on every screen: formulas keep their punctuation, tables their columns.

A browser may break a line on either side of a formula, so that a comma or a bracket can end up
alone on a line; and a table of sentences does not fit a phone. Both are mended in the pages:
punctuation is held to its formula, and every cell of such a table carries the name of its column,
which style sheets show where there is no room for columns.
"""

from __future__ import annotations

import re

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
