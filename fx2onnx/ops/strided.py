"""Views by strides over the memory of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import sympy
import torch

from ..compat.operators import aten
from ..compat.shape_env import statically_known_true
from ..errors import Untranslated
from ..ir.dtypes import INT64
from ..ir.expressions import Size, expression
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .create import make_range
from .index import numel
from .scatter import append_scatter


@translates(aten.as_strided.default, aten.as_strided_copy.default)
def as_strided(g: Graph, x: Tensor, size: Sequence[Size], stride: Sequence[Size], storage_offset: Size | None = None) -> Tensor:
    """as_strided(x, size, stride, offset) → Gather from the flattened tensor, if x is known to fill its memory to the end."""
    at = _positions(g, x, size, stride, storage_offset)
    return g.Gather(g.reshape_to(x, (numel(x.sizes),)), at, axis=0)


@translates(aten.as_strided_scatter.default)
def as_strided_scatter(
    g: Graph, x: Tensor, source: Tensor, size: Sequence[Size], stride: Sequence[Size], storage_offset: Size | None = None
) -> Tensor:
    """as_strided_scatter(x, source, size, stride, offset) → ScatterND into the flattened tensor, if x fills its memory."""
    at = g.Unsqueeze(_positions(g, x, size, stride, storage_offset), [len(size)])
    flat = g.set_sizes(g.reshape_to(x, (numel(x.sizes),)), (numel(x.sizes),))
    return g.reshape_to(append_scatter(g, "ScatterND", flat, at, source), x.sizes)


def _positions(g: Graph, x: Tensor, size: Sequence[Size], stride: Sequence[Size], offset: Size | None) -> Tensor:
    """Return the positions of the view's elements in the flattened x."""
    start = _start(g.at.all_input_nodes[0].meta["val"], offset)
    if all(isinstance(number, int) for number in [*x.sizes, *size, *stride, start]):
        count: int = numel(x.sizes)
        return g.const(torch.arange(count).as_strided(size, stride, start), INT64)
    made = g.scalar(start, INT64)
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        along, later = make_range(g, n, 0, step), list(range(1, len(size) - axis))
        made = g.Add(made, g.Unsqueeze(along, later) if later else along)
    return made


def _start(x: torch.Tensor, offset: Size | None) -> int:
    """Return the element of x at which the view starts, if x is contiguous and known to fill its memory to the end.

    Raises:
        Untranslated: this is not known.
    """
    stored = x.untyped_storage().nbytes() if isinstance(x, torch.Tensor) else -1
    if isinstance(stored, int) and stored < 0:
        raise Untranslated("the size of its memory is unknown, because of dynamic dimensions")
    start = 0 if offset is None else sympy.sympify(offset - expression(x.storage_offset()))
    ends = statically_known_true(stored == (x.storage_offset() + x.numel()) * x.itemsize)
    if not ends or not _is_contiguous(x) or not isinstance(start, (int, sympy.Integer)) or start < 0:
        raise Untranslated("its tensor is only a part of its memory, or in another order: call it on the whole tensor, or use slices")
    return int(start)


def _is_contiguous(x: torch.Tensor) -> bool:
    expected: Size = 1
    for n, step in zip(reversed(x.shape), reversed(x.stride()), strict=True):
        if not statically_known_true(n == 1) and not statically_known_true(step == expected):
            return False
        expected = expected * n
    return True
