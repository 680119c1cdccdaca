"""Marked blocks as ONNX local functions: one per class and sequence of operators, weights as inputs. Not here: the marks (sharing.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import onnx_ir as ir
import sympy
import torch

from ..errors import Untranslated
from ..ir.dtypes import INT64, NoKernel, onnx_dtype
from ..ir.expressions import SYMBOLIC, Size, expression, sizes_of
from ..ir.graph import TRANSPOSED, Graph, Tensor
from ..lower.interpreter import Interpreter
from ..match import Event, Value, canonical
from ..trace.module_equality import class_of
from .block_sharing import NAMESPACE, BlockSharing

DOMAIN = "fx2onnx"  # of the functions in the file
Node = torch.fx.Node


@dataclass(frozen=True)
class Call:
    """One call of a block: who translates the graph that it stands in, its tensors and its weights there."""

    interpreter: Interpreter
    inputs: Sequence[Tensor]
    weights: Sequence[Tensor]


Recipe = Callable[[Call], Tensor]  # makes the actual input of a call


@dataclass
class Body:
    """A function under construction: its graph, its formal inputs, and how to make the actual one of each at a call."""

    g: Graph
    formals: list[Tensor] = field(default_factory=list)
    recipes: list[Recipe] = field(default_factory=list)
    numbers: dict[sympy.Expr, Tensor] = field(default_factory=dict)
    transposes: dict[int, Tensor] = field(default_factory=dict)
    weight_at: dict[int, Recipe] = field(default_factory=dict)

    def formal(self, name: str, sizes: Sequence[Size], dtype: ir.DataType, recipe: Recipe) -> Tensor:
        """Return a further input of these sizes, and keep how a call makes the actual one."""
        shared = self.g.shared
        made = Tensor(name=shared.names.unique(name), sizes=tuple(sizes), type=ir.TensorType(dtype), shape=shared.onnx_shape(sizes))
        self.formals.append(made)
        self.recipes.append(recipe)
        return made

    def keep(self, read: set[int]) -> None:
        """Leave out the inputs that nothing reads."""
        kept = [i for i, formal in enumerate(self.formals) if id(formal) in read]
        self.formals, self.recipes = [self.formals[i] for i in kept], [self.recipes[i] for i in kept]

    def number(self, number: sympy.Expr) -> Tensor:
        """Return the input, int64 (1,), for a symbolic integer that no tensor here tells: the call passes it."""
        if number not in self.numbers:
            self.numbers[number] = self.formal("size", (1,), INT64, lambda call: call.interpreter.g.ints([number]))
        return self.numbers[number]

    def transpose_matrix(self, weight: Tensor) -> Tensor | None:
        """Return the input for a weight (m, n), transposed (n, m): the call passes it so. None when it is no weight of the block."""
        recipe = self.weight_at.get(id(weight))
        if recipe is None:
            return None
        if id(weight) not in self.transposes:
            rows, columns = weight.sizes
            self.transposes[id(weight)] = self.formal(
                f"{weight.name}{TRANSPOSED}", (columns, rows), weight.dtype, lambda call: call.interpreter.g.transpose_matrix(recipe(call))
            )
        return self.transposes[id(weight)]


@dataclass(frozen=True)
class Definition:
    """A block as a function: which one, how its inputs are made at a call, and the fake tensors of its results."""

    function: ir.Function
    recipes: tuple[Recipe, ...]
    results: tuple[torch.Tensor, ...]


class Mark(NamedTuple):
    """What the marks at the start of a block, and in place of one, pass: tensors, weights, and the number of the block."""

    inputs: Sequence[Node]
    weights: Sequence[Node]
    number: int

    @classmethod
    def of(cls, node: Node) -> Mark:
        """Return what a node passes that is such a mark."""
        arguments: tuple[Any, ...] = node.args
        return cls(*arguments)


class Blocks:
    """Functions of one conversion, and the calls of them."""

    def __init__(self, sharing: BlockSharing) -> None:
        self.sharing = sharing
        self.definitions: dict[int, Definition] = {}
        self.calls: dict[str, list[str]] = {}

    def opens(self, node: Node) -> bool:
        """Return whether a traced block starts here."""
        return _is_mark(node, "enter")

    def repeats(self, node: Node) -> bool:
        """Return whether this is a call of a block that stands elsewhere."""
        return _is_mark(node, "repeat")

    def define_and_call(self, interpreter: Interpreter, enter: Node, rest: Iterator[Node]) -> None:
        """Turn the nodes up to the end of the block into a function, and call it."""
        mark = Mark.of(enter)
        inside, leave = _up_to_the_end(rest, mark.number)
        try:
            self.definitions[mark.number] = self._define_function(interpreter, enter, mark, inside, _results_of(leave))
        except (Untranslated, NoKernel) as error:
            self.definitions[mark.number] = _make_failed_definition(tuple(node.meta["val"] for node in _results_of(leave)))
            interpreter.failures.append((enter, f"{error}: remove the class from functions="))
        if interpreter.failures:
            interpreter.give_up(leave)
        else:
            self._call(interpreter, enter, leave, mark)

    def call(self, interpreter: Interpreter, node: Node) -> None:
        """Call the function of a block that was captured elsewhere."""
        self._call(interpreter, node, node, Mark.of(node))

    def _define_function(
        self, interpreter: Interpreter, enter: Node, mark: Mark, inside: list[Node], returned: Sequence[Node]
    ) -> Definition:
        body = Body(Graph(interpreter.g.shared, parent=interpreter.g, isolated=True))
        body.g.body = body
        inner = interpreter.within(body.g)
        for position, node in enumerate(mark.inputs):
            _bind_formal(inner, body, node, partial(_input_at, position))
        for position, node in enumerate(mark.weights):
            _bind_weight(inner, body, node, inside, partial(_weight_at, position))
        inner.memory.link(enter, list(mark.inputs))
        for node in _free(inside, inner):
            _bind_free(interpreter, inner, body, node)
        inner.run(inside)
        interpreter.failures += inner.failures
        results = tuple(node.meta["val"] for node in returned)
        if inner.failures:
            return _make_failed_definition(results)
        outputs = _distinct(body, [inner.memory.read(node) for node in returned])
        nodes = _prune_dead_nodes(body.g.nodes, outputs)
        body.keep({id(value) for node in nodes for value in _read_by(node)})
        name = class_of(self.sharing.block(mark.number).module).__name__
        return Definition(_function(interpreter, name, body, nodes, outputs), tuple(body.recipes), results)

    def _call(self, interpreter: Interpreter, node: Node, binds: Node, mark: Mark) -> None:
        definition = self.definitions[mark.number]
        read = interpreter.memory.read
        call = Call(interpreter, [read(n) for n in mark.inputs], [read(n) for n in mark.weights])
        actual = [recipe(call) for recipe in definition.recipes]
        name = definition.function.name
        made = interpreter.g.op(name, *actual, domain=DOMAIN, outputs=len(definition.results), merged=False)
        outputs = made if isinstance(made, tuple) else (made,)
        for output, fake in zip(outputs, definition.results, strict=True):
            output.type = ir.TensorType(onnx_dtype(fake.dtype))
            interpreter.describe(output, fake)
        interpreter.memory.bind(binds, list(outputs))
        self.calls.setdefault(name, []).append(node.name)


def _make_failed_definition(results: tuple[torch.Tensor, ...]) -> Definition:
    """What stands for a block that cannot be translated, whose failures the interpreter has."""
    return Definition(ir.Function(DOMAIN, "failed", graph=ir.Graph([], [], nodes=[]), attributes=[]), (), results)


def _function(interpreter: Interpreter, name: str, body: Body, nodes: list[ir.Node], outputs: list[Tensor]) -> ir.Function:
    """Return the function of this body: one that is there already when it does the same under the same class."""
    functions = interpreter.g.shared.functions
    graph = ir.Graph(body.formals, outputs, nodes=nodes, opset_imports=dict(interpreter.g.shared.domains))
    key = (name, structure(graph))
    if key not in functions:
        variants = sum(other[0] == name for other in functions)  # others are of the caller and of ours, by other keys
        title = name if not variants else f"{name}_{variants + 1}"
        functions[key] = ir.Function(DOMAIN, title, graph=graph, attributes=[])
    return functions[key]


def _is_mark(node: Node, name: str) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target.name() == f"{NAMESPACE}::{name}"


def _input_at(position: int, call: Call) -> Tensor:
    return call.inputs[position]


def _weight_at(position: int, call: Call) -> Tensor:
    return call.weights[position]


def _results_of(leave: Node) -> Sequence[Node]:
    """Return the nodes of what a block returns."""
    arguments: tuple[Any, ...] = leave.args
    return arguments[0]


def _up_to_the_end(rest: Iterator[Node], number: int) -> tuple[list[Node], Node]:
    inside: list[Node] = []
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
    """Return the nodes outside that the block reads, besides its tensors and weights."""
    own = set(inside)
    found = dict.fromkeys(n for node in inside for n in node.all_input_nodes if n not in own and n not in inner.memory)
    return list(found)


def _bind_free(interpreter: Interpreter, inner: Interpreter, body: Body, node: Node) -> None:
    """Bind a value of the graph around: a number or a sub-graph as it is, a tensor as a further input."""
    if isinstance(node.meta.get("val"), SYMBOLIC):
        inner.memory.bind(node, expression(node.meta["val"]))
        return
    value = interpreter.memory.read(node)
    if isinstance(value, ir.Value):
        _bind_formal(inner, body, node, lambda call: call.interpreter.memory.read(node))
    else:
        inner.memory.bind(node, value)


def _distinct(body: Body, values: list[Tensor]) -> list[Tensor]:
    """Return outputs that are neither inputs of the function nor equal."""
    seen: set[int] = set(map(id, body.formals))
    found = []
    for value in values:
        if id(value) in seen or value.producer() is None:
            value = body.g.append_identity(value)
        seen.add(id(value))
        found.append(value)
    return found


def _prune_dead_nodes(nodes: Sequence[ir.Node], outputs: Sequence[Tensor]) -> list[ir.Node]:
    """Return the nodes that the outputs need, in their order."""
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


def structure(graph: ir.Graph) -> tuple[Event, ...]:
    """Return what a graph does, whatever its values are called; two functions of equal structure are one."""
    return canonical(_events_of(graph))


def _events_of(graph: ir.Graph) -> Iterator[Event]:
    """Yield the nodes of a graph, each after the graphs among its attributes."""
    yield Event("inputs", tuple((value.dtype, str(value.shape)) for value in graph.inputs), tuple(map(id, graph.inputs)))
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from _events_of(attribute.as_graph())
        signature = node.domain, node.op_type, tuple(map(_content, node.attributes.values()))
        yield Event(signature, tuple(map(_leaf, node.inputs)), tuple(map(id, node.outputs)))
    yield Event("outputs", tuple(map(_leaf, graph.outputs)))


def _leaf(value: ir.Value | None) -> Value | None:
    return None if value is None else Value(id(value))


def _content(attribute: ir.Attr) -> tuple[Any, ...]:
    if attribute.type == ir.AttributeType.GRAPH:
        return (attribute.name,)
    if attribute.type == ir.AttributeType.TENSOR:
        tensor = attribute.as_tensor()
        return attribute.name, tensor.dtype, str(tensor.shape), tensor.tobytes()
    return attribute.name, str(attribute.value)
