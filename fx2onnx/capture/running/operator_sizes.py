"""Sizes that operators say themselves: of slices by rule, of others by a call with tensors that have no elements, and symbols for sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import sympy
import torch
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._sympy.functions import CeilToInt, FloatTrueDiv, FloorDiv, Max, Min, ToFloat, TruncToInt

from ...build.values import Size, at_sizes, expression, sizes_of
from .explain import Ambiguous
from .lines import Environment, line_in
from .program import Described
from .refusal import CannotRun, SeenByRunsAlone
from .sample import Axes, Setting, environment_of, new_symbol

STEPPING = ("conv", "pool", "unfold", "im2col", "upsample", "slice", "arange", "linspace", "pad", "stft", "split", "chunk", "diag")
FURTHER = (0, 1, 2, 3, 7, 60, 1000, 4000)  # how much larger than the example a size is, where what torch decided is tried
FURTHEST = 60  # how much larger it is run for that
SLICE_END = 2**31
EXAMPLE = "example"  # in the `meta` of a graph module: the sizes of the example, by name
Sizes = list[tuple[Size, ...] | None]


class OperatorSizes:
    """Works out the sizes of results from those of the arguments, in an environment of its own.

    Args:
        settings: at which the module was run, so that what comes out another way at one of them was seen.
    """

    def __init__(self, axes: Axes, settings: Sequence[Setting]) -> None:
        self._axes, self._example, self._settings = axes, axes.example, settings

    def of(self, node: torch.fx.Node) -> Sizes:
        """Return the sizes of each result of a call; none where torch cannot say.

        Raises:
            Ambiguous, CannotRun: torch decides something by a size that is larger than the example, no run shows what it does then, and
                other sizes come of it.
        """
        if (rule := RULES.get(node.target)) is not None and (sizes := rule(node)) is not None:
            return [sizes]
        made, tests = self._told(node)
        if made is None:
            return []
        if not steps(node.target):  # type: ignore[arg-type]  # all that others decide is whether sizes are equal, as eager needs them to be
            return made
        for test in tests:
            seen = all(at_sizes(test, setting) == sympy.true for setting in self._settings)
            other = next((setting for setting in self._larger(test) if at_sizes(test, setting) == sympy.false), None)
            if seen and other is not None and not self._tells_the_same_at(other, node, made):
                if all(size - self._example[symbol] <= FURTHEST for symbol, size in other.items()):
                    raise Ambiguous(other)
                raise CannotRun(
                    f"the result size of {node.target} depends on a condition that is true in all runs: {self._axes.said(test)}"
                )
        return made

    def _told(self, node: torch.fx.Node) -> tuple[Sizes | None, list[sympy.Basic]]:
        """Return what torch says, nothing where it cannot, and the tests that it makes of sizes; each call is made once."""
        leaves, spec = pytree.tree_flatten((node.args, dict(node.kwargs)))
        key = node.target, spec, *self._example.items(), *((type(leaf), _known_of(leaf)) for leaf in leaves)
        if key not in self._axes.worked_out:
            self._axes.worked_out[key] = self._called(node)
        found: tuple[Sizes | None, list[sympy.Basic]] = self._axes.worked_out[key]
        return found

    def _called(self, node: torch.fx.Node) -> tuple[Sizes | None, list[sympy.Basic]]:
        environment = environment_of(self._example, self._axes.names)
        try:
            with torch._C.DisableTorchFunction(), torch.no_grad(), FakeTensorMode(shape_env=environment):
                args, kwargs = pytree.tree_map(partial(self._argument, environment), (node.args, dict(node.kwargs)))
                results = pytree.tree_leaves(node.target(*args, **kwargs))  # type: ignore[operator]
            made = [sizes_of(result) if isinstance(result, torch.Tensor) else None for result in results]
        except Exception:  # noqa: BLE001 - it is one way of several to learn a size, and each is held against what the runs gave
            return None, []
        return made, [guard.expr for guard in environment.guards]

    def _tells_the_same_at(self, setting: Setting, node: torch.fx.Node, made: Sizes) -> bool:
        """Whether what was decided makes no difference to the sizes: convolutions choose a kernel by size and threads."""
        return OperatorSizes(replace(self._axes, example=setting), self._settings)._told(node)[0] == made

    def _larger(self, test: sympy.Basic) -> Iterator[Setting]:
        """The sizes that a test is tried at; those that it does not ask for are as in the example."""
        further = FURTHER if len(self._example) < 3 else FURTHER[:4]
        asked = [symbol for symbol in self._example if symbol in test.free_symbols]
        for more in product(further, repeat=len(asked)):
            yield self._example | {symbol: self._example[symbol] + n for symbol, n in zip(asked, more, strict=True)}

    def _argument(self, environment: Environment, leaf: Any) -> Any:
        def number(size: Any) -> Any:
            return size if isinstance(size, int) else environment.create_symintnode(size, hint=int(size.subs(self._example)))

        if isinstance(leaf, torch.fx.Node):
            value = leaf.meta["val"]
            return torch.empty([number(size) for size in value.sizes], dtype=value.dtype) if isinstance(value, Described) else value
        return number(leaf) if isinstance(leaf, sympy.Basic) else leaf


def _known_of(leaf: Any) -> Any:
    """What is known of an argument, that it can be looked up by."""
    values = pytree.tree_leaves(leaf.meta["val"]) if isinstance(leaf, torch.fx.Node) else [leaf]
    return tuple((value.sizes, value.dtype) if isinstance(value, Described) else expression(value) for value in values)


def fakes_of(node: torch.fx.Node) -> tuple[list[Any], tuple[Any, ...], dict[str, Any]]:
    """Return what the argument nodes of a node hold, and its arguments, for torch to compute with.

    What a run described becomes a tensor without elements, and an expression a number, in an environment of their own.
    """
    values = [argument.meta["val"] for argument in node.all_input_nodes]
    described = [value for value in pytree.tree_leaves(values) if isinstance(value, Described)]
    example = node.graph.owning_module.meta.get(EXAMPLE) if node.graph.owning_module is not None else None
    if not described or example is None:
        return values, node.args, dict(node.kwargs)
    environment = Environment()
    sizes = {new_symbol(environment, name, size): size for name, size in example.items()}
    decided: dict[sympy.Basic, sympy.Basic] = {}  # of what values decide, and its name there

    def number(size: Any) -> Any:
        for symbol in size.free_symbols - set(sizes) - set(decided):
            decided[symbol] = environment.create_unbacked_symint().node.expr
        hint = None if size.free_symbols & set(decided) else int(size.subs(sizes))
        return environment.create_symintnode(size.subs(decided), hint=hint)

    def fake(value: Any) -> Any:
        if not isinstance(value, Described):
            return value
        return torch.empty([size if isinstance(size, int) else number(size) for size in value.sizes], dtype=value.dtype)

    with FakeTensorMode(shape_env=environment):
        fakes = pytree.tree_map(fake, values)
    args, kwargs = pytree.tree_map_only(sympy.Basic, number, (node.args, dict(node.kwargs)))
    return fakes, args, kwargs


def steps(op: torch._ops.OpOverload) -> bool:
    """Return whether an operator goes along an axis in steps, so that a few sizes may all give the same."""
    return any(part in op._opname for part in STEPPING)


def check_parts(node: torch.fx.Node, parts: int, axes: Axes, line: str) -> None:
    """Refuse to cut an axis into as many parts as all runs show, where there are more at other sizes; fewer are an error of the file.

    Raises:
        SeenByRunsAlone: it is.
    """
    number = _number_of_parts(node)
    for setting in axes.tried(number.free_symbols) if isinstance(number, sympy.Basic) else ():
        there = number.subs(setting)
        if not there.is_number or there > parts:
            raise SeenByRunsAlone(
                f"{node.target} at {line_in(line)} returns {parts} parts in all runs, but {axes.said(there)} at {axes.shown(setting)}"
            )


def _number_of_parts(node: torch.fx.Node) -> Any:
    """Into how many parts it cuts an axis, where that follows from the size of the axis; None for other operators."""
    if node.target not in (aten.unbind.int, aten.split.Tensor):
        return None
    given: tuple[Any, ...] = (*node.args, node.kwargs.get("dim", 0))
    x, *length, axis = given[: 2 if node.target is aten.unbind.int else 3]
    size = x.meta["val"].sizes[axis]
    return _in_steps(size + length[0] - 1, length[0]) if length else size


def has_symbols(leaves: Sequence[Any]) -> bool:
    """Return whether a size is among the arguments of a call."""
    return any(isinstance(leaf, sympy.Basic) for leaf in leaves)


def moving(arguments: Sequence[torch.fx.Node]) -> bool:
    """Return whether the sizes of any of these move."""
    values = (node.meta.get("val") for node in arguments)
    return any(not isinstance(size, int) for value in values if isinstance(value, Described) for size in value.sizes)


def _of_a_convolution(node: torch.fx.Node) -> tuple[Size, ...] | None:
    """How often the window fits along each axis; None where strings, symbols or keywords say that."""
    given: tuple[Any, ...] = (*node.args, *(None,) * 4)
    x, weight, _, *rest = given
    sizes, (channels, _, *kernel) = x.meta["val"].sizes, weight.meta["val"].sizes
    axes = len(kernel)
    windows = [kernel] + [_for_each(asked, default, axes) for asked, default in zip(rest, (1, 0, 1), strict=False)]
    if node.kwargs or not all(isinstance(number, int) for window in windows for number in window):
        return None
    fit = [_in_steps(size + 2 * p - d * (k - 1) - 1, s) + 1 for size, k, s, p, d in zip(sizes[-axes:], *windows, strict=True)]
    return (*sizes[: -axes - 1], channels, *fit)


def _for_each(asked: Any, default: int, axes: int) -> list[Any]:
    """What is asked for each axis: one for all, or one for each."""
    asked = [default] if asked is None else asked if isinstance(asked, (list, tuple)) else [asked]
    return list(asked) * axes if len(asked) == 1 else list(asked)


def _of_an_einsum(node: torch.fx.Node) -> tuple[Size, ...] | None:
    """By the letters of its equation; None where dots or no arrow leave it to torch, which asks much of sizes that are expressions."""
    equation, operands = str(node.args[0]).replace(" ", ""), node.args[1]
    given, arrow, wanted = equation.partition("->")
    if not arrow or "." in equation:
        return None
    sizes: dict[str, Size] = {}
    for letters, operand in zip(given.split(","), operands, strict=True):  # type: ignore[arg-type]
        for letter, size in zip(letters, operand.meta["val"].sizes, strict=True):
            if sizes.get(letter, 1) == 1:
                sizes[letter] = size
    return tuple(sizes[letter] for letter in wanted)


def _of_the_first(node: torch.fx.Node) -> tuple[Size, ...]:
    return tuple(node.args[0].meta["val"].sizes)  # type: ignore[union-attr]


def _of_an_adaptive_pool(node: torch.fx.Node) -> tuple[Size, ...] | None:
    given: tuple[Any, ...] = node.args
    x, asked = given[:2]
    if not isinstance(asked, (list, tuple)) or not all(isinstance(size, int) for size in asked):
        return None
    return (*x.meta["val"].sizes[: -len(asked)], *asked)


def _of_a_resize(node: torch.fx.Node) -> tuple[Size, ...] | None:
    """Of an image by scales, some of which follow from sizes; None where none does, and torch says it."""
    x, scales = node.args[0], node.args[-1]
    if not isinstance(scales, (list, tuple)) or not has_symbols(scales):
        return None
    sizes: tuple[Size, ...] = x.meta["val"].sizes  # type: ignore[union-attr]
    scaled = [ToFloat(sympy.sympify(size)) * scale for size, scale in zip(sizes[2:], scales, strict=True)]
    return (*sizes[:2], *(int(size) if size.is_number else TruncToInt(size) for size in scaled))


def _of_a_range(node: torch.fx.Node) -> tuple[Size, ...] | None:
    """Of `arange`; None where torch says it."""
    start, end, step = (0, *node.args, 1) if len(node.args) == 1 else (*node.args, 1)[:3]
    if any(isinstance(number, sympy.Expr) and not number.is_integer for number in (start, end, step)):
        whole = _in_float(end) - start if start else _in_float(end)
        return (CeilToInt(whole if step == 1 else FloatTrueDiv(whole, _in_float(step))),)
    if step != 1:
        return None
    if not all(isinstance(bound, int) or (isinstance(bound, sympy.Expr) and bound.is_integer) for bound in (start, end)):
        return None
    length: Any = end - start  # type: ignore[operator]
    return (length,) if (length >= 0) in (True, sympy.true) else None


def _in_float(number: Any) -> Any:
    told = sympy.sympify(number)
    return ToFloat(told) if told.is_integer else told


def _of_a_triangle(node: torch.fx.Node) -> tuple[Size, ...] | None:
    """Two positions of each entry of a square's triangle, above or below a diagonal; None where another thing is asked."""
    rows, columns, offset = (*node.args, node.kwargs.get("offset", 0))[:3]
    if rows != columns or not isinstance(offset, int):
        return None
    if node.target is aten.triu_indices.default:
        return 2, _entries_above(rows, offset)
    return 2, rows * rows - _entries_above(rows, offset + 1)  # type: ignore[operator]


