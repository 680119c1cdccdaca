"""Why a module cannot be captured by running it."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import CaptureError, FrozenDimension
from .source_location import outside


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
    """A further run can do it, with what this says."""


class DataDependentScalar(Restart):
    """Python reads a number that values decide; what it does with that may be a test, which a further run can note.

    Attributes:
        names: of the module that reads it.
    """

    def __init__(self, told: str) -> None:
        super().__init__(told)
        frame = outside(sys._getframe(1))
        self.names: dict[str, Any] | None = None if frame is None else frame.f_globals


class SizeRead(Restart):
    """An integer that is read from a tensor is used as a size; a further run can read a size there.

    Attributes:
        place: where it is read.
    """

    place: Any = None


class DataDependentWhile(Restart):
    """A `while` tests a value; a further run can roll it up.

    Attributes:
        place: where it is tested.
    """

    place: Any


class TestInLoop(Restart):
    """An iteration of a loop that is rolled tests a value; runs can show which answers an iteration may give.

    Attributes:
        place: of the loop.
    """

    __test__ = False  # to pytest
    place: Any


class ConstantDependsOnSize(TraceUnsupported):
    """What was taken for the same in every call is not: a further run takes nothing for it."""


class SymIntConcretized(TraceUnsupported):
    """Python's `int` or `float` makes a plain number of a moving size; a further run can keep its expression.

    Attributes:
        names: of the module that calls it.
    """

    names: dict[str, Any]


class SymBoolConcretized(TraceUnsupported):
    """A function of torch wants a plain bool, and is given a comparison of sizes; a further run can decide it at once."""


class CallSequenceDiverged(TraceUnsupported):
    """Runs differ by a call, which may be one that torch leaves out at some sizes."""


class AliasDiverged(CallSequenceDiverged):
    """The model writes into a copy, or into what it was made of; where it is none, at one row say, torch.export does not see the write."""


class ConstantDiverged(TraceUnsupported):
    """An operator takes numbers that no size explains; torch.export may know what they follow, or note one of them."""


class NeedsRealValues(TraceUnsupported):
    """Runs multiply much; made without values, which is cheap, they do not show enough."""
