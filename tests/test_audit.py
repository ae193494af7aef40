"""The slow trials: what they try fits the library, what they compare, and what came out last."""

import ast
import copy
import json
import shutil

import nbformat
import pytest
from audit import __main__ as audit
from audit import builds, interruptions, page, planting, same_bits, trial_blocks
from audit.__main__ import PAGE, RESULTS

from rederive_book import blocks, pages

FAULTS = planting.load()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_changes_the_meaning_of_its_module_and_leaves_it_readable(fault):
    source = (planting.ROOT / "lib" / "rederive" / fault.file).read_text(encoding="utf-8")
    changed = ast.parse(planting.planted(source, fault))
    assert ast.dump(changed) != ast.dump(ast.parse(source))


def test_faults_hit_most_modules_and_every_chapter():
    assert len({fault.file for fault in FAULTS}) >= 18
    assert {fault.page.split("/")[0] for fault in FAULTS} == {
        "regression",
        "pooling",
        "flow",
        "real-models",
    }


def test_a_fault_that_is_out_of_date_is_refused():
    fault = FAULTS[0]._replace(was="no such text")
    with pytest.raises(ValueError, match="found it 0 times"):
        planting.planted("x = 1\n", fault)


def test_a_fault_without_a_field_is_refused(tmp_path):
    (tmp_path / "faults.yml").write_text("- {what: a, file: b}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="expected the fields"):
        planting.load(tmp_path / "faults.yml")


def test_the_last_audit_tried_every_fault_and_none_went_unnoticed():
    found = json.loads((RESULTS / "faults.json").read_text(encoding="utf-8"))
    tried = {result["what"] for result in found["faults"]}
    assert tried == {fault.what for fault in FAULTS}
    unnoticed = [r["what"] for r in found["faults"] if not (r["caught"] or r["tested"])]
    assert unnoticed == []


def test_the_page_shows_the_last_audit():
    found = json.loads((RESULTS / "faults.json").read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    assert page.updated(text, found) == text
    with pytest.raises(ValueError, match="expected the lines"):
        page.updated("no such lines", found)


# --- two builds side by side ----------------------------------------------------------------------


@pytest.fixture
def build(tmp_path):
    """What a build leaves, in small."""
    folder = tmp_path / "one"
    (folder / "notebooks" / "demo").mkdir(parents=True)
    (folder / "figures" / "demo" / "first").mkdir(parents=True)
    (folder / "html" / "chapters").mkdir(parents=True)
    ledger = {
        "run": {"seed": 1, "seconds": 2.5},
        "claims": [{"id": "demo.law", "checks": [{"name": "a", "measured": 0.1, "seconds": 1.0}]}],
    }
    for place in (folder, folder / "html"):
        (place / "claims.json").write_text(json.dumps(ledger))
    cell = nbformat.v4.new_code_cell("1", id="cell-0", execution_count=1)
    cell.metadata = {"papermill": {"duration": 1.0}, "tags": []}
    cell.outputs = [
        nbformat.v4.new_output("display_data", {"image/png": "AAAA", "text/plain": "figure a"})
    ]
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"papermill": {"duration": 1.0}})
    nbformat.write(notebook, folder / "notebooks" / "demo" / "first.ipynb")
    (folder / "figures" / "demo" / "first" / "a.csv").write_text("x\n0.1\n")
    (folder / "html" / "chapters" / "first.html").write_text("<p>It took 1.5 s.</p>")
    (folder / "html" / "chapters" / "status.html").write_text("<table>slow first</table><p>a</p>")
    index = {"docnames": ["chapters/first", "chapters/status"], "titleterms": {}}
    index["terms"] = {"law": 0, "slow": 1, "both": [0, 1]}
    (folder / "html" / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})")
    return folder


def _other(build, changes):
    """A copy of the build with texts of its files replaced."""
    other = build.with_name("other")
    shutil.copytree(build, other)
    for name, (was, becomes) in changes.items():
        text = (other / name).read_text()
        assert was in text
        (other / name).write_text(text.replace(was, becomes))
    return other


def test_two_builds_may_differ_in_their_times(build):
    changes = {
        "claims.json": ('"seconds": 1.0', '"seconds": 9.0'),
        "html/claims.json": ('"seconds": 2.5', '"seconds": 9.5'),
        "notebooks/demo/first.ipynb": ('"duration": 1.0', '"duration": 2.0'),
        "html/chapters/first.html": ("1.5 s", "2 min 3 s"),
        "html/chapters/status.html": ("slow first", "slow second"),
        "html/searchindex.js": ('"slow": 1', '"slower": 1'),
    }
    other = _other(build, changes)
    assert builds.differences(build, other) == []
    assert builds.differences(build, build) == []


