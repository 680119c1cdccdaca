"""Lists that loops fill: positions of values in an iteration, and `stack` and `cat` of the values of all iterations."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

import torch

from ..ir.captured_program import SymbolicMeta
from ..ir.expressions import Size
from ..trace.refusal import TraceUnsupported
from ..trace.source_location import line_in

aten = torch.ops.aten
Node = torch.fx.Node
Key: TypeAlias = tuple[int, Any]  # the position of a call in an iteration, and which of its results
BELOW = (aten.vstack.default, aten.row_stack.default)
OF_LINES = (*BELOW, aten.column_stack.default)  # scalars would become columns
LIST_CONSUMERS = (aten.stack.default, aten.cat.default, aten.hstack.default, *OF_LINES)
MEMORY = count(-1, -1)  # for tensors that no run created


def stacked_output(value: Any, kind: str, loop: int, listed: int) -> Any:
    """Represent, in a list, the values that all iterations but the first added; never called.

    Args:
        loop: the number of the loop.
        listed: the number of the list in this loop.
    """
    raise NotImplementedError(f"{value} of {kind}, {listed} of {loop}")


def reads_filled_list(node: Node) -> bool:
    """Return whether a call reads a list that a loop has filled."""
    return any("times" in part.meta for part in node.all_input_nodes)


def check_reader(node: Node, line: str) -> None:
    """Refuse an operator that cannot read the stacked values of a list that a loop has filled.

    Raises:
        TraceUnsupported: If it cannot.
    """
    if node.target not in LIST_CONSUMERS or (node.target in OF_LINES and not _parts_and_axis(node)[0][0].meta["val"].sizes):
        raise TraceUnsupported(f"{node.target} reads a list filled by a loop at {line_in(line)}; use torch.stack")


def sizes_of_list(node: Node, line: str) -> tuple[Size, ...]:
    """Return the sizes of a `stack`, `cat` or similar call on a list that a loop filled. Raises what `check_reader` raises."""
    check_reader(node, line)
    parts, dim, stacks = _parts_and_axis(node)
    sizes = list(parts[0].meta["val"].sizes)
    if stacks:
        sizes.insert(dim % (len(sizes) + 1), 1)
    dim %= len(sizes)
    along = ((part.meta.get("times", 1), part.meta["val"].sizes) for part in parts)
    sizes[dim] = sum(times * (own[dim] if len(own) == len(sizes) else 1) for times, own in along)
    return tuple(sizes)


def _parts_and_axis(node: Node) -> tuple[list[Node], int, bool]:
    """The parts of a list, the axis along which they are joined, and whether it is a new one."""
    arguments: Any = (*node.args, node.kwargs.get("dim", 0))
    parts, rank = list(arguments[0]), len(arguments[0][0].meta["val"].sizes)
    if node.target in BELOW:
        return parts, 0, rank == 1
    if node.target is aten.column_stack.default:
        return parts, 1, rank == 1
    if node.target is aten.hstack.default:
        return parts, min(max(rank - 1, 0), 1), rank == 0
    return parts, arguments[1], node.target is aten.stack.default


class Turn:
    """The calls of one iteration, and the positions of their results."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._places = {node: place for place, node in enumerate(nodes)}

    def key(self, node: Node) -> Key | None:
        """Return the position at which a node is computed; None if it is computed elsewhere."""
        if node in self._places:
            return self._places[node], None
        if node.target is operator.getitem and node.args[0] in self._places:
            return self._places[node.args[0]], node.args[1]  # type: ignore[index]
        return None

    def results(self) -> Iterator[Node]:
        """Yield the calls, and their parts that are read."""
        for node in self.nodes:
            yield node
            yield from (user for user in node.users if user.target is operator.getitem and user.args[0] is node)


def part_at(graph: torch.fx.Graph, key: Key, results: dict[Key, Node]) -> Node:
    """Return the result at a position, extracted from several results if necessary."""
    if key not in results:
        whole = results[key[0], None]
        results[key] = graph.call_function(operator.getitem, (whole, key[1]))
        results[key].meta.update(whole.meta, val=whole.meta["val"][key[1]])
    return results[key]


class Inserted:
    """Adds nodes one after the other, after a node of a graph."""

    def __init__(self, graph: torch.fx.Graph, node: Node) -> None:
        self.graph, self.last, self._meta = graph, node, {key: value for key, value in node.meta.items() if key != "val"}

    def add(self, target: Any, args: tuple[Any, ...], value: Any) -> Node:
        """Add a call with this metadata."""
        with self.graph.inserting_after(self.last):
            self.last = self.graph.call_function(target, args)
        self.last.meta.update(self._meta, val=value)
        return self.last


