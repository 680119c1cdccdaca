"""Capturing by torch.export: axes by name, inputs kept apart. Not here: what became of the axes (dynamic_shapes.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import sympy
import torch
from torch import nn
from torch._guards import CompileContext
from torch.export import Dim
from torch.utils import _pytree as pytree

from ..errors import CaptureError, FrozenDimension, first_sentence
from ..guards.accepted_ranges import sizes_accepted
from ..guards.conditions import conditions, ranges
from ..guards.dims import DynamicDim, check_accepted, is_hint, moves, promises
from ..guards.dynamic_shapes import ADVICE, check_dynamic_dims, dynamic_dims, quote_names, symbol_of, what_became_constant
from ..guards.error_text import format_error_line, said_by
from ..guards.program_guards import guards_of
from ..patches.caught_errors import refuse_caught_errors
from ..patches.module_to import allow_harmless_casts
from ..patches.registry import apply_patches, register_context
from ..structure.capture_result import Capture, refuse_scripted_parts, separate_shared_inputs
from ..trace.gradients import explain_gradients
from ..trace.hidden_state import only_harmless_mutations
from ..trace.keywords import keywords_named

SIZES = re.compile(r"(\w+) = (L\['\w+'\]\S*\.size\(\)\[\d+\])")  # of axes, as torch.export calls them
REFUSES = "torch.export cannot capture the model: "
AUTOCAST = torch.ops.higher_order.wrap_with_autocast


def capture_by_export(
    model: nn.Module | torch.export.ExportedProgram,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any = None,
    strict: bool = False,
    accept_ranges: Sequence[str] = (),
) -> Capture:
    """Capture a module; an `ExportedProgram` is taken as it is, its axes called by the names in `dynamic_shapes`.

    Raises:
        CaptureError: torch.export refuses the module. FrozenDimension: an axis asked to be dynamic is not.
        MutationError: another call would find what this one left in an attribute.
    """
    if isinstance(model, torch.export.ExportedProgram):
        program = _decompose_vmap_and_autocast(model)
        names = _names_given(program, dynamic_shapes)
        return Capture(program, names, limits=(*conditions(program, names), *ranges(program, names), *guards_of(program, names)))
    refuse_scripted_parts(model)
    args, kwargs = separate_shared_inputs(args, dict(kwargs))
    asked = dynamic_dims(model, args, kwargs, dynamic_shapes)
    check_accepted(accept_ranges, asked)
    shapes = make_export_dims(dynamic_shapes, accept_ranges, asked)
    with only_harmless_mutations(model, args, kwargs, strict):
        program = export_module(model, args, kwargs, shapes, strict, asked)
    given = pytree.tree_leaves((args, kwargs))
    symbols = [(dim, found) for dim in asked if (found := symbol_of(program, given, dim)) is not None]
    check_dynamic_dims(program, symbols, accept_ranges)
    names = {found: dim.name for dim, found in reversed(symbols) if dim.named and not isinstance(found, int)}
    limits = [*conditions(program, names), *sizes_accepted(program, symbols, accept_ranges), *promises(asked)]
    if any(is_hint(leaf, Dim.AUTO) for leaf in pytree.tree_leaves(dynamic_shapes)):  # which lets torch.export lose sizes
        limits += [*ranges(program, names), *guards_of(program, names)]
    return Capture(program, names, limits=tuple(dict.fromkeys(limits)))


def _names_given(program: torch.export.ExportedProgram, dynamic_shapes: Any) -> dict[sympy.Expr, str]:
    """Return the names that `dynamic_shapes` has for the axes of a captured program, which move or not as it was captured."""
    if not dynamic_shapes:
        return {}
    if program.example_inputs is None:
        raise CaptureError(
            "dynamic_shapes cannot name the axes of an ExportedProgram without example_inputs: name them when you capture it"
        )
    args, kwargs = program.example_inputs
    names: dict[sympy.Expr, str] = {}
    for dim in dynamic_dims(program, args, kwargs, dynamic_shapes):
        found = symbol_of(program, pytree.tree_leaves((args, kwargs)), dim)
        if isinstance(found, int):
            raise FrozenDimension(
                f'"{dim.name}" was asked to be dynamic but was captured as the constant {found}: capture it again as dynamic'
            )
        if found is not None and dim.named and names.setdefault(found, dim.name) != dim.name:
            raise FrozenDimension(f'"{dim.name}" and "{names[found]}" are the same size in the captured program: give both the same name')
    return names


def export_module(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, strict: bool, asked: Sequence[DynamicDim]
) -> torch.export.ExportedProgram:
    """Return what torch.export makes of a module.

    Raises:
        CaptureError: it refuses. FrozenDimension: an axis asked to be dynamic is not.
    """
    try:
        return _unless_refused(module, args, kwargs, dynamic_shapes, strict)
    except CaptureError:
        raise
    except Exception as error:
        lenient = pytree.tree_map(lambda dim: Dim.AUTO if moves(dim) else dim, dynamic_shapes, is_leaf=moves)
        program = _unless_refused(module, args, kwargs, lenient, strict)
        told, names = what_became_constant(program, pytree.tree_leaves((args, kwargs)), asked)
        accepted = quote_names(names or dict.fromkeys(dim.name for dim in asked))
        raise FrozenDimension(f"{told or _violation(error)} {ADVICE} accept_ranges={accepted}.") from error


def _unless_refused(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, strict: bool
) -> torch.export.ExportedProgram:
    """Export once.

    Raises:
        CaptureError: torch.export refuses. Exception: as torch raises it, of constraints that sizes violate.
    """
    with explain_gradients(module) as lines:
        try:
            return _export_once(module, args, kwargs, dynamic_shapes, strict)
        except CaptureError:
            raise
        except Exception as error:
            if "Constraints violated" in str(error):
                raise
            computed = (
                f' The model computes gradients at {lines[-1]}, which capture="run" may support.'
                if lines and not format_error_line(error)
                else ""
            )
            raise CaptureError(f"{REFUSES}{said_by(error)}{computed}") from error


def _export_once(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, strict: bool
) -> torch.export.ExportedProgram:
    if CompileContext.try_get() is None:  # TorchDynamo is not at work itself, as when it calls us for a backend
        torch._dynamo.reset()  # an earlier static export of the same code can make this one static
    with ExitStack() as stack:
        for context in (numbers_kept(module), size_one_stays_dynamic(), refuse_caught_errors(), *(() if strict else _make_patches(module))):
            stack.enter_context(context)
        shapes = stack.enter_context(keywords_named(module, args, kwargs, dynamic_shapes))
        return _decompose_vmap_and_autocast(torch.export.export(module, args, kwargs, dynamic_shapes=shapes, strict=strict))


def _make_patches(module: nn.Module) -> tuple[AbstractContextManager[Any], ...]:
    """What changes calls that the model makes, where torch.export runs its Python."""
    return (
        apply_patches("tensor_len", "one_hot", "vmap", "flex_attention", "generators", "cumulative_batch_norm"),
        allow_harmless_casts(module),
    )


def _decompose_vmap_and_autocast(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return the program with `vmap` as the calls that it consists of, and `torch.autocast` as the casts that it makes.

    torch.export keeps both as they are written; only tracing them once more resolves them.
    """
    graphs = (m.graph for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule))
    targets = {node.target for graph in graphs for node in graph.nodes if node.op == "call_function"}
    is_as_written = any(t is AUTOCAST or "_functorch" in str(getattr(t, "__module__", "")) for t in targets)
    return program.run_decompositions({}) if is_as_written else program


