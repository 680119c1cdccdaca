"""`to_onnx` captures a module by running it or with torch.export, and translates each operator of the graph to ONNX nodes."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from importlib.metadata import distributions
from typing import Any

import torch

from .arguments import call_of, check_file, check_only, check_surroundings, check_weights, names_of
from .artifacts import Artifacts
from .caches import caches_known
from .canaries import check_hooks
from .check import check_numbers
from .errors import ToOnnxError, UnsupportedArgument, format_value, op_title
from .garbage import older_objects_frozen
from .internal_errors import internal_errors_explained
from .locking import CAPTURE_LOCK
from .lower.conversion import Conversion, ConversionOptions
from .mode import switch_to_eval
from .ops import own_translations, pair_translations
from .passes.pipeline import apply_passes
from .program import ConversionReport, Program
from .strategies.auto import CAPTURES, CaptureRequest, capture_model
from .strategies.dynamic_axes import asked_shapes
from .structure.capture_result import Capture
from .structure.outline import Functions
from .translate.dispatch import FALLBACKS, Dispatch
from .translate.sources import dispatch_of
from .versions import check_torch

__all__ = ["NEWEST_OPSET", "OLDEST_OPSET", "ToOnnxError", "to_onnx"]
__version__: str = next((found.version for found in distributions(name="exportlab")), "unknown")  # unknown: in a checkout, not installed
_STAY = 'the model writes into its inputs ({}): the exported model does not modify them; pass mutations="outputs" to return the new values'
_OF_FUNCTIONS = "functions must be True or a sequence of module classes"
OLDEST_OPSET, NEWEST_OPSET, _DEFAULT_OPSET = 18, 26, 20


def to_onnx(
    model: torch.nn.Module | torch.export.ExportedProgram, args: tuple[Any, ...] = (), f: str | os.PathLike[str] | None = None, *,
    kwargs: Mapping[str, Any] | None = None, verbose: bool | None = None, input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None, opset_version: int | None = None, dynamo: bool = True, external_data: bool | None = True,
    dynamic_shapes: Any = None, custom_translation_table: Mapping[Any, Any] | None = None, report: bool = False, optimize: bool = True,
    verify: bool = False, profile: bool = False, dump_exported_program: bool = False, artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True, keep_initializers_as_inputs: bool = False, dynamic_axes: Mapping[str, Any] | None = None,
    training: Any = torch.onnx.TrainingMode.EVAL, operator_export_type: Any = torch.onnx.OperatorExportTypes.ONNX,
    do_constant_folding: bool = True, custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[torch.nn.Module]] = False, autograd_inlining: bool = True, strict: bool = False,
    functions: Any = (), mutations: str = "error", fallback: bool = True, accept_ranges: Sequence[str] = (), capture: str = "auto",
) -> Program:  # fmt: skip
    """Export a PyTorch model to ONNX. docs/converter.md lists the supported values of the arguments of `torch.onnx.export`.

    Args:
        model: a module, or a `torch.export.ExportedProgram`, for which `args` and `kwargs` may be omitted and `strict` has no effect.
        f: the path of the ONNX model. `external_data`, `export_params` and `keep_initializers_as_inputs` determine how weights are saved.
        training: `TrainingMode.EVAL` exports a model in training mode as `eval()`, with a warning; `PRESERVE` keeps its mode.
        opset_version: 18 to 26, without conversion from another opset; 20 by default.
        dynamic_shapes: the dynamic dimensions, in the format of `torch.export.export`; a string names a dimension.
        custom_translation_table: translations by operator, which have priority: functions `f(g, *args)` or onnxscript functions.
        functions: module classes whose calls become ONNX local functions, or True for all submodules that torch.nn does not define. Calls
            of the same operators share one function; the report lists them, and the reasons why others do not.
        mutations: "error" refuses a model that changes a buffer or an input (captured by running, a changed input is only a warning: the
            exported model does not modify it). "outputs" makes a changed buffer an input, `running`, and returns all new values, such as
            `running_new`; the report has the first values.
        fallback: whether operators that `to_onnx` does not translate may use torchlib or be decomposed.
        accept_ranges: names of dynamic dimensions whose exported range may be narrower than requested.
        capture: "run" captures the model by running it, "torch.export" by tracing; "auto" runs it, and traces it if runs do not suffice.

    Returns:
        A `torch.onnx.ONNXProgram` with a `report`.

    Raises:
        UnsupportedArgument: an argument has an unsupported value (also a `ValueError`). OSError: `f` cannot be written.
        ToOnnxError: the model cannot be exported. Its subclasses report the line of the model and what to do.
    """
    check_only(
        model, dynamo=dynamo, training=training, operator_export_type=operator_export_type, do_constant_folding=do_constant_folding,
        custom_opsets=custom_opsets, autograd_inlining=autograd_inlining, verbose=verbose, report=report, optimize=optimize, verify=verify,
        profile=profile, strict=strict, dump_exported_program=dump_exported_program, fallback=fallback, external_data=external_data,
    )  # fmt: skip
    check_file(f, export_params=export_params, keep_initializers_as_inputs=keep_initializers_as_inputs, external_data=external_data)
    args, given = call_of(model, args, kwargs)
    names = names_of(input_names, output_names)
    asked = ConversionOptions(_DEFAULT_OPSET if opset_version is None else opset_version, *names, mutations)
    classes = _resolve_function_classes(functions, export_modules_as_functions)
    with CAPTURE_LOCK:  # another thread's torch.export may have swapped this model's weights for tensors without values
        _check_arguments(model, asked, classes, accept_ranges, capture)
        model = switch_to_eval(model, "training=TrainingMode.PRESERVE") if training == torch.onnx.TrainingMode.EVAL else model
    shapes = asked_shapes(model, args, given, dynamic_shapes, dynamic_axes, names)
    artifacts = Artifacts(artifacts_dir, report, profile, dump_exported_program, bool(verbose))
    way = CaptureRequest(args, given, shapes, strict, tuple(accept_ranges), dump_exported_program)
    sources = partial(dispatch_of, custom_translation_table or {}, own_translations(), asked.opset, fallback, pair_translations())
    with CAPTURE_LOCK, artifacts.kept(), internal_errors_explained(), caches_known(), older_objects_frozen():
        program = capture_model(model, way, capture, lambda found: _convert(found, asked, sources(), classes, optimize, artifacts))
        _warn_of(program.report.unchanged_inputs)
        if verify:
            check_numbers(program, model, args, given)
    return _save(program, f, export_params, keep_initializers_as_inputs, external_data)


def _warn_of(unchanged_inputs: Sequence[str]) -> None:
    if unchanged_inputs:
        warnings.warn(_STAY.format(", ".join(unchanged_inputs)), stacklevel=3)


def _convert(capture: Capture, asked: ConversionOptions, dispatch: Dispatch, classes: Any, optimize: bool, artifacts: Artifacts) -> Program:
    artifacts.has_captured(capture.program)
    functions = Functions(classes, capture.program.graph_module) if classes else None
    conversion = Conversion(capture.program, asked, capture.dim_names, dispatch, functions)
    model = conversion.model()
    report = replace(_report(dispatch, conversion), capture=capture.by, trace_failure=capture.trace_failure)
    report = replace(report, branches=capture.branches, limits=capture.limits)
    if functions is not None:
        report = replace(report, functions=functions.count_calls(model), shared=functions.shared, not_shared=functions.not_shared)
    if capture.limits:
        model.metadata_props["fx2onnx.limits"] = json.dumps(capture.limits)
    artifacts.has_made(program := Program(apply_passes(model) if optimize else model, capture.program, report))
    return program


def _save(program: Program, f: str | os.PathLike[str] | None, weights: bool, as_inputs: bool, external_data: bool | None) -> Program:
    if f is not None:
        program.save(f, include_initializers=weights, keep_initializers_as_inputs=as_inputs, external_data=external_data)
    return program


def _resolve_function_classes(functions: Any, export_modules_as_functions: bool | Collection[type[torch.nn.Module]]) -> Any:
    """Return the classes whose calls become functions, from whichever of the two arguments is given."""
    if not all(isinstance(asked, (bool, Sequence, Set)) for asked in (functions, export_modules_as_functions)):
        raise UnsupportedArgument(_OF_FUNCTIONS)
    if functions and export_modules_as_functions:
        raise UnsupportedArgument("functions and export_modules_as_functions are the same option: pass only functions")
    asked = functions or export_modules_as_functions
    return asked if isinstance(asked, bool) else tuple(asked)


def _check_arguments(model: Any, asked: ConversionOptions, functions: Any, accept_ranges: Any, capture: str) -> None:
    if check_torch():
        check_hooks(to_onnx)
    check_surroundings()
    if not isinstance(model, (torch.nn.Module, torch.export.ExportedProgram)):
        raise UnsupportedArgument(f"model must be a torch.nn.Module or an ExportedProgram, not a {type(model).__name__}")
    if "_modules" not in vars(model) and isinstance(model, torch.nn.Module):
        raise UnsupportedArgument(f"model is a {type(model).__name__} whose __init__ does not call super().__init__()")
    if not isinstance(asked.opset, int) or not OLDEST_OPSET <= asked.opset <= NEWEST_OPSET:
        text = f"opset_version={format_value(asked.opset)}: to_onnx supports opsets {OLDEST_OPSET} to {NEWEST_OPSET}"
        raise UnsupportedArgument(text)
    if not isinstance(asked.mutations, str) or asked.mutations not in ("error", "outputs"):
        raise UnsupportedArgument(f'mutations={format_value(asked.mutations)}: pass "error" or "outputs"')
    if not isinstance(capture, str) or capture not in CAPTURES:
        raise UnsupportedArgument(f"capture={format_value(capture)}: pass {', '.join(map(repr, CAPTURES))}")
    if not isinstance(functions, bool) and not all(isinstance(kind, type) for kind in functions):
        raise UnsupportedArgument(_OF_FUNCTIONS)
    if (
        isinstance(accept_ranges, str)
        or not isinstance(accept_ranges, Collection)
        or not all(isinstance(name, str) for name in accept_ranges)
    ):
        raise UnsupportedArgument(f"accept_ranges={format_value(accept_ranges)}: pass a sequence of names of dynamic dimensions")
    check_weights(model)


def _report(dispatch: Dispatch, conversion: Conversion) -> ConversionReport:
    sources = {source: len(set(nodes)) for source, nodes in sorted(dispatch.used.items())}
    fallbacks = {op_title(node.target): source for source, nodes in dispatch.used.items() if source in FALLBACKS for node in nodes}
    return ConversionReport(sources, fallbacks, mutations=conversion.mutated, unchanged_inputs=conversion.unchanged, state=conversion.state)
