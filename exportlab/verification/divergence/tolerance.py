"""Measure distances in tolerances, by the scale of the tensor, so that elements near zero count like the others."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from ..difference import EXACT, Difference, Tolerances, distances
from .call import widen_floats

MASKS = 1e4  # elements larger than small ones by this factor are masks, and don't count for the scale
NOISES = 8.0  # a value may move by this multiple of the effect of rounding its inputs


def measure_in_tolerances(
    value: torch.Tensor, reference: torch.Tensor, dtype: torch.dtype, tolerances: Tolerances, excused: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the distance of each element in tolerances of `dtype`: 0 if equal or both NaN, infinite if only one is finite.

    Args:
        excused: an additional allowed distance for each element.
    """
    apart, allowed = distances(reference, value), _compute_tolerance(reference, dtype, tolerances)
    if excused is not None:
        allowed = allowed + NOISES * excused
    return torch.where(apart == 0, 0.0, torch.where(apart.isfinite(), apart / allowed, torch.inf))


def largest(values: torch.Tensor) -> float:
    """Return the largest element, or 0 for an empty tensor."""
    return float(values.max()) if values.numel() else 0.0


def measure_movement(values: Iterable[torch.Tensor], reference: torch.Tensor) -> torch.Tensor:
    """Return the largest finite distance of each element from the reference, and at least the median of these distances."""
    apart = torch.stack([distances(reference, value) for value in values]).amax(0)
    apart = torch.where(apart.isfinite(), apart, 0.0)
    return apart.clamp(min=float(apart.median())) if apart.numel() else apart


def difference(value: torch.Tensor, reference: torch.Tensor, ratios: torch.Tensor, whose: str = "eager has") -> Difference:
    """Return the largest difference, with a description of the worst element in tolerances; `whose` names the reference."""
    wrong, worst = ratios > 1, largest(distances(reference, value))
    if not wrong.any():
        return Difference(worst)
    flat = int(torch.argmax(ratios))
    position = [int(i) for i in torch.unravel_index(torch.tensor(flat), ratios.shape)]
    values = f"{_number(value, flat)} where {whose} {_number(reference, flat)}"
    return Difference(worst, f"output{position}: {values} ({int(wrong.sum())} of {wrong.numel()} elements differ)")


def error(value: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """Return the difference to the exact value, 0 where both are equal or NaN."""
    apart = widen_floats(value) - exact
    same = (value == exact) | (value.isnan() & exact.isnan())
    return torch.where(same, torch.zeros_like(apart), apart)


def _compute_tolerance(reference: torch.Tensor, dtype: torch.dtype, tolerances: Tolerances) -> torch.Tensor:
    if not (reference.is_floating_point() or reference.is_complex()):
        return torch.zeros(reference.shape, dtype=torch.float64)
    rtol, atol = tolerances.get(dtype, EXACT)
    size = widen_floats(reference).abs()
    size = torch.where(size.isfinite(), size, 0.0)
    usual = _drop_masks(size)
    typical, top = (float(usual.square().mean().sqrt()), float(usual.max())) if usual.numel() else (0.0, 0.0)
    smallest = torch.finfo(dtype).smallest_normal if rtol or atol else 0.0
    return rtol * size.clamp(min=typical) + atol * min(1.0, top) + smallest


def _drop_masks(size: torch.Tensor) -> torch.Tensor:
    some = size[size > 0]
    if some.numel() == 0:
        return some
    lower = some.flatten().kthvalue(max(1, some.numel() // 10)).values
    return size[size <= MASKS * lower]


def _number(value: torch.Tensor, flat: int) -> str:
    number = value.flatten()[flat].item()
    return f"{number:.6g}" if isinstance(number, (int, float)) else str(number)
