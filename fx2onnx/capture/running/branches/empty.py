"""Sizes of 0. Tests of sizes begin at 1, so what a module does without any row is a side of its own where it is something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import nn

from ....errors import ToOnnxError
from ...dynamic_shapes import OpenTest
from ..loops.replay import agrees, has_loops
from ..program import RunProgram
from ..refusal import CannotRun
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
    if agrees(program, model, axes.at(arguments, {symbol: 0}, run=1), {symbol: 0}) is not False:
        return None
    try:
        found = capture(*axes.at_none(symbol, arguments))
    except ToOnnxError as error:
        if any(has_loops(path.program) for path in paths):  # of which nothing else has looked at 0
            raise CannotRun(f"exported as a Loop, the loops of the model give a different result at {axes.shown({symbol: 0})}") from error
        return None
    told = OpenTest(symbol, {}, paths[0].sizes[0][0].line)
    sides = [(path, True) for path in paths] + [(path, False) for path in found]
    return [replace(path, sizes=((told, some), *path.sizes)) for path, some in sides]
