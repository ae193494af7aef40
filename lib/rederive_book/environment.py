"""Set-up with nothing but Python: makes ``.venv`` and installs what the lock names, once.

Run as a plain script, before anything is installed: ``python lib/rederive_book/environment.py``.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
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
    """Bring ``.venv`` up to date; returns whether anything had to be done."""
    stamp = root / ".venv" / "rederive-inputs"
    wanted = digest(root)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return False
    print("Setting up .venv (once, a few minutes) ...", flush=True)
    if not interpreter(root).exists():
        venv.create(root / ".venv", with_pip=True, clear=(root / ".venv").exists())
    elif not _has_pip(root):  # set-up was interrupted, or Python replaced by a newer one
        subprocess.run([str(interpreter(root)), "-m", "ensurepip"], check=True)
    for command in commands(root):
        subprocess.run(command, check=True)
    stamp.write_text(wanted, encoding="utf-8")
    return True


def _has_pip(root: Path) -> bool:
    command = [str(interpreter(root)), "-m", "pip", "--version"]
    return subprocess.run(command, capture_output=True).returncode == 0


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 - this script meets whatever Python the user has
        sys.exit(f"expected Python 3.11 or newer, got {sys.version.split()[0]}")
    try:
        set_up(ROOT)
    except subprocess.CalledProcessError as error:
        sys.exit(f"set-up stopped: {' '.join(error.cmd)} ended with status {error.returncode}")
    except KeyboardInterrupt:
        sys.exit("set-up was interrupted; the same command goes on with it")
