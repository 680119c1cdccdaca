"""Sizes of results: from the operator, checked in all runs; inferred from the runs only if there is no rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch
from torch.utils import _pytree as pytree

from ..ir.captured_program import SymbolicMeta
from ..ir.expressions import Size
from ..shapes.propagation import ShapePropagation, Sizes, has_symbols, is_windowed, sizes_by_rule
from ..shapes.size_inference import NoSizeExpression, SizeInference, Underdetermined
from ..structure.stacked_outputs import sizes_of_list
from ..trace.events import OpEvent, Ref
from ..trace.refusal import ConstantDiverged, TraceUnsupported
from ..trace.source_location import line_in


class ResultSizes:
    """Computes the sizes of results.

    Args:
        known: the sizes of all earlier tensors.
    """

    def __init__(self, sizes: SizeInference, of_operators: ShapePropagation, known: dict[Ref, tuple[Size, ...]]) -> None:
        self._sizes, self.shape_propagation, self._known = sizes, of_operators, known

    def infer_call_sizes(self, row: OpEvent, node: torch.fx.Node, leaves: Sequence[Any], has_loops: bool) -> tuple[Sizes, bool]:
        """Return the operator's sizes of the results (empty to infer them), and whether inference from the runs is unsafe."""
        if row.sizes is not None or self._is_constant(row, leaves):
            return row.sizes or [], False
        if not has_loops and (found := sizes_by_rule(node)) is not None:
            return found if is_windowed(row.op) else [tuple(map(self._sizes.simplest, shape)) for shape in found], False
        if (special := self._has_degenerate_sizes(node, leaves)) and (listed := sizes_of_list(node)) is not None:
            return ([listed], True) if any(map(self._sizes.is_degenerate, listed)) else ([], False)
        return self.shape_propagation.of(node), special

    def _is_constant(self, row: OpEvent, leaves: Sequence[Any]) -> bool:
        """Whether all sizes among the arguments are constants."""
        return not has_symbols(leaves) and not any(
            not isinstance(size, int) for leaf in row.leaves if isinstance(leaf, Ref) for size in self._known.get(leaf, (None,))
        )

    def _has_degenerate_sizes(self, node: torch.fx.Node, leaves: Sequence[Any]) -> bool:
        values = [part for given in node.all_input_nodes for part in pytree.tree_leaves(given.meta.get("val"))]
        sizes = [size for value in values if isinstance(value, SymbolicMeta) for size in value.sizes]
        symbolic = [leaf for leaf in leaves if isinstance(leaf, sympy.Basic) and leaf.is_integer]
        return any(self._sizes.is_degenerate(size) for size in (*sizes, *symbolic))

    def infer_result_sizes(
        self, row: OpEvent, node: torch.fx.Node, shapes: Sequence[tuple[int, ...]], propagated: Sizes, part: int, special: bool
    ) -> tuple[Size, ...]:
        """Return the sizes of one result.

        Args:
            shapes: the size of each axis in the runs.
            propagated: the operator's sizes of all results.
            special: whether inference from the runs is unsafe.

        Raises:
            TraceUnsupported: If the sizes are unknown.
            Underdetermined: If further runs are needed.
        """
        sizes = self._match_propagated_sizes(shapes, propagated, part)
        if sizes is None and special:
            raise TraceUnsupported(
                f"{row.op} takes a size at {line_in(row.line)} that equals another size in all runs, and its result size is unknown"
            )
        if sizes is None:
            try:
                by_axis = dict(enumerate((propagated[part] if part < len(propagated) else None) or ()))
                return tuple(self._infer_axis_size(row, found, by_axis.get(axis)) for axis, found in enumerate(shapes))
            except (TraceUnsupported, Underdetermined):
                sizes = self._match_propagated_sizes(shapes, self.shape_propagation.of(node), part)
                if sizes is None:
                    raise
        return sizes

    def _match_propagated_sizes(self, shapes: Sequence[tuple[int, ...]], propagated: Sizes, part: int) -> tuple[Size, ...] | None:
        """The operator's sizes of a result, if they match the runs."""
        sizes = propagated[part] if part < len(propagated) else None
        if sizes is None or len(sizes) != len(shapes):
            return None
        return sizes if all(self._sizes.give(size, values) for size, values in zip(sizes, shapes, strict=True)) else None

    def _infer_axis_size(self, row: OpEvent, values: tuple[int, ...], propagated: Size | None) -> Size:
        """The operator's size if it is symbolic and matches all runs; otherwise the inferred size."""
        return propagated if isinstance(propagated, sympy.Basic) and self._sizes.give(propagated, values) else self.size(row, values)

    def size(self, row: OpEvent, values: tuple[int, ...]) -> Size:
        """Return the expression for these integers, one for each run.

        Raises:
            ConstantDiverged: If no expression matches.
            Underdetermined: If further runs are needed.
        """
        try:
            return self._sizes.of(values)
        except NoSizeExpression as error:
            raise ConstantDiverged(
                f"{row.op} takes or returns {values} at {line_in(row.line)}, which the input sizes do not explain"
            ) from error
