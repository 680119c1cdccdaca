"""Roll the kept iterations of a loop in a graph into one call with a graph for the body."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch

from ..ir.captured_program import SymbolicMeta
from ..ir.expressions import expression
from ..ir.trip_count import turns
from ..lower.aliasing import written_arguments
from ..lower.module_calls import Scope, common_scope
from ..trace.refusal import TraceUnsupported
from ..trace.source_location import line_in
from .iterations import State
from .loop import Loop
from .loop_bodies import Body
from .loop_carried import Carried
from .stacked_outputs import Inserted, ListConsumer, Node, fresh, list_of

aten = torch.ops.aten


def roll_loops(loops: Sequence[Loop], state: State) -> None:
    """Replace the iterations of each loop by one call, inner loops first.

    Raises:
        TraceUnsupported: If one cannot be rolled.
    """
    for number, node in enumerate(state.rows):
        node.meta["at"] = number
    rolling = [LoopRoller(number, loop, state) for number, loop in enumerate(loops) if loop.starts and loop.end > loop.starts[0]]
    groups: dict[tuple[int, int], list[LoopRoller]] = {}  # the copies of one loop in all iterations of the enclosing one
    for one in rolling:
        groups.setdefault((depth_of(one.loop, loops), one.loop.number), []).append(one)
    for _, same in sorted(groups.items(), key=lambda group: (group[0][0], group[1][0].loop.begin), reverse=True):
        for one in same:
            one.begin()
        wanted = {key for one in same for key in one.read_after()}
        for one in reversed(same):
            one.wanted = wanted
            one.roll()


def depth_of(loop: Loop, loops: Sequence[Loop]) -> int:
    """Return the number of loops that enclose this one."""
    return sum(other is not loop and other.starts[0] <= loop.starts[0] and loop.end <= other.end for other in loops if other.starts)


class LoopRoller(Carried):
    """One loop of a graph."""

    def roll(self) -> None:
        """Replace the iterations by one call.

        Raises:
            TraceUnsupported: If they differ, or share memory in a way that the exported loop cannot.
        """
        if not any(one.nodes for one in self.iterations):
            return
        reads = [self._reads_of(number) for number in range(len(self.iterations))]
        if any(read is None for read in reads[1:]):
            raise self.refusal("its iterations differ")
        may_peel = not self.has_ways
        if reads[0] is None and not may_peel:
            raise self.refusal("its first iteration differs from the others")
        for self.first in (0, 1) if reads[0] is not None else (1,):
            try:
                self.explain(reads)
                break
            except TraceUnsupported:
                if self.first or not may_peel:
                    raise
        self._check_memory()
        self._replace(self._call())

    def mutated_captures(self) -> list[Node]:
        """Return the outer nodes whose memory an iteration writes into.

        Raises:
            TraceUnsupported: If the previous iteration created that memory, or if it is read through another view.
        """
        templates = self.templates.values()
        memories = {changed.meta["val"].memory for one in templates for node in one.nodes for changed in written_arguments(node)}
        given = [*self.outer, *(node for name in self.carried if (node := self.start_of(name)) is not None)]
        outside = {value.memory for node in given for value in _values(node)}
        for before, one in pairwise(self.iterations):
            own = {value.memory for node in before.results() for value in _values(node)} - outside
            mutated_captures = {changed.meta["val"].memory for node in one.nodes for changed in written_arguments(node)}
            if mutated_captures & own:
                raise self.refusal("an iteration writes into memory that the previous iteration created")
        found = [node for node in self.outer if memories & {value.memory for value in _values(node)}]
        if len({node.meta["val"].memory for node in found}) != len(found):
            raise self.refusal("an iteration writes into memory that it also reads through another view")
        return found

    def _check_memory(self) -> None:
        """Refuse values that leave an iteration and share memory that a later iteration, or what follows the loop, writes into."""
        mutated_captures = {node.meta["val"].memory for node in self.mutated_captures()}
        starts = [node for name in self.carried if (node := self.start_of(name)) is not None]
        if any(value.memory in mutated_captures for node in starts for value in _values(node)):
            raise self.refusal("an iteration writes into memory that a loop-carried value starts from")
        outside = {value.memory for node in self.outer for value in _values(node)}
        created = {value.memory for one in self.iterations for node in one.results() for value in _values(node)} - outside
        for shape, one in self.templates.items():
            leaving = {by_shape[shape].at for by_shape in self.carried.values() if shape in by_shape and by_shape[shape].kind == "own"}
            leaving |= {by_shape[shape].at for by_shape in self.stacked.values() if by_shape[shape].kind == "own"}
            values = [value for node in one.results() if one.key(node) in leaving for value in _values(node)]
            if any(value.memory in mutated_captures for value in values):
                raise self.refusal("an iteration keeps a view of memory that it writes into")
            created |= {value.memory for value in values}
        inside = {node for one in self.iterations for node in one.nodes}
        after = [node for node in self.graph.nodes if node not in inside and node.meta.get("at", -1) >= self.loop.end]
        for node in after:
            if any(changed.meta["val"].memory in created for changed in _find_changed(node)):
                raise self.refusal(
                    f"memory of a value from the loop is written into after it, at {line_in(node.meta.get('stack_trace', ''))}"
                )

    def _call(self) -> Node:
        """Write the call."""
        body = Body(self)
        name = f"turn_{len(self.state.modules)}"
        with self.graph.inserting_before(self._behind()):
            starts = [self.start_of(key) or self._nothing(key) for key in self.carried]
            carried = (*starts, *self.mutated_captures())
            self.state.modules[name] = body.module()
            module = self.graph.get_attr(name)
            count = None if self.loop.size is None else expression(self.loop.size) - self.first
            truth = self._truth(self.iterations[0].nodes[0]) if self.loop.is_while else True if self.loop.may_end_early else None
            call = self.graph.call_function(turns, (module, count, self.first, carried, tuple(body.extra), truth))
        carried_values = [fresh(node.meta["val"]) for node in carried]
        rows = [
            fresh(self._node_at(by_shape[self.shapes[self._stay]], self._stay).meta["val"], count) for by_shape in self.stacked.values()
        ]
        call.meta.update(self.last.nodes[-1].meta, val=[*carried_values, *rows], nn_module_stack=self._scope())
        return call

    def _behind(self) -> Node:
        """The first node after all iterations."""
        nodes = [node for one in self.iterations for node in one.nodes]
        order = {node: place for place, node in enumerate(self.graph.nodes)}
        last: Node = max((node for node in nodes), key=order.__getitem__)
        return last.next

    def _truth(self, test: Node) -> Node:
        """The tested tensor as a boolean."""
        tested: Node = test.all_input_nodes[0]
        if tested.meta["val"].dtype != torch.bool:
            raise self.refusal("its condition is a number; compare it, for example `n != 0`")
        return self.append_not(self.graph, tested) if test.meta["val"] is False else tested

    def append_not(self, graph: torch.fx.Graph, tested: Node) -> Node:
        """Write the negation of a tensor."""
        node = graph.call_function(aten.logical_not.default, (tested,))
        node.meta.update(tested.meta, val=fresh(tested.meta["val"]))
        return node

    def _nothing(self, name: str) -> Node:
        """A dummy for a variable that does not exist before the loop; eager would raise an error on reading it."""
        value = next(node for number in range(self.first + 1, len(self.names)) if (node := self.value(name, number)) is not None).meta[
            "val"
        ]
        dummy = self.graph.call_function(aten.zeros.default, (list(value.sizes),), {"dtype": value.dtype})
        dummy.meta.update(self.iterations[0].nodes[0].meta, val=fresh(value), nn_module_stack=self._scope())
        return dummy

    def _scope(self) -> Scope:
        """The calls of modules around all iterations."""
        return common_scope(*(node.meta.get("nn_module_stack", {}) for one in self.iterations for node in one.nodes))

    def _replace(self, call: Node) -> None:
        """Let all later nodes read the call, and remove the iterations."""
        after = Inserted(self.graph, call)
        mutated_captures = self.mutated_captures()
        parts = [after.add(operator.getitem, (call, place), value) for place, value in enumerate(call.meta["val"])]
        carried = dict(zip(self.carried, parts, strict=False))
        for node, part in zip(mutated_captures, parts[len(carried) :], strict=False):
            after.add(aten.copy_.default, (node, part), node.meta["val"])
        stacked = dict(zip(self.stacked, parts[len(carried) + len(mutated_captures) :], strict=True))
        for node in [node for node in self.graph.nodes if list_of(node) in self.stacked]:
            for reader in list(node.users):
                self.state.gone[reader] = ListConsumer(reader, self.firsts, stacked).rewrite()
            self.graph.erase_node(node)
        for node, name in self._after.items():
            if name is None:
                last = after.add(aten.select.int, (stacked["last", self.last.key(node)], 0, -1), node.meta["val"])
            else:
                last = carried[str(name)]
            last.meta["val"] = node.meta["val"]
            doomed = self._find_replaced()
            node.replace_all_uses_with(last, delete_user_cb=lambda user: user not in doomed)  # noqa: B023 - called at once
            self.state.gone[node] = last
        self._erase()

    def _erase(self) -> None:
        doomed = self._find_replaced()
        for node in reversed(list(self.graph.nodes)):
            if node not in doomed:
                continue
            if node.users:
                raise self.refusal(f"a value of one iteration is read at {line_in(next(iter(node.users)).meta.get('stack_trace', ''))}")
            self.graph.erase_node(node)
            self.state.gone.setdefault(node, None)


def _find_changed(node: Node) -> list[Node]:
    return written_arguments(node) if node.op == "call_function" else []


def _values(node: Node) -> Iterator[SymbolicMeta]:
    value = node.meta.get("val")
    yield from (part for part in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(part, SymbolicMeta))
