"""Monte-Carlo replicates with addressed seeds.

Replicate i of an experiment draws from a generator that depends on (seed, stream, i) and on nothing
else. Serial runs, processes and clusters therefore return the same numbers, whatever the number of
workers and the order in which they finish. On one machine they agree to the bit as long as the
function computes with one BLAS thread everywhere: worker processes started here have one.
"""

import contextlib
import functools
import math
import os
import pickle
from concurrent.futures import BrokenExecutor, CancelledError, as_completed
from typing import NamedTuple

import numpy as np

from rederive import clusters, validation

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class ReplicateError(RuntimeError):
    """A replicate failed; `index` says which, so that :func:`generator` can repeat it alone."""

    def __init__(self, index, message):
        super().__init__(index, message)
        self.index = index

    def __str__(self):
        return f"replicate {self.index}: {self.args[1]}"


class Estimate(NamedTuple):
    """A mean over replicates with its standard error and degrees of freedom."""

    mean: np.ndarray
    standard_error: np.ndarray
    dof: int


def generator(seed, index, *, stream=None):
    """Return the random generator of one replicate.

    Parameters
    ----------
    seed : int
        Seed of the run, 0 ≤ seed < 2³².
    index : int
        Number of the replicate, from 0.
    stream : int, optional
        Number of the experiment, 0 ≤ stream < 2³², so that experiments with one seed draw
        independent numbers. None is stream 0.

    Returns
    -------
    numpy.random.Generator
        A fresh generator, seeded by ``SeedSequence([seed, stream], spawn_key=(index,))``.

    Raises
    ------
    ValueError
        If an argument is not an integer in its range.
    """
    seed, stream = _address(seed, stream)
    return _generator(seed, stream, validation.integer(index, "index", minimum=0))


def replicate(
    function,
    count,
    seed,
    *,
    stream=None,
    executor="serial",
    workers=None,
    progress=False,
    label="",
):
    """Evaluate a random function many times with addressed seeds.

    Parameters
    ----------
    function : callable
        Takes a ``numpy.random.Generator`` and returns a number or an array; the shape must be the
        same each time.
    count : int
        Number of replicates, at least 1.
    seed : int
        Seed of the run, 0 ≤ seed < 2³².
    stream : int, optional
        Number of the experiment; a page gives each of its experiments another one.
    executor : {"serial", "processes"}, concurrent.futures.Executor, Dask client or str, optional
        Where to compute. "processes" starts worker processes with one BLAS thread each and accepts
        functions defined in a notebook. With an executor of your own (threads, a cluster's) the
        function must be one that this executor can send, and it stays open afterwards. A
        `dask.distributed.Client`, or the address of its scheduler such as
        ``"tcp://10.0.0.7:8786"``, computes on a cluster.
    workers : int, optional
        Number of worker processes; by default the number of cores, or what a Dask cluster has.
        For an executor of your own it sets the number of batches only.
    progress : bool, optional
        Show a progress bar, if the standard error is a terminal.
    label : str, optional
        Words in front of the progress bar.

    Returns
    -------
    numpy.ndarray, shape (count, …)
        The results in order of their index, in float64 (complex128 if any is complex).

    Raises
    ------
    ValueError
        If an argument is out of its range, a result is no array of numbers, shapes differ between
        replicates, the function cannot be sent to another process, or no scheduler is reached.
    RuntimeError
        If a worker process dies, or a cluster is lost, has no worker or other packages.
    ReplicateError
        If the function raises; the message and the attribute `index` name the replicate.

    Notes
    -----
    Replicate i draws from ``default_rng(SeedSequence([seed, stream], spawn_key=(i,)))``. Work is
    sent in batches, since sending costs a millisecond or two.
    """
    if not callable(function):
        validation.fail("function", "a function of one random generator", function)
    count = validation.integer(count, "count", minimum=1)
    seed, stream = _address(seed, stream)
    if workers is not None:
        workers = validation.integer(workers, "workers", minimum=1)
    validation.one_of(progress, "progress", (False, True))
    task = functools.partial(_batch, function, seed, stream)
    with _bar(count, progress, label) as bar:
        if executor == "serial":
            results = []
            for index in range(count):
                results += task(index, index + 1)
                bar.update()
        elif executor == "processes":
            workers = min(workers or _cores(), count)
            with _processes(workers, function) as pool:
                results = _spread(pool, task, count, workers, bar)
        else:
            with clusters.connected(executor) as (pool, size):
                results = _spread(pool, task, count, workers or size or _cores(), bar)
    return _stack(results)


