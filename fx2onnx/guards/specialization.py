"""Where torch takes an expression of moving sizes for the plain number that it is in the example: `x.chunk(n // 4)`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from traceback import FrameSummary
from typing import Any

from torch._guards import SLoc
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import uninteresting_files

from ..errors import CAPTURE, PACKAGE, TORCH
from ..patches.registry import register_patch

ONLY_CHECKS = "ATen/native/MaxPooling.h"  # that a window fits: what is computed goes by the size as it is
COMPUTING = tuple(f"{TORCH}{part}" for part in ("_decomp/", "_refs/", "_prims", "_meta_registrations", "_subclasses/", "fx/"))


class SpecializationGuard(SLoc):
    """The place at which a number that sizes make was taken for a plain one; torch's own frame where no line of the model's is known."""


class SpecializedInOperator(SpecializationGuard):
    """The line of a call within which torch took a number that it computed itself: how many parts `x.chunk(2)` has."""


@register_patch(
    "plain_numbers",
    *(f"torch.fx.experimental.sym_node.SymNode.{name}" for name in ("guard_int", "guard_float")),
    reason="torch gives no line of the model for the guard by which it makes a constant of a size",
)
def _marking(take: Callable[..., Any]) -> Callable[..., Any]:
    """Mark the guards by which torch notes that it took a number for a plain one, with the line of the model's.

    Torch asks for them where an operator wants an `int` or a `float`, in a frame of its own, as it asks what nothing depends on.
    """

    def taken(node: SymNode, file: str, line: int) -> Any:
        environment = node.shape_env
        if environment is None:  # the length of something ragged
            return take(node, file, line)
        guards, constants = environment.guards, environment.replacements_slocs
        before, known = len(guards), set(constants)
        found = take(node, file, line)
        if len(guards) > before:
            taken_at = _place(sys._getframe(1), file)
            guards[before:] = [guard._replace(sloc=taken_at(guard.sloc.maybe_user_loc)) for guard in guards[before:]]
            constants.update({symbol: taken_at(constants[symbol].maybe_user_loc) for symbol in constants.keys() - known})
        return found

    return taken


def _place(frame: Any, file: str) -> Callable[[str | None], SLoc]:
    """Return what notes the line of the model's; torch's own where it is at work alone, or asks for nothing that it computes with."""
    while frame.f_code.co_filename in uninteresting_files():
        frame = frame.f_back
    if file.endswith(ONLY_CHECKS):
        return partial(SLoc, FrameSummary(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
    found = frame
    while found is not None and found.f_code.co_filename.startswith((TORCH, *CAPTURE, "<")):
        found = found.f_back
    if found is None or found.f_code.co_filename.startswith(PACKAGE):
        found = frame
    kind = SpecializedInOperator if frame.f_code.co_filename.startswith(COMPUTING) else SpecializationGuard
    return partial(kind, FrameSummary(found.f_code.co_filename, found.f_lineno, found.f_code.co_name))
