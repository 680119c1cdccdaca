"""Run one task in this process: export, save, load, verify, call. The module `worker` protects the process from what a task does."""

from __future__ import annotations

import copy
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..cases import Built, Case, Sample, registered_case
from ..eager import called_once, fresh
from ..exporters import Artifact, get
from ..exporters.to_onnx import is_in_training
from ..messages import first_line
from ..outcomes import Outcome
from ..userfile import line_in, named_case
from ..verification.comparison import Attempt, reason, run_export_step, run_load_step, run_verify_step
from ..verification.report import Check
from .peak import peak_memory
from .records import Record, finite
from .task import Task

PROJECT = Path(__file__).parents[2]
CALLS = 5  # timed calls after a warm-up; the median is recorded
ENOUGH = 0.5  # seconds; a slower model is called once
MESSAGE = 400  # recorded characters of a message


def observe(task: Task, ran: Callable[[], None] = lambda: None) -> Record:
    """Run `task` in this process and return its record.

    Args:
        ran: called after the case ran in eager mode, before the export.

    Raises:
        KeyError, BadInput: the case doesn't exist. ValueError: the exporter doesn't exist. Any exception of the case in eager mode.
    """
    case = case_of(task)
    built = case.made()
    was_training = not case.training and is_in_training(built.module)
    built.module.train(case.training)
    samples, shapes = (built.samples, built.dynamic_shapes) if task.mode == "dynamic" else (built.samples[:1], None)
    called_once(built.module, samples[0])  # a case that fails in eager mode can't test an exporter
    ran()
    with peak_memory() as peak:
        tried = run_export_step(get(task.exporter), built.module, samples[0], shapes)
    saved = saving(tried)
    tried = run_verify_step(run_load_step(tried), built.module, samples)
    failed = (*(tried.report.failed if tried.report else ()), *saved.refused)
    return Record(
        task.case,
        task.exporter,
        task.mode,
        tried.outcome,
        task.round,
        error=kept(reason(tried.error)) if tried.error else None,
        where=place(tried.error, case) if tried.error else None,
        failed=tuple(map(serialize_check, failed)),
        seconds={**tried.seconds, **calling(tried, built), **saved.seconds},
        peak_bytes=peak(),
        weights_bytes=weights_bytes(built.module),
        bytes=saved.bytes,
        nodes=saved.nodes,
        worst=finite(tried.report.worst) if tried.report else None,
        said=tuple(map(kept, tried.said)),
        was_training=was_training,
        **where_it_ran(tried),
    )


def where_it_ran(tried: Attempt) -> dict[str, Any]:
    """Return the record's fields for the device that ran the artifact, and a note if another device was requested."""
    return {} if tried.artifact is None else {"ran_on": tried.artifact.ran_on(), "instead": tried.artifact.instead()}


def case_of(task: Task) -> Case:
    """Return the case of a task: a registered case, or a case from the user's file."""
    return named_case(task.file, task.case) if task.file else registered_case(task.case)


def serialize_check(check: Check) -> dict[str, Any]:
    """Return a check in the form that a record stores."""
    worst, detail = finite(check.worst), kept(check.detail)
    return {"check": check.name, "inputs": check.given, "outcome": check.outcome, "worst": worst, "detail": detail}


def kept(message: str) -> str:
    """Shorten a message for a record, and make its file names relative to the project's root or the package folder."""
    for folder in (Path(torch.__file__).parents[1], PROJECT):
        message = message.replace(f"{folder}/", "")
    return message[:MESSAGE]


def place(error: BaseException, case: Case) -> str | None:
    """Return the line of the case's file that raised an error, as `FILE:LINE`, relative to the project's root."""
    line = line_in(error, _path(case))
    return f"{file_of(case)}:{line}" if line else None


def file_of(case: Case) -> str:
    """Return the file of a case, relative to the project's root. For files elsewhere, return only the name."""
    path = _path(case)
    return str(path.relative_to(PROJECT)) if path.is_relative_to(PROJECT) else path.name


def _path(case: Case) -> Path:
    """Return the file that defines the factory. For a class or a `partial`, return the file of its module."""
    code = getattr(case.factory, "__code__", None)
    return Path(code.co_filename if code else getattr(sys.modules.get(case.factory.__module__), "__file__", None) or "")


@dataclass(frozen=True)
class Saved:
    """The result of writing an artifact to a file: its size and the seconds, or the failed check in `refused`."""

    nodes: int | None = None
    bytes: int | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    refused: tuple[Check, ...] = ()


def saving(tried: Attempt) -> Saved:
    """Write the artifact, if there is one, to a temporary file."""
    if tried.artifact is None:
        return Saved()
    nodes = tried.artifact.ops().total()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        try:
            tried.artifact.save(Path(folder) / f"model{tried.artifact.suffix}")
        except Exception as error:  # noqa: BLE001 - any reason that prevents writing is recorded
            return Saved(nodes, refused=(Check("save", "", Outcome.CONVERT, detail=first_line(error)),))
        seconds = time.perf_counter() - start
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    return Saved(nodes, size, {"save": seconds})


def calling(tried: Attempt, built: Built) -> dict[str, float]:
    """Return the seconds of one call of artifact and module at the sizes of the export. Empty if the artifact is wrong there."""
    if tried.artifact is None or tried.outcome not in (Outcome.OK, Outcome.FROZEN, Outcome.NARROW):
        return {}
    return {"call": call_seconds(tried.artifact, built.samples[0]), "eager": call_seconds(fresh(built.module), built.samples[0])}


def call_seconds(callee: Artifact | nn.Module, sample: Sample) -> float:
    """Return the median of a few calls. A slow call is not repeated."""

    def once() -> float:
        given = copy.deepcopy(sample)
        start = time.perf_counter()
        callee(*given.args, **given.kwargs)
        return time.perf_counter() - start

    with torch.no_grad():
        first = once()
        return first if first > ENOUGH else statistics.median(once() for _ in range(CALLS))


def weights_bytes(module: nn.Module) -> int:
    """Return the bytes of parameters and buffers. Shared tensors count once."""
    held = {id(t): t.numel() * t.element_size() for t in (*module.parameters(), *module.buffers())}
    return sum(held.values())
