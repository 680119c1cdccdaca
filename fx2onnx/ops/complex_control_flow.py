"""Branches and loops with complex values, whose parts are passed as separate values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import onnx_ir as ir
import torch

from ..errors import Untranslated
from ..ir.complex_pairs import ComplexPair, RealPart
from ..ir.dtypes import BOOL, INT64
from ..ir.expressions import Number, sizes_of
from ..ir.graph import Graph
from ..ir.tensor import Operand
from ..ir.trip_count import turns
from ..lower.subgraphs import all_made, dtypes_of, finish_subgraph, make_subgraph_input, set_output_types
from ..translate.registry import translates_complex
from .complex_parts import complex_with_nothing

hop = torch.ops.higher_order
Module = torch.fx.GraphModule


def _flat(values: Sequence[Any], fakes: Sequence[Any], g: Graph) -> list[Any]:
    """Return the values with complex ones replaced by their parts; a real value gets an imaginary part if the captured one is complex."""
    found: list[Any] = []
    for value, fake in zip(values, fakes, strict=True):
        if not _is_complex(fake):
            found.append(value)
            continue
        pair = complex_with_nothing(g, value, fake.dtype)
        found += [pair.real, pair.imag]
    return found


def _parts_of(fakes: Sequence[Any]) -> list[Any]:
    """Return the captured metadata of the values, with that of both parts for complex ones."""
    return [part for fake in fakes for part in ([RealPart.of(fake)] * 2 if _is_complex(fake) else [fake])]


def _join_parts(values: Sequence[Any], fakes: Sequence[Any]) -> list[Any]:
    """Return the values of such a list, with parts joined to complex values."""
    rest = iter(values)
    return [ComplexPair(next(rest), next(rest)) if _is_complex(fake) else next(rest) for fake in fakes]


def _is_complex(fake: Any) -> bool:
    return isinstance(fake, torch.Tensor) and fake.is_complex()


@translates_complex(hop.cond)
def cond(g: Graph, predicate: Operand, yes: Module, no: Module, operands: Sequence[Any] = ()) -> list[Any]:
    """cond(p, g1, g2, operands) → If, with two outputs for each complex result."""
    fakes = _parts_of(g.at.meta["val"])
    branches = all_made(partial(_branch, g, "then", yes, operands), partial(_branch, g, "else", no, operands))
    made = g.If(g.cast(predicate, BOOL), outputs=len(fakes), then_branch=branches[0], else_branch=branches[1])
    return _join_parts(set_output_types(made, fakes), g.at.meta["val"])


def _branch(g: Graph, role: str, module: Module, operands: Sequence[Any]) -> ir.Graph:
    inner, fakes = g.child(), g.at.meta["val"]
    results = _flat(g.subgraph(inner, module, operands), fakes, inner)
    return finish_subgraph(inner, role, [], results, dtypes_of(_parts_of(fakes)))


@translates_complex(turns)
def turns_(
    g: Graph, body: Module, count: Number, first: int, carried: Sequence[Any], extra: Sequence[Any] = (), goes_on: Any = None
) -> list[Any]:
    """turns(body, count, first, carried, extra) → Loop, which carries both parts of complex values."""
    if goes_on is not None:
        raise Untranslated("complex operands are not supported in a loop that a value ends: pass torch.view_as_real of them")
    fakes, inner = g.at.meta["val"], g.child()
    before = [node.meta["val"] for node in body.graph.find_nodes(op="placeholder")[: len(carried)]]
    inputs = [make_subgraph_input(g, f"carried_{i}", fake) for i, fake in enumerate(_parts_of(before))]
    at, again = make_subgraph_input(g, "turn", 0), make_subgraph_input(g, "goes_on", True)
    results = g.subgraph(inner, body, [*_join_parts(inputs, before), inner.Add(at, first) if first else at, *extra])
    kinds = dtypes_of(_parts_of(fakes))
    turn = finish_subgraph(inner, "body", [at, again, *inputs], [again, *_flat(results, fakes, inner)], [BOOL, *kinds])
    given = _flat(carried, before, g)
    flat = set_output_types(g.Loop(g.scalar(count, INT64), g.const(True, BOOL), *given, outputs=len(kinds), body=turn), _parts_of(fakes))
    rows = zip(flat[len(given) :], _parts_of(fakes)[len(given) :], strict=True)
    return _join_parts([*flat[: len(given)], *(g.Reshape(row, list(sizes_of(fake)), allowzero=1) for row, fake in rows)], fakes)


@translates_complex(hop.while_loop, hop.scan, hop.map_impl, hop.associative_scan)
def others(g: Graph, *_: Any, **__: Any) -> list[Any]:
    """while_loop, scan, map, associative_scan: complex operands are not supported."""
    raise Untranslated("complex operands are not supported: pass torch.view_as_real of them")
