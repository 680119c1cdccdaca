"""Branches and loops that complex numbers pass through: both parts as values of their own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import onnx_ir as ir
import torch

from ..build.dtypes import BOOL, INT64
from ..build.graph import Graph
from ..build.pairs import Pair, RealPart
from ..build.subgraphs import all_made, closed, described, dtypes_of, typed
from ..build.tensor import Operand
from ..build.turns import turns
from ..build.values import Number, sizes_of
from ..errors import Untranslated
from ..translate.registry import translates_pairs
from .complex_parts import complex_with_nothing

hop = torch.ops.higher_order
Module = torch.fx.GraphModule


def _flat(values: Sequence[Any], fakes: Sequence[Any], g: Graph) -> list[Any]:
    """Values with both parts of the complex ones; of a real one that the capture has for a complex one, and of its other part."""
    found: list[Any] = []
    for value, fake in zip(values, fakes, strict=True):
        if not _is_complex(fake):
            found.append(value)
            continue
        pair = complex_with_nothing(g, value, fake.dtype)
        found += [pair.real, pair.imag]
    return found


def _parts_of(fakes: Sequence[Any]) -> list[Any]:
    """What the capture says of such values: of each part of a complex one."""
    return [part for fake in fakes for part in ([RealPart.of(fake)] * 2 if _is_complex(fake) else [fake])]


def _paired(values: Sequence[Any], fakes: Sequence[Any]) -> list[Any]:
    """The values themselves, of such a list."""
    rest = iter(values)
    return [Pair(next(rest), next(rest)) if _is_complex(fake) else next(rest) for fake in fakes]


def _is_complex(fake: Any) -> bool:
    return isinstance(fake, torch.Tensor) and fake.is_complex()


@translates_pairs(hop.cond)
def cond(g: Graph, predicate: Operand, yes: Module, no: Module, operands: Sequence[Any] = ()) -> list[Any]:
    """cond(p, g1, g2, operands) → If, of which a complex result is two."""
    fakes = _parts_of(g.at.meta["val"])
    branches = all_made(partial(_branch, g, "then", yes, operands), partial(_branch, g, "else", no, operands))
    made = g.If(g.cast(predicate, BOOL), outputs=len(fakes), then_branch=branches[0], else_branch=branches[1])
    return _paired(typed(made, fakes), g.at.meta["val"])


def _branch(g: Graph, role: str, module: Module, operands: Sequence[Any]) -> ir.Graph:
    inner, fakes = g.child(), g.at.meta["val"]
    results = _flat(g.subgraph(inner, module, operands), fakes, inner)
    return closed(inner, role, [], results, dtypes_of(_parts_of(fakes)))


@translates_pairs(turns)
def turns_(
    g: Graph, body: Module, count: Number, first: int, carried: Sequence[Any], extra: Sequence[Any] = (), goes_on: Any = None
) -> list[Any]:
    """turns(body, count, first, carried, extra) → Loop, which carries both parts of what is complex."""
    if goes_on is not None:
        raise Untranslated("complex operands are not supported in a loop that a value ends: pass torch.view_as_real of them")
    fakes, inner = g.at.meta["val"], g.child()
    before = [node.meta["val"] for node in body.graph.find_nodes(op="placeholder")[: len(carried)]]
    inputs = [described(g, f"carried_{i}", fake) for i, fake in enumerate(_parts_of(before))]
    at, again = described(g, "turn", 0), described(g, "goes_on", True)
    results = g.subgraph(inner, body, [*_paired(inputs, before), inner.Add(at, first) if first else at, *extra])
    kinds = dtypes_of(_parts_of(fakes))
    turn = closed(inner, "body", [at, again, *inputs], [again, *_flat(results, fakes, inner)], [BOOL, *kinds])
    given = _flat(carried, before, g)
    flat = typed(g.Loop(g.scalar(count, INT64), g.const(True, BOOL), *given, outputs=len(kinds), body=turn), _parts_of(fakes))
    rows = zip(flat[len(given) :], _parts_of(fakes)[len(given) :], strict=True)
    return _paired([*flat[: len(given)], *(g.Reshape(row, list(sizes_of(fake)), allowzero=1) for row, fake in rows)], fakes)


@translates_pairs(hop.while_loop, hop.scan, hop.map_impl, hop.associative_scan)
def others(g: Graph, *_: Any, **__: Any) -> list[Any]:
    """while_loop, scan, map, associative_scan: complex numbers pass through none of them yet."""
    raise Untranslated("complex operands are not supported: pass torch.view_as_real of them")
