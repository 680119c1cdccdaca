"""Check what may differ although the operators are equal: shared memory, Python numbers and caught errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ..compat.operators import OpOverload
from .events import OpEvent, Ref, TensorMeta, Trace, unflatten_arguments
from .path_decisions import BRANCH
from .refusal import ConstantDependsOnSize, NoFallback, TraceUnsupported
from .source_location import line_in
from .tracer import Tracer

SIZE_READS = (torch.ops.aten.sym_size.int, torch.ops.aten.sym_numel.default)  # their numbers are known as expressions


class AliasConsistency:
    """Finds results that share memory in some runs but not in all.

    Args:
        runs: the number of runs.
    """

    def __init__(self, runs: int) -> None:
        self._first: list[dict[int, Ref]] = [{} for _ in range(runs)]
        self._of: dict[Ref, int] = {}
        self._unsure: set[int] = set()
        self._before: list[tuple[int, OpEvent, Sequence[OpEvent]]] | None = []  # calls before the first write

    def note(self, number: int, row: OpEvent, others: Sequence[OpEvent]) -> None:
        """Record the memory of each result of call `number` in all runs.

        Raises:
            NoFallback: If the call writes into memory that it shares with another tensor only at some sizes, as after a `reshape`.
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
        for part, results in enumerate(zip(row.made, *(other.made for other in others), strict=True)):
            if isinstance(results[0], TensorMeta):
                self._note(Ref("row", number, part), results)

    def _note(self, ref: Ref, results: Sequence[TensorMeta]) -> None:
        first = [known.setdefault(one.storage, ref) for known, one in zip(self._first, results, strict=True)]
        self._of[ref] = results[0].storage
        if any(other != first[0] for other in first):
            self._unsure.update(self._of[one] for one in first)


def _find_written(row: OpEvent) -> Iterator[Ref]:
    """Yield the tensors that a call writes into."""
    if not _may_write(row):
        return
    args, kwargs = unflatten_arguments(row.leaves, row.spec)
    for position, declared in enumerate(row.op._schema.arguments):
        given = args[position] if position < len(args) else kwargs.get(declared.name)
        if declared.alias_info is not None and declared.alias_info.is_write and isinstance(given, Ref):
            yield given


def _may_write(row: OpEvent) -> bool:
    return isinstance(row.op, OpOverload) and row.op._schema.is_mutable


def check_no_number(row: OpEvent, result: Any) -> None:
    """Refuse an operator that returns a Python number, because no expression is known for it.

    Raises:
        TraceUnsupported: If the result is a number.
    """
    if isinstance(result, (bool, int, float)) and row.op is not BRANCH and row.op not in SIZE_READS:
        raise TraceUnsupported(f"{row.op} returns a Python number at {line_in(row.line)}, which is not supported")


def check_end(tracer: Tracer, trace: Trace, others: Sequence[Trace], moves: bool) -> None:
    """Refuse runs that differ in constants read or inputs written, or in which the model catches an error of PyTorch.

    Raises:
        ConstantDependsOnSize: If constants that the model reads depend on the sizes.
        NoFallback: If the inputs written do, or if the model catches an error and a dimension is dynamic.
    """
    if any(other.answers != trace.answers for other in others):
        raise ConstantDependsOnSize("the values that the model reads from its weights depend on the sizes")
    if any(other.changed != trace.changed for other in others):
        raise NoFallback("the inputs that the model writes into depend on the sizes")
    if tracer.failed and moves:
        raise NoFallback(f"the model catches an error of PyTorch, which may not occur at other sizes: {tracer.failed}")
