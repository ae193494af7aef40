"""Plant mathematical faults in the library, one at a time, and see whether the book notices.

Each fault of ``faults.yml`` is put into a copy of the checkout, and the page that should suffer is
built there as always. A fault is caught if the build fails and names a claim.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
FAULTS = Path(__file__).with_name("faults.yml")


class Fault(NamedTuple):
    """A fault: in `file` the text `was` becomes `becomes`, to the harm of `page`."""

    what: str
    file: str
    page: str
    was: str
    becomes: str


def load(path=FAULTS):
    """Read the faults.

    Parameters
    ----------
    path : pathlib.Path, optional
        A YAML list of mappings with the fields of `Fault`.

    Returns
    -------
    list of Fault
        In the order of the file.

    Raises
    ------
    ValueError
        If a field is missing or unknown, or a fault changes nothing.
    """
    faults = []
    for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
        if not isinstance(entry, dict) or set(entry) != set(Fault._fields):
            raise ValueError(f"{path.name}: expected the fields {Fault._fields}, got {entry!r}")
        fault = Fault(**entry)
        if fault.was == fault.becomes:
            raise ValueError(f"{path.name}: {fault.what!r} changes nothing")
        faults.append(fault)
    return faults


def planted(source, fault):
    """Return a module's text with the fault in it.

    Parameters
    ----------
    source : str
        Text of the module.
    fault : Fault
        What to change.

    Returns
    -------
    str
        The faulty text.

    Raises
    ------
    ValueError
        If the text to replace does not occur exactly once: the fault is out of date.
    """
    found = source.count(fault.was)
    if found != 1:
        raise ValueError(
            f"{fault.file}: expected the text of {fault.what!r} once, found it {found} times"
        )
    return source.replace(fault.was, fault.becomes)


def try_fault(fault, ids, *, timeout=900):
    """Build the fault's page with the fault in place.

    Parameters
    ----------
    fault : Fault
        The fault.
    ids : set of str
        Names of all claims.
    timeout : float, optional
        Seconds that the build may take.

    Returns
    -------
    dict
        `what`, `module`, `page`, `failed` (whether the build failed), `caught` (whether it named
        a claim, too), `claims` (those that it named), `tested` (whether the tests of the module
        fail; asked only of a fault that the build does not catch) and `seconds`.

    Raises
    ------
    ValueError
        If the fault is out of date.
    subprocess.TimeoutExpired
        If the build takes too long, which is not counted as caught.
    """
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_of_checkout(Path(folder) / "book")
        module = copy / "lib" / "rederive" / fault.file
        module.write_text(planted(module.read_text(encoding="utf-8"), fault), encoding="utf-8")
        done = build_page(copy, fault.page, timeout)
        said = done.stdout + done.stderr
        mentioned = ids & set(re.findall(r"[a-z0-9-]+\.[a-z0-9-]+", said))
        named = sorted(mentioned) if done.returncode else []
        tested = None if named else tests_fail(copy, fault.file.removesuffix(".py"), timeout)
    return {
        "what": fault.what,
        "module": fault.file.removesuffix(".py"),
        "page": fault.page,
        "failed": done.returncode != 0,
        "caught": bool(named),
        "claims": named,
        "tested": tested,
        "seconds": round(time.monotonic() - begun, 1),
    }


def copy_of_checkout(target, root=ROOT):
    """Copy the files of a checkout that git knows of, and return the copy."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)
    return target


def build_page(folder, page, timeout):
    """Run one page through the pipeline, without the site, and return the finished process."""
    return subprocess.run(
        [sys.executable, "-m", "rederive_book", "book", "--no-site", "--page", page],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def tests_fail(folder, module, timeout):
    """Whether a test fails in one of the files that mention the module."""
    files = [
        str(file)
        for file in sorted((folder / "tests").glob("test_*.py"))
        if re.search(rf"\b{module}\b", file.read_text(encoding="utf-8"))
        and not file.name.startswith(("test_audit", "test_contract", "test_imports"))
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return done.returncode == 1


def environment(folder):
    """Environment variables under which Python imports the copy's packages."""
    return os.environ | {"PYTHONPATH": str(folder / "lib"), "PYTHONIOENCODING": "utf-8"}
