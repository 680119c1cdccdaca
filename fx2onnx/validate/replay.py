"""Call the graph of a program, and compare it with the model at lengths with few or no loop iterations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import sympy
import torch
from torch import nn
from torch.export.graph_signature import InputKind
from torch.fx.node import map_aggregate

from ..compat import trees as pytree
from ..compat.dispatch import DisableTorchFunction
from ..ir.captured_program import RunProgram
from ..ir.expressions import expression, python_number
from ..ir.trip_count import turns
from ..trace.fresh_symbols import BINDINGS
from ..trace.hidden_state import restore_module_state
from ..trace.path_decisions import BRANCH
from ..trace.refusal import TraceUnsupported
from ..trace.size_domain import SizeAssignment, SizeDomain
from ..trace.tracer import SEED

FEW = (1, 2, 3, 6)
LEAST = 12  # iterations of rolled loops
LEAST_OF_SEVERAL = 8  # smaller, because the iterations of nested loops multiply
FURTHEST = 70
FURTHEST_OF_SEVERAL = 12
NONE = 0
LONG = 50
LONG_OF_SEVERAL = 20
NOTHING_TO_READ = "the exported model fails: the first iteration of a loop has no value to read, or a number has no value"
REFUSED = (RuntimeError, IndexError, TypeError, ValueError, ArithmeticError)  # the last three are raised by size arithmetic
PARTS = 5  # iterations over chunks of an axis, of which the third and the fourth are alike


def long_enough(axes: SizeDomain, least: int = 0) -> SizeDomain:
    """Return the domain with an example in which a loop along any axis has several iterations."""
    some = {symbol: size + i for i, (symbol, size) in enumerate(_some_turns(axes, least).items())}
    return replace(axes, example=axes.clamp({symbol: max(size, some[symbol]) for symbol, size in axes.example.items()}))


def lengths(axes: SizeDomain, most: int = 0) -> Iterator[SizeAssignment]:
    """Yield the settings at which loops are run: the usual ones with enough iterations, and a long one."""
    least = axes.clamp(_some_turns(axes, most))
    longer = long_enough(axes, most)
    for setting in (*reversed(longer.spare()), *longer.settings()):
        if all(size >= least[symbol] for symbol, size in setting.items()):
            yield setting
    some = _some_turns(axes, most)
    further = {symbol: size + axes.chunk_sizes.get(symbol, 1) for symbol, size in some.items()}
    long = (
        {symbol: 2 * size for symbol, size in some.items()}
        if axes.chunk_sizes
        else dict.fromkeys(axes.example, max(LONG if len(axes.example) == 1 else LONG_OF_SEVERAL, 2 * most))
    )
    for sizes in (further, long) if axes.chunk_sizes else (long,):
        yield axes.clamp({symbol: size + 2 * i for i, (symbol, size) in enumerate(sizes.items())})


def _some_turns(axes: SizeDomain, least: int) -> SizeAssignment:
    """Sizes with several iterations. If one axis is known to be split into chunks, only that one is long."""
    if not axes.chunk_sizes:
        return dict.fromkeys(axes.example, max(least, LEAST if len(axes.example) == 1 else LEAST_OF_SEVERAL))
    return {symbol: max(PARTS, least) * axes.chunk_sizes.get(symbol, 1) for symbol in axes.example}


class OtherSide(Exception):
    """A value test has another outcome than on the path of the graph."""


class Replay(torch.fx.Interpreter):
    """Calls a graph with size expressions as arguments, without the overhead of torch's interpreter, which exceeds most calls."""

    def __init__(self, module: torch.fx.GraphModule, numbers: Mapping[sympy.Symbol, int]) -> None:
        super().__init__(module)
        self._numbers: dict[Any, Any] = dict(numbers)

    def run(self, *given: Any) -> Any:  # type: ignore[override]
        """Call the graph."""
        arguments = iter(given)
        for node in self.graph.nodes:
            if node.op == "output":
                return self._plain(node.args[0])
            self.env[node] = self._bind_placeholder(node, next(arguments)) if node.op == "placeholder" else self._run_call(node)
            for unused in self.user_to_last_uses.get(node, ()):
                del self.env[unused]
        return None

    def _bind_placeholder(self, node: torch.fx.Node, value: Any) -> Any:
        """Bind an argument, which may be the number of an iteration."""
        if isinstance(node.meta["val"], torch.SymInt):
            self._numbers[expression(node.meta["val"])] = value
        return value

    def _run_call(self, node: torch.fx.Node) -> Any:
        """Make a call. A loop without iterations returns its inputs, and lists of the sizes in its metadata."""
        if node.op != "call_function":
            return self.fetch_attr(str(node.target))
        args = self._plain(node.args)
        if node.target is BRANCH and bool(args[0]) is not node.meta["val"]:
            raise OtherSide
        if node.target is torch.ops.higher_order.cond:
            holds, *sides, given = args
            return Replay(sides[0 if holds else 1], self._numbers).run(*given)
        if node.target is not turns:
            return self._bound(node, node.target(*args, **self._plain(node.kwargs)))  # type: ignore[operator]
        body, number, first, carried, extra, goes_on = args
        if (number is None or number > 0) and (goes_on is None or bool(goes_on)):
            return turns(lambda *given: Replay(body, self._numbers).run(*given), number, first, carried, extra, goes_on)
        rows = node.meta["val"][len(carried) :]
        return [*carried, *(torch.empty([max(self._leaf(size), 0) for size in value.sizes], dtype=value.dtype) for value in rows)]

    def _bound(self, node: torch.fx.Node, result: Any) -> Any:
        """Bind data-dependent symbols to the result of a call."""
        for symbol, (part, axis) in node.meta.get(BINDINGS, {}).items():
            one = result[part] if isinstance(result, (tuple, list)) else result
            self._numbers[symbol] = one if axis is None else one.shape[axis]
        return result

    def _plain(self, tree: Any) -> Any:
        return map_aggregate(tree, self._leaf)

    def _leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.fx.Node):
            return self.env[leaf]
        if not isinstance(leaf, sympy.Basic):
            return leaf
        if leaf not in self._numbers:
            self._numbers[leaf] = python_number(leaf.subs(self._numbers))
        return self._numbers[leaf]


