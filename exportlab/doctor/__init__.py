"""Diagnose the export of one model: find a correct export, or the cause and line of the problem. For many models, see `sweep/`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import nn

from ..checks import must_be, must_be_names, must_be_positive, must_end
from ..defaults import DOCTORS
from ..sweep.records import environment
from .diagnosis import Diagnosis
from .events import Event, Started
from .examine_file import examined
from .facts import Facts
from .run import Examination, Options, check_exporters, warm_up
from .subject import patient_of

__all__ = ["Diagnosis", "Event", "Options", "Started", "check_exporters", "doctor", "examined"]


def doctor(
    model: nn.Module,
    *samples: Any,
    dynamic_shapes: Any = None,
    exporters: Sequence[str] = DOCTORS,
    seconds: float = 300.0,
    memory: float = 8.0,
    save: str | Path | None = None,
    train: bool = False,
    tell: Callable[[str], None] = lambda step: None,
) -> Diagnosis:
    """Capture, export and verify a model with several exporters and workarounds, each in a separate process, and diagnose failures.

    Args:
        samples: the calls to test, as for `verify`, as separate arguments or in one list. The first one is used for the export.
            Dimensions that differ between samples are dynamic. The model and the samples are not modified.
        dynamic_shapes: the dynamic dimensions, if they are not to be inferred from the samples.
        seconds: time limit for the whole run. memory: memory limit per step in GiB, including the model.
        save: path for the best export.
        train: whether to keep a model in training mode instead of switching it to `eval()`.
        tell: called with the name of each step when it starts.

    Raises:
        ValueError: the samples are empty, or an exporter is not available. TypeError: the model is not a module, a sample is not a call,
            or another argument has the wrong type.
    """
    must_be_names(exporters=exporters)
    must_be_positive(seconds=seconds, memory=memory)
    must_be(str, PathLike, type(None), save=save)
    must_be(bool, train=train)
    must_be(dict, tuple, list, type(None), dynamic_shapes=dynamic_shapes)
    must_end(dynamic_shapes=dynamic_shapes)
    check_exporters(exporters)
    warm_up(tuple(exporters))
    options = Options(seconds, memory, tuple(exporters), Path(save) if save is not None else None, train)
    facts = Facts("", environment=environment(1))
    with TemporaryDirectory() as folder:
        for event in Examination(patient_of(model, samples, dynamic_shapes, train), options, Path(folder)).events():
            facts.keep(event)
            if isinstance(event, Started):
                tell(event.step)
    return Diagnosis(facts)
