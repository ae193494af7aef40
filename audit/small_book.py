"""A book of three short pages with the library of the checkout, for trials that build it often."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = (
    *("task_book.py", "pyproject.toml", "requirements.lock", "requirements-torch.txt"),
    *("_config.yml", "references.bib"),
)

HEADER = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
# {title}

```{{code-cell}} ipython3
:tags: [parameters, remove-cell]
profile = "quick"
seed = 2026
device = "cpu"
```
"""
CLAIM = """- id: demo.{name}
  title: The {name}
  source: {{paper: this-book}}
  statement: {statement}
  verdict: holds
  reading: as it stands
"""
THEOREM = """
:::{{prf:theorem}} The {name}
:label: demo-{name}

Text.
:::

```{{as-stated}} demo.{name}
```
"""
CELL = "\n```{{code-cell}} ipython3\n{code}\n```\n"

SQUARE = """import numpy as np
from rederive_book import checks
values = np.random.default_rng(seed).normal(size=50)
checks.identity("demo.square", "a square", tries="statement", measured=values * values,
    predicted=values ** 2, operations=2,
    control=checks.Control("a cube", predicted=values ** 3))"""
MEAN = """import numpy as np
from rederive_book import checks
values = np.random.default_rng(seed).normal(size=10_000)
checks.estimate("demo.mean", "a mean", tries="statement", predicted=0.0, replicates=values,
    control=checks.Control("a mean of one half", predicted=0.5))"""
PICTURE = """import matplotlib.pyplot as plt
import numpy as np
from rederive_book import figures
figures.use_style()
values = np.sort(np.random.default_rng(seed).normal(size=200))
figure, axes = plt.subplots()
axes.plot(values, **figures.STYLES["theory"])
figures.show(figure, "sorted", {"value": values})"""
PAGES = {"square": (SQUARE, True), "mean": (MEAN, True), "picture": (PICTURE, False)}


def lay_out(root: Path, pages: Iterable[str]) -> Path:
    """A book without pages, with the library: its contents name them, and the folder for them."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "lib", root / "lib", ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, root)
    chapter = root / "chapters" / "demo"
    chapter.mkdir(parents=True)
    (root / "chapters" / "index.md").write_text("# A small book\n", encoding="utf-8")
    files = "".join(f"  - file: chapters/demo/{name}\n" for name in pages)
    toc = f"format: jb-book\nroot: chapters/index\nparts:\n- chapters:\n{files}"
    (root / "_toc.yml").write_text(toc, encoding="utf-8")
    return chapter


def page(title: str, code: str, theorem: str = "") -> str:
    """The text of a page with one cell."""
    return HEADER.format(title=title) + theorem + CELL.format(code=code)


def make(root: Path) -> Path:
    """Lay the book out in a folder that is empty or missing, and return the folder."""
    chapter, stated = lay_out(root, PAGES), ""
    for name, (code, claimed) in PAGES.items():
        theorem = THEOREM.format(name=name) if claimed else ""
        if claimed:
            stated += CLAIM.format(name=name, statement=f"what is said of the {name}")
        (chapter / f"{name}.md").write_text(page(name.title(), code, theorem), encoding="utf-8")
    (chapter / "claims.yml").write_text(stated, encoding="utf-8")
    return root


def command(root: Path, *arguments: str) -> dict[str, object]:
    """What `subprocess` needs for a build of the book in this folder."""
    return {
        "args": [sys.executable, "-m", "rederive_book", "book", *arguments],
        "cwd": root,
        "env": os.environ | {"PYTHONPATH": str(root / "lib"), "PYTHONIOENCODING": "utf-8"},
    }


def build(root: Path, *arguments: str, timeout: float = 1800) -> subprocess.CompletedProcess:
    """Build the book of a folder and wait for the end."""
    return subprocess.run(
        **command(root, *arguments), capture_output=True, text=True, timeout=timeout, check=False
    )
