"""A graph of the merged program, the root or a branch of a `cond`, which reads outer values through placeholders."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from ..compat import trees as pytree
from ..ir.captured_program import SymbolicMeta
from ..lower.aliasing import written_arguments
from ..trace.refusal import TraceUnsupported
from ..trace.source_location import line_in

Node = torch.fx.Node


class SubgraphKey:
    """A subgraph of a higher-order operator or loop, which equals another one with the same calls."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubgraphKey) and _calls(self.module) == _calls(other.module)


def _calls(module: nn.Module) -> list[Any]:
    """The contents of each node, and of the graphs inside."""
    assert isinstance(module, torch.fx.GraphModule)
    contents = [(node.op, node.name, node.target, str(node.args), str(node.kwargs), _describe_outputs(node)) for node in module.graph.nodes]
    return [*contents, *(_calls(part) for part in module.children())]


def _describe_outputs(node: Node) -> list[Any]:
    """The dtype and sizes of the results of a node."""
    return [(part.dtype, part.sizes) for part in pytree.tree_leaves(node.meta.get("val")) if isinstance(part, SymbolicMeta)]


class Scope:
    """A graph and the enclosing one."""

    def __init__(self, around: Scope | None = None) -> None:
        self.graph = torch.fx.Graph()
        self.around = around
        self.modules = nn.Module()
        self.inside: dict[Node, Node] = {}  # placeholders here, by node of the enclosing graph
        self._parts: dict[tuple[Node, Any], Node] = {}

    def here(self, node: Node) -> Node:
        """Return the counterpart of a node in this graph."""
        if self.around is None or node.graph is self.graph:
            return node
        outer = self.around.here(node)
        if outer not in self.inside:
            with self.graph.inserting_after():
                placeholder = self.graph.placeholder(outer.name)
            placeholder.meta.update(outer.meta)
            self.inside[outer] = placeholder
        return self.inside[outer]

    def map_argument(self, leaf: Any) -> Any:
        """Return the counterpart of an argument in this graph."""
        if isinstance(leaf, SubgraphKey):
            name = f"inner_{len(list(self.modules.children()))}"
            self.modules.add_module(name, leaf.module)
            return self.graph.get_attr(name)
        return self.here(leaf) if isinstance(leaf, Node) else leaf

    def part(self, whole: Node, key: Any, like: Node, value: Any) -> Node:
        """Return one of several results, extracted where they are computed."""
        if whole.graph is not self.graph:
            assert self.around is not None
            return self.around.part(whole, key, like, value)
        if (whole, key) not in self._parts:
            with self.graph.inserting_after(whole):
                part = self.graph.call_function(operator.getitem, (whole, key))
            part.meta.update(like.meta, val=value)
            self._parts[whole, key] = part
        return self._parts[whole, key]

    def close_over(self, outer: Sequence[Node], results: Sequence[Node]) -> torch.fx.GraphModule:
        """Return the finished branch, with these outer nodes as inputs.

        Raises:
            TraceUnsupported: If it writes into memory that two of its inputs share, which are separate when exported.
        """
        placeholders = [self.here(node) for node in outer]
        for placeholder in reversed(placeholders):
            self.graph._root.append(placeholder)
        self._check_writes(placeholders)
        return self.finish(results)

    def finish(self, results: Sequence[Any]) -> torch.fx.GraphModule:
        """Return the graph with these results."""
        self.graph.output(tuple(results))
        self.graph.eliminate_dead_code(is_wanted)
        return torch.fx.GraphModule(self.modules, self.graph)

    def _check_writes(self, placeholders: Sequence[Node]) -> None:
        shown = [node.meta["val"].memory for node in placeholders]
        for node in written_in(self.graph, self.modules):
            for changed in written_arguments(node):
                if isinstance(changed.meta["val"], SymbolicMeta) and shown.count(changed.meta["val"].memory) > 1:
                    line = line_in(node.meta["stack_trace"])
                    raise TraceUnsupported(
                        f"a branch writes at {line} into memory that was created before the condition, and also reads a view of it"
                    )


def is_wanted(node: Node) -> bool:
    """Return whether a call is needed without users, because it is impure or defines a data-dependent symbol."""
    return node.is_impure() or bool(node.meta.get("unbacked_bindings"))


def written_in(graph: torch.fx.Graph, modules: nn.Module) -> Iterator[Node]:
    """Yield the calls that write, including those of nested branches."""
    yield from (node for node in graph.nodes if node.op == "call_function" and written_arguments(node))
    for module in modules.children():
        if isinstance(module, torch.fx.GraphModule):
            yield from written_in(module.graph, module)
