"""Claims as pieces of a document: references that may vanish, badges of verdicts, sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from rederive_book.claims import Claim, Claims
from rederive_book.code_uses import Cell
from rederive_book.comparison import verdict_words
from rederive_book.sources import THIS_BOOK, cite, papers

#: Class of a piece of text that is left out when the theorem it refers to is not in the build.
REFERENCE = "rederive-ref"

#: Class, beside `REFERENCE`, of a piece whose words then stay, without the link.
KEPT = "rederive-kept"

#: Class of a link to a claim's row in the dashboard; gone where no page has the dashboard.
IN_LEDGER = "rederive-in-ledger"

#: Key, in the metadata of a page, of the mark that it has the dashboard of all claims.
DASHBOARD = "rederive_dashboard"


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
    cells : mapping of str to tuple of Cell
        The code cells of the pages that have some.
    """

    claims: Claims
    ledger: Mapping[str, Any] | None
    directive: SphinxDirective
    cells: Mapping[str, tuple[Cell, ...]] = field(default_factory=dict)

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


def row_id(claim: Claim) -> str:
    """The anchor of a claim's row in a dashboard."""
    return f"claim-{claim.label}"


def ledger_link(claim: Claim, before: str) -> nodes.inline:
    """To the claim's row in the dashboard of all claims, once it is known where that is."""
    link = nodes.reference("", "its row in the ledger", refid=row_id(claim), internal=True)
    return nodes.inline("", before, link, classes=[IN_LEDGER])


def is_built(env: BuildEnvironment, label: str) -> bool:
    """Whether the theorem with a label is in this build, and numbered if it should be."""
    proof = getattr(env, "proof_list", {}).get(label)
    if proof is None:
        return False
    numbers = env.toc_fignumbers.get(proof["docname"], {})
    return proof["nonumber"] or label in numbers.get(proof["countertype"], {})


def theorem_name(env: BuildEnvironment, label: str) -> str:
    """*Theorem 2.1*, of a label that is in this build."""
    proof = env.proof_list[label]
    word = proof["realtype"].title()
    if proof["nonumber"]:
        return word
    number = env.toc_fignumbers[proof["docname"]][proof["countertype"]][label]
    return f"{word} {'.'.join(map(str, number))}"
