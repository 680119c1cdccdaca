"""The call in a captured graph that represents a loop whose number of iterations depends on a size or on a value."""

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
    """Call `body(*carried, number, *extra)` for `count` numbers from `first` on.

    Args:
        count: the number of iterations; None for no limit.
        goes_on: whether there is a first iteration; the body then first returns whether to continue. None if `count` alone decides.

    Returns:
        The carried values after the last iteration, then each further result of all iterations, stacked along a new first axis.
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
