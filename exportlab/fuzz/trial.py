"""One program by one exporter, in a process of its own, beside eager."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..defaults import GiB
from ..exporters import Exporter
from ..isolation import apart
from ..outcomes import Outcome
from ..said import names_cause
from ..verification.comparison import Attempt, attempt, reason
from .program import SHAPES, Program

SECONDS, BYTES = 60.0, 8 * GiB  # that one program may take in one exporter


@dataclass(frozen=True)
class Trial:
    """What came of one program in one exporter: the outcome, what was seen, and whether a warning named the cause."""

    exporter: str
    outcome: Outcome
    seen: str = ""
    warned: bool = False

    @property
    def silent(self) -> bool:
        """Whether it is wrong without a word."""
        return self.outcome.silent and not self.warned

    @property
    def found(self) -> bool:
        """Whether it is a defect: wrong without a word, or a process that died."""
        return self.silent or self.outcome is Outcome.CRASH


def runs(program: Program) -> bool:
    """Return whether eager accepts the program at every size."""
    module = program.module()
    try:
        with torch.inference_mode():
            return all(module(*sample.args).shape[1:] == (4,) for sample in program.samples())
    except (RuntimeError, IndexError, ValueError):  # as eager refuses a size
        return False


def tried(program: Program, exporter: Exporter) -> Trial:
    """Export the program, and verify it at all of its sizes, in a child process under limits."""
    ended = apart(lambda: _trial(program, exporter), seconds=SECONDS, memory=BYTES)
    if ended.failure is not None:
        return Trial(exporter.name, ended.failure.outcome, ended.failure.error)
    assert isinstance(ended.value, Trial)
    return ended.value


def _trial(program: Program, exporter: Exporter) -> Trial:
    made = attempt(exporter, program.module(), program.samples(), SHAPES)
    return Trial(made.exporter, made.outcome, _seen(made), any(map(names_cause, made.said)))


def _seen(made: Attempt) -> str:
    if made.error is not None:
        return reason(made.error)
    failed = made.report.failed if made.report else ()
    return next((f"{c.name} ({c.given}): {c.detail}" for c in failed if c.outcome == made.outcome), "")
