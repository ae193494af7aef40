"""What pytask remembers of earlier builds: a memory that is damaged is forgotten."""

from __future__ import annotations

import shutil
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

LOCK, JOURNAL, FOLDER = "pytask.lock", "pytask.lock.journal", ".pytask"
DATABASE = "pytask.sqlite3"


def forget(root: Path) -> None:
    """Forget all earlier builds; what they made stays, and is made anew."""
    shutil.rmtree(root / FOLDER, ignore_errors=True)
    for name in (LOCK, JOURNAL):
        (root / name).unlink(missing_ok=True)


def forget_if_damaged(root: Path) -> str | None:
    """Forget earlier builds if what was written about them cannot be read.

    pytask mends its journal and its caches by itself, and stops at the other two files.

    Parameters
    ----------
    root : Path
        The book.

    Returns
    -------
    str or None
        The name of the damaged file; None, and nothing is done, if there is none.
    """
    for name, readable in ((LOCK, _lock_readable), (f"{FOLDER}/{DATABASE}", _database_readable)):
        if (root / name).exists() and not readable(root / name):
            forget(root)
            return name
    return None


def _lock_readable(path: Path) -> bool:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # neither UTF-8 nor TOML
        return False
    tasks = found.get("task", [])
    return (
        isinstance(found.get("lock-version"), str)
        and isinstance(tasks, list)
        and all(isinstance(task, dict) and {"id", "state"} <= task.keys() for task in tasks)
    )


def _database_readable(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(path)) as database:
            return database.execute("PRAGMA quick_check").fetchone() == ("ok",)
    except sqlite3.DatabaseError:
        return False
