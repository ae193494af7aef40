"""Sphinx extension: links from the site to its repository, where the build knows which that is.

The sources name no address, so that forks and copies do not point to somebody else. GitHub tells
its workflows where they run; a site built elsewhere has no such links.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from sphinx.application import Sphinx

CONTEST = "issues/new?template=contest-a-verdict.yml"


def address(environment: Mapping[str, str]) -> str | None:
    """The address of the repository that a GitHub workflow runs in, or None outside of one."""
    server = environment.get("GITHUB_SERVER_URL", "").rstrip("/")
    name = environment.get("GITHUB_REPOSITORY", "").strip("/")
    if urlsplit(server).scheme != "https" or name.count("/") != 1:
        return None
    return f"{server}/{name}"


def _link(app: Sphinx, config: object) -> None:
    url = address(os.environ)
    if url is None:
        return
    contest = {
        "name": "Contest a verdict",
        "url": f"{url}/{CONTEST}",
        "icon": "fa-solid fa-scale-balanced",
        "type": "fontawesome",
    }
    config.html_theme_options = {
        **config.html_theme_options,
        "repository_url": url,
        "repository_provider": "github",
        "use_repository_button": True,
        "icon_links": [contest],
    }


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("config-inited", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
