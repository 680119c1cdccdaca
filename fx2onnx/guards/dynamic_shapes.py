"""Compare the dynamic axes that `dynamic_shapes` declares with what the capture made of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy
import torch
from torch import nn
from torch.export import Dim

from ..arguments import check_ends
from ..caches import entries_told
from ..compat import trees as pytree
from ..compat.operators import OpOverload
from ..compat.shape_env import ShapeEnv, SLoc
from ..compat.symbols import FloorDiv
from ..errors import CaptureError, FrozenDimension, first_sentence, users_line
from ..ir.expressions import Size, expression
from .decisions import Ranges, decide, is_implied, or_is_small, range_of, ranges_of_root
from .dims import DynamicDim, format_with_names, moves
from .guard_origin import is_own, source_line
from .specialization import SpecializationGuard
from .witnesses import LARGEST_RUN, SAMPLE_SIZES, DimOf, sizes_near, witness_sizes

SPLITS = (torch.ops.aten.split.Tensor, torch.ops.aten.unsafe_split.Tensor)
CHUNKS = (torch.ops.aten.chunk.default, torch.ops.aten.unsafe_chunk.default)
UNBINDS = (torch.ops.aten.unbind.int,)
SQUEEZES = tuple(getattr(op, kind) for op in (torch.ops.aten.squeeze, torch.ops.aten.squeeze_) for kind in ("default", "dim", "dims"))
NAME = re.compile(r"[^\W\d]\w*")  # in `9*k + 1`
ADVICE = "Export one model per case, use torch.cond, or accept the restriction with"


@dataclass(frozen=True)
class OpenGuard:
    """A test of sizes with different outcomes in its range: the outcome, axes, line, and whether it specialised a size."""

    test: sympy.Basic
    dims: Mapping[sympy.Symbol, DynamicDim]
    line: str
    is_of_a_number: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the axes."""
        return list(dict.fromkeys(dim.name for dim in self.dims.values()))

    @property
    def ranges(self) -> dict[sympy.Symbol, tuple[int, int]]:
        """The ranges of the sizes in the test."""
        return {symbol: range_of(dim) for symbol, dim in self.dims.items()}

    def error(self) -> FrozenDimension:
        """Return the error."""
        names = " and ".join(f'"{name}"' for name in self.names)
        return FrozenDimension(
            f"{names} {'was' if len(self.names) == 1 else 'were'} asked to be dynamic but {range_text(self.dims, self.test)} is exported: "
            f"{self._how}. {ADVICE} accept_ranges={quote_names(self.names)}."
        )

    @property
    def _how(self) -> str:
        if self.is_of_a_number:
            return f"it is converted to a Python number{' at ' if self.line else ' by torch'}{self.line}"
        return f"the test at {self.line} chose one branch"


Captured = nn.Module | torch.export.ExportedProgram
DimSize = tuple[DynamicDim, Size]


def quote_names(names: Iterable[str]) -> str:
    """Return a tuple of names in Python syntax."""
    listed = [f'"{name}"' for name in names]
    return f"({', '.join(listed)}{',' * (len(listed) == 1)})"


def dynamic_dims(module: Captured, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any) -> list[DynamicDim]:
    """Return every tensor axis that `dynamic_shapes` declares as dynamic.

    Raises:
        CaptureError: If `dynamic_shapes` does not match the arguments.
    """
    found: list[DynamicDim] = []

    def look(path: pytree.KeyPath, leaf: Any, declared: Any) -> None:
        axes = declared.items() if isinstance(declared, dict) else enumerate(declared or ()) if isinstance(leaf, torch.Tensor) else ()
        found.extend(_dynamic_dim(leaf, _axis_of(leaf, axis, path), dim, path) for axis, dim in axes if moves(dim))

    _each_leaf(module, args, kwargs, dynamic_shapes, look)
    return found


