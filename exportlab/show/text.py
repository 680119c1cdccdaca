"""Print FX and ONNX graphs as compact text, much shorter than the libraries' own output."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import torch

from fx2onnx.compat.operators import OpOverload

from ..checks import kind_of, must_be_path
from .table import WIDTH

if TYPE_CHECKING:
    import onnx_ir as ir

Program = torch.export.ExportedProgram | torch.fx.GraphModule
SHORT_DTYPE = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "b8", "int64": "i64",
    "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "complex64": "c64", "complex128": "c128",
}  # fmt: skip
CALLS = ("call_function", "call_method", "call_module")


def is_fx(source: Any) -> TypeGuard[Program]:
    """Return whether `source` contains an FX graph: an `ExportedProgram`, a `GraphModule`, or the captured program of `to_onnx`."""
    return isinstance(getattr(source, "graph_module", source), torch.fx.GraphModule)


def ir_model(source: Any) -> ir.Model:
    """Return the onnx-ir model in `source`: itself, its `.model`, an `onnx.ModelProto`, or the file at a path.

    Raises:
        TypeError: `source` has another type. OSError: the file cannot be read. ValueError: the file is not an ONNX model.
    """
    import onnx
    import onnx_ir as ir

    if isinstance(source, ir.Model):
        return source
    if isinstance(source, onnx.ModelProto):
        return ir.from_proto(source)
    if isinstance(source, (str, Path)):
        return _read(source)
    if hasattr(source, "model"):
        return ir_model(source.model)
    raise TypeError(f"no graph in {kind_of(source)}: pass an ExportedProgram, a GraphModule or an ONNX model")


def _read(path: str | Path) -> ir.Model:
    import onnx_ir as ir

    must_be_path(source=path)
    if Path(path).exists() and not Path(path).is_file():
        raise OSError(f"cannot read {path}: it is a folder, a device or a pipe")
    try:
        return ir.load(path)
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is not an ONNX model") from error


def op_name(node: torch.fx.Node) -> str:
    """Return the display name of an FX node's target: `aten.add.Tensor` becomes `add`. Others keep their full name without the library."""
    target = node.target
    if isinstance(target, OpOverload):
        namespace, name = target._schema.name.split("::")
        return name if namespace == "aten" else f"{namespace}.{name}"
    return getattr(target, "__name__", str(target))


def annotation(dtype: str, dims: Iterable[object]) -> str:
    """Return a dtype's short name and the shape: `f32[s77, 16]`."""
    return f"{SHORT_DTYPE.get(dtype, dtype)}[{', '.join(map(str, dims))}]"


def fx_annotation(node: torch.fx.Node) -> str:
    """Return dtype and shape of an FX node's tensor, `f32[s77, 16]`, or "" for other values."""
    value = node.meta.get("val", node.meta.get("example_value"))  # written by torch.export and by TorchDynamo
    if not isinstance(value, torch.Tensor):
        return ""
    return annotation(str(value.dtype).removeprefix("torch."), value.shape)


def value_annotation(value: ir.Value) -> str:
    """Return dtype and shape of an onnx-ir value, `f32[batch, 16]`, or "" if they are unknown."""
    if value.shape is None or value.dtype is None:
        return ""
    dims = [d if isinstance(d, int) else (d.value or "?") for d in value.shape]
    return annotation(value.dtype.numpy().name, dims)


def fx_inputs(program: Program) -> set[str]:
    """Return the names of the placeholders that are user inputs, without weights."""
    if not isinstance(program, torch.fx.GraphModule):
        return set(program.graph_signature.user_inputs)
    return {n.name for n in program.graph.nodes if n.op == "placeholder"}


def program(source: Any) -> None:
    """Print an `ExportedProgram` or `GraphModule` with one line per node, with shapes. The ranges of symbols follow at the end.

    Raises:
        TypeError: `source` has another type.
    """
    if not is_fx(source):
        raise TypeError(f"a {type(source).__name__} is not an FX program: use show.summary for ONNX models")
    inputs = fx_inputs(source)
    for node in source.graph.nodes:
        if node.op in CALLS or node.name in inputs:
            print(_fx_line(node))
        elif node.op == "output":
            print(f"return {_fx_argument(node.args[0])}")
    for symbol, values in getattr(source, "range_constraints", {}).items():
        print(f"{symbol} in [{values.lower}, {values.upper}]")


def _fx_line(node: torch.fx.Node) -> str:
    name = f"{node.name}: {fx_annotation(node)}" if fx_annotation(node) else node.name
    if node.op == "placeholder":
        return f"{name} = input"
    arguments = [_fx_argument(a) for a in node.args] + [f"{k}={_fx_argument(v)}" for k, v in node.kwargs.items()]
    return f"{name} = {op_name(node)}({', '.join(arguments)})"


def _fx_argument(value: Any) -> str:
    if isinstance(value, torch.fx.Node):
        return str(value.name)
    if isinstance(value, OpOverload):
        return str(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_fx_argument, value))}]"
    return textwrap.shorten(repr(value), 40, placeholder="…")


def summary(source: Any) -> None:
    """Print a short summary of an ONNX model: opset, inputs, outputs, counts of operators, and weights.

    `source` may be any ONNX argument of `show.graph`.

    Raises:
        TypeError: `source` is not an ONNX model.
    """
    model = ir_model(source)
    weights = [v.const_value for v in model.graph.initializers.values() if v.const_value is not None]
    domains = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in model.opset_imports.items())
    print(f"opset    {domains}")
    for kind, values in (("input", model.graph.inputs), ("output", model.graph.outputs)):
        for value in values:
            print(f"{kind:<8} {value.name}: {value_annotation(value)}")
    print(textwrap.fill(f"nodes    {_histogram(model)}", WIDTH, subsequent_indent=" " * 9))
    print(f"weights  {len(weights)} tensors, {sum(w.nbytes for w in weights):,} bytes")


def _histogram(model: ir.Model) -> str:
    counts = op_counts(model)
    return f"{sum(counts.values())}: " + ", ".join(f"{op} {n}" for op, n in counts.most_common())


def op_counts(model: ir.Model) -> Counter[str]:
    """Return the count of each operator in an onnx-ir model, including subgraphs and functions."""
    counts = Counter(node.op_type for node in model.graph.all_nodes())
    for function in model.functions.values():
        counts.update(node.op_type for node in function.all_nodes())
    return counts
