"""Sizes of results: from the operator, compared with all runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..ir.expressions import Size
from ..shapes.propagation import ShapePropagation, Sizes, has_symbols, sizes_by_rule
from ..shapes.size_checks import SizeChecks
from ..structure.stacked_outputs import reads_filled_list, sizes_of_list
from ..trace.events import OpEvent, Ref
from ..trace.refusal import ConstantDiverged, TraceUnsupported
from ..trace.source_location import line_in


class ResultSizes:
    """Computes the sizes of results.

    Args:
        known: the sizes of all earlier tensors.
    """

    def __init__(self, sizes: SizeChecks, of_operators: ShapePropagation, known: dict[Ref, tuple[Size, ...]]) -> None:
        self._sizes, self.shape_propagation, self._known = sizes, of_operators, known

    def infer_call_sizes(self, row: OpEvent, node: torch.fx.Node, leaves: Sequence[Any]) -> Sizes:
        """Return the sizes of the results of a call; nothing where all sizes among its arguments are constants, or none are known."""
        if row.sizes is not None or self._is_constant(row, leaves):
            return row.sizes or []
        if reads_filled_list(node):
            return [sizes_of_list(node, row.line)]
        found = sizes_by_rule(node) or self.shape_propagation.of(node)
        return [None if sizes is None else tuple(map(self._sizes.simplify, sizes)) for sizes in found]

    def _is_constant(self, row: OpEvent, leaves: Sequence[Any]) -> bool:
        """Whether all sizes among the arguments are constants."""
        return not has_symbols(leaves) and not any(
            not isinstance(size, int) for leaf in row.leaves if isinstance(leaf, Ref) for size in self._known.get(leaf, (None,))
        )

    def check_result_sizes(self, row: OpEvent, shapes: Sequence[tuple[int, ...]], sizes: tuple[Size, ...] | None) -> tuple[Size, ...]:
        """Return the sizes of one result, compared with those of all runs.

        Args:
            shapes: for each axis, its size in each run.
            sizes: those that the operator gives.

        Raises:
            ConstantDiverged: If they differ from those of a run.
            TraceUnsupported: If the operator does not give them, and no earlier tensor has them.
        """
        if sizes is None:
            return self._find_sizes(row, shapes)
        sizes = tuple(map(self._sizes.settle, sizes, shapes))
        if len(sizes) != len(shapes) or not all(map(self._sizes.matches, sizes, shapes)):
            raise ConstantDiverged(
                f"{row.op} returns shapes {list(zip(*shapes, strict=True))} at {line_in(row.line)}, which contradict its fake kernel"
            )
        return sizes

    def _find_sizes(self, row: OpEvent, shapes: Sequence[tuple[int, ...]]) -> tuple[Size, ...]:
        """The sizes of the result of an operator without a shape function: constants, and sizes of earlier tensors."""
        found = [self._sizes.find(values) for values in shapes]
        if None in found:
            raise TraceUnsupported(
                f"the sizes that {row.op} returns at {line_in(row.line)} are unknown, because it has no fake kernel. "
                "Register one with torch.library.register_fake"
            )
        return tuple(size for size in found if size is not None)

    def find_number(self, row: OpEvent, values: tuple[int, ...]) -> Size:
        """Return a number among the arguments of a call that had these values in the runs.

        Raises:
            ConstantDiverged: If they are neither a constant nor the size of an earlier tensor.
        """
        if (found := self._sizes.find(values)) is None:
            raise ConstantDiverged(f"{row.op} takes {values} at {line_in(row.line)}, which the input sizes do not explain")
        return found
