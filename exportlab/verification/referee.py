"""Who is nearer to the exact answer where a file and eager differ by little: the module computed in float64 decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ..cases import Sample
from ..eager import copied_whole, last_returned
from ..messages import first_line
from .difference import distances
from .report import ROUNDING
from .values import mapped

HALF = (torch.float16, torch.bfloat16)
LOW = (*HALF, torch.float32)
# A file that sums in another order is about as far off as eager, on the whole and where it is farthest.
ON_THE_WHOLE = 1.1
FARTHEST = 2.0
# In float32 eager is seldom off by more than the tolerance. Where it is, as in the sine of a million, a few values decide how far, and
# exporters that are all right are off by 0.7 to 2.6 of eager.
IN_FLOAT32 = 3.0
ROUNDINGS = 4.0  # what each result may be off by where it is asked whether a decision stands


@dataclass(frozen=True)
class Ruling:
    """Whether what differs is rounding, and why, in words."""

    is_rounding: bool
    words: str


class _InFloat64(TorchDispatchMode):
    """Computes in float64 whatever asks for less."""

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        args, asked = pytree.tree_map_only(torch.dtype, _wide, (args, dict(kwargs or {})))
        if not getattr(getattr(func, "_schema", None), "is_mutable", True):
            args, asked = pytree.tree_map_only(torch.Tensor, _widened, (args, asked))
        return func(*args, **asked)


class _Shaken(_InFloat64):
    """Moves all that it computes by up to some roundings, `eps` each; what an operator writes into stays, and so do views."""

    def __init__(self, eps: float, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.size, self.generator = ROUNDINGS * eps, torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        returned = super().__torch_dispatch__(func, types, args, kwargs)
        own = all(result.alias_info is None for result in getattr(getattr(func, "_schema", None), "returns", ()))
        return pytree.tree_map_only(torch.Tensor, self._moved, returned) if own else returned

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        return tensor * (1 + self.size * (2 * torch.rand(tensor.shape, generator=self.generator, dtype=torch.float64) - 1))


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype in LOW else dtype


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.dtype in LOW else tensor


def in_float64(module: nn.Module, calls: Sequence[Sample], shaken: int | None = None) -> Any:
    """Return what the module returns when parameters, buffers, arguments and everything computed of them are float64.

    Args:
        shaken: a seed: all that is computed is moved by some roundings of the module's own narrowest type.

    Raises:
        Whatever the module raises when its types are others.
    """
    mode = _InFloat64() if shaken is None else _Shaken(_rounding(module, calls), shaken)  # type: ignore[no-untyped-call]
    double = copied_whole(module).double()  # not under the mode, which would hand the copy of a buffer to a float32 storage
    with torch.compiler.set_stance("force_eager"), mode:
        return last_returned(double, [mapped(call, _widened) for call in calls])


def _rounding(module: nn.Module, calls: Sequence[Sample]) -> float:
    """The rounding of the narrowest type of all that is given or held; of float32 where none of that is a float."""
    leaves = [*module.parameters(), *module.buffers(), *(leaf for call in calls for leaf in call.leaves())]
    floats = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    return max((torch.finfo(leaf.dtype).eps for leaf in floats), default=torch.finfo(torch.float32).eps)


def is_half(module: nn.Module, calls: Sequence[Sample], returned: Any) -> bool:
    """Whether anything given, held or returned is in half precision."""
    held = [*module.parameters(), *module.buffers()]
    leaves = [leaf for call in calls for leaf in call.leaves()] + pytree.tree_leaves(returned)
    return any(isinstance(leaf, torch.Tensor) and leaf.dtype in HALF for leaf in (*held, *leaves))


def ruled(module: nn.Module, calls: Sequence[Sample], expected: Any, actual: Any) -> Ruling:
    """Hold both answers, which have the same structure, against the module in float64."""
    try:
        exact = pytree.tree_leaves(in_float64(module, calls))
    except Exception as error:  # noqa: BLE001 - a module need not run in float64: it is told, and nothing is excused
        return Ruling(False, f"cannot be computed in float64: {first_line(error)}")
    answers = list(zip(pytree.tree_leaves(expected), pytree.tree_leaves(actual), exact, strict=False))
    half = is_half(module, calls, expected)
    pairs = [_distances(*leaves, half) for leaves in answers if isinstance(leaves[0], torch.Tensor)]
    known = [pair for pair in pairs if pair is not None]
    if len(known) < len(pairs) or len(exact) < len(answers):
        return Ruling(False, "in float64 the answer has another form")
    return _ruling(all(pair.near for pair in known), max(p.file for p in known), max(p.eager for p in known))


def _ruling(near: bool, file: float, eager: float) -> Ruling:
    distances = f"off the float64 answer by {file:.1e}, eager by {eager:.1e}"
    if not near:
        return Ruling(False, distances)
    return Ruling(True, f"{ROUNDING}the file is {'nearer than' if file <= eager else 'as near as'} eager, {distances}")


@dataclass(frozen=True)
class _Pair:
    """The largest distances from the float64 answer, and whether the file is as near as eager."""

    file: float
    eager: float
    near: bool


def _distances(expected: torch.Tensor, actual: torch.Tensor, exact: Any, half: bool) -> _Pair | None:
    """None where the float64 answer cannot be held against these."""
    if not isinstance(exact, torch.Tensor) or exact.shape != expected.shape or not expected.is_floating_point():
        same = isinstance(exact, torch.Tensor) and exact.shape == expected.shape and torch.equal(expected, actual)
        return _Pair(0.0, 0.0, near=True) if same else None
    if not expected.numel():
        return _Pair(0.0, 0.0, near=True)
    file, eager = distances(exact, actual), distances(exact, expected)
    return _Pair(float(file.max()), float(eager.max()), _as_near(file, eager, half))


def _as_near(file: torch.Tensor, eager: torch.Tensor, half: bool) -> bool:
    """Where eager itself is off by an infinity, or by NaN, any answer is as near."""
    there = eager.isfinite()
    file, eager = file[there], eager[there]
    if not file.numel():
        return True
    whole, farthest = (ON_THE_WHOLE, FARTHEST) if half else (IN_FLOAT32, IN_FLOAT32)
    on_the_whole = file.square().mean() <= whole**2 * eager.square().mean()
    return bool(on_the_whole) and bool(file.max() <= farthest * eager.max())
