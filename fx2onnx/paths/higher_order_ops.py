"""Trace operators with functions as arguments: `cond`, `while_loop`, `scan`, `map`. Each function runs once and becomes a subgraph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any

import torch

from ..compat import trees as pytree
from ..compat.operators import OpOverload
from ..ir.captured_program import SymbolicMeta
from ..ir.expressions import Size, storage
from ..patches.called_functions import functions_called_by
from ..patches.registry import apply_patches, register_patch
from ..trace import associative_scan  # noqa: F401 - its patch is entered
from ..trace.effects import written
from ..trace.events import Ref, Trace
from ..trace.tracer import Tracer
from .graph_builder import GraphBuilder

hop = torch.ops.higher_order
Function = Callable[..., Any]
Tensors = Sequence[torch.Tensor]
Sizes = tuple[Size, ...]
NESTED = ContextVar(
    "nested", default=False
)  # whether results have the nesting of the function, as torch.cond returns them; its operator returns a flat tuple


@contextmanager
def trace_higher_order_functions(moves: bool) -> Iterator[None]:
    """Record operators with functions as arguments, without torch compiling the functions first.

    Args:
        moves: whether any dimension is dynamic; if not, torch's version of `associative_scan` makes the same calls in each run.
    """
    with apply_patches("inner_graphs"), functions_called_by(_call_function), apply_patches("associative") if moves else nullcontext():
        yield


@register_patch(
    "inner_graphs",
    *(f"torch.ops.higher_order.{op}.python_key_table" for op in ("cond", "while_loop", "scan", "map_impl")),
    reason="torch has no rule to trace the functions of these operators with our tracer",
)
def _add_tracing_rules(rules: dict[Any, Any], holder: Any) -> dict[Any, Any]:
    noting: dict[Any, Any] = {hop.cond: _cond, hop.while_loop: _while_loop, hop.scan: _scan, hop.map_impl: _map}
    return {**rules, Tracer: noting[holder], SubgraphTracer: noting[holder]}


def _call_function(function: Function, args: Any, kwargs: Any = None) -> Any:
    if function.__name__ == "_cond_op_wrapper":  # the only one with nested operands
        predicate, yes, no, operands = args
        flat, spec = pytree.tree_flatten(operands)
        args = predicate, partial(_call_unflattened, yes, spec), partial(_call_unflattened, no, spec), flat
    with _set(NESTED, True):
        return function(*args, **(kwargs or {}))


@contextmanager
def _set(variable: ContextVar[bool], value: bool) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def _call_unflattened(function: Function, spec: pytree.TreeSpec, *leaves: torch.Tensor) -> Any:
    return function(*pytree.tree_unflatten(leaves, spec))


class SubgraphTracer(Tracer):
    """Records a function that is passed to an operator. Outer tensors that it reads become further operands.

    Args:
        further: outer tensors that this function or its siblings read, by their outer `Ref`; extended during the run.
    """

    def __init__(self, around: Tracer, operands: Tensors, further: dict[Ref, torch.Tensor], writer: SubgraphBuilder | None) -> None:
        super().__init__({}, around._script, writer, around.scopes)
        self.constants = around.constants
        self._around, self._count, self._further, self._writer = around, len(operands), further, writer
        self.follows_values = False
        for number, tensor in enumerate(operands):
            self.place(tensor, Ref("input", number), "an operand of a higher-order operator")
        around._kept.extend(operands)

    def _constant(self, tensor: torch.Tensor) -> Ref:
        outside = self._around.ref(tensor)
        self._further.setdefault(outside, tensor)
        found = Ref("input", self._count + list(self._further).index(outside))
        self.place(tensor, found, "a tensor from outside the function")
        if self._writer is not None:
            self._writer.operand(found, tensor, self._around.sizes(tensor))
        return found

    def sizes(self, tensor: torch.Tensor) -> tuple[Any, ...]:
        """Return the sizes of a tensor, without making an outer one an operand."""
        return super().sizes(tensor) if self.knows(tensor) else self._around.sizes(tensor)

    def _check(self, func: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        for tensor in written(func, args, kwargs) if isinstance(func, OpOverload) else ():
            self.ref(tensor)  # records an outer tensor as such
        super()._check(func, args, kwargs)

    def is_constant(self, tensor: torch.Tensor) -> bool:
        """Return False, because a constant read here would not be compared with other runs."""
        return False

    def _answer_branch(self, tensor: torch.Tensor, said: bool) -> bool:
        raise self.refusal("a tensor value is read inside a function of a higher-order operator,")

    def refuse(self, error: Exception) -> Exception:
        """Keep the first error that ends the run, also in the outer tracer."""
        return super().refuse(self._around.refuse(error))


class SubgraphBuilder(GraphBuilder):
    """Builds the graph of such a function, checked against the same function in the other runs."""

    def __init__(self, around: GraphBuilder, traces: Sequence[Trace], operands: Tensors, sizes: Sequence[Sizes]) -> None:
        self._begin(around.axes, traces, around.sizes, around.of_results.shape_propagation)
        self.decided.binds = False
        for number, (tensor, known) in enumerate(zip(operands, sizes, strict=True)):
            self.operand(Ref("input", number), tensor, known)

    def operand(self, ref: Ref, tensor: torch.Tensor, sizes: Sizes) -> None:
        """Add a placeholder, unless it exists."""
        if ref not in self._nodes:
            self._add_placeholder(f"operand_{ref.key}", ref, SymbolicMeta.of(sizes, tensor.dtype, storage(tensor)))

    def module(self, trace: Trace, count: int) -> torch.fx.GraphModule:
        """Return the graph after the function has returned, with one placeholder per operand at its beginning."""
        self._finish(trace)
        for number in reversed(range(count)):
            self.graph._root.append(self._nodes[Ref("input", number)])
        return self._module(has_tests=False)


class HigherOrderCall:
    """The traces of the functions of one operator call, each run once.

    Args:
        operands: the arguments of all functions, with their sizes.
    """

    def __init__(self, tracer: Tracer, op: Any, functions: Sequence[Function], operands: Sequence[tuple[torch.Tensor, Sizes]]) -> None:
        self._tracer, self._op = tracer, op
        self._tensors, self._sizes = [tensor for tensor, _ in operands], [sizes for _, sizes in operands]
        self.further: dict[Ref, torch.Tensor] = {}
        self.traces: list[Trace] = []
        self.answers: list[Tensors] = []
        self._writers: list[SubgraphBuilder] = []
        self._may_return_an_operand, self._nested = False, NESTED.get()
        with _set(NESTED, False):
            for number, function in enumerate(functions):
                self._run(number, function)
        self._write()

    @property
    def _outer(self) -> GraphBuilder | None:
        assert self._tracer.follower is None or isinstance(self._tracer.follower, GraphBuilder)
        return self._tracer.follower

    def _run(self, number: int, function: Function) -> None:
        operands = [tensor.detach().clone() for tensor in self._tensors]
        writer = None
        if self._outer is not None:
            writer = SubgraphBuilder(self._outer, self._outer.inner_traces(self._op, number), operands, self._sizes)
            self._writers.append(writer)
        tracer = SubgraphTracer(self._tracer, operands, self.further, writer)
        with tracer, writer.follow(tracer) if writer is not None else nullcontext():
            leaves, spec = pytree.tree_flatten(function(*operands))
        if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            raise self._tracer.refusal(f"the function passed to {self._op} returns something other than tensors,")
        self.traces.append(Trace(tracer.rows, [tracer.ref(leaf) for leaf in leaves], spec, []))
        self.answers.append(leaves)
        outside = {storage(tensor) for tensor in (*operands, *self.further.values())}
        self._may_return_an_operand |= any(storage(leaf) in outside for leaf in leaves)

    def _write(self) -> None:
        count = len(self._tensors) + len(self.further)
        for trace, writer in zip(self.traces, self._writers, strict=False):
            assert self._outer is not None
            for number, tensor in enumerate(self.further.values(), len(self._tensors)):
                writer.operand(Ref("input", number), tensor, self._tracer.sizes(tensor))
            trace.name = f"graph_{len(self._outer.modules)}"
            self._outer.modules[trace.name] = writer.module(trace, count)

    def sizes(self, number: int) -> list[Sizes]:
        """Return the sizes of the results of a function: expressions while a graph is built, otherwise those of this run."""
        if not self._writers:
            return [tuple(answer.shape) for answer in self.answers[number]]
        return [self._writers[number].known[ref] for ref in self.traces[number].returned]

    def check_alike(self, number: int, given: Tensors, sizes: Sequence[Sizes]) -> None:
        """Refuse results with other dtypes or sizes than these, because the exported operator needs one type."""
        answers = self.answers[number][: len(given)]
        if [t.dtype for t in answers] != [t.dtype for t in given] or self.sizes(number)[: len(given)] != list(sizes):
            raise self._tracer.refusal(
                f"{self._op} needs tensors of {self._format_sizes(sizes)}, but gets {self._format_sizes(self.sizes(number))}"
            )

    def _format_sizes(self, sizes: Sequence[Sizes]) -> str:
        return ", ".join(str(one) if self._outer is None else self._outer.axes.format_size(one) for one in sizes)

    def record_call(self, args: tuple[Any, ...], results: Tensors, sizes: Sequence[Sizes], number: int) -> Any:
        """Record the call, and return its results, nested like those of the function if requested."""
        copies = [result.clone() for result in results]
        if self._may_return_an_operand:
            for tensor in (*self._tensors, *self.further.values(), *copies):
                self._tracer.is_not_to_be_written(tensor, f"a tensor that {self._op} may return")
        self._tracer.note(self._op, args, copies, list(sizes))
        spec = self.traces[number].spec
        return pytree.tree_unflatten(copies, spec) if self._nested and spec is not None else tuple(copies)


def _cond(tracer: Tracer, predicate: Any, yes: Function, no: Function, operands: Tensors) -> Any:
    inner = HigherOrderCall(tracer, hop.cond, [yes, no], [(x, tracer.sizes(x)) for x in operands])
    if inner.traces[0].spec != inner.traces[1].spec:
        raise tracer.refusal("the two branches of cond return different structures,")
    inner.check_alike(0, inner.answers[1], inner.sizes(1))
    side = 0 if bool(predicate) else 1
    return inner.record_call((predicate, *inner.traces, (*operands, *inner.further.values())), inner.answers[side], inner.sizes(0), 0)


def _while_loop(tracer: Tracer, condition: Function, body: Function, carried: Tensors, extra: Tensors) -> Any:
    if not all(isinstance(value, torch.Tensor) for value in (*carried, *extra)):
        raise tracer.refusal("while_loop carries a Python number instead of a tensor,")
    inner = HigherOrderCall(tracer, hop.while_loop, [condition, body], [(x, tracer.sizes(x)) for x in (*carried, *extra)])
    sizes = [tracer.sizes(x) for x in carried]
    inner.check_alike(1, carried, sizes)
    args = (*inner.traces, tuple(carried), (*extra, *inner.further.values()))
    return inner.record_call(args, inner.answers[1], sizes, 1)


def _scan(tracer: Tracer, combine: Function, init: Tensors, xs: Tensors, extra: Tensors, mutated_arg_indices: str = "") -> Any:
    _check_nothing_is_written(tracer, hop.scan, mutated_arg_indices)
    states = [(x, tracer.sizes(x)) for x in init]
    inner = _make_row_call(tracer, hop.scan, combine, states, xs, extra)
    inner.check_alike(0, init, [sizes for _, sizes in states])
    args = (*inner.traces, list(init), list(xs), (*extra, *inner.further.values()))
    return _record_row_results(tracer, inner, args, xs, len(init))


def _map(tracer: Tracer, function: Function, xs: Tensors, extra: Tensors, mutated_arg_indices: str = "") -> Any:
    _check_nothing_is_written(tracer, hop.map_impl, mutated_arg_indices)
    inner = _make_row_call(tracer, hop.map_impl, function, [], xs, extra)
    return _record_row_results(tracer, inner, (*inner.traces, list(xs), [*extra, *inner.further.values()]), xs, 0)


def _check_nothing_is_written(tracer: Tracer, op: Any, mutated_arg_indices: str) -> None:
    if mutated_arg_indices:  # from torch 2.14, it lists the inputs that the function mutates
        raise tracer.refusal(f"the function passed to {op} writes into its arguments,")


def _make_row_call(
    tracer: Tracer, op: Any, function: Function, states: Sequence[tuple[torch.Tensor, Sizes]], xs: Tensors, extra: Tensors
) -> HigherOrderCall:
    if not all(isinstance(value, torch.Tensor) for value in extra):
        raise tracer.refusal(f"{op} gets a Python number instead of a tensor,")
    rows = [(x[0], tracer.sizes(x)[1:]) for x in xs]
    return HigherOrderCall(tracer, op, [function], [*states, *rows, *((x, tracer.sizes(x)) for x in extra)])


def _record_row_results(tracer: Tracer, inner: HigherOrderCall, args: tuple[Any, ...], xs: Tensors, states: int) -> Any:
    """The final states and the rows of all iterations, here copies of the first, because only their sizes matter."""
    count, length = len(xs[0]), tracer.sizes(xs[0])[0]
    answers, sizes = inner.answers[0], inner.sizes(0)
    results = [*answers[:states], *(row.expand(count, *row.shape) for row in answers[states:])]
    return inner.record_call(args, results, [*sizes[:states], *((length, *row) for row in sizes[states:])], 0)
