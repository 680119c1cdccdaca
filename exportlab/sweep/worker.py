"""The process that does tasks: `python -P -m exportlab.sweep.worker SETUP`, tasks in, records out, one JSON line each.

It imports and warms up once, and forks a child for each task: what a task leaves behind, or breaks, ends with its child. A task for a
GPU cannot run in a fork: its child is started anew, and warms up itself.
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
RAN: Answer = {"ran": "eager"}  # said before the record


def main() -> None:
    """Serve until standard input ends. Whatever a task prints goes nowhere."""
    setup = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(STDOUT), "w")
    os.dup2(STDERR, STDOUT)
    die_with_parent()
    adopt_orphans()
    if forks(setup):
        warm_up(setup["exporters"], setup["transformers"])
    else:
        resource_tracker.ensure_running()  # one for all children, so that it is none of those that end with a task
    say(answers, {"ready": os.getpid()})
    while line := read_line():
        say(answers, done_apart(json.loads(line), setup, answers))


def forks(setup: Answer) -> bool:
    """Return whether the tasks run in forks."""
    from ..exporters.session import can_fork

    return can_fork(setup["limits"]["providers"], setup["limits"]["device"])


def say(answers: TextIO, answer: Answer) -> None:
    """Write one line."""
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def read_line() -> bytes:
    """Return the next line of standard input, unbuffered so that its end can be seen while a task runs; empty at its end."""
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(STDIN, 1)
        if not more:
            return b""
        line += more
    return line


def warm_up(exporters: Sequence[str], transformers: bool) -> None:
    """Import and export what the first task would have to pay for."""
    import torch

    from ..messages import quiet
    from .warm_up import warmed_up

    quiet()
    warnings.simplefilter("ignore")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    warmed_up(exporters, transformers)


def done_apart(task: Answer, setup: Answer, answers: TextIO) -> Answer:
    """Do a task in a child under limits, say when its case ran in eager, and return its record, or how it ended."""
    kept, limits, anew = descendants(), setup["limits"], not forks(setup)
    call = partial(answered_anew, task, setup) if anew else partial(answered_in_fork, task, limits["providers"], answers)
    try:
        for said in events(call, seconds=limits["seconds"], memory=limits["bytes"], until=STDIN, anew=anew):
            if isinstance(said, Ended):
                return said.value if said.failure is None else {"outcome": said.failure.outcome, "error": said.failure.error}
            say(answers, said)
    except Abandoned:
        sys.exit("standard input ended: nobody waits for this task any more")
    finally:
        end_descendants(kept)
    raise AssertionError("a call ends in one way or another")


def answered_in_fork(task: Answer, providers: Sequence[str], answers: TextIO, tell: Callable[[Answer], None]) -> Answer:
    """Return what `answered` returns. What the task itself writes must not become an answer."""
    answers.close()
    return answer_task(task, providers, tell)


def answered_anew(task: Answer, setup: Answer, tell: Callable[[Answer], None]) -> Answer:
    """Return what `answered` returns, once this process is warmed up."""
    warm_up([task["exporter"]], setup["transformers"])
    return answer_task(task, setup["limits"]["providers"], tell)


def answer_task(task: Answer, providers: Sequence[str], tell: Callable[[Answer], None]) -> Answer:
    """Return the record as a dictionary, or the error of the case."""
    from ..exporters.session import running_on
    from ..messages import first_line
    from .task import Task

    try:
        asked = Task(**task)
        with running_on(providers):
            return asdict(resolve_name(asked.by)(asked, lambda: tell(RAN)))
    except Exception as error:  # noqa: BLE001 - it crosses the pipe as text and is raised on the other side
        return {"raised": first_line(error)}


if __name__ == "__main__":
    main()