def _entries_above(rows: Any, offset: int) -> Any:
    """How many entries of a square lie on this diagonal or above it."""
    if offset <= 0:
        return rows * rows - _triangle(_positive(rows + offset - 1))
    return _triangle(_positive(rows - offset))


def _triangle(side: Any) -> Any:
    return _in_steps(side * (side + 1), 2)


def _of_a_slice(node: torch.fx.Node) -> tuple[Size, ...]:
    """From `start` up to `end`, both within the axis, in steps."""
    arguments: tuple[Any, ...] = (*node.args, *(None,) * 5)
    x, dim, start, end, step = arguments[:5]
    sizes = list(x.meta["val"].sizes)
    axis = (dim or 0) % len(sizes)
    first, last = _within(start or 0, sizes[axis]), _within(SLICE_END if end is None else end, sizes[axis])
    length, step = _positive(last - first), step or 1
    sizes[axis] = _in_steps(length + step - 1, step)
    return tuple(sizes)


def _within(at: Any, size: Any) -> Any:
    """Where a position lies on an axis: counted from its end if it is negative, and never outside."""
    if isinstance(at, int) and at >= SLICE_END:
        return size
    if isinstance(at, int) and isinstance(size, int):
        return min(max(at + size if at < 0 else at, 0), size)
    if at == 0 or at == size:
        return at
    from_end = at < 0 if isinstance(at, int) else at.is_negative
    return _positive(size + at) if from_end else Min(at, size)


