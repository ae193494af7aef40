"""What a build says while it runs: pytask's table on a terminal, one line a task elsewhere."""

from __future__ import annotations

import os
import time
from typing import Any

from pytask import ExecutionReport, PTask, Session, TaskOutcome, console, hookimpl

from rederive_book import alone

_started: dict[str, float] = {}
_WORDS = {
    TaskOutcome.SUCCESS: "done",
    TaskOutcome.FAIL: "FAILED",
    TaskOutcome.SKIP_UNCHANGED: "unchanged",
    TaskOutcome.SKIP_PREVIOUS_FAILED: "not run, what it needs failed",
}


@hookimpl(tryfirst=True)
def pytask_post_parse(config: dict[str, Any]) -> None:
    """Let pytask end with the command that started it; alone it is its own master."""
    if command := os.environ.get(alone.BUILD):
        alone.leave_with(int(command))


@hookimpl(tryfirst=True)
def pytask_execute_task_log_start(session: Session, task: PTask) -> None:
    _started[task.signature] = time.monotonic()


@hookimpl(tryfirst=True)
def pytask_execute_task_log_end(session: Session, report: ExecutionReport) -> bool | None:
    name = report.task.name.rpartition("::")[2]
    seconds = time.monotonic() - _started.get(report.task.signature, time.monotonic())
    word = _WORDS.get(report.outcome, report.outcome.description)
    took = f" in {seconds:.1f} s" if report.outcome is TaskOutcome.SUCCESS else ""
    if not console.is_terminal:
        console.print(f"{name}: {word}{took}", markup=False, highlight=False, soft_wrap=True)
    if report.outcome is TaskOutcome.FAIL and report.exc_info:
        text = str(report.exc_info[1]) or report.exc_info[0].__name__
        console.print(text, markup=False, highlight=False, soft_wrap=True, style="bold")
    # Off a terminal the line above stands in for pytask's own dots.
    return None if console.is_terminal else True