def check_lengths(program: RunProgram, model: nn.Module, axes: SizeDomain) -> tuple[str, ...]:
    """Compare a program that has loops with its model at sizes with few or no iterations.

    Returns:
        A line if the model accepts a size that the program does not; otherwise nothing.

    Raises:
        TraceUnsupported: If the results differ.
    """
    limits: tuple[str, ...] = ()
    for setting in _settings(program, axes):
        arguments = axes.at(program.example_inputs, setting, run=1)
        try:
            wanted = _leaves(model(*arguments[0], **arguments[1]))
        except Exception:  # noqa: BLE001 - the model does not accept this size
            continue
        try:
            found = _found(program, axes.at(program.example_inputs, setting, run=1), setting)
        except OtherSide:
            continue
        if found is None and NONE in setting.values():
            limits = (f"at {axes.format_setting(setting)}, which the model accepts, {NOTHING_TO_READ}",)
            continue
        if found is None or not equal_leaves(wanted, found):
            raise TraceUnsupported(f"exported as a Loop, the loops of the model give a different result at {axes.format_setting(setting)}")
    return limits


def agrees(program: RunProgram, model: nn.Module, arguments: Any, setting: SizeAssignment) -> bool | None:
    """Return whether a program returns the same as its model, up to rounding; None if the model raises."""
    own = pytree.tree_map_only(torch.Tensor, torch.Tensor.clone, arguments)
    with (
        _fix_seed(),
        restore_module_state(model),
        DisableTorchFunction(),
    ):  # the mode that canonicalises indexing is not part of the model
        try:
            wanted = _leaves(model(*arguments[0], **arguments[1]))
        except Exception:  # noqa: BLE001 - the model does not accept this size
            return None
    found = _found(program, own, setting)
    return found is not None and equal_leaves(wanted, found)


def has_side_without_rows(axes: SizeDomain) -> bool:
    """Return whether size 0 may need its own path: if there is one dynamic size, and it is tested."""
    return len(axes.example) == 1 and bool(axes.conditions)


def has_loops(program: RunProgram) -> bool:
    """Return whether a program has a rolled loop."""
    return bool(program.graph.find_nodes(op="call_function", target=turns))


def _settings(program: RunProgram, axes: SizeDomain) -> Iterator[SizeAssignment]:
    """Yield sizes with few iterations: 0, and the smallest and largest sizes with none, one or two iterations."""
    calls = program.graph.find_nodes(op="call_function", target=turns)
    counts = [node.args[1] + node.args[2] for node in calls if node.args[1] is not None]
    few: dict[Any, list[int]] = {}
    furthest = FURTHEST if len(axes.example) == 1 else FURTHEST_OF_SEVERAL
    for size in sorted({*range(1, furthest), *(n * unit + end for unit in axes.chunk_sizes.values() for n in FEW for end in (-1, 0, 1))}):
        numbers = [int(sympy.sympify(count).subs(dict.fromkeys(axes.example, size))) for count in counts]
        few.setdefault(tuple(min(max(number, 0), 3) for number in numbers), []).append(size)
    sizes = sorted({*FEW, *(sizes[end] for sizes in few.values() for end in (0, -1))})
    if not has_side_without_rows(axes):
        yield dict.fromkeys(axes.example, NONE)
    one_alone = [dict.fromkeys(axes.example, FEW[-1]) | {symbol: 1} for symbol in axes.example] if len(axes.example) > 1 else []
    alike = (_along(axes, size) for size in sizes)
    yield from (setting for setting in (*alike, *one_alone) if setting == axes.clamp(setting))


def _along(axes: SizeDomain, size: int) -> SizeAssignment:
    """This size for each axis; if one is known to be split into chunks, only for that one, with short others."""
    return {symbol: size if symbol in axes.chunk_sizes or not axes.chunk_sizes else min(size, FEW[-2]) for symbol in axes.example}


def _found(program: RunProgram, arguments: Any, setting: SizeAssignment) -> list[Any] | None:
    try:
        with _fix_seed(), DisableTorchFunction():
            return _leaves(Replay(program.graph_module, setting).run(*inputs_of(program, arguments)))
    except REFUSED:
        return None


@contextmanager
def _fix_seed() -> Iterator[None]:
    with torch.random.fork_rng(devices=()), torch.no_grad():
        torch.default_generator.manual_seed(SEED)
        yield


def _leaves(returned: Any) -> list[Any]:
    return [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in pytree.tree_leaves(returned)]


def inputs_of(program: RunProgram, arguments: Any) -> Iterator[Any]:
    """Yield the inputs of the graph of a program: state, constants and arguments."""
    given = iter(pytree.tree_leaves(arguments))
    for spec in program.graph_signature.input_specs:
        tensors = (
            program.constants if spec.kind == InputKind.CONSTANT_TENSOR or spec.target not in program.state_dict else program.state_dict
        )
        yield next(given) if spec.kind == InputKind.USER_INPUT else tensors[str(spec.target)]


def equal_leaves(wanted: Sequence[Any], found: Sequence[Any]) -> bool:
    """Return whether results are equal, up to rounding."""
    return len(wanted) == len(found) and all(map(_equal, wanted, found))


def _equal(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor):
        return bool(one == other)
    return one.shape == other.shape and one.dtype == other.dtype and torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)
