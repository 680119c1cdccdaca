"""Values to run a model with, so that masks select few, many or no elements, and numbers are small or large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

FEW_ELEMENTS = 8  # of a tensor whose integers may be read as numbers
NUMBERS = (-1, 3, 4, 5, 6, 7, 8, 16)
SEEDS = range(6)


@dataclass(frozen=True)
class Values:
    """Values for a run, computed from the given ones.

    Attributes:
        name: identifies them.
    """

    name: str
    of: Callable[[torch.Tensor], torch.Tensor]


def _select_rows(rows: int | None, given: torch.Tensor) -> torch.Tensor:
    """Make the first `rows` entries large or true (all if None), and the others small or false."""
    if given.is_complex() or given.dtype == torch.uint8:
        return given
    chosen = torch.zeros(given.shape, dtype=torch.bool)
    (chosen if given.dim() else chosen.reshape(1))[:rows] = True
    if given.dtype == torch.bool:
        return chosen
    if given.is_floating_point():
        size = given.abs() + 1
        return torch.where(chosen, size, -size)
    return torch.full_like(given, rows) if rows is not None else given


def _numbers(number: int, given: torch.Tensor) -> torch.Tensor:
    """Replace a few integers by one number."""
    is_whole = not (given.is_floating_point() or given.is_complex()) and given.dtype not in (torch.bool, torch.uint8)
    return torch.full_like(given, number) if is_whole and given.numel() <= FEW_ELEMENTS else given


def _random(seed: int, given: torch.Tensor) -> torch.Tensor:
    """Draw random floats and booleans, and sample integers from the given ones."""
    generator = torch.Generator().manual_seed(seed)
    if given.is_complex() or not given.numel():
        return given
    if given.is_floating_point():
        return torch.randn(given.shape, generator=generator, dtype=torch.float32).to(given)
    if given.dtype == torch.bool:
        return torch.rand(given.shape, generator=generator) < (1 + seed) / 8
    return given.flatten()[torch.randint(given.numel(), (given.numel(),), generator=generator)].reshape(given.shape)


GIVEN = Values("given", lambda given: given)
NONE, ONE, TWO = (Values(f"{rows} selected", partial(_select_rows, rows)) for rows in range(3))
ALL = Values("all selected", partial(_select_rows, None))
OTHERS = (
    *(NONE, ALL, ONE, TWO),
    *(Values(f"the number {number}", partial(_numbers, number)) for number in NUMBERS),
    *(Values(f"drawn by {seed}", partial(_random, seed)) for seed in SEEDS),
)
FEW = (NONE, ONE, TWO, ALL)  # used for every model with data-dependent sizes
