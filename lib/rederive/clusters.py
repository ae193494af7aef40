"""Executors for replicates on many machines: Dask, by its client or by its scheduler's address.

Dask repeats what a dead worker was computing on another one. Its workers start with one BLAS thread
each, so that results agree to the bit with those of a serial run on machines of one kind.
"""

import concurrent.futures
import contextlib
import functools
import sys
import threading
from concurrent.futures import Executor, Future

from rederive import validation

#: Seconds to wait for a scheduler that is asked for by its address.
PATIENCE = 10

#: What must agree with this process: on the scheduler the part that sends, on workers the part that
#: computes as well. Patch levels of Python and builds of torch (``+cpu``) may differ.
_SENDING = ("python", "dask", "distributed", "cloudpickle", "msgpack")
_COMPUTING = (*_SENDING, "numpy", "scipy", "torch")


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
        If no worker is there, if packages differ between the client and its workers, or if a batch
        killed several workers one after the other.
    """
    if isinstance(executor, str):
        with client(executor) as opened, connected(opened) as found:
            yield found
    elif hasattr(executor, "get_executor"):
        size = _workers(executor)
        sends = ClientExecutor(executor, retries=3)
        try:
            with _deaths_told():
                yield sends, size
        finally:  # whoever fails does not wait for the rest
            sends.shutdown(wait=False)
    elif hasattr(executor, "submit"):
        yield executor, None
    else:
        expected = '"serial", "processes", an executor, a Dask client or a scheduler\'s address'
        validation.fail("executor", expected, executor)


class ClientExecutor(Executor):
    """Sends to a Dask cluster, and cancels what waits once the client has given the scheduler up.

    Dask's own executor leaves a result waiting for ever that was on its way at that moment.

    Parameters
    ----------
    client : dask.distributed.Client
        It stays open.
    **options
        For each call that is sent, as of `Client.submit`.
    """

    def __init__(self, client, **options):
        self._client, self._waiting = client, set()
        self._sends = client.get_executor(pure=False, **options)
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="watch the scheduler", daemon=True).start()

    def submit(self, fn, /, *args, **kwargs):
        """Send a call.

        Parameters
        ----------
        fn : callable
        *args, **kwargs
            What it is called with, on a worker.

        Returns
        -------
        concurrent.futures.Future
        """
        sent = self._sends.submit(fn, *args, **kwargs)
        found = _SentFuture(sent)
        self._waiting.add(found)
        sent.add_done_callback(functools.partial(self._pass_on, found))
        return found

    def shutdown(self, wait=True, *, cancel_futures=False):
        """End the watch.

        Parameters
        ----------
        wait : bool, optional
            Whether to wait for what was sent.
        cancel_futures : bool, optional
            Whether to give up what was sent.
        """
        if cancel_futures:
            self._give_up()
        if wait:
            concurrent.futures.wait(list(self._waiting))
        self._closed.set()

    def _pass_on(self, found, sent):
        self._waiting.discard(found)
        found.settle(sent)

    def _watch(self):
        while not self._closed.wait(1):
            if self._client.status == "closed":
                self._give_up()

    def _give_up(self):
        for found in list(self._waiting):
            self._waiting.discard(found)
            found.settle(None)


class _SentFuture(Future):
    """What a caller waits for; to cancel it cancels what was sent."""

    def __init__(self, sent):
        super().__init__()
        self._sent, self._settled = sent, threading.Lock()

    def cancel(self):
        self._sent.cancel()
        return super().cancel()

    def settle(self, sent):
        """Take over what came of that which was sent, or cancel if it is None; once."""
        if not self._settled.acquire(blocking=False):
            return
        if sent is None or sent.cancelled():
            super().cancel()
        if self.set_running_or_notify_cancel():
            if sent.exception() is not None:
                self.set_exception(sent.exception())
            else:
                self.set_result(sent.result())


def client(address):
    """Connect to a scheduler.

    Parameters
    ----------
    address : str
        Such as ``"tcp://10.0.0.7:8786"``.

    Returns
    -------
    dask.distributed.Client
        To be closed by its user; packages and workers are not looked at.

    Raises
    ------
    ValueError
        If nothing answers at the address, or Dask is not installed.
    """
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


@contextlib.contextmanager
def _deaths_told():
    """Dask gives a batch up when it was there each time that a worker died; say what to change."""
    from distributed import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise RuntimeError(
            "several workers died one after the other at the same batch, most often for want of "
            "memory; give workers more (`dask worker --memory-limit`), or send smaller batches by "
            f"a larger number in `workers`: {error}"
        ) from error


def _workers(client):
    """Number of worker threads, after a check that all have the same packages."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    if not workers:
        raise RuntimeError("the scheduler has no worker; start one with `dask worker ADDRESS`")
    differences = _differences(client)
    if differences:
        raise RuntimeError(
            "packages differ between this process, the scheduler and the workers; install the same "
            f"requirements.lock and the same commit everywhere: {'; '.join(differences)}"
        )
    return sum(worker["nthreads"] for worker in workers.values())


def _differences(client):
    """What differs, in words. Dask itself only warns, and does not know what replicates need."""
    found = client.get_versions(packages=list(_COMPUTING[1:]))
    mine, differences = found["client"]["packages"], []
    places = [("the scheduler", found["scheduler"], _SENDING)]
    places += [(f"worker {at}", versions, _COMPUTING) for at, versions in found["workers"].items()]
    for place, versions, names in places:
        theirs = versions["packages"] if isinstance(versions, dict) else {}
        for name in names:
            there, here = _version(name, theirs), _version(name, mine)
            if there != here:
                differences.append(f"{place} has {name} {there}, this process {here}")
    for at, there in client.run(_library, on_error="return").items():
        if there != _library():
            differences.append(f"worker {at} has rederive {there}, this process {_library()}")
    return differences


def _version(name, versions):
    version = versions.get(name) or "missing"
    return ".".join(version.split(".")[:2]) if name == "python" else version.partition("+")[0]


def _library():
    """Run on a worker, which has to import the library for it: its version."""
    return sys.modules[__package__].__version__