def _positive(size: Any) -> Any:
    if isinstance(size, int) or size.is_number:
        return max(int(size), 0)
    return size if size.is_nonnegative else Max(0, size)


def _in_steps(size: Any, step: Any) -> Any:
    if step == 1:
        return size
    return size // step if isinstance(size, int) and isinstance(step, int) else FloorDiv(size, step)


aten = torch.ops.aten
RESIZING = (
    *(f"{kind}{axes}d" for kind in ("upsample_nearest", "_upsample_nearest_exact") for axes in (1, 2, 3)),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
)
CONVOLUTIONS = (aten.conv1d.default, aten.conv2d.default, aten.conv3d.default)
ADAPTIVE_POOLS = (aten.adaptive_avg_pool1d.default, aten.adaptive_avg_pool2d.default, aten.adaptive_avg_pool3d.default)
RULES: dict[Any, Callable[[torch.fx.Node], tuple[Size, ...] | None]] = {
    aten.slice.Tensor: _of_a_slice,
    aten.einsum.default: _of_an_einsum,
    aten.cumsum.default: _of_the_first,
    aten.arange.default: _of_a_range,
    aten.arange.start: _of_a_range,
    aten.arange.start_step: _of_a_range,
    **dict.fromkeys((aten.triu_indices.default, aten.tril_indices.default), _of_a_triangle),
    **dict.fromkeys(CONVOLUTIONS, _of_a_convolution),
    **dict.fromkeys(ADAPTIVE_POOLS, _of_an_adaptive_pool),
    **{getattr(aten, name).vec: _of_a_resize for name in RESIZING},
}
