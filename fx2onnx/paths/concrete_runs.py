"""Run a model at several sizes and values, and keep the trace of each run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from ..errors import ToOnnxError, first_sentence
from ..guards.error_text import said_by
from ..ir.expressions import Size
from ..structure.equal_blocks import EqualBlocks
from ..structure.loop_recorder import LoopTracer
from ..structure.loop_sites import DynamicLoops
from ..trace.canonical_indexing import are_calls_canonical
from ..trace.events import Arguments, Ref, Trace, first_difference
from ..trace.path_decisions import PathDecisions, is_deliberate
from ..trace.refusal import (
    TraceUnsupported,
)
from ..trace.run import Watch, trace
from ..trace.size_domain import SizeAssignment, SizeDomain
from ..trace.value_witnesses import FEW, Values
from .library_sizes import asked_by_libraries
from .session import Session
from .value_runs import ValueRuns, pretended_at

FEWEST = 2  # runs beside the example's
MOST = 12  # runs that are tried


class ConcreteRuns:
    """Runs of a model at several sizes, and with several values, and what each did.

    Args:
        given: the first outcomes of tests of values; the first run decides the others.
    """

    def __init__(
        self,
        session: Session,
        axes: SizeDomain,
        arguments: Arguments,
        blocks: EqualBlocks,
        given: Sequence[bool] = (),
    ) -> None:
        self.session, self.model, self.axes, self.arguments, self.blocks = session, session.model, axes, arguments, blocks
        self.given = tuple(given)
        self.answers: Sequence[bool] = given
        self.settings: list[SizeAssignment] = []
        self.traces: list[Trace] = []
        self.refused: dict[str, str] = {}
        self.deliberate = ""  # what it raises by a statement of its own wherever it was refused
        self.diverges_at_one: list[tuple[SizeAssignment, str]] = []  # with ones, at which the model does something else, and what
        self.aside: list[SizeAssignment] = []  # with ones, at which it makes the same calls with other constants
        self.traces_with_ones: list[tuple[SizeAssignment, Trace]] = []  # those of the runs of the last two lists
        self.loops = DynamicLoops(whiles=session.plan.whiles)  # those that are rolled up
        self.by_values = ValueRuns()
        self.known: Mapping[Ref, tuple[Size, ...]] = {}  # the sizes of tensors in the last run with symbols
        self.last: Trace | None = None  # that run

    @property
    def _way(self) -> Any:
        """What decides the calls of a run beside sizes and values."""
        pretended = self.axes.conditions if self.axes.pretends else ()
        has_one_answer = self.session.constant_policy.has_one_answer
        return tuple(self.answers), self.session.plan.key(), has_one_answer, are_calls_canonical(), pretended

    def _script(self, setting: SizeAssignment | None = None) -> PathDecisions:
        pretended = pretended_at(self.axes, self.axes.example if setting is None else setting)
        return self.session.decisions(self.answers, pretended)

    def _watch(self, environment: Any = None) -> Watch:
        """What is followed beside the calls: turns of loops, where those are told apart, or equal blocks."""
        return LoopTracer(self.loops, environment).watch if self.loops else self.blocks.noted

    def _run(self, setting: SizeAssignment) -> None:
        known = [*self.settings, *self.aside, *(special for special, _ in self.diverges_at_one)]
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

    def _run_with(self, setting: SizeAssignment, values: Values, is_free: bool = False) -> None:
        """Run it at these sizes with such values; a free run counts only where they lead to all answers by themselves."""
        script = self._script(setting)
        try:
            found, answers = self._trace(setting, script, replace(self.axes, values=values))
        except ToOnnxError as error:
            if is_free and type(error) is TraceUnsupported:
                return
            raise
        except Exception as error:
            if is_free:
                return
            if script.is_off_trace:
                raise TraceUnsupported(
                    f"a run of the branch that the values do not take, after {script.lines[-1]}, fails: {said_by(error)}"
                ) from error
            told = f"{type(error).__name__}: {first_sentence(error)}"
            self.deliberate = told if is_deliberate(error) and (self.deliberate or not self.refused) else ""
            self.refused[self.axes.format_setting(setting)] = said_by(
                error
            )  # a size that the model does not take; too few of others are an error
            return
        if self.by_values.decide_in(found):
            if self.by_values.reference is None:
                self.axes, self.answers = self.by_values.begin(self.axes, self._trace_example)
            if (is_free and script.is_off_trace) or not self.by_values.takes(self.axes, setting, found):
                return
        self.answers = self.answers if self.traces or self.by_values.decides else answers
        number = None if self.by_values.decides else first_difference(self.traces[0], found) if self.traces else None
        if number is not None and (larger := self._avoid_ones(setting)) != setting:
            told = f"{next((str(row.op) for row in found.rows[number:]), 'no further operator')} at {self.axes.format_setting(setting)}"
            self.diverges_at_one.append((setting, told))
            self.traces_with_ones.append((setting, found))
            if len(self.traces) < FEWEST:
                self._run(larger)
            return
        self.settings.append(setting)
        self.traces.append(found)

    def _trace_example(self, axes: SizeDomain) -> tuple[Trace, PathDecisions]:
        script = self._script()
        return trace(self.model, axes.at(self.arguments, axes.example), script=script), script

    def _trace(self, setting: SizeAssignment, script: PathDecisions, axes: SizeDomain) -> tuple[Trace, list[bool]]:
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

    def _avoid_ones(self, setting: SizeAssignment) -> SizeAssignment:
        """Return the sizes without ones, where these alone may be why torch makes other calls: all are, or no call is left out for them."""
        if set(setting.values()) == {1} or are_calls_canonical():
            return self.axes.clamp({symbol: max(size, 2) for symbol, size in setting.items()})
        return setting

    def trace_extra_sizes(self, enough: int = MOST) -> bool:
        """Run it at further sizes, if there are any, until it has run so often; return whether it takes one of them."""
        spare = [*self.axes.swap_size_order(), *self.axes.spare()] if self.axes.example and not self.loops.places else []
        before = len(self.traces)
        for setting in spare:
            if len(self.traces) < enough:
                self._run(setting)
        return len(self.traces) > before

    def _run_asked(self) -> bool:
        """Run it at the sizes that libraries ask for, if it was not; return whether it takes one of them."""
        return self._run_all([] if self.loops.places else asked_by_libraries(self.axes))

    def _run_all(self, settings: Iterable[SizeAssignment]) -> bool:
        before = len(self.settings)
        for setting in settings:
            self._run(setting)
        return len(self.settings) > before
