"""Try one export in a child process: write, load and verify it. If its results differ from eager, find the node that causes it."""

from __future__ import annotations

import re
import shutil
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import onnx_ir as ir
from torch import nn

from ..cases import Sample
from ..eager import disable_compile, fresh
from ..exporters import Artifact, Exporter, OnnxArtifact, get
from ..exporters.onnx_artifact import write
from ..exporters.session import session, session_options
from ..exporters.to_onnx import EXTERNAL_DATA_ABOVE
from ..files import atomic_write
from ..isolation import Failure, failure_of
from ..messages import heard
from ..outcomes import Outcome
from ..sweep.observe import call_seconds, weights_bytes
from ..verification.comparison import Attempt, run_export_step, run_load_step, run_verify_step
from ..verification.divergence import compared
from .events import Diverged, Refusal, Saved, Started, Tell, Trial
from .lines import STACK, find_line_in_locals, find_line_in_text
from .subject import Subject

if TYPE_CHECKING:
    import onnxruntime

BESIDE = "model.onnx.data"  # the weights of a large model
REFUSES = "to_onnx"  # raises errors for problems that are silent in other exporters
CALLS = 5  # alternating calls of the exported model and eager
SLOW = 0.5  # seconds; slower models are called once
Wrap = Callable[[Exporter], Exporter]
NODE = re.compile(r"Name:\s?'([^']+)'|node with name '([^']+)'|[Nn]ode \(([^)\s]+)\)|Node:(\S+)|operator \(\w+\) in node \(([^)]+)\)")


def try_export(patient: Subject, trial: Trial, folder: Path, tell: Tell, wrapped: Wrap = lambda exporter: exporter) -> None:
    """Run the export described by `trial`: write the model to `folder`, load it, verify it on all samples, and report the outcome.

    If the results differ from eager and no workaround was used, also report the captured node with the largest difference.
    """
    attempt = run_export_step(wrapped(get(trial.exporter)), patient.module, patient.samples[0], patient.dynamic_shapes, **trial.options)
    trial = replace(trial, outcome=attempt.outcome, said=attempt.said)
    if attempt.artifact is None:
        tell(replace(trial, failure=_failure(attempt.error), at=find_line_in_locals(attempt.error)))
        return
    trial = _write_artifact(trial, attempt.artifact, folder, weights_bytes(patient.module) > EXTERNAL_DATA_ABOVE)
    with disable_compile():
        trial = _record_attempt(trial, run_verify_step(run_load_step(attempt), patient.module, patient.all), patient)
    tell(trial)
    if trial.plain:
        _look_for_divergence(trial, attempt.artifact, patient, tell)


def refusal(patient: Subject, tell: Tell) -> None:
    """Report the error of `to_onnx` for the program captured by torch.export, if it raises one."""
    attempt = run_export_step(get(REFUSES), patient.module, patient.samples[0], patient.dynamic_shapes, capture="torch.export")
    if attempt.error is not None:
        tell(Refusal(failure_of(attempt.error)))


def _failure(error: BaseException | None) -> Failure | None:
    return None if error is None else failure_of(error)


def _write_artifact(trial: Trial, artifact: Artifact, folder: Path, large: bool) -> Trial:
    """Write the artifact to a file. A large one is also run from there."""
    path = folder / f"model{artifact.suffix}"
    try:
        if large and isinstance(artifact, OnnxArtifact):
            _run_from(artifact, path)
        else:
            artifact.save(path)
    except Exception as error:  # noqa: BLE001 - any error is reported
        return replace(trial, save=failure_of(error), nodes=artifact.ops().total())
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return replace(trial, bytes=size, nodes=artifact.ops().total(), file=str(path))


def _run_from(artifact: OnnxArtifact, path: Path) -> None:
    """Write the weights to a separate file, which ONNX Runtime maps into memory."""
    ir.save(artifact.model, path, external_data=BESIDE)
    if "session" not in vars(artifact):
        vars(artifact)["session"] = _session(path)


