"""Check whether a run at other sizes equals the symbolic run under substitution."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy
import torch

from ..ir.expressions import Size, evaluate_at
from ..structure.repeated_blocks import Repeated
from ..trace.alias_consistency import AliasConsistency
from ..trace.events import OpEvent, Ref, TensorMeta, Trace, alike, equal
from ..trace.refusal import NoFallback
from ..trace.size_domain import SizeAssignment

Known = Mapping[Ref, tuple[Size, ...]]
aten = torch.ops.aten
VIEWS = (aten.expand.default, aten.view.default, aten.reshape.default, aten.slice.Tensor)  # which return their input if its shape is theirs


def is_at(trace: Trace, known: Known, other: Trace, setting: SizeAssignment) -> bool:
    """Return whether another run equals this one at its sizes; False if the traces alone cannot decide it.

    Args:
        trace: that of the symbolic run.
        known: the sizes of tensors in that run.
        setting: the sizes of the other run.
    """
    if trace.exception or other.exception or trace.loops or len(trace.rows) != len(other.rows):
        return False
    if (trace.changed, trace.answers, trace.spec) != (other.changed, other.answers, other.spec):
        return False
    at = AtSizes(setting)
    same = at.are(trace.returned, other.returned) and _constants_agree(trace.constants, other.constants)
    return same and at.have_same_rows(trace.rows, other.rows, known) and _share_memory_alike(trace, other)


def is_at_without_views(trace: Trace, known: Known, other: Trace, setting: SizeAssignment) -> bool:
    """Return whether another run equals this one at its sizes, except for views of this one that return their input at these sizes.

    Libraries leave out such a view by a test: `if position_ids.shape[0] != batch: position_ids = position_ids.expand(batch, -1)`.
    """
    skipped = _find_skipped_views(trace, known, other, AtSizes(setting))
    if not skipped:
        return False
    places = _Renumbering(trace, skipped)
    return is_at(places.renumber(trace), {places.find(ref): sizes for ref, sizes in known.items()}, other, setting)


def _find_skipped_views(trace: Trace, known: Known, other: Trace, at: AtSizes) -> list[int]:
    """Return the numbers of the calls that only this run makes; empty if one of them is not a view that returns its input."""
    skipped: list[int] = []
    for number, row in enumerate(trace.rows):
        place = number - len(skipped)
        if place < len(other.rows) and row.kind == other.rows[place].kind:
            continue
        if row.op not in VIEWS or not at.returns_input(number, row, known):
            return []
        skipped.append(number)
    return skipped


class _Renumbering:
    """The references of a trace without some of its calls, each of which returns its input."""

    def __init__(self, trace: Trace, skipped: Sequence[int]) -> None:
        self._rows, self._skipped = trace.rows, skipped

    def find(self, ref: Any) -> Any:
        """Return the reference to the same tensor; return other values unchanged."""
        if not isinstance(ref, Ref) or ref.kind != "row":
            return ref
        number = int(ref.key)
        if number in self._skipped:
            return self.find(self._rows[number].leaves[0])
        return ref._replace(key=self._place(number))

    def _place(self, number: int) -> int:
        return number - bisect_left(self._skipped, number)

    def renumber(self, trace: Trace) -> Trace:
        """Return the trace without these calls."""
        kept = [row for number, row in enumerate(trace.rows) if number not in self._skipped]
        rows = [OpEvent(row.op, list(map(self.find, row.leaves)), row.spec, row.made, row.many, row.line) for row in kept]
        answers = [(self._place(place), value) for place, value in trace.answers]
        return replace(trace, rows=rows, returned=list(map(self.find, trace.returned)), answers=answers)


def _constants_agree(mine: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    return len(mine) == len(others) and all(one is other or equal(one, other) for one, other in zip(mine, others, strict=True))


def _share_memory_alike(trace: Trace, other: Trace) -> bool:
    memory = AliasConsistency(2)
    try:
        for number, (row, theirs) in enumerate(zip(trace.rows, other.rows, strict=True)):
            memory.note(number, row, [theirs])
    except NoFallback:
        return False
    return True


class AtSizes:
    """Expressions evaluated at one setting."""

    def __init__(self, setting: SizeAssignment) -> None:
        self._setting = setting
        self._known: dict[sympy.Basic, Any] = {}

    def _number(self, size: Any) -> Any:
        if not isinstance(size, sympy.Basic):
            return size
        if size not in self._known:
            self._known[size] = evaluate_at(size, self._setting)
        return self._known[size]

    def are(self, mine: Sequence[Any], others: Sequence[Any]) -> bool:
        """Return whether arguments or results equal those of the other run."""
        return len(mine) == len(others) and all(map(self._is, mine, others))

    def _is(self, one: Any, other: Any) -> bool:
        if isinstance(one, sympy.Basic):
            return bool(self._number(one) == other)
        return not isinstance(one, Trace) and (one == other if isinstance(one, Ref) else alike(one, other))

    def returns_input(self, number: int, row: OpEvent, known: Known) -> bool:
        """Return whether the result of a view has the sizes of its input."""
        taken, returned = known.get(row.leaves[0]), known.get(Ref("row", number))
        return taken is not None and returned is not None and list(map(self._number, taken)) == list(map(self._number, returned))

    def have_same_rows(self, mine: Sequence[OpEvent], others: Sequence[OpEvent], known: Known) -> bool:
        """Return whether all calls equal those of the other run."""
        return all(self._is_row(number, a, b, known) for number, (a, b) in enumerate(zip(mine, others, strict=True)))

    def _is_row(self, number: int, row: OpEvent, other: OpEvent, known: Known) -> bool:
        if isinstance(row, Repeated) and row.repeats_as(other):  # the call that they repeat was compared
            return True
        return row.kind == other.kind and self.are(row.leaves, other.leaves) and self._made_alike(number, row, other, known)

    def _made_alike(self, number: int, row: OpEvent, other: OpEvent, known: Known) -> bool:
        for part, (one, found) in enumerate(zip(row.made, other.made, strict=True)):
            if not isinstance(one, TensorMeta) or not isinstance(found, TensorMeta):
                if not alike(one, found):
                    return False
                continue
            sizes = known[Ref("row", number, part)]
            if one.dtype != found.dtype or len(sizes) != len(found.shape) or any(map(self._differs, sizes, found.shape)):
                return False
        return True

    def _differs(self, size: Size, found: int) -> bool:
        return bool(self._number(size) != found)
