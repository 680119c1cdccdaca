"""Paths as one program: what they share once, and at each test that they answer otherwise a `cond` with a graph for each side."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import sympy
import torch
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec
from torch.utils import _pytree as pytree

from ....build.values import Size, at_sizes, expression
from ....errors import first_sentence
from ..lines import line_in
from ..notes import alike, equal
from ..program import Described, RunProgram, argument_of
from ..refusal import CannotRun
from ..sample import Axes, environment_of
from ..script import TEST
from .paths import Path
from .scope import Inner, Node, Scope, is_wanted

aten = torch.ops.aten
SIZE = (int, sympy.Basic)


class Joined:
    """The program of all paths of a module.

    Args:
        axes: that move.

    Attributes:
        branches: the lines of the tests whose both sides are in it.
        limits: the tests whose other side raises, and what.
    """

    def __init__(self, paths: Sequence[Path], axes: Axes) -> None:
        self.branches: dict[str, None] = {}
        self.limits: dict[str, None] = {}
        paths = sorted(paths, key=lambda path: len(path.axes.fixed))
        self._paths, self._axes = paths, axes
        self._untested = environment_of(axes.example, axes.names)  # that of the runs may hold two sizes to be equal by now
        self._calls = [[node for node in path.program.graph.nodes if node.op == "call_function"] for path in paths]
        self._nodes: list[dict[Node, Node]] = [{} for _ in paths]  # of a path, and what is the same in the program
        self._memory: list[dict[int, int]] = [{} for _ in paths]
        self._new = count()
        self._unnamed: dict[tuple[int, int], sympy.Symbol] = {}  # of a result, and the axis
        self._constants: dict[str, torch.Tensor] = {}
        self._specs: list[InputSpec] = []

    def program(self) -> RunProgram:
        """Return the program.

        Raises:
            CannotRun: sides return what no file can return of either, or all of them raise.
        """
        first = next((path for path in self._paths if path.ended is None), None)
        if first is None:
            raise CannotRun(f"the model raises an error for all values: {_raised(self._paths[0])}")
        if self._paths[0].axes.fixed:
            raise CannotRun(f"the model accepts only these sizes: {', '.join(path.axes.shown(path.axes.fixed) for path in self._paths)}")
        if len(self._paths) == 1:
            return first.program.without_dead_code(is_wanted)
        self._check_structure(first)
        root = Scope()
        self._place(root)
        results = self._results(root, range(len(self._paths)), 0)
        outputs = [OutputSpec(OutputKind.USER_OUTPUT, argument_of(result), None) for result in results]
        constants = {name: value for name, value in first.program.constants.items() if not name.startswith("lifted_tensor_")}
        module = root.finished(results)
        for part in module.modules():
            if isinstance(part, torch.fx.GraphModule):
                part.meta.update(first.program.graph_module.meta)
        return replace(
            first.program,
            graph_module=module,
            graph_signature=ExportGraphSignature(self._specs, outputs),
            constants=constants | self._constants,
        )

    def _check_structure(self, first: Path) -> None:
        for path in self._paths:
            if path.ended is None and path.program.call_spec.out_spec != first.program.call_spec.out_spec:
                told = ", but ".join(map(_structure, (first, path)))
                raise CannotRun(f"the branches of the model return different structures: {told}")

    def _place(self, root: Scope) -> None:
        """Place the inputs of all paths: state, constants, and last what the caller gives."""
        for wanted in (_is_state, _is_constant, _is_input):
            for number, path in enumerate(self._paths):
                specs = {spec.arg.name: spec for spec in path.program.graph_signature.input_specs}
                for node in path.program.graph.find_nodes(op="placeholder"):
                    if wanted(specs[node.name]):
                        self._place_one(root, number, node, specs[node.name])

    def _place_one(self, root: Scope, path: int, node: Node, spec: InputSpec) -> None:
        name, target = node.name, spec.target
        if _is_constant(spec):
            value = self._paths[path].program.constants[str(spec.target)]
            known = (name for name, other in self._constants.items() if equal(value, other))
            target = next(known, f"lifted_tensor_{len(self._constants)}")
            self._constants.setdefault(target, value)
            name = f"c_{target}"
        same = next((other for other in root.graph.nodes if other.name == name), None)
        if same is None:
            same = root.graph.placeholder(name)
            same.name = same.target = name
            same.meta["val"] = self._described([path], [node.meta["val"]])
            self._specs.append(replace(spec, arg=replace(spec.arg, name=name), target=target))
        elif isinstance(same.meta["val"], Described):
            self._memory[path][node.meta["val"].memory] = same.meta["val"].memory
        self._nodes[path][node] = same

    def _described(self, paths: Sequence[int], values: Sequence[Any]) -> Any:
        """What the first of these values says, in memory of the program that is the same for all of them."""
        first = values[0]
        if isinstance(first, (list, tuple)):
            return [self._described(paths, parts) for parts in zip(*values, strict=True)]
        if not isinstance(first, Described):
            return first
        memory = self._memory[paths[0]].setdefault(first.memory, next(self._new))
        for path, value in zip(paths, values, strict=True):
            if self._memory[path].setdefault(value.memory, memory) != memory:
                raise CannotRun("the tensors that share memory are not the same in two runs")
        return Described.of(first.sizes, first.dtype, memory)

    def _results(self, scope: Scope, paths: Sequence[int], at: int) -> list[Any]:
        """Write the calls of these paths, which are the same up to here, from this one on; return what they return."""
        while any(at < len(self._calls[path]) for path in paths):
            nodes = [self._calls[path][at] if at < len(self._calls[path]) else None for path in paths]
            calls = [node and self._call(path, node) for path, node in zip(paths, nodes, strict=True)]
            if not all(_same(calls[0], call) for call in calls[1:]):
                return self._by_size(scope, paths, at)
            called = [node for node in nodes if node is not None]
            at += 1
            if called[0].target is not TEST:
                self._write(scope, paths, called)
                continue
            sides = [[path for path, node in zip(paths, called, strict=True) if node.meta["val"] is answer] for answer in (True, False)]
            condition = partial(self._truth, scope, paths[0], called[0])
            return self._either(scope, sides, line_in(called[0].meta["stack_trace"]), condition, at, self._agreed_by_value)
        told = [self._returned(path) for path in paths]
        if not all(len(told[0]) == len(other) and all(map(alike, told[0], other)) for other in told[1:]):
            return self._by_size(scope, paths, at)
        return told[0]

    def _returned(self, path: int) -> list[Any]:
        outputs: Any = self._paths[path].program.graph.output_node().args[0]
        return [self._nodes[path][result] if isinstance(result, Node) else result for result in outputs]

    def _by_size(self, scope: Scope, paths: Sequence[int], at: int) -> list[Any]:
        """Write the first test of a size that tells these paths apart, with its two sides; return what they return."""
        tests = zip(*(self._paths[path].sizes for path in paths), strict=False)
        place, held = next(((i, found) for i, found in enumerate(tests) if len({holds for _, holds in found}) == 2), (0, ()))
        if not held:
            at = min(at, *(len(self._calls[path]) - 1 for path in paths))
            where = {line_in(self._calls[path][at].meta.get("stack_trace", "")) for path in paths}
            raise CannotRun(f"two runs call different operators at {' or '.join(sorted(where))}, and no condition on a value explains it")
        test = held[0][0]
        sides = [[path for path in paths if self._paths[path].sizes[place][1] is answer] for answer in (True, False)]
        return self._either(scope, sides, test.line, partial(self._size_truth, scope, test.test), at, self._agreed_by_size)

    def _call(self, path: int, node: Node) -> Any:
        leaves, spec = pytree.tree_flatten((node.args, dict(node.kwargs)))
        told = [self._told(path, leaf) if isinstance(leaf, Node) else leaf for leaf in leaves]
        return node.target, told, spec, [_kind_of(value) for value in pytree.tree_leaves(node.meta["val"]) if isinstance(value, Described)]

    def _told(self, path: int, node: Node) -> Any:
        if node.op == "get_attr":
            return Inner(self._paths[path].program.graph_module.get_submodule(str(node.target)))
        return self._nodes[path][node]

    def _write(self, scope: Scope, paths: Sequence[int], nodes: Sequence[Node]) -> None:
        _, leaves, spec, _ = self._call(paths[0], nodes[0])
        value = self._described(paths, [node.meta["val"] for node in nodes])
        if nodes[0].target is operator.getitem:
            made = scope.part(leaves[0], leaves[1], nodes[0], value)
        else:
            args, kwargs = pytree.tree_unflatten([scope.taken(leaf) for leaf in leaves], spec)
            made = scope.graph.create_node("call_function", nodes[0].target, args, kwargs, name=nodes[0].name)
            made.meta.update(nodes[0].meta, val=value)
        for path, node in zip(paths, nodes, strict=True):
            self._nodes[path][node] = made

    def _either(
        self, scope: Scope, sides: Sequence[Sequence[int]], line: str, condition: Callable[[], Node], at: int, agreed_by: Callable[..., Any]
    ) -> list[Any]:
        """Write a test with its two sides; return what they return. A side that only raises is a limit."""
        alive = [[path for path in side if self._paths[path].ended is None] for side in sides]
        if not all(alive):
            taken, left = (0, 1) if alive[0] else (1, 0)
            self.limits.update(dict.fromkeys(f"{line}: {_raised(self._paths[path])}" for path in sides[left]))
            return self._results(scope, sides[taken], at)
        self.branches[line] = None
        inner = Scope(scope), Scope(scope)
        told = [self._results(side, taken, at) for side, taken in zip(inner, sides, strict=True)]
        agreed = [agreed_by(number, pair, alive, line) for number, pair in enumerate(zip(*told, strict=True))]
        tensors = [number for number, result in enumerate(agreed) if isinstance(result, Described)]
        results = [[side.here(given[number]) for number in tensors] for side, given in zip(inner, told, strict=True)]
        outer = list(dict.fromkeys(node for side in inner for node in side.inside))
        modules = [side.closed(outer, given) for side, given in zip(inner, results, strict=True)]
        values = [self._fresh(agreed[number]) for number in tensors]
        parts = iter(_cond(scope, condition(), modules, outer, values) if tensors else ())
        return [next(parts) if isinstance(result, Described) else _again(scope, result) for result in agreed]

    def _truth(self, scope: Scope, path: int, test: Node) -> Node:
        """The tensor that is tested, as truth."""
        tested = scope.here(self._nodes[path][test.all_input_nodes[0]])
        if tested.meta["val"].dtype == torch.bool:
            return tested
        made = scope.graph.call_function(aten.ne.Scalar, (tested, 0))
        made.meta.update(test.meta, val=Described.of(tested.meta["val"].sizes, torch.bool, next(self._new)))
        return made

    def _size_truth(self, scope: Scope, test: sympy.Basic) -> Node:
        if isinstance(test, sympy.Symbol):
            return self._some(scope, test)
        for symbol in self._axes.fresh.among(test):
            self._untested.add_fresh(symbol, self._axes.fresh.range_of(symbol)[0])
        made = scope.graph.call_function(operator.truth, (test,))
        made.meta["val"] = self._untested.create_symboolnode(test)
        return made

    def _some(self, scope: Scope, size: sympy.Symbol) -> Node:
        """Whether a size is not 0, as a tensor: the symbols of sizes are positive."""
        count = scope.graph.call_function(aten.scalar_tensor.default, (size,), {"dtype": torch.int64})
        count.meta["val"] = Described.of((), torch.int64, next(self._new))
        made = scope.graph.call_function(aten.gt.Scalar, (count, 0))
        made.meta["val"] = Described.of((), torch.bool, next(self._new))
        return made

    def _agreed_by_size(self, number: int, pair: Sequence[Any], sides: Sequence[Sequence[int]], line: str) -> Any:
        """Return what describes a result of two sides that a test of sizes tells apart; a size that no expression is gets a name.

        Raises:
            CannotRun: they differ in more than their sizes.
        """
        kinds = [_kind(result) for result in pair]
        if not all(map(_is_tensor, pair)) or kinds[0][0] is not kinds[1][0] or len(kinds[0][1]) != len(kinds[1][1]):
            return self._agreed(number, pair, sides, line)
        sizes = [self._size_of_either(number, axis, [*sides[0], *sides[1]]) for axis in range(len(kinds[0][1]))]
        return Described.of(tuple(sizes), kinds[0][0], next(self._new))

    def _size_of_either(self, number: int, axis: int, paths: Sequence[int]) -> Size:
        """Return the expression of some path that is the size of an axis of a result on all of these; else a symbol of its own."""
        told = {path: _sizes_returned(found, number) for path, found in enumerate(self._paths) if found.ended is None}
        sizes = {path: of_axes[axis] for path, of_axes in told.items() if axis < len(of_axes)}
        for size in dict.fromkeys(sizes.values()):
            if all(_gives(size, sizes[path], self._paths[path].axes) for path in paths):
                return size
        if (number, axis) not in self._unnamed:
            names = (name for n in count() if (name := f"u{n}") not in self._names())
            self._unnamed[number, axis] = sympy.Symbol(next(names), integer=True, nonnegative=True)
        return self._unnamed[number, axis]

    def _names(self) -> set[str]:
        """All names of sizes and numbers."""
        nodes = (node for path in self._paths for node in path.program.graph.nodes)
        decided = (str(symbol) for node in nodes for symbol in node.meta.get("unbacked_bindings") or ())
        return {*self._axes.names.values(), *map(str, self._unnamed.values()), *decided, *self._axes.fresh.names.values()}

    def _agreed(self, number: int, pair: Sequence[Any], sides: Sequence[Sequence[int]], line: str) -> Any:
        """Return which of the results of two sides describes both.

        Raises:
            CannotRun: neither does, so that one output of a file cannot be either.
        """
        one, other = map(_kind, pair)
        axes = [[self._paths[path].axes for path in side] for side in sides]
        if alike(one, other):
            return _what_it_is(pair[0])
        if isinstance(pair[1], Node) and all(_gives(other, one, at) for at in axes[0]):
            return _what_it_is(pair[1])
        if isinstance(pair[0], Node) and all(_gives(one, other, at) for at in axes[1]):
            return _what_it_is(pair[0])
        told = ", but ".join(f"{self._shown(result)}{_where(result)}" for result in pair)
        raise CannotRun(f"the branches of the condition at {line} return results that cannot be one output: {told}")

    def _shown(self, result: Any) -> str:
        if not isinstance(result, Node):
            return repr(result)
        kind = _kind(result)
        if not isinstance(kind, tuple):
            return self._axes.said(kind)
        return f"{self._axes.said(kind[1])} of {kind[0]}"

    def _agreed_by_value(self, number: int, pair: Sequence[Any], sides: Sequence[Sequence[int]], line: str) -> Any:
        """Return what describes a result of two sides, one of which may be as long as values say. Raises what those two raise."""
        sizes = [size for result in pair if _is_tensor(result) for size in result.meta["val"].sizes]
        decided = any(size in self._unnamed.values() or self._axes.fresh.among(size) for size in sizes)
        return (self._agreed_by_size if decided else self._agreed)(number, pair, sides, line)

    def _fresh(self, value: Described) -> Described:
        return Described.of(value.sizes, value.dtype, next(self._new))


def _cond(
    scope: Scope, condition: Node, sides: Sequence[torch.fx.GraphModule], outer: Sequence[Node], values: Sequence[Described]
) -> list[Node]:
    names = [f"side_{len(list(scope.modules.children())) + number}" for number in range(2)]
    for name, side in zip(names, sides, strict=True):
        scope.modules.add_module(name, side)
    gets = [scope.graph.get_attr(name) for name in names]
    made = scope.graph.call_function(torch.ops.higher_order.cond, (condition, *gets, tuple(outer)))
    made.meta.update(condition.meta, val=list(values))
    return [scope.part(made, number, made, value) for number, value in enumerate(values)]


def _same(one: Any, other: Any) -> bool:
    """Whether two calls are of the same operator with the same arguments."""
    if one is None or other is None:
        return one is other
    return one[0] is other[0] and one[2:] == other[2:] and all(map(alike, one[1], other[1]))


def _again(scope: Scope, result: Any) -> Any:
    """A result that is the same on both sides: a constant, or a size."""
    if not isinstance(result, Node):
        return result
    made = scope.graph.call_function(operator.index, result.args)
    made.meta.update(result.meta)
    return made


def _is_tensor(result: Any) -> bool:
    return isinstance(result, Node) and isinstance(result.meta["val"], Described)


def _what_it_is(result: Any) -> Any:
    return result.meta["val"] if _is_tensor(result) else result


def _sizes_returned(path: Path, number: int) -> tuple[Size, ...]:
    outputs: Any = path.program.graph.output_node().args[0]
    return outputs[number].meta["val"].sizes if _is_tensor(outputs[number]) else ()


def _kind(result: Any) -> Any:
    if not isinstance(result, Node):
        return result
    value = result.meta["val"]
    return _kind_of(value) if isinstance(value, Described) else expression(value)


def _kind_of(value: Described) -> tuple[torch.dtype, tuple[Size, ...]]:
    return value.dtype, value.sizes


def _gives(general: Any, special: Any, axes: Axes) -> bool:
    """Whether a description is right at some sizes as well, where another one is."""
    if not any(isinstance(general, kind) and isinstance(special, kind) for kind in (tuple, SIZE)):
        return False
    if isinstance(general, tuple):
        alike_axes = general[0] is special[0] and len(general[1]) == len(special[1])
        return alike_axes and all(_gives(*pair, axes) for pair in zip(general[1], special[1], strict=True))
    one, other = (sympy.sympify(size).subs(dict(axes.fixed)) for size in (general, special))
    symbols = one.free_symbols | other.free_symbols
    if one == other or len(symbols) != 1 or not symbols <= set(axes.example) or not axes.conditions:
        return bool(one == other)
    (symbol,) = symbols
    return all(_alike_at({symbol: size}, one, other) for size in axes.allowed(symbol))


def _alike_at(sizes: Mapping[sympy.Symbol, int], one: sympy.Basic, other: sympy.Basic) -> bool:
    found = at_sizes(one, sizes)
    return found is not sympy.nan and found == at_sizes(other, sizes)


def _where(result: Any) -> str:
    trace = result.meta.get("stack_trace") if isinstance(result, Node) else None
    return f" at {line_in(trace)}" if trace else ""


def _structure(path: Path) -> str:
    """What a path returns, and after which line."""
    traces = [node.meta["stack_trace"] for node in path.program.graph.nodes if "stack_trace" in node.meta]
    return " ".join([*str(path.program.call_spec.out_spec).split(), *(f"after {line_in(trace)}" for trace in traces[-1:])])


def _raised(path: Path) -> str:
    assert path.ended is not None
    return f"{type(path.ended).__name__}: {first_sentence(path.ended)}"


def _is_state(spec: InputSpec) -> bool:
    return spec.kind in (InputKind.PARAMETER, InputKind.BUFFER)


def _is_constant(spec: InputSpec) -> bool:
    return spec.kind == InputKind.CONSTANT_TENSOR


def _is_input(spec: InputSpec) -> bool:
    return spec.kind == InputKind.USER_INPUT
