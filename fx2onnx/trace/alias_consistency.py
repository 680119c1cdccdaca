"""What makes a call of the same operators something else at another size: memory, numbers, errors that are caught."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from .events import OpEvent, Ref, TensorMeta, Trace, unflatten_arguments
from .path_decisions import BRANCH
from .refusal import ConstantDependsOnSize, NoFallback, TraceUnsupported
from .source_location import line_in
from .tracer import Tracer

GIVE_SIZES = (torch.ops.aten.sym_size.int, torch.ops.aten.sym_numel.default)  # which are known


class AliasConsistency:
    """Memory that results of several runs show, by the first result that showed it.

    Args:
        runs: how many there are.
    """

    def __init__(self, runs: int) -> None:
        self._first: list[dict[int, Ref]] = [{} for _ in range(runs)]
        self._of: dict[Ref, int] = {}
        self._unsure: set[int] = set()
        self._before: list[tuple[int, OpEvent, Sequence[OpEvent]]] | None = []  # calls before the first that writes

    def note(self, number: int, row: OpEvent, others: Sequence[OpEvent]) -> None:
        """Note which memory the results of the call of this number show in each run.

        Raises:
            NoFallback: it writes into memory that other results show at some sizes only, as a reshape, which is a view or a copy.
        """
        if self._before is not None:
            if not _may_write(row):
                self._before.append((number, row, others))
                return
            before, self._before = self._before, None
            for noted in before:
                self._note_results(*noted)
        if self._unsure and any(self._of.get(ref) in self._unsure for ref in _find_written(row)):
            raise NoFallback(f"{row.op} writes at {line_in(row.line)} into memory that it shares with another tensor only at some sizes")
        self._note_results(number, row, others)

    def _note_results(self, number: int, row: OpEvent, others: Sequence[OpEvent]) -> None:
        for part, made in enumerate(zip(row.made, *(other.made for other in others), strict=True)):
            if isinstance(made[0], TensorMeta):
                self._note(Ref("row", number, part), made)

    def _note(self, ref: Ref, made: Sequence[TensorMeta]) -> None:
        first = [known.setdefault(one.storage, ref) for known, one in zip(self._first, made, strict=True)]
        self._of[ref] = made[0].storage
        if any(other != first[0] for other in first):
            self._unsure.update(self._of[one] for one in first)


def _find_written(row: OpEvent) -> Iterator[Ref]:
    """The tensors that a call writes."""
    if not _may_write(row):
        return
    args, kwargs = unflatten_arguments(row.leaves, row.spec)
    for position, declared in enumerate(row.op._schema.arguments):
        given = args[position] if position < len(args) else kwargs.get(declared.name)
        if declared.alias_info is not None and declared.alias_info.is_write and isinstance(given, Ref):
            yield given


def _may_write(row: OpEvent) -> bool:
    return isinstance(row.op, torch._ops.OpOverload) and row.op._schema.is_mutable


def check_no_number(row: OpEvent, result: Any) -> None:
    """Refuse an operator that gives Python a number, of which nothing is known but what it is in each run.

    Raises:
        TraceUnsupported: this one does.
    """
    if isinstance(result, (bool, int, float)) and row.op is not BRANCH and row.op not in GIVE_SIZES:
        raise TraceUnsupported(f"{row.op} returns a Python number at {line_in(row.line)}, which is not supported")


def check_end(tracer: Tracer, trace: Trace, others: Sequence[Trace], moves: bool) -> None:
    """Refuse a run that ended well since the model caught an error of torch's, or that writes into other inputs at other sizes.

    Raises:
        NoFallback: sizes move, which decide both. ConstantDependsOnSize: they decide values that were taken for settled.
    """
    if any(other.answers != trace.answers for other in others):
        raise ConstantDependsOnSize("the values that the model reads from its weights depend on the sizes")
    if any(other.changed != trace.changed for other in others):
        raise NoFallback("the inputs that the model writes into depend on the sizes")
    if tracer.failed and moves:
        raise NoFallback(f"the model catches an error of PyTorch, which may not occur at other sizes: {tracer.failed}")
