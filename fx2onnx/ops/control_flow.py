"""Operators with subgraphs: `cond`, `while_loop`, `scan`, `map`, `associative_scan`; lower/subgraphs.py translates the subgraphs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import onnx_ir as ir
import torch

from ..errors import Untranslated
from ..ir.dtypes import BOOL, INT64
from ..ir.expressions import Number, sizes_of
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..ir.trip_count import turns
from ..lower.subgraphs import all_made, dtypes_of, finish_subgraph, inputs_of, make_inline_child, make_subgraph_input, set_output_types
from ..translate.registry import translates

hop = torch.ops.higher_order
Module = torch.fx.GraphModule


@translates(hop.cond)
def cond(g: Graph, predicate: Operand, yes: Module, no: Module, operands: Sequence[Operand] = ()) -> list[Tensor]:
    """cond(p, g1, g2, operands) → If, whose branches read outer values directly."""
    fakes = g.at.meta["val"]
    branches = all_made(partial(_branch, g, "then", yes, operands), partial(_branch, g, "else", no, operands))
    return set_output_types(g.If(g.cast(predicate, BOOL), outputs=len(fakes), then_branch=branches[0], else_branch=branches[1]), fakes)


def _branch(g: Graph, role: str, module: Module, operands: Sequence[Operand]) -> ir.Graph:
    inner = g.child()
    return finish_subgraph(inner, role, [], g.subgraph(inner, module, operands), dtypes_of(g.at.meta["val"]))


@translates(hop.while_loop)
def while_loop(g: Graph, condition: Module, body: Module, carried: Sequence[Operand], extra: Sequence[Operand] = ()) -> list[Tensor]:
    """while_loop(condition, body, carried, extra) → Loop; the condition is computed before it and at the end of each iteration."""
    fakes = g.at.meta["val"]
    first, turn = all_made(partial(_holds, g, g, condition, [*carried, *extra]), partial(_turn, g, condition, body, extra))
    initial = [g.cast(value, dtype) for value, dtype in zip(carried, dtypes_of(fakes), strict=True)]
    return set_output_types(g.Loop(None, first, *initial, outputs=len(fakes), body=turn), fakes)


def _holds(g: Graph, around: Graph, condition: Module, operands: Sequence[Operand]) -> Tensor:
    """Return the condition for these values: in the graph `around` the loop, or in `g`, the body inside it."""
    inner = make_inline_child(g, around)
    return inner.scalar(g.subgraph(inner, condition, operands)[0], BOOL)


def _turn(g: Graph, condition: Module, body: Module, extra: Sequence[Operand]) -> ir.Graph:
    inner, fakes = g.child(), g.at.meta["val"]
    inputs = inputs_of(g, body, len(fakes))
    results = g.subgraph(inner, body, [*inputs, *extra])
    carried = [inner.cast(value, dtype) for value, dtype in zip(results, dtypes_of(fakes), strict=True)]
    goes_on = _holds(inner, g, condition, [*carried, *extra])
    return finish_subgraph(
        inner,
        "body",
        [make_subgraph_input(g, "turn", 0), make_subgraph_input(g, "goes_on", True), *inputs],
        [goes_on, *carried],
        [BOOL, *dtypes_of(fakes)],
    )


@translates(turns)
def turns_(
    g: Graph,
    body: Module,
    count: Number | None,
    first: int,
    carried: Sequence[Operand],
    extra: Sequence[Operand] = (),
    goes_on: Operand | None = None,
) -> list[Tensor]:
    """turns(body, count, first, carried, extra, goes_on) → Loop, which unlike Scan supports zero iterations."""
    fakes = g.at.meta["val"]
    inner = g.child()
    inputs = inputs_of(g, body, len(carried))
    at = make_subgraph_input(g, "turn", 0)
    results = g.subgraph(inner, body, [*inputs, inner.Add(at, first) if first else at, *extra])
    before = make_subgraph_input(g, "goes_on", True)
    again = inner.scalar(results.pop(0), BOOL) if goes_on is not None else before
    turn = finish_subgraph(inner, "body", [at, before, *inputs], [again, *results], [BOOL, *dtypes_of(fakes)])
    limit = None if count is None else g.scalar(count, INT64)
    holds = g.const(True, BOOL) if goes_on is None or goes_on is True else g.scalar(goes_on, BOOL)
    initial = [g.cast(value, dtype) for value, dtype in zip(carried, dtypes_of(fakes), strict=False)]
    made = set_output_types(g.Loop(limit, holds, *initial, outputs=len(fakes), body=turn), fakes)
    rows = zip(made[len(carried) :], fakes[len(carried) :], strict=True)
    return [*made[: len(carried)], *(g.Reshape(row, list(sizes_of(fake)), allowzero=1) for row, fake in rows)]


@translates(hop.scan)
def scan(g: Graph, body: Module, init: Sequence[Tensor], xs: Sequence[Tensor], extra: Sequence[Operand] = ()) -> list[Tensor]:
    """scan(body, init, xs, extra) → Scan over the first axis; the results are the last state and the stacked rows."""
    _check_states(g.at, body)
    return _append_scan(g, body, init, xs, extra)


def _check_states(node: torch.fx.Node, body: Module) -> None:
    """Check that the body reads its states.

    Raises:
        Untranslated: torch.export 2.13 confuses a state with another operand that is the same tensor.
    """
    arguments: tuple[Any, ...] = node.args
    operands = [operand for given in arguments[1:] for operand in given]
    placeholders = body.graph.find_nodes(op="placeholder")
    for position, state in enumerate(arguments[1]):
        later = zip(operands[position + 1 :], placeholders[position + 1 :], strict=True)
        if not placeholders[position].users and any(operand is state and placeholder.users for operand, placeholder in later):
            raise Untranslated(f"torch.export confuses the state with its initial tensor ({state}): pass a copy of it, init.clone()")


@translates(hop.map_impl)
def map_(g: Graph, body: Module, xs: Sequence[Tensor], extra: Sequence[Operand] = ()) -> list[Tensor]:
    """map_impl(body, xs, extra) → Scan without a state."""
    return _append_scan(g, body, [], xs, extra)


def _append_scan(g: Graph, body: Module, init: Sequence[Tensor], xs: Sequence[Tensor], extra: Sequence[Operand]) -> list[Tensor]:
    inner, fakes = g.child(), g.at.meta["val"]
    inputs = inputs_of(g, body, len(init) + len(xs))
    row = finish_subgraph(inner, "body", inputs, g.subgraph(inner, body, [*inputs, *extra]), dtypes_of(fakes))
    return set_output_types(g.Scan(*init, *xs, outputs=len(fakes), body=row, num_scan_inputs=len(xs)), fakes)


@translates(hop.associative_scan)
def associative_scan(g: Graph, combine: Module, xs: Sequence[Tensor], extra: Sequence[Operand] = ()) -> list[Tensor]:
    """associative_scan(combine, xs, extra) → Scan over all rows after the first, which is the state, and Concat of the first row."""
    inner, fakes = g.child(), g.at.meta["val"]
    inputs = inputs_of(g, combine, 2 * len(xs))
    results = g.subgraph(inner, combine, [*inputs, *extra])
    body = finish_subgraph(inner, "body", inputs, [*results, *results], dtypes_of([*fakes, *fakes]))
    first = [g.Slice(x, [0], [1], [0]) for x in xs]
    rest = [g.Slice(x, [1], [2**63 - 1], [0]) for x in xs]
    made = g.Scan(*[g.Squeeze(x, [0]) for x in first], *rest, outputs=2 * len(xs), body=body, num_scan_inputs=len(xs))
    rows = set_output_types(made, [*fakes, *fakes])[len(xs) :]
    return [g.Concat(head, tail, axis=0) for head, tail in zip(first, rows, strict=True)]
