"""One run of a module, noted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

import torch
from torch import nn
from torch._dispatch.python import enable_python_dispatcher
from torch._export.utils import _compiling_state_context
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from ...build.values import expression
from ...patches.registry import patched
from ..attribute_mutation import as_before, called_apart, equal_results
from ..raised import of_unknown_parts
from . import (
    chosen_layers,  # noqa: F401 - its patches are entered
    effects,
)
from .follower import Follower
from .notes import Ref, Trace, state_of
from .numbers import Number
from .python_numbers import whole_numbers_kept
from .recorder import SEED, Recorder
from .refusal import CannotRun
from .replaced import check_buffers
from .scopes import Scopes
from .script import Script, is_deliberate

Watch: TypeAlias = "Callable[[Recorder], AbstractContextManager[Any]]"


def trace(
    model: nn.Module,
    arguments: tuple[tuple[Any, ...], dict[str, Any]],
    follower: Follower | None = None,
    script: Script | None = None,
    watch: Watch | None = None,
) -> Trace:
    """Run a module on arguments that are its own to keep, and return what it did.

    Args:
        follower: is told of each call as it is made, with its line and the modules around it.
        script: answers the tests of values.
        watch: watches loops, or equal blocks.

    Raises:
        CannotRun: the run does something that notes do not show. Whatever the module or the follower raises.
    """
    scopes, script = Scopes(model) if follower else None, script or Script()
    buffers = dict(model.named_buffers(remove_duplicate=False))
    recorder = Recorder(state_of(model), script, follower, scopes)
    for number, leaf in enumerate(pytree.tree_leaves(arguments)):
        if isinstance(leaf, torch.Tensor):
            recorder.place(leaf, Ref("input", number))
            recorder.inputs[number] = leaf
    args, kwargs = arguments
    try:
        with ExitStack() as stack:
            for context in (
                torch.set_grad_enabled(torch.is_grad_enabled()),  # as before afterwards, where the model sets it and leaves it
                torch.random.fork_rng(devices=()),
                _compiling_state_context(),
                enable_python_dispatcher(),
                recorder,
                patched("operator_dispatch", mode=recorder),
            ):
                stack.enter_context(context)
            torch.default_generator.manual_seed(SEED)
            stack.enter_context(nullcontext() if script.reads is None else _numbers_noted(recorder, script))
            stack.enter_context(scopes.followed() if scopes else nullcontext())
            stack.enter_context(follower.follow(recorder) if follower else nullcontext())
            stack.enter_context(watch(recorder) if watch else nullcontext())
            stack.enter_context(as_before(model))
            answers = model(*args, **kwargs)
            check_buffers(model, buffers, recorder)
    except Exception as error:
        if recorder.refused is not None:
            raise recorder.refused from None
        if not script.answers or recorder.has_failed or not is_deliberate(error):
            raise
        return Trace(recorder.rows, [], None, recorder.constants, error, answers=recorder.settled.answers)
    if recorder.refused is not None:
        raise recorder.refused
    leaves, spec = pytree.tree_flatten(answers)
    _check_results(leaves)
    if follower is None:
        _check_numbers_told_all(model, arguments, answers, recorder, script)
    returned = [recorder.seen(leaf) if isinstance(leaf, torch.Tensor) else expression(leaf) for leaf in leaves]
    changed, loops = frozenset(recorder.changed), recorder.loops.found if recorder.loops is not None else ()
    return Trace(recorder.rows, returned, spec, recorder.constants, changed=changed, loops=loops, answers=recorder.settled.answers)


def _check_numbers_told_all(model: nn.Module, arguments: Any, answers: Any, recorder: Recorder, script: Script) -> None:
    """Refuse a model that gives something else where it reads numbers of Python, whose type it may have asked for."""
    if not script.numbers or script.is_forced or recorder.changed or any(effects.draws(row.op) for row in recorder.rows):
        return
    has_values = not any(isinstance(leaf, FakeTensor) for leaf in pytree.tree_leaves((arguments, answers)))
    if has_values and not equal_results(called_apart(model, arguments), answers):
        line = next(iter(script.numbers))
        raise CannotRun(
            f"the model reads a number from a tensor at {line}, and may check its type: with a Python number it gives another result"
        )


def _check_results(leaves: Sequence[Any]) -> None:
    """Refuse what a file cannot return: a number that was read, and an object that has tensors in it.

    Raises:
        CannotRun: there is one.
    """
    for leaf in leaves:
        if isinstance(leaf, Number):
            leaf.refuse("the caller as a result of the model,")
        if _holds_tensors(leaf):
            raise CannotRun(of_unknown_parts(type(leaf).__name__))


def _holds_tensors(leaf: Any) -> bool:
    """Whether a result that torch does not take apart has tensors among its attributes."""
    if isinstance(leaf, (torch.Tensor, nn.Module, type)):
        return False
    names = [field.name for field in fields(leaf)] if is_dataclass(leaf) else getattr(leaf, "__dict__", ())
    held = [getattr(leaf, name, None) for name in names]
    return any(isinstance(part, torch.Tensor) for part in pytree.tree_leaves(held))


@contextmanager
def _numbers_noted(recorder: Recorder, script: Script) -> Iterator[None]:
    """Let what is read of a tensor, while it lasts, be a number that notes its comparisons, and the layers that are chosen by it."""
    numbers = patched("numbers", recorder=recorder, lines=script.numbers, sizes=script.sizes)
    with numbers, whole_numbers_kept(script.reads or ()), patched("chosen_layers"):
        yield
