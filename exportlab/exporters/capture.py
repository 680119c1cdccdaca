"""Capture modules with torch.export. State of earlier captures is reset, and errors of the capture are marked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree

from ..cases import DynamicShapes
from ..messages import first_line
from ..outcomes import Outcome


class CaptureFailed(Exception):
    """torch.export failed; its error is the cause."""


def exported_program(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: DynamicShapes,
    strict: bool = False,
    **options: Any,
) -> torch.export.ExportedProgram:
    """Capture `module` with torch.export. Axes named by strings are `Dim.DYNAMIC`. Errors are passed through."""
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
    """Do the same for exporters that convert the program afterwards, and mark errors of the capture.

    Raises:
        CaptureFailed: torch.export failed.
    """
    try:
        return exported_program(module, args, kwargs, dynamic_shapes, strict, **options)
    except Exception as error:
        raise CaptureFailed(f"torch.export refuses the model: {first_line(error)}") from error


def stage_of(error: Exception) -> Outcome:
    """Return `capture` for errors of `marked_program`, and `convert` for other errors."""
    return Outcome.CAPTURE if isinstance(error, CaptureFailed) else Outcome.CONVERT


def forget_earlier_captures() -> None:
    """Reset Dynamo, because an earlier static export of the same code can make the next export static."""
    torch.compiler.reset()


def dims_from_names(dynamic_shapes: DynamicShapes) -> DynamicShapes:
    """Replace each string in `dynamic_shapes` by `Dim.DYNAMIC`."""
    return pytree.tree_map(lambda dim: torch.export.Dim.DYNAMIC if isinstance(dim, str) else dim, dynamic_shapes)
