"""The capture under openvino, executorch and aoti: torch.export, with a mark on its errors. Not here: what is made of the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from ..messages import first_line
from ..outcomes import Outcome
from .torch_export import dims_from_names


class CaptureFailed(Exception):
    """torch.export refused the module; its own error is the cause."""


def captured(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None, dynamic_shapes: Any, strict: bool
) -> torch.export.ExportedProgram:
    """The program that torch.export makes of `module`; an axis named by a string is `Dim.DYNAMIC`.

    Raises:
        CaptureFailed: torch.export refuses it.
    """
    torch._dynamo.reset()  # an earlier static export of the same code can make this one static
    shapes = dims_from_names(dynamic_shapes)
    try:
        return torch.export.export(module, args, dict(kwargs or {}), dynamic_shapes=shapes, strict=strict)
    except Exception as error:
        raise CaptureFailed(f"torch.export refuses the model: {first_line(error)}") from error


def stage_of(error: Exception) -> Outcome:
    """`capture` for the errors of `captured`, `convert` for all others."""
    return Outcome.CAPTURE if isinstance(error, CaptureFailed) else Outcome.CONVERT
