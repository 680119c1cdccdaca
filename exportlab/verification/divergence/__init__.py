"""Find the node where an exported model diverges from eager, by comparing it with the captured graph. For a verdict, use `verify`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import torch

from ...cases import Sample
from ...checks import must_be
from ...exporters import OnnxArtifact
from ...exporters.calling import by_signature
from ...exporters.to_onnx import FUNCTION_DOMAIN, RunProgram, specialise_program
from ...show.text import ir_model
from ..difference import TOLERANCES, Tolerances, check_tolerances
from .alignment import Alignment
from .call import Call
from .compare_nodes import Looked, readers_of
from .node_table import Divergence, Row
from .tap_outputs import Observed

__all__ = ["Divergence", "Row", "compared", "first_difference"]

WRITERS = {"pytorch": "torch.onnx.export", "fx2onnx": "to_onnx"}  # exporters by producer name


def first_difference(
    program: torch.onnx.ONNXProgram | OnnxArtifact, /, *args: Any, tolerances: Tolerances = TOLERANCES, **kwargs: Any
) -> Divergence:
    """Find the captured node that adds most to the difference between the exported model and eager.

    The model runs twice: once with each value as an additional output, and once unchanged. The judged outputs are those of the second run,
    in which ONNX Runtime may fuse nodes. Then each captured node runs on the model's own values of its inputs, in eager's dtypes and in
    float64, so that it inherits no error. A node is reported in two cases: the model's value differs from both by more than the
    tolerance, or the node's rounding changes an output by more than the tolerance. The second case includes overflow and cancellation in
    float16, in eager or in the model. The tolerance is that of the narrowest float dtype up to the node, by the scale of the tensor.

    `args` and `kwargs` are the module's arguments, at any size. Values inside an `If` branch, a `Loop` body or a function are not
    compared, only their outputs, for which just the call in `forward` is known. All values are in memory several times, and the weights
    also in float64. The model's weights are not copied, except for transposed ones.

    Args:
        program: the result of `to_onnx`, `torch.onnx.export(dynamo=True)` or `export`; its `model` may have been changed since.
        tolerances: `(rtol, atol)` by dtype; other dtypes must be equal. If the module has an argument with this name, use
            `compared`.

    Raises:
        TypeError, ValueError: the program doesn't contain the captured graph, or the arguments don't match those of the export. Errors
            of the captured graph and of ONNX Runtime are passed through.
    """
    inner = program.model if isinstance(program, OnnxArtifact) else program
    captured = program.captured if isinstance(program, OnnxArtifact) else getattr(program, "exported_program", None)
    if captured is None or not isinstance(inner, (torch.onnx.ONNXProgram, ir.Model)):
        raise TypeError(f"this {type(program).__name__} doesn't contain the captured graph: pass an ONNXProgram, or both to `compared`")
    return compared(captured, inner, args, kwargs, tolerances=tolerances)


def compared(
    captured: torch.export.ExportedProgram | RunProgram,
    file: Any,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    tolerances: Tolerances = TOLERANCES,
) -> Divergence:
    """Do the same for a captured graph and a model that was made from it: an onnx-ir model, a `ModelProto`, or a path.

    Args:
        tolerances: `(rtol, atol)` by dtype; other dtypes must be equal.

    Raises:
        as `first_difference`.
    """
    must_be(torch.export.ExportedProgram, RunProgram, captured=captured)
    must_be(Mapping, tolerances=tolerances)
    check_tolerances(tolerances)
    call = Sample(args, {} if kwargs is None else kwargs)
    model, calling = _model(file), by_signature(captured)
    _check_whole(model)
    leaves = calling.feed(call.args, call.kwargs)
    captured = specialise_program(captured, leaves) if isinstance(captured, RunProgram) else captured
    alignment = Alignment(captured, model)
    found = Observed(model, calling, alignment.names()).values(call.args, call.kwargs)
    alone = Observed(model, calling, ()).values(call.args, call.kwargs)
    looked = Looked(Call(captured, alignment, leaves, found), alone, tolerances)
    rows, outputs = looked.rows()
    same, unaligned = tuple(looked.fed.same), tuple(looked.fed.unaligned)
    readers = {node.name: readers_of(node) for node in captured.graph.nodes}
    return Divergence(tuple(rows), same, unaligned, looked.fused(), outputs, _writer(model), tolerances, readers)


def _model(file: Any) -> ir.Model:
    """Return the model. Sort the nodes of a model that is read here, because not all exporters sort them."""
    model = ir_model(file)
    if isinstance(file, (onnx.ModelProto, str, Path)):
        model.graph.sort()
    return model


def _writer(model: ir.Model) -> str:
    name = model.producer_name or ""
    return WRITERS.get(name, name or "a file")


def _check_whole(model: ir.Model) -> None:
    if any(domain == FUNCTION_DOMAIN for domain, *_ in model.functions):
        raise ValueError("this model was exported with functions=, so it cannot run node by node: export it without functions=")
