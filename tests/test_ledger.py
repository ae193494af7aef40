"""The ledger: how verdicts follow from checks, and every way in which it must say no."""

import copy
import hashlib
import json
import math
import os
import subprocess
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat import v4

from rederive_book import checks, claims, ledger, ledger_file, whole
from rederive_book.checks import Control
from rederive_book.ledger_problems import MOST_TESTS

PASSES = {"tries": "statement"}
REJECTED = {"tries": "statement", "expected": "fail", "outcome": "fail"}
AMENDED = {"tries": "amendment"}
COUNTEREXAMPLE = {"tries": "counterexample"}
RUN = {
    "commit": "0" * 40,
    "dirty": False,
    "seed": 2026,
    "profile": "quick",
    "device": "cpu",
    "cpu": "a processor",
    "python": "3.11.0",
    "versions": {"numpy": "2.0.0"},
    "lock": "0" * 64,
    "seconds": 1.5,
}
MADE_BY = {
    "holds": [PASSES],
    "amended": [REJECTED, AMENDED],
    "refuted": [COUNTEREXAMPLE],
    "open": [],
}


def record(claim="demo.first", name="a check", **changes):
    """What a page records about a check that passes, with its control rejected."""
    made = {
        "claim": claim,
        "name": name,
        "kind": "estimate",
        "tries": "statement",
        "expected": "pass",
        "outcome": "pass",
        "measured": 1.0,
        "predicted": 1.0,
        "unit": "",
        "uncertainty": 0.1,
        "source_of_uncertainty": "standard error of the mean of 100 replicates",
        "statistic": {"name": "t", "value": 0.0, "dof": 99.0, "level": 1e-6},
        "control": {"what": "another value", "measured": 9.0, "distance": 80.0, "rejected": True},
        "anchor": "check-demo-first-a-check",
        "stochastic": True,
        "tests": 2,
    }
    return made | changes


def notebook(path, *cells):
    """An executed notebook; each cell is (records, seconds, figures)."""
    made = v4.new_notebook()
    for found, seconds, figures in cells:
        outputs = [
            v4.new_output("display_data", {"text/plain": "line"}, metadata={key: data})
            for key, several in (("rederive_check", found), ("rederive_figure", figures))
            for data in several
        ]
        metadata = {} if seconds is None else {"papermill": {"duration": seconds}}
        made.cells.append(v4.new_code_cell("pass", outputs=outputs, metadata=metadata))
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, path)
    return path


class Book:
    """A throw-away book of the claims of one chapter, on pages of one theorem or several."""

    def __init__(self, root):
        self.root = root
        self.entries, self.texts, self.records = [], {}, {}

    def claim(self, name="first", verdict="holds", page="demo/one", labels=1, **more):
        """State a claim and give its theorem to a page, `labels` times."""
        entry = {
            "id": f"demo.{name}",
            "title": f"Claim {name}",
            "source": {"paper": "this-book"},
            "statement": "It is so.",
            "verdict": verdict,
            "reading": "as it stands",
        }
        if verdict == "amended":
            entry["amendment"] = "It is almost so."
        self.entries.append(entry | more)
        theorem = f"```{{prf:theorem}} {name}\n:label: demo-{name}\nText.\n```\n\n"
        self.texts[page] = self.texts.get(page, "") + theorem * labels
        return self

    def write(self, page, text):
        """Add text to a page."""
        self.texts[page] = self.texts.get(page, "") + text
        return self

    def check(self, page="demo/one", **changes):
        """Let a page record a check."""
        number = sum(len(found) for found in self.records.values())
        found = self.records.setdefault(page, [])
        found.append(record(**({"name": f"check {number}"} | changes)))
        return self

    def build(self, not_run=None, untried_allowed=()):
        """The ledger and its problems."""
        folder = self.root / "chapters" / "demo"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "claims.yml").write_text(yaml.safe_dump(self.entries), encoding="utf-8")
        sources = {}
        for page, text in self.texts.items():
            sources[page] = self.root / "chapters" / f"{page}.md"
            sources[page].write_text(f"# Page\n\n{text}", encoding="utf-8")
        ran = {page: found for page, found in self.records.items() if page not in (not_run or {})}
        notebooks = {
            page: notebook(self.root / f"{page}.ipynb", (found, 1.0, []))
            for page, found in ran.items()
        }
        stated = claims.load(self.root / "chapters")
        texts = ledger.read_pages(sources)
        found = ledger.read_records(notebooks)
        made = ledger.build(stated, texts, found, RUN, not_run=not_run)
        return made, ledger.problems(made, stated, texts, found, untried_allowed=untried_allowed)

    def problem(self, **options):
        """The only problem there is."""
        (problem,) = self.build(**options)[1]
        return problem


