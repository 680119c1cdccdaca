"""What a comparison found: rows, and the table around the first that parts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from ... import show
from ...outcomes import Outcome
from ..difference import Difference

BEFORE, AFTER = 2, 1  # rows that the table shows around the first that parts
LISTED, IN_A_CELL = 60, 28  # characters of a list of names


@dataclass(frozen=True, repr=False)
class Row(show.Tabular):
    """One captured node, and the value of the file that answers to it.

    Attributes:
        node, op, line: the captured node, what it calls, and the user's line that caused it.
        value: the name of the value in the file.
        onnx: the ONNX nodes that compute it from values aligned before.
        through: captured nodes just before it that the file has no value for; what went wrong may have gone wrong in them.
        expected, actual: dtype and shape, in eager and in the file.
        difference: how far they are apart, and what was seen.
    """

    node: str
    op: str
    line: str
    value: str
    onnx: tuple[ir.Node, ...]
    through: tuple[str, ...]
    expected: str
    actual: str
    difference: Difference

    def cells(self) -> dict[str, Any]:
        """Return its line in the table."""
        return {
            "node": self.node,
            "line": self.line,
            "ONNX nodes": _listed((node.op_type for node in self.onnx), IN_A_CELL),
            "value": self.expected if self.expected == self.actual else f"{self.actual}, eager {self.expected}",
            "max diff": f"{self.difference.worst:.1e}" if self.expected == self.actual else "",
            "outcome": Outcome.WRONG if self.difference.problem else Outcome.OK,
        }

    def _table(self) -> show.Table:
        return show.table([self.cells()], f"{self.node}{_problem(self.difference)}{_after(self.through)}")


@dataclass(frozen=True, repr=False)
class Divergence(show.Tabular):
    """All rows in the order of the captured graph, outputs last; prints those around the first that parts.

    Attributes:
        rows: one per captured node that has a value in the file.
        same: captured nodes that only hand on what another one holds (a dropout in eval).
        unaligned: captured nodes that return a tensor for which the file has no value of theirs: merged, folded, or made otherwise.
        alone: the outputs once more when no other value is asked for, and ONNX Runtime may fuse what it likes; looked at when no row parts.
    """

    rows: tuple[Row, ...]
    same: tuple[str, ...]
    unaligned: tuple[str, ...]
    alone: Difference

    @property
    def first(self) -> Row | None:
        """The first row that parts; None when none does."""
        return next((row for row in self.rows if row.difference.problem), None)

    @property
    def node(self) -> str | None:
        """The name of the first captured node whose value differs; None when none does."""
        return self.first.node if self.first else None

    def _table(self) -> show.Table:
        at = self.rows.index(self.first) if self.first else len(self.rows) - 1
        return show.table([row.cells() for row in self.rows[max(at - BEFORE, 0) : at + AFTER + 1]], f"{self._found()}; {self._coverage()}")

    def _found(self) -> str:
        if self.first:
            return f"parts at {self.node}{_problem(self.first.difference)}{_after(self.first.through)}"
        if self.alone.problem:
            return f"no value differs, but the outputs do when ONNX Runtime may fuse nodes{_problem(self.alone)}"
        return "no difference"

    def _coverage(self) -> str:
        aligned = len({row.node for row in self.rows} | set(self.same))
        missing = f", not {_listed(self.unaligned)}" if self.unaligned else ""
        return f"{aligned} of {aligned + len(self.unaligned)} captured nodes aligned{missing}"


def _problem(difference: Difference) -> str:
    return f": {difference.problem.removeprefix('output').removeprefix(': ')}" if difference.problem else ""


def _after(through: Sequence[str]) -> str:
    return f", or before it in {_listed(through)}" if through else ""


def _listed(names: Iterable[str], width: int = LISTED) -> str:
    return textwrap.shorten(", ".join(names), width, placeholder=" …")
