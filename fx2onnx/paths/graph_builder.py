"""The graph of a run, written while it goes on and held against runs at other settings."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from keyword import iskeyword
from typing import Any, cast

import sympy
import torch
from torch import nn
from torch.export import graph_signature as signatures
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument

from ..compat import trees as pytree
from ..compat.exporting import LazyGraphModule
from ..compat.operators import OpOverload
from ..ir.captured_program import CallSpec, RunProgram, SymbolicMeta, argument_of
from ..ir.expressions import Size, expression, python_number, storage
from ..shapes.propagation import EXAMPLE, ShapePropagation, check_parts
from ..shapes.size_checks import SizeChecks
from ..structure.iterations import State
from ..structure.loop import STACKED, Loop
from ..structure.loop_checks import check_leaves, check_tests, is_counted
from ..structure.loop_sites import range_over_chunks, ranges_by
from ..structure.repeated_blocks import Repeated
from ..structure.roll import roll_loops
from ..structure.stacked_outputs import stacked_output
from ..trace.alias_consistency import AliasConsistency, check_end, check_no_number
from ..trace.divergence import error_of_other_calls, format_call
from ..trace.events import Arguments, OpEvent, Ref, TensorMeta, Trace, alike, equal, state_of, unflatten_arguments
from ..trace.input_names import identifier, names_of_inputs
from ..trace.path_decisions import BRANCH
from ..trace.plan import Plan
from ..trace.refusal import ConstantDiverged, TraceUnsupported
from ..trace.size_domain import SizeDomain
from ..trace.source_location import line_in
from ..trace.symbolic_builtins import symbolic_builtins
from ..trace.tensor_from_sizes import error_of_unequal_numbers, gives
from ..trace.tracer import Tracer
from .fresh_sizes_of_graph import DecidedSizes
from .result_sizes import ResultSizes

NOTHING = pytree.tree_structure(())
aten = torch.ops.aten


class GraphBuilder:
    """Writes the graph of a run while it goes on, held at each call against runs that were made at other settings.

    Args:
        traces: of the other runs.
        sizes: explains integers of this run and of those, in this order.
    """

    plan = Plan()

    def __init__(self, model: nn.Module, axes: SizeDomain, arguments: Arguments, traces: Sequence[Trace], sizes: SizeChecks) -> None:
        self.model, self.arguments = model, arguments
        self._begin(axes, traces, sizes, ShapePropagation(axes, sizes.settings))
        self._specs: list[InputSpec] = []
        self._inputs: list[InputSpec] = []
        self._persistent = model.state_dict(keep_vars=True)
        self._constants: dict[str, torch.Tensor] = {}
        self._place_state()
        self._place_inputs()
        self._first = self._nodes_before_calls()

    def _begin(self, axes: SizeDomain, traces: Sequence[Trace], sizes: SizeChecks, of_operators: ShapePropagation) -> None:
        self.axes, self.traces, self.sizes = axes, traces, sizes
        self.graph = torch.fx.Graph()
        self.modules: dict[str, torch.fx.GraphModule] = {}  # graphs inside
        self.known: dict[Ref, tuple[Size, ...]] = {}
        self.of_results = ResultSizes(sizes, of_operators, self.known)
        self._names: set[str] = set()  # of placeholders
        self._nodes: dict[Ref, torch.fx.Node] = {}
        self._memory = AliasConsistency(1 + len(traces))
        self.decided = DecidedSizes(axes, sizes)
        self._rows: list[torch.fx.Node] = []
        self.noted: Sequence[OpEvent] = ()  # of the run itself

    @contextmanager
    def follow(self, tracer: Tracer) -> Iterator[None]:
        """Watch the run: its sizes are symbols from here on."""
        self._tracer, self.noted = tracer, tracer.rows
        for number, tensor in tracer.inputs.items():  # each run has copies of its own
            self._nodes[Ref("input", number)].meta["val"].memory = storage(tensor)
        with symbolic_builtins(tracer, self.axes.environment, self.plan), ranges_by(range_over_chunks):
            yield

    def row(self, row: OpEvent) -> None:
        """Write a call.

        Raises:
            TraceUnsupported: another run makes another call here, or something differs that sizes do not explain.
        """
        self._write(len(self._rows), row, self._others_of(row))

    def number(self, call: int, value: int) -> Any:
        """Return the symbol of the number that a call read."""
        return self._rows[call].meta["val"]

    def again(self, rows: Sequence[OpEvent], begin: int) -> None:
        """Write calls as those from this number on were written.

        Raises:
            TraceUnsupported: another run makes another call here.
        """
        here = len(self._rows)
        others = [trace.rows[here : here + len(rows)] for trace in self.traces]
        repeated = all(len(found) == len(rows) and _repeat_alike(rows, found) for found in others)
        for number, row in enumerate(rows):
            self._write_again(row, begin + number, [found[number] for found in others] if repeated else self._others_of(row), repeated)

    def _write_again(self, row: OpEvent, number: int, others: Sequence[OpEvent], repeated: bool) -> None:
        for other in () if repeated else others:
            if any(a != b for a, b in zip(row.leaves, other.leaves, strict=True) if isinstance(a, Ref) or isinstance(b, Ref)):
                raise ConstantDiverged(f"{row.op} at {line_in(row.line)} takes a different tensor at other sizes")
        pairs = zip(self.noted[number].leaves, row.leaves, strict=True)
        nodes = {self._node(a): self._node(b) for a, b in pairs if isinstance(a, Ref)}
        node = self.graph.node_copy(self._rows[number], nodes.__getitem__)
        self._memory.note(len(self._rows), row, others)
        self.decided.pass_over(row)
        here = len(self._rows)
        found = [self._described_again(Ref("row", number, part), Ref("row", here, part), made) for part, made in enumerate(row.made)]
        node.meta.update(val=found if row.many else found[0] if found else None, stack_trace=row.line, nn_module_stack=row.scope)
        self._keep(node, row)

    def _described_again(self, ref: Ref, other: Ref, made: Any) -> Any:
        if not isinstance(made, TensorMeta):
            return made
        self.known[other] = self.known[ref]
        return SymbolicMeta.of(self.known[ref], made.dtype, made.storage)

    def _others_of(self, row: OpEvent) -> list[OpEvent]:
        """The calls of the other runs that are this one."""
        found: list[OpEvent] = []
        for run, other in enumerate(self._others()):
            if other is None or other.kind != row.kind:
                raise self._difference(row, other, run)
            found.append(other)
        return found

    def _keep(self, node: torch.fx.Node, row: OpEvent) -> None:
        if not row.many:
            self._nodes[Ref("row", len(self._rows))] = node
        self._rows.append(node)

    def _others(self) -> list[OpEvent | None]:
        """What the other runs call here."""
        number = len(self._rows)
        return [trace.rows[number] if number < len(trace.rows) else None for trace in self.traces]

    def inner_traces(self, op: Any, number: int) -> list[Trace]:
        """Return what the other runs did in a function that the operator takes that is called here.

        Raises:
            TraceUnsupported: another run calls another operator.
        """
        found: list[Trace] = []
        for run, other in enumerate(self._others()):
            if other is None or other.op is not op:
                raise TraceUnsupported(f"the operators called depend on the sizes: {op}, but {format_call(other)} at {self._setting(run)}")
            found.append([leaf for leaf in other.leaves if isinstance(leaf, Trace)][number])
        return found

    def _difference(self, row: OpEvent | None, other: OpEvent | None, run: int) -> TraceUnsupported:
        return error_of_other_calls(row, other, self._setting(run))

    def _setting(self, run: int) -> str:
        return self.axes.format_setting(self.sizes.settings[run + 1]) or "another run"

    def program(self, trace: Trace) -> RunProgram:
        """Return the program, once the run is over.

        Raises:
            TraceUnsupported: another run calls more, or what is returned differs.
        """
        outputs = self._finish(trace)
        check_end(self._tracer, trace, self.traces, bool(self.axes.example))
        self._roll(trace)
        signature = signatures.ExportGraphSignature(self._specs + self._inputs, outputs)
        spec = CallSpec(pytree.tree_structure(self.arguments), trace.spec or NOTHING)
        module = self._module(bool(self.graph.find_nodes(op="call_function", target=BRANCH)) or any(row.by_values for row in trace.rows))
        changed = tuple(self._nodes[Ref("input", number)].name for number in sorted(trace.changed))
        return RunProgram(module, signature, self._persistent, self._constants, spec, self.arguments, changed)

    def _finish(self, trace: Trace) -> list[OutputSpec]:
        for run, other in enumerate(self.traces):
            if len(other.rows) > len(self._rows):
                raise self._difference(None, other.rows[len(self._rows)], run)
        return self._add_outputs(trace)

    def _roll(self, trace: Trace) -> None:
        """Put one call in the place of the turns of each loop."""
        for loops in zip(trace.loops, *(other.loops for other in self.traces), strict=True):
            if (turns := expression(loops[0].size)) is not None and not self.sizes.matches(turns, tuple(loop.turns for loop in loops)):
                raise TraceUnsupported(
                    f"the number of iterations of the loop at {loops[0].line} is not {self.axes.format_size(turns)} at other sizes"
                )
        check_tests(self.axes.environment, trace.loops, self.axes.ranges)
        roll_loops(trace.loops, State(self.graph, self.axes.environment, self.modules, self._rows, self._nodes, self.axes.format_size))

    def _module(self, has_tests: bool) -> torch.fx.GraphModule:
        if not has_tests:
            self.graph.eliminate_dead_code()
        root = nn.Module()
        for name, module in self.modules.items():
            root.add_module(name, module)
        made = LazyGraphModule(root, self.graph)  # whose code nobody may ever read
        made.meta[EXAMPLE] = {self.axes.names[symbol]: size for symbol, size in self.axes.example.items()}
        return made

    def _add_placeholder(self, name: str, ref: Ref, value: Any) -> torch.fx.Node:
        node = self.graph.placeholder(name)
        if name not in self._names and not iskeyword(name):
            node.name = name  # also where it is one of Python's own, `input`, which torch.fx would number
        node.target = node.name  # a graph may have two of one name, its code not
        self._names.add(node.name)
        node.meta["val"] = value
        if isinstance(value, SymbolicMeta):
            self.known[ref], self._nodes[ref] = value.sizes, node
        return node

    def _place_state(self) -> None:
        buffers = dict(self.model.named_buffers())
        for name, tensor in state_of(self.model).items():
            kind = InputKind.BUFFER if name in buffers else InputKind.PARAMETER
            node = self._add_placeholder(
                f"{'b' if name in buffers else 'p'}_{identifier(name)}", Ref("state", name), SymbolicMeta.describe_static(tensor)
            )
            persistent = name in self._persistent if name in buffers else None
            self._specs.append(InputSpec(kind, TensorArgument(node.name), name, persistent))
            if name not in self._persistent:
                self._constants[name] = tensor

    def _place_inputs(self) -> None:
        leaves = pytree.tree_leaves(self.arguments)
        for number, (leaf, name) in enumerate(zip(leaves, names_of_inputs(self.model, self.arguments), strict=True)):
            if not isinstance(leaf, torch.Tensor):
                node = self._add_placeholder(name, Ref("input", number), leaf)
                self._inputs.append(InputSpec(InputKind.USER_INPUT, ConstantArgument(node.name, leaf), None))
                continue
            sizes = tuple(self.axes.sizes.get((id(leaf), axis), size) for axis, size in enumerate(leaf.shape))
            node = self._add_placeholder(name, Ref("input", number), SymbolicMeta.of(sizes, leaf.dtype, storage(leaf)))
            self._inputs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None))

    def _nodes_before_calls(self) -> torch.fx.Node:
        """The node that further inputs are put before: the first of the user's, so that those stay last."""
        placeholders = list(self.graph.nodes)
        return placeholders[len(self._specs)] if self._inputs else self.graph._root

    def _constant(self, ref: Ref) -> torch.fx.Node:
        """The input of a tensor that was there before the run, or made of Python's numbers: the same in all runs."""
        number = int(ref.key)
        first = self._tracer.constants[number]
        others = [trace.constants[number] if number < len(trace.constants) else None for trace in self.traces]
        if (formula := self._tracer.formulas.get(number)) is not None and gives(formula, self.sizes.settings[1:], others):
            return self._tensor_of_sizes(ref, first, pytree.tree_leaves(formula))
        if any(other is not first and (other is None or not equal(first, other)) for other in others):
            raise error_of_unequal_numbers(self._tracer, first, others)
        target = f"lifted_tensor_{number}"
        with self.graph.inserting_before(self._first):
            node = self._add_placeholder(f"c_{target}", ref, SymbolicMeta.describe_static(first))
        self._constants[target] = first.detach()
        self._specs.append(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), target))
        return node

    def _tensor_of_sizes(self, ref: Ref, tensor: torch.Tensor, numbers: Sequence[Any]) -> torch.fx.Node:
        """The calls that make a tensor of sizes where it stands."""
        made = [self._add_call(aten.scalar_tensor.default, (number,), (), tensor.dtype) for number in numbers]
        whole = made[0] if not tensor.dim() else self._add_call(aten.stack.default, (made,), (len(made),), tensor.dtype)
        if tensor.dim() > 1:
            whole = self._add_call(aten.reshape.default, (whole, list(tensor.shape)), tuple(tensor.shape), tensor.dtype)
        self.known[ref], self._nodes[ref] = tuple(tensor.shape), whole
        return whole

    def _add_call(self, op: Any, args: tuple[Any, ...], sizes: tuple[int, ...], dtype: torch.dtype) -> torch.fx.Node:
        node = self.graph.call_function(op, args, {"dtype": dtype} if op is aten.scalar_tensor.default else {})
        node.meta["val"] = SymbolicMeta.of(sizes, dtype, -len(self.graph.nodes))  # memory of its own
        return node

    def _write(self, number: int, row: OpEvent, others: Sequence[OpEvent]) -> None:
        self._memory.note(number, row, others)
        check_leaves(row, others, self.sizes.settings[1:], self._loops)
        leaves = [self._leaf(row, values) for values in zip(row.leaves, *(other.leaves for other in others), strict=True)]
        args, kwargs = unflatten_arguments(leaves, row.spec)
        name = self.graph._target_to_str(row.op._opname if isinstance(row.op, OpOverload) else row.op._name)
        node = self.graph.create_node("call_function", row.op, args, kwargs, name=name)
        if self.decided.concern(row, node, leaves):
            sizes = self.decided.sizes_of(number, row, node, others)
        else:
            sizes = self.of_results.infer_call_sizes(row, node, leaves)
        parts = enumerate(zip(row.made, *(other.made for other in others), strict=True))
        found = [self._result(row, node, Ref("row", number, part), made, sizes[part : part + 1]) for part, made in parts]
        check_parts(node, len(row.made), self.axes, row.line)
        node.meta.update(val=found if row.many else found[0] if found else None, stack_trace=row.line, nn_module_stack=row.scope)
        self._keep(node, row)

    def _leaf(self, row: OpEvent, values: tuple[Any, ...]) -> Any:
        first = values[0]
        if isinstance(first, Trace):
            return self.graph.create_node("get_attr", first.name, name=first.name)
        if isinstance(first, Ref):
            if any(value != first for value in values):
                raise ConstantDiverged(f"{row.op} at {line_in(row.line)} takes a different tensor at other sizes")
            return self._node(first)
        if is_counted(first, self._loops):
            return first
        if isinstance(first, sympy.Basic):
            if self.sizes.matches_further(first, values[1:]):
                return first
            if first.free_symbols:
                raise TraceUnsupported(
                    f"{row.op} takes {self.axes.format_size(first)} at {line_in(row.line)}, but {values[1:]} at other sizes"
                )
            first = python_number(first)
        if type(first) is int and all(type(value) is int for value in values[1:]):
            return self.of_results.find_number(row, (first, *values[1:]))
        if not all(alike(first, value) for value in values[1:]):
            listed = ", ".join(map(repr, dict.fromkeys((first, *values[1:]))))
            raise ConstantDiverged(f"{row.op} takes {listed} at {line_in(row.line)}, depending on the sizes")
        return first

    @property
    def _loops(self) -> Sequence[Loop]:
        return self._tracer.loops.found if self._tracer.loops is not None else ()

    def _node(self, ref: Ref) -> torch.fx.Node:
        if ref.kind in STACKED and ref not in self._nodes:
            one = self._node(Ref("row", ref.key, ref.part))
            self._nodes[ref] = self.graph.call_function(stacked_output, (one, ref.kind, *ref.turns[0]))
            self._nodes[ref].meta.update(one.meta, times=expression(self._tracer.loops.found[ref.turns[0][0]].size) - 1)
        if ref.kind == "constant" and ref not in self._nodes:
            return self._constant(ref)
        if ref not in self._nodes:
            whole = self._rows[int(ref.key)]
            part = self.graph.call_function(operator.getitem, (whole, ref.part))
            part.meta.update(whole.meta, val=whole.meta["val"][ref.part])
            self._nodes[ref] = part
        return self._nodes[ref]

    def _result(self, row: OpEvent, node: torch.fx.Node, ref: Ref, made: tuple[Any, ...], sizes: Sequence[Any]) -> Any:
        first = made[0]
        if not isinstance(first, TensorMeta):
            if row.by_values:
                return self.decided.number(int(ref.key), row, node, made)
            check_no_number(row, first)
            return first
        if any(other.dtype != first.dtype or len(other.shape) != len(first.shape) for other in made):
            raise TraceUnsupported(f"{row.op} at {line_in(row.line)} returns a different dtype or number of axes at other sizes")
        shapes = list(zip(*(other.shape for other in made), strict=True))
        self.known[ref] = self.of_results.check_result_sizes(row, shapes, next(iter(sizes), None))
        return SymbolicMeta.of(self.known[ref], first.dtype, first.storage)

    def _add_outputs(self, trace: Trace) -> list[OutputSpec]:
        results: list[Any] = []
        specs = []
        for values in zip(trace.returned, *(other.returned for other in self.traces), strict=True):
            results.append(self._result_of_the_model(values))
            specs.append(OutputSpec(OutputKind.USER_OUTPUT, argument_of(results[-1]), None))
        self.graph.output(tuple(results))
        return specs

    def _result_of_the_model(self, values: tuple[Any, ...]) -> Any:
        first = python_number(values[0]) if isinstance(values[0], sympy.Basic) and not values[0].free_symbols else values[0]
        if isinstance(first, sympy.Basic) and first.is_integer and self.sizes.matches_further(first, values[1:]):
            node = self.graph.call_function(operator.index, (first,))
            node.meta["val"] = self.axes.environment.create_symintnode(first, hint=None)
            return node
        if not all(alike(first, value) for value in values[1:]):
            told = dict.fromkeys("another tensor" if isinstance(value, Ref) else repr(value) for value in values)
            raise TraceUnsupported(f"the model returns {', '.join(told)}, depending on the sizes")
        return self._node(first) if isinstance(first, Ref) else first


def _repeat_alike(rows: Sequence[OpEvent], others: Sequence[OpEvent]) -> bool:
    """Whether the calls of one repeated block are those of one in another run."""
    ends = rows[0], rows[-1], others[0], others[-1]
    if not all(isinstance(row, Repeated) for row in ends):
        return False
    mine, last, first, end = cast("tuple[Repeated, ...]", ends)
    return first.notes is end.notes and mine.repeats_as(first) and last.repeats_as(end)
