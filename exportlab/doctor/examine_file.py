"""Examine a model in a user's file. The file is loaded and its function called only in a child process."""

from __future__ import annotations

import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from ..defaults import GiB
from ..isolation import Ended, Failure, events
from ..sweep.records import environment
from .diagnosis import Diagnosis
from .events import Event, LeftOut, Started, Tell, Unusable
from .facts import Facts
from .run import Examination, Options
from .subject import load_patient

FACTORY = 0.5  # fraction of the total time for the user's function
INSIDE = 0.95  # fraction of the total time after which the child process ends by itself


def examined(target: str, options: Options, tell: Tell = lambda event: None) -> Diagnosis:
    """Return the diagnosis of `FILE.py:factory`. The file can't affect this process.

    A function that raises an exception, hangs, exits or needs too much memory also has a diagnosis: unusable input, with the reason.
    """
    facts = Facts(target, environment=environment(1))
    tell(Started("factory"))
    with TemporaryDirectory() as folder:
        in_child = partial(_examine_in_child, target, options, Path(folder))
        for said in events(in_child, seconds=options.seconds, memory=int(options.memory * GiB), whole=False):
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
    if signal.SIGALRM.name in failure.error:
        return replace(failure, kind="timeout", error=f"{who}: TimeLimit: it took more than half of the time limit")
    return replace(failure, error=f"{who}: {failure.error}")


def _examine_in_child(target: str, options: Options, folder: Path, tell: Tell) -> None:
    torch.set_num_threads(1)
    began = time.monotonic()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process at any point
    signal.setitimer(signal.ITIMER_REAL, options.seconds * FACTORY)
    patient = load_patient(target, options.train)
    signal.setitimer(signal.ITIMER_REAL, 0)
    left = options.seconds * INSIDE - (time.monotonic() - began)
    for event in Examination(patient, replace(options, seconds=left), folder).events():
        tell(event)
