"""Routines: ONNX local functions that are written in this package, not captured, and the loops in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from ..ir.dtypes import BOOL, INT64
from ..ir.graph import Graph
from ..ir.tensor import Tensor
from .subgraphs import finish_subgraph, input_named, own_outputs

DOMAIN = "fx2onnx.linalg"
Routine = Callable[..., Sequence[Tensor]]  # of a graph and its inputs, whose sizes are unknown


def call_local_function(g: Graph, name: str, routine: Routine, *inputs: Tensor) -> list[Tensor]:
    """Append a call of a local function. The first call with inputs of these types adds the function to the model."""
    dtypes = tuple(value.dtype for value in inputs)
    key = ((DOMAIN, name), dtypes)
    if key not in g.shared.functions:
        g.shared.functions[key] = _function(g, name, routine, dtypes)
    function = g.shared.functions[key]
    made = g.op(function.name, *inputs, domain=DOMAIN, outputs=len(function.outputs))
    results = list(made) if isinstance(made, tuple) else [made]
    for result, formal in zip(results, function.outputs, strict=True):
        result.type = formal.type
    return results


def _function(g: Graph, name: str, routine: Routine, dtypes: Sequence[ir.DataType]) -> ir.Function:
    inner = Graph(g.shared, parent=g, isolated=True)
    with inner.on(g.at, {}):
        formals = [make_unsized_input(inner, f"{name}/x{i}", dtype) for i, dtype in enumerate(dtypes)]
        results = list(routine(inner, *formals))
        outputs = own_outputs(inner, results, [result.dtype for result in results])
    body = ir.Graph(formals, outputs, nodes=inner.nodes, opset_imports=dict(g.shared.domains))
    return ir.Function(DOMAIN, f"{name}_{dtypes[0].name.lower()}", graph=body, attributes=[])


def make_unsized_input(g: Graph, name: str, dtype: ir.DataType) -> Tensor:
    """Return an input of unknown sizes, of a function or of a subgraph in it."""
    return Tensor(name=g.shared.names.unique(f"{g.at.name}/{name}"), type=ir.TensorType(dtype))


def append_loop(g: Graph, count: Tensor, initial: Sequence[Tensor], step: Routine) -> list[Tensor]:
    """Append a Loop of `count` iterations of `step(body, iteration, *values)`, which returns the new values; return the last values."""
    return append_while_loop(g, count, initial, lambda body, turn, *values: [body.const(True, BOOL), *step(body, turn, *values)])


def append_while_loop(g: Graph, most: Tensor, initial: Sequence[Tensor], step: Routine) -> list[Tensor]:
    """Append a Loop like `append_loop`, where `step` first returns whether to continue, for at most `most` iterations."""
    body, dtypes = g.child(), [value.dtype for value in initial]
    turn, goes_on = input_named(g, "turn", (), INT64), input_named(g, "goes_on", (), BOOL)
    values = [make_unsized_input(g, "value", dtype) for dtype in dtypes]
    results = step(body, turn, *values)
    inner = finish_subgraph(body, "body", [turn, goes_on, *values], results, [BOOL, *dtypes])
    made = g.Loop(most, g.const(True, BOOL), *initial, outputs=len(initial), body=inner)
    last = list(made) if isinstance(made, tuple) else [made]
    for value, dtype in zip(last, dtypes, strict=True):
        value.type = ir.TensorType(dtype)
    return last
