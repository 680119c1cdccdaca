"""A program of torch.export as runs write one: sizes and numbers as expressions in their places, and not as nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sympy
import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx.experimental.symbolic_shapes import ShapeEnv, free_unbacked_symbols
from torch.utils import _pytree as pytree

from ...blocks.sharing import storage
from ...build.aliasing import written_arguments
from ...build.interpreter import NO_OUTPUT
from ...build.values import SYMBOLIC, expression
from ...errors import users_line
from ..conditions import READS
from ..running.lines import FRAME, is_within_torch
from ..running.operator_sizes import EXAMPLE
from ..running.program import CallSpec, Described, RunProgram
from ..running.refusal import CannotRun
from ..running.sample import Axes

Node = torch.fx.Node
TAKEN = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR, InputKind.USER_INPUT)


def described(program: torch.export.ExportedProgram, symbols: Mapping[sympy.Symbol, sympy.Symbol], axes: Axes) -> RunProgram:
    """Return a program of torch.export as one of runs.

    Args:
        symbols: of its sizes, and what runs call them.

    Raises:
        CannotRun: it holds something else than calls of operators, or changes what was there before.
    """
    _check(program)
    module = torch.fx.GraphModule(torch.nn.Module(), _Copied(program, symbols, axes.environment).graph)
    module.meta[EXAMPLE] = {axes.names[symbol]: size for symbol, size in axes.example.items()}
    spec = CallSpec(program.call_spec.in_spec, program.call_spec.out_spec)
    example: Any = program.example_inputs
    return RunProgram(module, program.graph_signature, program.state_dict, program.constants, spec, example)


def _check(program: torch.export.ExportedProgram) -> None:
    for node in _written(program.graph):
        raise CannotRun(f"{users_line(node)} writes into an input or a buffer, in a model with conditions on values")
    for taken in program.graph.find_nodes(op="get_attr"):
        raise CannotRun(f"the model has conditions on values and calls a higher-order operator ({taken.target})")
    kinds = {spec.kind for spec in program.graph_signature.input_specs} - {*TAKEN}
    kinds |= {spec.kind for spec in program.graph_signature.output_specs} - {OutputKind.USER_OUTPUT}
    if kinds:
        raise CannotRun(f"the model has conditions on values and a {min(kind.name for kind in kinds)}")


def _written(graph: torch.fx.Graph) -> Iterator[Node]:
    """Yield the calls that write into memory of an input."""
    given = [value for node in graph.find_nodes(op="placeholder") if isinstance(value := node.meta.get("val"), torch.Tensor)]
    memory = {storage(value) for value in given}
    for node in graph.nodes:
        changed = written_arguments(node) if node.op == "call_function" else []
        if any(storage(argument.meta["val"]) in memory for argument in changed):
            yield node


class _Copied:
    """The copy of a graph."""

    def __init__(self, program: torch.export.ExportedProgram, symbols: Mapping[sympy.Symbol, sympy.Symbol], environment: ShapeEnv) -> None:
        self._symbols, self._environment = symbols, environment
        self._made: dict[Node, Any] = {}
        self.graph = torch.fx.Graph()
        for node in program.graph.nodes:
            if node.op == "placeholder":
                self._made[node] = self._placed(node)
            elif node.op == "output":
                self.graph.output(tuple(self._given(node.args[0])))
            elif node.target not in NO_OUTPUT:
                self._made[node] = self._expression(node.meta["val"]) if _is_a_number(node) else self._called(node)

    def _placed(self, node: Node) -> Node:
        made = self.graph.placeholder(node.name)
        made.name = made.target = node.name
        made.meta["val"] = self._described(node.meta.get("val"))
        return made

    def _called(self, node: Node) -> Any:
        """What a call gives to others: of one that reads a number, that."""
        made = self.graph.create_node("call_function", node.target, self._given(node.args), self._given(node.kwargs), name=node.name)
        value = pytree.tree_map(self._read if node.target in READS else self._described, node.meta.get("val"))
        made.meta.update(node.meta, val=value, stack_trace=_frame(node))
        return self._expression(node.meta["val"]) if node.target in READS else made

    def _read(self, value: Any) -> Any:
        """A number that is read of a tensor, as one of an environment in which no test says what it is."""
        found, environment = self._expression(value), self._environment
        if isinstance(value, torch.SymBool):
            return environment.create_symboolnode(found)
        made = environment.create_symfloatnode if isinstance(value, torch.SymFloat) else environment.create_symintnode
        return made(found, hint=None)

    def _given(self, arguments: Any) -> Any:
        return torch.fx.node.map_aggregate(arguments, lambda leaf: self._made[leaf] if isinstance(leaf, Node) else leaf)

    def _described(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return Described.of([self._expression(size) for size in value.shape], value.dtype, storage(value))
        return value

    def _expression(self, number: Any) -> Any:
        """A number of torch's as an expression. One that values decide keeps its name, also where a test says what it is."""
        if not isinstance(number, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return number
        raw = number.node._expr
        found = raw if free_unbacked_symbols(raw) else expression(number)
        if not isinstance(found, sympy.Basic):
            return found
        if other := found.free_symbols - free_unbacked_symbols(found) - set(self._symbols):
            raise CannotRun(f"the model has conditions on values and a size that belongs to no named axis ({min(map(str, other))})")
        found = found.subs(self._symbols)
        return int(found) if isinstance(found, sympy.Integer) else found


def _frame(node: Node) -> str:
    """The innermost frame outside torch, as runs note one."""
    frames = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    found = (line for line in reversed(frames) if (frame := FRAME.match(line)) is not None and not is_within_torch(frame["path"]))
    return next(found, "")


def _is_a_number(node: Node) -> bool:
    return isinstance(node.meta.get("val"), SYMBOLIC) and node.target not in READS
