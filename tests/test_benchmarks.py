"""Benchmarks: fair clocks, fitted exponents, results that are whole, and a page that shows them."""

import dataclasses
import importlib
import json
import math
import subprocess

import numpy as np
import pytest
from benchmarks import __main__ as command
from benchmarks import growth, page, recording, rendering, roofline, timing
from benchmarks.names import LARGE, NAMES

from rederive_book import blocks

ROW = recording.Row("ours", "", 0.002, None, 1e-15)
PEER = recording.Row("peer", "bench_pooling.gather_einsum", 0.008, [3.5, 4.0, 4.5], 2e-15)
GROWTH = recording.Growth(
    kernel="sums",
    variable="n",
    fixed="d = 3",
    sizes=[10, 100, 1000, 10_000],
    seconds=[1e-5, 1e-3, 0.1, 10.0],
    peaks=[0, 0, 8 * 2**20, 80 * 2**20],
    base=100 * 2**20,
    order=1,
    note="all of it",
)
RESULT = recording.Result(
    name="pooling",
    date="2026-01-02",
    commit="0123456789ab",
    machine="2 cores, a processor",
    versions={"numpy": "2.0"},
    blas="openblas 0.3 (Zen)",
    coretype="",
    peaks={
        "flops": 1e10,
        "exponentials": 1e9,
        "cube roots": 1e8,
        "bytes": 1e10,
        "cached bytes": 1e11,
    },
    took=12.5,
    comparisons=[
        recording.Comparison("sums", "n = 5", 1, 7, "largest error", [ROW, PEER]),
        recording.Comparison("sums", "n = 5", 2, 7, "largest error", [ROW, PEER]),
    ],
    goals=[
        recording.Goal("sums against a loop", "at least", 8.0, 4.0, "times as fast", ""),
        recording.Goal("error of sums", "at most", 1e-12, 1e-15, "", ""),
        recording.Goal("sums against nobody", "at least", 2.0, None, "times as fast", "no peer"),
    ],
    growths=[GROWTH],
    rooflines=[recording.Roofline("sums", "n = 5", {"flops": 1e9, "bytes": 1e8}, 0.4, "a note")],
)


class FakeClock:
    """A clock that contestants advance."""

    def __init__(self):
        self.now, self.pace = 0.0, 1.0

    def __call__(self):
        return self.now

    def task(self, seconds):
        def run():
            self.now += seconds * self.pace

        return run


def test_every_contestant_runs_every_round_and_the_first_round_does_not_count():
    clock, order = FakeClock(), []
    tick = clock.task(1.0)
    tasks = {name: lambda name=name: (order.append(name), tick()) for name in "abc"}
    times = timing.rounds_of(tasks, 5, clock)
    assert {name: len(found) for name, found in times.items()} == dict.fromkeys("abc", 5)
    rounds = [tuple(order[i : i + 3]) for i in range(0, 18, 3)]
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds)
    assert len(set(rounds)) > 1


def test_paired_ratios_do_not_see_a_machine_that_slows_down():
    clock = FakeClock()
    ours, peer = clock.task(2.0), clock.task(6.0)

    def slowing():
        ours()
        clock.pace *= 1.01

    times = timing.rounds_of({"ours": slowing, "peer": peer}, 30, clock)
    assert max(times["peer"]) > 1.2 * min(times["peer"])
    low, median, high = timing.paired_ratios(times["peer"], times["ours"])
    assert 3.0 - 1e-9 <= low <= median <= high <= 3.0 * 1.01 + 1e-9


def test_quartiles_of_ratios_are_those_of_the_pairs():
    assert timing.paired_ratios([2, 4, 6, 8, 10], [1, 1, 1, 1, 1]) == [4, 6, 8]
    assert timing.paired_ratios([3.0], [1.5]) == [2.0, 2.0, 2.0]


def test_the_least_time_of_a_quick_call_is_taken_and_a_slow_call_runs_once():
    clock = FakeClock()
    assert timing.seconds_of(clock.task(0.1), 0.35, clock) == pytest.approx(0.1)
    calls = []
    slow = clock.task(5.0)
    assert timing.seconds_of(lambda: (calls.append(1), slow()), 0.35, clock) == 5.0
    assert len(calls) == 1


def test_a_coarse_clock_times_short_calls():
    clock = FakeClock()
    quick = clock.task(1e-4)

    def coarse():
        return math.floor(clock() / 0.01) * 0.01

    assert timing.seconds_of(quick, 0.35, coarse) == pytest.approx(1e-4, rel=1)
    times = timing.rounds_of({"ours": quick, "peer": clock.task(3e-3)}, 5, coarse)
    assert min(times["ours"]) > 0 and min(times["peer"]) > 0


