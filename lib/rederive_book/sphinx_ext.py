"""Sphinx extension: cards, dashboard, findings and build status from the claims and the ledger.

Directives (in MyST pages)
--------------------------
``{as-stated} <claim id>``
    The statement as its source gives it, with reading, amendment and verdict.
``{claims-table} [folder]``
    The dashboard of all claims, or of one chapter.
``{findings} [folder]``
    What does not hold as stated, with the reading in which it does; and what holds.
``{claims-map} [folder]``
    What rests on what, as a picture and as a list: of the book, or of one chapter.
``{build-status}``
    Commit, parameters, machine, versions and times of the build.

Configuration
-------------
``rederive_chapters``
    Folder of the chapters, relative to the source folder (default ``chapters``, or the source
    folder itself where there is none).
``rederive_ledger``
    The ledger, relative to the source folder; empty, or no such file: nothing was run, and
    everything is rendered from the claims alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata, OptionSpec

from rederive_book import (
    __version__,
    ledger_file,
    site_code,
    site_links,
    site_map,
    site_nodes,
    site_pages,
    site_statements,
    site_status,
    site_text,
)
from rederive_book.claims import Claims, load
from rederive_book.site_nodes import Material

STATIC = Path(__file__).parent / "static"


def chapters_folder(app: Sphinx) -> Path:
    """Where the folders with the ``claims.yml`` files are."""
    if app.config.rederive_chapters:
        return Path(app.srcdir) / app.config.rederive_chapters
    usual = Path(app.srcdir) / "chapters"
    return usual if usual.is_dir() else Path(app.srcdir)


def ledger_path(app: Sphinx) -> Path | None:
    """Where the ledger should be, or None when the configuration names none."""
    name = app.config.rederive_ledger
    return Path(app.srcdir) / name if name else None


def read_material(app: Sphinx) -> None:
    """Read claims and ledger once, when the build starts."""
    path = ledger_path(app)
    try:
        claims = load(chapters_folder(app))
        found = ledger_file.read(path) if path is not None and path.exists() else None
    except ValueError as error:
        raise ExtensionError(f"rederive: {error}") from error
    app.rederive_material = (claims, found)


class _BookDirective(SphinxDirective):
    """What the directives share: the material, and the files a page depends on."""

    has_content = False
    optional_arguments = 0
    option_spec: ClassVar[OptionSpec] = {}

    def material(self) -> Material:
        claims, found = self.env.app.rederive_material
        for file in sorted(chapters_folder(self.env.app).glob("*/claims.yml")):
            self.env.note_dependency(str(file))
        if (path := ledger_path(self.env.app)) is not None:
            self.env.note_dependency(str(path))
        cells = self.env.app.rederive_cells
        for docname in cells:
            self.env.note_dependency(self.env.doc2path(docname))
        return Material(claims=claims, ledger=found, directive=self, cells=cells)

    def folder(self, claims: Claims) -> str | None:
        """The chapter named as argument, if any."""
        if not self.arguments:
            return None
        folder = self.arguments[0].strip()
        if folder not in claims.folders:
            known = ", ".join(claims.folders) or "none"
            raise self.error(f"{self.name}: no claims in chapter {folder!r}, there are: {known}")
        return folder


class AsStated(_BookDirective):
    """The card of one claim."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        material = self.material()
        claim_id = self.arguments[0].strip()
        if claim_id not in material.claims:
            raise self.error(f"as-stated: there is no claim {claim_id!r}")
        return site_pages.card(material, claim_id)


class _OfChapter(_BookDirective):
    """A directive about all claims, or those of the chapter given as argument."""

    optional_arguments = 1
    render: ClassVar[Callable[[Material, str | None], list[nodes.Node]]]

    def run(self) -> list[nodes.Node]:
        material = self.material()
        return type(self).render(material, self.folder(material.claims))


class ClaimsTable(_OfChapter):
    """The dashboard."""

    render = staticmethod(site_pages.table)


class Findings(_OfChapter):
    """What does not hold as stated, and what does."""

    render = staticmethod(site_pages.findings)


class ClaimsMap(_OfChapter):
    """What rests on what."""

    render = staticmethod(site_map.claims_map_of)


class BuildStatus(_BookDirective):
    """The facts and times of the build."""

    def run(self) -> list[nodes.Node]:
        return site_status.status(self.material())


class ReferencesWhereBuilt(SphinxPostTransform):
    """Drops references to theorems, and links to the library, that lead nowhere in this build.

    A dashboard names every claim, but a build may leave pages out; a reference from it must not
    become a warning. Runs before references are resolved.
    """

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        for place in list(self.document.findall(nodes.inline)):
            if site_nodes.REFERENCE not in place["classes"]:
                continue
            link = next(iter(place.findall(addnodes.pending_xref)))
            if site_nodes.is_built(self.env, link["reftarget"]):
                continue
            if site_nodes.KEPT in place["classes"]:
                link.replace_self(link.children)
            else:
                place.parent.remove(place)
        site_code.unlink_unknown(self.document, self.env)
        self._to_dashboard()

    def _to_dashboard(self) -> None:
        pages = sorted(d for d, of in self.env.metadata.items() if site_nodes.DASHBOARD in of)
        for place in list(self.document.findall(nodes.inline)):
            if site_nodes.IN_LEDGER not in place["classes"]:
                continue
            if not pages:
                place.parent.remove(place)
            elif pages[0] != self.env.docname:
                link = next(iter(place.findall(nodes.reference)))
                page = self.app.builder.get_relative_uri(self.env.docname, pages[0])
                link["refuri"] = f"{page}#{link.attributes.pop('refid')}"


def add_static_files(app: Sphinx, config: Config) -> None:
    """Make style sheets and scripts part of the site, and titles of theorems plain."""
    config.html_static_path.append(str(STATIC))
    if (
        getattr(config, "proof_title_format", None) == " (%t)"
    ):  # the title may end in brackets of its own
        config.proof_title_format = " %t"


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension with Sphinx."""
    app.add_config_value("rederive_chapters", "", "env", types=(str,))
    app.add_config_value("rederive_ledger", "", "env", types=(str,))
    app.add_directive("as-stated", AsStated)
    app.add_directive("claims-table", ClaimsTable)
    app.add_directive("findings", Findings)
    app.add_directive("claims-map", ClaimsMap)
    app.add_directive("build-status", BuildStatus)
    app.add_node(site_map.claims_map_node)
    app.add_transform(site_code.LinkFiguresToCells)
    app.add_post_transform(ReferencesWhereBuilt)
    app.add_post_transform(site_map.DrawMaps)
    app.add_css_file("rederive-book.css")
    app.add_css_file("rederive-screens.css")
    # Deferred and not asynchronous: they have to run before MathJax.
    app.add_js_file("rederive-formulas.js", loading_method="defer")
    app.add_js_file("rederive-print.js", loading_method="defer")
    app.add_js_file("rederive-claims.js", loading_method="defer")
    app.add_js_file("rederive-animations.js", loading_method="defer")
    app.add_js_file("rederive-hover.js", loading_method="defer")
    app.add_js_file("rederive-reveal.js", loading_method="defer")
    app.connect("config-inited", add_static_files)
    app.connect("builder-inited", read_material)
    app.connect("env-before-read-docs", site_code.read_code)
    app.connect("html-page-context", site_links.add_links)
    app.connect("html-page-context", site_text.mend_page)
    # Before Sphinx decides which pages load MathJax, at the usual priority of 500.
    app.connect("html-page-context", site_statements.add_to_page, priority=400)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
