"""The statements that a page refers to, carried along in it.

Whoever reads a page may want to see what "Theorem 2.1" says without leaving. A site that is read
from a folder cannot fetch the other page, so the statements come along with the page, in a
``template`` that is neither drawn nor searched; ``rederive-hover.js`` shows them. Statements on the
page itself are not repeated.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from rederive_book.site_map import LABELS
from rederive_book.site_nodes import is_built, theorem_name

#: Class of mathematics in Sphinx's HTML.
_MATH = 'class="math'


def add_to_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document
) -> None:
    """Append the statements to the body of a page."""
    if doctree is None or app.builder.format != "html" or "body" not in context:
        return
    found = {label: statement(app, label) for label in referred(app.env, pagename, doctree)}
    if not found:
        return
    inside = "".join(
        f'<div data-for="{html.escape(label)}">{text}</div>' for label, text in found.items()
    )
    if _MATH in inside:
        # So that MathJax is loaded, even where the page has no formula of its own.
        app.env.get_domain("math").data["has_equations"][pagename] = True
    context["body"] += f'\n<template id="rederive-statements">{inside}</template>\n'


def referred(env: BuildEnvironment, pagename: str, doctree: nodes.document) -> list[str]:
    """The labels of the theorems on other pages that a page leads to, in their order."""
    labels = dict.fromkeys(_targets(doctree))
    proofs = getattr(env, "proof_list", {})
    return [
        label
        for label in labels
        if label in proofs and proofs[label]["docname"] != pagename and is_built(env, label)
    ]


def _targets(doctree: nodes.document) -> Iterator[str]:
    for node in doctree.findall(nodes.Element):
        if isinstance(node, nodes.reference):
            yield node.get("refuri", "").partition("#")[2]
        elif LABELS in node:
            yield from node[LABELS]


def statement(app: Sphinx, label: str) -> str:
    """Name, title and text of a theorem as HTML without links and anchors."""
    cache: dict[str, str] = app.__dict__.setdefault("rederive_statements", {})
    if label not in cache:
        cache |= _statements(app, app.env.proof_list[label]["docname"])
    return cache[label]


def _statements(app: Sphinx, docname: str) -> dict[str, str]:
    """All theorems of a page."""
    env = app.env
    labels = [
        label
        for label, proof in env.proof_list.items()
        if proof["docname"] == docname and is_built(env, label)
    ]
    doctree = env.get_doctree(docname)
    theorems = [n for n in doctree.findall(nodes.Element) if n.get("label") in labels]
    doctree.children[:] = []
    doctree.extend(theorems)
    env.apply_post_transforms(doctree, docname)
    made = {}
    for theorem in theorems:
        name = nodes.strong("", theorem_name(env, theorem["label"]))
        rest = list(theorem.children)
        head = nodes.paragraph("", "", name, classes=["rederive-statement-name"])
        if rest and isinstance(rest[0], nodes.title):
            head += [nodes.Text(" "), *rest.pop(0).children]
        holder = nodes.container("", head, *rest)
        made[theorem["label"]] = bare(app.builder.render_partial(holder)["fragment"])
    return made


def bare(text: str) -> str:
    """HTML that may stand twice on a page, and holds nothing to click on."""
    text = re.sub(
        r'<a class="headerlink".*?</a>|<span class="eqno">.*?</span>', "", text, flags=re.S
    )
    text = re.sub(r"<a\b[^>]*>", "<span>", text).replace("</a>", "</span>")
    return re.sub(r'(<[^<>]*?) (?:id|name)="[^"]*"', r"\1", text).strip()