@validation.representable
def mean_and_error(replicates):
    """Return the mean of replicates, its standard error and its degrees of freedom.

    Parameters
    ----------
    replicates : array_like, shape (R, …)
        Independent replicates, R ≥ 2.

    Returns
    -------
    Estimate
        `mean` and `standard_error` of shape (…), a float each if there are no further axes, and
        `dof` = R − 1.

    Raises
    ------
    ValueError
        If there are fewer than two replicates or an entry is not finite.
    """
    values = validation.array(replicates, "replicates")
    if values.ndim == 0 or len(values) < 2:
        validation.fail("replicates", "at least two replicates", f"shape {values.shape}")
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    return Estimate(values.mean(axis=0)[()], error[()], len(values) - 1)


def _address(seed, stream):
    seed = validation.integer(seed, "seed", minimum=0, maximum=2**32 - 1)
    if stream is None:
        return seed, 0
    return seed, validation.integer(stream, "stream", minimum=0, maximum=2**32 - 1)


def _generator(seed, stream, index):
    return np.random.default_rng(np.random.SeedSequence([seed, stream], spawn_key=(index,)))


def _batch(function, seed, stream, start, stop):
    """Run in a worker: the replicates start…stop−1, as a list of arrays."""
    results = []
    for index in range(start, stop):
        try:
            value = function(_generator(seed, stream, index))
        except Exception as error:
            raise ReplicateError(index, f"{type(error).__name__}: {error}") from error
        results.append(_numbers(value, index))
    return results


def _numbers(value, index):
    try:
        found = np.asarray(value.detach().cpu() if validation.is_tensor(value) else value)
    except ValueError as error:
        validation.fail("function", "a number or an array of numbers", f"{error}, at {index}")
    if found.dtype.kind not in "biufc":
        got = f"{type(value).__name__} from replicate {index}"
        validation.fail("function", "a number or an array of numbers", got)
    return found.astype(np.complex128 if found.dtype.kind == "c" else np.float64)


def _spread(pool, task, count, workers, bar):
    """Send batches, about four a worker, and put the results in order."""
    size = math.ceil(count / (4 * workers))
    futures = {
        pool.submit(task, start, min(start + size, count)): start for start in range(0, count, size)
    }
    found = {}
    try:
        for future in as_completed(futures):
            start = futures[future]
            found[start] = future.result()
            bar.update(len(found[start]))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        # What the function itself raises comes as a ReplicateError, so this is the sending.
        validation.fail("function", "one that the executor can send", str(error))
    except (BrokenExecutor, CancelledError) as error:
        missing = sorted(set(futures.values()) - set(found))
        raise RuntimeError(
            "a worker process died, perhaps for want of memory, or the cluster's scheduler was "
            f"lost; the batches of {size} replicates that begin at {missing} are not done"
        ) from error
    finally:
        for future in futures:
            future.cancel()
    return [result for start in sorted(found) for result in found[start]]


@contextlib.contextmanager
def _processes(workers, function):
    """Worker processes for one run, killed if it fails."""
    import cloudpickle
    import loky

    try:
        cloudpickle.dumps(function)
    except Exception as error:
        validation.fail("function", "one that can be sent to another process", str(error))
    pool = loky.ProcessPoolExecutor(workers, env=dict.fromkeys(_THREADS, "1"))
    try:
        yield pool
    except BaseException:
        pool.shutdown(kill_workers=True)
        raise
    pool.shutdown()


def _stack(results):
    for index, result in enumerate(results):
        if result.shape != results[0].shape:
            validation.fail(
                "function",
                f"the shape {results[0].shape} of replicate 0 each time",
                f"{result.shape} from replicate {index}",
            )
    return np.stack(results)


def _bar(count, progress, label):
    from tqdm import tqdm

    return tqdm(total=count, desc=label or None, disable=None if progress else True, leave=False)


def _cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
