"""The result of a capture, and what is checked of a module before any."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..errors import CaptureError


@dataclass(frozen=True)
class Capture:
    """A captured program, the names of its symbols, by what, and why not by running.

    `branches` are the tests of which the program has both sides, `limits` those whose other side raises, and what it raises; or what
    torch.export's program checks, and a file does not.
    """

    program: torch.export.ExportedProgram
    dim_names: dict[sympy.Expr, str] = field(default_factory=dict)
    by: str = "torch.export"
    trace_failure: str = ""
    branches: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


def refuse_scripted_parts(model: nn.Module) -> None:
    """Refuse a model, or a part of one, that another interpreter runs, of which torch.export says something else.

    Raises:
        CaptureError: there is one.
    """
    for path, part in model.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            which = f"{path} is a ScriptModule" if path else "the model is a ScriptModule"
            raise CaptureError(f"Exporting a ScriptModule is not supported: {which}; use the nn.Module that it was scripted from instead")


def separate_shared_inputs(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments, a tensor that is given twice as two tensors: torch.export would silently make one input of them."""
    seen: set[int] = set()

    def separate(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) in seen:
            return tensor.detach().clone()
        seen.add(id(tensor))
        return tensor

    leaves = pytree.tree_leaves((args, kwargs))
    tensors = [id(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return (args, kwargs) if len(set(tensors)) == len(tensors) else pytree.tree_map_only(torch.Tensor, separate, (args, kwargs))
