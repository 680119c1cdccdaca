"""Propagate sizes through calls with data-dependent sizes, with torch's unbacked symbols."""

from __future__ import annotations

from functools import partial
from typing import Any

import sympy
import torch

from ..compat import trees as pytree
from ..compat.dispatch import DisableTorchFunction, enable_python_dispatcher
from ..compat.fake_tensors import FakeTensorMode
from ..guards.decisions import is_implied, or_is_small
from ..ir.captured_program import SymbolicMeta
from ..ir.expressions import Size, sizes_of
from ..trace.effects import INDEXING
from ..trace.size_domain import SizeDomain, environment_of

NUMBER = 13  # of the first symbol if torch needs a value to decide; a size that models do not treat specially
aten = torch.ops.aten
PropagatedSizes = list[list[tuple[Size | None, Any]] | None]  # for each axis its size in our symbols, and in torch's


class Propagation:
    """One call in its own environment, so that torch's assumptions do not affect later calls.

    Args:
        has_numbers: whether data-dependent symbols have a value, different for each.
    """

    def __init__(self, axes: SizeDomain, has_numbers: bool) -> None:
        self._axes, self._has_numbers = axes, has_numbers
        self._environment = environment_of(axes.example, axes.names)
        self._theirs: dict[sympy.Symbol, sympy.Symbol] = {}  # the symbols of this environment, by ours

    def sizes(self, node: torch.fx.Node) -> list[list[Any] | None] | None:
        """Return the sizes of each result, in the symbols of this environment; None if torch cannot compute them."""
        try:
            mode = FakeTensorMode(shape_env=self._environment)
            with DisableTorchFunction(), torch.no_grad(), enable_python_dispatcher(), mode:
                args, kwargs = pytree.tree_map(partial(self._argument, is_mask=node.target in INDEXING), (node.args, dict(node.kwargs)))
                results = pytree.tree_leaves(node.target(*args, **kwargs))  # type: ignore[operator]
            shapes = [list(sizes_of(result)) if isinstance(result, torch.Tensor) else None for result in results]
        except Exception:  # noqa: BLE001 - the result is compared with the runs, and without it the model is refused
            return None
        return shapes if self._decides_nothing() else None

    def translate_size(self, size: Any) -> Size | None:
        """Return a size in our symbols; None for a new symbol, or one that torch assumes to equal another."""
        ours = {theirs: symbol for symbol, theirs in self._theirs.items()}
        if isinstance(size, int):
            return size
        return size.xreplace(ours) if size.free_symbols <= {*ours, *self._axes.example} - self._equal else None

    @property
    def _equal(self) -> set[sympy.Symbol]:
        """The symbols that torch assumes to be equal, although eager may broadcast one to the other."""
        asserted = (one.expr for many in self._environment.deferred_runtime_asserts.values() for one in many)
        return {symbol for test in asserted if isinstance(test, sympy.Eq) for symbol in test.free_symbols}

    def _decides_nothing(self) -> bool:
        """Whether torch's guards on symbols with a value only test whether they are small."""
        tests = (guard.expr for guard in self._environment.guards if self._axes.fresh.among(guard.expr))
        return all(is_implied(or_is_small(test), self._axes.ranges_of(test)) for test in tests)

    def _argument(self, leaf: Any, is_mask: bool = False) -> Any:
        if isinstance(leaf, torch.fx.Node):
            value = leaf.meta["val"]
            if not isinstance(value, SymbolicMeta):
                return value
            dtype = torch.bool if is_mask and value.dtype == torch.uint8 else value.dtype
            return torch.empty(list(map(self._number, value.sizes)), dtype=dtype)
        return self._number(leaf) if isinstance(leaf, sympy.Basic) else leaf

    def _number(self, size: Any) -> Any:
        if isinstance(size, int):
            return size
        fresh = self._axes.fresh.among(size)
        for symbol in sorted(fresh - set(self._theirs), key=str):
            self._theirs[symbol] = self._symbol(symbol)
        hint = None if fresh and not self._has_numbers else self._hint(size)
        make = self._environment.create_symintnode if size.is_integer else self._environment.create_symfloatnode
        return make(size.xreplace(self._theirs), hint=hint)

    def _hint(self, size: sympy.Expr) -> Any:
        numbers = {ours: NUMBER + 2 * number for number, ours in enumerate(self._theirs)}
        found = size.subs({**self._axes.example, **numbers})
        return int(found) if size.is_integer else float(found)

    def _symbol(self, ours: sympy.Symbol) -> sympy.Symbol:
        if self._has_numbers:
            self._environment.add_fresh(ours, NUMBER + 2 * len(self._theirs))
            return ours
        unbacked = self._environment.create_unbacked_symint().node.expr
        if ours.is_nonnegative:
            self._environment._constrain_range_for_size(unbacked)
        return unbacked


def propagate_sizes(node: torch.fx.Node, axes: SizeDomain) -> PropagatedSizes:
    """Return the sizes of each result of a call, with None for axes with new data-dependent sizes."""
    if node.target is aten.one_hot.default and len(node.args) == 1:  # the number of classes depends on values
        return [[*((size, size) for size in node.args[0].meta["val"].sizes), (None, None)]]  # type: ignore[union-attr]
    for has_numbers in (False, True):
        call = Propagation(axes, has_numbers)
        if (shapes := call.sizes(node)) is not None:
            return [None if shape is None else [(call.translate_size(size), size) for size in shape] for shape in shapes]
    return []
