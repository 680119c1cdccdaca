"""Export with `torch.onnx.export(dynamo=True)`. The legacy exporter is in `torchscript`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from fx2onnx.compat.exporting import is_capture_error

from ..cases import DynamicShapes
from ..outcomes import Outcome
from .artifact import Interface
from .calling import by_signature
from .capture import forget_earlier_captures
from .onnx_artifact import OnnxArtifact


class Dynamo:
    """`torch.onnx.export` with its default options."""

    name = "dynamo"

    def missing(self) -> str | None:
        """Return None: it is part of torch, and onnxscript is a requirement of this package."""
        return None

    def stage(self, error: Exception) -> Outcome:
        """Return `capture` if torch.export failed, otherwise `convert`."""
        return Outcome.CAPTURE if is_capture_error(error) else Outcome.CONVERT

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
        """Export the module; `options` are passed to `torch.onnx.export`."""
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
        assert program is not None  # always true with dynamo=True
        return from_program(program, self.name, Interface.of(input_names, output_names, opset_version))


def from_program(program: torch.onnx.ONNXProgram, exporter: str, asked: Interface | None = None) -> OnnxArtifact:
    """Convert a `torch.onnx.ONNXProgram` to an artifact.

    Raises:
        ValueError: the program doesn't contain the captured graph, which defines the calling convention.
    """
    if program.exported_program is None:
        raise ValueError("this ONNXProgram has no .exported_program: its inputs and outputs cannot be matched to the module's")
    return OnnxArtifact(program.model, by_signature(program.exported_program), exporter, asked, program.exported_program)
