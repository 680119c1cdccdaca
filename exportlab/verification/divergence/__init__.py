"""Where a file parts from eager: the captured graph, node by node, beside the file. Not here: whether an export is right (verify)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from ...exporters import OnnxArtifact
from ...exporters.calling import by_signature
from ...exporters.to_onnx import NAMESPACE
from ...show.text import ir_model
from ..difference import TOLERANCES, Difference, Tolerances, difference_of
from .alignment import Alignment
from .beside import Beside
from .observed import Observed
from .rows import Divergence, Row

__all__ = ["Divergence", "Row", "compared", "first_difference"]


def first_difference(program: torch.onnx.ONNXProgram, /, *args: Any, **kwargs: Any) -> Divergence:
    """Run the captured graph node by node, and the file with every value as an output, and say where they part first.

    `args` and `kwargs` are those of the module, of any size. Values inside the branches of an `If`, the body of a `Loop` or a function
    are not looked at; what comes out of these is. All values are held in memory at once; weights are read where they are, and one that is
    stored transposed is copied once.

    Args:
        program: what `to_onnx` or `torch.onnx.export(dynamo=True)` returns; its `model` may have been changed since.

    Raises:
        TypeError, ValueError: it does not remember the captured graph, or the arguments are not those of the export. What the captured
            graph or ONNX Runtime raises is raised as it is.
    """
    inner = program.model if isinstance(program, OnnxArtifact) else program
    if not isinstance(inner, torch.onnx.ONNXProgram) or inner.exported_program is None:
        raise TypeError(f"this {type(program).__name__} does not remember the captured graph: pass an ONNXProgram, or both to `compared`")
    return compared(inner.exported_program, inner.model, args, kwargs)


def compared(
    captured: torch.export.ExportedProgram,
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
    model, calling = ir_model(file), by_signature(captured)
    _check_whole(captured)
    alignment = Alignment(captured, model)
    leaves = calling.feed(args, kwargs or {})
    found = Observed(model, calling, alignment.names()).values(args, kwargs or {})
    beside = Beside(captured, alignment, found, tolerances)
    results = beside.results(leaves)
    rows = (*beside.rows, *beside.outputs(results))
    divergence = Divergence(rows, tuple(beside.same), tuple(beside.unaligned), alone=Difference())
    if divergence.first:
        return divergence
    alone = Observed(model, calling, ()).values(args, kwargs or {})
    return replace(divergence, alone=difference_of([found[name] for name in alone], list(alone.values()), tolerances))


def _check_whole(captured: torch.export.ExportedProgram) -> None:
    if any(getattr(node.target, "namespace", "") == NAMESPACE for node in captured.graph.nodes):
        raise ValueError("exported with functions=, it holds equal blocks once, and cannot be run node by node: export without")
