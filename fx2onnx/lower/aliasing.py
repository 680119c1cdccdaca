"""The current value of each node of the capture, as writes change values and their views."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..ir.source_node import overload_of

Node = torch.fx.Node
RESIZED = torch.ops.aten.resize_.default
COPY_OF_CONSTANT = torch.ops.aten.lift_fresh_copy.default


@dataclass
class Slot:
    """The value of a node at a version of its memory, and the node that it is a view of (None if it owns the memory)."""

    value: Any
    owner: Node
    parent: Node | None
    version: int = 0


class AliasMap:
    """The values of nodes. A node that shares memory with an earlier one is a view of it, and is recomputed after a write.

    The storages of the capture's fake tensors show which nodes share memory, not the names of operators. There are two exceptions: a
    dropout that drops nothing returns its input in eager and a copy in the capture, and the result of `torch.tensor` shares memory with a
    constant in the capture, but is a copy in eager. If the graph writes nothing (`tracks` is false), views are not tracked.
    """

    def __init__(self, tracks: bool, remake: Callable[[Node], Any], scatter_back: Callable[[Node, Node, Any], Any]) -> None:
        self.tracks = tracks
        self._remake = remake
        self._scatter_back = scatter_back
        self._slots: dict[Node, Slot] = {}
        self._links: dict[Node, Any] = {}
        self._by_storage: dict[int, Node] = {}
        self._same_storage: dict[int | None, int | None] = {}
        self._copied: dict[Node, int] = {}  # the memory of copies of constants, which no tensor has
        self._versions: dict[Node, int] = {}
        self._left: set[Node] = set()  # former owners of memory that was resized and has another owner now

    def __contains__(self, node: Node) -> bool:
        return node in self._slots or node in self._links

    def link(self, node: Node, other: Any) -> None:
        """Make `node` another name for `other`: a node, a list of nodes, or a constant."""
        self._links[node] = other

    def resolve(self, node: Any) -> Any:
        """Return the node at the end of a chain of links."""
        while isinstance(node, Node) and node in self._links:
            node = self._links[node]
        return node

    def bind(self, node: Node, value: Any) -> None:
        """Set the value of the node; its storage determines whether it is a view."""
        if self.tracks and drops_nothing(node):
            self._same_storage[_storage(node)] = self._storage(self.resolve(node.args[0]))
        if self.tracks:
            self._note_copy(node)
        storage = self._storage(node) if self.tracks else None
        if node.target is RESIZED and storage is not None:
            self._left.add(self._by_storage.get(storage, node))  # it had no elements, so no other node shows any of them
            self._by_storage[storage] = node
        if storage not in self._by_storage and isinstance(node.meta.get("val"), (list, tuple)):
            storage = None  # several results, each with separate memory
        owner = self._by_storage.setdefault(storage, node) if storage is not None else node
        parent = None if owner is node else self._parent(node, storage)
        if parent is None:
            owner = node
        self._slots[node] = Slot(value, owner, parent, self._versions.get(owner, 0))

    def _note_copy(self, node: Node) -> None:
        """Assign separate memory to a copy of a constant, and to views of that copy: in the capture both have the constant's storage."""
        if node.target is COPY_OF_CONSTANT:
            self._copied[node] = -1 - len(self._copied)
            return
        inputs = (self.resolve(n) for n in node.all_input_nodes)
        shown = next((n for n in inputs if isinstance(n, Node) and n in self._copied and _storage(n) == _storage(node)), None)
        if shown is not None:
            self._copied[node] = self._copied[shown]

    def _parent(self, node: Node, storage: int | None) -> Node | None:
        inputs = (self.resolve(n) for n in node.all_input_nodes)
        return next((n for n in inputs if isinstance(n, Node) and self._storage(n) == storage), None)

    def _storage(self, node: Node) -> int | None:
        storage = self._copied[node] if node in self._copied else _storage(node)
        return self._same_storage.get(storage, storage)

    def read(self, node: Node) -> Any:
        """Return the current value of the node."""
        node = self.resolve(node)
        if isinstance(node, (list, tuple)):
            return [self.read(part) for part in node]
        if not isinstance(node, Node):
            return node
        slot = self._slots[node]
        version = self._versions.get(slot.owner, 0)
        if slot.version != version:
            slot.value, slot.version = self._remake(node), version
        return slot.value

    def write(self, node: Node, value: Any) -> None:
        """Write `value` into the memory that the node shows; all other nodes that show this memory change too."""
        node = self.resolve(node)
        slot = self._slots[node]
        whole = value
        if slot.parent is not None:
            whole = self._scatter_back(slot.owner, node, value)
            self._slots[slot.owner].value = whole
        version = self._versions[slot.owner] = self._versions.get(slot.owner, 0) + 1
        self._slots[slot.owner].value, self._slots[slot.owner].version = whole, version
        slot.value, slot.version = value, version

    def is_written(self, node: Node) -> bool:
        """Return whether the memory of this node was written."""
        return self._versions.get(self.owner(node), 0) > 0

    def owner(self, node: Node) -> Node:
        """Return the node that owns the memory that this one shows."""
        node = self.resolve(node)
        return self._slots[node].owner

    def path(self, owner: Node, node: Node) -> list[Node]:
        """Return the views that lead from the owner of the memory to `node`, which is the last."""
        steps: list[Node] = []
        step: Node | None = node
        while step is not None and step is not owner:
            steps.append(step)
            step = self._slots[step].parent
        return steps[::-1]

    def same_view(self, a: Any, b: Any) -> bool:
        """Return whether both nodes show the same elements of the same memory, by the same views."""
        a, b = self.resolve(a), self.resolve(b)
        if not (isinstance(a, Node) and isinstance(b, Node)) or self._slots[a].owner is not self._slots[b].owner:
            return False
        owner = self._slots[a].owner
        return self._steps(owner, a) == self._steps(owner, b)

    def _steps(self, owner: Node, node: Node) -> list[Any]:
        views = [step for step in self.path(owner, node) if not returns_its_argument(step)]
        return [(step.target, step.args[1:], step.kwargs) for step in views]

    def alone(self, node: Node) -> bool:
        """Return whether no other owner shares the storage of this node in a way that the capture does not show."""
        storage = self._storage(node)
        owners = {slot.owner for slot in self._slots.values()} - self._left - {node}
        return all(self._storage(owner) != storage or _is_whole_of(node, owner) for owner in owners)


