"""Where an installed Chromium is: the book is printed and tested in it, and brings none along."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find() -> str | None:
    """The path of an installed Chromium; the variable ``CHROMIUM`` goes first."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


def missing() -> str | None:
    """What keeps us from driving a Chromium, in words, or None."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "the package playwright is not installed"
    if find():
        return None
    return f"found no Chromium ({', '.join(NAMES)}, or the path in the variable CHROMIUM)"


@contextmanager
def browser() -> Iterator[Any]:
    """A running Chromium without a window.

    Raises
    ------
    ValueError
        If there is none, or nothing to drive it.
    """
    if (reason := missing()) is not None:
        raise ValueError(f"chromium: {reason}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # As root, as in containers, Chromium refuses its sandbox; it opens our own pages only.
        started = playwright.chromium.launch(executable_path=find(), args=["--no-sandbox"])
        try:
            yield started
        finally:
            started.close()
