"""Try all that is known on one model, and say what is right, or what is wrong at which line. Many models are the work of `sweep/`."""

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
    """Capture and export a model in every way there is, each in a process of its own, and say what came of it.

    Args:
        samples: as `verify` takes them, one after the other or in a list; the first is exported with. Sizes that differ between
            them move. The model and the samples are not changed.
        dynamic_shapes: the axes that move, where the samples shall not say it.
        seconds: what all of it may take. memory: GiB that a step may take, the model included.
        save: where to write the best export.
        train: whether a model in training mode is exported as it is, and not as `eval()`.
        tell: takes the name of each step as it begins.

    Raises:
        ValueError: there is no sample, or no such exporter here. TypeError: the model is no module, a sample is none, or another argument
            is of another kind.
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
