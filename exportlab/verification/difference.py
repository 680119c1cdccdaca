"""Compare two outputs: structure, dtype, shape, then values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch

from fx2onnx.compat import trees as pytree
from fx2onnx.compat.fake_tensors import FakeTensor

from ..checks import must_be
from .paths import leaves_with_path

#: ``(rtol, atol)`` by dtype, because runtimes sum in another order: about 800 roundings of float32, 10 of float16, 4 of bfloat16.
#: ``atol`` is multiplied by the scale of the output. Integers and booleans must be equal.
TOLERANCES: Mapping[torch.dtype, tuple[float, float]] = {
    torch.float64: (1e-9, 1e-10),
    torch.float32: (1e-4, 1e-5),
    torch.float16: (1e-2, 1e-3),
    torch.bfloat16: (3e-2, 1e-2),
    torch.complex128: (1e-9, 1e-10),
    torch.complex64: (1e-4, 1e-5),
}
EXACT = (0.0, 0.0)
FLUSHED = torch.finfo(torch.float32).tiny  # a runtime may flush smaller numbers to zero
Tolerances = Mapping[torch.dtype, tuple[float, float]]
PAIRS = "a mapping of dtypes to pairs (rtol, atol), as in {torch.float32: (1e-4, 1e-5)}"
LOWER_QUARTER = 0.25
USUAL_OVER_LOWER_QUARTER = 3.0  # for normally distributed numbers: standard deviation / lower quartile of the absolute values


def check_tolerances(tolerances: Any) -> None:
    """Check that tolerances are valid; None means the defaults.

    Raises:
        TypeError: they are not a mapping of dtypes to pairs of numbers.
        ValueError: a tolerance is negative or NaN.
    """
    must_be(Mapping, type(None), tolerances=tolerances)
    for dtype, pair in (tolerances or {}).items():
        if not isinstance(dtype, torch.dtype) or not _is_pair(pair):
            raise TypeError(f"tolerances must be {PAIRS}")
        if not all(number >= 0 for number in pair):
            raise ValueError(f"the tolerances of {dtype} are {pair}: they must not be negative")


def _is_pair(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2 and all(isinstance(number, Real) for number in value)


@dataclass(frozen=True)
class Difference:
    """The result of a comparison; `problem` is empty if the values agree.

    Attributes:
        worst: the largest absolute difference.
        times: the largest difference as a multiple of its tolerance; infinite if structure, dtype or shape differ.
        unlike: whether structure, dtype or shape differ.
    """

    worst: float = 0.0
    problem: str = ""
    times: float = 0.0
    unlike: bool = False


def difference_of(expected: Any, actual: Any, tolerances: Tolerances | None = None) -> Difference:
    """Compare two return values leaf by leaf. NaN equals NaN; integers and booleans must be equal.

    Args:
        tolerances: `(rtol, atol)` by dtype of the expected tensor; values agree if |actual - expected| <= atol + rtol * |expected|.
            By default `TOLERANCES`, with `atol` multiplied by the scale of the output.
    """
    (wanted, wanted_spec), (given, given_spec) = (leaves_with_path(tree) for tree in (expected, actual))
    if wanted_spec != given_spec:
        return _make_kind_difference(f"structure differs: expected {_outline(expected)}, got {_outline(actual)}")
    found = [_leaves(pytree.keystr(path), a, b, tolerances) for (path, a), (_, b) in zip(wanted, given, strict=True)]
    problems = [difference.problem for difference in found if difference.problem]
    worst, times = (max((getattr(d, name) for d in found), default=0.0) for name in ("worst", "times"))
    return Difference(worst, problems[0] if problems else "", times, any(d.unlike for d in found))


def tolerance_text(dtype: torch.dtype, tolerances: Tolerances | None = None) -> str:
    """Describe the tolerance of a dtype as the report prints it."""
    rtol, atol = (TOLERANCES if tolerances is None else tolerances).get(dtype, EXACT)
    return f"rtol {rtol:g}, atol {atol:g}{' of the scale' * (tolerances is None)}" if rtol or atol else "exact"


def scale_of(expected: torch.Tensor) -> float:
    """Return the scale of an output: its largest absolute value if that is at most 1, else a typical value, but at least 1.

    The typical value is derived from the lower quartile of the nonzero elements, so that a few huge ones, as in a mask, have no effect.
    """
    sizes = _widen(expected).abs().flatten()
    sizes = sizes[sizes.isfinite() & (sizes > 0)]
    if not sizes.numel():
        return 0.0
    largest = float(sizes.max())
    quartile = sizes.kthvalue(1 + int(LOWER_QUARTER * (sizes.numel() - 1))).values
    return largest if largest <= 1 else max(1.0, min(largest, USUAL_OVER_LOWER_QUARTER * float(quartile)))


def distances(expected: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
    """Return the distance of each element in float64: 0 if both are equal or NaN, infinite if only one is NaN.

    Different integers have a distance of at least 1, however large they are. Shapes must be equal; dtypes may differ.
    """
    same = (expected == actual) | (expected.isnan() & actual.isnan())
    apart = (_widen(actual) - _widen(expected)).abs()
    apart = torch.where(apart.isnan(), torch.inf, apart)
    if not expected.is_floating_point() and not expected.is_complex():
        apart = apart.clamp(min=1.0)
    return torch.where(same, 0.0, apart)


def _make_kind_difference(problem: str) -> Difference:
    return Difference(problem=problem, times=math.inf, unlike=True)


def _leaves(where: str, expected: Any, actual: Any, tolerances: Tolerances | None) -> Difference:
    if not isinstance(expected, torch.Tensor) or not isinstance(actual, torch.Tensor):
        return _objects(where, expected, actual)
    if isinstance(actual, FakeTensor):
        return _make_kind_difference(f"output{where}: a tensor without data, left from the capture")
    for what, a, b in (("dtype", expected.dtype, actual.dtype), ("shape", list(expected.shape), list(actual.shape))):
        if a != b:
            return _make_kind_difference(f"output{where}: {what} {b} where eager has {a}")
    return _tensors(where, expected.detach().cpu(), actual.detach().cpu(), tolerances)


def _objects(where: str, expected: Any, actual: Any) -> Difference:
    if isinstance(expected, torch.Tensor) or isinstance(actual, torch.Tensor) or type(expected) is not type(actual):
        return _make_kind_difference(f"output{where}: a {type(actual).__name__} where eager has a {type(expected).__name__}")
    return Difference() if _equal(expected, actual) else _make_kind_difference(f"output{where}: {actual!r} where eager has {expected!r}")


def _equal(expected: Any, actual: Any) -> bool:
    """Whether two values are equal, with NaN equal to NaN. Values that cannot be compared are not equal."""
    try:
        return bool(expected == actual or (expected != expected and actual != actual))
    except Exception:  # noqa: BLE001 - the comparison of a user's class can raise anything
        return False


def _tensors(where: str, expected: torch.Tensor, actual: torch.Tensor, tolerances: Tolerances | None) -> Difference:
    if expected.numel() == 0:
        return Difference()
    apart, limit = distances(expected, actual), compute_tolerance(expected, None, tolerances)
    excess, times = apart - limit, float((apart / limit).nan_to_num(nan=0.0, posinf=math.inf).max())
    wrong = excess > 0
    if not wrong.any():
        return Difference(float(apart.max()), times=times)
    flat = int(torch.argmax(excess))
    position = [int(i) for i in torch.unravel_index(torch.tensor(flat), expected.shape)]
    values = f"{actual.flatten()[flat].item():.6g} where eager has {expected.flatten()[flat].item():.6g}"
    problem = f"output{where}{position}: {values} ({int(wrong.sum())} of {wrong.numel()} elements differ)"
    return Difference(float(apart.max()), problem, times)


def compute_tolerance(expected: torch.Tensor, dtype: torch.dtype | None = None, tolerances: Tolerances | None = None) -> torch.Tensor:
    """Return the allowed error of each element, with the tolerance of `dtype` or of the tensor's dtype."""
    rtol, atol = (TOLERANCES if tolerances is None else tolerances).get(dtype or expected.dtype, EXACT)
    size, scale = _widen(expected).abs(), scale_of(expected) if tolerances is None and atol else 1.0
    limit = atol * scale + rtol * torch.where(size.isfinite(), size, 0.0)
    return limit.clamp(min=FLUSHED) if tolerances is None and atol else limit


def _widen(value: torch.Tensor) -> torch.Tensor:
    """Convert to a dtype that represents all differences. `distances` tests 64-bit integers beyond 2**53 for equality first."""
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


def _outline(tree: Any) -> str:
    """Format a return value with shapes in place of tensors."""
    if isinstance(tree, torch.Tensor):
        return f"tensor{list(tree.shape)}"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {_outline(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, (list, tuple)):
        inner = ", ".join(map(_outline, tree))
        return f"[{inner}]" if isinstance(tree, list) else f"({inner})"
    return type(tree).__name__ if tree is not None else "None"
