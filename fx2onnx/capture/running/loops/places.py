"""Where Python code loops: `range` and `unbind`, seen while a run lasts, with the line and the number of turns."""

from __future__ import annotations

import builtins
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

from ..lines import Place, is_within_torch, outside, place_of
from ..recorder import Recorder

RANGE, LEN, ENUMERATE = range, len, enumerate
UNBINDS = (torch.Tensor.unbind, torch.unbind)


class Places:
    """Counts the turns that `range` and `unbind` give at each place."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.counts: dict[Place, set[int]] = defaultdict(set)

    @contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Count while it lasts."""
        with ranges_by(self._range), Unbinds(self._unbind):
            yield

    def _range(self, place: Place, *args: Any) -> Any:
        found = RANGE(*args)
        self.counts[place].add(len(found))
        return found

    def _unbind(self, place: Place, tensor: torch.Tensor, dim: int = 0) -> Any:
        self.counts[place].add(tensor.shape[dim])
        return None


def moving(one: Places, other: Places) -> frozenset[Place]:
    """Return the places at which two runs at different sizes do not loop alike."""
    return frozenset(place for place in one.counts.keys() | other.counts.keys() if one.counts[place] != other.counts[place])


@contextmanager
def ranges_by(made: Callable[..., Any], kinds: tuple[type, ...] = ()) -> Iterator[None]:
    """Let `range`, called outside torch, give what `made` returns for a place and the arguments, while it lasts."""

    thread = get_ident()

    class Kind(type):
        def __call__(cls, *args: Any) -> Any:
            frame = sys._getframe(1)
            if is_within_torch(frame.f_code.co_filename) or get_ident() != thread:
                return RANGE(*args)
            return made(place_of(frame), *args)

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, (RANGE, *kinds))

    with patch.object(builtins, "range", Kind("range", (), {})):
        yield


class Unbinds(TorchFunctionMode):
    """While it lasts, `unbind` and `for row in x` outside torch give what `made` returns for a place; None is for torch's own result."""

    def __init__(self, made: Callable[..., Any]) -> None:
        super().__init__()
        self._made = made

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make the call."""
        kwargs = kwargs or {}
        if func in UNBINDS and (frame := outside(sys._getframe(1))) is not None:
            found = self._made(place_of(frame), *args, **kwargs)
            if found is not None:
                return found
        return func(*args, **kwargs)
