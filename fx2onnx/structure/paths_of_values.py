"""All lists of outcomes of the value tests of a module, and the path of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch

from ..guards.dynamic_shapes import OpenGuard
from ..guards.guard_origin import is_in_library
from ..ir.captured_program import RunProgram
from ..ir.expressions import storage
from ..trace.canonical_indexing import are_calls_canonical
from ..trace.path_decisions import BRANCH, LOOP
from ..trace.refusal import CallSequenceDiverged, TooManyPaths, TraceUnsupported
from ..trace.size_domain import SizeAssignment, SizeDomain
from ..trace.source_location import line_in

BRANCHES = 16  # paths of one exported model
MOST_ENDED = 64  # paths that raise, which are not exported
OFTEN = 4  # tests of one line on a path, from which it may be a loop


@dataclass(frozen=True)
class Path:
    """The result of the runs with the same outcomes of value tests.

    Attributes:
        program: its graph has a call of `BRANCH` for each test.
        diverges_at_one: settings with size 1 at which the model makes another call, and that call.
        exception: what all of the runs raise deliberately.
        axes: the dynamic axes of this path.
        sizes: tests of sizes with their outcomes on this path.
        is_probe: whether it comes from a single run at the example's sizes.
    """

    answers: tuple[bool, ...]
    program: RunProgram
    diverges_at_one: Sequence[tuple[SizeAssignment, str]]
    exception: Exception | None
    axes: SizeDomain
    sizes: tuple[tuple[OpenGuard, bool], ...] = ()
    is_probe: bool = False

    def tests(self) -> list[torch.fx.Node]:
        """Return the calls that are value tests, in order."""
        return list(self.program.graph.find_nodes(op="call_function", target=BRANCH))

    def check_diverges_at_one(self, axes: SizeDomain) -> None:
        """Refuse a model that makes other calls at size 1, unless a guard on sizes has another outcome there.

        Guards in libraries count only if calls are canonical, because libraries test sizes without consequences.

        Raises:
            CallSequenceDiverged: If no guard explains it.
        """
        guards = [guard.expr for guard in axes.environment.guards if are_calls_canonical() or not is_in_library(guard.sloc)]
        for setting, told in self.diverges_at_one:
            if all(guard.subs(setting) == sympy.true for guard in guards if guard.free_symbols <= set(setting)):
                raise CallSequenceDiverged(f"no condition on sizes explains why the model calls {told}")


def every_path(run: Callable[[Sequence[bool]], Path]) -> list[Path]:
    """Return all paths of a module, with both outcomes of each test.

    Args:
        run: returns the path with these first outcomes.

    Raises:
        TraceUnsupported: If there are too many.
        Exception: Whatever a run raises.
    """
    todo: list[tuple[bool, ...]] = [()]
    found: list[Path] = []
    while todo:
        given = todo.pop()
        path = run(given)
        if path.answers[: len(given)] != given:
            raise TraceUnsupported(f"two runs of the model evaluate different conditions on values: {_format_lines(path)}")
        found.append(path)
        todo += [(*path.answers[:i], not path.answers[i]) for i in range(len(given), len(path.answers))]
        _check_number(found, len(todo))
    return found


def _check_number(found: Sequence[Path], further: int) -> None:
    """Refuse more paths than an exported model may have.

    Raises:
        TraceUnsupported: If there are more.
    """
    files = [path for path in found if path.exception is None]
    if len(files) > BRANCHES or len(found) - len(files) > MOST_ENDED:
        raise refusal_of_paths(found, further)


def refusal_of_paths(found: Sequence[Path], further: int) -> TooManyPaths:
    """Return the error for too many paths, with the tests of the longest one."""
    longest = max(found, key=lambda path: len(path.answers))
    lines = Counter(_lines(longest))
    loop = f". {LOOP}" if max(lines.values()) >= OFTEN else ""
    return TooManyPaths(
        f"conditions on values lead to more than {BRANCHES} paths, with {further} left to try: {_format_lines(longest)}{loop}"
    )


def test_lines(path: Path) -> list[str]:
    """Return the line of each value test."""
    return [line_in(node.meta["stack_trace"]) for node in path.tests()]


def _lines(path: Path) -> list[str]:
    return [*test_lines(path), *(test.line for test, _ in path.sizes)]


def _format_lines(path: Path) -> str:
    return ", ".join(f"{line} ({times} times)" if times > 1 else line for line, times in Counter(_lines(path)).items())


def check_changed_inputs(paths: Sequence[Path], leaves: Sequence[Any]) -> None:
    """Refuse writes into inputs that the exported model would not reproduce.

    Raises:
        TraceUnsupported: If another input shares the memory, or if the model also branches on values.
    """
    changed = dict.fromkeys(name for path in paths for name in path.program.changed_inputs)
    if not changed:
        return
    memory = [storage(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if len(paths) > 1 or len(set(memory)) < len(memory):
        why = "and branches on values" if len(paths) > 1 else "whose memory another input shares"
        raise TraceUnsupported(f"the model writes into inputs ({', '.join(changed)}), {why}")
