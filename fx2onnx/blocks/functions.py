"""Marked blocks as ONNX local functions: one per class and sequence of operators, weights as inputs. Not here: marking them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import sympy
import torch

from ..build.dtypes import INT64, onnx_dtype
from ..build.graph import TRANSPOSED, Graph, Tensor
from ..build.values import SYMBOLIC, expression, sizes_of
from .equality import class_of

if TYPE_CHECKING:
    from ..build.interpreter import Interpreter
    from .sharing import Sharing

DOMAIN = "fx2onnx"
Node = torch.fx.Node


@dataclass(frozen=True)
class Call:
    """One call of a block: the graph it stands in, its tensors and its weights there."""

    walk: Interpreter
    inputs: Sequence[Tensor]
    weights: Sequence[Tensor]


Recipe = Callable[[Call], Tensor]


@dataclass
class Body:
    """A function under construction: its graph, its formal inputs, and how to make the actual one of each at a call."""

    g: Graph
    formals: list[Tensor] = field(default_factory=list)
    recipes: list[Recipe] = field(default_factory=list)
    extras: dict[Any, Tensor] = field(default_factory=dict)
    weight_at: dict[int, Recipe] = field(default_factory=dict)

    def formal(self, name: str, sizes: Sequence[Any], dtype: ir.DataType, recipe: Recipe) -> Tensor:
        """A further input."""
        shared = self.g.shared
        made = Tensor(name=shared.names.unique(name), sizes=tuple(sizes), type=ir.TensorType(dtype), shape=shared.onnx_shape(sizes))
        self.formals.append(made)
        self.recipes.append(recipe)
        return made

    def keep(self, read: set[int]) -> None:
        """Leaves out the inputs that nothing reads."""
        kept = [i for i, formal in enumerate(self.formals) if id(formal) in read]
        self.formals, self.recipes = [self.formals[i] for i in kept], [self.recipes[i] for i in kept]

    def number(self, number: sympy.Expr) -> Tensor:
        """A symbolic integer that no tensor here tells: the call passes it."""
        if number not in self.extras:
            self.extras[number] = self.formal("size", (1,), INT64, lambda call: call.walk.g.ints([number]))
        return self.extras[number]

    def transposed(self, weight: Tensor) -> Tensor | None:
        """A weight, transposed: the call passes it so. None when it is no weight of the block."""
        recipe = self.weight_at.get(id(weight))
        if recipe is None:
            return None
        key = ("transposed", id(weight))
        if key not in self.extras:
            rows, columns = weight.sizes
            self.extras[key] = self.formal(
                f"{weight.name}{TRANSPOSED}", (columns, rows), weight.dtype, lambda call: call.walk.g.transposed(recipe(call))
            )
        return self.extras[key]


@dataclass(frozen=True)
class Definition:
    """A block as a function: which one, how its inputs are made at a call, and the fake tensors of its results."""

    function: ir.Function
    recipes: tuple[Recipe, ...]
    results: tuple[torch.Tensor, ...]


class Blocks:
    """The functions of one conversion, and the calls of them."""

    def __init__(self, sharing: Sharing) -> None:
        self.sharing = sharing
        self.definitions: dict[int, Definition] = {}
        self.calls: dict[str, list[str]] = {}

    def opens(self, node: Node) -> bool:
        """Whether a traced block starts here."""
        return _is_mark(node, "enter")

    def repeats(self, node: Node) -> bool:
        """Whether this is a call of a block that stands elsewhere."""
        return _is_mark(node, "repeat")

    def define_and_call(self, walk: Interpreter, enter: Node, rest: Iterator[Node]) -> None:
        """Turns the nodes up to the end of the block into a function, and calls it."""
        number = enter.args[2]
        inside, leave = _up_to_the_end(rest, number)
        self.definitions[number] = self._defined(walk, enter, inside, leave)
        if walk.failures:
            walk.give_up(leave)
        else:
            self._call(walk, enter, leave, number)

    def call(self, walk: Interpreter, node: Node) -> None:
        """Calls the function of a block that was captured elsewhere."""
        self._call(walk, node, node, node.args[2])

    def _defined(self, walk: Interpreter, enter: Node, inside: list[Node], leave: Node) -> Definition:
        body = Body(Graph(walk.g.shared, parent=walk.g, isolated=True))
        body.g.body = body
        inner = walk.within(body.g)
        for position, node in enumerate(enter.args[0]):
            _bind_formal(inner, body, node, lambda call, i=position: call.inputs[i])
        for position, node in enumerate(enter.args[1]):
            _bind_weight(inner, body, node, inside, lambda call, i=position: call.weights[i])
        inner.memory.link(enter, list(enter.args[0]))
        for node in _free(inside, inner):
            _bind_free(walk, inner, body, node)
        inner.run(inside)
        walk.failures += inner.failures
        results = tuple(node.meta["val"] for node in leave.args[0])
        if inner.failures:
            return Definition(ir.Function(DOMAIN, "failed", graph=ir.Graph([], [], nodes=[]), attributes=[]), (), results)
        outputs = _distinct(body, [inner.memory.read(node) for node in leave.args[0]])
        nodes = _needed(body.g.nodes, outputs)
        body.keep({id(value) for node in nodes for value in _read_by(node)})
        return Definition(self._function(walk, enter, body, nodes, outputs), tuple(body.recipes), results)

    def _function(self, walk: Interpreter, enter: Node, body: Body, nodes: list[ir.Node], outputs: list[Tensor]) -> ir.Function:
        """The function of this body: one that is there already when it does the same under the same class."""
        block = self.sharing.block(enter.args[2])
        name = class_of(block.module).__name__
        functions = walk.g.shared.functions
        graph = ir.Graph(body.formals, outputs, nodes=nodes, opset_imports=dict(walk.g.shared.domains))
        key = (name, structure(graph))
        if key not in functions:
            variants = sum(other == name for other, _ in functions)
            title = name if not variants else f"{name}_{variants + 1}"
            functions[key] = ir.Function(DOMAIN, title, graph=graph, attributes=[])
        return functions[key]

    def _call(self, walk: Interpreter, node: Node, binds: Node, number: int) -> None:
        definition = self.definitions[number]
        read = walk.memory.read
        call = Call(walk, [read(n) for n in node.args[0]], [read(n) for n in node.args[1]])
        actual = [recipe(call) for recipe in definition.recipes]
        name = definition.function.name
        made = walk.g.op(name, *actual, domain=DOMAIN, outputs=len(definition.results), merged=False)
        outputs = made if isinstance(made, tuple) else (made,)
        for output, fake in zip(outputs, definition.results, strict=True):
            output.type = ir.TensorType(onnx_dtype(fake.dtype))
            walk.describe(output, fake)
        walk.memory.bind(binds, list(outputs))
        self.calls.setdefault(name, []).append(node.name)


def _is_mark(node: Node, name: str) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target.name() == f"{DOMAIN}::{name}"


def _up_to_the_end(rest: Iterator[Node], number: int) -> tuple[list[Node], Node]:
    inside = []
    for node in rest:
        if _is_mark(node, "leave") and node.args[1] == number:
            return inside, node
        inside.append(node)
    raise AssertionError(f"block {number} is opened but never closed")


def _bind_formal(inner: Interpreter, body: Body, node: Node, recipe: Recipe) -> None:
    fake = node.meta["val"]
    formal = body.formal(f"{node.name}/in", sizes_of(fake), onnx_dtype(fake.dtype), recipe)
    body.g.symbols.learn_sizes(formal)
    inner.memory.bind(node, formal)


def _bind_weight(inner: Interpreter, body: Body, node: Node, inside: list[Node], recipe: Recipe) -> None:
    if node in inner.memory or not any(user in node.users for user in inside):
        return
    fake = node.meta["val"]
    formal = body.formal(f"{node.name}/in", sizes_of(fake), onnx_dtype(fake.dtype), recipe)
    body.weight_at[id(formal)] = recipe
    inner.memory.bind(node, formal)


def _free(inside: list[Node], inner: Interpreter) -> list[Node]:
    """The nodes outside that the block reads, besides its tensors and weights."""
    own = set(inside)
    found = dict.fromkeys(n for node in inside for n in node.all_input_nodes if n not in own and n not in inner.memory)
    return list(found)


def _bind_free(walk: Interpreter, inner: Interpreter, body: Body, node: Node) -> None:
    """A value of the graph around: a number or a sub-graph as it is, a tensor as a further input."""
    if isinstance(node.meta.get("val"), SYMBOLIC):
        inner.memory.bind(node, expression(node.meta["val"]))
        return
    value = walk.memory.read(node)
    if isinstance(value, ir.Value):
        _bind_formal(inner, body, node, lambda call: call.walk.memory.read(node))
    else:
        inner.memory.bind(node, value)


def _distinct(body: Body, values: list[Tensor]) -> list[Tensor]:
    """Outputs that are neither inputs of the function nor equal."""
    seen: set[int] = set(map(id, body.formals))
    found = []
    for value in values:
        if id(value) in seen or value.producer() is None:
            value = body.g.copied(value)
        seen.add(id(value))
        found.append(value)
    return found


def _needed(nodes: Sequence[ir.Node], outputs: Sequence[Tensor]) -> list[ir.Node]:
    """The nodes that the outputs need, in their order."""
    needed = {value.producer() for value in outputs}
    for node in reversed(nodes):
        if node in needed:
            needed |= {value.producer() for value in _read_by(node)}
    return [node for node in nodes if node in needed]


def _read_by(node: ir.Node) -> Iterator[ir.Value]:
    yield from (value for value in node.inputs if value is not None)
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            for inner in attribute.as_graph():
                yield from _read_by(inner)
            yield from attribute.as_graph().outputs


def structure(graph: ir.Graph) -> tuple[Any, ...]:
    """What a graph does, whatever its values are called; two functions of equal structure are one."""
    number: dict[int, int] = {}

    def of(value: ir.Value | None) -> int | None:
        return None if value is None else number.setdefault(id(value), len(number))

    def part(inner: ir.Graph) -> tuple[Any, ...]:
        inputs = tuple((of(v), v.dtype, str(v.shape)) for v in inner.inputs)
        nodes = tuple(
            (n.domain, n.op_type, tuple(map(of, n.inputs)), tuple(map(attribute, n.attributes.values())), tuple(map(of, n.outputs)))
            for n in inner
        )
        return inputs, nodes, tuple(map(of, inner.outputs))

    def attribute(a: ir.Attr) -> tuple[Any, ...]:
        if a.type == ir.AttributeType.GRAPH:
            return a.name, part(a.as_graph())
        if a.type == ir.AttributeType.TENSOR:
            return a.name, a.as_tensor().dtype, str(a.as_tensor().shape), a.as_tensor().tobytes()
        return a.name, str(a.value)

    return part(graph)
