"""The interface of what follows a run, and the checks for data-dependent numbers and sizes, which only some runs support."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch

from ..compat.dispatch import DisableTorchFunction, disable_current_modes
from ..compat.fake_tensors import FakeTensor
from ..compat.operators import OpOverload
from .effects import RAGGED
from .events import OpEvent, Ref
from .path_decisions import Pretended

ITEM = torch.ops.aten.item.default


class TraceListener(Protocol):
    """Receives the calls of a run as they are made."""

    known: dict[Ref, tuple[Any, ...]]  # the sizes of tensors

    def follow(self, tracer: Any) -> AbstractContextManager[Any]:
        """Return the context that watches the run."""

    def row(self, row: OpEvent) -> None:
        """Receive the latest call. An exception ends the run."""

    def number(self, call: int, value: int) -> Any:
        """Return the symbol for a number that a call read, with its value in this run."""

    def again(self, rows: Sequence[OpEvent], begin: int) -> None:
        """Receive calls that repeat those from `begin` with other tensors. An exception ends the run."""


class Notes(Protocol):
    """The recorder of a run, as these checks need it."""

    loops: Any
    follows_values: bool

    def refusal(self, why: str) -> Exception:
        """Return the error, with the line, for something that traced runs do not support."""

    def too_much(self, why: str) -> Exception:
        """Return the error for what only a run with all values can show."""


def check_follows_values(tracer: Notes, why: str) -> None:
    """Refuse data-dependent results where they cannot have a symbol: in loops, and in functions of higher-order operators.

    Raises:
        TraceUnsupported: If the run is in one of them.
    """
    if tracer.loops is not None or not tracer.follows_values:
        raise tracer.refusal(why)


def check_size_decided(tracer: Notes, func: OpOverload, leaves: Sequence[Any]) -> None:
    """Refuse a result with a data-dependent size, if the size is unknown or cannot have a symbol.

    Raises:
        NeedsRealValues: If a run with all values would show the size.
        TraceUnsupported: If the size cannot have a symbol.
    """
    if any(isinstance(leaf, FakeTensor) for leaf in leaves):
        raise tracer.too_much(f"the size of the result of {func} cannot be determined")
    why = f"the size of the result of {func} depends on values"
    check_follows_values(tracer, why)
    if func in RAGGED:
        raise tracer.refusal(why)


def number_in(tensor: torch.Tensor, rows: Sequence[OpEvent], pretended: Pretended | None) -> int:
    """Return the integer in a tensor, or the pretended one."""
    with DisableTorchFunction(), disable_current_modes():
        value = int(tensor)
        return value if pretended is None else int(pretended(rows, ITEM, value))