def moving_numbers(module: Captured, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any) -> list[str]:
    """Return the arguments that are not tensors and that `dynamic_shapes` declares as dynamic.

    Raises:
        CaptureError: If `dynamic_shapes` does not match the arguments.
    """
    found: list[str] = []

    def look(path: pytree.KeyPath, leaf: Any, declared: Any) -> None:
        if moves(declared):
            found.append(_format_path(path))

    _each_leaf(module, args, kwargs, dynamic_shapes, look)
    return found


def _each_leaf(module: Captured, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, look: Callable[..., None]) -> None:
    """Call `look` with the path, the value and the `dynamic_shapes` entry of every argument."""
    if dynamic_shapes is not None and not isinstance(dynamic_shapes, (tuple, list, dict)):
        raise CaptureError(f"dynamic_shapes is a {type(dynamic_shapes).__name__}: pass a tuple in the order of the arguments, or a dict")
    if not dynamic_shapes:
        return
    from ..compat.exporting import combine_args, tree_map_with_path

    check_ends(dynamic_shapes)
    try:
        combined = combine_args(module, args, kwargs)
    except TypeError as error:
        raise CaptureError(f"forward does not accept the arguments: {error}") from error
    if isinstance(dynamic_shapes, (tuple, list)):
        if len(dynamic_shapes) != len(combined):
            raise CaptureError(f"dynamic_shapes does not match the arguments: {len(dynamic_shapes)} entries for {', '.join(combined)}")
        dynamic_shapes = dict(zip(combined, dynamic_shapes, strict=True))
    try:
        tree_map_with_path(look, combined, dynamic_shapes, tree_name="inputs")
    except Exception as error:
        told = f"{first_sentence(error)}{entries_told(combined | kwargs)}"  # a cache in `**kwargs` too
        raise CaptureError(f"dynamic_shapes does not match the arguments: {told}") from error


def _axis_of(leaf: torch.Tensor, axis: Any, path: pytree.KeyPath) -> int:
    """The axis, which has to be in range and not negative, because torch.export ignores others."""
    if not isinstance(leaf, torch.Tensor):
        raise ValueError(f"{_format_path(path)} is not a tensor, so it has no axes")
    if type(axis) is int and 0 <= axis < leaf.dim():
        return axis
    advice = f"; write {axis + leaf.dim()} instead" if type(axis) is int and 0 <= axis + leaf.dim() < leaf.dim() else ""
    raise ValueError(f"axis {axis!r} is not an axis of {_format_path(path)}, which has {leaf.dim()} axes, counted from 0{advice}")


def _format_path(path: pytree.KeyPath) -> str:
    return pytree.keystr(path[:1]).strip("[]").strip(chr(39)) + pytree.keystr(path[1:])


def _dynamic_dim(leaf: torch.Tensor, axis: int, dim: Any, path: pytree.KeyPath) -> DynamicDim:
    if isinstance(dim, str):
        return DynamicDim(id(leaf), axis, dim)
    if isinstance(dim, Dim):
        ends = getattr(dim, "min", 0), getattr(dim, "max", None)
        return DynamicDim(id(leaf), axis, dim.__name__, *ends, derived=hasattr(dim, "root"))
    return DynamicDim(id(leaf), axis, f"axis {axis} of {_format_path(path)}", dim.min or 0, dim.max, named=False)


def symbol_of(program: torch.export.ExportedProgram, given: Sequence[Any], dim: DynamicDim) -> Size | None:
    """Return the size of this axis in the capture, as an integer or expression; None if the tensor is not an input."""
    node = _input_of(program, given, dim)
    value = node.meta.get("val") if node is not None else None
    return expression(value.shape[dim.axis]) if isinstance(value, torch.Tensor) else None


def _input_of(program: torch.export.ExportedProgram, given: Sequence[Any], dim: DynamicDim) -> torch.fx.Node | None:
    names = program.graph_signature.user_inputs
    position = next((i for i, leaf in enumerate(given) if id(leaf) == dim.tensor), None)
    if position is None or position >= len(names):
        return None
    return next((node for node in program.graph.nodes if node.name == names[position]), None)


