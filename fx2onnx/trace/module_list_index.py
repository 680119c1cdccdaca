"""Index lists of layers by a data-dependent number, with one test per layer, because the exported model contains all layers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from ..patches.registry import register_patch
from .symbolic_builtins import int_as_item
from .symbolic_scalars import ScalarProxy

FINDS = (  # these find the layer for `__getitem__`: CPython 3.13 calls a stale `__getitem__` once its class has changed 1,000 times
    "torch.nn.ModuleList._get_abs_string_index",
    "torch.nn.ParameterList._get_abs_string_index",
    "torch.nn.Sequential._get_item_by_idx",
)
MOST = 16  # layers of a list; more would need too many paths


@register_patch("chosen_layers", *FINDS, reason="the index of a list has to be a Python number, but a value decides it")
def _wrap_getitem(at: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(layers: Any, *given: Any) -> Any:
        *others, place = given
        number = int_as_item(place) if isinstance(place, torch.Tensor) else place
        is_read = sys._getframe(1).f_code.co_name == "__getitem__"
        return at(layers, *others, _place(number, len(layers)) if is_read and type(number) is ScalarProxy else place)

    return chosen


def _place(number: ScalarProxy, length: int) -> int:
    """Return the index in a list of this length, counted from the end if the number is negative.

    Raises:
        IndexError: If the number is out of range, which is the remaining path after the test of the last layer.
    """
    places = number.chosen
    if length > MOST:
        number.refuse(f"a list of {length} layers, which needs one branch per layer and exceeds the limit of {MOST},", is_size=False)
    if length not in places:
        counted = torch.where(number.tensor < 0, number.tensor + length, number.tensor)
        places[length] = next((place for place in range(length) if counted == place), None)
    if (found := places[length]) is None:
        raise IndexError(f"index is out of range of {length}")
    return found
