"""Sphinx extension: in our docstrings a bar is an absolute value.

reStructuredText reads ``|x|`` as the name of something to be substituted, which no docstring here
uses. So bars are escaped before the docstrings are parsed, except where they are taken as they
stand: in formulas, code and interpreted text.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

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


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    # After numpydoc, which reads the sections of a docstring at the usual priority of 500.
    app.connect("autodoc-process-docstring", _process, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
