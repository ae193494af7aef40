"""The pipeline on a throw-away book: what runs again, what is refused, and how it fails."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import nbformat
import pytest
from throw_away import ThrowAwayBook


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


def test_a_build_that_is_killed_keeps_its_finished_pages(tmp_path):
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
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not book.notebook("slow").exists()
    book.write("slow", "1")
    assert book.ran(book.build()) == {"slow"}


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
    ):
        path.write_text(wrong)
        result = book.build()
        assert result.returncode == 2
        assert f"chapters/demo/first.md: {message}" in result.stderr
        assert not (book.root / "_build").exists()