@pytest.fixture
def book(tmp_path):
    return Book(tmp_path)


def settled(checks):
    full = [{"expected": "pass", "outcome": "pass"} | check for check in checks]
    return ledger.decide(full)


# ---------------------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ([], "open"),
        ([PASSES], "holds"),
        ([PASSES, PASSES], "holds"),
        ([PASSES, {**PASSES, "outcome": "fail"}], "open"),
        ([REJECTED], "open"),
        ([AMENDED], "open"),
        ([REJECTED, AMENDED], "amended"),
        ([REJECTED, PASSES, AMENDED, AMENDED], "amended"),
        ([REJECTED, AMENDED, {**AMENDED, "outcome": "fail"}], "open"),
        ([{**PASSES, "outcome": "fail"}, AMENDED], "open"),
        ([{**REJECTED, "outcome": "pass"}, AMENDED], "holds"),
        ([COUNTEREXAMPLE], "refuted"),
        ([COUNTEREXAMPLE, REJECTED], "refuted"),
        ([COUNTEREXAMPLE, PASSES], "refuted"),
        ([COUNTEREXAMPLE, REJECTED, AMENDED], "amended"),
        ([{**COUNTEREXAMPLE, "outcome": "fail"}], "open"),
    ],
)
def test_the_outcomes_decide_the_verdict(checks, verdict):
    assert settled(checks) == verdict


@pytest.mark.parametrize("verdict", claims.VERDICTS)
def test_a_claim_whose_checks_agree_with_it_passes(book, verdict):
    book.claim(verdict=verdict)
    for check in MADE_BY[verdict]:
        book.check(**check)
    made, problems = book.build()
    assert problems == []
    (entry,) = made["claims"]
    assert entry["verdict"] == entry["declared"] == verdict
    assert entry["untried"] is None
    assert (entry["page"], entry["anchor"]) == ("demo/one", "demo-first")


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        (declared, found)
        for declared in claims.VERDICTS
        for found in ("holds", "amended", "refuted")
        if declared != found
    ],
)
def test_a_verdict_that_differs_from_the_declared_one_fails_either_way(book, declared, found):
    book.claim(verdict=declared)
    for check in MADE_BY[found]:
        book.check(**check)
    problem = book.problem()
    assert f"claim demo.first on page demo/one: declared {declared}" in problem
    assert f"say {found}" in problem
    rank = ["refuted", "amended", "holds"]
    if declared != "open":
        better = rank.index(found) > rank.index(declared)
        assert ("better than declared" if better else "worse than declared") in problem


def test_an_outcome_that_was_not_expected_fails(book):
    book.claim().check().check(name="wrong", outcome="fail")
    problems = book.build()[1]
    assert any("demo/one: check 'wrong': came out fail, expected pass" in p for p in problems)


def test_a_control_that_is_not_rejected_fails(book):
    control = {"what": "a dropped term", "measured": 0.0, "distance": 0.0, "rejected": False}
    book.claim().check(name="blind", control=control)
    problem = book.problem()
    assert "claim demo.first on page demo/one: check 'blind'" in problem
    assert "control was not rejected (a dropped term)" in problem


@pytest.mark.parametrize("verdict", ["holds", "amended", "refuted"])
def test_a_decided_claim_without_a_check_fails(book, verdict):
    book.claim(verdict=verdict).claim("second").check(claim="demo.second")
    assert "claim demo.first on page demo/one: declared" in book.problem()
    assert "no check tries it" in book.problem()


def test_a_check_without_a_claim_fails(book):
    book.claim().check().check(claim="demo.nobody", name="stray")
    problem = book.problem()
    assert "claim demo.nobody on page demo/one: check 'stray'" in problem
    assert "no such claim" in problem


def test_a_missing_label_fails(book):
    book.claim(labels=0).check()
    assert "claim demo.first" in book.problem() and "demo-first" in book.problem()


