"""Attribute the nodes that ran to nodes of the model file, their source lines and their modules.

ONNX Runtime doesn't run the graph of the file: it fuses nodes, folds constants and changes layouts. It keeps the names of the values
between the parts it changed. So a node that isn't in the file replaces the nodes between its inputs and its outputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ...show.origin import STACK, modules_of, placed_line
from .blocked import claims

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Origin:
    """The origin of a node that ran: its source lines, and the module that contains all of it, if known.

    Attributes:
        lines: empty if unknown; several if nodes of several lines were fused.
        module: path and class of the innermost module that contains all of it; None if unknown.
        of: number of nodes of the file that it replaces.
    """

    lines: tuple[str, ...] = ()
    module: tuple[str, str] | None = None
    of: int = 0


class Graph:
    """The nodes of a model, including subgraphs, by name, by output and by input."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.nodes = [node for graph in graphs(model.graph) for node in graph.node]
        self.named = {node.name: node for node in self.nodes if node.name}
        self.makers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        self.readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        for node in self.nodes:
            for name in filter(None, node.output):
                self.makers[name].append(node)
            for name in read_by(node):
                self.readers[name].append(node)
        self.given = {value.name for graph in graphs(model.graph) for value in (*graph.input, *graph.initializer)}
        self.varying = {value.name for graph in graphs(model.graph) for value in graph.input} - {w.name for w in model.graph.initializer}

    @cached_property
    def moving(self) -> set[str]:
        """The values that depend on an input. All others are computed once, when the model is loaded."""
        found, left = set(self.varying), list(self.varying)
        while left:
            for node in self.readers.get(left.pop(), ()):
                new = [name for name in node.output if name and name not in found]
                found.update(new)
                left.extend(new)
        return found


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and all its subgraphs."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node or inner.output:
                    yield from graphs(inner)


def read_by(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the names of the inputs of a node, including the values that its subgraphs read."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for inner in (attribute.g, *attribute.graphs):
            for below in graphs(inner):
                yield from (name for below_node in below.node for name in below_node.input if name)


class Attribution:
    """Find the origin of the nodes of a run.

    Args:
        file: the model that was loaded.
        ran: the optimised graph, or None if it is unknown. Then nodes are found only by name.
    """

    def __init__(self, file: onnx.ModelProto, ran: onnx.ModelProto | None) -> None:
        self._file, self._ran = Graph(file), Graph(ran) if ran is not None else None
        self._ends: set[str] = set()
        self._blocked: dict[str, list[onnx.NodeProto]] = {}
        if self._ran is not None:
            self._ends = {*self._ran.makers, *self._ran.given}
            self._blocked = claims(self._ran.nodes, self._file.nodes, self._file.makers, self._ends)
            self._ends.update(value for nodes in self._blocked.values() for node in nodes for value in node.output)

    def of(self, name: str, op: str) -> Origin:
        """Return the origin of a node that ran with this name and operator."""
        nodes = self._nodes(name, op)
        lines = dict.fromkeys(placed_line(_read_metadata(node).get(STACK, "")) for node in nodes)
        return Origin(tuple(filter(None, lines)), _shared_module([modules_of(_read_metadata(node)) for node in nodes]), len(nodes))

    def _nodes(self, name: str, op: str) -> list[onnx.NodeProto]:
        same = self._file.named.get(name)
        if same is not None and same.op_type == op:
            return [same]
        if name in self._blocked:
            return self._blocked[name]
        node = self._ran.named.get(name) if self._ran is not None else None
        if node is None:
            return [same] if same is not None else []
        return self._between(self._results(node))

    def _results(self, node: onnx.NodeProto) -> list[str]:
        """Return the first values of the file that are computed from a node's outputs: these outputs, or values further downstream."""
        assert self._ran is not None
        found, met, left = [], set(), list(filter(None, node.output))
        while left:
            name = left.pop(0)
            if name in met:
                continue
            met.add(name)
            if name in self._file.makers:
                found.append(name)
            else:
                left.extend(made for reader in self._ran.readers.get(name, ()) for made in reader.output if made)
        return found

    def _between(self, results: Iterable[str]) -> list[onnx.NodeProto]:
        """Return the nodes of the file between some results and the values that still exist, without folded constants."""
        found, left = {}, list(results)
        while left:
            name = left.pop(0)
            for node in self._file.makers.get(name, ()):
                if id(node) in found or not self._file.moving.intersection(node.output):
                    continue
                found[id(node)] = node
                left.extend(value for value in read_by(node) if value not in self._ends)
        return list(found.values())


def _read_metadata(node: onnx.NodeProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in node.metadata_props}


def _shared_module(scopes: list[list[tuple[str, str]]]) -> tuple[str, str] | None:
    """Return the innermost module that contains all of these nodes."""
    if not scopes or not all(scopes):
        return None
    shared = [first for first, *others in zip(*scopes, strict=False) if all(other == first for other in others)]
    return shared[-1] if shared else None
