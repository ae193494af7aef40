"""Sphinx extension: bars in docstrings are absolute values; each docstring names its pages.

reStructuredText reads ``|x|`` as the name of something to be substituted, which no docstring here
uses. So bars are escaped before the docstrings are parsed, except where they are taken as they
stand: in formulas, code and interpreted text. At the end of each docstring stand the pages whose
code uses the object, if `rederive_book.sphinx_ext` has read them.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

from rederive_book.site_code import used_on

_BLOCK = r"\n(?:[ ]*\n|(?P={0})[ ]+[^\n]*(?:\n|\Z))*"
_BAR = re.compile(
    r"(?P<kept>"
    + r"^(?P<a>[ ]*)\.\. (?:math|code|code-block)::[^\n]*"
    + _BLOCK.format("a")
    + r"|^(?P<b>[ ]*)[^\n]*::[ ]*"
    + _BLOCK.format("b")
    + r"|^[ ]*>>>[^\n]*"
    + r"|``(?s:.+?)``"
    + r"|`[^`]+`"
    + r")|(?<!\\)\|",
    re.M,
)


def escape_bars(text: str) -> str:
    """A docstring in which bars stand for themselves.

    Parameters
    ----------
    text : str
        reStructuredText.

    Returns
    -------
    str
        The same text, with a backslash before each bar that would begin a substitution.
    """
    return _BAR.sub(lambda match: match["kept"] or r"\|", text)


def _process(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]):
    lines[:] = escape_bars("\n".join(lines)).split("\n")


def _add_pages(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]):
    if what == "module":
        return
    cells = getattr(app, "rederive_cells", {})
    for docname in cells:
        app.env.note_dependency(app.env.doc2path(docname))
    lines.extend(used_on(name, cells))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    # After numpydoc, which reads the sections of a docstring at the usual priority of 500.
    app.connect("autodoc-process-docstring", _process, priority=900)
    app.connect("autodoc-process-docstring", _add_pages, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
