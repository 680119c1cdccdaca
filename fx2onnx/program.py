"""The result of `to_onnx`: an `ONNXProgram` that is saved atomically and has a report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import to_torch_dtype
from torch.export.graph_signature import ConstantArgument, InputKind

from .arguments import check_ends, check_fed, check_state
from .caches import flatten_call
from .errors import UnsupportedArgument
from .saving import save_atomically

PROTOBUF_LIMIT = 2**31 - 1  # bytes of one message
EXTERNAL_DATA_ABOVE = 500_000_000  # bytes of weights; a single file is in memory three times before it is written


@dataclass(frozen=True)
class ConversionReport:
    """How a program was exported.

    Attributes:
        sources: where the translation of each operator call came from, counted: `own`, `custom`, `torchlib`, `decomposed`.
        fallbacks: the operators that were not translated by our own table or the caller's, with the source used.
        functions: how often each local function is called.
        shared: the modules that call a local function of another module, and that one, by path.
        not_shared: the modules that call no local function, or one of their own beside that of another module, and why.
        mutations: the buffers and inputs that the model changes; `name_new`, after the results, is the new value.
        unchanged_inputs: the inputs that the model writes into; the exported model computes with the new values, but leaves its inputs
        unchanged.
        state: the changed buffers, which are inputs, each with its value at the export, for the first call.
        capture: what captured the model, "run" or "torch.export".
        trace_failure: why capturing by running failed, if it was tried first.
        branches: the lines of the conditions of which both branches are exported, if the model was captured by running.
        limits: checks that the exported model lacks. Captured by running: conditions on values whose other branch raises, with the error.
            Captured by torch.export: the asserts of the program, and its guards if it was passed in. The bounds of each `Dim`, and ranges
            that `accept_ranges` accepted. The metadata of the model contains them, too.
    """

    sources: Mapping[str, int] = field(default_factory=dict)
    fallbacks: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, int] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)
    not_shared: Mapping[str, str] = field(default_factory=dict)
    mutations: tuple[str, ...] = ()
    unchanged_inputs: tuple[str, ...] = ()
    state: Mapping[str, torch.Tensor] = field(default_factory=dict)
    capture: str = "torch.export"
    trace_failure: str = ""
    branches: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


class Program(torch.onnx.ONNXProgram):
    """A `torch.onnx.ONNXProgram` with a `report`, which is saved atomically."""

    def __init__(self, model: ir.Model, exported_program: torch.export.ExportedProgram, report: ConversionReport) -> None:
        super().__init__(model, exported_program)
        self.report = report

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[torch.Tensor]:
        """Run the exported model in ONNX Runtime with the arguments of the module, or with the inputs of the exported model in order.

        State that is not passed has its value at the export.

        Raises:
            ValueError: a number differs from its constant in the exported model. UnsupportedArgument: an argument is not supported, or
            there
                are more than inputs. Errors of ONNX Runtime are not changed.
        """
        assert self.exported_program is not None
        check_ends(args, kwargs)
        order = self.exported_program.call_spec.in_spec.child(1).context or ()
        ordered = {name: kwargs[name] for name in order} if set(order) == set(kwargs) else kwargs
        leaves, spec = flatten_call(args, ordered)
        as_exported = spec == self.exported_program.call_spec.in_spec
        given = _inputs_among(leaves, self.exported_program) if as_exported else leaves
        check_fed(given, [str(value.name) for value in self.model.graph.inputs])
        return super().__call__(*given, *self._state_after(len(given)))

    def _state_after(self, given: int) -> list[torch.Tensor]:
        """Return the initial values of the inputs after the first `given` ones if all of these are state, else nothing."""
        rest = [str(value.name) for value in self.model.graph.inputs][given:]
        return [self.report.state[name] for name in rest] if set(rest) <= set(self.report.state) else []

    def apply_weights(self, state_dict: dict[str, torch.Tensor]) -> None:
        """Replace the weights of these names.

        Raises:
            UnsupportedArgument: a value is not a tensor, or has another shape or dtype than the weight; or the exported model stores the
                weight transposed, or folded into a convolution. Nothing is changed.
        """
        check_state(state_dict)
        held = self.model.graph.initializers
        if changed := [name for name in state_dict if name not in held and any(other.startswith(f"{name}/") for other in held)]:
            raise UnsupportedArgument(
                f"the exported model stores {', '.join(changed)} in another form: load the weights into the model, and export it again"
            )
        for name, value in state_dict.items():
            _check_fits(name, value, held)
        super().apply_weights(state_dict)

    def save(
        self,
        destination: str | os.PathLike[str],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Save as `torch.onnx.ONNXProgram.save` does; large weights are streamed into a file next to the model.

        Args:
            include_initializers: whether the file contains the weights.
            keep_initializers_as_inputs: whether the weights are inputs as well, so that a call may replace them.
            external_data: whether the weights are in a second file, of the same name and `.data`; None decides by their size. If a model
                is replaced, the new weights get a new file name, so that the old model is never read with them.

        Raises:
            OSError: the folder does not exist or cannot be written, or `destination` must not be replaced. No files are left behind.
            UnsupportedArgument: a single file was requested, but the weights do not fit into one.
        """
        if external_data is False and include_initializers:
            _check_fits_into_one_file(self._bytes())
        beside = external_data or (external_data is None and self._bytes() > EXTERNAL_DATA_ABOVE)
        with self._place_weights(include_initializers, keep_initializers_as_inputs):
            save_atomically(self.model, destination, beside and include_initializers)

    @contextmanager
    def _place_weights(self, in_file: bool, as_inputs: bool) -> Iterator[None]:
        """Move the weights out of the model, or make them inputs, inside the context; other constants do not change."""
        graph = self.model.graph
        everything = dict(graph.initializers)
        weights = {name: value for name, value in everything.items() if self._is_of_the_model(name)}
        added = [value for value in weights.values() if as_inputs and not value.is_graph_input()]
        graph.inputs.extend(added)
        for name in () if in_file else weights:
            del graph.initializers[name]
        try:
            yield
        finally:
            graph.initializers.clear()
            graph.initializers.update(everything)
            del graph.inputs[len(graph.inputs) - len(added) :]

    def _is_of_the_model(self, initializer: str) -> bool:
        """Return whether an initializer is a parameter or a buffer: unchanged, transposed (`weight/T`) or folded."""
        assert self.exported_program is not None
        name = initializer.partition("/")[0]
        return name in self.exported_program.state_dict or name in self.exported_program.constants

    def _bytes(self) -> int:
        return sum(value.const_value.nbytes for value in self.model.graph.initializers.values() if value.const_value is not None)


