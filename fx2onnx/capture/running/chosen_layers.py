"""Lists of layers at a number that a value decides: a test for each layer, since a file has all of them and calls one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from .numbers import Number
from .python_numbers import whole_number

ASKED = ((nn.ModuleList, "_get_abs_string_index"), (nn.ParameterList, "_get_abs_string_index"), (nn.Sequential, "_get_item_by_idx"))
MOST = 16  # layers of a list: more than that are more paths than a file may have


@contextmanager
def layers_chosen() -> Iterator[None]:
    """Let lists of layers, while it lasts, be asked for the one at a number that was read, or at a tensor.

    What `__getitem__` calls is replaced, not `__getitem__` itself: CPython 3.13 may go on to call one that it has seen often.
    """
    with ExitStack() as stack:
        for kind, name in ASKED:
            stack.enter_context(patch.object(kind, name, _at_either(getattr(kind, name))))
        yield


def _at_either(at: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(layers: Any, *parts_and_place: Any) -> Any:
        *parts, place = parts_and_place
        number = whole_number(place) if isinstance(place, torch.Tensor) else place
        return at(layers, *parts, _place(number, len(layers)) if type(number) is Number else place)

    return chosen


def _place(number: Number, length: int) -> int:
    """Return the place in a list of this length, from its end where the number is negative, as Python counts.

    Raises:
        IndexError: there is none, which is what the test of the last layer comes to on its other side.
    """
    places = number.chosen
    if length > MOST:
        number.refuse(f"a list of {length} layers, which needs one branch per layer and exceeds the limit of {MOST},")
    if length not in places:
        counted = torch.where(number.tensor < 0, number.tensor + length, number.tensor)
        places[length] = next((place for place in range(length) if counted == place), None)
    if (found := places[length]) is None:
        raise IndexError(f"index is out of range of {length}")
    return found
