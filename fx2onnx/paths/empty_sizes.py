"""Give size 0 its own path where the program is wrong there, because guards are only checked from size 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import nn

from ..errors import ToOnnxError
from ..guards.dynamic_shapes import OpenGuard
from ..ir.captured_program import RunProgram
from ..structure.paths_of_values import Path
from ..trace.events import Arguments
from ..trace.refusal import TraceUnsupported
from ..trace.size_domain import SizeDomain
from ..validate.replay import agrees, has_loops

Capture = Callable[[SizeDomain, Arguments], list[Path]]


def add_empty_path(
    paths: Sequence[Path], program: RunProgram, model: nn.Module, axes: SizeDomain, arguments: Arguments, capture: Capture
) -> list[Path] | None:
    """Return the paths with one for size 0, if the only dynamic size is tested and the program is wrong there; otherwise None.

    Args:
        capture: returns the paths in a domain.
    """
    if len(axes.example) != 1 or not all(path.sizes for path in paths):
        return None
    (symbol,) = axes.example
    if agrees(program, model, axes.at(arguments, {symbol: 0}, run=1), {symbol: 0}) is not False:
        return None
    try:
        found = capture(*axes.set_to_zero(symbol, arguments))
    except ToOnnxError as error:
        if any(has_loops(path.program) for path in paths):  # nothing else has checked these at 0
            raise TraceUnsupported(
                f"exported as a Loop, the loops of the model give a different result at {axes.format_setting({symbol: 0})}"
            ) from error
        return None
    guard = OpenGuard(symbol, {}, paths[0].sizes[0][0].line)
    sides = [(path, True) for path in paths] + [(path, False) for path in found]
    return [replace(path, sizes=((guard, some), *path.sizes)) for path, some in sides]
