"""The guides, followed to the letter in a copy of the book: files, commands, what is printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pybtex.database
import pytest
import yaml

from rederive_book import claims, ledger, pages
from rederive_book.labels import pages_of

ROOT = Path(__file__).resolve().parents[1]
GUIDES = ("add-a-paper", "reproduce-a-figure", "cite-a-claim")
ABOVE = "  - caption: What came out\n"
COMMAND = "the page without the site"
COPIED = (
    *("references.bib", "task_book.py", "pyproject.toml"),
    *("requirements.lock", "requirements-torch.txt"),
)


@dataclass(frozen=True)
class Block:
    """A code block of a guide: its caption, a file's path or what it is, and its text."""

    caption: str
    text: str


def blocks(guide: str) -> list[Block]:
    """The captioned code blocks of a guide, in order."""
    text = (ROOT / "chapters" / f"{guide}.md").read_text(encoding="utf-8")
    found = re.findall(
        r"^(`{3,})\{code-block\} \w+\n:caption: ([^\n]+)\n\n(.*?)^\1$", text, re.M | re.S
    )
    return [Block(caption, body) for _, caption, body in found]


def block(guide: str, caption: str) -> str:
    """The text of the one block with this caption."""
    (text,) = [one.text for one in blocks(guide) if one.caption == caption]
    return text


def copy_of_the_book(root: Path, *chapters: str) -> Path:
    """The book without results, and of its chapters only these: a build then takes seconds."""
    shutil.copytree(ROOT / "lib", root / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "chapters").mkdir()
    for path in (ROOT / "chapters").glob("*.md"):
        shutil.copy(path, root / "chapters")
    for folder in chapters:
        shutil.copytree(ROOT / "chapters" / folder, root / "chapters" / folder)
    for name in COPIED:
        shutil.copy(ROOT / name, root)
    lines, left_out = [], False
    for line in (ROOT / "_toc.yml").read_text(encoding="utf-8").splitlines(keepends=True):
        inside = re.search(r"file: chapters/([\w-]+)/", line)
        if inside:
            left_out = inside[1] not in chapters
        elif line.strip() != "sections:":
            left_out = False
        if not left_out:
            lines.append(line)
    (root / "_toc.yml").write_text("".join(lines), encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def with_paper(tmp_path_factory) -> Path:
    """A copy after steps 1 to 4 of the guide: every block goes where its caption says."""
    copy = copy_of_the_book(tmp_path_factory.mktemp("paper") / "book")
    for one in blocks("add-a-paper"):
        path = copy / one.caption
        if one.caption == "_toc.yml":
            text = path.read_text(encoding="utf-8")
            assert text.count(ABOVE) == 1
            path.write_text(text.replace(ABOVE, one.text + ABOVE), encoding="utf-8")
        elif path.is_file():
            text = path.read_text(encoding="utf-8")
            path.write_text(text.rstrip("\n") + "\n\n" + one.text, encoding="utf-8")
        elif path.suffix in (".yml", ".md"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(one.text, encoding="utf-8")
    return copy


def run(root: Path, command: str) -> subprocess.CompletedProcess:
    """Run a command of a guide as this Python, with the copy's own library."""
    program, *arguments = command.split()
    assert program.endswith("python")
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "lib"), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


def test_a_paper_added_by_the_guide_gets_its_verdict(with_paper):
    assert ABOVE.strip() in (ROOT / "chapters" / "add-a-paper.md").read_text(encoding="utf-8")
    result = run(with_paper, block("add-a-paper", COMMAND))
    assert result.returncode == 0, result.stdout + result.stderr
    found = json.loads((with_paper / "_build" / "claims.json").read_text(encoding="utf-8"))
    (claim,) = found["claims"]
    assert (claim["id"], claim["verdict"]) == ("toy.mean-variance", "holds")
    (check,) = claim["checks"]
    assert check["outcome"] == "pass"
    assert check["control"]["rejected"] is True
    assert check["control"]["distance"] > 1e6


def test_the_files_that_the_guide_adds_to_stay_whole(with_paper):
    sources = yaml.safe_load(
        (with_paper / "lib/rederive_book/sources.yml").read_text(encoding="utf-8")
    )
    assert list(sources)[-1] == "toy2026"
    database = pybtex.database.parse_file(str(with_paper / "references.bib"), bib_format="bibtex")
    assert database.entries["toy2026"].fields["eprint"] == sources["toy2026"]["arxiv"]
    assert "toy/the-mean" in pages.toc_names(with_paper)


def test_a_build_that_must_fail_says_what_the_guide_says(with_paper):
    stated = with_paper / "chapters" / "toy" / "claims.yml"
    right = stated.read_text(encoding="utf-8")
    stated.write_text(right.replace("verdict: holds", "verdict: open"), encoding="utf-8")
    try:
        result = run(with_paper, block("add-a-paper", COMMAND))
    finally:
        stated.write_text(right, encoding="utf-8")
    assert result.returncode == 1
    said = re.sub(r"[│\s]+", " ", result.stdout)  # without the frame that pytask draws
    assert block("add-a-paper", "what the build says").strip() in said


def test_the_figure_of_the_guide_comes_out_again(tmp_path):
    copy = copy_of_the_book(tmp_path / "book", "pooling")
    result = run(copy, block("reproduce-a-figure", COMMAND))
    assert result.returncode == 0, result.stdout + result.stderr
    script = copy / "again.py"
    script.write_text(block("reproduce-a-figure", "again.py"), encoding="utf-8")
    printed = run(copy, "python again.py")
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout == block("reproduce-a-figure", "what it prints")


def test_the_cell_that_the_guide_shows_is_on_the_page():
    for one in blocks("reproduce-a-figure"):
        if one.caption.startswith("chapters/"):
            assert one.text in (ROOT / one.caption).read_text(encoding="utf-8")


def test_the_entry_of_the_guide_is_what_the_ledger_gives(tmp_path):
    stated = claims.load(ROOT / "chapters")
    texts = ledger.read_pages({page.name: page.source for page in pages.read_book(ROOT)})
    placed = pages_of(stated, texts)
    entries = [
        {
            "id": claim.id,
            "title": claim.title,
            "verdict": claim.verdict,
            "page": placed[claim.id],
            "anchor": claim.label,
        }
        for claim in stated.values()
    ]
    shown = block("cite-a-claim", "what it prints")
    commit = re.search(r"commit ([0-9a-f]{40})", shown)[1]
    made = {"run": {"commit": commit}, "claims": entries}
    (tmp_path / "claims.json").write_text(json.dumps(made), encoding="utf-8")
    (tmp_path / "cite.py").write_text(block("cite-a-claim", "cite.py"), encoding="utf-8")
    printed = run(tmp_path, "python cite.py")
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout == shown
    entry = pybtex.database.parse_string(printed.stdout, "bibtex").entries
    assert list(entry) == ["rederived-regression-decomposition"]


def test_the_day_in_the_guide_is_in_the_history_of_the_verdicts():
    day = re.search(r'DAY = "([\d-]+)"', block("cite-a-claim", "cite.py"))[1]
    history = (ROOT / "chapters" / "if-we-are-wrong.md").read_text(encoding="utf-8")
    assert f"\n| {day} |" in history
