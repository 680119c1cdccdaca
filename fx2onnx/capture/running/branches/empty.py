"""Sizes of 0. Tests of sizes begin at 1, so what a module does without any row is a side of its own where it is something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ....errors import ToOnnxError
from ...attribute_mutation import as_before
from ...dynamic_shapes import OpenTest
from ..loops.replay import equal_leaves, inputs_of
from ..numbered import at_sizes
from ..program import RunProgram
from ..sample import Axes
from ..unify import Arguments
from .paths import Path

Capture = Callable[[Axes, Arguments], list[Path]]


def with_empty(
    paths: Sequence[Path], program: RunProgram, model: nn.Module, axes: Axes, arguments: Arguments, capture: Capture
) -> list[Path] | None:
    """Return the paths and that of a size of 0, where the one size that moves is tested, and the program is wrong there; else None.

    Args:
        capture: returns the paths at the sizes that some axes have.
    """
    if len(axes.example) != 1 or not all(path.sizes for path in paths):
        return None
    (symbol,) = axes.example
    if _is_right(program, model, axes.at(arguments, {symbol: 0}, run=1), axes.at(arguments, {symbol: 0}, run=1)):
        return None
    try:
        found = capture(*axes.at_none(symbol, arguments))
    except ToOnnxError:
        return None
    told = OpenTest(symbol, {}, paths[0].sizes[0][0].line)
    sides = [(path, True) for path in paths] + [(path, False) for path in found]
    return [replace(path, sizes=((told, some), *path.sizes)) for path, some in sides]


def _is_right(program: RunProgram, model: nn.Module, given: Any, own: Any) -> bool:
    """Whether a program says of these arguments what the model says, or the model refuses them."""
    with torch.random.fork_rng(devices=()), torch.no_grad(), as_before(model):
        try:
            wanted = pytree.tree_leaves(model(*given[0], **given[1]))
        except Exception:  # noqa: BLE001 - a size that the model does not take
            return True
        try:
            called = at_sizes(program, list(pytree.tree_leaves(own))).graph_module
            return equal_leaves(wanted, pytree.tree_leaves(called(*inputs_of(program, own))))
        except (RuntimeError, IndexError, TypeError, ValueError):
            return False
