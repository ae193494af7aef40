"""Translated pages: which page each of them follows, and how its language is marked on the site.

A translated page names in its front matter its language, the page that it follows, and the
SHA-256 of that page's bytes when it was last brought up to date; its last line repeats the hash
for readers. ``python -m rederive_book.translations`` tells which pages are stale, and with
``--stamp`` it writes the hashes of today.

As a Sphinx extension it marks the text of such a page with its language, so that fonts,
hyphenation and screen readers follow, and puts the words that this book generates (heads of
tables, verdicts, names of theorems) into that language; see `rederive_book.site_translations`. A
page that has a translation leads to it below its title.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sphinx.application import Sphinx

from rederive_book.pages import front_matter

#: Generated words by language, with numbers as ``{0}`` and further generated words as ``{words}``.
#: `tests/test_hindi.py` proves that each of them still is generated, and that none is missing.
WORDS = {
    "hi": {
        "Claim": "दावा (claim)",
        "Source": "स्रोत (source)",
        "Verdict": "फ़ैसला (verdict)",
        "Checks": "जाँचें (checks)",
        "Controls rejected": "अस्वीकृत प्रतिजाँचें (controls rejected)",
        "this book": "यह पुस्तक",
        "Regression": "रिग्रेशन (regression)",
        "Pooling": "पूलिंग (pooling)",
        "Flow": "प्रवाह (flow)",
        "Real models": "वास्तविक मॉडल (real models)",
        "Refuted as stated": "जैसा कहा गया, वैसा खंडित (refuted)",
        "True in an amended form": "संशोधित रूप में सही (amended)",
        "Open": "अनिर्णीत (open)",
        "Not tried in this build": "इस निर्माण में नहीं परखे गए (untried)",
        "Holds as stated": "जैसा कहा गया, वैसा सही (holds)",
        "It holds in this reading": "इस अर्थ में सही है",
        "Reading in which the source is right": "वह अर्थ जिसमें स्रोत सही है",
        "Reading": "अर्थ (reading)",
        "What is missing": "क्या बाक़ी है",
        "What we claim": "हमारा दावा",
        "What we predicted": "हमारी भविष्यवाणी",
        "As our source states it": "जैसा हमारा स्रोत कहता है",
        "What holds": "क्या सही है",
        "Rests on": "किस पर टिका है",
        "Nothing was run for this page: the verdicts are the declared ones.": (
            "इस पृष्ठ के लिए कुछ चलाया नहीं गया: फ़ैसले वे हैं जो घोषित किए गए हैं।"
        ),
        "Every check is made together with a negative control, which has to be rejected. How far "
        "it is off is told in the unit of the check's own limit, for the nearest control of each "
        "claim.": (
            "हर जाँच के साथ एक प्रतिजाँच (negative control) की जाती है, जिसका अस्वीकार होना ज़रूरी "
            "है। वह कितनी दूर है, यह हर दावे की सबसे पास की प्रतिजाँच के लिए, जाँच की अपनी सीमा की "
            "इकाई में बताया गया है: मानक त्रुटि (standard error) या सीमा (bound)।"
        ),
        "{0} of {1}, by proof": "{1} में से {0}, प्रमाण से",
        "{0} of {1}, nearest {2} bounds off": "{1} में से {0}, सबसे पास वाली {2} सीमा दूर",
        "{0} of {1}, nearest {2} standard errors off": (
            "{1} में से {0}, सबसे पास वाली {2} मानक त्रुटि दूर"
        ),
        "{0} function of the library": "लाइब्रेरी का {0} फलन (function)",
        "{0} functions of the library": "लाइब्रेरी के {0} फलन (functions)",
        "An arrow leads from a claim to one that rests on it. A box is a link to its theorem; its "
        "sign, its stripe and its border tell the verdict.": (
            "तीर किसी दावे से उस दावे तक जाता है जो उस पर टिका है। हर खाना अपने प्रमेय की कड़ी "
            "(link) है; उसका चिह्न, उसकी पट्टी और उसका किनारा फ़ैसला बताते हैं।"
        ),
        "Boxes in slanted letters belong to other chapters.": (
            "तिरछे अक्षरों वाले खाने दूसरे अध्यायों के हैं।"
        ),
        "Map of the claims of {words}": "दावों का मानचित्र: {words}",
        "The same as a list": "यही सूची के रूप में",
        "rests on": "इन पर टिका है:",
        "; rests on": "; इस पर टिका है:",
        "This is refuted as stated; what is used is the theorem in its place.": (
            "यह जैसा कहा गया, वैसा खंडित है; यहाँ उसकी जगह सिद्ध किया गया प्रमेय काम में लिया गया है।"
        ),
        "This foundation is open.": "यह आधार अनिर्णीत है।",
        "✓ holds": "✓ सही (holds)",
        "≈ amended": "≈ संशोधित (amended)",
        "✗ refuted": "✗ खंडित (refuted)",
        "? open": "? अनिर्णीत (open)",
        "– untried": "– नहीं परखा गया (untried)",
        "Theorem": "प्रमेय",
        "Proposition": "प्रतिज्ञप्ति",
        "Conjecture": "अनुमान",
        "Observation": "प्रेक्षण",
    }
}
#: What the script of the tables says, by language: verdicts stand alone there.
SCRIPT_WORDS = {
    "hi": {
        "Show claims": "दावे छाँटें",
        "Chapter": "अध्याय",
        "Verdict": "फ़ैसला",
        "all": "सभी",
        "holds": "सही",
        "amended": "संशोधित",
        "refuted": "खंडित",
        "open": "अनिर्णीत",
        "untried": "नहीं परखे गए",
        "{0} of {1} claims": "{1} में से {0} दावे",
    }
}
#: The words that lead to a translation, in its language.
INVITATION = {"hi": "यह पृष्ठ हिन्दी में पढ़ें"}


@dataclass(frozen=True)
class Translation:
    """A page that follows another one, given by paths relative to the book.

    Attributes
    ----------
    page, follows : str
    language : str
    stamped : str
        The SHA-256 of the page that is followed, as the translation names it.
    """

    page: str
    follows: str
    language: str
    stamped: str


def digest(path: Path) -> str:
    """The SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read(root: Path) -> tuple[Translation, ...]:
    """Every page below ``chapters/`` that says it follows another one, in order of the paths.

    Raises
    ------
    ValueError
        Naming the page, if it does not say all that a translation has to, or follows no page.
    """
    found = []
    for path in sorted((root / "chapters").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        header = front_matter(text)
        if "follows" not in header:
            continue
        page = path.relative_to(root).as_posix()
        language, follows, stamped = (
            str(header.get(key, "")) for key in ("lang", "follows", "sha256")
        )
        if language not in WORDS:
            raise ValueError(f"{page}: lang: expected one of {', '.join(WORDS)}, got {language!r}")
        if not (root / follows).is_file():
            raise ValueError(f"{page}: follows: expected a page of the book, got {follows!r}")
        if not re.fullmatch(r"[0-9a-f]{64}", stamped) or text.count(stamped) != 2:
            raise ValueError(
                f"{page}: sha256: expected 64 hexadecimal digits in the front matter and again in "
                f"the last line, got {stamped!r}"
            )
        found.append(Translation(page, follows, language, stamped))
    return tuple(found)


def stale(root: Path) -> list[str]:
    """One line for every translation whose English page has changed since it was stamped."""
    lines = []
    for one in read(root):
        new = digest(root / one.follows)
        if new != one.stamped:
            lines.append(
                f"{one.page} is stale: {one.follows} has changed, its SHA-256 is now {new}. "
                "Carry the change over, then run "
                f"python -m rederive_book.translations --stamp {one.page}"
            )
    return lines


def stamp(root: Path, pages: Iterable[str] = ()) -> list[str]:
    """Write the hashes of today into these translations, or into all; returns those that changed.

    Raises
    ------
    ValueError
        For a page that is no translation.
    """
    known = {one.page: one for one in read(root)}
    changed = []
    for page in pages or known:
        if page not in known:
            raise ValueError(f"page: expected one of {', '.join(known)}, got {page!r}")
        old, new = known[page].stamped, digest(root / known[page].follows)
        if old != new:
            path = root / page
            path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
            changed.append(page)
    return changed


def main(arguments: list[str] | None = None) -> int:
    """Tell which translations are stale, with status 1 if there is one; or stamp them."""
    parser = argparse.ArgumentParser(prog="rederive_book.translations", description=__doc__)
    parser.add_argument("--stamp", nargs="*", metavar="PAGE", help="these pages, or all")
    given = parser.parse_args(arguments)
    root = Path.cwd()
    try:
        if given.stamp is not None:
            print("\n".join(stamp(root, given.stamp)) or "Nothing to stamp.")
            return 0
        lines = stale(root)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines) or "Every translation follows its page.")
    return 1 if lines else 0


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    from rederive_book import site_translations

    app.connect("doctree-resolved", site_translations.mark_language)
    app.connect("doctree-resolved", site_translations.link_translations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    sys.exit(main())
