"""Who follows a run while it goes on, and what of it only some runs can follow: numbers and sizes that values decide."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch._subclasses import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from .effects import RAGGED
from .events import OpEvent, Ref
from .path_decisions import Pretended

ITEM = torch.ops.aten.item.default


class TraceListener(Protocol):
    """Somebody who is told of a run while it goes on."""

    known: dict[Ref, tuple[Any, ...]]  # the sizes of tensors

    def follow(self, tracer: Any) -> AbstractContextManager[Any]:
        """Return what watches the run."""

    def row(self, row: OpEvent) -> None:
        """Take a call that was just made. May raise an error, which ends the run."""

    def number(self, call: int, value: int) -> Any:
        """Return the symbol of the number that a call read, which is this one in the run."""

    def again(self, rows: Sequence[OpEvent], begin: int) -> None:
        """Take calls that repeat those from this number on with other tensors. May raise an error, which ends the run."""


class Notes(Protocol):
    """Who notes a run."""

    loops: Any
    follows_values: bool

    def refusal(self, why: str) -> Exception:
        """Return the error for something that a run does not show, with the line."""

    def too_much(self, why: str) -> Exception:
        """Return the error for what only a run with all values shows."""


def check_follows_values(tracer: Notes, why: str) -> None:
    """Refuse what values decide where no symbol can stand for it: in loops, and in functions that operators take.

    Raises:
        TraceUnsupported: it is there.
    """
    if tracer.loops is not None or not tracer.follows_values:
        raise tracer.refusal(why)


def check_size_decided(tracer: Notes, func: torch._ops.OpOverload, leaves: Sequence[Any]) -> None:
    """Refuse a result that is as long as values say where no run tells how long, or where no symbol can stand for that.

    Raises:
        NeedsRealValues: a run with all values would tell. TraceUnsupported: none would.
    """
    if any(isinstance(leaf, FakeTensor) for leaf in leaves):
        raise tracer.too_much(f"the size of the result of {func} cannot be determined")
    why = f"the size of the result of {func} depends on values"
    check_follows_values(tracer, why)
    if func in RAGGED:
        raise tracer.refusal(why)


def number_in(tensor: torch.Tensor, rows: Sequence[OpEvent], pretended: Pretended | None) -> int:
    """Return the integer that a tensor holds, or the one that a run pretends to read."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        value = int(tensor)
        return value if pretended is None else int(pretended(rows, ITEM, value))
