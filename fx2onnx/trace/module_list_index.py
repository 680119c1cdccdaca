"""Lists of layers at a number that a value decides: a test for each layer, since a file has all of them and calls one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from ..patches.registry import register_patch
from .symbolic_builtins import int_as_item
from .symbolic_scalars import ScalarProxy

FINDS = (  # what `__getitem__` finds a layer with: CPython 3.13 calls a stale `__getitem__` once its class has changed 1,000 times
    "torch.nn.ModuleList._get_abs_string_index",
    "torch.nn.ParameterList._get_abs_string_index",
    "torch.nn.Sequential._get_item_by_idx",
)
MOST = 16  # layers of a list: more than that are more paths than a file may have


@register_patch("chosen_layers", *FINDS, reason="a list takes the place of a layer as a number of Python, where a value decides it")
def _wrap_getitem(at: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(layers: Any, *given: Any) -> Any:
        *others, place = given
        number = int_as_item(place) if isinstance(place, torch.Tensor) else place
        is_read = sys._getframe(1).f_code.co_name == "__getitem__"
        return at(layers, *others, _place(number, len(layers)) if is_read and type(number) is ScalarProxy else place)

    return chosen


def _place(number: ScalarProxy, length: int) -> int:
    """Return the place in a list of this length, from its end where the number is negative, as Python counts.

    Raises:
        IndexError: there is none, which is what the test of the last layer comes to on its other side.
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
