"""Builds that are killed or find damaged files: nothing is lost, and nothing wrong stays."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from audit import builds, interruptions
from throw_away import ThrowAwayBook

from rederive_book import environment, state

POSIX = os.name == "posix"
PAGES = {"first": "import os\nprint(os.environ['SOURCE_DATE_EPOCH'])", "second": "print(seed)"}


# --- a command that is killed alone ---------------------------------------------------------------


@pytest.mark.skipif(not POSIX, reason="a child is not told that its parent ended")
def test_a_process_leaves_soon_after_its_parent_was_killed():
    child = (
        "import os, sys, time; from rederive_book import alone; "
        "alone.leave_with(int(sys.argv[1])); print(os.getpid(), flush=True); time.sleep(120)"
    )
    parent = (
        "import os, subprocess, sys; "
        "subprocess.run([sys.executable, '-c', sys.argv[1], str(os.getpid())])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", parent, child], stdout=subprocess.PIPE, text=True
    )
    pid = int(process.stdout.readline())
    assert _alive(pid)
    process.kill()
    process.wait()
    assert _within(60, lambda: not _alive(pid))
    process.stdout.close()


@pytest.mark.skipif(not POSIX, reason="a child is not told that its parent ended")
def test_a_command_killed_alone_takes_its_build_with_it_and_the_next_one_completes(tmp_path):
    mark = tmp_path / "started"
    slow = f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\ntime.sleep(120)"
    book = ThrowAwayBook(tmp_path / "book", {"slow": slow})
    process = subprocess.Popen(
        **book.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        assert _within(300, mark.exists), "the build did not get going"
        below = _children(process.pid)
        assert below
    finally:
        process.kill()
        process.wait()
    assert _within(60, lambda: not any(_alive(pid) for pid in below))
    book.write("slow", "1")
    done = book.build()
    assert book.ran(done) == {"slow"}, done.stdout + done.stderr


def _within(seconds, true) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    said = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return said.stdout.strip() not in ("", "Z", "Zs", "Z+")


def _children(pid: int) -> list[int]:
    said = subprocess.run(["ps", "-e", "-o", "pid=", "-o", "ppid="], capture_output=True, text=True)
    pairs = [tuple(map(int, row.split())) for row in said.stdout.splitlines()]
    own = [child for child, parent in pairs if parent == pid]
    return own + [below for child in own for below in _children(child)]


# --- damaged, vanished and locked files -----------------------------------------------------------


def test_torn_results_and_a_damaged_memory_are_made_anew(tmp_path):
    book = ThrowAwayBook(tmp_path, PAGES)
    build = book.root / "_build"
    first = book.build("--jobs", "1")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "1767225600" in book.notebook("first").read_text()  # every build has the same date
    shutil.copytree(build, tmp_path / "good")

    for path in (build / "claims.json", book.notebook("first")):
        path.write_bytes(path.read_bytes()[:60])
    again = book.build("--jobs", "1")
    assert book.ran(again) == {"first"}, again.stdout + again.stderr
    assert builds.differences(tmp_path / "good", build, site=False) == []

    (book.root / "pytask.lock").write_bytes(b"\0\xff not a record")
    (book.root / ".pytask" / "pytask.sqlite3").write_bytes(b"not a database" * 100)
    again = book.build("--jobs", "1")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "pytask.lock is damaged and was forgotten; all pages run again." in again.stderr
    assert book.ran(again) == {"first", "second"}
    assert builds.differences(tmp_path / "good", build, site=False) == []


GOOD = 'lock-version = "1"\n\n[[task]]\nid = "a"\nstate = "b"\n'


@pytest.fixture
def memory(tmp_path):
    """A folder with what pytask writes of a build."""
    (tmp_path / state.FOLDER).mkdir()
    (tmp_path / state.LOCK).write_text(GOOD)
    (tmp_path / state.JOURNAL).write_text("")
    with closing(sqlite3.connect(tmp_path / state.FOLDER / state.DATABASE)) as database:
        database.execute("CREATE TABLE state (task TEXT)")
        database.executemany("INSERT INTO state VALUES (?)", [["x" * 500]] * 100)
        database.commit()
    return tmp_path


def test_a_memory_that_can_be_read_or_is_missing_is_left_alone(memory, tmp_path):
    assert state.forget_if_damaged(memory) is None
    assert (memory / state.LOCK).read_text() == GOOD
    shutil.rmtree(memory / state.FOLDER)
    assert state.forget_if_damaged(memory) is None
    (memory / state.LOCK).unlink()
    assert state.forget_if_damaged(memory) is None


@pytest.mark.parametrize(
    "damage",
    [
        b"\xff\xfe",
        GOOD[:-8].encode(),
        b"lock-version = 1\ntask = []\n",
        b"x = 1\n",
        b'lock-version = "1"\n[[task]]\nid = "a"\n',
        b'lock-version = "1"\ntask = [3]\n',
    ],
)
def test_a_damaged_record_is_forgotten(memory, damage):
    (memory / state.LOCK).write_bytes(damage)
    assert state.forget_if_damaged(memory) == "pytask.lock"
    assert list(memory.iterdir()) == []


@pytest.mark.parametrize("keep", [0.0, 0.5])
def test_a_damaged_database_is_forgotten(memory, keep):
    path = memory / state.FOLDER / state.DATABASE
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)] + b"damage" * 1000)
    assert state.forget_if_damaged(memory) == ".pytask/pytask.sqlite3"
    assert list(memory.iterdir()) == []


def test_a_build_folder_that_vanishes_under_a_build_is_made_again(tmp_path):
    gone = f"import shutil\nshutil.rmtree({str(tmp_path / '_build')!r})\nprint(seed)"
    book = ThrowAwayBook(tmp_path, {"first": "print(seed)", "vandal": gone})
    done = book.build("--jobs", "1")
    assert done.returncode in (0, 1), done.stderr  # whether first ran before or after it
    assert "Traceback" not in done.stderr
    book.write("vandal", "print(seed)")
    done = book.build("--jobs", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert book.notebook("first").exists() and book.notebook("vandal").exists()
    assert (tmp_path / "_build" / "claims.json").exists()


@pytest.mark.skipif(not POSIX, reason="folders have other rights on Windows")
def test_a_build_folder_that_cannot_be_written_is_named(tmp_path):
    # A superuser may write everywhere, so that the build runs as nobody then, outside of the
    # folders that only the superuser may enter.
    nobody = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        book = ThrowAwayBook(Path(folder) / "book", {"first": "print(seed)"})
        build = book.root / "_build"
        build.mkdir()
        if nobody:
            subprocess.run(["chown", "-R", "65534:65534", str(book.root)], check=True)
        build.chmod(0o555)
        command = book.command() | nobody
        command["env"] |= {"PYTHONDONTWRITEBYTECODE": "1", "HOME": folder}
        done = subprocess.run(**command, capture_output=True, timeout=180)
        build.chmod(0o755)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "error: " in done.stderr and str(build) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_in_the_place_of_the_build_folder_is_named(tmp_path):
    book = ThrowAwayBook(tmp_path, {"first": "print(seed)"})
    (tmp_path / "_build").write_text("in the way")
    done = book.build()
    assert done.returncode == 2
    assert "error: " in done.stderr and "_build" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "_build").read_text() == "in the way"


def test_of_two_builds_begun_at_once_one_completes_and_the_other_is_refused(tmp_path):
    book = ThrowAwayBook(tmp_path, {"first": "import time\ntime.sleep(3)\nprint(seed)"})
    both = [
        subprocess.Popen(**book.command(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=300)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], said
    (refused,) = [text for text, process in zip(said, both, strict=True) if process.returncode]
    assert "another build is at work" in refused
    assert book.ran(book.build()) == set()


# --- an interrupted set-up ------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder to set up, and what was run there instead of installing anything."""
    for name in environment.INPUTS:
        (tmp_path / name).write_text(name, encoding="utf-8")
    ran = []

    def create(folder, with_pip, clear=False):
        if clear:
            shutil.rmtree(folder)
        python = environment.interpreter(tmp_path)
        python.parent.mkdir(parents=True)
        shutil.copy(shutil.which("true"), python)
        ran.append("venv")

    def run(command, check=False, capture_output=False):
        if not os.access(command[0], os.X_OK):
            raise PermissionError(command[0])
        ran.append(command[3] if command[2] == "pip" else command[2])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(environment.venv, "create", create)
    monkeypatch.setattr(environment.subprocess, "run", run)
    return tmp_path, ran


