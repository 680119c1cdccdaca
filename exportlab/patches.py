"""Work around known export failures without changing the model, with context managers that restore the original state."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import is_dataclass
from functools import cache
from types import CodeType, FrameType
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree
from fx2onnx.compat.fake_tensors import FakeTensor
from fx2onnx.compat.operators import OpOverload, find_python_function, mapping_over_indices

from .checks import kind_of
from .exporters.to_onnx import caches_known, containers_kept, keywords_named
from .samples import Sample, check_module

__all__ = [
    "as_containers", "caches_as_containers", "checks_passed", "for_model", "grad_mode_kept", "indices_in_vmap", "keywords_named",
    "operators_read_once", "own_functions",
]  # fmt: skip


@contextmanager
def for_model(model: nn.Module, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Iterator[list[str]]:
    """Apply the patches that this model and these arguments need. The yielded list has one line for each patch, with the reason.

    An `ExportedProgram` with containers as arguments can only be called while they are registered, which means inside the block.
    `verify` also registers the caches of transformers itself.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the arguments are nested too deeply.
    """
    check_module(model)
    sample = Sample(args, kwargs if kwargs is not None else {})
    given = [*sample.args, *sample.kwargs.values()]
    applied: list[str] = []
    with ExitStack() as stack:
        for patch, reasons in _called_for(model, given):
            stack.enter_context(patch)
            applied.extend(reasons)
        yield applied


def _called_for(model: nn.Module, given: list[Any]) -> Iterator[tuple[Any, list[str]]]:
    """Yield the patches to enter, each with its reasons."""
    caches, classes = _find_cache_reason(model, given), _unknown_dataclasses(given)
    if caches:
        yield caches_as_containers(), [f"caches_as_containers: {caches}"]
    if classes:
        yield as_containers(*classes), [f"as_containers: {', '.join(c.__name__ for c in classes)} among the arguments"]
    yield grad_mode_kept(), []
    sources = _sources(model)
    if "vmap" in sources:
        yield indices_in_vmap(), ["indices_in_vmap: the model's own code calls vmap"]
    if checks := _checks(model):
        yield checks_passed(), [f"checks_passed: a check at {place} is taken as passed" for place in checks]


def _find_cache_reason(model: nn.Module, given: list[Any]) -> str:
    """Return why the model may use a cache of transformers; empty if it doesn't."""
    if "transformers" not in sys.modules:
        return ""
    from transformers import Cache, PreTrainedModel

    if any(isinstance(value, Cache) for value in given):
        return "a cache among the arguments"
    owner = next((type(m).__name__ for m in model.modules() if isinstance(m, PreTrainedModel)), "")
    return f"{owner} may return one" if owner else ""


def _unknown_dataclasses(given: list[Any]) -> list[type]:
    leaves = [type(leaf) for leaf in pytree.tree_leaves(given)]
    return [kind for kind in dict.fromkeys(leaves) if is_dataclass(kind)]


# Containers ------------------------------------------------------------------------------------------------------------------------------


@contextmanager
def as_containers(*classes: type) -> Iterator[None]:
    """Accept dataclasses as arguments and results. Fixes "Unsupported input type <class …>. Export only supports pytree containers".

    Raises:
        TypeError: a class is not a dataclass.
    """
    for kind in classes:
        if not isinstance(kind, type) or not is_dataclass(kind):
            raise TypeError(f"as_containers accepts dataclasses, not {kind_of(kind)}")
    with containers_kept():
        for kind in classes:
            if kind not in pytree.SUPPORTED_NODES:
                torch.export.register_dataclass(kind, serialized_type_name=f"{kind.__module__}.{kind.__qualname__}")
        yield


@contextmanager
def caches_as_containers() -> Iterator[None]:
    """Accept the caches of transformers as arguments and results. Fixes "Unsupported input type <class '…DynamicCache'>"."""
    import transformers  # noqa: F401 - fails early if transformers is not installed

    with caches_known():
        yield


# Values, which a capture does not have ---------------------------------------------------------------------------------------------------


@contextmanager
def checks_passed() -> Iterator[list[str]]:
    """Treat checks of values as passed: `assert t` and `if t: raise …`, also with `not`. Yields the locations of these checks.

    Fixes "Could not guard on data-dependent expression Eq(u0, 1)" if the line does nothing but check. It works only where Python runs
    the model, so not with `strict=True`. The exported model doesn't contain the check.
    """
    places: list[str] = []
    own = torch.Tensor.__bool__

    def answered(tensor: torch.Tensor) -> bool:
        frame = sys._getframe(1)
        passes = _passes(frame) if isinstance(tensor, FakeTensor) else None
        if passes is None:
            return own(tensor)
        places.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return passes

    with _patch_attribute(torch.Tensor, "__bool__", answered):
        yield places