def what_became_constant(program: torch.export.ExportedProgram, given: Sequence[Any], dims: Sequence[DynamicDim]) -> tuple[str, list[str]]:
    """Return which axes a capture made constant and at which line, as text, and their names."""
    lines = {str(number): source_line(sloc) for sloc, number in _list_specialisations(program)}
    texts: dict[str, None] = {}
    names: list[str] = []
    for dim in dims:
        size = symbol_of(program, given, dim)
        if isinstance(size, int):
            reader = next((user for node in [_input_of(program, given, dim)] if node is not None for user in node.users), None)
            line = lines.get(str(size)) or (users_line(reader) if reader is not None else "")
            texts[f'"{dim.name}" was asked to be dynamic but is the constant {size}{" after " if line else ""}{line}.'] = None
            names.append(dim.name)
    return " ".join(texts), list(dict.fromkeys(names))


def _list_specialisations(program: torch.export.ExportedProgram) -> list[tuple[SLoc, sympy.Expr]]:
    environment = shape_environment(program)
    return [(sloc, environment.replacements[symbol]) for symbol, sloc in environment.replacements_slocs.items()] if environment else []


def check_dynamic_dims(
    program: torch.export.ExportedProgram, symbols: Sequence[DimSize], accepted: Sequence[str], environment: ShapeEnv | None = None
) -> None:
    """Check that every dynamic axis is still dynamic after the capture.

    Args:
        environment: contains the guards; None for that of the program.

    A guard in the user's code must hold at all sizes from 1. One in an installed library need only hold from 2, as torch.export
    guarantees, because libraries test `size > 1` without consequences.

    Raises:
        FrozenDimension: If one is constant, equals another one of a different name, or lost sizes to a branch in Python.
    """
    ranges = {root: ends for dim, found in symbols if not isinstance(found, int) for root, ends in ranges_of_root(dim, found).items()}
    for dim, found in symbols:
        if dim.name in accepted:
            continue
        prefix = f'"{dim.name}" was asked to be dynamic but '
        if isinstance(found, int):
            raise FrozenDimension(f"{prefix}is exported as the constant {found}. {ADVICE} accept_ranges={quote_names([dim.name])}.")
        if other := _equal_to(dim, found, symbols):
            raise FrozenDimension(
                f'{prefix}the capture made it equal to "{other}": tensors with these sizes are combined element by element. '
                f"Give both dimensions the same name, or accept the restriction with accept_ranges={quote_names([dim.name, other])}."
            )
        if parts := _number_of_parts(program, found, ranges) or _find_squeeze(program, dim, found):
            raise FrozenDimension(f"{prefix}{parts} {ADVICE} accept_ranges={quote_names([dim.name])}.")
    _check_tests(environment or shape_environment(program), symbols, accepted)


def _check_tests(environment: ShapeEnv | None, symbols: Sequence[DimSize], accepted: Sequence[str]) -> None:
    """Check each guard in Python code outside torch at all sizes of its range.

    Raises:
        FrozenDimension: If one does not hold.
    """
    for found in open_guards(environment, symbols, accepted) if environment is not None else ():
        raise found.error()


def open_guards(
    environment: ShapeEnv,
    symbols: Sequence[DimSize],
    accepted: Sequence[str],
    within: Sequence[sympy.Basic] = (),
    torchs: bool = False,
    libraries: bool = False,
) -> Iterator[OpenGuard]:
    """Yield each guard in Python code outside torch that has another outcome at a size in range.

    Args:
        within: tests that hold at the sizes considered.
        torchs: whether to include guards in torch's code.
        libraries: whether to treat installed libraries as the user's code, including size 1 and guards on several axes.
    """
    for guard in environment.guards:
        test, dims = _about(environment, guard.expr, symbols)
        found = OpenGuard(test, dims, source_line(guard.sloc) or "", isinstance(guard.sloc, SpecializationGuard))
        own = is_own(guard.sloc, libraries) or any(_is_between_tests(environment, symbol) for symbol in guard.expr.free_symbols)
        if not dims or len(dims) < len(test.free_symbols) or set(found.names) <= set(accepted):
            continue
        in_library = bool(found.line) and (len(dims) == 1 or _is_beyond_runs(found, within))
        if not (own or torchs or found.is_of_a_number or in_library):
            continue
        if not _is_implied(found, within, own):
            yield found


