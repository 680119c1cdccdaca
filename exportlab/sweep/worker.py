"""The process that does tasks: `python -m exportlab.sweep.worker SETUP`, tasks in, records out, one JSON line each.

It imports and warms up once, and forks a child for each task: what a task leaves behind, or breaks, ends with its child.
Not here: who sends the tasks.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TextIO

STDIN, STDOUT, STDERR = 0, 1, 2
OFTEN = 0.1  # seconds between two looks at the memory of a task
PR_SET_PDEATHSIG = 1  # man 2 prctl
Answer = dict[str, Any]


def main() -> None:
    """Serves until standard input ends. Whatever a task prints goes nowhere."""
    setup = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(STDOUT), "w")
    os.dup2(STDERR, STDOUT)
    die_with_parent()
    warm_up(setup["exporters"], setup["cases"])
    say(answers, {"ready": os.getpid()})
    while line := read_line():
        say(answers, done_apart(json.loads(line), setup["limits"]))


def say(answers: TextIO, answer: Answer) -> None:
    """One line."""
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def read_line() -> bytes:
    """The next line of standard input, unbuffered so that its end can be seen while a task runs; empty at its end."""
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(STDIN, 1)
        if not more:
            return b""
        line += more
    return line


def warm_up(exporters: Sequence[str], cases: Sequence[str]) -> None:
    """Does once what every first export pays for: imports, registries, caches. Nothing of it is counted.

    Not by exporters that may start threads when they export: no process can fork after them.
    """
    import torch

    from ..exporters import get
    from ..quiet import quiet
    from .observe import WARM, warmed_up

    quiet()
    warnings.simplefilter("ignore")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    for exporter in exporters:
        if exporter in WARM:
            warmed_up(get(exporter), cases)


def done_apart(task: Answer, limits: Answer) -> Answer:
    """A task done in a child that may take so long and so much memory; its record, or how it ended."""
    forking = multiprocessing.get_context("fork")
    ours, theirs = forking.Pipe(duplex=False)
    child = forking.Process(target=do, args=(task, theirs))
    child.start()
    theirs.close()
    try:
        return watched(child, ours, limits)
    finally:
        end(child)


def watched(child: BaseProcess, answers: Connection, limits: Answer) -> Answer:
    """What the child answers, unless it dies or goes beyond a limit."""
    deadline = time.monotonic() + limits["seconds"]
    while time.monotonic() < deadline:
        ready = wait([answers, STDIN], OFTEN)
        if answers in ready:
            return received(child, answers)
        if ready:
            end(child)
            sys.exit("standard input ended: nobody waits for this task any more")
        if memory_of(child) > limits["bytes"]:
            return {"outcome": "crash", "error": f"MemoryLimit: the process took more than {limits['bytes'] / 2**30:g} GiB and was ended"}
    return {"outcome": "timeout", "error": f"TimeLimit: not done after {limits['seconds']:g} s"}


def received(child: BaseProcess, answers: Connection) -> Answer:
    """The child's answer, or how it died without one."""
    try:
        return answers.recv()
    except EOFError:
        child.join()
        return {"outcome": "crash", "error": f"ProcessDied: {how_it_ended(child.exitcode)}"}


def how_it_ended(code: int | None) -> str:
    """An exit code in words: `killed by SIGSEGV`."""
    return f"killed by {signal.Signals(-code).name}" if code and code < 0 else f"exit code {code}"


def memory_of(child: BaseProcess) -> int:
    """Bytes resident of the child and what it started; none once it is gone."""
    import psutil

    try:
        parent = psutil.Process(child.pid)
        return sum(process.memory_info().rss for process in (parent, *parent.children(recursive=True)))
    except psutil.NoSuchProcess:
        return 0


def end(child: BaseProcess) -> None:
    """Ends the child and whatever it started."""
    if child.is_alive():
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has not made its group yet, or is gone
            child.kill()
    child.join()


def do(task: Answer, answers: Connection) -> None:
    """The child: does the task, and answers with a record or with what the case itself raised."""
    os.setsid()
    die_with_parent()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (STDIN, STDOUT, STDERR):
        os.dup2(nowhere, descriptor)
    answers.send(answered(task))


def answered(task: Answer) -> Answer:
    """The record as a dictionary, or the error of the case."""
    from ..failures import first_line
    from .observe import observe
    from .task import Task

    try:
        return asdict(observe(Task(**task)))
    except Exception as error:  # noqa: BLE001 - it crosses the pipe as text and is raised on the other side
        return {"raised": first_line(error)}


def die_with_parent() -> None:
    """No process outlives the one that waits for it, however that ends. On Linux; elsewhere it ends with its task."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main()
