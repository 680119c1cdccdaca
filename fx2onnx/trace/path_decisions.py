"""Answers to the tests that a run makes of values: those that are given, and then what the values say."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, TypeAlias

import torch

from .data_dependent_while import Whiles
from .plan import Plan
from .source_location import line_of, outside

aten = torch.ops.aten
BRANCH = aten.is_nonzero.default  # how a test is noted, whatever asked for it
READS_ONE = (aten.item.default, aten._local_scalar_dense.default)
MOST_TESTS = 4096  # of one run
Pretended: TypeAlias = "Callable[[Sequence[Any], Any, Any], Any]"  # of the calls before, an operator, and what it gave
LOOP = "A loop whose number of iterations depends on a value needs torch.while_loop"


class TracerProtocol(Protocol):
    """Who is asked for a value, and has noted calls."""

    rows: list[Any]
    constness: Any
    loops: Any

    def refusal(self, why: str) -> Exception:
        """Return the error for something that a run does not show, with the line."""

    def refuse(self, error: Exception) -> Exception:
        """Keep the first error that ends the run, and return it."""


@dataclass
class ConstantPolicy:
    """Whether what follows from weights alone has one answer in the runs of a model.

    Attributes:
        was_asked: whether a run has asked for any of it.
        lines: that did, where it has one answer.
    """

    has_one_answer: bool = False
    was_asked: bool = False
    lines: dict[str, None] = field(default_factory=dict)

    def asked(self, line: str) -> bool:
        """Note a line that asks, and return whether it gets the one answer."""
        self.was_asked = True
        if self.has_one_answer:
            self.lines[line] = None
        return self.has_one_answer


class PathDecisions:
    """Answers tests in their order, and keeps what was answered.

    Args:
        given: the first answers, whatever the values say.
        plan: how the module is run.
        constant_policy: whether what follows from weights alone has one answer.
        pretended: gives results of calls other sizes, and numbers that are read other values.
    """

    def __init__(
        self,
        given: Sequence[bool] = (),
        plan: Plan = Plan(),  # noqa: B008 - it is frozen
        constant_policy: ConstantPolicy | None = None,
        pretended: Pretended | None = None,
    ) -> None:
        self.plan, self.pretended = plan, pretended
        self.constant_policy, self.whiles = constant_policy or ConstantPolicy(), Whiles(plan.whiles)
        self.given = tuple(given)
        self.answers: list[bool] = []
        self.lines: list[str] = []
        self.numbers: dict[str, None] = {}  # the lines that read one
        self.is_off_trace = False  # whether an answer was another than the values'
        self._known: dict[Any, tuple[int, bool]] = {}

    def known_outcome(self, ref: Any, rows: Sequence[Any]) -> bool | None:
        """Return the answer to a test that was asked before, if nothing was written since."""
        asked, answer = self._known.get(ref, (0, None))
        return None if answer is None or any(_writes(row.op) for row in rows[asked:]) else answer

    def answer(self, tracer: TracerProtocol, tensor: torch.Tensor, ref: Any, said: bool) -> tuple[bool, bool]:
        """Return the answer to a test, and whether it was asked for the first time since something was written.

        Args:
            said: what the values say.
        """
        frame = outside(sys._getframe(1))
        answer, is_new = None, True
        if tracer.loops is not None:
            answer, is_new = tracer.loops.answer(ref, frame)
        if answer is None:
            self.whiles.look(tracer, tensor, ref, frame)
            if (known_outcome := self.known_outcome(ref, tracer.rows)) is not None:
                return known_outcome, False
            place = len(self.answers)
            if place == MOST_TESTS:
                raise tracer.refusal(f"{LOOP}: the model evaluates {MOST_TESTS} conditions on values, the last")
            answer = self.given[place] if place < len(self.given) else said
            self._known[ref] = len(tracer.rows), answer
            self.answers.append(answer)
        self.is_off_trace |= answer != said
        self.lines.append(line_of(frame))
        return answer, is_new


def is_branch(func: Any, args: Sequence[Any]) -> bool:
    """Return whether a call asks a tensor for something that has two answers only."""
    return func is BRANCH or (func in READS_ONE and args[0].dtype == torch.bool)


def is_deliberate(error: Exception) -> bool:
    """Return whether a statement of Python, `raise` or `assert`, raised this error, and not in the handling of another."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and error.__context__ is None and error.__cause__ is None and _raises(last)


def _raises(at: TracebackType) -> bool:
    return dis.opname[at.tb_frame.f_code.co_code[at.tb_lasti]] == "RAISE_VARARGS"


def _writes(op: Any) -> bool:
    schema = getattr(op, "_schema", None)
    return schema is None or schema.is_mutable
