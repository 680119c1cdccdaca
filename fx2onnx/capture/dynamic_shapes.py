"""The axes that were asked to be dynamic, held against what the capture made of them. Not here: the capture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import sympy
import torch
from torch import nn
from torch.export import Dim
from torch.utils import _pytree as pytree
from torch.utils._sympy.functions import FloorDiv

from ..build.values import expression
from ..errors import INSTALLED, CaptureError, FrozenDimension, first_sentence, shown_path, users_line

PROBES = (*range(1, 70), 127, 128, 1000, 4097)
FEW_PROBES = (1, 2, 3, 5, 64)  # for each of several axes
TORCH_FILES = (
    "_decomp/",
    "_refs/",
    "_prims",
    "_meta_registrations",
    "_subclasses/",
    "_ops.py",
    "_export/",
    "_tensor.py",
    "fx/",
    "nn/",
    "export/",
)
SPLITS = (torch.ops.aten.split.Tensor, torch.ops.aten.unsafe_split.Tensor)
CHUNKS = (torch.ops.aten.chunk.default, torch.ops.aten.unsafe_chunk.default)
SQUEEZES = tuple(getattr(op, kind) for op in (torch.ops.aten.squeeze, torch.ops.aten.squeeze_) for kind in ("default", "dim", "dims"))
NOTED = re.compile(r"# (?P<file>.+):(?P<line>\d+) in (?P<function>\S+)$")
ADVICE = "Export one file for each case, use torch.cond, or accept it:"


@dataclass(frozen=True)
class DynamicDim:
    """One axis that was asked to be dynamic: the identity of its tensor, the axis, its name, and the range asked for."""

    tensor: int
    axis: int
    name: str
    least: int = 0
    most: int | None = None
    named: bool = True
    derived: bool = False  # from another, `2 * batch`


def moves(dim: Any) -> bool:
    """Whether this entry of `dynamic_shapes` asks for a dynamic axis."""
    return isinstance(dim, (str, Dim)) or dim is Dim.DYNAMIC


def in_quotes(names: Iterable[str]) -> str:
    """A tuple of names, as one would write it."""
    listed = [f'"{name}"' for name in names]
    return f"({', '.join(listed)}{',' * (len(listed) == 1)})"


def dynamic_dims(module: nn.Module, args: Any, kwargs: Any, dynamic_shapes: Any) -> list[DynamicDim]:
    """Every axis of a tensor that `dynamic_shapes` asks to be dynamic."""
    if not dynamic_shapes:
        return []
    from torch.export.dynamic_shapes import _combine_args, _tree_map_with_path

    combined = _combine_args(module, args, kwargs)
    if isinstance(dynamic_shapes, (tuple, list)):
        if len(dynamic_shapes) != len(combined):
            raise CaptureError(f"dynamic_shapes does not fit the arguments: {len(dynamic_shapes)} entries for {', '.join(combined)}")
        dynamic_shapes = dict(zip(combined, dynamic_shapes, strict=True))
    found: list[DynamicDim] = []

    def look(path: Any, leaf: Any, asked: Any) -> None:
        axes = asked.items() if isinstance(asked, dict) else enumerate(asked or ()) if isinstance(leaf, torch.Tensor) else ()
        found.extend(_asked(leaf, axis, dim, path) for axis, dim in axes if moves(dim))

    try:
        _tree_map_with_path(look, combined, dynamic_shapes, tree_name="inputs")
    except Exception as error:
        raise CaptureError(f"dynamic_shapes does not fit the arguments: {first_sentence(error)}") from error
    return found


def _asked(leaf: torch.Tensor, axis: int, dim: Any, path: Any) -> DynamicDim:
    if isinstance(dim, str):
        return DynamicDim(id(leaf), axis, dim)
    if isinstance(dim, Dim):
        ends = getattr(dim, "min", 0), getattr(dim, "max", None)
        return DynamicDim(id(leaf), axis, dim.__name__, *ends, derived=hasattr(dim, "root"))
    return DynamicDim(id(leaf), axis, f"axis {axis} of {pytree.keystr(path).strip('[]').strip(chr(39))}", named=False)


def symbol_of(program: torch.export.ExportedProgram, given: Sequence[Any], dim: DynamicDim) -> Any:
    """The size that the capture has for this axis: an integer or an expression; None when the tensor is no input."""
    node = _input_of(program, given, dim)
    value = node.meta.get("val") if node is not None else None
    return expression(value.shape[dim.axis]) if isinstance(value, torch.Tensor) else None


def _input_of(program: torch.export.ExportedProgram, given: Sequence[Any], dim: DynamicDim) -> torch.fx.Node | None:
    names = program.graph_signature.user_inputs
    position = next((i for i, leaf in enumerate(given) if id(leaf) == dim.tensor), None)
    if position is None or position >= len(names):
        return None
    return next((node for node in program.graph.nodes if node.name == names[position]), None)


def what_became_constant(program: torch.export.ExportedProgram, given: Sequence[Any], asked: Sequence[DynamicDim]) -> tuple[str, list[str]]:
    """Of a capture in which every axis may become constant: which did and at which line, and their names."""
    lines = {str(number): _place(sloc) for sloc, number in _specialised(program)}
    told: dict[str, None] = {}
    names: list[str] = []
    for dim in asked:
        size = symbol_of(program, given, dim)
        if isinstance(size, int):
            line = lines.get(str(size)) or users_line(next(iter(_input_of(program, given, dim).users)))
            told[f'"{dim.name}" was asked to be dynamic but is the constant {size} after {line}.'] = None
            names.append(dim.name)
    return " ".join(told), list(dict.fromkeys(names))


def _specialised(program: torch.export.ExportedProgram) -> list[tuple[Any, Any]]:
    environment = shape_environment(program)
    return [(sloc, environment.replacements[symbol]) for symbol, sloc in environment.replacements_slocs.items()] if environment else []


def check_ranges(program: torch.export.ExportedProgram, symbols: Sequence[tuple[DynamicDim, Any]], accepted: Sequence[str]) -> None:
    """Holds every axis that was asked to be dynamic against what the capture made of it.

    A test in the caller's own code must hold at every size from one on. One in an installed library need only hold from two on, which is
    what torch.export promises: libraries ask `size > 1` where nothing depends on it.

    Raises:
        FrozenDimension: one is constant, equals another one of a different name, or lost sizes to a branch in Python.
    """
    for dim, found in symbols:
        if dim.name in accepted:
            continue
        asked = f'"{dim.name}" was asked to be dynamic but '
        if isinstance(found, int):
            raise FrozenDimension(f"{asked}is exported as the constant {found}. {ADVICE} accept_ranges={in_quotes([dim.name])}.")
        if other := _forced(dim, found, symbols):
            raise FrozenDimension(
                f'{asked}the capture made it equal to "{other}": their tensors are combined, element by element. '
                f"Give both axes one name, or accept it: accept_ranges={in_quotes([dim.name, other])}."
            )
        if parts := _number_of_parts(program, dim, found) or _squeezed(program, dim, found):
            raise FrozenDimension(f"{asked}{parts} {ADVICE} accept_ranges={in_quotes([dim.name])}.")
    _check_tests(program, symbols, accepted)


def _check_tests(program: Any, symbols: Sequence[tuple[DynamicDim, Any]], accepted: Sequence[str]) -> None:
    """Each test in Python code outside torch, of one axis or comparing several, must hold at every size that is promised.

    Raises:
        FrozenDimension: one does not.
    """
    environment = shape_environment(program)
    for guard in environment.guards if environment else ():
        test, dims = _about(environment, guard.expr, symbols)
        names = list(dict.fromkeys(dim.name for dim in dims.values()))
        place, own = _place(guard.sloc), _is_own(guard.sloc)
        if not dims or len(dims) < len(test.free_symbols) or set(names) <= set(accepted) or not (own or (place and len(dims) == 1)):
            continue
        if not all(_holds(test, sizes, own) for sizes in _sizes(dims)):
            asked = " and ".join(f'"{name}"' for name in names)
            raise FrozenDimension(
                f"{asked} {'was' if len(names) == 1 else 'were'} asked to be dynamic but {_range_text(dims, test)} is exported: "
                f"the test at {place} chose one branch. {ADVICE} accept_ranges={in_quotes(names)}."
            )


def _about(environment: Any, test: Any, symbols: Sequence[tuple[DynamicDim, Any]]) -> tuple[Any, dict[Any, DynamicDim]]:
    """A test, and the axes that its symbols are.

    A symbol that became equal to another since is that one. One that became a multiple of another, say, is still an axis of its own:
    that may be what the test chose.
    """
    known = {found: dim for dim, found in symbols if not dim.derived} | {found: dim for dim, found in symbols if dim.derived}
    became = {symbol: environment.replace(symbol) for symbol in test.free_symbols}
    test = test.subs({old: new for old, new in became.items() if new.is_Atom or new not in known or known[new].derived})
    roots = {root: dim for found, dim in known.items() if dim.derived for root in found.free_symbols}
    named = {symbol: known.get(became.get(symbol, symbol)) or roots.get(symbol) for symbol in test.free_symbols}
    asked = [dim for dim, _ in symbols]
    return test, dict(sorted(((symbol, dim) for symbol, dim in named.items() if dim), key=lambda pair: asked.index(pair[1])))


def _sizes(dims: dict[Any, DynamicDim]) -> Iterator[dict[Any, int]]:
    """Sizes to try a test at, as many as there is time for."""
    probes = PROBES if len(dims) == 1 else FEW_PROBES
    each = ([n for n in probes if dim.least <= n <= (dim.most or n)] for dim in dims.values())
    return (dict(zip(dims, sizes, strict=True)) for sizes in product(*each))


def _forced(dim: DynamicDim, found: Any, symbols: Sequence[tuple[DynamicDim, Any]]) -> str | None:
    others = (o.name for o, size in symbols if size == found and o.named and dim.named and o.name != dim.name)
    return next(others, None)


def _number_of_parts(program: torch.export.ExportedProgram, dim: DynamicDim, found: Any) -> str | None:
    """The first `split` or `chunk` of this axis that has another number of parts at another size: the file has those of the example."""
    for node in _calls(program, SPLITS + CHUNKS):
        x, number, axis = (*node.args, node.kwargs.get("dim", 0))[:3]
        number = number.meta["val"] if isinstance(number, torch.fx.Node) else number
        size, length = (sympy.sympify(expression(value)) for value in (x.meta["val"].shape[axis], number))
        length = FloorDiv(size + length - 1, length) if node.target in CHUNKS else length
        if size.free_symbols | length.free_symbols == found.free_symbols and _parts_differ(dim, size, length, len(node.meta["val"])):
            return f"only sizes that make {len(node.meta['val'])} parts are exported: it is cut at {users_line(node)}."
    return None


def _squeezed(program: torch.export.ExportedProgram, dim: DynamicDim, found: Any) -> str | None:
    """The first `squeeze` that takes an axis away at some size and keeps it at others: a value of a file has as many axes at all sizes."""
    for node in _calls(program, SQUEEZES):
        shape = node.args[0].meta["val"].shape
        axes = node.args[1] if len(node.args) > 1 else range(len(shape))
        for size in (sympy.sympify(expression(shape[axis])) for axis in ([axes] if isinstance(axes, int) else axes)):
            if size.free_symbols == found.free_symbols and any(size.subs(at) == 1 for at in _probes(dim, size.free_symbols)):
                return f"only sizes at which `squeeze` takes no axis away are exported: it is called at {users_line(node)}."
    return None


def _calls(program: torch.export.ExportedProgram, targets: Sequence[Any]) -> Iterator[torch.fx.Node]:
    """The calls of these operators, those inside `cond` and the like among them."""
    graphs = [module.graph for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule)]
    nodes = (node for graph in graphs for target in targets for node in graph.find_nodes(op="call_function", target=target))
    return (node for node in nodes if isinstance(node.args[0].meta.get("val"), torch.Tensor))


def _probes(dim: DynamicDim, symbols: Iterable[Any], least: int = 1) -> Iterator[dict[Any, int]]:
    """Sizes of this axis to try, for all of these symbols alike."""
    return (dict.fromkeys(symbols, n) for n in PROBES if max(dim.least, least) <= n <= (dim.most or n))


def _parts_differ(dim: DynamicDim, size: Any, length: Any, count: int) -> bool:
    """Whether the whole is ever cut into another number of parts; below two, torch.export promises nothing."""
    symbols = size.free_symbols | length.free_symbols
    pairs = ((int(size.subs(at)), int(length.subs(at))) for at in _probes(dim, symbols, least=2)) if len(symbols) == 1 else ()
    return any(-(-whole // part) != count for whole, part in pairs if whole > 0 and part > 0)


def _is_own(sloc: Any) -> bool:
    """Whether a guard was caused by the caller's own code, not by an installed library."""
    place = _place(sloc)
    return place is not None and ("site-packages" not in _file(sloc) or place.startswith("a forward"))


