"""The pipeline on a throw-away book: what runs again, what is refused, and how it fails."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import pytest
from audit.small_book import ROOT
from throw_away import ThrowAwayBook

from rederive_book import models
from rederive_book.kernels import PageKernelManager


@pytest.fixture
def book(tmp_path):
    """Two pages, one of which reaches the module alpha, the other one beta."""
    return ThrowAwayBook(
        tmp_path,
        {
            "first": "from rederive import alpha\nprint(alpha.NAME, seed)",
            "second": "from rederive.beta import NAME\nprint(NAME, seed)",
        },
    )


def text_of(path: Path) -> str:
    cells = nbformat.read(path, as_version=4).cells
    return "".join(o.text for c in cells if c.cell_type == "code" for o in c.outputs)


def test_only_pages_whose_content_changed_run_again(book):
    result = book.build()
    assert result.returncode == 0, result.stdout + result.stderr
    assert book.ran(result) == {"first", "second"}
    assert text_of(book.notebook("first")) == "alpha 2026\n"

    for path in book.root.rglob("*.[mp][dy]"):
        os.utime(path, (1, 1))
    assert book.ran(book.build()) == set()

    module = book.root / "lib" / "rederive" / "beta.py"
    module.write_text('NAME = "gamma"\n')
    assert book.ran(book.build()) == {"second"}
    assert text_of(book.notebook("second")) == "gamma 2026\n"

    book.write("first", "print(seed + 1)")
    assert book.ran(book.build()) == {"first"}
    assert book.ran(book.build("--seed", "7")) == {"first", "second"}
    assert text_of(book.notebook("first")) == "8\n"


def test_prints_in_a_row_are_one_output_whenever_the_kernel_sends_them(tmp_path):
    slow = "import sys, time\nfor k in range(3):\n    print(k, flush=True)\n    time.sleep(0.4)"
    book = ThrowAwayBook(tmp_path, {"slow": f"{slow}\ndisplay(7)\nprint(8)"})
    assert book.build().returncode == 0
    cell = nbformat.read(book.notebook("slow"), as_version=4).cells[-1]
    kinds = [(output.output_type, output.get("text")) for output in cell.outputs]
    assert kinds == [("stream", "0\n1\n2\n"), ("display_data", None), ("stream", "8\n")]


CLAIM = """- id: demo.law
  title: A law
  source: {paper: this-book}
  statement: one is one
  verdict: open
  reading: nothing is tried
