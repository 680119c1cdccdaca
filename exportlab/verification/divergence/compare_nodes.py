"""Compare each captured node with its value in the exported model: what each side adds, and the effect on the outputs."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import onnx_ir as ir
import torch

from ... import show
from ...exporters.to_onnx import users_line
from ...show.text import op_name
from ..difference import Difference, Tolerances, difference_of, distances
from .call import Call, Node
from .node_table import Outputs, Row
from .propagate_error import Carried
from .replay_modes import UNINITIALISED, Exact, Fed, Lane, Noisy, kind_of
from .tolerance import difference, error, largest, measure_in_tolerances, measure_movement

SEEDS = range(4)
REPAIRED = 5  # number of nodes for which the effect of float32 is tested


@dataclass(frozen=True)
class Beside:
    """A value of the exported model, and its node's results for the model's own inputs to it, in eager's dtypes and in float64."""

    node: Node
    answer: ir.Value
    file: torch.Tensor
    eager: torch.Tensor
    exact: torch.Tensor
    inherited: torch.Tensor
    converted: bool

    @property
    def comparable(self) -> bool:
        """Whether the values can be compared: outputs need eager's dtype, other values only the same kind of dtype."""
        strict = self.answer.is_graph_output() and not self.converted
        alike = self.file.dtype == self.eager.dtype if strict else kind_of(self.file) == kind_of(self.eager)
        return alike and self.file.shape == self.eager.shape


class Looked:
    """Compare all values of an exported model with those of the captured graph for one call."""

    def __init__(self, call: Call, alone: Mapping[str, torch.Tensor], tolerances: Tolerances) -> None:
        self.call = call
        self.alone = dict(zip((name for name, _ in call.alignment.outputs), alone.values(), strict=False))
        self.tolerances = tolerances
        self.plain, self.fed, self.exact = Lane(call), Fed(call), Exact(call)
        self.outputs, fed, exact = self.plain.results(), self.fed.results(), self.exact.results()
        self.values = [*self._values(), *self._copied(fed, exact)]

    def _values(self) -> Iterator[Beside]:
        for node in self.call.captured.graph.nodes:
            answer = self.call.alignment.values.get(node.name)
            if answer is not None and node.op == "call_function" and op_name(node) not in UNINITIALISED:
                lanes = (lane.computed[node.name] for lane in (self.fed, self.exact, self.plain))
                yield self._beside(node, answer, *lanes)

    def _copied(self, fed: Mapping[str, Any], exact: Mapping[str, Any]) -> Iterator[Beside]:
        """Yield outputs that differ from their node's value: copies, and results changed in place later."""
        for name, answer in self.call.alignment.outputs:
            if self.call.alignment.values.get(name) is not answer:
                yield self._beside(self.call.alignment.nodes[name], answer, fed[name], exact[name], self.outputs[name])

    def _beside(self, node: Node, answer: ir.Value, *values: Any) -> Beside:
        file = self.call.found[str(answer.name)]
        eager, exact, inherited = (_to_file_form(value, file) for value in values)
        return Beside(node, answer, file, eager, exact, inherited, self.call.converted)

    @cached_property
    def noisy(self) -> list[Noisy]:
        """Several runs of the graph from randomly rounded values."""
        lanes = [Noisy(self.call, seed) for seed in SEEDS]
        for lane in lanes:
            lane.results()
        return lanes

    def fused(self) -> Difference:
        """Return how much the outputs change when the other values are not outputs, so that ONNX Runtime may fuse nodes."""
        worst = Difference()
        for name, answer in self.call.alignment.outputs:
            value, before = self.alone[name], self.call.found[str(answer.name)]
            ratios = measure_in_tolerances(value, before, self._dtype(self.call.alignment.nodes[name]), self.tolerances)
            seen = difference(value, before, ratios, "it has, if all values are outputs,")
            worst = max(worst, seen, key=lambda d: (bool(d.problem), d.worst))
        return worst

    def rows(self) -> tuple[list[Row], Outputs]:
        """Return one row per value, in the order of the captured graph, and the distances of the outputs from float64."""
        carried = Carried(self.call, self._errors(), self.tolerances)
        effects = carried.culprits()
        repaired = {name: carried.without([name]) for name in sorted(effects, key=lambda n: -effects[n])[:REPAIRED]}
        rows = [self._row(beside, effects, repaired) for beside in self.values]
        named = [row.node for row in rows if row.node in carried.errors and row.named]
        distances = (carried.distance(self.outputs), carried.distance(self.alone))
        return rows, Outputs(*distances, carried.by(list(carried.errors)) if named else 0.0, carried.without(named) if named else 0.0)

    def _row(self, beside: Beside, effects: Mapping[str, float], repaired: Mapping[str, float]) -> Row:
        node, alignment = beside.node, self.call.alignment
        added, seen = self._added(beside)
        off = {side: self._off(beside, value) for side, value in (("eager", beside.eager), ("file", beside.file))}
        return Row(
            node=node.name,
            op=_op(node),
            line=users_line(node),
            value=str(beside.answer.name),
            onnx=alignment.onnx(beside.answer),
            through=alignment.through(node, self.fed.same),
            readers=readers_of(node),
            expected=_format_annotation(beside.eager),
            actual=_format_annotation(beside.file),
            difference=seen,
            dtype=self._dtype(node),
            added=added,
            off=off,
            at_outputs=effects.get(node.name, 0.0),
            repaired=repaired.get(node.name),
            rounding=_rounding(beside) if node.name in effects else "",
            apart=largest(distances(beside.inherited, beside.file)) if beside.comparable else math.inf,
        )

    def _dtype(self, node: Node) -> torch.dtype:
        return self.call.narrowest.get(node.name, torch.float32)

    def _added(self, beside: Beside) -> tuple[float, Difference]:
        """Return the distance to the nearer reference for the model's own inputs, without the effect of rounding those inputs."""
        if not beside.comparable:
            return math.inf, difference_of(beside.eager, beside.file, self.tolerances)
        ratios = self._apart(beside)
        noise = self._noise(beside) if largest(ratios) > 1 else None
        ratios = ratios if noise is None else self._apart(beside, noise)
        near = (
            beside.exact if largest(distances(beside.exact, beside.file)) < largest(distances(beside.eager, beside.file)) else beside.eager
        )
        return largest(ratios), difference(beside.file, near, ratios)

    def _apart(self, beside: Beside, noise: torch.Tensor | None = None) -> torch.Tensor:
        references = [value for value in (beside.eager, beside.exact) if value.shape == beside.file.shape]
        dtype = self._dtype(beside.node)
        return torch.stack([measure_in_tolerances(beside.file, value, dtype, self.tolerances, noise) for value in references]).amin(0)

    def _noise(self, beside: Beside) -> torch.Tensor | None:
        values = [_to_file_form(lane.computed[beside.node.name], beside.file) for lane in self.noisy]
        fits = all(value.shape == beside.exact.shape == beside.file.shape for value in values)
        return measure_movement(values, beside.exact) if fits else None

    def _off(self, beside: Beside, value: torch.Tensor) -> float:
        """Return the distance of a value from float64, in tolerances."""
        if not beside.comparable or value.shape != beside.exact.shape:
            return math.inf
        return largest(measure_in_tolerances(value, beside.exact, self._dtype(beside.node), self.tolerances))

    def _errors(self) -> dict[str, torch.Tensor]:
        """Return the error of each node against its float64 result, in eager or in the model, whichever is larger."""
        overflowed = {beside.node.name for beside in self.values if _overflows(beside)}
        overflowed |= {name for name in self.fed.unaligned if _lost(self.fed.computed[name], self.exact.computed[name])}
        found = {}
        for beside in self.values:
            if beside.comparable and beside.exact.is_floating_point() and self._is_own(beside):
                worst = max((error(value, beside.exact) for value in self._answers(beside, overflowed)), key=_size)
                if _size(worst) > 0:
                    found[beside.node.name] = torch.view_as_complex(worst) if self._is_complex(beside.node) else worst
        return found

    def _answers(self, beside: Beside, overflowed: Collection[str]) -> list[torch.Tensor]:
        """Return the values that may have an error. After an overflow, return only the effect of rounding.

        ONNX Runtime may skip the rounding of a half-precision input. The model's result then doesn't belong to the inputs seen here.
        """
        if any(n.name in overflowed for n in beside.node.all_input_nodes):
            return [beside.exact.to(beside.eager.dtype)]
        half = torch.finfo(self._dtype(beside.node)).eps > torch.finfo(torch.float32).eps
        return [beside.eager] if half and self._added(beside)[0] <= 1 else [beside.eager, beside.file]

    def _is_own(self, beside: Beside) -> bool:
        return self.call.alignment.values.get(beside.node.name) is beside.answer

    def _is_complex(self, node: Node) -> bool:
        value = self.exact.computed[node.name]
        return isinstance(value, torch.Tensor) and value.is_complex()


