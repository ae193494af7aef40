"""Parts of a page that a program writes, between two comment lines."""

from __future__ import annotations


def replaced(text: str, begin: str, end: str, content: str) -> str:
    """The page with what stands between two of its lines replaced.

    Parameters
    ----------
    text : str
        The page, with each of the two lines in it once.
    begin, end : str
        The lines, without a newline.
    content : str
        What to put there, ending in a newline.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the page lacks one of the lines.
    """
    before, found, rest = text.partition(begin + "\n")
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"expected the lines {begin!r} and {end!r} in the page")
    return f"{before}{found}\n{content}\n{closed}{after}"