"""
THEOREM = "\n:::{prf:theorem} A law\n:label: demo-law\n\nText.\n:::\n"


def test_damaged_weights_leave_claims_untried_and_the_build_refuses_unless_told(book):
    package = book.root / "lib" / models.PACKAGE
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").touch()
    for name in models.SHA256:
        (package / "model" / name).write_bytes(b"damaged")
    stated = book.root / "chapters" / "demo" / "claims.yml"
    stated.write_text(CLAIM)
    page = book.root / "chapters" / "demo" / "first.md"
    needs = f"rederive: {{requires: [{models.PACKAGE}]}}\nkernelspec:"
    page.write_text(page.read_text().replace("kernelspec:", needs, 1) + THEOREM)
    result = book.build()
    assert result.returncode == 1
    line = "claim demo.law on page demo/first: untried (the file model.safetensors of the trained"
    assert line in " ".join(result.stdout.split())

    result = book.build("--untried", "demo/first")
    assert result.returncode == 0, result.stdout + result.stderr
    (claim,) = json.loads((book.root / "_build" / "claims.json").read_text())["claims"]
    assert claim["verdict"] is None and "reinstall" in claim["untried"]
    assert not book.notebook("first").exists() and book.notebook("second").exists()
    # Asked for by name, the page runs and speaks for itself.
    assert book.ran(book.build("--page", "demo/first")) == {"first"}


def test_what_is_gone_counts_as_changed(book):
    stated = book.root / "chapters" / "demo" / "claims.yml"
    stated.write_text(CLAIM)
    page = book.root / "chapters" / "demo" / "first.md"
    page.write_text(page.read_text() + THEOREM)
    result = book.build("--jobs", "50")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Starting 2 workers" in result.stdout

    stated.unlink()
    result = book.build()
    assert "verdicts: done" in result.stdout
    assert json.loads((book.root / "_build" / "claims.json").read_text())["claims"] == []

    (book.root / "lib" / "rederive" / "alpha.py").unlink()
    result = book.build()
    assert result.returncode == 1
    assert "chapters/demo/first.md, cell at line 21" in result.stdout
    assert "page[demo/second]: unchanged" in result.stdout


def test_a_refused_ledger_is_kept_aside(book):
    stated = book.root / "chapters" / "demo" / "claims.yml"
    stated.write_text(CLAIM.replace("verdict: open", "verdict: holds"))
    page = book.root / "chapters" / "demo" / "first.md"
    page.write_text(page.read_text() + THEOREM)
    assert "declared holds, but no check tries it" in book.build().stdout
    build = book.root / "_build"
    assert not (build / "claims.json").exists()
    (claim,) = json.loads((build / "failed" / "claims.json").read_text())["claims"]
    assert (claim["declared"], claim["verdict"]) == ("holds", "open")

    stated.write_text(CLAIM)
    assert book.build().returncode == 0
    assert not (build / "failed" / "claims.json").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_page_alone_is_the_page_of_the_book_and_a_clean_checkout_is_clean(book):
    shutil.copy(ROOT / ".gitignore", book.root)
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "a book"]):
        subprocess.run(["git", *arguments], cwd=book.root, check=True)
    assert book.ran(book.build("--page", "demo/first")) == {"first"}
    assert book.ran(book.build()) == {"second"}
    assert book.ran(book.build("--page", "demo/second")) == set()
    run = json.loads((book.root / "_build" / "claims.json").read_text())["run"]
    assert run["commit"] is not None
    assert run["dirty"] is False


def test_compiled_modules_are_nothing_the_site_depends_on(book):
    compiled = book.root / "lib" / "rederive" / "__pycache__" / "alpha.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"")
    result = subprocess.run(
        [sys.executable, "-m", "pytask", "collect", "--nodes", "task_book.py"],
        cwd=book.root,
        env={**os.environ, "PYTHONPATH": str(book.root / "lib"), "COLUMNS": "400"},
        capture_output=True,
        text=True,
    )
    assert "alpha.py>" in result.stdout, result.stdout + result.stderr
    assert "__pycache__" not in result.stdout


def test_sockets_of_a_kernel_lie_in_a_short_folder(tmp_path, monkeypatch):
    long = tmp_path / ("a" * 90)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    manager = PageKernelManager()
    try:
        assert sys.platform == "win32" or len(f"{manager.ip}-1") < 103
    finally:
        shutil.rmtree(manager._folder or "", ignore_errors=True)


def test_a_build_that_is_interrupted_says_so_and_keeps_its_finished_pages(tmp_path):
    mark = tmp_path / "started"
    slow = f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\ntime.sleep(60)"
    book = ThrowAwayBook(tmp_path / "book", {"quick": "1", "slow": slow})
    process = subprocess.Popen(
        **book.command("--jobs", "2"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 90
        while not (mark.exists() and _recorded(book, "quick")):
            assert time.monotonic() < deadline, "the build did not get going"
            time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        # a second or two; the command itself waits 15 seconds at most before it kills
        _, said = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert "Interrupted; the pages that had finished are kept." in said
    assert not book.notebook("slow").exists()
    book.write("slow", "1")
    assert book.ran(book.build()) == {"slow"}


def test_a_build_at_work_is_left_alone_and_a_killed_one_keeps_its_finished_pages(tmp_path):
    slow = "import pathlib, time\npathlib.Path({!r}).touch()\ntime.sleep({})"
    mark = tmp_path / "started"
    book = ThrowAwayBook(tmp_path / "book", {"quick": "1", "slow": slow.format(str(mark), 60)})
    process = subprocess.Popen(
        **book.command("--jobs", "2"), stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 90
        while not (mark.exists() and _recorded(book, "quick")):
            assert time.monotonic() < deadline, "the build did not get going"
            time.sleep(0.2)
        for second in (book.build(), _clean(book)):
            assert second.returncode == 2
            assert "another build is at work" in second.stderr
        assert mark.exists() and book.notebook("quick").exists()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not book.notebook("slow").exists()
    book.write("slow", "1")
    assert book.ran(book.build()) == {"slow"}


def _clean(book: ThrowAwayBook) -> subprocess.CompletedProcess:
    arguments = {**book.command(), "args": [sys.executable, "-m", "rederive_book", "clean"]}
    return subprocess.run(**arguments, capture_output=True, timeout=60)


def _recorded(book: ThrowAwayBook, page: str) -> bool:
    journals = book.root.glob("pytask.lock*")
    return any(f"demo/{page}]" in path.read_text() for path in journals)


@pytest.mark.parametrize(
    ("code", "cause", "arguments"),
    [
        ("x = 1\nraise ValueError('no such law')", "ValueError: no such law", ()),
        ("import os\nos._exit(3)", "the kernel died", ()),
        ("import time\ntime.sleep(60)", "longer than 2 s", ("--cell-timeout", "2")),
    ],
    ids=["cell error", "dead kernel", "time-out"],
)
def test_a_failing_page_is_named_with_cell_and_cause(tmp_path, code, cause, arguments):
    book = ThrowAwayBook(tmp_path, {"bad": code, "good": "print(seed)"})
    result = book.build(*arguments)
    assert result.returncode == 1
    first = code.splitlines()[0]
    assert f"chapters/demo/bad.md, cell at line 21 ({first!r}): " in result.stdout
    assert cause in result.stdout
    assert book.notebook("good").exists()
    assert not book.notebook("bad").exists()
    assert (book.root / "_build" / "failed" / "demo" / "bad.ipynb").exists()
    assert not (book.root / "_build" / "claims.json").exists()

    book.write("bad", "print(seed)")
    again = book.build(*arguments)
    assert again.returncode == 0, again.stdout
    assert not (book.root / "_build" / "failed" / "demo" / "bad.ipynb").exists()


def test_a_table_of_contents_or_header_that_cannot_be_read_is_named(book):
    page = book.root / "chapters" / "demo" / "first.md"
    toc = book.root / "_toc.yml"
    for path, wrong, message in (
        (toc, toc.read_text() + "  - file: chapters/demo/first\n", "more than once"),
        (toc, "format: [jb-book\n", "_toc.yml: "),
        (page, page.read_text().replace("kernelspec:", "kernelspec: [x"), "demo/first.md: "),
        (
            page,
            page.read_text().replace("kernelspec:", "rederive: {requires: [no_such]}\nkernelspec:"),
            "page: demo/first needs no_such, which is not installed",
        ),
    ):
        good = path.read_text()
        path.write_text(wrong)
        result = book.build("--page", "demo/first")
        assert result.returncode == 2
        assert message in result.stderr
        assert "Traceback" not in result.stderr
        path.write_text(good)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--profile", "slow"), "profile: expected one of quick, full, got 'slow'"),
        (("--seed", "many"), "seed: expected a whole number, got 'many'"),
        (("--seed", "-1"), "seed: expected at least 0, got -1"),
        (("--page", "demo/third"), "page: expected one of demo/first, demo/second, got"),
        (("--jobs", "0"), "jobs: expected at least 1, got 0"),
        (("--device", "tpu"), "device: expected one of auto, cpu, cuda, got 'tpu'"),
    ],
)
def test_bad_variables_are_refused_before_anything_runs(book, arguments, message):
    result = book.build(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert not (book.root / "_build").exists()


def test_a_page_with_an_unknown_or_ill_typed_parameter_is_refused(book):
    path = book.root / "chapters" / "demo" / "first.md"
    good = path.read_text()
    for wrong, message in (
        (good.replace("seed = 2026", 'seed = "2026"'), "seed: expected str, got int 2026"),
        (good.replace("seed = 2026", "seeds = 2026"), "seeds: unknown parameter in the page"),
        (good.replace('device = "cpu"', ""), "device: unknown parameter"),
        (good.replace("seed = 2026", "seed ="), "cell at line 14: invalid syntax ('seed =')"),
        (good + "```{code-cell}\nx = = 1\n```\n", "cell at line 25: invalid syntax ('x = = 1')"),
    ):
        path.write_text(wrong)
        result = book.build()
        assert result.returncode == 2
        assert "chapters/demo/first.md" in result.stderr
        assert message in result.stderr
        assert not (book.root / "_build").exists()
