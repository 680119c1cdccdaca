"""How much a run multiplies: torch.export does not, so models that multiply much are its to capture, where it can."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import torch

aten = torch.ops.aten
LIGHT = 4_000_000_000  # products in one run: a tenth of a second of a core that multiplies 32 numbers at once
MOST_PRODUCTS: ContextVar[int | None] = ContextVar("most_products", default=None)  # in one run; None is any number


@contextmanager
def light_runs() -> Iterator[None]:
    """Refuse, while it lasts, runs that multiply much."""
    token = MOST_PRODUCTS.set(LIGHT)
    try:
        yield
    finally:
        MOST_PRODUCTS.reset(token)


def products_of(func: Any, args: tuple[Any, ...], made: Any) -> int:
    """Return how many products a call of a linear layer, a convolution, or of attention takes; 0 of any other."""
    each = PRODUCTS.get(func)
    return made.numel() * each(args) if each is not None else 0


def _along_the_last_axis(args: tuple[Any, ...]) -> int:
    return int(args[0].shape[-1])


def _of_a_window(args: tuple[Any, ...]) -> int:
    return prod(args[1].shape[1:])


def _of_a_score_and_a_sum(args: tuple[Any, ...]) -> int:
    return 2 * int(args[1].shape[-2])


PRODUCTS: Mapping[Any, Callable[[tuple[Any, ...]], int]] = {
    **dict.fromkeys((aten.linear.default, aten.matmul.default, aten.mm.default, aten.bmm.default), _along_the_last_axis),
    aten.addmm.default: lambda args: _along_the_last_axis(args[1:]),
    aten.baddbmm.default: lambda args: _along_the_last_axis(args[1:]),
    **dict.fromkeys((aten.conv1d.default, aten.conv2d.default, aten.conv3d.default), _of_a_window),
    **dict.fromkeys((aten.conv1d.padding, aten.conv2d.padding, aten.conv3d.padding), _of_a_window),
    aten.scaled_dot_product_attention.default: _of_a_score_and_a_sum,
}
