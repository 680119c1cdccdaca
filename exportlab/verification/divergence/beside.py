"""The captured graph, run node by node and held against the values of the file."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch
from torch.export.graph_signature import InputKind, InputSpec

from ... import show
from ...exporters.to_onnx import returns_its_argument, users_line
from ...show.text import op_name
from ..difference import Tolerances, difference_of
from .alignment import Alignment
from .rows import Row

UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
COPIES = {"clone", "lift_fresh_copy"}
Node = torch.fx.Node


class Beside(torch.fx.Interpreter):
    """Runs the captured graph, and holds every value against the file's as it comes: a later node may write into it."""

    def __init__(
        self,
        captured: torch.export.ExportedProgram,
        alignment: Alignment,
        found: Mapping[str, torch.Tensor],
        tolerances: Tolerances,
    ) -> None:
        super().__init__(captured.graph_module)
        self.captured = captured
        self.alignment = alignment
        self.found = found
        self.tolerances = tolerances
        self.rows: list[Row] = []
        self.same: list[str] = []
        self.unaligned: list[str] = []

    def results(self, leaves: Sequence[Any]) -> dict[str, Any]:
        """Run all nodes on copies of what the file takes, and return what the nodes hold in the end that are outputs."""
        rest = iter(leaves)
        given = [_placed(spec, self.captured, rest) for spec in self.captured.graph_signature.input_specs]
        with torch.no_grad():
            returned = self.run(*given, enable_io_processing=False)
        nodes = self.captured.graph.output_node().args[0]
        return {node.name: value for node, value in zip(nodes, returned, strict=True) if isinstance(node, Node)}

    def run_node(self, node: Node) -> Any:
        """Return the value of one node, compared before the next one runs."""
        value = super().run_node(node)
        if node.op == "call_function" and op_name(node) not in UNINITIALISED:
            self._look(node, value)
        return value

    def _look(self, node: Node, value: Any) -> None:
        if node.name in self.alignment.values:
            self.rows.append(self._row(node, value, self.alignment.values[node.name]))
        elif isinstance(value, torch.Tensor):
            (self.same if self._handed_on(node, value) else self.unaligned).append(node.name)

    def _handed_on(self, node: Node, value: torch.Tensor) -> bool:
        """Whether this is what an aligned node, an input or a weight holds: the same memory, or a copy."""
        if returns_its_argument(node):
            return False
        known = {*self.alignment.values, *self.same}
        sources = (n for n in node.all_input_nodes if n.op != "call_function" or n.name in known)
        return any(op_name(node) in COPIES or _is_same(value, self.env[source]) for source in sources)

    def _row(self, node: Node, value: Any, answer: ir.Value) -> Row:
        actual = self.found[str(answer.name)]
        expected = _as_in_a_file(value, actual)
        return Row(
            node=node.name,
            op=_op(node),
            line=users_line(node),
            value=str(answer.name),
            onnx=self.alignment.onnx(answer),
            through=self.alignment.through(node, self.same),
            expected=_described(expected),
            actual=_described(actual),
            difference=difference_of(expected, actual, self.tolerances),
        )

    def outputs(self, results: Mapping[str, Any]) -> Iterator[Row]:
        """Yield the outputs of the file that are not the value of their node: copies, and what was written after it was computed."""
        for name, output in self.alignment.outputs:
            if self.alignment.values.get(name) is not output:
                yield self._row(self.alignment.nodes[name], results[name], output)


def _placed(spec: InputSpec, captured: torch.export.ExportedProgram, rest: Iterator[Any]) -> Any:
    """Return what a placeholder of the captured graph gets; a copy of what the graph may write into."""
    if spec.kind == InputKind.USER_INPUT:
        given = spec.arg.value if hasattr(spec.arg, "value") else next(rest)
        return given.clone() if isinstance(given, torch.Tensor) else given
    weights = captured.state_dict if spec.target in captured.state_dict else captured.constants
    weight = weights.get(spec.target)
    return weight.clone() if spec.kind == InputKind.BUFFER else weight


def _is_same(value: torch.Tensor, other: Any) -> bool:
    if not isinstance(other, torch.Tensor):
        return False
    return all(part(value) == part(other) for part in (torch.Tensor.data_ptr, torch.Tensor.size, torch.Tensor.stride, lambda t: t.dtype))


def _as_in_a_file(value: Any, actual: torch.Tensor) -> torch.Tensor:
    """A value of eager in the form that a file has it: numbers are tensors, complex numbers are pairs."""
    if not isinstance(value, torch.Tensor):
        return torch.full(actual.shape, value, dtype=actual.dtype)
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() and not actual.is_complex() else value


def _op(node: Node) -> str:
    """Return what a node calls: `linear`, or `split[1]` for one of several results."""
    if node.target is operator.getitem and isinstance(node.args[0], Node):
        return f"{op_name(node.args[0])}[{node.args[1]}]"
    return op_name(node)


def _described(value: torch.Tensor) -> str:
    return show.annotation(str(value.dtype).removeprefix("torch."), value.shape)
