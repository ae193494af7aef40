"""The planted faults fit the library as it is, and the last audit tried all of them."""

import ast
import json

import pytest
from audit import page, planting
from audit.__main__ import PAGE, RESULTS

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
