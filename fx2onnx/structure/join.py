"""Merge paths into one program: common calls once, and a `cond` with a graph per branch where outcomes differ."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

import sympy
import torch
from torch.export.graph_signature import ExportGraphSignature, InputSpec, OutputKind, OutputSpec

from ..compat import trees as pytree
from ..errors import first_sentence
from ..ir.captured_program import RunProgram, SymbolicMeta, argument_of, is_constant, is_input, is_state
from ..ir.expressions import Size
from ..trace.events import alike
from ..trace.refusal import TraceUnsupported
from ..trace.size_domain import SizeDomain, environment_of
from ..trace.source_location import line_in
from .path_events import Event, PathEvents, Use, are_equal_sizes, gives, kind_of
from .path_insertion import Insertion
from .path_tree import Block, Call, Fork, Tree
from .paths_of_values import Path
from .phi import Phi, Phis, Value
from .scope import Node, Scope, is_wanted
from .stale_reads import first_stale

aten = torch.ops.aten


class PathMerger:
    """The program of all paths of a module.

    Args:
        axes: the dynamic axes.

    Attributes:
        branches: the lines of the tests of which both branches are in the program.
        limits: the tests of which one branch raises, with the error.
    """

    def __init__(self, paths: Sequence[Path], axes: SizeDomain) -> None:
        self.branches: dict[str, None] = {}
        self.limits: dict[str, None] = {}
        self._paths = [path for path in paths if path.exception is None]
        self._ended = [path for path in paths if path.exception is not None]
        self._axes = axes
        self._untested = environment_of(axes.example, axes.names)  # the environment of the runs may have made two sizes equal
        self._made: dict[Call, Node] = {}
        self._outputs: dict[Fork, list[Node]] = {}
        self._inputs: dict[str, Node] = {}
        self._memory: dict[tuple[int, int], int] = {}  # the memory in the program of what a call of a path creates
        self._new = count()
        self._constants: dict[str, torch.Tensor] = {}
        self._unnamed = count()
        self._specs: list[InputSpec] = []

    def program(self) -> RunProgram:
        """Return the program.

        Raises:
            TraceUnsupported: If branches return results that cannot be merged, or if all of them raise.
        """
        if not self._paths:
            raise TraceUnsupported(f"the model raises an error for all values: {_format_exception(self._ended[0])}")
        general = min((*self._paths, *self._ended), key=lambda path: len(path.axes.fixed))
        if general.axes.fixed:
            sizes = ", ".join(path.axes.format_setting(path.axes.fixed) for path in self._paths)
            raise TraceUnsupported(f"the model accepts only these sizes: {sizes}")
        first = min(self._paths, key=lambda path: (path.is_probe, len(path.axes.fixed)))
        self._note_limits()
        if len(self._paths) == 1:
            return first.program.eliminate_dead_code(is_wanted)
        self._check_structure(first)
        self._tree, self._phis = self._merge_paths()
        root = Scope()
        self._place(root)
        self._write(root, self._tree.root)
        results = [self._result(root, number) for number in range(len(self._tree.lines[0].outputs))]
        outputs = [OutputSpec(OutputKind.USER_OUTPUT, argument_of(result), None) for result in results]
        constants = {name: value for name, value in first.program.constants.items() if not name.startswith("lifted_tensor_")}
        module = root.finish(results)
        for part in module.modules():
            if isinstance(part, torch.fx.GraphModule):
                part.meta.update(first.program.graph_module.meta)
        return replace(
            first.program,
            graph_module=module,
            graph_signature=ExportGraphSignature(self._specs, outputs),
            constants=constants | self._constants,
        )

    def _merge_paths(self) -> tuple[Tree, Phis]:
        """The merged paths, which join again if that explains all of them.

        Raises:
            TraceUnsupported: If tests do not explain them.
        """
        with suppress(TraceUnsupported):
            return self._build_tree(True)
        return self._build_tree(False)

    def _build_tree(self, joins: bool) -> tuple[Tree, Phis]:
        tree = Tree(joins)
        for number, path in enumerate(self._paths):
            Insertion(tree).insert(number, PathEvents(path, self._constants))
        while (stale := first_stale(tree, phis := self._phis_of(tree))) is not None:
            tree.widen(*stale)
        self._check_closed(tree)
        if tree.find_probed_paths():
            raise TraceUnsupported("a part of the model occurs in one run only")
        return tree, phis

    def _phis_of(self, tree: Tree) -> Phis:
        phis = Phis(tree)
        if phis.missing:
            raise TraceUnsupported("two runs of the model call the same operators with other tensors, and no condition explains it")
        return phis

    def _check_closed(self, tree: Tree) -> None:
        """Refuse a test of which one branch is known and the other did not raise."""
        for test in tree.one_sided():
            line, number = tree.lines[test.chosen], test.events[test.chosen]
            other = (*line.answers_before(number), not line.events[number].answer)
            if not any(path.answers[: len(other)] == other for path in self._ended):
                raise TraceUnsupported(
                    f"one branch of the condition at {line_in(line.events[number].node.meta['stack_trace'])} was not run"
                )

    def _note_limits(self) -> None:
        """Record the tests of which one branch only raises: for each path that raises, its first outcome that no other path has."""
        alive = [_decisions(path) for path in self._paths]
        found = []
        for path in self._ended:
            own = _decisions(path)
            place = max((_count_shared(own, other) for other in alive), default=0)
            if place < len(own):
                found.append((place, f"{own[place][0]}: {_format_exception(path)}"))
        self.limits.update(dict.fromkeys(limit for _, limit in sorted(found, key=lambda pair: pair[0])))

    def _check_structure(self, first: Path) -> None:
        for path in self._paths:
            if path.exception is None and path.program.call_spec.out_spec != first.program.call_spec.out_spec:
                structures = ", but ".join(map(_structure, (first, path)))
                raise TraceUnsupported(f"the branches of the model return different structures: {structures}")

    def _place(self, root: Scope) -> None:
        """Add the inputs of all paths: state, constants, and then the arguments."""
        lines = sorted(self._tree.lines.values(), key=lambda line: len(line.axes.fixed))
        for wanted in (is_state, is_constant, is_input):
            for line in lines:
                specs = {spec.arg.name: spec for spec in line.path.program.graph_signature.input_specs}
                for name, node in line.inputs.items():
                    if wanted(specs[node.name]) and name not in self._inputs:
                        self._place_one(root, name, node, specs[node.name])

    def _place_one(self, root: Scope, name: str, node: Node, spec: InputSpec) -> None:
        placeholder = self._inputs[name] = root.graph.placeholder(name)
        placeholder.name = placeholder.target = name
        value = node.meta["val"]
        placeholder.meta["val"] = self._fresh(value) if isinstance(value, SymbolicMeta) else value
        target = name.removeprefix("c_") if is_constant(spec) else spec.target
        self._specs.append(replace(spec, arg=replace(spec.arg, name=name), target=target))

    def _write(self, scope: Scope, block: Block) -> None:
        """Write the calls and the forks of a block."""
        for item in block:
            if isinstance(item, Fork):
                self._write_fork(scope, item)
            elif not self._tree.is_branch(item):
                self._write_call(scope, item)

    def _write_call(self, scope: Scope, call: Call) -> None:
        event = self._tree.event(call)
        values = self._phis.leaves.get(call, {})
        nodes = {place: self._node(scope, value) for place, value in values.items()}
        leaves = [nodes[place] if place in nodes else scope.map_argument(leaf) for place, leaf in enumerate(event.leaves)]
        args, kwargs = pytree.tree_unflatten(leaves, event.spec)
        node = scope.graph.create_node("call_function", event.target, args, kwargs, name=event.node.name)
        node.meta.update(event.node.meta, val=self._merge_meta(call, event, nodes))
        self._made[call] = node

    def _merge_meta(self, call: Call, event: Event, nodes: Mapping[int, Node]) -> Any:
        """The metadata of a result, in the memory of the input that it aliases, or in new memory."""
        line = self._tree.lines[call.chosen]
        shown = {line.memory(use): nodes[place].meta["val"].memory for place, use in event.uses if line.memory(use) is not None}

        def described(value: Any) -> Any:
            if not isinstance(value, SymbolicMeta):
                return value
            memory = shown[value.memory] if value.memory in shown else self._memory.setdefault((id(call), value.memory), next(self._new))
            return SymbolicMeta.of(value.sizes, value.dtype, memory)

        return pytree.tree_map(described, event.node.meta.get("val"))

    def _node(self, scope: Scope, value: Value) -> Node:
        """Return a tensor as a node of this graph."""
        if isinstance(value, Phi):
            return scope.here(self._outputs[value.fork][value.number])
        found = self._made[value.by] if isinstance(value.by, Call) else self._inputs[value.by]
        for key in value.part:
            found = scope.part(found, key, found, found.meta["val"][key])
        return scope.here(found)

    def _write_fork(self, scope: Scope, fork: Fork) -> None:
        """Write a test with its two branches."""
        self.branches[self._line(fork)] = None
        inner = {answer: Scope(scope) for answer in (True, False)}
        for answer, side in inner.items():
            self._write(side, fork.arms[answer])
        if not fork.phis:
            self._outputs[fork] = []
            return
        results = [[self._node(side, pair[0 if answer else 1]) for pair in fork.phis] for answer, side in inner.items()]
        values = [self._merge_outputs(fork, pair, nodes) for pair, *nodes in zip(fork.phis, *results, strict=True)]
        outer = list(dict.fromkeys(node for side in inner.values() for node in side.inside))
        modules = [side.close_over(outer, given) for side, given in zip(inner.values(), results, strict=True)]
        stack = {} if fork.asks is None else {"nn_module_stack": self._find_test_event(fork)[1].node.meta.get("nn_module_stack")}
        self._outputs[fork] = _cond(scope, self._condition(scope, fork), modules, outer, values, stack)

    def _line(self, fork: Fork) -> str:
        return fork.test.line if fork.test is not None else line_in(self._find_test_event(fork)[1].node.meta["stack_trace"])

    def _find_test_event(self, fork: Fork) -> tuple[Call, Event]:
        assert fork.asks is not None
        return fork.asks, self._tree.event(fork.asks)

    def _condition(self, scope: Scope, fork: Fork) -> Node:
        if fork.test is not None:
            return self._size_truth(scope, fork.test.test)
        asks, event = self._find_test_event(fork)
        return self._truth(scope, self._node(scope, self._phis.leaves[asks][0]), event.node)

    def _merge_outputs(self, fork: Fork, pair: tuple[Any, Any], nodes: Sequence[Node]) -> SymbolicMeta:
        """Return the metadata of an output of a fork; a size without a common expression gets a new symbol.

        Raises:
            TraceUnsupported: If the tensors of both branches cannot be one output.
        """
        kinds = {path: kind for path in self._tree.lines if (kind := self._kind_on(pair, fork, path)) is not None}
        for kind in dict.fromkeys((*map(kind_of, (node.meta["val"] for node in nodes)), *kinds.values())):
            if all(kind == other or gives(kind, other, self._tree.lines[path].axes) for path, other in kinds.items()):
                return SymbolicMeta.of(kind[1], kind[0], next(self._new))
        one, *others = kinds.items()
        if any(not self._may_differ(*one, *other) for other in others):
            raise _error(self._line(fork), [f"{self._format_result(node)}{_where(node)}" for node in nodes])
        sizes = zip(*(kind[1] for kind in kinds.values()), strict=True)
        return SymbolicMeta.of([self._size_of_either(dict(zip(kinds, axis, strict=True))) for axis in sizes], one[1][0], next(self._new))

    def _kind_on(self, pair: tuple[Any, Any], fork: Fork, path: int) -> Any:
        """The dtype and sizes of an output of a fork on one path; None if the path does not reach it."""
        answer = self._tree.answer(fork, path)
        definition = None if answer is None else self._phis.on(pair[0 if answer else 1], path)
        if definition is None or (isinstance(definition.by, Call) and path not in definition.by.events):
            return None
        source = definition.by.events[path] if isinstance(definition.by, Call) else definition.by
        return kind_of(self._tree.lines[path].value(Use(source, definition.part)))

    def _may_differ(self, path: int, kind: Any, other: int, another: Any) -> bool:
        """Whether two tensors may be one output: equal dtype and rank, with other sizes only if sizes or values decide the branch."""
        if kind[0] is not another[0] or len(kind[1]) != len(another[1]):
            return False
        if kind == another or any(self._axes.fresh.among(size) for size in (*kind[1], *another[1])):
            return True
        return self._tree.lines[path].path.sizes != self._tree.lines[other].path.sizes

    def _size_of_either(self, sizes: Mapping[int, Size]) -> Size:
        """Return the expression of some path that matches the size on all of these, or a new symbol."""
        for size in dict.fromkeys(sizes.values()):
            if all(are_equal_sizes(size, other, self._tree.lines[path].axes) for path, other in sizes.items()):
                return size
        name = next(name for n in self._unnamed if (name := f"u{n}") not in self._names())
        return sympy.Symbol(name, integer=True, nonnegative=True)

    def _names(self) -> set[str]:
        """All names of sizes and numbers."""
        nodes = (node for path in self._paths for node in path.program.graph.nodes)
        decided = (str(symbol) for node in nodes for symbol in node.meta.get("unbacked_bindings") or ())
        return {*self._axes.names.values(), *decided, *self._axes.fresh.names.values()}

    def _result(self, root: Scope, number: int) -> Any:
        """Return a result of the model.

        Raises:
            TraceUnsupported: If the results of the paths cannot be one output.
        """
        if number in self._phis.results:
            return self._node(root, self._phis.results[number])
        outputs = {path: line.outputs[number] for path, line in self._tree.lines.items()}
        for path, result in outputs.items():
            if all(alike(result, other) or gives(result, other, self._tree.lines[at].axes) for at, other in outputs.items()):
                return _again(root, self._collect_outputs(path, number))
        other = next(path for path in outputs if not alike(outputs[0], outputs[path]))
        decisions = {path: _decisions(self._paths[path]) for path in (0, other)}
        place = _count_shared(*decisions.values())
        pair = sorted(decisions, key=lambda path: not decisions[path][place][2])
        shown = [f"{self._format_result(result)}{_where(result)}" for result in (self._collect_outputs(path, number) for path in pair)]
        raise _error(decisions[0][place][0], shown)

    def _collect_outputs(self, path: int, number: int) -> Any:
        outputs: Any = self._paths[path].program.graph.output_node().args[0]
        return outputs[number]

    def _truth(self, scope: Scope, tested: Node, test: Node) -> Node:
        """The tested tensor as a boolean."""
        if tested.meta["val"].dtype == torch.bool:
            return tested
        node = scope.graph.call_function(aten.ne.Scalar, (tested, 0))
        node.meta.update(test.meta, val=SymbolicMeta.of(tested.meta["val"].sizes, torch.bool, next(self._new)))
        return node

    def _size_truth(self, scope: Scope, test: sympy.Basic) -> Node:
        if isinstance(test, sympy.Symbol):
            return self._some(scope, test)
        for symbol in self._axes.fresh.among(test):
            self._untested.add_fresh(symbol, self._axes.fresh.range_of(symbol)[0])
        node = scope.graph.call_function(operator.truth, (test,))
        node.meta["val"] = self._untested.create_symboolnode(test)
        return node

    def _some(self, scope: Scope, size: sympy.Symbol) -> Node:
        """Whether a size is not 0, as a tensor, because the symbols of sizes are positive."""
        count = scope.graph.call_function(aten.scalar_tensor.default, (size,), {"dtype": torch.int64})
        count.meta["val"] = SymbolicMeta.of((), torch.int64, next(self._new))
        node = scope.graph.call_function(aten.gt.Scalar, (count, 0))
        node.meta["val"] = SymbolicMeta.of((), torch.bool, next(self._new))
        return node

    def _format_result(self, result: Any) -> str:
        if not isinstance(result, Node):
            return repr(result)
        kind = kind_of(result.meta["val"])
        if not isinstance(kind, tuple):
            return self._axes.format_size(kind)
        return f"{self._axes.format_size(kind[1])} of {kind[0]}"

    def _fresh(self, value: SymbolicMeta) -> SymbolicMeta:
        return SymbolicMeta.of(value.sizes, value.dtype, next(self._new))


def _cond(
    scope: Scope,
    condition: Node,
    sides: Sequence[torch.fx.GraphModule],
    outer: Sequence[Node],
    values: Sequence[SymbolicMeta],
    meta: dict[str, Any],
) -> list[Node]:
    names = [f"side_{len(list(scope.modules.children())) + number}" for number in range(2)]
    for name, side in zip(names, sides, strict=True):
        scope.modules.add_module(name, side)
    gets = [scope.graph.get_attr(name) for name in names]
    node = scope.graph.call_function(torch.ops.higher_order.cond, (condition, *gets, tuple(outer)))
    node.meta.update(condition.meta | meta, val=list(values))
    return [scope.part(node, number, node, value) for number, value in enumerate(values)]


def _error(line: str, shown: Sequence[str]) -> TraceUnsupported:
    both = ", but ".join(shown)
    return TraceUnsupported(f"the branches of the condition at {line} return results that cannot be one output: {both}")


def _again(scope: Scope, result: Any) -> Any:
    """A result that is the same in both branches: a constant or a size."""
    if not isinstance(result, Node):
        return result
    node = scope.graph.call_function(operator.index, result.args)
    node.meta.update(result.meta)
    return node


def _decisions(path: Path) -> list[tuple[str, Any, bool]]:
    """The line of each test on a path, its expression if it is on sizes, and the outcome."""
    values = [(line_in(node.meta["stack_trace"]), None, node.meta["val"]) for node in path.tests()]
    return [*((test.line, test.test, holds) for test, holds in path.sizes), *values]


def _count_shared(one: Sequence[Any], other: Sequence[Any]) -> int:
    """The number of common decisions at the start of two paths."""
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other)))


def _where(result: Any) -> str:
    trace = result.meta.get("stack_trace") if isinstance(result, Node) else None
    return f" at {line_in(trace)}" if trace else ""


def _structure(path: Path) -> str:
    """The structure of a path's results, and its last line."""
    traces = [node.meta["stack_trace"] for node in path.program.graph.nodes if "stack_trace" in node.meta]
    return " ".join([*str(path.program.call_spec.out_spec).split(), *(f"after {line_in(trace)}" for trace in traces[-1:])])


def _format_exception(path: Path) -> str:
    assert path.exception is not None
    return f"{type(path.exception).__name__}: {first_sentence(path.exception)}"
