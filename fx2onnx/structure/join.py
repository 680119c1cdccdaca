"""Paths as one program: what they share once, and at each test that they answer otherwise a `cond` with a graph for each side."""

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
from torch.utils import _pytree as pytree

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
        axes: that move.

    Attributes:
        branches: the lines of the tests whose both sides are in it.
        limits: the tests whose other side raises, and what.
    """

    def __init__(self, paths: Sequence[Path], axes: SizeDomain) -> None:
        self.branches: dict[str, None] = {}
        self.limits: dict[str, None] = {}
        self._paths = [path for path in paths if path.exception is None]
        self._ended = [path for path in paths if path.exception is not None]
        self._axes = axes
        self._untested = environment_of(axes.example, axes.names)  # that of the runs may hold two sizes to be equal by now
        self._made: dict[Call, Node] = {}
        self._outputs: dict[Fork, list[Node]] = {}
        self._inputs: dict[str, Node] = {}
        self._memory: dict[tuple[int, int], int] = {}  # of what a call of a path makes, and that in the program
        self._new = count()
        self._constants: dict[str, torch.Tensor] = {}
        self._unnamed = count()
        self._specs: list[InputSpec] = []

    def program(self) -> RunProgram:
        """Return the program.

        Raises:
            TraceUnsupported: sides return what no file can return of either, or all of them raise.
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
        """The paths as one program, where they join again if that explains all of them.

        Raises:
            TraceUnsupported: no tests explain them.
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
            raise TraceUnsupported("one run alone shows a part of the model")
        return tree, phis

    def _phis_of(self, tree: Tree) -> Phis:
        phis = Phis(tree)
        if phis.missing:
            raise TraceUnsupported("two runs of the model call the same operators with other tensors, and no condition explains it")
        return phis

    def _check_closed(self, tree: Tree) -> None:
        """Refuse a test of which one side is known and the other one was not seen to raise."""
        for test in tree.one_sided():
            line, number = tree.lines[test.chosen], test.events[test.chosen]
            other = (*line.answers_before(number), not line.events[number].answer)
            if not any(path.answers[: len(other)] == other for path in self._ended):
                raise TraceUnsupported(f"one side of the condition at {line_in(line.events[number].node.meta['stack_trace'])} was not run")

    def _note_limits(self) -> None:
        """Note the tests whose one side only raises: the first answer of each path that raises which no other path gives."""
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
                told = ", but ".join(map(_structure, (first, path)))
                raise TraceUnsupported(f"the branches of the model return different structures: {told}")

    def _place(self, root: Scope) -> None:
        """Place the inputs of all paths: state, constants, and last what the caller gives."""
        lines = sorted(self._tree.lines.values(), key=lambda line: len(line.axes.fixed))
        for wanted in (is_state, is_constant, is_input):
            for line in lines:
                specs = {spec.arg.name: spec for spec in line.path.program.graph_signature.input_specs}
                for name, node in line.inputs.items():
                    if wanted(specs[node.name]) and name not in self._inputs:
                        self._place_one(root, name, node, specs[node.name])

    def _place_one(self, root: Scope, name: str, node: Node, spec: InputSpec) -> None:
        made = self._inputs[name] = root.graph.placeholder(name)
        made.name = made.target = name
        value = node.meta["val"]
        made.meta["val"] = self._fresh(value) if isinstance(value, SymbolicMeta) else value
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
        made = scope.graph.create_node("call_function", event.target, args, kwargs, name=event.node.name)
        made.meta.update(event.node.meta, val=self._merge_meta(call, event, nodes))
        self._made[call] = made

    def _merge_meta(self, call: Call, event: Event, nodes: Mapping[int, Node]) -> Any:
        """What a call returns: in the memory of what it takes where it shows that, else in its own."""
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
        """Write a test with its two sides."""
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
        """Return what describes the tensors that the two sides of a fork give; a size that no expression is gets a name.

        Raises:
            TraceUnsupported: they cannot be one output.
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
        """Dtype and sizes of an output of a fork on one path; None if the path does not come there."""
        answer = self._tree.answer(fork, path)
        made = None if answer is None else self._phis.on(pair[0 if answer else 1], path)
        if made is None or (isinstance(made.by, Call) and path not in made.by.events):
            return None
        source = made.by.events[path] if isinstance(made.by, Call) else made.by
        return kind_of(self._tree.lines[path].value(Use(source, made.part)))

    def _may_differ(self, path: int, kind: Any, other: int, another: Any) -> bool:
        """Whether two tensors may be one output: of one dtype and as many axes, and of other sizes only where sizes or values say so."""
        if kind[0] is not another[0] or len(kind[1]) != len(another[1]):
            return False
        if kind == another or any(self._axes.fresh.among(size) for size in (*kind[1], *another[1])):
            return True
        return self._tree.lines[path].path.sizes != self._tree.lines[other].path.sizes

    def _size_of_either(self, sizes: Mapping[int, Size]) -> Size:
        """Return the expression of some path that is the size of an axis on all of these; else a symbol of its own."""
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
            TraceUnsupported: paths return what cannot be one output.
        """
        if number in self._phis.results:
            return self._node(root, self._phis.results[number])
        told = {path: line.outputs[number] for path, line in self._tree.lines.items()}
        for path, result in told.items():
            if all(alike(result, other) or gives(result, other, self._tree.lines[at].axes) for at, other in told.items()):
                return _again(root, self._collect_outputs(path, number))
        other = next(path for path in told if not alike(told[0], told[path]))
        decisions = {path: _decisions(self._paths[path]) for path in (0, other)}
        place = _count_shared(*decisions.values())
        pair = sorted(decisions, key=lambda path: not decisions[path][place][2])
        shown = [f"{self._format_result(result)}{_where(result)}" for result in (self._collect_outputs(path, number) for path in pair)]
        raise _error(decisions[0][place][0], shown)

    def _collect_outputs(self, path: int, number: int) -> Any:
        outputs: Any = self._paths[path].program.graph.output_node().args[0]
        return outputs[number]

    def _truth(self, scope: Scope, tested: Node, test: Node) -> Node:
        """The tensor that is tested, as truth."""
        if tested.meta["val"].dtype == torch.bool:
            return tested
        made = scope.graph.call_function(aten.ne.Scalar, (tested, 0))
        made.meta.update(test.meta, val=SymbolicMeta.of(tested.meta["val"].sizes, torch.bool, next(self._new)))
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
        count.meta["val"] = SymbolicMeta.of((), torch.int64, next(self._new))
        made = scope.graph.call_function(aten.gt.Scalar, (count, 0))
        made.meta["val"] = SymbolicMeta.of((), torch.bool, next(self._new))
        return made

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
    made = scope.graph.call_function(torch.ops.higher_order.cond, (condition, *gets, tuple(outer)))
    made.meta.update(condition.meta | meta, val=list(values))
    return [scope.part(made, number, made, value) for number, value in enumerate(values)]


def _error(line: str, shown: Sequence[str]) -> TraceUnsupported:
    told = ", but ".join(shown)
    return TraceUnsupported(f"the branches of the condition at {line} return results that cannot be one output: {told}")


def _again(scope: Scope, result: Any) -> Any:
    """A result that is the same on both sides: a constant, or a size."""
    if not isinstance(result, Node):
        return result
    made = scope.graph.call_function(operator.index, result.args)
    made.meta.update(result.meta)
    return made


def _decisions(path: Path) -> list[tuple[str, Any, bool]]:
    """The line of each test that a path answers, what is asked of sizes, and the answer."""
    values = [(line_in(node.meta["stack_trace"]), None, node.meta["val"]) for node in path.tests()]
    return [*((test.line, test.test, holds) for test, holds in path.sizes), *values]


def _count_shared(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many of the first decisions two paths share."""
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other)))


def _where(result: Any) -> str:
    trace = result.meta.get("stack_trace") if isinstance(result, Node) else None
    return f" at {line_in(trace)}" if trace else ""


def _structure(path: Path) -> str:
    """What a path returns, and after which line."""
    traces = [node.meta["stack_trace"] for node in path.program.graph.nodes if "stack_trace" in node.meta]
    return " ".join([*str(path.program.call_spec.out_spec).split(), *(f"after {line_in(trace)}" for trace in traces[-1:])])


def _format_exception(path: Path) -> str:
    assert path.exception is not None
    return f"{type(path.exception).__name__}: {first_sentence(path.exception)}"
