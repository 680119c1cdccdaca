"""Run `exportlab export` and `exportlab verify`: export and verify one model, or verify an existing file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from ..cases import Built
from ..eager import called_once
from ..exporters import Artifact, OnnxArtifact, from_file, get
from ..exporters.to_onnx import SAID, is_in_training
from ..messages import first_line
from ..outcomes import Outcome, only_closed
from ..sweep.records import CLOSED_ALONE
from ..target import target_of
from ..userfile import built, call_user_code, named_case, user_line
from ..verification.comparison import Attempt, attempt, reason
from ..verification.difference import TOLERANCES, Tolerances
from ..verification.report import Report
from ..verification.verify import verify
from .exit_codes import NotRight
from .validation import check_exporter, check_installed, check_providers, check_writable, read, write_file

VERIFIED = "the model was in training mode; verified as eval()"
LOAD_REFUSED = "ONNX Runtime can't load the model"


@dataclass(frozen=True)
class Accepted:
    """Which incorrect exports are written: all, or only those whose sole differences are in fully masked rows."""

    everything: bool = False
    masked_rows: bool = False

    def takes(self, report: Report) -> bool:
        """Return whether a model with this report is written."""
        return report.outcome == Outcome.OK or self.everything or (self.masked_rows and _only_closed(report))

    def instead(self, report: Report) -> str:
        """Return a hint about the option that would write the model."""
        forced = "use --force to write it anyway"
        return f"use --accept-masked-rows if your inputs never mask an entire row, or {forced}" if _only_closed(report) else forced


def _only_closed(report: Report) -> bool:
    return only_closed(report.outcome, (check.values for check in report.failed))


def describe_outcome(report: Report) -> str:
    """Return the outcome, with a note if only fully masked rows differ, or if a check could not run."""
    if report.outcome == Outcome.SKIPPED and report.unchecked:
        return f"{report.outcome} ({report.unchecked})"
    return f"{report.outcome}{f' {CLOSED_ALONE}' if _only_closed(report) else ''}"


def write_export(
    target: str, output: Path, exporter: str, options: Mapping[str, Any], static: bool, accepted: Accepted, train: bool
) -> None:
    """Export a model, print the report, and write the model if it is correct or accepted. Unless `train`, the model is set to `eval()`.

    Raises:
        BadInput: the input can't be used. NotRight: the export failed or is not correct.
    """
    case = _build_in_mode(target, train, SAID)
    check_exporter(exporter)
    check_writable(output)
    _check_eager(case, target)
    samples, shapes = (case.samples[:1], None) if static else (case.samples, case.dynamic_shapes)
    tried = call_user_code(lambda: attempt(get(exporter), case.module, samples, shapes, **options), f"running {target}", _file(target))
    for line in tried.said:
        print(f"message from {exporter}: {line}")
    artifact, report = _unwrap_attempt(tried, target)
    print(report)
    if not accepted.takes(report):
        raise NotRight(f"the outcome is {describe_outcome(report)}, so {output} was not written ({accepted.instead(report)})")
    write_file(lambda: artifact.save(output), output)
    print(
        f"wrote {output} ({output.stat().st_size:,} bytes){'' if report.outcome == Outcome.OK else f'; it is {describe_outcome(report)}'}"
    )
    if isinstance(artifact, OnnxArtifact):
        print(f"inputs: {_names(artifact.model.graph.inputs)}; outputs: {_names(artifact.model.graph.outputs)}")


def _names(values: Iterable[ir.Value]) -> str:
    return ", ".join(str(value.name) for value in values) or "none"


def verify_export(
    file: Path, target: str, rtol: float | None, atol: float | None, train: bool = False, providers: tuple[str, ...] = ()
) -> None:
    """Verify an ONNX file against the PyTorch model it was exported from, in the mode `write_export` uses, and print the report.

    Raises:
        BadInput: the input can't be used. NotRight: the file is not correct.
    """
    check_providers(providers)
    case = _build_in_mode(target, train, VERIFIED)
    first, returned = case.samples[0], _check_eager(case, target)
    artifact = read(lambda: from_file(file, first.args, first.kwargs, returned), file)
    _check_loads(artifact)
    tolerances = _tolerances(rtol, atol)
    report = call_user_code(
        lambda: verify(artifact, case.module, case.samples, tolerances=tolerances, providers=providers or None),
        f"running {target}",
        _file(target),
    )
    print(report)
    if report.outcome != Outcome.OK:
        verdict = "could not be verified" if report.outcome == Outcome.SKIPPED else "is not correct"
        raise NotRight(f"{file} {verdict}: {describe_outcome(report)}")


def _build_in_mode(target: str, train: bool, note: str) -> Built:
    """Return the case, with its module in evaluation mode unless `train`. If that changes the module's mode, print `note`."""
    path, name = target_of(target)
    found = named_case(str(path), name)
    made = built(found, path, found.made)
    if train or found.training:
        return replace(made, module=made.module.train() if found.training else made.module)
    if is_in_training(made.module):
        print(note)
    return replace(made, module=made.module.eval())


def _tolerances(rtol: float | None, atol: float | None) -> Tolerances | None:
    """Return the given tolerances, with 0 for a missing one, or None if neither is given."""
    return None if rtol is None and atol is None else dict.fromkeys(TOLERANCES, (rtol or 0.0, atol or 0.0))


def _unwrap_attempt(tried: Attempt, target: str) -> tuple[Artifact, Report]:
    """Return the artifact and its report.

    Raises:
        BadInput: ONNX Runtime is not installed. NotRight: the exporter failed, or ONNX Runtime can't load the model.
    """
    if tried.artifact is not None:
        check_installed(tried.artifact)
    if tried.artifact is None or tried.report is None:
        assert tried.error is not None
        if tried.outcome == Outcome.LOAD:
            raise NotRight(f"{LOAD_REFUSED}: {first_line(tried.error)}") from tried.error
        why = f"{tried.outcome}: {reason(tried.error)}{user_line(tried.error, _file(target))}"
        raise NotRight(f"{tried.exporter} failed to export {target}: {why}") from tried.error
    return tried.artifact, tried.report


def _check_loads(artifact: Artifact) -> None:
    try:
        artifact.load()
    except Exception as error:
        raise NotRight(f"{LOAD_REFUSED}: {first_line(error)}") from error


def _check_eager(case: Built, target: str) -> object:
    """Return the result of eager PyTorch for the first sample. This detects models that don't run, before the export."""
    return call_user_code(lambda: called_once(case.module, case.samples[0]), f"running {target}", _file(target))


def _file(target: str) -> Path:
    return Path(target.rpartition(":")[0])
