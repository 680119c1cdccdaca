"""Answers to the tests that torch.export cannot decide, of numbers and sizes that values decide, while it traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import sympy
from torch.fx.experimental import symbolic_shapes
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv

from ...errors import shown_path
from ...patches.registry import patched, register_patch
from ..dynamic_shapes import OpenTest
from ..running.branches.paths import BRANCHES
from ..running.lines import is_within_torch
from ..running.refusal import CannotRun

ANSWERED = "a test that fx2onnx has answered"
OF_SHAPES = "torch.fx.experimental.symbolic_shapes"


class Undecided(GuardOnDataDependentSymNode):
    """What torch raises in the place of its own error, for nobody to see but who answers."""

    def __init__(self, made: Callable[[], Exception]) -> None:
        Exception.__init__(self)
        self.made = made


class Answers:
    """Answers tests in their order, and keeps what was answered.

    Attributes:
        asked: each test, with its line.
        told: the answers.
        refused: why there is no answer to a test, also where the model catches that.
    """

    def __init__(self, given: Sequence[bool]) -> None:
        self._given = given
        self.asked: list[OpenTest] = []
        self.told: list[bool] = []
        self.refused: CannotRun | None = None

    @property
    def facts(self) -> list[sympy.Basic]:
        """What holds where these are the answers."""
        return [found.test if answer else sympy.Not(found.test) for found, answer in zip(self.asked, self.told, strict=True)]

    def to(self, test: sympy.Basic, environment: ShapeEnv, line: str) -> sympy.Basic:
        """Answer a test, the same each time it is asked; from there on torch counts it as known.

        Raises:
            CannotRun: there are more tests than a file may have paths.
        """
        known = next((place for place, found in enumerate(self.asked) if found.test == test), None)
        if known is None:
            known = len(self.asked)
            if known == BRANCHES:
                self.refused = CannotRun(f"the model evaluates more than {BRANCHES} conditions on values, the last at {line}")
                raise self.refused
            self.asked.append(OpenTest(test, {}, line))
            self.told.append(self._given[known] if known < len(self._given) else True)
            with patched("answers_learned"):
                environment.guard_or_defer_runtime_assert(self.facts[known], ANSWERED)
        return sympy.true if self.told[known] else sympy.false


@contextmanager
def answering(given: Sequence[bool]) -> Iterator[Answers]:
    """Answer, while it lasts, tests of the model's own that values decide: first so, and then with yes."""
    answers = Answers(given)
    with patched("answers", answers=answers):
        yield answers


@register_patch(
    "answers_learned",
    f"{OF_SHAPES}.ShapeEnv._maybe_guard_rel",
    reason="torch would put the number of an equation in the place of what the file reads",
)
def _without_equations(learn: Callable[..., None]) -> Callable[..., None]:
    return lambda environment, fact: None if isinstance(fact, sympy.Eq) else learn(environment, fact)


@register_patch("answers", f"{OF_SHAPES}.ShapeEnv.evaluate_expr", reason="torch.export refuses a condition that values decide")
def _deciding(evaluate: Callable[..., Any], answers: Answers) -> Callable[..., Any]:
    def decided(environment: ShapeEnv, test: sympy.Basic, *args: Any, **kwargs: Any) -> Any:
        try:
            return evaluate(environment, test, *args, **kwargs)
        except Undecided as undecided:
            line = _line(environment)
            if not line or not (test.is_Boolean or test.is_Relational):
                raise undecided.made() from None
        return answers.to(test, environment, line)

    return decided


@register_patch("answers", f"{OF_SHAPES}.ShapeEnv._make_data_dependent_error", reason="the error of torch is expensive to make")
def _undecided(error: Callable[..., Exception]) -> Callable[..., Exception]:
    def undecided(environment: ShapeEnv, *args: Any, **kwargs: Any) -> Exception:
        return Undecided(partial(error, environment, *args, **kwargs))

    return undecided


@register_patch("answers", f"{OF_SHAPES}.uninteresting_files", reason="what answers a condition is not the line that asks it")
def _with_this_file(plain: Callable[[], set[str]]) -> Callable[[], set[str]]:
    files = plain() | {__file__}
    return lambda: files


def _line(environment: ShapeEnv) -> str:
    """The line that asks, behind the modes that hand it on; empty where it is one of torch's."""
    frame = environment._get_user_frame()
    while frame is not None and (frame.f_code.co_name == "__torch_function__" or _is_between(frame.f_code.co_filename)):
        frame = frame.f_back
    if frame is None or is_within_torch(frame.f_code.co_filename):
        return ""
    return f"{shown_path(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}"


def _is_between(path: str) -> bool:
    return path in symbolic_shapes.uninteresting_files()
