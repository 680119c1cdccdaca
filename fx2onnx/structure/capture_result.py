"""The result of a capture, and checks of a module before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch import nn

from ..compat import trees as pytree
from ..errors import CaptureError


@dataclass(frozen=True)
class Capture:
    """A captured program, the names of its symbols, how it was captured, and why traced runs were not sufficient.

    `branches` are the tests with both branches in the program. `limits` are those whose other branch raises, with the error, or what
    torch.export's program checks but the exported model does not.
    """

    program: torch.export.ExportedProgram
    dim_names: dict[sympy.Expr, str] = field(default_factory=dict)
    by: str = "torch.export"
    trace_failure: str = ""
    branches: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


def refuse_scripted_parts(model: nn.Module) -> None:
    """Refuse a model with a TorchScript part, for which torch.export's message is misleading.

    Raises:
        CaptureError: If there is one.
    """
    for path, part in model.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            which = f"{path} is a ScriptModule" if path else "the model is a ScriptModule"
            raise CaptureError(f"Exporting a ScriptModule is not supported: {which}; use the nn.Module that it was scripted from instead")


def separate_shared_inputs(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with repeated tensors cloned, because torch.export would silently merge them into one input."""
    ids: set[int] = set()

    def separate(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) in ids:
            return tensor.detach().clone()
        ids.add(id(tensor))
        return tensor

    leaves = pytree.tree_leaves((args, kwargs))
    tensors = [id(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return (args, kwargs) if len(set(tensors)) == len(tensors) else pytree.tree_map_only(torch.Tensor, separate, (args, kwargs))
