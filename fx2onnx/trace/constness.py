"""What follows in a run from weights, buffers and constants alone: a file has those as they are, so a test of it has one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import sympy
import torch
from torch._subclasses import FakeTensor

from ..ir.expressions import expression, storage
from . import effects
from .events import Ref

GIVEN = ("state", "constant")


class Origins(Protocol):
    """Who knows where tensors come from."""

    @property
    def formulas(self) -> Mapping[int, Any]:
        """The numbers, by the constants that are made of sizes."""

    def ref(self, tensor: torch.Tensor) -> Ref:
        """Return where a tensor comes from."""


class ConstantAnalysis:
    """Tells tensors that are the same in every call of the model, and whether a size that moves had a part in them.

    A run at plain numbers takes what was made of sizes for settled, too; the one that has symbols for sizes finds out.

    Attributes:
        answers: each value that was asked for, and how many calls had been noted then.
    """

    def __init__(self) -> None:
        self.answers: list[tuple[int, str]] = []
        self._of_sizes: dict[Ref, bool] = {}  # of tensors that are settled: whether sizes had a part in them
        self._written: dict[int, bool | None] = {}  # the same of what was written into memory; None where that is not settled

    def answer(self, place: int, value: Any) -> Any:
        """Keep the answer to a question that was asked behind so many calls, and return it."""
        self.answers.append((place, repr(value)))
        return value

    def depends_on_sizes(self, tensor: torch.Tensor, ref: Ref) -> bool | None:
        """Return whether sizes had a part in a tensor that is settled; None of one that is not."""
        if isinstance(tensor, FakeTensor) or not (ref.kind in GIVEN or ref in self._of_sizes):
            return None
        written = self._written.get(storage(tensor), False)
        return None if written is None else written or self._of_sizes.get(ref, False)

    def came_of(self, func: torch._ops.OpOverload, leaves: Sequence[Any], origins: Origins) -> bool | None:
        """Return whether sizes have a part in what a call makes of these arguments; None where that is not settled."""
        if effects.is_random(func):
            return None
        found = False
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                ref = origins.ref(leaf)
                depends_on_sizes = self.depends_on_sizes(leaf, ref)
                if depends_on_sizes is None:
                    return None
                found |= depends_on_sizes or (ref.kind == "constant" and ref.key in origins.formulas)
            else:
                number = expression(leaf)
                found |= isinstance(number, sympy.Basic) and bool(number.free_symbols)
        return found

    def made(self, ref: Ref, result: Any, came_of: bool | None) -> None:
        """Note what a call made of arguments of which `came_of` was said."""
        if came_of is not None and isinstance(result, torch.Tensor):
            self._of_sizes[ref] = came_of

    def written(self, tensor: torch.Tensor, came_of: bool | None) -> None:
        """Note that a call of which `came_of` is said writes into a tensor."""
        before = self._written.get(storage(tensor), False)
        self._written[storage(tensor)] = None if before is None or came_of is None else before or came_of
