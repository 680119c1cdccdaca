"""A model of one's own, measured: by every exporter and what runs it, each verified beside its times. Not here: the command line (cli)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from ..cases import Case
from ..checks import must_be, must_be_names, must_be_positive, must_be_whole
from ..defaults import BENCH_SECONDS, BENCHED, TASK_BYTES
from ..exporters.session import CPU, can_fork, check_known, present
from ..samples import check_module, samples_of
from ..target import BadInput
from .output import write_all
from .plan import Measured, Plan, measured
from .result import Bench
from .run import InForks, Work, measure
from .ways import ways_of

__all__ = ["Bench", "Measured", "Plan", "Work", "bench", "measure", "measured", "write_all"]


def bench(
    model: nn.Module,
    *samples: Any,
    sizes: Mapping[str, Sequence[int]] | None = None,
    exporters: Sequence[str] = BENCHED,
    runtimes: Sequence[str] = (),
    rounds: int = 5,
    threads: int = 1,
    seconds: float = BENCH_SECONDS,
    providers: Sequence[str] = (CPU,),
    output: str | Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Bench:
    """Export a model in every way that is asked for, verify each, and time its calls in turns with eager's, each in a process of its own.

    Args:
        samples: as `verify` takes them, one after the other or in a list; the first is exported with.
        sizes: what a named dimension shall be, `{"batch": (1, 8)}`; every combination is measured. Names are those that `doctor`
            gives to what differs between the samples; `batch` is otherwise axis 0. Without it, the samples are measured as they are.
        runtimes: what else runs it: `torch.compile`, `aoti`, `openvino`, `executorch`.
        rounds: how often everything is done; of fewer than four, the intervals are wide.
        seconds: what one round of one exporter may take.
        providers: of ONNX Runtime, to run files on; where one is not there, the notes and the title say what was used instead.
        output: the folder to write page, figures and tables into; the same call goes on there.
        tell: takes a line that says what runs now.

    Raises:
        TypeError, ValueError, BadInput: an argument cannot be used.
    """
    check_module(model)
    must_be(Mapping, type(None), sizes=sizes)
    must_be_names(exporters=exporters, runtimes=runtimes, providers=providers)
    check_known(providers)
    must_be_whole(1, rounds=rounds, threads=threads)
    must_be_positive(seconds=seconds)
    must_be(str, PathLike, type(None), output=output)
    if not samples:
        raise TypeError("bench needs a sample to export with: bench(model, sample), where a sample is what the model is called with")
    given = samples_of(list(samples) if len(samples) > 1 else samples[0], model)
    case = Case(type(model).__name__, lambda: (model, given))
    names, notes = ways_of(tuple(exporters), tuple(runtimes))
    plan = Plan({name: tuple(values) for name, values in (sizes or {}).items()}, threads=threads, providers=tuple(providers))
    _check_forks(model, plan.providers)
    work = Work(case.name, names, rounds, plan, seconds=seconds)
    with TemporaryDirectory() as draft:
        folder = Path(output) if output is not None else Path(draft)
        records = measure(work, folder, tell, InForks(case, (seconds, TASK_BYTES)))
        found = Bench(records, (*notes, *filter(None, [present(providers)[1]])))
        if output is not None:
            write_all(found, folder)
    return found


def _check_forks(model: nn.Module, providers: Sequence[str]) -> None:
    """Every round of a model at hand runs in a fork of this process.

    Raises:
        BadInput: what it runs on does not work there.
    """
    on_gpu = not can_fork(providers) or any(tensor.is_cuda for tensor in (*model.parameters(), *model.buffers()))
    if on_gpu and torch.cuda.is_initialized():
        raise BadInput(
            "bench runs each round of a model at hand in a fork of this process, and this process uses CUDA, which does not work in a fork:"
            " write the model to a file, and run `exportlab bench FILE.py:NAME --device cuda`"
        )
