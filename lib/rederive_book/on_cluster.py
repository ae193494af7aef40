"""Pages on a Dask cluster: a backend for pytask-parallel.

A build that names a scheduler starts pytask with this module as a hook. Pages go to the workers, by
value: a worker that imported the task file itself would read the build's variables from its own
environment. The ledger and the site are made here, once the pages are there. Workers read the book
and write the notebooks themselves, so all machines must share the folder of the book.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import cloudpickle
from pytask import hookimpl

from rederive import clusters
from rederive_book import execution
from rederive_book.options import ENVIRONMENT

LOST = (
    "cluster: the scheduler was lost; pages that had finished are kept. "
    "Start it and its workers again, and give the same command"
)
DIED = (
    "the workers that tried this page died one after the other, most often for want of memory; "
    "give them more (`dask worker --memory-limit`), or run it here with --page and --no-site"
)


def workers(address: str, root: Path) -> int:
    """Count the workers of a cluster, after a check that each of them can run pages.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``tcp://10.0.0.7:8786``.
    root : Path
        The book.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If the scheduler does not answer, has no worker, or a worker has other packages, several
        threads, another version of the machinery, or does not see the book.
    """
    mark = root / "_build" / f".cluster-{os.getpid()}"
    mark.parent.mkdir(exist_ok=True)
    mark.write_text(address, encoding="utf-8")
    try:
        with clusters.client(address) as client, clusters.connected(client) as (_, count):
            _one_thread_each(client)
            _same_folder(client, mark)
    except RuntimeError as error:
        raise ValueError(f"cluster: {error}") from error
    finally:
        mark.unlink(missing_ok=True)
    return count


def _one_thread_each(client: Any) -> None:
    for at, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        if worker["nthreads"] != 1:
            raise ValueError(
                f"cluster: expected workers of one thread, got {worker['nthreads']} at {at}; "
                "a page needs a process of its own: `dask worker ADDRESS --nworkers N --nthreads 1`"
            )


def _same_folder(client: Any, mark: Path) -> None:
    here = _sees(str(mark))
    for at, there in client.run(_sees, str(mark), on_error="return").items():
        if isinstance(there, Exception):
            raise ValueError(
                f"cluster: the worker at {at} cannot import the machinery of the book ({there}); "
                "start it with the environment of this checkout"
            )
        if there[0] != here[0]:
            raise ValueError(
                f"cluster: the worker at {at} does not see {mark.parents[1]}; workers write the "
                "notebooks there, so the folder must be shared and have the same path everywhere"
            )
        if there[1] != here[1]:
            raise ValueError(
                f"cluster: the worker at {at} has other code in rederive_book than this checkout; "
                "start it again, from this one"
            )


def _sees(mark: str) -> tuple[str | None, str]:
    """Run on a worker: what it finds at a path, and a digest of its own machinery."""
    path, digest = Path(mark), hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + source.read_bytes())
    return path.read_text(encoding="utf-8") if path.exists() else None, digest.hexdigest()


class ClusterExecutor(Executor):
    """Sends pages to a cluster and runs every other task in a process of this machine."""

    def __init__(self, address: str) -> None:
        import loky

        self._client = clusters.client(address)
        self._cluster = clusters.ClientExecutor(self._client)
        self._here = loky.ProcessPoolExecutor(1)
        self._lost = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        """Send a task, `kwargs["task"]`, with the function that pytask-parallel puts around it."""
        task = kwargs["task"]
        if "page[" not in task.name:
            return self._here.submit(fn, *args, **kwargs)
        if self._lost:
            raise RuntimeError(LOST)
        cloudpickle.register_pickle_by_value(sys.modules[task.function.__module__])
        sent = self._cluster.submit(_run, cloudpickle.dumps((fn, args, kwargs)))
        found: Future = Future()
        sent.add_done_callback(lambda sent: self._pass_on(sent, found))
        return found

    def _pass_on(self, sent: Future, found: Future) -> None:
        from distributed import KilledWorker

        if sent.cancelled():
            self._lost = True
            found.set_exception(RuntimeError(LOST))
        elif isinstance(sent.exception(), KilledWorker):
            found.set_exception(RuntimeError(DIED))
        elif sent.exception() is not None:
            found.set_exception(sent.exception())
        else:
            found.set_result(sent.result())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let go of the cluster: what still runs there for this build is given up."""
        self._cluster.shutdown(wait=False)
        self._client.close()
        self._here.shutdown(wait=wait, kill_workers=cancel_futures)


def _run(sent: bytes) -> Any:
    """Run on a worker: what was sent."""
    execution.still_wanted = _still_wanted
    function, arguments, named = cloudpickle.loads(sent)
    return function(*arguments, **named)


def _still_wanted() -> bool:
    """Whether the scheduler still waits for what this worker's thread is at.

    It lets go of a page once the build that asked for it is gone, but the page runs to its end.
    """
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    return task is not None and task.state == "executing"


@hookimpl
def pytask_post_parse() -> None:
    """Take the place of pytask-parallel's own backend for Dask, which would start a cluster."""
    from pytask_parallel import ParallelBackend, registry

    address = os.environ[ENVIRONMENT["cluster"]]
    registry.register_parallel_backend(
        ParallelBackend.DASK, lambda n_workers: ClusterExecutor(address)
    )
