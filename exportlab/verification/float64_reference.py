"""Decide small differences between an exported model and eager: compute the module in float64, and compare both with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree
from fx2onnx.compat.dispatch import TorchDispatchMode

from ..cases import Sample
from ..eager import copied_whole, run_calls
from ..messages import first_line
from .difference import Tolerances, compute_tolerance, difference_of, distances, scale_of
from .noise import makes_its_results, noise_of
from .report import ROUNDING
from .values import map_tensors

HALF = (torch.float16, torch.bfloat16)
LOW = (*HALF, torch.float32)
# A model that sums in another order is about as far off as eager, on average and at the maximum.
ON_THE_WHOLE = 1.1
FARTHEST = 2.0
# In float32 eager is seldom off by more than the tolerance. If it is, as for the sine of a million, a few values determine the distance,
# and correct exporters are off by 0.7 to 2.6 times as much as eager.
IN_FLOAT32 = 3.0
NOISIEST = 10.0  # in tolerances; noisy runs further off use another code path than eager, such as without torch's fast path
BEYOND = 100.0  # in tolerances; eager is further off where, for example, rounding decides an order
MANY = 4096  # number of elements from which the mean square is stable
SCATTER = 6.0  # the root mean square of n elements scatters by up to this number / sqrt(n)
OTHER_FORM = "in float64 the answer has another form"
ROUNDINGS = 4.0  # the size of random changes when testing whether a decision is stable


@dataclass(frozen=True)
class Ruling:
    """Whether a difference is rounding, with the reason in words.

    Attributes:
        unstable: the indices of the outputs for which eager is too inexact.
    """

    is_rounding: bool
    words: str
    unstable: frozenset[int] = frozenset()


class _InFloat64(TorchDispatchMode):
    """Compute in float64 where operators use narrower floats."""

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        args, asked = pytree.tree_map_only(torch.dtype, _wide, (args, dict(kwargs or {})))
        if not getattr(getattr(func, "_schema", None), "is_mutable", True):
            args, asked = pytree.tree_map_only(torch.Tensor, _widen_tensor, (args, asked))
        return func(*args, **asked)


class _Shaken(_InFloat64):
    """Change each result randomly by up to a few roundings (`eps`). In-place results and views are not changed."""

    def __init__(self, eps: float, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.size, self.generator = ROUNDINGS * eps, torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        returned = super().__torch_dispatch__(func, types, args, kwargs)
        return pytree.tree_map_only(torch.Tensor, self._moved, returned) if makes_its_results(func) else returned

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        noise = torch.rand(tensor.shape, generator=self.generator, dtype=torch.float64).to(tensor.device)
        return tensor * (1 + self.size * (2 * noise - 1))


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype in LOW else dtype


def _widen_tensor(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.dtype in LOW else tensor


def run_in_float64(module: nn.Module, calls: Sequence[Sample], shaken: int | None = None) -> Any:
    """Run the module with float64 parameters, buffers, arguments and intermediate results.

    Args:
        shaken: a seed; if given, each result is changed by a few roundings of the module's narrowest dtype.

    Raises:
        Errors of the module with other dtypes.
    """
    mode = _InFloat64() if shaken is None else _Shaken(_rounding(module, calls), shaken)  # type: ignore[no-untyped-call]
    double = copied_whole(module).double()  # outside the mode, which would give the copy of a buffer a float32 storage
    with torch.compiler.set_stance("force_eager"), mode:
        return run_calls(double, [map_tensors(call, _widen_tensor) for call in calls])


def _rounding(module: nn.Module, calls: Sequence[Sample]) -> float:
    """Return the machine epsilon of the narrowest float dtype among parameters, buffers and inputs, float32 by default."""
    leaves = [*module.parameters(), *module.buffers(), *(leaf for call in calls for leaf in call.leaves())]
    floats = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    return max((torch.finfo(leaf.dtype).eps for leaf in floats), default=torch.finfo(torch.float32).eps)


def half_in(module: nn.Module, calls: Sequence[Sample], returned: Any) -> torch.dtype | None:
    """Return the coarsest half-precision dtype of inputs, parameters, buffers and results, or None."""
    held = [*module.parameters(), *module.buffers()]
    leaves = [leaf for call in calls for leaf in call.leaves()] + pytree.tree_leaves(returned)
    halves = {leaf.dtype for leaf in (*held, *leaves) if isinstance(leaf, torch.Tensor) and leaf.dtype in HALF}
    return max(halves, key=lambda dtype: torch.finfo(dtype).eps, default=None)


def adjudicate(module: nn.Module, calls: Sequence[Sample], expected: Any, actual: Any, tolerances: Tolerances | None = None) -> Ruling:
    """Compare two results with the same structure with the module in float64."""
    try:
        exact = pytree.tree_leaves(run_in_float64(module, calls))
    except Exception as error:  # noqa: BLE001 - the module may not support float64: report that and excuse nothing
        return Ruling(False, f"cannot be computed in float64: {first_line(error)}")
    half = half_in(module, calls, expected)
    answers = list(zip(pytree.tree_leaves(expected), pytree.tree_leaves(actual), exact, strict=False))
    if len(exact) < len(answers):
        return Ruling(False, OTHER_FORM)
    pairs = [_pair(*leaves, half, tolerances) if isinstance(leaves[0], torch.Tensor) else NONE for leaves in answers]
    known = [pair for pair in pairs if pair is not None]
    if len(known) < len(pairs):
        return Ruling(False, OTHER_FORM)
    if any(_might_be_near(pair) for pair in known):
        known = _near_by_noise(known, _noise(module, calls, exact), half is not None)
    unstable = frozenset(place for place, pair in enumerate(known) if pair.unstable)
    return _ruling(all(pair.near for pair in known), max(p.file for p in known), max(p.eager for p in known), unstable)


def _ruling(near: bool, file: float, eager: float, unstable: frozenset[int]) -> Ruling:
    distances = f"off the float64 answer by {file:.1e}, eager by {eager:.1e}"
    if not near:
        return Ruling(False, distances, unstable)
    return Ruling(True, f"{ROUNDING}the file is {'nearer than' if file <= eager else 'as near as'} eager, {distances}", unstable)


@dataclass(frozen=True)
class _Pair:
    """For one output: the largest distances from the float64 result, and whether the model is as near as eager.

    Attributes:
        unstable: whether eager is too inexact to judge a model outside the tolerance of the float64 result.
        off: the distances of all elements in the model and in eager, if the model is outside the tolerance.
        limit: the largest distance that counts for noisy runs.
    """

    file: float
    eager: float
    near: bool
    unstable: bool = False
    off: tuple[torch.Tensor, torch.Tensor] | None = None
    limit: torch.Tensor | None = None


NONE = _Pair(0.0, 0.0, near=True)


def _pair(
    expected: torch.Tensor, actual: torch.Tensor, exact: Any, half: torch.dtype | None, tolerances: Tolerances | None
) -> _Pair | None:
    """Compare one output; None if the float64 result cannot be compared with it."""
    if not isinstance(exact, torch.Tensor) or exact.shape != expected.shape or not expected.is_floating_point():
        same = isinstance(exact, torch.Tensor) and exact.shape == expected.shape and torch.equal(expected, actual)
        return NONE if same else None
    if not expected.numel():
        return NONE
    file, eager = distances(exact, actual), distances(exact, expected)
    largest = float(file.max()), float(eager.max())
    if not difference_of(expected, actual, tolerances).problem:
        return _Pair(*largest, near=True)
    is_exact = not difference_of(exact.to(expected.dtype), actual, tolerances).problem
    unstable = not is_exact and (is_beyond(expected, eager, half) or not bool(eager.isfinite().any()))
    limit = NOISIEST * compute_tolerance(expected, half)
    return _Pair(*largest, _is_as_near(file, eager, (), half is not None), unstable, (file, eager), limit)


def is_beyond(expected: torch.Tensor, apart: torch.Tensor, half: torch.dtype | None = None) -> bool:
    """Return whether a result is off by more than `BEYOND` tolerances anywhere.

    Args:
        half: the half-precision dtype that the module uses, which determines the tolerance.
    """
    limit = (BEYOND * compute_tolerance(expected, half if expected.is_floating_point() else None)).clamp(max=max(scale_of(expected), 1.0))
    return bool((apart[apart.isfinite()] > limit[apart.isfinite()]).any())


def _might_be_near(pair: _Pair) -> bool:
    """Whether noisy runs could show that the model is as near. With few elements, eager alone is a small sample."""
    return not pair.near and pair.off is not None and pair.off[0].numel() < MANY


def _noise(module: nn.Module, calls: Sequence[Sample], exact: Sequence[Any]) -> list[list[torch.Tensor | None]]:
    try:
        return noise_of(module, calls, exact)
    except Exception:  # noqa: BLE001 - eager accepted these calls, but cannot be observed: use only its own distance
        return []


def _near_by_noise(pairs: Sequence[_Pair], noise: Sequence[Sequence[torch.Tensor | None]], half: bool) -> list[_Pair]:
    by_output = zip(*noise, strict=True) if noise else ((),) * len(pairs)
    return [_judge_with_noise(pair, [run for run in runs if run is not None], half) for pair, runs in zip(pairs, by_output, strict=False)]


def _judge_with_noise(pair: _Pair, noise: Sequence[torch.Tensor], half: bool) -> _Pair:
    if pair.off is None or pair.limit is None or not _might_be_near(pair):
        return pair
    steady = [run for run in noise if bool((run[run.isfinite()] <= pair.limit[run.isfinite()]).all())]
    return replace(pair, near=_is_as_near(*pair.off, steady, half))


def _is_as_near(file: torch.Tensor, eager: torch.Tensor, noise: Sequence[torch.Tensor], half: bool) -> bool:
    """Whether the model is about as near as eager. Elements for which eager is not finite don't count.

    The mean square of few elements scatters, so the limit is larger for fewer elements.
    """
    there = eager.isfinite()
    file, others = file[there], torch.stack([eager[there], *(run[there].nan_to_num(0.0, 0.0, 0.0) for run in noise)])
    if not file.numel():
        return True
    few = (1 + SCATTER / math.sqrt(file.numel())) if noise else 1.0
    whole, farthest = (ON_THE_WHOLE, FARTHEST) if half else (IN_FLOAT32, IN_FLOAT32)
    whole, farthest = max(whole, ON_THE_WHOLE * few), max(farthest, FARTHEST * few)
    usual = max(float(others[0].square().mean()), float(others.square().mean()))
    return bool(file.square().mean() <= whole**2 * usual) and bool(file.max() <= farthest * others.max())
