"""The steps, each one function that runs in a child and returns plain data. Not here: their order, nor what a failure means."""

from __future__ import annotations

import io
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch
from torch import nn

from .. import show
from ..cases import Sample
from ..eager import fresh, last_returned
from ..exporters import Artifact, Exporter, OnnxArtifact, get
from ..exporters.capture import dims_from_names, forget_earlier_captures
from ..exporters.session import session, session_options
from ..exporters.to_onnx import EXTERNAL_DATA_ABOVE, op_title, to_onnx
from ..isolation import Failure, failure_of
from ..messages import muffled, native_output_dropped
from ..sweep.observe import call_seconds, weights_bytes
from ..verification.comparison import Attempt, exported, loaded, verified
from ..verification.difference import difference_of
from ..verification.divergence import first_difference
from ..verification.verify import Check
from .lines import STACK, SourceLine, of_locals, of_text
from .patient import Patient

CALLS = 5  # calls of the file and of eager, in turns
SLOW = 0.5  # seconds; what takes longer is called once
VIEWS = (torch.ops.aten.select.int, torch.ops.aten.slice.Tensor, torch.ops.aten.view.default, torch.ops.aten.transpose.int)
Wrap = Callable[[Exporter], Exporter]
NODE = re.compile(r"Name:\s?'([^']+)'|node with name '([^']+)'|[Nn]ode \(([^)\s]+)\)|Node:(\S+)|operator \(\w+\) in node \(([^)]+)\)")


@dataclass(frozen=True)
class Eager:
    """What the module does by itself: which of the made samples it takes, whether it draws random numbers, and what it holds."""

    valid: tuple[int, ...]
    random: bool
    training: bool
    weights: int


@dataclass(frozen=True)
class Captured:
    """A captured graph as text, where each of its operators is called, and where it first writes into a buffer or an input."""

    graph: tuple[str, ...]
    lines: Mapping[str, SourceLine]
    writes: SourceLine | None


@dataclass(frozen=True)
class Tried:
    """What became of one export.

    Attributes:
        label: the exporter, and what was done differently.
        checks: what `verify` looked at. save: why the file cannot be written.
        ratio: a call of the file in calls of eager, measured in turns: rough.
        node, op, at: the ONNX node that the runtime refuses, and the line that it comes from.
        only: what it holds for, where that is less than asked. before: a line of Python that comes before the export.
        plain: whether nothing was done differently from what was asked.
    """

    exporter: str
    label: str
    outcome: str
    failure: Failure | None = None
    checks: tuple[Check, ...] = ()
    save: Failure | None = None
    nodes: int | None = None
    bytes: int | None = None
    ratio: float | None = None
    node: str = ""
    op: str = ""
    at: SourceLine | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    only: str = ""
    before: str = ""
    plain: bool = True


@dataclass(frozen=True)
class Diverged:
    """The first captured node whose value differs."""

    node: str
    op: str
    onnx: tuple[str, ...]
    at: SourceLine | None
    table: str


def ran(patient: Patient) -> Eager:
    """Runs the module itself on every sample.

    Raises:
        whatever the module raises for a sample that was given.
    """
    for sample in patient.samples:
        last_returned(fresh(patient.module), (sample,))
    valid = tuple(i for i, (_, sample) in enumerate(patient.made) if _takes(patient.module, sample))
    random = _draws(patient.module, patient.samples[0])
    return Eager(valid, random, patient.module.training, weights_bytes(patient.module))


def _takes(module: nn.Module, sample: Sample) -> bool:
    with suppress(Exception):
        last_returned(fresh(module), (sample,))
        return True
    return False


