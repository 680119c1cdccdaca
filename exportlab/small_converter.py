"""Convert FX graphs to ONNX: the converter of lesson 201 with type annotations. Lesson 211 adds a capture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import sympy
import torch
from onnx_ir.tensor_adapters import from_torch_dtype, to_torch_dtype
from torch import nn
from torch.export import Dim, ExportedProgram

from fx2onnx.compat.trees import tree_map_only

Translation = Callable[..., ir.Value]

aten = torch.ops.aten
registry: dict[Any, Translation] = {}


def onnx_program(
    inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], tape: ir.tape.Tape, program: ExportedProgram, opset: int = 20
) -> torch.onnx.ONNXProgram:
    """Return the tape's nodes as an ONNX program that can be called and saved."""
    graph = ir.Graph(inputs, outputs, nodes=tape.nodes, initializers=tape.initializers, opset_imports={"": opset}, name="main")
    return torch.onnx.ONNXProgram(ir.Model(graph, ir_version=10), program)


def translates(*targets: Any) -> Callable[[Translation], Translation]:
    """Register a function as the translation of these overloads. Its arguments are the tape and the operator's arguments."""

    def register(function: Translation) -> Translation:
        registry.update(dict.fromkeys(targets, function))
        return function

    return register


@translates(aten.relu.default)
def relu(tape: ir.tape.Tape, x: ir.Value) -> ir.Value:
    """relu(x) → Relu."""
    return tape.op("Relu", [x])


@translates(aten.linear.default)
def linear(tape: ir.tape.Tape, x: ir.Value, weight: ir.Value, bias: ir.Value | None = None) -> ir.Value:
    """linear(x, w, b?) → Gemm, for a matrix x."""
    return tape.op("Gemm", [x, weight, bias], {"transB": 1})


@translates(aten.softmax.int)
def softmax(tape: ir.tape.Tape, x: ir.Value, dim: int) -> ir.Value:
    """softmax(x, dim) → Softmax."""
    return tape.op("Softmax", [x], {"axis": dim})


@translates(aten.gelu.default)
def gelu(tape: ir.tape.Tape, x: ir.Value, approximate: str = "none") -> ir.Value:
    """gelu(x) → Gelu, for opset 20 or later."""
    return tape.op("Gelu", [x], {"approximate": approximate})


@translates(aten.tanh.default)
def tanh(tape: ir.tape.Tape, x: ir.Value) -> ir.Value:
    """tanh(x) → Tanh."""
    return tape.op("Tanh", [x])


@translates(aten.add.Tensor, aten.add_.Tensor)
def add(tape: ir.tape.Tape, a: ir.Value, b: ir.Value | float) -> ir.Value:
    """add(a, b) → Add, for two tensors with the same dtype."""
    return tape.op("Add", [a, b if isinstance(b, ir.Value) else constant(tape, b, to_torch_dtype(a.dtype))])  # type: ignore[arg-type]


@translates(aten.sym_size.int)
def sym_size(tape: ir.tape.Tape, x: ir.Value, axis: int) -> ir.Value:
    """sym_size(x, axis) → Shape, for this axis only."""
    return tape.op("Shape", [x], {"start": axis, "end": axis + 1})


@translates(aten.reshape.default, aten.view.default)
def reshape(tape: ir.tape.Tape, x: ir.Value, sizes: Sequence[ir.Value | int]) -> ir.Value:
    """reshape(x, sizes) → Reshape to the Concat of the sizes."""
    parts = [size if isinstance(size, ir.Value) else constant(tape, [size], torch.int64) for size in sizes]
    return tape.op("Reshape", [x, tape.op("Concat", parts, {"axis": 0})])


def constant(tape: ir.tape.Tape, value: Any, dtype: torch.dtype) -> ir.Value:
    """Store a number, or a list of numbers, as an initializer."""
    return tape.initializer(ir.tensor(torch.tensor(value, dtype=dtype), name=f"constant_{len(tape.initializers)}"))


def place(program: ExportedProgram, tape: ir.tape.Tape, values: dict[torch.fx.Node, ir.Value]) -> None:
    """Add an input or an initializer to `values` for each placeholder."""
    weights = {**program.state_dict, **program.constants}
    for spec, node in zip(program.graph_signature.input_specs, program.graph.find_nodes(op="placeholder"), strict=True):
        stored = spec.target and tape.initializer(ir.tensor(weights[spec.target].detach(), name=spec.target))
        values[node] = stored or ir.val(node.name)


