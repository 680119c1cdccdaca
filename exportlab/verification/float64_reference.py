"""Who is nearer to the exact answer where a file and eager differ by little: the module computed in float64 decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ..cases import Sample
from ..eager import copied_whole, run_calls
from ..messages import first_line
from .difference import Tolerances, compute_tolerance, difference_of, distances, scale_of
from .noise import makes_its_results, noise_of
from .report import ROUNDING
from .values import map_tensors

HALF = (torch.float16, torch.bfloat16)
LOW = (*HALF, torch.float32)
# A file that sums in another order is about as far off as eager, on the whole and where it is farthest.
ON_THE_WHOLE = 1.1
FARTHEST = 2.0
# In float32 eager is seldom off by more than the tolerance. Where it is, as in the sine of a million, a few values decide how far, and
# exporters that are all right are off by 0.7 to 2.6 of eager.
IN_FLOAT32 = 3.0
NOISIEST = 10.0  # tolerances: a run with noise that is farther off takes another path than eager, as without torch's fast path
BEYOND = 100.0  # tolerances: eager is off by more where rounding decides an order, for example
MANY = 4096  # numbers have a stable mean of squares
SCATTER = 6.0  # divided by the root of their count: how far the root mean square of few numbers scatters
OTHER_FORM = "in float64 the answer has another form"
ROUNDINGS = 4.0  # what each result may be off by where it is asked whether a decision stands


@dataclass(frozen=True)
class Ruling:
    """Whether what differs is rounding, and why, in words.

    Attributes:
        unstable: the numbers of the outputs for which eager itself is too inexact.
    """

    is_rounding: bool
    words: str
    unstable: frozenset[int] = frozenset()


class _InFloat64(TorchDispatchMode):
    """Computes in float64 whatever asks for less."""

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        args, asked = pytree.tree_map_only(torch.dtype, _wide, (args, dict(kwargs or {})))
        if not getattr(getattr(func, "_schema", None), "is_mutable", True):
            args, asked = pytree.tree_map_only(torch.Tensor, _widen_tensor, (args, asked))
        return func(*args, **asked)


class _Shaken(_InFloat64):
    """Moves all that it computes by up to some roundings, `eps` each; what an operator writes into stays, and so do views."""

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
    """Return what the module returns when parameters, buffers, arguments and everything computed of them are float64.

    Args:
        shaken: a seed: all that is computed is moved by some roundings of the module's own narrowest type.

    Raises:
        Whatever the module raises when its types are others.
    """
    mode = _InFloat64() if shaken is None else _Shaken(_rounding(module, calls), shaken)  # type: ignore[no-untyped-call]
    double = copied_whole(module).double()  # not under the mode, which would hand the copy of a buffer to a float32 storage
    with torch.compiler.set_stance("force_eager"), mode:
        return run_calls(double, [map_tensors(call, _widen_tensor) for call in calls])


def _rounding(module: nn.Module, calls: Sequence[Sample]) -> float:
    """The rounding of the narrowest type of all that is given or held; of float32 where none of that is a float."""
    leaves = [*module.parameters(), *module.buffers(), *(leaf for call in calls for leaf in call.leaves())]
    floats = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    return max((torch.finfo(leaf.dtype).eps for leaf in floats), default=torch.finfo(torch.float32).eps)


def half_in(module: nn.Module, calls: Sequence[Sample], returned: Any) -> torch.dtype | None:
    """Return the coarsest type of half precision that anything given, held or returned has; None where nothing has one."""
    held = [*module.parameters(), *module.buffers()]
    leaves = [leaf for call in calls for leaf in call.leaves()] + pytree.tree_leaves(returned)
    halves = {leaf.dtype for leaf in (*held, *leaves) if isinstance(leaf, torch.Tensor) and leaf.dtype in HALF}
    return max(halves, key=lambda dtype: torch.finfo(dtype).eps, default=None)


def adjudicate(module: nn.Module, calls: Sequence[Sample], expected: Any, actual: Any, tolerances: Tolerances | None = None) -> Ruling:
    """Compare both answers, which have the same structure, with the module in float64."""
    try:
        exact = pytree.tree_leaves(run_in_float64(module, calls))
    except Exception as error:  # noqa: BLE001 - a module need not run in float64: it is told, and nothing is excused
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
    """The largest distances of one output from the float64 answer, whether the file is as near as eager, and those of all elements.

    Attributes:
        unstable: whether eager itself is too inexact to judge a file that is not within the tolerance of the float64 answer.
        off: the distances of the file and of eager, where the file is not within the tolerance.
        limit: how far off a run with noise may be.
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
    """None where the float64 answer cannot be compared with these."""
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
    """Return whether an answer is off by more than `BEYOND` tolerances anywhere.

    Args:
        half: the type of half precision that the module computes in, whose tolerance counts then.
    """
    limit = (BEYOND * compute_tolerance(expected, half if expected.is_floating_point() else None)).clamp(max=max(scale_of(expected), 1.0))
    return bool((apart[apart.isfinite()] > limit[apart.isfinite()]).any())


def _might_be_near(pair: _Pair) -> bool:
    """Whether more samples of rounding could show that the file is as near: for few numbers, eager alone is a small sample."""
    return not pair.near and pair.off is not None and pair.off[0].numel() < MANY


def _noise(module: nn.Module, calls: Sequence[Sample], exact: Sequence[Any]) -> list[list[torch.Tensor | None]]:
    try:
        return noise_of(module, calls, exact)
    except Exception:  # noqa: BLE001 - eager answered these calls: where it cannot be watched, its own distance is all that is known
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
    """Where eager itself is off by an infinity, or by NaN, any answer is as near.

    The mean of squares of few numbers scatters: the fewer there are, the farther off the file may be.
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
