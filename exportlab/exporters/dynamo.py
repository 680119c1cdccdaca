"""`torch.onnx.export(dynamo=True)`: the official exporter. Not here: the older one, which records one run (torchscript)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ..cases import DynamicShapes
from ..outcomes import Outcome
from .artifact import Interface
from .calling import by_signature
from .capture import forget_earlier_captures
from .onnx_artifact import OnnxArtifact


class Dynamo:
    """The official exporter, with its defaults."""

    name = "dynamo"

    def missing(self) -> str | None:
        """Return None: it comes with torch, and onnxscript is one of our requirements."""
        return None

    def stage(self, error: Exception) -> Outcome:
        """Return what the error itself says: whether torch.export was what failed."""
        from torch.onnx._internal.exporter._errors import TorchExportError

        return Outcome.CAPTURE if isinstance(error, TorchExportError) else Outcome.CONVERT

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
        """Export; `options` go to `torch.onnx.export` as they are."""
        forget_earlier_captures()
        program = torch.onnx.export(
            module,
            args,
            kwargs=dict(kwargs or {}),
            dynamic_shapes=dynamic_shapes,
            input_names=input_names,
            output_names=output_names,
            opset_version=opset_version,
            dynamo=True,
            verbose=False,
            **options,
        )
        assert program is not None  # as it is with dynamo=True
        return from_program(program, self.name, Interface.of(input_names, output_names, opset_version))


def from_program(program: torch.onnx.ONNXProgram, exporter: str, asked: Interface | None = None) -> OnnxArtifact:
    """Return the artifact in a `torch.onnx.ONNXProgram`.

    Raises:
        ValueError: the program does not remember the captured graph, so nobody knows how it is called.
    """
    if program.exported_program is None:
        raise ValueError("this ONNXProgram has no .exported_program: its inputs and outputs cannot be matched to the module's")
    return OnnxArtifact(program.model, by_signature(program.exported_program), exporter, asked, program.exported_program)
