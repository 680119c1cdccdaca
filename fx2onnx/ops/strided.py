"""Views that are given by their strides over the memory of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ..build.dtypes import INT64
from ..build.graph import Graph, Tensor
from ..build.values import Size
from ..compat import aten
from ..errors import Untranslated
from ..translate.registry import translates
from .create import counted
from .index import numel
from .scatter import written


@translates(aten.as_strided.default, aten.as_strided_copy.default)
def as_strided(g: Graph, x: Tensor, size: Sequence[Size], stride: Sequence[Size], storage_offset: Size | None = None) -> Tensor:
    """as_strided(x, size, stride, offset) → Gather from all elements in their order, where x is known to fill its memory."""
    at = _positions(g, x, size, stride, storage_offset)
    return g.Gather(g.reshaped(x, (numel(x.sizes),)), at, axis=0)


@translates(aten.as_strided_scatter.default)
def as_strided_scatter(
    g: Graph, x: Tensor, source: Tensor, size: Sequence[Size], stride: Sequence[Size], storage_offset: Size | None = None
) -> Tensor:
    """as_strided_scatter(x, source, size, stride, offset) → ScatterND into all elements in their order, where x fills its memory."""
    at = g.Unsqueeze(_positions(g, x, size, stride, storage_offset), [len(size)])
    flat = g.sized(g.reshaped(x, (numel(x.sizes),)), (numel(x.sizes),))
    return g.reshaped(written(g, "ScatterND", flat, at, source), x.sizes)


def _positions(g: Graph, x: Tensor, size: Sequence[Size], stride: Sequence[Size], offset: Size | None) -> Tensor:
    """Return where each element of the view lies among those of x."""
    _check_memory(g.at.all_input_nodes[0].meta["val"])
    if all(isinstance(number, int) for number in [*x.sizes, *size, *stride, offset or 0]):
        count: int = numel(x.sizes)
        return g.const(torch.arange(count).as_strided(size, stride, offset or 0), INT64)
    made = g.scalar(offset or 0, INT64)
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        along, later = counted(g, n, 0, step), list(range(1, len(size) - axis))
        made = g.Add(made, g.Unsqueeze(along, later) if later else along)
    return made


def _check_memory(x: torch.Tensor) -> None:
    """Raise where x is not known to lie in its memory in the order of its elements, and to be all that is there."""
    stored = x.untyped_storage().nbytes() if isinstance(x, torch.Tensor) else -1
    if isinstance(stored, int) and stored < 0:
        raise Untranslated("strides over a memory that is not known where sizes move")
    whole = statically_known_true(stored == x.numel() * x.itemsize)
    if not whole or not _in_order(x):
        raise Untranslated("strides over the memory of a tensor that is itself a view of it")


def _in_order(x: torch.Tensor) -> bool:
    expected: Size = 1
    for n, step in zip(reversed(x.shape), reversed(x.stride()), strict=True):
        if not statically_known_true(n == 1) and not statically_known_true(step == expected):
            return False
        expected = expected * n
    return True
