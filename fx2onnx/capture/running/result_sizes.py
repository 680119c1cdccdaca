"""Sizes of results: from the operator, checked against all runs; interpolated from the runs only where no operator rule exists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch
from torch.utils import _pytree as pytree

from ...build.values import Size
from .explain import Ambiguous, Explanations, Unexplained
from .lines import line_in
from .loops.lists import sizes_of_list
from .notes import Ref, Row
from .operator_sizes import OperatorSizes, Sizes, has_symbols, sizes_by_rule, steps
from .program import Described
from .refusal import CannotRun, NumbersMove


class ResultSizes:
    """Works out the sizes of results.

    Args:
        known: the sizes of all tensors before.
    """

    def __init__(self, sizes: Explanations, of_operators: OperatorSizes, known: dict[Ref, tuple[Size, ...]]) -> None:
        self._sizes, self.of_operators, self._known = sizes, of_operators, known

    def of_call(self, row: Row, node: torch.fx.Node, leaves: Sequence[Any], has_loops: bool) -> tuple[Sizes, bool]:
        """Return the sizes of the results as the operator gives them, none where the runs tell; and whether the runs alone do not."""
        if row.sizes is not None or self._is_constant(row, leaves):
            return row.sizes or [], False
        if not has_loops and (found := sizes_by_rule(node)) is not None:
            return found if steps(row.op) else [tuple(map(self._sizes.simplest, shape)) for shape in found], False
        if special := self._takes_special_sizes(node, leaves):
            if (listed := sizes_of_list(node)) is not None:
                return ([listed], True) if any(map(self._sizes.is_special, listed)) else ([], False)
        elif not steps(row.op):
            return [], False
        return self.of_operators.of(node), special

    def _is_constant(self, row: Row, leaves: Sequence[Any]) -> bool:
        """Whether all sizes among the arguments are constants."""
        return not has_symbols(leaves) and not any(
            not isinstance(size, int) for leaf in row.leaves if isinstance(leaf, Ref) for size in self._known.get(leaf, (None,))
        )

    def _takes_special_sizes(self, node: torch.fx.Node, leaves: Sequence[Any]) -> bool:
        values = [part for given in node.all_input_nodes for part in pytree.tree_leaves(given.meta.get("val"))]
        sizes = [size for value in values if isinstance(value, Described) for size in value.sizes]
        symbolic = [leaf for leaf in leaves if isinstance(leaf, sympy.Basic) and leaf.is_integer]
        return any(self._sizes.is_special(size) for size in (*sizes, *symbolic))

    def of_result(
        self, row: Row, node: torch.fx.Node, shapes: Sequence[tuple[int, ...]], told: Sizes, part: int, special: bool
    ) -> tuple[Size, ...]:
        """Return the sizes of one result.

        Args:
            shapes: what each axis has in the runs.
            told: the sizes of all results as the operator gives them.
            special: whether the runs alone do not tell.

        Raises:
            CannotRun: nothing tells them. Ambiguous: further runs would.
        """
        sizes = self._as_told(shapes, told, part)
        if sizes is None and special:
            raise CannotRun(
                f"{row.op} takes a size at {line_in(row.line)} that equals another size in all runs, and its result size is unknown"
            )
        if sizes is None:
            try:
                by_axis = dict(enumerate((told[part] if part < len(told) else None) or ()))
                return tuple(self._told_or_seen(row, found, by_axis.get(axis)) for axis, found in enumerate(shapes))
            except (CannotRun, Ambiguous):
                sizes = self._as_told(shapes, self.of_operators.of(node), part)
                if sizes is None:
                    raise
        return sizes

    def _as_told(self, shapes: Sequence[tuple[int, ...]], told: Sizes, part: int) -> tuple[Size, ...] | None:
        """The sizes of a result that torch works out, where they give what the runs gave."""
        sizes = told[part] if part < len(told) else None
        if sizes is None or len(sizes) != len(shapes):
            return None
        return sizes if all(self._sizes.give(size, values) for size, values in zip(sizes, shapes, strict=True)) else None

    def _told_or_seen(self, row: Row, values: tuple[int, ...], told: Size | None) -> Size:
        """The size that torch computed, if it is symbolic and matches all runs; otherwise the interpolated size."""
        return told if isinstance(told, sympy.Basic) and self._sizes.give(told, values) else self.size(row, values)

    def size(self, row: Row, values: tuple[int, ...]) -> Size:
        """Return the expression that gives these integers, one for each run.

        Raises:
            NumbersMove: no expression fits. Ambiguous: more runs are needed.
        """
        try:
            return self._sizes.of(values)
        except Unexplained as error:
            raise NumbersMove(f"{row.op} takes or returns {values} at {line_in(row.line)}, which the input sizes do not explain") from error