def _about(environment: ShapeEnv, test: sympy.Basic, symbols: Sequence[DimSize]) -> tuple[sympy.Basic, DimOf]:
    """Return a test, and the axes of its symbols.

    A symbol that later became equal to another is replaced by it. One that became a multiple of another, for example, remains an axis,
    because that may be the outcome of the test.
    """
    known = {found: dim for dim, found in symbols if not dim.derived} | {found: dim for dim, found in symbols if dim.derived}
    became = {symbol: symbol if _is_between_tests(environment, symbol) else environment.replace(symbol) for symbol in test.free_symbols}
    replaced = test.subs({old: new for old, new in became.items() if new.is_Atom or new not in known or known[new].derived})
    if replaced == sympy.true and set(test.free_symbols) <= set(known):
        return test, _sort_dims(known, test.free_symbols, symbols)  # the test itself made them equal
    test = replaced
    derived = ((dim, found) for found, dim in known.items() if dim.derived and not isinstance(found, int))
    roots = {
        root: replace(dim, least=least, most=most) for dim, found in derived for root, (least, most) in ranges_of_root(dim, found).items()
    }
    named = {symbol: known.get(became.get(symbol, symbol)) or roots.get(symbol) for symbol in test.free_symbols}
    return test, _sort_dims(named, test.free_symbols, symbols)


def _sort_dims(named: Mapping[sympy.Symbol, DynamicDim | None], of: Iterable[sympy.Symbol], symbols: Sequence[DimSize]) -> DimOf:
    """Return the axes of these symbols, in the order of declaration."""
    order = [(dim.tensor, dim.axis) for dim, _ in symbols]
    found = [(symbol, dim) for symbol in of if (dim := named[symbol]) is not None]
    return dict(sorted(found, key=lambda pair: order.index((pair[1].tensor, pair[1].axis))))


def _is_between_tests(environment: ShapeEnv, symbol: sympy.Symbol) -> bool:
    """Return whether two tests, such as `n >= 3` and `n < 4`, leave one size, and no test made the symbol a number."""
    equal = (guard.expr for guard in environment.guards if isinstance(guard.expr, sympy.Eq))
    return bool(environment.replace(symbol).is_number) and not any(symbol in test.free_symbols for test in equal)


def _equal_to(dim: DynamicDim, found: Size, symbols: Sequence[DimSize]) -> str | None:
    others = (o.name for o, size in symbols if size == found and o.named and dim.named and o.name != dim.name)
    return next(others, None)


def _number_of_parts(program: torch.export.ExportedProgram, found: sympy.Expr, ranges: Ranges) -> str | None:
    """Describe the first `split`, `chunk` or `unbind` whose number of parts depends on the size, because it is exported as a constant."""
    of_export = isinstance(program, torch.export.ExportedProgram)  # traced runs check each `unbind` at all sizes
    for node in _calls(program, SPLITS + CHUNKS + (UNBINDS if of_export else ())):
        arguments: tuple[Any, ...] = (*node.args, node.kwargs.get("dim", 0))
        x, number, axis = arguments[:3] if node.target not in UNBINDS else (arguments[0], 1, arguments[1])
        number = number.meta["val"] if isinstance(number, torch.fx.Node) else number
        size, length = (sympy.sympify(expression(value)) for value in (x.meta["val"].shape[axis], number))
        length = FloorDiv(size + length - 1, length) if node.target in CHUNKS else length
        if node.target not in UNBINDS and all(isinstance(part.shape[axis], int) for part in node.meta["val"]):
            continue  # after a test that leaves one size
        ends = {
            symbol: (max(2, least), most) for symbol, (least, most) in ranges.items() if symbol in size.free_symbols | length.free_symbols
        }
        if found.free_symbols <= ends.keys() and _parts_differ(ends, size, length, len(node.meta["val"])):
            return f"only sizes that give {len(node.meta['val'])} parts are exported: it is split at {users_line(node)}."
    return None