def test_a_double_label_fails(book):
    book.claim(labels=2).check()
    problem = book.problem()
    assert "claim demo.first" in problem and "more than once" in problem
    assert problem.count("demo/one (line") == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"measured": math.nan},
        {"measured": [1.0, math.inf]},
        {"predicted": "inf"},
        {"uncertainty": math.inf},
        {"statistic": {"name": "t", "value": math.nan, "dof": 9.0, "level": 1e-6}},
        {"control": {"what": "x", "measured": 1.0, "distance": math.inf, "rejected": True}},
    ],
)
def test_a_number_that_is_not_finite_fails_and_stays_out_of_the_ledger(book, changes, tmp_path):
    book.claim().check(name="wild", **changes)
    made, problems = book.build()
    assert any("demo/one: check 'wild'" in p and "is not finite" in p for p in problems)
    ledger.write(made, tmp_path / "claims.json")
    json.loads((tmp_path / "claims.json").read_text(), parse_constant=pytest.fail)


def test_a_circle_of_uses_fails(book):
    book.claim("first", uses=["demo.second"]).claim("second", uses=["demo.first"])
    with pytest.raises(ValueError, match=r"circle: demo\.\w+ -> demo\.\w+ -> demo\.\w+"):
        book.build()


def test_an_arrow_that_the_text_does_not_honour_fails(book):
    book.claim("first").claim("second", page="demo/two", uses=["demo.first"])
    book.check().check(page="demo/two", claim="demo.second")
    assert "claim demo.second on page demo/two: it uses demo.first" in book.problem()
    book.write("demo/two", "By {prf:ref}`demo-first`.\n")
    assert book.build()[1] == []


def test_a_name_used_twice_within_a_claim_fails(book):
    book.claim().check(name="same").check(name="same")
    assert "claim demo.first on page demo/one: 2 checks are called 'same'" in book.problem()


def test_two_claims_may_use_one_name(book):
    book.claim().claim("second").check(name="same").check(name="same", claim="demo.second")
    assert book.build()[1] == []


def test_a_check_away_from_its_theorem_fails(book):
    book.claim().write("demo/two", "Nothing.\n").check().check(page="demo/two", name="far")
    problem = book.problem()
    assert "claim demo.first on page demo/two: check 'far'" in problem
    assert "on page demo/one" in problem


def test_stochastic_tests_are_counted_with_their_controls(book):
    book.claim().check(tests=MOST_TESTS)
    assert book.build()[1] == []
    book.check(tests=2)
    problem = book.problem()
    assert f"{MOST_TESTS + 2} stochastic tests" in problem and "page demo/one" in problem


def test_exact_checks_are_not_counted(book):
    book.claim().check(tests=MOST_TESTS + 1, stochastic=False)
    assert book.build()[1] == []


# ---------------------------------------------------------------------------- untried


def untried(book):
    book.claim().claim("second", page="demo/two").check().check(
        page="demo/two", claim="demo.second"
    )
    return {"demo/two": "this build ran demo/one only"}


def test_an_untried_claim_has_no_verdict_and_fails(book):
    reasons = untried(book)
    made, (problem,) = book.build(not_run=reasons)
    entry = made["claims"][1]
    assert entry["verdict"] is None and entry["checks"] == []
    assert entry["untried"] == "this build ran demo/one only"
    assert "claim demo.second on page demo/two: untried (this build ran demo/one only)" in problem


@pytest.mark.parametrize("allowed", [{"demo.second"}, {"demo/two"}, ["chapters/demo/two.md"], None])
def test_an_untried_claim_passes_with_permission(book, allowed):
    assert book.build(not_run=untried(book), untried_allowed=allowed)[1] == []


def test_permission_for_another_claim_does_not_help(book):
    problem = book.problem(not_run=untried(book), untried_allowed={"demo.first"})
    assert "demo.second" in problem


def test_permission_for_something_unknown_fails(book):
    allowed = {"demo/two", "demo.secnod"}
    problem = book.problem(not_run=untried(book), untried_allowed=allowed)
    assert "'demo.secnod'" in problem


# ---------------------------------------------------------------------------- the file


