"""From a module to a captured program: by torch.export, by running it, or whichever of the two can."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..errors import ToOnnxError, first_sentence
from ..patches.registry import patched
from ..patches.transformer_encoder import zeros_as_without_gradients
from . import text_of_numbers  # noqa: F401 - its patches are entered
from .by_export import REFUSES, Capture, capture_by_export
from .dims import moves
from .held import Held, numbers_read
from .of_libraries import losses_in_libraries
from .packed import check_no_result_is_packed, packing_described
from .running.by_running import capture_by_running
from .running.refusal import (
    CannotRun,
    CopyWritten,
    EndNotKept,
    LeftOut,
    ListAsLong,
    NumbersMove,
    SeenByRunsAlone,
    TooManyPaths,
    TooMuchWork,
)
from .running.work import LIGHT, runs_of

CAPTURES = ("torch.export", "run", "auto")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Way:
    """How a module is to be captured: the arguments of `to_onnx` that say so."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    dynamic_shapes: Any
    strict: bool
    accept_ranges: tuple[str, ...]
    functions: Any
    dumped: bool

    def by_export(self, model: Any) -> Capture:
        """Capture by torch.export. Raises what `capture_by_export` raises."""
        with (
            zeros_as_without_gradients(model),
            nullcontext(()) if self.strict else packing_described() as unchecked,
            numbers_read() as lines,
        ):
            made = capture_by_export(model, self.args, self.kwargs, self.dynamic_shapes, self.strict, self.accept_ranges, self.functions)
        for line in [*lines][:1]:
            why = f"the model reads a number from a tensor at {line}, which torch.export replaces by a symbol"
            self.check_held(made, model, why)  # Python may ask it for its type
        if not isinstance(model, torch.export.ExportedProgram):
            made = replace(made, limits=tuple(dict.fromkeys((*made.limits, *self._losses_in_libraries(made, model)))))
        return _unpacked(made, unchecked)

    def _losses_in_libraries(self, made: Capture, model: nn.Module) -> tuple[str, ...]:
        held = Held.of(made.program, model, self.args, self.kwargs, self.dynamic_shapes)
        return tuple(losses_in_libraries(held, self.accept_ranges))

    def check_held(self, made: Capture, model: Any, why: str, least: int = 2) -> None:
        """Hold a program of torch.export against the model. Raises what `Held.check` raises."""
        Held.of(made.program, model, self.args, self.kwargs, self.dynamic_shapes).check(why, bool(self.accept_ranges), least)

    def by_running(self, model: Any) -> Capture:
        """Capture by running. Raises what `capture_by_running` raises."""
        if isinstance(model, torch.export.ExportedProgram):
            raise CannotRun("the model is already captured: pass an nn.Module to capture it by running")
        for name, asked in {"strict": self.strict, "functions": self.functions, "dump_exported_program": self.dumped}.items():
            if asked:
                raise CannotRun(f'{name} is supported only with capture="torch.export"')
        with zeros_as_without_gradients(model), packing_described() as unchecked:
            made = capture_by_running(model, self.args, self.kwargs, self.dynamic_shapes, self.accept_ranges)
        return _unpacked(made, unchecked)


def _unpacked(made: Capture, unchecked: Iterable[str]) -> Capture:
    """Return a capture with what its file does not check of packed sequences, none of which it returns."""
    check_no_result_is_packed(made.program.call_spec.out_spec)
    return replace(made, limits=(*made.limits, *unchecked))


def captured(model: Any, way: Way, by: str, use: Callable[[Capture], Made]) -> Made:
    """Capture a model and return what `use` makes of it; "auto" takes torch.export where a run, or what is made of it, is refused.

    A model that multiplies much is run without values, and with all of them only where everything else is refused.

    Raises:
        ToOnnxError: what the capture that was taken last raises, or `use`; a note says why the other was not taken.
    """
    with patched("quiet_logs", "text_of_numbers", "plain_numbers"):
        return _captured(model, way, by, use)  # no decorator does it: its frame would be the line of layers that torch calls itself


def _captured(model: Any, way: Way, by: str, use: Callable[[Capture], Made]) -> Made:
    if by == "torch.export":
        return use(way.by_export(model))
    try:
        return _run_lightly(model, way, use)
    except SeenByRunsAlone:
        raise
    except ToOnnxError as error:
        unheard = error if isinstance(error, (ListAsLong, TooManyPaths)) else None
        heavy, reason = isinstance(error, TooMuchWork), f"{type(error).__name__}: {first_sentence(error)}"
        odd = first_sentence(error) if isinstance(error, (LeftOut, NumbersMove)) else ""
        if isinstance(error, CopyWritten) and by != "run" and any(map(moves, pytree.tree_leaves(way.dynamic_shapes))):
            raise SeenByRunsAlone(str(error)) from error
        if by == "run" and not heavy:
            raise
    if by == "run":
        return use(way.by_running(model))
    try:
        found = way.by_export(model)
        if odd:
            way.check_held(found, model, odd, least=1)
        return use(replace(found, not_run=reason))
    except SeenByRunsAlone:
        raise
    except ToOnnxError as error:
        refused = error  # handled further down, where an error of the model's own stands in no other's context
    if unheard is not None:
        unheard.add_note(f"torch.export also fails: {first_sentence(refused)}")
        raise unheard from refused
    if heavy:
        return use(way.by_running(model))
    if first_sentence(refused).removeprefix(REFUSES) not in reason:
        refused.add_note(f"capture by running the model also fails: {reason}")
    raise refused


def _run_lightly(model: Any, way: Way, use: Callable[[Capture], Made]) -> Made:
    """Run a model, without values if it multiplies much.

    Raises:
        TooMuchWork: so run, it is refused; with values it may not be.
    """
    try:
        with runs_of(LIGHT):
            return use(way.by_running(model))
    except TooMuchWork:
        pass
    try:
        with runs_of(None):
            return use(way.by_running(model))
    except (TooMuchWork, EndNotKept):
        raise
    except SeenByRunsAlone:  # to which nothing but runs can say otherwise
        return use(way.by_running(model))
    except CannotRun as error:
        raise TooMuchWork(f"the model is expensive to run, and tracing it without tensor values fails: {error}") from None
