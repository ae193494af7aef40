"""The command line of the book: ``python -m rederive_book COMMAND``."""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from rederive_book import alone, ledger, options, pages, state

#: The date that files of a build carry where they must carry one: the same for every build, so that
#: two builds have the same bits. It is the first second of 2026, the year of the copyright line.
EPOCH = "1767225600"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; bad input, files too, ends with status 2 and one line that names it."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        return given.run(given)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def book(given: argparse.Namespace) -> int:
    """Execute the pages, judge the claims, build the site: whatever is out of date."""
    root = _root()
    if set("*?[") & set(str(root)):
        raise ValueError(f"directory: expected a path without *, ? and [ for pytask, got {root}")
    if not os.access(root, os.W_OK):
        raise ValueError(f"directory: expected one that can be written, got {root}")
    executable = [page for page in pages.read_book(root) if page.executable]
    names = tuple(page.name for page in executable)
    texts = {name: str(getattr(given, name) or "") for name in options.ENVIRONMENT}
    chosen = options.read(texts, names)
    for page in executable:
        if page.name == chosen.page and page.missing:
            raise ValueError(f"page: {page.name} needs {page.missing[0]}, which is not installed")
        pages.staged(page, chosen.parameters)
    jobs, backend = chosen.jobs, ["--parallel-backend", "loky"]
    if chosen.cluster:
        jobs = _workers(chosen.cluster, root)
        backend = ["--parallel-backend", "dask", "--hook-module", "rederive_book.on_cluster"]
    jobs = min(jobs, 1 if chosen.page else max(1, len(executable)))
    command = [
        *(sys.executable, "-m", "pytask", "build", "--config", str(root / "pyproject.toml")),
        *("--hook-module", "rederive_book.progress", "--n-workers", str(jobs)),
        *(*backend, "--show-no-traceback"),
        *("--verbose", "1" if sys.stdout.isatty() else "0"),
        str(root / "task_book.py"),
    ]
    environment = {
        "SOURCE_DATE_EPOCH": EPOCH,
        **os.environ,
        **chosen.as_environment(),
        alone.BUILD: str(os.getpid()),
        "PYTHONUTF8": "1",
    }
    with alone.alone(root):
        if damaged := state.forget_if_damaged(root):
            print(f"{damaged} is damaged and was forgotten; all pages run again.", file=sys.stderr)
        process = subprocess.Popen(command, cwd=root, env=environment)
        try:
            status = process.wait()
        except KeyboardInterrupt:
            # pytask hears the signal too, and lets go of its pages.
            with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
                process.wait(timeout=15)
            process.kill()
            print("Interrupted; the pages that had finished are kept.", file=sys.stderr)
            return 130
    if status:
        print("The book was not built; see above.", file=sys.stderr)
        return 1
    place = "_build/html/index.html" if chosen.site else "_build/claims.json"
    print(f"The book is ready: {place}")
    return 0


def lab(given: argparse.Namespace) -> int:
    """Open a page as a notebook in JupyterLab; saving writes the text of the page."""
    root = _root()
    names = tuple(page.name for page in pages.read_book(root) if page.executable)
    name = options.read({"page": given.page or names[0]}, names).page
    settings = root / "_build" / "lab"
    plugin = settings / "@jupyterlab" / "docmanager-extension" / "plugin.jupyterlab-settings"
    plugin.parent.mkdir(parents=True, exist_ok=True)
    viewer = {"defaultViewers": {"markdown": "Jupytext Notebook"}}
    plugin.write_text(json.dumps(viewer), encoding="utf-8")
    command = [
        *(sys.executable, "-m", "jupyter", "lab", f"--notebook-dir={root}"),
        f"--LabApp.user_settings_dir={settings}",
        f"--LabApp.default_url=/lab/tree/chapters/{name}.md",
        *given.rest,
    ]
    return subprocess.run(command, cwd=root).returncode


def serve(given: argparse.Namespace) -> int:
    """Serve the built site on this machine."""
    folder = _root() / "_build" / "html"
    if not (folder / "index.html").exists():
        raise ValueError("serve: expected a built site in _build/html, run the book first")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", given.port), handler) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}/ (stop with Ctrl-C)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


def clean(given: argparse.Namespace) -> int:
    """Remove everything that a build made, but not the environment."""
    root = _root()
    with alone.alone(root):
        shutil.rmtree(root / "_build", ignore_errors=True)
        state.forget(root)
    return 0


def summary(given: argparse.Namespace) -> int:
    """Print the table of verdicts as Markdown, and what changed against another ledger."""
    new = _load(given.ledger)
    print(ledger.summary_markdown(new))
    if given.against is not None:
        print("\n### Changes\n")
        try:
            changes = ledger.compare(_load(given.against), new)
        except ValueError as error:  # such as the ledger of an older schema
            print(f"Not compared. {error}")
            return 0
        print("\n".join(f"- {line}" for line in changes) if changes else "None.")
    return 0


def compare(given: argparse.Namespace) -> int:
    """Compare two ledgers, and two folders of figures' data; status 1 if they differ."""
    changes = ledger.compare(_load(given.old), _load(given.new))
    if given.figures:
        changes += ledger.compare_figures(*map(Path, given.figures))
    print("\n".join(changes) if changes else "No difference.")
    return 1 if changes else 0


def _root() -> Path:
    here = Path.cwd()
    if (here / "task_book.py").exists():
        return here
    root = Path(__file__).resolve().parents[2]
    if not (root / "task_book.py").exists():
        raise ValueError("directory: expected to run in a checkout of the book")
    return root


def _workers(address: str, root: Path) -> int:
    """The workers of a cluster, once it is known that each can run pages."""
    from rederive_book import on_cluster  # Dask is an optional package

    return on_cluster.workers(address, root)


def _load(path: str) -> dict:
    try:
        return ledger.read(Path(path))
    except (OSError, ValueError) as error:
        raise ValueError(f"ledger: expected a readable claims.json, got {path}: {error}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rederive_book", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(function, **defaults):
        made = commands.add_parser(function.__name__, help=function.__doc__.splitlines()[0])
        made.set_defaults(run=function, **defaults)
        return made

    build = command(book)
    build.add_argument("--profile", help="quick or full")
    build.add_argument("--device", help="auto, cpu or cuda")
    build.add_argument("--seed", help="moves the noise of every page")
    build.add_argument("--jobs", help="pages that run at once")
    build.add_argument("--page", help="run this page only, e.g. regression/a-head-is-a-smoother")
    build.add_argument("--untried", help="claims or pages that may stay untried, by commas")
    build.add_argument("--cell-timeout", help="seconds a cell may take")
    build.add_argument("--cluster", help="address of the Dask scheduler that runs the pages")
    build.add_argument(
        "--no-site", dest="site", action="store_const", const="0", help="stop after the ledger"
    )
    opened = command(lab)
    opened.add_argument("--page", help="the page to open")
    opened.add_argument("rest", nargs="*", help="more arguments for JupyterLab, after --")
    served = command(serve)
    served.add_argument("--port", type=int, default=8000)
    command(clean)
    table = command(summary)
    table.add_argument("--ledger", default="_build/claims.json")
    table.add_argument("--against", help="the ledger to compare with")
    two = command(compare)
    two.add_argument("old")
    two.add_argument("new")
    two.add_argument("--figures", nargs=2, metavar=("OLD", "NEW"), help="folders of figures' data")
    return parser


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # the signs of verdicts, into a file on Windows
    sys.exit(main())
