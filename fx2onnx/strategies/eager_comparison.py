"""Compare a program of torch.export with the model, if runs had constants that no size explains and torch.export chose one outcome."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import nn

from ..compat import trees as pytree
from ..compat.fake_tensors import READ_OF_A_VALUE
from ..errors import first_sentence
from ..guards.dims import DynamicDim
from ..guards.dynamic_shapes import dynamic_dims
from ..patches.registry import apply_patches, register_patch
from ..structure.capture_result import separate_shared_inputs
from ..trace.hidden_state import called_apart, equal_results
from ..trace.refusal import NoFallback, TraceUnsupported
from ..trace.size_domain import SizeDomain
from ..trace.source_location import line_of

CALLS = 4  # of the model, which have to agree
SETTINGS = 3  # in addition to the example's


@dataclass(frozen=True)
class EagerComparison:
    """A program of torch.export and its model.

    Args:
        given: the args and kwargs of the example.
        dims: the dynamic axes.
    """

    program: torch.export.ExportedProgram
    model: nn.Module
    given: tuple[tuple[Any, ...], dict[str, Any]]
    dims: Sequence[DynamicDim]
    _modules: dict[bool, nn.Module] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, program: torch.export.ExportedProgram, model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any
    ) -> Self:
        """Return the comparison for these arguments of an export."""
        given = separate_shared_inputs(args, dict(kwargs))
        return cls(program, model, given, dynamic_dims(model, *given, dynamic_shapes))

    def check(self, why: str, accepts: bool = False, least: int = 2) -> None:
        """Call the model several times, and the program once, at the example's sizes and at others.

        Args:
            why: the reason for this check.
            accepts: whether sizes may be lost. If not, the program runs without its guards, like an exported model.
            least: the smallest size of a single dynamic dimension; 2 for several.

        Raises:
            NoFallback: If the calls of the model differ, or the program returns another result. It is also raised if the program fails, but
                only for a single dimension of 2 or more: sizes of several may not match, and below 2 torch.export guarantees nothing.
        """
        for at, smallest, arguments in self._arguments(least if self._moves_alone else 2):
            with suppress(_Refused):
                wanted, *again = (_answer(self.model, arguments) for _ in range(CALLS))
                if not all(equal_results(wanted, one) for one in again):
                    raise NoFallback(f"{why}; two calls of the model with the same arguments gave different results")
                try:
                    found = self._found(arguments, guarded=accepts)
                except _Refused as error:
                    if accepts or not self._moves_alone or smallest < 2:
                        raise
                    message = first_sentence(error.__cause__ or error)
                    raise NoFallback(f"{why}; the program captured by torch.export fails where the model runs{at}: {message}") from error
                if not equal_results(wanted, found):
                    raise NoFallback(f"{why}; the program captured by torch.export gives a different result{at}")

    def differs(self, sizes: Mapping[str, int]) -> bool:
        """Return whether the program differs from the model at these sizes, by name, with the example's sizes for others.

        An error of the program counts only for a single dimension, because sizes of several may not match.
        """
        try:
            axes = SizeDomain.of(self.dims, pytree.tree_leaves(self.given))
            setting = {symbol: sizes.get(axes.names[symbol], size) for symbol, size in axes.example.items()}
            arguments = axes.at(self.given, setting, run=1)
            wanted = _answer(self.model, arguments)
        except (TraceUnsupported, _Refused):  # traced runs do not support derived dimensions, or an example without elements
            return False
        try:
            return not equal_results(wanted, self._found(arguments, guarded=False))
        except _Refused:
            return len(sizes) == 1 and self._can_be_called()

    def _can_be_called(self) -> bool:
        """Return whether the program runs at the example's sizes; if not, its errors are unrelated to sizes."""
        try:
            self._found(self.given, guarded=False)
        except _Refused:
            return False
        return True

    def _found(self, arguments: Any, guarded: bool) -> list[torch.Tensor]:
        with _buffers_kept(self.program):
            return _run_module(self._module(guarded), arguments)

    def _module(self, guarded: bool) -> nn.Module:
        """Return the program as a module, with or without its guards on sizes; cached."""
        if guarded not in self._modules:
            module = self.program.module(check_guards=guarded)
            self._modules[guarded] = module
        return self._modules[guarded]

    @property
    def _moves_alone(self) -> bool:
        return len({dim.name for dim in self.dims}) == 1

    def _arguments(self, least: int) -> Iterator[tuple[str, int, Any]]:
        """Yield a description of the sizes, the smallest of them, and arguments: first the example's, then others."""
        yield "", 2, self.given
        with suppress(TraceUnsupported):  # traced runs do not support derived dimensions
            axes = SizeDomain.of(self.dims, pytree.tree_leaves(self.given))
            few = axes.clamp({symbol: 2 + i for i, symbol in enumerate(axes.example)})
            settings = [setting for setting in (*axes.settings(), few) if setting and min(setting.values()) >= least]
            for setting in (*settings[:SETTINGS], *settings[SETTINGS:][-1:]):
                sizes = ", ".join(f"{axes.names[symbol]} = {size}" for symbol, size in setting.items())
                yield f" at {sizes}", min(setting.values()), axes.at(self.given, setting, run=1)


@contextmanager
def numbers_read() -> Iterator[dict[str, None]]:
    """Record the lines at which torch.export creates a symbol for a number that is read from a tensor."""
    lines: dict[str, None] = {}
    with apply_patches("numbers_read", lines=lines):
        yield lines


@register_patch(
    "numbers_read",
    *(f"torch.fx.experimental.symbolic_shapes.ShapeEnv.create_unbacked_sym{kind}" for kind in ("int", "float", "bool")),
    reason="torch.export does not report which line reads a number from a tensor",
)
def _recording(make: Callable[..., Any], lines: dict[str, None]) -> Callable[..., Any]:
    def made(*args: Any, **kwargs: Any) -> Any:
        if sys._getframe(1).f_code is READ_OF_A_VALUE:
            lines[line_of(sys._getframe(1))] = None
        return make(*args, **kwargs)

    return made


class _Refused(Exception):
    """The model or the program does not accept a size."""


def _answer(model: nn.Module, arguments: Any) -> list[torch.Tensor]:
    try:
        return _tensors(called_apart(model, arguments))
    except Exception as error:
        raise _Refused from error


def _run_module(module: nn.Module, arguments: Any) -> list[torch.Tensor]:
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
    """Undo on exit what a call of the program writes into its buffers."""
    buffers = [(buffer, buffer.detach().clone()) for buffer in program.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