def _session(path: Path) -> onnxruntime.InferenceSession:
    options = session_options()
    options.add_session_config_entry("session.disable_prepacking", "1")  # prepacking would copy all weights
    return session(path, options)


def _record_attempt(trial: Trial, attempt: Attempt, patient: Subject) -> Trial:
    failure = _failure(attempt.error)
    checks = tuple(attempt.report.checks) if attempt.report else ()
    trial = replace(trial, outcome=attempt.outcome, failure=failure, checks=checks, said=attempt.said)
    message = failure.message if failure else " ".join(check.detail for check in checks if check.failed)
    if isinstance(attempt.artifact, OnnxArtifact):
        trial = _attach_refused_node(trial, attempt.artifact.model, message)
    if attempt.outcome is not Outcome.OK or attempt.artifact is None:
        return trial
    return replace(trial, ratio=_ratio(attempt.artifact, fresh(patient.module), patient.samples[0]))


def _attach_refused_node(trial: Trial, model: ir.Model, message: str) -> Trial:
    """Add the node that is named in a message of ONNX Runtime, with its operator and source line."""
    names = [name for groups in NODE.findall(message) for name in groups if name]
    for node in model.graph.all_nodes():
        if node.name is not None and node.name in names:
            return replace(trial, node=node.name, op=node.op_type, at=find_line_in_text(node.metadata_props.get(STACK, "")))
    return replace(trial, node=names[0]) if names else trial


def _ratio(artifact: Artifact, module: nn.Module, sample: Sample) -> float | None:
    """Return the median duration of a call relative to eager, over alternating calls, or None if a call fails."""
    with suppress(Exception):
        start = time.perf_counter()
        pairs = [(call_seconds(artifact, sample), call_seconds(module, sample))]
        repetitions = 1 if time.perf_counter() - start > SLOW else CALLS
        pairs += [(call_seconds(artifact, sample), call_seconds(module, sample)) for _ in range(repetitions - 1)]
        return statistics.median(mine / eager for mine, eager in pairs)
    return None


def diverges(trial: Trial) -> str:
    """Return the name of the step that searches for the node that causes a difference."""
    return f"differences of {trial.label}"


def _look_for_divergence(trial: Trial, artifact: Artifact, patient: Subject, tell: Tell) -> None:
    """Compare the captured graph of this export with the exported model, node by node."""
    sample = _diverging_sample(trial, patient)
    if sample is None or not isinstance(artifact, OnnxArtifact) or artifact.captured is None:
        return
    tell(Started(diverges(trial)))
    with heard():
        found = compared(artifact.captured, artifact.model, sample.args, dict(sample.kwargs))
    if found.first is not None:
        row, nodes = found.first, {node.name: node for node in artifact.captured.graph.nodes}
        at = find_line_in_text(nodes[row.node].meta.get("stack_trace") or "")
        tell(Diverged(trial.label, row.node, row.op, tuple(node.op_type for node in row.onnx), at, repr(found)))


def _diverging_sample(trial: Trial, patient: Subject) -> Sample | None:
    """Return the sample for which the results of an artifact differ from eager."""
    unseen = iter(patient.all[1:])
    for check in trial.checks:
        sample = (
            next(unseen)
            if check.name in ("unseen size", "another kind of call")
            else patient.samples[0]
            if check.name == "export inputs"
            else None
        )
        if sample is not None and check.failed and check.detail.startswith("output"):
            return sample
    return None


def save(trial: Trial, path: Path, tell: Tell) -> None:
    """Copy the model of a trial to `path`, and report it.

    Raises:
        OSError: the file can't be written.
    """
    kept = Path(trial.file)
    if (kept.parent / BESIDE).exists():
        write(ir.load(kept), path)
    else:
        with atomic_write(path) as draft:
            shutil.copyfile(kept, draft)
    tell(Saved(str(path)))
