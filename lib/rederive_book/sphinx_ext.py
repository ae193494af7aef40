"""Sphinx extension: cards, dashboard, findings and build status from the claims and the ledger.

Directives (in MyST pages)
--------------------------
``{as-stated} <claim id>``
    The statement as its source gives it, with reading, amendment and verdict.
``{claims-table} [folder]``
    The dashboard of all claims, or of one chapter.
``{findings} [folder]``
    What does not hold as stated, with the reading in which it does; and what holds.
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

from rederive_book import __version__, ledger_file, site_nodes, site_pages, site_status
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
        return Material(claims=claims, ledger=found, directive=self)

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


class BuildStatus(_BookDirective):
    """The facts and times of the build."""

    def run(self) -> list[nodes.Node]:
        return site_status.status(self.material())


class ReferencesWhereBuilt(SphinxPostTransform):
    """Drops references to theorems whose page is not in this build.

    A dashboard names every claim, but a build may leave pages out; a reference from it must not
    become a warning. Runs before references are resolved.
    """

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        for place in list(self.document.findall(nodes.inline)):
            if site_nodes.REFERENCE not in place["classes"]:
                continue
            link = next(iter(place.findall(addnodes.pending_xref)))
            if self._is_built(link["reftarget"]):
                continue
            if site_nodes.KEPT in place["classes"]:
                link.replace_self(link.children)
            else:
                place.parent.remove(place)

    def _is_built(self, label: str) -> bool:
        proof = getattr(self.env, "proof_list", {}).get(label)
        if proof is None:
            return False
        numbers = self.env.toc_fignumbers.get(proof["docname"], {})
        return proof["nonumber"] or label in numbers.get(proof["countertype"], {})


def add_static_files(app: Sphinx, config: Config) -> None:
    """Make the extension's style sheet and script part of the site."""
    config.html_static_path.append(str(STATIC))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension with Sphinx."""
    app.add_config_value("rederive_chapters", "", "env", types=(str,))
    app.add_config_value("rederive_ledger", "", "env", types=(str,))
    app.add_directive("as-stated", AsStated)
    app.add_directive("claims-table", ClaimsTable)
    app.add_directive("findings", Findings)
    app.add_directive("build-status", BuildStatus)
    app.add_post_transform(ReferencesWhereBuilt)
    app.add_css_file("rederive-book.css")
    app.add_js_file("rederive-claims.js", loading_method="defer")
    app.add_js_file("rederive-animations.js", loading_method="defer")
    app.connect("config-inited", add_static_files)
    app.connect("builder-inited", read_material)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
