"""A throw-away book with its own copy of the library, for tests that build one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

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


class ThrowAwayBook:
    """A book of a few pages with its own copy of the library."""

    def __init__(self, root: Path, pages: dict[str, str]) -> None:
        self.root = root
        shutil.copytree(ROOT / "lib", root / "lib", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("task_book.py", "pyproject.toml", "requirements.lock"):
            shutil.copy(ROOT / name, root)
        shutil.copy(ROOT / "requirements-torch.txt", root)
        for name in ("alpha", "beta"):
            (root / "lib" / "rederive" / f"{name}.py").write_text(f'NAME = "{name}"\n')
        (root / "chapters" / "demo").mkdir(parents=True)
        (root / "chapters" / "index.md").write_text("# A book\n")
        files = "".join(f"  - file: chapters/demo/{name}\n" for name in pages)
        toc = f"format: jb-book\nroot: chapters/index\nparts:\n- chapters:\n{files}"
        (root / "_toc.yml").write_text(toc)
        for name, code in pages.items():
            self.write(name, code)

    def write(self, name: str, code: str) -> None:
        cell = f"\n```{{code-cell}} ipython3\n{code}\n```\n"
        path = self.root / "chapters" / "demo" / f"{name}.md"
        path.write_text(HEADER.format(title=name.title()) + cell)

    def command(self, *arguments: str) -> dict:
        return {
            "args": [sys.executable, "-m", "rederive_book", "book", "--no-site", *arguments],
            "cwd": self.root,
            "env": {**os.environ, "PYTHONPATH": str(self.root / "lib")},
            "text": True,
        }

    def build(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(**self.command(*arguments), capture_output=True, timeout=180)

    def notebook(self, name: str) -> Path:
        return self.root / "_build" / "notebooks" / "demo" / f"{name}.ipynb"

    def ran(self, result: subprocess.CompletedProcess) -> set[str]:
        lines = [line for line in result.stdout.splitlines() if line.startswith("page[")]
        return {line.split("[demo/")[1].split("]")[0] for line in lines if ": done in" in line}
