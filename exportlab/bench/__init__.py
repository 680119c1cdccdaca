"""Benchmark a model with each exporter and runtime, and verify the results. The package `cli` contains the command line."""

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
    """Export a model with each requested exporter, verify the results, and time calls interleaved with eager mode.

    Each exporter runs in a separate process.

    Args:
        samples: as in `verify`, as separate arguments or in a list. The model is exported with the first.
        sizes: values of named dimensions, such as `{"batch": (1, 8)}`. All combinations are measured. The names are those that `doctor`
            gives to dimensions that differ between the samples; otherwise `batch` is axis 0. By default, the samples are measured as given.
        runtimes: additional runtimes: `torch.compile`, `aoti`, `openvino`, `executorch`.
        rounds: number of repetitions. With fewer than four, the intervals are wide.
        seconds: time limit of one round of one exporter.
        providers: providers of ONNX Runtime. If one isn't available, the notes and the title name the replacement.
        output: folder for the page, figures and tables. The same call resumes an interrupted benchmark there.
        tell: called with a line that describes the current step.

    Raises:
        TypeError, ValueError, BadInput: an argument is invalid.
    """
    check_module(model)
    must_be(Mapping, type(None), sizes=sizes)
    must_be_names(exporters=exporters, runtimes=runtimes, providers=providers)
    check_known(providers)
    must_be_whole(1, rounds=rounds, threads=threads)
    must_be_positive(seconds=seconds)
    must_be(str, PathLike, type(None), output=output)
    if not samples:
        raise TypeError("bench needs a sample for the export: bench(model, sample), where sample contains the arguments of the model")
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
    """Check that the model can run in a fork of this process, which is how each round runs.

    Raises:
        BadInput: the model or provider uses CUDA, which this process has already initialised.
    """
    on_gpu = not can_fork(providers) or any(tensor.is_cuda for tensor in (*model.parameters(), *model.buffers()))
    if on_gpu and torch.cuda.is_initialized():
        raise BadInput(
            "bench runs each round in a fork of this process, but this process uses CUDA, which does not work in a fork:"
            " define the model in a file and run `exportlab bench FILE.py:NAME --device cuda`"
        )
