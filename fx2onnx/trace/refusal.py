"""The reasons why a module cannot be captured by traced runs."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import CaptureError, FrozenDimension
from .source_location import outside


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
    """A further run can succeed with the information in this error."""


class DataDependentScalar(Restart):
    """Python reads a data-dependent number. If it tests the number, a further run can record the test.

    Attributes:
        names: the globals of the module that reads it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        frame = outside(sys._getframe(1))
        self.names: dict[str, Any] | None = None if frame is None else frame.f_globals


class SizeRead(Restart):
    """An integer that is read from a tensor is used as a size. A further run can read it as a symbolic size.

    Attributes:
        place: the location of the read.
    """

    place: Any = None


class DataDependentWhile(Restart):
    """A `while` tests a value. A further run can roll it.

    Attributes:
        place: the location of the test.
    """

    place: Any


class TestInLoop(Restart):
    """An iteration of a rolled loop tests a value. Runs can show the possible outcomes of an iteration.

    Attributes:
        place: the location of the loop.
    """

    __test__ = False  # for pytest
    place: Any


class ConstantDependsOnSize(TraceUnsupported):
    """A value taken for a constant depends on a size. A further run treats no value as constant."""


class SymIntConcretized(TraceUnsupported):
    """`int` or `float` makes a Python number of a dynamic size. A further run can keep its expression.

    Attributes:
        names: the globals of the module that calls it.
    """

    names: dict[str, Any]


class SymBoolConcretized(TraceUnsupported):
    """A function of torch needs a bool, but receives a comparison of sizes. A further run can decide it immediately."""


class CallSequenceDiverged(TraceUnsupported):
    """Runs differ in a call, which torch may skip at some sizes."""


class AliasDiverged(CallSequenceDiverged):
    """The model writes into a copy or its source. torch.export misses the write at sizes where torch does not copy."""


class ConstantDiverged(TraceUnsupported):
    """An operator has numbers that no size explains. torch.export may have an expression or a guard for them."""


class NeedsRealValues(TraceUnsupported):
    """Runs need many multiplications, and runs without values do not show enough."""
