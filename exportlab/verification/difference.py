"""How far two outputs are apart: structure, dtype, shape, then values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.utils import _pytree as pytree

#: ``(rtol, atol)`` by dtype: some hundred roundings, since runtimes sum in another order. Integers and booleans are exact.
TOLERANCES: Mapping[torch.dtype, tuple[float, float]] = {
    torch.float64: (1e-9, 1e-10),
    torch.float32: (1e-4, 1e-5),
    torch.float16: (1e-2, 1e-3),
    torch.bfloat16: (3e-2, 1e-2),
    torch.complex128: (1e-9, 1e-10),
    torch.complex64: (1e-4, 1e-5),
}
EXACT = (0.0, 0.0)
Tolerances = Mapping[torch.dtype, tuple[float, float]]


@dataclass(frozen=True)
class Difference:
    """The outcome of one comparison: `problem` is empty when they agree; `worst` is the largest absolute difference seen."""

    worst: float = 0.0
    problem: str = ""


def difference_of(expected: Any, actual: Any, tolerances: Tolerances = TOLERANCES) -> Difference:
    """Return the difference of two return values, leaf by leaf. NaN equals NaN; integers and booleans are compared exactly.

    Args:
        tolerances: `(rtol, atol)` by dtype of the expected tensor; they agree where |actual - expected| <= atol + rtol * |expected|.
    """
    (wanted, wanted_spec), (given, given_spec) = (pytree.tree_flatten_with_path(tree) for tree in (expected, actual))
    if wanted_spec != given_spec:
        return Difference(problem=f"structure differs: expected {_outline(expected)}, got {_outline(actual)}")
    found = [_leaves(pytree.keystr(path), a, b, tolerances) for (path, a), (_, b) in zip(wanted, given, strict=True)]
    problems = [difference.problem for difference in found if difference.problem]
    return Difference(max((d.worst for d in found), default=0.0), problems[0] if problems else "")


def tolerance_text(dtype: torch.dtype, tolerances: Tolerances = TOLERANCES) -> str:
    """Return the tolerance of a dtype in words, as the report prints it."""
    rtol, atol = tolerances.get(dtype, EXACT)
    return f"rtol {rtol:g}, atol {atol:g}" if rtol or atol else "exact"


def _leaves(where: str, expected: Any, actual: Any, tolerances: Tolerances) -> Difference:
    if not isinstance(expected, torch.Tensor) or not isinstance(actual, torch.Tensor):
        return _objects(where, expected, actual)
    if isinstance(actual, FakeTensor):
        return Difference(problem=f"output{where}: a tensor without data, left from the capture")
    for what, a, b in (("dtype", expected.dtype, actual.dtype), ("shape", list(expected.shape), list(actual.shape))):
        if a != b:
            return Difference(problem=f"output{where}: {what} {b} where eager has {a}")
    return _tensors(where, expected.detach().cpu(), actual.detach().cpu(), tolerances)


def _objects(where: str, expected: Any, actual: Any) -> Difference:
    if isinstance(expected, torch.Tensor) or isinstance(actual, torch.Tensor) or type(expected) is not type(actual):
        return Difference(problem=f"output{where}: a {type(actual).__name__} where eager has a {type(expected).__name__}")
    return Difference() if expected == actual else Difference(problem=f"output{where}: {actual!r} where eager has {expected!r}")


def _tensors(where: str, expected: torch.Tensor, actual: torch.Tensor, tolerances: Tolerances) -> Difference:
    if expected.numel() == 0:
        return Difference()
    rtol, atol = tolerances.get(expected.dtype, EXACT)
    apart, size = _apart(expected, actual), _widened(expected).abs()
    excess = apart - (atol + rtol * torch.where(size.isfinite(), size, 0.0))
    wrong = excess > 0
    if not wrong.any():
        return Difference(float(apart.max()))
    flat = int(torch.argmax(excess))
    position = [int(i) for i in torch.unravel_index(torch.tensor(flat), expected.shape)]
    values = f"{actual.flatten()[flat].item():.6g} where eager has {expected.flatten()[flat].item():.6g}"
    return Difference(float(apart.max()), f"output{where}{position}: {values} ({int(wrong.sum())} of {wrong.numel()} elements differ)")


def _widened(value: torch.Tensor) -> torch.Tensor:
    """In a type that holds any difference of two of its values; 64-bit integers beyond 2**53 are handled by equality in `_apart`."""
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


def _apart(expected: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
    """Absolute differences: 0 where both are NaN or equal, infinite where only one is NaN, never 0 where integers differ."""
    same = (expected == actual) | (expected.isnan() & actual.isnan())
    apart = (_widened(actual) - _widened(expected)).abs()
    apart = torch.where(apart.isnan(), torch.inf, apart)
    if not expected.is_floating_point() and not expected.is_complex():
        apart = apart.clamp(min=1.0)
    return torch.where(same, 0.0, apart)


def _outline(tree: Any) -> str:
    """A return value with its tensors shown as their shapes."""
    if isinstance(tree, torch.Tensor):
        return f"tensor{list(tree.shape)}"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {_outline(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, (list, tuple)):
        inner = ", ".join(map(_outline, tree))
        return f"[{inner}]" if isinstance(tree, list) else f"({inner})"
    return type(tree).__name__ if tree is not None else "None"
