"""Where Python code loops: `range`, `unbind` and `split`, seen while a run lasts, with the line and the number of turns."""

from __future__ import annotations

import builtins
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any
from unittest.mock import patch

import sympy
import torch
from torch.overrides import TorchFunctionMode

from ..lines import Place, is_within_torch, outside, place_of
from ..notes import Row, Trace
from ..recorder import Recorder
from ..sample import Setting

RANGE, LEN, ENUMERATE = range, len, enumerate
UNBINDS = (torch.Tensor.unbind, torch.unbind)
SPLITS = (torch.Tensor.split, torch.split)
SPLIT = torch.ops.aten.split.Tensor


class Places:
    """Counts the turns that `range`, `unbind` and `split` give at each place."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.counts: dict[Place, set[int]] = defaultdict(set)

    @contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Count while it lasts."""
        with ranges_by(self._range), TakenApart(self._unbind, self._split):
            yield

    def _range(self, place: Place, *args: Any) -> Any:
        found = RANGE(*args)
        self.counts[place].add(len(found))
        return found

    def _unbind(self, place: Place, tensor: torch.Tensor, dim: int = 0) -> Any:
        self.counts[place].add(tensor.shape[dim])
        return None

    def _split(self, place: Place, tensor: torch.Tensor, size: int, dim: int = 0) -> Any:
        self.counts[place].add(-(-tensor.shape[dim] // size))
        return None


def moving(one: Places, other: Places) -> frozenset[Place]:
    """Return the places at which two runs at different sizes do not loop alike."""
    return frozenset(place for place in one.counts.keys() | other.counts.keys() if one.counts[place] != other.counts[place])


def sizes_of_parts(traces: Sequence[Trace], settings: Sequence[Setting]) -> dict[sympy.Symbol, int]:
    """Return how long the parts are that runs cut a moving axis into, the longest of several, by the size of that axis."""
    found: dict[sympy.Symbol, int] = {}
    for rows in zip(*(trace.rows for trace in traces), strict=False):
        if all(row.op is SPLIT and row.leaves == rows[0].leaves for row in rows):
            lengths, size = list(map(_length, rows)), int(rows[0].leaves[1])
            moving = (symbol for symbol in settings[0] if lengths == [setting[symbol] for setting in settings])
            found.update((symbol, max(size, found.get(symbol, 0))) for symbol in moving)
    return found


def _length(row: Row) -> int:
    """How long an axis is that was cut."""
    return sum(part.shape[row.leaves[2] if len(row.leaves) > 2 else 0] for part in row.made)


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


class TakenApart(TorchFunctionMode):
    """While it lasts, a tensor is taken apart outside torch into what a function returns for a place; None is for torch's own result.

    Args:
        rows: gives those of `unbind`, and of `for row in x`.
        parts: gives those of `split`, where these have one size.
    """

    def __init__(self, rows: Callable[..., Any], parts: Callable[..., Any]) -> None:
        super().__init__()
        self._made: dict[Any, Callable[..., Any]] = dict.fromkeys(UNBINDS, rows) | dict.fromkeys(SPLITS, parts)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make the call."""
        kwargs = kwargs or {}
        if self._is_taken_apart(func, args) and (frame := outside(sys._getframe(1))) is not None:
            found = self._made[func](place_of(frame), *args, **kwargs)
            if found is not None:
                return found
        return func(*args, **kwargs)

    def _is_taken_apart(self, func: Any, args: Any) -> bool:
        return func in UNBINDS or (func in SPLITS and len(args) > 1 and type(args[1]) is int)
