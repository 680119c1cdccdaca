"""The runs of a module at the settings that are tried, as one program; loops that follow a size are rolled up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import sympy
from torch import nn

from ...build.values import Size
from ...compat import sizes_known_to
from ...errors import ToOnnxError, first_sentence
from ..raised import listed, said_by
from .as_written import are_calls_as_written
from .asked_by_libraries import asked_by_libraries
from .equal_blocks import EqualBlocks
from .explain import Ambiguous, Explanations
from .lines import Place
from .loops.checks import check_after, shapes_of
from .loops.places import Moving, Places, sizes_of_parts
from .loops.replay import check_lengths, lengths, long_enough
from .loops.shapes import Shape
from .loops.turns import Loops, watch_both
from .notes import Ref, Trace, first_difference
from .other_calls import error_of_other_calls
from .program import RunProgram
from .python_numbers import NO_SIZES, Kept
from .refusal import CannotRun, LeftOut, NeverRuns, NumbersMove, PlainBool, PlainNumber, Restart, SeenByRunsAlone, TestInLoop
from .same_run import is_at
from .sample import Axes, Setting
from .script import Reads, Script, Settling, is_deliberate
from .special_sizes import is_right_at, is_special
from .trace import Watch, trace
from .unify import Arguments, Writer
from .value_runs import ValueRuns, pretended_at
from .values_to_try import FEW, Values
from .whiles import Whiles

FEWEST = 2  # runs beside the example's
MORE = 2  # those that an expression has to explain where no operator says what a size is
VARIETY = 3  # sizes of an axis that has tests
MOST = 12  # runs that are tried


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
        self.model, self.axes, self.arguments, self.blocks = model, axes, arguments, blocks
        self.settling, self.answers, self.reads = settling, answers, reads
        self.settings: list[Setting] = []
        self.traces: list[Trace] = []
        self.refused: dict[str, str] = {}
        self.deliberate = ""  # what it raises by a statement of its own wherever it was refused
        self.small: list[tuple[Setting, str]] = []  # with ones, at which the model does something else, and what
        self.aside: list[Setting] = []  # with ones, at which it makes the same calls with other constants
        self.given = tuple(answers)
        self.loops = Moving(whiles=whiles)  # those that are rolled up
        self.by_values = ValueRuns()
        self.fewest = 1 + MORE  # settings that tell what a size is
        self.known: Mapping[Ref, tuple[Size, ...]] = {}  # the sizes of tensors in the last run with symbols
        self.last: Trace | None = None  # that run

    def program(self) -> tuple[RunProgram, Exception | None]:
        """Return the program that explains all runs, and what all of them raise. Where iterations of loops test values, runs tell how."""
        try:
            return self._program()
        except TestInLoop:
            if self.loops.shapes:
                raise
        runs = self._with_shapes()
        found = runs.program()
        self.answers, self.small = runs.answers, runs.small
        return found

    def _with_shapes(self) -> Runs:
        """Return runs that know how iterations differ by tests of values, at sizes at which loops go each way after each other."""
        loops = replace(self.loops, shapes=shapes_of(self._explored))
        axes = long_enough(self.axes, loops.least) if loops.places else self.axes
        if axes is not self.axes:
            _know(axes)
        runs = Runs(self.model, axes, self.arguments, self.blocks, self.settling, self.given, self.reads)
        runs.loops = loops
        return runs

    def _explored(self, shapes: Mapping[Place, tuple[Shape, ...]]) -> Mapping[Place, Sequence[Shape]]:
        """Return the shapes of the iterations of a run that goes these ways."""
        loops = Loops(replace(self.loops, shapes=shapes), explores=True)
        trace(self.model, self.axes.at(self.arguments, self.axes.example, 1), script=self._script(), watch=loops.watch)
        return loops.shapes

    def _program(self) -> tuple[RunProgram, Exception | None]:
        """Return the program that explains all runs, and what all of them raise.

        Raises:
            CannotRun: there is none.
        """
        for setting in lengths(self.axes, self.loops.least) if self.loops.places else self.axes.settings(few=True):
            self._run(setting)
        if len(self.traces) < FEWEST:
            self.run_spare(FEWEST)
        if not self.loops.places and (loops := self._moving_loops()).places:
            try:
                return self._rolled(loops)
            except Restart:
                raise
            except CannotRun as error:
                if (found := self._in_parts(error, loops.strides)) is not None:
                    return found
                self.note_tests()
                raise
        if self.deliberate and not self.traces and self.axes.conditions:
            self.note_tests()
            raise NeverRuns(self.deliberate)
        if self.axes.example and len(self.traces) < min(FEWEST, self.axes.count() - 1):
            if self.deliberate:  # the test in front of its `raise` may tell where it does not
                self.note_tests()
            raise CannotRun(f"the model runs at {len(self.traces)} of the other sizes tried ({listed(self.refused)})")
        self._run_few()
        self._check_variety()
        self._check_whiles()
        refused: CannotRun | None = None
        self._run_asked()
        while True:
            try:
                self._check_same_calls()
                found, before = self._followed(), len(self.traces)
                if not self._run_asked() or self._explains(self.traces[before:], self.settings[before:]):
                    self.by_values.check_apart(self.axes)
                    return self._checked_aside(found, refused)
            except Ambiguous as error:
                if error.setting is not None:
                    self._run_further(error.setting)
                else:
                    self.fewest = 0 if not self.run_spare(MORE) else self.fewest
            except CannotRun as error:
                if isinstance(error, (LeftOut, NumbersMove)) and self._set_aside():
                    refused = error
                    continue
                if (found := self._in_parts(error, {})) is not None:
                    return found
                if type(error) is not CannotRun or not self.run_spare():
                    raise

    def _set_aside(self) -> bool:
        """Leave out the runs with ones, at which libraries and torch make other calls; return whether there are any."""
        special = [setting for setting in self.settings if is_special(setting)]
        if len(special) in (0, len(self.settings)):
            return False
        kept = [pair for pair in zip(self.settings, self.traces, strict=True) if pair[0] not in special]
        self.settings, self.traces = [setting for setting, _ in kept], [found for _, found in kept]
        self.aside += special
        if len(self.traces) < FEWEST:
            self.run_spare()
        return True

    def _checked_aside(self, found: tuple[RunProgram, Exception | None], refused: CannotRun | None) -> tuple[RunProgram, Exception | None]:
        """Return what was found, with the settings left out at which it is right as well.

        Raises:
            CannotRun: it is not right at one that was set aside.
        """
        program, ended = found

        def is_right(setting: Setting) -> bool:
            return ended is None and is_right_at(self.model, program, self.axes, self.arguments, setting)

        if refused is not None and not all(map(is_right, self.aside)):
            raise refused
        self.small = [pair for pair in self.small if not is_right(pair[0])]
        return found

    def _in_parts(self, refused: CannotRun, strides: Mapping[sympy.Symbol, int]) -> tuple[RunProgram, Exception | None] | None:
        """Return the program with a loop over parts of an axis rolled up, from runs at several parts; None where there is none."""
        units = {**strides, **sizes_of_parts(self.traces, self.settings)}
        if self.axes.units or self.loops.places or len(units) != 1:
            return None
        runs = Runs(self.model, replace(self.axes, units=units), self.arguments, self.blocks, self.settling)
        try:
            if not (loops := runs._moving_loops()).places:
                return None
            found = runs._rolled(loops)
        except CannotRun as error:
            raise (refused if isinstance(refused, SeenByRunsAlone) else error) from None
        self.answers, self.small = runs.answers, []
        return found

    def _explains(self, traces: Sequence[Trace], settings: Sequence[Setting]) -> bool:
        """Return whether the last run with symbols is each of these runs, at its sizes."""
        assert self.last is not None
        return all(is_at(self.last, self.known, *pair) for pair in zip(traces, settings, strict=True))

    def _check_variety(self) -> None:
        """Refuse to take a size for a constant, or a line through two points for all of several, next to a test of it."""
        for symbol in self.axes.example if self.axes.conditions else ():
            seen = {self.axes.example[symbol], *(setting[symbol] for setting in self.settings)}
            if len(seen) < min(VARIETY, len(self.axes.allowed(symbol))):
                raise CannotRun(f"the model runs only at {self.axes.names[symbol]} in {sorted(seen)}")

    def _check_same_calls(self) -> None:
        """Refuse runs that do not make the same calls without a run with symbols for sizes, where one has noted all tests before that.

        Raises:
            LeftOut: they do not.
        """
        rows = () if self.loops.places else self.axes.environment.followed.get(self._way, ())
        numbers = [first_difference(self.traces[0], other) for other in self.traces[1:]]
        number = min((number for number in numbers if number is not None), default=len(rows))
        for setting, found in zip(self.settings, self.traces, strict=True) if number < len(rows) else ():
            other = found.rows[number] if number < len(found.rows) else None
            if other is None or other.kind != rows[number].kind:
                raise error_of_other_calls(rows[number], other, self.axes.shown(setting))

    @property
    def _way(self) -> Any:
        """What decides the calls of a run beside sizes and values."""
        reads = None if self.reads is None else tuple(map(id, self.reads))
        sizes = frozenset(self.axes.fresh.read)
        pretended = self.axes.conditions if self.axes.pretends else ()
        return tuple(self.answers), reads, self.loops.whiles, self.settling.has_one_answer, are_calls_as_written(), sizes, pretended

    def _check_whiles(self) -> None:
        """Hold what follows loops that values end against what follows them behind no, few and many iterations."""
        if not any(loop.may_end_early for found in self.traces for loop in found.loops):
            return
        found: list[Trace] = []
        for way in self.loops.ways_to_end():
            arguments = self.axes.at(self.arguments, self.axes.example, 1)
            found.append(trace(self.model, arguments, script=self._script(), watch=Loops(way).watch))
            check_after(found[0], found[-1])

    def note_tests(self) -> None:
        """Run it at the example's sizes, where it raises as well, so that the tests of sizes on the way are noted."""
        with suppress(CannotRun, Ambiguous):
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
        sizes = Explanations([self.axes.example, *self.settings], self.axes.holds, self.fewest if self.axes.example else 0)
        writer = Writer(self.model, self.axes, self.arguments, self.traces, sizes)
        writer.kept = kept
        try:
            watch = self._watch(self.axes.environment)
            found = trace(self.model, self.axes.at(self.arguments, self.axes.example), writer, self._script(), watch)
            if error := next((one.ended for one in (found, *self.traces) if type(one.ended) is not type(found.ended)), None):
                raise CannotRun(f"the model raises an error only at some sizes: {type(error).__name__}: {first_sentence(error)}")
            self.last, self.known = found, writer.known
            return writer.program(found), found.ended
        except (ToOnnxError, Ambiguous):
            raise
        except Exception as error:
            kind = PlainBool if NO_SIZES in str(error) else CannotRun
            raise kind(f"running the model fails: {said_by(error)}") from error
        finally:
            known = self.axes.environment.followed
            if not self.loops.places:
                known[self._way] = max(known.get(self._way, ()), writer.noted, key=len)

    def _script(self, setting: Setting | None = None) -> Script:
        pretended = pretended_at(self.axes, self.axes.example if setting is None else setting)
        return Script(self.answers, self.reads, self.settling, Whiles(self.loops.whiles), frozenset(self.axes.fresh.read), pretended)

    def _watch(self, environment: Any = None) -> Watch:
        """What is followed beside the calls: turns of loops, where those are told apart, or equal blocks."""
        return Loops(self.loops, environment).watch if self.loops else self.blocks.noted

    def _run(self, setting: Setting) -> None:
        known = [*self.settings, *self.aside, *(special for special, _ in self.small)]
        if setting in known or (setting and setting == self.axes.example):
            return
        for values in self.by_values.values(self.axes):
            self._run_with(setting, values)
            if not self.by_values.decides or setting in self.settings:
                return

    def _run_few(self) -> None:
        """Run it at the example's sizes with few rows selected, or none, where values decide sizes."""
        for values in FEW if self.by_values.decides else ():
            self._run_with(self.axes.example, values, is_free=True)

    def _run_with(self, setting: Setting, values: Values, is_free: bool = False) -> None:
        """Run it at these sizes with such values; a free run counts only where they lead to all answers by themselves."""
        script = self._script(setting)
        try:
            found, answers = self._traced(setting, script, replace(self.axes, values=values))
        except ToOnnxError as error:
            if is_free and type(error) is CannotRun:
                return
            raise
        except Exception as error:
            if is_free:
                return
            if script.is_forced:
                raise CannotRun(
                    f"a run of the branch that the values do not take, after {script.lines[-1]}, fails: {said_by(error)}"
                ) from error
            told = f"{type(error).__name__}: {first_sentence(error)}"
            self.deliberate = told if is_deliberate(error) and (self.deliberate or not self.refused) else ""
            self.refused[self.axes.shown(setting)] = said_by(error)  # a size that the model does not take; too few of others are an error
            return
        if self.by_values.decide_in(found):
            if self.by_values.reference is None:
                self.axes, self.answers = self.by_values.begin(self.axes, self._at_the_example)
            if (is_free and script.is_forced) or not self.by_values.takes(self.axes, setting, found):
                return
        self.answers = self.answers if self.traces or self.by_values.decides else answers
        number = None if self.by_values.decides else first_difference(self.traces[0], found) if self.traces else None
        if number is not None and (larger := self._without_ones(setting)) != setting:
            told = f"{next((str(row.op) for row in found.rows[number:]), 'no further operator')} at {self.axes.shown(setting)}"
            self.small.append((setting, told))
            if len(self.traces) < FEWEST:
                self._run(larger)
            return
        self.settings.append(setting)
        self.traces.append(found)

    def _at_the_example(self, axes: Axes) -> tuple[Trace, Script]:
        script = self._script()
        return trace(self.model, axes.at(self.arguments, axes.example), script=script), script

    def _traced(self, setting: Setting, script: Script, axes: Axes) -> tuple[Trace, list[bool]]:
        """Run it, or return what it did in such a run before, with values that no other run here has; and the answers to tests."""
        used = {found.values for found in self.traces}
        blocks, shapes = self.blocks.known, axes.shapes(self.arguments, setting)
        is_kept = not self.loops.places and blocks is not None
        taken: dict[int, Any] = axes.taken.setdefault((shapes, blocks, axes.values, self._way), {}) if is_kept else {}
        for values in taken.keys() - used:
            return taken[values]
        values = next(number for number in count(1) if number not in used)
        found = trace(self.model, axes.at(self.arguments, setting, values), script=script, watch=self._watch())
        found.values = values
        taken[values] = found, script.answers
        return taken[values]

    def _without_ones(self, setting: Setting) -> Setting:
        """Return the sizes without ones, where these alone may be why torch makes other calls: all are, or no call is left out for them."""
        if set(setting.values()) == {1} or are_calls_as_written():
            return self.axes.within({symbol: max(size, 2) for symbol, size in setting.items()})
        return setting

    def _moving_loops(self) -> Moving:
        """Where the model loops more often at larger sizes; nowhere if all runs make the same calls."""
        alike = all(first_difference(self.traces[0], one) is None for one in self.traces[1:])
        if alike and (not self.small or len(self.traces) > 1) and not self.axes.units:
            return Moving()
        one, other = Places(), Places()
        tried = [*lengths(self.axes)]
        ends = tried[0], tried[-1]
        for places, setting in zip((one, other), ends, strict=True):
            try:
                script = Script(settling=self.settling, reads=self.reads, whiles=Whiles(self.loops.whiles))
                watch = partial(watch_both, places, Loops(Moving(whiles=self.loops.whiles))) if self.loops.whiles else places.watch
                trace(self.model, self.axes.at(self.arguments, setting), script=script, watch=watch)
            except ToOnnxError:
                raise
            except Exception:  # noqa: BLE001 - a size that the model does not take
                return Moving()
        return Moving.between(one, other, ends, self.axes.units)

    def _rolled(self, loops: Moving) -> tuple[RunProgram, Exception | None]:
        """Return the program with its loops rolled up, the last part of an axis with the others or by itself."""
        if not loops.in_parts:
            return self._rolled_as(loops)
        try:
            return self._rolled_as(replace(loops, in_parts=frozenset()))
        except CannotRun:
            return self._rolled_as(loops)

    def _rolled_as(self, loops: Moving) -> tuple[RunProgram, Exception | None]:
        """Return the program with its loops rolled up, from runs at sizes at which they have some turns."""
        axes = long_enough(self.axes)
        axes.environment.has_longer_runs = True
        _know(axes)
        runs = Runs(self.model, axes, self.arguments, self.blocks, self.settling, self.given, self.reads)
        runs.loops = replace(loops, whiles=self.loops.whiles)
        try:
            program, ended = runs.program()
            limits = check_lengths(program, self.model, self.axes)
        except CannotRun:
            _know(self.axes)
            raise
        self.answers, self.small = runs.answers, []
        return replace(program, limits=limits), ended

    def run_spare(self, enough: int = MOST) -> bool:
        """Run it at further sizes, if there are any, until it has run so often; return whether it takes one of them."""
        spare = [*self.axes.crossed(), *self.axes.spare()] if self.axes.example and not self.loops.places else []
        before = len(self.traces)
        for setting in spare:
            if len(self.traces) < enough:
                self._run(setting)
        return len(self.traces) > before

    def _run_asked(self) -> bool:
        """Run it at the sizes that libraries ask for, if it was not; return whether it takes one of them."""
        return self._run_all([] if self.loops.places else asked_by_libraries(self.axes))

    def _run_all(self, settings: Iterable[Setting]) -> bool:
        before = len(self.settings)
        for setting in settings:
            self._run(setting)
        return len(self.settings) > before

    def _run_further(self, setting: Setting) -> None:
        before = len(self.settings)
        if before < MOST and setting == self.axes.within(setting):
            self._run(setting)
        if len(self.settings) == before:
            raise CannotRun(f"a size is ambiguous: several expressions match it at all sizes tried (last {self.axes.shown(setting)})")


def _know(axes: Axes) -> None:
    """Let the environment take the sizes for those of these axes."""
    sizes_known_to(axes.environment).update((symbol, sympy.Integer(size)) for symbol, size in axes.example.items())
