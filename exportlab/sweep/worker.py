"""The process that does tasks: `python -m exportlab.sweep.worker SETUP`, tasks in, records out, one JSON line each.

It imports and warms up once, and forks a child for each task: what a task leaves behind, or breaks, ends with its child.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TextIO

from ..isolation import STDERR, STDIN, STDOUT, Abandoned, apart, die_with_parent

Answer = dict[str, Any]


def main() -> None:
    """Serve until standard input ends. Whatever a task prints goes nowhere."""
    setup = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(STDOUT), "w")
    os.dup2(STDERR, STDOUT)
    die_with_parent()
    warm_up(setup["exporters"], setup["transformers"])
    say(answers, {"ready": os.getpid()})
    while line := read_line():
        say(answers, done_apart(json.loads(line), setup["limits"]))


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


def done_apart(task: Answer, limits: Answer) -> Answer:
    """Do a task in a child that may take so long and so much memory; return its record, or how it ended."""
    try:
        ended = apart(partial(answered, task), seconds=limits["seconds"], memory=limits["bytes"], until=STDIN)
    except Abandoned:
        sys.exit("standard input ended: nobody waits for this task any more")
    if ended.failure is None:
        return ended.value
    return {"outcome": ended.failure.outcome, "error": ended.failure.error}


def answered(task: Answer) -> Answer:
    """Return the record as a dictionary, or the error of the case."""
    from ..messages import first_line
    from .observe import observe
    from .task import Task

    try:
        return asdict(observe(Task(**task)))
    except Exception as error:  # noqa: BLE001 - it crosses the pipe as text and is raised on the other side
        return {"raised": first_line(error)}


if __name__ == "__main__":
    main()
