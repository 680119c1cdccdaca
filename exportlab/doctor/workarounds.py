"""List the workarounds to try when no plain export is correct. They change the export call, but not the model's code."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree

from ..cases import Sample
from ..eager import called_once
from ..exporters import Artifact, Exporter
from ..exporters.capture import marked_program
from ..exporters.to_onnx import is_in_training
from ..outcomes import Outcome
from ..patches import as_containers, for_model, own_functions
from .events import MODEL, Trial
from .subject import Subject, patient_of
from .trial import Wrap

Table = Callable[[torch.export.ExportedProgram], dict[Any, Callable[..., Any]] | None]
UNKNOWN = "in output, which is not a known type"
PATCHABLE = "data-dependent|vmap"
FOREIGN = re.compile(r"(?:op='|cannot export )([\w.]+)")
NARROW_OR_WIDE = (torch.bfloat16, torch.float16, torch.float64)


@dataclass(frozen=True)
class Workaround:
    """One workaround.

    Attributes:
        label: the exporter and the change. before, exports: see `Trial`.
        fits: returns whether the workaround may help, given the earlier trials.
        only: the limited inputs for which the result is valid. wrapped: wraps the exporter in a preparation step.
        around: a context manager for the export. has_own_shapes: whether its `dynamic_shapes` differ from those of the samples.
        lines: returns `before`, if it depends on the model.
    """

    label: str
    exporter: str
    fits: Callable[[Subject, Sequence[Trial]], bool]
    options: Mapping[str, Any] = field(default_factory=dict)
    change: Callable[[Subject], Subject] = lambda patient: patient
    before: str = ""
    exports: str = MODEL
    only: str = ""
    wrapped: Wrap = lambda exporter: exporter
    around: Callable[[Subject], AbstractContextManager[Any]] = lambda patient: nullcontext()
    has_own_shapes: bool = False
    lines: Callable[[Subject], str] | None = None

    def trial(self) -> Trial:
        """Return the trial for this workaround, before it is run."""
        return Trial(self.exporter, self.label, options=self.options, only=self.only, before=self.before, exports=self.exports, plain=False)


def _returns_a_record(patient: Subject, tried: Sequence[Trial]) -> bool:
    return any(t.failure is not None and UNKNOWN in t.failure.message for t in tried)


def _records(patient: Subject) -> list[type]:
    """Return the dataclasses that the model returns and that are not registered with PyTorch."""
    leaves = pytree.tree_leaves(called_once(patient.module, patient.samples[0]))
    return list(dict.fromkeys(type(leaf) for leaf in leaves if is_dataclass(leaf)))


@contextmanager
def _records_known(patient: Subject) -> Iterator[None]:
    with as_containers(*_records(patient)):
        yield


def _render_registrations(patient: Subject) -> str:
    return "\n".join(f"torch.export.register_dataclass({kind.__name__})  # call it once for your class" for kind in _records(patient))


def _failed_by(kind: str, exporter: str, tried: Sequence[Trial]) -> bool:
    return any(t.exporter == exporter and t.failure is not None and kind in t.failure.types for t in tried)


def _forgets(patient: Subject, tried: Sequence[Trial]) -> bool:
    """Return whether `to_onnx` fails because the model modifies state, or warns that the exported model doesn't modify its arguments."""
    return _failed_by("MutationError", "to_onnx", tried) or any(t.warns_of_its_arguments for t in tried)


def _got_past_capture(patient: Subject, tried: Sequence[Trial]) -> bool:
    return any(t.exporter == "dynamo" and t.outcome not in (Outcome.CAPTURE, Outcome.OK) for t in tried)


def _was_refused_for_values(patient: Subject, tried: Sequence[Trial]) -> bool:
    return any(t.outcome is Outcome.CAPTURE and t.failure is not None and re.search(PATCHABLE, t.failure.message) for t in tried)


def _refused_capture(patient: Subject, tried: Sequence[Trial]) -> bool:
    return any(t.exporter == "to_onnx" and t.outcome is Outcome.CAPTURE for t in tried)


def _has_rare_floats(patient: Subject, tried: Sequence[Trial]) -> bool:
    tensors = [*patient.module.parameters(), *(leaf for leaf in patient.samples[0].leaves() if isinstance(leaf, torch.Tensor))]
    return any(t.outcome in (Outcome.LOAD, Outcome.RUN) for t in tried) and any(t.dtype in NARROW_OR_WIDE for t in tensors)


def _is_in_training(patient: Subject, tried: Sequence[Trial]) -> bool:
    return is_in_training(patient.module)


def _has_sizes(patient: Subject, tried: Sequence[Trial]) -> bool:
    return bool(patient.dynamic_shapes)


def _was_refused_later(patient: Subject, tried: Sequence[Trial]) -> bool:
    return any(t.exporter in ("to_onnx", "dynamo") and t.outcome in (Outcome.CONVERT, Outcome.LOAD, Outcome.RUN) for t in tried)


def _lacks_an_operator(patient: Subject, tried: Sequence[Trial]) -> bool:
    named = [name for t in tried if t.failure is not None for name in FOREIGN.findall(t.failure.message)]
    return any(not name.startswith("aten") for name in named)


