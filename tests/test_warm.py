"""Kernels forked from a server that has imported: as fresh ones, only sooner."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time

import pytest

from rederive_book import kernels, warm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")

WHAT_A_PAGE_SEES = """
import json, multiprocessing, os, sys, threading
loaded = "torch" in sys.modules
import matplotlib
import matplotlib.pyplot
own = {"JPY_PARENT_PID", "SHLVL", "_"}
print(json.dumps({
    "path": sys.path, "folder": os.getcwd(), "arguments": sys.argv[1:-1], "main": __name__,
    "environment": {k: v for k, v in os.environ.items() if k not in own},
    "backend": matplotlib.get_backend(), "threads": sorted(t.name for t in threading.enumerate()),
    "process": multiprocessing.current_process().name, "leads": os.getsid(0) == os.getpid(),
    "loaded": loaded,
}))
"""


@pytest.fixture
def server():
    """The environment of kernels whose server ends with the test."""
    environment = {**os.environ, **kernels.SINGLE_THREAD, "PYTHONPATH": os.pathsep.join(sys.path)}
    yield environment
    process = warm._servers.pop(environment["PYTHONPATH"], None)
    if process is not None:
        process.communicate()


async def said(code, folder, *, wait=60):
    """What a page's kernel prints."""
    manager = kernels.manager_for(code)()
    await manager.start_kernel(cwd=str(folder))
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=wait)
        printed = []
        await client.execute_interactive(
            code,
            timeout=wait,
            output_hook=lambda m: printed.append(m["content"].get("text", "")),
        )
        return "".join(printed)
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


def test_a_forked_kernel_sees_what_a_fresh_one_sees(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    forked = json.loads(asyncio.run(said(WHAT_A_PAGE_SEES, tmp_path)))
    monkeypatch.setattr(warm, "metadata", lambda loaded: {})
    fresh = json.loads(asyncio.run(said(WHAT_A_PAGE_SEES, tmp_path)))
    assert (forked.pop("loaded"), fresh.pop("loaded")) == (True, False)
    assert fresh["leads"]
    assert forked == fresh


def test_a_page_without_figures_waits_for_no_import(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    loaded = "import sys; print('torch' in sys.modules)"
    assert asyncio.run(said(loaded, tmp_path)).strip() == "False"
    assert asyncio.run(said(f"{loaded}  # matplotlib", tmp_path)).strip() == "True"
    warm._servers.pop(os.environ["PYTHONPATH"]).communicate()


def test_kernels_of_one_server_share_nothing_that_they_change(tmp_path):
    change = "import numpy, os; numpy.pi = 3; os.environ['CHANGED'] = '1'; print(os.getppid())"
    look = "import numpy, os; print(numpy.pi, os.environ.get('CHANGED'), os.getppid())"
    parent = asyncio.run(said(change, tmp_path)).strip()
    assert asyncio.run(said(look, tmp_path)).split() == ["3.141592653589793", "None", parent]


def test_the_status_of_a_kernel_is_told(server, tmp_path):
    # An argument that the kernel refuses: it ends before it has begun.
    kernel = warm.fork(["--no-such-option=[", "-f"], server, str(tmp_path))
    assert kernel.wait() not in (None, 0)
    assert kernel.poll() == kernel.wait()
    kernel.send_signal(9)  # to nobody

    kernel = warm.fork(["-f", str(tmp_path / "k.json")], server, str(tmp_path))
    assert kernel.poll() is None
    kernel.kill()
    assert kernel.wait() == -9


def test_a_kernel_leaves_when_its_server_or_who_asked_for_it_is_gone(server, tmp_path):
    asks = (
        "import json, os, sys, time; from rederive_book import warm; "
        "kernel = warm.fork(['-f', 'k.json'], dict(os.environ), sys.argv[1]); "
        "print(kernel.pid, flush=True); time.sleep(600)"
    )
    builder = subprocess.Popen(
        [sys.executable, "-c", asks, str(tmp_path)], env=server, stdout=subprocess.PIPE, text=True
    )
    pid = int(builder.stdout.readline())
    builder.kill()
    builder.communicate()
    deadline = time.monotonic() + 60
    while _alive(pid):
        assert time.monotonic() < deadline, "the kernel stays"
        time.sleep(0.1)


def _alive(pid):
    with contextlib.suppress(OSError):
        return open(f"/proc/{pid}/stat").read().rsplit(")")[1].split()[0] != "Z"
    return False


@pytest.mark.parametrize("program", ["/no/such/interpreter", "/bin/true"])
def test_a_kernel_starts_by_itself_where_no_server_does(tmp_path, monkeypatch, program):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    popen = subprocess.Popen

    def server(command, **kwargs):
        return popen([program, *command[1:]] if warm.__name__ in command else command, **kwargs)

    monkeypatch.setattr(warm.subprocess, "Popen", server)
    code = "import sys; print('torch' in sys.modules)  # no matplotlib"
    answer = asyncio.run(said(code, tmp_path))
    assert answer.strip() == "False"
    warm._servers.pop(os.environ["PYTHONPATH"], None)


def test_a_server_has_no_thread_that_a_fork_would_lose(server, tmp_path):
    kernel = warm.fork(["-f", str(tmp_path / "k.json")], server, str(tmp_path), loaded=True)
    kernel.kill()
    (process,) = (warm._servers[path] for path in warm._servers if path == server["PYTHONPATH"])
    assert len(os.listdir(f"/proc/{process.pid}/task")) == 1