def _overflows(beside: Beside) -> bool:
    return _lost(beside.eager, beside.exact) or _lost(beside.file, beside.exact)


def _lost(value: Any, exact: Any) -> bool:
    """Whether an element is not finite, but finite in float64."""
    return isinstance(value, torch.Tensor) and value.shape == exact.shape and bool((exact.isfinite() & ~value.isfinite()).any())


def _size(errors: torch.Tensor) -> float:
    return largest(torch.where(errors.isfinite(), errors.abs(), torch.inf))


def _rounding(beside: Beside) -> str:
    """Describe the element that is furthest from float64, in eager or in the model."""
    sides = {"eager": beside.eager, "the file": beside.file}
    off = {side: distances(beside.exact, value).flatten() for side, value in sides.items()}
    side = max(off, key=lambda name: largest(off[name]))
    flat = int(torch.argmax(off[side]))
    dtype = str(sides[side].dtype).removeprefix("torch.")
    return f"{sides[side].flatten()[flat].item():.6g} in {side}'s {dtype} where float64 has {beside.exact.flatten()[flat].item():.6g}"


def readers_of(node: Node) -> tuple[str, ...]:
    """Return the names of the nodes that use a node's value."""
    return tuple(user.name for user in node.users if user.op == "call_function")


def _to_file_form(value: Any, actual: torch.Tensor) -> torch.Tensor:
    """Convert a value of eager to the model's representation: numbers become tensors, and complex numbers become pairs."""
    if not isinstance(value, torch.Tensor):
        return torch.full(actual.shape, value, dtype=actual.dtype)
    value = value.detach()
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() and not actual.is_complex() else value


def _op(node: Node) -> str:
    """Return the name of a node's op: `linear`, or `split[1]` for one of several results."""
    if node.target is operator.getitem and isinstance(node.args[0], Node):
        return f"{op_name(node.args[0])}[{node.args[1]}]"
    return op_name(node)


def _format_annotation(value: torch.Tensor) -> str:
    return show.annotation(str(value.dtype).removeprefix("torch."), value.shape)
