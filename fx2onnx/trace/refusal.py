"""The reasons why a module cannot be captured by traced runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import CaptureError, FrozenDimension
from .plan import Plan
from .source_location import line_of, outside


class TraceUnsupported(CaptureError):
    """Runs do not show what the exported model must do. The text is the reason with the line. torch.export may still succeed."""


class NoFallback(TraceUnsupported):
    """No exported model can be correct, but torch.export would not notice and return one that is silently wrong."""


class RangeBoundRaises(NoFallback):
    """The model raises at a requested end of a range, also in runs without values."""


class UnboundedGuardChain(NoFallback, FrozenDimension):
    """A loop tests a size in each iteration. torch.export would unroll the iterations of the example, and then fail."""


class TooManyPaths(TraceUnsupported):
    """Tests of values lead to too many paths. torch.export does not support such tests at all."""


class ListLengthFollowsSize(TraceUnsupported):
    """A tensor is created from a list whose length is a dynamic size. torch.export would specialise that size."""


class AlwaysRaises(TraceUnsupported):
    """The model raises at all sizes tried; `told` is the error."""

    def __init__(self, message: str) -> None:
        super().__init__(f"the model raises an error at all sizes: {message}")
        self.told = message


class Restart(TraceUnsupported):
    """A further run can succeed with a refined plan.

    Attributes:
        refine: returns the refined plan; the same plan if it has this refinement already.
    """

    def __init__(self, why: str, refine: Callable[[Plan], Plan]) -> None:
        super().__init__(why)
        self.refine = refine


def restart(tracer: Any, why: str, refine: Callable[[Plan], Plan]) -> Exception:
    """Return the error that restarts a run with a refined plan, or an earlier error of the run."""
    found: Exception = tracer.refuse(Restart(f"{why} at {line_of(sys._getframe(1))}", refine))
    return found


def restart_keeping_scalars(tracer: Any, why: str) -> Exception:
    """Return the error that restarts a run which reads a number, with a plan that keeps the numbers of that module symbolic."""
    frame = outside(sys._getframe(1))
    return restart(tracer, why, partial(Plan.keep_scalars, module=None if frame is None else frame.f_globals))


class TestInLoop(TraceUnsupported):
    """An iteration of a rolled loop tests a value. Runs can show the possible outcomes of an iteration.

    Attributes:
        place: the location of the loop.
    """

    __test__ = False  # for pytest
    place: Any


class ConstantDependsOnSize(TraceUnsupported):
    """A value taken for a constant depends on a size. A further run treats no value as constant."""


class CallSequenceDiverged(TraceUnsupported):
    """Runs differ in a call, which torch may skip at some sizes."""


class AliasDiverged(CallSequenceDiverged):
    """The model writes into a copy or its source. torch.export misses the write at sizes where torch does not copy."""


class ConstantDiverged(TraceUnsupported):
    """An operator has numbers that no size explains. torch.export may have an expression or a guard for them."""


class NeedsRealValues(TraceUnsupported):
    """Runs need many multiplications, and runs without values do not show enough."""
