"""What `to_onnx` returns: torch's own ONNXProgram, saved whole or not at all, with a report."""

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
EXTERNAL_DATA_ABOVE = 500_000_000  # bytes of weights; a single file is made in memory, three times over, before it is written


@dataclass(frozen=True)
class ConversionReport:
    """How a program came to be.

    Attributes:
        sources: where the translation of each operator call came from, counted: `own`, `custom`, `torchlib`, `decomposed`.
        fallbacks: the operators that were not translated by our own table or the caller's, with the source used.
        functions: how often each local function is called.
        shared: the modules that call a local function of another module, and that one, by path.
        not_shared: the modules that call no local function, or one of their own beside that of another module, and why.
        mutations: the buffers and inputs that the model changes; `name_new`, after the results, is the new value.
        unchanged_inputs: the inputs that the model writes into; the file computes with what is written, and leaves the inputs as they are.
        state: the changed buffers, which are inputs, each with its value at the export: what the first call gets.
        capture: what captured the model, "run" or "torch.export".
        trace_failure: why it was not captured by running, where that was tried first.
        branches: the lines of the tests whose both sides are in the file, where it was captured by running.
        limits: what eager checks and the file does not: the tests of values whose other side raises, and what; where torch.export
            captured it, the asserts of its program, and its guards if it was passed in; the ends of a `Dim`, and what
            `accept_ranges` accepted. The metadata of the file has them, too.
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
    """A `torch.onnx.ONNXProgram` with a `report`, whose file is written whole or not at all."""

    def __init__(self, model: ir.Model, exported_program: torch.export.ExportedProgram, report: ConversionReport) -> None:
        super().__init__(model, exported_program)
        self.report = report

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[torch.Tensor]:
        """Run the file in ONNX Runtime with the arguments of the module, or with the inputs of the file in their order.

        State that is not given is as it was at the export.

        Raises:
            ValueError: a number differs from the one that the file has as a constant. UnsupportedArgument: something is given that no
                file takes, or more than this one has inputs. What ONNX Runtime raises is raised as it is.
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
        """The state at the export, where the inputs after the first `given` are that."""
        rest = [str(value.name) for value in self.model.graph.inputs][given:]
        return [self.report.state[name] for name in rest] if set(rest) <= set(self.report.state) else []

    def apply_weights(self, state_dict: dict[str, torch.Tensor]) -> None:
        """Put other weights in the place of those of the same names.

        Raises:
            UnsupportedArgument: one is no tensor, or of another shape or dtype than it has in the file; or the file holds it transposed,
                or folded into a convolution. Nothing is changed.
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
        """Save as `torch.onnx.ONNXProgram.save` does; the weights are streamed into a file beside the model when they are large.

        Args:
            include_initializers: whether the file holds the weights.
            keep_initializers_as_inputs: whether the weights are inputs as well, so that a call may give others.
            external_data: whether the weights lie in a second file, of the same name and `.data`; None leaves it to their size.
                Where a model is replaced they get a name of their own, so that nobody reads the old model with the new weights.

        Raises:
            OSError: the folder does not exist or cannot be written, or what stands there must not be replaced; nothing is left behind.
            UnsupportedArgument: a single file was asked for, and the weights do not fit into one.
        """
        if external_data is False and include_initializers:
            _check_fits_into_one_file(self._bytes())
        beside = external_data or (external_data is None and self._bytes() > EXTERNAL_DATA_ABOVE)
        with self._place_weights(include_initializers, keep_initializers_as_inputs):
            save_atomically(self.model, destination, beside and include_initializers)

    @contextmanager
    def _place_weights(self, in_file: bool, as_inputs: bool) -> Iterator[None]:
        """Have the model, while it lasts, hold its weights or not, and take them as inputs or not; other constants stay what they are."""
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
        """Whether it is a parameter or a buffer: as it is, transposed (`weight/T`) or folded."""
        assert self.exported_program is not None
        name = initializer.partition("/")[0]
        return name in self.exported_program.state_dict or name in self.exported_program.constants

    def _bytes(self) -> int:
        return sum(value.const_value.nbytes for value in self.model.graph.initializers.values() if value.const_value is not None)


def _check_fits_into_one_file(weights: int) -> None:
    """Raise `UnsupportedArgument` where these bytes are more than a protobuf message holds."""
    if weights > PROTOBUF_LIMIT:
        raise UnsupportedArgument(
            f"the weights take {weights / 1e9:.2f} GB, which is larger than the 2 GiB limit of one .onnx file (a protobuf message): "
            "omit external_data or pass external_data=True, which writes the weights to a second file"
        )


def _check_fits(name: str, value: torch.Tensor, held: Mapping[str, ir.Value]) -> None:
    """Raise `UnsupportedArgument` where the file has a weight of this name in another shape or dtype."""
    weight = held[name].const_value if name in held else None
    if weight is None:
        return
    was, now = (to_torch_dtype(weight.dtype), [*weight.shape]), (value.dtype, [*value.shape])
    if was != now:
        raise UnsupportedArgument(
            f"{name} is {was[0]} {was[1]} in the exported model, but {now[0]} {now[1]} in state_dict: export the model again"
        )


def _inputs_among(leaves: Sequence[Any], program: torch.export.ExportedProgram) -> list[Any]:
    """Return those arguments that are inputs of the file; the others are constants of it."""
    taken = [spec.arg for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    for leaf, given in zip(leaves, taken, strict=True):
        if isinstance(given, ConstantArgument) and isinstance(leaf, (int, float, str)) and leaf != given.value:
            raise ValueError(f"{given.name} is the constant {given.value!r} in this model, but the call passes {leaf!r}: export it again")
    return [leaf for leaf, given in zip(leaves, taken, strict=True) if not isinstance(given, ConstantArgument)]
