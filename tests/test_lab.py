"""A page opens as a notebook in JupyterLab, and saving it writes the text of the page."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from throw_away import ThrowAwayBook

TOKEN = "a-token-for-this-test"
PAGE = "demo/first"


@pytest.fixture
def laboratory(tmp_path):
    """A running JupyterLab on a throw-away book; gives its folder and a request function."""
    ThrowAwayBook(tmp_path, {"first": "from rederive import alpha\nprint(alpha.NAME, seed)"})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "rederive_book", "lab", "--page", PAGE, "--"),
            *("--no-browser", "--allow-root", f"--port={port}", "--ip=127.0.0.1"),
            f"--IdentityProvider.token={TOKEN}",
        ],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path / "home")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that JupyterLab and its kernels end with the test
    )

    def request(path: str, body: dict | None = None):
        data = None if body is None else json.dumps(body).encode()
        made = urllib.request.Request(
            f"http://127.0.0.1:{port}{path}",
            data=data,
            headers={"Authorization": f"token {TOKEN}", "Content-Type": "application/json"},
            method="GET" if body is None else "PUT",
        )
        with urllib.request.urlopen(made, timeout=20) as answer:
            return json.load(answer)

    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                request("/api/status")
                break
            except (urllib.error.URLError, ConnectionError):
                assert process.poll() is None, "JupyterLab ended"
                assert time.monotonic() < deadline, "JupyterLab did not answer"
                time.sleep(0.2)
        yield tmp_path, request
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)


def test_a_page_is_a_notebook_and_edits_go_back_to_its_text(laboratory):
    root, request = laboratory
    source = root / "chapters" / f"{PAGE}.md"
    before = source.read_text(encoding="utf-8")

    model = request(f"/api/contents/chapters/{PAGE}.md?type=notebook&content=1")
    assert model["type"] == "notebook"
    code = [cell for cell in model["content"]["cells"] if cell["cell_type"] == "code"]
    assert "parameters" in code[0]["metadata"]["tags"]
    assert 'profile = "quick"' in code[0]["source"]

    code[0]["source"] = code[0]["source"].replace("seed = 2026", "seed = 7")
    body = {"type": "notebook", "format": "json", "content": model["content"]}
    request(f"/api/contents/chapters/{PAGE}.md", body)
    after = source.read_text(encoding="utf-8")

    def lines(text: str) -> list[str]:  # blank lines are jupytext's own affair
        return [line for line in text.splitlines() if line.strip()]

    assert lines(after) == lines(before.replace("seed = 2026", "seed = 7"))
    assert not list(source.parent.glob("*.ipynb"))


def test_markdown_opens_as_a_notebook_by_default(laboratory):
    _, request = laboratory
    settings = request("/lab/api/settings/@jupyterlab/docmanager-extension:plugin")["settings"]
    assert settings["defaultViewers"] == {"markdown": "Jupytext Notebook"}
