"""Tensors created from Python numbers: check their size expressions, and return the error if runs have different numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch

from ..compat import trees as pytree
from ..ir.expressions import python_number
from .events import equal
from .refusal import ListLengthFollowsSize
from .size_domain import SizeAssignment
from .tracer import Tracer

FROM_LIST = "a tensor is created from a list or an array whose length is a dynamic size,"
INSTEAD_OF_A_LIST = (
    "Create the tensor with PyTorch: torch.full((n,), value) for equal numbers, torch.arange(start, end, step) for a sequence, "
    "torch.tensor(table)[:n] for the first n entries of a table"
)


def gives(formula: Any, settings: Sequence[SizeAssignment], tensors: Sequence[torch.Tensor | None]) -> bool:
    """Return whether the tensors of runs at these settings have the values of these expressions."""
    for setting, tensor in zip(settings, tensors, strict=True):
        numbers = pytree.tree_map_only(sympy.Basic, lambda size, at=setting: python_number(size.subs(at)), formula)  # type: ignore[misc]
        if tensor is None or not equal(torch.tensor(numbers, dtype=tensor.dtype), tensor):
            return False
    return True


def error_of_unequal_numbers(tracer: Tracer, tensor: torch.Tensor, others: Sequence[torch.Tensor | None]) -> Exception:
    """Return the error for a tensor that other runs create from other numbers, with the line that creates or uses it."""
    lengths = {len(one) for one in (tensor, *others) if one is not None and one.dim()}
    if len(lengths) > 1:
        return tracer.refusal(FROM_LIST, ListLengthFollowsSize, INSTEAD_OF_A_LIST)
    return tracer.refusal(f"a constant tensor, {tuple(tensor.shape)} of {tensor.dtype}, differs between runs")
