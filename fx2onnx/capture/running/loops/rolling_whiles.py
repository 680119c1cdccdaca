"""Three turns of a `while` that a value ends, as they stand in a graph, made into one call of `while_loop`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..program import Described
from ..refusal import CannotRun
from ..whiles import While
from .lists import Inserted, Key, Node, Turn, fresh, part_at


class RollingWhile:
    """One such loop, whose turns were held against each other.

    Args:
        rows: the nodes of all calls, by number.
        modules: the graphs of turns by name.
        said: returns sizes as a person reads them.
    """

    def __init__(
        self,
        graph: torch.fx.Graph,
        rows: Sequence[Node],
        loop: While,
        modules: dict[str, torch.fx.GraphModule],
        said: Callable[[Any], str],
    ) -> None:
        self.graph, self.line, self.modules, self.said = graph, loop.line, modules, said
        self.tests = [rows[test] for test in loop.tests]
        self.first, self.second, self.third = (Turn(rows[start + 1 : end]) for start, end in pairwise(loop.tests))

    def roll(self) -> None:
        """Put one call in the place of the turns.

        Raises:
            CannotRun: what is carried does not keep its sizes, or something of a turn is read that is not carried.
        """
        self.starts = self._starts()
        self.truth = self.tests[0].all_input_nodes[0]
        if self.truth.meta["val"].dtype != torch.bool:
            raise self._refusal("its condition is a number; compare it, for example `n != 0`")
        self.extra = list(dict.fromkeys(node for node in self._read() if self.third.key(node) is None and self.second.key(node) is None))
        self._replace(self._call())

    def _refusal(self, why: str) -> CannotRun:
        return CannotRun(f"the while loop at {self.line} cannot be exported as a Loop: {why}")

    def _read(self) -> list[Node]:
        return [read for node in self.third.nodes for read in node.all_input_nodes]

    def _starts(self) -> dict[Key, Node]:
        """What the first turn reads where the second reads the first, by where that is made."""
        found: dict[Key, Node] = {}
        for one, two in zip(self.first.nodes, self.second.nodes, strict=True):
            for mine, its in zip(*(pytree.tree_leaves((node.args, dict(node.kwargs))) for node in (one, two)), strict=True):
                if isinstance(its, Node) and (key := self.first.key(its)) is not None and self.second.key(its) is None:
                    found[key] = mine
        for key, start in found.items():
            value, begun = self._value(key), start.meta["val"]
            if (value.sizes, value.dtype) != (begun.sizes, begun.dtype):
                made, of = (f"{self.said(one.sizes)} of {one.dtype}" for one in (value, begun))
                raise self._refusal(f"an iteration changes a carried value from {of} to {made}")
        return found

    def _value(self, key: Key) -> Described:
        value = self.third.nodes[key[0]].meta["val"]
        found: Described = value if key[1] is None else value[key[1]]
        return found

    def _call(self) -> Node:
        """Write the call: what is carried, and last whether there is another turn."""
        carried = (*self.starts.values(), self.truth)
        names = [f"{name}_{len(self.modules)}" for name in ("goes_on", "turn")]
        self.modules.update(zip(names, (self._graph(is_body=False), self._graph(is_body=True)), strict=True))
        added = Inserted(self.graph, self.tests[-1])
        gets = []
        for name in names:
            with self.graph.inserting_after(added.last):
                added.last = self.graph.get_attr(name)
            gets.append(added.last)
        values = [fresh(node.meta["val"]) for node in carried]
        return added.add(torch.ops.higher_order.while_loop, (*gets, carried, tuple(self.extra)), values)

    def _graph(self, is_body: bool) -> torch.fx.GraphModule:
        """The graph of a turn, or of whether there is one: that is carried."""
        graph = torch.fx.Graph()
        starts = {key: self._placed(graph, node) for key, node in self.starts.items()}
        truth = self._placed(graph, self.truth)
        extra = {node: self._placed(graph, node) for node in self.extra}
        graph.output(self._turn(graph, starts, extra) if is_body else (truth,))
        return torch.fx.GraphModule(nn.Module(), graph)

    def _placed(self, graph: torch.fx.Graph, node: Node) -> Node:
        made = graph.placeholder(f"given_{len(graph.nodes)}")
        made.meta["val"] = fresh(node.meta["val"])
        return made

    def _turn(self, graph: torch.fx.Graph, starts: dict[Key, Node], extra: dict[Node, Node]) -> tuple[Node, ...]:
        """Write the calls of a turn; return what they carry on."""
        made: dict[Key, Node] = {}

        def mapped(leaf: Node) -> Node:
            if (key := self.third.key(leaf)) is not None:
                return part_at(graph, key, made)
            key = self.second.key(leaf)
            return starts[key] if key is not None else extra[leaf]

        for place, node in enumerate(self.third.nodes):
            args, kwargs = pytree.tree_map_only(Node, mapped, (node.args, dict(node.kwargs)))
            made[place, None] = graph.create_node("call_function", node.target, args, kwargs, name=node.name)
            made[place, None].meta.update(node.meta)
        return (*(part_at(graph, key, made) for key in starts), mapped(self.tests[-1].all_input_nodes[0]))

    def _replace(self, call: Node) -> None:
        """Let all that follows read the call, and take the turns out."""
        after = Inserted(self.graph, call)
        parts = {key: after.add(operator.getitem, (call, place), call.meta["val"][place]) for place, key in enumerate(self.starts)}
        doomed = {*self.tests, *(node for turn in (self.first, self.second, self.third) for node in turn.results())}
        for node in list(self.third.results()):
            if (key := self.third.key(node)) in parts:
                node.replace_all_uses_with(parts[key], delete_user_cb=lambda user: user not in doomed)
        for node in reversed(list(self.graph.nodes)):
            if node in doomed:
                self._erase(node)

    def _erase(self, node: Node) -> None:
        if node.users:
            raise self._refusal("a value made inside the loop is read after it, but does not exist if the loop runs zero times")
        self.graph.erase_node(node)
