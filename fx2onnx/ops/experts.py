"""Products of rows with the matrix of the group that each belongs to, as mixtures of experts do. Not here: how rows come to be sorted."""

from __future__ import annotations

from typing import Any

import torch

from ..build.dtypes import INT64
from ..build.graph import Graph, Tensor
from ..errors import Untranslated
from ..translate.registry import translates

aten = torch.ops.aten


@translates(aten._grouped_mm.default, "transformers.grouped_mm_fallback.default")
def grouped_mm(
    g: Graph, x: Tensor, weight: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """_grouped_mm(x[rows, k], w[groups, k, n], ends[groups]) → Split into groups, MatMul for each, Concat; Pad for rows of no group."""
    if x.rank != 2 or weight.rank != 3 or offs is None or bias is not None or not isinstance(weight.sizes[0], int):
        raise Untranslated("only rows in a known number of groups, without bias")
    ends, last = g.cast(offs, INT64), [2**63 - 1]
    lengths = g.Sub(ends, g.Concat([0], g.Slice(ends, [0], [-1], [0]), axis=0))
    rest = g.Sub(g.ints([x.sizes[0]]), g.Slice(ends, [-1], last, [0]))
    *parts, _ = g.Split(x, g.Concat(lengths, rest, axis=0), axis=0, outputs=weight.sizes[0] + 1)
    products = [g.MatMul(part, matrix) for part, matrix in zip(parts, matrices(g, weight), strict=True)]
    return g.Pad(g.Concat(*products, axis=0), g.Concat([0, 0], rest, [0], axis=0))


def matrices(g: Graph, weight: Tensor) -> list[Tensor]:
    """The matrices of a stack: views of a weight's memory, also of one whose axes are exchanged; of anything else by Gather."""
    source, order = weight, [0, 1, 2]
    if weight.producer() is not None and weight.producer().op_type == "Transpose":
        source, order = weight.producer().inputs[0], list(weight.producer().attributes["perm"].value)
    if source.name not in g.shared.initializers or order[0] != 0:
        return [g.Gather(weight, g.const(i, INT64), axis=0) for i in range(weight.sizes[0])]
    memory, suffix = source.const_value.raw.permute(order), "/T" if order != [0, 1, 2] else ""
    names = [f"{source.name}/{i}{suffix}" for i in range(weight.sizes[0])]
    known = g.shared.initializers
    return [known.get(name) or g.initializer(name, memory[i]) for i, name in enumerate(names)]
