"""Store and print the results of a node comparison: rows, ranked by the error that each node adds."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

import onnx_ir as ir
import torch

from ... import show
from ...outcomes import Outcome
from ..difference import TOLERANCES, Difference, Tolerances, tolerance_text

SHOWN = 4  # rows of the table
LISTED, IN_A_CELL, A_NAME = 60, 21, 25  # maximum characters of a list of names, of a list in a cell, and of a name in a cell
PAGE = 96  # maximum characters of a title line
NOTHING = 0.1  # in tolerances; smaller errors count as equal, since their order may differ between machines
ALIKE = 1.5  # the ratio of distances up to which both sides count as equally near


@dataclass(frozen=True, repr=False)
class Row(show.Tabular):
    """A captured node, and its value in the exported model.

    Attributes:
        node, op, line: the captured node, its op, and the user's source line.
        value: the name of the value in the exported model.
        onnx: the ONNX nodes that compute it from earlier aligned values.
        through: the unaligned captured nodes just before it, where the error may originate.
        readers: the captured nodes that use its value; a float32 region would extend to these.
        expected, actual: dtype and shape in eager and in the exported model.
        difference: the distance between the model's value and the captured node's result for the model's own inputs, without inherited
            errors.
        dtype: the narrowest float dtype up to here, which determines the tolerance.
        added: the same distance in tolerances, by the scale of the tensor. Above 1, the model computes something else.
        off: the distances of eager's operator (`eager`) and the model's node (`file`) from float64 for the same inputs, in tolerances.
        at_outputs: how much this node's error changes an output, in tolerances, computed in float64; 0 unless more than 1.
        repaired: the distance of the outputs from float64, in tolerances, if only this node were exact, for instance in float32.
        rounding: the element with the largest rounding error, if `at_outputs` is not 0.
        apart: the largest distance from eager at this node, including inherited errors.
    """

    node: str
    op: str
    line: str
    value: str
    onnx: tuple[ir.Node, ...]
    through: tuple[str, ...]
    readers: tuple[str, ...]
    expected: str
    actual: str
    difference: Difference
    dtype: torch.dtype
    added: float
    off: Mapping[str, float]
    at_outputs: float
    repaired: float | None
    rounding: str
    apart: float

    @property
    def named(self) -> bool:
        """Whether this node is a cause of the difference."""
        return self.added > 1 or self.at_outputs > 1

    @property
    def nearer(self) -> str:
        """The side that is nearer to float64, `file` or `eager`; empty if both are about as near."""
        eager, file = self.off["eager"], self.off["file"]
        near = min(eager, file) * ALIKE
        return "" if max(eager, file) <= near or math.isnan(near) else "file" if file < eager else "eager"

    @property
    def score(self) -> float:
        """The error for the ranking, here or at an output, in tolerances."""
        return max(self.added, self.at_outputs)

    def cells(self) -> dict[str, Any]:
        """Return the row of the table."""
        return {
            "node": self.node if len(self.node) <= A_NAME else f"{self.node[: A_NAME - 9]}…{self.node[-8:]}",
            "line": _short(self.line),
            "ONNX nodes": _join_names((node.op_type for node in self.onnx), IN_A_CELL),
            "value": "" if self.expected == self.actual else f"{self.actual}, eager {self.expected}",
            "adds": format_multiple(self.added),
            "at outputs": format_multiple(self.at_outputs) if self.at_outputs else "",
            "nearer": self.nearer if self.named else "",
            "outcome": self.kind,
        }

    def _table(self) -> show.Table:
        return show.table([self.cells()], f"{self.node}{self.said()}")

    @property
    def kind(self) -> str:
        """The kind of error: `wrong`, `overflow`, `rounding`, or `ok`."""
        if self.added > 1 or not self.named:
            return Outcome.WRONG if self.added > 1 else Outcome.OK
        return "rounding" if self.rounding.lstrip("-")[:3] not in ("inf", "nan") else "overflow"

    def said(self) -> str:
        """Describe the error of this node."""
        if self.added > 1:
            times = "" if math.isinf(self.added) else f", {_tolerances(self.added)}"
            left = "" if self.repaired is None else f"; without it the outputs would be {_tolerances(self.repaired)} from float64"
            return f"{_problem(self.difference)}{times}{self._place()}{left}"
        if self.named:
            left = "" if self.repaired is None else f"; {describe_float32_region([self])}, that would be {format_multiple(self.repaired)}"
            return f": {self.rounding}{self._place()}; this changes an output by {_tolerances(self.at_outputs)}{left}"
        return ""

    def _place(self) -> str:
        if self.through:
            return f", or before it in {_join_names(self.through)}: only the call is known, {self.line}"
        return f", by {self.line}"


@dataclass(frozen=True)
class Outputs:
    """The distances of the outputs from the float64 result, in tolerances.

    Attributes:
        eager, file: the distances of eager and of the exported model.
        together: the distance with the errors of all nodes.
        repaired: the distance without the errors of the reported nodes.
    """

    eager: float = 0.0
    file: float = 0.0
    together: float = 0.0
    repaired: float = 0.0


@dataclass(frozen=True, repr=False)
class Divergence(show.Tabular):
    """All rows in the order of the captured graph, outputs last. It prints the rows with the largest errors.

    Attributes:
        rows: one for each captured node with a value in the exported model.
        same: the captured nodes that only pass on another node's value, such as a dropout in eval mode.
        unaligned: the captured nodes whose tensor has no value in the model: merged, folded, or computed in another way.
        alone: how much the outputs change when no other values are outputs, so that ONNX Runtime may fuse nodes.
        outputs: the distances of eager and of the unchanged model from the float64 result.
        writer: the exporter that wrote the model.
        tolerances: the unit of all distances.
        readers: the captured nodes that use each node's value.
    """

    rows: tuple[Row, ...]
    same: tuple[str, ...]
    unaligned: tuple[str, ...]
    alone: Difference
    outputs: Outputs = field(default_factory=Outputs)
    writer: str = ""
    tolerances: Tolerances = field(default_factory=lambda: TOLERANCES)
    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def ranking(self) -> tuple[Row, ...]:
        """The rows, largest error first. Equal or negligible errors are in the order of the graph."""
        return tuple(sorted(self.rows, key=lambda row: -max(row.score, NOTHING)))

    @property
    def first(self) -> Row | None:
        """The row with the largest error; None if no error exceeds its tolerance."""
        return self.ranking[0] if self.ranking and self.ranking[0].named else None

    @property
    def node(self) -> str | None:
        """The name of the captured node with the largest error; None if no error exceeds its tolerance."""
        return self.first.node if self.first else None

    def __repr__(self) -> str:
        table = self._table()
        return "\n".join([*textwrap.wrap(table.title, PAGE), repr(show.Table(table.rows))])

    def _table(self) -> show.Table:
        head = f"{self.writer}: " if self.writer else ""
        return show.table([row.cells() for row in self.ranking[:SHOWN]], f"{head}{self._found()}; {self._coverage()}")

    def _found(self) -> str:
        if self.first:
            return f"diverges at {self.node}{self.first.said()}{self._by_all_named()}{self._nearer()}{self._as_it_is()}{self._counted()}"
        if self.alone.problem:
            return f"no value differs, but the outputs do when ONNX Runtime may fuse nodes{_problem(self.alone)}"
        if self.outputs.file > 1:
            return f"no node's error exceeds its tolerance, but together they put an output {_tolerances(self.outputs.file)} from float64"
        return "no difference"

    def _by_all_named(self) -> str:
        named = [row for row in self.rows if row.named]
        if len(named) < 2:
            return ""
        how = (
            f"without {_join_names(row.node for row in named)}"
            if any(row.added > 1 for row in named)
            else describe_float32_region(named, self.readers)
        )
        return f"; {how}, {format_multiple(self.outputs.repaired)}"

    def _nearer(self) -> str:
        eager, file = self.outputs.eager, self.outputs.file
        if not self.first or self.first.added > 1 or max(eager, file) <= 1:
            return ""
        near = "the file is nearer" if file < eager else "eager is nearer" if eager < file else "neither is nearer"
        return f"; at the outputs {near} to float64: file {format_multiple(file)}, eager {format_multiple(eager)}"

    def _as_it_is(self) -> str:
        """Describe how the outputs change without the additional outputs, because the rows describe a model that may not be fused."""
        return f"; the outputs change when ONNX Runtime may fuse nodes{_problem(self.alone)}" if self.alone.problem else ""

    def _counted(self) -> str:
        dtype = self.first.dtype if self.first else torch.float32
        return f"; in tolerances of {str(dtype).removeprefix('torch.')} ({tolerance_text(dtype, self.tolerances)})"

    def _coverage(self) -> str:
        aligned = len({row.node for row in self.rows} | set(self.same))
        missing = f", not {_join_names(self.unaligned)}" if self.unaligned else ""
        return f"{aligned} of {aligned + len(self.unaligned)} captured nodes aligned{missing}"


def describe_float32_region(rows: Sequence[Row], graph: Mapping[str, tuple[str, ...]] = MappingProxyType({})) -> str:
    """Describe which nodes would stay in float32, and the nodes after which the model returns to the narrower dtype.

    Args:
        graph: the readers of each node. Nodes between two of the rows also stay in float32.
    """
    names = {row.node for row in rows}
    readers = dict.fromkeys(reader for row in rows for reader in row.readers if reader not in names)
    ends = [reader for reader in readers if not _leads_to(reader, names, graph)]
    end = f", and back after {_join_names(ends)}" if ends else ", to the output"
    return f"with {_join_names(row.node for row in rows)} in float32{end}"


def _leads_to(start: str, names: Collection[str], graph: Mapping[str, tuple[str, ...]]) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        further = [name for name in graph.get(waiting.pop(), ()) if name not in seen]
        if any(name in names for name in further):
            return True
        seen.update(further)
        waiting.extend(further)
    return False


def format_multiple(times: float) -> str:
    """Format a multiple of a tolerance in a few characters."""
    if times < NOTHING:
        return f"<{NOTHING}"
    return f"{times:.1f}" if times < 1 else "inf" if math.isinf(times) else f"{float(f'{times:.2g}'):,.6g}"


def _tolerances(times: float) -> str:
    return "infinitely many tolerances" if math.isinf(times) else f"{format_multiple(times)} tolerances"


def _short(line: str) -> str:
    short = PurePath(line.partition(" in ")[0].removeprefix("a cell of ")).name if ":" in line else line
    return short if len(short) <= A_NAME else f"{short[: A_NAME - 1]}…"


def _problem(difference: Difference) -> str:
    return f": {difference.problem.removeprefix('output').removeprefix(': ')}" if difference.problem else ""


def _join_names(names: Iterable[str], width: int = LISTED) -> str:
    return textwrap.shorten(", ".join(names), width, placeholder=" …")
