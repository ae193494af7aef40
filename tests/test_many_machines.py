"""Many machines: the phase diagram of the examples and the pages of the book on a Dask cluster.

Schedulers and workers are processes of their own, started as the guide says, so that what is killed
or differs here is killed or differs as it would on a cluster.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import distributed
import numpy as np
import pytest
from throw_away import ThrowAwayBook

from rederive import clusters
from rederive.replicates import replicate

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the examples and benchmarks are no part of a package

from benchmarks import phase_diagram as measured  # noqa: E402
from examples import phase_diagram  # noqa: E402

SHAPE = {"side": 3, "replicates": 6, "d": 40}
PATIENCE = 900  # seconds for a process to start on a machine that is busy otherwise


def wait_for(happened, process=None):
    """Wait until something is true, or a process ends that should bring it about."""
    deadline = time.monotonic() + PATIENCE
    while not (found := happened()):
        assert process is None or process.poll() is None, "it ended early"
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.1)
    return found


class Cluster:
    """A scheduler and workers, each a process, and the address of the scheduler."""

    def __init__(self, stack, folder):
        self.stack, self.folder, self.workers = stack, folder, []
        place = folder / "scheduler.json"
        self.scheduler = self.start(
            *("-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"),
            *("--no-dashboard", "--scheduler-file", str(place)),
        )
        wait_for(place.exists, self.scheduler)
        self.address = wait_for(lambda: self.read(place), self.scheduler)

    @staticmethod
    def read(place):
        with contextlib.suppress(ValueError):
            return json.loads(place.read_text())["address"]

    def start(self, *command, **environment):
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=self.folder,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def work(self, count=1, threads=1, before="", **environment):
        """Start workers; `before` is code that they run first."""
        code = f"{before}\nfrom distributed.cli.dask_worker import main\nmain()"
        for _ in range(count):
            self.workers.append(
                self.start(
                    *("-c", code, self.address, "--no-nanny", "--no-dashboard"),
                    *("--nthreads", str(threads)),
                    **environment,
                )
            )
        with distributed.Client(self.address, set_as_default=False, timeout=PATIENCE) as client:
            client.wait_for_workers(len(self.workers), timeout=PATIENCE)
        return self


@pytest.fixture
def cluster(tmp_path):
    folder = tmp_path / "cluster"
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        yield Cluster(stack, folder)


def draw(rng):
    return rng.random()


draw.__module__ = "__main__"  # so that workers get its code and need not import tests


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    diagram = phase_diagram.Diagram(tmp_path_factory.mktemp("serial"), **SHAPE)
    diagram.run("serial", 1)
    return diagram.results()


def command(folder, shape, *arguments):
    """The example as the guide starts it, on a small diagram."""
    script = [sys.executable, "examples/phase_diagram.py", "--folder", str(folder)]
    script += ["--side", str(shape["side"]), "--dim", str(shape["d"])]
    script += ["--replicates", str(shape["replicates"])]
    return {
        "args": [*script, *arguments],
        "cwd": ROOT,
        "text": True,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }


def test_more_rounds_leave_the_earlier_ones_unchanged(tmp_path, serial):
    diagram = phase_diagram.Diagram(tmp_path, **SHAPE)
    diagram.run("serial", 1)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npy")}
    diagram.run("serial", 1, rounds=2)
    assert all(path.stat().st_mtime_ns == found for path, found in times.items())
    both = diagram.results(rounds=2)
    assert both.shape == (3, 3, 12, 3)
    assert both[:, :, :6].tobytes() == serial.tobytes()
    assert not np.isin(both[:, :, 6:], both[:, :, :6]).any()


def test_a_run_goes_on_where_it_was_stopped(tmp_path, serial):
    diagram = phase_diagram.Diagram(tmp_path, **SHAPE)
    diagram.run("serial", 1, cells=[0, 4, 7])
    assert len(diagram.missing(1)) == 6
    diagram.run("serial", 1)
    assert diagram.missing(1) == []
    assert diagram.results().tobytes() == serial.tobytes()


def test_a_cell_that_fails_leaves_no_part_of_itself(tmp_path):
    def fails(rng, d, theta, delta):
        if rng.random() < 0.3:
            raise ZeroDivisionError
        return np.zeros(3)

    diagram = phase_diagram.Diagram(tmp_path, **SHAPE, function=fails)
    with pytest.raises(RuntimeError, match="replicate"):
        diagram.run("serial", 1)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert all(np.load(path).shape == (6, 3) for path in tmp_path.glob("*.npy"))


def test_a_folder_of_another_diagram_is_refused(tmp_path):
    phase_diagram.Diagram(tmp_path, **SHAPE)
    with pytest.raises(ValueError, match="holds another diagram"):
        phase_diagram.Diagram(tmp_path, **{**SHAPE, "d": 41})


def test_the_top_eigenvector_knows_a_strong_signal_and_not_a_weak_one():
    rng = np.random.default_rng(0)
    strong, weak = (
        np.array([phase_diagram.instance(rng, 160, theta, 1.0)[1] for _ in range(12)])
        for theta in (6.0, 0.02)
    )
    assert (strong > phase_diagram.RECOVERED).all()
    assert np.median(weak) < phase_diagram.RECOVERED / 2


def test_overlaps_far_above_the_transition_are_those_of_the_theory(tmp_path):
    diagram = phase_diagram.Diagram(tmp_path, side=2, replicates=24, d=160)
    diagram.run("serial", 1)
    ratio, overlap, location = phase_diagram.predicted(diagram)
    clear = ratio > 1.5
    assert clear.sum() == 3
    found = diagram.results()[..., :2]
    error = found.std(axis=2, ddof=1) / 24**0.5
    off = np.abs(found.mean(axis=2) - np.stack([location, overlap], axis=-1))
    scale = np.stack([location, np.ones_like(overlap)], axis=-1)
    assert (off < 5 * error + 8 / 160 * scale)[clear].all()  # noise, and a bias of order 1/d


@pytest.mark.parametrize("delta", [0.25, 1.0, 2.5])
def test_recovery_lies_above_the_transition(delta):
    theta = phase_diagram.recovery_signal(delta)
    assert theta > phase_diagram.spikes.critical_signal(phase_diagram.SNR, delta, 0.5)
    y = phase_diagram.spikes.spike_parameter(phase_diagram.SNR, theta, delta)
    overlap = phase_diagram.spikes.outlier(y, delta, phase_diagram.GAMMA).overlap
    assert abs(overlap - phase_diagram.RECOVERED) < 1e-9


def test_a_lost_scheduler_keeps_the_finished_cells_and_the_run_goes_on_without_it(
    cluster, tmp_path
):
    slow = {"side": 3, "replicates": 40, "d": 160}  # so that the run does not end at once
    cluster.work(2)
    folder = tmp_path / "cells"
    process = subprocess.Popen(**command(folder, slow, "--cluster", cluster.address))
    cluster.stack.callback(process.kill)
    wait_for(lambda: len(list(folder.glob("cell-*.npy"))) >= 2, process)
    process.send_signal(signal.SIGSTOP)  # so that the run cannot end before the scheduler does
    cluster.scheduler.kill()
    cluster.scheduler.wait()
    process.send_signal(signal.SIGCONT)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, told
    assert "scheduler was lost" in told
    assert f"Finished cells are kept in {folder}" in told
    kept = len(list(folder.glob("cell-*.npy")))
    assert 2 <= kept < 9
    subprocess.run(**command(folder, slow), check=True, timeout=PATIENCE)
    serial = phase_diagram.Diagram(tmp_path / "serial", **slow)
    serial.run("serial", 1)
    found = phase_diagram.Diagram(folder, **slow).results()
    assert found.tobytes() == serial.results().tobytes()


def test_a_scheduler_that_does_not_answer_is_named(tmp_path):
    found = subprocess.run(**command(tmp_path / "cells", SHAPE, "--cluster", "tcp://127.0.0.1:9"))
    assert found.returncode == 1
    assert "no scheduler answers at 'tcp://127.0.0.1:9'" in found.stderr


def test_a_worker_with_another_package_is_refused(cluster):
    older = (
        "import importlib.metadata as m; v = m.version\n"
        "m.version = lambda name: '1.26.4' if name == 'numpy' else v(name)"
    )
    cluster.work(before=older)
    with pytest.raises(RuntimeError, match=r"same requirements\.lock.*worker tcp.* numpy 1\.26\.4"):
        replicate(draw, 2, 0, executor=cluster.address)


def test_a_worker_with_another_library_or_without_it_is_refused(cluster):
    cluster.work(before="import rederive; rederive.__version__ = '0.0.1'")
    with pytest.raises(RuntimeError, match=r"worker tcp.* has rederive 0\.0\.1"):
        replicate(draw, 2, 0, executor=cluster.address)


def test_a_batch_that_kills_its_workers_ends_with_advice(tmp_path):
    import dask

    def deadly(rng):
        os._exit(9)

    deadly.__module__ = "__main__"
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
        pytest.raises(RuntimeError, match=r"died one after the other.*--memory-limit"),
    ):
        replicate(deadly, 1, 0, executor=client)


class LosesResults:
    """A client whose scheduler goes at once; results that were on their way never come."""

    status = "running"

    def get_executor(self, **options):
        self.options = options
        return self

    def submit(self, fn, /, *args, **kwargs):
        self.sent = concurrent.futures.Future()
        return self.sent


def test_a_result_that_was_on_its_way_when_the_scheduler_went_is_given_up():
    client = LosesResults()
    with clusters.ClientExecutor(client, retries=3) as executor:
        assert client.options == {"pure": False, "retries": 3}
        done = executor.submit(len, "ab")
        client.sent.set_result(2)
        assert done.result(timeout=60) == 2
        failed = executor.submit(len, 0)
        client.sent.set_exception(TypeError("no length"))
        with pytest.raises(TypeError, match="no length"):
            failed.result(timeout=60)
        lost = executor.submit(len, "")
        assert not lost.done()
        client.status = "closed"
        (found,) = concurrent.futures.as_completed([lost], timeout=60)
        assert found.cancelled()
        client.sent.set_result(0)  # too late, and no error


def build(book, *arguments):
    """A build with the patience of this module: it starts more processes than others."""
    return subprocess.run(**book.command(*arguments), capture_output=True, timeout=PATIENCE)


PAGES = {
    "first": "from rederive import alpha\nprint(alpha.NAME, seed)",
    "second": (
        "import os\nfrom pathlib import Path\nstarter = os.getppid()\n"
        "if Path('/proc').exists():  # there a kernel is forked by a server of the process\n"
        "    starter = Path(f'/proc/{starter}/stat').read_text().rsplit(')')[1].split()[1]\n"
        "print(starter, profile)"
    ),
}


def test_pages_on_a_cluster_are_the_pages_of_a_serial_run(cluster, tmp_path):
    book = ThrowAwayBook(tmp_path / "book", PAGES)
    cluster.work(1, PYTHONPATH=str(book.root / "lib"))
    result = build(book, "--seed", "7", "--cluster", cluster.address)
    assert result.returncode == 0, result.stdout + result.stderr
    assert book.ran(result) == {"first", "second"}
    outputs = [cell_text(book.notebook(name)) for name in PAGES]
    assert outputs[0] == "alpha 7\n"
    assert outputs[1] == f"{cluster.workers[0].pid} quick\n"  # the worker started its kernel
    assert json.loads((book.root / "_build" / "claims.json").read_text())["run"]["seed"] == 7
    assert book.ran(build(book, "--seed", "7")) == set()  # no page is out of date afterwards


def cell_text(path):
    cells = json.loads(path.read_text())["cells"]
    return "".join(
        "".join(out["text"]) for c in cells for out in c.get("outputs", []) if "text" in out
    )


def test_a_lost_scheduler_ends_a_build_and_keeps_its_finished_pages(cluster, tmp_path):
    slow = "import time, pathlib\npathlib.Path({!r}).touch()\ntime.sleep(3600)"
    began = tmp_path / "began"
    book = ThrowAwayBook(
        tmp_path / "book", {"first": "print(1)", "second": slow.format(str(began))}
    )
    cluster.work(2, PYTHONPATH=str(book.root / "lib"))
    process = subprocess.Popen(
        **book.command("--cluster", cluster.address),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    cluster.stack.callback(process.kill)
    wait_for(lambda: began.exists() and book.notebook("first").exists(), process)
    cluster.scheduler.kill()
    told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "cluster: the scheduler was lost; pages that had finished are kept" in told
    book.write("second", "print(2)")
    assert book.ran(build(book)) <= {"second", "first"}
    assert cell_text(book.notebook("second")) == "2\n"


def test_a_page_whose_build_is_gone_is_not_put_in_place(cluster, tmp_path):
    began, ends = tmp_path / "began", tmp_path / "ends"
    slow = f"import pathlib, time\npathlib.Path({str(began)!r}).touch()\n"
    slow += f"while not pathlib.Path({str(ends)!r}).exists():\n    time.sleep(0.1)"
    book = ThrowAwayBook(tmp_path / "book", {"first": slow})
    cluster.work(PYTHONPATH=str(book.root / "lib"))
    process = subprocess.Popen(**book.command("--cluster", cluster.address))
    cluster.stack.callback(process.kill)
    wait_for(began.exists, process)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=PATIENCE)
    with distributed.Client(cluster.address, set_as_default=False) as client:
        wait_for(lambda: set(client.run(_states).values()) == {("cancelled",)})
        ends.touch()
        wait_for(lambda: set(client.run(_states).values()) == {()})
    assert not book.notebook("first").exists()


def _states(dask_worker):
    return tuple(task.state for task in dask_worker.state.tasks.values())


_states.__module__ = "__main__"


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ({"threads": 2}, "expected workers of one thread, got 2"),
        ({"before": "import rederive_book; rederive_book.__path__[:] = []"}, "cannot import the"),
        ({"elsewhere": True}, "other code in rederive_book"),
    ],
)
def test_a_cluster_that_cannot_run_pages_is_refused_before_anything_runs(
    cluster, tmp_path, trouble, words
):
    book = ThrowAwayBook(tmp_path / "book", PAGES)
    lib = book.root / "lib"
    if trouble.pop("elsewhere", False):
        lib = ThrowAwayBook(tmp_path / "other", PAGES).root / "lib"
        (lib / "rederive_book" / "execution.py").open("a").write("# another commit\n")
    cluster.work(**trouble, PYTHONPATH=str(lib))
    result = build(book, "--cluster", cluster.address)
    assert result.returncode == 2
    assert words in result.stderr
    assert not book.notebook("first").exists()


def test_a_folder_that_workers_do_not_see_is_named(tmp_path, monkeypatch):
    from rederive_book import on_cluster

    class Elsewhere:
        def run(self, function, mark, on_error):
            return {"tcp://w:1": (None, function(mark)[1])}

    mark = tmp_path / "book" / "_build" / "mark"
    mark.parent.mkdir(parents=True)
    mark.write_text("here")
    with pytest.raises(ValueError, match=f"does not see {tmp_path / 'book'}; .* must be shared"):
        on_cluster._same_folder(Elsewhere(), mark)


def test_the_cluster_of_a_build_is_an_address(tmp_path):
    book = ThrowAwayBook(tmp_path / "book", PAGES)
    for given, words in (
        ("elsewhere", "an address such as"),
        ("tcp://127.0.0.1:9", "no scheduler"),
    ):
        result = build(book, "--cluster", given)
        assert result.returncode == 2
        assert words in result.stderr


def test_the_guide_shows_what_was_measured():
    if not measured.RESULTS.exists():
        pytest.fail("run `python -m benchmarks.phase_diagram` and put what it prints in the guide")
    found = json.loads(measured.RESULTS.read_text(encoding="utf-8"))
    assert found["bits equal"]
    assert found["instances"] == 10_000
    guide = (ROOT / "chapters" / "many-machines.md").read_text(encoding="utf-8")
    assert measured.shown(found) in guide
    # of all the time; single columns differ by more than that from run to run
    assert found["seconds"]["1 worker"] < 1.05 * found["seconds"]["one process"]


def test_the_address_that_a_client_was_made_for_is_closed_again(cluster):
    cluster.work()
    before = clusters.client(cluster.address)
    with before:
        replicate(draw, 3, 0, executor=cluster.address)
        others = set(before.run_on_scheduler(_clients)) - {before.id}
    assert {name for name in others if name.startswith("Client")} == set()


def _clients(dask_scheduler):
    return list(dask_scheduler.clients)


_clients.__module__ = "__main__"
