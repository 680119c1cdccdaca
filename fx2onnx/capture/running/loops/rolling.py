"""Three turns of a loop, as they stand in a graph, made into one call with a graph for a turn."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any

import sympy
import torch
from torch import nn
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

from ....build.aliasing import written_arguments
from ....build.turns import turns
from ....build.values import expression
from ..lines import line_in
from ..notes import Trace, alike
from ..program import Described
from ..refusal import CannotRun
from .lists import Inserted, Key, Listed, Node, Turn, every_turn, fresh, listed_beside_every, part_at
from .rolling_whiles import RollingWhile
from .turns import Loop

aten = torch.ops.aten


def rolled(
    graph: torch.fx.Graph, rows: Sequence[Node], trace: Trace, environment: ShapeEnv, said: Callable[[Any], str]
) -> dict[str, torch.fx.GraphModule]:
    """Put one call in the place of the turns of each loop; return the graphs of turns by name.

    Args:
        said: returns sizes as a person reads them.

    Raises:
        CannotRun: one cannot be rolled up.
    """
    modules: dict[str, torch.fx.GraphModule] = {}
    for one in trace.whiles:
        RollingWhile(graph, rows, one, modules, said).roll()
    loops = trace.loops
    for loop in loops:
        if inner := next(
            (other for other in loops if other is not loop and loop.starts[0] <= other.starts[0] and other.end <= loop.end), None
        ):
            raise CannotRun(f"nested loops over dynamic dimensions are not supported, at {inner.line}")
        Rolling(graph, rows, loop, environment, modules).roll()
    return modules


class Rolling:
    """One loop of a graph.

    Args:
        rows: the nodes of all calls, by number.
        modules: the graphs of turns by name.
    """

    def __init__(
        self, graph: torch.fx.Graph, rows: Sequence[Node], loop: Loop, environment: ShapeEnv, modules: dict[str, torch.fx.GraphModule]
    ) -> None:
        self.graph, self.loop, self.environment, self.modules = graph, loop, environment, modules
        self.size = expression(loop.size)
        ends = [*loop.starts, loop.end]
        self.first, self.second, self.third = (Turn(rows[ends[i] : ends[i + 1]]) for i in range(3))
        self.line = loop.line

    def roll(self) -> None:
        """Put one call in the place of the turns.

        Raises:
            CannotRun: turns are not alike, or share memory in a way that a loop of a file cannot.
        """
        if not self.third.nodes:
            return
        self.starts = self._starts()
        self.outer = list(dict.fromkeys(node for node in _read(self.third) if not self._inside(node)))
        self.written = self._written()
        self.stacked = self._stacked()
        self._check_memory()
        self._replace(self._call())

    def _inside(self, node: Node) -> bool:
        return self.third.key(node) is not None or self.second.key(node) is not None

    def _refusal(self, why: str) -> CannotRun:
        return CannotRun(f"the loop at {self.line} cannot be exported as a Loop: {why}")

    def _starts(self) -> dict[Key, Node]:
        """What is carried, by where it is made, and from what it starts; see whether the first turn is like the others."""
        second = self._held(self.second, self.loop.symbol)
        if second is None:
            raise self._refusal("its second and third iterations differ")
        first = self._held(self.first, sympy.Integer(0))
        self.folds = first is not None and all(self.first.key(node) == key for key, node in second.items()) and self._first_is_only_listed()
        return first if self.folds and first is not None else second

    def _held(self, turn: Turn, number: sympy.Expr) -> dict[Key, Node] | None:
        """What a turn reads where the third reads the second; None where it is another turn."""
        found: dict[Key, Node] = {}
        if len(turn.nodes) != len(self.third.nodes):
            return None
        for one, third in zip(turn.nodes, self.third.nodes, strict=True):
            (mine, spec), (its, own) = (pytree.tree_flatten((node.args, dict(node.kwargs))) for node in (one, third))
            if one.target is not third.target or spec != own or not _same_value(one.meta["val"], third.meta["val"]):
                return None
            if not all(self._fits(turn, number, a, b, found) for a, b in zip(mine, its, strict=True)):
                return None
        return found

    def _fits(self, turn: Turn, number: sympy.Expr, mine: Any, third: Any, found: dict[Key, Node]) -> bool:
        if not isinstance(third, Node):
            return _same_leaf(mine, third.subs(self.loop.symbol, number) if isinstance(third, sympy.Basic) else third)
        if not isinstance(mine, Node):
            return False
        if (key := self.third.key(third)) is not None:
            return turn.key(mine) == key
        if (key := self.second.key(third)) is None:
            return mine is third and turn.key(mine) is None
        is_start = turn.key(mine) is None and _same_value(mine.meta["val"], third.meta["val"])
        return is_start and found.setdefault(key, mine) is mine

    def _first_is_only_listed(self) -> bool:
        """Whether what the first turn makes is read by the first two, and where every turn's is."""
        inside = {*self.first.results(), *self.second.results()}
        for node in self.first.results():
            for user in node.users:
                if user not in inside and not listed_beside_every(user, node, self.first, self.third):
                    return False
        return True

    def _written(self) -> list[Node]:
        """The nodes from outside whose memory a turn writes into."""
        memories = {changed.meta["val"].memory for node in self.third.nodes for changed in written_arguments(node)}
        own = {value.memory for node in self.second.results() for value in _values(node)}
        outside = {value.memory for node in self.outer for value in _values(node)}
        if memories & (own - outside):
            raise self._refusal("an iteration writes into memory that the previous iteration created")
        found = [node for node in self.outer if memories & {value.memory for value in _values(node)}]
        if len({node.meta["val"].memory for node in found}) != len(found):
            raise self._refusal("an iteration writes into memory that it also reads through another view")
        return found

    def _stacked(self) -> list[Key]:
        """Where values are made that are read of every turn, or of the last without being carried."""
        found: dict[Key, None] = {}
        inside = {*self.third.nodes}
        for node in self.third.results():
            key = self.third.key(node)
            for user in node.users:
                is_last = user not in inside and user.target is not every_turn and self.third.key(user) is None and key not in self.starts
                if key is not None and (user.target is every_turn or is_last):
                    found[key] = None
                if is_last and not self.folds:
                    raise self._refusal(
                        "its first iteration differs from the others, and a value of its last iteration is read after the loop"
                    )
        return list(found)

    def _check_memory(self) -> None:
        """Refuse values that leave a turn and show memory which a later turn, or what follows the loop, writes into."""
        written = {node.meta["val"].memory for node in self.written}
        if any(value.memory in written for node in self.starts.values() for value in _values(node)):
            raise self._refusal("an iteration writes into memory that a loop-carried value starts from")
        leaving = {*self.stacked, *self.starts, *(self.third.key(node) for node in self.third.results() if self._read_after(node))}
        for node in self.third.results():
            if self.third.key(node) in leaving and written & {value.memory for value in _values(node)}:
                raise self._refusal("an iteration keeps a view of memory that it writes into")
        outside = {value.memory for node in self.outer for value in _values(node)}
        made = {
            value.memory for turn in (self.first, self.second, self.third) for node in turn.results() for value in _values(node)
        } - outside
        made |= {value.memory for node in self.third.results() if self.third.key(node) in leaving for value in _values(node)}
        inside = {*self.first.nodes, *self.second.nodes, *self.third.nodes, *self._before()}
        for node in self.graph.nodes:
            if node not in inside and any(changed.meta["val"].memory in made for changed in _changed(node)):
                raise self._refusal(
                    f"memory of a value from the loop is written into after it, at {line_in(node.meta.get('stack_trace', ''))}"
                )

    def _before(self) -> Iterator[Node]:
        return takewhile(lambda node: node is not self.first.nodes[0], self.graph.nodes)

    def _read_after(self, node: Node) -> bool:
        return any(user not in self.third.nodes for user in node.users)

    def _call(self) -> Node:
        """Write the call."""
        body, extra = self._body()
        name = f"turn_{len(self.modules)}"
        self.modules[name] = body
        first = 0 if self.folds else 1
        with self.graph.inserting_after(self.third.nodes[-1]):
            module = self.graph.get_attr(name)
        carried = (*self.starts.values(), *self.written)
        with self.graph.inserting_after(module):
            call = self.graph.call_function(turns, (module, self.size - first, first, carried, tuple(extra)))
        made = [fresh(node.meta["val"]) for node in carried]
        rows = [fresh(self._value(key), self.size - first) for key in self.stacked]
        call.meta.update(self.third.nodes[-1].meta, val=[*made, *rows])
        return call

    def _value(self, key: Key) -> Described:
        value = self.third.nodes[key[0]].meta["val"]
        found: Described = value if key[1] is None else value[key[1]]
        return found

    def _body(self) -> tuple[torch.fx.GraphModule, list[Node]]:
        """The graph of a turn, and what it reads from outside and does not change."""
        graph = torch.fx.Graph()
        inside: dict[Any, Node] = {}
        extra = [node for node in self.outer if node not in self.written]
        carried = [(key, self._value_of(node)) for key, node in self.starts.items()] + [(node, node.meta["val"]) for node in self.written]
        number = self.environment.create_symintnode(self.loop.symbol, hint=1)
        for place, (key, value) in enumerate([*carried, ("turn", number), *((node, node.meta["val"]) for node in extra)]):
            inside[key] = graph.placeholder(key.name if isinstance(key, Node) else key if key == "turn" else f"carried_{place}")
            inside[key].meta["val"] = value
        made: dict[Key, Node] = {}
        for place, node in enumerate(self.third.nodes):
            args, kwargs = pytree.tree_map_only(Node, lambda leaf: self._mapped(graph, leaf, inside, made), (node.args, dict(node.kwargs)))
            made[place, None] = graph.create_node("call_function", node.target, args, kwargs, name=node.name)
            made[place, None].meta.update(node.meta)
        results = [*(part_at(graph, key, made) for key in self.starts), *(inside[node] for node in self.written)]
        graph.output((*results, *(part_at(graph, key, made) for key in self.stacked)))
        graph.eliminate_dead_code()
        return torch.fx.GraphModule(nn.Module(), graph), extra

    def _value_of(self, node: Node) -> Described:
        return fresh(node.meta["val"])

    def _mapped(self, graph: torch.fx.Graph, leaf: Node, inside: dict[Any, Node], made: dict[Key, Node]) -> Node:
        if (key := self.third.key(leaf)) is not None:
            return part_at(graph, key, made)
        return inside[self.second.key(leaf) or leaf]

    def _replace(self, call: Node) -> None:
        """Let all that follows read the call, and take the turns out."""
        after = Inserted(self.graph, call)
        parts = [after.add(operator.getitem, (call, place), value) for place, value in enumerate(call.meta["val"])]
        carried = dict(zip(self.starts, parts, strict=False))
        for node, part in zip(self.written, parts[len(self.starts) :], strict=False):
            after.add(aten.copy_.default, (node, part), node.meta["val"])
        stacked = dict(zip(self.stacked, parts[len(self.starts) + len(self.written) :], strict=True))
        for node in list(self.third.results()):
            key = self.third.key(node)
            assert key is not None
            for user in [user for user in node.users if user.target is every_turn]:
                for reader in list(user.users):
                    Listed(reader, self.first if self.folds else None, self.third, stacked).rewrite()
            if self._is_read_last(node):
                last = carried.get(key) or after.add(aten.select.int, (stacked[key], 0, -1), node.meta["val"])
                last.meta["val"] = node.meta["val"]
                node.replace_all_uses_with(last, delete_user_cb=lambda user: user not in self._doomed())
        self._erase()

    def _is_read_last(self, node: Node) -> bool:
        return any(user not in self._doomed() for user in node.users)

    def _doomed(self) -> set[Node]:
        turns_gone = (self.first, self.second, self.third) if self.folds else (self.second, self.third)
        found = {node for turn in turns_gone for node in turn.results()}
        return found | {user for node in found for user in node.users if user.target is every_turn}

    def _erase(self) -> None:
        doomed = self._doomed()
        for node in reversed(list(self.graph.nodes)):
            if node not in doomed:
                continue
            if node.users:
                raise self._refusal(f"a value of one iteration is read at {line_in(next(iter(node.users)).meta.get('stack_trace', ''))}")
            self.graph.erase_node(node)


def _read(turn: Turn) -> Iterator[Node]:
    for node in turn.nodes:
        yield from node.all_input_nodes


def _changed(node: Node) -> list[Node]:
    return written_arguments(node) if node.op == "call_function" else []


def _values(node: Node) -> Iterator[Described]:
    value = node.meta.get("val")
    yield from (part for part in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(part, Described))


def _same_value(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_same_value, one, other))
    if isinstance(one, Described) and isinstance(other, Described):
        return one.sizes == other.sizes and one.dtype == other.dtype
    return type(one) is type(other)


def _same_leaf(one: Any, other: Any) -> bool:
    if isinstance(one, sympy.Basic) or isinstance(other, sympy.Basic):
        return bool(sympy.sympify(one) == other)
    return alike(one, other)
