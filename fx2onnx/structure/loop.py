"""What is known of one loop of a run."""

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
        place: where it begins; `is_while`: whether the test of a value ends it.
        schedule: the shapes of the iterations that are kept; all further ones have that of the last.
        begin: where it begins. `starts`: where the calls of those iterations begin. `end`: where what follows the loop begins.
        turns: how many iterations it has, once it is over; `size`: the same, a symbol in the run that has symbols.
        symbol: of the number of the iteration. `number`: of the place, among those of the run.
        repeats: the same loop in an earlier iteration of the one around it.
        states: the tensors that variables held at the start of each iteration that is kept; `last`: after the loop.
        bound: the variables that there were before it. `lengths_of_lists`: how long lists were.
        grown: what each list got that it has filled, one value in each iteration.
        listed: such values that a call reads, by the iterations that are kept.
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
    asked: dict[Ref, bool] = field(default_factory=dict)
    lengths: dict[Shape, int] = field(default_factory=dict)
    states: list[dict[str, Ref]] = field(default_factory=list)
    last: dict[str, Ref] = field(default_factory=dict)
    bound: frozenset[str] = frozenset()
    is_cut: bool = False  # whether it is not left early, as it may be
    lengths_of_lists: dict[str, int] = field(default_factory=dict)
    grown: list[list[Ref]] = field(default_factory=list)
    listed: list[dict[int, Ref]] = field(default_factory=list)

    @property
    def kept_count(self) -> int:
        """How many iterations are kept."""
        return len(self.schedule)

    @property
    def may_end_early(self) -> bool:
        """Whether a value may end it."""
        return self.is_while or self.schedule[-1].leaves