def _draws(module: nn.Module, sample: Sample) -> bool:
    """Whether two calls, each of a copy of its own, differ with the seed alone."""
    results = []
    for seed in (1, 2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            results.append(last_returned(fresh(module), (sample,)))
    return bool(difference_of(*results).problem)


def captured(patient: Patient, how: str) -> Captured:
    """The graph that torch.export makes: `strict`, `non-strict` or `draft`.

    Raises:
        whatever the capture raises.
    """
    sample, shapes = patient.samples[0], dims_from_names(patient.dynamic_shapes)
    with muffled(), native_output_dropped():
        if how == "draft":
            program = torch.export.draft_export(fresh(patient.module), sample.args, dict(sample.kwargs), dynamic_shapes=shapes)
        else:
            strict = how == "strict"
            program = torch.export.export(fresh(patient.module), sample.args, dict(sample.kwargs), dynamic_shapes=shapes, strict=strict)
    return Captured(_printed(program), _lines(program), _writes(program))


def _printed(program: Any) -> tuple[str, ...]:
    text = io.StringIO()
    with redirect_stdout(text):
        show.program(program)
    return tuple(text.getvalue().splitlines())


def _lines(program: torch.export.ExportedProgram) -> dict[str, SourceLine]:
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    found = ((op_title(node.target), of_text(node.meta.get("stack_trace") or "")) for node in reversed(calls))
    return {op: place for op, place in found if place is not None}


def _writes(program: torch.export.ExportedProgram) -> SourceLine | None:
    for node in program.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable and _is_held(node.args[0]):
            return of_text(node.meta.get("stack_trace") or "")
    return None


def _is_held(value: Any) -> bool:
    """Whether it is a buffer or an input, or a view of one."""
    while isinstance(value, torch.fx.Node) and value.op == "call_function" and value.target in VIEWS:
        value = value.args[0]
    return isinstance(value, torch.fx.Node) and value.op == "placeholder"


def tried(patient: Patient, exporter: str, options: Mapping[str, Any], label: str, wrapped: Wrap = lambda exporter: exporter) -> Tried:
    """Exports, writes, loads, verifies on all samples, and calls."""
    attempt = exported(wrapped(get(exporter)), patient.module, patient.samples[0], patient.dynamic_shapes, **options)
    seen = Tried(exporter, label, attempt.outcome, options=options)
    if attempt.artifact is None:
        return replace(seen, failure=_failure(attempt.error), at=of_locals(attempt.error))
    with tempfile.TemporaryDirectory() as folder:
        seen = _written(seen, attempt.artifact, Path(folder), weights_bytes(patient.module) > EXTERNAL_DATA_ABOVE)
        attempt = verified(loaded(attempt), patient.module, patient.all)
        return _observed(seen, attempt, patient)


def _failure(error: BaseException | None) -> Failure | None:
    return None if error is None else failure_of(error)


def _written(seen: Tried, artifact: Artifact, folder: Path, large: bool) -> Tried:
    """The artifact as a file; a large one stays there, and runs from there."""
    path = folder / f"model{artifact.suffix}"
    try:
        if large and isinstance(artifact, OnnxArtifact):
            _run_from(artifact, path)
        else:
            artifact.save(path)
    except Exception as error:  # noqa: BLE001 - whatever keeps it from being written is what is to be reported
        return replace(seen, save=failure_of(error), nodes=artifact.ops().total())
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return replace(seen, bytes=size, nodes=artifact.ops().total())


def _run_from(artifact: OnnxArtifact, path: Path) -> None:
    """Writes the weights beside the file, from where they are, and lets ONNX Runtime map them from there."""
    ir.save(artifact.model, path, external_data="model.onnx.data")
    if "session" not in vars(artifact):
        vars(artifact)["session"] = _session(path)


def _session(path: Path) -> Any:
    options = session_options()
    options.add_session_config_entry("session.disable_prepacking", "1")  # it would hold every weight once more
    return session(path, options)


def _observed(seen: Tried, attempt: Attempt, patient: Patient) -> Tried:
    failure = _failure(attempt.error)
    checks = tuple(attempt.report.checks) if attempt.report else ()
    seen = replace(seen, outcome=attempt.outcome, failure=failure, checks=checks)
    said = failure.message if failure else " ".join(c.detail for c in checks if c.outcome not in ("ok", "skipped"))
    if isinstance(attempt.artifact, OnnxArtifact):
        seen = replace(seen, **_refused_node(attempt.artifact.model, said))
    if attempt.outcome != "ok" or attempt.artifact is None:
        return seen
    return replace(seen, ratio=_ratio(attempt.artifact, fresh(patient.module), patient.samples[0]))


def _refused_node(model: ir.Model, said: str) -> dict[str, Any]:
    """Of a message of ONNX Runtime: the node that it names, its operator, and the line that it comes from."""
    names = [name for groups in NODE.findall(said) for name in groups if name]
    for node in model.graph.all_nodes():
        if node.name in names:
            return {"node": node.name, "op": node.op_type, "at": of_text(node.metadata_props.get(STACK, ""))}
    return {"node": names[0], "op": ""} if names else {}


def _ratio(artifact: Artifact, module: nn.Module, sample: Sample) -> float | None:
    """The median, over calls in turns, of the time of the file in that of eager; None where the file is called for the first time only."""
    with suppress(Exception):
        start = time.perf_counter()
        pairs = [(call_seconds(artifact, sample), call_seconds(module, sample))]
        turns = 1 if time.perf_counter() - start > SLOW else CALLS
        pairs += [(call_seconds(artifact, sample), call_seconds(module, sample)) for _ in range(turns - 1)]
        return statistics.median(mine / eager for mine, eager in pairs)
    return None


EXPORT: Mapping[str, Callable[..., Any]] = {
    "to_onnx": to_onnx,
    "dynamo": lambda *args, **options: torch.onnx.export(*args, dynamo=True, verbose=False, **options),
}


def parted(patient: Patient, exporter: str, options: Mapping[str, Any], sample: Sample) -> Diverged | None:
    """Exports once more, and looks for the first captured node whose value differs; None where none does."""
    given = patient.samples[0]
    with muffled(), native_output_dropped():
        forget_earlier_captures()
        program = EXPORT[exporter](
            fresh(patient.module), given.args, kwargs=dict(given.kwargs), dynamic_shapes=patient.dynamic_shapes, **options
        )
        found = first_difference(program, *sample.args, **dict(sample.kwargs))
    if found.first is None:
        return None
    row = found.first
    nodes = {node.name: node for node in program.exported_program.graph.nodes}
    at = of_text(nodes[row.node].meta.get("stack_trace") or "")
    return Diverged(row.node, row.op, tuple(node.op_type for node in row.onnx), at, repr(found))


def saved(patient: Patient, exporter: str, options: Mapping[str, Any], path: Path, wrapped: Wrap) -> None:
    """Exports once more, and writes the file.

    Raises:
        whatever the exporter raises, or OSError.
    """
    sample = patient.samples[0]
    with muffled(), native_output_dropped():
        chosen = wrapped(get(exporter))
        artifact = chosen.export(fresh(patient.module), sample.args, sample.kwargs, dynamic_shapes=patient.dynamic_shapes, **options)
    artifact.save(path)