def _check_fits_into_one_file(weights: int) -> None:
    """Raise `UnsupportedArgument` if the weights have more bytes than a protobuf message can."""
    if weights > PROTOBUF_LIMIT:
        raise UnsupportedArgument(
            f"the weights take {weights / 1e9:.2f} GB, which is larger than the 2 GiB limit of one .onnx file (a protobuf message): "
            "omit external_data or pass external_data=True, which writes the weights to a second file"
        )


def _check_fits(name: str, value: torch.Tensor, held: Mapping[str, ir.Value]) -> None:
    """Raise `UnsupportedArgument` if the exported model has a weight of this name with another shape or dtype."""
    weight = held[name].const_value if name in held else None
    if weight is None:
        return
    was, now = (to_torch_dtype(weight.dtype), [*weight.shape]), (value.dtype, [*value.shape])
    if was != now:
        raise UnsupportedArgument(
            f"{name} is {was[0]} {was[1]} in the exported model, but {now[0]} {now[1]} in state_dict: export the model again"
        )


def _inputs_among(leaves: Sequence[Any], program: torch.export.ExportedProgram) -> list[Any]:
    """Return the arguments that are inputs of the exported model; the others are constants in it."""
    taken = [spec.arg for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    for leaf, given in zip(leaves, taken, strict=True):
        if isinstance(given, ConstantArgument) and isinstance(leaf, (int, float, str)) and leaf != given.value:
            raise ValueError(f"{given.name} is the constant {given.value!r} in this model, but the call passes {leaf!r}: export it again")
    return [leaf for leaf, given in zip(leaves, taken, strict=True) if not isinstance(given, ConstantArgument)]
