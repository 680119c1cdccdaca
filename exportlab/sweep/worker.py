"""Run tasks in a worker process: `python -P -m exportlab.sweep.worker SETUP`. Tasks and records are JSON lines on stdin and stdout.

The worker imports and warms up once, then forks a child for each task, so that side effects end with the child. A GPU can't be used in a
fork, so GPU tasks run in a new process that warms up itself.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from multiprocessing import resource_tracker
from pkgutil import resolve_name
from typing import Any, TextIO

from ..isolation import STDERR, STDIN, STDOUT, Abandoned, Ended, adopt_orphans, descendants, die_with_parent, end_descendants, events

Answer = dict[str, Any]
RAN: Answer = {"ran": "eager"}  # sent before the record


def main() -> None:
    """Serve until standard input ends. The output of tasks is discarded."""
    setup = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(STDOUT), "w")
    os.dup2(STDERR, STDOUT)
    die_with_parent()
    adopt_orphans()
    if forks(setup):
        warm_up(setup["exporters"], setup["transformers"])
    else:
        resource_tracker.ensure_running()  # shared by all children, so that it isn't ended with a task
    say(answers, {"ready": os.getpid()})
    while line := read_line():
        say(answers, done_apart(json.loads(line), setup, answers))


def forks(setup: Answer) -> bool:
    """Return whether tasks run in forked processes."""
    from ..exporters.session import can_fork

    return can_fork(setup["limits"]["providers"], setup["limits"]["device"])


def say(answers: TextIO, answer: Answer) -> None:
    """Write one line."""
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def read_line() -> bytes:
    """Return the next line of standard input, or b"" at its end. Unbuffered, so that the end is detected while a task runs."""
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(STDIN, 1)
        if not more:
            return b""
        line += more
    return line


def warm_up(exporters: Sequence[str], transformers: bool) -> None:
    """Run the imports and first exports that would otherwise slow down the first task."""
    import torch

    from ..messages import quiet
    from .warm_up import warmed_up

    quiet()
    warnings.simplefilter("ignore")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    warmed_up(exporters, transformers)


def done_apart(task: Answer, setup: Answer, answers: TextIO) -> Answer:
    """Run a task in a child with limits, report when its case ran in eager mode, and return its record or how it ended."""
    kept, limits, anew = descendants(), setup["limits"], not forks(setup)
    call = partial(answered_anew, task, setup) if anew else partial(answered_in_fork, task, limits["providers"], answers)
    try:
        for said in events(call, seconds=limits["seconds"], memory=limits["bytes"], until=STDIN, anew=anew):
            if isinstance(said, Ended):
                return said.value if said.failure is None else {"outcome": said.failure.outcome, "error": said.failure.error}
            say(answers, said)
    except Abandoned:
        sys.exit("standard input was closed: the result of this task is no longer needed")
    finally:
        end_descendants(kept)
    raise AssertionError("the call ended without an event")


def answered_in_fork(task: Answer, providers: Sequence[str], answers: TextIO, tell: Callable[[Answer], None]) -> Answer:
    """Return what `answer_task` returns. Close the pipe first, so that the task's output can't become an answer."""
    answers.close()
    return answer_task(task, providers, tell)


def answered_anew(task: Answer, setup: Answer, tell: Callable[[Answer], None]) -> Answer:
    """Warm up this process and return what `answer_task` returns."""
    warm_up([task["exporter"]], setup["transformers"])
    return answer_task(task, setup["limits"]["providers"], tell)


def answer_task(task: Answer, providers: Sequence[str], tell: Callable[[Answer], None]) -> Answer:
    """Run the task and return the record as a dictionary, or the error of the case."""
    from ..exporters.session import running_on
    from ..messages import first_line
    from .task import Task

    try:
        asked = Task(**task)
        with running_on(providers):
            return asdict(resolve_name(asked.by)(asked, lambda: tell(RAN)))
    except Exception as error:  # noqa: BLE001 - sent through the pipe as text and raised on the other side
        return {"raised": first_line(error)}


if __name__ == "__main__":
    main()