@pytest.mark.parametrize(
    ("name", "was", "becomes", "named"),
    [
        ("claims.json", "0.1", "0.10000000000000002", "claims.json#claims/demo.law/checks/a/meas"),
        ("html/claims.json", "0.1", "0.2", "html/claims.json"),
        ("notebooks/demo/first.ipynb", "AAAA", "AAAB", "first.ipynb#cell 0, output 0, picture"),
        ("notebooks/demo/first.ipynb", "figure a", "figure b", "first.ipynb#cell 0, output 0"),
        ("notebooks/demo/first.ipynb", '"cell-0"', '"cell-1"', "first.ipynb#cell 0"),
        ("figures/demo/first/a.csv", "0.1", "0.2", "figures/demo/first/a.csv"),
        ("html/chapters/first.html", "It took", "it took", "html/chapters/first.html"),
        ("html/searchindex.js", "law", "rule", "html/searchindex.js"),
    ],
)
def test_any_other_difference_is_named(build, name, was, becomes, named):
    (found,) = builds.differences(build, _other(build, {name: (was, becomes)}))
    assert named in found


def test_a_file_that_one_build_lacks_is_named(build):
    other = _other(build, {})
    (other / "html" / "chapters" / "first.html").unlink()
    missing = "html/chapters/first.html: missing in the "
    assert builds.differences(build, other) == [missing + "second"]
    assert builds.differences(other, build) == [missing + "first"]
    assert builds.differences(other, build, site=False) == []


def test_builds_that_exist_are_compared_on_the_command_line(build, capsys):
    other = _other(build, {"figures/demo/first/a.csv": ("0.1", "0.2")})
    assert audit.main(["same-bits", "--compare", str(build), str(other)]) == 1
    assert "1 of " in capsys.readouterr().out
    assert audit.main(["same-bits", "--compare", str(build), str(build)]) == 0
    assert "no difference" in capsys.readouterr().out


def test_a_page_makes_the_same_notebook_each_time():
    source = planting.ROOT / "chapters" / "flow" / "stability.md"
    assert pages.to_notebook(source) == pages.to_notebook(source)


# --- what the page says of them -------------------------------------------------------------------

TRY = {"start": "an empty folder", "whom": "all", "stage": "after page[a/b]", "status": 0}
KILLED = {"date": "2026-01-02", "commit": "abc", "n": 2, "failures": 1}
KILLED["tries"] = [TRY | {"differs": []}, TRY | {"differs": ["claims.json"], "stage": "starting"}]
BITS = {"date": "2026-01-02", "commit": "abc", "compared": 9, "differs": [], "count": 0}
BITS |= {"site": True, "jobs": [1, 2], "pages": [], "may_differ": {"times": "they are times"}}


def test_the_page_says_how_many_killed_builds_were_made_up_for():
    text = trial_blocks.of_interruptions(KILLED)
    assert "1 of 2 killed builds were made up for" in text
    assert "1 between pages" in text and "1 during the start" in text
    assert "| the command and all it started | an empty folder | 2 | 1 |" in text


def test_the_page_says_what_differs_between_two_builds():
    assert "all are the same" in trial_blocks.of_same_bits(BITS)
    found = copy.deepcopy(BITS) | {"differs": ["claims.json#run/seed"], "count": 1}
    text = trial_blocks.of_same_bits(found)
    assert "1 differ" in text and "`claims.json#run/seed`" in text


@pytest.mark.parametrize(
    ("name", "lines", "rendered"),
    [
        ("interruptions", trial_blocks.INTERRUPTIONS, trial_blocks.of_interruptions),
        ("same_bits", trial_blocks.SAME_BITS, trial_blocks.of_same_bits),
    ],
)
def test_the_last_trial_came_out_well_and_stands_on_the_page(name, lines, rendered):
    file = RESULTS / f"{name}.json"
    if not file.exists():
        pytest.skip(f"no results yet: python -m audit {name.replace('_', '-')}")
    found = json.loads(file.read_text(encoding="utf-8"))
    if name == "interruptions":
        assert found["n"] >= 20 and found["failures"] == 0
        assert all(interruptions.passed(one) for one in found["tries"])
    else:
        assert found["count"] == 0 and found["site"] and not found["pages"]
    text = PAGE.read_text(encoding="utf-8")
    assert blocks.replaced(text, *lines, rendered(found)) == text


def test_two_ways_of_building_are_asked_for():
    assert same_bits.commands([], site=True, jobs=2) == [["--jobs", "2"]]
    assert same_bits.commands(["a/b"], site=True, jobs=2) == [["--page", "a/b", "--no-site"]]
