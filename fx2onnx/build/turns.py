"""The call that stands in a captured graph for a loop whose turns follow a size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def turns(
    body: Callable[..., Any], count: int, first: int, carried: Sequence[torch.Tensor], extra: Sequence[Any] = ()
) -> list[torch.Tensor]:
    """Call `body(*carried, number, *extra)` for each number from `first` on, `count` times.

    Returns:
        What was carried out of the last turn, and then each further result of all turns, stacked along a new first axis.
    """
    state, rows = [value.clone() for value in carried], []
    for number in range(first, first + count):
        made = body(*state, number, *extra)
        state = list(made[: len(carried)])
        rows.append(made[len(carried) :])
    return [*state, *(torch.stack(values) for values in zip(*rows, strict=True))]
