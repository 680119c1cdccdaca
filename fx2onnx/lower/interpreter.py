"""Translates each node of the captured graph, in the order of the capture."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, Protocol

import torch

from ..compat.operators import OpOverload
from ..errors import MissingPackage, Untranslated, op_title
from ..ir.complex_pairs import ComplexPair, RealPart
from ..ir.dtypes import NoKernel, onnx_dtype
from ..ir.expressions import SYMBOLIC, expression, sizes_of
from ..ir.graph import Graph
from ..ir.source_node import overload_of
from ..ir.symbols import UnknownSymbol
from ..ir.tensor import Tensor
from ..ir.translation import TranslationOf
from .aliasing import AliasMap, written_arguments
from .module_calls import NO_OUTPUT, ModuleCall, is_number
from .scatter_back import ValueOf, ViewScatter

aten = torch.ops.aten
IGNORED_KWARGS = ("device", "layout", "pin_memory", "memory_format", "non_blocking")
NOT_TRANSLATED = (Untranslated, MissingPackage, NoKernel, UnknownSymbol)
INLINED = torch.ops.higher_order.wrap_with_set_grad_enabled


class FunctionCalls(Protocol):
    """The module calls of a capture that become calls of local functions."""

    def group(self, graph: torch.fx.Graph, around: torch.fx.Node | None, /) -> Iterable[torch.fx.Node | ModuleCall]:
        """Return the nodes of a graph, grouped by module call, except calls that contain the node which takes the graph."""

    def call(self, interpreter: Interpreter, call: ModuleCall, /) -> None:
        """Append the call of a function."""


class Interpreter:
    """Translates the nodes of one captured graph into one ONNX graph. A subgraph has a separate interpreter.

    Args:
        tracks: whether the captured program writes into tensors, so that views must be distinguished from copies.
    """

    def __init__(
        self, g: Graph, module: torch.fx.GraphModule, dispatch: TranslationOf, tracks: bool, functions: FunctionCalls | None = None
    ) -> None:
        self.g = g
        self.module = module
        self.dispatch = dispatch
        self.tracks = tracks
        self.functions = functions
        self.memory = AliasMap(tracks, self._recompute_view, self._scatter_back)
        self._views = ViewScatter(g, self.memory, self.value_of, self._translate_with)
        self.failures: list[tuple[torch.fx.Node, str]] = []
        self._failed: set[torch.fx.Node] = set()
        self._scopes: dict[int, dict[str, str]] = {}

    def run_graph(self, graph: torch.fx.Graph, around: torch.fx.Node | None = None) -> None:
        """Translate the nodes of a graph; module calls become functions if they are requested.

        Args:
            around: the node that takes the graph.
        """
        self.run(graph.nodes if self.functions is None else self.functions.group(graph, around))

    def run(self, items: Iterable[torch.fx.Node | ModuleCall]) -> None:
        """Translate nodes in order. Failures are collected in `failures`, so that one error can list all of them."""
        for item in items:
            if isinstance(item, ModuleCall):
                assert self.functions is not None
                self.functions.call(self, item)
            elif item.op == "get_attr":
                self._constant(item)
            elif item.op == "call_function" and item.target not in NO_OUTPUT:
                with self.g.on(item, self._metadata(item)):
                    self._try_node(item)

    def within(self, g: Graph) -> Interpreter:
        """Return an interpreter of the same module that appends to another graph."""
        return Interpreter(g, self.module, self.dispatch, self.tracks, self.functions)

    def has_failed(self, nodes: Iterable[torch.fx.Node]) -> bool:
        """Return whether one of these nodes was not translated."""
        return not self._failed.isdisjoint(nodes)

    def _try_node(self, node: torch.fx.Node) -> None:
        if self._failed and self.has_failed(node.all_input_nodes):
            self.give_up(node)
            if isinstance(node.target, OpOverload) and not self.dispatch.knows(node):
                self.failures.append((node, "no translation"))
            return
        try:
            self._node(node)
        except NOT_TRANSLATED as error:
            self.failures += getattr(error, "failures", None) or [(node, str(error))]
            self.give_up(node)

    def give_up(self, node: torch.fx.Node) -> None:
        """Skip all nodes that read this node, without reporting them."""
        self._failed.add(node)

    def _node(self, node: torch.fx.Node) -> None:
        value = node.meta.get("val")
        if value is None and _has_raised(node):
            return
        if is_number(node):
            self.memory.bind(node, expression(value))
        elif node.target is operator.getitem:
            self._part(node)
        elif node.target is INLINED:
            self._inline(node)
        else:
            self._call(node)

    def _constant(self, node: torch.fx.Node) -> None:
        value = operator.attrgetter(str(node.target))(self.module)
        if isinstance(value, torch.Tensor):
            value = self.g.initializer_for(self.g.shared.names.unique(node.name), value)
        self.memory.bind(node, value)

    def _part(self, node: torch.fx.Node) -> None:
        argument, index = _plain(node.args)
        source = self.memory.resolve(argument)
        if isinstance(source, torch.fx.Node):
            self.memory.bind(node, self.memory.read(source)[index])
        elif source[index] in self._failed:  # inside an inlined graph
            self.give_up(node)
        else:
            self.memory.link(node, source[index])

    def _inline(self, node: torch.fx.Node) -> None:
        _, graph, *operands = _plain(node.args)
        inner = operator.attrgetter(graph.target)(self.module)
        placeholders = inner.graph.find_nodes(op="placeholder")
        for placeholder, operand in zip(placeholders, operands, strict=True):
            self.memory.link(placeholder, operand)
        outer, self.module = self.module, inner
        self.run_graph(inner.graph, node)
        self.module = outer
        self.memory.link(node, inner.graph.output_node().args[0])

    def _call(self, node: torch.fx.Node) -> None:
        if node.target is aten.copy_.default and self.memory.same_view(*node.args[:2]):
            self.memory.bind(node, self.memory.read(_plain(node.args)[0]))
            return
        made = self._translate(node)
        changed = written_arguments(node) if self.memory.tracks else []
        results, new = _split(made, len(changed), node)
        for argument, value in zip(changed, new, strict=False):
            fake = self.memory.resolve(argument).meta["val"]
            self.memory.write(argument, self._conform_to_capture(value, fake, self.g.shared.names.unique(f"{node.name}/write"), True))
        self.memory.bind(node, self._annotate(node, results if results is not None else self.memory.read(changed[0])))

    def _recompute_view(self, node: torch.fx.Node) -> Any:
        """Return the value of a view after a write, recomputed from the current values of its arguments."""
        if written_arguments(node):
            return self.memory.read(written_arguments(node)[0])
        with self.g.on(node, self._metadata(node)):
            if node.target is operator.getitem:
                argument, index = _plain(node.args)
                return self.memory.read(argument)[index]
            return self._annotate(node, self._translate(node))

    def _scatter_back(self, owner: torch.fx.Node, node: torch.fx.Node, value: Any) -> Any:
        if not self.memory.alone(owner):
            raise Untranslated("it writes into memory shared with another value, and the captured graph does not show how it is shared")
        return self._views.scatter_back(owner, self.memory.path(owner, node), value)

    def _translate(self, node: torch.fx.Node) -> Any:
        return self._translate_with(node, self.value_of)

    def _translate_with(self, node: torch.fx.Node, value_of: ValueOf) -> Any:
        kwargs = {key: value_of(value) for key, value in node.kwargs.items() if key not in IGNORED_KWARGS}
        return self.dispatch(node)(self.g, *map(value_of, node.args), **kwargs)

    def value_of(self, argument: Any) -> Any:
        """Return the current value of an argument, with nodes replaced by their values, also in lists."""
        if isinstance(argument, torch.fx.Node):
            return self.memory.read(argument)
        if isinstance(argument, (list, tuple)):
            return [self.value_of(item) for item in argument]
        if isinstance(argument, dict):
            return {key: self.value_of(item) for key, item in argument.items()}
        return expression(argument)

    def _annotate(self, node: torch.fx.Node, made: Any) -> Any:
        """Return `made` with the dtype, the sizes and the name of each result in the capture."""
        value = node.meta.get("val")
        if not isinstance(value, (tuple, list)):
            return self._conform_to_capture(made, value, node.name)
        if len(made) != len(value):
            raise TypeError(f"{op_title(node.target)}: the translation returns {len(made)} results, but the operator has {len(value)}")
        return [self._conform_to_capture(m, v, f"{node.name}/{i}") for i, (m, v) in enumerate(zip(made, value, strict=True))]

    def _conform_to_capture(self, made: Any, value: Any, name: str, expand: bool = False) -> Any:
        if isinstance(made, ComplexPair) and isinstance(value, torch.Tensor):
            real = RealPart.of(value)
            return ComplexPair(
                *(self._conform_to_capture(part, real, f"{name}/{of}", expand) for part, of in ((made.real, "real"), (made.imag, "imag")))
            )
        if not isinstance(made, Tensor):
            return made
        if isinstance(value, SYMBOLIC):
            self.g.symbols.learn_number(expression(value), made)
            return expression(value)
        if not isinstance(value, torch.Tensor):
            return made
        made = self.g.cast(made, onnx_dtype(value.dtype))
        if expand and made.known_sizes is not None and made.sizes != sizes_of(value):
            made = self.g.Expand(made, list(sizes_of(value)))
        if made.shape is None:
            made.name = self.g.shared.names.unique(name) if made.producer() is not None else made.name
            self.describe(made, value)
        else:  # merged with an equal node: the same mask used twice gives a length two names
            self.g.symbols.learn_sizes(made, sizes_of(value))
        return made

    def describe(self, made: Tensor, value: torch.Tensor) -> None:
        """Set the sizes and the shape that a value has in the capture."""
        self.g.set_sizes(made, sizes_of(value))
        made.shape = self.g.shared.onnx_shape(made.sizes)
        self.g.symbols.learn_sizes(made)

    def _metadata(self, node: torch.fx.Node) -> dict[str, str]:
        stack = node.meta.get("nn_module_stack")
        if not stack:
            return self.g.metadata
        if id(stack) not in self._scopes:
            self._scopes[id(stack)] = scopes(stack)
        return self._scopes[id(stack)]


def scopes(stack: dict[str, tuple[str, Any]]) -> dict[str, str]:
    """Return the module that a node is from, under the keys of torch's own exporter."""
    entries = list(stack.values())
    names = [str(path) for path, _ in entries]
    classes = [kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}" for _, kind in entries]
    pairs = [f"{name}: {kind}" for name, kind in zip(names, classes, strict=True)]
    return {"namespace": "/".join(pairs), "pkg.torch.onnx.name_scopes": repr(names), "pkg.torch.onnx.class_hierarchy": repr(classes)}


def _plain(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a node, without the union type that torch declares."""
    return args


def _has_raised(node: torch.fx.Node) -> bool:
    """Return whether this call raised during the capture and the model caught that: torch.export keeps the call, without a value."""
    overload = overload_of(node)
    return overload is not None and bool(overload._schema.returns) and not node.users


def _split(made: Any, changed: int, node: torch.fx.Node) -> tuple[Any, list[Any]]:
    """Return the results of a call, and the new values of the arguments that it changes, which follow the results.

    The results are None for an operator that only returns what it changed.
    """
    if not changed:
        return made, []
    parts = list(made) if isinstance(made, (tuple, list)) else [made]
    overload = overload_of(node)
    returns = overload._schema.returns if overload is not None else ()
    own = sum(r.alias_info is None for r in returns)
    if len(parts) == own:
        return made, []
    if len(parts) != own + changed:
        raise Untranslated(f"its translation must return {own} results, then {changed} new values, but it returns {len(parts)} values")
    results = parts[:own]
    return (None if returns and own < len(returns) else results[0] if own == 1 else results or None), parts[own:]
