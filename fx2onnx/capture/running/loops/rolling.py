"""The iterations of a loop that a run has kept, as they stand in a graph, rolled into one call with a graph for the body."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

from ....build.aliasing import written_arguments
from ....build.turns import turns
from ....build.values import expression
from ..lines import line_in
from ..notes import Ref, alike
from ..program import Described
from ..refusal import CannotRun
from ..script import TEST
from .bodies import Body
from .lists import Inserted, Key, Listed, Node, Turn, every_turn, fresh, is_listed_first, list_of
from .shapes import Shape
from .turns import Loop

aten = torch.ops.aten
TESTED = "read by the condition"
Reader: TypeAlias = tuple[tuple[bool, ...], int, int]  # the answers before a call of an iteration, its place, and the leaf that it reads


class Source(NamedTuple):
    """Where a value of an iteration comes from: "own" and a place in it, "name" and what holds it at its start, or "outer" and a node."""

    kind: str
    at: Any


class State(NamedTuple):
    """The loops of a run, and what their variables hold, as nodes of a graph.

    Attributes:
        node_of: returns the node of what a run has noted; None where no node is known.
        gone: what nodes of a loop that was rolled were replaced by.
    """

    graph: torch.fx.Graph
    environment: ShapeEnv
    modules: dict[str, torch.fx.GraphModule]
    node_of: Callable[[Ref], Node | None]
    gone: dict[Node, Node | None]
    said: Callable[[Any], str]

    def now(self, node: Node | None) -> Node | None:
        """Return the node that stands for this one since loops were rolled; None where there is none."""
        while node in self.gone:
            node = self.gone[node]
        return node


def rolled(loops: Sequence[Loop], rows: Sequence[Node], state: State) -> None:
    """Put one call in the place of the iterations of each loop, inner loops first.

    Raises:
        CannotRun: one cannot be rolled.
    """
    for number, node in enumerate(rows):
        node.meta["at"] = number
    rolling = [Rolling(number, loop, state) for number, loop in enumerate(loops) if loop.starts and loop.end > loop.starts[0]]
    groups: dict[tuple[int, int], list[Rolling]] = {}  # of one loop in all iterations of the one around it
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
    """Return how many loops are around this one."""
    return sum(other is not loop and other.starts[0] <= loop.starts[0] and loop.end <= other.end for other in loops if other.starts)


class Rolling:
    """One loop of a graph.

    Attributes:
        iterations: those that were kept. `first`: the number of the first one that is rolled.
        wanted: where values are made, in the last iteration, that are read after the loop, or after it in another iteration around.
        carried: what the loop carries: for each name the source of its next value, by the shape of the iteration.
        inputs: the source of what a reader reads that its own iteration does not make.
    """

    def __init__(self, number: int, loop: Loop, state: State) -> None:
        self.number, self.first = number, 0
        self.stacked: dict[Any, dict[Shape, Source]] = {}
        self.firsts: dict[Any, Node] = {}
        self.loop, self.state, self.graph = loop, state, state.graph
        self.names = [{name: state.node_of(ref) for name, ref in held.items()} for held in (*loop.states, loop.last)]
        self.wanted: set[Key] = set()
        self.carried: dict[str, dict[Shape, Source]] = {}
        self.inputs: dict[Reader, Source] = {}
        self._implied: dict[str, dict[int, Node]] = {}

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
        """Whether values decide how it goes."""
        return self.loop.may_end_early or len(set(self.shapes)) > 1

    def roll(self) -> None:
        """Put one call in the place of the iterations.

        Raises:
            CannotRun: they are not alike, or share memory in a way that a loop of a file cannot.
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
                self._explain(reads)
                break
            except CannotRun:
                if self.first or not may_peel:
                    raise
        self._check_memory()
        self._replace(self._call())

    def refusal(self, why: str) -> CannotRun:
        """Return the error for a loop that cannot be rolled."""
        kind = "while loop" if self.loop.is_while else "loop"
        return CannotRun(f"the {kind} at {self.loop.line} cannot be exported as a Loop: {why}")

    def _reads_of(self, number: int) -> dict[Reader, Node] | None:
        """What an iteration reads that it does not make, if it makes the calls of the last one of its shape; else None."""
        one, template = self.iterations[number], self.templates[self.shapes[number]]
        found: dict[Reader, Node] = {}
        if len(one.nodes) != len(template.nodes):
            return None
        at = {self.loop.symbol: 0} if number == 0 and self.loop.symbol is not None else {}
        for place, (mine, other) in enumerate(zip(one.nodes, template.nodes, strict=True)):
            (leaves, spec), (others, own) = (pytree.tree_flatten((node.args, dict(node.kwargs))) for node in (mine, other))
            if mine.target is not other.target or spec != own or not _same_value(mine.meta["val"], other.meta["val"]):
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
            return not isinstance(a, Node) and not isinstance(b, Node) and _same_leaf(a, b, at)
        if a.op == "get_attr" or b.op == "get_attr":
            return a.op == b.op and same_graph(self.module(a), self.module(b), at)
        return pair[0].key(a) == pair[1].key(b)

    def is_head(self, place: int) -> bool:
        """Return whether a call of an iteration is the test of a `while`, which ends the one before."""
        return self.loop.is_while and place == 0

    def module(self, node: Node) -> torch.fx.GraphModule:
        """Return the graph that an operator takes."""
        return self.state.modules[str(node.target)]

    def reader(self, shape: Shape, place: int, leaf: int) -> Reader:
        """Return what names a leaf that a call reads: the same for all shapes that go the same way up to there."""
        return shape.answers[: self.tests_before(shape, place)], place, leaf

    def tests_before(self, shape: Shape, place: int) -> int:
        """Return how many tests an iteration has made before a call, the one of a `while` not among them."""
        nodes = self.templates[shape].nodes[:place]
        return sum(node.target is TEST for node in nodes) - (self.loop.is_while and place > 0)

    def _explain(self, reads: Sequence[dict[Reader, Node] | None]) -> None:
        """Find what each reader reads, and what the loop carries from iteration to iteration."""
        self.carried, self.inputs, self._implied = {}, {}, {}
        if self.loop.is_while:
            heads = [*(one.nodes[0] for one in self.iterations), *self.tests]
            self._implied[TESTED] = {number: node.all_input_nodes[0] for number, node in enumerate(heads)}
        inside = enumerate(self.iterations[self.first :], self.first)
        self._made_in = {node: number for number, one in inside for node in one.results()}
        seen: dict[Reader, dict[int, Node]] = {}
        for number, read in enumerate(reads[self.first :], self.first):
            for reader, node in (read or {}).items():
                seen.setdefault(reader, {})[number] = node
        for reader, values in seen.items():
            found = self._source(values)
            if found is None:
                found = Source("name", f"read {reader}")
                self._implied[found.at] = values
            self._carry(found)
            self.inputs[reader] = found
        self._find_lists()
        self._after = {node: self._name_after(node) for node in self._read_after()}
        self.truths = {shape: self._next(TESTED, shape) for shape in dict.fromkeys(self.shapes) if self.loop.is_while}
        if any(source.kind != "own" for source in self.truths.values()):
            raise self.refusal("its condition does not change between iterations")
        for name in self.carried:
            self._check_start(name)

    def value(self, name: str, number: int) -> Node | None:
        """What a name holds at the start of an iteration, or after the last one."""
        if name in self._implied:
            return self._implied[name].get(number)
        return self.state.now(self.names[number].get(name))

    def _source(self, values: Mapping[int, Node], prefer: str = "") -> Source | None:
        """What these values are, by the number of the iteration at whose start they are looked at."""
        names = [prefer] if prefer and self._holds(prefer, values) else [name for name in self._names if self._holds(name, values)]
        nodes = set(values.values())
        moving = [name for name in names if self._moves(name)]
        if len(nodes) == 1 and not nodes & self._made_in.keys():
            if moving and self.has_ways:
                raise self.refusal(f"`{shown_name(moving[0])}` may be the value that an iteration reads, or not")
            return Source("outer", next(iter(nodes)))
        self._check_same(moving)
        return Source("name", moving[0]) if moving else None

    @property
    def _names(self) -> Iterator[str]:
        """All names, those of the innermost frame first."""
        yield from dict.fromkeys(name for held in (*self.names[self.first :],) for name in held)

    def _holds(self, name: str, values: Mapping[int, Node]) -> bool:
        return all(self.value(name, number) is node for number, node in values.items())

    def _moves(self, name: str) -> bool:
        return len({self.value(name, number) for number in range(self.first, len(self.names))}) > 1

    def _check_same(self, names: Sequence[str]) -> None:
        """Refuse names that hold the same where they were looked at, and something else before the loop, or in another iteration."""
        for number in range(self.first, len(self.names)) if self.has_ways else ():
            if len({self.value(name, number) for name in names} - {None}) > 1:
                told = " and ".join(f"`{shown_name(name)}`" for name in names[:2])
                raise self.refusal(f"{told} hold the same tensor where it is read, but not always")

    def _carry(self, source: Source) -> None:
        """Note what becomes of a name in each iteration, and of all names that this takes."""
        if source.kind != "name" or source.at in self.carried:
            return
        name = source.at
        self.carried[name] = {}
        for shape in dict.fromkeys(self.shapes[self.first :]):
            found = self._next(name, shape)
            self.carried[name][shape] = found
            self._carry(found)

    def _next(self, name: str, shape: Shape) -> Source:
        """What a name holds after an iteration of a shape."""
        numbers = [number for number in range(self.first, len(self.iterations)) if self.shapes[number] == shape]
        after = {number: node for number in numbers if (node := self.value(name, number + 1)) is not None}
        own = {self.iterations[number].key(node) for number, node in after.items()}
        if len(own) == 1 and None not in own:
            return Source("own", own.pop())
        found = self._source(after, prefer=name) if after and own == {None} else None
        if found is None and shape.leaves and not after:
            return Source("name", name)
        if found is None:
            raise self.refusal(f"the value of {_said(name)} after an iteration is neither made in it nor held before it")
        return found

    def _check_start(self, name: str) -> None:
        start, end = (
            self.start_of(name),
            next((node for number in range(len(self.names) - 1, self.first, -1) if (node := self.value(name, number)) is not None), None),
        )
        if start is None and (name in self._implied or name.split("[")[0].split(".", 2)[:2] in self._bound):
            raise self.refusal(f"{_said(name)} is no tensor before the loop")
        if start is not None and end is not None and not _same_value(start.meta["val"], end.meta["val"]):
            made, of = (f"{self.state.said(one.meta['val'].sizes)} of {one.meta['val'].dtype}" for one in (end, start))
            raise self.refusal(f"an iteration changes a carried value from {of} to {made}")

    @property
    def _bound(self) -> list[list[str]]:
        return [name.split(".", 1) for name in self.loop.bound]

    def start_of(self, name: str) -> Node | None:
        """Return what a name holds before the loop."""
        return self.value(name, self.first)

    def _read_after(self) -> Iterator[Node]:
        """The nodes of all iterations that are read after the loop, but not in lists of all iterations."""
        inside = self._doomed()
        for node in self._made_in:
            if any(user not in inside and not is_listed_first(user, node, self.firsts) for user in node.users) or (
                self.last.key(node) in self.wanted and self.last.key(node) is not None
            ):
                yield node

    def read_after(self) -> Iterator[Key]:
        """Yield where values are made in the last iteration that are read after the loop."""
        inside = {node for one in self.iterations for node in one.results()} | {*self.tests}
        for node in self.last.results():
            key = self.last.key(node)
            if key is not None and any(user not in inside and not self._is_own_list(user) for user in node.users):
                yield key

    def _name_after(self, node: Node) -> str | None:
        """The name that holds a value after the loop; None where all iterations make it in the same place."""
        end = len(self.iterations)
        key = self.iterations[self._stay].key(node)
        names = [name for name in self._names if self.value(name, end) is node]
        implied = [name for name in self.carried if name in self._implied and self.carried[name][self.shapes[-1]] == Source("own", key)]
        self._check_same(names)
        known = [name for name in names if self.start_of(name) is not None]
        if not self.has_ways and implied:
            return implied[0]
        if not known and key is not None and not self.has_ways:
            return self._stack_of_one(key)
        if not names:
            raise self.refusal(self._why_unknown(node))
        name = (known or names)[0]
        self._carry(Source("name", name))
        return name

    def _stack_of_one(self, key: Key) -> None:
        if self.first:
            raise self.refusal("its first iteration differs from the others, and a value of its last iteration is read after the loop")
        self.stacked["last", key] = dict.fromkeys(self.shapes, Source("own", key))

    def _why_unknown(self, node: Node) -> str:
        if self.loop.is_while:
            return "a value made inside the loop is read after it, but does not exist if the loop runs zero times"
        lines = [line_in(user.meta["stack_trace"]) for user in node.users if "stack_trace" in user.meta]
        return f"a value of one iteration is read after the loop{f', at {lines[0]}' if lines else ''}"

    def _find_lists(self) -> None:
        """Find what each list gets in an iteration, and what it got in the first."""
        self.stacked, self.firsts = {}, {}
        for number, listed in enumerate(self.loop.listed):
            name = f"list {number}"
            self._implied[name] = {
                at + 1: node for at, ref in listed.items() if (node := self.state.now(self.state.node_of(ref))) is not None
            }
            key = (self.number, number)
            self.stacked[key] = {shape: self._next(name, shape) for shape in dict.fromkeys(self.shapes[self.first :])}
            for source in self.stacked[key].values():
                self._carry(source)
            if not self.first:
                self.firsts[key] = self._node_at(self.stacked[key][self.shapes[0]], 0)

    def _node_at(self, source: Source, number: int) -> Any:
        """The node of a source, in an iteration."""
        if source.kind == "own":
            return next(node for node in self.iterations[number].results() if self.iterations[number].key(node) == source.at)
        return self.value(source.at, number) if source.kind == "name" else source.at

    @property
    def outer(self) -> list[Node]:
        """What an iteration reads from outside that the loop does not carry."""
        made = (*self.carried.values(), *self.stacked.values())
        sources = [*self.inputs.values(), *(source for by_shape in made for source in by_shape.values())]
        return list(dict.fromkeys(source.at for source in sources if source.kind == "outer"))

    def written(self) -> list[Node]:
        """Return the nodes from outside whose memory an iteration writes into.

        Raises:
            CannotRun: it is memory of another iteration, or read in another way.
        """
        templates = self.templates.values()
        memories = {changed.meta["val"].memory for one in templates for node in one.nodes for changed in written_arguments(node)}
        given = [*self.outer, *(node for name in self.carried if (node := self.start_of(name)) is not None)]
        outside = {value.memory for node in given for value in _values(node)}
        for before, one in pairwise(self.iterations):
            own = {value.memory for node in before.results() for value in _values(node)} - outside
            written = {changed.meta["val"].memory for node in one.nodes for changed in written_arguments(node)}
            if written & own:
                raise self.refusal("an iteration writes into memory that the previous iteration created")
        found = [node for node in self.outer if memories & {value.memory for value in _values(node)}]
        if len({node.meta["val"].memory for node in found}) != len(found):
            raise self.refusal("an iteration writes into memory that it also reads through another view")
        return found

    def _check_memory(self) -> None:
        """Refuse values that leave an iteration and show memory which a later one, or what follows the loop, writes into."""
        written = {node.meta["val"].memory for node in self.written()}
        starts = [node for name in self.carried if (node := self.start_of(name)) is not None]
        if any(value.memory in written for node in starts for value in _values(node)):
            raise self.refusal("an iteration writes into memory that a loop-carried value starts from")
        outside = {value.memory for node in self.outer for value in _values(node)}
        made = {value.memory for one in self.iterations for node in one.results() for value in _values(node)} - outside
        for shape, one in self.templates.items():
            leaving = {by_shape[shape].at for by_shape in self.carried.values() if shape in by_shape and by_shape[shape].kind == "own"}
            leaving |= {by_shape[shape].at for by_shape in self.stacked.values() if by_shape[shape].kind == "own"}
            values = [value for node in one.results() if one.key(node) in leaving for value in _values(node)]
            if any(value.memory in written for value in values):
                raise self.refusal("an iteration keeps a view of memory that it writes into")
            made |= {value.memory for value in values}
        inside = {node for one in self.iterations for node in one.nodes}
        after = [node for node in self.graph.nodes if node not in inside and node.meta.get("at", -1) >= self.loop.end]
        for node in after:
            if any(changed.meta["val"].memory in made for changed in _changed(node)):
                raise self.refusal(
                    f"memory of a value from the loop is written into after it, at {line_in(node.meta.get('stack_trace', ''))}"
                )

    def _call(self) -> Node:
        """Write the call."""
        body = Body(self)
        name = f"turn_{len(self.state.modules)}"
        with self.graph.inserting_before(self._behind()):
            starts = [self.start_of(key) or self._nothing(key) for key in self.carried]
            carried = (*starts, *self.written())
            self.state.modules[name] = body.module()
            module = self.graph.get_attr(name)
            count = None if self.loop.size is None else expression(self.loop.size) - self.first
            truth = self._truth(self.iterations[0].nodes[0]) if self.loop.is_while else True if self.loop.may_end_early else None
            call = self.graph.call_function(turns, (module, count, self.first, carried, tuple(body.extra), truth))
        made = [fresh(node.meta["val"]) for node in carried]
        rows = [
            fresh(self._node_at(by_shape[self.shapes[self._stay]], self._stay).meta["val"], count) for by_shape in self.stacked.values()
        ]
        call.meta.update(self.last.nodes[-1].meta, val=[*made, *rows])
        return call

    def _behind(self) -> Node:
        """The first node behind all iterations."""
        nodes = [node for one in self.iterations for node in one.nodes]
        order = {node: place for place, node in enumerate(self.graph.nodes)}
        last: Node = max((node for node in nodes), key=order.__getitem__)
        return last.next

    def _truth(self, test: Node) -> Node:
        """The tensor that is tested, as truth."""
        tested: Node = test.all_input_nodes[0]
        if tested.meta["val"].dtype != torch.bool:
            raise self.refusal("its condition is a number; compare it, for example `n != 0`")
        return self.negated(self.graph, tested) if test.meta["val"] is False else tested

    def negated(self, graph: torch.fx.Graph, tested: Node) -> Node:
        """Write what is true where a tensor is not."""
        made = graph.call_function(aten.logical_not.default, (tested,))
        made.meta.update(tested.meta, val=fresh(tested.meta["val"]))
        return made

    def _nothing(self, name: str) -> Node:
        """What stands for a variable that there is not before the loop: eager raises an error where it is read."""
        value = next(node for number in range(self.first + 1, len(self.names)) if (node := self.value(name, number)) is not None).meta[
            "val"
        ]
        made = self.graph.call_function(aten.zeros.default, (list(value.sizes),), {"dtype": value.dtype})
        made.meta.update(self.iterations[0].nodes[0].meta, val=fresh(value))
        return made

    def _replace(self, call: Node) -> None:
        """Let all that follows read the call, and take the iterations out."""
        after = Inserted(self.graph, call)
        written = self.written()
        parts = [after.add(operator.getitem, (call, place), value) for place, value in enumerate(call.meta["val"])]
        carried = dict(zip(self.carried, parts, strict=False))
        for node, part in zip(written, parts[len(carried) :], strict=False):
            after.add(aten.copy_.default, (node, part), node.meta["val"])
        stacked = dict(zip(self.stacked, parts[len(carried) + len(written) :], strict=True))
        for node in [node for node in self.graph.nodes if list_of(node) in self.stacked]:
            for reader in list(node.users):
                self.state.gone[reader] = Listed(reader, self.firsts, stacked).rewrite()
            self.graph.erase_node(node)
        for node, name in self._after.items():
            if name is None:
                last = after.add(aten.select.int, (stacked["last", self.last.key(node)], 0, -1), node.meta["val"])
            else:
                last = carried[str(name)]
            last.meta["val"] = node.meta["val"]
            doomed = self._doomed()
            node.replace_all_uses_with(last, delete_user_cb=lambda user: user not in doomed)  # noqa: B023 - called at once
            self.state.gone[node] = last
        self._erase()

    def _doomed(self) -> set[Node]:
        found = {node for one in self.iterations[self.first :] for node in one.results()} | {*self.tests}
        return found | {user for node in found for user in node.users if self._is_own_list(user)}

    def _is_own_list(self, node: Node) -> bool:
        return node.target is every_turn and node.args[2] == self.number

    def _erase(self) -> None:
        doomed = self._doomed()
        for node in reversed(list(self.graph.nodes)):
            if node not in doomed:
                continue
            if node.users:
                raise self.refusal(f"a value of one iteration is read at {line_in(next(iter(node.users)).meta.get('stack_trace', ''))}")
            self.graph.erase_node(node)
            self.state.gone.setdefault(node, None)