class ListConsumer:
    """A `stack`, `cat` or similar call on a list to which every iteration added a value.

    Args:
        firsts: the value that the first iteration adds, by list, if it is inside the loop.
        stacked: the stacked values that the loop returns, by list.
    """

    def __init__(self, reader: Node, firsts: Mapping[Any, Node], stacked: Mapping[Any, Node]) -> None:
        self.reader, self.firsts, self.stacked = reader, firsts, stacked
        self.parts, self.dim, self.stacks = _parts_and_axis(reader)
        self.value = reader.meta["val"]
        self.added = Inserted(reader.graph, reader)

    def rewrite(self) -> Node:
        """Replace it by calls that read the stacked values, and return the last of them.

        Raises:
            TraceUnsupported: If the operator is not supported.
        """
        check_reader(self.reader, self.reader.meta["stack_trace"])
        if any(part.target is stacked_output and self._every(place) is None for place, part in enumerate(self.parts)):
            raise TraceUnsupported(f"a list filled by two loops is read at {line_in(self.reader.meta['stack_trace'])}")
        self.dim %= len(self.value.sizes)
        whole = self._whole()
        if self.stacks and self.dim:
            whole = self.added.add(aten.permute.default, (whole, _move_first_to(len(self.value.sizes), self.dim)), self.value)
        whole.meta.update(self.reader.meta, val=SymbolicMeta.of(self.value.sizes, self.value.dtype, whole.meta["val"].memory))
        self.reader.replace_all_uses_with(whole)
        self.reader.graph.erase_node(self.reader)
        return whole

    def _whole(self) -> Node:
        """All values joined; for a stack, along the first axis."""
        pieces = [self._piece(place) for place in range(len(self.parts)) if not self._is_covered(place)]
        if len(pieces) == 1:
            return pieces[0]
        sizes, dim = list(self.value.sizes), self.dim
        if self.stacks:
            sizes, dim = [sizes[dim], *sizes[:dim], *sizes[dim + 1 :]], 0
        return self.added.add(aten.cat.default, (pieces, dim), fresh(SymbolicMeta.of(sizes, self.value.dtype, 0)))

    def _every(self, place: int) -> Any:
        part: Any = self.parts[place] if 0 <= place < len(self.parts) else None
        return list_of(part) if part is not None and list_of(part) in self.stacked else None

    def _kind(self, place: int) -> Any:
        return self.parts[place].args[1]

    def _is_covered(self, place: int) -> bool:
        """Whether this is the value of the first iteration, next to those of the others, and the loop includes it."""
        return is_covered(self.parts, place, self.firsts)

    def _piece(self, place: int) -> Node:
        key = self._every(place)
        if key is None:
            part: Node = self.parts[place]
            sizes = part.meta["val"].sizes
            value = SymbolicMeta.of((1, *sizes), part.meta["val"].dtype, part.meta["val"].memory)
            return self.added.add(aten.unsqueeze.default, (part, 0), value) if self.stacks else part
        node, (first, *rest) = self.stacked[key], self.stacked[key].meta["val"].sizes
        beside = place - 1 if self._kind(place) == "every" else place + 1
        if key in self.firsts and not (0 <= beside < len(self.parts) and self._is_covered(beside)):
            node, first = self.added.add(aten.slice.Tensor, (node, 0, 1, 2**63 - 1), _fresh_of(node, (first - 1, *rest))), first - 1
        if self._kind(place) == "flipped":
            node = self.added.add(aten.flip.default, (node, [0]), _fresh_of(node, (first, *rest)))
        return node if self.stacks else self._flat(node, first, rest)

    def _flat(self, node: Node, first: Size, rest: list[Size]) -> Node:
        """Reshape (iterations, …, size, …) to (…, iterations * size, …)."""
        if self.dim:
            sizes = [*rest[: self.dim], first, *rest[self.dim :]]
            node = self.added.add(aten.permute.default, (node, _move_first_to(len(sizes), self.dim)), _fresh_of(node, sizes))
        sizes = [*rest[: self.dim], first * rest[self.dim], *rest[self.dim + 1 :]]
        return self.added.add(aten.reshape.default, (node, sizes), _fresh_of(node, sizes))


def _move_first_to(axes: int, to: int) -> list[int]:
    """The permutation that moves the first axis to another position."""
    return [*range(1, to + 1), 0, *range(to + 1, axes)]


def fresh(value: SymbolicMeta, *before: Size) -> SymbolicMeta:
    """Return the same metadata, with further leading sizes, in unshared memory."""
    return SymbolicMeta.of((*before, *value.sizes), value.dtype, next(MEMORY))


def _fresh_of(node: Node, sizes: Sequence[Size]) -> SymbolicMeta:
    return SymbolicMeta.of(sizes, node.meta["val"].dtype, next(MEMORY))


def list_of(part: Node) -> Any:
    """Return the loop and the list of a `stacked_output`; None for other nodes."""
    return part.args[2:] if part.target is stacked_output else None


def is_covered(parts: Sequence[Node], place: int, firsts: Mapping[Any, Node]) -> bool:
    """Return whether a part of a list is the value of the first iteration, next to those of the others."""
    sides = ((place + 1, "every"), (place - 1, "flipped"))
    beside = [parts[at] for at, kind in sides if 0 <= at < len(parts) and parts[at].args[1:2] == (kind,)]
    return any(firsts.get(list_of(part)) is parts[place] for part in beside if part.target is stacked_output)


def is_listed_first(user: Node, node: Node, firsts: Mapping[Any, Node]) -> bool:
    """Return whether a node is read only as the value of the first iteration in a list."""
    parts: Any = user.args[0] if user.target in LIST_CONSUMERS else ()
    return bool(parts) and all(is_covered(parts, place, firsts) for place, part in enumerate(parts) if part is node)
