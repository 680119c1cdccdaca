"""The capture as every exporter here has it: torch.export, with what earlier captures left forgotten, and a mark on its errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..cases import DynamicShapes
from ..messages import first_line
from ..outcomes import Outcome


class CaptureFailed(Exception):
    """torch.export refused the module; its own error is the cause."""


def exported_program(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: DynamicShapes,
    strict: bool = False,
    **options: Any,
) -> torch.export.ExportedProgram:
    """Return the program that torch.export makes of `module`; an axis named by a string is `Dim.DYNAMIC`. Raises what that raises."""
    forget_earlier_captures()
    shapes = dims_from_names(dynamic_shapes)
    return torch.export.export(module, args, dict(kwargs or {}), dynamic_shapes=shapes, strict=strict, **options)


def marked_program(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: DynamicShapes,
    strict: bool = False,
    **options: Any,
) -> torch.export.ExportedProgram:
    """Return the same for an exporter that converts it next, whose errors are to be told from those of the capture.

    Raises:
        CaptureFailed: torch.export refuses the module.
    """
    try:
        return exported_program(module, args, kwargs, dynamic_shapes, strict, **options)
    except Exception as error:
        raise CaptureFailed(f"torch.export refuses the model: {first_line(error)}") from error


def stage_of(error: Exception) -> Outcome:
    """Return `capture` for the errors of `marked_program`, `convert` for all others."""
    return Outcome.CAPTURE if isinstance(error, CaptureFailed) else Outcome.CONVERT


def forget_earlier_captures() -> None:
    """Forget what TorchDynamo knows of code that it has seen: an earlier static export of the same code can make the next one static."""
    torch._dynamo.reset()


def dims_from_names(dynamic_shapes: DynamicShapes) -> DynamicShapes:
    """Return `dynamic_shapes` with every string replaced by `Dim.DYNAMIC`."""
    return pytree.tree_map(lambda dim: torch.export.Dim.DYNAMIC if isinstance(dim, str) else dim, dynamic_shapes)