@contextmanager
def numbers_kept(module: nn.Module) -> Iterator[None]:
    """Put, in the end, each buffer of one element back: torch.export computes with those that it takes for constants, also in place."""
    small = [buffer for buffer in module.buffers() if not buffer.is_inference() and buffer.numel() == 1]
    kept = [(buffer, buffer.detach().clone(), buffer._version) for buffer in small]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value, version in kept:
                if buffer._version != version:
                    buffer.copy_(value)


@register_context(
    "size_one",
    "torch.fx.experimental._config.backed_size_oblivious",
    reason="an axis whose example has one element would be static; torch's ONNX exporter sets the same",
)
def _size_one_is_no_exception() -> AbstractContextManager[None]:
    import torch.fx.experimental._config as config

    found: AbstractContextManager[None] = config.patch(backed_size_oblivious=True)  # type: ignore[attr-defined]  # a ConfigModule
    return found


def size_one_stays_dynamic() -> AbstractContextManager[None]:
    """Let an axis be dynamic, while it lasts, whose example has one element."""
    return apply_patches("size_one")


def _violation(error: Exception) -> str:
    """What torch.export says of the constraints, by the names of axes."""
    lines = [line.strip(" -") for line in str(error).splitlines() if line.strip().startswith("-")]
    told = " ".join(lines) or first_sentence(error)
    for name, size in SIZES.findall(told):
        told = told.replace(f"{name} = {size}", name).replace(size, name)
    return told


def make_export_dims(dynamic_shapes: Any, accepted: Sequence[str], asked: Sequence[DynamicDim]) -> Any:
    """Return what torch.export takes: `Dim.DYNAMIC` for a name, `Dim.AUTO` for an axis whose range is accepted as it comes.

    An axis without a name is accepted by where it is, which a `Dim.DYNAMIC` does not show; so all of these become `Dim.AUTO`.
    `check_dynamic_dims` refuses those that turn out static and are not accepted.
    """
    accepts_unnamed = any(dim.name in accepted and not dim.named for dim in asked)

    def as_dim(dim: Any) -> Any:
        name = dim if isinstance(dim, str) else getattr(dim, "__name__", None)
        if moves(dim) and name in accepted:
            return Dim.AUTO
        if accepts_unnamed and is_hint(dim, Dim.DYNAMIC):
            return Dim.AUTO(min=dim.min, max=dim.max)
        return Dim.DYNAMIC if isinstance(dim, str) else dim

    return pytree.tree_map(as_dim, dynamic_shapes, is_leaf=moves)
