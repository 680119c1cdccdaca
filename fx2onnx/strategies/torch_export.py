"""Capture with torch.export, with named dimensions and separate inputs. dynamic_shapes.py checks the dimensions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import sympy
import torch
from torch import nn
from torch.export import Dim

from ..compat import trees as pytree
from ..compat.exporting import backed_size_oblivious, forget_static_exports
from ..compat.shape_env import CompileContext
from ..errors import CaptureError, FrozenDimension, ToOnnxError, first_sentence
from ..guards.accepted_ranges import sizes_accepted
from ..guards.conditions import conditions, ranges
from ..guards.dims import DynamicDim, check_accepted, is_hint, moves, promises
from ..guards.dynamic_shapes import ADVICE, check_dynamic_dims, dynamic_dims, quote_names, symbol_of, what_became_constant
from ..guards.error_text import format_error_line, said_by
from ..guards.program_guards import guards_of
from ..internal_errors import describe_internal_error, is_internal
from ..patches.caught_errors import refuse_caught_errors
from ..patches.module_to import allow_harmless_casts
from ..patches.registry import apply_patches, register_context
from ..structure.capture_result import Capture, refuse_scripted_parts, separate_shared_inputs
from ..trace.gradients import explain_gradients
from ..trace.hidden_state import only_harmless_mutations
from ..trace.keywords import keywords_named

SIZES = re.compile(r"(\w+) = (L\['\w+'\]\S*\.size\(\)\[\d+\])")  # the names of axes in torch.export's messages
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
    """Capture a module. An `ExportedProgram` is used unchanged, with the names in `dynamic_shapes` for its dimensions.

    Raises:
        CaptureError: If torch.export fails.
        FrozenDimension: If a declared dimension is not dynamic.
        MutationError: If a change of an attribute affects the next call.
    """
    if isinstance(model, torch.export.ExportedProgram):
        program = _decompose_vmap_and_autocast(model)
        names = _names_given(program, dynamic_shapes)
        return Capture(program, names, limits=(*conditions(program, names), *ranges(program, names), *guards_of(program, names)))
    refuse_scripted_parts(model)
    args, kwargs = separate_shared_inputs(args, dict(kwargs))
    dims = dynamic_dims(model, args, kwargs, dynamic_shapes)
    check_accepted(accept_ranges, dims)
    shapes = make_export_dims(dynamic_shapes, accept_ranges, dims)
    with only_harmless_mutations(model, args, kwargs, strict):
        program = export_module(model, args, kwargs, shapes, strict, dims)
    given = pytree.tree_leaves((args, kwargs))
    symbols = [(dim, found) for dim in dims if (found := symbol_of(program, given, dim)) is not None]
    check_dynamic_dims(program, symbols, accept_ranges)
    names = {found: dim.name for dim, found in reversed(symbols) if dim.named and not isinstance(found, int)}
    limits = [*conditions(program, names), *sizes_accepted(program, symbols, accept_ranges), *promises(dims)]
    if any(is_hint(leaf, Dim.AUTO) for leaf in pytree.tree_leaves(dynamic_shapes)):  # which lets torch.export restrict sizes
        limits += [*ranges(program, names), *guards_of(program, names)]
    return Capture(program, names, limits=tuple(dict.fromkeys(limits)))


def _names_given(program: torch.export.ExportedProgram, dynamic_shapes: Any) -> dict[sympy.Expr, str]:
    """Return the names in `dynamic_shapes` for the dimensions of a captured program, whose dynamic dimensions cannot change."""
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
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, strict: bool, dims: Sequence[DynamicDim]
) -> torch.export.ExportedProgram:
    """Return the result of torch.export for a module.

    Raises:
        CaptureError: If torch.export fails.
        FrozenDimension: If a declared dimension is not dynamic.
    """
    try:
        return _unless_refused(module, args, kwargs, dynamic_shapes, strict)
    except ToOnnxError:
        raise
    except Exception as error:
        lenient = pytree.tree_map(lambda dim: Dim.AUTO if moves(dim) else dim, dynamic_shapes, is_leaf=moves)
        program = _unless_refused(module, args, kwargs, lenient, strict)
        texts, names = what_became_constant(program, pytree.tree_leaves((args, kwargs)), dims)
        accepted = quote_names(names or dict.fromkeys(dim.name for dim in dims))
        raise FrozenDimension(f"{texts or _violation(error)} {ADVICE} accept_ranges={accepted}.") from error


def _unless_refused(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, strict: bool
) -> torch.export.ExportedProgram:
    """Export once.

    Raises:
        CaptureError: If torch.export fails.
        Exception: torch's own, if constraints on sizes are violated.
    """
    with explain_gradients(module) as lines:
        try:
            return _export_once(module, args, kwargs, dynamic_shapes, strict)
        except ToOnnxError:
            raise
        except Exception as error:
            if "Constraints violated" in str(error):
                raise
            if is_internal(error):
                raise describe_internal_error(error, "capture") from error
            computed = (
                f' The model computes gradients at {lines[-1]}, which capture="run" may support.'
                if lines and not format_error_line(error)
                else ""
            )
            raise CaptureError(f"{REFUSES}{said_by(error)}{computed}") from error


def _export_once(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, strict: bool
) -> torch.export.ExportedProgram:
    if CompileContext.try_get() is None:  # unless TorchDynamo calls this package as a backend
        forget_static_exports()  # an earlier static export of the same code can make this one static
    with ExitStack() as stack:
        for context in (numbers_kept(module), size_one_stays_dynamic(), refuse_caught_errors(), *(() if strict else _make_patches(module))):
            stack.enter_context(context)
        shapes = stack.enter_context(keywords_named(module, args, kwargs, dynamic_shapes))
        return _decompose_vmap_and_autocast(torch.export.export(module, args, kwargs, dynamic_shapes=shapes, strict=strict))


def _make_patches(module: nn.Module) -> tuple[AbstractContextManager[Any], ...]:
    """The patches that change calls of the model while torch.export runs it."""
    return (
        apply_patches("tensor_len", "one_hot", "vmap", "flex_attention", "generators", "cumulative_batch_norm"),
        allow_harmless_casts(module),
    )


def _decompose_vmap_and_autocast(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return the program with `vmap` and `torch.autocast` resolved into the calls they make.

    torch.export preserves both; only retracing resolves them.
    """
    graphs = (m.graph for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule))
    targets = {node.target for graph in graphs for node in graph.nodes if node.op == "call_function"}
    is_as_written = any(t is AUTOCAST or "_functorch" in str(getattr(t, "__module__", "")) for t in targets)
    return program.run_decompositions({}) if is_as_written else program


