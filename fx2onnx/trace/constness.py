"""Track the tensors that depend only on weights, buffers and constants. A test of their values has one outcome in every call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import sympy
import torch

from ..compat.fake_tensors import FakeTensor
from ..compat.operators import OpOverload
from ..ir.expressions import expression, storage
from . import effects
from .events import Ref

GIVEN = ("state", "constant")


class Origins(Protocol):
    """What the analysis needs of the tracer: where tensors come from."""

    @property
    def formulas(self) -> Mapping[int, Any]:
        """The expressions of sizes that constants are made of, by the number of the constant."""

    def ref(self, tensor: torch.Tensor) -> Ref:
        """Return where a tensor comes from."""


class ConstantAnalysis:
    """Finds tensors that are the same in every call of the model, and whether a dynamic size influences them.

    A run at concrete sizes also treats what is computed from sizes as constant. The symbolic run detects it.

    Attributes:
        answers: each constant value that was read, and the number of calls recorded before.
    """

    def __init__(self) -> None:
        self.answers: list[tuple[int, str]] = []
        self._of_sizes: dict[Ref, bool] = {}  # of constant tensors: whether they depend on sizes
        self._written: dict[int, bool | None] = {}  # the same for writes into a storage; None if the result is not constant

    def answer(self, place: int, value: Any) -> Any:
        """Record a constant value that is read after `place` calls, and return it."""
        self.answers.append((place, repr(value)))
        return value

    def depends_on_sizes(self, tensor: torch.Tensor, ref: Ref) -> bool | None:
        """Return whether a constant tensor depends on sizes; None for a tensor that is not constant."""
        if isinstance(tensor, FakeTensor) or not (ref.kind in GIVEN or ref in self._of_sizes):
            return None
        written = self._written.get(storage(tensor), False)
        return None if written is None else written or self._of_sizes.get(ref, False)

    def came_of(self, func: OpOverload, leaves: Sequence[Any], origins: Origins) -> bool | None:
        """Return whether the result of this call depends on sizes; None if it is not constant."""
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
        """Record the constness of a result, as `came_of` returned it."""
        if came_of is not None and isinstance(result, torch.Tensor):
            self._of_sizes[ref] = came_of

    def written(self, tensor: torch.Tensor, came_of: bool | None) -> None:
        """Record that a call with this constness writes into a tensor."""
        before = self._written.get(storage(tensor), False)
        self._written[storage(tensor)] = None if before is None or came_of is None else before or came_of
