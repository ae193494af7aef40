"""A throw-away book with its own copy of the library, for tests that build one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from audit import small_book


class ThrowAwayBook:
    """A book of a few pages with its own copy of the library."""

    def __init__(self, root: Path, pages: dict[str, str]) -> None:
        self.root = root
        small_book.lay_out(root, pages)
        for name in ("alpha", "beta"):
            (root / "lib" / "rederive" / f"{name}.py").write_text(f'NAME = "{name}"\n')
        for name, code in pages.items():
            self.write(name, code)

    def write(self, name: str, code: str) -> None:
        path = self.root / "chapters" / "demo" / f"{name}.md"
        path.write_text(small_book.page(name.title(), code), encoding="utf-8")

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
