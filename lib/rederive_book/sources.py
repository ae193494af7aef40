"""The papers on trial and the names of their statements (``sources.yml``)."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

import yaml

#: The source of a claim that no paper makes.
THIS_BOOK = "this-book"


@dataclass(frozen=True)
class Paper:
    """A paper on trial: its key, the chapter that tries it, and the names of its statements."""

    key: str
    folder: str
    authors: str
    arxiv: str
    rows: tuple[str, ...]
    context: tuple[str, ...]

    @property
    def url(self) -> str:
        """Where the paper can be read."""
        return f"https://arxiv.org/abs/{self.arxiv}"


@functools.cache
def papers() -> Mapping[str, Paper]:
    """The papers by key, in the order of the chapters."""
    text = files("rederive_book").joinpath("sources.yml").read_text(encoding="utf-8")
    return MappingProxyType(
        {
            key: Paper(
                key=key,
                folder=entry["folder"],
                authors=entry["authors"],
                arxiv=entry["arxiv"],
                rows=tuple(entry["rows"]),
                context=tuple(entry["context"]),
            )
            for key, entry in yaml.safe_load(text).items()
        }
    )


def cite(paper: str, row: str | None) -> str:
    """A source in words, such as ``Fokoué, Theorem 3.1``."""
    return "this book" if paper == THIS_BOOK else f"{papers()[paper].authors}, {row}"


def complete_chapters(pages: Iterable[str]) -> tuple[str, ...]:
    """The chapters that a table of contents presents as complete: those whose index is in it.

    Parameters
    ----------
    pages : iterable of str
        Page names, with or without ``chapters/`` in front and a suffix behind.
    """
    names = (name.removeprefix("chapters/").removesuffix(".md") for name in pages)
    return tuple(name.removesuffix("/index") for name in names if name.endswith("/index"))
