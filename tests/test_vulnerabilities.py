"""The scan of the lock against a small database of our own: what it asks, says and refuses."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from audit import vulnerabilities


@contextlib.contextmanager
def database(answer, status=200):
    """An address that answers every question by `answer`, and the list of what was asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append(json.loads(body)["queries"])
            text = answer(asked[-1]).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/query", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def lock(tmp_path):
    """A folder with locks of three packages, one of them with an extra."""
    (tmp_path / "requirements.lock").write_text(
        "numpy==2.4.6 \\\n    --hash=sha256:00\n# a remark==1\ndask[distributed]==2026.1.0 ; x\n"
    )
    (tmp_path / "requirements-torch.txt").write_text("torch==2.13.0\n")
    return tmp_path


def sound(queries):
    return json.dumps({"results": [{} for _ in queries]})


def one_ill(queries):
    return json.dumps(
        {
            "results": [
                {"vulns": [{"id": "TEST-1"}, {"id": "TEST-2"}]}
                if query["package"]["name"] == "numpy"
                else {}
                for query in queries
            ]
        }
    )


def test_every_pinned_version_is_asked_about(lock, capsys):
    with database(sound) as (service, asked):
        assert vulnerabilities.main(service, lock) == 0
    pinned = {(one["package"]["name"], one["version"]) for one in asked[0]}
    assert pinned == {("numpy", "2.4.6"), ("dask", "2026.1.0"), ("torch", "2.13.0")}
    assert {one["package"]["ecosystem"] for one in asked[0]} == {"PyPI"}
    assert "3 packages asked about, 0 with known" in capsys.readouterr().out


def test_a_known_vulnerability_is_named_and_fails(lock, capsys):
    with database(one_ill) as (service, _):
        assert vulnerabilities.main(service, lock) == 1
    assert "numpy 2.4.6: TEST-1, TEST-2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (sound, 503),
        (lambda queries: "no json", 200),
        (lambda queries: "{}", 200),
        (lambda queries: json.dumps({"results": [{}]}), 200),
        (lambda queries: json.dumps({"results": [None for _ in queries]}), 200),
    ],
    ids=["an error", "no JSON", "no results", "too few results", "results of a wrong kind"],
)
def test_an_answer_that_says_nothing_is_no_clean_bill(lock, answer, status, capsys):
    with database(answer, status) as (service, _):
        assert vulnerabilities.main(service, lock) == 2
    assert "Not scanned" in capsys.readouterr().out


def test_nobody_there_is_no_clean_bill(lock, capsys):
    with database(sound) as (service, _):
        pass
    assert vulnerabilities.main(service, lock) == 2
    assert "Not scanned" in capsys.readouterr().out


def test_the_book_s_own_lock_is_read_whole():
    pinned = dict(vulnerabilities.locked())
    assert {"numpy", "scipy", "torch", "papermill", "jupyter-book"} <= pinned.keys()
    lines = (vulnerabilities.ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    names = {line.partition("==")[0] for line in lines if "==" in line and line[:1].isalnum()}
    assert names <= pinned.keys()  # a package may have versions for several Pythons
