"""Why a module cannot be captured by running it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import CaptureError, FrozenDimension
from .plan import Plan
from .source_location import line_of, outside


class TraceUnsupported(CaptureError):
    """Runs do not show what a file would have to do; the text is the reason, with the line. torch.export may know."""


class NoFallback(TraceUnsupported):
    """No file can be right, and torch.export does not see it: it would give one that is silently wrong."""


class RangeBoundRaises(NoFallback):
    """The model raises at an end that was asked for; runs without values have shown it as well."""


class UnboundedGuardChain(NoFallback, FrozenDimension):
    """A loop tests a size in each turn; torch.export would follow the turns of the example, and then be refused for that."""


class TooManyPaths(TraceUnsupported):
    """Tests of values lead to more paths than a file has; torch.export decides none of them."""


class ListLengthFollowsSize(TraceUnsupported):
    """A tensor is made of a list that is as long as a moving size; torch.export takes that size for a constant."""


class AlwaysRaises(TraceUnsupported):
    """The model raises at all sizes that were tried; `told` is what."""

    def __init__(self, told: str) -> None:
        super().__init__(f"the model raises an error at all sizes: {told}")
        self.told = told


class Restart(TraceUnsupported):
    """A further run can do it, with a refined plan.

    Attributes:
        refine: returns the plan of that run; the same plan where it knows already what this error is about.
    """

    def __init__(self, why: str, refine: Callable[[Plan], Plan]) -> None:
        super().__init__(why)
        self.refine = refine


def restart(tracer: Any, why: str, refine: Callable[[Plan], Plan]) -> Exception:
    """Return the error of a run that a further one with a refined plan may not have; an earlier error of the run comes first."""
    found: Exception = tracer.refuse(Restart(f"{why} at {line_of(sys._getframe(1))}", refine))
    return found


def restart_keeping_scalars(tracer: Any, why: str) -> Exception:
    """Return the error of a run that reads a number; a further one keeps those that the model's code around this call reads."""
    frame = outside(sys._getframe(1))
    return restart(tracer, why, partial(Plan.keep_scalars, module=None if frame is None else frame.f_globals))


class TestInLoop(TraceUnsupported):
    """An iteration of a loop that is rolled tests a value; runs can show which answers an iteration may give.

    Attributes:
        place: of the loop.
    """

    __test__ = False  # to pytest
    place: Any


class ConstantDependsOnSize(TraceUnsupported):
    """What was taken for the same in every call is not: a further run takes nothing for it."""


class CallSequenceDiverged(TraceUnsupported):
    """Runs differ by a call, which may be one that torch leaves out at some sizes."""


class AliasDiverged(CallSequenceDiverged):
    """The model writes into a copy, or into what it was made of; where it is none, at one row say, torch.export does not see the write."""


class ConstantDiverged(TraceUnsupported):
    """An operator takes numbers that no size explains; torch.export may know what they follow, or note one of them."""


class NeedsRealValues(TraceUnsupported):
    """Runs multiply much; made without values, which is cheap, they do not show enough."""
