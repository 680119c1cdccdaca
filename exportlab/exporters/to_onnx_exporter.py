"""Wrap `to_onnx` in the exporter interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch
from torch import nn

from ..cases import DynamicShapes
from ..outcomes import Outcome
from .artifact import Interface
from .calling import Calling, by_signature
from .onnx_artifact import OnnxArtifact
from .to_onnx import ToOnnxError, changed_names, to_onnx


class ToOnnx:
    """`exportlab.to_onnx` with its default options."""

    name = "to_onnx"

    def missing(self) -> str | None:
        """Return None: it is part of this package."""
        return None

    def stage(self, error: Exception) -> Outcome:
        """Return the stage that a `ToOnnxError` contains, and `convert` for other errors."""
        return Outcome(error.stage) if isinstance(error, ToOnnxError) else Outcome.CONVERT

    def export(
        self,
        module: nn.Module,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        dynamic_shapes: DynamicShapes = None,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        opset_version: int | None = None,
        **options: Any,
    ) -> OnnxArtifact:
        """Export the module in its current mode; `options` are passed to `to_onnx`."""
        options = {"training": torch.onnx.TrainingMode.PRESERVE, **options}
        if opset_version is not None:
            options["opset_version"] = opset_version
        program = to_onnx(
            module, args, kwargs=kwargs, dynamic_shapes=dynamic_shapes, input_names=input_names, output_names=output_names, **options
        )
        asked = Interface.of(input_names, output_names, opset_version)
        assert program.exported_program is not None
        calling = by_signature(program.exported_program)
        if program.report.mutations:
            return StatefulArtifact(program.model, calling, self.name, asked, program.report.state)
        return OnnxArtifact(program.model, calling, self.name, asked, program.exported_program)


class StatefulArtifact(OnnxArtifact):
    """A model that returns its new state after its results. Each call passes its state to the next. New values of inputs are dropped."""

    def __init__(
        self, model: ir.Model, calling: Calling, exporter: str, asked: Interface | None = None, state: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(model, calling, exporter, asked)
        self.state = dict(self.state if state is None else state)
        self.changed = changed_names(model)
        self._held: dict[str, Any] = {}

    def fresh(self) -> StatefulArtifact:
        """Return a copy in the initial state, with the same session."""
        copy = StatefulArtifact(self.model, self.calling, self.exporter, self.asked, self.state)
        copy.__dict__["session"] = self.session
        return copy

    def _run(self, feeds: dict[str, Any]) -> list[Any]:
        results = super()._run(feeds | self._held)
        own = len(results) - len(self.changed)
        self._held = {name: value for name, value in zip(self.changed, results[own:], strict=True) if name in self.state}
        return results[:own]
