"""`int()` of a tensor while torch.export traces: what `item()` gives, a size that values decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from ..errors import ToOnnxError
from .running.lines import is_within_torch
from .running.python_numbers import whole_numbers_kept

PLAIN_INTEGER = "Could not extract specialized integer"  # what torch.export says of int(tensor), unless it is strict
Made = TypeVar("Made")


def with_items(capture: Callable[[], Made], refused: ToOnnxError) -> Made:
    """Return what a capture gives where `int()` of a tensor is what `item()` gives, in the modules for which it was refused.

    Raises:
        ToOnnxError: it is refused so as well.
    """
    modules: list[dict[str, Any]] = []
    while PLAIN_INTEGER in str(refused) and (names := _caller(refused)) is not None and all(names is not known for known in modules):
        modules.append(names)
        try:
            with whole_numbers_kept(modules):
                return capture()
        except ToOnnxError as error:
            refused = error
    raise refused


def _caller(refused: ToOnnxError) -> dict[str, Any] | None:
    """The names of the module whose code asked last for a number; None where torch's own did."""
    frames = list(_frames(refused.__cause__.__traceback__ if refused.__cause__ is not None else None))
    names = (frame.tb_frame.f_globals for frame in reversed(frames) if not is_within_torch(frame.tb_frame.f_code.co_filename))
    return next(names, None)


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
