"""One build at a time in a folder, and no process of a build that outlives it.

A build is a command, pytask below it, a worker for each page, and Sphinx. Whoever kills one of them
(a user, or a system out of memory) leaves the others at work, and the next build would write into
the same files. So each process watches the one that asked for it, and ends soon after it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

#: The variable by which a process of a build knows that it is one: the command's process.
BUILD = "REDERIVE_BUILD"

_watched: set[int] = set()


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """Refuse to touch a build that another command is at; a dead command counts for nothing.

    Parameters
    ----------
    root : Path
        The book.

    Raises
    ------
    ValueError
        If another build is at work there.
    """
    lock = FileLock(root / "_build" / ".lock", timeout=0)
    Path(lock.lock_file).parent.mkdir(exist_ok=True)
    try:
        with lock:
            yield
    except Timeout:
        raise ValueError(f"directory: another build is at work in {root}; wait for it") from None


def leave_with(parent: int, every: float = 0.2) -> None:
    """End this process soon after its parent is gone, however the parent ended.

    Parameters
    ----------
    parent : int
        The process that started this one. Nothing happens on Windows, where a child is not told.
    every : float, optional
        Seconds between two looks.
    """
    if parent in _watched:
        return
    _watched.add(parent)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(every)
        os._exit(1)  # as if killed: what is written whole or not at all stays so

    threading.Thread(target=watch, name="leave with parent", daemon=True).start()
