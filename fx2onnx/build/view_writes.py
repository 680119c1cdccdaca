"""Writing through a view: where in the memory of its owner the elements of the view lie. Not here: who views whom."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from .aliasing import returns_its_argument
from .graph import Tensor
from .values import sizes_of

if TYPE_CHECKING:
    from .interpreter import Interpreter

aten = torch.ops.aten
Node = torch.fx.Node
SAME_ORDER = {
    aten.view.default, aten.reshape.default, aten.unsqueeze.default, aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims,
    aten.flatten.using_ints, aten.alias.default, aten.detach.default, aten.detach_.default, aten.contiguous.default, aten.view_as.default,
    aten.unflatten.int, aten._unsafe_view.default, aten.unsqueeze_.default, aten.squeeze_.dim, aten.reshape_as.default,
    aten.to.dtype, aten.to.device, aten.to.dtype_layout, aten.type_as.default, aten.dropout.default, aten.positive.default,
}  # fmt: skip


def put_back(walk: Interpreter, owner: Node, path: list[Node], value: Tensor) -> Tensor:
    """The whole of the owner's memory after `value` was written into the view at the end of `path`."""
    g, sizes = walk.g, sizes_of(owner.meta["val"])
    if all(step.target in SAME_ORDER or returns_its_argument(step) for step in path):
        return g.sized(g.reshaped(value, sizes), sizes)
    where = _positions(walk, owner, path)
    flat = g.Reshape(walk.memory.read(owner), [-1])
    written = g.ScatterND(flat, g.Reshape(where, [-1, 1]), g.Reshape(value, [-1]))
    return g.sized(g.reshaped(written, sizes), sizes)


def _positions(walk: Interpreter, owner: Node, path: list[Node]) -> Tensor:
    """The position in the owner's memory of each element of the view: the views applied to 0, 1, 2, …"""
    g, sizes = walk.g, sizes_of(owner.meta["val"])
    every = g.Range(g.const(0, torch.int64), g.Size(walk.memory.read(owner)), g.const(1, torch.int64))
    positions = g.sized(g.reshaped(every, sizes), sizes)
    for previous, step in zip([owner, *path], path, strict=False):
        positions = _applied(walk, step, previous, positions)
    return positions


def _applied(walk: Interpreter, step: Node, previous: Node, positions: Any) -> Any:
    """The positions that one more view leaves, in its order."""
    if step.target is operator.getitem:
        return positions[step.args[1]]
    if returns_its_argument(step):
        return positions

    def value_of(argument: Any) -> Any:
        return positions if walk.memory.resolved(argument) is previous else walk.value_of(argument)

    with walk.g.on(step, {}):
        made = walk.lookup(step)(walk.g, *map(value_of, step.args), **{k: walk.value_of(v) for k, v in step.kwargs.items()})
    fakes = step.meta["val"]
    if isinstance(made, ir.Value):
        return walk.g.sized(made, sizes_of(fakes))
    return [walk.g.sized(part, sizes_of(fake)) for part, fake in zip(made, fakes, strict=True)]
