"""Find the loop-carried values from the variables at the start of each iteration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..trace.source_location import line_in
from .iteration_matching import same_value
from .iteration_shapes import Shape
from .iterations import Iterations, Reader, State
from .loop import Loop
from .stacked_outputs import Key, Node, is_listed_first

TESTED = "read by the condition"


class Source(NamedTuple):
    """Where a value of an iteration comes from: "own" and its position, "name" and a variable at the start, or "outer" and a node."""

    kind: str
    at: Any


class Carried(Iterations):
    """The outer values that each call of an iteration reads, and their values in the next iteration.

    Attributes:
        carried: for each name, the source of its next value, by the shape of the iteration.
        inputs: the source of each value read.
        stacked: the source of the values added to each list.
        firsts: the values added in the first iteration.
    """

    def __init__(self, number: int, loop: Loop, state: State) -> None:
        super().__init__(number, loop, state)
        self.carried: dict[str, dict[Shape, Source]] = {}
        self.inputs: dict[Reader, Source] = {}
        self.stacked: dict[Any, dict[Shape, Source]] = {}
        self.firsts: dict[Any, Node] = {}
        self._implied: dict[str, dict[int, Node]] = {}

    def explain(self, reads: Sequence[dict[Reader, Node] | None]) -> None:
        """Find the source of each value read, and the loop-carried values."""
        self.carried, self.inputs, self._implied = {}, {}, {}
        if self.loop.is_while:
            heads = [*(one.nodes[0] for one in self.iterations), *self.tests]
            self._implied[TESTED] = {number: node.all_input_nodes[0] for number, node in enumerate(heads)}
        inside = enumerate(self.iterations[self.first :], self.first)
        self._made_in = {node: number for number, one in inside for node in one.results()}
        values_of: dict[Reader, dict[int, Node]] = {}
        for number, read in enumerate(reads[self.first :], self.first):
            for reader, node in (read or {}).items():
                values_of.setdefault(reader, {})[number] = node
        for reader, values in values_of.items():
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
        """The value of a name at the start of an iteration, or after the last one."""
        if name in self._implied:
            return self._implied[name].get(number)
        return self.state.now(self.names[number].get(name))

    def _source(self, values: Mapping[int, Node], prefer: str = "") -> Source | None:
        """The source of these values, by the number of the iteration at whose start they are read."""
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
        """Refuse names that have the same value in the iterations that read it, but not before the loop or in other iterations."""
        for number in range(self.first, len(self.names)) if self.has_ways else ():
            if len({self.value(name, number) for name in names} - {None}) > 1:
                both = " and ".join(f"`{shown_name(name)}`" for name in names[:2])
                raise self.refusal(f"{both} hold the same tensor where it is read, but not always")

    def _carry(self, source: Source) -> None:
        """Record the next value of a name in each iteration, and of all names that it depends on."""
        if source.kind != "name" or source.at in self.carried:
            return
        name = source.at
        self.carried[name] = {}
        for shape in dict.fromkeys(self.shapes[self.first :]):
            found = self._next(name, shape)
            self.carried[name][shape] = found
            self._carry(found)

    def _next(self, name: str, shape: Shape) -> Source:
        """The source of the value of a name after an iteration of a shape."""
        numbers = [number for number in range(self.first, len(self.iterations)) if self.shapes[number] == shape]
        after = {number: node for number in numbers if (node := self.value(name, number + 1)) is not None}
        own = {self.iterations[number].key(node) for number, node in after.items()}
        if len(own) == 1 and None not in own:
            return Source("own", own.pop())
        found = self._source(after, prefer=name) if after and own == {None} else None
        if found is None and shape.leaves and not after:
            return Source("name", name)
        if found is None:
            raise self.refusal(f"the value of {_format_name(name)} after an iteration is neither computed in it nor known before it")
        return found

    def _check_start(self, name: str) -> None:
        start, end = (
            self.start_of(name),
            next((node for number in range(len(self.names) - 1, self.first, -1) if (node := self.value(name, number)) is not None), None),
        )
        if start is None and (name in self._implied or name.split("[")[0].split(".", 2)[:2] in self._bound):
            raise self.refusal(f"{_format_name(name)} is not a tensor before the loop")
        if start is not None and end is not None and not same_value(start.meta["val"], end.meta["val"]):
            after, before = (f"{self.state.said(one.meta['val'].sizes)} of {one.meta['val'].dtype}" for one in (end, start))
            raise self.refusal(f"an iteration changes a carried value from {before} to {after}")

    @property
    def _bound(self) -> list[list[str]]:
        return [name.split(".", 1) for name in self.loop.bound]

    def start_of(self, name: str) -> Node | None:
        """Return the value of a name before the loop."""
        return self.value(name, self.first)

    def _read_after(self) -> Iterator[Node]:
        """The nodes of all iterations that are read after the loop, except through lists of all iterations."""
        inside = self._find_replaced()
        for node in self._made_in:
            if any(user not in inside and not is_listed_first(user, node, self.firsts) for user in node.users) or (
                self.last.key(node) in self.wanted and self.last.key(node) is not None
            ):
                yield node

    def _name_after(self, node: Node) -> str | None:
        """The name that has a value after the loop; None if all iterations compute it at the same position."""
        end = len(self.iterations)
        key = self.iterations[self._stay].key(node)
        names = [name for name in self._names if self.value(name, end) is node]
        implied = [name for name in self.carried if name in self._implied and self.carried[name][self.shapes[-1]] == Source("own", key)]
        self._check_same(names)
        known = [name for name in names if self.start_of(name) is not None]
        if not self.has_ways and implied:
            return implied[0]
        if not known and key is not None and not self.has_ways:
            self._stack_of_one(key)
            return None
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
        """Find the values added to each list in an iteration, and in the first one."""
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
        """The node of a source in an iteration."""
        if source.kind == "own":
            return next(node for node in self.iterations[number].results() if self.iterations[number].key(node) == source.at)
        return self.value(source.at, number) if source.kind == "name" else source.at

    @property
    def outer(self) -> list[Node]:
        """The outer values that an iteration reads and the loop does not carry."""
        by_name = (*self.carried.values(), *self.stacked.values())
        sources = [*self.inputs.values(), *(source for by_shape in by_name for source in by_shape.values())]
        return list(dict.fromkeys(source.at for source in sources if source.kind == "outer"))


def _format_name(name: str) -> str:
    return f"`{shown_name(name)}`" if not name.startswith("read ") else "a value that the next iteration reads"


def shown_name(name: str) -> str:
    """Return the name of a variable in the model."""
    return name.partition(".")[2]
