"""The kernel that runs a page: this interpreter, private IPC sockets, one numerical thread."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

from rederive_book import warm

#: A socket's path may have 107 bytes on Linux, 103 on macOS; ours add 18 to that of its folder.
LONGEST_FOLDER = 80

#: One thread a kernel: pages that run side by side do not fight for cores, and bits do not
#: depend on how many cores there are.
SINGLE_THREAD = {
    name: "1"
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    )
}


class PageKernelManager(AsyncKernelManager):
    """A kernel bound to the running interpreter.

    A kernel looked up by name may belong to another Python or be missing. Kernels that start at
    the same time can pick the same TCP port; sockets in a private directory cannot collide. The
    directory is short because the path of a socket has few bytes. Windows has no such sockets and
    keeps TCP.
    """

    loaded = False

    def __init__(self, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self._folder: str | None = None
        if sys.platform != "win32":
            usual = tempfile.gettempdir()
            short = usual if len(os.fsencode(usual)) <= LONGEST_FOLDER else "/tmp"
            self._folder = tempfile.mkdtemp(prefix="page-", dir=short)
            self.transport = "ipc"
            self.connection_file = str(Path(self._folder, "k.json"))
            self.ip = str(Path(self._folder, "s"))

    @property
    def kernel_spec(self) -> KernelSpec:
        return KernelSpec(
            argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            display_name="Python 3",
            language="python",
            metadata=warm.metadata(loaded=self.loaded),
        )

    async def start_kernel(self, **kwargs: object) -> None:
        environment = {**os.environ, **(kwargs.pop("env", None) or {}), **SINGLE_THREAD}
        await super().start_kernel(env=environment, **kwargs)

    async def cleanup_resources(self, restart: bool = False) -> None:
        await super().cleanup_resources(restart=restart)
        if self._folder is not None and not restart:
            shutil.rmtree(self._folder, ignore_errors=True)


class LoadedKernelManager(PageKernelManager):
    """A kernel that finds imported what most pages with figures import, where that saves time."""

    loaded = True


def manager_for(code: str) -> type[PageKernelManager]:
    """Return the manager for a page: one that draws needs most of what can be there before it."""
    return LoadedKernelManager if "matplotlib" in code else PageKernelManager
