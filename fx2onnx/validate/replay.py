"""The graph of a program, called as torch would: held against the model at lengths at which its loops have few turns, and none."""

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
from torch.utils import _pytree as pytree

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
LEAST = 12  # iterations of loops that are rolled
LEAST_OF_SEVERAL = 8  # since loops inside loops multiply
FURTHEST = 70
FURTHEST_OF_SEVERAL = 12
NONE = 0
LONG = 50
LONG_OF_SEVERAL = 20
NOTHING_TO_READ = "the exported model fails: the first iteration of a loop has no value to read, or a number has no value"
REFUSED = (RuntimeError, IndexError, TypeError, ValueError, ArithmeticError)  # the last three: of a size, as the root of one below 0
PARTS = 5  # turns over parts of an axis, the fourth of which is like the third


def long_enough(axes: SizeDomain, least: int = 0) -> SizeDomain:
    """Return the same axes with an example at which a loop along any of them has some turns."""
    some = {symbol: size + i for i, (symbol, size) in enumerate(_some_turns(axes, least).items())}
    return replace(axes, example=axes.clamp({symbol: max(size, some[symbol]) for symbol, size in axes.example.items()}))


def lengths(axes: SizeDomain, most: int = 0) -> Iterator[SizeAssignment]:
    """Yield the settings at which loops are run: those of any module but the least, and a long one."""
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
    """Sizes of some turns. Where one axis is known to be taken in parts, it is long, so the others are short."""
    if not axes.chunk_sizes:
        return dict.fromkeys(axes.example, max(least, LEAST if len(axes.example) == 1 else LEAST_OF_SEVERAL))
    return {symbol: max(PARTS, least) * axes.chunk_sizes.get(symbol, 1) for symbol in axes.example}


class OtherSide(Exception):
    """A test of a value comes out another way than on the path that a graph shows."""


class Replay(torch.fx.Interpreter):
    """Calls a graph whose arguments hold sizes as expressions; what an interpreter does around each call takes longer than most calls."""

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
        """Take an argument; the number of a turn is one."""
        if isinstance(node.meta["val"], torch.SymInt):
            self._numbers[expression(node.meta["val"])] = value
        return value

    def _run_call(self, node: torch.fx.Node) -> Any:
        """Make a call; a loop without any turn returns what it is given, and lists as empty as their sizes say."""
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
        """Take what values decide from the result of a call."""
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
    """Hold a program with loops against its model where these have few turns, or none.

    Returns:
        What the model takes and the program does not; nothing if there is nothing.

    Raises:
        TraceUnsupported: they differ.
    """
    limits: tuple[str, ...] = ()
    for setting in _settings(program, axes):
        arguments = axes.at(program.example_inputs, setting, run=1)
        try:
            wanted = _leaves(model(*arguments[0], **arguments[1]))
        except Exception:  # noqa: BLE001 - a size that the model does not take
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
    """Return whether a program returns for arguments of these sizes what its model returns, but for rounding; None where that raises."""
    own = pytree.tree_map_only(torch.Tensor, torch.Tensor.clone, arguments)
    with (
        _fix_seed(),
        restore_module_state(model),
        torch._C.DisableTorchFunction(),
    ):  # a mode that notes indexing as it is written has no part in it
        try:
            wanted = _leaves(model(*arguments[0], **arguments[1]))
        except Exception:  # noqa: BLE001 - a size that the model does not take
            return None
    found = _found(program, own, setting)
    return found is not None and equal_leaves(wanted, found)


def has_side_without_rows(axes: SizeDomain) -> bool:
    """Return whether sizes of 0 are a side of their own where a program is wrong there: where one size moves and is tested."""
    return len(axes.example) == 1 and bool(axes.conditions)


def has_loops(program: RunProgram) -> bool:
    """Return whether a program has a loop that is rolled up."""
    return bool(program.graph.find_nodes(op="call_function", target=turns))


def _settings(program: RunProgram, axes: SizeDomain) -> Iterator[SizeAssignment]:
    """Yield sizes at which loops have few turns: none, and the least and the largest at which any has no, one or two."""
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
    """This size of each axis; where one is known to be taken in parts, of that one, and the others are short."""
    return {symbol: size if symbol in axes.chunk_sizes or not axes.chunk_sizes else min(size, FEW[-2]) for symbol in axes.example}


def _found(program: RunProgram, arguments: Any, setting: SizeAssignment) -> list[Any] | None:
    try:
        with _fix_seed(), torch._C.DisableTorchFunction():
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
    """Yield what the graph of a program takes for these arguments: state, constants, and what is given."""
    given = iter(pytree.tree_leaves(arguments))
    for spec in program.graph_signature.input_specs:
        held = program.constants if spec.kind == InputKind.CONSTANT_TENSOR or spec.target not in program.state_dict else program.state_dict
        yield next(given) if spec.kind == InputKind.USER_INPUT else held[str(spec.target)]


def equal_leaves(wanted: Sequence[Any], found: Sequence[Any]) -> bool:
    """Return whether results are those that are wanted, but for rounding."""
    return len(wanted) == len(found) and all(map(_equal, wanted, found))


def _equal(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor):
        return bool(one == other)
    return one.shape == other.shape and one.dtype == other.dtype and torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)
