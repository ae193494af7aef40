"""Sphinx extension: MathJax served from the site itself, so that reading needs no network.

Nothing of MathJax is kept in this repository. What a page can ask for is copied, while the site is
built, from the installed package ``django-static-mathjax``, which is plain MathJax under another
name (Apache 2.0; its licence is copied along).
"""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

#: Where MathJax lies in the site, relative to ``_static``.
FOLDER = "mathjax"
#: The script that pages load: TeX and MathML in, HTML with web fonts out.
SCRIPT = "tex-mml-chtml.js"
#: What that script fetches on demand: fonts, TeX extensions, and the speech of formulas in
#: English, so that MathJax's accessibility menu works offline too.
FILES = (
    SCRIPT,
    "output/chtml/fonts/woff-v2",
    "input/tex/extensions",
    "a11y",
    "sre/mathmaps/base.json",
    "sre/mathmaps/en.json",
)


def source() -> Path:
    """The folder of MathJax inside the installed package.

    Raises
    ------
    ExtensionError
        If the package is not installed.
    """
    try:
        folder = Path(str(resources.files("mathjax"))) / "static" / "mathjax"
    except ModuleNotFoundError:
        folder = Path()
    if not (folder / "es5" / SCRIPT).is_file():
        raise ExtensionError(
            "mathjax: expected the package django-static-mathjax to be installed, found no "
            f"es5/{SCRIPT}"
        )
    return folder


def copy_to(static: Path) -> Path:
    """Copy MathJax below a site's folder of static files.

    Parameters
    ----------
    static : Path
        The ``_static`` folder of the built site.

    Returns
    -------
    Path
        The script that pages load.
    """
    origin, target = source(), static / FOLDER
    for name in FILES:
        path = origin / "es5" / name
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target / name, dirs_exist_ok=True)
        else:
            shutil.copyfile(path, target / name)
    shutil.copyfile(origin / "LICENSE", target / "LICENSE")
    return target / SCRIPT


def _point_to_copy(app: Sphinx, config: object) -> None:
    config.mathjax_path = f"{FOLDER}/{SCRIPT}"


def _copy(app: Sphinx) -> None:
    # Before the pages are written, because each names the script with its checksum.
    if app.builder.format == "html":
        copy_to(Path(app.outdir) / "_static")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.setup_extension("sphinx.ext.mathjax")
    app.connect("config-inited", _point_to_copy)
    app.connect("builder-inited", _copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