def test_the_ledger_has_the_designed_fields_and_no_others(book):
    book.claim().check()
    made = book.build()[0]
    assert list(made) == ["schema", "run", "claims"] and made["schema"] == 1
    assert list(made["run"]) == (
        "commit dirty seed profile device cpu python versions lock seconds".split()
    )
    (entry,) = made["claims"]
    assert list(entry) == (
        "id title paper row statement reading declared verdict untried amendment uses page anchor "
        "checks".split()
    )
    (check,) = entry["checks"]
    assert list(check) == (
        "name kind tries expected outcome measured predicted unit uncertainty "
        "source_of_uncertainty statistic control anchor seconds".split()
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["schema"], 2),
        (["run", "seed"], "2026"),
        (["run", "extra"], 1),
        (["claims", 0, "declared"], "maybe"),
        (["claims", 0, "verdict"], None),
        (["claims", 0, "untried"], "its page did not run"),
        (["claims", 0, "checks", 0, "kind"], "guess"),
        (["claims", 0, "checks", 0, "measured"], {"value": 1}),
        (["claims", 0, "checks", 0, "control", "rejected"], "yes"),
        (["claims", 0, "checks", 0, "uncertainty"], -1.0),
    ],
)
def test_a_ledger_off_its_schema_is_neither_written_nor_read(book, tmp_path, path, value):
    made = book.claim().check().build()[0]
    target = made
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    file = tmp_path / "claims.json"
    with pytest.raises(ValueError, match="ledger: "):
        ledger.write(made, file)
    assert not file.exists()
    file.write_text(json.dumps(made), encoding="utf-8")
    with pytest.raises(ValueError, match="ledger: "):
        ledger.read(file)


def test_the_ledger_is_read_back_as_it_was_written(book, tmp_path):
    made = book.claim(statement="Ünïcode $\\alpha$").check(measured=[0.1, 1 / 3]).build()[0]
    ledger.write(made, tmp_path / "new" / "claims.json")
    assert ledger.read(tmp_path / "new" / "claims.json") == made
    assert os.listdir(tmp_path / "new") == ["claims.json"]


def test_a_write_that_is_cut_short_leaves_the_old_ledger(book, tmp_path, monkeypatch):
    made = book.claim().check().build()[0]
    file = tmp_path / "new" / "claims.json"
    ledger.write(made, file)
    before = file.read_text(encoding="utf-8")

    def interrupted(old, new):
        raise KeyboardInterrupt

    monkeypatch.setattr(whole.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ledger.write(made | {"claims": []}, file)
    assert file.read_text(encoding="utf-8") == before
    assert os.listdir(file.parent) == ["claims.json"]


# ---------------------------------------------------------------------------- records


def test_the_time_of_a_cell_is_shared_among_its_checks(tmp_path):
    first, second, third = (record(name=name) for name in "abc")
    path = notebook(tmp_path / "one.ipynb", ([first, second], 3.0, []), ([third], None, []))
    found = ledger.read_records({"demo/one": path})
    assert [r.seconds for r in found] == [1.5, 1.5, None]
    assert [r.data["name"] for r in found] == ["a", "b", "c"]
    assert {r.page for r in found} == {"demo/one"}


def test_a_malformed_record_is_refused_with_its_page(tmp_path):
    broken = record(name="short")
    del broken["control"]
    path = notebook(tmp_path / "one.ipynb", ([broken], 1.0, []))
    with pytest.raises(ValueError, match=r"page demo/one: .*'short' lacks \['control'\]"):
        ledger.read_records({"demo/one": path})


def test_the_records_of_real_checks_make_a_ledger(book):
    book.claim("exact").claim("random").claim("wrong", verdict="amended")
    right = Control("three", right=3)
    made = [
        checks.symbolic(
            "demo.exact", "integers", tries="statement", left=2, right=2, control=right
        ),
        checks.estimate(
            "demo.random",
            "mean",
            tries="statement",
            replicates=[0.9, 1.1] * 50,
            predicted=1.0,
            control=Control("nothing", predicted=0.0),
        ),
        checks.certified(
            "demo.wrong",
            "as stated",
            tries="statement",
            left=2,
            relation="<",
            right=1,
            control=Control("the other way", relation=">"),
            expected="fail",
        ),
        checks.identity(
            "demo.wrong",
            "amended",
            tries="amendment",
            measured=[1.0, 2.0],
            predicted=[1.0, 2.0],
            operations=1,
            control=Control("swapped", predicted=[2.0, 1.0]),
        ),
    ]
    book.records["demo/one"] = [check.record for check in made]
    result, problems = book.build()
    assert problems == []
    assert [entry["verdict"] for entry in result["claims"]] == ["holds", "holds", "amended"]


def test_figures_are_written_page_by_page_and_all_others_go(tmp_path):
    curve = {"name": "curve", "csv": "x,y\n1,2\n"}
    path = notebook(tmp_path / "one.ipynb", ([], 1.0, [curve]), ([], 1.0, [{**curve, "name": "b"}]))
    folder = tmp_path / "figures"
    (folder / "demo" / "one").mkdir(parents=True)
    (folder / "demo" / "one" / "old.csv").write_text("x\n")
    (folder / "demo" / "two").mkdir()
    (folder / "demo" / "two" / "of-a-page-that-is-gone.csv").write_text("x\n")
    written = ledger.write_figures({"demo/one": path}, folder)
    assert [file.name for file in written] == ["curve.csv", "b.csv"]
    assert written[0].read_text(encoding="utf-8") == "x,y\n1,2\n"
    found = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.csv"))
    assert found == ["demo/one/b.csv", "demo/one/curve.csv"]


def test_two_figures_of_one_name_are_refused(tmp_path):
    curve = {"name": "curve", "csv": "x\n1\n"}
    path = notebook(tmp_path / "one.ipynb", ([], 1.0, [curve, curve]))
    with pytest.raises(ValueError, match="page demo/one: two figures are called 'curve'"):
        ledger.write_figures({"demo/one": path}, tmp_path / "figures")


def test_a_run_is_described_by_commit_lock_and_machine(tmp_path):
    (tmp_path / "requirements.lock").write_text("numpy==2\n", encoding="utf-8")

    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    parameters = {"profile": "full", "seed": 7, "device": "cpu"}
    run = ledger.describe_run(tmp_path, parameters, 3.0)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, text=True
    )
    assert run["commit"] == head.stdout.strip() and run["dirty"] is False
    assert (run["profile"], run["seed"], run["device"], run["seconds"]) == ("full", 7, "cpu", 3.0)
    assert run["lock"] == hashlib.sha256(b"numpy==2\n").hexdigest()
    assert run["cpu"] and "numpy" in run["versions"]
    (tmp_path / "requirements.lock").write_text("numpy==3\n", encoding="utf-8")
    assert ledger.describe_run(tmp_path, parameters, None)["dirty"] is True


