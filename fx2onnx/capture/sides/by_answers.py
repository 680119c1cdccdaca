"""Capturing by torch.export with an answer to each test that it cannot decide: all paths, as one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy
import torch
from torch import nn
from torch.export import Dim
from torch.utils import _pytree as pytree

from ...errors import CaptureError, first_sentence
from ..accepted import sizes_accepted
from ..attribute_mutation import as_before, only_harmless_mutations
from ..by_export import Capture, as_dims, exported, kept_apart
from ..conditions import conditions
from ..dims import DynamicDim, is_hint
from ..dynamic_shapes import check_dynamic_dims, dynamic_dims, moving_numbers, symbol_of
from ..running.branches.joined import Joined
from ..running.branches.paths import Path, every_path
from ..running.ends import ends_kept
from ..running.lines import is_within_torch
from ..running.program import CallSpec, RunProgram
from ..running.refusal import CannotRun
from ..running.sample import Axes
from ..running.script import is_deliberate
from .answers import Answers, answering
from .described import described


def capture_by_answers(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any = None, accept_ranges: Sequence[str] = ()
) -> Capture:
    """Capture a module that tests what values decide, once for each list of answers.

    Raises:
        CaptureError: torch.export refuses it with some answers, or no file can be right on all paths.
        FrozenDimension: an axis asked to be dynamic is not.
    """
    args, kwargs = kept_apart(args, dict(kwargs))
    leaves = pytree.tree_leaves(dynamic_shapes)
    if moving_numbers(model, args, kwargs, dynamic_shapes) or any(is_hint(leaf, Dim.AUTO) for leaf in leaves):
        raise CannotRun("a model with conditions on values cannot have a dynamic number as an input, or Dim.AUTO")
    asked = dynamic_dims(model, args, kwargs, dynamic_shapes)

    def export() -> torch.export.ExportedProgram:
        with as_before(model):  # so that no capture finds what another one left
            return exported(model, args, kwargs, as_dims(dynamic_shapes, accept_ranges, asked), False, asked)

    sides = Sides(export, asked, pytree.tree_leaves((args, kwargs)), accept_ranges)
    with only_harmless_mutations(model, args, kwargs):
        program = sides.program()
    names = {sides.axes.sizes[dim.tensor, dim.axis]: dim.name for dim in reversed(asked) if dim.named}
    limits = (*sides.limits, *ends_kept(model, sides.axes, (args, kwargs), asked, accept_ranges))
    return Capture(program, names, branches=sides.branches, limits=limits)  # type: ignore[arg-type]


Export = Callable[[], torch.export.ExportedProgram]
NOTHING = pytree.tree_structure(())


class Sides:
    """All paths of a module, each captured by torch.export.

    Args:
        export: captures the module.
        asked: the axes that are to move.
        given: the leaves of the arguments.

    Attributes:
        limits: what a file does not look at.
    """

    def __init__(self, export: Export, asked: Sequence[DynamicDim], given: Sequence[Any], accepted: Sequence[str]) -> None:
        self._export, self._asked, self._given, self._accepted = export, asked, given, accepted
        self.axes = Axes.of(asked, given)
        self.limits: dict[str, None] = {}
        self.branches: tuple[str, ...] = ()

    def program(self) -> RunProgram:
        """Return the program of all paths.

        Raises:
            CaptureError: torch.export refuses one of them, or no file can be right on all.
        """
        paths = [path for path in every_path(self._path) if path.ended is None]
        if not paths:
            raise CannotRun("the model raises an error for all values")
        joined = Joined(paths, self.axes)
        program = joined.program()
        self.limits |= joined.limits
        self.branches = tuple(joined.branches)
        return program

    def _path(self, given: Sequence[bool]) -> Path:
        with answering(given) as answers:
            try:
                program = self._export()
            except CaptureError as error:
                return self._ended(answers, error)
            finally:
                if answers.refused is not None:
                    raise answers.refused
        symbols = self._symbols(program)
        names = {symbol: self.axes.names[ours] for symbol, ours in symbols.items()}
        self.limits |= dict.fromkeys(conditions(program, names, answers.facts))
        sizes = self._tests(answers, symbols)
        return Path(tuple(answers.told), described(program, symbols, self.axes), (), None, self.axes, sizes)

    def _ended(self, answers: Answers, error: CaptureError) -> Path:
        """A path that the model itself ends with an error: no side of a file.

        Raises:
            CaptureError: it is torch that does not follow.
        """
        own = error.__cause__
        if not answers.asked or not isinstance(own, Exception) or not is_deliberate(own) or _is_of_torch(own):
            raise error
        self.limits[f"{answers.asked[-1].line}: {type(own).__name__}: {first_sentence(own)}"] = None
        empty = torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph())
        program = RunProgram(empty, None, {}, {}, CallSpec(NOTHING, NOTHING), ((), {}))  # type: ignore[arg-type]
        return Path(tuple(answers.told), program, (), own, self.axes, self._tests(answers, {}))

    def _symbols(self, program: torch.export.ExportedProgram) -> Mapping[sympy.Symbol, sympy.Symbol]:
        """The sizes that move, and what runs call them.

        Raises:
            FrozenDimension: one does not move at all sizes. CannotRun: one is an expression of another.
        """
        found = [(dim, size) for dim in self._asked if (size := symbol_of(program, self._given, dim)) is not None]
        check_dynamic_dims(program, found, self._accepted)
        self.limits |= dict.fromkeys(sizes_accepted(program, found, self._accepted))
        symbols: dict[sympy.Symbol, sympy.Symbol] = {}
        for dim, size in found:
            ours = self.axes.sizes[dim.tensor, dim.axis]
            if not isinstance(size, sympy.Symbol) or not isinstance(ours, sympy.Symbol) or symbols.setdefault(size, ours) != ours:
                raise CannotRun(f'the model has conditions on values, and "{dim.name}" is derived from another size')
        return symbols

    def _tests(self, answers: Answers, symbols: Mapping[sympy.Symbol, sympy.Symbol]) -> Any:
        asked = (replace(found, test=found.test.subs(symbols)) for found in answers.asked)
        return tuple(zip(asked, answers.told, strict=True))


def _is_of_torch(error: Exception) -> bool:
    """Whether it was raised in a file of torch's."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is None or is_within_torch(last.tb_frame.f_code.co_filename)
