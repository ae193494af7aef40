"""Executors for replicates on many machines: Dask, by its client or by its scheduler's address.

Dask repeats what a dead worker was computing on another one. Its workers start with one BLAS thread
each, so that results agree to the bit with those of a serial run on machines of one kind.
"""

import contextlib

from rederive import validation

#: Seconds to wait for a scheduler that is asked for by its address.
PATIENCE = 10


@contextlib.contextmanager
def connected(executor):
    """Give an executor, and the number of its workers if it tells.

    Parameters
    ----------
    executor : concurrent.futures.Executor, dask.distributed.Client or str
        An executor or a client stays open afterwards; for an address such as
        ``"tcp://10.0.0.7:8786"`` a client is made and closed.

    Returns
    -------
    context manager of (concurrent.futures.Executor, int or None)
        The executor, and the number of its workers.

    Raises
    ------
    ValueError
        If the executor is none of these, the address cannot be reached, or Dask is not installed.
    RuntimeError
        If no worker is there, or packages differ between the client and its workers.
    """
    if isinstance(executor, str):
        with _client(executor) as client, connected(client) as found:
            yield found
    elif hasattr(executor, "get_executor"):
        yield executor.get_executor(pure=False, retries=3), _workers(executor)
    elif hasattr(executor, "submit"):
        yield executor, None
    else:
        expected = '"serial", "processes", an executor, a Dask client or a scheduler\'s address'
        validation.fail("executor", expected, executor)


def _client(address):
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        message = (
            "executor: an address needs Dask, which is not installed: pip install '.[cluster]'"
        )
        raise ValueError(message) from error
    try:
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise ValueError(
            f"executor: no scheduler answers at {address!r} within {PATIENCE} s ({reason}); "
            "start one with `dask scheduler`, or give the address that it prints"
        ) from error


def _workers(client):
    """Number of worker threads, after a check that all have the same packages."""
    try:
        client.get_versions(check=True)
    except ValueError as error:
        raise RuntimeError(
            "packages differ between this process, the scheduler and the workers; install the same "
            f"requirements.lock everywhere: {error}"
        ) from error
    workers = client.scheduler_info(n_workers=-1)["workers"]
    if not workers:
        raise RuntimeError("the scheduler has no worker; start one with `dask worker ADDRESS`")
    return sum(worker["nthreads"] for worker in workers.values())