def test_a_run_outside_a_repository_has_no_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    run = ledger.describe_run(tmp_path, {"profile": "quick", "seed": 1, "device": "cpu"}, None)
    assert (run["commit"], run["dirty"], run["lock"]) == (None, None, None)
    empty = {"schema": 1, "run": run, "claims": []}
    assert ledger_file.schema_problems(empty) == []


# ---------------------------------------------------------------------------- two builds


@pytest.fixture
def made(book):
    book.claim().claim("second", verdict="amended")
    book.check(name="mean", measured=1.0, uncertainty=0.1)
    book.check(claim="demo.second", name="stated", **REJECTED)
    book.check(claim="demo.second", name="amended", **AMENDED)
    result, problems = book.build()
    assert problems == []
    return result


def changed(made, **changes):
    """A copy whose first check differs."""
    new = copy.deepcopy(made)
    new["claims"][0]["checks"][0].update(changes)
    return new


def test_a_ledger_does_not_differ_from_itself(made):
    assert ledger.compare(made, copy.deepcopy(made)) == []


def test_changed_verdicts_and_claims_that_came_or_went_are_told(made):
    new = copy.deepcopy(made)
    new["claims"][0].update(verdict="refuted", declared="refuted")
    gone = new["claims"].pop()
    new["claims"].append({**gone, "id": "demo.third"})
    lines = ledger.compare(made, new)
    assert "lost claim demo.second (was amended)" in lines
    assert "new claim demo.third: amended" in lines
    assert "claim demo.first on page demo/one: verdict holds -> refuted" in lines
    assert "claim demo.first on page demo/one: declared verdict holds -> refuted" in lines


def test_standard_errors_are_judged_at_the_level_of_the_check(made):
    # t quantile at 1e-6 two-sided with 99 degrees of freedom: 5.24; joint error 0.1·√2.
    assert ledger.compare(made, changed(made, measured=1.0 + 5.1 * 0.1 * math.sqrt(2))) == []
    (line,) = ledger.compare(made, changed(made, measured=1.0 + 5.4 * 0.1 * math.sqrt(2)))
    assert "check 'mean' measured 1 -> 1.76" in line


