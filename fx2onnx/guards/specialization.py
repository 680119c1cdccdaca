"""Locate where torch specialises an expression of dynamic sizes to a number, as in `x.chunk(n // 4)`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from traceback import FrameSummary
from typing import Any

from ..compat.shape_env import SLoc, SymNode, uninteresting_files
from ..libraries import CAPTURE, PACKAGE, TORCH, is_in, normalise_separators
from ..patches.registry import register_patch

ONLY_CHECKS = "ATen/native/MaxPooling.h"  # it only checks that a window fits; the computation uses the dynamic size
COMPUTING = tuple(f"{TORCH}{part}" for part in ("_decomp/", "_refs/", "_prims", "_meta_registrations", "_subclasses/", "fx/"))


class SpecializationGuard(SLoc):
    """The location where an expression of sizes became a number; in torch if the line of the model is unknown."""


class SpecializedInOperator(SpecializationGuard):
    """The line of a call in which torch specialised a number that it computed, such as the number of parts of `x.chunk(2)`."""


@register_patch(
    "plain_numbers",
    *(f"torch.fx.experimental.sym_node.SymNode.{name}" for name in ("guard_int", "guard_float")),
    reason="torch's guard for a specialised size does not contain the line of the model",
)
def _mark_guards(take: Callable[..., Any]) -> Callable[..., Any]:
    """Set the location of guards that specialise a number to the line of the model.

    torch adds them where an operator needs an `int` or `float`, with a frame of torch as location, as for guards without consequences.
    """

    def taken(node: SymNode, file: str, line: int) -> Any:
        environment = node.shape_env
        if environment is None:  # the length of a nested tensor
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
    """Return a constructor of the location in the model, or in torch if only torch's code runs or merely checks."""
    while frame.f_code.co_filename in uninteresting_files():
        frame = frame.f_back
    if normalise_separators(file).endswith(ONLY_CHECKS):
        return partial(SLoc, FrameSummary(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
    found = frame
    while found is not None and is_in(found.f_code.co_filename, TORCH, *CAPTURE, "<"):
        found = found.f_back
    if found is None or is_in(found.f_code.co_filename, PACKAGE):
        found = frame
    kind = SpecializedInOperator if is_in(frame.f_code.co_filename, *COMPUTING) else SpecializationGuard
    return partial(kind, FrameSummary(found.f_code.co_filename, found.f_lineno, found.f_code.co_name))
