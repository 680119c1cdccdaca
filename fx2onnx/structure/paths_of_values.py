"""Every list of answers to the tests that a module makes of values, with what runs show that answer so."""

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

BRANCHES = 16  # paths of one file
MOST_ENDED = 64  # paths that raise, which are in no file
OFTEN = 4  # times a line asks on one path, from which on it may be a loop


@dataclass(frozen=True)
class Path:
    """What runs show that answer tests of values alike.

    Attributes:
        program: its graph has a call of `TEST` where a test is made.
        small: settings with ones at which the model does something else, and what.
        ended: what all of the runs raise, of the model's own will.
        axes: that move on it.
        sizes: the tests of sizes that hold on it, or do not.
        is_probe: whether one run alone shows it, at the example's sizes.
    """

    answers: tuple[bool, ...]
    program: RunProgram
    diverges_at_one: Sequence[tuple[SizeAssignment, str]]
    exception: Exception | None
    axes: SizeDomain
    sizes: tuple[tuple[OpenGuard, bool], ...] = ()
    is_probe: bool = False

    def tests(self) -> list[torch.fx.Node]:
        """Return the calls that are tests, in their order."""
        return list(self.program.graph.find_nodes(op="call_function", target=BRANCH))

    def check_diverges_at_one(self, axes: SizeDomain) -> None:
        """Refuse a model that does something else at ones, unless a test of sizes was seen that comes out another way there.

        One in a library tells it only where calls are noted as they are written: libraries ask where nothing depends on it.

        Raises:
            CallSequenceDiverged: none was seen.
        """
        guards = [guard.expr for guard in axes.environment.guards if are_calls_canonical() or not is_in_library(guard.sloc)]
        for setting, told in self.diverges_at_one:
            if all(guard.subs(setting) == sympy.true for guard in guards if guard.free_symbols <= set(setting)):
                raise CallSequenceDiverged(f"no condition on sizes explains why the model calls {told}")


def every_path(run: Callable[[Sequence[bool]], Path]) -> list[Path]:
    """Return all paths of a module, each test answered both ways.

    Args:
        run: returns the path whose first answers are these.

    Raises:
        TraceUnsupported: there are too many. Whatever a run raises.
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
    """Refuse more paths than a file may have.

    Raises:
        TraceUnsupported: there are more.
    """
    files = [path for path in found if path.exception is None]
    if len(files) > BRANCHES or len(found) - len(files) > MOST_ENDED:
        raise refusal_of_paths(found, further)


def refusal_of_paths(found: Sequence[Path], further: int) -> TooManyPaths:
    """Return the error for more paths than a file may have, with the tests of the longest."""
    max_traced_size = max(found, key=lambda path: len(path.answers))
    lines = Counter(_lines(max_traced_size))
    loop = f". {LOOP}" if max(lines.values()) >= OFTEN else ""
    return TooManyPaths(
        f"conditions on values lead to more than {BRANCHES} paths, with {further} left to try: {_format_lines(max_traced_size)}{loop}"
    )


def test_lines(path: Path) -> list[str]:
    """Return the line of each test of a value."""
    return [line_in(node.meta["stack_trace"]) for node in path.tests()]


def _lines(path: Path) -> list[str]:
    return [*test_lines(path), *(test.line for test, _ in path.sizes)]


def _format_lines(path: Path) -> str:
    return ", ".join(f"{line} ({times} times)" if times > 1 else line for line, times in Counter(_lines(path)).items())


def check_changed_inputs(paths: Sequence[Path], leaves: Sequence[Any]) -> None:
    """Refuse writes into inputs where a file would show less of them than eager.

    Raises:
        TraceUnsupported: another input shows the same memory, or one side alone of a test writes.
    """
    changed = dict.fromkeys(name for path in paths for name in path.program.changed_inputs)
    if not changed:
        return
    memory = [storage(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if len(paths) > 1 or len(set(memory)) < len(memory):
        why = "and branches on values" if len(paths) > 1 else "whose memory another input shares"
        raise TraceUnsupported(f"the model writes into inputs ({', '.join(changed)}), {why}")