def test_bounds_add_up(made):
    exact = {"statistic": {"name": "deviation", "value": 0.0, "dof": None, "level": None}}
    exact |= {"source_of_uncertainty": "rounding bound", "uncertainty": 0.1}
    old = changed(made, **exact)
    assert ledger.compare(old, changed(made, **exact, measured=1.19)) == []
    assert len(ledger.compare(old, changed(made, **exact, measured=1.21))) == 1


def test_entries_of_a_list_and_expressions_are_compared(made):
    exact = {"statistic": {"name": "deviation", "value": 0.0, "dof": None, "level": None}}
    exact |= {"source_of_uncertainty": "rounding bound", "uncertainty": 0.0}
    old = changed(made, **exact, measured=[1.0, 2.0])
    (line,) = ledger.compare(old, changed(made, **exact, measured=[1.0, 2.5]))
    assert "entry 1: 2 -> 2.5" in line
    (line,) = ledger.compare(old, changed(made, **exact, measured=[1.0]))
    assert "2 numbers -> 1 numbers" in line
    (line,) = ledger.compare(changed(made, measured="x"), changed(made, measured="x + 1"))
    assert "x -> x + 1" in line


def test_checks_that_came_or_went_or_turned_are_told(made):
    (line,) = ledger.compare(made, changed(made, outcome="fail"))
    assert "check 'mean' pass -> fail" in line
    lines = ledger.compare(made, changed(made, name="average"))
    assert any("lost check 'mean'" in line for line in lines)
    assert any("new check 'average'" in line for line in lines)


def test_a_claim_that_is_untried_on_one_side_differs_by_its_verdict_only(made):
    new = copy.deepcopy(made)
    new["claims"][0].update(verdict=None, untried="its page did not run", checks=[])
    assert ledger.compare(made, new) == [
        "claim demo.first on page demo/one: verdict holds -> untried"
    ]


def test_the_summary_is_one_row_a_claim(made):
    text = ledger.summary_markdown(made)
    rows = [line for line in text.splitlines() if line.startswith("| `demo.")]
    assert text.startswith("### 2 claims: 1 holds, 1 amended")
    assert len(rows) == 2
    assert "✓ holds" in rows[0] and "| 1 | 1 |" in rows[0] and "demo/one" in rows[0]
    assert "nearest 80 standard errors off" in rows[0]
    assert "≈ amended" in rows[1]


def figures(tmp_path, side, **files):
    folder = tmp_path / side
    for name, text in files.items():
        (folder / "demo").mkdir(parents=True, exist_ok=True)
        (folder / "demo" / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder


def differences(tmp_path, old, new, **options):
    first, second = figures(tmp_path, "old", a=old), figures(tmp_path, "new", a=new)
    return ledger.compare_figures(first, second, **options)


def test_figures_agree_up_to_rounding(tmp_path):
    old, new = "x,y\n1,1000.0\n2,0.0\n", "x,y\n1,1000.00001\n2,1e-6\n"
    assert differences(tmp_path, old, new) == []
    (line,) = differences(tmp_path, old, new, relative_tolerance=1e-12)
    assert line.startswith("figure demo/a.csv: column y: differs by 1e-05")


@pytest.mark.parametrize(
    ("new", "what"),
    [
        ("x,y\n1,2.001\n2,3\n", "column y: differs by 0.001"),
        ("x,z\n1,2\n2,3\n", "columns x, y -> x, z"),
        ("x,y\n1,2\n", "2 rows -> 1 rows"),
        ("x,y\n1,\n2,3\n", "numbers are missing"),
        ("x,y\n1,two\n2,three\n", "column y: its words differ"),
    ],
)
def test_figures_that_differ_are_told_apart(tmp_path, new, what):
    lines = differences(tmp_path, "x,y\n1,2\n2,3\n", new)
    assert lines and what in lines[0]


def test_a_figure_on_one_side_only_is_told(tmp_path):
    old, new = (
        figures(tmp_path, "old", a="x\n1\n", b="x\n1\n"),
        figures(tmp_path, "new", a="x\n1\n"),
    )
    (line,) = ledger.compare_figures(old, new)
    assert line.startswith("figure demo/b.csv: only in")


def test_the_schema_in_the_package_is_a_schema():
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(ledger_file.schema())
    assert Path(ledger_file.__file__).with_name("ledger.schema.json").exists()
