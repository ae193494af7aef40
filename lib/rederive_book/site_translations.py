"""The hooks of translated pages: their language is marked, and what is generated speaks it.

What this book generates comes as text, as HTML in one piece (folds, legends, maps), and from
scripts; all three take their words from `rederive_book.translations`. The claims themselves, and
the names of checks, stay English and are marked as English.
"""

from __future__ import annotations

import functools
import html
import json
import re

from docutils import nodes
from sphinx.application import Sphinx

from rederive_book.translations import INVITATION, SCRIPT_WORDS, WORDS

#: Classes of generated nodes whose texts are the claims' own, which are English.
ENGLISH = frozenset(
    "rederive-cell-claim rederive-cell-source rederive-cell-checks rederive-finding "
    "rederive-holding rederive-kept".split()
)
#: Generated words, and the number that may follow, plain or in brackets.
_SHAPE = re.compile(r"(.+?)( \(\d+\)| [\d.]+)?", re.DOTALL)
#: Text between two tags, the label of a picture, and the name that a box of a map has for readers.
_BETWEEN = re.compile(r"(?<=>)[^<>]+(?=</(?:summary|li|tspan|text)>)")
_SIGNED = re.compile(r"(\s*(?:[✓≈✗?–] )?)(.*)", re.DOTALL)
_LABEL = re.compile(r'(?<= aria-label=")[^"]+(?=")')
_BOX = re.compile(r"<title>(?P<title>[^<]+): (?P<rest>[^:<]+)</title>")
#: Where the words in a piece of HTML stand that are ours, and the titles of claims, which are not.
_OWN = re.compile(r"<(?=summary\b|tspan\b[^>]*\brederive-name\b)\w+")
_TITLES = re.compile(r"<(?=[ag]\b[^>]*\brederive-box\b)\w")


def translate(text: str, language: str) -> str | None:
    """A generated piece of text in another language; None where it is none of ours."""
    bare = text.strip()
    shape = _SHAPE.fullmatch(bare.replace("’", "'"))  # Sphinx has made the quotes typographic
    if shape is None:
        return None
    if shape[1] in WORDS[language]:
        said = WORDS[language][shape[1]] + (shape[2] or "")
    else:
        said = _filled(shape[0], language)
    return said if said is None else text.replace(bare, said)


def _filled(text: str, language: str) -> str | None:
    """A text with numbers or words inside, put into the words for such texts."""
    for pattern, words in _patterns(language):
        if found := pattern.fullmatch(text):
            inside = found.groupdict()
            numbers = [inside[key] for key in sorted(inside) if key != "words"]
            own = inside.get("words", "")
            own = translate(own, language) or own if own else ""
            return words.format(*numbers, words=own)
    return None


@functools.cache
def _patterns(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """What to look for, and what to say, for the generated texts that hold others."""
    made = []
    for text, words in WORDS[language].items():
        if "{" in text:
            shape = re.sub(r"\\{(\d)\\}", r"(?P<n\1>[\\d.·⁻⁰¹²³⁴⁵⁶⁷⁸⁹∞]+)", re.escape(text))
            made.append((re.compile(shape.replace(r"\{words\}", "(?P<words>.+)")), words))
    return tuple(made)


def mark_language(app: Sphinx, document: nodes.document, name: str) -> None:
    """Mark the language of a translated page, and put the generated words into it."""
    language = app.env.metadata.get(name, {}).get("lang")
    if language not in WORDS:
        return
    # The writer turns such a class into the attribute ``lang``.
    for section in (node for node in document.children if isinstance(node, nodes.section)):
        section["classes"].append(f"language-{language}")
    for node in document.findall(nodes.Element):
        if ENGLISH & set(node.get("classes", ())):
            node["classes"].append("language-en")
    for text in list(document.findall(nodes.Text)):
        if isinstance(text.parent, nodes.raw):
            text.parent.replace(text, nodes.Text(translate_html(str(text), language)))
        elif (words := translate(str(text), language)) is not None:
            marked = nodes.inline("", words, classes=[f"language-{language}"])
            if _is_alone(text):
                marked = nodes.Text(words)
                text.parent["classes"].append(f"language-{language}")
            text.parent.replace(text, marked)
    for table in list(document.findall(nodes.table)):
        if "rederive-claims" in table.get("classes", ()):
            _hand_over(table, language)


def _is_alone(text: nodes.Text) -> bool:
    """Whether an element holds nothing else, so that it can be marked itself."""
    return len(text.parent.children) == 1


def _hand_over(table: nodes.table, language: str) -> None:
    """Leave the words for the script of the table before it."""
    words = html.escape(json.dumps(SCRIPT_WORDS[language], ensure_ascii=False, sort_keys=True))
    made = f'<template class="rederive-words" data-words="{words}"></template>'
    table.parent.insert(table.parent.index(table), nodes.raw("", made, format="html"))


def translate_html(text: str, language: str) -> str:
    """HTML that this book generates, with its words in another language.

    Folds and boxes hold English titles as well, so that the parts are marked.
    """

    def said(found: re.Match[str]) -> str:
        text = html.unescape(found[0])
        sign, name = _SIGNED.fullmatch(text).groups()
        return translate(text, language) or sign + (translate(name, language) or html.escape(name))

    def box(found: re.Match[str]) -> str:
        rest = found["rest"].split(", ")
        words = (SCRIPT_WORDS[language].get(word) or translate(word, language) for word in rest)
        rest = ", ".join(new or old for new, old in zip(words, rest, strict=True))
        return f"<title>{found['title']}: {rest}</title>"

    text = _BOX.sub(box, _LABEL.sub(said, _BETWEEN.sub(said, text)))
    text = _OWN.sub(rf'\g<0> lang="{language}"', text)
    return _TITLES.sub(r'\g<0> lang="en"', text)


def link_translations(app: Sphinx, document: nodes.document, name: str) -> None:
    """Lead from a page to its translations, in a line below its title."""
    section = next((node for node in document.children if isinstance(node, nodes.section)), None)
    if section is None:
        return
    for other, header in sorted(app.env.metadata.items()):
        language = header.get("lang")
        if language in WORDS and header.get("follows", "").removesuffix(".md") == name:
            address = app.builder.get_relative_uri(name, other)
            link = nodes.reference("", INVITATION[language], refuri=address, internal=True)
            classes = ["rederive-translation", f"language-{language}"]
            section.insert(1, nodes.paragraph("", "", link, classes=classes))