WHOLE = ["venv", "install", "install", "install"]


@pytest.mark.skipif(not POSIX, reason="rights and links of Unix")
@pytest.mark.parametrize("left", ["an empty folder", "a dangling link", "no program"])
def test_a_half_made_environment_is_made_anew(checkout, left):
    root, ran = checkout
    python = environment.interpreter(root)
    python.parent.mkdir(parents=True)
    if left == "a dangling link":
        python.symlink_to(root / "gone")
    elif left == "no program":
        python.write_bytes(b"")
    assert environment.set_up(root)
    assert ran == WHOLE
    assert not environment.set_up(root)


def test_a_set_up_killed_between_its_installs_goes_on(checkout, monkeypatch):
    root, ran = checkout
    run = environment.subprocess.run

    def killed(command, **arguments):
        if len(ran) == 2:  # after the environment and the first install
            raise KeyboardInterrupt
        return run(command, **arguments)

    monkeypatch.setattr(environment.subprocess, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        environment.set_up(root)
    monkeypatch.setattr(environment.subprocess, "run", run)
    assert environment.set_up(root)
    assert ran == [*WHOLE[:2], "--version", *WHOLE[1:]]


@pytest.mark.parametrize("stamp", [b"", b"\xff\xfe", b"0123"])
def test_a_torn_stamp_stands_for_nothing(checkout, stamp):
    root, _ = checkout
    environment.set_up(root)
    (root / ".venv" / "rederive-inputs").write_bytes(stamp)
    assert environment.set_up(root)
    assert not environment.set_up(root)


@pytest.mark.skipif(not POSIX, reason="there is no such lock on Windows")
def test_two_set_ups_do_not_run_at_once(tmp_path):
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); from pathlib import Path; "
        "from rederive_book import environment; root = Path(sys.argv[2])\n"
        "with environment._alone(root):\n"
        "    (root / sys.argv[3]).touch(); time.sleep(float(sys.argv[4]))"
    )
    lib = str(Path(environment.__file__).parents[1])
    command = [sys.executable, "-c", code, lib, str(tmp_path)]
    first = subprocess.Popen([*command, "first", "60"])
    try:
        assert _within(60, (tmp_path / "first").exists)
        second = subprocess.Popen([*command, "second", "0"])
        time.sleep(2)
        assert not (tmp_path / "second").exists()
    finally:
        first.send_signal(signal.SIGKILL)  # one that was killed counts for nothing
        first.wait()
    assert second.wait(timeout=60) == 0
    assert (tmp_path / "second").exists()


# --- the trial of twenty killed builds ------------------------------------------------------------


def test_every_kind_of_interruption_is_spread_over_the_whole_time():
    drawn = interruptions.moments(20, 2026)
    assert drawn == interruptions.moments(20, 2026) != interruptions.moments(20, 2027)
    assert Counter(kind for _, kind in drawn) == {kind: 5 for kind in interruptions.KINDS}
    for kind in interruptions.KINDS:
        shares = sorted(share for share, own in drawn if own == kind)
        assert [int(share * 5) for share in shares] == [0, 1, 2, 3, 4]


def test_files_that_a_killed_build_left_are_found(tmp_path):
    place = tmp_path / "_build" / "notebooks"
    place.mkdir(parents=True)
    for name in (".first.ipynb.123", "first.ipynb", ".lock"):
        (place / name).touch()
    assert interruptions.left_over(tmp_path) == ["notebooks/.first.ipynb.123"]