def test_fit_finds_the_exponent_of_a_power_and_ignores_fixed_costs():
    sizes = growth.decades(10, 10_000)
    law = growth.fit(sizes, [3.0 * n**1.5 for n in sizes])
    assert law.exponent == pytest.approx(1.5) and law.factor == pytest.approx(3.0)
    assert law.spread == pytest.approx(0, abs=1e-6)
    bent = growth.fit(sizes, [1.0 + n**2 / 100 for n in sizes])
    assert bent.exponent == pytest.approx(2, abs=0.1)
    noise = np.random.default_rng(0).normal(size=len(sizes)) / 10
    rough = growth.fit(sizes, [n**1.5 * math.exp(e) for n, e in zip(sizes, noise, strict=True)])
    assert abs(rough.exponent - 1.5) < rough.spread < 1


def test_largest_size_carries_memory_on_and_says_when_there_is_none():
    (one,) = RESULT.growths
    room = one.base + 8 * 2**30
    assert growth.largest_size(one, room) == pytest.approx(1_024_000)
    square = dataclasses.replace(one, order=2)
    assert growth.largest_size(square, room) == pytest.approx(10_000 * math.sqrt(102.4))
    flat = dataclasses.replace(one, peaks=[0, 0, 0, 2**20])
    assert growth.largest_size(flat) is None
    assert growth.largest_size(dataclasses.replace(one, peaks=None)) is None


def hold(size):
    """Make a callable that fills memory: for a process that is measured."""
    return lambda: np.ones(size).sum()


def test_fresh_processes_report_time_and_the_memory_that_they_grew_by():
    found = growth.fresh(hold, 10, [10, 8_000_000])
    if found[0][1] is None:
        pytest.skip("the system does not tell the peak of a process")
    assert all(seconds > 0 for seconds, _, _ in found)
    assert found[0][2] < 2**21 < 48 * 2**20 < found[1][2] < 128 * 2**20


def test_bound_is_the_longer_of_computing_and_moving():
    rates = RESULT.peaks
    assert roofline.bound({"flops": 1e10, "exponentials": 5e9, "bytes": 1e10}, rates) == (
        pytest.approx(6.0),
        "exponentials",
    )
    assert roofline.bound({"flops": 1e9, "bytes": 1e10}, rates) == (pytest.approx(1.0), "bytes")


def test_peaks_have_every_kind_of_work():
    found = roofline.peaks()
    assert set(found) == set(roofline.COMPUTING | roofline.MOVING)
    assert all(1e6 < rate < 1e14 for rate in found.values())


def test_a_goal_is_met_missed_or_open():
    missed, met, untried = RESULT.goals
    assert (missed.met, met.met, untried.met) == (False, True, None)
    with pytest.raises(ValueError, match="at least"):
        recording.Goal("a", "about", 1.0, 1.0, "", "")


def test_a_result_that_is_read_back_is_the_same(tmp_path):
    recording.save(RESULT, tmp_path)
    assert recording.load(tmp_path / "pooling.json") == RESULT
    assert [path.name for path in tmp_path.iterdir()] == ["pooling.json"]


def test_a_result_that_cannot_be_written_leaves_the_earlier_one(tmp_path, monkeypatch):
    recording.save(RESULT, tmp_path)
    before = (tmp_path / "pooling.json").read_bytes()
    broken = dataclasses.replace(RESULT, took=math.nan)  # no JSON
    with pytest.raises(ValueError):
        recording.save(broken, tmp_path)

    def interrupted(self, text, **kwargs):
        self.write_bytes(text.encode()[:40])
        raise OSError("no space left")

    monkeypatch.setattr(recording.Path, "write_text", interrupted)
    with pytest.raises(OSError, match="no space"):
        recording.save(dataclasses.replace(RESULT, took=1.0), tmp_path)
    assert (tmp_path / "pooling.json").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found.pop("machine"), "expected the fields"),
        (lambda found: found.update(more=1), "expected the fields"),
        (lambda found: found.update(took="long"), r"took: expected float"),
        (lambda found: found["goals"][0].update(measured="8"), r"goals\[0\].measured"),
        (lambda found: found["growths"][0].update(sizes=[1.5]), r"sizes\[0\]: expected int"),
        (lambda found: found["comparisons"][0]["rows"].append(3), "expected the fields"),
    ],
)
def test_a_result_of_another_shape_is_refused(tmp_path, change, message):
    found = json.loads(json.dumps(dataclasses.asdict(RESULT)))
    change(found)
    file = tmp_path / "pooling.json"
    file.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        recording.load(file)