def _storage(node: Node) -> int | None:
    value = node.meta.get("val")
    if isinstance(value, (list, tuple)):
        value = next((part for part in value if isinstance(part, torch.Tensor)), None)
    return _storage_of(value)


def _storage_of(value: Any) -> int | None:
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    return value.untyped_storage()._cdata


def _is_whole_of(node: Node, results: Node) -> bool:
    """Return whether a node is one of several results, and no other node that reads them shows its memory."""
    if node.target is not operator.getitem or node.args[0] is not results:
        return False
    same = [place for place, part in enumerate(results.meta["val"]) if _storage_of(part) == _storage(node)]
    readers = [user for user in results.users if user.target is not operator.getitem or user.args[1] in same]
    return len(same) == 1 and readers == [node]


def drops_nothing(node: Node) -> bool:
    """Return whether the call is a dropout that returns its input: outside training, or with probability 0."""
    if node.target is not torch.ops.aten.dropout.default:
        return False
    _, probability, train = node.args
    return not train or bool(probability == 0)


def returns_its_argument(node: Node) -> bool:
    """Return whether the call writes into its first argument and returns that."""
    overload = overload_of(node)
    return overload is not None and overload._schema.is_mutable and torch.Tag.inplace_view not in overload.tags


def writes(graph_module: torch.fx.GraphModule) -> bool:
    """Return whether any call in this graph, or in its subgraphs, may write into its arguments."""
    for node in graph_module.graph.nodes:
        overload = overload_of(node)
        if overload is not None and overload._schema.is_mutable:
            return True
        if node.target in HIDDEN_WRITES:
            return True
    return any(writes(child) for child in graph_module.children() if isinstance(child, torch.fx.GraphModule))


HIDDEN_WRITES = {torch.ops.aten.batch_norm.default: (3, 4), torch.ops.aten.instance_norm.default: (3, 4)}


def written_arguments(node: Node) -> list[Node]:
    """Return the arguments that this call changes according to its schema, or for batch norms, whose schema does not list them."""
    overload = overload_of(node)
    if overload in HIDDEN_WRITES:
        return [argument for i in HIDDEN_WRITES[overload] if isinstance(argument := node.args[i], Node)]
    if overload is None or not returns_its_argument(node):
        return []
    found: list[Node] = []
    for position, declared in enumerate(overload._schema.arguments):
        given: Any = node.args[position] if position < len(node.args) else node.kwargs.get(declared.name)
        if declared.alias_info is not None and declared.alias_info.is_write and given is not None:
            found += given if isinstance(given, (list, tuple)) else [given]
    return found
