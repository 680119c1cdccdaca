"""Build the graph of a loop body: the calls of an iteration, with a `cond` where iterations differ by a value test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ..compat import trees as pytree
from ..ir.captured_program import SymbolicMeta
from ..trace.path_decisions import BRANCH
from .iteration_shapes import Shape
from .scope import Scope, SubgraphKey
from .stacked_outputs import Key, Node, fresh

if TYPE_CHECKING:
    from .loop_carried import Source

aten = torch.ops.aten


class Body:
    """Writes the body of a loop, given its `LoopRoller`.

    Attributes:
        extra: the outer values that it reads and does not carry.
    """

    def __init__(self, loop: Any) -> None:
        self.loop, self.root = loop, Scope()
        self.mutated_captures = loop.mutated_captures()
        self.extra = [node for node in loop.outer if node not in self.mutated_captures]
        self._inputs: dict[Any, Node] = {}

    def module(self) -> torch.fx.GraphModule:
        """Return the graph."""
        loop = self.loop
        for place, name in enumerate(loop.carried):
            value = next(node for number in range(loop.first, len(loop.names)) if (node := loop.value(name, number)) is not None)
            self._place(f"carried_{place}", ("name", name), fresh(value.meta["val"]))
        for node in self.mutated_captures:
            self._place(node.name, ("outer", node), node.meta["val"])
        number = 1 if loop.loop.symbol is None else loop.state.environment.create_symintnode(loop.loop.symbol, hint=1)
        self._place("turn", "turn", number)
        for node in self.extra:
            self._place(node.name, ("outer", node), node.meta["val"])
        shapes = list(dict.fromkeys(loop.shapes[loop.first :]))
        return self.root.finish(self._emit(self.root, shapes, 0, {}))

    def _place(self, name: str, key: Any, value: Any) -> None:
        node = self.root.graph.placeholder(name)
        node.meta["val"] = value
        self._inputs[key] = node

    def _emit(self, scope: Scope, shapes: Sequence[Shape], at: int, written: dict[int, Node]) -> list[Node]:
        """Write the calls of iterations of these shapes, which have the same outcomes so far, and return their results."""
        written, shape = dict(written), shapes[0]
        nodes = self.loop.templates[shape].nodes
        while at < len(nodes):
            node = nodes[at]
            if node.target is not BRANCH:
                written[at] = self._write(scope, shape, at, written)
            elif at or not self.loop.loop.is_while:
                return self._either(scope, shapes, at, written)
            at += 1
        return [self._here(scope, shape, value, written) for value in self._results(scope, shape)]

    def _results(self, scope: Scope, shape: Shape) -> list[Any]:
        loop = self.loop
        sources: list[Any] = [by_shape[shape] for by_shape in loop.carried.values()]
        sources += [("outer", node) for node in self.mutated_captures]
        sources += [by_shape[shape] for by_shape in loop.stacked.values()]
        if loop.loop.is_while:
            sources.insert(0, ("tested", None))
        elif loop.loop.may_end_early:
            sources.insert(0, ("constant", not shape.leaves))
        return sources

    def _here(self, scope: Scope, shape: Shape, source: Source | tuple[str, Any], written: dict[int, Node]) -> Node:
        kind, at = source
        if kind == "own":
            return self._part(scope, at, written)
        if kind == "constant":
            found = scope.graph.call_function(aten.full.default, ([], at), {"dtype": torch.bool})
            found.meta["val"] = SymbolicMeta.of((), torch.bool, fresh(self._any_value(shape)).memory)
            return found
        if kind == "tested":
            tested = self._here(scope, shape, self.loop.truths[shape], written)
            return self.loop.append_not(scope.graph, tested) if self.loop.iterations[0].nodes[0].meta["val"] is False else tested
        return scope.here(self._inputs[kind, at])

    def _any_value(self, shape: Shape) -> SymbolicMeta:
        return next(
            part
            for node in self.loop.templates[shape].nodes
            for part in pytree.tree_leaves(node.meta["val"])
            if isinstance(part, SymbolicMeta)
        )

    def _write(self, scope: Scope, shape: Shape, at: int, written: dict[int, Node]) -> Node:
        node = self.loop.templates[shape].nodes[at]
        leaves, spec = pytree.tree_flatten((node.args, dict(node.kwargs)))
        mapped = [
            self._leaf(scope, shape, (at, place), leaf, written) if isinstance(leaf, Node) else leaf for place, leaf in enumerate(leaves)
        ]
        args, kwargs = pytree.tree_unflatten(mapped, spec)
        found = scope.graph.create_node("call_function", node.target, args, kwargs, name=node.name)
        found.meta.update(node.meta)
        return found

    def _leaf(self, scope: Scope, shape: Shape, at: tuple[int, int], leaf: Node, written: dict[int, Node]) -> Node:
        if leaf.op == "get_attr":
            node: Node = scope.map_argument(SubgraphKey(self.loop.module(leaf)))
            return node
        if (key := self.loop.templates[shape].key(leaf)) is not None:
            return self._part(scope, key, written)
        return self._here(scope, shape, self.loop.inputs[self.loop.reader(shape, *at)], written)

    def _part(self, scope: Scope, key: Key, written: dict[int, Node]) -> Node:
        whole = written[key[0]]
        if key[1] is None:
            return scope.here(whole)
        return scope.here(scope.part(whole, key[1], whole, whole.meta["val"][key[1]]))

    def _either(self, scope: Scope, shapes: Sequence[Shape], at: int, written: dict[int, Node]) -> list[Node]:
        """Write a test with its two branches, and return their results."""
        test = self.loop.templates[shapes[0]].nodes[at]
        number = self.loop.tests_before(shapes[0], at)
        sides = [[shape for shape in shapes if shape.answers[number] is answer] for answer in (True, False)]
        condition = self._truth(scope, self._leaf(scope, shapes[0], (at, 0), test.all_input_nodes[0], written))
        inner = Scope(scope), Scope(scope)
        results = [self._emit(side, taken, at + 1, written) for side, taken in zip(inner, sides, strict=True)]
        results = [[side.here(node) for node in given] for side, given in zip(inner, results, strict=True)]
        self._check_alike(results)
        outer = list(dict.fromkeys(node for side in inner for node in side.inside))
        modules = [side.close_over(outer, given) for side, given in zip(inner, results, strict=True)]
        names = [f"side_{len(list(scope.modules.children())) + side}" for side in range(2)]
        for name, module in zip(names, modules, strict=True):
            scope.modules.add_module(name, module)
        gets = [scope.graph.get_attr(name) for name in names]
        cond = scope.graph.call_function(torch.ops.higher_order.cond, (condition, *gets, tuple(outer)))
        cond.meta.update(test.meta, val=[fresh(node.meta["val"]) for node in results[0]])
        return [scope.part(cond, place, cond, value) for place, value in enumerate(cond.meta["val"])]

    def _check_alike(self, results: Sequence[Sequence[Node]]) -> None:
        for one, other in zip(*results, strict=True):
            a, b = one.meta["val"], other.meta["val"]
            if (a.sizes, a.dtype) != (b.sizes, b.dtype):
                kinds = " or ".join(f"{self.loop.state.said(value.sizes)} of {value.dtype}" for value in (a, b))
                raise self.loop.refusal(f"after a condition inside it, a loop-carried value is {kinds}")

    def _truth(self, scope: Scope, tested: Node) -> Node:
        if tested.meta["val"].dtype == torch.bool:
            return tested
        node = scope.graph.call_function(aten.ne.Scalar, (tested, 0))
        node.meta.update(tested.meta, val=SymbolicMeta.of(tested.meta["val"].sizes, torch.bool, fresh(tested.meta["val"]).memory))
        return node
