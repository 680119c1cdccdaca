"""The kept iterations of a loop, as calls of a graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import torch

from ..compat import trees as pytree
from ..compat.shape_env import ShapeEnv
from ..trace.events import Ref
from ..trace.path_decisions import BRANCH
from ..trace.refusal import TraceUnsupported
from .iteration_matching import same_graph, same_leaf, same_value
from .iteration_shapes import Shape
from .loop import Loop
from .stacked_outputs import Key, Node, Turn, stacked_output

Reader: TypeAlias = tuple[tuple[bool, ...], int, int]  # the outcomes before a call, its position in the iteration, and the leaf


@dataclass(frozen=True)
class State:
    """The loops of a run, with the values of their variables as nodes of a graph.

    Attributes:
        rows: the nodes of all calls, by number.
        nodes: the nodes of references, as far as they are known.
        gone: the replacements of nodes of rolled loops.
    """

    graph: torch.fx.Graph
    environment: ShapeEnv
    modules: dict[str, torch.fx.GraphModule]
    rows: Sequence[Node]
    nodes: dict[Ref, Node]
    said: Callable[[Any], str]
    gone: dict[Node, Node | None] = field(default_factory=dict)

    def node_of(self, ref: Ref) -> Node | None:
        """Return the node of a reference; None if there is none."""
        if ref not in self.nodes and ref.kind == "row":
            whole = self.rows[int(ref.key)]
            with self.graph.inserting_after(whole):  # one of several results
                self.nodes[ref] = self.graph.call_function(operator.getitem, (whole, ref.part))
            self.nodes[ref].meta.update(whole.meta, val=whole.meta["val"][ref.part])
        return self.nodes.get(ref)

    def now(self, node: Node | None) -> Node | None:
        """Return the current replacement of a node after loops were rolled; None if there is none."""
        while node in self.gone:
            node = self.gone[node]
        return node


class Iterations:
    """The iterations of one loop.

    Attributes:
        iterations: the kept ones.
        first: the number of the first one that is rolled.
        names: the variables at the start of each, and after the last.
        wanted: the positions of values of the last iteration that are read after the loop, or in another iteration of an outer loop.
    """

    def __init__(self, number: int, loop: Loop, state: State) -> None:
        self.number, self.first = number, 0
        self.loop, self.state, self.graph = loop, state, state.graph
        self.names = [{name: state.node_of(ref) for name, ref in held.items()} for held in (*loop.states, loop.last)]
        self.wanted: set[Key] = set()

    def begin(self) -> None:
        """Find the calls of each iteration."""
        ends = [*self.loop.starts, self.loop.end]
        calls = [node for node in self.graph.nodes if node.op == "call_function" and node.target is not operator.getitem]
        placed = [(node, node.meta["at"]) for node in calls if "at" in node.meta]
        self.iterations = [Turn([node for node, at in placed if low <= at < high]) for low, high in pairwise(ends)]
        self.shapes = self.loop.schedule[: len(self.iterations)]
        self.templates = dict(zip(self.shapes, self.iterations, strict=True))
        self.tests = [node for node, at in placed if at == self.loop.end] if self.loop.is_while else []

    @property
    def last(self) -> Turn:
        """The last iteration."""
        return self.iterations[-1]

    @property
    def _stay(self) -> int:
        """The number of the last iteration that does not leave the loop."""
        return len(self.iterations) - 1 - self.shapes[-1].leaves

    @property
    def has_ways(self) -> bool:
        """Whether values decide which calls it makes."""
        return self.loop.may_end_early or len(set(self.shapes)) > 1

    def refusal(self, why: str) -> TraceUnsupported:
        """Return the error for a loop that cannot be rolled."""
        kind = "while loop" if self.loop.is_while else "loop"
        return TraceUnsupported(f"the {kind} at {self.loop.line} cannot be exported as a Loop: {why}")

    def _reads_of(self, number: int) -> dict[Reader, Node] | None:
        """The outer values that an iteration reads, if it makes the calls of the last one of its shape; otherwise None."""
        one, template = self.iterations[number], self.templates[self.shapes[number]]
        found: dict[Reader, Node] = {}
        if len(one.nodes) != len(template.nodes):
            return None
        at = {self.loop.symbol: 0} if number == 0 and self.loop.symbol is not None else {}
        for place, (mine, other) in enumerate(zip(one.nodes, template.nodes, strict=True)):
            (leaves, spec), (others, own) = (pytree.tree_flatten((node.args, dict(node.kwargs))) for node in (mine, other))
            if mine.target is not other.target or spec != own or not same_value(mine.meta["val"], other.meta["val"]):
                return None
            for leaf, (a, b) in enumerate(zip(leaves, others, strict=True)):
                if not self.is_head(place) and not self._fits((one, template), (a, b), at):
                    return None
                if isinstance(a, Node) and a.op != "get_attr" and one.key(a) is None and not self.is_head(place):
                    found[self.reader(self.shapes[number], place, leaf)] = a
        return found

    def _fits(self, pair: tuple[Turn, Turn], leaves: tuple[Any, Any], at: Mapping[Any, int]) -> bool:
        a, b = leaves
        if not isinstance(a, Node) or not isinstance(b, Node):
            return not isinstance(a, Node) and not isinstance(b, Node) and same_leaf(a, b, at)
        if a.op == "get_attr" or b.op == "get_attr":
            return a.op == b.op and same_graph(self.module(a), self.module(b), at)
        return pair[0].key(a) == pair[1].key(b)

    def is_head(self, place: int) -> bool:
        """Return whether this call is the test of a `while`, which belongs to the iteration before."""
        return self.loop.is_while and place == 0

    def module(self, node: Node) -> torch.fx.GraphModule:
        """Return the graph that is passed to an operator."""
        return self.state.modules[str(node.target)]

    def reader(self, shape: Shape, place: int, leaf: int) -> Reader:
        """Return the identity of a leaf that a call reads, equal for all shapes with the same outcomes before it."""
        return shape.answers[: self.tests_before(shape, place)], place, leaf

    def tests_before(self, shape: Shape, place: int) -> int:
        """Return the number of tests before a call in an iteration, without that of a `while`."""
        nodes = self.templates[shape].nodes[:place]
        return sum(node.target is BRANCH for node in nodes) - (self.loop.is_while and place > 0)

    def read_after(self) -> Iterator[Key]:
        """Yield the positions of values of the last iteration that are read after the loop."""
        inside = {node for one in self.iterations for node in one.results()} | {*self.tests}
        for node in self.last.results():
            key = self.last.key(node)
            if key is not None and any(user not in inside and not self._is_own_list(user) for user in node.users):
                yield key

    def _find_replaced(self) -> set[Node]:
        found = {node for one in self.iterations[self.first :] for node in one.results()} | {*self.tests}
        return found | {user for node in found for user in node.users if self._is_own_list(user)}

    def _is_own_list(self, node: Node) -> bool:
        return node.target is stacked_output and bool(node.args[2] == self.number)
