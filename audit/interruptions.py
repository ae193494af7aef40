"""Kill builds at random moments, and see that the next run makes up for everything.

A small book is built undisturbed, once into an empty folder and once over the build of another
seed. Then the same is begun again and again and killed: the command with all it started, or the
command alone, as a system short of memory does. A normal run follows at once. It has to
complete, and what it leaves has to equal the undisturbed build bit for bit, apart from times.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from audit import builds, small_book

ARGUMENTS = ("--jobs", "2")
EARLIER = ("--seed", "7")
#: Whom the signal hits, and where the build was begun.
KINDS = tuple(
    (whom, start) for start in ("an empty folder", "another build") for whom in ("all", "command")
)
ENDED = "ended"
ATTEMPTS = 3  # where a build ended before it could be killed
PATIENCE = 60  # seconds that a run may be refused because a killed build is still there


def try_interruptions(
    count: int = 20,
    seed: int = 2026,
    *,
    say: Callable[[str], None] = print,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Kill builds and finish them.

    Parameters
    ----------
    count : int, optional
        How many builds.
    seed : int, optional
        Of the moments.
    say : callable, optional
        Gets a line after each build.
    folder : Path, optional
        Where the builds go; by default a temporary folder, which is removed.

    Returns
    -------
    dict
        `n`, `seed`, `seconds` (of the two undisturbed builds), `failures` (how many tries failed)
        and `tries`, see `try_interruption`.
    """
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        whole, earlier = small_book.make(place / "whole"), small_book.make(place / "earlier")
        seconds = {"an empty folder": _undisturbed(whole)}
        _undisturbed(earlier, *EARLIER)
        over = Path(shutil.copytree(earlier, place / "over"))
        seconds["another build"] = _undisturbed(over)
        tries = []
        for number, (share, (whom, start)) in enumerate(moments(count, seed)):
            moment, book = share * seconds[start], place / f"try-{number}"
            for _ in range(ATTEMPTS):
                if start == "another build":
                    shutil.copytree(earlier, book)
                else:
                    small_book.make(book)
                one = try_interruption(book, whole, moment, whom) | {"start": start}
                say(line(one))
                shutil.rmtree(book)
                if one["stage"] != ENDED:
                    break
                moment = share * one["took"]  # the machine is quicker by now
            tries.append(one)
    return {
        "n": count,
        "seed": seed,
        "seconds": {start: round(taken, 1) for start, taken in seconds.items()},
        "failures": sum(not passed(one) for one in tries),
        "tries": tries,
    }


def moments(count: int, seed: int) -> list[tuple[float, tuple[str, str]]]:
    """When to kill, as shares of the undisturbed time, and what; every kind over all the time.

    Parameters
    ----------
    count, seed : int

    Returns
    -------
    list of (float, (str, str))
        A share between 0 and 1 and one of `KINDS`. Each kind has its share of the tries, and these
        fall into equally long parts of the time, at random within them.
    """
    rng = random.Random(seed)
    found = []
    for index, kind in enumerate(KINDS):
        own = len(range(index, count, len(KINDS)))
        found += [((part + rng.random()) / own, kind) for part in range(own)]
    rng.shuffle(found)
    return found


def try_interruption(book: Path, whole: Path, moment: float, whom: str) -> dict[str, Any]:
    """Kill one build and finish it.

    Parameters
    ----------
    book, whole : Path
        The book to build, and the same book built undisturbed.
    moment : float
        Seconds after the start at which to kill.
    whom : str
        ``all`` or ``command``.

    Returns
    -------
    dict
        `moment`, `whom`, `stage` (what the build had said last; `ENDED` if it was too quick),
        `took` (how long it lived), `refused` (how often the next run was told to wait), `status`
        (of the next run), `differs` (what it left otherwise than the undisturbed build) and `said`
        (by a next run that failed).
    """
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        process = subprocess.Popen(
            **small_book.command(book, *ARGUMENTS),
            stdout=said,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            if whom == "all":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
        took = time.monotonic() - begun
        said.seek(0)
        stage = ENDED if process.returncode == 0 else _stage(said.read())
    done, refused = _finish(book)
    differs = ["nothing was built"]
    if done.returncode == 0:
        differs = builds.differences(whole / "_build", book / "_build")
        differs += [f"{name}: left over" for name in left_over(book)]
    return {
        "moment": round(moment, 2),
        "whom": whom,
        "stage": stage,
        "took": round(took, 2),
        "refused": refused,
        "status": done.returncode,
        "differs": differs,
        "said": "" if done.returncode == 0 else (done.stdout + done.stderr)[-2000:],
    }


def passed(one: dict[str, Any]) -> bool:
    """Whether the run after a killed build made up for everything."""
    return one["status"] == 0 and not one["differs"]


def line(one: dict[str, Any]) -> str:
    """One line about one killed build."""
    word = "made up for" if passed(one) else "FAILED"
    return (
        f"{word}: {one['whom']} killed after {one['moment']} s over {one['start']} "
        f"({one['stage']}) {' '.join(one['differs'][:5])}"
    )


def left_over(book: Path) -> list[str]:
    """Files that a killed build was writing, which nothing removes."""
    build = book / "_build"
    return sorted(
        path.relative_to(build).as_posix()
        for path in build.rglob(".*")
        if re.fullmatch(r"\..+\.\d+", path.name)
    )


def _undisturbed(book: Path, *arguments: str) -> float:
    begun = time.monotonic()
    done = small_book.build(book, *ARGUMENTS, *arguments)
    if done.returncode:
        raise RuntimeError(f"the undisturbed build failed:\n{done.stdout}{done.stderr}")
    return time.monotonic() - begun


def _finish(book: Path) -> tuple[subprocess.CompletedProcess, int]:
    """A normal run at once, again while it is told that the killed build is still at work."""
    refused, deadline = 0, time.monotonic() + PATIENCE
    while True:
        done = small_book.build(book, *ARGUMENTS)
        waiting = done.returncode == 2 and "another build is at work" in done.stderr
        if not waiting or time.monotonic() > deadline:
            return done, refused
        refused += 1
        time.sleep(1)


def _stage(said: str) -> str:
    """The last task that a build had spoken of."""
    tasks = [text for text in said.splitlines() if re.match(r"(page\[|verdicts|html)", text)]
    if tasks:
        return "after " + tasks[-1].split(":")[0]
    return "pages running" if "Collected" in said else "starting"