def _range_text(dims: dict[Any, DynamicDim], test: Any) -> str:
    from torch.utils._sympy.printers import PythonPrinter

    names = {symbol: sympy.Symbol(dim.name, integer=True, nonnegative=True) for symbol, dim in dims.items()}
    text = PythonPrinter().doprint(test.subs(names))
    return "only " + re.sub(r"(\.\d*?)0+\b", r"\1", text.replace("torch.sym_float", "float"))


def _holds(test: Any, sizes: dict[Any, int], own: bool) -> bool:
    """Whether the test holds at these sizes; one that compares a size below two there counts only in the caller's own code."""
    compared = [side for side in test.args if side.free_symbols] if isinstance(test, sympy.Rel) else list(sizes)
    small = any(side.subs(sizes) <= 1 for side in compared)
    return (small and not own) or bool(test.subs(sizes))


def _file(sloc: Any) -> str:
    if noted := _noted_by_dynamo(sloc):
        installed = INSTALLED / noted["file"]
        return str(installed if installed.exists() else noted["file"])
    return str(getattr(getattr(sloc, "framework_loc", None), "filename", None) or sloc)


def _noted_by_dynamo(sloc: Any) -> re.Match[str] | None:
    """In a strict capture torch's own interpreter asks, and notes the line of Python that it was at, by a path without its beginning."""
    asked_in = str(getattr(getattr(sloc, "framework_loc", None), "filename", ""))
    return NOTED.search(getattr(sloc, "maybe_user_loc", None) or "") if "/torch/_dynamo/" in asked_in else None


def _place(sloc: Any) -> str | None:
    """`file.py:14 in forward` of a guard that Python code outside torch caused; None when an operator of torch did."""
    if (noted := _noted_by_dynamo(sloc)) and not noted["file"].startswith("torch/"):
        return f"{Path(noted['file']).name}:{noted['line']} in {noted['function']}"
    frame = getattr(sloc, "framework_loc", None)
    text = str(sloc).strip("()")
    if _file(sloc).endswith("torch/nn/modules/module.py"):  # it only calls forward, so the test stands there
        return "a forward without a file"
    if "/torch/" in _file(sloc) or text.startswith(TORCH_FILES):
        return None
    return f"{shown_path(frame.filename)}:{frame.lineno} in {frame.name}" if hasattr(frame, "filename") else text


def shape_environment(program: torch.export.ExportedProgram) -> Any:
    """The `ShapeEnv` of the capture; None when it has none."""
    for node in program.graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None and mode.shape_env is not None:
            return mode.shape_env
    return None
