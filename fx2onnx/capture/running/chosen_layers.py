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

LISTS = (nn.ModuleList, nn.Sequential, nn.ParameterList)
MOST = 16  # layers of a list: more than that are more paths than a file may have


@contextmanager
def layers_chosen() -> Iterator[None]:
    """Let lists of layers, while it lasts, be asked for the one at a number that was read, or at a tensor."""
    with ExitStack() as stack:
        for kind in LISTS:
            stack.enter_context(patch.object(kind, "__getitem__", _at_either(kind.__getitem__)))
        yield


def _at_either(at: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def chosen(layers: Any, place: Any) -> Any:
        number = whole_number(place) if isinstance(place, torch.Tensor) else place
        return at(layers, _place(number, len(layers)) if type(number) is Number else place)

    return chosen


def _place(number: Number, length: int) -> int:
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
