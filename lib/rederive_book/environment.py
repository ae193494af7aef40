"""Set-up with nothing but Python: makes ``.venv`` and installs what the lock names, once.

Run as a plain script, before anything is installed: ``python lib/rederive_book/environment.py``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INPUTS = ("requirements.lock", "requirements-torch.txt", "pyproject.toml")


def digest(root: Path) -> str:
    """What the environment is made from: the interpreter, the content of three files, the place.

    A checkout that was moved or copied with its ``.venv`` would otherwise import the old one.
    """
    state = hashlib.sha256(f"{sys.version}\n{root}".encode())
    for name in INPUTS:
        state.update((root / name).read_bytes())
    return state.hexdigest()


def interpreter(root: Path) -> Path:
    """The Python of the environment."""
    folder = root / ".venv"
    return folder / "Scripts" / "python.exe" if sys.platform == "win32" else folder / "bin/python"


def commands(root: Path) -> list[list[str]]:
    """The installs, in order: every locked package with its hash, torch, the book itself."""
    pip = [str(interpreter(root)), "-m", "pip", "install", "--quiet"]
    return [
        [*pip, "--no-deps", "--require-hashes", "--requirement", str(root / "requirements.lock")],
        [*pip, "--requirement", str(root / "requirements-torch.txt")],
        [*pip, "--no-deps", "--no-build-isolation", "--editable", str(root)],
    ]


def set_up(root: Path) -> bool:
    """Bring ``.venv`` up to date; returns whether anything had to be done.

    A set-up that was killed has left no stamp, and this one goes on with what it finds.
    """
    if _up_to_date(root):
        return False
    with _alone(root):
        if _up_to_date(root):  # by another command, while this one waited
            return False
        print("Setting up .venv (once, a few minutes) ...", flush=True)
        if not (interpreter(root).exists() and _pip_there(root)):  # missing or half made
            venv.create(root / ".venv", with_pip=True, clear=(root / ".venv").exists())
        for command in commands(root):
            subprocess.run(command, check=True)
        _stamp(root).write_text(digest(root), encoding="utf-8")
    return True


def _stamp(root: Path) -> Path:
    return root / ".venv" / "rederive-inputs"


def _up_to_date(root: Path) -> bool:
    return _stamp(root).exists() and _stamp(root).read_bytes() == digest(root).encode()


def _pip_there(root: Path) -> bool:
    """Whether the environment has pip, or gets it back: set-up was killed, or Python replaced."""
    python = str(interpreter(root))
    try:
        if subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode:
            subprocess.run([python, "-m", "ensurepip"], check=True)
    except (OSError, subprocess.CalledProcessError):  # no program, or one without its library
        return False
    return True


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Wait for another set-up in this folder; one that was killed counts for nothing."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    folder = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 - this script meets whatever Python the user has
        sys.exit(f"expected Python 3.11 or newer, got {sys.version.split()[0]}")
    try:
        set_up(ROOT)
    except subprocess.CalledProcessError as error:
        sys.exit(f"set-up stopped: {' '.join(error.cmd)} ended with status {error.returncode}")
    except KeyboardInterrupt:
        sys.exit("set-up was interrupted; the same command goes on with it")
