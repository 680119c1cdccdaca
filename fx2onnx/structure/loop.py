"""The record of one loop of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..trace.events import Ref
from ..trace.source_location import CodeLocation
from .iteration_shapes import ALIKE, Shape

STACKED = ("every", "flipped")


@dataclass(eq=False)
class Loop:
    """One loop of a run.

    Attributes:
        place: the location where it begins.
        is_while: whether the test of a value ends it.
        schedule: the shapes of the kept iterations; all further ones have that of the last.
        begin: the number of its first call.
        starts: the first call of each kept iteration.
        end: the first call after the loop.
        turns: the number of iterations, after it has ended.
        size: the number of iterations, symbolic in a symbolic run.
        symbol: the symbol of the iteration number.
        number: the number of the location among those of the run.
        repeats: the same loop in an earlier iteration of the enclosing one.
        states: the tensors in variables at the start of each kept iteration.
        last: the tensors in variables after the loop.
        bound: the variables that existed before it.
        lengths_of_lists: the lengths of lists before it.
        grown: the values added to each list that it fills, one per iteration.
        listed: such values that a call reads, by kept iteration.
    """

    line: str
    place: CodeLocation
    is_while: bool = False
    schedule: tuple[Shape, ...] = ALIKE
    starts: list[int] = field(default_factory=list)
    begin: int = -1
    turn: int = -1
    end: int = -1
    turns: int | None = None
    size: Any = None
    symbol: Any = None
    number: int = -1
    repeats: Loop | None = None
    answers: list[bool] = field(default_factory=list)  # of this iteration
    tested: dict[Ref, bool] = field(default_factory=dict)
    lengths: dict[Shape, int] = field(default_factory=dict)
    states: list[dict[str, Ref]] = field(default_factory=list)
    last: dict[str, Ref] = field(default_factory=dict)
    bound: frozenset[str] = frozenset()
    is_cut: bool = False  # whether leaving it early is suppressed
    lengths_of_lists: dict[str, int] = field(default_factory=dict)
    grown: list[list[Ref]] = field(default_factory=list)
    listed: list[dict[int, Ref]] = field(default_factory=list)

    @property
    def kept_count(self) -> int:
        """The number of kept iterations."""
        return len(self.schedule)

    @property
    def may_end_early(self) -> bool:
        """Whether a value may end it."""
        return self.is_while or self.schedule[-1].leaves
