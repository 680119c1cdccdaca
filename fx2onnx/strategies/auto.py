"""From a module to a captured program: by torch.export, by running it, or whichever of the two can."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import nn

from ..compat import trees as pytree
from ..errors import InternalError, ToOnnxError, first_sentence
from ..guards.dims import moves
from ..patches.registry import apply_patches
from ..patches.transformer_encoder import mask_padding_as_in_eager
from ..paths.explore import capture_by_running
from ..structure.capture_result import Capture
from ..trace import sym_to_string  # noqa: F401 - its patches are entered
from ..trace.compute_budget import MAX_FLOPS, runs_of
from ..trace.packed_sequence import check_no_result_is_packed, trace_packed_sequences
from ..trace.refusal import (
    AliasDiverged,
    CallSequenceDiverged,
    ConstantDiverged,
    ListLengthFollowsSize,
    NeedsRealValues,
    NoFallback,
    RangeBoundRaises,
    TooManyPaths,
    TraceUnsupported,
)
from .eager_comparison import EagerComparison, numbers_read
from .library_guards import losses_in_libraries
from .torch_export import REFUSES, capture_by_export

CAPTURES = ("torch.export", "run", "auto")
Made = TypeVar("Made")


@dataclass(frozen=True)
class CaptureRequest:
    """How a module is to be captured: the arguments of `to_onnx` that say so."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    dynamic_shapes: Any
    strict: bool
    accept_ranges: tuple[str, ...]
    dumped: bool

    def capture_with_torch_export(self, model: Any) -> Capture:
        """Capture by torch.export. Raises what `capture_by_export` raises."""
        with (
            mask_padding_as_in_eager(model),
            nullcontext(()) if self.strict else trace_packed_sequences() as unchecked,
            numbers_read() as lines,
        ):
            made = capture_by_export(model, self.args, self.kwargs, self.dynamic_shapes, self.strict, self.accept_ranges)
        for line in [*lines][:1]:
            why = f"the model reads a number from a tensor at {line}, which torch.export replaces by a symbol"
            self.validate_against_eager(made, model, why)  # Python may ask it for its type
        if not isinstance(model, torch.export.ExportedProgram):
            made = replace(made, limits=tuple(dict.fromkeys((*made.limits, *self._losses_in_libraries(made, model)))))
        return _add_packed_limits(made, unchecked)

    def _losses_in_libraries(self, made: Capture, model: nn.Module) -> tuple[str, ...]:
        held = EagerComparison.of(made.program, model, self.args, self.kwargs, self.dynamic_shapes)
        return tuple(losses_in_libraries(held, self.accept_ranges))

    def validate_against_eager(self, made: Capture, model: Any, why: str, least: int = 2) -> None:
        """Hold a program of torch.export against the model. Raises what `Held.check` raises."""
        EagerComparison.of(made.program, model, self.args, self.kwargs, self.dynamic_shapes).check(why, bool(self.accept_ranges), least)

    def capture_by_tracing(self, model: Any) -> Capture:
        """Capture by running. Raises what `capture_by_running` raises."""
        if isinstance(model, torch.export.ExportedProgram):
            raise TraceUnsupported("the model is already captured: pass an nn.Module to capture it by running")
        for name, asked in {"strict": self.strict, "dump_exported_program": self.dumped}.items():
            if asked:
                raise TraceUnsupported(f'{name} is supported only with capture="torch.export"')
        with mask_padding_as_in_eager(model), trace_packed_sequences() as unchecked:
            made = capture_by_running(model, self.args, self.kwargs, self.dynamic_shapes, self.accept_ranges)
        return _add_packed_limits(made, unchecked)


def _add_packed_limits(made: Capture, unchecked: Iterable[str]) -> Capture:
    """Return a capture with what its file does not check of packed sequences, none of which it returns."""
    check_no_result_is_packed(made.program.call_spec.out_spec)
    return replace(made, limits=(*made.limits, *unchecked))


def capture_model(model: Any, way: CaptureRequest, by: str, use: Callable[[Capture], Made]) -> Made:
    """Capture a model and return what `use` makes of it; "auto" takes torch.export where a run, or what is made of it, is refused.

    A model that multiplies much is run without values, and with all of them only where everything else is refused.

    Raises:
        ToOnnxError: what the capture that was taken last raises, or `use`; a note says why the other was not taken.
    """
    with apply_patches("quiet_logs", "text_of_numbers", "plain_numbers"):
        return _capture(model, way, by, use)  # no decorator does it: its frame would be the line of layers that torch calls itself


def _capture(model: Any, way: CaptureRequest, by: str, use: Callable[[Capture], Made]) -> Made:
    if by == "torch.export":
        return use(way.capture_with_torch_export(model))
    try:
        return _trace_within_budget(model, way, use)
    except NoFallback:
        raise
    except ToOnnxError as error:
        unheard = error if isinstance(error, (ListLengthFollowsSize, TooManyPaths)) else None
        internal = error if isinstance(error, InternalError) else None
        heavy, reason = isinstance(error, NeedsRealValues), f"{type(error).__name__}: {first_sentence(error)}"
        odd = first_sentence(error) if isinstance(error, (CallSequenceDiverged, ConstantDiverged)) else ""
        if isinstance(error, AliasDiverged) and by != "run" and any(map(moves, pytree.tree_leaves(way.dynamic_shapes))):
            raise NoFallback(str(error)) from error
        if by == "run" and not heavy:
            raise
    if by == "run":
        return use(way.capture_by_tracing(model))
    try:
        found = way.capture_with_torch_export(model)
        if internal is not None:
            warnings.warn(f"the model is captured with torch.export, because of an {internal}", stacklevel=4)
        if odd:
            way.validate_against_eager(found, model, odd, least=1)
        return use(replace(found, trace_failure=reason))
    except NoFallback:
        raise
    except ToOnnxError as error:
        refused = error  # handled further down, where an error of the model's own stands in no other's context
    if internal is not None:
        internal.add_note(f"capture with torch.export also fails: {first_sentence(refused)}")
        raise internal
    if unheard is not None:
        if isinstance(unheard, TooManyPaths):
            unheard.add_note(f"torch.export also fails: {first_sentence(refused)}")
        raise unheard from refused
    if heavy:
        return use(way.capture_by_tracing(model))
    if first_sentence(refused).removeprefix(REFUSES) not in reason:
        refused.add_note(f"capture by running the model also fails: {reason}")
    raise refused


def _trace_within_budget(model: Any, way: CaptureRequest, use: Callable[[Capture], Made]) -> Made:
    """Run a model, without values if it multiplies much.

    Raises:
        NeedsRealValues: so run, it is refused; with values it may not be.
    """
    try:
        with runs_of(MAX_FLOPS):
            return use(way.capture_by_tracing(model))
    except NeedsRealValues:
        pass
    try:
        with runs_of(None):
            return use(way.capture_by_tracing(model))
    except (NeedsRealValues, RangeBoundRaises):
        raise
    except NoFallback:  # to which nothing but runs can say otherwise
        return use(way.capture_by_tracing(model))
    except TraceUnsupported as error:
        raise NeedsRealValues(f"the model is expensive to run, and tracing it without tensor values fails: {error}") from None
