"""The trial with mutants: what is killed, what survives, what hangs, and what is kept."""

import subprocess
from types import SimpleNamespace

import pytest
from audit import mutants, mutants_block, mutants_on_pages, planting
from audit.__main__ import PAGE

from rederive_book import blocks

needs_mutmut = pytest.mark.skipif(
    not (mutants.APART / "mutmut").is_dir(), reason=f"mutmut is not installed: {mutants.INSTALL}"
)

MODULE = '''"""A tiny module."""

LIMIT = 3


def double(x):
    """Twice ``x``."""
    if x > 1e9:
        raise ValueError("too large", 7)
    return x * 2


def count(n):
    """Count up to ``n``, from zero."""
    i = 0
    while i < n:
        i += 1
    return i
'''
TESTS = '''"""Tests of the tiny module."""

from rederive.tiny import count, double


def test_double():
    assert double(3) == 6


def test_count():
    assert [count(0), count(3)] == [0, 3]
'''


@pytest.fixture
def book(tmp_path):
    """A checkout with one module and its tests."""
    root = tmp_path / "book"
    for name, text in {
        "lib/rederive/__init__.py": "",
        "lib/rederive/tiny.py": MODULE,
        "tests/test_tiny.py": TESTS,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return root


def tried(root, tmp_path, count, **options):
    file = tmp_path / "mutants.json"
    return mutants.try_mutants(count, root=root, results=file, **options)["modules"]["tiny"]


@needs_mutmut
def test_every_mutant_comes_out_as_it_should(book, tmp_path):
    said = []
    found = tried(book, tmp_path, 150, say=said.append)
    assert found["tried"] == found["of"] == len(said)
    survivors = {(one["was"], one["becomes"]) for one in found["survivors"]}
    assert survivors == {
        ("if x > 1e9:", "if x >= 1e9:"),
        ("if x > 1e9:", "if x > 1000000001.0:"),
    }
    hanging = {(one["was"], one["becomes"]) for one in found["timeouts"]}
    assert hanging == {("i += 1", "i -= 1"), ("i += 1", "i = 1")}
    assert found["killed"] == found["tried"] - 4
    killed = " ".join(line for line in said if ", killed: " in line)
    assert "return x / 2" in killed and "while i <= n:" in killed and "i = None" in killed
    assert "too large" not in " ".join(said) and "LIMIT" not in " ".join(said)
    assert (book / "lib/rederive/tiny.py").read_text(encoding="utf-8") == MODULE


@needs_mutmut
def test_results_are_resumed_and_stale_ones_dropped(book, tmp_path):
    said = []
    first = tried(book, tmp_path, 1, say=said.append)
    assert first["tried"] == 1
    assert tried(book, tmp_path, 1, say=said.append) == first and len(said) == 1
    assert tried(book, tmp_path, 2, say=said.append)["tried"] == len(said) == 2
    tests = book / "tests" / "test_tiny.py"
    tests.write_text(TESTS + "\n# changed\n", encoding="utf-8")
    assert tried(book, tmp_path, 1, say=said.append)["tried"] == 1
    assert said[2] == said[0]


@needs_mutmut
def test_tests_that_fail_without_a_mutant_judge_nothing(book, tmp_path):
    (book / "tests" / "test_tiny.py").write_text("def test():\n    assert False\n")
    with pytest.raises(RuntimeError, match="fail without a mutant"):
        tried(book, tmp_path, 1)


@needs_mutmut
def test_no_mutant_is_begun_after_the_time(book, tmp_path):
    stored = mutants.try_mutants(2, root=book, results=tmp_path / "mutants.json", minutes=0.0)
    assert stored == {"modules": {}}


def test_without_mutmut_it_says_how_to_install_it(book, tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "APART", tmp_path / "nowhere")
    with pytest.raises(RuntimeError, match="pip install --target"):
        tried(book, tmp_path, 1)


def test_every_module_has_tests():
    chosen = {name: mutants.tests_of(name) for name in mutants.modules()}
    assert all(chosen.values())
    assert chosen["flows"] == ["tests/test_flows.py"]
    assert chosen["fluctuations"] == ["tests/test_spikes.py"]  # by what is called there
    assert chosen["allocation"] == ["tests/test_head_size.py"]  # a file of another name


KEPT = {"digest": "", "tests": [], "of": 300, "tried": 150, "killed": 140, "timeouts": [{}] * 2}
KEPT |= {"date": "2026-01-02", "commit": "abc", "survivors": []}
SURVIVOR = {"function": "f", "line": 3, "was": "a | b", "becomes": "a & b"}


def test_the_page_shows_counts_intervals_and_reasons(tmp_path, monkeypatch):
    file = tmp_path / "survivors.yml"
    file.write_text("- {module: tiny, was: a | b, becomes: a & b, why: both are bits}\n")
    monkeypatch.setattr(mutants_block, "REASONS", file)
    stored = {"modules": {"tiny": KEPT | {"survivors": [SURVIVOR] * 7 + [SURVIVOR | {"was": "c"}]}}}
    found = mutants_block.summary(stored)
    assert (found["tried"], found["killed"], found["timeouts"], found["same"]) == (150, 140, 2, 7)
    text = mutants_block.rendered(stored)
    assert "140 of 150 mutants were killed, 93.3 % (88 to 97 %)" in text
    assert (
        "| `` a ∣ b `` | `` a & b `` | both are bits |" in text and "| a gap of the tests |" in text
    )
    assert mutants_block.rendered({"modules": {}}) == "Not run yet.\n"


@needs_mutmut
def test_survivors_without_a_reason_are_tried_on_pages(book, tmp_path, monkeypatch):
    built, file = [], tmp_path / "mutants.json"

    def build(folder, page, timeout):
        text = (folder / "lib" / "rederive" / "tiny.py").read_text(encoding="utf-8")
        built.append((page, "1000000001.0" in text or ">=" in text))
        return SimpleNamespace(returncode=int(page == "c/d"))

    monkeypatch.setattr(mutants_on_pages, "pages_of", lambda *_: ["a/b", "c/d", "e/f"])
    monkeypatch.setattr(planting, "build_page", build)
    tried(book, tmp_path, 150, say=lambda _: None)
    why = {("tiny", "if x > 1e9:", "if x >= 1e9:"): "the limit itself is no input"}
    for _ in range(2):  # the second time nothing is left
        stored = mutants_on_pages.try_pages(why, results=file, root=book)
        (survivor,) = [one for one in stored["modules"]["tiny"]["survivors"] if "pages" in one]
        assert survivor["page"] == "c/d" and survivor["pages"] == ["a/b", "c/d"]
        assert built == [("a/b", True), ("c/d", True)]


def test_pages_that_use_a_function_are_found():
    found = list(mutants_on_pages.pages_of("rederive.free_probability", "FreeMPProduct.cdf"))
    assert "pooling/free-product" in found and "flow/energy-balance" not in found
    private = set(mutants_on_pages.pages_of("rederive.sphere", "_retract"))
    assert set(mutants_on_pages.pages_of("rederive.sphere", "retract")) <= private


@pytest.mark.parametrize(("page", "text"), [("a/b", "`a/b` fails"), (None, "passes on 1 pages")])
def test_the_page_says_whether_a_survivor_was_noticed(page, text):
    survivor = SURVIVOR | {"pages": ["a/b"], "page": page}
    assert text in mutants_block.rendered({"modules": {"tiny": KEPT | {"survivors": [survivor]}}})


@pytest.mark.parametrize(("killed", "tried"), [(0, 10), (9, 10), (10, 10), (135, 150)])
def test_intervals_invert_the_binomial_tail(killed, tried):
    from scipy import stats

    low, high = mutants_block.interval(killed, tried)
    if killed:
        assert stats.binom.sf(killed - 1, tried, low) == pytest.approx(0.025)
    if killed < tried:
        assert stats.binom.cdf(killed, tried, high) == pytest.approx(0.025)
    assert (low, high) == (low if killed else 0, high if killed < tried else 1)


def test_a_reason_without_a_field_is_refused(tmp_path):
    (tmp_path / "survivors.yml").write_text("- {module: a, why: b}\n")
    with pytest.raises(ValueError, match="expected module, was"):
        mutants_block.reasons(tmp_path / "survivors.yml")


def test_the_last_trial_stands_on_the_page():
    stored = mutants.load()
    text = PAGE.read_text(encoding="utf-8")
    assert blocks.replaced(text, *mutants_block.LINES, mutants_block.rendered(stored)) == text


def test_every_reason_is_about_lines_that_are_there():
    for module, was, becomes in mutants_block.reasons():
        file = planting.ROOT / "lib" / "rederive" / f"{module}.py"
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
        assert {line.strip() for line in was.splitlines()} <= set(lines) and was != becomes
