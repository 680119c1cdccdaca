"""Writes through views, at the positions of the view's elements in the memory of its owner (see aliasing.py for views)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..errors import Untranslated
from ..ir.complex_pairs import ComplexPair, map_real_imag
from ..ir.dtypes import INT64
from ..ir.expressions import sizes_of
from ..ir.graph import Graph
from ..ir.tensor import Tensor
from .aliasing import AliasMap, returns_its_argument

aten = torch.ops.aten
Node = torch.fx.Node
ValueOf = Callable[[Any], Any]
Translated = Callable[[Node, ValueOf], Any]
SAME_ELEMENTS = {
    aten.alias.default, aten.detach.default, aten.detach_.default, aten.contiguous.default, aten.to.dtype, aten.to.device,
    aten.to.dtype_layout, aten.to.other, aten.type_as.default, aten.dropout.default, aten.positive.default,
}  # fmt: skip
SAME_ORDER = SAME_ELEMENTS | {
    aten.view.default, aten.reshape.default, aten.unsqueeze.default, aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims,
    aten.flatten.using_ints, aten.view_as.default, aten.unflatten.int, aten._unsafe_view.default, aten.unsqueeze_.default,
    aten.squeeze_.dim, aten.reshape_as.default,
}  # fmt: skip


@dataclass(frozen=True)
class ViewScatter:
    """Writes values through views.

    Attributes:
        g: the graph to which nodes are appended.
        memory: the values of nodes.
        value_of: returns the value of an argument of a node.
        translated: translates a node, with a function that returns the values of its arguments.
    """

    g: Graph
    memory: AliasMap
    value_of: ValueOf
    translated: Translated

    def scatter_back(self, owner: Node, path: list[Node], value: Tensor | ComplexPair) -> Tensor | ComplexPair:
        """Return the owner's memory, in the owner's sizes, after `value` was written into the view at the end of `path`."""
        sizes = sizes_of(owner.meta["val"])
        if any(_overlaps(step) for step in path):
            raise Untranslated("it writes into windows that overlap, so the result is not defined")
        if any(step.target is aten.view.dtype for step in path):
            raise Untranslated("it writes into a tensor through a view of another dtype, which is not supported")
        whole = self.memory.read(owner)
        if isinstance(value, ComplexPair) != isinstance(whole, ComplexPair):
            raise Untranslated("it writes into the real or imaginary part of complex numbers, which is not supported")
        if all(step.target in SAME_ORDER or returns_its_argument(step) for step in path):
            return map_real_imag(lambda given: self.g.set_sizes(self.g.reshape_to(given, sizes), sizes), value)
        where = self.g.Reshape(self._positions(owner, path), [-1, 1])

        def written(old: Tensor, new: Tensor) -> Tensor:
            flat = self.g.ScatterND(self.g.Reshape(old, [-1]), where, self.g.Reshape(new, [-1]))  # (n,), (m, 1), (m,) → (n,)
            return self.g.set_sizes(self.g.reshape_to(flat, sizes), sizes)

        return map_real_imag(written, whole, value)

    def _positions(self, owner: Node, path: list[Node]) -> Tensor:
        """Return the position in the owner's memory of each element of the view, int64: the views applied to 0, 1, 2, …"""
        g, sizes = self.g, sizes_of(owner.meta["val"])
        whole = self.memory.read(owner)
        every = g.Range(g.const(0, INT64), g.Size(whole.real if isinstance(whole, ComplexPair) else whole), g.const(1, INT64))
        positions = g.set_sizes(g.reshape_to(every, sizes), sizes)
        for previous, step in zip([owner, *path], path, strict=False):
            positions = self._view_positions(step, previous, positions)
        return positions

    def _view_positions(self, step: Node, previous: Node, positions: Any) -> Any:
        """Return the positions after one more view, in the order of the view; a list if it returns several tensors."""
        if step.target is operator.getitem:
            return positions[step.args[1]]
        if step.target in SAME_ELEMENTS or returns_its_argument(step):  # a cast that changes nothing would cast the positions
            return positions

        def value_of(argument: Any) -> Any:
            argument = self.memory.resolve(argument)
            if isinstance(argument, (list, tuple)) and any(self.memory.resolve(part) is previous for part in argument):
                return [value_of(part) for part in argument]
            return positions if argument is previous else self.value_of(argument)

        with self.g.on(step, {}):
            made = self.translated(step, value_of)
        fakes = step.meta["val"]
        if isinstance(made, Tensor):
            return self.g.set_sizes(made, sizes_of(fakes))
        return [self.g.set_sizes(part, sizes_of(fake)) for part, fake in zip(made, fakes, strict=True)]


def _overlaps(step: Node) -> bool:
    """Return whether a view may show an element more than once, except by `expand`: eager refuses to write into expanded tensors."""
    if step.target is not aten.unfold.default:
        return False
    _, _, size, stride = step.args
    return not isinstance(size, int) or not isinstance(stride, int) or stride < size
