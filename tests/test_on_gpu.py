"""The script for machines with a GPU, run on the CPU: it says what it finds, and can fail."""

import json
import pathlib
import subprocess
import sys

import on_gpu
import pytest
import torch
import yaml
from gpu_cases import SMALL, contract
from test_devices import LIBRARY, WITHOUT_TENSORS, public_functions

from rederive import encoder, flow_kernels

SCRIPT = pathlib.Path(__file__).with_name("on_gpu.py")

# Public functions that have no case of their own in the script: name → where they are tried.
INSIDE = {
    "attention.causal_mask": "the mask of attention_weights",
    "encoder.embed": "in forward",
    "encoder.heads": "in forward",
    "encoder.layer_pass": "in forward",
    "encoder.shuffled": "works on the CPU",
    "flows.check_tokens_and_heads": "returns its arguments",
    "transformer.starting_projections": "works on the CPU",
    "transport.optimal_plan": "in wasserstein_distance",
}

# Everything that the project may use and the script may not.
OTHERS = ("ot", "loky", "tqdm", "cloudpickle", "pytest", "hypothesis", "matplotlib", "yaml")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What a run with small engines writes, where only torch, NumPy and SciPy can be imported."""
    path = tmp_path_factory.mktemp("gpu") / "found.json"
    arguments = [str(SCRIPT), "--device", "cpu", "--json", str(path)]
    code = (
        f"import runpy, sys; sys.modules.update(dict.fromkeys({OTHERS!r})); "
        f"sys.path.insert(0, {str(SCRIPT.parent)!r}); sys.argv = {arguments!r}; "
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads(path.read_text(encoding="utf-8"))


def test_it_runs_through_with_three_packages(report):
    printed, found = report
    assert found["passed"] and not found["transport"]
    assert "POT is not installed" in printed and "; all passed\n" in printed
    assert all(row["name"] in printed for row in found["contract"] + found["engines"])
    assert len(found["engines"]) == 16
    assert all(row["device_s"] > 0 for row in found["engines"])


def test_controls_are_told_apart(report):
    rows = [row for row in report[1]["contract"] if row["control"] is not None]
    assert len(rows) > 40
    assert all(row["error"] <= row["tolerance"] < row["control"] for row in rows)


def test_every_function_is_tried():
    cases = contract(lambda t: {})
    there = {
        f"{short}.{name}"
        for short, module in vars(LIBRARY).items()
        for name in public_functions(module)
    }
    named = {case.name.split(",")[0] for case in cases}
    assert named | set(INSIDE) | set(WITHOUT_TENSORS) == there
    assert not named & set(INSIDE)


def test_a_device_that_is_not_there_is_named(capsys):
    for device in ("cuda:99", "meta", "nonsense"):
        assert on_gpu.main(["--device", device]) == 2
        said = capsys.readouterr().err
        assert f"no device '{device}' here" in said and "--device cpu" in said


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: run tests/on_gpu.py itself")
def test_without_a_gpu_nothing_is_claimed():
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True)
    assert done.returncode == 2 and not done.stdout
    assert "no device 'cuda' here" in done.stderr


def test_a_kernel_that_loses_digits_is_caught(monkeypatch):
    exact = flow_kernels.pair_sums

    def careless(tokens, heads, features):
        found = exact(tokens, heads, features)
        return found.bfloat16().to(found) if found.dtype == torch.float32 else found

    monkeypatch.setattr(flow_kernels, "pair_sums", careless)
    failed = {row["name"] for row in on_gpu.compare("cpu") if not row["passed"]}
    assert failed >= {"flow_kernels.pair_sums", "flow_kernels.rates, plain"}
    assert not any(name.startswith(("attention.", "sphere.", "flows.")) for name in failed)


def test_an_engine_that_breaks_does_not_stop_the_others(monkeypatch):
    def full(*args):
        raise MemoryError("no room for 3 texts")

    monkeypatch.setattr(encoder, "forward", full)
    rows = on_gpu.race("cpu", SMALL | {"paths": 2}, budget=60)
    broken = [row for row in rows if "failure" in row]
    assert [row["name"].split(",")[0] for row in broken] == ["encoder"] * 2
    assert all("no room for 3 texts" in row["failure"] and not row["passed"] for row in broken)
    assert all("device_s" in row for row in rows if row not in broken)


def test_the_workflow_runs_it_before_the_book():
    root = SCRIPT.parents[1]
    flow = yaml.safe_load((root / ".github/workflows/gpu.yml").read_text(encoding="utf-8"))
    commands = [step.get("run", "") for step in flow["jobs"]["gpu"]["steps"]]
    tried, built = (
        next(k for k, command in enumerate(commands) if words in command)
        for words in ("tests/on_gpu.py --json", "make book")
    )
    assert tried < built
