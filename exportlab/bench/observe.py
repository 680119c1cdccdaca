"""Run one round of one way in a worker process: export, save, load, first call, verify, and calls that alternate with eager mode."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from fx2onnx.compat.trees import tree_map_only

from ..cases import Case, Sample
from ..eager import called_once, copy_sample, fresh
from ..exporters import Artifact
from ..exporters.session import running_on
from ..exporters.to_onnx import is_in_training
from ..measure.timing import interleaved
from ..sweep.observe import Saved, case_of, kept, place, saving, serialize_check, weights_bytes, where_it_ran
from ..sweep.peak import peak_memory
from ..sweep.records import Record, finite
from ..sweep.task import Task
from ..verification.comparison import Attempt, reason, run_export_step, run_load_step, run_verify_step
from .plan import Measured, Plan, measured
from .ways import ON_DEVICE, WITHOUT_FILE, way

LEAST = 0.002  # minimum seconds of a timed batch of calls; fast models are called several times
MOST = 500  # calls in such a batch
WARM_UPS = 2  # rounds of calls that are discarded
BUDGET = 3.0  # seconds per size after which no further round of calls starts


def observe(task: Task, ran: Callable[[], None] = lambda: None) -> Record:
    """Run `task` in this process and return its record. Raises what `sweep.observe.observe` raises."""
    return observe_case(case_of(task), task, ran)


def observe_case(case: Case, task: Task, ran: Callable[[], None] = lambda: None) -> Record:
    """Run `task` for a case object."""
    plan = Plan.of(task.asked)
    given = measured(case, plan)
    was_training = not case.training and is_in_training(given.module)
    given.module.train(case.training)
    if task.exporter in ON_DEVICE and plan.device != "cpu":
        given = move_to_device(given, plan.device)
    called_once(given.module, given.samples[0])  # a model that fails in eager mode can't test an exporter
    ran()
    with running_on(plan.providers, plan.threads):
        return _record(case, task, plan, given, was_training)


def _record(case: Case, task: Task, plan: Plan, given: Measured, was_training: bool) -> Record:
    with peak_memory() as peak:
        tried = run_export_step(way(task.exporter), given.module, given.samples[0], given.dynamic_shapes)
    saved = saving(tried) if task.exporter not in WITHOUT_FILE else Saved()
    tried = run_load_step(tried)
    first = first_answer(tried, given.samples[0])
    tried = run_verify_step(tried, given.module, given.samples)
    calls, refused = latencies(tried, given, plan)
    return Record(
        task.case,
        task.exporter,
        task.mode,
        tried.outcome,
        task.round,
        error=kept(reason(tried.error)) if tried.error else None,
        where=place(tried.error, case) if tried.error else None,
        failed=tuple(map(serialize_check, (*(tried.report.failed if tried.report else ()), *saved.refused))),
        seconds={**(tried.seconds if task.exporter != "eager" else {}), **saved.seconds, **first, **calls},
        peak_bytes=peak() if task.exporter != "eager" else None,
        weights_bytes=weights_bytes(given.module),
        bytes=saved.bytes,
        nodes=saved.nodes,
        worst=finite(tried.report.worst) if tried.report else None,
        said=tuple(map(kept, (*tried.said, *refused))),
        was_training=was_training,
        **where_it_ran(tried),
    )


def move_to_device(given: Measured, device: str) -> Measured:
    """Return the model and its samples on a device."""

    def there(sample: Sample) -> Sample:
        tree = tree_map_only(torch.Tensor, lambda t: t.to(device), (sample.args, dict(sample.kwargs)))
        return Sample(*tree)

    timed = {name: there(sample) for name, sample in given.timed.items()}
    return replace(given, module=given.module.to(device), samples=[there(sample) for sample in given.samples], timed=timed)


def first_answer(tried: Attempt, sample: Sample) -> dict[str, float]:
    """Return the seconds of the first call after loading. Empty if there is no artifact, or the call fails, which `verify` reports."""
    if tried.artifact is None or tried.error is not None:
        return {}
    given, callee = copy_sample(sample), tried.artifact
    start = time.perf_counter()
    try:
        with torch.no_grad():
            callee(*given.args, **given.kwargs)
            synchronize()
    except Exception:  # noqa: BLE001 - `verify` reports errors of the runtime
        return {}
    return {"first": time.perf_counter() - start}


def latencies(tried: Attempt, given: Measured, plan: Plan) -> tuple[dict[str, float], list[str]]:
    """Return the seconds of a call by size, of the artifact and of eager mode, and a line for each size that it rejects."""
    if tried.artifact is None or tried.error is not None:
        return {}, []
    found: dict[str, float] = {}
    refused: list[str] = []
    for name, sample in given.timed.items():
        try:
            found |= {
                f"{who}, {name}": seconds for who, seconds in time_against_eager(tried.artifact, given.module, sample, plan.calls).items()
            }
        except Exception as error:  # noqa: BLE001 - if the model rejects a size, the record contains the reason instead of a time
            refused.append(f"{name}: no time, {reason(error)}")
    return found, refused


def time_against_eager(artifact: Artifact, module: nn.Module, sample: Sample, calls: int) -> dict[str, float]:
    """Time calls of an artifact and of the module alternately, and return the medians: `call` and `eager`."""
    again, own = artifact.fresh(), fresh(module)
    ready = {"call": make_artifact_call(again if isinstance(again, Artifact) else artifact, sample), "eager": make_module_call(own, sample)}
    with torch.no_grad():
        many = {name: calibrate_calls(call) for name, call in ready.items()}
        makers: Mapping[str, Any] = {name: (lambda n=name: lambda: [ready[n]() for _ in range(many[n])]) for name in ready}
        found = interleaved({"": makers}, calls, discard=WARM_UPS, budget=BUDGET)[""]
    return {name: found.median(name) / many[name] for name in ready}


def make_artifact_call(artifact: Artifact, sample: Sample) -> Callable[[], Any]:
    """Return a function that calls an artifact with prepared arguments."""
    given = copy_sample(sample)
    call = artifact.prepared(*given.args, **given.kwargs)

    def once() -> None:
        call()
        synchronize()

    return once


def make_module_call(module: nn.Module, sample: Sample) -> Callable[[], Any]:
    """Return a function that calls a module."""
    given = copy_sample(sample)

    def once() -> None:
        module(*given.args, **given.kwargs)
        synchronize()

    return once


def synchronize() -> None:
    """Wait until a GPU has finished its work."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def calibrate_calls(call: Callable[[], Any]) -> int:
    """Return how many calls to time together so that the clock is precise enough. The first call is ignored."""
    call()
    start = time.perf_counter()
    call()
    return max(1, min(MOST, math.ceil(LEAST / max(time.perf_counter() - start, 1e-9))))
