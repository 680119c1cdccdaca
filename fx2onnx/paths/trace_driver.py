"""The runs of a module at the settings that are tried, as one program; loops that follow a size are rolled up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import sympy

from ..compat.shape_env import sizes_known_to
from ..errors import ToOnnxError, first_sentence
from ..guards.error_text import format_errors, said_by
from ..ir.captured_program import RunProgram
from ..shapes.size_checks import SizeChecks
from ..structure.iteration_shapes import Shape
from ..structure.loop_checks import check_after, shapes_of
from ..structure.loop_recorder import LoopTracer, watch_both
from ..structure.loop_sites import DynamicLoops, LoopSites, sizes_of_parts
from ..trace.divergence import error_of_other_calls
from ..trace.events import Trace, first_difference
from ..trace.plan import Plan
from ..trace.refusal import (
    AlwaysRaises,
    CallSequenceDiverged,
    ConstantDiverged,
    NoFallback,
    Restart,
    TestInLoop,
    TraceUnsupported,
)
from ..trace.run import trace
from ..trace.size_domain import SizeAssignment, SizeDomain
from ..trace.source_location import CodeLocation
from ..trace.symbolic_builtins import NO_SIZES
from ..validate.replay import check_lengths, lengths, long_enough
from ..validate.same_run import is_at, is_at_without_views
from ..validate.special_sizes import is_right_at, is_special
from .concrete_runs import FEWEST, ConcreteRuns
from .graph_builder import GraphBuilder


class TraceDriver(ConcreteRuns):
    """Makes one program of the runs of a module; the last run has symbols for sizes."""

    def program(self) -> tuple[RunProgram, Exception | None]:
        """Return the program that explains all runs, and what all of them raise. Where iterations of loops test values, runs tell how."""
        try:
            return self._program()
        except TestInLoop:
            if self.loops.shapes:
                raise
        runs = self._make_runs_by_shape()
        found = runs.program()
        self.answers, self.diverges_at_one = runs.answers, runs.diverges_at_one
        return found

    def _make_runs_by_shape(self) -> TraceDriver:
        """Return runs that know how iterations differ by tests of values, at sizes at which loops go each way after each other."""
        loops = replace(self.loops, shapes=shapes_of(self._explore_shapes))
        axes = long_enough(self.axes, loops.least) if loops.places else self.axes
        if axes is not self.axes:
            _know(axes)
        runs = self._at(axes)
        runs.loops = loops
        return runs

    def _at(self, axes: SizeDomain) -> TraceDriver:
        """Return a driver of the same path at other sizes."""
        return TraceDriver(self.session, axes, self.arguments, self.blocks, self.given)

    def _explore_shapes(self, shapes: Mapping[CodeLocation, tuple[Shape, ...]]) -> Mapping[CodeLocation, Sequence[Shape]]:
        """Return the shapes of the iterations of a run that goes these ways."""
        loops = LoopTracer(replace(self.loops, shapes=shapes), explores=True)
        trace(self.model, self.axes.at(self.arguments, self.axes.example, 1), script=self._script(), watch=loops.watch)
        return loops.shapes

    def _program(self) -> tuple[RunProgram, Exception | None]:
        """Return the program that explains all runs, and what all of them raise.

        Raises:
            TraceUnsupported: there is none.
        """
        for setting in lengths(self.axes, self.loops.least) if self.loops.places else self.axes.settings(few=True):
            self._run(setting)
        if len(self.traces) < FEWEST:
            self.trace_extra_sizes(FEWEST)
        if not self.loops.places and (loops := self._moving_loops()).places:
            try:
                return self._roll(loops)
            except Restart:
                raise
            except TraceUnsupported as error:
                if (found := self._roll_chunked(error, loops.strides)) is not None:
                    return found
                self.collect_guards()
                raise
        if self.deliberate and not self.traces and self.axes.conditions:
            self.collect_guards()
            raise AlwaysRaises(self.deliberate)
        if self.axes.example and len(self.traces) < min(FEWEST, self.axes.count() - 1):
            if self.deliberate:  # the test in front of its `raise` may tell where it does not
                self.collect_guards()
            raise TraceUnsupported(f"the model runs at {len(self.traces)} of the other sizes tried ({format_errors(self.refused)})")
        self._run_few()
        self._check_whiles()
        refused: TraceUnsupported | None = None
        self._run_asked()
        while True:
            try:
                self._check_same_calls()
                found, before = self._trace_symbolic(), len(self.traces)
                if not self._run_asked() or self._explains(self.traces[before:], self.settings[before:]):
                    self.by_values.check_apart(self.axes)
                    return self._checked_aside(found, refused)
            except Restart:
                raise
            except TraceUnsupported as error:
                if isinstance(error, (CallSequenceDiverged, ConstantDiverged)) and self._set_aside():
                    refused = error
                    continue
                if (found := self._roll_chunked(error, {})) is not None:
                    return found
                raise

    def _set_aside(self) -> bool:
        """Leave out the runs with ones, at which libraries and torch make other calls; return whether there are any."""
        special = [setting for setting in self.settings if is_special(setting)]
        if len(special) in (0, len(self.settings)):
            return False
        pairs = list(zip(self.settings, self.traces, strict=True))
        kept = [pair for pair in pairs if pair[0] not in special]
        self.traces_with_ones += [pair for pair in pairs if pair[0] in special]
        self.settings, self.traces = [setting for setting, _ in kept], [found for _, found in kept]
        self.aside += special
        if len(self.traces) < FEWEST:
            self.trace_extra_sizes()
        return True

    def _checked_aside(
        self, found: tuple[RunProgram, Exception | None], refused: TraceUnsupported | None
    ) -> tuple[RunProgram, Exception | None]:
        """Return what was found, with the settings left out at which it is right as well.

        Raises:
            TraceUnsupported: it is not right at one that was set aside.
        """
        program, exception = found

        def is_right(setting: SizeAssignment) -> bool:
            if exception is not None:
                return False
            return self._is_last_at(setting) or is_right_at(self.model, program, self.axes, self.arguments, setting)

        if refused is not None and not all(map(is_right, self.aside)):
            raise refused
        self.diverges_at_one = [pair for pair in self.diverges_at_one if not is_right(pair[0])]
        return found

    def _is_last_at(self, setting: SizeAssignment) -> bool:
        """Return whether the last run with symbols is the run at these sizes, except for views that return their input there."""
        assert self.last is not None
        found = next(trace for known, trace in self.traces_with_ones if known == setting)
        return is_at_without_views(self.last, self.known, found, setting)

    def _roll_chunked(self, refused: TraceUnsupported, strides: Mapping[sympy.Symbol, int]) -> tuple[RunProgram, Exception | None] | None:
        """Return the program with a loop over parts of an axis rolled up, from runs at several parts; None where there is none."""
        chunk_sizes = {**strides, **sizes_of_parts(self.traces, self.settings)}
        if self.axes.chunk_sizes or self.loops.places or len(chunk_sizes) != 1:
            return None
        runs = self._at(replace(self.axes, chunk_sizes=chunk_sizes))
        try:
            if not (loops := runs._moving_loops()).places:
                return None
            found = runs._roll(loops)
        except Restart:
            raise
        except TraceUnsupported as error:
            raise (refused if isinstance(refused, NoFallback) else error) from None
        self.answers, self.diverges_at_one = runs.answers, []
        return found

    def _explains(self, traces: Sequence[Trace], settings: Sequence[SizeAssignment]) -> bool:
        """Return whether the last run with symbols is each of these runs, at its sizes."""
        assert self.last is not None
        return all(is_at(self.last, self.known, *pair) for pair in zip(traces, settings, strict=True))

    def _check_same_calls(self) -> None:
        """Refuse runs that do not make the same calls without a run with symbols for sizes, where one has noted all tests before that.

        Raises:
            CallSequenceDiverged: they do not.
        """
        rows = () if self.loops.places else self.axes.environment.followed.get(self._way, ())
        numbers = [first_difference(self.traces[0], other) for other in self.traces[1:]]
        number = min((number for number in numbers if number is not None), default=len(rows))
        for setting, found in zip(self.settings, self.traces, strict=True) if number < len(rows) else ():
            other = found.rows[number] if number < len(found.rows) else None
            if other is None or other.kind != rows[number].kind:
                raise error_of_other_calls(rows[number], other, self.axes.format_setting(setting))

    def _check_whiles(self) -> None:
        """Hold what follows loops that values end against what follows them behind no, few and many iterations."""
        if not any(loop.may_end_early for found in self.traces for loop in found.loops):
            return
        found: list[Trace] = []
        for way in self.loops.ways_to_end():
            arguments = self.axes.at(self.arguments, self.axes.example, 1)
            found.append(trace(self.model, arguments, script=self._script(), watch=LoopTracer(way).watch))
            check_after(found[0], found[-1])

    def collect_guards(self) -> None:
        """Run it at the example's sizes, where it raises as well, so that the tests of sizes on the way are noted."""
        try:
            self._trace_symbolic()
        except Restart:
            raise
        except TraceUnsupported:
            pass

    def _trace_symbolic(self) -> tuple[RunProgram, Exception | None]:
        """Run it with symbols for sizes."""
        sizes = SizeChecks([self.axes.example, *self.settings], self.axes)
        writer = GraphBuilder(self.model, self.axes, self.arguments, self.traces, sizes)
        writer.plan = self.session.plan
        try:
            watch = self._watch(self.axes.environment)
            found = trace(self.model, self.axes.at(self.arguments, self.axes.example), writer, self._script(), watch)
            if error := next((one.exception for one in (found, *self.traces) if type(one.exception) is not type(found.exception)), None):
                raise TraceUnsupported(f"the model raises an error only at some sizes: {type(error).__name__}: {first_sentence(error)}")
            self.last, self.known = found, writer.known
            return writer.program(found), found.exception
        except ToOnnxError:
            raise
        except Exception as error:
            why = f"running the model fails: {said_by(error)}"
            raise (Restart(why, Plan.decide_comparisons) if NO_SIZES.search(str(error)) else TraceUnsupported(why)) from error
        finally:
            known = self.axes.environment.followed
            if not self.loops.places:
                known[self._way] = max(known.get(self._way, ()), writer.noted, key=len)

    def _moving_loops(self) -> DynamicLoops:
        """Where the model loops more often at larger sizes; nowhere if all runs make the same calls."""
        alike = all(first_difference(self.traces[0], one) is None for one in self.traces[1:])
        if alike and (not self.diverges_at_one or len(self.traces) > 1) and not self.axes.chunk_sizes:
            return DynamicLoops()
        one, other = LoopSites(), LoopSites()
        tried = [*lengths(self.axes)]
        ends = tried[0], tried[-1]
        for places, setting in zip((one, other), ends, strict=True):
            try:
                script = self.session.decisions()
                watch = (
                    partial(watch_both, places, LoopTracer(DynamicLoops(whiles=self.loops.whiles))) if self.loops.whiles else places.watch
                )
                trace(self.model, self.axes.at(self.arguments, setting), script=script, watch=watch)
            except ToOnnxError:
                raise
            except Exception:  # noqa: BLE001 - a size that the model does not take
                return DynamicLoops()
        return DynamicLoops.between(one, other, ends, self.axes.chunk_sizes)

    def _roll(self, loops: DynamicLoops) -> tuple[RunProgram, Exception | None]:
        """Return the program with its loops rolled up, the last part of an axis with the others or by itself."""
        if not loops.in_parts:
            return self._roll_as(loops)
        try:
            return self._roll_as(replace(loops, in_parts=frozenset()))
        except Restart:
            raise
        except TraceUnsupported:
            return self._roll_as(loops)

    def _roll_as(self, loops: DynamicLoops) -> tuple[RunProgram, Exception | None]:
        """Return the program with its loops rolled up, from runs at sizes at which they have some turns."""
        axes = long_enough(self.axes)
        axes.environment.has_longer_runs = True
        _know(axes)
        runs = self._at(axes)
        runs.loops = replace(loops, whiles=self.loops.whiles)
        try:
            program, exception = runs.program()
            limits = check_lengths(program, self.model, self.axes)
        except TraceUnsupported:
            _know(self.axes)
            raise
        self.answers, self.diverges_at_one = runs.answers, []
        return replace(program, limits=limits), exception


def _know(axes: SizeDomain) -> None:
    """Let the environment take the sizes for those of these axes."""
    sizes_known_to(axes.environment).update((symbol, sympy.Integer(size)) for symbol, size in axes.example.items())
