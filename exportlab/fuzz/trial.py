"""Export one program with one exporter in a separate process, and compare it with eager mode."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch

from ..defaults import GiB
from ..diagnostics import names_cause
from ..exporters import Exporter
from ..exporters.to_onnx import InternalError, ToOnnxError
from ..isolation import run_isolated
from ..outcomes import Outcome
from ..verification.comparison import Attempt, attempt, reason
from ..verification.report import Check
from .program import Program

SECONDS, BYTES = 60.0, 8 * GiB  # limits of one program with one exporter
OURS = "to_onnx"  # this exporter promises to raise only its own errors, and to write only models that the runtime accepts


@dataclass(frozen=True)
class Trial:
    """The result of one program with one exporter: the outcome, its details, and whether a warning named the cause.

    `values` names the change of the inputs that revealed the error, if the original inputs didn't. `internal` tells whether `to_onnx`
    raised an error other than its own, or wrote a model that the runtime rejects.
    """

    exporter: str
    outcome: Outcome
    seen: str = ""
    warned: bool = False
    values: str = ""
    internal: bool = False

    @property
    def silent(self) -> bool:
        """Whether it is silently wrong."""
        return self.outcome.silent and not self.warned

    @property
    def found(self) -> bool:
        """Whether it is a defect: silently wrong, a crashed process, or an internal error of `to_onnx`."""
        return self.silent or self.internal or self.outcome is Outcome.CRASH


def runs(program: Program) -> bool:
    """Return whether eager mode accepts the program at all sizes."""
    try:
        module = program.module()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return all(_keeps(module(*sample.args), sample.args[0]) for sample in program.samples())
    except (RuntimeError, IndexError, ValueError, AssertionError, TypeError, NotImplementedError):  # eager mode rejects a size
        return False


def _keeps(result: torch.Tensor, x: torch.Tensor) -> bool:
    """Return whether a result can be the input of a further step."""
    return result.dim() == 2 and result.shape[1] == x.shape[1] and result.dtype == torch.float32


def run_trial(program: Program, exporter: Exporter) -> Trial:
    """Export the program and verify it at all of its sizes, in a child process with limits."""
    ended = run_isolated(lambda: _trial(program, exporter), seconds=SECONDS, memory=BYTES)
    if ended.failure is not None:
        return Trial(exporter.name, ended.failure.outcome, ended.failure.error)
    assert isinstance(ended.value, Trial)
    return ended.value


def _trial(program: Program, exporter: Exporter) -> Trial:
    made = attempt(exporter, program.module(), program.samples(), program.shapes)
    check = _find_failed_check(made)
    seen = reason(made.error) if made.error is not None else f"{check.name} ({check.given}): {check.detail}" if check else ""
    warned = any(map(names_cause, made.said))
    return Trial(made.exporter, made.outcome, seen, warned, check.values if check else "", _is_internal(made))


def _find_failed_check(made: Attempt) -> Check | None:
    failed = made.report.failed if made.report else ()
    return next((check for check in failed if check.outcome == made.outcome), None)


def _is_internal(made: Attempt) -> bool:
    refused_by_runtime = made.outcome in (Outcome.LOAD, Outcome.RUN)
    return made.exporter == OURS and (refused_by_runtime or is_internal_error(made.error))


def is_internal_error(error: BaseException | None) -> bool:
    """Return whether `to_onnx` raised an error that it does not document, or reports a defect of its own."""
    return isinstance(error, InternalError) or not (error is None or isinstance(error, ToOnnxError))
