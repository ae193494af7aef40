"""Claims as pieces of a document: references that may vanish, badges of verdicts, sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from rederive_book.claims import Claim, Claims
from rederive_book.comparison import verdict_words
from rederive_book.sources import THIS_BOOK, cite, papers

#: Class of a piece of text that is left out when the theorem it refers to is not in the build.
REFERENCE = "rederive-ref"

#: Class, beside `REFERENCE`, of a piece whose words then stay, without the link.
KEPT = "rederive-kept"


@dataclass(frozen=True)
class Material:
    """What there is to show, and the directive that shows it.

    Attributes
    ----------
    claims : Claims
    ledger : mapping or None
        None when nothing was run.
    directive : SphinxDirective
        Parses text and knows the page.
    """

    claims: Claims
    ledger: Mapping[str, Any] | None
    directive: SphinxDirective

    def entry(self, claim: Claim) -> Mapping[str, Any] | None:
        """The ledger's entry of a claim; None without a ledger, or in one of an older state."""
        entries = self.ledger["claims"] if self.ledger else ()
        return next((entry for entry in entries if entry["id"] == claim.id), None)

    def verdict(self, claim: Claim) -> str | None:
        """The verdict found, or the declared one when nothing was run; None is *untried*."""
        entry = self.entry(claim)
        return claim.verdict if entry is None else entry["verdict"]

    def settled(self, claim: Claim) -> str:
        """The verdict found; the declared one where a claim was not tried."""
        return self.verdict(claim) or claim.verdict

    def failed(self, claim: Claim) -> list[Claim]:
        """What the claim rests on without its being established."""
        verdicts = {other.id: self.settled(other) for other in self.claims.values()}
        return [self.claims[used] for used in self.claims.rests_on_failed(claim.id, verdicts)]

    def block(self, text: str) -> list[nodes.Node]:
        """Text of a claim as blocks."""
        holder = nodes.Element()
        lines = StringList(text.splitlines(), source=self.directive.get_source_info()[0])
        self.directive.state.nested_parse(lines, 0, holder)
        return holder.children

    def inline(self, text: str) -> list[nodes.Node]:
        """Text of a claim within a line."""
        return self.directive.state.inline_text(text, self.directive.lineno)[0]

    def reference(self, claim: Claim, before: str = "", after: str = "") -> nodes.inline:
        """*Theorem 2.1*, linked; the whole piece vanishes if that page is not in the build."""
        link = self._link(claim, nodes.inline("", claim.label))
        return nodes.inline("", before, link, nodes.Text(after), classes=[REFERENCE])

    def title(self, claim: Claim) -> nodes.inline:
        """The title, linked to the theorem; plain if that page is not in the build."""
        words = nodes.inline("", "", *self.inline(claim.title))
        link = self._link(claim, nodes.inline("", "", words))
        return nodes.inline("", "", link, classes=[REFERENCE, KEPT])

    def _link(self, claim: Claim, content: nodes.inline) -> addnodes.pending_xref:
        # sphinx-proof shows the first child of the content, save where that is the bare label,
        # which it replaces by the number.
        return addnodes.pending_xref(
            "",
            content,
            refdomain="prf",
            reftype="ref",
            reftarget=claim.label,
            refdoc=self.directive.env.docname,
            refexplicit=False,
            refwarn=True,
        )


def chapter_name(folder: str) -> str:
    """A chapter's folder as words."""
    return folder.replace("-", " ").capitalize()


def badge(verdict: str | None) -> nodes.inline:
    """A verdict as sign and word, framed by the style sheet."""
    word = verdict or "untried"
    return nodes.inline(
        "", verdict_words(verdict), classes=["rederive-badge", f"rederive-verdict-{word}"]
    )


def source(claim: Claim) -> list[nodes.Node]:
    """Where the statement comes from, linked."""
    if claim.paper == THIS_BOOK:
        return [nodes.Text("this book")]
    paper = papers()[claim.paper]
    link = nodes.reference("", f"arXiv:{paper.arxiv}", refuri=paper.url, internal=False)
    return [nodes.Text(f"{cite(claim.paper, claim.row)} ("), link, nodes.Text(")")]
