"""Examine a model in a user's file. The file is loaded and its function called only in a child process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from ..defaults import GiB
from ..isolation import CAN_FORK, Ended, Failure, events
from ..sweep.records import environment
from .diagnosis import Diagnosis
from .events import Event, LeftOut, Started, Tell, Unusable
from .facts import Facts
from .run import Examination, Options
from .subject import load_patient

FACTORY = 0.5  # fraction of the total time for the user's function
TOO_SLOW = 124  # exit code of the child process if the user's function takes longer, on platforms without SIGALRM
INSIDE = 0.95  # fraction of the total time after which the child process ends by itself


def examined(target: str, options: Options, tell: Tell = lambda event: None) -> Diagnosis:
    """Return the diagnosis of `FILE.py:factory`. The file can't affect this process.

    A function that raises an exception, hangs, exits or needs too much memory also has a diagnosis: unusable input, with the reason.
    """
    facts = Facts(target, environment=environment(1))
    tell(Started("factory"))
    with TemporaryDirectory() as folder:
        in_child = partial(_examine_in_child, target, options, Path(folder))
        for said in events(in_child, seconds=options.seconds, memory=int(options.memory * GiB), whole=False, anew=not CAN_FORK):
            event = _make_end_event(facts, said) if isinstance(said, Ended) else said
            if event is not None:
                facts.keep(event)
                tell(event)
    return Diagnosis(facts)


def _make_end_event(facts: Facts, ended: Ended) -> Event | None:
    """Return the event for a failed child process: unusable input before the model has run, skipped steps afterwards."""
    if ended.failure is None or facts.unusable is not None:
        return None
    if facts.eager is None:
        return Unusable(_label_failure(ended.failure, "the model" if facts.summary else "the function"))
    return LeftOut("remaining steps", ended.failure.error)


def _label_failure(failure: Failure, who: str) -> Failure:
    """Return the failure with its source added to the message, except for `BadInput`."""
    if "BadInput" in failure.types:
        return replace(failure, error=failure.error.partition(": ")[2])
    if failure.error in (f"ProcessDied: exit code {TOO_SLOW}", "ProcessDied: killed by SIGALRM"):
        return replace(failure, kind="timeout", error=f"{who}: TimeLimit: it took more than half of the time limit")
    return replace(failure, error=f"{who}: {failure.error}")


def _examine_in_child(target: str, options: Options, folder: Path, tell: Tell) -> None:
    torch.set_num_threads(1)
    began = time.monotonic()
    with _exits_after(options.seconds * FACTORY):
        patient = load_patient(target, options.train)
    left = options.seconds * INSIDE - (time.monotonic() - began)
    for event in Examination(patient, replace(options, seconds=left), folder).events():
        tell(event)


@contextmanager
def _exits_after(seconds: float) -> Iterator[None]:
    """End this process at any point of a block that takes longer."""
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)
        return
    timer = threading.Timer(seconds, os._exit, (TOO_SLOW,))
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()
