"""Where the claims stand: labels of theorem environments and references in the pages' text.

The text is read with MyST's own Markdown parser, so that an example in a code block is no label,
and a theorem inside an admonition is one.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from docutils.parsers.rst import Directive, directives
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from rederive_book.claims import Claims

EXTENSIONS = {"amsmath", "colon_fence", "deflist", "dollarmath"}

#: Directives whose content is not Markdown.
OPAQUE = frozenset(
    "code code-block code-cell sourcecode literalinclude parsed-literal math raw eval-rst "
    "mermaid graphviz csv-table".split()
)


@dataclass(frozen=True)
class PageText:
    """What a page says about claims.

    Attributes
    ----------
    name : str
    labels : tuple of (str, str)
        Label of every ``prf`` environment, with where it stands.
    references : frozenset of str
        Targets of ``{prf:ref}``.
    """

    name: str
    labels: tuple[tuple[str, str], ...]
    references: frozenset[str]

    def places(self, label: str) -> list[str]:
        """Where the label stands, as ``<page> (line 12)``."""
        return [f"{self.name} ({where})" for found, where in self.labels if found == label]


class _AnyDirective(Directive):
    """Stands for every directive when only its options and body are wanted."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = {"label": directives.unchanged}


@functools.cache
def _parser() -> MarkdownIt:
    from myst_parser.config.main import MdParserConfig
    from myst_parser.parsers.mdit import create_md_parser

    return create_md_parser(MdParserConfig(enable_extensions=EXTENSIONS), RendererHTML)


def read_page(name: str, path: Path) -> PageText:
    """Read a page from its MyST text or from a notebook.

    Parameters
    ----------
    name : str
    path : Path
        An ``.ipynb`` file is read cell by cell; anything else is Markdown.
    """
    text = Path(path).read_text(encoding="utf-8")
    found: list[tuple[str, str, str]] = []
    if Path(path).suffix == ".ipynb":
        for number, cell in enumerate(json.loads(text)["cells"], start=1):
            if cell["cell_type"] == "markdown":
                for kind, target, line in _walk("".join(cell["source"]), 0):
                    found.append((kind, target, f"cell {number}, line {line}"))
    else:
        found = [(kind, target, f"line {line}") for kind, target, line in _walk(text, 0)]
    return PageText(
        name=name,
        labels=tuple((target, where) for kind, target, where in found if kind == "label"),
        references=frozenset(target for kind, target, _ in found if kind == "reference"),
    )


def read_pages(sources: Mapping[str, Path]) -> dict[str, PageText]:
    """Read every page of a book, given as page name to file."""
    return {name: read_page(name, path) for name, path in sources.items()}


def _walk(text: str, before: int) -> Iterator[tuple[str, str, int]]:
    """Labels and references in a text that starts after line ``before``, with their lines."""
    for token in _parser().parse(text):
        line = before + (token.map[0] + 1 if token.map else 0)
        if token.type == "inline":
            yield from _references(token, line)
        elif token.type in ("fence", "colon_fence"):
            yield from _directive(token, line)


def _references(token: Token, line: int) -> Iterator[tuple[str, str, int]]:
    for child in token.children or ():
        if child.type == "myst_role" and child.meta["name"] == "prf:ref":
            explicit = re.fullmatch(r".*<([^<>]+)>\s*", child.content, re.DOTALL)
            yield "reference", (explicit[1] if explicit else child.content).strip(), line


def _directive(token: Token, line: int) -> Iterator[tuple[str, str, int]]:
    from myst_parser.parsers.directives import parse_directive_text

    opening = re.fullmatch(r"\{([^\s}]+)\}\s*(.*)", token.info.strip())
    if opening is None or opening[1] in OPAQUE:
        return
    name, argument = opening.groups()
    parsed = parse_directive_text(_AnyDirective, argument, token.content)
    label = parsed.options.get("label")
    if name.startswith("prf:") and label:
        yield "label", label.strip(), line
    yield from _walk(argument, line - 1)
    yield from _walk("\n".join(parsed.body), line + parsed.body_offset)


def pages_of(claims: Claims, pages: Mapping[str, PageText]) -> dict[str, str | None]:
    """The page that carries each claim's label; None where there is none."""
    return {
        claim.id: next((p.name for p in pages.values() if p.places(claim.label)), None)
        for claim in claims.values()
    }


def label_problems(claims: Claims, pages: Mapping[str, PageText]) -> list[str]:
    """Claims whose label is on no page, or stands more than once."""
    problems = []
    for claim in claims.values():
        places = [place for page in pages.values() for place in page.places(claim.label)]
        if not places:
            problems.append(
                f"claim {claim.id}: no theorem environment on any page has its label {claim.label}"
            )
        elif len(places) > 1:
            problems.append(
                f"claim {claim.id}: its label {claim.label} stands more than once: "
                + ", ".join(places)
            )
    return problems


def arrow_problems(claims: Claims, pages: Mapping[str, PageText]) -> list[str]:
    """Arrows in ``uses`` that the page of the derivation does not honour by a ``{prf:ref}``."""
    problems = []
    for claim_id, name in pages_of(claims, pages).items():
        if name is None:
            continue
        for used in claims[claim_id].uses:
            if claims[used].label not in pages[name].references:
                problems.append(
                    f"claim {claim_id} on page {name}: it uses {used}, but the page never refers "
                    f"to {{prf:ref}}`{claims[used].label}`"
                )
    return problems
