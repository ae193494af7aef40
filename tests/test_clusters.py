"""A Dask cluster gives the bits of a serial run, also if a worker is killed; errors are clear."""

import os
import signal
import socket
import threading
import time

import distributed
import numpy as np
import pytest

from rederive import clusters
from rederive.replicates import ReplicateError, generator, replicate

SEED, COUNT = 2026, 40


def experiment(rng, wait=0.0):
    """Something with BLAS in it, so that threads could change the last bits."""
    time.sleep(wait)
    matrix = rng.normal(size=(40, 40))
    return np.linalg.solve(matrix @ matrix.T + np.eye(40), rng.normal(size=40))[:3]


experiment.__module__ = "__main__"  # so that workers get its code and need not import tests


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def serial():
    return replicate(experiment, COUNT, SEED)


def test_a_client_gives_the_bits_of_a_serial_run_and_stays_open(client, serial):
    for workers in (None, 1, 5):
        found = replicate(experiment, COUNT, SEED, executor=client, workers=workers)
        assert found.tobytes() == serial.tobytes()
    assert client.status == "running"


def test_an_address_does_so_too(client, serial):
    found = replicate(experiment, COUNT, SEED, executor=client.scheduler.address)
    assert found.tobytes() == serial.tobytes()


def test_more_replicates_leave_the_earlier_ones_unchanged(client, serial):
    found = replicate(experiment, COUNT + 17, SEED, executor=client)
    assert found[:COUNT].tobytes() == serial.tobytes()


def test_a_worker_killed_in_the_middle_changes_no_bit(client, serial, tmp_path):
    victim, trace = next(iter(client.run(os.getpid).values())), tmp_path / "killed"

    def deadly(rng):
        if os.getpid() == victim and not trace.exists():
            trace.touch()
            os.kill(victim, signal.SIGKILL)
        return experiment(rng, wait=0.02)

    deadly.__module__ = "__main__"
    found = replicate(deadly, COUNT, SEED, executor=client)
    assert trace.exists()
    assert found.tobytes() == serial.tobytes()


def test_an_error_on_a_worker_names_its_replicate(client):
    def fails_at_seven(rng):
        if rng.random() == generator(SEED, 7).random():
            raise ZeroDivisionError("nothing to divide")
        return 0.0

    fails_at_seven.__module__ = "__main__"
    with pytest.raises(ReplicateError, match="replicate 7: ZeroDivisionError"):
        replicate(fails_at_seven, 20, SEED, executor=client)


def test_a_scheduler_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(clusters, "PATIENCE", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ValueError, match="no scheduler answers at"):
        replicate(experiment, 2, SEED, executor=address)


def test_other_packages_on_a_worker_are_refused(client, monkeypatch):
    found = client.get_versions(packages=["numpy", "scipy", "torch"])
    for versions in found["workers"].values():
        versions["packages"]["numpy"] = "1.0"
    monkeypatch.setattr(client, "get_versions", lambda packages: found)
    with pytest.raises(RuntimeError, match=r"packages differ.*worker tcp.* has numpy 1\.0"):
        replicate(experiment, 2, SEED, executor=client)


def test_another_patch_level_of_python_or_build_of_torch_is_no_difference(client, monkeypatch):
    found = client.get_versions(packages=["numpy", "scipy", "torch"])
    for versions in found["workers"].values():
        packages = versions["packages"]
        packages["python"] = ".".join(packages["python"].split(".")[:2]) + ".99.final.0"
        packages["torch"] = packages["torch"].partition("+")[0] + "+cu999"
    monkeypatch.setattr(client, "get_versions", lambda packages: found)
    assert len(replicate(experiment, 2, SEED, executor=client)) == 2


def test_a_cluster_without_workers_is_refused():
    with (
        distributed.LocalCluster(
            n_workers=0, dashboard_address=":0", silence_logs=50, processes=False
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(RuntimeError, match="no worker"),
    ):
        replicate(experiment, 2, SEED, executor=client)


def test_a_lost_scheduler_ends_with_a_clear_error():
    def endless(rng):
        time.sleep(0.5)
        return rng.random()

    endless.__module__ = "__main__"
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
        client = distributed.Client(cluster, set_as_default=False)
        threading.Timer(1.5, client.close).start()
        with pytest.raises(RuntimeError, match="scheduler was lost"):
            replicate(endless, 40, SEED, executor=client)
