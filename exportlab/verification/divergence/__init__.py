"""Where a file parts from eager: the captured graph, node by node, beside the file. Not here: whether an export is right (verify)."""

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
from ...exporters.to_onnx import NAMESPACE, RunProgram, at_sizes
from ...show.text import ir_model
from ..difference import TOLERANCES, Tolerances, check_tolerances
from .alignment import Alignment
from .call import Call
from .compare_nodes import Looked, readers_of
from .node_table import Divergence, Row
from .tap_outputs import Observed

__all__ = ["Divergence", "Row", "compared", "first_difference"]

WRITERS = {"pytorch": "torch.onnx.export", "fx2onnx": "to_onnx"}  # by the name that each puts into its files


def first_difference(
    program: torch.onnx.ONNXProgram | OnnxArtifact, /, *args: Any, tolerances: Tolerances = TOLERANCES, **kwargs: Any
) -> Divergence:
    """Say which captured node adds the most to what the file and eager are apart: its own error, for the file's own inputs to it.

    The file is run once with every value as an output, and once as it is: the outputs that are judged are those of the second, where ONNX
    Runtime may fuse what it likes. Then the captured graph is run: every node on the values that the file has at its
    inputs, so that it inherits no error, in eager's dtypes and in float64. A node is named when the file's value is further from both than
    the tolerance of the narrowest float up to there, by the scale of the tensor; or when what it rounds away moves an output by more than
    the tolerance, as an overflow or a cancellation in float16 does, in eager or in the file.

    `args` and `kwargs` are those of the module, of any size. Values inside the branches of an `If`, the body of a `Loop` or a function
    are not looked at; what comes out of these is, and then only the call in `forward` is known. All values are held in memory several
    times, and weights in float64; those of the file are read where they are, and one that is stored transposed is copied once.

    Args:
        program: what `to_onnx`, `torch.onnx.export(dynamo=True)` or `export` returns; its `model` may have been changed since.
        tolerances: `(rtol, atol)` by dtype; other dtypes are compared exactly. For a module that has an argument of this name, use
            `compared`.

    Raises:
        TypeError, ValueError: it does not remember the captured graph, or the arguments are not those of the export. What the captured
            graph or ONNX Runtime raises is raised as it is.
    """
    inner = program.model if isinstance(program, OnnxArtifact) else program
    captured = program.captured if isinstance(program, OnnxArtifact) else getattr(program, "exported_program", None)
    if captured is None or not isinstance(inner, (torch.onnx.ONNXProgram, ir.Model)):
        raise TypeError(f"this {type(program).__name__} does not remember the captured graph: pass an ONNXProgram, or both to `compared`")
    return compared(captured, inner, args, kwargs, tolerances=tolerances)


def compared(
    captured: torch.export.ExportedProgram | RunProgram,
    file: Any,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    tolerances: Tolerances = TOLERANCES,
) -> Divergence:
    """Do the same for a captured graph and a file that was made of it, wherever that is now: an onnx-ir model, a `ModelProto`, or a path.

    Args:
        tolerances: `(rtol, atol)` by dtype; other dtypes are compared exactly.

    Raises:
        as `first_difference`.
    """
    must_be(torch.export.ExportedProgram, RunProgram, captured=captured)
    must_be(Mapping, tolerances=tolerances)
    check_tolerances(tolerances)
    call = Sample(args, {} if kwargs is None else kwargs)
    model, calling = _model(file), by_signature(captured)
    _check_whole(captured)
    leaves = calling.feed(call.args, call.kwargs)
    captured = at_sizes(captured, leaves) if isinstance(captured, RunProgram) else captured
    alignment = Alignment(captured, model)
    found = Observed(model, calling, alignment.names()).values(call.args, call.kwargs)
    alone = Observed(model, calling, ()).values(call.args, call.kwargs)
    looked = Looked(Call(captured, alignment, leaves, found), alone, tolerances)
    rows, outputs = looked.rows()
    same, unaligned = tuple(looked.fed.same), tuple(looked.fed.unaligned)
    readers = {node.name: readers_of(node) for node in captured.graph.nodes}
    return Divergence(tuple(rows), same, unaligned, looked.fused(), outputs, _writer(model), tolerances, readers)


def _model(file: Any) -> ir.Model:
    """The model; one that is read here is put in order, which not all who write files do."""
    model = ir_model(file)
    if isinstance(file, (onnx.ModelProto, str, Path)):
        model.graph.sort()
    return model


def _writer(model: ir.Model) -> str:
    name = model.producer_name or ""
    return WRITERS.get(name, name or "a file")


def _check_whole(captured: torch.export.ExportedProgram | RunProgram) -> None:
    if any(getattr(node.target, "namespace", "") == NAMESPACE for node in captured.graph.nodes):
        raise ValueError("exported with functions=, it holds equal blocks once, and cannot be run node by node: export without")
