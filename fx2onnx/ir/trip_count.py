"""The call that stands in a captured graph for a loop whose turns follow a size, or that a value ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def turns(
    body: Callable[..., Any],
    count: int | None,
    first: int,
    carried: Sequence[torch.Tensor],
    extra: Sequence[Any] = (),
    goes_on: bool | torch.Tensor | None = None,
) -> list[torch.Tensor]:
    """Call `body(*carried, number, *extra)` for each number from `first` on, `count` times.

    Args:
        count: no limit where it is None.
        goes_on: whether there is a first turn; each turn then returns first of all whether there is another. None where none says so.

    Returns:
        What was carried out of the last turn, and then each further result of all turns, stacked along a new first axis.
    """
    state, rows, number = [value.clone() for value in carried], [], first
    more = True if goes_on is None else bool(goes_on)
    while more and (count is None or number < first + count):
        made = body(*state, number, *extra)
        if goes_on is not None:
            more, made = bool(made[0]), made[1:]
        state, number = list(made[: len(carried)]), number + 1
        rows.append(made[len(carried) :])
    return [*state, *(torch.stack(values) for values in zip(*rows, strict=True))]
