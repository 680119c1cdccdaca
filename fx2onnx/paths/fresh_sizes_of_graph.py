"""Give each data-dependent size or number in the graph of a run a symbol, bound by the call that returns it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch

from ..compat import trees as pytree
from ..compat.operators import OpOverload
from ..guards.decisions import is_implied
from ..ir.captured_program import SymbolicMeta
from ..ir.expressions import Size
from ..shapes.fresh_sizes import PropagatedSizes, propagate_sizes
from ..shapes.propagation import Sizes
from ..shapes.size_checks import SizeChecks
from ..trace.events import OpEvent, TensorMeta
from ..trace.fresh_symbols import BINDINGS, Origin, answers_before
from ..trace.refusal import NoFallback, TraceUnsupported
from ..trace.size_domain import SizeDomain
from ..trace.source_location import line_in

aten = torch.ops.aten
SQUEEZES = tuple(getattr(op, kind) for op in (aten.squeeze, aten.squeeze_) for kind in ("default", "dim", "dims"))


class DecidedSizes:
    """Names the data-dependent sizes and numbers of one graph, and computes the sizes that depend on them.

    Args:
        sizes: receives the value of each symbol in each run.
    """

    def __init__(self, axes: SizeDomain, sizes: SizeChecks) -> None:
        self._axes, self._sizes = axes, sizes
        self.binds = True  # whether a call may define a symbol
        self._rows: list[OpEvent] = []

    def pass_over(self, row: OpEvent) -> None:
        """Count a call that repeats an earlier one."""
        self._rows.append(row)

    def concern(self, row: OpEvent, node: torch.fx.Node, leaves: Sequence[Any]) -> bool:
        """Return whether a call has or returns a data-dependent size."""
        self._rows.append(row)
        if row.by_values:
            return row.op is not aten.item.default
        if not self._axes.fresh.origins or not isinstance(row.op, OpOverload):
            return False
        values = [part for given in node.all_input_nodes for part in pytree.tree_leaves(given.meta.get("val"))]
        sizes = [size for value in values if isinstance(value, SymbolicMeta) for size in value.sizes]
        return any(map(self._axes.fresh.among, (*sizes, *leaves)))

    def sizes_of(self, number: int, row: OpEvent, node: torch.fx.Node, others: Sequence[OpEvent]) -> Sizes:
        """Return the sizes of the results of a call: torch's, if they match the runs, or else a new symbol.

        Raises:
            NoFallback: If the number of axes of the result depends on values.
        """
        self._check_squeezed(row, node)
        propagated = propagate_sizes(node, self._axes)
        origin = Origin(answers_before(self._rows, number), number, row.op)
        new: dict[Any, sympy.Symbol] = {}
        results = enumerate(zip(row.made, *(other.made for other in others), strict=True))
        return [self._infer_result_sizes(origin._replace(part=part), row, node, runs, propagated, new) for part, runs in results]

    def _infer_result_sizes(
        self,
        origin: Origin,
        row: OpEvent,
        node: torch.fx.Node,
        runs: Sequence[Any],
        propagated: PropagatedSizes,
        new: dict[Any, sympy.Symbol],
    ) -> tuple[Size, ...] | None:
        """The sizes of one result. Axes that torch considers equal share one new symbol."""
        if not isinstance(runs[0], TensorMeta) or any(len(run.shape) != len(runs[0].shape) for run in runs):
            return None
        shape = propagated[origin.part] if origin.part < len(propagated) else None
        sizes: list[Size] = []
        for axis, numbers in enumerate(zip(*(run.shape for run in runs), strict=True)):
            size, theirs = shape[axis] if shape is not None else (None, None)
            size = size if size is not None else new.get(theirs)
            if size is None or not self._sizes.matches(size, numbers):
                size = new[theirs] = self._bound(origin._replace(axis=axis), row, node, numbers)
            if size in node.meta.get(BINDINGS, {}):
                self._axes.fresh.places[size][origin.part, axis] = None
            sizes.append(size)
        return tuple(sizes)

    def number(self, number: int, row: OpEvent, node: torch.fx.Node, values: Sequence[int]) -> Any:
        """Return the symbol of a number that a call reads from a tensor."""
        symbol = self._bound(Origin(answers_before(self._rows, number), number, row.op), row, node, values)
        return self._axes.environment.create_symintnode(symbol, hint=values[0])

    def _bound(self, origin: Origin, row: OpEvent, node: torch.fx.Node, numbers: Sequence[int]) -> sympy.Symbol:
        if not self.binds:
            raise TraceUnsupported(f"{row.op} returns a size at {line_in(row.line)} that depends on values, in a function of an operator")
        symbol = self._axes.fresh.of(origin, line_in(row.line))
        self._sizes.decided[symbol] = tuple(numbers)
        self._axes.environment.add_fresh(symbol, numbers[0])
        node.meta.setdefault(BINDINGS, {})[symbol] = (origin.part, origin.axis)
        return symbol

    def _check_squeezed(self, row: OpEvent, node: torch.fx.Node) -> None:
        """Refuse a `squeeze` that removes an axis for some values only, because exported values have a fixed rank."""
        if row.op not in SQUEEZES:
            return
        given: tuple[Any, ...] = (*node.args, None)
        sizes = given[0].meta["val"].sizes
        axes = range(len(sizes)) if given[1] is None else [given[1]] if isinstance(given[1], int) else given[1]
        for size in (sizes[axis] for axis in axes):
            if self._axes.fresh.among(size) and not is_implied(sympy.Ne(size, 1), self._axes.ranges_of(size), self._axes.conditions):
                raise NoFallback(f"squeeze removes an axis at {line_in(row.line)} only if its size, which depends on values, is 1")
