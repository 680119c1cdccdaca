"""Outcomes of the value tests in a run: the given ones first, and then those of the actual values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import torch

from ..internal_errors import is_raised_on_purpose
from .data_dependent_while import Whiles
from .plan import Plan
from .source_location import line_of, outside

aten = torch.ops.aten
BRANCH = aten.is_nonzero.default  # how every test is recorded, whichever call makes it
READS_ONE = (aten.item.default, aten._local_scalar_dense.default)
MOST_TESTS = 4096  # in one run
Pretended: TypeAlias = "Callable[[Sequence[Any], Any, Any], Any]"  # of the earlier calls, an operator, and its result
LOOP = "A loop whose number of iterations depends on a value needs torch.while_loop"


class TracerProtocol(Protocol):
    """The tracer, as `PathDecisions` needs it."""

    rows: list[Any]
    constness: Any
    loops: Any

    def refusal(self, why: str) -> Exception:
        """Return the error, with the line, for something that traced runs do not support."""

    def refuse(self, error: Exception) -> Exception:
        """Keep the first error that ends the run, and return it."""


@dataclass
class ConstantPolicy:
    """Whether tests of constant tensors have one outcome in all runs of a model.

    Attributes:
        was_asked: whether a run made such a test.
        lines: the lines of such tests, if they have one outcome.
    """

    has_one_answer: bool = False
    was_asked: bool = False
    lines: dict[str, None] = field(default_factory=dict)

    def asked(self, line: str) -> bool:
        """Record the line of such a test, and return whether it has one outcome."""
        self.was_asked = True
        if self.has_one_answer:
            self.lines[line] = None
        return self.has_one_answer


class PathDecisions:
    """Decides the tests in their order, and records the outcomes.

    Args:
        given: the first outcomes, whatever the values are.
        plan: how the module is run.
        constant_policy: whether tests of constants have one outcome.
        pretended: replaces data-dependent sizes and numbers.
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
        self.numbers: dict[str, None] = {}  # the lines that read a number
        self.is_off_trace = False  # whether an outcome differs from that of the values
        self._known: dict[Any, tuple[int, bool]] = {}

    def known_outcome(self, ref: Any, rows: Sequence[Any]) -> bool | None:
        """Return the outcome of an earlier test of the same tensor, if nothing was written since."""
        since, answer = self._known.get(ref, (0, None))
        return None if answer is None or any(_writes(row.op) for row in rows[since:]) else answer

    def answer(self, tracer: TracerProtocol, tensor: torch.Tensor, ref: Any, actual: bool) -> tuple[bool, bool]:
        """Return the outcome of a test, and whether it is new rather than a repetition without a write in between.

        Args:
            said: the outcome of the actual value.
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
            answer = self.given[place] if place < len(self.given) else actual
            self._known[ref] = len(tracer.rows), answer
            self.answers.append(answer)
        self.is_off_trace |= answer != actual
        self.lines.append(line_of(frame))
        return answer, is_new


def is_branch(func: Any, args: Sequence[Any]) -> bool:
    """Return whether a call reads a boolean from a tensor."""
    return func is BRANCH or (func in READS_ONE and args[0].dtype == torch.bool)


def is_deliberate(error: Exception) -> bool:
    """Return whether a Python `raise` or `assert` raised this error, outside the handling of another one."""
    return error.__context__ is None and error.__cause__ is None and is_raised_on_purpose(error)


def _writes(op: Any) -> bool:
    schema = getattr(op, "_schema", None)
    return schema is None or schema.is_mutable
