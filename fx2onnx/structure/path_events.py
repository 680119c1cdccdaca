"""The calls of one path in order, with the sources of their tensors, for the comparison of paths."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy
import torch
from torch.export.graph_signature import InputKind

from ..compat import trees as pytree
from ..compat.operators import OpOverload
from ..guards.decisions import is_implied
from ..guards.dynamic_shapes import OpenGuard
from ..ir.captured_program import SymbolicMeta
from ..ir.expressions import Size, evaluate_at, expression
from ..lower.aliasing import written_arguments
from ..trace.events import alike, equal
from ..trace.path_decisions import BRANCH
from ..trace.size_domain import SizeDomain
from .paths_of_values import Path
from .scope import Node, SubgraphKey

SIZE = (int, sympy.Basic)


class Use(NamedTuple):
    """A tensor argument: the number of the event that returns it, or the name of an input; and which part of the result."""

    source: int | str
    part: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Event:
    """One call of a path.

    Attributes:
        leaves: the leaves of the arguments, with tensors as `Use`.
        kinds: dtype and sizes of each tensor returned.
        writes: the memory that it writes into.
        answer: the outcome, if it is a test.
    """

    node: Node
    leaves: list[Any]
    spec: pytree.TreeSpec
    kinds: list[Any]
    writes: frozenset[int]
    answer: bool | None = None

    @property
    def target(self) -> Any:
        """The operator called."""
        return self.node.target

    @property
    def uses(self) -> Iterator[tuple[int, Use]]:
        """The positions of tensors among the arguments, and the tensors."""
        return ((place, leaf) for place, leaf in enumerate(self.leaves) if isinstance(leaf, Use))


class PathEvents:
    """The events of one path, and its results.

    Args:
        constants: of all paths by name; those of this path are added.

    Attributes:
        inputs: the placeholders of the path by their names in the program.
    """

    def __init__(self, path: Path, constants: dict[str, torch.Tensor]) -> None:
        self.path, self.axes = path, path.axes
        self._names = {} if path.exception is not None else names_of_inputs(path, constants)
        self.inputs = {name: node for node, name in self._names.items()}
        self._numbers: dict[Node, int] = {}
        self.events: list[Event] = []
        for node in path.program.graph.nodes:
            if node.op == "call_function" and node.target not in (operator.getitem, operator.index):
                self._numbers[node] = len(self.events)
                self.events.append(self._event(node))
        outputs: Any = [] if path.exception is not None else path.program.graph.output_node().args[0]
        self.outputs = [self._leaf(result) for result in outputs]

    def _event(self, node: Node) -> Event:
        leaves, spec = pytree.tree_flatten((node.args, dict(node.kwargs)))
        value = node.meta.get("val")
        kinds = [kind_of(part) for part in pytree.tree_leaves(value) if isinstance(part, SymbolicMeta)]
        writes = (argument.meta["val"] for argument in written_arguments(node))
        memory = frozenset(value.memory for value in writes if isinstance(value, SymbolicMeta))
        return Event(node, list(map(self._leaf, leaves)), spec, kinds, memory, value if node.target is BRANCH else None)

    def _leaf(self, leaf: Any) -> Any:
        if not isinstance(leaf, Node):
            return leaf
        if leaf.op == "get_attr":
            return SubgraphKey(self.path.program.graph_module.get_submodule(str(leaf.target)))
        if leaf.target is operator.index:  # a size as a result of the model
            return leaf.args[0]
        if leaf.target is operator.getitem:
            whole = self._leaf(leaf.args[0])
            return Use(whole.source, (*whole.part, leaf.args[1]))
        if leaf in self._names:
            return Use(self._names[leaf])
        written = _returned_argument(leaf)
        return Use(self._numbers[leaf]) if written is None else self._leaf(written)

    def value(self, use: Use) -> Any:
        """Return the metadata of a tensor."""
        value: Any = (self.events[use.source].node if isinstance(use.source, int) else self.inputs[use.source]).meta["val"]
        for key in use.part:
            value = value[key]
        return value

    def memory(self, use: Use) -> int | None:
        """Return the memory of a tensor; None for other values."""
        value = self.value(use)
        return value.memory if isinstance(value, SymbolicMeta) else None

    def answers_before(self, number: int) -> tuple[bool, ...]:
        """Return the outcomes of the tests before an event."""
        return tuple(event.answer for event in self.events[:number] if event.answer is not None)

    def side_of(self, test: OpenGuard) -> bool | None:
        """Return the outcome of a test of sizes on this path; None if both are possible."""
        for found, holds in self.path.sizes:
            if found.test == test.test:
                return holds
        outcome = evaluate_at(test.test, dict(self.axes.fixed))
        if outcome in (sympy.true, sympy.false):
            return bool(outcome == sympy.true)
        if not outcome.free_symbols <= set(self.axes.ranges):
            return None
        holding = [side for side in (True, False) if is_implied(_orient_test(outcome, side), self.axes.ranges, self.axes.conditions)]
        return holding[0] if holding else None


def _orient_test(test: sympy.Basic, side: bool) -> sympy.Basic:
    return test if side else sympy.Not(test)


def _returned_argument(node: Node) -> Node | None:
    """The argument that a call modifies in place and returns; None for other calls."""
    returns = node.target._schema.returns if isinstance(node.target, OpOverload) else ()
    if len(returns) != 1 or returns[0].alias_info is None or not returns[0].alias_info.is_write:
        return None
    written = written_arguments(node)
    return written[0] if len(written) == 1 else None


def names_of_inputs(path: Path, constants: dict[str, torch.Tensor]) -> dict[Node, str]:
    """Return names of the placeholders that are equal for equal inputs of all paths, and add the constants to `constants`."""
    found: dict[Node, str] = {}
    specs = {spec.arg.name: spec for spec in path.program.graph_signature.input_specs}
    for node in path.program.graph.find_nodes(op="placeholder"):
        found[node] = node.name
        if specs[node.name].kind == InputKind.CONSTANT_TENSOR:
            value = path.program.constants[str(specs[node.name].target)]
            target = next((name for name, other in constants.items() if equal(value, other)), f"lifted_tensor_{len(constants)}")
            constants.setdefault(target, value)
            found[node] = f"c_{target}"
    return found


def kind_of(value: Any) -> Any:
    """Return the dtype and sizes of a tensor, or the expression of a number."""
    return (value.dtype, value.sizes) if isinstance(value, SymbolicMeta) else expression(value)


def covers(general: Event, special: Event, axes: SizeDomain) -> bool:
    """Return whether a call is also right for the path of another one, at the sizes of that path."""
    pairs = zip((*general.leaves, *general.kinds), (*special.leaves, *special.kinds), strict=True)
    return all(isinstance(one, Use) or alike(one, other) or gives(one, other, axes) for one, other in pairs)


def comparable(one: Event, other: Event) -> bool:
    """Return whether two events call the same operator with the same structure of arguments and results."""
    if one.target is not other.target or one.spec != other.spec or len(one.kinds) != len(other.kinds):
        return False
    return all(isinstance(a, Use) == isinstance(b, Use) for a, b in zip(one.leaves, other.leaves, strict=True))


def gives(general: Any, special: Any, axes: SizeDomain) -> bool:
    """Return whether a size, or a dtype with sizes, equals another one at all sizes of these axes."""
    if not any(isinstance(general, kind) and isinstance(special, kind) for kind in (tuple, SIZE)):
        return False
    if isinstance(general, tuple):
        alike_axes = general[0] is special[0] and len(general[1]) == len(special[1])
        return alike_axes and all(gives(*pair, axes) for pair in zip(general[1], special[1], strict=True))
    if isinstance(general, bool) or isinstance(special, bool):
        return False
    return are_equal_sizes(general, special, axes)


def are_equal_sizes(one: Size, other: Size, axes: SizeDomain) -> bool:
    """Return whether two expressions are equal at all sizes of these axes."""
    one, other = (evaluate_at(sympy.sympify(size), dict(axes.fixed)) for size in (one, other))
    symbols = one.free_symbols | other.free_symbols
    if one == other or len(symbols) != 1 or not symbols <= set(axes.example) or not axes.conditions:
        return bool(one == other)
    (symbol,) = symbols
    return all(_alike_at({symbol: size}, one, other) for size in axes.candidates(symbol))


def _alike_at(sizes: Mapping[sympy.Symbol, int], one: sympy.Basic, other: sympy.Basic) -> bool:
    found = evaluate_at(one, sizes)
    return found is not sympy.nan and found == evaluate_at(other, sizes)
