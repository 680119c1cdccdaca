"""Report the sizes that a capture lost and `accept_ranges` allows, because the exported model does not check them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sympy
import torch

from ..compat.shape_env import ShapeEnv
from ..errors import FrozenDimension
from .dynamic_shapes import ADVICE, DimSize, OpenGuard, check_dynamic_dims, open_guards, range_text, shape_environment

ACCEPTED = "allowed by accept_ranges; the exported model does not check it"


def sizes_accepted(program: torch.export.ExportedProgram, symbols: Sequence[DimSize], accepted: Sequence[str]) -> tuple[str, ...]:
    """Return one line for each lost range of the named dimensions."""
    environment = shape_environment(program)
    tests = losses_by_tests(environment, symbols, accepted) if environment is not None and accepted else ()
    return tuple(dict.fromkeys((*constants_accepted(program, symbols, accepted), *tests)))


def constants_accepted(program: torch.export.ExportedProgram, symbols: Sequence[DimSize], accepted: Sequence[str]) -> Iterator[str]:
    """Yield the named dimensions that are constant, equal to another, or split into the example's number of parts."""
    for name in accepted:
        others = [dim.name for dim, _ in symbols if dim.name != name]
        try:
            check_dynamic_dims(program, symbols, others, ShapeEnv())
        except FrozenDimension as error:
            yield f"{str(error).partition(ADVICE)[0].partition('Give both dimensions')[0].rstrip(' .')}; {ACCEPTED}"


def losses_by_tests(
    environment: ShapeEnv, symbols: Sequence[DimSize], accepted: Sequence[str], within: Sequence[sympy.Basic] = ()
) -> Iterator[str]:
    """Yield the guards on the named dimensions of which only one branch was exported, by line.

    Args:
        within: tests that hold at all sizes considered.
    """
    for found in open_guards(environment, symbols, (), within, torchs=True):
        if set(found.names) <= set(accepted):
            yield lost_by(found)


def lost_by(test: OpenGuard) -> str:
    """Return the line about the range that a guard on accepted dimensions leaves."""
    return f"{test.line or 'a PyTorch operator'}: {range_text(test.dims, test.test)} is exported; {ACCEPTED}"
