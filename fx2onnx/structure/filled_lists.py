"""Lists that loops fill, and the variables of a model during a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import torch

from ..compat import trees as pytree
from ..compat.dispatch import DisableTorchFunction
from ..trace.events import Ref
from ..trace.python_scalars import tensors_held
from ..trace.source_location import python_frames
from ..trace.tracer import Tracer
from .iteration_shapes import Shape
from .loop import Loop
from .loop_sites import ENUMERATE, LEN, RANGE


class Filled:
    """The variables at the start of each iteration and after a loop, and the lists in the arguments of calls."""

    _tracer: Tracer

    def __init__(self) -> None:
        self.found: list[Loop] = []
        self._open: list[Loop] = []
        self._over: list[Loop] = []

    def resolve_ref(self, ref: Ref) -> Ref:
        """Return a reference as seen in the last iteration that is kept."""
        raise NotImplementedError

    def key_of(self, ref: Ref) -> Any:
        """Return the number of a call, mapped to an iteration that is kept; None if there is none."""
        raise NotImplementedError

    def stamp(self) -> tuple[tuple[Loop, int], ...]:
        """Return the active iterations."""
        return tuple((loop, loop.turn) for loop in self._open)

    def _frames(self) -> Iterator[tuple[str, FrameType]]:
        return ((str(depth), frame) for depth, frame in ENUMERATE(python_frames(sys._getframe(1))))

    def names(self) -> Iterator[str]:
        """Yield the names of all variables."""
        return (f"{depth}.{name}" for depth, frame in self._frames() for name in frame.f_locals)

    def state(self) -> dict[str, Ref]:
        """The tensors in variables."""
        found: dict[str, Ref] = {}
        variables = [(f"{depth}.{name}", tensor) for depth, frame in self._frames() for name, tensor in tensors_held(frame.f_locals)]
        with DisableTorchFunction():  # calls on tensors in here are not those of the model
            for name, tensor in variables:
                ref = self._tracer.known_ref(tensor)
                if ref is not None and (key := self.key_of(ref)) is not None:
                    found[name] = Ref(ref.kind, key, ref.part)
        return found

    def lists(self) -> Iterator[tuple[str, list[Any]]]:
        """Return the variables that contain a list."""
        frames = [(depth, frame.f_locals) for depth, frame in self._frames()]
        return ((f"{depth}.{name}", value) for depth, held in frames for name, value in held.items() if isinstance(value, list))

    def grown(self, loop: Loop) -> Iterator[list[Ref]]:
        """The values added to lists to which each iteration adds one value."""
        with DisableTorchFunction():  # as above
            for name, held in self.lists():
                added = held[loop.lengths_of_lists.get(name, 0) :]
                if LEN(added) == loop.turn + 1 and all(isinstance(one, torch.Tensor) for one in added):
                    refs = [self._tracer.known_ref(one) for one in added]
                    yield from [[ref for ref in refs if ref is not None]] if None not in refs else []

    def arg_refs(self, args: tuple[Any, ...], kwargs: Any) -> tuple[list[Any], pytree.TreeSpec]:
        """Return flattened arguments with a `Ref` for each tensor, and one for what all iterations but the first added to a list."""
        arg_refs = tuple(map(self._one, args)), {name: self._one(value) for name, value in kwargs.items()}
        return pytree.tree_flatten(arg_refs, is_leaf=lambda value: isinstance(value, Ref))

    def _one(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)) and value and all(isinstance(part, torch.Tensor) for part in value):
            return self._group_refs([self._tracer.ref(part) for part in value])
        return pytree.tree_map_only(torch.Tensor, lambda tensor: self.resolve_ref(self._tracer.ref(tensor)), value)

    def _group_refs(self, refs: Sequence[Ref]) -> list[Ref]:
        arg_refs, at = [], 0
        while at < LEN(refs):
            found, many = self._run(refs[at:])
            arg_refs += found or [self.resolve_ref(refs[at])]
            at += many
        return arg_refs

    def _run(self, refs: Sequence[Ref]) -> tuple[list[Ref], int]:
        """The reference for the values of all iterations but the first at the start of a list, and their number."""
        lists = [(loop, added) for loop in reversed(self._over) if not loop.may_end_early for added in loop.grown if LEN(added) > 1]
        for has_first in (True, False):
            for loop, added in lists:
                for kind, values in (("every", added[not has_first :]), ("flipped", added[::-1][: LEN(added) - (not has_first)])):
                    if refs[: LEN(values)] == values:
                        return self._every(kind, loop, added, has_first), LEN(values)
        if not refs[0].turns or refs[0].turns[-1][0].turns is None or refs[0].turns[-1][0].may_end_early:
            return [], 1
        *around, (loop, _) = refs[0].turns
        for kind, order in (("every", RANGE(1, loop.turns)), ("flipped", RANGE(loop.turns - 1, 0, -1))):
            found = refs[: loop.turns - 1]
            if [ref.turns for ref in found] == [(*around, (loop, turn)) for turn in order] and self._is_made_alike(loop, found):
                return self._every(kind, loop, [found[0], *(found if kind == "every" else found[::-1])], False), LEN(found)
        return [], 1

    def _is_made_alike(self, loop: Loop, refs: Sequence[Ref]) -> bool:
        """Whether iterations of the same shape created these values at the same position."""
        places: dict[Shape, tuple[int, int]] = {}
        for ref in refs:
            last = min(ref.turns[-1][1], loop.kept_count - 1)
            at = int(ref.key) - loop.starts[last], ref.part
            if places.setdefault(loop.schedule[last], at) != at:
                return False
        return True

    def _every(self, kind: str, loop: Loop, values: Sequence[Ref], has_first: bool) -> list[Ref]:
        """The reference for the values of all iterations, or all but the first; empty if the last one is not the result of a call."""
        first = loop.repeats or loop
        numbers = [*RANGE(1, loop.kept_count - 1), LEN(values) - 1]
        listed = {min(number, loop.kept_count - 1): self.resolve_ref(values[number]) for number in numbers}
        last = listed[loop.kept_count - 1]
        if last.kind != "row":
            return []
        if listed not in first.listed:
            first.listed.append(listed)
        every = Ref(kind, last.key, last.part, ((self.found.index(first), first.listed.index(listed)),))
        beside = [self.resolve_ref(values[0])] if has_first else []
        return [*beside, every] if kind == "every" else [every, *beside]
