"""Run a module's tests against its mutants: each in a process forked from one that is warm.

``python -m audit.trying_mutants ROOT MODULE TEST …`` runs the tests once on the module as it is and
says `pass` or what failed; then it reads mutants, a JSON object a line with `function` and
`source`, and says of each how it came out:

killed
    A test fails or the module cannot be imported; `test` says which.
survived
    All tests pass.
timeout
    A test took many times what it takes on the module as it is. That is no kill.

Tests that reach the mutant's function come first, quick ones before slow ones.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import hypothesis
import pytest

WARM = ("numpy", "scipy.stats", "torch")
ROOM = 6 * 2**30  # bytes of data: a mutant must not fill the machine
SLOWER, ALLOWANCE = 5.0, 5.0  # a test may take so many times its time, and so many seconds more
WALL = 10.0  # the whole may take so many times longer: for mutants that wait and do not compute


class Watch:
    """A plugin of pytest: orders the tests, limits their time, and notes what each of them does.

    Attributes
    ----------
    seconds : dict
        Test to its processor time, that of what it prepares included.
    reached : dict
        Test to the functions of the module that it enters.
    failed : str or None
        The first test that fails.
    """

    def __init__(self, module: Path, known: dict[str, Any], function: str | None) -> None:
        self.module, self.known, self.function = str(module), known, function
        self.seconds: dict[str, float] = {}
        self.reached: dict[str, list[str]] = {}
        self.failed: str | None = None

    def pytest_configure(self) -> None:
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]  # no shrinking
        hypothesis.settings.register_profile("mutants", derandomize=True, phases=phases)
        hypothesis.settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.known:
            items.sort(key=lambda item: self._turn(item.nodeid))

    def _turn(self, test: str) -> tuple[bool, float]:
        return (
            self.function not in self.known["reached"].get(test, ()),
            self.known["seconds"].get(test, 0.0),
        )

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        if self.known:  # at the end of its time the process dies, also in the middle of C code
            limit = ALLOWANCE + SLOWER * self.known["seconds"].get(item.nodeid, 0.0)
            signal.setitimer(signal.ITIMER_PROF, limit)
            yield
            return
        entered: set[str] = set()

        def note(frame, event, argument):
            if frame.f_code.co_filename == self.module:
                entered.add(frame.f_code.co_qualname.partition(".<locals>")[0])

        begun = time.process_time()
        sys.settrace(note)
        yield
        sys.settrace(None)
        self.seconds[item.nodeid] = time.process_time() - begun
        self.reached[item.nodeid] = sorted(entered)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid


def run_tests(watch: Watch, root: Path, tests: list[str]) -> dict[str, Any]:
    """Run the tests in this process; what they print is lost."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_DATA, (ROOM, ROOM))
    os.chdir(root)
    sys.path[:0] = [str(root / "lib")]
    os.environ["PYTHONPATH"] = str(root / "lib")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    before = set(sys.modules)
    options = ["-q", "-x", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"]
    status = int(pytest.main([*options, *tests], plugins=[watch]))
    found = {"status": status, "failed": watch.failed}
    if not watch.known:
        found |= {"seconds": watch.seconds, "reached": watch.reached}
        found["packages"] = sorted(_others(set(sys.modules) - before))
    return found


def forked(watch: Watch, root: Path, tests: list[str], wall: float) -> dict[str, Any] | None:
    """`run_tests` in a forked process: what it returns, None for one that took too long."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as told:
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                found = run_tests(watch, root, tests)
                Path(told.name).write_text(json.dumps(found), encoding="utf-8")
            finally:
                os._exit(0)
        try:
            status = _ended(child, time.monotonic() + wall)
        finally:  # ends what the tests have left behind as well
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        if status is None:
            os.waitpid(child, 0)
        if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF):
            return None
        text = told.read()
    return json.loads(text) if text else {"status": -1, "failed": "the process died"}


def _ended(child: int, end: float) -> int | None:
    """Wait for a process until a moment; its status if it has ended."""
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    return None


def _others(names: set[str]) -> set[str]:
    """Packages worth importing before the fork: neither ours nor tests."""
    tops = {name.partition(".")[0] for name in names}
    ours = ("rederive", "rederive_book", "audit", "conftest")
    return {top for top in tops if top not in ours and not top.startswith(("test_", "_"))}


def outcome(found: dict[str, Any] | None) -> dict[str, Any]:
    """How a mutant came out.

    Raises
    ------
    RuntimeError
        If pytest found no tests, or could not be called.
    """
    if found is None:
        return {"outcome": "timeout"}
    if found["status"] in (4, 5):
        raise RuntimeError(f"pytest ended with status {found['status']}: no tests to run")
    if found["status"] == 0:
        return {"outcome": "survived"}
    return {"outcome": "killed", "test": found["failed"] or "the module cannot be imported"}


def main(root: str, module: str, *tests: str) -> None:
    """Try the mutants that come in; say a line about each."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and end the tests that run
    place, names = Path(root), list(tests)
    file = place / "lib" / "rederive" / f"{module}.py"
    for package in WARM:
        importlib.import_module(package)
    text, begun = file.read_text(encoding="utf-8"), time.monotonic()
    known = forked(Watch(file, {}, None), place, names, float("inf"))
    if known is None or known["status"]:
        _say({"failed": known and (known["failed"] or known["status"])})
        return
    wall = 60 + WALL * (time.monotonic() - begun)
    for package in known["packages"]:
        try:
            importlib.import_module(package)
        except Exception:  # some import only inside others
            continue
    _say({"pass": len(known["seconds"]), "seconds": sum(known["seconds"].values())})
    for line in sys.stdin:
        mutant = json.loads(line)
        _put(file, mutant["source"] or text)
        try:
            _say(outcome(forked(Watch(file, known, mutant["function"]), place, names, wall)))
        finally:
            _put(file, text)


def _put(file: Path, text: str) -> None:
    """Write a module, and forget what was compiled from its last text."""
    file.write_text(text, encoding="utf-8")
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):
        compiled.unlink()


def _say(found: dict[str, Any]) -> None:
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