@contextmanager
def numbers_kept(module: nn.Module) -> Iterator[None]:
    """Restore on exit each buffer of one element, because torch.export computes with constants, also in place."""
    small = [buffer for buffer in module.buffers() if not buffer.is_inference() and buffer.numel() == 1]
    saved = [(buffer, buffer.detach().clone(), buffer._version) for buffer in small]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value, version in saved:
                if buffer._version != version:
                    buffer.copy_(value)


@register_context(
    "size_one",
    "torch.fx.experimental._config.backed_size_oblivious",
    reason="an axis whose example has one element would be static; torch's ONNX exporter sets the same",
)
def _size_one_is_no_exception() -> AbstractContextManager[None]:
    return backed_size_oblivious()


def size_one_stays_dynamic() -> AbstractContextManager[None]:
    """Let an axis be dynamic although its example has size 1."""
    return apply_patches("size_one")


def _violation(error: Exception) -> str:
    """torch.export's message about violated constraints, with the names of dimensions."""
    lines = [line.strip(" -") for line in str(error).splitlines() if line.strip().startswith("-")]
    text = " ".join(lines) or first_sentence(error)
    for name, size in SIZES.findall(text):
        text = text.replace(f"{name} = {size}", name).replace(size, name)
    return text


def make_export_dims(dynamic_shapes: Any, accepted: Sequence[str], dims: Sequence[DynamicDim]) -> Any:
    """Return torch.export's `dynamic_shapes`: `Dim.DYNAMIC` for a name, `Dim.AUTO` for an axis whose range is accepted.

    A `Dim.DYNAMIC` does not show its position, by which an unnamed axis is accepted, so all unnamed axes become `Dim.AUTO` then.
    `check_dynamic_dims` refuses those that become static and are not accepted.
    """
    accepts_unnamed = any(dim.name in accepted and not dim.named for dim in dims)

    def as_dim(dim: Any) -> Any:
        name = dim if isinstance(dim, str) else getattr(dim, "__name__", None)
        if moves(dim) and name in accepted:
            return Dim.AUTO
        if accepts_unnamed and is_hint(dim, Dim.DYNAMIC):
            return Dim.AUTO(min=dim.min, max=dim.max)
        return Dim.DYNAMIC if isinstance(dim, str) else dim

    return pytree.tree_map(as_dim, dynamic_shapes, is_leaf=moves)
