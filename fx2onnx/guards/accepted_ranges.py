"""The sizes that a capture lost and `accept_ranges` accepts: a file takes the others as well, so the report has to name them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ..errors import FrozenDimension
from .dynamic_shapes import ADVICE, DimSize, OpenGuard, check_dynamic_dims, open_guards, range_text, shape_environment

ACCEPTED = "allowed by accept_ranges; the exported model does not check it"


def sizes_accepted(program: torch.export.ExportedProgram, symbols: Sequence[DimSize], accepted: Sequence[str]) -> tuple[str, ...]:
    """Return what became of the axes with these names, one line for each loss."""
    environment = shape_environment(program)
    tests = losses_by_tests(environment, symbols, accepted) if environment is not None and accepted else ()
    return tuple(dict.fromkeys((*constants_accepted(program, symbols, accepted), *tests)))


def constants_accepted(program: torch.export.ExportedProgram, symbols: Sequence[DimSize], accepted: Sequence[str]) -> Iterator[str]:
    """Yield what is constant, equal to another or cut into as many parts as in the example, of the axes with these names."""
    for name in accepted:
        others = [dim.name for dim, _ in symbols if dim.name != name]
        try:
            check_dynamic_dims(program, symbols, others, ShapeEnv())
        except FrozenDimension as error:
            yield f"{str(error).partition(ADVICE)[0].partition('Give both dimensions')[0].rstrip(' .')}; {ACCEPTED}"


def losses_by_tests(
    environment: ShapeEnv, symbols: Sequence[DimSize], accepted: Sequence[str], within: Sequence[sympy.Basic] = ()
) -> Iterator[str]:
    """Yield the tests of axes with these names of which a file has one side, by their lines.

    Args:
        within: tests that hold at the sizes that are looked at.
    """
    for found in open_guards(environment, symbols, (), within, torchs=True):
        if set(found.names) <= set(accepted):
            yield lost_by(found)


def lost_by(test: OpenGuard) -> str:
    """Return the line of a limit that a test of accepted axes leaves."""
    return f"{test.line or 'a PyTorch operator'}: {range_text(test.dims, test.test)} is exported; {ACCEPTED}"