def test_the_page_states_losses_misses_and_accuracy():
    slower = dataclasses.replace(PEER, contestant="quick peer", ratio=[0.4, 0.5, 0.6])
    lost = dataclasses.replace(RESULT.comparisons[0], rows=[ROW, slower])
    text = page.rendered([dataclasses.replace(RESULT, comparisons=[lost])])
    assert "Of 3 goals 1 are met and 1 missed; 1 not measured." in text
    assert text.index("**missed**") < text.index("| open |") < text.index("| met |")
    assert "* sums (n = 5): quick peer takes 0.500 of our time on one thread." in text
    assert "Error: largest error." in text
    assert "| 8\u00a0ms | 0.500 [0.400, 0.600] |" in text


def test_one_and_two_threads_stand_side_by_side_and_the_code_below():
    text = page.rendered([RESULT])
    assert "**n = 5**\n\n|  | one thread | × ours | two threads | × ours | error |" in text
    row = next(line for line in text.splitlines() if line.startswith("| peer"))
    assert row.count("4 [3.50, 4.50]") == 2
    assert "../benchmarks/bench_pooling.py" in text and ":pyobject: gather_einsum" in text
    assert text.count("{literalinclude}") == 1


def test_growth_and_rooflines_are_shown_with_their_uncertainty():
    text = page.rendered([RESULT])
    assert "2.00" in text and "80\u00a0MiB" in text
    assert "extrapolat" in text
    assert "| 100\u00a0ms | flops | 4 × |" in text


def test_a_core_type_is_named_only_where_it_was_set():
    assert "OPENBLAS_CORETYPE" not in page.rendered([RESULT])
    text = page.rendered([dataclasses.replace(RESULT, coretype="Haswell")])
    assert "`OPENBLAS_CORETYPE` was set to `Haswell`" in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (4.126, "4.13"), (41.26, "41.3"), (12345.6, "12\u202f346"), (3e-15, "3.0·10⁻¹⁵"),
     (2.5e8, "2.5·10⁸"), (1e-3, "0.00100")],
)  # fmt: skip
def test_numbers_have_three_digits(value, shown):
    assert rendering.rounded(value) == shown


def test_a_block_is_replaced_and_the_rest_stays():
    text = "before\n% a\n\nold\n\n% b\nafter\n"
    assert blocks.replaced(text, "% a", "% b", "new\n") == "before\n% a\n\nnew\n\n% b\nafter\n"
    with pytest.raises(ValueError, match="expected the lines"):
        blocks.replaced("no lines", "% a", "% b", "new\n")


def test_the_page_shows_what_is_recorded():
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.updated(text, recording.load_all([*NAMES, LARGE])) == text


def test_every_recorded_result_is_valid_and_belongs_to_a_benchmark():
    recorded = sorted(recording.RESULTS.glob("*.json"))
    assert {path.stem for path in recorded} <= {*NAMES, LARGE}
    for path in recorded:
        found = recording.load(path)
        assert found.name == path.stem
        assert all(made.rows[0].ratio is None for made in found.comparisons)
        for made in found.comparisons:
            for row in made.rows[1:]:
                low, median, high = row.ratio
                assert 0 < low <= median <= high


def test_every_benchmark_is_named_once():
    modules = {path.stem for path in command.recording.ROOT.glob("benchmarks/bench_*.py")}
    assert modules == {f"bench_{name}" for name in [*NAMES, LARGE]}


def test_functions_whose_code_the_page_shows_exist():
    shown = {
        row.code
        for path in recording.RESULTS.glob("*.json")
        for made in recording.load(path).comparisons
        for row in made.rows
        if row.code
    }
    for name in shown:
        module, function = name.split(".")
        assert callable(getattr(importlib.import_module(f"benchmarks.{module}"), function)), name


def test_a_partial_run_keeps_the_other_results_and_a_failure_is_reported(tmp_path, monkeypatch):
    kept = dataclasses.replace(RESULT, name="flow")
    recording.save(kept, tmp_path)
    asked = []

    def run(line, *, cwd, env):
        name = line[3]
        asked.append((name, env))
        if name == "heads":
            return subprocess.CompletedProcess(line, 1)
        recording.save(dataclasses.replace(RESULT, name=name), tmp_path)
        return subprocess.CompletedProcess(line, 0)

    monkeypatch.setattr(command.recording, "RESULTS", tmp_path)
    monkeypatch.setattr(command.subprocess, "run", run)
    written = []
    monkeypatch.setattr(command.page, "write", lambda results: written.append(len(results)))
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert command.main(["heads", "pooling"]) == 1
    assert [name for name, _ in asked] == ["heads", "pooling"]
    assert all("OPENBLAS_CORETYPE" not in env for _, env in asked)
    assert recording.load(tmp_path / "flow.json") == kept
    assert len(written) == 1


def test_an_unknown_benchmark_is_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["speed"])
    assert "expected names among" in capsys.readouterr().err