def user_inputs(program: ExportedProgram) -> list[torch.fx.Node]:
    """Return the placeholders that are inputs of the module, not weights."""
    return [node for node in program.graph.find_nodes(op="placeholder") if node.name in program.graph_signature.user_inputs]


def axis_names(program: ExportedProgram, dynamic_shapes: Sequence[Mapping[int, str] | None]) -> dict[sympy.Expr, sympy.Symbol]:
    """Return the requested name for the symbol of each dynamic dimension."""
    pairs = zip(user_inputs(program), dynamic_shapes, strict=True)
    dynamic = [(node.meta["val"].shape[axis], name) for node, axes in pairs for axis, name in (axes or {}).items()]
    return {size.node.expr: sympy.Symbol(name) for size, name in dynamic}


def describe(value: ir.Value, node: torch.fx.Node, names: Mapping[sympy.Expr, sympy.Symbol]) -> ir.Value:
    """Set a value's name, type and shape from the captured node."""
    value.name, fake = node.name, node.meta["val"]
    if isinstance(fake, torch.Tensor):
        sizes = [size if isinstance(size, int) else str(size.node.expr.subs(names)) for size in fake.shape]
        value.type, value.shape = ir.TensorType(from_torch_dtype(fake.dtype)), ir.Shape(sizes)
    return value


def walk(
    program: ExportedProgram,
    tape: ir.tape.Tape,
    values: dict[torch.fx.Node, ir.Value],
    names: Mapping[sympy.Expr, sympy.Symbol],
    table: Mapping[Any, Translation],
) -> None:
    """Translate each call in the order of the graph."""
    for node in program.graph.nodes:
        if node.op == "call_function":
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)  # type: ignore[arg-type]
            values[node] = describe(table[node.target](tape, *args, **kwargs), node, names)


def convert(
    program: ExportedProgram, names: Mapping[sympy.Expr, sympy.Symbol], table: Mapping[Any, Translation] = registry, opset: int = 20
) -> torch.onnx.ONNXProgram:
    """Convert a captured program to ONNX.

    Raises:
        KeyError: the table lacks an operator.
        TypeError: a translation does not accept an argument of the call.
    """
    tape, values = ir.tape.Tape(), {}  # type: ignore[var-annotated]  # as the lesson writes it
    place(program, tape, values)
    inputs = [describe(values[node], node, names) for node in user_inputs(program)]
    walk(program, tape, values, names, table)
    outputs = [values[node] for node in program.graph.output_node().args[0]]
    return onnx_program(inputs, outputs, tape, program, opset)


def check_known(program: ExportedProgram, table: Mapping[Any, Translation]) -> None:
    """Raise NotImplementedError for operators without a translation, each with the source line that calls it."""
    calls = [node for node in program.graph.nodes if node.op == "call_function" and node.target not in table]
    if calls:
        lines = [f"{node.target}, called by `{node.meta['stack_trace'].splitlines()[-1].strip()}`" for node in calls]
        raise NotImplementedError("\n".join(["the registry lacks", *lines, "add each with @translates"]))


def capture(model: nn.Module, args: tuple[Any, ...], dynamic_shapes: Sequence[Mapping[int, str] | None]) -> ExportedProgram:
    """Capture a module with `torch.export` and decompose in-place operators."""
    dims = tree_map_only(str, lambda name: Dim.DYNAMIC, dynamic_shapes)
    return torch.export.export(model, args, dynamic_shapes=dims).run_decompositions({})


def export(
    model: nn.Module,
    args: tuple[Any, ...],
    dynamic_shapes: Sequence[Mapping[int, str] | None],
    table: Mapping[Any, Translation] = registry,
    opset: int = 20,
) -> torch.onnx.ONNXProgram:
    """Export a module to ONNX, with the axis names of `dynamic_shapes`.

    Raises:
        NotImplementedError: the table lacks an operator.
        TypeError: a translation does not accept an argument of a call.
    """
    program = capture(model, args, dynamic_shapes)
    check_known(program, table)
    return convert(program, axis_names(program, dynamic_shapes), table, opset)
