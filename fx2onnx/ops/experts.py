"""Products of rows with the matrix of their group, as in mixtures of experts."""

from __future__ import annotations

import torch

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.dtypes import INT64
from ..ir.graph import TRANSPOSED, Graph, Tensor
from ..translate.registry import translates


@translates(aten._grouped_mm.default, "transformers.grouped_mm_fallback.default")
def grouped_mm(
    g: Graph, x: Tensor, weight: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: torch.dtype | None = None
) -> Tensor:
    """_grouped_mm(x[rows, k], w[groups, k, n], ends[groups]) → Split into groups, MatMul for each, Concat; Pad for other rows."""
    if x.rank != 2 or weight.rank != 3 or offs is None or bias is not None or not isinstance(weight.sizes[0], int):
        raise Untranslated("only 2-D rows (offs) with a constant number of groups and without bias are supported")
    ends, last = g.cast(offs, INT64), [2**63 - 1]
    lengths = g.Sub(ends, g.Concat([0], g.Slice(ends, [0], [-1], [0]), axis=0))
    rest = g.Sub(g.ints([x.sizes[0]]), g.Slice(ends, [-1], last, [0]))
    *parts, _ = g.Split(x, g.Concat(lengths, rest, axis=0), axis=0, outputs=weight.sizes[0] + 1)
    products = [g.MatMul(part, matrix) for part, matrix in zip(parts, matrices(g, weight), strict=True)]
    return g.Pad(g.Concat(*products, axis=0), g.Concat([0, 0], rest, [0], axis=0))


def matrices(g: Graph, weight: Tensor) -> list[Tensor]:
    """Return the matrices (k, n) of a stack (groups, k, n): views of a weight, also of a transposed one; otherwise by Gather."""
    groups = range(int(weight.sizes[0]))
    source, order = _undo_transpose(weight)
    stack = source.weight if source.name in g.shared.initializers and order[0] == 0 else None
    if stack is None:
        return [g.Gather(weight, g.const(i, INT64), axis=0) for i in groups]
    views, suffix = stack.permute(order), TRANSPOSED if order != [0, 1, 2] else ""
    names = [f"{source.name}/{i}{suffix}" for i in groups]
    known = g.shared.initializers
    return [known.get(name) or g.initializer(name, views[i]) for i, name in enumerate(names)]


def _undo_transpose(weight: Tensor) -> tuple[Tensor, list[int]]:
    """Return the input of the Transpose that computes the weight, and its order of axes; else the weight itself."""
    node = weight.producer()
    source = node.inputs[0] if node is not None and node.op_type == "Transpose" else None
    if node is None or not isinstance(source, Tensor):
        return weight, list(range(weight.rank))
    return source, list(node.attributes["perm"].as_ints())
