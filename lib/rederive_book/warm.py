"""Page kernels forked from a process that has imported what most pages import.

To start an interpreter and to import torch, SciPy and Matplotlib takes longer than the sums of many
a page. On Linux each process that runs pages keeps one server: this module, run as a program with
the path and the threads of a kernel. It imports once, at the first page that draws figures, and
forks a kernel whenever it is asked. A kernel has what a fresh one has (path, folder, environment,
arguments); only the modules are loaded. Where there is no server, on macOS and Windows, kernels
start as Jupyter starts them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, NoReturn

import traitlets
from jupyter_client.provisioning import LocalProvisioner
from jupyter_client.provisioning.factory import KernelProvisionerFactory

#: A module that reads this variable does so when it is imported, here before there is a kernel.
BACKEND = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}

_servers: dict[str, subprocess.Popen] = {}


class ForkedProcess:
    """A kernel that a server has forked, with the methods of a `subprocess.Popen`.

    Parameters
    ----------
    server : subprocess.Popen
        Its parent, which alone is told how it ended.
    pid : int
        Of the kernel. No other process gets this number before the server has said that it ended.
    """

    stdin = stdout = stderr = None

    def __init__(self, server: subprocess.Popen, pid: int) -> None:
        self.pid = pid
        self._server = server
        self._status: int | None = None

    def poll(self) -> int | None:
        """Return None while the kernel lives, and then its status; −1 if that is not known."""
        if self._status is None:
            try:
                self._status = _ask(self._server, {"ended": self.pid})
            except OSError:  # kernels leave when their server has left
                self._status = -1
        return self._status

    def wait(self) -> int:
        """Wait until the kernel is gone."""
        while (status := self.poll()) is None:
            time.sleep(0.05)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal to the kernel, if it lives."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the kernel at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask the kernel to end."""
        self.send_signal(signal.SIGTERM)


class WarmProvisioner(LocalProvisioner):
    """Start a page's kernel as a fork of the server; as a process of its own if that fails."""

    loaded = traitlets.Bool(help="Whether what most pages import is to be there.")

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> dict[str, Any]:
        """Launch a kernel; `cmd` is the interpreter, ``-m``, a module and the arguments for it."""
        folder = os.fspath(kwargs.get("cwd") or Path.cwd())
        try:
            self.process = fork(cmd[3:], kwargs["env"], folder, loaded=self.loaded)
        except OSError:
            return await super().launch_kernel(cmd, **kwargs)
        self.pid = self.pgid = self.process.pid  # the kernel leads a group of its own
        self.cwd = folder
        return self.connection_info


if sys.platform == "linux":
    KernelProvisionerFactory.instance().provisioners["rederive-warm"] = EntryPoint(
        "rederive-warm", f"{__name__}:WarmProvisioner", KernelProvisionerFactory.GROUP_NAME
    )


def metadata(*, loaded: bool) -> dict[str, Any]:
    """How a kernel's specification asks for a forked kernel; empty where there is none."""
    if sys.platform != "linux":
        return {}
    config = {"loaded": loaded}
    return {"kernel_provisioner": {"provisioner_name": "rederive-warm", "config": config}}


def fork(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    *,
    loaded: bool = False,
) -> ForkedProcess:
    """Have a kernel forked.

    Parameters
    ----------
    arguments : sequence of str
        For the kernel.
    environment : mapping
        Its variables, all of them.
    folder : str
        Where it runs.
    loaded : bool, optional
        Whether the server imports first what most pages import, if it has not yet.

    Returns
    -------
    ForkedProcess

    Raises
    ------
    OSError
        If the server cannot be started or does not answer.
    """
    server = _server(environment)
    kernel = {"arguments": list(arguments), "environment": dict(environment), "folder": folder}
    return ForkedProcess(server, _ask(server, {"fork": kernel, "loaded": loaded}))


def _ask(server: subprocess.Popen, question: Mapping[str, Any]) -> Any:
    server.stdin.write(json.dumps(question) + "\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    if not answer:
        raise OSError(f"the server of page kernels ended with status {server.wait()}")
    return json.loads(answer)


def _server(environment: Mapping[str, str]) -> subprocess.Popen:
    """Return the server for kernels that import from the same folders; it ends when we end."""
    path = environment.get("PYTHONPATH", "")
    if path not in _servers or _servers[path].poll() is not None:
        _servers[path] = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment, **BACKEND},
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the build, which ends its kernels itself
        )
    return _servers[path]


def serve() -> None:
    """Answer each line of standard input until that is closed.

    ``{"fork": {…}, "loaded": …}`` forks a kernel, and the answer is its number;
    ``{"ended": number}`` is answered by the status of a kernel that ended and by null while it
    lives.
    """
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder that we were started in
    import ipykernel.kernelapp  # noqa: F401

    while line := sys.stdin.readline():
        question = json.loads(line)
        if "fork" in question:
            if question["loaded"]:
                _load()
            answer = os.fork()
            if answer == 0:
                _become(**question["fork"])
        else:
            pid, status = os.waitpid(question["ended"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        print(json.dumps(answer), flush=True)


def _load() -> None:
    """Import what most pages import. None of these starts a thread, which a fork would lose."""
    import matplotlib.pyplot  # noqa: F401
    import ot  # noqa: F401
    import scipy.integrate
    import scipy.optimize
    import scipy.stats  # noqa: F401
    import sympy  # noqa: F401
    import torch  # noqa: F401


def _become(arguments: list[str], environment: dict[str, str], folder: str) -> NoReturn:
    """Turn this fork into a kernel, as ``python -m ipykernel_launcher`` would."""
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()  # whoever ends the kernel ends the processes that it started
    server = os.getppid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the server's questions and answers
    os.dup2(2, 1)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv[:] = ["ipykernel_launcher", *arguments]
    # The kernel leaves when the server has left, which leaves when the process that runs pages has.
    IPKernelApp.launch_instance([*arguments, f"--IPKernelApp.parent_handle={server}"])
    os._exit(0)


if __name__ == "__main__":
    serve()
