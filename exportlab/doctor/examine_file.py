"""Examine a model in a file of the user's own: the file is read, and its factory called, in a child alone."""

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

FACTORY = 0.5  # part of the whole time that the factory may take
INSIDE = 0.95  # part of the whole time after which the child ends by itself


def examined(target: str, options: Options, tell: Tell = lambda event: None) -> Diagnosis:
    """Return the diagnosis of what `FILE.py:factory` names. Nothing that the file does reaches this process.

    A factory that raises, hangs, exits or eats memory makes a diagnosis too: that it cannot be used, and why.
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
    """A child that died before the model had run was given something that cannot be used; later it costs the steps that were left."""
    if ended.failure is None or facts.unusable is not None:
        return None
    if facts.eager is None:
        return Unusable(_label_failure(ended.failure, "the model" if facts.summary else "the factory"))
    return LeftOut("what came after", ended.failure.error)


def _label_failure(failure: Failure, who: str) -> Failure:
    """Leave what `BadInput` says as it is; say of others who it was."""
    if "BadInput" in failure.types:
        return replace(failure, error=failure.error.partition(": ")[2])
    if signal.SIGALRM.name in failure.error:
        return replace(failure, kind="timeout", error=f"{who}: TimeLimit: it took more than half of the time that there is")
    return replace(failure, error=f"{who}: {failure.error}")


def _examine_in_child(target: str, options: Options, folder: Path, tell: Tell) -> None:
    torch.set_num_threads(1)
    began = time.monotonic()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process, whatever it is in the middle of
    signal.setitimer(signal.ITIMER_REAL, options.seconds * FACTORY)
    patient = load_patient(target, options.train)
    signal.setitimer(signal.ITIMER_REAL, 0)
    left = options.seconds * INSIDE - (time.monotonic() - began)
    for event in Examination(patient, replace(options, seconds=left), folder).events():
        tell(event)