def _always(patient: Subject, tried: Sequence[Trial]) -> bool:
    return True


def to_float32(patient: Subject) -> Subject:
    """Return the same module and samples in float32."""

    def widened(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.float() if tensor.is_floating_point() else tensor

    samples = [Sample(*pytree.tree_map_only(torch.Tensor, widened, (s.args, dict(s.kwargs)))) for s in patient.samples]
    return patient_of(copy.deepcopy(patient.module).float(), samples, patient.dynamic_shapes, patient.train)


def switch_to_eval(patient: Subject) -> Subject:
    """Set the module to evaluation mode. It isn't copied, because this runs in a child process."""
    return replace(patient, module=patient.module.eval())


def make_static(patient: Subject) -> Subject:
    """Return the subject with the first sample only and static sizes."""
    return replace(patient, samples=patient.samples[:1], made=(), dynamic_shapes=None)


class Wrapper:
    """Base class of exporters that wrap another exporter."""

    def __init__(self, exporter: Exporter) -> None:
        self.exporter, self.name = exporter, exporter.name

    def missing(self) -> str | None:
        """Return what the wrapped exporter is missing."""
        return self.exporter.missing()

    def stage(self, error: Exception) -> Outcome:
        """Return the stage of an error, as classified by the wrapped exporter."""
        return self.exporter.stage(error)


class Decomposed(Wrapper):
    """An exporter that decomposes the captured graph first."""

    def __init__(self, exporter: Exporter, table: Table = lambda program: None) -> None:
        super().__init__(exporter)
        self.table = table

    def export(
        self,
        module: nn.Module,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        dynamic_shapes: Any = None,
        **options: Any,
    ) -> Artifact:
        """Capture the module, decompose the graph and export it."""
        program = marked_program(module, args, kwargs, dynamic_shapes, strict=False)
        return self.exporter.export(program.run_decompositions(self.table(program)), args, kwargs, **options)


def apply_patches(patient: Subject) -> AbstractContextManager[list[str]]:
    """Apply the patches that the model needs."""
    return for_model(patient.module, patient.samples[0].args, patient.samples[0].kwargs)


def looked_at_again(patient: Subject) -> Subject:
    """Inspect the samples again with registered containers, so that dimensions inside them can be dynamic."""
    shapes = patient.dynamic_shapes if patient.declared else None
    return patient_of(patient.module, patient.samples, shapes, patient.train)


def _calls_for_patches(patient: Subject, tried: Sequence[Trial]) -> bool:
    """Return whether the capture failed on a value, or an argument is an unregistered container, such as a cache or a dataclass."""
    with apply_patches(patient) as applied:
        containers = any("containers" in reason for reason in applied)
    return containers or _was_refused_for_values(patient, tried)


PATCHED = "with exportlab.patches.for_model(module, args, kwargs):"
DECOMPOSE = 'program = exportlab.export("torch.export", {model}, args, kwargs{shapes}).model.run_decompositions()'
WRITTEN_OUT = """program = exportlab.export("torch.export", {model}, args, kwargs{shapes}).model
program = program.run_decompositions(exportlab.patches.own_functions(program))"""
WIDEN = (
    "args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, lambda x: x.float() if x.is_floating_point() else x, (args, kwargs))"
)


def _build_patched_workaround(exporter: str) -> Workaround:
    again = {"change": looked_at_again, "around": apply_patches, "has_own_shapes": True}
    return Workaround(f"{exporter}, patched", exporter, _calls_for_patches, before=PATCHED, **again)  # type: ignore[arg-type]


def _build_record_workaround(exporter: str) -> Workaround:
    return Workaround(f"{exporter}, result registered", exporter, _returns_a_record, around=_records_known, lines=_render_registrations)


def _written_out(exporter: str) -> Workaround:
    def wrapped(inner: Exporter) -> Exporter:
        return Decomposed(inner, own_functions)

    label = f"{exporter}, custom operators decomposed"
    return Workaround(label, exporter, _lacks_an_operator, before=WRITTEN_OUT, exports="program", wrapped=wrapped)


WORKAROUNDS = (
    _build_record_workaround("to_onnx"),
    _build_record_workaround("dynamo"),
    Workaround('to_onnx, mutations="outputs"', "to_onnx", _forgets, {"mutations": "outputs"}),
    Workaround("dynamo, optimize=False", "dynamo", _got_past_capture, {"optimize": False}),
    _build_patched_workaround("to_onnx"),
    _build_patched_workaround("dynamo"),
    _written_out("to_onnx"),
    _written_out("dynamo"),
    Workaround("to_onnx, decomposed", "to_onnx", _was_refused_later, before=DECOMPOSE, exports="program", wrapped=Decomposed),
    Workaround("to_onnx, strict=True", "to_onnx", _refused_capture, {"strict": True}),
    Workaround("to_onnx of module.float()", "to_onnx", _has_rare_floats, change=to_float32, before=WIDEN, exports="{model}.float()"),
    Workaround("to_onnx of module.eval()", "to_onnx", _is_in_training, change=switch_to_eval, exports="module.eval()"),
    Workaround("torchscript", "torchscript", _always),
    Workaround("to_onnx, static", "to_onnx", _has_sizes, change=make_static, only="the sizes of the first sample"),
)
