"""Translates captured subgraphs to the bodies of If, Loop and Scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import onnx_ir as ir
import torch

from ..errors import UntranslatedInside
from ..ir.dtypes import BOOL, DOUBLE, INT64, onnx_dtype
from ..ir.expressions import SYMBOLIC, Size, expression, sizes_of
from ..ir.graph import Graph, SubgraphTranslator
from ..ir.symbols import Symbols
from ..ir.tensor import Tensor
from ..ir.translation import TranslationOf
from .interpreter import FunctionCalls, Interpreter

NUMBERS = {
    **dict.fromkeys((bool, torch.SymBool), BOOL),
    **dict.fromkeys((int, torch.SymInt), INT64),
    **dict.fromkeys((float, torch.SymFloat), DOUBLE),
}


def subgraph_translator(dispatch: TranslationOf, tracks: bool, functions: FunctionCalls | None) -> SubgraphTranslator:
    """Return a function that translates a captured subgraph, given the graph, the subgraph and the values of its placeholders."""
    return partial(_translate_subgraph, dispatch, tracks, functions)


def _translate_subgraph(
    dispatch: TranslationOf,
    tracks: bool,
    functions: FunctionCalls | None,
    g: Graph,
    module: torch.fx.GraphModule,
    operands: Sequence[Any],
) -> list[Any]:
    """Append the nodes of the subgraph to `g`; return its results.

    Raises:
        UntranslatedInside: some of its nodes have no translation.
    """
    interpreter = Interpreter(g, module, dispatch, tracks, functions)
    for placeholder, operand in zip(module.graph.find_nodes(op="placeholder"), operands, strict=True):
        interpreter.memory.bind(placeholder, _bound(g, placeholder.meta.get("val"), operand))
    interpreter.run_graph(module.graph, g.at)
    if interpreter.failures:
        raise UntranslatedInside(interpreter.failures)
    returned = module.graph.output_node().args[0]
    return [interpreter.value_of(result) for result in (returned if isinstance(returned, (list, tuple)) else [returned])]


def _bound(g: Graph, fake: Any, operand: Any) -> Any:
    """Return the value of a placeholder: the operand, or, for a number, its symbol in the subgraph."""
    if not isinstance(fake, SYMBOLIC):
        return operand
    number = expression(fake)
    if number != operand:
        g.symbols.bind_number(number, operand if isinstance(operand, Tensor) else g.set_sizes(g.ints([operand]), (1,)))
    return number


def all_made(*makers: Callable[[], Any]) -> list[Any]:
    """Return the result of each maker.

    Raises:
        UntranslatedInside: with the failures of all makers.
    """
    made, failures = [], []
    for maker in makers:
        try:
            made.append(maker())
        except UntranslatedInside as error:
            failures += error.failures
    if failures:
        raise UntranslatedInside(failures)
    return made


def make_inline_child(g: Graph, around: Graph) -> Graph:
    """Return a child that appends its nodes to `g`, but has only the symbols of `around` and of its placeholders."""
    inner = g.child()
    inner.nodes, inner.seen, inner.symbols = g.nodes, g.seen, Symbols(around.symbols)
    return inner


def make_subgraph_input(g: Graph, name: str, fake: Any) -> Tensor:
    """Return an input of a subgraph, with the captured type."""
    return input_named(g, name, sizes_of(fake) if isinstance(fake, torch.Tensor) else (), dtype_of(fake))


def input_named(g: Graph, name: str, sizes: Sequence[Size], dtype: ir.DataType) -> Tensor:
    """Return an input with these sizes for a subgraph of the node being translated."""
    name = g.shared.names.unique(f"{g.at.name}/{name}")
    return Tensor(name=name, sizes=sizes, type=ir.TensorType(dtype), shape=g.shared.onnx_shape(sizes))


def inputs_of(g: Graph, module: torch.fx.GraphModule, count: int) -> list[Tensor]:
    """Return inputs for the first placeholders of a captured subgraph."""
    placeholders = module.graph.find_nodes(op="placeholder")[:count]
    return [make_subgraph_input(g, placeholder.name, placeholder.meta["val"]) for placeholder in placeholders]


def dtype_of(fake: Any) -> ir.DataType:
    """Return the dtype of a tensor, or the one that a number is passed in."""
    return onnx_dtype(fake.dtype) if isinstance(fake, torch.Tensor) else NUMBERS[type(fake)]


def dtypes_of(fakes: Sequence[Any]) -> list[ir.DataType]:
    """Return the dtypes of several values."""
    return [dtype_of(fake) for fake in fakes]


def finish_subgraph(inner: Graph, role: str, inputs: Sequence[Tensor], results: Sequence[Any], dtypes: Sequence[ir.DataType]) -> ir.Graph:
    """Return the finished subgraph."""
    outputs = own_outputs(inner, results, dtypes)
    return ir.Graph(inputs, outputs, nodes=inner.nodes, name=inner.shared.names.unique(f"{inner.at.name}/{role}"))


def own_outputs(inner: Graph, results: Sequence[Any], dtypes: Sequence[ir.DataType]) -> list[Tensor]:
    """Return the results as distinct outputs made in the subgraph: ONNX allows neither outer values nor duplicates."""
    taken: set[int] = set()
    outputs = []
    for result, dtype in zip(results, dtypes, strict=True):
        value = inner.cast(result, dtype)
        if id(value) in taken or not any(node is value.producer() for node in reversed(inner.nodes)):
            value = inner.append_identity(value)
        taken.add(id(value))
        outputs.append(value)
    return outputs


def set_output_types(made: Any, fakes: Sequence[Any]) -> list[Tensor]:
    """Return the outputs of a node with their captured types; numbers have no axes."""
    outputs = list(made) if isinstance(made, tuple) else [made]
    for output, fake in zip(outputs, fakes, strict=True):
        output.type = ir.TensorType(dtype_of(fake))
        if not isinstance(fake, torch.Tensor):
            output.known_sizes, output.shape = (), ir.Shape([])
    return outputs
