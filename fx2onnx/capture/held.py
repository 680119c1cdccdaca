"""A program of torch.export held against the model, where runs saw what no size explains and torch.export noted one answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch._subclasses import fake_impls
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

from ..errors import first_sentence
from .attribute_mutation import called_apart, equal_results
from .by_export import kept_apart
from .dynamic_shapes import dynamic_dims
from .running.lines import line_of
from .running.refusal import CannotRun, SeenByRunsAlone
from .running.sample import Axes

CALLS = 4  # of the model, that have to agree
READ = fake_impls.local_scalar_dense.__code__  # what item() ends in
SETTINGS = 3  # beside the example's


def check_held(
    program: torch.export.ExportedProgram,
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    why: str,
    accepts: bool = False,
    least: int = 2,
) -> None:
    """Call the model a few times, and the program beside it, at the sizes of the example and at others.

    Args:
        why: what runs say of the model.
        accepts: whether sizes may be lost. If not, the program is called without its checks of sizes, as a file has none.
        least: the least size of an axis that moves alone; two for several.

    Raises:
        SeenByRunsAlone: the calls of the model differ, or the program answers something else; or nothing, where one axis alone moves, so
            that no sizes are tried that do not fit each other, and is two or longer: below, torch.export promises nothing.
    """
    given = kept_apart(args, dict(kwargs))
    alone = _moves_alone(model, given, dynamic_shapes)
    for at, smallest, arguments in _arguments(model, given, dynamic_shapes, least if alone else 2):
        with suppress(_Refused):
            wanted, *again = (_answer(model, arguments) for _ in range(CALLS))
            if not all(equal_results(wanted, one) for one in again):
                raise SeenByRunsAlone(f"{why}; and calls of the model with the same arguments differ, where a file has one answer")
            with _buffers_kept(program):
                try:
                    found = _tried(program.module(check_guards=accepts), arguments)
                except _Refused as error:
                    if accepts or not alone or smallest < 2:
                        raise
                    told = first_sentence(error.__cause__ or error)
                    raise SeenByRunsAlone(f"{why}; and the program of torch.export refuses what the model takes{at}: {told}") from error
            if not equal_results(wanted, found):
                raise SeenByRunsAlone(f"{why}; and the program of torch.export gives something else{at}")


@contextmanager
def numbers_read() -> Iterator[dict[str, None]]:
    """Note, while it lasts, the lines at which torch.export makes a symbol of a number that is read from a tensor."""
    lines: dict[str, None] = {}
    with ExitStack() as stack:
        for kind in ("int", "float", "bool"):
            name = f"create_unbacked_sym{kind}"
            stack.enter_context(patch.object(ShapeEnv, name, _noting(getattr(ShapeEnv, name), lines)))
        yield lines


def _noting(make: Callable[..., Any], lines: dict[str, None]) -> Callable[..., Any]:
    def made(*args: Any, **kwargs: Any) -> Any:
        if sys._getframe(1).f_code is READ:
            lines[line_of(sys._getframe(1))] = None
        return make(*args, **kwargs)

    return made


def _moves_alone(model: nn.Module, given: Any, dynamic_shapes: Any) -> bool:
    args, kwargs = given
    return len({dim.name for dim in dynamic_dims(model, args, kwargs, dynamic_shapes)}) == 1


class _Refused(Exception):
    """A size that the model or the program does not take."""


def _arguments(model: nn.Module, given: Any, dynamic_shapes: Any, least: int) -> Iterator[tuple[str, int, Any]]:
    """Yield arguments of the sizes that were given, and of others; which those are, and the smallest."""
    yield "", 2, given
    args, kwargs = given
    with suppress(CannotRun):  # of axes that follow from others runs make none
        axes = Axes.of(dynamic_dims(model, args, kwargs, dynamic_shapes), pytree.tree_leaves(given))
        few = axes.within({symbol: 2 + i for i, symbol in enumerate(axes.example)})
        settings = [setting for setting in (*axes.settings(), few) if setting and min(setting.values()) >= least]
        for setting in (*settings[:SETTINGS], *settings[SETTINGS:][-1:]):
            sizes = ", ".join(f"{axes.names[symbol]} = {size}" for symbol, size in setting.items())
            yield f" at {sizes}", min(setting.values()), axes.at(given, setting, run=1)


def _answer(model: nn.Module, arguments: Any) -> list[torch.Tensor]:
    try:
        return _tensors(called_apart(model, arguments))
    except Exception as error:
        raise _Refused from error


def _tried(module: nn.Module, arguments: Any) -> list[torch.Tensor]:
    args, kwargs = pytree.tree_map_only(torch.Tensor, lambda leaf: leaf.detach().clone(), arguments)
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            return _tensors(module(*args, **kwargs))
    except Exception as error:
        raise _Refused from error


def _tensors(returned: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(returned) if isinstance(leaf, torch.Tensor)]


@contextmanager
def _buffers_kept(program: torch.export.ExportedProgram) -> Iterator[None]:
    """Put back, in the end, what a call of the program writes into its buffers."""
    kept = [(buffer, buffer.detach().clone()) for buffer in program.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in kept:
                buffer.copy_(value)