def _passes(frame: FrameType) -> bool | None:
    """Return the truth value for which the check at this line passes, or None if the line is not a plain check."""
    return _checks_of(frame.f_code).get(frame.f_lineno)


def _checks_of(code: CodeType) -> dict[int, bool]:
    return _checks_in("".join(linecache.getlines(code.co_filename)))


@cache
def _checks_in(source: str) -> dict[int, bool]:
    """Return the lines of a source file that check one value, each with the truth value that passes."""
    found: dict[int, bool] = {}
    for node in ast.walk(_parse_source(source)):
        if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and _only_raises(node)):
            value, passes = node.test, isinstance(node, ast.Assert)
            while isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
                value, passes = value.operand, not passes
            if not any(isinstance(part, ast.BoolOp | ast.IfExp) for part in ast.walk(value)):
                found |= dict.fromkeys(range(value.lineno, (value.end_lineno or value.lineno) + 1), passes)
    return found


def _parse_source(source: str) -> ast.AST:
    try:
        return ast.parse(source)
    except SyntaxError:  # generated code, whose line numbers don't refer to a file
        return ast.Module([], [])


def _only_raises(node: ast.If) -> bool:
    return isinstance(node.body[-1], ast.Raise) and not node.orelse


def _checks(model: nn.Module) -> list[str]:
    """Return the locations of checks in the model's classes, except those of torch and transformers."""
    places = []
    for kind in _own_classes(model):
        code = kind.forward.__code__
        lines = range(code.co_firstlineno, code.co_firstlineno + len(inspect.getsourcelines(kind.forward)[0]))
        places += [f"{code.co_filename}:{line}" for line in _checks_of(code) if line in lines]
    return places


def _sources(model: nn.Module) -> str:
    return "".join(inspect.getsource(kind) for kind in _own_classes(model))


def _own_classes(model: nn.Module) -> list[type[nn.Module]]:
    """Return the classes of the model's modules that are defined outside torch and transformers and have readable source."""
    kinds = dict.fromkeys(type(module) for module in model.modules())
    return [kind for kind in kinds if kind.__module__.partition(".")[0] not in ("torch", "transformers") and _readable(kind.forward)]


def _readable(forward: Callable[..., Any]) -> bool:
    return hasattr(forward, "__code__") and bool(linecache.getlines(forward.__code__.co_filename))


# Operators -------------------------------------------------------------------------------------------------------------------------------


def own_functions(program: torch.export.ExportedProgram) -> dict[OpOverload, Callable[..., Any]]:
    """Return the Python functions behind a program's `torch.library.custom_op` operators, for `run_decompositions`.

    The decomposed program calls these functions instead of the operators. Fixes "No ONNX function found" for functions that consist of
    torch operators and don't change their arguments.
    """
    called = {node.target for node in program.graph.nodes if isinstance(node.target, OpOverload) and not node.target._schema.is_mutable}
    return {op: function for op in called if (function := find_python_function(op)) is not None}


# State of torch --------------------------------------------------------------------------------------------------------------------------


@contextmanager
def indices_in_vmap() -> Iterator[None]:
    """Let `torch.vmap` map over an index, as in `mask[b, k]`. Fixes "vmap: It looks like you're calling .item() on a Tensor"."""
    own = torch.vmap

    def vmap(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
        def mapped(*given: Any, **named: Any) -> Any:
            with mapping_over_indices():
                return own(func, *args, **kwargs)(*given, **named)

        return mapped

    with _patch_attribute(torch, "vmap", vmap):
        yield


@contextmanager
def grad_mode_kept() -> Iterator[None]:
    """Restore the caller's grad mode after a model that calls `torch.set_grad_enabled` or fails inside `no_grad`."""
    own = torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_grad_enabled(own)


@contextmanager
def operators_read_once() -> Iterator[None]:
    """Make `torch.onnx.export` read the signature of each onnxscript operator only once; this speeds up many small exports."""
    from onnxscript._internal.values import TracedOnnxFunction

    own: Any = TracedOnnxFunction.function_ir
    with _patch_attribute(TracedOnnxFunction, "function_ir", property(cache(own.fget))):
        yield


@contextmanager
def _patch_attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Set an attribute for the length of a block; delete it afterwards if it was inherited."""
    held, own = name in vars(owner), getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if held:
            setattr(owner, name, own)
        else:
            delattr(owner, name)