def _find_squeeze(program: torch.export.ExportedProgram, dim: DynamicDim, found: sympy.Expr) -> str | None:
    """Describe the first `squeeze` that removes an axis only at some sizes, because exported values have a fixed rank."""
    for node in _calls(program, SQUEEZES):
        arguments: tuple[Any, ...] = node.args
        shape = arguments[0].meta["val"].shape
        axes = arguments[1] if len(arguments) > 1 else range(len(shape))
        for size in (sympy.sympify(expression(shape[axis])) for axis in ([axes] if isinstance(axes, int) else axes) if shape):
            if size.free_symbols == found.free_symbols and not is_implied(sympy.Ne(size, 1), ranges_of_root(dim, found)):
                return f"only sizes at which `squeeze` removes no axis are exported: it is called at {users_line(node)}."
    return None


def _calls(program: torch.export.ExportedProgram, targets: Sequence[OpOverload]) -> Iterator[torch.fx.Node]:
    """Return the calls of these operators, including those inside `cond` and similar operators."""
    graphs = [module.graph for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule)]
    nodes = (node for graph in graphs for target in targets for node in graph.find_nodes(op="call_function", target=target))
    return (node for node in nodes if isinstance(node.all_input_nodes[0].meta.get("val"), torch.Tensor))


def _parts_differ(ranges: Ranges, size: sympy.Expr, length: sympy.Expr, count: int) -> bool:
    """Return whether the number of parts ever differs from `count`; for sizes below 2, torch.export guarantees nothing.

    Ranges cannot prove parts whose length depends on several sizes, so only a counterexample counts for these.
    """
    alike = sympy.Or(sympy.Eq(FloorDiv(size + length - 1, length), count), size <= 0, length <= 0)
    least, most = max(least for least, _ in ranges.values()), min(most for _, most in ranges.values())
    tried = (dict.fromkeys(ranges, n) for n in (*SAMPLE_SIZES, *sizes_near(alike, besides=SAMPLE_SIZES)) if least <= n <= most)
    decision = decide(alike, ranges, tried=tried)
    return decision.counterexample is not None or not (decision.implied or len(length.free_symbols) > 1)


def range_text(dims: Mapping[sympy.Symbol, DynamicDim], test: sympy.Basic) -> str:
    """Return a test of sizes with the names of the axes; for an axis `9 * k`, with `k`, whose symbol is in the test."""
    return "only " + format_with_names(test, {symbol: _root_of(dim) for symbol, dim in dims.items()})


def _root_of(dim: DynamicDim) -> str:
    found = NAME.search(dim.name) if dim.derived else None
    return found[0] if found else dim.name


def _is_beyond_runs(found: OpenGuard, within: Sequence[sympy.Basic]) -> bool:
    """Return whether no sizes are known that can be run and give a guard of a library another outcome."""
    ranges = {symbol: (least, min(most, LARGEST_RUN)) for symbol, (least, most) in found.ranges.items()}
    return decide(found.test, ranges, within).counterexample is None


def _is_implied(found: OpenGuard, within: Sequence[sympy.Basic], own: bool) -> bool:
    """Return whether a test holds at all sizes in range; False if undecided.

    Outside the user's code, sizes below 2 are ignored.
    """
    goal = found.test if own else or_is_small(found.test, found.is_of_a_number)
    return is_implied(goal, found.ranges, within, witness_sizes(dict(found.dims), found.test))


def shape_environment(program: torch.export.ExportedProgram) -> ShapeEnv | None:
    """Return the `ShapeEnv` of the capture; None if there is none."""
    for node in program.graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None and mode.shape_env is not None:
            return mode.shape_env
    return None
