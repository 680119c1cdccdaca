"""Values that a model is run with, so that few, many or none of them are selected, and numbers come out small and large."""

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
    """The values of a run, made of those that were given.

    Attributes:
        name: tells them from others.
    """

    name: str
    of: Callable[[torch.Tensor], torch.Tensor]


def _select_rows(rows: int | None, given: torch.Tensor) -> torch.Tensor:
    """Make so many entries along the first axis large or true, all where no number is said, and the others small or false."""
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
    """Put one number in the place of a few integers."""
    is_whole = not (given.is_floating_point() or given.is_complex()) and given.dtype not in (torch.bool, torch.uint8)
    return torch.full_like(given, number) if is_whole and given.numel() <= FEW_ELEMENTS else given


def _random(seed: int, given: torch.Tensor) -> torch.Tensor:
    """Draw other floats and truths, and put the integers that were given in another order."""
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
FEW = (NONE, ONE, TWO, ALL)  # that every model is run with whose sizes values decide
