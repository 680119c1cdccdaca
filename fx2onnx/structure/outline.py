"""Module calls as ONNX local functions: one per class and sequence of operators, weights as inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import onnx_ir as ir
import sympy
import torch

from ..compat import trees as pytree
from ..errors import Untranslated
from ..ir.complex_pairs import ComplexPair
from ..ir.dtypes import INT64, onnx_dtype
from ..ir.expressions import SYMBOLIC, Size, expression, sizes_of
from ..ir.graph import TRANSPOSED, Graph, Tensor
from ..ir.quantized import Quantized
from ..ir.symbols import dtype_of_number
from ..lower.interpreter import NOT_TRANSLATED, Interpreter, scopes
from ..lower.module_calls import ModuleCall, Node, Scope, find_divided_calls, group_module_calls, is_number, is_read_outside, scope_of
from ..lower.subgraphs import own_outputs
from ..match import Event, Value, canonical
from .call_difference import describe_difference

DOMAIN = "fx2onnx"  # of the functions in the file
Key = tuple[str, tuple[Event, ...]]  # of a function: the name of its class, and what it does


@dataclass
class Body:
    """A function under construction: its graph inside the one that calls it, its inputs, and what makes those of this call."""

    g: Graph
    outer: Graph
    formals: list[Tensor] = field(default_factory=list)
    actuals: list[Callable[[], Tensor]] = field(default_factory=list)
    weights: dict[int, Tensor] = field(default_factory=dict)
    numbers: dict[sympy.Expr, Tensor] = field(default_factory=dict)
    transposes: dict[int, Tensor] = field(default_factory=dict)
    results: list[Node | sympy.Expr] = field(default_factory=list)
    passed: dict[Node, Node] = field(default_factory=dict)  # results that are inputs as they are

    def formal(self, name: str, sizes: Sequence[Size], dtype: ir.DataType, actual: Callable[[], Tensor]) -> Tensor:
        """Return a further input of these sizes, and keep how the call makes its value."""
        shared = self.g.shared
        made = Tensor(name=shared.names.unique(name), sizes=tuple(sizes), type=ir.TensorType(dtype), shape=shared.onnx_shape(sizes))
        self.formals.append(made)
        self.actuals.append(actual)
        return made

    def formal_for(self, node: Node, value: Tensor) -> Tensor:
        """Return the input for a tensor of the graph around, whose sizes can be read from it."""
        fake = node.meta["val"]
        made = self.formal(f"{node.name}/in", sizes_of(fake), onnx_dtype(fake.dtype), lambda: value)
        self.g.symbols.learn_sizes(made)
        if self.outer.is_weight(value):
            self.weights[id(made)] = value
        return made

    def number(self, number: sympy.Expr) -> Tensor:
        """Return the input, int64 (1,), for a symbolic integer that no tensor here tells: the call passes it."""
        if number not in self.numbers:
            self.numbers[number] = self.formal("size", (1,), INT64, lambda: self.outer.ints([number]))
        return self.numbers[number]

    def is_weight(self, value: Tensor) -> bool:
        """Return whether a value is an input that each call passes a weight for."""
        return id(value) in self.weights

    def transpose_matrix(self, weight: Tensor) -> Tensor:
        """Return the input for a weight (m, n), transposed (n, m): the call passes it so."""
        if id(weight) not in self.transposes:
            make = partial(self.outer.transpose_matrix, self.weights[id(weight)])
            self.transposes[id(weight)] = self.formal(f"{weight.name}{TRANSPOSED}", weight.sizes[::-1], weight.dtype, make)
        return self.transposes[id(weight)]

    def finish(self, outputs: list[Tensor]) -> ir.Graph:
        """Return the graph, without nodes and inputs that these outputs do not need."""
        nodes = _prune_dead_nodes(self.g.nodes, outputs)
        read = {id(value): value for node in nodes for value in _read_by(node)}
        if any(self.g.shared.initializers.get(str(value.name)) is value for value in read.values()):
            raise Untranslated("the translation of an operator computes a weight of the model")
        kept = [place for place, formal in enumerate(self.formals) if id(formal) in read]
        self.formals, self.actuals = [self.formals[place] for place in kept], [self.actuals[place] for place in kept]
        return ir.Graph(self.formals, outputs, nodes=nodes, opset_imports=dict(self.g.shared.domains))


@dataclass(frozen=True)
class Definition:
    """A function, and the first call of it: of which module, and by which nodes."""

    function: ir.Function
    path: str
    nodes: Sequence[Node]


class Functions:
    """The functions of one conversion, and the module calls that become calls of them.

    Args:
        classes: those of the modules, or True for every class that torch.nn does not define.
        module: the captured graph.

    Attributes:
        shared: the modules whose function another module defines, and that one, by path.
        not_shared: the modules that call no function, or one of their own, and why.
    """

    def __init__(self, classes: Sequence[type] | bool, module: torch.fx.GraphModule) -> None:
        self._names = None if isinstance(classes, bool) else set(_names_of(classes))
        self._divided: Scope = {}
        find_divided_calls(module, self._divided)
        self._definitions: dict[Key, Definition] = {}
        self._read: dict[Any, set[int]] = {}
        self.shared: dict[str, str] = {}
        divided = (path for path, kind in self._divided.values() if self._is_wanted(path, kind))
        self.not_shared = dict.fromkeys(divided, "a test in it decides what other modules compute")

    def group(self, graph: torch.fx.Graph, around: Node | None) -> list[Node | ModuleCall]:
        """Return the nodes of a graph that a node takes, with those of each module call together that this node is not in."""
        not_grouped = {*self._divided, *(scope_of(around) if around is not None else ())}
        items, mixed = group_module_calls(graph.nodes, self._is_wanted, not_grouped)
        self.not_shared |= dict.fromkeys(mixed, "operators of other modules are called between its own")
        self._note_read(items)
        return items

    def _note_read(self, items: Iterable[Node | ModuleCall]) -> None:
        """Note which results of module calls are read: alike calls return what one of them needs, so that they share a function."""
        for call in items:
            if isinstance(call, ModuleCall):
                nodes = dict.fromkeys(call.nodes())
                read = {place for place, node in enumerate(nodes) if is_read_outside(node, nodes)}
                self._read.setdefault(_describe_call(call), set()).update(read)
                self._note_read(call.items)

    def _is_wanted(self, path: str, kind: str) -> bool:
        return path != "" and (not kind.startswith("torch.nn.") if self._names is None else kind in self._names)

    def call(self, interpreter: Interpreter, call: ModuleCall) -> None:
        """Append the call of a function, or the nodes of the module call where they cannot be one."""
        nodes = dict.fromkeys(call.nodes())
        results = [node for place, node in enumerate(nodes) if place in self._read[_describe_call(call)]]
        with interpreter.g.on([*results, *nodes][0], scopes(call.scope)):
            try:
                body, graph = _define(interpreter, call, nodes, results)
                given = [actual() for actual in body.actuals]
            except NOT_TRANSLATED as error:
                self.not_shared[call.path] = str(error)
                interpreter.run(call.items)
                return
            function = self._function(interpreter, call, list(nodes), graph)
            made = interpreter.g.op(function.name, *given, domain=DOMAIN, outputs=len(graph.outputs), merged=False)
        outputs = dict(zip(body.results, made if isinstance(made, tuple) else (made,), strict=True))
        for (result, output), formal in zip(outputs.items(), graph.outputs, strict=True):
            output.name, output.type = formal.name, formal.type  # values of a function have names of their own
            if isinstance(result, Node):
                interpreter.describe(output, result.meta["val"])
            else:
                output.known_sizes = ()
                interpreter.g.symbols.learn_number(result, output)
        for node in (node for node in results if is_read_outside(node, nodes)):
            if node in body.passed:
                interpreter.memory.link(node, body.passed[node])
                interpreter.g.symbols.learn_sizes(interpreter.memory.read(node), sizes_of(node.meta["val"]))
            else:
                interpreter.memory.bind(node, outputs[node] if node in outputs else expression(node.meta["val"]))

    def _function(self, interpreter: Interpreter, call: ModuleCall, nodes: Sequence[Node], graph: ir.Graph) -> ir.Function:
        """The function of this body: one that is there already when it does the same under the same class."""
        key = (call.name, structure(graph))
        same_class = [definition for (name, _), definition in self._definitions.items() if name == call.name]
        if key in self._definitions:
            first = self._definitions[key]
            self.shared |= {call.path: first.path} if first.path != call.path else {}
        else:
            title = call.name if not same_class else f"{call.name}_{len(same_class) + 1}"
            function = interpreter.g.shared.functions[key] = ir.Function(DOMAIN, title, graph=graph, attributes=[])
            first = self._definitions[key] = Definition(function, call.path, nodes)
            if same_class:
                why = describe_difference(same_class[0].nodes, nodes, interpreter.g.shared.onnx_shape)
                self.not_shared[call.path] = f"it cannot share the function of {same_class[0].path}: {why}"
        return first.function

    def count_calls(self, model: ir.Model) -> dict[str, int]:
        """Return how often a model calls each of these functions."""
        nodes = chain(model.graph.all_nodes(), *(function.all_nodes() for function in model.functions.values()))
        return dict(Counter(node.op_type for node in nodes if node.domain == DOMAIN))


def _describe_call(call: ModuleCall) -> tuple[Any, ...]:
    """What calls have in common that may share a function: the class, and the operators."""
    return call.name, *(node.target for node in call.nodes())


def _names_of(classes: Iterable[type]) -> Iterator[str]:
    """Yield the names of classes and of those that are derived from them, as a scope has them."""
    for kind in classes:
        yield f"{kind.__module__}.{kind.__qualname__}"
        yield from _names_of(kind.__subclasses__())


def _define(interpreter: Interpreter, call: ModuleCall, nodes: Collection[Node], results: Sequence[Node]) -> tuple[Body, ir.Graph]:
    """Translate a module call into a graph of its own.

    Raises:
        Untranslated: it cannot be a function.
    """
    free = dict.fromkeys(read for node in nodes for read in node.all_input_nodes if read not in nodes)
    body = Body(Graph(interpreter.g.shared, parent=interpreter.g, isolated=True), interpreter.g)
    body.g.body = body
    inner = interpreter.within(body.g)
    inputs = _bind_free(interpreter, inner, body, free)
    inner.run(call.items)
    if inner.failures:
        raise Untranslated(inner.failures[0][1])
    if written := [node.name for node in inputs.values() if inner.memory.is_written(node)]:
        raise Untranslated(f"it writes into its arguments or buffers: {', '.join(written)}")
    body.passed = _find_passed(inner, inputs, results)
    _add_results(interpreter, body, [node for node in results if node not in body.passed])
    _check_memory(inner, inputs.values(), [node for node in body.results if isinstance(node, Node) and is_read_outside(node, nodes)])
    values = [inner.memory.read(result) if isinstance(result, Node) else result for result in body.results]
    if not values:
        raise Untranslated("it computes nothing that is read")
    with body.g.on(interpreter.g.at, interpreter.g.metadata):
        return body, body.finish(own_outputs(body.g, values, [_dtype_of(result) for result in body.results]))


def _bind_free(interpreter: Interpreter, inner: Interpreter, body: Body, free: Iterable[Node]) -> dict[int, Node]:
    """Bind what the nodes of a function read from the graph around; return the tensors, which become inputs, weights after the others."""
    if interpreter.has_failed(free):
        raise Untranslated("it reads the result of an operator without a translation")
    values = {node: expression(node.meta["val"]) if is_number(node) else interpreter.memory.read(node) for node in free}
    for node, value in values.items():
        if isinstance(value, Tensor):
            continue
        if any(isinstance(part, (Tensor, ComplexPair, Quantized)) for part in pytree.tree_leaves(value)):
            raise Untranslated(f"{node.name}, which it reads, is not a tensor that can be an input of a function")
        inner.memory.bind(node, value)
    tensors = {node: value for node, value in values.items() if isinstance(value, Tensor)}
    formals = {node: body.formal_for(node, tensors[node]) for node in sorted(tensors, key=lambda node: body.outer.is_weight(tensors[node]))}
    for node, formal in formals.items():
        inner.memory.bind(node, formal)
    return {id(formal): node for node, formal in formals.items()}


def _find_passed(inner: Interpreter, inputs: Mapping[int, Node], results: Sequence[Node]) -> dict[Node, Node]:
    """Return the results that are other names of tensors from the graph around: `x.to(x.dtype)`."""
    found = {node: inputs[id(inner.memory.read(node))] for node in results if id(inner.memory.read(node)) in inputs}
    same = inner.memory.owner
    return {node: source for node, source in found.items() if not inner.tracks or same(node) is same(source)}


def _check_memory(inner: Interpreter, inputs: Iterable[Node], results: Sequence[Node]) -> None:
    """Refuse results of a function that a later write would have to change with each other, or with inputs."""
    owners = [inner.memory.owner(node) for node in results]
    if inner.tracks and (len(set(owners)) < len(owners) or not set(owners).isdisjoint(map(inner.memory.owner, inputs))):
        raise Untranslated("its outputs share memory with its arguments or with each other, and the model writes into tensors")


def _add_results(interpreter: Interpreter, body: Body, results: Sequence[Node]) -> None:
    """Add what the function returns: tensors, then numbers that are read of values in it, also where only sizes show them."""
    numbers = {node: expression(node.meta["val"]) for node in results if isinstance(node.meta["val"], SYMBOLIC)}
    body.results = [node for node in results if node not in numbers]
    if not all(isinstance(node.meta["val"], torch.Tensor) for node in results if node not in numbers):
        raise Untranslated("it returns what cannot be an output of a function")
    told = {size for node in body.results for size in sizes_of(node.meta["val"])}
    fresh = [number for number in body.g.symbols.sources if number.is_Symbol and number not in told]
    unknown = (number for number in dict.fromkeys((*numbers.values(), *fresh)) if isinstance(number, sympy.Basic))
    body.results += [number for number in unknown if not interpreter.g.symbols.knows(number)]


def _dtype_of(result: Node | sympy.Expr) -> ir.DataType:
    return onnx_dtype(result.meta["val"].dtype) if isinstance(result, Node) else dtype_of_number(result)


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
