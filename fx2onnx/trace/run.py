"""Record one run of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

import torch
from torch import nn

from ..compat import trees as pytree
from ..compat.dispatch import enable_python_dispatcher
from ..compat.exporting import compiling_state_context
from ..compat.fake_tensors import FakeTensor
from ..guards.error_text import describe_unregistered_class
from ..internal_errors import describe_internal_error, is_internal
from ..ir.expressions import expression
from ..patches.registry import apply_patches
from . import (
    effects,
    module_list_index,  # noqa: F401 - its patches are entered
)
from .events import Ref, Trace, state_of
from .grown_buffers import check_buffers
from .hidden_state import called_apart, equal_results, restore_module_state
from .listener import TraceListener
from .path_decisions import PathDecisions, is_deliberate
from .refusal import TraceUnsupported
from .scopes import Scopes
from .symbolic_builtins import symbolic_int
from .symbolic_scalars import ScalarProxy
from .tracer import SEED, Tracer

Watch: TypeAlias = "Callable[[Tracer], AbstractContextManager[Any]]"


def trace(
    model: nn.Module,
    arguments: tuple[tuple[Any, ...], dict[str, Any]],
    follower: TraceListener | None = None,
    script: PathDecisions | None = None,
    watch: Watch | None = None,
) -> Trace:
    """Run a module on arguments that it may modify, and return the trace.

    Args:
        follower: receives each call as it is made, with its line and the enclosing modules.
        script: decides the tests of values.
        watch: watches loops, or equal blocks.

    Raises:
        TraceUnsupported: If the run does something that a trace cannot represent.
    """
    scopes, script = Scopes(model) if follower else None, script or PathDecisions()
    buffers = dict(model.named_buffers(remove_duplicate=False))
    tracer = Tracer(state_of(model), script, follower, scopes)
    for number, leaf in enumerate(pytree.tree_leaves(arguments)):
        if isinstance(leaf, torch.Tensor):
            tracer.place(leaf, Ref("input", number))
            tracer.inputs[number] = leaf
    args, kwargs = arguments
    try:
        with ExitStack() as stack:
            for context in (
                torch.set_grad_enabled(torch.is_grad_enabled()),  # restores the mode if the model changes it
                torch.random.fork_rng(devices=()),
                compiling_state_context(),
                enable_python_dispatcher(),
                tracer,
                apply_patches("operator_dispatch", mode=tracer),
            ):
                stack.enter_context(context)
            torch.default_generator.manual_seed(SEED)
            stack.enter_context(nullcontext() if script.plan.scalar_modules is None else _record_numbers(tracer, script))
            stack.enter_context(scopes.follow_calls() if scopes else nullcontext())
            stack.enter_context(follower.follow(tracer) if follower else nullcontext())
            stack.enter_context(watch(tracer) if watch else nullcontext())
            stack.enter_context(restore_module_state(model))
            outputs = model(*args, **kwargs)
            check_buffers(model, buffers, tracer)
    except Exception as error:
        if (refusal := _find_refusal(error, tracer)) is not None:
            raise refusal from refusal.__cause__
        if not script.answers or tracer.has_failed or not is_deliberate(error):
            raise
        return Trace(tracer.rows, [], None, tracer.constants, error, answers=tracer.constness.answers)
    if tracer.refused is not None:
        raise tracer.refused
    leaves, spec = pytree.tree_flatten(outputs)
    _check_results(leaves)
    if follower is None:
        _check_number_types(model, arguments, outputs, tracer, script)
    returned = [tracer.resolve_ref(leaf) if isinstance(leaf, torch.Tensor) else expression(leaf) for leaf in leaves]
    changed, loops = frozenset(tracer.changed), tracer.loops.found if tracer.loops is not None else ()
    return Trace(tracer.rows, returned, spec, tracer.constants, changed=changed, loops=loops, answers=tracer.constness.answers)


def _find_refusal(error: Exception, tracer: Tracer) -> Exception | None:
    """Return what to raise in place of the error that ended a run: an earlier refusal, or a defect of this package."""
    if tracer.refused is not None or not is_internal(error):
        return tracer.refused
    found = describe_internal_error(error, "capture")
    found.__cause__ = error
    return found


def _check_number_types(model: nn.Module, arguments: Any, outputs: Any, tracer: Tracer, script: PathDecisions) -> None:
    """Refuse a model whose results differ if it reads Python numbers, because it may check their type."""
    if not script.numbers or script.is_off_trace or tracer.changed or any(effects.is_random(row.op) for row in tracer.rows):
        return
    has_values = not any(isinstance(leaf, FakeTensor) for leaf in pytree.tree_leaves((arguments, outputs)))
    if has_values and not equal_results(called_apart(model, arguments), outputs):
        line = next(iter(script.numbers))
        raise TraceUnsupported(
            f"the model reads a number from a tensor at {line}, and may check its type: with a Python number it gives another result"
        )


def _check_results(leaves: Sequence[Any]) -> None:
    """Refuse results that an exported model cannot return: numbers read from tensors, and objects that contain tensors.

    Raises:
        TraceUnsupported: If there is one.
    """
    for leaf in leaves:
        if isinstance(leaf, ScalarProxy):
            leaf.refuse("the caller as a result of the model,")
        if _contains_tensors(leaf):
            raise TraceUnsupported(describe_unregistered_class(type(leaf).__name__))


def _contains_tensors(leaf: Any) -> bool:
    """Whether a result that is not a pytree has tensors among its attributes."""
    if isinstance(leaf, (torch.Tensor, nn.Module, type)):
        return False
    names = [field.name for field in fields(leaf)] if is_dataclass(leaf) else getattr(leaf, "__dict__", ())
    members = [getattr(leaf, name, None) for name in names]
    return any(isinstance(part, torch.Tensor) for part in pytree.tree_leaves(members))


@contextmanager
def _record_numbers(tracer: Tracer, script: PathDecisions) -> Iterator[None]:
    """Record comparisons of numbers that are read from tensors, and the layers that they index."""
    numbers = apply_patches("numbers", tracer=tracer, lines=script.numbers, sizes=script.plan.size_reads)
    with numbers, symbolic_int(script.plan.scalar_modules or ()), apply_patches("chosen_layers"):
        yield
