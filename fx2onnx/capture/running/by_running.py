"""Capturing by running: settings, traces, one graph, and whether it holds at every size that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import sympy
from torch import nn
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

from ...errors import ToOnnxError, first_sentence
from ..accepted import constants_accepted
from ..attribute_mutation import only_harmless_mutations
from ..by_export import Capture, check_no_part_is_scripted, kept_apart
from ..dims import check_accepted
from ..dynamic_shapes import check_dynamic_dims, dynamic_dims, moving_numbers
from ..gradients import gradients_noted
from ..keywords import named_where_they_can_be
from ..modules_cast import casts_of_parts
from ..raised import listed, said_by
from .arguments import check_arguments
from .as_written import calls_as_written
from .branches.empty import with_empty
from .branches.joined import Joined
from .branches.paths import Path, check_changed_inputs, every_path
from .branches.regions import Regions
from .broadcast import paths_of
from .ends import ends_kept
from .equal_blocks import EqualBlocks
from .explain import Ambiguous, Explanations
from .inner_graphs import functions_called_as_they_are
from .lines import Place
from .loops.places import Places, moving, sizes_of_parts
from .loops.replay import check_lengths, lengths, long_enough
from .loops.turns import Loops
from .notes import Trace
from .program import RunProgram
from .python_numbers import NO_SIZES, Kept
from .refusal import (
    CannotRun,
    LeftOut,
    LoopOnValue,
    NeverRuns,
    NumbersMove,
    PlainBool,
    PlainNumber,
    SeenByRunsAlone,
    TooMuchWork,
    ValueRead,
)
from .replaced import longer_tables
from .sample import Axes, Setting
from .script import Reads, Script, Settling, is_deliberate
from .trace import Watch, trace
from .unify import Arguments, Writer, first_difference
from .whiles import TRIED, TURNS, Whiles, check_turns

FEWEST = 2  # runs beside the example's that an expression has to explain
VARIETY = 3  # sizes of an axis that has tests
MOST = 12  # runs that are tried
SETTLED = "what weights or buffers say there is a constant of the file; other weights do not change it"


def capture_by_running(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any = None,
    accept_ranges: Sequence[str] = (),
) -> Capture:
    """Capture a module by running it at a few settings of its moving sizes.

    Raises:
        CannotRun: the runs do not show what a file would have to do; torch.export may know.
        FrozenDimension: an axis asked to be dynamic is not. MutationError: another call would find what this one left.
    """
    try:
        return _captured(model, args, kwargs, dynamic_shapes, accept_ranges)
    except (LeftOut, NumbersMove) as error:
        try:
            with calls_as_written():  # takes longer, so not at once
                return _captured(model, args, kwargs, dynamic_shapes, accept_ranges)
        except (SeenByRunsAlone, TooMuchWork):
            raise
        except ToOnnxError:
            raise error from None


def _captured(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any, accept_ranges: Sequence[str]
) -> Capture:
    check_no_part_is_scripted(model)
    args, kwargs = kept_apart(args, dict(kwargs))
    asked = dynamic_dims(model, args, kwargs, dynamic_shapes)
    check_accepted(accept_ranges, asked)
    leaves = pytree.tree_leaves((args, kwargs))
    check_arguments(leaves, moving_numbers(model, args, kwargs, dynamic_shapes), dynamic_shapes)
    axes = Axes.of(asked, leaves)
    symbols = [(dim, axes.sizes[dim.tensor, dim.axis]) for dim in asked]
    with (
        only_harmless_mutations(model, args, kwargs),
        named_where_they_can_be(model, args, kwargs, dynamic_shapes),
        functions_called_as_they_are(bool(symbols)),
        longer_tables(model, (args, kwargs)),
        casts_of_parts(model),
        gradients_noted(model),
    ):
        settling = Settling()
        capture = partial(_paths, model, settling)
        regions = Regions(capture, partial(_note_tests, model, settling), symbols, accept_ranges)
        paths = paths_of(regions, capture, asked, axes, (args, kwargs))
        joined = Joined(paths, axes)
        with regions.explaining():
            program = joined.program()
        promised = ends_kept(model, axes, (args, kwargs), asked, accept_ranges)
        if (further := with_empty(paths, program, model, axes, (args, kwargs), capture)) is not None:
            joined = Joined(further, axes)
            program = joined.program()
    check_changed_inputs(paths, leaves)
    check_dynamic_dims(program, symbols, accept_ranges, ShapeEnv())  # type: ignore[arg-type]  # it reads graph and signature alone
    names = {symbol: dim.name for dim, symbol in reversed(symbols) if dim.named}
    settled = (f"{line}: {SETTLED}" for line in settling.lines)
    lost = constants_accepted(program, symbols, accept_ranges)  # type: ignore[arg-type]  # as above
    limits = (*regions.limits, *lost, *joined.limits, *program.limits, *settled, *promised)
    return Capture(program, names, by="run", branches=tuple(joined.branches), limits=limits)  # type: ignore[arg-type]


def _note_tests(model: nn.Module, settling: Settling, axes: Axes, arguments: Arguments) -> None:
    """Run it with symbols for sizes, so that these axes note the tests on the way, as far as runs at longer sizes make the same calls."""
    runs = Runs(model, axes, arguments, EqualBlocks(model), settling)
    with suppress(CannotRun, Ambiguous):
        runs.run_spare()
        runs.note_tests()


def _paths(model: nn.Module, settling: Settling, axes: Axes, arguments: Arguments) -> list[Path]:
    """Return what runs show at these sizes, each test of a value answered both ways.

    What follows from weights alone is tested like other values, so that a file follows weights that it is given. Where that is refused
    and values of weights were asked for, these count as constants.
    """
    try:
        found = _rolled_up(partial(_path, model, axes, arguments, EqualBlocks(model), settling))
    except CannotRun as error:
        if settling.has_one_answer or not settling.was_asked or isinstance(error, (SeenByRunsAlone, TooMuchWork)):
            raise
        settling.has_one_answer = True
        try:
            found = _rolled_up(partial(_path, model, axes, arguments, EqualBlocks(model), settling))
        except CannotRun:
            raise error from None
    for path in found:
        path.check_small(axes)
    return found


def _rolled_up(path: Callable[[frozenset[Place], Sequence[bool]], Path]) -> list[Path]:
    """Return all paths, with each `while` that a value ends rolled up."""
    places: frozenset[Place] = frozenset()
    while True:
        try:
            return every_path(partial(path, places))
        except LoopOnValue as error:
            if error.place in places:
                raise
            places |= {error.place}


def _path(
    model: nn.Module, axes: Axes, arguments: Arguments, blocks: EqualBlocks, settling: Settling, whiles: Any, given: Sequence[bool]
) -> Path:
    """Return what runs show that answer the first tests of values so."""
    reads: list[dict[str, Any]] | None = None
    while True:
        try:
            runs = Runs(model, axes, arguments, blocks, settling, given, reads, whiles)
            program, ended = runs.program()
            return Path(tuple(runs.answers), program, runs.small, ended, axes)
        except ValueRead as error:
            if reads is not None and (error.names is None or any(error.names is names for names in reads)):
                raise
            reads = [*(reads or []), *([] if error.names is None else [error.names])]


class Runs:
    """The runs of one module: at the settings that are tried, as many as there have to be, and last at the example's own.

    Args:
        settling: whether what follows from weights alone has one answer.
        answers: to the first tests of values; the first run says the others.
        reads: the modules in which `int()` gives what `item()` does then, a number that notes its comparisons; it takes a little longer.
        whiles: where loops are that values end.
    """

    def __init__(
        self,
        model: nn.Module,
        axes: Axes,
        arguments: Arguments,
        blocks: EqualBlocks,
        settling: Settling,
        answers: Sequence[bool] = (),
        reads: Reads = None,
        whiles: frozenset[Place] = frozenset(),
    ) -> None:
        self.whiles = whiles
        self.model, self.axes, self.arguments, self.blocks = model, axes, arguments, blocks
        self.settling, self.answers, self.reads = settling, answers, reads
        self.settings: list[Setting] = []
        self.traces: list[Trace] = []
        self.refused: dict[str, str] = {}
        self.deliberate = ""  # what it raises by a statement of its own wherever it was refused
        self.small: tuple[Setting, str] | None = None  # at which the model does something else, and what
        self.places: frozenset[Place] = frozenset()  # of loops that follow a size

    def program(self) -> tuple[RunProgram, Exception | None]:
        """Return the program that explains all runs, and what all of them raise.

        Raises:
            CannotRun: there is none.
        """
        for setting in lengths(self.axes) if self.places else self.axes.settings():
            self._run(setting)
        if len(self.traces) < FEWEST:
            self.run_spare()
        if not self.places and (places := self._moving_loops()):
            try:
                return self._rolled(places)
            except CannotRun as error:
                if (found := self._in_parts(error)) is None:
                    raise
                return found
        if self.deliberate and not self.traces and self.axes.conditions:
            self.note_tests()
            raise NeverRuns(self.deliberate)
        if self.axes.example and len(self.traces) < min(FEWEST, self.axes.count() - 1):
            raise CannotRun(f"it runs at {len(self.traces)} of the other sizes that were tried ({listed(self.refused)})")
        self._check_variety()
        self._check_whiles()
        while True:
            try:
                return self._followed()
            except Ambiguous as error:
                self._run_further(error.setting)
            except CannotRun as error:
                if (found := self._in_parts(error)) is not None:
                    return found
                if type(error) is not CannotRun or not self.run_spare():
                    raise

    def _in_parts(self, refused: CannotRun) -> tuple[RunProgram, Exception | None] | None:
        """Return the program with a loop over `split` rolled up, from runs at several parts; None where there is none."""
        if self.axes.units or self.places or len(units := sizes_of_parts(self.traces, self.settings)) != 1:
            return None
        runs = Runs(self.model, replace(self.axes, units=units), self.arguments, self.blocks, self.settling)
        try:
            if not (places := runs._moving_loops()):
                return None
            found = runs._rolled(places)
        except CannotRun as error:
            raise (refused if isinstance(refused, SeenByRunsAlone) else error) from None
        self.answers, self.small = runs.answers, None
        return found

    def _check_variety(self) -> None:
        """Refuse to take a size for a constant, or a line through two points for all of several, next to a test of it."""
        for symbol in self.axes.example if self.axes.conditions else ():
            seen = {self.axes.example[symbol], *(setting[symbol] for setting in self.settings)}
            if len(seen) < min(VARIETY, len(self.axes.allowed(symbol))):
                raise CannotRun(f"it runs at {self.axes.names[symbol]} of {sorted(seen)} alone")

    def _check_whiles(self) -> None:
        """Hold the turns of loops that values end against each other, in runs that have none, some and many."""
        if not any(found.whiles for found in self.traces):
            return
        found: list[Trace] = []
        for number in TRIED:
            arguments = self.axes.at(self.arguments, self.axes.example, 1)
            found.append(trace(self.model, arguments, script=self._script(number)))
        check_turns(found)

    def note_tests(self) -> None:
        """Run it at the example's sizes, where it raises as well, so that the tests of sizes on the way are noted."""
        with suppress(CannotRun):
            self._followed()

    def _followed(self) -> tuple[RunProgram, Exception | None]:
        kept = Kept()
        while True:
            try:
                return self._followed_with(kept)
            except PlainNumber as error:
                if any(error.names is names for names in kept.modules):
                    raise
                kept = replace(kept, modules=(*kept.modules, error.names))
            except PlainBool:
                if kept.decides:
                    raise
                kept = replace(kept, decides=True)

    def _followed_with(self, kept: Kept) -> tuple[RunProgram, Exception | None]:
        """Run it with symbols for sizes, whose expressions `int` and `float` in these modules keep."""
        sizes = Explanations([self.axes.example, *self.settings], self.axes.holds)
        writer = Writer(self.model, self.axes, self.arguments, self.traces, sizes)
        writer.kept = kept
        try:
            watch = self._watch(self.axes.environment)
            found = trace(self.model, self.axes.at(self.arguments, self.axes.example), writer, self._script(), watch)
            if error := next((one.ended for one in (found, *self.traces) if type(one.ended) is not type(found.ended)), None):
                raise CannotRun(f"at some sizes only it raises {type(error).__name__}: {first_sentence(error)}")
            return writer.program(found), found.ended
        except (ToOnnxError, Ambiguous):
            raise
        except Exception as error:
            kind = PlainBool if NO_SIZES in str(error) else CannotRun
            raise kind(f"running it fails: {said_by(error)}") from error

    def _script(self, turns: int = TURNS) -> Script:
        return Script(self.answers, None if self.places else self.reads, self.settling, Whiles(self.whiles, turns))

    def _watch(self, environment: Any = None) -> Watch:
        """What is followed beside the calls: turns of loops, where those are told apart, or equal blocks."""
        return Loops(self.places, environment).watch if self.places else self.blocks.noted

    def _run(self, setting: Setting) -> None:
        if setting in self.settings or (setting and setting == self.axes.example):
            return
        script = self._script()
        try:
            arguments = self.axes.at(self.arguments, setting, len(self.traces) + 1)
            found = trace(self.model, arguments, script=script, watch=self._watch())
        except ToOnnxError:
            raise
        except Exception as error:
            if script.is_forced:
                raise CannotRun(
                    f"behind the test at {script.lines[-1]}, where values do not lead to it, a run fails: {said_by(error)}"
                ) from error
            told = f"{type(error).__name__}: {first_sentence(error)}"
            self.deliberate = told if is_deliberate(error) and (self.deliberate or not self.refused) else ""
            self.refused[self.axes.shown(setting)] = said_by(error)  # a size that the model does not take; too few of others are an error
            return
        self.answers = self.answers if self.traces else script.answers
        number = first_difference(self.traces[0], found) if self.traces else None
        if number is not None and set(setting.values()) == {1} and self.small is None:
            self.small = setting, f"{next((str(row.op) for row in found.rows[number:]), 'nothing more')} at {self.axes.shown(setting)}"
            self._run(self.axes.within(dict.fromkeys(setting, 2)))
            return
        self.settings.append(setting)
        self.traces.append(found)

    def _moving_loops(self) -> frozenset[Place]:
        """Where the model loops more often at larger sizes; nowhere if all runs make the same calls."""
        alike = all(first_difference(self.traces[0], one) is None for one in self.traces[1:])
        if alike and (self.small is None or len(self.traces) > 1) and not self.axes.units:
            return frozenset()
        one, other = Places(), Places()
        tried = [*lengths(self.axes)]
        for places, setting in zip((one, other), (tried[0], tried[-1]), strict=True):
            try:
                script = Script(self.answers, settling=self.settling, whiles=Whiles(self.whiles))
                trace(self.model, self.axes.at(self.arguments, setting), script=script, watch=places.watch)
            except ToOnnxError:
                raise
            except Exception:  # noqa: BLE001 - a size that the model does not take
                return frozenset()
        return moving(one, other)

    def _rolled(self, places: frozenset[Place]) -> tuple[RunProgram, Exception | None]:
        """Return the program with its loops rolled up, from runs at sizes at which they have some turns."""
        axes = long_enough(self.axes)
        axes.environment.backed_var_to_val.update((symbol, sympy.Integer(size)) for symbol, size in axes.example.items())
        runs = Runs(self.model, axes, self.arguments, self.blocks, self.settling)
        runs.places = places
        program, ended = runs.program()
        self.answers, self.small = runs.answers, None
        return replace(program, limits=check_lengths(program, self.model, self.axes)), ended

    def run_spare(self) -> bool:
        """Run it at further sizes, if there are any; return whether it takes one of them."""
        before = len(self.settings)
        for setting in self.axes.spare() if self.axes.example and not self.places else ():
            self._run(setting)
        return len(self.settings) > before

    def _run_further(self, setting: Setting) -> None:
        before = len(self.settings)
        if before < MOST and setting == self.axes.within(setting):
            self._run(setting)
        if len(self.settings) == before:
            raise CannotRun(f"several expressions explain its sizes, and no further run tells which (tried {self.axes.shown(setting)})")
