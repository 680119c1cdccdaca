"""`to_onnx`: captures a module with torch.export; an interpreter turns each operator of the graph into ONNX nodes where it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .blocks.functions import Blocks
from .build.conversion import Conversion, ConversionOptions
from .build.passes import passes_applied
from .capture.by_export import capture_by_export
from .errors import ToOnnxError, op_title
from .ops import own_translations
from .program import ConversionReport, Program
from .translate.dispatch import FALLBACKS, Dispatch
from .translate.sources import dispatch_of

__all__ = ["NEWEST_OPSET", "OLDEST_OPSET", "ToOnnxError", "to_onnx"]
OLDEST_OPSET, NEWEST_OPSET, _DEFAULT_OPSET = 18, 26, 20


def to_onnx(
    model: torch.nn.Module | torch.export.ExportedProgram,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int = _DEFAULT_OPSET,
    strict: bool = False,
    functions: Any = (),
    custom_translation_table: Mapping[Any, Any] | None = None,
    mutations: str = "error",
    fallback: bool = True,
    accept_ranges: Sequence[str] = (),
) -> Program:
    """Export a model to ONNX: the arguments and the result are those of `torch.onnx.export(dynamo=True)`.

    Args:
        model: a module, or a `torch.export.ExportedProgram` (then `args`, `kwargs`, `dynamic_shapes` and `strict` say nothing new).
        dynamic_shapes: the axes that move, as `torch.export.export` takes them; a string names an axis, in the file as well.
        opset_version: 18 to 26, written as asked, never converted.
        functions: classes whose calls become ONNX local functions, or True for every submodule that torch.nn does not define.
            Equal blocks are captured once; the report says which were proven equal, and why others were not.
        custom_translation_table: translations by operator, before all others: functions `f(g, *args)` like ours, or onnxscript functions.
        mutations: "error" refuses a model that changes a buffer or an input; "outputs" returns the new values as further outputs, and makes
            a changed buffer an input whose default is its value at export.
        fallback: whether an operator without a translation of ours may take torchlib's, or be decomposed.
        accept_ranges: names of axes whose range may be narrower than asked.

    Returns:
        a `torch.onnx.ONNXProgram`, with a `report`.

    Raises:
        ValueError: an argument is none of what is said above.
        CaptureError, FrozenDimension, UnsupportedOps, MutationError, NameCollision: what the model does cannot be a file; all of them
            are `ToOnnxError`, and say where in the model and what to do.
    """
    _check_arguments(model, args, opset_version, strict, functions, mutations)
    capture = capture_by_export(
        model, args, kwargs or {}, dynamic_shapes=dynamic_shapes, strict=strict, accept_ranges=accept_ranges, functions=functions
    )
    dispatch = dispatch_of(custom_translation_table or {}, own_translations(), opset_version, fallback)
    asked = ConversionOptions(opset_version, input_names or (), output_names or (), mutations)
    blocks = Blocks(capture.sharing) if capture.sharing else None
    conversion = Conversion(capture.program, asked, capture.dim_names, dispatch, blocks)
    model_made = passes_applied(conversion.model())
    return Program(model_made, capture.program, _report(dispatch, blocks, conversion.mutated))


def _check_arguments(model: Any, args: Any, opset_version: Any, strict: bool, functions: Any, mutations: str) -> None:
    if not isinstance(model, (torch.nn.Module, torch.export.ExportedProgram)):
        raise ValueError(f"model must be a torch.nn.Module or an ExportedProgram, not a {type(model).__name__}")
    if not isinstance(args, tuple):
        raise ValueError(f"args must be a tuple of positional arguments, not a {type(args).__name__}: write (x,) for one")
    if not isinstance(opset_version, int) or not OLDEST_OPSET <= opset_version <= NEWEST_OPSET:
        raise ValueError(f"opset_version={opset_version!r}: to_onnx writes {OLDEST_OPSET} to {NEWEST_OPSET}, as ONNX Runtime runs them")
    if mutations not in ("error", "outputs"):
        raise ValueError(f'mutations={mutations!r}: pass "error" or "outputs"')
    if functions and (strict or isinstance(model, torch.export.ExportedProgram)):
        raise ValueError("functions marks blocks while the module is captured: pass a module, and strict=False")
    if functions is not True and not all(isinstance(kind, type) for kind in functions):
        raise ValueError("functions must be True or a sequence of module classes")


def _report(dispatch: Dispatch, blocks: Blocks | None, mutations: tuple[str, ...]) -> ConversionReport:
    sources = {source: len(nodes) for source, nodes in sorted(dispatch.used.items())}
    fallbacks = {op_title(node.target): source for source, nodes in dispatch.used.items() if source in FALLBACKS for node in nodes}
    if blocks is None:
        return ConversionReport(sources, fallbacks, mutations=mutations)
    calls = {name: len(nodes) for name, nodes in blocks.calls.items()}
    return ConversionReport(sources, fallbacks, calls, dict(blocks.sharing.repeated), dict(blocks.sharing.alone), mutations)
