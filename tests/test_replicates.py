"""Replicates are addressed: the same numbers however and wherever they are computed."""

import io
import operator
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
import torch

from rederive.replicates import ReplicateError, generator, mean_and_error, replicate

SEED = 2026


def refused(words):
    return pytest.raises(ValueError, match=re.escape(words))


def _local(function):
    """Forget the module of a function, so that workers get its code and need not import tests."""
    function.__module__ = "__main__"
    return function


@_local
def experiment(rng):
    """Something with BLAS in it, so that threads could change the last bits."""
    matrix = rng.normal(size=(40, 40))
    return np.linalg.solve(matrix @ matrix.T + np.eye(40), rng.normal(size=40))[:3]


@_local
def fails_at_seven(rng):
    from rederive.replicates import generator

    if rng.random() == generator(2026, 7).random():
        raise ZeroDivisionError("nothing to divide")
    return 0.0


@pytest.fixture(scope="module")
def serial():
    return replicate(experiment, 23, SEED)


def test_results_come_in_order_and_stacked(serial):
    assert serial.shape == (23, 3) and serial.dtype == np.float64
    assert replicate(lambda rng: rng.random(), 4, SEED).shape == (4,)


@pytest.mark.parametrize("workers", [1, 3])
def test_processes_give_the_same_bits(serial, workers):
    again = replicate(experiment, 23, SEED, executor="processes", workers=workers)
    assert again.tobytes() == serial.tobytes()


def test_processes_take_functions_defined_on_the_spot():
    scale = 2.0
    found = replicate(lambda rng: scale * rng.random(), 5, SEED, executor="processes", workers=2)
    assert np.array_equal(found, replicate(lambda rng: 2 * rng.random(), 5, SEED))


def test_worker_processes_have_one_blas_thread(monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "2")

    def threads(rng):
        import threadpoolctl

        return max(pool["num_threads"] for pool in threadpoolctl.threadpool_info())

    assert replicate(threads, 2, SEED, executor="processes", workers=1).tolist() == [1, 1]


def test_an_executor_of_your_own_gives_the_same_bits_and_stays_open(serial):
    with ThreadPoolExecutor(3) as threads:
        for workers in (None, 1, 50):
            again = replicate(experiment, 23, SEED, executor=threads, workers=workers)
            assert again.tobytes() == serial.tobytes()
        assert threads.submit(int, "1").result() == 1


def test_spawned_processes_give_the_same_bits():
    draw = operator.methodcaller("normal", size=3)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        again = replicate(draw, 23, SEED, executor=pool)
    assert again.tobytes() == replicate(draw, 23, SEED).tobytes()


def test_a_replicate_depends_on_its_address_only(serial):
    assert np.array_equal(replicate(experiment, 5, SEED), serial[:5])
    assert np.array_equal(experiment(generator(SEED, 17)), serial[17])


def test_the_address_is_the_seed_sequence_of_the_contract():
    first = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(3,)))
    assert generator(SEED, 3).random() == first.random()
    second = np.random.default_rng(np.random.SeedSequence([SEED, 9], spawn_key=(3,)))
    assert generator(SEED, 3, stream=9).random() == second.random()


def test_no_stream_is_stream_zero_and_streams_differ():
    addresses = [(s, i, k) for s in (0, 1, SEED) for i in range(4) for k in (0, 1, 2)]
    first = {generator(s, i, stream=k).random() for s, i, k in addresses}
    assert len(first) == len(addresses)
    assert generator(SEED, 2).random() == generator(SEED, 2, stream=0).random()


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_an_error_names_its_replicate(executor):
    with pytest.raises(ReplicateError, match="replicate 7: ZeroDivisionError: nothing") as caught:
        replicate(fails_at_seven, 20, SEED, executor=executor, workers=2)
    assert caught.value.index == 7
    assert caught.value.__cause__ is not None


def test_an_error_stops_the_batches_that_wait():
    done, first = [], threading.Event()

    def function(rng):
        if not first.is_set():
            first.set()
            raise OSError("disk")
        time.sleep(0.005)
        done.append(1)
        return 0.0

    with ThreadPoolExecutor(1) as pool, pytest.raises(ReplicateError, match="replicate 0: OSError"):
        replicate(function, 1000, SEED, executor=pool, workers=250)
    assert len(done) < 500