def _said(name: str) -> str:
    return f"`{shown_name(name)}`" if not name.startswith("read ") else "a value that the next iteration reads"


def shown_name(name: str) -> str:
    """Return a variable as the model names it."""
    return name.partition(".")[2]


def same_graph(one: torch.fx.GraphModule, other: torch.fx.GraphModule, at: Mapping[Any, int]) -> bool:
    """Return whether two graphs make the same calls, where the second is looked at with these numbers for symbols."""
    if len(one.graph.nodes) != len(other.graph.nodes):
        return False
    same: dict[Node, Node] = {}
    for a, b in zip(one.graph.nodes, other.graph.nodes, strict=True):
        (mine, spec), (its, own) = (pytree.tree_flatten((node.args, dict(node.kwargs))) for node in (a, b))
        if a.op != b.op or spec != own or (a.op == "call_function" and a.target is not b.target):
            return False
        if a.op == "get_attr" and not same_graph(one.get_submodule(str(a.target)), other.get_submodule(str(b.target)), at):  # type: ignore[arg-type]
            return False
        if not _same_value(a.meta.get("val"), b.meta.get("val")):
            return False
        for x, y in zip(mine, its, strict=True):
            if isinstance(x, Node) or isinstance(y, Node):
                if same.get(x) is not y:
                    return False
            elif not _same_leaf(x, y, at):
                return False
        same[a] = b
    return True


def _changed(node: Node) -> list[Node]:
    return written_arguments(node) if node.op == "call_function" else []


def _values(node: Node) -> Iterator[Described]:
    value = node.meta.get("val")
    yield from (part for part in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(part, Described))


def _same_value(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)):
        return isinstance(other, (list, tuple)) and len(one) == len(other) and all(map(_same_value, one, other))
    if isinstance(one, Described) and isinstance(other, Described):
        return one.sizes == other.sizes and one.dtype == other.dtype
    return type(one) is type(other)


def _same_leaf(one: Any, other: Any, at: Mapping[Any, int]) -> bool:
    other = other.subs(at) if isinstance(other, sympy.Basic) else other
    if isinstance(one, sympy.Basic) or isinstance(other, sympy.Basic):
        return bool(sympy.sympify(one) == other)
    return alike(one, other)