def test_interrupts_are_not_swallowed():
    def function(rng):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replicate(function, 2, SEED)


def test_a_dead_worker_is_reported():
    with pytest.raises(RuntimeError, match="a worker process died") as caught:
        replicate(lambda rng: os._exit(3), 4, SEED, executor="processes", workers=1)
    assert "[0, 1, 2, 3]" in str(caught.value)


def test_functions_that_cannot_be_sent_are_refused():
    lock = threading.Lock()

    def function(rng):
        return float(lock.locked())

    with refused("function: expected one that can be sent to another process"):
        replicate(function, 2, SEED, executor="processes")
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        refused("function: expected one that the executor can send"),
    ):
        replicate(lambda rng: 0.0, 2, SEED, executor=pool)


def test_numbers_of_every_kind_are_taken():
    for value in (True, 1, np.float32(1), [[1]], torch.ones(2, requires_grad=True)):
        found = replicate(lambda rng, value=value: value, 2, SEED)
        assert found.dtype == np.float64 and (found == 1).all()
    assert replicate(lambda rng: 1j, 2, SEED).dtype == np.complex128


@pytest.mark.parametrize("value", [None, "1", {}, [[1], [1, 2]]])
def test_results_that_are_no_numbers_are_refused(value):
    with refused("function: expected a number or an array of numbers, got"):
        replicate(lambda rng: value, 2, SEED)


def test_results_of_changing_shape_are_refused():
    sizes = iter([2, 2, 3])
    with refused("function: expected the shape (2,) of replicate 0 each time, got (3,) from"):
        replicate(lambda rng: np.zeros(next(sizes)), 3, SEED)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"function": 3}, "function: expected a function of one random generator, got 3"),
        ({"count": 0}, "count: expected an integer >= 1, got 0"),
        ({"count": 2.0}, "count: expected an integer >= 1, got 2.0"),
        ({"seed": -1}, "seed: expected an integer >= 0 and <= 4294967295, got -1"),
        ({"seed": 2**32}, "seed: expected an integer >= 0 and <= 4294967295"),
        ({"seed": None}, "seed: expected an integer >= 0"),
        ({"stream": -1}, "stream: expected an integer >= 0"),
        ({"stream": "a"}, "stream: expected an integer >= 0"),
        ({"executor": 3}, 'executor: expected "serial", "processes", an executor'),
        ({"executor": None}, 'executor: expected "serial", "processes", an executor'),
        ({"workers": 0}, "workers: expected an integer >= 1, got 0"),
        ({"progress": "yes"}, "progress: expected one of False, True, got 'yes'"),
    ],
)
def test_bad_input_is_refused(change, words):
    good = {"function": experiment, "count": 2, "seed": SEED}
    with refused(words):
        replicate(**(good | change))


def test_bad_addresses_are_refused():
    with refused("index: expected an integer >= 0, got -1"):
        generator(SEED, -1)
    with refused("seed: expected an integer"):
        generator(1.5, 0)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_progress_shows_on_a_terminal_only(monkeypatch, stream, shown):
    monkeypatch.setattr(sys, "stderr", stream)
    replicate(lambda rng: 0.0, 3, SEED, progress=True, label="coin")
    assert ("coin" in stream.getvalue()) is shown
    before = stream.getvalue()
    replicate(lambda rng: 0.0, 3, SEED, progress=False, label="coin")
    assert stream.getvalue() == before


def test_mean_and_error_of_a_known_sample():
    mean, error, dof = mean_and_error([[1, 0], [2, 0], [3, 0], [6, 0]])
    # deviations −2, −1, 0, 3: variance 14/3, over 4 replicates
    assert mean.tolist() == [3, 0]
    assert error == pytest.approx([(14 / 12) ** 0.5, 0], rel=1e-15)
    assert dof == 3
    assert isinstance(mean_and_error([1, 2]).mean, float)


@pytest.mark.parametrize("values", [[1.0], 1.0, [[1.0, 2.0]]])
def test_one_replicate_has_no_error(values):
    with refused("replicates: expected at least two replicates"):
        mean_and_error(values)


def test_nan_replicates_are_refused():
    with refused("replicates: expected finite entries only"):
        mean_and_error([1.0, np.nan])


def test_module_does_not_import_torch():
    code = "import sys, rederive.replicates; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
